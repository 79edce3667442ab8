"""What every member of REDUCTIONS has to keep: the same list for each, new ones included.

A new reduction is made with K classes and its defaults; variants that take other ways through the code are listed
in support/variants.py. What depends on how a run cuts and shares out work is checked through the command.
"""

import json
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from command import learn, script, xclass
from library import state_of
from streams import of_kind
from variants import AT_THE_END, BITS, BY_NAME, KINDS, VARIANTS, K, chosen, every_variant, learner, name_of, words_of

from xclass import check_reduction, checks
from xclass.api.learner import Learner, load
from xclass.reductions.core import base
from xclass.reductions.oaa import class_rows
from xclass.run import warm_up
from xclass.system import pipeline
from xclass.text import reader


def stream(name: str, seed: int, n: int, **more) -> str:
    """Lines a reduction can learn from, by default with tags, weights and some without a label."""
    more = {"tags": True, "weights": (1, 0.5, 2, 0), "unlabelled": 0.1, **more}
    return of_kind(KINDS[name], seed, K, n, **more)


EVERY = pytest.mark.parametrize("name", list(BY_NAME))
EVERY_MULTICLASS = pytest.mark.parametrize("name", [name for name in BY_NAME if BY_NAME[name].labels == "multiclass"])
EVERY_VARIANT = every_variant()

CASES = [  # defaults have all checks, and each variant one in three of them; the other cases are slow tests
    pytest.param(
        check, name, options, id=f"{check} {name_of(name, options)}",
        marks=[pytest.mark.slow] if number and (number + place) % 3 else [],
    )
    for name in BY_NAME
    for number, options in enumerate([{}, *VARIANTS.get(name, [])])
    for place, check in enumerate(checks.CHECKS)
    if (name, check) != ("means", "classes_that_do_not_occur_are_not_predicted")  # which has examples without rows
]  # fmt: skip


class Variant(checks.Case):
    """A reduction with options, some of which may be those of a run."""

    def learner(self, classes: int = K, **options) -> Learner:
        return learner(self.record.name, classes, **{**self.options, **options})


pytestmark = pytest.mark.usefixtures("place")


def scores_to(path: str, name: str) -> tuple[str, ...]:
    """Return the option that writes scores, if the reduction has some."""
    return ("-r", path) if BY_NAME[name].labels != "multilabel" or BY_NAME[name].class_scores else ()


def run(place, *args, stdin: str) -> tuple[str, bytes]:
    """Predictions and the bytes of the model of a run of the command."""
    result = learn(*args, "--quiet", "-p", "stdout", "-f", "m", stdin=stdin)
    return result.out, (place / "m").read_bytes()


def all_of(model: Learner, text: str) -> list[float]:
    """Learn from a text to its end; return the predictions made before."""
    return [*model.learn_many(text).prediction.tolist(), *model.end_pass().prediction.tolist()]


def learned(name: str, options: dict, text: str) -> tuple[list[float], dict]:
    """The predictions of a new learner, and what its model keeps."""
    with learner(name, **options) as model:
        return all_of(model, text), state_of(model)


@pytest.mark.bounds
@pytest.mark.parametrize(("check", "name", "options"), CASES)
@pytest.mark.filterwarnings("ignore::xclass.XclassWarning")
def test_keeps(check, name, options):
    if check == "learns_to_tell_classes_apart" and options.get("tree_init") == "random":
        pytest.skip("a random tree without zero loss separates few classes; test_softmax_tree measures it")
    checks.CHECKS[check](Variant(BY_NAME[name], options))


def test_problems_are_named():
    """A learner that forgets a part of its state does not keep the contract; the others are as they should be."""
    record = BY_NAME["random_tree"]

    class Forgetful(record.build):
        """Counts calls in its model."""

        calls = 0

        def serialize(self, archive):
            super().serialize(archive)
            if archive.saves:
                Forgetful.calls += 1
                archive.facts["outside"] = Forgetful.calls

    problems = check_reduction(replace(record, build=Forgetful))
    assert "learns_the_same_again" in {problem.check for problem in problems}
    assert all(problem.message for problem in problems)


# -- the same bytes, however the work is cut and shared out --------------------------------------------------------


