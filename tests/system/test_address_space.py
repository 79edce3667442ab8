"""Under a memory limit a run reports the limit and ends with status 1, whatever native code would do."""

import subprocess
import sys

import pytest

from xclass.binary import gd
from xclass.errors import UsageError, XclassError
from xclass.system import memory

resource = pytest.importorskip("resource")
if not sys.platform.startswith("linux"):
    pytest.skip("only Linux limits the address space and tells how much is used", allow_module_level=True)

MB = 1 << 20


def limited(megabytes: int, *words, cwd) -> subprocess.CompletedProcess:
    """Run the command with an address space of so many MB."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MB, megabytes * MB))

    return subprocess.run(
        [sys.executable, "-m", "xclass", *map(str, words)], preexec_fn=limit, capture_output=True, text=True, cwd=cwd,
        timeout=400, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize("megabytes", [100, 150, 200, 300, 400, 500, 700, 900])
def test_memory_limit_that_is_too_small_gives_one_message(tmp_path, megabytes):
    (tmp_path / "d.vw").write_text("1 | a\n2 | b\n3 | c\n")
    result = limited(megabytes, "-d", "d.vw", "--oaa", 3, "-b", 14, "-f", "m", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(
        f"xclass: the address space is limited to {megabytes} MB, and this run needs about "
    )
    assert "`ulimit -v " in result.stderr
    assert not (tmp_path / "m").exists()


def test_help_needs_no_more_than_the_command(tmp_path):
    assert limited(300, "--help", cwd=tmp_path).returncode == 0


def test_a_table_beyond_the_limit_is_refused_with_the_largest_that_fits(monkeypatch):
    monkeypatch.setattr(memory, "_limit", lambda: 2000 * MB)
    monkeypatch.setattr(memory, "_used", lambda: 350 * MB)
    assert memory.remaining() == 900 * MB
    assert memory.available() <= 900 * MB
    monkeypatch.setattr(memory, "_free_memory", lambda: None)
    with pytest.raises(UsageError, match="the largest that fits is -b 25"):
        gd.check_memory(26)


def test_no_limit_is_no_bound(monkeypatch):
    monkeypatch.setattr(memory, "_limit", lambda: None)
    assert memory.remaining() is None
    memory.check_address_space(memory.COMMAND, memory.RUN)
    memory.check_address_space(memory.RUN)
    memory.check_address_space(memory.THREADS, remedy=", or give a smaller -b")


def test_what_is_needed_counts_from_what_is_used(monkeypatch):
    monkeypatch.setattr(memory, "_used", lambda: 100 * MB)
    monkeypatch.setattr(memory, "_limit", lambda: 100 * MB + memory.THREADS)
    memory.check_address_space(memory.THREADS, remedy=", or give a smaller -b")
    monkeypatch.setattr(memory, "_limit", lambda: 100 * MB + memory.THREADS - 1)
    with pytest.raises(XclassError, match="smaller -b"):
        memory.check_address_space(memory.THREADS, remedy=", or give a smaller -b")
