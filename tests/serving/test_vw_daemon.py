"""Servers that are started by a command line of VW with --daemon, beside VW's own daemon.

The cases are those of VW's tests of its daemon: a model that was learned from a file predicts the file, in the
foreground and in the background (daemon-test.sh), a new learner learns what a client sends (sender_test.py), and the
command lines of its demos with several processes.
"""

import contextlib
import os
import random
import signal

import pytest
from command import learn, start_process, xclass, xclass_process
from servers import SECONDS, ask, command, connected, received, wait_for
from versus import needs_vw, run_vw, small

from scripts.serve import servers as of_scripts
from xclass.cli import command as cli
from xclass.cli import help_text, vw_flags

ONE = ("--num_children", "1")  # so that VW's daemon learns in one order
FOREGROUND = ("--daemon", "--foreground", *ONE)
LOGISTIC = ("--loss_function", "logistic")
LEARNERS = {  # options that a model is learned with, and those that VW has to be given again with the model
    "scalar": ((), ()),
    "scalar by sgd": (("--sgd", "-q", "ab"), ()),
    "logistic": ((*LOGISTIC, "--link", "logistic"), LOGISTIC),
    "oaa": (("--oaa", "5"), ()),
    "scores": (("--oaa", "5", "--scores"), ()),
    "probabilities": ((*LOGISTIC, "--oaa", "5", "--probabilities"), (*LOGISTIC, "--probabilities")),
    "ect": (("--ect", "5"), ()),
    "log_multi": (("--log_multi", "5"), ()),
    "recall_tree": (("--recall_tree", "5"), ()),
    "lists": (("--multilabel_oaa", "6"), ()),
}


def lines(kind: str, count: int, seed: int) -> list[str]:
    """Return lines, each with its newline, with tags and weights; some have no label."""
    text = small(random.Random(seed), count, 5, real=kind.startswith("scalar"), weights=(1, 2, 0.5))
    made = []
    for line in filter(None, text.splitlines()):
        head, bar, rest = line.partition("|")
        label, *others = head.split() or [""]
        if kind == "logistic" and label.isdigit():
            label = "1" if int(label) % 2 else "-1"
        elif kind == "lists" and label.isdigit():
            label, others = f"{label},5" if label != "5" else label, [word for word in others if word[0] == "'"]
        made.append(f"{' '.join([label, *others])} {bar}{rest}\n")
    return made


def learned(folder, kind: str) -> None:
    """Learn a model of VW and one of xclass from the same lines, as `vw` and `m`."""
    options, _ = LEARNERS[kind]
    (folder / "first.vw").write_text("".join(lines(kind, 60, 1)))
    run_vw("-d", "first.vw", "-f", "vw", "--save_resume", "--quiet", *options, cwd=folder)
    learn("-d", "first.vw", "-f", "m", "--vw_exact", "--quiet", *options, cwd=folder)


def answers(port: int, given: list[str]) -> str:
    return ask(port, "".join(given).encode()).decode()


@needs_vw
@pytest.mark.parametrize("kind", LEARNERS)
def test_what_is_learned_and_answered_is_as_by_vw(kind, tmp_path):
    """A model learns on from two connections, one after the other; VW's daemon and a file give the same."""
    more = lines(kind, 60, 2)
    _, again = LEARNERS[kind]
    learned(tmp_path, kind)
    (tmp_path / "more.vw").write_text("".join(more))
    words = ("-i", "m", "--vw_exact", "--quiet", *[word for word in again if word == "--probabilities"])
    learn("-d", "more.vw", "-f", "by_file", "-p", "expected", *words, cwd=tmp_path)
    with of_scripts.vw(tmp_path, "-i", "vw", *ONE, *again) as (_, port):
        expected = [answers(port, more[:25]), answers(port, more[25:])]
    with command(tmp_path, "-f", "served", *words, *FOREGROUND) as (process, port):
        found = [answers(port, more[:25]), answers(port, more[25:])]
        process.terminate()
        process.wait(SECONDS)
    assert found == expected
    assert "".join(found) == (tmp_path / "expected").read_text()
    assert (tmp_path / "served").read_bytes() == (tmp_path / "by_file").read_bytes()


