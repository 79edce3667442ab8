"""Probabilities of classes: lists of the best and of all, and their summary, against plain numpy."""

import math

import numpy as np
import pytest
from command import learn
from command import xclass as run
from effort import tries
from harness import batch_of, configure, go_through_stages, learner_of
from hypothesis import given, settings
from hypothesis import strategies as st
from library import fact, go_through, state_of, with_scores
from streams import multiclass

import xclass
from xclass.kernels import top_k
from xclass.reductions import registry
from xclass.reductions.core import calibration, probabilities

K = 23
BITS = ("-b", 20)  # for runs of the command
GIVING = pytest.mark.parametrize("name", ["oaa", "recall_tree", "cpt"])
LISTINGS = pytest.mark.parametrize(
    "listing", [{"top_k": 3}, {"probabilities": True}], ids=lambda listing: next(iter(listing))
)
TEXT = multiclass(1, K, 400, noise=0.4, tags=True, weights=(1, 0.5, 2, 0), unlabelled=0.1, popular=1.5)
SMALL = {"recall_tree": {"max_candidates": 4}}  # leaves classes out


def learner(name: str, k: int = K, **options) -> xclass.Learner:
    return xclass.Learner(name, k, **{"bits": 20, **SMALL.get(name, {}), **options})


def pairs(line: str) -> list[tuple[int, float]]:
    """The pairs of a line, without its tag."""
    return [(int(word.split(":")[0] or 0), float(word.split(":")[1])) for word in line.split(" ") if ":" in word]


def labels_of(text: str) -> list[tuple[int | None, float]]:
    """Label and weight of every line."""
    heads = [line.split("|")[0].split(" ") for line in text.splitlines()]
    return [(int(words[0]), float(words[1])) if words[0] else (None, 0.0) for words in heads]


# -- the best of many


@pytest.mark.bounds
@pytest.mark.plain
@settings(max_examples=tries(150), deadline=None)
@given(
    score=st.lists(st.sampled_from([0.0, -1.0, 2.5, 7.0, 1e-3]) | st.floats(-9, 9, width=32), max_size=40),
    k=st.integers(0, 12),
    ends=st.tuples(st.integers(0, 5), st.integers(0, 5)),
)
def test_rank_is_a_stable_sort(score, k, ends):
    start, end = min(ends[0], len(score)), max(len(score) - ends[1], min(ends[0], len(score)))
    place = np.full(k, -1)
    size = top_k.rank(np.array(score, np.float32), start, end, place)
    want = sorted(range(start, end), key=lambda j: (-np.float32(score[j]), j))[:k]
    assert place[:size].tolist() == want


@pytest.mark.parametrize("order", ["rising", "falling", "equal"])
def test_rank_of_many_in_any_order(order):
    score = {"rising": np.arange(9999), "falling": -np.arange(9999), "equal": np.zeros(9999)}[order].astype(np.float32)
    place = np.empty(1000, np.int64)
    assert top_k.rank(score, 0, 9999, place) == 1000
    assert place.tolist() == (list(range(9998, 8998, -1)) if order == "rising" else list(range(1000)))


def test_listing_ends_with_the_remaining_probability():
    label, p = np.array([[3, 1], [7, 0], [0, 0]]), np.array([[0.5, 0.25], [0.75, 0], [0, 0]])
    listing = probabilities.class_lists(label, p, np.array([2, 1, 0]), np.array([0.25, 0.25, 1]))
    assert listing.labels.tolist() == [3, 1, 0, 7, 0, 0]
    assert listing.scores.tolist() == [0.5, 0.25, 0.25, 0.75, 0.25, 1]
    assert listing.start.tolist() == [0, 3, 5, 6]


