"""Labels that are names of an unknown list: numbered in order of appearance, and kept in the model."""

import gzip
import io
import os
import random
import re
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from command import learn, start_process, xclass
from hypothesis import given, settings
from hypothesis import strategies as st
from library import state_of

from xclass.api import model_contents
from xclass.api.learner import Learner, load
from xclass.data import class_names
from xclass.errors import DataError, UsageError
from xclass.system import thread_limit
from xclass.text import parser, reader

SMALL = ("-b", 14, "--quiet")


def stream(names: list[str], n: int, seed: int = 1) -> str:
    """Lines labelled with names that the words predict; the first names are more frequent, the last ones occur late."""
    rng = random.Random(seed)
    lines = []
    for i in range(n):
        j = min(int(rng.expovariate(3 / len(names))), len(names) - 1, 2 + i // 2)
        lines.append(f"{names[j]} | w{j} w{rng.randrange(9)}")
    return "".join(line + "\n" for line in lines)


def in_order(text: str) -> list[str]:
    """The names in the order in which they come."""
    return list(dict.fromkeys(line.split(" ")[0] for line in text.splitlines()))


NAMES = ["cat", "dog", "élan", "__label__x", "a:b", "7", "é", "e", "00", "nan"]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", min_codepoint=33, exclude_characters="|,"), min_size=1, max_size=9),
        min_size=1,
    ),
    st.integers(1, 300),
    st.booleans(),
)
def test_names_are_numbered_as_they_come(words, block_bytes, weighted):
    """Whatever they are made of, and wherever blocks end."""
    words = [word for word in words if not word.startswith(("'", "\ufeff"))] or ["x"]
    text = "".join(f"{word} {'2 ' if weighted else ''}| a\n" for word in words).encode()
    number = {name: j for j, name in enumerate(dict.fromkeys(words), 1)}
    names = class_names.Names((), True)
    read = _read(text, names, block_bytes)
    assert read == [number[word] for word in words]
    assert names.names == list(number)


def _read(text: bytes, names, block_bytes: int) -> list[int]:
    batches = reader.Reader(
        reader.ReaderOptions(),
        parser.Parser(parser.ParserOptions(learn_names=True), 14, "multiclass", names=names),
        block_bytes=block_bytes,
        stream=io.BytesIO(text),
    )
    return [int(label) for batch in batches for label in batch.label]


def test_the_table_of_names_grows():
    """Past its first size, with names longer than all its letters."""
    words = [f"{'long' * (j % 7)}-{j}" for j in range(15_000)] + ["x" * 4096]
    names = class_names.Names(("listed", *words[:3]), True)
    text = "".join(f"{word} | a\n" for word in words + words).encode()
    labels = _read(text, names, 1 << 17)
    assert labels == list(range(2, 15_003)) * 2
    assert names.names == ["listed", *words]


def test_names_of_equal_hash_are_told_apart():
    slots, starts = np.array([1, 2, 3, 0], np.int32), np.array([0, 3, 6, 8])
    table = class_names.NameTable(
        slots, np.full(3, 8, np.uint64), starts, np.frombuffer(b"onetwoab", np.uint8), np.zeros(2, np.uint64)
    )
    text = np.frombuffer(b"two one ab  on", np.uint8)
    places = (0, 3), (4, 7), (8, 10), (12, 14)
    cells = [class_names.slot_of(text, low, high, np.uint64(8), table) for low, high in places]
    assert slots[cells].tolist() == [2, 1, 3, 0]


@pytest.mark.parametrize(
    "make",
    [("multiclass",), *((name, 10) for name in ("oaa", "recall_tree", "log_multi", "ect", "softmax_tree"))],
    ids=str,
)
def test_learns_as_if_the_names_had_been_listed(make):
    text = stream(NAMES, 400)
    class_names_listed = ",".join(dict.fromkeys([*in_order(text), *NAMES]))
    outcomes = []
    for options in ({"learn_names": True}, {"named_labels": class_names_listed}):
        with Learner(*make, bits=14, **options) as model:
            outcome = model.learn_many(text)
            model.end_pass()
            outcomes.append((outcome.prediction.tolist(), model.predict_many(text).tolist()))
    assert outcomes[0] == outcomes[1]
    assert set(outcomes[0][1]) <= set(NAMES)


