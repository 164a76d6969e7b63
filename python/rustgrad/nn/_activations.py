"""Activation functions written with other ops. `nn.functional` exports them; an op of the table wins.

Each is exact in value and gradient, the points where the branches meet included: the branch that
is not taken gets a harmless input (`_where_below`), so that no infinity times zero arises in the gradient.
"""

import warnings

from .._base import clamp, exp, expm1, log1p, logsumexp, ops, sigmoid, stack, tanh, where, zeros_like

_relu = ops["relu"]
_relu_ = ops.get("relu_")


def _finish(input, inplace, function):
    """`function(input)`, written into `input` if `inplace`; the graph then refers to a copy of the old values."""
    if not inplace:
        return function(input)
    return input.copy_(function(input.clone()))


def _below(input, limit):
    """`input` where it is at most `limit`, and 0 elsewhere."""
    return where(input > limit, zeros_like(input), input)


def relu(input, inplace=False):
    """max(0, x), element by element."""
    if inplace:
        return _relu_(input) if _relu_ is not None else input.relu_()
    return _relu(input)


def threshold(input, threshold, value, inplace=False):
    """x where x > threshold, else `value`."""
    return _finish(input, inplace, lambda x: where(x <= threshold, value, x))


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """min_val below, max_val above, x between; the gradient is 0 at both ends."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _finish(input, inplace, lambda x: where(x <= min_val, min_val, where(x >= max_val, max_val, x)))


def relu6(input, inplace=False):
    """min(max(0, x), 6)."""
    return hardtanh(input, 0.0, 6.0, inplace)


def elu(input, alpha=1.0, inplace=False):
    """x where x > 0, else alpha * (exp(x) - 1)."""
    return _finish(input, inplace, lambda x: where(x > 0, x, expm1(_below(x, 0)) * alpha))


def selu(input, inplace=False):
    """scale * elu(x, alpha) with the constants of arXiv:1706.02515."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return _finish(input, inplace, lambda x: elu(x, alpha) * scale)


def celu(input, alpha=1.0, inplace=False):
    """x where x > 0, else alpha * (exp(x / alpha) - 1)."""
    return _finish(input, inplace, lambda x: where(x > 0, x, expm1(_below(x, 0) / alpha) * alpha))


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """x where x > 0, else negative_slope * x."""
    return _finish(input, inplace, lambda x: where(x > 0, x, x * negative_slope))


def silu(input, inplace=False):
    """x * sigmoid(x)."""
    return _finish(input, inplace, lambda x: x * sigmoid(x))


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta * x)) / beta, and x where beta * x > threshold."""
    scaled = input * beta
    return where(scaled > threshold, input, log1p(exp(_below(scaled, threshold))) / beta)


def mish(input, inplace=False):
    """x * tanh(softplus(x))."""
    return _finish(input, inplace, lambda x: x * tanh(softplus(x)))


def logsigmoid(input):
    """log(sigmoid(x)) = -log(exp(0) + exp(-x))."""
    return -logsumexp(stack([zeros_like(input), -input]), 0)


def hardsigmoid(input, inplace=False):
    """clamp(x + 3, 0, 6) / 6."""
    return _finish(input, inplace, lambda x: hardtanh(x + 3, 0.0, 6.0) / 6)


def hardswish(input, inplace=False):
    """x * clamp(x + 3, 0, 6) / 6."""
    return _finish(input, inplace, lambda x: x * clamp(x + 3, 0, 6) / 6)


def hardshrink(input, lambd=0.5):
    """x where |x| > lambd, else 0."""
    return where(input.abs() <= lambd, zeros_like(input), input)


def softshrink(input, lambd=0.5):
    """x moved towards 0 by lambd, and 0 where |x| <= lambd."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return where(input > lambd, input - lambd, where(input < -lambd, input + lambd, input * 0))


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def tanhshrink(input):
    """x - tanh(x)."""
    return input - tanh(input)


def glu(input, dim=-1):
    """a * sigmoid(b), where a and b are the halves of `input` along `dim`."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}")
    half = size // 2
    return input.narrow(dim, 0, half) * sigmoid(input.narrow(dim, half, half))


def _implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _softmax_like(name):
    op = ops.get("nn.functional." + name) or ops[name]

    def function(input, dim=None, _stacklevel=3, dtype=None):
        if dim is None:
            dim = _implicit_dim(name, input.dim(), _stacklevel)
        return op(input, dim) if dtype is None else op(input, dim, dtype=dtype)

    function.__name__ = function.__qualname__ = name
    return function


softmax = _softmax_like("softmax")
softmax.__doc__ = "exp(x) divided by its sum along `dim`; `dtype` casts the input first."
log_softmax = _softmax_like("log_softmax")
log_softmax.__doc__ = "Logarithm of the softmax along `dim`; `dtype` casts the input first."


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """Softmax of -x along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)
