"""Searches on generated streams open a bounded number of nodes."""

import math

import numpy as np
import pytest

import xclass
from scripts.lib import streams

OPENED = 24  # nodes that a search opens at most for each level of a balanced tree


@pytest.mark.parametrize("reduction", ["cpt", "multiclass"])
def test_searches_open_a_few_nodes_for_each_level_in_learning_and_predicting(tmp_path, reduction):
    for k, learned in ((100, 1000), (3000, 4000)):
        streams.write_power_law(tmp_path / "s", 0, k, learned + 500, 37)
        lines = (tmp_path / "s").read_text().splitlines()
        with xclass.Learner(reduction=reduction, classes=k, bits=18) as learner:
            opened = learner.core.reduction.report.opened_counts
            for act, some in ((learner.learn_many, lines[:learned]), (learner.predict_many, lines[learned:])):
                opened[:] = 0
                act(some)
                assert 1 < np.flatnonzero(opened)[-1] <= OPENED * math.log2(k), f"{act.__name__}, {k} classes"
