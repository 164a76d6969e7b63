"""Optimizers' rules against losses recorded from PyTorch: five steps on a fixed problem in double precision."""

import copy

import pytest

W = [[0.5, -1.25, 0.75], [2.0, 0.125, -0.5]]
B = [0.25, -0.75]
X = [[1.0, 0.5, -0.25], [-0.5, 1.5, 0.75], [0.25, -1.0, 2.0], [1.25, 0.0, -1.5]]
Y = [[0.5, 1.0], [-1.0, 0.25], [0.75, -0.5], [0.0, 1.5]]


def problem(torch, name, options, dtype="float64", device="cpu"):
    """(parameters, optimizer, closure); complex parameters for complex dtypes, and a term that is not convex for real."""
    dtype = getattr(torch, dtype)
    turn = (1 + 0.5j, 1 - 0.25j) if dtype.is_complex else (1, 1)
    w = (torch.tensor(W, dtype=dtype, device=device) * turn[0]).requires_grad_()
    b = (torch.tensor(B, dtype=dtype, device=device) * turn[1]).requires_grad_()
    x, y = torch.tensor(X, dtype=dtype, device=device), torch.tensor(Y, dtype=dtype, device=device)
    optimizer = getattr(torch.optim, name)([w, b], **options)

    def closure():
        optimizer.zero_grad()
        rest = x.matmul(w.t()) + b - y
        loss = (rest * rest.conj()).real.mean() if dtype.is_complex else (rest**2).mean() + torch.sin(3 * w).sum()
        loss.backward()
        return loss

    return (w, b), optimizer, closure


# (name, options, losses in float64, losses in complex128)
CASES = [
    (
        "Adadelta",
        {},
        [3.043913422, 3.007300837, 2.969681891, 2.931326011, 2.892342129],
        [2.589355469, 2.560609807, 2.5314056, 2.502019303, 2.472586814],
    ),
    (
        "Adadelta",
        {"lr": 0.5, "rho": 0.8, "eps": 0.0001, "weight_decay": 0.1, "maximize": True},
        [3.043913422, 3.173028016, 3.308719472, 3.44988857, 3.596447186],
        [2.589355469, 2.692150398, 2.804234111, 2.925013698, 3.054594705],
    ),
    (
        "RAdam",
        {"lr": 0.1},
        [3.043913422, 0.388088745, -0.841145643, -0.872526203, -0.733591059],
        [2.589355469, 1.881981103, 1.348621601, 0.955284926, 0.67264724],
    ),
    (
        "RAdam",
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "decoupled_weight_decay": True},
        [3.043913422, 0.327148781, -0.830230928, -0.86312369, -0.870404241],
        [2.589355469, 1.830867557, 1.275561189, 0.879494403, 0.604946926],
    ),
    (
        "RAdam",
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1},
        [3.043913422, 0.327148781, -0.830386564, -0.851730912, -0.849617741],
        [2.589355469, 1.830867557, 1.273113781, 0.874261903, 0.597719378],
    ),
    (
        "Adamax",
        {"lr": 0.1},
        [3.043913422, 1.885547531, 0.854844746, -0.105956785, -0.948329052],
        [2.589355469, 1.773496101, 1.176596909, 0.753123539, 0.464484619],
    ),
    (
        "Adamax",
        {"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True},
        [3.043913422, 4.170211808, 5.207144451, 6.122952562, 6.941511661],
        [2.589355469, 3.607714789, 4.719555647, 5.939784553, 7.272357553],
    ),
    (
        "NAdam",
        {"lr": 0.1},
        [3.043913422, 1.821087412, 0.848303433, -0.05972897, -0.885952512],
        [2.589355469, 1.733179592, 1.260558702, 0.917091062, 0.652666525],
    ),
    (
        "NAdam",
        {"lr": 0.1, "momentum_decay": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
        [3.043913422, 1.713612272, 0.666681768, -0.277106182, -1.104645469],
        [2.589355469, 1.682973909, 1.186643108, 0.833782608, 0.570371955],
    ),
    (
        "NAdam",
        {"lr": 0.1, "weight_decay": 0.1},
        [3.043913422, 1.82108741, 0.849717605, -0.056423353, -0.880091807],
        [2.589355469, 1.742572627, 1.263363408, 0.91717228, 0.652921636],
    ),
    (
        "ASGD",
        {"lr": 0.1},
        [3.043913422, 0.388025611, -0.954859343, -1.313020391, -1.562852824],
        [2.589355469, 1.881929564, 1.389577455, 1.04319117, 0.796678343],
    ),
    (
        "ASGD",
        {"lr": 0.1, "lambd": 0.01, "t0": 2, "weight_decay": 0.1},
        [3.043913422, 0.321294792, -0.958906609, -1.298438848, -1.601080322],
        [2.589355469, 1.825802077, 1.308752492, 0.954632233, 0.709168424],
    ),
    (
        "Rprop",
        {"lr": 0.1},
        [3.043913422, 1.88554752, 0.48888773, -1.035394532, -2.242086651],
        [2.589355469, 1.773496094, 1.013802344, 0.418624906, 0.142764376],
    ),
    (
        "Rprop",
        {"lr": 0.3, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.4), "maximize": True},
        [3.043913422, 6.015741001, 8.948625571, 11.618615394, 14.37363141],
        [2.589355469, 6.191933594, 13.840371094, 24.898808594, 39.357246094],
    ),
    (
        "LBFGS",
        {"lr": 0.1, "max_iter": 3},
        [3.043913422, 140.241863038, 100.150963522, 78.956415732, 32.370811198],
        [2.589355469, 2.057915168, 1.376859103, 0.92679762, 0.629928958],
    ),
    (
        "LBFGS",
        {"line_search_fn": "strong_wolfe", "max_iter": 4},
        [3.043913422, -1.378672303, -2.401647186, -2.925668067, -2.960291058],
        [2.589355469, 0.068184218, 0.014905887, 4e-09, 0.0],
    ),
    (
        "LBFGS",
        {"line_search_fn": "strong_wolfe", "history_size": 2},
        [3.043913422, -2.960352019, -2.96035213, -2.96035213, -2.96035213],
        [2.589355469, 1e-09, 1e-09, 1e-09, 1e-09],
    ),
    (
        "LBFGS",
        {"lr": 5.0, "line_search_fn": "strong_wolfe", "max_iter": 5},
        [3.043913422, -1.571836079, -2.114553004, -2.643492707, -2.908350801],
        [2.589355469, 0.070915835, 0.0, 0.0, 0.0],
    ),
]


