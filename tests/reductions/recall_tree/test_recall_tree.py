"""The recall tree's kernels against the plain oracle, example by example, and what always holds of its counts."""

import math

import numpy as np
import pytest
from harness import configure, examples_of, learned
from oracles import learner as oracle_learner
from oracles import recall_tree as oracle
from streams import multiclass
from variants import names

import xclass
from xclass.binary import gd, update_rule
from xclass.reductions.recall_tree import label_counts, routing, scoring, sequential
from xclass.reductions.recall_tree import reduction as recall_tree

F = np.float32
K = 30
CLOSE = {"rtol": 2e-4, "atol": 2e-6}  # the oracle's exponentials are rounded once more


pytestmark = pytest.mark.usefixtures("exponential")


def rule_of(config) -> dict:
    """The oracle's words for the options of the learner."""
    o = config.learner
    named = {name: getattr(o, name) for name in ("sgd", "adaptive", "normalized", "invariant")}
    rule = oracle_learner.resolve_rule(
        **named, learning_rate=o.learning_rate, initial_t=o.initial_t, power_t=o.power_t, loss=o.loss_function
    )
    return {**rule, "tau": o.quantile_tau, "label_range": o.label_range}


def oracle_of(config, tree: recall_tree.RecallTree) -> oracle.RecallTree:
    """The oracle of a tree, with the weights where this layout has them."""
    o = config.recall_tree
    bits = config.learner.bits
    rule = rule_of(config)
    more = {}
    if config.learner.layout == "odd":
        router_slots, slots = 1 << bits - 1, 1 << bits - 3
        nodes = oracle.grow(o.max_depth)
        subs = {node.router: int(tree.tree.router[a]) for a, node in enumerate(nodes) if node.router is not None}
        router_width = gd.odd_width(1 + max(subs.values(), default=0))
        assert int(tree.tables[0].width) == router_width
        width = gd.odd_width(math.ceil(o.recall_tree / scoring.SHARDS))
        assert {int(table.width) for table in tree.tables[1:]} == {width}

        def router_slot(index, router):
            return (index * router_width + subs[router]) % router_slots

        def scorer_slot(index, sub):
            c = sub - len(subs)
            return c % scoring.SHARDS, (index * width + c // scoring.SHARDS) % slots

        more["router_learner"] = oracle_learner.Learner(router_slot, **rule)
        more["scorer_learner"] = oracle_learner.Learner(scorer_slot, unscaled=scorer_slot, **rule)
    return oracle.RecallTree(
        o.recall_tree,
        bits=bits,
        max_candidates=o.max_candidates,
        max_depth=o.max_depth,
        bern_hyper=o.bern_hyper,
        candidate_margin=o.candidate_margin,
        node_only=o.node_only,
        path_features=not o.no_path_features,
        randomized_routing=o.randomized_routing,
        link=config.learner.link,
        router_weight=o.router_weight,
        recall_stop=o.recall_stop,
        square_sum="plain",
        skip_zero_weight=True,
        seed=config.run.random_seed,
        **more,
        **rule,
    )


def check(*words, text: str) -> routing.RoutingPlan:
    """Run both over a text and compare all there is to compare; return what routing planned."""
    config = configure("--recall_tree", K, *words)
    tree, batch, task, plan = learned(config, text)
    plain = oracle_of(config, tree)
    clock = 0.0
    at_nodes = set()
    for i, (features, label, weight) in enumerate(examples_of(batch)):
        where = f"example {i} of {words}"
        predicted = plain.predict(features)
        assert plan.node[i] == plain.node, where
        items = slice(plan.first[i], plan.scored[i])
        assert (plan.item[items] + 1).tolist() == plain.candidates, where
        np.testing.assert_allclose(plan.score[items], np.array(plain.candidate_scores, F), err_msg=where, **CLOSE)
        if task.prediction[i] != predicted:  # only where both scores are as good
            best = sorted(plain.candidate_scores)[-2:]
            assert best[1] - best[0] < 1e-5, where
        at_nodes.add(plain.node)
        if label is None:
            assert plan.label[i] == -1
            continue
        if config.learner.layout == "odd":
            assert_no_collision(plain, features, where)
        plain.learn(features, label, weight, clock)
        clock += weight
        if weight > 0:
            assert plan.last[i] == plain.learned_node, where
    compare_nodes(tree, plain)
    compare_weights(config, tree, plain)
    if config.recall_tree.max_candidates < K and config.recall_tree.max_depth > 0:
        assert len(at_nodes) > 2, "this stream does not test routing"
    return plan


def assert_no_collision(plain, features, where) -> None:
    """Lanes go through an example together, so what is stored is the oracle's only if no two share a slot."""
    if len(features) == 0:
        return
    items = plain.with_path(features, plain.node)
    lanes = {plain.scorer_learner.key(item, plain.scorer(y)) for item in items for y in range(1, K + 1)}
    assert len(lanes) == len(items) * K, f"{where}: choose a larger -b"


def compare_nodes(tree, plain) -> None:
    """Counts, entropies, bounds and candidates of every node."""
    c = tree.counts
    for a, node in enumerate(plain.nodes):
        assert c.node[a, label_counts.WEIGHT] == node.n
        assert c.node[a, label_counts.ENTROPY] == pytest.approx(node.entropy, abs=1e-12)
        assert c.node[a, label_counts.BOUND] == pytest.approx(float(node.bound), rel=1e-6)
        assert c.gain[a] == (node.gain if tree.settings.stop.gain else 0)
        size = c.top_size[a]
        candidates = [[int(y) + 1, n] for y, n in zip(c.top_label[a, :size], c.top_count[a, :size], strict=True)]
        assert candidates == node.labels[: tree.candidates]
        assert c.node[a, label_counts.CANDIDATE_WEIGHT] == pytest.approx(sum(n for _, n in candidates))


def compare_weights(config, tree, plain) -> None:
    """Every slot of every table: weight, G and N; and the sums of every subproblem."""

    def numbers(table, slots: dict):
        flat = table.flat.reshape(-1, update_rule.FIELDS)
        expected = np.zeros((len(flat), 3), F)
        for slot, entry in slots.items():
            expected[slot] = entry.w, entry.g, entry.n
        return flat[:, :3], expected

    if config.learner.layout == "vw":
        pairs = [numbers(tree.tables[0], plain.router_learner.table)]
    else:
        pairs = [numbers(tree.tables[0], plain.router_learner.table)]
        for shard in range(scoring.SHARDS):
            slots = {slot: entry for (s, slot), entry in plain.scorer_learner.table.items() if s == shard}
            pairs.append(numbers(tree.tables[1 + shard], slots))
    for actual, expected in pairs:
        np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=2e-5)
    assert any((actual[:, 0] != 0).any() for actual, _ in pairs)


