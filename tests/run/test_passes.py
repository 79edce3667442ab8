"""Several passes, and the model saved on the way: after passes, at tags, at checkpoints."""

import os
import random

import numpy as np
import pytest
from command import learn, start_process, xclass
from streams import multiclass, real
from versus import agree, small

from xclass.model import model_file

K = 6
LEARNERS = {"scalar": [], "oaa": ["--oaa", K], "recall_tree": ["--recall_tree", K]}


def data_of(name: str, n: int = 200) -> str:
    return real(3, n, tags=True) if name == "scalar" else multiclass(3, K, n, tags=True)


def same_model(first, second) -> bool:
    first, second = model_file.load(first), model_file.load(second)
    return (
        first.arrays.keys() == second.arrays.keys()
        and all(np.array_equal(first.arrays[name], second.arrays[name]) for name in first.arrays)
        and first.facts == second.facts
    )


@pytest.mark.parametrize("name", LEARNERS)
def test_passes_without_holdout_are_the_data_repeated(tmp_path, name):
    (tmp_path / "data").write_text(data_of(name))
    args = ["-b", "15", *LEARNERS[name]]
    wanted = learn(*args, "-f", "m1", "-p", "stdout", stdin=data_of(name) * 3, cwd=tmp_path).out
    for more in (["data"], ["data", "-c"], ["data", "-c"], []):
        stdin = None if more else data_of(name)
        result = learn(
            *args, *more, "--passes", "3", "--holdout_off", "-f", "m2", "-p", "stdout", stdin=stdin, cwd=tmp_path
        )
        assert result.out == wanted
        assert same_model(tmp_path / "m1", tmp_path / "m2")
        assert f"number of examples per pass = {200}\npasses used = 3" in result.err


@pytest.mark.parametrize("name", LEARNERS)
def test_held_out_lines_are_predicted_and_leave_no_trace(tmp_path, name):
    lines = data_of(name).splitlines(keepends=True)
    learned_lines = "".join(line for i, line in enumerate(lines, 1) if i % 10)
    result = learn(*LEARNERS[name], "-b", 15, "--passes", 2, "--keep_last", "-f", "m1", "-p", "stdout",
                 stdin="".join(lines), cwd=tmp_path)  # fmt: skip
    learn(*LEARNERS[name], "-b", 15, "--passes", 2, "--holdout_off", "-f", "m2", stdin=learned_lines, cwd=tmp_path)
    assert same_model(tmp_path / "m1", tmp_path / "m2")
    assert len(result.lines) == 2 * len(lines)


