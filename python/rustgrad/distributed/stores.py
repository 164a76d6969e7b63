"""Stores of keys and values that processes share: the base class, in memory, in a file, and under a prefix.

`TCPStore` is in `tcp_store.py`. Keys are str, values bytes; a value given as str is encoded.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator, Sequence

from .errors import DistStoreError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

_DEFAULT_TIMEOUT = datetime.timedelta(seconds=300)


def seconds(timeout: datetime.timedelta | float) -> float:
    """A timeout, which programs give as a timedelta or in seconds, in seconds."""
    return timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else float(timeout)


def encoded(value: str | bytes) -> bytes:
    """A value as bytes."""
    return value.encode() if isinstance(value, str) else bytes(value)


def missed(keys: Sequence[str], timeout: float) -> DistStoreError:
    """The error of a wait that took too long."""
    return DistStoreError(f"wait timeout after {round(timeout * 1000)}ms, keys: {', '.join(keys)}")


class Store:
    """Keys and values that processes share. Subclasses define `set`, `get`, `add` and what else they can."""

    _timeout = _DEFAULT_TIMEOUT

    @property
    def timeout(self) -> datetime.timedelta:
        """How long `get` and `wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        """Sets how long `get` and `wait` wait for a key."""
        self._timeout = timeout

    def _refuse(self, name):
        raise NotImplementedError(f"Not implemented. {type(self).__name__} does not define `{name}`.")

    def set(self, key: str, value: str | bytes) -> None:
        """Sets the value of a key."""
        self._refuse("set")

    def get(self, key: str) -> bytes:
        """The value of a key, for which it waits. DistStoreError once the timeout is over."""
        return self._refuse("get")

    def add(self, key: str, amount: int) -> int:
        """Adds to the number under a key, 0 at first; the sum. It is stored in decimal digits."""
        return self._refuse("add")

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys have values."""
        return self._refuse("check")

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        """Waits until all keys have values. DistStoreError once the timeout is over."""
        self._refuse("wait")

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Sets a key that has the expected value (or none, where that is empty); the value then."""
        return self._refuse("compare_set")

    def delete_key(self, key: str) -> bool:
        """Removes a key; whether there was one."""
        return self._refuse("delete_key")

    def num_keys(self) -> int:
        """The number of keys."""
        return self._refuse("num_keys")

    def append(self, key: str, value: str | bytes) -> None:
        """Adds bytes at the end of a value, which is empty at first."""
        self._refuse("append")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Sets the values of several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether `append`, `multi_get` and `multi_set` are there."""
        return type(self).append is not Store.append

    def clone(self) -> Store:
        """A store of the same keys, for another thread."""
        return self


class Table:
    """Keys (bytes) and values in memory, for several threads: what a `HashStore` and the server of a `TCPStore` hold."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self._changed = threading.Condition()

    def update(self, key: bytes, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replaces a value, None without one, by what `change` makes of it; None leaves it. What it made."""
        with self._changed:
            made = change(self.values.get(key))
            if made is not None:
                self.values[key] = made
                self._changed.notify_all()
            return made

    def delete(self, key: bytes) -> bool:
        """Removes a key; whether there was one."""
        with self._changed:
            return self.values.pop(key, None) is not None

    def wait(self, keys: Sequence[bytes], timeout: float, gone: Callable[[], bool] | None = None) -> bool:
        """Whether all keys have come within so many seconds; it gives up where `gone()`."""
        end = time.monotonic() + timeout
        with self._changed:
            while not all(key in self.values for key in keys):
                left = end - time.monotonic()
                if left <= 0 or gone is not None and gone():
                    return False
                self._changed.wait(left if gone is None else min(left, 1.0))
        return True


def increased(amount: int) -> Callable[[bytes | None], bytes]:
    """The change that `add` makes."""
    return lambda value: str(int(value or b"0") + amount).encode()


def compared(expected: bytes, desired: bytes) -> Callable[[bytes | None], bytes | None]:
    """The change that `compare_set` makes."""

    def change(value):
        return desired if value == expected or value is None and not expected else value

    return change


class HashStore(Store):
    """A store in the memory of this process, for its threads."""

    def __init__(self) -> None:
        self._table = Table()

    def set(self, key: str, value: str | bytes) -> None:
        self._table.update(key.encode(), lambda _: encoded(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._table.values[key.encode()]

    def add(self, key: str, amount: int) -> int:
        return int(self._table.update(key.encode(), increased(amount)))  # type: ignore[arg-type]

    def check(self, keys: Sequence[str]) -> bool:
        return all(key.encode() in self._table.values for key in keys)

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        limit = seconds(self.timeout if timeout is None else timeout)
        if not self._table.wait([key.encode() for key in keys], limit):
            raise missed(keys, limit)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected, desired = encoded(expected_value), encoded(desired_value)
        made = self._table.update(key.encode(), compared(expected, desired))
        return expected if made is None else made

    def delete_key(self, key: str) -> bool:
        return self._table.delete(key.encode())

    def num_keys(self) -> int:
        return len(self._table.values)

    def append(self, key: str, value: str | bytes) -> None:
        self._table.update(key.encode(), lambda old: (old or b"") + encoded(value))


class PrefixStore(Store):
    """Another store, where each key has a prefix and a slash in front."""

    def __init__(self, prefix: str, store: Store) -> None:
        if store is None:
            raise ValueError("PrefixStore: expected a store, got None.")
        self._prefix = prefix
        self.underlying_store = store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        """The first store below that has no prefix."""
        store = self.underlying_store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> datetime.timedelta:
        """That of the store below."""
        return self.underlying_store.timeout

    def set_timeout(self, timeout: datetime.timedelta) -> None:
        self.underlying_store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self._prefix}/{key}"

    def set(self, key: str, value: str | bytes) -> None:
        self.underlying_store.set(self._key(key), encoded(value))

    def get(self, key: str) -> bytes:
        return self.underlying_store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self.underlying_store.add(self._key(key), amount)

    def check(self, keys: Sequence[str]) -> bool:
        return self.underlying_store.check([self._key(key) for key in keys])

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        under = [self._key(key) for key in keys]
        if timeout is None:
            self.underlying_store.wait(under)
        else:
            self.underlying_store.wait(under, timeout)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        return self.underlying_store.compare_set(self._key(key), expected_value, desired_value)

    def delete_key(self, key: str) -> bool:
        return self.underlying_store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self.underlying_store.num_keys()

    def append(self, key: str, value: str | bytes) -> None:
        self.underlying_store.append(self._key(key), encoded(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        return self.underlying_store.multi_get([self._key(key) for key in keys])

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        self.underlying_store.multi_set([self._key(key) for key in keys], [encoded(value) for value in values])

    def has_extended_api(self) -> bool:
        return self.underlying_store.has_extended_api()

    def clone(self) -> Store:
        return PrefixStore(self._prefix, self.underlying_store.clone())


class FileStore(Store):
    """A store in a file that processes of one machine, or of a shared file system with locks, append to.

    Args:
        file_name (str): the file; made if it is not there, removed when the last store of it in `world_size` ends.
        world_size (int): the number of processes that use it.
    """

    # A record: the lengths of key and value, then both; a length of -1 says that the key was deleted.
    _RECORD = struct.Struct("<qq")

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._name = os.fspath(file_name)
        self._values: dict[bytes, bytes] = {}
        self._read_to = 0
        self._lock = threading.RLock()
        self._open_stores = 0
        self._open_stores = self.add("refcount", 1)

    @property
    def path(self) -> str:
        """The name of the file."""
        return self._name

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """The file, locked, after what others have appended was read."""
        import fcntl

        with self._lock:
            file = os.open(self._name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._catch_up(file)
                yield file
            finally:
                os.close(file)

    def _catch_up(self, file):
        data = os.pread(file, os.fstat(file).st_size - self._read_to, self._read_to)
        at, header = 0, self._RECORD.size
        while at + header <= len(data):
            name, length = self._RECORD.unpack_from(data, at)
            stop = at + header + name + max(length, 0)
            if stop > len(data):
                break
            key = data[at + header : at + header + name]
            if length < 0:
                self._values.pop(key, None)
            else:
                self._values[key] = data[at + header + name : stop]
            at = stop
        self._read_to += at

    def _update(self, key: str, change: Callable[[bytes | None], bytes | None]) -> bytes | None:
        name = key.encode()
        with self._locked() as file:
            made = change(self._values.get(name))
            if made is not None:
                self._append_record(file, name, made)
            return made

    def _append_record(self, file, name, value):
        record = self._RECORD.pack(len(name), -1 if value is None else len(value)) + name + (value or b"")
        os.pwrite(file, record, self._read_to)
        self._catch_up(file)

    def set(self, key: str, value: str | bytes) -> None:
        self._update(key, lambda _: encoded(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._values[key.encode()]

    def add(self, key: str, amount: int) -> int:
        return int(self._update(key, increased(amount)))  # type: ignore[arg-type]

    def check(self, keys: Sequence[str]) -> bool:
        with self._locked():
            return all(key.encode() in self._values for key in keys)

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        limit = seconds(self.timeout if timeout is None else timeout)
        end = time.monotonic() + limit
        while not self.check(keys):
            if time.monotonic() > end:
                raise missed(keys, limit)
            time.sleep(0.01)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        expected = encoded(expected_value)
        made = self._update(key, compared(expected, encoded(desired_value)))
        return expected if made is None else made

    def delete_key(self, key: str) -> bool:
        with self._locked() as file:
            found = key.encode() in self._values
            if found:
                self._append_record(file, key.encode(), None)
            return found

    def num_keys(self) -> int:
        with self._locked():
            return len(self._values)

    def append(self, key: str, value: str | bytes) -> None:
        self._update(key, lambda old: (old or b"") + encoded(value))

    def __del__(self) -> None:
        # A store that could not be made, or a file that is gone, or an interpreter that ends.
        with contextlib.suppress(Exception):
            if self._open_stores and os.path.exists(self._name) and self.add("refcount", -1) == 0:
                os.unlink(self._name)


def __dir__() -> list[str]:
    return __all__
