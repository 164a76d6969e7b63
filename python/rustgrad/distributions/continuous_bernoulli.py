"""The continuous Bernoulli distribution."""

import math

import rustgrad as torch

from ..nn.functional import binary_cross_entropy_with_logits
from . import constraints
from ._probs import _ByProbability
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(_ByProbability, ExponentialFamily):
    """The distribution on [0, 1] of density proportional to `probs^x (1 - probs)^(1 - x)`.

    Between `lims`, where the formulas are 0 / 0, their expansions around one half are used. Source: G. Loaiza-Ganem and
    J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders" (2019).
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _params = {"probs": 0, "logits": 0}

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        self._lims = lims
        self._set_probability(validate_args, probs, logits)
        if probs is not None:
            # After the check, which clamped probabilities would always pass.
            self.probs = clamp_probs(self.probs)

    def _expand_rest(self, new, batch_shape):
        super()._expand_rest(new, batch_shape)
        new._lims = self._lims

    @lazy_property
    def probs(self):
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _cases(self):
        """Where the formulas hold, and probabilities that are safe for them everywhere."""
        low, high = self._lims
        plain = (self.probs <= low) | (self.probs > high)
        return plain, torch.where(plain, self.probs, low)

    @staticmethod
    def _log_odds(p):
        return p.log() - torch.log1p(-p)

    def _cont_bern_log_norm(self):
        """The logarithm of the normalising constant, `2 artanh(1 - 2 p) / (1 - 2 p)`."""
        plain, p = self._cases()
        x = (self.probs - 0.5).square()
        near = math.log(2) + (4 / 3 + 104 / 45 * x) * x
        return torch.where(plain, self._log_odds(p).abs().log() - (1 - 2 * p).abs().log(), near)

    @property
    def mean(self):
        plain, p = self._cases()
        x = self.probs - 0.5
        near = 0.5 + (1 / 3 + 16 / 45 * x.square()) * x
        return torch.where(plain, p / (2 * p - 1) - 1 / self._log_odds(p), near)

    @property
    def variance(self):
        plain, p = self._cases()
        x = (self.probs - 0.5).square()
        near = 1 / 12 - (1 / 15 - 128 / 945 * x) * x
        return torch.where(plain, p * (p - 1) / (1 - 2 * p).square() + 1 / self._log_odds(p).square(), near)

    def rsample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._cont_bern_log_norm() - binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        plain, p = self._cases()
        inner = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        return torch.where(plain, inner, value).masked_fill(value <= 0, 0).masked_fill(value >= 1, 1)

    def icdf(self, value):
        plain, p = self._cases()
        inner = (torch.log1p(-p + value * (2 * p - 1)) - torch.log1p(-p)) / self._log_odds(p)
        return torch.where(plain, inner, value)

    def entropy(self):
        failure = torch.log1p(-self.probs)
        return self.mean * (failure - self.probs.log()) - self._cont_bern_log_norm() - failure

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        low, high = self._lims
        plain = (x <= low - 0.5) | (x > high - 0.5)
        safe = torch.where(plain, x, low - 0.5)
        near = x / 2 + x.square() / 24 - x.square().square() / 2880
        return torch.where(plain, torch.expm1(safe).abs().log() - safe.abs().log(), near)
