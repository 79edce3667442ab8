"""The service: what happens while a model is saved, after a defect, and with several models."""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest
from servers import Messages, answers, connected, in_event_loop, received, served, wait_for

import xclass
from xclass.api import model_contents
from xclass.errors import ModelError
from xclass.run.report.console import OperatorConsole
from xclass.serving.models import FolderModels
from xclass.serving.service import FAILED, Service, Unavailable

LEARNED = b"".join(b"%d |f y%d n%d\n" % (i % 3 + 1, i % 3, i % 7) for i in range(30))


def new() -> xclass.Learner:
    return xclass.Learner("oaa", classes=3, bits=10)


def test_predictions_do_not_wait_for_a_save_and_learning_does(tmp_path):
    path, go_on = tmp_path / "m", threading.Event()
    with (
        new() as learner,
        served(learner, path=str(path), checkpoint=10) as running,
        held_back(go_on) as began,
        connected(running.port) as learns,
        connected(running.port) as mixed,
    ):
        learns.sendall(LEARNED)
        assert began.wait(60)
        assert received(learns, 10).count(b"\n") == 10
        assert learner.examples == 10
        mixed.sendall(b"1 |f y0 'a\n|f y0 'b\n")  # the second line waits for the first
        for _ in range(5):  # these overtake
            assert running.ask(b"|f y0\n|f y1\n").count(b"\n") == 2
        assert learner.examples == 10 and not path.exists()
        mixed.settimeout(0.2)
        with pytest.raises(TimeoutError):
            mixed.recv(1)
        go_on.set()
        mixed.settimeout(60)
        assert received(learns, 20).count(b"\n") == 20 and received(mixed, 2).count(b"\n") == 2
    assert learner.examples == 31
    assert xclass.load(path).examples == 31


