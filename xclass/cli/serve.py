"""Execute `xclass serve`, which answers lines of VW text on a port."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import glob
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from ..errors import UsageError
from ..options import words as option_words
from ..options.declare import Option, OptionGroup, option, options_of, taken, threads_option
from ..system import output_file
from . import vw_flags
from .declared import LOSSES_OF_TWO, prepare_files

NEW_OBJECTS = 1000  # of a server, between two collections of the youngest garbage
USAGE = "xclass serve -i FILE [-t] [-f FILE --checkpoint N] [OPTIONS]"
INTRO = (
    "Serve a model by Vowpal Wabbit's line protocol: a client sends lines of VW text to a port, and gets for each the "
    "prediction that -p writes. Labelled lines are learned, unless -t is given, and -f saves the model. Without -i, a "
    "new model learns, with the options of a learner. SIGTERM answers what was received, saves the model and ends the "
    "server; SIGHUP loads the model of -i anew."
)
FOREGROUND = "--foreground"
ADVICE = (  # flags of options that a server does not have, what to do instead
    (
        "--json --dsjson --chain_hash --csv --flatbuffer --format",
        "clients send lines of VW text; those that have JSON send it to --http PORT, in the form of docs/serving.md",
    ),
    (
        "-d --data -c --cache --cache_file -k --kill_cache --passes",
        "a server reads no files of examples; learn a model from them by a run of its own, and give -i MODEL",
    ),
    ("-p --predictions -r --raw_predictions", "clients get the predictions as answers"),
    ("-P --progress", "a server prints no table; --http PORT has figures at /metrics"),
    ("--no_daemon", "leave out --daemon as well, and the command reads its data from files or standard input"),
    (f"{vw_flags.DAEMON} {FOREGROUND} --num_children", "`xclass serve` is the server; leave it out"),
    ("--sendto", "clients send lines of VW text, as xclass.client and netcat do"),
    (
        "--on_bad_line --strict_parse",
        "a line that is malformed is answered by an error, and is not learned; leave the option out",
    ),
)
LISTS = ("top_k", "probabilities")  # options by which answers list classes
OF_ONE_MODEL = {
    "token_file",
    "initial_regressor",
    "final_regressor",
    "testonly",
    "checkpoint",
    *LISTS,
    "host",
    "port",
    "socket",
    "idle_timeout",
}


class ServeOptions(OptionGroup):
    """Declare the options of the subcommand beside those of a server."""

    initial_regressor: str = option("the model", flags=("-i", "--initial_regressor"), reads=True)
    testonly: bool = option("predict only, do not learn", flags=("-t", "--testonly"))
    final_regressor: str = option(
        "save the model to this file at the end",
        flags=("-f", "--final_regressor"),
        writes=output_file.MODEL,
        files=output_file.places,
        may_replace="initial_regressor",
    )
    checkpoint: int = option(
        "save the model to -f also whenever N examples were learned; at most N are lost if the process is killed",
        minimum=1,
    )
    models: str = option(
        "serve all models FILE.bin of this folder over HTTP, each by its name, for predictions only",
        metavar="DIR",
        reads=True,
        files=lambda folder, _: [] if folder is None else [folder, *glob.glob(f"{glob.escape(folder)}/*.bin")],
    )
    threads: int | None = threads_option("predictions and the model do not depend on N")
    quiet: bool = option("print nothing unless there is an error")


class DaemonOptions(OptionGroup):
    """Declare what a command line of VW with --daemon may have besides; the last two ask for what a server does."""

    daemon: bool = option("serve in the background")
    foreground: bool = option("do not go to the background")
    num_children: int = option("number of processes that serve", minimum=1)
    holdout_off: bool = option("hold no examples out")
    no_stdin: bool = option("do not read standard input")


def declared() -> dict[str, Option]:
    """Return the options, by field name."""
    from ..reductions.core import probabilities
    from ..serving.options import ServerOptions

    listing = options_of(probabilities.ListingOptions)
    lists = {name: listing[name] for name in LISTS}
    return {**options_of(ServeOptions), **lists, **options_of(ServerOptions)}


def run_daemon(words: Sequence[str]) -> int:
    """Serve as a command line of VW with --daemon says, and return the exit status.

    Without --foreground, another process serves, and returns the status at its end; this one returns it as soon as
    clients can connect.
    """
    if FOREGROUND in words:
        return run(words, options_of(DaemonOptions))
    told, telling = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        return run(words, options_of(DaemonOptions), partial(_leave_terminal, telling))
    os.close(telling)
    with open(told, "rb") as pipe:
        if pipe.read(1):
            return 0
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if status >= 0 else 128 - status


def _leave_terminal(telling: int, server: object) -> None:
    """Let this process go on in the background, and tell so the one that has started it, which waits at a pipe."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1):  # messages are written to standard error
        os.dup2(null, stream)
    os.close(null)
    with contextlib.suppress(BrokenPipeError):  # the command was ended while it waited
        os.write(telling, b"1")
    os.close(telling)


