"""Save the models of a run: at the end, of the best pass, after each pass, at checkpoints, and when interrupted.

The model file (`-f`) is only replaced by the model of a finished run or of a checkpoint. The model of the best pass is
written to a file beside it, which is renamed when the passes have ended.
"""

from __future__ import annotations

import os
import shlex
from typing import Any

from ..api import model_contents
from ..api.configuration import Config
from ..api.learner_core import LearnerCore
from ..api.model_contents import ModelContents
from ..api.progress import VW, Progress
from ..binary import gd
from ..errors import ModelError, UsageError
from ..model import model_file
from ..system import leftovers, output_file
from .passes import SavePoint
from .signals import NOTHING_LEARNED


class Saver:
    """Save the models of a run; `terminated_early` says whether --early_terminate has ended the passes."""

    def __init__(self, config: Config, model: LearnerCore, progress: Progress) -> None:
        self._learner = model
        self._examples_before = model.examples  # number of examples learned from in earlier runs
        self.progress = progress
        self.terminated_early = False
        self._config = config
        self._learning = not config.run.testonly
        self._model: str | None = config.run.final_regressor
        text = config.inspect.readable_model or config.inspect.invert_hash
        # the model of the best pass is written beside this file until the passes have ended
        self._best_target = self._model if self._model is not None and _is_file(self._model) else text
        if self._best_target is not None and not _is_file(self._best_target):
            self._best_target = os.path.join(leftovers.temporary_folder(), "xclass-model")
        self._best: leftovers.Unfinished | None = None
        self._best_counters: dict[str, Any] = {}
        self._counters: dict[str, Any] | None = None  # counters of the model of -i
        # path of a model of this run -> identity of the file when it was last saved, number of examples learned from
        self._saved: dict[str, tuple[object, int]] = {}
        for path in self._model_paths():
            self._record_saved(path, 0)
        for number in range(1, config.passes.passes + 1) if self._model and config.passes.save_per_pass else ():
            output_file.refuse_other_file(f"{self._model}.{number}", derived=True)
        for path in filter(None, (self._model, self._best_target)):
            for location in {os.path.abspath(path), os.path.realpath(path)}:
                leftovers.remove(location, derived=True)

    @property
    def learned(self) -> int:
        """Return the number of examples that this run has learned from."""
        return self._learner.examples - self._examples_before

    def resume(self, contents: ModelContents, preserve: bool) -> None:
        """Continue the counters of the model of -i."""
        self._counters = contents.counters
        vw_counters = (self._counters or {}).get(VW) if self._config.run.vw_exact else None
        if preserve and vw_counters is not None:
            self.progress.resume_vw(vw_counters)
            self._learner.clock -= self.progress.other_weight  # which `t` counts, too
        elif preserve:
            if self._counters is None:
                raise UsageError(
                    f"--preserve_performance_counters: {self._config.run.initial_regressor} has no counters; it was "
                    "saved with --predict_only_model"
                )
            self.progress.resume(self._counters, contents.examples)
        elif self._counters is not None and self._learning and not self._config.run.vw_exact:
            # a second Progress counts over all runs
            self._learner.progress = Progress(self._config.reduction.labels, None, self.progress.holdout is not None)
            self._learner.progress.resume(self._counters, contents.examples)

    def save(self, path: str, links: str = "follow", into: leftovers.Unfinished | None = None) -> None:
        """Save the current model; the parameters are those of `model_file.save`."""
        model_contents.save(path, self._contents, links=links, into=into)
        if path in self._saved and into is None:
            self._record_saved(path, self.learned)

    def _contents(self) -> ModelContents:
        """Return the contents to save; if nothing is learned, the counters are those of the model of -i."""
        contents = self._learner.contents()
        return contents if self._learning or contents.counters is None else contents._replace(counters=self._counters)

    def save_at(self, point: SavePoint) -> str:
        """Save the model at a save point; return the reason if it was not saved, or an empty string."""
        if point.refusal or point.path is None:
            return point.refusal
        if not self._learning:
            return "with -t the model does not change"
        if self._learner.reduction.unlearned:
            return "this reduction learns only at the end of the data"
        try:
            self.save(point.path, links="refuse" if point.by_data else "follow")
        except ModelError as error:  # not fatal, because the model is saved again at the end of the run
            return str(error)
        return ""

    def end_pass(self, better: bool, last: bool) -> bool:
        """Save the model of a pass if needed; return whether the run ends with this pass.

        `better` says whether the held-out loss of the pass is the lowest so far, `last` whether no other pass follows.
        """
        options, holdout = self._config.passes, self.progress.holdout
        if self._learning and self._config.learner.predict_only_model:
            for table in self._learner.reduction.tables:  # as VW does if it stores no state of --l1 and --l2
                gd.apply_regularisation(table)
        if self._model is not None and options.save_per_pass:
            self.save(f"{self._model}.{self.progress.passes}", links="replace")
        if holdout is None or not (holdout.has_loss or options.keep_last):  # passes cannot be compared
            return last
        if better and not last and self._learning and self._best_target is not None:
            if self._best is None:
                with model_file.explain_save_errors(self._best_target):
                    self._best = leftovers.Unfinished(self._best_target)
            self.save(self._best_target, into=self._best)
            self._best_counters = self.counters()
        self.terminated_early = holdout.misses >= options.early_terminate
        return last or self.terminated_early

    def saved_pass(self) -> int:
        """Return the number of the pass whose model is saved."""
        holdout = self.progress.holdout
        if holdout is None or self.progress.passes < 2:
            return self.progress.passes
        best = self.terminated_early or (holdout.has_loss and not self._config.passes.keep_last)
        return holdout.best_pass if best else self.progress.passes

    def finish(self) -> tuple[str | None, dict[str, Any]]:
        """Save the model of the run, and return its file and VW's counters of it.

        The file is None if the model is that of the learner now, and not of an earlier pass, since which it has learned
        more.
        """
        if self._best is None or self.saved_pass() == self.progress.passes:
            self.close()
            if self._model is not None:
                model_contents.save_with_fallback(self.save, self._model)
            return None, self.counters()
        if self._model is not None and _is_file(self._model):
            model_contents.save_with_fallback(self._move_best, self._model)
            return self._model, self._best_counters
        return self._best.path, self._best_counters

    def _move_best(self, path: str, links: str = "follow") -> None:
        """Move the model of the best pass to the path of -f, or copy it to another path."""
        assert self._best is not None
        with model_file.explain_save_errors(path):
            if path == self._model:
                output_file.check_claim(path)
                own = output_file.identity_of(self._best.file)
                self._best.take_place()
                output_file.renew_claim(path, own)
            else:
                self._best.copy(path, links)

    def save_interrupted(self) -> str:
        """Save the model of an interrupted run as MODEL.interrupted; return a message about it."""
        if not self._learning:
            return ""
        if self._model is None:
            return "no -f was given, so nothing was saved" if self.learned else ""
        if self.learned == 0 or self._learner.reduction.unlearned:
            return NOTHING_LEARNED
        try:
            path = output_file.interrupted(self._model)
            self.save(path, links="replace")
        except Exception as error:  # must not replace the error that ends the run
            return f"what was learned from {self.learned} examples is lost: {error}"
        place = f"what was learned from {self.learned} examples is in {path}; {self._model} {self._state()}"
        return place + self._advice(path, self.learned)

    def _state(self) -> str:
        """Return what the file of -f is."""
        assert self._model is not None
        count = self._saved[self._model][1]
        if count:
            return f"holds the checkpoint of {count} examples"
        return "is as it was before" if os.path.exists(self._model) else "was not written"

    def _advice(self, path: str, learned: int) -> str:
        """Return how a run with checkpoints goes on from the model at `path`, learned from this number of examples."""
        options = self._config
        if not options.passes.checkpoint or options.learner.predict_only_model or self.progress.passes:
            return ""
        words = ("xclass", "-i", path, "-f", str(self._model), "--checkpoint", str(options.passes.checkpoint))
        return f"; to go on, give the examples after the first {learned} to {shlex.join(words)}"

    def second_signal_message(self) -> str:
        """Return the message about saved models after a second signal, which may have come while a model was saved."""
        if not self._learning or self.learned == 0:
            return "nothing was learned"
        if self._model is None:
            return "no -f was given, so nothing was saved"
        for path in self._model_paths():
            if output_file.identity(path) != self._saved[path][0]:  # saving was complete but not yet noted
                return f"{path} holds what was learned from {self.learned} examples"
        for path in self._model_paths():
            count = self._saved[path][1]
            if count:
                rest = "" if count == self.learned else "; what was learned after that is lost"
                return f"{path} holds what was learned from {count} examples{rest}{self._advice(path, count)}"
        before = "is as it was before" if os.path.exists(self._model) else "was not written"
        return f"what was learned from {self.learned} examples is lost; {self._model} {before}"

    def _model_paths(self) -> tuple[str, ...]:
        """Return the paths where this run may save its model."""
        return () if self._model is None else (self._model, self._model + ".interrupted")

    def _record_saved(self, path: str, examples: int) -> None:
        """Note that the file at `path` holds the model learned from this number of examples."""
        self._saved[path] = output_file.identity(path), examples

    def counters(self) -> dict[str, Any]:
        """Return VW's counters of the run, which a readable model shows."""
        return self.progress.vw_counters(self._config.learner.initial_t + self._learner.clock)

    def close(self) -> None:
        """Remove the temporary file."""
        if self._best is not None:
            self._best.close()


def _is_file(path: str) -> bool:
    """Return whether a model saved at `path` is a regular file, which can be replaced by renaming another."""
    return os.path.isfile(path) or not os.path.exists(path)
