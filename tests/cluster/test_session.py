"""The connection to a cluster: versions, waiting for processors, and workers that die."""

import contextlib
import glob
import os
import re
import threading
from pathlib import Path

import pytest
from cluster_worker import Worker

import xclass
from xclass.cluster import session as sessions
from xclass.cluster.options import ClusterOptions
from xclass.errors import ClusterError, DataError

pytest.importorskip("ray", reason="the package ray is not installed")


def test_results_come_in_order_although_workers_die(session, tmp_path):
    one = session()
    workers = one.actors(Worker, 2, str(tmp_path))
    assert list(one.answers(workers, [0, 1], lambda worker, k: worker.die_once.remote(), 2)) == [(0, 1), (1, 2)]
    assert len(list(tmp_path.iterdir())) == 2


def test_an_error_in_a_worker_is_raised_as_it_was(session, tmp_path):
    one = session()
    workers = one.actors(Worker, 1, str(tmp_path))
    with pytest.raises(DataError) as caught:
        one.result(workers[0].fail.remote(), workers[0], 1)
    assert type(caught.value) is DataError
    assert caught.value.args == ("x.vw:1: wrong", "second line")


def test_another_version_on_a_node_is_refused_by_name(session, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import xclass\nxclass.__version__ = '0.0.1'\n")
    path = f"{tmp_path}:{os.environ['PYTHONPATH']}"  # Python runs the module above when a worker starts
    with pytest.raises(ClusterError) as caught:
        session(environment={"env_vars": {"PYTHONPATH": path}})
    lines = caught.value.args
    assert "other versions" in lines[0]
    assert len(lines) == 2  # of one node
    assert re.fullmatch(rf"  node \S+ has xclass 0\.0\.1, this process has {xclass.__version__}", lines[1])


def test_a_node_that_has_died_has_no_versions(session, monkeypatch):
    ray = pytest.importorskip("ray", reason="the package ray is not installed")
    one = session()
    alive = ray.nodes()
    dead = {"NodeID": "e" * len(alive[0]["NodeID"]), "NodeManagerAddress": "10.0.0.9", "Alive": True}
    monkeypatch.setattr(ray, "nodes", lambda: [*alive, dead])  # Ray lists a node for some seconds after its death
    one._check_versions()


def test_a_node_without_xclass_is_refused_by_name(session, tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['xclass'] = None\n")
    path = f"{tmp_path}:{os.environ['PYTHONPATH']}"
    with pytest.raises(ClusterError, match=r"node \S+ of the cluster cannot run xclass \(.*xclass.*install there what"):
        session(environment={"env_vars": {"PYTHONPATH": path}})


def test_messages_of_ray_do_not_get_among_predictions(monkeypatch, capsys):
    ray = pytest.importorskip("ray", reason="the package ray is not installed")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", lambda **_: None)
    monkeypatch.setattr(ray, "nodes", lambda: [{"NodeManagerAddress": sessions.LOOPBACK}])
    message = {"lines": ["a node has died"], "pid": "raylet", "is_err": False}

    def tell():
        ray._private.worker.print_to_stdstream(message, ignore_prefix=False)

    monkeypatch.setattr(ray, "shutdown", tell)  # about tasks of workers that were ended
    monkeypatch.setattr(sessions.Session, "_check_versions", lambda self: None)
    with sessions.Session(ClusterOptions(workers=1), print):
        tell()
    assert capsys.readouterr().out == ""
    ray._private.worker.print_to_stdstream({**message, "lines": ["another node has died"]}, ignore_prefix=False)
    assert "another node has died" in capsys.readouterr().out


def test_a_ray_that_does_not_start_is_an_error_with_its_reason(monkeypatch):
    import ray

    def init(**_):
        raise Exception("The current node timed out\nduring startup.")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(ClusterError, match=r"cannot be started on this machine: The current node timed out during"):
        sessions.Session(ClusterOptions(workers=2), print).__enter__()


def slow_services(monkeypatch, refusals):
    """Let `ray.init` ask for its node as Ray does, and refuse so many times; return what `init` has received."""
    import ray

    received = {}

    def refuse(*_):
        if received.setdefault("asked", 0) < refusals:
            received["asked"] += 1
            raise RuntimeError("no node")
        return {"node": 1}

    def init(**named):
        received.update(named, node=ray._private.services.get_node("address", "id"))

    monkeypatch.setattr(ray._private.services, "get_node", refuse)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "nodes", lambda: [{"NodeManagerAddress": received.get("address_of_node", "127.0.0.1")}])
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(sessions.Session, "_check_versions", lambda self: None)
    monkeypatch.setattr(sessions, "START_POLL", 0)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return received, refuse


def test_a_ray_that_starts_slowly_has_the_time_of_ray_timeout(monkeypatch):
    import ray

    received, services = slow_services(monkeypatch, 3)
    with sessions.Session(ClusterOptions(workers=1), print):
        assert ray._private.services.get_node is services  # what was changed for the start is as it was
    assert received["node"] == {"node": 1}
    assert received["asked"] == 3


def test_a_ray_that_does_not_start_in_time_is_given_up(monkeypatch):
    slow_services(monkeypatch, 10)
    with pytest.raises(ClusterError, match=r"cannot be started on this machine: it has not started within 0 seconds"):
        sessions.Session(ClusterOptions(workers=1, ray_timeout=0.0), print).__enter__()


def test_workers_of_a_local_ray_have_the_priority_of_the_run(monkeypatch):
    received, _ = slow_services(monkeypatch, 0)
    monkeypatch.delenv(sessions.NICENESS, raising=False)
    with sessions.Session(ClusterOptions(workers=1), print):
        assert received.pop("_system_config") == {"worker_niceness": 0}
    monkeypatch.setenv(sessions.NICENESS, "7")  # the user has chosen
    with sessions.Session(ClusterOptions(workers=1), print):
        assert "_system_config" not in received


def test_more_workers_than_processors_on_this_machine_are_mentioned(monkeypatch):
    slow_services(monkeypatch, 0)
    monkeypatch.setattr(sessions.thread_limit, "processors", lambda: 2)
    said: list[str] = []
    with sessions.Session(ClusterOptions(workers=2), said.append):
        assert not said
    with sessions.Session(ClusterOptions(workers=64), said.append):
        assert [line[:52] for line in said] == ["--workers 64: this machine has 2 processors, which t"]


def test_a_ray_that_listens_to_the_network_is_refused(monkeypatch):
    received, _ = slow_services(monkeypatch, 0)
    received["address_of_node"] = "192.0.2.2"
    with pytest.raises(ClusterError, match=r"^Ray [0-9.]+ listens at 192.0.2.2 and not at 127.0.0.1 only, so others"):
        sessions.Session(ClusterOptions(workers=1), print).__enter__()
    assert sessions.NETWORK not in os.environ
    monkeypatch.setenv(sessions.NETWORK, "1")  # the user has chosen
    with sessions.Session(ClusterOptions(workers=1), print):
        pass


def processes_below(pid):
    """Yield a process and those that it and its children have started."""
    yield pid
    for name in glob.glob(f"/proc/{pid}/task/*/children"):
        for child in Path(name).read_text().split():
            yield from processes_below(child)


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="there is no /proc/net/tcp to look at")
def test_the_local_ray_listens_on_this_machine_only(cluster):
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path("/proc/net", name).read_text().splitlines()[1:]]
    listening = {row[9]: row[1].rpartition(":")[0] for row in rows if row[3] == "0A"}
    addresses = set()
    for pid in processes_below(os.getpid()):
        for link in glob.glob(f"/proc/{pid}/fd/*"):
            with contextlib.suppress(KeyError, OSError):
                addresses.add(listening[os.readlink(link)[8:-1]])
    assert addresses
    assert addresses <= {"0100007F", "0000000000000000FFFF00000100007F"}


def test_a_cluster_that_does_not_answer_is_given_up_in_time(monkeypatch):
    import ray

    go_on, told = threading.Event(), []
    monkeypatch.setattr(ray, "init", lambda **_: go_on.wait(60))
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ClusterError, match=r"it has not answered within 0.2 seconds, --ray_timeout"):
        sessions.Session(ClusterOptions(workers=2, ray="a:1", ray_timeout=0.2), print, tell=told.append).__enter__()
    assert told == ["connecting to the Ray cluster a:1"]
    ended = threading.Event()
    monkeypatch.setattr(ray, "shutdown", ended.set)
    go_on.set()  # it answers later
    assert ended.wait(60)
