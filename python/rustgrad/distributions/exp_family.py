"""Exponential families: densities `exp(<t(x), theta> - F(theta) + k(x))`."""

from __future__ import annotations

import rustgrad as torch

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """A family with natural parameters theta, log normaliser F and mean carrier measure E[k(x)].

    The entropy is the Bregman divergence `F(theta) - <theta, grad F(theta)> - E[k(x)]`, its gradient computed by
    autograd (F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families", 2010).
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        """The entropy, from the log normaliser."""
        carrier = self._mean_carrier_measure
        natural = self._natural_params
        tracked = torch.is_grad_enabled() and any(p.requires_grad for p in natural)
        natural = [p if tracked and p.requires_grad else p.detach().requires_grad_() for p in natural]
        with torch.enable_grad():
            normaliser = self._log_normalizer(*natural)
            slopes = torch.autograd.grad(normaliser.sum(), natural, create_graph=tracked)
        result = normaliser - carrier
        for theta, slope in zip(natural, slopes):
            product = theta * slope
            result = result - product.reshape(self._batch_shape + (-1,)).sum(-1)
        return result if tracked else result.detach()
