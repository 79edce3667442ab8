"""Temporary files: removed when their process is gone, left alone while it lives, and never followed through a link."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import MODEL_OF_YESTERDAY, Forked, learn, script, xclass
from streams import multiclass

from xclass.model import model_file
from xclass.system import leftovers

DEAD = 2**22 + 1  # above the highest process number of Linux
HOLDER = """
import sys, time
from xclass.system import leftovers
unfinished = leftovers.Unfinished(sys.argv[1])
unfinished.file.write(b"begun")
unfinished.file.flush()
print(unfinished.path, flush=True)
time.sleep(600)
"""


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.fixture
def holder(tmp_path):
    """Start a process that has an unfinished file beside `m`."""
    children = []

    def start():
        child = Forked([sys.executable, "-c", HOLDER, tmp_path / "m"], stdout=subprocess.PIPE)
        children.append(child)
        return child, os.path.basename(child.stdout.readline().decode().strip())

    yield start
    for child in children:
        child.kill()
        child.wait()
        child.stdout.close()


def test_file_is_removed_when_its_process_is_gone_and_not_before(tmp_path, holder):
    child, name = holder()
    assert re.fullmatch(rf"\.m\.{child.pid}-[0-9a-f]{{8}}\.tmp", name)
    leftovers.remove(tmp_path / "m")
    assert names(tmp_path) == {name}
    child.kill()
    child.wait()
    leftovers.remove(tmp_path / "other")
    assert names(tmp_path) == {name}
    leftovers.remove(tmp_path / "m")
    assert names(tmp_path) == set()


def test_number_of_a_living_process_does_not_keep_a_file_that_is_not_locked(tmp_path):
    """Process numbers are used again."""
    (tmp_path / f".m.{os.getppid()}-01234567.tmp").write_bytes(b"")
    leftovers.remove(tmp_path / "m")
    assert names(tmp_path) == set()


def test_files_beside_derived_models_are_removed_with_those_of_the_model(tmp_path):
    for name in ("m", "m.1", "m.27", "m.interrupted"):
        (tmp_path / f".{name}.{DEAD}-01234567.tmp").write_bytes(b"")
    leftovers.remove(tmp_path / "m")
    assert len(names(tmp_path)) == 3
    leftovers.remove(tmp_path / "m", derived=True)
    assert names(tmp_path) == set()


def test_nothing_else_is_removed(tmp_path):
    outside = tmp_path / "outside"
    outside.write_text("precious")
    place = tmp_path / "place"
    place.mkdir()
    others = [
        "m", ".m.tmp", ".m.1-0123456.tmp", ".m.1-0123456g.tmp", ".m.1-01234567.temp", ".m.1-01234567.unlocked.tmp",
        ".mm.1-01234567.tmp", ".m.x.1-01234567.tmp", "m.1-01234567.tmp", ".m.1-01234567.tmp~", ".m.-1.tmp",
    ]  # fmt: skip
    for name in others:
        (place / name).write_bytes(b"")
    (place / ".m.1-89abcdef.tmp").mkdir()
    (place / ".m.1-00000000.tmp").symlink_to(outside)
    (place / ".m.1-11111111.tmp").symlink_to("nowhere")
    os.mkfifo(place / ".m.1-22222222.tmp")
    before = names(place)
    leftovers.remove(place / "m", derived=True)
    assert names(place) == before
    assert outside.read_text() == "precious"


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser can give a file to another user")
def test_files_of_other_users_are_left_alone(tmp_path):
    path = tmp_path / f".m.{DEAD}-01234567.tmp"
    path.write_bytes(b"")
    os.chown(path, 12345, -1)
    leftovers.remove(tmp_path / "m")
    assert path.exists()


def test_names_with_special_characters_and_long_ones(tmp_path):
    for name in ("a+b(c)[d].*", "ü" * 120, "x" * 255):
        unfinished = leftovers.Unfinished(tmp_path / name)
        unfinished.file.write(b"whole")
        unfinished.flush()
        leftovers.remove(tmp_path / name)
        unfinished.take_place()
        unfinished.close()
        assert (tmp_path / name).read_bytes() == b"whole"
        unfinished = leftovers.Unfinished(tmp_path / name)
        path = unfinished.path
        unfinished.file.close()  # which releases the lock, as the end of the process does
        assert os.path.exists(path)
        leftovers.remove(tmp_path / name)
        assert not os.path.exists(path)
        unfinished.close()
    assert len(names(tmp_path)) == 3


def test_file_removed_before_it_was_locked_is_created_again(tmp_path, monkeypatch):
    lock, calls = leftovers._lock, []

    def late(handle):
        calls.append(handle)
        if len(calls) == 1:  # another process was quicker
            for path in tmp_path.iterdir():
                path.unlink()
        return lock(handle)

    monkeypatch.setattr(leftovers, "_lock", late)
    unfinished = leftovers.Unfinished(tmp_path / "m")
    assert len(calls) == 2
    assert names(tmp_path) == {os.path.basename(unfinished.path)}
    unfinished.close()
    unfinished.close()
    assert names(tmp_path) == set()


def test_where_nothing_can_be_locked_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "_lock", lambda handle: None)
    unfinished = leftovers.Unfinished(tmp_path / "m")
    assert unfinished.path.endswith(".unlocked.tmp")
    monkeypatch.undo()
    leftovers.remove(tmp_path / "m")
    unfinished.flush()
    unfinished.take_place()
    unfinished.close()
    assert names(tmp_path) == {"m"}


def test_file_takes_the_place_whole_with_its_permissions(tmp_path):
    place = tmp_path / "m"
    place.write_bytes(b"old")
    place.chmod(0o640)
    (tmp_path / "link").symlink_to("m")
    unfinished = leftovers.Unfinished(tmp_path / "link")
    assert len(names(tmp_path)) == 3
    unfinished.file.write(b"new")
    unfinished.flush()
    assert place.read_bytes() == b"old"
    unfinished.take_place()
    unfinished.close()
    assert place.read_bytes() == b"new"
    assert len(names(tmp_path)) == 2
    assert place.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == {"m", "link"}


def test_spilled_data_have_no_name(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / f".xclass-spilled.{DEAD}-01234567.tmp").write_bytes(b"")
    with leftovers.open_spill_file() as file:
        file.write(b"x" * 100000)
        assert names(tmp_path) == set()
        file.seek(0)
        assert file.read() == b"x" * 100000


# -- whole runs

DATA = multiclass(4, 5, 300)
ARGS = ("data", "--oaa", 5, "-b", 8)


@pytest.fixture
def place(tmp_path):
    """A folder with data and a model of them."""
    (tmp_path / "data").write_text(DATA)
    learn(*ARGS, "-f", "m", "--quiet", cwd=tmp_path)
    return tmp_path


def test_next_run_on_the_same_model_removes_what_killed_runs_left(place):
    leftover_files = [
        f".m.{DEAD}-89abcdef.tmp",
        f".m.{DEAD}-01234567.tmp",
        f".m.3.{DEAD}-01234567.tmp",
        f".text.{DEAD}-01234567.tmp",
    ]
    for name in [*leftover_files, f".data.cache.{DEAD}-01234567.tmp"]:
        (place / name).write_bytes(b"x")
    learn(*ARGS, "-f", "other", "--quiet", cwd=place)
    assert names(place) == {"data", "m", "other", *leftover_files, f".data.cache.{DEAD}-01234567.tmp"}
    learn(*ARGS, "-f", "m", "-c", "--quiet", cwd=place)
    assert names(place) == {"data", "data.cache", "m", "other", leftover_files[-1]}
    learn(*ARGS, "--readable_model", "text", "--quiet", cwd=place)
    assert names(place) == {"data", "data.cache", "m", "other", "text"}


def test_used_cache_removes_what_killed_runs_left_too(place):
    learn(*ARGS, "-c", "--quiet", cwd=place)
    (place / f".data.cache.{DEAD}-01234567.tmp").write_bytes(b"x")
    assert "Cache: data.cache is read" in learn(*ARGS, "-c", cwd=place).err
    assert names(place) == {"data", "data.cache", "m"}


def test_two_runs_on_one_model_do_not_harm_each_other(place):
    """The first one holds the model of its best pass while the other one begins, saves and ends."""
    args = ("--oaa", 5, "-b", 8, "--passes", 2, "--holdout_after", 280, "-f", "m", "--quiet")
    waiting = """
