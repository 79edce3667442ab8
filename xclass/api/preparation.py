"""Convert batches into tasks for a learner: add n-grams and interactions, check values, and compute the clock."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..binary import finite
from ..data import batch_ops, interactions, namespaces
from ..data.batch import Batch
from ..reductions.core.base import Learner
from ..reductions.core.contract import BatchTask
from .configuration import Config


class Preparation:
    """Prepare every example between the parser and the learner.

    Parameters
    ----------
    config : has the option groups `features`, `interactions` and `parser`
    exact : whether to treat values that are not finite as VW does

    Attributes
    ----------
    features : drops features and adds n-grams
    crosser : adds interactions
    one_by_one : whether each task gets a single example
    keep_names : whether tasks get `unnamed_batch`, the batch with all of its features. The audit shows them if
        there is no text in which the names of features could be found
    """

    def __init__(self, config: Config, exact: bool) -> None:
        self._config, self._exact = config, exact
        self.features = namespaces.NamespaceTransformer(config.features, constant=not config.parser.noconstant)
        self.crosser = interactions.Crosser(config.interactions)
        self.one_by_one = self.keep_names = False

    def forget_namespaces(self) -> None:
        """Forget the namespaces seen so far, on which wildcard interactions depend, to restart at example 1."""
        self.crosser = interactions.Crosser(self._config.interactions)

    def tasks(
        self, learner: Learner, raw_batch: Batch, held_out: np.ndarray, learn: bool, clock: float
    ) -> Iterator[BatchTask]:
        """Yield the tasks of a batch.

        Parameters
        ----------
        learner : the learner of the tasks
        raw_batch : n examples from the parser
        held_out : bool[n], examples that are held out of learning
        learn : whether the other labelled examples are learned from
        clock : sum of the weights of the labelled examples before this batch
        """
        low = 0
        for batch, count, unnamed_batch in self.batches(learner, raw_batch):
            held_out_here = held_out[low : low + batch.n]
            low += batch.n
            batch, not_finite = (batch, None) if self._exact else finite.clean(batch)
            not_learned = np.isnan(batch.label) | held_out_here
            weight = np.where(not_learned, 0.0, batch.weight.astype(np.float64))
            with np.errstate(invalid="ignore"):  # infinite weights, under --on_bad_line vw
                clocks = np.add.accumulate(np.concatenate(([clock], weight)))
            clock = float(clocks[-1])
            task = BatchTask(
                batch,
                learn,
                clocks[1:],
                held_out=held_out_here if held_out_here.any() else None,
                features=count,
                unnamed_batch=unnamed_batch,
            )
            if learn:
                learner.survey(task, self._exact)
                if not_finite is not None:
                    task.skipped[not_finite & ~not_learned] = finite.EXAMPLE_SKIPPED
            yield task

    def batches(self, learner: Learner, raw_batch: Batch) -> Iterator[tuple[Batch, np.ndarray, Batch | None]]:
        """Yield the prepared batches of a batch, split to the size that the learner accepts.

        Yields
        ------
        batch : the features that the learner uses
        count : int64[n], number of features of each example as shown to the user, ignored linear terms included
        unnamed_batch : with `keep_names` the same examples with ignored linear terms included; else None
        """
        for filtered in self.features.apply(raw_batch):
            for crossed in self.crosser.cross(filtered) if self.crosser.active else (filtered,):
                count = np.diff(crossed.start)
                batch = self.features.linear(crossed)
                max_rows = 1 if self.one_by_one else learner.most_rows
                if max_rows is None:
                    yield batch, count, crossed if self.keep_names else None
                    continue
                for low in range(0, batch.n, max_rows):
                    high = min(low + max_rows, batch.n)
                    unnamed_batch = batch_ops.cut(crossed, low, high) if self.keep_names else None
                    yield batch_ops.cut(batch, low, high), count[low:high], unnamed_batch
