"""What every member of REDUCTIONS has to keep, checked through the command: the same list for each, new ones included.

A new reduction is run with `--name K` and its defaults; variants that take other ways through the code are listed
in support/variants.py.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from command import learn, script, xclass
from streams import multiclass, real
from variants import AT_THE_END, BITS, BY_NAME, VARIANTS, K, chosen

from xclass.model import model_file
from xclass.reductions.core import base
from xclass.reductions.oaa import class_rows
from xclass.run import pipeline, warm_up
from xclass.text import reader


def stream(name: str, seed: int, n: int, **more) -> str:
    """Lines a reduction can learn from, with tags, weights and unlabelled ones unless told otherwise."""
    more = {"tags": True, "weights": (1, 0.5, 2, 0), "unlabelled": 0.1, **more}
    if BY_NAME[name].labels == "simple":
        return real(seed, n, signs=True, **more)
    return multiclass(seed, K, n, **more)


EVERY = pytest.mark.parametrize("name", list(BY_NAME))
EVERY_VARIANT = pytest.mark.parametrize(
    ("name", "args"),
    [(name, (*chosen(name), *BITS, *more)) for name in BY_NAME for more in [(), *VARIANTS.get(name, [])]],
    ids=lambda value: " ".join(map(str, value[2:])) if isinstance(value, tuple) else value,
)


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """An empty folder to run in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(place, *args, stdin: str) -> tuple[str, bytes]:
    """Predictions and the bytes of the model."""
    done = learn(*args, "--quiet", "-p", "stdout", "-f", "m", stdin=stdin)
    return done.out, (place / "m").read_bytes()


def arrays_of(model: bytes, place) -> dict[str, np.ndarray]:
    (place / "looked-at").write_bytes(model)
    return {name: np.array(array) for name, array in model_file.load(place / "looked-at").arrays.items()}


def without(text: str, drop) -> str:
    return "".join(line for line in text.splitlines(keepends=True) if not drop(line.split("|")[0].split(" ")))


# -- the same bytes, however the work is cut and shared out --------------------------------------------------------


@pytest.mark.bounds
@EVERY_VARIANT
def test_size_of_batches_does_not_matter(place, monkeypatch, name, args):
    text = stream(name, 1, 150)
    whole = run(place, *args, stdin=text)
    line = len(text) // 150
    for size in (line // 2, 7 * line):
        monkeypatch.setattr(reader, "FIRST_BLOCK", size)
        monkeypatch.setattr(reader, "LARGEST_BLOCK", size)
        assert run(place, *args, stdin=text) == whole


@pytest.mark.bounds
@EVERY_VARIANT
def test_a_batch_of_no_examples_changes_nothing(place, monkeypatch, name, args):
    text = stream(name, 1, 60)
    straight = run(place, *args, stdin=text)
    calls = []

    def prepare(learner, learning, reads):
        calls.append(learner)
        warm_up.go_through(learner, learning)

    monkeypatch.setattr(warm_up, "prepare", prepare)
    assert run(place, *args, stdin=text) == straight
    assert calls


@EVERY_VARIANT
def test_pace_of_the_stages_does_not_matter(place, monkeypatch, name, args):
    text = stream(name, 2, 120)
    straight = run(place, *args, stdin=text)
    monkeypatch.setattr(reader, "FIRST_BLOCK", 600)
    monkeypatch.setattr(reader, "LARGEST_BLOCK", 600)
    start = pipeline.Pipeline.__init__
    rng = random.Random(2)

    def slowed(stage, most):
        def slow(item):
            time.sleep(rng.random() * most)
            stage(item)

        return slow

    for first, later in ((0.004, 0.0), (0.0, 0.004)):

        def begin(self, source, stages, pauses=(first, later)):
            start(self, source, [slowed(stage, pauses[min(j, 1)]) for j, stage in enumerate(stages)])

        monkeypatch.setattr(pipeline.Pipeline, "__init__", begin)
        assert run(place, *args, stdin=text) == straight


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "scalar"])
def test_number_of_processors_does_not_matter(place, monkeypatch, name):
    k = 3 * class_rows.BLOCK + 5
    text = multiclass(3, k, 60, unlabelled=0.1)
    found = []
    for processors in (1, 2, 7):
        monkeypatch.setattr("xclass.system.processors.count", lambda processors=processors: processors)
        monkeypatch.setattr("os.sched_getaffinity", lambda _, processors=processors: set(range(processors)))
        monkeypatch.setattr(base, "ThreadPoolExecutor", lambda _, *a, n=processors: ThreadPoolExecutor(n))
        found.append((*run(place, *chosen(name, k), "-b", 15, "-r", "raw", stdin=text), (place / "raw").read_text()))
    assert found[0] == found[1] == found[2]


@EVERY_VARIANT
def test_run_repeated_gives_the_same_bytes(place, name, args):
    text = stream(name, 4, 100)
    first = run(place, *args, stdin=text)
    assert run(place, *args, stdin=text) == first
    learn(*args, "-P", 3, "-r", "raw", "-f", "talking", stdin=text)
    assert (place / "talking").read_bytes() == first[1]


