"""Names of classes that have a space are refused or reported, and names with weights are learned as they are."""

import itertools
import math
import re

import numpy as np
import pytest
from command import learn, xclass
from hypothesis import given
from hypothesis import strategies as st
from library import state_of

from xclass.api.learner import Learner, load
from xclass.data.alike_names import NameWeights
from xclass.errors import DataError
from xclass.system import thread_limit

SMALL = ("-b", 10)
OTHER = "is read as class"
ALONE = "all labelled lines have the same class"
pytestmark = pytest.mark.filterwarnings("ignore::xclass.XclassWarning")


def notes_of(text: str, **options) -> list[str]:
    """Notes of a learner about a text; it learns the names of the classes unless an option prevents it."""
    with Learner("oaa", 9, bits=10, **(options or {"learn_names": True})) as model:
        return list(model.learn_many(text).warnings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("class 0001 | a\nclass 0002 | b\n", "batch:1:7: weight '0001' has leading zeros; write a weight without "
         "them; if the words before the bar are the name of a class, write them as one word: 'class_0001'"),
        ("a 2 | a\nx 007.5 'tag | b\n", "batch:2:3: weight '007.5' has leading zeros"),
        ("tire change | a\n", "batch:1:6: weight 'change' is not a finite number of at least 0; if the words "
         "before the bar are the name of a class, write them as one word: 'tire_change'"),
        ("a | a\nb | b\nNew York City 'tag | c\n", "batch:3:1: the words from 'New' to the first bar | are more than a "
         "label and a weight; write features after a bar, and a tag as 'tag or directly before the bar; if the words "
         "before the bar are the name of a class, write them as one word: 'New_York_City'"),
        ("id\ttire  change | a\n", "write them as one word: 'tire_change'"),
        ("a -1 | a\n", "weight '-1' is not a finite number of at least 0; if the words before the bar are the name of "
         "a class, write them as one word: 'a_-1'"),
    ],
)  # fmt: skip
def test_words_that_are_no_weights_are_refused_with_the_name_in_one_word(text, message):
    with pytest.raises(DataError, match=re.escape(message)):
        notes_of(text)


def test_names_that_were_listed_are_explained_in_the_same_way():
    with Learner("oaa", 2, bits=10, named_labels="tire_change,oil") as model:
        message = (
            "label 'tire' is not one of named_labels; if the words before the bar are .* as one word: 'tire_change'"
        )
        with pytest.raises(DataError, match=message):
            model.learn_many("oil | a\ntire change | b\n")
        with pytest.raises(DataError, match="write them as one word: 'oil_well'"):
            model.learn_many("oil well | a\n")
    listed = ("--oaa", 2, "--named_labels", "tire change,oil", "-p", "stdout")
    assert xclass(*listed, stdin="tire_change | b\noil | a\n| b\n").lines[-1] == "tire change"
    result = xclass("--oaa", 2, "--named_labels", "tire,,oil", stdin="oil | a\n")
    assert result.status == 2 and "--named_labels lists ''; a name is not empty" in result.err


def test_numbers_with_zeros_in_front_stay_weights_of_classes_that_are_numbers():
    assert notes_of("1 01 | a\n2 002 | b\n", indexing=1) == []
    with Learner("oaa", 3, bits=10, named_labels="a,b,c") as model:
        assert model.learn_many("a 01 | a\nb | b\n").warnings == ()
    assert learn("--oaa", 2, *SMALL, "--quiet", stdin="a 0.5 | a\nb 0 | b\na 0e3 | c\n").err == ""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "class 1 | a\nclass 2 | b\nclass 3 | c\n",
            "batch:2: 'class 2' is read as class 'class' with importance weight 2, but an earlier line gives that "
            "class weight 1; if the words before the bar are the name of a class, write them as one word, such as "
            "'class_2'",
        ),
        ("Rocky | a\nJaws | b\n'tag | q\nRocky 2 't| c\n", "batch:4: 'Rocky 2' is read as class 'Rocky' with"),
        (
            "Rocky 2 | a\nJaws | b\n\nRocky | c\n",
            "batch:4: 'Rocky' is read as class 'Rocky' with importance weight 1, but",
        ),
        ("python 3.10 | a\npython 3.9 | b\nx | c\n", "batch:2: 'python 3.9' is read as class 'python' with"),
        ("x" * 900 + " 2 | a\n" + "x" * 900 + " 3 | a\n", "batch:2: '" + "x" * 40 + "...' is read as class"),
    ],
)
def test_a_name_with_another_weight_is_told_once(text, message):
    notes = notes_of(text)
    assert notes[0].startswith(message)
    assert sum(OTHER in note for note in notes) == 1


def test_a_quiet_run_does_not_report_other_weights():
    text = "class 1 | a\nclass 2 | b\nclass 3 | c\n"
    assert "warning: stdin:2: 'class 2' is read as" in learn("--oaa", 9, *SMALL, "--learn_names", stdin=text).err
    assert OTHER not in learn("--oaa", 9, *SMALL, "--learn_names", "--quiet", stdin=text).err


