"""Start one Ray cluster of several nodes for all tests of this folder; without Ray they are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import xclass

HEALTH_CHECKS = {"initial_delay": 1000, "period": 200}  # milliseconds; with 5000 and 3000, a dead node is noticed late
ROOT = str(Path(xclass.__file__).parents[1])


@pytest.fixture(scope="session")
def cluster():
    """A Ray cluster of two nodes of two processors, to which this process is connected.

    Tests that harm a node add one of their own.
    """
    ray = pytest.importorskip("ray", reason="the package ray is not installed")
    from ray.cluster_utils import Cluster

    paths = [ROOT, os.path.join(ROOT, "tests", "support")]  # where workers import from
    os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("RAY_DEDUP_LOGS", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # at 15, its default, workers wait for the other tests
    for name, milliseconds in HEALTH_CHECKS.items():
        os.environ.setdefault(f"RAY_health_check_{name}_ms", str(milliseconds))
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    nodes.add_node(num_cpus=2)
    ray.init(address=nodes.address, log_to_driver=False, logging_level="ERROR")
    yield nodes
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def session(cluster):
    """Return a function that connects to the cluster; the lines for the user are in `session(...).said`."""
    from xclass.cluster.options import Options
    from xclass.cluster.session import Session

    opened = []

    def open_session(environment=None, **options):
        said = []
        one = Session(Options(**{"workers": 2, "ray_timeout": 60.0, **options}), said.append, environment)
        opened.append(one)
        one.__enter__()
        one.said = said
        return one

    yield open_session
    for one in opened:
        one.close()
