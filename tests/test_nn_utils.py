"""`nn.utils`: parametrizations, spectral and weight norm, pruning, fusion, functional calls; wrappers."""

import copy
import importlib
import pickle
import warnings

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="PyTorch leaves something behind here")


def module_of(torch, name):
    return importlib.import_module(f"{torch.__name__}.{name}")


def doubled(torch):
    class Double(torch.nn.Module):
        def forward(self, x):
            return 2 * x

        def right_inverse(self, y):
            return y / 2

    return Double()


def rank_one(torch):
    class RankOne(torch.nn.Module):
        def forward(self, x, y):
            return x.unsqueeze(-1) @ y.unsqueeze(-2)

        def right_inverse(self, z):
            return z[:, 0].clone(), z[0] / z[0, 0]

    return RankOne()


def test_a_parametrized_weight(torch):
    P = torch.nn.utils.parametrize
    layer = torch.nn.Linear(3, 2)
    weight, before = layer.weight, layer.weight.detach().clone()
    assert P.register_parametrization(layer, "weight", doubled(torch)) is layer
    assert type(layer).__name__ == "ParametrizedLinear" and P.type_before_parametrizations(layer) is torch.nn.Linear
    assert P.is_parametrized(layer) and P.is_parametrized(layer, "weight") and not P.is_parametrized(layer, "bias")
    assert layer.parametrizations.weight.original is weight
    assert set(layer.state_dict()) == {"bias", "parametrizations.weight.original"}
    torch.testing.assert_close(layer.weight, before)
    torch.testing.assert_close(weight, before / 2)
    layer(torch.ones(1, 3)).sum().backward()
    torch.testing.assert_close(weight.grad, torch.full((2, 3), 2.0))
    layer.weight = torch.full((2, 3), 6.0)
    assert weight.tolist() == [[3.0] * 3] * 2 and layer.weight.tolist() == [[6.0] * 3] * 2
    P.register_parametrization(layer, "weight", doubled(torch))
    assert layer.weight.tolist() == [[12.0] * 3] * 2 and len(layer.parametrizations.weight) == 2
    twin = copy.deepcopy(layer)
    twin.weight = torch.zeros(2, 3)
    assert layer.weight.tolist() == [[12.0] * 3] * 2
    with pytest.raises(
        RuntimeError, match="Serialization of parametrized modules is only supported through state_dict"
    ):
        pickle.dumps(layer)
    assert P.remove_parametrizations(layer, "weight") is layer
    assert type(layer) is torch.nn.Linear and layer.weight is weight and weight.tolist() == [[12.0] * 3] * 2
    assert not hasattr(layer, "parametrizations")


@own
def test_a_copy_keeps_its_parametrizations(torch):
    P = torch.nn.utils.parametrize
    layer = P.register_parametrization(torch.nn.Linear(3, 2), "weight", doubled(torch))
    twin = copy.deepcopy(layer)
    P.remove_parametrizations(layer, "weight")
    torch.testing.assert_close(twin.weight, layer.weight)
    P.remove_parametrizations(twin, "weight", leave_parametrized=False)
    torch.testing.assert_close(twin.weight, layer.weight / 2)
    assert type(twin) is torch.nn.Linear


def test_a_parametrization_of_several_tensors(torch):
    P = torch.nn.utils.parametrize
    layer = torch.nn.Linear(3, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))
    P.register_parametrization(layer, "weight", rank_one(torch))
    assert [n for n, _ in layer.named_parameters()] == [
        "parametrizations.weight.original0",
        "parametrizations.weight.original1",
    ]
    assert layer.weight.tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]] and layer.weight.requires_grad
    with pytest.raises(ValueError, match="Cannot leave unparametrized"):
        P.remove_parametrizations(layer, "weight", leave_parametrized=False)
    other = torch.nn.Linear(3, 2, bias=False)
    P.transfer_parametrizations_and_params(layer, other)
    torch.testing.assert_close(other.weight, layer.weight)
    P.remove_parametrizations(layer, "weight")
    assert isinstance(layer.weight, torch.nn.Parameter) and layer.weight.tolist()[1] == [2.0, 4.0, 6.0]


