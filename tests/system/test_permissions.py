"""What may not be read or written is named, with what to do, by a process without the rights of the superuser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from running import ROOT

PLAIN = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
CHECK = "check its name and permissions"
CASES = [  # command, whether TMPDIR cannot be written, message
    ("-d unread.vw --oaa 3", False, f"unread.vw: the file cannot be opened (Permission denied); {CHECK}"),
    ("tune -d unread.vw --time 3", False, f"unread.vw: the file cannot be read (Permission denied); {CHECK}"),
    ("-t -i unread.m -d d.vw", False, f"unread.m: cannot load the model: Permission denied; {CHECK}"),
    ("serve -i unread.m --port 0", False, f"unread.m: cannot load the model: Permission denied; {CHECK}"),
    ("-d d.vw --oaa 3 -f closed/m", False, "closed/m: the model cannot be written there: there is no permission to"),
    ("-d d.vw --softmax_tree 3", True, "closed: cannot keep the examples that are learned at the end of the data: "
     "Permission denied; set TMPDIR to another folder"),
    ("tune -d d.vw --multiclass --time 3", True, "closed: a temporary cache cannot be written (Permission denied); a "
     "search reads the examples from it: set TMPDIR to another folder"),
    ("-d - --oaa 3 --passes 2", True, "closed: a temporary cache cannot be written (Permission denied), and data from "
     "a pipe can be read only once; set TMPDIR to another folder"),
]  # fmt: skip


@pytest.mark.skipif(bool(PLAIN) and shutil.which("setpriv") is None, reason="the superuser may read all files")
@pytest.mark.parametrize(("words", "temporary", "message"), CASES)
def test_what_may_not_be_used_is_named(words, temporary, message, tmp_path):
    data = "1 | a\n2 | b\n3 | c\n"
    for name in ("d.vw", "unread.vw", "unread.m"):
        (tmp_path / name).write_text(data)
    for name in ("unread.vw", "unread.m"):
        (tmp_path / name).chmod(0)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)
    pipe = words.startswith("-d - ")
    result = subprocess.run(
        [*PLAIN, sys.executable, "-m", "xclass", *words.removeprefix("-d - ").split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), **({"TMPDIR": str(closed)} if temporary else {})},
        input=data if pipe else None,
        stdin=None if pipe else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert message in result.stderr and "Traceback" not in result.stderr, result.stderr
