"""`nn.functional`: the functions behind the modules.

Nearly all are ops of the table (`nn.functional.*`). The functions here need Python for their arguments
(warnings about an implicit dimension or about sizes), or are short compositions of ops.
"""

from __future__ import annotations

import warnings

from .._absent import getattr_of
from .._base import matmul, ops, sigmoid, tanh
from . import _pooling
from ._losses import (
    hinge_embedding_loss,
    huber_loss,
    l1_loss,
    legacy_reduction,
    margin_ranking_loss,
    mse_loss,
    poisson_nll_loss,
    smooth_l1_loss,
    soft_margin_loss,
)
from ._norms import batch_norm, group_norm, instance_norm, local_response_norm
from ._pooling import *  # noqa: F403

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._C import Tensor, dtype

__all__ = [
    "batch_norm",
    "bilinear",
    "group_norm",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "l1_loss",
    "legacy_reduction",
    "local_response_norm",
    "log_softmax",
    "margin_ranking_loss",
    "mse_loss",
    "poisson_nll_loss",
    "sigmoid",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "tanh",
]
__all__ += _pooling.__all__


def _implicit_dim(name, ndim, stacklevel):
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


_softmax = ops["softmax"]
_log_softmax = ops["log_softmax"]


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """exp(x) divided by its sum along `dim`; `dtype` casts the input first."""
    if dim is None:
        dim = _implicit_dim("softmax", input.dim(), _stacklevel)
    return _softmax(input, dim) if dtype is None else _softmax(input, dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """Logarithm of the softmax along `dim`; `dtype` casts the input first."""
    if dim is None:
        dim = _implicit_dim("log_softmax", input.dim(), _stacklevel)
    return _log_softmax(input, dim) if dtype is None else _log_softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtype | None = None) -> Tensor:
    """Softmax of -x along `dim`."""
    if dim is None:
        dim = _implicit_dim("softmin", input.dim(), _stacklevel)
    return softmax(-input, dim, dtype=dtype)


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1^T A x2 + b for each of the `weight.size(0)` matrices A; inputs `(*, in1)` and `(*, in2)`."""
    left = matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    output = matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return output if bias is None else output + bias


def _inplace(function):
    def wrapper(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    wrapper.__name__ = wrapper.__qualname__ = f"{function.__name__}_"
    wrapper.__doc__ = f"In-place form of `{function.__name__}`."
    wrapper.in_place_of = function
    return wrapper


def _fill_namespace(names):
    """Adds the ops of the table, unless a function above has the name, and in-place forms under their own names."""
    for name, op in ops.items():
        public = name.removeprefix("nn.functional.")
        if public != name and public[0] != "_":
            names.setdefault(public, op)
    for name in ("relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "threshold"):
        if name in names:
            names.setdefault(name + "_", _inplace(names[name]))
    names["__all__"] = sorted({*names["__all__"], *(n.removeprefix("nn.functional.") for n in ops if "nn.f" in n)})


_fill_namespace(globals())


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
