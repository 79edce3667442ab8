"""HTTP: answers, errors, who may ask, limits, metrics, the description, and clients that are slow or hostile."""

import asyncio
import contextlib
import gc
import gzip
import http.client
import json
import math
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from unittest import mock

import numpy as np
import pytest

pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
pytest.importorskip("prometheus_client", reason="prometheus-client, of the extra serve, is not installed")

from command import learn as run
from command import start_process
from command import xclass as failing
from servers import SECONDS, asked, command, in_event_loop, result, served, wait_for

import xclass
from xclass.api import model_contents
from xclass.serving import json_examples, service
from xclass.serving.http import endpoints, interface, messages
from xclass.serving.http.connection import HEAD_BYTES
from xclass.serving.service import Service
from xclass.system import steps

LINES = ["spam | offer free money", "work | meeting room", "home | dinner tonight"] * 5
TOKEN = "0123456789abcdef0123"
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
REQUEST = HEAD + b'Content-Length: 19\r\n\r\n{"texts": ["free"]}'


def new_learner(**options):
    learner = xclass.Learner("oaa", classes=5, bits=12, learn_names=True, **options)
    learner.learn_many(LINES)
    return learner


def post(port, operation, body, **headers):
    status, _, content = asked(port, "POST", f"/v1/{operation}", body, headers)
    return status, content


def learned(learner, question, most):
    return result(json_examples.learn(learner, question, lambda: most))


@pytest.fixture(scope="module")
def server():
    with served(new_learner(), {"http": "0"}) as running:
        running.http = running.server.http.port
        post(running.http, "predict", {"texts": ["free"]})  # when it is answered, the kernels are loaded
        yield running


@pytest.fixture
def port(server):
    return server.http


# answers


def test_numbers_that_are_not_finite_are_null():
    content = {"loss": math.inf, "top": [{"probability": math.nan}, 1.5]}
    assert messages.to_json(content) == b'{"loss":null,"top":[{"probability":null},1.5]}'


def test_predictions_are_those_of_the_library(port):
    texts = ["free money", "room dinner"]
    with new_learner() as learner:
        labels, p = learner.predict_many(xclass.Documents(texts), k=2)
        expected = [
            {"prediction": y[0], "top": [{"class": a, "probability": b} for a, b in zip(y, q, strict=True)]}
            for y, q in zip(labels.tolist(), p.tolist(), strict=True)
        ]
    as_lines = {"lines": [f"| {text}" for text in texts]}
    as_examples = {"examples": [{"features": dict.fromkeys(text.split(), 1)} for text in texts]}
    for given in ({"texts": texts}, as_lines, as_examples):
        status, content = post(port, "predict", {**given, "k": 2})
        assert (status, content["predictions"]) == (200, expected)
        status, content = post(port, "predict", given)
        assert content["predictions"] == [{"prediction": one["prediction"]} for one in expected]


def test_rows_of_numbers_are_those_of_the_library():
    chance = np.random.default_rng(1)
    rows = (chance.normal(size=(60, 4)) + 3 * np.eye(4)[np.arange(60) % 4]).astype(np.float32)
    names = [f"c{i % 4}" for i in range(60)]
    with xclass.Learner() as learner, xclass.Learner() as other:
        learner.learn_many(rows, names)
        other.learn_many(rows, names)
        with served(learner, {"http": "0"}) as running:
            port = running.server.http.port
            status, content = post(port, "predict", {"rows": rows.tolist(), "k": 2})
            labels, p = other.predict_many(rows, 2)
            assert [one["top"][0]["class"] for one in content["predictions"]] == labels[:, 0].tolist()
            assert content["predictions"][0]["top"][1]["probability"] == pytest.approx(p[0, 1])
            status, content = post(
                port, "learn", {"rows": rows[:3].tolist(), "labels": names[:3], "weights": [1, 2, 1]}
            )
            assert status == 200 and content["learned"] == 3
            explained = other.explain_many(rows[:1])[0].prediction
            assert post(port, "explain", {"rows": rows[:1].tolist()})[1]["explanations"][0]["prediction"] == explained
            assert asked(port, "GET", "/v1/model")[2]["width"] == 4
            status, content = post(port, "predict", {"rows": [[1, "x", 3, 4]]})
            assert status == 400 and "rows[0][1] is 'x'; allowed is a number" in content["error"]
            status, content = post(port, "learn", {"examples": [{"features": {"0": 1, "1": 2}, "label": "c1"}]})
            assert "learned from rows of 4 numbers alone, and the examples have features" in content["warnings"][0]


def test_a_table_is_asked_by_its_columns():
    table = {"size": [0.1, 0.5] * 10, "title": ["a x", "b y"] * 10, "body": ["c", "d"] * 10}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    with xclass.Learner() as learner:
        learner.learn_many(pytest.importorskip("pandas").DataFrame(table), ["tea", "beer"] * 10)
        with served(learner, {"http": "0"}) as running:
            port = running.server.http.port
            kinds = {"size": "number", "title": "text", "body": "text"}
            assert asked(port, "GET", "/v1/model")[2]["columns"] == kinds
            _, content = post(port, "predict", {"examples": [{"features": row} for row in rows[:2]]})
            assert [one["prediction"] for one in content["predictions"]] == ["tea", "beer"]
            _, content = post(port, "predict", {"examples": [{"features": {"title": "unheard of"}}]})
            assert "no feature that the model has learned" in content["warnings"][0]


def test_labels_of_a_list_are_in_the_order_of_their_probabilities():
    lines = ["2,9 | a", "2,9 | a", "9 | a", "4 | b"] * 20
    with xclass.Learner("multilabel") as learner:
        learner.learn_many(lines)
        with served(learner, {"http": "0"}, learns=False) as running:
            (one,) = post(running.server.http.port, "predict", {"lines": ["| a"], "k": 4})[1]["predictions"]
    assert len(one["prediction"]) > 1 and one["prediction"] != sorted(one["prediction"])
    assert one["prediction"] == [best["class"] for best in one["top"]][: len(one["prediction"])]


def test_bodies_are_decompressed_within_the_limit():
    question = json.dumps({"texts": ["free"]}).encode()
    raw = zlib.compressobj(wbits=-15)
    bodies_ = {
        "gzip": gzip.compress(question),
        "X-GZIP": gzip.compress(question[:5]) + gzip.compress(question[5:]),
        "deflate": zlib.compress(question),
        " deflate ": raw.compress(question) + raw.flush(),
        "identity": question,
        "": b"\xef\xbb\xbf" + question,  # a byte order mark, which some clients put before JSON
    }
    with served(new_learner(), {"http": "0", "max_body": 5000}) as running:
        port = running.server.http.port
        for encoding, body in bodies_.items():
            status, content = post(port, "predict", body, **{"Content-Encoding": encoding})
            assert (status, content) == (200, {"predictions": [{"prediction": "spam"}]}), encoding
        for encoding, body, status, message in (
            ("gzip", gzip.compress(b"") * 101, 400, "the body has more than 100 gzip members"),
            ("gzip", gzip.compress(b" " * 6000), 413, "the body is longer than 5000 bytes"),
            ("gzip", gzip.compress(b" " * 100_000_000, 1)[:4000], 413, "the body is longer than 5000 bytes"),
            ("gzip", question, 400, "the body is not gzip, as Content-Encoding says"),
            ("deflate", question, 400, "the body is not deflate, as Content-Encoding says"),
            ("gzip", gzip.compress(question)[:-12], 400, "the body ends before its gzip data do"),
            ("br", b"xx", 415, "Content-Encoding is 'br'; send the body by gzip, deflate, or as it is"),
            ("gzip, gzip", gzip.compress(gzip.compress(question)), 415, "Content-Encoding is 'gzip, gzip'"),
        ):
            answer = post(port, "predict", body, **{"Content-Encoding": encoding})
            assert answer[0] == status and message in answer[1]["error"], (encoding, answer)
        assert asked(port, "POST", "/v1/predict", b"x", {"Content-Encoding": "br"})[1]["accept-encoding"]
        assert post(port, "predict", question)[0] == 200
        assert not any(one.held for one in gc.get_objects() if type(one) is messages.Buffers)


