"""Open the data of a run."""

from __future__ import annotations

import io

from ..api.configuration import Config, feature_bits
from ..api.learner_core import LearnerCore
from ..cache import cache_key
from ..cache.source import Source
from ..formats import detect
from ..text.reader import Reader
from . import passes
from .shuffle import Shuffler


def opened(config: Config, learner: LearnerCore, needs_lines: bool, peeked: bytes = b"") -> passes.Stream:
    """Open the data, text or a cache, and return the stream of the examples of every pass.

    If the lines that examples are read from are needed, every pass parses the text. `peeked` are bytes already read
    from standard input.
    """
    kind, labels = config.reduction.labels, learner.label_range
    if config.run.testonly:
        learner.schema.room = 0  # so that nothing of the data has to be examined before the first prediction
    empty = io.BytesIO() if config.run.no_stdin and not config.reader.data else None
    text = Reader(
        config.reader, config.parser, feature_bits(config), kind, *labels, stream=empty, names=learner.names,
        peeked=peeked, choose=detect.chooser(config.reader, learner.schema, config.given),
    )  # fmt: skip
    o = config.run
    text.parser.predicting = (o.predictions is not None or o.raw_predictions is not None) and not o.vw_exact
    text.parser.learning = not config.run.testonly
    of_passes = config.passes
    continued = of_passes.initial_pass_length is not None and of_passes.passes == 1
    limit = None if continued else of_passes.examples
    key = cache_key.make_key(config.parser, feature_bits(config), kind, labels.lowest, labels.highest, limit)
    key.update(detect.key(config.reader, learner.schema))
    if config.parser.learn_names and config.run.testonly:
        key["names"] = "those of the model"
    readings = config.passes.passes + (learner.preview_size == 0)
    text.preview(peeked)
    if config.run.testonly and (text.format is None or text.format.name == "jsonl"):
        key["kinds"] = "those of the model"
    source = Source(text, config.cache, key, not config.parser.noconstant, readings, needs_lines, learner.schema)
    size = config.shuffle.shuffle
    shuffler = None if size is None else Shuffler(size, o.random_seed, needs_lines)
    return passes.Stream(source, config.passes, shuffler, o.final_regressor)
