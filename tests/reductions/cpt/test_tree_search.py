"""The searches for the most probable labels, against oracles, and the same ones in learning and in predicting."""

import pickle

import harness
import numpy as np
import pytest
from command import learn, xclass
from library import fact, go_through, same_arrays, trained
from oracles import tree_search as oracle
from streams import multiclass

from xclass import UsageError, load
from xclass.abilities.describe import reasons
from xclass.binary import adagrad
from xclass.reductions.cpt import binary_nodes

CLASSES = 150
TEXT, TEST = multiclass(61, CLASSES, 1500, noise=0.5), multiclass(62, CLASSES, 40, noise=0.5)


@pytest.fixture(scope="module")
def flat():
    """Return a tree whose probabilities are spread, examples, and what the oracles know of both."""
    batch = harness.batch_of(harness.configure("--cpt", CLASSES, "-b", 18), TEST)
    with trained("cpt", CLASSES, TEXT, bits=18) as model:
        member, trees = model.core.reduction.trees.members[0], []
        nodes = int(member.tree.size[binary_nodes.NODES])
        left, label, place = (
            array[:nodes].tolist() for array in (member.tree.left, member.tree.label, member.tree.place)
        )
        for i in range(batch.n):
            mass, h, x = [1.0] * nodes, *(np.empty(batch.most_features, kind) for kind in (np.uint64, np.float32))
            count = adagrad.load(batch, i, member.settings.unit, h, x)
            for a in range(nodes):
                if left[a]:
                    score = reasons.score_of(member.weights.words, h[:count], x[:count], place[a])
                    right = adagrad.probability(member.weights, np.float32(score))
                    mass[left[a]], mass[left[a] + 1] = mass[a] * (1.0 - right), mass[a] * right
            trees.append(oracle.Tree(left, label, place, mass))
        yield member, batch, trees


def searches(member, batch, k: int, **settings) -> list[tuple[oracle.Found, int, float]]:
    """Return for each example the labels that a search finds and their probabilities, the nodes opened, and the gap."""
    n, none = batch.n, np.zeros(batch.n, np.int64)
    output = binary_nodes.new_predictions(n, k=k)
    member.settings = member.settings._replace(**settings)
    member.process_rows(batch, none, none > 0, 0, n, output)
    pairs = [list(zip(*row, strict=True)) for row in zip(output.top.tolist(), output.top_p.tolist(), strict=True)]
    found = [[pair for pair in row if pair[0] > 0] for row in pairs]
    return list(zip(found, output.opened.tolist(), output.gap.tolist(), strict=True))


def test_beam_of_0_follows_the_more_probable_children(flat):
    member, batch, trees = flat
    leaves = [tree.likely_leaf() for tree in trees]
    found = [[(tree.label[a], tree.mass[a])] for tree, a in zip(trees, leaves, strict=True)]
    assert [one for one, _, _ in searches(member, batch, 1, beam=0, cut=0.0, exact=False)] == found
    assert found != [oracle.exact(tree, 1, 0.0) for tree in trees]
    message = "--beam 0 needs nodes of two branches"
    assert message in xclass("--cpt", 9, "--beam", 0, "--cpt_arity", 4, stdin="1 |w a\n").err


def test_more_classes_than_beam_of_0_finds_are_refused(tmp_path):
    message = "--beam 0 follows each tree to a single class, but 2 classes are wanted"
    learn("--cpt", 9, "--beam", 0, "-f", "m", stdin="1 |w a\n2 |w b\n", cwd=tmp_path)
    for words in (["--cpt", 9, "--beam", 0, "--top_k", 2], ["-t", "-i", "m", "--top_k", 2]):
        assert message in xclass(*words, stdin="1 |w a\n", cwd=tmp_path).err
    assert learn("-t", "-i", "m", "--top_k", 2, "--exact", "-p", "stdout", stdin="1 |w a\n", cwd=tmp_path).out
    with load(str(tmp_path / "m")) as model:
        assert model.predict("|w b") == 2
        with pytest.raises(UsageError, match="beam 0 follows each tree to a single class, but 2 classes are wanted"):
            model.predict("|w b", k=2)


