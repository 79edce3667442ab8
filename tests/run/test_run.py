"""Whole runs with bad input, interrupts or a full disk: messages, saved models, exit status."""

import gzip
import os
import queue
import re
import signal
import sys
import threading
import time

import numpy as np
import pytest
from command import MODEL_OF_YESTERDAY, SECONDS, learn, script, start_process, xclass
from streams import multiclass, real

from xclass.cli.command import option_groups
from xclass.model import model_file
from xclass.options import resolve as config
from xclass.options.declare import options_of

K = 6
OAA = ("--oaa", K, "-b", 10)
TREE = ("--recall_tree", K, "-b", 10, "--max_candidates", 3)
GOOD = multiclass(1, K, 40)
ROW = re.compile(r"\S+ +\S+ +(\d+) +[\d.]+ +\S+ +\S+ +\d+$")


@pytest.fixture
def data(place):
    """`train.vw`, forty good lines."""
    (place / "train.vw").write_text(GOOD)
    return place / "train.vw"


def model_of(text: str, place, *args) -> bytes:
    """The bytes of the model learned from a text."""
    learn(*(args or OAA), "--quiet", "-f", "reference.model", stdin=text)
    return (place / "reference.model").read_bytes()


def rows(err: str) -> list[int]:
    """The example counters of the progress table."""
    return [int(match[1]) for line in err.splitlines() if (match := ROW.match(line))]


# -- lines that cannot be learned from ---------------------------------------------------------------------------

BAD_LINES = [  # line, column of what is wrong with it, words the message has to have
    ("2 |w a b:nan", 10, ["'nan'", "not a number"]),
    ("cat |w a", 1, ["'cat'", "class number"]),
    ("2 -1 |w a", 3, ["weight '-1'", "at least 0"]),
]


@pytest.mark.parametrize(("line", "column", "words"), BAD_LINES)
def test_bad_line_stops_and_says_where_and_what(place, line, column, words):
    head = "".join(GOOD.splitlines(keepends=True)[:12])
    (place / "train.vw").write_text(f"{head}{line}\n{GOOD}")
    (place / "model").write_bytes(MODEL_OF_YESTERDAY)
    result = xclass("train.vw", *OAA, "-f", "model")
    assert result.status == 1
    last = result.err.splitlines()[-2]
    assert last.startswith(f"xclass: train.vw:13:{column}: ")
    for word in words:
        assert word in last
    assert "--on_bad_line skip" in last or "--learn_names" in last
    assert "learned from 12 examples is in model.interrupted; model is as it was" in result.err.splitlines()[-1]
    assert (place / "model").read_bytes() == MODEL_OF_YESTERDAY
    assert (place / "model.interrupted").read_bytes() == model_of(head, place)


@pytest.mark.parametrize("args", [OAA, TREE, ("-b", 10)], ids=["oaa", "recall_tree", "scalar"])
def test_skipped_lines_are_counted_reported_and_leave_no_trace(place, args):
    lines = (GOOD if args != ("-b", 10) else real(1, 40)).splitlines()
    bad = ["oops |w a", "1 |w a:1:2", "1 |w a:nan p0_1"]
    mixed = [bad[0], *lines[:9], bad[1], bad[2], *lines[9:]]
    text = "".join(line + "\n" for line in mixed)
    result = learn(*args, "--on_bad_line", "skip", "-f", "model", "-p", "stdout", stdin=text)
    clean = learn(*args, "-f", "clean", "-p", "stdout", stdin="".join(line + "\n" for line in lines))
    assert result.out == clean.out
    assert (place / "model").read_bytes() == (place / "clean").read_bytes()
    assert "3 malformed lines were skipped" in result.err
    for number, word in ((1, "oops"), (11, "1:2"), (12, "nan")):
        assert re.search(rf"stdin:{number}:\d+: .*{word}", result.err)


def test_bad_line_without_f_says_that_nothing_was_saved(place):
    result = xclass(*OAA, "--quiet", stdin=GOOD + "x |\n")
    assert result.status == 1
    assert result.err.startswith("xclass: stdin:41:1: label 'x' ")
    assert "no -f was given, so nothing was saved" in result.err
    assert os.listdir(place) == []


