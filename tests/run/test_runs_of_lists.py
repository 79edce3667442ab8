"""Lists of labels in a run: rows, predictions, summary, files of results, and what reads these."""

import csv
import json
import pickle
import re

import numpy as np
import pytest
from command import learn, xclass

import xclass as library
from xclass import vw

LINES = ["0,1 | one", "1,2 t1| two", "2,3 | three", "3,4 | four", "5,4,3,2 | five", "| six", "5,7 | seven", ", | eight",
         "9 'tag| nine", "1,8 | ten"]  # fmt: skip
LABELS = [[0, 1], [1, 2], [2, 3], [3, 4], [2, 3, 4, 5], None, [5, 7], [], [9], [1, 8]]
TEXT = "".join(line + "\n" for line in LINES)
PLT = ("--plt", 10, "-b", 12)
VW = ("--multilabel_oaa", 10, "--vw_exact")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the data and a model of three passes."""
    folder = tmp_path_factory.mktemp("lists")
    (folder / "d").write_text(TEXT)
    for words in ((*PLT, "-f", "m"), (*VW, "-f", "v")):
        learn("d", *words, "--passes", 3, "--holdout_off", "--cache", "--quiet", cwd=folder)
    return folder


def predicted(place, *words) -> list[str]:
    return learn("d", "-t", "-i", "m", "-p", "stdout", "--quiet", *words, cwd=place).lines


def test_rows_show_the_labels_and_the_best_one(place):
    rows = [
        line.split()[2:]
        for line in learn("d", *PLT, "-P", 1, cwd=place).err.splitlines()
        if re.match("[01][.]0*", line)
    ]
    wanted = ["0,1", "1,2", "2,3", "3,4", "2,3,4,5", "unknown", "5,7", ",", "9", "1,8"]
    assert [row[2] for row in rows] == wanted and all(row[3].isdigit() for row in rows)
    long = "".join(f"{','.join(map(str, range(n)))} | a\n" for n in (7, 8))
    shown = [row.split()[4] for row in learn(*PLT, "-P", 1, stdin=long).err.splitlines() if row.endswith(" 2")]
    assert shown[:2] == ["0,1,2,3,4,5,6", "0,1,2,3,4,5..."]  # 14 characters, as in VW
    exact = learn("d", "-t", "-i", "v", "--vw_exact", "-P", 1, cwd=place).err
    assert " 5,4,3,2 " in exact and "Input label = MULTILABEL" in exact


def test_predictions_are_labels_above_the_threshold_or_the_best_ones(place):
    lists = [[pair for pair in line.split() if ":" in pair] for line in predicted(place, "--top_k", 10)]
    every = [dict(pair.split(":") for pair in pairs) for pairs in lists]
    above = predicted(place, "--threshold", 0.3)
    assert above[1].endswith(" t1") and above[8].endswith(" tag")
    for line, p in zip(above, every, strict=True):
        found = [y for y in line.split(" ")[0].split(",") if y]
        assert found == sorted((y for y in p if float(p[y]) > 0.3), key=int)
    for line, p in zip(predicted(place, "--top_k", 2, "--threshold", 0.3), every, strict=True):
        pairs = [pair for pair in line.split() if ":" in pair]
        assert pairs == [f"{y}:{q}" for y, q in list(p.items())[:2] if float(q) > 0.3]
    assert predicted(place, "--top_k", 2, "--probabilities") == predicted(place, "--top_k", 2)
    assert predicted(place)[5] in ("", *map(str, range(10)))


@pytest.mark.parametrize("reduction", ["--plt", "--multilabel_oaa", "--multilabel"])
def test_with_held_out_lines_figures_are_those_of_the_best_pass(tmp_path, reduction):
    rng = np.random.default_rng(3)
    words = [(rng.choice(8, 1 + i % 2, replace=False), rng.integers(8)) for i in range(90)]
    lines = "".join(f"{','.join(map(str, label))} | {' '.join(f'w{y}' for y in label)} w{z}\n" for label, z in words)
    (tmp_path / "d").write_text(lines)
    options = (reduction, 8, "-b", 12, "--holdout_period", 5, "-c", "-k", "--passes", 6, "--early_terminate", 9)
    err = learn("d", *options, "--summary", "s", cwd=tmp_path).err
    record = json.loads((tmp_path / "s").read_text())
    assert record["figures"]["precision_at_1"] == pytest.approx(1 - record["held_out"]["best_loss"])
    assert len(re.findall(r"^(?:precision at|hamming loss|macro F1).* h$", err, re.M)) == 3
    assert record["outcomes"]["examples"] == 18


@pytest.mark.parametrize("reduction", ["--plt", "--multilabel_oaa", "--multilabel"])
def test_labels_without_a_name_do_not_exist(tmp_path, reduction):
    """Lists of more labels than there are names have those with a name before the example, and so has macro F1."""
    names = ["tea", "hot", "coffee", "milk", "cow"]
    lines = "".join(f"{label} | {word}\n" for label, word in [
        ("tea,hot", "boil"), ("coffee", "bean"), ("tea", "leaf"), ("milk,cow", "white"),
    ])  # fmt: skip
    (tmp_path / "d").write_text(lines)
    words = (reduction, 11, "--learn_names", "--quiet", "-p", "stdout")
    listed = ("--top_k", 11) if reduction != "--multilabel_oaa" else ("--probabilities",)
    new = learn("d", *words, *listed, "-f", "m", "--summary", "s", cwd=tmp_path).lines
    assert [len(line.split()) for line in new] == [0, 2, 3, 3] and "\n:" not in "\n".join(new)
    assert (
        json.loads((tmp_path / "s").read_text())["average_loss"] >= 0.75
    )  # no label is right before its first example
    assert learn("d", *words, cwd=tmp_path).lines[0] == ""
    known = [line.split() for line in learn("d", "-t", "-i", "m", *words[3:], *listed, cwd=tmp_path).lines]
    assert all(sorted(pair.split(":")[0] for pair in line) == sorted(names) for line in known)
    few = learn("d", "-t", "-i", "m", *words[3:], "--top_k", 2, cwd=tmp_path).lines
    ranked = [sorted(line, key=lambda pair: -float(pair.split(":")[1]))[:2] for line in known]
    assert [line.split() for line in few] == ranked
    explained = learn("d", "-t", "-i", "m", "--quiet", "--explain", 7, cwd=tmp_path).lines
    assert {found[1] for line in explained if (found := re.match(r"  (\w+): prob", line))} == set(names)
    with library.load(tmp_path / "m") as model:
        figures = model.evaluate(tmp_path / "d")
        true = {i: set(line.split(" ")[0].split(",")) for i, line in enumerate(lines.splitlines())}
        chosen = dict(enumerate(model.predict_many(["boil", "bean", "leaf", "white"])))
    f1 = [
        2 * sum(y in true[i] and y in chosen[i] for i in true) / sum((y in true[i]) + (y in chosen[i]) for i in true)
        for y in names
    ]
    assert figures["macro_f1"] == pytest.approx(np.mean(f1))


def test_results_of_a_run_are_those_of_its_predictions(place):
    words = ("-t", "-i", "m", "--quiet", "--summary", "s", "--per_class", "c", "-p", "p", "--top_k", 10)
    learn("d", *words, cwd=place)
    record = json.loads((place / "s").read_text())
    ranked = [[int(pair.split(":")[0]) for pair in line.split() if ":" in pair] for line in (place / "p").open()]
    chosen = [
        [int(y) for y in line.split(" ")[0].split(",") if y]
        for line in (line.rstrip("\n") for line in predicted(place))
    ]
    known = [(t, r, c) for t, r, c in zip(LABELS, ranked, chosen, strict=True) if t is not None]
    precision = np.mean([len({*t} & {*r[:3]}) / 3 for t, r, _ in known if t])
    assert record["figures"]["precision_at_3"] == pytest.approx(precision)
    assert record["figures"]["hamming_loss"] == pytest.approx(sum(len({*t} ^ {*c}) for t, _, c in known) / 10)
    assert record["average_loss"] == pytest.approx(np.mean([r[0] not in t if t else bool(c) for t, r, c in known]))
    assert record["outcomes"]["examples"] == len(known)
    rows = {row["label"]: row for row in csv.DictReader((place / "c").open())}
    for y in map(int, rows):
        true, given = [y in t for t, _, _ in known], [y in c for _, _, c in known]
        assert float(rows[str(y)]["weight"]) == sum(true) and float(rows[str(y)]["predicted"]) == sum(given)
        assert float(rows[str(y)]["errors"]) == sum(a != b for a, b in zip(true, given, strict=True))
    with library.load(place / "m") as model:
        assert model.core.reduction.counts[-1] == 9  # passes count examples once
        figures = model.evaluate(place / "d")
        assert figures["precision_at_3"] == pytest.approx(precision)
        assert model.predict_many(LINES).tolist() == chosen and model.predict(LINES[4]) == chosen[4]
        assert [y for y, _ in model.predict(LINES[4], k=2)] == ranked[4][:2]
    compared = learn("compare", "s", "s", cwd=place).out
    assert "P@3" in compared and "has the same error as" in compared
    assert (
        "d: the data have lists of labels; compare the runs by" in xclass("compare", "p", "p", "-d", "d", cwd=place).err
    )


@pytest.mark.parametrize("reduction", ["--plt", "--multilabel_oaa", "--multilabel"])
def test_unsorted_lists_are_measured_under_vws_rules_of_bad_lines(place, reduction):
    lines = "1,5 | a b\n", "5,1,1 | a b\n"
    sorted_, unsorted = (learn("--on_bad_line", "vw", reduction, 8, stdin=line * 20).err for line in lines)
    figures = [[line for line in text.splitlines() if line.startswith("precision")] for text in (sorted_, unsorted)]
    assert figures[0] == figures[1] and " = 0.0" not in figures[0][0]


def test_merged_models_keep_the_threshold_that_all_have(tmp_path):
    (tmp_path / "n").write_text("0,1 | a b\n2 | c\n" * 2)
    for passes, threshold in enumerate((0.1, 0.1, 0.2), 1):
        words = ("--threshold", threshold, "--passes", passes, "--holdout_off", "--quiet")
        learn("n", "--plt", 5, "-f", f"m{passes}", *words, cwd=tmp_path)
    assert "warning" not in learn("merge", "m1", "m2", "-f", "m", cwd=tmp_path).err
    chosen = [
        learn("-t", "-i", "m", "-p", "stdout", *given, stdin="| a\n", cwd=tmp_path).lines
        for given in ((), ("--threshold", 0.1), ("--threshold", 0.999))
    ]
    assert chosen[0] == chosen[1] != chosen[2]
    listed = [
        learn("-t", "-i", "m", "-p", "stdout", "--top_k", 5, *given, stdin="| a\n", cwd=tmp_path).lines[0].split()
        for given in ((), ("--threshold", 0.3))
    ]
    assert len(listed[0]) == 3 > len(listed[1])  # only a threshold of the run cuts the list
    with library.Learner("plt", 5, bits=10, threshold=0.9) as model:
        model.learn_many(["a b", "c"], [[0, 1], [2]])
        assert (
            model.predict("a", 5) == pickle.loads(pickle.dumps(model)).predict("a", 5)
            and len(model.predict("a", 5)) == 3
        )
    result = learn("merge", "m1", "m3", "-f", "m", cwd=tmp_path)
    assert "the models keep different values of --threshold, and the merged model keeps none" in result.err


@pytest.mark.parametrize("name", ["plt", "multilabel_oaa", "multilabel"])
def test_a_program_reads_and_replaces_the_threshold_of_a_model(tmp_path, name):
    lines = ["0,1 | a b", "2 | c"] * 50
    known = [0, 1, 2, 3, 4] if name == "multilabel_oaa" else [0, 1, 2]  # labels
    for given, kept in (({}, 0.5), ({"threshold": 0.9999}, 0.9999)):
        with library.Learner(name, 5, bits=10, **given) as model:
            model.learn_many(lines)
            assert model.options["threshold"] == kept
            model.save(tmp_path / "m")
        with library.load(tmp_path / "m") as model:
            assert model.options["threshold"] == kept
            assert model.predict("| a") == ([0, 1] if kept == 0.5 else [])
        for threshold, labels in ((0, known), (0.3, [0, 1]), (1.0, [])):
            with library.load(tmp_path / "m", threshold=threshold) as model:
                copy = pickle.loads(pickle.dumps(model))
                assert model.predict("| a") == copy.predict("| a") == labels
                assert model.options["threshold"] == copy.options["threshold"] == threshold
        with pytest.raises(library.UsageError, match=r"^threshold: 2 is not a number from 0 to 1, or auto"):
            library.load(tmp_path / "m", threshold=2)


def test_propensities_belong_to_a_run(tmp_path):
    (tmp_path / "d").write_text("0,1 | a b\n1 | b\n1 | b\n2 | a\n" * 5)

    def psp(*words) -> str:
        return next(line for line in learn("d", *words, cwd=tmp_path).err.splitlines() if line.startswith("psp at"))

    for name, given in (("m1", ()), ("m2", ("--propensity", "2,1"))):
        learn("d", "--plt", 3, "-f", name, *given, "--quiet", cwd=tmp_path)
    own = psp("-t", "-i", "m2")
    assert psp("-t", "-i", "m1", "--propensity", "2,1") == own != psp("-t", "-i", "m1")
    for models in (("m1", "m2"), ("m2", "m1")):
        learn("merge", *models, "-f", "m", cwd=tmp_path)
        with library.load(tmp_path / "m") as model:
            assert model.options["propensity"] == "0.55,1.5"


def test_the_audit_has_the_scores_of_predictions(tmp_path):
    """Scores of labels are not clipped to -1 and 1, and neither are those of the audit."""
    (tmp_path / "d").write_text("0 | a b\n1 | b c\n0,1 | a c\n" * 30)
    learn("d", "--multilabel_oaa", 2, "-f", "m", "--quiet", cwd=tmp_path)
    words = ("-t", "-i", "m", "--quiet")
    audit = learn(*words, "--audit", stdin="| a:3\n", cwd=tmp_path).lines
    scores = [
        float(pair.split(":")[1]) for pair in learn(*words, "-r", "stdout", stdin="| a:3\n", cwd=tmp_path).out.split()
    ]
    assert [float(line) for line in audit[:4:2]] == pytest.approx(scores, rel=1e-5) and max(map(abs, scores)) > 1


def test_names_and_unknown_names(place, tmp_path):
    (tmp_path / "n").write_text("tea,black_tea | kettle\ncoffee | mill\n" * 20)
    learn("n", "--plt", 5, "--learn_names", "-f", "m", "--quiet", "-b", 12, cwd=tmp_path)
    result = learn("-t", "-i", "m", "-p", "stdout", stdin="tea,green_tea,mint,black_tea | kettle\n", cwd=tmp_path)
    assert result.lines == ["tea,black_tea"] and "tea,black_tea..." not in result.err
    assert (
        "stdin:1: 2 of 4 labels are not names of classes of the model, this is the first; they are never" in result.err
    )
    assert "recall at 1, 3, 5 = 0.250000, 0.500000, 0.500000" in result.err
    assert "micro F1 = 0.666667" in result.err and "hamming loss = 2.0" in result.err
    with library.load(tmp_path / "m") as model:
        assert model.classes == ["tea", "black_tea", "coffee"]
        assert model.predict("| mill") == ["coffee"] and model.predict_many(["| kettle"]).tolist() == [
            ["tea", "black_tea"]
        ]


def test_settings_are_compared_by_measures_of_lists(place):
    words = ("tune", "-d", "d", *PLT, "--time", "20s", "--settings", 1, "--state", "state", "--metric")
    found = learn(*words, "micro_f1", cwd=place).out
    assert "1 - F1" in found and "--plt 10" in found
    result = xclass(*words, "top5", cwd=place)
    assert "--metric top5 cannot be measured: --plt learns lists of labels; give one of error, p1" in result.err


def test_a_model_of_lists_has_a_report(place):
    pytest.importorskip("matplotlib")
    learn("report", "-i", "m", "-d", "d", "--json", "r.json", "-o", "r.html", cwd=place)
    page = (place / "r.html").read_text()
    assert "Calibration of the five best labels" in page
    assert "examples of 9 labels, tested" in page
    assert not re.search(r"\d class|classes (at|below)|>class</th>", page)
    test = json.loads((place / "r.json").read_text())["test"]
    with library.load(place / "m") as model:
        assert test["measures"]["psp_at_5"] == pytest.approx(model.evaluate(place / "d")["psp_at_5"])
    assert {"label", "precision", "recall_at_5"} <= test["labels_by_errors"][0].keys()
    assert 0 < test["measures"]["calibration_error"] < 1


def test_calibration_of_lists_is_written_and_summed_up(place):
    words = ("d", "-t", "-i", "m", "--calibration", "table", "--summary", "s", "-p", "p", "--top_k", 5)
    err = learn(*words, cwd=place).err
    error = json.loads((place / "s").read_text())["figures"]["calibration_error"]
    assert f"expected calibration error = {error:.6f}" in err
    p, right = [], []
    for labels, line in zip(LABELS, (place / "p").open(), strict=True):
        for y, q in (pair.split(":") for pair in line.split() if ":" in pair) if labels is not None else ():
            p.append(float(q))
            right.append(int(y) in labels)
    with (place / "table").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    bins = np.minimum((np.array(p) * 20).astype(int), 19)
    assert [float(row["weight"]) for row in rows] == np.bincount(bins)[np.unique(bins)].tolist()
    wanted = sum(abs(np.sum(np.array(p)[bins == j]) - np.array(right)[bins == j].sum()) for j in set(bins)) / len(p)
    assert error == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        ("-t --threshold 0.999", "8 of 8 examples that have labels are given none"),
        ("-t --threshold 0.999 --top_k 3", ""),
        ("-t --threshold 0.0001", ""),
        ("--threshold 0.999", ""),  # early examples of learning have no predictions
    ],
)
def test_a_run_warns_if_most_examples_are_given_no_label(place, words, warned):
    said = learn("d", "-i", "m", "-p", "p", *words.split(), cwd=place).err
    assert ("are given none" in said) == bool(warned) and warned in said
    predicted = (place / "p").read_text().splitlines()
    assert not warned or {line.partition(" ")[0] for line in predicted} == {""}


def test_workspace_predicts_lists(place):
    """VW's answers after the same lines, and its numbers of the types."""
    plain = [line for line in LINES if line[0] not in "|,"]
    p = [0.0054, 0.0132, 0.9686, 0.9786, 0.9650, 0.9680, 0.0010, 0.0033, 0.0038, 0.0034]
    for words, wanted, kind in (("", [2, 3, 4, 5], 5), ("--probabilities", pytest.approx(p, abs=1e-4), 1)):
        model = vw.Workspace(f"--quiet --vw_exact --loss_function logistic --multilabel_oaa 10 -l 10 {words}")
        for line in [line.replace("5,4,3,2", "2,3,4,5") for line in plain] * 4:
            model.learn(line)
        assert model.predict("| five") == wanted
        assert model.get_prediction_type() == kind and model.get_label_type() == 10
        example = model.example("1,5 | a")
        assert example.get_label().labels == [1, 5]
        example.set_label_string("2")
        assert example.get_label().labels == [2]
        model.finish()
