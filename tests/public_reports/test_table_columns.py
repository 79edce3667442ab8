"""Columns of tables mean in a test what they meant in training; each case is one of a public report."""

import json
import select
import time
from itertools import pairwise

import pytest
from command import learn, start_process, xclass

from xclass import read_vw
from xclass.api.learner import Learner, load
from xclass.errors import DataError, UsageError

OPTIONS = ("--oaa", 2, "--learn_names", "--passes", 4, "--holdout_off", "--quiet")
TRAIN = "label,size,store\n" + "A,0.25,x 1\nB,3,y\n" * 4


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a table, and the model `m` that was learned from it."""
    (tmp_path / "t.csv").write_text(TRAIN)
    learn("t.csv", *OPTIONS, "-f", "m", cwd=tmp_path)
    return tmp_path


def predicted(folder, text: str, *args, name: str = "n.csv", model: str = "m"):
    """Return the predictions of a model for a table, and what the command says."""
    (folder / name).write_text(text)
    done = xclass(name, "-t", "-i", model, "-p", "stdout", *args, cwd=folder)
    return done.lines, done


# -- a model knows its columns


def test_a_test_without_the_column_of_the_label_is_read_by_the_models_columns(folder):
    """Show that the first column is not taken for the label (lightgbm-org/LightGBM#3626, alteryx/evalml#3498)."""
    lines, done = predicted(folder, "store,size\nx 1,0.25\ny,3\n")
    assert lines == ["A", "B"]
    assert "label: none; numbers: 'size'; text: 'store'" in done.err


def test_columns_are_found_by_name_and_others_are_left_out_with_one_warning(folder):
    lines, done = predicted(folder, "id,store,label,size\n" + "7,x 1,A,0.25\n8,y,B,3\n" * 3)
    assert lines == ["A", "B"] * 3
    assert done.err.count("'id', which is left out") == 1
    assert "left out" not in predicted(folder, "id,store,label,size\n7,y,B,3\n", "--ignore_column", "id")[1].err


def test_a_missing_column_is_refused_by_its_name(folder):
    lines, done = predicted(folder, "label,size\nA,1\n")
    assert (lines, done.status) == ([], 1)
    assert "n.csv:1:1: the header has no column 'store', from which the model has learned" in done.err


def test_one_na_does_not_make_a_column_of_numbers_text(tmp_path):
    """Show that a column of numbers with a missing one stays a column of numbers (PriorLabs/TabPFN#1015)."""
    (tmp_path / "t.csv").write_text("label,size\n" + "A,0.25\nB,3\nA,NA\nB,3\n" * 4)
    done = xclass("t.csv", *OPTIONS[:-1], "-f", "m", cwd=tmp_path)
    assert "numbers: 'size'; text: none" in done.err
    for word in ("", "NA", "N/A", "nan", "NaN", "null", "NULL", "None", "<NA>"):
        lines, done = predicted(tmp_path, f"label,size\n,0.25\n,{word}\n,3\n")
        assert (lines[0], lines[2], len(lines), done.status) == ("A", "B", 3, 0)


def test_numbers_in_a_column_of_text_are_words_and_text_in_one_of_numbers_is_refused(folder):
    assert predicted(folder, "size,store\n3,7\n")[1].status == 0
    lines, done = predicted(folder, "size,store\n0.25,x 1\nlarge,y\n")
    assert (lines, done.status) == (["A"], 1)
    assert (
        "n.csv:3:1: 'large' is text that is not a finite number, and the column 'size' has the kind number" in done.err
    )
    assert "another column" not in done.err
    refused = predicted(folder, "size,store\n3,7\n", "--column_kind", "store:number")[1]
    assert (refused.status, "'store:number': this column has kind text in the model" in refused.err) == (2, True)


def test_learning_goes_on_with_the_columns_of_the_model_and_other_columns_are_refused(folder):
    (folder / "more.csv").write_text("store,label,size\nx 1,A,0.25\n")
    learn("more.csv", "-i", "m", "-f", "m2", "--quiet", cwd=folder)
    assert [*load(str(folder / "m2")).core.schema.columns] == ["size", "store"]
    (folder / "other.csv").write_text("label,price\nA,0.25\n")
    refused = xclass("other.csv", "-i", "m", "-f", "m3", cwd=folder)
    assert (refused.status, "no columns 'size', 'store'" in refused.err) == (1, True)


def test_a_cache_keeps_the_columns(folder):
    for model in ("c1", "c2"):
        learn("t.csv", *OPTIONS, "-c", "-f", model, cwd=folder)
    assert (folder / "c1").read_bytes() == (folder / "c2").read_bytes() == (folder / "m").read_bytes()
    again = xclass("t.csv", *OPTIONS[:-1], "-c", "--ignore_column", "size", "-f", "c3", cwd=folder)
    assert "the cache is made again: it was made with ignore_column" in again.err
    assert load(str(folder / "c3")).core.schema.columns == {"store": "text"}


# -- files without a header


def test_a_first_line_that_looks_like_an_example_is_refused_and_a_header_can_be_named(tmp_path):
    """Show that a TSV file without a header loses no row (google-research/bert#1078, facebookresearch/fastText#205)."""
    rows = "ham\tsee you, then, at, lunch\nspam\twin a prize\n" * 6
    (tmp_path / "t.tsv").write_text(rows.replace("lunch", "noon", 1))
    refused = xclass("t.tsv", *OPTIONS, cwd=tmp_path)
    assert refused.status == 1
    assert "its cell 'ham' is also a cell of the same column in line 3" in refused.err
    assert "--header label,text" in refused.err
    learn("t.tsv", *OPTIONS, "--header", "label,text", "-f", "m", cwd=tmp_path)
    lines, done = predicted(tmp_path, "win a prize\tspam\nsee you\tham\n", "--header", "text,label", name="n.tsv")
    assert (lines, "average loss = 0.000000" in done.err) == (["spam", "ham"], True)
    lines, done = predicted(tmp_path, "spam\twin a prize\nham\tsee you\n", name="n.tsv")
    assert (lines, done.status, "give the names of its columns by --header" in done.err) == ([], 1, True)


def test_a_header_that_occurs_again_is_no_example(tmp_path):
    """Show that a file made of several by `cat` is refused at the second header, or read without it."""
    text = 'label,"size, in m",store\r\n' + "A,0.25,x 1\r\nB,3,y\r\n" * 4000
    for rows, line in ((text + "\N{BYTE ORDER MARK}" + text, 8002), (text[:64] + "\N{BYTE ORDER MARK}" + text[:64], 6)):
        (tmp_path / "t.csv").write_text(rows)
        refused = xclass("t.csv", *OPTIONS, cwd=tmp_path)
        assert f"t.csv:{line}:1: the line is the header again" in refused.err and refused.status == 1
        done = learn("t.csv", *OPTIONS[:-1], "--on_bad_line", "skip", cwd=tmp_path)
        assert "numbers: 'size, in m'" in done.err and "1 malformed line was skipped" in done.err


def test_a_header_whose_name_is_a_value_can_be_affirmed(tmp_path):
    (tmp_path / "t.csv").write_text("ham,text\nham,see you\nspam,win\n")
    assert xclass("t.csv", *OPTIONS, cwd=tmp_path).status == 1
    learn("t.csv", *OPTIONS, "--label_column", "ham", cwd=tmp_path)


@pytest.mark.parametrize("index", ["", "Unnamed: 0"])
def test_the_index_that_pandas_writes_is_left_out_with_a_warning(tmp_path, index):
    """Show that the index is neither a feature nor the label (huggingface/datasets#5490)."""
    (tmp_path / "t.csv").write_text(f"{index},kind,x\n0,A,0.5\n1,B,1.5\n2,A,0.5\n")
    done = learn("t.csv", *OPTIONS[:-1], cwd=tmp_path)
    assert (
        "column 1 of the header has no name and is left out; pandas writes its index so, unless index=False" in done.err
    )
    assert "label: 'kind'; numbers: 'x'; text: none" in done.err


# -- columns that are chosen


def test_columns_are_chosen_left_out_and_typed(tmp_path):
    (tmp_path / "t.csv").write_text("id,label,store,note\n" + "1,A,3,a b\n2,B,7.0,c\n" * 3)
    for options, wanted in (
        (("--ignore_column", "id,note"), {"store": "number"}),
        (("--columns", "store", "--column_kind", "store:category"), {"store": "category"}),
        (("--column_kind", "store:text", "--ignore_column", "id"), {"store": "text", "note": "text"}),
    ):
        learn("t.csv", *OPTIONS, *options, "-f", "m", cwd=tmp_path)
        assert load(str(tmp_path / "m")).core.schema.columns == wanted
    audit = learn("t.csv", *OPTIONS[:3], "--column_kind", "store:category,note:category", "--audit", cwd=tmp_path).out
    assert "\tstore^3:" in audit
    assert "\tstore^7:" in audit
    assert "\tnote^a_b:" in audit


def test_every_command_reads_the_same_columns(folder):
    (folder / "y.csv").write_text("size,y,id,store\n" + "0.25,A,1,x 1\n3,B,2,y\n" * 3)
    chosen = ("-d", "y.csv", "--label_column", "y", "--ignore_column", "id")
    learn(*chosen, "-t", "-i", "m", "-p", "p", "--quiet", cwd=folder)
    assert "p has the same error as p" in learn("compare", "p", "p", *chosen, cwd=folder).out
    shrunk = learn("shrink", "m", "-f", "s", "--keep", 1, *chosen, cwd=folder).err
    assert "error on y.csv: 0.000000 before, 0.000000 after" in shrunk
    learn("report", "-i", "s", *chosen, "--json", "r.json", cwd=folder)
    assert json.loads((folder / "r.json").read_text())["test"]["error"] == 0


def test_a_program_chooses_columns(folder):
    with Learner("oaa", 2, bits=12) as model:
        with pytest.raises(UsageError, match="columns 'nope'"):
            model.learn_file(folder / "t.csv", columns=["nope"])
        assert not model.core.schema
        model.learn_file(folder / "t.csv", passes=4, ignore_column=["size"], column_kind={"store": "category"})
        (folder / "b.csv").write_text("store\nx 1\n")
        with pytest.raises(DataError, match="no column 'store'"):
            model.evaluate(folder / "r.csv") if (folder / "r.csv").write_text("size\n1\n") else None
        assert model.evaluate(folder / "t.csv", ignore_column="size")["average_loss"] == 0
        with pytest.raises(UsageError, match="there is no argument 'colums'"):
            model.evaluate(folder / "t.csv", colums=["size"])


# -- JSON lines


def test_keys_of_json_lines_are_columns(tmp_path):
    rows = [{"message": "hello there", "intent": "greet", "n": 3}, {"message": "bye now", "intent": "leave", "n": None}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows * 3))
    done = learn("t.jsonl", *OPTIONS[:-1], "--label_column", "intent", "-f", "m", cwd=tmp_path)
    assert "label: 'intent'; numbers: 'n'; text: 'message'" in done.err
    ask = lambda *objects: predicted(tmp_path, "".join(json.dumps(one) + "\n" for one in objects), name="n.jsonl")  # noqa: E731
    assert ask({"n": "3", "message": "hello"}, {"message": "bye", "n": "NA"})[0] == ["greet", "leave"]
    assert "no columns 'message', 'n'" in ask({"msg": "hello"})[1].err
    refused = ask({"message": "hello", "n": "many"})[1]
    assert (
        "n.jsonl:1:27: 'many' is text that is not a finite number, and the column 'n' has the kind number"
        in refused.err
    )
    assert ask({"message": ["hello"], "n": 1})[1].status == 1
    lines, done = predicted(tmp_path, "message,n\nhello there,3\nbye now,\n", name="n.csv")
    assert lines == ["greet", "leave"]


