"""List the ways in which a line of text can be malformed, as numbers for kernels and as messages for the user."""

from __future__ import annotations

from ..array_types import UInt8s

TREATMENTS = ("stop", "skip", "vw")
STOP, SKIP, VW = range(3)  # treatments of malformed lines: positions in TREATMENTS
KEPT = 5  # number of messages about malformed lines that are kept

# Problems of a line. The first two end the run unless malformed lines are skipped.
CLASS, CLASS_WORDS, NEGATIVE, OUTSIDE, LABEL_WORDS, LABEL, WEIGHT, INITIAL = range(1, 9)
NAMESPACE, NAMESPACE_WEIGHT, VALUE, INFINITE, INNER_RETURN, LABEL_AS_TAG, NAME, LABEL_BEFORE_TAB = range(9, 17)
FULL, PADDED = range(17, 19)

CURE = "Correct the line, or use --on_bad_line skip"
SENTENCES = {
    CLASS: "label '{seen}' is not a class number; a line is label, weight, 'tag, then |namespace features; "
    "where a model is new, --learn_names takes names",
    CLASS_WORDS: "'{seen}' begins more words than label and weight; features come after a bar |; write a tag as 'tag, "
    "or touching the bar",
    NEGATIVE: "label {seen} is negative; leave the label out where it is not known",
    OUTSIDE: "label {seen} is outside {range}",
    NAME: "label '{seen}' is none of --named_labels",
    FULL: "label '{seen}' is new, and there are no more than {range}",
    LABEL_WORDS: "'{seen}' begins more words than label, weight and initial; features come after a bar |; write a tag "
    "as 'tag, or touching the bar",
    LABEL: "label '{seen}' is not a finite number; a line is `label | features`, and names of classes need a "
    "reduction, --multiclass for one",
    WEIGHT: "weight '{seen}' is not a finite number of at least 0",
    PADDED: "weight '{seen}' has zeros in front, which are no part of a weight",
    INITIAL: "initial prediction '{seen}' is not a finite number",
    NAMESPACE: "'{seen}' is no name of a namespace; a namespace is |name or |name:weight",
    NAMESPACE_WEIGHT: "'{seen}' is not a finite number; a namespace is |name or |name:weight",
    VALUE: "'{seen}' is not a number; a feature is name, name:number, name:word or :number",
    INFINITE: "'{seen}' is not a finite number; a feature is name, name:number, name:word or :number",
    INNER_RETURN: "a carriage return within the line; lines end in a newline, before which one may stand",
}
NO_NAME = "label '{seen}' has a comma or an unprintable sign, which the name of a class may not have; put another there"
ONE_WORD = "the name of a class is one word: write {name} for a name of several words"
OTHER_WEIGHT = (
    "'{seen}' is read as class '{name}' with weight {weight}, and a line before gives that class weight {before}; "
    "where this is a name of several words, write {whole}: the name of a class is one word"
)
ONE_NAME = (
    "all labelled lines have the same name, '{name}', so that there is nothing to tell apart; the name of a class is "
    "one word, behind it come weight and 'tag, or a tag that touches the bar"
)
WARNINGS = {  # about words that look like labels but are not; the line is read as VW reads it
    LABEL_AS_TAG: "'{seen}' touches the bar and is read as a tag, so the line is unlabelled; write '{seen} |' for a "
    "label",
    LABEL_BEFORE_TAB: "'{seen}' stands before a tab and is left out, so the line is unlabelled; write '{seen} |', with "
    "a blank, for a label",
}
VW_DOES = {  # added to a message under --on_bad_line vw
    LABEL_WORDS: "the example is taken as unlabelled",
    LABEL: "taken as 0",
    NAME: "taken as class 0",
    WEIGHT: "taken as it is, or as 0 where it is no number",
    INITIAL: "taken as 0",
    NAMESPACE: "the rest of the line is ignored",
    NAMESPACE_WEIGHT: "the rest of the line is ignored, or 1 taken for nan",
    VALUE: "the rest of the line is ignored",
    INFINITE: "the feature is left out",
}


def word_at(text: UInt8s, where: int) -> str:
    """Return the word at position `where` of the text, cut to 40 characters."""
    begin = text[where : where + 160].tobytes()
    word = begin.lstrip(b" \t\r").replace(b"\t", b" ").replace(b"\r", b" ").replace(b"|", b" ").replace(b"\n", b" ")
    return _shown(word.split(b" ")[0])


def label_words_of(text: UInt8s, begin: int) -> list[str]:
    """Return the words of the line at `begin` before the first bar, without the prefix and the tag."""
    line = text[begin : begin + 400].tobytes().partition(b"\n")[0]
    head = line.partition(b"|")[0]
    head = head.partition(b"\t")[2] if b"\t" in head else head
    words = head.split()
    if words and (not head.endswith(b" ") or words[-1].startswith(b"'")):
        words.pop()
    return [_shown(word) for word in words]


def _shown(word: bytes) -> str:
    """Return a word as a message shows it: printable, and cut to 40 characters."""
    shown = word.decode("utf-8", "replace")
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in shown)
    return shown if len(shown) <= 40 else shown[:40] + "..."
