"""Masked tensors: a subclass of `Tensor` that holds its elements and a mask of bools as ordinary or sparse tensors.

As with sparse tensors the object's own body is a *meta* tensor without memory, every op goes through the table of `_rules`, and the graph is
that of the data: see `docs/decisions/masked.md`.
"""

from __future__ import annotations

import warnings
from typing import Any, NoReturn

from ... import _C, _formats
from ..._C import Tensor, ops
from ...overrides import get_default_nowrap_functions as get_default_nowrap_functions
from ...sparse._convert import as_coo
from ...sparse._grads import Opaque
from ...sparse._protocols import others_decide
from . import _printing
from ._protocols import Protocols

__all__ = ["MaskedTensor", "is_masked_tensor"]

_DTYPES = (_C.float16, _C.float32, _C.float64, _C.bool, _C.int8, _C.int16, _C.int32, _C.int64)
_LAYOUTS = (_formats.strided, _formats.sparse_coo, _formats.sparse_csr)


def is_masked_tensor(obj: Any, /) -> bool:
    """Whether an object is a `MaskedTensor`."""
    return isinstance(obj, MaskedTensor)


def made(data, mask, cls=None):
    """A masked tensor of parts that belong together, which are not copied. TypeError: its dtype is none for masked tensors."""
    _check_dtype(data)
    body = ops["empty"](tuple(data.shape), dtype=data.dtype, device="meta")
    self = _C._as_subclass(body, cls or MaskedTensor)
    self._value, self._mask = data, mask
    return self


def _check_dtype(data):
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")


def checked(data, mask):
    """Data and mask that belong together; `sparse_coo` ones with the sorted, distinct indices of the mask.

    Raises:
        TypeError, ValueError: see `creation.masked_tensor`.
    """
    for name, part in (("data", data), ("mask", mask)):
        if not isinstance(part, Tensor) or is_masked_tensor(part):
            raise TypeError(f"{name} must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")
    if mask.dtype != _C.bool:
        raise TypeError("mask must have dtype bool.")
    _check_dtype(data)
    if data.layout is _formats.sparse_coo:
        # Of equal indices each lets its value through, so their sum is let through if one is.
        data, mask = data.coalesce(), mask.coalesce()
        data = data if data._nnz() == mask._nnz() else data.sparse_mask(mask)
    _check_indices(data, mask)
    return data, mask


def _check_indices(data, mask):
    if data.layout is _formats.strided:
        return
    alike = all(map(_tensors_match, data._pattern(), mask._pattern()))
    if not alike and data.layout is _formats.sparse_coo:
        raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
    if not alike:
        raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")


