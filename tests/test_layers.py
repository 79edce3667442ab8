"""Imports point down: which way, folder by folder."""

import ast
import re

from scripts import architecture
from scripts.lib.layers import BESIDE, FLOOR, MODULES, ROOT, floor, folder, imported, imports_of, tree_of


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
        assert known or part == "reductions", f"{module}: give its folder a place in scripts/lib/layers.py"


def test_no_import_goes_in_a_circle():
    whole = {module: set(imported(module)) & MODULES.keys() - {module} for module in MODULES}
    while ends := {module for module, others in whole.items() if not others}:
        whole = {module: others - ends for module, others in whole.items() if module not in ends}
    assert not whole


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


def test_the_picture_of_the_floors_is_current():
    drawn = architecture.PICTURE.read_text(encoding="utf-8")
    assert architecture.picture() == drawn, "run python -m scripts.architecture"


def test_the_page_lists_the_floors_in_their_order():
    """Every folder has a place in the table of the page, from the top."""
    page = (ROOT.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    first_cells = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    listed = [name.replace("/", ".") for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)]
    floors = [FLOOR[part] for name in listed if (part := name.replace("<name>", "*")) in FLOOR]
    assert floors == sorted(floors)
    assert {part.replace("*", "<name>") for part in FLOOR} - {"", "__main__"} <= set(listed)
