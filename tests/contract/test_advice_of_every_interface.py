"""Advice of the library, the estimators, the server and its client is followed as it is shown, and leads to success.

`tests/cli/test_followed_advice.py` does so for the command.
"""

import contextlib
import gzip
import io
import json
import os
import pickle
import re
import select
import socket
import subprocess
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import servers
from command import start_process
from command import xclass as run
from servers import ask, command, served, wait_for

import xclass
from xclass import serve
from xclass.client import Client
from xclass.vw import Workspace

FILES = {
    "d.vw": "1 | a\n2 | b\n",
    "x.vw": "1 | x\n2 | b\n",
    "lists.vw": "1,2 | a\n2 | b\n",
    "bad.vw": "1 | a\n2 x y | b\n2 | b\n",
    "zero.vw": "1 | a\n0 | b\n",
    "names.vw": "tea | a\nrum | b\n",
    "t.csv": "label,text,price\ntea,hot,1\nrum,cold,2\n",
    "bare.csv": "tea,hot,1\nrum,cold,2\ntea,hot,1\n",
    "id.csv": "id,text\n" + "".join(f"{i},w{i % 7} a\n" for i in range(1, 60)),
    "semicolons.csv": "label,text\n" + "".join(f"{'abc'[i % 3]};{'bcd'[i % 3]},w{i}\n" for i in range(60)),
    "k.jsonl": '{"intent": "tea", "text": "hot"}\n{"intent": "rum", "text": "cold"}\n',
    "sorted.vw": "".join(f"{c} | w{i}\n" for c in (1, 2, 3) for i in range(200)),
    "names.txt": "a\nb\nc\nd\n",
}
OAA2, OAA3, MULTICLASS, WORD = ("oaa", 2), ("oaa", 3), ("multiclass",), "mean '(\\w+)'"
FLAG = r"(?<![\w-])--?[a-z]\w*"  # which means nothing to a program
ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)
TEXTS, LABELS = ["a b", "c d"] * 3, ["p", "q"] * 3
MANY = [f"w{i}" for i in range(60)]
WIDE = np.random.default_rng(1).normal(size=(90, 70)).astype(np.float32)
DICTIONARIES = [{f"x{j}": float(x) for j, x in enumerate(row)} for row in WIDE]
THREE = [1, 2, 3] * 30
CELLS = [f"{'abc'[i % 3]};{'bcd'[i % 3]}" for i in range(60)]
NAMED, IDENTITY = {"learn_names": True}, {"feature_hash": "identity"}


def learner(options=OAA3, *examples, **more):
    model = xclass.Learner(*options, **{"bits": 12, **more})
    if examples:
        model.learn_many(*examples)
    return model


def learned(options=(), **more):
    return lambda: xclass.Learner(*options, **more).close()


def many(options, *examples, **more):
    return lambda: learner(options, *examples, **more)


def of_file(name, options=OAA3, passes=1, on_bad_line="stop", learn_names=False, **more):
    given = {"on_bad_line": on_bad_line, "learn_names": learn_names}
    given = {name: value for name, value in given.items() if value not in ("stop", False)}
    return lambda: learner(options, **given).learn_file(name, passes=passes, **more)


def fitted(**parameters):
    from xclass.sklearn import XClassifier

    return lambda: XClassifier(**parameters).fit(TEXTS, LABELS)


def estimator(kind="XClassifier", X=TEXTS, y=LABELS, **parameters):
    import xclass.sklearn

    return getattr(xclass.sklearn, kind)(**{"bits": 12, **parameters}).fit(X, y)


def beside_a_listener(path, call):
    def beside():
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(path)
            other.listen()
            call()

    return beside


def of_river(kind="Classifier", *arguments, **options):
    import xclass.river

    return getattr(xclass.river, kind)(*arguments, **{"bits": 12, **options})


def changed(batch, **fields):
    return batch._replace(**{name: np.array(values) for name, values in fields.items()})


def after(model, use):
    """Return a call that makes a learner, or an estimator, by a call and then uses it."""
    return lambda: use(model())


def from_command(words):
    return lambda: xclass.Learner.from_command(words)


def saved(name, options=OAA2, **more):
    model = learner(options, FILES["d.vw"], **more)
    model.end_pass()
    model.save(name)
    return name


def merging(*lines, options=OAA2, base=None, **more):
    def merge():
        models = []
        for text in lines:
            model = xclass.load(base) if base else learner(options, **more)
            model.learn_many(text)
            models.append(model)
        return xclass.merge(models, base)

    return merge


def sparse(**changes):
    """Return an object with the attributes of a sparse matrix of two rows."""
    return SimpleNamespace(**{"indptr": [0, 1, 2], "indices": [0, 1], "data": [1.0, 2.0], **changes})


def frame(rows):
    import pandas

    return pandas.DataFrame(rows)


def label_column(**options):
    import pandas

    return pandas.read_csv(io.StringIO("label\np\nNA\n"), **options)["label"]


def tabled(rows, predicted=None, **more):
    """Return a call that learns from the columns of a DataFrame of two rows, and may predict for another."""

    def call():
        model = learner(MULTICLASS, frame(rows), ["p", "q"], **more)
        if predicted:
            model.predict_many(frame(predicted))
        return model

    return call


class LazyFrame:
    """Stand for a table that names its columns but has no rows yet."""

    columns = dtypes = ("a", "b")


ONE, OTHER = "a | x\nb | y\nc | z\n", "c | z\nb | y\na | x\n"


def of_command(words, option, value):
    """Execute the command with an option, which a message to a program calls that of the command."""
    result = run(*words.split(), option.removeprefix("the command's "), value)
    assert result.status == 0 and "warning" not in result.err, result.err


def in_fork(use, learning=True):
    """Return a call that makes a learner, and uses it in a fork of this process while it learns, or not."""

    def call():
        with learner(OAA3, FILES["d.vw"]) as model:
            model.save("of_parent")

            def forked():
                receiver, sender = os.pipe()
                child = os.fork()
                if not child:
                    said = "nothing was said"
                    try:
                        use(model)
                        said = ""
                    except xclass.XclassError as error:
                        said = str(error)
                    finally:
                        os.write(sender, said.encode())
                        os._exit(0)
                os.close(sender)
                with open(receiver) as file:
                    said = file.read()
                os.waitpid(child, 0)
                return said

            said = model.turn.complete(forked) if learning else forked()
        if said:
            raise xclass.UsageError(said)

    return call


def with_base(word):
    learner(("cpt", 8), ONE, learn_names=True).save("base")
    assert word == "base"
    merging(ONE, OTHER, base="base")()


