"""Optimizers and schedulers: trajectories recorded from PyTorch, state, groups, hooks, errors.

`golden/optim.json` holds the recorded results, `golden/record_optim.py` their problem.
"""

import copy
import importlib.util
import json
import math
import pickle
from pathlib import Path

import pytest
from conftest import need

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "optim.json").read_text())


def load_recorder():
    """The recorder's module, without the torch that it imports at its top."""
    source = (GOLDEN / "record_optim.py").read_text().replace("import torch\n", "")
    spec = importlib.util.spec_from_loader("record_optim", loader=None)
    module = importlib.util.module_from_spec(spec)
    exec(compile(source, "record_optim.py", "exec"), module.__dict__)
    return module


RECORDER = load_recorder()


def close(got, want, rtol=1e-10, atol=1e-12):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, rtol, atol)
    else:
        assert math.isclose(got, want, rel_tol=rtol, abs_tol=atol), f"{got} != {want}"


def label(case):
    return case["name"] + "".join(f"-{k}={v}" for k, v in case["options"].items())


FUSED = ("SGD", "Adam", "AdamW", "Adagrad")
# Fused too, without the argument that asks for it.
ONE_PASS = ("RMSprop", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")


def fused_choices(name):
    """The composed form, and the default one, which is fused."""
    if name in FUSED:
        return ({"fused": False}, {})
    return ({"foreach": False}, {}) if name in ONE_PASS else ({},)


@pytest.mark.parametrize("name", FUSED + ONE_PASS)
def test_a_parameter_listed_twice_takes_two_steps(torch, name):
    def run(options):
        p = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        with pytest.warns(UserWarning, match="duplicate parameters"):
            optimizer = getattr(torch.optim, name)([p, p], lr=0.1, **options)
        for _ in range(2):
            p.grad = torch.tensor([0.5, 3.0]) * p.detach()
            optimizer.step()
        return p.tolist()

    composed, fused = fused_choices(name)
    assert run(fused) == pytest.approx(run(composed), rel=1e-5)


@pytest.mark.parametrize("name", FUSED + ONE_PASS)
@pytest.mark.parametrize("dtype", ["complex64", "bfloat16", "float64"])
def test_one_pass_and_composed_steps_agree(torch, name, dtype):
    """Several parameters, dense and transposed, of every kind of dtype; one has taken fewer steps than the others."""

    def run(options):
        torch.manual_seed(1)
        params = [torch.randn(3, 5, dtype=getattr(torch, dtype)) for _ in range(3)]
        params[1] = params[1].t()
        params = [torch.nn.Parameter(p) for p in params]
        optimizer = getattr(torch.optim, name)(params, lr=0.02, **options)
        for k in range(8):
            for p in params[k < 2 :]:
                p.grad = (
                    torch.randn(3, 5).to(p.dtype) if p.is_contiguous() else torch.randn(5, 3).to(p.dtype)
                ) + p.detach()
            optimizer.step()
        state = [v for s in optimizer.state_dict()["state"].values() for v in s.values() if v is not None]
        return [*params, *state]

    composed, fused = map(run, fused_choices(name))
    tolerance = {"bfloat16": 0.05, "complex64": 1e-4, "float64": 1e-6}[dtype]
    for a, b in zip(fused, composed, strict=True):
        assert a.dtype == b.dtype
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", RECORD["optimizers"], ids=label)
def test_trajectory(torch, case):
    for extra in fused_choices(case["name"]):
        params, optimizer, closure = RECORDER.problem(torch, case["name"], {**case["options"], **extra}, torch.float64)
        for step in case["steps"]:
            loss = optimizer.step(closure)
            close(loss.item(), step["loss"])
            close([p.tolist() for p in params], step["params"])
        assert set(case["state"]) <= set(optimizer.state_dict()["state"].get(0, {}))
        assert set(case["group"]) <= set(optimizer.param_groups[0])


@pytest.mark.parametrize("case", RECORD["optimizers"], ids=label)
def test_trajectory_in_single_precision(torch, device, case):
    params, optimizer, closure = RECORDER.problem(torch, case["name"], case["options"], torch.float32)
    if device == "gpu":
        moved = [p.detach().to("gpu").requires_grad_() for p in params]
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in case["options"].items()}
        optimizer = getattr(torch.optim, case["name"])(moved, **options)
        x, y = (torch.tensor(v).to("gpu") for v in (RECORDER.X, RECORDER.Y))
        params = moved

        def closure():
            optimizer.zero_grad()
            loss = ((x.matmul(moved[0].t()) + moved[1] - y) ** 2).mean()
            loss.backward()
            return loss

    for step in case["steps"]:
        optimizer.step(closure)
        close([p.tolist() for p in params], step["params"], rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("options", [{"momentum": 0.9}, {"momentum": 0.0}, {}], ids=["momentum", "SGD", "Adam"])
def test_no_decay_leaves_infinite_parameters_alone(torch, device, options):
    p = torch.tensor([float("inf"), 1.0], device=device, requires_grad=True)
    p.grad = torch.ones(2, device=device)
    optimizer = torch.optim.SGD([p], lr=0.5, **options) if options else torch.optim.Adam([p], lr=0.5)
    optimizer.step()
    close(p.tolist(), [float("inf"), 0.5], rtol=1e-6)


@pytest.mark.parametrize("case", RECORD["schedulers"], ids=label)
def test_scheduler(torch, case):
    p = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.2, momentum=0.9)
    scheduler = getattr(torch.optim.lr_scheduler, case["name"])(optimizer, **case["options"])
    for k, (lr, momentum) in enumerate(case["rates"]):
        close(optimizer.param_groups[0]["lr"], lr)
        close(optimizer.param_groups[0]["momentum"], momentum)
        close(scheduler.get_last_lr()[0], lr)
        optimizer.step()
        scheduler.step()
        if k == 4:
            saved = copy.deepcopy(scheduler.state_dict())
            scheduler = getattr(torch.optim.lr_scheduler, case["name"])(optimizer, **case["options"])
            optimizer.param_groups[0].update(lr=case["rates"][5][0], momentum=case["rates"][5][1])
            scheduler.load_state_dict(saved)


