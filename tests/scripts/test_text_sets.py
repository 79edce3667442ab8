"""Sets of raw texts: what is taken from packages, and how texts are divided; errors as tables."""

import csv
import json

import pytest

from scripts.text import errors, sets

PO = """msgid ""
msgstr "Language: de\\n"

msgid "Save"
msgstr "Sichern"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] ""
"%d "
"Dateien"

msgid "Open"
msgstr ""
"""


def test_messages_of_a_catalogue_are_its_translations():
    assert [*sets.messages(PO)] == ["Sichern", "%d Datei", "%d Dateien"]


def test_stanzas_have_fields_of_several_lines():
    text = "Package: a\nDescription: short\n long\n .\n end\nSection: net\n\nPackage: b\n"
    first, second = sets.stanzas(text)
    assert first == {"Package": "a", "Description": "short\n long\n .\n end", "Section": "net"}
    assert second == {"Package": "b"}


def test_parts_of_a_set_are_disjoint_and_rare_classes_are_left_out(tmp_path):
    rows = [(label, f"Text {i} of\n{label}", str(i)) for i in range(200) for label in ("a", "b")] + [("c", "x", "x")]
    sets.write(rows + rows[:5], tmp_path / "s")
    parts = [errors.rows(tmp_path / "s" / f"{name}.csv") for name in ("train", "held_out", "test")]
    assert sorted(row for part in parts for row in part) == sorted((label, text) for label, text, _ in rows[:-1])
    groups = [{text.split()[1] for _, text in part} for part in parts]
    assert all(groups) and len(set.union(*groups)) == sum(map(len, groups)) == 200
    with open(tmp_path / "s" / "train.csv", newline="") as file:
        assert next(csv.reader(file)) == ["label", "text"]


def test_table_has_the_mean_ratio_to_texts_as_they_were_read(tmp_path, capsys, monkeypatch):
    records = [
        {"key": {"set": name, "method": method}, "found": {"error": error, "cpu": 2.4, "memory": 99.6}}
        for method, both in (("xclass", (0.1, 0.4)), (errors.TODAY, (0.2, 0.8)))
        for name, error in zip("st", both, strict=True)
    ]
    (tmp_path / "j").write_text(json.dumps(records))
    monkeypatch.setattr("sys.argv", ["errors", "--table", str(tmp_path / "j")])
    assert errors.main() == 0
    assert capsys.readouterr().out.splitlines()[2] == "| xclass | 10.0 (2, 100) | 40.0 (2, 100) | 0.500 |"


def test_errors_of_a_small_set_are_measured(tmp_path, monkeypatch):
    rows = [(label, f"{word} {i} {word}", str(i)) for i in range(120) for label, word in (("a", "Tea"), ("b", "Ale"))]
    sets.write(rows, tmp_path / "sets" / "s")
    words = ["errors", str(tmp_path / "sets"), "--json", str(tmp_path / "j"), "--methods", "xclass;fastText, epoch 1"]
    monkeypatch.setattr("sys.argv", words)
    monkeypatch.setattr(errors.importlib.util, "find_spec", lambda name: None if name == "fasttext" else True)
    assert errors.main() == 0
    (record,) = json.loads((tmp_path / "j").read_text())
    assert record["key"] == {"set": "s", "method": "xclass", "part": "test"}
    assert record["found"]["error"] == 0 and record["found"]["cpu"] > 0
    with pytest.raises(SystemExit):
        monkeypatch.setattr("sys.argv", ["errors"])
        errors.main()
