"""Which models a run leaves behind: of the best pass, as text, with counters, and when it is stopped at the end."""

import re

import numpy as np
import pytest
from command import MODEL_OF_YESTERDAY, learn, script
from streams import multiclass, noisy, real
from versus import needs_vw, run_vw

from xclass.binary import gd
from xclass.model import model_file


def best_of(err: str) -> int:
    return int(re.search(r"best pass = (\d+)", err)[1])


# -- the best pass


def same_learned(first, second) -> bool:
    first, second = model_file.load(first), model_file.load(second)
    return all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)


@pytest.mark.parametrize("passes", [2, 3, 4])
def test_last_pass_is_kept_where_it_is_the_best(tmp_path, passes):
    args = ("--sgd", "-l", 0.001, "--passes", passes, "-f", "m", "--save_per_pass")
    result = learn(*args, stdin=real(1, 400), cwd=tmp_path)
    assert best_of(result.err) == passes
    assert f"the model saved is that of pass {passes}" in result.err
    assert (tmp_path / "m").read_bytes() == (tmp_path / f"m.{passes}").read_bytes()
    assert (tmp_path / "m").read_bytes() != (tmp_path / f"m.{passes - 1}").read_bytes()


def test_passes_that_end_early_with_the_last_one_keep_the_best_as_in_vw(tmp_path):
    """VW does not save at the end where the last pass is also the one that has too many misses before it."""
    ended_early = set()
    for misses in (1, 2, 3):
        args = ("-b", 12, "--early_terminate", misses, "--keep_last", "-f", "m", "--save_per_pass")
        for passes in (2, 3, 4, 5):
            result = learn("--oaa", 4, *args, "--passes", passes, stdin=noisy(3), cwd=tmp_path)
            used = int(re.search(r"passes used = (\d+)", result.err)[1])
            best = best_of(result.err)
            assert used == min(passes, best + misses)
            saved = best if used == best + misses else used
            assert f"the model saved is that of pass {saved}" in result.err
            assert (tmp_path / "m").read_bytes() == (tmp_path / f"m.{saved}").read_bytes()
            ended_early.add(used == passes == best + misses)
    assert ended_early == {True, False}


