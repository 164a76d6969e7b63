"""Low-rank decompositions by random projection: `svd_lowrank` and `pca_lowrank`.

Source: N. Halko, P. G. Martinsson, J. A. Tropp, "Finding structure with randomness" (2011), algorithms 4.4 and 5.1.
"""

from __future__ import annotations

from ._base import ops
from ._C import Tensor
from .overrides import overridable

__all__ = ["pca_lowrank", "svd_lowrank"]

_qr, _svd = ops["linalg.qr"], ops["linalg.svd"]


def _basis(matrix, adjoint, columns, passes):
    """Orthonormal columns that nearly span the range of a matrix, given as two products: with it and its adjoint."""
    q = _qr(matrix(columns)).Q
    for _ in range(passes):
        q = _qr(matrix(_qr(adjoint(q)).Q)).Q
    return q


def get_approximate_basis(A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None) -> Tensor:
    """`q` orthonormal columns that nearly span the range of `A - M`: see `svd_lowrank`."""
    A = A if M is None else A - M.broadcast_to(A.shape)
    start = ops["randn"](A.shape[-1], q, dtype=A.dtype, device=A.device)
    return _basis(A.matmul, A.mH.matmul, start, 2 if niter is None else niter)


@overridable
def svd_lowrank(A: Tensor, q: int = 6, niter: int = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V of a nearly optimal approximation `A - M = U diag(S) V^H` of rank `q`.

    Args:
        A (Tensor): matrices [.., m, n].
        q (int, optional): a little more than the rank of `A`.
        niter (int, optional): number of refinements of the random subspace.
        M (Tensor, optional): subtracted first, such as the means of columns; broadcasts to the shape of `A`.

    Returns:
        A tuple of U [.., m, q], S [.., q] and V [.., n, q].
    """
    m, n = A.shape[-2:]
    A = A if M is None else A - M.broadcast_to(A.shape)
    if m < n:
        u, s, v = svd_lowrank(A.mH, q, niter)
        return v, s, u
    basis = get_approximate_basis(A, 6 if q is None else q, niter)
    u, s, vh = _svd(basis.mH.matmul(A), full_matrices=False)
    return basis.matmul(u), s, vh.mH


@overridable
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of rows: `svd_lowrank` of `A`, centred by default.

    Args:
        A (Tensor): samples by features, [.., m, n].
        q (int, optional): number of components. Default: `min(6, m, n)`.
        center (bool): subtract the mean of each column.
        niter (int): number of refinements of the random subspace.

    Returns:
        A tuple of U [.., m, q], S [.., q] and V [.., n, q]; the columns of V are the directions.

    Raises:
        ValueError: `q` is negative or larger than a side of the matrix, or `niter` is negative.
    """
    m, n = A.shape[-2:]
    q = min(6, m, n) if q is None else q
    if not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter)


_svd_lowrank = svd_lowrank
