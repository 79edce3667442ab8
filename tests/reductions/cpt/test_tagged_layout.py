"""Tagged words in trees and scorers: when they are the default, how tables grow, and that growing changes nothing else.

The words themselves are compared with an oracle in test_cpt.py, test_pecoc.py and test_reranking.py.
"""

import itertools

import numpy as np
import pytest
from command import learn
from library import fact, go_through, state_of, summary_of, trained
from streams import multiclass

from xclass import Learner, ModelError, UsageError, load
from xclass.abilities.describe.cpt import word_tables
from xclass.binary import tagged_words
from xclass.model import model_file
from xclass.reductions.cpt import options as cpt_options
from xclass.reductions.multiclass import reranking

CLASSES = 40
TEXT = multiclass(41, CLASSES, 600, weights=(1, 0.5, 2, 0), unlabelled=0.1)
TEST = multiclass(42, CLASSES, 150)
GROWING = {"layout": "tagged", "max_doublings": 6}
LEARNERS = {
    "tree": {"bits": 4},
    "wide": {"bits": 4, "cpt_arity": 4},
    "trees": {"bits": 5, "trees": 3},
    "reranked": {"bits": 5, "trees": 3, "rerank": True},
    "one reranked": {"bits": 4, "rerank": True, "cpt_arity": 8},
}


def doublings(model: Learner) -> list[int]:
    """Return how often each table was doubled."""
    return [*map(tagged_words.doublings, word_tables(model.core.reduction).values())]


def sizes(model):
    return [len(words.word) for words in word_tables(model.core.reduction).values()]


def in_use(model):
    return [int(np.count_nonzero(words.word)) for words in word_tables(model.core.reduction).values()]


def lost(model: Learner) -> int:
    """Return how many words were evicted or refused."""
    numbers = [tagged_words.EVICTED, tagged_words.REFUSED]
    return sum(int(words.state[numbers].sum()) for words in word_tables(model.core.reduction).values())


# -- when they are the default


@pytest.mark.parametrize(
    ("reduction", "options", "layout"),
    [
        ("cpt", {}, "tagged"),
        ("cpt", {"cpt_arity": 8, "loss_function": "logistic"}, "tagged"),
        ("cpt", {"normalize_features": "columns"}, "tagged"),
        ("cpt", {"sgd": True}, "tagged"),
        ("cpt", {"normalize_features": "none"}, "tagged"),
        ("multiclass", {}, "tagged"),
        ("oaa", {}, "odd"),
    ],
)
def test_layout_of_a_new_model(reduction, options, layout, tmp_path):
    with trained(reduction, 3, "1 | a\n2 | b\n3 | c\n", bits=8, **options) as model:
        assert model.options["layout"] == layout
        names = {name.rpartition(".")[2] for name in model.core.contents().arrays if name.startswith("weights.")}
        assert {"w", "g"} <= names if layout == "odd" else {"word", "counts", "doublings"} <= names
        assert ("weights in use" in summary_of(model)) is (layout == "tagged")
        model.save(tmp_path / "m")
    with load(tmp_path / "m") as model:
        assert model.options["layout"] == layout


# -- tables that grow


def test_without_bits_tables_begin_small_and_may_grow(monkeypatch):
    monkeypatch.setattr("xclass.system.memory.available", lambda: None)
    with Learner("multiclass") as model:
        assert (model.options["bits"], model.options["max_doublings"]) == (20, 6)
    with Learner("multiclass", bits=12) as model:
        assert (model.options["bits"], model.options["max_doublings"]) == (12, 0)
    with Learner("multiclass", bits=12, max_doublings=2) as model:
        assert (model.options["bits"], model.options["max_doublings"]) == (12, 2)
    with Learner("cpt", max_doublings=2) as model:
        assert (model.options["bits"], model.options["max_doublings"]) == (20, 2)


