"""`xclass report`: its figures against the run's own files, the page as HTML, and the messages."""

from __future__ import annotations

import ast
import csv
import json
import os
import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pages
import pytest
from command import learn, xclass

import xclass as library
from xclass.cli import command, report
from xclass.data import class_names
from xclass.options.declare import options_of
from xclass.report import contents, failing, frequencies, occupancy, outcomes
from xclass.report.html import legend
from xclass.text import reader

pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed: nothing is drawn")

SECTIONS = [
    "Where the errors come from, and what would help", "Which classes fail, and why", "Error by class frequency",
    "Most confused pairs", "Calibration", "Most uncertain examples", "Learning curve",
    "Weight tables", "Options and versions",
]  # fmt: skip
REDUCTIONS = ("oaa", "recall_tree", "log_multi", "ect", "random_tree", "cpt", "softmax_tree")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pages.write(tmp_path_factory.mktemp("files"))


def request(files, **more):
    """A request for a report on the test data."""
    asked = contents.Request(str(files.model), reader.Options((str(files.test),)), (), None, 10, 5)
    return asked._replace(**more)


@pytest.fixture(scope="module")
def learner(files):
    with library.load(files.model) as model:
        yield model


@pytest.fixture(scope="module")
def collected(files, learner):
    return contents.collect(learner, request(files))


@pytest.fixture(scope="module")
def tested(files, learner):
    return outcomes.measure(learner.core, reader.Options((str(files.test),)))


@pytest.fixture(scope="module")
def page(files):
    path = files.model.with_suffix(".html")
    result = learn("report", "-i", files.model, "-d", files.test, "--curve", files.curve, "-o", path)
    warning, said = result.err.splitlines()
    assert "1 of 97 labels are not names of classes of the model" in warning
    assert said == f"{path}: {path.stat().st_size / 1e6:.1f} MB, open it in a browser"
    return pages.Elements(path.read_text(encoding="utf-8"))


# -- figures


def test_the_errors_are_those_of_the_run(files, collected, tmp_path):
    learn(
        "-d", files.test, "-t", "-i", files.model, "--per_class", tmp_path / "c.csv", "--summary", tmp_path / "s.json",
        "--top_k", outcomes.LISTED, "--calibration", tmp_path / "k.tsv", "--quiet",
    )  # fmt: skip
    summary = json.loads((tmp_path / "s.json").read_text())
    errors = collected.errors
    assert errors.error == pytest.approx(summary["average_loss"])
    assert errors.examples == summary["examples"] and errors.weight == summary["labelled_weight"]
    assert errors.list_error == pytest.approx(summary["figures"]["top_k_error"])
    assert errors.log_loss == pytest.approx(summary["figures"]["log_loss"], rel=1e-5)
    with open(tmp_path / "c.csv", encoding="utf-8") as file:
        rows = {row["class"]: row for row in csv.DictReader(file)}
    assert sum(one.facts.errors > 0 for one in errors.by_errors) == len(errors.by_errors) > 3
    for one in errors.by_errors:
        name = collected.name(one.facts.label)
        row = rows["unknown" if "does not know" in name else name]
        assert one.facts.errors == float(row["errors"]) and one.facts.examples == float(row["weight"])
        assert one.facts.confused[0][1] == float(row["confused"])
        if row["precision"]:
            assert one.facts.right / one.facts.answers == pytest.approx(float(row["precision"]), abs=1e-6)
    assert [one.facts.errors for one in errors.by_errors] == sorted(
        (float(r["errors"]) for r in rows.values()), reverse=True
    )[: len(errors.by_errors)]


