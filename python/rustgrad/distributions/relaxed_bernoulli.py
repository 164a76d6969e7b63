"""Continuous relaxations of the Bernoulli distribution."""

import rustgrad as torch

from ..nn.functional import softplus
from . import constraints
from ._probs import _ByProbability
from .transformed_distribution import TransformedDistribution
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs, probs_to_logits

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(_ByProbability):
    """The logits of `RelaxedBernoulli` samples (Maddison, Mnih and Teh, 2017)."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _params = {"probs": 0, "logits": 0}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        self._set_probability(validate_args, probs, logits)

    def _expand_rest(self, new, batch_shape):
        super()._expand_rest(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=probs.dtype, device=probs.device))
        return (probs_to_logits(u, True) + probs_to_logits(probs, True)) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        z = logits - value * self.temperature
        return self.temperature.log() + z - 2 * softplus(z)


class RelaxedBernoulli(TransformedDistribution):
    """A relaxation of `Bernoulli` to (0, 1), closer to it at a smaller `temperature`; samples have gradients."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _params = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Log odds."""
        return self.base_dist.logits

    @property
    def probs(self):
        """Probabilities."""
        return self.base_dist.probs