# a call, and for its message the same call as the message advises, which gets the group of the message
OF_LIBRARY = [
    (learned(OAA3, alpha=0.1), "mean '(l2)'", lambda word: learned(OAA3, **{word: 0.1})),
    (learned(OAA3, loss="logistic"), WORD, lambda word: learned(OAA3, **{word: "logistic"})),
    (learned(OAA3, loss_function="log"), WORD, lambda word: learned(OAA3, loss_function=word)),
    (learned(("ova", 3)), WORD, lambda word: learned((word, 3))),
    (in_fork(lambda model: model.predict("| a")), "(load) the model in this process",
     lambda word: in_fork(lambda _: getattr(xclass, word)("of_parent").predict("| a"))),
    (in_fork(lambda model: model.predict("| a")), "or (fork) while nothing is learned",
     lambda word: in_fork(lambda model: model.predict("| a"), learning=False)),
    (learned(OAA3, bitz=12), WORD, lambda word: learned(OAA3, **{word: 12})),
    (learned(OAA3, skips=["1"]), "it needs (\\w+)", lambda word: learned(OAA3, skips=["1"], **{word: ["2"]})),
    (learned(OAA3, oaa=3), "give reduction='(\\w+)'", lambda word: learned(OAA3)),
    (learned(("oaa",)), "such as (classes)=10", lambda word: learned(("oaa",), **{word: 10})),
    (learned(("scalar",), named_labels="a,b"), "such as (oaa)", lambda word: learned((word, 2), named_labels="a,b")),
    (lambda: learner(("scalar",), FILES["d.vw"]).predict("| a", k=2), "choose one of (multiclass),",
     lambda word: lambda: learner((word,), FILES["d.vw"]).predict("| a", k=2)),
    (lambda: learner(("scalar",), FILES["d.vw"]).scores(["| a"]), "choose one of (oaa),",
     lambda word: lambda: learner((word, 2), FILES["d.vw"]).scores(["| a"])),
    (learned(OAA3, quantile_tau=0.3), "needs (loss_function) quantile",
     lambda word: learned(OAA3, quantile_tau=0.3, **{word: "quantile"})),
    (learned(OAA3, dense="x"), "use (multiclass) or", lambda word: learned((word,), dense="x")),
    (learned(OAA3, dense="x"), "or (means), or", lambda word: learned((word,), dense="x")),
    (learned(OAA3, layout="tagged"), "give (odd) or vw", lambda word: learned(OAA3, layout=word)),
    (learned(("cpt", 3), tree_noise=0.1), "give (trees) 2", lambda word: learned(("cpt", 3), tree_noise=0.1, trees=2)),
    (learned(("cpt", 3), cpt_tree="none"), "give cpt_tree (general),",
     lambda word: learned(("cpt", 3), cpt_tree=word)),
    (lambda: learner(("cpt", 3), beam=0).predict("| a", 2), "wanted \\((k)\\)",
     lambda word: lambda: learner(("cpt", 3), beam=0).predict("| a", **{word: 1})),
    (lambda: learner(("cpt", 3), beam=0).predict("| a", 2), "give (exact) ",
     lambda word: lambda: learner(("cpt", 3), beam=0, **{word: True}).predict("| a", 2)),
    (lambda: learner(("cpt", 3), beam=0).predict("| a", 2), "(load)\\(\\) takes it",
     lambda word: lambda: getattr(xclass, word)(saved("narrow", ("cpt", 3), beam=0), exact=True).predict("| a", 2)),
    (learned(("multiclass", 10), beam=0), "wanted \\((candidates)\\)",
     lambda word: learned(("multiclass", 10), beam=0, **{word: 1})),
    (lambda: learner(("cpt", 3), beam=0).predict("| a", 2), "with (beam) 1",
     lambda word: lambda: learner(("cpt", 3), **{word: 1}).predict("| a", 2)),
    (lambda: learner(("ect", 3)).probabilities(["a"]), "one of .*(oaa),",
     lambda word: lambda: learner((word, 3)).probabilities(["a"])),
    (lambda: learner(("cpt", 3)).scores(["a"]), "one of oaa, (recall_tree)",
     lambda word: lambda: learner((word, 3)).scores(["a"])),
    # options of a run
    (learned(OAA3, passes=2), "call (learn_file)\\(path, passes=N\\)",
     lambda word: lambda: getattr(learner(), word)("d.vw", passes=2)),
    (learned(OAA3, top_k=2), "call (predict)\\(example, k\\)",
     lambda word: lambda: getattr(learner(), word)("| a", 2)),
    (learned(OAA3, probabilities=True), "call (probabilities)\\(X\\)",
     lambda word: lambda: getattr(learner(), word)(["| a"])),
    (learned(OAA3, raw_order="vw"), "call (scores)\\(\\)", lambda word: lambda: getattr(learner(), word)(["| a"])),
    (from_command("--oaa 3 -f m"), "call (save)\\(path\\)", lambda word: lambda: getattr(learner(), word)("m")),
    (from_command("--oaa 3 -i m"), "call xclass.(load)\\(path\\)",
     lambda word: lambda: getattr(xclass, word)(saved("m"))),
    (from_command("--oaa 3 -t"), "call (predict)\\(\\)", lambda word: lambda: getattr(learner(), word)("| a")),
    (from_command("--oaa 3 -d d.vw"), "call (learn_file)", lambda word: lambda: getattr(learner(), word)("d.vw")),
    (from_command("--oaa 3 d.vw"), "go to (learn_file)", lambda word: lambda: getattr(learner(), word)("d.vw")),
    (from_command("--oaa 3 --explain"), "call (explain)\\(example, k\\)",
     lambda word: lambda: getattr(learner(OAA3, FILES["d.vw"]), word)("| a", 2)),
    (from_command("--oaa 3 --summary s"), "call (evaluate)\\(path\\)",
     lambda word: lambda: getattr(learner(OAA3, FILES["d.vw"]), word)("d.vw")),
    (from_command("--oaa 3 --label_column x"), "call (learn_file)\\(path, format=",
     lambda word: lambda: getattr(learner(MULTICLASS), word)("t.csv", format="csv")),
    (from_command("--oaa 3 -p p"), "and (predict_many)\\(\\) return the predictions",
     lambda word: lambda: getattr(learner(), word)(["| a"])),
    (from_command("--oaa 3 -P 5"), "see (average_loss)", lambda word: lambda: getattr(learner(OAA3, "1 | a"), word)),
    (from_command("--oaa 3 --examples 5"), "pass the examples to (learn_many)\\(\\) that",
     lambda word: lambda: getattr(learner(), word)(["1 | a"])),
    (from_command("--oaa 3 --holdout_after 5"), "compare models by (evaluate)\\(path\\)",
     lambda word: lambda: getattr(learner(OAA3, FILES["d.vw"]), word)("d.vw")),
    (from_command("--oaa 3 --readable_model r"), "call (save)\\(path\\), and give the model to the command",
     lambda word: lambda: (getattr(learner(), word)("m"), of_command("-t -i m -d d.vw", "--readable_model", "r"))),
    (from_command("--cpt 3 --save_tree r"), "give the (option) to the command",
     lambda word: lambda: of_command("--cpt 3 -d d.vw", "--save_tree", "r")),
    # files
    (of_file("t.csv", format="CSV"), "mean '(csv)'", lambda word: of_file("d.vw", format="vw")),
    (of_file("bad.vw"), "use on_bad_line (skip)", lambda word: of_file("bad.vw", on_bad_line=word)),
    (of_file("zero.vw"), "where a model is new, (learn_names) takes", lambda word: of_file("zero.vw", **{word: True})),
    (of_file("lists.vw"), "use (multilabel),", lambda word: of_file("lists.vw", (word,))),
    (of_file("lists.vw"), '(Learner\\("multilabel_oaa", classes=K\\)) or',
     lambda word: lambda: eval(f"xclass.{word}", {"xclass": xclass, "K": 3}).learn_file("lists.vw")),
    (of_file("lists.vw", ("scalar",)), '(Learner\\("plt", classes=K\\))',
     lambda word: lambda: eval(f"xclass.{word}", {"xclass": xclass, "K": 3}).learn_file("lists.vw")),
    (of_file("k.jsonl", MULTICLASS), "by (label_column), such as one of 'intent'",
     lambda word: of_file("k.jsonl", MULTICLASS, **{word: "intent"})),
    (of_file("id.csv", MULTICLASS), "as in label_column (text)",
     lambda word: of_file("id.csv", MULTICLASS, label_column=word)),
    (of_file("bare.csv", MULTICLASS), "as in header (label,text)",
     lambda word: of_file("bare.csv", MULTICLASS, header=f"{word},price")),
    (of_file("t.csv", MULTICLASS, column_kind={"text": "number"}), "column_kind '(text:text)'",
     lambda word: of_file("t.csv", MULTICLASS, column_kind=word)),
    (of_file("semicolons.csv", MULTICLASS), "(label_separator) ';' reads",
     lambda word: of_file("semicolons.csv", ("multilabel",), **{word: ";"})),
    (of_file("sorted.vw"), "in random order, as (the command's --shuffle) 100000 does",
     lambda word: lambda: of_command("--oaa 3 -d sorted.vw", word, "100000")),
    (lambda: learner().learn_file(saved("m")), "examples with (learn_file)\\(\\)",
     lambda word: lambda: getattr(learner(), word)("d.vw")),
    (lambda: list(xclass.read_vw(saved("m"))), "examples with (read_vw)\\(\\)",
     lambda word: lambda: list(getattr(xclass, word)("d.vw"))),
    (lambda: learner().learn_file(saved("m")), "a model with (load)\\(\\)",
     lambda word: lambda: getattr(xclass, word)("m")),
    (lambda: xclass.load("d.vw"), "models are made with (save)\\(\\)", lambda word: lambda: xclass.load(saved("m"))),
    (lambda: list(xclass.read_vw("bad.vw")), "write features (after a bar), .*Correct the line$",
     lambda word: lambda: list(xclass.read_vw("d.vw"))),
    (lambda: list(xclass.read_vw("lists.vw")), "give labels='(lists)'",
     lambda word: lambda: list(xclass.read_vw("lists.vw", labels=word))),
    # models
    (lambda: xclass.load(saved("m", predict_only_model=True)).learn("1 | a"),
     "predict with it \\((predict_many)\\(\\)\\)",
     lambda word: lambda: getattr(xclass.load("m"), word)(["| a"])),
    (lambda: learner(("softmax_tree", 3), FILES["d.vw"]).save("m"), "call (end_pass)\\(\\) at the end of the data, and",
     lambda word: after(many(("softmax_tree", 3), FILES["d.vw"]),
                        lambda model: [getattr(model, word)(), model.save("m")])),
    (lambda: learner().save("none/m"), "(create) it",
     lambda word: lambda: (Path("none").mkdir(), learner().save("none/m"))),
    (lambda: learner().save("d.vw"), "give (another) name", lambda word: lambda: learner().save("m")),
    (lambda: [model := learner(), model.close(), model.predict("| a")], "create (another) learner",
     lambda word: lambda: learner().predict("| a")),
    # examples and labels given by a program
    (many(OAA3, ["1 | a", "9 | b"]), "use on_bad_line (skip)",
     lambda word: many(OAA3, ["1 | a", "9 | b"], on_bad_line=word)),
    (lambda: learner().predict("1 | a\n2 | b"), "go to learn_many\\(\\) and (predict_many)\\(\\)",
     lambda word: lambda: getattr(learner(), word)("1 | a\n2 | b")),
    (many((), ["a | b", "c"], ["x", "y"]), "give (xclass.Documents)\\(texts\\)",
     lambda word: many((), xclass.Documents(["a | b", "c"]), ["x", "y"])),
    (after(many(MULTICLASS, TEXTS, LABELS), lambda model: model.predict_many(["| a"])), "give (xclass.Documents)\\(",
     lambda word: after(many(MULTICLASS, TEXTS, LABELS), lambda model: model.predict_many(xclass.Documents(["| a"])))),
    (lambda: learner().learn(ROWS[0], 1), "(learn_many)\\(X\\[:1\\], \\[3\\]\\)",
     lambda word: lambda: getattr(learner(), word)(ROWS[:1], [3])),
    (many(OAA3, {"a": 1}, [1]), "call (learn)\\(\\) or", lambda word: lambda: getattr(learner(), word)({"a": 1}, 1)),
    (many(OAA3, ["a"], "x"), "give a (list), with one", lambda word: many(OAA3, ["a"], ["x"], **NAMED)),
    (many(OAA3, [["a", "b"]], [1]), "' '.(join)\\(words\\)",
     lambda word: many(OAA3, [getattr(" ", word)(["a", "b"])], [1])),
    (many(OAA3, ["a"], [True]), "give names, such as '(True)'", lambda word: many(OAA3, ["a"], [word], **NAMED)),
    (many(OAA3, ["a"], [""], **NAMED), "give (None) for no label", lambda word: many(OAA3, ["a"], [None], **NAMED)),
    (many(OAA3, ["a"], [[1, 2]]), "use (multilabel),", lambda word: many((word,), ["a"], [[1, 2]])),
    (many(OAA3, ["a"], ["x,y"], **NAMED), "write (;) in its place",
     lambda word: many(OAA3, ["a"], [f"x{word}y"], **NAMED)),
    (many(("multilabel",), ["a", "b"], [["x,y"], ["z"]]), "write (;) in its place",
     lambda word: many(("multilabel",), ["a", "b"], [[f"x{word}y"], ["z"]])),
    (many(OAA2, list("abc"), list("xyz"), **NAMED), "a larger number of (classes)",
     lambda word: many(("oaa",), list("abc"), list("xyz"), **{word: 3}, **NAMED)),
    (many(MULTICLASS, MANY, [f"['a' 'b{i % 3}']" for i in range(60)]),
     "(list) of labels for each example, which multil",
     lambda word: many(("multilabel",), MANY, [["a", f"b{i % 3}"] for i in range(60)])),
    (many(MULTICLASS, MANY, CELLS), "which (multilabel) learns",
     lambda word: many((word,), MANY, [cell.split(";") for cell in CELLS])),
    (many(MULTICLASS, MANY, [f"__label__{i % 3}" for i in range(60)]), "here; (leave it out)",
     lambda word: many(MULTICLASS, MANY, [f"{i % 3}" for i in range(60)])),
    (lambda: learner(noconstant=True).learn_many(next(xclass.read_vw("d.vw"))), "read_vw\\(..., (noconstant)=True\\)",
     lambda word: lambda: learner(noconstant=True).learn_many(next(xclass.read_vw("d.vw", **{word: True})))),
    (lambda: learner(("multilabel",)).learn_many(next(xclass.read_vw("d.vw"))), 'read_vw\\(..., labels="(lists)"\\)',
     lambda word: lambda: learner(("multilabel",)).learn_many(next(xclass.read_vw("d.vw", labels=word)))),
    (after(many(OAA2, ["1 |text a", "2 |text b"] * 20), lambda model: model.predict("a b")), "write `(\\|text )words",
     lambda word: after(many(OAA2, ["1 |text a", "2 |text b"] * 20), lambda model: model.predict(f"{word}a b"))),
    (many(("cpt", 3), WIDE, THREE), "try means or (multiclass)$", lambda word: many((word,), WIDE, THREE)),
    (many(("cpt", 3), WIDE, THREE), "try (means) or", lambda word: many((word,), WIDE, THREE)),
    (many(MULTICLASS, DICTIONARIES, THREE), "give an (array),", lambda word: many(MULTICLASS, WIDE, THREE)),
    (many(OAA3, ["1 | a:1e30"] * 3, learning_rate=1e30), "or lower (learning_rate)$",
     lambda word: many(OAA3, ["1 | a:1e3"] * 3, **{word: 0.5})),
    (many(OAA3, ["a"], [1], [1e-38]), "give a larger weight, or (0) to",
     lambda word: many(OAA3, ["a"], [1], [int(word)])),
    (many(OAA3, ["1 | a\n2 | b", "1 | b"]), "give each line as a (text) of its own",
     lambda word: many(OAA3, ["1 | a", "2 | b", "1 | b"])),
    (after(many(OAA3, ["a"], [1]), lambda model: model.learn_many(["a"], ["x"])), "are numbers: give (numbers)$",
     lambda word: after(many(OAA3, ["a"], [1]), lambda model: model.learn_many(["a"], [2]))),
    (many(OAA3, ["a"] * 2, [1, 2], np.ones((2, 2))), "give (one) for each",
     lambda word: many(OAA3, ["a"] * 2, [1, 2], np.ones(2))),
    (many(MULTICLASS, [{b"a": 1}], ["p"]), "name of bytes; (decode) it",
     lambda word: many(MULTICLASS, [{getattr(b"a", word)(): 1}], ["p"])),
    (many(MULTICLASS, ROWS * np.nan, ["p", "q"]), "(fill in) or leave out missing",
     lambda word: many(MULTICLASS, np.nan_to_num(ROWS * np.nan) + ROWS, ["p", "q"])),
    # what a program gives: options, examples, labels and weights
    (from_command("--oaa 3 --cpt 3"), "choose (one) reduction", lambda word: from_command("--oaa 3")),
    (from_command('--oaa 3 "a'), "(close) every quotation",
     lambda word: from_command("--oaa 3 --named_labels 'a,b,c'")),
    (learned(OAA3, layout="odd", weight_layout="odd"), "give it (once)", lambda word: learned(OAA3, layout="odd")),
    (learned(("scalar", 3)), "choose (another) reduction", lambda word: learned(OAA3)),
    (learned(("scalar",), binary=True, learn_names=True), "choose a reduction, or (multiclass)",
     lambda word: learned((word,), learn_names=True)),
    (learned(OAA3, named_labels="a,b"), "give as many (names) as", lambda word: learned(OAA3, named_labels="a,b,c")),
    (learned(("oaa", 1), named_labels="a,b", **NAMED), "at least as many (classes)",
     lambda word: learned(("oaa",), named_labels="a,b", **{word: 2}, **NAMED)),
    (learned(OAA3, ignore=["a" * 99] * 9999), "give (fewer)", lambda word: learned(OAA3, ignore=["a"])),
    (learned(OAA3, ngram=["x"]), "such as (2), or", lambda word: learned(OAA3, ngram=[word])),
    (learned(OAA3, ngram=["x"]), "such as (a2)$", lambda word: learned(OAA3, ngram=[word])),
    (learned(OAA3, ngram=["40"], skips=["40"]), "a smaller (ngram)",
     lambda word: learned(OAA3, skips=["2"], **{word: ["3"]})),
    (learned(MULTICLASS, text_chars="3"), "as in (\\S+)$", lambda word: learned(MULTICLASS, text_chars=word)),
    (learned(("recall_tree", 3), interactions=["a\\x88"], ignore_linear=["a"]), "leave out (ignore_linear)",
     lambda word: learned(("recall_tree", 3), interactions=["a\\x88"])),
    (of_file(3), "path of a file as (text)", lambda word: of_file("d.vw")),
    (lambda: learner().learn("1 | a", 2), "give (one) of them", lambda word: lambda: learner().learn("1 | a")),
    (many(MULTICLASS, TEXTS), "give (one) for each example", lambda word: many(MULTICLASS, TEXTS, LABELS)),
    (many(MULTICLASS, TEXTS), "as in `(.*)`", lambda word: many(MULTICLASS, [word])),
    (many(MULTICLASS, TEXTS, ["p"]), "give (one) for each example", lambda word: many(MULTICLASS, TEXTS, LABELS)),
    (many(OAA3, TEXTS, {1, 2}), "give a (list), with one", lambda word: many(OAA3, TEXTS, [1, 2] * 3)),
    (many(OAA3, ["a"], [1j]), "give a (number) for each", lambda word: many(OAA3, ["a"], [1])),
    (many(("multilabel",), TEXTS, [["p"]]), "give one, or a (list) of them",
     lambda word: many(("multilabel",), TEXTS, [["p"]] * 6)),
    (many(("multilabel_oaa", 3), ["a", "b"], np.eye(3, dtype=int)), "give a (row) for each example",
     lambda word: many(("multilabel_oaa", 3), ["a", "b"], np.eye(3, dtype=int)[:2])),
    (many(("multilabel_oaa", 3), ["a", "b"], np.array([[0, 2], [1, 3]])), "as a (list of lists)",
     lambda word: many(("multilabel_oaa", 3), ["a", "b"], [[0, 2], [1, 2]])),
    (many(("multilabel_oaa", 3), ["a", "b"], np.ones((2, 4), int)), "(one) for each of the 3 labels",
     lambda word: many(("multilabel_oaa", 3), ["a", "b"], np.ones((2, 3), int))),
    (after(many(("multilabel",), ["a"], [["p"]]), lambda model: model.learn_many(["a", "b"], np.ones((2, 2), int))),
     "give (lists) of names", lambda word: many(("multilabel",), ["a", "b"], [["p"], ["q"]])),
    (lambda: learner().learn_file(os.pipe()[0]), "path of a file as (text)", lambda word: of_file("d.vw")),
    (lambda: learner(MULTICLASS, [{1: 2.0, "1": 3.0}], ["p"]), "each a (name) of its own",
     lambda word: many(MULTICLASS, [{1: 2.0, "2": 3.0}], ["p"])),
    # matrices
    (many(MULTICLASS, np.zeros((2, 3, 4)), ["p", "q"]), "numbers in (two) dimensions",
     lambda word: many(MULTICLASS, ROWS, ["p", "q"])),
    (many(MULTICLASS, sparse(data=[1j, 1j]), ["p", "q"]), "(real) numbers",
     lambda word: many(MULTICLASS, sparse(), ["p", "q"])),
    (many(MULTICLASS, sparse(indices=[0.5, 1]), ["p", "q"]), "give (whole) numbers",
     lambda word: many(MULTICLASS, sparse(), ["p", "q"])),
    (many(MULTICLASS, sparse(indices=np.ma.array([0, 1], mask=[1, 0])), ["p", "q"]), "masked; give a (whole) number",
     lambda word: many(MULTICLASS, sparse(), ["p", "q"])),
    (many(MULTICLASS, sparse(indptr=[1, 1, 2]), ["p", "q"]), "has to start at (0)",
     lambda word: many(MULTICLASS, sparse(indptr=[int(word), 1, 2]), ["p", "q"])),
    (many(MULTICLASS, sparse(indptr=[0, 2], shape=(2, 3)), ["p", "q"]), "so give (3)",
     lambda word: many(MULTICLASS, sparse(shape=(2, 3)), ["p", "q"])),
    (many(MULTICLASS, sparse(shape=(2,)), ["p", "q"]), "give a (matrix)",
     lambda word: many(MULTICLASS, sparse(shape=(2, 3)), ["p", "q"])),
    (many(MULTICLASS, sparse(format="lil"), ["p", "q"]), "give compressed (sparse) rows",
     lambda word: many(MULTICLASS, sparse(format="csr"), ["p", "q"])),
    (after(many(MULTICLASS, TEXTS, LABELS), lambda model: model.learn_file("t.csv")), "give (fastText) or",
     lambda word: after(many(MULTICLASS, TEXTS, LABELS), lambda model: model.learn_file("d.vw"))),
    (lambda: learner().learn_many(changed(next(xclass.read_vw("d.vw")), start=[0, 2, 9])), "and end at (4)",
     lambda word: lambda: learner().learn_many(changed(next(xclass.read_vw("d.vw")), start=[0, 2, int(word)]))),
    # files of models, and checks
    (lambda: learner().save("."), "give the (name of a file)", lambda word: lambda: learner().save("m")),
    (lambda: xclass.load("."), "the name of a (model file)", lambda word: lambda: xclass.load(saved("m"))),
    (lambda: xclass.check_reduction("ova"), "give one of (scalar),",
     lambda word: lambda: xclass.check_reduction(word)),
    (lambda: [os.mkfifo("pipe"), learner().learn_file("pipe", passes=2)], "read only once; give a (file)",
     lambda word: of_file("d.vw", passes=2)),
    (lambda: learner().learn_many(changed(next(xclass.read_vw("d.vw")), dense=np.ones(2))), "numbers in (two) dim",
     lambda word: lambda: learner(MULTICLASS).learn_many(changed(next(xclass.read_vw("d.vw")), dense=np.ones((2, 1))))),
    (lambda: learner().learn_many(changed(next(xclass.read_vw("d.vw")), dense=ROWS)), "(leave) out the block",
     lambda word: lambda: learner().learn_many(next(xclass.read_vw("d.vw")))),
    (many(MULTICLASS, SimpleNamespace(tocsr=None, indptr=[0], indices=[], data=[]), []), "give (one) of SciPy",
     lambda word: many(MULTICLASS, sparse(shape=(2, 2)), ["p", "q"])),
    (lambda: learner(scores=True).predict("| a", 2), "; (leave it out), or",
     lambda word: lambda: learner().predict("| a", 2)),
    (lambda: learner(scores=True).predict("| a", 2), "leave out (k)",
     lambda word: lambda: learner(scores=True).predict("| a")),
    # merging
    (merging(ONE, OTHER, options=("cpt", 8), **NAMED), "give it as (base)", lambda word: lambda: with_base(word)),
    (merging(ONE, OTHER, options=("multilabel",), **NAMED), "the same named_labels (@FILE)",
     lambda word: merging(ONE, OTHER, options=("multilabel",), named_labels="@names.txt")),
    (merging(ONE, "d | w\n", options=OAA3, **NAMED), "train them with (classes) 4",
     lambda word: merging(ONE, "d | w\n", options=("oaa", 4), **NAMED)),
    (lambda: xclass.merge([learner(OAA2, FILES["d.vw"]), learner(OAA2, FILES["x.vw"], bits=13)]), "all the same (bits)",
     lambda word: lambda: xclass.merge([learner(OAA2, FILES["d.vw"], **{word: 13}), learner(OAA2, "1 | x", bits=13)])),
    (lambda: xclass.merge([saved("m", predict_only_model=True), saved("n")]), "save it without (this) option",
     lambda word: lambda: xclass.merge([saved("m", bits=13), learner(OAA2, "1 | x", bits=13)])),
    (lambda: xclass.merge([learner(OAA2, ROWS + len(one), [1, 2], **one) for one in (IDENTITY, {})]),
     "the same (feature_hash)",
     lambda word: lambda: xclass.merge([learner(OAA2, np.array([[k, 2]]), [1], **IDENTITY) for k in (1, 2)])),
    (lambda: xclass.merge([learner(OAA2, "tea | a", **NAMED), learner(OAA2, "1 | a")]), "train both with (names),",
     lambda word: lambda: xclass.merge([learner(OAA2, f"{name} | a", **NAMED) for name in ("tea", "rum")])),
    (lambda: xclass.merge([learner(OAA2, "tea | a", **NAMED), learner(OAA2, "1 | a")]), "or both (without)",
     lambda word: lambda: xclass.merge([learner(OAA2, f"{number} | a") for number in "12"])),
    (lambda: xclass.merge([learner(("means",), ROWS[:, :width], ["p", "q"]) for width in (2, 3)]),
     "from rows of the (same) columns",
     lambda word: lambda: xclass.merge([learner(("means",), ROWS + k, ["p", "q"]) for k in range(2)])),
    (lambda: xclass.merge([]), "such as \\[('a.bin')", lambda word: lambda: xclass.merge([saved("a.bin")])),
]  # fmt: skip

