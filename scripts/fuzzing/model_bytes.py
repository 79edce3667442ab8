"""Model files with right checksums and any content, in the layout of xclass/model_file.py.

`model_file.save` refuses what no learner would store; this writes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from xclass.model import model_header

RAW = (  # ways to write a header that no learner would write
    "version 2", "version x", "no version", "no facts", "no sums", "other sums", "metadata list", "metadata number",
    "options list", "options empty", "options nan", "options twice", "options deep", "options long number",
    "options text", "facts deep", "facts list", "shape negative", "shape huge", "shape float", "shape bool",
    "shape many", "shape missing", "dtype other", "dtype number", "offsets hole", "offsets back", "offsets beyond",
    "offsets one", "entry text", "tail", "short", "long header", "not utf-8", "entry of no bytes",
)  # fmt: skip


def packed(options: Any, facts: Any, arrays: Mapping[str, np.ndarray], raw: str = "") -> bytes:
    """Return a model file; `raw`: one of RAW."""
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    contents = {name: np.ascontiguousarray(arrays[name]).tobytes() for name in order}
    checksums = {name: f"{zlib.crc32(contents[name]):08x}" for name in order}
    about: Any = {
        "format": "xclass model", "header_crc32": "0" * 8, "version": "1", "options": _json(options),
        "facts": _json(facts), "crc32": _json(checksums),
    }  # fmt: skip
    entries: dict[str, Any] = {"__metadata__": about}
    end = 0
    for name in order:
        start, end = end, end + len(contents[name])
        dtype = model_header.NAMES.get(arrays[name].dtype, str(arrays[name].dtype))
        entries[name] = {"dtype": dtype, "shape": list(arrays[name].shape), "data_offsets": [start, end]}
    tail = _corrupt(entries, about, raw, order)
    text = json.dumps(entries, separators=(",", ":")).encode("utf-8", "surrogatepass")
    if raw == "not utf-8":
        text = text[:-1] + b',"\xff\xfe":1}'
    text += b" " * (-(8 + len(text)) % model_header.ALIGN)
    if raw == "long header":
        text += b" " * (1 << 20)
    head = bytearray(len(text).to_bytes(8, "little") + text)
    head[model_header.CHECKSUM_DIGITS] = b"0" * 8
    head[model_header.CHECKSUM_DIGITS] = b"%08x" % zlib.crc32(head)
    body = b"".join(contents.values())
    return bytes(head) + (body[:-1] if raw == "short" else body + tail)


def _json(record: Any) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), default=lambda scalar: scalar.item())


def _corrupt(entries: dict, about: dict, raw: str, order: list[str]) -> bytes:
    """Change a header in one of the ways of RAW; return what follows the arrays."""
    words = raw.split()
    if raw == "tail":
        return b"\0" * 64
    if words[:1] == ["version"]:
        about["version"] = words[1]
    elif words[:1] == ["no"]:
        del about[{"version": "version", "facts": "facts", "sums": "crc32"}[words[1]]]
    elif raw == "other sums":
        about["crc32"] = "{}"
    elif raw == "metadata list":  # still begins as it has to
        about["more"] = ["x"]
    elif raw == "metadata number":
        about["more"] = 5
    elif words[:1] in (["options"], ["facts"]):
        about[words[0]] = {
            "list": "[]", "empty": "{}", "nan": '{"bits":NaN}', "twice": '{"bits":8,"bits":9}', "deep": "[" * 100_000,
            "long": '{"bits":' + "9" * 5000 + "}", "text": "x",
        }[words[1]]  # fmt: skip
    elif words and order:
        entry = entries[order[len(order) // 2]]
        size = np.dtype(model_header.DTYPES.get(entry["dtype"], np.uint8)).itemsize
        start, after = entry["data_offsets"]
        changes = {
            "shape negative": {"shape": [-1, *entry["shape"]]},
            "shape huge": {"shape": [1 << 61, 1 << 61]},
            "shape float": {"shape": [float(n) for n in entry["shape"]]},
            "shape bool": {"shape": [True] * 3},
            "shape many": {"shape": [1] * 40 + entry["shape"]},
            "shape missing": {"shape": None},
            "dtype other": {"dtype": "C64"},
            "dtype number": {"dtype": 5},
            "offsets hole": {"data_offsets": [start + size, after + size]},
            "offsets back": {"data_offsets": [after, start]},
            "offsets beyond": {"data_offsets": [start, after + (1 << 50)]},
            "offsets one": {"data_offsets": [start]},
        }
        if raw in changes:
            entry.update(changes[raw])
        elif raw == "entry text":
            entries[order[0]] = "x"
        elif raw == "entry of no bytes":
            entries["nothing"] = {"dtype": "F32", "shape": [0, 1 << 40], "data_offsets": [start, start]}
    return b""
