"""Count the code of the package by folder, and on the path from a line of text to a learned weight.

    python -m scripts.size                      today's figures, beside those of the newest release
    python -m scripts.size --against REVISION   beside those of a revision
    python -m scripts.size --page               write the table into CONTRIBUTING.md

Lines of code are those that are not blank and not only a comment or a docstring. The path is that of an example of the
recall tree: the modules of PATH tell how a line of text changes a weight, and how the weight is stored in a model file.
Modules that they call for something else (other formats, threads, memory, VW's rules for numbers) are left out.
"""

from __future__ import annotations

import ast
import io
import itertools
import re
import subprocess
import tarfile
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from scripts.lib import command_line
from scripts.lib.processes import BenchError

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
MARKS = "<!-- size: python -m scripts.size --page -->\n", "<!-- end of size -->\n"
PATH = {  # part of the path -> its modules
    "text": (
        "text/reader", "text/parser", "text/tokens", "text/line_parts", "text/label_words",
        "text/numbers",
    ),
    "batch": ("data/batch", "data/batch_ops", "data/hashing", "data/class_names"),
    "core": (
        "api/preparation", "api/learner_core", "reductions/core/base", "reductions/core/spec",
        "reductions/core/contract", "reductions/core/label_arrays",
    ),
    "one reduction": tuple(
        f"reductions/recall_tree/{name}" for name in ("reduction", "label_counts", "routing", "scoring")
    ),
    "gd": ("binary/gd", "binary/update_rule", "binary/weight_table", "binary/loss"),
    "model file": ("model/model_file", "model/model_header", "model/stored_arrays"),
}  # fmt: skip
BESIDE = "modules beside the folders"
LONG = 600  # lines of a file that should be two
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
Files = dict[str, str]  # path below xclass/, without .py -> text


def files_now() -> Files:
    """Return the modules of the package in the work tree."""
    package = ROOT / "xclass"
    paths = sorted(package.rglob("*.py"))
    return {path.relative_to(package).with_suffix("").as_posix(): path.read_text(encoding="utf-8") for path in paths}


def files_of(revision: str) -> Files:
    """Return the modules of the package in a revision."""
    packed = subprocess.run(["git", "archive", revision, "xclass"], cwd=ROOT, capture_output=True)
    if packed.returncode:
        reason = packed.stderr.decode(errors="replace").strip()
        raise BenchError(f"--against {revision}: {reason}; give a tag or a commit of this repository that has xclass/")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as tar:
        entries = {entry.name: tar.extractfile(entry) for entry in tar if entry.name.endswith(".py")}
        return {name[len("xclass/") : -len(".py")]: file.read().decode() for name, file in entries.items() if file}


def newest_tag() -> str | None:
    """Return the newest tag that this revision follows, None if there is none."""
    found = subprocess.run(["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True)
    return found.stdout.strip() or None


def code_lines(text: str) -> int:
    """Count the lines of a module that are not blank and not only a comment or a docstring."""
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node) is not None:
            code.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(code)


def folder(module: str) -> str:
    """Return the row of a module: its folder at the top, and below reductions/ the next one."""
    parts = module.split("/")[:-1]
    return "/".join(parts[: 2 if parts[:1] == ["reductions"] else 1]) or BESIDE


def classes(files: Files, below: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name of each class below a folder, and the names of its bases."""
    for module, text in files.items():
        if module.startswith(below):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ClassDef):
                    yield node.name, [last_name(base) for base in node.bases]


def last_name(node: ast.expr) -> str:
    """Return `Reduction` for `Reduction`, `base.Reduction` and `Reduction[T]`."""
    return ast.unparse(node).partition("[")[0].rpartition(".")[2]


def most_bases(files: Files) -> str:
    """Return the most bases that the class of a learner has, and its name."""
    bases = dict(classes(files, "reductions/"))
    learners = {"Reduction"}
    while more := {name for name, own in bases.items() if learners & {*own}} - learners:
        learners |= more
    found = ((len(bases[name]), name) for name in learners if name in bases)
    count, name = max(found, default=(0, "not known"))  # earlier revisions have another name for the base class
    return f"{count} ({name})"


def probes(files: Files) -> int:
    """Count the calls of isinstance that ask for an ability: an abstract class of reductions/core but the learner's."""
    abstract = {name for name, bases in classes(files, "reductions/core/") if {"ABC", "Protocol"} & {*bases}}
    count = 0
    for text in files.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
                asked = node.args[1].elts if isinstance(node.args[1], ast.Tuple) else node.args[1:]
                count += any(last_name(kind) in abstract - {"Reduction"} for kind in asked)
    return count


def header_lines(text: str) -> int:
    """Count the lines of the docstring and the imports of a module."""
    module = ast.parse(text)
    parts: list[ast.stmt] = [node for node in module.body if isinstance(node, (ast.Import, ast.ImportFrom))]
    parts += module.body[: ast.get_docstring(module) is not None]
    return sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in parts)


def shared_names(files: Files) -> int:
    """Count the names that several classes of the package have."""
    return sum(count > 1 for count in Counter(name for name, _ in classes(files, "")).values())


def fields(files: Files, name: str) -> int:
    """Count the fields that a class declares."""
    bodies = [
        node.body for text in files.values() for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef) and node.name == name
    ]  # fmt: skip
    return sum(isinstance(node, ast.AnnAssign) for body in bodies for node in body)


