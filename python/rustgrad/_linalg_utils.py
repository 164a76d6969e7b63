"""Helpers of PyTorch's `lobpcg` and `svd_lowrank`: products in which a matrix may be None, bases, eigenvalues in order."""

from __future__ import annotations

from . import _removed
from ._base import Tensor, dtype, float32, ops

__all__: list[str] = []

# Functions that raise RuntimeError and name their replacement.
cholesky, eig, lstsq, matrix_rank, qr, solve, _symeig = (
    getattr(_removed, name) for name in ("cholesky", "eig", "lstsq", "matrix_rank", "qr", "solve", "symeig")
)


def is_sparse(A: Tensor) -> bool:
    """Whether a tensor is sparse, of layout COO.

    Raises:
        TypeError: it is no tensor.
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"expected Tensor but got {type(A)}")
    return str(A.layout) == "torch.sparse_coo"


def get_floating_dtype(A: Tensor) -> dtype:
    """The dtype of a tensor of floats; float32 of others."""
    return A.dtype if A.dtype.is_floating_point else float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """`A @ B`; B where A is None."""
    return B if A is None else A @ B


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """The bilinear form `X^T A Y`."""
    return X.mT @ matmul(A, Y)


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """The quadratic form `S^T A S`."""
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """Orthonormal columns that span those of A."""
    return ops["linalg.qr"](A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix in ascending order; in descending order if `largest`."""
    values, vectors = ops["linalg.eigh"](A)
    return (values.flip(-1), vectors.flip(-1)) if largest else (values, vectors)
