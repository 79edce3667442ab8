"""Pages, docstrings and help use the field's words, and docstrings of functions begin with a verb."""

import ast
import functools
import re
from pathlib import Path

import tracked

from scripts.man_page import page as man_page

ROOT = Path(__file__).parent.parent
PAGES = tracked.files("*.md", "docs/*.md")
SOURCES = tracked.files("xclass/**/*.py")
OURS = re.compile(  # words that no textbook has, or that leave the reader to guess
    r"\b(herd|manieth|nobody|whoever|however many|as it comes|as they come|without a thought|is told of|"
    r"the caller has seen to|said of|likelier|soever|hardly ever)\b",
    re.IGNORECASE,
)
# first words of docstrings of functions
WORDS = """
accept add adjust advance allocate allow announce answer append apply are arrange ask assign attach average await be
begin belong bind bring build calculate call can cancel carry cast change check choose clear clip close cluster
collect combine come commit compact compare compile complete compress compute consume contain continue convert
convolve copy correct count create cross cut deal decay decide declare decode decompress decrease define delete
depend derive descend describe detect determine discard display distribute divide do double draw drop emit encode
end ensure enter escape estimate evaluate examine exchange exclude execute expand expect
explain extend extract fetch fill
filter find finish fit flush fold follow forget format free gather generate get give go grow guess halve handle has
hash have hide hold identify ignore import increase increment initialise insert inspect interleave invert is issue
iterate join keep learn leave let limit link list listen load locate lock log look lower make map mark mask match
may mean measure merge minimise mix modify move multiply name normalise note notice number obtain offer open order
pack pad parse partition pass peek perform permute pick place play plot poll pop predict prefetch prepare prepend
preview print probe process produce propagate propose protect provide prune push put quote raise rank read rebuild
receive recode recompute record recycle reduce refuse register regularise rehash reject release remember remove
rename render reorder repeat replace report represent reproduce request rerank rescale reserve reset resolve restart
restore restrict resume retrieve return reverse rotate round route run sample save say scale scan scatter score
search see seek select send serialise serve set share shift show shrink shuffle shut sift skip solve sort spill split
start state step stop store subtract suggest sum support swap switch take tell test tokenise trace train transform
translate traverse treat trim truncate try turn undo union unpack update use validate verify visit vote wait walk
warn watch weigh widen wrap write yield
"""
VERBS = frozenset(WORDS.split())


@functools.cache
def docstrings() -> list[tuple[type, str, str]]:
    """The kind, the place and the text of the docstring of every module, class and function."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
                place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
                found.append((type(node), place, ast.get_docstring(node)))
    return found


def test_docstrings_of_functions_begin_with_a_verb():
    wrong = []
    for kind, place, text in docstrings():
        first = text.splitlines()[0]
        begins = first.split()[0].lower().strip("`,.;:") in VERBS
        if kind is ast.FunctionDef and not (begins and re.search(r"[.:]$", text.split("\n\n")[0])):
            wrong.append(f"{place}: {first}")
    assert not wrong, "\n".join(wrong)


def is_verb(word: str) -> bool:
    """Tell whether a word is a form of one of VERBS."""
    word = word.lower()
    stems = {word}
    for end, more in (
        ("s", ""),
        ("es", ""),
        ("ies", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
        ("ied", "y"),
    ):
        if word.endswith(end):
            stems.add(word[: -len(end)] + more)
    stems.add(re.sub(r"(.)\1(ed|ing)$", r"\1", word))
    return bool(stems & VERBS)


def test_first_lines_of_modules_and_classes_have_a_verb():
    firsts = [(place, text.splitlines()[0]) for kind, place, text in docstrings() if kind is not ast.FunctionDef]
    assert not [first for first in firsts if not any(map(is_verb, re.findall(r"[A-Za-z]+", first[1])))]


def test_prose_uses_the_terms_of_the_field():
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in PAGES]
    texts += [(place, text) for _, place, text in docstrings()]
    assert not [(place, match.group()) for place, text in texts for match in OURS.finditer(text)]


def test_help_uses_the_terms_of_the_field():
    assert not [match.group() for match in OURS.finditer(man_page())]
