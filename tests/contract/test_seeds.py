"""Every seed that is allowed works with everything that draws, and no other is."""

import pytest
from command import learn, xclass
from library import state_of

from xclass.api.learner import Learner, load
from xclass.errors import UsageError

LARGEST = 2**64 - 1
DATA = "".join(f"{i % 6 + 1} | w{i % 6} x{i % 7}\n" for i in range(60))
DRAWING = [
    ("oaa", {"oaa_subsample": 2, "indexing": 1}),
    ("recall_tree", {}),
    ("random_tree", {}),
    ("cpt", {"trees": 3, "cpt_tree": "kmeans"}),
    ("cpt", {"trees": 3, "tree_noise": 0.1}),
    ("multiclass", {}),
    ("softmax_tree", {"depth": 1}),
    ("softmax_tree", {"depth": 1, "tree_init": "prototypes", "leaf_solver": "steps"}),
    ("softmax_tree", {"depth": 1, "tree_init": "clusters"}),
]


@pytest.mark.parametrize(("reduction", "options"), DRAWING, ids=str)
def test_the_largest_seed_works_and_is_kept(tmp_path, reduction, options):
    path = str(tmp_path / "m")
    states = []
    for _ in range(2):
        with Learner(reduction, 6, bits=8, random_seed=LARGEST, **options) as model:
            notes = model.learn_many(DATA).warnings + model.end_pass().warnings
            model.save(path)
            states.append(state_of(model))
    assert states[0] == states[1]
    assert notes == ()
    with load(path) as model:
        assert model.options["random_seed"] == LARGEST
        assert len(model.predict_many(DATA)) == 60
        if reduction != "softmax_tree":
            assert len(model.learn_many(DATA).prediction) == 60


def test_a_run_shuffles_by_the_largest_seed(tmp_path):
    (tmp_path / "d.vw").write_text(DATA)
    words = ("d.vw", "--cpt", 6, "--shuffle", 10, "-b", 8, "--random_seed", LARGEST, "--quiet")
    runs = [learn(*words, "-f", model, cwd=tmp_path) for model in ("m", "again")]
    assert (tmp_path / "m").read_bytes() == (tmp_path / "again").read_bytes()
    assert not runs[0].err
    learn("d.vw", "-i", "m", "--random_seed", LARGEST, "-f", "more", "--quiet", cwd=tmp_path)


@pytest.mark.parametrize("seed", [LARGEST + 1, 10**30, -1])
def test_another_seed_is_refused_with_the_range(seed):
    with pytest.raises(UsageError, match=f"random_seed: {seed} is not a whole number from 0 to 18446744073709551615$"):
        Learner("oaa", 6, random_seed=seed)
    result = xclass("d.vw", "--random_seed", seed)
    assert result.status == 2
    assert result.err == (
        f"xclass: --random_seed: {seed} is out of range; give a whole number from 0 to 18446744073709551615\n"
    )
