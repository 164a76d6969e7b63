"""The Gumbel distribution."""

import math

import rustgrad as torch

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import _common_shape, _finfo, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """The distribution of `loc - scale * log(-log(u))` for uniform u: the maximum of many samples."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    _params = {"loc": 0, "scale": 0}

    def __init__(self, loc, scale, validate_args=None):
        (self.loc, self.scale), shape = _common_shape(loc, scale)
        info = _finfo(self.loc)
        ends = torch.tensor([info.tiny, 1 - info.eps], dtype=self.loc.dtype, device=self.loc.device)
        base = Uniform(ends[0].expand(shape), ends[1].expand(shape), validate_args=validate_args)
        steps = [
            ExpTransform().inv,
            AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv,
            AffineTransform(loc=self.loc, scale=-self.scale),
        ]
        super().__init__(base, steps, validate_args=validate_args)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = (self.loc - value) / self.scale
        return z - z.exp() - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self):
        return self.stddev.square()

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
