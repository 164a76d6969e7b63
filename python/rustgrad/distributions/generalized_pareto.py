"""The generalised Pareto distribution."""

import rustgrad as torch

from . import constraints
from .distribution import Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """The distribution of excesses, `cdf(x) = 1 - (1 + concentration z)^(-1 / concentration)`, `z = (x - loc) / scale`.

    Where `concentration` is zero it is exponential; where it is negative, the support ends at
    `loc - scale / concentration`.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True
    _params = {"loc": 0, "scale": 0, "concentration": 0}

    def __init__(self, loc, scale, concentration, validate_args=None):
        self._batched(validate_args, loc=loc, scale=scale, concentration=concentration)

    def _cases(self):
        """Where the concentration vanishes, and the concentration with ones there."""
        c = self.concentration
        none = torch.isclose(c, torch.zeros_like(c))
        return none, c.masked_fill(none, 1.0)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, x):
        return (x - self.loc) / self.scale

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z, (none, c) = self._z(value), self._cases()
        power = 1 / c + 1
        # For concentration -1, the uniform distribution, zero times an infinite logarithm.
        tail = torch.where(power == 0, power, power * torch.log1p(c * z))
        return -self.scale.log() - torch.where(none, z, tail)

    def log_survival_function(self, value):
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z, (none, c) = self._z(value), self._cases()
        return torch.where(none, -z, -torch.log1p(c * z) / c)

    def log_cdf(self, value):
        """The logarithm of `cdf`."""
        return torch.log1p(-self.log_survival_function(value).exp())

    def cdf(self, value):
        return -torch.expm1(self.log_survival_function(value))

    def icdf(self, value):
        none, c = self._cases()
        log_tail = torch.log1p(-value)
        return self.loc + self.scale * torch.where(none, -log_tail, torch.expm1(-c * log_tail) / c)

    @property
    def mean(self):
        c = self.concentration
        return (self.loc + self.scale / (1 - c)).masked_fill(c >= 1, torch.nan)

    @property
    def variance(self):
        c = self.concentration
        return (self.scale.square() / ((1 - c).square() * (1 - 2 * c))).masked_fill(c >= 0.5, torch.nan)

    def entropy(self):
        return self.scale.log() + self.concentration + 1

    @property
    def mode(self):
        return self.loc

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        c = self.concentration
        return constraints.interval(self.loc, torch.where(c < 0, self.loc - self.scale / c, torch.inf))
