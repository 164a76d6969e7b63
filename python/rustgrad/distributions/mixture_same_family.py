"""Mixtures of distributions of one family."""

import rustgrad as torch

from . import constraints
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The mixture of the distributions along the last batch dimension of `component_distribution`.

    `mixture_distribution` is a `Categorical` over them. `ValueError` if the shapes do not agree.
    """

    arg_constraints = {}
    has_rsample = False
    _params = {}

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        weights, parts = mixture_distribution.batch_shape, component_distribution.batch_shape
        if any(1 != i != j != 1 for i, j in zip(reversed(weights), reversed(parts[:-1]))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({weights}) is not compatible with "
                f"`component_distribution.batch_shape`({parts[:-1]})"
            )
        self._num_component = mixture_distribution.logits.shape[-1]
        if self._num_component != parts[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({self._num_component}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({parts[-1]})"
            )
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(parts[:-1], component_distribution.event_shape, validate_args=validate_args)

    def _expand_rest(self, new, batch_shape):
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components, along the last batch dimension."""
        return self._component_distribution

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _mean_of(self, x):
        """The average over the components of x: `batch_shape + (k,) + event_shape`."""
        probs = self._mixture_distribution.probs
        return (probs.view(probs.shape + (1,) * self._event_ndims) * x).sum(-1 - self._event_ndims)

    @property
    def mean(self):
        return self._mean_of(self._component_distribution.mean)

    @property
    def variance(self):
        parts = self._component_distribution
        return self._mean_of(parts.variance) + self._mean_of((parts.mean - self._pad(self.mean)).square())

    def cdf(self, x):
        return (self._component_distribution.cdf(self._pad(x)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        weights = torch.log_softmax(self._mixture_distribution.logits, -1)
        return torch.logsumexp(self._component_distribution.log_prob(self._pad(x)) + weights, -1)

    def sample(self, sample_shape=()):
        with torch.no_grad():
            which = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self._batch_shape)
            which = which.view(which.shape + (1,) * (1 + self._event_ndims))
            shape = drawn.shape[:dim] + (1,) + drawn.shape[dim + 1 :]
            return drawn.gather(dim, which.expand(shape)).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
