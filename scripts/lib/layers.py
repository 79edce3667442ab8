"""Give every folder of the package its floor, and read from the code what it imports."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent / "xclass"
FLOORS = (  # from the top; a folder may import from those on lower floors, and from itself
    ("__main__",),
    ("vw",),
    ("ray", "serve"),
    ("cli",),
    ("cluster", "comparison", "report", "serving", "tuning"),
    ("run", "sklearn"),
    ("estimators", "merging", "shrinking"),
    ("river", "checks"),
    ("api",),
    ("abilities",),
    ("reductions.registry",),
    ("reductions.presets",),
    ("reductions.plt",),
    ("reductions.multilabel",),
    ("reductions.multiclass", "reductions.mach", "reductions.multilabel_oaa"),
    ("reductions.*",),  # any folder with a reduction
    ("reductions.core",),
    ("explain",),
    ("formats",),
    ("binary", "text", "cache"),
    ("reductions.clusters",),
    ("data", "model"),
    ("kernels", "options"),
    ("system", "client"),
    ("errors", "array_types", ""),
    ("system.printable",),
)
BESIDE = {("cache", "text")}  # on one floor: the first may import from the second
ANY_REDUCTION = "reductions.*"
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
    return FLOOR[part] if part in FLOOR else FLOOR[ANY_REDUCTION]


@functools.cache
def tree_of(module: str) -> ast.Module:
    """The syntax of a module."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements below a node; to look into expressions, too, takes ten times as long."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from _statements(inner)


@functools.cache
def imports_of(module: str) -> list[tuple[str, str]]:
    """What a module imports from ours, anywhere in its file: modules, and names in them or nothing."""
    package = ["xclass", *MODULES[module].relative_to(ROOT).parts[:-1]]
    found = []
    for node in _statements(tree_of(module)):
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
