"""A server's models and life: what fails, what is loaded again, how it starts, reloads and ends."""

import asyncio
import errno
import os
import resource
import signal
import socket
import threading
import time
from types import SimpleNamespace
from unittest import mock

import pytest
from command import start_process
from command import xclass as xclass_command
from servers import SECONDS, Messages, Served, answers, asked, command, in_event_loop, served, wait_for

import xclass
from xclass.errors import ModelError, UsageError
from xclass.serving import server
from xclass.serving.models import FolderModels, OneModel
from xclass.serving.options import ServerOptions
from xclass.serving.service import FAILED, Service

LINE, ANSWER = b"|f y0\n", b"1\n"


def new(label: int = 1) -> xclass.Learner:
    learner = xclass.Learner("oaa", classes=3, bits=10)
    learner.learn_many([f"{label} |f y0"] * 20)
    return learner


def write(path, label: int = 1) -> None:
    with new(label) as learner:
        learner.save(path)


def status(port: int, path: str) -> int:
    return asked(port, "GET", path)[0]


# the models of a folder


async def fail(service: Service) -> None:
    """Let the worker of a service fail."""
    service.handler.handle = lambda text, learn: 1 // 0
    assert await answers(service, LINE) == FAILED
    while service.failure is None:
        await asyncio.sleep(0.01)


@in_event_loop
async def test_a_model_that_fails_is_loaded_again_and_others_serve_on(tmp_path):
    messages = Messages()
    write(tmp_path / "one.bin")
    write(tmp_path / "two.bin")
    models = FolderModels(str(tmp_path), xclass.load, messages)
    await models.refresh(False)
    other = models.services["two"]
    for label in (1, 2):  # the second time there is a new file, too
        await fail(models.services["one"])
        if label == 2:
            write(tmp_path / "one.bin", label)
        await models.refresh(False)
        assert await answers(models.services["one"], LINE) == b"%d\n" % label
        assert models.services["two"] is other and await answers(other, LINE) == ANSWER
    assert any("one: the learner has failed" in text for text in messages)
    assert any("ZeroDivisionError" in text for text in messages)
    await fail(models.services["one"])
    (tmp_path / "one.bin").write_bytes(b"damaged")
    await models.refresh(False)
    assert list(models.services) == ["two"]
    await models.end()