@pytest.mark.parametrize("case", RECORD["plateau"], ids=lambda c: "-".join(map(str, c["options"].values())))
def test_plateau(torch, case):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.2)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, **case["options"])
    for metric, lr in zip(RECORDER.METRICS, case["rates"], strict=True):
        metric = -metric if case["options"].get("mode") == "max" else metric
        scheduler.step(torch.tensor(metric, dtype=torch.float64))
        close(optimizer.param_groups[0]["lr"], lr)


def quadratic(torch, make, steps=3, **kwargs):
    p = torch.tensor([1.0, -2.0], requires_grad=True)
    optimizer = make([p], **kwargs)
    for _ in range(steps):
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()
    return p, optimizer


def test_lambda_schedulers_and_composition(torch):
    schedulers = torch.optim.lr_scheduler
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = schedulers.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    rates = []
    for _ in range(3):
        rates.append(scheduler.get_last_lr()[0])
        optimizer.step()
        scheduler.step()
    assert rates == [1.0, 0.5, 0.25]

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    warm = schedulers.ConstantLR(optimizer, factor=0.1, total_iters=2)
    decay = schedulers.ExponentialLR(optimizer, gamma=0.9)
    scheduler = schedulers.SequentialLR(optimizer, [warm, decay], milestones=[2])
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    close(rates, [0.1, 0.1, 1.0, 0.9, 0.81])

    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    halves = schedulers.StepLR(optimizer, 2, gamma=0.5)
    scheduler = schedulers.ChainedScheduler([halves, schedulers.ExponentialLR(optimizer, gamma=0.1)])
    rates = []
    for _ in range(3):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    close(rates, [1.0, 0.1, 0.005])


def test_scheduler_warns_about_the_order(torch):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match="before `optimizer.step\\(\\)`"):
        scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()


