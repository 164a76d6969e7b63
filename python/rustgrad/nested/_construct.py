"""The constructors of nested tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .. import _C, _formats
from .._C import Tensor, ops
from .._C import dtype as _dtype
from .._formats import layout as _layout
from .._typing import DeviceLike
from ..autograd.grad_mode import no_grad
from ..overrides import overridable
from . import _shape, _strided
from ._ragged import ragged_of
from ._tensor import is_nested, jagged, strided

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _unsupported(layout) -> NoReturn:
    raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")


def _one(values, name):
    """What several tensors have in common. RuntimeError: they differ."""
    found = set(values)
    if len(found) > 1:
        raise RuntimeError(f"When constructing a nested tensor, all tensors in list must {name}")
    return found.pop()


def _offsets(counts, device):
    """Where sequences of some lengths begin, and the last ends."""
    ends = [0]
    for n in counts:
        ends.append(ends[-1] + n)
    return _C.tensor(ends, dtype=_C.int64, device=device)


def jagged_from_list(tensors, dtype=None, device=None):
    """A tensor of the layout `jagged` from sequences, with their history.

    Raises:
        RuntimeError: there are none, they differ in dtype, device or number of dimensions, or in more than one size.
    """
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    _one([t.dtype for t in tensors], "have the same dtype")
    _one([t.device for t in tensors], "be on the same device")
    if _one([t.dim() for t in tensors], "have the same dim") == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    unequal = [d for d, sizes in enumerate(zip(*(t.shape for t in tensors), strict=True)) if len(set(sizes)) > 1]
    if len(unequal) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
            "allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    at = unequal[0] if unequal else 0
    counts = [t.shape[at] for t in tensors]
    value = ops["cat"](tensors, at).to(device=device, dtype=dtype)
    return jagged(value, ragged_of(_offsets(counts, value.device), None, min(counts), max(counts)), at + 1)


def strided_from_list(tensors, dtype=None, device=None):
    """A tensor of the layout `strided` from components, with their history; of the first one's dtype by default."""
    for i, t in enumerate(tensors):
        if t.dim() != tensors[0].dim():
            raise RuntimeError(
                f"All Tensors given to nested_tensor must have the same dimension. Found dimension {t.dim()} for Tensor at "
                f"index {i} and dimension {tensors[0].dim()} for Tensor at index 0."
            )
    if not tensors:
        return strided(ops["zeros"]((0,), dtype=dtype, device=device), ())
    device = tensors[0].device if device is None else device
    dtype = tensors[0].dtype if dtype is None else dtype
    return _strided.from_components([t.to(device=device, dtype=dtype) for t in tensors])


_FROM_LIST = {_formats.strided: strided_from_list, _formats.jagged: jagged_from_list}


