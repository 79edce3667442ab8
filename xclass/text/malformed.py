"""List the ways in which a line of text can be malformed, as numbers for kernels and as messages for the user."""

from __future__ import annotations

import re

from ..array_types import UInt8s
from ..data.class_names import MOST_BYTES, NO_COMMA
from . import numbers

TREATMENTS = ("stop", "skip", "vw")
STOP, SKIP, VW = range(3)  # treatments of malformed lines: positions in TREATMENTS
BLANK = b"\x1f"  # stands for a blank in a word that a message shows
MAX_MESSAGES = 5  # number of messages about malformed lines that are kept

# Problems of a line. The first three end the run unless malformed lines are skipped.
CLASS, SEVERAL_LABELS, CLASS_WORDS, NEGATIVE, OUTSIDE, LABEL_WORDS, LABEL, WEIGHT, INITIAL = range(1, 10)
NAMESPACE, NAMESPACE_WEIGHT, VALUE, INFINITE, INNER_RETURN, LABEL_AS_TAG, UNKNOWN_NAME, LABEL_BEFORE_TAB = range(10, 18)
TOO_MANY_CLASSES, LEADING_ZEROS = range(18, 20)
# Problems of a line of another format than VW text. Those of the label end the run unless malformed lines are skipped.
CLASS_NUMBER, REAL_LABEL, LABEL_NAME, NO_NAME, UNLISTED, BEYOND_LABELS = range(20, 26)
RECORD, RECORD_END, CELLS, QUOTED_CELL = range(26, 30)
PAIR, PAIR_VALUE, BEYOND_FEATURES, CELL, WEIGHT_VALUE, ENTRY = range(30, 36)
EMPTY_VALUE, BAR_AFTER_VALUE, TAG_ONLY = range(36, 39)  # of VW text
LABEL_FORM = 39  # of a label in any format
RECORD_QUOTES, KEY_TWICE = range(40, 42)  # of JSON
HEADER_AGAIN, BLANK_QUOTE = range(42, 44)  # of CSV
EMPTY_LABEL, EMPTY_LIST = range(44, 46)  # of a list of labels
ROW_NAME, ROW_COLUMN, ROW_SHORT, ROW_VALUE = range(46, 50)  # of a row of numbers
LONG_NAME = 50

