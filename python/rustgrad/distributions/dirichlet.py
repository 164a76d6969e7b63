"""The Dirichlet distribution."""

import rustgrad as torch

from .. import _C
from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x, concentration, grad_output):
    """The gradient of samples x: a change of one concentration moves the other coordinates in proportion."""
    total = concentration.sum(-1, True).expand_as(concentration)
    along = (x * grad_output).sum(-1, True)
    return _C.ops["_dirichlet_grad"](x, concentration, total) * (grad_output - along)


class _Dirichlet(torch.autograd.Function):
    """Samples with their implicit gradient."""

    @staticmethod
    def forward(ctx, concentration):
        x = _C.ops["_sample_dirichlet"](concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    def backward(ctx, grad_output):
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(ExponentialFamily):
    """The distribution on the simplex with the density `prod(x^(concentration - 1)) / B(concentration)`.

    `concentration`: `batch_shape + (K,)`. Samples have implicit gradients.
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True
    _mean_carrier_measure = 0
    _params = {"concentration": 1}

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=()):
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        a = self.concentration
        return torch.xlogy(a - 1, value).sum(-1) + torch.lgamma(a.sum(-1)) - torch.lgamma(a).sum(-1)

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    @property
    def mode(self):
        above = (self.concentration - 1).clamp(min=0)
        mode = above / above.sum(-1, keepdim=True)
        # With every concentration below one the density is largest in the corners.
        corner = torch.nn.functional.one_hot(self.concentration.argmax(-1), self.concentration.size(-1)).to(mode)
        return torch.where((self.concentration < 1).all(-1, keepdim=True), corner, mode)

    @property
    def variance(self):
        total, mean = self.concentration.sum(-1, keepdim=True), self.mean
        return mean * (1 - mean) / (total + 1)

    def entropy(self):
        a, k = self.concentration, self.concentration.size(-1)
        total = a.sum(-1)
        return (
            torch.lgamma(a).sum(-1)
            - torch.lgamma(total)
            - (k - total) * torch.digamma(total)
            - ((a - 1) * torch.digamma(a)).sum(-1)
        )

    @property
    def _natural_params(self):
        return (self.concentration - 1,)

    def _log_normalizer(self, x):
        a = x + 1
        return torch.lgamma(a).sum(-1) - torch.lgamma(a.sum(-1))
