"""Execute a command line, and report errors by a message and an exit status.

Every option is declared in the module that uses it (`options.declare`), so this module does not change when an option
is added. Importing those modules compiles no kernels, so `--help` is fast.

The exit status is 0 after success, 1 for an error in the data or a model, 2 for an error in the command line, 70 for a
defect of xclass itself, and 128 + n after signal n (130 after Ctrl-C). A closed output pipe is an error only if files
that a run writes are not complete then.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from .. import __version__
from ..errors import NO_SUCH_FILE, DataError, UsageError, XclassError, XclassWarning
from ..kernels import jit
from ..options.declare import all_options
from ..system import output_file, terminal
from . import arguments, help_text, subcommands, vw_flags
from .declared import add_implied_options, prepare_files, resolved
from .declared import option_groups as option_groups  # other modules take it from here

if TYPE_CHECKING:
    from ..options.resolve import OptionGroups

EXIT_DEFECT = 70  # exit status after an unexpected exception; EX_SOFTWARE in sysexits.h


def run(argv: Sequence[str]) -> int:
    """Execute one command line and return its exit status; errors are raised."""
    if list(argv) == ["--version"]:
        terminal.page(f"xclass {__version__}")
        return 0
    help_wanted = not {"-h", "--help"}.isdisjoint(argv)
    for subcommand in subcommands.SUBCOMMANDS:
        if list(argv[:1]) == [subcommand.name] or list(argv) == ["--help", subcommand.name]:
            if help_wanted:
                terminal.page(help_text.of_subcommand(subcommand))
                return 0
            outcome = subcommand.module.run(argv[1:])
            return outcome if isinstance(outcome, int) else run(outcome)
    if vw_flags.DAEMON in argv and not help_wanted:
        from . import serve

        return serve.run_daemon(argv)
    if os.environ.get(arguments.COMPLETION):
        return arguments.complete(*option_groups())
    imported, groups, given = _read(argv)
    for information in ("help", "version"):
        if information in given:
            terminal.page(given[information])
            return 0
    notes = vw_flags.take(given)
    prepare_files(given, all_options(groups))
    if not {"data", "cache_file", "no_stdin"} & set(given) and sys.stdin is not None and sys.stdin.isatty():
        if "testonly" in given and {"print_tree", "dot_tree"} & set(given):
            given["no_stdin"] = True  # the tree of a saved model is written, which needs no data
        else:
            examples = (f"  {line}" for line, _ in help_text.EXAMPLES)
            raise UsageError(
                "no data: give a file, or pipe examples to standard input",
                "",
                f"Usage: {help_text.USAGE}",
                "",
                *examples,
                "",
                "xclass --help explains more.",
            )

    saved = given.get("final_regressor")
    if saved is not None and "testonly" in given and "initial_regressor" not in given:
        raise UsageError(
            f"-f {saved}: with -t and without -i the model would have learned nothing; is -i {saved} meant?"
        )

    from ..api import model_contents
    from ..reductions.presets import PROPOSED
    from ..run.run import run as execute_run
    from ..run.signals import interrupt_told
    from ..text import urls
    from ..text.reader import Peeked

    model = given.get("initial_regressor")
    contents = model_contents.load(model) if model is not None else None

    with contextlib.ExitStack() as closing:
        told = interrupt_told(terminal.error_line, given)
        peeked = Peeked()
        is_chosen = model is not None or len(imported) > 1
        declared = option_groups(imported if is_chosen else {*imported, PROPOSED})
        if given.get("workers") is None:
            with told:
                notes += add_implied_options(given, *declared, peeked)
            config = resolved(given, contents)
            for path in given.get("data", ()):
                if not urls.is_url(path) and not os.path.exists(path):  # before kernels are compiled
                    raise DataError(f"{path}: {NO_SUCH_FILE}")
            return execute_run(config, notes, contents, peeked)
        from ..cluster import dispatch

        first_lines = functools.partial(
            dispatch.first_lines, given, closing, functools.partial(resolved, contents=contents)
        )
        with told:
            notes += add_implied_options(given, *declared, peeked, first_lines)
        return dispatch.execute(resolved(given, contents), contents, notes)


def _read(argv: Sequence[str]) -> tuple[Collection[str], OptionGroups, dict[str, Any]]:
    """Return the names of the reductions that are imported, the groups of options, and the options that were typed."""
    from ..reductions import registry

    def read(names: Collection[str]) -> tuple[Collection[str], OptionGroups, dict[str, Any]]:
        groups, reductions = option_groups(names)
        return names, groups, arguments.read(groups, reductions, argv)

    words = [word.lstrip("-").partition("=")[0] for word in argv if word.startswith("-")]
    if {"h", "help", "help_all"} & {*words}:
        return read(registry.all_names())
    return registry.read_for_chosen(words, read)


def main() -> None:
    """Run the command `xclass` with the arguments of the process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the process that started this one
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 (until the end of the process)
    warnings.showwarning = _show_warning
    jit.in_command = True
    _end_process(status(sys.argv[1:]))


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning on standard error: one of xclass as its text, another one as Python does."""
    is_own = issubclass(category, XclassWarning)
    text = str(message) if is_own else f"{filename}:{lineno}: {category.__name__}: {message}"
    terminal.error_line(f" {text}", "warning:", terminal.YELLOW)


def _end_process(code: int) -> NoReturn:
    """Flush the output, call the functions registered with `atexit`, and end the process at once.

    This skips the clean-up of loaded modules by the interpreter, which takes .06 s with numba. Under a profiler or
    tracer the interpreter ends as usual.
    """
    if sys.getprofile() is not None or sys.gettrace() is not None:
        sys.exit(code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # closed or full, which `status` has reported
            stream.flush()
    os._exit(code)


def status(argv: Sequence[str]) -> int:
    """Execute one command line and return its exit status; errors are reported on standard error."""
    output_file.drop_claims()  # of an earlier command of this process
    try:
        code = run(argv)
        with contextlib.suppress(BrokenPipeError):  # the command has ended, whoever has read its output
            terminal.standard_output()
        return code
    except BrokenPipeError:  # the reader of the output has closed it
        terminal.discard_output()
        return 0
    except KeyboardInterrupt as error:
        return 128 + getattr(error, "signal", signal.SIGINT)
    except XclassError as error:
        return _report(error.exit_code, *map(str, error.args))
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        return _report(1, f"{place}{error.strerror or error}")
    except MemoryError as error:
        cause = f" ({error})" if str(error) else ""
        return _report(
            1, f"not enough memory{cause}; try a smaller -b, fewer classes, or --learn_names for large numbers"
        )
    except Exception as error:
        if isinstance(error, RuntimeError) and "can't start new thread" in str(error):
            return _report(
                1, "the system cannot start another thread: raise the limit of processes (`ulimit -u`) or of memory"
            )
        for line in traceback.format_exc().splitlines():
            terminal.error_line(line)
        return _report(
            EXIT_DEFECT,
            "this is an error in xclass itself, not in the data: please report it with the lines above and the "
            "command line",
        )


def _report(code: int, *lines: str) -> int:
    """Write the lines of an error message, with characters that are not printable escaped, and return `code`."""
    first, *others = lines
    terminal.error_line(f" {first}", "xclass:", terminal.RED)
    for line in others:
        terminal.error_line(line)
    return code
