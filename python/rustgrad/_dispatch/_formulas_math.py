"""Gradients of elementwise ops, and of elements that are chosen."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .._C import Tensor
from .._ops import ops
from ._formulas import gradient_of, run

__all__: list[str] = []

aten = ops.aten


def _times(a: Any, b: Any) -> Any:
    return run(aten.mul.Tensor, a, b)


def _scaled(g: Any, factor: Any) -> Any:
    return g if factor == 1 else run(aten.mul.Scalar, g, factor)


# --- two operands


def _of_sum(sign: int) -> Callable[..., Any]:
    def formula(c: Any, g: Any) -> Any:
        found = {}
        if c.needs("self"):
            found["self"] = c.fitted("self", g)
        if c.needs("other"):
            turned = run(aten.neg.default, g) if sign < 0 else g
            found["other"] = c.fitted("other", _scaled(turned, c.alpha))
        return found

    return formula


gradient_of(aten.add.Tensor, aten.add.Scalar)(_of_sum(1))
gradient_of(aten.sub.Tensor, aten.sub.Scalar)(_of_sum(-1))


@gradient_of(aten.rsub.Scalar)
def _rsub(c: Any, g: Any) -> Any:
    return {"self": run(aten.neg.default, _scaled(g, c.alpha))}


def _conj(t: Any) -> Any:
    return run(aten.conj.default, t) if isinstance(t, Tensor) and t.dtype.is_complex else t


@gradient_of(aten.mul.Scalar)
def _mul_scalar(c: Any, g: Any) -> Any:
    other = c.other.conjugate() if isinstance(c.other, complex) else c.other
    return {"self": c.fitted("self", run(aten.mul.Scalar, g, other))}


@gradient_of(aten.mul.Tensor, saves="self other")
def _mul(c: Any, g: Any) -> Any:
    # As in PyTorch: by the names of the arguments.
    found = {}
    if c.needs("other"):
        found["other"] = c.fitted("other", _times(g, _conj(c.self_)))
    if c.needs("self"):
        found["self"] = c.fitted("self", _times(g, _conj(c.other)))
    return found


@gradient_of(aten.div.Tensor, aten.div.Scalar, saves="self other")
def _div(c: Any, g: Any) -> Any:
    found, other = {}, _conj(c.other)
    if c.needs("other"):
        quotient = run(aten.div.Tensor, run(aten.div.Tensor, _conj(c.self_), other), other)
        found["other"] = c.fitted("other", _times(run(aten.neg.default, g), quotient))
    if c.needs("self"):
        found["self"] = c.fitted("self", run(aten.div.Tensor, g, other))
    return found


@gradient_of(aten.maximum.default, aten.minimum.default, saves="self other result")
def _extreme(c: Any, g: Any) -> Any:
    half = run(aten.masked_fill.Scalar, g, run(aten.ne.Tensor, c.self_, c.other), 0)
    half = run(aten.div.Tensor, half, 2)
    found = {}
    for name, value in (("self", c.self_), ("other", c.other)):
        if c.needs(name):
            lost = run(
                aten.logical_or.default, run(aten.ne.Tensor, c.result, value), run(aten.eq.Tensor, c.self_, c.other)
            )
            found[name] = c.fitted(name, run(aten.add.Tensor, run(aten.masked_fill.Scalar, g, lost, 0), half))
    return found


@gradient_of(aten.where.self, saves="condition")
def _where(c: Any, g: Any) -> Any:
    zero = run(aten.zeros.default, [], dtype=g.dtype, device=g.device)
    found = {}
    if c.needs("self"):
        found["self"] = c.fitted("self", run(aten.where.self, c.condition, g, zero))
    if c.needs("other"):
        found["other"] = c.fitted("other", run(aten.where.self, c.condition, zero, g))
    return found


@gradient_of(aten.masked_fill.Scalar, aten.masked_fill.Tensor, saves="mask")
def _masked_fill(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        found["self"] = c.fitted("self", run(aten.masked_fill.Scalar, g, c.mask, 0))
    if c.needs("value"):
        inverse = run(aten.logical_not.default, c.mask)
        found["value"] = run(aten.sum.default, run(aten.masked_fill.Scalar, g, inverse, 0))
    return found


@gradient_of(aten.addcmul.default, saves="tensor1 tensor2")
def _addcmul(c: Any, g: Any) -> Any:
    found = {"self": c.fitted("self", g)} if c.needs("self") else {}
    for name, other in (("tensor1", c.tensor2), ("tensor2", c.tensor1)):
        if c.needs(name):
            found[name] = c.fitted(name, _scaled(_times(g, other), c.value))
    return found


@gradient_of(aten.lerp.Scalar)
def _lerp(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        found["self"] = c.fitted("self", run(aten.mul.Scalar, g, 1 - c.weight))
    if c.needs("end"):
        found["end"] = c.fitted("end", run(aten.mul.Scalar, g, c.weight))
    return found


# --- one operand


@gradient_of(aten.pow.Tensor_Scalar, saves="self")
def _pow(c: Any, g: Any) -> Any:
    if c.exponent == 0:
        return {"self": run(aten.zeros_like.default, g)}
    power = run(
        aten.pow.Tensor_Scalar, c.self_, c.exponent - 1.0 if not isinstance(c.exponent, complex) else c.exponent - 1
    )
    return {"self": c.fitted("self", _times(g, run(aten.mul.Scalar, power, float(c.exponent))))}


def _by(name: str, saves: str, formula: Callable[..., Any]) -> None:
    gradient_of(getattr(aten, name).default, saves=saves)(lambda c, g: {"self": formula(c, g)})


_by("neg", "", lambda c, g: run(aten.neg.default, g))
_by("exp", "result", lambda c, g: _times(g, c.result))
_by("exp2", "result", lambda c, g: run(aten.mul.Scalar, _times(g, c.result), 0.6931471805599453))
_by("expm1", "result", lambda c, g: _times(g, run(aten.add.Scalar, c.result, 1)))
_by("log", "self", lambda c, g: run(aten.div.Tensor, g, c.self_))
_by("log1p", "self", lambda c, g: run(aten.div.Tensor, g, run(aten.add.Scalar, c.self_, 1)))
_by("log2", "self", lambda c, g: run(aten.div.Tensor, g, run(aten.mul.Scalar, c.self_, 0.6931471805599453)))
_by("log10", "self", lambda c, g: run(aten.div.Tensor, g, run(aten.mul.Scalar, c.self_, 2.302585092994046)))
_by("sqrt", "result", lambda c, g: run(aten.div.Tensor, g, run(aten.mul.Scalar, c.result, 2)))
_by("rsqrt", "result", lambda c, g: _times(run(aten.mul.Scalar, g, -0.5), run(aten.pow.Tensor_Scalar, c.result, 3)))
_by("reciprocal", "result", lambda c, g: _times(run(aten.neg.default, g), _times(c.result, c.result)))
_by("sin", "self", lambda c, g: _times(g, run(aten.cos.default, c.self_)))
_by("cos", "self", lambda c, g: _times(g, run(aten.neg.default, run(aten.sin.default, c.self_))))
_by("abs", "self", lambda c, g: _times(g, run(aten.sgn.default, c.self_)))
_by("tanh", "result", lambda c, g: run(aten.tanh_backward.default, g, c.result))
_by("sigmoid", "result", lambda c, g: run(aten.sigmoid_backward.default, g, c.result))
_by("relu", "result", lambda c, g: run(aten.threshold_backward.default, g, c.result, 0))
_by("silu", "self", lambda c, g: run(aten.silu_backward.default, g, c.self_))
_by("mish", "self", lambda c, g: run(aten.mish_backward.default, g, c.self_))
_by("hardswish", "self", lambda c, g: run(aten.hardswish_backward.default, g, c.self_))
_by("hardsigmoid", "self", lambda c, g: run(aten.hardsigmoid_backward.default, g, c.self_))


@gradient_of(aten.gelu.default, saves="self")
def _gelu(c: Any, g: Any) -> Any:
    named = {} if c.approximate == "none" else {"approximate": c.approximate}
    return {"self": run(aten.gelu_backward.default, g, c.self_, **named)}


@gradient_of(aten.leaky_relu.default, saves="self")
def _leaky_relu(c: Any, g: Any) -> Any:
    return {"self": run(aten.leaky_relu_backward.default, g, c.self_, c.negative_slope, False)}


@gradient_of(aten.elu.default, saves="self")
def _elu(c: Any, g: Any) -> Any:
    return {"self": run(aten.elu_backward.default, g, c.alpha, c.scale, c.input_scale, False, c.self_)}


@gradient_of(aten.hardtanh.default, saves="self")
def _hardtanh(c: Any, g: Any) -> Any:
    return {"self": run(aten.hardtanh_backward.default, g, c.self_, c.min_val, c.max_val)}


@gradient_of(aten.threshold.default, saves="self")
def _threshold(c: Any, g: Any) -> Any:
    return {"self": run(aten.threshold_backward.default, g, c.self_, c.threshold)}


@gradient_of(aten.clamp.default, aten.clamp_min.default, aten.clamp_max.default, saves="self")
def _clamp(c: Any, g: Any) -> Any:
    low, high = (c._shapes.get(name) for name in ("min", "max"))
    kept = None
    if low is not None:
        kept = run(aten.ge.Scalar, c.self_, low)
    if high is not None:
        under = run(aten.le.Scalar, c.self_, high)
        kept = under if kept is None else run(aten.logical_and.default, kept, under)
    zero = run(aten.scalar_tensor.default, 0.0, dtype=g.dtype, device=g.device)
    return {"self": g if kept is None else run(aten.where.self, kept, g, zero)}


# --- more functions of one operand, and of two


def _minus(a: Any, b: Any) -> Any:
    return run(aten.sub.Tensor, a, b)


def _square(a: Any) -> Any:
    return run(aten.mul.Tensor, a, a)


def _one_plus(a: Any, sign: int = 1) -> Any:
    return run(aten.add.Scalar, a if sign > 0 else run(aten.neg.default, a), 1)


_by("tan", "result", lambda c, g: _times(g, _one_plus(_square(c.result))))
_by("atan", "self", lambda c, g: run(aten.div.Tensor, g, _one_plus(_square(c.self_))))
_by("asin", "self", lambda c, g: _times(g, run(aten.rsqrt.default, _one_plus(_square(c.self_), -1))))
_by(
    "acos",
    "self",
    lambda c, g: _times(run(aten.neg.default, g), run(aten.rsqrt.default, _one_plus(_square(c.self_), -1))),
)
_by("sinh", "self", lambda c, g: _times(g, run(aten.cosh.default, c.self_)))
_by("cosh", "self", lambda c, g: _times(g, run(aten.sinh.default, c.self_)))
_by("erf", "self", lambda c, g: _times(run(aten.mul.Scalar, g, 1.1283791670955126), run(aten.exp.default, run(aten.neg.default, _square(c.self_)))))  # fmt: skip
_by("log_sigmoid", "self", lambda c, g: _times(g, run(aten.sigmoid.default, run(aten.neg.default, c.self_))))


@gradient_of(aten.log_sigmoid_forward.default, saves="self")
def _log_sigmoid_forward(c: Any, g: Any) -> Any:
    return {"self": _times(g[0], run(aten.sigmoid.default, run(aten.neg.default, c.self_)))}


@gradient_of(aten.softplus.default, saves="self")
def _softplus(c: Any, g: Any) -> Any:
    return {"self": run(aten.softplus_backward.default, g, c.self_, c.beta, c.threshold)}


@gradient_of(aten.pow.Tensor_Tensor, saves="self exponent result")
def _pow_tensor(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        power = run(aten.pow.Tensor_Tensor, c.self_, run(aten.sub.Scalar, c.exponent, 1))
        made = _times(g, run(aten.masked_fill.Scalar, _times(c.exponent, power), run(aten.eq.Scalar, c.exponent, 0), 0))
        found["self"] = c.fitted("self", made)
    if c.needs("exponent"):
        made = _times(g, _times(c.result, run(aten.log.default, c.self_)))
        found["exponent"] = c.fitted("exponent", run(aten.masked_fill.Scalar, made, run(aten.eq.Scalar, c.self_, 0), 0))
    return found


@gradient_of(aten.pow.Scalar, saves="result")
def _pow_scalar(c: Any, g: Any) -> Any:
    return {"exponent": run(aten.mul.Scalar, _times(g, c.result), math.log(c.self_) if c.self_ > 0 else 0.0)}


@gradient_of(aten.addcdiv.default, saves="tensor1 tensor2")
def _addcdiv(c: Any, g: Any) -> Any:
    found = {"self": c.fitted("self", g)} if c.needs("self") else {}
    if c.needs("tensor1"):
        found["tensor1"] = c.fitted("tensor1", _scaled(run(aten.div.Tensor, g, c.tensor2), c.value))
    if c.needs("tensor2"):
        quotient = run(aten.div.Tensor, c.tensor1, _square(c.tensor2))
        found["tensor2"] = c.fitted("tensor2", _scaled(_times(run(aten.neg.default, g), quotient), c.value))
    return found


@gradient_of(aten.xlogy.Tensor, saves="self other")
def _xlogy(c: Any, g: Any) -> Any:
    found = {}
    if c.needs("self"):
        logarithm = run(aten.masked_fill.Scalar, run(aten.log.default, c.other), run(aten.eq.Scalar, c.self_, 0), 0)
        found["self"] = c.fitted("self", _times(g, logarithm))
    if c.needs("other"):
        found["other"] = c.fitted("other", run(aten.div.Tensor, _times(g, c.self_), c.other))
    return found


def _selected(c: Any, g: Any, indices: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of elements that were chosen along a dimension."""
    shape = list(c.shape("self").shape)
    if not shape:
        return g
    if not keepdim:
        g, indices = (run(aten.unsqueeze.default, t, dim) for t in (g, indices))
    return run(aten.scatter.src, run(aten.new_zeros.default, g, shape), dim, indices, g)


