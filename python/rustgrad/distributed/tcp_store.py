"""`TCPStore`: a store whose keys lie in one process, which the others ask over TCP.

The protocol is our own: a request is a number of the operation and a list of byte strings, a reply a list of byte strings;
each list is its length and, for each string, its length and its bytes. A connection has its own thread in the server, which
may wait for keys while others are served.
"""

from __future__ import annotations

import contextlib
import datetime
import select
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from typing import Any

from .errors import DistNetworkError, DistStoreError
from .stores import _DEFAULT_TIMEOUT, Store, Table, compared, encoded, increased, missed, seconds

__all__ = ["TCPStore"]

_HEAD = struct.Struct("<BI")
_LENGTH = struct.Struct("<Q")
_SET, _GET, _ADD, _CHECK, _WAIT, _COMPARE, _DELETE, _COUNT, _APPEND, _HELLO = range(10)
_MAGIC = b"rustgrad-store-1"
_MOST = 1 << 31
_WORKERS = "init/"
# How much longer than a wait itself a client waits for its reply.
_GRACE = 30.0


def receive_exactly(sock: socket.socket, count: int) -> bytes:
    """So many bytes from a connection; EOFError where it ends before."""
    data = bytearray(count)
    at = 0
    while at < count:
        got = sock.recv_into(memoryview(data)[at:])
        if not got:
            raise EOFError("the connection was closed")
        at += got
    return bytes(data)


def _packed(number: int, parts: Sequence[bytes]) -> bytes:
    return _HEAD.pack(number, len(parts)) + b"".join(_LENGTH.pack(len(p)) + p for p in parts)


def _unpacked(sock: socket.socket) -> tuple[int, list[bytes]]:
    number, count = _HEAD.unpack(receive_exactly(sock, _HEAD.size))
    parts = []
    for _ in range(count):
        (length,) = _LENGTH.unpack(receive_exactly(sock, 8))
        if length > _MOST:
            raise EOFError("a message of another protocol")
        parts.append(receive_exactly(sock, length))
    return number, parts


def _closed(sock: socket.socket) -> bool:
    """Whether the other end of a connection that has nothing to say is gone."""
    try:
        ready, _, _ = select.select([sock], [], [], 0)
        return bool(ready) and not sock.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):
        return True