@in_event_loop
async def test_a_model_whose_kernels_cannot_be_loaded_is_refused(tmp_path):
    messages = Messages()
    write(tmp_path / "one.bin")
    models = FolderModels(str(tmp_path), xclass.load, messages)
    with mock.patch("xclass.run.warm_up.parts", return_value={"a part": lambda: 1 // 0}) as loads:
        for _ in range(2):
            await models.refresh(False)
            assert not models.services
        loads.assert_called_once()
    assert messages[-1].startswith("one: the model was not loaded: ")
    await models.refresh(True)
    assert await answers(models.services["one"], LINE) == ANSWER
    await models.end()


@in_event_loop
async def test_files_that_were_refused_are_tried_again(tmp_path):
    """After a pause if the system could not read them, and otherwise when SIGHUP asks for it."""

    messages = Messages()
    write(tmp_path / "one.bin")
    models = FolderModels(str(tmp_path), xclass.load, messages)
    too_many = OSError(errno.EMFILE, "Too many open files")
    with mock.patch("xclass.model.model_file.open", side_effect=too_many, create=True):
        for _ in range(2):
            await models.refresh(False)
    assert len(messages) == 1 and "Too many open files" in messages[0]
    await models.refresh(False)
    assert await answers(models.services["one"], LINE) == ANSWER
    write(tmp_path / "one.bin", 2)
    with mock.patch("xclass.model.model_file.opened", side_effect=ModelError("wrong")):
        await models.refresh(False)
    assert messages[-1] == "one: the model was not loaded: wrong; the model that was loaded before is served on"
    await models.refresh(False)
    assert await answers(models.services["one"], LINE) == ANSWER
    await models.refresh(True)
    assert await answers(models.services["one"], LINE) == b"2\n"
    await models.end()


@in_event_loop
async def test_a_link_to_itself_is_refused_alone(tmp_path):
    messages = Messages()
    (tmp_path / "loop.bin").symlink_to("loop.bin")
    (tmp_path / "gone.bin").symlink_to("nothing")
    (tmp_path / "folder.bin").mkdir()
    os.mkfifo(tmp_path / "pipe.bin")
    write(tmp_path / "one.bin")
    models = FolderModels(str(tmp_path), xclass.load, messages)
    for _ in range(2):
        await models.refresh(False)
    assert await answers(models.services["one"], LINE) == ANSWER and list(models.services) == ["one"]
    refused = sorted(one for one in messages if "not loaded" in one)
    assert [one.partition(": the model was not loaded: ")[0] for one in refused] == ["gone", "loop"]
    assert "no such file" in refused[0] and "symbolic links" in refused[1]
    (tmp_path / "loop.bin").unlink()
    write(tmp_path / "loop.bin", 2)
    await models.refresh(False)
    assert await answers(models.services["loop"], LINE) == b"2\n"
    await models.end()


@in_event_loop
async def test_a_folder_that_cannot_be_read_any_more_is_told_once(tmp_path):
    messages, folder = Messages(), tmp_path / "models"
    folder.mkdir()
    write(folder / "one.bin")
    models = FolderModels(str(folder), xclass.load, messages)
    await models.refresh(False)
    folder.rename(tmp_path / "away")
    for _ in range(2):
        await models.refresh(False)
    assert messages[1:] == [f"{folder}: the folder cannot be read: No such file or directory"]
    assert await answers(models.services["one"], LINE) == ANSWER
    await models.end()


@in_event_loop
async def test_http_answers_while_the_models_of_a_folder_are_loaded(tmp_path):
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    go_on = threading.Event()

    def load(path: str) -> xclass.Learner:
        assert "two" not in path or go_on.wait(SECONDS)
        return xclass.load(path)

    write(tmp_path / "one.bin")
    write(tmp_path / "two.bin")
    serving = server.Server(FolderModels(str(tmp_path), load, Messages()), ServerOptions(http="0"), Messages())
    opened = asyncio.Event()
    task = asyncio.ensure_future(serving.serve(lambda _: opened.set()))
    await opened.wait()
    port = serving.http.port
    assert await asyncio.to_thread(status, port, "/healthz") == 200
    await asyncio.to_thread(wait_for, lambda: status(port, "/v1/one/model") == 200)
    for path in ("/readyz", "/v1/two/model", "/v1/model"):
        assert await asyncio.to_thread(status, port, path) == 503
    go_on.set()
    await asyncio.to_thread(wait_for, lambda: status(port, "/readyz") == 200)
    assert await asyncio.to_thread(status, port, "/v1/two/model") == 200
    serving.stop()
    await task


def test_a_second_signal_does_not_wait_for_http_clients(tmp_path):
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    write(tmp_path / "one.bin")
    process = start_process("serve", "--models", ".", "--http", "0", "--port_file", "port", cwd=tmp_path)
    try:
        wait_for((tmp_path / "port").exists)
        port = int((tmp_path / "port").read_text())
        wait_for(lambda: status(port, "/readyz") == 200)
        head = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", port), SECONDS) as unfinished:
            unfinished.sendall(head + b"Content-Length: 100\r\n\r\n{")
            time.sleep(0.2)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SECONDS)
            assert process.returncode == 0 and time.monotonic() - began < 5
    finally:
        process.kill()
        process.communicate()


# one model


def test_a_model_is_loaded_again_if_that_is_asked_for_meanwhile():
    async def run() -> list[int]:
        go_on, labels, messages = threading.Event(), [2, 3], Messages()

        def load() -> xclass.Learner:
            assert go_on.wait(SECONDS)
            return new(labels.pop(0))

        service = Service(new())
        serving = server.Server(OneModel(service, messages, load), ServerOptions(port=0), messages)
        opened = asyncio.Event()
        task = asyncio.ensure_future(serving.serve(lambda _: opened.set()))
        await opened.wait()
        serving.reload()
        await asyncio.sleep(0.1)
        serving.reload()
        go_on.set()
        await asyncio.to_thread(wait_for, lambda: messages.count("the model was loaded anew") == 2)
        assert await answers(service, LINE) == b"3\n"
        serving.stop()
        await task
        return labels

    assert asyncio.run(run()) == []


@pytest.mark.parametrize("kind", ["port", "http"])
def test_a_start_that_fails_leaves_the_files_as_they_were(kind, tmp_path):
    """The second server can listen at one of its two ports only."""
    if kind == "http":
        pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    with served(new()) as first:
        options = {kind: first.port if kind == "port" else f"{first.port}"}
        options.update(pid_file=str(tmp_path / "pid"), port_file=str(tmp_path / "ports"))
        before = os.listdir(tmp_path)
        assert first.ask(LINE) == ANSWER  # its kernels are loaded
        with mock.patch("xclass.run.warm_up.parts", side_effect=AssertionError):  # nor are kernels loaded
            second = Served(new(), options, {"path": str(tmp_path / "m")})
            second._thread.join(SECONDS)
        assert isinstance(second.error, UsageError) and "cannot listen at" in str(second.error)
        assert os.listdir(tmp_path) == before
        assert first.ask(LINE) == ANSWER


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_signals_to_a_server_that_has_not_begun(number, tmp_path):
    """It waits for its token, which comes by a pipe, after it has loaded the model."""
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    write(tmp_path / "m")
    os.mkfifo(tmp_path / "token", 0o600)
    words = ("-i", "m", "-t", "--port", "0", "--port_file", "port", "--http", "0", "--token_file", "token")
    before = [signal.getsignal(one) for one in (signal.SIGHUP, signal.SIGTERM)]
    process = start_process("serve", *words, cwd=tmp_path)
    try:
        with open(tmp_path / "token", "w") as token:  # once the server has opened the other end
            process.send_signal(number)
            if number == signal.SIGTERM:
                wait_for(lambda: process.poll() is not None)
            time.sleep(0.2)
            assert (process.poll() is None) == (number == signal.SIGHUP)
            token.write("0123456789abcdef" * (number == signal.SIGHUP))
        wait_for(lambda: process.poll() is not None or (tmp_path / "port").exists())
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0 and b"Traceback" not in errors
    finally:
        process.kill()
        process.communicate()
    assert xclass_command("serve", "-i", "none", cwd=tmp_path).status == 1
    assert [signal.getsignal(one) for one in (signal.SIGHUP, signal.SIGTERM)] == before


# ports, and the limit of open files


def test_the_file_of_ports_holds_one_a_line(tmp_path):
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    write(tmp_path / "m")
    with command(tmp_path, "serve", "-i", "m", "-t", "--http", "0", "--quiet") as (_, port):
        lines = (tmp_path / "port").read_text().splitlines()
        assert lines[0] == str(port) and status(int(lines[1]), "/healthz") == 200
    with served(new(), {"socket": str(tmp_path / "s"), "http": "0", "port_file": str(tmp_path / "ports")}) as running:
        assert (tmp_path / "ports").read_text() == f"{running.server.http.port}\n"


def test_a_pipe_that_the_port_is_written_to_is_not_removed(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with served(new(), {"port_file": str(pipe)}) as running:
        assert int(os.read(reader, 10)) == running.port
    os.close(reader)
    assert pipe.exists()


def test_whoever_has_the_port_can_read_the_number_of_the_process(tmp_path):
    """The port is written to a pipe, where the server waits for a reader."""
    write(tmp_path / "m")
    os.mkfifo(tmp_path / "pipe")
    words = ("-i", "m", "-t", "--port", "0", "--port_file", "pipe", "--pid_file", "pid", "--quiet")
    process = start_process("serve", *words, cwd=tmp_path)
    try:
        wait_for((tmp_path / "pid").exists)
        assert int((tmp_path / "pid").read_text()) == process.pid
        assert int((tmp_path / "pipe").read_text()) > 0
    finally:
        process.kill()
        process.communicate()


def test_the_port_may_be_written_to_standard_output(tmp_path):
    write(tmp_path / "m")
    process = start_process("serve", "-i", "m", "-t", "--port", "0", "--port_file", "stdout", cwd=tmp_path)
    assert int(process.stdout.readline()) > 0
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0


@pytest.mark.parametrize(("hard", "limit", "most"), [(1 << 20, 1064, 500), (200, 200, 68), (-1, 1064, 500)])
def test_open_files_suffice_for_all_connections_and_for_saving(hard, limit, most, monkeypatch):
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    limits = {resource.RLIMIT_NOFILE: (100, hard)}
    system = SimpleNamespace(
        RLIMIT_NOFILE=resource.RLIMIT_NOFILE,
        RLIM_INFINITY=resource.RLIM_INFINITY,
        getrlimit=limits.get,
        setrlimit=limits.__setitem__,
    )
    monkeypatch.setattr(server, "resource", system)
    with served(new(), {"http": "0", "max_connections": 500}) as running:
        assert limits[resource.RLIMIT_NOFILE] == (limit, hard)
        assert running.server.options.max_connections == most
        assert any("allow 1064, as by `ulimit -n 1064`" in text for text in running.messages) == (most < 500)