def test_json_lines_with_fixed_keys_can_name_the_key_of_the_label(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"text": "a b", "y": "A"}\n{"text": "c", "y": "B"}\n' * 3)
    learn("t.jsonl", *OPTIONS, "--ngram", 2, "--label_column", "y", "-f", "m", cwd=tmp_path)
    (tmp_path / "t.vw").write_text("A | a b\nB | c\n" * 3)
    learn("t.vw", *OPTIONS, "--ngram", 2, "-f", "v", cwd=tmp_path)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "v").read_bytes()


# -- pipes


def test_a_table_from_a_pipe_is_answered_line_by_line(folder):
    """Show that a model that knows its columns does not wait for more rows (newcomer)."""
    process = start_process("-t", "-i", "m", "-p", "stdout", "--quiet", cwd=folder)
    process.stdin.write(b"label,size,store\n")
    for row, answer in ((b",0.25,x 1\n", b"A\n"), (b",3,y\n", b"B\n")):
        process.stdin.write(row)
        process.stdin.flush()
        begin = time.monotonic()
        assert select.select([process.stdout], [], [], 60)[0], time.monotonic() - begin
        assert process.stdout.readline() == answer
    process.communicate()


def test_one_row_decides_on_kinds_even_if_it_is_longer_than_the_first_block(tmp_path):
    columns = [f"c{i}" for i in range(12_000)]
    rows = [["A", *("123.25" for _ in columns)], ["B", *("7" for _ in columns)]]
    (tmp_path / "t.csv").write_text("\n".join(",".join(row) for row in (["label", *columns], *rows)) + "\n")
    lines = [json.dumps(dict(zip(["label", *columns], [row[0], *map(float, row[1:])], strict=True))) for row in rows]
    (tmp_path / "t.jsonl").write_text("\n".join(lines) + "\n")
    for name in ("t.csv", "t.jsonl"):
        with Learner("oaa", 2, bits=18) as model:
            model.learn_file(tmp_path / name)
            assert model.core.schema.columns == dict.fromkeys(columns, "number")


