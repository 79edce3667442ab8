"""Serve a learner from a program: `run` answers lines of VW text on a port; see docs/serving.md.

import xclass
from xclass import serve

serve.run(xclass.load("model.bin"), learn=False)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from .api import configuration
from .api.learner import Learner
from .errors import UsageError
from .options.declare import options_of
from .options.spelling import Spelling, suggestion
from .reductions.core import probabilities
from .run.report.console import OperatorConsole
from .serving import server
from .serving.models import OneModel
from .serving.options import ServerOptions
from .serving.service import Service

__all__ = ["run"]


def run(
    learner: Learner,
    *,
    learn: bool = True,
    top_k: int | None = None,
    save_to: str | None = None,
    checkpoint: int | None = None,
    ready: Callable[[server.Server], object] | None = None,
    **options: Any,
) -> asyncio.Task[None] | None:
    """Serve a learner by Vowpal Wabbit's line protocol.

    A client sends lines of VW text. Each is answered by a line: the prediction as `-p` writes it. With `learn`, a
    labelled line is learned, too. The learner belongs to the server until that has ended.

    Parameters
    ----------
    learner : Learner
        Predicts and learns.
    learn : bool, default True
        Whether labelled lines are learned.
    top_k : int, optional
        Answer by the k most probable classes with their probabilities.
    save_to : str, optional
        File to which the model is saved at the end.
    checkpoint : int, optional
        Save the model also whenever this number of examples was learned.
    ready : callable, optional
        Is called with the server as soon as clients may connect; `server.lines.port` is its port, and
        `server.stop_soon()` ends it from any thread.
    **options
        `host`, `port`, `socket` and the other options of `xclass serve`, by their names without dashes.

    Returns
    -------
    task : asyncio.Task or None
        In a running event loop, the task that serves; to end the server, cancel it and wait for it. Otherwise None,
        after the server was ended by SIGTERM, Ctrl-C or `server.stop_soon()`.

    Raises
    ------
    UsageError
        If an option is not allowed, or the address cannot be used.
    ModelError
        If the model cannot be saved.

    Examples
    --------
    >>> import asyncio, xclass
    >>> from xclass import client, serve
    >>> async def main():
    ...     port = asyncio.get_running_loop().create_future()
    ...     ready = lambda server: port.set_result(server.lines.port)
    ...     learner = xclass.Learner("oaa", classes=2, bits=10)
    ...     task = serve.run(learner, port=0, ready=ready)
    ...     reader, writer = await asyncio.open_connection("127.0.0.1", await port)
    ...     writer.write(b"2 'first | cold rainy\\\\n1 | warm\\\\n| cold\\\\n")
    ...     answers = [await reader.readline() for _ in range(3)]
    ...     task.cancel()
    ...     await asyncio.wait([task])
    ...     return answers
    >>> asyncio.run(main())
    [b'1 first\\n', b'1\\n', b'2\\n']
    """
    declared = options_of(ServerOptions)
    for name in options:
        if name not in declared:
            raise UsageError(f"there is no option {name!r}{suggestion(name, declared)}")
    values = {n: configuration.checked_value(n, declared[n], value) for n, value in options.items()}
    with ARGUMENTS:
        chosen = ServerOptions(**values)
    listing = None
    if top_k is not None:
        k = configuration.checked_value("top_k", options_of(probabilities.ListingOptions)["top_k"], top_k)
        listing = probabilities.ListingOptions(top_k=k)
    console = OperatorConsole(quiet=False)
    with ARGUMENTS:
        models = OneModel(Service(learner, learn, listing, save_to, checkpoint, console), console)

    async def served(signals: bool) -> None:
        with ARGUMENTS:
            await server.serve(models, chosen, console, ready=ready, signals=signals)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        server.run(served(signals=True))
        return None
    return asyncio.ensure_future(served(signals=False))


def _arguments(complete: bool) -> dict[str, str]:
    """Return the arguments of `run` by the flags of the command, see `Spelling`."""
    names = {f"--{name}": name for name in (*options_of(ServerOptions), "top_k", "checkpoint")}
    return {**configuration.keywords(complete), **names, "-f": "save_to", "-t": "learn=False"}


ARGUMENTS = Spelling(_arguments)
