"""`xclass --vw_exact ARGS` beside `vw ARGS` on random data and options, odd ones too: scripts/compare_vw.py in small.

Compared are exit status, table and summary, predictions, raw predictions, audits, models and their text. A case is made
of a seed and its number; `python -m scripts.compare_vw --runs 1000 --seed 7` compares as many as wanted.
"""

import importlib.util

import pytest
from command import learn, xclass

if importlib.util.find_spec("vowpalwabbit") is None:
    pytest.skip("vowpalwabbit is not installed: nothing to compare with", allow_module_level=True)

from scripts import compare_vw
from scripts.fuzzing import vw_cases, vw_process

SEED = 11
CASES = sorted(set(range(30)) - {5, 16})  # VW crashes in 5, and saves no model in 16
SOUND = "1 |a x\n2 0.5 |b y\n |c z\n1 1.25 |a z |b x\n3 |a x y\n2 3 |b y\n"


@pytest.fixture(scope="module")
def vw():
    with vw_process.VW() as process:
        yield process


def assert_same(vw, folder, *steps: tuple[str, str]) -> None:
    """Compare runs, each given as data and options, one after the other in a folder."""
    made = tuple(vw_cases.Step(data.encode(), tuple(args.split())) for data, args in steps)
    failure = compare_vw.compare(vw, made, folder)
    assert failure is None, compare_vw.report(0, made, failure)


class StubVW:
    """In place of VW: ends with the given status, with empty standard output and error."""

    def __init__(self, status: int) -> None:
        self._status = status

    def run(self, args, folder):
        return vw_process.CompletedRun(self._status, "", "")


def test_a_crash_of_vw_is_reported_apart_from_differences(tmp_path):
    steps = (vw_cases.Step(b"1 |a x\n", ("--oaa", "3")),)
    failure = compare_vw.compare(StubVW(-11), steps, tmp_path)
    assert failure == compare_vw.Crash(0, "SIGSEGV")
    assert "case 5: VW ends with SIGSEGV in run 0" in compare_vw.report(5, steps, failure)
    failure = compare_vw.compare(StubVW(1), steps, tmp_path)
    assert failure.part == "exit status"


def test_what_vw_logs_in_the_middle_of_an_audit_is_left_out(tmp_path):
    line = '\ta:1:1:2@3\t[warning] Invalid feature value:"nan |b" read as NaN.\nb:2:1:1@3\n'
    parts = dict(compare_vw.written(vw_process.CompletedRun(0, "[info] x\n0\n" + line, ""), tmp_path, 0))
    assert parts["audit"] == ["0", "\ta:1:1:2@3\tb:2:1:1@3", ""]


def test_only_labels_counted_equally_often_may_change_places(tmp_path):
    def text(*counts: tuple[int, float]) -> list[str]:
        nodes = "".join(f"label = {label}\nlabel_count = {count:g}\n" for label, count in counts)
        (tmp_path / "text").write_text(f"n_preds = 3\n{nodes}parent = 0\n7:-0 -0.5 1e-05\n")
        return compare_vw.as_text(tmp_path / "text")

    assert text((3, 2), (5, 1), (4, 1)) == text((3, 2), (4, 1), (5, 1))
    assert text((3, 2), (5, 1), (4, 1)) != text((3, 2), (5, 2), (4, 1))
    assert text((3, 2), (5, 1), (4, 1))[-2] == "7:0 -0.5 1e-05"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", CASES)
def test_nothing_differs_from_vw(vw, tmp_path, number):
    steps = vw_cases.make(SEED, number)
    failure = compare_vw.compare(vw, steps, tmp_path)
    assert failure is None, compare_vw.report(number, steps, failure)


@pytest.mark.parametrize("kind", ["", "--oaa 3", "--recall_tree 3", "--ect 3", "--log_multi 3"])
@pytest.mark.parametrize("data", ["", "\n\n", "|\n", " |a x\n"])
def test_data_without_labels_end_as_in_vw(vw, tmp_path, kind, data):
    assert_same(vw, tmp_path, (data, f"{kind} -f model0 -p p0"))


