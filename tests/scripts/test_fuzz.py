"""A short campaign of scripts/fuzz.py, always the same, and whether a campaign sees every kind of failure."""

import subprocess
import sys

import pytest
from running import environment, process

from scripts import fuzz

PRETENDER = """
import mmap, os, sys, time
from pathlib import Path
from scripts import fuzz
from scripts.fuzzing import runs
from xclass.cli import command as cli

def status(words):
    what = words[0]
    if what == "raises":
        raise ValueError("x")
    if what == "crashes":
        os.abort()
    if what == "hangs":
        while True:
            pass
    if what == "writes":
        Path("victim.txt").write_text("other")
    if what == "writes elsewhere":
        Path(sys.argv[1], "elsewhere").write_text("x")
    if what == "replaces":
        os.replace("out/new", "victim.txt")
    if what == "leaves":
        Path("tmp/xclass-1").write_text("x")
    if what == "takes much":
        bytearray(b"x") * (300 << 20)
    if what == "refuses":
        print("xclass: data.vw:3: this is not a label", file=sys.stderr)
        return 1
    if what == "says nothing":
        return 1
    if what == "escapes":
        print("xclass: data.vw:3: this is not a label: \\x1b[31m", file=sys.stderr)
        return 1
    Path("out/asked").write_text("x")
    return 0

class Part:
    name, limits = "pretender", runs.Limits(cpu=0.8)
    def run(self, case, bench):
        bench.put("out/new", b"x")
        return bench.judge(bench.xclass(case))

cli.status = status
folder = Path(sys.argv[1], "campaign")
(folder / "run").mkdir(parents=True)
fuzz.Campaign.fill(folder / "run")
cases = [case for case in sys.argv[2:] for _ in range(2)]
for i, outcome, words in runs.outcomes(Part(), cases, folder):
    print(cases[i], "|", outcome.kind)
"""
KINDS = {
    "is fine": "accepted",
    "refuses": "refused",
    "raises": "traceback",
    "crashes": "crash",
    "hangs": "hang",
    "writes": "unasked write",
    "writes elsewhere": "unasked write",
    "replaces": "unasked write",
    "leaves": "leftover",
    "takes much": "too much memory",
    "says nothing": "bad message",
    "escapes": "bad message",
}


def test_every_kind_of_failure_is_seen_and_the_campaign_goes_on(tmp_path):
    words = [sys.executable, "-c", PRETENDER, str(tmp_path), *KINDS]
    result = subprocess.run(words, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment())
    outcomes = [tuple(line.split(" | ")) for line in result.stdout.splitlines()]
    assert outcomes == [pair for pair in KINDS.items() for _ in range(2)], result.stderr


def test_a_short_campaign_finds_nothing(tmp_path):
    pytest.importorskip("zstandard", reason="the campaign reads .zst too")
    models = "^(scalar|oaa names|cpt rerank names|softmax_tree names|means|plt growing|skip)$"
    result = process("fuzz", "all", "--short", "--only", models, "--keep", tmp_path / "failures")
    assert result.returncode == 0, result.stdout[-8000:] + result.stderr[-2000:]
    for part, least in fuzz.SHORT.items():
        lines = [line for line in result.stdout.splitlines() if line.startswith(f"{part}: ") and " cases" in line]
        line = lines[-1]  # the others report the progress
        assert int(line.split()[1].replace(",", "")) >= least * 0.9, result.stdout
        assert "accepted" in line and ("refused" in line or part == "numbers"), result.stdout
