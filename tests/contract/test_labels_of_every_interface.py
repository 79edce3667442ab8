"""One meaning of a label in every interface: which class or name what is written stands for, or that it is refused.

A text (VW text, CSV, fastText) keeps its spelling where labels are names. A number of JSON or of a program is a value,
so that 3 and 3.0 are one label; a program has numbers as Python has read them, JSON has them as they are written.
"""

import json
import re

import numpy as np
import pandas as pd
import pytest
from command import xclass as run

from xclass import DataError, Learner, UsageError
from xclass.serving import json_examples
from xclass.serving.http import interface
from xclass.sklearn import XClassifier
from xclass.system.bounded_json import Malformed
from xclass.vw import Workspace

FIRST, TIMES = 7, 3  # the class learned before, and how often an example is learned
REFUSED, NONE = "refused", "no label"
LONG, NINES, HUGE = "3.00000000000000000001", "2.9999999999999999999", "99999999999999999999999"
TABLE = {  # as JSON writes it -> outcomes of text, JSON and a program where classes are numbers, and for their names
    "3": (3, 3, 3, "3", "3", "3"),
    "3.0": (3, 3, 3, "3.0", "3", "3"),
    "1e2": (100, 100, 100, "1e2", "100", "100"),
    "3.5": (REFUSED, REFUSED, REFUSED, "3.5", "3.5", "3.5"),
    "-3": (REFUSED, REFUSED, REFUSED, "-3", "-3", "-3"),
    "-0.0": (REFUSED, REFUSED, REFUSED, "-0.0", "0", "0"),
    "1e-400": (REFUSED, REFUSED, REFUSED, "1e-400", "1E-400", "0"),
    "1e400": (REFUSED, REFUSED, REFUSED, "1e400", REFUSED, REFUSED),
    LONG: (REFUSED, REFUSED, 3, LONG, LONG, "3"),
    NINES: (REFUSED, REFUSED, 3, NINES, NINES, "3"),
    HUGE: (REFUSED, REFUSED, REFUSED, HUGE, HUGE, HUGE),
    "2147483649": (REFUSED, REFUSED, REFUSED, "2147483649", "2147483649", "2147483649"),
    "NaN": (REFUSED, REFUSED, NONE, "NaN", REFUSED, NONE),
    "Infinity": (REFUSED, REFUSED, REFUSED, "Infinity", REFUSED, REFUSED),
    "true": (REFUSED, REFUSED, REFUSED, "true", REFUSED, REFUSED),
    "null": (REFUSED, NONE, NONE, "null", NONE, NONE),
    '"1"': (1, 1, 1, "1", "1", "1"),
    '"1.0"': (1, 1, 1, "1.0", "1.0", "1.0"),
    '" 1"': (1, 1, 1, "1", "1", "1"),
    '"01"': (REFUSED, REFUSED, REFUSED, "01", "01", "01"),
}  # fmt: skip
SHOWN = {
    "-0.0": "(label|is) 0|-0[.]0",
    "1e-400": "is 0;|1e-400",
    "Infinity": "inf",
}  # in messages, if not what is written
TEXT_FILES = {
    "d.vw": "{} | a\n",
    "d.csv": "{},a\n",
    "d.svm": "{} 1:1\n",
    "d.ft": "__label__{} a\n",
}


def learner(names: bool) -> Learner:
    model = Learner("oaa", 200, bits=10, **({"learn_names": True} if names else {}))
    model.learn("| other", str(FIRST) if names else FIRST)
    return model


def outcome(model: Learner, names: bool) -> int | str:
    """Return the class, or the name of the class, of the example that was learned after the first one."""
    if names:
        return model.classes[1].strip() if len(model.classes) > 1 else NONE
    found = model.predict_many(["| a", "|text a", "| 1"]).tolist()
    return next((label for label in found if label != FIRST), NONE)


def of_file(file, line):
    def learned(written, names, folder):
        label = written if file == "d.jsonl" else written.strip('"')
        head, first = "label,text\n" if file == "d.csv" else "", line.format(FIRST)
        (folder / file).write_text(head + first + line.format(label) * TIMES)
        with learner(names) as model:
            model.learn_file(folder / file)
            return outcome(model, names)

    return learned


def of_workspace(written, names, folder):
    with Workspace(f"--oaa 200 -b 10 --quiet{' --learn_names' * names}") as model:
        model.learn(f"{FIRST} | other")
        for _ in range(TIMES):
            model.learn(f"{written.strip(chr(34))} | a")
        found = model.predict("| a")
        return NONE if str(found) == str(FIRST) else found


