"""Write sets of raw texts, as people wrote them, from packages of Debian and PyPI.

    python -m scripts.text.sets --out FOLDER [SET ...]

    sections    description of a package of Debian -> its section; one package of each source
    fortunes    an adage of `fortunes` and `fortunes-min` -> the file that has it
    wordnet     a gloss of WordNet 3.0, with its examples -> its lexicographer file, such as noun.animal
    languages   a message of Django -> its language

Each set is FOLDER/SET/{train,held_out,test}.csv with the columns `label` and `text`: eight tenths of the texts to learn
from, a tenth to choose options on, and a tenth to test, by a hash of the text (of the source package in `sections`).
Needs `apt-get`, `dpkg-deb` and `pip`, which fetch the packages.
"""

from __future__ import annotations

import argparse
import ast
import csv
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

Row = tuple[str, str, str]  # label, text, and what is kept together in one part
PARTS = {0: "test", 1: "held_out"}  # remainder of the hash modulo 10 -> part; the others are to learn from
LEAST = 10  # texts of a class


def run(*command: str, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def debian(folder: Path, *names: str) -> Path:
    """Fetch packages of Debian and return the folder into which their files are unpacked."""
    run("apt-get", "download", *names, folder=folder)
    for package in folder.glob("*.deb"):
        run("dpkg-deb", "-x", str(package), "files", folder=folder)
    return folder / "files"


def stanzas(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each paragraph of a control file of Debian."""
    for paragraph in text.split("\n\n"):
        fields = re.findall(r"^(\S+?):[ \t]*(.*(?:\n[ \t].*)*)", paragraph, re.MULTILINE)
        if fields:
            yield dict(fields)


def sections(folder: Path) -> Iterator[Row]:
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    run("apt-get", "-o", "Acquire::Languages=en", "-o", f"Dir::State::lists={lists}", "update", folder=folder)

    def content(pattern: str) -> Iterator[dict[str, str]]:
        for path in sorted(lists.glob(pattern)):
            yield from stanzas(run("/usr/lib/apt/apt-helper", "cat-file", str(path), folder=folder))

    written = {one.get("Description-md5"): one.get("Description-en", "") for one in content("*Translation-en*")}
    known = set()
    for one in content("*_main_binary-*_Packages*"):
        source = one.get("Source", one["Package"]).split()[0]
        text = re.sub(r"\n \.?", "\n", written.get(one.get("Description-md5"), ""))
        if text and "Section" in one and source not in known:
            known.add(source)
            yield one["Section"].rpartition("/")[2], text, source


def fortunes(folder: Path) -> Iterator[Row]:
    files = debian(folder, "fortunes", "fortunes-min") / "usr/share/games/fortunes"
    for path in sorted(files.iterdir()):
        if not path.suffix and not path.is_symlink():
            for text in re.split(r"^%\n", path.read_text(errors="replace"), flags=re.MULTILINE):
                yield path.name, text, text


def wordnet(folder: Path) -> Iterator[Row]:
    files = debian(folder, "wordnet-base") / "usr/share"
    # in the order of lexnames(5WN)
    nouns = (
        "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
        "object person phenomenon plant possession process quantity relation shape state substance time"
    )
    verbs = (
        "body change cognition communication competition consumption contact creation emotion motion perception "
        "possession social stative weather"
    )
    names = ["adj.all", "adj.pert", "adv.all", *(f"noun.{name}" for name in nouns.split())]
    names += [*(f"verb.{name}" for name in verbs.split()), "adj.ppl"]
    for path in sorted(files.glob("wordnet/data.*")):
        for line in path.read_text().splitlines():
            if not line.startswith(" "):
                text = line.partition("| ")[2].strip()
                yield names[int(line.split()[1])], text, text


def languages(folder: Path) -> Iterator[Row]:
    run(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", ".", "django", folder=folder)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        for name in sorted(files.namelist()):
            language = re.fullmatch(r".*/locale/(\w+)/LC_MESSAGES/django\.po", name)
            if language and language[1] != "en":
                for text in messages(files.read(name).decode()):
                    yield language[1], text, text


def messages(catalogue: str) -> Iterator[str]:
    """Yield the translations of a file of gettext."""
    for quoted in re.findall(r'^msgstr(?:\[\d\])? ((?:".*"\n)+)', catalogue.partition("\n\n")[2], re.MULTILINE):
        text = "".join(ast.literal_eval(line) for line in quoted.splitlines())
        if text.strip():
            yield text


SETS: dict[str, Callable[[Path], Iterator[Row]]] = {
    "sections": sections, "fortunes": fortunes, "wordnet": wordnet, "languages": languages,
}  # fmt: skip


def write(rows: list[Row], out: Path) -> None:
    """Write the parts of a set; a text that a class has twice counts once."""
    rows = [*dict.fromkeys((label, text.strip(), group) for label, text, group in rows if text.strip())]
    parts: dict[str, list[tuple[str, str]]] = {name: [] for name in ("train", "held_out", "test")}
    # the order of a hash, so that classes are mixed
    for label, text, group in sorted(rows, key=lambda row: zlib.crc32("\0".join(row[:2]).encode())):
        parts[PARTS.get(zlib.crc32(group.encode()) % 10, "train")].append((label, text))
    counts: dict[str, int] = {}
    for label, _ in parts["train"]:
        counts[label] = counts.get(label, 0) + 1
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        kept = [row for row in part if counts.get(row[0], 0) >= LEAST]
        with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([("label", "text"), *kept])
        print(f"{out.name} {name}: {len(kept)} texts, {len({label for label, _ in kept})} classes")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*", metavar="SET", choices=[*SETS, []], help="default: all")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER")
    given = parser.parse_args()
    for name in given.sets or SETS:
        with tempfile.TemporaryDirectory() as folder:
            write([*SETS[name](Path(folder))], given.out / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
