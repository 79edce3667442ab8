"""Merging of models: what holds for every reduction, classes that only some models have, options, and the command."""

import contextlib
import gzip
import random
import re
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
import streams
from command import learn, xclass
from library import state_of
from running import ROOT

import xclass as library
from xclass import Learner, ModelError, UsageError
from xclass.api import model_contents
from xclass.binary import weight_table

DATA = ROOT.parent / "shared" / "data"
LEARNERS = {
    "scalar": ("scalar", None, {"bits": 12}),
    "scalar --sgd": ("scalar", None, {"bits": 12, "sgd": True}),
    "scalar --l1": ("scalar", None, {"bits": 12, "l1": 1e-4}),
    "oaa --layout vw": ("oaa", 6, {"bits": 12, "layout": "vw"}),
    "oaa": ("oaa", 6, {"bits": 12}),
    "multilabel_oaa": ("multilabel_oaa", 7, {"bits": 12}),
    "multilabel": ("multilabel", None, {"bits": 12}),
    "cpt --sgd": ("cpt", 6, {"bits": 12, "sgd": True}),
    "cpt": ("cpt", 6, {"bits": 12}),
    "cpt --cpt_arity 4": ("cpt", 6, {"bits": 12, "cpt_arity": 4}),
    "cpt --rerank without an index": ("cpt", 0, {"bits": 12, "rerank": True, "index_slots": 0}),
    "multiclass": ("multiclass", None, {"bits": 12, "index_bits": 8}),
    "cpt --rerank": ("cpt", 0, {"bits": 12, "rerank": True, "index_bits": 8}),
    "multiclass that grows": ("multiclass", None, {"bits": 8, "index_bits": 8, "max_doublings": 3}),
}
FEATURES = 60


def lines(seed: int, n: int = 120, labels: str = "123456") -> list[str]:
    """Return examples whose features tell their class."""
    rng = np.random.default_rng(seed)
    return [_line(rng, labels[i]) for i in rng.integers(len(labels), size=n)]


def _line(rng: np.random.Generator, label: str) -> str:
    first = 7 * ord(label)
    words = [f"f{(first + 3 * j + rng.integers(4)) % FEATURES}" for j in range(5)]
    return f"{label} | " + " ".join(words)


def new(name: str, seed: int, **options) -> Learner:
    """Return a learner of LEARNERS that has learned some examples."""
    reduction, k, given = LEARNERS[name]
    model = Learner(reduction, k, **{**given, **options})
    model.learn_many(lines(seed))
    return model


def continued(base: Learner, text: list[str], path: Path) -> Learner:
    """Return a learner that has continued from another one."""
    base.save(path)
    model = library.load(path)
    model.learn_many(text)
    return model


def errors(model: Learner, text: list[str]) -> float:
    """Return the share of examples that are predicted wrong."""
    found = model.predict_many([line.split(" ", 1)[1] for line in text]).tolist()
    predicted = [str(label).strip("[]") for label in found]
    return float(np.mean([p != line.split(" ", 1)[0] for p, line in zip(predicted, text, strict=True)]))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    ["scalar --l1", "oaa --layout vw", "cpt", "cpt --cpt_arity 4", "cpt --rerank", "multiclass", "multilabel"],
)
def test_a_single_model_stays_as_it_is(name, tmp_path):
    model = new(name, 1)
    expected = state_of(model)
    assert state_of(library.merge([model])) == expected
    assert state_of(library.merge([model], base=model)) == expected
    assert state_of(library.merge([model, model], base=model)) == expected
    later = continued(model, lines(2), tmp_path / "base.bin")
    expected = state_of(later)
    assert state_of(library.merge([later], base=model)) == expected  # an average over one model
    assert state_of(library.merge([model, later], base=model)) == expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LEARNERS)
