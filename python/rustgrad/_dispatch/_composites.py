"""Ops that PyTorch takes apart before modes and classes see them, as calls of the ops that they consist of."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .. import _C
from .._C import Tensor
from .._formats import contiguous_format, preserve_format
from .._op_defs import CustomOpDef
from .._ops import OpOverload, ops
from ._calls import dispatch
from ._stack import NoOverrides, entered

__all__ = ["find", "part_of", "reshaped", "run"]

_table: dict[OpOverload, Callable[..., Any]] = {}
aten = ops.aten


def find(op: OpOverload) -> Callable[..., Any] | None:
    """What takes an op apart; None for one that modes and classes see. It may return NotImplemented: of these arguments it is seen."""
    _load()
    if op.namespace == "aten":
        found = _table.get(op)
        # Autocast casts the arguments of the whole op, others than those of its parts.
        whole = found is not None and is_autocast_on() and op.overloadpacket.__name__ in _AUTOCAST
        return None if whole else found
    kernel = op.overloadpacket._function
    return functools.partial(_of_program, kernel) if isinstance(kernel, CustomOpDef) and kernel._is_composite else None


_AUTOCAST = frozenset(
    """layer_norm group_norm batch_norm instance_norm softmax log_softmax log_sigmoid nll_loss_nd cross_entropy_loss l1_loss kl_div
    scaled_dot_product_attention upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d
    upsample_trilinear3d upsample_bicubic2d pad max_pool2d max_pool3d avg_pool1d adaptive_avg_pool1d adaptive_avg_pool2d
    adaptive_avg_pool3d einsum tensordot linalg_norm std var std_mean var_mean cat concat concatenate hstack vstack outer""".split()
)


def is_autocast_on() -> bool:
    """Whether autocast is on for some device."""
    return any(_C._autocast_state(kind)[0] for kind in ("cpu", "gpu"))


def _of_program(kernel: CustomOpDef, *args: Any, **kwargs: Any) -> Any:
    with entered():
        return kernel._kernels[None](*args, **kwargs)


def _load() -> None:
    if "loaded" not in globals():
        globals()["loaded"] = True
        for name in ("_composites_einsum", "_composites_nn"):
            importlib.import_module(f".{name}", __package__)


def part_of(*overloads: OpOverload) -> Callable[..., Any]:
    """Adds what takes these overloads apart."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for overload in overloads:
            _table[overload] = function
        return function

    return add


