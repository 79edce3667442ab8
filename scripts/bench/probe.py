"""Look for good options of xclass at random: the search that the papers tuned with.

    python -m scripts.bench.probe train.vw -- --recall_tree 1000 -b 24
    python -m scripts.bench.probe train.vw --range '-l log 0.1 10' --range '--max_depth int 8 14' -- --recall_tree 1000

Every probe draws one value from each range, learns the first tenth of the stream and takes its progressive loss (with
--passes, the loss held out); with --validate FILE, the loss on that file, with --tail SHARE, that on the end of the
tenth, which is then not learned. A range is one of

    OPTION log A B       between A and B, their ratios evenly
    OPTION linear A B    between A and B
    OPTION int A B       a whole number, A and B among them
    OPTION one X Y ...   one of these
    OPTION flag          given or not

Without --range there are those of the reduction, from its paper. Text is read once: all probes share a cache. Each is
written to --results as it ends, so that a search cut short goes on with the same command. Probe i draws the same values
whatever the number of probes. At the end stand a table and the best command line.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from scripts.lib.command_line import run
from scripts.lib.search import Search, carry_out, defaults, report


def main() -> None:
    """Search and report."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        usage="%(prog)s [options] DATA -- OPTIONS OF XCLASS",
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="VW text, plain or .gz")
    parser.add_argument("--range", action="append", default=[], metavar="R", help="may be repeated")
    parser.add_argument("--probes", type=int, default=59, metavar="N", help="how many (default: 59)")
    parser.add_argument("--share", type=float, default=0.1, help="of the data that is learned (default: 0.1)")
    parser.add_argument("--seed", type=int, default=1, help="of the draws (default: 1)")
    parser.add_argument("--validate", type=Path, metavar="FILE", help="take the loss on this file")
    parser.add_argument("--tail", type=float, default=0.0, metavar="SHARE", help="take the loss on the end of it")
    parser.add_argument("--results", type=Path, default=Path("probes.jsonl"), metavar="FILE", help="(probes.jsonl)")
    given = parser.parse_args(words[:at])
    options = words[at + 1 :]
    if given.probes < 1 or not 0 < given.share <= 1:
        parser.error("--probes: at least 1; --share: above 0, at most 1")
    if given.tail and (given.validate or not 0 < given.tail < 1):
        parser.error("--tail: between 0 and 1, and not with --validate")
    for path in (given.data, given.validate):
        if path and not path.is_file():
            parser.error(f"{path}: no such file")
    ranges = given.range or defaults(options, None)
    search = Search(given.data, options, ranges, given.probes, given.share, given.seed, given.validate, given.tail)
    rows = carry_out(search, given.results)
    print(report(search, rows))


if __name__ == "__main__":
    run(main)
