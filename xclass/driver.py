"""A run from the first byte to the model file: read, cross, learn or predict, count, write.

The reader (with the feature crosses), the stages of the learner and the output each have a thread; batches
pass them in order, so that nothing depends on how threads take turns.

Whatever ends the run early (a bad line, Ctrl-C, SIGTERM, a closed pipe), what was read before is learned, and a
model that was asked for is saved as `<model>.interrupted`; the model itself is only ever replaced by a finished run.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from . import jit, model_file
from .errors import DataError, UsageError, XclassError
from .options import option

PATH_GROUP = 0x88  # namespace group of the features a tree makes of an example's path


@dataclass(frozen=True)
class Options:
    """Running."""

    initial_regressor: str = option(
        "model to go on from, or to predict with", flags=("-i", "--initial_regressor"), metavar="FILE"
    )
    testonly: bool = option("predict only, learn nothing", flags=("-t", "--testonly"), kind=bool)
    final_regressor: str = option("file the model is saved to", flags=("-f", "--final_regressor"), metavar="FILE")
    predictions: str = option(
        "file for predictions, one line per example; `stdout` is standard output",
        flags=("-p", "--predictions"),
        metavar="FILE",
    )
    raw_predictions: str = option(
        "file for scores: of every class, of the candidates, or of the learner alone",
        flags=("-r", "--raw_predictions"),
        metavar="FILE",
    )
    progress: str = option(
        "when the progress table gets a row: every N examples (1000), or at N times as many (2.0)",
        flags=("-P", "--progress"),
        default="2.0",
        metavar="N",
    )
    quiet: bool = option("no banner, progress table, summary or warnings", kind=bool)
    random_seed: int = option(
        "seed of everything drawn at random", kind=int, default=0, minimum=0, metavar="SEED", stored=True
    )
    vw_exact: bool = option("VW's defaults and behaviour, for predictions that agree with VW's to the digit", kind=bool)


_loaded: dict[str, model_file.Model] = {}  # by path: options are asked for first, arrays later


def stored_options(path: str) -> dict:
    """The options a model was trained with."""
    _loaded[path] = model_file.load(path)
    return _loaded[path].options


def run(config) -> int:
    """Carry out a run and return the exit status."""
    return _Run(config).go()


class _Run:
    def __init__(self, config):
        self.config = config
        self.options = config.driver
        self.learning = not self.options.testonly
        self.examples = 0  # learned from, in earlier runs too
        self.clock = 0.0  # weight of labelled examples so far
        self.learned = 0  # examples this run has learned from
        self.stopped: signal.Signals | None = None
        self.bar = None

    # start

    def go(self) -> int:
        began = time.perf_counter()
        name = self.config.reduction.name
        jit.activate()
        if jit.is_first_run(name) and not self.options.quiet:
            what = "" if name == "scalar" else f" of --{name}"
            self._tell(f"xclass: compiling the kernels{what} for this machine; the first run only")
        from . import interactions, predictions, reader, stats

        self.learner = self.config.reduction.build(self.config, self.options.testonly)
        try:
            if self.options.initial_regressor is not None:
                self._restore(_loaded.pop(self.options.initial_regressor))
            o = self.options
            self.progress = stats.Progress(self.config.reduction.labels, None if o.quiet else self._pace(stats))
            lowest, highest, because = self.config.reduction.allowed(self.config) or (None, None, "")
            self.reader = reader.Reader(
                self.config.reader,
                self.config.parser,
                self.config.learner.bits,
                self.config.reduction.labels == "multiclass",
                lowest,
                highest,
                because,
            )
            self.crosser = interactions.Crosser(self.config.interactions)
            self._cross_path(self.crosser.with_group(PATH_GROUP))
            self._banner(stats)
            self.writers = self._open_writers(predictions)
            error = self._loop()
            for writer in self.writers.values():
                try:
                    writer.close()
                except (DataError, BrokenPipeError) as failed:
                    error = error or failed
            status = self._finish(stats, error, time.perf_counter() - began)
            jit.note_compiled(name)
            return status
        finally:
            if self.bar is not None:
                self.bar.close()
            self.learner.close()

    def _cross_path(self, named: list[bytes]) -> None:
        """Hand interactions with the path features to the learner that makes them."""
        if not named:
            return
        if not hasattr(self.learner, "cross_path"):
            raise UsageError("namespace \\x88 is the path of --recall_tree, which was not chosen")
        self.learner.cross_path(named)

    def _restore(self, model: model_file.Model) -> None:
        self.learner.restore(model.arrays, model.facts["learner"])
        self.examples = model.facts["examples"]
        self.clock = model.facts["clock"]

    def _pace(self, stats):
        pace = stats.pace(self.options.progress)
        if pace.note:
            self._warn(pace.note)
        return pace

    def _open_writers(self, predictions) -> dict:
        kind = self.config.reduction.labels
        oaa = self.config.oaa
        if self.config.reduction.name == "oaa" and (oaa.scores or oaa.probabilities):
            kind = "scores"
        if self.config.reduction.name == "cpt" and self.config.cpt.top_k is not None:
            kind = "scores"
        writers = {}
        if self.options.predictions is not None:
            writers["predictions"] = predictions.Writer(self.options.predictions, kind)
        if self.options.raw_predictions is not None:
            raw = "simple" if self.config.reduction.labels == "simple" else "raw_scores"
            writers["raw"] = predictions.Writer(self.options.raw_predictions, raw)
        return writers

    # work

    def _works(self) -> Iterator:
        """Batches as work, with the clock of each example."""
        from .reductions.contract import Work

        last = self.clock
        batches = self.reader
        for read in batches:
            for batch in self.crosser.cross(read) if self.crosser.active else (read,):
                weight = np.where(np.isnan(batch.label), 0.0, batch.weight.astype(np.float64))
                clock = np.add.accumulate(np.concatenate(([last], weight)))
                last = clock[-1]
                yield Work(batch, self.learning, clock[1:])

    def _loop(self) -> BaseException | None:
        """Take every batch through the learner; return what ended the run early, if anything did."""
        from .pipeline import Pipeline

        pipeline = Pipeline(self._works(), self.learner.stages)
        with _Signals(self, pipeline):
            try:
                for work in pipeline:
                    self._count(work)
            except (DataError, BrokenPipeError) as error:
                pipeline.stop()
                for work in pipeline:  # learned already, or about to be: let it come to rest
                    if work.learn:
                        self._note_learned(work)
                return error
        return None

    def _note_learned(self, work) -> None:
        learned = int(np.count_nonzero(~np.isnan(work.batch.label) & (work.batch.weight > 0)))
        self.learned += learned
        self.examples += learned
        self.clock = float(work.clock[-1])

    def _count(self, work) -> None:
        batch = work.batch
        if work.learn:
            self._note_learned(work)
        while self.reader.notes:
            self._warn(self.reader.notes.pop(0))
        for note in work.notes:
            self._warn(note)
        rows = self.progress.update(
            batch.label, batch.weight, np.diff(batch.start), work.prediction, work.loss, work.log_loss, work.shown
        )
        for row in rows:
            self._tell(row)
        if self.bar is not None:
            self._move_bar()
        for name, writer in self.writers.items():
            if writer.kind == "simple":
                writer.write(batch, values=work.raw if name == "raw" else work.prediction)
            elif writer.kind == "multiclass":
                writer.write(batch, values=work.prediction)
            elif name == "predictions" or "scores" not in self.writers:
                writer.write(batch, scores=work.scores, labels=work.score_labels, start=work.score_start)

    # end

    def _finish(self, stats, error, seconds: float) -> int:
        o = self.options
        if self.bar is not None:
            self.bar.close()
            self.bar = None
        more = self.learner.summary() if hasattr(self.learner, "summary") else []
        if not o.quiet and not isinstance(error, BrokenPipeError):
            limits = None
            if self.config.reduction.labels == "simple":
                limits = tuple(float(v) for v in self.learner.table.range)
            lines = self.progress.summary(self.config.learner.loss_function, self.config.learner.quantile_tau, limits)
            for line in [*lines, *more, *self._own_summary(seconds)]:
                self._tell(line)
        for line in self.reader.report():
            self._warn(line)
        if error is None and self.stopped is None:
            if self.learning and self.learned == 0:
                raise DataError(
                    f"{self.reader.name}: not one example was learned from; a labelled line is `label | features`"
                )
            if o.final_regressor is not None:
                self._save(o.final_regressor)
            return 0
        kept = self._keep_interrupted()
        if isinstance(error, BrokenPipeError):
            if kept and self.options.final_regressor is not None:
                self._tell(f"xclass: nobody reads the predictions any more; {kept}")
            raise error
        if error is not None:
            raise DataError(f"{error}" + (f"\nxclass: {kept}" if kept else ""))
        self._tell(f"xclass: stopped by {self.stopped.name}" + (f"; {kept}" if kept else ""))
        return 128 + self.stopped

    def _keep_interrupted(self) -> str:
        """Save what was learned beside the model asked for; return what to tell the user."""
        if not self.learning:
            return ""
        if self.options.final_regressor is None:
            return "no -f was given, so nothing was saved" if self.learned else ""
        if self.learned == 0:
            return "nothing was learned yet, so nothing was saved"
        path = self.options.final_regressor + ".interrupted"
        try:
            self._save(path)
        except XclassError as error:
            return f"what was learned from {self.learned} examples is lost: {error}"
        before = "is as it was before" if os.path.exists(self.options.final_regressor) else "was not written"
        return f"what was learned from {self.learned} examples is in {path}; {self.options.final_regressor} {before}"

    def _save(self, path: str) -> None:
        facts = {"learner": self.learner.facts(), "examples": self.examples, "clock": self.clock}
        model_file.save(path, options=self.config.stored(), facts=facts, arrays=self.learner.arrays())

    # talk

    def _banner(self, stats) -> None:
        o = self.options
        if o.quiet:
            return
        c = self.config
        labels = "SIMPLE" if c.reduction.labels == "simple" else "MULTICLASS"
        output = {"SIMPLE": "SCALAR", "MULTICLASS": "MULTICLASS"}[labels]
        enabled = c.reduction.enabled
        if c.reduction.name == "oaa":
            if c.oaa.scores or c.oaa.probabilities:
                enabled += "-prob" if c.oaa.probabilities else "-scores"
                output = "SCALARS"
            elif o.raw_predictions is not None:
                enabled += "-raw"
        lines = stats.banner(
            quadratic=c.interactions.quadratic,
            cubic=c.interactions.cubic,
            interactions=c.interactions.interactions,
            testing=o.testonly,
            model=o.final_regressor,
            predictions=o.predictions,
            raw_predictions=o.raw_predictions,
            learner=self.learner.banner(),
            data=self.reader.name,
            bits=c.learner.bits,
            learning_rate=c.learner.learning_rate,
            initial_t=c.learner.initial_t,
            power_t=c.learner.power_t,
            enabled=enabled,
            labels=labels,
            output=output,
        )
        for note in self.crosser.notes:
            self._tell(note)
        for line in [*lines, *stats.HEADER]:
            self._tell(line)
        if sys.stderr.isatty():
            self._start_bar()

    def _start_bar(self) -> None:
        from tqdm import tqdm

        self.bar = tqdm(
            total=self.reader.size, unit="B", unit_scale=True, unit_divisor=1000, leave=False, file=sys.stderr,
            mininterval=0.2, dynamic_ncols=True,
        )  # fmt: skip

    def _move_bar(self) -> None:
        position = self.reader.position()
        elapsed = max(self.bar.format_dict["elapsed"], 1e-3)
        self.bar.set_postfix_str(
            f"{self.progress.examples / elapsed:,.0f} examples/s, {peak_memory() / 2**20:,.0f} MB memory", refresh=False
        )
        self.bar.update(position - self.bar.n)

    def _own_summary(self, seconds: float) -> list[str]:
        return [
            f"seconds = {seconds:.2f}, examples per second = {self.progress.examples / max(seconds, 1e-9):.0f}, "
            f"peak memory = {peak_memory() / 2**20:.0f} MB"
        ]

    def _tell(self, line: str) -> None:
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr)

    def _warn(self, note: str) -> None:
        if not self.options.quiet:
            self._tell(f"warning: {note}")


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class _Signals:
    """While it lasts, the first Ctrl-C or SIGTERM ends reading; a second one ends the process."""

    def __init__(self, run: _Run, pipeline):
        self.run, self.pipeline = run, pipeline
        self.before: dict = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._stop)

    def _stop(self, number, frame) -> None:
        self.run.stopped = signal.Signals(number)
        self._restore()
        self.pipeline.stop()

    def _restore(self) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def __exit__(self, *_) -> None:
        self._restore()


def cores() -> int:
    """Processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
