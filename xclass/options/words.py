"""Read the words of a command line: split them into options and other words, and convert the values.

The command, its subcommands and `Learner.from_command` share this module, so that all read the same words alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .declare import Option, allowed_values, in_range, in_units, is_other, long_flag
from .spelling import suggestion

Advice = Iterable[tuple[str, str]]  # flags of options that there are not, and what to do instead
BARE = "\0"  # marks an option that was given without a value
HELP = "xclass --help_all"
NUMBER = re.compile(r"[+-]?[0-9]+")
# a number, here and in data; a regular expression that could read digits in two ways would take quadratic time
NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LONGEST_NUMBER = 400  # characters of a whole number that is converted; a longer one is out of range anyway


def advised(flag: str, advice: Advice) -> str | None:
    """Return the advice on a flag, None if there is none."""
    return next((words for flags, words in advice if flag in flags.split()), None)


class UnknownOption(UsageError):
    """Report an option that is not declared; `flag` is the flag as it was typed.

    The message has the advice on the flag, or else the most similar one, or the command `help` that lists the options.
    """

    def __init__(self, flag: str, declared: Iterable[Option], advice: Advice = (), help: str = HELP) -> None:
        instead = advised(flag, advice)
        known = [name[2:] for option in declared for name in (*option.flags, *option.aliases) if name[:2] == "--"]
        hint = "" if instead else suggestion(flag.lstrip("-"), known, "--{}", f"{help} lists all options")
        super().__init__(f"there is no option {flag}" + (f": {instead}" if instead else hint))
        self.flag = flag


def read(
    declared: Mapping[str, Option], words: Sequence[str], advice: Advice = (), help: str = HELP
) -> tuple[dict[str, Any], list[str]]:
    """Return the values of options by field, with an argument, and the words that belong to no option.

    `advice` and `help` are for the message about an unknown option.
    """
    argument = [name for name, option in declared.items() if option.is_argument]
    declared = {name: option for name, option in declared.items() if not option.is_argument}
    fields = {flag: name for name, option in declared.items() for flag in (*option.flags, *option.aliases)}
    texts: dict[str, list[str]] = {}
    others: list[str] = []
    rest = [*reversed(words)]
    while rest:
        word = rest.pop()
        if word == "--":
            others += reversed(rest)
            break
        if word[:1] != "-" or word == "-":
            others.append(word)
            continue
        flag, equals, text = word.partition("=")
        if word[1] != "-" and f"-{flag}" not in fields:  # a letter, with its value or further letters, as in `-tb18`
            flag, equals = word[:2], ""
            if word[2:]:
                rest.append(word[2:] if flag in fields and declared[fields[flag]].kind is not bool else f"-{word[2:]}")
        if flag not in fields:
            raise UnknownOption(flag, declared.values(), advice, help)
        option = declared[fields[flag]]
        if option.kind is bool and equals:
            raise UsageError(f"option {flag!r} does not take a value")
        if option.kind is not bool and not equals:
            is_bare = option.value_if_bare is not None and (not rest or (rest[-1][:1] == "-" and len(rest[-1]) > 1))
            if not rest and not is_bare:
                raise UsageError(f"option {flag!r} requires an argument")
            text = BARE if is_bare else rest.pop()
        texts.setdefault(fields[flag], []).append(text)
    given = _values(declared, texts, others)
    return ({**given, argument[0]: tuple(others)}, []) if argument else (given, others)


def _values(declared: Mapping[str, Option], texts: Mapping[str, Sequence[str]], others: list[str]) -> dict[str, Any]:
    """Return the values of options from their texts; texts that cannot be a value that is optional go to `others`."""
    given: dict[str, Any] = {}
    for name, option in declared.items():
        if name not in texts:
            continue
        if option.kind is bool:
            given[name] = True
            continue
        of_option = texts[name]
        if option.value_if_bare is not None:
            others += [text for text in of_option if text != BARE and not _can_be_value(option, text)]
            of_option = [text if _can_be_value(option, text) else str(option.value_if_bare) for text in of_option]
        converted = tuple(value(option, text) for text in of_option)
        if option.repeated:
            given[name] = converted
            continue
        if len(set(converted)) > 1:
            first, second = list(dict.fromkeys(converted))[:2]
            raise UsageError(f"{long_flag(option)} is given twice, as {first} and as {second}; give it once")
        given[name] = converted[0]
    return given


def _can_be_value(option: Option, text: str) -> bool:
    return text in option.choices if option.choices else bool(NUMBER.fullmatch(text))


def value(option: Option, text: str) -> Any:
    """Return the value of an option from its text; raise UsageError if the option cannot have it."""
    flag = long_flag(option)
    if option.kind is str:
        if option.choices and text not in option.choices:
            hint = suggestion(text, option.choices, "{}")
            raise UsageError(f"{flag}: {text!r} is none of {', '.join(option.choices)}{hint}")
        return text
    if is_other(option, text):
        return text
    number: float | None = None
    if option.kind is int:
        # Python refuses to convert very long texts.
        if NUMBER.fullmatch(text):
            number = int(text) if len(text) <= LONGEST_NUMBER else math.inf
    else:
        number = float(text) if NUMERAL.fullmatch(text) else None
    if number is None:
        number = in_units(option, text)
    if number is None:
        kind = (
            f"a number of {option.unit.name}" if option.unit else "a whole number" if option.kind is int else "a number"
        )
        if re.fullmatch("--?[a-zA-Z].*", text):  # the next option
            raise UsageError(f"{flag} needs a value before {text}: give {allowed_values(option)}")
        raise UsageError(f"{flag}: {text!r} is not {kind}; give {allowed_values(option)}")
    if not in_range(option, number):
        raise UsageError(f"{flag}: {text} is out of range; give {allowed_values(option)}")
    return number