def test_the_order_of_models_does_not_matter(name, tmp_path):
    base = new(name, 1)
    models = [continued(base, lines(seed), tmp_path / "base.bin") for seed in (2, 3, 4)]
    merged = library.merge(models, base=base)
    for order in ([1, 2, 0], [2, 1, 0]):  # each model has every place once
        assert state_of(library.merge([models[i] for i in order], base=base)) == state_of(merged)
    assert merged.examples == 480
    assert merged.core.clock == 480.0
    assert state_of(models[0]) == state_of(continued(base, lines(2), tmp_path / "base.bin"))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_merged_model_predicts_learns_and_merges_again(name, tmp_path):
    base = new(name, 1)
    models = [continued(base, lines(seed), tmp_path / "base.bin") for seed in (2, 3)]
    merged = library.merge(models, base=base)
    merged.save(tmp_path / "merged.bin")
    loaded = library.load(tmp_path / "merged.bin")
    assert state_of(loaded) == state_of(merged)
    assert errors(loaded, lines(9, 300)) <= 0.02 or name.startswith("scalar")
    loaded.learn_many(lines(5))
    again = library.merge([loaded, merged], base=tmp_path / "merged.bin")
    assert state_of(again) == state_of(loaded)  # the other one has learned nothing


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in LEARNERS if not name.startswith("scalar")])
def test_a_merged_model_knows_what_each_model_has_learned(name, tmp_path):
    def others(seed: int, labels: str) -> list[str]:
        """Return examples with features that the base has not seen."""
        return [line.replace("f", "g") for line in lines(seed, 200, labels)]

    base = new(name, 1)
    models = [continued(base, others(2, labels), tmp_path / "base.bin") for labels in ("123", "456")]
    merged = library.merge(models, base=base)
    text = others(9, "123456")
    better = min(errors(model, text) for model in models)
    assert better > 0.3
    assert errors(merged, text) < better - 0.2


@pytest.mark.parametrize(
    ("reduction", "options"),
    [
        ("oaa", {"bits": 16}),
        ("cpt", {"bits": 16}),
        ("multiclass", {"bits": 16, "index_bits": 12}),
    ],
)
def test_four_parts_of_noisy_data_make_fewer_errors_merged(reduction, options, tmp_path):
    k = 60
    text = streams.multiclass(1, k, 3000, noise=0.4).splitlines()
    base = Learner(reduction, None if reduction == "multiclass" else k, **options)
    of_each = {line.split(" ", 1)[0]: line for line in reversed(text[:1000])}
    assert len(of_each) == k
    base.learn_many([*text[:200], *(line for line in of_each.values() if line not in text[:200])])
    models = [continued(base, text[200 + part : 1000 : 4], tmp_path / "base.bin") for part in range(4)]
    merged = library.merge(models, base=base)
    assert errors(merged, text[1000:]) < min(errors(model, text[1000:]) for model in models) - 0.015


def test_counters_are_added_since_the_base(tmp_path):
    base = new("multiclass", 1)
    models = [continued(base, lines(seed, 50 * seed), tmp_path / "base.bin") for seed in (2, 3)]
    merged = library.merge(models, base=base)
    for name in ("labelled_weight", "loss_sum"):
        values = [getattr(model.core.progress, name) for model in (*models, base)]
        assert getattr(merged.core.progress, name) == pytest.approx(values[0] + values[1] - values[2])
    frequencies = [model.core.reduction.frequencies for model in (*models, base, merged)]
    assert np.array_equal(frequencies[3].count, frequencies[0].count + frequencies[1].count - frequencies[2].count)
    weights = []
    for model in (*models, base, merged):
        index = model.core.reduction.index.index
        weights.append(dict(zip(index.classes.label.tolist(), index.weight.tolist(), strict=True)))
    assert all(weights[3][y] == weights[0][y] + weights[1][y] - weights[2][y] for y in range(1, 7))


# -- classes that only some models have


