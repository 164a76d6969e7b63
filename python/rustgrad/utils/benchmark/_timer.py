"""`Timer` and `Measurement`."""

from __future__ import annotations

import enum
import textwrap
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import mean, median, quantiles
from time import perf_counter
from typing import Any

from ... import _C

__all__ = ["Language", "Measurement", "TaskSpec", "Timer", "timer"]

_IQR_WARNING, _IQR_GROSS_WARNING = 0.1, 0.25


class Language(enum.Enum):
    """The language of a statement; only PYTHON can be timed."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Seconds of a clock, after the work of all GPUs is done."""
    _C._gpu_synchronize()
    return perf_counter()


@dataclass(frozen=True)
class TaskSpec:
    """What is timed: the statement, its preparation, and names for tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label and sub-label, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        return self.stmt.replace("\n", "; ")

    def summarize(self) -> str:
        """Title, description and preparation as lines of text."""
        several = "\n" in self.setup
        setup = f"setup:\n{textwrap.indent(self.setup, '  ')}\n" if several else f"setup: {self.setup}"
        lines = [self.title, self.description or "", setup if self.setup not in ("", "pass") else ""]
        return "\n".join(line for line in lines if line)


def select_unit(seconds: float) -> tuple[str, float]:
    """The unit in which a time is best read, and its length in seconds."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return unit, size
    return "ns", 1e-9


@dataclass
class Measurement:
    """The times of several rounds, each of `number_per_run` executions; in seconds.

    Its `times`, `mean`, `median`, `iqr` are of one execution.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None, repr=False)

    @property
    def times(self) -> list[float]:
        """Seconds of one execution, by round."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean over the rounds."""
        return mean(self.times)

    @property
    def median(self) -> float:
        """The median over the rounds."""
        return median(self.times)

    def _quartiles(self):
        return quantiles(self.times, n=4, method="inclusive") if len(self.raw_times) > 1 else [self.median] * 3

    @property
    def iqr(self) -> float:
        """The distance between the quartiles; 0 for a single round."""
        low, _, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """The digits of the median that the spread of the rounds leaves certain: 1 to 5."""
        import math

        if len(self.raw_times) < 2 or not self.iqr:
            return 5
        digits = -math.floor(math.log10(max(self.iqr / (2 * self.median), 1e-9)))
        return max(1, min(5, digits))

    @property
    def has_warnings(self) -> bool:
        """Whether the rounds differ by more than a tenth of the median."""
        return self.iqr / self.median > _IQR_WARNING if self.median else False

    @property
    def title(self) -> str:
        """The title of the task."""
        return self.task_spec.title

    @property
    def stmt(self) -> str:
        """The statement."""
        return self.task_spec.stmt

    @property
    def num_threads(self) -> int:
        """The number of threads of ops."""
        return self.task_spec.num_threads

    label = property(lambda self: self.task_spec.label, doc="What was timed.")
    sub_label = property(lambda self: self.task_spec.sub_label, doc="What tells it from others of its label.")
    description = property(lambda self: self.task_spec.description, doc="The column of `Compare`.")
    env = property(lambda self: self.task_spec.env or "", doc="The environment it ran in.")
    as_row_name = property(
        lambda self: self.sub_label or self.stmt or "[Unknown]", doc="The name of its row in `Compare`."
    )

    @staticmethod
    def merge(measurements: list[Measurement]) -> list[Measurement]:
        """Measurements of the same task as one, with the rounds of all; times per execution."""
        found: dict[TaskSpec, list[float]] = {}
        for m in measurements:
            found.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, spec) for spec, times in found.items()]

    def __repr__(self) -> str:
        n = len(self.raw_times)
        unit, size = select_unit(self.median)
        lines = [super().__repr__().split("(")[0], self.task_spec.summarize()]
        lines[0] = f"<rustgrad.utils.benchmark.Measurement object at {id(self):#x}>"
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / size:.2f} {unit}")
        if n >= 4:
            low, _, high = self._quartiles()
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit} ({low / size:.2f} to {high / size:.2f})")
        each = "per measurement," if n > 1 else ","
        lines.append(
            f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs {each}"
            f" {self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        )
        if self.has_warnings:
            share = self.iqr / self.median
            lines.append(f"  WARNING: Interquartile range is {share * 100:.1f}% of the median measurement.")
            strong = "suggests significant environmental influence"
            lines.append(
                f"           This {strong if share >= _IQR_GROSS_WARNING else 'could indicate system fluctuation'}."
            )
        return "\n".join(lines)


class Timer:
    """Times a statement of Python.

    Args:
        stmt, setup, global_setup (str): what is timed, and what runs before.
        timer (callable): the clock, in seconds; by default one that waits for GPUs.
        globals (dict): the names that the statement sees.
        label, sub_label, description, env (str): names for `Compare`.
        num_threads (int): threads of ops while it runs. Default: 1.

    Raises:
        NotImplementedError: another language than Python.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError(f"Timer: expected Python, got {language}")

        stmt, setup = textwrap.dedent(stmt).strip(), textwrap.dedent(setup).strip()
        names = dict(globals or {})
        if global_setup:
            exec(global_setup, names)
        if "torch" not in names:
            import rustgrad

            names["torch"] = rustgrad
        self._timer = timeit.Timer(stmt or "pass", setup or "pass", timer, names)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _run(self, number):
        threads = _C.get_num_threads()
        _C.set_num_threads(self._task_spec.num_threads)
        try:
            return max(self._timer.timeit(number=number), 1e-9)
        finally:
            _C.set_num_threads(threads)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One round of `number` executions, after a short one that is not counted."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """NotImplementedError, as in PyTorch: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], None] | None = None) -> None:
        """NotImplementedError, as in PyTorch: use `blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], None] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Rounds of as many executions as make the clock's own time negligible, for `min_run_time` seconds or longer."""
        number = self._block(min_run_time)
        return self._rounds(number, callback, lambda times: sum(times) >= min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], None] | None = None,
    ) -> Measurement:
        """Rounds until their spread is below `threshold` of the median, or `max_run_time` seconds have passed."""
        number = self._block(0.05)

        def enough(times):
            if sum(times) >= max_run_time:
                return True
            m = Measurement(number, times, self._task_spec)
            return len(times) > 3 and sum(times) >= min_run_time and m.iqr / m.median < threshold

        return self._rounds(number, callback, enough)

    def _rounds(self, number, callback, enough):
        times: list[float] = []
        while not times or not enough(times):
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def _block(self, min_run_time):
        """A number of executions that takes a thousandth of the whole and much longer than the clock itself."""
        clock = median([self._timer_cost() for _ in range(5)])
        number = 1
        while True:
            seconds = self._run(number)
            if clock / seconds <= 1e-4 and seconds >= min_run_time / 1000 or seconds > min_run_time:
                return number
            number *= 10

    def _timer_cost(self):
        start = self._timer.timer()
        return max(self._timer.timer() - start, 0.0)