@needs_vw
@pytest.mark.parametrize(
    ("kind", "start"), [("oaa", ("serve",)), ("probabilities", ("--daemon", "--foreground", "--num_children", "3"))]
)
def test_several_connections_at_the_same_time_are_answered_as_by_vw(kind, start, tmp_path):
    _, again = LEARNERS[kind]
    learned(tmp_path, kind)
    asked = [[f"|a w{i} 'no\n", f"c{i}|a w{i} w{i + 1} |b x:2\n", f"{i % 5 + 1} 'l{i}|a w{2 * i}\n"] for i in range(4)]

    def answered(port: int) -> list[bytes]:
        """Ask on three connections in turn, close the first, and ask on another one."""
        found = []
        with contextlib.ExitStack() as open_ones:
            three = [open_ones.enter_context(connected(port)) for _ in range(3)]
            for number in range(3):
                for connection, own in zip(three, asked, strict=False):
                    connection.sendall(own[number].encode())
                found += [received(connection, 1) for connection in three]
            three[0].close()
            found.append(ask(port, "".join(asked[3]).encode()))
        return found

    with of_scripts.vw(tmp_path, "-i", "vw", "-t", "--num_children", "3", *again) as (_, port):
        expected = answered(port)
    with command(tmp_path, *start, "-i", "m", "-t", "--vw_exact", *again) as (process, port):
        assert answered(port) == expected
        process.terminate()
        errors = process.communicate(timeout=SECONDS)[1].decode()
    note = "--num_children: has no effect, because one process serves all connections\n"
    assert (note in errors) == ("--num_children" in start)
    assert b" c1\n" in b"".join(expected) and b" l2\n" in b"".join(expected)


@needs_vw
@pytest.mark.parametrize("words", ["", "--oaa 5 -b 20 --adaptive --invariant --holdout_off -l 0.08"])
def test_a_new_learner_learns_as_that_of_vw(words, tmp_path):
    given = [line.replace("0.", "1.") for line in lines("oaa" if words else "scalar", 40, 3)]
    with of_scripts.vw(tmp_path, *words.split(), *ONE) as (_, port):
        expected = answers(port, given)
    with command(tmp_path, *words.split(), "--vw_exact", "--no_stdin", *FOREGROUND, "-f", "new") as (_, port):
        assert answers(port, given) == expected


@pytest.mark.parametrize("options", [("--loss_function", "squared"), ("--loss_function", "quantile", "-q", "ab")])
def test_a_loss_of_numbers_makes_a_learner_of_numbers(options, tmp_path):
    (tmp_path / "given.vw").write_text("0.5 |a x\n2 |a x |b y\n-1.5 |b y\n" * 9)
    learn("-d", "given.vw", "-f", "expected", "-p", "answers", "--quiet", *options, cwd=tmp_path)
    with command(tmp_path, "serve", *options, "-f", "served", "--quiet") as (process, port):
        assert answers(port, [(tmp_path / "given.vw").read_text()]) == (tmp_path / "answers").read_text()
        process.terminate()
        process.wait(SECONDS)
    assert (tmp_path / "served").read_bytes() == (tmp_path / "expected").read_bytes()


DATA = "0.55 1 '1| a\n0.99 1 '2| b c\n"  # of daemon-test.sh, whose expected predictions are those of an older VW
PREDICTED = "0.553627 1\n0.733898 2\n"


def served_model(folder) -> tuple[str, ...]:
    """Learn the model of daemon-test.sh and return the words that serve it."""
    (folder / "train").write_text(DATA)
    learn("-b", 10, "-d", "train", "-f", "m", "--quiet", "--vw_exact", cwd=folder)
    return "-t", "-i", "m", "--vw_exact", "--quiet", "--pid_file", "pid"


