"""The command `xclass serve`: signals, files, mistakes in its options, and what is left after a death."""

import gc
import os
import random
import signal
import time

import pytest
from command import learn
from command import xclass as run
from servers import SECONDS, ask, command, connected, received, wait_for

import xclass
from xclass.cli import serve
from xclass.serving import server

TEXT = "".join(f"{i % 3 + 1} |f y{i % 3} n{i % 7}\n" for i in range(300))


def ended(process, number: int = signal.SIGTERM) -> tuple[int, str]:
    """Send a signal, and return the exit status of a server and what it has written to standard error."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors.decode()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "first.vw").write_text(TEXT)
    learn("--oaa", 3, "-b", 12, "-d", "first.vw", "-f", "m", "--quiet", cwd=tmp_path)
    return tmp_path


def test_sigterm_answers_what_was_received_and_saves_the_model(folder):
    learn("-i", "m", "-d", "first.vw", "-f", "expected", "--quiet", cwd=folder)
    with command(folder, "serve", "-i", "m", "-f", "m", "--pid_file", "pid") as (process, port):
        assert int((folder / "pid").read_text()) == process.pid
        with connected(port) as connection:
            connection.sendall(TEXT.encode() + b"1 | incompl")
            assert received(connection, 300).count(b"\n") == 300
            status, errors = ended(process)
            assert received(connection) == b"error: the last line has no newline at its end, so it is not used\n"
    assert (status, errors.splitlines()[-1]) == (0, "model of 600 examples saved to m")
    assert (folder / "m").read_bytes() == (folder / "expected").read_bytes()
    assert not (folder / "port").exists() and not (folder / "pid").exists()


def test_a_second_signal_does_not_wait_for_clients(folder):
    with command(folder, "serve", "-i", "m", "-t", "--top_k", "3") as (process, port), connected(port) as deaf:
        deaf.settimeout(1.0)
        with pytest.raises(TimeoutError):  # nothing more is read from it
            while True:
                deaf.send(b"| y1\n" * 1000)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert process.poll() is None
        began = time.monotonic()
        assert ended(process, signal.SIGINT)[0] == 0
        assert time.monotonic() - began < 5


def test_sighup_loads_the_model_anew_and_a_damaged_one_is_refused(folder):
    (folder / "other.vw").write_text("".join(f"{3 - i % 3} |f y{i % 3}\n" for i in range(300)))
    with command(folder, "serve", "-i", "m", "-t") as (process, port):
        assert ask(port, b"|f y0\n") == b"1\n"
        learn("--oaa", 3, "-b", 12, "-d", "other.vw", "-f", "m", "--quiet", cwd=folder)
        assert ask(port, b"|f y0\n") == b"1\n"
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: ask(port, b"|f y0\n") == b"3\n")
        whole = (folder / "m").read_bytes()
        (folder / "damaged").write_bytes(whole[:-100] + bytes(100))
        os.replace(folder / "damaged", folder / "m")
        process.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        assert ask(port, b"|f y0\n") == b"3\n"
        status, errors = ended(process)
    assert status == 0
    assert "the model was loaded anew\n" in errors
    assert "the model was not loaded, and the old one serves on: m: " in errors


def test_sighup_keeps_what_was_learned_beside_the_model(folder):
    with command(folder, "serve", "-i", "m", "-f", "m") as (process, port):
        ask(port, TEXT.encode())
        process.send_signal(signal.SIGHUP)
        wait_for((folder / "m.interrupted").exists)
        status, errors = ended(process)
    assert status == 0 and "what was learned from 300 examples is in m.interrupted" in errors
    assert xclass.load(folder / "m.interrupted").examples == 600
    assert xclass.load(folder / "m").examples == 300


def test_after_a_kill_at_most_the_examples_of_a_checkpoint_are_missing(folder):
    chance = random.Random(1)
    for every in (1, 20, 50):
        before = xclass.load(folder / "m").examples
        words = ("serve", "-i", "m", "-f", "m", "--checkpoint", f"{every}")
        with command(folder, *words) as (process, port), connected(port) as connection:
            connection.sendall(TEXT.encode())
            answered = received(connection, chance.randrange(1, 290)).count(b"\n")
            process.send_signal(signal.SIGKILL)
            process.wait()
        found = xclass.load(folder / "m").examples - before
        assert answered - every <= found <= 300


def test_an_address_that_does_not_exist_is_refused_with_quiet_too(folder):
    result = run("serve", "-i", "m", "--quiet", "--host", "300.1.1.1", cwd=folder)
    assert result.status == 2 and result.err.startswith("xclass: cannot listen at 300.1.1.1:26542: "), result.err


def test_failures_are_told_with_quiet_too(folder):
    words = ("serve", "-i", "m", "-f", "new/m", "--checkpoint", "100", "--quiet")
    (folder / "new").mkdir()
    with command(folder, *words) as (process, port):
        (folder / "new").rename(folder / "away")
        ask(port, TEXT.encode())
        assert b"examples was not saved; 100 are in no file: " in process.stderr.readline()
        (folder / "away").rename(folder / "new")
        (folder / "m").write_bytes(b"damaged")
        process.send_signal(signal.SIGHUP)
        wait_for(lambda: b"the model was not loaded, and the old one serves on: m: " in process.stderr.readline())
        status, errors = ended(process)
    assert status == 0 and "model of" not in errors


def test_an_address_for_everyone_is_said_to_be_one(folder):
    with command(folder, "serve", "-i", "m", "-t", "--host", "0.0.0.0") as (process, port):
        assert ask(port, b"| y1\n")
        assert "everyone who reaches 0.0.0.0 can use the learner" in ended(process)[1]


def test_a_server_collects_garbage_often(monkeypatch):
    found = []
    monkeypatch.setattr(server, "run", lambda serving: (serving.close(), found.append(gc.get_threshold()[0])))
    before = gc.get_threshold()
    try:
        gc.set_threshold(100_000)
        assert serve.run(["--oaa", "3", "-b", "10", "--quiet"]) == 0
    finally:
        gc.set_threshold(*before)
    assert found[0] <= 1000
