"""Read a command line: words to a value for each option that was typed, or a message that names the word."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import click

from .. import __version__
from ..errors import UsageError
from ..options.declare import Option, allowed_values, in_range, long_flag
from . import help_text, vw_flags

ABSENT = "\0"  # stands for the value of an option given without one
NUMBER = re.compile(r"[+-]?[0-9]+")
LONGEST_NUMBER = 400  # characters of a whole number


def command(sections: Sequence[help_text.Section]) -> click.Command:
    """Build the click command. It only collects words; `read` gives them their meaning."""
    params: dict[str, click.Parameter] = {"words": click.Argument(["words"], nargs=-1)}
    for section in sections:
        for name, one in section.options.items():
            if name in params:  # two reductions share it
                continue
            # Everything may be repeated for click: it would silently take the last, `read` compares.
            if one.kind is bool:
                params[name] = click.Option([name, *one.flags], count=True, help=one.help)
            else:
                alone: dict[str, Any] = {} if one.absent is None else {"is_flag": False, "flag_value": ABSENT}
                params[name] = click.Option([name, *one.flags], multiple=True, type=str, help=one.help, **alone)
    for flag in vw_flags.ACCEPTED:
        params[flag] = click.Option([_vw_name(flag), flag], count=True)
    params["help"] = click.Option(["-h", "--help", "help"], is_flag=True)
    params["version"] = click.Option(["--version", "version"], is_flag=True)
    built = help_text.HelpCommand("xclass", params=list(params.values()), add_help_option=False)
    built.context_settings = {"max_content_width": 100}
    built.sections = sections
    return built


def read(sections: Sequence[help_text.Section], argv: Sequence[str]) -> dict[str, Any]:
    """Return what the user typed, field name -> value; "help" or "version" alone where that was asked.

    The flags of `vw_flags.ACCEPTED` among it are listed under the name "accepted".

    Raises
    ------
    UsageError
        for an unknown option, a value of the wrong kind or out of range, or an option given twice.
    """
    declared: dict[str, Option] = {}
    for section in sections:
        declared = {**section.options, **declared}
    built = command(sections)
    _refuse_single_dashes(argv, declared)
    try:
        context = built.make_context("xclass", list(argv))
    except click.NoSuchOption as error:
        raise UsageError(_unknown(error.option_name, declared)) from None
    except click.UsageError as error:
        raise UsageError(_sentence(error)) from None
    words = context.params
    for eager in ("help", "version"):
        if words[eager]:
            return {eager: built.get_help(context) if eager == "help" else f"xclass {__version__}"}

    given: dict[str, Any] = {}
    for name, one in declared.items():
        if not words[name]:
            continue
        if one.kind is bool:
            given[name] = True
            continue
        texts = words[name]
        if one.absent is not None:  # what follows it may be the data
            words["words"] += tuple(text for text in texts if text != ABSENT and not NUMBER.fullmatch(text))
            texts = tuple(text if NUMBER.fullmatch(text) else str(one.absent) for text in texts)
        values = tuple(_value(one, text) for text in texts)
        if one.repeated:
            given[name] = values
            continue
        if len(set(values)) > 1:
            first, second = list(dict.fromkeys(values))[:2]
            raise UsageError(f"{long_flag(one)} is given twice, as {first} and as {second}; give it once")
        given[name] = values[0]
    _take_data(given, words["words"], declared)
    accepted = [flag for flag in vw_flags.ACCEPTED if words[_vw_name(flag)]]
    if accepted:
        given["accepted"] = accepted
    return given


def _vw_name(flag: str) -> str:
    """Return what click calls an option of VW that is accepted."""
    return "vw_" + flag.lstrip("-")


def _take_data(given: dict[str, Any], words: Sequence[str], declared: Mapping[str, Option]) -> None:
    """The word without an option is the data file."""
    name = next(name for name, one in declared.items() if "-d" in one.flags)
    if declared[name].repeated:
        if words:
            given[name] = (*given.get(name, ()), *words)
        return
    if len(words) > 1:
        raise UsageError(f"one data file at a time: found {words[0]!r} and {words[1]!r}")
    if words:
        if name in given:
            raise UsageError(f"two data files: {words[0]!r} or -d {given[name]!r}; give one")
        given[name] = words[0]


def _value(one: Option, text: str) -> Any:
    """Return the value a word stands for."""
    flag = long_flag(one)
    if one.kind is str:
        if one.choices and text not in one.choices:
            close = difflib.get_close_matches(text, one.choices, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{flag}: {text!r} is none of {', '.join(one.choices)}{hint}")
        return text
    value: float | None = None
    if one.kind is int:
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
        what = "a whole number" if one.kind is int else "a number"
        raise UsageError(f"{flag}: {text!r} is not {what}; give {allowed_values(one)}")
    if not in_range(one, value):
        raise UsageError(f"{flag}: {text} is out of range; give {allowed_values(one)}")
    return value


def _refuse_single_dashes(argv: Sequence[str], declared: Mapping[str, Option]) -> None:
    """`-learning_rate 3` would be read as `-l earning_rate`."""
    for word in argv:
        if word == "--":
            return
        name = word.partition("=")[0]
        if len(name) > 2 and any("-" + name == flag for one in declared.values() for flag in one.flags):
            raise UsageError(_unknown(name, declared))


def _unknown(flag: str, declared: Mapping[str, Option]) -> str:
    """Say that there is no such option, and which one may be meant."""
    instead = vw_flags.advice(flag)
    if instead is not None:
        return f"there is no option {flag}: {instead}"
    known = ["help", "version", *(name[2:] for one in declared.values() for name in one.flags if name[:2] == "--")]
    close = difflib.get_close_matches(flag.lstrip("-"), known, n=1)
    hint = f"did you mean --{close[0]}?" if close else "xclass --help lists all options"
    return f"there is no option {flag}; {hint}"


def _sentence(error: click.UsageError) -> str:
    """Return click's message in the form of ours."""
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]
