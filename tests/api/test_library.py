"""The library: what a program does with `xclass.Learner` is what the command does with the same options."""

import doctest
import gc
import gzip
import importlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from command import learn as run
from streams import multiclass, real

import xclass

K = 6
CASES = [  # reduction, options of the library, words of the command
    ("scalar", {}, ()),
    ("scalar", {"learning_rate": 0.1, "quadratic": ["::"]}, ("-l", 0.1, "-q", "::")),
    ("oaa", {"bits": 12}, ("--oaa", K, "-b", 12)),
    (
        "recall_tree",
        {"max_candidates": 3, "random_seed": 7},
        ("--recall_tree", K, "--max_candidates", 3, "--random_seed", 7),
    ),
    ("recall_tree", {"layout": "vw", "bits": 14}, ("--recall_tree", K, "--layout", "vw", "-b", 14)),
    ("log_multi", {}, ("--log_multi", K)),
    ("ect", {"error": 2}, ("--ect", K, "--error", 2)),
    ("random_tree", {}, ("--random_tree", K)),
    ("cpt", {"trees": 2, "ignore": ["a"]}, ("--cpt", K, "--trees", 2, "--ignore", "a")),
    ("cpt", {"cpt_tree": "kmeans", "tree_sample": 70}, ("--cpt", K, "--cpt_tree", "kmeans", "--tree_sample", 70)),
    ("cpt", {"cpt_tree": "huffman", "trees": 2}, ("--cpt", K, "--cpt_tree", "huffman", "--trees", 2)),
    ("hsm", {"tree_sample": 60, "quadratic": ["::"]}, ("--hsm", K, "--tree_sample", 60, "-q", "::")),
    ("multiclass", {"noconstant": True}, ("--multiclass", K, "--noconstant")),
    ("softmax_tree", {"depth": 2}, ("--softmax_tree", K, "--depth", 2)),
    ("oaa", {"vw_exact": True}, ("--oaa", K, "--vw_exact")),
]


def text_of(reduction: str, n: int = 240) -> str:
    return real(5, n) if reduction == "scalar" else multiclass(5, K, n)


def in_pieces(text: str, size: int):
    lines = text.splitlines()
    return [lines[i : i + size] for i in range(0, len(lines), size)]


def learned(reduction: str, options: dict, text: str, size: int = 50) -> xclass.Learner:
    model = xclass.Learner(reduction, None if reduction == "scalar" else K, **options)
    for piece in in_pieces(text, size):
        model.learn_many(piece)
    model.end_pass()
    return model


@pytest.mark.parametrize(("reduction", "options", "words"), CASES, ids=lambda case: str(case))
def test_model_is_that_of_the_command_to_the_byte(tmp_path, reduction, options, words):
    text = text_of(reduction)
    run(*words, "-f", "c", "-p", "p", "--quiet", stdin=text, cwd=tmp_path)
    with learned(reduction, options, text) as model:
        model.save(str(tmp_path / "l"))
    saved, expected = (tmp_path / "l").read_bytes(), (tmp_path / "c").read_bytes()
    if "vw_exact" in options:  # the command keeps VW's counters as well
        assert abs(len(saved) - len(expected)) < 1000
    else:
        assert saved == expected


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("reduction", "options", "words"), CASES, ids=lambda case: str(case))
def test_predictions_of_a_loaded_model_are_those_of_the_command(tmp_path, reduction, options, words):
    text = text_of(reduction)
    run(*words, "-f", "m", "--quiet", stdin=text, cwd=tmp_path)
    wanted = run("-i", "m", "-t", "-p", "stdout", "--quiet", stdin=text_of(reduction, 300), cwd=tmp_path).lines
    with xclass.load(str(tmp_path / "m")) as model:
        predicted = model.predict_many(text_of(reduction, 300))
    if reduction == "scalar":
        assert np.allclose(predicted, [float(line.split()[0]) for line in wanted], rtol=1e-4, atol=1e-4)
    else:
        assert predicted.tolist() == [int(line.split()[0]) for line in wanted]


