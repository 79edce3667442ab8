"""Imports point down: bytes -> parser -> batch -> reduction -> learner -> stats, predictions, model file."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import xclass

ROOT = Path(xclass.__file__).parent
LAYERS = (  # a room may import from the rows below its own
    ("__main__",),
    ("cli",),
    ("config", "driver"),
    ("ending",),
    ("saving",),
    ("readable", "model_contents", "talk", "timing", "signals", "files", "outputs", "first_run", "untaken"),
    ("passes", "cache", "shuffle", "names", "vw_flags", "tree_dump"),
    ("cache_file", "cache_key"),
    ("blocks",),
    ("reader", "interactions", "pipeline", "stats", "predictions", "usage", "reductions"),
    (
        "reductions.oaa",
        "reductions.recall_tree",
        "reductions.log_multi",
        "reductions.ect",
        "reductions.random_tree",
        "reductions.cpt",
        "reductions.scalar",
        "reductions.softmax_tree",
    ),
    ("split_walk", "matches"),
    ("class_rows", "candidates", "successive", "routers", "split_tree"),
    ("routing",),
    ("tree_member", "cpt_options", "softmax_options"),
    ("pecoc_tree", "tao", "class_prototypes"),
    (
        "parser",
        "features",
        "learner",
        "huffman",
        "label_clusters",
        "feature_scales",
        "reductions.contract",
        "probability_tree",
        "reranking",
        "reliability",
        "tree_file",
        "pecoc",
    ),
    ("softmax_steps",),
    ("tree_search", "l1_logistic", "l1_softmax", "softmax_nodes"),
    ("softmax_paths", "sparse_rows", "l1_step"),
    (
        "label_tree",
        "node_weights",
        "label_counts",
        "label_sums",
        "split_cells",
        "tournament",
        "weight_table",
        "text_lines",
    ),
    ("rule", "label_words", "selection"),
    ("class_names", "name_weights"),
    ("hashing", "numbers", "loss", "rng", "model_file", "rows", "columns", "answers", "best_constant"),
    ("elementary", "stored_arrays", "table_size", "bad_lines", "multiclass", "outline", "processors", "progress_table"),
    ("finite",),
    ("examples", "options", "jit"),  # anyone may import these
    ("intrinsics", "address_space", "leftovers", "printable", "kernel_cache"),
    ("errors", "__init__"),
)
LEVEL = {room: level for level, row in enumerate(LAYERS) for room in row}


def rooms() -> dict[str, Path]:
    """Return every module of the package: `learner`, `reductions.oaa`, `reductions` for a package's own file."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path
    return found


ROOMS = rooms()


def imported(room: str) -> Iterator[str]:
    """Yield the modules of ours that a room imports, anywhere in its file."""
    path = ROOMS[room]
    package = ["xclass", *path.relative_to(ROOT).parts[:-1]]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for one in node.names:
                if one.name.split(".")[0] == "xclass":
                    yield one.name.partition(".")[2] or "__init__"
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base += node.module.split(".") if node.module else []
            if base[:1] != ["xclass"]:
                continue
            for one in node.names:
                inside = ".".join(base[1:])
                full = f"{inside}.{one.name}".lstrip(".")
                yield full if full in ROOMS else inside or "__init__"


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_imports_point_down(room):
    assert room in LEVEL, "a new room: give it a row in LAYERS"
    upward = [other for other in imported(room) if LEVEL[other] <= LEVEL[room]]
    assert not upward


def test_no_reduction_imports_another():
    reductions = {room for room in ROOMS if room.startswith("reductions.")} - {"reductions.contract"}
    for room in reductions:
        assert not reductions & set(imported(room))


def test_text_and_reductions_never_meet():
    for room in ROOMS:
        if room.startswith("reductions."):
            text = {"parser", "text_lines", "label_words", "bad_lines", "reader", "hashing"}
            text |= {"stats", "progress_table", "predictions"}
            assert not text & set(imported(room))
    for room in ("parser", "text_lines", "label_words", "features", "reader", "interactions", "names"):
        assert not [other for other in imported(room) if other.startswith("reductions") or other == "learner"]


def test_model_file_knows_no_reduction():
    assert set(imported("model_file")) <= {"errors", "leftovers", "stored_arrays"}
    assert set(imported("stored_arrays")) <= {"errors", "jit", "printable"}


def test_reductions_are_chosen_by_the_driver_only():
    users = {room for room in ROOMS for other in imported(room) if other == "reductions"}
    assert users <= {"cli", "driver"}