def test_what_is_asked_by_a_query_string_is_refused_by_name(port):
    status, _, content = asked(port, "POST", "/v1/predict?k=2&threshold=.9&x", {"texts": ["free"]})
    assert status == 400 and "a query string with 'k', 'threshold', 'x', which is not used" in content["error"]
    assert asked(port, "GET", "/v1/model?%ff")[0] == 400
    assert asked(port, "GET", "/page.js?v=2")[0] == 200
    status, content = post(port, "predict", {"texts": ["free"], "threshold": 0.9})
    assert status == 400 and "'threshold' is not known; allowed are texts, k" in content["error"]


def test_a_whole_number_may_have_a_decimal_point(port):
    question = b'{"texts": ["free"], "k": 2.0}'
    assert post(port, "predict", question) == post(port, "predict", {"texts": ["free"], "k": 2})
    assert post(port, "predict", {"texts": ["free"], "k": 2.5})[0] == 400


def test_what_is_learned_is_what_the_library_learns():
    questions = [
        {"lines": ["spam | offer free", "work 2 | meeting"]},
        {"examples": [{"features": {"a": 1.5, "b": "red", "wind": {"speed": 3}}, "label": "home", "weight": 2}]},
        {"texts": ["dinner now", "what"], "labels": ["home", None], "weights": [0.5, 1]},
    ]
    expected = new_learner()
    outcomes = [
        expected.learn_many(questions[0]["lines"]),
        expected.learn_many([{"a": 1.5, "b": "red", "wind": {"speed": 3}}], ["home"], [2]),
        expected.learn_many(xclass.Documents(["dinner now", "what"]), ["home", None], [0.5, 1]),
    ]
    with served(new_learner(), {"http": "0"}) as running:
        answers = [post(running.server.http.port, "learn", question) for question in questions]
        learned = running.service.learner
        assert learned.core.clock == expected.core.clock
        assert learned.predict("| dinner", k=3) == expected.predict("| dinner", k=3)
    assert [(status, content["learned"]) for status, content in answers] == [(200, 2), (200, 1), (200, 1)]
    for (_, content), outcome in zip(answers, outcomes, strict=True):
        assert [one["prediction"] for one in content["predictions"]] == outcome.prediction.tolist()


@pytest.mark.parametrize("last", [0, 20_000_000])
def test_labels_before_one_that_makes_names_of_all_keep_their_classes(last, monkeypatch):
    """A part with a label that can only be a name comes after a part with a new number."""
    monkeypatch.setattr(json_examples, "BATCH_WORK", 4)
    features = [*({f"more{i % 2}": 1} for i in range(12)), {"last": 1}]
    labels = [*(11 + i % 2 for i in range(12)), last]
    with xclass.Learner("cpt") as learner, xclass.Learner("cpt") as other:
        for one in (learner, other):
            one.learn_many([{f"w{y}": 1} for y in range(1, 11)] * 3, [*range(1, 11)] * 3)
        answer = learned(learner, json_examples.GivenExamples(features, labels, [1.0] * 13), 5)
        other.learn_many(features, labels)
        assert answer["learned"] == len(labels) == len(answer["predictions"])
        assert learner.classes == other.classes == [*range(1, 13), last]
        asked = [{f"w{y}": 1} for y in range(1, 11)] + features
        assert learner.predict_many(asked).tolist() == other.predict_many(asked).tolist()


def test_the_first_labels_tell_whether_they_are_names_or_lists():
    for label, expected in (("tea", ["tea"]), (3, [3]), (["tea", "leaf"], [["leaf", "tea"]])):
        with served(xclass.Learner(bits=12), {"http": "0"}) as running:
            port = running.server.http.port
            for _ in range(5):
                status, content = post(port, "learn", {"examples": [{"features": {"kettle": 1}, "label": label}]})
                assert status == 200, content
            assert running.ask(b"| kettle\n").strip()  # the line protocol knows the new names, too
            found = [one["prediction"] for one in post(port, "predict", {"texts": ["kettle"]})[1]["predictions"]]
            assert [sorted(one) if isinstance(one, list) else one for one in found] == expected


def test_concurrent_requests_are_one_batch_and_each_gets_its_answer(server, port):
    gate = threading.Event()
    server.server._loop.call_soon_threadsafe(lambda: server.service.ask(waiting(gate)))
    before = server.service.batches

    def ask(i):
        name, k = ("free", "room", "dinner")[i % 3], i % 4 or None
        return post(port, "predict", {"texts": [name] * (i + 1), **({"k": k} if k else {})})

    with ThreadPoolExecutor(12) as pool:
        results = pool.map(ask, range(12))
        time.sleep(0.5)
        gate.set()
    assert server.service.batches - before <= 4  # the one that waits, a first question, and the others
    for i, (status, content) in enumerate(results):
        expected = ("spam", "work", "home")[i % 3]
        assert status == 200
        assert [one["prediction"] for one in content["predictions"]] == [expected] * (i + 1)
        assert [len(one.get("top", ())) for one in content["predictions"]] == [min(i % 4, 3)] * (i + 1)


def waiting(gate):
    return service.CallJob(Future(), lambda learner: gate.wait(SECONDS), learns=False)


def test_one_that_is_refused_does_not_refuse_the_others_of_its_batch():
    with xclass.Learner("oaa", classes=2, bits=10) as learner:
        learner.learn("1 | a")
        questions = [json_examples.GivenExamples([text]) for text in ("| a", "1 2 3 4 | a", "| b")]
        first, second, third = json_examples.predict(learner, questions)
        assert first == {"predictions": [{"prediction": 1}]} and third["predictions"] == first["predictions"]
        assert "no feature that the model has learned" in third["warnings"][0]  # its own, not that of the first
        assert isinstance(second, xclass.DataError) and "more than a label and a weight" in str(second)
        with pytest.raises(xclass.DataError, match="7"):
            learned(learner, json_examples.GivenExamples(["7 | a"]), 10)
        assert learner.examples == 1
    with xclass.Learner("scalar", bits=10) as learner:  # it cannot list classes
        first, second = json_examples.predict(
            learner, [json_examples.GivenExamples(["| a"], k=2), json_examples.GivenExamples(["| a"])]
        )
    assert "does not estimate probabilities" in str(first) and second == {"predictions": [{"prediction": 0.0}]}


def test_one_example_that_cannot_be_learned_is_named_and_the_others_are_learned():
    long = " ".join(f"a{i}" for i in range(6000))
    with served(xclass.Learner("oaa", classes=3, bits=10, quadratic=["aa"]), {"http": "0"}) as running:
        lines = ["1 |a x", f"2 |a {long}", "3 |a y z"]
        status, content = post(running.server.http.port, "learn", {"lines": lines})
        assert (status, content["learned"], running.service.learner.examples) == (200, 2, 2)
        assert [one["prediction"] for one in content["predictions"]] == [1, None, 1]
        assert len(content["warnings"]) == 1 and "features" in content["warnings"][0]


def test_each_question_of_a_batch_is_told_once_which_examples_have_no_known_feature():
    known, unknown = ["| free money"] * 200, ["|x never", *["|y heard"] * 199]
    with new_learner() as learner:
        for order in ((known, unknown, known), (unknown, known), (known, unknown)):
            answers = json_examples.predict(learner, [json_examples.GivenExamples(lines) for lines in order])
            for lines, answer in zip(order, answers, strict=True):
                told = [note for note in answer.get("warnings", ()) if "no feature that the model" in note]
                assert [note[:35] for note in told] == ["200 of the first 200 examples have "] * (lines is unknown)
        assert "namespace" not in told[0]
        question = json_examples.GivenExamples(["|x " + " ".join(LINES[0].split()[2:]), *unknown])
        (told,) = json_examples.predict(learner, [question])[0]["warnings"]
        assert "it has learned these words without a namespace" in told
        assert not json_examples.predict(learner, [json_examples.GivenExamples(known)])[0].get("warnings")
        # the text of one client is not looked at for another
        questions = [json_examples.GivenExamples(["|x free 'a"] * 300), json_examples.GivenExamples(known[:1])]
        assert json_examples.predict(learner, questions)[1].keys() == {"predictions"}


