"""Connections between the processes of a group: how they are made through a store, and how bytes cross them.

Each pair of processes has two: one for collectives, one for messages of `send` and `recv`, so that neither waits for the
other. On one Linux machine they are Unix domain sockets without a file, elsewhere TCP. A connection starts with a secret
that the store told, and what crosses it is only bytes of tensors behind headers of fixed size.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import select
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from .errors import DistBackendError, DistStoreError
from .stores import Store
from .tcp_store import TCPStore, connect, listen, receive_exactly

__all__ = ["Links", "Mismatch", "Receive", "Send", "make_connections"]

COLLECTIVE, MESSAGE = 0, 1
_HELLO = struct.Struct("<16sIB")
_BUFFER = 4 << 20


def _machine() -> str:
    """What processes have in common that can reach each other by Unix domain sockets; empty where there are none."""
    if not sys.platform.startswith("linux"):
        return ""
    with open("/proc/sys/kernel/random/boot_id") as file:
        return f"{file.read().strip()}-{os.stat('/proc/self/ns/net').st_ino}"


def _interface_address(name: str) -> str:
    """The IPv4 address of a network interface."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        reply = fcntl.ioctl(sock.fileno(), 0x8915, struct.pack("256s", name.encode()[:15]))
    return socket.inet_ntoa(reply[20:24])


def _addresses(store: Store) -> list[str]:
    """Where processes of other machines may reach this one, the best first."""
    if name := os.environ.get("GLOO_SOCKET_IFNAME"):
        return [_interface_address(name.split(",")[0])]
    found = []
    base: Any = store
    while hasattr(base, "underlying_store"):
        base = base.underlying_store
    if isinstance(base, TCPStore) and (here := base.local_address()):
        found.append(here)
    with contextlib.suppress(OSError):
        found += [info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)]
    found = [address for address in dict.fromkeys(found) if not address.startswith(("127.", "::1"))]
    # A process on the machine of the store has reached it by the loopback: others reach it where they reach the store.
    return [*found, "store"] if isinstance(base, TCPStore) else found or ["127.0.0.1"]


def _get(store: Store, key: str, rank: int) -> bytes:
    try:
        return store.get(key)
    except DistStoreError as error:
        raise DistStoreError(f"rank {rank} of the process group has not come in time ({error})") from None


def make_connections(
    store: Store, rank: int, size: int, timeout: float
) -> tuple[dict[int, socket.socket], dict[int, socket.socket]]:
    """The connections of this process to all others of its group: those for collectives and those for messages, by rank.

    Raises:
        DistStoreError, DistBackendError: a process did not come within so many seconds.
    """
    end = time.monotonic() + timeout
    machine = _machine()
    if rank == 0:
        store.set("secret", secrets.token_bytes(16))
    store.set(f"machine/{rank}", machine)
    machines = [_get(store, f"machine/{i}", i).decode() for i in range(size)]
    secret = store.get("secret")
    if machine and set(machines) == {machine}:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(_name(secret, rank))
        listener.listen(4096)
        store.set(f"place/{rank}", "unix")
    else:
        listener = listen(0)
        store.set(f"place/{rank}", f"{listener.getsockname()[1]},{','.join(_addresses(store))}")
    with listener:
        made = _connect_lower(store, rank, secret, machines, end)
        _accept_higher(listener, secret, rank, size, made, end)
    for sock in made.values():
        _prepare(sock)
    return tuple({r: made[r, kind] for r in range(size) if r != rank} for kind in (COLLECTIVE, MESSAGE))  # type: ignore[return-value]


def _name(secret: bytes, rank: int) -> str:
    """The name of a Unix domain socket that is no file, which Linux tells by a zero byte."""
    return f"\0rustgrad-{hashlib.sha256(secret).hexdigest()[:32]}-{rank}"


def _connect_lower(store, rank, secret, machines, end):
    made = {}
    for other in range(rank):
        place = _get(store, f"place/{other}", other).decode()
        near = bool(machines[rank]) and machines[other] == machines[rank]
        for kind in (COLLECTIVE, MESSAGE):
            hello = _HELLO.pack(secret, rank, kind)
            made[other, kind] = _reach(place, "" if near else _store_host(store), hello, other, end)
    return made


def _store_host(store):
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    return getattr(store, "host", "")


def _reach(place, store_host, hello, other, end):
    """A connection to a process by the first of its addresses that answers as that process."""
    errors = []
    places = place.split(",")
    if places[0] != "unix":
        port, *hosts = places
        if not store_host:
            hosts.insert(0, "127.0.0.1")
        places = [(store_host or "127.0.0.1" if host == "store" else host, int(port)) for host in hosts]
    for i, target in enumerate(places):
        left = max(end - time.monotonic(), 0.1)
        try:
            if target == "unix":
                sock = socket.socket(socket.AF_UNIX)
                sock.settimeout(left)
                sock.connect(_name(hello[:16], other))
            else:
                sock = connect(*target, left if i == len(places) - 1 else min(left, 3.0))
            sock.settimeout(left)
            sock.sendall(hello)
            receive_exactly(sock, 1)
            return sock
        except (OSError, EOFError, RuntimeError) as error:
            errors.append(str(error))
    raise DistBackendError(f"rank {other} cannot be reached: {'; '.join(errors)}. Hint: set GLOO_SOCKET_IFNAME.")


