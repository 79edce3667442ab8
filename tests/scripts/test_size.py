"""The script that counts the code of the package."""

from running import ROOT, tool

from scripts import size

TEXT = '''"""A module.

With a docstring.
"""

import abc  # a comment beside code


class Explains(abc.ABC):
    """Has a docstring."""


class Tree(Reduction, Explains):

    def run(self):
        # a comment
        text = """two
lines"""
        return isinstance(text, (str, base.Explains))
'''


def test_code_is_neither_docstring_nor_comment_nor_blank():
    assert size.code_lines(TEXT) == 7


def test_the_path_is_in_the_package():
    files = [ROOT / "xclass" / f"{module}.py" for modules in size.PATH.values() for module in modules]
    assert [path for path in files if not path.is_file()] == []


def test_a_row_for_each_folder_and_measure(monkeypatch):
    before = {"a/b/c": "1\n", "text/d": "\n2\n", "reductions/core/base": TEXT, "reductions/tree": "3\n" * 601}
    monkeypatch.setattr(
        size, "files_now", lambda: before | {"text/e": "4\n", "whole": "", "a/b/c": "isinstance(f, g)\n"}
    )
    monkeypatch.setattr(size, "files_of", lambda revision: before)
    result = tool("size", "--against", "v1")
    assert result.returncode == 0, result.stderr
    rows = dict(line[2:-2].split(" | ", 1) for line in result.stdout.splitlines())
    assert rows["text"] == "2 | 3 | 1 | 2"
    assert rows["reductions/core"] == "7 | 19 | 7 | 19"
    assert rows["**the package**"] == "611 | 624 | 610 | 623"
    assert rows["most bases of a learner"] == "2 (Tree) | | 2 (Tree) |"
    assert rows["`isinstance` asks for an ability"] == "1 | | 1 |"
    assert rows["files of more than 600 lines"] == "1 | | 1 |"
    assert rows["files"] == "6 | | 4 |"
    assert rows["docstrings and imports at the head of files"] == "| 5 | | 5"
    assert rows["names of several classes"] == rows["fields of `BatchTask`"] == "0 | | 0 |"


def test_names_of_several_classes_and_fields_are_counted():
    files = {name: "class Rows:\n    field: int\n" for name in "ab"}
    assert (size.shared_names(files), size.fields(files, "Rows")) == (1, 2)
