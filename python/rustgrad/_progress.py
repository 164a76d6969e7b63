"""The progress bar that programs import as `hub.tqdm`: tqdm's, or a plain count on standard error where that is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["tqdm"]


class _Count:
    """As `tqdm.tqdm` for what programs call: `total` is the number of steps, or None; `disable` shows nothing."""

    def __init__(
        self,
        iterable: Iterable[Any] | None = None,
        desc: str = "",
        total: int | None = None,
        disable: bool = False,
        **_: Any,
    ) -> None:
        self.iterable, self.desc, self.disable, self.n = iterable, desc, disable, 0
        self.total = len(iterable) if total is None and hasattr(iterable, "__len__") else total  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        assert self.iterable is not None
        with self:
            for item in self.iterable:
                yield item
                self.update()

    def update(self, n: int = 1) -> None:
        """Counts `n` more steps."""
        self.n += n
        if not self.disable:
            of = f" of {self.total}" if self.total is not None else ""
            sys.stderr.write(f"\r{self.desc + ': ' if self.desc else ''}{self.n}{of}")
            sys.stderr.flush()

    def set_description(self, desc: str = "", refresh: bool = True) -> None:
        """What stands before the count."""
        self.desc = desc

    def set_postfix(self, *values: Any, **named: Any) -> None:
        """No effect."""

    def close(self) -> None:
        """Ends the line."""
        if not self.disable and self.n:
            sys.stderr.write("\n")

    def __enter__(self) -> _Count:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


tqdm: Any
try:
    from tqdm import tqdm  # type: ignore[import-untyped, no-redef]
except ImportError:
    tqdm = _Count
