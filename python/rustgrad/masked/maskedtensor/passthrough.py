"""Ops that move elements, which do the same to data and mask."""

from __future__ import annotations

from ... import _C, _formats
from ... import _ops as _torch_ops
from ..._C import Tensor
from ._gradients import Call, adjoint_of
from .core import is_masked_tensor

__all__: list[str] = []

_NAMES = (
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat unsqueeze unfold "
    "unfold_backward im2col col2im stack"
).split()
PASSTHROUGH_FNS = [getattr(_torch_ops.ops.aten, name) for name in _NAMES]
FOLDS = ("nn.functional.unfold", "nn.functional.fold")


def _owned(part):
    """Results of masked tensors have memory of their own."""
    return part.clone() if part._base is not None else part


def _moved(self, op):
    """The result of a function of one tensor for data and mask; several are not told apart in backward."""
    call, data = Call(), self._value
    if data.layout is _formats.strided:
        data = call.take(self, adjoint_of(op, [self.shape]))
    data, mask = op(data), op(self._mask)
    if isinstance(data, (tuple, list)):
        return tuple(Call().give(_owned(d), _owned(m)) for d, m in zip(data, mask, strict=True))
    return call.give(_owned(data), _owned(mask))


def _has_masked(value):
    if isinstance(value, (tuple, list)):
        return any(map(_has_masked, value))
    return is_masked_tensor(value)


def move(op):
    """The rule of an op on one masked tensor. TypeError: another argument is masked, such as an index."""

    def rule(*args, **kwargs):
        self, *others = args
        as_model = op.__name__ in ("expand_as", "view_as", "reshape_as")
        if not is_masked_tensor(self) or (not as_model and _has_masked([others, list(kwargs.values())])):
            raise TypeError(
                f"{op.__name__}: expected one masked tensor and other arguments that have no mask. Hint: see .to_tensor(value)"
            )
        others = [a._value if is_masked_tensor(a) else a for a in others]
        return _moved(self, lambda t: op(t, *others, **kwargs))

    return rule


def join(op):
    """The rule of an op on a list of masked tensors. TypeError: one has no mask."""

    def rule(tensors, *args, **kwargs):
        for t in tensors:
            if not is_masked_tensor(t):
                raise TypeError(
                    f"{op.__name__}: expected masked tensors, got {_named(t)}. Hint: masked.as_masked_tensor(t, mask)"
                )

        def joined(parts):
            return op(parts if isinstance(parts, list) else [parts], *args, **kwargs)

        call, shapes = Call(), [t.shape for t in tensors]
        data = [
            t._value if t.layout is not _formats.strided else call.take(t, adjoint_of(joined, shapes, i))
            for i, t in enumerate(tensors)
        ]
        return call.give(joined(data), joined([t._mask for t in tensors]))

    return rule


def _named(t):
    return "a Tensor without a mask" if isinstance(t, Tensor) else type(t).__name__


def fold(op):
    """The rule of `unfold` and `fold`; the mask of a sum of patches is whether any of its elements is let through."""

    def rule(self, *args, **kwargs):
        def folded(t):
            return op(t, *args, **kwargs)

        call = Call()
        data = call.take(self, adjoint_of(folded, [self.shape]))
        if op.__name__ == "fold":
            data = data.masked_fill(~self._mask, 0)
        return call.give(folded(data), folded(self._mask.to(_C.float32)) > 0)

    return rule
