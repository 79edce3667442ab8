"""Every seed that is allowed works with everything that draws, and no other is."""

from __future__ import annotations

import pytest
from command import learn, xclass

LARGEST = 2**64 - 1
DATA = "".join(f"{i % 6 + 1} | w{i % 6} x{i % 7}\n" for i in range(60))
DRAWING = [
    ("--oaa", 6, "--oaa_subsample", 2),
    ("--recall_tree", 6),
    ("--random_tree", 6),
    ("--cpt", 6, "--trees", 3, "--cpt_tree", "kmeans"),
    ("--cpt", 6, "--trees", 3, "--tree_noise", 0.1),
    ("--cpt", 6, "--shuffle", 10),
    ("--multiclass", 6),
    ("--softmax_tree", 6, "--depth", 1),
    ("--softmax_tree", 6, "--depth", 1, "--tree_init", "prototypes", "--leaf_solver", "steps"),
    ("--softmax_tree", 6, "--depth", 1, "--tree_init", "clusters"),
]


@pytest.mark.parametrize("words", DRAWING, ids=lambda words: " ".join(map(str, words)))
def test_the_largest_seed_works_and_is_kept(tmp_path, words):
    (tmp_path / "d.vw").write_text(DATA)
    first = learn("d.vw", *words, "-b", 8, "--random_seed", LARGEST, "-f", "m", "--quiet", cwd=tmp_path)
    learn("d.vw", *words, "-b", 8, "--random_seed", LARGEST, "-f", "again", "--quiet", cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    learn("d.vw", "-i", "m", "-t", "-p", "stdout", "--quiet", cwd=tmp_path)
    if words[0] != "--softmax_tree":
        learn("d.vw", "-i", "m", "--random_seed", LARGEST, "-f", "more", "--quiet", cwd=tmp_path)
    assert not first.err


@pytest.mark.parametrize("seed", [LARGEST + 1, 10**30, -1])
def test_another_seed_is_refused_with_the_range(seed):
    done = xclass("d.vw", "--random_seed", seed)
    assert done.status == 2
    assert done.err == (
        f"xclass: --random_seed: {seed} is out of range; give a whole number from 0 to 18446744073709551615\n"
    )