# -- names


def test_names_of_digits_that_are_written_differently_are_different_features(tmp_path):
    """Show that a zip code keeps its leading zero outside VW text, where VW reads a number."""
    words = ["01067", "1067", "7", str(7 + 2**32)]
    files = {
        "csv": ["label,text", *[f"1,{word} a" for word in words]],
        "jsonl": [json.dumps({"label": 1, "features": {word: 1, "zip": word}}) for word in words],
        "svm": [f"1 {word}:1" for word in ("01067", "1067")],
    }
    indices = {}
    for name, lines in files.items():
        (tmp_path / f"f.{name}").write_text("\n".join(lines) + "\n")
        (batch,) = read_vw(tmp_path / f"f.{name}", format="auto")
        indices[name] = [batch.index[low : high - 1].tolist() for low, high in pairwise(batch.start)]
    assert [len({row[k] for row in indices["jsonl"]}) for k in (0, 1)] == [4, 4]
    assert len({row[0] for row in indices["csv"]}) == 4
    assert indices["svm"] == [[1067], [1067]] and indices["jsonl"][2][0] == 7
    with Learner("oaa", classes=4, bits=18) as model:
        for given in (words, [{word: 1} for word in words], [{"zip": word} for word in words]):
            model.learn_many(given * 9, [1, 2, 3, 4] * 9)
            assert model.predict_many(given).tolist() == [1, 2, 3, 4]
            assert f"{words[0]}" in str(model.explain(given[0]))
    with Learner("oaa", classes=4, bits=18) as model:
        model.learn_many(["1 | 01067", "2 | 1067"] * 9)
        assert len({*model.predict_many(["| 01067", "| 1067"]).tolist()}) == 1


