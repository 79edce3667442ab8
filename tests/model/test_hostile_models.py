"""Models with valid checksums whose arrays or facts were changed: refused by name, or at worst inaccurate models.

The table has one edit for each check of a reduction; the property changes arrays at random and looks for anything but
a result or a message.
"""

import copy
import os

import archives
import numpy as np
import pytest
from command import learn, xclass
from harness import configure, spec_of
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from streams import of_kind, real
from variants import KINDS

from xclass.api.learner import load
from xclass.checks import ROWS
from xclass.errors import DataError, ModelError
from xclass.kernels import hash_table
from xclass.model import model_file, stored_arrays
from xclass.reductions.cpt import label_tree, tree_file
from xclass.reductions.log_multi import split_cells, split_tree
from xclass.reductions.recall_tree import label_counts
from xclass.reductions.registry import REDUCTIONS
from xclass.reductions.softmax_tree import inference

pytestmark = [pytest.mark.bounds, pytest.mark.usefixtures("place")]
K = 9
VARIANTS = {
    "scalar": (),
    "scalar l1": ("--l1", 1e-4),
    "oaa": ("--oaa", K),
    "oaa sampled": ("--oaa", K, "--oaa_subsample", 3),
    "recall_tree": ("--recall_tree", K, "--max_candidates", 3),
    "recall_tree vw": ("--recall_tree", K, "--max_candidates", 3, "--layout", "vw"),
    "log_multi": ("--log_multi", K),
    "log_multi full": ("--log_multi", K, "--max_predictors", 6, "--swap_resistance", 1),
    "log_multi vw": ("--log_multi", K, "--layout", "vw", "--lom_rules", "vw"),
    "ect": ("--ect", K, "--error", 2),
    "random_tree": ("--random_tree", K),
    "sparse_experts": ("--sparse_experts", K, "--experts", 3, "--group_lasso", 0.02, "--prune_every", 30),
    "random_tree vw": ("--random_tree", K, "--layout", "vw"),
    "cpt": ("--cpt", K),
    "cpt trees": ("--cpt", K, "--trees", 2, "--rerank"),
    "cpt growing": ("--cpt", K, "--rerank", "--layout", "tagged", "--max_doublings", 2),
    "cpt wide": ("--cpt", K, "--cpt_arity", 4),
    "cpt columns": ("--cpt", K, "--normalize_features", "columns"),
    "mach": ("--mach", "3,8"),
    "means": ("--means", K, "--dense", *ROWS["dense"]),
    "multilabel_oaa names": ("--multilabel_oaa", K, "--learn_names"),
    "plt": ("--plt", K),
    "multilabel": ("--multilabel", K, "--max_doublings", 2),
    "multilabel_oaa": ("--multilabel_oaa", K, "--threshold", 0.2),
    "softmax_tree": ("--softmax_tree", K, "--depth", 2, "--leaf_classes", 4),
    "softmax_tree columns": ("--softmax_tree", K, "--depth", 1, "--normalize_features", "columns"),
}
SCORED = {record.name for record in REDUCTIONS if record.labels != "multilabel" or record.class_scores}
PROBABLE = {record.name for record in REDUCTIONS if record.probabilities}
QUICK = settings(
    max_examples=6, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip


def lines(name: str, number: int, n: int) -> str:
    kind = KINDS[name.split()[0]]
    return real(number, n) if kind == "simple" else of_kind(kind, number, K, n)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A small model of every variant."""
    place = tmp_path_factory.mktemp("models")
    saved = {}
    for name, words in VARIANTS.items():
        learn(*words, "-b", 8, "--quiet", "-f", "m", stdin=lines(name, 7, 150), cwd=place)
        model = model_file.load(place / "m")
        arrays = {key: np.array(array) for key, array in model.arrays.items()}
        saved[name] = model_file.Model(model.options, model.facts, arrays)
    return saved


def changed(model: model_file.Model, edit) -> model_file.Model:
    """A copy of a model after `edit(arrays, facts of the learner)`."""
    copied = copy.deepcopy(model)
    edit(copied.arrays, copied.facts["learner"])
    return copied


def saved(model: model_file.Model) -> str:
    """The path of a file with the model."""
    model_file.save("m", options=model.options, facts=model.facts, arrays=model.arrays)
    return "m"


def run(model: model_file.Model, name: str, *words):
    saved(model)
    return xclass("-i", "m", "--quiet", *words, stdin=lines(name, 8, 3))


def put(key: str, at, value):
    """Write to a place of an array."""

    def edit(arrays, facts):
        arrays[key][at] = value

    return edit


def make(key: str, change):
    """Put another array in place of one."""

    def edit(arrays, facts):
        arrays[key] = change(arrays[key])

    return edit


def with_fact(key: str, value):
    """Write a fact."""

    def edit(arrays, facts):
        facts[key] = value

    return edit


def drop_array(key: str):
    return lambda arrays, facts: arrays.pop(key)


def drop_fact(key: str):
    return lambda arrays, facts: facts.pop(key)


def last_pair_halved(arrays, facts):
    for part in ("left", "place", "label"):
        arrays[f"tree.0.{part}"] = arrays[f"tree.0.{part}"][:-1]


def same_child_twice(arrays, facts):
    left_child = arrays["tree.0.left"]
    inner = np.flatnonzero(left_child > 0)
    left_child[inner[1]] = left_child[inner[0]]


def leaves(arrays, marked: int):
    left_child = arrays["tree.0.left"]
    left_child[left_child == 0] = marked


def cells_repeated(arrays, facts):
    for part in ("key", "count"):
        arrays[f"cells.{part}"] = np.repeat(arrays[f"cells.{part}"][:1], 5, axis=0)


def last_node_lost(arrays, facts):
    for name in list(arrays):
        if name.startswith("nodes."):
            arrays[name] = arrays[name][:-1]


def sizes(**values):
    def edit(arrays, facts):
        for name, value in values.items():
            arrays["tree.size"][getattr(split_tree, name)] = value

    return edit


def first_leaf(column: int, value: int):
    def edit(arrays, facts):
        link = arrays["tree.link"]
        link[np.flatnonzero(link[:, split_tree.ROUTER] < 0)[0], column] = value

    return edit


def own_parent(arrays, facts):
    """The right child of the root comes where the left one is, and the other way round for their parents only."""
    link, root = arrays["tree.link"], arrays["tree.size"][split_tree.ROOT]
    link[link[root, split_tree.LEFT], split_tree.PARENT] = link[root, split_tree.LEFT]


def node_key_twice(arrays, facts):
    arrays["tree.leaf_feature"][1] = arrays["tree.leaf_feature"][0]
    arrays["tree.leaf_node"][1] = arrays["tree.leaf_node"][0]


def many_times(key: str):
    """Store one item for all rows of a table that has very many, in a file that is small."""

    def edit(arrays, facts):
        arrays[f"{key}.each"] = arrays.pop(key)[:1]
        arrays[f"{key.rpartition('.')[0]}.in_use"] = np.full(1 << 20, 255, np.uint8)

    return edit


HUGE = 2**62
EDITS = [  # variant, what is changed, the array or fact that the message names
    ("scalar", drop_array("weights.range"), "weights.range"),
    ("scalar", make("weights.in_use", lambda a: np.append(np.zeros(32, np.uint8), a)), "weights.index"),
    ("scalar", make("weights.in_use", lambda a: a[:16]), "weights.w"),
    ("scalar", make("weights.in_use", lambda a: a.astype(np.int8)), "weights.in_use"),
    ("scalar", make("weights.w", lambda a: a[:-1]), "weights.w"),
    ("scalar", make("weights.w", lambda a: a.astype(np.float64)), "weights.w"),
    ("scalar", make("weights.sums", lambda a: a[0]), "weights.sums"),
    ("scalar", make("weights.sums", lambda a: a.sum()), "weights.sums"),
    ("scalar", lambda arrays, facts: arrays.update({"more": np.zeros(3)}), "'more'"),
    ("scalar", with_fact("more", 1), "'more'"),
    ("scalar l1", make("weights.shrunk", lambda a: a[0]), "weights.shrunk"),
    ("oaa", put("order", 0, K), "order"),
    ("oaa sampled", put("order", 0, -1), "order"),
    ("oaa sampled", make("order", lambda a: np.zeros_like(a)), "order"),
    ("oaa sampled", make("order", lambda a: a[:-1]), "order"),
    ("oaa sampled", with_fact("next", K), "'next'"),
    ("oaa sampled", with_fact("next", 10**9), "'next'"),
    ("oaa sampled", with_fact("next", -1), "'next'"),
    ("oaa sampled", with_fact("next", HUGE), "'next'"),
    ("oaa sampled", with_fact("next", True), "'next'"),
    ("oaa sampled", with_fact("next", 1.0), "'next'"),
    ("oaa sampled", with_fact("next", "1"), "'next'"),
    ("oaa sampled", with_fact("next", [1]), "'next'"),
    ("oaa sampled", with_fact("next", None), "'next'"),
    ("oaa sampled", with_fact("next", 10**300), "'next'"),
    ("oaa", drop_fact("next"), "'next'"),
    ("oaa", drop_fact("indexing"), "'indexing'"),
    ("oaa", with_fact("indexing", 3), "'indexing'"),
    ("oaa", make("random", lambda a: a.astype(np.int64)), "random"),
    ("oaa", make("random", lambda a: np.tile(a, 2)), "random"),
    ("recall_tree", put("nodes.id", 0, -1), "nodes.id"),
    ("recall_tree", put("nodes.id", -1, 10**6), "nodes.id"),
    ("recall_tree", put("nodes.top_label", (0, 0), K), "nodes.top_label"),
    ("recall_tree", put("nodes.top_label", (0, 0), -1), "nodes.top_label"),
    ("recall_tree", put("nodes.top_size", 0, 4), "nodes.top_size"),
    ("recall_tree", put("nodes.top_size", 0, -1), "nodes.top_size"),
    ("recall_tree", make("nodes.state", lambda a: a[:, :3].copy()), "nodes.state"),
    ("recall_tree", cells_repeated, "cells.key"),
    ("recall_tree", many_times("cells.key"), "is no column of one"),
    ("recall_tree", many_times("scorers.0.w"), "'scorers.0.index'"),
    ("plt", many_times("label_counts"), "is no column of one"),
    ("means", many_times("ring.own"), "'ring.own'"),
    ("multilabel", many_times("index_classes.label"), "is no column of one"),
    ("random_tree", many_times("weights.g"), "'weights.index'"),
    ("recall_tree", put("cells.key", -1, HUGE), "cells.key"),
    ("recall_tree", put("cells.key", 0, 0), "cells.key"),
    ("recall_tree", put("cells.key", 0, K + 1), "cells.key"),
    ("recall_tree", put("cells.key", -1, (2 << 32 << 4) + 1), "cells.key"),  # of the last node, a leaf
    ("recall_tree", make("cells.count", lambda a: a[:, :1].copy()), "cells.count"),
    ("recall_tree", put("nodes.state", (0, 0), np.inf), "nodes.state"),
    ("recall_tree", put("nodes.state", (0, 1), 1e9), "nodes.state"),
    ("recall_tree", put("nodes.top_count", (0, 0), -1.0), "nodes.top_count"),
    ("recall_tree", put("nodes.recall", (0, 0), np.nan), "nodes.recall"),
    ("recall_tree", put("nodes.gain", 0, np.nan), "nodes.gain"),
    ("recall_tree", put("cells.count", (0, 0), 1e9), "cells.count"),
    ("recall_tree", last_node_lost, "cells.count"),
    ("recall_tree", with_fact("outside", "x"), "'outside'"),
    ("recall_tree", with_fact("outside", -1), "'outside'"),
    ("recall_tree", drop_fact("outside"), "'outside'"),
    ("recall_tree vw", make("weights.sums", lambda a: a[:-1]), "weights.sums"),
    ("log_multi", sizes(ROUTERS=2**61, DEEPEST=2**61), "tree.size"),
    ("log_multi", sizes(DEEPEST=10**9), "tree.size"),
    ("log_multi", sizes(DEEPEST=0), "tree.size"),
    ("log_multi", sizes(NODES=-1), "tree.size"),
    ("log_multi", sizes(NODES=HUGE), "tree.size"),
    ("log_multi", sizes(ROOT=HUGE), "tree.size"),
    ("log_multi", sizes(BLOCKS=-1), "tree.size"),
    ("log_multi", sizes(BLOCKS=0), "tree.link"),
    ("log_multi", sizes(SWAPS=-1), "tree.size"),
    ("log_multi", first_leaf(split_tree.LEFT, 1), "tree.link"),
    ("log_multi", first_leaf(split_tree.ROUTER, -2), "tree.link"),
    ("log_multi", own_parent, "tree.link"),
    ("log_multi", put("tree.link", (0, split_tree.ROUTER), 8), "tree.link"),
    ("log_multi", put("tree.link", (0, split_tree.LEFT), 2**31 - 1), "tree.link"),
    ("log_multi", put("tree.count", (0, split_tree.PREDICTION), 0), "tree.count"),
    ("log_multi", put("tree.count", (0, split_tree.PREDICTION), -(2**63)), "tree.count"),
    ("log_multi", put("tree.count", (0, split_tree.PREDICTION), K + 1), "tree.count"),
    ("log_multi", put("tree.count", (0, split_tree.SMALLEST), 10**6), "tree.count"),
    ("log_multi", put("tree.count", (1, split_tree.LARGEST), -5), "tree.count"),
    ("log_multi", put("tree.count", (0, split_tree.RECYCLED), 2**40), "tree.count"),
    ("log_multi", make("tree.count", lambda a: a[:-1]), "tree.count"),
    ("log_multi", make("cells", lambda a: np.tile(a[:1], (300, 1))), "cells"),
    ("log_multi", make("cells", lambda a: a[0, 0]), "cells"),
    ("log_multi", make("cells", lambda a: a[0]), "cells"),
    ("log_multi", put("cells", (0, 0), (1 << 32) + K + 1), "cells"),
    ("log_multi", put("cells", (0, 0), 1), "cells"),
    ("log_multi", put("cells", (-1, 0), HUGE), "cells"),
    ("log_multi", put("cells", (0, 2), HUGE), "cells"),
    ("log_multi", put("cells", (0, 3), HUGE), "cells"),
    ("log_multi", drop_array("cells"), "cells"),
    ("log_multi", with_fact("any_label", 2), "'any_label'"),
    ("log_multi vw", put("tree.link", (0, split_tree.ROUTER), 4000), "tree.link"),
    ("ect", make("drift", lambda a: np.zeros(2)), "drift"),
    ("ect", make("weights.sums", lambda a: a[:5]), "weights.sums"),
    ("ect", with_fact("outside", float(2**53)), "'outside'"),
    ("random_tree", drop_array("largest.x"), "largest.x"),
    ("random_tree", drop_fact("outside"), "'outside'"),
    ("random_tree vw", make("weights.sums", lambda a: a[1:]), "weights.sums"),
    ("sparse_experts", put("size", 0, K + 1), "size"),
    ("sparse_experts", put("size", 1, 0), "size"),
    ("sparse_experts", make("size", lambda a: a[:2]), "size"),
    ("sparse_experts", put("label", -1, K), "label"),
    ("sparse_experts", put("label", 0, -1), "label"),
    ("sparse_experts", make("label", lambda a: a[::-1].copy()), "label"),
    ("sparse_experts", make("label", lambda a: a[1:]), "label"),
    ("sparse_experts", put("seen", 0, 2), "seen"),
    ("sparse_experts", put("mean", 0, 0.0), "mean"),
    ("sparse_experts", put("passed", 0, np.nan), "passed"),
    ("sparse_experts", put("gate", (0, 0), np.nan), "gate"),
    ("sparse_experts", put("weights.w", 0, np.inf), "weights.w"),
    ("sparse_experts", drop_array("weights.w"), "weights.w"),
    ("sparse_experts", with_fact("learned", -1), "'learned'"),
    ("cpt", last_pair_halved, "tree.0.left"),
    ("cpt", same_child_twice, "tree.0.left"),
    ("cpt", put("tree.0.left", 0, 0), "tree.0.label"),
    ("cpt", put("tree.0.left", 0, 2), "tree.0.left"),
    ("cpt", put("tree.0.left", 0, 2**31 - 1), "tree.0.left"),
    ("cpt", put("tree.0.left", -1, 1), "tree.0.left"),
    ("cpt", lambda arrays, facts: leaves(arrays, -7), "tree.0.left"),
    ("cpt", put("tree.0.label", -1, 0), "tree.0.label"),
    ("cpt", put("tree.0.label", -1, 2**31 + 1), "tree.0.label"),
    ("cpt", put("tree.0.label", 0, 3), "tree.0.label"),
    ("cpt", lambda arrays, facts: put("tree.0.label", -1, arrays["tree.0.label"][-2])(arrays, facts), "tree.0.label"),
    ("cpt", put("tree.0.place", 1, 8), "tree.0.place"),
    ("cpt", put("tree.0.place", 2, 9), "tree.0.place"),
    ("cpt", make("tree.0.place", lambda a: a[:-1]), "tree.0.place"),
    ("cpt", make("random", lambda a: np.tile(a, 2)), "random"),
    ("cpt trees", drop_array("tree.1.left"), "tree.1.left"),
    ("cpt trees", make("random", lambda a: a[:1]), "random"),
    ("cpt trees", put("scorers.state", (0, 0), np.nan), "scorers.state"),
    ("cpt trees", put("scorers.state", (1, 3), -1.0), "scorers.state"),
    ("cpt", drop_array("weights.0.word"), "weights.0.word"),
    ("cpt", drop_array("weights.0.counts"), "weights.0.counts"),
    ("cpt", drop_array("weights.0.doublings"), "weights.0.doublings"),
    ("cpt", make("weights.0.word", lambda a: a.astype(np.int32)), "weights.0.word"),
    ("cpt", make("weights.0.word", lambda a: a[:-1]), "weights.0.word"),
    ("cpt", put("weights.0.counts", 0, -1), "weights.0.counts"),
    ("cpt", put("weights.0.counts", 4, HUGE), "weights.0.counts"),
    ("cpt", make("weights.0.counts", lambda a: a[:-1]), "weights.0.counts"),
    ("cpt", put("weights.0.doublings", 0, 1), "weights.0.doublings"),
    ("cpt", put("weights.0.doublings", 0, -1), "weights.0.doublings"),
    ("cpt growing", put("scorers.doublings", 0, 3), "scorers.doublings"),
    ("cpt growing", make("scorers.doublings", lambda a: a.astype(np.float64)), "scorers.doublings"),
    ("cpt growing", put("scorers.doublings", 0, 0), "scorers.index"),  # the words of a larger table
    ("random_tree", put("weights.g", 0, -1e-30), "weights.g"),
    ("cpt wide", lambda arrays, facts: leaves(arrays, -7), "tree.0.left"),
    ("cpt wide", last_pair_halved, "tree.0.left"),
    ("cpt columns", put("scales.state", 0, -1), "scales.state"),
    ("cpt columns", put("scales.state", 1, 0), "scales.state"),
    ("cpt columns", put("scales.size", 0, np.nan), "scales.size"),
    ("cpt columns", put("scales.seen", 0, -1.0), "scales.seen"),
    ("cpt columns", put("scales.valued", 0, 2), "scales.valued"),
    *(
        (variant, edit, named)
        for variant in ("multilabel_oaa", "multilabel_oaa names")
        for edit, named in (
            (put("label_counts", 0, -1), "label_counts"),
            (put("label_counts", -1, 2**54 + 1), "label_counts"),
            (make("label_counts", lambda a: a[:-1]), "label_counts"),
            (make("label_counts", lambda a: np.append(a, a)), "label_counts"),
            (make("label_counts", lambda a: a.astype(np.float64)), "label_counts"),
            (drop_array("label_counts"), "label_counts"),
            (with_fact("outside", -1), "'outside'"),
            (with_fact("outside", 0.5), "'outside'"),
            (drop_fact("outside"), "'outside'"),
            (with_fact("threshold", 1.5), "'threshold'"),
            (with_fact("threshold", -0.1), "'threshold'"),
            (with_fact("threshold", "0.5"), "'threshold'"),
            (with_fact("threshold", None), "'threshold'"),
            (with_fact("more", 1), "more"),
            (make("weights.sums", lambda a: a[:-1]), "weights.sums"),
        )
    ),
    ("plt", put("bias", 0, np.nan), "bias"),
    ("plt", put("seen", 0, -1.0), "seen"),
    ("plt", make("seen", lambda a: a[:-1]), "seen"),
    ("plt", drop_array("bias"), "bias"),
    ("plt", put("tree.left", 0, 0), "tree.label"),
    ("plt", put("tree.left", 0, 10**6), "tree.left"),
    ("plt", put("tree.place", 0, 17), "tree.place"),
    ("plt", put("frequencies.state", 0, -1.0), "frequencies.state"),
    ("plt", make("random", lambda a: a[:0]), "random"),
    ("multilabel", make("label_counts", lambda a: a[:0]), "label_counts"),
    ("multilabel", make("label_counts", lambda a: a[:-1]), "labels.weight"),
    ("multilabel", put("labels.weight", 1, -1.0), "labels.weight"),
    ("multilabel", put("labels.weight", 1, np.nan), "labels.weight"),
    ("multilabel", put("labels.first", 0, K + 1), "labels.first"),
    ("multilabel", put("labels.frequent", 0, -1), "labels.frequent"),
    ("multilabel", make("labels.frequent", lambda a: a[:-1]), "labels.frequent"),
    ("multilabel", put("labels.state", 0, 10**9), "labels.state"),
    ("multilabel", put("index_classes.label", 0, K + 1), "index_classes.label"),
    ("multilabel", put("neighbours.row", 0, 2**32 - 1), "neighbours.row"),
    ("multilabel", put("neighbours.used", 0, 0), "neighbours.used"),
    ("multilabel", put("neighbours.used", 0, 512), "neighbours.used"),
    ("multilabel", put("neighbours.used", 0, 511), "neighbours.value"),  # more pairs than there are
    ("multilabel", make("neighbours.example", lambda a: a[:-1]), "neighbours.example"),
    ("multilabel", put("neighbours.value", 0, np.nan), "neighbours.value"),
    ("multilabel", put("neighbours.value", 0, 2.0), "neighbours.value"),
    ("multilabel", put("neighbours.place", 1, -1), "neighbours.place"),
    ("multilabel", put("neighbours.size", 1, 2**21 + 1), "neighbours.size"),
    ("multilabel", make("neighbours.size", lambda a: a[:-1]), "neighbours.size"),
    ("multilabel", put("neighbours.label", 0, K + 1), "neighbours.label"),
    ("multilabel", put("neighbours.label", 0, 0), "neighbours.label"),
    ("multilabel", put("neighbours.state", 0, -1), "neighbours.state"),
    ("multilabel", put("ranking.state", (0, 0), np.inf), "ranking.state"),
    ("multilabel", put("ranking.state", (0, -1), 2.5), "ranking.state"),
    ("multilabel", put("ranking.state", (1, 0), 0.0), "ranking.state"),
    ("multilabel", put("regularisation", 0, np.nan), "regularisation"),
    ("multilabel", put("regularisation", 0, 7.0), "regularisation"),
    ("multilabel", put("regularisation", 1, 0.0), "regularisation"),
    ("multilabel", put("ranking.bias", 1, np.nan), "ranking.bias"),
    ("multilabel", put("ranking.bias_g", 1, -1.0), "ranking.bias_g"),
    ("multilabel", make("ranking.examples", lambda a: a[:-1]), "ranking.examples"),
    ("multilabel", put("scorers.doublings", 0, 3), "scorers.doublings"),
    ("softmax_tree", put("tree.left", 0, 0), "tree.left"),
    ("softmax_tree", put("tree.left", 0, 10**6), "tree.left"),
    ("softmax_tree", lambda arrays, facts: put("tree.left", 0, arrays["tree.right"][0])(arrays, facts), "tree.left"),
    ("softmax_tree", put("tree.left", -1, -(2**31)), "tree.left"),
    ("softmax_tree", make("tree.right", lambda a: a[:-1]), "tree.right"),
    ("softmax_tree", make("tree.bias", lambda a: a + np.float32("inf")), "tree.bias"),
    ("softmax_tree", make("tree.first", lambda a: a[::-1].copy()), "tree.first"),
    ("softmax_tree", make("tree.first", lambda a: a[:0]), "tree.left"),
    ("softmax_tree", put("tree.entry", 1, -1), "tree.entry"),
    ("softmax_tree", put("tree.label", 0, K + 1), "tree.label"),
    ("softmax_tree", make("tree.label", lambda a: a[::-1].copy()), "tree.label"),
    ("softmax_tree", put("tree.owner", 0, 4), "tree.owner"),
    ("softmax_tree", put("tree.owner", 0, -1), "tree.owner"),
    ("softmax_tree", put("tree.leaf_node", 0, 0), "tree.leaf_node"),
    ("softmax_tree", put("tree.leaf_node", 0, -1), "tree.leaf_node"),
    ("softmax_tree", node_key_twice, "tree.leaf_feature"),
    ("softmax_tree", put("tree.value", 0, np.nan), "tree.value"),
    ("softmax_tree", with_fact("smooth", "nan"), "'smooth'"),
    ("softmax_tree", with_fact("smooth", -0.5), "'smooth'"),
    ("softmax_tree", with_fact("smooth", 2), "'smooth'"),
    ("softmax_tree", drop_fact("smooth"), "'smooth'"),
]


@pytest.mark.parametrize("number", range(len(EDITS)), ids=lambda i: f"{i} {EDITS[i][0]} {EDITS[i][2]}")
def test_edited_model_is_refused_by_name(models, number):
    variant, edit, named = EDITS[number]
    with pytest.raises(ModelError) as caught:
        load(saved(changed(models[variant], edit)))
    assert str(caught.value).startswith("m: ")
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("variant", ["oaa", "cpt"])
def test_a_run_that_would_learn_from_an_edited_model_ends_without_one(models, variant):
    edit, named = next((edit, named) for name, edit, named in EDITS if name == variant)
    result = run(changed(models[variant], edit), variant, "-f", "n")
    assert result.status == 1
    assert named in result.err
    assert result.err.count("\n") == 1
    assert not os.path.exists("n")


@pytest.mark.parametrize("variant", VARIANTS)
def test_unchanged_model_is_accepted(models, variant):
    with load(saved(models[variant])) as model:
        assert len(model.predict_many(lines(variant, 8, 3))) == 3
        assert len(model.learn_many(lines(variant, 8, 3)).prediction) == 3
        model.end_pass()
        model.save("n")
    assert run(models[variant], variant).status == 0


@pytest.mark.parametrize("facts", [[], "x", 5, None, True])
def test_facts_that_are_no_dictionary_are_refused(facts):
    with pytest.raises(ModelError, match="'learner'"), stored_arrays.reject_unused({}, facts):
        pass


def test_names_in_messages_are_harmless():
    name = "\x1b[2J" + "x" * 1000
    with pytest.raises(ModelError) as caught, stored_arrays.reject_unused({name: np.zeros(1)}, {}):
        pass
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("variant", "words"),
    [
        ("oaa", ("--oaa", 1000 * K)),
        ("recall_tree", ("--recall_tree", K, "--max_depth", 20, "--max_candidates", 3)),
        ("recall_tree", ("--recall_tree", K, "--max_candidates", 3000)),
        ("recall_tree", ("--recall_tree", 1000 * K, "--max_depth", 4, "--max_candidates", 3)),
        ("recall_tree vw", ("--recall_tree", 1000 * K, "--max_depth", 4, "--layout", "vw", "--max_candidates", 3)),
        ("log_multi vw", ("--log_multi", K, "--max_predictors", 10**8, "--layout", "vw")),
        ("ect", ("--ect", K, "--error", 1000)),
        ("random_tree vw", ("--random_tree", 1000 * K, "--layout", "vw")),
        ("sparse_experts", ("--sparse_experts", 1000 * K, "--experts", 3)),
        ("cpt", ("--cpt", K, "--trees", 64)),
    ],
)
def test_sizes_are_looked_at_before_a_learner_is_built(models, variant, words):
    arrays = models[variant].arrays
    config = configure(*VARIANTS[variant], "-b", 8)
    config.reduction.check_arrays(spec_of(config), arrays)
    config = configure(*words, "-b", 24)
    with pytest.raises(ModelError, match="options require"):
        config.reduction.check_arrays(spec_of(config), arrays)


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [("bits", 31, "-b 31"), ("ngram", ["1000"], "--ngram 1000"), ("quadratic", ["abc"], "abc")],
)
def test_option_of_a_model_that_no_run_can_have_is_refused_with_the_name_of_the_file(models, option, value, named):
    model = changed(models["oaa"], lambda arrays, facts: None)
    model.options[option] = value
    if option == "ngram":
        model.options["skips"] = ["1000"]
    result = run(model, "oaa", "-t")
    assert result.status == 1
    assert result.err.startswith("xclass: m: ")
    assert named in result.err
    assert result.err.count("\n") == 1


def test_labels_beyond_the_classes_are_in_a_model_that_let_them_in(place):
    data = "".join(f"{1 + i % 5} | f{i % 5}\n" for i in range(100))
    learn("--log_multi", 3, "--on_bad_line", "vw", "-b", 8, "--quiet", "-f", "m", stdin=data, cwd=place)
    assert model_file.load("m").facts["learner"] == {"any_label": 1}
    unlabelled = "".join(line[1:] + "\n" for line in data.splitlines())
    assert xclass("-i", "m", "-t", "-p", "p", "--quiet", stdin=unlabelled).status == 0
    assert max(int(line) for line in (place / "p").read_text().split()) == 5


# -- tables of keys that were chosen -------------------------------------------------------------------------------


MANY = 60  # keys


def colliding(keys: np.ndarray, cells: int) -> np.ndarray:
    """MANY of the keys for which the searches in a table without a secret begin in one cell."""
    at = (hash_table.hashed.py_func(keys, np.uint64(0)) & np.uint64(cells - 1)).astype(np.int64)
    same_bucket = keys[at == np.argmax(np.bincount(at))]
    assert len(same_bucket) >= MANY
    return same_bucket[:MANY]


def longest_search(cells: np.ndarray, empty: int, home) -> int:
    """Steps from where the search for a key begins to its cell, the most of all keys."""
    used = np.flatnonzero(cells != np.uint64(empty))
    assert len(used) >= MANY
    return max((int(at) - int(home(cells[at]))) % len(cells) for at in used)


def steps_of_tree(labels: np.ndarray) -> int:
    tree = label_tree.balanced_tree(labels.astype(np.int64))
    tree = archives.restored(archives.saved(label_tree.serialize, "t", tree), label_tree.serialize, "t", tree)
    return longest_search(tree.key, 0, lambda key: hash_table.hashed(key, tree.secret) & np.uint64(len(tree.key) - 1))


def steps_of_counts(labels: np.ndarray) -> int:
    counts = label_counts.new_counts(1, 1)
    more = 1 << 22, 0, np.zeros(1, np.int32), False
    entries = archives.saved(label_counts.serialize, counts, *more)
    entries |= {"cells.key": labels, "cells.count": np.ones((len(labels), 2))}
    counts = archives.restored(entries, label_counts.serialize, counts, *more)
    keys = counts.cell_key[:, 0]
    return longest_search(keys, 0, lambda key: hash_table.hashed(key, counts.secret) & np.uint64(len(keys) - 1))


def steps_of_cells(labels: np.ndarray) -> int:
    words = np.zeros((len(labels), 4), np.uint64)
    words[:, 0] = (1 << 32) + labels
    cells, version = split_cells.new_cells(split_cells.FIRST_CELLS), np.zeros(1, np.int64)
    cells = archives.restored({"cells": words}, split_cells.serialize, "cells", cells, version, (1, 1 << 22))
    return longest_search(cells.word[::4], 0, lambda key: split_cells._home(cells, key))


def steps_of_paths(features: np.ndarray) -> int:
    number = len(features)
    parts = inference.empty_tree()._replace(
        router_node=np.zeros(number, np.int32), router_feature=features.astype(np.uint32),
        weight=np.ones(number, np.float32),
    )  # fmt: skip
    paths = inference.prepare(parts)
    mask = np.uint64(len(paths.key) - 1)
    return longest_search(paths.key, inference.EMPTY_KEY, lambda key: hash_table.hashed(key, paths.secret) & mask)


@pytest.mark.parametrize(
    ("steps_of", "cells"),
    [
        (steps_of_tree, label_tree.FIRST_CELLS),
        (steps_of_counts, label_counts.FIRST_CELLS),
        (steps_of_paths, 512),
    ],
)
def test_keys_chosen_to_collide_do_not_collide_with_a_secret(monkeypatch, steps_of, cells):
    keys = colliding(np.arange(1, 1 << 22, 5, dtype=np.uint64), cells)
    assert steps_of(keys) < MANY // 2
    monkeypatch.setattr(hash_table, "new_secret", lambda: np.uint64(0))
    assert steps_of(keys) >= MANY - 1  # who knows the secret can choose such keys


def test_cells_of_the_lomtree_have_a_secret(monkeypatch):
    keys = np.arange(1, MANY + 1, dtype=np.uint64)
    assert steps_of_cells(keys) < MANY // 2
    homes = {int(split_cells._home(split_cells.new_cells(), np.uint64(7))) for _ in range(20)}
    assert len(homes) > 1


# -- anything ------------------------------------------------------------------------------------------------------

VALUES = [0, 1, -1, 2, 3, 7, 8, K, K + 1, 255, 2**31 - 1, -(2**31), 2**32, 2**62, -(2**63), 2**63 - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e38, -1e38, 1e-45, float("inf"), float("-inf"), float("nan")]


def fits(value: int, dtype: np.dtype):
    """The value as a number of this type, by its low bits."""
    size = 8 * dtype.itemsize
    return np.array([value % (1 << size)], np.uint64).astype(f"u{dtype.itemsize}").view(dtype)[0]


def mutate(arrays: dict[str, np.ndarray], draw) -> None:
    """Change one array in a way that leaves it an array of the same kind mostly."""
    name = draw(st.sampled_from(sorted(arrays)))
    array = arrays[name] = np.array(arrays[name])
    flat = array.reshape(-1)
    way = draw(st.sampled_from(["put", "put", "put", "swap", "copy", "fill", "drop", "repeat", "turn", "type", "lose"]))
    if way == "lose":
        del arrays[name]
    elif way == "type":
        arrays[name] = array.astype(draw(st.sampled_from([np.float64, np.float32, np.int64, np.int32, np.uint64])))
    elif way == "drop":
        arrays[name] = array[: max(0, len(array) - draw(st.integers(1, 3)))]
    elif way == "repeat":
        arrays[name] = np.concatenate([array, array[-1:]])
    elif way == "turn":
        arrays[name] = np.ascontiguousarray(array[::-1])
    elif len(flat):
        at, other = draw(st.integers(0, len(flat) - 1)), draw(st.integers(0, len(flat) - 1))
        if way == "swap":
            flat[[at, other]] = flat[[other, at]]
        elif way == "copy":
            flat[at] = flat[other]
        else:
            if array.dtype.kind == "f":
                value = draw(st.sampled_from(FLOATS))
            else:
                value = fits(draw(st.sampled_from(VALUES) | st.integers(-9, 60)), array.dtype)
            flat[slice(None) if way == "fill" else at] = value


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("variant", VARIANTS)
@seed(22)
@QUICK
@given(data=st.data())
def test_changed_model_is_refused_or_works(models, variant, data):
    model = changed(models[variant], lambda arrays, facts: None)
    for _ in range(data.draw(st.integers(1, 2))):
        mutate(model.arrays, data.draw)
    ways = [("-t", "-p", "p"), ("-f", "n"), ("-t", "-r", "r") if variant.split()[0] in SCORED else ("-t", "-p", "p")]
    if variant.split()[0] in PROBABLE:
        ways += [("-t", "--top_k", 3, "-p", "p"), ("-t", "--probabilities", "-p", "p", "--calibration", "c")]
    with np.errstate(all="ignore"):
        result = run(model, variant, *data.draw(st.sampled_from(ways)))
    assert result.status in (0, 1)
    assert result.status == 0 or result.err


# -- trees in files ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("9" * 5000 + " -\n", "t:1"),
        ("0 -\n1 0 " + "1" * 5000 + "\n", "t:2"),
        ("0 -\n1 0 \x1b[2J\n", "t:2"),
        ("0 - 1\n" * 1001, "t:1001"),
    ],
)
def test_tree_file_that_asks_too_much_is_refused(text, named):
    with open("t", "w") as file:
        file.write(text)
    with pytest.raises(DataError) as caught:
        tree_file.read("t")
    assert named in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_tree_is_not_written_with_names_it_lacks():
    tree = label_tree.balanced_tree(np.arange(1, 4))
    with pytest.raises(DataError, match="label 3"):
        tree_file.result("t", [tree], ["one", "two"]).write()
