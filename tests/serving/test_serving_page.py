"""The blocks of docs/serving.md that need a server: each runs as it stands, but for the numbers of the ports."""

import contextlib
import io
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess

import pytest
from command import learn
from running import ROOT
from servers import SECONDS, command

from tests.test_doc_commands import agree, blocks, commands

DATA = "".join(f"{i % 5 + 1} |f x{i % 5 + 1} y{i % 5 + 1}\n" for i in range(500))


def free_port() -> str:
    """Return a port that nothing listens at; `--http 0` would tell its choice in a message only."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return str(listening.getsockname()[1])


@pytest.mark.parametrize("program", ["nc", "curl"])
def test_the_blocks_that_need_a_server(program, tmp_path):
    """Servers that are asked by `nc` and Python, or by `curl`."""
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    if program == "curl":
        pytest.importorskip("httptools")
    (tmp_path / "train.vw").write_text(DATA)
    learn("-d", "train.vw", "-f", "model.bin", "--quiet", cwd=tmp_path)
    ran, names = 0, {}
    with contextlib.ExitStack() as running:
        process, ports = None, {"8000": free_port()}

        def stop():
            if process is not None:
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=SECONDS)
                assert process.returncode == 0

        for block in blocks((ROOT / "docs" / "serving.md").read_text(encoding="utf-8")):
            if block.reason is None or "with a server" not in block.reason:
                continue
            if block.kind == "python":
                if program == "nc":
                    printed = io.StringIO()
                    code = "\n".join(block.lines).replace("26542", ports["26542"])
                    with contextlib.redirect_stdout(printed):
                        exec(code, names)
                    expected = re.findall(r"print\(.*\)  # (.*)", code)
                    assert expected and agree(expected, printed.getvalue().splitlines()), printed.getvalue()
                    ran += 1
                continue
            for words, output in commands(block.lines):
                if words.startswith("xclass serve"):
                    stop()
                    process = None
                    if ("--http" in words) == (program == "curl"):
                        arguments = shlex.split(words.removesuffix("&").replace("8000", ports["8000"]))[1:]
                        process, port = running.enter_context(command(tmp_path, *arguments))
                        ports["26542"] = str(port)
                elif words == "kill %1":
                    stop()
                    process = None
                elif process is not None and program in words:
                    for shown, used in ports.items():
                        words = words.replace(shown, used)
                    result = subprocess.run(
                        ["sh", "-c", words], cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS
                    )
                    assert result.returncode == 0, f"{words}\n{result.stderr}"
                    assert output is None or agree(output, result.stdout.splitlines()), result.stdout
                    if program == "curl":
                        assert "error" not in json.loads(result.stdout), f"{words}\n{result.stdout}"
                    ran += 1
        stop()
    assert ran == {"nc": 4, "curl": 6}[program]
