"""Which elements of a gradient are masked out. The graph is that of the data, and its formulas take gradients as dense tensors, so the
masks go beside them: from each op that uses a masked tensor to the one that made it.

An op is recorded as `_In` for each operand, the formulas of the data, `_Out` for the result. In backward `_Out` takes the mask of the
result's gradient, which the `_In` of the ops that used the result have left in its slot, and `_In` makes the operand's of it.
"""

from __future__ import annotations

from ... import _C, _formats
from ..._C import ops
from ...autograd.function import Function
from ._parts import values
from .core import MaskedTensor, made


class Masked(MaskedTensor):
    """A gradient on its way: what the engine takes for a formula are its elements, zero where it is masked out."""

    def to_dense(self, *args, **kwargs):
        """The elements, zero where they are masked out."""
        return self.to_tensor(0)

    def _as_result(self):
        return made(self._value, self._mask)

    def _added(self, other):
        """The sum with another gradient; of two masked ones it has the elements that either lets through."""
        if not isinstance(other, MaskedTensor):
            return made(self.to_tensor(0) + other.to_dense(), self._mask, Masked)
        return made(self.to_tensor(0) + other.to_tensor(0), self._mask | other._mask, Masked)


class Slot:
    """Where the ops that use a masked tensor leave which elements of its gradient are let through."""

    mask = None

    def add(self, mask):
        """Lets more elements through."""
        self.mask = mask if self.mask is None else self.mask | mask

    def take(self):
        """The mask, which is forgotten; None if nobody left one."""
        mask, self.mask = self.mask, None
        return mask


class _In(Function):
    """The identity, with an expansion of dense data. The gradient is masked out where that of the result is."""

    @staticmethod
    def forward(ctx, data, mask, shape, call, adjoint, slot):
        ctx.mask, ctx.sizes, ctx.call, ctx.adjoint, ctx.slot = mask, data.shape, call, adjoint, slot
        return data.expand(shape)

    @staticmethod
    def backward(ctx, grad):
        mask, seen = ctx.mask, ctx.call.mask
        if seen is not None and ctx.adjoint is not None:
            mask = reduced(ctx.adjoint(seen), mask.shape) & mask
        # A masked-out element may have any gradient, also NaN.
        nothing = ops["zeros"]((), dtype=grad.dtype, device=grad.device)
        grad = ops["where"](mask, grad, nothing).sum_to_size(ctx.sizes)
        mask = reduced(mask, ctx.sizes)
        if ctx.slot is not None:
            ctx.slot.add(mask)
        return made(grad, mask, Masked), None, None, None, None, None


class _Out(Function):
    """The identity. The op learns which elements of the gradient are let through."""

    @staticmethod
    def forward(ctx, data, call):
        ctx.call = call
        return data.view_as(data)

    @staticmethod
    def backward(ctx, grad):
        found = ctx.call.slot.take()
        ctx.call.mask = ctx.call.default if found is None else found
        return grad, None


def reduced(mask, sizes):
    """Whether any of the elements that are added up to one of a smaller shape is let through."""
    extra = mask.dim() - len(sizes)
    wide = [i for i, n in enumerate(mask.shape) if i < extra or (n != 1 and sizes[i - extra] == 1)]
    return mask.any(wide, keepdim=True).reshape(sizes) if wide else mask


def same(mask):
    """The adjoint of an elementwise op."""
    return mask


def adjoint_of(op, shapes, at=0):
    """Which elements of an operand an op moves to elements that are let through.

    Args:
        op: moves elements: of tensors of these shapes in a list, or of one tensor.
        at (int): which operand.
    """

    def adjoint(mask):
        from ...autograd import enable_grad, grad

        with enable_grad():
            operands = [ops["zeros"](s, device=mask.device, requires_grad=True) for s in shapes]
            result = op(operands if len(operands) > 1 else operands[0])
        return grad(result, operands[at], mask.to(result.dtype))[0] != 0

    return adjoint


def write(self, op, call, *args, **kwargs):
    """Runs an op that writes on the data of a masked tensor, which is returned."""
    value = self._value
    if value.layout is not _formats.strided or value.is_leaf or not _C.is_grad_enabled():
        op(values(value), *args, **kwargs)
        return self
    # What `_Out` gave is not written in place.
    data = call.take(self).clone()
    op(data, *args, **kwargs)
    self._set(call.give(data, self._mask))
    return self


def data_of(masked):
    """The data for an op whose result is not masked: its gradient is masked out where the data is."""
    return masked._value if masked.layout is not _formats.strided else Call().take(masked, None)


class Call:
    """An op on masked tensors: `take` the data of each operand, compute, `give` the result. Every use of data in the graph is taken so."""

    def __init__(self):
        self.mask, self.default, self.slot = None, None, Slot()

    def take(self, masked, adjoint=same):
        """The data of a masked operand; of a sparse one its values.

        Args:
            adjoint: mask of the result's gradient -> that of the operand's; None if all that the operand lets through have one.
        """
        value = masked._value
        if value.layout is not _formats.strided:
            return value._value
        if not value.requires_grad or not _C.is_grad_enabled():
            return value
        return _In.apply(value, masked._mask, value.shape, self, adjoint, masked.__dict__.get("_slot"))

    def enter(self, data, mask, adjoint=same):
        """A dense operand, broadcast to the result.

        Args:
            mask (Tensor): of the result.
        """
        if not data.requires_grad or data.layout is not _formats.strided or not _C.is_grad_enabled():
            return data
        return _In.apply(data, mask, mask.shape, self, adjoint, None)

    def give(self, data, mask):
        """The result."""
        if not data.requires_grad or data.layout is not _formats.strided or not _C.is_grad_enabled():
            return made(data, mask)
        result = made(_Out.apply(data, self), mask)
        result._slot, self.default = self.slot, mask
        return result
