"""Tables in compact form: what is read back, and what is refused."""

import numpy as np
import pytest
from command import learn, xclass
from streams import multiclass

from xclass.errors import ModelError
from xclass.kernels import tagged_format
from xclass.model import compact_columns, model_file, stored_arrays


def table(n: int, slots: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Weights and rising slots of some rows."""
    rng = np.random.default_rng(seed)
    return rng.laplace(0, 1, n).astype(np.float32), np.sort(rng.choice(slots, n, replace=False)).astype(np.uint32)


@pytest.mark.parametrize("bits", [4, 8, 16])
@pytest.mark.parametrize(
    ("n", "slots", "rows"),
    [(0, 16, "in_use"), (1, 5000, "gap"), (63, 64, "in_use"), (129, 200, "in_use"), (999, 90000, "gap")],
)
def test_weights_come_back_within_half_a_step_of_their_block(bits, n, slots, rows):
    w, index = table(n, slots)
    arrays = compact_columns.compacted("t", w, index, int(index[-1]) + 1 if n else 0, bits)
    if n:
        assert f"t.{rows}" in arrays
    stored = sum(array.nbytes for array in arrays.values())
    assert stored <= compact_columns.most_bytes(n, int(index[-1]) + 1 if n else 0, bits, False)
    read = compact_columns.expanded(arrays)
    assert np.asarray(read["t.index"]).tolist() == index.tolist()
    back = np.asarray(read["t.w"])
    assert back.dtype == np.float32
    for i in range(0, n, compact_columns.BLOCK):
        block, largest = slice(i, i + compact_columns.BLOCK), np.abs(w[i : i + compact_columns.BLOCK]).max()
        assert np.abs(back[block] - w[block]).max() <= largest / (2 ** (bits - 1) - 1) * 0.5001


@pytest.mark.parametrize("n", [0, 1, 7, 8, 1001])
def test_words_keep_their_tags(n):
    rng = np.random.default_rng(n)
    words = rng.integers(0, 2**32, n, dtype=np.uint32)
    words = words & ~np.uint32(0b11000 << 26) | np.uint32(1 << 30)  # weights of moderate size
    index = np.sort(rng.choice(4 * n + 1, n, replace=False)).astype(np.uint32)
    read = compact_columns.expanded(compact_columns.compacted("t", words, index, 4 * n + 1, 16))
    back = np.asarray(read["t.word"])
    assert back.dtype == np.uint32
    assert (back & tagged_format.TAG_MASK).tolist() == (words & tagged_format.TAG_MASK).tolist()
    assert np.asarray(read["t.index"]).tolist() == index.tolist()
    before, after = compact_columns.weights(words), compact_columns.weights(back)
    step = np.abs(before).max(initial=0) / (2**15 - 1)
    assert (np.abs(after - before) <= step + np.abs(before) / 2**7).all()


@pytest.mark.parametrize(("used", "form"), [(3, "index"), (900, "in_use")])
def test_a_column_that_is_the_same_in_all_rows_in_use_is_stored_once(used, form):
    w, index = table(used, 1000)
    planes = {"w": np.zeros(1000, np.float32), "n": np.zeros(1000, np.float32)}
    planes["w"][index], planes["n"][index] = w, 1
    stored = compact_columns.packed(stored_arrays.pack_table("t", planes))
    assert {name: len(array) for name, array in stored.items()} == {
        "t.w": used, "t.n.each": 1, f"t.{form}": used if form == "index" else 125
    }  # fmt: skip
    for source in (stored_arrays.pack_table("t", planes), compact_columns.expanded(stored)):
        back = {name: np.zeros_like(plane) for name, plane in planes.items()}
        seen: list[tuple[str, int]] = []

        def note(name, piece, seen=seen):
            seen.append((name, len(piece)))

        stored_arrays.unpack_table("t", source, back, note)
        assert all((back[name] == plane).all() for name, plane in planes.items())
        assert seen == [("n", 1), ("w", used)]
    for broken, message in (
        ({"t.n.each": np.ones(2, np.float32)}, "'t.n.each'"),
        ({"t.n": np.ones(used, np.float32)}, "'t.n' .*in two forms"),
        ({"t.index": index, "t.in_use": np.zeros(125, np.uint8)}, "'t.index' .*in two forms"),
        ({f"t.{form}": None}, "no row numbers"),
    ):
        arrays = {name: array for name, array in {**stored, **broken}.items() if array is not None}
        with pytest.raises(ModelError, match=message):
            compact_columns.expanded(arrays)


def test_more_rows_than_are_decoded_at_a_time():
    n = compact_columns.PIECE_ROWS + 100
    w, index = table(n, 3 * n)
    read = compact_columns.expanded(compact_columns.compacted("t", w, index, 3 * n, 8))
    assert [len(piece) for piece in read["t.w"].pieces()] == [compact_columns.PIECE_ROWS, 100]
    assert np.abs(np.asarray(read["t.w"]) - w).max() < 0.1


def test_infinite_weights_become_large_ones():
    w = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    arrays = compact_columns.compacted("t", w, np.arange(4, dtype=np.uint32), 4, 8)
    assert np.isfinite(np.asarray(compact_columns.expanded(arrays)["t.w"])).all()


# -- models from strangers

K = 9
VARIANTS = {
    "oaa": ("--oaa", K, "-b", 7),
    "oaa few": ("--oaa", K, "-b", 18),
    "cpt": ("--cpt", K, "-b", 10),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A shrunk model of every variant, by name."""
    place, models = tmp_path_factory.mktemp("models"), {}
    for name, words in VARIANTS.items():
        learn(*words, "--quiet", "-f", "m", stdin=multiclass(3, K, 150), cwd=place)
        assert xclass("shrink", "m", "-f", "s", "--bits", 8, "--quiet", cwd=place).status == 0
        model = model_file.load(place / "s")
        models[name] = model_file.Model(
            model.options, model.facts, {key: np.array(array) for key, array in model.arrays.items()}
        )
    return models


def put(key, at, value):
    def edit(arrays):
        arrays[key][at] = value

    return edit


def make(key, change):
    def edit(arrays):
        arrays[key] = change(arrays[key])

    return edit


EDITS = [  # variant, what is changed, what the message names
    ("oaa", lambda arrays: arrays.pop("weights.code"), "'weights.code'"),
    ("oaa", lambda arrays: arrays.pop("weights.in_use"), "'weights.gap'"),
    ("oaa", lambda arrays: arrays.pop("weights.scale"), "'weights.w'"),
    ("oaa", make("weights.code", lambda a: a[:-1]), "'weights.code'"),
    ("oaa", make("weights.code", lambda a: a.astype(np.int32)), "'weights.code'"),
    ("oaa", make("weights.code", lambda a: a.astype(np.uint8)), "'weights.code'"),
    ("oaa", make("weights.scale", lambda a: a[:-1]), "'weights.scale'"),
    ("oaa", make("weights.scale", lambda a: a.astype(np.float64)), "'weights.scale'"),
    ("oaa", put("weights.scale", 0, np.nan), "'weights.scale'"),
    ("oaa", put("weights.scale", 0, np.inf), "'weights.scale'"),
    ("oaa", put("weights.scale", 0, -1), "'weights.scale'"),
    ("oaa", make("weights.in_use", lambda a: a[:-9]), "'weights.code'"),
    ("oaa", make("weights.in_use", lambda a: np.append(np.zeros(2**10, np.uint8), a)), "'weights.index'"),
    ("oaa", lambda arrays: arrays.update({"weights.index": np.zeros(3, np.uint32)}), "'weights.index'"),
    ("oaa", lambda arrays: arrays.update({"weights.w": np.zeros(3, np.float32)}), "'weights.w'"),
    ("oaa", lambda arrays: arrays.update({"weights.gap": np.zeros(3, np.uint8)}), "'weights.gap'"),
    ("oaa", lambda arrays: arrays.update({"weights.tag": np.zeros(3, np.uint8)}), "'weights.tag'"),
    ("oaa", lambda arrays: arrays.update({"other.scale": np.zeros(0, np.float32)}), "'other.gap'"),
    ("oaa few", make("weights.gap", lambda a: np.append(a, np.uint8(255))), "'weights.gap'"),
    ("oaa few", make("weights.gap", lambda a: np.append(np.full(2**12, 255, np.uint8), a)), "'weights.index'"),
    ("oaa few", make("weights.gap", lambda a: np.append(np.full(2**25, 255, np.uint8), a)), "'weights.gap'"),
    ("oaa few", make("weights.gap", lambda a: a[:, None]), "'weights.gap'"),
    ("cpt", lambda arrays: arrays.pop("weights.0.tag"), "'weights.0."),
    ("cpt", make("weights.0.tag", lambda a: a[:-1]), "'weights.0.tag'"),
    ("cpt", make("weights.0.tag", lambda a: a.astype(np.uint16)), "'weights.0.tag'"),
]


@pytest.mark.parametrize(("variant", "edit", "named"), EDITS)
def test_what_does_not_fit_is_refused(models, tmp_path, variant, edit, named):
    model = models[variant]
    arrays = {key: array.copy() for key, array in model.arrays.items()}
    edit(arrays)
    model_file.save(tmp_path / "m", options=model.options, facts=model.facts, arrays=arrays)
    result = xclass("-i", "m", "-t", "--quiet", stdin=multiclass(4, K, 5), cwd=tmp_path)
    assert result.status == 1
    assert named in result.err
    assert "Traceback" not in result.err


def test_compact_weights_are_no_model_that_learns(models, tmp_path):
    model = models["oaa"]
    facts = {**model.facts, "counters": {"features": 1}}
    model_file.save(tmp_path / "m", options=model.options, facts=facts, arrays=model.arrays)
    result = xclass("-i", "m", "-t", "--quiet", stdin=multiclass(4, K, 5), cwd=tmp_path)
    assert result.status == 1
    assert "counters" in result.err


def test_random_changes_give_predictions_or_messages(models, tmp_path):
    rng = np.random.default_rng(5)
    for variant, model in models.items():
        for _ in range(12):
            arrays = {key: array.copy() for key, array in model.arrays.items()}
            key = rng.choice([key for key in arrays if key.rsplit(".", 1)[-1] in compact_columns.COMPACT])
            raw = arrays[key].view(np.uint8)
            raw[rng.integers(0, len(raw), 3)] = rng.integers(0, 256, 3)
            model_file.save(tmp_path / "m", options=model.options, facts=model.facts, arrays=arrays)
            result = xclass("-i", "m", "-t", "-p", "stdout", "--quiet", stdin=multiclass(4, K, 5), cwd=tmp_path)
            assert result.status in (0, 1), (variant, key, result.err)
            assert "Traceback" not in result.err


def test_files_with_compact_tables_have_the_second_version(models, tmp_path):
    for name, version in (("compact", b'"version":"2"'), ("plain", b'"version":"1"')):
        model = models["oaa"]
        arrays = model.arrays if name == "compact" else {"a": np.zeros(3)}
        model_file.save(tmp_path / name, options=model.options, facts=model.facts, arrays=arrays)
        assert version in (tmp_path / name).read_bytes()
    data = (tmp_path / "plain").read_bytes().replace(b'"version":"1"', b'"version":"3"')
    (tmp_path / "plain").write_bytes(data)
    with pytest.raises(ModelError):
        model_file.load(tmp_path / "plain")
