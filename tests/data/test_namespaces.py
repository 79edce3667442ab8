"""Namespaces left out, n-grams, interactions of all kinds: features and predictions against VW."""

import random

import numpy as np
import pytest
import streams
from command import learn, xclass
from versus import needs_vw, run_vw

from xclass.api.learner import Learner, load
from xclass.data import interactions, namespaces
from xclass.data.batch import CONSTANT_GROUP
from xclass.explain import feature_names
from xclass.text import parser


def batch_of(text: str, **options) -> tuple:
    data = text.encode()
    padded = np.zeros(len(data) + parser.PADDING, np.uint8)
    padded[: len(data)] = np.frombuffer(data, np.uint8)
    read = parser.ParserOptions(on_bad_line="vw", **options)
    return parser.Parser(read, 18, "simple").parse(padded, len(data), "data")[0], read


def vw(text: str, *args: str, folder) -> tuple[list[str], str, str]:
    """Predictions, table and audit of VW."""
    (folder / "data").write_text(text)
    result = run_vw("-d", "data", "-p", "p", "-P", "1", *args, cwd=folder)
    return (folder / "p").read_text().splitlines(), result.err, result.out


def run_xclass(text: str, *args: str, folder) -> tuple[list[str], str, str]:
    (folder / "data").write_text(text)
    result = learn("--vw_exact", "-d", "data", "-p", "ours", "-P", "1", *args, cwd=folder)
    return (folder / "ours").read_text().splitlines(), result.err, result.out


def features_shown(table: str) -> list[int]:
    """The last column of the progress table."""
    rows = [line.split() for line in table.splitlines()]
    return [int(row[-1]) for row in rows if len(row) == 7 and row[2].isdigit()]


def assert_same_predictions(actual: list[str], expected: list[str]) -> None:
    assert len(actual) == len(expected)
    for line, expected_line in zip(actual, expected, strict=True):
        assert line.split()[1:] == expected_line.split()[1:]
        assert abs(float(line.split()[0]) - float(expected_line.split()[0])) < 2e-3 * max(
            1.0, abs(float(expected_line.split()[0]))
        )


COMMANDS = [
    "--ignore a",
    "--ignore a --ignore bw",
    "--keep a --keep \\x62",
    "--ignore b --keep ab",
    "--keep c --noconstant",
    "--ngram 2",
    "--ngram 3 --skips 1",
    "--ngram a2 --ngram w3 --skips w2",
    "--ngram 4 --ngram a1 --skips 2 --skips b0",
    "--ngram 2 --ignore b -q aw",
    "--ignore_linear a -q ab",
    "--ignore_linear aw --ignore b --cubic aac --ngram 2",
    "--ignore_linear a -q :: --noconstant",
    "-q aa --permutations",
    "--cubic aab --permutations",
    "--interactions aaaw --permutations -q ab",
    "-q ab -q ba --leave_duplicate_interactions",
    "-q :: --leave_duplicate_interactions",
    "-q a: -q :a --leave_duplicate_interactions --permutations",
    "--cubic aba -q bb -q bb --leave_duplicate_interactions",
]


@pytest.mark.sampled(2)
@needs_vw
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("command", COMMANDS)
def test_predictions_and_feature_numbers_are_vws(command, seed, tmp_path):
    text = streams.namespaces(seed * 100 + COMMANDS.index(command), 25, ("1 ", "-1 ", "0.5 2 ", ""))
    wanted, table, _ = vw(text, *command.split(), folder=tmp_path)
    predictions, own_table, _ = run_xclass(text, *command.split(), folder=tmp_path)
    assert_same_predictions(predictions, wanted)
    assert features_shown(own_table) == features_shown(table)


@needs_vw
@pytest.mark.parametrize("reduction", ["--oaa 4", "--recall_tree 4 --max_candidates 2 --max_depth 2", "--ect 4"])
@pytest.mark.parametrize("command", COMMANDS[3::4])
def test_classes_are_vws(command, reduction, tmp_path):
    text = streams.namespaces(COMMANDS.index(command), 40, ("1 ", "2 ", "3 0.5 ", "4 ", ""))
    args = [*reduction.split(), *command.split()]
    wanted, table, _ = vw(text, *args, folder=tmp_path)
    predictions, own_table, _ = run_xclass(text, *args, folder=tmp_path)
    assert predictions == wanted
    assert features_shown(own_table) == features_shown(table)


