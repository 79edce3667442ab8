"""The command: what was typed becomes a run, and errors become messages and exit statuses.

Every option is declared in the module that owns it, see `options.declare`, so that a new option needs no line here.
Importing these modules compiles nothing, which keeps `--help` quick.

Exit status: 0 fine, 1 data or model, 2 usage, 70 an error in xclass itself, 130 interrupted; a closed pipe is no error.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from .. import __version__
from ..errors import UsageError, XclassError
from ..options import resolve as config
from ..options.declare import OptionGroup, options_of
from ..system import terminal
from ..system.printable import printable
from ..text import label_detection
from . import arguments, completion, help_text, subcommands, vw_flags

if TYPE_CHECKING:  # importing reductions takes time
    from ..reductions.core.base import Reduction

BUG = 70  # the exit status; sysexits.h calls it EX_SOFTWARE


def option_groups() -> tuple[dict[str, type[OptionGroup]], Sequence[Reduction]]:
    """Return every room's `Options` by name, and the `Reduction` records."""
    from ..api import configuration
    from ..cache import source as cache
    from ..reductions import presets, registry
    from ..run import passes, shuffle, timing
    from ..run import run as driver
    from ..run.inspect import readable_model, tree_dump
    from ..text import reader

    found: dict[str, type[OptionGroup]] = {
        "multiclass": presets.Options,
        "driver": driver.Options,
        "reader": reader.Options,
        "cache": cache.Options,
        "passes": passes.Options,
        "shuffle": shuffle.Options,
        "readable": readable_model.Options,
        "tree_dump": tree_dump.Options,
        "timing": timing.Options,
    }
    found.update({room: options for room, options in configuration.option_groups().items() if room not in found})
    return found, registry.REDUCTIONS


def run(argv: Sequence[str]) -> int:
    """Carry out one command line and return its exit status; errors are raised."""
    if list(argv) == ["--version"]:
        print(f"xclass {__version__}")
        return 0
    for one in subcommands.SUBCOMMANDS:
        if list(argv[:1]) == [one.name]:
            return one.run(argv[1:])
    found, reductions = option_groups()
    arranged = help_text.sections(found, reductions)
    if completion.is_asked_for():
        return completion.complete(arguments.command(arranged))
    given = arguments.read(arranged, argv)
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
            examples = (f"  {line}" for line, _ in help_text.EXAMPLES)
            raise UsageError(
                "no data", "", f"Usage: {help_text.USAGE}", "", *examples, "", "xclass --help explains more."
            )

    from ..api import model_contents
    from ..reductions.presets import PRESETS
    from ..run import purpose
    from ..run import run as driver
    from ..text import label_words

    names = given.get("named_labels")
    if names is not None and names.startswith("@"):
        given["named_labels"] = label_words.read_names(names[1:])
        _keep_names(names[1:], given, flags)
    elif names is not None:
        label_words.check_names(names)
    model = given.get(flags["-i"])
    contents = model_contents.load(model) if model is not None else None
    stored = contents.options if contents is not None else None
    begun = bytearray()  # of standard input
    notes += _take_multiclass(given, found, reductions, begun)
    settled = config.resolve(
        given, stored, found, reductions, model=model or "", presets=PRESETS, resolve_defaults=purpose.with_defaults
    )
    return driver.run(settled, notes, contents, bytes(begun))


def _keep_names(path: str, given: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Refuse to write over the file that --named_labels was read from."""
    for flag in ("-f", "-p", "-r", "--readable_model", "--invert_hash", "--calibration", "--save_tree"):
        other = given.get(flags[flag])
        if isinstance(other, str) and os.path.realpath(other) == os.path.realpath(path):
            raise UsageError(f"{flag} {other} would write over the names of --named_labels: give another file")


def _take_multiclass(
    given: dict[str, Any], found: Mapping[str, type[OptionGroup]], reductions: Sequence[Reduction], begun: bytearray
) -> list[str]:
    """Choose --multiclass and --learn_names where the data ask for them; return what the user is told."""
    from ..cache import source as cache
    from ..reductions import presets
    from ..text import reader

    owners: dict[str, set[str]] = {}
    for room, declared in found.items():
        for name in options_of(declared):
            owners.setdefault(name, set()).add(room)
    names = {record.name for record in reductions}
    if given.get("no_stdin") or (not given.get("data") and "cache_file" in given and cache.no_input()):
        return []
    proposed = next(record for record in reductions if record.name == presets.PROPOSED)
    common = set(proposed.learner_options or ()) - {"loss_function", "sgd"}
    from_file = bool(given.get("data"))
    wanted, note = label_detection.implied_options(
        given,
        owners,
        names,
        presets.PROPOSED,
        common,
        lambda labels: reader.peek_labels(given.get("data"), labels, begun),
        from_file,
    )
    given.update(wanted)
    return [note] if note else []


def main() -> None:
    """Run the command `xclass` with the arguments of the process."""
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
    except Exception as error:
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return _complain(
                1, "the system starts no more threads: raise the limit of processes (`ulimit -u`) or of memory"
            )
        traceback.print_exc()
        return _complain(
            BUG, "this is an error in xclass itself, not in the data: please report it with the lines above and the "
            "command line"
        )  # fmt: skip


def _complain(code: int, *lines: str) -> int:
    """Write the lines of a message, of which nothing but printable text reaches a terminal, and return the status."""
    message = "\n".join(map(printable, lines))
    try:
        print(f"{terminal.styled('xclass:', terminal.RED, sys.stderr)} {message}", file=sys.stderr, flush=True)
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
