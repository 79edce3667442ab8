"""`Learner.from_command`: the options of a learner as on the command line."""

import pytest

import xclass
from xclass.api import configuration
from xclass.cli import command
from xclass.options.declare import options_of

LINES = ["1 | a b", "2 | b c", "3 | c d"] * 5


@pytest.mark.parametrize(
    ("words", "reduction", "classes", "options"),
    [
        ("--oaa 3 -b 12 -l .3", "oaa", 3, {"bits": 12, "learning_rate": 0.3}),
        (["--oaa", "3", "-b12", "-q", "::", "-q", "ab"], "oaa", 3, {"bits": 12, "quadratic": ["::", "ab"]}),
        ("--oaa=3 -b 12 --named_labels 'x,y,z'", "oaa", 3, {"bits": 12, "named_labels": "x,y,z"}),
        ("--multiclass -b 12", "multiclass", None, {"bits": 12}),
        ("--multiclass 50 -b 12 --noconstant", "multiclass", 50, {"bits": 12, "noconstant": True}),
        ("-b 12", "multiclass", None, {"bits": 12}),
        ("--recall_tree 3 --max_candidates 2 -b 12", "recall_tree", 3, {"max_candidates": 2, "bits": 12}),
    ],
    ids=str,
)
def test_words_give_the_learner_of_the_keywords(tmp_path, words, reduction, classes, options):
    lines = [f"{'xyz'[int(line[0]) - 1]}{line[1:]}" for line in LINES] if "named_labels" in options else LINES
    paths = tmp_path / "words", tmp_path / "keywords"
    learners = xclass.Learner.from_command(words), xclass.Learner(reduction, classes, **options)
    for model, path in zip(learners, paths, strict=True):
        with model:
            model.learn_many(lines)
            model.save(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_the_reduction_that_words_do_not_name_is_an_argument():
    with xclass.Learner.from_command("-b 10 --loss_function logistic", reduction="scalar") as model:
        assert repr(model) == "xclass.Learner('scalar')"


def test_names_are_learned_as_by_any_new_learner():
    with xclass.Learner.from_command("-b 12") as model:
        model.learn_many(["tea | kettle", "coffee | cup"] * 5)
        assert model.predict("| cup") == "coffee"


def test_names_are_read_from_a_file(tmp_path):
    (tmp_path / "names").write_text("x\ny\n")
    with xclass.Learner.from_command(f"--oaa 2 -b 10 --named_labels @{tmp_path}/names") as model:
        assert model.options["named_labels"] == "x,y"


def test_every_option_of_a_run_is_refused_with_advice():
    groups, _ = command.option_groups()
    everything = [option for group in groups.values() for option in options_of(group).values()]
    of_learner = {flag for option in configuration.declared_options().values() for flag in option.flags}
    of_run = [option for option in everything if not of_learner & set(option.flags)]
    assert len(of_run) > 20
    for option in of_run:
        for flag in (*option.flags, *option.aliases):
            value = [] if option.kind is bool else ["1"]
            with pytest.raises(xclass.UsageError, match=f"^{flag} belongs to a run of the command; "):
                xclass.Learner.from_command([flag, *value])
    known = {flag for option in everything for flag in (*option.flags, *option.aliases)}
    assert {flag for flags, _ in configuration.OF_A_RUN for flag in flags.split()} <= known
