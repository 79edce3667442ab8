"""The reductions, in the order of `--help`. To add one: write its file, add it here, add its oracle."""

from . import cpt, ect, log_multi, oaa, random_tree, recall_tree, scalar, softmax_tree

REDUCTIONS = (
    scalar.REDUCTION,
    oaa.REDUCTION,
    recall_tree.REDUCTION,
    log_multi.REDUCTION,
    ect.REDUCTION,
    random_tree.REDUCTION,
    cpt.REDUCTION,
    softmax_tree.REDUCTION,
)
