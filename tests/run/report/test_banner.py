"""The lines at the start of a run: plain words in at most 80 columns, and VW's names only with --vw_exact."""

import re

import pytest
from command import learn
from streams import multiclass, of_kind
from variants import BITS, BY_NAME, K, chosen, every_variant, words_of
from versus import run_vw

from xclass.api import progress_table
from xclass.cache import source

VW_NAMES = re.compile(
    r"=|num sources|weight bits|datafile|final_regressor|initial_t|power_t|learners|pred\b|using no cache|memory:", re.I
)


def banner(*args, stdin: str | None = None, data: str = "data.vw", cwd=None) -> list[str]:
    """The lines before the table of a run, without that about compiling."""
    result = learn(*([] if stdin is not None else ["-d", data]), *args, stdin=stdin, cwd=cwd)
    lines = result.err.splitlines()
    return [line for line in lines[: lines.index(progress_table.HEADER[0])] if not line.startswith("xclass: ")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to run in, with data."""
    monkeypatch.chdir(tmp_path)
    for kind in ("multiclass", "multilabel", "simple"):
        (tmp_path / f"{kind}.vw").write_text(of_kind(kind, 1, K, 60))
    (tmp_path / "data.vw").write_text(multiclass(1, K, 60))
    return tmp_path


@pytest.mark.sampled(4)
@every_variant()
def test_plain_words_of_every_reduction(place, name, options):
    data = f"{BY_NAME[name].labels}.vw"
    lines = banner(*chosen(name), *BITS, *words_of(options), "-f", "m", "-p", "p", data=data)
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("Reduction: ")) :]  # after notes
    plain = [line for line in lines if not line.startswith("warning:")]
    assert not [line for line in plain if VW_NAMES.search(line)]
    assert all(len(line) <= 80 for line in plain)
    heads = [line.split(":")[0] for line in plain if not line.startswith("    ")]
    assert len(set(heads)) == len(heads), "a line is there twice"
    assert {f"Data: {data}", "Model saved to: m", "Predictions written to: p"} <= set(lines)
    assert ("Weights" in heads) == (name != "softmax_tree")
    taken = BY_NAME[name].learner_options  # the class means have a rate of their own
    has_rate = name == "means" or (name != "plt" and (taken is None or "learning_rate" in taken))
    assert ("Learning rate" in heads) == has_rate
    tested = banner("-t", "-i", "m", data=data)
    assert {"Learning: none, only predictions", "Model: m, which has learned 60 examples"} <= set(tested)
    assert all(len(line) <= 80 for line in tested if not line.startswith("warning:"))
    assert not any(line.startswith(("Learning rate", "Loss", "Decay", "Model saved")) for line in tested)


@pytest.mark.parametrize("words", ["--oaa 9", "--recall_tree 9", "--ect 9", "--log_multi 9", ""])
@pytest.mark.parametrize(
    "more",
    [
        "-b 12 -q wn --passes 3 -c -k -f m -r r --l2 1e-6 --decay_learning_rate 0.5",
        "-b 12 --ignore w -t",
        "-q wn -q ww --cubic wnw --interactions wnwn -f m -p p -r r -b 20 -l 0.25",
    ],
)
def test_vw_exact_prints_the_lines_of_vw(place, words, more):
    pytest.importorskip("vowpalwabbit")
    data = "data.vw" if words else "simple.vw"
    args = [*words.split(), *more.split()]
    here = banner("--vw_exact", *args, data=data)
    printed = run_vw("-d", data, *args, cwd=place).err.splitlines()
    theirs = [line for line in printed[: printed.index(progress_table.HEADER[0])] if not line.startswith("[")]
    own = ("memory: ", "recall_tree: ", "log_multi: ", "warning: ", "Enabled learners: ", "[")
    assert [line for line in here if not line.startswith(own)] == [
        line for line in theirs if not line.startswith((*own, "recall_tree", "VW", "ignoring unused"))
    ]
    assert any(line.startswith("memory: ") for line in here)
    assert not any(line.startswith(("Reduction", "Weights", "Learning")) for line in here)


def test_lines_about_classes(place):
    def classes(*args, **data) -> str:
        return banner(*BITS, *args, **data)[0]

    assert classes("--oaa", 1000) == "Reduction: one against all (--oaa), 1,000 classes"
    assert classes("--ect", 1, stdin="1 | a\n") == "Reduction: error-correcting tournament (--ect), 1 class"
    assert classes("--log_multi", K) == f"Reduction: LOMTree (--log_multi), {K} classes"
    tree = "Reduction: conditional probability tree"
    assert classes("--multiclass", "-f", "m") == f"{tree} (--multiclass), any number of classes"
    assert classes("--cpt", 70) == f"{tree} (--cpt), about 70 classes"
    seen = len({line.split()[0] for line in (place / "data.vw").read_text().splitlines()})
    assert banner("-i", "m")[0] == f"{tree} (--multiclass), {seen} classes so far"
    named = classes("--recall_tree", 3, "--named_labels", "a,b,c", stdin="a | x\n")
    assert named == "Reduction: recall tree (--recall_tree), 3 classes, labels are names"
    assert classes("--binary", data="simple.vw") == "Reduction: none; one regressor learns labels -1 and 1"
    assert classes("--loss_function", "squared") == "Reduction: none; one regressor learns numbers"


def test_lines_about_weights(place):
    assert "Weights: 2^12 of 12 bytes (-b 12), at most 48 kB" in banner("--oaa", K, "-b", 12)
    assert "Weights: 2^18 of 16 bytes (-b 18), at most 4 MB" in banner("--ect", K, "-b", 18)
    assert "Weights: 2^14 of 8 bytes (-b 14), at most 128 kB" in banner("--log_multi", K, "-b", 14)
    lines = banner("--multiclass", "-b", 16, "--max_doublings", 2, "-f", "m")
    assert "Weights: 294,912 of 4 bytes (-b 16), 1 MB, growing to at most 4 MB" in lines
    assert "Index: 16 classes for each of 2^19 features, at most 64 MB" in lines
    assert "Weights: 294,912 of 4 bytes (-b 16), at most 1 MB" in banner("-t", "-i", "m")


def test_lines_about_learning(place):
    def learning(*args) -> list[str]:
        lines = banner("--oaa", K, *BITS, *args)
        return lines[2 : lines.index("Data: data.vw")]

    rule = "AdaGrad, normalized features, importance-aware steps"
    assert learning() == [f"Learning rate: 0.5 ({rule})", "Loss: squared"]
    assert learning("-l", 0.1, "--power_t", 0.25, "--loss_function", "logistic") == [
        f"Learning rate: 0.1 ({rule})",
        "Decay: steps fall with G^-0.25; G sums squared gradients, from 0",
        "Loss: logistic",
    ]
    assert learning("--sgd", "--initial_t", 2, "--l1", 1e-6, "--l2", 0.5) == [
        "Learning rate: 10 (plain gradient descent)",
        "Decay: the rate falls with t^-0.5, where t counts the examples from 2",
        "Loss: squared",
        "Regularization: L1 1e-06, L2 0.5",
    ]
    assert learning("--sgd", "--power_t", 0)[:2] == ["Learning rate: 10 (plain gradient descent)", "Loss: squared"]
    assert learning("--loss_function", "quantile", "--quantile_tau", 0.9)[-1] == "Loss: quantile 0.9"
    assert learning("--passes", 3, "--decay_learning_rate", 0.5)[2:] == [
        "Passes: 3, the learning rate times 0.5 after each",
        "Held-out lines: 1 in 10, which are predicted but not learned",
    ]
    assert learning("--holdout_after", 5000)[2:] == [
        "Held-out lines: those after line 5,000, which are predicted but not learned"
    ]
    assert learning("--passes", 3, "--holdout_off")[2:] == ["Passes: 3"]
    assert "Learning rate: 0.5 for trees, 0.42 for scorers (AdaGrad)" in banner("--multiclass", *BITS)


def test_lines_about_features_and_output(place):
    words = "--oaa 9 -b 12 -q wn --cubic wnn --interactions wwnn --ignore x --ignore_linear w --ngram 2 --skips 1"
    lines = banner(*words.split())
    features = lines.index("Weights: 2^12 of 12 bytes (-b 12), at most 48 kB") + 1
    assert lines[features : features + 4] == [
        "Namespaces used in interactions only: those that begin with w",
        "Namespaces left out: those that begin with x",
        "N-grams: 2; skips: 1",
        "Interactions: wn wnn wwnn",
    ]
    assert "Namespaces used: those that begin with n w" in banner("--oaa", K, *BITS, "--keep", "nw", "--ignore", "x")
    many = banner("--oaa", K, *BITS, *(word for i in range(97, 123) for word in ("-q", f"{chr(i)}w")))
    first = next(i for i, line in enumerate(many) if line.startswith("Interactions:"))
    assert many[first + 1].startswith("    ") and all(len(line) <= 80 for line in many)
    assert " ".join(many[first : first + 2]).split()[1:] == [f"{chr(i)}w" for i in range(97, 123)]
    assert "Predictions: the scores of all classes" in banner("--oaa", K, *BITS, "--scores")
    assert "Predictions: the probabilities of all classes" in banner(
        "--oaa", K, *BITS, "--probabilities", "--loss_function", "logistic"
    )


def test_lines_about_data(place, monkeypatch):
    def data(*args, **more) -> list[str]:
        return [line for line in banner("--oaa", K, *BITS, *args, **more) if line.startswith(("Data", "Cache"))]

    long = "d" * 90 + ".vw"
    (place / long).write_text(multiclass(1, K, 5))
    assert data(data=long) == [f"Data: {long}"]
    assert data("data.vw", "data.vw") == ["Data: data.vw and 2 more files"]
    assert data(stdin=multiclass(1, K, 5)) == ["Data: standard input"]
    assert data("--passes", 2) == ["Data: data.vw", "Cache: temporary, for the passes after the first"]
    assert data("-c") == ["Data: data.vw", "Cache: data.vw.cache is written"]
    assert data("-c") == ["Data: data.vw", "Cache: data.vw.cache is read instead of the data"]
    monkeypatch.setattr(source, "no_input", lambda: True)
    assert data("--cache_file", "data.vw.cache", stdin="") == ["Cache: data.vw.cache is read"]