# tables: a call that learns from one, and for its message the same call as the message advises
AB, WORDS = {"a": [1, 2], "b": [3, 4]}, {"a": ["x", "y"], "b": ["z", "w"]}
OF_TABLES = [
    (lambda: xclass.merge([tabled({name: [1, 2]})() for name in "ab"]), "train both from the (same) columns",
     lambda word: lambda: xclass.merge([tabled({"a": [1, k]})() for k in range(2)])),
    (many(MULTICLASS, LazyFrame(), ["p", "q"]), "give a (DataFrame) of pandas", lambda word: tabled(AB)),
    (lambda: learner(MULTICLASS, frame([[1, 2], [3, 4]]).set_axis(["a", "a"], axis=1), ["p", "q"]),
     "each a (name) of its own", lambda word: tabled(AB)),
    (tabled({"": [1, 2]}), "a name that is (text)", lambda word: tabled({word: [1, 2]})),
    (tabled({"a" * (1 << 24): [1, 2], "b": [3, 4]}), "or (leave out) columns$", lambda word: tabled({"b": [3, 4]})),
    (tabled({"a": [1, 2], "b": ["x", "y"]}, dense=["b"]), "name columns of (numbers)",
     lambda word: tabled({"a": [1, 2], "b": ["x", "y"]}, dense=["a"])),
    (tabled({"a": [[1, 2], [3]]}), "lists of (equal) length", lambda word: tabled({"a": [[1, 2], [3, 4]]})),
    (tabled({"a": [[1, 2], [3, None]]}), "lists of numbers, (none) missing",
     lambda word: tabled({"a": [[1, 2], [3, 4]]})),
    (tabled({"a": [1, 2]}, {"a": ["x"]}), "give (numbers), or", lambda word: tabled({"a": [1, 2]}, {"a": [3]})),
    (tabled({"a": [1, 2]}, {"a": ["x"]}), "column as (text) from",
     lambda word: tabled({"a": ["1", "y"]}, {"a": ["x"]})),
    (after(tabled(WORDS), lambda model: model.predict_many(np.array([["x", "y", "z"]]))),
     "give the columns ('a' and 'b') in this order|give the columns ('a', 'b') in this order",
     lambda word: after(tabled(WORDS), lambda model: model.predict_many(np.array([["x", "y"]])))),
    (after(tabled(WORDS), lambda model: model.predict_many(np.array([["x", "y", "z"]]))), "or a (DataFrame)",
     lambda word: tabled(WORDS, {"a": ["x"], "b": ["y"]})),
    (after(tabled(AB), lambda model: model.predict_many(ROWS)), "give a (DataFrame) or",
     lambda word: tabled(AB, {"a": [1], "b": [3]})),
    (after(tabled(AB), lambda model: model.predict_many(ROWS)), "or (dict)ionaries with these columns",
     lambda word: after(tabled(AB), lambda model: model.predict_many([{"a": 1, "b": 3}]))),
    (after(tabled(AB), lambda model: model.predict_many(np.array([[1, 3]]))), "give a (DataFrame), whose",
     lambda word: tabled(AB, {"a": [1], "b": [3]})),
    (tabled({"a": [1 << 24, (1 << 24) + 1]}), "convert the column to categories, or to (text)$",
     lambda word: tabled({"a": [str(1 << 24), str((1 << 24) + 1)]})),
    (tabled({"a": [b"x", "y"]}), "convert the column to (text)", lambda word: tabled({"a": ["x", "y"]})),
    (tabled({"a": np.array([1, 2], "M8[s]")}), "to numbers or to (text)$", lambda word: tabled({"a": ["1", "2"]})),
    (tabled(AB, {"a": [1]}), "give (all) columns of the model", lambda word: tabled(AB, {"b": [1], "a": [3]})),
    (after(many(("multilabel",), ["a"], [["p"]]), lambda model: model.learn_many(["a", "b"], np.eye(2, dtype=int))),
     "a (DataFrame) whose columns are the names",
     lambda word: lambda: learner(("multilabel",), ["a", "b"], frame({"p": [1, 0], "q": [0, 1]}))),
]  # fmt: skip

