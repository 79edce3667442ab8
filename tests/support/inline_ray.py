"""Define what `cluster.session` calls of Ray so that workers live in this process, which starts in no time.

A method of a worker is executed when it is called. Arguments and results are copied as Ray copies them: their arrays
cannot be written. Workers beyond the number of processors wait for ever.
"""

import functools
import pickle
import time
from types import SimpleNamespace

PROCESSORS = 4


class RayTaskError(Exception):
    """Hold the exception that a worker has raised."""

    def __init__(self, cause):
        super().__init__(repr(cause))
        self.cause = cause


class Reference:
    """Hold a result, or the exception that was raised instead; neither if the worker has no processor."""

    def __init__(self, value=None, error=None, ready=True):
        self.value, self.error, self.ready = value, error, ready


class Call:
    """A function, a method of a worker or its class; `remote` calls it."""

    def __init__(self, function, num_returns=1):
        self._function, self._num_returns = function, num_returns

    def options(self, num_returns=1, **_):
        """Return the same with another number of results."""
        return Call(self._function, num_returns)

    def remote(self, *arguments):
        """Call the function and return references to its results."""
        several = self._num_returns > 1
        try:
            value = copied(self._function(*(copied(get(one)) for one in arguments)))
        except Exception as error:
            failed = Reference(error=RayTaskError(error))
            return [failed] * self._num_returns if several else failed
        return [Reference(part) for part in value] if several else Reference(value)


class Actor:
    """A worker, whose methods are `Call`s."""

    def __init__(self, kind, *arguments):
        self._one = kind(*arguments)

    def __getattr__(self, name):
        return Call(getattr(self._one, name))


class Waiting:
    """A worker without a processor, whose methods do not return."""

    def __getattr__(self, name):
        return self

    def options(self, **_):
        return self

    def remote(self, *_):
        return Reference(ready=False)


def copied(value):
    """Return a copy whose arrays cannot be written."""
    buffers = []
    stored = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(stored, buffers=[bytes(buffer) for buffer in buffers])


def get(value):
    """Return what a reference stands for, and anything else as it is."""
    if not isinstance(value, Reference):
        return value
    if value.error is not None:
        raise value.error
    return value.value


def wait(references, timeout, **_):
    """Return which references are ready and which are not, after a while if any is not."""
    waiting = [one for one in references if not one.ready]
    if waiting:
        time.sleep(timeout)
    return [one for one in references if one.ready], waiting


def module():
    """Return the object that takes the place of the module `ray`."""
    actors = []

    def begun(kind, *arguments):
        actors.append(Actor(kind, *arguments) if len(actors) < PROCESSORS else Waiting())
        return actors[-1]

    def remote(function=None, **_):
        if function is not None:
            return Call(function)
        return lambda kind: SimpleNamespace(remote=functools.partial(begun, kind))

    kinds = ("ObjectStoreFullError", "OutOfDiskError", "OutOfMemoryError", "ObjectLostError", "RayActorError")
    errors = {name: type(name, (Exception,), {}) for name in (*kinds, "RaySystemError")}
    return SimpleNamespace(
        is_initialized=lambda: True,
        ObjectRef=Reference,
        remote=remote,
        get=get,
        put=lambda value: Reference(copied(value)),
        wait=wait,
        kill=actors.remove,
        cluster_resources=lambda: {"CPU": PROCESSORS},
        available_resources=lambda: {"CPU": max(0, PROCESSORS - len(actors))},
        exceptions=SimpleNamespace(RayTaskError=RayTaskError, **errors),
    )
