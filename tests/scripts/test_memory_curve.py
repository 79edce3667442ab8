"""scripts/memory/memory_curve.py on tiny sets and streams."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest
from running import tool
from streams import multiclass

METHODS = "xclass --multiclass {K};xclass --cpt {K};vw --log_multi {K}"
CELL = r"\d+\.\d \(-?\d+\.\d, \d+\)"


@pytest.fixture
def data(tmp_path, monkeypatch):
    """One set of 12 classes."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "data" / "tiny"
    folder.mkdir(parents=True)
    (folder / "train.vw").write_text(multiclass(41, 12, 1000, noise=0.3))
    (folder / "test.vw").write_text(multiclass(42, 12, 300, noise=0.3))
    (folder / "labels.txt").write_text("".join(f"{y}\tl{y}\n" for y in range(1, 13)))
    return tmp_path / "data"


def drawn() -> list[str]:
    """The words that ask for a figure, where there is matplotlib."""
    return ["--plot", "f.png"] if importlib.util.find_spec("matplotlib") else []


@pytest.mark.slow
def test_every_method_is_measured_with_every_size(data):
    words = ["memory.memory_curve", data, "--sets", "tiny", "--bits", "8,16", "--methods", METHODS, "--json", "j"]
    result = tool(*words, *drawn())
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[2] == "| tiny | -b 8 | -b 16 |"
    for line, method in zip(lines[4:7], METHODS.split(";"), strict=True):
        assert re.fullmatch(rf"\| `{method}` \| {CELL} \| {CELL} \|".replace("{K}", r"\{K\}"), line)
    stored = json.loads(Path("j").read_text())
    small, large = (at["found"] for at in stored if "multiclass" in at["key"]["method"])
    assert large["error"] <= small["error"]
    assert large["cpu"] == pytest.approx(0.6)  # running.START and EXAMPLE
    assert large["micros"] == pytest.approx(100)
    assert [at["found"]["table"] for at in stored if "vw" in at["key"]["method"]] == [2**-8, 1]
    assert tool(*words).stdout == result.stdout  # nothing is measured again
    assert json.loads(Path("j").read_text()) == stored
    assert not drawn() or Path("f.png").read_bytes().startswith(b"\x89PNG")


def test_streams_have_several_numbers_of_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = ["--classes", "4,16", "--examples", "600", "--features", "3", "--bits", "12", "--json", "j", *drawn()]
    result = tool("memory.memory_curve", *words, "--methods", "xclass --cpt {K}")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[2] == "| streams | K = 4 | K = 16 |"
    assert re.fullmatch(rf"\| `xclass --cpt \{{K\}}` \| {CELL} \| {CELL} \|", lines[4])
    assert [at["key"]["classes"] for at in json.loads(Path("j").read_text())] == [4, 16]


def test_what_cannot_be_measured_is_refused(data):
    def refused(*words):
        result = tool("memory.memory_curve", *words)
        assert result.returncode == 1
        return result.stderr

    assert "either a folder of data and --sets, or --classes" in refused("--methods", "xclass")
    assert "either a folder" in refused(data, "--sets", "tiny", "--classes", "4", "--methods", "xclass")
    assert "one number of --bits" in refused("--classes", "4", "--bits", "8,9", "--methods", "xclass")
    assert "'other --oaa' begins with none of xclass, vw" in refused(
        "--classes", "4", "--bits", "8", "--methods", "other --oaa"
    )
