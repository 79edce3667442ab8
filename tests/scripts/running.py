"""Commands of scripts/ for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str, *words) -> subprocess.CompletedProcess:
    """Run a command of scripts/, such as `bench.compare`, in a process of its own and in this folder."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", f"scripts.{name}", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=900, env=environment, stdin=subprocess.DEVNULL
    )
