"""Interactions: VW's indices, its order and its warnings; memory; the oracle on random text."""

import numpy as np
import pytest
from effort import tries
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import reader as oracle
from xclass.data import interactions
from xclass.errors import DataError
from xclass.system import memory
from xclass.text import parser

pytestmark = [pytest.mark.bounds, pytest.mark.plain, pytest.mark.filterwarnings("ignore:overflow")]
ORDER_CHANGED = (
    "[warning] Some interactions contain duplicate characters and their characters order has been changed. "
    "Interactions affected: {}."
)
REMOVED = "[warning] Duplicate namespace interactions were found. Removed: {}."
INFO = "[info] Any duplicate namespace interactions will be removed"


def batch_of(text: bytes):
    data = np.zeros(len(text) + parser.PADDING, np.uint8)
    data[: len(text)] = np.frombuffer(text, np.uint8)
    batch, error, used = parser.Parser(parser.ParserOptions(on_bad_line="vw"), 18, "multiclass").parse(
        data, len(text), "f"
    )
    assert error is None and used == len(text)
    return batch


def crosser(*, piece=interactions.PIECE, **arguments) -> interactions.Crosser:
    return interactions.Crosser(interactions.InteractionOptions(**arguments), piece)


def rows(batches) -> list[list[tuple[int, float]]]:
    """Features of each row, after checks of the shape of the batches."""
    terms = []
    for batch in batches:
        assert batch.start[0] == batch.group_first[0] == batch.group_start[0] == 0
        assert batch.start[-1] == len(batch.index) == len(batch.value) == batch.group_start[-1]
        assert batch.group_first[-1] == len(batch.group_name) == len(batch.group_start) - 1
        assert np.array_equal(batch.group_start[batch.group_first], batch.start)
        for name, array in batch._asdict().items():
            assert array.flags.c_contiguous and array.flags.writeable, name
        for i in range(batch.n):
            here = slice(batch.start[i], batch.start[i + 1])
            terms.append(list(zip(batch.index[here].tolist(), batch.value[here].tolist(), strict=True)))
    return terms


def made(text: bytes, **arguments) -> list[tuple[int, float]]:
    """What the interactions make of the last line, indices at 18 bits."""
    batch = batch_of(text)
    plain = rows([batch])[-1]
    terms = rows(crosser(**arguments).cross(batch))[-1]
    assert terms[: len(plain)] == plain
    return [(index % 2**18, value) for index, value in terms[len(plain) :]]


@pytest.mark.parametrize(
    ("arguments", "indices"),
    [
        ({"quadratic": ("ab",)}, [80151, 171394]),
        ({"quadratic": ("ba",)}, [156693, 138178]),
        ({"quadratic": ("aa",)}, [1680, 31047, 253394]),
        ({"cubic": ("aab",)}, [242623, 200138, 251545]),
        ({"cubic": ("aba",)}, [242623, 200138, 251545]),
        ({"interactions": ("abab",)}, [135842, 218097, 210388]),
        ({"interactions": ("ab",)}, [80151, 171394]),
        ({"quadratic": (r"\x61b",)}, [80151, 171394]),
        ({"quadratic": ("a:",)}, [1680, 31047, 253394, 80151, 171394]),
        ({"quadratic": ("bc", "a\x7f")}, []),
    ],
)
def test_indices_of_vw(arguments, indices):
    assert [index for index, _ in made(b"1 |a x y |b z\n", **arguments)] == indices


def test_values_are_multiplied():
    assert [value for _, value in made(b"|a x:2 y:3 |b z:0.5\n", quadratic=("ab", "aa"))] == [4, 6, 9, 1, 1.5]
    assert [value for _, value in made(b"|a x:1e-30 |b z:1e-30\n", quadratic=("ab",))] == [0]  # zeros stay


@pytest.mark.parametrize(
    ("arguments", "wanted", "notes"),
    [
        ({"quadratic": ("ba", "ab")}, [b"ab"], [REMOVED.format(1)]),
        ({"quadratic": ("cd", "ba"), "cubic": ("abc",)}, [b"ba", b"cd", b"abc"], []),
        ({"cubic": ("aba",)}, [b"aab"], [ORDER_CHANGED.format(1)]),
        ({"cubic": ("aab", "abb", "aaa")}, [b"aaa", b"aab", b"abb"], [ORDER_CHANGED.format(2)]),
        ({"cubic": ("bac", "cab")}, [b"bac"], [REMOVED.format(1)]),
        ({"interactions": ("abab", "bbaa")}, [b"aabb"], [REMOVED.format(1), ORDER_CHANGED.format(1)]),
        ({"quadratic": ("::",)}, [b"::"], [INFO]),
        ({"quadratic": (r"a\x88",)}, [b"a\x88"], []),
        ({"quadratic": (r"\x61\x62",), "cubic": (r"\x61bc",)}, [b"ab", b"abc"], []),
        (
            {"interactions": (r"a\xzz",)},
            [rb"\axzz"],
            [r"[warning] Possibly malformed hex representation of a namespace: '\xzz'", ORDER_CHANGED.format(1)],
        ),
    ],
)
def test_arguments_as_vw_takes_them(arguments, wanted, notes):
    resolved = crosser(**arguments)
    assert resolved.interactions == wanted and resolved.notes == notes and resolved.active


