"""The categorical distribution."""

import rustgrad as torch

from . import constraints
from ._probs import _one_of
from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(Distribution):
    """An index of `0 .. K - 1`, where K is the last size of the parameter.

    `probs` are normalised to sum to one; `logits` are unnormalised log probabilities. `ValueError` unless exactly one
    of them is given, in at least one dimension.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _params = {"probs": 1, "logits": 1}

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._given = _one_of(probs, logits)
        value = logits if probs is None else probs
        if value.dim() < 1:
            raise ValueError(f"`{self._given}` parameter must be at least one-dimensional.")
        if probs is None:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        else:
            self.probs = probs / probs.sum(-1, keepdim=True)
        self._num_events = value.size(-1)
        super().__init__(value.size()[:-1], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._given, new._num_events = self._given, self._num_events

    @property
    def _param(self):
        return self.__dict__[self._given]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        return logits_to_probs(self.logits)

    @property
    def param_shape(self):
        """The shape of the parameter: `batch_shape + (K,)`."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    def _no_moment(self):
        return torch.full(self._extended_shape(), torch.nan, dtype=self.probs.dtype, device=self.probs.device)

    @property
    def mean(self):
        return self._no_moment()

    @property
    def mode(self):
        return self.probs.argmax(-1)

    @property
    def variance(self):
        return self._no_moment()

    def sample(self, sample_shape=()):
        count = torch.Size(sample_shape).numel()
        drawn = torch.multinomial(self.probs.reshape(-1, self._num_events), count, True).T
        return drawn.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        index, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, index[..., :1]).squeeze(-1)

    def entropy(self):
        # Finite, so that zero probabilities do not give NaN.
        logits = self.logits.clamp(min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return self._enumerated(torch.arange(self._num_events, device=self._param.device), expand)
