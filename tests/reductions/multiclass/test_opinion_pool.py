"""The default learner combines what class means say of dense rows and what scorers say of hashed features."""

import numpy as np
import pytest
from command import xclass as command
from library import same_arrays, state_of
from oracles.opinion_pool import OTHERS, Pool

import xclass
from xclass.reductions.multiclass import opinion_pool
from xclass.reductions.multiclass.opinion_pool import Listed

K, D = 6, 5


def random_lists(random, n: int, k: int) -> Listed:
    """What a learner might list: up to k of 9 classes, with room for others, and now and then none."""
    top, top_p = np.zeros((n, k), np.int64), np.zeros((n, k))
    for i in range(n):
        size = int(random.integers(0, k + 1))
        top[i, :size] = random.permutation(9)[:size] + 1
        p = np.sort(random.dirichlet(np.full(size + 1, 0.5)))[::-1]
        top_p[i, :size] = p[:size] if i % 3 else p[:size] / max(p[:size].sum(), 1e-300)  # others may have nothing
    return Listed(top, top_p, np.zeros(n))


def test_the_pool_is_that_of_the_oracle_example_by_example():
    random = np.random.default_rng(4)
    n, k = 400, 4
    lists = [random_lists(random, n, k), random_lists(random, n, k)]
    label = random.integers(0, 12, n)
    label[label > 9] = lists[0].top[label > 9, 0]  # more often right than chance
    learns, weight = (label > 0) & (random.random(n) < 0.8), random.choice([0.5, 1.0, 3.0], n).astype(np.float32)
    state, oracle = opinion_pool.new_state(), Pool()
    result, inside = Listed(np.zeros((n, 2 * k), np.int64), np.zeros((n, 2 * k)), np.zeros(n)), np.zeros(n, bool)
    opinion_pool.combine(state, label, learns, weight, *lists, result, inside)
    for i in range(n):
        listed = [dict(zip(one.top[i], one.top_p[i], strict=True)) for one in lists]
        for one in listed:
            one.pop(0, None)
        expected = oracle.combine(listed, int(label[i]), bool(learns[i]), float(weight[i]))
        assert inside[i] == (label[i] in expected and label[i] != OTHERS)
        found = {int(c): p for c, p in zip(result.top[i], result.top_p[i], strict=True) if c}
        assert found == pytest.approx({c: p for c, p in expected.items() if c != OTHERS}, rel=1e-9)
        assert list(found.values()) == sorted(found.values(), reverse=True)
        if inside[i]:
            assert result.p[i] == found[label[i]]
    assert state[0] == pytest.approx(oracle.powers)
    assert state[1] == pytest.approx(oracle.squares)
    assert abs(state[0] - 1).max() > 0.1  # the test would not see powers that are never learned


@pytest.fixture(scope="module")
def data():
    """Rows around class means, and texts with a word of the class and others, which are each wrong at times."""
    random = np.random.default_rng(1)
    n = 600
    label = random.integers(1, K + 1, n)
    rows = (random.normal(size=(K + 1, D))[label] + random.normal(size=(n, D))).astype(np.float32)
    words = [f"w{c if random.random() < 0.7 else random.integers(1, K + 1)} z{random.integers(20)}" for c in label]
    return rows, words, label


def frame(rows, words):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame({"text": words, "row": list(rows)})


def test_rows_alone_are_learned_as_by_the_means(data):
    rows, _, label = data
    with xclass.Learner() as default, xclass.Learner("means") as means:
        first, second = default.learn_many(rows, label), means.learn_many(rows, label)
        np.testing.assert_array_equal(first.prediction, second.prediction)
        (found, p), (expected, expected_p) = default.predict_many(rows, k=3), means.predict_many(rows, k=3)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(p, expected_p)


def test_both_together_are_better_than_each(data):
    rows, words, label = data
    late = slice(300, None)

    def error(examples) -> float:
        with xclass.Learner() as model:
            return float(np.mean(model.learn_many(examples, label).prediction[late] != label[late]))

    assert error(frame(rows, words)) < 0.9 * min(error(rows), error(words))


def test_models_do_not_depend_on_how_the_stream_is_cut(data):
    rows, words, label = data
    words = [""] * 50 + words[50:]  # the first rows come alone
    examples = frame(rows, words)
    states = []
    for size in (600, 7):
        with xclass.Learner() as model:
            for at in range(0, 600, size):
                model.learn_many(examples[at : at + size], label[at : at + size])
            states.append(state_of(model))
    assert states[0] == states[1]


