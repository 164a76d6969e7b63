"""`torch.distributions` against PyTorch's recorded figures, SciPy, and its own samples."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.stats as st
from support import distributions as cases
from support import target

NAMES = list(cases.instances(target.torch))
RECORDED = json.loads((Path(__file__).parent / "golden" / "distributions.json").read_text())
# Where PyTorch's figure is not the one of the definition: its mode of Kumaraswamy is a formula of another law, and its
# divergence from and to the whole unit interval is infinite.
OURS = {("Kumaraswamy", "mode")}
OUR_PAIRS = {"ContinuousBernoulli Uniform", "Uniform ContinuousBernoulli"}


def close(got, want, tolerance=1e-7):
    np.testing.assert_allclose(got, np.asarray(want, dtype=float), rtol=tolerance, atol=tolerance)


@pytest.fixture(autouse=True)
def double(torch):
    torch.set_default_dtype(torch.float64)


@pytest.mark.parametrize("which", cases.QUANTITIES)
@pytest.mark.parametrize("name", NAMES)
def test_figures_are_pytorchs(torch, name, which):
    want = RECORDED["figures"][name].get(which)
    if want is None or (name, which) in OURS:
        return
    got = cases.quantity(torch, name, which)
    assert got is not None and got.shape == np.shape(want)
    # PyTorch's Bessel functions of VonMises have seven digits.
    close(got, want, 1e-6 if name == "VonMises" else 1e-7)


def test_divergences_are_pytorchs(torch):
    assert len(RECORDED["kl"]) > 100
    for pair, want in RECORDED["kl"].items():
        if pair not in OUR_PAIRS:
            got = cases.divergence(torch, *pair.split(" "))
            assert got is not None, pair
            np.testing.assert_allclose(got, np.asarray(want, dtype=float), rtol=1e-7, atol=1e-9, err_msg=pair)


@pytest.mark.parametrize("pair", sorted(RECORDED["kl"]))
def test_divergences_are_means_over_samples(torch, pair):
    """The mean of `log p(x) - log q(x)`, to six standard errors."""
    p, q = (cases.instances(torch)[name] for name in pair.split(" "))
    want = torch.distributions.kl_divergence(p, q)
    if not torch.isfinite(want).any():
        # The samples themselves show why: some lie outside the support of q.
        return
    q._validate_args = p._validate_args = False
    for part in (getattr(q, "base_dist", None), getattr(getattr(q, "base_dist", None), "base_dist", None)):
        if part is not None:
            part._validate_args = False
    x = p.sample((40_000,))
    terms = p.log_prob(x) - q.log_prob(x)
    finite = torch.isfinite(want)
    mean, error = terms.mean(0), terms.std(0) / 200
    assert ((mean - want).abs() <= 6 * error + 1e-9)[finite].all(), (mean, want, error)


SCIPY = {
    "Beta": lambda i: st.beta([0.6, 3.0][i], [2.0, 1.5][i]),
    "Cauchy": lambda i: st.cauchy([0, -1][i], [1, 2.5][i]),
    "Chi2": lambda i: st.chi2([1, 6.5][i]),
    "Exponential": lambda i: st.expon(scale=[2, 1 / 3][i]),
    "FisherSnedecor": lambda i: st.f([3, 8][i], [5, 12][i]),
    "Gamma": lambda i: st.gamma([0.7, 5][i], scale=[1, 0.5][i]),
    "GeneralizedPareto": lambda i: st.genpareto([0.3, -0.4][i], [0, 1][i], [1, 2][i]),
    "Gumbel": lambda i: st.gumbel_r([0, 1][i], [1, 2][i]),
    "HalfCauchy": lambda i: st.halfcauchy(scale=[0.5, 2][i]),
    "HalfNormal": lambda i: st.halfnorm(scale=[0.5, 2][i]),
    "InverseGamma": lambda i: st.invgamma([3, 5][i], scale=[1, 2][i]),
    "Laplace": lambda i: st.laplace([0, -1][i], [1, 2.5][i]),
    "LogNormal": lambda i: st.lognorm([0.5, 0.8][i], scale=np.exp([0, -1][i])),
    "Normal": lambda i: st.norm([0, -1][i], [1, 2.5][i]),
    "Pareto": lambda i: st.pareto([3, 4.5][i], scale=[1, 0.5][i]),
    "StudentT": lambda i: st.t([3, 8][i], [0, 1][i], [1, 2][i]),
    "Uniform": lambda i: st.uniform([0.1, 0.2][i], [0.6, 0.7][i]),
    "VonMises": lambda i: st.vonmises([0.5, 8][i], [0, 2][i]),
    "Weibull": lambda i: st.weibull_min([0.8, 3][i], scale=[1, 2][i]),
    "Bernoulli": lambda i: st.bernoulli([0.3, 0.8][i]),
    "Binomial": lambda i: st.binom(7, [0.3, 0.8][i]),
    "Geometric": lambda i: st.geom([0.3, 0.8][i], loc=-1),
    "NegativeBinomial": lambda i: st.nbinom([3, 6][i], [0.7, 0.4][i]),
    "Poisson": lambda i: st.poisson([0.6, 14][i]),
}
DISCRETE = ("Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson")
CIRCULAR = ("VonMises",)


@pytest.mark.parametrize("name", SCIPY)
def test_figures_are_scipys(torch, name):
    dist = cases.instances(torch)[name]
    x = cases.values(name)
    laws = [SCIPY[name](i) for i in range(2)]
    log_density = "logpmf" if name in DISCRETE else "logpdf"
    close(
        dist.log_prob(torch.tensor(x, dtype=torch.float64)).tolist(),
        [getattr(d, log_density)(v) for d, v in zip(laws, x)],
    )
    for which, of in (
        ("mean", lambda d: d.mean()),
        ("variance", lambda d: d.var()),
        ("entropy", lambda d: d.entropy()),
    ):
        got = cases.quantity(torch, name, which)
        want = np.array([float(of(d)) for d in laws])
        if got is not None and name not in CIRCULAR and np.isfinite(want).all():
            close(got, want, 1e-6)
    for which in ("cdf", "icdf"):
        got = cases.quantity(torch, name, which)
        if got is not None:
            at = x if which == "cdf" else [0.2, 0.85]
            close(got, [getattr(d, "cdf" if which == "cdf" else "ppf")(v) for d, v in zip(laws, at)])


@pytest.mark.parametrize("name", SCIPY)
def test_samples_have_their_law(torch, name):
    """Kolmogorov's test of continuous laws, the chi-squared test of counts; both at one in a million."""
    torch.manual_seed(17)
    drawn = np.asarray(cases.instances(torch)[name].sample((20_000,)).tolist())
    for i in range(2):
        law = SCIPY[name](i)
        if name not in DISCRETE:
            law = law if name not in CIRCULAR else st.rv_histogram(circular(law))
            assert st.kstest(drawn[:, i], law.cdf).pvalue > 1e-6
            continue
        top = int(law.ppf(0.999))
        observed = np.bincount(drawn[:, i].astype(int).clip(max=top), minlength=top + 1)
        expected = law.pmf(np.arange(top + 1))
        expected[-1] = 1 - expected[:-1].sum()
        enough = expected * 20_000 > 5
        statistic = ((observed - expected * 20_000) ** 2 / (expected * 20_000))[enough].sum()
        assert st.chi2(enough.sum()).sf(statistic) > 1e-6


