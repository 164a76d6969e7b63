"""Functions of two elements: the masks of two masked operands must be equal; other operands have none."""

from __future__ import annotations

from ... import _formats
from ... import _ops as _torch_ops
from ..._C import Tensor
from ...sparse._tensor import is_sparse
from ._gradients import Call, write
from ._parts import with_values
from .core import _masks_match, is_masked_tensor, refuse

__all__: list[str] = []

BINARY_NAMES = (
    "add atan2 arctan2 bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp "
    "logaddexp2 mul multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt less_equal lt less maximum "
    "minimum fmax fmin not_equal"
).split()
INPLACE_BINARY_NAMES = [
    f"{name}_" for name in BINARY_NAMES if name not in ("logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin")
]
# Other functions of two operands that have a rule.
MORE = (
    "copysign float_power gcd heaviside hypot igamma igammac isclose lcm ldexp logical_and logical_or logical_xor pow rsub xlogy "
    "special.gammainc special.gammaincc special.xlog1py special.xlogy special.zeta"
).split()

_aten = _torch_ops.ops.aten
NATIVE_BINARY_FNS = [getattr(_aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(_aten, name) for name in INPLACE_BINARY_NAMES]


def _operands(args, kwargs, name, call):
    """(operands as values, the masked one). ValueError: masks or layouts differ."""
    if len(args) == 1 and "other" in kwargs:
        args = (args[0], kwargs.pop("other"))
    if len(args) != 2:
        raise TypeError(f"{name}() takes 2 positional arguments but {len(args)} were given")
    masked = [a for a in args if is_masked_tensor(a)]
    if len(masked) == 2:
        first, second = (a._value.layout for a in masked)
        if first is not second:
            raise ValueError(f"`a` and `b` must have the same layout. Got {first} and {second}")
        if not _masks_match(*masked):
            raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    model = masked[0]
    return [_operand(a, model, name, call) for a in args], model


def _operand(a, model, name, call):
    if is_masked_tensor(a):
        return call.take(a)
    if not isinstance(a, Tensor):
        return a
    if model.layout is not _formats.strided:
        if a.dim() == 0:
            return a
        return (
            a.expand(model.shape).sparse_mask(model._value)._value
            if not is_sparse(a)
            else a.sparse_mask(model._value)._value
        )
    if is_sparse(a):
        refuse(name, " and a sparse tensor")
    if not a.requires_grad:
        return a
    from ... import broadcast_shapes

    return call.enter(a, model._mask.expand(broadcast_shapes(model.shape, a.shape)))


def binary(op, name):
    """The rule of a function of two operands, of which one is masked at least."""

    def rule(*args, **kwargs):
        call = Call()
        operands, model = _operands(args, kwargs, name, call)
        data, mask = with_values(model._value, op(*operands, **kwargs)), model._mask
        return call.give(data, (mask if mask.shape == data.shape else mask.expand(data.shape)).clone())

    return rule


def written(op, name):
    """The rule of a function that writes on the data of its first operand. TypeError: that one is not masked."""

    def rule(*args, **kwargs):
        if not is_masked_tensor(args[0]):
            raise TypeError(f"{name}: a dense tensor is not written from a masked one. Hint: see .to_tensor(value)")
        self = args[0]
        call = Call()
        (_, other), _ = _operands(args, kwargs, name, call)
        return write(self, op, call, other, **kwargs)

    return rule
