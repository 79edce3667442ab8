"""Send each example to one of several experts, each a softmax over few of the classes: the doubly sparse softmax.

Source    Liao, Chen, Lin, Zhou, Wang, "Doubly Sparse: Sparse Mixture of Sparse Experts for Efficient Softmax
          Inference", arXiv 1901.10668, 2019. Its text was not at hand: the abstract was read, and the code that the
          authors published (github.com/shun1024/ds-softmax, ddc8b65: softmax.py, utils.py, gate of expert_utils.py).
Learners  A softmax with N outputs, the gate, and N experts, each a softmax of its own.
Cost      Learning and prediction take O(s (N + C)) for an example of s features whose expert has C classes. In the
          beginning C is K; see `kernels` for the cost of a pruning.
Names     K classes | N experts | G gate value: probability that the gate gives to the expert it chooses.
Differs from the paper (docs/papers.md)
          * examples are learned one by one, by plain gradient steps
          * the load is balanced over the last 500 examples
          * the group lasso is a proximal step before each pruning
          * the strongest copy of a class, and the strongest class of an expert, are kept
          * the weights of the gate begin at random numbers
          * there is no mitosis training, and no lasso on whole experts
          * only classes seen so far are predicted
Idea      The expert with the highest gate value G is chosen (sparse mixture). The scores of its classes are weights
          times features times G, which so is an inverse temperature and learns from the loss; a term for the load
          keeps the gate from preferring few experts. A group lasso on the weights of each class in each expert
          shrinks those of classes that hardly occur there, and a class whose norm falls below a threshold is removed
          from the expert (sparse experts). It has the score 0 there from then on.

The (pi, kappa)-DS of the softmax tree paper's tables is another system: the double sampling of Joshi and others, 2017.
"""

from __future__ import annotations

import numpy as np

from ...array_types import Bools, Int64s, UInt32s
from ...binary import gd
from ...binary.finite import LARGEST
from ...data.batch import HIGHEST_LABEL
from ...errors import UsageError
from ...model import stored_arrays
from ...model.archive import Archive
from ...model.stored_arrays import Arrays
from ...options.declare import OptionGroup, no_effect, option, refused
from ..core import label_arrays, probabilities
from ..core.base import Reduction, ReductionRecord
from ..core.calibration import NO_CLASSES, LabelStatistics
from ..core.contract import BatchTask
from ..core.spec import LearnerSpec
from . import kernels

RATE = 5.0
SLOT_BYTES = 4
LARGEST_STEP = 2.0**20  # weight of an example times learning rate; no sum of such steps overflows
SUPPORTED_OPTIONS = ("bits", "learning_rate", "predict_only_model")  # options of the binary learner that are supported


class SparseExpertsOptions(OptionGroup):
    sparse_experts: int = option(
        "number of classes; labels are 1..K", metavar="K", minimum=1, maximum=HIGHEST_LABEL, stored=True
    )
    experts: int = option("number of experts", default=4, minimum=1, maximum=4096, stored=True)
    group_lasso: float = option(
        "strength of the group lasso, which shrinks the weights of each class in each expert [lambda]",
        default=0.0005, minimum=0, maximum=1e6, metavar="LAMBDA", stored=True,
    )  # fmt: skip
    prune_below: float = option(
        "norm of the weights of a class below which an expert loses it, unless it is the only one to have it [gamma]",
        default=0.3, minimum=0, maximum=1e30, metavar="NORM", stored=True,
    )  # fmt: skip
    prune_every: int = option(
        "number of learned examples after which classes are removed, each time", default=4000, minimum=1,
        maximum=stored_arrays.MAX_COUNT, stored=True,
    )  # fmt: skip
    load_balance: float = option(
        "strength of the loss that makes the gate choose all experts equally often", default=1.0,
        minimum=0, maximum=1e6, metavar="LAMBDA", stored=True,
    )  # fmt: skip

    RULES = (
        no_effect(
            gd.other_options(SUPPORTED_OPTIONS),
            "--sparse_experts takes plain gradient steps, and of the options of the binary learner only "
            "--learning_rate and the size of the table apply to it; leave it out",
        ),
        no_effect("load_balance group_lasso prune_below prune_every", "there is only one expert", experts=1),
        refused("vw_exact", "cannot be combined with --sparse_experts, which VW does not have: leave one of them out"),
    )


def resolve_defaults(spec: LearnerSpec) -> dict[str, object]:
    o: SparseExpertsOptions = spec.options
    resolved = gd.resolve_defaults(spec.binary, o.sparse_experts * o.experts, True, slot_bytes=SLOT_BYTES)
    return resolved if spec.binary.learning_rate is not None else {**resolved, "learning_rate": RATE}


def _rows(spec: LearnerSpec) -> int:
    """Return the number of rows of the table."""
    o: SparseExpertsOptions = spec.options
    width = o.sparse_experts * o.experts
    rows: int = (1 << spec.binary.bits) // width
    if rows < 1:
        raise UsageError(
            f"-b {spec.binary.bits} has {1 << spec.binary.bits} slots, too few for one feature of --sparse_experts "
            f"{o.sparse_experts} --experts {o.experts}: give at least -b {(width - 1).bit_length()}"
        )
    return rows


def check_arrays(spec: LearnerSpec, arrays: Arrays) -> None:
    stored_arrays.check_rows("gate", arrays, _rows(spec))
    stored_arrays.check_rows("seen", arrays, spec.options.sparse_experts)
    stored_arrays.check_rows("size", arrays, spec.options.experts)


