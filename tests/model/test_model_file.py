"""The model file: what goes in comes out, nothing damaged gets in, and saving never harms what was there."""

import gzip
import io
import json
import os
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from xclass.errors import ModelError
from xclass.model import model_file, model_header, stored_arrays

OPTIONS = {"recall_tree": 9, "loss_function": "logistic", "quadratic": ["ab"], "learning_rate": 0.1, "adaptive": None}
FACTS = {"examples": 12345678901234, "state": 2**64 - 1, "name": "Grüße \N{SNOWMAN}", "rate": 1e-300}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
records = st.dictionaries(st.text(max_size=5), json_values, max_size=4)
names = st.text(st.characters(codec="utf-8"), max_size=8).filter(lambda name: name != "__metadata__")
arrays_of_any_kind = st.dictionaries(
    names,
    st.sampled_from([np.float32, np.float64, np.int64, np.uint32, np.uint8, bool, ">f4"]).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5))
    ),
    max_size=5,
)


def small_model(path):
    """Save a model of every kind of array; return what was given to `save`."""
    arrays = {
        "w": np.arange(5, dtype=np.float32),
        "sums": np.linspace(0, 1, 6).reshape(3, 2),
        "label": np.array([3, 1, 2], np.uint32),
        "seen": np.array([True, False, True]),
        "text": np.frombuffer(b"words", np.uint8),
        "none": np.empty((0, 4), np.int64),
    }
    given = {"options": OPTIONS, "facts": FACTS, "arrays": arrays}
    model_file.save(path, **given)
    return given


def assert_same(arrays, others):
    assert set(arrays) == set(others)
    for name, array in arrays.items():
        other = np.asarray(others[name])
        assert array.dtype.newbyteorder("=") == other.dtype.newbyteorder("=") and array.shape == other.shape, name
        assert array.astype(other.dtype).tobytes() == other.tobytes(), name


def header_of(content):
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def written(entries, data=b""):
    """Return a file of these header entries whose own checksum is right."""
    text = json.dumps(entries, separators=(",", ":")) if not isinstance(entries, str) else entries
    text = text.encode() + b" " * (-(8 + len(text)) % model_header.ALIGN)
    head = bytearray(len(text).to_bytes(8, "little") + text)
    head[model_header.CHECKSUM_DIGITS] = b"0" * 8
    head[model_header.CHECKSUM_DIGITS] = b"%08x" % zlib.crc32(head)
    return bytes(head) + data


# -- what goes in comes out --------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(options=records, facts=records, arrays=arrays_of_any_kind)
def test_what_was_saved_is_loaded(tmp_path, options, facts, arrays):
    path = tmp_path / "model.bin"
    model_file.save(path, options=options, facts=facts, arrays=arrays)
    model = model_file.load(path)
    assert model.options == options and model.facts == facts
    assert_same(arrays, model.arrays)
    for array in model.arrays.values():
        assert array.flags.aligned and array.dtype.isnative


