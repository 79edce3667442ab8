"""Write sets of dense rows: FOLDER/{train,test}.npy, with FOLDER/{train,test}.labels.npy beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

PARTS = ("train", "test")


def save(folder: Path, part: str, rows: np.ndarray, labels: np.ndarray) -> None:
    """Write rows, [n, d], as float32, and labels, [n]."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / f"{part}.npy", np.ascontiguousarray(rows, np.float32))
    np.save(folder / f"{part}.labels.npy", labels)
    print(f"{folder.name} {part}: {len(rows)} rows of {rows.shape[1]}, {len(np.unique(labels))} classes")