TEXT, LONG_TEXT = (
    multiclass(1, K, n, noise=0.3, tags=True, weights=(1, 0.5, 3, 0), unlabelled=0.1, popular=2.0) for n in (250, 1000)
)
WAYS = [
    (),
    ("--max_candidates", 4),
    ("--max_candidates", 4, "--max_depth", 2),
    ("--max_candidates", 4, "--max_depth", 7),
    ("--max_candidates", 4, "--max_depth", 0),
    ("--max_candidates", 1),
    ("--max_candidates", 4, "--bern_hyper", 0),
    ("--max_candidates", 4, "--bern_hyper", 0.1),
    ("--max_candidates", 4, "--bern_hyper", 100),  # the bound alone would keep all at the root
    ("--max_candidates", 4, "--recall_stop", "bound"),
    ("--max_candidates", 4, "--recall_stop", "bound", "--bern_hyper", 0),
    ("--max_candidates", 4, "--recall_stop", "never"),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--node_only"),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--no_path_features"),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--randomized_routing", "--random_seed", 5),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--randomized_routing", "--link", "glf1"),
    ("--max_candidates", 4, "--candidate_margin", 0.5),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--router_weight", "example"),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--router_weight", "mean_entropy"),
    ("--max_candidates", 4, "--bern_hyper", 0.1, "--label_range", "seen"),
]
LEARNERS = [
    ("--loss_function", "squared"),
    ("--loss_function", "squared", "--label_range", "seen"),
    ("--loss_function", "hinge"),
    ("--loss_function", "quantile", "--quantile_tau", 0.3, "-l", 0.02),  # small steps: its slope jumps at the label
    ("--sgd", "-l", 0.1),
    ("--sgd", "--initial_t", 5, "--power_t", 0.25),
    ("--adaptive", "-l", 0.5),
    ("--normalized", "-l", 0.5),
    ("--adaptive", "--normalized", "--invariant", "-l", 0.3, "--power_t", 0.4),
    ("--invariant", "-l", 0.1, "--sgd"),
    ("--noconstant", "-q", "w:"),
]
LAYOUTS = pytest.mark.parametrize(
    "layout", [("--layout", "odd", "-b", 22), ("--layout", "vw", "-b", 16)], ids=["odd", "vw"]
)