LEARNERS = {
    "scalar": ([], real(3, 200)),
    "oaa": (["--oaa", 4], noisy(3)),
    "recall_tree": (["--recall_tree", 4, "--max_candidates", 2], noisy(3)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("saved", [True, False])
def test_text_is_of_the_model_that_is_saved(tmp_path, name, saved):
    """Without -f it is that of the pass that would have been saved."""
    args, data = LEARNERS[name]
    args = [*args, "-b", 12, "--passes", 5, "-q", "aa"]
    learn(*args, "-f", "m", "--save_per_pass", stdin=data, cwd=tmp_path)
    made = ["-f", "m2"] if saved else []
    result = learn(*args, *made, "--readable_model", "text", "--invert_hash", "names", stdin=data, cwd=tmp_path)
    best = best_of(result.err)
    assert name == "scalar" or best < 5
    learn("-t", "-i", f"m.{best}", "--readable_model", "wanted", "--no_stdin", cwd=tmp_path)
    text_weights, expected, named = (weights(tmp_path / path) for path in ("text", "wanted", "names"))
    assert text_weights == expected
    assert {line.rpartition(":")[0].rpartition(":")[2]: line.rpartition(":")[2] for line in named} == {
        line.partition(":")[0]: line.partition(":")[2] for line in expected
    }
    used = int(re.search(r"passes used = (\d+)", result.err)[1])
    files = {f"m.{j}" for j in range(1, used + 1)} | {"m", "text", "names", "wanted"} | ({"m2"} if saved else set())
    assert {path.name for path in tmp_path.iterdir()} == files
    if saved:
        assert same_learned(tmp_path / "m2", tmp_path / f"m.{best}")
        assert (tmp_path / "m2").read_bytes() == (tmp_path / "m").read_bytes()


def weights(path) -> list[str]:
    lines = path.read_text().splitlines()
    return lines[next(i for i, line in enumerate(lines) if line.startswith("l2_state")) + 1 :]


@needs_vw
@pytest.mark.parametrize("more", ["--passes 6", "--passes 6 --early_terminate 1", "--passes 2 --holdout_off", ""])
def test_counters_of_a_text_are_vws(tmp_path, more):
    (tmp_path / "data").write_text(noisy(3) + " |a unlabelled\n")
    args = ["-d", "data", "--oaa", "4", "--readable_model", "text", *more.split()]
    run_vw(*args, "-c", "-k", cwd=tmp_path)
    headers = []
    for _ in range(2):
        lines = (tmp_path / "text").read_text().splitlines()
        lines = lines[lines.index(":1") + 1 :]
        headers.append(dict(line.rsplit(" ", 1) for line in lines if not line[0].isdigit()))
        learn(*args, "--vw_exact", cwd=tmp_path)
    for name, value in headers[0].items():
        assert float(headers[1][name]) == pytest.approx(float(value), rel=1e-4), name


# -- counters of resumed runs


@pytest.mark.parametrize("name", LEARNERS)
def test_counters_go_on_as_if_the_run_had_not_stopped(tmp_path, name):
    args, data = LEARNERS[name]
    lines = data.splitlines(keepends=True)
    first, second = "".join(lines[:70]), "".join(lines[70:])
    args = [*args, "-b", 12]
    whole = learn(*args, "-f", "whole", stdin=data, cwd=tmp_path).err
    learn(*args, "-f", "m", stdin=first, cwd=tmp_path)
    plain = learn("-i", "m", "-f", "m1", stdin=second, cwd=tmp_path).err
    on = learn("-i", "m", "-f", "m2", "--preserve_performance_counters", stdin=second, cwd=tmp_path).err
    assert (tmp_path / "m1").read_bytes() == (tmp_path / "m2").read_bytes() == (tmp_path / "whole").read_bytes()
    assert summary(on) == summary(whole) != summary(plain)
    assert f"number of examples = {len(lines) - 70}\n" in plain
    rows = [
        [line.split()[:1] + line.split()[2:] for line in err.splitlines() if ROW.match(line)] for err in (whole, on)
    ]
    assert rows[1] == [row for row in rows[0] if float(row[2]) > 70]
    assert len(rows[1]) >= 1


ROW = re.compile(r"\d\.\d{6} \d\.\d{6} ")


def summary(err: str) -> list[str]:
    lines = err[err.index("finished run") :].splitlines()
    return [line for line in lines if not line.startswith(("seconds", "slots", "best constant"))]


@needs_vw
def test_counters_go_on_as_vws(tmp_path):
    args, data = LEARNERS["oaa"]
    lines = data.splitlines(keepends=True)
    (tmp_path / "one").write_text("".join(lines[:70]))
    (tmp_path / "two").write_text("".join(lines[70:]))
    vw_summaries, summaries = [], []
    for more in (["-d", "one", "-f", "m"], ["-d", "two", "-i", "m", "--preserve_performance_counters", "-f", "m2"]):
        vw_summaries.append(summary(run_vw(*args, *more, cwd=tmp_path).err))
    for name in ("m", "m2"):
        (tmp_path / name).unlink()
    for more in (["-d", "one", "-f", "m"], ["-d", "two", "-i", "m", "--preserve_performance_counters", "-f", "m2"]):
        summaries.append(summary(learn("--vw_exact", *args, *more, cwd=tmp_path).err))
    assert summaries[0] == vw_summaries[0]
    assert summaries[1] == vw_summaries[1]
    assert "passes used = 2" in summaries[1]


# -- stopped at the end

LATE = """
import signal
from xclass.{folder} import {module}
before = {module}.{function}
def late(*args, **more):
    for _ in range({times}):
        signal.raise_signal(signal.{name})  # in this thread, so that two are not taken for one
    return before(*args, **more)
{module}.{function} = late
"""


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_stopped_while_the_model_is_saved_it_is_saved(tmp_path, name):
    (tmp_path / "data").write_text(noisy(1))
    (tmp_path / "m").write_bytes(MODEL_OF_YESTERDAY)
    args = ("data", "--oaa", 4, "-b", 10, "-p", "p", "--readable_model", "text", "-f")
    learn(*args, "wanted", cwd=tmp_path)
    text = (tmp_path / "text").read_bytes()
    prepare = LATE.format(folder="model", module="model_file", function="save", times=1, name=name)
    result = script(prepare, *args, "m", cwd=tmp_path)
    assert result.status == (130 if name == "SIGINT" else 143)
    assert f"{name} came after all examples were read; the run was completed" in result.err
    assert "Traceback" not in result.err
    assert (tmp_path / "m").read_bytes() == (tmp_path / "wanted").read_bytes()
    assert (tmp_path / "text").read_bytes() == text
    assert not (tmp_path / "m.interrupted").exists()


def test_stopped_twice_while_the_model_is_saved_the_old_one_stays(tmp_path):
    (tmp_path / "data").write_text(noisy(1))
    (tmp_path / "m").write_bytes(MODEL_OF_YESTERDAY)
    prepare = LATE.format(folder="model", module="model_file", function="_write", times=2, name="SIGINT")
    result = script(prepare, "data", "--oaa", 4, "-b", 10, "-f", "m", cwd=tmp_path)
    assert result.status == 130
    assert (tmp_path / "m").read_bytes() == MODEL_OF_YESTERDAY
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "m"]


FULL = """
from xclass.model import model_file
from xclass.errors import ModelError
before = model_file.save
def full(path, **more):
    if str(path).endswith({where!r}):
        model_file.save = before
        raise ModelError(f"{{path}}: cannot save the model: no room")
    return before(path, **more)
model_file.save = full
"""


def test_checkpoint_that_cannot_be_saved_does_not_end_the_run(tmp_path):
    (tmp_path / "data").write_text(noisy(1))
    args = ("data", "--oaa", 4, "-b", 10, "-f")
    learn(*args, "wanted", cwd=tmp_path)
    result = script(FULL.format(where="m"), *args, "m", "--checkpoint", 100, cwd=tmp_path)
    assert result.status == 0
    assert "checkpoint after 100 examples: m: the model was not saved: m: cannot save the model: no room" in result.err
    assert "checkpoint after 200 examples: m\n" in result.err
    assert (tmp_path / "m").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_pass_whose_model_cannot_be_saved_ends_the_run_and_nothing_is_lost(tmp_path):
    (tmp_path / "data").write_text(noisy(1))
    args = ("data", "--oaa", 4, "-b", 10, "--passes", 3, "--holdout_off", "--save_per_pass", "-f", "m")
    result = script(FULL.format(where="m.2"), *args, cwd=tmp_path)
    assert result.status == 1
    assert "m.2: cannot save the model: no room\n" in result.err
    assert "what was learned from 600 examples is in m.interrupted" in result.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "m.1", "m.interrupted"]


