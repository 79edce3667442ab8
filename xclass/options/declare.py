"""Declare options: each once, as a field of the dataclass `Options` of the module that uses it.

    @dataclass(frozen=True)
    class Options:
        max_depth: int = option("levels of routers", default_text="ceil(log2 K)", stored=True)

`cli` makes the command line, the help and docs/options.md from these fields; `options.resolve` decides
which value holds (command line, then model, then preset, then default) and refuses what has no effect.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from ..system.printable import shortened

LARGEST_FLOAT = 3.4e38  # kernels take numbers in single precision
LARGEST_INT = 2**64 - 1


class OptionGroup(Protocol):
    """Values of options: an instance of a dataclass whose fields `option` makes."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclass(frozen=True)
class Option:
    """Everything the command line needs to know of one option.

    Attributes
    ----------
    help : what it does, in the field's words; starts in lower case, no full stop.
    flags : names on the command line; empty means `--` and the field's name.
    kind : int, float, str or bool (a bool takes no value).
    default : the value when nobody says otherwise; None where it is computed or where there is none.
    default_text : how a computed default is described in the help.
    choices : allowed words, or None for any.
    metavar : how the value is called in the help (`K`, `FILE`).
    absent : the value of an option that is given without one; None where it needs one.
    repeated : may be given several times; the value is a tuple.
    stored : belongs to the model file: it changes predictions or how learning continues.
    adjustable : a stored option that may get another value when learning goes on from a model.
    read : what it names is read; another file an option names (metavar FILE) is written.
    minimum, maximum : allowed range of a number, both ends included.
    """

    help: str
    flags: tuple[str, ...] = ()
    kind: type = str
    default: object = None
    default_text: str | None = None
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    absent: object = None
    repeated: bool = False
    stored: bool = False
    adjustable: bool = False
    read: bool = False
    minimum: float | None = None
    maximum: float | None = None


def option(help: str, **facts: Any) -> Any:
    """Return a dataclass field that carries an `Option`; its default is the option's default.

    It is declared to return anything, since it is assigned to a field, which has a type of its own.
    """
    declared = Option(help=help, **facts)
    default = () if declared.repeated and declared.default is None else declared.default
    if declared.kind is bool and default is None:
        default = False
    return field(default=default, metadata={"option": dataclasses.replace(declared, default=default)})


@functools.cache
def options_of(group: type[OptionGroup]) -> dict[str, Option]:
    """Return the options a group's `Options` dataclass declares: field name -> Option, flags filled in."""
    found = {}
    for one in dataclasses.fields(group):
        if "option" in one.metadata:
            declared: Option = one.metadata["option"]
            flags = declared.flags or ("--" + one.name,)
            found[one.name] = dataclasses.replace(declared, flags=flags)
    return found


def long_flag(one: Option) -> str:
    """Return the name an option goes by in messages: its long flag."""
    return max(one.flags, key=len)


def allowed_values(one: Option) -> str:
    """Return which values an option takes: `a whole number from 1 to 31`."""
    if one.repeated:
        return "a list of texts"
    if one.kind is bool:
        return "true or false"
    if one.kind is str:
        return f"one of {', '.join(one.choices)}" if one.choices else "text"
    what = "a whole number" if one.kind is int else "a number"
    low, high = (
        bound if bound is None else str(bound) if isinstance(bound, int) else f"{bound:.15g}"
        for bound in (one.minimum, one.maximum)
    )  # fmt: skip
    if low and high:
        return f"{what} from {low} to {high}"
    if low:
        return f"{what} of at least {low}"
    if high:
        return f"{what} of at most {high}"
    return what


def in_range(one: Option, value: float) -> bool:
    """Tell whether a number lies in an option's declared range; numbers that no kernel can take never do."""
    largest = LARGEST_FLOAT if one.kind is float else LARGEST_INT
    if not -largest <= value <= largest:
        return False
    return (one.minimum is None or value >= one.minimum) and (one.maximum is None or value <= one.maximum)


def from_stored(one: Option, value: object) -> object:
    """Return the value of an option that a model file holds as `value`, read from JSON.

    Raises
    ------
    ValueError
        where no command line can give the option this value.
    """
    if value is None and one.default is None:
        return None
    if one.repeated:
        if isinstance(value, list) and all(_is_text(part) for part in value):
            return tuple(value)
    elif one.kind is bool:
        if isinstance(value, bool):
            return value
    elif one.kind is str:
        if _is_text(value) and (not one.choices or value in one.choices):
            return value
    elif one.kind is int:
        if isinstance(value, int) and not isinstance(value, bool) and in_range(one, value):
            return value
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and in_range(one, value):
        return float(value)
    raise ValueError(f"{shortened(value)} is not {allowed_values(one)}")


def _is_text(value: object) -> bool:
    """Tell whether a value is text that bytes on a command line could have stood for."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
