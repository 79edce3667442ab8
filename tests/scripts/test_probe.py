"""The random search for options: ranges, the same draws every time, resuming after a kill, one parse for all."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time

import pytest
from running import environment, measuring_here, tool
from streams import multiclass

from scripts.lib import processes
from scripts.lib import search as probe


@pytest.fixture(autouse=True)
def here():
    """Probes are made in this process."""
    with measuring_here():
        yield


def run(folder, *words):
    result = tool("bench.probe", *words, cwd=folder)
    return result.returncode, result.stdout, result.stderr


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    (folder / "train.vw").write_text(multiclass(3, 12, 1000) + "\n")
    (folder / "valid.vw").write_text(multiclass(4, 12, 100))
    return folder


# -- ranges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l log 1 2", "must be OPTION KIND VALUES"),
        ("-l", "must be OPTION KIND VALUES"),
        ("-l uniform 1 2", "KIND one of log, linear, int, one, flag"),
        ("-l log 1", "log takes 2 values"),
        ("-l log 0 2", "must rise, from above 0"),
        ("-l linear 3 2", "must rise"),
        ("-l int 1 2.5", "1 and 2.5 are not numbers of this kind"),
        ("-l one", "one takes some values"),
        ("-l flag 1", "flag takes 0 values"),
    ],
)
def test_wrong_ranges_are_refused(text, message):
    with pytest.raises(probe.BenchError, match=re.escape(f"--range '{text}': ") + ".*" + re.escape(message)):
        probe.check(text)


def test_draws_lie_in_their_ranges():
    texts = ["-l log 0.01 10", "-C linear -1 1", "--max_depth int 3 5", "--loss one a b", "--node_only flag"]
    for text in texts:
        probe.check(text)
    rng = random.Random(1)
    draws = [[probe.draw(text, rng) for text in texts] for _ in range(600)]
    logs = [float(draw[0][1]) for draw in draws]
    assert 0.01 <= min(logs) < 0.02 and 5 < max(logs) <= 10
    assert 0.25 < sum(x < 0.1 for x in logs) / 600 < 0.42  # a third of the decades
    assert -1 <= min(float(draw[1][1]) for draw in draws) < -0.9
    assert {draw[2][1] for draw in draws} == {"3", "4", "5"} and {draw[3][1] for draw in draws} == {"a", "b"}
    assert 200 < sum(draw[4] == ["--node_only"] for draw in draws) < 400


def test_ranges_of_a_reduction_are_those_it_has():
    ranges = probe.defaults(["--recall_tree", "1000", "--max_depth", "9"], None)
    assert ranges[0] == "-l linear 0.1 4" and "--bern_hyper log 0.01 10" in ranges
    assert not [range_ for range_ in ranges if range_.startswith("--max_depth")]  # chosen already
    for text in ranges:
        probe.check(text)
    assert probe.unknown(["--recall_tree", "-b", "--no_such", "24", "-7"]) == ["--no_such"]
    with pytest.raises(probe.BenchError, match="no ranges are known"):
        probe.defaults(["-b", "3"], None)


# -- the search --------------------------------------------------------------------------------------------------------

RANGES = ("--range", "-l log 0.1 10", "--range", "--node_only flag")
FIXED = ("--", "--recall_tree", "12", "-b", "16")


def results(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return rows[0]["search"], [{k: v for k, v in row.items() if k != "seconds"} for row in rows[1:]]


def test_search_killed_goes_on_and_finds_the_same(data, tmp_path):
    words = (data / "train.vw", "--probes", 3, *RANGES)
    status, out, err = run(tmp_path, *words, "--results", "whole.jsonl", *FIXED)
    assert status == 0, err
    search, rows = results(tmp_path / "whole.jsonl")
    assert search["share"] == 0.1 and [row["probe"] for row in rows] == [1, 2, 3]
    assert "range -l log 0.1 10\nrange --node_only flag\n" in err
    best = min(rows, key=lambda row: row["loss"])
    assert f"--recall_tree 12 -b 16 {' '.join(best['options'])} -f model.bin" in out
    assert out.startswith("| probe | loss | s | options |") and out.count("\n| ") == 4

    part = tmp_path / "part.jsonl"
    command = [sys.executable, "-m", "scripts.bench.probe", *map(str, words), "--results", part, *FIXED]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as child:
        end = time.monotonic() + 100
        while not (part.exists() and part.read_text().count("\n") >= 2) and time.monotonic() < end:
            time.sleep(0.02)
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.returncode == -signal.SIGKILL
    probes_so_far = part.read_text().count("\n") - 1
    assert 1 <= probes_so_far < 3
    with open(part, "a") as file:
        file.write('{"probe": 3, "opt')  # as if cut short in writing
    status, again, err = run(tmp_path, *words, "--results", part, *FIXED)
    assert status == 0 and f"{probes_so_far} probes are in {part}" in err
    assert err.count("\nprobe ") == 3 - probes_so_far
    assert results(part) == (search, rows)
    assert re.sub(r"\| [\d.]+ \| `", "`", again) == re.sub(r"\| [\d.]+ \| `", "`", out)
    assert {path.name for path in tmp_path.iterdir()} == {"whole.jsonl", "part.jsonl"}

    status, _, err = run(tmp_path, *words, "--results", part, "--seed", "2", *FIXED)
    assert status == 1 and "is of another search" in err


def test_probes_see_the_first_share_once_parsed(data, tmp_path, monkeypatch):
    logs = []
    measure = processes.measure

    def listened(command, folder):
        result = measure(command, folder)
        logs.append(result.stderr)
        return result

    monkeypatch.setattr(probe, "measure", listened)
    search = probe.Search(data / "train.vw", ["--oaa", "12", "-b", "14"], ["-l linear 0.1 4"], 3, 0.3)
    rows = probe.carry_out(search, tmp_path / "r.jsonl")
    assert len(logs) == 3 and all("number of examples = 300\n" in log for log in logs)
    assert "creating cache" in logs[0] and all("creating cache" not in log for log in logs[1:])
    assert probe.best(rows)["loss"] == min(row["loss"] for row in rows) < 0.9


def test_failed_probes_are_reported_and_validation_is_on_its_file(data, tmp_path):
    ranges = ["--max_candidates one 0 5", "-l one 0.5"]
    search = probe.Search(data / "train.vw", ["--recall_tree", "12", "-b", "16"], ranges, 4, 1.0, 3, data / "valid.vw")
    rows = probe.carry_out(search, tmp_path / "r.jsonl")
    failed = [row for row in rows if row["options"][1] == "0"]
    whole = [row for row in rows if row["options"][1] == "5"]
    assert failed and whole and all("--max_candidates" in row["failed"] for row in failed)
    assert all(row["loss"] * 100 == pytest.approx(round(row["loss"] * 100)) for row in whole)  # of 100 examples
    assert len({row["loss"] for row in whole}) == 1
    assert f"| {failed[0]['probe']} | failed | " in probe.report(search, rows)
    with pytest.raises(probe.BenchError, match=r"all probes failed, the first one so: .*--max_candidates"):
        probe.best(failed)


def test_tail_of_the_share_is_not_learned(data, tmp_path):
    ranges, sub = ["-l linear 0.5 2"], ["--oaa", "12", "-b", "14", "--oaa_subsample", "3"]
    search = probe.Search(data / "train.vw", sub, ranges, 1, 0.2, 1, tail=0.25)
    loss = probe.carry_out(search, tmp_path / "r.jsonl")[0]["loss"]
    assert 0 < loss < 0.9 and loss * 50 == pytest.approx(round(loss * 50))  # a quarter of 200 examples
    search = probe.Search(data / "train.vw", sub, ranges, 1)
    with pytest.raises(probe.BenchError, match="no progressive loss; give --tail or --validate"):
        probe.best(probe.carry_out(search, tmp_path / "s.jsonl"))
    part, rest = tmp_path / "part", tmp_path / "rest"
    probe.write_beginning(data / "train.vw", 0.2, part, 0.25, rest)
    lines = (data / "train.vw").read_bytes().splitlines(keepends=True)
    assert (part.read_bytes(), rest.read_bytes()) == (b"".join(lines[:150]), b"".join(lines[150:200]))


def test_command_lines_that_cannot_be_searched(data, tmp_path):
    assert "no such file" in run(tmp_path, tmp_path / "none.vw", *FIXED)[2]
    words = ("--tail", 0.5, "--validate", data / "valid.vw")
    assert "--tail: between 0 and 1" in run(tmp_path, data / "train.vw", *words, *FIXED)[2]
    assert "--probes: at least 1" in run(tmp_path, data / "train.vw", "--probes", 0, *FIXED)[2]
    assert "no ranges are known" in run(tmp_path, data / "train.vw", "--", "-b", "9")[2]
