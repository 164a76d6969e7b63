"""Ready-made parametrizations: `orthogonal`, `spectral_norm`, `weight_norm`."""

from __future__ import annotations

import enum
from typing import Any, TypeVar

from ..._base import (
    Tensor,
    add,
    cat,
    eye,
    geqrf,
    matrix_exp,
    mv,
    ops,
    randn,
    vdot,
    zeros_like,
)
from ..._dtype_info import finfo
from ..._functions import allclose
from ...autograd.grad_mode import no_grad
from ..modules.module import Module
from . import parametrize
from .spectral_norm import output_dim

_M = TypeVar("_M", bound=Module)

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

_normalize = ops["nn.functional.normalize"]
_householder_product, _solve = ops["linalg.householder_product"], ops["linalg.solve"]


def _tensor_of(module, name):
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _is_orthogonal(Q):
    identity = eye(Q.size(-1), dtype=Q.dtype, device=Q.device)
    return allclose(Q.mH @ Q, identity, atol=10.0 * Q.size(-2) * finfo(Q.dtype).eps)


def _make_orthogonal(A):
    """The factor Q of A = QR, for a tall A, whose R has a real and nonnegative diagonal."""
    X, tau = geqrf(A)
    return _householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _OrthMaps(enum.Enum):
    matrix_exp = enum.auto()
    cayley = enum.auto()
    householder = enum.auto()


class _Orthogonal(Module):
    """Maps matrices to matrices with orthonormal columns, or rows where there are fewer."""

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        # A complex Householder product has no real diagonal to take the signs from.
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def _of_skew(self, X, n, k):
        """The exponential or the Cayley transform of a skew-Hermitian matrix."""
        X = X.tril()
        if n != k:
            X = cat([X, X.new_zeros(n, n - k).expand(*X.shape[:-2], -1, -1)], dim=-1)
        A = X - X.mH
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            Q = matrix_exp(A)
        else:
            identity = eye(n, dtype=A.dtype, device=A.device)
            Q = _solve(add(identity, A, alpha=-0.5), add(identity, A, alpha=0.5))
        return Q if n == k else Q[..., :k]

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        n, k = X.size(-2), X.size(-1)
        if self.orthogonal_map is _OrthMaps.householder:
            A = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
            # The diagonal holds signs, which choose among the components of the orthogonal group.
            Q = _householder_product(A, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            Q = self._of_skew(X, n, k)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """The tensor that `forward` maps to `Q`, orthogonalised.

        Raises:
            ValueError: `Q` has another shape.
            NotImplementedError: the map has no inverse without trivialization.
        """
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        given = Q
        wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if wide else Q
        n, k = Q.size(-2), Q.size(-1)
        if not hasattr(self, "base"):
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = geqrf(Q)
            A.diagonal(dim1=-2, dim2=-1).sign_()
            # Where tau is zero the reflection is the identity: LAPACK and 2 / |v|^2 differ in its sign.
            A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
            return A.mT if wide else A
        if n != k:
            N = randn(*Q.shape[:-2], n, n - k, dtype=Q.dtype, device=Q.device)
            Q = _make_orthogonal(cat([Q, N], dim=-1))
        else:
            Q = Q.clone() if _is_orthogonal(Q) else _make_orthogonal(Q)
        self.base = Q
        # Every map sends -1 on the diagonal to the identity, so that the result is `base`.
        negative = zeros_like(given)
        negative.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return negative


def orthogonal(
    module: _M, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> _M:
    """Keeps a matrix, or a batch of them, orthogonal or unitary; returns the module.

    Args:
        name (str): name of the tensor, `(*, n, k)`.
        orthogonal_map (str, optional): "matrix_exp", "cayley" or "householder". By default "matrix_exp" for square and complex
            matrices, "householder" for others.
        use_trivialization (bool): whether it is the map times a fixed matrix (Lezcano Casado, arXiv:1909.09501), which
            allows assignment.

    Raises:
        ValueError: there is no such tensor, it has fewer than two dimensions, or the map is not known.
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    chosen = getattr(_OrthMaps, orthogonal_map, None)
    if chosen is None:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, chosen, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """A tensor as its lengths along `dim` and its direction."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return ops["_weight_norm"](weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """(lengths, direction)."""
        return ops["norm_except_dim"](weight, 2, self.dim), weight


def weight_norm(module: _M, name: str = "weight", dim: int | None = 0) -> _M:
    """Makes a tensor its length along `dim` (None: as a whole), `original0`, times its direction, `original1`.

    Source: Salimans and Kingma, arXiv:1602.07868. Returns the module, which also loads state dicts with `name_g` and `name_v`.
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    """A tensor divided by the largest singular value of its matrix, estimated by power iteration."""

    _u: Tensor
    _v: Tensor

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        # A vector is divided by its length, exactly.
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._matrix(weight)
            height, width = matrix.shape
            u = matrix.new_empty(height).normal_(0, 1)
            v = matrix.new_empty(width).normal_(0, 1)
            self.register_buffer("_u", _normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", _normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _matrix(self, weight):
        return weight.movedim(self.dim, 0).flatten(1)

    @no_grad()
    def _power_method(self, matrix, iterations):
        for _ in range(iterations):
            self._u.copy_(_normalize(mv(matrix, self._v), dim=0, eps=self.eps))
            self._v.copy_(_normalize(mv(matrix.mH, self._u), dim=0, eps=self.eps))

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return _normalize(weight, dim=0, eps=self.eps)
        matrix = self._matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies: a second forward before backward changes the vectors in place.
        u, v = self._u.clone(), self._v.clone()
        return weight / vdot(u, mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """`value` itself."""
        return value


def spectral_norm(
    module: _M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> _M:
    """Divides a tensor by its largest singular value, or a vector by its length; returns the module.

    Source: Miyato et al., arXiv:1802.05957. Each access in training mode does `n_power_iterations` steps of the power method.

    Args:
        eps (float): the least length that is divided by.
        dim (int, optional): the dimension of outputs, which are the rows of the matrix. Default: 0, and 1 for transposed
            convolutions.

    Raises:
        ValueError: there is no such tensor, or `n_power_iterations` is not positive.
        IndexError: `dim` is out of range.
    """
    weight = _tensor_of(module, name)
    dim = output_dim(module) if dim is None else dim
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


def __dir__() -> list[str]:
    return __all__