def test_predictions_are_made_before_learning():
    with xclass.Learner("oaa", 2, indexing=1) as model:
        outcome = model.learn_many(["1 | a", "2 | b"] * 20)
        assert outcome.prediction.shape == outcome.loss.shape == (40,)
        assert outcome.loss.sum() > 0
        assert outcome.loss[10:].sum() == 0
        assert model.average_loss == outcome.loss.sum() / 40
        assert model.predict_many(["| a", "| b"]).tolist() == [1, 2]
        assert model.classes == 2


def test_batches_without_a_constant_are_for_learners_without_one(tmp_path):
    path = tmp_path / "d.vw"
    path.write_text(text_of("oaa"))
    for constant in (True, False):
        batch = next(xclass.read_vw(str(path), noconstant=not constant))
        with xclass.Learner("oaa", K, noconstant=not constant) as model:
            model.learn_many(batch)
        with xclass.Learner("oaa", K, noconstant=constant) as model, pytest.raises(xclass.UsageError, match="constant"):
            model.learn_many(batch)


def test_predicting_learns_no_name():
    with xclass.Learner("multiclass", learn_names=True) as model:
        model.learn_many(["cat | a", "dog | b"] * 10)
        assert model.predict_many(["cow | a", "| b"]).tolist() == ["cat", "dog"]
        model.learn_many(["bird | c"] * 5)
        assert model.classes == ["cat", "dog", "bird"]


# -- learners with a preview of the data

KMEANS = {"cpt_tree": "kmeans", "tree_sample": 70}


def test_examples_are_buffered_until_the_preview_is_complete(tmp_path):
    lines = text_of("cpt").splitlines()
    with xclass.Learner("cpt", K, **KMEANS) as model:
        assert model.preview_size == 70
        assert len(model.learn_many(lines[:50]).prediction) == 0
        assert model.average_loss is None
        assert model.predict_many(lines[:3]).tolist() == [0, 0, 0]
        with pytest.raises(xclass.UsageError, match="not learned yet; call end_pass"):
            model.save(str(tmp_path / "m"))
        with pytest.raises(xclass.DataError):
            model.learn_many("x | a")
        first = model.learn_many(lines[50:100])
        assert len(first.prediction) == len(first.loss) == 100
        assert model.preview_size is None
        assert len(model.learn_many(lines[100:]).prediction) == len(lines) - 100
        assert len(model.end_pass().prediction) == 0
        model.save(str(tmp_path / "m"))
    with xclass.load(str(tmp_path / "m")) as model:
        assert model.preview_size is None
        assert len(model.learn_many(lines[:5]).prediction) == 5


