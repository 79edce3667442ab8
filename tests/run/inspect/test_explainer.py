"""--explain: text and JSON, names, files, and that it changes nothing; --audit of learners without weight tables."""

import json
import re

import pytest
from command import learn, xclass

from xclass import load

TRAIN = """\
sport | ball goal team
cooking | oven flour salt
sport | team match goal
cooking | salt pan flour
music | guitar song |more band
music |more band |stage song
"""
TEST = "music 'b | team goal song\ncooking | salt\n"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A folder with a model of each kind."""
    folder = tmp_path_factory.mktemp("models")
    for name in ("multiclass", "oaa 3", "cpt 0", "log_multi 3", "ect 3", "softmax_tree 3"):
        name, *classes = name.split()
        learn(f"--{name}", *classes, "--learn_names", "-b", 14, "-f", name, "--quiet", stdin=TRAIN, cwd=folder)
    return folder


def explained(models, name: str, *more) -> list[dict]:
    out = learn("-i", name, "-t", "--quiet", "--explain", 1, "--explain_format", "json", *more, stdin=TEST, cwd=models)
    return [json.loads(line) for line in out.lines]


@pytest.mark.parametrize("name", ["multiclass", "oaa", "cpt", "softmax_tree"])
def test_json_has_the_answer_the_label_and_their_shares(models, name):
    shown = learn("-i", name, "-t", "--quiet", "-p", "stdout", stdin=TEST, cwd=models).lines
    first, second = explained(models, name)
    assert [line.split()[0] for line in shown] == [first["prediction"], second["prediction"]]
    assert (first["line"], first["tag"], first["label"], second["line"], second["tag"]) == (1, "b", "music", 2, "")
    listed = [entry["class"] for entry in first["classes"]]
    assert listed == list(dict.fromkeys([first["prediction"], "music"]))
    for entry in first["classes"]:
        assert sum(share["share"] for share in entry["shares"]) == pytest.approx(entry["score"], abs=1e-5)
    names = {share["name"] for entry in first["classes"] for share in entry["shares"]}
    names |= {share["name"] for entry in first["classes"] for turn in entry["path"] for share in turn.get("shares", ())}
    assert {"team", "song"} & names


WITH_PARTS = (
    " = scorer ",
    "  team = scorer ",
    "  (trees) = mean log probability ",
    "    tree 0: probability ",
    " turn",
)


@pytest.mark.parametrize(("form", "shown"), [("text", False), ("parts", True)])
def test_text_has_one_line_for_a_feature_and_parts_on_request(models, form, shown):
    args = ("-i", "multiclass", "-t", "--explain", 1, "--quiet", "--explain_format", form)
    out = learn(*args, stdin=TEST, cwd=models).out
    assert out.startswith("line 1 'b: prediction ")
    assert ", label music, 3 classes compared\n" in out
    assert "  next: " in out
    assert [text in out for text in WITH_PARTS] == [shown] * len(WITH_PARTS)
    (first,) = re.findall(r"^  \w.*\n((?:    .*\n)+)", out.partition("  next: ")[0], re.MULTILINE)[:1]
    names = [line.split()[1] for line in first.splitlines() if line.lstrip()[0] in "+-"]
    assert {*names} >= {"team", "goal", "(trees)", "(index)"} and len(names) == len({*names})
    assert names.index("(trees)") > max(map(names.index, ("team", "goal")))


@pytest.mark.parametrize("form", ["text", "parts"])
def test_the_text_of_the_command_is_that_of_python(models, form):
    args = ("-i", "multiclass", "-t", "--explain", 2, "--quiet", "--explain_format", form)
    out = learn(*args, stdin=TEST.splitlines()[0], cwd=models).out
    with load(models / "multiclass") as model:
        explanation = model.explain(TEST.splitlines()[0])
    assert out == f"line 1 'b: {explanation.as_text(with_parts=form == 'parts')}\n"


def test_turns_show_their_features_where_a_tree_decides(models):
    for name in ("log_multi", "ect", "cpt"):
        out = learn("-i", name, "-t", "--explain", 1, "--quiet", stdin=TEST, cwd=models).out
        turns = [line for line in out.splitlines() if line.startswith("    ")]
        assert turns
        assert any(" team " in line for line in turns)
        assert all(" left " in line or " right " in line for line in turns)


@pytest.mark.parametrize("name", ["multiclass", "log_multi", "cpt", "softmax_tree"])
def test_shares_beyond_the_limit_are_summed(models, name):
    whole, short = explained(models, name), explained(models, name, "--explain_features", 2)
    for long_one, short_one in zip(whole, short, strict=True):
        for entry, limited in zip(long_one["classes"], short_one["classes"], strict=True):
            assert not any("others" in share for share in limited["shares"][:-1])
            assert limited["shares"][:2] == entry["shares"][:2] and limited["parts"] == entry["parts"]
            assert sum(s["share"] for s in limited["shares"]) == pytest.approx(sum(s["share"] for s in entry["shares"]))


def test_the_name_of_the_file_chooses_the_format(models, tmp_path):
    args = ("-i", "oaa", "-t", "--explain", 2, "--quiet")
    learn(*args, "--explain_file", tmp_path / "e.jsonl", stdin=TEST, cwd=models)
    learn(*args, "--explain_file", tmp_path / "e.txt", stdin=TEST, cwd=models)
    assert [json.loads(line)["line"] for line in (tmp_path / "e.jsonl").read_text().splitlines()] == [1, 2]
    text = learn(*args, stdin=TEST, cwd=models).out
    assert (tmp_path / "e.txt").read_text() == text
    assert learn(*args, "--explain_file", "-", stdin=TEST, cwd=models).out == text


def test_features_are_named_although_there_is_a_cache(models, tmp_path):
    (tmp_path / "data").write_text(TEST)
    args = ("-i", models / "oaa", "-t", "--explain", 1, "--quiet", "-d", "data", "-c")
    first, second = learn(*args, cwd=tmp_path), learn(*args, cwd=tmp_path)
    assert (tmp_path / "data.cache").exists()
    assert first.out == second.out
    assert "  team\n" in first.out


@pytest.mark.parametrize("name", ["cpt", "log_multi", "softmax_tree"])
@pytest.mark.parametrize("option", ["--audit", "--readable_model", "--invert_hash"])
def test_learners_without_weight_tables_name_what_to_give_instead(models, name, option):
    options = ("-i", name, "-t", "--quiet", option, *(["text"] if option != "--audit" else []))
    done = xclass(*options, stdin=TEST, cwd=models)
    assert done.status == 2
    assert f"{option} shows weight tables of VW's kind, which --{name} does not have; give --explain N" in done.err
