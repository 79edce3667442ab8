"""Models as text, with names or without, and what predictions are made of: `--readable_model` and so on.

Source    VW 9.11's formats, which its tools read:

    --readable_model    a header, `:1` and counters, then `slot:w G N`; with --predict_only_model `:0` and `slot:w`
    --invert_hash       the same with `name:` or `name[j]:` in front, j the sub-problem
    --audit             for every prediction of a sub-problem a line with it and the tag, and a line of
                        `TAB name:slot:value:w@G`, the features that matter most first

Cost      names cost some microseconds per feature met for the first time; --audit and, under the default layout of a
          tree, --invert_hash go example by example, some hundred microseconds each.
Differs   from VW: names can be found for a model saved earlier (`-i model -t -d data --invert_hash names.txt`).
          Slots are VW's under `--layout vw` and our own otherwise, numbered through all tables of the learner. --audit
          shows what is asked to predict an example, and for a tree the label's scorer; VW shows the calls of a tree's
          learning too. `Checksum:` has no number.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import __version__
from ...api.configuration import Config
from ...array_types import Float
from ...binary import gd
from ...data import interactions
from ...kernels.constants import ZERO
from ...options.declare import OptionGroup, option, options_of
from ...reductions.core.base import Inspectable
from ...reductions.core.contract import BatchTask, WeightLookup
from ...system import terminal
from . import feature_names

PIECE = 1 << 16  # slots looked at at a time


@dataclass(frozen=True)
class Options:
    readable_model: str = option("write the model as text to this file", metavar="FILE")
    invert_hash: str = option(
        "write the model as text with the names of the features in this run's data; use it with -i and -t for a model"
        " saved earlier",
        metavar="FILE",
    )
    audit: bool = option(
        "write the features and weights behind every prediction to standard output",
        flags=("-a", "--audit"),
        kind=bool,
    )


class Inspector:
    """Looks over the learner's shoulder while a run goes on, and writes the model as text at its end.

    Attributes
    ----------
    one_by_one : whether the learner must be given one example at a time
    """

    def __init__(self, config: Config, model: Inspectable) -> None:
        self.options: Options = config.readable
        self._config = config
        self.show(model)
        slots = [int(table.mask) + 1 for table in self._tables]
        self._first = np.cumsum([0, *slots])  # slot of each table in the numbering through all
        self._named = self.options.invert_hash is not None
        self._by_row = self._named and model.rows_are_exclusive
        self.one_by_one = self.options.audit or (self._named and not self._by_row)
        self._names: dict[int, bytes] = {}  # by row of features, or by slot
        if self._by_row:
            self._width = int(self._tables[0].width)
            self._met = np.zeros(slots[0] // self._width, bool)
        if self.options.audit or self._named:
            self._namer = feature_names.Namer(config.parser, config.features, config.interactions, config.learner.bits)

    def show(self, model: Inspectable) -> None:
        """Look at another learner from now on."""
        self._model = model
        self._tables = model.tables

    def let_go(self) -> None:
        """Hold the learner no more, until `show` brings another."""
        del self._model, self._tables

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        """The learner's stages with ours around them."""
        if self.one_by_one:

            def together(task: BatchTask) -> None:
                self._before(task)
                for stage in stages:
                    stage(task)
                if self._named and not self._by_row and task.nameless is None:
                    self._name_slots(task)

            return [together]
        return [self._name_rows, *stages] if self._named else stages

    # names

    def _name_rows(self, task: BatchTask) -> None:
        """Name the rows of features met for the first time, looking at no more examples than it takes."""
        if task.nameless is not None:
            return
        batch = task.batch
        rows = self._rows_of(batch.index)
        fresh = np.flatnonzero(~self._met[rows])
        examples = np.unique(np.searchsorted(batch.start, fresh, side="right") - 1)
        if self._namer.wild:
            examples = np.arange(batch.n)
        for i in examples.tolist():
            self._keep(self._namer.of(batch, i))
        self._met[rows] = True

    def _rows_of(self, index: np.ndarray) -> np.ndarray:
        table = self._tables[0]
        rows: np.ndarray = ((self._model.places(0, index) & table.mask) // table.width).astype(np.int64)
        return rows

    def _keep(self, found: list[feature_names.Named]) -> None:
        rows = self._rows_of(np.array([one.hash for one in found], np.uint32))
        for row, one in zip(rows.tolist(), found, strict=True):
            self._names.setdefault(row, one.text)

    def _name_slots(self, task: BatchTask) -> None:
        found = self._last or self._namer.of(task.batch, 0)
        for lookup in [*self._last_lookups, *self._model.weight_lookups(task.batch)]:
            for slot, one in zip(self._slots(lookup, found).tolist(), found, strict=True):
                self._names.setdefault(slot, one.text + _bracket(lookup.number))
            for place, _ in lookup.extra:
                slot = (place + lookup.sub) & int(self._tables[lookup.table].mask)
                self._names.setdefault(slot + int(self._first[lookup.table]), _bracket(lookup.number))

    def _slots(self, lookup: WeightLookup, found: list[feature_names.Named]) -> np.ndarray:
        table = self._tables[lookup.table]
        places = self._model.places(lookup.table, np.array([one.hash for one in found], np.uint32))
        slots: np.ndarray = ((places + np.uint64(lookup.sub)) & table.mask).astype(np.int64) + self._first[lookup.table]
        return slots

    # audit

    def _before(self, task: BatchTask) -> None:
        self._last = self._namer.of(task.batch, 0) if task.nameless is None else feature_names.nameless(task.nameless)
        self._last_lookups = self._model.weight_lookups(task.batch)
        if self._by_row and task.nameless is None:
            self._keep(self._last)
        if not self.options.audit:
            return
        out = terminal.output_of(sys.stdout.buffer)
        for lookup in self._last_lookups:
            for line in self._audited(task, lookup):
                out.write(line + b"\n")
        out.flush()

    def _audited(self, task: BatchTask, lookup: WeightLookup) -> Iterator[bytes]:
        batch, found = task.batch, self._last
        table = self._tables[lookup.table]
        base = int(self._first[lookup.table])
        extra = [(place + lookup.sub) & int(table.mask) for place, _ in lookup.extra]
        more = [np.float32(value) for _, value in lookup.extra]
        count = int(batch.start[1])
        place = np.empty(count + len(extra), np.uint64)
        place[:count] = self._model.places(lookup.table, batch.index)
        place[count:] = [place for place, _ in lookup.extra]
        x = np.array([*batch.value, *more], np.float32)
        driver = self._config.driver
        # VW meets the path before the crosses, which are the last features
        crossed = int(interactions.crossed(batch)[0]) if driver.vw_exact else 0
        turn = _turned(count, crossed, len(extra))
        score = gd.score(table, place[turn], x[turn], len(place), np.uint64(lookup.sub), batch.initial[0])
        limits = table.range.copy()
        labelled = not np.isnan(batch.label[0])
        if task.learn and labelled and self._model.rule.widen and self._config.reduction.labels == "simple":
            gd.widen(limits, np.float32(batch.label[0]))  # the learner alone widens before it predicts
        tag = batch.text[batch.tag_start[0] : batch.tag_end[0]].tobytes()
        yield _decimal(gd.clip(score, limits)).encode() + (b" " + tag if tag else b"")

        columns = gd.columns(table)
        turn = _turned(len(found), crossed, len(extra))  # of all features, those of --ignore_linear too
        slots = np.concatenate([self._slots(lookup, found) - base, np.array(extra, np.int64)])[turn]
        values, texts = [one.value for one in found] + more, [one.text for one in found] + [b""] * len(extra)
        values, texts = [values[j] for j in turn], [texts[j] for j in turn]
        tests_as_vw = driver.vw_exact and driver.testonly  # with regularised weights and nothing to learn with
        w, g = columns["w"][slots], columns["g"][slots]
        shown = w
        if len(table.shrunk):
            gravity, contraction = np.float32(table.shrunk[0]), np.float32(table.shrunk[1])
            shown = np.sign(w) * np.maximum(np.abs(w) - gravity, ZERO) * contraction
        if driver.vw_exact:  # VW takes what is no number for a weight below those that --l1 leaves
            shown = np.where(np.isnan(shown), ZERO, shown)
        with np.errstate(all="ignore"):
            mattering = shown if tests_as_vw else w
            order = np.argsort(-np.abs(mattering * np.array(values, np.float32)), kind="stable")
        line = []
        with_state = self._model.rule.adaptive and not tests_as_vw
        for j in order.tolist():
            state = f"@{float(g[j]):g}" if with_state else ""
            line.append(
                b"\t%s:%d:" % (texts[j], int(slots[j]) + base)
                + f"{float(values[j]):g}:{float(shown[j]) + 0.0:g}{state}".encode()
            )
        yield b"".join(line)

    # models as text

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write the files that were asked for.

        Parameters
        ----------
        counters : VW's lines about the run
        stored : the options a model keeps
        """
        for path, named in ((self.options.readable_model, False), (self.options.invert_hash, True)):
            if path is not None:
                with open(path, "wb") as file:
                    for line in self._header(counters, stored):
                        file.write(line.encode("utf-8", "surrogateescape") + b"\n")
                    file.writelines(self._lines(named))

    def _header(self, counters: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
        config, model = self._config, self._model
        table = self._tables[0]
        low, high = (_shown(end) for end in table.range)
        yield from ("Version 9.11.9", f"Id xclass {__version__}", f"Min label:{low}", f"Max label:{high}")
        yield from (f"bits:{config.learner.bits}", "lda:0")
        for what, sizes in (("ngram", config.features.ngram), ("skip", config.features.skips)):
            yield f"{len(sizes)} {what}:" + "".join(f"{size} " for size in sizes)
        yield "options:" + _command(config, stored)
        yield "Checksum: "
        yield from model.readable_lines()
        if config.learner.predict_only_model:
            yield ":0"
            return
        yield ":1"
        yield f"initial_t {_shown(config.learner.initial_t)}"
        yield f"norm normalizer {_shown(table.sums[0, 0])}"
        shrunk = table.shrunk if len(table.shrunk) else (0.0, 1.0)
        for name, value in (
            *counters.items(),
            ("l1_state", shrunk[0]),
            ("l2_state", shrunk[1]),
        ):
            value = {"min_label": table.range[0], "max_label": table.range[1], "total_weight": table.sums[0, 1]}.get(
                name, value
            )
            yield f"{name} {_shown(value)}"

    def _lines(self, named: bool) -> Iterator[bytes]:
        rule, whole = self._model.rule, not self._config.learner.predict_only_model
        if named and self._by_row:
            added = {
                (place + lookup.sub) & int(self._tables[0].mask): lookup.number
                for lookup in self._model.extra_features()
                for place, _ in lookup.extra
            }
        for base, table in zip(self._first.tolist(), self._tables, strict=False):
            if not whole:
                gd.apply_regularisation(table)
            columns = gd.columns(table)
            kept = ["w"] + ["g"] * (whole and rule.adaptive) + ["n"] * (whole and rule.normalized)
            for low in range(0, int(table.mask) + 1, PIECE):
                piece = [columns[c][low : low + PIECE] for c in kept]
                for j in np.flatnonzero(np.any([one != 0 for one in piece], axis=0)).tolist():
                    slot = base + low + j
                    front = b"%d:" % slot
                    if named:
                        if self._by_row:
                            row, sub = divmod(slot, self._width)
                            name = self._names.get(row)
                            if name is not None:
                                name += _bracket(sub)
                            elif slot in added:
                                name = _bracket(added[slot])
                        else:
                            name = self._names.get(slot)
                        if name is not None:
                            front = name + b":" + front
                        elif not whole:
                            front = b":" + front
                    yield front + " ".join(f"{float(one[j]):g}" for one in piece).encode() + b"\n"


def _turned(count: int, crossed: int, extra: int) -> np.ndarray:
    """The order in which `extra` features that follow `count` others come before the last `crossed` of these."""
    turn = np.arange(count + extra)
    plain = count - crossed
    return np.concatenate([turn[:plain], turn[count:], turn[plain:count]])


VW_KEEPS = (
    "adaptive", "binary", "cubic", "ect", "error", "hash", "hash_seed", "ignore", "ignore_linear", "indexing",
    "interactions", "invariant", "keep", "learning_rate", "link", "max_candidates", "max_depth", "named_labels",
    "node_only", "noconstant", "normalized", "oaa", "power_t", "quadratic", "randomized_routing", "recall_tree", "sgd",
)  # fmt: skip


def _command(config: Config, stored: dict[str, Any]) -> str:
    """The options VW keeps in a model, as on a command line, each with a space before it."""
    words: list[str] = []
    chosen = getattr(config, config.reduction.name)
    rooms: tuple[OptionGroup, ...] = (config.parser, config.features, config.interactions, config.learner, chosen)
    for room in rooms:
        for name, one in options_of(type(room)).items():
            value = stored.get(name)
            if (
                name not in VW_KEEPS
                or value in (None, [], False)
                or (name not in config.given and value == one.default)
            ):
                continue
            if name in ("learning_rate", "power_t", "hash", "hash_seed", "link") and name not in config.given:
                continue
            words += (
                [f" --{name}"] if value is True else [f" --{name} {v}" for v in (value if one.repeated else [value])]
            )
    return "".join(sorted(words))


def _shown(value: object) -> str:
    """A number as C++ streams print it."""
    return format(float(value), "g") if isinstance(value, (float, np.floating)) else str(value)


def _decimal(value: Float) -> str:
    """A prediction as VW prints it."""
    value = float(value)
    return f"{value:.6f}" if value % 1 else f"{value:.0f}".replace("-0", "0") if value == 0 else f"{value:.0f}"


def _bracket(number: int) -> bytes:
    return b"[%d]" % number if number else b""