@pytest.mark.parametrize("seed", range(20))
def test_names_belong_to_the_features(seed):
    """What the walk in Python finds has the indices and values of the kernels, in the same order."""
    rng = random.Random(seed)
    text = streams.namespaces(seed, 12, ("1 ", "1 'tag ", "", "-1 2 ", "1 2 0.5 t"))
    read, options = batch_of(text, hash_seed=rng.choice([0, 0, 7]), hash=rng.choice(["strings", "all"]))
    chosen = namespaces.NamespaceOptions(
        ignore=rng.choice([(), ("b",)]), ngram=rng.choice([(), ("2",), ("a3",)]), skips=rng.choice([(), ("1",)])
    )
    crossed = interactions.InteractionOptions(
        quadratic=rng.choice([(), ("ab",), ("::",)]),
        cubic=rng.choice([(), ("aab",)]),
        permutations=rng.random() < 0.5,
        leave_duplicate_interactions=rng.random() < 0.5,
    )
    namer = feature_names.Namer(options, chosen, crossed, 18)
    crosser = interactions.Crosser(crossed)
    for selected in namespaces.NamespaceTransformer(chosen, constant=True).apply(read):
        for batch in crosser.cross(selected):
            for i in range(batch.n):
                named = namer.of(batch, i)
                places = slice(batch.start[i], batch.start[i + 1])
                assert [feature.hash for feature in named] == batch.index[places].tolist(), seed
                assert np.array_equal(np.array([feature.value for feature in named], np.float32), batch.value[places])


@pytest.mark.parametrize("piece", [1, 7, 30])
def test_pieces_make_the_same_batches(piece):
    text = streams.namespaces(5, 20, ("1 ",))
    read, _ = batch_of(text)
    options = namespaces.NamespaceOptions(ngram=("3",), skips=("1",), ignore=("b",))
    (whole,) = namespaces.NamespaceTransformer(options, constant=True).apply(read)
    pieces = list(namespaces.NamespaceTransformer(options, constant=True, piece=piece).apply(read))
    assert len(pieces) > 1
    assert np.array_equal(np.concatenate([batch.index for batch in pieces]), whole.index)
    assert np.array_equal(np.concatenate([np.diff(batch.start) for batch in pieces]), np.diff(whole.start))
    assert np.array_equal(np.concatenate([batch.group_name for batch in pieces]), whole.group_name)


def test_constant_is_never_left_out():
    read, _ = batch_of("1 |a x y |b z\n1 |\n")
    (batch,) = namespaces.NamespaceTransformer(namespaces.NamespaceOptions(ignore=("\\x80ab",)), constant=True).apply(
        read
    )
    assert np.diff(batch.start).tolist() == [1, 1]
    assert batch.group_name.tolist() == [CONSTANT_GROUP] * 2


def test_grams_come_in_vws_order():
    assert list(namespaces.gram_patterns(2, 0)) == [(1,)]
    assert list(namespaces.gram_patterns(2, 2)) == [(1,), (2,), (3,)]
    assert list(namespaces.gram_patterns(3, 1)) == [(1, 2), (1, 3), (2, 3)]
    assert list(namespaces.gram_patterns(3, 2)) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]


def test_batch_is_passed_on_without_interactions():
    read, _ = batch_of("1 |a x\n")
    chosen = namespaces.NamespaceTransformer(namespaces.NamespaceOptions(), constant=True)
    assert not chosen.active
    assert next(chosen.apply(read)) is read
    assert chosen.linear(read) is read


def test_skips_of_a_namespace_without_grams_are_reported():
    options = namespaces.NamespaceOptions(ngram=("a2", "z1"), skips=("a1", "z1", "1"))
    (note,) = namespaces.NamespaceTransformer(options, constant=True).notes
    assert note.startswith("--skips z1 has no effect: --ngram makes no grams of namespaces that begin with 'z'")


def test_model_remembers_the_features(tmp_path):
    text = streams.namespaces(3, 30, ("1 ", "2 ", "3 ")).replace(":red|", ":red |")
    path = str(tmp_path / "m")
    options = {"ignore": ["b"], "ngram": ["a2"], "skips": ["1"], "ignore_linear": ["w"], "quadratic": ["aw"]}
    with Learner("oaa", 3, indexing=1, permutations=True, **options) as model:
        model.learn_many(text)
        predictions = model.predict_many(text).tolist()
        model.save(path)
    with load(path) as model:
        assert model.predict_many(text).tolist() == predictions
    words = [f"--{name}={value[0]}" for name, value in options.items()]
    (tmp_path / "data").write_text(text)
    learn("-d", "data", "-t", "-i", "m", "-p", "p", "--quiet", *words, cwd=tmp_path)
    assert [int(line) for line in (tmp_path / "p").read_text().split()] == predictions
    result = xclass("-d", "data", "-t", "-i", "m", "--ignore", "a", cwd=tmp_path)
    assert result.status == 2
    assert "disagrees" in result.err
