"""Build the source distribution and the wheel, install the wheel into new environments, and learn and predict there.

    python -m scripts.check_wheel                         with every Python from 3.10 on that is found
    python -m scripts.check_wheel python3.10 python3.13   with these

The package `build` has to be installed, and pip needs access to a package index. The data are the first examples of the
stream of demo/quickstart.sh.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from scripts.lib.command_line import new_parser
from scripts.lib.processes import ROOT

LARGEST_WHEEL = 1 << 20  # bytes
MINORS = range(10, 20)  # minor versions of Python 3 to search for
LIBRARY = """
import xclass
with xclass.Learner("recall_tree", classes=40000, bits=18) as model:
    for batch in xclass.read_vw("train.vw"):
        model.learn_many(batch)
    model.save("library.bin")
labels, p = xclass.load("library.bin").predict_many(open("test.vw").read(), 5)
assert labels.shape == p.shape and labels.shape[1] == 5
"""


def main(argv: Sequence[str] | None = None) -> None:
    parser = new_parser(__doc__)
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    parser.add_argument("--limit", type=int, default=20_000, metavar="N", help="examples of the stream")
    given = parser.parse_args(argv)
    pythons = given.pythons or installed_pythons()
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder) / "dist")
        for python in pythons:
            check(python, wheel, Path(folder) / "try", given.limit)


def installed_pythons() -> list[str]:
    """Return the path of one Python of each version from 3.10 on, from pyenv or else from the PATH."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pythons = []
    for minor in MINORS:
        own = sorted(pyenv.glob(f"3.{minor}.*/bin/python"))
        on_path = shutil.which(f"python3.{minor}")
        if own or on_path:
            pythons.append(str(own[-1]) if own else str(on_path))
    return pythons or [sys.executable]


def build(folder: Path) -> Path:
    """Build the source distribution and the wheel, check the size of the wheel, and return its path."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    (sdist,) = folder.glob("*.tar.gz")
    size = wheel.stat().st_size
    print(f"{wheel.name} {size:,} bytes, {sdist.name} {sdist.stat().st_size:,} bytes")
    if size >= LARGEST_WHEEL:
        sys.exit(f"{wheel.name} has {size:,} bytes; allowed are fewer than {LARGEST_WHEEL:,}")
    return wheel


def check(python: str, wheel: Path, folder: Path, limit: int) -> None:
    """Install the wheel into a new environment, and learn and predict there by the command and by the library."""
    shutil.rmtree(folder, ignore_errors=True)
    run(python, "-m", "venv", folder / "environment")
    bin = folder / "environment" / ("Scripts" if os.name == "nt" else "bin")
    run(bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    data = folder / "data"
    run(bin / "python", ROOT / "demo" / "make_stream.py", data, "--limit", limit)
    classes = len((data / "labels.txt").read_text(encoding="utf-8").splitlines())
    for name, more in (("recall_tree", ()), ("cpt", ("--rerank",))):
        options = (f"--{name}", classes, *more, "-b", 18, "-q", "ab")
        run(bin / "xclass", "-d", "train.vw", *options, "-f", f"{name}.model", cwd=data)
        summary = run(bin / "xclass", "-d", "test.vw", "-t", "-i", f"{name}.model", "-p", f"{name}.txt", cwd=data)
        loss = float(re.findall(r"^average loss = (\S+)", summary, re.M)[0])
        print(f"{python} --{name}: {loss:.4f} of the test examples are wrong")
        if not 0 < loss < 0.95:
            sys.exit(f"{python}: --{name} has learned nothing: its error is {loss}")
    run(bin / "xclass", "-t", "-i", "cpt.model", "--top_k", 5, "-p", "top.txt", "-d", "test.vw", cwd=data)
    run(bin / "python", "-c", LIBRARY, cwd=data)
    if os.name != "nt" and not (folder / "environment" / "share" / "man" / "man1" / "xclass.1").exists():
        sys.exit(f"{python}: the wheel did not install the man page")
    print(f"{python}: all is well")


def run(*words: object, cwd: Path | None = None) -> str:
    """Run a command and return what it wrote to standard error; exit if it fails."""
    command = [str(word) for word in words]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(command)}\n{result.stdout}{result.stderr}")
    return result.stderr


if __name__ == "__main__":
    main()
