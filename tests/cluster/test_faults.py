"""What a cluster can do to a run: nodes that die or are not replaced, and files that only some nodes can read."""

import dataclasses
import re
from pathlib import Path

import pytest
from command import learn, xclass
from mortal_part import MortalPartLearner, MortalPredictor
from streams import multiclass

from xclass.cluster import dispatch, engines, predicting
from xclass.cluster import session as sessions

pytestmark = pytest.mark.slow

FILES = [f"part-{k}.vw" for k in range(5)]
DATA = [word for path in FILES for word in ("-d", path)]
LEARN = ["--oaa", 30, "-b", 12]


@pytest.fixture(autouse=True)
def place(cluster, tmp_path, monkeypatch):
    """A folder with five files to run in, and workers that read small batches."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dispatch, "PartLearner", MortalPartLearner)
    monkeypatch.setattr(predicting, "PartPredictor", MortalPredictor)
    for k, path in enumerate(FILES):
        (tmp_path / path).write_text(multiclass(k, 30, 100, tags=True))
    return tmp_path


@pytest.fixture
def node(cluster):
    """The second node of the cluster, without which three workers have no processors: `node.die()`."""

    class Node:
        died = False

        def die(self, replaced=True):
            """End the node with all of its processes, as if the machine was switched off."""
            (one,) = cluster.worker_nodes
            cluster.remove_node(one, allow_graceful=False)
            self.died = True
            if replaced:
                cluster.add_node(num_cpus=2)

    one = Node()
    yield one
    if not cluster.worker_nodes:
        cluster.add_node(num_cpus=2)


def after(monkeypatch, owner, method, count, action):
    """Let `action` be called once, after a method was called `count` times."""
    own, calls = getattr(owner, method), []

    def counting(*arguments):
        result = own(*arguments)
        calls.append(None)
        if len(calls) == count:
            action()
        return result

    monkeypatch.setattr(owner, method, counting)
    return calls


def test_a_node_that_dies_does_not_change_predictions(node, monkeypatch):
    learn(*LEARN, "-d", FILES[0], "-f", "m.bin")
    words = ["-t", "-i", "m.bin", *DATA, *DATA, "--top_k", 2]
    learn(*words, "-p", "one.txt")
    after(monkeypatch, engines, "added", 1, node.die)
    learn(*words, "-p", "many.txt", "--workers", 3)
    assert node.died
    assert Path("one.txt").read_bytes() == Path("many.txt").read_bytes()


def test_a_node_that_dies_does_not_change_an_averaged_model(node, monkeypatch):
    words = [*LEARN, "--sync_every", 20, *DATA, "-f", "many.bin", "--workers", 3]
    learn(*words)
    model = Path("many.bin").read_bytes()
    after(monkeypatch, dispatch.Averaged, "_show", 2, node.die)
    learn(*words)
    assert node.died
    assert Path("many.bin").read_bytes() == model


def test_a_node_that_is_not_replaced_is_waited_for_and_given_up(node, monkeypatch):
    learn(*LEARN, "-d", FILES[0], "-f", "many.bin")
    old = Path("many.bin").read_bytes()
    monkeypatch.setattr(sessions, "NOTICE_SECONDS", 0.5)
    show = dispatch.Averaged._show

    def show_and_lose_a_node(self, round_):
        show(self, round_)
        if self._averaging.rounds == 2:
            node.die(replaced=False)
            self._session._options = dataclasses.replace(self._session._options, ray_timeout=0.5)

    monkeypatch.setattr(dispatch.Averaged, "_show", show_and_lose_a_node)
    result = xclass(*LEARN, *DATA, "-f", "many.bin", "--sync_every", 20, "--workers", 3)
    assert result.status == 1
    lost = r"worker \d is not running; waiting for a processor for 1 of 3 workers: the cluster has \d processors, \d"
    assert re.search(rf"^xclass: {lost} of them free; gave up after 0\.5 seconds", result.err, re.MULTILINE)
    assert "what was learned from" in result.err
    assert "many.bin.interrupted; many.bin is as it was before" in result.err
    assert Path("many.bin").read_bytes() == old


def test_labels_that_are_names_are_found_in_the_files_of_a_pattern(place):
    for path in FILES[:2]:
        (place / f"named-{path}").write_text(re.sub(r"^(\d+)", r"c\1", Path(path).read_text(), flags=re.MULTILINE))
    learn(*LEARN, "-d", "named-part-0.vw", "-d", "named-part-1.vw", "-f", "one.bin")
    messages = learn(*LEARN, "-d", "named-*.vw", "-f", "many.bin", "--workers", 2).err
    assert "labels are names" in messages
    assert Path("one.bin").read_bytes() == Path("many.bin").read_bytes()
