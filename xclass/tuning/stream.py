"""Parse the data once into a cache, and read any range of its examples from it.

All settings read the same examples: hashes of features are cut to the size of a learner's table when it learns, so the
cache holds whole ones. Several threads may read at the same time.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Iterator, Sequence

import numpy as np

from ..api import configuration
from ..api.configuration import Config
from ..api.label_check import LabelCheck
from ..cache import cache_key
from ..cache import source as cache
from ..cache.cache_file import CacheReader as CacheReader
from ..data import batch_ops, class_names
from ..data.batch import CONSTANT_GROUP, Batch
from ..data.schema import Schema
from ..errors import DataError
from ..formats import detect
from ..options.declare import Facts
from ..text import reader as text

WHOLE = 32  # bits of a feature's hash
MOST_ROWS = 512  # examples of a batch, so that a search can end between two of them


class SearchStream:
    """Hold the examples of a search.

    `config` says how labels and features are read, and `peeked` has what was already read from the data.

    Attributes
    ----------
    n : number of examples
    names : names of the classes, if labels are names
    notes : warnings about the text and the cache
    highest : highest class
    classes : number of classes that occur as labels
    """

    def __init__(
        self, config: Config, files: text.ReaderOptions, kept: cache.CacheOptions, peeked: text.Peeked | None = None
    ) -> None:
        self._constant = not config.parser.noconstant
        self.notes: list[str] = []
        labels = configuration.label_range(config)
        names = class_names.Names(tuple(config.parser.label_names()), config.parser.learn_names)
        kind = config.reduction.labels
        parsed = text.Reader(
            files, config.parser, WHOLE, kind, *labels, names=names, peeked=peeked, choose=detect.chooser(files)
        )
        parsed.preview()
        key = cache_key.make_key(config.parser, WHOLE, kind, labels.lowest, labels.highest, None)
        key.update(detect.key(files, Schema()))
        self._source = cache.Source(parsed, kept, key, self._constant, passes=2, needed=True)
        self._reader = self._read()
        self.names = tuple(names.names)
        self.notes += [*self._source.notes, *parsed.report()]
        self._survey()

    def close(self) -> None:
        self._source.close()

    def _read(self) -> CacheReader:
        """Write the cache, unless there is one that fits, and return it."""
        if self._source.complete_cache is None:
            for _ in self._source:
                pass
        found = self._source.complete_cache
        if found is None:
            raise DataError(
                "; ".join(self._source.notes) or f"{self._source.name}: no cache can be written of the data"
            )
        return found

    def _survey(self) -> None:
        """Read all examples once to count them, and to find out what they look like."""
        counts, labelled, features, plain = [], 0, 0, True
        check = LabelCheck(list(self.names), ordered=True)
        groups: set[int] = set()
        seen: set[float] = set()
        for batch, _ in self._reader:
            counts.append(batch.n)
            self.notes += check.check(batch)
            with_label = ~np.isnan(batch.label)
            labelled += int(np.count_nonzero(with_label))
            features += len(batch.index) - batch.n * self._constant
            plain = plain and bool((batch.value == 1).all())
            groups.update(np.unique(batch.group_name).tolist())
            seen.update(np.unique(batch.labels if batch.has_lists else batch.label[with_label]).tolist())
        self._first = [0, *itertools.accumulate(counts)]
        self.n = self._first[-1]
        if labelled < 2:
            raise DataError(
                f"{self._source.name}: {labelled} examples have a label; a search needs thousands, some of them to "
                "learn from and some to compare settings on"
            )
        self.mean_features, self.plain = features / self.n, plain
        self.groups = "".join(chr(group) for group in sorted(groups - {CONSTANT_GROUP}) if 32 < group < 127)
        self.highest, self.classes = int(max(seen, default=0)), len(seen)

    def facts(self, reduction: str, metric: str = "error") -> Facts:
        classes = max(self.highest, len(self.names))
        return Facts(reduction, classes, self.n, self.mean_features, self.plain, self.groups, metric)

    def batches(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Batch]]:
        """Yield the examples of some ranges as batches, each with the number of its first example.

        A range is (begin, end), counted from 0.
        """
        for low, high in ranges:
            if low >= high:
                continue
            block = bisect_right(self._first, low) - 1
            last = bisect_right(self._first, high - 1)
            for batch, _ in self._reader.blocks(block, last):
                first = self._first[block]
                for begin in range(max(low - first, 0), min(high - first, batch.n), MOST_ROWS):
                    end = min(begin + MOST_ROWS, high - first, batch.n)
                    yield first + begin, batch if end - begin == batch.n else batch_ops.cut(batch, begin, end)
                block += 1
