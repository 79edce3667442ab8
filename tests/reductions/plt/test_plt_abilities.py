"""What --plt says about its predictions and its model agrees with what it predicts; merging of its trees."""

import math
import re

import numpy as np
import pytest
from command import learn, xclass
from streams import multilabel

import xclass as library
from xclass import Learner, ModelError, checks, load
from xclass.reductions.cpt import label_tree

LABELS = 30


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("plt")
    (path / "data").write_text(multilabel(1, LABELS, 400) + ", |w nothing\n" * 9)
    learn("-d", "data", "--plt", "-b", 14, "-f", "m", cwd=path)
    return path


def test_explanations_of_all_labels_add_up_to_the_log_probabilities(folder):
    with load(folder / "m") as model:
        for line in multilabel(3, LABELS, 20).splitlines():
            explained = model.explain(line, k=LABELS)
            checks.assert_sums(explained)
            expected = dict(model.predict(line, k=LABELS))
            assert {one.label for one in explained.classes} == expected.keys()
            for one in explained.classes:
                assert one.score == pytest.approx(math.log(expected[one.label]), rel=1e-4, abs=1e-5)
                turns = [math.log(turn.probability) for turn in one.path]
                assert sorted(turns) == pytest.approx(sorted(share.share for share in one.shares), rel=1e-6)


def test_the_printed_tree_has_all_labels_and_their_counts(folder):
    shown = learn(
        "-t", "-i", "m", "--no_stdin", "--quiet", "--print_tree", "stdout", "--tree_levels", 64, cwd=folder
    ).out
    leaves = re.findall(r"leaf, (\d+) \((\d+)\)$", shown, re.MULTILINE)
    with load(folder / "m") as model:
        assert sorted((int(y), int(n)) for y, n in leaves) == list(enumerate(model.core.reduction.counts[:-1].tolist()))


def test_a_model_for_prediction_says_what_it_can(folder):
    learn("-t", "-i", "m", "--no_stdin", "-f", "small", "--predict_only_model", cwd=folder)
    words = ("-t", "-d", "data", "--quiet", "--top_k", 9)
    explained = [learn(*words, "-i", name, "--explain", 2, cwd=folder).out for name in ("m", "small")]
    predicted = [learn(*words, "-i", name, "-p", "stdout", cwd=folder).out for name in ("m", "small")]
    assert explained[0] == explained[1] and predicted[0] == predicted[1]
    assert len(predicted[0].splitlines()) == 409 and "0 root" in explained[0]
    result = xclass("-d", "data", "-i", "small", cwd=folder)
    assert result.status != 0 and "--predict_only_model" in result.err


# -- merging


def lines(seed: int, labels: range, n: int = 300) -> list[str]:
    """Return examples of one or two labels, which a word tells each."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        own = sorted(set(rng.choice(labels, size=rng.integers(1, 3)).tolist()))
        words = [f"t{y}" for y in own] + [f"w{rng.integers(9)}" for _ in range(2)]
        found.append(f"{','.join(map(str, own))} | {' '.join(words)}")
    return found


def errors(model: Learner, text: list[str]) -> float:
    """Return the share of examples whose best label is not theirs."""
    own = [line.split(" ")[0].split(",") for line in text]
    return float(np.mean([str(model.predict(line, k=1)[0][0]) not in y for line, y in zip(text, own, strict=True)]))


@pytest.fixture
def base(tmp_path):
    with Learner("plt", bits=14) as model:
        model.learn_many(lines(1, range(20), 100))
        model.save(tmp_path / "base")
    return tmp_path / "base"


def continued(base, text: list[str]) -> Learner:
    model = load(base)
    model.learn_many(text)
    return model


def test_a_tree_that_has_grown_is_merged_with_others_of_the_same_base(base):
    """The words of `new` are known to one model alone, those of the first ten labels to the other."""
    new, old = lines(2, range(10, 30)), [line.replace("t", "o") for line in lines(3, range(10))]
    models = [continued(base, text) for text in (new, old)]
    merged = library.merge(models, base=base)
    tested = lines(4, range(10, 30)), [line.replace("t", "o") for line in lines(5, range(10))]
    assert errors(models[1], tested[0]) > 0.3 and errors(models[0], tested[1]) > 0.3
    assert max(errors(merged, text) for text in tested) < 0.05
    own, grown = merged.core.reduction, models[0].core.reduction
    assert label_tree.depths(own.tree).tolist() == label_tree.depths(grown.tree).tolist()
    assert own.counts[-1] == 700 and merged.examples == 700
    assert own.counts[:30].sum() == sum(
        line.split(" ")[0].count(",") + 1 for line in [*lines(1, range(20), 100), *new, *old]
    )
    assert errors(library.merge(models[::-1], base=base), tested[0]) == errors(merged, tested[0])
    merged.learn_many(lines(6, range(40)))
    assert errors(merged, lines(7, range(40))) < 0.05


def test_trees_that_differ_are_refused_and_the_advice_helps(base, tmp_path):
    models = [continued(base, lines(seed, labels)) for seed, labels in ((2, range(25)), (3, range(20, 40)))]
    with pytest.raises(
        ModelError, match=r"have different trees, whose nodes do not correspond; let all continue from one"
    ):
        library.merge(models, base=base)
    with Learner("plt", bits=14) as other:
        other.learn_many(lines(9, range(20)))
        with pytest.raises(ModelError, match="its tree has not grown from that of the base; give the model that all"):
            library.merge([models[0], other], base=base)
    for name, seed in (("a", 2), ("b", 3)):
        (tmp_path / name).write_text("\n".join(lines(seed, range(40), 400)) + "\n")
    learn("-d", "a", "--plt", "-b", 14, "--save_tree", "tree", "--quiet", cwd=tmp_path)
    for name in "ab":
        learn("-d", name, "--plt", "-b", 14, "--plt_tree", "tree", "-f", f"{name}.bin", "--quiet", cwd=tmp_path)
    learn("merge", "a.bin", "b.bin", "-f", "merged", cwd=tmp_path)
    with load(tmp_path / "merged") as merged:
        assert errors(merged, lines(4, range(40))) < 0.05