def _accept_higher(listener, secret, rank, size, made, end):
    missing = {(other, kind) for other in range(rank + 1, size) for kind in (COLLECTIVE, MESSAGE)}
    while missing:
        listener.settimeout(max(end - time.monotonic(), 0.01))
        try:
            sock, _ = listener.accept()
        except TimeoutError:
            absent = sorted({other for other, _ in missing})
            raise DistBackendError(f"rank {rank}: no connection from ranks {absent} in time") from None
        with contextlib.suppress(OSError, EOFError):
            sock.settimeout(10)
            given, other, kind = _HELLO.unpack(receive_exactly(sock, _HELLO.size))
            if secrets.compare_digest(given, secret) and (other, kind) in missing:
                sock.sendall(b"1")
                made[other, kind] = sock
                missing.remove((other, kind))
                continue
        sock.close()  # Somebody else, who does not know the secret.


def _prepare(sock):
    sock.setblocking(False)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        if sock.family == getattr(socket, "AF_UNIX", None):
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    if sock.family != getattr(socket, "AF_UNIX", None):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


class Send:
    """Bytes on their way to a process: a header, then a view of memory."""

    __slots__ = ("events", "parts", "rank", "sock")

    def __init__(self, links: Links, rank: int, header: bytes, view: memoryview) -> None:
        self.rank, self.sock, self.events = rank, links.sockets[rank], select.POLLOUT
        self.parts = [memoryview(header), view] if len(view) else [memoryview(header)]

    def step(self) -> bool:
        """Sends what the connection takes; whether that was all."""
        while True:
            try:
                sent = self.sock.sendmsg(self.parts)
            except BlockingIOError:
                return False
            while self.parts and sent >= len(self.parts[0]):
                sent -= len(self.parts.pop(0))
            if not self.parts:
                return True
            self.parts[0] = self.parts[0][sent:]


class Receive:
    """Bytes that a process will send, behind a header that must be as expected, into a view of memory.

    With `then`, the view is a buffer that is filled again and again: `then(start, stop)` takes its bytes each time.
    """

    __slots__ = ("buffer", "events", "header", "nbytes", "parts", "rank", "sock", "start", "then", "view")

    def __init__(
        self,
        links: Links,
        rank: int,
        header: bytes,
        view: memoryview,
        nbytes: int | None = None,
        then: Callable[[int, int], None] | None = None,
    ) -> None:
        self.rank, self.sock, self.events = rank, links.sockets[rank], select.POLLIN
        self.header, self.buffer = header, bytearray(len(header))
        self.view, self.then, self.start = view, then, 0
        self.nbytes = len(view) if nbytes is None else nbytes
        self.parts = [memoryview(self.buffer), view[: self.nbytes]]

    def step(self) -> bool:
        """Takes what has come; whether that was all."""
        while True:
            try:
                got = self.sock.recvmsg_into(self.parts)[0]
            except BlockingIOError:
                return False
            if not got:
                raise EOFError
            if len(self.parts) == 2:
                got = self._headed(got)
            if self.parts:
                self.parts[0] = self.parts[0][got:]
            if not self.parts or len(self.parts) == 1 and not len(self.parts[0]):
                return not self._filled()  # What is to be sent goes on before the next piece.

    def _headed(self, got: int) -> int:
        """Takes the header, once it is complete; how many bytes of the view came with it."""
        left = len(self.parts[0])
        if got < left:
            return got
        if self.buffer != self.header:
            raise Mismatch(self.rank, bytes(self.buffer))
        self.parts.pop(0)
        return got - left

    def _filled(self) -> bool:
        """Hands the view on; whether there is more to come."""
        stop = min(self.start + len(self.view), self.nbytes)
        if self.then is not None and stop > self.start:
            self.then(self.start, stop)
        self.start = stop
        if stop == self.nbytes:
            return False
        self.parts = [self.view[: self.nbytes - stop]]
        return True


class Mismatch(Exception):
    """A process has sent something else than was expected; the arguments are its rank and its header."""


class Links:
    """The connections for collectives, by rank.

    Args:
        sockets (dict): the connections.
        timeout (float): seconds that a transfer may take.
    """

    def __init__(self, sockets: dict[int, socket.socket], timeout: float) -> None:
        self.sockets, self.timeout = sockets, timeout

    def transfer(self, pieces: Sequence[Send | Receive]) -> None:
        """Does all at once, in the order in which the connections allow it.

        Raises:
            DistBackendError: a process has ended, or the timeout is over.
            Mismatch: a process takes part in another collective.
        """
        end, left = 0.0, list(pieces)
        while True:
            left = [piece for piece in left if not self._step(piece, left)]
            if not left:
                return
            now = time.monotonic()
            end = end or now + self.timeout
            if now > end:
                ranks = sorted({piece.rank for piece in left})
                raise DistBackendError(f"Timed out waiting {round(self.timeout * 1000)}ms for ranks {ranks}")
            self._poll(left, end - now)

    @staticmethod
    def _step(piece, pieces):
        try:
            return piece.step()
        except (EOFError, ConnectionError):
            # What the process has sent before it ended may say why.
            for other in pieces:
                if isinstance(other, Receive) and other is not piece and other.rank == piece.rank:
                    with contextlib.suppress(EOFError, OSError):
                        other.step()
            raise DistBackendError(f"Connection closed by peer: rank {piece.rank} has ended or has failed") from None
        except OSError as error:
            raise DistBackendError(f"The connection to rank {piece.rank} has broken: {error}") from None

    @staticmethod
    def _poll(left, timeout):
        events: dict[Any, int] = {}
        for piece in left:
            events[piece.sock] = events.get(piece.sock, 0) | piece.events
        poll = select.poll()
        for sock, event in events.items():
            poll.register(sock, event)
        # In pieces of a second: on some systems a wait does not notice that another thread closes the connection.
        poll.poll(min(timeout, 1.0) * 1000)

    def close(self) -> None:
        """Ends all connections, which the other processes notice."""
        for sock in self.sockets.values():
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
