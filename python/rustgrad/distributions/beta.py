"""The beta distribution."""

from numbers import Real

import rustgrad as torch

from . import constraints
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """The distribution on [0, 1] with the density `x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B`."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _params = {}

    def __init__(self, concentration1, concentration0, validate_args=None):
        if isinstance(concentration1, Real) and isinstance(concentration0, Real):
            both = torch.tensor([float(concentration1), float(concentration0)])
        else:
            both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        Distribution.__init__(self, self._dirichlet._batch_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._dirichlet = self._dirichlet.expand(batch_shape)

    def _of_both(self, of):
        return of(self._dirichlet)[..., 0]

    @property
    def concentration1(self):
        """The exponent of x, plus one."""
        return self._of_both(lambda d: d.concentration)

    @property
    def concentration0(self):
        """The exponent of 1 - x, plus one."""
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._of_both(lambda d: d.mode)

    @property
    def variance(self):
        a, b = self.concentration1, self.concentration0
        return a * b / ((a + b).square() * (a + b + 1))

    def rsample(self, sample_shape=()):
        return self._of_both(lambda d: d.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._dirichlet.log_prob(torch.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1 - 1, self.concentration0 - 1

    def _log_normalizer(self, x, y):
        return torch.lgamma(x + 1) + torch.lgamma(y + 1) - torch.lgamma(x + y + 2)
