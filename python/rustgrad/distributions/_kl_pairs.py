"""Divergences between different families: minus the entropy of p, minus the expectation of q's log density.

The log densities of q are linear in a few statistics: x, x^2, log x, log(1 - x) and exp(-t x). Each family p has their
expectations in closed form, so every pair follows from one formula for q.
"""

from __future__ import annotations

import math

import rustgrad as torch

from ..nn.functional import softplus
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .continuous_bernoulli import ContinuousBernoulli
from .exponential import Exponential
from .gamma import Gamma
from .gumbel import Gumbel
from .kl import _infinite_where, register_kl
from .laplace import Laplace
from .normal import Normal
from .pareto import Pareto
from .poisson import Poisson
from .uniform import Uniform
from .utils import euler_constant


def _interval_log(low, high):
    """The mean of log x between two numbers."""
    return (torch.xlogy(high, high) - torch.xlogy(low, low)) / (high - low) - 1


def _uniform_decay(p, t):
    """The mean of exp(-t x) over an interval."""
    return ((-p.low * t).exp() - (-p.high * t).exp()) / (t * (p.high - p.low))


# E[log x], E[log(1 - x)] and E[exp(-t x)].
_MEAN_LOG = {
    Beta: lambda p: torch.digamma(p.concentration1) - torch.digamma(p.concentration1 + p.concentration0),
    Exponential: lambda p: -p.rate.log() - euler_constant,
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: lambda p: _interval_log(p.low, p.high),
}
_MEAN_LOG_REST = {Uniform: lambda p: _interval_log(1 - p.high, 1 - p.low)}
_MEAN_DECAY = {
    Exponential: lambda p, t: p.rate / (p.rate + t),
    Gamma: lambda p, t: (1 + t / p.rate) ** -p.concentration,
    Normal: lambda p, t: ((p.scale * t).square() / 2 - p.loc * t).exp(),
    Uniform: _uniform_decay,
}


def _log_normal(p, q, kind):
    distance = p.variance + (p.mean - q.loc).square()
    return -(2 * math.pi * q.scale.square()).log() / 2 - distance / (2 * q.scale.square())


def _log_exponential(p, q, kind):
    return q.rate.log() - q.rate * p.mean


def _log_gamma(p, q, kind):
    a = q.concentration
    return torch.xlogy(a, q.rate) - torch.lgamma(a) + (a - 1) * _MEAN_LOG[kind](p) - q.rate * p.mean


def _log_gumbel(p, q, kind):
    decay = (q.loc / q.scale).exp() * _MEAN_DECAY[kind](p, q.scale.reciprocal())
    return -q.scale.log() - (p.mean - q.loc) / q.scale - decay


def _log_beta(p, q, kind):
    a, b = q.concentration1, q.concentration0
    scale = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
    return scale + (a - 1) * _MEAN_LOG[kind](p) + (b - 1) * _MEAN_LOG_REST[kind](p)


def _log_continuous_bernoulli(p, q, kind):
    return q._cont_bern_log_norm() + q.logits * p.mean - softplus(q.logits)


def _log_uniform(p, q, kind):
    return -(q.high - q.low).log()


def _log_pareto(p, q, kind):
    return q.alpha.log() + q.alpha * q.scale.log() - (q.alpha + 1) * _MEAN_LOG[kind](p)


def _log_laplace(p, q, kind):
    # The mean distance of a normal number from a point.
    z = (p.loc - q.loc) / p.scale
    spread = math.sqrt(2 / math.pi) * (-z.square() / 2).exp() + z * torch.erf(z / math.sqrt(2))
    return -(2 * q.scale).log() - p.scale * spread / q.scale


_UNIT = (Beta, ContinuousBernoulli)
_LINE = (Gumbel, Laplace, Normal)
# For each q: its expected log density, and the families p whose divergence is finite and known.
_FINITE = {
    Normal: (_log_normal, (*_UNIT, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    Exponential: (_log_exponential, (*_UNIT, Gamma, Pareto, Uniform)),
    Gamma: (_log_gamma, (Beta, Exponential, Pareto, Uniform)),
    Gumbel: (_log_gumbel, (Exponential, Gamma, Normal, Uniform)),
    Beta: (_log_beta, (Uniform,)),
    ContinuousBernoulli: (_log_continuous_bernoulli, (Beta, Uniform)),
    Uniform: (_log_uniform, _UNIT),
    Pareto: (_log_pareto, (Uniform,)),
    Laplace: (_log_laplace, (Normal,)),
}
# For each p: the q whose support always leaves out a part of p's.
_INFINITE = {
    **dict.fromkeys(_UNIT, (Pareto,)),
    **dict.fromkeys((Exponential, Gamma), (*_UNIT, Pareto, Uniform)),
    **dict.fromkeys(_LINE, (*_UNIT, Exponential, Gamma, Pareto, Uniform)),
    Pareto: (*_UNIT, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _ends(d):
    """The ends of the support."""
    support = d.support
    return getattr(support, "lower_bound", -math.inf), getattr(support, "upper_bound", math.inf)


def _finite(kind_p, kind_q, expected):
    def kl(p, q):
        result = -p.entropy() - expected(p, q, kind_p)
        (low, high), (least, most) = _ends(p), _ends(q)
        for outside in (torch.as_tensor(low < least), torch.as_tensor(high > most)):
            result = _infinite_where(result, outside)
        if kind_p is Pareto:
            # Without a mean, or a variance, the expectation diverges.
            result = _infinite_where(result, p.alpha <= (2 if kind_q is Normal else 1))
        return result

    kl.__name__ = f"_kl_{kind_p.__name__.lower()}_{kind_q.__name__.lower()}"
    return register_kl(kind_p, kind_q)(kl)


def _infinite(p, q):
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    return torch.full(shape, torch.inf, dtype=p.mean.dtype, device=p.mean.device)


for _q, (_expected, _ps) in _FINITE.items():
    for _p in _ps:
        _finite(_p, _q, _expected)
for _p, _qs in _INFINITE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - torch.xlogy(p.probs, q.rate) + q.rate