def test_bad_first_line_saves_nothing(place):
    result = xclass(*OAA, "-f", "model", "--quiet", stdin="x |\n" + GOOD)
    assert result.status == 1
    assert "nothing was learned yet" in result.err
    assert os.listdir(place) == []


def test_bad_line_while_testing_saves_nothing(data, place):
    learn("train.vw", *OAA, "-f", "model", "--quiet")
    result = xclass("-i", "model", "-t", "-p", "stdout", "--quiet", stdin=GOOD + "x |\n" + GOOD)
    assert result.status == 1
    assert len(result.lines) == 40
    assert sorted(os.listdir(place)) == ["model", "train.vw"]


def test_message_about_a_bad_line_can_be_printed(place):
    result = xclass(*OAA, "--quiet", stdin=b"\x00\x1b[2J\xff\xfe" + b"x" * 500 + b" |w a\n")
    assert result.status == 1
    assert result.err.replace("\n", "").isprintable()
    assert len(result.err) < 400


def test_label_before_a_tab_is_pointed_out(place):
    result = learn("--oaa", 3, "-p", "stdout", stdin="1 | a\n2\t| b\nname\t3 | c\n")
    assert (
        "stdin:2: '2' is before a tab and therefore ignored, so the line is unlabelled; if it is a label, write '2 |'"
        in result.err
    )
    assert "stdin:1" not in result.err and "stdin:3" not in result.err
    named = learn("--oaa", 2, "--named_labels", "cat,dog", stdin="cat | a\ndog\t| b\n")
    assert "stdin:2: 'dog' is before a tab" in named.err
    assert "tab" not in learn("--oaa", 3, stdin="1 | a\nname\t3 | c\n9\t2 | d\n").err


@pytest.mark.parametrize("indexing", [0, 1])
def test_indexing_moves_the_labels_allowed(place, indexing):
    result = xclass("--oaa", 3, "--indexing", indexing, "-b", 8, "--quiet", stdin="1 |a\n2 |b\n3 |c\n")
    assert (result.status, "label 3 is outside 0..2" in result.err) == ((1, True) if indexing == 0 else (0, False))


# -- files that are not what they should be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["", "\n\n", " |w a\n |w b\n", "1 0 |w a\n2 0 |w b\n"], ids=["empty", "blank", "unlabelled", "weightless"]
)
@pytest.mark.parametrize("args", [OAA, TREE, ("-b", 10)], ids=["oaa", "recall_tree", "scalar"])
def test_run_that_learns_nothing_fails_and_saves_nothing(place, args, text):
    result = xclass(*args, "-f", "model", "--quiet", stdin=text)
    assert result.status == 1
    assert result.err.startswith("xclass: stdin: no example was learned from")
    assert not os.listdir(place)


def test_unlabelled_lines_are_enough_to_predict(data):
    learn("train.vw", *OAA, "-f", "model", "--quiet")
    result = learn("-i", "model", "-t", "-p", "stdout", "--quiet", stdin=" |w a\n 'tag |w p0_1\n")
    assert [line.split(" ")[1:] for line in result.lines] == [[], ["tag"]]
    assert learn("-i", "model", "-t", "-p", "stdout", "--quiet", stdin="").out == ""


@pytest.mark.parametrize("args", [OAA, TREE])
def test_testing_without_a_model_predicts_like_a_new_model(data, args):
    result = learn("train.vw", *args, "-t", "-p", "stdout", "--quiet")
    assert set(result.lines) == {"1" if args is OAA else "0"}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((".", *OAA), ".: this is a directory"),
        (("train.vw", "-i", "no.model"), "no.model: cannot load the model: there is no such file"),
        (("train.vw", "-i", "train.vw"), "train.vw: not an xclass model"),
        (("train.vw", "-i", "."), ".: cannot load the model: this is not a regular file"),
    ],
)
def test_files_that_cannot_be_used_are_named(data, args, message):
    result = xclass(*args, "--quiet")
    assert result.status == 1
    assert message in result.err
    assert result.err.startswith("xclass: ")
    assert "Traceback" not in result.err


