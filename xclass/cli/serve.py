"""Execute `xclass serve`, which answers lines of VW text on a port."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import UsageError
from ..options import words as option_words
from ..options.declare import Option, OptionGroup, option, options_of, threads_option
from ..system import output_file, terminal
from . import option_text

USAGE = "xclass serve -i FILE [-t] [-f FILE --checkpoint N] [OPTIONS]"
INTRO = (
    "Serve a model by Vowpal Wabbit's line protocol: a client sends lines of VW text to a port, and gets for each the "
    "prediction that -p writes. Labelled lines are learned, unless -t is given, and -f saves the model. Without -i, a "
    "new model learns, with the options of a learner. SIGTERM answers what was received, saves the model and ends the "
    "server; SIGHUP loads the model of -i anew."
)
DAEMON = "--daemon"
OF_VW = {  # options of VW's servers that need nothing here -> note about them
    DAEMON: "the server stays in the foreground; put & behind the command",
    "--foreground": "",
    "--num_children": "has no effect: one process serves all connections, and learns in the order of their lines",
}
OF_ONE_MODEL = {
    "token_file",
    "initial_regressor",
    "final_regressor",
    "testonly",
    "checkpoint",
    "top_k",
    "host",
    "port",
    "socket",
    "idle_timeout",
}


@dataclass(frozen=True)
class Options(OptionGroup):
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
    )
    threads: int | None = threads_option("predictions and the model do not depend on N")
    quiet: bool = option("print nothing unless there is an error")


def declared() -> dict[str, Option]:
    """Return the options, by field name."""
    from ..reductions.core import probabilities
    from ..serving.options import Options as ServerOptions

    top_k = options_of(probabilities.Options)["top_k"]
    return {**options_of(Options), "top_k": top_k, **options_of(ServerOptions)}


def words_of_vw(argv: Sequence[str]) -> list[str]:
    """Return the words after `xclass serve` for a command line of VW that has --daemon, and print notes about it."""
    words, rest = [], iter(argv)
    for word in rest:
        flag, _, value = word.partition("=")
        if flag not in OF_VW:
            words.append(word)
            continue
        if flag == "--num_children" and not value:
            next(rest, None)
        if OF_VW[flag] and "--quiet" not in argv:
            terminal.error_line(f"{flag}: {OF_VW[flag]}")
    return words


def run(words: Sequence[str]) -> int:
    """Serve as the words after `xclass serve` say, and return the exit status."""
    own = declared()
    if {"-h", "--help"} & set(words):
        terminal.page(option_text.of_subcommand(USAGE, INTRO, own))
        return 0
    given = _given(words, own)
    from ..kernels import jit
    from ..reductions.core import probabilities
    from ..run.report.console import Console
    from ..serving import server
    from ..serving.options import Options as ServerOptions
    from ..serving.service import Service
    from ..system import thread_limit

    o = Options(**_taken(given, options_of(Options)))
    options = ServerOptions(**_taken(given, options_of(ServerOptions)))
    listing = probabilities.Options(top_k=given.pop("top_k")) if "top_k" in given else None
    console = Console(o.quiet)
    jit.activate()
    if jit.cache_problem():
        console.warn(jit.cache_problem())
    with thread_limit.limited(o.threads):
        if o.models is not None:
            from ..serving.models import Models

            def load(path: str) -> Any:
                return loaded(dataclasses.replace(o, initial_regressor=path, testonly=True), given)

            server.run(server.serve_models(Models(o.models, load, console), options, console))
            return 0
        learner = loaded(o, given)
        service = Service(learner, not o.testonly, listing, o.final_regressor, o.checkpoint, console)
        reload = None if o.initial_regressor is None else lambda: loaded(o, given)
        name = name_of_model(o.initial_regressor or o.final_regressor)
        server.run(server.serve(service, options, console, reload, name=name))
    return 0


def _given(words: Sequence[str], own: Mapping[str, Option]) -> dict[str, Any]:
    """Return the options in the words, field -> value: those of the server and those of a learner."""
    from ..api import configuration
    from .declared import prepare_files

    known = {**configuration.options_of_learner(), **own}
    try:
        given, others = option_words.read(known, words)
    except option_words.UnknownOption as error:
        raise UsageError(str(error).replace(option_words.HELP, "xclass serve --help")) from None
    if others:
        raise UsageError(f"{others[0]!r} belongs to no option; a server reads no data; usage: {USAGE}")
    prepare_files(given, known)
    if "models" in given:
        if "http" not in given:
            raise UsageError("--models has no effect: it needs --http PORT, where the models are served")
        for name in OF_ONE_MODEL & given.keys():
            raise UsageError(f"--{name} has no effect with --models, whose models only predict over HTTP; leave it out")
    for name in {"host", "port", "port_file"} & given.keys() if "socket" in given else ():
        raise UsageError(f"--{name} has no effect with --socket, which takes the place of a port; leave it out")
    if "max_body" in given and "http" not in given:
        raise UsageError("--max_body has no effect: it needs --http PORT, whose requests it limits")
    if "initial_regressor" not in given and "testonly" in given:
        raise UsageError("-t without -i would predict with a new model, which has learned nothing; give -i MODEL")
    if "checkpoint" in given and "final_regressor" not in given:
        raise UsageError("--checkpoint has no effect: it needs -f FILE, the model to save")
    if "testonly" in given and "final_regressor" in given:
        raise UsageError("-f has no effect: with -t nothing is learned; leave one of the two out")
    return given


def name_of_model(path: str | None) -> str:
    """Return the name by which HTTP requests call a model: that of its file without the ending, if it is plain."""
    name = "" if path is None else os.path.basename(path).partition(".")[0]
    return name if re.fullmatch(r"[\w-]+", name, re.ASCII) else "model"


def _taken(given: dict[str, Any], declared: Mapping[str, Option]) -> dict[str, Any]:
    return {name: given.pop(name) for name in declared if name in given}


def loaded(o: Options, given: Mapping[str, Any]) -> Any:
    """Return the `Learner` to serve; `given` are the options of a learner, field -> value."""
    from ..api import configuration, model_contents
    from ..api.learner import DEFAULT, Learner
    from ..api.learner_core import LearnerCore

    path = o.initial_regressor
    if path is None:
        arguments = configuration.chosen(given, DEFAULT)
        return Learner.of(
            LearnerCore(configuration.configured(*arguments), configuration.NEW_LEARNER), arguments=arguments
        )
    use = configuration.LearnerUse(loaded=True, testing=o.testonly, weights_only=o.testonly)
    contents = model_contents.load(path)
    config = configuration.of_model(path, contents.options, given, use)
    with model_contents.naming(path):
        return Learner.of(LearnerCore(config, use, contents))