import sys
from xclass.run import checkpoints as saving
before = saving.Saver.end_pass
def waits(self, better, last):
    ended = before(self, better, last)
    if self._best is not None and not last:
        print("kept", flush=True)
        sys.stdin.readline()
    return ended
saving.Saver.end_pass = waits
from xclass.cli import command as cli
cli.main()
"""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    first = Forked([sys.executable, "-c", waiting, "data", *map(str, args)], cwd=place, **pipes)
    assert first.stdout.readline() == b"kept\n"
    assert len([name for name in names(place) if name.endswith(".tmp")]) == 1
    learn("data", *args, cwd=place)
    wanted = (place / "m").read_bytes()
    assert len([name for name in names(place) if name.endswith(".tmp")]) == 1
    (place / "m").unlink()
    _, err = first.communicate(b"\n", timeout=120)
    assert (first.returncode, err) == (0, b"")
    assert (place / "m").read_bytes() == wanted
    assert names(place) == {"data", "m"}


def test_model_of_the_best_pass_is_rewritten_in_its_own_file(tmp_path):
    """So that a killed run leaves one file at most."""
    (tmp_path / "data").write_text(multiclass(4, 50, 600))
    prepare = """
import os
from xclass.model import model_file
before = model_file._write
def counted(*args):
    print(len([name for name in os.listdir() if name.startswith(".m.")]), flush=True)
    return before(*args)
