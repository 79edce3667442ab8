"""Regularisation, start values and ranges of the learner: predictions and weights against VW."""

import numpy as np
import pytest
from command import learn
from library import state_of
from streams import multiclass, real
from versus import needs_vw, run_vw

from xclass.api.learner import Learner, load
from xclass.binary import gd, loss

F = np.float32


def vw(folder, *args: str) -> list[str]:
    run_vw("-d", "data", "-p", "wanted", *args, cwd=folder)
    return (folder / "wanted").read_text().splitlines()


def run_xclass(folder, *args: str) -> list[str]:
    learn("--vw_exact", "-d", "data", "-p", "found", "--quiet", *args, cwd=folder)
    return (folder / "found").read_text().splitlines()


def numbers(lines: list[str]) -> np.ndarray:
    return np.array([float(line.split()[0]) for line in lines])


def assert_same(actual: list[str], expected: list[str], close: float = 1e-3) -> None:
    assert len(actual) == len(expected)
    np.testing.assert_allclose(numbers(actual), numbers(expected), atol=close, rtol=close)


def summary(err: str) -> dict[str, str]:
    return dict(line.split(" = ") for line in err.splitlines() if line.count(" = ") == 1)


REAL = [
    "--l1 0.001",
    "--l2 0.01",
    "--l1 0.01 --l2 0.001",
    "--l2 0.5",
    "--l1 5",
    "--l1 0.0001 --sgd",
    "--l2 0.001 --adaptive --invariant -l 0.5",
    "--l1 0.001 --l2 0.001 --loss_function hinge",
    "--l1 0.001 --l2 0.001 --loss_function quantile",
    "--l1 0.001 --l2 0.01 --loss_function classic",
    "--loss_function classic -l 0.3 --power_t 0.4",
    "--loss_function classic --invariant --normalized",
    "--initial_weight 0.25",
    "--initial_weight -0.1 --l1 0.001 --sgd",
    "-C 0.7",
    "-C -2 --initial_weight 0.1 --initial_t 3",
    "--min_prediction 0.2",
    "--max_prediction 0.1 --l2 0.01",
    "--min_prediction -0.5 --max_prediction 0.5",
    "--min_prediction -0.2 --max_prediction 0.9 --sgd",
]
SIGNS = [
    "--loss_function logistic --l1 0.001 --l2 0.001",
    "--loss_function logistic --binary",
    "--loss_function logistic --link logistic --binary",
    "--loss_function hinge --binary --l2 0.01",
    "--binary --loss_function logistic --min_prediction -2 --max_prediction 3",
    "--loss_function logistic --max_prediction 1.5",
]
CLASSES = [
    "--oaa 5 --l1 0.001",
    "--oaa 5 --l2 0.01 --l1 0.0001",
    "--oaa 5 --l2 0.3",
    "--oaa 5 --l1 0.001 --loss_function logistic",
    "--oaa 5 --l2 0.01 --oaa_subsample 2",
    "--oaa 5 --initial_weight 0.1",
    "--oaa 5 --initial_weight 0.1 --l1 0.01 --loss_function logistic",
    "--oaa 5 --min_prediction -0.4 --max_prediction 0.4",
    "--oaa 5 --loss_function classic",
    "--recall_tree 5 --l1 0.001 --l2 0.001",
    "--recall_tree 5 --max_candidates 2 --l2 0.02 --loss_function logistic",
    "--recall_tree 5 --max_candidates 2 --initial_weight 0.05",
    "--recall_tree 5 --max_candidates 2 --loss_function classic --max_prediction 0.8",
]


@needs_vw
@pytest.mark.parametrize("command", REAL)
def test_real_predictions_are_vws(command, tmp_path):
    (tmp_path / "data").write_text(real(REAL.index(command), 80, weights=(0.5, 1, 2), unlabelled=0.1))
    assert_same(run_xclass(tmp_path, *command.split()), vw(tmp_path, *command.split()))


@needs_vw
@pytest.mark.parametrize("command", SIGNS)
def test_predictions_and_loss_of_signs_are_vws(command, tmp_path):
    (tmp_path / "data").write_text(real(SIGNS.index(command), 80, signs=True, unlabelled=0.1))
    assert_same(run_xclass(tmp_path, *command.split()), vw(tmp_path, *command.split()))
    own = summary(learn("--vw_exact", "-d", "data", *command.split(), cwd=tmp_path).err)
    wanted = summary(run_vw("-d", "data", *command.split(), cwd=tmp_path).err)
    assert abs(float(own["average loss"]) - float(wanted["average loss"])) < 1e-3


