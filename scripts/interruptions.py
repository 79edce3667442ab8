"""Use learners by several threads and interrupt them at random moments, and check that they work on.

    python -m scripts.interruptions --seconds 120 --seed 1

For each reduction in turn, this thread learns, predicts and saves, and exceptions are raised in it at random moments,
while two other threads predict and save. Afterwards all examples that were learned have to be counted, a copy of the
model has to predict the same, and no helper thread may have ended by an error. The exit status is 1 otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import pickle
import random
import sys
import threading
import time
from collections.abc import Callable

from xclass.api.learner import Learner
from xclass.reductions.registry import REDUCTIONS

SLICE = 5.0  # seconds for a reduction
CLASSES = 9


class Interruption(KeyboardInterrupt):
    """Stand for Ctrl-C."""


def interrupt(target: int, ended: threading.Event, rng: random.Random, sent: list[int]) -> None:
    """Raise exceptions in the thread `target` at random moments."""
    ended.wait(0.1)  # until all threads have started
    while not ended.wait(rng.uniform(0.0, 0.01)):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(target), ctypes.py_object(Interruption))
        sent[0] += 1


def repeated(call: Callable[[], object], ended: threading.Event, done: list[int]) -> None:
    """Call a function until the end."""
    while not ended.is_set():
        call()
        done[0] += 1


def check(name: str, rng: random.Random, seconds: float) -> tuple[int, int]:
    """Use and interrupt a learner of a reduction; return the number of calls and of interruptions."""
    lines = [
        f"{rng.randrange(1, CLASSES + 1)} | " + " ".join(f"f{rng.randrange(50)}" for _ in range(8)) for _ in range(60)
    ]
    ended, done, sent = threading.Event(), [0], [0]
    with Learner(name, None if name == "scalar" else CLASSES, bits=12) as learner:
        learner.learn_many(lines)
        learner.end_pass()
        calls: list[Callable[[], object]] = [
            lambda: learner.learn_many(lines), lambda: learner.learn(lines[0]), lambda: learner.predict(lines[1]),
            lambda: learner.predict_many(lines), learner.end_pass,
        ]  # fmt: skip
        if name != "softmax_tree":  # it refuses to save before the end of a pass
            calls.append(lambda: pickle.dumps(learner))
        threads = [
            threading.Thread(target=repeated, args=(lambda: learner.predict_many(lines), ended, done)),
            threading.Thread(target=repeated, args=(lambda: learner.predict(lines[2]), ended, done)),
            threading.Thread(target=interrupt, args=(threading.get_ident(), ended, rng, sent)),
        ]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while not ended.is_set() or any(thread.is_alive() for thread in threads):
            with contextlib.suppress(Interruption):
                while time.monotonic() < end:
                    rng.choice(calls)()
                    done[0] += 1
                ended.set()
                for thread in threads:
                    thread.join()
        for _ in range(5):  # the last interruption may come late
            with contextlib.suppress(Interruption):
                time.sleep(0.001)
        learner.end_pass()
        before = learner.examples
        learner.learn_many(lines)
        learner.end_pass()
        with pickle.loads(pickle.dumps(learner)) as again:
            assert learner.examples == again.examples == before + len(lines), f"{name}: examples were lost"
            assert again.predict_many(lines).tolist() == learner.predict_many(lines).tolist(), f"{name}: a copy differs"
    return done[0], sent[0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120, help="how long to go on [120]")
    parser.add_argument("--seed", type=int, default=1, help="of everything drawn at random [1]")
    given = parser.parse_args(argv)
    rng, failures = random.Random(given.seed), []
    threading.excepthook = lambda failure: failures.append(str(failure.exc_value))
    names = [record.name for record in REDUCTIONS]
    calls = interruptions = rounds = 0
    end = time.monotonic() + given.seconds
    while time.monotonic() < end:
        try:
            done, sent = check(names[rounds % len(names)], rng, min(SLICE, max(0.5, end - time.monotonic())))
            calls, interruptions = calls + done, interruptions + sent
        except AssertionError as error:
            failures.append(str(error))
        rounds += 1
    print(f"{rounds} learners, {calls} calls, {interruptions} interruptions, {len(failures)} failures")
    for failure in failures[:10]:
        print(f"FAILED: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