@gradient_of(aten.max.dim, aten.min.dim, aten.median.dim, saves="result1")
def _max_dim(c: Any, g: Any) -> Any:
    return {"self": _selected(c, g[0], c.result1, c.dim, c.keepdim)}


@gradient_of(aten.sort.default, aten.topk.default, saves="result1")
def _sort(c: Any, g: Any) -> Any:
    return {"self": _selected(c, g[0], c.result1, c.dim, True)}


@gradient_of(aten.amax.default, aten.amin.default, aten.max.default, aten.min.default, saves="self result")
def _amax(c: Any, g: Any) -> Any:
    dim, result = c._shapes.get("dim") or None, c.result
    keep = c._shapes.get("keepdim", False)
    if dim is not None and not keep:
        count = len(c.shape("self").shape)
        for d in sorted(d % count for d in ([dim] if isinstance(dim, int) else dim)):
            g, result = run(aten.unsqueeze.default, g, d), run(aten.unsqueeze.default, result, d)
    mask = run(aten._to_copy.default, run(aten.eq.Tensor, c.self_, result), dtype=g.dtype)
    total = run(aten.sum.default, mask) if dim is None else run(aten.sum.dim_IntList, mask, [dim] if isinstance(dim, int) else list(dim), True)  # fmt: skip
    return {"self": _times(mask, run(aten.div.Tensor, g, total))}


