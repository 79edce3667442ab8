"""`xclass shrink`: sizes, errors before and after, which weights go, and what it refuses."""

import json
import os
import re

import numpy as np
import pytest
from command import Result, learn, xclass
from streams import multiclass, of_kind
from variants import AT_THE_END, BITS, BY_NAME, KINDS, K, chosen, every_variant, words_of

from xclass import shrinking
from xclass.api import model_contents
from xclass.model import compact_columns, model_file

pytestmark = pytest.mark.usefixtures("place")


def stream(name: str, seed: int, n: int) -> str:
    return of_kind(KINDS[name], seed, K, n)


def rich(seed: int, n: int) -> str:
    """Lines with many words, of which some depend on the class."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(n):
        c = int(rng.integers(1, K + 1))
        words = [f"c{c}.{w}" for w in rng.integers(0, 150, 4)] + [f"n{w}" for w in rng.integers(0, 400, 6)]
        made.append(f"{c} | {' '.join(words)}\n")
    return "".join(made)


def shrink(*args) -> Result:
    """The result of the subcommand, which has to succeed."""
    result = xclass("shrink", *args)
    assert result.status == 0, result.err
    return result


def numbers(text: str) -> np.ndarray:
    """Return the predictions in a text, those of lists of labels as they are."""
    words = [line.split(" ")[0] for line in text.splitlines()]
    return np.array(words if any("," in word for word in words) else [float(word) for word in words])


@pytest.mark.sampled(4)
@every_variant(names=[name for name in BY_NAME if name not in AT_THE_END])
def test_sixteen_bits_predict_nearly_the_same(place, name, options):
    train, test = stream(name, 1, 150), stream(name, 2, 60)
    learn(*chosen(name), *BITS, *words_of(options), "--quiet", "-f", "m", stdin=train)
    shrink("m", "-f", "s", "--bits", 16)
    shrink("m", "-f", "again", "--bits", 16)
    assert (place / "s").read_bytes() == (place / "again").read_bytes()
    assert (place / "s").stat().st_size < (place / "m").stat().st_size
    before, after = (
        numbers(learn("-i", model, "-t", "-p", "stdout", "--quiet", stdin=test).out) for model in ("m", "s")
    )
    if name == "scalar":
        assert np.abs(before - after).max() < 0.01 * np.abs(before).max()
    else:
        assert np.mean(before != after) <= 0.05
    result = xclass("-i", "s", stdin=train)
    assert result.status == 2
    assert "-i s: this model was shrunk, or saved with --predict_only_model" in result.err


@pytest.mark.parametrize(
    "args", [("--oaa", K, "-b", 18), ("--multiclass", K), ("--multilabel",), ("--cpt", K), ("--recall_tree", K)]
)
def test_a_quarter_of_the_bytes_is_the_default(place, args):
    (place / "test.vw").write_text(rich(2, 300))
    learn(*args, "--quiet", "-f", "m", stdin=rich(1, 3000))
    result = shrink("m", "-f", "s", "-d", "test.vw")
    sizes = [os.path.getsize(name) for name in ("m", "s")]
    kept, weights = (int(n.replace(",", "")) for n in re.search(r"([0-9,]+) of ([0-9,]+) weights", result.err).groups())
    assert kept >= weights / 4
    assert sizes[1] <= sizes[0] / 4 or kept < 0.251 * weights
    before, after = map(float, re.search(r"error on test.vw: ([0-9.]+) before, ([0-9.]+) after", result.err).groups())
    assert after <= before + 0.02
    learn("-i", "m", "-t", "-d", "test.vw", "--summary", "m.json", "--quiet")
    tested = learn("-i", "s", "-t", "-d", "test.vw", "--summary", "s.json").err
    assert f"average loss = {after:.6f}" in tested
    p = re.search(r"p = ([^ ]+) by McNemar's test", result.err)[1]
    assert learn("compare", "m.json", "s.json", "--alpha", 0).lines[2].split()[-1] == p
    if args[0] in ("--multiclass", "--cpt"):  # whose test runs have a log loss without being asked
        log_loss = re.search(r"log loss on test.vw: ([0-9.]+) before, ([0-9.]+) after", result.err)[2]
        found = json.loads((place / "s.json").read_text())["figures"]["log_loss"]
        assert float(log_loss) == pytest.approx(found, rel=1e-3)


@pytest.mark.parametrize("args", [("--oaa", K, "-b", 14), ("--cpt", K, "-b", 12)])
def test_a_size_is_kept(place, args):
    learn(*args, "--quiet", "-f", "m", stdin=rich(1, 1500))
    whole = os.path.getsize("m")
    fewest = None
    for part in (1.5, 2, 4, 6, 8):
        size = int(whole / part)
        result = xclass("shrink", "m", "-f", "s", "--size", size)
        if result.status == 2:
            assert "does not fit" in result.err
            assert fewest is not None
            break
        assert os.path.getsize("s") <= size
        kept = int(re.search(r"([0-9,]+) of [0-9,]+ weights", result.err)[1].replace(",", ""))
        assert fewest is None or kept <= fewest
        fewest = kept


def test_the_least_salient_weights_go(place):
    learn("--oaa", K, "-b", 12, "--quiet", "-f", "m", stdin=multiclass(1, K, 400))
    whole = model_contents.load("m").arrays
    small = shrinking.shrunk("m", keep=0.25).contents.arrays
    tables = shrinking.tables_of(whole, whole)
    (table,) = tables
    saliency = np.abs(np.asarray(table.column)) * np.sqrt(
        np.asarray(whole["weights.g"])[np.searchsorted(np.asarray(whole["weights.index"]), table.slot)]
    )
    rows = np.asarray(compact_columns.expanded(small)["weights.index"])
    gone = ~np.isin(table.slot, rows)
    assert len(rows) == -(-len(table.slot) // 4)
    assert saliency[gone].max() <= saliency[~gone].min()


def test_a_model_without_sums_loses_its_smallest_weights(place):
    learn("--oaa", K, "-b", 12, "--quiet", "-f", "m", "--predict_only_model", stdin=multiclass(1, K, 400))
    whole = model_contents.load("m").arrays
    small = compact_columns.expanded(shrinking.shrunk("m", keep=0.5, bits=16).contents.arrays)
    w, rows = np.asarray(whole["weights.w"]), np.asarray(whole["weights.index"])
    gone = ~np.isin(rows, np.asarray(small["weights.index"]))
    assert gone.any()
    assert np.abs(w[gone]).max() <= np.abs(w[~gone]).min()


def test_at_least_a_quarter_of_the_weights_is_kept_by_default(place):
    learn("--oaa", 3, "-b", 10, "--quiet", "-f", "m", stdin=multiclass(1, 3, 60))
    result = shrink("m", "-f", "s")  # the header alone takes more than a quarter
    kept, weights = (int(n) for n in re.search(r"([0-9]+) of ([0-9]+) weights, in 4 bits", result.err).groups())
    assert kept == -(-weights // 4)


def test_a_shrunk_model_can_be_shrunk_again(place):
    learn("--multiclass", K, "-b", 12, "--quiet", "-f", "m", stdin=multiclass(1, K, 600))
    shrink("m", "-f", "a", "--bits", 8)
    shrink("a", "-f", "b", "--bits", 4)
    assert os.path.getsize("b") < os.path.getsize("a") < os.path.getsize("m")
    assert learn("-i", "b", "-t", "-p", "stdout", "--quiet", stdin="|w a").out


def test_names_of_classes_stay(place):
    data = "tea | kettle leaf\ncoffee | bean mill\n" * 20
    learn("--oaa", 2, "-b", 10, "--quiet", "-f", "m", stdin=data)
    shrink("m", "-f", "s", "--bits", 8)
    assert learn("-i", "s", "-t", "-p", "stdout", "--quiet", stdin="| bean\n| leaf\n").out == "coffee\ntea\n"


def test_what_is_refused(place):
    learn("--oaa", 3, "-b", 10, "--quiet", "-f", "m", stdin=multiclass(1, 3, 60))
    learn("--softmax_tree", 3, "--normalize_features", "unit", "--quiet", "-f", "tree", stdin=multiclass(1, 3, 60))
    (place / "unlabelled.vw").write_text("| a\n| b\n")
    before = (place / "m").read_bytes()
    for args, status, message in (
        (("m", "-f", "s", "--size", "1K"), 2, "the model does not fit into 1,000 bytes: it takes up to"),
        (("m", "-f", "s", "--size", "1K", "--keep", "0.5"), 2, "give a larger --size or a smaller --keep"),
        (("m", "-f", "s", "--keep", "2"), 2, "--keep"),
        (("m", "-f", "s", "--format", "csv"), 2, "--format has no effect"),
        (("m", "-f", "s", "-d", "missing.vw"), 1, "missing.vw"),
        (
            ("tree", "-f", "s"),
            1,
            "tree: a model of --softmax_tree has no weight tables to shrink, and this one has nothing",
        ),
    ):
        result = xclass("shrink", *args)
        assert (result.status, message in result.err, "Traceback" in result.err) == (status, True, False), (
            args, result.status, result.err,
        )  # fmt: skip
        assert not (place / "s").exists()
    assert (place / "m").read_bytes() == before


def test_it_is_quiet_if_asked(place):
    learn("--oaa", 3, "-b", 10, "--quiet", "-f", "m", stdin=multiclass(1, 3, 60))
    result = shrink("m", "-f", "s", "--quiet")
    assert (result.out, result.err) == ("", "")


def test_the_file_is_one_of_the_second_version(place):
    learn("--oaa", 3, "-b", 10, "--quiet", "-f", "m", stdin=multiclass(1, 3, 60))
    shrink("m", "-f", "s", "--bits", 8)
    arrays = model_file.load("s").arrays
    assert {"weights.code", "weights.scale"} <= set(arrays)
    assert not {"weights.w", "weights.g", "weights.n", "weights.index", "weights.sums"} & set(arrays)
