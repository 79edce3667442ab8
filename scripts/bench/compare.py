"""Compare xclass with Vowpal Wabbit as whole processes: error, time and memory, side by side.

    python -m scripts.bench.compare DATA_DIR --sets panlex,spelling --reduction recall_tree --args '-b 24'

DATA_DIR/SET holds train.vw, test.vw and labels.txt (one line per class), each plain or `.gz`, or the words of a text;
they are unpacked before any clock starts. Every repetition runs one tool after the other, training with `-f` and then
testing with `-t -i`, so that whatever else the machine does meets both. Wall time runs from starting a process to its
end; CPU and peak memory are what the system counted for it. Errors are counted here, from the predictions. xclass
learns a few lines first, unmeasured, so that nothing has to be compiled later.

`--beside "cpt"` (or any other reduction and options of it) has xclass run once more beside the two, with that.

`--reach` also asks how long xclass takes, from the start of its process, until its average progressive loss is down
to what Vowpal Wabbit ends with.

The report is a Markdown table on standard output; `--json FILE` keeps every single measurement.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from scripts.lib.command_line import names, run, work_folder
from scripts.lib.processes import TOOLS
from scripts.lib.versus_vw import Comparison, compare


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n", 1)[0],
        allow_abbrev=False,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("data_dir", type=Path, metavar="DATA_DIR", help="folder of data sets")
    parser.add_argument("--sets", type=names, default="panlex,wordnet,wiki,ptb,spelling", help="by commas")
    parser.add_argument("--reduction", default="recall_tree", help="its option, without dashes")
    parser.add_argument("--args", default="-b 24 --loss_function logistic", help="options of both tools")
    parser.add_argument("--xclass_reduction", help="where it is another one for xclass")
    parser.add_argument("--vw_reduction", help="and for VW")
    parser.add_argument("--xclass_args", default="", help="options of xclass alone")
    parser.add_argument("--vw_args", default="", help="options of VW alone")
    parser.add_argument("--vw_test_args", default="", help="options VW needs again to test")
    parser.add_argument("--beside", action="append", metavar="WORDS", help="one more of xclass: reduction, options")
    parser.add_argument("--repetitions", type=int, default=3, metavar="R", help="runs of each")
    parser.add_argument("--only", choices=list(TOOLS), help="measure one tool")
    parser.add_argument("--reach", action="store_true", help="time xclass until it is as good as VW at its end")
    parser.add_argument("--reach_every", type=int, default=1000, metavar="N", help="examples between looks for --reach")
    parser.add_argument("--work", type=Path, metavar="DIR", help="folder for unpacked data and models, kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all measurements here")
    given = vars(parser.parse_args())
    if given["reach"] and given["only"]:
        parser.error("--reach compares both tools; leave out --only")
    if not all(shlex.split(words) for words in given["beside"] or ()):
        parser.error("--beside: name a reduction, without dashes")
    if given["repetitions"] < 1:
        parser.error("--repetitions: at least 1")
    with work_folder(given.pop("work")) as work:
        compare(Comparison(**given), work)


if __name__ == "__main__":
    run(main)