def test_the_counts_in_the_model_are_those_of_the_training_data(files, learner, tested):
    counted = Counter(line.split()[0] for line in files.train.read_text(encoding="utf-8").splitlines())
    by_model = frequencies.of_training(learner.core, reader.Options()).classes
    by_data = frequencies.of_training(learner.core, reader.Options((str(files.train),))).classes
    assert (by_model.source, by_data.source) == ("model", "training data")
    assert frequencies.of_test(tested).examples.sum() == tested.weight.sum()
    for known in (by_model, by_data):
        names = [outcomes.name_of(learner.core, label) for label in known.label.tolist()]
        assert dict(zip(names, known.examples.tolist(), strict=True)) == counted
    assert by_data.of(np.array([10**6])).tolist() == [0]


def test_bins_and_causes_divide_the_errors(learner, tested, collected):
    errors = float(tested.weight[tested.wrong].sum())
    assert sum(one.errors for one in collected.errors.bins) == errors > 0
    assert sum(one.examples for one in collected.errors.bins) == tested.weight.sum()
    assert sum(one.errors for one in collected.errors.causes) == errors
    assert [(one.low, one.high) for one in collected.errors.bins] == [(0, 0), (1, 1), (17, 32)]
    assert collected.errors.bins[1].classes == pages.RARE
    assert collected.errors.causes[0].name == "class never seen" and collected.errors.causes[0].errors == 1


def test_the_classes_with_the_highest_error_have_enough_examples(tested, collected, learner, files):
    count, errors = Counter(tested.label.tolist()), Counter(tested.label[tested.wrong].tolist())
    for least in (1, 5, 9):
        found = contents.collect(learner, request(files, least=least)).errors.by_rate
        shares = {label: errors[label] / count[label] for label in errors if count[label] >= least}
        assert [shares[one.facts.label] for one in found] == sorted(shares.values(), reverse=True)[:10]
    assert class_names.UNKNOWN in {
        one.facts.label for one in contents.collect(learner, request(files, least=1)).errors.by_rate
    }
    assert found == [] and class_names.UNKNOWN not in {one.facts.label for one in collected.errors.by_rate}


def test_classes_beyond_a_list_that_fail_as_much_are_counted(tested, learner, files):
    errors = Counter(tested.label[tested.wrong].tolist())
    known = frequencies.of_test(tested)
    for most in (1, 3, 100):
        ranked = failing.worst(tested, known, most, 1)
        last = errors[ranked.by_errors[-1]]
        tied = sum(count == last for count in errors.values())
        assert ranked.more[0] == tied - sum(errors[label] == last for label in ranked.by_errors)
    assert ranked.more == (0, 0)
    tied = replace(tested, answer=np.zeros_like(tested.answer))  # all classes have an error of 1
    assert failing.worst(tied, known, 2, 1).more[1] == len(set(tested.label.tolist())) - 2


def test_features_that_did_not_occur_in_training_are_counted(files, learner, tmp_path):
    path = tmp_path / "new.vw"
    path.write_text("class3 | w3_1 never\nclass4 | never ever\nclass5 |\n", encoding="utf-8")
    for training in ([], [str(files.train)]):
        is_seen = frequencies.of_training(learner.core, reader.Options(tuple(training))).is_seen
        seen = outcomes.measure(learner.core, reader.Options((str(path),)), is_seen).seen
        assert seen.tolist() == [1, 0, 0]
    found = contents.collect(learner, request(files, source=reader.Options((str(path),)), least=1)).errors
    wrong = {collected.facts.label: collected.facts for collected in found.by_errors}
    assert sum(facts.nothing_seen for facts in wrong.values()) == next(
        cause.errors for cause in found.causes if cause.name == "nothing known"
    )


def test_pairs_are_counted_in_both_directions(tested, collected):
    counts = Counter(zip(tested.label.tolist(), tested.answer.tolist(), strict=True))
    pairs = failing.confused_pairs(tested, 1000)
    assert {(one.label, one.answer): one.often for one in pairs} == {
        pair: n for pair, n in counts.items() if pair[0] != pair[1]
    }
    assert all(one.reverse == counts[one.answer, one.label] for one in pairs)
    assert [one.often for one in pairs] == sorted((one.often for one in pairs), reverse=True)


