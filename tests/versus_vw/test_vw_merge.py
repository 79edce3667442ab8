"""Merged models beside VW's own `merge_models`: the same predictions, from scratch and from a base."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import xclass

vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="needs VW's Python module")
if not hasattr(vowpalwabbit, "merge_models"):
    pytest.skip("this version of VW cannot merge models", allow_module_level=True)

PARTS, CLOSE = 3, 2e-5  # tables have VW's default size, because its merged model of any other size predicts 0
LOGISTIC = "--loss_function logistic"
CASES = {  # options of VW, what VW has to be told again with -i, reduction and options of xclass
    "scalar": ("", "", ("scalar", None, {})),
    "scalar --sgd": ("--sgd", "--sgd", ("scalar", None, {"sgd": True})),
    "scalar --adaptive": ("-l .1 --adaptive", "--adaptive", ("scalar", None, {"learning_rate": 0.1, "adaptive": True})),
    "scalar, logistic": (LOGISTIC, LOGISTIC, ("scalar", None, {"loss_function": "logistic"})),
    "oaa": ("--oaa 4", "", ("oaa", 4, {})),
}  # fmt: skip


def examples(seed: int, oaa: bool, n: int = 150) -> list[str]:
    """Return lines in which all features occur, because VW averages weights that no model has changed, too."""
    rng = np.random.default_rng(seed)
    lines = []
    for _ in range(n):
        x = rng.normal(size=5) + 0.3
        y = 1 + int(np.argmax(x[:4])) if oaa else 1 if x[0] - x[1] > 0.1 else -1
        lines.append(f"{y} | " + " ".join(f"{name}:{value:.4f}" for name, value in zip("abcde", x, strict=True)))
    return lines


def of_vw(options: str, lines: list[str], path) -> str:
    workspace = vowpalwabbit.Workspace(f"--quiet --preserve_performance_counters {options}")
    for line in lines:
        workspace.learn(line)
    workspace.save(str(path))
    workspace.finish()
    return str(path)


def loaded(path: str) -> vowpalwabbit.Workspace:
    return vowpalwabbit.Workspace(f"--quiet --preserve_performance_counters -i {path}")


@pytest.mark.parametrize("based", [False, True], ids=["from scratch", "from a base"])
@pytest.mark.parametrize("name", CASES)
def test_predictions_are_those_of_vw(name, based, tmp_path):
    options, again, (reduction, classes, given) = CASES[name]
    oaa = reduction == "oaa"
    begin = examples(0, oaa)
    parts = [examples(seed, oaa) for seed in range(1, PARTS + 1)]
    if based and oaa:
        pytest.skip("VW continues an --oaa model with other normalisation sums than it has saved")
    base_path = of_vw(options, begin, tmp_path / "base.vw") if based else None
    start = f"{again} -i {base_path}" if based else options
    paths = [of_vw(start, part, tmp_path / f"{k}.vw") for k, part in enumerate(parts)]
    base = loaded(base_path) if based else None
    vowpalwabbit.merge_models(base, [loaded(path) for path in paths]).save(str(tmp_path / "merged.vw"))
    theirs = vowpalwabbit.Workspace(f"--quiet -t -i {tmp_path / 'merged.vw'} {again}")

    def new() -> xclass.Learner:
        return xclass.Learner(reduction, classes, bits=18, vw_exact=True, **given)

    if based:
        model = new()
        model.learn_many(begin)
        model.save(tmp_path / "base.bin")
    models = [xclass.load(tmp_path / "base.bin") if based else new() for _ in parts]
    for model, part in zip(models, parts, strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about labels, as VW
            model.learn_many(part)
    ours = xclass.merge(models, base=tmp_path / "base.bin" if based else None)
    test = [line.split(" ", 1)[1] for line in examples(9, oaa, 60)]
    np.testing.assert_allclose(ours.predict_many(test), [theirs.predict(line) for line in test], atol=CLOSE, rtol=CLOSE)
    theirs.finish()