@pytest.mark.sampled(2)
@pytest.mark.bounds
@pytest.mark.parametrize(
    ("name", "named"),
    [
        *((name, named) for name in ("oaa", "oaa --layout vw") for named in (False, True)),
        ("cpt --rerank", False), ("multiclass", False),
    ],
)  # fmt: skip
def test_classes_that_only_some_models_have_are_added(name, named, tmp_path):
    labels = ("abcd", "abcdx", "abcdyz", "abcdxyz") if named else ("1234", "12345", "123467", "1234567")
    reduction, k, options = LEARNERS[name]
    base = Learner(reduction, 7 if k else k, **{**options, "learn_names": named})
    base.learn_many(lines(1, 300, labels[0]))
    models = [
        continued(base, lines(seed, 400, one), tmp_path / "base.bin") for seed, one in ((2, labels[1]), (3, labels[2]))
    ]
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        merged = library.merge(models, base=base)
    for note in noted:  # of a program, which has no flags
        assert re.search("the models have different trees.* and give it as base$", str(note.message)), note.message
    text = lines(9, 300, labels[3])
    assert errors(merged, text) <= min(errors(model, text) for model in models) + 0.02
    if named:
        assert sorted(merged.classes) == sorted(labels[3])
        assert merged.classes[:4] == base.classes
    for _ in range(3):
        merged.learn_many(lines(4, 300, labels[3]))
    assert errors(merged, text) < 0.15


@pytest.mark.parametrize("name", ["cpt", "cpt --cpt_arity 4"])
def test_a_tree_that_has_grown_is_merged_with_those_from_which_it_has_grown(name, tmp_path):
    reduction, k, options = LEARNERS[name]
    base = Learner(reduction, k, **options)
    base.learn_many(lines(1, 300, "1234"))
    models = [
        continued(base, lines(seed, 400, labels), tmp_path / "base.bin")
        for seed, labels in ((2, "12346"), (3, "1234"), (4, "12345"))
    ]
    merged = library.merge(models[:2], base=base)
    assert errors(merged, lines(9, 300, "12346")) < 0.05
    with pytest.raises(ModelError, match=r"model \d and model \d have different trees, whose nodes do not correspond"):
        library.merge(models, base=base)


@pytest.mark.parametrize("name", ["cpt", "multiclass"])
def test_classes_that_are_numbered_differently_are_refused(name, tmp_path):
    reduction, k, options = LEARNERS[name]
    base = Learner(reduction, k, **options, learn_names=True)
    base.learn_many(lines(1, 300, "abcd"))
    models = [continued(base, lines(2, 100, f"abcd{new}"), tmp_path / "base.bin") for new in "xyc"]
    message = (
        r"class 5 is [xy] in model [12] and [xy] in model [12], .* the same named_labels @FILE .* or let all continue"
    )
    with pytest.raises(ModelError, match=message):
        library.merge(models[:2], base=base)
    assert library.merge([models[0], models[2]], base=base).classes == [*base.classes, "x"]


@pytest.mark.parametrize("layout", ["odd", "vw"])
def test_classes_that_only_some_models_have_are_added_if_negatives_are_sampled(layout, tmp_path):
    for seed in range(3):
        base = Learner("oaa", 8, bits=12, learn_names=True, oaa_subsample=2, layout=layout)
        base.learn_many(lines(10 * seed, 200, "abc"))
        models = [
            continued(base, lines(10 * seed + 1 + k, 300, labels), tmp_path / "base.bin")
            for k, labels in enumerate(("abcx", "abcyz"))
        ]
        merged = library.merge(models, base=base)
        assert sorted(merged.classes) == list("abcxyz")
        text = lines(9, 300, "abcxyz")
        assert errors(merged, text) <= min(errors(model, text) for model in models)
        columns = weight_table.columns(merged.core.reduction.table)
        assert all(np.isfinite(plane).all() for plane in columns.values())
        begun = weight_table.columns(base.core.reduction.table)["g"]
        assert (columns["g"] >= begun * (1 - 1e-6)).all()


def test_named_classes_are_matched_without_a_base():
    models = []
    for seed, labels in ((1, "abc"), (2, "cba"), (3, "bcd")):
        model = Learner("oaa", 5, bits=12, learn_names=True)
        model.learn_many(lines(seed, 200, labels))
        models.append(model)
    merged = library.merge(models)
    assert sorted(merged.classes) == list("abcd")
    assert errors(merged, lines(9, 200, "abcd")) < 0.05


