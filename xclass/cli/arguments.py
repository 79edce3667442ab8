"""Parse a command line into the values of the options that were typed; an error message names the wrong word."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import click

from .. import __version__
from ..errors import UsageError
from ..options.declare import Option, allowed_values, in_range, long_flag
from . import completion, help_text, vw_flags

BARE = "\0"  # marks an option that was given without a value
NUMBER = re.compile(r"[+-]?[0-9]+")
PRESETS = {"multiclass": "cpt", "hsm": "cpt"}  # preset -> reduction whose options it sets
LONGEST_NUMBER = 400  # characters of a whole number that is converted; a longer one is out of range anyway


def command(sections: Sequence[help_text.Section]) -> help_text.HelpCommand:
    """Build the click command, which only splits a command line into options and words; `read` converts the values."""
    files = completion.completer((), files=True)
    params: dict[str, click.Parameter] = {"words": click.Argument(["words"], nargs=-1, shell_complete=files)}
    for section in sections:
        for name, option in section.options.items():
            if name in params:  # an option that two reductions share
                continue
            # Every option may be repeated, because click would silently keep the last value; `read` compares them all.
            if option.kind is bool:
                params[name] = click.Option([name, *option.flags, *option.aliases], count=True, help=option.help)
            else:
                bare_allowed: dict[str, Any] = {}
                if option.value_if_bare is not None:
                    bare_allowed = {"is_flag": False, "flag_value": BARE}
                params[name] = click.Option(
                    [name, *option.flags, *option.aliases], multiple=True, type=str, help=option.help,
                    shell_complete=completion.values_of(option), **bare_allowed,
                )  # fmt: skip
    for flag in vw_flags.ACCEPTED:
        params[flag] = click.Option([_vw_name(flag), flag], count=True)
    names = [section.record.name for section in sections if section.record is not None]
    params["help"] = click.Option(
        ["-h", "--help", "help"], is_flag=False, flag_value=BARE, shell_complete=completion.completer(names)
    )
    params["help_all"] = click.Option(["--help_all", "help_all"], is_flag=True)
    params["version"] = click.Option(["--version", "version"], is_flag=True)
    built = help_text.HelpCommand("xclass", params=list(params.values()), add_help_option=False)
    built.context_settings = {"max_content_width": 100}
    built.sections = sections
    return built


def read(sections: Sequence[help_text.Section], argv: Sequence[str]) -> dict[str, Any]:
    """Return the options that the user typed, field name -> value.

    If help or the version was requested, the result has a single key, "help" or "version", whose value is the text to
    print. Flags in `vw_flags.ACCEPTED` are listed under the key "accepted".

    Parameters
    ----------
    sections : the options, by heading
    argv : words of the command line after the name of the command

    Raises
    ------
    UsageError
        for an unknown option, a value of the wrong type or out of range, or an option given twice with different
        values.
    """
    declared: dict[str, Option] = {}
    names = []
    for section in sections:
        declared = {**section.options, **declared}
        names += [section.record.name] if section.record is not None else []
    built = command(sections)
    topic = _help_topic(argv, {*names, *PRESETS})
    if topic is not None:
        formatter = click.Context(built, **built.context_settings).make_formatter()
        if topic == "":
            return {"help": help_text.overview(sections, formatter)}
        return {"help": help_text.of_reduction(topic, sections, formatter, PRESETS)}
    _refuse_single_dashes(argv, declared)
    try:
        context = built.make_context("xclass", list(argv))
    except click.NoSuchOption as error:
        raise UsageError(_unknown(error.option_name, declared)) from None
    except click.UsageError as error:
        raise UsageError(_sentence(error)) from None
    words = context.params
    if words["version"]:
        return {"version": f"xclass {__version__}"}
    if words["help_all"]:
        return {"help": help_text.everything(built, context)}

    given: dict[str, Any] = {}
    for name, option in declared.items():
        if not words[name]:
            continue
        if option.kind is bool:
            given[name] = True
            continue
        texts = words[name]
        if option.value_if_bare is not None:  # the value is optional, so a word that is no number is a data file
            words["words"] += tuple(text for text in texts if text != BARE and not NUMBER.fullmatch(text))
            texts = tuple(text if NUMBER.fullmatch(text) else str(option.value_if_bare) for text in texts)
        values = tuple(_value(option, text) for text in texts)
        if option.repeated:
            given[name] = values
            continue
        if len(set(values)) > 1:
            first, second = list(dict.fromkeys(values))[:2]
            raise UsageError(f"{long_flag(option)} is given twice, as {first} and as {second}; give it once")
        given[name] = values[0]
    _add_data_files(given, words["words"], declared)
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


def _vw_name(flag: str) -> str:
    """Return the name of click's parameter for an option of VW that is accepted."""
    return "vw_" + flag.lstrip("-")


def _add_data_files(given: dict[str, Any], words: Sequence[str], declared: Mapping[str, Option]) -> None:
    """Add the words that belong to no option to `given` as data files."""
    name = next(name for name, option in declared.items() if "-d" in option.flags)
    if declared[name].repeated:
        if words:
            given[name] = (*given.get(name, ()), *words)
        return
    if len(words) > 1:
        raise UsageError(f"{words[0]!r} and {words[1]!r} are two data files; give one")
    if words:
        if name in given:
            raise UsageError(f"{words[0]!r} and -d {given[name]!r} are two data files; give one")
        given[name] = words[0]


def _value(option: Option, text: str) -> Any:
    """Return the value of an option from its text; raise UsageError if the option cannot have it."""
    flag = long_flag(option)
    if option.kind is str:
        if option.choices and text not in option.choices:
            close = difflib.get_close_matches(text, option.choices, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{flag}: {text!r} is none of {', '.join(option.choices)}{hint}")
        return text
    value: float | None = None
    if option.kind is int:
        # Python refuses to convert very long texts.
        if NUMBER.fullmatch(text):
            value = int(text) if len(text) <= LONGEST_NUMBER else math.inf
    else:
        try:
            value = float(text)
        except ValueError:
            value = None
        if value is not None and not math.isfinite(value):
            value = None
    if value is None:
        number = "a whole number" if option.kind is int else "a number"
        raise UsageError(f"{flag}: {text!r} is not {number}; give {allowed_values(option)}")
    if not in_range(option, value):
        raise UsageError(f"{flag}: {text} is out of range; give {allowed_values(option)}")
    return value


def _refuse_single_dashes(argv: Sequence[str], declared: Mapping[str, Option]) -> None:
    """Refuse `-learning_rate 3`, which click would read as `-l earning_rate`."""
    for word in argv:
        if word == "--":
            return
        name = word.partition("=")[0]
        if len(name) > 2 and any("-" + name == flag for option in declared.values() for flag in option.flags):
            raise UsageError(_unknown(name, declared))


def _unknown(flag: str, declared: Mapping[str, Option]) -> str:
    """Return the message about an unknown option, with advice or the most similar option."""
    instead = vw_flags.advice(flag)
    if instead is not None:
        return f"there is no option {flag}: {instead}"
    known = [
        "help",
        "help_all",
        "version",
        *(name[2:] for option in declared.values() for name in (*option.flags, *option.aliases) if name[:2] == "--"),
    ]
    close = difflib.get_close_matches(flag.lstrip("-"), known, n=1)
    hint = f"did you mean --{close[0]}?" if close else "xclass --help_all lists all options"
    return f"there is no option {flag}; {hint}"


def _sentence(error: click.UsageError) -> str:
    """Return click's message in the form of xclass's messages: in lower case, without a full stop."""
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]
