"""scripts/bench/tuning.py on a tiny set."""

from __future__ import annotations

import gzip

import pytest
import streams
from running import tool

from scripts.bench import tuning
from scripts.lib import processes


@pytest.fixture
def data(tmp_path):
    folder = tmp_path / "tiny"
    folder.mkdir()
    for seed, name, n in ((1, "train", 300), (2, "test", 60)):
        with gzip.open(folder / f"{name}.vw.gz", "wt") as file:
            file.write(streams.multiclass(seed, 5, n))
    return tmp_path


def rows_of(done):
    assert done.returncode == 0, done.stderr
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_row_has_the_errors_and_the_options(data):
    head, _, row = rows_of(tool("bench.tuning", data, "--sets", "tiny", "--seconds", 60))
    cells = dict(zip(head, row, strict=True))
    assert cells["set"] == "tiny" and cells["options"].startswith("`--")
    before, after = float(cells["defaults"]), float(cells["tuned"])
    assert 0 <= after <= 100 and 0 < before <= 100
    assert float(cells["ratio"]) == pytest.approx(after / before, abs=0.02)


def test_fasttext_gets_the_last_tenth_to_compare_its_settings_on(data, tmp_path, monkeypatch):
    for part in ("train.vw", "test.vw"):
        (tmp_path / part).write_bytes(gzip.decompress((data / "tiny" / f"{part}.gz").read_bytes()))
    commands = []

    def measured(command, folder):
        commands.append(command[len(tuning.PEER) :])
        return processes.Run(12.0, 20.0, 1, '{"seconds": 1, "error": 0.25}')

    monkeypatch.setattr(tuning, "measure", measured)
    assert tuning.autotuned(tmp_path, 300)[0] == 25
    assert commands == [
        ["train", "learn.words", "words.model", "autotuneValidationFile=valid.words", "autotuneDuration=300"],
        ["test", "test.words", "words.model"],
    ]
    learn, valid = (tmp_path / name for name in ("learn.words", "valid.words"))
    assert len(learn.read_bytes().splitlines()) == 270 and len(valid.read_bytes().splitlines()) == 30
    assert learn.read_bytes() + valid.read_bytes() == (tmp_path / "train.words").read_bytes()


def test_a_set_that_is_not_there_is_named(data):
    done = tool("bench.tuning", data, "--sets", "none")
    assert done.returncode != 0 and "train.vw.gz: there is no such file" in done.stderr
