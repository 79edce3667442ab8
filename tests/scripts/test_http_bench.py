"""The benchmarks of servers on a tiny model, and the server that it is compared with."""

from __future__ import annotations

import json
import sys

import pytest
from running import process

from scripts.lib.processes import BenchError
from scripts.serve import http_bench

for needed in ("starlette", "uvicorn", "prometheus_client"):
    pytest.importorskip(needed, reason=f"{needed}, of the extra serve, is not installed: there is no HTTP")
TINY = (
    "--classes", 3, "--features", 4, "--trained", 60, "--requests", 20, "--rounds", 1, "--bits", 10, "--hashed_bits", 8,
    "--json", "found.json",
)  # fmt: skip


def measured(folder, monkeypatch, *words):
    """Run the benchmark, and return the rows of its table and what it has written."""
    monkeypatch.chdir(folder)
    result = process("serve.http_bench", *TINY, *words)
    assert result.returncode == 0, result.stderr
    rows = [line.strip("| ").split(" | ") for line in result.stdout.splitlines() if line.startswith("| ")][2:]
    return rows, json.loads((folder / "found.json").read_text())["http"]


def test_xclass_alone_and_the_picture(tmp_path, monkeypatch):
    rows, found = measured(tmp_path, monkeypatch, "--no_peer")
    assert [row[:2] for row in rows] == [["xclass", "1"], ["xclass", "8"]]
    for row in rows:
        (one,) = found["xclass"][row[1]]
        assert 0 < one["p50_ms"] <= one["p99_ms"] and one["cpu_us"] >= 0 and float(row[3]) > 0
        assert row[2] == f"{one['a_second']:,.0f}"
    pytest.importorskip("matplotlib", reason="matplotlib, which draws, is not installed")
    words = ("--classes", 20, "--features", 4, "--trained", 100, "--lines", 100, "--single", 20, "--rounds", 1)
    result = process("serve.bench", *map(str, words), "--no_vw", "--json", "found.json")
    assert result.returncode == 0 and "| xclass | " in result.stdout, result.stderr
    drawn = process("serve.plot", "found.json", "found.png")
    assert drawn.returncode == 0 and (tmp_path / "found.png").read_bytes().startswith(b"\x89PNG"), drawn.stderr


def test_the_peer_is_measured_beside_it(tmp_path, monkeypatch):
    for needed in ("fastapi", "sklearn", "joblib"):
        pytest.importorskip(needed, reason=f"{needed}, which the other server needs, is not installed")
    rows, _ = measured(tmp_path, monkeypatch, "--python", sys.executable)
    names = ["xclass", "FastAPI, SGDClassifier", "the same, ordered by feature"]
    assert [row[0] for row in rows] == [name for name in names for _ in range(2)]


def test_the_peer_learns_what_its_server_predicts(tmp_path):
    joblib = pytest.importorskip("joblib", reason="joblib, which the other server needs, is not installed")
    pytest.importorskip("sklearn", reason="scikit-learn, which the other server needs, is not installed")
    from scripts.serve import fastapi_server

    (tmp_path / "train.vw").write_text("1 |a red apple\n3 |a grey stone\n" * 20)
    fastapi_server.train(str(tmp_path / "train.vw"), str(tmp_path / "model"), "3", "8")
    vectorizer, classifier = joblib.load(tmp_path / "model")
    assert classifier.predict(vectorizer.transform(["apple", "stone grey"])).tolist() == [1, 3]
    assert classifier.coef_.shape == (3, 256)


def test_an_answer_is_read_by_its_length():
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    assert http_bench.length(answer) == len(answer) and http_bench.length(answer[:20]) is None
    with pytest.raises(BenchError, match=r"a server answered .*404"):
        http_bench.length(b"HTTP/1.1 404 Not Found\r\n\r\n")
