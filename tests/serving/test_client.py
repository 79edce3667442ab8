"""`xclass.client`, and `serve.run` from a program."""

import asyncio
import contextlib
import itertools
import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from servers import SECONDS, served

import xclass
from xclass import serve
from xclass.client import Client
from xclass.reductions.core import probabilities

LINES = ["1 | sunny warm", "2 | rainy cold"] * 300


def test_a_client_learns_and_predicts():
    with xclass.Learner("oaa", classes=2, bits=10) as learner, served(learner) as running:
        with Client(port=running.port) as client:
            assert len(client.learn(LINES)) == 600
            assert client.predict(["| warm", "| cold rainy"]) == ["1", "2"]
            with pytest.raises(ValueError, match=r"'x y z \| a': column 1: the words from 'x'"):
                client.predict(["| warm", "x y z | a"])
            assert client.predict(["| cold"]) == ["2"]
            many = client.predict([f"'{'t' * 400}{i} | warm" for i in range(2000)])  # more than the buffers hold
            assert many == [f"1 {'t' * 400}{i}" for i in range(2000)]
        assert running.service.learned == 600


def test_a_client_gets_probabilities_by_a_unix_socket(tmp_path):
    with xclass.Learner("oaa", classes=3, bits=10, learn_names=True) as learner:
        learner.learn_many(["tea | a", "cup | b", "milk | c"] * 20)
        path = str(tmp_path / "s")
        listing = probabilities.ListingOptions(top_k=2)
        with served(learner, {"socket": path}, listing=listing), Client(path=path) as client:
            found = client.predict_top_k(["| a", "| b"])
            assert client.predict_top_k(["'x:0.5 | a", "y|| b"]) == found  # tags
    assert [pairs[0][0] for pairs in found] == ["tea", "cup"]
    for (_, p), (second, q), *rest in found:
        assert p > q and second in ("cup", "milk", "tea")
        assert p + q + sum(share for _, share in rest) == pytest.approx(1, abs=1e-4)


def test_a_client_that_another_thread_closes_says_so():
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:
        accepted = pool.submit(server.accept)
        making = threading.Thread(target=lambda: made.append(Client(port=server.getsockname()[1], timeout=60)))
        made: list[Client] = []
        making.start()
        connection, _ = accepted.result(60)
        connection.recv(100)
        connection.sendall(b"\x15error: none\n")
        making.join(60)
        waiting = pool.submit(made[0].predict, ["| a"])
        connection.recv(100)  # it waits for the answer now
        began = time.monotonic()
        made[0].close()
        with pytest.raises(ConnectionError, match="another thread has closed the client"):
            waiting.result(30)
        assert time.monotonic() - began < 30
        connection.close()


def test_a_client_serves_several_threads_and_a_process_that_was_forked():
    def wrong(client, word, answer):
        return sum(client.predict([f"| {word}"]) != [answer] for _ in range(100))

    learner = xclass.Learner("oaa", classes=2, bits=10)
    with learner, served(learner) as running, Client(port=running.port) as client:
        client.learn(LINES)
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(wrong, [client] * 2, ("warm", "rainy"), "12")) == [0, 0]
        child = os.fork()
        if not child:
            os._exit(wrong(client, "warm", "1"))
        assert wrong(client, "rainy", "2") == 0
        assert os.waitpid(child, 0)[1] == 0


def test_a_client_connects_anew_after_the_server_has_ended_an_idle_connection():
    learner = xclass.Learner("oaa", classes=2, bits=10)
    with learner, served(learner, {"idle_timeout": 0.3}) as running, Client(port=running.port) as client:
        client.learn(LINES)
        for _ in range(2):
            time.sleep(2.5)  # the server looks once a second
            assert client.predict(["| warm", "| rainy"]) == ["1", "2"]


def test_a_client_learns_nothing_from_a_server_that_only_predicts():
    with xclass.Learner("oaa", classes=2, bits=10) as learner:
        learner.learn_many(["| warm", "| rainy"], [1, 2])
        with served(learner, learns=False) as running, Client(port=running.port) as client:
            with pytest.raises(ValueError, match="only predicts"):
                client.learn(LINES)
            assert client.predict(["1 | warm"]) == ["1"]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n", b"1 xclass-client\n"])
def test_a_client_of_another_port_says_so(answer):
    def serve_once(listening):
        connection, _ = listening.accept()
        with connection:
            connection.recv(100)
            connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(serve_once, listening)
        with pytest.raises(ConnectionError, match="give the port of lines"):
            Client(port=listening.getsockname()[1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, TimeoutError, MemoryError])
def test_a_call_that_does_not_end_shifts_no_later_answers(error, monkeypatch):
    lines = [f"'t{i} | warm" for i in range(60)]
    with xclass.Learner("oaa", classes=2, bits=10) as learner, served(learner) as running:
        with Client(port=running.port) as client:
            read, calls = client._answers.readline, itertools.count()

            class Interrupted:
                close = client._answers.close

                def readline(self):
                    if next(calls) == 5:
                        raise error
                    return read()

            monkeypatch.setattr(client, "_answers", Interrupted())
            with pytest.raises(error):
                client.predict(lines)
            for i in range(3):
                assert client.predict([f"'{i} | warm"]) == [f"1 {i}"]
        with pytest.raises(OSError, match="the client is closed"):
            client.predict(["| warm"])


