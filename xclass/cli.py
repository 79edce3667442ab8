"""The command line: options gathered from the rooms, help, and errors turned into exit statuses.

Nothing is computed here. Every option is declared in the room that owns it (see options.py); this file reads
those declarations, so that a new option needs no line here. Importing the rooms compiles nothing, which
keeps `--help` quick.

Exit status: 0 fine, 1 data or model, 2 usage, 130 interrupted; a closed pipe is no error.
"""

from __future__ import annotations

import atexit
import contextlib
import difflib
import math
import os
import re
import signal
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import click

from . import __version__, config, multiclass, vw_flags
from .errors import UsageError, XclassError
from .options import Option, allowed_values, in_range, long_flag, options_of
from .printable import printable

ABSENT = "\0"  # stands for the value of an option given without one
NUMBER = re.compile(r"[+-]?[0-9]+")
LONGEST_NUMBER = 400  # characters of a whole number
USAGE = "xclass [DATA] [OPTIONS]"
INTRO = (
    "Learn online, example by example, to pick one of very many classes. DATA is text in Vowpal Wabbit's "
    "format; without it, standard input is read."
)
EXAMPLES = (
    ("xclass train.vw -f model.bin", "learn and save"),
    ("xclass test.vw -i model.bin -t -p stdout", "predict with what was learned"),
)
HEADINGS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    # heading, rooms, flags moved here from other rooms
    ("Classes, however many", ("multiclass",), ()),
    ("Input", ("reader",), ("-d", "--no_stdin", "-i", "-t", "--on_bad_line")),
    ("Output and progress", ("driver", "timing", "readable", "tree_dump"), ()),
    ("Passes and cache", ("passes", "cache", "shuffle"), ()),
    ("Features", ("parser", "features", "interactions"), ()),
    ("Learner", ("learner",), ()),
    ("Probabilities of classes, with --oaa, --recall_tree, --cpt or --softmax_tree", ("answers",), ()),
)


@dataclass(frozen=True)
class Section:
    """One heading of the help: its options, field name -> Option."""

    title: str
    summary: str
    options: Mapping[str, Option]


# -- the rooms ---------------------------------------------------------------------------------------------------


def rooms() -> tuple[dict[str, type], Sequence[Any]]:
    """Return every room's `Options` by name, and the `Reduction` records."""
    from . import (
        answers,
        cache,
        driver,
        features,
        interactions,
        learner,
        parser,
        passes,
        readable,
        reader,
        shuffle,
        timing,
        tree_dump,
    )
    from .reductions import REDUCTIONS

    found = {
        "multiclass": multiclass.Options,
        "driver": driver.Options,
        "reader": reader.Options,
        "cache": cache.Options,
        "passes": passes.Options,
        "shuffle": shuffle.Options,
        "readable": readable.Options,
        "tree_dump": tree_dump.Options,
        "timing": timing.Options,
        "parser": parser.Options,
        "features": features.Options,
        "interactions": interactions.Options,
        "learner": learner.Options,
        "answers": answers.Options,
    }
    found.update({record.name: record.options for record in REDUCTIONS})
    return found, REDUCTIONS


def sections(rooms: Mapping[str, type], reductions: Iterable[Any]) -> list[Section]:
    """Arrange the options of all rooms under the headings of the help."""
    moved = {flag for _, _, flags in HEADINGS for flag in flags}
    arranged = []
    for title, names, flags in HEADINGS:
        everywhere = [(n, one) for room in rooms.values() for n, one in options_of(room).items()]
        options = {n: one for flag in flags for n, one in everywhere if flag in one.flags}
        for name in names:
            if name in rooms:
                options.update({n: one for n, one in options_of(rooms[name]).items() if not set(one.flags) & moved})
        if options:
            arranged.append(Section(title, "", options))
    for record in reductions:
        options = options_of(record.options)
        if options:
            arranged.append(Section(record.title, record.summary, options))
    return arranged