def test_parametrizations_are_cached_in_a_block(torch):
    P, calls = torch.nn.utils.parametrize, []

    class Counted(torch.nn.Module):
        def forward(self, x):
            calls.append(1)
            return x + 1

    layer = torch.nn.Linear(2, 2)
    P.register_parametrization(layer, "weight", Counted(), unsafe=True)
    with P.cached():
        with P.cached():
            first = layer.weight
        assert layer.weight is first and len(calls) == 1
    assert layer.weight is not first and len(calls) == 2


def test_refused_parametrizations(torch):
    P = torch.nn.utils.parametrize

    class To(torch.nn.Module):
        def __init__(self, f):
            super().__init__()
            self.f = f

        def forward(self, x):
            return self.f(x)

    layer = torch.nn.Linear(2, 3)
    with pytest.raises(
        ValueError, match="does not have a parameter, a buffer, or a parametrized element with name 'no'"
    ):
        P.register_parametrization(layer, "no", doubled(torch))
    with pytest.raises(ValueError, match="A parametrization must return a tensor. Got tuple"):
        P.register_parametrization(layer, "weight", To(lambda x: (x, x)))
    with pytest.raises(ValueError, match="may not change the dtype of the tensor, unless"):
        P.register_parametrization(layer, "weight", To(lambda x: x.double()))
    with pytest.raises(ValueError, match="may not change the shape of the tensor, unless"):
        P.register_parametrization(layer, "weight", To(lambda x: x[0]))
    assert type(layer) is torch.nn.Linear and set(layer.state_dict()) == {"weight", "bias"}
    with pytest.raises(ValueError, match="does not have a parametrization on weight"):
        P.remove_parametrizations(layer, "weight")
    P.register_parametrization(layer, "weight", To(lambda x: x[:1]), unsafe=True)
    assert layer.weight.shape == (1, 2)
    P.register_parametrization(layer, "bias", To(lambda x: x * 3))
    with pytest.raises(RuntimeError, match="parametrization To does not implement right_inverse"):
        layer.bias = torch.zeros(3)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 3)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("trivial", [True, False])
def test_orthogonal(torch, shape, orthogonal_map, trivial):
    module = torch.nn.Module()
    module.register_parameter("weight", torch.nn.Parameter(torch.randn(shape)))
    torch.nn.utils.parametrizations.orthogonal(module, orthogonal_map=orthogonal_map, use_trivialization=trivial)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(3):
        q = module.weight if shape[-2] >= shape[-1] else module.weight.mT
        torch.testing.assert_close(q.mT @ q, torch.eye(q.shape[-1]).expand(*q.shape[:-2], -1, -1), atol=1e-5, rtol=0)
        optimizer.zero_grad()
        (module.weight * torch.arange(module.weight.numel()).view(shape)).sum().backward()
        optimizer.step()
    if trivial or orthogonal_map == "householder":
        wanted = torch.eye(shape[-2], shape[-1]).flip(-1).expand(shape)
        module.weight = wanted
        torch.testing.assert_close(module.weight, wanted, atol=1e-5, rtol=0)
    else:
        with pytest.raises(NotImplementedError, match="It is not possible to assign to the matrix exponential"):
            module.weight = torch.eye(shape[-2], shape[-1]).expand(shape)


def test_orthogonal_refuses(torch):
    orthogonal = torch.nn.utils.parametrizations.orthogonal
    with pytest.raises(ValueError, match="has no parameter or buffer with name 'no'"):
        orthogonal(torch.nn.Linear(2, 2), "no")
    with pytest.raises(ValueError, match="Expected a matrix or batch of matrices. Got a tensor of 1 dimensions"):
        orthogonal(torch.nn.Linear(2, 2), "bias")
    with pytest.raises(ValueError, match="orthogonal_map has to be one of"):
        orthogonal(torch.nn.Linear(2, 2), orthogonal_map="other")
    with pytest.raises(ValueError, match="does not support complex tensors"):
        orthogonal(torch.nn.Linear(2, 2, dtype=torch.complex64), orthogonal_map="householder")


