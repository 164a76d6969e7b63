"""`rustgrad.masked`: the ops of the table whose names start with `masked.`; there are no masked tensors.

The private functions describe the ops: the value that replaces a masked-out element, and which results are
defined.
"""

import math

from . import _C
from ._base import ops, tensor
from ._dtype_info import iinfo

_PREFIX = "masked."
__all__ = sorted(name.removeprefix(_PREFIX) for name in ops if name.startswith(_PREFIX))
globals().update({name: ops[_PREFIX + name] for name in __all__})
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


def __dir__() -> list[str]:
    return __all__