# -- one against all


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "more",
    [{}, {"loss_function": "logistic"}, {"layout": "vw"}, {"link": "logistic"}, {"oaa_subsample": 3}],
    ids=str,
)
@pytest.mark.parametrize("top_k", [1, 5, K, 1000])
def test_top_k_of_oaa_is_that_of_its_raw_scores(top_k, more):
    with with_scores("oaa", K, bits=20, **more) as model:
        results = go_through(model, TEXT, top_k=top_k)
    for number, (got, raw) in enumerate(zip(results.lists, results.scores, strict=True)):
        assert list(raw) == list(range(1, K + 1))
        scores = np.array(list(raw.values()), np.float32)
        if "link" in more:
            chance = scores
        elif "loss_function" in more:
            chance = 1 / (1 + np.exp(-scores))
        else:
            chance = 0.02 / K + (1 - 0.02 / K) * (1 + scores) / 2
        chance = chance / chance.sum()
        want = np.argsort(-scores, kind="stable")[:top_k]
        assert list(got) == [*(want + 1), 0]
        *p, rest = got.values()
        np.testing.assert_allclose(p, chance[want], rtol=1e-5, atol=1e-7, err_msg=str(number))
        assert rest == pytest.approx(1 - chance[want].sum() if top_k < K else 0, abs=1e-6)
    assert results.predictions == [next(iter(got)) for got in results.lists]


def test_top_k_and_all_probabilities_of_oaa_are_the_same_numbers():
    some, every, best = [], [], []
    for outputs, options in ((some, {"top_k": 4}), (every, {"probabilities": True}), (best, {})):
        with learner("oaa") as model:
            results = go_through(model, TEXT, **options)
            outputs += results.lists or results.predictions
    for got, p, predicted in zip(some, every, best, strict=True):
        assert list(p) == list(range(1, K + 1))
        assert sum(p.values()) == pytest.approx(1, abs=3e-6)
        del got[0]
        assert list(got.items()) == sorted(p.items(), key=lambda item: (-item[1], item[0]))[:4]
        assert next(iter(got)) == predicted


@pytest.mark.parametrize("options", [("--sgd", "-l", 0.05), ("--loss_function", "logistic")], ids=str)
def test_raw_probabilities_are_the_estimates_of_the_regressors(tmp_path, options):
    """By the command, by its squared loss and by the library; a logistic regressor estimates sigmoid(score)."""
    text = multiclass(1, K, 400, noise=0.4, weights=(1, 0.5, 2, 0), unlabelled=0.1)
    (tmp_path / "d").write_text(text)
    learned = run("--oaa", K, "-b", 18, *options, "--probabilities", "raw", "-p", "p", "-f", "m", "d", cwd=tmp_path)
    p = [dict(pair.split(":") for pair in line.split()[:K]) for line in (tmp_path / "p").read_text().splitlines()]
    labelled = [(line.split("|")[0].split(), own) for line, own in zip(text.splitlines(), p, strict=True)]
    weights = [float(words[1]) if len(words) > 1 else 1 for words, _ in labelled if words]
    losses = [(1 - float(own[words[0]])) ** 2 for words, own in labelled if words]
    assert fact(learned.err, "average squared loss") == pytest.approx(np.average(losses, weights=weights), abs=1e-5)
    assert "log loss" not in learned.err and "expected calibration error" in learned.err
    words = ("-i", "m", "-t", "--quiet", "--probabilities")
    listed = run(*words, "raw", "-p", "stdout", stdin=text, cwd=tmp_path).lines
    with xclass.load(str(tmp_path / "m")) as model:
        classes, raw = model.probabilities(text, raw=True)
        _, normalized = model.probabilities(text)
        if "logistic" in options:
            np.testing.assert_allclose(raw, 1 / (1 + np.exp(-model.scores(text).scores.reshape(raw.shape))), rtol=1e-4)
    found = [[float(pair.split(":")[1]) for pair in line.split()[:K]] for line in listed]
    np.testing.assert_allclose(found, raw, rtol=1e-4, atol=1e-6)
    assert classes.tolist() == list(range(1, K + 1)) and np.abs(raw.sum(axis=1) - 1).max() > 0.05
    np.testing.assert_allclose(normalized.sum(axis=1), 1, atol=1e-5)


def test_the_library_refuses_raw_probabilities_of_other_reductions():
    with (
        xclass.Learner("recall_tree", K, bits=12) as model,
        pytest.raises(xclass.UsageError, match="raw gives what each regressor of oaa estimates"),
    ):
        model.probabilities("| a", raw=True)


