"""Advice about models that do not fit together is followed by training them as it says, and then they are merged."""

import re
from pathlib import Path

import pytest
from command import xclass as command

FILES = {
    "a.vw": "1 | a\n2 | b\n",
    "b.vw": "2 | a\n1 | b\n",
    "numbers.vw": "1 |x 0:1 1:2\n2 |x 0:2 1:1\n",
    "numbers.csv": "label,price,size\n" + "".join(f"{1 + i % 2},{i * 3.5},{i % 7 * 1000}\n" for i in range(40)),
    "text.csv": "label,text\n" + "".join(f"{1 + i % 2},w{i % 2} v{i % 5}\n" for i in range(40)),
    "lists.vw": "1,2 | a\n2 | b\n",
}
FROM_ONE_BASE = """{options} -d {first} -d {second} -f base
-i base -d {first} -f a
-i base -d {second} -f b
merge a b --base base -f merged"""
SAME_TREE = """{options} -d {first} --save_tree tree
{options} -d {first} {advised} tree -f a
{options} -d {second} {advised} tree -f b
merge a b -f merged"""
BOTH_WITH = """{options} {advised} -d {first} -f a
{options} {advised} -d {second} -f b
merge a b -f merged"""
# options and data of two trainings, the advice of merging their models, and the commands that follow it
OF_TRAININGS = [
    ("--cpt 3", "a.vw", "b.vw", r"let all (continue) from one model .* as --base", FROM_ONE_BASE),
    ("--cpt 3", "a.vw", "b.vw", "a file of --save_tree, as (--cpt_tree)$", SAME_TREE),
    ("--multiclass", "a.vw", "b.vw", "To merge the trees too, let all (continue) from one model", FROM_ONE_BASE),
    ("--multiclass", "a.vw", "numbers.vw", "give (--normalize_features unit) when both", BOTH_WITH),
    ("--multiclass", "a.vw", "numbers.vw", "or train both from (one base)$", FROM_ONE_BASE),
    ("--multiclass", "numbers.csv", "numbers.vw", "give (--normalize_features columns) or unit", BOTH_WITH),
    ("--multiclass", "numbers.csv", "text.csv", "train both from (the same columns)",
     "{options} -d {second} -f a\n{options} -d {second} -d {second} -f b\nmerge a b -f merged"),
]  # fmt: skip


def trained(words: str) -> None:
    done = command(*words.split())
    assert done.status == 0, (words, done.err)


@pytest.fixture(autouse=True)
def files(place):
    for name, text in FILES.items():
        Path(name).write_text(text)


@pytest.mark.parametrize(("options", "first", "second", "advice", "followed"), OF_TRAININGS)
def test_advice_about_models_that_do_not_fit_is_followed_by_trainings(options, first, second, advice, followed):
    trained(f"{options} -d {first} -f a")
    trained(f"{options} -d {second} -f b")
    apart = command("merge", "a", "b", "-f", "merged")
    found = re.search(advice, apart.err, re.MULTILINE)
    assert found, apart.err
    for words in followed.format(options=options, first=first, second=second, advised=found[1]).splitlines():
        done = command(*words.split())
        assert done.status == 0 and found[0] not in done.err, (words, done.err)


@pytest.mark.parametrize("reduction", ["--multilabel", "--multilabel_oaa 3", "--plt 3"])
def test_a_threshold_that_merging_leaves_out_is_given_with_the_merged_model(reduction):
    for name, threshold in (("a", 0.3), ("b", 0.9)):
        trained(f"{reduction} -d lists.vw --threshold {threshold} -f {name}")
    found = re.search(
        "different values of (--threshold), .* load the model with -i", command("merge", "a", "b", "-f", "x").err
    )
    trained(f"-t -i x -d lists.vw {found[1]} 0 -p all")
    trained(f"-t -i x -d lists.vw {found[1]} 1 -p none")
    assert Path("all").read_text().count(",") > Path("none").read_text().count(",")


def test_models_with_other_options_are_merged_once_they_are_trained_with_the_same():
    trained("--oaa 3 -d a.vw -f a")
    trained("--oaa 4 -d a.vw -f b")
    assert "train them with the same options" in command("merge", "a", "b", "-f", "x").err
    trained("--oaa 3 -d b.vw -f b")
    trained("merge a b -f x")