@pytest.mark.sampled(3)
@pytest.mark.bounds
@LAYOUTS
@pytest.mark.parametrize("words", WAYS, ids=names)
def test_kernel_follows_the_oracle(layout, words):
    check(*layout, *words, text=LONG_TEXT if 100 in words else TEXT)  # a gain shows after some hundred examples


@pytest.mark.sampled(3)
@LAYOUTS
@pytest.mark.parametrize("words", LEARNERS, ids=names)
def test_kernel_follows_the_oracle_whatever_the_learner(layout, words):
    check(*layout, "--max_candidates", 4, "--bern_hyper", 0.1, *words, text=TEXT)


def test_example_by_example_learning_sees_collisions_as_the_oracle_does():
    """With the layout of VW nothing runs ahead, so a table that is much too small changes nothing."""
    check("--layout", "vw", "-b", 9, "--max_candidates", 4, "--bern_hyper", 0.1, text=TEXT)


@LAYOUTS
def test_candidates_without_loss_drop_out(layout):
    """Margins beyond which the loss is 0 in float32, for some of many candidates at a time."""
    text = multiclass(6, K, 250, noise=0.1, weights=(1, 3))
    plan = check(*layout, "--max_candidates", K, "--max_depth", 1, "-l", 10000, "--candidate_margin", 50, text=text)
    beyond = np.abs(plan.score[: plan.scored[-1]]) > 16.7
    assert 0.02 < beyond.mean() < 0.8


@LAYOUTS
def test_candidates_pushed_out_and_in_again(layout):
    """Two candidates and labels that take turns: the label at hand comes in, or pushes another out, all the time."""
    text = "".join(f"{1 + (i * i + i // 7) % 5} |w a{i % 3} b{i % 2}\n" for i in range(300))
    check(*layout, "--max_candidates", 2, "--max_depth", 3, "--bern_hyper", 0.05, text=text)


@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero")  # of NumPy, in plain Python
def test_kernel_follows_the_oracle_without_compiling():
    text = multiclass(2, K, 25, weights=(1, 2, 0), unlabelled=0.1, popular=3.0)
    check("-b", 20, "--max_candidates", 2, "--max_depth", 2, "--bern_hyper", 0, text=text)
    check("-b", 14, "--layout", "vw", "--max_candidates", 2, "--max_depth", 2, "--bern_hyper", 0, text=text)


# -- what always holds -----------------------------------------------------------------------------------------------


def grown_tree(*words, text: str) -> recall_tree.RecallTree:
    config = configure("--recall_tree", K, "-b", 14, *words)
    tree, *_ = learned(config, text)
    return tree


