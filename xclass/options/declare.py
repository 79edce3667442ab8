"""Declare each option once, as a field of a class of the module that uses it, such as `OaaOptions`.

    class Options(OptionGroup):
        max_depth: int = option("levels of routers", default_text="ceil(log2 K)", stored=True)

`cli` builds the command line, the help and docs/options.md from these fields. `options.resolve` chooses the value of
each option (command line, then model, then preset, then default) and refuses options without effect.

A module lists how its options relate as `RULES` of that class; `resolve` applies those of all options in use. A rule
that depends on an option which an interface lacks, such as `testonly` in a program, does not apply there.

    no_effect("skips", "it needs --ngram", ngram=None)
    refused("top_k beam", "needs the search that --cpt_report losses leaves out", cpt_report="losses")

A rule applies if all of its conditions hold. A condition names an option, or one of the facts `given`, the fields of
the options that the user typed; `loaded`, whether a model is loaded; `reduction`, the reduction or preset as it was
chosen; and `kind_of_labels`, the `labels` of its record. It gives a value, a set of values, a function of the value,
True for any value, or None if there is none.

An option also declares which of its values `xclass tune` tries first, one option at a time, and a range from which it
draws further ones. If these depend on the data, `search` is a function of `Facts`, which returns None if the option is
not searched.

    learning_rate: float = option("learning rate", ..., search=between(0.05, 5.0, "log", first=(0.25, 1.0)))
"""

from __future__ import annotations

import dataclasses
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias, TypeVar

from ..errors import UsageError
from ..system.printable import short_repr

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:  # it only informs type checkers, and is not part of Python 3.10

    def dataclass_transform(**_):
        return lambda marked: marked


Group = TypeVar("Group", bound="OptionGroup")
LARGEST_FLOAT = 3.4e38  # kernels use single precision
LARGEST_INT = 2**64 - 1
DIGITS = 4  # significant digits of a drawn number
STEP = 0.35  # standard deviation of the change of a number, in logarithms or as a share of the range
Declared: TypeAlias = "SearchRange | Callable[[Facts], SearchRange | None] | None"  # of `Option.search`


class Unit(NamedTuple):
    """Describe the unit of a number, and the letters after a number that stand for multiples of the unit."""

    name: str
    factors: Mapping[str, int]  # letter in lower case -> number of units
    letters: str  # description of the letters, with an example

    def number(self, text: str) -> float | None:
        """Return the number of units that a text such as `1.5G` or `500MB` gives; None if it is none."""
        match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]*)?|\.[0-9]+)([a-z]*)", text, re.IGNORECASE)
        factor = self.factors.get(match[2].lower()) if match else None
        return None if match is None or factor is None else float(match[1]) * factor


BYTES = Unit(
    "bytes",
    {f"{letter}{b}": 1000**power for power, letter in enumerate(("", "k", "m", "g", "t")) for b in ("", "b")},
    "K, M, G and T stand for 10^3, 10^6, 10^9 and 10^12 bytes, such as 1G",
)
SECONDS = Unit(
    "seconds",
    {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400},
    "m, h and d stand for minutes, hours and days, such as 5m",
)


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
    needed: str = ""  # message if a subcommand lacks the option; empty if it may
    may_replace: str = ""  # field of an option whose file this option may write over
    # allowed range of a number, both ends included; None for no limit
    minimum: float | None = None
    maximum: float | None = None
    unit: Unit | None = None  # of a number, for which `5m` or `500M` may then stand; None for no unit
    # texts that an option of numbers takes, too: a regular expression, and how messages describe them
    other: tuple[str, str] | None = None
    # values that `xclass tune` tries, or a function of the data that returns them; None for none
    search: Declared = None

    @property
    def is_argument(self) -> bool:
        """Return whether this is an argument: its values are the words of a command line that belong to no option."""
        return not self.flags[0].startswith("-")