model_file._write = counted
"""
    slow = ("--loss_function", "logistic", "--sgd", "-l", 0.01)
    args = ("data", "--oaa", 50, "-b", 8, *slow, "--passes", 4, "--keep_last", "-f", "m", "--quiet")
    result = script(prepare, *args, cwd=tmp_path)
    assert result.status == 0, result.err
    assert result.lines == ["1"] * 3  # two passes were better than those before, and the last model
    assert names(tmp_path) == {"data", "m"}


def test_model_of_the_best_pass_that_cannot_take_its_place_is_copied(tmp_path):
    (tmp_path / "data").write_text(multiclass(4, 50, 600))
    prepare = """
import os
from xclass.system import leftovers
before = leftovers.Unfinished.take_place
def full(self):
    leftovers.Unfinished.take_place = before
    raise OSError(28, "No space left on device")
leftovers.Unfinished.take_place = full
"""
    args = ("data", "--oaa", 50, "-b", 8, "--passes", 4, "--holdout_after", 500, "-q", "aa")
    err = learn(*args, "-f", "n", "--save_per_pass", cwd=tmp_path).err
    best = re.search(r"best pass = (\d)", err)[1]
    assert best != "4"
    result = script(prepare, *args, "-f", "m", "--quiet", cwd=tmp_path)
    assert result.status == 1
    assert "m: cannot save the model: No space left on device" in result.err
    assert "what was learned is in m.interrupted" in result.err
    assert (tmp_path / "m.interrupted").read_bytes() == (tmp_path / f"n.{best}").read_bytes()
    assert not (tmp_path / "m").exists()


# -- symbolic links

TAG = "1 |a b\n2 |a c\n1 save_{name}|\n"


@pytest.mark.parametrize("target", ["../outside/new", "../outside/model", "m", "nowhere", "l"])
def test_save_tags_follow_no_link(tmp_path, target):
    here, outside = tmp_path / "here", tmp_path / "outside"
    for folder in (here, outside):
        folder.mkdir()
    (here / "data").write_text(TAG.format(name="l"))
    learn(*ARGS[1:], "-f", "m", stdin=DATA, cwd=here)
    (outside / "model").write_bytes((here / "m").read_bytes())
    (here / "l").symlink_to(target)
    before = (here / "m").read_bytes()
    result = learn("data", "--oaa", 2, "-b", 8, cwd=here)
    assert (
        "warning: saving regressor to l: the model was not saved: l: data may only name files in the current folder, "
        "but it is a symbolic link\n"
    ) in result.err
    assert names(here) == {"data", "m", "l"} and names(outside) == {"model"}
    assert (here / "l").is_symlink()
    assert (here / "m").read_bytes() == (outside / "model").read_bytes() == before


def test_save_tags_follow_no_link_among_the_folders(tmp_path):
    here, outside = tmp_path / "here", tmp_path / "outside"
    for folder in (here, outside, here / "sub", here / "sub" / "inner"):
        folder.mkdir()
    (here / "sub" / "out").symlink_to(outside)
    learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="sub/out/x"), cwd=here)
    result = learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="sub/out/x"), cwd=here)
    assert (
        "the model was not saved: sub/out/x: data may only name files in the current folder, but its folder out is a"
        in result.err
    )
    assert names(outside) == set()
    result = learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="sub/inner/x"), cwd=here)
    assert "not saved" not in result.err
    assert names(here / "sub" / "inner") == {"x"}
    assert "the model was not saved: " in learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="no/x"), cwd=here).err


@pytest.mark.parametrize(("owner", "when"), [(model_file, "_write"), (leftovers.Unfinished, "beginning")])
def test_link_planted_while_a_save_tag_is_carried_out_is_replaced_and_not_followed(tmp_path, monkeypatch, owner, when):
    monkeypatch.chdir(tmp_path)
    outside = tmp_path / "outside"
    outside.write_text("precious")
    before = getattr(owner, when)

    def planted(*args, **given):
        if not os.path.lexists("l"):
            os.symlink("outside", "l")
        return before(*args, **given)

    monkeypatch.setattr(owner, when, planted)
    result = learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="l"))
    assert outside.read_text() == "precious"
    if when == "_write":
        assert not os.path.islink("l")
        assert model_file.load("l").options["oaa"] == 2
    else:
        assert "the model was not saved: " in result.err
        assert os.path.islink("l")
    assert names(tmp_path) == {"l", "outside"}


@pytest.mark.parametrize(("owner", "when"), [(model_file, "_write"), (leftovers.Unfinished, "beginning")])
def test_folder_exchanged_for_a_link_while_a_save_tag_is_carried_out_is_not_followed(
    tmp_path, monkeypatch, owner, when
):
    monkeypatch.chdir(tmp_path)
    for name in ("sub", "outside"):
        os.mkdir(name)
    if when == "beginning":
        Path("sub/l").write_text("precious")
    before = getattr(owner, when)

    def planted(*args):
        os.rename("sub", "moved")
        os.symlink("outside", "sub")
        return before(*args)

    monkeypatch.setattr(owner, when, planted)
    result = learn("--oaa", 2, "-b", 8, stdin=TAG.format(name="sub/l"))
    assert names(tmp_path / "outside") == set()
    assert names(tmp_path / "moved") == {"l"}
    if when == "beginning":
        assert "the model was not saved: sub/l: this is not a model of xclass" in result.err
        assert Path("moved/l").read_text() == "precious"


def test_model_is_saved_where_the_link_of_the_user_points(place):
    (place / "there").mkdir()
    (place / "old").symlink_to("there/old")
    (place / "new").symlink_to("there/new")
    (place / "there" / "old").write_bytes((place / "m").read_bytes())
    for name in ("old", "new"):
        learn(*ARGS, "-f", name, "--quiet", cwd=place)
        assert (place / name).is_symlink()
    assert names(place / "there") == {"old", "new"}


def test_links_in_place_of_derived_models_are_replaced(place):
    (place / "outside").write_text("precious")
    for name in ("new.1", "new.interrupted"):
        (place / name).symlink_to("outside")
    (place / "bad").write_text(DATA + "x |a\n")
    learn(*ARGS, "-f", "new", "--save_per_pass", cwd=place)
    assert xclass("bad", *ARGS[1:], "-f", "new", cwd=place).status == 1
    for name in ("new.1", "new.interrupted"):
        assert not (place / name).is_symlink()
        assert model_file.load(place / name).options["oaa"] == 5
    assert (place / "outside").read_text() == "precious"


# -- no space for temporary files

LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
"""


