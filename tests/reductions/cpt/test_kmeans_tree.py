"""`cpt_tree="kmeans"`: the preview, what is learned, and that the search stays exact."""

import random

import numpy as np
import pytest
from archives import restored
from command import learn, xclass
from library import go_through, same_arrays, summary_of, trained
from probability_trees import tree_of
from streams import multiclass

from xclass import Learner
from xclass.model import model_file
from xclass.reductions.cpt import label_tree
from xclass.text import reader

KMEANS = {"bits": 20, "cpt_tree": "kmeans"}
WORDS = ("--cpt", 30, "-b", 20, "--cpt_tree", "kmeans")


pytestmark = pytest.mark.usefixtures("place")


def tree_in(path: str) -> label_tree.ClassTree:
    """Return the tree of a model that a run wrote."""
    return restored(model_file.load(path).arrays, label_tree.serialize, "tree.0", label_tree.new_tree())


def topics(seed: int, n: int, k: int = 64, noise: float = 0.2) -> str:
    """Classes in groups that share words; the order of the labels does not reflect the groups."""
    rng = random.Random(f"topics {seed}")
    name = random.Random(0).sample(range(1, k + 1), k)
    lines = []
    for _ in range(n):
        y = rng.randrange(k)
        classes = [y if rng.random() >= noise else rng.randrange(k) for _ in range(5)]
        words = [f"g{level}_{label >> level}" for level, label in enumerate(classes)]
        lines.append(f"{name[y]} | {' '.join(words)} w{rng.randrange(200)}\n")
    return "".join(lines)


def test_alike_classes_together_make_fewer_errors():
    """On average over several streams; in a single one, a tree may have 0.02 more or fewer errors by chance."""
    errors = dict.fromkeys(("kmeans", "general", "random"), 0.0)
    for seed in (1, 3, 5, 7):
        text, test = topics(seed, 2000, 256, 0.5), topics(seed + 1, 1000, 256, 0.5)
        for tree in errors:
            with trained("cpt", 256, text, bits=20, cpt_tree=tree, learning_rate=0.5) as model:
                errors[tree] += go_through(model, test, learn=False).loss / 4000
    assert errors["kmeans"] < min(errors["general"], errors["random"]) - 0.005


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_top_k_of_several_trees_have_their_probability(loss):
    text, test = multiclass(3, 30, 700, noise=0.3), multiclass(4, 30, 80, noise=0.5)
    with trained("cpt", 30, text, tree_sample=150, loss_function=loss, trees=3, **KMEANS) as model:
        every = go_through(model, test, learn=False, top_k=1000).lists
        for want in every:
            assert want[0] < 1e-6
            assert sum(want.values()) == pytest.approx(1, abs=1e-6)
        for few in (1, 3, 10):
            for got, want in zip(go_through(model, test, learn=False, top_k=few).lists, every, strict=True):
                got.pop(0)
                assert len(got) == few
                assert got.items() <= want.items()


def test_every_label_of_the_sample_is_placed_and_no_deeper_than_need_be():
    text = multiclass(5, 30, 800)
    seen = {int(line.split()[0]) for line in text.splitlines()}
    with trained("cpt", 30, text, **KMEANS) as model:
        tree, summary = tree_of(model), summary_of(model)
    assert set(tree.label[tree.label > 0].tolist()) == seen
    assert tree.size[label_tree.DEEPEST] == 5
    assert f"classes in the tree = {len(seen)}, {len(seen)} of them placed by a sample of 800 examples" in summary
    assert "labels seen for the first time" not in summary


def test_later_labels_are_inserted():
    more = "".join(f"{y} | n{y}\n" for y in (2**31, 500, 77)) * 40
    with Learner("cpt", 30, tree_sample=100, **KMEANS) as model:
        learned = model.learn_many(multiclass(6, 10, 100) + more)
        assert learned.prediction[-3:].tolist() == [2**31, 500, 77]
        assert "labels seen for the first time = 3," in summary_of(model)
        assert "classes in the tree = 13, 10 of them placed by a sample of 100 examples" in summary_of(model)


def test_examples_that_are_not_learned_from_are_not_in_the_preview(place):
    lines = multiclass(7, 10, 300).splitlines(True)
    lines[9::10] = [f"{1000 + j} | held{j}\n" for j in range(30)]  # --passes holds every tenth line out
    lines[4] = "2000 0 | weightless\n"
    text = "".join(lines)
    learn(*WORDS, "--passes", 2, "-f", "m", "--quiet", stdin=text)
    assert tree_in("m").label.max() <= 10
    (place / "d").write_text(text)
    learn(*WORDS, "--tree_sample", 0, "--passes", 2, "-f", "m", "--quiet", "-d", "d")
    assert tree_in("m").label.max() <= 10


