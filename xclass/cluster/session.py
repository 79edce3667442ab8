"""Connect to a Ray cluster or start one, check that its nodes run the same versions, and wait for its workers.

    with Session(options, console.info) as session:                  # options: `cluster.options.ClusterOptions`
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
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from ..errors import ClusterError, UsageError, XclassError, install_extra
from ..run.results import summary
from ..system import thread_limit
from .options import ClusterOptions

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

    `say` is called with lines for the user. `environment` is the runtime environment of the workers, as for `ray.init`;
    None for that of this process.
    """

    def __init__(
        self,
        options: ClusterOptions,
        say: Callable[[str], None],
        environment: dict[str, Any] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._ray = imported()
        self._options = options
        self._say = say
        self._environment = environment
        self._tell = tell
        self._owner = False
        self._actors: list[Any] = []

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
            workers, own = self._options.workers, thread_limit.processors()
            if workers > own:
                self._say(
                    f"--workers {workers}: this machine has {own} processor{'s' * (own > 1)}, which the workers share; "
                    f"with more than {own} a run takes longer to start and more memory, and is no faster"
                )
            common |= {"num_cpus": workers, "include_dashboard": False}
            if NICENESS not in os.environ:  # else Ray's own is 15, and other programs would take the processors
                common["_system_config"] = {"worker_niceness": 0}
        if self._tell is not None:
            self._tell(
                "starting Ray on this machine" if address == "local" else f"connecting to the Ray cluster {address}"
            )
        try:
            with self._slow_start(address), self._unreachable(address):
                self._initialise(address, common)
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

    def _initialise(self, address: str, named: dict[str, Any]) -> None:
        """Call `ray.init`, for a cluster on a thread, because Ray waits for minutes for one that does not answer.

        Raise TimeoutError after --ray_timeout.
        """
        if address == "local":
            self._ray.init(address=address, **named)
            return
        errors: list[BaseException] = []
        settled = threading.Lock()  # taken by the thread once it has an answer, or here if that comes too late

        def connect() -> None:
            try:
                self._ray.init(address=address, **named)
            except BaseException as error:
                errors.append(error)
            if not settled.acquire(blocking=False) and not errors:
                self._ray.shutdown()

        limit = self._options.ray_timeout
        thread = threading.Thread(target=connect, name="xclass-ray", daemon=True)
        thread.start()
        thread.join(limit)
        if settled.acquire(blocking=False):
            raise TimeoutError(f"it has not answered within {limit:g} seconds, --ray_timeout")
        if errors:
            raise errors[0]

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
        """Raise ClusterError if a node has other versions than this process, or xclass does not run there."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self._ray.remote(summary.versions)
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        on_nodes = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
        refs = [task.options(num_cpus=0, scheduling_strategy=node, **self._runtime()).remote() for node in on_nodes]
        own, lines = summary.versions(), []
        for address, ref in zip((node["NodeManagerAddress"] for node in nodes), refs, strict=True):
            there = self._versions_of(address, ref) or own
            for name, version in own.items():
                if there.get(name) != version:
                    lines.append(f"  node {address} has {name} {there.get(name)}, this process has {version}")
        if lines:
            raise ClusterError("nodes of the cluster have other versions; install the same everywhere:", *lines)

    def _versions_of(self, address: str, ref: Any) -> dict[str, str] | None:
        """Return the versions of a node, None if it has died, since Ray lists a node for some seconds after that."""
        exceptions = self._ray.exceptions
        try:
            there: dict[str, str] = self.get(ref)
        except (LostResultError, exceptions.TaskUnschedulableError, exceptions.WorkerCrashedError):
            return None
        except XclassError:
            raise
        except Exception as error:
            wanted = ", ".join(f"{name} {version}" for name, version in summary.versions().items())
            raise ClusterError(
                f"node {address} of the cluster cannot run xclass ({_lines(error)[-1].strip()}); install there what "
                f"this process has: {wanted}"
            ) from error
        return there

    def _runtime(self) -> dict[str, Any]:
        return {} if self._environment is None else {"runtime_env": self._environment}

    # work

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function on any node, with this session's environment, and return its result."""
        task = self._ray.remote(function).options(num_cpus=0, max_retries=-1, **self._runtime())
        return self.get(task.remote(*arguments))

    def put(self, value: Any) -> Any:
        """Put a value into the object store, once for all workers, and return its reference."""
        try:
            return self._ray.put(value)
        except Exception as error:
            raise self._explained(error) from error

    def actors(self, kind: type, count: int, *arguments: Any) -> list[Any]:
        """Start workers, wait until all have a processor, and return their handles.

        Their class `kind` has a method `ping`, which returns at once. Its constructor, which is also called when a
        worker is restarted, gets the number of the worker, from 1, and the arguments. A method that a worker could not
        complete is called again in the restarted worker.
        """
        remote = self._ray.remote(
            num_cpus=1, max_restarts=-1, max_task_retries=-1, concurrency_groups={"health": 1}, **self._runtime()
        )(kind)
        workers = [remote.remote(number, *arguments) for number in range(1, count + 1)]
        self._actors += workers
        self._wait([_pinged(worker) for worker in workers], lambda: False, "")
        return workers

    def result(self, ref: Any, worker: Any, number: int) -> Any:
        """Return what a worker, whose number is for messages, computes, as soon as it is ready."""

        def runs() -> bool:
            return bool(self._ray.wait([_pinged(worker)], timeout=NOTICE_SECONDS)[0])

        self._wait([ref], runs, f"worker {number} is not running; ")
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
        try:
            return self._ray.get(ref)
        except Exception as error:
            raise self._explained(error) from getattr(error, "cause", None)

    def _explained(self, error: Exception) -> Exception:
        exceptions = self._ray.exceptions
        cause = getattr(error, "cause", None)
        while isinstance(cause, exceptions.RayTaskError):
            cause = cause.cause
        if isinstance(cause, XclassError):
            return cause

        def is_any(*kinds: type) -> bool:
            return isinstance(error, kinds) or isinstance(cause, kinds)

        if is_any(exceptions.ObjectStoreFullError, exceptions.OutOfDiskError):
            return ClusterError(
                "the object store of the cluster is full, and so is the disk to which it spills "
                f"({_lines(cause or error)[0]}); give the nodes more, `ray start --object-store-memory BYTES`, or "
                "choose a smaller model, -b"
            )
        if isinstance(error, exceptions.OutOfMemoryError):
            return ClusterError(f"a worker was ended because its node has too little memory: {_lines(error)[0]}")
        if isinstance(cause, MemoryError):
            return ClusterError(f"a worker has not enough memory ({cause}); try a smaller -b")
        if is_any(exceptions.ObjectLostError, exceptions.RayActorError):
            return LostResultError(f"the cluster has failed: {_lines(error)[0]}")
        if isinstance(error, exceptions.RaySystemError):
            return ClusterError(f"the cluster has failed: {_lines(error)[0]}")
        return error

    # waiting

    def _wait(self, refs: Sequence[Any], work_goes_on: Callable[[], bool], problem: str) -> None:
        """Wait until all references are ready, and give up if for too long none becomes ready and no work goes on."""
        waiting, noticed, idle_since = refs, False, time.monotonic()
        limit = self._options.ray_timeout
        while True:
            ready, waiting = self._ray.wait(
                waiting, num_returns=len(waiting), timeout=min(NOTICE_SECONDS, max(limit, 0.1))
            )
            if not waiting:
                return
            if ready or work_goes_on():
                noticed, idle_since = False, time.monotonic()
                continue
            idle = time.monotonic() - idle_since
            total = int(self._ray.cluster_resources().get("CPU", 0))
            free = int(self._ray.available_resources().get("CPU", 0))
            missing = (
                f"{problem}waiting for a processor for {len(waiting)} of {len(self._actors)} workers: the cluster has "
                f"{total} processors, {free} of them free"
            )
            if not noticed and idle >= min(NOTICE_SECONDS, limit):
                self._say(missing)
                noticed = True
            if idle >= limit:
                advice = "give fewer --workers, or add nodes to the cluster"
                raise ClusterError(f"{missing}; gave up after {limit:g} seconds (--ray_timeout); {advice}")


def fetched(value: Any) -> Any:
    """Return what a reference stands for, and anything else as it is; in a worker."""
    ray = imported()
    return ray.get(value) if isinstance(value, ray.ObjectRef) else value


def _pinged(worker: Any) -> Any:
    """Return the reference to an answer that a worker gives at once, also while it works."""
    return worker.ping.options(concurrency_group="health").remote()


def _token_advice(address: str) -> str:
    """Return what may help if a cluster asks for a token, which Ray sends by itself only if the address is `auto`."""
    if address == "auto" or TOKEN_MODE in os.environ:
        return ""
    return f"; if it asks for a token, as `ray start` says, set {TOKEN_MODE}=token"


def _lines(error: Exception) -> list[str]:
    """Return the lines of a message, of which the last one names the cause if it is a traceback."""
    return str(error).strip().splitlines() or [type(error).__name__]
