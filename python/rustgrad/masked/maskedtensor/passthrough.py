"""Ops that move elements, which do the same to data and mask."""

from __future__ import annotations

from ... import _C
from ... import _ops as _torch_ops
from ..._C import Tensor
from .core import is_masked_tensor, made

__all__: list[str] = []

_NAMES = (
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat unsqueeze unfold "
    "unfold_backward im2col col2im stack"
).split()
PASSTHROUGH_FNS = [getattr(_torch_ops.ops.aten, name) for name in _NAMES]
# The functions that have a rule.
MOVES = (
    "select transpose swapaxes swapdims split split_with_sizes chunk t slice _slice expand expand_as view view_as reshape reshape_as "
    "flatten unflatten unsqueeze squeeze unfold permute movedim moveaxis narrow unbind flip fliplr flipud roll repeat tile index_select "
    "gather take_along_dim diagonal tril triu rot90 ravel atleast_1d atleast_2d atleast_3d adjoint broadcast_to __getitem__"
).split()
JOINS = "cat concat concatenate stack hstack vstack row_stack dstack".split()
FOLDS = ("nn.functional.unfold", "nn.functional.fold")


def _both(self, data, mask):
    """Masked tensors of the results of an op on data and mask. They have memory of their own, as all results of masked tensors."""
    if isinstance(data, (tuple, list)):
        return tuple(_both(self, d, m) for d, m in zip(data, mask, strict=True))
    return made(*(part.clone() if part._base is not None else part for part in (data, mask)))


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
            raise TypeError(f"{op.__name__}: expected one masked tensor and other arguments that have no mask. Hint: see .to_tensor(value)")
        others = [a._value if is_masked_tensor(a) else a for a in others]
        return _both(self, op(self._value, *others, **kwargs), op(self._mask, *others, **kwargs))

    return rule


def join(op):
    """The rule of an op on a list of masked tensors. TypeError: one has no mask."""

    def rule(tensors, *args, **kwargs):
        for t in tensors:
            if not is_masked_tensor(t):
                raise TypeError(f"{op.__name__}: expected masked tensors, got {_named(t)}. Hint: masked.as_masked_tensor(t, mask)")
        data, mask = (op([getattr(t, part) for t in tensors], *args, **kwargs) for part in ("_value", "_mask"))
        return made(data, mask)

    return rule


def _named(t):
    return "a Tensor without a mask" if isinstance(t, Tensor) else type(t).__name__


def fold(op):
    """The rule of `unfold` and `fold`; the mask of a sum of patches is whether any of its elements is let through."""

    def rule(self, *args, **kwargs):
        mask = op(self._mask.to(_C.float32), *args, **kwargs) > 0
        data = self._value
        if op.__name__ == "fold":
            data = data.masked_fill(~self._mask, 0)
        return made(op(data, *args, **kwargs), mask)

    return rule
