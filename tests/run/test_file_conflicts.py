"""No run writes over its own data, or two things into one file."""

from __future__ import annotations

import os

import pytest
from command import learn, start_process, xclass

from xclass.cli.command import option_groups
from xclass.options.declare import options_of

WRITTEN = {
    "dot_tree", "print_tree", "save_tree",
    "cache_file", "calibration", "final_regressor", "invert_hash", "predictions", "raw_predictions", "readable_model",
    "curve", "errors", "explain_file", "per_class", "summary",
}  # fmt: skip
DATA = "1 |a b\n2 |a c\n" * 20


@pytest.fixture
def place(tmp_path):
    """A folder with data, a link to it, a model of it and the model's text."""
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "other").write_text(DATA)
    os.link(tmp_path / "data", tmp_path / "same")
    (tmp_path / "link").symlink_to("data")
    learn("data", "--oaa", "2", "-b", "8", "-f", "m", cwd=tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("data --oaa 2 -p data", "-p data would write over the data file data; give another name to one of them"),
        ("data --oaa 2 -p ./same", "-p ./same would write over the data file data"),
        ("data other --oaa 2 -f other", "-f other would write over the data file other"),
        ("link --oaa 2 -r data", "-r data would write over the data file link"),
        ("data --oaa 2 --readable_model link", "--readable_model link would write over the data file data"),
        ("data --oaa 2 --cache_file same", "--cache_file same would write over the data file data"),
        ("data -t -i m -p m", "-p m would write over the model m of -i"),
        ("m -t -i m -p stdout", None),
        ("data -i m -f m", None),
        ("data --oaa 2 -p new -r ./new", "-p and -r both write new; give each its own file"),
        ("data --oaa 2 -p new -f new", "both write new"),
        ("data --oaa 2 --invert_hash m -f m", "both write m"),
        ("data --oaa 2 -p stdout -r stdout", "-p and -r both write standard output"),
        ("data --oaa 2 -p /dev/null -r /dev/null", None),
        ("data --oaa 2 -c -p data.cache", "-p and -c both write data.cache"),
        ("data data.cache --oaa 2 -c", "-c data.cache would write over the data file data.cache"),
        (
            "data --oaa 2 -f m -p m.2 --save_per_pass --passes 3",
            "-p m.2 is where --save_per_pass saves the model of",
        ),
        ("data --oaa 2 -f m -p m.2", None),
        (
            "data --oaa 2 -f m -p m.interrupted",
            "-p m.interrupted is where an interrupted run saves the model of -f m",
        ),
        ("data --cpt 2 --calibration same", "--calibration same would write over the data file data"),
    ],
)
def test_outputs_never_lie_on_inputs_or_on_each_other(place, args, message):
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    result = xclass(*args.split(), "--quiet", cwd=place)
    if message is None:
        assert result.status != 2, result.err
        return
    assert result.status == 2
    assert message in result.err
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


def test_every_option_that_names_a_file_says_whether_it_is_read():
    options = {name: option for group in option_groups()[0].values() for name, option in options_of(group).items()}
    files = {name: option.read for name, option in options.items() if option.metavar == "FILE"}
    assert {name for name, read in files.items() if read} == {"data", "initial_regressor"}
    assert {name for name, read in files.items() if not read} == WRITTEN
    assert not [name for name, option in options.items() if option.read and name not in files]
    assert not [name for name in files if options[name].stored]  # a model names no file


def test_standard_input_and_output_are_known_by_what_they_are(place):
    for end, status in (("same", 2), ("p", 0)):
        with open(place / "data", "rb") as data:
            child = start_process("--oaa", 2, "-p", end, "--quiet", cwd=place, stdin=data)
            _, err = child.communicate(timeout=400)
        assert child.returncode == status
        assert (b"-p same would write over standard input" in err) == (status == 2)
    with open(place / "data", "ab") as out:
        child = start_process("data", "--oaa", 2, "-p", "stdout", cwd=place, stdout=out)
        _, err = child.communicate(timeout=400)
    assert b"-p standard output would write over the data file data" in err
    assert (place / "data").read_text() == DATA
