"""Purity, balance and objective of the nodes of a LOMTree, and the entropy of its leaves, over the examples of a file;
and the disagreements of a conditional probability tree.

    python -m scripts.paper.nodes MODEL DATA [--nodes 7]

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, section 2: of the examples
          that reach a node, beta = P(h > 0), alpha = sum_i pi_i min(P(h > 0 | i), P(h < 0 | i)), J = 2 sum_i pi_i
          |P(h > 0) - P(h > 0 | i)|; of the tree, G = sum of the leaves' shares times the entropy of their labels.

          Beygelzimer and others, "Conditional Probability Tree Estimation Analysis and Algorithms", UAI 2009, section
          4: a disagreement is a new label that goes to the side to which the regressor of a node gives less of the
          probability. There are at most as many as the sum of the depths of all leaves.

DATA is VW text with one label an example; of a model of --cpt, whose tree is built again, the file that it has learned
from. The nodes with the most examples are shown. `xclass --print_tree` shows J
of a node over the examples that it learned from. A random tree (--random_tree) can be measured as well.
"""

from __future__ import annotations

import argparse
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from scripts.lib.command_line import run, work_folder
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import table
from xclass import Learner, XclassWarning, load
from xclass.api.configuration import LearnerUse
from xclass.api.learner_core import LearnerCore
from xclass.reductions.cpt import label_tree


def paths(audit: Iterable[str]) -> list[list[tuple[str, bool]]]:
    """Return for each example the nodes on its way, each with whether it went right, from what --audit writes."""
    found: list[list[tuple[str, bool]]] = []
    score, root = "", None
    for line in audit:
        if not line.startswith("\t"):
            score = line.strip()
            continue
        constant = re.search(r"\tConstant:(\d+)", line)  # the index of a router's own constant tells routers apart
        if ":" not in score and not constant:
            raise BenchError("the routers of this model cannot be told apart, because they have no constant")
        node = score.split(":")[0] if ":" in score else constant[1]
        root = root or node
        if node == root:
            found.append([])
        found[-1].append((node, float(score.split(":")[-1].split()[0]) > 0))
    return found


def entropy(labels: Counter) -> float:
    """Return the entropy of labels in nats."""
    n = labels.total()
    return sum(count / n * math.log(n / count) for count in labels.values())


def split(labels: Iterable[tuple[str, bool]]) -> tuple[float, float, float]:
    """Return beta, alpha and J of a node from the label of each of its examples and whether it goes right."""
    both, right = Counter(label for label, _ in labels), Counter(label for label, goes_right in labels if goes_right)
    n, beta = both.total(), right.total() / both.total()
    share = {label: right[label] / count for label, count in both.items()}
    alpha = sum(count / n * min(share[label], 1 - share[label]) for label, count in both.items())
    return beta, alpha, 2 * sum(count / n * abs(beta - share[label]) for label, count in both.items())


def nodes_of(tree: label_tree.Tree) -> tuple[list[int], list[int]]:
    """Return the left child and the label of each node, by which trees are compared."""
    n = int(tree.size[label_tree.NODES])
    return tree.left[:n].tolist(), tree.label[:n].tolist()


def disagreements(model: Path, lines: list[str]) -> tuple[int, int]:
    """Return the number of disagreements in building a conditional probability tree, and the sum of its depths.

    One learner is always at the example with a new label, another has learned it and knows where the label went.
    """
    with load(str(model)) as learned:
        config, members = learned.core.config, learned.core.reduction.members
        values = config.values()
        if values.get("learn_names") or len(members) > 1 or values.get("cpt_arity") not in (None, 2):
            raise BenchError(f"{model} has several trees, nodes of several branches or names of classes")
        built = nodes_of(members[0].tree)
    first: dict[str, int] = {}
    for i, line in enumerate(lines):
        first.setdefault(line.split(None, 1)[0], i)
    found = 0
    cores = LearnerCore(config, LearnerUse()), LearnerCore(config, LearnerUse())
    with Learner.of(cores[0]) as before, Learner.of(cores[1]) as after:
        after.learn_many(lines[:1])
        tree = after.core.reduction.members[0].tree
        for last, i in pairwise(first.values()):
            before.learn_many(lines[last:i])
            after.learn_many(lines[last + 1 : i + 1])
            tree = after.core.reduction.members[0].tree
            leaf = label_tree.find(tree, int(lines[i].split(None, 1)[0]))
            old_label = tree.label[tree.left[tree.parent[leaf]]]  # of the leaf that was split
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", XclassWarning)  # the first examples have features that are new
                explained = before.explain(f"{old_label} |{lines[i].partition('|')[2]}")
            path = next(one.path for one in explained.classes if one.label == old_label)
            found += sum(turn.probability <= 0.5 if turn.side == "right" else turn.probability < 0.5 for turn in path)
        if nodes_of(tree) != built:
            raise BenchError(f"{model} has another tree than one that learns this file in order, in one pass")
        return found, int(label_tree.depths(tree).sum())


def main() -> None:
    """Print the figures of the tree and a table of its nodes."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("data", type=Path)
    options.add_argument("--nodes", type=int, default=7, help="of the table (default: 7)")
    given = options.parse_args()
    lines = [line for line in given.data.read_text(encoding="utf-8").splitlines() if line.strip()]
    labels = [line.split(None, 1)[0] for line in lines]
    with load(str(given.model)) as model:
        reduction = model.core.config.reduction.name
    if reduction == "cpt":
        number, most = disagreements(given.model, lines)
        print(f"disagreements {number}, labels {len(set(labels))}, sum of the depths of the leaves {most}")
        return
    words = ["-d", str(given.data.absolute()), "-t", "-i", str(given.model.absolute()), "--audit", "--quiet"]
    with work_folder(None) as work:
        measure([*TOOLS["xclass"], *words], work)
        ways = paths((work / "stdout").read_text(encoding="utf-8", errors="replace").splitlines())
    if len(ways) != len(labels):
        raise BenchError(f"{given.model} has a way for {len(ways)} of {len(labels)} examples; it must be one tree")
    leaves: dict[tuple[str, bool], Counter] = {}
    nodes: dict[str, list[tuple[str, bool]]] = {}
    for label, way in zip(labels, ways, strict=True):
        leaves.setdefault(way[-1], Counter())[label] += 1
        for node, right in way:
            nodes.setdefault(node, []).append((label, right))
    remaining = sum(leaf.total() / len(labels) * entropy(leaf) for leaf in leaves.values())
    print(f"entropy of the labels {entropy(Counter(labels)):.3f}, of the leaves' (G) {remaining:.3f} nats")
    print(f"routers an example {sum(map(len, ways)) / len(ways):.1f}, leaves reached {len(leaves)}\n")
    rows = []
    for node, seen in sorted(nodes.items(), key=lambda item: -len(item[1]))[: given.nodes]:
        beta, alpha, objective = split(seen)
        rows.append([node, f"{len(seen)}", f"{beta:.3f}", f"{alpha:.3f}", f"{objective:.3f}"])
    print(table(["node", "examples", "beta", "alpha", "J"], rows))


if __name__ == "__main__":
    run(main)