def recount(tree) -> dict[int, dict[int, float]]:
    """Node -> label -> count, from the cells."""
    c = tree.counts
    counted: dict[int, dict[int, float]] = {}
    for key, left_count, right_count in zip(
        c.cell_key[:, 0].tolist(), c.cell_count[:, 1], c.cell_count[:, 2], strict=True
    ):
        if not key:
            continue
        above, label = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
        children = (0, None) if above < 0 else (int(tree.tree.left[above]), int(tree.tree.left[above]) + 1)
        for child, count in zip(children, (left_count, right_count), strict=True):
            if count:
                assert child is not None, "the root has no sibling"
                counted.setdefault(child, {})[label] = count
    return counted


@pytest.mark.bounds
@pytest.mark.parametrize("layout", ["odd", "vw"])
@pytest.mark.parametrize("seed", range(4))
def test_counts_entropies_and_bounds_are_those_of_a_plain_recount(layout, seed):
    lambda_ = (0, 0.02, 0.3, 1)[seed]
    text = multiclass(seed, K, 600, noise=0.2, weights=(1, 2, 0.25), unlabelled=0.05, popular=1.5)
    tree = grown_tree("--layout", layout, "--max_candidates", 3 + seed, "--bern_hyper", lambda_, text=text)
    c = tree.counts
    counted = recount(tree)
    by_label: dict[int, float] = {}
    for line in text.splitlines():
        label, weight, *_ = line.split(" ")
        if label:
            by_label[int(label) - 1] = by_label.get(int(label) - 1, 0.0) + float(weight)
    assert counted[0] == by_label
    assert len(counted) > 3
    for a in range(len(c.node)):
        counts = counted.get(a, {})
        n = sum(counts.values())
        assert c.node[a, label_counts.WEIGHT] == pytest.approx(n)
        if not n:
            assert c.top_size[a] == 0
            continue
        entropy = -sum(count / n * math.log(count / n) for count in counts.values())
        assert c.node[a, label_counts.ENTROPY] == pytest.approx(entropy, abs=1e-9)
        size = c.top_size[a]
        assert size == min(len(counts), tree.candidates)
        top = c.top_count[a, :size].tolist()
        assert top == sorted(counts.values(), reverse=True)[:size], "the candidates have the largest counts, in order"
        assert [counts[y] for y in c.top_label[a, :size]] == top
        assert len(set(c.top_label[a, :size].tolist())) == size
        share = min(1.0, sum(top) / n)
        bound = share - math.sqrt(lambda_ * share * (1 - share) / n) - lambda_ * 15 / math.sqrt(18) / n
        assert c.node[a, label_counts.BOUND] == pytest.approx(max(0.0, bound), abs=1e-5)


def test_children_count_what_went_to_them():
    """Every example counted at a node is counted at one child, unless learning ended at the node."""
    text = multiclass(8, K, 400, noise=0.2)
    counted = recount(tree := grown_tree("--max_candidates", 3, "--recall_stop", "never", text=text))
    for a, left_child in enumerate(tree.tree.left.tolist()):
        if tree.tree.router[a] >= 0 and a in counted:
            both = [counted.get(left_child, {}), counted.get(left_child + 1, {})]
            for label, count in counted[a].items():
                assert sum(child.get(label, 0) for child in both) == count


