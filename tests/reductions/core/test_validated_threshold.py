"""The threshold that learning chooses: by the counts of a plain loop, kept in models, and the same for any batches."""

import re

import numpy as np
import pytest
from command import learn, xclass

import xclass as library
from xclass.data.batch import empty
from xclass.errors import UsageError
from xclass.reductions.core.probabilities import ClassLists
from xclass.reductions.core.validated_threshold import BEST_F1, BINS, FIRST, ValidatedThreshold
from xclass.sklearn import XMultilabelClassifier

REDUCTIONS = ["plt", "multilabel_oaa", "multilabel"]


def lines_of(n, seed=0, labels=12):
    """Lines whose words tell one of their labels surely and another one now and then."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        y, z = rng.choice(labels, 2, replace=False).tolist()
        own = sorted({y, *([z] if rng.random() < 0.4 else [])})
        lines.append(f"{','.join(map(str, own))} | w{y} v{z} x{rng.integers(30)}")
    return lines


def plain_threshold(goal, hits, misses, true):
    """The threshold that a loop over the definition finds, and its measure."""
    found = []
    for j in range(FIRST, BINS):
        right, wrong = sum(hits[j:]), sum(misses[j:])
        precision = right / (right + wrong) if right + wrong else -1.0
        found.append((2 * right / (right + wrong + true) if goal == BEST_F1 else precision, j))
    if goal == BEST_F1:
        best = max(measure for measure, _ in found)
        return next((j / BINS, measure) for measure, j in found if measure == best)
    enough = [(j / BINS, measure) for measure, j in found if measure >= goal]
    return enough[0] if enough else ((BINS - 1) / BINS, max(found[-1][0], 0.0))


@pytest.mark.parametrize("goal", [BEST_F1, 0.6, 0.99])
def test_thresholds_are_those_of_a_plain_loop(goal):
    rng = np.random.default_rng(1)
    n, chooser = 80, ValidatedThreshold(goal)
    hits, misses, true, number = [0.0] * BINS, [0.0] * BINS, 0.0, 0
    assert chooser.now == 0.5
    for _ in range(n):
        own = np.sort(rng.choice(9, rng.integers(0, 4), replace=False))
        listed = rng.permutation(9)[:6]
        p = np.round(rng.random(6) * np.where(np.isin(listed, own), 1, 0.8) * BINS * 2) / BINS / 2  # many at an edge
        weight = rng.choice([0.5, 1, 2])
        labelled = rng.random() < 0.9
        batch = empty(1, 0, 0)._replace(
            label=np.array([len(own) if labelled else np.nan]), weight=np.float32([weight]),
            label_start=np.array([0, len(own)]), labels=own.astype(np.float64),
        )  # fmt: skip
        lists = ClassLists(p.astype(np.float32), listed, np.array([0, 6]), has_rest=False)
        before = chooser.now
        threshold = chooser.of_batch(batch, own.astype(np.int64), np.array([labelled]), lists)
        assert threshold[0] == before  # what an example tells has no effect on its own threshold
        if labelled:
            true += weight * len(own)
            for y, q in zip(listed, p, strict=True):
                for j in range(FIRST, BINS):
                    if j / BINS < q <= (j + 1) / BINS:
                        (hits if y in own else misses)[j] += weight
            number += 1
            if number in (1, 2, 4, 8, 16, 32, 64):
                hits, misses, true = [h / 2 for h in hits], [m / 2 for m in misses], true / 2
        if number:
            wanted, measure = plain_threshold(goal, hits, misses, true)
            assert chooser.now == wanted
            assert list(chooser.figures().values()) == pytest.approx([wanted, measure])


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("goal", ["auto", "auto:0.8"])
def test_batches_and_threads_have_no_effect(tmp_path, reduction, goal):
    lines, results = lines_of(300), []
    for size in (1, 37, 300):
        with library.Learner(reduction, 12, bits=12, threshold=goal) as model:
            chosen = [
                one for i in range(0, 300, size) for one in model.learn_many(lines[i : i + size]).prediction.tolist()
            ]
            model.save(tmp_path / "m")
            results.append(((tmp_path / "m").read_bytes(), chosen, model.core.reduction.report.figures()))
    assert results[0] == results[1] == results[2]
    (tmp_path / "d").write_text("\n".join(lines) + "\n")
    words = ("-d", "d", f"--{reduction}", 12, "-b", 12, "--threshold", goal, "-p", "p", "-f", "m", "--threads")
    for threads in (1, 2):
        learn(*words, threads, cwd=tmp_path)
        assert (tmp_path / "m").read_bytes() == results[0][0]
        predicted = [[int(y) for y in line.split(",") if y] for line in (tmp_path / "p").read_text().splitlines()]
        assert predicted == results[0][1]


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_model_predicts_with_the_threshold_that_it_has_chosen(tmp_path, reduction):
    (tmp_path / "d").write_text("\n".join(lines_of(500)) + "\n")
    (tmp_path / "t").write_text("\n".join(lines_of(60, 1)) + "\n")
    err = learn("-d", "d", f"--{reduction}", 12, "-b", 12, "--threshold", "auto", "-f", "m", cwd=tmp_path).err
    found = re.search(r"^threshold = ([0-9.]+), with micro F1 ([0-9.]+) in progressive validation$", err, re.M)
    assert found and 0.02 < float(found[1]) < 0.5 and float(found[2]) > 0.5

    def tested(*words):
        return learn("-t", "-i", "m", "-d", "t", "-p", "stdout", "--quiet", *words, cwd=tmp_path).lines

    assert tested() == tested("--threshold", found[1]) != tested("--threshold", 0.5)
    cut = ("--top_k", 3, "--threshold")
    assert tested(*cut, "auto") == tested(*cut, found[1]) != tested("--top_k", 3)
    cut = ("--probabilities", "--threshold")
    assert tested(*cut, "auto") == tested(*cut, found[1])
    if reduction == "plt":
        assert tested("--probabilities") == tested("--probabilities", "--threshold", found[1])
    precise = learn("-t", "-i", "m", "-d", "t", "--threshold", "auto:0.9", cwd=tmp_path).err
    of_precision = re.search(r"^threshold = ([0-9.]+), with precision (0.9[0-9]*) in", precise, re.M)
    assert of_precision and float(of_precision[1]) > float(found[1])
    # continued: with the counts of the model, or with a number that replaces them
    learn("-i", "m", "-d", "t", "-f", "n", cwd=tmp_path)
    with library.load(tmp_path / "n") as model:
        assert model.core.reduction.chooser.counts[1, BINS] == 560
    learn("-i", "m", "-d", "t", "-f", "n", "--threshold", 0.25, cwd=tmp_path)
    with library.load(tmp_path / "n") as model:
        assert model.core.reduction.chooser is None and model.core.reduction.threshold == 0.25
    result = xclass("-i", "n", "-t", "-d", "t", "--threshold", "auto", cwd=tmp_path)
    assert result.status == 1 and "n: --threshold auto is chosen while learning, and the model was" in result.err


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_held_out_examples_count_and_repeated_ones_do_not(tmp_path, reduction):
    (tmp_path / "d").write_text("\n".join(lines_of(100)) + "\n")
    held_out = ("--holdout_period", 10, "--early_terminate", 9, "--keep_last")
    for passes, held, wanted in ((1, ("--holdout_off",), 100), (3, ("--holdout_off",), 100), (3, held_out, 120)):
        learn("-d", "d", f"--{reduction}", 12, "-b", 12, "--threshold", "auto", "-f", "m", "-k", "--cache_file", "c",
              "--passes", passes, *held, cwd=tmp_path)  # fmt: skip
        with library.load(tmp_path / "m") as model:
            assert model.core.reduction.chooser.counts[1, BINS] == wanted


def test_merged_models_choose_by_the_counts_of_all(tmp_path):
    for name, seed, goal in (("a", 1, "auto"), ("b", 2, "auto"), ("c", 3, "auto:0.7"), ("d", 4, 0.3)):
        text = "\n".join(lines_of(101, seed)) + "\n"
        learn("--multilabel_oaa", 12, "-b", 12, "--threshold", goal, "-f", name, stdin=text, cwd=tmp_path)
    learn("merge", "a", "b", "-f", "m", cwd=tmp_path)
    counts = []
    for name in "abm":
        with library.load(tmp_path / name) as model:
            counts.append(model.core.reduction.chooser.counts)
    np.testing.assert_allclose(counts[2], (counts[0] + counts[1]) / 2)
    for other in "cd":
        result = learn("merge", "a", other, "-f", "m", cwd=tmp_path)
        assert "the models keep different values of --threshold, and the merged model keeps none" in result.err


def test_programs_choose_it_too(tmp_path):
    lines = lines_of(400)
    with library.Learner("multilabel_oaa", 12, bits=12, threshold="auto") as model:
        model.learn_many(lines)
        (tmp_path / "t").write_text("\n".join(lines_of(60, 1)) + "\n")
        figures = model.evaluate(tmp_path / "t")
        assert figures["threshold"] == model.core.reduction.threshold != 0.5
        with library.Learner("multilabel_oaa", 12, bits=12, threshold=figures["threshold"]) as other:
            other.learn_many(lines)
            assert other.evaluate(tmp_path / "t")["micro_f1"] == figures["micro_f1"]
    with pytest.raises(UsageError, match=r"threshold: 'auto:2' is not a number from 0 to 1, or auto"):
        library.Learner("plt", 12, threshold="auto:2")
    X = [line.split("| ")[1] for line in lines]
    y = [line.split(" ")[0].split(",") for line in lines]
    own, automatic = (
        sum(map(len, XMultilabelClassifier(options=option).fit(X, y).predict(X))) for option in ("", "--threshold auto")
    )
    assert automatic > own
