"""`xclass.vw.Workspace` beside VW's own: the same program with either module, and all that it returns."""

import copy
import doctest
import gc
import pickle
import random
import sys

import pytest
from command import run_forked
from streams import multiclass, real

import xclass
import xclass.vw

vowpalwabbit = pytest.importorskip("vowpalwabbit", reason="needs VW's Python module")

K = 6
MODULES = (vowpalwabbit, ""), (xclass.vw, "--vw_exact ")
PROGRAMS = [
    "",
    "--loss_function logistic --link logistic",
    "-b 12 -q ::",
    f"--oaa {K}",
    f"--oaa {K} --noconstant -b 12",
    f"--oaa {K} --probabilities",
    f"--recall_tree {K} --max_depth 2 --max_candidates 3",
    f"--log_multi {K}",
    f"--ect {K} --error 2",
]


def lines_for(options: str, n: int, seed: int = 5) -> list[str]:
    if str(K) in options:
        return multiclass(seed, K, n).splitlines()
    lines = real(seed, n).splitlines()
    if "logistic" in options or "--binary" in options:
        lines = [f"{(-1) ** i} |{line.split('|', 1)[1]}" for i, line in enumerate(lines)]
    return lines


def some_of(model) -> range:
    """Return places of the weights of a table: one in five, in which there are still some that are not 0."""
    return range(0, model.num_weights(), 5)


def features(line: str) -> str:
    return "|" + line.split("|", 1)[1]


