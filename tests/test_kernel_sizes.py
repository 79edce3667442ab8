"""Rules for kernels: how many parameters and lines each has, constants that are declared once, and flags of its own."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

import xclass
from xclass.kernels import kernel_cache
from xclass.reductions import registry  # noqa: F401  # imports all reductions

ROOT = Path(xclass.__file__).parent
MODULES = {str(path.relative_to(ROOT)): path for path in ROOT.rglob("*.py")}
MOST_PARAMETERS, MOST_LINES = 12, 120
KINDS = ("jit", "bare", "inlined", "allocating")
# a comment right above the decorator of a kernel that is larger: it gives the measured reason
EXCEPTION = "# larger than other kernels: "


def too_large(source: str) -> Iterator[str]:
    """Yield the kernels of a module that are too large and do not say why."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef):
            continue
        if not any(getattr(decorator, "id", "") in KINDS for decorator in node.decorator_list):
            continue
        arguments = node.args
        count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
        length = node.end_lineno - node.body[0].lineno + 2  # the types of parameters make no kernel longer
        if count <= MOST_PARAMETERS and length <= MOST_LINES:
            continue
        above = node.decorator_list[0].lineno - 2
        while above >= 0 and lines[above].startswith("#") and not lines[above].startswith(EXCEPTION):
            above -= 1
        if above < 0 or not lines[above].startswith(EXCEPTION):
            yield f"{node.name}: {count} parameters, {length} lines"


def test_no_kernel_is_too_large():
    found = {module: list(too_large(path.read_text(encoding="utf-8"))) for module, path in MODULES.items()}
    assert {module: kernels for module, kernels in found.items() if kernels} == {}


WIDE = f"def wide({', '.join(f'a{i}' for i in range(MOST_PARAMETERS + 1))}):\n    pass\n"
LONG = "def long(a):\n" + "    a += 1\n" * MOST_LINES


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("kernel", [WIDE, LONG])
def test_large_kernels_are_found(kind, kernel):
    source = f"x = 1\n\n\n@{kind}\n{kernel}"
    assert len(list(too_large(source))) == 1
    assert not list(too_large(source.replace(f"@{kind}\n", "")))
    assert len(list(too_large(source.replace("@", "# a comment\n@")))) == 1
    assert not list(too_large(source.replace("@", f"{EXCEPTION}split in two it took 1.2 of the\n# time\n@")))


def constants(source: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of the typed numbers that a module declares."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign):
            both = isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple)
            pairs = zip(node.targets[0].elts, node.value.elts, strict=True) if both else [(node.targets[0], node.value)]
            for name, value in pairs:
                text = ast.unparse(value)
                if text.startswith(("np.float32(", "np.uint64(", "float(np.finfo")):
                    yield ast.unparse(name), text


def test_constants_of_kernels_are_declared_once():
    """Typed numbers that several modules with kernels need live in `kernels.constants`."""
    places = defaultdict(list)
    for module, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        if path.name == "constants.py" or any(f"\n@{kind}\n" in source for kind in KINDS):
            for constant in constants(source):
                places[constant].append(module)
    assert ("ZERO", "np.float32(0)") in places
    assert {constant: where for constant, where in places.items() if len(where) > 1} == {}


def is_plain(function) -> bool:
    """Return whether a function is a kernel that is marked with `jit` alone."""
    found = getattr(sys.modules[function.__module__], function.__name__, None)
    return hasattr(found, "py_func") and not hasattr(function, "kernel_kind")


def test_kernels_do_not_inherit_flags():
    """With those of its first caller, a kernel took two to five times as long in some orders of compiling."""
    values = [
        value
        for name in sorted(sys.modules)
        if name.startswith("xclass.")
        for value in vars(sys.modules[name]).values()
    ]
    kernels = {kernel.py_func for kernel in values if hasattr(kernel, "py_func")}
    assert len(kernels) > 300
    heirs = {
        f"{called.__module__}.{called.__name__}"
        for kernel in kernels
        if getattr(kernel, "kernel_kind", "allocating") != "allocating"
        for called in kernel_cache._hash_and_callees(kernel)[1]
        if is_plain(called)
    }
    assert heirs == set()
