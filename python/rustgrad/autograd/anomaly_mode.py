"""Anomaly detection: backward reports NaN gradients, and where in the forward their op was called."""

from __future__ import annotations

import warnings
from typing import Any

from .. import _C

__all__ = ["detect_anomaly", "set_anomaly_enabled", "set_detect_anomaly"]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Switches anomaly detection on or off."""
    _C._set_anomaly_enabled(mode, check_nan)


class set_detect_anomaly:
    """Sets anomaly detection, immediately when called as a function; restored at the end of a `with` block.

    Args:
        mode (bool): whether it is on.
        check_nan (bool): whether a NaN gradient is an error.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self.prev: tuple[bool, bool] = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(mode, check_nan)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *args: Any) -> None:
        _C._set_anomaly_enabled(*self.prev)


class detect_anomaly:
    """Inside the block, backward prints the forward call of a failing op, and raises on NaN gradients."""

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging.",
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self.prev: tuple[bool, bool] = (_C.is_anomaly_enabled(), _C.is_anomaly_check_nan_enabled())
        _C._set_anomaly_enabled(True, self.check_nan)

    def __exit__(self, *args: Any) -> None:
        _C._set_anomaly_enabled(*self.prev)
