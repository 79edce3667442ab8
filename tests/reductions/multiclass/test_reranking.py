"""--rerank: against its oracle, its probabilities, what it reports, and what a model keeps."""

import math
import random

import numpy as np
import pytest
from archives import restored, saved
from library import fact, for_passes, go_through, state_of, trained
from probability_trees import check_words, examples
from streams import multiclass

from tests.oracles import document_frequency, tagged_learners
from tests.oracles.cpt import Tree
from tests.oracles.feature_index import Index, Opinions
from tests.oracles.feature_scales import as_learned
from tests.oracles.reranking import Scorers
from xclass import Learner, ModelError, load
from xclass.data.batch import Batch
from xclass.reductions.cpt.options import CptOptions, table_bits
from xclass.reductions.multiclass import feature_index, reranking


def proposals_of(tree: Tree, row, k: int, cut: float) -> list[tuple[int, float]]:
    """The k most probable labels; none less than `cut` times as likely as the best."""
    pairs = sorted(tree.probabilities(row).items(), key=lambda item: -item[1])[:k]
    return [(y, p) for y, p in pairs if p >= cut * pairs[0][1]]


def plain(row) -> list[tuple[int, float, float]]:
    """Return a row without weights in the form that the scorers take."""
    return [(index, x, 0.0) for index, x in row]


EXACT = {"rel": 5e-3, "abs": 1e-5}  # where the oracle has exact weights, and xclass has float32
ROUNDED = {"rel": 2e-6, "abs": 1e-7}  # where both round weights alike


