"""The negative binomial distribution."""

import rustgrad as torch

from ..nn.functional import logsigmoid
from . import constraints
from ._probs import _ByProbability
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(_ByProbability):
    """The number of successes, each of probability `probs`, before `total_count` failures."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    _params = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self._set_probability(None if validate_args is None else False, probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / torch.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        # Not validated: `total_count` may be zero.
        return Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=()):
        """A Poisson count whose rate is a gamma sample."""
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = torch.lgamma(n + value) - torch.lgamma(value + 1) - torch.lgamma(n)
        # Without any failure to wait for there are no successes.
        ways = ways.masked_fill(n + value == 0, 0)
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + ways
