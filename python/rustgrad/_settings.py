"""Global settings: printing, determinism, precision, warnings, threads.

Results here never depend on the number of threads and float32 products are always computed in float32, so the
switches for determinism and precision are only stored.
"""

from __future__ import annotations

import warnings
from typing import Any

from . import _C

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_grad_enabled",
    "is_warn_always_enabled",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_num_interop_threads",
    "set_printoptions",
    "set_warn_always",
    "use_deterministic_algorithms",
]

is_grad_enabled = _C.is_grad_enabled
_asked = {"deterministic": 0, "fill": True, "warn_only": False, "precision": "highest", "interop": 1}

_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


_printing: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def _set(name, value):
    _asked[name] = value
    _C._fill_uninitialized(_asked["deterministic"] > 0 and _asked["fill"])


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed.

    Args:
        precision (int): digits after the decimal point. Default: 4.
        threshold (float): number of elements above which a tensor is summarised. Default: 1000.
        edgeitems (int): elements shown at both ends of a summarised dimension. Default: 3.
        linewidth (int): characters per line. Default: 80.
        profile (str): "default", "short" or "full"; the other arguments override it. Another name sets nothing.
        sci_mode (bool): scientific notation always or never. Default: depending on the values.
    """
    options = {}
    if profile is not None:
        # As in PyTorch a profile of another name sets nothing: YOLO's programs ask for "long".
        options.update(_PROFILES.get(profile, {}))
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({k: v for k, v in given.items() if v is not None})
    options["sci_mode"] = sci_mode
    _C._set_printoptions(**options)
    _printing.update(options)


def print_options() -> dict[str, Any]:
    """What `set_printoptions` has set."""
    return dict(_printing)


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Selects whether uninitialised memory is filled; algorithms are always deterministic.

    While `mode` is True and `utils.deterministic.fill_uninitialized_memory` is not off, `empty`, `resize_` and others
    fill it: with NaN, True or the largest integer.

    Raises:
        TypeError: `mode` or `warn_only` is not a bool.
    """
    for name, value in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"_set_deterministic_algorithms(): argument '{name} must be bool, not {type(value).__name__}"
            )
    _asked["warn_only"] = warn_only
    _set("deterministic", (1 if warn_only else 2) if mode else 0)


def are_deterministic_algorithms_enabled() -> bool:
    """Whether `use_deterministic_algorithms(True)` is set."""
    return _asked["deterministic"] > 0


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Whether it is set with `warn_only`."""
    return _asked["warn_only"]


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: "default", "warn" or "error"."""
    return _asked["deterministic"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Sets the same as a mode: 0 or "default", 1 or "warn", 2 or "error"."""
    modes = {"default": 0, "warn": 1, "error": 2}
    mode = modes.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1 or 2 or one of {list(modes)}, but got {debug_mode}"
        )
    _asked["warn_only"] = mode == 1
    _set("deterministic", mode)


def set_float32_matmul_precision(precision: str) -> None:
    """Stores "highest", "high" or "medium", without effect: products of float32 matrices are always computed in float32.

    Warns of another precision, which is not stored.
    """
    if precision in ("highest", "high", "medium"):
        _asked["precision"] = precision
        return
    warnings.warn(
        f"{precision} is not one of 'highest', 'high', or 'medium'; set_float32_matmul_precision has no effect.",
        stacklevel=2,
    )


def get_float32_matmul_precision() -> str:
    """The stored precision; "highest" by default."""
    return _asked["precision"]


def set_flush_denormal(mode: bool) -> bool:
    """False: denormal numbers are never flushed; PyTorch returns this where it cannot flush them."""
    return False


def get_num_interop_threads() -> int:
    """The stored number; 1 by default."""
    return _asked["interop"]


def set_num_interop_threads(num: int) -> None:
    """Stored, without effect: operations run sequentially.

    Raises:
        RuntimeError: not a positive integer.
    """
    if not isinstance(num, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num < 1:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _asked["interop"] = num


def set_warn_always(mode: bool) -> None:
    """Sets whether once-per-process warnings are issued every time; filters of `warnings` still apply."""
    _C._set_warn_always(bool(mode))


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always(True)` is set."""
    return _C._is_warn_always_enabled()
