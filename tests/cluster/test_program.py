"""Programs that learn and predict on a cluster: the model and the predictions are those of the command."""

import re
from pathlib import Path

import numpy as np
import pytest
from command import learn
from streams import multiclass

import xclass
import xclass.ray
from xclass.cluster.program import fitting, predicting
from xclass.errors import ClusterError

FILES = [f"part-{k}.vw" for k in range(4)]
DATA = [word for path in FILES for word in ("-d", path)]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """A folder with four files to run in."""
    monkeypatch.chdir(tmp_path)
    for k, path in enumerate(FILES):
        (tmp_path / path).write_text(multiclass(k, 30, 100, tags=True, unlabelled=0.05))
    return tmp_path


def saved(learner):
    """Return the bytes of the model of a learner."""
    learner.save("saved.bin")
    return Path("saved.bin").read_bytes()


def named(path):
    """Return a file whose labels are names."""
    lines = re.sub(r"^(\d+)", r"class-\1", Path(path).read_text(), flags=re.MULTILINE)
    Path(f"named-{path}").write_text(lines)
    return f"named-{path}"


@pytest.mark.parametrize("more", [{}, {"sync_every": 60}])
def test_the_model_is_that_of_the_command(inline, more):
    every = [word for value in more.values() for word in ("--sync_every", value)]
    learn("--oaa", 30, "-b", 12, "--workers", 2, *every, *DATA, "-f", "command.bin")
    with xclass.Learner("oaa", classes=30, bits=12) as learner:
        assert xclass.ray.fit("part-*.vw", learner, workers=2, **more) is learner
        assert saved(learner) == Path("command.bin").read_bytes()
        with xclass.load("command.bin") as loaded:
            assert learner.average_loss == loaded.average_loss
            assert learner.examples == loaded.examples


def test_labels_that_are_names_are_found_as_by_the_command(inline):
    paths = [named(path) for path in FILES]
    data = (word for path in paths for word in ("-d", path))
    learn("--oaa", 30, "-b", 12, *data, "--workers", 2, "-f", "command.bin")
    with xclass.ray.fit("named-*.vw", xclass.Learner("oaa", classes=30, bits=12), workers=2) as learner:
        assert saved(learner) == Path("command.bin").read_bytes()
        predicted = xclass.ray.predict(paths[1], learner, workers=2)
        with open(paths[1]) as file:
            assert predicted.tolist() == learner.predict_many(file.read()).tolist()
        assert predicted.dtype == object
        assert predicted[0].startswith("class-")


def test_a_learner_continues_from_what_it_has_learned(inline):
    words = ["--sync_every", 40, "--workers", 2]
    learn("--oaa", 30, "-b", 12, "-d", FILES[0], "-f", "first.bin")
    learn("-i", "first.bin", "-d", FILES[1], "-d", FILES[2], "-f", "command.bin", *words)
    with xclass.load("first.bin") as learner:
        xclass.ray.fit(FILES[1:3], learner, workers=2, sync_every=40)
        assert saved(learner) == Path("command.bin").read_bytes()
    with xclass.Learner("oaa", classes=30, bits=12) as learner:
        learner.learn_file(FILES[0])
        xclass.ray.fit(FILES[1:3], learner, workers=2, sync_every=40)
        assert saved(learner) == Path("command.bin").read_bytes()
        examples = learner.examples
        learner.learn("3 | more")  # it can learn on
        assert learner.examples == examples + 1


def test_predictions_are_in_the_order_of_the_data(inline):
    with xclass.Learner("oaa", classes=30, bits=12) as learner:
        learner.learn_file(*FILES[:2])
        before = saved(learner)
        batches = [batch for path in FILES for batch in xclass.read_vw(path)]
        single = xclass.ray.predict("part-1.vw", learner, workers=3)  # each predicts a range of the file
        np.testing.assert_array_equal(single, learner.predict_many(next(xclass.read_vw("part-1.vw"))))
        labels, probabilities = xclass.ray.predict("part-*.vw", learner, workers=2, k=3)
        own_labels, own_probabilities = zip(*(learner.predict_many(batch, k=3) for batch in batches), strict=True)
        np.testing.assert_array_equal(labels, np.concatenate(own_labels))
        np.testing.assert_array_equal(probabilities, np.concatenate(own_probabilities))
        assert saved(learner) == before