def test_examples_that_do_not_fit_into_the_folder_of_temporary_files(tmp_path, monkeypatch):
    """A limit of the file's size stands for a full disk."""
    (tmp_path / "data").write_text(multiclass(4, 20, 2000))
    (tmp_path / "m").write_bytes(MODEL_OF_YESTERDAY)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    result = script(LIMITED.format(size=20000), "data", "--softmax_tree", 20, "-f", "m", "--quiet", cwd=tmp_path)
    assert result.status == 1
    assert re.fullmatch(
        rf"xclass: {tmp_path}: cannot keep the examples that are learned at the end of the data: File too large: "
        r"[0-9]+ examples take [0-9.]+ MB, all of the data at least [0-9.]+ MB, [0-9,.]+ MB are free; "
        r"set TMPDIR to a folder with more space\n"
        r"xclass: nothing was learned yet, so nothing was saved\n",
        result.err,
    ), result.err
    assert (tmp_path / "m").read_bytes() == MODEL_OF_YESTERDAY
    assert names(tmp_path) == {"data", "m"}


def test_cache_that_finds_no_room_says_how_far_it_got(tmp_path, monkeypatch):
    (tmp_path / "data").write_text(multiclass(4, 20, 6000))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    args = ("data", "--oaa", 20, "-b", 8, "--passes", 2, "-p", "stdout")
    wanted = learn(*args, cwd=tmp_path).out
    result = script(LIMITED.format(size=50000), *args, cwd=tmp_path)
    assert re.search(
        rf"warning: {tmp_path}: a temporary cache cannot be written \(File too large; [0-9.]+ MB were written, "
        r"[0-9,.]+ MB are free\); the run continues without it\n",
        result.err,
    ), result.err
    assert result.status == 0
    assert result.out == wanted