def test_named_labels_are_detected_where_the_first_labels_are_no_numbers(tmp_path):
    text = stream(["cat", "dog"], 20)
    result = learn("-b", 14, "-f", "m", stdin=text, cwd=tmp_path)
    assert (
        "labels are names, the first of them 'cat': learning classes, as with --multiclass --learn_names" in result.err
    )
    result = learn("-b", 14, "--oaa", 2, stdin=text, cwd=tmp_path)
    assert (
        "labels are names, the first of them 'cat': numbered in order of appearance, as with --learn_names"
        in result.err
    )
    (tmp_path / "d").write_text("'tag | x\n| y\n" + text)
    assert "numbered in order of appearance" in learn("-d", "d", "-b", 14, "--oaa", 2, cwd=tmp_path).err
    assert "labels are names" in learn("-d", "d", "-b", 14, "--top_k", 1, cwd=tmp_path).err


@pytest.mark.parametrize("label", ["info", "nancy", "+", "a+b", "infinite"])
def test_names_that_begin_like_numbers(label):
    assert "labels are names" in learn("-b", 14, stdin=f"{label} | a\nx | b\n").err


@pytest.mark.parametrize(
    "first",
    [
        "label | features",
        "1 | a",
        "-1 | a",
        "nan | a",
        "-INF | a",
        ".5 | a",
        "1st | a",
        "cat a b",
        "shared | a",
        "1:0.5 | a",
    ],
)
def test_named_labels_are_not_detected_elsewhere(first):
    for words in ((), ("--oaa", 3)):
        result = xclass("-b", 14, *words, stdin=first + "\n2 | b\n")
        assert "labels are names" not in result.err


def test_a_resumed_model_keeps_its_names(tmp_path):
    lines = stream([*NAMES, "cow", "emu"], 600).splitlines()
    path = str(tmp_path / "half")
    with Learner(bits=14, learn_names=True) as model:
        model.learn_many(lines)
        whole = state_of(model)
    with Learner(bits=14, learn_names=True) as model:
        model.learn_many(lines[:7])
        model.save(path)
    with load(path) as model:
        model.learn_many(lines[7:])
        assert state_of(model) == whole


UNHEARD = "cat | a\nunheard-of | b\ndog | b\nspelt-wrong | c\n"


@pytest.mark.parametrize(
    "reduction",
    [
        "--multiclass", "--cpt 3", "--oaa 3", "--recall_tree 3", "--log_multi 3", "--ect 3", "--random_tree 3",
        "--softmax_tree 3",
    ],
)  # fmt: skip
def test_a_test_run_shows_unknown_names_as_unknown(reduction, tmp_path):
    words = reduction.split()
    learn(*words, *SMALL, "-f", "m", stdin="cat | a\ndog | b\nowl | c\n" * 40, cwd=tmp_path)
    (tmp_path / "d").write_text(UNHEARD)
    for more in ((), ("-c",), ("-c",)):
        result = learn("-t", "-i", "m", "-d", "d", *more, "-p", "p", "-P", 1, cwd=tmp_path)
        assert "average loss = 0.500000" in result.err
        assert (tmp_path / "p").read_text() == "cat\ndog\ndog\nowl\n"
        rows = [line.split()[4:6] for line in result.err.splitlines() if line[:1].isdigit()]
        assert rows == [["cat", "cat"], ["unknown", "dog"], ["dog", "dog"], ["unknown", "owl"]]
    if reduction == "--multiclass":  # a cache made in testing does not make a learner forget a name
        learn("-i", "m", "-d", "d", "-c", "-f", "more", "--quiet", cwd=tmp_path)
        assert _names_of(tmp_path / "more") == ["cat", "dog", "owl", "unheard-of", "spelt-wrong"]


def test_probabilities_and_trees_have_the_names(tmp_path):
    text = "cat | a\ndog | b\nowl | c\n" * 20
    learn("--cpt", 0, *SMALL, "-f", "m", "--save_tree", "tree", stdin=text, cwd=tmp_path)
    assert {line.split()[-1] for line in (tmp_path / "tree").read_text().splitlines()} >= {"cat", "dog", "owl"}
    result = learn("-t", "-i", "m", "--top_k", 3, "-p", "stdout", "--quiet", stdin="| a\n", cwd=tmp_path)
    assert result.out.startswith("cat:") and {"dog", "owl"} <= {pair.split(":")[0] for pair in result.out.split()}
    result = learn("-t", "-i", "m", "--print_tree", "stdout", "--no_stdin", "--quiet", cwd=tmp_path)
    assert "owl" in result.out


def test_a_model_as_text_has_the_names(tmp_path):
    learn("--oaa", 3, *SMALL, "--readable_model", "t", stdin="cat | a\ndog | b\ncat | c\n", cwd=tmp_path)
    assert re.search("^options:.* --named_labels cat,dog --oaa 3$", (tmp_path / "t").read_text(), re.MULTILINE)