def circular(law):
    """The law of angles wrapped to [-pi, pi), as a fine histogram."""
    edges = np.linspace(-np.pi, np.pi, 4001)
    middles = (edges[1:] + edges[:-1]) / 2
    return law.pdf(middles) * np.diff(edges) * 1e6, edges


@pytest.mark.parametrize("name", NAMES)
def test_moments_of_samples(torch, name):
    """Mean and variance of samples, to six standard errors."""
    dist = cases.instances(torch)[name]
    if name in CIRCULAR or (mean := cases.quantity(torch, name, "mean")) is None or not np.isfinite(mean).all():
        return
    x = np.asarray(dist.sample((30_000,)).tolist())
    spread = x.std(0) / np.sqrt(len(x))
    assert (abs(x.mean(0) - mean) <= 6 * spread + 1e-9).all()
    variance = cases.quantity(torch, name, "variance")
    # Heavy tails have no standard error of the variance.
    if variance is not None and name not in (
        "FisherSnedecor",
        "StudentT",
        "Pareto",
        "InverseGamma",
        "GeneralizedPareto",
    ):
        squares = (x - mean) ** 2
        error = squares.std(0) / np.sqrt(len(x))
        assert (abs(squares.mean(0) - variance) <= 6 * error + 1e-9).all()


