"""The project's own files, which are those that git tracks; a clone may contain others, such as results of runs."""

import functools
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@functools.cache
def files(*patterns: str) -> list[Path]:
    """The files that match one of the patterns, sorted; where there is no repository, those in the folder."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *(f":(glob){pattern}" for pattern in patterns)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        return sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    return sorted(path for name in listed.stdout.split("\0") if name and (path := ROOT / name).exists())
