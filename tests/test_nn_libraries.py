"""What libraries use of `nn` beyond its layers: batches over devices, replaced weights, masks, gradients of samples."""

import importlib

import pytest


def module_of(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


def test_scatter_and_gather_go_through_containers(torch):
    gather, scatter = torch.nn.parallel.gather, torch.nn.parallel.scatter
    scatter_kwargs = torch.nn.parallel.scatter_gather.scatter_kwargs
    x = torch.arange(10.0).reshape(5, 2).requires_grad_()
    parts = scatter((x, {"k": x, "name": "t"}, [x]), ["cpu", "cpu"])
    assert [(a.shape[0], b["k"].shape[0], b["name"], c[0].shape[0]) for a, b, c in parts] == [
        (3, 3, "t", 3),
        (2, 2, "t", 2),
    ]
    assert len(scatter(x[:1], ["cpu", "cpu"])) == 1
    positional, named = scatter_kwargs((x,), None, ["cpu"] * 3)
    assert [len(p) for p in positional] == [1, 1, 1] and named == ({}, {}, {})
    whole, (again,), nothing = gather([(a, c, None) for a, _, c in parts], "cpu")
    assert torch.equal(whole, x) and torch.equal(again, x) and nothing is None
    whole.sum().backward()
    assert torch.equal(x.grad, torch.ones(5, 2))
    with pytest.warns(UserWarning, match="all input tensors were scalars"):
        assert gather([torch.tensor(1.0), torch.tensor(2.0)], -1).tolist() == [1, 2]
    with pytest.raises(ValueError, match="All dicts must have the same number of keys"):
        gather([{"a": x}, {}], "cpu")


def test_the_data_of_a_lazy_parameter_can_be_filled(torch):
    layer = torch.nn.LazyLinear(3)
    assert type(layer.weight.data) is torch.Tensor
    assert layer.weight.data.normal_(0, 0.01).shape == (0,) and layer.bias.data.fill_(0).shape == (0,)
    assert layer(torch.ones(2, 4)).shape == (2, 3) and type(layer.weight) is torch.nn.Parameter


def test_weights_of_a_recurrent_layer_can_be_replaced_for_its_calls(torch):
    layer = torch.nn.LSTM(2, 3)
    zeros = [torch.zeros_like(w) for w in layer.parameters()]
    layer._flat_weights = zeros
    assert all(w is z for w, z in zip(layer._flat_weights, zeros))
    output = layer(torch.ones(1, 1, 2))[0]
    assert output.abs().sum() == 0 and not output.requires_grad
    assert len(list(layer.parameters())) == len(layer.state_dict()) == 4
    layer._flat_weights = list(layer.parameters())
    assert layer(torch.ones(1, 1, 2))[0].abs().sum() > 0


def test_causal_biases_are_masks_of_attention(torch):
    bias = module_of(torch, "nn.attention.bias")
    attention = torch.nn.functional.scaled_dot_product_attention
    q, k = torch.linspace(-1, 1, 24).reshape(1, 2, 2, 6), torch.linspace(-2, 1, 48).reshape(1, 2, 4, 6)
    upper, lower = bias.causal_upper_left(2, 4), bias.causal_lower_right(2, 4)
    assert upper.variant == bias.CausalVariant.UPPER_LEFT and isinstance(lower, torch.Tensor)
    assert repr(lower) == "tensor([[ True,  True,  True, False],\n        [ True,  True,  True,  True]])"
    assert torch.allclose(attention(q, k, k, upper), attention(q, k, k, is_causal=True))
    mask = torch.ones(2, 4, dtype=torch.bool).tril(2)
    assert torch.equal(attention(q, k, k, attn_mask=lower, scale=0.3), attention(q, k, k, mask, scale=0.3))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        attention(q, k, k, upper, is_causal=True)
    with pytest.raises(AssertionError, match="only supports 2D tensors"):
        bias.causal_upper_left(1, 2, 4)


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_gradients_of_each_sample(torch, reduction):
    call = module_of(torch, "nn.utils._per_sample_grad").call_for_per_sample_grads
    layer = torch.nn.Sequential(torch.nn.Conv1d(2, 4, 2), torch.nn.Tanh(), torch.nn.Flatten(), torch.nn.Linear(12, 2))
    x = torch.linspace(-1, 1, 24).reshape(3, 2, 4)
    reduce = torch.sum if reduction == "sum" else torch.mean
    reduce(call(layer, loss_reduction=reduction)(x).pow(2)).backward()
    expected = [torch.autograd.grad(reduce(layer(x[i : i + 1]).pow(2)), list(layer.parameters())) for i in range(3)]
    for place, parameter in enumerate(layer.parameters()):
        wanted = torch.stack([gradients[place] for gradients in expected])
        assert parameter.grad is None and torch.allclose(parameter.grad_sample, wanted, atol=1e-5)
    with pytest.raises(RuntimeError, match="Please clear out the grad_sample parameter"):
        call(layer)(x)
    for wrong, message in (
        (lambda: call(1), "Module passed must be nn.Module, got int"),
        (lambda: call(layer, loss_reduction="max"), "argument to be sum or mean, got max"),
        (
            lambda: call(torch.nn.Bilinear(2, 2, 1))(torch.ones(3, 2), torch.ones(2, 2)),
            "found at least one input with batch size",
        ),
    ):
        with pytest.raises(RuntimeError, match=message):
            wrong()
