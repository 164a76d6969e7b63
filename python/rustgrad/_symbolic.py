"""Arithmetic on sizes that PyTorch's tracers keep as symbols: sizes are numbers here, and so are the results."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

from . import _C
from ._base import Tensor
from ._formats import contiguous_format

__all__: list[str] = []

# The former name of a memory format.
legacy_contiguous_format = contiguous_format


def _shape_as_tensor(input: Tensor) -> Tensor:
    """The sizes of a tensor, as a tensor of int64 on the CPU."""
    return _C.tensor([*input.shape], dtype=_C.int64, device="cpu")


def sym_int(a: Any) -> int:
    """The number towards zero: an int."""
    return builtins.int(a)


def sym_float(a: Any) -> float:
    """The number as a float."""
    return builtins.float(a)


def sym_not(a: Any) -> bool:
    """`not a`."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The greater number; a float if one of the two is."""
    found = max(a, b)
    return builtins.float(found) if builtins.float in (type(a), type(b)) else found


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number; a float if one of the two is."""
    found = min(a, b)
    return builtins.float(found) if builtins.float in (type(a), type(b)) else found


def sym_sqrt(a: Any) -> float:
    """The square root."""
    return math.sqrt(a)


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t if b else f`."""
    if type(t) is not type(f):
        raise AssertionError(f"type mismatch: {type(t)} vs {type(f)}")
    return t if b else f


def sym_sum(args: Sequence[Any]) -> Any:
    """The sum of numbers."""
    return sum(args)