def test_what_is_learned_follows_the_order_of_arrival(tmp_path):
    """Requests over HTTP and lines that come while the learner is busy are learned in their order."""
    labels = ["spam", "work", "home", "tea", "leaf"]
    with served(new_learner(), {"http": "0"}, path=str(tmp_path / "served")) as running:
        gate = threading.Event()
        running.server._loop.call_soon_threadsafe(lambda: running.service.ask(waiting(gate)))
        with ThreadPoolExecutor(len(labels)) as pool:
            for i, label in enumerate(labels):
                line = f"{label} | free n{i}"
                ask = (post, running.server.http.port, "learn", {"lines": [line] * 3})
                if i % 2:
                    ask = running.ask, f"{line}\n{line}\n{line}\n".encode()
                pool.submit(*ask)
                time.sleep(0.2)  # until it has arrived
            gate.set()
    with new_learner() as expected:
        expected.learn_many([f"{label} | free n{i}" for i, label in enumerate(labels) for _ in range(3)])
        expected.save(tmp_path / "expected")
    assert (tmp_path / "served").read_bytes() == (tmp_path / "expected").read_bytes()


def test_a_checkpoint_divides_what_a_request_learns(tmp_path, monkeypatch):
    saved, save = [], model_contents.save

    def noting(path, contents, **more):
        saved.append(contents.__self__.examples)
        save(path, contents, **more)

    monkeypatch.setattr(model_contents, "save", noting)
    with served(new_learner(), {"http": "0"}, path=str(tmp_path / "m"), checkpoint=10) as running:
        status, content = post(running.server.http.port, "learn", {"lines": LINES * 3})
    assert (status, content["learned"], len(content["predictions"])) == (200, 45, 45)
    assert saved == [25, 35, 45, 55, 60]


def test_a_defect_in_learning_ends_the_server(tmp_path):
    with pytest.raises(ZeroDivisionError), served(new_learner(), {"http": "0"}, path=str(tmp_path / "m")) as running:
        port = running.server.http.port
        assert post(port, "learn", {"lines": LINES})[0] == 200
        running.service.failed = lambda: None  # otherwise the server would end
        running.service.learner.core.learn = lambda batches: 1 // 0
        assert post(port, "learn", {"lines": LINES})[0] == 500
        assert post(port, "predict", {"texts": ["free"]})[0] == 503
    assert xclass.load(tmp_path / "m.interrupted").examples == 2 * len(LINES)


def test_an_answer_is_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_BYTES", 1 << 20)
    names = ["x" * 4000 + f"{i}" for i in range(10)]
    with xclass.Learner("oaa", classes=10, bits=10, learn_names=True) as learner:
        learner.learn_many([f"| f{i}" for i in range(10)], names)
        with served(learner, {"http": "0"}) as running:
            port = running.server.http.port
            status, content = post(port, "predict", {"texts": ["f1"] * 200, "k": 10})
            assert status == 413
            assert content["error"] == "the answer is longer than 1048576 bytes; ask for fewer examples or classes"
            assert post(port, "predict", {"texts": ["f1"] * 20, "k": 10})[0] == 200
            assert post(port, "predict", {"texts": ["f1"] * 200, "k": 1})[0] == 200


def test_explanations_are_those_of_the_library(port):
    with new_learner() as learner:
        expected = json.loads(json.dumps(learner.explain("| free room", k=2).limited(3, 3).as_dict()))
    status, content = post(port, "explain", {"lines": ["| free room"], "k": 2, "shares": 3})
    assert (status, content["explanations"]) == (200, [expected])


def in_order():
    """Return a list of names, and a function that adds one when a question is answered."""
    order: list[str] = []

    async def note(name, answered):
        answer = await answered
        order.append(name)
        return answer

    return order, note


@in_event_loop
async def test_predictions_go_between_the_explanations_of_a_request(monkeypatch):
    """An explanation takes longer than a prediction, and how many wait is bounded."""
    monkeypatch.setattr(service, "MOST_WAITING", 3)
    monkeypatch.setattr(steps, "SECONDS", 0.0)
    order, note = in_order()

    async def refused_by(answered):
        with pytest.raises(service.Busy):
            await answered
        return "busy"

    with new_learner() as learner:
        one = Service(learner)
        one.start()
        many = json_examples.GivenExamples(["| free"] * 16)
        explained, waited, _, refused = await asyncio.gather(
            note("explain", one.explain(many)),
            note("wait", one.explain(many)),
            note("predict", one.predict(many)),
            note("refused", refused_by(one.explain(many))),
        )
        await one.end()
    assert explained == waited and len(explained["explanations"]) == 16 and refused == "busy"
    assert order == ["refused", "predict", "explain", "wait"]


@in_event_loop
async def test_predictions_go_between_those_of_a_long_request():
    """Its parts are answered as the whole would be, by one model, and messages count from its first example."""
    lines = [f"| n{i % 7} room" if i % 3 else "| free" for i in range(1300)]
    order, note = in_order()
    with new_learner() as learner, new_learner() as new:
        expected = json_examples.predict(learner, [json_examples.GivenExamples(lines)])[0]
        one = Service(learner)
        one.start()
        long, listing, short = await asyncio.gather(
            note("long", one.predict(json_examples.GivenExamples(lines))),
            note("listing", one.predict(json_examples.GivenExamples(xclass.Documents(["free"] * 10), k=1000))),
            note("short", one.predict(json_examples.GivenExamples(["| room"]))),
        )
        assert long == expected and order == ["short", "listing", "long"] and one.batches == 6
        assert len(listing["predictions"]) == 10 and short["predictions"] == [{"prediction": "work"}]
        with pytest.raises(xclass.DataError, match=r"^lines\[1300\], column 5: '1e50' is too large"):
            await one.predict(json_examples.GivenExamples([*lines, "| a:1e50"]))
        new.learn_many(["junk | free"] * 50)
        done = one._done

        async def replacing(kind, *fields):
            answer = await done(kind, *fields)
            if kind is service.PredictJob and fields[0].before and one.learner is not new:
                await one.replace(lambda: new)
            return answer

        one._done = replacing
        replaced = await one.predict(json_examples.GivenExamples(lines))
        await one.end()
    assert {one["prediction"] for one in replaced["predictions"][::3]} == {"junk"}
    assert one.predicted == 1300 + 10 + 1 + 1300


@pytest.mark.parametrize("operation", ["predict", "learn"])
def test_a_long_answer_is_that_of_short_requests(operation, monkeypatch):
    """It is written by a thread, in parts."""
    question = {"lines": ["spam 2 | offer", "| free room", "home | never seen"] * 2}
    if operation == "predict":
        question["k"] = 3
    answers = []
    for limit in (endpoints.LONG, 0):
        monkeypatch.setattr(endpoints, "LONG", limit)
        with served(new_learner(), {"http": "0"}) as running:
            answers.append(post(running.server.http.port, operation, question))
    assert answers[0] == answers[1] and answers[0][0] == 200