def test_a_loaded_model_goes_on_like_the_first(data, tmp_path):
    rows, words, label = data
    examples = frame(rows, words)
    with xclass.Learner() as model:
        model.learn_many(examples[:300], label[:300])
        model.save(tmp_path / "m")
        with xclass.load(tmp_path / "m") as loaded:
            loaded.learn_many(examples[300:], label[300:])
            model.learn_many(examples[300:], label[300:])
            assert state_of(model) == state_of(loaded)


def test_all_probabilities_are_listed_and_sum_to_1(data):
    rows, words, label = data
    examples = frame(rows, words)
    with xclass.Learner() as model:
        model.learn_many(examples, label)
        classes, p = model.probabilities(examples[:50])
        assert len(classes) == K
        np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-3)  # the rest belongs to classes that were never seen
        np.testing.assert_array_equal(classes[p.argmax(axis=1)], model.predict_many(examples[:50]))


def test_an_explanation_says_what_features_and_rows_add(data):
    rows, words, label = data
    examples = frame(rows, words)
    with xclass.Learner() as model:
        model.learn_many(examples, label)
        one = examples.iloc[[3]]
        explanation = model.explain_many(one)[0]
        predicted, p = model.predict_many(one, k=2)
        first, second = explanation.classes[:2]
        assert [first.label, second.label] == predicted[0].tolist()
        assert [first.probability, second.probability] == pytest.approx(p[0].tolist())
        assert sum(share.share for share in first.shares) == pytest.approx(first.score)
        assert np.exp(first.score - second.score) == pytest.approx(p[0, 0] / p[0, 1], rel=1e-3)
        assert {"rows", "scorer"} <= first.parts.keys()


def test_merged_models_know_what_each_has_learned(data, tmp_path):
    rows, _, label = data
    paths = [str(tmp_path / name) for name in ("a", "b")]
    for path, part in zip(paths, (slice(0, 300), slice(300, 600)), strict=True):
        with xclass.Learner() as model:
            model.learn_many(rows[part], label[part])
            model.save(path)
    with xclass.Learner() as whole:
        whole.learn_many(rows, label)
        expected = np.mean(whole.predict_many(rows) == label)
    with xclass.merge(paths) as merged:
        assert np.mean(merged.predict_many(rows) == label) > expected - 0.03


def test_a_model_of_sparse_rows_takes_the_same_rows_as_an_array(data):
    sparse = pytest.importorskip("scipy.sparse")
    rows, _, label = data
    with xclass.Learner() as model:
        model.learn_many(sparse.csr_matrix(rows), label)
        expected = model.predict_many(sparse.csr_matrix(rows))
        np.testing.assert_array_equal(model.predict_many(rows), expected)
        model.learn_many(rows[:10], label[:10])
        assert model.core.schema.width == 0
    with xclass.Learner() as model:
        model.learn_many(rows, label)
        with pytest.raises(xclass.UsageError, match=r"arrays of 5 columns; give an array, `X.toarray\(\)`"):
            model.predict_many(sparse.csr_matrix(rows))


def test_an_array_wider_than_class_means_take_is_hashed():
    random = np.random.default_rng(2)
    label = random.integers(1, 4, 60)
    wide = np.zeros((60, 5000), np.float32)
    wide[np.arange(60), label] = 1
    with xclass.Learner() as model:
        model.learn_many(wide, label)
        assert model.core.schema.width == 0
        np.testing.assert_array_equal(model.predict_many(wide), label)


def test_the_command_learns_both_and_explains_both(tmp_path):
    lines = [
        "1 |w red sweet |e :0.1 :0.9",
        "3 |w blue sour |e :0.8 :0.2",
        "2 |w red |e :0.2 :0.8",
        "3 |w blue |e :1 :0",
    ]
    (tmp_path / "train.vw").write_text("\n".join(lines * 5) + "\n")
    (tmp_path / "new.vw").write_text("|w red |e :0.2 :0.8\n|e :0.9 :0.1\n|w blue\n")
    command("-d", "train.vw", "--dense", "e", "-f", "m", cwd=tmp_path)
    command("-d", "new.vw", "-t", "-i", "m", "-p", "p", "--explain", 1, "--explain_file", "x", cwd=tmp_path)
    assert (tmp_path / "p").read_text().split() == ["2", "3", "3"]
    explained = (tmp_path / "x").read_text()
    assert "  (rows)\n" in explained and "  w^red\n" in explained
    refused = command("-d", "train.vw", "--dense", "e", "--recall_tree", 3, cwd=tmp_path)
    assert "use --multiclass or --means" in refused.err


def test_a_model_without_examples_begins_like_a_new_learner(data, tmp_path):
    rows, _, label = data
    with xclass.Learner("multiclass") as model:
        model.save(tmp_path / "m")
        with xclass.load(tmp_path / "m") as loaded:
            for one in (model, loaded):
                one.learn_many(rows, label)
            assert same_arrays(model, loaded)
