"""Every warning of a run reaches each interface that can meet its situation: one table, all interfaces."""

import os
import re
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from command import learn as run
from servers import result

import xclass
import xclass.ray
from xclass.serving import json_examples, lines
from xclass.serving.json_examples import GivenExamples

OAA, NAMED, LISTS = {"oaa": 3}, {"multiclass": True}, {"multilabel": True}
FILES = ("command", "learn_file", "cluster")
TEXTS = ("many", "lines", "http")
ALL, ONE = FILES + TEXTS, FILES[:2]
ROWS, BAD = np.eye(64, dtype=np.float32)[:20], "1 | a\n2 x y | b\n"
PLAIN, GROUPED, TEA = "1 | a\n2 | b\n", "1 |x a\n2 |x b\n", "tea | kettle\nrum | ship\n"
UNSPELLED = re.compile(r"^(?!-)((?!: ).)*--[a-z]((?!: ).)*: ", re.M)  # a flag before the first colon, which stays one
IDLE = "crosses nothing: no example has features of namespaces"

pytestmark = pytest.mark.usefixtures("place")


class Case(NamedTuple):
    """Hold a situation: data, the options of a learner, and a part of the warning that is due."""

    note: str
    data: str | bytes | np.ndarray
    options: dict = OAA
    interfaces: tuple[str, ...] = ALL
    file: str = "data.vw"
    words: tuple = ()  # of the command
    first: str = ""  # what was learned before the data


LEARNED = {
    "malformed lines": Case(
        "1 malformed line was skipped:", BAD, {**OAA, "on_bad_line": "skip"}, (*FILES, "many", "http")
    ),
    "a label as a tag": Case("'17' touches the bar and is read as a tag", "1 | a\n17|f a\n"),
    "a tag alone": Case("'17 begins with an apostrophe", "1 | a\n'17|f a\n"),
    "one name": Case("all labelled lines have the same class, 'tea'", "tea | a\ntea | b\n", NAMED, ONE),
    "labels from 0": Case(
        "labels are now considered 0-indexed", "0 | a\n1 | b\n", {**OAA, "vw_exact": True}, (*ONE, "many")
    ),
    "no features": Case("no example has a feature", "1 |\n2 |\n", OAA, FILES),
    "numbers after names": Case("label '7' is a number, and the labels", "7 | ship\n", NAMED, ONE, first=TEA),
    "two labels without a comma": Case("'1 5' is read as label 1 with importance", "1,2 | a\n1 5 | b\n", LISTS),
    "a label outside": Case(
        "label 9 in line 2 is outside 1..3", "1 | a\n9 | b\n", {"ect": 3, "on_bad_line": "vw"}, (*ONE, "many")
    ),
    "a label of a list outside": Case(
        "is outside 0..2 ", "1,2 | a\n9,1 | b\n", {"multilabel_oaa": 3, "on_bad_line": "vw"}, (*FILES, "many")
    ),
    "labels of the logistic loss": Case(
        "label 3 in line 1 is neither -1 nor 1",
        "3 | a\n",
        {"scalar": True, "loss_function": "logistic"},
        ("learn_file", *TEXTS),
    ),
    "an update that is skipped": Case("the update of this example is skipped", "1 | a\n2 | zz:3e38\n"),
    "a weight that is too small": Case("weight 1e-35 is below 1e-30, the least that is", "1 1e-35 | a\n2 | b\n"),
    "a sample of all classes": Case("has no effect: all 3 classes learn", PLAIN, {**OAA, "oaa_subsample": 9}),
    "an idle cross": Case(IDLE, GROUPED * 600, {**OAA, "quadratic": ["xy"]}),
    "an idle cross of few lines": Case(IDLE, GROUPED, {**OAA, "quadratic": ["xy"]}, FILES),
    "skips without grams": Case("makes no grams of namespaces", GROUPED, {**OAA, "ngram": ["x2"], "skips": ["z1"]}),
    "crosses twice": Case("Duplicate namespace interactions", "1 |x a |y b\n", {**OAA, "quadratic": ["xy", "yx"]}),
    "an option without effect": Case("ignore has no effect: ", GROUPED, {**OAA, "ignore": ["z"], "keep": ["x"]}),
    "labels in runs": Case(
        "the labels are grouped: 98% of the first ones equal",
        "1 | a\n" * 40 + "2 | b\n" * 40 + "3 | c\n" * 40,
        OAA,
        (*ONE, "many", "http"),
    ),
    "labels with a separator": Case(
        "labels hold ';' and share the parts", "a;b | x\nb;c | y\na;c | z\n" * 30, NAMED, (*ONE, "many", "http")
    ),
    "labels that look alike": Case(
        "look alike and are two classes", "caf\u00e9 | x\ncafe\u0301 | y\n", NAMED, (*ONE, *TEXTS)
    ),
    "not UTF-8": Case("the byte 0xe9 is not UTF-8", b"label,text\nth\xe9,hot\nrum,cold\n", NAMED, FILES, "t.csv"),
    "not UTF-8, late": Case(
        "the byte 0xe9 is not UTF-8",
        b"label,text\n" + b"tea,hot\nrum,cold\n" * 9000 + b"th\xe9,hot\n",
        NAMED,
        ONE,
        "t.csv",
    ),
    "no name": Case(
        "column 1 of the header has no name", ",label,text\n0,tea,hot\n1,rum,cold\n", NAMED, FILES, "t.csv"
    ),
    "text options": Case("has no effect: data.vw is VW text", PLAIN, {**OAA, "text_chars": "3-4"}, FILES),
    "held-out classes": Case(
        "occur only in held-out lines", "1 | a\n" * 9 + "2 | b\n", OAA, FILES[:1], words=("--passes", 2)
    ),
    "rows": Case("the examples are rows of 64 numbers", ROWS, {"recall_tree": 3}, ONE, "t.npy"),
}
PREDICTED = {
    "names of no class": Case(
        "1 of 3 labels are not names of classes", TEA + "gin | ship\n", NAMED, FILES, first=TEA * 9
    ),
    "none given": Case(
        "because no probability is above the threshold",
        "1,2 | a\n3,4 | b\n" * 3,
        {**LISTS, "threshold": 0.999},
        FILES,
        words=("--threshold", 0.999),
        first="1,2 | a\n3,4 | b\n" * 3,
    ),
    "no example": Case(
        "lines without an example, the first", "1 | a\n\n2 | b\n", OAA, ("command", "cluster"), first=PLAIN
    ),
    "malformed lines": Case("1 malformed line was skipped:", BAD, OAA, FILES, first=PLAIN),
    "an idle cross": Case(IDLE, GROUPED * 600, {**OAA, "quadratic": ["xy"]}, (*FILES, *TEXTS), first=GROUPED),
}