def test_weight_norm_as_a_parametrization(torch):
    layer = torch.nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    torch.nn.utils.parametrizations.weight_norm(layer, dim=0)
    assert layer.parametrizations.weight.original0.shape == (2, 1)
    torch.testing.assert_close(layer.weight, before)
    with torch.no_grad():
        layer.parametrizations.weight.original0.fill_(5.0)
    torch.testing.assert_close(layer.weight.norm(dim=1), torch.tensor([5.0, 5.0]))
    old = {"bias": torch.zeros(2), "weight_g": torch.ones(2, 1), "weight_v": torch.eye(2, 3)}
    layer.load_state_dict(old)
    assert layer.weight.tolist() == torch.eye(2, 3).tolist()


def spectral(torch, way, layer, **options):
    utils = torch.nn.utils
    return (utils.parametrizations if way == "parametrization" else utils).spectral_norm(layer, **options)


@pytest.mark.parametrize("way", ["parametrization", "hook"])
@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "ConvTranspose1d"])
def test_spectral_norm(torch, way, kind):
    args = {"Linear": (5, 4), "Conv2d": (3, 4, 2), "ConvTranspose1d": (3, 4, 2)}[kind]
    sizes = {"Linear": (2, 5), "Conv2d": (1, 3, 4, 4), "ConvTranspose1d": (1, 3, 6)}[kind]
    layer = getattr(torch.nn, kind)(*args)
    weight = layer.weight.detach().clone()
    spectral(torch, way, layer, n_power_iterations=30)
    layer(torch.ones(sizes))
    matrix = weight.transpose(0, 1) if kind == "ConvTranspose1d" else weight
    largest = torch.linalg.svdvals(matrix.flatten(1))[0]
    torch.testing.assert_close(layer.weight, weight / largest, rtol=1e-4, atol=1e-5)
    layer.eval()
    layer(torch.ones(sizes)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    again = spectral(torch, way, getattr(torch.nn, kind)(*args), n_power_iterations=30)
    again.load_state_dict(layer.state_dict())
    again.eval()
    torch.testing.assert_close(again(torch.ones(sizes)), layer(torch.ones(sizes)))


def test_spectral_norm_hook_is_removed(torch):
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    with pytest.raises(RuntimeError, match="Cannot register two spectral_norm hooks on the same parameter weight"):
        torch.nn.utils.spectral_norm(layer)
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_u", "weight_v"}
    layer.eval()
    y = layer(torch.ones(1, 3))
    torch.nn.utils.remove_spectral_norm(layer)
    torch.testing.assert_close(layer(torch.ones(1, 3)), y)
    assert (
        set(layer.state_dict()) == {"bias", "weight"} and not layer._state_dict_hooks and not layer._forward_pre_hooks
    )
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found in"):
        torch.nn.utils.remove_spectral_norm(layer)
    with pytest.raises(ValueError, match="Expected n_power_iterations to be positive"):
        torch.nn.utils.spectral_norm(layer, n_power_iterations=0)
    with pytest.raises(ValueError, match="cannot be applied as parameter `bias` is None"):
        torch.nn.utils.spectral_norm(torch.nn.Linear(2, 2, bias=False), "bias")


@own
def test_without_spectral_norm_no_hook_is_left(torch):
    layer = torch.nn.utils.remove_spectral_norm(torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2)))
    assert not layer._load_state_dict_pre_hooks


def test_spectral_norm_twice_before_backward(torch):
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 2))
    (layer(torch.ones(1, 3)) - layer(torch.zeros(1, 3))).sum().backward()
    assert layer.weight_orig.grad.shape == (2, 3)


def test_old_state_dicts_of_spectral_norm(torch):
    layer = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))
    layer(torch.ones(1, 3))
    state = layer.state_dict()
    u, v = state["weight_u"].clone(), state.pop("weight_v").clone()
    state["weight"] = layer.weight.detach()
    del state._metadata[""]["spectral_norm"]
    other = torch.nn.utils.spectral_norm(torch.nn.Linear(3, 3))
    other.load_state_dict(state)
    torch.testing.assert_close(other.weight_u, u)
    original = layer.weight_orig.detach()
    sigma = (original / layer.weight.detach()).mean()
    torch.testing.assert_close(u @ original @ other.weight_v, sigma, rtol=1e-3, atol=1e-3)
    assert v.shape == other.weight_v.shape


def pruned(torch):
    layer = torch.nn.Linear(4, 3)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(-6.0, 6.0).view(3, 4) + 0.5)
    return layer