class _Server:
    """The keys, and a thread for each connection that asks for them."""

    def __init__(self, listener: socket.socket) -> None:
        self.table = Table()
        self.port = listener.getsockname()[1]
        self.stores = 0
        self._listener = listener
        self._connections: set[socket.socket] = set()
        threading.Thread(target=self._accept, name="rustgrad-store", daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.add(sock)
            threading.Thread(target=self._serve, args=(sock,), name="rustgrad-store-client", daemon=True).start()

    def _serve(self, sock):
        # A peer that breaks off, or speaks another protocol, ends its connection only.
        with contextlib.suppress(OSError, EOFError, ValueError, IndexError, struct.error):
            if _unpacked(sock) == (_HELLO, [_MAGIC]):
                sock.sendall(_packed(1, []))
                while True:
                    sock.sendall(self._answer(sock, *_unpacked(sock)))
        self._connections.discard(sock)
        sock.close()

    def _answer(self, sock, operation, parts):
        table, key = self.table, parts[0] if parts else b""
        if operation == _SET:
            for name, value in zip(parts[::2], parts[1::2], strict=True):
                table.update(name, lambda _, value=value: value)
            return _packed(1, [])
        if operation in (_GET, _WAIT):
            limit = float(parts[0])
            if not table.wait(parts[1:], limit, lambda: _closed(sock)):
                return _packed(0, [name for name in parts[1:] if name not in table.values])
            # A key may be deleted between the wait and here: then it is as if it had come and gone before.
            return _packed(1, [table.values.get(name, b"") for name in parts[1:]] if operation == _GET else [])
        if operation == _ADD:
            return self._changed(key, increased(int(parts[1])))
        if operation == _COMPARE:
            made = table.update(key, compared(parts[1], parts[2]))
            return _packed(1, [parts[1] if made is None else made])
        if operation == _APPEND:
            return self._changed(key, lambda old: (old or b"") + parts[1])
        if operation == _DELETE:
            return _packed(int(table.delete(key)), [])
        if operation == _COUNT:
            return _packed(1, [str(len(table.values)).encode()])
        if operation == _CHECK:
            return _packed(int(all(name in table.values for name in parts)), [])
        raise ValueError("unknown operation")

    def _changed(self, key, change):
        """Applies a change; a value that is no number is the client's error, not the end of its connection."""
        try:
            return _packed(1, [self.table.update(key, change)])
        except ValueError as error:
            return _packed(2, [str(error).encode()])

    def release(self):
        """Closes the server when the last store of this process that uses it has ended."""
        self.stores -= 1
        if self.stores > 0:
            return
        for sock in (self._listener, *list(self._connections)):
            # `close` alone would not wake a thread that waits in `accept` or `recv`.
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


# Servers by port, which stores of one process with `multi_tenant` share.
_servers: weakref.WeakValueDictionary[int, _Server] = weakref.WeakValueDictionary()


def listen(port: int, descriptor: int | None = None) -> socket.socket:
    """A socket that listens on all addresses of this machine, or the one that a descriptor is."""
    if descriptor is not None:
        given = socket.socket(fileno=descriptor)
        given.listen(1024)
        return given
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    try:
        return socket.create_server(("", port), family=family, dualstack_ipv6=family == socket.AF_INET6, backlog=1024)
    except OSError as error:
        raise DistNetworkError(
            f"The server socket has failed to listen on any local network address. port: {port}, {error.strerror or error}"
        ) from None


def connect(host: str, port: int, timeout: float) -> socket.socket:
    """A connection to a server that may start later; DistNetworkError once the timeout in seconds is over."""
    end, pause = time.monotonic() + timeout, 0.01
    while True:
        left = end - time.monotonic()
        try:
            sock = socket.create_connection((host, port), timeout=max(left, 0.01))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return sock
        except OSError as error:
            left = end - time.monotonic()
            if left <= 0:
                raise DistNetworkError(
                    f"The client socket has timed out after {round(timeout * 1000)}ms while trying to connect to "
                    f"({host}, {port}): {error}"
                ) from None
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 0.5)