def test_end_of_data_ends_the_preview(tmp_path):
    lines = text_of("cpt").splitlines()[:40]
    run("--cpt", K, "--cpt_tree", "kmeans", "-f", "c", "--quiet", stdin="\n".join(lines), cwd=tmp_path)
    with xclass.Learner("cpt", K, cpt_tree="kmeans") as model:
        model.learn_many(lines)
        outcome = model.end_pass()
        assert len(outcome.prediction) == 40
        assert model.average_loss == outcome.loss.sum() / 40
        model.save(str(tmp_path / "l"))
    assert (tmp_path / "l").read_bytes() == (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("tree", ["kmeans", "huffman"])
@pytest.mark.parametrize("size", [0, 70])
def test_preview_of_all_the_data(tmp_path, tree, size):
    text = text_of("cpt")
    words = ("--cpt", K, "--cpt_tree", tree, "--tree_sample", size, "-q", "::", "-f", "c", "--quiet")
    run(*words, stdin=text, cwd=tmp_path)
    with xclass.Learner("cpt", K, cpt_tree=tree, tree_sample=size, quadratic=["::"]) as model:
        learned = [len(model.learn_many(piece).prediction) for piece in in_pieces(text, 50)]
        assert sum(learned) == (0 if size == 0 else len(text.splitlines()))
        model.end_pass()
        model.save(str(tmp_path / "l"))
    assert (tmp_path / "l").read_bytes() == (tmp_path / "c").read_bytes()


def test_names_come_in_the_order_of_the_data_where_examples_are_buffered(tmp_path):
    lines = [f"{name} | {name[0]}{i % 3}" for i in range(20) for name in ("cat", "dog", "bird", "ant")]
    words = ("--cpt", 0, "--cpt_tree", "kmeans", "--tree_sample", 30, "--learn_names", "-f", "c", "--quiet")
    run(*words, stdin="\n".join(lines), cwd=tmp_path)
    with xclass.Learner("cpt", cpt_tree="kmeans", tree_sample=30, learn_names=True) as model:
        model.learn_many(lines[:2])
        assert model.classes == []
        model.learn_many(lines[2:])
        assert model.classes == ["cat", "dog", "bird", "ant"]
        model.save(str(tmp_path / "l"))
    assert (tmp_path / "l").read_bytes() == (tmp_path / "c").read_bytes()


def test_arrays_of_buffered_examples_may_change(tmp_path):
    for name in ("kept", "changed"):
        rows, labels = matrix(200)
        rows.data, labels = rows.data.astype(np.float32), labels.astype(np.float64)
        with xclass.Learner("cpt", 3, cpt_tree="kmeans", noconstant=True) as model:
            model.learn_many(rows, labels)
            if name == "changed":
                rows.data[:], labels[:], rows.indices[:] = 7, 1, 0
            model.end_pass()
            model.save(str(tmp_path / name))
    assert (tmp_path / "kept").read_bytes() == (tmp_path / "changed").read_bytes()


# -- arrays


def matrix(n: int, seed: int = 3):
    random = np.random.default_rng(seed)
    counts = random.integers(1, 5, n)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    labels = random.integers(1, 4, n)
    indices = np.repeat(labels, counts) * 10 + random.integers(0, 5, indptr[-1])
    return SimpleNamespace(indptr=indptr, indices=indices, data=np.ones(indptr[-1])), labels


PROBABLE = [
    ("oaa", {"loss_function": "logistic"}, ("--oaa", K, "--loss_function", "logistic")),
    ("recall_tree", {}, ("--recall_tree", K)),
    ("cpt", {}, ("--cpt", K)),
    ("cpt", {"trees": 2, "rerank": True}, ("--cpt", K, "--trees", 2, "--rerank")),
    ("softmax_tree", {"depth": 1}, ("--softmax_tree", K, "--depth", 1)),
]


@pytest.mark.parametrize(("reduction", "options", "words"), PROBABLE, ids=lambda case: str(case))
def test_probabilities_are_those_of_the_command(tmp_path, reduction, options, words):
    text, other = text_of(reduction), multiclass(9, K, 40)
    run(*words, "-f", "m", "--quiet", stdin=text, cwd=tmp_path)
    predict = ("-i", "m", "-t", "-p", "stdout", "--quiet")
    top = run(*predict, "--top_k", 3, stdin=other, cwd=tmp_path).lines
    whole = run(*predict, "--probabilities", stdin=other, cwd=tmp_path).lines
    with xclass.load(str(tmp_path / "m")) as model:
        before = model.predict_many(other)
        labels, p = model.predict_many(other, 3)
        classes, matrix = model.probabilities(other)
        assert np.array_equal(model.predict_many(other), before)
    assert labels.shape == p.shape == (40, 3)
    assert matrix.shape == (40, len(classes))
    for i, (line, full) in enumerate(zip(top, whole, strict=True)):
        wanted = [word.split(":") for word in line.split()]
        wanted = [(int(y), float(q)) for y, q in wanted if y][:3]
        pairs = [(int(y), q) for y, q in zip(labels[i], p[i], strict=True) if y > 0]
        assert [y for y, _ in pairs] == [y for y, _ in wanted]
        assert np.allclose([q for _, q in pairs], [q for _, q in wanted], atol=1e-5)
        every = {int(y): float(q) for y, q in (word.split(":") for word in full.split()) if y}
        assert np.allclose([every.get(int(y), 0.0) for y in classes], matrix[i], atol=1e-5)


def test_no_list_of_0_classes_is_made():
    with xclass.Learner("oaa", 3) as model, pytest.raises(xclass.UsageError, match="k: 0 is not"):
        model.predict_many("| a", 0)


@pytest.mark.parametrize("constant", [True, False])
def test_rows_of_a_matrix_are_examples(constant):
    rows, labels = matrix(200)
    with xclass.Learner("oaa", 3, noconstant=not constant) as model:
        model.learn_many(rows, labels, np.ones(200))
        assert (model.predict_many(rows) == labels).mean() > 0.95
    start = rows.indptr
    lines = [
        f"{label} | " + " ".join(f"{i}" for i in rows.indices[start[j] : start[j + 1]])
        for j, label in enumerate(labels)
    ]
    with (
        xclass.Learner("oaa", 3, noconstant=not constant) as model,
        xclass.Learner("oaa", 3, noconstant=not constant) as other,
    ):
        a, b = (
            model.learn_many(lines),
            other.learn_many(rows, labels),
        )  # a number is its own hash in the namespace without a name
        assert np.array_equal(a.prediction, b.prediction)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nothing",), "'nothing' is not a reduction"),
        ((["oaa"], 3), "['oaa'] is not a reduction"),
        (("",), "'' is not a reduction"),
        (([],), "[] is not a reduction"),
        ((0,), "0 is not a reduction"),
        (("oaa", 0), "classes: 0 is not a whole number of at least 1"),
        (("scalar", 3), "classes: 'scalar' learns numbers"),
        (("oaa", 3, {"bits": 99}), "bits: 99 is not a whole number from 1 to 31"),
        (("oaa", 3, {"bits": "x"}), "bits: 'x' is not a whole number"),
        (("oaa", 3, {"loss_function": "cube"}), "loss_function: 'cube' is not one of"),
        (("oaa", 3, {"max_depth": 3}), "max_depth belongs to recall_tree"),
        (("oaa", 3, {"quadratic": ["abc"]}), "quadratic abc"),
    ],
)
def test_messages_name_keywords(words, message):
    options = words[2] if len(words) > 2 else {}
    with pytest.raises(xclass.UsageError) as caught:
        xclass.Learner(*words[:2], **options)
    assert message in str(caught.value)
    assert "--" not in str(caught.value)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("weight", [1e300, 3.5e38, 10**400, float("inf"), float("nan"), -1])
