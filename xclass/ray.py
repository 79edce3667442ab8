"""Learn and predict on a Ray cluster; it needs the extra `ray`.

    import xclass.ray

    model = xclass.ray.fit("part-*.vw", xclass.Learner("oaa", classes=1000), workers=8)
    labels = xclass.ray.predict("test-*.vw", model, workers=8)

The functions do what the options `--workers` and `--ray` of the command do, and models have the same bytes.
"""

from __future__ import annotations

from typing import Any

from .api.learner import Learner
from .cli.declared import groups_of
from .cluster.program import fitting, predicting
from .cluster.program.request import ARGUMENT_NAMES, request

__all__ = ["fit", "predict"]


def fit(
    data: Any,
    learner: Learner,
    *,
    workers: int,
    address: str | None = None,
    sync_every: int | None = None,
    timeout: float = 600.0,
    format: str = "auto",
    label_column: str | int | None = None,
    **columns: Any,
) -> Learner:
    """Let workers learn in one pass over the data, and put what they have learned into a learner.

    Each worker learns from its own part of the data, and their models are averaged again and again.

    Parameters
    ----------
    data : str, path-like, sequence of these, or ray.data.Dataset
        Files of examples, patterns such as `"part-*.vw"`, or URLs, which the workers read; or a data set of Ray Data.
        A data set with one column of text has lines if they have bars or a known format. Rows of other data sets are
        those of a DataFrame, with the label in the column `label` or `label_column`.
    learner : Learner
        The learner, which continues from what it has learned. It is changed in place, as by `learn_many`, and returned.
        If an error ends the run, it is as it was before.
    workers : int
        Number of workers, each of which has a processor of the cluster.
    address : str, optional
        Address of the cluster: "auto", "HOST:PORT" or "ray://HOST:PORT". The default is the connection of this process
        if it has called `ray.init`, else the environment variable RAY_ADDRESS, else a Ray on this machine that ends
        with the call.
    sync_every : int, optional
        Number of examples that each worker learns between two averages. By default 4,000 at first, and later more, so
        that learning takes longer than exchanging what was learned.
    timeout : float, default 600
        Seconds to wait for a Ray on this machine to start, and for processors of the cluster.
    format, label_column, **columns
        How the files are read, as in `Learner.learn_file`.

    Raises
    ------
    DataError
        If the data cannot be read or a line is malformed; the message names the place and the worker.
    ClusterError
        If there is no cluster at the address, it has no processors for `timeout` seconds, or its nodes have other
        versions of Python or xclass.
    """
    with ARGUMENT_NAMES:
        asked = request(
            data, learner, groups_of, dict(format=format, label_column=label_column, **columns),
            workers=workers, ray=address, sync_every=sync_every, ray_timeout=timeout,
        )  # fmt: skip
        fitting.fit(asked)
    return learner


def predict(
    data: Any,
    learner: Learner,
    *,
    workers: int,
    k: int | None = None,
    address: str | None = None,
    timeout: float = 600.0,
    format: str = "auto",
    label_column: str | int | None = None,
    **columns: Any,
) -> Any:
    """Let workers predict the labels of examples, or list the k most probable classes of each.

    Parameters
    ----------
    data, workers, address, timeout, format, label_column, **columns
        As in `fit`. Labels of the examples are checked but not used.
    learner : Learner
        The learner, which is not changed.
    k : int, optional
        Number of classes to list, at least 1.

    Returns
    -------
    predictions
        The arrays that `Learner.predict_many` returns, for the examples in the order of the data: an array of shape
        (n,) or, with `k`, two arrays of shape (n, k), the classes and their probabilities.
    """
    with ARGUMENT_NAMES:
        asked = request(
            data, learner, groups_of, dict(format=format, label_column=label_column, **columns),
            workers=workers, ray=address, ray_timeout=timeout,
        )  # fmt: skip
        return predicting.predict(asked, k)
