"""Categorical distributions over one-hot vectors."""

import rustgrad as torch

from ..nn.functional import one_hot
from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(Distribution):
    """A categorical distribution whose samples are one-hot vectors of length K; see `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True
    _params = {}

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._categorical = self._categorical.expand(batch_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self):
        return self._categorical._param

    @property
    def probs(self):
        """The probabilities."""
        return self._categorical.probs

    @property
    def logits(self):
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return one_hot(self.probs.argmax(-1), self._event_shape[0]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    @property
    def param_shape(self):
        """The shape of the parameter: `batch_shape + (K,)`."""
        return self._categorical.param_shape

    def sample(self, sample_shape=()):
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        rows = torch.eye(n, dtype=self._param.dtype, device=self._param.device)
        rows = rows.view((n, *(1,) * len(self._batch_shape), n))
        return rows.expand((n, *self._batch_shape, n)) if expand else rows


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same with samples whose gradient is that of the probabilities (Bengio, Leonard and Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - self.probs.detach())