@contextlib.contextmanager
def _signals_without_a_server() -> Iterator[None]:
    """Ignore SIGHUP, and end the process with status 0 at SIGTERM, while no server handles these signals.

    By default, SIGHUP would end it, and SIGTERM would do nothing to a process whose number is 1, as in a container.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [
        (number, signal.signal(number, handler))
        for number, handler in ((signal.SIGHUP, signal.SIG_IGN), (signal.SIGTERM, lambda *_: sys.exit(0)))
    ]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@_signals_without_a_server()
def run(
    words: Sequence[str],
    more: Mapping[str, Option] = MappingProxyType({}),
    ready: Callable[[object], object] | None = None,
) -> int:
    """Serve as the words after `xclass serve` say, and return the exit status.

    `more` are further options, by field; `ready` is called when clients may connect.
    """
    given, notes = _given(words, {**declared(), **more})
    from ..kernels import jit
    from ..reductions.core import probabilities
    from ..run.report.console import OperatorConsole
    from ..serving import models, server
    from ..serving.options import ServerOptions
    from ..serving.service import Service
    from ..system import thread_limit

    o, options = taken(given, ServeOptions), taken(given, ServerOptions)
    lists = {name: given.pop(name) for name in LISTS if name in given}
    listing = probabilities.ListingOptions(**lists) if lists else None
    console = OperatorConsole(o.quiet)
    for note in notes:
        console.info(note)
    jit.activate()
    if jit.cache_problem():
        console.warn(jit.cache_problem())
    with thread_limit.limited(o.threads):
        if o.models is not None:

            def load(path: str) -> Any:
                return loaded(dataclasses.replace(o, initial_regressor=path, testonly=True), given)

            held: models.Models = models.FolderModels(o.models, load, console)
        else:
            service = Service(loaded(o, given), not o.testonly, listing, o.final_regressor, o.checkpoint, console)
            reload = None if o.initial_regressor is None else lambda: loaded(o, given)
            held = models.OneModel(service, console, reload, name_of_model(o.initial_regressor or o.final_regressor))
        # garbage may hold a request of megabytes, so it is collected more often than in other commands, see `cli.main`
        gc.set_threshold(NEW_OBJECTS, *gc.get_threshold()[1:])
        server.run(server.serve(held, options, console, ready))
    return 0


def _given(words: Sequence[str], own: Mapping[str, Option]) -> tuple[dict[str, Any], list[str]]:
    """Return the options in the words, field -> value, those of the server and those of a learner, and notes."""
    from ..api import configuration

    known = {**configuration.options_of_learner(), **own}
    del known["on_bad_line"]
    accepted = {flag: one for flag, one in vw_flags.OPTIONS.items() if option_words.advised(flag, ADVICE) is None}
    of_a_run = [(flags, "it belongs to a run that reads data; leave it out") for flags, _ in configuration.OF_A_RUN]
    advice = (*ADVICE, *vw_flags.LISTS, *of_a_run)
    given, others = option_words.read({**known, **accepted}, words, advice, "xclass serve --help")
    if others:
        raise UsageError(f"{others[0]!r} belongs to no option; a server reads no data; usage: {USAGE}")
    notes = vw_flags.take(given)
    if (taken(given, DaemonOptions).num_children or 1) > 1:
        notes.append("--num_children: has no effect, because one process serves all connections")
    prepare_files(given, known)
    if "models" in given:
        if "http" not in given:
            raise UsageError("--models has no effect: it needs --http PORT, where the models are served")
        if given.get("port") == 0:  # any free one is as good as none
            del given["port"]
        for name in OF_ONE_MODEL & given.keys():
            raise UsageError(f"--{name} has no effect with --models, whose models only predict over HTTP; leave it out")
    for name in {"host", "port"} & given.keys() if "socket" in given else ():
        raise UsageError(f"--{name} has no effect with --socket, which takes the place of a port; leave it out")
    if "max_body" in given and "http" not in given:
        raise UsageError("--max_body has no effect: it needs --http PORT, whose requests it limits")
    if "initial_regressor" not in given and "testonly" in given:
        raise UsageError("-t without -i would predict with a new model, which has learned nothing; give -i MODEL")
    return given, notes


def name_of_model(path: str | None) -> str:
    """Return the name by which HTTP requests call a model: that of its file without the ending, if it is plain."""
    name = "" if path is None else os.path.basename(path).partition(".")[0]
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else "model"


def loaded(o: ServeOptions, given: Mapping[str, Any]) -> Any:
    """Return the `Learner` to serve; `given` are the options of a learner, field -> value."""
    from ..api import configuration, model_contents
    from ..api.learner import DEFAULT, Learner
    from ..api.learner_core import LearnerCore
    from ..options.resolve import SCALAR
    from ..reductions.core.spec import LearnerUse

    path = o.initial_regressor
    if path is None:
        arguments = configuration.chosen(given, SCALAR if _learns_numbers(given) else DEFAULT)
        return Learner.of(LearnerCore(configuration.configured(*arguments)), arguments=arguments)
    use = LearnerUse(loaded=True, testing=o.testonly, weights_only=o.testonly)
    contents = model_contents.load(path)
    config = configuration.of_model(path, contents.options, given, use)
    with model_contents.naming(path):
        return Learner.of(LearnerCore(config, contents))


def _learns_numbers(given: Mapping[str, Any]) -> bool:
    """Return whether the options of a new learner ask for numbers if they name no reduction: VW's, or those of a loss.

    A run decides so, too, see `declared.add_implied_options`, but it can look at the labels.
    """
    from ..api import configuration

    groups = configuration.option_groups()
    common = ("run", "parser", "features", "interactions", "learner")
    of_classes = given.keys() - {name for group in common for name in options_of(groups[group])}
    loss = given.get("loss_function")
    return "vw_exact" in given or (loss not in (None, *LOSSES_OF_TWO) and not of_classes)
