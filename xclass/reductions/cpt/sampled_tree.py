"""Trees that have alike labels together, made of the first examples."""

from __future__ import annotations

from ..clusters import two_means
from . import label_tree


class Sample(two_means.Sample):
    """Examples that are looked at, and the trees made of what their labels have in common."""

    def trees(self, seeds: list[int], share: two_means.Share, room: int) -> list[label_tree.Tree]:
        """Return for each seed the tree of least depth that has alike labels together; none without labels.

        Parameters
        ----------
        share : `share(job, items)` does `job(*item)` for all items, on as many threads as it likes
        room : labels to make room for
        """
        return [label_tree.balanced_tree(order, room) for order in self.orders(seeds, share) if len(order)]
