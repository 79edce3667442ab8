"""What tests of several reductions need."""

import math

import numpy as np
import pytest
from oracles import learner as oracle_learner


@pytest.fixture
def exponential(monkeypatch):
    """The oracle's exponential as near to the true one as float32 allows."""

    def exp(x):
        return np.float32(math.exp(min(float(x), 700.0)))

    monkeypatch.setattr(oracle_learner, "_exp", exp)