def test_pruning_by_magnitude(torch):
    prune = module_of(torch, "nn.utils.prune")
    layer = pruned(torch)
    original = layer.weight
    assert prune.l1_unstructured(layer, "weight", amount=4) is layer
    assert layer.weight_orig is original and layer.weight_mask.tolist() == [[1] * 4, [0] * 4, [1] * 4]
    assert layer.weight.tolist()[1] == [0.0] * 4 and prune.is_pruned(layer)
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_mask"}
    layer(torch.ones(1, 4)).sum().backward()
    assert original.grad.tolist() == [[1.0] * 4, [0.0] * 4, [1.0] * 4]
    prune.l1_unstructured(layer, "weight", amount=0.25)
    (hook,) = layer._forward_pre_hooks.values()
    assert type(hook) is prune.PruningContainer and len(hook) == 2 and hook[1] is list(hook)[1]
    assert layer.weight_mask.sum() == 6 and layer.weight_mask.tolist()[0] == [1, 1, 1, 0]
    prune.remove(layer, "weight")
    assert layer.weight is original and not prune.is_pruned(layer) and set(layer.state_dict()) == {"weight", "bias"}
    assert layer.weight.tolist() == [
        [
            -5.5,
            -4.5,
            -3.5,
            0,
        ],
        [0.0] * 4,
        [0, 3.5, 4.5, 5.5],
    ]
    with pytest.raises(
        ValueError, match="Parameter 'weight' of module Linear.* has to be pruned before pruning can be"
    ):
        prune.remove(layer, "weight")


def test_structured_pruning(torch):
    prune = module_of(torch, "nn.utils.prune")
    layer = pruned(torch)
    prune.ln_structured(layer, "weight", amount=1, n=2, dim=0)
    assert layer.weight_mask.tolist() == [[1] * 4, [0] * 4, [1] * 4]
    prune.ln_structured(layer, "weight", amount=0.5, n=1, dim=1)
    assert layer.weight_mask.sum(dim=1).tolist() == [2, 0, 2]
    layer = pruned(torch)
    prune.random_structured(layer, "weight", amount=2, dim=1)
    assert sorted(layer.weight_mask.sum(dim=0).tolist()) == [0, 0, 3, 3]
    layer = pruned(torch)
    prune.random_unstructured(layer, "weight", amount=0.5)
    assert layer.weight_mask.sum() == 6
    scores = -torch.arange(12.0).view(3, 4)
    layer = pruned(torch)
    prune.ln_structured(layer, "weight", amount=1, n=float("inf"), dim=-1, importance_scores=scores)
    assert layer.weight_mask.tolist() == [[0, 1, 1, 1]] * 3
    with pytest.raises(ValueError, match="Structured pruning can only be applied to multidimensional tensors"):
        prune.random_structured(layer, "bias", amount=1, dim=0)
    assert set(layer.state_dict()) == {"bias", "weight_orig", "weight_mask"}


def test_masks_and_identity(torch):
    prune = module_of(torch, "nn.utils.prune")
    layer = pruned(torch)
    prune.custom_from_mask(layer, "bias", torch.tensor([0, 1, 0]))
    prune.identity(layer, "weight")
    assert layer.bias_mask.tolist() == [0, 1, 0] and layer.weight_mask.tolist() == [[1] * 4] * 3
    method = prune.L1Unstructured(amount=1)
    assert method.prune(torch.tensor([3.0, -1.0, 2.0])).tolist() == [3, 0, 2]
    assert method.prune(torch.ones(2), torch.tensor([1.0, 0.0]), torch.tensor([2.0, 1.0])).tolist() == [1, 0]
    twin = pickle.loads(pickle.dumps(layer))
    torch.testing.assert_close(twin(torch.ones(1, 4)), layer(torch.ones(1, 4)))


def test_global_pruning(torch):
    prune = module_of(torch, "nn.utils.prune")
    model = torch.nn.Sequential(pruned(torch), pruned(torch))
    with torch.no_grad():
        model[1].weight.mul_(100)
    pairs = [(model[0], "weight"), (model[1], "weight")]
    prune.global_unstructured(pairs, prune.L1Unstructured, amount=10)
    assert model[0].weight_mask.sum() == 2 and model[1].weight_mask.sum() == 12
    prune.global_unstructured(pairs, prune.L1Unstructured, {pairs[1]: torch.zeros(3, 4)}, amount=1)
    assert model[0].weight_mask.sum() == 2 and model[1].weight_mask.sum() == 11
    with pytest.raises(TypeError, match="parameters is not an Iterable"):
        prune.global_unstructured(3, prune.L1Unstructured, amount=1)
    with pytest.raises(TypeError, match="importance_scores must be of type dict"):
        prune.global_unstructured(pairs, prune.L1Unstructured, [1], amount=1)
    with pytest.raises(TypeError, match='Only "unstructured" PRUNING_TYPE supported'):
        prune.global_unstructured(pairs, prune.RandomStructured, amount=1)