def test_a_worker_with_several_parts_counts_the_examples_of_each_once(inline, place):
    learn("--multiclass", "--learn_names", "-d", named("part-0.vw"), "-f", "m")
    for k in range(3):
        (place / f"new-{k}.vw").write_text(f"class-1 | a\nother{k} | b\n| c\n")

    def said_of(text):
        return [line for line in text.splitlines() if "without a label" in line or "not names" in line]

    words = ["-t", "-i", "m", *(word for k in range(3) for word in ("-d", f"new-{k}.vw"))]
    expected = said_of(learn(*words).err)
    assert len(expected) == 2 and "3 of 6 labels are not names" in "".join(expected)
    assert said_of(learn(*words, "--workers", 1).err) == expected
    with xclass.load("m") as learner, pytest.warns(match="3 of 6 labels are not names"):
        xclass.ray.predict("new-*.vw", learner, workers=1)


def test_ray_learns_and_predicts_what_the_command_learns_and_predicts(cluster, request):
    with xclass.ray.fit("part-*.vw", xclass.Learner("oaa", classes=30, bits=12), workers=2, sync_every=60) as learner:
        predicted = xclass.ray.predict("part-1.vw", learner, workers=1)
        np.testing.assert_array_equal(predicted, learner.predict_many(next(xclass.read_vw("part-1.vw"))))
        model = saved(learner)
    request.getfixturevalue("inline")  # only the learner above used Ray
    learn("--oaa", 30, "-b", 12, *DATA, "--sync_every", 60, "--workers", 2, "-f", "command.bin")
    assert model == Path("command.bin").read_bytes()


def test_numbers_are_averaged(inline):
    lines = re.sub(r"^(\d+)", lambda match: f"{int(match[1]) / 30:.3f}", Path(FILES[0]).read_text(), flags=re.MULTILINE)
    Path("numbers.vw").write_text(lines)
    learn("-b", 12, "-d", "numbers.vw", "--workers", 2, "-f", "command.bin")
    with xclass.ray.fit("numbers.vw", xclass.Learner("scalar", bits=12), workers=2) as learner:
        assert saved(learner) == Path("command.bin").read_bytes()
        assert xclass.ray.predict("numbers.vw", learner, workers=1).dtype == np.float64


@pytest.mark.parametrize("more", [{}, {"sync_every": 30}])
def test_an_error_leaves_the_learner_as_it_was(inline, more):
    with open(FILES[3], "a") as file:
        file.write("31 | x\n")
    with xclass.Learner("oaa", classes=30, bits=12) as learner:
        learner.learn_file(FILES[0])
        before = saved(learner)
        with pytest.raises(xclass.DataError, match=r"^part-3\.vw:101:1: label 31 is outside 1\.\.30 \(classes 30\)"):
            xclass.ray.fit(FILES, learner, workers=2, **more)
        assert saved(learner) == before
    assert not [path for path in Path().iterdir() if "interrupted" in path.name or "parts" in path.name]


def test_an_error_in_predictions_names_the_place_and_the_worker(inline):
    with open(FILES[3], "a") as file:
        file.write("31 | x\n")
    named = pytest.raises(xclass.DataError, match=r"^part-3\.vw:101:1: .*worker 1, process \d+")
    with xclass.Learner("oaa", classes=30, bits=12) as learner, named:
        xclass.ray.predict(FILES[3], learner, workers=1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda new: xclass.ray.fit([], new(), workers=2), "UsageError", r"data: \[\] is none of paths"),
        (lambda new: xclass.ray.fit("a", new(), workers=0), "UsageError", "workers: 0 is not a whole number from 1"),
        (lambda new: xclass.ray.fit("a", new(), workers=1, timeout=-1), "UsageError", "timeout: -1 is not a number"),
        (lambda new: xclass.ray.fit("a", new(), workers=1, format="x"), "UsageError", "format: 'x' is not one of"),
        (lambda new: xclass.ray.fit("none.vw", new(), workers=1), "DataError", r"none\.vw: there is no such file"),
        (lambda new: xclass.ray.predict("part-0.vw", new(), workers=1, k=0), "UsageError", "k: 0 is not"),
        (
            lambda new: xclass.ray.fit("part-0.vw", xclass.Learner("oaa", classes=30, quadratic="::"), workers=1,
                                       sync_every=9),
            "UsageError", "workers: `:` in an interaction stands for the namespaces seen so far",
        ),
    ],
)  # fmt: skip
def test_what_is_not_allowed(inline, call, error, message, monkeypatch):
    if error == "UsageError":  # raised before Ray is started
        for module in (fitting, predicting):
            monkeypatch.setattr(module, "Session", None)
    with pytest.raises(getattr(xclass, error), match=message):
        call(lambda: xclass.Learner("oaa", classes=30, bits=12))