def figures(files: Files) -> dict[str, str]:
    """Return every figure as it is shown, by the name of its row."""
    code = {module: code_lines(text) for module, text in files.items()}
    lines = {module: len(text.splitlines()) for module, text in files.items()}
    all_code: Counter[str] = Counter()
    all_lines: Counter[str] = Counter()
    for module in files:
        all_code[folder(module)] += code[module]
        all_lines[folder(module)] += lines[module]
    names = sorted(all_code, key=lambda name: (name == BESIDE, name))
    rows = {name: (all_code[name], all_lines[name]) for name in names}
    rows["**the package**"] = sum(code.values()), sum(lines.values())
    parts = {f"path: {part}": modules for part, modules in PATH.items()}
    for part, modules in {**parts, "**the path**": tuple(itertools.chain(*PATH.values()))}.items():
        if files.keys() >= {*modules}:  # otherwise an earlier revision had them elsewhere
            rows[part] = sum(code[module] for module in modules), sum(lines[module] for module in modules)
    shown = {name: f"{size:,} | {whole:,}" for name, (size, whole) in rows.items()}
    long = sum(count > LONG for count in lines.values())
    return {
        **shown,
        "files": f"{len(files)} |",
        "docstrings and imports at the head of files": f"| {sum(map(header_lines, files.values())):,}",
        "most bases of a learner": f"{most_bases(files)} |",
        "names of several classes": f"{shared_names(files)} |",
        "fields of `BatchTask`": f"{fields(files, 'BatchTask')} |",
        "annotations `: Any`": f"{sum(text.count(': Any') for text in files.values())} |",
        "`isinstance` asks for an ability": f"{probes(files)} |",
        f"files of more than {LONG} lines": f"{long} |",
    }


def table(against: str | None) -> str:
    """Return the table as Markdown, with the figures of a revision beside today's if one is given."""
    now, before = figures(files_now()), figures(files_of(against)) if against else None
    heads = ["", "code", "lines", *([f"code, {against}", f"lines, {against}"] if against else [])]
    rows = [f"| {' | '.join(heads)} |".replace("|  |", "| |"), "| --- |" + " ---: |" * (len(heads) - 1)]
    for name in now if before is None else {**now, **before}:
        cells = [now.get(name, " |"), *([before.get(name, " |")] if before is not None else [])]
        rows.append(re.sub(" +", " ", f"| {name} | {' | '.join(cells)} |"))
    return "\n".join([*rows, ""])


def main() -> None:
    parser = command_line.new_parser(__doc__)
    parser.add_argument("--against", metavar="REVISION", help="beside its figures (default: the newest tag, if any)")
    parser.add_argument("--page", action="store_true", help="write the table into CONTRIBUTING.md")
    given = parser.parse_args()
    text = table(given.against or newest_tag())
    if not given.page:
        print(text, end="")
        return
    head, _, rest = PAGE.read_text(encoding="utf-8").partition(MARKS[0])
    _, _, tail = rest.partition(MARKS[1])
    PAGE.write_text(f"{head}{MARKS[0]}\n{text}\n{MARKS[1]}{tail}", encoding="utf-8")


if __name__ == "__main__":
    command_line.run(main)