def test_files_pipes_caches_and_blocks_give_the_same_model(place, monkeypatch):
    text = multiclass(8, 30, 500, noise=0.3)
    (place / "d").write_text(text)
    for sample, more in (
        (0, ()), (200, ("--passes", 3)), (0, ("-q", "::", "--passes", 2)), (0, ("--shuffle", 50)),
        (200, ("--shuffle", 50)),
    ):  # fmt: skip
        run = (*WORDS, "--tree_sample", sample, *more, "-p", "p", "--quiet")
        outputs = []
        for source in (("-d", "d"), ("-d", "d", "-c"), ("-d", "d", "-c"), ()):
            learn(*run, *source, "-f", "m", stdin=None if source else text)
            outputs.append(((place / "m").read_bytes(), (place / "p").read_bytes()))
        (place / "d.cache").unlink()
        monkeypatch.setattr(reader, "FIRST_BLOCK", 700)
        monkeypatch.setattr(reader, "LARGEST_BLOCK", 700)
        learn(*run, "-f", "m", stdin=text)
        outputs.append(((place / "m").read_bytes(), (place / "p").read_bytes()))
        monkeypatch.undo()
        monkeypatch.chdir(place)
        assert all(output == outputs[0] for output in outputs[1:]), (sample, more)


def test_sample_as_large_as_the_data_is_all_of_the_data():
    text = multiclass(9, 30, 500)
    with Learner("cpt", 30, tree_sample=0, **KMEANS) as whole, Learner("cpt", 30, tree_sample=500, **KMEANS) as some:
        assert not len(whole.learn_many(text).prediction)
        assert len(whole.end_pass().prediction) == len(some.learn_many(text).prediction)
        some.end_pass()
        assert same_arrays(whole, some)


def test_bad_line_ends_the_preview_and_earlier_examples_are_learned():
    text = multiclass(13, 10, 120) + "nothing | a\n" + multiclass(14, 10, 50)
    result = xclass(*WORDS, "-f", "m", stdin=text)
    assert result.status == 1
    assert "stdin:121" in result.err
    assert "number of examples = 120\n" in result.err
    assert "m.interrupted" in result.err
    with trained("cpt", 30, multiclass(13, 10, 120), **KMEANS) as model:
        assert np.array_equal(tree_in("m.interrupted").label, tree_of(model).label)
    result = xclass(*WORDS, "--tree_sample", 0, "-f", "m", stdin=text)
    assert result.status == 1
    assert "nothing was learned yet" in result.err


def test_data_without_labels_or_features_make_small_trees():
    with trained("cpt", 30, " | a\n | b\n", **KMEANS) as model:
        assert "classes in the tree = 0, depth" in summary_of(model)
        assert model.predict_many("| a\n").tolist() == [0]
    with trained("cpt", 30, "5 |\n5 |\n", **KMEANS) as model:
        assert "classes in the tree = 1, " in summary_of(model)
    with trained("cpt", 30, "5 |\n5 |\n6 |\n", noconstant=True, **KMEANS) as model:
        assert "classes in the tree = 2, " in summary_of(model)


def test_checkpoints_during_the_preview_are_in_order():
    text = multiclass(15, 10, 100)
    learn(*WORDS, "--checkpoint", 30, "-f", "m", "--quiet", stdin=text)
    result = learn(*WORDS, "--checkpoint", 30, "-f", "m", stdin=text)
    assert [word for word in result.err[result.err.index("Data: ") :].split() if word in ("30", "60", "90")] == [
        "30",
        "60",
        "90",
    ]


@pytest.mark.parametrize(
    ("options", "rate"),
    [({}, 0.5), ({"learning_rate": 0.7}, 0.7), ({"loss_function": "logistic"}, 1.0)],
)
def test_rate_depends_on_loss(options, rate):
    with Learner("cpt", 30, **KMEANS, **options) as model:
        assert model.options["learning_rate"] == rate


def test_rate_depends_on_tree_and_passes():
    for tree, rate in (("kmeans", 0.25), ("general", 0.35)):
        result = learn("--cpt", 30, "-b", 20, "--cpt_tree", tree, "--passes", 2, stdin=multiclass(16, 10, 50))
        assert f"Learning rate: {rate:g} (AdaGrad)\n" in result.err, tree
