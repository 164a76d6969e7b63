"""`_foreach_*`: a function of each tensor of a list, as optimizers and averages of weights of programs call them.

They loop over the ops and fuse nothing. Those in place return the list that they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._base import Tensor, isfinite, maximum, ops, zeros_like

__all__: list[str] = []

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt "
    "sigmoid sign sin sinh sqrt tan tanh trunc"
)
# The methods behind functions of two lists, or of a list and a number, a list of numbers or a 0-d tensor.
_BINARY = {
    "add": "add",
    "clamp_max": "clamp_max",
    "clamp_min": "clamp_min",
    "div": "div",
    "maximum": "clamp_min",
    "minimum": "clamp_max",
    "mul": "mul",
    "pow": "pow",
    "sub": "sub",
}


def _tensors(name, given, argument="'self' (position 1)"):
    if not isinstance(given, (list, tuple)):
        raise TypeError(f"{name}(): argument {argument} must be tuple of Tensors, not {type(given).__name__}")
    if not given:
        raise RuntimeError(f"{name}: Tensor list must have at least one tensor.")
    return given


def _operands(name, tensors, other):
    """One operand for each tensor."""
    if isinstance(other, Tensor):
        if other.dim():
            raise RuntimeError(
                f"{name}: scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements."
            )
        return [other] * len(tensors)
    if not isinstance(other, (list, tuple)):
        return [other] * len(tensors)
    if len(other) != len(tensors):
        if other and not isinstance(other[0], Tensor):
            raise RuntimeError(f"{name}: Tensor list must have same number of elements as scalar list.")
        raise RuntimeError(
            f"{name}: Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
        )
    return other


def _zipped(name, self, *lists):
    tensors = _tensors(name, self)
    return zip(tensors, *(_operands(name, tensors, other) for other in lists), strict=True)


# The keywords of the arguments after the first: PyTorch's overloads differ in them, lists of tensors from numbers.
_KEYWORDS = {"mm": ("mat2",), "pow": ("exponent",), "lerp": ("tensors1", "weight weights")}


def _define(name, function, inplace):
    """`_foreach_name` by `function(tensor, ..)` of each tensor, and its form in place."""
    keywords = _KEYWORDS.get(name, ("other scalar scalars",) if name in _BINARY else ())

    def make(full, each, written):
        def foreach(self: Sequence[Tensor], *lists: Any, **options: Any) -> Any:
            for accepted in keywords[len(lists) :]:
                lists += tuple(options.pop(word) for word in accepted.split() if word in options)
            results = tuple(each(*items, **options) for items in _zipped(full, self, *lists))
            return self if written else results

        foreach.__name__ = foreach.__qualname__ = full
        foreach.__doc__ = f"`{each.__name__}` of each tensor of a list."
        globals()[full] = foreach

    if function is not None:
        make(f"_foreach_{name}", function, False)
    if inplace is not None:
        make(f"_foreach_{name}_", inplace, True)


for _name in _UNARY.split():
    _define(_name, getattr(Tensor, _name), getattr(Tensor, _name + "_"))
for _name, _method in _BINARY.items():
    _define(_name, getattr(Tensor, _method), getattr(Tensor, _method + "_"))
_define("clone", Tensor.clone, None)
_define("max", Tensor.max, None)
_define("mm", Tensor.mm, None)
_define("zero", zeros_like, Tensor.zero_)
_power: Callable[..., Any] = globals()["_foreach_pow"]


def _foreach_pow(self: Any, exponent: Any) -> tuple[Tensor, ...]:
    """`pow` of each tensor of a list, or of a number by each exponent of a list."""
    if isinstance(self, (list, tuple)):
        return _power(self, exponent)
    return tuple(ops["pow"](self, t) for t in _tensors("_foreach_pow", exponent, "'exponent' (position 2)"))


def _packed(name, scalars, count):
    """The numbers of a tensor that has one for each tensor of a list."""
    if scalars.dim() != 1:
        raise RuntimeError(f"{name}: Expected packed scalar Tensor to be of dimension 1. Got {scalars.dim()} instead.")
    if len(scalars) != count:
        raise RuntimeError(
            f"{name}: Expected length of scalars to match input of length {count} but got {len(scalars)} instead."
        )
    return scalars.tolist()


def _fused(name, scale):
    """`_foreach_addcmul` and its kin: `value` is a number, a list of numbers or a tensor of them."""

    def make(full, method, written):
        each = getattr(Tensor, method)

        def foreach(
            self: Sequence[Tensor], tensor1: Sequence[Tensor], tensor2: Any, value: Any = 1, *, scalars: Any = None
        ) -> Any:
            value = value if scalars is None else scalars
            if isinstance(value, Tensor):
                value = _packed(full, value, len(self))
            rows = _zipped(full, self, tensor1, tensor2, value)
            results = tuple(each(t, a, b, value=v) for t, a, b, v in rows)
            return self if written else results

        foreach.__name__ = foreach.__qualname__ = full
        foreach.__doc__ = f"Adds {scale} to each tensor of a list."
        globals()[full] = foreach

    make(f"_foreach_{name}", name, False)
    make(f"_foreach_{name}_", name + "_", True)


_fused("addcmul", "`value * tensor1 * tensor2`")
_fused("addcdiv", "`value * tensor1 / tensor2`")
_define("lerp", Tensor.lerp, Tensor.lerp_)


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The vector norm of each tensor of a list, over all its elements."""
    tensors = _tensors("_foreach_norm", self)
    return tuple(ops["_foreach_norm"]([t if dtype is None else t.to(dtype) for t in tensors], ord))


def _foreach_powsum(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    """The sum of the powers of the absolute values of each tensor of a list."""
    tensors = _tensors("_foreach_powsum", self)
    return tuple((t if dtype is None else t.to(dtype)).abs().pow(ord).sum() for t in tensors)


def _foreach_copy_(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> Sequence[Tensor]:
    """Copies each tensor of a list into that of another."""
    for tensor, source in _zipped("_foreach_copy_", self, _tensors("_foreach_copy_", src, "'src' (position 2)")):
        tensor.copy_(source, non_blocking)
    return self


def _foreach_copy(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> tuple[Tensor, ...]:
    """What `_foreach_copy_` would leave: each tensor of `src` in the shape and dtype of that of `self`."""
    return tuple(_foreach_copy_([tensor.clone() for tensor in _tensors("_foreach_copy", self)], src, non_blocking))


def _amp_foreach_non_finite_check_and_unscale_(self: Sequence[Tensor], found_inf: Tensor, inv_scale: Tensor) -> None:
    """Multiplies each tensor by `inv_scale`; `found_inf` becomes one if an element of any is infinite or NaN."""
    for tensor in self:
        found_inf.copy_(maximum(found_inf, (~isfinite(tensor)).any().to(found_inf)))
        tensor.mul_(inv_scale)


def _amp_update_scale_(
    self: Tensor,
    growth_tracker: Tensor,
    found_inf: Tensor,
    scale_growth_factor: float,
    scale_backoff_factor: float,
    growth_interval: int,
) -> Tensor:
    """Updates the scale of a gradient scaler: smaller after an overflow, larger after `growth_interval` steps without one."""
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.zero_()
        return self
    growth_tracker.add_(1)
    if growth_tracker.item() == growth_interval:
        grown = self * scale_growth_factor
        if isfinite(grown).item():
            self.copy_(grown)
        growth_tracker.zero_()
    return self
