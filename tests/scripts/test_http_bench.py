"""The benchmark of servers on a tiny model."""

import json

import pytest
from running import process

for needed in ("httptools", "prometheus_client"):
    pytest.importorskip(needed, reason=f"{needed}, of the extra serve, is not installed: there is no HTTP")
TINY = (
    "--classes", 20, "--features", 4, "--trained", 100, "--lines", 100, "--single", 20, "--rounds", 1, "--bits", 10,
    "--alone", "--json", "found.json",
)  # fmt: skip


def test_xclass_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = process("serve.bench", *map(str, TINY))
    assert result.returncode == 0, result.stderr
    lines, http = (
        [[cell.strip() for cell in line.split("|")[1:-1]] for line in part.splitlines()[2:]]
        for part in result.stdout.split("\n\n")
    )
    assert [row[0] for row in lines] == ["xclass"] and all(lines[0])
    assert [row[:2] for row in http] == [["xclass", "1"], ["xclass", "8"]]
    found = json.loads((tmp_path / "found.json").read_text())
    for _, clients, *_, p99, _ in http:
        (one,) = (one for one in found if one.get("value") == int(clients))
        assert 0 < one["p50_ms"] <= one["p99_ms"] and one["cpu_us"] >= 0 and float(p99) > 0
