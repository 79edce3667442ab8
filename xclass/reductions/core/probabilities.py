"""Declare the options of reductions that estimate the probabilities of classes, and build the lists that -p writes.

Their entries in `REDUCTIONS` have `probabilities`. A list has a pair class:probability for each of some classes, and a
last pair for all other classes together, which is written without a class:

    --top_k 3         17:0.61 4:0.2 9:0.05 :0.14     in descending order of probability
    --probabilities   4:0.2 9:0.05 17:0.61 :0.14     in ascending order of class

`--oaa --probabilities` lists every class, so its list has no last pair, as in VW. `--probabilities raw` gives what the
regressor of each class estimates, without dividing by the sum, as the CPT paper compares one-against-all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...array_types import Float32s, Float64s, Int64s
from ...errors import UsageError
from ...options.declare import OptionGroup, no_effect, option, refused

NORMALIZED, RAW = "normalized", "raw"  # values of --probabilities
MOST_PAIRS = 1 << 22  # maximum pairs of a BatchTask, at least 12 bytes each; see `Reduction.most_rows`


class ListingOptions(OptionGroup):
    """Declare the options about probabilities of classes."""

    top_k: int | None = option(
        "list the N best classes as `class:probability`. The last pair, `:p`, gives the probability of all others. "
        "With lists of labels, there is no such pair, and --threshold leaves out less probable labels",
        minimum=1,
        maximum=1000,
    )
    probabilities: str | None = option(
        "predict the probability of every class: all with --oaa, those seen so far with --cpt, --mach and --means, the "
        "candidates with --recall_tree, those of the leaf with --softmax_tree, those of the expert with "
        "--sparse_experts. The last pair, `:p`, gives the probability of all others. With lists of labels, all with "
        "--multilabel_oaa, and those above the threshold with --plt. `raw`, for --oaa: the estimates of the "
        "regressors, not divided by their sum",
        choices=(RAW, NORMALIZED),
        value_if_bare=NORMALIZED,
        metavar="[raw]",
    )
    calibration: str | None = option(
        "write a reliability table to this file: predicted probability against observed frequency, for lists of "
        "labels of the five best. The summary gives the expected calibration error",
        writes="the reliability table",
    )
    perplexity: bool = option("report the perplexity of the labels")

    RULES = (
        no_effect("top_k", "--probabilities writes all classes", probabilities=True, kind_of_labels="multiclass"),
        refused("perplexity", "is for one label an example, not for lists", kind_of_labels="multilabel"),
        refused("perplexity", "needs probabilities that sum to 1: leave out --perplexity, or raw", probabilities={RAW}),
        no_effect("perplexity", "--quiet leaves the summary out", quiet=True),
    )

    @property
    def lists_classes(self) -> bool:
        """Return whether -p writes a list of classes instead of a single class."""
        return self.top_k is not None or self.probabilities is not None

    @property
    def needs_probabilities(self) -> bool:
        """Return whether any option needs probabilities."""
        return self.lists_classes or self.calibration is not None or self.perplexity

    def check(self, reduction: str, class_estimates: bool, exact: bool) -> None:
        """Raise UsageError if `raw` is wanted of a reduction that has no regressor of each class, or as VW does it."""
        if self.probabilities == RAW and (exact or not class_estimates):
            other = "--vw_exact, because VW has no such output" if exact else f"--{reduction}"
            raise UsageError(
                "--probabilities raw gives what each regressor of --oaa estimates, and cannot be combined with "
                f"{other}; leave out raw"
            )


class ClassLists(NamedTuple):
    """Hold the lists of classes that -p writes for n examples; the pairs of example i are `start[i]:start[i + 1]`."""

    scores: Float32s  # float32[...], probabilities, or scores with --oaa --scores
    labels: Int64s  # int64[...], classes as written in the file; 0 for all others together
    start: Int64s  # int64[n + 1]
    has_rest: bool = True  # whether the last pair of each example is that of all other classes, with label 0


def class_lists(label: Int64s, p: Float64s, size: Int64s, rest: Float64s) -> ClassLists:
    """Return for each example the list of its best classes and the probability of the rest.

    Parameters
    ----------
    label : int64[n, k], classes in the order of the list
    p : float64[n, k], their probabilities
    size : int64[n], how many of the k columns are used
    rest : float64[n], probability of all other classes together
    """
    n, k = label.shape
    labels = np.concatenate([label, np.zeros((n, 1), np.int64)], axis=1)
    masses = np.concatenate([p, rest[:, None]], axis=1)
    listed = np.arange(k + 1) < size[:, None]
    listed[:, k] = True
    start = np.concatenate([[0], np.cumsum(size + 1)])
    return ClassLists(masses[listed].astype(np.float32), labels[listed], start)