# -- signals while a model is saved

SIGNALS = """
import signal
from xclass.model import model_file
before, calls = model_file._write, [0]
def sent(file, *args):
    calls[0] += 1
    if calls[0] == {call}:
        for _ in range({times}):
            signal.raise_signal(signal.{name})
    return before(file, *args)
model_file._write = sent
"""


CHECKPOINT = "new holds what was learned from 100 examples; what was learned after that is lost"
PASS = "what was learned from 300 examples is lost; new was not written"


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "times", "call", "more", "message"),
    [
        ("SIGINT", 1, 2, ["--checkpoint", 100], ""),
        ("SIGTERM", 2, 2, ["--checkpoint", 100], CHECKPOINT),
        ("SIGTERM", 1, 1, ["--save_per_pass"], ""),
        ("SIGINT", 2, 1, ["--save_per_pass"], PASS),
    ],
)
def test_signals_while_a_model_is_saved_on_the_way(place, name, times, call, more, message):
    prepare = SIGNALS.format(call=call, times=times, name=name)
    result = script(prepare, *ARGS, "-f", "new", *more, "--quiet", cwd=place)
    assert result.status == (130 if name == "SIGINT" else 143)
    if times == 2:
        assert result.err == f"xclass: a second signal, {name}, ended the run at once; {message}\n"
        assert names(place) == {"data", "m"} | ({"new"} if call == 2 else set())
        return
    assert f"xclass: stopped by {name}; what was learned from " in result.err
    assert "examples is in new.interrupted; new " in result.err
    learn(*ARGS[:1], "-t", "-i", "new.interrupted", "--quiet", cwd=place)


def test_second_signal_after_the_model_has_taken_its_place_says_so(place):
    prepare = """
import os, signal
before = os.replace
def late(*args, **more):
    before(*args, **more)
    signal.raise_signal(signal.SIGTERM)
    signal.raise_signal(signal.SIGTERM)
os.replace = late
"""
    result = script(prepare, *ARGS, "-f", "m", "--quiet", cwd=place)
    assert result.status == 143
    assert result.err == (
        "xclass: a second signal, SIGTERM, ended the run at once; m holds what was learned from 300 examples\n"
    )
    learn("data", "-t", "-i", "m", "--quiet", cwd=place)
    assert names(place) == {"data", "m"}
