"""A candidate learns and predicts as the library does, and a stream gives any range of the examples."""

import numpy as np
import pytest
import streams

import xclass
from xclass.api import configuration
from xclass.api.learner_core import LearnerCore
from xclass.cache import source as cache
from xclass.data import batch_ops
from xclass.errors import DataError
from xclass.kernels import jit
from xclass.options.declare import between, one_of
from xclass.reductions.core.spec import LearnerUse
from xclass.text import reader
from xclass.tuning.results import CHUNKS, Candidate, Span
from xclass.tuning.settings import SearchSpace, SearchStream, Setting

K, N = 12, 1500
LINES = streams.multiclass(3, K, N, weights=(1, 2), unlabelled=0.1).splitlines()
SPANS = (Span(((0, 500),), (500, 800)), Span(((0, 1200),), (1200, N)))


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    jit.activate()
    path = tmp_path_factory.mktemp("tuning") / "train.vw"
    path.write_text("".join(line + "\n" for line in LINES))
    made = SearchStream(
        configuration.configured("multiclass", 0, {}), reader.ReaderOptions(data=(str(path),)), cache.CacheOptions()
    )
    yield made
    made.close()


def space(stream, reduction="multiclass", classes=0, metric="error", **fixed):
    return SearchSpace(stream, {"bits": 14, **fixed}, (reduction, classes), metric, {})


def expected(reduction, classes, span, passes=1, **options):
    """Return the losses of each metric on the judged lines of a Learner that has learned the others."""
    config = configuration.configured(reduction, classes, {"bits": 14, **options}, LearnerUse(passes=passes))
    with xclass.Learner.of(LearnerCore(config)) as model:
        lines = [line for low, high in span.learned for line in LINES[low:high]]
        for number in range(passes):
            model.core.reduction.begin_pass(number)
            model.learn_many(lines)
            if number + 1 < passes or model.core.unlearned:
                model.end_pass()
        judged = [line.split() for line in LINES[span.judged[0] : span.judged[1]] if line[0] not in " |"]
        texts = [" ".join(words) for words in judged]
        label = np.array([int(words[0]) for words in judged])
        weight = np.array([float(words[1]) if words[1][0].isdigit() else 1.0 for words in judged])
        listed, p = model.predict_many(texts, 5) if reduction != "ect" else (label[:, None], None)
        wrong = model.predict_many(texts) != label
        classes_, table = model.probabilities(texts) if p is not None else ([], None)
        found = {int(c): i for i, c in enumerate(classes_)}
        p = np.array([0.0] if table is None else [table[i, found[y]] for i, y in enumerate(label)])
        losses = {"log_loss": -np.log(np.maximum(p, 1e-9)), "squared": (1 - p) ** 2}
        return {
            "error": np.average(wrong, weights=weight),
            **{m: np.average(v, weights=weight if table is not None else None) for m, v in losses.items()},
            "top5": np.average((listed != label[:, None]).all(axis=1), weights=weight),
        }


def test_a_stream_gives_any_range(stream):
    assert (stream.n, stream.highest, stream.groups, stream.plain) == (N, K, "nw", False)
    assert stream.mean_features == 5
    found = [(first, batch.label.copy()) for first, batch in stream.batches(((3, 7), (700, 1500), (9, 9)))]
    labels = np.concatenate([label for _, label in found])
    with xclass.Learner("oaa", classes=K):
        whole = np.concatenate([batch.label for batch in xclass.read_vw(stream._source._files[0])])
    assert np.array_equal(labels, np.concatenate([whole[3:7], whole[700:1500]]), equal_nan=True)
    assert found[0][0] == 3 and found[1][0] == 700


def test_several_threads_may_read_at_the_same_time(stream):
    one, other = (stream.batches(((low, N),)) for low in (0, 100))
    first, second = next(one)[1], next(other)[1]
    again = next(stream.batches(((0, N),)))[1]
    assert np.array_equal(first.index, again.index)
    shared = batch_ops.cut(again, 100, again.n)
    assert np.array_equal(batch_ops.cut(second, 0, shared.n).index, shared.index)


@pytest.mark.parametrize("metric", ["error", "log_loss", "squared", "top5"])
def test_losses_are_those_of_the_library(stream, metric):
    candidate = Candidate(space(stream, metric=metric), Setting("multiclass", 0))
    for span in SPANS:  # the second continues from the first
        result = candidate.run(span, lambda: None)
        assert result.loss == pytest.approx(expected("multiclass", None, span)[metric], abs=1e-6)
        assert result.sums.shape == (CHUNKS,) and (result.weights > 0).all()
    assert candidate.size == 1200


@pytest.mark.parametrize(
    ("reduction", "classes", "options"),
    [
        ("oaa", K, {}),
        ("recall_tree", K, {}),
        ("softmax_tree", K, {}),
        ("ect", K, {}),
        ("ect", K, {"quadratic": ("::",)}),
        ("multiclass", 0, {"ngram": ("2",)}),
        ("multiclass", 0, {"cpt_tree": "kmeans"}),
    ],
)
def test_every_reduction_learns_as_in_the_library(stream, reduction, classes, options):
    setting = Setting(reduction, classes, tuple(options.items()))
    candidate = Candidate(space(stream, reduction, classes), setting)
    for span in SPANS:
        assert candidate.run(span, lambda: None).loss == pytest.approx(
            expected(reduction, classes or None, span, **options)["error"]
        )


