"""200 random small files and command lines over everything around the learner, live against VW.

Passes, cache, what is held out, n-grams, namespaces, start values and ranges, rates, the models saved on the way and at
the end: xclass gets `--vw_exact ARGS`, VW the same ARGS, and the predictions, the table with the summary, and what the
saved model predicts on other data have to be the same. A case is made of its number alone.

VW gets what it needs and xclass does not: one file in place of several, `-d` before the data file, and a cache where
there are several passes. With --initial_pass_length that cache is made beforehand, for VW reads nothing of the data
beyond its first pass where it makes the cache itself, and a single pass needs to be one over text.

Left out, because VW does not define it or xclass means to differ: importance 0 under --recall_tree (entropies become
NaN), -C with a reduction (no effect, refused), malformed lines (test_vw_wide.py), audits (test_readable_model.py).
"""

import importlib.util
import itertools
import random
from pathlib import Path
from typing import NamedTuple

import pytest
from command import xclass
from versus import close, run_vw, table

if importlib.util.find_spec("vowpalwabbit") is None:
    pytest.skip("vowpalwabbit is not installed: nothing to compare with", allow_module_level=True)

CASES = 80
KINDS = ("", "--oaa", "--recall_tree")
WORDS = ("a", "b", "dog", "cat", "12", "007", "été", "a-b", "Q", "3.5")


class Case(NamedTuple):
    """Files to learn from, one to test with, and the options beside them."""

    parts: tuple[str, ...]
    test: str
    args: tuple[str, ...]
    positional: bool  # the first file is named without -d
    tested: str  # model tested: that of -f, or of a tag


# -- making a case -------------------------------------------------------------------------------------------------


def line(rng: random.Random, kind: str, k: int, signs: bool) -> str:
    """A line of data, or an empty one."""
    if rng.random() < 0.05:
        return ""
    source_class = int(k * rng.random() ** 1.5)
    label = str(source_class + 1)
    if not kind:
        label = ("1" if source_class % 2 else "-1") if signs else f"{source_class * 0.5 - 1:g}"
    if rng.random() < 0.3:
        label += f" {rng.choice((2, 0.5, 3, 1.25) if kind == '--recall_tree' else (2, 0.5, 3, 0)):g}"
    if rng.random() < 0.08:
        label = ""
    tag = f" 't{rng.randrange(99)}" if rng.random() < 0.3 else ""
    groups = []
    for name in rng.sample(("a", "bc", "c", "", "n:0.5"), rng.randint(1, 4)):
        words = [f"t{source_class}" if rng.random() < 0.8 else rng.choice(WORDS)]
        for _ in range(rng.randint(0, 3)):
            words.append(rng.choice(WORDS) + rng.choice(("", "", ":2", ":-0.5", ":0.25", ":red")))
        rng.shuffle(words)
        groups.append(f"|{name} {' '.join(words)}")
    return f"{label}{tag} {' '.join(groups)}"


def some(rng: random.Random, *choices: str) -> list[str]:
    return rng.choice(choices).split()


def features(rng: random.Random) -> list[str]:
    """Options of what becomes of the features."""
    args = []
    if rng.random() < 0.5:
        args += some(rng, "--ngram 2", "--ngram a2", "--ngram 3", "--ngram 2 --ngram c3", "--ngram n2 --ngram b2")
        args += some(rng, "", "--skips 1", "--skips a2", "--skips 1 --skips c2")
    args += some(rng, "", "", "", "--ignore a", "--ignore bc --ignore n", "--keep a --keep c", "--keep abn")
    args += some(rng, "", "", "", "--ignore_linear a", "--ignore_linear bc")
    if rng.random() < 0.6:
        args += some(
            rng, "-q ab", "-q ::", "-q aa", "--cubic abc", "--interactions abcn", "-q b: --cubic aac", "-q ab -q ba",
            "-q ac -q ca -q aa", "--cubic aaa --interactions aa",
        )  # fmt: skip
        args += some(rng, "", "", "--permutations", "--leave_duplicate_interactions")
    return args + some(rng, "", "", "", "--noconstant", "--hash all", "--hash_seed 5", "-b 10", "-b 22")


