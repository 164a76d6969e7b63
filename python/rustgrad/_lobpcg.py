"""`lobpcg`: a few extreme eigenpairs of a symmetric matrix, by products with it.

Sources: A. V. Knyazev, "Toward the optimal preconditioned eigensolver" (2001); A. Stathopoulos and K. Wu, "A block
orthogonalization procedure with constant synchronization requirements" (2002); J. A. Duersch and others, "A robust and
efficient implementation of LOBPCG" (2018). The gradient is that of eigenpairs by perturbation theory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from . import _C
from ._base import Tensor, ops
from .autograd import Function, no_grad
from .overrides import overridable

__all__ = ["lobpcg"]

_EPSILON = {_C.float32: 1.2e-07, _C.float64: 2.23e-16}


def _floating(A):
    """The dtype of the eigenvalues: other dtypes fail in the first product."""
    return A.dtype if A.dtype.is_floating_point else _C.float32


@overridable
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[Any], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest (or smallest) eigenvalues of `A x = E B x` and their eigenvectors.

    Args:
        A (Tensor): symmetric matrices [.., m, m].
        k (int, optional): number of eigenpairs. Default: the columns of `X`, else 1.
        B (Tensor, optional): symmetric positive definite matrices [.., m, m]. Default: the identity.
        X (Tensor, optional): a first approximation of the eigenvectors [.., m, n]. Default: random numbers.
        n (int, optional): number of random columns. Default: `k`.
        iK (Tensor, optional): a preconditioner [.., m, m].
        niter (int, optional): maximum number of steps; -1 for no limit. Default: 1000.
        tol (float, optional): the relative residual of a converged pair. Default: the root of the dtype's epsilon.
        largest (bool, optional): the largest (the default) or the smallest eigenvalues.
        method (str, optional): 'ortho' (the default) orthonormalises the basis in each step; 'basic' factors its Gram
            matrix, which may fail with a LinAlgError.
        tracker (callable, optional): called in each step with the running `LOBPCG`.
        ortho_iparams, ortho_fparams, ortho_bparams (dict, optional): parameters of 'ortho': `ortho_i_max`, how often a
            block is made orthogonal to the others; `ortho_tol_drop`, below which relative length a direction is dropped.

    Returns:
        E [.., k] and X [.., m, k].

    Raises:
        AssertionError: `A` is not square.
        ValueError: `m` is less than three times `n`, or a gradient is required and `B` is given.
    """
    assert A.shape[-2] == A.shape[-1], f"A must be square, got shape {A.shape}"
    params = (n, iK, niter, tol, largest, method, tracker, ortho_iparams, ortho_fparams, ortho_bparams)
    if _C.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in (A, B)):
        symmetric = (A + A.mT) / 2
        return LOBPCGAutogradFunction.apply(symmetric, k, B if B is None else (B + B.mT) / 2, X, *params)
    return _batched(A, k, B, X, *params)


class LOBPCGAutogradFunction(Function):
    """Eigenpairs, differentiated as if they were exact."""

    @staticmethod
    def forward(
        ctx: Any, A: Tensor, k: Any, B: Tensor, X: Tensor, n: Any, iK: Any, niter: Any, tol: Any, *params: Any
    ) -> Any:
        # The gradient assumes exact pairs, so they are computed more accurately than the values alone require.
        tol = _EPSILON[A.dtype] ** 0.75 if tol is None else tol
        E, U = _batched(A, k, B, X, n, iK, niter, tol, *params)
        ctx.save_for_backward(A, E, U)
        ctx.generalised = B is not None
        return E, U

    @staticmethod
    def backward(ctx: Any, grad_values: Any, grad_vectors: Any) -> Any:
        A, E, U = ctx.saved_tensors
        if ctx.generalised:
            raise ValueError("lobpcg.backward: there is no gradient where B is given; expected B=None")
        # A value changes by u^T dA u; a vector by -(A - e)^+ dA u, which the other eigenvectors span.
        e, u = E[..., None, None], U.mT.unsqueeze(-1)
        outer = u * u.mT
        shifted = A.unsqueeze(-3) - e * ops["eye"](A.shape[-1], dtype=A.dtype) + outer * (A.norm() + 1)
        g = grad_vectors.mT.unsqueeze(-1)
        w = ops["linalg.solve"](shifted, g - outer.matmul(g))
        slope = (grad_values[..., None, None] * outer - (w - outer.matmul(w)) * u.mT).sum(-3)
        return ((slope + slope.mT) / 2, *[None] * 13)


def _batched(A, k, B, X, n, *rest):
    """The eigenpairs of each matrix of a batch."""
    n = (k or 1) if X is None and n is None else n if X is None else X.shape[-1]
    m, k = A.shape[-1], n if k is None else k
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if X is None:
        X = ops["randn"](*A.shape[:-1], n, dtype=_floating(A), device=A.device)
    with no_grad():
        if A.ndim == 2:
            return LOBPCG(A, k, B, X, *rest).run()
        count, shape = math.prod(A.shape[:-2]), A.shape[:-2]
        As, Xs = A.reshape(count, m, m), X.reshape(count, m, n)
        Bs = [None] * count if B is None else B.expand(A.shape).reshape(count, m, m)
        found = [LOBPCG(As[i], k, Bs[i], Xs[i], *rest).run() for i in range(count)]
        E, U = (ops["stack"](list(parts)) for parts in zip(*found, strict=True))
        return E.reshape(*shape, -1), U.reshape(*shape, m, -1)


