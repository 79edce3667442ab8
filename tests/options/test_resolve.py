"""Which value of an option holds, and which combinations are refused."""

import dataclasses
from typing import ClassVar

import pytest

from xclass.api.configuration import with_defaults
from xclass.cli import command as cli
from xclass.errors import ModelError, UsageError
from xclass.options import declare
from xclass.options import resolve as config
from xclass.options.declare import options_of
from xclass.reductions import presets
from xclass.run.options import use_of

GROUPS, REDUCTIONS = cli.option_groups()


def resolve(given=None, stored=None):
    """Resolve options of a command line, and those of a model."""
    if stored is not None:
        stored = {"bits": 20, **stored}  # every model has it
    return config.resolve(
        given or {}, stored, GROUPS, REDUCTIONS, model="model.bin", presets=presets.PRESETS,
        resolve_defaults=lambda config: with_defaults(config.with_values({}, use_of(config))),
    )  # fmt: skip


def refusal(given, stored=None, error=UsageError) -> str:
    with pytest.raises(error) as caught:
        resolve(given, stored)
    return str(caught.value)


def test_presets_name_only_options_that_exist():
    names = {name for group in GROUPS.values() for name in options_of(group)}
    for preset, values in presets.PRESETS.items():
        values = values(7) if callable(values) else values
        assert {preset, *values} <= names


def test_only_reductions_share_an_option_and_it_is_of_one_kind():
    owners = {}
    for group, declared in GROUPS.items():
        for name, option in options_of(declared).items():
            owners.setdefault(name, {})[group] = (
                option.flags,
                option.kind,
                option.choices,
                option.minimum,
                option.maximum,
            )
    for shared in (declarations for declarations in owners.values() if len(declarations) > 1):
        assert set(shared) <= {record.name for record in REDUCTIONS}
        assert len(set(shared.values())) == 1


def test_adjustable_options_may_differ_from_the_model():
    stored = {"recall_tree": 500, "learning_rate": 0.5}
    resolved = resolve({"learning_rate": 0.25}, stored)
    assert resolved.learner.learning_rate == 0.25
    assert resolved.stored()["learning_rate"] == 0.25
    assert resolved.adjusted == (
        "continuing with --learning_rate 0.25; model.bin was trained with --learning_rate 0.5",
    )
    assert resolve({"learning_rate": 0.5}, stored).adjusted == ()
    assert "disagrees with model.bin" in refusal({"learning_rate": 0.25, "testonly": True}, stored)


def test_options_of_vw_without_effect_are_warned_of():
    def warned(given: dict) -> list[str]:
        resolved = config.resolve(
            given, None, GROUPS, REDUCTIONS, presets=presets.PRESETS, resolve_defaults=lambda c: c
        )
        return [line.split(" has no effect: ")[0] for line in resolved.notes]

    given = {"early_terminate": 1, "holdout_period": 5}
    assert warned(given) == ["--early_terminate", "--holdout_period"]
    assert warned({**given, "passes": 2}) == warned({**given, "vw_exact": True}) == []
    assert warned({**given, "passes": 2, "holdout_after": 9}) == ["--holdout_period"]
    assert warned({"ignore": ("a",), "keep": ("b",)}) == ["--ignore"]
    assert warned({"kill_cache": True}) == ["--kill_cache"] and not warned({"kill_cache": True, "cache": True})
    assert warned({"keep_last": True, "data": ("a",)}) == ["--keep_last"]
    assert not warned({"keep_last": True, "data": ("a",), "passes": 2})
    tree = {"recall_tree": 9}
    assert warned({**tree, "link": "glf1"}) == ["--link"]
    assert not warned({**tree, "link": "glf1", "randomized_routing": True})
    for chosen in (tree, {"ect": 9}, {"oaa": 9, "loss_function": "logistic"}, {"loss_function": "logistic"}):
        assert warned({**chosen, "label_range": "seen"}) == ["--label_range"]
        assert not warned({**chosen, "label_range": "seen", "loss_function": "squared"})
        assert not warned({**chosen, "label_range": "seen", "vw_exact": True})
    assert not warned({"oaa": 9, "label_range": "seen"})
    for given in ({"most_errors": 5}, {"means": 9, "quadratic": ("ab",)}):
        with pytest.raises(UsageError, match="has no effect"):
            warned(given)
    assert warned({"means": 9, "bits": 12}) == ["--bit_precision"] and not warned({"multiclass": 9, "bits": 12})


CURE = "; train the model again, or take another copy of the file"


