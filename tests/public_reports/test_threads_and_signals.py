"""Threads, forks and interruptions: a learner that several threads use, or that Ctrl-C stops, keeps working."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import itertools
import multiprocessing
import pickle
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from library import state_of

import xclass
from xclass.errors import UsageError
from xclass.system import exclusive

THREADS = 8
TEXTS = ["free money now", "meeting at ten", "dinner on sunday", "free offer today", "the meeting room", "sunday lunch"]
LABELS = ["spam", "work", "family", "spam", "work", "family"]
LINES = [f"{1 + i % 5} | a{i % 5} b{i % 3} c{i % 7}" for i in range(100)]


def at_once(count: int, call) -> list:
    """The results of a call that several threads make at the same time."""
    barrier = threading.Barrier(count)

    def run(number: int):
        barrier.wait()
        return call(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.fixture
def model():
    with xclass.Learner(bits=12) as learner:
        learner.learn_many(LINES)
        yield learner


# -- threads


@pytest.mark.bounds
def test_threads_predict_with_a_pickled_pipeline():
    """Newcomer 1: a Pipeline that was pickled, as a web service loads it, ended in a segmentation fault."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    pipelines = pytest.importorskip("sklearn.pipeline")
    from xclass.sklearn import XClassifier

    fitted = pipelines.make_pipeline(text.TfidfVectorizer(), XClassifier(passes=5, bits=12)).fit(TEXTS, LABELS)
    loaded = pickle.loads(pickle.dumps(fitted))
    calls = (
        loaded.predict,
        loaded.predict_proba,
        lambda texts: loaded[-1].predict_top_k(loaded[0].transform(texts), 2)[0],
    )
    expected = [call(TEXTS).tolist() for call in calls]
    found = at_once(THREADS, lambda i: [calls[i % 3](TEXTS).tolist() for _ in range(4)])
    assert all(one == expected[i % 3] for i, results in enumerate(found) for one in results)
    assert copy.deepcopy(loaded).predict(TEXTS).tolist() == expected[0]


@pytest.mark.bounds
@pytest.mark.parametrize("reduction", ["multiclass", "oaa", "recall_tree", "cpt"])
def test_threads_fit_and_predict_with_one_estimator(reduction):
    """While one thread learns more, others get answers of the model before or after it."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    estimator = XClassifier(reduction, bits=12).partial_fit(TEXTS, LABELS)

    def use(number: int):
        if number:
            return [{*estimator.predict(TEXTS), *estimator.predict_top_k(TEXTS, 1)[0][:, 0]} for _ in range(5)]
        for i in range(5):
            estimator.partial_fit([*TEXTS, f"word{i}"], [*LABELS, f"new{i}"])
        return []

    answers = set().union(*itertools.chain(*at_once(THREADS, use)))
    assert answers <= {*LABELS, *(f"new{i}" for i in range(5))}
    assert estimator.learner_.examples == 6 + 5 * 7


@pytest.mark.bounds
def test_threads_use_a_classifier_of_river():
    """Newcomer 1, through River: predictions beside learning, and every example is learned."""
    pytest.importorskip("river")
    from xclass.river import Classifier

    classifier = Classifier(bits=12)
    rows = [({f"a{i % 5}": 1.0}, f"c{i % 5}") for i in range(50)]
    for x, y in rows:
        classifier.learn_one(x, y)

    def use(number: int) -> None:
        for x, y in rows:
            if number % 2:
                classifier.learn_one(x, y)
            else:
                assert classifier.predict_one(x) == y
                assert max(classifier.predict_proba_one(x).items(), key=lambda item: item[1])[0] == y

    at_once(THREADS, use)
    assert classifier.learner.examples == 50 * 5


@pytest.mark.bounds
def test_threads_use_a_workspace():
    """Newcomer 1, through the interface of VW's Python module."""
    from xclass.vw import Workspace

    with Workspace("--oaa 5 --quiet -b 12") as workspace:
        for line in LINES:
            workspace.learn(line)

        def use(number: int) -> None:
            for line in LINES[:30]:
                if number % 4 == 0:
                    workspace.learn(line)
                assert workspace.predict(line[2:]) == int(line[0])

        at_once(THREADS, use)
        assert workspace.get_weighted_examples() == 100 + 2 * 30 + 8 * 30


def test_a_model_saved_while_another_thread_learns_is_whole(tmp_path, model):
    """Attack 12: 12 of 173 files that `save` wrote meanwhile had wrong checksums, and had replaced the good one."""

    def use(number: int) -> None:
        for i in range(6):
            if number == 0:
                model.learn_many([f"{line} d{i}" for line in LINES])
            else:
                model.save(tmp_path / f"m{number}")
                with xclass.load(tmp_path / f"m{number}") as loaded:
                    assert loaded.examples % len(LINES) == 0

    at_once(3, use)
    assert model.examples == 7 * len(LINES)