@needs_vw
@pytest.mark.parametrize("command", CLASSES)
def test_classes_are_vws(command, tmp_path):
    (tmp_path / "data").write_text(multiclass(CLASSES.index(command), 5, 120, unlabelled=0.1))
    assert run_xclass(tmp_path, *command.split()) == vw(tmp_path, *command.split())


@needs_vw
@pytest.mark.parametrize("command", ["--l1 0.01 --l2 0.001", "--initial_weight 0.2 --l1 0.3 --sgd", "-C 1 -q ab"])
def test_model_of_weights_alone_predicts_like_vws(command, tmp_path):
    (tmp_path / "data").write_text(real(7, 60))
    for run, model in ((vw, "vw.model"), (run_xclass, "xclass.model")):
        run(tmp_path, *command.split(), "--predict_only_model", "-f", model)
    wanted = vw(tmp_path, "-t", "-i", "vw.model")
    assert_same(run_xclass(tmp_path, "-t", "-i", "xclass.model"), wanted)
    # options of learning are not in VW's model; given again, its initial weight would come back where weights became 0
    again = command.replace("--initial_weight 0.2", "").split()
    assert_same(run_xclass(tmp_path, "-i", "xclass.model"), vw(tmp_path, "-i", "vw.model", *again))


@pytest.mark.parametrize(
    ("make", "layout"),
    [
        *((make, layout) for make in (("scalar",), ("oaa", 5)) for layout in ("vw", "odd")),
        *(((name, 5), "vw") for name in ("ect", "log_multi", "random_tree")),
    ],
)
def test_saved_and_continued_is_as_learned_at_once(make, layout, tmp_path):
    options = {"layout": layout, "l1": 1e-3, "l2": 1e-3, "initial_weight": 0.1, "bits": 14}
    if make[0] == "oaa":
        options["indexing"] = 1
    lines = multiclass(11, 5, 200).splitlines()
    path = str(tmp_path / "m")
    with Learner(*make, **options) as model:
        whole = model.learn_many(lines).prediction.tolist(), state_of(model)
    with Learner(*make, **options) as model:
        first = model.learn_many(lines[:120]).prediction.tolist()
        model.save(path)
    with load(path) as model:
        assert (first + model.learn_many(lines[120:]).prediction.tolist(), state_of(model)) == whole


@pytest.mark.parametrize("penalty", [["--l2", "0.02"], ["--l1", "0.001", "--l2", "0.01"]], ids=" ".join)
@pytest.mark.parametrize("reduction", ["--oaa", "--multilabel_oaa", "--ect"])
def test_each_class_is_penalised_as_if_it_were_learned_alone(reduction, penalty, tmp_path):
    """Each scorer gives the scores of a learner of its labels alone, so that more classes do not shrink it more."""
    classes = 2 if reduction == "--ect" else 5  # with two classes a tournament is a single match
    lines = [line.split(" ", 1) for line in multiclass(5, classes, 150).splitlines()]
    common = ["-b", "18", "--loss_function", "logistic", "--quiet", *penalty]
    shift = reduction == "--multilabel_oaa"
    (tmp_path / "data").write_text("".join(f"{int(label) - shift} {rest}\n" for label, rest in lines))
    layout = ["--layout", "vw"] if reduction == "--ect" else []
    learn("-d", "data", reduction, classes, *layout, *common, "-f", "m", cwd=tmp_path)
    learn("-t", "-d", "data", "-i", "m", "-r", "r", "--quiet", cwd=tmp_path)
    found = [[float(pair.split(":")[1]) for pair in line.split()] for line in (tmp_path / "r").open()]
    for c in range(1, classes + 1 if reduction != "--ect" else 2):
        (tmp_path / "signs").write_text("".join(f"{1 if int(label) == c else -1} {rest}\n" for label, rest in lines))
        learn("-d", "signs", *common, "-f", "s", cwd=tmp_path)
        learn("-t", "-d", "signs", "-i", "s", "-p", "p", "--quiet", cwd=tmp_path)
        alone = numbers((tmp_path / "p").read_text().splitlines())
        np.testing.assert_allclose(np.abs([row[c - 1] for row in found]), np.abs(alone), atol=2e-5)