@pytest.mark.parametrize("reduction", ["cpt", "multiclass"])
def test_names_and_numbers_are_refused(reduction, tmp_path):
    k, options = (None, {"bits": 12, "index_bits": 8}) if reduction == "multiclass" else (6, {"bits": 12})
    numbers, names = (Learner(reduction, k, named_labels=given, **options) for given in (None, "a,b,c"))
    empty = Learner(reduction, k, **options)
    numbers.learn_many(lines(1))
    names.learn_many(lines(2, labels="abc"))
    names.save(tmp_path / "names.bin")
    for models, base in (([numbers, names], None), ([names, numbers], None), ([names], numbers), ([numbers], names)):
        with pytest.raises(ModelError, match=r"of (model .|the base) have names and those of .* have only numbers"):
            library.merge(models, base=base)
    more = continued(names, lines(3, labels="abc"), tmp_path / "base.bin")
    assert library.merge([more, empty]).classes == ["a", "b", "c"]  # a model without examples has no labels


def test_numbers_that_became_names_are_merged_with_numbers(tmp_path):
    base = Learner("multiclass", bits=12, index_bits=8)
    base.learn_many(lines(1, labels="12"))
    base.save(tmp_path / "base.bin")
    numbers, named = (library.load(tmp_path / "base.bin") for _ in range(2))
    numbers.learn_many(lines(2, labels="12"))
    named.learn_many(["a b", "c d"], [-7, 1])
    assert named.classes[-1] == -7
    for models in ([numbers, named], [named, numbers]):
        with library.merge(models, tmp_path / "base.bin") as merged:
            assert merged.classes == named.classes and merged.examples == numbers.examples + 2


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_without_examples_is_left_out(name):
    reduction, k, options = LEARNERS[name]
    model, empty = new(name, 1), Learner(reduction, k, **options)
    expected = state_of(model)
    assert state_of(library.merge([empty, model])) == expected
    assert state_of(library.merge([model, empty], base=empty)) == expected
    nothing = library.merge([empty, Learner(reduction, k, **options)])
    assert (nothing.examples, state_of(nothing)) == (0, state_of(empty))


# -- trees


def test_trees_that_differ_are_taken_in_turn(tmp_path):
    models = [new("multiclass", seed) for seed in (1, 2)]
    for model, path in zip(models, ("a.bin", "b.bin"), strict=True):
        model.save(tmp_path / path)
    result = xclass("merge", "a.bin", "b.bin", "-f", "c.bin", cwd=tmp_path)
    assert result.status == 0
    assert "each tree of the merged model comes from one model and has learned from its examples only; " in result.err
    assert errors(library.load(tmp_path / "c.bin"), lines(9, 300)) < 0.1


@pytest.mark.parametrize("name", ["cpt", "cpt --sgd", "cpt --rerank without an index"])
def test_trees_that_differ_are_refused_without_an_index(name):
    with pytest.raises(ModelError, match="different trees"):
        library.merge([new(name, 1), new(name, 2)])
    with pytest.raises(ModelError, match="has not continued from the base: its trees have not grown"):
        library.merge([new(name, 1), new(name, 2)], base=new(name, 3))


def test_equal_trees_are_merged_without_a_base(tmp_path):
    learn("--cpt", 6, "--save_tree", "tree", cwd=tmp_path, stdin="\n".join(lines(1)))
    for name in "ab":
        learn("--cpt", 6, "--cpt_tree", "tree", "-f", name, cwd=tmp_path, stdin="\n".join(lines(ord(name))))
    learn("merge", "a", "b", "-f", "c", "--quiet", cwd=tmp_path)
    assert errors(library.load(tmp_path / "c"), lines(9, 300)) < 0.1


# -- what is refused


@pytest.mark.parametrize("reduction", ["recall_tree", "log_multi", "ect", "random_tree", "softmax_tree"])
def test_reductions_that_cannot_be_merged_say_why(reduction):
    model = Learner(reduction, 6, bits=12)
    if reduction != "softmax_tree":
        model.learn_many(lines(1))
    with pytest.raises(ModelError, match=f"{reduction}: .* merged, because {model.core.config.reduction.not_merged}"):
        library.merge([model])


def test_every_option_that_differs_is_named(tmp_path):
    learn("--oaa", 6, "-b", 12, "-f", "a", cwd=tmp_path, stdin="\n".join(lines(1)))
    learn("--oaa", 6, "-b", 11, "-q", "ab", "-f", "b", cwd=tmp_path, stdin="\n".join(lines(2)))
    result = xclass("merge", "a", "b", "-f", "c", cwd=tmp_path)
    assert result.status == 1
    assert "a has --bit_precision 12, b has --bit_precision 11" in result.err
    assert "a has no --quadratic, b has --quadratic ab" in result.err
    assert not (tmp_path / "c").exists()