def test_closing_while_another_thread_predicts(model):
    """The other thread gets an error that says that the learner is closed."""

    def use(number: int):
        if number == 0:
            time.sleep(0.02)
            return model.close()
        with pytest.raises(UsageError, match="closed"):
            while True:
                model.predict_many(LINES)
                model.predict(LINES[0])

    at_once(4, use)


def test_code_of_the_program_may_use_the_learner_that_calls_it(model):
    """Neither a generator of examples nor a value that converts itself waits for its own learner for ever."""

    class Value(float):
        def __float__(self) -> float:
            return float(model.predict("| a1"))

    class Features(dict):
        def items(self):
            model.learn("1 | a1")
            return super().items()

    assert len(model.predict_many("| a1" for _ in range(3) if model.predict("| a1"))) == 3
    assert model.predict(Features(a1=Value(1.0))) == 2
    assert model.learn(Features(a1=1.0), 2) == 2


def test_a_generator_may_wait_for_another_thread_that_predicts(model):
    """The learner is free while the code of a generator runs."""

    def lines():
        with ThreadPoolExecutor(1) as pool:
            yield f"{pool.submit(model.predict, '| a1').result(20)} | a1"

    assert len(model.learn_many(lines()).prediction) == 1


# -- forks


def _answers(learner, queue) -> None:
    queue.put((learner.predict_many(LINES).tolist(), learner.predict("| a1"), learner.learn_many(LINES).loss.sum()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_has_free_locks_and_threads_of_its_own(model):
    """A service that loads its model and then forks, as gunicorn does with --preload, gets answers."""
    expected = model.predict_many(LINES).tolist()  # on a helper thread, which the child does not have
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    taken, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with model.turn.lock:
            taken.set()
            leave.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    child = context.Process(target=_answers, args=(model, queue))
    child.start()
    answers, answer, _ = queue.get(timeout=60)
    child.join(20)
    leave.set()
    holder.join()
    assert (answers, answer) == (expected, 2)


# -- interruptions


class Interruption(KeyboardInterrupt):
    """Ctrl-C as these tests send it."""


class Interruptions:
    """Raise `Interruption` at random moments of calls, as the handler of a signal does, and never outside them."""

    def __init__(self, seed: int) -> None:
        self.rng, self.armed, self.sent = np.random.default_rng(seed), False, 0

    def __enter__(self) -> Interruptions:
        self.before = signal.signal(signal.SIGALRM, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.before)

    def _handle(self, *_: object) -> None:
        if self.armed:
            self.armed = False
            self.sent += 1
            raise Interruption

    def call(self, function) -> None:
        with contextlib.suppress(Interruption):
            self.armed = True
            signal.setitimer(signal.ITIMER_REAL, self.rng.uniform(1e-5, 0.002))
            function()
            self.armed = False


@pytest.mark.parametrize("reduction", ["multiclass", "oaa", "recall_tree"])
def test_a_learner_works_after_interruptions(monkeypatch, reduction):
    """Attack 16: Ctrl-C while learning ended in `release unlocked lock` in a helper thread, 2 times in 355."""
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with xclass.Learner(reduction, 5, bits=12) as learner:
        learner.learn_many(LINES)
        calls = [
            lambda: learner.learn_many(np.eye(7, 9), [1, 2, 3, 4, 5, 1, 2]),
            lambda: learner.learn(LINES[0]),
            lambda: learner.predict("| a1"),
            lambda: learner.predict("| a1", k=2),
            lambda: learner.predict_many(LINES[:20]),
        ]
        with Interruptions(1) as interruptions:
            for i in range(1000):
                interruptions.call(calls[i % len(calls)])
        assert interruptions.sent > 20 and not failures
        found = learner.predict_many(LINES)
        learner.learn_many(LINES)
        assert found.shape == (100,)
        with pickle.loads(pickle.dumps(learner)) as again:
            assert again.examples == learner.examples
            assert again.predict_many(LINES).tolist() == learner.predict_many(LINES).tolist()


def test_ctrl_c_within_a_kernel_is_ctrl_c(monkeypatch, model):
    """Show that the SystemError which numba's dispatcher makes of Ctrl-C does not reach programs."""

    def interrupted(*_):
        raise SystemError("CPUDispatcher(...) returned a result with an exception set") from Interruption()

    with monkeypatch.context() as patch:
        patch.setattr(model.core, "tasks", interrupted)
        with pytest.raises(Interruption):
            model.predict("| a1")
        with pytest.raises(Interruption):
            model.predict("| a1", k=2)
    assert model.predict("| a1") == 2


def test_an_interrupted_call_learns_whole_batches(monkeypatch):
    """Ctrl-C ends the call after the batch that is learned; what was learned is what `examples` says."""
    pieces = iter(range(1000))

    def interrupt(task):
        if next(pieces) == 2:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(Interruption))
            time.sleep(0.2)

    main = threading.get_ident()
    monkeypatch.setattr("xclass.data.tables.PIECE", 50, raising=False)
    X, y = np.tile(np.eye(5), (40000, 1)), np.tile([1, 2, 3, 4, 5], 40000)
    with xclass.Learner("oaa", 5, bits=12) as learner, xclass.Learner("oaa", 5, bits=12) as other:
        learner.core.on_learned = interrupt
        try:
            learner.learn_many(X, y)
        except Interruption:
            pass
        else:
            pytest.skip("the data are a single batch")
        assert 0 < learner.examples <= len(X)
        other.learn_many(X[: learner.examples], y[: learner.examples])
        assert state_of(learner) == state_of(other)


def test_a_second_ctrl_c_ends_the_call_at_once():
    """The helper thread ends its work later, and holds the learner until then."""
    turn, leave, ended = exclusive.Exclusive(), threading.Event(), []

    def job() -> None:
        call, main = exclusive._own.call, threading.main_thread().ident
        signal.pthread_kill(main, signal.SIGINT)
        while not call.interrupted:  # two signals that are pending at the same time are one
            time.sleep(0.01)
        signal.pthread_kill(main, signal.SIGINT)
        leave.wait()
        ended.append(True)

    with pytest.raises(KeyboardInterrupt):
        turn.complete(job)
    assert not ended
    leave.set()
    assert turn.complete(lambda: list(ended)) == [True]


def test_ctrl_c_waits_for_the_end_of_the_batch():
    turn, stopped = exclusive.Exclusive(), threading.Event()

    def job() -> list[int]:
        for i in exclusive.until_interrupted(range(100)):
            done.append(i)
            if i == 3:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
                stopped.wait(10)
        return done

    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        turn.complete(job, stopped.set)
    assert done == [0, 1, 2, 3]


# -- the library shows what it does


def test_an_explanation_is_printed_as_text_with_the_names_of_a_vectoriser(capsys):
    """Newcomer 13: `print(model.explain(...)[0])` was a dump of tens of thousands of characters, of features `4738`."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    from xclass.sklearn import XClassifier

    vectoriser = text.CountVectorizer(token_pattern=r"\S+")
    X = vectoriser.fit_transform([f"<b>{line}" for line in TEXTS])
    fitted = XClassifier("oaa", passes=5, bits=12).fit(X, LABELS)
    (explanation,) = fitted.explain(X[:1], feature_names=vectoriser.get_feature_names_out())
    assert str(explanation).startswith("prediction spam, 3 classes compared\n  spam: ")
    assert "  <b>free\n" in str(explanation)
    assert "&lt;b&gt;free" in explanation._repr_html_() and "<b>" not in explanation._repr_html_()
    assert len(repr(explanation)) < 120


def test_fit_shows_a_bar_or_lines_if_asked(capsys):
    """Newcomer 3: `fit` ran 400 s without a sign of life."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    XClassifier("oaa", passes=2, bits=12).fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")
    XClassifier("oaa", passes=2, bits=12, verbose=1).fit(TEXTS, LABELS)
    assert "6/6" in capsys.readouterr().err
    XClassifier("oaa", passes=2, bits=12, verbose=2).fit(TEXTS, LABELS)
    assert [line.split(",")[0] for line in capsys.readouterr().err.splitlines()] == [
        "pass 1: 6 examples", "pass 2: 6 examples",
    ]  # fmt: skip


def test_class_weight_multiplies_sample_weight():
    """Newcomer, low: there was no `class_weight`."""
    pytest.importorskip("sklearn")
    from xclass.sklearn import XClassifier

    y = [*LABELS[:5], "spam"]

    def learned(weight=None, **parameters):
        return XClassifier("oaa", bits=12, **parameters).fit(TEXTS, y, weight).predict_proba(TEXTS).tolist()

    balanced = [{"spam": 2 / 3, "work": 1, "family": 2}[label] for label in y]
    assert learned(class_weight="balanced") == learned(balanced) != learned()
    doubled = [2.0 * (label == "work") + (label != "work") for label in y]
    assert learned([2.0] * 6, class_weight={"work": 2}) == learned([2 * weight for weight in doubled])
    with pytest.raises(UsageError, match="class_weight"):
        learned(class_weight="equal")