def rows(cases):
    return [
        pytest.param(case, interface, id=f"{name}, {interface}")
        for name, case in cases.items()
        for interface in case.interfaces
    ]


def new(options):
    (reduction, classes), *more = options.items()
    return xclass.Learner(reduction, None if classes is True else classes, **dict(more))


def words_of(options):
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            yield from (f"--{name}",) if one is True else (f"--{name}", str(one))


def warned(function):
    """Return the warnings that a call issues, as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function()
    return "\n".join(str(one.message) for one in caught)


def said_of(answer):
    return "\n".join(answer.get("warnings", ()))


def in_lines(learner, text, learns):
    answerer = lines.LineHandler(learner, learns)
    answerer.handle(text.encode(), learns)
    return "\n".join(answerer.take_notes())


def written(case):
    """Write the data of a case, and return the name of the file."""
    if isinstance(case.data, np.ndarray):
        np.save(case.file, case.data)
        np.save(case.file.replace(".npy", ".labels.npy"), np.arange(len(case.data)) % 3 + 1)
    else:
        Path(case.file).write_bytes(case.data if isinstance(case.data, bytes) else case.data.encode())
    return case.file


@pytest.mark.parametrize(("case", "interface"), rows(LEARNED))
def test_warnings_of_learning(case, interface, inline):
    file = written(case)
    with new(case.options) as learner:
        loaded = []
        if case.first:
            learner.learn_many(case.first)
            learner.save("m")
            loaded = ["-i", "m"]
        if interface == "command":
            said = run("-d", file, *loaded, *([] if loaded else words_of(case.options)), *case.words).err
        elif interface == "learn_file":
            said = warned(lambda: learner.learn_file(file))
        elif interface == "many":
            said = warned(lambda: learner.learn_many(case.data))
        elif interface == "lines":
            said = in_lines(learner, case.data, True)
        elif interface == "http":
            said = said_of(result(json_examples.learn(learner, GivenExamples(case.data.splitlines()), lambda: 10_000)))
        else:
            said = warned(lambda: xclass.ray.fit(file, learner, workers=1))
    assert said.count(case.note) == 1, said
    assert interface not in ("learn_file", "many") or not UNSPELLED.search(said), said


@pytest.mark.parametrize(("case", "interface"), rows(PREDICTED))
def test_warnings_of_predicting(case, interface, inline):
    file = written(case)
    with new({**case.options, "on_bad_line": "skip"}) as learner:
        learner.learn_many(case.first)
        if interface == "command":
            learner.save("m")
            said = run("-t", "-i", "m", "-d", file, "--on_bad_line", "skip", "-p", os.devnull, *case.words).err
        elif interface == "learn_file":
            said = warned(lambda: learner.evaluate(file))
        elif interface == "cluster":
            said = warned(lambda: xclass.ray.predict(file, learner, workers=2))
        elif interface == "many":
            said = warned(lambda: learner.predict_many(case.data))
        elif interface == "lines":
            said = in_lines(learner, case.data, False)
        else:
            said = said_of(json_examples.predict(learner, [GivenExamples(case.data.splitlines())])[0])
    assert said.count(case.note) == 1, said


def test_a_warning_of_several_requests_goes_to_the_one_with_the_example():
    lines = [f"1 | a:{k}" for k in (1, 2)]
    with xclass.Learner("oaa", 3) as learner:
        learner.learn_many(lines)
        asked = [
            GivenExamples(["| a"]),
            GivenExamples(["| a", "| b", "1 |", "17|f a"], before=7),
        ]
        first, second = json_examples.predict(learner, asked)
    assert "warnings" not in first
    assert "lines[10]: '17' touches the bar" in said_of(second)


def test_estimators_warn_of_rows_as_learners_do():
    from xclass.sklearn import XClassifier

    estimator = XClassifier(reduction="recall_tree")
    assert "the examples are rows of 64 numbers" in warned(lambda: estimator.fit(ROWS, np.arange(20) % 3))
