"""The Wishart distribution."""

import math
import warnings
from numbers import Number

import rustgrad as torch

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _FORMS, _precision_to_scale_tril
from .utils import lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x, p):
    """The derivative of `mvlgamma`."""
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(ExponentialFamily):
    """The distribution of `sum_i x_i x_i^T` over `df` normal vectors x of length p and mean zero.

    Their covariance is given in exactly one of three ways, as in `MultivariateNormal`. `ValueError` unless `df > p - 1`.
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _params = {
        "df": 0,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_unbroadcasted_scale_tril": 2,
    }

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = [p for p in zip(_FORMS, (covariance_matrix, precision_matrix, scale_tril)) if p[1] is not None]
        if len(given) != 1:
            raise AssertionError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        ((name, matrix),) = given
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        event = matrix.shape[-2:]
        if isinstance(df, Number):
            df = torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch = torch.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        if (self.df <= event[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event[-1] - 1}.")
        if (self.df < event[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(batch + event))
        super().__init__(batch, event, validate_args=validate_args)
        if name == "covariance_matrix":
            matrix = torch.linalg.cholesky(matrix)
        elif name == "precision_matrix":
            matrix = _precision_to_scale_tril(matrix)
        self._unbroadcasted_scale_tril = matrix

    @property
    def _chi2(self):
        """The squares of the diagonal in Bartlett's decomposition."""
        return Chi2(
            self.df.unsqueeze(-1) - torch.arange(self._event_shape[0], dtype=self.df.dtype, device=self.df.device)
        )

    @lazy_property
    def scale_tril(self):
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        L = self._unbroadcasted_scale_tril
        return (L @ L.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        return torch.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    def _scaled(self, factor):
        return factor.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mean(self):
        return self._scaled(self.df)

    @property
    def mode(self):
        factor = self.df - self._event_shape[0] - 1
        return self._scaled(factor.masked_fill(factor <= 0, torch.nan))

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        spread = V.square() + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(self._batch_shape + (1, 1)) * spread

    def _bartlett(self, sample_shape):
        """`L A A^T L^T`, where A has chi-distributed numbers on and normal ones below its diagonal."""
        L = self._unbroadcasted_scale_tril
        eps = torch.finfo(L.dtype).eps
        below = torch.randn(self._extended_shape(sample_shape), dtype=L.dtype, device=L.device).tril(-1)
        A = below + self._chi2.rsample(sample_shape).sqrt().clamp(min=eps).diag_embed()
        factor = L @ A
        return factor @ factor.mT

    def rsample(self, sample_shape=(), max_try_correction=None):
        """Samples by Bartlett's decomposition; those that are singular by rounding are drawn again, a few times."""
        sample = self._bartlett(sample_shape)
        tries = 10 if max_try_correction is None else max_try_correction
        for _ in range(tries):
            good = self.support.check(sample)
            if good.all():
                break
            warnings.warn("Singular sample detected.", stacklevel=2)
            sample = torch.where(good[..., None, None], sample, self._bartlett(sample_shape))
        return sample

    def _half_log_scale(self):
        """Half of the log determinant of the covariance, and of a two for each dimension."""
        diagonal = self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1)
        return diagonal.log().sum(-1) + self._event_shape[0] * math.log(2) / 2

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        df, p = self.df, self._event_shape[0]
        trace = torch.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        power = (df - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet
        return power - trace / 2 - df * self._half_log_scale() - torch.mvlgamma(df / 2, p)

    def entropy(self):
        df, p = self.df, self._event_shape[0]
        scale = (p + 1) * self._half_log_scale() + torch.mvlgamma(df / 2, p)
        return scale - (df - p - 1) / 2 * _mvdigamma(df / 2, p) + df * p / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[0] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[0]
        half = y + (p + 1) / 2
        return half * (p * math.log(2) - torch.linalg.slogdet(-2 * x).logabsdet) + torch.mvlgamma(half, p)
