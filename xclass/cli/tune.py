"""Execute `xclass tune`, which searches for the options with which a learner makes the fewest errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ..errors import DataError, UsageError
from ..options import words as option_words
from ..options.declare import Option, options_of, taken
from . import vw_flags
from .declared import add_implied_options, option_groups, prepare_files

USAGE = "xclass tune -d FILE [--time 5m] [-f FILE] [OPTIONS]"
INTRO = (
    "Search for the options with the fewest errors: reductions, passes, learning rates, n-grams and others. Settings "
    "learn from the first examples and are compared on the next ones; the better half goes on to twice as many. The "
    "data are parsed once. At the end stand a table and the command line with the best options, which are the defaults "
    "unless others are better by more than 1.3 standard errors; -f trains and saves the model. Options of a learner, "
    "such as --recall_tree 1000 or -q ab, apply to all settings and are not searched. Ctrl-C ends the search, prints "
    "the best options so far and trains no model; the same command continues it."
)


def declared() -> dict[str, Option]:
    """Return the options of the search and those that say what is read, by field name."""
    from ..cache import source as cache
    from ..text import reader
    from ..tuning.options import TuneOptions

    return {**options_of(reader.ReaderOptions), **options_of(cache.CacheOptions), **options_of(TuneOptions)}


def run(words: Sequence[str]) -> int | list[str]:
    """Search as the words say; return the exit status, or the command line that trains the model of -f."""
    from ..api import configuration
    from ..cache import source as cache
    from ..model import model_file
    from ..reductions import presets
    from ..text import reader
    from ..tuning import settings
    from ..tuning.options import TuneOptions
    from ..tuning.search import Search

    known = {**configuration.options_of_learner(), "passes": settings.declared()["passes"], **declared()}
    given, files = option_words.read(known, words, vw_flags.LISTS)
    if files:
        given["data"] = (*given.get("data", ()), *files)
    prepare_files(given, known)
    options = taken(given, TuneOptions)
    kept = taken(given, cache.CacheOptions)
    if given.get("vw_exact"):
        raise UsageError("--vw_exact fixes what would be searched, so that predictions agree with VW's; leave it out")
    typed, (groups, reductions) = set(given), option_groups()
    peeked = reader.Peeked()
    _check_data(given.get("data", ()), options.final_regressor)
    notes = add_implied_options(given, groups, reductions, peeked)
    read = {name: given.pop(name) for name in options_of(reader.ReaderOptions) if name in given}
    chosen, _, fixed = configuration.chosen(given, "")
    if not chosen:
        raise UsageError(
            *(notes or ["the labels are numbers"]),
            "tune compares learners of classes; give --multiclass, or another reduction and the number of its classes",
        )
    only = (chosen, given[chosen]) if chosen == presets.LISTS or chosen in typed else None
    if options.final_regressor is not None:
        model_file.check_writable(options.final_regressor)
    return Search(options, read, kept, fixed, only, peeked, notes).run()


def _check_data(paths: Sequence[str], model: str | None) -> None:
    """Check that there are data, and files if a model will be trained on them after the search."""
    from ..text import reader

    if not paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(f"no data: give a file with -d, or pipe examples to standard input; usage: {USAGE}")
    if model is not None and (once := reader.read_once(paths)):
        raise UsageError(
            f"-f: the model is trained on all data after the search, and {once} can be read only once; give a file "
            "with -d"
        )
    for path in paths:
        if "://" not in path:
            os.stat(path)
            if not os.access(path, os.R_OK):
                raise DataError(f"{path}: the file cannot be read (Permission denied); check its name and permissions")
