"""What a report says would help is done with the options that it shows."""

import json
import random
import re

import pytest
from command import learn

CLASSES, UNSEEN = 40, 3


def lines(n: int, classes: int, seed: int) -> str:
    """Return examples whose words tell the class in most cases; each class has words of its own."""
    draw = random.Random(seed)
    text = []
    for _ in range(n):
        label = draw.randrange(classes)
        words = [f"w{draw.choice([label, draw.randrange(classes)])}_{draw.randrange(30)}" for _ in range(4)]
        text.append(f"{label + 1} | {' '.join(words)}\n")
    return "".join(text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("advice")
    (path / "train.vw").write_text(lines(1500, CLASSES, 1))
    (path / "test.vw").write_text(lines(300, CLASSES + UNSEEN, 2))
    return path


def report(folder, *words):
    """Train with these words; return what the report of the model says about the test data."""
    learn("-d", "train.vw", *words, "-f", "model", "--quiet", cwd=folder)
    return told(folder, "model")


def told(folder, model):
    learn("report", "-i", model, "-d", "test.vw", "--json", "report.json", cwd=folder)
    return json.loads((folder / "report.json").read_text())["test"]


def test_each_setting_to_try_is_accepted(folder):
    (settings,) = report(folder, "--multiclass")["advice"]
    tried = re.findall(r"\((-[^)]*)\)", settings)
    assert [one.split()[0] for one in tried] == ["--ngram", "--passes", "-b", "--index_slots"]
    for option in tried:
        done = learn("-d", "train.vw", "--multiclass", *option.split(), "-f", "other", cwd=folder)
        assert "has no effect" not in done.err, option


def test_larger_tables_end_the_loss_of_weights(folder):
    bits, trained = 10, []
    while len(trained) < 12:
        trained.append(bits)
        found = re.search(r"too small .*Train with larger ones \((-b (\d+)) or more\)", str(report(
            folder, "--multiclass", "-b", bits)["advice"]))  # fmt: skip
        if found is None:
            break
        assert int(found[2]) > bits
        bits = int(found[2])
    assert 1 < len(trained) < 12


def test_examples_of_classes_that_were_never_seen_and_a_list_help(folder):
    causes = {one["cause"]: one for one in report(folder, "--multiclass")["causes"]}
    unseen = causes["class never seen"]
    assert "Add training examples of the classes that were never seen" in unseen["advice"]
    (folder / "more.vw").write_text(lines(600, CLASSES + UNSEEN, 3))
    learn("-d", "more.vw", "-i", "model", "-f", "continued", "--quiet", cwd=folder)
    assert "class never seen" not in {one["cause"] for one in told(folder, "continued")["causes"]}
    option = re.search(r"show the first \d+ \((--top_k \d+)\)", causes["close"]["advice"])[1]
    shown = learn("-t", "-i", "model", "-d", "test.vw", *option.split(), "-p", "stdout", "--quiet", cwd=folder).out
    assert max(len(re.findall(r"\d:", line)) for line in shown.splitlines()) == int(option.split()[1])
