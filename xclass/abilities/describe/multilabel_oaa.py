"""Describe one-against-all for lists of labels as that for one label, and explain the labels it predicts."""

from __future__ import annotations

import numpy as np

from ...data.batch import Batch
from ...explain.records import Reasons
from ...reductions.core import label_arrays
from ...reductions.multilabel_oaa import reduction
from ...reductions.multilabel_oaa.reduction import MultilabelOaa
from .oaa import LOGISTIC, banner, reasons_of, scores_of, table_view, vw_banner

ESTIMATE = "0.5 + 0.5 * min(max(score, -1), 1)"  # of the label, -1 or 1


__all__ = ["banner", "table_view", "vw_banner"]


def explain(learner: MultilabelOaa, batch: Batch, k: int) -> Reasons:
    """Explain the best labels and those of the only example of a batch; scores are those before the link."""
    scores = scores_of(learner, batch)
    scores = scores._replace(order=scores.order[scores.order < learner.named])
    p = np.empty(learner.classes, np.float32)
    estimates = learner.meaning == reduction.LABELS
    reduction.probabilities_of(scores.limited, reduction.LABELS if estimates else reduction.LOG_ODDS, p)
    label = label_arrays.whole(batch) - learner.lowest if batch.label[0] > 0 else np.empty(0, np.int64)
    own = label[(label >= 0) & (label < learner.classes)].tolist()
    reasons = reasons_of(learner, batch, scores, p, own, learner.lowest, k)
    return reasons._replace(formula=ESTIMATE if estimates else LOGISTIC)
