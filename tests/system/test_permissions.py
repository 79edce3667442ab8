"""What may not be read or written is named, with what to do, by a process without the rights of the superuser."""

import os
import shutil
import subprocess
import sys

import pytest
from running import ROOT

PLAIN = ["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"] if os.geteuid() == 0 else []
CHECK = "check its name and permissions"
CASES = [  # command, message
    ("-d unread.vw --oaa 3", f"unread.vw: the file cannot be opened (Permission denied); {CHECK}"),
    ("tune -d unread.vw --time 3", f"unread.vw: the file cannot be read (Permission denied); {CHECK}"),
    ("-t -i unread.m -d d.vw", f"unread.m: cannot load the model: Permission denied; {CHECK}"),
    ("serve -i unread.m --port 0", f"unread.m: cannot load the model: Permission denied; {CHECK}"),
]  # fmt: skip


@pytest.mark.skipif(bool(PLAIN) and shutil.which("setpriv") is None, reason="the superuser may read all files")
@pytest.mark.parametrize(("words", "message"), CASES)
def test_what_may_not_be_used_is_named(words, message, tmp_path):
    for name, mode in (("d.vw", 0o600), ("unread.vw", 0), ("unread.m", 0)):
        (tmp_path / name).write_text("1 | a\n2 | b\n3 | c\n")
        (tmp_path / name).chmod(mode)
    result = subprocess.run(
        [*PLAIN, sys.executable, "-m", "xclass", *words.split()],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1
    assert message in result.stderr and "Traceback" not in result.stderr, result.stderr
