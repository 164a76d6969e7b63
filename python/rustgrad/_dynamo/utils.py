"""Questions about the compiler."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any


def is_compile_supported(device_type: Any) -> bool:
    """False: there is no code generator for any device."""
    return False


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """A warning, the first time that the program gives it."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


# `with disable_cache_limit():` a block without effect; how many plans of a function are kept is `compile`'s option "max_plans".
disable_cache_limit = contextlib.nullcontext