def test_weights_that_are_not_allowed_are_named(weight):
    message = f"sample_weight[0] is {float('inf') if weight == 10**400 else weight:g}; allowed are"
    with xclass.Learner("oaa", 3, bits=10) as model:
        for call in (lambda: model.learn("| a", 1, weight), lambda: model.learn_many(["a"], [1], [weight])):
            with pytest.raises(xclass.DataError) as caught:
                call()
            assert str(caught.value).startswith(message)


def test_warnings_are_python_warnings():
    with xclass.Learner("recall_tree", 3, on_bad_line="vw") as model, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        outcome = model.learn_many("7 | a")
    assert outcome.warnings
    assert [str(warning.message) for warning in caught] == list(outcome.warnings)
    assert caught[0].category is xclass.XclassWarning


def save_learned(folder: Path, reduction: str, name: str) -> None:
    with learned(reduction, {}, text_of(reduction, 600), 20) as model:
        model.save(str(folder / f"{reduction}-{name}"))


def learn_two_at_once(folder: Path, name: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save_learned, [folder] * 2, ("oaa", "cpt"), [name] * 2))


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Path:
    """A folder with the models of an oaa and a cpt that learned one after the other."""
    folder = tmp_path_factory.mktemp("alone")
    for reduction in ("oaa", "cpt"):
        save_learned(folder, reduction, "alone")
    return folder


def test_two_learners_at_once_from_two_threads_learn_what_each_learns_alone(alone):
    learn_two_at_once(alone, "threads")
    for reduction in ("oaa", "cpt"):
        assert (alone / f"{reduction}-threads").read_bytes() == (alone / f"{reduction}-alone").read_bytes()


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_made_by_multiprocessing_learn_what_this_one_learns(alone, method):
    with xclass.Learner("oaa", K) as model:  # alive here at the same time
        model.learn_many(text_of("oaa"))
        child = multiprocessing.get_context(method).Process(target=learn_two_at_once, args=(alone, method), daemon=True)
        child.start()
        child.join(240)
        assert child.exitcode == 0
        assert len(model.predict_many(text_of("oaa"))) == 240
    for reduction in ("oaa", "cpt"):
        assert (alone / f"{reduction}-{method}").read_bytes() == (alone / f"{reduction}-alone").read_bytes()


