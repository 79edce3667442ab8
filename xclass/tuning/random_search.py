"""Search at random: every option of every setting is drawn, and all settings get the same data.

Source    The recall tree paper tries 59 random settings on the first tenth of the data: with a probability of 95 %, one
          of them is among the best 5 %.
Differs   from the paper, which compares the errors of progressive validation: settings of one pass and of several can
          only be compared on examples that are held out, here the last tenth of the share.
"""

from __future__ import annotations

import math
import random

from .evaluator import Evaluator
from .results import Span
from .settings import Setting, Space

TAIL = 10  # the last examples of the share, one in so many, are held out


def run(space: Space, evaluator: Evaluator, n: int, seed: int, count: int, share: float) -> Setting:
    """Compute the results of random settings, and return the one with the smallest loss, the default if there is none.

    Setting i is the same for any number of settings.
    """
    used = max(2, math.ceil(n * share))
    tail = max(1, used // TAIL)
    span = Span(((0, used - tail),), (used - tail, used))
    settings = [space.drawn(random.Random(f"{seed} {number}")) for number in range(1, count + 1)]
    settings = list(dict.fromkeys(settings))
    best, lowest = space.default, math.inf
    for first in range(0, len(settings), evaluator.workers):
        group = settings[first : first + evaluator.workers]
        for setting, result in zip(group, evaluator.results([(one, span) for one in group]), strict=True):
            if result is not None and result.loss < lowest:
                best, lowest = setting, result.loss
        evaluator.keep_only([])
        if not evaluator.time_left:
            break
    return best