def learning(rng: random.Random, kind: str, loss: str, constant: bool) -> list[str]:
    """Options of the learner."""
    args = [*some(rng, "", "", "-l 0.1", "-l 2", "--power_t 0.3"), *(["--loss_function", loss] if loss else [])]
    if rng.random() < 0.2:
        args = ["--sgd", "-l", "0.02", *args[(2 if args[:1] == ["-l"] else 0) :]]
    args += some(rng, "", "", "", "--l1 0.001", "--l2 0.001", "--l1 0.0005 --l2 0.01")
    args += some(
        rng, "", "", "", "--min_prediction -0.5", "--max_prediction 0.6", "--min_prediction -2 --max_prediction 2"
    )
    args += some(rng, "", "", "--predict_only_model")
    if not kind and constant:
        args += some(rng, "", "", "-C 0.5", "-C -1")
    return args


def resume_options(rng: random.Random) -> list[str]:
    """Options of passes, cache and holdout."""
    passes = rng.choice((1, 1, 2, 2, 3, 4, 6))
    args = ["--passes", str(passes)] if passes > 1 else []
    grows = rng.random() < 0.3
    if grows:
        args += ["--initial_pass_length", str(rng.choice((1, 3, 10, 25, 40, 200)))]
    if passes > 1 or grows:
        args += some(rng, "", "--decay_learning_rate 0.7", "--decay_learning_rate 1.2")
    if rng.random() < 0.35:
        args += ["--holdout_off"]
    else:
        args += some(rng, "", "--holdout_period 3", "--holdout_period 7", "--holdout_after 20", "--holdout_after 60")
        args += some(rng, "", "", "--early_terminate 1", "--early_terminate 2")
    args += some(rng, "", "", "", "--examples 17", "--examples 40")
    args += some(rng, "", "", "--save_per_pass")
    if not (grows and passes == 1):
        args += some(rng, "", "-c", "-c -k", "--cache_file kept")
    return args + some(rng, "", "-P 1", "-P 7", "-P 1.5")


def make(number: int) -> Case:
    """The case of a number."""
    rng = random.Random(f"around the learner {number}")
    kind = KINDS[number % 3]
    loss = rng.choice(
        ("", "", "squared", "logistic", "hinge", "quantile") if not kind else ("", "", "logistic", "hinge")
    )
    k = rng.choice((3, 5, 8, 30) if kind == "--recall_tree" else (2, 3, 5, 8))
    n = rng.choice((4, 12, 35, 70, 100))
    lines = [line(rng, kind, k, loss in ("logistic", "hinge")) for _ in range(n)]
    around = resume_options(rng)
    tested = "model"
    if rng.random() < 0.25:
        tags = rng.choice((["1 save_early|"], ["save|"], ["2 'save_other |", "1 save_early|"]))
        if "--passes" in around and "--holdout_off" not in around and tags == ["save|"]:
            tags = []  # would take the place of the best pass's model
        for tag in tags:
            lines.insert(rng.randrange(1, len(lines) + 1), tag)
        tested = rng.choice(("model", *(["early"] if "1 save_early|" in tags else [])))
    cuts = sorted(rng.sample(range(1, len(lines)), min(len(lines) - 1, rng.choice((0, 0, 0, 1, 2)))))
    parts = tuple(
        "".join(text + "\n" for text in lines[low:high]) for low, high in itertools.pairwise([0, *cuts, len(lines)])
    )
    test = "".join(line(rng, kind, k, loss in ("logistic", "hinge")) + "\n" for _ in range(15))
    args = [*([kind, str(k)] if kind else []), *around, *features(rng)]
    args += learning(rng, kind, loss, "--noconstant" not in args)
    if kind == "--recall_tree":
        args += some(rng, "", "--max_candidates 2", "--max_candidates 3 --max_depth 2", "--randomized_routing")
    else:
        args += some(rng, "", "", "-r raw")
    if "--predict_only_model" in args and {"--l1", "--l2"} & set(args):
        tested = (
            "model"  # at a tag VW saves weights it does not predict with: their regularisation is due at the pass's end
        )
    return Case(parts, test, tuple(args), rng.random() < 0.3, tested)


