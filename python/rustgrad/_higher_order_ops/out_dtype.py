"""`out_dtype(op, dtype, *args)`: an op of `ops.aten` whose result has another dtype, in which it is computed."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor

__all__ = ["out_dtype"]


def out_dtype(op: Any, output_dtype: Any, *args: Any) -> Tensor:
    """The result of `op(*args)` with the operands in `output_dtype`: products of integers are exact in a larger type.

    Args:
        op (OpOverload): an op of `torch.ops.aten`.
        output_dtype (dtype): that of the result.
        args: of the op.

    Raises:
        ValueError: there are no arguments.
    """
    if not args:
        raise ValueError("out_dtype: expected arguments of the op, got none")
    if str(op) == "aten.mm.default" and output_dtype is _C.int32 and all(t.dtype is _C.int8 for t in args):
        return _C.ops["_int_mm"](*args) if "_int_mm" in _C.ops else op(*(t.to(output_dtype) for t in args))
    return op(*(t.to(output_dtype) if isinstance(t, Tensor) else t for t in args))  # type: ignore[no-any-return]