def test_strided_arrays_are_saved_in_pieces(tmp_path):
    rng = np.random.default_rng(1)
    slots = rng.random((model_file.PIECE // 4 + 12345, 4), dtype=np.float32)
    arrays = {"w": slots[:, 0], "n": slots[:, 2], "back": slots[::-1, 1], "turned": slots[:1000].T}
    model_file.save(tmp_path / "m", options={}, facts={}, arrays=arrays)
    assert_same(arrays, model_file.load(tmp_path / "m").arrays)


def test_same_model_gives_same_bytes(tmp_path):
    small_model(tmp_path / "a")
    given = small_model(tmp_path / "b")
    turned = {key: dict(reversed(record.items())) for key, record in given.items()}
    model_file.save(tmp_path / "c", **turned)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_numpy_scalars_are_facts_but_nan_is_not(tmp_path):
    model_file.save(tmp_path / "m", options={}, facts={"n": np.int64(3), "x": np.float32(0.5)}, arrays={})
    assert model_file.load(tmp_path / "m").facts == {"n": 3, "x": 0.5}
    with pytest.raises(ValueError):
        model_file.save(tmp_path / "m", options={}, facts={"x": float("nan")}, arrays={})
    with pytest.raises(ValueError):
        model_file.save(tmp_path / "m", options={}, facts={}, arrays={"o": np.array([{}])})
    assert model_file.load(tmp_path / "m").facts == {"n": 3, "x": 0.5}
    assert os.listdir(tmp_path) == ["m"]


def test_loaded_arrays_can_be_changed_without_changing_the_file(tmp_path):
    small_model(tmp_path / "m")
    before = (tmp_path / "m").read_bytes()
    model_file.load(tmp_path / "m").arrays["w"][:] = 7
    assert (tmp_path / "m").read_bytes() == before
    assert model_file.load(tmp_path / "m").arrays["w"][1] == 1


def test_safetensors_opens_a_model(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    path = tmp_path / "m"
    arrays = small_model(path)["arrays"]
    with safetensors.safe_open(path, framework="numpy") as file:
        assert json.loads(file.metadata()["options"]) == OPTIONS
        assert_same(arrays, {name: file.get_tensor(name) for name in file.keys()})  # noqa: SIM118
    assert (8 + int.from_bytes(path.read_bytes()[:8], "little")) % model_header.ALIGN == 0


# -- weight tables -----------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=20)
@given(
    slots=st.sampled_from([1, 7, 64, 1000, stored_arrays.PIECE_SLOTS, 2 * stored_arrays.PIECE_SLOTS + 9]),
    share=st.sampled_from([0, 0.01, 0.5, 0.74, 0.76, 1]),
    strided=st.booleans(),
    seed=st.integers(0, 99),
)
def test_sparse_tables_come_back(tmp_path, slots, share, strided, seed):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random((slots, 1)) < share, rng.integers(-1, 3, (slots, 4)), 0).astype(np.float32)
    values[:, 3] = 0
    values[0, 1] = -0.0
    table = values if strided else np.asfortranarray(values)
    arrays = stored_arrays.pack_table("table", {"w": table[:, 0], "g": table[:, 1], "n": table[:, 2]})
    if share >= 0.01 and slots >= 1000:
        share_in_use = (values[:, :3].view(np.uint32) != 0).any(axis=1).mean()
        assert ("table.index" in arrays) == (share_in_use + min(4 * share_in_use, 1 / 8) / 12 < 1)
    model_file.save(tmp_path / "m", options={}, facts={}, arrays=arrays)
    stored = model_file.load(tmp_path / "m").arrays
    assert_same(stored, arrays)
    for source in (stored, arrays):
        back = np.zeros_like(table)
        stored_arrays.unpack_table("table", source, {"w": back[:, 0], "g": back[:, 1], "n": back[:, 2]})
        assert back.tobytes() == table.tobytes()


def test_a_file_may_be_read_in_pieces():
    class Pieces(io.BytesIO):
        def readinto(self, data):
            return super().readinto(memoryview(data)[:7])

    data = np.zeros(50, np.uint8)
    model_file.Bytes("m", Pieces(bytes(range(100)))).read(40, data)
    assert data.tolist() == [*range(40, 90)]
    with pytest.raises(ModelError, match="cut off"):
        model_file.Bytes("m", Pieces(bytes(range(89)))).read(40, data)


def test_a_file_that_changes_while_it_is_used_is_refused(tmp_path):
    """Nothing of it is mapped: a file that is cut off would end the process, and one written over be used unchecked."""
    table = np.random.default_rng(5).random(1 << 20).astype(np.float32)
    model_file.save(tmp_path / "m", options={}, facts={}, arrays=stored_arrays.pack_table("t", {"w": table}))
    whole = (tmp_path / "m").read_bytes()
    stored = model_file.opened(tmp_path / "m").arrays
    back = np.zeros(1 << 20, np.float32)

    def unpack():
        stored_arrays.unpack_table("t", stored, {"w": back})

    with open(tmp_path / "m", "r+b") as file:
        file.truncate(len(whole) // 2)
        with pytest.raises(ModelError, match=r"m: cannot load the model: the file was cut off while it was read"):
            unpack()
        file.seek(0)
        file.write(whole[:-9] + bytes(9))
        file.flush()
        with pytest.raises(ModelError, match=r"m: array 't\.w' is damaged: its bytes do not match its checksum"):
            unpack()
    (tmp_path / "m").write_bytes(whole)
    os.replace(tmp_path / "m", tmp_path / "other")
    unpack()
    assert back.tobytes() == table.tobytes()


def test_sparse_tables_of_other_numbers_come_back():
    size, seen = np.zeros(1000), np.zeros(1000, np.int8)
    size[[3, 500]] = -0.0, 5e-324  # the first is in its high half alone, the second in its low half
    seen[[7, 999]] = 1, -1
    arrays = stored_arrays.pack_table("s", {"size": size, "seen": seen})
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    assert arrays["s.index"].tolist() == [3, 7, 500, 999]
    back = {"size": np.zeros(1000), "seen": np.zeros(1000, np.int8)}
    stored_arrays.unpack_table("s", arrays, back)
    assert back["size"].tobytes() == size.tobytes()
    assert back["seen"].tobytes() == seen.tobytes()


def test_tables_that_do_not_fit_are_refused():
    def planes():
        return {"w": np.zeros(10, np.float32)}

    index, rows = np.array([1, 3], np.uint32), np.ones(2, np.float32)
    with pytest.raises(ModelError, match=r"'t\.w'.*missing"):
        stored_arrays.unpack_table("t", {}, planes())
    with pytest.raises(ModelError, match=r"'t\.w'.*float32\[9\].*float32\[10\]"):
        stored_arrays.unpack_table("t", {"t.w": np.zeros(9, np.float32)}, planes())
    with pytest.raises(ModelError, match=r"'t\.w'.*float64"):
        stored_arrays.unpack_table("t", {"t.w": np.zeros(10)}, planes())
    with pytest.raises(ModelError, match=r"'t\.w'"):
        stored_arrays.unpack_table("t", {"t.index": index, "t.w": rows[:1]}, planes())
    for bad in ([3, 1], [1, 1], [1, 10]):
        with pytest.raises(ModelError, match=r"'t\.index'.*rising"):
            stored_arrays.unpack_table("t", {"t.index": np.array(bad, np.uint32), "t.w": rows}, planes())
    with pytest.raises(ModelError, match=r"'t\.index'"):
        stored_arrays.unpack_table("t", {"t.index": index.astype(np.int64), "t.w": rows}, planes())
    with pytest.raises(ModelError, match="'x' does not fit"):
        stored_arrays.fill("x", {"x": np.zeros((2, 3))}, np.zeros((3, 2)))


# -- nothing damaged gets in -------------------------------------------------------------------------------------


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path):
    small_model(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    for size in range(0, len(content), 5):
        (tmp_path / "t").write_bytes(content[:size])
        with pytest.raises(ModelError, match=f"truncated: it has (only )?{size} bytes|empty|not an xclass model"):
            model_file.load(tmp_path / "t")
    (tmp_path / "t").write_bytes(content + b"\0")
    with pytest.raises(ModelError, match="the end is damaged"):
        model_file.load(tmp_path / "t")


def test_every_flipped_bit_is_noticed(tmp_path):
    small_model(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    start = len(content) - len(header_of(content)[1])
    for bit in range(0, 8 * len(content), 13):  # 8 does not divide 13, so each bit of a byte occurs
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        (tmp_path / "f").write_bytes(flipped)
        part = "array '" if bit // 8 >= start else "header|first bytes|truncated|not an xclass model"
        with pytest.raises(ModelError, match=part):
            model_file.load(tmp_path / "f")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "empty"),
        (b"5 |w some words\n" * 9, "not an xclass model"),
        (gzip.compress(b"model", mtime=0), "compressed"),
        (bytes([7, 0, 0, 0]) + b"9.11.9\0\x01\0\0\0\0m\0\0\0\0\0\0" * 9, r"Vowpal Wabbit 9\.11\.9"),
        (b"\x20\0\0\0\0\0\0\0" + b'{"a":{"dtype":"F32"}}'.ljust(32), "safetensors"),
        (bytes(4096), "not an xclass model"),
        (b"\xff" * 4096, "not an xclass model"),
    ],
)
def test_foreign_files_are_called_by_their_name(tmp_path, content, message):
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ModelError, match=message):
        model_file.load(tmp_path / "f")


