"""The reductions, in the order of `--help`. To add one: write its file, add it here, add its oracle."""

from . import cpt, oaa, recall_tree, scalar

REDUCTIONS = (scalar.REDUCTION, oaa.REDUCTION, recall_tree.REDUCTION, cpt.REDUCTION)
