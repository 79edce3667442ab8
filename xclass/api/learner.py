"""Learners for Python programs: `Learner`, `load` and `read_vw`."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from ..binary import gd
from ..data import class_names, interactions, namespaces
from ..data.batch import CONSTANT, CONSTANT_GROUP, Batch
from ..errors import DataError, UsageError, XclassWarning
from ..kernels import jit
from ..options.declare import Option, allowed_values, from_stored, long_flag, option, options_of
from ..options.resolve import SCALAR, Config, resolve
from ..reductions import presets
from ..reductions.core import probabilities
from ..reductions.core.base import Previews
from ..reductions.core.contract import Work
from ..reductions.core.spec import LearnerSpec, Wanted
from ..reductions.registry import REDUCTIONS
from ..text import parser, reader
from . import model_contents
from .preparation import Preparation
from .progress import Progress

CLASSLESS = {"cpt", "multiclass", "hsm", "softmax_tree"}  # reductions that need no number of classes
OF_A_RUN = {*options_of(probabilities.Options), "save_tree"}  # what a run writes or tells at its end
BITS = 32  # of the hashes of `read_vw`, of which a learner takes as many as its table has


def seed_option() -> Any:
    """Declare `random_seed`."""
    return option(
        "seed of everything drawn at random",
        kind=int,
        default=0,
        minimum=0,
        maximum=2**64 - 1,
        metavar="SEED",
        stored=True,
    )


def exact_option() -> Any:
    """Declare `vw_exact`."""
    return option("VW's defaults and behaviour, for predictions that agree with VW's to the digit", kind=bool)


@dataclass(frozen=True)
class Options:
    """Options of a learner that belong to no other module."""

    random_seed: int = seed_option()
    vw_exact: bool = exact_option()


class Outcome(NamedTuple):
    """What learning from n examples, or predicting them, came to."""

    prediction: np.ndarray  # float64[n], made before the example was learned from: a class, or a number
    loss: np.ndarray  # float64[n], times weight; 0 where there is no label
    warnings: tuple[str, ...]  # about these examples; each is also a Python warning


@dataclass
class _State:
    """What a learner has seen in its life."""

    examples: int = 0
    clock: float = 0.0
    progress: Progress = field(default_factory=lambda: Progress("multiclass", None))


class Learner:
    """A learner of classes, or of numbers, that learns example by example.

    Parameters
    ----------
    reduction : a reduction of `xclass --help` without its dashes, such as "recall_tree", "oaa", "cpt" or "multiclass";
        "scalar" learns numbers
    classes : how many classes there are; `cpt` and `multiclass` need not be told
    **options : options by the names of their fields, which are those of the command line without dashes and with
        underscores (`learning_rate=0.1`, `bits=24`); an option that may be repeated takes a list

    Raises
    ------
    UsageError
        where an option is not known, has a value that is not allowed, or does not go with another.

    Examples
    --------
    >>> import xclass
    >>> model = xclass.Learner("oaa", classes=2, bits=10)
    >>> _ = model.learn(["1 | sunny warm", "2 | rainy cold"] * 10)
    >>> model.predict(["| warm", "| cold rainy"]).tolist()
    [1, 2]
    >>> model.close()
    """

    def __init__(self, reduction: str = "multiclass", classes: int | None = None, **options: Any) -> None:
        self._start(_configured(reduction, classes, options), None)

    def _start(self, config: Config, contents: model_contents.Contents | None) -> None:
        jit.activate(quick=False)
        self._config = config
        spec = _spec_of(config, contents is not None)
        if contents is not None:
            config.reduction.check_arrays(spec, contents.arrays)
        with _keywords():
            self._preparation = Preparation(config, spec.vw_exact)
            self._learner = config.reduction.build(spec)
        try:
            self._begin(spec, contents)
        except BaseException:
            self._learner.close()
            raise

    def _begin(self, spec: LearnerSpec, contents: model_contents.Contents | None) -> None:
        config = self._config
        self._names = class_names.Names(spec.names, spec.learn_names)
        self._learner.names = self._names.names
        lowest, highest, because = config.reduction.allowed(spec) or (None, None, "")
        self._parser = parser.Parser(
            config.parser, config.learner.bits, config.reduction.labels == "multiclass", lowest, highest, because,
            self._names,
        )  # fmt: skip
        self._lowest, self._highest = lowest, highest
        self._state = _State(progress=Progress(config.reduction.labels, None))
        if contents is not None:
            self._learner.restore(contents.arrays, contents.learner)
            self._state.examples, self._state.clock = contents.examples, contents.clock
            if contents.counters is not None:
                self._state.progress.resume(contents.counters, contents.examples)
        if isinstance(self._learner, Previews) and self._learner.preview_size is not None:
            raise UsageError(
                f"cpt_tree {spec.options.cpt_tree!r} makes a tree of the first examples before it learns from "
                "any, which only the command does: learn with it, and load its model"
            )

    # learning and predicting

    def learn(self, batch: Any, labels: Any = None, weights: Any = None) -> Outcome:
        """Predict examples, then learn from them, one after the other.

        Parameters
        ----------
        batch : a `Batch`; lines of VW text, as one string or several; or anything with `indptr`, `indices` and `data`
            as SciPy's CSR matrices have them, whose column numbers are taken for hashes of features
        labels, weights : [n] of a matrix; labels of text are in the text

        Raises
        ------
        DataError
            where a line is malformed or a label is none of the classes; nothing of the batch is learned then.
        """
        outcomes = [self._learned(work) for work in self._works(self._batch(batch, labels, weights, True), learn=True)]
        return _joined(outcomes)

    def predict(self, batch: Any) -> np.ndarray:
        """Predict examples: int64[n] classes, float64[n] numbers of "scalar", or an array of names where labels are."""
        found = [
            self._passed(work).prediction for work in self._works(self._batch(batch, None, None, False), learn=False)
        ]
        prediction = np.concatenate([np.empty(0), *found])
        if self._config.reduction.labels != "multiclass":
            return prediction
        return self._shown(prediction.astype(np.int64), "")

    def top_k(self, batch: Any, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the k most probable classes of each example and how probable they are, the best first.

        Parameters
        ----------
        batch : as in `learn`
        k : how many

        Returns
        -------
        labels : int64[n, k], 0 where there are fewer; of names, an array of objects, None where there are fewer
        probabilities : float64[n, k]

        Raises
        ------
        UsageError
            where the reduction gives no probabilities.
        """
        given = {"top_k": _value("k", options_of(probabilities.Options)["top_k"], k)}
        n, found = self._listed(batch, probabilities.Options(**given))
        labels, p = np.zeros((n, k), np.int64), np.zeros((n, k))
        first = 0
        for one in found:
            row = np.repeat(np.arange(len(one.start) - 1), np.diff(one.start))
            real = one.labels > 0  # 0 stands for all other classes
            row = row[real]
            column = np.arange(len(row)) - np.searchsorted(row, row)
            labels[first + row, column], p[first + row, column] = one.labels[real], one.scores[real]
            first += len(one.start) - 1
        return self._shown(labels, None), p

    def probabilities(self, batch: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return how probable every class is.

        Returns
        -------
        classes : int64[m] labels in rising order, or m names
        probabilities : float64[n, m]

        Raises
        ------
        UsageError
            where the reduction gives no probabilities.
        """
        n, found = self._listed(batch, probabilities.Options(probabilities=True))
        labels = np.unique(np.concatenate([np.zeros(0, np.int64), *(one.labels for one in found)]))
        labels = labels[labels > 0]
        p = np.zeros((n, len(labels)))
        first = 0
        for one in found:
            row = np.repeat(np.arange(len(one.start) - 1), np.diff(one.start))
            real = one.labels > 0
            p[first + row[real], np.searchsorted(labels, one.labels[real])] = one.scores[real]
            first += len(one.start) - 1
        return self._shown(labels, None), p

    def _listed(self, batch: Any, asked: probabilities.Options) -> tuple[int, list[probabilities.Listing]]:
        """The number of examples, and what is listed of them in pieces."""
        if not self._config.reduction.probabilities:
            giving = ", ".join(record.name for record in REDUCTIONS if record.probabilities)
            raise UsageError(f"{self._config.reduction.name} gives no probabilities; choose one of {giving}")
        given = self._batch(batch, None, None, False)
        self._learner.want(Wanted(answers=asked))
        try:
            works = list(self._works(given, learn=False))
        finally:
            self._learner.want(Wanted(answers=self._config.answers))
        for work in works:
            self._passed(work)
        return given.n, [work.listing for work in works if work.listing is not None]

    def _shown(self, labels: np.ndarray, other: object) -> np.ndarray:
        """Labels as the user knows them: numbers, or names in place of them with `other` for 0."""
        if self._names.shown is None:
            return labels
        names = np.array([other, *self._names.names], object)
        return names[np.where(labels < len(names), labels, 0)]

    def end_pass(self) -> None:
        """Come to the end of the data: rates decay, and learners that learn from all of the data at once do so."""
        self._learner.end_pass()

    # looking at it

    @property
    def classes(self) -> list[str] | int | None:
        """The names of the classes met, their number where labels are numbers, None of "scalar"."""
        if self._config.reduction.labels != "multiclass":
            return None
        if self._names.shown is not None:
            return self._names.names[: self._names.met]
        return _spec_of(self._config, False).classes

    @property
    def options(self) -> dict[str, Any]:
        """The value of every option, by the name of its field, defaults included."""
        return self._config.values()

    @property
    def average_loss(self) -> float | None:
        """The mean loss of all examples so far, each predicted before it was learned from; None without any."""
        return self._state.progress.average_loss

    # models

    def save(self, path: str) -> None:
        """Write a model that `load` and the command read; the file is replaced only when all of it is written.

        Raises
        ------
        ModelError
            where it cannot be written.
        """
        whole = not self._config.learner.predict_only_model
        names = ",".join(self._names.names[: self._names.met]) if self._names.shown is not None else ""
        model_contents.save(
            path, self._config.stored(), names, self._learner, self._state.examples,
            self._state.clock if whole else 0.0, self._state.progress.counters() if whole else None,
        )  # fmt: skip

    def close(self) -> None:
        """End the threads that the learner has started; it cannot be used any more."""
        self._learner.close()

    def __enter__(self) -> Learner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        name = self._config.reduction.name
        classes = _spec_of(self._config, False).classes
        return f"xclass.Learner({name!r}" + (f", classes={classes})" if classes is not None else ")")

    # inside

    def _works(self, batch: Batch, learn: bool) -> Iterator[Work]:
        held = np.zeros(batch.n, bool)
        for work in self._preparation.works(self._learner, batch, held, learn, self._state.clock):
            for stage in self._learner.stages:
                stage(work)
            yield work

    def _learned(self, work: Work) -> Outcome:
        batch = work.batch
        if self._names.growing:
            self._names.meet(batch.label)
        self._state.examples += int(np.count_nonzero(work.learned()))
        self._state.clock = float(work.clock[-1]) if batch.n else self._state.clock
        self._state.progress.update(
            batch.label, batch.weight, interactions.counted(work), work.prediction, work.loss, work.log_loss,
            work.shown, work.held,
        )  # fmt: skip
        return self._passed(work)

    def _passed(self, work: Work) -> Outcome:
        notes = [*self._parser.notes, *work.notes]
        self._parser.notes.clear()
        for note in notes:
            warnings.warn(note, XclassWarning, stacklevel=4)
        loss = np.zeros(work.batch.n) if work.loss is None else work.loss
        return Outcome(work.prediction, loss, tuple(notes))

    def _batch(self, given: Any, labels: Any, weights: Any, learn: bool) -> Batch:
        if isinstance(given, Batch):
            self._check_constant(given)
            batch = given._replace(index=_masked(given, self._config.learner.bits))
        elif all(hasattr(given, name) for name in ("indptr", "indices", "data")):
            batch = _from_rows(given, not self._config.parser.noconstant)
            batch = batch._replace(index=_masked(batch, self._config.learner.bits))
        else:
            if labels is not None or weights is not None:
                raise UsageError("labels and weights of VW text are in the text; give them with a matrix only")
            return self._parsed(given, learn)
        if labels is not None:
            batch = batch._replace(label=_column("labels", labels, batch.n, np.float64))
        if weights is not None:
            batch = batch._replace(weight=_column("weights", weights, batch.n, np.float32))
        self._check_labels(batch.label)
        return batch

    def _parsed(self, text: str | bytes | Iterable[str], learn: bool) -> Batch:
        if not isinstance(text, (str, bytes)):
            text = "\n".join(line.rstrip("\n") for line in text)
        if isinstance(text, str):
            text = text.encode("utf-8", "surrogateescape")
        if not text.endswith(b"\n"):
            text += b"\n"
        room = np.zeros(len(text) + parser.PADDING, np.uint8)
        room[: len(text)] = np.frombuffer(text, np.uint8)
        growing, self._names.growing = self._names.growing, self._names.growing and learn  # predicting learns no name
        try:
            batch, error, _ = self._parser.parse(room, len(text), "batch")
        finally:
            self._names.growing = growing
        if error is not None:
            raise error
        return batch

    def _check_constant(self, batch: Batch) -> None:
        """Refuse a batch that was read with a constant feature and is to be learned without one, or the other way."""
        wanted = not self._config.parser.noconstant
        if batch.n and bool(_constants(batch)[0]) != wanted:
            raise UsageError(
                f"the examples of the batch have {'no' if wanted else 'a'} constant feature, and this learner takes "
                f"{'one' if wanted else 'none'}: read them by read_vw(..., noconstant={not wanted})"
            )

    def _check_labels(self, label: np.ndarray) -> None:
        if self._highest is None:
            return
        wrong = ~np.isnan(label) & ~((label >= self._lowest) & (label <= self._highest) & (label == np.floor(label)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise DataError(f"labels[{at}] is {label[at]:g}; allowed are {self._lowest}..{self._highest}")


def load(path: str) -> Learner:
    """Return the learner that a model file holds; it can predict and go on learning.

    Raises
    ------
    ModelError
        where the file is damaged, or no model.
    """
    contents = model_contents.load(path)
    config = resolve(
        {}, contents.options, _rooms(), REDUCTIONS, model=path, presets=presets.PRESETS,
        settle=partial(_settled, loaded=True),
    )  # fmt: skip
    found = Learner.__new__(Learner)
    with model_contents.naming(path), model_contents.naming_options(path):
        found._start(config, contents)
    return found


def read_vw(*paths: str, labels: str = "classes", noconstant: bool = False) -> Iterator[Batch]:
    """Read files of VW text, plain or compressed, batch by batch.

    Parameters
    ----------
    labels : "classes" for whole numbers, "numbers" for what "scalar" learns. Where labels are names, give the lines to
        the learner, which numbers them as they come.
    noconstant : leave the constant feature out, for learners with the option of that name

    Raises
    ------
    DataError
        where a file cannot be read or a line is malformed.
    """
    if labels not in ("classes", "numbers"):
        raise UsageError(f"labels: {labels!r} is none of 'classes', 'numbers'")
    jit.activate(quick=False)
    found = reader.Reader(reader.Options(data=paths), parser.Options(noconstant=noconstant), BITS, labels == "classes")
    yield from found


def _rooms() -> dict[str, type]:
    """The options of a learner by the modules that declare them, in the order of the command's."""
    found = {
        "multiclass": presets.Options,
        "driver": Options,
        "parser": parser.Options,
        "features": namespaces.Options,
        "interactions": interactions.Options,
        "learner": gd.Options,
        "answers": probabilities.Options,
    }
    found.update({record.name: record.options for record in REDUCTIONS})
    return found


def _configured(reduction: str, classes: int | None, options: Mapping[str, Any]) -> Config:
    """Check what was asked for as the command does."""
    rooms = _rooms()
    declared: dict[str, Option] = {}
    for room in rooms.values():
        declared.update(options_of(room))
    known = [record.name for record in REDUCTIONS] + ["multiclass", "hsm"]
    if reduction not in known:
        raise UsageError(f"{reduction!r} is no reduction{_hint(reduction, known)}; there are {', '.join(known)}")
    given: dict[str, Any] = {}
    for name, value in options.items():
        if name in OF_A_RUN:
            raise UsageError(
                f"{name} belongs to a run of the command; top_k() and probabilities() give what it asks for"
            )
        if name not in declared or name in known:
            raise UsageError(f"there is no option {name!r}{_hint(name, set(declared) - set(known))}")
        given[name] = _value(name, declared[name], value)
    if reduction != SCALAR:
        if classes is None and reduction not in CLASSLESS:
            raise UsageError(f"classes: {reduction!r} has to be told how many classes there are")
        given[reduction] = _value("classes", declared[reduction], classes or 0)
    elif classes is not None:
        raise UsageError("classes: 'scalar' learns numbers; choose another reduction for classes")
    with _keywords():
        return resolve(given, None, rooms, REDUCTIONS, presets=presets.PRESETS, settle=partial(_settled, loaded=False))


def _value(name: str, one: Option, value: Any) -> Any:
    """Return an option's value, after the checks that the command makes."""
    if isinstance(value, np.generic):
        value = value.item()
    if one.repeated:
        value = [value] if isinstance(value, str) else list(value)
    try:
        return from_stored(one, value)
    except ValueError:
        raise UsageError(f"{name}: {value!r} is not {allowed_values(one)}") from None


def _hint(word: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _spec_of(config: Config, loaded: bool) -> LearnerSpec:
    """What the chosen reduction is built from."""
    return LearnerSpec(
        name=config.reduction.name,
        options=getattr(config, config.reduction.name),
        binary=config.learner,
        wanted=Wanted(answers=config.answers),
        given=config.given,
        seed=config.driver.random_seed,
        names=tuple(config.parser.label_names()),
        learn_names=config.parser.learn_names,
        constant=not config.parser.noconstant,
        any_label=config.parser.on_bad_line == "vw",
        vw_exact=config.driver.vw_exact,
        loaded=loaded,
    )


def _settled(config: Config, loaded: bool) -> Config:
    spec = _spec_of(config, loaded)
    config.reduction.check(spec)
    return config.settled(config.reduction.settle(spec))


class _keywords:
    """Name keywords in messages that name the flags of the command."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if not isinstance(error, UsageError):
            return
        names = {}
        for room in _rooms().values():
            for name, one in options_of(room).items():
                names.update({flag: name for flag in (*one.flags, long_flag(one))})
        message = re.sub(r"(?<![\w-])--?[A-Za-z]\w*", lambda match: names.get(match[0], match[0]), str(error))
        raise UsageError(message) from None


def _constants(batch: Batch) -> np.ndarray:
    """Whether each example ends with the constant feature: bool[n]."""
    last = np.maximum(batch.start[1:] - 1, 0)
    return (np.diff(batch.start) > 0) & (batch.index[last] == CONSTANT) if len(batch.index) else np.zeros(batch.n, bool)


def _masked(batch: Batch, bits: int) -> np.ndarray:
    """The indices of a batch as the parser makes them for a table: hashes of so many bits, the constant as it is."""
    if bits >= BITS:
        return batch.index
    index = batch.index & np.uint32((1 << bits) - 1)
    index[batch.start[1:][_constants(batch)] - 1] = CONSTANT
    return index


def _from_rows(rows: Any, constant: bool) -> Batch:
    """A batch of the rows of a matrix, all features in one namespace without a name."""
    start = np.asarray(rows.indptr, np.int64)
    index, value = np.asarray(rows.indices), np.asarray(rows.data, np.float32)
    if start.ndim != 1 or not len(start) or start[0] != 0 or (np.diff(start) < 0).any() or start[-1] > len(index):
        raise DataError("indptr: has to rise from 0 to at most the length of indices")
    if len(index) != len(value):
        raise DataError(f"indices and data have {len(index)} and {len(value)} entries; they have to be equally long")
    if index.size and (index.min() < 0 or index.max() >= 1 << 32):
        raise DataError(f"indices: holds {index.min()}..{index.max()}; allowed are 0..{2**32 - 1}")
    n, end = len(start) - 1, int(start[-1])
    index, value = index[:end].astype(np.uint32), value[:end]
    group_first = np.arange(n + 1, dtype=np.int64) * (2 if constant else 1)
    group_name = np.full(group_first[-1], ord(" "), np.uint8)
    group_start = np.empty(group_first[-1] + 1, np.int64)
    if constant:
        at = start[1:]
        index, value = np.insert(index, at, np.uint32(CONSTANT)), np.insert(value, at, np.float32(1))
        start = start + np.arange(n + 1)
        group_name[1::2] = CONSTANT_GROUP
        group_start[:-1:2], group_start[1:-1:2] = start[:-1], start[1:] - 1
    else:
        group_start[:-1] = start[:-1]
    group_start[-1] = start[-1]
    none = np.zeros(n, np.int64)
    return Batch(
        start, index, value, np.full(n, np.nan), np.ones(n, np.float32), np.zeros(n, np.float32), group_first,
        group_name, group_start, none, none, np.arange(1, n + 1), np.zeros(0, np.uint8),
    )  # fmt: skip


def _column(name: str, values: Any, n: int, kind: Any) -> np.ndarray:
    found = np.asarray(values)
    if found.shape != (n,) or found.dtype.kind not in "iufb":
        raise DataError(f"{name}: {found.dtype}{list(found.shape)}; allowed are {n} numbers, one for each example")
    return np.ascontiguousarray(found, kind)


def _joined(outcomes: Sequence[Outcome]) -> Outcome:
    return Outcome(
        np.concatenate([np.empty(0), *(one.prediction for one in outcomes)]),
        np.concatenate([np.empty(0), *(one.loss for one in outcomes)]),
        tuple(note for one in outcomes for note in one.warnings),
    )