@dataclass_transform(frozen_default=True)
class OptionGroup:
    """Hold the values of options: the base of frozen dataclasses whose fields are declared by `option`.

    They share their methods: `dataclass` would compile some for each class, which takes a sixteenth of a start.
    """

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    _declared: ClassVar[dict[str, Option]]
    _defaults: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        """Complete the options by the names and types of their fields, and make these fields of a dataclass."""
        cls._declared = dict(getattr(cls, "_declared", {}))
        for name, annotation in cls.__annotations__.items():
            declared = getattr(cls, name, None)
            if isinstance(declared, Option):
                complete = _completed(declared, name, getattr(annotation, "__name__", str(annotation)))
                cls._declared[name] = complete
                setattr(cls, name, complete.default)
        dataclass(init=False, repr=False, eq=False)(cls)
        cls._defaults = {field.name: field.default for field in dataclasses.fields(cls)}
        for name, value in {**vars(cls), **cls._defaults}.items():
            if isinstance(value, Option):
                raise TypeError(f"option {name} has no type; write `{name}: int = option(...)`, or another type")
            if value is dataclasses.MISSING:
                raise TypeError(f"field {name} of {cls.__qualname__} has no default value")

    def __init__(self, *values: Any, **named: Any) -> None:
        names = [*self._defaults]
        wrong = named.keys() - names[len(values) :]
        if wrong or len(values) > len(names):
            raise TypeError(f"{type(self).__qualname__}: {len(values)} values and {sorted(wrong)} for {names}")
        vars(self).update(self._defaults, **dict(zip(names, values, strict=False)), **named)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Check the values."""

    def _values(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._defaults}

    def __repr__(self) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={x!r}' for name, x in self._values().items())})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash((*self._values().values(),))

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


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
        help=f"{declared.help}; {declared.unit.letters}" if declared.unit else declared.help,
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


def all_options(groups: Mapping[str, type[OptionGroup]]) -> dict[str, Option]:
    """Return the options of several groups by field name; of one that some share, the first declaration."""
    found: dict[str, Option] = {}
    for group in groups.values():
        found |= {**options_of(group), **found}
    return found


def taken(given: dict[str, Any], group: type[Group]) -> Group:
    """Return the values of a group, after removing them from `given`, field -> value."""
    return group(**{name: given.pop(name) for name in options_of(group) if name in given})


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
    unit = f", where {declared.unit.letters}" if declared.unit else ""
    return _allowed_numbers(declared) + unit + (f", or {declared.other[1]}" if declared.other else "")


def _allowed_numbers(declared: Option) -> str:
    unit = declared.unit
    number = f"a number of {unit.name}" if unit else "a whole number" if declared.kind is int else "a number"
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
    if declared.unit is not None and isinstance(value, str):
        value = in_units(declared, value)
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


def in_units(declared: Option, text: str) -> Any:
    """Return the number of an option that has a unit from a text such as `500M`; None if the text is none."""
    number = None if declared.unit is None else declared.unit.number(text)
    return None if number is None else declared.kind(number)


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


class OptionRule(NamedTuple):
    """Define when options are refused."""

    # fields of options that are refused if the user typed them; None if the rule is about values from anywhere
    typed: tuple[str, ...] | None
    # message in which `{flag}` stands for the option that was typed and `{field}` for the value of an option
    message: str
    conditions: Mapping[str, Any]  # conditions that must all hold, by field
    # whether VW's users give the option without need: it is accepted with a warning, without one by --vw_exact
    warns: bool = False

    def applies(self, values: Mapping[str, Any]) -> bool:
        """Return whether all conditions hold for the values of options and the facts."""
        return all(name in values and _holds(wanted, values[name]) for name, wanted in self.conditions.items())


def _holds(wanted: Any, value: Any) -> bool:
    """Return whether the value of an option meets a condition."""
    if wanted is None or wanted is True:
        return bool(value) is bool(wanted)
    if isinstance(wanted, set):
        return value in wanted
    return bool(wanted(value) if callable(wanted) else value == wanted)


def refused(typed: str | Iterable[str], message: str, **conditions: Any) -> OptionRule:
    """Return the rule that refuses options that are typed; its message follows the option."""
    return OptionRule(_fields(typed), "{flag} " + message, conditions)


def no_effect(typed: str | Iterable[str], reason: str, **conditions: Any) -> OptionRule:
    """Return the rule that refuses options that have no effect if they are typed."""
    return refused(typed, f"has no effect: {reason}", **conditions)


def warned(typed: str, reason: str, **conditions: Any) -> OptionRule:
    """Return the rule that warns of an option that has no effect, but that VW's users give without need."""
    return no_effect(typed, reason, **conditions)._replace(warns=True)


