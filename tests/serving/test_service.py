"""The service: what happens while a model is saved, after a defect, and with several models."""

import asyncio
import os
import threading
import time
from unittest import mock

import pytest
from servers import Messages, connected, received, served

import xclass
from xclass.api import model_contents
from xclass.serving.models import Models
from xclass.serving.service import Service

LEARNED = b"".join(b"%d |f y%d n%d\n" % (i % 3 + 1, i % 3, i % 7) for i in range(30))


def new() -> xclass.Learner:
    return xclass.Learner("oaa", classes=3, bits=10)


def test_predictions_do_not_wait_for_a_save_and_learning_does(tmp_path):
    began, go_on = threading.Event(), threading.Event()
    save = model_contents.save

    def slow(*given, **more):
        began.set()
        assert go_on.wait(60)
        save(*given, **more)

    path = tmp_path / "m"
    with (
        mock.patch.object(model_contents, "save", slow),
        new() as learner,
        served(learner, path=str(path), checkpoint=10) as running,
    ):
        try:
            with connected(running.port) as learns, connected(running.port) as mixed:
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
        finally:
            go_on.set()
    assert learner.examples == 31
    assert xclass.load(path).examples == 31


def test_checkpoints_that_cannot_be_saved_are_reported_and_learning_goes_on(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    with new() as learner, served(learner, path=str(folder / "m"), checkpoint=10) as running:
        folder.rename(tmp_path / "away")
        assert running.ask(LEARNED).count(b"\n") == 30
        (tmp_path / "away").rename(folder)
    assert any("checkpoint after 10 examples: the model was not saved: " in text for text in running.messages)
    assert xclass.load(folder / "m").examples == 30


def test_after_a_defect_the_server_ends_and_what_was_learned_is_kept(tmp_path):
    path = tmp_path / "m"
    with pytest.raises(ZeroDivisionError), new() as learner, served(learner, path=str(path)) as running:
        assert running.ask(LEARNED).count(b"\n") == 30
        stage = mock.patch.object(type(learner.core), "count", lambda *_: 1 // 0)
        with stage:
            answers = running.ask(LEARNED)
        assert answers == b"error: the server has failed\n" * 30
        deadline = time.monotonic() + 60
        while not (tmp_path / "m.interrupted").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert xclass.load(tmp_path / "m.interrupted").examples == 30
    assert not path.exists()


def test_functions_are_called_in_the_order_of_the_requests():
    async def ask() -> list:
        with new() as learner:
            service = Service(learner)
            service.start()
            answers = await asyncio.gather(
                service.lines(b"1 |f y0\n"),
                service.call(lambda one: one.examples, learns=False),
                service.lines(b"1 |f y0\n2 |f y1\n"),
                service.call(lambda one: one.examples, learns=False),
                service.lines(b""),
            )
            with pytest.raises(ZeroDivisionError):
                await service.call(lambda one: 1 // 0, learns=False)
            answers.append(await service.lines(b"|f y0\n"))
            await service.end()
            return answers

    assert asyncio.run(ask()) == [b"1\n", 1, b"1\n1\n", 3, b"", b"1\n"]


def test_models_are_asked_once_their_kernels_are_loaded(tmp_path):
    with new() as learner:
        learner.save(tmp_path / "one.bin")
        learner.save(tmp_path / "changed")
    loading, loaded = threading.Semaphore(0), threading.Semaphore(0)

    def load() -> None:
        loading.release()
        assert loaded.acquire(timeout=60)

    async def ask() -> None:
        models = Models(str(tmp_path), xclass.load, Messages())
        for name in (None, "changed"):
            if name is not None:
                os.replace(tmp_path / name, tmp_path / "one.bin")
            before = {one: service.learner for one, service in models.services.items()}
            refreshed = asyncio.ensure_future(models.refresh())
            assert await asyncio.to_thread(loading.acquire, timeout=60)
            assert {one: service.learner for one, service in models.services.items()} == before
            loaded.release()
            await refreshed
            assert models.services["one"].learner not in before.values()
        await models.end()

    with mock.patch("xclass.run.warm_up.parts", return_value={"a part": load}):
        asyncio.run(ask())


def test_models_of_a_folder_are_loaded_exchanged_and_ended(tmp_path):
    def write(name: str, label: int) -> None:
        with new() as learner:
            learner.learn_many([f"{label} |f y0"] * 20)
            learner.save(tmp_path / name)

    async def ask() -> None:
        messages = Messages()
        models = Models(str(tmp_path), xclass.load, messages)
        write("one.bin", 1)
        write("two.bin", 2)
        (tmp_path / "notes.txt").write_text("no model")
        (tmp_path / "bad.bin").write_text("no model")
        await models.refresh()
        assert sorted(models.services) == ["one", "two"]
        assert await models.services["two"].lines(b"3 |f y0\n") == b"2\n"
        assert await models.services["two"].lines(b"3 |f y0\n") == b"2\n"
        before = len(messages)
        await models.refresh()
        assert len(messages) == before  # nothing has changed
        write("two.bin", 3)
        (tmp_path / "new").write_bytes((tmp_path / "one.bin").read_bytes()[:-50])
        os.replace(tmp_path / "new", tmp_path / "one.bin")
        await models.refresh()
        assert await models.services["two"].lines(b"|f y0\n") == b"3\n"
        assert await models.services["one"].lines(b"|f y0\n") == b"1\n"
        assert messages[-2].startswith("one: the model was not loaded: ") and messages[-2].endswith("is served on")
        os.unlink(tmp_path / "one.bin")
        await models.refresh()
        assert list(models.services) == ["two"]
        await models.end()

    asyncio.run(ask())
