"""Initialisation of parameters in place, without recording a graph. Each function returns its tensor.

Sources: Glorot and Bengio 2010 (xavier), He et al. arXiv:1502.01852 (kaiming), Saxe et al. arXiv:1312.6120
(orthogonal).
"""

from __future__ import annotations

import math
import warnings

from .._absent import getattr_of
from .._base import empty_like, ops, randperm, where
from .._C import Generator, Tensor
from ..autograd.grad_mode import no_grad
from ..overrides import overridable_by_name

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = {"linear", "sigmoid"} | {f"conv{t}{d}d" for t in ("", "_transpose") for d in (1, 2, 3)}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The recommended gain for a nonlinearity: 1, 5/3 (tanh), sqrt(2) (relu), sqrt(2 / (1 + slope^2)), 3/4 (selu).

    Args:
        nonlinearity (str): its name in `nn.functional`.
        param (float, optional): the negative slope of `leaky_relu`, 0.01 by default.

    Raises:
        ValueError: an unknown name, or a slope that is not a number.
    """
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            param = 0.01
        elif isinstance(param, bool) or not isinstance(param, (int, float)):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + param**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@overridable_by_name
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor` from the uniform distribution on [a, b)."""
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


@overridable_by_name
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fills `tensor` from the normal distribution."""
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fills `tensor` from the normal distribution cut to [a, b] (values, not standard deviations), by rejection.

    Where [a, b] holds three tenths of the distribution, normal numbers that fall outside are drawn again; otherwise uniform
    numbers are accepted by their density relative to its maximum in [a, b].
    """
    if tensor.is_meta:
        return tensor
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def below(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    with no_grad():
        if below((b - mean) / std) - below((a - mean) / std) > 0.3:
            # As the dtype holds them.
            low, high = (tensor.new_tensor(x, device="cpu").item() for x in (a, b))
            result = tensor.normal_(mean, std, generator=generator)
            while (outside := (result < low) | (result > high)).any():
                result = where(outside, empty_like(result).normal_(mean, std, generator=generator), result)
        else:
            log_peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
            result, rejected = tensor.uniform_(a, b, generator=generator), None
            candidates = result.clone()
            while True:
                log_density = ((candidates - mean) / std).pow_(2).mul_(-0.5).sub_(log_peak)
                above = empty_like(tensor).uniform_(generator=generator).log_() > log_density
                rejected = above if rejected is None else rejected & above
                if not rejected.any():
                    break
                candidates = empty_like(tensor).uniform_(a, b, generator=generator)
                result = where(rejected, candidates, result)
        return tensor if result is tensor else tensor.copy_(result)


@overridable_by_name
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fills `tensor` with `val`."""
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fills `tensor` with ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fills `tensor` with zeros."""
    with no_grad():
        return tensor.zero_()


def eye_(tensor: Tensor) -> Tensor:
    """Makes a 2-d tensor the identity matrix; ValueError for other ranks."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return tensor.copy_(ops["eye"](*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Makes a 3-, 4- or 5-d convolution weight the identity on as many channels as possible."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = tensor.size(0) // groups
    centre = [size // 2 for size in tensor.shape[2:]]
    n = min(per_group, tensor.size(1))
    with no_grad():
        tensor.zero_()
        for group in range(groups):
            block = tensor[(slice(group * per_group, group * per_group + n), slice(0, n), *centre)]
            block.diagonal().fill_(1)
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    valid_modes = ["fan_in", "fan_out"]
    if mode not in valid_modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid_modes}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform in +-gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = gain * math.sqrt(2.0 / (fan_in + fan_out)) * math.sqrt(3.0)
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with standard deviation gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / (fan_in + fan_out)), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@overridable_by_name
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform in +-gain * sqrt(3 / fan), with `fan` by `mode` and `gain` by `nonlinearity` and slope `a`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with standard deviation gain / sqrt(fan), with `fan` by `mode` and `gain` by `nonlinearity`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Makes the rows or the columns of `tensor`, flattened to a matrix, orthonormal times `gain`.

    Raises:
        ValueError: fewer than 2 dimensions.
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    flat = tensor.new_empty((rows, tensor.numel() // rows)).normal_(0, 1, generator=generator)
    wide = flat.size(0) < flat.size(1)
    q, r = ops["linalg.qr"](flat.t() if wide else flat)
    # The signs of r make the distribution uniform (arXiv:math-ph/0609050).
    q = q * r.diagonal().sign()
    with no_grad():
        return tensor.copy_((q.t() if wide else q).reshape(tensor.shape)).mul_(gain)


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Normal values with a fraction `sparsity` of every column set to zero; 2-d only."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[randperm(rows, device=tensor.device)[:zeros], col] = 0
    return tensor


def _deprecated(function):
    old = function.__name__[:-1]

    def wrapper(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old}` is now deprecated in favor of `nn.init.{function.__name__}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    wrapper.__name__ = wrapper.__qualname__ = old
    wrapper.__doc__ = f"Deprecated name of `{function.__name__}`."
    return wrapper


for _function in (uniform_, normal_, constant_, eye_, dirac_, xavier_uniform_, xavier_normal_, kaiming_uniform_):
    globals()[_function.__name__[:-1]] = _deprecated(_function)
for _function in (kaiming_normal_, orthogonal_, sparse_):
    globals()[_function.__name__[:-1]] = _deprecated(_function)
del _function


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