def test_classes_from_0_are_listed_as_such():
    """By the command: in the library, class 0 cannot be distinguished from the remaining classes."""
    text = multiclass(2, K, 60, lowest=0)
    for line in learn("--oaa", K, *BITS, "-p", "stdout", "--top_k", K, "--indexing", 0, "--quiet", stdin=text).lines:
        *got, (other, rest) = pairs(line)
        assert sorted(label for label, _ in got) == list(range(K))
        assert (other, rest) == (0, 0)


# -- recall tree


def candidates_by_plain_numpy(tree, batch, plan):
    """Of every example: candidates, their scores and probabilities, and that of its label."""
    listed_weight, true_weight = {}, {}
    for i in range(batch.n):
        a = plan.node[i]
        items = plan.item[plan.first[i] : plan.scored[i]].tolist()
        recall = (true_weight.get(a, 0) + 0.5) / (listed_weight.get(a, 0) + 1)
        recall = 1.0 if len(items) == tree.classes else recall if items else 0.0
        power = 1 + 2 / float(tree.settings.margin)
        odds = np.exp(power * plan.score[plan.first[i] : plan.scored[i]].astype(np.float64))
        p = recall * odds / odds.sum() if items else odds
        own = None
        if not np.isnan(batch.label[i]):
            y = int(batch.label[i]) - 1
            others = tree.classes - len(items)
            own = p[items.index(y)] if y in items else (1 - recall) / others
            if batch.weight[i] > 0 and items:
                weight = float(batch.weight[i])
                listed_weight[a] = 0.99 * listed_weight.get(a, 0) + weight
                true_weight[a] = 0.99 * true_weight.get(a, 0) + weight * (y in items)
        yield items, plan.score[plan.first[i] : plan.scored[i]], p, own


@pytest.mark.sampled(2)
@pytest.mark.bounds
@pytest.mark.parametrize("layout", ["odd", "vw"])
@pytest.mark.parametrize("candidates", [1, 4, K])
@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",)], ids=str)
def test_probabilities_of_the_recall_tree_are_those_of_its_scores(layout, candidates, words):
    words = (*words, "--layout", layout, "--max_candidates", candidates, "--bern_hyper", 0.1)
    config = configure("--recall_tree", K, *BITS, *words)
    tree = learner_of(config)
    batch = batch_of(config, TEXT)
    task, plan = go_through_stages(tree, batch)
    tree.close()
    squared = weights = 0.0
    covered = 0
    for i, (items, scores, p, own) in enumerate(candidates_by_plain_numpy(tree, batch, plan)):
        part = slice(task.class_lists.start[i], task.class_lists.start[i + 1])
        labels, got = task.class_lists.labels[part].tolist(), task.class_lists.scores[part]
        assert labels[-1] == 0
        order = np.argsort(-scores, kind="stable")[:3] if "--top_k" in words else np.argsort(items)
        assert labels[:-1] == [items[j] + 1 for j in order]
        np.testing.assert_allclose(got[:-1], p[order], rtol=1e-5)
        assert got[-1] == pytest.approx(1 - p[order].sum(), abs=1e-6)
        assert got.sum() == pytest.approx(1, abs=1e-6)
        if own is not None:
            squared += batch.weight[i] * (1 - own) ** 2
            weights += batch.weight[i]
            covered += own > 0 and int(batch.label[i]) - 1 in items
            assert task.loss[i] == (batch.weight[i] if labels[0] != batch.label[i] else 0) or "--top_k" not in words
    assert tree.report.squared_loss == pytest.approx(squared, rel=1e-6)
    assert tree.report.weight == weights
    assert 20 < covered < (~np.isnan(batch.label)).sum()


def test_recall_of_a_node_is_what_progressive_validation_found():
    """A tree that cannot route keeps one candidate, the label of two thirds of the examples."""
    text = "".join(f"{1 + i % 3 // 2} |w a\n" for i in range(600))
    with learner("recall_tree", 10, max_depth=0, max_candidates=1) as model:
        lists = go_through(model, text, top_k=2).lists
    for got in lists[-200:]:
        assert list(got) == [1, 0]
        assert got[1] == pytest.approx(2 / 3, abs=0.02)
        assert got[0] == pytest.approx(1 / 3, abs=0.02)


