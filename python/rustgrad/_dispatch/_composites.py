"""Ops that PyTorch takes apart before modes and classes see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._ops import OpOverload, ops

_table: dict[OpOverload, Callable[..., Any]] = {}


def find(op: OpOverload) -> Callable[..., Any] | None:
    return _table.get(op)