def run(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Dispatches an op."""
    return dispatch(op, args, kwargs)


# --- forms


def reshaped(self: Tensor, shape: Any) -> Tensor:
    """A tensor of another shape: a view, or a view of a copy."""
    sizes = _complete(self, list(shape))
    if _fits(self, sizes):
        return run(aten.view.default, self, sizes)
    return run(aten._unsafe_view.default, run(aten.clone.default, self, memory_format=contiguous_format), sizes)


def _complete(self: Tensor, sizes: list[int]) -> list[int]:
    """The sizes of a new shape, of which one may be -1."""
    if -1 not in sizes:
        return sizes
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    if sizes.count(-1) > 1 or known == 0 or self.numel() % known:
        raise RuntimeError(f"shape '{sizes}' is invalid for input of size {self.numel()}")
    return [self.numel() // known if n == -1 else n for n in sizes]


def _fits(self: Tensor, sizes: list[int]) -> bool:
    """Whether a shape is a view of a tensor: its strides alone decide."""
    if self.is_contiguous():
        return True
    with NoOverrides():
        body = _C.ops["empty_strided"](tuple(self.shape), self.stride(), dtype=_C.float32, device="meta")
        try:
            body.view(sizes)
        except RuntimeError:
            return False
    return True


@part_of(aten.reshape.default)
def _reshape(self: Any, shape: Any) -> Any:
    return reshaped(self, shape)


@part_of(aten.view_as.default)
def _view_as(self: Any, other: Any) -> Any:
    return run(aten.view.default, self, list(other.shape))


@part_of(aten.reshape_as.default)
def _reshape_as(self: Any, other: Any) -> Any:
    return reshaped(self, other.shape)


@part_of(aten.flatten.using_ints)
def _flatten(self: Any, start_dim: int = 0, end_dim: int = -1) -> Any:
    if self.dim() == 0:
        return reshaped(self, [1])
    start, end = (_dim(self, d) for d in (start_dim, end_dim))
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if start == end:
        return self
    size = 1
    for n in self.shape[start : end + 1]:
        size *= n
    return reshaped(self, [*self.shape[:start], size, *self.shape[end + 1 :]])


def _dim(self: Tensor, d: int) -> int:
    if not -self.dim() <= d < self.dim():
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-self.dim()}, {self.dim() - 1}], but got {d})"
        )
    return d % self.dim()


@part_of(aten.unflatten.int)
def _unflatten(self: Any, dim: int, sizes: Any) -> Any:
    dim = _dim(self, dim)
    known = 1
    for n in sizes:
        known *= n if n != -1 else 1
    sizes = [self.shape[dim] // known if n == -1 else n for n in sizes]
    return run(aten.view.default, self, [*self.shape[:dim], *sizes, *self.shape[dim + 1 :]])


@part_of(aten.expand_as.default)
def _expand_as(self: Any, other: Any) -> Any:
    return run(aten.expand.default, self, list(other.shape))


@part_of(aten.broadcast_to.default)
def _broadcast_to(self: Any, size: Any) -> Any:
    return run(aten.expand.default, self, list(size))


@part_of(aten.broadcast_tensors.default)
def _broadcast_tensors(tensors: Any) -> Any:
    shape = list(importlib.import_module("rustgrad.functional").broadcast_shapes(*(tuple(t.shape) for t in tensors)))
    return [t if list(t.shape) == shape else run(aten.expand.default, t, shape) for t in tensors]


@part_of(aten.contiguous.default)
def _contiguous(self: Any, *, memory_format: Any = contiguous_format) -> Any:
    if self.is_contiguous(memory_format=memory_format):
        return self
    return run(aten.clone.default, self, memory_format=memory_format)


@part_of(aten.numpy_T.default)
def _numpy_t(self: Any) -> Any:
    return run(aten.permute.default, self, list(range(self.dim() - 1, -1, -1)))


@part_of(aten.mT.default)
def _m_t(self: Any) -> Any:
    return run(aten.transpose.int, self, -2, -1)


@part_of(aten.swapaxes.default, aten.swapdims.default)
def _swapaxes(self: Any, dim0: int, dim1: int) -> Any:
    return run(aten.transpose.int, self, dim0, dim1)


@part_of(aten.movedim.intlist, aten.movedim.int, aten.moveaxis.intlist, aten.moveaxis.int)
def _movedim(self: Any, source: Any, destination: Any) -> Any:
    sources, targets = ([v] if isinstance(v, int) else list(v) for v in (source, destination))
    order: list[int | None] = [None] * self.dim()
    for s, t in zip(sources, targets):
        order[_dim(self, t)] = _dim(self, s)
    rest = iter(d for d in range(self.dim()) if d not in order)
    return run(aten.permute.default, self, [next(rest) if d is None else d for d in order])


@part_of(aten.narrow.default)
def _narrow(self: Any, dim: int, start: int, length: int) -> Any:
    size = self.shape[_dim(self, dim)]
    begin = start + size if start < 0 else start
    if length < 0 or begin + length > size:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({size}).")
    return run(aten.slice.Tensor, self, dim, begin, begin + length)


@part_of(aten.chunk.default)
def _chunk(self: Any, chunks: int, dim: int = 0) -> Any:
    n = self.shape[_dim(self, dim)]
    if chunks <= 0 or n == 0:
        return NotImplemented
    return run(aten.split.Tensor, self, -(-n // chunks), dim)


@part_of(aten.split.sizes)
def _split_sizes(self: Any, sizes: Any, dim: int = 0) -> Any:
    return run(aten.split_with_sizes.default, self, list(sizes), dim)


# --- dtypes and devices


def converted(
    self: Tensor, copy: bool = False, memory_format: Any = None, non_blocking: bool = False, **named: Any
) -> Tensor:
    """A tensor of another dtype, or on another device; itself if it is as wanted."""
    wanted = {k: v for k, v in named.items() if v is not None and k in ("dtype", "device", "layout")}
    device = wanted.get("device")
    if device is not None:
        wanted["device"] = device = _C.device(device)
    changed = {k: v for k, v in wanted.items() if not _is(self, k, v)}
    given = {} if memory_format in (None, preserve_format) else {"memory_format": memory_format}
    if not copy and not changed and not given:
        return self
    if non_blocking:
        given["non_blocking"] = True
    return run(aten._to_copy.default, self, **changed, **given)


def _is(self: Tensor, name: str, value: Any) -> bool:
    found = getattr(self, name)
    if name != "device":
        return bool(found == value)
    return bool(found.type == value.type and value.index in (None, found.index or 0))


@part_of(aten.to.dtype)
def _to_dtype(self: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:
    return converted(self, copy, memory_format, non_blocking, dtype=dtype)


@part_of(aten.to.device)
def _to_device(self: Any, device: Any, dtype: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
    return converted(self, copy, memory_format, non_blocking, dtype=dtype, device=device)


@part_of(aten.to.dtype_layout)
def _to_layout(self: Any, *, dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: Any = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:  # fmt: skip
    return converted(self, copy, memory_format, non_blocking, dtype=dtype, device=device, layout=layout)


@part_of(aten.to.other)
def _to_other(self: Any, other: Any, non_blocking: bool = False, copy: bool = False, memory_format: Any = None) -> Any:
    return converted(self, copy, memory_format, non_blocking, dtype=other.dtype, device=other.device)


@part_of(aten.type_as.default)
def _type_as(self: Any, other: Any) -> Any:
    return converted(self, dtype=other.dtype, device=other.device)


# --- other names of ops, and small compositions

_SAME = {
    "true_divide": "div", "divide": "div", "multiply": "mul", "subtract": "sub", "absolute": "abs", "negative": "neg", "clip": "clamp",
    "greater": "gt", "greater_equal": "ge", "less": "lt", "less_equal": "le", "not_equal": "ne", "concat": "cat", "concatenate": "cat",
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "arctan2": "atan2", "fix": "trunc", "ger": "outer",
}  # fmt: skip


def _alias(name: str, target: str) -> None:
    from .._schema import overloads

    for end in ("", "_"):
        for overload in overloads(name + end):
            if overload in overloads(target + end):
                op = getattr(getattr(aten, target + end), overload)
                _table[getattr(getattr(aten, name + end), overload)] = lambda *a, _op=op, **k: dispatch(_op, a, k)


for _name, _target in _SAME.items():
    _alias(_name, _target)


def _bitwise(name: str) -> None:
    for overload in ("Tensor", "Scalar"):
        op = getattr(getattr(aten, f"bitwise_{name}"), overload)
        _table[getattr(getattr(aten, f"__{name}__"), overload)] = lambda *a, _op=op, **k: dispatch(_op, a, k)


for _name in ("and", "or", "xor"):
    _bitwise(_name)


@part_of(aten.square.default)
def _square(self: Any) -> Any:
    return run(aten.pow.Tensor_Scalar, self, 2)


@part_of(aten.positive.default, aten.resolve_conj.default, aten.resolve_neg.default)
def _itself(self: Any) -> Any:
    return self if not self.is_complex() and self.dtype != _C.bool else NotImplemented


def _deviation(name: str) -> None:
    correction = getattr(aten, name).correction

    def of_all(self: Any, unbiased: bool = True) -> Any:
        return run(correction, self, None, correction=1 if unbiased else 0)

    def of_dims(self: Any, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Any:
        return run(correction, self, dim, correction=1 if unbiased else 0, keepdim=keepdim)

    _table[getattr(aten, name).default], _table[getattr(aten, name).dim] = of_all, of_dims


for _name in ("std", "var", "std_mean", "var_mean"):
    _deviation(_name)


@part_of(aten.outer.default)
def _outer(self: Any, vec2: Any) -> Any:
    return run(aten.mul.Tensor, reshaped(self, [self.shape[0], 1]), vec2)


@part_of(aten.argsort.default)
def _argsort(self: Any, dim: int = -1, descending: bool = False) -> Any:
    return run(aten.sort.default, self, dim, descending)[1]


@part_of(aten.where.default)
def _where_true(condition: Any) -> Any:
    return list(run(aten.unbind.int, run(aten.nonzero.default, condition), 1))


@part_of(aten.repeat_interleave.self_Tensor)
def _repeat_interleave(self: Any, repeats: Any, dim: int | None = None, *, output_size: int | None = None) -> Any:
    flat = reshaped(self, [-1]) if dim is None else self
    at = 0 if dim is None else _dim(self, dim)
    if repeats.numel() == 1:
        repeats = run(aten.expand.default, reshaped(repeats, [1]), [flat.shape[at]])
    if repeats.dim() != 1 or repeats.shape[0] != flat.shape[at]:
        return NotImplemented
    places = run(aten.repeat_interleave.Tensor, repeats, output_size=output_size)
    return run(aten.index_select.default, flat, at, places)


@part_of(aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)
def _where(condition: Any, self: Any, other: Any) -> Any:
    tensors = [t for t in (self, other) if isinstance(t, Tensor)]
    kind = tensors[0].dtype if tensors else importlib.import_module("rustgrad").get_default_dtype()
    if any(isinstance(v, float) for v in (self, other)) and not kind.is_floating_point:
        return NotImplemented
    made = (
        v if isinstance(v, Tensor) else run(aten.scalar_tensor.default, v, dtype=kind, device=condition.device)
        for v in (self, other)
    )
    return run(aten.where.self, condition, *made)


@part_of(aten.tensordot.default)
def _tensordot(self: Any, other: Any, dims_self: Any, dims_other: Any) -> Any:
    one, two = ([_dim(t, d) for d in dims] for t, dims in ((self, dims_self), (other, dims_other)))
    rest_one, rest_two = ([d for d in range(t.dim()) if d not in dims] for t, dims in ((self, one), (other, two)))
    size = 1
    for d in one:
        size *= self.shape[d]
    left = reshaped(run(aten.permute.default, self, rest_one + one), [-1, size])
    right = reshaped(run(aten.permute.default, other, two + rest_two), [size, -1])
    return reshaped(
        run(aten.mm.default, left, right), [*(self.shape[d] for d in rest_one), *(other.shape[d] for d in rest_two)]
    )


@part_of(aten.hstack.default)
def _hstack(tensors: Any) -> Any:
    return (
        run(aten.cat.default, list(tensors), 0 if tensors[0].dim() < 2 else 1) if tensors[0].dim() else NotImplemented
    )


@part_of(aten.vstack.default)
def _vstack(tensors: Any) -> Any:
    rows = [run(aten.unsqueeze.default, t, 0) if t.dim() == 1 else t for t in tensors]
    return run(aten.cat.default, rows) if all(t.dim() for t in tensors) else NotImplemented


@part_of(aten.linalg_norm.default)
def _linalg_norm(self: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    one = dim is not None and len(dim) == 1
    if (ord is None and (dim is None or one)) or (one and ord == 2):
        return run(aten.linalg_vector_norm.default, self, 2, dim, keepdim, dtype=dtype)
    return NotImplemented