@pytest.mark.parametrize("cut", [0.0, 0.1])
@pytest.mark.parametrize("beam", [1, 3, 100])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_beam_search_keeps_the_blocks_that_the_oracle_keeps(flat, k, beam, cut):
    member, batch, trees = flat
    results = searches(member, batch, k, beam=beam, cut=cut, exact=False)
    assert results == [oracle.beam_search(tree, k, beam, cut) for tree in trees]
    for tree, (found, opened, gap) in zip(trees, results, strict=True):
        assert opened <= 7 * beam * (int(member.tree.size[binary_nodes.DEEPEST]) // 3 + 1)
        whole = oracle.exact(tree, k, cut)
        missed = [p for label, p in whole if label not in dict(found) and (len(found) < k or p > found[-1][1])]
        assert max(missed, default=0.0) <= gap
    if beam == 100 and cut == 0:
        assert [p for found, _, _ in results for _, p in found] == [
            p for tree in trees for _, p in oracle.exact(tree, k, cut)
        ]


@pytest.mark.parametrize("cut", [0.0, 0.1])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_exact_search_finds_the_most_probable_leaves_and_opens_nodes_that_are_as_probable(flat, k, cut):
    member, batch, trees = flat
    for tree, (found, opened, gap) in zip(trees, searches(member, batch, k, cut=cut, exact=True), strict=True):
        assert [p for _, p in found] == [p for _, p in oracle.exact(tree, k, cut)]
        assert all(p == tree.mass[tree.label.index(label)] for label, p in found)
        assert gap == 0
        least = found[-1][1] if len(found) == k else cut * found[0][1]
        likely = sum(p >= least / 1.25 for left, p in zip(tree.left, tree.mass, strict=True) if left)
        assert opened <= likely  # 1.25: nodes of one bucket, which are opened in any order


# -- in a learner


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("reduction", "options"),
    [("cpt", {}), ("multiclass", {}), ("cpt", {"rerank": True}), ("cpt", {"cpt_arity": 4})],
    ids=str,
)
def test_example_that_is_learned_is_predicted_first_by_the_same_search(reduction, options):
    with trained(reduction, CLASSES, TEXT, bits=16, beam=2, **options) as model:
        for line in [*TEST.splitlines(), f"{CLASSES + 1} |w p0_1 new"]:
            answers = []
            for learns in (False, True):
                results = go_through(model, f"{line}\n", learns, top_k=5)
                opened = np.flatnonzero(model.core.reduction.report.opened_counts).tolist()
                answers.append((results.predictions, results.lists, opened))
            assert answers[0] == answers[1]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", [{}, {"cpt_arity": 4}], ids=str)
@pytest.mark.parametrize("k", [1, 3])
def test_no_class_that_was_not_found_is_more_probable_than_the_summary_says(tmp_path, options, k):
    with trained("cpt", CLASSES, TEXT, bits=18, beam=1, **options) as model:
        model.save(tmp_path / "m")
        results = go_through(model, TEST, learn=False, top_k=k)
    with load(tmp_path / "m", exact=True) as exact:
        whole = go_through(exact, TEST, learn=False, top_k=k)
        _, every = exact.probabilities(TEST)
        assert "ended early" not in whole.summary
    missed, early = 0.0, 0
    for p, some, best in zip(every, results.lists, whole.lists, strict=True):
        del some[0], best[0]
        assert list(best.values()) == pytest.approx(np.sort(p)[::-1][:k].tolist(), rel=1e-5)
        if some != best:
            missed, early = max(missed, *(best[label] for label in best.keys() - some.keys())), early + 1
    assert early > 0
    assert fact(results.summary, "searches ended early") >= early
    assert 0 < missed <= fact(results.summary.replace("at most ", "at most = "), "at most") + 1e-6


def test_beam_is_stored_and_exact_is_not(tmp_path):
    with (
        trained("cpt", CLASSES, TEXT, bits=18, exact=True) as exact,
        trained("cpt", CLASSES, TEXT, bits=18, beam=1) as one,
    ):
        assert same_arrays(exact, one)  # the search decides nothing that is learned without scorers
        assert exact.average_loss < one.average_loss
        one.save(tmp_path / "m")
    run = ("-t", "-i", "m", "--quiet", "-p", "stdout")
    beam, whole = (learn(*run, *words, stdin=TEST, cwd=tmp_path).out for words in ((), ("--exact",)))
    assert beam != whole
    with load(tmp_path / "m") as model, load(tmp_path / "m", exact=True) as exact:
        assert (model.options["beam"], model.options["exact"]) == (1, False)
        assert exact.options["exact"] is True
        for learner, text in ((model, beam), (exact, whole)):
            assert learner.predict_many(TEST).tolist() == [int(line) for line in text.split()]
        assert pickle.loads(pickle.dumps(exact)).predict_many(TEST).tolist() == exact.predict_many(TEST).tolist()
        exact.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    assert "--beam 2 disagrees with m" in xclass("-t", "-i", "m", "--beam", 2, stdin=TEST, cwd=tmp_path).err
    trained("oaa", 3, "1 | a\n", bits=8).save(tmp_path / "o")
    with pytest.raises(UsageError, match=r"exact belongs to cpt, and .*o was trained with oaa"):
        load(tmp_path / "o", exact=True)