def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(ModelError, match="not a regular file"):
            model_file.load(place)
    with pytest.raises(ModelError, match="no such file"):
        model_file.load(tmp_path / "missing")
    with pytest.raises(ModelError):
        model_file.load(str(tmp_path) + "/m\0")


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**40 - 8, 100_000_000 - 8, 2**21 - 8, 1, 0])
def test_a_vast_header_length_takes_no_memory(tmp_path, length):
    small_model(tmp_path / "m")
    content = (tmp_path / "m").read_bytes()
    (tmp_path / "m").write_bytes(length.to_bytes(8, "little") + content[8:])
    with pytest.raises(ModelError, match=f"header is damaged: its length is given as {length} bytes"):
        model_file.load(tmp_path / "m")


def test_a_newer_version_says_so(tmp_path):
    small_model(tmp_path / "m")
    entries, data = header_of((tmp_path / "m").read_bytes())
    entries["__metadata__"]["version"] = "3"
    (tmp_path / "m").write_bytes(written(entries, data))
    with pytest.raises(ModelError, match="newer version of xclass, in format 3"):
        model_file.load(tmp_path / "m")
    entries["__metadata__"]["version"] = "9" * 5000
    (tmp_path / "m").write_bytes(written(entries, data))
    with pytest.raises(ModelError, match="version"):
        model_file.load(tmp_path / "m")


