"""Every option is documented, and the pages say what the program says."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import tracked

from scripts import man_page, options_page
from xclass.cli import arguments, help_text
from xclass.cli import command as cli
from xclass.options import declare

ROOT = Path(__file__).parent.parent
SECTIONS = help_text.sections(*cli.option_groups())
OPTIONS = {name: option for section in SECTIONS for name, option in section.options.items()}


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_option_has_help(name):
    text = OPTIONS[name].help
    assert len(text) > 5
    assert not text.endswith("."), "no full stop"
    assert text == text.strip()


def test_every_declared_option_stands_in_the_help():
    groups, _ = cli.option_groups()
    declared = {name for group in groups.values() for name in declare.options_of(group)}
    assert declared == set(OPTIONS)
    text = arguments.read(*cli.option_groups(), ["--help_all"])["help"]
    for option in OPTIONS.values():
        assert all(flag in text for flag in option.flags)


def test_no_flag_is_used_twice():
    flags = [flag for option in OPTIONS.values() for flag in option.flags]
    assert sorted(flags) == sorted(set(flags))
    assert not {"-h", "--help", "--help_all", "--version"} & set(flags)


def test_reduction_is_chosen_by_the_option_of_its_name():
    _, reductions = cli.option_groups()
    for record in reductions:
        options = declare.options_of(record.options)
        assert record.name == "scalar" or options[record.name].kind in (int, str)


def test_page_lists_the_options():
    text = (ROOT / "docs" / "options.md").read_text(encoding="utf-8")
    assert options_page.page() == text, "run python -m scripts.options_page"


def test_man_page_is_current():
    text = (ROOT / "docs" / "xclass.1").read_text(encoding="utf-8")
    assert man_page.page() == text, "run python -m scripts.man_page"


def test_man_page_is_rendered_without_a_warning():
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    page = ROOT / "docs" / "xclass.1"
    result = subprocess.run(["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert "recall_tree" in result.stdout


def test_readme_is_short():
    text = (ROOT / "README.md").read_bytes()
    assert len(text) <= 8192
    assert max(len(line) for line in text.decode().splitlines()) <= 120


PAGES = tracked.files("*.md", "docs/*.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        assert linked.exists(), target
        if anchor and linked.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", linked.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in [re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings], target


def test_every_page_is_linked_from_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for page in set(tracked.files("docs/*.md")) - {ROOT / "docs" / "index.md"}:  # the front page of the site
        assert f"(docs/{page.name})" in text, page.name


def test_every_file_that_a_page_names_exists():
    for page in PAGES:
        for name in re.findall(r"\b((?:scripts|demo|tests)/[\w/]+\.(?:py|sh))", page.read_text(encoding="utf-8")):
            assert (ROOT / name).is_file(), f"{page.name}: {name}"


def test_every_name_that_a_page_links_to_code_is_there():
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for name, target in re.findall(r"\[`([\w.]+)`\]\((?:\.\./)?(xclass/\S+\.py)\)", text):
            code, last = (ROOT / target).read_text(encoding="utf-8"), name.rpartition(".")[2]
            found = re.search(rf"^\s*(?:def|class) {last}\b|^{last}\b|^    {last}:", code, re.MULTILINE)
            assert found, f"{page.name}: {name} is not in {target}"


def test_every_page_is_part_of_the_site():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in set(tracked.files("docs/*.md")) - {ROOT / "docs" / "index.md"}:
        assert f"\n{page.stem}\n" in index, page.name
