"""The advice of each declared rule about options is followed as it is shown, and then the options fit together."""

import itertools
import re

import pytest

from xclass.api.configuration import with_defaults
from xclass.cli import arguments
from xclass.cli import command as cli
from xclass.errors import UsageError
from xclass.options import resolve as options_resolve
from xclass.options.declare import long_flag, options_of
from xclass.reductions import presets
from xclass.run.options import use_of

GROUPS, REDUCTIONS = cli.option_groups()
DECLARED = {name: option for group in GROUPS.values() for name, option in options_of(group).items()}
RECORDS = [record.name for record in REDUCTIONS]
CHOICES = {*RECORDS, *presets.PRESETS}  # options that choose a reduction
NAMES = {flag: name for name, option in DECLARED.items() for flag in option.flags}
CLASSES = "4"
VALUES = {  # given for an option for which neither its first choice nor its lowest value will do
    "quadratic": "ab", "cubic": "abc", "interactions": "ab", "ngram": "2", "skips": "1", "text_chars": "3-4",
    "named_labels": "a,b,c,d", "passes": "2", "momentum": ".5", "trees": "2", "cpt_arity": "4", "l1": ".1", "l2": ".1",
    "cpt_tree": "random", "plt_tree": "random", "error": "1", "progress": "5", "quantile_tau": ".5", "beam": "0",
    "decay_learning_rate": ".5", "loss_function": "logistic", "text_ngram": "2", "workers": "2",
}  # fmt: skip
MORE_VALUES = {"cpt_arity": ("3",), "depth": ("1",), "quadratic": ("::",), "cubic": (":::",), "interactions": ("::",),
               "cpt_tree": ("tree",), "plt_tree": ("tree",)}  # fmt: skip
# what some rules need besides their conditions, so that no other rule refuses the options first
BESIDES = [{}, {"initial_regressor": "m", "final_regressor": "m"}, {"final_regressor": "m"},
           {"initial_regressor": "m"}, {"rerank": "2"}, {"depth": "0"}, {"passes": "2"},
           {"initial_regressor": "m", "passes": "2"}, {"workers": "2"},
           {"workers": "2", "final_regressor": "m", "passes": "2"}]  # fmt: skip


def words_of(name, value=None):
    """Return the words that give an option, with a value if it takes one."""
    option = DECLARED[name]
    if option.kind is bool and not option.repeated:
        return [long_flag(option)]
    if value is None and name in CHOICES:
        value = CLASSES
    if value is None:
        value = VALUES.get(name)
    if value is None and option.choices:
        value = option.choices[0]
    if value is None:
        value = "x" if option.kind is str or option.repeated else str(max(option.minimum or 0, 1))
    return [long_flag(option), str(value)]


def said(chosen):
    """Return the messages, an error or warnings, about options, field -> words."""
    given = arguments.read(GROUPS, REDUCTIONS, [word for words in chosen.values() for word in words])
    stored = None
    if "initial_regressor" in given:
        stored = {"bits": 18, **{name: given.pop(name) for name in RECORDS if name in given}}
    try:
        config = options_resolve.resolve(
            given, stored, GROUPS, REDUCTIONS, model="m", presets=presets.PRESETS,
            resolve_defaults=lambda config: with_defaults(config.with_values({}, use_of(config))),
        )  # fmt: skip
    except UsageError as error:
        return [str(error)]
    return list(config.notes)


def giving(name, wanted):
    """Return words by which an option may meet a condition of a rule, None where it is left out."""
    option = DECLARED[name]
    if wanted is None:
        return [None]
    if wanted is True:
        return [words_of(name)]
    if callable(wanted):
        return [
            None,
            words_of(name),
            *(words_of(name, v) for v in (*(option.choices or ()), *MORE_VALUES.get(name, ()))),
        ]
    values = sorted(wanted, key=str) if isinstance(wanted, set) else [wanted]
    return [words for value in values for words in (words_of(name, value), None)]


def attempts(group, rule, typed):
    """Yield options that may break a rule."""
    wanted = rule.conditions.get("reduction")
    if group in RECORDS:
        reductions = [group]
    elif isinstance(wanted, (str, set)):
        reductions = sorted({wanted} if isinstance(wanted, str) else wanted)
    else:
        reductions = ["oaa", *RECORDS]
    fields = [name for name in rule.conditions if name in DECLARED and name != typed]
    values = [giving(name, rule.conditions[name]) for name in fields]
    if typed:
        fields = [*fields, typed]
        values.append([w for w in giving(typed, rule.conditions.get(typed, True)) if w])
    for besides, reduction, words in itertools.product(BESIDES, reductions, itertools.product(*values)):
        chosen = {} if reduction == "scalar" else {reduction: words_of(reduction)}
        chosen |= {name: words_of(name, value) for name, value in besides.items()}
        yield {**chosen, **{name: given for name, given in zip(fields, words, strict=True) if given}}


def broken(group, rule, typed):
    """Return options that break a rule, and its message; None if there are none."""
    shown = re.sub(r"\\\{\w+\\\}", ".*", re.escape(rule.message))
    for chosen in itertools.islice(attempts(group, rule, typed), 1000):
        for message in said(chosen):
            if re.fullmatch(shown, message) and (typed is None or message.startswith(long_flag(DECLARED[typed]))):
                return chosen, message
    return None


def advised(message, chosen, typed):
    """Yield each advice of a message, and the options where it is followed."""

    def without(*names):
        return {name: words for name, words in chosen.items() if name not in names}

    named = [NAMES[flag] for flag in re.findall(r"--\w+", message) if NAMES.get(flag) in chosen]
    if re.search(r"(drop|leave) one of them", message):
        yield from ((f"drop {name}", without(name)) for name in dict.fromkeys(named))
    if re.search(r"leave it out|has no effect", message):
        yield "leave it out", without(typed or named[0])
    for flag in re.findall(r"leave (?:out )?(--\w+)", message):
        yield f"leave {flag} out", without(NAMES[flag])
    for part in re.findall(r"(?:give|needs|add|choose|such as|names with) (--?[a-z][^;:]*)", message):
        given = r"(?<!of )(--?[a-z]\w*)(?: (?!for |in |to )([a-z]\w*|\d+))?(?: N)?(?: in place of (--\w+))?"
        for flag, value, replaced in re.findall(given, part):
            name = NAMES[flag]
            kept = without(NAMES.get(replaced), *(CHOICES if name in CHOICES else ()))
            if "to another run" not in part:
                yield f"give {flag} {value}", {**kept, name: words_of(name, value if value not in {"", "or"} else None)}
    for values in re.findall(
        r"give (?:at least )?((?:[a-z]+|\d+)(?:(?:,| or) (?:[a-z]+|\d+))*)(?=$|, \.\.\.| with)", message
    ):
        for value in re.split(", | or ", values):
            yield f"give {value}", {**chosen, named[0]: words_of(named[0], value)}


RULES = [(group, rule) for group, options in GROUPS.items() for rule in getattr(options, "RULES", ())]


@pytest.mark.parametrize(("group", "rule"), RULES, ids=lambda given: getattr(given, "message", given)[:60])
def test_advice_of_a_rule_is_followed(group, rule):
    found = [(typed, broken(group, rule, typed)) for typed in rule.typed or (None,)]
    assert any(outcome for _, outcome in found), "no options break this rule"
    for typed, outcome in found:
        chosen, message = outcome or ({}, "")
        for advice, options in advised(message, chosen, typed):
            assert said(options) == [], (chosen, message, advice)
