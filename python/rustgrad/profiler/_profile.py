"""`profile`, `record_function` and `schedule`."""

from __future__ import annotations

import contextlib
import enum
import functools
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from .. import _C
from .._typing import Self
from ._events import EventList, FunctionEvent

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """What is measured. Only CPU has times: a GPU works behind the calls, and is waited for when values are read."""

    CPU = 0
    CUDA = 2
    XPU = 1
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


class ProfilerAction(enum.Enum):
    """What a profiler does in a step of its schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """What can be measured: the CPU's calls."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """For `profile(schedule=)`: of each cycle of `wait + warmup + active` steps, the last `active` ones are recorded.

    Args:
        repeat (int): number of cycles; 0 repeats without end.
        skip_first (int): steps before the first cycle.
        skip_first_wait (int): 1 leaves out the wait of the first cycle.
    """
    if min(wait, warmup, active, repeat, skip_first) < 0 or active == 0:
        raise ValueError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ValueError(f"schedule: expected a step of 0 or more, got {step}")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """For `profile(on_trace_ready=)`: writes each trace to a file of its own in a folder."""

    def handler(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        path = os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json")
        prof.export_chrome_trace(path)
        if use_gzip:
            import gzip

            with open(path, "rb") as source, gzip.open(path + ".gz", "wb") as target:
                target.writelines(source)
            os.remove(path)

    return handler


class record_function(contextlib.ContextDecorator):
    """`with record_function("forward"):` a block, or a decorated function, as an event of that name."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._entered: list[bool] = []

    def __enter__(self) -> Self:
        self._entered.append(_C._profile_enter(self.name))
        return self

    def __exit__(self, *error: Any) -> None:
        if self._entered.pop():
            _C._profile_exit()


class profile:
    """`with profile() as prof:` records the ops that this thread calls in the block.

    Args:
        activities (iterable of ProfilerActivity): accepted; the calls of the CPU are recorded, those that start work on a
            GPU among them.
        schedule (callable): from the number of a step, which `step()` counts, to a `ProfilerAction`; see `schedule`.
        on_trace_ready (callable): called with the profiler when a recording is complete.
        record_shapes (bool): also record the shapes of arguments.
        profile_memory, with_stack, with_flops, with_modules, experimental_config, execution_trace_observer,
            acc_events, use_cuda: accepted; nothing of the kind is recorded, and a warning says so.

    Raises:
        RuntimeError: another profiler runs in the thread.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Any = None,
    ) -> None:
        asked = {
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        for name in (name for name, value in asked.items() if value):
            warnings.warn(f"profile: {name}=True is not supported; only calls and times are recorded", stacklevel=2)
        self.activities = set(activities or supported_activities())
        self.schedule = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self.step_num = 0
        self._events: EventList | None = None
        self._records = False
        self._block: record_function | None = None

    @property
    def current_action(self) -> ProfilerAction:
        """What the schedule says about the current step."""
        return self.schedule(self.step_num) if self.schedule else ProfilerAction.RECORD_AND_SAVE

    def start(self) -> None:
        """Begins the first step."""
        self._enter_step()

    def stop(self) -> None:
        """Ends the last step; `on_trace_ready` gets what is being recorded."""
        self._leave_step(ready=True)

    def step(self) -> None:
        """Ends a step of the schedule and begins the next one."""
        was = self.current_action
        # `on_trace_ready` sees the number of the step that begins.
        self.step_num += 1
        if self.schedule is not None:
            self._leave_step(ready=was is ProfilerAction.RECORD_AND_SAVE)
        elif self._block is not None:
            self._block.__exit__()
            self._block = None
        self._enter_step()

    def _enter_step(self):
        if self.current_action in (ProfilerAction.NONE, ProfilerAction.WARMUP):
            return
        if not self._records:
            _C._profile_start(self.record_shapes)
            self._records = True
        if self.schedule is not None or self.step_num:
            self._block = record_function(f"ProfilerStep#{self.step_num}")
            self._block.__enter__()

    def _leave_step(self, ready):
        if self._block is not None:
            self._block.__exit__()
            self._block = None
        if self._records and ready:
            self._records = False
            self._events = _listed(*_C._profile_stop())
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: Any) -> None:
        self.stop()

    def events(self) -> EventList:
        """The events of the last complete recording; AssertionError before it."""
        assert self._events is not None, (
            "profile: nothing was recorded yet; expected the end of the block or of a cycle"
        )
        return self._events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The sums of the events by name; `print(prof.key_averages().table())`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events in the format of chrome://tracing and ui.perfetto.dev."""
        self.events().export_chrome_trace(path)

    def add_metadata(self, key: str, value: str) -> None:
        """Accepted without effect."""

    add_metadata_json = add_metadata

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """NotImplementedError: stacks are not recorded."""
        raise NotImplementedError(
            "profile: stacks are not recorded; expected export_chrome_trace. Use cProfile for stacks."
        )


def _listed(rows, lost):
    events = EventList(
        FunctionEvent(i, _called(name), start / 1e3, end / 1e3, [list(s) for s in shapes])
        for i, (name, start, end, _, shapes) in enumerate(rows)
    )
    for event, row in zip(events, rows, strict=True):
        if row[3] is not None:
            event.cpu_parent = events[row[3]]
            event.cpu_parent.cpu_children.append(event)
    if lost:
        warnings.warn(f"profile: {lost} events more than fit were not kept", stacklevel=4)
    return events


def _called(name: str) -> str:
    """The name of an event: an op that is always in place, `copy_`, has one underscore."""
    in_place = name.startswith("aten::") and name.endswith("__") and not name.startswith("aten::__")
    return name[:-1] if in_place else name


class legacy_profile(profile):
    """`rustgrad.autograd.profiler.profile`: the former class, which has no schedule.

    Args:
        enabled (bool): False records nothing.
        record_shapes (bool): also record the shapes of arguments.
        The other arguments are accepted without effect.
    """

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, use_cuda: bool = False, **options: Any
    ) -> None:
        super().__init__(record_shapes=record_shapes)
        self.enabled = enabled

    @functools.wraps(profile.start)
    def start(self) -> None:
        if self.enabled:
            super().start()

    def table(self, *args: Any, **kwargs: Any) -> str:
        """The table of all events: see `EventList.table`."""
        return self.events().table(*args, **kwargs)

    def __str__(self) -> str:
        return repr(self) if self._events is None else self.table()

    def __repr__(self) -> str:
        return "<unfinished torch.autograd.profile>" if self._events is None else repr(self._events)

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events."""
        return self.events().self_cpu_time_total

    def total_average(self) -> Any:
        """The sum of all events."""
        return self.events().total_average()

    @property
    def function_events(self) -> EventList:
        """The events."""
        return self.events()