def synopsis(one: Option) -> str:
    """Return an option's flags and the name of its value: `-b, --bit_precision B`."""
    names = ", ".join(sorted(one.flags, key=len))
    if one.kind is bool:
        return names
    value = one.metavar or ("|".join(one.choices) if one.choices else {int: "N", float: "X"}.get(one.kind, "TEXT"))
    return f"{names} {value}"


def default_of(one: Option) -> str:
    """Return an option's default as the help shows it; empty where there is none."""
    if one.default_text is not None:
        return one.default_text
    if one.kind is bool or one.default in (None, ()):
        return ""
    return format(one.default, "g") if isinstance(one.default, float) else str(one.default)


# -- reading the command line ------------------------------------------------------------------------------------


class _Command(click.Command):
    """The click command, with help grouped by room."""

    sections: Sequence[Section] = ()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"Usage: {USAGE}\n\n")
        formatter.write_text(INTRO)
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_dl(list(EXAMPLES), col_max=60)
        for section in self.sections:
            with formatter.section(section.title):
                if section.summary:
                    formatter.write_text(section.summary)
                formatter.write_dl([(synopsis(one), _help_text(one)) for one in section.options.values()], col_max=34)
        with formatter.section("Other"):
            formatter.write_dl([("-h, --help", "show this text"), ("--version", "show the version")], col_max=34)


def _help_text(one: Option) -> str:
    notes = []
    if one.repeated:
        notes.append("may be repeated")
    if default_of(one):
        notes.append(f"default: {default_of(one)}")
    return one.help + (f" [{'; '.join(notes)}]" if notes else "")


def command(sections: Sequence[Section]) -> click.Command:
    """Build the click command. It only collects words; `read` gives them their meaning."""
    params: dict[str, click.Parameter] = {"words": click.Argument(["words"], nargs=-1)}
    for section in sections:
        for name, one in section.options.items():
            if name in params:  # two reductions share it
                continue
            # Everything may be repeated for click: it would silently take the last, `read` compares.
            if one.kind is bool:
                params[name] = click.Option([name, *one.flags], count=True, help=one.help)
            else:
                alone = {} if one.absent is None else {"is_flag": False, "flag_value": ABSENT}
                params[name] = click.Option([name, *one.flags], multiple=True, type=str, help=one.help, **alone)
    for flag in vw_flags.ACCEPTED:
        params[flag] = click.Option([_vw_name(flag), flag], count=True)
    params["help"] = click.Option(["-h", "--help", "help"], is_flag=True)
    params["version"] = click.Option(["--version", "version"], is_flag=True)
    built = _Command("xclass", params=list(params.values()), add_help_option=False)
    built.context_settings = {"max_content_width": 100}
    built.sections = sections
    return built


def read(sections: Sequence[Section], argv: Sequence[str]) -> dict[str, Any]:
    """Return what the user typed, field name -> value; "help" or "version" alone where that was asked.

    The flags of `vw_flags.ACCEPTED` among it are listed under the name "accepted".

    Raises
    ------
    UsageError
        for an unknown option, a value of the wrong kind or out of range, or an option given twice.
    """
    declared: dict[str, Option] = {}
    for section in sections:
        declared = {**section.options, **declared}
    built = command(sections)
    _refuse_single_dashes(argv, declared)
    try:
        context = built.make_context("xclass", list(argv))
    except click.NoSuchOption as error:
        raise UsageError(_unknown(error.option_name, declared)) from None
    except click.UsageError as error:
        raise UsageError(_sentence(error)) from None
    words = context.params
    for eager in ("help", "version"):
        if words[eager]:
            return {eager: built.get_help(context) if eager == "help" else f"xclass {__version__}"}

    given: dict[str, Any] = {}
    for name, one in declared.items():
        if not words[name]:
            continue
        if one.kind is bool:
            given[name] = True
            continue
        texts = words[name]
        if one.absent is not None:  # what follows it may be the data
            words["words"] += tuple(text for text in texts if text != ABSENT and not NUMBER.fullmatch(text))
            texts = tuple(text if NUMBER.fullmatch(text) else str(one.absent) for text in texts)
        values = tuple(_value(one, text) for text in texts)
        if one.repeated:
            given[name] = values
            continue
        if len(set(values)) > 1:
            first, second = list(dict.fromkeys(values))[:2]
            raise UsageError(f"{long_flag(one)} is given twice, as {first} and as {second}; give it once")
        given[name] = values[0]
    _take_data(given, words["words"], declared)
    accepted = [flag for flag in vw_flags.ACCEPTED if words[_vw_name(flag)]]
    if accepted:
        given["accepted"] = accepted
    return given


