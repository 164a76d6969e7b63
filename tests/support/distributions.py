"""Instances of every family of `torch.distributions`, for the tests and for the recording of PyTorch's answers."""

import numpy as np


def instances(torch) -> dict:
    """Each family by name: one distribution, or several under `name/more`, all of batch shape [2] and double precision."""
    D = torch.distributions
    t = lambda *v: torch.tensor(v, dtype=torch.float64)
    tril = t([1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.5, 1.5])
    covariance = tril @ tril.T
    probs = t([0.2, 0.3, 0.5], [0.6, 0.25, 0.15])
    locs = t([0.5, -1.0, 2.0], [0.0, 0.3, -0.7])
    return {
        "Bernoulli": D.Bernoulli(t(0.3, 0.8)),
        "Bernoulli/logits": D.Bernoulli(logits=t(-1.5, 0.4)),
        "Beta": D.Beta(t(0.6, 3.0), t(2.0, 1.5)),
        "Binomial": D.Binomial(7, t(0.3, 0.8)),
        "Binomial/logits": D.Binomial(t(7, 7), logits=t(-1.5, 0.4)),
        "Categorical": D.Categorical(probs),
        "Categorical/logits": D.Categorical(logits=locs),
        "Cauchy": D.Cauchy(t(0.0, -1.0), t(1.0, 2.5)),
        "Chi2": D.Chi2(t(1.0, 6.5)),
        "ContinuousBernoulli": D.ContinuousBernoulli(t(0.2, 0.5)),
        "Dirichlet": D.Dirichlet(t([0.5, 2.0, 3.0], [4.0, 1.0, 1.5])),
        "Exponential": D.Exponential(t(0.5, 3.0)),
        "FisherSnedecor": D.FisherSnedecor(t(3.0, 8.0), t(5.0, 12.0)),
        "Gamma": D.Gamma(t(0.7, 5.0), t(1.0, 2.0)),
        "Geometric": D.Geometric(t(0.3, 0.8)),
        "Gumbel": D.Gumbel(t(0.0, 1.0), t(1.0, 2.0)),
        "HalfCauchy": D.HalfCauchy(t(0.5, 2.0)),
        "HalfNormal": D.HalfNormal(t(0.5, 2.0)),
        "Independent": D.Independent(D.Normal(locs, locs.abs() + 0.5), 1),
        "InverseGamma": D.InverseGamma(t(3.0, 5.0), t(1.0, 2.0)),
        "Kumaraswamy": D.Kumaraswamy(t(2.0, 0.7), t(3.0, 1.5)),
        "LKJCholesky": D.LKJCholesky(3, t(0.7, 2.0)),
        "Laplace": D.Laplace(t(0.0, -1.0), t(1.0, 2.5)),
        "LogNormal": D.LogNormal(t(0.0, -1.0), t(0.5, 0.8)),
        "LogisticNormal": D.LogisticNormal(locs, locs.abs() + 0.5),
        "LowRankMultivariateNormal": D.LowRankMultivariateNormal(locs, locs.unsqueeze(-1) * 0.5, locs.abs() + 0.5),
        "MixtureSameFamily": D.MixtureSameFamily(D.Categorical(probs), D.Normal(locs, locs.abs() + 0.5)),
        "Multinomial": D.Multinomial(5, probs),
        "MultivariateNormal": D.MultivariateNormal(locs, covariance),
        "MultivariateNormal/tril": D.MultivariateNormal(locs, scale_tril=tril * 0.7),
        "MultivariateNormal/precision": D.MultivariateNormal(locs, precision_matrix=covariance),
        "NegativeBinomial": D.NegativeBinomial(t(3.0, 6.0), t(0.3, 0.6)),
        "Normal": D.Normal(t(0.0, -1.0), t(1.0, 2.5)),
        "OneHotCategorical": D.OneHotCategorical(probs),
        "OneHotCategoricalStraightThrough": D.OneHotCategoricalStraightThrough(probs),
        "Pareto": D.Pareto(t(1.0, 0.5), t(3.0, 4.5)),
        "Poisson": D.Poisson(t(0.6, 14.0)),
        "RelaxedBernoulli": D.RelaxedBernoulli(t(0.7), t(0.3, 0.8)),
        "RelaxedOneHotCategorical": D.RelaxedOneHotCategorical(t(0.7), probs),
        "StudentT": D.StudentT(t(3.0, 8.0), t(0.0, 1.0), t(1.0, 2.0)),
        "TransformedDistribution": D.TransformedDistribution(
            D.Normal(t(0.0, 1.0), t(1.0, 0.5)), [D.AffineTransform(1.0, -2.0), D.TanhTransform()]
        ),
        "Uniform": D.Uniform(t(0.1, 0.2), t(0.7, 0.9)),
        "VonMises": D.VonMises(t(0.0, 2.0), t(0.5, 8.0)),
        "Weibull": D.Weibull(t(1.0, 2.0), t(0.8, 3.0)),
        "Wishart": D.Wishart(t(4.0, 6.5), covariance),
        "GeneralizedPareto": D.GeneralizedPareto(t(0.0, 1.0), t(1.0, 2.0), t(0.3, -0.4)),
    }