@pytest.mark.parametrize(("amount", "error"), [("a", TypeError), (-1, ValueError), (1.5, ValueError), (13, ValueError)])
def test_wrong_amounts(torch, amount, error):
    layer = pruned(torch)
    with pytest.raises(error, match="amount"):
        module_of(torch, "nn.utils.prune").l1_unstructured(layer, "weight", amount=amount)
    assert set(layer.state_dict()) == {"weight", "bias"}


class Norm:
    """What fusion reads of a batch normalisation."""

    def __init__(self, torch, features, affine=True):
        self.training, self.eps, self.num_features = False, 1e-3, features
        self.running_mean, self.running_var = torch.randn(features), torch.rand(features) + 0.5
        self.weight = torch.nn.Parameter(torch.randn(features)) if affine else None
        self.bias = torch.nn.Parameter(torch.randn(features)) if affine else None

    def __call__(self, y, dim):
        shape = [1] * y.dim()
        shape[dim] = -1
        y = (y - self.running_mean.view(shape)) / (self.running_var.view(shape) + self.eps).sqrt()
        return y if self.weight is None else y * self.weight.view(shape) + self.bias.view(shape)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("transpose", [True, False])
def test_fused_convolutions(torch, bias, affine, transpose):
    kind = torch.nn.ConvTranspose2d if transpose else torch.nn.Conv2d
    conv, bn, x = kind(3, 4, 2, bias=bias).eval(), Norm(torch, 4, affine), torch.randn(2, 3, 5, 5)
    fused = torch.nn.utils.fuse_conv_bn_eval(conv, bn, transpose)
    torch.testing.assert_close(fused(x), bn(conv(x), 1), rtol=1e-4, atol=1e-5)
    assert isinstance(fused.weight, torch.nn.Parameter) and fused.bias.requires_grad is bias
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        torch.nn.utils.fuse_conv_bn_eval(conv.train(), bn)


@pytest.mark.parametrize("features", [4, 1])
def test_fused_linear_maps(torch, features):
    layer, bn, x = torch.nn.Linear(3, 4).eval(), Norm(torch, features), torch.randn(5, 3)
    fused = torch.nn.utils.fuse_linear_bn_eval(layer, bn)
    torch.testing.assert_close(fused(x), bn(layer(x), -1), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError, match="linear.out_features == bn.num_features or bn.num_features == 1"):
        torch.nn.utils.fuse_linear_bn_eval(layer, Norm(torch, 2))
    bn.running_mean = None
    with pytest.raises(AssertionError, match="must not be None"):
        torch.nn.utils.fuse_linear_bn_eval(layer, bn)


def counter(torch):
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = torch.nn.Linear(2, 2, bias=False)
            self.second = torch.nn.Linear(2, 2, bias=False)
            self.second.weight = self.first.weight
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x, scale=1.0):
            self.calls = self.calls + 1
            return self.second(self.first(x)) * scale

    return Counter()