def test_a_model_that_another_process_has_saved_is_not_replaced(tmp_path):
    path = tmp_path / "m"
    with new() as learner:
        learner.learn_many(LEARNED.decode().splitlines())
        learner.save(tmp_path / "other")
    with pytest.raises(ModelError, match="another process has saved a model here"):  # noqa: SIM117 (the order is plainer)
        with new() as learner, served(learner, path=str(path), checkpoint=10) as running:
            assert running.ask(LEARNED[: len(LEARNED) // 3]).count(b"\n") == 10
            wait_for(path.exists)  # another thread saves
            path.write_bytes((tmp_path / "other").read_bytes())
            assert running.ask(LEARNED).count(b"\n") == 30
    assert any("was not saved" in text and "another process" in text for text in running.messages)
    assert xclass.load(path).examples == 30 and xclass.load(f"{path}.interrupted").examples == 40


def test_checkpoints_that_cannot_be_saved_are_reported_and_learning_goes_on(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with new() as learner, served(learner, path=str(folder / "m"), checkpoint=10) as running:
        folder.rename(tmp_path / "away")
        assert running.ask(LEARNED).count(b"\n") == 30
        (tmp_path / "away").rename(folder)
    assert any("the model of 10 examples was not saved; 10 are in no file: " in text for text in running.messages)
    assert xclass.load(folder / "m").examples == 30


@in_event_loop
async def test_what_no_checkpoint_has_saved_is_kept_when_a_model_is_loaded(tmp_path):
    """A save that failed does not count, and the old learner serves on if what it learned cannot be saved."""
    folder, away = tmp_path / "folder", tmp_path / "away"
    folder.mkdir()

    def load() -> xclass.Learner:
        with new() as learner:
            learner.learn_many(["3 |f y0"] * 20)
            learner.save(tmp_path / "new")
        return xclass.load(tmp_path / "new")

    messages = Messages()
    service = Service(new(), path=str(folder / "m"), checkpoint=10, console=messages)
    service.start()
    folder.rename(away)
    await answers(service, LEARNED)
    with pytest.raises(ModelError, match=r"what was learned could not be saved before: .*folder"):
        await service.replace(load)
    assert (service.unsaved, service.learner.examples) == (30, 30)
    assert "30 are in no file" in messages[-1] and service.failed_saves >= 3
    away.rename(folder)
    await service.replace(load)
    assert (service.unsaved, service.learner.examples) == (0, 20)
    assert await answers(service, b"|f y0\n") == b"3\n"
    assert messages[-1] == f"what was learned from 30 examples is in {folder / 'm.interrupted'}"
    with pytest.raises(ModelError), mock.patch.object(model_contents, "save", side_effect=ModelError("full")):
        await service.save()
    await service.end()
    assert xclass.load(folder / "m.interrupted").examples == 30


@in_event_loop
async def test_what_is_saved_while_a_model_is_loaded_is_kept(tmp_path):
    """The next save would replace it by what the new learner has learned."""
    path, read, go_on = tmp_path / "m", threading.Event(), threading.Event()

    def load() -> xclass.Learner:
        learner = xclass.load(path)
        read.set()
        assert go_on.wait(60)
        return learner

    service = Service(new(), path=str(path), checkpoint=10)
    service.start()
    await answers(service, LEARNED)
    assert await service.save() == 30
    replacing = asyncio.ensure_future(service.replace(load))
    await asyncio.to_thread(read.wait)
    await answers(service, LEARNED)
    while service.unsaved:
        await asyncio.sleep(0.01)
    go_on.set()
    await replacing
    assert service.learner.examples == 30
    await service.end()
    assert xclass.load(tmp_path / "m.interrupted").examples == 60


@in_event_loop
async def test_predictions_go_between_the_parts_of_a_function():
    service = Service(new())
    service.start()
    await answers(service, LEARNED)
    learned_before: list[int] = []
    begun, asked, predicted = threading.Event(), threading.Event(), threading.Event()

    def parts(learner: xclass.Learner) -> Iterator[None]:
        for event in [asked, *[predicted] * 5]:
            learned_before.append(learner.examples)
            begun.set()
            assert event.wait(20)
            yield

    whole = asyncio.ensure_future(service.call(parts, learns=True))
    await asyncio.to_thread(begun.wait)
    learned = asyncio.ensure_future(answers(service, b"1 |f y0\n"))
    prediction = asyncio.ensure_future(answers(service, b"|f y0\n"))
    prediction.add_done_callback(lambda _: predicted.set())
    await asyncio.sleep(0)  # until these are asked
    asked.set()
    await asyncio.gather(whole, learned, prediction)
    await service.end()
    assert learned_before == [30] * 6


@pytest.mark.parametrize("failing", ["save", "record"])
def test_a_standard_error_that_nobody_reads_ends_nothing(failing, tmp_path, monkeypatch):
    """Neither after a failed checkpoint, nor after a defect."""
    reading, writing = os.pipe()
    os.close(reading)
    monkeypatch.setattr(sys, "stderr", os.fdopen(writing, "w"))
    path = tmp_path / "m"

    async def ask() -> None:
        service = Service(new(), path=str(path), checkpoint=10, console=OperatorConsole(quiet=False))
        service.start()
        await answers(service, LEARNED[: LEARNED.index(b"\n") + 1])
        if failing == "save":
            with mock.patch.object(model_contents, "save", side_effect=ModelError("full")):
                assert (await answers(service, LEARNED)).count(b"\n") == 30
            await service.end()
            return
        with mock.patch.object(type(service.learner.core), "record", lambda *_: 1 // 0):
            assert (await answers(service, LEARNED)) == FAILED * 30
        with pytest.raises(ZeroDivisionError):
            await service.end()

    asyncio.run(ask())
    found = path if failing == "save" else tmp_path / "m.interrupted"
    assert xclass.load(found).examples == (31 if failing == "save" else 1)


@in_event_loop
async def test_predictions_do_not_wait_for_the_save_before_a_model_is_loaded(tmp_path):
    go_on = threading.Event()
    service = Service(new(), path=str(tmp_path / "m"))
    service.start()
    await answers(service, LEARNED)
    with held_back(go_on):
        replacing = asyncio.ensure_future(service.replace(new))
        await asyncio.sleep(0.2)
        batches = service.batches
        found = await asyncio.wait_for(answers(service, b"|f y0\n" * 64), 60)
        assert found.count(b"\n") == 64 and service.batches <= batches + 4
        assert service.learner.examples == 30 and not replacing.done()
        go_on.set()
        await replacing
    assert service.learner.examples == 0
    await service.end()
    assert xclass.load(tmp_path / "m.interrupted").examples == 30


@in_event_loop
async def test_a_save_that_nobody_waits_for_ends(tmp_path):
    go_on = threading.Event()
    service = Service(new(), path=str(tmp_path / "m"))
    service.start()
    await answers(service, LEARNED)
    with held_back(go_on):
        saving = asyncio.ensure_future(service.save())
        await asyncio.sleep(0.1)
        saving.cancel()
        go_on.set()
        await asyncio.wait_for(service.end(), 60)
    with pytest.raises(Unavailable, match="has ended"):
        await service.call(lambda learner: 1, learns=False)
    assert await answers(service, b"|f y0\n") == FAILED
    assert xclass.load(tmp_path / "m").examples == 30


@in_event_loop
async def test_the_first_label_waits_for_a_save(tmp_path):
    """A new learner finds out by it whether labels are names, so it cannot be predicted alone."""

    go_on = threading.Event()
    service = Service(xclass.Learner(bits=10), path=str(tmp_path / "m"))
    service.start()
    with held_back(go_on):
        saving = asyncio.ensure_future(service.save())
        await asyncio.sleep(0.1)
        first = asyncio.ensure_future(answers(service, b"tea |f y0\n"))
        await asyncio.sleep(0.1)
        assert not first.done()
        go_on.set()
        assert not (await first).startswith(b"error") and await saving == 0
    assert await answers(service, b"|f y0\n") == b"tea\n"
    await service.end()


@contextlib.contextmanager
def held_back(go_on: threading.Event):
    """Let saves wait until `go_on` is set; give an event that is set when one has begun."""
    save, began = model_contents.save, threading.Event()

    def slow(*given, **more):
        began.set()
        assert go_on.wait(60)
        save(*given, **more)

    with mock.patch.object(model_contents, "save", slow):
        try:
            yield began
        finally:
            go_on.set()


@in_event_loop
async def test_functions_are_called_in_the_order_of_the_requests():
    with new() as learner:
        service = Service(learner)
        service.start()
        found = await asyncio.gather(
            answers(service, b"1 |f y0\n"),
            service.call(lambda one: one.examples, learns=False),
            answers(service, b"1 |f y0\n2 |f y1\n"),
            service.call(lambda one: one.examples, learns=False),
            answers(service, b""),
        )
        with pytest.raises(ZeroDivisionError):
            await service.call(lambda one: 1 // 0, learns=False)
        assert found == [b"1\n", 1, b"1\n1\n", 3, b""] and await answers(service, b"|f y0\n") == b"1\n"
        await service.end()


@in_event_loop
async def test_models_are_asked_once_their_kernels_are_loaded(tmp_path):
    with new() as learner:
        learner.save(tmp_path / "one.bin")
        learner.save(tmp_path / "changed")
    loading, loaded = threading.Semaphore(0), threading.Semaphore(0)

    def load() -> None:
        loading.release()
        assert loaded.acquire(timeout=60)

    models = FolderModels(str(tmp_path), xclass.load, Messages())
    with mock.patch("xclass.run.warm_up.parts", return_value={"a part": load}):
        for name in (None, "changed"):
            if name is not None:
                os.replace(tmp_path / name, tmp_path / "one.bin")
            before = {one: service.learner for one, service in models.services.items()}
            refreshed = asyncio.ensure_future(models.refresh(False))
            assert await asyncio.to_thread(loading.acquire, timeout=60)
            assert {one: service.learner for one, service in models.services.items()} == before
            loaded.release()
            await refreshed
            assert models.services["one"].learner not in before.values()
        await models.end()


WARMED_UP = """
import sys, warnings
import numpy as np
import xclass
from xclass.kernels import jit
from xclass.serving import json_examples
from xclass.serving.lines import LineHandler

learner = xclass.load(sys.argv[1])
handler = LineHandler(learner, True)
json_examples.load_request_kernels(handler)
assert not learner.core.take_notes() and learner.examples == 30
loaded, load = [], jit._Versions._compiled_or_loaded


def noted(one, types, callers):
    loaded.append(one._dispatcher.py_func.__name__)
    return load(one, types, callers)


jit._Versions._compiled_or_loaded = noted


def go(steps):
    for _ in steps:
        pass


def learn(*given):
    go(json_examples.learn(learner, json_examples.GivenExamples(*given), lambda: 9))


rows = np.ones((2, learner.core.schema.width or 1), np.float32)
forms = [["| f1"], ["|n f1:2 b=c"] * 3, xclass.Documents(["f1 x"]), [{"f1": 1, "b": "x"}]]
if learner.core.schema.width:
    forms = [rows]
for given in forms:
    for k in (None, 2):
        json_examples.predict(learner, [json_examples.GivenExamples(given, k=k)])
    go(json_examples.explain(learner, json_examples.GivenExamples(given)))
    if not isinstance(given, list) or isinstance(given[0], dict):
        learn(given, ["c1"] * len(given))
if not learner.core.schema.width:
    learn(["c1 | f1"])
    handler.handle(b"| f1\\nc1 | f2\\nno bar\\n", True)
assert not loaded, loaded
"""


@pytest.mark.parametrize("kind", ["oaa", "multiclass", "rows"])
def test_no_request_loads_a_kernel_after_the_warm_up(kind, tmp_path):
    """Before, a server that was ready compiled for half a minute when the first text came."""
    labels = [f"c{i % 3}" for i in range(30)]
    with xclass.Learner(*(("oaa", 3) if kind == "oaa" else ()), learn_names=True, bits=12) as learner:
        if kind == "rows":
            learner.learn_many(np.eye(3, dtype=np.float32)[np.arange(30) % 3], labels)
        else:
            learner.learn_many([f"| f{i % 3}" for i in range(30)], labels)
        learner.save(tmp_path / "m")
    subprocess.run([sys.executable, "-W", "ignore", "-c", WARMED_UP, tmp_path / "m"], check=True, timeout=600)
