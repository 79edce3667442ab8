"""No command writes over a file that it reads, or two things into one file, by whatever names they are given."""

import itertools
import os
import re
from types import SimpleNamespace

import pytest
from command import start_process, xclass

from xclass.cli import subcommands
from xclass.cli.command import option_groups
from xclass.errors import DataError, ModelError, UsageError
from xclass.options import files
from xclass.options.declare import Option, options_of
from xclass.system import output_file
from xclass.tuning.options import TuneOptions as Tuning

DATA = "1 |a b\n2 |a c\n" * 20
NEW = "new"  # stands for a file that does not exist
RUN = {name: option for group in option_groups()[0].values() for name, option in options_of(group).items()}
COMMANDS = {"xclass": RUN, **{f"xclass {one.name}": one.module.declared() for one in subcommands.SUBCOMMANDS}}
NAMES_NO_FILE = {"label_column", "ray", "format"}  # metavars or names that only look like those of files
FILE_LIKE = re.compile(r"FILE|PATH|FOLDER|DIR|MODEL|FIRST")


@pytest.fixture
def place(tmp_path):
    """A folder with data, a hard and a symbolic link to it, and other data."""
    (tmp_path / "data").write_text(DATA)
    (tmp_path / "other").write_text(DATA)
    os.link(tmp_path / "data", tmp_path / "same")
    (tmp_path / "link").symlink_to("data")
    (tmp_path / "folder").mkdir()
    return tmp_path


def contents(place):
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


def test_every_option_that_names_a_file_has_a_role():
    for command, declared in COMMANDS.items():
        for name, option in declared.items():
            if FILE_LIKE.search(f"{option.metavar or ''} {' '.join(option.flags)}") or "this file" in option.help:
                assert option.reads or option.writes or name in NAMES_NO_FILE, f"{command} {option.flags}"
            if option.writes:
                assert not option.stored, f"{command} {option.flags}: a model names no file that is written"
            if option.may_replace:
                assert declared[option.may_replace].reads


def typed(option: Option, name: str, path: str) -> object:
    """The value with which an option names a file; None if it cannot name one."""
    if option.kind is not str:
        return None
    value = f"@{path}" if name == "named_labels" else path
    return (value,) if option.repeated else value


def pairs():
    """Every option that writes, with every other one that reads or writes, of every command."""
    for command, declared in COMMANDS.items():
        roles = {name: one for name, one in declared.items() if (one.reads or one.writes) and typed(one, name, NEW)}
        for written, other in itertools.permutations(roles, 2):
            if roles[written].writes:
                yield command, written, other


@pytest.mark.parametrize(("command", "written", "other"), list(pairs()))
def test_no_option_writes_to_the_file_of_another(place, monkeypatch, command, written, other):
    monkeypatch.chdir(place)
    declared = COMMANDS[command]
    more = {"explain": 1, "no_stdin": True} if command == "xclass" else {}
    for name in ("data", "other"):
        (place / name).write_bytes(b"")  # which a model may replace

    def check(path, other_path):
        values = {written: typed(declared[written], written, path), other: typed(declared[other], other, other_path)}
        files.check(declared, {**more, **values})

    check("data", "other")
    allowed = other == declared[written].may_replace or written == declared[other].may_replace
    for path in ("data", "./data", "same", "link", "folder/../data", str(place / "data")):
        if allowed:
            check(path, "data")
            continue
        with pytest.raises(UsageError, match=r"would write over|both write"):
            check(path, "data")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("data --oaa 2 -p data", "-p data would write over data, which -d reads; give another file"),
        ("data --oaa 2 -p ./same", "-p ./same would write over data, which -d reads"),
        ("data --oaa 2 -p new -r ./new", "-p and -r both write new; give each its own file"),
        ("data --oaa 2 -p stdout -r -", "-p and -r both write standard output"),
        ("data --oaa 2 -p /dev/null -r /dev/null --quiet", None),
        ("data --oaa 2 -c -p data.cache", "-p and -c both write data.cache"),
        ("data data.cache --oaa 2 -c", "-c data.cache would write over data.cache, which -d reads"),
        ("data --oaa 2 -f m -p m.2 --save_per_pass --passes 3", "-p and --save_per_pass both write m.2"),
        ("data --oaa 2 -f m -p m.interrupted", "-f and -p both write m.interrupted"),
        ("data --cpt 2 --named_labels @other -f other", "-f other would write over other, which --named_labels reads"),
        ("data --cpt 2 --cpt_tree general -p general --quiet", None),
        ("dat? --oaa 2 --workers 2 -f data", "-f data would write over data, which -d reads"),
        ("tune data -f data.tune", "--state and -f both write data.tune"),
        ("shrink -f same data", "-f same would write over data, which is read"),
        ("merge -f other data same --base other", "-f other would write over other, which --base reads"),
        ("compare data other -d same --json link", "--json link would write over data, which is read"),
        ("report -i data -o r.html --json r.html", "-o and --json both write r.html"),
        ("data --oaa 2 -t -f m --quiet", "-f m: with -t and without -i the model would have learned nothing; is -i m"),
    ],
)
def test_a_command_refuses_before_it_starts(place, args, message):
    before = contents(place)
    result = xclass(*args.split(), cwd=place)
    if message is None:
        assert result.status == 0, result.err
        return
    assert result.status == 2 and message in result.err
    assert contents(place) == before


