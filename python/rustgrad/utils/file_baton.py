"""`FileBaton`: a lock between processes, which is a file that only one of them can make."""

from __future__ import annotations

import os
import time
import warnings

__all__ = ["FileBaton"]


class FileBaton:
    """Who acquires it does the work and releases it; others wait.

    Args:
        lock_file_path (str): the file; its folder exists.
        wait_seconds (float): between two looks for the file.
        warn_after_seconds (float, optional): after which a waiting process warns, once.
    """

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path, self.wait_seconds, self.warn_after_seconds = (
            lock_file_path,
            wait_seconds,
            warn_after_seconds,
        )
        self.fd: int | None = None

    def try_acquire(self) -> bool:
        """Makes the file; False if it is there."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Returns when the file is gone."""
        start, warned = time.monotonic(), self.warn_after_seconds is None
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if not warned and time.monotonic() - start > (self.warn_after_seconds or 0):
                warnings.warn(
                    f"Waited on lock file '{self.lock_file_path}' for {time.monotonic() - start:.1f} seconds.",
                    stacklevel=2,
                )
                warned = True

    def release(self) -> None:
        """Removes the file."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)


def __dir__() -> list[str]:
    return __all__