@in_event_loop
async def test_a_long_explanation_lets_predictions_pass_and_nothing_is_learned_in_it(monkeypatch):
    """It stands still after each feature here; a prediction that is asked for later is answered before it."""
    monkeypatch.setattr(steps, "SECONDS", 0.0)
    line = "| free money " + " ".join(f"w{i}" for i in range(300))
    order, note = in_order()

    with new_learner() as learner:
        expected = learner.explain(line, k=1).limited(20, 20).as_dict()
        one = Service(learner)
        one.start()
        explaining = asyncio.ensure_future(note("explain", one.explain(json_examples.GivenExamples([line], k=1))))
        while one.batches < 5:
            await asyncio.sleep(0)
        learning = asyncio.ensure_future(note("learn", one.learn(json_examples.GivenExamples(["work | free"] * 50))))
        await note("predict", one.predict(json_examples.GivenExamples(["| free"])))
        explained, _ = await asyncio.gather(explaining, learning)
        assert order == ["predict", "explain", "learn"] and explained["explanations"] == [expected]
        explaining = asyncio.ensure_future(one.explain(json_examples.GivenExamples([line] * 16)))
        batches = one.batches
        while one.batches < batches + 5:
            await asyncio.sleep(0)
        explaining.cancel()  # its client has gone
        await one.predict(json_examples.GivenExamples(["| free"]))
        batches = one.batches
        await one.predict(json_examples.GivenExamples(["| free"]))
        assert one.batches <= batches + 2
        await one.end()
    deadline = time.monotonic() + SECONDS
    while any(thread.name == "xclass-steps" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_an_explanation_is_given_up_with_its_client(monkeypatch):
    monkeypatch.setattr(steps, "SECONDS", 0.0)
    line = "| free " + " ".join(f"w{i}" for i in range(3000))
    with served(new_learner(), {"http": "0"}) as running:
        port = running.server.http.port
        post(port, "predict", {"texts": ["free"]})
        body = json.dumps({"lines": [line] * 16}).encode()
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            head = HEAD.replace(b"predict", b"explain") + b"Content-Length: %d\r\n\r\n" % len(body)
            connection.sendall(head + body)
            wait_for(lambda: any(thread.name == "xclass-steps" for thread in threading.enumerate()))
        wait_for(lambda: not any(thread.name == "xclass-steps" for thread in threading.enumerate()))
        batches = running.service.batches
        assert post(port, "predict", {"texts": ["free"]})[0] == 200 and running.service.batches <= batches + 3


def test_a_client_that_sends_no_more_is_answered(port):
    """What takes long is given up, because the client may be gone."""
    explain = HEAD.replace(b"predict", b"explain") + LENGTH + b"\r\n" + PLAIN
    for text, statuses in [(REQUEST, [200]), (REQUEST * 3, [200] * 3), (REQUEST[:-1], []), (explain, [408])]:
        received = b""
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            connection.sendall(text)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                received += part
        assert [int(one) for one in re.findall(rb"HTTP/1.1 (\d+) ", received)] == statuses, received


def test_long_examples_are_divided_as_many_are(monkeypatch):
    """Work is counted in bytes and values; what is wrong is named by its place in the request, and teaches nothing."""
    text = " ".join(f"w{i}" for i in range(4000))
    for made in (lambda i: f"spam | w{i} {text}", lambda i: {f"w{i}": 1, **dict.fromkeys(text.split(), 2.5)}):
        question = json_examples.GivenExamples([made(i) for i in range(20)])
        assert len(question.parts()) > 10
        assert [one for part in question.parts() for one in part.items] == question.items
    lines = [f"spam | w{i} {text}" for i in range(20)]
    with new_learner() as learner, new_learner() as other:
        before = learner.examples
        with pytest.raises(xclass.DataError, match=r"^lines\[20\], column 10: '1e50' is too large"):
            learned(learner, json_examples.GivenExamples([*lines, "work | a:1e50"]), 100)
        assert learner.examples == before
        features = [dict.fromkeys(line.split()[2:], 1) for line in lines]
        with pytest.raises(xclass.DataError, match=r"^labels\[19\] is 'x\\x01'"):
            learned(learner, json_examples.GivenExamples(features, ["spam"] * 19 + ["x\x01"], [1.0] * 20), 100)
        answer = learned(learner, json_examples.GivenExamples(lines), 3)
        other.learn_many(lines)
        assert answer["learned"] == 20 == len(answer["predictions"])
        assert learner.predict("| w1 w2") == other.predict("| w1 w2") and learner.examples == other.examples


def test_warnings_of_an_explanation_are_not_those_of_others(monkeypatch):
    monkeypatch.setattr(steps, "SECONDS", 0.0)
    with new_learner() as learner:
        (predicted,) = json_examples.predict(learner, [json_examples.GivenExamples(["| free"])])

        def predict():
            (again,) = json_examples.predict(learner, [json_examples.GivenExamples(["| free"], k=1)])
            assert again.keys() == {"predictions"}
            return again

        explaining = json_examples.explain(learner, json_examples.GivenExamples(["| unknown", "| never_seen"]))
        answer = result(explaining, predict)
        again = predict()
        assert again["predictions"][0]["prediction"] == predicted["predictions"][0]["prediction"]
    assert ["no feature adds" in text for text in answer["warnings"]] == [True]


def test_a_learner_of_numbers():
    with served(xclass.Learner("scalar", bits=10), {"http": "0"}) as running:
        post(running.server.http.port, "learn", {"lines": ["2 | a"] * 50})
        status, content = post(running.server.http.port, "predict", {"texts": ["a"]})
        assert status == 200 and content["predictions"][0]["prediction"] == pytest.approx(2, abs=0.3)


# errors


@pytest.mark.parametrize(
    ("operation", "body", "message"),
    [
        ("predict", {"lines": ["| a"], "texts": ["a"]}, "there is lines and texts"),
        (
            "predict",
            {"texts": ["a"] * 51, "k": 1000},
            "51 examples with 1000 classes each are more than the 50000",
        ),
        ("explain", {"texts": ["a"], "k": 11}, "k is 11; allowed is a whole number from 1 to 10"),
        ("explain", {"texts": ["a"], "shares": 101}, "shares is 101; allowed is a whole number from 1 to 100"),
        ("predict", {"lines": []}, "allowed is a list of 1 to 10000 values"),
        ("predict", {"rows": [[]]}, "rows[0] is []; allowed is a list of 1 to"),
        ("predict", {"rows": [1]}, "rows[0] is 1; allowed is a list"),
        ("learn", {"rows": [[1]], "labels": []}, "labels is []; allowed is a list of 1 to"),
        ("predict", {"lines": ["a"]}, "lines[0] is 'a'; allowed is a line of VW text"),
        ("predict", {"lines": ["| a\n| b"]}, "without a newline"),
        ("predict", {"texts": ["a"], "k": 0}, "k is 0; allowed is a whole number from 1 to 1000"),
        ("predict", {"texts": ["a"], "labels": ["b"]}, "'labels' is not known"),
        ("predict", {"examples": [{"features": {"a": ["b"]}}]}, "examples[0].features.'a'[0] is 'b'"),
        ("predict", {"examples": [{"features": {"a": True}}]}, "is True"),
        ("predict", {"examples": [{"features": {"a": {"b": {"c": 1}}}}]}, "features.'a'.'b' is"),
        ("predict", {"examples": [{"features": {"a": 1e39}}]}, "1e+39"),
        ("learn", {"examples": [{"features": {}, "label": "a", "weight": -1}]}, "weight is -1"),
        ("learn", {"texts": ["a"], "labels": [["b", "c"]]}, "list"),
        ("learn", {"texts": ["a"], "labels": [["b", None]]}, "labels[0][1] is None; allowed is a number or a text"),
        (
            "learn",
            {"texts": ["a"], "labels": [{}]},
            "labels[0] is {}; allowed is a number, a text, or a list of them, or",
        ),
        ("explain", {"texts": ["a"] * 17}, "a list of 1 to 16 values"),
        ("learn", {"lines": ["spam | a", "spam | a:nan"]}, "lines[1], column 10: the value 'nan' of a feature"),
        (
            "learn",
            {"examples": [{"features": {"a": 1}}, {"features": {"a": 1}, "label": ["b", "c"]}]},
            "examples[1].label is ['b', 'c'], a list of labels",
        ),
        ("predict", {"examples": [{"features": {}}, {"features": {"a": [1, 2]}}]}, "examples[1]: the feature 'a' has"),
        ("predict", b"null", "the JSON is None; allowed is an object"),
        ("save", {"path": "/etc/passwd"}, "'path' is not known; allowed is an object without names"),
        ("predict", b"\xff", "not UTF-8"),
    ],
)
def test_errors_say_where_and_what(port, operation, body, message):
    status, content = post(port, operation, body)
    assert status == 400 and list(content) == ["error"] and message in content["error"], content


def test_paths_methods_and_models_that_do_not_exist(port):
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/page.css/", 404),
        ("GET", "/../pyproject.toml", 404),
        ("GET", "/v1/..%2f..%2fetc/model", 404),
        ("GET", "/v1/other/model", 404),
        ("GET", "/v1/predict", 405),
        ("DELETE", "/v1/model", 405),
    ):
        found, headers, content = asked(port, method, path)
        assert (found, list(content)) == (status, ["error"]), path
        assert headers["x-content-type-options"] == "nosniff"
    assert asked(port, "POST", "/v1/model/predict", {"texts": ["free"]})[0] == 200  # the name of the model is "model"


