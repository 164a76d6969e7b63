"""Collectives that only wait: until all processes of a group have come."""

from __future__ import annotations

import datetime
import time
from typing import Any

from .errors import DistBackendError
from .group import Work, _checked, _outside
from .schedules import Call
from .stores import seconds

__all__ = ["barrier", "monitored_barrier"]


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits for all processes."""
    if _outside(group, "barrier"):
        return None

    def action(call: Call) -> None:
        step = 1
        while step < call.size:  # After each round a process has heard, indirectly, of twice as many.
            call.transfer(
                call.send((call.rank + step) % call.size, memoryview(b"")),
                call.receive((call.rank - step) % call.size, memoryview(bytearray())),
            )
            step *= 2

    return _checked(group)._collective("barrier", None, action, async_op)


def monitored_barrier(
    group: Any = None, timeout: datetime.timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier` that names a process that does not arrive, or with `wait_all_ranks` all such.

    Raises:
        RuntimeError: in process 0, with their numbers; in the others, that process 0 did not answer.
    """
    if _outside(group, "monitored_barrier"):
        return
    pg = _checked(group)
    limit = seconds(pg.timeout if timeout is None else timeout)

    def action(call: Call) -> None:
        links = call.links
        before, end = links.timeout, time.monotonic() + limit
        missing = []
        try:
            if call.rank:
                links.timeout = limit + 5
                call.transfer(call.send(0, memoryview(b"")))
                call.transfer(call.receive(0, memoryview(bytearray())))
                return
            for other in range(1, call.size):
                links.timeout = max(end - time.monotonic(), 0.01)
                try:
                    call.transfer(call.receive(other, memoryview(bytearray())))
                except DistBackendError:
                    missing.append(pg.ranks[other])
                    if not wait_all_ranks:
                        break
            if missing:
                raise DistBackendError(
                    f"[Rank 0]: Rank{'s' if wait_all_ranks else ''} {', '.join(map(str, missing))} failed to pass "
                    f"monitoredBarrier in {round(limit * 1000)} ms"
                )
            call.transfer(*(call.send(other, memoryview(b"")) for other in range(1, call.size)))
        finally:
            links.timeout = before

    pg._collective("barrier", None, action)
