"""Advice about a cluster that cannot do what a run needs is followed as it is shown, and then the run succeeds.

The cluster is that of `inline_ray`, and lacks what each case says.
"""

import os
import pickle
import re
import sys
from types import SimpleNamespace

import inline_ray
import pytest
from command import xclass as run
from streams import multiclass

from xclass.cluster import part_worker, session
from xclass.run.results import summary

RUN = "--oaa 9 -d part-0.vw -d part-1.vw --workers 2 --sync_every 20 -b 12"
OWN = summary.versions()
TOKEN = "RAY_AUTH_MODE"


class Cluster:
    """Stand for Ray on this machine and a cluster, by default of what a run needs."""

    def __init__(self, monkeypatch, up=True, token=False, same_ray=True, listens=session.LOOPBACK, versions=OWN,
                 has_xclass=True, store=1 << 40, most_bits=32, processors=4):  # fmt: skip
        self.token, self.up, self.same_ray, self.is_connected = token, up, same_ray, False
        ray = inline_ray.module()
        monkeypatch.setattr(inline_ray, "PROCESSORS", processors)
        put, remote = ray.put, ray.remote
        kinds = ("TaskUnschedulableError", "WorkerCrashedError")
        for name in kinds:
            setattr(ray.exceptions, name, type(name, (Exception,), {}))

        def put_in(value):
            if len(pickle.dumps(value)) > store:
                raise ray.exceptions.ObjectStoreFullError("the store is full")
            return put(value)

        def remote_in(function=None, **named):
            if function is not summary.versions:
                return remote(function, **named)
            return remote(lambda: versions) if has_xclass else remote(lambda: __import__("no_xclass"))

        monkeypatch.setattr(part_worker.PartWorker, "_begin", self._within(most_bits, part_worker.PartWorker._begin))
        self.module = SimpleNamespace(
            **{**vars(ray), "put": put_in, "remote": remote_in},
            __version__=OWN.get("ray", "2.40.0"),
            init=self.init,
            shutdown=lambda: None,
            nodes=lambda: [{"NodeManagerAddress": listens, "Alive": True, "NodeID": "e"}],
            _private=SimpleNamespace(worker=None, services=None, ray_constants=SimpleNamespace()),
        )
        self.module.is_initialized = lambda: self.is_connected
        scheduling = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
        monkeypatch.setitem(sys.modules, "ray.util.scheduling_strategies", scheduling)
        monkeypatch.setattr(session, "imported", lambda: self.module)

    def init(self, address, **_):
        if address != "local" and not (self.up and (not self.token or os.environ.get(TOKEN) == "token")):
            raise ConnectionError("nobody answers")
        if address != "local" and not self.same_ray:
            raise RuntimeError("Version mismatch: Ray: 2.0")
        self.is_connected = True

    @staticmethod
    def _within(most_bits, begin):
        def begin_within(worker):
            if worker._config.learner.bits > most_bits:
                raise MemoryError("cannot allocate the weights")
            begin(worker)

        return begin_within


OTHER = {**OWN, "numpy": "0.1"}
# what the cluster lacks, further words, the advice, and then the cluster and the words that follow it
CASES = [
    ({"up": False}, "--ray auto", "start one, `ray (start) --head`", {}, "--ray auto"),
    ({"up": False}, "--ray auto", "leave (--ray) out for a Ray on this machine", {"up": False}, ""),
    ({"token": True}, "--ray a:1", f"as `ray start` says, set ({TOKEN}=token)$", {"token": True}, "--ray a:1"),
    ({"same_ray": False}, "--ray a:1", "install the (same) on all nodes", {}, "--ray a:1"),
    ({"listens": "192.0.2.2"}, "", f"or set ({session.NETWORK}=1) where", {"listens": "192.0.2.2"}, ""),
    ({"listens": "192.0.2.2"}, "", "install a (newer) Ray", {}, ""),
    ({"versions": OTHER}, "--ray a:1", r"install the same everywhere:\n.* numpy 0.1, this process has (\S+)$",
     {"versions": {**OWN, "numpy": "{}"}}, "--ray a:1"),
    ({"has_xclass": False}, "--ray a:1", r"install there what this process has: xclass (\S+),",
     {"versions": {**OWN, "xclass": "{}"}}, "--ray a:1"),
    ({"store": 1000}, "", "`ray start --object-store-memory (BYTES)`", {"store": 1 << 40}, ""),
    ({"store": 4999}, "", "choose a smaller model, (-b)", {"store": 4999}, "{} 5"),
    ({"most_bits": 11}, "", "try a smaller (-b)", {"most_bits": 11}, "{} 10"),
    ({"processors": 1}, "--ray_timeout 0.2", "give fewer (--workers)", {"processors": 1}, "{} 1"),
    ({"processors": 1}, "--ray_timeout 0.2", "or add (nodes) to the cluster", {"processors": 2}, ""),
]  # fmt: skip


@pytest.fixture
def place(place, monkeypatch):
    for k in range(2):
        (place / f"part-{k}.vw").write_text(multiclass(k, 9, 60))
    for name in ("RAY_ADDRESS", TOKEN, session.NETWORK):
        monkeypatch.delenv(name, raising=False)
    return place


@pytest.mark.parametrize(("lacks", "words", "advice", "has", "instead"), CASES)
def test_advice_about_a_cluster_is_followed(place, monkeypatch, lacks, words, advice, has, instead):
    with monkeypatch.context() as patch:
        Cluster(patch, **lacks)
        refused = run(*f"{RUN} {words}".split())
    found = re.search(advice, refused.err, re.MULTILINE)
    assert refused.status and found, refused.err
    name, _, value = found[1].partition("=")
    if value:
        monkeypatch.setenv(name, value)
    versions = {key: text.format(found[1]) for key, text in has.pop("versions", {}).items()}
    Cluster(monkeypatch, **has, versions=versions or OWN)
    given = instead.format(found[1]).split()
    kept = re.sub(rf"{given[0]} \S+", "", RUN) if given else RUN  # the value of an option that is given anew
    followed = run(*kept.split(), *given)
    assert followed.status == 0, followed.err


def test_the_commands_and_variables_that_advice_names_are_those_of_ray():
    pytest.importorskip("ray", reason="the package ray is not installed")
    from ray._private import ray_constants
    from ray.scripts import scripts

    options = {flag for one in scripts.cli.commands["start"].params for flag in one.opts}
    assert {"--head", "--object-store-memory"} <= options
    assert ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR == session.NETWORK
    setup = pytest.importorskip("ray._private.authentication.authentication_token_setup", reason="Ray has no tokens")
    assert setup.AUTH_MODE_ENV_VAR == TOKEN