def test_model_with_an_unknown_option_is_refused():
    message = refusal({}, {"warp": 9}, ModelError)
    said = "model.bin was written with an option --warp, which this xclass does not know; update xclass, or"
    assert message == f"{said} {CURE.removeprefix('; ')}"


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"data": "x"}, "model.bin: it holds a value of --data, which belongs to a run and not to a model"),
        ({"quiet": True}, "model.bin: it holds a value of --quiet, which belongs to a run and not to a model"),
        ({"oaa": 3, "max_depth": 3}, "model.bin: it holds a value of --max_depth, which belongs to another reduction"),
        (
            {"oaa": 3, "recall_tree": 3},
            "model.bin: it holds both --oaa and --recall_tree, and a model has one reduction",
        ),
        ({"bits": "x"}, "model.bin: its --bit_precision is damaged: 'x' is not a whole number from 1 to 31"),
        ({"bits": True}, "model.bin: its --bit_precision is damaged: True is not a whole number from 1 to 31"),
        ({"bits": 1.0}, "model.bin: its --bit_precision is damaged: 1.0 is not a whole number from 1 to 31"),
        ({"bits": -1}, "model.bin: its --bit_precision is damaged: -1 is not a whole number from 1 to 31"),
        ({"bits": None}, "model.bin: it has no --bit_precision"),
        ({"oaa": 0}, "model.bin: its --oaa is damaged: 0 is not a whole number of at least 1"),
        ({"oaa": 10**300}, f"model.bin: its --oaa is damaged: 1{'0' * 59}... is not a whole number of at least 1"),
        ({"power_t": 1e300}, "model.bin: its --power_t is damaged: 1e+300 is not a number from -1e+30 to 1e+30"),
        ({"power_t": "0"}, "model.bin: its --power_t is damaged: '0' is not a number from -1e+30 to 1e+30"),
        ({"sgd": 1}, "model.bin: its --sgd is damaged: 1 is not true or false"),
        ({"sgd": None}, "model.bin: its --sgd is damaged: None is not true or false"),
        ({"quadratic": "ab"}, "model.bin: its --quadratic is damaged: 'ab' is not a list of texts"),
        ({"quadratic": ["a\0"]}, "model.bin: its --quadratic is damaged: ['a\\x00'] is not a list of texts"),
        ({"quadratic": ["\ud800"]}, "model.bin: its --quadratic is damaged: ['\\ud800'] is not a list of texts"),
        (
            {"loss_function": "x"},
            "model.bin: its --loss_function is damaged: 'x' is not one of squared, logistic, hinge, quantile, classic",
        ),
        (
            {"cpt": 5, "momentum": 0.9},
            "model.bin: its options contradict each other: --momentum 0.9 needs the plain steps of --sgd; give --sgd "
            "or --momentum 0",
        ),
    ],
)
def test_options_of_a_model_are_checked_by_their_declarations(stored, message):
    assert refusal({}, stored, ModelError) == message + CURE


def test_whole_numbers_of_a_model_are_accepted_where_numbers_are_wanted():
    learner = resolve({}, {"power_t": 1, "bits": 9}).learner
    assert (learner.power_t, type(learner.power_t)) == (1.0, float)


def test_unknown_group_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no group is called 'cellar'"):
        _ = resolve().cellar


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            {"__annotations__": {"depth": "Optional[int]"}, "depth": declare.option("")},
            r"option depth has the type Optional\[int\]",
        ),
        ({"depth": declare.option("")}, "option depth has no type; write `depth: int = option"),
        ({"__annotations__": {"depth": "int"}}, "field depth of Options has no default value"),
        (
            {"__annotations__": {"depth": "list"}, "depth": dataclasses.field(default_factory=list)},
            "field depth of Options has no default value",
        ),
    ],
)
def test_fields_that_declare_no_option_are_refused(attributes, message):
    with pytest.raises(TypeError, match=message):
        type("Options", (declare.OptionGroup,), attributes)


class Depths(declare.OptionGroup):
    depth: int = declare.option("", default=3)
    names: tuple[str, ...] = declare.option("")
    longest: ClassVar[int] = 9  # is no option


def test_values_of_options_are_compared_by_content_and_cannot_be_changed():
    values = Depths(names=("a",))
    assert values == Depths(3, ("a",)) != Depths(names=("b",))
    assert hash(values) == hash(Depths(3, ("a",)))
    assert dataclasses.asdict(dataclasses.replace(values, depth=4)) == {"depth": 4, "names": ("a",)}
    assert repr(values).endswith("Depths(depth=3, names=('a',))")
    with pytest.raises(dataclasses.FrozenInstanceError, match="depth"):
        values.depth = 4
    with pytest.raises(dataclasses.FrozenInstanceError, match="depth"):
        del values.depth


@pytest.mark.parametrize(("values", "named"), [((), {"width": 1}), ((1, (), 2), {}), ((1,), {"depth": 1})])
def test_values_of_options_that_are_not_declared_are_refused(values, named):
    with pytest.raises(TypeError):
        Depths(*values, **named)
