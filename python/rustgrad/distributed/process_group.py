"""`ProcessGroup`: some processes, the connections between them, and the order of their collectives."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from .connections import Links, Mismatch, make_connections
from .errors import DistBackendError
from .messages import Messages
from .schedules import HEADER, Call
from .stores import Store, seconds
from .work import Work, Worker

__all__ = ["ProcessGroup"]

_KINDS = (
    "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "barrier",
)  # fmt: skip
_DTYPES = (
    "other", "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool",
    "complex64", "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu",
)  # fmt: skip


def _code(kind: str, dtype: Any) -> tuple[int, int]:
    name = str(dtype).rpartition(".")[2]
    return _KINDS.index(kind), _DTYPES.index(name) if name in _DTYPES else 0


class ProcessGroup:
    """Processes that communicate. `init_process_group` and `new_group` make one.

    Args:
        ranks (list of int): the processes, by their numbers in the world.
        rank (int): the number of this one in the group.
        store (Store, optional): where the processes of this group alone find each other; not needed for one process.
        timeout (timedelta): how long a collective or a message may take.
        backend (str): what `name()` says.
    """

    def __init__(
        self,
        ranks: list[int],
        rank: int,
        store: Store | None,
        timeout: datetime.timedelta,
        backend: str,
        group_name: str = "",
        group_desc: str = "undefined",
    ) -> None:
        self.ranks, self._rank, self.store, self.timeout = ranks, rank, store, timeout
        self._backend, self.group_name, self.group_desc = backend, group_name, group_desc
        self.bound_device_id = None
        self._number = 0
        self._broken: str | None = None
        self._messages: Messages | None = None
        self._worker = Worker(f"rustgrad-{group_name}")
        self._links = Links({}, seconds(timeout))
        self._message_sockets: dict[int, Any] = {}
        if len(ranks) > 1:
            if store is None:
                raise ValueError("ProcessGroup: expected a store for more than one process.")
            sockets, self._message_sockets = make_connections(store, rank, len(ranks), seconds(timeout))
            self._links.sockets = sockets

    def rank(self) -> int:
        """The number of this process in the group."""
        return self._rank

    def size(self) -> int:
        """The number of processes."""
        return len(self.ranks)

    def name(self) -> str:
        """The name of the backend."""
        return self._backend

    def get_group_store(self) -> Store | None:
        """The store of this group."""
        return self.store

    def _set_default_timeout(self, timeout: datetime.timedelta) -> None:
        self.timeout, self._links.timeout = timeout, seconds(timeout)

    def _collective(
        self,
        kind: str,
        dtype: Any,
        action: Callable[[Call], None],
        async_op: bool = False,
        result: Any = (),
        combine: Any = None,
    ) -> Work | None:
        """Does a collective: now, or in its turn by the thread of the group.

        Args:
            kind (str): its name, and `dtype` the element type: checked against those of the other processes.
            action (callable): what it does with a `Call`.
            result (list of tensors): what the `Work` gives.
        """

        def task() -> None:
            if self._broken is not None:
                raise DistBackendError(f"{kind}: the process group is broken: {self._broken}")
            self._number += 1
            try:
                action(Call(self._links, self._rank, len(self.ranks), self._number, _code(kind, dtype), combine))
            except Mismatch as mismatch:
                error = DistBackendError(self._mismatch(kind, dtype, *mismatch.args))
                self._break(error)
                raise error from None
            except BaseException as error:
                self._break(error)
                if isinstance(error, DistBackendError):
                    raise DistBackendError(f"{kind}: {error}") from None
                raise

        work = Work(task, result)
        if async_op and len(self.ranks) > 1:
            return self._worker.submit(work)
        self._worker.run(work)
        return work if async_op else None

    def _mismatch(self, kind, dtype, rank, header):
        number, code, type_code, nbytes = HEADER.unpack(header)
        name = _KINDS[code] if code < len(_KINDS) else "something else"
        element = _DTYPES[type_code] if type_code < len(_DTYPES) else "other"
        return (
            f"{kind} of {dtype}, collective {self._number} of the group: rank {rank} takes part in {name} of {element}, "
            f"its collective {number}, and sends {nbytes} bytes. All ranks call the same collectives in the same order, with "
            "tensors of the same size and type."
        )

    def _break(self, error):
        """After an error in the middle of a transfer nothing that follows can be right: the others are to notice."""
        self._broken = f"{type(error).__name__}: {error}"
        self._links.close()

    def _mail(self) -> Messages:
        """What moves messages, with its thread."""
        if self._messages is None:
            self._messages = Messages(self._message_sockets, seconds(self.timeout))
        return self._messages

    def _close(self, wait: bool = True) -> None:
        """Ends the connections, after the collectives that were begun."""
        if wait:
            self._worker.end()
        self._broken = self._broken or "it has been destroyed"
        self._links.close()
        if self._messages is not None:
            self._messages.close()
        for sock in self._message_sockets.values():
            sock.close()

    def _forget(self) -> None:
        """In a forked process: closes its copies of the connections, which stay those of its parent."""
        self._broken = "it belongs to the process that this one was forked from"
        for sock in (*self._links.sockets.values(), *self._message_sockets.values()):
            sock.close()

    def abort(self) -> None:
        """Ends the connections now."""
        self._close(wait=False)

    def shutdown(self) -> None:
        """Ends the connections."""
        self._close()

    def __reduce__(self) -> Any:
        raise RuntimeError("a ProcessGroup cannot be pickled: it belongs to its process")