def test_a_cluster_without_processors_is_waited_for_and_given_up(inline):
    with xclass.Learner("oaa", classes=30, bits=12) as learner:
        waiting = pytest.warns(xclass.XclassWarning, match="waiting for a processor")
        given_up = pytest.raises(
            ClusterError, match=r"9 workers.*gave up after 0\.2 seconds \(timeout\); give fewer workers"
        )
        with waiting, given_up:
            xclass.ray.fit("part-*.vw", learner, workers=9, timeout=0.2)


# -- Ray Data


@pytest.fixture
def data():
    """The module `ray.data`."""
    pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")
    import ray.data

    ray.data.DataContext.get_current().enable_progress_bars = False
    return ray.data


def test_a_data_set_of_lines_is_read_like_files(cluster, data):
    read = data.from_items([{"text": line} for path in FILES for line in Path(path).read_text().splitlines()])
    dataset = read.repartition(2)
    for number, lines in enumerate(dataset.iter_batches(batch_size=None)):
        Path(f"block-{number}.vw").write_text("\n".join(lines["text"]) + "\n")
    new = {"reduction": "oaa", "classes": 30, "bits": 12}
    with (
        xclass.ray.fit("block-*.vw", xclass.Learner(**new), workers=2, sync_every=40) as learner,
        xclass.ray.fit(dataset, xclass.Learner(**new), workers=2, sync_every=40) as other,
    ):
        assert saved(learner) == saved(other)
        predicted = xclass.ray.predict(dataset, learner, workers=2)
        np.testing.assert_array_equal(predicted, xclass.ray.predict("block-*.vw", learner, workers=2))


def test_rows_of_a_data_set_mean_what_those_of_a_data_frame_mean(cluster, data):
    rows = [
        {"drink": "tea", "size": 0.25, "text": 'kettle, "leaf"', "colour": "green", "hot": True},
        {"drink": "beer", "size": None, "text": "hops", "colour": "7", "hot": False},
    ] * 20
    dataset = data.from_items(rows).repartition(2)
    frame = dataset.to_pandas().drop(columns="drink")
    texts = data.from_items([{"text": "kettle leaf"}, {"text": "hops"}])
    with (
        xclass.ray.fit(dataset, xclass.Learner(bits=12), workers=2, label_column="drink") as learner,
        xclass.Learner(bits=12) as other,
    ):
        other.learn_many(frame, [row["drink"] for row in rows])
        assert learner.core.schema.columns == other.core.schema.columns
        assert learner.core.schema.columns == {"size": "number", "text": "text", "colour": "text", "hot": "number"}
        assert learner.classes == ["tea", "beer"]
        assert learner.predict_many(frame).tolist() == other.predict_many(frame).tolist()
        np.testing.assert_array_equal(learner.predict_many(frame, k=2)[1], other.predict_many(frame, k=2)[1])
        assert xclass.ray.predict(dataset.drop_columns(["drink"]), learner, workers=1).tolist() == ["tea", "beer"] * 20
        with pytest.raises(xclass.DataError, match=r"dataset-block-1:1:1: the header has no .*size"):
            xclass.ray.predict(texts, learner, workers=1)


def test_a_data_set_of_texts_is_a_table_with_a_column_of_text(cluster, data):
    rows = [{"label": 1, "text": "kettle, leaf"}, {"label": 2, "text": "hops"}] * 20
    with xclass.ray.fit(data.from_items(rows), xclass.Learner("oaa", classes=2, bits=12), workers=1) as learner:
        assert learner.core.schema.columns == {"text": "text"}
        texts = data.from_items([{"text": "kettle, leaf"}, {"text": "hops"}])
        assert xclass.ray.predict(texts, learner, workers=1).tolist() == [1, 2]
        none = texts.filter(lambda row: row["text"] != "hops").repartition(2)  # a block is empty
        assert xclass.ray.predict(none, learner, workers=1).tolist() == [1]


def test_errors_name_the_block_of_a_data_set(cluster, data):
    with xclass.Learner("oaa", classes=3, bits=12) as learner:
        lines = data.from_items([{"text": "1 | a"}] * 6 + [{"text": "4 | a"}], override_num_blocks=1)
        with pytest.raises(xclass.DataError, match=r"dataset-block-1:7:1: label 4 is outside 1\.\.3"):
            xclass.ray.fit(lines, learner, workers=1)
        assert learner.examples == 0