@pytest.mark.parametrize("count", [1, 3])
def test_same_bytes_however_data_are_read(count, tmp_path, monkeypatch):
    """From a file in many blocks, from a pipe, through a cache, in two files, parsed by one thread or several."""
    monkeypatch.setattr(thread_limit, "processors", lambda: count)
    text = stream([f"name-{i}" for i in range(300)], 30_000)
    (tmp_path / "d").write_text(text)
    cut = text.index("\n", len(text) // 3) + 1
    (tmp_path / "d1").write_text(text[:cut])
    (tmp_path / "d2").write_text(text[cut:])
    words = ("--random_tree", 300, *SMALL)
    learn("-d", "d", *words, "-f", "file", cwd=tmp_path)
    learn(*words, "-f", "pipe", stdin=text, cwd=tmp_path)
    learn("-d", "d", "-c", *words, "-f", "making", cwd=tmp_path)
    learn("-d", "d", "-c", *words, "-f", "cached", cwd=tmp_path)
    learn("-d", "d1", "-d", "d2", *words, "-f", "two", cwd=tmp_path)
    models = {(tmp_path / name).read_bytes() for name in ("file", "pipe", "making", "cached", "two")}
    assert len(models) == 1


def test_a_checkpoint_has_the_names_learned_and_no_more(tmp_path):
    text = "".join(f"n{i} | w{i}\n" for i in range(200))
    (tmp_path / "d").write_text(text)
    learn("-d", "d", "--oaa", 200, *SMALL, "-f", "m", "--checkpoint", 50, "--examples", 130, cwd=tmp_path)
    assert _names_of(tmp_path / "m") == [f"n{i}" for i in range(130)]
    cut = text.replace("n60 |", "n60 x y |")
    (tmp_path / "d").write_text(cut)
    result = xclass("-d", "d", "--oaa", 200, *SMALL, "-f", "i", cwd=tmp_path)
    assert result.status == 1
    assert _names_of(tmp_path / "i.interrupted") == [f"n{i}" for i in range(60)]


def _names_of(path) -> list[str]:
    return model_contents.load(str(path)).options["named_labels"].split(",")


@pytest.mark.parametrize("reduction", ["--random_tree 60", "--ect 60", "--oaa 60"])
def test_a_class_has_no_name_before_it_is_met(reduction, tmp_path, monkeypatch):
    """However far the reader is ahead of the learner."""
    text = stream([f"n{i}" for i in range(60)], 400)
    outputs = []
    for size in (None, 10, 40 * len(text) // 400):
        if size is not None:
            monkeypatch.setattr(reader, "FIRST_BLOCK", size)
            monkeypatch.setattr(reader, "LARGEST_BLOCK", size)
        outputs.append(learn(*reduction.split(), *SMALL, "-p", "stdout", stdin=text, cwd=tmp_path).lines)
    assert outputs[0] == outputs[1] == outputs[2]
    seen: set[str] = {""}
    for line, predicted in zip(text.splitlines(), outputs[0], strict=True):
        seen.add(line.split()[0])
        assert predicted in seen


def test_names_that_are_not_utf8_in_trees(tmp_path):
    text = b"caf\xe9 | x\nth\xe9 | y\n" * 9
    result = learn(
        "--cpt",
        0,
        *SMALL,
        "-f",
        "m",
        "--save_tree",
        "t",
        "--print_tree",
        "p",
        "--dot_tree",
        "dot",
        stdin=text,
        cwd=tmp_path,
    )
    assert result.err == ""
    assert b"caf\xe9" in (tmp_path / "t").read_bytes()  # is read again; the others are for people
    assert all(b"caf\xe9" not in (tmp_path / name).read_bytes() for name in ("p", "dot"))
    assert b"caf\\xe9" in (tmp_path / "p").read_bytes()
    (tmp_path / "names").write_bytes(b"th\xe9\ncaf\xe9\n")
    words = ("--cpt", 0, *SMALL, "--named_labels", "@names", "--cpt_tree", "t", "-f", "n", "-p", "answers")
    learn(*words, stdin=text, cwd=tmp_path)
    assert (tmp_path / "answers").read_bytes().endswith(b"caf\xe9\nth\xe9\n")


def test_a_tree_that_cannot_be_written_costs_no_model(tmp_path):
    result = xclass("--cpt", 0, *SMALL, "-f", "m", "--save_tree", "/dev/full", stdin="a | x\nb | y\n" * 9, cwd=tmp_path)
    assert result.status == 1 and "/dev/full: the tree cannot be written there" in result.err
    assert learn("-t", "-i", "m", "-p", "stdout", "--quiet", stdin="| x\n", cwd=tmp_path).out == "a\n"


def test_a_given_tree_needs_the_names(tmp_path):
    text = "spam | x\nham | y\n" * 9
    tree = str(tmp_path / "t")
    learn("--cpt", 0, *SMALL, "--save_tree", tree, stdin=text)
    message = (
        "cpt_tree .* has classes whose names are not known before the data is read; list the names with named_labels"
    )
    with pytest.raises(UsageError, match=message):
        Learner("cpt", cpt_tree=tree, learn_names=True)
    with Learner("cpt", bits=14, cpt_tree=tree, named_labels="ham,spam", learn_names=True) as model:
        model.learn_many(text)
        assert model.predict_many(["| x", "| y"]).tolist() == ["spam", "ham"]


def test_a_model_of_the_middle_of_a_run_names_the_classes_placed_before(tmp_path):
    names = [f"n{i}" for i in range(40)]
    lines = [f"{name} | w{name}\n" for name in names]
    (tmp_path / "d").write_text("".join([*lines[:20], "'save_half.model |\n", *lines[20:]]))
    learn("-d", "d", "--cpt", 0, "--cpt_tree", "huffman", *SMALL, "-f", "full.model", cwd=tmp_path)
    assert _names_of(tmp_path / "half.model") == names
    learn("-t", "-i", "half.model", "-d", "d", "--save_tree", "t", "--quiet", cwd=tmp_path)
    assert all(f" {name}\n" in (tmp_path / "t").read_text() for name in names)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("packed", [False, True])
def test_labels_in_a_named_pipe_are_detected_as_in_a_file(tmp_path, packed):
    data, pipe = ("d.gz", "fifo.gz") if packed else ("d", "fifo")
    text = stream(NAMES, 50).encode()
    (tmp_path / data).write_bytes(gzip.compress(text) if packed else text)
    learn("-d", data, *SMALL, "-f", "a", cwd=tmp_path)
    os.mkfifo(tmp_path / pipe)
    words = ("-d", pipe, *SMALL, "--cache_file", "c", "-f", "b", "--quiet")
    with start_process(*words, cwd=tmp_path) as process:
        (tmp_path / pipe).write_bytes((tmp_path / data).read_bytes())
        assert process.wait(timeout=120) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_program_learns_names_from_a_named_pipe_once(tmp_path):
    pipe = tmp_path / "fifo"
    os.mkfifo(pipe)
    with Learner("oaa", classes=3, bits=14) as learner:
        with pytest.raises(UsageError, match=r"passes: 2 are too many for .*fifo, which can be read only once"):
            learner.learn_file(pipe, passes=2)
        with ThreadPoolExecutor(1) as threads:
            writing = threads.submit(pipe.write_text, "a | x\nb | y\n")
            assert learner.learn_file(pipe)["examples"] == 2
            writing.result()
        assert learner.predict_many(["| y"]).tolist() == ["b"]


def test_more_names_than_classes(tmp_path):
    (tmp_path / "d").write_text("a | x\nb | y\n\nc | z\na | x\nd | y\n")
    words = ("-d", "d", "--oaa", 2, "-b", 14, "-f", "m", "-p", "p")
    result = xclass(*words, cwd=tmp_path)
    assert result.status == 1
    assert (
        "d:4:1: label 'c' is a new name, but all classes 1..2 (--oaa 2) have names already; a larger K has room for"
        in result.err
    )
    assert (tmp_path / "p.interrupted").read_text().count("\n") == 2
    result = learn(*words, "--on_bad_line", "skip", cwd=tmp_path)
    assert "2 malformed lines were skipped" in result.err
    assert "d:6:1: label 'd' is a new name, but all classes 1..2" in result.err
    assert (tmp_path / "p").read_text().count("\n") == 3
    assert _names_of(tmp_path / "m") == ["a", "b"]


def test_a_name_with_a_tab_is_refused():
    message = "batch:1:3: label 'a' has a tab or another control character; remove it"
    with Learner("multiclass", bits=14, learn_names=True) as model, pytest.raises(DataError, match=message):
        model.learn_many("x\ta\tb |\n")


def test_every_table_of_names_has_a_key_of_its_own():
    """So nobody can choose names that collide, which would make each search pass all of them."""
    keys = [tuple(class_names.fixed_table(("one", "two")).key.tolist()) for _ in range(3)]
    assert len(set(keys)) == 3