@pytest.mark.parametrize("name", NAMES)
def test_shapes(torch, name):
    dist = cases.instances(torch)[name]
    assert dist.batch_shape == (2,) and isinstance(dist.batch_shape, torch.Size)
    x = dist.sample((3, 4))
    assert x.shape == (3, 4, 2) + dist.event_shape and not x.requires_grad
    assert dist.log_prob(x).shape == (3, 4, 2) and dist.support.check(x).all()
    wide = dist.expand((5, 2))
    assert wide.batch_shape == (5, 2) and wide.event_shape == dist.event_shape and type(wide) is type(dist)
    assert wide.sample((3,)).shape == (3, 5, 2) + dist.event_shape
    y = wide.sample()
    close(wide.log_prob(y).tolist(), dist.log_prob(y).tolist(), 1e-12)
    if cases.quantity(torch, name, "entropy") is not None:
        assert dist.entropy().shape == (2,) and wide.entropy().shape == (5, 2)
        close(wide.perplexity()[0].tolist(), dist.perplexity().tolist(), 1e-12)
    assert type(dist).__name__ in repr(dist)
    if dist.has_enumerate_support:
        every = dist.enumerate_support()
        close(dist.log_prob(every).exp().sum(0).tolist(), [1, 1], 1e-9)
        assert dist.enumerate_support(expand=False).shape[1:] == (1,) + dist.event_shape


@pytest.mark.parametrize("name", [n for n in NAMES if n in SCIPY and n not in DISCRETE + CIRCULAR])
def test_samples_move_along_their_quantile(torch, name):
    """The gradient of a sample in a parameter keeps its cumulative probability, or moves it by a shift of the base."""
    family = name.split("/")[0]
    at_quantile = {
        "Beta": (("a", 0.6), ("b", 2.0), lambda a, b: torch.distributions.Beta(a, b), st.beta),
        "Gamma": (("a", 1.7), ("r", 2.0), torch.distributions.Gamma, lambda a, r: st.gamma(a, scale=1 / r)),
        "Cauchy": (("m", 0.5), ("s", 2.0), torch.distributions.Cauchy, st.cauchy),
        "Laplace": (("m", 0.5), ("s", 2.0), torch.distributions.Laplace, st.laplace),
        "LogNormal": (
            ("m", 0.5),
            ("s", 0.7),
            torch.distributions.LogNormal,
            lambda m, s: st.lognorm(s, scale=np.exp(m)),
        ),
        "Gumbel": (("m", 0.5), ("s", 2.0), torch.distributions.Gumbel, st.gumbel_r),
        "Pareto": (("s", 0.5), ("a", 3.0), torch.distributions.Pareto, lambda s, a: st.pareto(a, scale=s)),
        "Weibull": (("s", 0.5), ("k", 2.0), torch.distributions.Weibull, lambda s, k: st.weibull_min(k, scale=s)),
        "Normal": (("m", 0.5), ("s", 2.0), torch.distributions.Normal, st.norm),
        "InverseGamma": (
            ("a", 3.0),
            ("r", 2.0),
            torch.distributions.InverseGamma,
            lambda a, r: st.invgamma(a, scale=r),
        ),
    }.get(family)
    if at_quantile is None:
        assert cases.instances(torch)[name].rsample().shape == (2,)
        return
    (_, a), (_, b), ours, scipys = at_quantile
    torch.manual_seed(3)
    a, b = (torch.full((20,), v, requires_grad=True) for v in (a, b))
    x = ours(a, b).rsample()
    slopes = torch.autograd.grad(x.sum(), (a, b))
    x, a, b = (np.asarray(v.detach().tolist()) for v in (x, a, b))
    h = 1e-5
    for i, slope in enumerate(slopes):
        up, down = ((a + h, b), (a - h, b)) if i == 0 else ((a, b + h), (a, b - h))
        by_parameter = (scipys(*up).cdf(x) - scipys(*down).cdf(x)) / (2 * h)
        close(slope.tolist(), -by_parameter / scipys(a, b).pdf(x), 1e-5)


