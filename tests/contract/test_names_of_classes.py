"""One rule for names of classes in every interface: blanks are `_` in VW text, and there is no comma.

A label alone that has a comma is refused, as it may be several labels. An item of a list, and a label of an estimator,
gets `;` in place of commas; an estimator gives its own labels back.
"""

import csv
import io
import json

import pytest
from command import learn, xclass
from servers import asked, served

from xclass import Learner, load, write_vw
from xclass.client import Client
from xclass.data.class_names import NO_COMMA
from xclass.errors import DataError, UsageError

TEXTS, OTHER = ["x a", "y b"] * 6, "other"
SPELLINGS = {  # name as given -> name of the class
    "New York": "New York", " New \t York ": "New York", "a|b": "a|b", "'x": "'x", "a:b": "a:b", "a;b": "a;b",
    "tea\ncup": "tea cup", "Zürich": "Zürich", '"q"': '"q"',
}  # fmt: skip
WITH_COMMA = ("a,b", "a, b", ",b")


def csv_of(name: str) -> str:
    out = io.StringIO()
    rows = [row for _ in range(6) for row in ((name, "x a"), (OTHER, "y b"))]
    csv.writer(out).writerows([("label", "text"), *rows])
    return out.getvalue()


def json_of(label: object, other: object = OTHER) -> str:
    rows = ({"label": label, "text": "x a"}, {"label": other, "text": "y b"})
    return "".join(json.dumps(row) + "\n" for row in rows * 6)


def in_lists(name: str) -> str:
    return " ".join(name.replace(",", ";").split())


COMMAND = {  # interface -> file, its contents with a name, options
    "csv": ("d.csv", csv_of, ("--multiclass",)),
    "json": ("d.jsonl", json_of, ("--multiclass",)),
    "json lists": ("d.jsonl", lambda name: json_of([name], [OTHER]), ("--multilabel",)),
    "csv lists": ("d.csv", lambda name: csv_of(json.dumps([name])).replace(OTHER, "['other']"), ("--multilabel",)),
}


@pytest.mark.parametrize("interface", COMMAND)
def test_names_of_files_return_in_every_output(interface, tmp_path):
    path, contents, options = COMMAND[interface]
    column = "label" if "lists" in interface else "class"
    names = {**SPELLINGS, **({name: in_lists(name) for name in WITH_COMMA} if "lists" in interface else {})}
    for given, name in names.items():
        (tmp_path / path).write_text(contents(given), newline="")
        learn("-d", path, *options, "-b", 10, "-f", "m", "--quiet", cwd=tmp_path)
        more = ("-p", "p", "--explain", 1, "--explain_file", "e.json", "--per_class", "c.csv")
        learn("-d", path, "-t", "-i", "m", "--quiet", *more, cwd=tmp_path)
        assert (tmp_path / "p").read_text().split("\n")[0] == name
        assert json.loads((tmp_path / "e.json").read_text().split("\n")[0])["prediction"] == name
        with open(tmp_path / "c.csv", newline="", encoding="utf-8") as file:
            assert {name, OTHER} == {row[column] for row in csv.DictReader(file)}
        with load(tmp_path / "m") as model:
            assert sorted(model.classes) == sorted([name, OTHER])


@pytest.mark.parametrize("reduction", ["multiclass", "multilabel"])
def test_names_of_python_are_those_of_files(reduction, tmp_path):
    def labels(name):
        return [[name], [OTHER]] * 6 if reduction == "multilabel" else [name, OTHER] * 6

    for given, name in SPELLINGS.items():
        if given != name:  # a program gets its own spelling
            continue
        with Learner(reduction, bits=10) as model:
            model.learn_many(TEXTS, labels(given))
            model.learn_many(TEXTS, labels(name))
            model.save(tmp_path / "m")
            assert model.classes == [name, OTHER]
            assert model.predict_many(["x a"]).tolist()[0] in (name, [name])
        with load(tmp_path / "m") as model:
            assert model.classes == [name, OTHER]


@pytest.mark.parametrize("reduction", ["multiclass", "multilabel"])
def test_names_of_requests_are_those_of_lines(reduction):
    listed = list if reduction == "multilabel" else lambda names: names[0]
    for given, name in {**SPELLINGS, **({"a, b": "a; b"} if reduction == "multilabel" else {})}.items():
        with Learner(reduction, bits=10, learn_names=True) as model:
            model.learn_many(TEXTS, [listed([name]), listed([OTHER])] * 6)
            with served(model, {"http": "0"}) as server:
                port = server.server.http.port
                labels = [listed([given]), listed([OTHER])]
                asked(port, "POST", "/v1/learn", {"texts": TEXTS[:2], "labels": labels})
                _, _, answer = asked(port, "POST", "/v1/predict", {"texts": ["x a"]})
                assert answer["predictions"][0]["prediction"] == listed([name])
                with Client(port=server.port) as client:
                    line = name.replace(" ", "_") + " | x a"
                    if "|" not in name and "'" not in name:
                        client.learn([line])
                    assert client.predict(["| x a"]) == [name]
            assert model.classes == [name, OTHER]


def refused_by_learner(name, folder):
    with Learner(bits=10) as model:
        model.learn_many(TEXTS, [name, OTHER] * 6)


def refused_by_writer(name, folder):
    write_vw(folder / "w", [[1.0]], [name])


def refused_by_option(name, folder):
    (folder / "names").write_text(f"{name}\n{OTHER}\n")
    Learner("oaa", 2, named_labels=f"@{folder / 'names'}")


def refused_by_json(name, folder):
    done = xclass("--format", "jsonl", "--multiclass", "-b", 10, stdin=json_of(name), cwd=folder)
    if done.status:
        raise DataError(done.err)


@pytest.mark.parametrize("refused", [refused_by_learner, refused_by_writer, refused_by_option, refused_by_json])
@pytest.mark.parametrize("name", WITH_COMMA)
def test_a_label_alone_with_a_comma_is_refused_with_the_same_words(refused, name, tmp_path):
    with pytest.raises((DataError, UsageError)) as caught:
        refused(name, tmp_path)
    assert NO_COMMA in str(caught.value)


@pytest.mark.parametrize("name", WITH_COMMA)
def test_estimators_give_their_labels_back(name, tmp_path):
    pytest.importorskip("sklearn", reason="scikit-learn is not installed")
    from xclass.sklearn import XClassifier, XMultilabelClassifier

    for estimator, label, other in ((XClassifier, name, OTHER), (XMultilabelClassifier, [name], [OTHER])):
        model = estimator(bits=10).fit(TEXTS, [label, other] * 6)
        assert list(model.predict(["x a"])) == [label]
        model.save(tmp_path / "m")
        with load(tmp_path / "m") as learner:
            assert sorted(learner.classes) == sorted([in_lists(name), OTHER])
