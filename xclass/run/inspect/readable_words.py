"""Write models whose weights are tagged words as text, with or without names of features.

Source    This project's own; the lines before the weights are VW's (`text_header`). Each word in use has a line:

    --readable_model    `table:slot:w G`
    --invert_hash       `name[place]:table:slot:w G`, with the name of the feature and the node or class whose weight it
                        is; a word of which this is not known has the line of --readable_model

          table is tree0, tree1, ... or scorers; slot is the number of the word in its table, 16 times its line plus its
          lane; [place] is [node N depth D], with N as in --print_tree, or [class Y]. Nodes of more than two branches
          have several regressors: [node N depth D regressor I].
Cost      --readable_model takes about a microsecond for each word. --invert_hash looks up the words of every pair of a
          feature and a node on the path to the label, or a class that was proposed, after the learner has seen a batch
          and before it sees the next one; see `binary.word_owners`. Names take some microseconds for each new feature.
Differs   from `readable_model` in that a word does not tell its feature: a name is known only for words that an example
          of this run finds, not for all words of a feature that occurs in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from ...abilities.describe.weight_views import WordTable
from ...api.configuration import Config
from ...api.learner_core import LearnerCore
from ...array_types import AnyArray
from ...binary import word_owners
from ...kernels.tagged_format import G_CODES, G_FIELD, NUMBER_MASK, W_CODES, W_FIELD
from ...options.declare import options_of
from ...reductions.core.contract import BatchTask
from . import text_header
from .inspector import Inspector

PIECE = 1 << 16  # number of words processed at a time
LOWEST, HIGHEST = -1.0, 1.0  # labels of the regressors
SIGNED_W_CODES = 2 * W_CODES


class WordInspector(Inspector):
    """Find the owners of words during a run, and write the model as text at its end."""

    one_by_one = False

    def __init__(self, config: Config, learner: LearnerCore) -> None:
        super().__init__(config, learner)
        self._names: dict[int, bytes] = {}  # index of a feature -> name
        self._owners = []
        if config.inspect.invert_hash is not None:
            self._owners = [word_owners.new_owners(table.words) for table in self._word_tables()]

    def _word_tables(self) -> list[WordTable]:
        tables: list[WordTable] = self._describe.word_tables(self._model)
        return tables

    def stages(self, stages: list[Callable[[BatchTask], None]]) -> list[Callable[[BatchTask], None]]:
        return super().stages(stages) if self._owners else stages

    def _before(self, task: BatchTask) -> None:
        if task.unnamed_batch is None:
            self._add_names(task)

    def _after(self, task: BatchTask) -> None:
        if task.unnamed_batch is None:
            self._note_owners(task)

    def _add_names(self, task: BatchTask) -> None:
        """Find the names of features seen for the first time, parsing only the examples that have them."""
        batch = task.batch
        if self.namer.has_wildcards:
            examples = np.arange(batch.n)
        else:
            unique, first = np.unique(batch.index, return_index=True)
            fresh = [at for index, at in zip(unique.tolist(), first.tolist(), strict=True) if index not in self._names]
            examples = np.unique(np.searchsorted(batch.start, np.array(fresh, np.int64), side="right") - 1)
        for i in examples.tolist():
            for feature in self.namer.of(batch, i):
                self._names.setdefault(feature.hash, feature.text)

    def _note_owners(self, task: BatchTask) -> None:
        """Note the owners of the words that the examples of a batch find, those that were learned from first."""
        learned = task.learned()
        rows = np.concatenate([np.flatnonzero(learned), np.flatnonzero(~learned)])
        batch = task.batch
        for number, (table, key) in enumerate(
            zip(self._word_tables(), self._describe.word_keys(self._model, task), strict=True)
        ):
            owners = self._owners[number]
            if len(owners.after_key) != len(table.words.word):  # the table was doubled
                owners = self._owners[number] = word_owners.fitted(table.words, owners, table.by_block)
            mask = word_owners.compared(table.by_block)
            word_owners.note(table.words, owners, mask, batch.index, batch.start, rows, key)

    # models as text

    def _header(self, counters: dict[str, Any], stored: dict[str, Any]) -> Iterator[str]:
        more = ("layout", *options_of(self._config.reduction.options))
        learned = text_header.Learned(LOWEST, HIGHEST)
        return text_header.lines(self._config, stored, counters, learned, self._describe.word_lines(self._model), more)

    def _lines(self, named: bool) -> Iterator[bytes]:
        for number, table in enumerate(self._word_tables()):
            owners = word_owners.fitted(table.words, self._owners[number], table.by_block) if named else None
            yield from self._pieces(number, table, owners)

    def _pieces(self, number: int, table: WordTable, owners: word_owners.Owners | None) -> Iterator[bytes]:
        """Yield the lines of a table, many at a time."""
        w_texts, g_texts = self._number_texts
        for low in range(0, len(table.words.word), PIECE):
            word = table.words.word[low : low + PIECE]
            used = np.flatnonzero(word)
            if not len(used):
                continue
            word = word[used]
            line = f"{table.name}:".encode() + (low + used).astype("S").astype(object) + b":"
            line = line + w_texts[word >> W_FIELD] + b" " + g_texts[word >> G_FIELD & np.uint32(G_CODES - 1)]
            if owners is not None:
                known = np.flatnonzero(owners.after_key[low + used])
                if len(known):
                    line[known] = self._fronts(number, table, owners, low + used[known]) + line[known]
            yield b"\n".join(line.tolist()) + b"\n"

    def _fronts(self, number: int, table: WordTable, owners: word_owners.Owners, at: AnyArray) -> AnyArray:
        """Return `name[place]:` of the words at some positions, object[n], empty for places that do not exist."""
        feature, inverse = np.unique(owners.feature[at], return_inverse=True)
        name = np.array([self._names.get(index, b"") for index in feature.tolist()], object)[inverse.reshape(-1)]
        q = (table.words.word[at] & np.uint32(NUMBER_MASK)).astype(np.int64)
        place = self._describe.word_places(self._model, number, owners.after_key[at].astype(np.int64) - 1, q)
        return np.where(place == b"", b"", name + place + b":")

    @cached_property
    def _number_texts(self) -> tuple[AnyArray, AnyArray]:
        """Return the texts of w and of G by their codes in a word, object[...] of bytes."""
        texts = []
        for codes, field, part in ((SIGNED_W_CODES, W_FIELD, 0), (G_CODES, G_FIELD, 1)):
            numbers = np.empty(codes, np.float32), np.empty(codes, np.float32)
            word_owners.decode(np.arange(codes, dtype=np.uint32) << np.uint32(field), *numbers)
            texts.append(np.array([f"{number:g}".encode() for number in numbers[part].tolist()], object))
        return texts[0], texts[1]
