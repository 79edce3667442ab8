"""Which models a run saves, and when: at the end, of the best pass, after each pass, on the way, when interrupted.

The model itself (`-f`) is only ever replaced by that of a finished run or a checkpoint. The best pass's is kept in a
file beside it until it is known to be the best; then it is renamed.
"""

from __future__ import annotations

import os
from typing import Any

from ..api import model_contents
from ..api.configuration import Config
from ..api.learner import Learner
from ..api.model_contents import Contents
from ..api.progress import VW, VW_COUNTS, VW_SUMS, Progress
from ..binary import gd
from ..errors import ModelError, UsageError
from ..model import model_file
from ..reductions.core.base import Inspectable
from ..system import leftovers
from .passes import SavePoint


class Saver:
    """Saves what a learner has learned.

    Parameters
    ----------
    config : of the run
    model : the learner
    progress : of this run

    Attributes
    ----------
    early : whether passes ended before they ran out
    """

    def __init__(self, config: Config, model: Learner, progress: Progress) -> None:
        self._learner = model
        self._before = model.examples  # learned from in earlier runs
        self.progress = progress
        self.early = False
        self._config = config
        self._learning = not config.driver.testonly
        self._model: str | None = config.driver.final_regressor
        text = config.readable.readable_model or config.readable.invert_hash
        # a file whose neighbour the best pass's model may be until the end
        self._beside = self._model if self._model is not None and _is_file(self._model) else text
        if self._beside is not None and not _is_file(self._beside):
            self._beside = os.path.join(leftovers.temporary_folder(), "xclass-model")
        self._best: leftovers.Unfinished | None = None
        self._best_counters: dict[str, Any] = {}
        self._counters: dict[str, Any] | None = None  # of the model of -i
        # of the files this run may leave what was learned in: what each was when last noted, and from how many examples
        self._noted: dict[str, tuple[object, int]] = {}
        for path in self._places():
            self._note_saved(path, 0)
        for path in filter(None, (self._model, self._beside)):
            for place in {os.path.abspath(path), os.path.realpath(path)}:
                leftovers.remove(place, derived=True)

    @property
    def learned(self) -> int:
        """Examples this run has learned from."""
        return self._learner.examples - self._before

    def resume(self, contents: Contents, preserve: bool) -> None:
        """Go on counting from a model; with `preserve`, what is shown too."""
        self._counters = contents.counters
        kept = (self._counters or {}).get(VW) if self._config.driver.vw_exact else None
        if kept is not None:  # VW takes what had no label for labelled unless it goes on counting it
            other = float(kept["weighted_unlabeled_examples"]) if preserve else 0.0
            self._learner.clock = float(kept["t"]) - self._config.learner.initial_t - other
        if preserve and kept is not None:
            self.progress.resume_vw(kept)
        elif preserve:
            if self._counters is None:
                raise UsageError(
                    f"--preserve_performance_counters: {self._config.driver.initial_regressor} has no counters; it was "
                    "saved with --predict_only_model"
                )
            self.progress.resume(self._counters, contents.examples)
        elif self._counters is not None and self._learning and kept is None:  # counts all runs since the model was new
            self._learner.progress = Progress(self._config.reduction.labels, None, self.progress.holdout is not None)
            self._learner.progress.resume(self._counters, contents.examples)

    def save(self, path: str, links: str = "follow", into: leftovers.Unfinished | None = None) -> None:
        """Save what was learned so far; the parameters are those of `model_file.save`."""
        model_contents.save(path, self._contents, links=links, into=into)
        if path in self._noted and into is None:
            self._note_saved(path, self.learned)

    def _contents(self) -> Contents:
        """What is saved, with the counters from which a later run goes on; with --vw_exact also what VW would."""
        found = self._learner.contents()
        if found.counters is None:
            return found
        if not self._learning:
            return found._replace(counters=self._counters)
        if not self._config.driver.vw_exact:
            return found
        counters = self.counters()
        kept: dict[str, object] = {name: repr(float(counters[name])) for name in ("t", *VW_SUMS)}
        kept.update((name, int(counters[name])) for name in VW_COUNTS)
        return found._replace(counters={**found.counters, VW: kept})

    def save_at(self, point: SavePoint) -> str:
        """Save where the data or --checkpoint say so; return why not, where it was not done."""
        if point.refused or point.path is None:
            return point.refused
        if not self._learning:
            return "with -t the model does not change"
        if self._learner.unlearned:
            return "what was read is learned at the end of the data only"
        try:
            self.save(point.path, links="refuse" if point.by_data else "follow")
        except ModelError as error:  # there is still the end of the run
            return str(error)
        return ""

    def end_pass(self, better: bool, last: bool) -> bool:
        """Keep what is to be kept of a pass; return whether the run ends with it.

        `better`: than all before; `last`: no other follows.
        """
        plan, holdout = self._config.passes, self.progress.holdout
        if self._learning and self._config.learner.predict_only_model:
            reduction = self._learner.reduction
            tables = reduction.tables if isinstance(reduction, Inspectable) else ()
            for table in tables:  # as VW does where it keeps no state of --l1 and --l2
                gd.apply_regularisation(table)
        if self._model is not None and plan.save_per_pass:
            self.save(f"{self._model}.{self.progress.passes}", links="replace")
        if holdout is None or not (holdout.found or plan.keep_last):  # no pass is better than another
            return last
        if better and not last and self._learning and self._beside is not None:
            if self._best is None:
                with model_file.explained(self._beside):
                    self._best = leftovers.Unfinished(self._beside, kind="best")
            self.save(self._beside, into=self._best)
            self._best_counters = self.counters()
        self.early = holdout.misses >= plan.early_terminate
        return last or self.early

    def pass_kept(self) -> int:
        """Number of the pass whose model is saved."""
        holdout = self.progress.holdout
        if holdout is None or self.progress.passes < 2:
            return self.progress.passes
        best = self.early or (holdout.found and not self._config.passes.keep_last)
        return holdout.best_pass if best else self.progress.passes

    def finish(self) -> tuple[str | None, dict[str, Any]]:
        """Save the model; return a file with it where the learner has gone on since, and its counters."""
        if self._best is None or self.pass_kept() == self.progress.passes:
            self.close()
            if self._model is not None:
                model_contents.save_with_fallback(self.save, self._model)
            return None, self.counters()
        if self._model is not None and _is_file(self._model):
            model_contents.save_with_fallback(self._move_best, self._model)
            return self._model, self._best_counters
        return self._best.path, self._best_counters

    def _move_best(self, path: str, links: str = "follow") -> None:
        """Turn the best pass's model into the one at `path`."""
        assert self._best is not None
        with model_file.explained(path):
            if path == self._model:
                self._best.take_place()
            else:
                self._best.copy(path, links)

    def interrupted(self) -> str:
        """Save what was learned beside the model asked for; return what to tell the user."""
        if not self._learning:
            return ""
        if self._model is None:
            return "no -f was given, so nothing was saved" if self.learned else ""
        if self.learned == 0 or self._learner.unlearned:
            return "nothing was learned yet, so nothing was saved"
        path = self._model + ".interrupted"
        try:
            self.save(path, links="replace")
        except Exception as error:  # of whatever kind: the one that ends the run is raised
            return f"what was learned from {self.learned} examples is lost: {error}"
        before = "is as it was before" if os.path.exists(self._model) else "was not written"
        return f"what was learned from {self.learned} examples is in {path}; {self._model} {before}"

    def left(self) -> str:
        """What to tell the user of a run that ended at once, maybe while a model was being saved."""
        if not self._learning or self.learned == 0:
            return "nothing was learned"
        if self._model is None:
            return "no -f was given, so nothing was saved"
        for path in self._places():
            if _identity(path) != self._noted[path][0]:  # its saving had just been done
                return f"{path} holds what was learned from {self.learned} examples"
        for path in self._places():
            count = self._noted[path][1]
            if count:
                lost = "" if count == self.learned else "; what was learned after that is lost"
                return f"{path} holds what was learned from {count} examples{lost}"
        before = "is as it was before" if os.path.exists(self._model) else "was not written"
        return f"what was learned from {self.learned} examples is lost; {self._model} {before}"

    def _places(self) -> tuple[str, ...]:
        return () if self._model is None else (self._model, self._model + ".interrupted")

    def _note_saved(self, path: str, examples: int) -> None:
        self._noted[path] = _identity(path), examples

    def counters(self) -> dict[str, Any]:
        """VW's lines about a run in a readable model."""
        return self.progress.vw_counters(self._config.learner.initial_t + self._learner.clock)

    def close(self) -> None:
        """Leave nothing behind."""
        if self._best is not None:
            self._best.close()


def _identity(path: str) -> object:
    """Something that changes when the file there is replaced."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


def _is_file(path: str) -> bool:
    """Whether a model saved there is a file, so that another can take its place."""
    return os.path.isfile(path) or not os.path.exists(path)
