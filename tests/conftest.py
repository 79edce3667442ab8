"""Compile the kernels once per session."""

import os

import pytest
from hypothesis import settings

from xclass.kernels import jit

settings.register_profile("xclass", deadline=None, print_blob=True)  # the first call of a kernel compiles it
settings.load_profile("xclass")


@pytest.fixture(scope="session", autouse=True)
def kernels(request, tmp_path_factory):
    """Every kernel of the package, compiled when first called."""
    from compiling import compile_shared

    from xclass.reductions import registry
    from xclass.run import warm_up

    jit.activate()
    if "PYTEST_XDIST_WORKER" in os.environ and any("contract" in item.path.parts for item in request.session.items):
        compile_shared(tmp_path_factory.getbasetemp().parent)  # which the processes of this test run have in common
    for record in registry.REDUCTIONS:  # messages and processes of a run should not depend on whether it is the first
        jit.note_compiled(record.name)
    jit.note_compiled(warm_up.READING)