# where a reduction learns one label
LEARN_LISTS = "use --multilabel, --multilabel_oaa K or --plt K, which learn lists of labels"
LEARNS_ONE = f"and this reduction learns one; {LEARN_LISTS}"
LIST = re.compile(rb"^[^|:\n]*[0-9],[0-9]", re.MULTILINE)  # a line that begins with a list of labels
TAKES_NAMES = "where a model is new, --learn_names takes labels as names of classes"
FROM_ONE = f"; classes are counted from 1; add 1 to all labels, or, {TAKES_NAMES}"
CORRECT = ". Correct the line"
CURE = f"{CORRECT}, or use --on_bad_line skip"
CURE_OF_LISTS = ", or use --on_bad_line skip to leave out such lines"
SENTENCES = {
    CLASS: "label {seen!r} is not a class number; a line is `label weight 'tag |namespace features`; a new model "
    "learns names of classes with --learn_names",
    CLASS_WORDS: "the words from {seen!r} to the first bar | are more than a label and a weight; write features after "
    "a bar, and a tag as 'tag or directly before the bar",
    NEGATIVE: f"label {{seen}} is negative; leave the label out if it is not known; {TAKES_NAMES}",
    OUTSIDE: "label {seen} is outside {range}",
    **dict.fromkeys((UNKNOWN_NAME, UNLISTED), "label {seen!r} is not one of --named_labels"),
    TOO_MANY_CLASSES: "label {seen!r} is a new name, but all classes {range} have names already; a larger K has room "
    "for more",
    LONG_NAME: f"the name of a class that begins with {{seen!r}} has more than {MOST_BYTES} bytes; write a shorter one",
    LABEL_WORDS: "the words from {seen!r} to the first bar | are more than a label, a weight and an initial prediction"
    "; write features after a bar, and a tag as 'tag or directly before the bar",
    LABEL: "label {seen!r} is not a finite number; a line is `label | features`, and names of classes are learned only "
    "with a reduction, such as --multiclass",
    **dict.fromkeys((WEIGHT, WEIGHT_VALUE), "weight {seen!r} is not a finite number of at least 0"),
    LEADING_ZEROS: "weight {seen!r} has leading zeros; write a weight without them",
    INITIAL: "initial prediction {seen!r} is not a finite number",
    NAMESPACE: "{seen!r} is not the name of a namespace; a namespace is |name or |name:weight",
    NAMESPACE_WEIGHT: "the weight {seen!r} of a namespace is not a finite number; a namespace is |name or |name:weight",
    VALUE: "the value {seen!r} of a feature is not a number; a feature is name, name:number, name:word or :number",
    EMPTY_VALUE: "feature {seen!r} has no value; write the value directly after the colon, or leave out the feature if "
    "its value is not known",
    BAR_AFTER_VALUE: "the text {seen!r}, the value of a feature, touches a bar; write a space before the bar",
    INFINITE: "the value {seen!r} of a feature, times the weight of its namespace, is too large; the largest number is "
    "3.4e+38",
    INNER_RETURN: "there is a carriage return inside the line; one is allowed only directly before the newline; if "
    r"lines end with it alone, convert the file, `tr '\r' '\n' < FILE > NEW`",
    SEVERAL_LABELS: f"the line has several labels, the second of them at {{seen!r}}, {LEARNS_ONE}",
    EMPTY_LIST: f"there is no label behind the comma, which alone is an empty list of labels, {LEARNS_ONE}",
    EMPTY_LABEL: "the list of labels has an empty label; write one comma and no blank between labels, such as 1,5,7, "
    "and a comma alone for an example that has none",
    CLASS_NUMBER: "label {seen!r} is not a class number; classes are whole numbers, and where a model is new, "
    "--learn_names takes names",
    REAL_LABEL: "label {seen!r} is not a finite number; names of classes need a reduction, --multiclass for one",
    LABEL_FORM: "label {seen!r} has a sign or leading zeros, and predictions write the number of a class without them; "
    "write it so, or learn names with --learn_names where a model is new",
    LABEL_NAME: f"label {{seen!r}} contains a comma or an unprintable character; {NO_COMMA}",
    NO_NAME: "the prefix __label__ has no name behind it; write the name of the class directly after the prefix",
    BEYOND_LABELS: "label {seen!r} is not a whole number below the number of labels in the header",
    RECORD: "the line cannot be read from {seen!r} on",
    RECORD_QUOTES: "the line cannot be read from {seen} on; JSON has double quotes, as Python's `json.dumps` writes",
    KEY_TWICE: "the object has the key {seen!r} twice; keep one of the values",
    RECORD_END: "the line ends before its object does; write an object on one line, from {{ to }}, such as "
    "by `jq -c . FILE`",
    CELLS: "the row that ends in {seen!r} has {column}; quote cells that contain the delimiter",
    QUOTED_CELL: "the quoted cell that begins here ends before {seen!r}; write a quote within quotes twice, or give "
    "--quoting none if quotes are ordinary characters of the file",
    BLANK_QUOTE: "there is a blank before the quote of a cell; remove the blank before the quote, or give --quoting "
    "none if quotes are ordinary characters of the file",
    HEADER_AGAIN: "the line is the header again, as where files were joined; leave it out, or, if the file has no "
    "header, name its columns, as in --header label,text",
    PAIR: "{seen!r} is not a feature; a feature is number:value",
    PAIR_VALUE: "{seen!r} is not a finite number; a feature is number:value",
    BEYOND_FEATURES: "feature {seen!r} is not below the number of features in the header",
    CELL: "{seen!r} is text that is not a finite number, and the column {column!r} has the kind number; leave the cell "
    "empty where the value is not known, write decimals with a point, and True and False as 1 and 0, or train the "
    "model with --column_kind {as_text}",
    ENTRY: "{seen!r} is not allowed here; give {column}",
    ROW_NAME: "{seen!r} is in the namespace of --dense, and not named by the number of a column; write number:value, "
    "with numbers from 0 on, or :value for each column in order",
    ROW_COLUMN: "{seen!r} is beyond the {width} columns of the rows; all rows have those of the first one, or as many "
    "as --dense NAMESPACE:COLUMNS says, and a model keeps their number",
    ROW_VALUE: "the value {seen} in column {column} of the row is not finite as float32; fill in or leave out missing "
    "values, and scale large ones",
    ROW_SHORT: "the row has fewer values than the {width} columns of the rows; write all of them, or name them by the "
    "numbers of their columns, such as 3:0.5",
}
OF_NUMBERS = (LABEL, WEIGHT, INITIAL, NAMESPACE_WEIGHT, INFINITE, REAL_LABEL, PAIR_VALUE, CELL, WEIGHT_VALUE, ENTRY)
OF_LABELS = (  # whose word is a label, which in a list ends at a comma
    NEGATIVE, OUTSIDE, TOO_MANY_CLASSES, SEVERAL_LABELS, CLASS_NUMBER, UNLISTED, LABEL_FORM,
)  # fmt: skip
CONTROL_CHARACTER = "label {seen!r} has a tab or another control character; remove it"
TOO_LARGE = "{seen!r} is too large; the largest number is 3.4e+38"  # instead of a sentence about what is no number
TWO_SPELLINGS = (
    "label {seen!r} is the same class as {earlier!r}, because names have _ in place of blanks; rename one if they are "
    "two classes"
)
NAME_IS_ONE_WORD = "if the words before the bar are the name of a class, write them as one word: {one_word!r}"
COMMAS_BETWEEN = "if they are several labels, write commas between them: {list!r}"
WEIGHT_OR_LABEL = (
    "'{label} {weight}' is read as label {label} with importance weight {weight}; if both are labels, write a comma "
    "between them: {label},{weight}"
)
NEW_NUMBERS = (
    "label {seen!r} is a number, and the labels before are names, the first of them {known!r}: numbers become new "
    "names; write the names if known labels are meant"
)
DIFFERENT_WEIGHT = (
    "{seen!r} is read as class {name!r} with importance weight {weight}, but an earlier line gives that class weight "
    "{earlier}; if the words before the bar are the name of a class, write them as one word, such as {one_word!r}"
)
SINGLE_NAME = "all labelled lines have the same class, {name!r}, so there is nothing to distinguish"
NAME_IN_VW_TEXT = (
    "; the name of a class is the first word of a line, and only a weight and a tag may follow it before the bar"
)
LEFT_OUT = (
    "lines without an example, the first of them {place}, have no prediction, so predictions and lines do not "
    "correspond; remove such lines"
)
WARNINGS = {  # about words that look like labels but are not; the line is read as VW reads it
    LABEL_AS_TAG: "{seen!r} touches the bar and is read as a tag, so the line is unlabelled; if it is a label, write "
    "'{seen} |', with a space before the bar",
    TAG_ONLY: "{seen} begins with an apostrophe and is read as a tag, so the line is unlabelled; if it is a label, "
    "write it without the apostrophe",
    LABEL_BEFORE_TAB: "{seen!r} is before a tab and therefore ignored, so the line is unlabelled; if it is a label, "
    "write '{seen} |', with a space instead of the tab",
}
VW_TREATMENT = {  # added to a message under --on_bad_line vw
    LABEL_WORDS: "the example is read as unlabelled",
    LABEL: "it is read as 0",
    UNKNOWN_NAME: "it is read as class 0",
    WEIGHT: "it is used as it is, or read as 0 if it is not a number",
    INITIAL: "it is read as 0",
    NAMESPACE: "the rest of the line is ignored",
    NAMESPACE_WEIGHT: "the rest of the line is ignored, or nan is read as 1",
    VALUE: "the rest of the line is ignored",
    INFINITE: "the feature is left out",
    PAIR: "the rest of the line is ignored",
    PAIR_VALUE: "the rest of the line is ignored",
    BEYOND_FEATURES: "the rest of the line is ignored",
    CELL: "the rest of the line is ignored",
    WEIGHT_VALUE: "taken as 0",
    ENTRY: "the rest of the line is ignored",
    ROW_NAME: "the rest of the line is ignored",
    ROW_COLUMN: "the rest of the line is ignored",
    ROW_SHORT: "the rest of the line is ignored",
    ROW_VALUE: "the row is left out",
}


