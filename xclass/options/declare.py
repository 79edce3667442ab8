"""Declare each option once, as a field of the dataclass `Options` of the module that uses it.

    @dataclass(frozen=True)
    class Options:
        max_depth: int = option("levels of routers", default_text="ceil(log2 K)", stored=True)

`cli` builds the command line, the help and docs/options.md from these fields. `options.resolve` chooses the value of
each option (command line, then model, then preset, then default) and refuses options without effect.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from ..system.printable import short_repr
from .search import Declared

LARGEST_FLOAT = 3.4e38  # kernels use single precision
LARGEST_INT = 2**64 - 1


class OptionGroup(Protocol):
    """Describe the values of an option group: an instance of a dataclass whose fields are declared by `option`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]


@dataclass(frozen=True)
class Option:
    """Describe one option for the command line, the library and model files.

    Attributes
    ----------
    help : description for the help, in lower case and without a full stop
    flags : names on the command line; empty for `--` and the name of the field; the name of an argument has no dash
    aliases : other names on the command line that say more plainly what the option does
    kind : int, float, str or bool (a bool takes no value)
    default : value if the option is not given; None if it is computed or if there is none
    default_text : description of a computed default in the help
    choices : allowed words, or None for any text
    metavar : name of the value in the help (`K`, `FILE`)
    value_if_bare : value to use if the option is given without one; None if a value is required
    repeated : whether the option may be given several times; its value is a tuple
    stored : whether the option is kept in the model file, because it changes predictions or how learning continues
    adjustable : whether a stored option may get another value when learning continues from a model
    reads : whether the option names a file that is read
    writes : for an option that names a file that is written, what the file holds, such as "the summary"
    files : function of the value and of all values that were typed, which returns the files; None if the value names
        them. It is also called for an option that was not typed, with None. A pattern stands for names that are not
        known before
    may_replace : field of an option whose file this option may write over
    minimum, maximum : allowed range of a number, both ends included; None for no limit
    search : values that `xclass tune` tries, or a function of the data that returns them; None for none
    """

    help: str
    flags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    kind: type = str
    default: object = None
    default_text: str | None = None
    choices: tuple[str, ...] | None = None
    metavar: str | None = None
    value_if_bare: object = None
    repeated: bool = False
    stored: bool = False
    adjustable: bool = False
    reads: bool = False
    writes: str = ""
    files: Callable[[Any, Mapping[str, Any]], Iterable[str | re.Pattern[str]]] | None = None
    may_replace: str = ""
    minimum: float | None = None
    maximum: float | None = None
    search: Declared = None

    @property
    def is_argument(self) -> bool:
        """Return whether this is an argument: its values are the words of a command line that belong to no option."""
        return not self.flags[0].startswith("-")


def option(help: str, **attributes: Any) -> Any:
    """Return a dataclass field that declares an option; the default of the field is that of the option.

    The return type is Any, because the result is assigned to a field that has its own type.
    """
    declared = Option(help=help, **attributes)
    default = () if declared.repeated and declared.default is None else declared.default
    if declared.kind is bool and default is None:
        default = False
    return field(default=default, metadata={"option": dataclasses.replace(declared, default=default)})


def threads_option(results: str = "the results do not depend on N") -> Any:
    """Return the field that declares `threads`, which the command and some subcommands have."""
    return option(
        f"compute with at most N threads at the same time; {results}",
        kind=int,
        minimum=1,
        default_text="the processors that the process may use",
        metavar="N",
    )


@functools.cache
def options_of(group: type[OptionGroup]) -> dict[str, Option]:
    """Return the options that a group's `Options` dataclass declares, by field name, with their flags filled in."""
    options = {}
    for declared_field in dataclasses.fields(group):
        if "option" in declared_field.metadata:
            declared: Option = declared_field.metadata["option"]
            flags = declared.flags or ("--" + declared_field.name,)
            options[declared_field.name] = dataclasses.replace(declared, flags=flags)
    return options


def long_flag(declared: Option) -> str:
    """Return the longest flag of an option, which names it in messages."""
    return max(declared.flags, key=len)


def as_words(declared: Option, value: object, flag: str = "") -> list[str]:
    """Return an option and its value as words of a command line, with the shortest flag unless another is given."""
    flag = flag or min(declared.flags, key=len)
    if declared.kind is bool or (declared.value_if_bare is not None and value == declared.value_if_bare):
        return [flag]
    values = value if isinstance(value, tuple) else (value,)
    texts = [format(v, "g") if isinstance(v, float) and float(format(v, "g")) == v else str(v) for v in values]
    return [word for text in texts for word in (flag, text)]


def allowed_values(declared: Option) -> str:
    """Return a description of the values that an option can have: `a whole number from 1 to 31`."""
    if declared.repeated:
        return "a list of texts"
    if declared.kind is bool:
        return "true or false"
    if declared.kind is str:
        return f"one of {', '.join(declared.choices)}" if declared.choices else "text"
    number = "a whole number" if declared.kind is int else "a number"
    low, high = (
        bound if bound is None else str(bound) if isinstance(bound, int) else f"{bound:.15g}"
        for bound in (declared.minimum, declared.maximum)
    )  # fmt: skip
    if low and high:
        return f"{number} from {low} to {high}"
    if low:
        return f"{number} of at least {low}"
    if high:
        return f"{number} of at most {high}"
    return number


def in_range(declared: Option, value: float) -> bool:
    """Return whether a number is in the declared range of an option and in the range of the types that kernels use."""
    largest = LARGEST_FLOAT if declared.kind is float else LARGEST_INT
    if not -largest <= value <= largest:
        return False
    return (declared.minimum is None or value >= declared.minimum) and (
        declared.maximum is None or value <= declared.maximum
    )


def from_stored(declared: Option, value: object) -> object:
    """Return the value of an option from its JSON value in a model file; raise ValueError if it cannot have this
    value.
    """
    if value is None and declared.default is None:
        return None
    if declared.repeated:
        if isinstance(value, list) and all(_is_text(part) for part in value):
            return tuple(value)
    elif declared.kind is bool:
        if isinstance(value, bool):
            return value
    elif declared.kind is str:
        if _is_text(value) and (not declared.choices or value in declared.choices):
            return value
    elif declared.kind is int:
        if isinstance(value, int) and not isinstance(value, bool) and in_range(declared, value):
            return value
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and in_range(declared, value):
        return float(value)
    raise ValueError(f"{short_repr(value)} is not {allowed_values(declared)}")


def _is_text(value: object) -> bool:
    """Return whether a value is text that a command line can contain."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