@needs_vw
def test_the_numbers_expected_of_a_daemon_are_those_of_vw(tmp_path):
    served_model(tmp_path)
    run_vw("-b", 10, "-d", "train", "-f", "vw", "--quiet", cwd=tmp_path)
    run_vw("-t", "-i", "vw", "-d", "train", "-p", "p", "--quiet", cwd=tmp_path)
    assert (tmp_path / "p").read_text() == PREDICTED


@pytest.mark.parametrize("start", [("serve",), FOREGROUND])
def test_with_foreground_the_process_itself_serves(start, tmp_path):
    with command(tmp_path, *start, *served_model(tmp_path)) as (process, port):
        assert int((tmp_path / "pid").read_text()) == process.pid
        assert [answers(port, [DATA]) for _ in range(2)] == [PREDICTED] * 2


def test_without_foreground_another_process_serves_when_the_command_has_ended(tmp_path):
    words = served_model(tmp_path)
    with open(tmp_path / "errors", "w") as errors:  # which the server keeps open
        words = ("--daemon", *ONE, *words, "--port", "0", "--port_file", "port")
        process = start_process(*words, cwd=tmp_path, stderr=errors)
        assert process.communicate(timeout=SECONDS) == (b"", None)
    assert (process.returncode, (tmp_path / "errors").read_text()) == (0, "")
    pid = int((tmp_path / "pid").read_text())
    try:
        assert os.getsid(pid) == pid != process.pid
        port = int((tmp_path / "port").read_text())
        assert [answers(port, [DATA]) for _ in range(2)] == [PREDICTED] * 2
        os.kill(pid, signal.SIGTERM)
        wait_for(lambda: not (tmp_path / "pid").exists())
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    with pytest.raises(ConnectionRefusedError):
        connected(port)


def test_a_server_that_does_not_begin_ends_the_command_with_its_status(tmp_path):
    result = xclass_process("--daemon", "-i", "none", cwd=tmp_path)
    assert (result.status, result.err) == (1, "xclass: none: cannot load the model: there is no such file\n")
    with command(tmp_path, "--daemon", "--foreground", "--oaa", "3") as (_, port):
        result = xclass_process("--daemon", "--oaa", 3, "--port", port, cwd=tmp_path)
    assert result.status == 2 and f"cannot listen at 127.0.0.1:{port}: " in result.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--num_children", "0"), "--num_children: 0 is out of range; give a whole number of at least 1"),
        (("-d", "train"), "there is no option -d: a server reads no files of examples"),
        (("-p", "out"), "there is no option -p: clients get the predictions as answers"),
        (("--strict_parse",), "there is no option --strict_parse: a line that is malformed is answered by an error"),
        (("--active",), "there is no option --active: xclass does not support active learning"),
        (("--dictionary", "file"), "there is no option --dictionary: make such features when writing the data"),
        (("--nn", 40), "there is no option --nn: xclass does not support neural networks"),
        (("--sendto", "host"), "there is no option --sendto: clients send lines of VW text"),
    ],
)
def test_options_of_vw_are_refused_with_advice(words, message):
    result = xclass("--daemon", "--foreground", "--oaa", 3, *words)
    assert result.status == 2 and message in result.err, result.err


def test_every_option_of_the_command_and_of_vw_is_understood_or_refused_with_advice():
    sections = help_text.sections(*cli.option_groups())
    flags = {flag for section in sections for option in section.options.values() for flag in option.flags}
    flags |= {flag for listed, _ in vw_flags.ADVICE for flag in listed.split()} | set(vw_flags.ACCEPTED)
    for flag in sorted(flags - {"-h", "--help"}):
        result = xclass("--daemon", "--foreground", "--num_children", 0, flag)
        assert result.status == 2, flag
        assert "lists all options" not in result.err and "did you mean" not in result.err, result.err


def test_without_daemon_its_options_are_refused(tmp_path):
    for flag in ("--foreground", "--num_children"):
        assert f"there is no option {flag}: `xclass serve` is the server" in xclass("serve", flag).err
        assert f"there is no option {flag}: `xclass serve` starts a server" in xclass(flag, stdin="").err
