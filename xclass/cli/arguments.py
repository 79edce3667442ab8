"""Parse a command line into the values of the options that were typed; an error message names the wrong word.

bash, zsh and fish complete command lines by click's scripts. A shell loads the script with this line, where
`zsh_source` and `fish_source` are the words of the other shells:

    eval "$(_XCLASS_COMPLETE=bash_source xclass)"
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem, shell_complete

from .. import __version__
from ..options import words as option_words
from ..options.declare import Option
from ..options.words import BARE
from . import help_text, subcommands, vw_flags

RESUME, RESUME_RUN = "--resume", "--resume_run"  # the first one is an option of models, too, but with a value
VALUED = ("--node_only", "--randomized_routing")  # flags that had a value in the VW of the recall tree's paper
HELP_FLAGS = ("--help", "--help_all", "--version")
COMPLETION = "_XCLASS_COMPLETE"  # environment variable that the shell sets when it asks for completions


def complete(sections: Sequence[help_text.Section]) -> int:
    """Print the completions, or the script, that the shell requests and return the exit status."""
    declared: dict[str, Option] = {}
    for section in sections:
        declared = {**declared, **section.options, **declared}  # of an option that two share, the first declaration
    return shell_complete(_command(sections, declared), {}, "xclass", COMPLETION, os.environ[COMPLETION])


def _completer(
    words: Sequence[str], files: bool = False
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the words that begin with the typed text, and also files if `files` is set."""

    def completions(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
        items = [CompletionItem(word) for word in words if word.startswith(incomplete)]
        return [*items, CompletionItem(incomplete, type="file")] if files else items

    return completions


def _values_of(option: Option) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]]:
    """Return a function that lists the possible values of an option that begin with the typed text: words and files."""
    words = option.choices or [word for word in option.metavar.split("|") if word.islower()]
    return _completer(words, files=bool(option.reads or option.writes))


def _command(sections: Sequence[help_text.Section], declared: Mapping[str, Option]) -> click.Command:
    """Build the click command, which only splits a command line into options and words; `read` converts the values."""
    files = _completer([subcommand.name for subcommand in subcommands.SUBCOMMANDS], files=True)
    params: dict[str, click.Parameter] = {"words": click.Argument(["words"], nargs=-1, shell_complete=files)}
    for name, option in declared.items():
        params[name] = option_words.parameter(name, option, shell_complete=_values_of(option))
    for flag in vw_flags.ACCEPTED:
        params[flag] = click.Option([_vw_name(flag), flag], count=True)
    names = [section.record.name for section in sections if section.record is not None]
    params["help"] = click.Option(
        ["-h", "--help", "help"], is_flag=False, flag_value=BARE, shell_complete=_completer(names)
    )
    params["help_all"] = click.Option(["--help_all", "help_all"], is_flag=True)
    params["version"] = click.Option(["--version", "version"], is_flag=True)
    return click.Command("xclass", params=list(params.values()), add_help_option=False)


def read(sections: Sequence[help_text.Section], argv: Sequence[str]) -> dict[str, Any]:
    """Return the options that the user typed, field name -> value.

    If help or the version was requested, the result has a single key, "help" or "version", whose value is the text to
    print. Flags in `vw_flags.ACCEPTED` are listed under the key "accepted".
    """
    from ..reductions import presets

    declared: dict[str, Option] = {}
    names = []
    for section in sections:
        declared = {**section.options, **declared}
        names += [section.record.name] if section.record is not None else []
    chosen_by = presets.reductions(names)
    topic = _help_topic(argv, {*names, *chosen_by})
    if topic is not None:
        return {"help": help_text.of_reduction(topic, sections, chosen_by) if topic else help_text.overview(sections)}
    try:
        typed = _with_resume_run(_without_values(argv))
        command = _command(sections, option_words.occurring(declared, typed))
        words = option_words.split(command, declared, typed, HELP_FLAGS)
    except option_words.UnknownOption as error:
        raise vw_flags.advised(error) from None
    if words["version"]:
        return {"version": f"xclass {__version__}"}
    if words["help_all"]:
        return {"help": help_text.everything(sections)}

    given, files = option_words.values(declared, words)
    if files:
        given["data"] = (*given.get("data", ()), *files)
    accepted = [flag for flag in vw_flags.ACCEPTED if words[_vw_name(flag)]]
    if accepted:
        given["accepted"] = accepted
    return given


def _help_topic(argv: Sequence[str], reductions: Collection[str]) -> str | None:
    """Return the name of the reduction to show help for, "" for the general help, or None without `--help`.

    The name is the word after `--help`, or else a reduction among the other words, as in `xclass --cpt --help`.
    """
    words = list(argv[: argv.index("--")] if "--" in argv else argv)
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


def _vw_name(flag: str) -> str:
    """Return the name of click's parameter for an option of VW that is accepted."""
    return "vw_" + flag.lstrip("-")