def values(name: str) -> list | None:
    """Points of the support, in the shape [2] + event: where densities are compared."""
    family = name.split("/")[0]
    simplex = [[0.2, 0.3, 0.5], [0.6, 0.1, 0.3]]
    vectors = [[0.3, -0.7, 1.1], [1.5, 0.2, -2.0]]
    matrix = [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.36, 0.48, 0.8]]
    positive = [[2.0, 0.3, -0.5], [0.3, 1.5, 0.2], [-0.5, 0.2, 1.0]]
    return {
        "Bernoulli": [1, 0],
        "Beta": [0.15, 0.7],
        "Binomial": [3, 6],
        "Categorical": [2, 0],
        "ContinuousBernoulli": [0.15, 0.7],
        "Dirichlet": simplex,
        "Geometric": [3, 0],
        "Independent": vectors,
        "Kumaraswamy": [0.15, 0.7],
        "LKJCholesky": [matrix, matrix],
        "LogisticNormal": [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]],
        "LowRankMultivariateNormal": vectors,
        "Multinomial": [[2, 2, 1], [0, 4, 1]],
        "MultivariateNormal": vectors,
        "NegativeBinomial": [2, 9],
        "OneHotCategorical": [[0, 1, 0], [1, 0, 0]],
        "OneHotCategoricalStraightThrough": [[0, 1, 0], [1, 0, 0]],
        "Pareto": [1.4, 2.5],
        "Poisson": [2, 17],
        "RelaxedBernoulli": [0.15, 0.7],
        "RelaxedOneHotCategorical": simplex,
        "TransformedDistribution": [0.15, -0.7],
        "Uniform": [0.15, 0.7],
        "VonMises": [0.5, -2.5],
        "Wishart": [positive, positive],
        "GeneralizedPareto": [0.4, 3.0],
    }.get(family, [0.4, 2.2])


QUANTITIES = ("mean", "variance", "mode", "entropy", "log_prob", "cdf", "icdf")


def quantity(torch, name: str, which: str):
    """A figure of an instance as an array; None where the family does not have it."""
    dist = instances(torch)[name]
    try:
        if which in ("mean", "variance", "mode"):
            result = getattr(dist, which)
        elif which == "entropy":
            result = dist.entropy()
        elif which == "icdf":
            result = dist.icdf(torch.tensor([0.2, 0.85], dtype=torch.float64))
        else:
            result = getattr(dist, which)(torch.tensor(values(name), dtype=torch.float64))
    except (NotImplementedError, AttributeError):
        return None
    return np.asarray(result.detach().tolist(), dtype=float)


def divergence(torch, p: str, q: str):
    """The divergence of two instances as an array; None where there is no formula."""
    both = instances(torch)
    try:
        return np.asarray(torch.distributions.kl_divergence(both[p], both[q]).detach().tolist(), dtype=float)
    except NotImplementedError:
        return None