def interleaved(module, options: str):
    """Learn and predict in all ways; yield all that the module returns."""
    generator = random.Random(7)
    with module.Workspace("--quiet " + options) as model:
        yield int(model.get_prediction_type()), int(model.get_label_type()), model.num_weights()
        for line in lines_for(options, 250):
            way = generator.randrange(6)
            if way < 3:
                model.learn(line)
            elif way == 3:
                yield model.predict(features(line))
            elif way == 4:
                yield model.predict(line)
            else:
                example = model.example(line) if generator.random() < 0.5 else model.parse(line)
                for _ in range(generator.randrange(3)):
                    model.learn(example)
                model.predict(example)
                yield example.get_tag(), "oaa" in options and example.get_multiclass_label()
                yield example.get_prediction(), example.get_label().label, example.get_label().weight
                yield model.get_sum_loss()
                if generator.random() < 0.8:
                    model.finish_example(example)
            yield model.get_sum_loss(), model.get_weighted_examples()
        for name in ("a0", "a1", "b3", "7"):
            for space in (" ", "a", "bb"):
                yield name, model.get_weight_from_name(name, space)
                yield model.hash_feature(name, model.hash_space(space)), model.hash_space(space)
        yield [model.get_weight(i) for i in some_of(model)]
        if "--sgd" not in options:
            yield [model.get_weight(i, 1) for i in some_of(model)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("options", PROGRAMS)
def test_a_program_returns_the_same_with_either_module(options):
    theirs, ours = ([*interleaved(module, options + " " + exact)] for module, exact in MODULES)
    assert len(theirs) == len(ours) > 250
    for expected, found in zip(theirs, ours, strict=True):
        assert expected == found
    assert any(ours[-1])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "options",
    ["", "--passes 3 -k", "-q ::", f"--oaa {K}", f"--oaa {K} --passes 3 -k",
     f"--oaa {K} --sgd --passes 2 -k --holdout_off",
     f"--recall_tree {K} --passes 2 -k --holdout_off", f"--oaa {K} -t"],
)  # fmt: skip
def test_data_are_learned_at_once_and_learning_goes_on(tmp_path, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train").write_text("\n".join(lines_for(options, 150)) + "\n")
    results = []
    for module, exact in MODULES:
        name = module.__name__
        cache = {"cache_file": f"{name}.cache"} if "passes" in options else {}
        model = module.Workspace(f"{options} {exact}", d="train", p=f"{name}.p", f=f"{name}.f", quiet=True, **cache)
        found = [model.get_sum_loss(), model.get_weighted_examples(), model.get_holdout_sum_loss()]
        found += [model.get_weight(i) for i in some_of(model)]
        for line in lines_for(options, 40, seed=6):
            model.learn(line)
            found += [model.predict(features(line)), model.get_sum_loss()]
        model.finish()
        with module.Workspace(f"--quiet -t -i {name}.f {exact}") as model:
            found += [model.predict(line) for line in lines_for(options, 40, seed=7)]
        results.append([*found, (tmp_path / f"{name}.p").read_text()])
    assert results[0] == results[1]


def test_files_are_written_at_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module, exact in MODULES:
        name = module.__name__
        model = module.Workspace(
            arg_list=["--quiet", "--oaa", str(K), *exact.split()], final_regressor=f"{name}.f", p=f"{name}.p",
            readable_model=f"{name}.txt", invert_hash=f"{name}.names",
        )  # fmt: skip
        for line in lines_for("--oaa 6", 60):
            model.learn(line)
            model.predict(line)
        if name == "vowpalwabbit":
            model.finish()
        del model
        gc.collect()  # ends the Workspace
    assert (tmp_path / "xclass.vw.p").read_text() == (tmp_path / "vowpalwabbit.p").read_text()
    for end in ("txt", "names"):
        found, expected = (
            [line for line in (tmp_path / f"{name}.{end}").read_text().splitlines() if line[:2] not in ("Id", "Ch")]
            for name in ("xclass.vw", "vowpalwabbit")
        )
        assert found == expected
        assert len(found) > 20
    with xclass.load(tmp_path / "xclass.vw.f") as model:
        assert model.examples == 60


@pytest.mark.parametrize(
    "options", ["", "--oaa 3", "--oaa 3 -q ab", "--hash all --oaa 3", "--hash_seed 5", "--recall_tree 3"]
)
def test_dictionaries_are_examples(options):
    contents = [
        {"a": ["x", ("y", 2.5), "x"], "b": {"z": 0.3, "q": 0}},
        {" ": ["u", "v", ("10", 0.1)]},
        {"a": {"k": 1e-3}, "apple": ["x", ("long name", 3)]},
        {"c": ["a:b", "c|d"]},
    ] * 5
    results = []
    for module, exact in MODULES:
        found = []
        with module.Workspace(f"--quiet {options} {exact}") as model:
            for content, label in zip(contents, ["2 1.5", "1", "3 .5", "1"] * 5, strict=True):
                example = model.example(content)
                example.set_label_string(label)
                model.learn(example)
                label = example.get_label()
                found.append((example.get_prediction(), label.label, label.weight))
                model.finish_example(example)
                again = model.example(content)
                found.append(model.predict(again))
                model.finish_example(again)
                found += [model.get_sum_loss(), model.get_weight_from_name("x", "a"), model.get_weight_from_name("10")]
        results.append(found)
    assert results[0] == results[1]


def test_keywords_are_options():
    for module, exact in MODULES:
        with module.Workspace(exact, oaa=3, b=12, quiet=True, q="aa", noconstant=False, l=0.25) as model:
            model.learn("1 |a x")
            assert model.num_weights() == 4096
    with xclass.vw.Workspace(oaa=3, q=["ab", "ac"], quiet=True) as model:
        assert model._session.config.interactions.quadratic == ("ab", "ac")


def test_the_names_of_the_module_are_there():
    from xclass.vw import Example, LabelType, PredictionType, pyvw

    model = pyvw.vw(quiet=True, oaa=3)
    assert isinstance(model, xclass.vw.Workspace)
    example = pyvw.Example(model, "1 2 | a")
    assert isinstance(example, Example)
    assert example.get_label(LabelType.MULTICLASS).weight == 2
    example.learn()
    assert model.predict("| a", PredictionType.MULTICLASS) == example.get_prediction() == 1
    for kind in (PredictionType, LabelType):
        theirs = getattr(vowpalwabbit, kind.__name__)
        assert {member.name: int(member) for member in kind}.items() <= {m.name: int(m) for m in theirs}.items()


def test_xclass_predicts_more_than_vw():
    with xclass.vw.Workspace("--multiclass --learn_names --quiet") as model:
        model.learn("tea | kettle")
        model.learn("coffee | cup")
        assert model.predict("| cup") == "coffee"
    with xclass.vw.Workspace("--multiclass --top_k 2 --quiet") as model:
        model.learn("1 | kettle")
        model.learn("2 | cup")
        assert [label for label, _ in model.predict("| cup")] == [2, 1, None]
    with xclass.vw.Workspace("--oaa 2 --named_labels tea,coffee --quiet") as model:
        model.learn("coffee | cup")
        assert model.predict("| cup") == 2  # as in VW
    with xclass.vw.Workspace("--softmax_tree 2 --quiet") as model, pytest.raises(xclass.UsageError, match="data=FILE"):
        model.learn("1 | a")


def test_messages_go_to_the_log_or_to_standard_error(capfd):
    model = xclass.vw.Workspace("--oaa 3", enable_logging=True)
    model.learn("1 | a")
    model.finish()
    assert "average loss = 0.000000" in model.get_log()
    assert capfd.readouterr().err == ""
    with xclass.vw.Workspace("--oaa 3") as model:
        model.learn("1 | a")
        with pytest.raises(xclass.UsageError, match="enable_logging=True"):
            model.get_log()
    assert "average loss = 0.000000" in capfd.readouterr().err


def test_the_model_is_saved_when_the_program_ends(tmp_path):
    program = "from xclass.vw import Workspace\nmodel = Workspace('--oaa 2 --quiet -f model')\nmodel.learn('1 | a')\n"
    run_forked([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ("--csoaa 3", xclass.UsageError, "--csoaa: xclass does not support costs"),
        ("--oaa 3 --passes 3", xclass.UsageError, "--passes has no effect without data"),
        ("-c", xclass.UsageError, "--cache has no effect without data"),
        ("--oaa 3 -d missing", xclass.DataError, "missing: there is no such file"),
        ("-i missing", xclass.ModelError, "missing: cannot load"),
        ("--help", xclass.UsageError, "--help belongs to the command"),
    ],
)
def test_options_that_are_not_supported_are_named(options, error, message):
    with pytest.raises(error, match=message):
        xclass.vw.Workspace(options)


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda model: model.learn(["1 | a"]), TypeError, "several lines"),
        (lambda model: model.learn("1 | a\n2 | b"), TypeError, "one line, and this text holds 2"),
        (lambda model: model.learn(3), TypeError, "and not int"),
        (lambda model: model.parse(3), TypeError, "and not int"),
        (lambda model: model.learn("x | a"), xclass.DataError, "label 'x' is not a class number"),
        (lambda model: model.predict("| a", 0), xclass.UsageError, "prediction type 0"),
        (lambda model: model.example("| a", 1), xclass.UsageError, "label type 1"),
        (lambda model: model.example({"a": [5]}), xclass.UsageError, "the feature 5 is not text"),
        (lambda model: model.example({"a": 3}), xclass.UsageError, "neither a dictionary nor a list"),
        (lambda model: model.get_weight(0, 4), xclass.UsageError, "offset 4"),
        (lambda model: model.get_weight(0, "a"), xclass.UsageError, "offset 'a'"),
        (lambda model: model.get_weight(-1), TypeError, r"the index -1 .* 0 to 4294967295; num_weights\(\) is 262144"),
        (lambda model: model.get_weight(2**32), TypeError, "the index 4294967296"),
        (lambda model: model.get_weight("a"), TypeError, "the index 'a' .* get_weight_from_name"),
        (pickle.dumps, TypeError, r"cannot be pickled or copied; call save\(FILE\)"),
        (copy.copy, TypeError, "cannot be pickled or copied"),
        (lambda model: model.json_weights(), AttributeError, "json_weights"),
    ],
)
def test_uses_that_are_not_supported_are_named(use, error, message):
    with xclass.vw.Workspace("--oaa 3 --quiet") as model:
        model.learn("1 | a")
        with pytest.raises(error, match=message):
            use(model)
        assert model.get_weighted_examples() == 1
    assert model.finished
    with pytest.raises(xclass.UsageError, match="this Workspace is finished"):
        model.predict("| a")


