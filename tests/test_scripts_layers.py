"""Imports in scripts/ point down: commands to what their folder shares, and that to scripts/lib."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

from running import ROOT

SCRIPTS = ROOT / "scripts"
ALLOWED = {"": {"fuzzing", "lib"}, "lib": set()}  # folder -> others that it may import from; else lib alone


def modules() -> dict[str, Path]:
    """Return every module of the package by its name, `bench.table`."""
    paths = [path for path in SCRIPTS.rglob("*.py") if path.name != "__init__.py"]
    return {".".join(path.relative_to(SCRIPTS).with_suffix("").parts): path for path in paths}


MODULES = modules()


@functools.cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def is_command(module: str) -> bool:
    """Return whether a module can be run."""
    return any("__name__ == '__main__'" in ast.unparse(node) for node in tree_of(module).body)


def folder(module: str) -> str:
    """The folder of a module; empty for those beside the folders."""
    return module.rpartition(".")[0]


def imported(module: str) -> Iterator[str]:
    """Yield the modules of scripts/ that a module imports, anywhere in its file."""
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2] for alias in node.names if alias.name.split(".")[0] == "scripts")
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{module}: imports are absolute"
            base = node.module.split(".")
            if base[0] == "scripts":
                inside = ".".join(base[1:])
                for alias in node.names:
                    full = f"{inside}.{alias.name}".lstrip(".")
                    yield full if full in MODULES else inside


def test_imports_point_down():
    for module, other in [(name, other) for name in sorted(MODULES) for other in imported(name)]:
        own_folder = folder(module)
        assert other in MODULES, f"{module} imports {other}"
        assert folder(other) in {own_folder} | ALLOWED.get(own_folder, {"lib"}), f"{module} imports {other}"
        assert not is_command(other), f"{module} imports the command {other}"


def test_no_import_goes_in_a_circle():
    whole = {module: set(imported(module)) - {module} for module in MODULES}
    while ends := {module for module, others in whole.items() if not others}:
        whole = {module: others - ends for module, others in whole.items() if module not in ends}
    assert not whole


def test_every_module_is_used():
    used = {other for module in MODULES for other in imported(module)}
    assert set(MODULES) == used | set(filter(is_command, MODULES))


def test_nothing_changes_the_path_of_imports():
    for place in ("scripts", "demo"):
        for path in (ROOT / place).rglob("*.py"):
            assert "sys.path" not in path.read_text(encoding="utf-8"), path
