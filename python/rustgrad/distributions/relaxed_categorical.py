"""Continuous relaxations of the categorical distribution."""

import math

import rustgrad as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(Distribution):
    """The logarithms of `RelaxedOneHotCategorical` samples (Maddison, Mnih and Teh, 2017)."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    # Samples lie on the submanifold where the exponentials sum to one.
    support = constraints.real_vector
    has_rsample = True
    _params = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new.temperature = self.temperature
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def param_shape(self):
        """The shape of the parameter: `batch_shape + (K,)`."""
        return self._categorical.param_shape

    @property
    def logits(self):
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self):
        """The probabilities of the categories."""
        return self._categorical.probs

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        return torch.log_softmax((self.logits - (-u.log()).log()) / self.temperature, -1)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        score = torch.log_softmax(logits - value * self.temperature, -1).sum(-1)
        return score + (k - 1) * self.temperature.log() + math.lgamma(k)


class RelaxedOneHotCategorical(TransformedDistribution):
    """A relaxation of `OneHotCategorical` to the simplex, closer to it at a smaller `temperature`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True
    _params = {}

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """Normalised log probabilities."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probabilities of the categories."""
        return self.base_dist.probs
