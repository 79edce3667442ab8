"""What --multilabel does with several workers."""

import re

from command import learn, xclass
from streams import multilabel

from xclass.run.run import Run


def test_workers_predict_lists_as_one_process(inline, place):
    (place / "a.vw").write_text(multilabel(1, 9, 300))
    learn("-d", "a.vw", "--multilabel", "-f", "m")
    learn("-t", "-i", "m", "-d", "a.vw", "-p", "alone", "--quiet")
    learn("-t", "-i", "m", "-d", "a.vw", "--workers", 2, "-p", "spread", "--quiet")
    assert (place / "alone").read_bytes() == (place / "spread").read_bytes()


def test_measures_of_a_continued_run_are_those_of_the_whole_run(inline, place, monkeypatch):
    for number in range(2):
        (place / f"part-{number}.vw").write_text(multilabel(number, 9, 300))
    words = ["-d", "part-*.vw", "--multilabel", "--workers", 2, "--sync_every", 60, "--checkpoint", 100]
    whole = learn(*words, "-f", "whole", "--passes", 2, "--keep_last").err
    save, saved = Run.save_at, []

    def die_at_the_last(self, point):
        save(self, point)
        saved.append(point)
        if len(saved) == 8:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save_at", die_at_the_last)
    xclass(*words, "-f", "again", "--passes", 2, "--keep_last")
    monkeypatch.setattr(Run, "save_at", save)
    resumed = learn(*words, "-f", "again", "--passes", 2, "--keep_last", "--resume_run").err
    assert (place / "again").read_bytes() == (place / "whole").read_bytes()
    found = [re.findall(r"^(?:precision|psp|micro F1|.* loss|.* error)\b.*$", text, re.M) for text in (whole, resumed)]
    assert found[0] == found[1] and len(found[0]) > 5