# who may ask


def test_the_page_of_a_stranger_cannot_ask(port):
    here = f"127.0.0.1:{port}"
    body = {"texts": ["free"]}
    for headers, status in (
        ({"Host": here}, 200),
        ({"Host": "localhost"}, 200),
        ({"Host": "[::1]:80"}, 200),
        ({"Host": "10.1.2.3:8000"}, 200),
        ({"Host": here, "Origin": f"http://{here}"}, 200),
        ({"Host": "stranger.example"}, 403),  # whose name leads to this address
        ({"Host": "localhost.stranger.example"}, 403),
        ({"Host": "127.0.0.1.stranger.example"}, 403),
        ({"Host": here, "Origin": "http://stranger.example"}, 403),
        ({"Host": here, "Origin": "null"}, 403),
        ({"Host": here, "Origin": "http://127.0.0.1:1"}, 403),
        ({"Host": here, "Content-Type": "text/plain"}, 415),  # what a page may send without being asked
        ({"Host": here, "Content-Type": "application/x-www-form-urlencoded"}, 415),
    ):
        assert post(port, "predict", body, **headers)[0] == status, headers
        if status == 403:
            assert asked(port, "GET", "/", None, headers)[0] == 403
    assert "access-control-allow-origin" not in asked(port, "OPTIONS", "/v1/predict")[1]


def test_a_server_behind_a_proxy_is_asked_by_its_names_there():
    with served(new_learner(), {"http": "0", "allow_host": ("models.example.org",)}) as running:
        port, body = running.server.http.port, {"texts": ["free"]}
        here, there = f"127.0.0.1:{port}", "https://models.example.org"
        for host, origin, status in (
            ("models.example.org", there, 200),  # the proxy has TLS, and the server has none
            ("models.example.org:8443", f"{there}:8443", 200),
            (here, there, 200),  # the proxy asks by the server's address
            (here, "https://other.example.org", 403),
            (here, "http://localhost:3000", 403),  # another server of this machine
            (here, "https://models.example.org.stranger.example", 403),
        ):
            assert post(port, "predict", body, Host=host, Origin=origin)[0] == status, (host, origin)
        for host, message in ((b"", "the request has no Host"), (b"Host: \r\n", "the request has no Host")):
            with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
                connection.sendall(b"GET /healthz HTTP/1.0\r\n%b\r\n" % host)
                assert message.encode() in connection.makefile("rb").read()


def test_the_page_asks_by_relative_addresses(port):
    """A proxy may show it in any folder."""
    for path in ("/", "/page.js", "/page.css"):
        _, _, content = asked(port, "GET", path)
        assert not re.search(rb"""(href|src)="/|fetch\(["'`]/|url\(["']?/|["'`]/(v1|metrics)""", content)
    assert asked(port, "GET", "/openapi.json")[2]["servers"][0]["url"] == "."


def test_names_of_hosts():
    for host, name in (
        (b"example.org:80", "example.org"), (b"[::1]", "::1"), (b"[::1]:8", "::1"), (b"A", "a"), (b"", None),
        (b":80", None), (b"a:b", None), (b"[::1", None), (b"[::1]x", None), (b"\xff", None),
    ):  # fmt: skip
        assert messages.host_name(host) == name


def test_changes_need_the_token(tmp_path):
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    path.chmod(0o600)
    options = {"http": "127.0.0.1:0", "token_file": str(path), "allow_host": ("models.example",)}
    with served(new_learner(), options, path=str(tmp_path / "m")) as running:
        port, body = running.server.http.port, {"lines": ["spam | a"]}
        for given in (None, "", "Bearer", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}"):
            headers = {} if given is None else {"Authorization": given}
            for operation, sent in (("learn", body), ("save", {})):
                status, answer, _ = asked(port, "POST", f"/v1/{operation}", sent, headers)
                assert (status, answer["www-authenticate"]) == (401, "Bearer"), given
        assert running.service.learner.examples == len(LINES)
        assert post(port, "predict", {"texts": ["free"]}, Host="models.example")[0] == 200
        assert post(port, "learn", body, Authorization=f"Bearer {TOKEN}")[0] == 200
        assert post(port, "save", {}, Authorization=f"bearer {TOKEN}") == (200, {"examples": len(LINES) + 1})
        assert xclass.load(tmp_path / "m").examples == len(LINES) + 1


def test_without_a_token_nobody_changes_what_others_reach():
    with served(new_learner(), {"http": "0.0.0.0:0"}) as running:
        port = running.server.http.port
        status, content = post(port, "learn", {"lines": ["spam | a"]})
        assert status == 403 and "--token_file" in content["error"]
        assert post(port, "predict", {"texts": ["free"]})[0] == 200


def test_a_port_beyond_the_last_one_is_not_allowed():
    result = failing("serve", "--oaa", 2, "-b", 8, "--port", 0, "--http", "127.0.0.1:99999")
    assert result.status == 2 and "--http 127.0.0.1:99999: allowed are a port" in result.err, result.err


# limits


def test_a_body_that_is_too_long_is_refused_early():
    with served(new_learner(), {"http": "0", "max_body": 2000, "max_line": 100}) as running:
        port = running.server.http.port
        status, content = post(port, "predict", {"texts": ["a" * 3000]})
        assert status == 413 and "longer than 2000 bytes" in content["error"]
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + (b"400\r\n" + b" " * 1024 + b"\r\n") * 3)
            assert connection.recv(1000).startswith(b"HTTP/1.1 413")
        for size, status in ((2000, 200), (2001, 413)):  # the body grows chunk by chunk
            body = b'{"texts": ["free"]}'.ljust(size)
            chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:1999], body[1999:]))
            with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
                connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
                assert connection.recv(1000).startswith(b"HTTP/1.1 %d" % status)
        for text in ("a" * 101, "é" * 50 + "a"):
            status, content = post(port, "predict", {"texts": ["é" * 50, text]})
            assert (status, content["error"]) == (400, "texts[1] has 101 bytes; allowed are 100")
        assert post(port, "predict", {"texts": ["free"]})[0] == 200


@pytest.mark.parametrize(("module", "limit"), [(messages, "MOST_HELD"), (service, "MOST_WAITING")])
def test_too_much_that_waits_is_refused_and_then_room_is_there_again(monkeypatch, module, limit):
    monkeypatch.setattr(module, limit, 1)
    with served(new_learner(), {"http": "0", "max_body": 2 * messages.LONG}) as running:
        port, gate = running.server.http.port, threading.Event()
        body = b'{"texts": ["free"]}'.ljust(messages.LONG + 1)  # for the longest, there is room
        running.server._loop.call_soon_threadsafe(lambda: running.service.ask(waiting(gate)))
        with ThreadPoolExecutor(1) as pool:
            first = pool.submit(post, port, "predict", body)
            wait_for(lambda: running.server.http.connections)
            time.sleep(0.2)
            status, headers, content = asked(port, "POST", "/v1/predict", body)
            gate.set()
        assert (status, headers["retry-after"], headers["connection"]) == (503, "1", "close")
        assert "too many requests wait" in content["error"]
        assert first.result()[0] == post(port, "predict", body)[0] == 200