# scikit-learn: a call, and for its message the same call as the message advises
OF_SKLEARN = [
    (fitted(loss="log_loss"), WORD, lambda word: fitted(loss=word)),
    (fitted(reduction="oaa", options={"alpha": 0.1}), WORD, lambda word: fitted(reduction="oaa", options={word: 0.1})),
    (fitted(options="--passes 3"), "give (passes)=N", lambda word: fitted(**{word: 3})),
    (fitted(options={"passes": 3}), "give (passes)=3", lambda word: fitted(**{word: 3})),
    (fitted(options="--threads 2"), "give (n_jobs)=N", lambda word: fitted(**{word: 2})),
    (fitted(options="--progress 5"), "give (verbose)=1", lambda word: fitted(**{word: 1})),
    (fitted(options="--quiet"), "give (verbose)=0", lambda word: fitted(**{word: 0})),
    (fitted(options={"bits": 12}), "give (bits)=12", lambda word: fitted(**{word: 12})),
    (fitted(options={"seed": 1}), "mean '(random_seed)'", lambda word: fitted(random_state=1)),
    (fitted(options={"random_seed": 1}), "give (random_state)=1", lambda word: fitted(**{word: 1})),
    (fitted(options={"loss_function": "logistic"}), "give (loss)='logistic'",
     lambda word: fitted(**{word: "logistic"})),
    (fitted(options="--oaa 3"), "give reduction='(oaa)'", lambda word: fitted(reduction=word)),
    (fitted(reduction="cpt", options={"tree_noise": 0.1}), "give (trees) 2 or more",
     lambda word: fitted(reduction="cpt", options={"tree_noise": 0.1, word: 2})),
    (fitted(reduction="oaa", options={"quantile_tau": 0.3}), "needs (loss) quantile",
     lambda word: fitted(reduction="oaa", options={"quantile_tau": 0.3}, **{word: "quantile"})),
    (fitted(reduction="multilabel"), "give it to (XMultilabelClassifier)", lambda word: lambda: estimator(word)),
    (lambda: estimator("XMultilabelClassifier", reduction="oaa"), "give it to (XClassifier)",
     lambda word: lambda: estimator(word, reduction="oaa")),
    (fitted(options={"threshold": 0.2}), "belongs to (\\w+)\\(reduction='multilabel'\\)",
     lambda word: lambda: estimator(word, y=[["p"], ["q"]] * 3, options={"threshold": 0.2})),
    (lambda: estimator(options="--top_k 2").predict(TEXTS), "call (predict_top_k)\\(X, k\\)",
     lambda word: lambda: getattr(estimator(), word)(TEXTS, 2)),
    (lambda: estimator(options={"probabilities": True}), "call (predict_proba)\\(X\\)",
     lambda word: lambda: getattr(estimator(), word)(TEXTS)),
    (lambda: estimator(options="-f m"), "the attribute (learner_) is a Learner: call save\\(path\\)",
     lambda word: lambda: getattr(estimator(), word).save("m")),
    (lambda: estimator(options="-d d.vw"), "the attribute (learner_) is a Learner: call learn_file\\(path\\)",
     lambda word: lambda: getattr(estimator(y=[1, 2] * 3), word).learn_file("d.vw")),
    (lambda: estimator().set_params(options__bitz=3), "mean '(options__\\w+)'",
     lambda word: lambda: estimator().set_params(**{word: 3})),
    (lambda: estimator("XClassifier", y=[["p", "q"], ["q"]] * 3), "; (XMultilabelClassifier) learns lists",
     lambda word: lambda: estimator(word, y=[["p", "q"], ["q"]] * 3)),
    (lambda: estimator(X=MANY, y=[f"['a', 'b{i % 3}']" for i in range(60)]),
     "list of labels for each example, which (XMultilabelClassifier)\\(reduction='multilabel'\\)",
     lambda word: lambda: estimator(word, X=MANY, y=[["a", f"b{i % 3}"] for i in range(60)], reduction="multilabel")),
    (lambda: estimator(X=MANY, y=[f"__label__{i % 3}" for i in range(60)]), "here; (leave it out)",
     lambda word: lambda: estimator(X=MANY, y=[f"{i % 3}" for i in range(60)])),
    (lambda: estimator(y=["x", "y", "z"] * 2, reduction="oaa", max_classes=2), "give (max_classes)=3",
     lambda word: lambda: estimator(y=["x", "y", "z"] * 2, reduction="oaa", **{word: 3})),
    (lambda: estimator(y=["x", "y", "z"] * 2, reduction="oaa", max_classes=2), "such as '(multiclass)'",
     lambda word: lambda: estimator(y=["x", "y", "z"] * 2, reduction=word)),
    (lambda: estimator(X="a b", y=["p"]), "such as (\\['a b'\\])",
     lambda word: lambda: estimator(X=json.loads(word.replace("'", '"')), y=["p"])),
    (lambda: estimator(y=["a b", "a_b"] * 3), "(rename) one", lambda word: lambda: estimator(y=["a b", "c"] * 3)),
    (lambda: estimator(y=["p", None] * 3), "(leave) such examples out",
     lambda word: lambda: estimator(X=TEXTS[::2], y=["p"] * 3)),
    (lambda: estimator(class_weight={1: 2.0, 2: 1.0}, y=["1", "2"] * 3), "keys of the (type) of the labels",
     lambda word: lambda: estimator(class_weight={"1": 2.0, "2": 1.0}, y=["1", "2"] * 3)),
    (lambda: new_estimator(class_weight="balanced").partial_fit(TEXTS, LABELS), "give partial_fit a (dict)ionary",
     lambda word: lambda: new_estimator(class_weight={"p": 1, "q": 2}).partial_fit(TEXTS, LABELS)),
    (lambda: new_estimator(class_weight="balanced").partial_fit(TEXTS, LABELS), "only (fit) takes it",
     lambda word: lambda: getattr(new_estimator(class_weight="balanced"), word)(TEXTS, LABELS)),
    (lambda: new_estimator("softmax_tree").partial_fit, "call (fit)$",
     lambda word: lambda: getattr(new_estimator("softmax_tree"), word)(TEXTS, LABELS)),
    (lambda: estimator(reduction="ect").predict_proba, "choose one of (multiclass),",
     lambda word: lambda: estimator(reduction=word).predict_proba(TEXTS)),
    (lambda: estimator(reduction="means"), "choose reduction='(multiclass)'",
     lambda word: lambda: estimator(reduction=word)),
    (lambda: estimator(reduction="means"), "give an (array) of numbers",
     lambda word: lambda: estimator(reduction="means", X=getattr(np, word)(ROWS), y=["p", "q"])),
    (lambda: new_estimator("softmax_tree").partial_fit(TEXTS, LABELS, ["p", "q"]), "not piece by piece; call (fit)",
     lambda word: lambda: getattr(new_estimator("softmax_tree"), word)(TEXTS, LABELS)),
    (lambda: estimator(warm_start=True).set_params(reduction="oaa").fit(TEXTS, LABELS), "call fit without (warm_start)",
     lambda word: lambda: estimator().set_params(reduction="oaa", **{word: False}).fit(TEXTS, LABELS)),
    (lambda: estimator().partial_fit(TEXTS, [1, 2] * 3), "or fit a new (estimator)",
     lambda word: lambda: estimator(y=[1, 2] * 3)),
    (lambda: estimator("XMultilabelClassifier", y=[["a"], None] * 3), "give an empty (list)",
     lambda word: lambda: estimator("XMultilabelClassifier", y=[["a"], []] * 3)),
    (lambda: estimator(X=TEXTS[:2], y=label_column()), "by (keep_default_na)=False",
     lambda word: lambda: estimator(X=TEXTS[:2], y=label_column(**{word: False}))),
    (lambda: new_estimator().fit(TEXTS, LABELS, sample_weight=[0] * 6), "(give others|at least one non-zero)",
     lambda word: lambda: new_estimator().fit(TEXTS, LABELS, sample_weight=[1] * 6)),
    (lambda: estimator().predict([]), "give at least (one)", lambda word: lambda: estimator().predict(TEXTS[:1])),
    (lambda: estimator().predict([3]), "fitted on texts; give (texts)",
     lambda word: lambda: estimator().predict(TEXTS)),
    (lambda: estimator().predict(ROWS), "give the (same)", lambda word: lambda: estimator().predict(TEXTS)),
    (lambda: estimator(X=ROWS, y=["p", "q"]).predict(TEXTS), "give the (same)",
     lambda word: lambda: estimator(X=ROWS, y=["p", "q"]).predict(ROWS)),
    (lambda: estimator(X=ROWS[0], y=LABELS[:3]), "give a (row) for each",
     lambda word: lambda: estimator(X=ROWS[0][:, None], y=LABELS[:3])),
    (lambda: estimator(X=frame({"a": [1, 2], "b": ["x", "y"]}), y=["p", "q"]).predict(ROWS[:, :2]),
     "give a (DataFrame) with these columns",
     lambda word: lambda: estimator(X=frame({"a": [1, 2], "b": ["x", "y"]}), y=["p", "q"]).predict(
         frame({"a": [1], "b": ["x"]}))),
    (lambda: estimator(X=frame({"a": []}), y=[]), "give at least (one)",
     lambda word: lambda: estimator(X=frame({"a": [1, 2]}), y=["p", "q"])),
    (lambda: estimator(y=[]), "give at least one (label)", lambda word: estimator),
    (lambda: estimator(y=["p", 3] * 3), "labels of one (type)", lambda word: lambda: estimator(y=["p", "3"] * 3)),
    (lambda: estimator("XMultilabelClassifier", y=[["a"], None] * 3), "(leave) such examples out",
     lambda word: lambda: estimator("XMultilabelClassifier", X=TEXTS[::2], y=[["a"]] * 3)),
    (lambda: estimator("XMultilabelClassifier", y=[[]] * 6), "give at least one (label)",
     lambda word: lambda: estimator("XMultilabelClassifier", y=[["a"], []] * 3)),
    (lambda: estimator("XMultilabelClassifier", X=ROWS, y=np.eye(2, dtype=int)).partial_fit(ROWS, np.ones((2, 3), int)),
     "(one) for each of the 2 labels",
     lambda word: lambda: estimator("XMultilabelClassifier", X=ROWS, y=np.eye(2, dtype=int)).partial_fit(
         ROWS, np.ones((2, 2), int))),
    (lambda: estimator(options="--oaa 3 --cpt 3"), "choose (one) reduction",
     lambda word: lambda: estimator(reduction="oaa")),
]  # fmt: skip
# River
OF_RIVER = [
    (lambda: of_river("Classifier", "scalar"), "choose (another) reduction", lambda word: of_river),
    (lambda: of_river("Classifier", "multilabel"), "give it to (\\w+)",
     lambda word: lambda: of_river(word, "multilabel")),
    (lambda: of_river("MultiLabelClassifier", "oaa", 3), "give it to (\\w+)",
     lambda word: lambda: of_river(word, "oaa", 3)),
    (lambda: of_river("Classifier", "softmax_tree", 3), "such as '(multiclass)'",
     lambda word: lambda: of_river("Classifier", word)),
    (lambda: of_river("Classifier", "softmax_tree", 3), "or use (xclass.Learner)",
     lambda word: lambda: xclass.Learner("softmax_tree", 3)),
    (lambda: of_river("Classifier", "oaa"), "such as (classes)=10",
     lambda word: lambda: of_river("Classifier", "oaa", **{word: 10})),
    (lambda: of_river(passes=2), "the attribute (learner) is a Learner: call learn_file\\(path, passes=N\\)",
     lambda word: lambda: getattr(of_river(), word).learn_file("names.vw", passes=2)),
    (lambda: of_river(bitz=12), WORD, lambda word: lambda: of_river(**{word: 12})),
    (lambda: of_river().learn_one({"a": 1}, float("nan")), "give (None) for no label",
     lambda word: lambda: of_river().learn_one({"a": 1}, None)),
    (lambda: [one := of_river(), one.learn_one({"a": 1}, "a b"), one.learn_one({"a": 1}, "a_b")],
     "that (differ) as text",
     lambda word: lambda: [one := of_river(), one.learn_one({"a": 1}, "a b"), one.learn_one({"a": 1}, "c")]),
    (lambda: of_river().learn_one(["a"], "x"), "give a (dict)ionary of features, name -> value",
     lambda word: lambda: of_river().learn_one({"a": 1}, "x")),
    (lambda: of_river().learn_many(ROWS, ["x", "y"]), "give a (pandas.DataFrame)",
     lambda word: lambda: of_river().learn_many(frame(ROWS), ["x", "y"])),
    (lambda: of_river("MultiLabelClassifier").learn_one({"a": 1}, ["x"]), "label -> (bool)",
     lambda word: lambda: of_river("MultiLabelClassifier").learn_one({"a": 1}, {"x": True})),
    (lambda: of_river("MultiLabelClassifier").learn_one({"a": 1}, {"x": None}), "give (True) or False",
     lambda word: lambda: of_river("MultiLabelClassifier").learn_one({"a": 1}, {"x": word == "True"})),
    (lambda: of_river().learn_one({"a": 1}, ""), "give (None) for no label",
     lambda word: lambda: of_river().learn_one({"a": 1}, None)),
    (lambda: of_river().learn_many(ROWS, ["x", "y"]), "or use (xclass.Learner) for other tables",
     lambda word: lambda: learner(MULTICLASS, ROWS, ["x", "y"])),
    (lambda: of_river("MultiLabelClassifier").learn_one(["a"], {"x": True}), "give a (dict)ionary of features",
     lambda word: lambda: of_river("MultiLabelClassifier").learn_one({"a": 1}, {"x": True})),
    (lambda: of_river().predict_one(["a"]), "give a (dict)ionary of features, name -> value",
     lambda word: lambda: of_river().predict_one({"a": 1})),
]  # fmt: skip