def test_another_reduction_is_named_and_no_more():
    with pytest.raises(ModelError, match=r"same:\n  model 1 is a model of oaa, model 2 is one of cpt\ntrain"):
        library.merge([new("oaa", 1), new("cpt", 1)])
    named = r"model 1 is a model of oaa, the base is one of multiclass\n"
    with pytest.raises(ModelError, match=named):
        library.merge([new("oaa", 1)], base=new("multiclass", 1))


def test_names_of_files_of_equal_trees_are_not_compared(tmp_path):
    learn("--cpt", 6, "--save_tree", "tree", "-f", "z", cwd=tmp_path, stdin="\n".join(lines(1)))
    (tmp_path / "copy").write_bytes((tmp_path / "tree").read_bytes())
    for name, tree in (("a", "tree"), ("b", "copy")):
        learn("--cpt", 6, "--cpt_tree", tree, "-f", name, cwd=tmp_path, stdin="\n".join(lines(ord(name))))
    for order in (("a", "b", "c"), ("b", "a", "d")):
        learn("merge", *order[:2], "-f", order[2], cwd=tmp_path)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "d").read_bytes()


def test_the_base_may_have_another_learning_rate(tmp_path):
    base = new("oaa", 1)
    base.save(tmp_path / "base")
    for name in "ab":
        learn("-i", "base", "-l", 0.25, "-f", name, cwd=tmp_path, stdin="\n".join(lines(ord(name))))
    learn("merge", "a", "b", "--base", "base", "-f", "c", cwd=tmp_path)
    assert library.load(tmp_path / "c").options["learning_rate"] == 0.25
    result = xclass("merge", "a", "base", "-f", "d", cwd=tmp_path)
    assert "a has --learning_rate 0.25, base has --learning_rate 0.5" in result.err


def test_a_model_that_has_not_continued_from_the_base_is_refused():
    base = new("oaa", 1)
    base.learn_many(lines(2))
    with pytest.raises(
        ModelError, match="model 1 has not continued from the base: it has learned from 120 examples, the base from 240"
    ):
        library.merge([new("oaa", 1)], base=base)


@pytest.mark.parametrize("name", ["scalar", "oaa", "multiclass"])
def test_a_model_that_has_begun_elsewhere_is_refused(name):
    with pytest.raises(ModelError, match="has not continued from the base: "):
        library.merge([new(name, 1)], base=new(name, 2))


ARRAY, TEXTS = np.eye(3), library.Documents(["red", "blue", "red blue"])
TABLE, NUMBERED = ([{name: float(i) for name in names} for i in range(3)] for names in ("ab", "012"))
FORMS = {  # examples of each form, and whether a model that has learned from them can be merged with one of an array
    "an array": (ARRAY, True), "plain texts": (TEXTS, False), "lines": (["| 0", "| 1", "| 2"], True),
    "columns": (TABLE, False), "columns with numbers": (NUMBERED, True),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_models_of_features_that_cannot_be_the_same_are_refused(form):
    pandas = pytest.importorskip("pandas")
    examples, fits = FORMS[form]
    if isinstance(examples, list) and isinstance(examples[0], dict):
        examples = pandas.DataFrame(examples)
    models = [Learner("oaa", 3, bits=10) for _ in range(2)]
    for model, given, y in zip(models, (ARRAY, examples), ([1, 2, 3], [2, 1, 3]), strict=True):
        model.learn_many(given, y)
    for order in (models, models[::-1]):
        wrong = pytest.raises(ModelError, match=r"model \d has learned from .*, and model \d from .*; train both")
        with contextlib.nullcontext() if fits else wrong:
            library.merge(order)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "no models to merge"),
        (("a", "-f", "c", "--base", "nowhere"), "nowhere: "),
        (("a", "nowhere", "-f", "c"), "nowhere: "),
        (("a", "text", "-f", "c"), "text: not an xclass model"),
    ],
)
def test_wrong_command_lines(words, message, tmp_path):
    new("oaa", 1).save(tmp_path / "a")
    (tmp_path / "text").write_text("1 | a\n" * 9)
    result = xclass("merge", *words, cwd=tmp_path)
    assert result.status in (1, 2)
    assert result.err.count("\n") == 1 and message in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "text"]


