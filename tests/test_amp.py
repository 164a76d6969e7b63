"""`GradScaler`: scaled losses, skipped steps, and what it keeps."""

import pickle
import warnings

import pytest


def trained(torch, scaler, poisoned=()):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x = torch.arange(6.0).reshape(2, 3) / 10
    for step in range(5):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        (scaler.scale(loss) if scaler else loss).backward()
        if step in poisoned:
            model.bias.grad.fill_(float("nan"))
        if scaler:
            scaler.step(optimizer)
            scaler.update()
        elif step not in poisoned:
            optimizer.step()
    return [p.detach() for p in model.parameters()]


@pytest.mark.parametrize("poisoned", [(), (0,), (1, 2)])
def test_scaled_steps_are_the_plain_ones(torch, poisoned):
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0, growth_interval=1, backoff_factor=0.25)
    for got, want in zip(trained(torch, scaler, poisoned), trained(torch, None, poisoned), strict=True):
        torch.testing.assert_close(got, want)
    assert scaler.get_scale() == 128.0 * 2.0 ** (5 - len(poisoned)) * 0.25 ** len(poisoned)


def test_growth_waits_for_the_interval(torch):
    scaler, scales = torch.GradScaler("cpu", init_scale=4.0, growth_interval=2), []
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=0.0)
    for bad in (False, False, False, True, False, False):
        scaler.scale(parameter.sum()).backward()
        if bad:
            parameter.grad[1] = float("inf")
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scales.append(scaler.get_scale())
    assert scales == [4.0, 8.0, 8.0, 4.0, 4.0, 8.0]


def test_the_scale_stays_finite(torch):
    scaler = torch.GradScaler("cpu", init_scale=3e38, growth_interval=1)
    parameter = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    scaler.scale((parameter * 1e-30).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == pytest.approx(3e38, rel=1e-6)


def test_unscaled_once(torch):
    scaler = torch.GradScaler("cpu", init_scale=8.0)
    parameter = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(parameter.sum()).backward()
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="beginning of an iteration"):
        pickle.dumps(scaler)
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: 0.0)
    scaler.step(optimizer)
    assert parameter.tolist() == [0.0, 0.0]
    for again in (scaler.step, scaler.unscale_):
        with pytest.raises(RuntimeError, match="step"):
            again(optimizer)
    scaler.update(2.0)
    assert scaler.get_scale() == 2.0


def test_half_gradients(torch):
    scaler = torch.GradScaler("cpu", init_scale=3.0)
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.float16))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler.scale(parameter.float().sum()).backward()
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(optimizer)
    parameter = torch.nn.Parameter(torch.ones(2, dtype=torch.bfloat16))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler.scale(parameter.float().sum()).backward()
    scaler.unscale_(optimizer)
    assert parameter.grad.tolist() == [1.0, 1.0]


def test_outputs_of_any_structure(torch):
    scaler = torch.GradScaler("cpu", init_scale=2.0)
    one = torch.ones(())
    a, (b, c) = scaler.scale([one, (one, 2 * one)])
    assert [t.item() for t in (a, b, c)] == [2.0, 2.0, 4.0]
    assert [t.item() for t in scaler.scale(t for t in (one, one))] == [2.0, 2.0]
    with pytest.raises(ValueError, match="iterable"):
        scaler.scale(1.0)


def test_state(torch):
    a = torch.GradScaler("cpu", init_scale=3.0, growth_factor=4.0, growth_interval=5)
    b = torch.GradScaler("cpu")
    b.scale(torch.ones(1))
    b.load_state_dict(a.state_dict())
    assert b.state_dict() == a.state_dict() and b.get_scale() == 3.0 and b.get_growth_factor() == 4.0
    assert b.scale(torch.ones(1)).item() == 3.0
    assert pickle.loads(pickle.dumps(b)).state_dict() == b.state_dict()
    off = torch.GradScaler("cpu", enabled=False)
    loss = torch.ones(1)
    assert off.scale(loss) is loss and off.get_scale() == 1.0 and off.state_dict() == {} and not off.is_enabled()
    with pytest.raises(RuntimeError, match="empty"):
        a.load_state_dict({})


def test_without_a_gpu_the_default_is_off(torch):
    if torch.cuda.is_available():
        pytest.skip("there is CUDA")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not torch.GradScaler().is_enabled()
    assert "CUDA is not available" in str(caught[0].message)


@pytest.mark.parametrize("arguments", [{"growth_factor": 1.0}, {"backoff_factor": 1.0}])
def test_factors(torch, arguments):
    with pytest.raises(AssertionError, match="factor"):
        torch.GradScaler("cpu", **arguments)


def test_optimizers_that_scale_by_themselves(torch):
    class Own(torch.optim.Optimizer):
        _step_supports_amp_scaling = True

        def step(self, closure=None):
            self.seen = self.grad_scale.item(), self.found_inf.item()

    parameter = torch.nn.Parameter(torch.ones(1))
    scaler, own = torch.GradScaler("cpu", init_scale=2.0), Own([parameter], {})
    scaler.scale(parameter.sum()).backward()
    scaler.step(own)
    scaler.update()
    assert own.seen == (2.0, 0.0) and not hasattr(own, "grad_scale") and parameter.grad.item() == 2.0
