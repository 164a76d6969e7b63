"""The agent of a machine: it starts the processes of a job, watches them, and ends all when one fails.

The agents of several machines meet at a store in the first one's agent, which the processes use too: so it is there before
they are, and stays while they end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

from .elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from .errors import DistNetworkError
from .stores import PrefixStore, Store
from .tcp_store import TCPStore

__all__ = ["Job", "launch"]

_GRACE = 10.0


@dataclasses.dataclass
class Job:
    """What is to run on this machine; `run.py` says what the fields mean."""

    name: str
    command: list[str]
    nodes: int
    processes: int
    host: str
    port: int
    node_rank: int | None
    restarts: int
    interval: float
    role: str
    run_id: str
    timeout: float
    log_dir: str | None
    redirects: str
    shown: list[int]
    local_rank_argument: bool
    told: int = -1


def _store(job: Job) -> tuple[Store, bool, int]:
    """The store of the job, whether it is in this agent, and its port."""
    limit = datetime.timedelta(seconds=job.timeout)
    here = job.node_rank == 0
    if job.node_rank is None:
        here = _is_here(job.host)
    if here:
        try:
            store = TCPStore(job.host, job.port, is_master=True, timeout=limit, wait_for_workers=False)
            return PrefixStore(f"agents/{job.run_id}", store), True, store.port
        except DistNetworkError:
            # Another agent of this machine may have it; a job of one machine has no other.
            if job.node_rank is not None:
                raise
    client = TCPStore(job.host, job.port, timeout=limit)
    return PrefixStore(f"agents/{job.run_id}", client), False, job.port


def _is_here(host: str) -> bool:
    """Whether a name is that of this machine."""
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.bind((socket.gethostbyname(host), 0))
        return True
    return False


class _Workers:
    """The processes of one attempt on this machine."""

    def __init__(self, job: Job, attempt: int, numbers: dict[str, int], port: int) -> None:
        self.job, self.first = job, numbers["first"]
        self.files: list[Any] = []
        self.processes = [self._start(i, attempt, numbers, port) for i in range(job.processes)]

    def _start(self, i, attempt, numbers, port):
        job = self.job
        rank, world = self.first + i, numbers["world"]
        names = {
            "LOCAL_RANK": i, "RANK": rank, "GROUP_RANK": numbers["node"], "ROLE_RANK": rank, "ROLE_NAME": job.role,
            "LOCAL_WORLD_SIZE": job.processes, "WORLD_SIZE": world, "GROUP_WORLD_SIZE": job.nodes,
            "ROLE_WORLD_SIZE": world, "MASTER_ADDR": job.host, "MASTER_PORT": port,
            "TORCHELASTIC_RESTART_COUNT": attempt, "TORCHELASTIC_MAX_RESTARTS": job.restarts,
            "TORCHELASTIC_RUN_ID": job.run_id, "TORCHELASTIC_USE_AGENT_STORE": "True",
        }  # fmt: skip
        environment = {**os.environ, **{name: str(value) for name, value in names.items()}}
        if job.processes > 1:  # Each would take all cores.
            environment.setdefault("OMP_NUM_THREADS", "1")
        command = [*job.command, *([f"--local-rank={i}"] if job.local_rank_argument else [])]
        return subprocess.Popen(command, env=environment, **self._streams(i, attempt))

    def _streams(self, i, attempt):
        """Where the output of a process goes."""
        kinds = dict(part.split(":") for part in self.job.redirects.split(",") if ":" in part)
        kind = int(kinds.get(str(i), "0") if kinds else self.job.redirects)
        hidden = bool(self.job.shown) and i not in self.job.shown
        streams: dict[str, Any] = {}
        for bit, name in ((1, "stdout"), (2, "stderr")):
            if kind & bit:
                self.job.log_dir = self.job.log_dir or tempfile.mkdtemp(prefix="rustgrad-logs-")
                folder = os.path.join(self.job.log_dir, self.job.run_id, f"attempt_{attempt}", str(i))
                os.makedirs(folder, exist_ok=True)
                self.files.append(open(os.path.join(folder, f"{name}.log"), "wb"))
                streams[name] = self.files[-1]
            elif hidden:
                streams[name] = subprocess.DEVNULL
        return streams

    def failures(self) -> dict[int, ProcessFailure]:
        """The processes that have failed, by rank."""
        return {
            self.first + i: ProcessFailure(i, process.pid, process.returncode)
            for i, process in enumerate(self.processes)
            if process.poll() not in (None, 0)
        }

    def are_done(self) -> bool:
        """Whether all have ended well."""
        return all(process.poll() == 0 for process in self.processes)

    def end(self, number: int = signal.SIGTERM) -> None:
        """Ends those that run: with a signal, then by force."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(number)
        until = time.monotonic() + _GRACE
        for process in self.processes:
            try:
                process.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for file in self.files:
            file.close()


def _numbers(job: Job, store: Store) -> dict[str, int]:
    """The number of this machine, of its first process, and of all processes."""
    node = job.node_rank
    if node is None:
        node = store.add("nodes", 1) - 1
        if node >= job.nodes:
            raise ValueError(f"--nnodes={job.nodes}: more agents came than machines were expected")
    store.set(f"processes/{node}", str(job.processes))
    counts = [int(store.get(f"processes/{i}")) for i in range(job.nodes)]
    return {"node": node, "first": sum(counts[:node]), "world": sum(counts)}


class _Signal(Exception):
    """A signal that ends the agent."""


def _raise(number, frame):
    raise _Signal(number)


def launch(job: Job) -> None:
    """Runs a job and waits for it.

    Raises:
        ChildFailedError: a process has failed, here or on another machine, in the last attempt.
        DistNetworkError: the store cannot be reached, or its port is taken.
    """
    store, here, port = _store(job)
    numbers = _numbers(job, store)
    before = {number: signal.signal(number, _raise) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    workers = None
    try:
        for attempt in range(job.restarts + 1):
            workers = _Workers(job, attempt, numbers, port)
            failures = _watch(job, workers, store, attempt)
            workers.end()
            if failures is None:
                break
            print(f"rustgrad.distributed.run: attempt {attempt} has failed: {failures}", file=sys.stderr, flush=True)
            if attempt == job.restarts:
                raise ChildFailedError(job.name, failures)
    except _Signal as caught:
        if workers is not None:
            workers.end(caught.args[0])
        sys.exit(128 + caught.args[0])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _leave(job, store, here)


def _watch(job, workers, store, attempt):
    """None when the processes of this machine have ended well; else the failures, of which there may be none here."""
    while True:
        failures = workers.failures()
        if failures:
            if job.nodes > 1:
                store.set(f"failed/{attempt}", "1")
            # Who notices that a process fails may end before that one has.
            time.sleep(0.5)
            return workers.failures()
        done = workers.are_done()
        if job.nodes > 1 and store.check([f"failed/{attempt}"]):
            return {}
        if done and (job.nodes == 1 or _all_done(job, store, attempt)):
            return None
        time.sleep(job.interval)


def _all_done(job, store, attempt):
    """Whether the processes of all machines have ended well: until then a failure elsewhere starts ours again."""
    key = f"done/{attempt}"
    told = job.told == attempt
    job.told = attempt
    return store.add(key, 0 if told else 1) >= job.nodes


def _leave(job, store, here):
    """The agent that holds the store stays until the others have left."""
    if job.nodes == 1:
        return
    with contextlib.suppress(RuntimeError):
        left, until = store.add("left", 1), time.monotonic() + _GRACE
        while here and left < job.nodes and time.monotonic() < until:
            time.sleep(0.05)
            left = store.add("left", 0)
