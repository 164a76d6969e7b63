"""The gamma distribution."""

import rustgrad as torch

from .. import _C
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Gamma"]


def _standard_gamma(concentration):
    return _C.ops["_standard_gamma"](concentration)


class Gamma(ExponentialFamily):
    """The gamma distribution of shape `concentration` and inverse scale `rate`.

    Samples have gradients in both parameters: the implicit ones of `_standard_gamma`.
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _params = {"concentration": 0, "rate": 0}

    def __init__(self, concentration, rate, validate_args=None):
        self._batched(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        # Not zero, whose logarithm is infinite.
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value):
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return torch.xlogy(a, rate) + torch.xlogy(a - 1, value) - rate * value - torch.lgamma(a)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self):
        a = self.concentration
        return a - self.rate.log() + torch.lgamma(a) + (1 - a) * torch.digamma(a)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())
