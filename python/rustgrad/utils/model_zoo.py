"""The former names of `rustgrad.hub`."""

from __future__ import annotations

import sys
from typing import Any

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]


class _Progress:
    """Stands for tqdm's bar where that package is not installed: how much of `total` is done, on stderr."""

    def __init__(self, total: int | None = None, disable: bool = False, *args: Any, **kwargs: Any) -> None:
        self.total, self.disable, self.done = total, disable, 0

    def update(self, n: int) -> None:
        """Adds `n`."""
        self.done += n
        if not self.disable:
            part = f"{100 * self.done / self.total:.1f}%" if self.total else f"{self.done} bytes"
            sys.stderr.write(f"\r{part}")
            sys.stderr.flush()

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """No effect."""

    def close(self) -> None:
        """Ends the line."""
        if not self.disable:
            sys.stderr.write("\n")

    def __enter__(self) -> _Progress:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def __getattr__(name: str) -> object:
    if name == "tqdm":
        # PyTorch keeps the progress bar's package here too, or something in its place; libraries take it from here.
        try:
            from tqdm import tqdm
        except ImportError:
            return _Progress
        return tqdm
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