def test_given_range_takes_precedence_over_the_range_of_the_model(tmp_path):
    (tmp_path / "data").write_text(real(3, 60))
    learn("-d", "data", "-f", "m", "--quiet", cwd=tmp_path)
    learn("-d", "data", "-t", "-i", "m", "--max_prediction", "0.125", "-p", "p", "--quiet", cwd=tmp_path)
    predictions = numbers((tmp_path / "p").read_text().splitlines())
    assert predictions.max() == 0.125
    assert predictions.min() < 0


def test_shrinking_is_applied_before_numbers_run_out():
    """Contraction below 1e-9 goes into the weights; nothing else changes."""
    options = gd.BinaryOptions(
        bits=8, learning_rate=0.5, initial_t=0.0, loss_function="squared", l2=0.3, label_range="seen"
    )
    rule = gd.make_rule(options, reduction=False)
    table = gd.new_table(rule, 8, 1, 1)
    place, x = np.arange(3, dtype=np.uint64), np.ones(3, F)
    least = 1.0
    for i in range(400):
        y = F(1 if i % 2 else -1)
        gd.widen(table.range, y)
        p = F(gd.clip(F(gd.score(table, place, x, 3, np.uint64(0), F(0))), table.range))
        gd.learn(table, rule, place, x, 3, np.uint64(0), p, y, F(1), float(i + 1))
        least = min(least, table.shrunk[0, 1])
        assert np.isfinite(table.flat).all()
    assert 1e-12 < least < 1e-3
    before = gd.score(table, place, x, 3, np.uint64(0), F(0))
    gd.apply_regularisation(table)
    assert table.shrunk.tolist() == [[0, 1]]
    assert abs(gd.score(table, place, x, 3, np.uint64(0), F(0)) - before) < 1e-6


@pytest.mark.parametrize("name", sorted(loss.CODES))
@pytest.mark.parametrize("y", [-1.0, 1.0, 0.25])
def test_slope_agrees_with_squared_slope_and_difference_quotient(name, y):
    kind = loss.CODES[name]
    for p in np.linspace(-0.9, 0.9, 7, dtype=F):
        d = loss.slope(kind, F(0.3), p, F(y), F(-1), F(1))
        assert abs(d * d - loss.squared_slope(kind, F(0.3), p, F(y))) < 1e-5
        ahead, behind = (loss.value(kind, F(0.3), F(p + e), F(y), F(-2), F(2)) for e in (1e-3, -1e-3))
        assert abs((ahead - behind) / 2e-3 - d) < 1e-2


def test_learning_rate_decays_with_every_pass():
    options = gd.BinaryOptions(
        bits=8, learning_rate=0.5, initial_t=0.0, loss_function="squared", decay_learning_rate=0.5, label_range="seen"
    )
    rule = gd.make_rule(options, reduction=False)
    assert gd.after_pass(gd.after_pass(rule, options), options).rate == F(0.125)


@pytest.mark.parametrize("learner", ["--oaa 3", "--ect 3", "--recall_tree 3", "--log_multi 3", "--multilabel_oaa 4"])
def test_a_model_of_vw_exact_loads_with_and_without_the_option(tmp_path, learner):
    """VW has one state of --l1 and --l2 for all classes, which a model without --vw_exact applies to its weights."""
    (tmp_path / "d").write_text("1 | a b\n2 | b c\n3 | c a\n" * 9)
    words = ("-d", "d", "--quiet", "--l1", "1e-4", "--l2", "1e-3")
    learn(*words, *learner.split(), "--vw_exact", "-f", "m", cwd=tmp_path)
    for name, exact in (("p", ()), ("q", ("--vw_exact",))):
        learn("-d", "d", "-t", "-i", "m", "-p", name, "--quiet", *exact, cwd=tmp_path)
    # VW compares the scores of lists with 0, not with their threshold
    assert learner.startswith("--multi") or (tmp_path / "p").read_text() == (tmp_path / "q").read_text()
    learn(*words, "-i", "m", "--vw_exact", "-f", "n", cwd=tmp_path)