def ended(server):
    server.stop_soon()


def with_token(token=None, mode=None):
    """Return a call that serves HTTP with a token in a file, which is written anew if it is given."""

    def serve_it():
        if token is not None:
            Path("token").write_text(token)
            Path("token").chmod(mode or 0o600)
        serve.run(learner(), port=0, http="0", token_file="token", ready=ended)

    return serve_it


def in_workspace(words, use=lambda model: None, **keywords):
    def call():
        with Workspace(f"--quiet {words}", **keywords) as model:
            use(model)

    return call


def of_status_0(*words):
    assert run(*words).status == 0


# `serve.run` of a program
OF_SERVE = [
    (lambda: serve.run(learner(), port=0, checkpoint=5, ready=ended), "needs (save_to) FILE",
     lambda word: lambda: serve.run(learner(), port=0, checkpoint=5, ready=ended, **{word: "m"})),
    (lambda: serve.run(learner(), port=0, learn=False, save_to="m"), "with (learn=False) nothing is learned; leave one",
     lambda word: lambda: serve.run(learner(), port=0, save_to="m", ready=ended)),
    (lambda: serve.run(learner(), port=0, allow_host="example.org"), "without (http) PORT; give that",
     lambda word: lambda: serve.run(learner(), port=0, allow_host="example.org", ready=ended, **{word: "0"})),
    (lambda: serve.run(learner(), port=0, maxline=9), "mean '(max_line)'",
     lambda word: lambda: serve.run(learner(), port=0, ready=ended, **{word: 99})),
    (lambda: serve.run(learner(), host="192.0.2.1", port=1), "give another (host) or",
     lambda word: lambda: serve.run(learner(), port=0, ready=ended, **{word: "127.0.0.1"})),
    (lambda: serve.run(learner(("softmax_tree", 3)), port=0), "serve it with (learn=False)",
     lambda word: lambda: serve.run(learner(("softmax_tree", 3), FILES["d.vw"]), learn=False, port=0, ready=ended)),
    (lambda: serve.run(learner(MULTICLASS, dense="x"), port=0), "to a new model, as in dense (x:4)",
     lambda word: lambda: serve.run(learner(MULTICLASS, dense=word), port=0, ready=ended)),
    (lambda: serve.run(learner(), socket="d.vw"), "give (another) name",
     lambda word: lambda: serve.run(learner(), socket="lines", ready=ended)),
    (beside_a_listener("l", lambda: serve.run(learner(), socket="l", ready=ended)),
     "another server listens there; give (another) name",
     lambda word: lambda: serve.run(learner(), socket="lines", ready=ended)),
    (lambda: serve.run(learner(), socket="lines", port_file="p"), "leave (it) out",
     lambda word: lambda: serve.run(learner(), socket="lines", ready=ended)),
    (with_token("0123456789abcdef", 0o644), "change that by (chmod o-r token)",
     lambda word: lambda: (subprocess.run(word.split(), check=True), with_token()())),
    (with_token("short"), "give at least (16) without blanks",
     lambda word: with_token("a" * int(word))),
    (lambda: serve.run(learner(), port=0, token_file="names.txt"), "without (http) PORT; give that",
     lambda word: with_token("a" * 40)),
    (lambda: serve.run(learner(), port=0, http="tea"), "allowed are a port from (0) to",
     lambda word: lambda: serve.run(learner(), port=0, http=word, ready=ended)),
    (lambda: serve.run(learner(), port=0, http="0", allow_host="tea.example:80"), "such as (example.org), without a",
     lambda word: lambda: serve.run(learner(), port=0, http="0", allow_host=word, ready=ended)),
]  # fmt: skip