INSIDE = """
import signal, sys, logging
before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), list(logging.getLogger().handlers)
import numba
folder = numba.config.CACHE_DIR
import xclass
twice = numba.njit(lambda x: 2 * x)
with xclass.Learner("oaa", 2, indexing=1) as model:
    model.learn_many(["1 | a", "2 | b"] * 10)
    import scipy
    from sklearn.linear_model import LogisticRegression
    assert twice(4) == 8
    assert model.predict_many(["| a", "| b"]).tolist() == [1, 2]
assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), list(logging.getLogger().handlers)) == before
assert numba.config.CACHE_DIR == folder
import os
pid = os.fork()
if pid == 0:
    with xclass.Learner("oaa", 2, indexing=1) as model:
        model.learn_many(["1 | a", "2 | b"] * 10)
        os._exit(0 if model.predict_many(["| a", "| b"]).tolist() == [1, 2] else 1)
assert os.waitpid(pid, 0)[1] == 0
"""


def script(code: str) -> subprocess.CompletedProcess:
    root = str(Path(xclass.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r})\n{code}"], capture_output=True, text=True,
        timeout=240,
    )  # fmt: skip


@pytest.mark.slow
def test_learners_work_inside_another_program():
    result = script(INSIDE)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_importing_the_package_imports_nothing_else():
    result = script(
        "import xclass; print([m for m in ('numpy', 'numba', 'click', 'xclass.api.learner') if m in sys.modules])"
    )
    assert result.stdout == "[]\n"
    result = script("import xclass.reductions.oaa.reduction; print(sorted(m for m in sys.modules if '.cpt' in m))")
    assert result.stdout == "[]\n"


def test_a_model_is_loaded_without_other_reductions_and_without_the_command(tmp_path):
    path = tmp_path / "model.bin"
    with xclass.Learner("oaa", 2, bits=4) as learner:
        learner.save(path)
    result = script(
        f"import xclass; xclass.load({str(path)!r}).close(); "
        "print([m for m in sys.modules if m in ('click', 'numpy.ma') or '.recall_tree' in m or '.cpt' in m])"
    )
    assert result.stdout == "[]\n"


def test_names_of_the_package_are_found():
    for name in xclass.__all__:
        assert getattr(xclass, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        xclass.nothing  # noqa: B018
    assert set(dir(xclass)) >= {"Learner", "load", "read_vw"}


MODULES = ["api.learner", "api.results", "api.inputs", "api.files", "data.batch", "merging"]


@pytest.mark.parametrize("module", MODULES)
def test_examples_of_the_docstrings_run(module, place):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        failed, tried = doctest.testmod(importlib.import_module(f"xclass.{module}"))
    assert failed == 0
    assert tried > 2


def test_the_example_of_the_package_runs(place):
    with gzip.open(place / "train.vw.gz", "wt") as file:
        file.write(multiclass(5, K, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(textwrap.dedent(xclass.__doc__[xclass.__doc__.index("    import xclass") :].split("Importing")[0]), {})
    assert (place / "model.bin").exists()


# what a program may give by mistake


def test_what_is_no_batch_is_refused():
    with xclass.Learner("oaa", 3) as model:
        for given in (None, [1, 2, 3], [b"| a"]):
            with pytest.raises(xclass.UsageError, match="a Batch, or lines of VW text"):
                model.predict_many(given)


def test_lines_left_out_are_warned_of():
    with xclass.Learner("oaa", 3, indexing=1, on_bad_line="skip") as model:
        with pytest.warns(xclass.XclassWarning, match="1 malformed line was skipped"):
            assert len(model.learn_many(["1 | a", "9 | b", "2 | c"]).prediction) == 2
        with pytest.warns(xclass.XclassWarning, match="batch:2:1"):
            model.learn_many(["1 | a", "9 | b"])


def test_classes_are_counted_where_their_number_was_not_given():
    with xclass.Learner("cpt") as model:
        model.learn_many(["3 | a", "500 | b", "3 | c", "8 | a"])
        assert model.classes == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--oaa", 5, {}), "'--oaa' is not a reduction; did you mean 'oaa'?"),
        (("oaa", 5, {"bit_precision": 18}), "there is no option 'bit_precision'; did you mean 'bits'?"),
        (("oaa", 5, {"b": 18}), "there is no option 'b'; did you mean 'bits'?"),
        (("oaa", 5, {"max_iter": 9}), "there is no option 'max_iter'"),
    ],
)
def test_messages_keep_the_words_that_were_given(options, message):
    reduction, classes, more = options
    with pytest.raises(xclass.UsageError, match=re.escape(message)):
        xclass.Learner(reduction, classes, **more)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize("reduction", ["recall_tree", "cpt", "log_multi"])
def test_a_learner_goes_on_in_a_child_made_by_fork(reduction):
    text = multiclass(3, K, 4000)
    with xclass.Learner(reduction, K) as model:
        model.learn_many(text)
        expected = model.predict_many(text)
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)  # ends a child that waits for threads which only its parent has
            os._exit(0 if (model.predict_many(text) == expected).all() else 1)
        assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize("error", [AttributeError("arrays"), MemoryError("of the arrays")])
