"""How shared memory is named to another process: by an open descriptor, or by a file in `/dev/shm`.

Descriptors leave nothing behind, but each shared storage holds one (`ulimit -n`). A file needs none while it is shared; a
counter behind its last byte tells the last process to remove it, and what a killed process left is removed by Python's
resource tracker when the program ends.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import struct
import sys
from collections.abc import Iterator
from multiprocessing import util

from .. import _C
from .._C import Tensor

__all__ = ["get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy"]

_FOLDER = "/dev/shm"
_ALL = {"file_descriptor", "file_system"} if sys.platform == "linux" else {"file_descriptor"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The strategies of this system: "file_descriptor" and, on Linux, "file_system"."""
    return set(_ALL)


def get_sharing_strategy() -> str:
    """The strategy by which memory is shared from now on; "file_descriptor" at first."""
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets the strategy by which memory is shared from now on.

    Raises:
        AssertionError: not one of `get_all_sharing_strategies()`.
    """
    global _strategy
    assert new_strategy in _ALL, f"set_sharing_strategy: expected one of {sorted(_ALL)}, got {new_strategy!r}"
    if new_strategy == "file_system":
        from multiprocessing import resource_tracker

        # Before processes are forked: the tracker is told of a file by the process that makes it and by the one that removes it.
        resource_tracker.ensure_running()
    _strategy = new_strategy


class NamedFile:
    """This process's use of a file in `/dev/shm`; the use ends with the mapping that keeps this object, or at exit."""

    def __init__(self, name: str, nbytes: int) -> None:
        self.name, self.nbytes = name, nbytes
        # Not `weakref.finalize`: child processes of `multiprocessing` do not run what is registered with `atexit`.
        util.Finalize(self, _release, (name, nbytes), exitpriority=0)

    def hand_over(self) -> None:
        """Counts one use more, for the process that will open the file."""
        with _opened(self.name) as file:
            _count(file, self.nbytes, 1)


def create(nbytes: int) -> Tensor:
    """New memory in a named file, as a uint8 tensor; RuntimeError if `/dev/shm` is full."""
    from multiprocessing import resource_tracker

    name = f"rustgrad-{os.getpid()}-{secrets.token_hex(8)}"
    file = os.open(f"{_FOLDER}/{name}", os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    resource_tracker.register(f"/{name}", "shared_memory")
    try:
        # Reserved at once: a write to a page that cannot be had later would end the process.
        os.posix_fallocate(file, 0, nbytes + 8)
        os.pwrite(file, struct.pack("<q", 1), nbytes)
        return _C._shared_open(file, nbytes, False, NamedFile(name, nbytes))
    except OSError as error:
        _remove(name)
        reason = "is full" if error.errno == errno.ENOSPC else f"refuses ({error.strerror})"
        raise RuntimeError(
            f"unable to write {nbytes} bytes to shared memory: {_FOLDER} {reason}. The strategy 'file_descriptor' does not use it."
        ) from None
    finally:
        os.close(file)


def attach(name: str, nbytes: int) -> Tensor:
    """The memory of a file that another process has handed over."""
    with _opened(name) as file:
        return _C._shared_open(file, nbytes, False, NamedFile(name, nbytes))


@contextlib.contextmanager
def _opened(name: str) -> Iterator[int]:
    try:
        file = os.open(f"{_FOLDER}/{os.path.basename(name)}", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise RuntimeError(
            f"shared memory: no file {name} in {_FOLDER}; was it received twice, or has the program that made it ended?"
        ) from None
    try:
        yield file
    finally:
        os.close(file)


def _count(file, nbytes, change):
    """Changes the number of uses, which lies behind the data, and returns it."""
    import fcntl

    fcntl.flock(file, fcntl.LOCK_EX)
    uses = struct.unpack("<q", os.pread(file, 8, nbytes))[0] + change
    os.pwrite(file, struct.pack("<q", uses), nbytes)
    return uses


def _release(name, nbytes):
    with contextlib.suppress(RuntimeError, OSError), _opened(name) as file:
        if _count(file, nbytes, -1) <= 0:
            _remove(name)


def _remove(name):
    from multiprocessing import resource_tracker

    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{_FOLDER}/{name}")
    resource_tracker.unregister(f"/{name}", "shared_memory")
