"""Write weight tables as text, with or without names of features, and the weights of the features of each prediction.

Source    VW 9.11's formats, so that VW's tools can read them. w is the weight of a slot, G and N are the sums of its
          update rule (`binary.weight_table`):

    --readable_model    a header, `:1` and counters, then `slot:w G N`; with --predict_only_model `:0` and `slot:w`
    --invert_hash       the same with `name:` or `name[j]:` in front, j the subproblem
    --audit             for each prediction of a subproblem a line with the prediction and the tag, and a line of
                        `TAB name:slot:value:w@G`, in falling order of the contribution of the features

Cost      Some microseconds per feature seen for the first time, for its name. --audit and, with the default layout of a
          tree, --invert_hash process one example at a time, which takes some hundred microseconds each.
Differs   from VW: names can be found for a model that was saved earlier (`-i model -t -d data --invert_hash
          names.txt`). Slots are numbered as in VW with `--layout vw`, and otherwise consecutively through all tables of
          the learner. --audit shows the regressors that predict an example, and for a tree the label's scorer; VW also
          shows the updates of a tree. `Checksum:` has no number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import __version__
from ...abilities.describe.views import TableView, WeightLookup
from ...abilities.find import ability
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...array_types import Float, UInt32s, UInt64s
from ...binary import gd
from ...data import interactions
from ...explain import feature_names
from ...kernels.constants import ZERO
from ...options.declare import OptionGroup, options_of
from ...reductions.core.contract import BatchTask
from ...system import output_file, terminal
from .inspector import Inspector, tag_of

PIECE = 1 << 16  # number of slots processed at a time


class WeightInspector(Inspector):
    """Collect names of features and write the audit during a run, and write the model as text at its end."""

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        super().__init__(config, learner)
        slots = [int(table.mask) + 1 for table in self._tables]
        self._first_slots = np.cumsum([0, *slots])  # number of the first slot of each table
        self._named = config.inspect.invert_hash is not None
        self._named_by_row = self._named and self._view.rows_are_exclusive
        self.one_by_one = config.inspect.audit or (self._named and not self._named_by_row)
        self._names: dict[int, bytes] = {}  # row of the weight table, or slot -> name
        self._width = int(self._tables[0].width)
        if self._named_by_row:
            self._row_seen = np.zeros(slots[0] // self._width, bool)

    @property
    def _tables(self) -> Sequence[gd.WeightTable]:
        return self._learner.reduction.tables

    @property
    def _view(self) -> TableView:
        view: TableView = ability(self._config.reduction, "describe").table_view(self._learner.reduction)
        return view

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        if self.one_by_one:
            return super().stages(stages)
        return [self._name_rows, *stages] if self._named else stages

    def _after(self, task: BatchTask) -> None:
        if self._named and not self._named_by_row and task.read.whole is None:
            self._name_slots(task)

    # names

    def _name_rows(self, task: BatchTask) -> None:
        """Find the names of features seen for the first time, parsing only the examples that have them."""
        if task.read.whole is not None:
            return
        batch = task.batch
        rows = self._rows_of(batch.index)
        fresh = np.flatnonzero(~self._row_seen[rows])
        examples = np.unique(np.searchsorted(batch.start, fresh, side="right") - 1)
        if self.namer.has_wildcards:
            examples = np.arange(batch.n)
        for i in examples.tolist():
            self._add_names(self.namer.of(batch, i))
        self._row_seen[rows] = True

    def _rows_of(self, index: np.ndarray) -> np.ndarray:
        """Return the row of the first weight table, int64[...], for each feature index."""
        table = self._tables[0]
        rows: np.ndarray = ((self._places(0, index) & table.mask) // table.width).astype(np.int64)
        return rows

    def _places(self, table: int, index: UInt32s) -> UInt64s:
        """Return the place of each feature in a table: subproblem j uses slot `(place + j) & mask`."""
        rows = index.astype(np.uint64)
        return (rows if self._view.rows is None else rows % self._view.rows) * self._tables[table].width

    def _add_names(self, features: list[feature_names.NamedFeature]) -> None:
        """Keep the names of the rows of features; the first name of a row stays."""
        rows = self._rows_of(np.array([feature.hash for feature in features], np.uint32))
        for row, feature in zip(rows.tolist(), features, strict=True):
            self._names.setdefault(row, feature.text)

    def _name_slots(self, task: BatchTask) -> None:
        """Keep the names of all slots that the regressors of an example use."""
        named = self._example_features
        for lookup in [*self._example_lookups, *self._view.lookups(task.batch)]:
            for slot, feature in zip(self._slots(lookup, named).tolist(), named, strict=True):
                self._names.setdefault(slot, feature.text + _bracket(lookup.number))
            for place, _ in lookup.extra:
                slot = (place + lookup.sub) & int(self._tables[lookup.table].mask)
                self._names.setdefault(slot + int(self._first_slots[lookup.table]), _bracket(lookup.number))

    def _slots(self, lookup: WeightLookup, features: list[feature_names.NamedFeature]) -> np.ndarray:
        """Return the slots, int64[...], in which a regressor has the weights of features."""
        table = self._tables[lookup.table]
        places = self._places(lookup.table, np.array([feature.hash for feature in features], np.uint32))
        slots = ((places + np.uint64(lookup.sub)) & table.mask).astype(np.int64)
        numbered: np.ndarray = slots + self._first_slots[lookup.table]
        return numbered

    # audit

    def _before(self, task: BatchTask) -> None:
        """Name the features of an example and write its audit, before it is predicted."""
        self._example_features = self._features(task)
        self._example_lookups = self._view.lookups(task.batch)
        if self._named_by_row and task.read.whole is None:
            self._add_names(self._example_features)
        if not self._config.inspect.audit:
            return
        out = terminal.output_of(terminal.standard_output())
        with terminal.naming_output():
            for lookup in self._example_lookups:
                for line in self._audit_lines(task, lookup):
                    out.write(line + b"\n")
            out.flush()

    def _audit_lines(self, task: BatchTask, lookup: WeightLookup) -> Iterator[bytes]:
        """Yield the two audit lines of one regressor of an example: its prediction, and its features and weights."""
        batch, features = task.batch, self._example_features
        table = self._tables[lookup.table]
        base = int(self._first_slots[lookup.table])
        extra = [(place + lookup.sub) & int(table.mask) for place, _ in lookup.extra]
        extra_values = [np.float32(value) for _, value in lookup.extra]
        count = int(batch.start[1])
        place = np.empty(count + len(extra), np.uint64)
        place[:count] = self._places(lookup.table, batch.index)
        place[count:] = [place for place, _ in lookup.extra]
        x = np.array([*batch.value, *extra_values], np.float32)
        run = self._config.run
        # VW puts the path features before the interactions, which are the last features of the batch
        crossed = int(interactions.crossed_counts(batch)[0]) if run.vw_exact else 0
        permutation = _extra_before_crossed(count, crossed, len(extra))
        score = gd.score(table, place[permutation], x[permutation], len(place), np.uint64(lookup.sub), batch.initial[0])
        limits = (table.range if self._view.limits is None else self._view.limits).copy()
        labelled = not np.isnan(batch.label[0])
        if task.learn and labelled and self._learner.reduction.rule.widen and self._config.reduction.labels == "simple":
            gd.widen(limits, np.float32(batch.label[0]))  # without a reduction, the range is widened before predicting
        tag = tag_of(task)
        yield _decimal(gd.clip(score, limits)).encode() + (b" " + tag if tag else b"")

        columns = gd.columns(table)
        # `features` includes those with ignored linear terms
        permutation = _extra_before_crossed(len(features), crossed, len(extra))
        slots = np.concatenate([self._slots(lookup, features) - base, np.array(extra, np.int64)])[permutation]
        values = [feature.value for feature in features] + extra_values
        texts = [feature.text for feature in features] + [b""] * len(extra)
        values, texts = [values[j] for j in permutation], [texts[j] for j in permutation]
        tests_as_vw = run.vw_exact and run.testonly  # then VW sorts by regularised weights and shows no G
        w, g = columns["w"][slots], columns["g"][slots]
        shown_weights = gd.weights_of(table, lookup.sub, w)
        if run.vw_exact:  # VW shows 0 for a NaN, as for a weight that --l1 has set to 0
            shown_weights = np.where(np.isnan(shown_weights), ZERO, shown_weights)
        with np.errstate(all="ignore"):
            sort_weights = shown_weights if tests_as_vw else w
            order = np.argsort(-np.abs(sort_weights * np.array(values, np.float32)), kind="stable")
        line = []
        with_state = self._learner.reduction.rule.adaptive and not tests_as_vw
        for j in order.tolist():
            state = f"@{float(g[j]):g}" if with_state else ""
            line.append(
                b"\t%s:%d:" % (texts[j], int(slots[j]) + base)
                + f"{float(values[j]):g}:{float(shown_weights[j]) + 0.0:g}{state}".encode()
            )
        yield b"".join(line)

    # models as text

    def write(self, counters: dict[str, Any], stored: dict[str, Any]) -> None:
        """Write the files of --readable_model and --invert_hash at the end of the run."""
        options = self._config.inspect
        for path, named in ((options.readable_model, False), (options.invert_hash, True)):
            if path is not None:
                with output_file.opened(path, "the model as text") as file:
                    for line in self._header(counters, stored):
                        file.write(line.encode("utf-8", "surrogateescape") + b"\n")
                    file.writelines(self._lines(named))

    def _header(self, counters: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
        """Yield the lines before the weights."""
        config, table = self._config, self._tables[0]
        low, high = table.range
        if len(table.shrunk) > 1:  # the lines have a single state of --l1 and --l2, and each subproblem has its own
            gd.apply_regularisation(table)
        l1_state, l2_state = table.shrunk[0] if len(table.shrunk) else (0.0, 1.0)
        yield from ("Version 9.11.9", f"Id xclass {__version__}")
        yield from (f"Min label:{_as_text(low)}", f"Max label:{_as_text(high)}")
        yield from (f"bits:{config.learner.bits}", "lda:0")
        for kind, sizes in (("ngram", config.features.ngram), ("skip", config.features.skips)):
            yield f"{len(sizes)} {kind}:" + "".join(f"{size} " for size in sizes)
        yield "options:" + _command(config, stored)
        yield "Checksum: "
        yield from self._view.lines()
        if config.learner.predict_only_model:
            yield ":0"
            return
        yield ":1"
        yield f"initial_t {_as_text(config.learner.initial_t)}"
        yield f"norm normalizer {_as_text(table.sums[0, 0])}"
        sums = {"min_label": low, "max_label": high, "total_weight": table.sums[0, 1]}
        for name, value in {**counters, **sums, "l1_state": l1_state, "l2_state": l2_state}.items():
            yield f"{name} {_as_text(value)}"

    def _lines(self, named: bool) -> Iterator[bytes]:
        """Yield the lines of the weights, with line ends; `named` says whether with names of features."""
        rule, with_state = self._learner.reduction.rule, not self._config.learner.predict_only_model
        if named and self._named_by_row:
            added = {
                (place + lookup.sub) & int(self._tables[0].mask): lookup.number
                for lookup in self._view.extra()
                for place, _ in lookup.extra
            }
        for base, table in zip(self._first_slots.tolist(), self._tables, strict=False):
            if not with_state:
                gd.apply_regularisation(table)
            columns = gd.columns(table)
            shown_columns = ["w"] + ["g"] * (with_state and rule.adaptive) + ["n"] * (with_state and rule.normalized)
            for low in range(0, int(table.mask) + 1, PIECE):
                piece = [columns[c][low : low + PIECE] for c in shown_columns]
                for j in np.flatnonzero(np.any([column != 0 for column in piece], axis=0)).tolist():
                    slot = base + low + j
                    front = b"%d:" % slot
                    if named:
                        if self._named_by_row:
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
                        elif not with_state:
                            front = b":" + front
                    yield front + " ".join(f"{float(column[j]):g}" for column in piece).encode() + b"\n"


def _extra_before_crossed(count: int, crossed: int, extra: int) -> np.ndarray:
    """Return the permutation that moves the last `extra` of count + extra features before the `crossed` ones.

    The crossed features are the last ones among the first `count`.
    """
    permutation = np.arange(count + extra)
    plain = count - crossed
    return np.concatenate([permutation[:plain], permutation[count:], permutation[plain:count]])


def _decimal(value: Float) -> str:
    """Return a prediction as VW prints it."""
    value = float(value)
    return f"{value:.6f}" if value % 1 else f"{value:.0f}".replace("-0", "0") if value == 0 else f"{value:.0f}"


def _bracket(number: int) -> bytes:
    """Return the suffix for a subproblem, empty for number 0."""
    return b"[%d]" % number if number else b""


VW_STORED_OPTIONS = (
    "adaptive", "binary", "cubic", "ect", "error", "hash", "hash_seed", "ignore", "ignore_linear", "indexing",
    "interactions", "invariant", "keep", "learning_rate", "link", "max_candidates", "max_depth", "named_labels",
    "node_only", "noconstant", "normalized", "oaa", "power_t", "quadratic", "randomized_routing", "recall_tree", "sgd",
)  # fmt: skip


def _command(config: Config, stored: dict[str, Any]) -> str:
    """Return the options that VW stores in a model as a command line, each with a space before it."""
    words: list[str] = []
    chosen = getattr(config, config.reduction.name)
    groups: tuple[OptionGroup, ...] = (config.parser, config.features, config.interactions, config.learner, chosen)
    for group in groups:
        for name, entry in options_of(type(group)).items():
            value = stored.get(name)
            if (
                name not in VW_STORED_OPTIONS
                or value in (None, [], False)
                or (name not in config.given and value == entry.default)
            ):
                continue
            if name in ("learning_rate", "power_t", "hash", "hash_seed", "link") and name not in config.given:
                continue
            if name == "named_labels":
                value = str(value).replace(" ", "_")  # a name is one word of a command line
            words += (
                [f" --{name}"] if value is True else [f" --{name} {v}" for v in (value if entry.repeated else [value])]
            )
    return "".join(sorted(words))


def _as_text(value: object) -> str:
    """Return a value as text; numbers are formatted as by C++ streams."""
    return format(float(value), "g") if isinstance(value, (float, np.floating)) else str(value)