def test_functional_call(torch):
    model, call = counter(torch), torch.func.functional_call
    before, eye = model.first.weight, torch.eye(2)
    state = {"first.weight": 2 * eye, "calls": torch.tensor(7.0)}
    y = call(model, state, torch.ones(1, 2), {"scale": 3.0})
    assert y.tolist() == [[12.0, 12.0]] and state["calls"] == 8
    assert model.first.weight is before and model.second.weight is before and model.calls == 0
    untied = call(model, ({"first.weight": eye}, {"second.weight": 3 * eye}), (torch.ones(1, 2),), tie_weights=False)
    assert untied.tolist() == [[3.0, 3.0]]
    weight = eye.clone().requires_grad_()
    call(model, {"first.weight": weight}, torch.ones(1, 2)).sum().backward()
    assert weight.grad is not None and before.grad is None
    with pytest.raises(ValueError, match="got multiple values for keys .*which are tied"):
        call(model, {"first.weight": eye, "second.weight": 3 * eye}, torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="Missing key"):
        call(model, {"first.weight": eye}, torch.ones(1, 2), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        call(model, {"third": eye}, torch.ones(1, 2), strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        call(model, ({"calls": eye}, {"calls": eye}), torch.ones(1, 2))
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        call(model, 3, torch.ones(1, 2))
    with pytest.raises(TypeError, match="is not an instance of torch.Tensor"):
        call(model, {"first.weight": 3}, torch.ones(1, 2))
    assert model.first.weight is before and model.second.weight is before
    with pytest.warns(FutureWarning, match="use `torch.func.functional_call` instead"):
        torch.nn.utils.stateless.functional_call(model, {"first.weight": eye}, torch.ones(1, 2))


def test_functional_call_replaces_parametrized_weights(torch):
    layer = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2, bias=False))
    name = "parametrizations.weight.original"
    y = torch.func.functional_call(
        layer, {f"{name}0": torch.ones(2, 1), f"{name}1": 5 * torch.eye(2)}, torch.ones(1, 2)
    )
    assert y.tolist() == [[1.0, 1.0]]


def test_stacked_states(torch):
    models = [torch.nn.Linear(2, 3) for _ in range(4)]
    params, buffers = torch.func.stack_module_state(models)
    assert (
        params["weight"].shape == (4, 3, 2)
        and params["bias"].is_leaf
        and params["bias"].requires_grad
        and buffers == {}
    )
    torch.testing.assert_close(params["weight"][2], models[2].weight)
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        torch.func.stack_module_state([])
    with pytest.raises(RuntimeError, match="Expected all models to be of the same class"):
        torch.func.stack_module_state([*models, torch.nn.ReLU()])
    with pytest.raises(RuntimeError, match="Expected all models to have the same training/eval mode"):
        torch.func.stack_module_state([*models, torch.nn.Linear(2, 3).eval()])
    models[0].weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match="same .requires_grad"):
        torch.func.stack_module_state(models)


def test_skip_init(torch):
    layer = torch.nn.utils.skip_init(torch.nn.Linear, 3, 2, dtype=torch.float64)
    assert layer.weight.shape == (2, 3) and layer.weight.dtype == torch.float64 and layer.weight.device.type == "cpu"
    assert torch.nn.utils.skip_init(torch.nn.Linear, 3, 2, device="meta").weight.is_meta
    with pytest.raises(RuntimeError, match="Module must support a 'device' arg"):
        torch.nn.utils.skip_init(torch.nn.ReLU)
    with pytest.raises(RuntimeError, match="Expected a Module; got"):
        torch.nn.utils.skip_init(int)


def test_memory_format_of_weights(torch):
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 2), torch.nn.ConvTranspose2d(4, 3, 2), torch.nn.Conv3d(3, 2, 2))
    weight, values = model[0].weight, model[0].weight.detach().clone()
    assert torch.nn.utils.convert_conv2d_weight_memory_format(model, torch.channels_last) is model
    assert model[0].weight is weight and torch.equal(weight, values)
    assert all(model[i].weight.is_contiguous(memory_format=torch.channels_last) for i in (0, 1))
    assert model[2].weight.is_contiguous()
    torch.nn.utils.convert_conv3d_weight_memory_format(model, torch.channels_last_3d)
    assert model[2].weight.is_contiguous(memory_format=torch.channels_last_3d)


def test_data_parallel_on_the_cpu(torch):
    layer = torch.nn.Linear(2, 2)
    wrapped = torch.nn.DataParallel(layer)
    assert (
        wrapped.module is layer
        and wrapped.device_ids == []
        and set(wrapped.state_dict()) == {"module.weight", "module.bias"}
    )
    assert torch.equal(wrapped(torch.ones(1, 2)), layer(torch.ones(1, 2)))
    state = wrapped.state_dict()
    torch.nn.modules.utils.consume_prefix_in_state_dict_if_present(state, "module.")
    assert layer.load_state_dict(state).missing_keys == [] and set(state._metadata) == {""}
    with pytest.raises(RuntimeError, match="The stateless API can't be used with nn.DataParallel module"):
        torch.func.functional_call(wrapped, {}, torch.ones(1, 2))
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(layer)


