"""What --multilabel does with several workers: it predicts with them, and says how they can learn."""

from __future__ import annotations

from command import learn, xclass
from streams import multilabel


def test_workers_predict_lists_as_one_process_and_do_not_learn_parts(inline, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.vw").write_text(multilabel(1, 9, 300))
    learn("-d", "a.vw", "--multilabel", "-f", "m")
    learn("-t", "-i", "m", "-d", "a.vw", "-p", "alone", "--quiet")
    learn("-t", "-i", "m", "-d", "a.vw", "--workers", 2, "-p", "spread", "--quiet")
    assert (tmp_path / "alone").read_bytes() == (tmp_path / "spread").read_bytes()
    result = xclass("-d", "a.vw", "--multilabel", "--workers", 2)
    assert result.status == 2
    assert "--workers: --multilabel has no parts that learn by themselves; give --sync_every N" in result.err