def _vw_name(flag: str) -> str:
    """Return what click calls an option of VW that is accepted."""
    return "vw_" + flag.lstrip("-")


def _take_data(given: dict[str, Any], words: Sequence[str], declared: Mapping[str, Option]) -> None:
    """The word without an option is the data file."""
    name = next(name for name, one in declared.items() if "-d" in one.flags)
    if declared[name].repeated:
        if words:
            given[name] = (*given.get(name, ()), *words)
        return
    if len(words) > 1:
        raise UsageError(f"one data file at a time: found {words[0]!r} and {words[1]!r}")
    if words:
        if name in given:
            raise UsageError(f"two data files: {words[0]!r} or -d {given[name]!r}; give one")
        given[name] = words[0]


def _value(one: Option, text: str) -> Any:
    """Return the value a word stands for."""
    flag = long_flag(one)
    if one.kind is str:
        if one.choices and text not in one.choices:
            close = difflib.get_close_matches(text, one.choices, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"{flag}: {text!r} is none of {', '.join(one.choices)}{hint}")
        return text
    value: float | None = None
    if one.kind is int:
        # Python refuses to convert very long texts.
        if NUMBER.fullmatch(text):
            value = int(text) if len(text) <= LONGEST_NUMBER else math.inf
    else:
        try:
            value = float(text)
        except ValueError:
            value = None
        if value is not None and not math.isfinite(value):
            value = None
    if value is None:
        what = "a whole number" if one.kind is int else "a number"
        raise UsageError(f"{flag}: {text!r} is not {what}; give {allowed_values(one)}")
    if not in_range(one, value):
        raise UsageError(f"{flag}: {text} is out of range; give {allowed_values(one)}")
    return value


def _refuse_single_dashes(argv: Sequence[str], declared: Mapping[str, Option]) -> None:
    """`-learning_rate 3` would be read as `-l earning_rate`."""
    for word in argv:
        if word == "--":
            return
        name = word.partition("=")[0]
        if len(name) > 2 and any("-" + name == flag for one in declared.values() for flag in one.flags):
            raise UsageError(_unknown(name, declared))


def _unknown(flag: str, declared: Mapping[str, Option]) -> str:
    """Say that there is no such option, and which one may be meant."""
    instead = vw_flags.advice(flag)
    if instead is not None:
        return f"there is no option {flag}: {instead}"
    known = ["help", "version", *(name[2:] for one in declared.values() for name in one.flags if name[:2] == "--")]
    close = difflib.get_close_matches(flag.lstrip("-"), known, n=1)
    hint = f"did you mean --{close[0]}?" if close else "xclass --help lists all options"
    return f"there is no option {flag}; {hint}"


def _sentence(error: click.UsageError) -> str:
    """Return click's message in the form of ours."""
    message = error.format_message().rstrip(".")
    return message[:1].lower() + message[1:]


# -- running -----------------------------------------------------------------------------------------------------