@pytest.mark.parametrize("name", LEARNERS)
def test_save_per_pass_saves_what_a_run_of_so_many_passes_saves(tmp_path, name):
    args = [*LEARNERS[name], "-b", "15", "--holdout_off"]
    learn(*args, "--passes", 3, "-f", "m", "--save_per_pass", stdin=data_of(name), cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["m", "m.1", "m.2", "m.3"]
    learn(*args, "--passes", 2, "-f", "two", stdin=data_of(name), cwd=tmp_path)
    assert same_model(tmp_path / "m.2", tmp_path / "two")
    assert same_model(tmp_path / "m.3", tmp_path / "m")


def test_several_passes_only_testing_change_nothing(tmp_path):
    learn("--oaa", K, "-f", "m", stdin=data_of("oaa"), cwd=tmp_path)
    once = learn("-i", "m", "-t", "-p", "stdout", stdin=data_of("oaa"), cwd=tmp_path).out
    assert learn("-i", "m", "-t", "--passes", 2, "-p", "stdout", stdin=data_of("oaa"), cwd=tmp_path).out == once * 2


def test_bad_line_in_the_first_pass_ends_the_run(tmp_path):
    result = xclass("--oaa", K, "--passes", 3, "-f", "m", stdin="1 |a b\n2 |a c\nx |a\n", cwd=tmp_path)
    assert result.status == 1
    assert "stdin:3:1: label 'x'" in result.err
    assert "learned from 2 examples is in m.interrupted" in result.err
    assert os.listdir(tmp_path) == ["m.interrupted"]


def test_interrupt_in_a_later_pass_keeps_what_was_learned(tmp_path):
    (tmp_path / "data").write_text(multiclass(1, K, 500))
    child = start_process(
        "data", "--oaa", K, "--passes", "100000", "--early_terminate", "100000", "-f", "m", "-P", "1000", cwd=tmp_path
    )
    for line in child.stderr:
        if line.endswith(b" h\n"):
            break
    child.terminate()
    err = child.stderr.read().decode()
    assert child.wait() == 143, err
    assert "stopped by SIGTERM" in err
    assert sorted(os.listdir(tmp_path)) == ["data", "m.interrupted"]
    assert model_file.load(tmp_path / "m.interrupted").facts["examples"] > 1000


# -- examples, files


@pytest.mark.parametrize("args", ["--examples 7", "--examples 40 --passes 3 --holdout_off", "--examples 1000"])
def test_examples_are_vws(tmp_path, args):
    agree(tmp_path, small(random.Random(args), 90, K), "--oaa", str(K), *args.split())


@pytest.mark.parametrize("file_args", [["-d", "a", "-d", "b"], ["a", "-d", "b"], ["a", "b"], ["-d", "a", "b"]])
def test_several_files_are_read_one_after_the_other(tmp_path, file_args):
    first, second = multiclass(1, K, 35), multiclass(2, K, 44)
    (tmp_path / "a").write_text(first)
    (tmp_path / "b").write_text(second)
    args = ["--oaa", K, "--passes", 2, "-p", "stdout", "-f"]
    wanted = learn(*args, "m1", stdin=first + second, cwd=tmp_path)
    result = learn(*args, "m2", *file_args, cwd=tmp_path)
    if file_args == ["a", "-d", "b"]:  # those with -d come first
        wanted = learn(*args, "m1", stdin=second + first, cwd=tmp_path)
    assert result.out == wanted.out
    assert same_model(tmp_path / "m1", tmp_path / "m2")


def test_bad_line_is_reported_with_its_file_and_line(tmp_path):
    (tmp_path / "a").write_text("1 |x y\n" * 3)
    (tmp_path / "b").write_text("1 |x y\nz |x y\n")
    assert "xclass: b:2:1: label 'z'" in xclass("a", "b", "--oaa", K, cwd=tmp_path).err
    assert "xclass: c: there is no such file" in xclass("a", "c", "--oaa", K, cwd=tmp_path).err


# -- passes that grow


def passed(err_or_out: list[str]) -> list[int]:
    """The numbers of the lines in predictions, by their tags."""
    return [int(line.split()[1]) for line in err_or_out]


def numbered(n: int, empty: int = 0) -> str:
    return "".join(f"{i % 3 + 1} '{i} |a w{i % 7}\n" for i in range(1, n + 1)) + "\n" * empty


GROWING = [  # lines, empty ones behind them, options, lines of each pass; all as in VW 9.11
    (30, 0, "--initial_pass_length 4 --passes 2", [4, 4, 9, 9, 19, 19, 30, 30]),
    (30, 0, "--initial_pass_length 4 --passes 2 --examples 10", [4, 4, 9, 9, 10, 10]),
    (30, 0, "--initial_pass_length 4 --passes 2 --examples 9", [4, 4, 9, 9, 9, 9]),
    (30, 0, "--initial_pass_length 31 --passes 3", [30, 30, 30]),
    (30, 0, "--initial_pass_length 30 --passes 2", [30, 30, 30, 30]),
    (28, 2, "--initial_pass_length 30 --passes 2", [28, 28, 28, 28]),
    (28, 2, "--initial_pass_length 31 --passes 2", [28, 28]),
]


@pytest.mark.parametrize(("n", "empty", "args", "lengths"), GROWING)
def test_growing_passes_end_at_the_end_of_the_data(tmp_path, n, empty, args, lengths):
    text = numbered(n, empty)
    (tmp_path / "data").write_text(text)
    wanted = [i for length in lengths for i in range(1, length + 1)]
    summaries = []
    for words in (["data"], ["data", "-c"], ["data", "-c"], ["data", "--invert_hash", "names"], []):
        result = learn(*words, "--oaa", 3, "--holdout_off", *args.split(), "-p", "stdout", cwd=tmp_path,
                     stdin=None if words else text)  # fmt: skip
        assert passed(result.lines) == wanted, words
        assert (
            f"number of examples per pass = {sum(lengths) // len(lengths)}\npasses used = {len(lengths)}" in result.err
        )
        summaries.append([line for line in result.err.splitlines() if line.startswith(("average", "weighted"))])
    assert summaries[1:] == summaries[:-1]
    assert len((tmp_path / "data.cache").read_bytes()) > 0


@pytest.mark.parametrize(
    ("args", "ends"),
    [
        ("--initial_pass_length 7", [7, 22, 30]),
        ("--initial_pass_length 30", [30, 30]),
        ("--initial_pass_length 31", [30]),
        ("--initial_pass_length 5 --examples 12", [5, 16, 28]),
        ("--initial_pass_length 12 --examples 5", [5]),
        ("--initial_pass_length 12 --examples 12", [12, 24]),
        ("--initial_pass_length 7 -c", [7, 22, 30]),
    ],
)
def test_single_pass_resumes_where_it_ended(tmp_path, args, ends):
    (tmp_path / "data").write_text(numbered(30))
    args = ["data", "--oaa", 3, "-b", 10, *args.split()]
    for _ in range(2):
        result = learn(*args, "--save_per_pass", "-f", "m", "-p", "stdout", cwd=tmp_path)
        assert passed(result.lines) == list(range(1, ends[-1] + 1))
    for number, end in enumerate(ends, 1):
        learn("--oaa", 3, "-b", 10, "-f", "part", stdin=numbered(end), cwd=tmp_path)
        assert same_model(tmp_path / f"m.{number}", tmp_path / "part")
    assert not (tmp_path / f"m.{len(ends) + 1}").exists()


def test_rate_decays_at_the_end_of_each_part_of_a_single_pass(tmp_path):
    args = ("--oaa", 3, "--sgd", "-l", 0.5, "-b", 10, "-p", "stdout", "--scores")
    plain = learn(*args, stdin=numbered(20), cwd=tmp_path).lines
    decayed = learn(
        *args, "--initial_pass_length", 5, "--decay_learning_rate", 0.1, stdin=numbered(20), cwd=tmp_path
    ).lines
    assert decayed[:6] == plain[:6]
    assert decayed[7:] != plain[7:]
    result = xclass(*args, "--decay_learning_rate", 0.5, stdin=numbered(5), cwd=tmp_path)
    assert result.status == 2
    assert (
        "--decay_learning_rate has no effect: it changes the learning rate between passes, and there is only"
        in result.err
    )


# -- saving on the way


def test_save_tags_save_and_are_no_examples(tmp_path):
    lines = multiclass(4, K, 60).splitlines(keepends=True)
    text = "".join(lines[:20]) + "1 save_early|\n" + "".join(lines[20:30]) + "save|\n" + "".join(lines[30:])
    result = learn("--oaa", K, "-f", "m", "-p", "stdout", stdin=text, cwd=tmp_path)
    plain = learn("--oaa", K, "-f", "all", "-p", "stdout", stdin="".join(lines), cwd=tmp_path)
    assert result.out == plain.out
    assert "saving regressor to early\n" in result.err and "saving regressor to m\n" in result.err
    learn("--oaa", K, "-f", "twenty", stdin="".join(lines[:20]), cwd=tmp_path)
    assert same_model(tmp_path / "early", tmp_path / "twenty")
    assert same_model(tmp_path / "m", tmp_path / "all")


def test_save_tags_are_vws(tmp_path):
    rng = random.Random(7)
    lines = small(rng, 60, K).splitlines(keepends=True)
    lines[30:30] = ["1 save_other|\n", "2 saved |a w1\n", "3 'save |\n", "1 'sav |\n"]
    agree(tmp_path, "".join(lines), "--oaa", str(K), "-f", "m", vw_args=())
    agree(tmp_path, "".join(lines), "--oaa", str(K), "-f", "m", "--passes", "3")


def test_save_tags_are_numbered_with_save_per_pass_as_in_vw(tmp_path):
    text = multiclass(4, K, 30) + "1 save_early|\nsave|\n"
    learn("--oaa", K, "-b", 10, "--passes", 2, "-f", "m", "--save_per_pass", stdin=text, cwd=tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["early.0", "m", "m.0", "m.1", "m.2"]


@pytest.mark.parametrize("name", ["../outside", "/tmp/xclass_outside", "data"])
def test_save_tags_write_nowhere_else_and_over_nothing_but_models(tmp_path, name):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "data").write_text(f"1 |a b\n2 |a c\n1 save_{name}|\n")
    result = learn("data", "--oaa", 2, cwd=folder)
    assert f"saving regressor to {name}: the model was not saved: " in result.err
    assert os.listdir(tmp_path) == ["here"] and os.listdir(folder) == ["data"]
    assert (folder / "data").read_text().startswith("1 |a b")
    assert not os.path.exists("/tmp/xclass_outside")


def test_save_tags_without_a_model_to_save(tmp_path):
    result = learn("--oaa", 2, stdin="1 |a b\n2 |a c\n1 save|\n", cwd=tmp_path)
    assert "the model was not saved: no -f was given" in result.err
    learn("--oaa", 2, "-f", "m", stdin="1 |a b\n2 |a c\n", cwd=tmp_path)
    result = learn("-i", "m", "-t", stdin="1 |a b\n1 save_x|\n", cwd=tmp_path)
    assert "the model was not saved: with -t the model does not change" in result.err
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("name", LEARNERS)
def test_checkpoint_is_the_model_of_so_many_examples_and_goes_on(tmp_path, name):
    lines = data_of(name, 250).splitlines(keepends=True)
    args = [*LEARNERS[name], "-b", "15"]
    result = xclass(*args, "-f", "m", "--checkpoint", 60, stdin="".join(lines[:200]) + "1 x 2 3 4|a\n", cwd=tmp_path)
    assert result.status == 1  # the bad line; the last checkpoint remains
    assert [line for line in result.err.splitlines() if line.startswith("checkpoint")] == [
        f"checkpoint after {n} examples: m" for n in (60, 120, 180)
    ]
    learn(*args, "-f", "m180", stdin="".join(lines[:180]), cwd=tmp_path)
    assert same_model(tmp_path / "m", tmp_path / "m180")
    rest = learn("-i", "m", "-f", "m2", "-p", "stdout", stdin="".join(lines[180:]), cwd=tmp_path)
    unbroken = learn(*args, "-f", "m1", "-p", "stdout", stdin="".join(lines), cwd=tmp_path)
    assert rest.lines == unbroken.lines[180:]
    assert same_model(tmp_path / "m1", tmp_path / "m2")


def test_checkpoints_go_on_through_passes_and_the_best_pass_is_there_in_the_end(tmp_path):
    text = data_of("oaa", 50)
    plain = learn("--oaa", K, "--passes", 3, "-f", "m1", stdin=text, cwd=tmp_path)
    result = learn("--oaa", K, "--passes", 3, "-f", "m2", "--checkpoint", 40, stdin=text, cwd=tmp_path)
    assert [line.split()[2] for line in result.err.splitlines() if line.startswith("checkpoint")] == ["40", "80", "120"]
    assert plain.out == result.out
    assert same_model(tmp_path / "m1", tmp_path / "m2")
    assert sorted(os.listdir(tmp_path)) == ["m1", "m2"]