def of_program(convert):
    def learned(written, names, folder):
        with learner(names) as model:
            model.learn_many(["| a"] * TIMES, convert([json.loads(written)] * TIMES))
            return outcome(model, names)

    return learned


def of_request(body, item):
    def learned(written, names, folder):
        given = {"LABEL": written, "LINE": json.dumps(written.strip('"') + " | a")}
        items = [re.sub("LABEL|LINE", lambda found: given[found[0]], item)] * TIMES
        question = interface.read("learn", body.replace("ITEMS", ",".join(items)).encode(), 1000)
        with learner(names) as model:
            for _ in json_examples.learn(model, question, lambda: 100):
                pass
            return outcome(model, names)

    return learned


INTERFACES = {  # interface -> column of the table, and how it learns a label
    **{file: (0, of_file(file, line)) for file, line in TEXT_FILES.items()},
    "Workspace": (0, of_workspace),
    "lines": (0, of_request('{"lines": [ITEMS]}', "LINE")),
    "d.jsonl": (1, of_file("d.jsonl", '{{"label": {}, "text": "a"}}\n')),
    "list in d.jsonl": (1, of_file("d.jsonl", '{{"label": [{}], "text": "a"}}\n')),
    "examples": (1, of_request('{"examples": [ITEMS]}', '{"features": {"a": 1}, "label": LABEL}')),
    "labels": (1, of_request('{"texts": ["a", "a", "a"], "labels": [ITEMS]}', "LABEL")),
    "list": (2, of_program(list)),
    "NumPy": (2, of_program(np.array)),
    "pandas": (2, of_program(pd.Series)),
}


@pytest.mark.parametrize("names", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_a_label_has_one_meaning(interface, names, tmp_path):
    column, learned = INTERFACES[interface]
    for written, outcomes in TABLE.items():
        expected = outcomes[column + 3 * names]
        if written == '" 1"' and interface == "d.ft":
            continue  # the name follows the prefix directly
        if expected != REFUSED:
            assert learned(written, names, tmp_path) == expected, written
            continue
        with pytest.raises((DataError, Malformed, UsageError)) as caught:
            learned(written, names, tmp_path)
        shown = SHOWN.get(written) or "|".join(map(re.escape, (written.strip('"'), str(json.loads(written)))))
        assert re.search(shown, str(caught.value), re.IGNORECASE), (written, caught.value)


@pytest.mark.parametrize("label", [3, 3.0, 100, HUGE, "1", "1.0", " 1", "01", True, -3])
def test_an_estimator_returns_labels_as_they_were_given(label):
    other = not label if isinstance(label, bool) else type(label)(7)
    y = np.array([label, other] * TIMES)
    model = XClassifier("oaa", bits=10).fit(["a", "b"] * TIMES, y)
    found = model.predict(["a"])
    assert found[0] == label and found.dtype == y.dtype


@pytest.mark.parametrize("label", [None, float("nan"), float("inf"), 3.5])
def test_an_estimator_refuses_what_is_no_class(label):
    with pytest.raises(ValueError, match=r"missing|NaN|infinity|continuous"):
        XClassifier("oaa", bits=10).fit(["a", "b"], [label, 1])


def test_the_command_refuses_a_number_that_is_whole_only_as_a_float(tmp_path):
    for label in (LONG, f"[2, {LONG}]"):
        (tmp_path / "d.jsonl").write_text(f'{{"label": {label}, "features": {{"a": 0.12345678901234567}}}}\n')
        result = run("--multilabel_oaa" if label[0] == "[" else "--oaa", 4, "-d", "d.jsonl", "-b", 10, cwd=tmp_path)
        assert result.status == 1 and f"label '{LONG}' is not" in result.err


def test_a_list_in_a_list_is_refused_whatever_its_numbers(tmp_path):
    (tmp_path / "d.jsonl").write_text(f'{{"label": [[{LONG}]], "text": "a"}}\n')
    result = run("--multilabel_oaa", 4, "-d", "d.jsonl", "-b", 10, cwd=tmp_path)
    assert result.status == 1 and f"'[\"{LONG}\"]' is not allowed here" in result.err


def test_a_real_valued_label_may_have_any_number_of_digits(tmp_path):
    (tmp_path / "d.jsonl").write_text(f'{{"label": {LONG}, "text": "a"}}\n')
    result = run("-d", "d.jsonl", "-b", 10, "--loss_function", "squared", cwd=tmp_path)
    assert result.status == 0 and "\n9.0000" in result.err  # the squared error of the prediction 0
