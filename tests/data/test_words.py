"""Words of documents: separated as by `bytes.split()`, and hashed as names of features."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xclass.data import feature_names, hashing, texts

pytestmark = [pytest.mark.bounds, pytest.mark.plain]
documents = st.lists(
    st.binary(max_size=30) | st.text("ab1:|\x00 \t\n\v\f\r\x1c", max_size=30).map(str.encode), max_size=5
)


def name_hash(name: bytes, seed: int, every: bool) -> int:
    return int(hashing.name_hash(np.frombuffer(name, np.uint8), 0, len(name), np.uint32(seed), every, False))


@given(documents, st.integers(0, 2**32 - 1), st.booleans(), st.sampled_from([18, 32]))
@example([b"a:b  c|d\x00 17 \x00 0017", b"", b" \v\f\r\n\t"], 0, False, 32)
def test_words_equal_split_and_name_hash(given_documents, seed, every, bits):
    text = np.frombuffer(b"x".join(given_documents) + bytes(feature_names.PADDING), np.uint8).copy()
    length = np.array([len(document) for document in given_documents], np.int64)
    begin = np.cumsum(length + 1) - length - 1
    mask = 2**bits - 1
    rules = texts.Texts(texts.TextOptions(text_split="spaces"), every, np.uint32(mask)).rules(text)
    work = texts.work_for(rules, 30)
    seeds = np.full(len(length), seed, np.uint32)
    start, index = texts.indices(text, begin, begin + length, seeds, rules, work, len(text))
    assert (start.dtype, index.dtype) == (np.int64, np.uint32)
    assert start.tolist()[0] == 0
    for i, document in enumerate(given_documents):
        expected = [name_hash(word, seed, every) & mask for word in document.split()]
        assert index[start[i] : start[i + 1]].tolist() == expected
