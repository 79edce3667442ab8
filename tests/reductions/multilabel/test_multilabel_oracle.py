"""--multilabel against its oracle: which labels are ranked, their probabilities, and the words of the table."""

import random

import numpy as np
import pytest
from library import for_passes
from probability_trees import check_words

from tests.oracles import multilabel as oracle
from xclass import Learner
from xclass.api.inputs import Inputs
from xclass.data.batch import Batch
from xclass.kernels import fast_math
from xclass.reductions.multilabel import ranking, reduction

BITS = 9


@pytest.fixture(autouse=True)
def same_exponential(monkeypatch):
    """The oracle's exponential is that of the kernels, because the rounding of words depends on last bits."""
    monkeypatch.setattr(oracle, "exp32", lambda a: np.float32(fast_math.exp32(np.float32(a))))


def stream(seed: int, n: int, labels: int, *, unlabelled: float = 0.1) -> str:
    """Return lines with up to three labels, several namespaces, values, and features that occur twice."""
    rng = random.Random(f"{seed} {n} {labels}")
    lines = []
    for _ in range(n):
        own = sorted({int(labels * rng.random() ** 2) for _ in range(rng.choice((0, 1, 1, 2, 3)))})
        words = [f"y{y if rng.random() < 0.9 else rng.randrange(labels)}_{rng.randrange(2)}" for y in own]
        words += [f"n{rng.randrange(30)}" for _ in range(rng.randrange(3))]
        words += words[:1] * (rng.random() < 0.1)
        title = [f"t{rng.choice(own)}"] if own and rng.random() < 0.7 else []
        values = [f"v{rng.randrange(3)}:{rng.choice((0.5, 3, -1.5, 0, 12)):g}"] * (rng.random() < 0.5)
        label = (
            ""
            if rng.random() < unlabelled
            else f"{','.join(map(str, own)) or ','} {rng.choice((1, 1, 0.5, 1.5, 0)):g} "
        )
        parts = ["", f"a {' '.join(words)} ", f"b {' '.join(title)} ", f"c {' '.join(values)} frequent"]
        lines.append(label + "|".join(parts if rng.random() < 0.95 else parts[:2]) + "\n")
    return "".join(lines)


def blocks_of(batch: Batch, i: int) -> list[list[tuple[int, np.float32]]]:
    groups = range(batch.group_first[i], batch.group_first[i + 1])
    features = list(zip(batch.index.tolist(), batch.value, strict=True))
    return [features[batch.group_start[group] : batch.group_start[group + 1]] for group in groups]


def ranked_lists(model: Learner, batch: Batch, learn: bool, held_out: np.ndarray | None) -> list[list[tuple]]:
    """Return the ranked labels and probabilities of each example before it was learned."""
    lists = []
    core = model.core
    for task in core.tasks(batch, learn, core.clock, held_out):
        for stage in core.reduction.stages:
            stage(task)
        if learn:
            core.record(task)
        ranked = task.label_lists.ranked
        pairs = list(zip(ranked.labels.tolist(), ranked.scores.tolist(), strict=True))
        lists += [pairs[a:b] for a, b in zip(ranked.start, ranked.start[1:], strict=False)]
    return lists


def check(
    model: Learner, plain: oracle.Multilabel, text: str, learn: bool = True, held_out: float = 0.0,
    tolerance: float = 2e-6,
) -> int:  # fmt: skip
    """Compare example by example; return in how many examples only some of the known labels were candidates."""
    (batch,) = Inputs(model.core).batches(text, learn=learn)
    flags = np.random.default_rng(1).random(batch.n) < held_out if held_out else None
    lists = ranked_lists(model, batch, learn, flags)
    some = 0
    for i, got in enumerate(lists):
        own = batch.labels[batch.label_start[i] : batch.label_start[i + 1]].astype(int) + 1
        learns = learn and not np.isnan(batch.label[i]) and not (flags is not None and flags[i])
        some += not plain.labels.are_few
        want = plain.example(blocks_of(batch, i), own.tolist(), float(batch.weight[i]), learns)
        order = sorted(want.values(), reverse=True)[: reduction.MOST_LISTED]
        assert [p for _, p in got] == pytest.approx(order, rel=tolerance, abs=1e-9), i
        for y, p in got:
            assert p == pytest.approx(want[y + 1], rel=tolerance, abs=1e-9), (i, y)
    return some


def check_models(model: Learner, plain: oracle.Multilabel) -> None:
    contents = model.core.contents()
    check_words(contents, "scorers", plain.scorers.table)
    state = contents.arrays["ranking.state"]
    assert state[0] == pytest.approx(np.array(plain.scorers.v), rel=1e-6)
    assert state[1] == pytest.approx(np.array(plain.scorers.squares), rel=1e-6)
    assert state[0, ranking.EXPONENT] != 1  # it was learned
    own = plain.scorers.r
    assert contents.arrays["regularisation"] == pytest.approx([own.log, own.squares], rel=1e-6)
    assert (own.log != own.limits[0]) is (own.limits[0] < own.limits[1])  # r was learned, or given
    n = contents.arrays["ranking.examples"]
    assert {y: n[y] for y in np.flatnonzero(n)} == plain.scorers.n
    frequent = [y for y in contents.arrays["labels.frequent"].tolist() if y]
    assert frequent == sorted(plain.labels.n, key=lambda y: (-plain.labels.n[y], plain.labels.counted[y]))[:64]


@pytest.mark.parametrize("options", [{}, {"arow_r": 0.3, "max_doublings": 2}, {"noconstant": True}])
def test_all_labels_are_candidates_while_they_are_few(options):
    plain = oracle.Multilabel(
        BITS - 3, options.get("max_doublings", 0), options.get("arow_r"), constant="noconstant" not in options
    )
    text = stream(1, 150, 30)
    with Learner("multilabel", bits=BITS, **options) as model:
        assert check(model, plain, text, held_out=0.1) == 0
        check_models(model, plain)
        assert check(model, plain, stream(2, 40, 40), learn=False) == 0
    if "max_doublings" in options:
        assert plain.scorers.table.doublings > 0
    else:
        assert plain.scorers.table.evicted > 0 and plain.scorers.table.refused > 0


def test_some_labels_are_candidates_where_there_are_many():
    plain = oracle.Multilabel(15 - 3)
    many = oracle.MOST_ALL + 60
    first = f"{','.join(map(str, range(60)))} | z\n{','.join(map(str, range(60, many)))} | y\n"
    with Learner("multilabel", bits=15) as model:
        check(model, plain, first + stream(3, 30, 25))
        assert check(model, plain, stream(4, 90, 1000), held_out=0.1) == 90
        check_models(model, plain)


@pytest.mark.parametrize(("sure", "learn"), [(-9, True), (oracle.SURE, False)])
def test_several_passes(monkeypatch, sure, learn):
    """Whether the scorers go on to learn in the third pass or not."""
    monkeypatch.setattr(oracle, "SURE", sure)
    monkeypatch.setattr(reduction, "SURE", sure)
    plain = oracle.Multilabel(12 - 3, passes=3)
    text = stream(5, 130, 20)
    with for_passes(3, "multilabel", None, bits=12) as model:
        for number in range(3):
            model.core.reduction.begin_pass(number)
            check(model, plain, text, held_out=0.05)
            model.end_pass()
            plain.end_pass()
        check_models(model, plain)
    assert plain.scorers_learn is learn