@pytest.mark.parametrize(("learned", "tested"), [(str, int), (str, float), (int, str), (float, "{}.0".format)])
@pytest.mark.parametrize("space", ["", "shop"])
def test_a_name_keeps_the_kind_of_its_values(tmp_path, learned, tested, space):
    """Show that `{"store": "3"}` and `{"store": 3}` are one feature in a test."""
    first, other = ([{space: {"store": t(k)}} if space else {"store": t(k)} for k in (1, 3)] for t in (learned, tested))
    lines = [json.dumps({"label": name, "features": row}) for row, name in zip([*first, *other], "ABAB", strict=True)]
    (tmp_path / "t.jsonl").write_text("\n".join(lines[:2] * 9) + "\n")
    (tmp_path / "n.jsonl").write_text("\n".join(lines[2:]) + "\n")
    for file in (False, True):
        with Learner("oaa", classes=2, learn_names=True, bits=12) as model:
            for _ in range(5):
                model.learn_file(tmp_path / "t.jsonl") if file else model.learn_many(first, ["A", "B"])
            assert model.core.schema.names == {space: {"store": "text" if learned is str else "number"}}
            model.save(tmp_path / "m")
        with load(tmp_path / "m") as model:
            assert model.predict_many(other).tolist() == model.predict_many(first).tolist()
            losses = [model.evaluate(tmp_path / f"{name}.jsonl")["average_loss"] for name in "tn"]
            assert losses[0] == losses[1]
            assert model.explain(other[1]) == model.explain(first[1])


