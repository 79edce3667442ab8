"""Labels in plots cover neither each other nor a point."""

import itertools
import random

import pytest

from scripts.lib import plots


@pytest.mark.parametrize("seed", range(5))
def test_labels_do_not_overlap(seed):
    pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed: nothing is drawn")
    rng = random.Random(seed)
    points = [(10 ** rng.uniform(-1, 2), rng.choice((5, 20, 40)) + 8 * rng.random()) for _ in range(14)]
    _, area = plots.plotting().subplots(figsize=(6, 4.5), dpi=plots.PIXELS)
    area.semilogx(*zip(*points, strict=True), "o")
    area.margins(0.15)
    texts = plots.label_points(area, points, [f"method {i}" for i in range(14)])
    boxes = [text.get_window_extent() for text in texts]
    assert len(boxes) == 14
    assert not any(a.overlaps(b) for a, b in itertools.combinations(boxes, 2))
    places = area.transData.transform(points)
    assert not any(box.contains(x, y) for box in boxes for x, y in places)
    frame = area.get_window_extent()
    assert all(frame.contains(*corner) for box in boxes for corner in box.corners())
