"""Cyclic rates, the weight-averaging schedule, and averages of models. Rates were recorded from PyTorch."""

import copy
import gc
import importlib
import pickle
import weakref

import pytest


def swa(torch):
    return importlib.import_module(f"{torch.__name__}.optim.swa_utils")


def make(torch, schedule, **options):
    kind = options.pop("opt", "SGD")
    options = {"lr": 0.2} | ({"momentum": 0.9} if kind == "SGD" else {}) | options
    optimizer = getattr(torch.optim, kind)([torch.zeros(1, requires_grad=True)], **options)
    return optimizer, schedule(torch, optimizer)


def cyclic(*args, **kwargs):
    return lambda torch, optimizer: torch.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.5, *args, **kwargs)


def annealed(*args):
    return lambda torch, optimizer: swa(torch).SWALR(optimizer, 0.05, *args)


FLAT = [0.9] * 6
CASES = [
    (cyclic(4), {}, [0.1, 0.2, 0.3, 0.4, 0.5, 0.4, 0.3], [0.9, 0.875, 0.85, 0.825, 0.8, 0.825, 0.85]),
    (
        cyclic(2, 1, mode="triangular2"),
        {},
        [0.1, 0.3, 0.5, 0.1, 0.2, 0.3, 0.1, 0.15],
        [0.9, 0.85, 0.8, 0.9, 0.875, 0.85, 0.9, 0.8875],
    ),
    (
        cyclic(2, mode="exp_range", gamma=0.9, base_momentum=0.5, max_momentum=0.8),
        {"opt": "Adam"},
        [0.1, 0.28, 0.424, 0.2458, 0.1, 0.218098, 0.3125764],
        [0.8, 0.665, 0.557, 0.69065, 0.8, 0.7114265, 0.6405677],
    ),
    (cyclic(2, scale_fn=lambda x: 0.5, cycle_momentum=False), {}, [0.1, 0.2, 0.3, 0.2, 0.1, 0.2], FLAT),
    (annealed(4), {}, [0.2, 0.1780330086, 0.125, 0.0719669914, 0.05, 0.05], FLAT),
    (annealed(4, "linear"), {}, [0.2, 0.1625, 0.125, 0.0875, 0.05, 0.05], FLAT),
    (annealed(0), {}, [0.05, 0.05, 0.05], FLAT[:3]),
]


@pytest.mark.parametrize(("schedule", "options", "rates", "momenta"), CASES)
def test_rates(torch, schedule, options, rates, momenta):
    optimizer, scheduler = make(torch, schedule, **options)
    for rate, momentum in zip(rates, momenta, strict=True):
        group = optimizer.param_groups[0]
        assert group["lr"] == pytest.approx(rate)
        assert (group["betas"][0] if "betas" in group else group["momentum"]) == pytest.approx(momentum)
        optimizer.step()
        scheduler.step()


@pytest.mark.parametrize("schedule", [CASES[2][0], CASES[4][0]])
def test_a_schedule_goes_on(torch, schedule):
    """Resumes in the middle from the states of optimizer and scheduler."""
    optimizer, scheduler = make(torch, schedule, opt="Adam")
    other, resumed = make(torch, schedule, opt="Adam")
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    other.load_state_dict(optimizer.state_dict())
    resumed.load_state_dict(pickle.loads(pickle.dumps(scheduler.state_dict())))
    for _ in range(4):
        for o, s in ((optimizer, scheduler), (other, resumed)):
            o.step()
            s.step()
        assert other.param_groups[0]["lr"] == pytest.approx(optimizer.param_groups[0]["lr"])
        assert other.param_groups[0]["betas"] == pytest.approx(optimizer.param_groups[0]["betas"])


def test_tensors_that_are_given_are_copied(torch):
    """Changing the tensors afterwards does not change the bounds."""
    low, high = torch.tensor(0.1), torch.tensor(0.5)
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=torch.tensor(0.2), momentum=0.9)
    cycle = torch.optim.lr_scheduler.CyclicLR(optimizer, low, high, 4)
    once = torch.optim.lr_scheduler.OneCycleLR(optimizer, high, total_steps=4, max_momentum=high)
    low.zero_()
    high.zero_()
    assert float(cycle.base_lrs[0]) == pytest.approx(0.1) and float(cycle.max_lrs[0]) == 0.5
    assert float(optimizer.param_groups[0]["max_lr"]) == 0.5 == float(optimizer.param_groups[0]["max_momentum"])
    optimizer.step()
    once.step()


