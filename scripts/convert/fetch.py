"""Download a file of a public source into a folder; resume where an earlier attempt was cut short.

    python -m scripts.convert.fetch FOLDER NAME URL... [--size BYTES] [--md5 DIGEST] [--data DIR]
    python -m scripts.convert.fetch FOLDER NAME --page URL [--data DIR]

Where DIR or FOLDER has the file, nothing is loaded; in DIR it may also be packed or unpacked: NAME.gz, .bz2, .xz, .Z or
.zip for NAME, and the other way round. Addresses are tried in turn. What has come so far is kept in NAME.part and
the server asked for the rest. Size and digest of what is loaded are checked where they are given. With --page there is
nothing to load: a file that is only to be had by hand, from that page. The path is written to standard output.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from scripts.lib.command_line import new_parser, run
from scripts.lib.data_sets import local_file
from scripts.lib.processes import BenchError

SECONDS = 30  # without data before a connection is given up
TRIES = 3  # of every address, each resuming where the last one stopped
BLOCK = 1 << 18
REPORT = 5.0  # seconds between two words about the progress


def check(path: Path, size: int | None, md5: str | None) -> str | None:
    """Return what is wrong with a file, None if it is as it should be."""
    length = path.stat().st_size
    if size is not None and length != size:
        return f"{length:,} bytes, not {size:,}"
    if md5:
        digest = hashlib.md5()
        with open(path, "rb") as file:
            while block := file.read(BLOCK):
                digest.update(block)
        if digest.hexdigest() != md5:
            return f"MD5 {digest.hexdigest()}, not {md5}"
    return None


def total_of(response: http.client.HTTPResponse, start: int) -> int | None:
    """Return the length of the whole file, or None if the header of the response does not give it."""
    whole = response.headers.get("Content-Range", "").rpartition("/")[2]
    if whole.isdigit():
        return int(whole)
    length = response.headers.get("Content-Length")
    return start + int(length) if length else None


def load(url: str, part: Path) -> None:
    """Load what `part` lacks of the file at `url`; raise OSError if that is cut short."""
    start = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "xclass"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    try:
        response = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not start:
            raise
        if error.headers.get("Content-Range", "") == f"bytes */{start}":
            return  # it was all there
        part.unlink()
        raise OSError("the file has changed at its source; starting again") from None
    with response:
        going_on = response.status == 206 and response.headers.get("Content-Range", "").startswith(f"bytes {start}-")
        if not going_on:
            start = 0
        total = total_of(response, start)
        with open(part, "ab" if going_on else "wb") as file:
            have, reported = start, time.monotonic()
            while block := response.read(BLOCK):
                file.write(block)
                have += len(block)
                if time.monotonic() - reported > REPORT:
                    reported = time.monotonic()
                    share = f" of {total / 1e6:,.1f}" if total else ""
                    print(f"  {have / 1e6:,.1f}{share} MB", file=sys.stderr, flush=True)
    if total is not None and have < total:
        raise OSError(f"cut short after {have:,} of {total:,} bytes")


def fetch(folder: Path, name: str, urls: list[str], size: int | None = None, md5: str | None = None) -> Path:
    """Return the path of the file in `folder`, downloaded if it was missing; raise BenchError if that fails."""
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / name, folder / (name + ".part")
    if path.is_file():
        wrong = check(path, size, md5)
        if wrong:
            raise BenchError(f"{path}: {wrong}; remove it to load it again")
        return path
    reasons = []
    for url in urls:
        print(f"loading {url}", file=sys.stderr, flush=True)
        for attempt in range(TRIES):
            try:
                load(url, part)
            except (OSError, http.client.HTTPException) as error:
                reason = str(getattr(error, "reason", None) or error) or type(error).__name__
                if isinstance(error, urllib.error.HTTPError):
                    reason = f"HTTP {error.code} {error.reason}"
                if attempt + 1 < TRIES and not isinstance(error, urllib.error.URLError):
                    print(f"  {reason}; going on", file=sys.stderr, flush=True)
                    continue
                reasons.append(f"  {url}: {reason}")
                break
            wrong = check(part, size, md5)
            if not wrong:
                os.replace(part, path)
                return path
            part.unlink()
            reasons.append(f"  {url}: {wrong}")
            break
    resume = f" What came so far is in {part}; run again to go on." if part.exists() else ""
    raise BenchError(
        "\n".join([f"{name} cannot be had from its source:", *reasons])
        + f"\nIf you have the file, run with DATA=FOLDER, the folder it is in.{resume}"
    )


def main() -> None:
    """Execute what the command line requests."""
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument("--page", metavar="URL", help="where the file can be had by hand")
    parser.add_argument("--size", type=int, metavar="BYTES")
    parser.add_argument("--md5", metavar="DIGEST")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of files that are there already")
    given = parser.parse_args()
    path = local_file(given.data, given.name) if given.data else None
    if path is None and given.page and not (given.folder / given.name).is_file():
        raise BenchError(
            f"{given.name} has to be fetched by hand, from {given.page}\n"
            f"Put it, by this name, plain or packed, into a folder and run with DATA=FOLDER."
        )
    print(path or fetch(given.folder, given.name, given.urls, given.size, given.md5))


if __name__ == "__main__":
    run(main)
