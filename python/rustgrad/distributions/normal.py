"""The normal distribution."""

import math

import rustgrad as torch

from . import constraints
from .exp_family import ExponentialFamily
from .utils import _standard_normal

__all__ = ["Normal"]


class Normal(ExponentialFamily):
    """The normal distribution of mean `loc` and standard deviation `scale`.

    `Normal(0.0, 1.0).log_prob(x)` is `-x^2 / 2 - log(2 pi) / 2`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
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
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale.square()

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=()):
        z = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + z * self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        return -z.square() / 2 - self.scale.log() - math.log(2 * math.pi) / 2

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (1 + torch.erf((value - self.loc) / (self.scale * math.sqrt(2)))) / 2

    def icdf(self, value):
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return self.scale.log() + (1 + math.log(2 * math.pi)) / 2

    @property
    def _natural_params(self):
        precision = self.scale.square().reciprocal()
        return self.loc * precision, -precision / 2

    def _log_normalizer(self, x, y):
        return -x.square() / (4 * y) + torch.log(-math.pi / y) / 2
