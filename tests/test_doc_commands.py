"""Every command and every Python block of the pages runs, and prints what the page says that it prints.

Each page runs in a folder of its own, from its first block to its last, on small data: train.vw, test.vw and more.vw,
the first two as .gz, too, and train.txt with lines of fastText. A file that a page shows by `$ cat FILE` gets the lines
that the page shows. `K` stands for the number of classes.

A block is one of commands if it is marked `sh` or `console`, or if it is indented and begins with a command. Lines
after a `$` command are its output, and a command whose output begins with `xclass: ` has to fail. A block marked `text`
directly after a Python block is what that prints. A line `...` in an output stands for any lines, and numbers with a
decimal point are compared to two digits.

A block that cannot run here has a comment directly above it that says why: `<!-- not tested: it takes an hour -->`.
`python -m scripts...` is left to tests/scripts/test_pages.py.
"""

import ast
import contextlib
import gzip
import io
import math
import os
import random
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import tracked
from command import xclass

ROOT = Path(__file__).parent.parent
PAGES = tracked.files("README.md", "docs/*.md")
CLASSES = 10

MARK = re.compile(r"<!-- not tested: (.*) -->")
FENCE = re.compile(r"(`{3,}|~{3,})\s*(\S*)")
LIST_ITEM = re.compile(r" {0,3}(?:[*+-]|\d+[.)]) | {1,3}\S")
SCRIPTS = re.compile(r"(\S*/)?python3? -m scripts\.")  # tests/scripts/test_pages.py checks them
PROGRAMS = (
    r"awk|cat|cd|cmp|cut|diff|dot|eval|for|git|grep|gzip|head|ls|man|pip|printf|pytest|python3?|sed|sh|sort|tail|tr|"
    r"vowpalwabbit|vw|wc|xclass|zcat"
)
HARMLESS = "awk cat cmp cut diff grep head printf sed sort tail tr wc zcat"  # what a page may run beside xclass
COMMAND = re.compile(rf"(?:\w+=\S* )*(?:\S*/)?(?:{PROGRAMS})(?: |$)")
NUMBER = re.compile(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?")


class Block(NamedTuple):
    """A block of code on a page."""

    line: int
    kind: str  # "sh", "python", "text", or "" if it is neither commands nor Python
    lines: list[str]
    reason: str | None  # why it is not tested
    follows: bool  # whether only blank lines are between the block and the one before


class Command(NamedTuple):
    """A line of shell and what the page says that it prints; None if the page does not say."""

    words: str
    output: list[str] | None


# -- parsing -----------------------------------------------------------------------------------------------------


def blocks(text: str) -> Iterator[Block]:
    """Yield the code blocks of a page in order."""
    lines = text.splitlines()
    in_list, reason, follows, i = False, None, False, 0
    while i < len(lines):
        line, start = lines[i], i
        fence = FENCE.match(line)
        if not line.strip():
            i += 1
            continue
        if fence:
            i += 1
            while not lines[i].startswith(fence[1]):
                i += 1
            body = lines[start + 1 : i]
            i += 1
            yield Block(start + 1, kind_of(fence[2], body), body, reason, follows)
        elif line.startswith("    ") and not in_list and (start == 0 or not lines[start - 1].strip()):
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            body = [row[4:] for row in lines[start:i]]
            while not body[-1]:
                body.pop()
            yield Block(start + 1, kind_of("", body), body, reason, follows)
        else:
            mark = MARK.fullmatch(line)
            reason, follows = mark[1] if mark else None, False
            in_list = bool(LIST_ITEM.match(line)) or (in_list and line.startswith(" "))
            i += 1
            continue
        reason, follows = None, True


def kind_of(name: str, body: list[str]) -> str:
    """Return the kind of a block: by its name, or by what is in it if it is indented."""
    if name in ("sh", "console", "bash"):
        return "sh"
    if name in ("python", "text"):
        return name
    if name or not body:
        return ""
    if COMMAND.match(body[0].removeprefix("$ ")):
        return "sh"
    with contextlib.suppress(SyntaxError):
        if any(
            not isinstance(statement, ast.Expr) or isinstance(statement.value, ast.Call)
            for statement in ast.parse("\n".join(body)).body
        ):
            return "python"
    return ""


def commands(body: list[str]) -> Iterator[Command]:
    """Yield the commands of a block; continued lines are joined."""
    prompts = any(line.startswith("$ ") for line in body)
    i = 0
    while i < len(body):
        words = body[i]
        i += 1
        while words.endswith("\\"):
            words = words[:-1] + body[i].strip()
            i += 1
        output = None
        if prompts:
            assert words.startswith("$ "), f"output without a command: {words}"
            start = i
            while i < len(body) and not body[i].startswith("$ "):
                i += 1
            output = body[start:i]
            while output and not output[-1]:
                output.pop()
            words = words[2:]
        if words and not words.startswith("#"):
            yield Command(words, output or None)


def pipeline(words: str) -> list[str]:
    """Split a line of shell at its bars, those in quotes not, and drop its comment."""
    parts, quote = [""], ""
    for i, letter in enumerate(words):
        if letter == "#" and not quote and words[i - 1 : i] == " ":
            break
        if letter == "|" and not quote:
            parts.append("")
            continue
        if letter in "'\"":
            quote = "" if letter == quote else quote or letter
        parts[-1] += letter
    return [part.strip() for part in parts]


def agree(expected: list[str], printed: list[str]) -> bool:
    """Tell whether the lines that a page shows are those that were printed."""
    at, jump = 0, False
    for line in expected:
        if line.strip() == "...":
            jump = True
            continue
        while jump and at < len(printed) and not same(line, printed[at]):
            at += 1
        if at == len(printed) or not same(line, printed[at]):
            return False
        at, jump = at + 1, False
    return jump or at == len(printed)


def same(expected: str, printed: str) -> bool:
    """Tell whether two lines are equal but for spaces and the last digits of numbers."""
    if re.split(r"\s+", NUMBER.sub("0", expected).strip()) != re.split(r"\s+", NUMBER.sub("0", printed).strip()):
        return False
    for a, b in zip(NUMBER.findall(expected), NUMBER.findall(printed), strict=True):
        if a != b and ("." not in a + b or not math.isclose(float(a), float(b), rel_tol=0.02, abs_tol=0.002)):
            return False
    return True


# -- running -----------------------------------------------------------------------------------------------------


class Page:
    """A folder with data, in which the blocks of a page run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names = {"__name__": "__main__"}  # of Python blocks, which see those of the blocks before
        draw = random.Random(7)
        words = [f"w{i}" for i in range(4 * CLASSES)]
        for name, n in (("train.vw", 300), ("test.vw", 50), ("more.vw", 50)):
            with open(folder / name, "w") as file:
                for label in (draw.randrange(CLASSES) for _ in range(n)):
                    own = draw.sample(words[4 * label : 4 * label + 4], 2)
                    if draw.random() < 0.1:
                        label = draw.randrange(CLASSES)  # as in real data, some labels are wrong
                    file.write(f"{label + 1} |a {' '.join(own)} |b {draw.choice(words)} size:{label % 3}.5\n")
        with open(folder / "train.txt", "w") as file:
            for label in (draw.randrange(CLASSES) for _ in range(300)):
                file.write(f"__label__{label} the {words[4 * label]}: {draw.choice(words)} | it\n")
        (folder / "test.txt").write_text((folder / "train.txt").read_text())
        (folder / "labels.txt").write_text("".join(f"{label + 1}\tclass of w{label}\n" for label in range(CLASSES)))
        for name in ("train.vw", "test.vw"):
            (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        self.given = {path.name for path in folder.iterdir()}  # those that the page may show otherwise

    def run(self, command: Command) -> None:
        """Run a line of shell; it has to end well, and to print what the page says."""
        if SCRIPTS.match(command.words):
            return
        cat = re.fullmatch(r"cat (\S+)", command.words)
        path = self.folder / cat[1] if cat else None
        if path is not None and command.output is not None and (path.name in self.given or not path.exists()):
            path.write_text("\n".join(command.output) + "\n")
            self.given.discard(path.name)
            return
        before = {entry.name: entry.stat().st_mtime_ns for entry in self.folder.iterdir()}
        fails = command.output is not None and command.output[0].startswith("xclass: ")
        out, err = self._piped(re.sub(r"(?<= )K(?= |$)", str(CLASSES), command.words), fails)
        self.given -= {
            entry.name for entry in self.folder.iterdir() if entry.stat().st_mtime_ns != before.get(entry.name)
        }
        if command.output is not None:
            fits = agree(command.output, out.splitlines()) or agree(command.output, (err + out).splitlines())
            assert fits, f"$ {command.words}\nprinted\n{err + out}"

    def _piped(self, words: str, fails: bool) -> tuple[str, str]:
        """Run a pipeline: `xclass` in this process, all else by the shell. Return standard output and error."""
        out, err_text = "", ""
        for part in pipeline(words):
            program = part.split()[0]
            if program != "xclass":
                assert program in HARMLESS.split(), f"{words}\nhas to be marked: <!-- not tested: REASON -->"
                result = subprocess.run(
                    ["sh", "-c", part], input=out, cwd=self.folder, capture_output=True, text=True, timeout=60
                )
                assert result.returncode == 0, f"{part}\n{result.stderr}"
                out = result.stdout
                continue
            part, _, file = part.partition(" > ")
            part, _, given = part.partition(" < ")
            text = (self.folder / given.strip()).read_text() if given else out
            status, out, err = xclass(*shlex.split(part)[1:], stdin=text, cwd=self.folder)
            err_text += err
            assert (status != 0) == fails, f"{part}\n{err}"
            if file:
                (self.folder / file.strip()).write_text(out)
                out = ""
        return out, err_text

    def execute(self, block: Block, output: list[str] | None) -> None:
        """Run a Python block; it has to print what the page says, if the page says anything."""
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + "\n".join(block.lines), self.folder.name, "exec")
        with _folder(self.folder), contextlib.redirect_stdout(printed):
            exec(code, self.names)
        if output is not None:
            assert agree(output, printed.getvalue().splitlines()), f"line {block.line} printed\n{printed.getvalue()}"


@contextlib.contextmanager
def _folder(path: Path) -> Iterator[None]:
    """Change to a folder and back; Python 3.10 does not have `contextlib.chdir`."""
    before = os.getcwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def only_scripts(block: Block) -> bool:
    """Tell whether a block has no commands but those that tests/scripts/test_pages.py checks."""
    return block.kind == "sh" and all(SCRIPTS.match(command.words) for command in commands(block.lines))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_blocks_of_page_run(path, tmp_path):
    page = Page(tmp_path)
    found_blocks = list(blocks(path.read_text(encoding="utf-8")))
    for i, block in enumerate(found_blocks):
        if block.reason is not None or only_scripts(block):
            continue
        if block.kind == "sh":
            for command in commands(block.lines):
                page.run(command)
        elif block.kind == "python":
            after = found_blocks[i + 1] if i + 1 < len(found_blocks) else None
            page.execute(block, after.lines if after and after.follows and after.kind == "text" else None)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_marks_give_a_reason_and_stand_above_a_block(path):
    text = path.read_text(encoding="utf-8")
    marked = [block for block in blocks(text) if block.reason is not None]
    assert text.count("<!-- not tested") == len(marked), "a mark that is malformed or not directly above a block"
    for block in marked:
        assert block.kind in ("sh", "python"), f"line {block.line}: nothing would run here without the mark"
        assert len(block.reason.split()) >= 3, f"line {block.line}: {block.reason!r} is no reason"


# -- the parser --------------------------------------------------------------------------------------------------

EXAMPLE = """# Title

    xclass -d train.vw \\
        -f model.bin   # save

* an item

      of a list

<!-- not tested: takes an hour -->

```sh
xclass -d huge.vw
```

Text.

    17 | height:1.5

    import xclass
    print(1)

```text
1
```

```console
$ cat a | b
x

$ c
```
"""


def test_parser_finds_blocks():
    found_blocks = list(blocks(EXAMPLE))
    assert [block.kind for block in found_blocks] == ["sh", "sh", "", "text", "sh"]
    assert [block.reason for block in found_blocks] == [None, "takes an hour", None, None, None]
    assert [command.words for command in commands(found_blocks[0].lines)] == [
        "xclass -d train.vw -f model.bin   # save"
    ]
    assert list(commands(found_blocks[-1].lines)) == [("cat a | b", ["x"]), ("c", None)]
    assert kind_of("", ["import xclass", "print(1)"]) == "python"


def test_pipeline_is_split_outside_quotes():
    assert pipeline("tr '|' ' ' < a | xclass -p stdout  # why | not") == ["tr '|' ' ' < a", "xclass -p stdout"]


def test_output_agrees_but_for_last_digits():
    assert agree(["a 1:0.25", "...", "b"], ["a 1:0.251", "x", "b"])
    assert not agree(["a 1:0.25"], ["a 2:0.25"])
    assert not agree(["a", "b"], ["a", "x", "b"])
    assert agree(["a", "..."], ["a", "x"])
    assert not agree(["a"], ["a", "x"])
