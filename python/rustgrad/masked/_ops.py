"""The functions of `rustgrad.masked`: the ops of the table whose names start with `masked.`.

The private functions describe the ops: the value that replaces a masked-out element, and which results are
defined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from .. import _C, _formats
from .._base import ops, tensor
from .._C import Tensor
from .._dtype_info import iinfo

_PREFIX = "masked."
__all__ = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in __all__})
_REDUCTIONS = "sum prod cumsum cumprod amin amax argmin argmax mean median norm var std logsumexp".split()
_ALONG = ("softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod")


def _reduction_identity(op_name, input, *args):
    """The value of a masked-out element, a 0-d tensor; None if no number leaves the result unchanged.

    Raises:
        NotImplementedError: the dtype has no such number.
    """
    name, dtype = op_name.rsplit(".", 1)[-1], input.dtype

    def made(value, dtype=dtype):
        return tensor(value, dtype=dtype, device=input.device)

    if name in ("sum", "cumsum", "prod", "cumprod"):
        return made(int(name in ("prod", "cumprod")))
    if name in ("mean", "var", "std"):
        return None
    if name == "norm":
        return made(math.inf if args and args[0] < 0 else 0)
    if name == "median":
        return made(math.nan, dtype if dtype.is_floating_point else _C.float32)
    low = name in ("amax", "argmax", "logsumexp", "logaddexp")
    if low or name in ("amin", "argmin"):
        if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
            return made(-math.inf if low else math.inf)
        if not dtype.is_complex and dtype != _C.bool:
            return made(iinfo(dtype).min if low else iinfo(dtype).max)
    raise NotImplementedError(f"identity of {name} on {dtype} input")


def _input_mask(input, *args, mask=None, **kwargs):
    """The mask of a call as bools in the shape of its input."""
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    if mask.ndim > input.ndim:
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    return mask.broadcast_to(input.shape).to(_C.bool)


def _output_mask(op, input, *args, **kwargs):
    """A mask of the results that have at least one unmasked element."""
    name = getattr(op, "__name__", None)
    if name not in __all__:
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    mask = _input_mask(input, **kwargs)
    if name in _ALONG:
        return mask
    args = args[1:] if name == "norm" else args
    dim = args[0] if args else kwargs.get("dim")
    keepdim = bool(kwargs.get("keepdim"))
    return mask.any(dim if dim is not None else tuple(range(mask.ndim)), keepdim) if mask.ndim else mask


def _canonical_dim(dim: int | Iterable[int] | None, ndim: int) -> tuple[int, ...]:
    """Dimensions as a tuple in ascending order, counted from the front; all of them for None and for ().

    Raises:
        IndexError: there is no such dimension.
        RuntimeError: one is there twice.
    """
    if dim is None or dim == ():
        return tuple(range(ndim)) or (0,) * (dim is None)
    n, found = max(ndim, 1), []
    for d in (dim,) if isinstance(dim, int) else tuple(dim):
        if not -n <= d < n:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
        if d % n in found:
            raise RuntimeError(f"dim={d % n} appears multiple times in the list of dims")
        found.append(d % n)
    return tuple(sorted(found))


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """The elements of `input` where the mask is True, and `fill_value` elsewhere; by a sparse mask a sparse tensor.

    Args:
        mask (Tensor): of bools, in any layout. A sparse result specifies the elements where it is True, and all elements of
            the dense dimensions there.
        input (Tensor): in the mask's layout.
        fill_value (Tensor): a 0-d tensor.

    Raises:
        ValueError: `input` is of another layout.
    """
    if mask.layout is not input.layout:
        raise ValueError(f"_where: expected mask and input of one layout, got {mask.layout} and {input.layout}")
    if mask.layout is _formats.strided:
        return ops["where"](mask, input, fill_value)
    from ..sparse._tensor import with_value

    if not mask.dense_dim():
        mask = mask.to_dense()
        pattern = mask.to_sparse() if input.is_sparse else mask.to_sparse_csr()
        return input.sparse_mask(pattern)
    mask = mask.coalesce() if mask.is_sparse else mask
    kept = input.sparse_mask(mask)
    return with_value(kept, ops["where"](mask._value, kept._value, fill_value))


def _combine_input_and_mask(op: Any, input: Any, mask: Tensor | None, *args: Any) -> Tensor:
    """The input with what leaves a reduction unchanged in the place of masked-out elements.

    Args:
        op: the reduction, of this namespace or of another one.
        input (Tensor): dense or a `MaskedTensor`, of which the data is taken.
        mask (Tensor): None for the input as it is.
        args: further arguments of the reduction, such as the order of a norm.

    Raises:
        ValueError: there is no masked reduction of the name.
    """
    input = getattr(input, "_masked_data", input)
    if mask is None:
        return input
    name = getattr(op, "__name__", None)
    if name is None or name not in _REDUCTIONS:
        raise ValueError(f"_combine_input_and_mask expected masked operation (got {type(op).__name__} object)")
    identity = _reduction_identity(name, input, *args)
    identity = ops["zeros_like"](input[(0,) * input.ndim]) if identity is None else identity
    return _where(_input_mask(input, mask=mask), input, identity.to(input.dtype))


def __dir__() -> list[str]:
    return __all__