def test_wrong_arguments():
    with pytest.raises(UsageError, match="a list of at least one model"):
        library.merge("a.bin")


def test_the_command_writes_the_same_bytes_in_any_order(tmp_path):
    for name in "abc":
        learn("-b", 12, "--index_bits", 8, "-f", name, cwd=tmp_path, stdin="\n".join(lines(ord(name))))
    learn("merge", "a", "b", "c", "-f", "abc", cwd=tmp_path)
    first = xclass("merge", "c", "a", "b", "-f", "cab", cwd=tmp_path)
    assert "cab: merged from 3 models, 360 examples, 6 classes" in first.err
    assert (tmp_path / "abc").read_bytes() == (tmp_path / "cab").read_bytes()
    result = learn("-i", "abc", "-t", "-p", "stdout", cwd=tmp_path, stdin="\n".join(lines(9, 100)))
    assert "average loss = 0.0" in result.err
    learn("-i", "abc", "-f", "more", cwd=tmp_path, stdin="\n".join(lines(8, 100)))
    learn("merge", "more", "abc", "--base", "abc", "-f", "again", "--quiet", cwd=tmp_path)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "more").read_bytes()


# -- real data


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not here: real data are not compared")
@pytest.mark.parametrize(("reduction", "based", "worse"), [("cpt", True, 0.03), ("multiclass", False, 0.03)])
def test_four_parts_of_real_data_lose_little_against_one_process(reduction, based, worse, tmp_path):
    with gzip.open(DATA / "clinc150" / "train.vw.gz", "rt") as file:
        train = file.readlines()
    np.random.default_rng(1).shuffle(train)
    options = {"bits": 18} if reduction == "cpt" else {"bits": 17}
    one = Learner(reduction, None if reduction == "multiclass" else 150, **options)
    one.learn_many("".join(train))
    base = one.__class__(reduction, None if reduction == "multiclass" else 150, **options)
    begin = len(train) // 5 if based else 0
    if based:
        base.learn_many("".join(train[:begin]))
    base.save(tmp_path / "base.bin")
    models = []
    for part in range(4):
        model = library.load(tmp_path / "base.bin")
        model.learn_many("".join(train[begin + part :: 4]))
        models.append(model)
    merged = library.merge(models, base=base if based else None)
    test = str(DATA / "clinc150" / "test.vw.gz")
    error = {name: model.evaluate(test)["average_loss"] for name, model in (("one", one), ("merged", merged))}
    parts = [model.evaluate(test)["average_loss"] for model in models]
    assert error["merged"] < error["one"] + worse, error
    assert error["merged"] < min(parts) - 0.01, (error, parts)


# -- models from strangers


def test_damaged_models_are_refused(tmp_path):
    model = Learner("multiclass", bits=10, index_bits=6, learn_names=True)
    model.learn_many(lines(1, 60, "abc"))
    other = Learner("multiclass", bits=10, index_bits=6, learn_names=True)
    other.learn_many(lines(2, 60, "cba"))
    other.save(tmp_path / "other.bin")
    contents = model.core.contents()
    for name, changed in {
        "max_doublings": contents._replace(options={**contents.options, "max_doublings": "many"}),
        "--bit_precision": contents._replace(options={**contents.options, "bits": [1]}),
        "twice": contents._replace(options={**contents.options, "named_labels": "a,b,a"}),
        "a fact": contents._replace(learner={"more": 1}),
    }.items():
        model_contents.save(str(tmp_path / "bad.bin"), lambda changed=changed: changed)
        for words in (("bad.bin", "other.bin"), ("other.bin", "bad.bin"), ("other.bin", "--base", "bad.bin")):
            result = xclass("merge", *words, "-f", "c.bin", cwd=tmp_path)
            assert result.status == 1 and "Traceback" not in result.err, (name, words, result.err)
            assert "bad.bin" in result.err, (name, words, result.err)


