"""`xclass report`: its figures against the run's own files, the page as HTML, and the messages."""

import ast
import csv
import json
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
from xclass.binary import tagged_words
from xclass.cli import command, report
from xclass.data import class_names
from xclass.options.declare import options_of
from xclass.report import contents, failing, outcomes
from xclass.report import page as html_page
from xclass.text import reader

pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed: nothing is drawn")

SECTIONS = [
    "Where the errors come from, and what would help", "Which classes fail, and why", "Error by class frequency",
    "Most confused pairs", "Calibration", "Options and versions",
]  # fmt: skip
SETTING = failing.ReportSetting([], features=5.0, is_online=True, name=str)
REDUCTIONS = ("oaa", "recall_tree", "log_multi", "ect", "random_tree", "cpt", "softmax_tree")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return pages.write(tmp_path_factory.mktemp("files"))


def request(files, **more):
    """A request for a report on the test data."""
    asked = contents.ReportRequest(str(files.model), reader.ReaderOptions((str(files.test),)), (), 10, 5)
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
    return outcomes.measure(learner.core, reader.ReaderOptions((str(files.test),)))


@pytest.fixture(scope="module")
def page(files):
    path = files.model.with_suffix(".html")
    result = learn("report", "-i", files.model, "-d", files.test, "-o", path)
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
    assert sum(one.errors > 0 for one in errors.classes_by_errors) == len(errors.classes_by_errors) > 3
    for one in errors.classes_by_errors:
        name = collected.name(one.label)
        row = rows["unknown" if "does not know" in name else name]
        assert one.errors == float(row["errors"]) and one.examples == float(row["weight"])
        assert one.taken_for[0].often == float(row["confused"])
        if row["precision"]:
            assert one.right_answers / one.answers == pytest.approx(float(row["precision"]), abs=1e-6)
    assert [one.errors for one in errors.classes_by_errors] == sorted(
        (float(r["errors"]) for r in rows.values()), reverse=True
    )[: len(errors.classes_by_errors)]


def test_the_counts_in_the_model_are_those_of_the_training_data(files, learner, tested):
    counted = Counter(line.split()[0] for line in files.train.read_text(encoding="utf-8").splitlines())
    by_model = outcomes.of_training(learner.core, reader.ReaderOptions()).classes
    by_data = outcomes.of_training(learner.core, reader.ReaderOptions((str(files.train),))).classes
    assert (by_model.source, by_data.source) == ("model", "training data")
    assert sum(outcomes.of_test(tested).examples.values()) == tested.weight.sum()
    for known in (by_model, by_data):
        found = {outcomes.name_of(learner.core, label): examples for label, examples in known.examples.items()}
        assert found == counted
    assert by_data.of(np.array([10**6])).tolist() == [0]


def test_bins_and_causes_divide_the_errors(learner, tested, collected):
    errors = float(tested.weight[tested.wrong].sum())
    assert sum(one.errors for one in collected.errors.bins) == errors > 0
    assert sum(one.examples for one in collected.errors.bins) == tested.weight.sum()
    assert sum(one.errors for one in collected.errors.causes) == errors
    assert [(one.low, one.high) for one in collected.errors.bins] == [(0, 0), (1, 1), (17, 32)]
    assert collected.errors.bins[1].classes == pages.RARE
    assert {one.cause: one.errors for one in collected.errors.causes}["class never seen"] == 1


def test_the_classes_with_the_highest_error_have_enough_examples(tested, collected, learner, files):
    count, errors = Counter(tested.label.tolist()), Counter(tested.label[tested.wrong].tolist())
    for least in (1, 5, 9):
        found = contents.collect(learner, request(files, least=least)).errors.classes_by_rate
        shares = {label: errors[label] / count[label] for label in errors if count[label] >= least}
        assert [shares[one.label] for one in found] == sorted(shares.values(), reverse=True)[:10]
    assert class_names.UNKNOWN in {
        one.label for one in contents.collect(learner, request(files, least=1)).errors.classes_by_rate
    }
    assert found == [] and class_names.UNKNOWN not in {one.label for one in collected.errors.classes_by_rate}