def run(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit status; errors are raised."""
    if list(argv) == ["--version"]:
        print(f"xclass {__version__}")
        return 0
    found, reductions = rooms()
    arranged = sections(found, reductions)
    given = read(arranged, argv)
    for eager in ("help", "version"):
        if eager in given:
            print(given[eager].rstrip())
            return 0
    notes = vw_flags.take(given.pop("accepted", ()), given)
    flags = {flag: name for section in arranged for name, one in section.options.items() for flag in one.flags}
    sources = {flags["-d"], "cache_file", "no_stdin"}
    if not sources & set(given) and sys.stdin is not None and sys.stdin.isatty():
        if flags["-t"] in given and {"print_tree", "dot_tree"} & set(given):
            given["no_stdin"] = True  # a saved model is looked at
        else:
            examples = (f"  {line}" for line, _ in EXAMPLES)
            raise UsageError("no data", "", f"Usage: {USAGE}", "", *examples, "", "xclass --help lists all options.")

    from . import driver, label_words

    names = given.get("named_labels")
    if names is not None and names.startswith("@"):
        given["named_labels"] = label_words.read_names(names[1:])
        _keep_names(names[1:], given, flags)
    elif names is not None:
        label_words.check_names(names)
    model = given.get(flags["-i"])
    stored = driver.stored_options(model) if model is not None else None
    notes += _take_multiclass(given, found, reductions)
    return driver.run(config.resolve(given, stored, found, reductions, model=model or ""), notes)


def _keep_names(path: str, given: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Refuse to write over the file that --named_labels was read from."""
    for flag in ("-f", "-p", "-r", "--readable_model", "--invert_hash", "--calibration", "--save_tree"):
        other = given.get(flags[flag])
        if isinstance(other, str) and os.path.realpath(other) == os.path.realpath(path):
            raise UsageError(f"{flag} {other} would write over the names of --named_labels: give another file")


def _take_multiclass(given: dict[str, Any], found: Mapping[str, type], reductions: Sequence[Any]) -> list[str]:
    """Choose --multiclass and --learn_names where the data ask for them; return what the user is told."""
    from . import cache, cpt_options, reader

    owners: dict[str, set[str]] = {}
    for room, declared in found.items():
        for name in options_of(declared):
            owners.setdefault(name, set()).add(room)
    names = {record.name for record in reductions}
    if given.get("no_stdin") or (not given.get("data") and "cache_file" in given and cache.no_input()):
        return []
    common = set(cpt_options.TAKEN) - {"loss_function", "sgd"}
    from_file = bool(given.get("data"))
    wanted, note = multiclass.wanted(
        given, owners, names, common, lambda labels: reader.look(given.get("data"), labels), from_file
    )
    given.update(wanted)
    return [note] if note else []


def main() -> None:
    """Entry point of the command `xclass`."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (until the end of the process)
    _leave(status(sys.argv[1:]))


def _leave(code: int) -> NoReturn:
    """End the process with what was said written and what was registered to be cleaned up gone.

    Python would then take apart all that it has loaded, .06 s with numba; a profiler that watches has it so.
    """
    if sys.getprofile() is not None or sys.gettrace() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed, or full: status() told of it
            stream.flush()
    os._exit(code)


def status(argv: Sequence[str]) -> int:
    """Carry out one command line; say what went wrong in one line on stderr and return the exit status."""
    try:
        code = run(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever read our output has seen enough
        _forget_output()
        return 0
    except KeyboardInterrupt as error:
        return 128 + getattr(error, "signal", signal.SIGINT)
    except XclassError as error:
        return _complain(error.exit_code, *map(str, error.args))
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return _complain(1, f"{place}{error.strerror or error}")
    except MemoryError as error:
        return _complain(1, f"not enough memory{f' ({error})' if str(error) else ''}; try a smaller -b")
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        return _complain(
            1, "the system starts no more threads: raise the limit of processes (`ulimit -u`) or of memory"
        )


def _complain(code: int, *lines: str) -> int:
    """Write the lines of a message, of which nothing but printable text reaches a terminal, and return the status."""
    message = "\n".join(map(printable, lines))
    try:
        print(f"xclass: {message}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        _forget_output()
    return code


def _forget_output() -> None:
    """Send what is still buffered for a closed pipe to nowhere, so that the interpreter's end stays quiet."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
