"""Bring a file of a public source into a folder; go on where an earlier try was cut short.

    python -m scripts.paper.fetch FOLDER NAME URL... [--size BYTES] [--md5 DIGEST] [--data DIR]
    python -m scripts.paper.fetch FOLDER NAME --page URL [--data DIR]

Where DIR or FOLDER has the file, nothing is loaded; in DIR it may also be packed or unpacked: NAME.gz, .bz2, .xz, .Z or
.zip for NAME, and the other way round. Addresses are tried in turn. What has come so far is kept in NAME.part and
the server asked for the rest. Size and digest of what is loaded are checked where they are given. With --page there is
nothing to load: a file that is only to be had by hand, from that page. The path is written to standard output.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

PACKED = (".gz", ".bz2", ".xz", ".Z", ".zip")
SECONDS = 30  # without a byte before a connection counts as lost
TRIES = 3  # of every address, each going on where the last one stopped
BLOCK = 1 << 18
REPORT = 5.0  # seconds between two words about the progress


class Gone(Exception):
    """A file that cannot be had; the message is all the user sees."""


def found_in(folder: Path, name: str) -> Path | None:
    """Return the file that is there by this name, or packed or unpacked."""
    stem = next((name[: -len(end)] for end in PACKED if name.endswith(end)), name)
    for one in (name, stem, *(stem + end for end in PACKED)):
        if (folder / one).is_file():
            return folder / one
    return None


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


def total_of(answer: http.client.HTTPResponse, begin: int) -> int | None:
    """Return how long the whole file is, as far as the answer's head tells."""
    whole = answer.headers.get("Content-Range", "").rpartition("/")[2]
    if whole.isdigit():
        return int(whole)
    length = answer.headers.get("Content-Length")
    return begin + int(length) if length else None


def load(url: str, part: Path) -> None:
    """Load what `part` lacks of the file at `url`; raise OSError if that is cut short."""
    begin = part.stat().st_size if part.exists() else 0
    request = urllib.request.Request(url, headers={"User-Agent": "xclass"})
    if begin:
        request.add_header("Range", f"bytes={begin}-")
    try:
        answer = urllib.request.urlopen(request, timeout=SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != 416 or not begin:
            raise
        if error.headers.get("Content-Range", "") == f"bytes */{begin}":
            return  # it was all there
        part.unlink()
        raise OSError("the file has changed at its source; starting again") from None
    with answer:
        going_on = answer.status == 206 and answer.headers.get("Content-Range", "").startswith(f"bytes {begin}-")
        if not going_on:
            begin = 0
        total = total_of(answer, begin)
        with open(part, "ab" if going_on else "wb") as file:
            have, said = begin, time.monotonic()
            while block := answer.read(BLOCK):
                file.write(block)
                have += len(block)
                if time.monotonic() - said > REPORT:
                    said = time.monotonic()
                    share = f" of {total / 1e6:,.1f}" if total else ""
                    print(f"  {have / 1e6:,.1f}{share} MB", file=sys.stderr, flush=True)
    if total is not None and have < total:
        raise OSError(f"cut short after {have:,} of {total:,} bytes")


def fetch(folder: Path, name: str, urls: list[str], size: int | None = None, md5: str | None = None) -> Path:
    """Return the path of the file in `folder`, loaded if it was not there; raise Gone if it cannot be had."""
    folder.mkdir(parents=True, exist_ok=True)
    path, part = folder / name, folder / (name + ".part")
    if path.is_file():
        wrong = check(path, size, md5)
        if wrong:
            raise Gone(f"{path}: {wrong}; remove it to load it again")
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
    kept = f" What came so far is in {part}; run again to go on." if part.exists() else ""
    raise Gone(
        "\n".join([f"{name} cannot be had from its source:", *reasons])
        + f"\nIf you have the file, run with DATA=FOLDER, the folder it is in.{kept}"
    )


def main() -> int:
    """Do what the command line says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("name", metavar="NAME")
    parser.add_argument("urls", nargs="*", metavar="URL")
    parser.add_argument("--page", metavar="URL", help="where the file can be had by hand")
    parser.add_argument("--size", type=int, metavar="BYTES")
    parser.add_argument("--md5", metavar="DIGEST")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of files that are there already")
    given = parser.parse_args()
    try:
        path = found_in(given.data, given.name) if given.data else None
        if path is None and given.page and not (given.folder / given.name).is_file():
            raise Gone(
                f"{given.name} has to be fetched by hand, from {given.page}\n"
                f"Put it, by this name, plain or packed, into a folder and run with DATA=FOLDER."
            )
        if path is None:
            path = fetch(given.folder, given.name, given.urls, given.size, given.md5)
    except Gone as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