def test_calibration_is_that_of_plain_sums(tested, collected):
    measured = collected.errors.calibration
    p, right = tested.answer_probability.astype(float), ~tested.wrong
    expected = 0.0
    for one in measured.bins:
        chosen = (p >= one.low) & (p < one.high + (one.high == 1.0))
        assert one.weight == chosen.sum()
        assert one.observed == pytest.approx(right[chosen].mean()) and one.forecast == pytest.approx(p[chosen].mean())
        expected += abs(right[chosen].sum() - p[chosen].sum()) / len(p)
    assert measured.error == pytest.approx(expected)


def test_shown_examples_are_the_lines_of_the_data(files, collected, tested):
    lines = files.test.read_text(encoding="utf-8").splitlines()
    errors = collected.errors
    shown = [*errors.uncertain, *(line for one in errors.by_errors for line in one.lines)]
    for one in shown:
        path, _, number = one.place.rpartition(":")
        assert path == "test.vw" and lines[int(number) - 1] == one.text
        at = int(number) - 1
        assert (one.label, one.answer) == (tested.label[at], tested.answer[at])
        assert one.listed[0].label == one.answer
        assert one.listed[0].probability == pytest.approx(one.answer_probability, abs=1e-5)
    lowest = sorted(tested.answer_probability.tolist())[:10]
    assert [one.answer_probability for one in errors.uncertain] == pytest.approx(lowest)


def test_reasons_sum_to_what_speaks_for_the_answer(collected, learner, files):
    explained = [one.lines[0] for one in collected.errors.by_errors if one.lines[0].reasons]
    assert len(explained) == len(collected.errors.by_errors)
    for one in explained:
        assert one.reasons[0].label == one.answer
        assert one.reasons[0].instead and all(share > 0 for _, share in one.reasons[0].instead)


