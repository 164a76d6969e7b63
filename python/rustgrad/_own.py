"""Whether a class, function or module is this package's, whose name is `torch` where a program runs under `python -m rustgrad`."""

from __future__ import annotations

import sys

__all__ = ["is_own", "stands_for_torch"]


def stands_for_torch() -> bool:
    """Whether `import torch` gives this package."""
    return sys.modules.get("torch") is sys.modules[__package__]


def is_own(value: object) -> bool:
    """Whether a class or function says that it is of this package."""
    root = (getattr(value, "__module__", None) or "").partition(".")[0]
    return root == __package__ or root == "torch" and stands_for_torch()
