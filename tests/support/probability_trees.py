"""Provide helpers that several tests of the conditional probability tree share."""

import numpy as np
from archives import restored

from tests.oracles import reader as plain_reader
from tests.oracles.tagged_words import TaggedTable
from xclass.api.learner import Learner
from xclass.api.model_contents import ModelContents
from xclass.reductions.cpt import label_tree


def examples(text: str, bits: int = 32) -> list[tuple]:
    """Return (features, label or None, weight) of every line, in the form that oracles expect.

    Parameters
    ----------
    bits : of the indices of features, as cut to the size of a weight table
    """
    read = plain_reader.read(text.encode(), multiclass=True, bits=bits)
    labels = [None if e.label is None else int(e.label) for e in read]
    return list(zip(plain_reader.features_of(read), labels, [e.weight for e in read], strict=True))


def tree_of(model: Learner, t: int = 0) -> label_tree.ClassTree:
    """Return tree number t of a learner, converted to the arrays of a model and restored from them with all checks."""
    return restored(model.core.contents().arrays, label_tree.serialize, f"tree.{t}", label_tree.new_tree())


def check_words(contents: ModelContents, name: str, table: TaggedTable) -> None:
    """Check that a model stores the words and the counts of an oracle's table."""
    arrays = contents.arrays
    words = np.array(table.words, np.uint32).ravel()
    stored = np.asarray(arrays[f"{name}.word"])
    if f"{name}.index" in arrays:  # without empty words
        assert np.asarray(arrays[f"{name}.index"]).tolist() == np.flatnonzero(words).tolist()
        words = words[words != 0]
    assert stored.tolist() == words.tolist()
    counts = [table.counter, table.used, table.evicted, table.refused, table.lost]
    assert np.asarray(arrays[f"{name}.counts"]).tolist() == counts
    assert np.asarray(arrays[f"{name}.doublings"]).tolist() == [table.doublings]
