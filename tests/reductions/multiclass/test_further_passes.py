"""Further passes with --rerank: which examples the first one leaves out, and when the scorers learn again."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from library import for_passes, state_of

from xclass.data import batch_ops
from xclass.reductions.core import further_passes
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.further_passes import FurtherPasses
from xclass.reductions.core.spec import LearnerUse


def test_one_of_32_examples_is_left_out_in_blocks_and_however_batches_are_cut():
    flags = further_passes.left_out(0, 5000)
    blocks = [(a, b) for a, b in further_passes.ranges(flags) if flags[a]]
    assert blocks == [(95, 97), (191, 195), (383, 391), (767, 783), (1535, 1567), (3071, 3135)]
    cut = np.concatenate([further_passes.left_out(i, min(7, 5000 - i)) for i in range(0, 5000, 7)])
    assert np.array_equal(cut, flags)


def scorers_learn(loss, copy_loss, weight, sure: float) -> bool:
    """Let scorers and their copy have losses in the second pass for an example that the first pass left out."""
    losses = {"scorers": np.zeros(4096), "the copy": np.zeros(4096)}
    further = FurtherPasses(
        LearnerUse(passes=2), lambda scorers: "the copy", str, lambda ranked: losses[ranked[0]], sure
    )
    further.end_pass("scorers")
    further.begin_pass(1)
    ones = np.ones(4096)
    task = BatchTask(batch_ops.empty(4096, 0, 0)._replace(label=ones, weight=ones.astype(np.float32)), True, ones)
    left_out, learns = further.begin(task)
    some = np.flatnonzero(left_out)[: len(loss)]
    task.batch.weight[some], losses["scorers"][some], losses["the copy"][some] = weight, loss, copy_loss
    learner = SimpleNamespace(share=lambda job, jobs, in_order: [job(*each) for each in jobs])
    rank = lambda scorers, learns, begin, end, ranked: ranked.append(scorers) or end  # noqa: E731
    further.rank(learner, task, left_out, learns, "scorers", list, rank)
    return further.end_pass("scorers") == "scorers"


@pytest.mark.parametrize(("copy_p", "learn"), [(0.5, True), (0.3, True), (0.7, False)])
def test_the_lower_log_loss_decides(copy_p, learn):
    assert scorers_learn(-np.log([0.5, 0.5]), -np.log([copy_p, copy_p]), [1, 2], 0.0) is learn


@pytest.mark.parametrize(("loss", "learn"), [([0.0, 1.0], False), ([0.0, 0.1], True)])
def test_scorers_must_be_better_by_some_standard_errors(loss, learn):
    assert scorers_learn(loss, [1.0, 1.0], [1, 1], 1.2) is learn


def lines(n: int, noise: float, seed: int, classes: int = 300) -> str:
    """Return examples whose words tell the class; a share `noise` of the labels is drawn at random."""
    rng = random.Random(seed)
    text = ""
    for _ in range(n):
        label = rng.randrange(classes)
        words = [f"w{(label * 7 + rng.randrange(4) * 31) % (classes // 2)}" for _ in range(4)]
        words += [f"n{rng.randrange(300)}" for _ in range(4)]
        if rng.random() < noise:
            label = min(int(rng.expovariate(0.3)), classes - 1)
        text += f"{label + 1} | {' '.join(words)}\n"
    return text


@pytest.mark.parametrize(("noise", "learn"), [(0.0, True), (0.95, False)])
def test_scorers_learn_again_where_labels_can_be_predicted(noise, learn):
    text = lines(6000, noise, 1)
    with for_passes(3, "multiclass", None, bits=18, trees=2) as model:
        words = []
        for number in range(3):
            model.core.reduction.begin_pass(number)
            model.learn_many(text)
            model.end_pass()
            words.append(model.core.reduction.scorers.weights.words.word.copy())
        assert np.array_equal(words[1], words[2]) is not learn


def test_batches_that_are_cut_give_the_same_model_in_several_passes():
    text = lines(700, 0.3, 2).splitlines(keepends=True)
    states = []
    for size in (700, 64, 7):
        with for_passes(2, "multiclass", None, bits=14, trees=2) as model:
            for number in range(2):
                model.core.reduction.begin_pass(number)
                for i in range(0, len(text), size):
                    model.learn_many("".join(text[i : i + size]))
                model.end_pass()
            states.append(state_of(model).arrays)
    assert states[0] == states[1] == states[2]
