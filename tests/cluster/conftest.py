"""Start one Ray for all tests of this folder that need one; without Ray they are skipped."""

import os
from pathlib import Path

import pytest

import xclass

HEALTH_CHECKS = {"initial_delay": 1000, "period": 200}  # milliseconds; with 5000 and 3000, a dead node is noticed late
ROOT = str(Path(xclass.__file__).parents[1])


@pytest.fixture
def inline(monkeypatch):
    """Workers that live in this process, without Ray, which takes seconds for each."""
    import inline_ray

    from xclass.cluster import session
    from xclass.text import reader

    ray = inline_ray.module()
    monkeypatch.setattr(session, "imported", lambda: ray)
    monkeypatch.setattr(session.Session, "_check_versions", lambda self: None)
    for name in ("FIRST_BLOCK", "LARGEST_BLOCK"):
        monkeypatch.setattr(reader, name, getattr(reader, name))  # workers may change it


class Rays:
    """Start a Ray when it is needed: one of two processors on this machine, or two nodes of two processors."""

    def __init__(self):
        self._end, self.nodes = None, None

    def local(self):
        """Connect this process to a Ray that xclass has started."""
        if self._end is None or self.nodes is not None:
            from xclass.cluster.options import ClusterOptions
            from xclass.cluster.session import Session

            self.end()
            one = Session(ClusterOptions(workers=2, ray_timeout=60.0), print)
            one.__enter__()
            self._end = one.close
        return self

    def several(self):
        """Connect this process to two nodes; tests that harm a node add one of their own."""
        if self.nodes is None:
            import ray
            from ray.cluster_utils import Cluster

            self.end()
            self.nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
            self._end = self._end_nodes
            self.nodes.add_node(num_cpus=2)
            ray.init(address=self.nodes.address, log_to_driver=False, logging_level="ERROR")
        return self.nodes

    def _end_nodes(self):
        import ray

        ray.shutdown()
        self.nodes.shutdown()
        self.nodes = None

    def end(self):
        """End what was started."""
        end, self._end = self._end, None
        if end is not None:
            end()


@pytest.fixture(scope="session")
def rays():
    """What starts a Ray."""
    pytest.importorskip("ray", reason="the package ray is not installed")
    paths = [ROOT, os.path.join(ROOT, "tests", "support")]  # where workers import from
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # at 15, its default, workers wait for the other tests
    for name, milliseconds in HEALTH_CHECKS.items():
        os.environ.setdefault(f"RAY_health_check_{name}_ms", str(milliseconds))
    one = Rays()
    yield one
    one.end()


@pytest.fixture
def cluster(rays, request):
    """A Ray to which this process is connected; of several nodes for slow tests."""
    return rays.several() if request.node.get_closest_marker("slow") else rays.local()


@pytest.fixture
def session(cluster):
    """Return a function that connects to the cluster; the lines for the user are in `session(...).said`."""
    from xclass.cluster.options import ClusterOptions
    from xclass.cluster.session import Session

    opened = []

    def open_session(environment=None, **options):
        said = []
        one = Session(ClusterOptions(**{"workers": 2, "ray_timeout": 60.0, **options}), said.append, environment)
        opened.append(one)
        one.__enter__()
        one.said = said
        return one

    yield open_session
    for one in opened:
        one.close()
