"""Distributions of transformed samples."""

import rustgrad as torch

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of `t_n(.. t_1(x))` for samples x of `base_distribution`.

    `transforms` is one transform or a list. Densities follow by the change of variables:
    `log p(y) = log p(x) - log |dy/dx|`. `ValueError` if the base has too few dimensions for the transforms.
    """

    arg_constraints = {}
    _params = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        whole = ComposeTransform(self.transforms)
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dims = len(base_distribution.event_shape)
        needs, gives = whole.domain.event_dim, whole.codomain.event_dim
        if len(base_shape) < needs:
            raise ValueError(f"base_distribution needs to have shape with size at least {needs}, but got {base_shape}.")
        shape = torch.Size(whole.forward_shape(base_shape))
        widened = torch.Size(whole.inverse_shape(shape))
        if base_shape != widened:
            base_distribution = base_distribution.expand(widened[: len(widened) - base_dims])
        if needs > base_dims:
            base_distribution = Independent(base_distribution, needs - base_dims)
        self.base_dist = base_distribution
        # Dimensions of an event: those that the transforms couple, and those that the base does.
        cut = len(shape) - max(gives, base_dims + gives - needs)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        shape = batch_shape + self._event_shape
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self._event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def _through(self, x):
        for t in self.transforms:
            x = t(x)
        return x

    def sample(self, sample_shape=()):
        with torch.no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()):
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        dims, result, y = len(self._event_shape), 0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            result = result - _sum_rightmost(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return result + _sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _by_sign(self, p):
        """Probabilities of the upper tail where the transforms decrease."""
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        return p if isinstance(sign, int) and sign == 1 else sign * (p - 0.5) + 0.5

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self.base_dist._validate_args:
            self.base_dist._validate_sample(value)
        return self._by_sign(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._through(self.base_dist.icdf(self._by_sign(value)))
