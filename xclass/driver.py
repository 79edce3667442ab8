"""A run from the first byte to the model file: read, choose and cross features, learn or predict, count, write.

The reader (with the feature crosses), the stages of the learner and the output each have a thread; batches
pass them in order, so that nothing depends on how threads take turns.

Whatever ends the run early (a bad line, Ctrl-C, SIGTERM, a closed pipe), what was read before is learned, and a
model that was asked for is saved as `<model>.interrupted`; the model itself is only ever replaced by a finished run.
"""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from . import jit, model_file, rows
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
    no_stdin: bool = option("without a data file, read nothing", kind=bool)
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
        self.pipeline = None
        self.best: str | None = None  # file with the model of the best pass
        self.early = False  # passes ended before they ran out

    # start

    def go(self) -> int:
        began = time.perf_counter()
        name = self.config.reduction.name
        if self.options.final_regressor is not None:
            model_file.check_place(self.options.final_regressor)
        # every room with kernels comes before activate, or its kernels stay plain Python
        from . import cache, features, interactions, passes, predictions, readable, reader, shuffle, stats, usage

        self.usage = usage
        jit.activate()
        if jit.is_first_run(name) and not self.options.quiet:
            what = "" if name == "scalar" else f" of --{name}"
            self._tell(f"xclass: compiling the kernels{what} for this machine; the first run only")
        self.learner = self.config.reduction.build(self.config, self.options.testonly)
        try:
            if self.options.initial_regressor is not None:
                self._restore(_loaded.pop(self.options.initial_regressor))
            o = self.options
            plan = self.config.passes
            holdout = passes.Holdout(plan)
            self.progress = stats.Progress(
                self.config.reduction.labels,
                None if o.quiet else self._pace(stats),
                holdout.on,
                self.config.parser.label_names(),
            )
            lowest, highest, because = self.config.reduction.allowed(self.config) or (None, None, "")
            multiclass = self.config.reduction.labels == "multiclass"
            bits = self.config.learner.bits
            nothing = io.BytesIO() if o.no_stdin and not self.config.reader.data else None
            text = reader.Reader(
                self.config.reader, self.config.parser, bits, multiclass, lowest, highest, because, stream=nothing
            )
            self.inspector = None
            shown = [one for one in ("readable_model", "invert_hash", "audit") if one in self.config.given]
            if shown and not hasattr(self.learner, "tables"):
                raise UsageError(f"--{shown[0]} shows weight tables, which --{name} does not have")
            if shown:
                self.inspector = readable.Inspector(self.config, self.learner)
            key = cache.make_key(self.config.parser, bits, multiclass, lowest, highest, plan.examples)
            turns = plan.passes + (self._preview_size == 0)
            self.reader = cache.Source(
                text, self.config.cache, key, not self.config.parser.noconstant, turns, self.inspector is not None
            )
            size = self.config.shuffle.shuffle
            shuffler = None if size is None else shuffle.Shuffler(size, o.random_seed)
            self.stream = passes.Stream(self.reader, plan, holdout, shuffler, o.final_regressor)
            self.features = features.Features(self.config.features, constant=not self.config.parser.noconstant)
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
            if hasattr(self, "reader"):
                self.reader.close()
            if self.best is not None:
                with contextlib.suppress(OSError):
                    os.unlink(self.best)

    def _cross_path(self, named: list[bytes]) -> None:
        """Hand interactions with the path features to the learner that makes them."""
        if not named:
            return
        if not hasattr(self.learner, "cross_path"):
            raise UsageError("namespace \\x88 is the path of --recall_tree, which was not chosen")
        lost = [group for one in named for group in one if self.features.unlinear[group]]
        if lost:
            raise UsageError(
                f"--ignore_linear leaves nothing of namespace {chr(lost[0])!r} to cross with the path, "
                "namespace \\x88: drop one of them"
            )
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
            names = self.config.parser.label_names()
            writers["predictions"] = predictions.Writer(self.options.predictions, kind, names)
        if self.options.raw_predictions is not None:
            raw = "simple" if self.config.reduction.labels == "simple" else "raw_scores"
            writers["raw"] = predictions.Writer(self.options.raw_predictions, raw)
        return writers

    # work

    @property
    def _preview_size(self) -> int | None:
        """How many examples the learner wants to see before it learns, 0 for all."""
        return getattr(self.learner, "preview_size", None) if self.learning else None

    def _works(self, stream) -> Iterator:
        """One pass: batches as work, with the clock of each example, and the cuts between them."""
        from .passes import Cut
        from .reductions.contract import Work

        last = self.clock
        for item in stream:
            if isinstance(item, Cut):
                yield item
                continue
            read, held = item
            low = 0
            for batch, features in self._prepared(read):
                mine = held[low : low + batch.n]
                low += batch.n
                idle = np.isnan(batch.label) | mine
                weight = np.where(idle, 0.0, batch.weight.astype(np.float64))
                clock = np.add.accumulate(np.concatenate(([last], weight)))
                last = clock[-1]
                yield Work(batch, self.learning, clock[1:], held=mine if mine.any() else None, features=features)

    def _prepared(self, read) -> Iterator:
        """The batches a batch of text turns into, and how many features each example counts."""
        for kept in self.features.apply(read):
            for whole in self.crosser.cross(kept) if self.crosser.active else (kept,):
                features = np.diff(whole.start)
                batch = self.features.linear(whole)
                if self.inspector is not None and self.inspector.one_by_one:
                    for i in range(batch.n):
                        yield rows.cut(batch, i, i + 1), features[i : i + 1]
                else:
                    yield batch, features

    def _loop(self) -> BaseException | None:
        """Take every batch of every pass through the learner; return what ended the run early, if anything did."""
        with _Signals(self):
            try:
                if self._preview_size == 0:
                    self._preview_all()
                for _ in range(0 if self.stopped else self.config.passes.passes):
                    self._go_through()
                    if self.stopped or self._end_pass():
                        break
            except (DataError, BrokenPipeError) as error:
                self.pipeline.stop()
                for work in self.pipeline:  # learned already, or about to be: let it come to rest
                    if work.learn:
                        self._note_learned(work)
                return error
        return None

    def _preview_all(self) -> None:
        """Show the learner all of the data, in a pass of its own."""
        from .interactions import Crosser
        from .pipeline import Pipeline

        self.pipeline = Pipeline(self._works(self.stream.plain()), [self.learner.preview])
        for _ in self.pipeline:
            if self.bar is not None:
                self._move_bar()
        if not self.stopped:
            self.learner.end_preview()
        self.crosser = Crosser(self.config.interactions)  # the passes find every group for the first time

    def _go_through(self) -> None:
        """One pass. At a cut the pipeline runs empty, so that the learner is where the cut says."""
        from .passes import Part, previewed
        from .pipeline import Pipeline

        works = self._works(self.stream)
        if self._preview_size is not None:
            works = previewed(works, self.learner)
        stages = self.learner.stages
        if self.inspector is not None:
            stages = self.inspector.stages(stages)
        while True:
            part = Part(works)
            self.pipeline = Pipeline(part, stages)
            if self.stopped:  # in between
                self.pipeline.stop()
            for work in self.pipeline:
                self._count(work)
            if self.stopped or part.cut is None:
                return
            self._save_at(part.cut)

    def _end_pass(self) -> bool:
        """Keep what is to be kept of a pass; return whether it was the last one."""
        plan, model = self.config.passes, self.options.final_regressor
        better = self.progress.end_pass()
        if self.learning:
            self.learner.end_pass()
        number = self.progress.passes
        if model is not None and plan.save_per_pass:
            self._save(f"{model}.{number}")
        holdout = self.progress.holdout
        if holdout is None or number == plan.passes:
            return False
        if not holdout.found and not plan.keep_last:  # none is better than another
            return False
        if better and model is not None and self.learning and _is_file(model):
            if self.best is None:
                place = os.path.realpath(model)
                self.best = os.path.join(os.path.dirname(place), f".{os.path.basename(place)}.{os.getpid()}.best")
            self._save(self.best)
        self.early = holdout.misses >= plan.early_terminate
        return self.early

    def _save_at(self, cut) -> None:
        refused = cut.refused
        path = cut.path or self.options.final_regressor
        if not refused and not self.learning:
            refused = "with -t the model does not change"
        if not refused and cut.path is not None and not model_file.may_replace(path):
            refused = "there is another file of that name, which is no model"
        if refused:
            self._warn(f"{cut.words}: not done: {refused}")
            return
        if not self.options.quiet:
            self._tell(cut.words)
        self._save(path)

    def _note_learned(self, work) -> None:
        learned = int(np.count_nonzero(work.learns() & ~np.isnan(work.batch.label) & (work.batch.weight > 0)))
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
            batch.label, batch.weight, work.features, work.prediction, work.loss, work.log_loss, work.shown, work.held
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
            lines = self.progress.summary(
                self.config.learner.loss_function,
                self.config.learner.quantile_tau,
                limits,
                not self.config.scalar.dont_output_best_constant,
            )
            for line in [*lines, *more, *self._own_summary(seconds)]:
                self._tell(line)
        for line in self.reader.report():
            self._warn(line)
        if error is None and self.stopped is None:
            if self.learning and self.learned == 0 and not o.no_stdin:
                raise DataError(
                    f"{self.reader.name}: not one example was learned from; a labelled line is `label | features`"
                )
            if o.final_regressor is not None:
                if self._keeps_best() and self.best is not None:
                    os.replace(self.best, os.path.realpath(o.final_regressor))
                    self.best = None
                else:
                    self._save(o.final_regressor)
            if self.inspector is not None:
                self.inspector.write(self._counters())
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

    def _keeps_best(self) -> bool:
        """Whether the model saved is that of the best pass, which may be the last."""
        holdout = self.progress.holdout
        if holdout is None or self.progress.passes < 2:
            return False
        return self.early or (holdout.found and not self.config.passes.keep_last)

    def _counters(self) -> dict:
        """VW's lines about a run in a readable model."""
        p = self.progress
        return {
            "t": float(self.config.learner.initial_t + self.clock + p.other_weight),
            "sum_loss": float(p.loss_sum),
            "sum_loss_since_last_dump": 0.0,
            "dump_interval": 1.0,
            "min_label": 0.0,
            "max_label": 0.0,
            "weighted_labeled_examples": float(p.labelled_weight),
            "weighted_labels": float(p.label_sum),
            "weighted_unlabeled_examples": float(p.other_weight),
            "example_number": p.examples,
            "total_features": p.features,
            "total_weight": 0.0,
            "sd::oec.weighted_labeled_examples": 0.0,
            "current_pass": 1,
        }

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
        clock = 0.0 if self.config.learner.predict_only_model else self.clock
        facts = {"learner": self.learner.facts(), "examples": self.examples, "clock": clock}
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
        if c.reduction.name == "scalar" and c.scalar.binary:
            enabled = enabled.replace("count_label", "binary, count_label")
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
            source=self.reader.banner(),
            decay=1.0 if c.passes.passes > 1 else None,
            namespaces=self.features.banner,
            testing=o.testonly,
            l1=c.learner.l1,
            l2=c.learner.l2,
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
        for note in self.features.notes:
            self._warn(note)
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
        holdout = self.progress.holdout
        lines = []
        if holdout is not None and self.progress.passes > 1 and holdout.found:
            saved = holdout.best_pass if self._keeps_best() else self.progress.passes
            kept = f"; the model saved is that of pass {saved}" if self.options.final_regressor is not None else ""
            lines.append(f"best pass = {holdout.best_pass}{kept}")
        elif holdout is not None and not self.stopped and self.progress.passes:
            lines.append("no labelled example was held out, so no pass is the best one; see --holdout_period")
        return [
            *lines,
            *([self.usage.line(self.learner.tables, self.learner.rule)] if hasattr(self.learner, "tables") else []),
            f"seconds = {seconds:.2f}, examples per second = {self.progress.examples / max(seconds, 1e-9):.0f}, "
            f"peak memory = {peak_memory() / 2**20:.0f} MB",
        ]

    def _tell(self, line: str) -> None:
        if self.bar is not None:
            self.bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr)

    def _warn(self, note: str) -> None:
        if not self.options.quiet:
            self._tell(f"warning: {note}")


def _is_file(path: str) -> bool:
    """Whether a model saved there is a file, so that another can take its place."""
    return os.path.isfile(path) or not os.path.exists(path)


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


class _Signals:
    """While it lasts, the first Ctrl-C or SIGTERM ends reading; a second one ends the process."""

    def __init__(self, run: _Run):
        self.run = run
        self.before: dict = {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._stop)

    def _stop(self, number, frame) -> None:
        self.run.stopped = signal.Signals(number)
        self._restore()
        if self.run.pipeline is not None:
            self.run.pipeline.stop()

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
