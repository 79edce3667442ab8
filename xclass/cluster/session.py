"""Connect to a Ray cluster or start one, check that its nodes run the same versions, and wait for its workers.

    with Session(options, console.info) as session:                  # options: `cluster.options.Options`
        workers = session.actors(Worker, options.workers, argument)  # one processor each; restarted if they die
        refs = [worker.learn.remote(...) for worker in workers]
        result = session.result(refs[0], workers[0], 1)
        (names,) = session.call(list_names, path)                    # a function that is run once, on any node

Idea      Ray does all of the scheduling, transport and restarting. A method that was running when its worker died is
          called again in the restarted worker, so methods have to be functions of their arguments. An exception of
          xclass that is raised in a worker is raised again here as it was.
Waiting   A worker without a processor is waited for, and a message says what is missing. After `ray_timeout` seconds
          in which a worker has none, the run ends with an error.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from ..api.configuration import Config
from ..errors import ClusterError, UsageError, XclassError, install_extra
from ..run.report.console import Console
from ..run.results import summary
from .options import Options

NICENESS = "RAY_worker_niceness"  # variable that sets the priority of Ray's workers
TOKEN_MODE = "RAY_AUTH_MODE"  # variable that says whether Ray sends a token
NETWORK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"  # variable that says, on any system, whether Ray listens to the network
LOOPBACK = "127.0.0.1"
NO_STACK = "RAY_DISABLE_FAILURE_SIGNAL_HANDLER"  # variable; without it Ray writes a stack when it is ended by SIGTERM
START_POLL = 0.1  # seconds between two questions whether a Ray has started
NOTICE_SECONDS = 10.0  # time until the user is told what the run waits for


class LostResultError(ClusterError):
    """Report that a result was lost with a worker or a node, and that Ray does not compute it again."""


def imported() -> Any:
    """Return the module `ray`; raise UsageError if it is not installed."""
    try:
        import ray
    except ImportError:
        raise UsageError(f"--workers needs the package ray; {install_extra('ray')}") from None
    return ray


class Session:
    """Hold a connection to a Ray cluster; leave the `with` block to end it.

    A program that has called `ray.init` itself keeps its connection.

    Parameters
    ----------
    options : options of the cluster
    say : called with lines for the user
    environment : runtime environment of the workers, as for `ray.init`; None for that of this process
    """

    def __init__(self, options: Options, say: Callable[[str], None], environment: dict[str, Any] | None = None) -> None:
        self._ray = imported()
        self._options = options
        self._say = say
        self._environment = environment
        self._owner = False
        self._actors: list[Any] = []

    @classmethod
    def of_run(cls, config: Config) -> Session:
        """Return the session of a run, which shows its lines unless the run is quiet."""
        return cls(config.cluster, Console(config.run.quiet).info)

    def __enter__(self) -> Session:
        try:
            if not self._ray.is_initialized():
                self._connect()
                self._owner = True
                self._show_messages_of_ray(False)
            self._check_versions()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, and the connection and the local Ray if they belong to this session."""
        if self._ray.is_initialized():
            for actor in self._actors:
                self._ray.kill(actor)
        self._actors = []
        if self._owner:
            self._owner = False
            self._ray.shutdown()  # until then Ray tells about tasks of the workers that were ended
            self._show_messages_of_ray(True)

    def _show_messages_of_ray(self, shown: bool) -> None:
        """Choose whether Ray writes about errors to standard output, where they would be among the predictions."""
        worker = self._ray._private.worker
        if hasattr(worker, "_worker_logs_enabled"):  # there is no public way, `log_to_driver` does not concern them
            worker._worker_logs_enabled = shown

    def _connect(self) -> None:
        """Open the connection to the cluster, or start a Ray on this machine."""
        address = self._options.ray or os.environ.get("RAY_ADDRESS") or "local"
        common: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
        if address.startswith("ray://"):
            common = {}
        elif address == "local":
            common |= {"num_cpus": self._options.workers, "include_dashboard": False}
            if NICENESS not in os.environ:  # else Ray's own is 15, and other programs would take the processors
                common["_system_config"] = {"worker_niceness": 0}
        try:
            with self._slow_start(address), self._unreachable(address):
                self._ray.init(address=address, **common)
        except ClusterError:
            raise
        except Exception as error:  # Ray raises many kinds, a plain one if its services start too slowly
            reason = " ".join(str(error).split())
            if "Version mismatch" in reason:
                raise ClusterError(
                    f"--ray {address}: the cluster has another version of Ray or Python than this process ({reason}); "
                    "install the same on all nodes"
                ) from None
            if address == "local":
                raise ClusterError(f"Ray cannot be started on this machine: {reason}") from None
            raise ClusterError(
                f"--ray {address}: no connection to a Ray cluster ({reason}); start one, `ray start --head`, or leave "
                f"--ray out for a Ray on this machine{_token_advice(address)}"
            ) from None

    @contextlib.contextmanager
    def _unreachable(self, address: str) -> Iterator[None]:
        """Let a Ray that is started in the `with` block listen on this machine only, not to the network.

        A program that reaches a Ray can execute code in it. `ray.init` has no option for this, but a variable that it
        reads when it is imported, and that its processes inherit.
        """
        if address != "local" or NETWORK in os.environ:
            yield
            return
        constants: Any = self._ray._private.ray_constants
        before = getattr(constants, "ENABLE_RAY_CLUSTER", True)
        variables = {name: value for name, value in ((NETWORK, "0"), (NO_STACK, "1")) if name not in os.environ}
        os.environ.update(variables)
        constants.ENABLE_RAY_CLUSTER = False
        try:
            yield
        finally:
            constants.ENABLE_RAY_CLUSTER = before
            for name in variables:
                del os.environ[name]
        addresses = {node["NodeManagerAddress"] for node in self._ray.nodes()}
        if addresses != {LOOPBACK}:
            self._ray.shutdown()
            raise ClusterError(
                f"Ray {self._ray.__version__} listens at {', '.join(sorted(addresses))} and not at {LOOPBACK} only, so "
                f"others could execute code in it: install a newer Ray, or set {NETWORK}=1 where the network is safe"
            )

    @contextlib.contextmanager
    def _slow_start(self, address: str) -> Iterator[None]:
        """Let a Ray start in the time of --ray_timeout, not in 30 seconds: its question for its node waits for it."""
        services: Any = getattr(getattr(self._ray, "_private", None), "services", None)
        ask = getattr(services, "get_node", None)
        if address != "local" or ask is None:  # there is no public way
            yield
            return
        end = time.monotonic() + self._options.ray_timeout

        def get_node(*arguments: Any, **named: Any) -> Any:
            while True:
                try:
                    return ask(*arguments, **named)
                except RuntimeError as error:  # there is no node yet
                    if time.monotonic() >= end:
                        limit = f"{self._options.ray_timeout:g} seconds (--ray_timeout)"
                        raise TimeoutError(f"it has not started within {limit}: {error}") from None
                time.sleep(START_POLL)

        services.get_node = get_node
        try:
            yield
        finally:
            services.get_node = ask

    def _check_versions(self) -> None:
        """Raise ClusterError if a node has other versions than this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(summary.versions)
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        on_nodes = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
        refs = [task.options(num_cpus=0, scheduling_strategy=node, **self._runtime()).remote() for node in on_nodes]
        found = [
            (node["NodeManagerAddress"], self._versions_of(node["NodeManagerAddress"], ref))
            for node, ref in zip(nodes, refs, strict=True)
        ]
        present = [(address, versions_there) for address, versions_there in found if versions_there is not None]
        check_versions([address for address, _ in present], [versions_there for _, versions_there in present])

    def _versions_of(self, address: str, ref: Any) -> dict[str, str] | None:
        """Return the versions of a node, None if it has died; raise ClusterError if xclass does not run there."""
        exceptions = self._ray.exceptions
        try:
            there: dict[str, str] = self.get(ref)
        except LostResultError:
            return None
        except XclassError:
            raise
        except Exception as error:
            if isinstance(error, (exceptions.TaskUnschedulableError, exceptions.WorkerCrashedError)):
                return None  # Ray lists a node for some seconds after its death
            wanted = ", ".join(f"{name} {version}" for name, version in summary.versions().items())
            raise ClusterError(
                f"node {address} of the cluster cannot run xclass ({_last(error)}); install there what this process "
                f"has: {wanted}"
            ) from error
        return there

    def _runtime(self) -> dict[str, Any]:
        """Return the options of tasks and workers that choose their environment."""
        return {} if self._environment is None else {"runtime_env": self._environment}

    # work

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function on any node, with this session's environment, and return its result."""
        task = self._ray.remote(function).options(num_cpus=0, max_retries=-1, **self._runtime())
        return self.get(task.remote(*arguments))

    def task(self, function: Callable[..., Any]) -> Any:
        """Return a remote function that takes one processor and is run again if its worker dies."""
        return self._ray.remote(function).options(num_cpus=1, max_retries=-1, **self._runtime())

    def put(self, value: Any) -> Any:
        """Put a value into the object store, once for all workers, and return its reference."""
        try:
            return self._ray.put(value)
        except Exception as error:
            raise self._explained(error) from error

    def actors(self, kind: type, count: int, *arguments: Any) -> list[Any]:
        """Start workers and wait until all have a processor.

        Parameters
        ----------
        kind : class of the workers. It has a method `ping`, which returns at once
        count : number of workers
        arguments : of the constructor, which is also called when a worker is restarted; before them comes the number
            of the worker, from 1

        Returns
        -------
        Handles of the actors. A method that a worker could not complete is called again in the restarted worker.
        """
        remote = self._ray.remote(
            num_cpus=1, max_restarts=-1, max_task_retries=-1, concurrency_groups={"health": 1}, **self._runtime()
        )(kind)
        workers = [remote.remote(number, *arguments) for number in range(1, count + 1)]
        self._actors += workers
        refs = [worker.ping.options(concurrency_group="health").remote() for worker in workers]
        self._wait(refs, lambda waiting: self._missing(len(waiting), count))
        return workers

    def result(self, ref: Any, worker: Any, number: int) -> Any:
        """Return what a worker, whose number is for messages, computes, as soon as it is ready."""
        self._wait_for_worker(ref, worker, number)
        return self.get(ref)

    def answers(
        self, workers: Sequence[Any], chosen: Sequence[int], send: Callable[[Any, int], Any], ahead: int
    ) -> Iterator[tuple[int, Any]]:
        """Let workers do pieces of work; yield the worker, from 0, and the answer of each piece in order.

        What is lost with a node is sent again.

        Parameters
        ----------
        chosen : for each piece, its worker
        send : send(worker, k) returns the reference to the answer to piece k
        ahead : number of pieces that are sent before the first of them is answered
        """
        refs: list[Any] = []
        for k, i in enumerate(chosen):
            while len(refs) < min(len(chosen), k + ahead):
                refs.append(send(workers[chosen[len(refs)]], len(refs)))
            while True:
                try:
                    answer = self.result(refs[k], workers[i], i + 1)
                    break
                except LostResultError:
                    refs[k] = send(workers[i], k)
            refs[k] = None  # frees the object store
            yield i, answer

    def get(self, ref: Any) -> Any:
        """Return the result of a reference; raise the error of xclass that it ended with."""
        try:
            return self._ray.get(ref)
        except Exception as error:
            raise self._explained(error) from getattr(error, "cause", None)

    def _explained(self, error: Exception) -> Exception:
        """Return the error to raise for an error of Ray or of a worker."""
        exceptions = self._ray.exceptions
        cause = getattr(error, "cause", None)
        while isinstance(cause, exceptions.RayTaskError):
            cause = cause.cause
        if isinstance(cause, XclassError):
            return cause
        if isinstance(error, XclassError):
            return error
        full = (exceptions.ObjectStoreFullError, exceptions.OutOfDiskError)
        if isinstance(error, full) or isinstance(cause, full):
            return ClusterError(
                f"the object store of the cluster is full, and so is the disk to which it spills "
                f"({_short(cause or error)}); "
                "give the nodes more, `ray start --object-store-memory BYTES`, or choose a smaller model, -b"
            )
        if isinstance(error, (exceptions.OutOfMemoryError,)):
            return ClusterError(f"a worker was ended because its node has too little memory: {_short(error)}")
        if isinstance(cause, MemoryError):
            return ClusterError(f"a worker has not enough memory ({cause}); try a smaller -b")
        gone = exceptions.ObjectLostError, exceptions.RayActorError
        if isinstance(error, gone) or isinstance(cause, gone):
            return LostResultError(f"the cluster has failed: {_short(error)}")
        if isinstance(error, exceptions.RaySystemError):
            return ClusterError(f"the cluster has failed: {_short(error)}")
        return error

    # waiting

    def _wait(self, refs: Sequence[Any], missing: Callable[[Sequence[Any]], str]) -> None:
        """Wait until all references are ready; `missing` describes what those that are not wait for."""
        waiting = list(refs)
        last = started = time.monotonic()
        noticed = False
        while waiting:
            ready, waiting = self._ray.wait(
                waiting, num_returns=len(waiting), timeout=min(NOTICE_SECONDS, self._left(started))
            )
            now = time.monotonic()
            if ready:
                last = now
            if not waiting:
                return
            if not noticed and now - last >= min(NOTICE_SECONDS, self._options.ray_timeout):
                self._say(missing(waiting))
                noticed = True
            if now - last >= self._options.ray_timeout:
                raise self._gave_up(missing(waiting))

    def _left(self, since: float) -> float:
        """Return the seconds of --ray_timeout that are left since a time, at least a little."""
        return max(0.1, self._options.ray_timeout - (time.monotonic() - since))

    def _gave_up(self, missing: str) -> ClusterError:
        """Return the error for a wait that was too long."""
        return ClusterError(
            f"{missing}; gave up after {self._options.ray_timeout:g} seconds (--ray_timeout); give fewer --workers, or "
            "add nodes to the cluster"
        )

    def _missing(self, waiting: int, count: int) -> str:
        """Describe a wait for processors."""
        total = int(self._ray.cluster_resources().get("CPU", 0))
        free = int(self._ray.available_resources().get("CPU", 0))
        return (
            f"waiting for a processor for {waiting} of {count} workers: the cluster has {total} processors, "
            f"{free} of them free"
        )

    def _wait_for_worker(self, ref: Any, worker: Any, number: int) -> None:
        """Wait for the result of a worker, as long as the worker has a processor."""
        silent_since: float | None = None
        noticed = False
        while not self._ray.wait([ref], timeout=NOTICE_SECONDS)[0]:
            ping = worker.ping.options(concurrency_group="health").remote()
            if self._ray.wait([ping], timeout=NOTICE_SECONDS)[0]:
                silent_since, noticed = None, False
                continue
            silent_since = silent_since or time.monotonic()
            missing = f"worker {number} is not running; {self._missing(1, len(self._actors))}"
            if not noticed:
                self._say(missing)
                noticed = True
            if time.monotonic() - silent_since >= self._options.ray_timeout:
                raise self._gave_up(missing)


def _token_advice(address: str) -> str:
    """Return what may help if a cluster asks for a token, which Ray sends by itself only if the address is `auto`."""
    if address == "auto" or TOKEN_MODE in os.environ:
        return ""
    return f"; if it asks for a token, as `ray start` says, set {TOKEN_MODE}=token"


def check_versions(addresses: Sequence[str], found: Sequence[dict[str, str]]) -> None:
    """Raise ClusterError if a node has another version than this process.

    Parameters
    ----------
    addresses : of the nodes
    found : what `summary.versions` returns on each of them
    """
    own = summary.versions()
    lines = [
        f"  node {address} has {name} {other[name]}, this process has {own[name]}"
        for address, other in zip(addresses, found, strict=True)
        for name in own
        if other[name] != own[name]
    ]
    if lines:
        raise ClusterError("nodes of the cluster have other versions; install the same everywhere:", *lines)


def _last(error: Exception) -> str:
    """Return the last line of the message of an error, which of a traceback is the cause."""
    lines = str(error).strip().splitlines()
    return lines[-1].strip() if lines else type(error).__name__


def _short(error: Exception) -> str:
    """Return the first line of the message of an error."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
