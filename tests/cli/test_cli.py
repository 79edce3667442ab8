"""The command line: words to values, help, and errors to exit statuses."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from command import Forked, on_a_terminal, run_forked, xclass

from xclass import __version__
from xclass.cli import arguments, help_text, subcommands
from xclass.cli import command as cli
from xclass.errors import DataError, UsageError
from xclass.options.declare import all_options, options_of
from xclass.reductions import registry

GROUPS = cli.option_groups()
SECTIONS = help_text.sections(*GROUPS)


def read(*argv):
    return arguments.read(*GROUPS, argv)


def refusal(*argv) -> str:
    with pytest.raises(UsageError) as caught:
        read(*argv)
    return str(caught.value)


@pytest.mark.parametrize(
    ("argv", "given"),
    [
        ([], {}),
        (["--oaa", "4"], {"oaa": 4}),
        (["--oaa=4"], {"oaa": 4}),
        (["-b18"], {"bits": 18}),
        (["-b", "18"], {"bits": 18}),
        (["--bit_precision=18"], {"bits": 18}),
        (["-q", "ab", "-q", "::", "--quadratic=cd"], {"quadratic": ("ab", "::", "cd")}),
        (["train.vw"], {"data": ("train.vw",)}),
        (["-t", "train.vw", "-i", "m"], {"data": ("train.vw",), "testonly": True, "initial_regressor": "m"}),
        (["-d", "train.vw"], {"data": ("train.vw",)}),
        (["-l", "1e-2"], {"learning_rate": 0.01}),
        (["--constant", "-1"], {"constant": -1.0}),
        (["-P", "10.0"], {"progress": "10.0"}),
        (["--quiet", "--quiet", "--oaa", "4", "--oaa", "04"], {"quiet": True, "oaa": 4}),
        (["--", "-odd"], {"data": ("-odd",)}),
    ],
)
def test_arguments_are_converted_to_values(argv, given):
    assert read(*argv) == given


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--max_deth", "7"], "there is no option --max_deth; did you mean --max_depth?"),
        (["--max_deth=7"], "there is no option --max_deth; did you mean --max_depth?"),
        (["-oaa", "7"], "there is no option -oaa; did you mean --oaa?"),
        (["-Z", "7"], "there is no option -Z; xclass --help_all lists all options"),
        (["--zzz"], "there is no option --zzz; xclass --help_all lists all options"),
        (["--max_depth", "x"], "--max_depth: 'x' is not a whole number; give a whole number from 0 to 26"),
        (["--max_depth", "7.5"], "--max_depth: '7.5' is not a whole number; give a whole number from 0 to 26"),
        (["--max_depth", "-f", "m"], "--max_depth needs a value before -f: give a whole number from 0 to 26"),
        (["--max_depth", "31"], "--max_depth: 31 is out of range; give a whole number from 0 to 26"),
        (["--oaa", "0"], "--oaa: 0 is out of range; give a whole number of at least 1"),
        (["-l", "fast"], "--learning_rate: 'fast' is not a number; give a number from 0 to 1e+30"),
        (["-l", "nan"], "--learning_rate: 'nan' is not a number; give a number from 0 to 1e+30"),
        (["--quantile_tau", "2"], "--quantile_tau: 2 is out of range; give a number from 0 to 1"),
        (["--quiet=yes"], "option '--quiet' does not take a value"),
    ],
)
def test_invalid_arguments_are_explained(argv, message):
    assert refusal(*argv) == message


def test_all_help_has_options_under_headings_with_defaults():
    text = read("--help_all")["help"]
    titles = ["Input:", "Output and progress:", "Features:", "Learner:", "One against all:", "Recall tree:"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert places[0] < text.index("-i, --initial_regressor FILE") < places[1] < text.index("-P, --progress N")
    assert "[default: 4 ceil(log2 K), at most K]" in text
    assert "[default: 0.5]" in text
    assert "[may be repeated]" in text
    assert "--loss_function squared|logistic|hinge|quantile|classic" in text


def test_every_option_is_under_one_heading():
    flags = [flag for section in SECTIONS for option in section.options.values() for flag in option.flags]
    declared = [flag for group in GROUPS[0].values() for option in options_of(group).values() for flag in option.flags]
    assert sorted(flags) == sorted(declared)


def test_version_needs_nothing_else(capsys):
    assert cli.status(["--version"]) == 0
    assert capsys.readouterr().out == f"xclass {__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "stderr"),
    [
        (UsageError("no"), 2, "xclass: no\n"),
        (DataError("train.vw:3: no"), 1, "xclass: train.vw:3: no\n"),
        (FileNotFoundError(2, "No such file or directory", "x.vw"), 1, "xclass: x.vw: No such file or directory\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_errors_become_one_line_and_a_status(monkeypatch, capsys, error, code, stderr):
    def fail(argv):
        raise error

    monkeypatch.setattr(cli, "run", fail)
    assert cli.status([]) == code
    assert capsys.readouterr().err == stderr


def test_closed_pipe_ends_quietly():
    script = (
        "import sys; from xclass.cli import command as cli; cli.run = lambda argv: print('x' * 100000) or 0; cli.main()"
    )
    child = Forked([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait() == 0


def test_terminal_without_data_shows_the_usage():
    pty = pytest.importorskip("pty")
    controller, terminal = pty.openpty()
    result = run_forked([sys.executable, "-m", "xclass"], stdin=terminal, capture_output=True, text=True)
    os.close(controller)
    os.close(terminal)
    assert result.returncode == 2
    assert result.stderr.startswith(
        "xclass: no data: give a file, or pipe examples to standard input\n\nUsage: xclass [OPTIONS] [DATA]\n"
    )
    assert result.stdout == ""


@pytest.mark.parametrize("name", [one.name for one in subcommands.SUBCOMMANDS])
def test_subcommands_have_help(name):
    text = xclass(name, "--help").out
    assert text.startswith(f"Usage: xclass {name} ") and "Options:" in text
    assert xclass("--help", name).out == text


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_fits_two_screens(flag):
    text = arguments.read(*GROUPS, [flag])["help"]
    lines = text.splitlines()
    assert len(lines) <= 48 and max(map(len, lines)) <= 80
    for record in registry.REDUCTIONS:
        if record.name != "scalar":
            metavar = options_of(record.options)[record.name].metavar
            assert text.count(f"--{record.name} {metavar} ") == 1
    assert "--help_all" in text and "--help [REDUCTION]" in text and "--version" in text


@pytest.mark.parametrize("name", ["oaa", "recall_tree", "cpt", "softmax_tree", "multiclass", "hsm"])
def test_help_of_a_reduction_lists_what_it_takes(name):
    text = arguments.read(*GROUPS, ["--help", name])["help"]
    for words in (["-h", name], [f"--help={name}"], [f"--{name}", "--help"], [f"--{name}", "7", "-q", "ab", "-h"]):
        assert arguments.read(*GROUPS, words)["help"] == text
    chosen = {"multiclass": "cpt", "hsm": "cpt"}.get(name, name)
    record = next(record for record in registry.REDUCTIONS if record.name == chosen)
    assert text.startswith(f"Usage: xclass --{name} ")
    for option in options_of(record.options).values():
        assert max(option.flags, key=len) in text
    assert ("--top_k N" in text) == record.probabilities
    taken = record.learner_options
    assert ("--link" in text) == (taken is None or "link" in taken)
    assert "--cache_file" not in text


def test_help_of_an_unknown_reduction_lists_those_that_there_are(capsys):
    assert cli.status(["--help", "zzz"]) == 2
    assert "the reductions are " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("xclass --loss_function s", ["plain,squared"]),
        ("xclass --max_c", ["plain,--max_candidates"]),
        ("xclass --help re", ["plain,recall_tree"]),
        ("xclass --cpt 4 --cpt_tree k", ["plain,kmeans", "file,k"]),
        ("xclass -f mod", ["file,mod"]),
        ("xclass tra", ["file,tra"]),
    ],
)
def test_the_shell_completes(monkeypatch, capsys, words, completed):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    monkeypatch.setenv("_XCLASS_COMPLETE", "bash_complete")
    assert cli.status([]) == 0
    assert capsys.readouterr().out.splitlines() == completed


def shown(*argv, **environment) -> str:
    """Return what the command writes to a terminal."""
    plain = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    environment = {**plain, "TERM": "xterm", **environment}
    return on_a_terminal(["-m", "xclass", *argv], stdin=subprocess.DEVNULL, env=environment).decode()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("argv", [["--help"], ["--bogus"]])
def test_colours_are_for_terminals_that_want_them(argv):
    assert "\x1b[1" in shown(*argv)
    assert "\x1b" not in shown(*argv, NO_COLOR="1")
    assert "\x1b" not in shown(*argv, TERM="dumb")
    result = run_forked([sys.executable, "-m", "xclass", *argv], capture_output=True, text=True)
    assert "\x1b" not in result.stdout + result.stderr


def test_help_and_version_import_no_numba():
    script = (
        "import sys\nfrom xclass.cli import command as cli\n"
        "for flag in ('--version', '--help', '--help_all'):\n"
        "    code = cli.status([flag])\n"
        "    slow = {'numba', 'llvmlite', 'tqdm', 'mmh3'} & set(sys.modules)\n"
        "    if code or slow:\n"
        "        sys.exit(f'{flag}: status {code}, imported {slow}')\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout


@pytest.mark.parametrize(("argv", "code"), [(["--version"], 0), (["--no_such_option"], 2)])
def test_exit_runs_atexit_functions_and_keeps_the_status(argv, code):
    script = (
        "import atexit, sys\nfrom xclass.cli import command as cli\n"
        "atexit.register(print, 'cleaned up', end='')\n"
        f"sys.argv = ['xclass', *{argv}]\ncli.main()"
    )
    result = run_forked([sys.executable, "-c", script], capture_output=True, text=True)
    assert (result.returncode, result.stdout.endswith("cleaned up")) == (code, True)
    assert ("no option" in result.stderr) == (code == 2)


def test_command_exits_normally_under_a_profiler(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["xclass", "--version"])
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        with pytest.raises(SystemExit) as end:
            cli.main()
    finally:
        sys.setprofile(before)
    assert end.value.code == 0


def test_a_subcommand_is_a_first_word_and_a_file_of_its_name_comes_with_d(monkeypatch, place, capsys):
    taken = []
    module = SimpleNamespace(run=lambda words: taken.append(list(words)) or 3)
    monkeypatch.setitem(sys.modules, "xclass.cli.weigh", module)
    monkeypatch.setattr(subcommands, "SUBCOMMANDS", (subcommands.Subcommand("weigh", "weigh a model"),))
    (place / "weigh").write_text("1 | a\n-1 | b\n")
    assert cli.status(["weigh", "-x", "--oaa", "3"]) == 3
    assert taken == [["-x", "--oaa", "3"]]
    assert cli.status(["-d", "weigh", "--quiet", "-p", "out"]) == 0
    assert len((place / "out").read_text().splitlines()) == 2
    assert len(taken) == 1
    capsys.readouterr()
    assert cli.status(["--help"]) == 0
    assert "weigh" in capsys.readouterr().out


ALIASES = [(option, alias) for option in all_options(GROUPS[0]).values() for alias in option.aliases]


@pytest.mark.parametrize(("option", "alias"), ALIASES, ids=lambda value: value if isinstance(value, str) else "")
def test_an_alias_is_the_option(option, alias):
    value = [] if option.kind is bool else [option.choices[-1] if option.choices else "1"]
    assert arguments.read(*GROUPS, [alias, *value]) == arguments.read(*GROUPS, [max(option.flags, key=len), *value])
    assert alias in arguments.read(*GROUPS, ["--help_all"])["help"]


def test_aliases_are_unique():
    flags = [flag for option in all_options(GROUPS[0]).values() for flag in (*option.flags, *option.aliases)]
    assert ALIASES and len(flags) == len(set(flags))