# -- conditional probability tree


@pytest.mark.parametrize("more", [{"exact": True}, {"trees": 3}, {"beam": 1}], ids=str)
def test_all_probabilities_of_the_tree_are_its_top_k_of_all(more):
    test = multiclass(2, K, 100)
    with learner("cpt", **more) as probable, learner("cpt", **more) as plain:
        every, best = go_through(probable, TEXT, probabilities=True).lists, go_through(plain, TEXT).predictions
        assert state_of(probable) == state_of(plain)
        some, whole = (
            go_through(probable, test, False, **way).lists for way in ({"top_k": 1000}, {"probabilities": True})
        )
    assert every[0] == {0: 1}
    for p, predicted in zip(every[1:], best[1:], strict=True):
        *labels, last = p
        assert labels == sorted(labels)
        assert (last, p[0]) == (0, 0)
        assert sum(p.values()) == pytest.approx(1, abs=1e-6)
        if "exact" in more:
            assert p[predicted] == max(p.values())
    if "beam" not in more:
        for few, many in zip(some, whole, strict=True):
            del few[0]
            assert few == pytest.approx({label: many[label] for label in few}, rel=1e-6, abs=1e-9)
            assert "trees" in more or len(few) == len(many) - 1


# -- summary and notes


@GIVING
@LISTINGS
def test_summary_and_calibration_are_those_of_the_lists(name, listing):
    with learner(name) as model:
        results = go_through(model, TEXT, perplexity=True, calibration="c", **listing)
        (table,) = model.core.reduction.results()
    weights = squared = log = known = missed = wrong = 0.0
    bins = np.zeros((3, calibration.BINS))
    exact = "probabilities" in listing
    for (label, weight), p in zip(labels_of(TEXT), results.lists, strict=True):
        if label is None:
            continue
        rest = p.pop(0, 0.0)
        weights += weight
        missed += weight * (label not in p)
        best = max(p, key=p.get, default=0)
        forecast = p.get(best, 0.0)
        if not exact or list(p.values()).count(forecast) <= 1:
            bins[:, min(int(forecast * calibration.BINS), calibration.BINS - 1)] += np.array(
                [weight, weight * forecast, weight * (best == label)]
            )
        wrong += weight * (best != label)
        own = p.get(label, rest / (K - len(p)) if name == "recall_tree" else 0.0)
        squared += weight * (1 - own) ** 2
        if own > 0:
            known += weight
            log -= weight * math.log(own)
    if exact:
        assert fact(results.summary, "average squared loss") == pytest.approx(squared / weights, rel=1e-4)
        assert fact(results.summary, "average log loss") == pytest.approx(log / known, rel=1e-4)
        assert fact(results.summary, "perplexity") == pytest.approx(math.exp(log / known), rel=1e-3)
        assert "top-" not in results.summary
    else:
        assert results.loss == wrong
        assert fact(results.summary, "top-3 error") == pytest.approx(missed / weights, abs=1e-6)
        assert missed < wrong
    error = np.abs(bins[1] - bins[2]).sum() / bins[0].sum()
    assert fact(results.summary, "expected calibration error") == pytest.approx(error, abs=0.02)
    assert sum(float(line.split("\t")[4]) for line in table.lines[1:]) == pytest.approx(weights, abs=1e-3)


@GIVING
@LISTINGS
def test_probabilities_that_are_listed_come_with_their_calibration_error(name, listing):
    errors = []
    for more in ({}, {"calibration": "c"}):
        with learner(name) as model:
            errors.append(fact(go_through(model, TEXT, **listing, **more).summary, "expected calibration error"))
    assert errors[0] == errors[1]


@GIVING
def test_summary_without_listing_has_no_probabilities(name):
    with learner(name) as model:
        summary = go_through(model, TEXT).summary
        assert not model.core.reduction.results()
    for words in ("top-", "perplexity", "calibration"):
        assert words not in summary
    if name != "cpt":
        assert "log loss" not in summary