def test_copies_of_modules(torch):
    parallel, place = torch.nn.parallel, torch.device("cpu")
    if torch.__name__ == "torch":
        pytest.skip("PyTorch copies modules to accelerators alone")
    shared = torch.nn.Linear(3, 3)
    net = torch.nn.Sequential(shared, torch.nn.BatchNorm1d(3), shared)
    first, second = parallel.replicate(net, [place, place])
    assert list(first.parameters()) == [] and first[0] is first[2] and first[0] is not second[0]
    assert first[0].weight is not shared.weight and torch.equal(first[0].weight, shared.weight)
    x = torch.rand(4, 3)
    outputs = parallel.parallel_apply([first, second], [x, (x,)])
    assert torch.equal(outputs[0], outputs[1])
    sum(outputs).sum().backward()
    both = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    (2 * torch.nn.Sequential(shared, torch.nn.BatchNorm1d(3), shared)(x)).sum().backward()
    for got, p in zip(both, net.parameters()):
        assert p.grad is None or torch.allclose(got, p.grad, atol=1e-6)
    assert not parallel.replicate(net, [place], detach=True)[0][0].weight.requires_grad
    again = importlib.import_module(parallel.replicate.__module__)._broadcast_coalesced_reshape
    first, second = again(list(net.parameters()), [-1, place])
    assert all(
        a.equal(p) and a.requires_grad
        for copied in (first, second)
        for a, p in zip(copied, net.parameters(), strict=True)
    )
    assert not again([x.detach().requires_grad_()], [-1], detach=True)[0][0].requires_grad and again([], [-1]) == []
    with pytest.raises(AssertionError, match="number of inputs"):
        parallel.parallel_apply([first], [])
    wrapped = torch.nn.DataParallel(shared)
    assert len(wrapped.replicate(shared, [place])) == 1
    assert wrapped.parallel_apply([shared], [(x,)], None)[0].shape == (4, 3)


def test_helpers_of_modules(torch):
    utils = torch.nn.modules.utils
    assert utils._pair(3) == (3, 3) and utils._triple([1, 2, 3]) == (1, 2, 3) and utils._single.__name__ == "_single"
    assert utils._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert utils._list_with_default([None, 5], [1, 2, 3]) == [2, 5] and utils._list_with_default(4, [1]) == 4
    with pytest.raises(ValueError, match="Input dimension should be at least 3"):
        utils._list_with_default([1, 2], [1, 2])
    with pytest.warns(FutureWarning, match="`nn.Container` is deprecated"):
        box = torch.nn.Container(a=torch.nn.ReLU())
    assert [name for name, _ in box.named_children()] == ["a"]
    kwargs = {"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}}
    assert torch.nn.factory_kwargs(kwargs) == {"device": "cpu", "dtype": torch.float64}
    assert torch.nn.factory_kwargs(None) == {}
    with pytest.raises(TypeError, match="unexpected kwargs {'size'}"):
        torch.nn.factory_kwargs({"size": 3})
    with pytest.raises(TypeError, match="device specified twice"):
        torch.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"device": "cpu"}})


def test_pruning_methods_of_programs_find_the_checks_of_amounts(torch):
    prune = module_of(torch, "nn.utils.prune")
    assert prune._compute_nparams_toprune(0.4, 17) == 7 and prune._compute_nparams_toprune(3, 17) == 3
    prune._validate_pruning_amount_init(0.5)
    prune._validate_pruning_amount(5, 5)
    with pytest.raises(ValueError, match="should be smaller than the number of parameters"):
        prune._validate_pruning_amount(20, 19)
    with pytest.raises(ValueError, match="a float in the range"):
        prune._validate_pruning_amount_init(1.1)


def test_loading_into_a_module_without_memory_warns(torch):
    with torch.device("meta"):
        layer = torch.nn.Linear(3, 5)
    state = layer.state_dict()
    state["weight"] = torch.zeros(5, 3)
    with pytest.warns(UserWarning, match="for weight: copying from a non-meta parameter in the checkpoint to a meta"):
        layer.load_state_dict(state)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer.load_state_dict(state, assign=True)
    assert layer.weight.is_cpu
