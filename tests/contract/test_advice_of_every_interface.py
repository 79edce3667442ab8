"""Advice of the library, the estimators, the server and its client is followed as it is shown, and leads to success.

`tests/cli/test_followed_advice.py` does so for the command.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from command import xclass as run
from servers import ask, command, served

import xclass
from xclass import serve
from xclass.client import Client

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
CELLS = [f"{'abc'[i % 3]};{'bcd'[i % 3]}" for i in range(60)]
NAMED = {"learn_names": True}


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


def of_river(kind="Classifier", *arguments, **options):
    import xclass.river

    return getattr(xclass.river, kind)(*arguments, **{"bits": 12, **options})


def after(model, use):
    """Return a call that makes a learner, or an estimator, by a call and then uses it."""
    return lambda: use(model())


def from_command(words):
    return lambda: xclass.Learner.from_command(words)


def saved(name, options=OAA2, **more):
    learner(options, FILES["d.vw"], **more).save(name)
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


ONE, OTHER = "a | x\nb | y\nc | z\n", "c | z\nb | y\na | x\n"


def of_command(words, option, value):
    """Execute the command with an option, which a message to a program calls that of the command."""
    result = run(*words.split(), option.removeprefix("the command's "), value)
    assert result.status == 0 and "warning" not in result.err, result.err


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
    (learned(OAA3, bitz=12), WORD, lambda word: learned(OAA3, **{word: 12})),
    (learned(OAA3, skips=["1"]), "it needs (\\w+)", lambda word: learned(OAA3, skips=["1"], **{word: ["2"]})),
    (learned(OAA3, oaa=3), "give reduction='(\\w+)'", lambda word: learned(OAA3)),
    (learned(("oaa",)), "such as (classes)=10", lambda word: learned(("oaa",), **{word: 10})),
    (learned(("scalar",), named_labels="a,b"), "such as (oaa)", lambda word: learned((word, 2), named_labels="a,b")),
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
    (lambda: learner(("ect", 3)).probabilities(["a"]), "one of (oaa),",
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
    (lambda: xclass.merge([]), "such as \\[('a.bin')", lambda word: lambda: xclass.merge([saved("a.bin")])),
]  # fmt: skip

# scikit-learn: a call, and for its message the same call as the message advises
OF_SKLEARN = [
    (fitted(loss="log_loss"), WORD, lambda word: fitted(loss=word)),
    (fitted(reduction="oaa", options={"alpha": 0.1}), WORD, lambda word: fitted(reduction="oaa", options={word: 0.1})),
    (fitted(options="--passes 3"), "give (passes)=N", lambda word: fitted(**{word: 3})),
    (fitted(options={"passes": 3}), "give (passes)=3", lambda word: fitted(**{word: 3})),
    (fitted(options="--threads 2"), "give (n_jobs)=N", lambda word: fitted(**{word: 2})),
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
    (lambda: estimator(reduction="ect").predict_proba, "choose one of (oaa),",
     lambda word: lambda: estimator(reduction=word).predict_proba(TEXTS)),
    (lambda: estimator(reduction="means"), "choose reduction='(multiclass)'",
     lambda word: lambda: estimator(reduction=word)),
    (lambda: estimator(reduction="means"), "give an (array) of numbers",
     lambda word: lambda: estimator(reduction="means", X=getattr(np, word)(ROWS), y=["p", "q"])),
    (lambda: estimator(warm_start=True).set_params(reduction="oaa").fit(TEXTS, LABELS), "call fit without (warm_start)",
     lambda word: lambda: estimator().set_params(reduction="oaa", **{word: False}).fit(TEXTS, LABELS)),
    (lambda: estimator().partial_fit(TEXTS, [1, 2] * 3), "or fit a new (estimator)",
     lambda word: lambda: estimator(y=[1, 2] * 3)),
    (lambda: estimator("XMultilabelClassifier", y=[["a"], None] * 3), "give an empty (list)",
     lambda word: lambda: estimator("XMultilabelClassifier", y=[["a"], []] * 3)),
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
]  # fmt: skip

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
]  # fmt: skip


def ended(server):
    server.stop_soon()


def new_estimator(*reduction, **parameters):
    from xclass.sklearn import XClassifier

    return XClassifier(*reduction, bits=12, **parameters)


def frame(rows):
    import pandas

    return pandas.DataFrame(rows)


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


def follow(call, advice, followed):
    first, _ = said(call)
    shown = next((found for one in first if (found := re.search(advice, one))), None)
    assert shown is not None, first
    shown_flags = re.findall(FLAG, re.sub(r"^\S+ belongs|`[^`]*`|'[^']*'|the command's \S+", "", shown.string))
    assert not shown_flags, shown.string
    second, failed = said(followed(shown[1]))
    assert not failed and not {*first} & {*second}, second


@pytest.mark.parametrize(("call", "advice", "followed"), OF_LIBRARY)
def test_advice_of_the_library_is_followed(place, call, advice, followed):
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


# HTTP: a learner, a path, what is sent, and for the answer's message what is sent in place of it
NEW = {"texts": ["a"], "labels": ["tea"]}
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
def servers(place):
    """Start a server for each learner when it is first asked; give the ports of lines and of HTTP."""
    pytest.importorskip("starlette", reason="starlette, of the extra serve, is not installed: there is no HTTP")
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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    with contextlib.closing(connection):
        sent = body if isinstance(body, (bytes, type(None))) else json.dumps(body).encode()
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        method = "GET" if body is None else "POST"
        connection.request(method, path, sent, {**({"Content-Type": "application/json"} if sent else {}), **headers})
        answer = connection.getresponse()
        told = json.loads(answer.read())
    return answer.status, [told["error"]] if "error" in told else told.get("warnings", [])


@pytest.mark.parametrize(("name", "path", "body", "advice", "followed"), OF_HTTP)
def test_advice_over_http_is_followed(servers, name, path, body, advice, followed):
    _, messages = asked(servers(name)[1], path, body)
    found = next((one for message in messages if (one := re.search(advice, message))), None)
    assert found, messages
    assert not re.search(r"xclass\.|\w\(\)|DataFrame|on_bad_line|y\[", found.string)  # which no client can send
    status, second = asked(servers(name)[1], *followed(found[1]))
    assert status == 200 and not {*messages} & {*second}, second


@pytest.mark.parametrize(
    ("headers", "advice", "sent", "instead"),
    [
        ({"Content_Type": "text/plain"}, "send JSON as (.*)$", bytes, lambda word: {"Content_Type": word}),
        ({"Content_Encoding": "br"}, "by (gzip),", gzip.compress, lambda word: {"Content_Encoding": word}),
        ({"Host": "tea.example"}, "ask by its (address)", bytes, lambda word: {"Host": "127.0.0.1"}),
    ],
)
def test_advice_about_the_headers_of_a_request_is_followed(servers, headers, advice, sent, instead):
    _, port = servers("words")
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
def test_advice_of_the_port_of_lines_is_followed(servers, name, line, advice, followed):
    port, _ = servers(name)
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
def test_advice_of_the_client_is_followed(servers, call, advice, followed):
    port, _ = servers("words")
    with Client(port=port) as client, pytest.raises((ValueError, OSError), match=advice):
        call(client)
    with Client(port=port) as client:
        assert followed(client)


def test_a_client_at_the_port_of_http_is_told_the_other_port(servers):
    lines, of_http = servers("words")
    with pytest.raises(ConnectionError, match="give the port of lines"):
        Client(port=of_http)
    Client(port=lines).close()


# options of `xclass serve`: its words, a request, its advice, and for that further words
HTTP, TOP_K = ("--http", "0"), ("--top_k", "2")
LINES_OF_500 = b"| " + b"a" * 500 + b"\n"


def post(path, body=b'{"texts": ["a"], "labels": ["x"]}', **headers):
    return lambda ports: asked(ports[1], path, body, **headers)[1]


def lines(text):
    return lambda ports: ask(ports[0], text).decode().splitlines()


def of_client(method, *given):
    def call(ports):
        with Client(port=ports[0]) as client:
            try:
                getattr(client, method)(*given)
            except ValueError as error:
                return [f"error: {error}"]
        return []

    return call


OF_SERVER = [
    (["-t"], of_client("learn", ["1 | a"]), "give (-f) FILE", lambda words, flag: [flag, "m2"]),
    (["-t", *HTTP], post("/v1/learn"), "give (-f) FILE", lambda words, flag: [*HTTP, flag, "m2"]),
    ([*HTTP], post("/v1/save", b"{}"), "start it with (-f) FILE", lambda words, flag: [*words, flag, "m2"]),
    ([*HTTP], post("/v1/predict", b'{"texts": ["a"]}', Host="tea.example"), "start it with (--allow_host) tea.example",
     lambda words, flag: [*words, flag, "tea.example"]),
    ([], of_client("predict_top_k", ["| a"]), "start the server with (--top_k) K", lambda words, flag: [flag, "2"]),
    (["--max_line", "100"], lines(LINES_OF_500), "see (--max_line)", lambda words, flag: [flag, "1000"]),
    (["--multiclass"], lines(b"x,y | a\n"), "use (--multilabel),", lambda words, flag: [flag]),
]  # fmt: skip


@pytest.mark.parametrize(("words", "request_of", "advice", "followed"), OF_SERVER)
def test_advice_to_start_the_server_with_an_option_is_followed(place, words, request_of, advice, followed):
    def messages(words):
        model = [] if words[:1] and words[0].startswith("--multi") else ["-i", saved("m", **NAMED)]
        with command(place, "serve", *model, *words):
            return request_of([int(port) for port in (place / "port").read_text().split()])

    first = messages(words)
    found = next((one for message in first if (one := re.search(advice, message))), None)
    assert found, first
    second = messages(followed(words, found[1]))
    assert not {*first} & {*second} and not any(one.startswith("error: ") for one in second), second
