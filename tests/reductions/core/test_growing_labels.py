"""Learners of lists of labels whose number is not given: their sums and models follow the labels of the data."""

import numpy as np
import pytest
from command import learn, xclass

import xclass as xclass_library
from xclass.binary import gd
from xclass.options.declare import option
from xclass.reductions import registry
from xclass.reductions.core import label_arrays, label_lists
from xclass.reductions.core.base import ReductionRecord
from xclass.reductions.core.contract import BatchTask
from xclass.reductions.core.probabilities import ClassLists

DATA = "1,300 | a\n300 | b\n, | a\n7,300 | b\n9 | a\n"


class Options(label_lists.LabelListOptions):
    """Frequent labels."""

    frequent: int = option("labels; K is a hint", metavar="[K]", minimum=0, value_if_bare=0, maximum=2**24, stored=True)


def class_lists(lists) -> ClassLists:
    """Return lists of pairs (label, probability) as a learner does."""
    pairs = [pair for one in lists for pair in one]
    label, p = np.array([y for y, _ in pairs], np.int64), np.array([p for _, p in pairs], np.float32)
    return ClassLists(p, label, np.cumsum([0, *map(len, lists)]), has_rest=False)


class Frequent(label_lists.MultilabelLearner):
    """Ranks the labels by the number of examples that have them, which gives their probabilities."""

    def __init__(self, spec):
        self.set_up(spec, None)
        self.often = {}
        self.stages = [self._propose, self._rank]

    def _propose(self, task: BatchTask) -> None:
        task.plan = self.positives(task)

    def _rank(self, task: BatchTask) -> None:
        own, batch, learned = task.plan, task.batch, task.learned()
        lists, chosen = [], []
        seen = int(self.counts[-1])
        for i in range(batch.n):
            known = self.known(task)[i]
            best = sorted((-n, y) for y, n in self.often.items() if y < known)[: self.most_ranked]
            lists.append([(y + self.lowest, -n / max(seen, 1)) for n, y in best])
            chosen.append(sorted(pair for pair in lists[-1] if pair[1] > self.least))
            if learned[i]:
                seen += 1
                first, last = label_arrays.span(batch, own, i)
                for y in own[first:last].tolist():
                    self.often[y] = self.often.get(y, 0) + 1
        self.finish(task, class_lists(lists), class_lists(chosen))

    def serialize(self, archive):
        self.serialize_counts(archive)
        self.often = {int(y): int(self.counts[y]) for y in np.flatnonzero(self.counts[:-1])}


RECORD = ReductionRecord(
    name="frequent",
    title="Frequent labels",
    summary="the labels that were seen most often",
    options=Options,
    enabled="frequent",
    labels="multilabel",
    build=Frequent,
    label_range=label_lists.growing_range,
    check=label_lists.check,
    resolve_defaults=lambda spec: gd.resolve_defaults(spec.binary, 1, reduction=True),
    probabilities=True,
)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """The command with one more reduction."""
    monkeypatch.setattr(registry, "REDUCTIONS", (*registry.REDUCTIONS, RECORD))


def test_sums_and_model_follow_the_labels(tmp_path):
    learned = learn("--frequent", "-b", 4, "-f", "m", "-p", "p", "--per_class", "classes", stdin=DATA, cwd=tmp_path)
    assert "outside" not in learned.err
    assert (tmp_path / "p").read_text().splitlines() == ["", "1,300", "300", "300", "300"]
    rows = [line.split(",")[:2] for line in (tmp_path / "classes").read_text().splitlines()]
    assert sorted(rows[1:]) == [["1", "1"], ["300", "3"], ["7", "1"], ["9", "1"]]
    # labels that examples have or get: 300 with F1 4/7, and the others with none
    assert f"macro F1 = {4 / 7 / 4:.6f}" in learned.err
    again = learn("-i", "m", "-t", "--top_k", 9, "-p", "stdout", stdin="300,5000000 | a\n", cwd=tmp_path)
    assert again.lines == ["300:0.6 1:0.2 7:0.2 9:0.2"]
    assert "labels so far" in again.err
    assert "micro F1 = 0.666667" in again.err  # label 5000000 is missed
    with xclass_library.load(str(tmp_path / "m")) as model:
        assert len(model.core.reduction.counts) == 302
        assert model.core.reduction.counts[[0, 1, 7, 9, 300, 301]].tolist() == [0, 1, 1, 1, 3, 5]


def test_results_do_not_depend_on_the_batches(tmp_path):
    lines = [f"{i * i % 97},{100 + i} | x" for i in range(60)]
    files = []
    for size in (1, 7, 60):
        with xclass_library.Learner("frequent", bits=4) as model:
            for i in range(0, 60, size):
                model.learn_many(lines[i : i + size])
            figures = model.core.reduction.report.figures()
            model.save(str(tmp_path / "m"))
        files.append(((tmp_path / "m").read_bytes(), figures))
    assert files[0] == files[1] == files[2]


def test_labels_of_held_out_and_unlabelled_examples_have_no_effect_on_frequencies(tmp_path):
    data = "1 | a\n2 | a\n| a\n50 | a\n3 | a\n"
    learn("--frequent", "-b", 4, "-f", "m", "--passes", 2, "--holdout_period", 4, "-k", "--cache_file", "c",
          "-d", "data", cwd=_written(tmp_path, data))  # fmt: skip
    with xclass_library.load(str(tmp_path / "m")) as model:
        counts = model.core.reduction.counts
    assert counts.sum() - counts[-1] == counts[-1] == 3


def _written(folder, data):
    (folder / "data").write_text(data)
    return folder


def test_names_are_added_as_they_come(tmp_path):
    data = "red,blue | a\nblue | b\ngreen | a\n"
    learn("--frequent", "-b", 4, "--learn_names", "-f", "m", stdin=data, cwd=tmp_path)
    tested = learn("-i", "m", "-t", "--top_k", 3, "-p", "stdout", stdin="blue,white | a\n", cwd=tmp_path)
    assert tested.lines == ["blue:0.666667 red:0.333333 green:0.333333"]
    assert "micro F1 = 0.666667" in tested.err


def test_too_large_a_number_names_its_place_and_the_cure(tmp_path):
    result = xclass("--frequent", "-b", 4, "-d", "data", cwd=_written(tmp_path, "1 | a\n2,16777216 | b\n"))
    assert result.status == 1
    assert (
        "data:2:3: label 16777216 is outside 0..16777215 (--frequent; --learn_names takes larger numbers as names)"
        in result.err
    )
    result = learn("--frequent", "-b", 4, "--learn_names", "-d", "data", cwd=tmp_path)
    assert "number of examples = 2" in result.err


def test_a_model_with_too_many_counts_is_refused(tmp_path, monkeypatch):
    learn("--frequent", "-b", 4, "-f", "m", stdin=DATA, cwd=tmp_path)
    monkeypatch.setattr(label_lists, "MOST_LABELS", 300)
    result = xclass("-i", "m", "-t", stdin="1 | a\n", cwd=tmp_path)
    assert result.status == 1
    assert "'label_counts' does not fit its options: it counts 301 labels, not 0 to 300" in result.err
