"""Columns that are read as text although their cells are numbers in another format, and columns that lose zeros."""

import json
import warnings

import pandas as pd
import pytest

import xclass
from xclass.data import cells

FORMATS = {
    "rows of numbers": ["[0.12, -0.5]", "[0.12 -0.5 1e-3]", "(1, 2)", "0.1 0.2 0.3", "-0.1;0.2"],
    "numbers with groups of digits": ["1,234.50", "1,234", "1 234 567,5", "1'234.5", "1.234,50"],
    "numbers with a decimal comma": ["9,5", "-0,25"],
    "amounts of money": ["$9", "$1,234.50", "9 €", "EUR 12", "12.50 USD"],
    "percentages": ["5%", "12.5 %"],
    "numbers": ["1_000", "(5)", "−3.5"],
}
WORDS = [
    "tea",
    "kettle leaf",
    "2 cups",
    "A-12",
    "12A",
    "2024-01-05",
    "10:30",
    "v1.2",
    "http://a/1",
    "3 of 4",
    "0351/12",
    "10.0.0.1",
    "15.01.2024",
    "1.2.3",
    "KLM 123",
    "RFC 2616",
    "555 123 456",
    "12,15,7",
]


def notes(call, *args, **more):
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        call(*args, **more)
    return [str(one.message) for one in issued]


@pytest.mark.parametrize(("what", "cell"), [(what, cell) for what, given in FORMATS.items() for cell in given])
def test_numbers_in_another_format_are_noted(what, cell):
    assert f"the column has {what} such as " in cells.note_about_numbers("the column", [cell] * 5)
    assert cells.note_about_numbers("a", [cell] * 3 + ["5"] * 3) and not cells.note_about_numbers(
        "a", [cell, "x", "y", "z", "w"]
    )


@pytest.mark.parametrize("cell", WORDS)
def test_words_are_not(cell):
    assert not cells.note_about_numbers("a", [cell] * 9)
    assert not cells.note_about_numbers("a", ["5"] * 9)


def test_numbers_beside_a_word_for_missing_ones():
    assert "has numbers and also 'unknown'" in cells.note_about_numbers("a", ["5"] * 9 + ["unknown"])
    assert not cells.note_about_numbers("a", ["5"] * 9 + ["a", "b", "c"])


def dictionaries(model, examples, labels, path):
    return model.learn_many(examples, labels)


def dictionaries_one_by_one(model, examples, labels, path):
    for example, label in zip(examples, labels, strict=True):
        model.learn(example, label)


def nested_json(model, examples, labels, path):
    objects = ({"label": label, "features": one} for one, label in zip(examples, labels, strict=True))
    path.write_text("".join(json.dumps(one) + "\n" for one in objects))
    model.learn_file(path)


@pytest.mark.parametrize("learn", [dictionaries, dictionaries_one_by_one, nested_json])
def test_features_say_it_once_and_keep_how_they_are_written(learn, tmp_path):
    examples = [{"price": "$9", "key": "01067", "word": "x"}, {"price": "$12", "key": "02977", "word": "y"}] * 20
    with xclass.Learner() as model:
        found = notes(learn, model, examples, ["a", "b"] * 20, tmp_path / "a.jsonl")
        assert len(found) == 1 and "the feature 'price' has amounts of money such as '$9'" in found[0]
        model.save(tmp_path / "m")
    with xclass.load(tmp_path / "m") as model:
        for key, noted in ((1067, True), ("01067", False)):
            found = notes(model.predict, {"price": "$9", "key": key})
            assert any("values such as '01067'" in one for one in found) == noted


def test_dictionaries_of_many_numbers_are_noted_where_rows_are_learned_better():
    rows = [{f"e{j}": (i + j) % 7 + 0.5 for j in range(70)} for i in range(20)]
    for reduction, message in (("multiclass", "give an array"), ("cpt", "is known to learn badly"), ("oaa", "")):
        with xclass.Learner(reduction, 3 if reduction == "oaa" else None) as model:
            found = notes(model.learn_many, rows, [1, 2] * 10)
        assert len(found) == bool(message) and all(message in one for one in found)


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "frame"])
def test_every_table_says_it_once(form, tmp_path):
    frame = pd.DataFrame({"label": ["a", "b"] * 20, "price": ["$9", "$12"] * 20, "words": ["x y", "z"] * 20})
    path = tmp_path / f"a.{form}"
    with xclass.Learner() as model:
        if form == "frame":
            found = notes(model.learn_many, frame[["price", "words"]], frame.label)
        else:
            frame.to_json(path, orient="records", lines=True) if form == "jsonl" else frame.to_csv(
                path, index=False, sep="\t" if form == "tsv" else ","
            )
            found = notes(model.learn_file, path)
            with xclass.Learner() as other:
                assert not notes(other.learn_file, path, column_kind={"price": "text"})
    assert len(found) == 1 and "the column 'price' has amounts of money such as '$9'" in found[0]


@pytest.mark.parametrize(
    ("learned", "given", "noted"),
    [
        (["01067", "02977"], [1067, 2977], True),
        (["01067", "02977"], ["1067", "2977"], True),
        (["01067", "12977"], ["12977", "21067"], False),
        (["01067", "02977"], ["01067", "02977"], False),
        (["007", "12"], [7, 12], True),
        (["007", "12"], ["12", "15"], False),
        (["1067", "2977"], [1067, 2977], False),
        (["true", "false"], [True, False], True),
        (["True", "False"], [True, False], False),
        (["TRUE", "FALSE"], ["true", "false"], True),
    ],
)
def test_cells_that_are_no_longer_written_as_those_learned(learned, given, noted, tmp_path):
    (tmp_path / "a.csv").write_text("label,key\n" + "".join(f"{'ab'[i % 2]},{learned[i % 2]}\n" for i in range(40)))
    rows = [{"label": "ab"[i % 2], "key": given[i % 2]} for i in range(10)]
    text = [str(row["key"]) for row in rows]
    (tmp_path / "b.csv").write_text("key,label\n" + "".join(f"{cell},a\n" for cell in text))
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with xclass.Learner() as model:
        model.learn_file(tmp_path / "a.csv")
        model.save(tmp_path / "m")
    frame = pd.DataFrame(rows)[["key"]]
    calls = [
        lambda one: one.predict_many(frame),
        lambda one: one.predict_many([{"key": row["key"]} for row in rows]),
        lambda one: one.predict({"key": given[0]}),
        lambda one: one.evaluate(tmp_path / "b.jsonl"),
    ]
    if learned != ["007", "12"]:
        calls.append(lambda one: one.evaluate(tmp_path / "b.csv"))
    for call in calls:
        with xclass.load(tmp_path / "m") as model:
            found = [note for note in notes(call, model) if "the model has learned values such as" in note]
            assert len(found) == noted, found


def test_a_list_in_a_column_whose_cells_had_zeros_is_refused_by_its_place(tmp_path):
    (tmp_path / "a.csv").write_text("label,id\n" + "a,007\nb,12\n" * 9)
    (tmp_path / "b.jsonl").write_text('{"label": "a", "id": [1, 2]}\n' * 3)
    with xclass.Learner() as model:
        model.learn_file(tmp_path / "a.csv")
        with pytest.raises(xclass.DataError, match=r"b\.jsonl:1:\d+: .*\[1, 2\]"):
            model.evaluate(tmp_path / "b.jsonl")
