"""Oracle of the recall tree: routers choose a node, and regressors score only the labels seen most often there.

Source   Daume III, Karampatziakis, Langford, Mineiro, "Logarithmic Time One-Against-Some", ICML 2017, Algorithms 1-4;
         VW 9.11.9 `--recall_tree` where the paper leaves a choice.
Idea     Every node counts the labels of the examples that reach it; its F most frequent labels are its candidates. The
         descent ends at a node if the lower bound on the recall of its child is not higher than its own.
Differs  from the paper, as VW does; `recall_tree_paper.py` is the paper's tree. Here the expected entropies include the
         example itself, and by default they decide the labels of a router's examples but not their weights; descent
         also ends where bounds are equal, and while learning the bounds are those before the label is counted; the last
         term of the bound is 15 / sqrt(18) times the paper's, and bounds are at least 0; only scorers use path
         features.
Names    n weight counted at a node | F max_candidates | lambda bern_hyper | B lower bound on recall.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

import numpy as np

from .learner import ZERO, F, Learner, power_of_two, vw_unscaled_slot
from .oaa import Rand

D = np.float64
PATH_FACTOR = 868771  # in VW the path feature of node a has the index PATH_FACTOR * a


@dataclass
class Node:
    parent: int = 0
    left: int = 0
    right: int = 0
    router: int | None = None  # None at a leaf
    n: float = 0.0
    entropy: float = 0.0  # of the labels counted here, in nats
    bound: np.float32 = ZERO  # lower bound on recall
    gain: float = 0.0  # decayed number of labels that are candidates here alone, less those at the parent alone
    labels: list[list] = field(default_factory=list)  # [label, count], roughly by falling count


def grow(depth: int) -> list[Node]:
    """Return the nodes of a complete tree, numbered as in VW.

    Expanding a node creates its left and its right child, gives it the next router, and expands the children.
    """
    nodes = [Node()]

    def expand(at: int, level: int, routers: int) -> int:
        if level == depth:
            return routers
        nodes[at].left, nodes[at].right, nodes[at].router = len(nodes), len(nodes) + 1, routers
        nodes.extend((Node(parent=at), Node(parent=at)))
        routers = expand(nodes[at].left, level + 1, routers + 1)
        return expand(nodes[at].right, level + 1, routers)

    expand(0, 0, 0)
    return nodes


def _plogp(a: float, b: float) -> float:
    return D(0) if a == 0 else (a / b) * np.log(a / b)


class RecallTree:
    """Learn and predict the labels 1..k; a prediction is 0 if the node has no candidates.

    Parameters
    ----------
    k, max_candidates, max_depth, bern_hyper, node_only, randomized_routing, seed, link : as in VW's options
    bits : log2 of the number of slots in VW's layout
    candidate_margin : candidates other than the label learn only while their score is above minus this number
    path_features : whether scorers use path features
    router_weight : weight of an example for a router. "example": its own weight (VW). "mean_entropy": the difference of
        the expected entropies, in bits. "entropy": that times the total weight counted at both children, this example
        included
    recall_stop : "bound": descent ends where the bound of the child is not higher. "vw": the same, but never above a
        leaf if lambda is 0. "gain": not if the child, for the recent examples that were sent to it, had clearly more
        labels among its candidates. "never": only at a leaf
    square_sum : only for `--sgd --invariant`, whose exact step needs the sum of the squared values of the features.
        "vw": computed once per example, so nearly always for a router, without path features. "plain": computed for
        each update
    skip_zero_weight : whether examples of weight 0 are ignored; VW learns them, and the entropy of a new node is then
        NaN
    slot : layout of the weights; routers are subproblems 0..R-1, and the scorer of label y is subproblem R + y - 1.
        VW's layout by default
    path_index, path_slot : node -> index, and (index, subproblem) -> slot, of the path features
    router_learner, scorer_learner : learners to use; by default one `Learner` with `slot` and **rule for both. A
        `scorer_learner` has to have its own `unscaled` function if there are path features
    **rule : keywords of `Learner`, see `resolve_rule`

    Attributes
    ----------
    node, candidates, candidate_scores : the node that the last prediction reached, its candidates and their scores
    learned_node : the node that the last learned example reached
    route : the routers' updates of the last learned example: [(node, label of the router, importance, child chosen)]
    """

    def __init__(
        self,
        k: int,
        *,
        bits: int = 18,
        max_candidates: int | None = None,
        max_depth: int | None = None,
        bern_hyper: float = 1.0,
        candidate_margin: float = 50.0,
        node_only: bool = False,
        path_features: bool = True,
        randomized_routing: bool = False,
        link: str = "identity",
        router_weight: str = "example",
        recall_stop: str = "vw",
        square_sum: str = "vw",
        skip_zero_weight: bool = False,
        seed: int = 0,
        slot: Callable[[int, int], Hashable] | None = None,
        path_index: Callable[[int], Hashable] = lambda node: PATH_FACTOR * node,
        path_slot: Callable[[Hashable, int], Hashable] | None = None,
        router_learner: Learner | None = None,
        scorer_learner: Learner | None = None,
        **rule,
    ):
        if router_weight not in ("example", "entropy", "mean_entropy"):
            raise ValueError(router_weight)
        log = math.ceil(math.log(k) / math.log(2.0))
        self.k = k
        self.max_candidates = min(k, 4 * log) if max_candidates is None else max_candidates
        self.max_depth = log if max_depth is None else max_depth
        self.bern_hyper, self.candidate_margin = F(bern_hyper), F(candidate_margin)
        self.node_only, self.path_features = node_only, path_features
        self.rand, self.link = Rand(seed) if randomized_routing else None, link
        self.recall_stop, self.way = recall_stop, []
        self.router_weight, self.skip_zero_weight = router_weight, skip_zero_weight
        self.square_sum, self.memo = square_sum, None
        self.nodes = grow(self.max_depth)
        self.routers = sum(node.router is not None for node in self.nodes)
        self.path_index = path_index
        if router_learner is None or scorer_learner is None:
            width = power_of_two(self.routers + k)
            shared = Learner(
                slot or (lambda index, sub: (index * width + sub) % (1 << bits)),
                unscaled=path_slot or vw_unscaled_slot(bits),
                **rule,
            )
        self.router_learner = router_learner or shared
        self.scorer_learner = scorer_learner or shared
        self.node, self.candidates, self.candidate_scores = 0, [], []
        self.learned_node, self.route = 0, []

    # weights, for tests

    def scorer(self, y: int) -> int:
        """Return the subproblem of the scorer of label y."""
        return self.routers + y - 1

    # Algorithm 1

    def predict(self, features: list[tuple]) -> int:
        at, self.way = 0, []
        while self.nodes[at].router is not None:
            score = self.router_learner.score(features, self.nodes[at].router)
            child = self.nodes[at].left if score < 0 else self.nodes[at].right
            self.way.append((at, child))
            if self._stops(at, child):
                break
            at = child
        self.node, self.candidates = at, self.candidates_at(at)
        items = self.with_path(features, at)
        self.candidate_scores = [self.scorer_learner.score(items, self.scorer(y)) for y in self.candidates]
        best, best_score = 0, None
        for y, score in zip(self.candidates, self.candidate_scores, strict=True):
            if best_score is None or score > best_score:
                best, best_score = y, score
        return best

    def candidates_at(self, node: int) -> list[int]:
        return [label for label, _ in self.nodes[node].labels[: self.max_candidates]]

    def with_path(self, features: list[tuple], node: int) -> list[tuple]:
        """Return the features with the path features of `node` and of all nodes above it but the root.

        With `node_only`, only the path feature of `node` is added.
        """
        if not self.path_features:
            return features
        path = [node]
        if not self.node_only:
            path = []
            while node > 0:
                path.append(node)
                node = self.nodes[node].parent
        return [*features, *((self.path_index(a), F(1), False) for a in path)]

    def _stops(self, parent: int, child: int) -> bool:
        if self.recall_stop == "gain" and self.nodes[child].gain > 10:
            return False
        if self.recall_stop == "never" or (self.recall_stop == "vw" and self.bern_hyper == 0):
            return False
        return bool(self.nodes[parent].bound >= self.nodes[child].bound)

    # Algorithm 2

    def learn(self, features: list[tuple], y: int, weight: float = 1.0, clock: float = 0.0) -> None:
        if self.skip_zero_weight and weight == 0:
            return
        weight = float(F(weight))
        for above, child in self.way:
            difference = (y in self.candidates_at(child)) - (y in self.candidates_at(above))
            self.nodes[child].gain = 0.998 * self.nodes[child].gain + difference
        self.route = []
        self.memo = [] if self.square_sum == "vw" else None
        at = 0
        while self.nodes[at].router is not None:
            side = self._train_router(features, y, weight, clock, at)
            child = self.nodes[at].left if side < 0 else self.nodes[at].right
            self.route[-1] += (child,)
            stops = self._stops(at, child)  # with the bounds from before this example
            self._insert(at, y, weight)
            if stops:
                self._insert(child, y, weight)
                break
            at = child
        if self.nodes[at].router is None:
            self._insert(at, y, weight)
        self.learned_node = at
        self._train_scorers(features, y, weight, clock, at)

    # Algorithm 3

    def _train_router(self, features, y, weight, clock, at) -> np.float32:
        """Train a router towards the child whose entropy the label raises less; return its prediction after that."""
        node = self.nodes[at]
        left, right = self.nodes[node.left], self.nodes[node.right]
        with np.errstate(all="ignore"):
            new_left, new_right = self._entropy_with(left, y, weight), self._entropy_with(right, y, weight)
            to_left = left.n * (new_left - left.entropy) + weight * new_left
            to_right = right.n * (new_right - right.entropy) + weight * new_right
            label = -1 if to_left < to_right else 1
            importance = F(weight)
            if self.router_weight != "example":
                importance = F(abs(to_left - to_right) / math.log(2.0))
            if self.router_weight == "mean_entropy":
                importance = F(abs(to_left - to_right) / math.log(2.0) / (left.n + right.n + weight))
        self.route.append((at, label, importance))
        self.router_learner.learn(features, label, importance, node.router, clock, clock_weight=weight, memo=self.memo)
        side = self.router_learner.predict(features, node.router)
        if self.rand is not None:
            if self.link == "glf1":
                side = F(2) / (F(1) + np.exp(-F(side))) - F(1)
            chance = min(max(F(0.5) * (F(1) + F(2) * side), F(0)), F(1))
            side = F(-1) if self.rand() > chance else F(1)
        return side

    def _entropy_with(self, node: Node, y: int, weight: float) -> float:
        """Return the entropy of a node's labels after label y is counted, computed from the entropy before."""
        count = next((count for label, count in node.labels if label == y), D(0))
        with np.errstate(all="ignore"):
            total = node.n + D(weight)
            share = node.n / total
            log_share = D(0) if share == 0 else np.log(share)
            h = node.entropy + _plogp(count, node.n)
            h = h * share
            h = h - log_share * ((node.n - count) / total)
            return h - _plogp(count + weight, total)

    def _insert(self, at: int, y: int, weight: float) -> None:
        """Count label y at a node, and move it in the list before the labels with smaller counts."""
        node = self.nodes[at]
        place = next((i for i, (label, _) in enumerate(node.labels) if label == y), None)
        if place is None:
            place = len(node.labels)
            node.labels.append([y, D(0)])
        node.entropy = self._entropy_with(node, y, weight)
        node.labels[place][1] += weight
        while place > 0 and node.labels[place - 1][1] < node.labels[place][1]:
            node.labels[place - 1], node.labels[place] = node.labels[place], node.labels[place - 1]
            place -= 1
        node.n += weight
        if node.n > 0:
            node.bound = self._bound(node)

    def _bound(self, node: Node) -> np.float32:
        """Return the empirical Bernstein lower bound on recall (section 3.1 of the paper) in float32, at least 0."""
        n = F(node.n)
        recall = F(sum((count for _, count in node.labels[: self.max_candidates]), D(0))) / n
        with np.errstate(invalid="ignore"):
            deviation = np.sqrt(recall * (F(1) - recall) / n)  # NaN if recall was rounded up above 1; then bound 0
        width = F(15) / (np.sqrt(F(18)) * n)
        bound = recall - np.sqrt(self.bern_hyper) * deviation - self.bern_hyper * width
        return bound if bound > 0 else F(0)

    # Algorithm 4

    def _train_scorers(self, features, y, weight, clock, at) -> None:
        candidates = self.candidates_at(at)
        if y not in candidates:
            return
        items = self.with_path(features, at)
        self.scorer_learner.learn(items, 1, weight, self.scorer(y), clock, memo=self.memo)
        for other in candidates:
            if other != y and self.scorer_learner.predict(items, self.scorer(other)) > -self.candidate_margin:
                self.scorer_learner.learn(items, -1, weight, self.scorer(other), clock, memo=self.memo)
