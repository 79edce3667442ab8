"""Imports point down: which way, folder by folder."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import xclass

ROOT = Path(xclass.__file__).parent
FLOORS = (  # from the top; a folder may import from those on lower floors, and from itself
    ("__main__",),
    ("vw",),
    ("workspace",),
    ("ray",),
    ("cli",),
    ("cluster", "comparison", "report", "tuning"),
    ("run", "sklearn"),
    ("estimators", "merging", "shrinking"),
    ("river",),
    ("api",),
    ("explain",),
    ("reductions.registry", "reductions.presets"),
    ("reductions.*",),  # any folder with a reduction
    ("reductions.core",),
    ("formats",),
    ("binary", "text", "cache"),
    ("reductions.clusters",),
    ("data", "model"),
    ("kernels", "options"),
    ("system",),
    ("errors", "array_types", ""),
    ("system.printable",),
)
BESIDE = {("cache", "text")}  # on one floor: the first may import from the second
MOST_FILES = 15  # of a folder
FLOOR = {folder: number for number, row in enumerate(FLOORS) for folder in row}


def modules() -> dict[str, Path]:
    """Return every module of the package by its name, `run.report.console`; a folder's own file has the folder's."""
    paths = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return paths


MODULES = modules()


def folder(module: str) -> str:
    """The part of the package that a module belongs to, as FLOORS has it: the longest name that is there."""
    parts = module.split(".")
    for end in range(len(parts), 0, -1):
        if ".".join(parts[:end]) in FLOOR:
            return ".".join(parts[:end])
    if parts[0] == "reductions" and len(parts) > 1:
        return ".".join(parts[:2])
    return module


def floor(part: str) -> int:
    """The number of its floor, 0 the highest."""
    return FLOOR[part] if part in FLOOR else FLOOR["reductions.*"]


def imported(module: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports, anywhere in its file."""
    path = MODULES[module]
    package = ["xclass", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "xclass":
                    yield alias.name.partition(".")[2]
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            if base[:1] != ["xclass"]:
                continue
            for alias in node.names:
                inside = ".".join(base[1:])
                full = f"{inside}.{alias.name}".lstrip(".")
                yield full if full in MODULES else inside


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"", "reductions"}))
def test_imports_point_down(module):
    own_folder = folder(module)
    for other in imported(module):
        other_folder = folder(other)
        is_below = floor(other_folder) > floor(own_folder)
        assert own_folder == other_folder or is_below or (own_folder, other_folder) in BESIDE, (
            f"{module} imports {other}"
        )


def test_every_folder_has_a_floor():
    for module in MODULES:
        part = folder(module)
        known = part in FLOOR or (part.startswith("reductions.") and (ROOT / part.replace(".", "/")).is_dir())
        assert known or part == "reductions", f"{module}: give its folder a place in FLOORS"


def test_no_import_goes_in_a_circle():
    whole = {module: set(imported(module)) & MODULES.keys() - {module} for module in MODULES}
    while ends := {module for module, others in whole.items() if not others}:
        whole = {module: others - ends for module, others in whole.items() if module not in ends}
    assert not whole


def test_no_folder_has_too_many_files():
    for part in {path.parent for path in MODULES.values()}:
        files = [path for path in part.glob("*.py") if path.name != "__init__.py"]
        assert len(files) <= MOST_FILES, part


def test_packages_import_nothing():
    """A kernel takes its compiled form by an assignment in its own module, which a name elsewhere would not follow."""
    for module, path in MODULES.items():
        if path.name == "__init__.py" and module not in ("", "cli"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            assert [type(node) for node in tree.body] == [ast.Expr], module


def test_no_kernel_is_imported_by_its_name():
    kernels = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                getattr(decorator, "id", "") in ("jit", "bare", "inlined", "allocating")
                for decorator in node.decorator_list
            ):
                kernels.setdefault(module, set()).add(node.name)
    assert len(kernels) > 20
    for module, path in MODULES.items():
        package = ["xclass", *path.relative_to(ROOT).parts[:-1]]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else []
                base += node.module.split(".") if node.module else []
                names = {alias.name for alias in node.names}
                assert not names & kernels.get(".".join(base[1:]), set()), module
