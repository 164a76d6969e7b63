"""Lazy modules: parameters that have no shape before the first call."""

import copy
import pickle

import pytest


def test_a_lazy_linear(torch):
    layer = torch.nn.LazyLinear(3, dtype=torch.float64)
    assert repr(layer.weight) == "<UninitializedParameter>" and layer.has_uninitialized_params()
    assert isinstance(layer.weight, torch.nn.Parameter) and list(layer.parameters())[0] is layer.weight
    weight = layer.weight
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer.float()
    assert layer.weight is weight and weight.dtype == torch.float32
    for use in (lambda: weight + 1, lambda: torch.add(weight, 1), lambda: weight.sum()):
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
            use()
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        weight.shape  # noqa: B018
    with pytest.raises(RuntimeError, match="Can't share memory on an uninitialized parameter"):
        layer.share_memory()
    unused = copy.deepcopy(layer)
    y = layer(torch.ones(2, 4))
    assert type(layer) is torch.nn.Linear and layer.weight is weight and type(weight) is torch.nn.Parameter
    assert y.shape == (2, 3) and layer.in_features == 4 and not layer._forward_pre_hooks
    y.sum().backward()
    optimizer.step()
    assert weight.grad.shape == (3, 4) and 0 < float(weight.detach().abs().max()) < 1
    unused.load_state_dict(layer.state_dict())
    assert type(unused).__name__ == "LazyLinear" and torch.equal(unused.weight, weight)
    unused(torch.ones(1, 4))
    assert type(unused) is torch.nn.Linear and unused.in_features == 4
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter or buffer"):
        layer.load_state_dict(torch.nn.LazyLinear(3).state_dict())
    again = pickle.loads(pickle.dumps(torch.nn.LazyLinear(3)))
    assert again(torch.ones(1, 7)).shape == (1, 3)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("transpose", ["", "Transpose"])
def test_lazy_convolutions(torch, dims, transpose):
    name = f"Conv{transpose}{dims}d"
    for shape in ((2, 6) + (4,) * dims, (6,) + (4,) * dims):
        lazy = getattr(torch.nn, f"Lazy{name}")(4, 3, groups=2, bias=dims > 1)
        y = lazy(torch.ones(shape))
        plain = getattr(torch.nn, name)(6, 4, 3, groups=2, bias=dims > 1)
        assert type(lazy) is type(plain) and lazy.weight.shape == plain.weight.shape and repr(lazy) == repr(plain)
        assert y.shape == plain(torch.ones(shape)).shape and (lazy.bias is None) is (dims == 1)
    lazy = getattr(torch.nn, f"Lazy{name}")(4, 3, groups=2)
    with pytest.raises(
        RuntimeError, match=rf"Expected {dims + 1}D \(unbatched\) or {dims + 2}D \(batched\) input to Lazy"
    ):
        lazy(torch.ones(3))
    with pytest.raises(ValueError, match="in_channels must be divisible by groups"):
        lazy(torch.ones((1, 5) + (4,) * dims))


@pytest.mark.parametrize("name", ["LazyLinear(3)", "LazyConv2d(4, 3)", "LazyBatchNorm2d()"])
def test_lazy_modules_move_and_change_their_dtype(torch, device, name):
    layer = torch.nn.Sequential(eval(f"nn.{name}", {"nn": torch.nn}))
    assert layer.to(device) is layer and layer.to(torch.float16).to(device, torch.float32) is layer
    assert layer[0].has_uninitialized_params() and layer[0].weight.dtype == torch.float32
    assert (
        layer(torch.ones(2, 3, 4, 4, device=device)).device
        == layer[0].weight.device
        == torch.zeros(0, device=device).device
    )
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter in"):
        torch.nn.LazyConv2d(4, 3).to(memory_format=torch.channels_last)


def test_lazy_modules_of_ones_own(torch):
    class Scale(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.UninitializedParameter()
            self.register_buffer("offset", torch.nn.UninitializedBuffer())

        def initialize_parameters(self, x, offset=0.0):
            with torch.no_grad():
                self.scale.materialize(x.shape[-1:])
                self.scale.fill_(2.0)
                self.offset.materialize((1,))
                self.offset.fill_(offset)

        def forward(self, x, offset=0.0):
            return x * self.scale + self.offset

    scale = Scale()
    assert isinstance(scale.offset, torch.nn.Buffer) and set(scale.state_dict()) == {"scale", "offset"}
    assert scale(torch.ones(2, 3), offset=1.0).tolist() == [[3.0] * 3] * 2
    assert type(scale) is Scale and type(scale.offset) is torch.Tensor
    assert torch.nn.parameter.is_lazy(torch.nn.UninitializedBuffer()) and not torch.nn.parameter.is_lazy(scale.scale)

    class Undefined(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        pass

    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Undefined"):
        Undefined()(1)


def test_uninitialised_parameters_in_state_dicts(torch):
    nn, parameter = torch.nn, torch.nn.parameter

    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.register_parameter("p", parameter.UninitializedParameter())

    one, other = Lazy(), Lazy()
    one.load_state_dict(other.state_dict())
    assert one.has_uninitialized_params()
    one.p.materialize(3)
    assert one.p.shape == (3,)
    other.load_state_dict(one.state_dict())
    assert torch.equal(other.p, one.p)