@pytest.mark.parametrize("times", [0, 1, 5])
def test_tables_do_not_grow_beyond_a_quarter_of_the_free_memory(times, monkeypatch):
    options = cpt_options.CptOptions(trees=4, rerank=True, table_split="trees")
    words = {"trees": 4, "rerank": True, "index_slots": 0}
    free = 4 * cpt_options.weight_bytes(options, tagged_words.START_BITS) << times
    monkeypatch.setattr("xclass.system.memory.available", lambda: free)
    with Learner("cpt", **words) as model:
        assert model.options["max_doublings"] == times
    monkeypatch.setattr("xclass.system.memory.available", lambda: 2 * free - 1)
    with Learner("cpt", **words) as model:
        assert model.options["max_doublings"] == times


@pytest.mark.parametrize("name", LEARNERS)
def test_given_size_never_grows(name):
    with Learner("cpt", CLASSES, **LEARNERS[name]) as model:
        assert model.options["max_doublings"] == 0
        before = sizes(model)
        model.learn_many(TEXT)
        assert doublings(model) == [0] * len(doublings(model))
        assert sizes(model) == before
        assert lost(model) > 1000


@pytest.mark.parametrize("name", LEARNERS)
def test_growing_tables_learn_the_same_on_any_number_of_threads(name, monkeypatch):
    states, results = [], []
    for processors in (1, 2, 5):
        monkeypatch.setattr("xclass.system.thread_limit.processors", lambda processors=processors: processors)
        with Learner("cpt", CLASSES, **LEARNERS[name], **GROWING) as model:
            results.append((go_through(model, TEXT), go_through(model, TEST, learn=False, top_k=3)))
            states.append(state_of(model))
            assert min(doublings(model)) >= 3
    assert results[0] == results[1] == results[2]
    assert states[0] == states[1] == states[2]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("size", [1, 7, 250])
@pytest.mark.parametrize("name", LEARNERS)
def test_growing_tables_learn_the_same_however_batches_are_cut(name, size):
    lines = TEXT.splitlines()[:300]
    options = {**LEARNERS[name], **GROWING}
    with trained("cpt", CLASSES, lines, **options) as whole, Learner("cpt", CLASSES, **options) as model:
        predicted = []
        for begin in range(0, len(lines), size):
            predicted += model.predict_many(lines[begin : begin + size]).tolist()[:1]  # changes nothing
            model.learn_many(lines[begin : begin + size])
        model.end_pass()
        assert max(doublings(model)) >= 2
        assert state_of(model) == state_of(whole)
        assert len(set(predicted)) > 1


@pytest.mark.parametrize("name", LEARNERS)
def test_growing_tables_go_on_growing_after_they_are_stored(name, tmp_path):
    lines = TEXT.splitlines()
    options = {**LEARNERS[name], **GROWING}
    with trained("cpt", CLASSES, lines, **options) as model:
        whole, end = state_of(model), doublings(model)
    begins = (0, 20, 150, 151, 400, len(lines))
    at_stop = []
    for begin, stop in itertools.pairwise(begins):
        with load(tmp_path / "m") if begin else Learner("cpt", CLASSES, **options) as model:
            model.learn_many(lines[begin:stop])
            at_stop.append(doublings(model))
            model.save(tmp_path / "m")
            if stop == len(lines):
                assert state_of(model) == whole
    assert at_stop[-1] == end and len({tuple(times) for times in at_stop}) >= 3  # it was doubled between the stops


def test_runs_that_begin_small_write_the_same_bytes(tmp_path, monkeypatch):
    """As without -b, but for the size at which tables begin."""
    monkeypatch.setattr(tagged_words, "START_BITS", 5)
    text = multiclass(41, CLASSES, 3000, noise=0.3)
    (tmp_path / "d.vw").write_text(text)
    for name, processors in (("one", 1), ("three", 3)):
        monkeypatch.setattr("xclass.system.thread_limit.processors", lambda processors=processors: processors)
        result = learn("--multiclass", "-d", "d.vw", "-f", name, cwd=tmp_path)
    assert ", growing to at most " in result.err
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()
    learn("--multiclass", "-f", "half", "--quiet", stdin="".join(text.splitlines(keepends=True)[:1234]), cwd=tmp_path)
    rest = "".join(text.splitlines(keepends=True)[1234:])
    learn("-i", "half", "-f", "resumed", "--quiet", stdin=rest, cwd=tmp_path)
    one, resumed = (model_file.load(tmp_path / name).arrays for name in ("one", "resumed"))
    assert one.keys() == resumed.keys()
    assert all(np.array_equal(one[name], resumed[name]) for name in one)
    assert int(np.asarray(one["scorers.doublings"])[0]) >= 3


