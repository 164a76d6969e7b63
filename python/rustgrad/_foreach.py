"""`torch._foreach_*`: an op for each tensor of a list, under the private names that optimizers call.

A further operand is a number, a 0-d tensor, or a list with one of them for each tensor. Names that end with an underscore
write in place and return the list; the others return a tuple.
"""

from __future__ import annotations

from ._C import Tensor, ops

__all__ = []

_UNARY = (
    "abs acos asin atan ceil clone cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 max neg "
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc zero"
).split()
_BINARY = "add clamp_max clamp_min copy div maximum minimum mm mul pow sub".split()
_ONE_FORM = {"clone": "clone", "copy": "copy_", "max": "max", "mm": "mm", "zero": "zero_"}
# These take no numbers.
_LIMITS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _checked(tensors):
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _each(tensors, other):
    """What belongs to each tensor."""
    if isinstance(other, Tensor):
        if other.dim():
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements."
            )
        return [other] * len(tensors)
    if not isinstance(other, (list, tuple)):
        return [other] * len(tensors)
    if len(other) != len(tensors):
        if other and isinstance(other[0], Tensor):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(tensors)} and {len(other)}"
            )
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return other


def _mapped(op, in_place, tensors, *columns, **options):
    rows = zip(_checked(tensors), *(_each(tensors, column) for column in columns), strict=True)
    results = [op(*row, **options) for row in rows]
    return tensors if in_place else tuple(results)


def _unary(name, in_place):
    op = getattr(Tensor, name)

    def function(self, **options):
        return _mapped(op, in_place, self, **options)

    return function


def _binary(name, in_place):
    limit = _LIMITS.get(name.removesuffix("_"))
    by_number = getattr(Tensor, limit + "_" * in_place if limit else name)
    op = getattr(Tensor, name, by_number)

    def function(self, other, **options):
        if isinstance(self, (int, float, complex)) and name == "pow":
            return tuple(self**exponent for exponent in _checked(other))
        if name in ("copy_", "mm") and not (isinstance(other, (list, tuple)) and isinstance(other[0], Tensor)):
            raise TypeError(f"_foreach_{name}: expected a list of tensors as its second argument")
        numbers = limit and not isinstance(_each(_checked(self), other)[0], Tensor)
        return _mapped(by_number if numbers else op, in_place, self, other, **options)

    return function


def _ternary(name, in_place):
    op = getattr(Tensor, name)

    def function(self, tensor1, tensor2, value=1, *, scalars=None):
        value = value if scalars is None else scalars
        values = value.tolist() if isinstance(value, Tensor) and value.dim() else value
        return _mapped(lambda t, a, b, v: op(t, a, b, value=v), in_place, self, tensor1, tensor2, values)

    return function


def _lerp(name, in_place):
    op = getattr(Tensor, name)

    def function(self, tensors1, weight):
        return _mapped(op, in_place, self, tensors1, weight)

    return function


def _norm(self, ord=2, dtype=None):
    return _mapped(lambda t: ops["linalg.vector_norm"](t, ord, dtype=dtype), False, self)


def _powsum(self, ord=2, dtype=None):
    return _mapped(lambda t: (t if dtype is None else t.to(dtype)).abs().pow(ord).sum(), False, self)


def find(name):
    """The function of a name without its prefix; None if PyTorch has none of that name."""
    base, in_place = name.removesuffix("_"), name.endswith("_")
    if _ONE_FORM.get(base, name) != name:
        return None
    if name in ("norm", "powsum"):
        made = _norm if name == "norm" else _powsum
    elif base in _UNARY:
        made = _unary(name, in_place)
    elif base in _BINARY:
        made = _binary(name, in_place)
    elif base in ("addcdiv", "addcmul"):
        made = _ternary(name, in_place)
    elif base == "lerp":
        made = _lerp(name, in_place)
    else:
        return None
    made.__name__ = made.__qualname__ = f"_foreach_{name}"
    made.__module__ = __package__
    return made