def test_dirichlet_samples_move_with_their_density(torch):
    """The expectation of a function of samples has the gradient of the expectation: here of the entropy of the sample."""
    torch.manual_seed(5)
    a = torch.tensor([0.5, 2.0, 3.0], requires_grad=True)
    x = torch.distributions.Dirichlet(a.expand(60_000, 3)).rsample()
    got = torch.autograd.grad(-(x * x.log()).sum(-1).mean(), a)[0]
    total = a.sum()
    mean = torch.digamma(total + 1) - (a / total * torch.digamma(a + 1)).sum()
    want = torch.autograd.grad(mean, a)[0]
    assert (got - want).abs().max() < 0.01


def test_gradients_of_densities(torch):
    for name in NAMES:
        family = name.split("/")[0]
        dist = cases.instances(torch)[name]
        if family in ("TransformedDistribution", "Independent", "MixtureSameFamily") or "probs" in dist.arg_constraints:
            continue
        names = [p for p in dist.arg_constraints if p in dist.__dict__ and dist.__dict__[p].is_floating_point()]
        names = [p for p in names if p in ("loc", "scale", "rate", "concentration", "alpha", "df", "cov_diag")]
        for p in names:
            leaf = dist.__dict__[p].detach().clone().requires_grad_()

            def density(leaf, dist=dist, p=p, family=family):
                fresh = dist.__dict__[p]
                try:
                    dist.__dict__[p] = leaf
                    return dist.log_prob(torch.tensor(cases.values(family), dtype=torch.float64))
                finally:
                    dist.__dict__[p] = fresh

            dist._validate_args = False
            if density(leaf).requires_grad:
                torch.autograd.gradcheck(density, (leaf,))


def test_arguments_are_checked(torch):
    D = torch.distributions
    refusals = [
        (lambda: D.Normal(0.0, -1.0), "Expected parameter scale .* to satisfy the constraint GreaterThan"),
        (lambda: D.Bernoulli(torch.tensor([0.5, 1.5])), "Expected parameter probs"),
        (lambda: D.Bernoulli(), "Either `probs` or `logits` must be specified"),
        (lambda: D.Bernoulli(0.5, 0.5), "Either `probs` or `logits` must be specified"),
        (lambda: D.Categorical(torch.tensor(0.5)), "at least one-dimensional"),
        (lambda: D.Uniform(1.0, 0.0), "Expected parameter"),
        (lambda: D.Normal("a", 1.0), "Input arguments must all be instances of Number"),
        (lambda: D.MultivariateNormal(torch.zeros(2)), "Exactly one of covariance_matrix"),
        (lambda: D.MultivariateNormal(torch.zeros(2), -torch.eye(2)), "PositiveDefinite"),
        (lambda: D.Normal(0.0, 1.0).log_prob(torch.nan * torch.ones(1)), "within the support"),
        (lambda: D.Normal(0.0, 1.0).log_prob(2.0), "must be a Tensor"),
        (lambda: D.Gamma(1.0, 1.0).log_prob(torch.tensor(-1.0)), "within the support"),
        (lambda: D.Normal(torch.zeros(2), 1.0).log_prob(torch.zeros(3)), "not broadcastable"),
        (lambda: D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2)), "right-most size"),
        (lambda: D.Geometric(torch.zeros(1)), "to be positive"),
        (lambda: D.LKJCholesky(1), "greater than or equal to 2"),
        (lambda: D.Independent(D.Normal(0.0, 1.0), 1), "reinterpreted_batch_ndims"),
        (lambda: D.Distribution.set_default_validate_args("no"), "expected a bool"),
        (lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(torch.zeros(2), 1.0)), "Categorical"),
        (lambda: D.Wishart(1.0, torch.eye(3)), "expected to be greater than ndim - 1"),
        (lambda: D.ExpTransform(cache_size=2), "cache_size must be 0 or 1"),
        (lambda: D.ReshapeTransform((2, 3), (5,)), "different numbers of elements"),
    ]
    for call, text in refusals:
        with pytest.raises(ValueError, match=text):
            call()
    assert torch.isnan(D.Normal(0.0, -1.0, validate_args=False).log_prob(torch.zeros(1))).all()
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)
    for call in (
        lambda: D.Normal(0.0, 1.0).enumerate_support(),
        lambda: D.Poisson(1.0).entropy(),
        lambda: D.VonMises(0.0, 1.0).rsample(),
    ):
        with pytest.raises(NotImplementedError):
            call()


