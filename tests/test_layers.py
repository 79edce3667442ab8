"""Imports point down: which way, folder by folder."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

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
    ("abilities",),
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


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


@functools.cache
def imports_of(module: str) -> list[tuple[str, str]]:
    """What a module imports from ours, anywhere in its file: modules, and names in them or nothing."""
    package = ["xclass", *MODULES[module].relative_to(ROOT).parts[:-1]]
    found = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "xclass"]
            found += [(name.partition(".")[2], "") for name in names]
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            if base[:1] == ["xclass"]:
                found += [(".".join(base[1:]), alias.name) for alias in node.names]
    return found


def imported(module: str) -> Iterator[str]:
    """Yield the modules of ours that a module imports, anywhere in its file."""
    for inside, name in imports_of(module):
        full = f"{inside}.{name}".strip(".")
        yield full if full in MODULES else inside


def test_imports_point_down():
    wrong = []
    for module in sorted(set(MODULES) - {"", "reductions"}):
        own_folder = folder(module)
        for other in imported(module):
            other_folder = folder(other)
            is_below = floor(other_folder) > floor(own_folder)
            if own_folder != other_folder and not is_below and (own_folder, other_folder) not in BESIDE:
                wrong.append(f"{module} imports {other}")
    assert not wrong


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
            assert [type(node) for node in tree_of(module).body] == [ast.Expr], module


def test_no_kernel_is_imported_by_its_name():
    kernels = {}
    for module in MODULES:
        for node in tree_of(module).body:
            if isinstance(node, ast.FunctionDef) and any(
                getattr(decorator, "id", "") in ("jit", "bare", "inlined", "allocating")
                for decorator in node.decorator_list
            ):
                kernels.setdefault(module, set()).add(node.name)
    assert len(kernels) > 20
    for module in MODULES:
        assert not [(other, name) for other, name in imports_of(module) if name in kernels.get(other, ())], module
