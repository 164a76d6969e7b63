"""The multivariate normal distribution."""

import math

import rustgrad as torch

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(bmat, bvec):
    """Matrices times vectors, both batched."""
    return (bmat @ bvec.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(bL, bx):
    """`x^T (L L^T)^-1 x` for lower triangular L of shape [..., n, n] and x of [..., n]; batches broadcast."""
    batch = torch.broadcast_shapes(bL.shape[:-2], bx.shape[:-1])
    n = bx.size(-1)
    if bL.dim() == 2:
        # One matrix: all vectors are columns of one right-hand side.
        return torch.linalg.solve_triangular(bL, bx.reshape(-1, n).T, upper=False).square().sum(0).view(batch)
    return torch.linalg.solve_triangular(bL, bx.unsqueeze(-1), upper=False).square().sum((-2, -1))


def _precision_to_scale_tril(P):
    """The Cholesky factor of the inverse of P: by the factor of P with its rows and columns reversed."""
    reversed_factor = torch.linalg.cholesky(P.flip((-2, -1)))
    upper = reversed_factor.flip((-2, -1)).mT
    identity = torch.eye(P.shape[-1], dtype=P.dtype, device=P.device)
    return torch.linalg.solve_triangular(upper, identity, upper=False)


_FORMS = ("covariance_matrix", "precision_matrix", "scale_tril")


class MultivariateNormal(Distribution):
    """The normal distribution of vectors with mean `loc`.

    Exactly one of `covariance_matrix`, `precision_matrix` (its inverse) and `scale_tril` (its Cholesky factor) is given,
    of shape `[..., n, n]`; `scale_tril` costs least. `ValueError` otherwise.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _params = {"loc": 1, "covariance_matrix": 2, "precision_matrix": 2, "scale_tril": 2}

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        given = [p for p in zip(_FORMS, (covariance_matrix, precision_matrix, scale_tril)) if p[1] is not None]
        if len(given) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch + matrix.shape[-2:]))
        self.loc = loc.expand(batch + loc.shape[-1:])
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        if name == "covariance_matrix":
            matrix = torch.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _expand_rest(self, new, batch_shape):
        # One matrix serves the whole batch where the batch needs only one.
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def covariance_matrix(self):
        L = self._unbroadcasted_scale_tril
        return (L @ L.mT).expand(self._batch_shape + self._event_shape * 2)

    @lazy_property
    def precision_matrix(self):
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape * 2)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.square().sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()):
        z = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, z)

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -(self._event_shape[0] * math.log(2 * math.pi) + distance) / 2 - self._half_log_det()

    def entropy(self):
        entropy = self._event_shape[0] * (1 + math.log(2 * math.pi)) / 2 + self._half_log_det()
        return entropy.expand(self._batch_shape)
