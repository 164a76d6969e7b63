"""Functions of each element: the mask stays."""

from __future__ import annotations

from ... import _ops as _torch_ops
from ..._C import Tensor
from ._gradients import Call, write
from ._parts import with_values
from .core import is_masked_tensor

__all__: list[str] = []

UNARY_NAMES = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp clip "
    "conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan "
    "nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc"
).split()
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in ("angle", "isnan", "positive", "signbit")]
# Functions of one tensor that PyTorch's masked tensors have not, or have with further tensors.
UNARY_NAMES_UNSUPPORTED = (
    "atan2 arctan2 bitwise_left_shift bitwise_right_shift copysign float_power fmod frexp gradient imag ldexp lerp logical_not hypot "
    "igamma igammac mvlgamma nextafter polygamma real remainder true_divide xlogy"
).split()
# Other functions of one tensor that have a rule.
MORE = (
    "celu clamp_max clamp_min hardshrink isfinite isinf isneginf isposinf isreal logical_not mvlgamma relu rrelu selu threshold "
    "special.expit special.expm1 special.exp2 special.log1p special.logit special.round special.sinc special.entr special.erf special.erfc "
    "special.erfinv special.i0 special.ndtr special.ndtri special.log_ndtr nn.functional.celu nn.functional.elu nn.functional.gelu "
    "nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.leaky_relu nn.functional.logsigmoid "
    "nn.functional.mish nn.functional.relu nn.functional.relu6 nn.functional.selu nn.functional.sigmoid nn.functional.silu "
    "nn.functional.softplus nn.functional.softshrink nn.functional.softsign nn.functional.tanh nn.functional.tanhshrink "
    "nn.functional.threshold"
).split()

_aten = _torch_ops.ops.aten
NATIVE_UNARY_FNS = [getattr(_aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(_aten, name) for name in INPLACE_UNARY_NAMES]


def _check(args, kwargs):
    if not is_masked_tensor(args[0]) or any(isinstance(a, Tensor) for a in (*args[1:], *kwargs.values())):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")


def unary(op):
    """The rule of a function of each element."""

    def rule(*args, **kwargs):
        _check(args, kwargs)
        self, *others = args
        if kwargs.get("inplace") is True:
            return written(op)(*args, **kwargs)
        call = Call()
        return call.give(with_values(self._value, op(call.take(self), *others, **kwargs)), self._mask.clone())

    return rule


def written(op):
    """The rule of a function that writes on the data."""

    def rule(*args, **kwargs):
        _check(args, kwargs)
        return write(args[0], op, Call(), *args[1:], **kwargs)

    return rule
