"""Kumaraswamy's distribution."""

import rustgrad as torch

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """The distribution on [0, 1] with `cdf(x) = 1 - (1 - x^concentration1)^concentration0`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _params = {"concentration1": 0, "concentration0": 0}

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        a, b = self.concentration1, self.concentration0
        base = Uniform(torch.zeros_like(b), torch.ones_like(b), validate_args=validate_args)
        steps = [PowerTransform(b.reciprocal()), AffineTransform(loc=1.0, scale=-1.0), PowerTransform(a.reciprocal())]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, n):
        """`E[x^n] = b B(1 + n / a, b)`."""
        arg, b = 1 + n / self.concentration1, self.concentration0
        return b * (torch.lgamma(arg) + torch.lgamma(b) - torch.lgamma(arg + b)).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        mode = (((a - 1) / (a * b - 1)).log() / a).exp()
        return mode.masked_fill((a < 1) | (b < 1), torch.nan)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1).square()

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return (1 - 1 / b) + (1 - 1 / a) * harmonic - a.log() - b.log()