@pytest.mark.parametrize("cut", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_one_tree_and_its_scorers_are_the_oracles_example_by_example(cut):
    """With tagged words, in tables that are too small for all of them."""
    classes, k = 12, 4
    text = multiclass(21, classes, 300, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
    bits = 7
    options = {"bits": bits, "rerank": True, "candidates": k, "candidate_cut": cut, "exact": True}
    options |= {"rerank_rate": 0.3, "index_slots": 0, "normalize_features": "unit"}
    tree, scorers = tagged_learners.Tree(bits + 1 - 3), tagged_learners.Scorers(0.3, bits - 2 - 3)
    with Learner("cpt", classes, **options) as model:
        results = go_through(model, text, top_k=k)
        contents = model.core.contents()
    missed = mistaken = weight_sum = 0.0
    for number, ((row, y, weight), got) in enumerate(
        zip(as_learned(examples(text, bits), "none"), results.lists, strict=True), 1
    ):
        rest = got.pop(0)
        proposed = [proposals_of(tree, row, k, cut)]
        if tree.root is None:
            assert got == {} and rest == 1
        else:
            want, outside = scorers.rank(proposed, plain(row))
            assert set(got) == set(want), number
            for label, p in got.items():
                assert p == pytest.approx(want[label], **ROUNDED), (number, label)
            assert rest == pytest.approx(outside, **ROUNDED)
            assert list(got.values()) == sorted(got.values(), reverse=True)
        if y is None:
            continue
        weight_sum += weight
        missed += weight * (y not in got)
        mistaken += weight * (y in got and next(iter(got)) != y)
        if weight > 0:
            if tree.root is not None:
                scorers.learn(proposed, plain(row), y, weight)
            tree.learn(row, y, weight)
    assert fact(results.summary, "(routing error)") == pytest.approx(missed / weight_sum, abs=1e-6)
    assert fact(results.summary, "(scoring error)") == pytest.approx(mistaken / weight_sum, abs=1e-6)
    assert missed > 0 and mistaken > 0
    check_words(contents, "weights.0", tree.table)
    check_words(contents, "scorers", scorers.table)
    assert scorers.table.evicted > 50 and scorers.table.refused > 200


class Reranked:
    """Combine the oracles of the weights, the trees, the index and the scorers as a learner with --rerank does.

    Parameters
    ----------
    bits : as given to a learner with tagged words; 0 for exact weights
    doublings : how often each table may be doubled
    weighting : whether features are weighted by idf
    """

    def __init__(
        self, trees: int, k: int, cut: float, slots: int, proposals: int, bits: int = 0, doublings: int = 0,
        weighting: bool = True,
    ):  # fmt: skip
        self.k, self.cut = k, cut
        self.trees, self.scorers = [Tree() for _ in range(trees)], Scorers(0.42)
        if bits:
            tree_lines, scorer_lines = (b - 3 for b in table_bits(CptOptions(rerank=True, trees=trees), bits, "trees"))
            self.trees = [tagged_learners.Tree(tree_lines, doublings) for _ in range(trees)]
            self.scorers = tagged_learners.Scorers(0.42, scorer_lines, doublings)
        self.frequencies = document_frequency.Frequencies(weighting)
        self.index = Index(20, slots, proposals)

    def rank(self, row) -> tuple[dict[int, float], float]:
        """Return the probability of each candidate, and that of all other labels; `learn` takes the same example."""
        weighted, shares = self.frequencies.weighted(row)
        self.features = [(index, q) for (index, _), q in zip(row, shares, strict=True)]
        self.rows = [row if t % 2 else weighted for t in range(len(self.trees))]
        self.proposals = []
        if self.trees[0].root is None:
            return {}, 1.0
        self.proposals = [
            proposals_of(tree, row, self.k, self.cut) for tree, row in zip(self.trees, self.rows, strict=True)
        ]
        self.opinions = self.index.opinions(self.features, self.scorers.candidates(self.proposals))
        self.weighted = [(i, x, math.log(w / x)) for (i, x), (_, w) in zip(row, weighted, strict=True)]
        return self.scorers.rank(self.proposals, self.weighted, self.opinions)

    def learn(self, row, y: int, weight: float) -> None:
        if self.proposals:
            label_weight = self.index.weight.get(y, 0.0)
            tree_p = None
            if y in self.trees[0].leaf:
                tree_p = [tree.probability(y, tree.scaled(r)) for tree, r in zip(self.trees, self.rows, strict=True)]
            self.scorers.learn(self.proposals, self.weighted, y, weight, self.opinions, label_weight, tree_p)
        for tree, row_of_tree in zip(self.trees, self.rows, strict=True):
            tree.learn(row_of_tree, y, weight)
        self.index.learn(self.features, y, weight)
        self.frequencies.learn(row, weight)


def stories(seed: int, n: int, classes: int, valued: float) -> str:
    """Return lines of words, some frequent and some that tell the class; `valued` is the share with a value."""
    rng = random.Random(f"{seed} {n} {classes} {valued}")
    lines = []
    for _ in range(n):
        y = int(classes * rng.random() ** 1.5)
        words = [f"w{y}_{rng.randrange(3)}" if rng.random() < 0.6 else f"w{rng.randrange(classes)}_0" for _ in range(3)]
        words += [f"f{j}" for j in range(3) if rng.random() < 0.7 - 0.3 * j] + [f"r{rng.randrange(9)}"]
        words += ["v:2.5"] * (rng.random() < valued)
        label = "" if rng.random() < 0.1 else f"{y + 1} {rng.choice((1, 0.5, 2, 0)):g} "
        lines.append(f"{label}| {' '.join(words)}\n")
    return "".join(lines)


def check_against(oracle: Reranked, model: Learner, text: str, bits: int, tolerance: dict) -> None:
    """Compare the probabilities of the candidates example by example, and the routing error."""
    results = go_through(model, text, top_k=100)
    missed = weight_sum = by_index = 0.0
    rows = as_learned(examples(text, bits))
    for number, ((row, y, weight), got) in enumerate(zip(rows, results.lists, strict=True), 1):
        want, outside = oracle.rank(row)
        assert got.pop(0) == pytest.approx(outside, **ROUNDED), number
        assert set(got) == set(want), number
        for label, p in got.items():
            assert p == pytest.approx(want[label], **ROUNDED), (number, label)
        if y is None:
            continue
        weight_sum += weight
        missed += weight * (y not in got)
        by_index += y in got and not any(y in dict(listing) for listing in oracle.proposals)
        if weight > 0:
            oracle.learn(row, y, weight)
    assert fact(results.summary, "(routing error)") == pytest.approx(missed / weight_sum, abs=1e-6)
    assert missed > 0 and by_index > 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("trees", "valued", "index"), [(1, 0.0, (8, 4)), (2, 0.0, (8, 4)), (2, 0.02, (2, 3)), (1, 0.02, (2, 3))]
)
def test_trees_index_and_scorers_are_the_oracles_example_by_example(trees, valued, index):
    classes, k, cut = 12, 3, 0.05
    slots, proposals = index
    bits = 9
    options = {"bits": bits, "rerank": True, "candidates": k, "candidate_cut": cut, "exact": True}
    options |= {"index_bits": 20, "index_slots": slots, "index_candidates": proposals}
    if trees > 1:
        options |= {"trees": trees, "tree_noise": 0.0}
    oracle = Reranked(trees, k, cut, slots, proposals, bits)
    with Learner("cpt", classes, **options) as model:
        check_against(oracle, model, stories(21, 300, classes, valued), bits, EXACT)
        state = np.asarray(model.core.contents().arrays["scorers.state"])
    for numbers, want in zip(state, oracle.scorers.parameters(), strict=True):
        assert numbers == pytest.approx(want, rel=1e-2)
    assert oracle.frequencies.valued is (valued > 0)


@pytest.mark.parametrize("trees", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_tagged_words_without_idf_are_those_of_the_oracle(trees):
    """Without idf weights all sums are the same to the last bit, and so are all words."""
    classes, k, cut, slots, proposals, bits, doublings = 12, 3, 0.05, 8, 4, 6, 2
    options = {"bits": bits, "layout": "tagged", "max_doublings": doublings, "rerank": True, "candidates": k}
    options |= {"candidate_cut": cut, "exact": True}
    options |= {"index_bits": 20, "index_slots": slots, "index_candidates": proposals, "normalize_features": "unit"}
    if trees > 1:
        options |= {"trees": trees, "tree_noise": 0.0}
    oracle = Reranked(trees, k, cut, slots, proposals, bits, doublings, weighting=False)
    with Learner("cpt", classes, **options) as model:
        check_against(oracle, model, stories(22, 300, classes, 0.1), bits, ROUNDED)
        contents = model.core.contents()
    check_words(contents, "scorers", oracle.scorers.table)
    for t, tree in enumerate(oracle.trees):
        check_words(contents, f"weights.{t}", tree.table)
    for table in (oracle.scorers.table, oracle.trees[0].table):
        assert table.doublings == 2 and table.evicted > 15 and table.refused > 10


def rank_rows(
    scorers: reranking.RerankingScorers, rows, label, top, top_p, learns: bool, opinions=None, weight=1.0, tree_p=None
):
    """Call the kernel on rows of (index, value, logarithm of the weight); without `opinions` there is no index."""
    n = len(rows)
    start = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    index = np.array([i for row in rows for i, _, _ in row], np.uint32)
    value = np.array([x for row in rows for _, x, _ in row], np.float32)
    log_weight = np.array([w for row in rows for _, _, w in row], np.float32)
    batch = Batch(
        start, index, value, label.astype(np.float64), np.full(n, weight, np.float32), np.zeros(n, np.float32),
        np.zeros(n + 1, np.int64), np.zeros(0, np.uint8), np.zeros(1, np.int64), np.zeros(n, np.int64),
        np.zeros(n, np.int64), np.arange(1, n + 1), np.zeros(1, np.uint8),
    )  # fmt: skip
    trees, _, k = top.shape
    if opinions is None:
        candidate = np.zeros((n, trees * k), np.int64)
        for i in range(n):
            seen = list(dict.fromkeys(int(top[t, i, j]) for j in range(k) for t in range(trees) if top[t, i, j] > 0))
            candidate[i, : len(seen)] = seen
        opinions = feature_index.no_opinions(candidate)
    ranked = reranking.RankedCandidates(np.zeros((n, k), np.int64), np.zeros((n, k)), np.zeros(n), np.zeros(n, bool))
    tree_p = np.zeros((trees, n)) if tree_p is None else tree_p
    proposed = reranking.ProposedClasses(top, top_p, tree_p, opinions)
    scratch = reranking.scratch(batch, opinions.candidate.shape[1])
    reranking.rank(scorers, True, batch, log_weight, label, np.full(n, learns), True, 0, n, proposed, scratch, ranked)
    return ranked


def random_opinions(rng, of_trees: list[int], labels: int) -> Opinions:
    """Return what an index could say about an example: it proposes up to three labels."""
    proposed = (rng.permutation(labels)[: rng.integers(0, 4)] + 1).tolist()
    scores = {
        y: [float(rng.exponential()) * (rng.random() < 0.8), float(y in proposed), -float(rng.exponential(3))]
        for y in [*of_trees, *(y for y in proposed if y not in of_trees)]
    }
    return Opinions(proposed, scores)


def as_arrays(opinions: Opinions, label_weight: float, width: int) -> feature_index.Opinions:
    """Return the opinions about one example in the form that the kernel takes."""
    candidate, score = np.zeros((1, width), np.int64), np.zeros((1, width, feature_index.SCORES))
    candidate[0, : len(opinions.scores)] = list(opinions.scores)
    score[0, : len(opinions.scores)] = list(opinions.scores.values())
    return feature_index.Opinions(candidate, score, np.array([label_weight]))


@pytest.mark.sampled(2)
@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.parametrize(
    ("indexed", "start"),
    [
        (False, (1, 0, 1)),
        (True, (1, 0, 1)),
        (True, (0.001, 0, 0.0501)),  # E and T begin close to their lower limits
    ],
)
def test_several_trees_that_disagree_are_the_oracles(indexed, start):
    trees, k, labels, n = 3, 3, 14 if indexed else 8, 200
    rng = np.random.default_rng(5)
    kernel, oracle = reranking.new_scorers(7, 0, 0.35, False), tagged_learners.Scorers(0.35, 7 - 3)
    oracle.e, oracle.m, oracle.t = kernel.state[0, reranking.EXPONENT :] = start
    missed, limits = 0, set()
    for _ in range(n):
        top, top_p = np.zeros((trees, 1, k), np.int64), np.zeros((trees, 1, k))
        proposals = []
        for t in range(trees):
            size = int(rng.integers(1, k + 1))
            chosen = rng.permutation(labels)[:size] + 1
            p = np.sort(rng.dirichlet(np.ones(size + 1))[:size])[::-1]
            top[t, 0, :size], top_p[t, 0, :size] = chosen, p
            proposals.append([(int(y), float(x)) for y, x in zip(chosen, p, strict=True)])
        y, weight = int(rng.integers(1, labels + 1)), float(rng.choice([1, 0.5, 3]))
        index, label_weight = None, math.inf
        if indexed:
            index, label_weight = random_opinions(rng, oracle.candidates(proposals), labels), float(rng.integers(0, 12))
        row = [(int(i), float(rng.integers(1, 3)), rng.normal()) for i in rng.permutation(6)[:3] + 1000 * y]
        opinions = as_arrays(index, label_weight, trees * k + 3) if index else None
        tree_p = [dict(part).get(y, (1 - sum(p for _, p in part)) * rng.uniform(0.01, 1)) for part in proposals]
        ranked = rank_rows(kernel, [row], np.array([y]), top, top_p, True, opinions, weight, np.array(tree_p)[:, None])
        want, outside = oracle.rank(proposals, row, index)
        assert ranked.top_p[0].sum() <= 1 - outside + 1e-6
        for label, p in zip(ranked.top[0], ranked.top_p[0], strict=True):
            if label > 0:
                assert p == pytest.approx(want[int(label)], rel=2e-3, abs=1e-6)
        assert ranked.inside[0] == (y in want)
        p = want[y] if y in want else oracle.other_probability(proposals, index, tree_p)
        assert ranked.p[0] == pytest.approx(p, rel=2e-3, abs=1e-6)
        missed += y not in want
        oracle.learn(proposals, row, y, weight, index, label_weight, tree_p)
        limits |= {oracle.e, oracle.t} & {0.0, 0.05}
    for numbers, want in zip(kernel.state, oracle.parameters(), strict=True):
        assert numbers == pytest.approx(want, rel=1e-3)
    assert limits == ({0.0, 0.05} if start[0] < 1 else set())
    assert 0.2 * n < missed < 0.8 * n
    assert all(oracle.v) is all(oracle.numbers) is indexed
    assert oracle.e != 1 and oracle.m != 0 and oracle.t != 1


def test_features_so_large_that_scores_overflow_do_no_lasting_harm():
    scorers = reranking.new_scorers(10, 0, 0.35, False)
    scorers.weights.words.word[:] = 0x7FFFFFFF
    top, top_p = np.array([[[1, 2]]]), np.array([[[0.6, 0.3]]])
    ranked = rank_rows(scorers, [[(1, 3.0, 0.0), (2, 3.0, 0.0)]], np.array([1]), top, top_p, False)
    assert np.isfinite(ranked.top_p).all() and ranked.top[0, 0] == 1


def test_probabilities_of_all_classes_keep_those_of_the_best():
    text, test = multiclass(22, 30, 600), multiclass(23, 30, 50)
    with trained("cpt", 0, text, bits=20, trees=2, rerank=True, candidates=3) as model:
        every = go_through(model, test, learn=False, probabilities=True).lists
        best = go_through(model, test, learn=False, top_k=6).lists
    for all_of_them, top in zip(every, best, strict=True):
        tail, rest = all_of_them.pop(0), top.pop(0)
        assert list(all_of_them) == list(range(1, 31)) and tail == 0
        assert all(all_of_them[y] == pytest.approx(p, rel=1e-4) for y, p in top.items())
        assert sum(p for y, p in all_of_them.items() if y not in top) == pytest.approx(rest, abs=1e-4)


def test_better_than_the_trees_alone_where_classes_differ_in_single_features():
    text, test = multiclass(24, 300, 2000, noise=0.5), multiclass(25, 300, 900, noise=0.5)
    with trained("cpt", 300, text, bits=20) as alone, trained("cpt", 300, text, bits=20, rerank=True) as reranked:
        assert go_through(reranked, test, learn=False).loss < go_through(alone, test, learn=False).loss


def test_new_label_becomes_a_candidate():
    text = "".join(f"{y} |w f{y} g\n" for _ in range(30) for y in (1, 2)) + "7 |w f7 g\n" * 10
    with Learner("cpt", 0, bits=20, rerank=True) as model:
        lists = go_through(model, text, top_k=3).lists
    assert 7 not in lists[60]
    assert next(iter(lists[69])) == 7
    assert all(math.isfinite(p) for listing in lists for p in listing.values())


@pytest.mark.parametrize(
    ("row", "number", "value"),
    [
        (0, reranking.MEAN, 1e200), (0, reranking.OF_BAYES, math.nan), (0, reranking.EXPONENT, -0.1),
        (0, reranking.SHARPNESS, 0.0), (0, reranking.MIXTURE, 31.0), (1, reranking.MEAN, 0.0),
        (1, reranking.EXPONENT, 0.5), (1, reranking.SLOPE, math.inf),
    ],
)  # fmt: skip
def test_parameters_that_training_cannot_reach_are_refused(row, number, value):
    scorers = reranking.new_scorers(4, 0, 0.35, True)
    arrays = saved(reranking.serialize, scorers)
    state = scorers.state.copy()
    state[row, number] = value
    with pytest.raises(ModelError, match=r"'scorers\.state' does not fit"):
        restored({**arrays, "scorers.state": state}, reranking.serialize, reranking.new_scorers(4, 0, 0.35, True))


@pytest.mark.parametrize(
    ("trees", "split", "bits"), [(1, "trees", (11, 8)), (4, "trees", (9, 8)), (3, "halves", (8, 10))]
)
def test_table_split_divides_the_weights(trees, split, bits):
    """Trees get 2 * 2**b slots in all and scorers 2**b / 4, or each half of 2 * 2**b."""
    assert table_bits(CptOptions(rerank=True, trees=trees, table_split=split), 10) == bits


def test_further_passes_teach_the_scorers_but_not_what_they_share():
    text = multiclass(31, 12, 90)  # so few that the first pass leaves none out, see test_further_passes.py
    options = {"rerank": True, "bits": 16, "learning_rate": 0.5}
    with (
        for_passes(3, "cpt", 12, **options) as several,
        Learner("cpt", 12, **options) as one,
    ):
        for model in (several, one):
            model.learn_many(text)
            model.end_pass()
        first = several.core.reduction.scorers.state.copy()
        words = several.core.reduction.scorers.weights.words.word.copy()
        assert np.array_equal(first, one.core.reduction.scorers.state)
        several.core.reduction.begin_pass(1)
        for model in (several, one):
            model.learn_many(text)
        assert np.array_equal(first, several.core.reduction.scorers.state)
        assert not np.array_equal(words, several.core.reduction.scorers.weights.words.word)
        assert not np.array_equal(first, one.core.reduction.scorers.state)


def test_predictions_do_not_change_which_examples_further_passes_learn():
    lines = multiclass(31, 12, 400).splitlines()
    states = []
    for predicts in (False, True):
        with for_passes(2, "cpt", 12, rerank=True, bits=12) as model:
            for number in range(2):
                model.core.reduction.begin_pass(number)
                for begin in range(0, len(lines), 37):
                    model.learn_many(lines[begin : begin + 37])
                    if predicts:
                        model.predict_many(lines[:50])
                model.end_pass()
            states.append(state_of(model))
    assert states[0] == states[1]


def test_after_all_passes_every_example_is_learned_as_by_a_stored_model(tmp_path):
    lines = multiclass(31, 12, 400).splitlines()
    with for_passes(2, "cpt", 12, rerank=True, bits=12) as model:
        for number in range(2):
            model.core.reduction.begin_pass(number)
            model.learn_many(lines)
            model.end_pass()
        model.core.reduction.begin_pass(0)
        before = model.core.contents().examples
        model.save(tmp_path / "m")
        model.learn_many(lines)
        assert model.core.contents().examples == before + len(lines)
        with load(tmp_path / "m") as stored:
            stored.learn_many(lines)
            assert state_of(stored).arrays == state_of(model).arrays
