"""The Fisher-Snedecor distribution."""

import rustgrad as torch

from . import constraints
from .distribution import Distribution
from .gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The F-distribution: the ratio of two chi-squared numbers, each over its degrees of freedom `df1`, `df2`."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _params = {"df1": 0, "df2": 0}

    def __init__(self, df1, df2, validate_args=None):
        self._batched(validate_args, df1=df1, df2=df2)
        self._set_gammas(self)

    @staticmethod
    def _set_gammas(to):
        to._gamma1, to._gamma2 = (Gamma(df / 2, df, validate_args=False) for df in (to.df1, to.df2))

    def _expand_rest(self, new, batch_shape):
        self._set_gammas(new)

    @property
    def mean(self):
        return (self.df2 / (self.df2 - 2)).masked_fill(self.df2 <= 2, torch.nan)

    @property
    def mode(self):
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return mode.masked_fill(self.df1 <= 2, torch.nan)

    @property
    def variance(self):
        m, n = self.df1, self.df2
        variance = 2 * n.square() * (m + n - 2) / (m * (n - 2).square() * (n - 4))
        return variance.masked_fill(n <= 4, torch.nan)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        x, y = (g.rsample(sample_shape).view(shape) for g in (self._gamma1, self._gamma2))
        tiny = torch.finfo(y.dtype).tiny
        return (x / y.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = self.df1 / 2, self.df2 / 2, self.df1 / self.df2
        scale = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b) + a * ratio.log()
        return scale + (a - 1) * value.log() - (a + b) * torch.log1p(ratio * value)
