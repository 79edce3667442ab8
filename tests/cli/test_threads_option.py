"""The option `--threads` of the subcommands."""

import re

import pytest
import streams
from command import learn, xclass

from xclass.system import thread_limit

K = 6


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with data, a model, and two files of predictions."""
    folder = tmp_path_factory.mktemp("threads")
    (folder / "train.vw").write_text(streams.multiclass(1, K, 400))
    (folder / "test.vw").write_text(streams.multiclass(2, K, 200))
    for name, bits in (("m", 16), ("n", 8)):
        learn("-d", "train.vw", "--oaa", K, "-b", bits, "-f", name, "--quiet", cwd=folder)
        learn("-d", "test.vw", "-t", "-i", name, "-p", f"{name}.txt", "--quiet", cwd=folder)
    return folder


@pytest.mark.parametrize(
    ("words", "made"),
    [
        (("compare", "m.txt", "n.txt", "-d", "test.vw"), None),
        (("shrink", "m", "-f", "s", "-d", "test.vw"), "s"),
        pytest.param(("report", "-i", "m", "-d", "test.vw", "-o", "r.html"), "r.html", marks=pytest.mark.slow),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_what_is_made_does_not_depend_on_the_limit(place, monkeypatch, words, made):
    if words[0] == "report":
        pytest.importorskip("matplotlib", reason="matplotlib, of the extra plot, is not installed: nothing is drawn")
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(4)), raising=False)
    results = []
    for limit in ((), ("--threads", 1), ("--threads", 2)):
        result = xclass(*words, *limit, cwd=place)
        assert result.status in (0, 3), result.err
        content = "" if made is None else (place / made).read_text(encoding="latin-1")
        content = re.sub(r"\d+ processors", "", content)
        results.append((result.out, result.err, content))
    assert results[0] == results[1] == results[2] and thread_limit.most() is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("compare", "a.json", "b.json"), "--threads has no effect: no data are read"),
        (("shrink", "m", "-f", "s"), "--threads has no effect: no data are read"),
        (("report", "-i", "m", "-o", "r.html"), "--threads has no effect: no data are read"),
        (("merge", "m", "n", "-f", "o"), "there is no option --threads"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_the_limit_is_refused_where_it_has_no_effect(place, words, message):
    result = xclass(*words, "--threads", 2, cwd=place)
    assert result.status == 2 and message in result.err