@pytest.mark.parametrize("args", [OAA, TREE, ("-b", 10)], ids=["oaa", "recall_tree", "scalar"])
def test_model_in_place_of_data_is_refused(data, args):
    learn("train.vw", *OAA, "-f", "model", "--cache_file", "kept", "--quiet")
    model = (data.parent / "model").read_bytes()
    (data.parent / "model.gz").write_bytes(gzip.compress(model))
    (data.parent / "vw.model").write_bytes(b"\7\0\0\0" + b"9.11.9\0" + bytes(100))
    for file, kind in (
        ("model", "a model of xclass, not data"),
        ("model.gz", "a model of xclass, not data"),
        ("vw.model", "a model of Vowpal Wabbit 9.11.9, not data"),
        ("kept", "a cache of xclass, not data; give it with --cache_file"),
    ):
        result = xclass(file, *args, "--on_bad_line", "skip", "--quiet")
        assert result.status == 1
        assert result.err.startswith(f"xclass: {file}: this is {kind}")
    result = xclass(*args, "--quiet", stdin=model)
    assert result.err.startswith("xclass: stdin: this is a model of xclass")


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_compressed_file_that_was_cut_short_stops_after_what_it_holds(place, cut):
    text = "".join(multiclass(seed, K, 40) for seed in range(20))
    packed = gzip.compress(text.encode())
    (place / "train.vw.gz").write_bytes(packed)
    learn("train.vw.gz", *OAA, "-f", "whole", "--quiet")
    assert (place / "whole").read_bytes() == model_of(text, place)
    (place / "train.vw.gz").write_bytes(packed[:-cut])
    result = xclass("train.vw.gz", *OAA, "-f", "model", "--quiet")
    assert result.status == 1
    assert result.err.startswith("xclass: train.vw.gz: ")
    assert "truncated" in result.err
    assert not (place / "model").exists()
    learned = int(re.search(r"learned from (\d+) examples", result.err)[1])
    assert 700 < learned <= 800
    before = "".join(text.splitlines(keepends=True)[:learned])
    assert (place / "model.interrupted").read_bytes() == model_of(before, place)


# -- models and options that do not fit --------------------------------------------------------------------------


def other_value(option, value):
    """Words of a command line with another value than `value`."""
    if option.kind is bool:
        return None if value else ()
    if option.choices:
        return (next(word for word in option.choices if word != value),)
    if option.repeated:
        return ("xyz"[: {"AB": 2}.get(option.metavar, 3)],)
    low = option.minimum if option.minimum is not None else 0
    if value is None:
        return (f"{low:g}",)
    step = 1 if option.kind is int else 0.25
    return (f"{value + step if option.maximum is None or value + step <= option.maximum else value - step:g}",)


@pytest.mark.parametrize("name", ["scalar", "oaa", "recall_tree"])
def test_every_stored_option_that_contradicts_the_model_names_both_values(data, name):
    learn(
        "train.vw",
        *(["--loss_function", "squared"] if name == "scalar" else [f"--{name}", K]),
        "-b",
        10,
        "-f",
        "model",
        "--quiet",
    )
    stored = model_file.load("model").options
    stored_options = {}
    for declared in option_groups()[0].values():
        stored_options.update(
            {n: declaration for n, declaration in options_of(declared).items() if declaration.stored and n in stored}
        )
    assert len(stored_options) > 15
    for option, declaration in stored_options.items():
        words = None if declaration.adjustable else other_value(declaration, stored[option])
        if words is None:
            continue
        flag = config.long_flag(declaration)
        result = xclass("train.vw", "-i", "model", flag, *words, "-f", "model", "--quiet")
        assert result.status == 2, (option, result)
        assert " ".join([flag, *words]) in result.err
        if declaration.kind is bool or stored[option] in (None, []):
            assert f"trained without {flag};" in result.err
        else:
            assert f"trained with {config.as_typed(declaration, stored[option])};" in result.err


def test_options_repeated_with_the_values_of_the_model_are_fine(data, place):
    learn("train.vw", *TREE, "-q", "wn", "-l", 0.25, "--bern_hyper", 0.5, "-f", "model", "--quiet")
    plain = learn("train.vw", "-i", "model", "-t", "-p", "stdout", "--quiet")
    same_options = ["-q", "wn", "-l", "0.25", "--bern_hyper", "0.5", "--layout", "odd", "--loss_function", "logistic"]
    assert learn("train.vw", "-i", "model", "-t", "-p", "stdout", "--quiet", *TREE, *same_options).out == plain.out