@pytest.mark.parametrize("three_phase", [False, True])
def test_the_state_of_one_cycle_is_of_pytorchs_form(torch, three_phase):
    def one(torch, optimizer):
        return torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.4, total_steps=10, three_phase=three_phase)

    optimizer, scheduler = make(torch, one)
    saved = copy.deepcopy(scheduler.state_dict())
    names = ["end_step", "start_lr", "end_lr", "start_momentum", "end_momentum"]
    phases = saved["_schedule_phases"]
    assert [list(phase) for phase in phases] == [names] * (3 if three_phase else 2)
    assert list(phases[0].values()) == [2.0, "initial_lr", "max_lr", "max_momentum", "base_momentum"]
    assert phases[-1]["end_step"] == 9
    states = [saved]
    if torch.__name__ != "torch":
        # What rustgrad saved before.
        states.append({**saved, "_schedule_phases": [tuple(phase.values()) for phase in phases]})
    for state in states:
        other, resumed = make(torch, one)
        resumed.load_state_dict(state)
        assert resumed.state_dict() == saved
        other.step()
        resumed.step()
    optimizer.step()
    scheduler.step()
    assert other.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


def test_bad_schedules(torch):
    for schedule, options, message in [
        (cyclic(mode="square"), {}, "mode is invalid and scale_fn is None"),
        (cyclic(), {"opt": "Adagrad"}, "must support momentum or beta1"),
        (annealed(4, "square"), {}, "anneal_strategy must be one of 'cos' or 'linear', instead got square"),
        (annealed(-1), {}, "anneal_epochs must be equal or greater than 0, got -1"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(torch, schedule, **options)
    with pytest.raises(ValueError, match="Invalid decay value 1.5 provided"):
        swa(torch).get_ema_avg_fn(1.5)


def test_a_schedule_keeps_no_cycle(torch):
    gc.disable()
    try:
        optimizer, scheduler = make(torch, CASES[2][0], opt="Adam")
        gone = weakref.ref(scheduler)
        del scheduler
        assert gone() is None
    finally:
        gc.enable()


def steps(torch, average, n=4):
    """The averages after n changes of a model with one parameter and one buffer, and the averaged values."""
    model = torch.nn.Linear(2, 1, bias=False)
    model.register_buffer("count", torch.zeros(1))
    averaged, seen = average(model), []
    for i in range(n):
        with torch.no_grad():
            model.weight.copy_(torch.tensor([[i + 1.0, -i * i]]))
            model.count += 1
        averaged.update_parameters(model)
        seen.append(model.weight.detach().clone())
    return averaged, model, torch.stack(seen)


def test_averaged_model(torch, device):
    module = swa(torch)
    averaged, model, seen = steps(torch, lambda m: module.AveragedModel(m, device=device))
    weight = averaged.module.weight.cpu()
    assert torch.allclose(weight, seen.mean(0)) and averaged.n_averaged.item() == 4
    assert averaged.module.count.item() == 4 and averaged.module is not model
    assert torch.allclose(averaged(torch.ones(1, 2, device=device)).cpu(), weight.sum())
    state = averaged.state_dict()
    assert set(state) == {"n_averaged", "module.weight", "module.count"}
    assert weight.equal(copy.deepcopy(averaged).module.weight.cpu())


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("buffers", [False, True])
def test_exponential_averages(torch, many, buffers):
    module = swa(torch)
    rule = {"multi_avg_fn": module.get_ema_multi_avg_fn(0.9)} if many else {"avg_fn": module.get_ema_avg_fn(0.9)}
    averaged, _, seen = steps(torch, lambda m: module.AveragedModel(m, use_buffers=buffers, **rule))
    want, count = seen[0], 1.0
    for i, weight in enumerate(seen[1:]):
        want, count = 0.9 * want + 0.1 * weight, 0.9 * count + 0.1 * (i + 2)
    assert torch.allclose(averaged.module.weight, want)
    assert averaged.module.count.item() == pytest.approx(count if buffers else 4)
    with pytest.raises(AssertionError, match="Only one of avg_fn and multi_avg_fn"):
        module.AveragedModel(averaged, avg_fn=print, multi_avg_fn=print)


def test_means_of_lists(torch):
    averages, params = [torch.zeros(2), torch.ones(1)], [torch.full((2,), 3.0), torch.tensor([4.0])]
    swa(torch).get_swa_multi_avg_fn()(averages, params, 2)
    assert [a.tolist() for a in averages] == [[1.0, 1.0], [2.0]]


def test_batch_statistics(torch):
    """`update_bn` runs the model over the data in training mode, with a plain mean as momentum."""

    class Norm(getattr(getattr(torch.nn.modules, "batchnorm", None), "_BatchNorm", torch.nn.Module)):
        def __init__(self):
            torch.nn.Module.__init__(self)
            self.momentum, self.seen = 0.1, []

        def reset_running_stats(self):
            self.seen = []

        def forward(self, x):
            self.seen.append((x.sum().item(), self.momentum, self.training))
            return x

    model = torch.nn.Sequential(Norm()).eval()
    swa(torch).update_bn([torch.ones(2), (torch.zeros(2), "label")], model)
    assert model[0].seen == [(2.0, None, True), (0.0, None, True)]
    assert model[0].momentum == 0.1 and not model.training
    swa(torch).update_bn(iter(()), torch.nn.Linear(1, 1))
