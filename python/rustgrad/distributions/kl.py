"""Kullback-Leibler divergences in closed form: the registry, and those within a family.

`_kl_pairs.py` has those between different families.
"""

from __future__ import annotations

import warnings

import rustgrad as torch

from ..nn.functional import softplus
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import (
    LowRankMultivariateNormal,
    _batch_lowrank_logdet,
    _batch_lowrank_mahalanobis,
)
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

# The registered pairs, and what a look-up of two classes found.
_KL_REGISTRY = {}
_KL_MEMOIZE = {}


def register_kl(type_p, type_q):
    """A decorator that registers `fun(p, q)` as the divergence of two classes and of those derived from them.

    The most specific pair wins. Where the first classes and the second ones disagree about which that is, a look-up
    warns (`RuntimeWarning`) and takes that of the first.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        # As in PyTorch any class will do: libraries have distributions that are not derived from this one.
        if not isinstance(kind, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def register(fun):
        _KL_REGISTRY[type_p, type_q] = fun
        _KL_MEMOIZE.clear()
        return fun

    return register


def _dispatch_kl(type_p, type_q):
    """The most specific registered function, or `NotImplemented`."""
    mro_p, mro_q = type_p.__mro__, type_q.__mro__
    distances = [
        (mro_p.index(p), mro_q.index(q), fun) for (p, q), fun in _KL_REGISTRY.items() if p in mro_p and q in mro_q
    ]
    if not distances:
        return NotImplemented
    by_p = min(distances, key=lambda d: (d[0], d[1]))
    by_q = min(distances, key=lambda d: (d[1], d[0]))
    if by_p[2] is not by_q[2]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({mro_p[by_p[0]].__name__}, {mro_q[by_q[1]].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return by_p[2]


def kl_divergence(p: Distribution, q: Distribution) -> torch.Tensor:
    """The Kullback-Leibler divergence `E_p[log p(x) - log q(x)]`: the batch dimensions.

    `NotImplementedError` if the pair of classes has no registered function; see `register_kl`.
    """
    pair = type(p), type(q)
    fun = _KL_MEMOIZE.get(pair)
    if fun is None:
        fun = _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    if fun is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {pair[0].__name__} and q type {pair[1].__name__}"
        )
    return fun(p, q)


def _infinite_where(result, where):
    return torch.where(where, torch.inf, result)


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    one = _infinite_where(one, q.probs == 0).masked_fill(p.probs == 0, 0)
    zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    return one + _infinite_where(zero, q.probs == 1).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    failure = torch.log1p(-p.probs) - torch.log1p(-q.probs)
    kl = p.total_count * (p.probs * (p.logits - q.logits) + failure)
    return _infinite_where(kl, p.total_count > q.total_count)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = p.probs * (p.logits - q.logits)
    return _infinite_where(terms, q.probs == 0).masked_fill(p.probs == 0, 0).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_one_hot_one_hot(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    # F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions".
    distance = (p.scale + q.scale).square() + (p.loc - q.loc).square()
    return (distance / (4 * p.scale * q.scale)).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    at = lambda d: d._cont_bern_log_norm() + torch.log1p(-d.probs)
    return p.mean * (p.logits - q.logits) + at(p) - at(q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    log_beta = lambda c: torch.lgamma(c).sum(-1) - torch.lgamma(c.sum(-1))
    means = torch.digamma(a) - torch.digamma(a.sum(-1, keepdim=True))
    return log_beta(b) - log_beta(a) + ((a - b) * means).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """The Bregman divergence of the log normaliser, for two members of one family."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    at = [theta.detach().requires_grad_() for theta in p._natural_params]
    with torch.enable_grad():
        normaliser = p._log_normalizer(*at)
        slopes = torch.autograd.grad(normaliser.sum(), at, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normaliser
    for ours, theirs, slope in zip(at, q._natural_params, slopes):
        product = (theirs - ours) * slope
        result = result - _sum_rightmost(product, product.dim() - result.dim())
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    a, b = p.concentration, q.concentration
    scale = b * (p.rate / q.rate).log() + torch.lgamma(b) - torch.lgamma(a)
    return scale + (a - b) * torch.digamma(a) + (q.rate - p.rate) * a / p.rate


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    tail = (torch.lgamma(1 + ratio) - shift).exp()
    return shift - ratio.log() + ratio * euler_constant + tail - (1 + euler_constant)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(HalfNormal, HalfNormal)
def _kl_half_normal_half_normal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale - ratio.log() + ratio * (-distance / p.scale).exp() - 1


def _trace_of_square(matrix):
    """The trace of `X X^T`."""
    return matrix.square().sum((-2, -1))


def _half_log_det(d):
    return d._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _low_rank(d):
    return d._unbroadcasted_cov_factor, d._unbroadcasted_cov_diag, d._capacitance_tril


def _solved(factor, rhs):
    """Triangular solves, batches broadcast."""
    return torch.linalg.solve_triangular(factor, rhs, upper=False)


def _same_events(p, q, what):
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between {what} with different event shapes cannot be computed")


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariate_normal_multivariate_normal(p, q):
    _same_events(p, q, "two Multivariate Normals")
    trace = _trace_of_square(_solved(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril))
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return _half_log_det(q) - _half_log_det(p) + (trace + distance - p.event_shape[0]) / 2


def _to_low_rank(p, q, roots, log_det):
    """From a normal distribution of covariance `sum R R^T` over `roots`, and of this log determinant, to a low-rank one."""
    W, D, C = _low_rank(q)
    # The trace of the inverse covariance, by Woodbury's identity, times that of p.
    over = W.mT / D.unsqueeze(-2)
    trace = sum(_trace_of_square(R / D.sqrt().unsqueeze(-1)) - _trace_of_square(_solved(C, over @ R)) for R in roots)
    distance = _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, C)
    return (_batch_lowrank_logdet(W, D, C) - log_det + trace + distance - p.event_shape[0]) / 2


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_low_rank_low_rank(p, q):
    _same_events(p, q, "two Low Rank Multivariate Normals")
    W, D, C = _low_rank(p)
    return _to_low_rank(p, q, [W, D.sqrt().diag_embed()], _batch_lowrank_logdet(W, D, C))


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariate_normal_low_rank(p, q):
    _same_events(p, q, "two (Low Rank) Multivariate Normals")
    return _to_low_rank(p, q, [p._unbroadcasted_scale_tril], 2 * _half_log_det(p))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_low_rank_multivariate_normal(p, q):
    _same_events(p, q, "two (Low Rank) Multivariate Normals")
    (W, D, C), L = _low_rank(p), q._unbroadcasted_scale_tril
    trace = _trace_of_square(_solved(L, W)) + _trace_of_square(_solved(L, D.sqrt().diag_embed()))
    distance = _batch_mahalanobis(L, q.loc - p.loc)
    return _half_log_det(q) + (trace + distance - p.event_shape[0] - _batch_lowrank_logdet(W, D, C)) / 2


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).square()
    return (ratio + ((p.loc - q.loc) / q.scale).square() - 1 - ratio.log()) / 2


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    result = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_where(result, p.scale < q.scale)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return torch.xlogy(p.rate, p.rate / q.rate) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    """That of the bases, where the transforms are the same."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    result = ((q.high - q.low) / (p.high - p.low)).log()
    return _infinite_where(result, (q.low > p.low) | (q.high < p.high))


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