# -- where output goes -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [OAA, TREE, ("-b", 10)], ids=["oaa", "recall_tree", "scalar"])
def test_results_go_to_stdout_and_messages_to_stderr(place, args):
    text = multiclass(3, K, 40, tags=True, unlabelled=0.2) if args != ("-b", 10) else real(3, 40, tags=True)
    both = learn(*args, "-p", "stdout", stdin=text)
    quiet = learn(*args, "-p", "stdout", "--quiet", stdin=text)
    file = learn(*args, "-p", "predictions", stdin=text)
    assert quiet.err == ""
    assert quiet.out == both.out == (place / "predictions").read_text()
    assert file.out == ""
    assert len(both.lines) == 40
    assert all(re.fullmatch(r"-?\d+(\.\d{6})?( \w+)?", line) for line in both.lines)
    for word in ("finished run", "number of examples = 40", "average  since", "Weights: 2^10 of "):
        assert word in both.err
    assert rows(both.err) == [1, 2, 4, 8, 16, 32]


def test_quiet_run_prints_nothing(place):
    text = GOOD + "x |\n1|w a\n"
    result = learn(*OAA, "--quiet", "--on_bad_line", "skip", "-f", "model", stdin=text)
    assert (result.out, result.err) == ("", "")


def test_raw_scores_and_predictions_can_be_written_together(place):
    learn(*OAA, "-p", "p", "-r", "r", "--quiet", stdin=GOOD)
    predicted = [int(line) for line in (place / "p").read_text().splitlines()]
    for prediction, line in zip(predicted, (place / "r").read_text().splitlines(), strict=True):
        scores = {int(pair.split(":")[0]): float(pair.split(":")[1]) for pair in line.split()}
        assert list(scores) == list(range(1, K + 1))
        assert scores[prediction] == max(scores.values())


def test_progress_option_sets_the_rows(place):
    assert rows(learn(*OAA, "-P", 10, stdin=GOOD).err) == [10, 20, 30, 40]
    assert rows(learn(*OAA, "-P", "3.0", stdin=GOOD).err) == [1, 3, 9, 27]


def test_file_full_while_predicting_stops_and_keeps_what_was_learned(data, place):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    (place / "model").write_bytes(MODEL_OF_YESTERDAY)
    result = xclass("train.vw", *OAA, "-p", "/dev/full", "-f", "model", "--quiet")
    assert result.status == 1
    assert "/dev/full: predictions cannot be written there: No space left on device" in result.err
    assert (place / "model").read_bytes() == MODEL_OF_YESTERDAY
    assert (place / "model.interrupted").read_bytes() == model_of(GOOD, place)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs limits of a Unix system")
@pytest.mark.parametrize("limit", [0, 3000])
def test_disk_full_while_saving_leaves_the_old_model(data, place, limit):
    learn("train.vw", *OAA, "-f", "model", "--quiet")
    before = (place / "model").read_bytes()
    assert len(before) > 3000
    prepare = (
        "import resource\nfrom xclass.cli import command as cli\n"
        # compiled code is still written without a limit
        f"assert cli.status(['train.vw', '--oaa', '{K}', '-b', '10', '--quiet']) == 0\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))"
    )
    result = script(prepare, "train.vw", "-i", "model", "-f", "model", "--quiet")
    assert result.status == 1
    assert "model: cannot save the model: " in result.err
    assert "the model that was there is unchanged" in result.err
    assert sorted(os.listdir(place)) == ["model", "train.vw"]
    assert (place / "model").read_bytes() == before


# -- runs that are stopped, in processes of their own --------------------------------------------------------------


