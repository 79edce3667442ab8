"""Recognise by its first bytes a file that is not text that can be read, and say what it is and what to do."""

from __future__ import annotations

from typing import NamedTuple

from ..model import model_header
from ..system import streams

ARRAY = b"\x93NUMPY"  # first bytes of an array of NumPy
CACHE_MAGIC = b"xclass cache\n"  # first bytes of a cache
SHOWN = 512  # bytes at the beginning of a file that are examined

TABLE = "write it as CSV, such as by `pandas.{read}.to_csv('FILE.csv', index=False)`, or give the DataFrame to " \
    "the Python library"  # fmt: skip
UNPACK = "unpack it, and give the files in it"
NO_DATA = "give a file of examples"
MAGIC = (  # first bytes, what they begin, what to do
    (b"PAR1", "a Parquet file", TABLE.format(read="read_parquet('FILE')")),
    (b"ARROW1", "an Arrow or Feather file", TABLE.format(read="read_feather('FILE')")),
    (b"FEA1", "a Feather file", TABLE.format(read="read_feather('FILE')")),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Excel file", TABLE.format(read="read_excel('FILE')")),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        TABLE.format(read="read_sql('SELECT * FROM NAME', sqlite3.connect('FILE'))"),
    ),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", TABLE.format(read="read_hdf('FILE')")),
    (b"Obj\x01", "an Avro file", "convert it to JSON lines"),
    *((bytes((0x80, version)), "a pickle of Python", "load it in Python, and write the examples as text")
      for version in range(2, 6)),
    (b"\x89PNG", "an image", NO_DATA),
    (b"\xff\xd8\xff", "an image", NO_DATA),
    (b"GIF8", "an image", NO_DATA),
    (b"II*\0", "an image", NO_DATA),
    (b"MM\0*", "an image", NO_DATA),
    (b"%PDF-", "a PDF document", NO_DATA),
    (b"\x7fELF", "a program", NO_DATA),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", UNPACK),
    (b"\x04\x22\x4d\x18", "a file compressed by lz4", "decompress it, `lz4 -dc < FILE > NEW`"),
    (b"\x1f\x9d", "a file compressed by compress", "decompress it, `gzip -dc < FILE > NEW`"),
)  # fmt: skip
ZIP = b"PK\x03\x04"
ZIPPED = (  # endings of files that are zip archives
    ((".xlsx", ".xlsm", ".ods"), "a spreadsheet", "save it as CSV"),
    (
        (".npz",),
        "an archive of NumPy arrays",
        "save the array of the rows alone, such as by `numpy.save('ROWS.npy', "
        "numpy.load('FILE.npz')['X'])`, and the labels as ROWS.labels.npy",
    ),
    (("",), "a zip archive", UNPACK),
)
MARKS = (  # byte order marks
    (b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"),
)  # fmt: skip
CONTROLS = bytes(c for c in range(32) if c not in b"\t\n\v\f\r\x1b")


class WithoutMark(NamedTuple):
    """Describe an encoding without a byte order mark: which of its bytes are 0 in ASCII text."""

    name: str
    size: int  # bytes of a character
    letter: int  # the byte of a character that is not 0


WITHOUT_MARK = (WithoutMark("UTF-32LE", 4, 0), WithoutMark("UTF-32BE", 4, 3), WithoutMark("UTF-16LE", 2, 0),
                WithoutMark("UTF-16BE", 2, 1))  # fmt: skip


def what_it_is(first: bytes, name: str, is_file: bool) -> str:
    """Return what a file that begins with `first` is, if it cannot be data, and what to do, as the end of a message.

    Return nothing if it can be data. `is_file` is False for standard input.
    """
    kind = model_header.model_kind(first)
    if kind:
        return f"this is {kind}, not data; give a file of examples with -d, and a model with -i"
    if first.startswith(CACHE_MAGIC):
        return "this is a cache of xclass, not data; give it with --cache_file"
    for magic, ending, tool in streams.COMPRESSED:
        if _begins_with(first, magic):
            if streams.ending_of(name):
                return "the file is compressed twice; decompress it once"
            cure = "rename the file so that it does"
            if not is_file:
                cure = f"decompress it, `{tool} FILE{ending} | xclass ...`, or give -d FILE{ending}"
            return f"the data are compressed, but the name does not end in {ending}; {cure}"
    for magic, encoding in MARKS:
        if first.startswith(magic):
            return _encoded(encoding)
    for magic, kind, cure in MAGIC:
        if _begins_with(first, magic):
            return f"this is {kind}, not text; {cure}"
    if first.startswith(ZIP):
        kind, cure = next((kind, cure) for endings, kind, cure in ZIPPED if name.lower().endswith(endings))
        return f"this is {kind}, not text; {cure}"
    if first[257:262] == b"ustar":
        return f"this is a tar archive, not text; {UNPACK}"
    return ""


def is_binary(first: bytes) -> str:
    """Return what text that begins with `first` and has no readable characters is, as the end of a message; else
    nothing.
    """
    for encoding in WITHOUT_MARK:
        count = len(first) // encoding.size
        zeros = [first[k : count * encoding.size : encoding.size].count(0) for k in range(encoding.size)]
        if count > 1 and zeros.pop(encoding.letter) == 0 and min(zeros) >= 0.9 * count:
            return _encoded(encoding.name)
    if len(first.translate(None, CONTROLS)) <= 0.9 * len(first):
        return "this is a binary file, not text; give text, or name its format by --format"
    return ""


def _begins_with(first: bytes, magic: bytes) -> bool:
    """Return whether a file begins with these bytes and, if they are letters, is not text such as `PAR1 | a`."""
    return first.startswith(magic) and not (magic.isalnum() and len(first.translate(None, CONTROLS)) == len(first))


def _encoded(encoding: str) -> str:
    return f"the text is encoded as {encoding}; convert it, `iconv -f {encoding} -t UTF-8 FILE > NEW`"