class TCPStore(Store):
    """Keys and values in one process, which others reach over TCP.

    Args:
        host_name (str): the machine of the server.
        port (int): its port; 0 lets the server take a free one, which `port` names.
        world_size (int, optional): the number of stores, for which the server waits.
        is_master (bool): whether this store is the server too.
        timeout (timedelta): how long to wait for the server, for keys, and for the other stores.
        wait_for_workers (bool): whether the server waits for the others.
        multi_tenant (bool): whether stores of one process with one port share a server.
        master_listen_fd (int, optional): a descriptor of a socket that listens, to be used by the server.
        use_libuv (bool): accepted.

    Raises:
        DistNetworkError: the port is taken, or the server cannot be reached in time.
        DistStoreError: not all stores came in time.
    """

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = _DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        if world_size == 0:
            raise ValueError("TCPStore world size cannot be 0")
        if not 0 <= port < 65536:
            raise ValueError(f"TCPStore: port {port} is out of range; expected 0 to 65535.")
        self.host, self.libuvBackend = host_name, use_libuv
        self._timeout = timeout
        self._lock = threading.Lock()
        self._sock: Any = None
        self._server: _Server | None = None
        if is_master:
            self._server = _servers.get(port) if multi_tenant else None
            if self._server is None:
                self._server = _Server(listen(port, master_listen_fd))
                if multi_tenant:
                    _servers[self._server.port] = self._server
            self._server.stores += 1
            weakref.finalize(self, self._server.release)
            port = self._server.port
        self.port = port
        self._open()
        self._register(world_size, is_master and wait_for_workers)

    def _register(self, world_size, wait):
        """Counts this store, and waits for the others."""
        count = self.add(_WORKERS, 1)
        if not wait or world_size is None or world_size < 0:
            return
        end = time.monotonic() + seconds(self._timeout)
        while count < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {seconds(self._timeout):.0f} seconds waiting for clients. "
                    f"{count}/{world_size} clients joined."
                )
            time.sleep(0.01)
            count = self.add(_WORKERS, 0)

    def _open(self):
        sock = connect(self.host, self.port, seconds(self._timeout))
        try:
            sock.sendall(_packed(_HELLO, [_MAGIC]))
            _unpacked(sock)
        except (OSError, EOFError) as error:
            sock.close()
            raise DistNetworkError(f"TCPStore: no store answers at ({self.host}, {self.port}): {error}") from None
        self._sock = sock

    def _ask(self, operation: int, parts: Sequence[bytes], wait: float = 0.0) -> tuple[int, list[bytes]]:
        """The reply to a request that the server may answer only after `wait` seconds."""
        with self._lock:
            if self._sock is None:
                self._open()
            sock, done = self._sock, False
            try:
                sock.settimeout(wait + _GRACE)
                sock.sendall(_packed(operation, parts))
                reply = _unpacked(sock)
                done = True
            except (OSError, EOFError) as error:
                raise DistNetworkError(
                    f"TCPStore: the process with the store at ({self.host}, {self.port}) does not answer: {error}"
                ) from None
            finally:
                if not done:  # The rest of a reply, after Ctrl-C for instance, must not answer the next request.
                    sock.close()
                    self._sock = None
        if reply[0] == 2:
            raise RuntimeError(f"TCPStore: {reply[1][0].decode()}")
        return reply

    def _wait(self, operation, keys, timeout):
        limit = seconds(self._timeout if timeout is None else timeout)
        found, values = self._ask(operation, [str(limit).encode(), *(key.encode() for key in keys)], limit)
        if not found:
            raise missed([value.decode() for value in values] or keys, limit)
        return values

    def set(self, key: str, value: str | bytes) -> None:
        self._ask(_SET, [key.encode(), encoded(value)])

    def get(self, key: str) -> bytes:
        return self._wait(_GET, [key], None)[0]

    def add(self, key: str, amount: int) -> int:
        return int(self._ask(_ADD, [key.encode(), str(amount).encode()])[1][0])

    def check(self, keys: Sequence[str]) -> bool:
        return bool(self._ask(_CHECK, [key.encode() for key in keys])[0])

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        self._wait(_WAIT, keys, timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self._ask(_COMPARE, [key.encode(), encoded(expected_value), encoded(desired_value)])[1][0]

    def delete_key(self, key: str) -> bool:
        return bool(self._ask(_DELETE, [key.encode()])[0])

    def num_keys(self) -> int:
        return int(self._ask(_COUNT, [])[1][0])

    def append(self, key: str, value: str | bytes) -> None:
        self._ask(_APPEND, [key.encode(), encoded(value)])

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self._wait(_GET, keys, None)

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        pairs = zip(keys, values, strict=True)
        self._ask(_SET, [part for key, value in pairs for part in (key.encode(), encoded(value))])

    def local_address(self) -> str:
        """The address of this machine by which the server is reached; empty before there is a connection."""
        return self._sock.getsockname()[0] if self._sock else ""

    def clone(self) -> Store:
        """A store with a connection of its own, for another thread."""
        return TCPStore(self.host, self.port, timeout=self._timeout, use_libuv=self.libuvBackend)

    def __repr__(self) -> str:
        sock, host = self._sock, self.host
        number = -1 if sock is None else sock.fileno()
        own = 0 if sock is None else sock.getsockname()[1]
        server = "<nullptr>" if self._server is None else f"TCPServer(port={self.port})"
        client = f"TCPClient(SocketImpl(fd={number}, addr=[{host}]:{own}, remote=[{host}]:{self.port}))"
        return f"TCPStore(client={client}, server={server})"


def __dir__() -> list[str]:
    return __all__
