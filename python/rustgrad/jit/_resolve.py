"""What the names in code of an archive mean: a fixed set of ops, and nothing that Python or this package has besides.

`op(name)` is a function for arguments in the order of the op's schema; dtypes, layouts and memory formats, which such
code writes as numbers, are converted where the op's parameter is one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .. import _C, _ops
from .._aten_forms import find
from .._base import Tensor
from .._schema import overloads
from ._codes import code_of, dtype_of, format_of, layout_of
from ._natives import NATIVES
from ._values import OPS

__all__ = ["PRIM", "op", "prim"]

# Ops that are written in Python in this package, by the object that has them. Anything else of a name is as in `ops.aten`.
_OF_TENSOR = frozenset(
    "__and__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__ __lshift__ __or__ __rshift__ __xor__ _nnz _values _indices "
    "bernoulli_ cauchy_ chalf coalesce contiguous copy_ cpu dense_dim dim element_size expand expand_as exponential_ "
    "fill_diagonal_ float_power_ geometric_ indices is_coalesced is_set_to item log_normal_ new_empty "
    "new_empty_strided new_full new_ones new_zeros normal_ random_ repeat requires_grad_ reshape_as resize_ set_ sparse_dim "
    "sparse_mask storage_offset sum_to_size to_dense unfold uniform_ values view view_as fill_ zero_ masked_fill_ to_padded_tensor "
    "detach_ clone is_pinned pin_memory".split()
)
_OF_TOP = frozenset(
    "allclose broadcast_shapes can_cast equal get_device histogramdd is_complex is_conj is_floating_point is_grad_enabled is_inference "
    "is_neg is_nonzero is_same_size is_signed istft manual_seed numel resolve_conj resolve_neg segment_reduce stft norm "
    "lu_unpack unravel_index is_autocast_cpu_enabled resize_as_ dequantize int_repr q_scale q_zero_point q_per_channel_scales "
    "q_per_channel_zero_points q_per_channel_axis quantized_lstm quantized_gru quantize_per_tensor quantize_per_channel quantize_per_tensor_dynamic".split()
)
# Private ops of the core that have no schema in `_aten_schemas`, and that code in archives calls.
_PRIVATE = ("_int_mm", "_weight_norm")
_KEYWORDS: dict[str, Callable[[Any], Any]] = {"dtype": dtype_of, "layout": layout_of, "memory_format": format_of}


class Unsupported(NotImplementedError):
    """An op that is called and does not exist here."""


def op(namespace: str, name: str) -> Callable[..., Any]:
    """The function of an op; for one that does not exist here, a function that raises NotImplementedError."""
    key = f"{namespace}.{name}"
    if key not in _known:
        _known[key] = _of_program(namespace, name) if namespace != "aten" else _found(name)
    return _known[key]


_known: dict[str, Callable[..., Any]] = {}


def _of_program(namespace: str, name: str) -> Callable[..., Any]:
    """An op that the running program has registered, looked up when it is called."""

    def call(*args: Any, **kwargs: Any) -> Any:
        function = _ops.registered.get(namespace, {}).get(name)
        if function is None and namespace == "quantized":
            function = getattr(_ops.ops.quantized, name, None)
        if function is None:
            raise Unsupported(f"{namespace}::{name}: there is no such op here")
        return function(*args, **kwargs)

    return call


def _found(name: str) -> Callable[..., Any]:
    on_tensors, on_values = _tensor_op(name), OPS.get(name)
    if on_tensors is None and on_values is None:
        return _absent(name)
    if on_values is None:
        return on_tensors  # type: ignore[return-value]
    if on_tensors is None:
        return on_values

    def call(*args: Any, **kwargs: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, Tensor) or (
            isinstance(first, (int, float, complex)) and len(args) > 1 and isinstance(args[1], Tensor)
        ):
            return on_tensors(*args, **kwargs)
        return on_values(*args, **kwargs)

    return call


def _absent(name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"aten::{name}: there is no such op here")

    return call


def _tensor_op(name: str) -> Callable[..., Any] | None:
    import rustgrad

    function: Any = None
    if name in NATIVES:
        function = NATIVES[name]
    elif name in _OF_TENSOR:
        function = getattr(Tensor, name, None)
    elif name in _OF_TOP:
        function = getattr(rustgrad, name, None)
    elif name in _ops._named:
        function = _ops._named[name]
    elif overloads(name) or (name in _C.ops and (not name.startswith("_") or name in _PRIVATE)):
        function = find(name)
    return None if function is None else _converting(function)


def _converting(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, with numbers made dtypes where its parameters are such, and dtypes in results made numbers."""
    places = {}
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    for at, parameter in enumerate(parameters):
        if parameter.name in _KEYWORDS and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
            places[at] = _KEYWORDS[parameter.name]

    # The core's losses are of each element unless they are told; a schema's default is the mean.
    reduction = next((i for i, p in enumerate(parameters) if p.name == "reduction" and p.default == 0), None)

    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = _keywords(kwargs)
        if reduction is not None and len(args) <= reduction:
            kwargs.setdefault("reduction", 1)
        if places and len(args) > min(places):
            args = tuple(places[i](a) if i in places else a for i, a in enumerate(args))
        result = function(*args, **kwargs)
        return list(result) if type(result) is _C.Size else result

    return call


def _keywords(kwargs: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for name, value in kwargs.items():
        value = _KEYWORDS[name](value) if name in _KEYWORDS else value
        if value is not None or name not in ("pin_memory", "layout", "memory_format", "generator"):
            made[name] = value
    return made


# --- prim


def _dtype(x: Tensor) -> int | None:
    return code_of(x.dtype)


def _num_to_tensor(value: Any) -> Tensor:
    import rustgrad

    dtype = {bool: _C.bool, int: _C.int64, float: _C.float64}.get(type(value), _C.complex128)
    return rustgrad.tensor(value, dtype=dtype)


def _attribute(name: str) -> Callable[[Any], Any]:
    def read(x: Any) -> Any:
        if not isinstance(x, (Tensor, _C.device)):
            raise TypeError(f"prim::{name}: expected a Tensor, got {type(x).__name__}")
        return getattr(x, name)

    return read


def _enum_name(value: Any) -> Any:
    return value._name_


def _enum_value(value: Any) -> Any:
    return value._value_


PRIM: dict[str, Callable[..., Any]] = {
    "dtype": _dtype, "layout": lambda x: 0, "shape": lambda x: list(x.shape), "NumToTensor": _num_to_tensor,
    "min": OPS["min"], "max": OPS["max"], "abs": abs, "EnumName": _enum_name, "EnumValue": _enum_value,
    "data": lambda x: x.detach(), "AutogradZero": lambda: None, "name": lambda x: None,
    "unchecked_unwrap_optional": lambda x: x,
}  # fmt: skip
PRIM |= {
    n: _attribute(n)
    for n in "device is_cuda is_cpu is_meta is_sparse is_nested requires_grad grad T H mT mH itemsize nbytes ndim type index "
    "is_mps is_xpu is_quantized".split()
}


def prim(name: str) -> Callable[..., Any]:
    """A function of the namespace `prim`; for one that is not known, a function that raises NotImplementedError."""

    def absent(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"prim::{name}: there is no such op here")

    return PRIM.get(name, absent)
