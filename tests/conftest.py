"""Compile the kernels once per session."""

import gc
import os
import signal

import pytest
from hypothesis import settings

from xclass.kernels import compiling, jit

examples = 100 if os.environ.get("SLOW") else 30
settings.register_profile("xclass", deadline=None, print_blob=True, max_examples=examples)  # first calls compile
settings.load_profile("xclass")

os.fsync = lambda file: None  # no test cuts the power, and to wait for the disk takes time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell begins with it ignored


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the cases that `sampled` leaves out as slow tests; of several parameters, each value occurs in some case."""
    for item in items:
        if mark := item.get_closest_marker("sampled"):
            lists = item.iter_markers("parametrize")
            if sum(_place(item.callspec.params, *arguments.args) for arguments in lists) % mark.args[0]:
                item.add_marker(pytest.mark.slow)


def _place(params, names, cases):
    """Return the place that the parameters of a test have in a list of cases for `parametrize`.

    `callspec.indices` does not tell it where a test has several lists: then it counts combinations.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    for place, case in enumerate(cases):
        if isinstance(case, type(pytest.param())):
            case = case.values
        elif len(names) == 1:
            case = [case]
        if all(params[name] is value for name, value in zip(names, case, strict=True)):
            return place
    raise AssertionError(f"{params} is none of {cases}")


def pytest_sessionfinish():
    """Spare pytest the search for garbage at its end, which takes seconds."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def kernels(request, tmp_path_factory):
    """Every kernel of the package, compiled when first called."""
    from compiling import compile_shared

    from xclass.reductions import registry
    from xclass.run import warm_up

    jit.activate()
    compiling.end()
    if "PYTEST_XDIST_WORKER" in os.environ and jit.folder():
        shared = tmp_path_factory.getbasetemp().parent  # which the processes of this test run have in common
        jit.take_turns(shared / "compiling")
        if any(item.path.name == "test_contract.py" for item in request.session.items):
            compile_shared(shared)
    for record in registry.REDUCTIONS:  # messages and processes of a run should not depend on whether it is the first
        jit.note_compiled(record.name)
    jit.note_compiled(warm_up.READING)
    gc.freeze()  # otherwise each full collection of garbage looks through numba
    gc.set_threshold(100_000, 50, 50)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
