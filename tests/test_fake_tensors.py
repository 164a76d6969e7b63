"""`FakeTensorMode`: tensors with a form and a device, and no elements."""

import importlib

import pytest
from support import target

torch = target.torch
fake = importlib.import_module(f"{target.NAME}._subclasses.fake_tensor")
flops = importlib.import_module(f"{target.NAME}.utils.flop_counter")
nn = torch.nn


def form(t):
    return tuple(t.shape), t.dtype, t.stride(), t.device.type


def test_from_tensor():
    mode = fake.FakeTensorMode()
    real = torch.rand(2, 3).t()
    x = mode.from_tensor(real)
    assert isinstance(x, fake.FakeTensor) and fake.is_fake(x) and form(x) == form(real)
    assert mode.from_tensor(real) is x and x.fake_mode is mode and not x.is_meta
    assert repr(x) == "FakeTensor(..., size=(3, 2))"
    p = mode.from_tensor(nn.Parameter(torch.ones(2)))
    assert isinstance(p, nn.Parameter) and repr(p) == "Parameter(FakeTensor(..., size=(2,), requires_grad=True))"
    # Without the mode too.
    assert form((x @ x.T).double()) == ((3, 3), torch.float64, (3, 1), "cpu")
    assert form(x.to("meta"))[3] == "meta"


def test_a_model_and_its_training_step():
    with fake.FakeTensorMode():
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(2):
            optimizer.zero_grad()
            y = model(torch.rand(4, 3, 8, 8))
            nn.functional.cross_entropy(y, torch.zeros(4, dtype=torch.int64)).backward()
            optimizer.step()
    assert fake.is_fake(y) and tuple(y.shape) == (4, 10) and y.grad_fn.name() == "AddmmBackward0"
    assert all(fake.is_fake(p.grad) and p.grad.shape == p.shape for p in model.parameters())


def test_gradients_without_formulas_of_views_and_of_writes():
    with fake.FakeTensorMode():
        x = torch.rand(3, 4, requires_grad=True)
        y = x * 2
        y[:, 0].mul_(3)
        (y.cumprod(0).sinc() + y.unfold(1, 2, 1).sum()).sum().backward()
    assert form(x.grad) == form(x) and fake.is_fake(x.grad)


def test_flops_and_other_modes_above():
    with fake.FakeTensorMode(), flops.FlopCounterMode(display=False) as counter:
        layer = nn.Linear(16, 32)
        layer(torch.rand(8, 16)).sum().backward()
    assert counter.get_total_flops() == 2 * 2 * 8 * 16 * 32


def test_what_depends_on_elements_is_refused():
    mode = fake.FakeTensorMode()
    x = mode.from_tensor(torch.rand(3))
    for read in (lambda: x.sum().item(), lambda: bool(x[0] > 0), lambda: x.tolist()):
        with pytest.raises(fake.DataDependentOutputException, match="aten._local_scalar_dense.default"):
            read()
    for shape in (x.nonzero, lambda: x[x > 0], lambda: torch.where(x > 0)):
        with pytest.raises(fake.DynamicOutputShapeException, match="aten.nonzero.default") as caught:
            shape()
    assert str(caught.value.func) == "aten.nonzero.default"
    with mode:
        counter = torch.tensor(1.0)
        counter += 1
        assert counter.item() == 2.0
        assert tuple(nn.functional.one_hot(torch.tensor([1, 2]), 4).shape) == (2, 4)
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        x.numpy()


def test_tensors_with_elements_and_other_devices():
    mode, real = fake.FakeTensorMode(), torch.ones(2)
    with (
        mode,
        pytest.raises(
            AssertionError, match=r"Please convert all Tensors to FakeTensors first .* tensor\(\[...\], size=\(2,\)\)"
        ),
    ):
        torch.ones(2) + real
    with fake.FakeTensorMode(allow_non_fake_inputs=True):
        assert fake.is_fake(real + 1)
    with mode:
        a, b = torch.ones(2), torch.ones(2, device="meta")
        with pytest.raises(RuntimeError, match="found at least two devices, cpu and meta"):
            a + b
        assert (b + torch.tensor(1.0)).device.type == "meta"
        with fake.unset_fake_temporarily() as left:
            assert left is mode and not fake.is_fake(torch.ones(1))
        assert fake.is_fake(torch.ones(1))


@pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")
def test_symbols_are_refused():
    with pytest.raises(NotImplementedError, match="sizes that are symbols"):
        fake.FakeTensorMode(static_shapes=False)


def test_lists_batches_and_autocast():
    with fake.FakeTensorMode():
        p = nn.Parameter(torch.ones(2))
        p.grad = torch.ones(2)
        assert tuple(nn.utils.clip_grad_norm_([p], 1.0).shape) == ()
        assert form(torch.func.vmap(torch.sin)(torch.ones(3, 2))) == ((3, 2), torch.float32, (2, 1), "cpu")
        assert repr(torch.fft.rfft(torch.ones(4))) == "FakeTensor(..., size=(3,), dtype=torch.complex64)"
        if not target.STAND_IN:
            with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(NotImplementedError, match="autocast"):
                torch.ones(2, 2) @ torch.ones(2, 2)


def test_a_write_of_what_is_not_known_makes_aliases_unknown():
    with fake.FakeTensorMode():
        x = torch.tensor([3.0])
        y = x.view(1)
        y.add_(1)
        assert x.item() == y.item() == 4
        x.copy_(torch.rand(1))
        for t in (x, y):
            with pytest.raises(fake.DataDependentOutputException):
                t.item()


def test_a_value_in_a_tensor_fills_another():
    with fake.FakeTensorMode():
        x = torch.full((2,), torch.tensor(3.0))
        assert form(x.new_full((3,), torch.tensor(1.0))) == ((3,), torch.float32, (1,), "cpu")
        with pytest.raises(fake.DataDependentOutputException):
            torch.full((2,), torch.rand(()))
