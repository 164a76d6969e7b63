"""How a conversion replaces parameters: their data, the parameters themselves, or all of both by `swap_tensors`."""

import importlib
import weakref

import pytest


@pytest.fixture(params=["data", "overwrite", "swap"])
def way(torch, request):
    future = torch.__future__
    future.set_overwrite_module_params_on_conversion(request.param == "overwrite")
    future.set_swap_module_params_on_conversion(request.param == "swap")
    yield request.param
    future.set_overwrite_module_params_on_conversion(False)
    future.set_swap_module_params_on_conversion(False)


def trained(torch):
    m = torch.nn.Linear(3, 2)
    m(torch.ones(1, 3)).sum().backward()
    return m


def test_defaults(torch):
    future = importlib.import_module(f"{torch.__name__}.__future__")
    assert future is torch.__future__
    assert not future.get_overwrite_module_params_on_conversion() and not future.get_swap_module_params_on_conversion()


def test_conversion(torch, way):
    m = trained(torch)
    weight, grad, values = m.weight, m.weight.grad, m.weight.tolist()
    assert m.double() is m
    assert m.weight.dtype == m.weight.grad.dtype == torch.float64 and m.weight.tolist() == values
    assert isinstance(m.weight, torch.nn.Parameter) and m.weight.requires_grad and not m.weight.grad.requires_grad
    assert m.weight.grad.tolist() == [[1.0] * 3] * 2
    kept = way != "overwrite"
    assert (m.weight is weight) == kept and (m.weight.grad is grad) == kept
    m(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
    assert m.weight.grad.tolist() == [[2.0] * 3] * 2


def test_conversion_to_a_device(torch, way, device):
    m = trained(torch).to(device)
    assert m.weight.device.type == m.weight.grad.device.type == device
    m(torch.ones(1, 3, device=device)).sum().backward()
    assert m.bias.grad.cpu().tolist() == [2.0, 2.0]


def test_views_of_parameters(torch, way):
    m = torch.nn.Linear(3, 2)
    view = m.weight.detach()[:]
    m.double()
    view.zero_()
    assert m.weight.abs().sum() > 0 and view.dtype == torch.float32


def test_loading(torch, way):
    m, other = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    weight = m.weight
    m.load_state_dict(other.state_dict())
    assert m.weight is weight and weight.equal(other.weight) and weight.requires_grad
    assert weight.data_ptr() != other.weight.data_ptr() and type(weight) is torch.nn.Parameter
    m.load_state_dict(other.state_dict(), assign=True)
    assert m.weight.data_ptr() == other.weight.data_ptr()
    action = "swapping" if way == "swap" else "copying"

    class Stubborn(torch.nn.Parameter):
        def copy_(self, other):
            raise KeyError("no")

    m.bias = Stubborn(torch.zeros(2))
    with pytest.raises(RuntimeError, match=f'While {action} the parameter named "bias", whose dimensions in the model'):
        m.load_state_dict(other.state_dict())


def test_a_graph_of_before_is_refused(torch):
    torch.__future__.set_swap_module_params_on_conversion(True)
    try:
        m = torch.nn.Linear(3, 2)
        loss = m(torch.ones(1, 3)).sum()
        m.double()
        with pytest.raises(RuntimeError, match="AccumulateGrad node that was poisoned by swap_tensors"):
            loss.backward()
        m(torch.ones(1, 3, dtype=torch.float64)).sum().backward()
        squares = (m.weight * m.weight).sum()
        with pytest.raises(RuntimeError, match="Couldn't swap Linear.weight") as error:
            m.float()
        assert "Expected use_count of t1 to be 1 or 2" in str(error.value.__cause__)
        squares.backward()
    finally:
        torch.__future__.set_swap_module_params_on_conversion(False)


def test_swap_tensors(torch):
    swap = importlib.import_module(f"{torch.__name__}.utils").swap_tensors
    kind = type("Kind", (torch.Tensor,), {})
    a = torch.arange(6.0).as_subclass(kind)
    b = torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    a.note, alias = "a's", [a, b]
    swap(a, b)
    assert alias[0] is a and alias[1] is b
    assert type(a) is torch.nn.Parameter and type(b) is kind
    assert a.tolist() == [1.0, 1.0] and a.requires_grad and not hasattr(a, "note")
    assert b.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0] and b.note == "a's" and not b.requires_grad
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0] and b.grad is None
    swap(a, a)
    assert a.tolist() == [1.0, 1.0]