def test_repr(torch):
    assert repr(torch.optim.Adam([torch.zeros(1)], lr=0.25)) == RECORD["repr"]


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_resume_continues_the_trajectory(torch, name):
    make = getattr(torch.optim, name)
    kwargs = {"lr": 0.1, **({"momentum": 0.9} if name in ("SGD", "RMSprop") else {})}
    whole, _ = quadratic(torch, make, steps=6, **kwargs)
    half, optimizer = quadratic(torch, make, steps=3, **kwargs)
    saved = pickle.loads(pickle.dumps(optimizer.state_dict()))
    p = half.detach().clone().requires_grad_()
    resumed = make([p], **kwargs)
    resumed.load_state_dict(saved)
    for _ in range(3):
        resumed.zero_grad()
        (p * p).sum().backward()
        resumed.step()
    assert p.tolist() == whole.tolist()
    assert pickle.loads(pickle.dumps(resumed)).state_dict().keys() == resumed.state_dict().keys()


def test_groups_have_options_of_their_own(torch):
    a, b, c = (torch.ones(1, requires_grad=True) for _ in range(3))
    optimizer = torch.optim.SGD([{"params": a}, {"params": [b], "lr": 0.5}], lr=0.1)
    optimizer.add_param_group({"params": [c], "lr": 0.0})
    (a + b + c).sum().backward()
    optimizer.step()
    close([a.item(), b.item(), c.item()], [0.9, 0.5, 1.0], rtol=1e-6)
    state = optimizer.state_dict()
    assert [g["params"] for g in state["param_groups"]] == [[0], [1], [2]]


def test_named_parameters(torch):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.named_parameters(), lr=0.1)
    assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
    with pytest.raises(ValueError, match="with/without names"):
        optimizer.add_param_group({"params": [torch.zeros(1, requires_grad=True)]})


def test_parameters_without_gradients_are_left_alone(torch):
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    a.sum().backward()
    optimizer.step()
    assert b.item() == 1.0 and a.item() != 1.0 and list(optimizer.state_dict()["state"]) == [0]


def test_zero_grad(torch):
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    optimizer.zero_grad()
    assert p.grad is None


def test_hooks(torch):
    calls = []
    p = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: calls.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: calls.append("post")),
        optimizer.register_state_dict_pre_hook(lambda o: calls.append("state pre")),
        optimizer.register_state_dict_post_hook(lambda o, s: {**s, "extra": 1}),
        optimizer.register_load_state_dict_pre_hook(lambda o, s: calls.append("load pre")),
        optimizer.register_load_state_dict_post_hook(lambda o: calls.append("load post")),
    ]
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    assert calls == ["pre", "post", "state pre", "load pre", "load post"] and state["extra"] == 1
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(calls) == 5


def test_learning_rate_may_be_a_tensor(torch):
    a, _ = quadratic(torch, torch.optim.Adam, lr=0.1)
    b, _ = quadratic(torch, torch.optim.Adam, lr=torch.tensor(0.1))
    close(a.tolist(), b.tolist(), rtol=1e-6)


def test_differentiable_step(torch):
    start = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)
    p = start.clone()
    optimizer = torch.optim.SGD([p], lr=0.1, differentiable=True)
    p.grad = torch.tensor([0.5, 0.5], dtype=torch.float64)
    optimizer.step()
    p.sum().backward()
    assert start.grad.tolist() == [1, 1]


def test_own_optimizer(torch):
    class Plain(torch.optim.Optimizer):
        def __init__(self, params, lr):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-group["lr"])

    p, optimizer = quadratic(torch, Plain, steps=1, lr=0.25)
    assert p.tolist() == [0.5, -1.0]
    ran = []
    optimizer.register_step_post_hook(lambda *a: ran.append(1))
    optimizer.step()
    assert ran == [1]


