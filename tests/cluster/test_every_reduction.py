"""Every reduction with a rule of merging learns in workers; the others are refused by name, before Ray is started."""

import re

import pytest
from command import learn, xclass
from streams import of_kind
from variants import BY_NAME, KINDS, K, chosen

from xclass import load
from xclass.cluster import dispatch

MERGED = [name for name, record in BY_NAME.items() if not record.not_merged]
NAMED = [name for name in MERGED if KINDS[name] in ("multiclass", "rows")]
DATA = ("-d", "a.vw", "-d", "b.vw", "--workers", 2)

pytestmark = pytest.mark.usefixtures("place")


def write(place, kind: str, **more) -> None:
    for number, name in enumerate("ab"):
        (place / f"{name}.vw").write_text(of_kind(kind, number, K, 300, **more))


@pytest.mark.parametrize("name", MERGED)
def test_averages_are_about_as_good_as_one_process(inline, place, name):
    write(place, KINDS[name])
    said = learn(*chosen(name), "-b", 14, *DATA, "--sync_every", 60, "-f", "many").err
    assert "2 workers are averaged after every 60 examples of each" in said
    assert "number of examples = 600" in said
    learn(*chosen(name), "-b", 14, *DATA[:4], "-f", "one")
    tested = [learn("-t", "-i", model, *DATA[:4]).err for model in ("one", "many")]
    one, many = (float(re.search(r"average loss = ([\d.]+)", text)[1]) for text in tested)
    assert many < 1.2 * one + 0.05


@pytest.mark.parametrize("name", NAMED)
def test_names_that_one_worker_meets_are_classes_of_the_model(inline, place, name):
    write(place, KINDS[name])
    for file in "ab":  # the names a6 to a9 and b6 to b9 are in one file each
        path = place / f"{file}.vw"
        lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
        path.write_text("".join(f"{y if y < '6' else file + y} {rest}\n" for y, rest in lines))
    learn(*chosen(name, 30), "-b", 14, "--learn_names", *DATA, "--sync_every", 60, "-f", "many")
    with load("many") as model:
        assert {*"12345", "a6", "b6", "a9", "b9"} <= set(model.classes)
        assert model.evaluate("b.vw")["average_loss"] < 0.5


@pytest.mark.parametrize("name", [name for name in BY_NAME if name not in MERGED])
def test_others_are_refused_by_name(place, name, monkeypatch):
    monkeypatch.setattr(dispatch, "Session", None)
    write(place, KINDS[name])
    result = xclass(*chosen(name), *DATA)
    assert result.status == 2
    assert f"--workers: models of --{name} cannot be averaged: " in result.err
    assert "; learn in one process, or choose --multiclass" in result.err


@pytest.mark.parametrize("flag", ["--resume_run", "--resume", "--sync_every 9"])
def test_options_of_the_cluster_need_workers(place, flag):
    write(place, "multiclass")
    result = xclass("--oaa", K, *DATA[:4], *flag.split())
    assert result.status == 2
    assert "has no effect without --workers N" in result.err
