"""`xclass --vw_exact ARGS` beside `vw ARGS` on random data and options, odd ones too: `scripts/compare_vw.py` in small.

Compared are exit status, table and summary, predictions, raw predictions, audits, models and their text. A case is made
of a seed and its number; `python scripts/compare_vw.py --runs 1000 --seed 7` compares as many as wanted.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from command import learn, xclass

if importlib.util.find_spec("vowpalwabbit") is None:
    pytest.skip("vowpalwabbit is not installed: nothing to compare with", allow_module_level=True)

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import compare_vw
import vw_cases
import vw_process

SEED = 11
CASES = sorted(set(range(16)) - {3, 6})  # 3 and 6: see the differences that README lists
SOUND = "1 |a x\n2 0.5 |b y\n |c z\n1 1.25 |a z |b x\n3 |a x y\n2 3 |b y\n"


@pytest.fixture(scope="module")
def vw():
    with vw_process.VW() as process:
        yield process


def assert_same(vw, folder, *steps: tuple[str, str]) -> None:
    """Compare runs, each given as data and options, one after the other in a folder."""
    made = tuple(vw_cases.Step(data.encode(), tuple(args.split())) for data, args in steps)
    found = compare_vw.compare(vw, made, folder)
    assert found is None, compare_vw.told(0, made, found)


@pytest.mark.parametrize("number", CASES)
def test_nothing_differs_from_vw(vw, tmp_path, number):
    steps = vw_cases.make(SEED, number)
    found = compare_vw.compare(vw, steps, tmp_path)
    assert found is None, compare_vw.told(number, steps, found)


@pytest.mark.parametrize("kind", ["", "--oaa 3", "--recall_tree 3", "--ect 3", "--log_multi 3"])
@pytest.mark.parametrize("data", ["", "\n\n", "|\n", " |a x\n"])
def test_data_that_teach_nothing_end_as_in_vw(vw, tmp_path, kind, data):
    assert_same(vw, tmp_path, (data, f"{kind} -f model0 -p p0"))


def test_data_that_teach_nothing_are_an_error_otherwise(tmp_path):
    (tmp_path / "data").write_text("")
    done = xclass("-d", "data", "--oaa", "3", "-f", "m", cwd=tmp_path)
    assert done.status == 1
    assert "not one example was learned from" in done.err
    learn("-d", "data", "--oaa", "3", "-f", "m", "--vw_exact", cwd=tmp_path)
    assert (tmp_path / "m").exists()


@pytest.mark.parametrize("pace", ["", "-P 1", "-P 3", "-P 1.5"])
@pytest.mark.parametrize("kind", ["", "--oaa 3", "--ect 3"])
def test_counters_of_a_model_go_on_as_in_vw(vw, tmp_path, kind, pace):
    """The row due next, unlabelled examples and the number of passes are counted on, through two models."""
    on = "--preserve_performance_counters"
    assert_same(
        vw, tmp_path,
        (SOUND, f"{kind} -f model0 -p p0 -P 1.5"),
        (SOUND, f"{kind} -i model0 {on} -f model1 -p p1 {pace}"),
        (SOUND, f"{kind} -i model1 -f model2 -p p2"),
        (SOUND, f"{kind} -i model2 {on} --passes 2 -c --holdout_period 3 -f model3 -p p3 {pace}"),
    )  # fmt: skip


def test_sums_of_weighted_examples_have_the_bits_of_vws(vw, tmp_path):
    """Equal shares in an audit are in another order where the last bit of a weight differs."""
    labels = ("1 1.25", "2 3", "3 1e10", "1", "2 1e-10", "3 1.25", "0", "-1", "7 3")
    lines = [f"{label} |a t{i % 4}:0.01 w{i % 3}:3 |b x:{i}\n" for i, label in enumerate(labels * 6)]
    assert_same(
        vw, tmp_path, ("".join(lines), "--oaa 3 --hash all --audit -q :: -p p0 -f model0 --readable_model text0")
    )


@pytest.mark.parametrize("options", ["--swap_resistance 1", "--swap_resistance 2 -l 0.01"])
def test_crosses_are_not_counted_where_no_router_is_asked(vw, tmp_path, options):
    """Before the first split, and once the tree is lost."""
    first = "".join(f"{1 + i % 3} |a t{i % 3} |b u\n" for i in range(60))
    other = "".join(f"{1 + i % 4} |a v{i % 2} |b w{i % 5}\n" for i in range(300))
    assert_same(vw, tmp_path, (first + other, f"--log_multi 3 {options} -q :: -P 7 -p p0 -f model0"))