def test_zeros_in_front_are_told_of_where_every_line_is_read_as_vw_reads_it():
    text = "class 0001 | a\nclass 0002 | b\n"
    notes = notes_of(text, learn_names=True, on_bad_line="vw")
    assert any("'class 0002' is read as class 'class' with importance weight 2" in note for note in notes)
    notes = notes_of(text + "a | a\n", learn_names=True, on_bad_line="skip")
    assert any("2 malformed lines were skipped" in note for note in notes)


def test_names_with_weights_are_learned_without_a_message():
    """As if the names had been listed: each class has a weight, or lines have none."""
    text = "spam 0.5 | a b\nham 2 | b\nspam 0.5 | c a\nham 2 | b d\nnews 1 | e\nnews | f\n" * 9
    outcomes = []
    for options in ({"learn_names": True}, {"named_labels": "spam,ham,news"}):
        with Learner("oaa", 3, bits=10, **options) as model:
            outcome = model.learn_many(text)
            outcomes.append((outcome.prediction.tolist(), state_of(model).arrays))
            assert not any("weight" in note for note in outcome.warnings)
    assert outcomes[0] == outcomes[1]


def test_a_single_name_is_reported_at_the_end():
    assert ALONE in learn("--oaa", 9, *SMALL, "--learn_names", stdin="class 0001| a\nclass 0002| b\n").err
    assert ALONE not in learn("--oaa", 9, *SMALL, "--learn_names", stdin="a | a\nb | b\n").err
    assert ALONE not in learn("--oaa", 9, *SMALL, stdin="1 | a\n1 | b\n").err


@pytest.mark.parametrize("count", [1, 3])
def test_the_same_line_is_told_however_data_are_read(count, tmp_path, monkeypatch):
    """From a file in many blocks, from a pipe, in two files, in passes and resumed, by one thread or several."""
    monkeypatch.setattr(thread_limit, "processors", lambda: count)
    lines = [f"name-{i % 50} | w{i % 7} some more words\n" for i in range(12_000)]
    lines[9_000] = "name-0 2 | w0\n"
    lines[9_001] = "name-1 2 | w0\n"
    text = "".join(lines)
    (tmp_path / "d").write_text(text)
    (tmp_path / "d1").write_text(text[:200_000].rpartition("\n")[0] + "\n")
    (tmp_path / "d2").write_text(text[len((tmp_path / "d1").read_text()) :])
    words = ("--oaa", 50, "-b", 14, "--learn_names")
    for more, place in (
        (("-d", "d"), "d:9001"),
        (("-d", "d1", "-d", "d2"), f"d2:{9_001 - (tmp_path / 'd1').read_text().count(chr(10))}"),
        (("-d", "d", "-c", "--passes", 2, "--holdout_off"), "d:9001"),
        ((), "stdin:9001"),
    ):
        result = learn(*words, *more, stdin=text, cwd=tmp_path)
        assert f"warning: {place}: 'name-0 2' is read as class 'name-0' with importance weight 2" in result.err
        assert result.err.count(OTHER) == 1


def test_going_on_does_not_compare_with_what_was_read_before_the_model(tmp_path):
    path = str(tmp_path / "m")
    with Learner("oaa", 3, bits=10, learn_names=True) as model:
        model.learn_many("a | a\nb | b\n")
        model.save(path)
    for text, warned in (("a 2 | a\nb 3 | b\n", False), ("b 2 | a\na 2 | b\nb | a\n", True)):
        with load(path) as model:
            assert any(OTHER in note for note in model.learn_many(text).warnings) == warned


weighted = st.lists(st.tuples(st.sampled_from([1, 2, 3, 4, math.nan]), st.sampled_from([1.0, 1.0, 1.0, 0.5, 2.0])))


@given(weighted, st.integers(0, 3), st.lists(st.integers(0, 30)))
def test_the_first_line_with_another_weight_is_found_in_any_batches(lines, listed, cuts):
    label = np.array([label for label, _ in lines], float)
    seen = listed
    for i, class_number in enumerate(label):  # names get their numbers as they come
        if not math.isnan(class_number):
            label[i] = min(class_number, seen + 1)
            seen = max(seen, int(label[i]))
    weight = np.array([weight for _, weight in lines], np.float32)
    start = int(np.argmax(weight != 1)) if (weight != 1).any() else len(lines)
    first: dict[float, float] = {}
    wanted = None
    for i, (class_number, example_weight) in enumerate(zip(label.tolist(), weight.tolist(), strict=True)):
        if math.isnan(class_number) or (
            i < start and class_number <= listed
        ):  # what is compared begins with the first weight
            continue
        if first.setdefault(class_number, example_weight) != example_weight:
            wanted = i, first[class_number]
            break
    name_weights, names = NameWeights(listed), listed
    edges = [0, *sorted(min(cut, len(lines)) for cut in cuts), len(lines)]
    result = None
    for low, high in itertools.pairwise(edges):
        count = int(np.fmax.reduce(label[low:high], initial=names))
        if not name_weights.can_skip(weight[low:high]):
            row, earlier_weight = name_weights.compare(label[low:high], weight[low:high], names, count)
            result = (low + row, earlier_weight) if row >= 0 else result
        names = count
    assert result == wanted
    assert name_weights.differs == (wanted is not None)
