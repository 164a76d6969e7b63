"""Student's t-distribution."""

import math

import rustgrad as torch

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """Student's t-distribution of `df` degrees of freedom, shifted by `loc` and scaled by `scale`."""

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _params = {"df": 0, "loc": 0, "scale": 0}

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df, validate_args=validate_args)
        super().__init__(self.df.size(), validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._chi2 = self._chi2.expand(batch_shape)

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        spread = self.scale.square() * self.df / (self.df - 2)
        return spread.masked_fill(self.df <= 2, math.inf).masked_fill(self.df <= 1, math.nan)

    def rsample(self, sample_shape=()):
        z = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * z * torch.rsqrt(self._chi2.rsample(sample_shape) / self.df)

    def _log_beta(self):
        """The logarithm of the beta function of 1 / 2 and df / 2."""
        return torch.lgamma(self.df / 2) + math.lgamma(0.5) - torch.lgamma((self.df + 1) / 2)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        tail = (self.df + 1) / 2 * torch.log1p(z.square() / self.df)
        return -tail - self.scale.log() - self.df.log() / 2 - self._log_beta()

    def entropy(self):
        half = (self.df + 1) / 2
        spread = half * (torch.digamma(half) - torch.digamma(self.df / 2))
        return spread + self.scale.log() + self.df.log() / 2 + self._log_beta()