def without_skip(message: str) -> str:
    """Return a message without the advice to skip lines, which only an interface that reads files can follow."""
    return message.replace(CURE, CORRECT).replace(CURE_OF_LISTS, "")


def sentence_about(problem: int, text: UInt8s, position: int) -> str:
    if problem == LABEL_NAME and b"," not in text[position : position + MOST_BYTES].tobytes().split(b" ")[0]:
        return CONTROL_CHARACTER
    if problem in OF_NUMBERS and numbers.is_too_large(text[position : position + 1000].tobytes().lstrip()):
        return TOO_LARGE
    return SENTENCES[problem]


def name_before(text: UInt8s, position: int) -> str:
    """Return the word that ends before position `position` of the text, cut to 40 characters."""
    return _printable(re.split(rb"[ \t|\n]", text[max(position - 160, 0) : position].tobytes())[-1])


def word_at(text: UInt8s, position: int) -> str:
    """Return the word at position `position` of the text, cut to 40 characters."""
    window = text[position : position + 160].tobytes()
    word = window.lstrip(b" \t\r").replace(b"\t", b" ").replace(b"\r", b" ").replace(b"|", b" ").replace(b"\n", b" ")
    return _printable(word.split(b" ")[0])


def words_after(text: UInt8s, position: int) -> str:
    """Return the words of the line behind that at position `position` of the text, cut to 40 characters."""
    return _printable(text[position : position + 500].tobytes().partition(b"\n")[0].partition(b" ")[2])


def label_words_of(text: UInt8s, begin: int) -> list[str]:
    """Return the words of the line at `begin` before the first bar, without the prefix and the tag."""
    line = text[begin : begin + 400].tobytes().partition(b"\n")[0]
    head = line.partition(b"|")[0]
    head = head.partition(b"\t")[2] if b"\t" in head else head
    words = head.split()
    if words and (not head.endswith(b" ") or words[-1].startswith(b"'")):
        words.pop()
    return [_printable(word) for word in words]


def _printable(word: bytes) -> str:
    """Return a word as a message shows it, printable and cut to 40 characters."""
    printable = word.replace(BLANK, b" ").decode("utf-8", "replace")
    printable = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in printable)
    return printable if len(printable) <= 40 else printable[:40] + "..."
