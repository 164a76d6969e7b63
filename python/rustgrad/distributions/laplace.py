"""The Laplace distribution."""

import math

import rustgrad as torch

from . import constraints
from .distribution import Distribution

__all__ = ["Laplace"]


class Laplace(Distribution):
    """The distribution of density `exp(-|x - loc| / scale) / (2 scale)`."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _params = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None):
        self._batched(validate_args, loc=loc, scale=scale)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 2 * self.scale.square()

    @property
    def stddev(self):
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        # In (-1, 1): at an end the logarithm would be infinite.
        u = torch.empty(shape, dtype=self.loc.dtype, device=self.loc.device)
        u.uniform_(torch.finfo(u.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return -(value - self.loc).abs() / self.scale - (2 * self.scale).log()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return (1 - z.sign() * torch.expm1(-z.abs())) / 2

    def icdf(self, value):
        p = value - 0.5
        return self.loc - self.scale * p.sign() * torch.log1p(-2 * p.abs())

    def entropy(self):
        return 1 + (2 * self.scale).log()
