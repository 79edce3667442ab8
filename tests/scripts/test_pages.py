"""Commands of scripts/ that the pages name: they exist and have the options that are given to them."""

import re

import pytest
import tracked
from running import ROOT, tool

COMMAND = re.compile(r"python -m scripts\.([a-z_.]*[a-z_])((?:[^`\n\\]|\\\n|\\)*)")
PAGES = tracked.files("*.md", "docs/*.md", "scripts/**/*.py")
NAMED = {}  # command -> options
for page in PAGES:
    for name, words in COMMAND.findall(page.read_text(encoding="utf-8")):
        own = re.sub("'[^']*'", "", words.partition(" -- ")[0])  # less the options of xclass
        NAMED.setdefault(name, set()).update(re.findall(r"(?<![\w=-])--[a-z]\w*", own))
WITHOUT_OPTIONS = {"architecture", "man_page", "options_page"}


def test_pages_name_most_commands():
    assert {"measure", "paper.run", "fuzz", "convert.sparse"} <= NAMED.keys()
    assert "--repetitions" in NAMED["measure"]


@pytest.mark.parametrize("name", sorted(NAMED.keys() - WITHOUT_OPTIONS))
def test_command_has_the_options_that_pages_give_it(name):
    help_text = tool(name, "--help").stdout.partition("\noptions:\n")[2]
    for option in NAMED[name]:
        assert re.search(rf"{option}\b", help_text), option


def test_commands_without_a_parser_exist():
    for name in WITHOUT_OPTIONS & NAMED.keys():
        assert (ROOT / "scripts" / f"{name.replace('.', '/')}.py").is_file()