def test_models_of_equal_checksums_are_different(tmp_path):
    model = new("oaa", 1)
    paths = []
    contents = model.core.contents()
    arrays = {key: np.array(array) for key, array in contents.arrays.items()}
    changed = arrays["weights.w"].copy()
    changed.view(np.uint8).reshape(-1)[:5] ^= np.frombuffer((0x1DB710641).to_bytes(5, "little"), np.uint8)
    assert zlib.crc32(changed.tobytes()) == zlib.crc32(arrays["weights.w"].tobytes())  # a multiple of the polynomial
    for k, weights in enumerate((arrays["weights.w"], changed)):
        one = contents._replace(arrays={**arrays, "weights.w": weights})
        paths.append(f"{tmp_path}/{k}.bin")
        model_contents.save(paths[-1], lambda one=one: one)
    library.merge(paths)
    with pytest.raises(UsageError, match="are the same model"):
        library.merge([paths[0], model])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("clocks", [(np.inf, np.inf), (np.nan, 1.0), (-5.0, 6.0), (-np.inf, 1e308)])
@pytest.mark.parametrize("name", ["scalar", "scalar --sgd", "oaa", "cpt", "multiclass"])
def test_extreme_numbers_stay_finite(name, clocks, tmp_path):
    models = []
    for seed, clock in zip((1, 2), clocks, strict=True):
        model = new(name, seed)
        contents = model.core.contents()
        arrays = {key: np.array(array) for key, array in contents.arrays.items()}
        for key, array in arrays.items():
            kept = name == "scalar --sgd" and key == "weights.w"  # to compare the merged weights with
            if key.endswith((".w", ".g", ".n", ".norm2", "index.count", ".wear")) and not kept:
                array[array > 0] = np.finfo(array.dtype).max
            if key == "scorers.state":
                array[0, :6] = np.sign(array[0, :6]) * 1e100
                array[1] = 1e308 * (1 + seed / 10)
        contents = contents._replace(arrays=arrays, examples=2**62, clock=clock)
        path = tmp_path / f"{seed}.bin"
        model_contents.save(str(path), lambda contents=contents: contents)
        models.append(path)
    if name == "cpt":
        models = models[:1]  # without a base their trees differ
    with np.errstate(all="ignore"):
        library.merge(models).save(tmp_path / "merged.bin")
    merged = library.load(tmp_path / "merged.bin")
    assert all(np.isfinite(array).all() for array in map(np.asarray, merged.core.contents().arrays.values()))
    assert np.isfinite(merged.predict_many(["| f1 f2", "| f50"])).all()
    if name == "scalar --sgd":
        sources = [library.load(path).core.reduction.table.flat for path in models]
        assert np.abs(merged.core.reduction.table.flat).max() <= max(np.abs(flat).max() for flat in sources)


@pytest.mark.parametrize(("first", "second"), [(";", "|"), ("|", ";"), (";", ""), ("", ";"), (",", "")])
def test_separators_of_labels_that_differ_are_noted(first, second, tmp_path):
    draw, models = random.Random(0), []
    for number, separator in enumerate((first, second)):
        rows = [draw.sample("abcde", 2) for _ in range(60)]
        (tmp_path / "d.csv").write_text(
            "label,text\n" + "".join(f'"{(separator or ",").join(row)}",{" ".join(row)}\n' for row in rows)
        )
        given = ["--label_separator", separator] if separator else []
        words = ["-d", "d.csv", "--multilabel", "--named_labels", "a,b,c,d,e", *given, "-f", f"m{number}", "--quiet"]
        assert not xclass(*words, cwd=tmp_path).status
        models.append(f"m{number}")
    said = xclass("merge", *models, "-f", "m", cwd=tmp_path)
    assert said.status == 0, said.err
    separators = {";", "|", ","} & {first or ",", second or ","}
    (note,) = [line for line in said.err.splitlines() if "--label_separator" in line] or [""]
    kept_by_model = library.load(tmp_path / "m").core.schema.separator or ","
    assert kept_by_model in separators
    if len(separators) == 1:
        assert not note
    else:
        assert f"different values of --label_separator; {kept_by_model!r} is kept" in note