def losses(torch, name, options, **where):
    _, optimizer, closure = problem(torch, name, options, **where)
    return [optimizer.step(closure).item() for _ in range(5)]


@pytest.mark.parametrize(("name", "options", "real", "complex"), CASES)
def test_losses(torch, name, options, real, complex):
    assert losses(torch, name, options) == pytest.approx(real, rel=1e-6, abs=1e-8)
    assert losses(torch, name, options, dtype="complex128") == pytest.approx(complex, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(("name", "options", "real", "complex"), CASES[::2])
def test_losses_in_single_precision(torch, device, name, options, real, complex):
    assert losses(torch, name, options, dtype="float32", device=device) == pytest.approx(real, rel=2e-2, abs=2e-2)


@pytest.mark.parametrize("name", ["Adadelta", "RAdam", "Adamax", "NAdam", "ASGD", "Rprop", "LBFGS"])
def test_state_is_taken_over(torch, name):
    """A copy that loads the state continues like the original."""
    params, optimizer, closure = problem(torch, name, {})
    for _ in range(2):
        optimizer.step(closure)
    others, resumed, again = problem(torch, name, {})
    with torch.no_grad():
        for p, q in zip(params, others, strict=True):
            q.copy_(p)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for _ in range(2):
        assert optimizer.step(closure).item() == pytest.approx(resumed.step(again).item(), rel=1e-9)
    for p, q in zip(params, others, strict=True):
        assert torch.allclose(p, q)


@pytest.mark.parametrize("name", ["Adadelta", "RAdam", "Adamax", "NAdam", "Rprop"])
def test_differentiable_step(torch, name):
    """The gradient flows through a step to the previous parameter."""
    start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    param = start.clone()
    param.retain_grad()
    param.grad = start * 3
    optimizer = getattr(torch.optim, name)([param], lr=0.1, differentiable=True)
    optimizer.step()
    (grad,) = torch.autograd.grad(param.sum(), start)
    assert grad.isfinite().all() and grad.abs().sum() > 0


def test_lbfgs_options(torch):
    params = [torch.zeros(1, requires_grad=True), torch.zeros(1, requires_grad=True)]
    with pytest.raises(ValueError, match="doesn't support per-parameter options"):
        torch.optim.LBFGS([{"params": [p]} for p in params])
    optimizer = torch.optim.LBFGS(params, line_search_fn="golden")

    def closure():
        optimizer.zero_grad()
        loss = ((params[0] - 1) ** 2 + (params[1] + 2) ** 2).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)
    optimizer = torch.optim.LBFGS(params, line_search_fn="strong_wolfe")
    optimizer.step(closure)
    assert params[0].item() == pytest.approx(1) and params[1].item() == pytest.approx(-2)
    evaluations = optimizer.state_dict()["state"][0]["func_evals"]
    optimizer.step(closure)
    assert optimizer.state_dict()["state"][0]["func_evals"] == evaluations + 1


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
        ("RAdam", {"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0: 1.0"),
        ("NAdam", {"momentum_decay": -1.0}, "Invalid momentum_decay value: -1.0"),
        ("Adamax", {"eps": -1.0}, "Invalid epsilon value: -1.0"),
        ("ASGD", {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0"),
        ("Rprop", {"etas": (1.0, 0.5)}, "Invalid eta values: 1.0, 0.5"),
        ("LBFGS", {"lr": -1.0}, "Invalid learning rate: -1.0"),
    ],
)
def test_bad_options(torch, name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(torch.optim, name)([torch.zeros(1, requires_grad=True)], **options)