def test_clients_that_stop_in_a_long_body_refuse_nobody(monkeypatch):
    monkeypatch.setattr(messages, "MOST_HELD", 1)
    with served(new_learner(), {"http": "0", "max_body": 4 * messages.LONG}) as running:
        port, body = running.server.http.port, b'{"texts": ["free"]}'
        head = HEAD + b"Content-Length: %d\r\n\r\n" % (2 * messages.LONG)
        slow = [socket.create_connection(("127.0.0.1", port), SECONDS) for _ in range(3)]
        for connection in slow:  # the third is one too many
            connection.sendall(head + b" " * (2 * messages.LONG - 1))
            time.sleep(0.1)
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 503")
        assert post(port, "predict", body)[0] == 200  # though there is no room
        assert post(port, "predict", body.ljust(2 * messages.LONG))[0] == 200
        assert slow[1].recv(1000).startswith(b"HTTP/1.1 503")
        slow[2].sendall(b" ")
        assert slow[2].recv(1000).startswith(b"HTTP/1.1 400")
        for connection in slow:
            connection.close()


def test_connections_that_arrive_at_once_are_bounded():
    with served(new_learner(), {"http": "0", "max_connections": 5}) as running:
        gate = threading.Event()
        running.server._loop.call_soon_threadsafe(gate.wait, SECONDS)
        made = [socket.create_connection(("127.0.0.1", running.server.http.port), SECONDS) for _ in range(30)]
        gate.set()
        for one in made[:25]:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""
        assert len(running.server.http.connections) == 5
        for one in made:
            one.close()