@gradient_of(aten.logsumexp.default, saves="self result")
def _logsumexp(c: Any, g: Any) -> Any:
    result, count = c.result, len(c.shape("self").shape)
    if not c.keepdim:
        for d in sorted(d % count for d in ([c.dim] if isinstance(c.dim, int) else c.dim)) if count else []:
            g, result = run(aten.unsqueeze.default, g, d), run(aten.unsqueeze.default, result, d)
    return {"self": _times(g, run(aten.exp.default, _minus(c.self_, result)))}


@gradient_of(aten.linalg_vector_norm.default, saves="self result")
def _vector_norm(c: Any, g: Any) -> Any:
    result, count = c.result, len(c.shape("self").shape)
    if not c.keepdim and c.dim is not None:
        for d in sorted(d % count for d in c.dim):
            g, result = run(aten.unsqueeze.default, g, d), run(aten.unsqueeze.default, result, d)
    if c.ord != 2:
        return {"self": _of_norm(c, g, result)}
    unit = run(aten.masked_fill.Scalar, run(aten.div.Tensor, c.self_, result), run(aten.eq.Scalar, result, 0), 0)
    return {"self": _times(unit, g)}


def _of_norm(c: Any, g: Any, result: Any) -> Any:
    """The gradient of a norm of another order than 2."""
    sign = run(aten.sgn.default, c.self_)
    if c.ord == 0:
        return run(aten.zeros_like.default, c.self_)
    if c.ord == 1:
        return _times(sign, g)
    size = run(aten.abs.default, c.self_)
    if c.ord in (float("inf"), -float("inf")):
        hit = run(aten.eq.Tensor, size, result)
        count = run(aten.sum.dim_IntList, hit, list(range(len(hit.shape))) if c.dim is None else list(c.dim), True)
        return _times(sign, run(aten.div.Tensor, _times(g, hit), count))
    power = run(aten.pow.Tensor_Scalar, size, c.ord - 1)
    scale = run(aten.div.Tensor, g, run(aten.pow.Tensor_Scalar, result, c.ord - 1))
    scale = run(aten.masked_fill.Scalar, scale, run(aten.eq.Scalar, result, 0), 0)
    if c.ord < 1:
        power = run(aten.masked_fill.Scalar, power, run(aten.eq.Scalar, size, 0), 0)
    return _times(_times(sign, power), scale)


for _name in ("ceil", "floor", "round", "trunc", "sign"):
    _by(_name, "", lambda c, g: run(aten.zeros_like.default, g))
