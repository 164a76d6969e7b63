"""The binomial distribution."""

import rustgrad as torch

from ..nn.functional import softplus
from . import constraints
from ._probs import _ByProbability

__all__ = ["Binomial"]


class Binomial(_ByProbability):
    """The number of successes in `total_count` trials, each of probability `probs`."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    _params = {"total_count": 0, "probs": 0, "logits": 0}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self._set_probability(None if validate_args is None else False, probs, logits, total_count=total_count)
        self.total_count = self.total_count.type_as(self._param)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.mean * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        ways = torch.lgamma(n + 1) - torch.lgamma(value + 1) - torch.lgamma(n - value + 1)
        return value * self.logits - n * softplus(self.logits) + ways

    def _one_count(self, what):
        most = int(self.total_count.max())
        if self.total_count.min() != most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return most

    def entropy(self):
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        most = self._one_count("enumerate_support")
        return self._enumerated(torch.arange(1 + most, dtype=self._param.dtype, device=self._param.device), expand)
