"""Define workers of averages and predictions that read small batches, and die when a test wants it to."""

import os
import signal
from pathlib import Path

from xclass.cluster import part_learner, predicting
from xclass.text import reader


def die_if_wanted(folder: Path, name: str) -> None:
    """End this process if there is a file `die-NAME` in a folder, which is removed."""
    marker = folder / f"die-{name}"
    if marker.exists():
        marker.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


class MortalPartLearner(part_learner.PartLearner):
    """A worker that dies once for the part for which there is a file `die-PART`, in the middle of a round."""

    def __init__(self, number, folder, config):
        reader.FIRST_BLOCK = reader.LARGEST_BLOCK = 3000
        self.folder = Path(folder)
        super().__init__(number, folder, config)

    def learn(self, state, work, *others):
        learned = super().learn(state, work, *others)
        if work.cursor.position or work.passes_ended:
            die_if_wanted(self.folder, str(work.part.number))
        return learned


class MortalPredictor(predicting.PartPredictor):
    """A worker that dies once for the part for which there is a file `die-PART`."""

    def predict(self, model, part):
        predicted = super().predict(model, part)
        die_if_wanted(Path.cwd(), str(part.number))
        return predicted