BAD = [
    ("SGD", {"lr": -1.0}, ValueError, "Invalid learning rate: -1.0"),
    ("SGD", {"momentum": -0.5}, ValueError, "Invalid momentum value: -0.5"),
    ("SGD", {"nesterov": True}, ValueError, "Nesterov momentum requires a momentum and zero dampening"),
    ("SGD", {"weight_decay": -1}, ValueError, "Invalid weight_decay value: -1"),
    ("Adam", {"betas": (1.0, 0.9)}, ValueError, "Invalid beta parameter at index 0: 1.0"),
    ("Adam", {"eps": -1e-8}, ValueError, "Invalid epsilon value: -1e-08"),
    ("Adam", {"lr": -0.1}, ValueError, "Invalid learning rate: -0.1"),
    ("AdamW", {"weight_decay": -1.0}, ValueError, "Invalid weight_decay value: -1.0"),
    ("RMSprop", {"alpha": -1.0}, ValueError, "Invalid alpha value: -1.0"),
    ("Adagrad", {"lr_decay": -1.0}, ValueError, "Invalid lr_decay value: -1.0"),
]


@pytest.mark.parametrize(("name", "options", "error", "message"), BAD, ids=lambda v: str(v)[:30])
def test_bad_options(torch, name, options, error, message):
    with pytest.raises(error, match=message.replace("(", "\\(")):
        getattr(torch.optim, name)([torch.zeros(1, requires_grad=True)], **options)


