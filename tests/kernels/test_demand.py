"""A kernel marked `on_demand` is compiled when another one calls it for the first time, and is stored then."""

import importlib
import os
import pkgutil
import subprocess
import sys

import pytest
from compiled_names import NOTE_COMPILED

import xclass
from xclass.kernels import demand

SOURCE = """
import math
import sys
from xclass.kernels import jit

@jit.on_demand
def halves(x: float, n: int) -> tuple[float, int, bool]:
    if n < 0:
        raise ValueError("n is negative")
    return x / 2, n // 2, n % 2 == 1

@jit.on_demand
def differs(x: float, n: int) -> int:
    return x / n

@jit.on_demand
def interrupted(x: float, n: int) -> float:
    return x / n

@jit.bare
def between(x, n):
    return this.halves(x, n)

@jit.bare
def between_arrays(x, counts):
    return this.differs(x[0], counts[0]) if x[0] > 1.0 else this.interrupted(x[0], counts[0])

@jit.jit
def outer(x, n):
    if n == 0:
        return 0.0
    half, count, odd = this.between(x, n)
    return half + count + (0.25 if odd else 0.0)

@jit.jit
def outer_arrays(x, counts):
    return 0.0 if x[0] == 0.0 else this.between_arrays(x, counts)

this = sys.modules[__name__]
"""
CALLS = f"""
import sys
{NOTE_COMPILED}
import calls_on_demand as tried
from xclass.kernels import jit
jit.activate()
compiled.clear()
results = [tried.outer(1.0, 0)]
early = [name for name in compiled if "halves" in name]
results += [tried.outer(3.0, 5), tried.outer(4.0, 2), *tried.halves(1.0, 3)]
try:
    tried.outer(1.0, -1)
except ValueError as error:
    results.append(str(error))
print(results, early, sorted(set(compiled)))
"""
FAILURES = """
import signal
import threading
import numpy as np
import calls_on_demand as tried
from xclass.kernels import jit
jit.activate()
counts = np.array([4])
results = [tried.outer_arrays(np.zeros(1), counts)]
find_version = jit._Versions._compiled_or_loaded

def find_and_interrupt(*args):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # while the main thread waits for this one
    return find_version(*args)

for x, find in ((2.0, find_version), (2.0, find_version), (1.0, find_and_interrupt), (1.0, find_version)):
    jit._Versions._compiled_or_loaded = find
    try:
        results.append(tried.outer_arrays(np.full(1, x), counts))
    except BaseException as error:
        results.append(type(error).__name__)
print(results)
"""


def run(code, folder):
    """Run code that imports SOURCE, with kernels that are stored in a folder."""
    (folder / "calls_on_demand.py").write_text(SOURCE)
    (folder / "cache").mkdir(mode=0o700, exist_ok=True)
    place = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(folder), *sys.path]),
    }
    result = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result


def test_a_kernel_is_compiled_when_another_one_calls_it_and_loaded_by_the_next_process(tmp_path):
    outputs = [run(CALLS, tmp_path).stdout for _ in range(2)]
    results = "[0.0, 3.75, 3.0, 0.5, 1, True, 'n is negative'] []"
    assert outputs[0].startswith(results) and "halves" in outputs[0].removeprefix(results)
    assert outputs[1] == f"{results} []\n"


def test_a_failure_and_an_interruption_reach_the_caller_of_the_kernel(tmp_path):
    result = run(FAILURES, tmp_path)
    assert result.stdout == "[0.0, 'TypeError', 'TypeError', 'KeyboardInterrupt', 0.25]\n"


def on_demand():
    """Yield all such kernels of the package."""
    for module in pkgutil.walk_packages(xclass.__path__, "xclass."):
        if "__main__" not in module.name:
            for value in vars(importlib.import_module(module.name)).values():
                function = getattr(value, "py_func", value)
                if getattr(function, "kernel_kind", "") == "on_demand" and function.__module__ == module.name:
                    yield function


def test_the_annotation_of_a_result_has_a_type_in_numba():
    numba = pytest.importorskip("numba")
    functions = list(on_demand())
    assert len(functions) > 5
    assert all(isinstance(demand.result_of(function), numba.types.Type) for function in functions)
