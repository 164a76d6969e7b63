"""Names of the settings of PyTorch's sparse kernels for GPUs, of which there are none here."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


def get_meta(op: str, key: Any, device_name: Any = None, version: Any = None, exact: bool = False) -> None:
    """None: no kernel has settings."""


def minimize(*args: Any, **kwargs: Any) -> None:
    """NotImplementedError: there are no such kernels."""
    raise NotImplementedError("sparse._triton_ops_meta.minimize: there are no kernels to tune")


def update(*args: Any, **kwargs: Any) -> None:
    """NotImplementedError: there are no such kernels."""
    raise NotImplementedError("sparse._triton_ops_meta.update: there are no kernels to tune")