def test_swap_refuses(torch):
    swap = importlib.import_module(f"{torch.__name__}.utils").swap_tensors
    a, b = torch.ones(2), torch.zeros(3)
    ref = weakref.ref(a)
    with pytest.raises(RuntimeError, match="Cannot swap t1 because it has weakref"):
        swap(a, b)
    with pytest.raises(RuntimeError, match="Cannot swap t2 because it has weakref"):
        swap(b, a)
    del ref
    slotted = type("Slotted", (torch.Tensor,), {"__slots__": ("x",)})
    with pytest.raises(RuntimeError, match="different slots"):
        swap(a, b.as_subclass(slotted))
    leaf = torch.ones(2, requires_grad=True)
    product = leaf * leaf
    with pytest.raises(RuntimeError, match="Expected use_count of t2 to be 1 or 2"):
        swap(b, leaf)
    product.sum().backward()
    assert leaf.grad.tolist() == [2.0, 2.0] and b.tolist() == [0, 0, 0]


def test_arguments_of_to(torch):
    m, cpu = torch.nn.Linear(2, 2), torch.device("cpu")
    for args in [(cpu, True), (None, True), ([],), (cpu, torch.float64, True, 1), (torch.float64, cpu)]:
        with pytest.raises(TypeError, match=r"to\(\) received an invalid combination of arguments"):
            m.to(*args)
    with pytest.raises(RuntimeError, match="does not accept copy argument"):
        m.to("cpu", copy=True)
    assert m.to(cpu, torch.float64, True).weight.dtype == torch.float64
    assert m.to(torch.ones(1), True).weight.dtype == torch.float32 and m.to(torch.float64, True) is m
    m.weight._grad = torch.ones(2, 2, dtype=torch.float64)
    assert m.weight.grad is m.weight._grad


def test_a_module_without_memory_says_how_to_get_some(torch):
    layer = torch.nn.Linear(2, 2, device="meta")
    with pytest.raises(
        NotImplementedError, match=r"Please use torch.nn.Module.to_empty\(\) instead of torch.nn.Module.to"
    ):
        layer.to("cpu")
    assert layer.to("meta", torch.float64).weight.dtype == torch.float64
    assert layer.to_empty(device="cpu").weight.device.type == "cpu"


def test_identity_of_the_tensor_behind_an_object(torch):
    a, b = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    numbers = a._cdata, b._cdata
    assert isinstance(a._cdata, int) and numbers[0] != numbers[1]
    a.data = torch.zeros(3)
    assert a._cdata == numbers[0]
    torch.utils.swap_tensors(a, b)
    assert (b._cdata, a._cdata) == numbers


@pytest.mark.parametrize(
    "shape,strides", [((3, 3, 1, 1), (3, 1, 3, 3)), ((3, 1, 3, 3), (9, 1, 3, 1)), ((1, 1, 2, 2), (4, 1, 2, 1))]
)
def test_a_format_that_the_shape_leaves_open_is_taken_up(torch, shape, strides):
    t, last = torch.zeros(shape), torch.channels_last
    assert t.is_contiguous() and t.is_contiguous(memory_format=last)
    formed = t.to(memory_format=last)
    assert formed.stride() == strides and formed.to(memory_format=last) is formed
    assert formed.to(memory_format=torch.contiguous_format).stride() == t.stride()
    assert torch.nn.ParameterList([t]).to(memory_format=last)[0].stride() == strides


def test_a_convolution_of_single_pixels_takes_the_format_of_its_weight(torch):
    x = torch.randn(2, 3, 4, 4)
    for layer in (torch.nn.Conv2d(3, 5, 1), torch.nn.Conv2d(3, 3, 3, groups=3), torch.nn.ConvTranspose2d(3, 1, 3)):
        made = layer.to(memory_format=torch.channels_last)(x)
        assert made.stride(1) == 1 and made.is_contiguous(memory_format=torch.channels_last)