class StreamReader:
    """Lines of a process's stream as they come, without waiting for ever."""

    def __init__(self, stream):
        self.all = ""
        self._lines: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self._lines.put(line.decode())
        self._lines.put(None)

    def until(self, wanted) -> str:
        """Read up to the first line for which `wanted(line)` holds, and return it."""
        ends = time.monotonic() + SECONDS
        while True:
            line = self._lines.get(timeout=max(0.01, ends - time.monotonic()))
            assert line is not None, f"the stream ended:\n{self.all}"
            self.all += line
            if wanted(line):
                return line

    def rest(self) -> str:
        """Everything up to the end of the stream, what was read before included."""
        while (line := self._lines.get(timeout=SECONDS)) is not None:
            self.all += line
        return self.all


def counter_is(number: int):
    """Whether a line is the row of the table at that example."""
    return lambda line: bool((match := ROW.match(line)) and int(match[1]) == number)


def feed(child, text: str) -> None:
    child.stdin.write(text.encode())
    child.stdin.flush()


def test_rows_and_predictions_appear_while_the_pipe_is_open(place):
    child = start_process(*TREE, "-P", 1, "-p", "stdout")
    err, out = StreamReader(child.stderr), StreamReader(child.stdout)
    lines = GOOD.splitlines(keepends=True)
    for i in range(3):
        feed(child, lines[i])
        assert err.until(counter_is(i + 1))
        assert out.until(lambda line: True)
    assert child.poll() is None
    child.stdin.close()
    assert child.wait(SECONDS) == 0
    assert "number of examples = 3\n" in err.rest()


@pytest.mark.parametrize(
    ("number", "args"), [(signal.SIGINT, OAA), (signal.SIGTERM, TREE)], ids=["sigint-oaa", "sigterm-recall_tree"]
)
def test_stopped_run_keeps_what_it_learned(place, number, args):
    (place / "model").write_bytes(MODEL_OF_YESTERDAY)
    (place / "predictions").write_bytes(b"predictions of yesterday")
    child = start_process(*args, "-P", 1, "-f", "model", "-p", "predictions")
    err = StreamReader(child.stderr)
    feed(child, GOOD)
    err.until(counter_is(40))
    child.send_signal(number)
    assert child.wait(SECONDS) == 128 + number
    messages = err.rest()
    assert f"stopped by {number.name}; what was learned from 40 examples is in model.interrupted" in messages
    assert "Traceback" not in messages
    assert "Fatal" not in messages
    assert (place / "model").read_bytes() == MODEL_OF_YESTERDAY
    assert (place / "model.interrupted").read_bytes() == model_of(GOOD, place, *args)
    assert "the predictions so far are in predictions.interrupted; predictions is as it was before" in messages
    assert (place / "predictions").read_bytes() == b"predictions of yesterday"
    assert len((place / "predictions.interrupted").read_text().splitlines()) == 40
    learn("-i", "model.interrupted", "-t", "--quiet", stdin=GOOD)