def test_bad_parameters(torch):
    leaf = torch.zeros(1, requires_grad=True)
    sgd = torch.optim.SGD
    with pytest.raises(ValueError, match="empty parameter list"):
        sgd([], lr=0.1)
    with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts, but got torch.FloatTensor"):
        sgd(leaf, lr=0.1)
    with pytest.raises(TypeError, match="one of the params is int"):
        sgd([3], lr=0.1)
    with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
        sgd([leaf * 2], lr=0.1)
    with pytest.raises(ValueError, match="more than one parameter group"):
        sgd([{"params": [leaf]}, {"params": [leaf]}], lr=0.1)
    optimizer = sgd([leaf], lr=0.1)
    with pytest.raises(TypeError, match="param_group must be a dict"):
        optimizer.add_param_group([leaf])
    with pytest.raises(ValueError, match="different number of parameter groups"):
        optimizer.load_state_dict({"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="doesn't match the size of optimizer's group"):
        optimizer.load_state_dict({"state": {}, "param_groups": [{"params": [0, 1]}]})
    with pytest.raises(NotImplementedError):
        torch.optim.Optimizer([leaf], {"lr": 1}).step()


@pytest.mark.parametrize("shape", [(6, 3), (3, 6)])
def test_muon_takes_orthogonal_steps(torch, shape):
    weight = torch.randn(shape).requires_grad_()
    before, grad = weight.detach().clone(), torch.randn(shape)
    weight.grad = grad.clone()
    optimizer = torch.optim.Muon([weight], lr=0.5, weight_decay=0.1, momentum=0.9, nesterov=False)
    optimizer.step()
    update = (before * (1 - 0.05) - weight.detach()) / (0.5 * max(1, shape[0] / shape[1]) ** 0.5)
    values = torch.linalg.svdvals(update)
    # The iteration brings singular values near one, not to it.
    assert 0.6 < values.min() and values.max() < 1.3
    u, _, vh = torch.linalg.svd(grad, full_matrices=False)
    assert torch.nn.functional.cosine_similarity(update.reshape(1, -1), (u @ vh).reshape(1, -1)) > 0.95
    torch.testing.assert_close(optimizer.state[weight]["momentum_buffer"], grad * 0.1)


def test_muon_adjusts_its_rate(torch):
    def change(function):
        weight = torch.zeros(2, 8, requires_grad=True)
        weight.grad = torch.eye(2, 8)
        torch.optim.Muon([weight], lr=1.0, adjust_lr_fn=function).step()
        return weight.detach()

    base = change(None)
    torch.testing.assert_close(change("original"), base)
    torch.testing.assert_close(change("match_rms_adamw"), base * 0.2 * 8**0.5, rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(change("spectral_unclamped"), base * 0.5, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("name", FUSED)
def test_fused_ops_compute_on_floats_with_memory(torch, name):
    options = {"lr": 0.1, "fused": True}
    with torch.device("meta"):
        weight = torch.nn.Parameter(torch.ones(2))
        weight.grad = torch.ones(2)
    for p in (weight, torch.ones(2, dtype=torch.complex64, requires_grad=True)):
        p.grad = torch.ones_like(p)
        with pytest.raises(RuntimeError, match="`fused=True` requires all the params to be floating point Tensors"):
            getattr(torch.optim, name)([p], **options).step()
    without = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    getattr(torch.optim, name)([without], **options).step()


@pytest.mark.parametrize("fused", [True, False, None])
def test_adagrad_of_a_model_that_was_made_on_meta(torch, fused):
    """Its state is made with it, and before `to_empty` there is no memory for that."""
    with torch.device("meta"):
        model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=0.5, initial_accumulator_value=4.0, fused=fused)
    model.to_empty(device="cpu")
    for p in model.parameters():
        p.detach().fill_(1.0)
        p.grad = torch.ones_like(p)
    optimizer.step()
    for p in model.parameters():
        torch.testing.assert_close(p.detach(), torch.full_like(p, 1 - 0.5 / 5**0.5))
        assert optimizer.state[p]["sum"].device == p.device and optimizer.state[p]["step"] == 1


def test_refused_options_of_muon_and_adafactor(torch):
    matrix, vector = torch.ones(2, 2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="Muon only supports 2D parameters whereas we found a parameter with size"):
        torch.optim.Muon([matrix, vector])
    with pytest.raises(ValueError, match="Adjust learning rate function other is not supported"):
        torch.optim.Muon([matrix], adjust_lr_fn="other")
    for options in ({"lr": -1.0}, {"momentum": -1.0}, {"weight_decay": -1.0}):
        with pytest.raises(ValueError, match="should be >= 0 but is: -1.0"):
            torch.optim.Muon([matrix], **options)
    matrix.grad = torch.ones(2, 2)
    with pytest.raises(ValueError, match="Number of steps must be less than 100"):
        torch.optim.Muon([matrix], ns_steps=100).step()
    with pytest.raises(ValueError, match="Coefficients must be a tuple of exactly 3 values"):
        torch.optim.Muon([matrix], ns_coefficients=(1.0, 2.0)).step()
    wrong = {"lr": -1.0, "beta2_decay": 1.0, "eps": (-1.0, 1e-3), "d": 0.5, "weight_decay": -1.0}
    for name, value in wrong.items():
        with pytest.raises(ValueError, match="should be .* but is"):
            torch.optim.Adafactor([matrix], **{name: value})
    complex_one = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    complex_one.grad = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(RuntimeError, match="Adafactor does not support complex parameters"):
        torch.optim.Adafactor([complex_one]).step()


def test_sparse_adam_wants_sparse_gradients(torch):
    weight = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SparseAdam([weight])
    optimizer.step()
    weight.grad = torch.ones(2)
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam instead"):
        optimizer.step()
    for options in ({"lr": 0.0}, {"eps": 0.0}, {"betas": (1.0, 0.9)}):
        with pytest.raises(ValueError, match="Invalid"):
            torch.optim.SparseAdam([weight], **options)
    with pytest.raises(ValueError, match=r"Complex params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([torch.ones(2, dtype=torch.complex64)])


def test_swapped_in_parameters_and_state(torch):
    def stepped(value):
        weight = torch.full((2,), value, requires_grad=True)
        weight.grad = torch.ones(2)
        optimizer = torch.optim.Adam([weight], lr=0.1)
        optimizer.step()
        return weight, optimizer

    weight, optimizer = stepped(1.0)
    other, source = stepped(5.0)
    saved = source.state_dict()
    saved["param_groups"][0]["lr"] = 0.5
    params, before = optimizer.param_groups[0]["params"], weight.detach().clone()
    with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"w": other}, saved):
        assert optimizer.param_groups[0]["lr"] == 0.5
        optimizer.step()
    torch.testing.assert_close(other.detach(), torch.full((2,), 5.0 - 0.1 - 0.5))
    assert torch.equal(weight, before) and optimizer.param_groups[0]["params"] is params
    assert optimizer.param_groups[0]["lr"] == 0.1 and optimizer.state[weight]["step"] == 1
    assert saved["state"][0]["step"] == 2
    swap = torch.optim.swap_in_optimizer_params_and_state
    fresh = torch.optim.Adam([torch.ones(2, requires_grad=True)])
    wrong = [
        (fresh, saved, "requires initialized optimizer state"),
        (optimizer, 3, "requires a DCP-style optimizer state_dict"),
        (optimizer, {"state": 3, "param_groups": []}, "to be a dict mapping packed parameter ids"),
        (optimizer, {"state": {}, "param_groups": 3}, "to be a list of param-group dicts, got int"),
        (optimizer, {"state": {}, "param_groups": []}, "different number of parameter groups"),
        (optimizer, {"state": {}, "param_groups": [{"params": [0, 1]}]}, "different number of params"),
        (
            optimizer,
            {"state": {}, "param_groups": [{"params": [0]}]},
            "keys to exactly match the live optimizer group keys",
        ),
        (optimizer, {**saved, "state": {7: {}}}, "got extra keys \\[7\\]"),
    ]
    for which, given, message in wrong:
        with pytest.raises(RuntimeError, match=message), swap(which, {"w": other}, given):
            pass


# --- one op for all parameters of a group ------------------------------------------------------------

STEPS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True}),
    ("AdamW", {"amsgrad": True}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1}),
]
SHAPES = [(64, 33), (3,), (), (0, 4), (2, 3, 4), (17,), (5000,), (1, 1)]


