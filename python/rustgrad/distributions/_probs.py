"""Families whose parameter is given as probabilities or as logits: exactly one of them, the other follows from it."""

from __future__ import annotations

import rustgrad as torch

from .distribution import Distribution
from .utils import _common_shape, lazy_property, logits_to_probs, probs_to_logits


def _one_of(probs, logits):
    """The name of the one that is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return "logits" if probs is None else "probs"


class _ByProbability(Distribution):
    """A family with a probability of success, `probs`, or its log odds, `logits`, in each element."""

    def _set_probability(self, validate_args, probs, logits, **others):
        given = _one_of(probs, logits)
        values, batch_shape = _common_shape(logits if probs is None else probs, *others.values())
        self.__dict__.update(zip((given, *others), values))
        self._given = given
        Distribution.__init__(self, batch_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._given = self._given

    @property
    def _param(self):
        return self.__dict__[self._given]

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    def _log_failure(self):
        """The logarithm of the probability of failure."""
        return -torch.nn.functional.softplus(self.logits)
