"""What the distributions share: broadcasting of parameters, probabilities and logits, lazy attributes."""

from __future__ import annotations

import functools
from numbers import Number

import rustgrad as torch

from .._base import Tensor

__all__ = [
    "broadcast_all",
    "clamp_probs",
    "lazy_property",
    "logits_to_probs",
    "probs_to_logits",
    "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]

euler_constant = 0.57721566490153286060


def _is_tensor(value):
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


def broadcast_all(*values: Tensor | Number) -> tuple[Tensor, ...]:
    """The values as tensors of one shape; numbers take dtype and device of the first tensor.

    Raises `ValueError` for a value that is neither a tensor nor a number.
    """
    for value in values:
        if not _is_tensor(value) and not isinstance(value, Number):
            raise ValueError(
                "Input arguments must all be instances of Number, torch.Tensor or objects implementing "
                f"__torch_function__; got {type(value).__name__}."
            )
    first = next((v for v in values if isinstance(v, Tensor)), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    device = None if first is None else first.device
    return torch.broadcast_tensors(
        *(v if _is_tensor(v) else torch.tensor(v, dtype=dtype, device=device) for v in values)
    )


def _common_shape(*values):
    """Broadcast tensors and the batch shape: empty where all values are numbers."""
    tensors = broadcast_all(*values)
    return tensors, torch.Size() if not any(map(_is_tensor, values)) else tensors[0].size()


def _standard_normal(shape, dtype, device):
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value, dim):
    """The sum over the last `dim` dimensions."""
    return value.flatten(-dim).sum(-1) if dim else value


def _finfo(tensor):
    return torch.finfo(tensor.dtype)


def _open_uniform(shape, like):
    """Uniform numbers strictly between zero and one."""
    info = _finfo(like)
    return torch.empty(shape, dtype=like.dtype, device=like.device).uniform_(info.tiny, 1).clamp(max=1 - info.eps / 2)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities moved into the open interval (0, 1), by the machine epsilon of their dtype."""
    eps = _finfo(probs).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds (`is_binary`), or of unnormalised log probabilities along the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """The inverse of `logits_to_probs`; probabilities of zero and one are clamped first."""
    inside = clamp_probs(probs)
    return inside.log() - torch.log1p(-inside) if is_binary else inside.log()


class lazy_property:
    """A method as an attribute that is computed on first use, with gradients enabled, and then kept."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        functools.update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return _LazyClassProperty(self.wrapped)
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class _LazyClassProperty(lazy_property, property):
    """What a class shows for a lazy property: documentation tools look for a `property`."""

    def __init__(self, wrapped):
        property.__init__(self, wrapped)


def _triangle(n, diag, device):
    """A mask of the elements on and below diagonal `diag` of an n by n matrix."""
    return torch.ones(n, n, dtype=torch.bool, device=device).tril(diag)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements on and below a diagonal of [..., n, n], row by row: [..., k]."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _triangle(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The inverse of `tril_matrix_to_vec`: [..., k] becomes [..., n, n], zero above the diagonal."""
    k, n = vec.shape[-1], abs(diag)
    count = lambda n: sum(min(max(i + diag + 1, 0), n) for i in range(n))
    while count(n) < k:
        n += 1
    if count(n) != k:
        raise ValueError(
            f"The size of last dimension is {k} which cannot be expressed as the lower triangular part of a square "
            "D x D matrix."
        )
    mat = vec.new_zeros(vec.shape[:-1] + (n, n))
    mat[..., _triangle(n, diag, vec.device)] = vec
    return mat
