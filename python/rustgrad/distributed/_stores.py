"""Stores of values by keys, in the memory of this process: `HashStore`, and `FileStore` and `TCPStore` for a world of one.

Threads of the process share them, and wait for each other's keys.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import Any

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "HashStore",
    "PrefixStore",
    "Store",
    "TCPStore",
]

_TIMEOUT = datetime.timedelta(minutes=5)


class DistError(RuntimeError):
    """An error of communication between processes."""


class DistBackendError(DistError):
    """An error of a library of collectives, of which there is none."""


class DistNetworkError(DistError):
    """An error of a connection, of which there is none."""


class DistStoreError(DistError):
    """A store did not get a key in time."""


def _bytes(value: Any) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Values by keys. `get` and `wait` wait for keys that another thread sets, up to `timeout`."""

    # Keys by which the processes of a world find each other, which `num_keys` counts.
    _own_keys = 0

    def __init__(self) -> None:
        self._values: MutableMapping[str, bytes] = {}
        self._changed = threading.Condition(threading.RLock())
        self._timeout = _TIMEOUT

    @property
    def timeout(self) -> datetime.timedelta:
        """How long is waited for a key."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Sets how long is waited for a key."""
        self._timeout = timeout

    def _change(self, change: Callable[[], Any]) -> Any:
        with self._changed:
            result = change()
            self._changed.notify_all()
            return result

    def set(self, key: str, value: str | bytes) -> None:
        """Sets a value."""
        self._change(lambda: self._values.__setitem__(key, _bytes(value)))

    def get(self, key: str) -> bytes:
        """The value of a key; DistStoreError if it is not set in time."""
        with self._changed:
            self.wait([key])
            return self._values[key]

    def add(self, key: str, value: int) -> int:
        """Adds to the number of a key, at first 0; returns the sum."""

        def change() -> int:
            total = int(self._values.get(key, b"0")) + value
            self._values[key] = str(total).encode()
            return total

        found: int = self._change(change)
        return found

    def append(self, key: str, value: str | bytes) -> None:
        """Appends to the value of a key, at first empty."""
        self._change(lambda: self._values.__setitem__(key, self._values.get(key, b"") + _bytes(value)))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Sets a value if the present one is as expected, or there is none and none is expected; returns what is there then."""

        def change() -> bytes:
            expected, desired = _bytes(expected_value), _bytes(desired_value)
            if key not in self._values and expected:
                return expected
            if self._values.get(key, b"") == expected:
                self._values[key] = desired
            return self._values[key]

        found: bytes = self._change(change)
        return found

    def delete_key(self, key: str) -> bool:
        """Removes a key; False if it was not there."""
        found: bool = self._change(lambda: self._values.pop(key, None) is not None)
        return found

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are set."""
        with self._changed:
            return all(key in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Returns when all keys are set; DistStoreError if they are not in time."""
        limit = (self._timeout if timeout is None else timeout).total_seconds()
        with self._changed:
            if not self._changed.wait_for(lambda: self.check(keys), limit):
                raise DistStoreError("Wait timeout")

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Sets several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def num_keys(self) -> int:
        """The number of keys, among them those of the store itself."""
        with self._changed:
            return len(self._values) + self._own_keys

    def list_keys(self) -> list[str]:
        """The keys."""
        with self._changed:
            return list(self._values)

    def has_extended_api(self) -> bool:
        """True: `append`, `multi_get` and `multi_set` are there."""
        return True


class HashStore(Store):
    """A store in memory."""


def _check_world(name: str, world_size: int | None) -> None:
    if world_size is not None and world_size > 1:
        raise NotImplementedError(
            f"{name}: there is no communication between processes; expected a world size of 1, got {world_size}."
        )


class FileStore(Store):
    """A store for a world of one process: no file is written.

    Args:
        file_name (str): the file that processes would share.
        world_size (int): 1, or -1 for an unknown one.

    Raises:
        NotImplementedError: a larger world.
    """

    _own_keys = 1

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        _check_world("FileStore", world_size)
        super().__init__()
        self.path = file_name


class TCPStore(Store):
    """A store for a world of one process: no port is opened.

    Args:
        host_name (str), port (int): where it would listen; a port of 0 stands for any.
        world_size (int, optional): 1.
        is_master (bool): True: there is no other process that would be.
        The other arguments are about connections, of which there are none.

    Raises:
        NotImplementedError: a larger world, or not the master.
    """

    _own_keys = 1

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: datetime.timedelta = _TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        _check_world("TCPStore", world_size)
        if not is_master:
            raise NotImplementedError(
                "TCPStore: there is no communication between processes; expected is_master=True, as this is the only one."
            )
        super().__init__()
        self.host, self.port, self._timeout = host_name, port, timeout


class PrefixStore(Store):
    """Another store, of which it sees the keys that start with `prefix/`."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self.underlying_store = prefix, store
        self._changed, self._timeout = store._changed, store._timeout
        self._values = _Prefixed(store._values, f"{prefix}/")


class _Prefixed(MutableMapping[str, bytes]):
    """The entries of a dict whose keys have a prefix, without it."""

    def __init__(self, entries: MutableMapping[str, bytes], prefix: str) -> None:
        self.entries, self.prefix = entries, prefix

    def __getitem__(self, key: str) -> bytes:
        return self.entries[self.prefix + key]

    def __setitem__(self, key: str, value: bytes) -> None:
        self.entries[self.prefix + key] = value

    def __delitem__(self, key: str) -> None:
        del self.entries[self.prefix + key]

    def __iter__(self) -> Iterator[str]:
        return (key.removeprefix(self.prefix) for key in self.entries if key.startswith(self.prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)
