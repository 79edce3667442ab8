"""What `xclass tune` finds in a given time, beside the defaults and the autotune of fastText.

    python -m scripts.bench.tuning DATA_DIR --sets clinc150,reuters --seconds 300 --fasttext

DATA_DIR has a folder with train.vw.gz and test.vw.gz for every set. The table has a row for each set: the test errors
in percent with the defaults and with the options found, the ratio of the two, the seconds and the CPU seconds that the
search and the training of the model took, and the options. fastText compares its settings on the last tenth of the
training file, because it needs a file for that; its words are all features, without their values.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shlex
import shutil
import sys
from pathlib import Path

from scripts.lib import peers
from scripts.lib.command_line import names, run, work_folder
from scripts.lib.processes import TOOLS, BenchError, Run, measure
from scripts.lib.results import test_error

SETS = ["clinc150", "reuters", "spelling", "wordnet", "panlex"]
HELD_OUT = 10  # the last lines, one in so many, that fastText compares its settings on
PEER = [sys.executable, str(Path(peers.__file__).with_name("peer_process.py")), "fasttext"]


def error(folder: Path, words: list[str]) -> float:
    """Return the test error, in percent, of the model that these words of a command line make."""
    measure([*TOOLS["xclass"], *words, "-f", "model", "--quiet"], folder)
    return tested(folder)


def tested(folder: Path) -> float:
    """Return the test error of the model in percent."""
    measure([*TOOLS["xclass"], "-d", "test.vw", "-t", "-i", "model", "-p", "p", "--quiet"], folder)
    return 100 * test_error(folder / "test.vw", folder / "p")


def tuned(folder: Path, seconds: float) -> tuple[float, Run, str]:
    """Return the test error in percent of what `xclass tune` finds, its measurements, and the options."""
    words = ["tune", "-d", "train.vw", "--time", f"{seconds:g}s", "--state", "state", "-f", "model", "--quiet"]
    (folder / "state").unlink(missing_ok=True)
    measured = measure([*TOOLS["xclass"], *words], folder)
    typed = shlex.split((folder / "stdout").read_text(encoding="utf-8").splitlines()[-1])
    return tested(folder), measured, shlex.join(typed[typed.index("train.vw") + 1 : typed.index("-f")])


def autotuned(folder: Path, seconds: float) -> tuple[float, Run]:
    """Return the test error in percent of fastText's autotune, and its measurements."""
    for part in ("train", "test"):
        peers.to_fasttext(folder / f"{part}.vw", folder / f"{part}.words")
    lines = (folder / "train.words").read_bytes().splitlines(keepends=True)
    after = len(lines) - len(lines) // HELD_OUT
    (folder / "learn.words").write_bytes(b"".join(lines[:after]))
    (folder / "valid.words").write_bytes(b"".join(lines[after:]))
    how = ["autotuneValidationFile=valid.words", f"autotuneDuration={round(seconds)}"]
    measured = measure([*PEER, "train", "learn.words", "words.model", *how], folder)
    report = json.loads(measure([*PEER, "test", "test.words", "words.model"], folder).stderr.strip().splitlines()[-1])
    return 100 * report["error"], measured


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA_DIR")
    parser.add_argument("--sets", type=names, default=SETS, metavar="A,B", help=f"(default: {','.join(SETS)})")
    parser.add_argument("--seconds", type=float, default=300, metavar="S", help="time of each search (default: 300)")
    parser.add_argument("--fasttext", action="store_true", help="run the autotune of fastText, too")
    given = parser.parse_args()
    head = ["set", "defaults", "tuned", "ratio", "s", "CPU s", "options"]
    head += ["fastText autotune", "s"] if given.fasttext else []
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head), flush=True)
    with work_folder(None) as work:
        for name in given.sets:
            folder = work / name
            folder.mkdir()
            for part in ("train.vw", "test.vw"):
                if not (given.data / name / f"{part}.gz").is_file():
                    raise BenchError(f"{given.data / name / part}.gz: there is no such file")
                with gzip.open(given.data / name / f"{part}.gz") as source, open(folder / part, "wb") as target:
                    shutil.copyfileobj(source, target)
            before = error(folder, ["-d", "train.vw", "--multiclass"])
            after, measured, options = tuned(folder, given.seconds)
            row = [name, f"{before:.1f}", f"{after:.1f}", f"{after / before:.2f}" if before else "-"]
            row += [f"{measured.wall:.0f}", f"{measured.cpu:.0f}", f"`{options}`"]
            if given.fasttext:
                of_words, of_peer = autotuned(folder, given.seconds)
                row += [f"{of_words:.1f}", f"{of_peer.wall:.0f}"]
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    run(main)
