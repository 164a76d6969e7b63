"""`ThroughputBenchmark`: how often a second threads can call a module."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from typing import Any, NamedTuple

from ..profiler import profile

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us: float | None = None, time_ms: float | None = None, time_s: float | None = None) -> str:
    """A time, given in one of three units, as text in that which suits it."""
    given = [(t, u) for t, u in ((time_us, 1.0), (time_ms, 1e3), (time_s, 1e6)) if t is not None]
    if len(given) != 1:
        raise AssertionError("Expected only one of time_us, time_ms, time_s is given.")
    us = given[0][0] * given[0][1]
    unit, scale = ("s", 1e6) if us >= 1e6 else ("ms", 1e3) if us >= 1e3 else ("us", 1.0)
    return f"{us / scale:.3f}{unit}"


class _Config(NamedTuple):
    num_calling_threads: int
    num_warmup_iters: int
    num_iters: int
    profiler_output_path: str


class ExecutionStats:
    """What a run took: `latency_avg_ms`, `num_iters`, `iters_per_second` of all threads, `total_time_seconds`."""

    def __init__(self, latency_avg_ms: float, num_iters: int, benchmark_config: _Config) -> None:
        self.latency_avg_ms, self.num_iters, self.benchmark_config = latency_avg_ms, num_iters, benchmark_config

    @property
    def total_time_seconds(self) -> float:
        """The time of all calls."""
        return self.num_iters * (self.latency_avg_ms / 1000.0) / self.benchmark_config.num_calling_threads

    @property
    def iters_per_second(self) -> float:
        """Calls in a second."""
        return self.num_iters / self.total_time_seconds

    def __str__(self) -> str:
        return "\n".join([
            "Average latency per example: " + format_time(time_ms=self.latency_avg_ms),
            f"Total number of iterations: {self.num_iters}",
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
            "Total time: " + format_time(time_s=self.total_time_seconds),
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module from several threads, each with inputs chosen at random from those that were added.

    Args:
        module (Module or ScriptModule): what is called.
    """

    def __init__(self, module: Any) -> None:
        self._module = module
        self._inputs: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def run_once(self, *args: Any, **kwargs: Any) -> Any:
        """The module's result."""
        return self._module(*args, **kwargs)

    def add_input(self, *args: Any, **kwargs: Any) -> None:
        """Adds the arguments of a call."""
        self._inputs.append((args, kwargs))

    def benchmark(
        self,
        num_calling_threads: int = 1,
        num_warmup_iters: int = 10,
        num_iters: int = 100,
        profiler_output_path: str = "",
    ) -> ExecutionStats:
        """Runs the module.

        Args:
            num_calling_threads (int): threads.
            num_warmup_iters (int): calls of each thread that are not timed.
            num_iters (int): calls of all threads together.
            profiler_output_path (str): a file for a trace of the first thread's timed calls.

        Raises:
            RuntimeError: no input was added. Errors of the module are raised.
        """
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark: no inputs; expected one or more. Hint: call add_input first.")
        config = _Config(num_calling_threads, num_warmup_iters, num_iters, profiler_output_path)
        start = threading.Barrier(num_calling_threads + 1)
        shares = [len(range(k, num_iters, num_calling_threads)) for k in range(num_calling_threads)]
        errors: list[BaseException] = []

        def work(count: int, path: str) -> None:
            try:
                chosen = [random.choice(self._inputs) for _ in range(num_warmup_iters + count)]
                for args, kwargs in chosen[:num_warmup_iters]:
                    self._module(*args, **kwargs)
                start.wait()
                with profile() if path else contextlib.nullcontext() as recorded:
                    for args, kwargs in chosen[num_warmup_iters:]:
                        self._module(*args, **kwargs)
                if recorded is not None:
                    recorded.export_chrome_trace(path)
            except BaseException as error:
                errors.append(error)
                start.abort()

        paths = [profiler_output_path, *[""] * (num_calling_threads - 1)]
        threads = [threading.Thread(target=work, args=given, daemon=True) for given in zip(shares, paths, strict=True)]
        for thread in threads:
            thread.start()
        with contextlib.suppress(threading.BrokenBarrierError):
            start.wait()
        begun = time.perf_counter()
        for thread in threads:
            thread.join()
        taken = time.perf_counter() - begun
        if errors:
            raise next((e for e in errors if not isinstance(e, threading.BrokenBarrierError)), errors[0])
        return ExecutionStats(1000 * taken * num_calling_threads / num_iters, num_iters, config)
