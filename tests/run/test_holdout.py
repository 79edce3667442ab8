"""Passes with held-out examples: what is predicted, printed and saved, against VW."""

import random

import numpy as np
import pytest
from command import MODEL_OF_YESTERDAY, learn, xclass
from streams import noisy
from versus import agree, small

from xclass.api import progress as stats
from xclass.api import progress_table
from xclass.data import batch_ops
from xclass.model import model_file
from xclass.reductions.core.contract import AsRead, BatchTask

OPTIONS = [
    "--passes 2",
    "--passes 6",
    "--passes 9 --early_terminate 1",
    "--passes 4 --holdout_off",
    "--passes 5 --holdout_period 3",
    "--passes 3 --holdout_period 2",
    "--passes 3 --holdout_after 60",
    "--holdout_after 30",
    "--passes 3 --holdout_after 1000",
    "--passes 3 --examples 35",
    "--passes 5 -P 7",
    "--passes 3 -P 1.5 --holdout_off",
]
LEARNERS = [
    ("--oaa 6", 6, False),
    ("--recall_tree 6 --max_candidates 3", 6, False),
    ("", 9, True),
    ("--sgd -l 0.1", 9, True),
    ("--oaa 6 --sgd -l 0.3", 6, False),
    ("--loss_function quantile", 9, True),
    ("--ect 6", 6, False),
    ("--ect 6 --error 2", 6, False),
    ("--log_multi 6", 6, False),
    ("--log_multi 3 --swap_resistance 1", 6, False),
]
CASES = [(args, learner) for args in OPTIONS for learner in range(1)] + [
    (OPTIONS[i], learner) for i in (0, 4, 6, 3, 9) for learner in range(2, len(LEARNERS))
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("args", "learner"), CASES)
def test_passes_are_vws(tmp_path, args, learner):
    chosen, k, real = LEARNERS[learner]
    rng = random.Random(f"holdout {args} {learner}")
    for n in (rng.randrange(60, 140), rng.randrange(3, 25)):
        # weight 0 makes entropies NaN in VW
        weights = (1, 2, 0.5) if "tree" in chosen else (1, 1, 2, 0.5, 0)
        agree(tmp_path, small(rng, n, k, real, weights), *chosen.split(), *args.split())


def test_probabilities_are_vws_where_all_are_labelled(tmp_path):
    rng = random.Random(5)
    data = "".join(f"{(y := rng.randrange(1, 5))} |a w{y * rng.randrange(3)} w{rng.randrange(9)}\n" for _ in range(80))
    for args in ("--passes 3", "--passes 2 --holdout_off", "--holdout_after 50"):
        agree(tmp_path, data, *["--oaa", "4", "--probabilities", "--loss_function", "logistic"], *args.split())


def options_of_run(*more) -> tuple[str, ...]:
    return ("--oaa", "4", "--passes", "6", "--early_terminate", "9", "-b", "12", *more)


def a_seed_whose_best_pass_is_not_the_last(folder) -> tuple[str, int]:
    for seed in range(20):
        data = noisy(seed)
        result = learn(*options_of_run(), stdin=data, cwd=folder)
        best = int(result.err.split("best pass = ")[1].split()[0])
        if best < 6:
            return data, best
    raise AssertionError("every last pass is the best")


def test_best_pass_is_kept_and_keep_last_keeps_the_last(tmp_path):
    data, best = a_seed_whose_best_pass_is_not_the_last(tmp_path)
    result = learn(*options_of_run("-f", "m", "--save_per_pass"), stdin=data, cwd=tmp_path)
    assert f"best pass = {best}; the model saved is that of pass {best}" in result.err
    assert (tmp_path / "m").read_bytes() == (tmp_path / f"m.{best}").read_bytes()
    assert (tmp_path / "m").read_bytes() != (tmp_path / "m.6").read_bytes()
    result = learn(*options_of_run("-f", "last", "--keep_last"), stdin=data, cwd=tmp_path)
    assert f"best pass = {best}; the model saved is that of pass 6" in result.err
    kept_model, last = model_file.load(tmp_path / "last"), model_file.load(tmp_path / "m.6")
    assert all(np.array_equal(kept_model.arrays[name], last.arrays[name]) for name in last.arrays)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["last", "m", *(f"m.{j}" for j in range(1, 7))]


def test_model_of_an_earlier_run_stays_until_the_best_takes_its_place(tmp_path):
    data = noisy(1)
    (tmp_path / "m").write_bytes(MODEL_OF_YESTERDAY)
    result = xclass(*options_of_run("-f", "m"), stdin=data + "x |a\n", cwd=tmp_path)
    assert result.status == 1
    assert (tmp_path / "m").read_bytes() == MODEL_OF_YESTERDAY
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "m.interrupted"]


def test_without_held_out_examples_all_passes_run_and_the_user_is_told(tmp_path):
    result = learn("--oaa", "2", "--passes", "7", stdin="1 |a b\n2 |a c\n", cwd=tmp_path)
    assert "passes used = 7" in result.err
    assert "average loss = undefined (no holdout)" in result.err
    assert "no labelled example was held out" in result.err


def test_batches_do_not_matter_for_the_table():
    rng = np.random.default_rng(8)
    n = 200
    label, weight = rng.integers(1, 4, n).astype(float), rng.choice([1, 2, 0.5], n).astype(np.float32)
    batch = batch_ops.empty(n, 0, 0)._replace(label=label, weight=weight)
    features, prediction = rng.integers(1, 9, n), rng.integers(1, 4, n).astype(float)
    held_out, loss = np.arange(1, n + 1) % 10 == 0, np.where(label != prediction, weight, 0).astype(float)

    def task(low, high):
        of, own = slice(low, high), batch_ops.cut(batch, low, min(high, n))
        return BatchTask(
            own, True, np.zeros(own.n), AsRead(features=features[of]), held_out=held_out[of],
            prediction=prediction[of], loss=loss[of],
        )  # fmt: skip

    outputs = []
    for size in (1, 7, 64, n):
        progress = stats.Progress("multiclass", progress_table.parse_schedule("5"), holdout=True)
        printed = []
        for _ in range(3):
            for i in range(0, n, size):
                printed += progress.count(task(i, i + size))
            progress.end_pass()
        outputs.append(printed + progress.summary())
    assert outputs[0] == outputs[1] == outputs[2] == outputs[3]
    assert sum(line.endswith(" h") for line in outputs[0]) > 20


def test_a_single_pass_with_examples_held_out_has_no_best_pass(tmp_path):
    (tmp_path / "d").write_text(small(random.Random(1), 60, 6))
    err = learn("d", "--oaa", 6, "--holdout_after", 40, cwd=tmp_path).err
    assert "average loss = " in err and " h\n" in err
    assert "best" not in err


def test_classes_that_were_only_held_out_are_warned_of(tmp_path):
    lines = [f"{7 if i == 9 else i % 3 + 1} | f{i % 3}\n" for i in range(30)]
    (tmp_path / "data").write_text("".join(lines))
    for more, count in ((("--holdout_off",), 0), ((), 1)):
        result = learn("data", "--oaa", 9, "-b", 10, "--passes", 2, *more, cwd=tmp_path)
        assert result.err.count("occur only in held-out lines, and so were not learned = 1;") == count
