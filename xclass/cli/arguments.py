"""Parse a command line into the values of the options that were typed; an error message names the wrong word.

bash, zsh and fish complete command lines by click's scripts. A shell loads the script with this line, where
`zsh_source` and `fish_source` are the words of the other shells:

    eval "$(_XCLASS_COMPLETE=bash_source xclass)"
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..options import words as option_words
from ..options.declare import Option, all_options
from . import help_text, subcommands, vw_flags

if TYPE_CHECKING:  # importing these takes time
    from ..options.resolve import OptionGroups
    from ..reductions.core.base import ReductionRecord

RESUME, RESUME_RUN = "--resume", "--resume_run"  # the first one is an option of models, too, but with a value
VALUED = ("--node_only", "--randomized_routing")  # flags that had a value in the VW of the recall tree's paper
HELP_FLAGS = ("--help", "--help_all", "--version")
COMPLETION = "_XCLASS_COMPLETE"  # environment variable that the shell sets when it asks for completions


def complete(groups: OptionGroups, reductions: Iterable[ReductionRecord]) -> int:
    """Print the completions, or the script, that the shell requests and return the exit status."""
    import click  # which takes time
    from click.shell_completion import CompletionItem, shell_complete

    def completer(words: Iterable[str], files: bool) -> Callable[..., list[CompletionItem]]:
        """Return a function that lists the words that begin with the typed text, and perhaps files."""

        def completions(context: Any, parameter: Any, incomplete: str) -> list[CompletionItem]:
            items = [CompletionItem(word) for word in words if word.startswith(incomplete)]
            return [*items, CompletionItem(incomplete, type="file")] if files else items

        return completions

    files = completer([subcommand.name for subcommand in subcommands.SUBCOMMANDS], True)
    params: list[click.Parameter] = [click.Argument(["words"], nargs=-1, shell_complete=files)]
    for name, option in {**all_options(groups), **vw_flags.OPTIONS}.items():
        names = [f"field_{name.lstrip('-')}", *option.flags, *option.aliases]
        if option.kind is bool:
            params.append(click.Option(names, count=True, help=option.help))
            continue
        words = option.choices or [word for word in option.metavar.split("|") if word.islower()]
        values = completer(words, bool(option.reads or option.writes))
        params.append(click.Option(names, multiple=True, help=option.help, shell_complete=values))
    topics = completer([record.name for record in reductions], False)
    params.append(click.Option(["-h", "--help"], is_flag=False, flag_value="", shell_complete=topics))
    params += [click.Option([flag], is_flag=True) for flag in ("--help_all", "--version")]
    command = click.Command("xclass", params=params, add_help_option=False)
    return shell_complete(command, {}, "xclass", COMPLETION, os.environ[COMPLETION])


def read(groups: OptionGroups, reductions: Sequence[ReductionRecord], argv: Sequence[str]) -> dict[str, Any]:
    """Return the options that the user typed, field name -> value; those of `vw_flags.OPTIONS` have names of their own.

    If help or the version was requested, the result has a single key, "help" or "version", whose value is the text to
    print.
    """
    from ..reductions import presets

    words = list(argv[: argv.index("--")] if "--" in argv else argv)
    names = [record.name for record in reductions]
    chosen_by = presets.reductions(names)
    topic = _help_topic(words, {*names, *chosen_by})
    if topic is not None or "--help_all" in words:
        sections = help_text.sections(groups, reductions)
        if topic:
            return {"help": help_text.of_reduction(topic, sections, chosen_by)}
        return {"help": help_text.everything(sections) if topic is None else help_text.overview(sections)}
    if "--version" in words:
        return {"version": f"xclass {__version__}"}
    helping = {flag: Option("", (flag,), kind=bool) for flag in HELP_FLAGS}  # which a message may propose
    known = {**all_options(groups), **vw_flags.OPTIONS, **helping}
    given, files = option_words.read(known, _with_resume_run(_without_values(argv)), vw_flags.LISTS)
    if files:
        given["data"] = (*given.get("data", ()), *files)
    return given


def _help_topic(words: Sequence[str], reductions: Collection[str]) -> str | None:
    """Return the name of the reduction to show help for, "" for the general help, or None without `--help`.

    The name is the word after `--help`, or else a reduction among the other words, as in `xclass --cpt --help`.
    """
    at = next((i for i, word in enumerate(words) if word in ("-h", "--help") or word.startswith("--help=")), None)
    if at is None:
        return None
    if words[at].startswith("--help="):
        return words[at].partition("=")[2]
    if at + 1 < len(words) and not words[at + 1].startswith("-"):
        return words[at + 1]
    return next((word[2:] for word in words if word[:2] == "--" and word[2:] in reductions), "")


def _without_values(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line with `--node_only` for `--node_only 1`, and nothing for `--node_only 0`."""
    words: list[str] = []
    for word in argv:
        if not (word in ("0", "1") and words and words[-1] in VALUED and not os.path.exists(word)):
            words.append(word)
        elif word == "0":
            words.pop()
    return words


def _with_resume_run(argv: Sequence[str]) -> list[str]:
    """Return the words of a command line with --resume_run in place of a --resume that has no value."""
    return [
        RESUME_RUN if word == RESUME and (following is None or following.startswith("-")) else word
        for word, following in itertools.zip_longest(argv, argv[1:])
    ]