def test_no_name_of_a_class_looks_like_an_error_or_like_several_answers():
    names = ["milk tea", "error: x", "a:0.5 b", "error:", "1:0.3"]
    rows = [f"| f{i}" for i in range(len(names))]
    with xclass.Learner("oaa", classes=len(names), bits=12, learn_names=True) as learner:
        learner.learn_many(rows * 20, names * 20)
        with served(learner) as running, Client(port=running.port) as client:
            assert client.predict(iter(rows)) == names  # an iterator, too
            assert client.predict(f"'tag {row}" for row in rows) == [f"{name} tag" for name in names]
            assert running.ask(b"| f0\n'tag | f1\n") == b"milk tea\nerror: x tag\n"  # as -p writes them
    with xclass.Learner("oaa", classes=len(names), bits=12, learn_names=True) as learner:
        learner.learn_many(rows * 20, names * 20)
        listing = probabilities.ListingOptions(top_k=2)
        with served(learner, learns=False, listing=listing) as running, Client(port=running.port) as client:
            for found in (client.predict_top_k(rows), client.predict_top_k(f"'1:0.3 {row}" for row in rows)):
                assert [pairs[0][0] for pairs in found] == names and all(len(pairs) == 3 for pairs in found)


def test_a_client_is_told_why_it_is_refused():
    learner = xclass.Learner("oaa", classes=2, bits=10)
    refused = pytest.raises(ConnectionError, match="has 1 connections already")
    with learner, served(learner, {"max_connections": 1}) as running, Client(port=running.port), refused:
        Client(port=running.port)


def test_a_server_that_ends_is_an_error_of_the_client():
    with xclass.Learner("oaa", classes=2, bits=10) as learner, served(learner) as running:
        client = Client(port=running.port)
        assert client.predict(["| a"])
    with client, pytest.raises(OSError):
        client.predict(["| a"])


def test_run_blocks_without_an_event_loop_and_is_a_task_within_one(tmp_path):
    path = tmp_path / "m"
    answers = []

    def ready(server):
        def client():
            with Client(port=server.lines.port) as one:
                answers.extend(one.learn(LINES[:4]))
            server.stop_soon()

        threading.Thread(target=client).start()

    with xclass.Learner("oaa", classes=2, bits=10) as learner:
        assert serve.run(learner, port=0, save_to=str(path), ready=ready) is None
    assert answers == ["1", "1", "1", "2"] and xclass.load(path).examples == 4

    async def within():
        with xclass.load(path) as learner:
            await serve.run(learner, port=0, save_to=str(path), checkpoint=2, ready=ready)

    asyncio.run(within())
    assert xclass.load(path).examples == 8


def test_a_task_that_is_cancelled_and_left_saves_the_model(tmp_path):
    """`asyncio.run` cancels it once more."""
    path = tmp_path / "m"

    async def within():
        begun = asyncio.get_running_loop().create_future()
        learner = xclass.Learner("oaa", classes=2, bits=10)
        task = serve.run(learner, port=0, save_to=str(path), ready=begun.set_result)
        await asyncio.to_thread(learn, (await begun).lines.port)
        task.cancel()

    def learn(port):
        with Client(port=port) as one:
            one.learn(LINES[:4])

    asyncio.run(within())
    assert xclass.load(path).examples == 4


@pytest.mark.parametrize(
    ("place", "error", "message"),
    [
        ({"host": "no.invalid"}, OSError, "no.invalid:26542: .*; check that xclass serve runs there"),
        ({"path": "no/socket"}, FileNotFoundError, "no/socket: .*; check that xclass serve runs there"),
        ({"port": 65536 + 26542}, ValueError, "port: 92078 is not a whole number from 1 to 65535"),
        ({"port": "http"}, ValueError, "port: 'http' is not a whole number"),
    ],
)
def test_an_error_of_a_connection_names_the_server(place, error, message):
    with pytest.raises(error, match=message):
        Client(**place)


def test_a_client_of_no_server_is_told_its_port():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(ConnectionRefusedError, match=f"127.0.0.1:{port}: Connection refused; check that xclass serve"):
        Client(port=port)


def _never(connection):
    connection.recv(100)


def _half_a_line(connection):
    connection.sendall(b"spa")


def _a_byte_at_a_time(connection):
    for _ in range(100):
        connection.sendall(b"x")
        time.sleep(0.05)


def _without_end(connection):
    while True:
        connection.sendall(bytes(1 << 16))


@pytest.mark.parametrize("answer", [_never, _half_a_line, _a_byte_at_a_time, _without_end])
def test_an_answer_that_takes_too_long_is_an_error_whatever_arrives(answer):
    def accept():
        connection, _ = listening.accept()
        with connection, contextlib.suppress(OSError):
            answer(connection)
            ended.wait(SECONDS)

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        pool.submit(accept)
        began = time.monotonic()
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(TimeoutError, match=f"^{place}: the server has not answered within 0.5 seconds; .* timeout"):
            Client(port=listening.getsockname()[1], timeout=0.5)
        assert time.monotonic() - began < 5
        ended.set()
