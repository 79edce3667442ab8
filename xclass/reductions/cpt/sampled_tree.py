"""Build balanced label trees that place similar labels together, by clustering the first examples.

Source    The order of the labels is that of `clusters.two_means`; the tree halves this order.
"""

from __future__ import annotations

from ..clusters import two_means
from . import label_tree


class Sample(two_means.Sample):
    """Collect the first examples and build trees that place labels with similar examples together."""

    def trees(self, seeds: list[int], share: two_means.Share, capacity: int) -> list[label_tree.Tree]:
        """Return a tree of least depth for each seed of the clustering, or no trees if there are no labels."""
        return [label_tree.balanced_tree(order, capacity) for order in self.orders(seeds, share) if len(order)]
