"""How calls of functions are written as calls of ops: the arguments in the order of the op's schema.

An op whose signature here is its schema needs no entry. The others have a function `(recorder, arguments) -> code`, whose arguments
are those of the call by name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from ._record import CannotRecord, Recorder
from ._record_calls import BOUND, SPECIAL

__all__ = ["emitter"]

_FLOATS = frozenset("eps momentum dropout dropout_p label_smoothing delta margin p scale".split())
_ANY_NUMBER = frozenset("norm cdist pdist linalg_norm linalg_vector_norm dist renorm".split())
# Parameters that ops have in Python only.
_LEFT_OUT = frozenset(
    "size_average reduce out requires_grad inplace _stacklevel cudnn_enable cudnn_enabled implicit generator".split()
)
_MAKES = frozenset("zeros ones empty full rand randn randint arange linspace logspace eye randperm".split())
_LISTS = frozenset("cat stack".split())
_SIZES = {
    "view": "size", "reshape": "shape", "expand": "size", "repeat": "repeats", "permute": "dims", "flip": "dims", "tile": "dims",
    "new_zeros": "size", "new_ones": "size", "new_empty": "size", "zeros": "size", "ones": "size", "empty": "size",
    "rand": "size", "randn": "size",
}  # fmt: skip
_NAMES = {"__eq__": "eq", "__ne__": "ne", "__floordiv__": "floor_divide", "concat": "cat", "concatenate": "cat", "__matmul__": "matmul", "true_divide": "div",
          "special_logsumexp": "logsumexp", "special_softmax": "softmax", "special_log_softmax": "log_softmax",
          "__rand__": "__and__", "__ror__": "__or__", "__rxor__": "__xor__", "logsigmoid": "log_sigmoid", "__invert__": "bitwise_not"}  # fmt: skip
_QUANTISED = frozenset("quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic dequantize".split())
# Functions of Python that are one op, and are not entered.
_WHOLE = _QUANTISED | frozenset(
    "einsum stft istft tensordot meshgrid block_diag cartesian_prod max_pool1d max_pool2d max_pool3d adaptive_avg_pool1d "
    "adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d batch_norm instance_norm group_norm".split()
)
Emit = Callable[..., str]


def emitter(key: str, func: Any) -> Emit | None:
    """What writes a call of this function; None where it is entered instead, or unknown."""
    name = key.removeprefix("nn.functional.")
    if name in SPECIAL:
        return SPECIAL[name]
    whole = not hasattr(func, "__wrapped__") or name in _WHOLE
    if name in BOUND:
        return _bound(BOUND[name]) if whole else None
    if not whole or not (_is_op(key) or key in _NAMES):
        return None
    return _default


def _is_op(key: str) -> bool:
    """Whether a function is an op that TorchScript has by this name."""
    leaf = key.replace(".", "_")
    if leaf in _LOGIC or leaf in _QUANTISED:
        return True
    if leaf.startswith("_") or leaf in _ONLY_HERE:
        return False
    return (
        key in _C.ops
        or leaf in _C.ops
        or hasattr(Tensor, key)
        or key.split(".")[0] in ("linalg", "fft", "special")
        or ("nn.functional." + key in _C.ops)
    )


_LOGIC = frozenset(
    "__and__ __or__ __xor__ __lshift__ __rshift__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__".split()
)
# Functions in one piece here that are several ops there and have no entry below.
_ONLY_HERE = frozenset(
    "data___get__ data___set__ grad___set__ requires_grad_ multilabel_soft_margin_loss gaussian_nll_loss gumbel_softmax map_ apply_ "
    "register_hook".split()
)


def arguments(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name, without those that were not given."""
    signature = inspect.signature(func)
    bound = signature.bind(*args, **kwargs)
    made: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            value = list(value[0]) if len(value) == 1 and isinstance(value[0], (list, tuple)) else list(value)
        elif kind is inspect.Parameter.VAR_KEYWORD:
            made |= value
            continue
        made["input" if name == "self" else name] = value
    return made


def _default(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    """A call whose parameters are those of the schema."""
    leaf = key.removeprefix("nn.functional.").replace(".", "_")
    op = _NAMES.get(leaf, leaf)
    if kwargs.get("out") is not None:
        raise CannotRecord(f"'{key}' with out=")
    if op in _SIZES:
        return _with_sizes(r, op, args, kwargs, result)
    try:
        signature = inspect.signature(func)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return r.call_text(op, *args, **kwargs)
    position, named, skipped = [], {}, []
    in_place = bool(kwargs.get("inplace")) or bound.arguments.get("inplace") is True
    for parameter in signature.parameters.values():
        if parameter.name in _LEFT_OUT:
            continue
        given = parameter.name in bound.arguments
        value = bound.arguments.get(parameter.name, parameter.default)
        if parameter.name == "reduction" and isinstance(value, str):
            value = ("none", "mean", "sum").index(value)
        if parameter.name in _FLOATS and type(value) is int and op not in _ANY_NUMBER:
            value = float(value)
        if parameter.kind is parameter.KEYWORD_ONLY or skipped:
            if given and parameter.name not in ("pin_memory", "layout"):
                named[parameter.name] = value
        elif value is Ellipsis:
            skipped.append(parameter.name)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            position.append(list(value[0]) if value and isinstance(value[0], (list, tuple)) else list(value or ()))
        else:
            position.append((value, given))
    while position and isinstance(position[-1], tuple) and not position[-1][1]:
        position.pop()
    flat = [p[0] if isinstance(p, tuple) and len(p) == 2 and isinstance(p[1], bool) else p for p in position]
    if op in _MAKES and result is not None:
        named |= _options(result)
    return r.call_text(op + ("_" if in_place and not op.endswith("_") else ""), *flat, **named)


def _options(result: Tensor) -> dict[str, Any]:
    """What a new tensor is, so that defaults that change do not change it."""
    return {"dtype": result.dtype, "layout": None, "device": result.device, "pin_memory": False}


def _with_sizes(r: Recorder, op: str, args: Any, kwargs: Any, result: Tensor) -> str:
    """Ops whose sizes may be given one by one."""
    given = dict(kwargs)
    is_made = op in _MAKES
    first, rest = ([], args) if is_made else ([args[0]], args[1:])
    named = given.pop(_SIZES[op], None)
    if op == "view" and (given.get("dtype") is not None or rest and isinstance(rest[0], _C.dtype)):
        return r.call_text("view", first[0], given.get("dtype") or rest[0])
    sizes = named if named is not None else rest[0] if len(rest) == 1 and isinstance(rest[0], (list, tuple)) else rest
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    new = is_made or op.startswith("new_")
    return r.call_text(op, *first, sizes, **(_options(result) if new else {}))


def _bound(write: Callable[[Recorder, dict[str, Any], Any], str]) -> Emit:
    def emit(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
        return write(r, arguments(func, args, kwargs), result)

    return emit
