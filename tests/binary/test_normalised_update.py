"""VW's normalised update is vectorised in three ways; each gives the bits of the plain one, `gd.learn`."""

import numpy as np
import pytest
from harness import batch_of, configure
from streams import all_sizes

from xclass.binary import finite, gd, gd_sequential, weight_table
from xclass.reductions.oaa import class_rows

K, BITS, WIDTH = 5, 10, 12
ROWS = (1 << BITS) // WIDTH
F = np.float32


def plain(table, rule, batch, label):
    """The reference: one subproblem after the other, feature by feature."""
    for i, place, x in examples(table, batch):
        for c in range(K):
            sub = np.uint64(c)
            p = F(gd.clip(F(gd.score(table, place, x, len(x), sub, F(0))), table.range))
            gd.learn(table, rule, place, x, len(x), sub, p, truth(c, label[i]), batch.weight[i], float(i))


def lanes(table, rule, batch, label):
    """All subproblems of an example side by side, as recall trees learn."""
    scratch, out = gd.new_lanes(K), np.empty(K, np.float32)
    for i, place, x in examples(table, batch):
        scratch.sub[:] = np.arange(K)
        gd.score_lanes(table, place, x, len(x), scratch.sub, K, out)
        for c in range(K):
            scratch.p[c], scratch.y[c] = F(gd.clip(out[c], table.range)), truth(c, label[i])
        gd.learn_lanes(table, rule, place, x, len(x), K, scratch, batch.weight[i], float(i))


def sequential(table, rule, batch, label):
    """All features of a subproblem side by side, as tournaments learn."""
    row = gd_sequential.new_row(batch)
    for i in range(batch.n):
        count, quick = gd_sequential.load(row, table, rule, batch, i)
        for c in range(K):
            y = truth(c, label[i])
            gd_sequential.update(row, table, rule, count, quick, np.uint64(c), y, batch.weight[i], float(i))


def rows(table, rule, batch, label):
    """Runs of neighbouring classes, as one-against-all learns."""
    n = batch.n
    sampled, clock = np.empty((n, 0), np.int32), np.arange(n, dtype=np.float64)
    inputs = class_rows.OaaInputs(batch, label, np.ones(n, bool), sampled, clock, K)
    predictions = class_rows.ClassScores(np.empty(n, np.int64), np.empty(n, np.float32), np.empty((0, K), np.float32))
    scratch = class_rows.new_scratch(int(np.diff(batch.start).max()), ROWS, class_rows.BLOCK, K)
    class_rows.process_batch(table, rule, np.uint64(ROWS), 0, K, False, inputs, predictions, scratch)


def truth(c: int, label: int) -> np.float32:
    return F(1 if c == label else -1)


def examples(table, batch):
    for i in range(batch.n):
        table.guard.now[0] = i
        part = slice(batch.start[i], batch.start[i + 1])
        yield i, batch.index[part].astype(np.uint64) * np.uint64(WIDTH), batch.value[part]


@pytest.mark.bounds
@pytest.mark.parametrize("way", [lanes, sequential, rows])
@pytest.mark.parametrize("seed", range(3))
def test_every_variant_of_the_update_gives_the_bits_of_the_plain_one(way, seed):
    config = configure("--oaa", K, "-b", BITS, "--loss_function", "logistic")
    rule = gd.make_rule(config.learner, reduction=True)
    batch = batch_of(config, all_sizes(seed, 80))
    batch = batch._replace(index=batch.index % np.uint32(ROWS))
    batch.weight[:] = np.random.default_rng(seed).choice([0.5, 1, 3], batch.n)
    label = batch.label.astype(np.int64) - 1
    guard = finite.StepGuard(np.zeros(1, np.int64), np.zeros(batch.n, np.uint8), finite.ordinary_value_range(batch.n))
    finite.survey(batch, np.ones(batch.n, bool), False, np.inf, True, guard.skipped, guard.value_range)
    tables = []
    for update in (plain, way):
        table = gd.new_table(rule, BITS, K, WIDTH, planes=update is rows)._replace(guard=guard)
        update(table, rule, batch, label)
        tables.append(table)
    first, second = tables
    columns = weight_table.columns(first), weight_table.columns(second)
    assert np.count_nonzero(columns[0]["w"]) > K * 12
    for name in ("w", "g", "n"):
        assert columns[0][name].tobytes() == columns[1][name].tobytes(), name
    assert first.sums.tobytes() == second.sums.tobytes()