class LOBPCG:
    """One run: its parameters, and the state, which a tracker may read, or stop by `bvars["force_stop"]`."""

    def __init__(
        self,
        A: Tensor,
        k: Any,
        B: Tensor,
        X: Tensor,
        iK: Tensor,
        niter: int,
        tol: Any,
        largest: Any,
        method: Any,
        tracker: Any,
        iparams: Any,
        fparams: Any,
        bparams: Any,
    ) -> None:
        epsilon = _EPSILON[_floating(A)]
        tol = epsilon**0.5 if tol is None else tol
        self.A, self.B, self.iK, self.X, self.method, self.tracker = A, B, iK, X, method or "ortho", tracker
        niter = 1000 if niter is None else niter
        self.iparams = {"m": A.shape[-1], "n": X.shape[-1], "k": k, "niter": niter, "ortho_i_max": 3, "ortho_j_max": 3}
        self.fparams = {"tol": tol, "ortho_tol": tol, "ortho_tol_drop": epsilon, "ortho_tol_replace": tol}
        self.bparams = {"largest": largest is None or largest, "ortho_use_drop": False}
        for own, given in ((self.iparams, iparams), (self.fparams, fparams), (self.bparams, bparams)):
            own.update(given or {})
        self.ivars = {"istep": 0, "converged_count": 0, "iterations_left": niter, "converged_end": 0}
        self.fvars, self.bvars, self.tvars = {}, {"force_stop": False}, {}
        self.E = self.R = self.S = self.P = None

    def run(self) -> None:
        """The eigenvalues, and the eigenvectors as columns."""
        n, steps, k = self.iparams["n"], self.ivars, self.iparams["k"]
        self._project(self._orthonormal(self.X, []))
        self._measure()
        while steps["iterations_left"] != 0 and steps["converged_count"] < k and not self.bvars["force_stop"]:
            steps["istep"] += 1
            steps["iterations_left"] -= 1
            W = self.R[:, steps["converged_count"] :]
            blocks = [self.X, *([] if self.P is None else [self.P]), W if self.iK is None else self.iK.matmul(W)]
            if self.method == "basic":
                self._project_basic(ops["cat"]([b / b.norm(dim=0) for b in blocks], 1))
            else:
                basis = blocks[0]
                for block in blocks[1:]:
                    basis = ops["cat"]([basis, self._orthonormal(block, [basis])], 1)
                self._project(basis)
            steps["converged_end"] = n + self.S.shape[1] - len(self.E)
            self._measure()
            if self.tracker is not None:
                self.tracker(self)
        return self.E[:k], self.X[:, :k]

    def _times_b(self, X):
        return X if self.B is None else self.B.matmul(X)

    def _orthonormal(self, block, others):
        """The directions that a block adds to bases, orthonormal under B. Directions that are too short are dropped."""
        for _ in range(self.iparams["ortho_i_max"]):
            for other in others:
                block = block - other.matmul(self._times_b(other).mT.matmul(block))
            lengths = (block * self._times_b(block)).sum(0)
            block = block[:, lengths > 0] * lengths[lengths > 0].rsqrt()
            values, turn = ops["linalg.eigh"](block.mT.matmul(self._times_b(block)))
            kept = values > self.fparams["ortho_tol_drop"] * values.numel()
            block = block.matmul(turn[:, kept] * values[kept].rsqrt())
        return block

    def _project(self, S):
        """The best eigenpairs within the span of an orthonormal basis."""
        values, vectors = ops["linalg.eigh"](S.mT.matmul(self.A.matmul(S)))
        self._choose(S, values, vectors)

    def _project_basic(self, S):
        """The same for any basis, by the Cholesky factor of its Gram matrix."""
        factor = ops["linalg.cholesky"](S.mT.matmul(self._times_b(S)))
        inverse = ops["linalg.inv"](factor)
        values, vectors = ops["linalg.eigh"](inverse.matmul(S.mT.matmul(self.A.matmul(S))).matmul(inverse.mT))
        self._choose(S, values, inverse.mT.matmul(vectors))

    def _choose(self, S, values, vectors):
        """The extreme pairs, and the directions in which the vectors moved from the first columns of the basis."""
        n = self.iparams["n"]
        if self.bparams["largest"]:
            values, vectors = values.flip(0), vectors.flip(1)
        self.S, self.E, Z = S, values[:n], vectors[:, :n]
        self.X = S.matmul(Z)
        if S.shape[1] > n:
            moved = S[:, n:].matmul(Z[n:])
            self.P = moved[:, moved.norm(dim=0) > 0]

    def _measure(self):
        """Residuals, and the number of leading pairs that have converged."""
        X, BX = self.X, self._times_b(self.X)
        self.R = self.A.matmul(X) - BX * self.E
        norms = {"X_norm": X.norm(), "A_norm": self.A.norm(), "B_norm": 1.0 if self.B is None else self.B.norm()}
        self.fvars.update({name: float(norm) for name, norm in norms.items()})
        scale = X.norm(dim=0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        self.tvars["rerr"] = self.R.norm(dim=0) / scale
        done = [bool(error < self.fparams["tol"]) for error in self.tvars["rerr"].tolist()]
        self.ivars["converged_count"] = done.index(False) if False in done else len(done)