@pytest.mark.parametrize("labels", ["rows.labels.npy", "rows.labels.txt"])
def test_no_output_replaces_the_labels_that_lie_beside_an_array(tmp_path, monkeypatch, labels):
    monkeypatch.chdir(tmp_path)
    for name in ("rows.npy", "rows.vw", labels, "rows.vw.labels.txt", "other"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "same").symlink_to(labels)
    for command, declared in COMMANDS.items():
        for name in [name for name, one in declared.items() if one.writes and typed(one, name, NEW)]:
            for data in {"data", "train"} & declared.keys() if "data" in declared else ():
                for path in (labels, "same"):
                    with pytest.raises(UsageError, match="which --label_file reads"):
                        files.check(declared, {data: ("rows.npy",), name: path, "explain": 1})
                        pytest.fail(f"{command} {name}")
                more = {"label_file": "other", "explain": 1}
                files.check(declared, {data: ("rows.npy",), name: labels, **more})
                files.check(declared, {data: ("rows.vw",), name: "rows.vw.labels.txt", "explain": 1})


def test_a_server_writes_over_no_model_of_its_folder(tmp_path):
    (tmp_path / "a.bin").touch()
    result = xclass("serve", "--models", tmp_path, "--http", 0, "--pid_file", tmp_path / "a.bin")
    assert result.status == 2 and "a.bin, which --models reads" in result.err


def test_a_file_that_cannot_be_written_is_refused_before_anything_starts(place, monkeypatch):
    monkeypatch.chdir(place)
    for command, declared in COMMANDS.items():
        for name, option in declared.items():
            if not option.writes or option.reads or option.kind is not str:
                continue
            for path, reason in (
                ("folder", "this is a folder"),
                ("none/x", "there is no folder"),
                ("a" * 300, "the name is too long; give a shorter one"),
            ):
                with pytest.raises(DataError, match=f"{path}: {option.writes} cannot be written there: {reason}"):
                    files.check(declared, {name: path, "explain": 1, "no_stdin": True})
                    pytest.fail(f"{command} {option.flags}")


def test_a_write_protected_place_is_told_from_a_write_protected_file(place, monkeypatch):
    monkeypatch.chdir(place)
    (place / "file").write_text("")
    monkeypatch.setattr(os, "access", lambda path, mode: "file" not in str(path))
    with pytest.raises(DataError, match="no permission to write to this file; change that by chmod or chown"):
        output_file.check_writable("file", "the model")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(DataError, match=f"no permission to write in {place}; give a file in a folder of your own"):
        output_file.check_writable("file", "the model")
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    with pytest.raises(DataError, match=f"{place} is mounted read-only; mount it"):
        output_file.check_writable("new", "the model")


def test_a_model_replaces_nothing_but_a_model(place, monkeypatch):
    monkeypatch.chdir(place)
    model = bytes(8) + output_file.MODEL_PREFIX
    for command, declared in COMMANDS.items():
        for name, option in declared.items():
            if option.writes != output_file.MODEL or option.kind is not str:
                continue
            for path in ("data", "link", "./same"):
                with pytest.raises(ModelError, match=f"^{path}: this is not a model of xclass, so it is not replaced"):
                    files.check(declared, {name: path, "no_stdin": True})
                    pytest.fail(command)
            for path, content in (("whole", model + b"more"), ("cut", model[:30]), ("empty", b"")):
                (place / path).write_bytes(content)
                files.check(declared, {name: path, "no_stdin": True})
            files.check(declared, {name: "/dev/null", "no_stdin": True})
    for derived in ("m.interrupted", "m.parts"):
        (place / derived).write_text(DATA)
        with pytest.raises(ModelError, match=f"{derived}: this is not a model"):
            given = {"save_per_pass": True, "checkpoint": 1, "workers": 2}
            files.check(RUN, {"final_regressor": "m", **given, "no_stdin": True})
        (place / derived).unlink()
    (place / "m.2").write_text(DATA)
    result = xclass("data", "--oaa", 2, "-f", "m", "--save_per_pass", "--passes", 2, "--quiet")
    assert result.status == 1 and "m.2: this is not a model" in result.err and not (place / "m").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_name_is_refused_with_its_option(command):
    declared = COMMANDS[command]
    for name, option in declared.items():
        value = typed(option, name, "")
        if (option.reads or option.writes) and value is not None:
            with pytest.raises(UsageError, match=f"{min(option.flags, key=len)}: the name of the file is empty"):
                files.check(declared, {"explain": 1, "no_stdin": True, name: value})
                pytest.fail(f"{command} {option.flags}")


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
    assert b"-p standard output would write over data, which -d reads" in err
    assert (place / "data").read_text() == DATA


def test_a_file_that_was_not_named_and_cannot_be_written_is_refused_with_the_option_that_names_it(tmp_path):
    (tmp_path / "d.vw.tune").mkdir()
    declared, given = options_of(Tuning), {"data": (str(tmp_path / "d.vw"),)}
    with pytest.raises(DataError, match=r"d\.vw\.tune: .* cannot be written there: .*; --state FILE names another one"):
        files.check(declared, given)
    with pytest.raises(DataError) as error:
        files.check(declared, {**given, "state": str(tmp_path / "d.vw.tune")})
    assert "--state" not in str(error.value)