def test_the_curve_is_that_of_the_file(collected, files, learner):
    assert collected.curve is None
    read = contents.collect(learner, request(files, source=reader.Options(), curve=str(files.curve))).curve
    with open(files.curve, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert read.average[-1] == float(rows[-1]["average_loss"]) and read.examples[-1] == float(rows[-1]["examples"])


def test_tables_have_the_occupancy_of_the_summary(collected, files):
    line = next(
        line for line in learn("-d", files.test, "-t", "-i", files.model).err.splitlines() if "weights in use" in line
    )
    used, size = (int(word) for word in re.findall(r"\d+", line)[:2])
    assert sum(one.used for one in collected.tables) == used and sum(one.size for one in collected.tables) == size


# -- the page


def test_the_page_is_well_formed_and_needs_nothing_from_elsewhere(page):
    assert page.unclosed == []
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert tag not in ("iframe", "object", "embed", "img", "base")
        for name in ("src", "href", "xlink:href", "action"):
            target = attributes.get(name)
            assert target is None or target.startswith("data:,") or target.removeprefix("#") in ids, target
        for target in (attributes.get("aria-labelledby") or "").split():
            assert target in ids
        assert not any(name.startswith("on") for name in attributes)
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert page.headings == SECTIONS


def test_the_page_says_what_the_words_in_its_lists_mean(page, collected):
    shown = [reason for one in collected.errors.by_errors for line in one.lines for reason in line.reasons]
    names = {name for reason in shown for name, _ in [*reason.shares, *reason.instead]} & legend.NAMES.keys()
    assert {"(trees)", "(index)"} <= names
    for name in names:
        assert f"{name} {legend.NAMES[name]}." in page.text
    for table in collected.tables:
        assert any(
            table.name.startswith(text) and f"{text} {meaning}." in page.text for text, meaning in legend.TABLES.items()
        )


def test_names_and_lines_are_text_and_no_markup(page):
    assert pages.HOSTILE in page.text
    assert "<script>alert(1)</script>" in page.text
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(tag == "b" and attributes for tag, attributes in page.tags)


def test_the_page_answers_which_classes_fail_why_and_what_helps(page, collected):
    assert page.text.count(" Try: ") >= len(collected.errors.by_errors)
    for one in collected.errors.by_errors:
        for finding in one.findings:
            assert finding.reason in page.text
            assert "".join(finding.advice.split()) in "".join(page.text.split())


def test_every_option_that_advice_names_exists():
    groups, _ = command.option_groups()
    declared = [*(options_of(group) for group in groups.values()), options_of(report.Options)]
    flags = {flag for group in declared for one in group.values() for flag in one.flags}
    folder = Path(library.__file__).parent / "report"
    named = {
        match
        for path in (folder / "advice.py", folder / "remedies.py", folder / "html" / "page.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for match in re.findall(r"(?<![\w-])--?[a-z]\w*", node.value)
    }
    assert {"--ngram", "--passes", "-b", "--top_k", "--index_slots"} <= named
    assert named <= flags, named - flags


def test_two_reports_are_equal(files, tmp_path):
    texts = []
    for name in ("a.html", "b.html"):
        learn("report", "-i", files.model, "-d", files.test, "-o", tmp_path / name, "--quiet")
        texts.append((tmp_path / name).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


def test_without_data_the_report_is_about_the_model(files, tmp_path):
    learn("report", "-i", files.model, "-o", tmp_path / "r.html", "--quiet")
    text = pages.Elements((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert text.headings == SECTIONS[-2:] and text.unclosed == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_reduction_has_a_report(reduction, tmp_path):
    files = pages.write(tmp_path, f"--{reduction}", pages.CLASSES, numbers=True)
    learn("report", "-i", files.model, "-d", files.test, "-o", tmp_path / "r.html", "--quiet")
    page = pages.Elements((tmp_path / "r.html").read_text(encoding="utf-8"))
    error = re.search(r"average loss = ([\d.]+)", learn("-d", files.test, "-t", "-i", files.model).err)[1]
    assert f"Test error {100 * float(error):.1f} %" in page.text
    headings = page.headings
    assert headings == [heading for heading in SECTIONS if heading in headings] and page.unclosed == []
    # there is no curve of the training run, and a softmax tree has few weights here, and so no large table
    assert len(headings) >= len(SECTIONS) - 2


def test_a_model_that_only_predicts_has_a_report(files, tmp_path):
    learn("shrink", files.model, "-f", tmp_path / "s.bin", "--quiet")
    for model in (files.model, tmp_path / "s.bin"):
        learn("report", "-i", model, "-d", files.test, "--json", tmp_path / f"{model.name}.json", "--quiet")
    whole, small = (json.loads((tmp_path / f"{name}.json").read_text())["test"] for name in ("model.bin", "s.bin"))
    assert abs(whole["error"] - small["error"]) < 0.1
    assert small["counted_in"] == whole["counted_in"]


def test_classes_may_have_texts(tmp_path):
    files = pages.write(tmp_path, numbers=True)
    path = tmp_path / "labels.txt"
    path.write_text("".join(f"{c}\tthe class {c}\n" for c in range(2, pages.CLASSES + 1)) + "\n", encoding="utf-8")
    words = ["report", "-i", files.model, "-d", files.test, "--json", tmp_path / "r.json", "--quiet"]
    learn(*words, "--class_names", path)
    failing = [one["class"] for one in json.loads((tmp_path / "r.json").read_text())["test"]["classes_by_errors"]]
    learn(*words)
    plain = [one["class"] for one in json.loads((tmp_path / "r.json").read_text())["test"]["classes_by_errors"]]
    assert len(plain) > 2
    assert failing == [c if c == "1" else f"{c} the class {c}" for c in plain]


def test_csv_and_weights(tmp_path):
    (tmp_path / "d.csv").write_text("label,text\n" + "sun,warm dry\nrain,cold wet\n" * 20, encoding="utf-8")
    (tmp_path / "w.vw").write_text("sun 3 | cold wet\nrain 1 | cold wet\n| cold\n", encoding="utf-8")
    learn("-d", tmp_path / "d.csv", "-f", tmp_path / "m", "-b", 16, "--quiet")
    learn(
        "report", "-i", tmp_path / "m", "-d", tmp_path / "d.csv", "-o", tmp_path / "r.html", "--label_column", "label"
    )
    assert "No test example was predicted wrongly." in (tmp_path / "r.html").read_text(encoding="utf-8")
    learn("report", "-i", tmp_path / "m", "-d", tmp_path / "w.vw", "-o", tmp_path / "r.html", "--format", "vw")
    text = pages.Elements((tmp_path / "r.html").read_text(encoding="utf-8")).text
    assert "Numbers of examples are sums of their weights." in text


def test_the_json_has_the_contents_of_the_page(files, collected, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # nothing is drawn
    learn("report", "-i", files.model, "-d", files.test, "--json", tmp_path / "r.json", "--quiet")
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    test, errors = report["test"], collected.errors
    assert report["schema"] == "xclass report 1" and test["error"] == errors.error
    assert sum(cause["errors"] for cause in test["causes"]) == pytest.approx(test["causes"][0]["of"])
    assert all(cause["advice"] for cause in test["causes"]) and "--ngram 2" in test["advice"][0]
    for listed, shown in (("classes_by_errors", errors.by_errors), ("classes_by_rate", errors.by_rate)):
        assert [one["class"] for one in test[listed]] == [collected.name(one.facts.label) for one in shown]
        assert [[why["text"] for why in one["reasons"]] for one in test[listed]] == [
            [finding.reason for finding in one.findings] for one in shown
        ]
    assert all(why["errors"] <= why["of"] for one in test["classes_by_errors"] for why in one["reasons"])
    assert [pair["count"] for pair in test["pairs"]] == [pair.often for pair in errors.pairs]
    assert [one["errors"] for one in test["bins"]] == [one.errors for one in errors.bins]


# -- messages


def refusal(*args) -> tuple[int, str]:
    """The status of a command that fails, and its message, which is no traceback."""
    result = xclass("report", *args)
    assert result.status in (1, 2) and "Traceback" not in result.err
    return result.status, result.err


def test_help():
    result = learn("report", "--help")
    assert result.out.startswith("Usage: xclass report -i MODEL") and "--min_examples" in result.out


def test_wrong_words_are_refused(files, tmp_path):
    out = tmp_path / "r.html"
    assert refusal("-o", out) == (2, f"xclass: there is no model; give -i MODEL; usage: {usage()}\n")
    assert "there is no file for the report; give -o FILE.html" in refusal("-i", files.model)[1]
    assert "give data as -d more.vw" in refusal("-i", files.model, "-o", out, "more.vw")[1]
    assert "would write over" in refusal("-i", files.model, "-d", files.test, "--json", files.test)[1]
    assert "give a name that ends in .html or .htm" in refusal("-i", files.model, "-o", tmp_path / "r.json")[1]
    assert "both write" in refusal("-i", files.model, "-o", out, "--json", out)[1]
    assert "did you mean --curve?" in refusal("-i", files.model, "-o", out, "--curv", "x")[1]
    assert "the report cannot be written there" in refusal("-i", files.model, "-o", tmp_path / "no" / "r.html")[1]
    assert not out.exists()


def usage() -> str:
    """The usage line of the subcommand."""
    return report.USAGE


def test_files_that_cannot_be_used_are_refused(files, tmp_path):
    out = tmp_path / "r.html"
    (tmp_path / "unlabelled.vw").write_text("| a b\n| c\n", encoding="utf-8")
    status, message = refusal("-i", files.model, "-d", tmp_path / "unlabelled.vw", "-o", out)
    assert status == 1 and "none of 2 examples has a label with a weight above 0" in message
    assert "no such file" in refusal("-i", tmp_path / "none", "-o", out)[1].lower()
    assert "no such file" in refusal("-i", files.model, "-d", tmp_path / "none", "-o", out)[1].lower()
    for text, words in (
        ("a,b\n1,2\n", "the first line is 'a,b'"),
        (files.curve.read_text().splitlines()[0] + "\n1,x\n", ":2: the row '1,x' is damaged"),
        (files.curve.read_text().splitlines()[0] + "\n", "there are no rows with a loss"),
    ):
        (tmp_path / "c.csv").write_text(text, encoding="utf-8")
        assert words in refusal("-i", files.model, "--curve", tmp_path / "c.csv", "-o", out)[1]
    (tmp_path / "c.csv").write_bytes(b"\xff\xfe")
    assert "this is no table of text" in refusal("-i", files.model, "--curve", tmp_path / "c.csv", "-o", out)[1]
    for text, words in (
        ("1\ta\n2 b\n", "t.txt:2: the line is '2 b'; it has to be the label of a class, a tab and a text"),
        ("1\ta\n1\tb\n", "t.txt:2: label 1 has the text 'a' already"),
        ("\n", "t.txt: the file is empty"),
        ("1\ta\n", "--class_names has no effect: the classes of the model have names"),
    ):
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        assert words in refusal("-i", files.model, "--class_names", tmp_path / "t.txt", "-o", out)[1]
    assert "byte 0 is no UTF-8" in refusal("-i", files.model, "--class_names", tmp_path / "c.csv", "-o", out)[1]
    (tmp_path / "n.vw").write_text("0.5 | a\n1.5 | b\n", encoding="utf-8")
    learn("-d", tmp_path / "n.vw", "-f", tmp_path / "n.bin", "--loss_function", "squared", "--quiet")
    assert "the model predicts numbers" in refusal("-i", tmp_path / "n.bin", "-o", out)[1]
    assert not out.exists()


def test_data_that_cannot_be_read_twice_are_refused(files, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    message = refusal("-i", files.model, "-d", tmp_path / "pipe", "-o", tmp_path / "r.html")[1]
    assert "this is no file, and the data are read twice; write them to a file first" in message
    shorter = tmp_path / "t.vw"
    shorter.write_bytes(files.test.read_bytes())
    worst = failing.worst

    def cut(*args):
        shorter.write_text("class1 | a\n", encoding="utf-8")
        return worst(*args)

    monkeypatch.setattr(failing, "worst", cut)
    message = refusal("-i", files.model, "-d", shorter, "-o", tmp_path / "r.html")[1]
    assert "the data have changed while the report was made; make it again" in message


def test_notes_about_the_data_are_shown(files, tmp_path):
    (tmp_path / "t.vw").write_text("class3 | w3_1 all1\nclass4\n", encoding="utf-8")
    shown = learn("report", "-i", files.model, "-d", tmp_path / "t.vw", "-o", tmp_path / "r.html").err
    expected = learn("-i", files.model, "-d", tmp_path / "t.vw", "-t").err
    notes = [line for line in expected.splitlines() if "t.vw:2" in line]
    assert notes and all(note in shown for note in notes)


def test_unknown_names_do_not_become_classes(files, learner, tested):
    assert (tested.label == class_names.UNKNOWN).sum() == 1
    assert len(learner.classes) == pages.CLASSES


def test_without_matplotlib_a_message_says_how_to_install_it(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, message = refusal("-i", files.model, "-o", tmp_path / "r.html")
    assert status == 2 and "which is not installed; run pip install" in message


def test_larger_tables_are_larger_than_those_that_have_grown():
    tables = [occupancy.Table("trees", 1, 2, 0, 1), occupancy.Table("scorers", 1, 2, 0, 3)]
    assert occupancy.larger_bits(20, tables) == 24
