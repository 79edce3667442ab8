"""docs/papers.md lists the differences that the heads of the reductions' files list, word for word."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "papers.md"


def listed(head: str) -> list[str]:
    """Return the items under "Differs from the paper" in a docstring, or "from the authors' code" and the like."""
    section = re.search(r"^Differs +from the\b(?! paper in nothing| sources).*(?:\n .*)*", head, re.MULTILINE)
    items = re.findall(r"^ {10}\* (.*(?:\n {12}.*)*)", section[0], re.MULTILINE) if section else []
    assert items or not section, f"{section and section[0]}: list the differences, one after each *"
    return [re.sub(r"\s+", " ", item) for item in items]


def test_page_and_heads_list_the_same_differences():
    heads: dict[str, list[str]] = {}
    for path in sorted((ROOT / "xclass" / "reductions").glob("*/*.py")):
        items = listed(ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "")
        heads.setdefault(path.parent.name, []).extend(items)
    page = {}
    differences = PAGE.read_text(encoding="utf-8").partition("\n## Differences from the papers\n")[2]
    for section in differences.split("\n### ")[1:]:
        rows = re.findall(r"^\| (.*?) \| .* \| .* \| .* \|$", section.split("\n#### ")[0], re.MULTILINE)
        page[section.partition(":")[0]] = [row for row in rows if row not in ("xclass", "---")]
    assert set(page) <= set(heads)
    for reduction, items in heads.items():
        assert sorted(page.get(reduction, [])) == sorted(items), reduction
