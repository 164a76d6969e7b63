"""The von Mises distribution."""

import math

import rustgrad as torch

from . import constraints
from .distribution import Distribution
from .utils import lazy_property

__all__ = ["VonMises"]


class VonMises(Distribution):
    """The distribution of angles with the density `exp(concentration cos(x - loc)) / (2 pi I0(concentration))`.

    Samples lie in [-pi, pi). `mean` and `variance` are the circular ones.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _params = {"loc": 0, "concentration": 0}

    def __init__(self, loc, concentration, validate_args=None):
        self._batched(validate_args, loc=loc, concentration=concentration)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        k = self.concentration
        # `i0e` is scaled by exp(-k), which is taken out of the cosine too.
        return k * (torch.cos(value - self.loc) - 1) - math.log(2 * math.pi) - torch.special.i0e(k).log()

    @lazy_property
    def _proposal_r(self):
        """The parameter of the wrapped Cauchy proposal, in double precision."""
        k = self.concentration.double()
        tau = 1 + torch.sqrt(1 + 4 * k.square())
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return torch.where(k < 1e-5, 1 / k + k, (1 + rho.square()) / (2 * rho))

    def sample(self, sample_shape=()):
        """By rejection from wrapped Cauchy numbers (D. J. Best and N. I. Fisher, 1979)."""
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            r, k = self._proposal_r.expand(shape), self.concentration.double().expand(shape)
            angle = torch.zeros(shape, dtype=torch.float64, device=self.loc.device)
            pending = torch.ones(shape, dtype=torch.bool, device=self.loc.device)
            while pending.any():
                u1, u2, u3 = torch.rand((3, *shape), dtype=torch.float64, device=self.loc.device)
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                # Those that have a number get another one if it is accepted too, as in PyTorch.
                accepted = (c * (2 - c) > u2) | ((c / u2).log() + 1 >= c)
                angle = torch.where(accepted, (u3 - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                pending = pending & ~accepted
            turned = (angle + math.pi + self.loc.double()) % (2 * math.pi) - math.pi
            return turned.to(self.loc.dtype)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        k = self.concentration
        return 1 - torch.special.i1e(k) / torch.special.i0e(k)