def transforms(torch):
    D = torch.distributions
    t = torch.tensor
    return {
        "Exp": D.ExpTransform(), "Power": D.PowerTransform(t(2.5)), "Sigmoid": D.SigmoidTransform(),
        "Softplus": D.SoftplusTransform(), "Tanh": D.TanhTransform(), "Affine": D.AffineTransform(t(1.0), t(-2.0)),
        "AffineVector": D.AffineTransform(t([1.0, 2.0, 3.0]), t([0.5, -1.0, 2.0]), event_dim=1),
        "StickBreaking": D.StickBreakingTransform(), "CorrCholesky": D.CorrCholeskyTransform(),
        "Reshape": D.ReshapeTransform((3,), (1, 3)), "Independent": D.IndependentTransform(D.ExpTransform(), 1),
        "Compose": D.ComposeTransform([D.AffineTransform(0.5, 2.0), D.SigmoidTransform(), D.StickBreakingTransform()]),
        "Cdf": D.CumulativeDistributionTransform(D.Normal(0.5, 2.0)),
        "Cat": D.CatTransform([D.ExpTransform(), D.identity_transform], dim=-1, lengths=[1, 2]),
        "Stack": D.StackTransform([D.ExpTransform(), D.TanhTransform(), D.identity_transform], dim=-1),
        "Inverse": D.ExpTransform().inv,
    }  # fmt: skip


@pytest.mark.parametrize("name", transforms(target.torch))
def test_transforms_have_inverses_and_jacobians(torch, name):
    transform = transforms(torch)[name]
    x = torch.tensor([[0.3, -0.8, 0.5], [1.2, 0.4, -0.6]])
    x = (x.abs() + 0.1 if name in ("Power", "Inverse") else x).requires_grad_()
    y = transform(x)
    assert transform.codomain.check(y).all() and y.shape == torch.Size(transform.forward_shape(x.shape))
    assert transform.inverse_shape(y.shape) == x.shape and transform.bijective
    close(transform.inv(y).tolist(), x.tolist(), 1e-6)
    assert transform.inv.inv is transform and transform == transform and transform.with_cache()._cache_size == 1
    got = transform.log_abs_det_jacobian(x, y)
    if name != "Stack":
        assert got.shape == x.shape[: x.dim() - transform.domain.event_dim]
    if name in ("Reshape", "Compose", "StickBreaking", "CorrCholesky"):
        # The columns of the lower triangle, or all coordinates but the last, which depends on the others.
        free = {
            "CorrCholesky": lambda y: y[torch.ones(3, 3, dtype=torch.bool).tril(-1)], "Reshape": lambda y: y.flatten()
        }.get(name, lambda y: y[:-1])  # fmt: skip
        for i in range(2):
            jacobian = torch.autograd.functional.jacobian(lambda v: free(transform(v)), x[i].detach())
            close(got[i].item(), torch.linalg.slogdet(jacobian).logabsdet.item(), 1e-6)
        return
    slope = torch.autograd.grad(y.sum(), x)[0].abs().log()
    close(got.tolist(), (slope.sum(-1) if got.dim() == 1 else slope).tolist(), 1e-6)


def test_transforms_keep_their_last_pair(torch):
    kept = torch.distributions.ExpTransform(cache_size=1)
    x = torch.zeros(2)
    y = kept(x)
    assert kept(x) is y and kept.inv(y) is x


