"""Define how options relate: which have no effect beside others, need others or exclude others.

A module lists the rules about its options as `RULES` of its `Options`; `resolve` applies those of all options in use.
A rule that depends on an option which an interface lacks, such as `testonly` in a program, does not apply there.

    no_effect("skips", "it needs --ngram", ngram=None)
    refused("top_k beam", "needs the search that --cpt_report losses leaves out", cpt_report="losses")

A rule applies if all of its conditions hold. A condition names an option, or one of the facts `given`, the fields of
the options that the user typed; `loaded`, whether a model is loaded; `reduction`, the reduction or preset as it was
chosen; and `kind_of_labels`, the `labels` of its record. It gives a value, a set of values, a function of the value,
True for any value, or None if there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import UsageError
from .declare import Option, long_flag


class Rule(NamedTuple):
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


def refused(typed: str | Iterable[str], message: str, **conditions: Any) -> Rule:
    """Return the rule that refuses options that are typed; its message follows the option."""
    return Rule(_fields(typed), "{flag} " + message, conditions)


def no_effect(typed: str | Iterable[str], reason: str, **conditions: Any) -> Rule:
    """Return the rule that refuses options that have no effect if they are typed."""
    return refused(typed, f"has no effect: {reason}", **conditions)


def warned(typed: str, reason: str, **conditions: Any) -> Rule:
    """Return the rule that warns of an option that has no effect, but that VW's users give without need."""
    return no_effect(typed, reason, **conditions)._replace(warns=True)


def conflict(message: str, **conditions: Any) -> Rule:
    """Return the rule that refuses values of options, whether they were typed or come from a preset or a model."""
    return Rule(None, message, conditions)


def _fields(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the fields in a text, separated by blanks, or in a collection."""
    return tuple(names.split() if isinstance(names, str) else names)


def check(rules: Iterable[Rule], values: Mapping[str, Any], options: Mapping[str, Option]) -> tuple[str, ...]:
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