def test_testing_without_a_model_is_pointed_out(tmp_path):
    result = learn("--oaa", 4, "-t", stdin=noisy(1), cwd=tmp_path)
    assert "warning: -t without -i predicts with a new model, which has learned nothing; give -i MODEL\n" in result.err
    learn("--oaa", 4, "-f", "m", stdin=noisy(1), cwd=tmp_path)
    assert "without -i" not in learn("-i", "m", "-t", stdin=noisy(1), cwd=tmp_path).err
    assert learn("--oaa", 4, "-t", "--quiet", stdin=noisy(1), cwd=tmp_path).err == ""


@pytest.mark.parametrize("name", ["oaa", "recall_tree", "ect"])
def test_testing_loads_only_the_weights(place, monkeypatch, name):
    learn(f"--{name}", 5, "-b", 10, "-f", "m", "--quiet", stdin=multiclass(3, 5, 200))
    given = []
    serialize = gd.serialize_table

    def noted(archive, at, table, *more):
        table = serialize(archive, at, table, *more)
        given.append((at, table, archive.arrays))
        return table

    monkeypatch.setattr(gd, "serialize_table", noted)
    words = ("-i", "m", "-t", "-p", "stdout", "--quiet")
    quick = learn(*words, stdin=multiclass(4, 5, 100)).out
    assert given
    for at, table, arrays in given:
        assert f"{at}.w" in arrays
        assert not {f"{at}.g", f"{at}.n", f"{at}.sums"} & set(arrays)
        assert not gd.columns(table)["g"].any()
    given.clear()
    whole = learn(*words, "-f", "again", stdin=multiclass(4, 5, 100)).out
    assert all(f"{at}.g" in arrays for at, _, arrays in given)
    assert quick == whole
    assert model_file.load("again").arrays.keys() == model_file.load("m").arrays.keys()