def test_blanks_around_the_name_of_a_column_have_no_meaning(tmp_path):
    """Show that the columns of a DataFrame are those of the CSV file that it was read from."""
    pandas = pytest.importorskip("pandas")
    (tmp_path / "t.csv").write_text("label, size,store \nA,0.25,x 1\nB,3,y\n")
    frame = pandas.read_csv(tmp_path / "t.csv")
    with Learner("oaa", classes=2, learn_names=True, bits=12) as model:
        model.learn_file(*[tmp_path / "t.csv"] * 9)
        assert model.predict_many(frame[["store ", " size"]]).tolist() == ["A", "B"]
        with pytest.raises(UsageError, match="two columns named 'size'"):
            model.predict_many(frame.rename(columns={"store ": "size"}))


def test_a_name_with_values_of_both_kinds_is_read_with_a_warning(tmp_path):
    """Show that numbers stay numbers where some values are words, from files and in River."""
    (tmp_path / "t.jsonl").write_text(
        '{"label": 1, "features": {"n": "many", "s": "x"}}\n{"label": 2, "features": {"n": 3, "s": "NA"}}\n'
    )
    done = xclass("t.jsonl", "--oaa", 2, "-f", "m", cwd=tmp_path)
    assert "t.jsonl:1: the feature 'n' has numbers as values, and here 'many'" in done.err
    with Learner("oaa", classes=2, bits=12) as model:
        model.learn({"n": 1, "s": "x"}, 1)
        with pytest.warns(UserWarning, match="'n' has numbers as values, and here 'many'"):
            model.learn({"n": "many"}, 2)
        with pytest.warns(UserWarning, match="'s' has text as values, and here 4; it is read as the text '4'"):
            model.learn({"s": 4}, 2)
        with pytest.raises(DataError):
            model.learn({"new": 1}, "A")
        assert model.core.schema.names == {"": {"n": "number", "s": "text"}}


def test_identifiers_are_no_numbers_when_kinds_are_detected(tmp_path):
    """wireservice/csvkit#977, apache/arrow#46853, duckdb/duckdb#22750, pandas-dev/pandas#32134."""
    head = "Label,zip,long,id,zero\n"
    rows = ["A,01067,12345678901234567,16777217,0", "B,1067,1,16777219,0.5", "A,01067,12345678901234568,1,0"]
    (tmp_path / "t.csv").write_text(head + "\n".join(rows) + "\n")
    done = learn("t.csv", *OPTIONS[:-1], "-f", "m", cwd=tmp_path)
    assert "label: 'Label'; numbers: 'id', 'zero'; text: none; categories: 'zip', 'long'" in " ".join(done.err.split())
    note = (
        "the column 'id' has whole numbers that are rounded, 16777217 to 16777216; if they are identifiers, give "
        "--column_kind 'id:category'"
    )
    assert done.err.count(f"t.csv:2: {note}") == done.err.count("rounded") == 1
    assert "rounded" not in learn("t.csv", *OPTIONS[:-1], "--column_kind", "id:number", cwd=tmp_path).err
    objects = [{"label": "A", "long": 2**53 + 1, "id": 2**24 + 1}, {"label": "B", "long": 0.5, "id": -1}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(one) + "\n" for one in objects))
    done = learn("t.jsonl", *OPTIONS[:-1], "-f", "j", cwd=tmp_path)
    assert load(str(tmp_path / "j")).core.schema.columns == {"long": "category", "id": "number"}
    assert done.err.count(f"t.jsonl:1: {note}") == done.err.count("rounded") == 1


def test_whole_numbers_of_a_data_frame_that_are_rounded_are_told():
    pandas = pytest.importorskip("pandas")
    learner = Learner(reduction="multiclass")
    with pytest.warns(UserWarning, match="the column 'id' has whole numbers that are rounded, 16777217 to 16777216"):
        learner.learn_many(pandas.DataFrame({"id": [1, 2**24 + 1], "n": [1, 2**24]}), y=[1, 2])


def test_an_index_that_pandas_wrote_is_no_feature_of_a_data_frame():
    """Show that `Unnamed: 0` is left out with a warning, as in a CSV file (case 13)."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"Unnamed: 0": [0, 1, 2], "store": ["x", "y", "z"], "size": [1, 2, 3]})
    with Learner("oaa", classes=3, bits=10) as model:
        with pytest.warns(UserWarning, match="not learned from column 'Unnamed: 0', which is left out"):
            model.learn_many(frame, [1, 2, 3])
        assert list(model.core.schema.columns) == ["store", "size"]
        assert model.predict_many(frame).tolist() == model.predict_many(frame.iloc[:, 1:]).tolist()