# a Workspace, whose options are those of the command: its words and a call, its advice, and the same as advised
OF_WORKSPACE = [
    (in_workspace("--oaa 2 --passes 2"), "give (data)=FILE", lambda word: in_workspace("--oaa 2", **{word: "d.vw"})),
    (in_workspace("--help"), "run `xclass (--help)`", lambda word: lambda: of_status_0(word)),
    (in_workspace("--oaa 2 --threads 2"), "by os.(sched_setaffinity)",
     lambda word: lambda: (getattr(os, word)(0, os.sched_getaffinity(0)), in_workspace("--oaa 2")())),
    (in_workspace("--oaa 2", lambda model: model.learn("x y z | a")), r"(Correct) the line$",
     lambda word: in_workspace("--oaa 2", lambda model: model.learn("1 y| a"))),
    (in_workspace("--oaa 2", lambda model: model.learn("tea | a")), "with (--learn_names)\\. Correct the line$",
     lambda word: in_workspace(f"--oaa 2 {word}", lambda model: model.learn("tea | a"))),
    (in_workspace("--oaa 2", lambda model: model.learn("1,2 | a")), "use (--multilabel), .* of labels$",
     lambda word: in_workspace(word, lambda model: model.learn("1,2 | a"))),
    (in_workspace("--oaa 2 --on_bad_line skip", lambda model: model.learn("9 | a")),
     "outside 1..(2) .*Correct the line$",
     lambda word: in_workspace("--oaa 2 --on_bad_line skip", lambda model: model.learn(f"{word} | a"))),
    (in_workspace("--oaa 2 --early_terminate 2"), "(leave it out)", lambda word: in_workspace("--oaa 2")),
    (in_workspace("--oaa 2", lerning_rate=1), "mean --(learning_rate)",
     lambda word: in_workspace("--oaa 2", **{word: 1})),
    (lambda: Workspace(arg_list="--oaa 2"), "must be a (list) of strings",
     lambda word: in_workspace("--oaa 2", arg_list=["--quiet"])),
    (in_workspace("--oaa 2", lambda model: model.get_log()), "with (enable_logging)=True",
     lambda word: in_workspace("--oaa 2", lambda model: model.get_log(), **{word: True})),
    (in_workspace("--oaa 2", lambda model: [model.finish(), model.learn("1 | a")]), "make another one, with (-i) FILE",
     lambda word: lambda: in_workspace(f"{word} {saved('m')}", lambda model: model.learn("1 | a"))()),
    (in_workspace("--oaa 2 -f w", lambda model: in_workspace("--oaa 2 -f w")()), "a file of its (own)",
     lambda word: in_workspace("--oaa 2 -f w", lambda model: in_workspace(f"--oaa 2 -f {word}")())),
    (in_workspace("--oaa 2", lambda model: model.predict("| a", 3)), "leave the (argument) out",
     lambda word: in_workspace("--oaa 2", lambda model: model.predict("| a"))),
    (in_workspace("--softmax_tree 2", lambda model: model.learn("1 | a")), "give (data)=FILE",
     lambda word: in_workspace("--softmax_tree 2", lambda model: model.predict("| a"), **{word: "d.vw"})),
    (in_workspace("--softmax_tree 2", lambda model: model.learn("1 | a")), "use xclass.(Learner)",
     lambda word: lambda: getattr(xclass, word)("softmax_tree", 2).learn_many("1 | a\n2 | b\n")),
    (in_workspace("--oaa 2", lambda model: model.predict({"a": [1]})), "give its (name)",
     lambda word: in_workspace("--oaa 2", lambda model: model.predict({"a": ["1"]}))),
    (in_workspace("--oaa 2", lambda model: model.predict(["| a"])), "give (one line)",
     lambda word: in_workspace("--oaa 2", lambda model: model.predict("| a"))),
    (in_workspace("--oaa 2 -f w", lambda model: in_workspace("--oaa 2 -f w")()), "(finish) it first",
     lambda word: in_workspace("--oaa 2 -f w", lambda model: (getattr(model, word)(), in_workspace("--oaa 2 -f w")()))),
    (in_workspace("--oaa 2", lambda model: model.get_weight("a")), "(get_weight_from_name) takes the name",
     lambda word: in_workspace("--oaa 2", lambda model: getattr(model, word)("a"))),
    (in_workspace("--oaa 2", lambda model: model.get_weight("a")), "(num_weights)\\(\\) is",
     lambda word: in_workspace("--oaa 2", lambda model: model.get_weight(getattr(model, word)() - 1))),
    (in_workspace("--oaa 2 --audit", lambda model: model.learn({"a": ["b"]})), "--audit needs (lines) of text",
     lambda word: in_workspace("--oaa 2 --audit", lambda model: model.learn("1 | b"))),
    (in_workspace("--oaa 2", pickle.dumps), "call (save)\\(FILE\\), and make another one with -i FILE",
     lambda word: in_workspace("--oaa 2", lambda model: (getattr(model, word)("w2"), in_workspace("-i w2")()))),
]  # fmt: skip


def new_estimator(*reduction, **parameters):
    from xclass.sklearn import XClassifier

    return XClassifier(*reduction, bits=12, **parameters)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("advice")
    with contextlib.chdir(folder):
        for name, text in FILES.items():
            Path(name).write_text(text)
        yield folder


