"""Purity, balance and objective of the nodes of a LOMTree, and the entropy of its leaves, over the examples of a file.

    python -m scripts.paper.nodes MODEL DATA [--nodes 7]

Source    Choromanska, Langford, "Logarithmic Time Online Multiclass Prediction", NIPS 2015, section 2: of the examples
          that reach a node, beta = P(h > 0), alpha = sum_i pi_i min(P(h > 0 | i), P(h < 0 | i)), J = 2 sum_i pi_i
          |P(h > 0) - P(h > 0 | i)|; of the tree, G = sum of the leaves' shares times the entropy of their labels.

DATA is VW text with one label an example. The nodes with the most examples are shown. `xclass --print_tree` shows J
of a node over the examples that it learned from. A random tree (--random_tree) can be measured as well.
"""

from __future__ import annotations

import argparse
import math
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from scripts.lib.command_line import run, work_folder
from scripts.lib.processes import TOOLS, BenchError, measure
from scripts.lib.results import table


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


def main() -> None:
    """Print the figures of the tree and a table of its nodes."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("data", type=Path)
    options.add_argument("--nodes", type=int, default=7, help="of the table (default: 7)")
    given = options.parse_args()
    labels = [line.split(None, 1)[0] for line in given.data.read_text(encoding="utf-8").splitlines() if line.strip()]
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