def test_classes_beyond_a_list_that_fail_as_much_are_counted(tested, learner, files):
    errors = Counter(tested.label[tested.wrong].tolist())
    known = outcomes.of_test(tested)
    for most in (1, 3, 100):
        ranked = failing.worst(tested, known, most, 1, SETTING)
        last = ranked.by_errors[-1].errors
        tied = sum(count == last for count in errors.values())
        assert ranked.more[0] == tied - sum(one.errors == last for one in ranked.by_errors)
    assert ranked.more == (0, 0)
    tied = replace(tested, answer=np.zeros_like(tested.answer))  # all classes have an error of 1
    assert failing.worst(tied, known, 2, 1, SETTING).more[1] == len(set(tested.label.tolist())) - 2


def test_features_that_did_not_occur_in_training_are_counted(files, learner, tmp_path):
    path = tmp_path / "new.vw"
    path.write_text("class3 | w3_1 never\nclass4 | never ever\nclass5 |\n", encoding="utf-8")
    for training in ([], [str(files.train)]):
        is_seen = outcomes.of_training(learner.core, reader.ReaderOptions(tuple(training))).is_seen
        seen = outcomes.measure(learner.core, reader.ReaderOptions((str(path),)), is_seen).seen
        assert seen.tolist() == [1, 0, 0]
    found = contents.collect(learner, request(files, source=reader.ReaderOptions((str(path),)), least=1)).errors
    reasons = [reason for one in found.classes_by_errors for reason in one.reasons if reason.key == "no_feature_known"]
    assert sum(reason.errors for reason in reasons) == next(
        cause.errors for cause in found.causes if cause.cause == "nothing known"
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
    p, right = tested.answer_probability.astype(float), ~tested.wrong
    tenth = np.minimum(p * contents.TENTHS, contents.TENTHS - 1).astype(int)
    sums = np.array([np.bincount(tenth, amount, contents.TENTHS) for amount in (np.ones(len(p)), p, right)])
    assert collected.calibration == pytest.approx(sums)
    assert collected.errors.calibration_error == pytest.approx(np.abs(sums[1] - sums[2]).sum() / len(p))


def test_shown_examples_are_the_lines_of_the_data(files, collected, tested):
    lines = files.test.read_text(encoding="utf-8").splitlines()
    assert len(collected.lines) > 3
    for number, one in collected.lines.items():
        assert one.place == f"test.vw:{number + 1}" and lines[number] == one.text
        assert (one.label, one.answer) == (tested.label[number], tested.answer[number])
        label, probability = one.listed[0]
        assert label == one.answer and probability == pytest.approx(one.answer_probability, abs=1e-5)


def test_reasons_sum_to_what_speaks_for_the_answer(collected, learner, files):
    for failing_class in collected.errors.classes_by_errors:
        one = collected.lines[failing_class.sample[0]]
        assert one.reasons[0].name == collected.name(one.answer)
        assert one.reasons[0].instead and all(share > 0 for _, share in one.reasons[0].instead)


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
    shown = [reason for line in collected.lines.values() for reason in line.reasons]
    names = {name for reason in shown for name, _ in [*reason.shares, *reason.instead]} & html_page.MEANINGS.keys()
    assert {"(trees)", "(index)"} <= names
    for name in names:
        assert f"{name} {html_page.MEANINGS[name]}." in page.text


def test_names_and_lines_are_text_and_no_markup(page):
    assert pages.HOSTILE in page.text
    assert "<script>alert(1)</script>" in page.text
    assert [tag for tag, _ in page.tags].count("script") == 1
    assert not any(tag == "b" and attributes for tag, attributes in page.tags)


def test_the_page_answers_which_classes_fail_why_and_what_helps(page, collected):
    assert page.text.count(" Try: ") >= len(collected.errors.classes_by_errors)
    for one in collected.errors.classes_by_errors:
        for finding in one.reasons:
            assert finding.text in page.text
            assert "".join(finding.advice.split()) in "".join(page.text.split())


def test_every_option_that_advice_names_exists():
    groups, _ = command.option_groups()
    declared = [*(options_of(group) for group in groups.values()), options_of(report.ReportOptions)]
    flags = {flag for group in declared for one in group.values() for flag in one.flags}
    folder = Path(library.__file__).parent / "report"
    named = {
        match
        for path in (folder / "failing.py", folder / "page.py")
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
    assert text.headings == SECTIONS[-1:] and text.unclosed == []


@pytest.mark.sampled(2)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_every_reduction_has_a_report(reduction, tmp_path):
    files = pages.write(tmp_path, f"--{reduction}", pages.CLASSES, numbers=True)
    learn("report", "-i", files.model, "-d", files.test, "-o", tmp_path / "r.html", "--quiet")
    page = pages.Elements((tmp_path / "r.html").read_text(encoding="utf-8"))
    error = re.search(r"average loss = ([\d.]+)", learn("-d", files.test, "-t", "-i", files.model).err)[1]
    assert f"Test error {100 * float(error):.1f} %" in page.text
    headings = page.headings
    assert headings == SECTIONS and page.unclosed == []


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


def test_the_json_has_the_records_of_the_report(files, collected, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)  # nothing is drawn
    learn("report", "-i", files.model, "-d", files.test, "--json", tmp_path / "r.json", "--quiet")
    report = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    test, errors = report["test"], collected.errors
    assert report["schema"] == "xclass report 1" and [*test] == [*errors._fields]
    assert all(cause["advice"] for cause in test["causes"]) and "--ngram 2" in test["advice"][0]
    (first, *_), one = test["classes_by_errors"], errors.classes_by_errors[0]
    name, wrong = collected.name(one.label), one.taken_for[0]
    assert (first["class"], first["errors"], first["training_examples"]) == (name, one.errors, one.training_examples)
    assert first["reasons"] == [reason._asdict() for reason in one.reasons] and "sample" not in first
    assert first["taken_for"][0] == {
        "answer": collected.name(wrong.answer), "count": wrong.often, "reverse": wrong.reverse
    }  # fmt: skip


# -- messages


def refusal(*args) -> tuple[int, str]:
    """The status of a command that fails, and its message, which is no traceback."""
    result = xclass("report", *args)
    assert result.status in (1, 2) and "Traceback" not in result.err
    return result.status, result.err


def test_files_that_cannot_be_used_are_refused(files, tmp_path):
    out = tmp_path / "r.html"
    assert "no such file" in refusal("-i", files.model, "-d", tmp_path / "none", "-o", out)[1].lower()
    for text, words in (
        ("1\ta\n2 b\n", "t.txt:2: the line is '2 b'; it has to be the label of a class, a tab and a text"),
        ("1\ta\n1\tb\n", "t.txt:2: label 1 has the text 'a' already"),
        ("\n", "t.txt: the file is empty"),
    ):
        (tmp_path / "t.txt").write_text(text, encoding="utf-8")
        assert words in refusal("-i", files.model, "--class_names", tmp_path / "t.txt", "-o", out)[1]
    assert not out.exists()


def test_data_that_change_between_two_readings_are_refused(files, tmp_path, monkeypatch):
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


def test_without_matplotlib_a_message_says_how_to_install_it(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    status, message = refusal("-i", files.model, "-o", tmp_path / "r.html")
    assert status == 2 and "which is not installed; run pip install" in message


def test_larger_tables_are_larger_than_those_that_have_grown():
    once = tagged_words.doubled(tagged_words.new_words(4, 1))
    twice = tagged_words.doubled(tagged_words.doubled(tagged_words.new_words(4, 4)))
    (settings,) = failing.overall({"tree0": once, "scorers": twice}, {"bits": 20})
    assert "(-b 23)" in settings
    once.state[[tagged_words.USED, tagged_words.REFUSED]] = 2, 3
    settings, larger = failing.overall({"tree0": once, "scorers": twice}, {"bits": 20})
    assert "-b" not in settings and "tree0: 3 weights found no place, 2 are stored" in larger
    assert "(-b 22 or more)" in larger
    assert "(-b 21)" in failing.overall({}, {"bits": 20})[0]
