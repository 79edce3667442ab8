"""Labels ranked by probability times inverse propensity, by the frequencies of the labels before each example."""

import re

import numpy as np
import pytest
from command import learn
from test_validated_threshold import lines_of

import xclass as library

A, B = 0.55, 1.5
REDUCTIONS = ["plt", "multilabel_oaa", "multilabel"]


def uneven(n, seed=0):
    """Lines whose labels are seen with very different frequencies."""
    lines = lines_of(n, seed)
    return [line for i, line in enumerate(lines) if i % 40 == 0 or not re.search(r"\b(7|8|9|10|11)\b", line[:5])]


def pairs(line):
    return [(int(y), float(p)) for y, p in (pair.split(":") for pair in line.split())]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_lists_are_those_of_all_probabilities_times_inverse_propensities(tmp_path, reduction):
    lines = uneven(400)
    (tmp_path / "d").write_text("\n".join(lines) + "\n")
    options = ("-d", "d", f"--{reduction}", 12, "-b", 12, "-p", "stdout", "--quiet", "--top_k")
    every = learn(*options, 12, "-f", "m", cwd=tmp_path).lines
    best = learn(*options, 3, "-f", "n", "--rank_by", "propensity", cwd=tmp_path).lines
    with library.load(tmp_path / "m") as one, library.load(tmp_path / "n") as other:
        for name, array in one.core.reduction.saved().arrays.items():  # learning is the same
            np.testing.assert_array_equal(array, other.core.reduction.saved().arrays[name])
    count, changed = np.zeros(12), 0
    for i, (line, own, wanted) in enumerate(zip(lines, every, best, strict=True)):
        q = 1 + max(np.log(max(i, 1)) - 1, 0) * (B + 1) ** A * (count + B) ** -A
        gain = {y: p * q[y] for y, p in pairs(own)}
        listed = pairs(wanted)
        assert listed == [pair for y, _ in listed for pair in pairs(own) if pair[0] == y]  # the probabilities remain
        np.testing.assert_allclose([gain[y] for y, _ in listed], sorted(gain.values())[:-4:-1], rtol=1e-4)
        changed += listed != pairs(own)[:3]
        count[[int(y) for y in line.split(" ")[0].split(",")]] += 1
    assert changed > len(lines) / 4


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_rare_labels_are_found_more_often(tmp_path, reduction):
    (tmp_path / "d").write_text("\n".join(uneven(600)) + "\n")
    (tmp_path / "t").write_text("\n".join(lines_of(200, 1)) + "\n")
    learn("-d", "d", f"--{reduction}", 12, "-b", 12, "-f", "m", cwd=tmp_path)
    psp, p = [], []
    for by in ("probability", "propensity"):
        err = learn("-t", "-i", "m", "-d", "t", "--rank_by", by, cwd=tmp_path).err
        psp.append(float(re.search("psp at 1, 3, 5 = ([0-9.]+)", err)[1]))
        p.append(float(re.search("precision at 1, 3, 5 = ([0-9.]+)", err)[1]))
    assert psp[1] > psp[0] and p[0] != p[1]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_batches_have_no_effect(reduction):
    lines, results = uneven(400), []
    for size in (1, 37, 400):
        with library.Learner(reduction, 12, bits=12, rank_by="propensity", threshold="auto") as model:
            for i in range(0, len(lines), size):
                model.learn_many(lines[i : i + size])
            results.append((model.core.reduction.report.figures(), model.predict("w1 v3 v7", 3)))
    assert results[0] == results[1] == results[2]