def step_label(case):
    return "-".join([case[0], *map(str, case[1])])


def parameters(torch, device, dtype):
    """Parameters of many sizes with gradients, one of them transposed and one strided."""
    made = [torch.randn(shape).to(dtype).to(device) for shape in SHAPES]
    made[4] = made[4].transpose(0, 2)
    made[5] = torch.randn(34).to(dtype).to(device)[::2]
    made = [p.detach().requires_grad_() for p in made]
    for p in made:
        p.grad = torch.randn(p.shape).to(dtype).to(device)
    return made


PLACES = [("cpu", "float32"), ("cpu", "float64"), ("cpu", "bfloat16"), ("gpu", "float32"), ("gpu", "bfloat16")]


@pytest.mark.parametrize(("device", "dtype"), PLACES, ids="-".join)
@pytest.mark.parametrize("case", STEPS, ids=step_label)
def test_a_step_of_a_list_is_the_step_of_each_parameter(torch, case, device, dtype):
    need(device)
    name, options = case
    results = []
    for together in (True, False):
        torch.manual_seed(3)
        params = parameters(torch, device, getattr(torch, dtype))
        lists = [params] if together else [[p] for p in params]
        optimizers = [getattr(torch.optim, name)(one, lr=0.1, **options) for one in lists]
        for _ in range(3):
            for optimizer in optimizers:
                optimizer.step()
        states = [v for o in optimizers for state in o.state.values() for v in state.values()]
        results.append([t.tolist() for t in [*params, *states]])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["SGD", "Adam", "Adagrad"])
@pytest.mark.parametrize("foreach", [None, True, False])
def test_complex_parameters_step_as_real_pairs(torch, name, foreach):
    torch.manual_seed(5)
    values, grad = torch.randn(7, 2), torch.randn(7, 2)
    real = values.clone().requires_grad_()
    whole = torch.view_as_complex(values.clone()).requires_grad_()
    real.grad, whole.grad = grad.clone(), torch.view_as_complex(grad.clone())
    for p in (real, whole):
        optimizer = getattr(torch.optim, name)([p], lr=0.1, foreach=foreach)
        optimizer.step()
        optimizer.step()
    assert torch.view_as_real(whole.detach()).tolist() == real.tolist()