@overridable
def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: _dtype | None = None,
    layout: _layout | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A nested tensor with copies of some tensors, or of what `torch.tensor` takes: a leaf without history.

    Args:
        tensor_list (sequence): tensors with the same number of dimensions.
        dtype, device: of the values. Default: those of the tensors.
        layout: `strided` (the default), or `jagged`: the tensors then differ in one size at most.
        requires_grad (bool): whether gradients are recorded.
        pin_memory (bool): without effect.

    Raises:
        TypeError: `tensor_list` is no list or tuple.
        RuntimeError: the tensors do not fit together, or there is no such layout.
    """
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    make = _FROM_LIST.get(layout or _formats.strided) or _unsupported(layout)
    with no_grad():
        tensors = [t if isinstance(t, Tensor) else _C.tensor(t) for t in tensor_list]
        made = make(tensors, dtype, device)
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(
    ts: Any,
    dtype: _dtype | None = None,
    device: DeviceLike | None = None,
    layout: _layout | None = None,
) -> Tensor:
    """A nested tensor of some tensors with their history, or of the slices of a tensor along its first dimension.

    Args:
        ts (Tensor, list or tuple of Tensor): of at least two dimensions, if it is one tensor. A nested one is given back.
        dtype, device: of the values. Default: those of the tensors.
        layout: `strided` (the default) or `jagged`.

    Raises:
        TypeError: `ts` are no tensors.
        RuntimeError: as `nested_tensor`, or a nested tensor has another layout.
    """
    listed = isinstance(ts, (list, tuple)) and all(isinstance(t, Tensor) for t in ts)
    if not listed and not isinstance(ts, Tensor):
        raise TypeError("as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors ")
    if listed:
        make = _FROM_LIST.get(layout or _formats.strided) or _unsupported(layout)
        return make(list(ts), dtype, device)
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if is_nested(ts):
        if layout not in (None, ts.layout):
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(device=device, dtype=dtype)
    ts = ts.to(device=device, dtype=dtype)
    if layout in (None, _formats.strided):
        return strided(ts.reshape(-1), [ts.shape[1:]] * ts.shape[0])
    if layout is not _formats.jagged:
        _unsupported(layout)
    batch, length = ts.shape[:2]
    offsets = ops["arange"](batch + 1, device=ts.device) * length
    return jagged(ts.flatten(0, 1), ragged_of(offsets, None, length, length))


@overridable
def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A nested tensor of the layout `jagged` on given values: it shares their memory, and has their history.

    Args:
        values (Tensor): the sequences, one after another along the dimension `jagged_dim - 1`.
        offsets (Tensor): integers of shape (batch + 1): where each sequence begins, and the last ends.
        lengths (Tensor): of shape (batch): the lengths, where there are gaps; alone, instead of `offsets`, where there are none.
        jagged_dim (int): the ragged dimension of the result, 1 by default.
        min_seqlen, max_seqlen (int): the extreme lengths, if they are known.

    Raises:
        RuntimeError: neither offsets nor lengths are given, or they do not fit the values.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = ops["cat"]([lengths.new_zeros(1), lengths.cumsum(0)]), None
    if is_nested(values):
        raise RuntimeError("nested_tensor_from_jagged(): expected dense values, got a nested tensor")
    _check_parts(values, offsets, lengths)
    at = 1 if jagged_dim is None else jagged_dim
    if not 1 <= at <= values.dim():
        raise RuntimeError(
            f"nested_tensor_from_jagged(): expected jagged_dim from 1 to {values.dim()} for values of shape "
            f"{tuple(values.shape)}, got {at}"
        )
    return jagged(values.view_as(values), ragged_of(offsets, lengths, min_seqlen, max_seqlen), at)


def _check_parts(values, offsets, lengths):
    for name, given in (("offsets", offsets), ("lengths", lengths)):
        if given is None:
            continue
        if given.dim() != 1 or given.dtype not in (_C.int64, _C.int32):
            raise RuntimeError(
                f"{name}: expected a vector of integers, got shape {tuple(given.shape)} and {given.dtype}"
            )
        if given.device != values.device:
            raise RuntimeError(
                f"{name}: expected a tensor on the device of the values, {values.device}, got {given.device}"
            )
    if not offsets.shape[0]:
        raise RuntimeError("offsets: expected one element at least")
    if lengths is not None and lengths.shape[0] != offsets.shape[0] - 1:
        raise RuntimeError(f"lengths: expected {offsets.shape[0] - 1} elements, got {lengths.shape[0]}")


@overridable
def narrow(tensor: Tensor, dim: int, start: Any, length: Any, layout: _layout = _formats.strided) -> Tensor:
    """A range of each row of a dense tensor, as a nested tensor that shares its memory (`jagged`), or a copy (`strided`).

    Args:
        tensor (Tensor): of shape (batch, size, ...).
        dim (int): 1 for the layout `jagged`, 0 for `strided`.
        start, length (int or Tensor): of the ranges; of the layout `jagged` a tensor of shape (batch) also.

    Raises:
        RuntimeError: another dimension, types or layout.
    """
    for name, given in (("start", start), ("length", length)):
        if not isinstance(given, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is _formats.strided:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(tensor.unbind(), layout=layout).narrow(dim, start, length)
    if layout is not _formats.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    batch, size = tensor.shape[:2]
    start, length = (
        t.to(_C.int64) if isinstance(t, Tensor) else ops["full"]((), t, dtype=_C.int64, device=tensor.device)
        for t in (start, length)
    )
    if any(t.dim() > 1 or t.numel() not in (1, batch) for t in (start, length)):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to "
            "input.shape[0]"
        )
    start, length = start.expand(batch), length.expand(batch).contiguous()
    if bool((start < 0).any()) or bool((length < 0).any()) or bool((start + length > size).any()):
        raise RuntimeError(f"narrow(): expected ranges within the size {size} of dimension 1")
    begin = start + ops["arange"](batch, device=tensor.device) * size
    offsets = ops["cat"]([begin, (begin + length)[-1:] if batch else begin.new_zeros(1)])
    values = tensor.contiguous().flatten(0, 1)
    if bool((begin + length == offsets[1:]).all()):
        first, last = int(offsets[0]), int(offsets[-1])
        return jagged(values[first:last], ragged_of(offsets - first))
    return jagged(values, ragged_of(offsets, length))


@overridable
def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row where a mask is true, as a nested tensor of the layout `jagged`.

    Args:
        tensor (Tensor): of shape (batch, ..., size); dimensions before the last are one batch.
        mask (Tensor): bool, of a shape that broadcasts to that of `tensor`.

    Raises:
        RuntimeError: a tensor is not strided.
    """
    for what, one in (("tensor", tensor), ("mask", mask)):
        if one.layout is not _formats.strided or is_nested(one):
            raise RuntimeError(f"torch.nested.masked_select requires a strided {what}, given {one.layout}")
    counts = mask.expand(tensor.shape).sum(-1).reshape(-1)
    offsets = ops["cat"]([counts.new_zeros(1), counts.cumsum(0)])
    return jagged(tensor.masked_select(mask), ragged_of(offsets))


def to_padded_tensor(
    input: Tensor, padding: float, output_size: Sequence[int] | None = None, out: Tensor | None = None
) -> Tensor:
    """A dense tensor of shape (batch, ..., longest, ...) with the sequences of a nested one, and `padding` behind them.

    Args:
        output_size (sequence of int): its shape, where it is to be greater.

    Raises:
        RuntimeError: `input` is not nested, or `output_size` does not fit.
        NotImplementedError: `out` is given.
    """
    if not is_nested(input):
        raise RuntimeError("to_padded_tensor: expected a nested tensor")
    if out is not None:
        raise NotImplementedError("to_padded_tensor: no out= for nested tensors")
    module = _shape if input.layout is _formats.jagged else _strided
    return module.to_padded_tensor(input, padding, output_size)