def test_data_without_labels_are_an_error_without_vw_exact(tmp_path):
    (tmp_path / "data").write_text("")
    result = xclass("-d", "data", "--oaa", "3", "-f", "m", cwd=tmp_path)
    assert result.status == 1
    assert "no example was learned from" in result.err
    learn("-d", "data", "--oaa", "3", "-f", "m", "--vw_exact", cwd=tmp_path)
    assert (tmp_path / "m").exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("pace", ["", "-P 1", "-P 3", "-P 1.5"])
@pytest.mark.parametrize("kind", ["", "--oaa 3", "--ect 3"])
def test_counters_of_a_model_continue_as_in_vw(vw, tmp_path, kind, pace):
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


@pytest.mark.parametrize("first", ["3 |a x\n", "0 |a x\n"])
@pytest.mark.parametrize("lists", ["", "--scores"])
def test_indexing_is_detected_again_with_a_model(vw, tmp_path, first, lists):
    options = f"--oaa 3 {lists}"
    assert_same(
        vw, tmp_path,
        (f"{first}1 |b y\n2 |c z\n", f"{options} -f model0 -p p0"),
        ("0 |a x\n1 |b y\n2 |c z\n", f"{options} -i model0 -f model1 -p p1"),
        ("1 |a x\n3 |b y\n2 |c z\n", f"{options} -i model1 -f model2 -p p2"),
        ("1 |a x\n0 |b y\n2 |c z\n", f"{options} -i model1 -t -p p3"),
    )  # fmt: skip


def test_sampled_classes_are_never_held_out(vw, tmp_path):
    options = "--oaa 5 --oaa_subsample 2 --passes 3 -c --holdout_period 3 -P 3"
    assert_same(vw, tmp_path, (SOUND * 3, f"{options} -p p0 -f model0"))


def test_a_model_does_not_continue_to_sample_classes(vw, tmp_path):
    assert_same(
        vw, tmp_path,
        (SOUND, "--oaa 5 --oaa_subsample 2 -p p0 -f model0"),
        (SOUND, "-i model0 -p p1 -f model1"),
        (SOUND, "-i model0 --oaa_subsample 2 -p p2 -f model2"),
        (SOUND, "-i model0 -t -p p3"),
    )  # fmt: skip


@pytest.mark.parametrize("label", ["4294967294", "-2", "2147483648", "99999999999999999999", ""])
@pytest.mark.parametrize("lists", ["", "--scores", "--probabilities --loss_function logistic"])
def test_labels_that_are_no_class_are_shown_as_by_vw(vw, tmp_path, label, lists):
    assert_same(vw, tmp_path, (f"{SOUND}{label} |a x\n", f"--oaa 3 {lists} -P 1 -p p0 -f model0"))


@pytest.mark.parametrize("odd", ["1 inf |a x\n", "inf |a x\n", "-inf |a x\n", "1 -inf |a x\n", "1e38 10 |a x\n" * 9])
def test_a_best_constant_that_is_not_finite_is_shown(vw, tmp_path, odd):
    assert_same(vw, tmp_path, (f"1 |a x\n0 2 |b y\n{odd}", "-p p0 -f model0"))


@pytest.mark.parametrize("passes", ["", "--passes 2 -c --holdout_period 3"])
@pytest.mark.parametrize("lines", [0, 1, 20])
def test_a_log_loss_without_a_label_is_infinite_or_no_number(vw, tmp_path, passes, lines):
    data = "".join(f" |a x{i % 3}\n" for i in range(lines))
    assert_same(vw, tmp_path, (data, f"--oaa 3 --loss_function logistic --probabilities {passes} -p p0 -f model0"))


@pytest.mark.parametrize("every", [1, 3])
def test_a_log_loss_of_what_is_held_out(vw, tmp_path, every):
    """With unlabelled, with some labelled, and with only labelled held-out examples."""
    options = f"--oaa 3 --loss_function logistic --probabilities --passes 2 -c --holdout_period {every} -p p0 -f model0"
    assert_same(vw, tmp_path, (SOUND * 4, options))


def test_an_audit_has_the_path_before_the_crosses(vw, tmp_path):
    data = "".join(f"{1 + i % 5} |a t{i % 5} |b w{i % 3}:2\n" for i in range(60))
    options = "--recall_tree 5 --max_candidates 2 -q ab -q bb"
    assert_same(vw, tmp_path, (data, f"{options} -f model0 -p p0"), (data, f"{options} -i model0 -t -p p1 --audit"))
