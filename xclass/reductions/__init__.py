"""The reductions, in the order of `--help`. To add one: write its file, add it here, add its oracle."""

from . import cpt, ect, oaa, recall_tree, scalar

REDUCTIONS = (scalar.REDUCTION, oaa.REDUCTION, recall_tree.REDUCTION, ect.REDUCTION, cpt.REDUCTION)