# -- carrying it out -----------------------------------------------------------------------------------------------


def with_vw(place: Path, case: Case) -> list[list[str]]:
    """What VW writes: table and summary, names of models, predictions, those of the model saved, raw predictions."""
    place.mkdir()
    (place / "data").write_text("".join(case.parts))
    (place / "test").write_text(case.test)
    args = list(case.args)
    if "--passes" in args and not {"-c", "--cache_file"} & set(args):
        args.append("-c")
    if "--initial_pass_length" in args and "--passes" in args:
        args = [arg for arg in args if arg != "-k"]
        file = [] if "-c" in args else ["--cache_file", "kept"]
        bits = [word for i, word in enumerate(args) if word == "-b" or args[i - 1 : i] == ["-b"]]
        hashed = [
            word for i, word in enumerate(args)
            if word in ("--hash", "--hash_seed") or args[i - 1] in ("--hash", "--hash_seed")
        ]  # fmt: skip
        kind = args[: 2 if args[0] in KINDS else 0]
        run_vw("-d", "data", *kind, *(file or ["-c"]), *bits, *hashed, "--quiet", cwd=place)
        for name in ("early", "other"):
            (place / name).unlink(missing_ok=True)
    err = run_vw("-d", "data", *args, "-p", "p", "-f", "model", cwd=place).err
    if (place / case.tested).exists():  # a pass may end before the tag
        # not in VW's model
        pair_options = [arg for arg in args if arg in ("--permutations", "--leave_duplicate_interactions")]
        run_vw("-d", "test", "-t", "-i", case.tested, *pair_options, "-p", "tested", "--quiet", cwd=place)
    return written(place, err)


def with_xclass(place: Path, case: Case) -> list[list[str]]:
    """The same of xclass."""
    place.mkdir()
    names = [f"part{i}" for i in range(len(case.parts))]
    for name, part in zip(names, case.parts, strict=True):
        (place / name).write_text(part)
    (place / "test").write_text(case.test)
    sources = [] if case.positional else ["-d"]
    sources += [names[0], *(word for name in names[1:] for word in ("-d", name))]
    if case.positional and len(names) > 1:  # files named with -d come first
        sources = names
    err = run_xclass(place, *sources, *case.args, "-p", "p", "-f", "model")
    if (place / case.tested).exists():
        run_xclass(place, "-d", "test", "-t", "-i", case.tested, "-p", "tested", "--quiet")
    return written(place, err)


def run_xclass(place: Path, *args: str) -> str:
    result = xclass("--vw_exact", *args, cwd=place)
    assert result.status == 0, f"xclass --vw_exact {' '.join(args)}\n{result.err}"
    return result.err


def written(place: Path, err: str) -> list[list[str]]:
    models = sorted(path.name for path in place.iterdir() if path.name.startswith(("model", "early", "other")))
    files = [place / name for name in ("p", "tested", "raw")]
    return [table(err), models, *(path.read_text().splitlines() if path.exists() else [] for path in files)]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("number", range(CASES))
def test_predictions_summary_and_saved_models_are_vws(tmp_path, number):
    case = make(number)
    command = f"case {number}: {' '.join(case.args)}\ntested: {case.tested}\nfiles: {tmp_path}"
    try:
        expected_outputs = with_vw(tmp_path / "vw", case)
        outputs = with_xclass(tmp_path / "xclass", case)
    except AssertionError as error:
        raise AssertionError(f"{command}\n{error}") from None
    for output, expected, actual in zip(
        ("table", "models", "predictions", "predictions of the saved model", "raw predictions"),
        expected_outputs, outputs, strict=True,
    ):  # fmt: skip
        for i, (expected_line, line) in enumerate(itertools.zip_longest(expected, actual, fillvalue="(nothing)"), 1):
            assert close(expected_line, line), (
                f"{command}\n{output}, line {i}\nVW:     {expected_line}\nxclass: {line}\n\n{''.join(case.parts)}"
            )
