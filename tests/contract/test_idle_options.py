"""Each option of each reduction changes what is learned or answered, is refused or warned of, or has a reason."""

import warnings

import pytest
from command import learn
from library import state_of
from streams import of_kind
from variants import BY_NAME, KINDS, K, learner

from xclass.api import configuration
from xclass.errors import UsageError
from xclass.options.declare import Option, options_of

GROUPS = ("parser", "features", "learner")
REASONS = {
    "text_split text_case text_unicode text_ngram text_chars": "the data of this test have no texts",
    "on_bad_line number_rules hash dense label_separator": "they have no bad lines, numbers of VW's kind, and so on",
    "bits hash_seed named_labels learn_names": "each has tests of its own",
    "dont_output_best_constant": "it changes the summary of a run alone",
    "predict_only_model": "the model lacks what learning needs, which is not compared",
    "resume": "what is not restored counts for models of -i",
    "label_range": "the labels of the data are in every range",
    "layout": "the layout that a reduction has is the only one of the two that is not refused",
    "max_doublings max_candidates": "few features and classes never need more room",
    "adaptive normalized invariant sgd": "it is the default of the reduction",
    "exact": "the search finds the most probable class of so few without it",
    "no_path_features": "the path of so small a tree tells nothing beside the features",
    "swap_resistance lom_rules ect_play": "nodes of so few examples are not swapped, and `paper` is the default",
    "group_lasso prune_below prune_every": "weights shrink, and classes are removed, after thousands of examples",
    "tao_iterations tao_tolerance tree_init leaf_passes zero_loss": "the default tree has one leaf for so few classes",
}
KNOWN = {name for names in REASONS for name in names.split()}


def values(option: Option) -> list:
    """Values that are not the default."""
    if option.kind is bool:
        return [not option.default]
    if option.choices:
        return [choice for choice in option.choices if choice != option.default]
    if option.kind not in (int, float):
        return []
    low = -1e3 if option.minimum is None else option.minimum
    high = 1e3 if option.maximum is None else option.maximum
    tried = [option.kind(value) for value in (low, low + 1, 3 * (option.default or 1), 2, high)]
    return [value for value in dict.fromkeys(tried) if low <= value <= high and value != option.default]


def outcome(name: str, lines: str, **given) -> object:
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            with learner(name, **given) as model:
                found = [model.learn_many(lines).prediction.tolist()]
                for _ in range(2):
                    model.end_pass()
                    found.append(model.predict_many(lines).tolist())
                    model.learn_many(lines)
                found += [] if not model.core.config.reduction.probabilities else [*model.predict_many(lines, k=3)]
                state = state_of(model)
        except UsageError as error:
            return str(error)
    return repr((found, sorted(state.arrays.items()), state.learner, [str(one.message) for one in issued]))


@pytest.mark.parametrize("name", BY_NAME)
def test_no_option_is_accepted_and_ignored(name):
    lines = of_kind(KINDS[name], 1, K - 1, 50)
    groups = configuration.option_groups()
    options = [item for group in GROUPS for item in options_of(groups[group]).items()]
    usual = outcome(name, lines)
    idle = [
        field
        for field, option in [*options, *options_of(groups[name]).items()]
        if field not in KNOWN and field != name and (tried := values(option))
        and all(outcome(name, lines, **{field: value}) == usual for value in tried)
    ]  # fmt: skip
    assert not idle


@pytest.mark.parametrize(
    ("words", "warned"),
    [("--ect 3", True), ("--log_multi 3", True), ("--ect 3 --shuffle 10", False), ("--oaa 3", False), ("", True)],
)
def test_a_seed_without_draws_is_warned_of(words, warned):
    labels = "123" if words else ("0.5", "2.5", "1.5")
    lines = "".join(f"{labels[k % 3]} | w{k % 4}\n" for k in range(12))
    result = learn(*words.split(), "--random_seed", 5, "-b", 10, stdin=lines)
    assert ("--random_seed has no effect" in result.err) == warned