def _set(name, key, value):
    def change(entries):
        entries[name][key] = value

    return change


@pytest.mark.parametrize(
    "change, message",
    [
        (_set("w", "dtype", "F33"), "dtype is .*allowed is"),
        (_set("w", "dtype", ["F32"]), "dtype is .*allowed is"),
        (_set("w", "shape", [6]), "to have 20 bytes"),
        (_set("w", "shape", [-5, -1]), "shape.*allowed"),
        (_set("w", "shape", [5.0]), "shape.*allowed"),
        (_set("w", "shape", [True] * 5), "shape.*allowed"),
        (_set("w", "shape", "5"), "shape.*allowed"),
        (_set("w", "shape", [1] * 33), "shape.*allowed"),
        (_set("w", "shape", [2**62]), "shape.*allowed"),
        (_set("w", "shape", [2**61, 2**61, 5]), "to have 20 bytes"),
        (_set("none", "shape", [0, 2**61, 2**61]), "impossible|damaged"),
        (_set("w", "data_offsets", [0, 20]), "said to be at"),
        (_set("w", "data_offsets", [60, 40]), "said to be at"),
        (_set("w", "data_offsets", [0]), "a list of 2 values"),
        (_set("w", "data_offsets", [48, 2**61]), "said to be at|has"),
        (_set("w", "more", 1), "w.'more' is not known"),
        (lambda entries: entries.update({"x" * 10**5: {}}), r"x{400,500}\.\.\.; "),
        (
            lambda entries: entries.update(extra={"dtype": "U8", "shape": [2], "data_offsets": [89, 91]}),
            "said to be at",
        ),
        (lambda entries: entries.update(extra=[]), "extra is .*an object"),
        (lambda entries: entries.pop("none"), "have different names"),
        (_set("__metadata__", "facts", "{"), "facts is damaged"),
        (_set("__metadata__", "facts", '{"a":NaN}'), "facts is damaged"),
        (_set("__metadata__", "facts", '{"a":-Infinity}'), "facts is damaged"),
        (_set("__metadata__", "facts", '{"a":1e999}'), "facts is damaged"),
        (_set("__metadata__", "facts", '{"a":1,"a":2}'), "facts is damaged.*twice"),
        (_set("__metadata__", "facts", '{"a":' + "9" * 10**5 + "}"), "facts is damaged"),
        (_set("__metadata__", "facts", "[" * 10**5), "facts is damaged"),
        (_set("__metadata__", "facts", "[]"), "facts is damaged"),
        (_set("__metadata__", "options", 3), "options is 3; allowed is a text"),
        (_set("__metadata__", "crc32", "{}"), "have different names"),
    ],
)
def test_a_header_written_wrongly_is_refused(tmp_path, change, message):
    small_model(tmp_path / "m")
    entries, data = header_of((tmp_path / "m").read_bytes())
    (tmp_path / "m").write_bytes(written(entries, data))
    model_file.load(tmp_path / "m")
    change(entries)
    (tmp_path / "m").write_bytes(written(entries, data))
    with pytest.raises(ModelError, match=message):
        model_file.load(tmp_path / "m")