@pytest.mark.parametrize(
    ("name", "more"), [("oaa", ("--oaa_subsample", 2)), ("recall_tree", ("--randomized_routing", "--bern_hyper", 0))]
)
def test_seed_matters_where_something_is_drawn(place, name, more):
    text = stream(name, 5, 100)
    seeds = [run(place, *chosen(name), *BITS, *more, "--random_seed", seed, stdin=text) for seed in (0, 1, 1)]
    assert seeds[1] == seeds[2]
    first, second = (arrays_of(model, place) for _, model in seeds[:2])
    assert any(not np.array_equal(first[key], second[key]) for key in first if key.endswith(".w") and key in second)


# -- models --------------------------------------------------------------------------------------------------------


@pytest.mark.bounds
@EVERY_VARIANT
def test_going_on_from_a_model_is_the_unbroken_run(place, name, args):
    if name in AT_THE_END:
        pytest.skip("goes on with the new examples alone, from the tree it has: test_softmax_tree")
    first, second = stream(name, 6, 70), stream(name, 7, 50)
    predictions, model = run(place, *args, stdin=first + second)
    before = learn(*args, "--quiet", "-p", "stdout", "-f", "part", stdin=first).out
    after = learn("-i", "part", "-f", "m", "--quiet", "-p", "stdout", stdin=second).out
    assert before + after == predictions
    assert (place / "m").read_bytes() == model


@EVERY_VARIANT
def test_testing_changes_nothing_and_has_no_order(place, name, args):
    _, model = run(place, *args, stdin=stream(name, 8, 100))
    (place / "kept").write_bytes(model)
    test = stream(name, 9, 60)
    done = learn("-i", "kept", "-t", "--quiet", "-p", "stdout", "-f", "again", stdin=test)
    assert (place / "again").read_bytes() == model
    turned = "".join(reversed(test.splitlines(keepends=True)))
    reverse = learn("-i", "kept", "-t", "--quiet", "-p", "stdout", stdin=turned)
    assert reverse.lines[::-1] == done.lines


@EVERY_VARIANT
def test_testing_does_not_look_at_labels(name, args):
    learn(*args, "--quiet", "-f", "kept", stdin=stream(name, 10, 100))
    test = stream(name, 11, 60, tags=False)
    done = learn("-i", "kept", "-t", "--quiet", "-p", "stdout", stdin=test)
    blind = "".join(" |" + line.split("|", 1)[1] for line in test.splitlines(keepends=True))
    assert learn("-i", "kept", "-t", "--quiet", "-p", "stdout", stdin=blind).out == done.out


@EVERY_VARIANT
def test_lines_without_weight_or_label_change_nothing(place, name, args):
    # as in VW, a weight of 0 draws classes and counts in a tree, and a final has weights of its own
    weights = (1, 2) if {"--oaa_subsample", "--ect_play", "--lom_rules"} & set(args) else (1, 0, 2)
    text = stream(name, 12, 150, tags=False, weights=weights, unlabelled=0.2)
    bare = without(text, lambda words: words[0] == "" or words[1] == "0")
    assert 30 < bare.count("\n") < 130
    _, model = run(place, *args, stdin=text)
    assert run(place, *args, stdin=bare)[1] == model


# -- corners -------------------------------------------------------------------------------------------------------


@pytest.mark.bounds
@EVERY_VARIANT
@pytest.mark.parametrize("more", [(), ("--noconstant",)], ids=["constant", "noconstant"])
def test_examples_without_features(place, name, args, more):
    simple = BY_NAME[name].labels == "simple"
    text = "1 |\ntag\n\n |\n1 |w\n" + ("-1 |\n" if simple else "2 |\n")  # an empty line is no example
    predictions, _ = run(place, *args, *more, stdin=text)
    assert [line.partition(" ")[2] for line in predictions.splitlines()] == ["", "tag", "", "", ""]
    assert "nan" not in predictions
    _, model = run(place, *args, *more, stdin=text + stream(name, 13, 100))
    for key, array in arrays_of(model, place).items():
        assert array.dtype.kind != "f" or np.isfinite(array).all(), key


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "scalar"])
@pytest.mark.parametrize("layout", ["odd", "vw"])
def test_one_class_is_always_the_answer(place, name, layout):
    layout = () if name in ("cpt", "softmax_tree") else ("--layout", layout)
    text = "1 |w a\n1 |w b\n |w c\n1 2 |w a b\n"
    predictions, _ = run(place, *chosen(name, 1), *BITS, *layout, stdin=text)
    if name in AT_THE_END:
        predictions = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=text).out
    assert predictions.split()[1:] == ["1", "1", "1"]
    assert predictions.split()[0] in ("0", "1")


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "scalar"])
def test_class_never_seen_is_not_answered_and_does_no_harm(place, name):
    text = "".join(line for line in multiclass(14, K, 300, noise=0).splitlines(True) if line.split()[0] not in "47")
    predictions, _ = run(place, *chosen(name), *BITS, stdin=text)
    predictions += learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=text).out
    assert not set(predictions.split()[100:]) & {"4", "7"}


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@EVERY
def test_few_examples_go_all_the_way(place, name):
    text = stream(name, 15, 12)
    predictions, _ = run(place, *chosen(name), "-b", 8, stdin=text)
    assert predictions.count("\n") == 12
    tested = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=text).out
    assert tested.count("\n") == 12
    learn("-i", "m", "-f", "m", stdin=text)