def test_several_passes_begin_anew(stream):
    setting = Setting("multiclass", 0, (("passes", 3),))
    candidate = Candidate(space(stream), setting)
    for span in (*SPANS, Span(((0, 600), (900, N)), (600, 900))):
        result = candidate.run(span, lambda: None)
        assert candidate.size == 0
        assert result.loss == pytest.approx(expected("multiclass", None, span, passes=3)["error"])


def test_a_part_in_the_middle_is_not_continued_to(stream):
    candidate = Candidate(space(stream), Setting("multiclass", 0))
    candidate.run(SPANS[0], lambda: None)
    span = Span(((0, 600), (900, N)), (600, 900))
    assert candidate.run(span, lambda: None).loss == pytest.approx(expected("multiclass", None, span)["error"])


def test_an_exception_between_batches_ends_the_work_and_frees_the_learner(stream):
    candidate = Candidate(space(stream), Setting("multiclass", 0))

    def check():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        candidate.run(SPANS[0], check)
    assert candidate.size == 0
    assert candidate.run(SPANS[0], lambda: None).failed == ""


def test_names_of_classes_are_numbered_once(tmp_path):
    path = tmp_path / "names.vw"
    path.write_text(
        "".join(f"class{line.split()[0]} |w {line.partition('|w ')[2]}\n" for line in LINES if line[0] not in " |")
    )
    config = configuration.configured("multiclass", 0, {"learn_names": True})
    made = SearchStream(config, reader.ReaderOptions(data=(str(path),)), cache.CacheOptions())
    names = SearchSpace(made, {"learn_names": True}, None, "error", {})
    assert made.facts("").classes == K and len(made.names) == K
    for setting in names.reductions:
        result = Candidate(names, setting).run(Span(((0, 1000),), (1000, 1300)), lambda: None)
        assert result.loss < 0.5
    made.close()


def test_data_without_labels_are_refused(tmp_path):
    path = tmp_path / "none.vw"
    path.write_text("|w a\n" * 10)
    with pytest.raises(DataError, match="0 examples have a label; a search needs thousands"):
        SearchStream(
            configuration.configured("multiclass", 0, {}), reader.ReaderOptions(data=(str(path),)), cache.CacheOptions()
        )


# -- the space of settings ---------------------------------------------------------------------------------------------


def test_the_first_settings_change_one_option_each(stream):
    free = SearchSpace(stream, {"bits": 14}, None, "error", {})
    first = free.first()
    assert first[0] == Setting("multiclass", 0) == free.default
    assert {setting.reduction for setting in first} == {"multiclass", "softmax_tree", "oaa"}
    assert all(len(setting.changes) <= 1 for setting in first) and len(set(first)) == len(first)
    texts = [free.text(setting) for setting in first]
    assert texts[0] == "(defaults)" and "--passes 3" in texts[:4] and f"--oaa {K}" in texts and "--ngram 2" in texts
    assert not any("-b" in text for text in texts)


def test_fixed_options_are_not_searched(stream):
    fixed = SearchSpace(stream, {"passes": 2, "learning_rate": 0.3, "bits": 14}, ("recall_tree", K), "error", {})
    assert {"passes", "learning_rate", "bits"}.isdisjoint(fixed.searches("recall_tree"))
    assert fixed.passes(fixed.default) == 2
    assert {"max_depth", "bern_hyper", "ngram"} <= set(fixed.searches("recall_tree"))


def test_scorers_of_lists_have_their_own_search(tmp_path):
    path = tmp_path / "lists.vw"
    path.write_text(streams.multilabel(1, 9, 1200))
    options = reader.ReaderOptions(data=(str(path),))
    lists = SearchStream(configuration.configured("multilabel", 0, {}), options, cache.CacheOptions())
    searches = SearchSpace(lists, {}, ("multilabel", 0), "error", {}).searches("multilabel")
    lists.close()
    assert {"arow_r", "ngram", "passes"} <= searches.keys()
    assert {"learning_rate", "l1", "loss_function", "layout", "rank_by"}.isdisjoint(searches)


def test_reductions_that_cannot_have_a_fixed_option_are_left_out(stream):
    assert [one.reduction for one in SearchSpace(stream, {"trees": 2}, None, "error", {}).reductions] == ["multiclass"]


def test_ranges_replace_the_declared_searches(stream):
    found = {"learning_rate": between(0.1, 1.0, "log"), "trees": one_of(1, 2)}
    ranged = SearchSpace(stream, {}, None, "error", found)
    assert set(ranged.searches("multiclass")) == {"learning_rate", "trees"}
    assert [one.reduction for one in ranged.reductions] == ["multiclass"]


def test_words_are_those_of_the_command_line(stream):
    free = space(stream)
    setting = free.default.changed("ngram", ("2", "a3")).changed("passes", 4).changed("learning_rate", 0.25)
    assert free.words(setting) == ["--multiclass", "-l", "0.25", "--ngram", "2", "--ngram", "a3", "--passes", "4"]
    assert free.words(Setting("softmax_tree", 7)) == ["--softmax_tree", "7"]
    assert setting.changed("ngram", ()).changed("passes", None).changes == (("learning_rate", 0.25),)
