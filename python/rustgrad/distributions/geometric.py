"""The geometric distribution."""

import rustgrad as torch

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._probs import _ByProbability
from .utils import _open_uniform

__all__ = ["Geometric"]


class Geometric(_ByProbability):
    """The number of failures before the first success, of probability `probs`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer
    _params = {"probs": 0, "logits": 0}

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._set_probability(validate_args, probs, logits)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs[self.probs <= 0]}"
            )

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return torch.zeros_like(self.probs)

    @property
    def variance(self):
        return self.mean / self.probs

    def sample(self, sample_shape=()):
        with torch.no_grad():
            u = _open_uniform(self._extended_shape(sample_shape), self.probs)
            return (u.log() / torch.log1p(-self.probs)).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return torch.special.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