# -- learning ------------------------------------------------------------------------------------------------------


@EVERY_VARIANT
def test_learns_a_stream_whose_answer_is_known(place, name, args):
    n = 1500
    if BY_NAME[name].labels == "simple":
        text = real(16, n, signs=True)
    else:
        text = multiclass(16, K, n, noise=0.0)
    answers = [line.split(" ")[0] for line in text.splitlines()]
    predictions = run(place, *args, stdin=text)[0].splitlines()
    if name in AT_THE_END:
        assert set(predictions) == {"0"}
        run(place, *args, stdin="".join(text.splitlines(keepends=True)[: n // 2]))
        predictions = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=text).lines
    if BY_NAME[name].labels == "simple":
        middle = 0.5 if "--link" in args else 0.0
        predictions = ["1" if float(value) >= middle else "-1" for value in predictions]
    wrong = sum(a != b for a, b in zip(answers[n // 2 :], predictions[n // 2 :], strict=True)) / (n - n // 2)
    assert wrong < (0.35 if "--randomized_routing" in args else 0.1)


@EVERY
def test_summary_counts_what_the_predictions_say(place, name):
    text = stream(name, 17, 200)
    done = learn(*chosen(name), *BITS, "-p", "p", "-f", "m", stdin=text)
    if name in AT_THE_END:
        assert "average loss = n.a." in done.err
        done = learn("-i", "m", "-t", "-p", "p", stdin=text)
    loss = weight = 0.0
    for line, answer in zip(text.splitlines(), (place / "p").read_text().splitlines(), strict=True):
        words = line.split("|")[0].split(" ")
        if words[0] == "":
            continue
        y, p = float(words[0]), float(answer.split()[0])
        loss += float(words[1]) * ((y - p) ** 2 if BY_NAME[name].labels == "simple" else y != p)
        weight += float(words[1])
    told = float(done.err.split("average loss = ")[1].split()[0])
    assert told == pytest.approx(loss / weight, abs=2e-6)
    assert "number of examples = 200\n" in done.err


# -- compiled code -------------------------------------------------------------------------------------------------

COUNT = """
import sys, json
import numba
from xclass.cli import command as cli
for words in json.loads({runs!r}):
    assert cli.status(words) == 0, words
found = {{}}
for name, module in list(sys.modules.items()):
    if name.split('.')[0] == 'xclass':
        for key, one in vars(module).items():
            if isinstance(one, numba.core.dispatcher.Dispatcher) and one.signatures:
                found[f'{{name}}.{{key}}'] = len(one.signatures)
print(json.dumps(found))
sys.argv[1:] = ['--version']
"""


@EVERY
def test_every_kernel_is_compiled_for_one_signature(place, name):
    """A second one would compile anew, for seconds, in the middle of a run."""
    import json

    (place / "a.vw").write_text(stream(name, 18, 60))
    (place / "b.vw").write_text("1 |w b\n")
    (place / "u.vw").write_text(" |w b\n" + "1 |\n")
    runs = []
    for more in [(), *VARIANTS.get(name, [])]:
        args = [*chosen(name), *BITS, "--quiet", *more]
        runs.append([*args, "-d", "a.vw", "-f", "m", "-p", "p", "-r", "r"])
        runs.append(["-i", "m", "-d", "b.vw", "-t", "--quiet", "-p", "p"])
        runs.append(["-i", "m", "-d", "b.vw", "-f", "m", "--quiet"])
        runs.append([*args, "-d", "u.vw"])
    for words in [("--top_k", 3, "-r", "r"), ("--probabilities",)] if BY_NAME[name].probabilities else []:
        runs.append([*chosen(name), *BITS, *words, "-d", "a.vw", "-p", "p", "-f", "m", "--perplexity"])
        runs.append(["-i", "m", *words, "-d", "b.vw", "-t", "-p", "p"])
    runs = [[str(word) for word in words] for words in runs]
    for words in runs:  # everything is compiled now, and in the other process only what Python calls is loaded
        assert xclass(*words).status == 0
    done = script(COUNT.format(runs=json.dumps(runs)))
    assert done.status == 0, done.err
    found = json.loads(done.out.splitlines()[0])
    assert len(found) > 3
    assert {kernel: count for kernel, count in found.items() if count != 1} == {}