def said(call):
    """Return the messages of a call, and whether it has failed."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except (xclass.XclassError, ValueError, TypeError, AttributeError) as error:
            return [str(error)], True
    return [str(one.message) for one in caught if isinstance(one.message, xclass.XclassWarning)], False


def follow(call, advice, followed, takes_flags=False):
    first, _ = said(call)
    shown = next((found for one in first if (found := re.search(advice, one))), None)
    assert shown is not None, first
    shown_flags = re.findall(
        FLAG, re.sub(r"^\S+ belongs|^--\w+ and --\w+ exclude|`[^`]*`|'[^']*'|the command's \S+", "", shown.string)
    )
    assert takes_flags or not shown_flags, shown.string
    second, failed = said(followed(shown[1]))
    assert not failed and not {*first} & {*second}, second


@pytest.mark.parametrize(("call", "advice", "followed"), OF_LIBRARY)
def test_advice_of_the_library_is_followed(place, call, advice, followed):
    follow(call, advice, followed)


@pytest.mark.parametrize(("call", "advice", "followed"), OF_TABLES)
def test_advice_about_tables_is_followed(place, call, advice, followed):
    pytest.importorskip("pandas", reason="needs pandas")
    follow(call, advice, followed)


@pytest.mark.parametrize(("call", "advice", "followed"), OF_SKLEARN)
def test_advice_of_the_estimators_of_scikit_learn_is_followed(place, call, advice, followed):
    pytest.importorskip("sklearn", "1.6")
    follow(call, advice, followed)


@pytest.mark.parametrize(("call", "advice", "followed"), OF_RIVER)
def test_advice_of_the_classifiers_for_river_is_followed(place, call, advice, followed):
    pytest.importorskip("river", reason="needs River")
    pytest.importorskip("pandas", reason="needs pandas")
    follow(call, advice, followed)


@pytest.mark.parametrize(("call", "advice", "followed"), OF_SERVE)
def test_advice_of_a_server_that_a_program_starts_is_followed(place, capfd, call, advice, followed):
    follow(call, advice, followed)


@pytest.mark.parametrize(("call", "advice", "followed"), OF_WORKSPACE)
def test_advice_of_a_workspace_is_followed(place, call, advice, followed):
    follow(call, advice, followed, takes_flags=True)


# HTTP: a learner, a path, what is sent, and for the answer's message what is sent in place of it
NEW = {"texts": ["a"], "labels": ["tea"]}
WHEN_STARTED = "; options are given when the server is started"
OF_HTTP = [
    ("words", "/nothing", None, "; (/openapi.json) describes", lambda word: (word, None)),
    ("words", "/v1/predict", None, "; (/openapi.json) describes", lambda word: (word, None)),
    ("words", "/v1/predict?k=3", {"texts": ["a"]}, "as in (.*)$", lambda word: ("/v1/predict", json.loads(word))),
    ("words", "/v1/predict", {}, "one of (lines),", lambda word: ("/v1/predict", {word: ["| a"]})),
    ("words", "/v1/predict", {}, "lines, (examples),",
     lambda word: ("/v1/predict", {word: [{"features": {"a": 1}}]})),
    ("words", "/v1/predict", {}, "(texts), rows", lambda word: ("/v1/predict", {word: ["a"]})),
    ("words", "/v1/predict", {"lines": ["a b"]}, "such as '(.*)';", lambda word: ("/v1/predict", {"lines": [word]})),
    ("words", "/v1/predict", {"lines": ["a b"]}, "belongs in (texts)", lambda word: ("/v1/predict", {word: ["a b"]})),
    ("words", "/v1/predict", {"examples": [{"a": 1}]}, "examples.0..(features) is missing; it has to be an object of",
     lambda word: ("/v1/predict", {"examples": [{word: {"a": 1}}]})),
    ("words", "/v1/predict", {"rows": [[1, 2], [3]]}, "give (as many) in each",
     lambda word: ("/v1/predict", {"rows": [[1, 2], [3, 4]]})),
    ("words", "/v1/predict", {"texts": ["a " * 3000]}, "send (fewer) examples",
     lambda word: ("/v1/predict", {"texts": ["a"]})),
    ("words", "/v1/predict", {"texts": ["a"], "k": 5000}, "from 1 to (1000)",
     lambda word: ("/v1/predict", {"texts": ["a"], "k": int(word)})),
    ("words", "/v1/foo/predict", {"texts": ["a"]}, "there is (model)",
     lambda word: (f"/v1/{word}/predict", {"texts": ["a"]})),
    ("words", "/v1/learn", {"texts": ["a"]}, "(labels) is missing",
     lambda word: ("/v1/learn", {"texts": ["a"], word: ["x"]})),
    ("words", "/v1/learn", {"texts": ["a"], "labels": ["x", "y"]}, "give (one) for each",
     lambda word: ("/v1/learn", NEW)),
    ("words", "/v1/learn", {"lines": ["x | a"], "labels": ["y"]}, "allowed are (lines)",
     lambda word: ("/v1/learn", {word: ["x | a"]})),
    ("words", "/v1/learn", {"texts": ["a"], "labels": ["x,y"]}, "^labels.0. .* write (;) in its place",
     lambda word: ("/v1/learn", {"texts": ["a"], "labels": [f"x{word}y"]})),
    ("words", "/v1/learn", {"lines": ["x y z | a"]}, "as one word: '(\\w+)'. Correct the line$",
     lambda word: ("/v1/learn", {"lines": [f"{word} | a"]})),
    ("words", "/v1/predict", {"texts": ["hot"] * 3}, "write `(\\|title )words",
     lambda word: ("/v1/predict", {"lines": [f"{word}hot"]})),
    ("scores", "/v1/learn", {"lines": ["1,2 | a"]}, f"lists of (labels){WHEN_STARTED}$",
     lambda word: ("/v1/learn", {"lines": ["1 | a"]})),
    ("lists", "/v1/learn", {"texts": ["a"], "labels": ["x,y"]}, "or (a list) if",
     lambda word: ("/v1/learn", {"texts": ["a"], "labels": [["x", "y"]]})),
    ("lists", "/v1/learn", {"texts": ["a"], "labels": [["x,y"]]}, "write (;) in its place",
     lambda word: ("/v1/learn", {"texts": ["a"], "labels": [[f"x{word}y"]]})),
    ("scores", "/v1/predict", {"texts": ["a"], "k": 2}, "leave (k) out",
     lambda word: ("/v1/predict", {"texts": ["a"]})),
    ("narrow", "/v1/predict", {"texts": ["a"], "k": 2}, "wanted .k.; give no (k), start the server with --exact",
     lambda word: ("/v1/predict", {"texts": ["a"]})),
    ("scores", "/v1/learn", NEW, "^labels.*give (numbers)",
     lambda word: ("/v1/learn", {"texts": ["a"], "labels": [1]})),
    ("table", "/v1/predict", {"texts": ["a"]}, "; send (.*)$", lambda word: ("/v1/predict", json.loads(word))),
    ("table", "/v1/explain", {"texts": ["a"]}, "; send (.*)$", lambda word: ("/v1/explain", json.loads(word))),
    ("rows", "/v1/predict", {"texts": ["a"]}, "; send (.*), with 3 numbers",
     lambda word: ("/v1/predict", json.loads(word))),
    ("rows", "/v1/predict", {"rows": [[1]]}, "give rows of (3) columns",
     lambda word: ("/v1/predict", {"rows": [[1] * int(word)]})),
    ("texts", "/v1/predict", {"rows": [[1]]}, "; send (.*)$", lambda word: ("/v1/predict", json.loads(word))),
    ("texts", "/v1/predict", {"lines": ["| a"]}, "; send (texts) if", lambda word: ("/v1/predict", {word: ["| a"]})),
]  # fmt: skip


def of_table():
    model = learner(MULTICLASS)
    model.learn_file("t.csv")
    return model


MODELS = {
    "words": lambda: learner(("oaa", 9), ["tea |title hot", "rum |title cold"] * 20, **NAMED),
    "lists": lambda: learner(("multilabel",), ["a", "b"], [["x"], ["y", "z"]]),
    "scores": lambda: learner(("ect", 3), FILES["d.vw"]),
    "narrow": lambda: learner(("cpt", 3), FILES["d.vw"], beam=0),
    "table": of_table,
    "rows": lambda: learner(MULTICLASS, ROWS, ["x", "y"]),
    "texts": lambda: learner(MULTICLASS, TEXTS, LABELS),
}


@pytest.fixture(scope="module")
def ports_of(place):
    """Start a server for each learner when it is first asked; give the ports of lines and of HTTP."""
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    with contextlib.ExitStack() as running:
        started = {}

        def ports(name):
            if name not in started:
                options = {"http": "0", "max_body": 3000}
                started[name] = running.enter_context(served(running.enter_context(MODELS[name]()), options))
            return started[name].port, started[name].server.http.port

        yield ports


def asked(port, path, body, **headers):
    """Return the status of an answer, and its messages."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    status, _, told = servers.asked(port, "GET" if body is None else "POST", path, body, headers)
    return status, [told["error"]] if "error" in told else told.get("warnings", [])


@pytest.mark.parametrize(("name", "path", "body", "advice", "followed"), OF_HTTP)
def test_advice_over_http_is_followed(ports_of, name, path, body, advice, followed):
    _, messages = asked(ports_of(name)[1], path, body)
    found = next((one for message in messages if (one := re.search(advice, message))), None)
    assert found, messages
    assert not re.search(r"xclass\.|\w\(\)|DataFrame|on_bad_line|y\[", found.string)  # which no client can send
    status, second = asked(ports_of(name)[1], *followed(found[1]))
    assert status == 200 and not {*messages} & {*second}, second


@pytest.mark.parametrize(
    ("headers", "advice", "sent", "instead"),
    [
        ({"Content_Type": "text/plain"}, "send JSON as (.*)$", bytes, lambda word: {"Content_Type": word}),
        ({"Content_Encoding": "br"}, "by (gzip),", gzip.compress, lambda word: {"Content_Encoding": word}),
        ({"Host": ""}, "send the name or the (address)", bytes, lambda word: {"Host": "127.0.0.1"}),
        ({"Origin": "x", "origin": "y"}, "more than once; give (one)", bytes, lambda word: {}),
        ({"Host": "tea.example"}, "ask by its (address)", bytes, lambda word: {"Host": "127.0.0.1"}),
    ],
)
def test_advice_about_the_headers_of_a_request_is_followed(ports_of, headers, advice, sent, instead):
    _, port = ports_of("words")
    body = b'{"lines": ["|title hot"]}'
    _, (message,) = asked(port, "/v1/predict", body, **headers)
    assert asked(port, "/v1/predict", sent(body), **instead(re.search(advice, message)[1])) == (200, [])


# the port of lines: a learner, a line, and for the answer what is sent in place of it
OF_LINES = [
    ("words", "x y z | a\n", "as one word: '(\\w+)'", lambda word: f"{word} | a\n"),
    ("words", "hot\n", "or `(\\| features)`", lambda word: f"{word}\n"),
    ("words", "| hot", "has no (newline) at its end", lambda word: "| hot\n"),
    ("scores", "0 | a\n", "(add 1) to all labels", lambda word: "1 | a\n"),
    ("scores", "-1 | a\n", "(leave the label out)", lambda word: "| a\n"),
    ("lists", "x, y | a\n", "write (commas) between them: 'x,y'|write one (comma) and no blank",
     lambda word: "x,y | a\n"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "line", "advice", "followed"), OF_LINES)
def test_advice_of_the_port_of_lines_is_followed(ports_of, name, line, advice, followed):
    port, _ = ports_of(name)
    answer = ask(port, line.encode()).decode()
    found = re.search(advice, answer)
    assert answer.startswith("error: ") and found, answer
    assert not ask(port, followed(found[1]).encode()).startswith(b"error: ")


OF_CLIENT = [
    (lambda client: client.predict("| a"), "give a (list) of lines", lambda client: client.predict(["| a"])),
    (lambda client: client.predict([b"| a"]), "give each line as (text)", lambda client: client.predict(["| a"])),
    (lambda client: client.predict(["| a\n| b"]), "an example is (one line)",
     lambda client: client.predict(["| a", "| b"])),
    (lambda client: [client.close(), client.predict(["| a"])], "make (another) one",
     lambda client: client.predict(["| a"])),
    (lambda client: client.learn(["x y | a"]), "as one word: '(x_y)'", lambda client: client.learn(["x_y | a"])),
]  # fmt: skip


@pytest.mark.parametrize(("call", "advice", "followed"), OF_CLIENT)
def test_advice_of_the_client_is_followed(ports_of, call, advice, followed):
    port, _ = ports_of("words")
    with Client(port=port) as client, pytest.raises((ValueError, OSError), match=advice):
        call(client)
    with Client(port=port) as client:
        assert followed(client)