class MaskedTensor(Protocols, Opaque, Tensor):
    """A tensor some of whose elements are masked out: reductions leave them out, and they have no gradient.

    Args:
        data (Tensor): see `masked_tensor`.
        mask (Tensor): see `masked_tensor`.
        requires_grad (bool): see `masked_tensor`.
    """

    _value: Tensor
    _mask: Tensor

    def __new__(cls, data: Any, mask: Any, requires_grad: bool = False) -> Any:
        data, mask = checked(data, mask)
        if not isinstance(requires_grad, bool):
            raise TypeError(f"MaskedTensor: requires_grad must be bool, not {type(requires_grad).__name__}")
        if requires_grad and not data.dtype.is_floating_point:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. To avoid this, you can use "
                "data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        value = data.detach().clone()
        return made(value.requires_grad_() if requires_grad else value, mask.detach().clone(), cls)

    def __init__(self, data: Any, mask: Any, requires_grad: bool = False) -> None:
        pass

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from ._rules import call

        # Sparse tensors are operands.
        return NotImplemented if others_decide(types, Opaque) else call(func, args, kwargs or {})

    _masked_data = property(lambda self: self._value, doc="The data, with elements that are masked out.")
    _masked_mask = property(lambda self: self._mask, doc="The mask.")
    layout = property(lambda self: self._value.layout, doc="The layout of data and mask.")
    is_sparse = property(lambda self: self._value.layout is _formats.sparse_coo, doc="Whether they are `sparse_coo`.")
    _base = property(lambda self: None, doc="None: a masked tensor is no view.")
    T = property(lambda self: self.permute(*reversed(range(self.dim()))), doc="The dimensions in reversed order.")
    mT = property(lambda self: self.transpose(-2, -1), doc="The last two dimensions exchanged.")
    H = property(lambda self: self.t(), doc="A matrix transposed.")
    mH = property(lambda self: self.mT, doc="The last two dimensions exchanged.")
    real = property(lambda self: self, doc="The tensor itself: there are no complex ones.")

    def is_sparse_coo(self) -> bool:  # type: ignore[override]
        """Whether data and mask are of the layout `sparse_coo`."""
        return self._value.layout is _formats.sparse_coo

    def is_sparse_csr(self) -> bool:  # type: ignore[override]
        """Whether data and mask are of the layout `sparse_csr`."""
        return self._value.layout is _formats.sparse_csr

    def get_data(self) -> Tensor:
        """The data, with the elements that are masked out: it shares the memory and the history of the masked tensor."""
        from ._gradients import data_of

        return data_of(self)

    def get_mask(self) -> Tensor:
        """The mask, which is not copied."""
        return self._mask

    def to_tensor(self, value: Any) -> Tensor:
        """A dense tensor with `value` where elements are masked out, or not specified; it has the history of the masked tensor."""
        data, mask = self.get_data(), self._mask
        if data.layout is not _formats.strided:
            data, mask = data.to_dense(), mask.to_dense()
        return data.masked_fill(~mask, value)

    def _is_any_true(self) -> MaskedTensor:
        """Whether an element that is let through is True. ValueError: they are no bools."""
        from .reductions import is_any_true

        return is_any_true(self)

    @staticmethod
    def unary(fn: Any, data: Tensor, mask: Tensor) -> MaskedTensor:
        """`fn(data)` with a mask."""
        return MaskedTensor(fn(data), mask)

    def _set_data_mask(self, data: Tensor, mask: Tensor) -> None:
        """Takes other data and another mask, in place."""
        data, mask = checked(data, mask)
        self._set(made(data, mask))

    def _set(self, other):
        """Takes the parts of another masked tensor, in place."""
        if self.shape != other.shape or self.dtype != other.dtype:
            Tensor.data.__set__(self, ops["empty"](tuple(other.shape), dtype=other.dtype, device="meta"))
        self._value, self._mask = other._value, other._mask
        self.__dict__.pop("_held_grad", None)
        self._slot = other.__dict__.get("_slot")

    # --- the place in the graph ----------------------------------------------------------------------------------
    def _in_pattern(self, values):
        if values is None or is_masked_tensor(values):
            return values if values is None else values._as_result()
        if isinstance(self._value, Opaque):
            values = self._value._in_pattern(values)
        slot = self.__dict__.get("_slot")
        return made(values, self._mask if slot is None or slot.mask is None else slot.mask)

    def _aligned(self, other, what):
        """The values of a gradient of this tensor, masked or not."""
        if not isinstance(other, Tensor):
            raise TypeError(f"{what}: expected a Tensor or None, got {type(other).__name__}")
        if other.shape != self.shape:
            raise RuntimeError(f"{what}: expected a tensor of shape {tuple(self.shape)}, got {tuple(other.shape)}")
        if is_masked_tensor(other):
            other = other._value
        if isinstance(self._value, Opaque):
            return self._value._aligned(other, what)
        return other.to_dense() if isinstance(other, Opaque) else other

    def _as_gradient(self, values):
        made_of = self._in_pattern(values)
        slot = self.__dict__.get("_slot")
        if slot is not None:
            slot.take()
        return made_of

    def register_hook(self, hook: Any) -> Any:
        """Calls `hook(grad)` with the masked gradient; it may return another. Returns a removable handle."""
        from ._gradients import Masked

        def on_values(grad: Tensor) -> Any:
            given = hook(self._in_pattern(grad))
            if given is None or not is_masked_tensor(given) or isinstance(self._value, Opaque):
                return None if given is None else self._aligned(given, "register_hook")
            return made(given._value, given._mask, Masked)

        return self._value.register_hook(on_values)

    def _started(self, grad):
        """The gradient that backward begins with here."""
        slot = self.__dict__.get("_slot")
        if slot is not None:
            slot.add(grad._mask if is_masked_tensor(grad) else self._mask)
        return self._aligned(grad, "grad")

    def _all_elements(self):
        return self.to_tensor(0)

    def detach(self) -> Any:
        """The same mask and the memory of the data without history."""
        return made(self._value.detach(), self._mask)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return _printing.text(self)


def _get_data(a: Any) -> Any:
    """The data of a masked tensor; anything else as it is."""
    return a._value if is_masked_tensor(a) else a


def _maybe_get_mask(a: Any) -> Any:
    """The mask of a masked tensor; None of anything else."""
    return a._mask if is_masked_tensor(a) else None


def _tensors_match(a: Tensor, b: Tensor, exact: bool = True, rtol: float = 1e-05, atol: float = 1e-08) -> bool:
    """Whether two tensors have one shape and equal elements, or elements that `allclose` takes for equal.

    Raises:
        ValueError: they are of different layouts.
    """
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a is b:
        return True
    if a.shape != b.shape:
        return False
    if a.layout is not _formats.strided:
        a, b = (as_coo(t).coalesce() for t in (a, b))
        return all(_tensors_match(x, y, exact, rtol, atol) for x, y in ((a._index, b._index), (a._value, b._value)))
    if exact:
        return bool((a == b).all())
    return bool(ops["isclose"](a, b.to(a.dtype), rtol=rtol, atol=atol, equal_nan=True).all())


def _masks_match(a: Any, b: Any) -> bool:
    """Whether the masks of two masked tensors are equal; True where one has none."""
    if is_masked_tensor(a) and is_masked_tensor(b):
        return _tensors_match(a._mask, b._mask)
    return True


def refuse(name, where="") -> NoReturn:
    """The error for an op that has no rule, or none for some arguments, which `where` describes."""
    raise TypeError(
        f"torch._ops.aten.{name}.default: not implemented for MaskedTensor{where}. Hint: see .get_data(), .get_mask() and "
        ".to_tensor(value)."
    )
