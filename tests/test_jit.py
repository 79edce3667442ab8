"""Kernels are compiled when a run begins, all of them, and nothing is when only help is asked for."""

import subprocess
import sys

RUN = """
import sys
from xclass import cli, jit
status = cli.status(["--oaa", "2", "--quiet", "-p", "stdout", "-d", sys.argv[1]])
plain = [f"{f.__module__}.{f.__name__}" for f in jit._marked]
sys.exit(f"status {status}, never compiled: {plain}" if status or plain else 0)
"""


def test_no_kernel_is_left_to_the_interpreter(tmp_path):
    data = tmp_path / "d.vw"
    data.write_text("1 |w a\n2 |w b\n")
    done = subprocess.run([sys.executable, "-c", RUN, str(data)], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr


def test_help_leaves_numba_alone():
    code = "import sys; from xclass import cli; cli.status(['--help']); sys.exit('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 0


def test_first_run_is_announced_and_the_second_is_not(tmp_path):
    data = tmp_path / "d.vw"
    data.write_text("1 |w a\n2 |w b\n")
    words = [sys.executable, "-m", "xclass", "-d", str(data), "--oaa", "2"]
    said = [subprocess.run(words, capture_output=True, text=True, timeout=240).stderr for _ in range(2)]
    assert "finished run" in said[0]
    assert "compiling the kernels" not in said[1]


def test_a_warm_start_makes_few_dispatchers(tmp_path):
    data = tmp_path / "d.vw"
    data.write_text("1 |w a\n2 |w b\n")
    code = (
        "import sys; from xclass import cli, jit; "
        "status = cli.status(['--oaa', '2', '--quiet', '-d', sys.argv[1]]); "
        "print(status, len(jit._waiting))"
    )
    waiting = []
    for _ in range(2):  # the first may have to compile
        done = subprocess.run([sys.executable, "-c", code, str(data)], capture_output=True, text=True, timeout=400)
        status, left = done.stdout.split()
        assert status == "0", done.stderr
        waiting.append(int(left))
    assert waiting[1] > 100
