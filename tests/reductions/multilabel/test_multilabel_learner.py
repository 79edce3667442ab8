"""--multilabel: labels that grow, K, names, labels that are new in tests, and the same bytes however a run is cut."""

import random

import pytest
from command import learn
from library import for_passes, same_arrays

from xclass import Learner, load
from xclass.reductions.multilabel import frequent

OPTIONS = ("-b", 12, "--quiet")


def lines(n: int, labels: int, seed: int = 0, names: bool = False) -> list[str]:
    """Return lines with one to three labels; two words tell each, in two namespaces, and there is noise."""
    rng = random.Random(f"{n} {labels} {seed}")
    found = []
    for _ in range(n):
        own = sorted({int(labels * rng.random() ** 2) for _ in range(rng.choice((1, 1, 2, 3)))})
        label = ",".join(f"label-{y}" if names else str(y) for y in own)
        words = [f"w{y}_{j}" for y in own for j in range(2)] + [f"n{rng.randrange(40)}" for _ in range(3)]
        found.append(f"{label} |a {' '.join(words)} |b t{own[0] // 2}")
    return found


def precision(model: Learner, tested: list[str]) -> float:
    """Return the share of lines whose best label is one of theirs."""
    best = [ranked[0][0] for ranked in (model.predict(line, k=1) for line in tested)]
    own = [line.split(" ")[0].split(",") for line in tested]
    return sum(str(y) in labels for y, labels in zip(best, own, strict=True)) / len(tested)


@pytest.mark.parametrize("labels", [30, 1500])
def test_labels_are_learned(labels):
    text = lines(4000, labels)
    with Learner("multilabel") as model:
        model.learn_many(text[:3500])
        assert precision(model, text[3500:]) > 0.9


def test_labels_that_come_later_are_learned_and_many_labels_change_the_candidates():
    """The first examples have few labels, so that all are candidates, and later ones more than that."""
    early, late = lines(600, 20), lines(1500, 1400, seed=1)
    assert len({y for line in late for y in line.split(" ")[0].split(",")}) > frequent.MOST_ALL
    with Learner("multilabel") as model:
        model.learn_many(early)
        assert model.core.reduction.labels.state[0] == 20
        model.learn_many(late)
        assert model.core.reduction.labels.state[0] > frequent.MOST_ALL
        tested = [line for line in late if int(line.split(" ")[0].split(",")[0]) > 100][:100]
        assert precision(model, tested) > 0.9
        assert precision(model, early[-100:]) > 0.9


def test_k_is_only_a_hint():
    text = lines(150, 25)
    with Learner("multilabel", bits=12) as model, Learner("multilabel", 3, bits=12) as few:
        model.learn_many(text)
        few.learn_many(text)
        assert same_arrays(model, few)


def test_names_learn_as_numbers_do(tmp_path):
    for names in (False, True):
        (tmp_path / "d").write_text("\n".join(lines(300, 12, names=names)) + "\n")
        words = ("-d", "d", "--multilabel", *OPTIONS, "--top_k", 12, "-p", f"p{names}", "-f", f"m{names}")
        learn(*words, cwd=tmp_path)
    numbers, named = ((tmp_path / f"p{names}").read_text().splitlines() for names in (False, True))
    p = [[sorted(pair.split(":")[1] for pair in line.split()) for line in found] for found in (numbers, named)]
    assert [len(one) for one in p[0]] == [len(one) for one in p[1]]  # the order in which labels are seen is not theirs
    with load(tmp_path / "mTrue") as model:
        best = model.predict(lines(1, 12, seed=5, names=True)[0].split(" ", 1)[1], k=1)
        assert best[0][0].startswith("label-")


def test_labels_that_were_never_learned_are_errors_of_a_test(tmp_path):
    (tmp_path / "d").write_text("\n".join(lines(300, 8)) + "\n")
    learn("-d", "d", "--multilabel", *OPTIONS, "-f", "m", cwd=tmp_path)
    tested = [line.replace(" ", ",900 ", 1) if i % 2 else line for i, line in enumerate(lines(60, 8, seed=2))]
    (tmp_path / "t").write_text("\n".join(tested) + "\n")
    plain = [line.replace(",900 ", " ", 1) for line in tested]
    (tmp_path / "u").write_text("\n".join(plain) + "\n")
    words = ("-t", "-i", "m", "--top_k", 5, "-p", "stdout", "--quiet")
    assert learn(*words, "-d", "t", cwd=tmp_path).lines == learn(*words, "-d", "u", cwd=tmp_path).lines
    with load(tmp_path / "m") as model:
        recall = [model.evaluate(tmp_path / name)["recall_at_5"] for name in "tu"]
    assert recall[0] < recall[1] - 0.1


def test_examples_of_further_passes_say_what_others_say_about_them():
    """Words that occur once tell nothing: neither neighbours nor the index count the example itself."""
    rng = random.Random(1)
    text = [f"{rng.randrange(10)} | a{i} b{i} c{i}" for i in range(60)]
    with for_passes(2, "multilabel", None, bits=20) as model:
        model.learn_many(text)
        model.end_pass()
        proposed = []
        stage = model.core.reduction.propose

        def noted(task):
            stage(task)
            proposed.append(task.plan.proposed)

        model.core.reduction.stages[1] = noted
        model.core.reduction.begin_pass(1)
        model.learn_many(text)
        assert all(not p.vote.any() and not p.score[:, :, 0].any() for p in proposed)
        proposed.clear()
        model.predict_many([line.split(" ", 1)[1] for line in text])
        assert all(p.vote.any() and p.score[:, :, 0].any() for p in proposed)