@pytest.mark.parametrize("name", ["oaa", "recall_tree"])
def test_label_that_is_no_class_is_counted_apart(name):
    with learner(name, 3, on_bad_line="vw") as model:
        summary = go_through(model, "1 |w a\n2 |w b\n9 |w a\n2 |w b\n", top_k=2).summary
    assert "labels that are no class = 1, not counted in the log loss\n" in summary


# -- what asking leaves alone


@GIVING
@LISTINGS
def test_listing_changes_neither_learning_nor_predictions(name, listing):
    with learner(name) as plain, learner(name) as model:
        predictions = go_through(plain, TEXT).predictions
        results = go_through(model, TEXT, perplexity=True, calibration="c", **listing)
        a, b = state_of(plain), state_of(model)
    if name == "oaa" and "probabilities" in listing:  # which counts another loss, as VW does
        a, b = (each._replace(counters={**each.counters, "log_loss_sum": None}) for each in (a, b))
    assert a == b
    assert results.predictions == predictions
    if "top_k" in listing:
        assert [next(iter(model)) for model in results.lists] == predictions


@GIVING
def test_names_of_classes(name):
    with xclass.Learner(name, 3, named_labels="cat,dog,élan", bits=12) as model:
        model.learn_many("cat |w a\ndog |w b\ncat |w a\n")
        labels, p = model.predict_many("|w a\n|w b\n", 1)
        assert labels.tolist() == [["cat"], ["dog"]]
        assert ((p > 0.3) & (p <= 1)).all()


def test_recall_tree_of_vw_gives_probabilities_under_logistic_loss():
    with xclass.Learner("recall_tree", K, vw_exact=True, loss_function="logistic") as model:
        lists = go_through(model, TEXT, top_k=2).lists
    assert [sum(p.values()) for p in lists] == pytest.approx([1] * 400, abs=1e-6)


# -- runs of the command


@GIVING
@LISTINGS
def test_lists_are_written_with_tags_and_names(name, listing):
    words = ("--top_k", 3) if "top_k" in listing else ("--probabilities",)
    text = "".join(f"class{line}\n" if line[0].isdigit() else f"{line}\n" for line in TEXT.splitlines())
    names = ",".join(f"class{y}" for y in range(1, K + 1))
    small = ("--max_candidates", 4) if name == "recall_tree" else ()
    run_of = (f"--{name}", K, *small, *BITS, "-p", "stdout", "--quiet")
    lines = learn(*run_of, *words, stdin=TEXT).lines
    with learner(name) as model:
        lists = go_through(model, TEXT, **listing).lists
    for line, example, p in zip(lines, TEXT.splitlines(), lists, strict=True):
        assert [label for label, _ in pairs(line)] == list(p)
        assert [value for _, value in pairs(line)] == pytest.approx(list(p.values()), rel=1e-5, abs=1e-9)
        assert line.partition(" tag")[2] == example.partition("|")[0].partition("tag")[2]
    named = learn(*run_of, *words, "--named_labels", names, stdin=text).lines
    assert [line.replace("class", "") for line in named] == lines


def test_listing_does_not_change_the_link_of_oaa(tmp_path):
    words = ("--oaa", K, *BITS, "--link", "logistic")
    learn(*words, "-f", "a", stdin=TEXT, cwd=tmp_path)
    learn(*words, "--top_k", 3, "--calibration", "c", "-p", "p", "-f", "b", stdin=TEXT, cwd=tmp_path)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# -- refusals


@pytest.mark.parametrize("words", [("--top_k", 3), ("--probabilities",), ("--perplexity",), ("--calibration", "c")])
def test_listing_is_refused_for_reductions_without_probabilities(tmp_path, words):
    result = run(*words, "--binary", stdin="1 |w a\n")
    assert result.status == 2
    estimating = [one for one in registry.REDUCTIONS if one.probabilities and one.labels == "multiclass"]
    assert result.err == (
        f"xclass: {words[0]} needs probabilities of classes, which the learner without a reduction does not estimate; "
        f"choose one of --multiclass, --hsm, {', '.join(f'--{record.name}' for record in estimating)}\n"
    )
    with xclass.Learner("scalar") as model:
        model.save(tmp_path / "m")
    assert run("-i", tmp_path / "m", "-t", *words, stdin="1 |w a\n").status == 2
