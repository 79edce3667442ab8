"""Read the words of a command line: split them by click into options and other words, and convert the values.

The command and `Learner.from_command` share this module, so that both read the same words alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from ..errors import UsageError
from .declare import Option, allowed_values, in_range, is_other, long_flag
from .similar import suggestion

BARE = "\0"  # marks an option that was given without a value
HELP = "xclass --help_all"
NUMBER = re.compile(r"[+-]?[0-9]+")
# a number, here and in data; a regular expression that could read digits in two ways would take quadratic time
NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LONGEST_NUMBER = 400  # characters of a whole number that is converted; a longer one is out of range anyway


class UnknownOption(UsageError):
    """Report an option that is not declared; `flag` is the flag as it was typed."""

    def __init__(self, flag: str, declared: Iterable[Option], others: Sequence[str] = ()) -> None:
        known = [name for option in declared for name in (*option.flags, *option.aliases)] + [*others]
        long_names = [name[2:] for name in known if name[:2] == "--"]
        hint = suggestion(flag.lstrip("-"), long_names, "--{}", f"{HELP} lists all options")
        super().__init__(f"there is no option {flag}{hint}")
        self.flag = flag


def occurring(declared: Mapping[str, Option], words: Sequence[str]) -> dict[str, Option]:
    """Return the options that words may name, and perhaps others. click takes 40 us for each option of a command."""
    flags = {word.partition("=")[0] for word in words}
    flags |= {f"-{letter}" for word in words if word[:1] == "-" != word[1:2] for letter in word[1:]}  # `-tb18`
    return {name: option for name, option in declared.items() if not flags.isdisjoint(option.flags + option.aliases)}


def parameter(name: str, option: Option, **attributes: Any) -> click.Option:
    """Return the parameter of a click command for an option.

    An option may be repeated, because click would silently keep the last value; `values` compares them all.
    """
    names = [name, *option.flags, *option.aliases]
    if option.kind is bool:
        return click.Option(names, count=True, help=option.help)
    if option.value_if_bare is not None:
        attributes.update(is_flag=False, flag_value=BARE)
    return click.Option(names, multiple=True, type=str, help=option.help, **attributes)


def read(declared: Mapping[str, Option], words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Read words that hold options and nothing else, such as those of `Learner.from_command`.

    Return the options by field, with an argument, and the words that belong to no option.
    """
    argument = [name for name, option in declared.items() if option.is_argument]
    declared = {name: option for name, option in declared.items() if not option.is_argument}
    params: list[click.Parameter] = [parameter(*item) for item in occurring(declared, words).items()]
    command = click.Command("xclass", params=[*params, click.Argument(["words"], nargs=-1)], add_help_option=False)
    texts = split(command, declared, words)
    given, others = values(declared, texts)
    return ({**given, argument[0]: tuple(others)}, []) if argument else (given, others)


def split(
    command: click.Command, declared: Mapping[str, Option], words: Sequence[str], others: Sequence[str] = ()
) -> dict[str, Any]:
    """Split words into the texts of the parameters of a click command, which has an argument called "words".

    `others` are further flags of the command, which the message about an unknown option may suggest.
    """
    for word in words:  # click would read `-learning_rate 3` as `-l earning_rate`
        if word == "--":
            break
        name = word.partition("=")[0]
        if len(name) > 2 and any("-" + name == flag for option in declared.values() for flag in option.flags):
            raise UnknownOption(name, declared.values(), others)
    try:
        return command.make_context("xclass", list(words)).params
    except click.NoSuchOption as error:
        raise UnknownOption(error.option_name, declared.values(), others) from None
    except click.UsageError as error:
        raise UsageError(_sentence(error)) from None


def values(declared: Mapping[str, Option], texts: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of options from the texts that `split` returned, and the words that belong to no option."""
    given: dict[str, Any] = {}
    others = [*texts["words"]]
    for name, option in declared.items():
        if not texts.get(name):
            continue
        if option.kind is bool:
            given[name] = True
            continue
        of_option = texts[name]
        if option.value_if_bare is not None:  # the value is optional, so a word that cannot be one is another word
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
    return given, others


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
        kind = "a whole number" if option.kind is int else "a number"
        if re.fullmatch("--?[a-zA-Z].*", text):  # the next option
            raise UsageError(f"{flag} needs a value before {text}: give {allowed_values(option)}")
        raise UsageError(f"{flag}: {text!r} is not {kind}; give {allowed_values(option)}")
    if not in_range(option, number):
        raise UsageError(f"{flag}: {text} is out of range; give {allowed_values(option)}")
    return number


def _sentence(error: click.UsageError) -> str:
    """Return click's message in the form of xclass's messages: in lower case, without a full stop."""
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]