INTERRUPTED = """
import os, signal
from {module} import {name} as changed
changed.{method} = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("said", ["; nothing was learned yet, so nothing was saved", ""])
@pytest.mark.parametrize(
    ("module", "name", "method", "words"),
    [
        ("xclass.text", "reader", "peek_labels", []),
        ("xclass.run.run", "Local", "compile", OAA),
        ("xclass.cluster.session", "Session", "__enter__", [*OAA, "--workers", 1]),
    ],
)
def test_ctrl_c_before_a_run_learns_is_answered(place, module, name, method, words, said):
    if "--workers" in words:
        pytest.importorskip("ray", reason="the package ray is not installed")
    (place / "data").write_text("1 | a\n")
    body = INTERRUPTED.format(module=module, name=name, method=method)
    result = script(body, *words, "-d", "data", *(["-f", "model"] if said else []))
    assert (result.status, result.err.splitlines()[-1]) == (128 + signal.SIGINT, f"xclass: stopped by SIGINT{said}")
    assert os.listdir(place) == ["data"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_run_killed_while_saving_leaves_the_old_model_whole(data, place, call):
    learn("train.vw", *OAA, "-f", "model", "--quiet")
    before = (place / "model").read_bytes()
    prepare = f"import os, signal\nos.{call} = lambda *args, **more: os.kill(os.getpid(), signal.SIGKILL)"
    result = script(prepare, "train.vw", "-i", "model", "-f", "model", "--quiet")
    assert result.status == -signal.SIGKILL
    assert (place / "model").read_bytes() == before
    learn("train.vw", "-i", "model", "-f", "model", "--quiet")
    assert (place / "model").read_bytes() != before


@pytest.mark.parametrize("saved", [False, True])
def test_closed_pipe_ends_quietly(place, saved):
    lines = [line.replace(" |w", f" {'t' * 200}{i}|w") for i, line in enumerate(GOOD.splitlines())]
    (place / "train.vw").write_text("".join(line + "\n" for line in lines) * 60)
    more = ("-f", "model") if saved else ("--quiet",)
    child = start_process("train.vw", *OAA, "-p", "stdout", *more, stdin=None)
    err = StreamReader(child.stderr)
    first = child.stdout.readline()
    child.stdout.close()
    messages = err.rest()
    assert child.wait(SECONDS) == (1 if saved else 0)
    assert first.endswith(b" " + b"t" * 200 + b"0\n")
    assert "Traceback" not in messages
    assert "Exception" not in messages
    assert "Broken" not in messages
    if saved:
        assert "standard output: its reader has closed the pipe, so the run ended early" in messages
        assert "is not complete: -f model" in messages and "model.interrupted; model was not written" in messages
        assert (place / "model.interrupted").exists()
        assert not (place / "model").exists()
    else:
        assert messages == ""


def test_a_run_whose_messages_nobody_reads_goes_on(data, place):
    child = start_process("train.vw", *OAA, "-f", "model", stdin=None)
    child.stderr.close()
    child.stdout.close()
    assert child.wait(SECONDS) == 0 and (place / "model").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_full_disk_is_named_by_its_file(data, place):
    learn("train.vw", *OAA, "-f", "model", "--quiet")
    for option in ("-p", "-r", "--summary", "--curve", "--errors", "--per_class", "--readable_model"):
        result = xclass("train.vw", "-t", "-i", "model", option, "/dev/full", "--quiet")
        assert result.status == 1 and "/dev/full: " in result.err and "No space left on device" in result.err
    with open("/dev/full", "wb") as full:
        for args in (("--help",), ("train.vw", "-t", "-i", "model", "-a", "--quiet")):
            child = start_process(*args, stdin=None, stdout=full)
            assert child.stderr.read() == b"xclass: standard output: No space left on device\n"
            assert child.wait(SECONDS) == 1


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("closed", "status"), [("<&-", 1), (">&-", 0), ("2>&-", 0), ("<&- >&- 2>&-", 1)])
def test_closed_streams_are_no_surprise(data, place, closed, status):
    args = OAA if "<" in closed else ("train.vw", *OAA)
    prepare = f"import os, sys\nos.execlp('sh', 'sh', '-c', 'exec \"$0\" \"$@\" {closed}', *sys.argv[1:])"
    result = script(prepare, sys.executable, "-m", "xclass", *args, "-p", "stdout", "-f", "model")
    assert result.status == status
    assert "Traceback" not in result.err
    assert len(result.lines) == (40 if closed == "2>&-" else 0)
    assert (place / "model").exists() == (status == 0)


@pytest.mark.parametrize("args", [OAA, TREE, (*OAA, "--loss_function", "squared")], ids=["oaa", "tree", "squared"])
def test_values_beyond_all_bounds_spoil_nothing_else(place, args):
    sizes = ("1e-38", "1e-20", "1e-3", "1", "1e6", "1e18", "1e30", "-1e-30", "-1e19")
    rest = [(w, x, y) for w in ("1", "1e-6", "1e6") for x in sizes for y in sizes]
    extreme = "".join(f"{i % K + 1} {w} |z a:{x} b:{y}\n" for i, (w, x, y) in enumerate(rest))
    result = learn(*args, "--quiet", "-f", "model", "-p", "stdout", stdin=extreme + 6 * GOOD)
    labels = [line.split()[0] for line in 3 * GOOD.splitlines()]
    wrong = sum(a != b for a, b in zip(result.lines[-120:], labels, strict=True))
    assert wrong < 40  # of 120; all of 6 classes are as likely
    for name, array in model_file.load("model").arrays.items():
        if array.dtype.kind == "f":
            assert not np.isnan(array).any(), name
            assert name.endswith(".g") or np.isfinite(array).all(), name  # G of a huge value is beyond float32
