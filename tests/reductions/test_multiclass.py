"""The reduction for users who name none: what it stands for, and which data it is taken for."""

import gzip

import pytest
import streams
from command import learn, start_process
from command import xclass as run
from hypothesis import given
from hypothesis import strategies as st
from library import state_of

import xclass
from xclass.data.batch import HIGHEST_LABEL
from xclass.text import label_detection

CHOSEN = "learning classes, as with --multiclass"


def classes(*lines: bytes) -> bool | None:
    labels = label_detection.LabelDetector()
    for line in lines:
        labels.add(line)
    labels.end()
    return labels.classes


# -- labels


@pytest.mark.parametrize(
    ("lines", "are_classes"),
    [
        ([b"1 | a", b"2 | b", b"3 | c"], True),
        ([b"\xef\xbb\xbf1 | a", b"2 | b", b"3 | c"], True),  # a byte order mark is not part of the label
        ([b"1 2.5 'tag| a", b"30000 | b", b"7 0.5 | c"], True),
        ([b"1 | a", b"2 | b", b"1 | c"], False),  # two classes, or counts
        ([b"1 | a", b"-1 | b"], False),
        ([b"0 | a", b"1 | b", b"2 | c"], False),
        ([b"1 | a", b"2 | b", b"3.5 | c"], False),
        ([b"| a", b"tag| a", b"'3 | a"], False),  # no labels
        ([b"5| a", b"6| b", b"7| c", b"8| d"], False),  # a word that touches the bar is a tag
        ([b"1 | a", b"2 | b", b"3000000000 | c"], True),  # names
        ([], False),
    ],
)
def test_class_labels_are_recognised(lines, are_classes):
    assert classes(*lines) is are_classes


@given(st.lists(st.integers(1, HIGHEST_LABEL), min_size=3, unique=True), st.integers(0, 50))
def test_any_three_whole_numbers_are_classes(labels, unlabelled):
    assert classes(*[b"| x"] * unlabelled, *(b"%d | x" % label for label in labels))


@given(st.lists(st.integers(1, 9), max_size=20), st.floats(-1e6, 0.99) | st.just(1.5))
def test_one_label_that_is_no_class_is_enough(before, other):
    assert classes(*(b"%d | x" % label for label in before), b"%r | x" % other, b"1 | x", b"2 | x", b"3 | x") is False


def test_only_the_first_labels_are_examined():
    labels = label_detection.LabelDetector()
    for i in range(label_detection.MAX_LABELS):
        assert labels.classes is None
        labels.add(b"%d | x" % (i + 1))
    assert labels.classes
    labels.add(b"-1 | x")
    assert labels.classes
    quiet = label_detection.LabelDetector()
    for _ in range(label_detection.MAX_LINES):
        quiet.add(b"| x")
    assert quiet.classes is False


# -- what it stands for


@pytest.fixture(scope="module")
def text() -> str:
    return streams.multiclass(3, 12, 400)


def learned(text: str, reduction: str, classes: int | None = None, **options) -> tuple:
    """All that a learner holds after it has learned a text."""
    with xclass.Learner(reduction, classes, bits=16, **options) as model:
        model.learn_many(text)
        return state_of(model)


def test_preset_stands_for_ordinary_options(text):
    assert learned(text, "multiclass", 12) == learned(text, "cpt", 12, trees=4, rerank=True)
    assert learned(text, "multiclass") == learned(text, "multiclass", 0)
    few = learned(text, "multiclass", 12, trees=2, candidates=3)
    assert few == learned(text, "cpt", 12, trees=2, rerank=True, candidates=3)
    assert few != learned(text, "multiclass", 12)


# -- runs of the command


def test_multiclass_is_the_same_named_or_detected(tmp_path, text):
    (tmp_path / "d.vw").write_text(text)
    learn("d.vw", "-b", 16, "-f", "counted", "--cpt", 0, "--trees", 4, "--rerank", cwd=tmp_path)
    learn("-b", 16, "--multiclass", "-f", "unknown", "d.vw", cwd=tmp_path)
    learn("-b", 16, "-f", "alone", "--multiclass", "d.vw", cwd=tmp_path)  # what follows is the data
    learn("d.vw", "-b", 16, "-f", "nothing", cwd=tmp_path)
    assert len({(tmp_path / name).read_bytes() for name in ("counted", "unknown", "alone", "nothing")}) == 1
    result = learn("d.vw", "-b", 16, "--multiclass", 12, "--trees", 2, "--candidates", 3, cwd=tmp_path)
    assert "Trees: 2, " in result.err and "Candidates: 3 per tree" in result.err


def test_files_pipes_and_compressed_files_are_told_alike(tmp_path, text):
    (tmp_path / "d.vw").write_text(text)
    (tmp_path / "d.vw.gz").write_bytes(gzip.compress(text.encode()))
    run = ("-b", 16, "-p", "stdout")
    file, packed = learn("d.vw", *run, cwd=tmp_path), learn("d.vw.gz", *run, cwd=tmp_path)
    pipe = learn(*run, stdin=text)
    assert file.out == packed.out == pipe.out
    assert len(file.lines) == 400
    for result in (file, packed, pipe):
        assert CHOSEN in result.err
        assert "label not proposed (routing error)" in result.err
        assert "label proposed, not chosen (scoring error)" in result.err