def test_parameters_that_share_memory_are_updated_one_after_another(torch):
    base, grad = torch.arange(8.0), torch.ones(8)
    step = torch._C.ops["_fused_sgd_"]
    numbers = dict(weight_decay=0.0, momentum=0.0, lr=1.0, dampening=0.0, nesterov=False, maximize=False)
    step([base[:6], base[2:]], [grad[:6], grad[:6]], [], **numbers, is_first_step=False)
    assert base.tolist() == [-1.0, 0.0, 0.0, 1.0, 2.0, 3.0, 5.0, 6.0]
    # One gradient may serve several parameters.
    step([base[:4], base[4:]], [grad[:4], grad[:4]], [], **numbers, is_first_step=False)
    assert base.tolist() == [-2.0, -1.0, -1.0, 0.0, 1.0, 2.0, 4.0, 5.0]
    with pytest.raises(RuntimeError, match="must not share memory"):
        step([base[:4]], [base[:4]], [], **numbers, is_first_step=False)


def test_a_step_of_a_list_writes_as_every_op_does(torch):
    step = torch._C.ops["_fused_sgd_"]
    numbers = dict(weight_decay=0.0, momentum=0.0, lr=1.0, dampening=0.0, nesterov=False, maximize=False)
    p, grad = torch.ones(3, requires_grad=True), torch.ones(3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        step([p], [grad], [], **numbers, is_first_step=False)
    loss = (p * p).sum()
    with torch.no_grad():
        step([p], [grad], [], **numbers, is_first_step=False)
    assert p._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        step([torch.ones(1).expand(3)], [grad], [], **numbers, is_first_step=False)
    with pytest.raises(RuntimeError, match="expected one tensor per parameter"):
        step([grad], [], [], **numbers, is_first_step=False)
    with pytest.raises(NotImplementedError, match="floating point"):
        step([torch.ones(3, dtype=torch.int64)], [torch.ones(3, dtype=torch.int64)], [], **numbers, is_first_step=False)
    assert step([], [], [], **numbers, is_first_step=False) is None


def test_a_step_of_a_list_takes_every_device(torch, device):
    torch.manual_seed(2)
    values = [torch.randn(5) for _ in range(4)]
    places = ["cpu", device, "cpu", device]
    params = [v.clone().to(place).requires_grad_() for v, place in zip(values, places, strict=True)]
    for p in params:
        p.grad = torch.ones_like(p)
    torch.optim.SGD(params, lr=0.5).step()
    for p, v in zip(params, values, strict=True):
        close(p.tolist(), (v - 0.5).tolist(), rtol=1e-6)


def test_a_first_gradient_that_comes_late(torch):
    late = torch.ones(2, requires_grad=True)
    early = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([early, late], lr=0.1, momentum=0.9, dampening=0.5)
    early.grad = torch.ones(2)
    optimizer.step()
    assert late not in optimizer.state
    late.grad = torch.ones(2)
    optimizer.step()
    close(late.tolist(), [0.9, 0.9], rtol=1e-6)
    close(early.tolist(), [1 - 0.1 - 0.1 * (0.9 + 0.5)] * 2, rtol=1e-6)
    assert torch.optim.SGD([early], lr=0.1).state_dict()["state"] == {}


def test_an_optimizer_around_another_needs_no_tables_of_its_own(torch):
    class Around(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner, self.calls = inner, 0

        @property
        def param_groups(self):
            return self.inner.param_groups

        def step(self, closure=None):
            self.calls += 1
            return self.inner.step(closure)

    w = torch.nn.Parameter(torch.ones(2))
    inner = torch.optim.SGD([w], 0.5)
    seen = []
    inner.register_step_pre_hook(lambda *_: seen.append("inner"))
    around = Around(inner)
    w.grad = torch.ones(2)
    around.step()
    assert w.tolist() == [0.5, 0.5] and around.calls == 1 and seen == ["inner"]


def test_hooks_run_once_around_a_step_that_calls_its_base(torch):
    class Twice(torch.optim.SGD):
        def step(self, closure=None):
            super().step()
            return super().step(closure)

    w = torch.nn.Parameter(torch.ones(1))
    optimizer, seen = Twice([w], 0.25), []
    optimizer.register_step_pre_hook(lambda *_: seen.append("pre"))
    optimizer.register_step_post_hook(lambda *_: seen.append("post"))
    w.grad = torch.ones(1)
    optimizer.step()
    assert w.item() == 0.5 and seen == ["pre", "post"]