def test_constraints_have_transforms(torch):
    D, c = torch.distributions, torch.distributions.constraints
    several = [
        (c.real, ()), (c.positive, ()), (c.nonnegative, ()), (c.greater_than(-2.0), ()), (c.less_than(3.0), ()),
        (c.unit_interval, ()), (c.interval(-2.0, 5.0), ()), (c.half_open_interval(0.0, 4.0), ()), (c.simplex, (3,)),
        (c.corr_cholesky, (3,)), (c.independent(c.positive, 1), (3,)), (c.stack([c.positive, c.real], -1), (2,)),
        (c.cat([c.positive, c.unit_interval], -1, [1, 1]), (2,)),
    ]  # fmt: skip
    for constraint, shape in several:
        x = torch.randn((4, *shape))
        for registry in (D.biject_to, D.transform_to):
            transform = registry(constraint)
            y = transform(x)
            assert constraint.check(y).all(), constraint
            close(transform(transform.inv(y)).tolist(), y.tolist(), 1e-6)
    for constraint in (c.lower_cholesky, c.positive_definite):
        assert constraint.check(D.transform_to(constraint)(torch.randn(4, 3, 3))).all()
    with pytest.raises(NotImplementedError, match="Cannot transform"):
        D.biject_to(c.boolean)
    assert repr(c.interval(0, 1)) == "Interval(lower_bound=0, upper_bound=1)" and repr(c.real_vector) == (
        "IndependentConstraint(Real(), 1)"
    )
    assert c.is_dependent(D.Uniform.support) and not c.is_dependent(D.Normal.support)


def test_divergences_are_found_by_class(torch):
    D = torch.distributions

    class Mine(D.Normal):
        pass

    class Stranger(D.Distribution):
        arg_constraints = {}

    p = Mine(0.0, 1.0)
    close(D.kl_divergence(p, D.Normal(1.0, 1.0)).item(), 0.5)
    with pytest.raises(NotImplementedError, match=r"No KL\(p \|\| q\) is implemented"):
        D.kl_divergence(p, Stranger())
    D.register_kl(Mine, D.Normal)(lambda p, q: 1)
    D.register_kl(D.Normal, Mine)(lambda p, q: 2)
    try:
        with pytest.warns(RuntimeWarning, match="Ambiguous kl_divergence"):
            assert D.kl_divergence(p, Mine(0.0, 1.0)) == 1
    finally:
        for pair in ((Mine, D.Normal), (D.Normal, Mine)):
            del D.kl._KL_REGISTRY[pair]
        D.kl._KL_MEMOIZE.clear()
    assert type(p.expand((3,))) is Mine


def test_a_subclass_with_its_own_arguments_expands_itself(torch):
    class Fixed(torch.distributions.Normal):
        def __init__(self):
            super().__init__(0.0, 1.0)

    with pytest.raises(NotImplementedError, match="must also define a custom .expand"):
        Fixed().expand((2,))


def test_entropies_of_exponential_families(torch):
    """The analytic entropy is the one by the log normaliser, and both have the same gradient."""
    D = torch.distributions
    for name in NAMES:
        dist = cases.instances(torch)[name]
        if not isinstance(dist, D.ExponentialFamily) or name == "Poisson":
            continue
        close(D.ExponentialFamily.entropy(dist).tolist(), dist.entropy().tolist(), 1e-6)
    a = torch.tensor(2.5, requires_grad=True)
    gradients = [torch.autograd.grad(e(D.Gamma(a, 1.5)), a)[0] for e in (D.Gamma.entropy, D.ExponentialFamily.entropy)]
    close(gradients[1].item(), gradients[0].item())


def test_policy_gradient(torch):
    """What programs of reinforcement learning do with a `Categorical`."""
    logits = torch.zeros(1, 3, requires_grad=True)
    dist = torch.distributions.Categorical(logits=logits)
    action = dist.sample()
    (-dist.log_prob(action) * 2.0).sum().backward()
    want = 2 / 3 - 2 * (torch.arange(3) == action)
    close(logits.grad[0].tolist(), want.tolist())


def test_sample_n_is_deprecated(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FutureWarning, match="will be deprecated"):
            torch.distributions.Normal(0.0, 1.0).sample_n(3)