def test_crosser_without_options_is_not_active():
    assert not crosser().active and crosser().notes == []
    batch = batch_of(b"1 |a x\n")
    assert list(crosser().cross(batch)) == [batch]


def test_with_group_lists_what_names_a_group():
    resolved = crosser(quadratic=("ab", r"a\x88", "cd"), cubic=(r"\x88ab",))
    assert resolved.with_group(0x88) == [b"a\x88", b"\x88ab"]
    assert len(rows(resolved.cross(batch_of(b"|a x |b y\n")))[0]) == 4
    assert crosser(quadratic=(r":\x88",)).with_group(0x88) == [b":\x88"]


def test_wildcards_know_the_groups_seen_so_far():
    text = b"|a x\n|a x |b y\n|b y\n|c z\n|\n|a x |c z\n"
    resolved = crosser(quadratic=("::",))
    sizes = [len(row) - 1 for row in rows(resolved.cross(batch_of(text)))]
    assert sizes == [2, 5, 2, 2, 0, 5]
    assert sizes == [len(row) - 1 for row in rows(resolved.cross(batch_of(text)))]
    line_by_line = crosser(quadratic=("::",))
    pieces = [row for line in text.splitlines(keepends=True) for row in rows(line_by_line.cross(batch_of(line)))]
    assert pieces == rows(crosser(quadratic=("::",)).cross(batch_of(text)))
    assert rows(crosser(quadratic=("::",)).cross(batch_of("|é a\n|a x |é b\n".encode())))[1][3:] == made_of_a()


def made_of_a():
    return rows(crosser(quadratic=("aa",)).cross(batch_of(b"|a x\n")))[0][2:]


def test_batches_are_split_to_bound_memory():
    text = b"".join(b"%d 'tag%d |a x y z:%d |b p q\n" % (i, i, i + 2) for i in range(100))
    batch = batch_of(text)
    whole = list(crosser(quadratic=("ab", "aa")).cross(batch))
    assert len(whole) == 1
    split = list(crosser(quadratic=("ab", "aa"), piece=100).cross(batch))
    assert len(split) == 20 and max(len(part.index) for part in split) <= 100
    assert rows(split) == rows(whole)
    single = list(crosser(quadratic=("ab", "aa"), piece=1).cross(batch))
    assert len(single) == 100 and rows(single) == rows(whole)
    for name in ("label", "weight", "initial", "line", "tag_start", "tag_end"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in split]), getattr(batch, name)), name
    assert [part.text[part.tag_start[0] : part.tag_end[0]].tobytes() for part in single][7] == b"tag7"


def test_generated_features_are_a_group_of_their_own():
    (batch,) = crosser(quadratic=("ab",)).cross(batch_of(b"|a x |b y z\n|a x\n"))
    assert batch.group_name.tolist() == [97, 98, 128, interactions.CROSSED_GROUP, 97, 128]
    assert batch.group_start.tolist() == [0, 1, 3, 4, 6, 7, 8]


def test_an_example_that_would_become_too_large_is_refused():
    names = b" ".join(b"%d" % i for i in range(3000))
    with pytest.raises(
        DataError, match=r"line 2: the interactions make 4\.5e\+09 features .* than the 16,777,216 that an "
    ):
        list(crosser(cubic=("aaa",)).cross(batch_of(b"|a x\n|a " + names + b"\n")))


def test_each_kernel_is_compiled_once():
    list(crosser(quadratic=("::",), piece=1).cross(batch_of(b"|a x |b y\n|a z |c x\n")))
    for kernel in (interactions.count_crossed, interactions.cross_rows):
        assert len(getattr(kernel, "signatures", [0])) == 1


argument = st.text("aab:c", min_size=2, max_size=4)
line = st.lists(
    st.tuples(st.sampled_from("abcé "), st.lists(st.sampled_from(["x", "y:2", ":3", "7", "z:-0.5"]), max_size=3)).map(
        lambda parts: f"|{parts[0].strip()} " + " ".join(parts[1])
    ),
    max_size=4,
).map("".join)


@settings(max_examples=tries(300))
@given(st.lists(line, max_size=5), st.lists(argument, max_size=3), st.integers(1, 60))
def test_random_interactions_are_the_oracles(lines, arguments, piece):
    data = "".join(f"1 {text}|\n" for text in lines).encode()
    terms = rows(crosser(interactions=tuple(arguments), piece=piece).cross(batch_of(data)))
    wanted = oracle.features_of(oracle.read(data, multiclass=True), arguments)
    assert terms == [[(index, float(value)) for index, value in row] for row in wanted]


def test_an_example_that_memory_cannot_hold_is_refused_before_it_is_made(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 200 * 2**20)
    text = b"|a " + b" ".join(b"w%d" % i for i in range(299)) + b"\n"
    with pytest.raises(DataError, match=r"line 1: the interactions make 4\.5e\+06 features .* memory for; use fewer"):
        list(crosser(cubic=("aaa",)).cross(batch_of(text)))
