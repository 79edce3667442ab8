"""Describe the conditional probability tree and the default learner, which has scorers besides, to the registry."""

from __future__ import annotations

from collections.abc import Mapping

from ...data.batch import HIGHEST_LABEL
from ...model import stored_arrays
from ...model.stored_arrays import Stored
from ..core.base import HASHED, TAKEN, UNSUITED, Reduction
from ..core.spec import LearnerSpec
from ..cpt.options import SUPPORTED_OPTIONS, Options, resolve_defaults
from ..cpt.reduction import ProbabilityTree
from ..means import reduction as means
from . import feature_index
from .reduction import Multiclass
from .with_rows import MulticlassWithRows


def label_range(spec: LearnerSpec) -> tuple[int, int, str]:
    """Return the lowest and highest label, and the option that sets the range."""
    return 1, HIGHEST_LABEL, "--multiclass" if "multiclass" in spec.given else f"--cpt {spec.options.cpt}"


def check_arrays(spec: LearnerSpec, arrays: Mapping[str, Stored]) -> None:
    """Refuse a model with another number of trees or rows of the index, before memory is allocated for them."""
    stored_arrays.check_rows("random", arrays, spec.options.trees)
    if spec.options.rerank and spec.options.index_slots:
        feature_index.check_sizes(arrays, spec.options.index_slots, spec.options.index_bits)


def build(spec: LearnerSpec) -> ProbabilityTree:
    """Return a learner of trees, with scorers if options ask for them."""
    if not spec.options.rerank:
        return ProbabilityTree(spec)
    return MulticlassWithRows(spec) if spec.part is None else Multiclass(spec)


def dense(spec: LearnerSpec) -> str:
    """Return what becomes of rows of numbers: trees alone learn badly from them, and parts have no means."""
    if not spec.options.rerank:
        return UNSUITED
    return TAKEN if spec.part is None else HASHED


REDUCTION = Reduction(
    name="cpt",
    title="Conditional probability tree",
    summary="a tree of probabilities: top k, new classes",
    options=Options,
    enabled="adagrad, cpt",
    build=build,
    resolve_defaults=resolve_defaults,
    label_range=label_range,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
    abilities=("describe", "explain", "inspect", "merge", "spread"),
    dense=dense,
    widest_array=means.MOST_COLUMNS,
)