def test_slow_clients_are_closed_and_hold_no_others():
    with served(new_learner(), {"http": "0", "timeout": 0.6, "max_connections": 20}) as running:
        port = running.server.http.port
        heads = [b"", b"GET /", b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"]
        heads.append(heads[-1] + b"Content-Type: application/json\r\n\r\n{")
        slow = [socket.create_connection(("127.0.0.1", port), SECONDS) for _ in range(30)]
        for i, connection in enumerate(slow):
            connection.sendall(heads[i % len(heads)])
        began = time.monotonic()
        assert post(port, "predict", {"texts": ["free"]})[0] == 200
        assert time.monotonic() - began < 0.5
        for connection in slow:
            connection.settimeout(5)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
            connection.close()
        deadline = time.monotonic() + 5
        while running.server.http.connections and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not running.server.http.connections


def test_a_client_that_does_not_read_is_closed():
    with served(new_learner(), {"http": "0", "timeout": 0.6}) as running:
        port = running.server.http.port
        body = json.dumps({"texts": ["free"] * 9000, "k": 3}).encode()
        deaf = socket.socket()
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.settimeout(SECONDS)
        deaf.sendall((HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body) * 4)
        deadline = time.monotonic() + SECONDS
        while running.server.http.connections and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not running.server.http.connections
        assert post(port, "predict", {"texts": ["free"]})[0] == 200
        deaf.close()


def test_what_the_server_takes_is_not_the_clients_time():
    with served(new_learner(), {"http": "0", "timeout": 0.6}) as running:
        port, gate = running.server.http.port, threading.Event()
        running.server._loop.call_soon_threadsafe(lambda: running.service.ask(waiting(gate)))
        threading.Timer(2.0, gate.set).start()
        with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
            connection.sendall(REQUEST + REQUEST[:-5])  # the server does not read the rest before the first is answered
            assert b'"prediction":"spam"' in connection.recv(1 << 16)
            connection.sendall(REQUEST[-5:])
            assert b'"prediction":"spam"' in connection.recv(1 << 16)


def test_a_head_is_bounded():
    with served(new_learner(), {"http": "0"}) as running:
        for filler in (b"x: " + b"a" * 40_000, (b"x: " + b"a" * 1000 + b"\r\n") * 40):
            with socket.create_connection(("127.0.0.1", running.server.http.port), SECONDS) as connection:
                connection.sendall((HEAD + filler)[:HEAD_BYTES])
                time.sleep(0.2)
                assert running.server.http.connections
                connection.sendall(b"a")
                answer = connection.recv(1 << 16)
                assert answer.startswith(b"HTTP/1.1 400") and b"longer than 32768 bytes" in answer
                assert connection.recv(100) == b""
        status, _, _ = asked(running.server.http.port, "GET", "/healthz", None, {"X": "a" * 30_000})
        assert status == 200


def test_requests_one_behind_the_other_on_a_connection(port):
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(REQUEST * 20)
        received = b""
        while received.count(b'"prediction":"spam"') < 20:
            part = connection.recv(1 << 16)
            assert part
            received += part


def exchanged(port, text):
    """Send bytes, and return what comes until the server closes the connection, or sends nothing for a while."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(text)
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while part := connection.recv(1 << 16):
                received += part
            return received, True
    return received, False


PLAIN = b'{"texts": ["free"]}'
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: 19\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"


@pytest.mark.parametrize(
    ("text", "statuses", "closes"),
    [
        (HEAD.replace(b"1.1", b"1.0") + LENGTH + b"\r\n" + PLAIN, [200], True),
        (HEAD + LENGTH + b"Expect: 100-continue\r\n\r\n" + PLAIN, [100, 200], False),
        (HEAD.replace(b"json", b"xml") + LENGTH + b"Expect: 100-continue\r\n\r\n", [415], True),
        (HEAD + b"Content-Length: 99999999\r\nExpect: 100-continue\r\n\r\n", [413], True),
        (CHUNKED + b"\r\n13;a=b\r\n" + PLAIN + b"\r\n0\r\nHost: evil.example\r\n\r\n", [200], False),
        (CHUNKED + LENGTH + b"\r\n13\r\n" + PLAIN + b"\r\n0\r\n\r\n", [400], True),
        (CHUNKED.replace(b"chunked", b"xchunked") + b"\r\n13\r\n" + PLAIN + b"\r\n0\r\n\r\n", [501], True),
        (CHUNKED + b"\r\nffffffffffffffffff\r\n" + PLAIN, [400], True),
        (HEAD + LENGTH * 2 + b"\r\n" + PLAIN, [400], True),
        (HEAD + b"Host: evil.example\r\n" + LENGTH + b"\r\n" + PLAIN, [400], False),
        (HEAD + b"content-type: text/plain\r\n" + LENGTH + b"\r\n" + PLAIN, [400], False),
        (HEAD + LENGTH + b"X-A: a\r\nX-A: b\r\n\r\n" + PLAIN, [200], False),
        (HEAD + LENGTH + UPGRADE + b"\r\n" + PLAIN, [400], True),
        ((GET + UPGRADE + b"\r\n") * 2 + REQUEST, [200, 200, 200], False),
        (HEAD.replace(b"1.1", b"1.0") + LENGTH + b"Expect: 100-continue\r\n\r\n" + PLAIN, [200], True),
        (CHUNKED.replace(b"chunked", b"gzip, chunked") + b"\r\n13\r\n" + PLAIN + b"\r\n0\r\n\r\n", [501], True),
        (CHUNKED.replace(b"Tr", b"Transfer-Encoding: gzip\r\nTr") + b"\r\n0\r\n\r\n", [400], False),
        (GET + b"Origin: " + b"a" * HEAD_BYTES + b"\r\n\r\n" , [400], True),
        (b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", [200], False),
        (b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", [400], True),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", [404], False),
        (b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", [200], False),
        (b"GET /%76%31/model HTTP/1.1\r\nHost: localhost\r\n\r\n", [200], False),
        (b"GET /v1/\xff/model HTTP/1.1\r\nHost: localhost\r\n\r\n", [400], True),
        (b"HEAD /v1/model HTTP/1.1\r\nHost: localhost\r\n\r\n", [200], False),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", [400], True),  # TLS
        (REQUEST + b"garbage\r\n\r\n", [200], True),  # the answer to the first request is not mistaken
    ],
)  # fmt: skip
def test_strange_requests(port, text, statuses, closes):
    received, closed = exchanged(port, text)
    assert [int(one) for one in re.findall(rb"HTTP/1.1 (\d+) ", received)] == statuses, received
    assert closed == closes
    if statuses[-1] >= 400:
        assert b"content-type: application/json" in received and received.rpartition(b"\r\n\r\n")[2][:9] == b'{"error":'


@pytest.mark.parametrize("before", [b"GET / HTTP/1.1\r\n", CHUNKED + b"\r\n13\r\n" + PLAIN + b"\r\n0\r\n"])
@pytest.mark.parametrize("piece", [b"X: y\r\n" * 2000, b"X: " + b"y" * 20000])
def test_headers_without_end_are_not_kept(port, before, piece):
    """Also those behind a body, where they are called trailers."""
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection, pytest.raises(OSError):
        connection.sendall(before)
        for _ in range(5000):
            connection.sendall(piece)
    assert post(port, "predict", PLAIN)[0] == 200


def test_a_client_that_goes_while_it_is_answered_leaves_nothing(server, port):
    gate = threading.Event()
    server.server._loop.call_soon_threadsafe(lambda: server.service.ask(waiting(gate)))
    with socket.create_connection(("127.0.0.1", port), SECONDS) as connection:
        connection.sendall(REQUEST)
        time.sleep(0.2)
    gate.set()
    assert post(port, "predict", {"texts": ["free"]})[0] == 200


# facts, metrics and the description


@pytest.mark.parametrize("operation", ["predict", "explain"])
def test_a_request_that_is_refused_leaves_nothing(port, operation):
    """Otherwise a cycle keeps the request, and all that was made of it, until the garbage is collected."""

    def errors():
        return [error for error in gc.get_objects() if issubclass(type(error), xclass.XclassError)]

    gc.collect()
    gc.disable()
    try:
        others = errors()  # tests before this one may have left some
        for _ in range(5):
            assert post(port, operation, {"lines": ["| a", "1 2 3 4 5 6 | a"]})[0] == 400
        assert len(errors()) == len(others)
    finally:
        gc.enable()


def test_facts_metrics_and_health(port):
    for _ in range(3):
        post(port, "predict", {"texts": ["free", "room"]})
    status, _, facts = asked(port, "GET", "/v1/model")
    assert status == 200
    assert (facts["name"], facts["reduction"], facts["labels"], facts["classes"]) == ("model", "oaa", "multiclass", 3)
    assert (facts["examples"], facts["learns"], facts["needs_token"]) == (len(LINES), True, False)
    assert facts["options"]["bits"] == 12 and [] not in facts["options"].values()
    assert facts["latency_ms"]["median"] > 0 and facts["predicted"] >= 6
    assert asked(port, "GET", "/v1/models")[2] == {"models": ["model"]}
    assert asked(port, "GET", "/healthz")[0] == asked(port, "GET", "/readyz")[0] == 200
    _, headers, text = asked(port, "GET", "/metrics")
    assert headers["content-type"].startswith("text/plain")
    figures = dict(re.findall(r"^(\S+) ([\d.e+-]+)$", text.decode(), re.MULTILINE))
    assert float(figures['xclass_examples_learned_total{model="model"}']) == len(LINES)
    assert float(figures['xclass_progressive_loss{model="model"}']) == pytest.approx(facts["average_loss"])
    assert float(figures["xclass_memory_bytes"]) > 1e7
    assert float(figures['xclass_unsaved_examples{model="model"}']) == 0
    assert {f'xclass_{name}_total{{model="model"}}' for name in ("lines", "failed_saves")} <= figures.keys()
    assert float(figures['xclass_http_requests_total{operation="predict",status="200"}']) >= 3
    assert float(figures['xclass_http_request_seconds_count{operation="predict"}']) >= 3
    assert 'xclass_http_request_seconds_bucket{le="0.5",operation="predict"}' in figures


def test_metrics_of_a_model_whose_file_name_is_not_utf_8():
    with new_learner() as learner:
        text = interface.Metrics({"caf\udce9": Service(learner)}).text().decode()
    assert r'xclass_examples_learned_total{model="caf\\xe9"} 15.0' in text


def test_a_server_is_ready_once_its_kernels_are_loaded():
    loaded = threading.Event()
    with (
        mock.patch("xclass.run.warm_up.parts", return_value={"a part": lambda: loaded.wait(SECONDS)}),
        served(new_learner(), {"http": "0"}) as running,
    ):
        port = running.server.http.port
        answers = [asked(port, "GET", path)[0] for path in ("/readyz", "/healthz")]
        loaded.set()
        assert answers == [503, 200]
        post(port, "predict", {"texts": ["free"]})
        assert asked(port, "GET", "/readyz")[0] == 200


def test_after_a_failure_all_requests_are_answered_by_503():
    with pytest.raises(ZeroDivisionError), served(new_learner(), {"http": "0"}) as running:
        port, gate = running.server.http.port, threading.Event()
        assert post(port, "predict", {"texts": ["free"]})[0] == 200  # the kernels are loaded
        running.service.failed = lambda: None  # otherwise the server would end
        running.service.handler.handle = lambda text, learn: 1 / 0
        batches = running.service.batches
        running.server._loop.call_soon_threadsafe(running.service.ask, waiting(gate))
        wait_for(lambda: running.service.batches > batches)
        running.server._loop.call_soon_threadsafe(running.service.ask, _line())
        question = port, "predict", {"texts": ["free"]}
        with ThreadPoolExecutor(3) as pool:
            asking = [pool.submit(post, *question) for _ in range(3)]
            time.sleep(0.3)
            gate.set()
        answers = [*(one.result() for one in asking), post(*question)]
        found = [asked(port, "GET", path)[0] for path in ("/readyz", "/healthz")]
    assert found == [503, 200]  # within the block, the error of the server would take the place of another
    assert answers == [(503, {"error": "the server has failed"})] * 4
    assert sum("ZeroDivisionError" in message for message in running.messages) <= 1


def test_a_defect_is_told_and_answered_as_json(monkeypatch):
    with served(new_learner(), {"http": "0"}) as running:
        monkeypatch.setattr(interface, "generate_latest", lambda registry: 1 / 0)
        status, _, content = asked(running.server.http.port, "GET", "/metrics")
    assert status == 500 and "because of a defect" in content["error"]
    assert sum("ZeroDivisionError" in message for message in running.messages) == 1


def _line():
    return service.LineJob(lambda answers, last: None, object(), b"| a\n", 1)


def test_the_description_is_valid_and_complete(port):
    validator = pytest.importorskip("openapi_spec_validator")
    _, headers, content = asked(port, "GET", "/openapi.json")
    assert headers["content-type"] == "application/json"
    validator.validate(content)
    assert content == interface.described()
    for path, item in content["paths"].items():
        for method in item.keys() - {"parameters"}:
            body = {} if method == "post" else None
            assert asked(port, method.upper(), path.replace("{name}", "model"), body)[0] in (200, 400), path
    paths = {path.rpartition("/")[2] for path in content["paths"]}
    assert paths == {*interface.SHAPES, "model", "models", "healthz", "readyz", "metrics"}


def test_a_client_is_generated_from_the_description(port, tmp_path, monkeypatch):
    """Each form of a request is a named type; generators drop requests whose types are unions within unions."""
    described = interface.described()

    def check(schema, named):
        choices = schema.get("oneOf", schema.get("anyOf", ()))
        assert named or not choices or (all("type" in one or "$ref" in one for one in choices) and len(choices) == 2)
        for one in choices:
            assert not {"oneOf", "anyOf", "properties"} & one.keys(), schema
        for inner in schema.get("properties", {}).values():
            check(inner, False)

    for schema in described["components"]["schemas"].values():
        check(schema, True)
    pytest.importorskip("openapi_python_client")
    (tmp_path / "openapi.json").write_text(json.dumps(described))
    words = ("generate", "--path", "openapi.json", "--meta", "none", "--output-path", "generated")
    generator = [sys.executable, "-m", "openapi_python_client", *words]
    result = subprocess.run(generator, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "WARNING" not in result.stdout and "Unable" not in result.stdout
    monkeypatch.syspath_prepend(str(tmp_path))
    from generated import Client, models
    from generated.api.default import learn, model, predict

    client = Client(base_url=f"http://127.0.0.1:{port}")
    features = models.Features.from_dict({"free": 1, "n": {"a": 2.5}})
    for body in (
        models.PredictTexts(texts=["free"], k=2),
        models.PredictLines(lines=["| free"], k=2),
        models.PredictExamples(examples=[models.PredictExample(features=features)], k=2),
    ):
        answer = predict.sync(client=client, body=body)
        assert answer.predictions[0].prediction == "spam" and len(answer.predictions[0].top) == 2
    assert learn.sync(client=client, body=models.LearnTexts(texts=["x"], labels=["spam"])).learned == 1
    assert model.sync(client=client).reduction == "oaa"


def test_answers_fit_the_description(tmp_path):
    jsonschema = pytest.importorskip("jsonschema")
    schemas = json.loads(
        json.dumps(interface.described()["components"]["schemas"]).replace("#/components/schemas", "#/$defs")
    )

    def check(name, content):
        jsonschema.Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": schemas}).validate(content)

    with served(new_learner(), {"http": "0"}, path=str(tmp_path / "m")) as running:
        port = running.server.http.port
        check("PredictAnswer", post(port, "predict", {"texts": ["free"], "k": 3})[1])
        check("LearnAnswer", post(port, "learn", {"lines": ["spam | free", "| money"]})[1])
        check("ExplainAnswer", post(port, "explain", {"texts": ["free"]})[1])
        check("SaveAnswer", post(port, "save", {})[1])
        check("Error", post(port, "explain", {})[1])
        check("Model", asked(port, "GET", "/v1/model")[2])


# the command


def test_the_command_serves_http_and_sigterm_saves(tmp_path):
    (tmp_path / "train.vw").write_text("\n".join(LINES) + "\n")
    run("--oaa", 5, "-b", 12, "-d", "train.vw", "-f", "tea.model", "--quiet", cwd=tmp_path)
    with command(tmp_path, "serve", "-i", "tea.model", "-f", "new.model", "--http", "0") as (process, _):
        told = process.stderr.readline() + process.stderr.readline()
        port = int(re.search(rb"http://127.0.0.1:(\d+)/", told)[1])
        assert asked(port, "POST", "/v1/tea/learn", {"lines": ["spam | free"]})[0] == 200
        result = subprocess.run(
            ["curl", "-s", f"http://127.0.0.1:{port}/v1/predict", "-H", "Content-Type: application/json", "-d",
             '{"texts": ["free money"]}'], capture_output=True, timeout=SECONDS,
        )  # fmt: skip
        assert json.loads(result.stdout)["predictions"] == [{"prediction": "spam"}]
        idle = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
        idle.request("GET", "/healthz")
        idle.getresponse().read()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0 and b"Traceback" not in errors
    assert xclass.load(tmp_path / "new.model").examples == len(LINES) + 1


def test_models_of_a_folder_are_served_by_their_names(tmp_path):
    """A new file is taken up while requests go on, and a damaged one is refused."""
    folder = tmp_path / "models"
    folder.mkdir()
    with new_learner() as learner:
        learner.save(folder / "tea.bin")
        learner.save(folder / "mail.bin")
    (folder / "folder.bin").mkdir()
    os.mkfifo(folder / "pipe.bin")
    (folder / "lost.bin").symlink_to("nowhere")
    (folder / "notes.txt").write_text("no model")
    (folder / "bad.bin").write_text("no model")
    port_file = tmp_path / "port"
    words = ("serve", "--models", folder, "--port", 0, "--http", 0, "--port_file", port_file)
    process = start_process(*words, cwd=tmp_path)
    try:
        wait_for(lambda: port_file.exists() and port_file.read_text())
        port, body = int(port_file.read_text()), {"texts": ["free"]}
        wait_for(lambda: asked(port, "GET", "/readyz")[0] == 200)
        assert asked(port, "GET", "/v1/models")[2] == {"models": ["mail", "tea"]}
        assert asked(port, "POST", "/v1/predict", body)[0] == 404
        assert asked(port, "POST", "/v1/tea/learn", {"lines": ["spam | a"]})[0] == 403
        with new_learner() as learner:
            learner.learn_many(["junk | free"] * 50)
            learner.save(tmp_path / "new.bin")
        (tmp_path / "new.bin").replace(folder / "tea.bin")
        (tmp_path / "bad").write_bytes(b"damaged")
        (tmp_path / "bad").replace(folder / "mail.bin")
        answers = []

        def changed():
            answers.append(asked(port, "POST", "/v1/tea/predict", body))
            return answers[-1][2]["predictions"][0]["prediction"] == "junk"

        wait_for(changed)
        assert {status for status, _, _ in answers} == {200}
        assert asked(port, "POST", "/v1/mail/predict", body)[2]["predictions"] == [{"prediction": "spam"}]
        (folder / "tea.bin").unlink()
        (folder / "mail.bin").unlink()
        wait_for(lambda: asked(port, "GET", "/v1/models")[2] == {"models": []})
        assert asked(port, "POST", "/v1/predict", body)[::2] == (404, {"error": "this server has no model"})
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 0 and errors.count(b"bad: the model was not loaded") == 1  # it is not told again
        assert re.search(rb"mail: the model was not loaded: .* is served on", errors)
        assert (
            b"lost: the model was not loaded" in errors
            and b"there is no such file" in errors
            and b"Traceback" not in errors
        )
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--models", ".", "--http", 0, "-f", "m"], "has no effect with --models"),
        (["--models", ".", "--http", 0, "--idle_timeout", 3], "--idle_timeout has no effect with --models"),
        (["--models", ".", "--http", 0, "--port", 8000], "--port has no effect with --models"),
        (
            ["--models", "file", "--http", 0],
            "--models file: the folder cannot be read: Not a directory; give",
        ),
        (["--models", "closed", "--http", 0], "--models closed: the folder cannot be read: Permission denied"),
    ],
)
def test_models_of_a_folder_that_cannot_be_served(place, words, message):
    (place / "file").touch()
    (place / "closed").mkdir(mode=0o000)
    if "closed" in words and os.access(place / "closed", os.R_OK):
        pytest.skip("this user may read every folder")
    result = failing("serve", *words)
    assert result.status == 2 and message in result.err, result.err


def test_addresses():
    assert messages.address("8000") == ("127.0.0.1", 8000)
    assert messages.address("0.0.0.0:80") == ("0.0.0.0", 80)
    assert messages.address("[::1]:0") == ("::1", 0)


def test_rows_of_numbers_are_predicted_in_a_batch_with_other_examples():
    X = np.random.default_rng(0).normal(size=(200, 6)).astype(np.float32)
    with xclass.Learner() as learner:
        learner.learn_many(X, (X[:, 0] > 0) + 1)
        wanted = learner.predict_many(X[:4]).tolist()
        asked = [(X[:3], 2, "rows"), (["| a"], None, "lines"), (X[:1, :2], None, "rows"), (X[3:4], None, "rows")]
        questions = [json_examples.GivenExamples(given, k=k, form=form) for given, k, form in asked]
        rows, line, narrow, row = json_examples.predict(learner, questions)
    assert [one["prediction"] for answer in (rows, row) for one in answer["predictions"]] == wanted
    assert len(rows["predictions"][0]["top"]) == 2 and "warnings" not in rows
    assert "learned from rows of 6 numbers" in line["warnings"][0] and "rows of 2 columns" in str(narrow)
