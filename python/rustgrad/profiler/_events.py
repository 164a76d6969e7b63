"""Recorded events, their sums by name, and the table of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg"]

_SORTS = {
    "cpu_time": "cpu_time",
    "cpu_time_total": "cpu_time_total",
    "self_cpu_time_total": "self_cpu_time_total",
    "count": "count",
}


class _OnOneDevice:
    """What is not recorded of a call: memory, and time on another device."""

    cpu_memory_usage = self_cpu_memory_usage = device_memory_usage = self_device_memory_usage = 0
    device_time = device_time_total = self_device_time_total = 0.0


class FunctionEvent(_OnOneDevice):
    """One call: `name`, `time_range` (start and end), `cpu_time_total` and `self_cpu_time_total`, all in microseconds."""

    count = 1

    def __init__(self, id: int, name: str, start: float, end: float, input_shapes: list[list[int]]) -> None:
        # Steps of a schedule are one row of a table; a trace has their numbers.
        self.id, self.trace_name = id, name
        self.name = self.key = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.start, self.end = start, end
        self.input_shapes = input_shapes
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @property
    def time_range(self) -> tuple[float, float]:
        """Start and end, in microseconds from the start of the recording."""
        return self.start, self.end

    @property
    def cpu_time_total(self) -> float:
        """Microseconds from start to end."""
        return self.end - self.start

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds without those of the calls in it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    def __repr__(self) -> str:
        return f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_total:.3f}us>"


class FunctionEventAvg(_OnOneDevice):
    """All calls of one name (and, if asked for, one list of shapes): their number and the sums of their times."""

    def __init__(self, key: str, input_shapes: list[list[int]]) -> None:
        self.key, self.input_shapes = key, input_shapes
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """Microseconds of a call on average."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        """Counts one call more."""
        self.count += 1
        self.cpu_time_total += event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={format_time(self.self_cpu_time_total)} "
            f"cpu_time={format_time(self.cpu_time)} count={self.count}>"
        )


def format_time(us: float) -> str:
    """Microseconds with a unit that fits: us, ms or s."""
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class EventList(list):  # type: ignore[type-arg]
    """A list of events, or of their sums by name, that prints as a table."""

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """The sums of the events by name, and by the shapes of the arguments if asked for."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (event.name, str(event.input_shapes) if group_by_input_shape else "")
            shapes = event.input_shapes if group_by_input_shape else []
            sums.setdefault(key, FunctionEventAvg(event.name, shapes)).add(event)
        return EventList(sums.values())

    def total_average(self) -> FunctionEventAvg:
        """The sum of all events."""
        total = FunctionEventAvg("Total", [])
        for event in self:
            total.count += event.count
            total.self_cpu_time_total += event.self_cpu_time_total
        total.cpu_time_total = total.self_cpu_time_total
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all events, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text, one a row.

        Args:
            sort_by (str): "cpu_time", "cpu_time_total", "self_cpu_time_total" or "count", the largest first; names with
                "cuda" or "device" in the place of "cpu" sort alike, and those of memory, which is not recorded, not at all.
            row_limit (int): number of rows; -1 for all.

        Raises:
            AttributeError: another `sort_by`.
        """
        rows: Iterable[Any] = [e for e in self if not top_level_events_only or getattr(e, "cpu_parent", None) is None]
        if sort_by is not None and not sort_by.endswith("_memory_usage"):
            name = _SORTS.get(sort_by.replace("cuda", "cpu").replace("device", "cpu"))
            if name is None:
                raise AttributeError(f"table: no column {sort_by!r}; expected one of {', '.join(_SORTS)}")
            rows = sorted(rows, key=lambda e: -getattr(e, name))
        shown = list(rows)[: None if row_limit < 0 else row_limit]
        whole = self.self_cpu_time_total
        with_shapes = any(e.input_shapes for e in shown)
        titles = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        lines = [titles + ["Input Shapes"] * with_shapes]
        for e in shown:
            name = e.key if len(e.key) <= max_name_column_width else e.key[: max_name_column_width - 3] + "..."
            own, total = e.self_cpu_time_total, e.cpu_time_total
            cells = [name, _share(own, whole), format_time(own), _share(total, whole), format_time(total)]
            cells += [format_time(e.cpu_time), str(e.count)]
            lines.append(cells + [str(e.input_shapes)[:max_shapes_column_width]] * with_shapes)
        widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
        rule = "  ".join("-" * w for w in widths)
        texts = ["  ".join(cell.rjust(w) for cell, w in zip(line, widths, strict=True)) for line in lines]
        head = [rule, texts[0], rule]
        if header is not None:
            head = ["=" * len(rule), header, *head]
        return "\n".join([*head, *texts[1:], rule, f"Self CPU time total: {format_time(whole)}", ""])

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes the events in the format of chrome://tracing and ui.perfetto.dev."""
        process = os.getpid()
        events = [
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": e.trace_name,
                "pid": process,
                "tid": 0,
                "ts": e.start,
                "dur": e.cpu_time_total,
                "args": {"Input Dims": e.input_shapes} if e.input_shapes else {},
            }
            for e in self
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, file)

    def __str__(self) -> str:
        return self.table()


def _share(part, whole):
    return f"{100 * part / whole:.2f}%" if whole else "0.00%"