def test_unexpected_exceptions_while_saving_are_raised_unchanged(tmp_path, monkeypatch, error):
    def broken(self, archive):
        raise error

    with xclass.Learner("oaa", 2) as model:
        model.learn_many(["1 | a", "2 | b"])
        monkeypatch.setattr(type(model.core.reduction), "serialize", broken)
        with pytest.raises(type(error)):
            model.save(str(tmp_path / "m"))
    assert not list(tmp_path.iterdir())


def test_class_0_is_listed_like_other_classes():
    with xclass.Learner("oaa", 3, indexing=0, bits=10) as model:
        model.learn_many("0 | a\n1 | b\n2 | c\n" * 9)
        labels, p = model.predict_many("| a", 5)
        assert labels[0].tolist()[0] == 0
        assert sorted(labels[0].tolist()) == [-1, -1, 0, 1, 2]
        assert p[0, 3:].tolist() == [0, 0]
        classes, whole = model.probabilities("| a")
        assert classes.tolist() == [0, 1, 2]
        assert whole[0, labels[0, :3]].tolist() == p[0, :3].tolist()


@pytest.mark.parametrize("name", list(dict.fromkeys(reduction for reduction, _, _ in CASES)))
def test_closing_frees_what_was_learned_at_once(name):
    model = xclass.Learner(name, None if name == "scalar" else K, bits=12)
    model.learn_many(text_of(name))
    model.end_pass()
    reduction = weakref.ref(model.core.reduction)
    gc.disable()
    try:
        model.close()
        assert reduction() is None
    finally:
        gc.enable()
    for use in (
        lambda: model.learn_many("1 | a"),
        lambda: model.predict_many("| a"),
        lambda: model.save("m"),
        model.end_pass,
    ):
        with pytest.raises(xclass.UsageError, match="this learner is closed"):
            use()
    model.close()


def test_a_keyword_may_be_an_alias():
    with xclass.Learner("cpt", 9, bits=10, rerank=True, candidate_threshold=0.2) as model:
        assert model.options["candidate_cut"] == 0.2


def test_text_that_is_no_line_is_noticed():
    with xclass.Learner("multiclass", learn_names=True, bits=12) as model:
        model.learn_many(["a | x", "b | first\nsecond line"])
        assert model.classes == ["a", "b"]
        with pytest.warns(xclass.XclassWarning, match=r"^batch:1: 'free' has no bar and so no features"):
            model.predict_many("free\n| x")
        with pytest.warns(xclass.XclassWarning, match=r"^batch:2: "):
            model.learn_many("a | x\na\n")


def test_labels_of_a_matrix_are_numbers_of_classes():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    x = scipy_sparse.csr_matrix([[1, 2], [0, 1]])
    with xclass.Learner("oaa", 3, bits=10) as model:
        assert model.learn_many(x, y=[1, 2]).prediction.dtype == np.int64
        assert model.learn_many(x, y=[1, np.nan]).loss[1] == 0
    with xclass.Learner("scalar", bits=10) as model:
        assert model.learn_many(x, y=[0.5, 1]).prediction.dtype == np.float64
