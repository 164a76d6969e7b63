"""Multivariate normal distributions with a covariance of low rank plus a diagonal."""

import math

import rustgrad as torch

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of `I + W^T D^-1 W`, of order m, for W of shape [..., n, m] and D of [..., n]."""
    C = W.mT @ (W / D.unsqueeze(-1))
    return torch.linalg.cholesky(C + torch.eye(W.size(-1), dtype=W.dtype, device=W.device))


def _batch_lowrank_logdet(W, D, capacitance_tril):
    """`log det(W W^T + D)`, by the matrix determinant lemma."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """`x^T (W W^T + D)^-1 x`, by Woodbury's identity."""
    over = x / D
    return (x * over).sum(-1) - _batch_mahalanobis(capacitance_tril, _batch_mv(W.mT, over))


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors of length n with the covariance `W W^T + diag(cov_diag)`.

    `cov_factor`, W, has shape `[..., n, m]`; for m much smaller than n all costs are linear in n. `ValueError` if the
    shapes do not agree.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _params = {
        "loc": 1,
        "cov_factor": 2,
        "cov_diag": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
    }

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event}")
        try:
            batch = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as e:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from e
        self.loc, self.cov_diag = loc.expand(batch + event), cov_diag.expand(batch + event)
        self.cov_factor = cov_factor.expand(batch + cov_factor.shape[-2:])
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch, event, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._unbroadcasted_cov_factor = self._unbroadcasted_cov_factor
        new._unbroadcasted_cov_diag = self._unbroadcasted_cov_diag
        new._capacitance_tril = self._capacitance_tril

    def _whole(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape * 2)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self._unbroadcasted_cov_factor.square().sum(-1) + self._unbroadcasted_cov_diag
        return variance.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        # Of `I + D^-1/2 W W^T D^-1/2`, which is better conditioned than the covariance.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        W = self._unbroadcasted_cov_factor / root
        identity = torch.eye(self._event_shape[0], dtype=W.dtype, device=W.device)
        return self._whole(root * torch.linalg.cholesky(W @ W.mT + identity))

    @lazy_property
    def covariance_matrix(self):
        W = self._unbroadcasted_cov_factor
        return self._whole(W @ W.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self):
        D = self._unbroadcasted_cov_diag
        A = torch.linalg.solve_triangular(
            self._capacitance_tril, self._unbroadcasted_cov_factor.mT / D.unsqueeze(-2), upper=False
        )
        return self._whole(D.reciprocal().diag_embed() - A.mT @ A)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        of = {"dtype": self.loc.dtype, "device": self.loc.device}
        z = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **of)
        diagonal = self._unbroadcasted_cov_diag.sqrt() * _standard_normal(shape, **of)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, z) + diagonal

    def _log_det(self):
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_lowrank_mahalanobis(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, value - self.loc, self._capacitance_tril
        )
        return -(self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance) / 2

    def entropy(self):
        entropy = (self._event_shape[0] * (1 + math.log(2 * math.pi)) + self._log_det()) / 2
        return entropy.expand(self._batch_shape)
