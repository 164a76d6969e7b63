"""Attention beyond `F.scaled_dot_product_attention`: choice of a backend, and `flex_attention`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum

__all__ = ["WARN_FOR_UNFUSED_KERNELS", "SDPBackend", "sdpa_kernel"]

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """PyTorch's implementations of scaled dot product attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Checks `backends` and has no other effect: the operands alone decide which implementation runs.

    Raises:
        AssertionError: `backends` is neither an `SDPBackend` nor a list of them.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    yield {}


def __dir__() -> list[str]:
    return __all__
