"""Elementwise rules: an op of the values, to which other operands are brought first."""

from __future__ import annotations

from .. import _formats
from .._C import Tensor, ops
from ._ragged import NestedInt
from ._shape import spread, unpadded
from ._tensor import is_nested, refuse, with_value

# Ops whose result at a place depends on their operands at that place alone. In-place forms follow.
NAMES = (
    "abs absolute acos acosh add addcdiv addcmul angle arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 "
    "atanh bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ceil celu clamp clamp_max clamp_min "
    "clip complex conj conj_physical copysign cos cosh deg2rad digamma div divide eq erf erfc erfinv exp exp2 expm1 fix float_power "
    "floor floor_divide fmax fmin fmod frac gcd ge greater greater_equal gt hardshrink heaviside hypot i0 igamma igammac "
    "imag isclose isfinite isinf isnan isneginf isposinf isreal lcm ldexp le lerp less less_equal lgamma log log10 log1p log2 logaddexp "
    "logaddexp2 logical_and logical_not logical_or logical_xor logit lt masked_fill maximum minimum mul multiply mvlgamma nan_to_num ne neg "
    "negative nextafter not_equal polar polygamma positive pow rad2deg real reciprocal relu remainder round rrelu rsqrt rsub selu sgn "
    "sigmoid sign signbit sin sinc sinh sqrt square sub subtract tan tanh threshold true_divide trunc where xlogy "
    "dropout alpha_dropout bernoulli fill frexp "
    "special.airy_ai special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.digamma special.entr special.erf "
    "special.erfc special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammainc special.gammaincc "
    "special.gammaln special.i0 special.i0e special.i1 special.i1e special.log1p special.log_ndtr special.logit "
    "special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1 "
    "special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.ndtr "
    "special.ndtri special.polygamma special.psi special.round special.sinc special.xlog1py special.xlogy special.zeta "
    "nn.functional.alpha_dropout nn.functional.celu nn.functional.dropout nn.functional.elu nn.functional.gelu nn.functional.hardshrink "
    "nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid "
    "nn.functional.mish nn.functional.relu nn.functional.relu6 nn.functional.rrelu nn.functional.selu nn.functional.sigmoid "
    "nn.functional.silu nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanh "
    "nn.functional.tanhshrink nn.functional.threshold"
).split()
# Ops that write alone.
WRITTEN = "zero_ normal_ uniform_ exponential_ random_ cauchy_ log_normal_ geometric_".split()
# Ops that make a tensor of the structure of another one.
LIKE = "empty_like zeros_like ones_like full_like rand_like randn_like randint_like".split()


_FORMATS = (None, _formats.preserve_format, _formats.contiguous_format)


def _mismatch(name, a, b):
    raise RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {_shown(a)} and {_shown(b)}"
    )


def _shown(t):
    return t._described() if is_nested(t) and t.layout is _formats.strided else tuple(t.shape)


def operand(model, other, name):
    """What the values of `model` are combined with: for a dense tensor, what lies beside each element."""
    if not isinstance(other, Tensor):
        if isinstance(other, NestedInt):
            raise RuntimeError(f"{name}: invalid argument: the size {other} of a ragged dimension is no number")
        return other
    if is_nested(other):
        if other.layout is not model.layout or not _fits(model, other):
            _mismatch(name, model, other)
        return other._value
    if other.dim() == 0:
        return other
    if model.layout is _formats.strided:
        raise RuntimeError("Expected both self and other to be nested, but got a nested self and non-nested other")
    return _beside(model, other, name)


def _fits(model, other):
    """Whether two nested tensors of a layout have the same sequences; other sizes may differ where one is 1."""
    if model.layout is _formats.strided:
        return model._sizes == other._sizes
    alike = model._ragged.size == other._ragged.size and model._ragged_idx == other._ragged_idx
    at = model._ragged_idx - 1
    return alike and model.dim() == other.dim() and model._value.shape[at] == other._value.shape[at]


def _beside(model, other, name):
    at, ragged = model._ragged_idx, model._ragged
    if other.dim() > model.dim():
        _mismatch(name, model, other)
    place = at - model.dim()  # of the ragged dimension, counted from the back
    if other.dim() < model.dim() or other.shape[0] == other.shape[at] == 1:
        if other.dim() >= -place and other.shape[place] != 1:
            _mismatch(name, model, other)
        return other[0] if other.dim() == model.dim() else other
    if other.shape[0] != ragged.batch or other.shape[at] not in (1, ragged.longest):
        _mismatch(name, model, other)
    if other.shape[at] == 1:
        rows = other.squeeze(at).index_select(0, ragged.segment)
    else:
        rows = unpadded(other, ragged, at)
    return spread(model, rows, 1).movedim(0, at - 1)


def pointwise(name, op=None):
    """The rule of an elementwise op, whose arguments are tensors and numbers in any order.

    Args:
        op: the function that was called: a method may have another order of arguments, such as that of `where`.
    """
    op = op or (ops[name] if name in ops else getattr(Tensor, name))
    shown = f"{name}.Tensor"

    def rule(*args, **kwargs):
        model = next(a for a in (*args, *kwargs.values()) if is_nested(a))
        if kwargs.pop("memory_format", None) not in _FORMATS or kwargs.pop("layout", model.layout) is not model.layout:
            raise RuntimeError(
                f"{name}: a nested tensor has no other layout, and no memory format but contiguous_format"
            )
        # A dense operand is brought to the largest nested one.
        for other in (*args, *kwargs.values()):
            if is_nested(other) and other._value.numel() > model._value.numel():
                model = other
        if kwargs.get("inplace") is True and name.startswith("nn."):
            return written(op, args, kwargs)
        if name == "where" and len(args) + len(kwargs) == 1:
            refuse("where without values", model.layout)
        args = [operand(model, a, shown) for a in args]
        kwargs = {key: operand(model, a, shown) for key, a in kwargs.items()}
        made = op(*args, **kwargs)
        if isinstance(made, tuple):
            return type(made)(_checked(model, one, name) for one in made)
        return _checked(model, made, name)

    return rule


def _checked(model, made, name):
    """The nested tensor of new values. RuntimeError: dense operands have given them another shape than has room for sequences."""
    place = slice(None) if model.layout is _formats.strided else model._ragged_idx - 1
    if made.dim() != model._value.dim() or made.shape[place] != model._value.shape[place]:
        raise RuntimeError(f"{name}: the result has the shape {tuple(made.shape)}, which is not that of the values")
    return with_value(model, made)


def written(op, args, kwargs):
    """Runs an op that writes on the values of its first argument, which is nested."""
    self, *others = args or (kwargs.pop("input"),)
    if not is_nested(self):
        raise RuntimeError(f"{op.__name__}: a dense tensor is not written from a nested one")
    others = [operand(self, a, op.__name__) for a in others]
    kwargs = {key: operand(self, a, op.__name__) for key, a in kwargs.items()}
    if self.layout is _formats.jagged and self._ragged.lengths is not None:
        refuse(f"{op.__name__} in place, with gaps between the sequences", self.layout)
    op(self._value, *others, **kwargs)
    return self


def copy_(self, src, non_blocking=False):
    """The elements of another nested tensor of the same structure. RuntimeError: the structures differ."""
    if not is_nested(self) or not is_nested(src):
        raise RuntimeError("copy_ only supports Nested tensors as self and src")
    if not self._same(src):
        raise RuntimeError(
            f"copy_ only supports tensors that are the same size for Nested implementations; got {_shown(self)} and {_shown(src)}"
        )
    self._value.copy_(src._value)
    return self
