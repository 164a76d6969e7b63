"""The multinomial distribution."""

import rustgrad as torch

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(Distribution):
    """How often each of K categories is drawn in `total_count` draws; `probs` or `logits` as in `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _params = {"total_count": 0}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits, validate_args=validate_args)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._categorical = self._categorical.expand(batch_shape)
        new._binomial = self._binomial.expand(batch_shape + self._event_shape)

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def logits(self):
        """Normalised log probabilities."""
        return self._categorical.logits

    @property
    def probs(self):
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def param_shape(self):
        """The shape of the parameter: `batch_shape + (K,)`."""
        return self._categorical.param_shape

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        drawn = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = torch.zeros(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device)
        return counts.scatter_add_(-1, drawn, torch.ones_like(drawn, dtype=counts.dtype))

    def entropy(self):
        n = torch.tensor(self.total_count, dtype=self.probs.dtype, device=self.probs.device)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        # The counts of single categories are binomial.
        expected = (self._binomial.log_prob(counts).exp() * torch.lgamma(counts + 1)).sum([0, -1])
        return n * self._categorical.entropy() - torch.lgamma(n + 1) + expected

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        # A category without probability that was not drawn adds nothing.
        logits = logits.masked_fill((value == 0) & (logits == -torch.inf), 0)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return ways + (logits * value).sum(-1)