def test_a_header_that_names_an_array_twice_is_refused(tmp_path):
    small_model(tmp_path / "m")
    entries, data = header_of((tmp_path / "m").read_bytes())
    text = json.dumps(entries, separators=(",", ":"))
    (tmp_path / "m").write_bytes(written(text.replace('"w":', '"sums":'), data))
    with pytest.raises(ModelError, match="twice"):
        model_file.load(tmp_path / "m")


def test_truth_values_are_zero_or_one(tmp_path):
    small_model(tmp_path / "m")
    entries, data = header_of((tmp_path / "m").read_bytes())
    start, end = entries["seen"]["data_offsets"]
    data = data[:start] + b"\x01\x02\x00" + data[end:]
    checksums = json.loads(entries["__metadata__"]["crc32"])
    checksums["seen"] = f"{zlib.crc32(data[start:end]):08x}"
    entries["__metadata__"]["crc32"] = json.dumps(checksums)
    (tmp_path / "m").write_bytes(written(entries, data))
    with pytest.raises(ModelError, match=r"array 'seen'.*truth"):
        model_file.load(tmp_path / "m")


# -- saving never harms what was there ---------------------------------------------------------------------------


def test_saving_goes_through_a_link_and_keeps_permissions(tmp_path):
    (tmp_path / "real").write_bytes(b"")
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    small_model(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o600
    model_file.load(tmp_path / "real")


def test_saving_replaces_nothing_but_a_model(tmp_path):
    (tmp_path / "labels.npy").write_bytes(b"of yesterday")
    with pytest.raises(ModelError, match=r"labels\.npy: this is not a model of xclass, so it is not replaced"):
        small_model(tmp_path / "labels.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["labels.npy"]
    assert (tmp_path / "labels.npy").read_bytes() == b"of yesterday"


def test_saving_to_the_null_device_leaves_it_there():
    if not os.path.exists(os.devnull) or os.name != "posix":
        pytest.skip("no null device")
    small_model(os.devnull)
    assert not os.path.isfile(os.devnull)


def test_unwritable_path_is_reported(tmp_path):
    with pytest.raises(ModelError, match=r"no folder .*missing; create it"):
        small_model(tmp_path / "missing" / "m")
    with pytest.raises(ModelError, match="this is a folder"):
        small_model(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelError, match="not a regular file"):
        small_model(tmp_path / "pipe")
    os.unlink(tmp_path / "pipe")
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(ModelError, match="permission"):
            small_model(tmp_path / "m")
        tmp_path.chmod(0o700)
    assert os.listdir(tmp_path) == []