@pytest.mark.bounds
@pytest.mark.parametrize("words", [(), ("--layout", "vw"), ("--bern_hyper", 0, "--max_depth", 9)], ids=names)
def test_growth_of_the_count_table_changes_nothing(monkeypatch, words):
    text = multiclass(5, K, 500, weights=(1, 2, 0), unlabelled=0.1)
    whole = grown_tree("--max_candidates", 3, *words, text=text).saved().arrays
    new_counts = label_counts.new_counts
    monkeypatch.setattr(label_counts, "new_counts", lambda nodes, candidates: new_counts(nodes, candidates, 1))
    tree = grown_tree("--max_candidates", 3, *words, text=text)
    assert tree.counts.used[0] * 8 <= len(tree.counts.cell_key) * 5
    assert len(tree.counts.cell_key) < 1 << 14
    grown = tree.saved().arrays
    assert grown.keys() == whole.keys()
    for name, array in whole.items():
        assert np.array_equal(np.asarray(array), np.asarray(grown[name])), name


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize("depth", range(6))
def test_tree_is_complete_and_its_routers_are_distinct(depth, blocked):
    tree, taken = routing.new_tree(depth, blocked), routing.subs(depth, blocked)
    nodes = oracle.grow(depth)
    assert tree.left.tolist() == [node.left for node in nodes]
    assert tree.parent.tolist() == [-1, *(node.parent for node in nodes[1:])]
    inner = [a for a, node in enumerate(nodes) if node.router is not None]
    routers = tree.router[inner].tolist()
    assert len(set(routers)) == len(inner) == 2**depth - 1
    assert [a for a in range(len(nodes)) if tree.router[a] >= 0] == inner
    assert max(routers, default=-1) < taken
    if not blocked:
        assert routers == [nodes[a].router for a in inner]
        return
    for a in inner:  # a router shares its block of four with its parent or with its children
        children = [b for b in (tree.left[a], tree.left[a] + 1) if tree.router[b] >= 0]
        family = [tree.router[b] // 4 for b in children] + ([tree.router[tree.parent[a]] // 4] if a else [])
        alone = a == 0 and depth % 2 == 1
        assert alone or not family or tree.router[a] // 4 in family


def test_defaults_for_many_classes():
    """The table has at most 2**23 slots, and the paper's depth, candidates and rule remain available."""
    config = configure("--recall_tree", 105033, "--recall_stop", "bound")
    o = config.recall_tree
    assert (config.learner.bits, o.max_depth, o.max_candidates, o.recall_stop) == (23, 17, 68, "bound")


def test_path_features_need_a_path():
    with pytest.raises(xclass.UsageError, match="node_only and no_path_features exclude each other"):
        xclass.Learner("recall_tree", K, node_only=True, no_path_features=True)


@pytest.mark.bounds
@pytest.mark.plain
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("bits", [8, 9, 12, 14])
def test_lanes_are_apart_where_no_slot_of_theirs_is_met_twice(bits):
    depth, classes = 3, 40
    tree, routers = routing.new_tree(depth, blocked=False), routing.subs(depth, blocked=False)
    width, mask = 64, (1 << bits) - 1
    table = gd.new_table(gd.make_rule(configure("--oaa", "2").learner, True), bits, routers + classes, width)
    rng = np.random.default_rng(bits)
    marks = np.zeros(routers + classes, np.uint8)
    scratch = gd.new_lanes(12)
    outcomes = []
    for _ in range(60):
        a, way = int(rng.integers(len(tree.left))), []
        lanes = np.sort(rng.choice(classes, 12, replace=False)) + routers
        scratch.sub[:] = lanes
        up = a
        while up >= 0:
            way += [int(tree.router[up])] if tree.router[up] >= 0 else []
            up = int(tree.parent[up])
        ordinary = [int(slot) * width for slot in rng.choice(1 << (bits - 6), rng.integers(1, 4), replace=False)]
        of_path = [int(slot) for slot in rng.integers(0, 1 << 40, rng.integers(0, 4))]
        place = np.array(ordinary + of_path, np.uint64)
        apart = sequential._slots_are_distinct(tree, table, place, len(ordinary), len(place), a, scratch, 12, marks)
        slots = {sub: {(slot + sub) & mask for slot in ordinary} for sub in way}
        slots.update({int(sub): {(slot + int(sub)) & mask for slot in ordinary + of_path} for sub in lanes})
        shared = sum(map(len, slots.values())) > len(set().union(*slots.values()))
        assert not (apart and shared)
        assert apart or shared or len(set(of_path)) > 1  # two of the path near each other are enough to say no
        assert not marks.any()
        outcomes.append(apart)
    assert any(outcomes) and (bits > 12 or not all(outcomes))