class SparseExperts(Reduction):
    """Learn and predict with a sparse mixture of sparse experts (`--sparse_experts`)."""

    report: LabelStatistics
    unknown_labels = NO_CLASSES

    def __init__(self, spec: LearnerSpec) -> None:
        o: SparseExpertsOptions = spec.options
        self.classes, number, rows = o.sparse_experts, o.experts, _rows(spec)
        self.learner_options = spec.binary
        width = number * self.classes
        gd.check_memory(spec.binary.bits, SLOT_BYTES, extra_bytes=4 * rows * number + 24 * width)
        self.crowding = gd.crowding_warning(spec.binary.bits, width, width, "odd")
        rate = float(spec.binary.learning_rate)
        self.largest_step = LARGEST_STEP / max(1.0, rate)
        self.settings = kernels.ExpertSettings(
            np.float32(rate), o.group_lasso, o.prune_below, o.load_balance, o.prune_every
        )
        self.experts = kernels.Experts(
            np.empty((rows, number), np.float32), np.zeros(rows * width, np.float32),
            np.tile(np.arange(self.classes, dtype=np.int32), (number, 1)), np.full(number, self.classes),
            np.zeros(self.classes, bool), np.full(number, 1 / number**2), np.zeros(number), np.zeros(1, np.int64),
        )  # fmt: skip
        if not spec.loaded:
            kernels.draw_gate(self.experts.gate, np.array([spec.seed], np.uint64))
        self.pruning = kernels.new_pruning(number, self.classes)
        self.stages = [self._process_batch]
        self.want(spec)

    def find(self, feature: UInt32s) -> Bools:
        rows = len(self.experts.gate)
        found: Bools = (self.experts.w.reshape(rows, -1)[feature % rows] != 0).any(axis=1)
        return found

    @property
    def most_rows(self) -> int | None:
        return max(1, probabilities.MOST_PAIRS // self.classes) if self.listing_options.probabilities else None

    def _process_batch(self, task: BatchTask) -> None:
        """Predict and learn a batch: the only stage; batches that are only predicted are split over threads."""
        batch, n = task.batch, task.batch.n
        label = self.classes_of(task, task.learned(), "sparse_experts", self.classes)
        own = label_arrays.classes(batch.label, ~np.isnan(batch.label), self.classes)[0]
        lists_all = self.listing_options.probabilities is not None
        k = self.classes if lists_all else min(self.listing_options.top_k or 1, self.classes)
        output = kernels.ExpertOutput(
            np.empty(n, np.int64), np.empty(n), np.empty(n), np.zeros((n, k), np.int64), np.zeros((n, k)),
            np.empty(n, np.int64),
        )  # fmt: skip

        def job(begin: int, end: int) -> None:
            scratch = kernels.new_scratch(batch.most_features, self.experts)
            kernels.process_batch(
                self.experts, self.settings, batch, label, own, begin, end, lists_all, scratch, self.pruning,
                output,
            )  # fmt: skip

        self.share(job, [(0, n)] if task.learn else self.thread_ranges(n))
        task.prediction = output.predicted.astype(np.float64)
        task.loss = label_arrays.wrong_weights(task.prediction, batch.label, batch.weight)
        if self.wanted.needs_probabilities or self.wanted.scores:
            self._report(task, own, output)

    def _report(self, task: BatchTask, own: Int64s, output: kernels.ExpertOutput) -> None:
        """Report the probabilities and list those that were requested."""
        self.set_probabilities(task, output.forecast, own >= 0, output.p_label, output.label)
        rest = np.where(output.size == self.classes, 0.0, np.maximum(0.0, 1.0 - output.p.sum(axis=1)))
        lists = probabilities.class_lists(output.label, output.p, output.size, rest)
        if self.listing_options.lists_classes:
            task.class_lists = lists
        task.scored = lists

    # model

    def serialize(self, archive: Archive) -> None:
        """Save or restore the model; `size` bounds loops over `label`, whose numbers are indexes and must ascend."""
        e = self.experts
        weights = -float(LARGEST), float(LARGEST)
        archive.table("weights", {"w": e.w}, {"w": weights})
        archive.fill("gate", e.gate, *weights)
        archive.fill("size", e.size, 1, self.classes)
        parts = [own[:size] for own, size in zip(e.label, e.size.tolist(), strict=True)]
        label = archive.take("label", np.concatenate(parts), (int(e.size.sum()),), 0, self.classes - 1)
        begin = np.cumsum(e.size) - e.size
        for j, (own, first) in enumerate(zip(parts, begin.tolist(), strict=True)):
            own[:] = label[first : first + len(own)]
            if (np.diff(own) <= 0).any():
                raise stored_arrays.unfit("label", f"the classes of expert {j + 1} do not ascend")
        archive.fill("seen", e.seen.view(np.uint8), 0, 1)
        archive.fill("mean", e.mean, 1e-300, 1e300)
        archive.fill("passed", e.passed, 0.0, 1e300)
        e.learned[0] = archive.count("learned", int(e.learned[0]))
        self.outside = archive.count("outside", self.outside)


REDUCTION = ReductionRecord(
    name="sparse_experts",
    title="Sparse experts",
    summary="a gate chooses one of several sparse softmaxes",
    options=SparseExpertsOptions,
    enabled="sparse_experts",
    build=SparseExperts,
    resolve_defaults=resolve_defaults,
    check_arrays=check_arrays,
    probabilities=True,
    learner_options=SUPPORTED_OPTIONS,
    not_merged="experts that have learned from different data have different classes",
)