def conflict(message: str, **conditions: Any) -> OptionRule:
    """Return the rule that refuses values of options, whether they were typed or come from a preset or a model."""
    return OptionRule(None, message, conditions)


def _fields(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the fields in a text, separated by blanks, or in a collection."""
    return tuple(names.split() if isinstance(names, str) else names)


def check_rules(
    rules: Iterable[OptionRule], values: Mapping[str, Any], options: Mapping[str, Option]
) -> tuple[str, ...]:
    """Return the warnings about options that were typed; raise UsageError if a rule refuses an option.

    `values` has the values of the options by field, and the facts.
    """
    warnings = []
    for rule in rules:
        typed = [name for name in rule.typed or () if name in values["given"]]
        if (typed or rule.typed is None) and rule.applies(values):
            flag = long_flag(options[typed[0]]) if typed else ""
            message = rule.message.format_map({**values, "flag": flag})
            if not rule.warns:
                raise UsageError(message)
            warnings.append(message)
    return () if values.get("vw_exact") else tuple(warnings)


class Facts(NamedTuple):
    """Hold what a search may depend on."""

    # name of the reduction or preset whose options are searched, "" while the reduction itself is chosen
    reduction: str
    classes: int  # highest class, or the number of names
    examples: int  # number of examples
    features: float  # mean number of features of an example, without the constant
    plain: bool  # whether the values of all features are 1, as in text
    groups: str  # first letters of the namespaces, in rising order
    metric: str = "error"  # value of --metric


@dataclass(frozen=True)
class SearchRange:
    """Hold the values of an option that are worth trying."""

    # "one" for listed values, "flag" for an option without a value, or "log", "linear" or "int" for a range whose
    # values are drawn with even ratios, evenly, or evenly as whole numbers
    kind: str
    values: tuple[Any, ...]  # the listed values, or the lowest and the highest value of a range
    first: tuple[Any, ...] = ()  # values that are tried first, the most promising one first
    # how promising the option is; settings of options with larger weights are tried first and more often
    weight: float = 1.0

    def draw(self, rng: random.Random) -> Any:
        """Return a random value; None for a flag that is not given."""
        if self.kind == "flag":
            return True if rng.random() < 0.5 else None
        if self.kind == "one":
            return rng.choice(self.values)
        low, high = self.values
        if self.kind == "int":
            return rng.randint(low, high)
        if self.kind == "log":
            return self._rounded(math.exp(rng.uniform(math.log(low), math.log(high))))
        return self._rounded(rng.uniform(low, high))

    def near(self, value: Any, rng: random.Random) -> Any:
        """Return a random value that differs from `value` and, for a range, is likely to be close to it."""
        if self.kind == "flag":
            return None if value else True
        if self.kind == "one":
            return rng.choice([other for other in self.values if other != value] or list(self.values))
        if value is None:
            return self.draw(rng)
        low, high = self.values
        if self.kind == "int":
            step = max(1, round(abs(rng.gauss(0, STEP * (high - low) / 2))))
            return min(max(int(value) + rng.choice((-step, step)), low), high)
        if self.kind == "log":
            return self._rounded(value * math.exp(rng.gauss(0, 2 * STEP)))
        return self._rounded(value + rng.gauss(0, STEP * (high - low) / 2))

    def _rounded(self, value: float) -> float:
        """Return a number with few digits within the range."""
        low, high = self.values
        return float(f"{min(max(value, low), high):.{DIGITS}g}")


def one_of(*values: Any, first: tuple[Any, ...] | None = None, weight: float = 1.0) -> SearchRange:
    """Return the search of an option with these values; all are tried first unless `first` lists others."""
    return SearchRange("one", values, values if first is None else first, weight)


def between(low: Any, high: Any, kind: str, first: tuple[Any, ...] = (), weight: float = 1.0) -> SearchRange:
    """Return the search of a number between `low` and `high`; `kind` is "log", "linear" or "int"."""
    return SearchRange(kind, (low, high), first, weight)


def flag(weight: float = 1.0) -> SearchRange:
    """Return the search of an option that is given or not."""
    return SearchRange("flag", (), (True,), weight)


def search_for(declared: Declared, facts: Facts) -> SearchRange | None:
    """Return the search of an option for the data that `facts` describes, None if it is not searched."""
    return declared(facts) if callable(declared) else declared