@pytest.mark.bounds
def test_doubling_moves_words_and_changes_no_prediction():
    options = {"bits": 6, "trees": 2, "rerank": True, "layout": "tagged"}
    with trained("cpt", CLASSES, TEXT, **options) as model:
        before = go_through(model, TEST, learn=False, top_k=5)
        first, used = sizes(model), in_use(model)
        for times in range(1, tagged_words.MOST_DOUBLINGS + 1):
            for member in model.core.reduction.trees.members:
                member.weights = member.weights._replace(words=tagged_words.doubled(member.weights.words))
            model.core.reduction.scorers = reranking.with_double_capacity(model.core.reduction.scorers)
            assert doublings(model) == [times] * 3
            after = go_through(model, TEST, learn=False, top_k=5)
            assert (after.predictions, after.lists) == (before.predictions, before.lists)
            assert sizes(model) == [size << times for size in first]
            assert in_use(model) == used


def test_larger_tables_lose_less():
    errors, losses = [], []
    for times in (0, 2, 6):
        with trained("cpt", CLASSES, TEXT, bits=7, layout="tagged", max_doublings=times, rerank=True) as model:
            losses.append(lost(model))
            errors.append(go_through(model, TEST, learn=False).loss)
    assert losses[0] > 2 * losses[1] > 4 * losses[2]
    assert errors[0] > errors[2]


def test_use_of_the_table_is_in_the_summary():
    with trained("cpt", CLASSES, TEXT, bits=5, trees=2, layout="tagged", max_doublings=2) as model:
        summary = summary_of(model)
        tables = word_tables(model.core.reduction).values()
    numbers = (tagged_words.USED, tagged_words.EVICTED, tagged_words.REFUSED)
    used, evicted, refused = (sum(int(w.state[number]) for w in tables) for number in numbers)
    assert fact(summary, "weights in use") == used == sum(int(np.count_nonzero(w.word)) for w in tables)
    assert f" of {sum(len(w.word) for w in tables)} (" in summary
    assert fact(summary, "evicted") == evicted > 0
    assert fact(summary, "refused") == refused > 0


def test_stored_tables_have_to_fit_into_free_memory(tmp_path, monkeypatch):
    with trained("cpt", 3, "1 | a\n2 | b\n", bits=12, layout="tagged", max_doublings=6) as model:
        model.save(tmp_path / "m")
    options, facts, arrays = model_file.load(tmp_path / "m")
    arrays = {name: np.asarray(array) for name, array in arrays.items()}
    model_file.save(
        tmp_path / "large", options=options, facts=facts, arrays={**arrays, "weights.0.doublings": np.array([6])}
    )
    with load(tmp_path / "large") as model:
        needed = sum(words.word.nbytes for words in word_tables(model.core.reduction).values())
    monkeypatch.setattr("xclass.system.memory.available", lambda: needed // 2)
    load(tmp_path / "m").close()
    with pytest.raises((UsageError, ModelError), match="memory"):
        load(tmp_path / "large")


def test_tables_that_could_outgrow_memory_are_refused(monkeypatch):
    monkeypatch.setattr(cpt_options.memory, "available", lambda: 40 << 20)
    with Learner("cpt", bits=20, max_doublings=1):  # 8 MB at first
        pass
    with pytest.raises(UsageError, match=r"grow to 64 MB, .* but only 40 MB are; give at most max_doublings 1"):
        Learner("cpt", bits=20, max_doublings=3)
