"""Drive a headless Chromium through its DevTools protocol over two pipes, without any further package."""

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SECONDS = 120  # time limit of one answer
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip


def path_of_browser() -> str:
    """Return the path of Chromium; skip the test where there is none."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if not found:
        pytest.skip(f"no browser: none of {', '.join(NAMES)} is installed, and CHROMIUM names none")
    return found


class Browser:
    """A page in Chromium; `events` collects what the protocol reports, such as messages in the console."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._number, self._rest = 0, b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the result of a command of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], SECONDS)
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 20)
            assert data, "the browser has ended"
            self._rest += data
        first, _, self._rest = self._rest.partition(b"\0")
        return json.loads(first)

    def wait_for(self, method: str) -> None:
        """Wait until an event has been reported."""
        while not any(event["method"] == method for event in self.events):
            self.events.append(self._message())

    def open(self, path: Path, width: int, height: int, scheme: str = "light", media: str = "screen") -> None:
        """Load a file in a window of this size, with a colour scheme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str, **more: Any) -> None:
        """Press and release a key."""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, **more)

    def screenshot(self, whole: bool = False) -> bytes:
        """Return a picture of the window, or of the whole page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"])

    def printed(self) -> bytes:
        """Return the page as PDF."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def messages(self) -> list[str]:
        """Return what was written to the console, and errors, since the page was opened."""
        self.value("0")
        texts = []
        for event in self.events:
            if event["method"] == "Runtime.consoleAPICalled":
                texts.append(str([value.get("value") for value in event["params"]["args"]]))
            if event["method"] == "Runtime.exceptionThrown":
                texts.append(event["params"]["exceptionDetails"]["text"])
            if event["method"] == "Log.entryAdded":
                texts.append(event["params"]["entry"]["text"])
        return texts

    def requests(self) -> list[str]:
        """Return the addresses that were requested since the page was opened."""
        sent = [
            event["params"]["request"]["url"] for event in self.events if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in sent if not url.startswith("data:")]


@contextlib.contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """Start Chromium with its files in a new folder, and end it afterwards."""
    program = path_of_browser()
    to_browser, write = os.pipe()
    read, from_browser = os.pipe()

    def join_pipes() -> None:  # the protocol wants them as 3 and 4
        source, target = os.dup(to_browser), os.dup(from_browser)
        os.dup2(source, 3)
        os.dup2(target, 4)

    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={folder / 'profile'}"], preexec_fn=join_pipes, pass_fds=(3, 4),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment,
    )  # fmt: skip
    os.close(to_browser)
    os.close(from_browser)
    try:
        browser = Browser(read, write)
        yield browser
        with contextlib.suppress(AssertionError, OSError):
            browser._session = None
            browser.call("Browser.close")
    finally:
        os.close(write)
        os.close(read)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