@pytest.mark.sampled(4)
@pytest.mark.bounds
@EVERY_VARIANT
def test_size_of_batches_does_not_matter(place, monkeypatch, name, options):
    text = stream(name, 1, 80)
    args = (*chosen(name), *BITS, *words_of(options))
    whole = run(place, *args, stdin=text)
    line = len(text) // 80
    for size in (line // 2, 7 * line):
        monkeypatch.setattr(reader, "FIRST_BLOCK", size)
        monkeypatch.setattr(reader, "LARGEST_BLOCK", size)
        assert run(place, *args, stdin=text) == whole


@EVERY
def test_a_run_that_compiles_first_gives_the_same_bytes(place, monkeypatch, name):
    text = stream(name, 1, 60)
    straight = run(place, *chosen(name), *BITS, stdin=text)
    calls = []

    def prepare(config, learner, reads):
        for part in warm_up.parts(learner, not config.use.testing, reads).values():
            calls.append(part)
            part()

    monkeypatch.setattr(warm_up, "prepare", prepare)
    assert run(place, *chosen(name), *BITS, stdin=text) == straight
    assert calls


@every_variant(slow=True)
def test_speed_of_the_stages_does_not_matter(place, monkeypatch, name, options):
    text = stream(name, 2, 120)
    args = (*chosen(name), *BITS, *words_of(options))
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

        def init_with_pauses(self, source, stages, *marks, pauses=(first, later)):
            start(self, source, [slowed(stage, pauses[min(j, 1)]) for j, stage in enumerate(stages)], *marks)

        monkeypatch.setattr(pipeline.Pipeline, "__init__", init_with_pauses)
        assert run(place, *args, stdin=text) == straight


@pytest.mark.parametrize("name", [name for name in BY_NAME if name != "scalar"])
def test_number_of_processors_does_not_matter(place, monkeypatch, name):
    k = 3 * class_rows.BLOCK + 5
    text = of_kind(KINDS[name], 3, k, 60, unlabelled=0.1)
    outputs = []
    for processors in (1, 2, 7):
        monkeypatch.setattr("xclass.system.thread_limit.processors", lambda processors=processors: processors)
        monkeypatch.setattr("os.sched_getaffinity", lambda _, processors=processors: set(range(processors)))
        monkeypatch.setattr(base, "ThreadPoolExecutor", lambda _, *a, n=processors: ThreadPoolExecutor(n))
        output = run(place, *chosen(name, k), "-b", 15, *scores_to("raw", name), stdin=text)
        outputs.append((*output, (place / "raw").read_text() if scores_to("raw", name) else ""))
    assert outputs[0] == outputs[1] == outputs[2]


@EVERY
def test_limit_of_threads_does_not_matter(place, monkeypatch, name):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(reader, "FIRST_BLOCK", 2000)
    monkeypatch.setattr(reader, "LARGEST_BLOCK", 20000)
    text = stream(name, 3, 400)
    (place / "d.vw").write_text(text)
    outputs = [run(place, *chosen(name), *BITS, "-d", "d.vw", stdin="")]
    for threads in (1, 3):
        outputs.append(run(place, *chosen(name), *BITS, "-d", "d.vw", "--threads", threads, stdin=""))
    assert all(output == outputs[0] for output in outputs)
    again = learn("-i", "m", "-t", "-d", "d.vw", "--quiet", "-p", "stdout")  # no limit comes with the model
    limited = learn("-i", "m", "-t", "-d", "d.vw", "--quiet", "-p", "stdout", "--threads", 1)
    assert again.out == limited.out
    assert "threads" not in load("m").options


@EVERY
def test_what_a_run_shows_does_not_change_its_model(place, name):
    text = stream(name, 4, 100)
    silent = run(place, *chosen(name), *BITS, stdin=text)
    every = [("-P", 3, *scores_to("raw", name)), ("--explain", 2), ("--summary", "s", "--curve", "c")]
    if BY_NAME[name].labels == "multiclass":
        every.append(("--per_class", "k", "--errors", "e"))
    if name in ("scalar", "oaa", "recall_tree", "ect"):
        every.append(("--audit", "--invert_hash", "names"))
    for shown in every:
        learn(*chosen(name), *BITS, *shown, "-p", "p", "-f", "talking", stdin=text)
        assert ((place / "p").read_text(), (place / "talking").read_bytes()) == silent, shown


@pytest.mark.parametrize(
    ("name", "options"),
    [("oaa", {"oaa_subsample": 2}), ("recall_tree", {"randomized_routing": True, "bern_hyper": 0})],
)
def test_seed_matters_where_something_is_drawn(name, options):
    text = stream(name, 5, 100)
    first, second, again = (learned(name, {**options, "random_seed": seed}, text) for seed in (0, 1, 1))
    assert second == again
    first_arrays, second_arrays = first[1].arrays, second[1].arrays
    assert any(
        first_arrays[key] != second_arrays[key] for key in first_arrays if key.endswith(".w") and key in second_arrays
    )


# -- corners -------------------------------------------------------------------------------------------------------


@EVERY
def test_tags_of_examples_without_features_are_written(place, name):
    predictions, _ = run(place, *chosen(name), *BITS, stdin="1 |\ntag\n\n |\n1 't|w\n")
    assert [line.partition(" ")[2] for line in predictions.splitlines()] == ["", "tag", "", "t"]


@EVERY_MULTICLASS
@pytest.mark.parametrize("layout", ["odd", "vw"])
def test_one_class_is_always_the_answer(name, layout):
    taken = BY_NAME[name].learner_options
    options = {"layout": layout} if name != "cpt" and (taken is None or "layout" in taken) else {}
    text = "1 |w a\n1 |w b\n |w c\n1 2 |w a b\n"
    if name == "means":  # which learns dense rows
        text = "1 |rows 0:1\n1 |rows 1:2\n |rows 2:3\n1 2 |rows 3:4\n"
    with learner(name, 1, **options) as model:
        predictions = all_of(model, text)
        if name in AT_THE_END:
            predictions = model.predict_many(text).tolist()
    assert predictions[1:] == [1, 1, 1]
    assert predictions[0] in (0, 1)


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
@EVERY
def test_few_examples_are_enough_to_learn_and_predict(place, name):
    text = stream(name, 15, 12)
    result = learn(*chosen(name), "-b", 8, "--quiet", "-p", "stdout", "-f", "m", stdin=text)
    assert result.out.count("\n") == 12
    tested = learn("-i", "m", "-t", "--quiet", "-p", "stdout", stdin=text).out
    assert tested.count("\n") == 12
    learn("-i", "m", "-f", "m", stdin=text)


# -- learning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in BY_NAME if BY_NAME[name].labels != "multilabel"])
def test_summary_counts_what_the_predictions_say(place, name):
    text = stream(name, 17, 200)
    result = learn(*chosen(name), *BITS, "-p", "p", "-f", "m", stdin=text)
    if name in AT_THE_END:
        assert "average loss = n.a." in result.err
        result = learn("-i", "m", "-t", "-p", "p", stdin=text)
    loss = weight = 0.0
    for line, prediction in zip(text.splitlines(), (place / "p").read_text().splitlines(), strict=True):
        words = line.split("|")[0].split(" ")
        if words[0] == "":
            continue
        y, p = float(words[0]), float(prediction.split()[0])
        loss += float(words[1]) * ((y - p) ** 2 if BY_NAME[name].labels == "simple" else y != p)
        weight += float(words[1])
    average_loss = float(result.err.split("average loss = ")[1].split()[0])
    assert average_loss == pytest.approx(loss / weight, abs=2e-6)
    assert "number of examples = 200\n" in result.err


# -- compiled code -------------------------------------------------------------------------------------------------

COUNT = """
import sys, json
import numba
from xclass.cli import command as cli
for words in json.loads({runs!r}):
    assert cli.status(words) == 0, words
counts = {{}}
for name, module in list(sys.modules.items()):
    if name.split('.')[0] == 'xclass':
        for key, kernel in vars(module).items():
            if isinstance(kernel, numba.core.dispatcher.Dispatcher) and kernel.signatures:
                counts[f'{{name}}.{{key}}'] = len(kernel.signatures)
print(json.dumps(counts))
sys.argv[1:] = ['--version']
"""


@pytest.mark.parametrize(
    "name", [name if name == "recall_tree" else pytest.param(name, marks=pytest.mark.slow) for name in BY_NAME]
)
def test_every_kernel_is_compiled_for_one_signature(place, name):
    """A second one would compile anew, for seconds, in the middle of a run."""
    (place / "a.vw").write_text(stream(name, 18, 60))
    (place / "b.vw").write_text("1 |w b\n")
    (place / "u.vw").write_text(" |w b\n" + "1 |\n")
    runs = []
    variants = VARIANTS.get(name, [])
    for more in [{}, *(variants if os.environ.get("SLOW") else variants[::3])]:
        args = [*chosen(name), *BITS, "--quiet", *words_of(more)]
        runs.append([*args, "-d", "a.vw", "-f", "m", "-p", "p", *scores_to("r", name)])
        runs.append(["-i", "m", "-d", "b.vw", "-t", "--quiet", "-p", "p"])
        runs.append(["-i", "m", "-d", "b.vw", "-f", "m", "--quiet"])
        runs.append([*args, "-d", "u.vw"])
    perplexity = ["--perplexity"] * (BY_NAME[name].labels == "multiclass")
    for words in [("--top_k", 3, *scores_to("r", name)), ("--probabilities",)] if BY_NAME[name].probabilities else []:
        runs.append([*chosen(name), *BITS, *words, "-d", "a.vw", "-p", "p", "-f", "m", *perplexity])
        runs.append(["-i", "m", *words, "-d", "b.vw", "-t", "-p", "p"])
    runs = [[str(word) for word in words] for words in runs]
    for words in runs:  # everything is compiled now, and in the other process only what Python calls is loaded
        assert xclass(*words).status == 0
    result = script(COUNT.format(runs=json.dumps(runs)), new=True)
    assert result.status == 0, result.err
    signatures = json.loads(result.out.splitlines()[0])
    assert len(signatures) > 3
    assert {kernel: count for kernel, count in signatures.items() if count != 1} == {}