def test_a_client_at_the_port_of_http_is_told_the_other_port(ports_of):
    lines, of_http = ports_of("words")
    with pytest.raises(ConnectionError, match="give the port of lines"):
        Client(port=of_http)
    Client(port=lines).close()


def test_a_client_of_a_slow_server_is_told_to_wait_longer(ports_of):
    slow = pytest.raises(TimeoutError, match="give Client a larger timeout")
    with socket.create_server(("127.0.0.1", 0)) as silent, slow:
        Client(port=silent.getsockname()[1], timeout=0.1)
    Client(port=ports_of("words")[0], timeout=60).close()


@pytest.mark.parametrize(
    ("words", "advice", "instead"),
    [
        ("-i m --top_k 2 --probabilities", "leave (one) of them out", "-i m --top_k 2"),
        ("--models absent --http 0", "give a (folder) of model files", "--models models --http 0"),
        ("--models models", "it needs (--http) PORT", "--models models {} 0"),
        ("--models models --http 0 --top_k 2", "--top_k has no effect.*leave (it) out", "--models models --http 0"),
        ("-i m --max_body 9999", "it needs (--http) PORT", "-i m --max_body 9999 {} 0"),
        ("-t", "give (-i) MODEL", "-t {} m"),
        ("-i m --allow_host tea.example", "without (--http) PORT; give that", "-i m --allow_host tea.example {} 0"),
        ("-i m -t -f n", "leave (one) of the two out", "-i m -f n"),
        ("-i m --checkpoint 9", "it needs (-f) FILE", "-i m --checkpoint 9 {} n"),
        ("-i leaves", "and serve it with (-t)", "-i leaves {}"),
        ("--multiclass --dense x", "as in (--dense x:4)", "--multiclass {}"),
        ("-i ect --top_k 2", "(does) not estimate", "-i m --top_k 2"),
        ("-i m d.vw", "a server (reads no data)", "-i m"),
        ("-i m --json", "in the form of (docs/serving.md)", "-i m --http 0"),
        ("--oaa 2 -d d.vw", "give (-i) MODEL", "{} m"),
        ("-i m -P 9", "(--http) PORT has figures at /metrics", "-i m {} 0"),
        ("-i m --no_daemon", "leave (out) --daemon", "-i m"),
        ("-i m --daemon", "`xclass (serve)` is the server; leave it out", "-i m"),
        ("-i m --on_bad_line skip", "leave the (option) out", "-i m"),
        ("-i m --audit", "belongs to a run that reads data; (leave) it out", "-i m"),
    ],
)
def test_advice_of_a_server_that_does_not_start_is_followed(place, words, advice, instead):
    pytest.importorskip("httptools", reason="httptools, of the extra serve, is not installed: there is no HTTP")
    Path("models").mkdir(exist_ok=True)
    saved("m"), saved("models/m"), saved("ect", ("ect", 3)), saved("leaves", ("softmax_tree", 3))
    refused = run("serve", *words.split())
    found = re.search(advice, refused.err)
    assert refused.status and found, refused.err
    with command(place, "serve", *instead.format(found[1]).split()):
        pass


@pytest.mark.parametrize("option", ["--host 127.0.0.1", "--port 0", "--port_file p"])
def test_an_option_of_a_port_is_left_out_where_a_server_listens_at_a_socket(place, option):
    path = Path("own_socket")
    words = ["serve", "-i", saved("m"), "--socket", path.name]
    refused = run(*words, *option.split())
    assert refused.status == 2 and re.search(f"{option.split()[0]} has no effect.* leave it out$", refused.err.strip())
    process = start_process(*words)
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            wait_for(lambda: path.exists() and not connection.connect_ex(str(path)))
            connection.sendall(b"| a\n")
            assert not connection.recv(1000).startswith(b"error: ")
    finally:
        process.terminate()
        process.communicate()


# options of `xclass serve`: its words, a request, its advice, and for that further words
HTTP, TOP_K = ("--http", "0"), ("--top_k", "2")
LINES_OF_500 = b"| " + b"a" * 500 + b"\n"


def post(path, body=b'{"texts": ["a"], "labels": ["x"]}', **headers):
    return lambda ports: asked(ports[-1], path, body, **headers)[1]


def lines(text):
    return lambda ports: ask(ports[0], text).decode().splitlines()


def slowly(text):
    """Return a request that sends the rest of a line only if the server does not refuse the text in two seconds."""

    def call(ports):
        with socket.create_connection(("127.0.0.1", ports[0]), 60) as connection:
            connection.sendall(text)
            if not select.select([connection], [], [], 2)[0]:
                connection.sendall(b"| a\n"[len(text) :])
            return connection.recv(1000).decode().splitlines()

    return call


TOKEN = "0123456789abcdef"


def token():
    path = Path("token_of_server")
    path.touch(0o600)
    path.write_text(TOKEN)
    return path.name


def of_client(method, *given):
    def call(ports):
        with Client(port=ports[0]) as client:
            try:
                getattr(client, method)(*given)
            except ValueError as error:
                return [f"error: {error}"]
        return []

    return call


def holding(port, call):
    """Return the answers to a request that is made while another client has a connection."""
    with socket.create_connection(("127.0.0.1", port), 60) as other:
        other.sendall(b"| a\n")
        other.recv(1000)
        return call([port])


def when_ready(call):
    def waiting(ports):
        wait_for(lambda: asked(ports[-1], "/readyz", None)[0] == 200)
        return call(ports)

    return waiting


WITHOUT_A_MODEL = {"--multiclass", "--oaa", "--multilabel", "--plt", "--loss_function", "--models"}
OF_SERVER = [
    (["-t"], of_client("learn", ["1 | a"]), "start it with (-f) FILE", lambda words, flag: [flag, "m2"]),
    (["-t", *HTTP], post("/v1/learn"), "start it without them and with (-f) FILE",
     lambda words, flag: [*HTTP, flag, "m2"]),
    ([*HTTP], post("/v1/save", b"{}"), "start it with (-f) FILE", lambda words, flag: [*words, flag, "m2"]),
    ([*HTTP], post("/v1/predict", b'{"texts": ["a"]}', Host="tea.example"), "start it with (--allow_host) tea.example",
     lambda words, flag: [*words, flag, "tea.example"]),
    ([], of_client("predict_top_k", ["| a"]), "start the server with (--top_k) K", lambda words, flag: [flag, "2"]),
    (["--max_line", "100"], lines(LINES_OF_500), "with a larger (--max_line)", lambda words, flag: [flag, "1000"]),
    (["--timeout", ".1"], slowly(b"| a"), "with a larger (--timeout)", lambda words, flag: [flag, "60"]),
    (["--idle_timeout", ".1"], slowly(b""), "with a larger (--idle_timeout)", lambda words, flag: [flag, "60"]),
    ([*HTTP], post("/v1/predict", b'{"texts": ["a"]}', Origin="https://tea.example"), "with (--allow_host) NAME",
     lambda words, flag: [*words, flag, "tea.example"]),
    (["--http", "0.0.0.0:0"], post("/v1/learn", Authorization=f"Bearer {TOKEN}"), "server with (--token_file)",
     lambda words, flag: [*words, flag, token()]),
    (["-t", *HTTP], post("/v1/save", b"{}"), "nothing to save.* with (-f) FILE",
     lambda words, flag: [*HTTP, flag, "m2"]),
    (["--multiclass"], lines(b"x,y | a\n"), f"use (--multilabel),.*{WHEN_STARTED}", lambda words, flag: [flag]),
    (["--oaa", "3", *HTTP], post("/v1/learn", b'{"lines": ["1,2 | a"]}'), f"use (--multilabel),.*{WHEN_STARTED}",
     lambda words, flag: [flag, *HTTP]),
    (["--oaa", "3", *HTTP], post("/v1/learn", b'{"texts": ["a"], "labels": [[1, 2]]}'),
     f"K or (--plt) K.*{WHEN_STARTED}", lambda words, flag: [flag, "3", *HTTP]),
    (["--oaa", "3"], lines(b"1 | a\ntea | b\n"), f"names of classes with (--learn_names){WHEN_STARTED}",
     lambda words, flag: [*words, flag]),
    (["--loss_function", "squared"], lines(b"1 | a\ntea | b\n"), f"such as (--multiclass){WHEN_STARTED}",
     lambda words, flag: [flag, "--learn_names"]),
    (["--oaa", "2", "--learn_names"], lines(b"a | x\nb | x\nc | x\n"), f"--(oaa) 2.* a larger K .*{WHEN_STARTED}",
     lambda words, word: [f"--{word}", "3", "--learn_names"]),
    (["--oaa", "3", "--ngram", "2"], lines(b"1 |" + b" a" * 140_000 + b"\n"), f"--(ngram) makes .*{WHEN_STARTED}",
     lambda words, word: ["--oaa", "3"]),
    ([], lambda ports: lines(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")([ports[-1]]),
     "start the server with (--http) PORT", lambda words, flag: [flag, "0"]),
    (["--max_connections", "1"], lambda ports: holding(ports[0], lines(b"| a\n")), "try again (later)",
     lambda words, word: (words, lines(b"| a\n"))),
    (["--models", "models", *HTTP], when_ready(post("/v1/predict")),
     "; ask (/v1/)NAME/..., where NAME is first or second",
     lambda words, path: (words, when_ready(post(f"{path}second/predict", b'{"texts": ["a"]}')))),
    ([*HTTP, "--token_file", "token_of_server"], post("/v1/learn"), "the server, as (Authorization: Bearer) TOKEN",
     lambda words, header: (words, post("/v1/learn", **dict([f"{header} {TOKEN}".split(": ")])))),
]  # fmt: skip


@pytest.mark.parametrize(("words", "request_of", "advice", "followed"), OF_SERVER)
def test_advice_to_start_the_server_with_an_option_is_followed(place, words, request_of, advice, followed):
    Path("models").mkdir(exist_ok=True)
    saved("models/first.bin"), saved("models/second.bin"), token()

    def messages(words, request_of):
        model = [] if words[:1] and words[0] in WITHOUT_A_MODEL else ["-i", saved("m", **NAMED)]
        with command(place, "serve", *model, *words):
            return request_of([int(port) for port in (place / "port").read_text().split()])

    first = messages(words, request_of)
    found = next((one for message in first if (one := re.search(advice, message))), None)
    assert found, first
    instead = followed(words, found[1])  # words, and a request if that changes
    second = messages(*instead) if isinstance(instead, tuple) else messages(instead, request_of)
    assert found.string not in second and not any(one.startswith("error: ") for one in second), second
