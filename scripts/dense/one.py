"""Learn the rows of a set by one method, predict its test rows, and write what it took as JSON to standard error.

    python scripts/dense/one.py ROWS/SET METHOD SECONDS

`scripts.dense.bench` runs it and measures its memory. It ends after SECONDS of CPU time. Learning is timed from rows in
memory to a model, and prediction from rows in memory to labels, after a small model has compiled or loaded what is
needed. All is computed by one thread.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FEW = 300  # rows of the small model
LEAST_SECONDS = 0.5  # of CPU time for prediction, which is repeated
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Learn = Callable[[Any, Any], Callable[[Any], Any]]  # rows and labels -> what predicts labels of rows


def xclass_learner(name: str) -> Learn:
    """Return what learns rows in one pass."""
    from xclass import Learner
    from xclass.system import thread_limit

    def learn(rows: Any, labels: Any) -> Callable[[Any], Any]:
        learner = Learner(name)
        with thread_limit.limited(1):
            learner.learn_many(rows, labels)
        return predict_with(learner)

    def predict_with(learner: Learner) -> Callable[[Any], Any]:
        def predict(rows: Any) -> Any:
            with thread_limit.limited(1):
                return learner.predict_many(rows)

        return predict

    return learn


def sklearn_classifier(name: str) -> Learn:
    """Return what fits a classifier of scikit-learn with its default options."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

    kind = {one.__name__: one for one in (LogisticRegression, KNeighborsClassifier, NearestCentroid)}[name]
    return lambda rows, labels: kind().fit(rows, labels).predict


def main() -> None:
    """Learn and predict."""
    folder, method, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    os.environ.update(dict.fromkeys(THREADS, "1"))
    import numpy as np

    rows, labels, new, true = (
        np.load(folder / f"{part}.{kind}") for part in ("train", "test") for kind in ("npy", "labels.npy")
    )
    tool, _, option = method.partition(" --")
    learn = xclass_learner(option or "multiclass") if tool == "xclass" else sklearn_classifier(tool)
    learn(rows[:FEW], labels[:FEW])(new[:FEW])
    begin = time.process_time()
    predict = learn(rows, labels)
    learned = time.process_time() - begin
    wrong, times, begin = float(np.mean(np.asarray(predict(new)) != true)), 0, time.process_time()
    while times == 0 or time.process_time() < begin + LEAST_SECONDS:
        predict(new)
        times += 1
    took = (time.process_time() - begin) / times
    print(json.dumps({"error": wrong, "cpu": learned, "us": took / len(new) * 1e6}), file=sys.stderr)


if __name__ == "__main__":
    main()
