"""Declare each option once, as a field of the dataclass `Options` of the module that uses it.

    @dataclass(frozen=True)
    class Options(OptionGroup):
        max_depth: int = option("levels of routers", default_text="ceil(log2 K)", stored=True)

`cli` builds the command line, the help and docs/options.md from these fields. `options.resolve` chooses the value of
each option (command line, then model, then preset, then default) and refuses options without effect.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..system.printable import short_repr
from .search import Declared

LARGEST_FLOAT = 3.4e38  # kernels use single precision
LARGEST_INT = 2**64 - 1


@dataclass(frozen=True)
class Option:
    """Describe one option for the command line, the library and model files."""

    help: str  # description for the help, in lower case and without a full stop
    # names on the command line; empty for `--` and the name of the field; the name of an argument has no dash
    flags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()  # other names on the command line that say more plainly what the option does
    kind: type = str  # int, float, str or bool (a bool takes no value), the type of the field
    default: object = None  # value if the option is not given; None if it is computed or if there is none
    default_text: str | None = None  # description of a computed default in the help
    choices: tuple[str, ...] | None = None  # allowed words, or None for any text
    metavar: str = ""  # name of the value in the help; empty for the choices, FILE, N, X or TEXT
    value_if_bare: object = None  # value to use if the option is given without one; None if a value is required
    repeated: bool = False  # whether the option may be given several times: the type of the field is a tuple
    # whether the option is kept in the model file, because it changes predictions or how learning continues
    stored: bool = False
    adjustable: bool = False  # whether a stored option may get another value when learning continues from a model
    measures: bool = False  # whether a stored option changes figures alone, so that it may differ from the model's
    in_older_models: object = None  # value of a stored option in models that were written before there was the option
    unset_is_left_out: bool = False  # whether a model file lacks a stored option that has no value
    reads: bool = False  # whether the option names a file that is read
    writes: str = ""  # for an option that names a file that is written, what the file holds, such as "the summary"
    # function of the value and of all values that were typed, which returns the files; None if the value names them. It
    # is also called for an option that was not typed, with None. A pattern stands for names that are not known before
    files: Callable[[Any, Mapping[str, Any]], Iterable[str | re.Pattern[str]]] | None = None
    may_replace: str = ""  # field of an option whose file this option may write over
    # allowed range of a number, both ends included; None for no limit
    minimum: float | None = None
    maximum: float | None = None
    # texts that an option of numbers takes, too: a regular expression, and how messages describe them
    other: tuple[str, str] | None = None
    # values that `xclass tune` tries, or a function of the data that returns them; None for none
    search: Declared = None

    @property
    def is_argument(self) -> bool:
        """Return whether this is an argument: its values are the words of a command line that belong to no option."""
        return not self.flags[0].startswith("-")


class OptionGroup:
    """Hold the values of options: the base of dataclasses whose fields are declared by `option`."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    _declared: ClassVar[dict[str, Option]]

    def __init_subclass__(cls) -> None:
        """Complete the options by the names and types of their fields, before these become fields of a dataclass."""
        cls._declared = dict(getattr(cls, "_declared", {}))
        for name, annotation in cls.__annotations__.items():
            declared = getattr(cls, name, None)
            if isinstance(declared, Option):
                complete = _completed(declared, name, getattr(annotation, "__name__", str(annotation)))
                cls._declared[name] = complete
                setattr(cls, name, complete.default)


def _completed(declared: Option, name: str, annotation: str) -> Option:
    repeated = annotation.startswith("tuple")
    known = {"int": int, "float": float, "bool": bool, "str": str}
    kind = str if repeated else known.get(annotation.partition(" ")[0])
    if kind is None:
        raise TypeError(f"option {name} has the type {annotation}; allowed are {', '.join(known)} and tuple")
    default: object = () if repeated else False if kind is bool else None
    metavar = {int: "N", float: "X"}.get(kind) or ("FILE" if declared.reads or declared.writes else "TEXT")
    return dataclasses.replace(
        declared,
        kind=kind,
        repeated=repeated,
        flags=declared.flags or (f"--{name}",),
        default=default if declared.default is None else declared.default,
        metavar=declared.metavar or "|".join(declared.choices or ()) or metavar,
    )


def option(help: str, **attributes: Any) -> Any:
    """Return the declaration of an option as Any, because it is assigned to a field that has a type of its own."""
    return Option(help, **attributes)


def threads_option(results: str = "the results do not depend on N") -> Any:
    """Return the field that declares `threads`, which the command and some subcommands have."""
    return option(
        f"compute with at most N threads at the same time; {results}",
        minimum=1,
        default_text="the processors that the process may use",
    )


def options_of(group: type[OptionGroup]) -> dict[str, Option]:
    """Return the options that a group declares, by field name."""
    return group._declared


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
    return _allowed_numbers(declared) + (f", or {declared.other[1]}" if declared.other else "")


def _allowed_numbers(declared: Option) -> str:
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
    if is_other(declared, value):
        return value
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


def is_other(declared: Option, value: object) -> bool:
    """Return whether a value is one of the texts that an option of numbers takes, too."""
    return declared.other is not None and isinstance(value, str) and bool(re.fullmatch(declared.other[0], value))


def _is_text(value: object) -> bool:
    """Return whether a value is text that a command line can contain."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True
