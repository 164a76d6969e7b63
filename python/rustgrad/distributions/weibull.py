"""The Weibull distribution."""

import rustgrad as torch

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """The distribution of `scale * x^(1 / concentration)` for x exponential of rate one."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _params = {"scale": 0, "concentration": 0, "concentration_reciprocal": 0}

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(self.concentration_reciprocal), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    def _moment(self, k):
        """The k-th moment for scale one."""
        return torch.lgamma(1 + k * self.concentration_reciprocal).exp()

    @property
    def mean(self):
        return self.scale * self._moment(1)

    @property
    def mode(self):
        return self.scale * (1 - self.concentration_reciprocal) ** self.concentration_reciprocal

    @property
    def variance(self):
        return self.scale.square() * (self._moment(2) - self._moment(1).square())

    def entropy(self):
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1