def test_a_pipe_loses_nothing_however_it_arrives(text):
    whole = learn("-b", 16, "-p", "stdout", stdin=text)
    child = start_process("-b", 16, "-p", "stdout")
    lines = text.splitlines(keepends=True)
    for line in (*lines[:3], "".join(lines[3:])):
        child.stdin.write(line.encode())
        child.stdin.flush()
    out, _ = child.communicate(timeout=120)
    assert out.decode() == whole.out


def test_numbers_are_learned_as_before():
    text = "".join(f"{y} |f a:{y} b\n" for y in (0.5, 1, -2, 3, 4, 5) * 10)
    result = learn("-p", "stdout", stdin=text)
    assert CHOSEN not in result.err
    assert result.out == learn("-p", "stdout", "--loss_function", "squared", stdin=text).out


@pytest.mark.parametrize(
    "words",
    [
        ("--loss_function", "squared"),
        ("--sgd",),
        ("--vw_exact",),
        ("--binary", "--loss_function", "squared"),
        ("-t",),
    ],
)
def test_options_of_the_scalar_learner_prevent_multiclass(tmp_path, words):
    result = learn(*words, stdin="1 | a\n2 | b\n3 | c\n" * 9, cwd=tmp_path)
    assert CHOSEN not in result.err
    assert "cpt:" not in result.err


def test_options_of_classes_select_multiclass():
    for words in (("--trees", 2), ("--top_k", 2), ("--named_labels", "a,b")):
        text = "a | x\nb | y\n" if words[0] == "--named_labels" else "1 | x\n2 | y\n"
        result = learn("-b", 12, *words, stdin=text)
        assert "Candidates: 5 per tree and 8 from the index; one scorer per class decides" in result.err


def test_a_resumed_model_keeps_its_reduction(tmp_path, text):
    for reduction in ("multiclass", "recall_tree"):
        with xclass.Learner(reduction, 12, bits=14) as model:
            model.learn_many(text)
            model.save(tmp_path / reduction)
    for words in ((), ("--multiclass",)):
        assert "Trees: 4, " in learn("-i", "multiclass", *words, stdin=text, cwd=tmp_path).err
    result = run("-i", "recall_tree", "--multiclass", stdin=text, cwd=tmp_path)
    assert result.status == 2
    assert "--multiclass disagrees with recall_tree, which was trained with --recall_tree 12" in result.err


def test_preview_of_a_refused_run_is_not_used_by_the_next():
    refused = run(
        "--trees", 4, "--tree_noise", 1, "--candidates", 3, "--candidate_cut", 7, stdin="1 | a\n2 | b\n3 | c\n"
    )
    assert refused.status == 2
    words = ("--cpt", 3, "-b", 12, "--named_labels", "x,y", "-p", "stdout", "--quiet")
    assert len(learn(*words, stdin="x | a\ny | b\n").lines) == 2


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("012012", "the first labels are whole numbers, one of them 0: learning numbers, as VW does; classes are"),
        ("120312", "labels are whole numbers, one of them 0: learning numbers, as VW does; classes are counted from"),
        (
            "121212",
            "labels are two whole numbers: learning numbers, as VW does; to learn two classes, give --multiclass",
        ),
        ("111111", ""),
        ("0101", ""),
    ],
)
def test_labels_that_may_have_been_meant_as_classes_are_pointed_out(labels, message, tmp_path):
    text = "".join(f"{y} | a{y}\n" for y in labels)
    (tmp_path / "d").write_text(text)
    result = learn("d", cwd=tmp_path)
    assert message in result.err if message else "labels are" not in result.err
    if labels[0] != "0":  # a pipe is not delayed
        assert message in learn(stdin=text).err
    assert "labels are" not in learn("--loss_function", "squared", stdin=text).err
    assert "labels are" not in learn("--quiet", stdin=text).err
    named = learn("--multiclass", "--named_labels", "0,1,2,3", "-b", 12, "-p", "stdout", stdin=text)
    assert set(named.lines) <= {"0", "1", "2", "3"} | {""}


def test_numbers_that_begin_like_classes_are_not_taken_for_them(tmp_path):
    (tmp_path / "d").write_text("".join(f"{y} | a\n" for y in (3, 7, 0, -2, 1.5)))
    assert "labels are" not in learn("d", cwd=tmp_path).err


def test_a_class_0_is_told_where_classes_begin():
    result = run("--multiclass", "-b", 12, stdin="1 | a\n0 | b\n")
    assert result.status == 1
    assert "stdin:2:1: label 0 is outside 1..2147483648 (--multiclass); classes are counted from 1; add " in result.err