@pytest.mark.parametrize("options", ["--oaa 3 -b 4 -q ab -q ac", "--sgd --power_t 0.5 --loss_function logistic"])
def test_the_options_and_the_version_of_a_workspace(options):
    with vowpalwabbit.Workspace(options, quiet=True) as theirs, xclass.vw.Workspace(options, quiet=True) as ours:
        assert ours.get_arguments() == theirs.get_arguments().strip()
    assert xclass.vw.__version__ == xclass.__version__


def test_an_example_has_a_tag_and_a_class():
    for module, _ in MODULES:
        with module.Workspace("--oaa 3 --quiet") as model:
            examples = [model.parse(line) for line in ("2 'a-tag| a", "| a", "bare-tag| a")]
            assert [example.get_tag() for example in examples] == ["a-tag", "", "bare-tag"]
            assert [example.get_multiclass_label() for example in examples] == [2, 2**32 - 1, 2**32 - 1]
            for example in examples:
                model.finish_example(example)


def test_reductions_without_a_weight_table_say_so():
    with xclass.vw.Workspace("--cpt 0 --quiet") as model, pytest.raises(xclass.UsageError, match="cpt has no table"):
        model.get_weight(0)


def test_the_examples_of_the_docstrings_run():
    failed, tried = doctest.testmod(xclass.vw)
    assert (failed, tried > 1) == (0, True)
