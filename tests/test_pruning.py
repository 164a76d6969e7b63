"""`ao.pruning`: masks of weights and their schedules; the masks are PyTorch's."""

import copy
import importlib

import pytest


@pytest.fixture
def pruning(torch):
    return importlib.import_module(f"{torch.__name__}.ao.pruning")


def a_model(torch):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(7, 5), nn.ReLU(), nn.Sequential(nn.Linear(5, 4)))
    with torch.no_grad():
        for k, p in enumerate(model.parameters()):
            p.copy_(((torch.arange(p.numel()) * 37 + 11 * k) % 101).reshape(p.shape) / 50 - 1)
    return model


def mask_of(layer):
    return ["".join(map(str, row)) for row in layer.parametrizations.weight[0].mask.int().tolist()]


@pytest.mark.parametrize("options, first, second", [
    ({}, "1111000 0000111 1111111 0000111 0000000", "11110 11110 11110 00001"),
    ({"sparsity_level": 0.3, "sparse_block_shape": (2, 2)}, "1100111 1100111 1100111 1100111 0011110", "11110 11110 11110 11110"),
    ({"sparse_block_shape": (1, 1), "norm": 1}, "1001011 0100101 1011010 0101101 0010010", "10100 10110 10010 01011"),
    ({"sparsity_level": 0.0}, "1111111 " * 5, "11111 " * 4),
    ({"sparsity_level": 1.0}, "0000000 " * 5, "00000 " * 4),
])  # fmt: skip
def test_masks_of_norms(torch, pruning, options, first, second):
    model = a_model(torch)
    sparsifier = pruning.WeightNormSparsifier(**options)
    sparsifier.prepare(model, None)
    sparsifier.step()
    assert mask_of(model[0]) == first.split() and mask_of(model[2][0]) == second.split()
    assert model[0].weight.count_nonzero() <= first.count("1")
    assert sparsifier.state["0.weight"]["mask"] is model[0].parametrizations.weight[0].mask
    assert not any("mask" in key for key in model.state_dict())


def test_part_of_each_block(torch, pruning):
    model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    with torch.no_grad():
        model[0].weight.copy_(((torch.arange(32) * 37) % 101).reshape(4, 8) / 50 - 1)
    sparsifier = pruning.WeightNormSparsifier(zeros_per_block=2)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    mask = ["11110110"] * 3 + ["11111010"]
    assert mask_of(model[0]) == mask and "tensor_fqn: 0.weight" in repr(sparsifier)
    model(torch.ones(1, 8)).sum().backward()
    assert model[0].parametrizations.weight.original.grad.sum() == "".join(mask).count("1")
    other = pruning.WeightNormSparsifier()
    other.model = torch.nn.Sequential(torch.nn.Linear(8, 4))
    other.prepare(other.model, None)
    other.load_state_dict(copy.deepcopy(sparsifier.state_dict()))
    assert mask_of(other.model[0]) == mask and other.groups[0]["module"] is other.model[0]
    sparsifier.squash_mask(("sparsity_level",), {"0": ("zeros_per_block",)})
    assert model[0].sparse_params == {"sparsity_level": 0.5, "zeros_per_block": 2}
    assert isinstance(model[0].weight, torch.nn.Parameter) and model[0].weight.count_nonzero() == 24
    for wrong in (5, -1):
        sparsifier = pruning.WeightNormSparsifier(zeros_per_block=wrong)
        sparsifier.prepare(torch.nn.Sequential(torch.nn.Linear(8, 4)), None)
        with pytest.raises(ValueError, match="per block"):
            sparsifier.step()


def test_diagonals(torch, pruning):
    model = a_model(torch)
    sparsifier = pruning.NearlyDiagonalSparsifier(3)
    sparsifier.prepare(model, [{"tensor_fqn": "0.weight"}])
    sparsifier.step()
    assert mask_of(model[0]) == "1100000 1110000 0111000 0011100 0001110".split()
    sparsifier.groups[0]["nearliness"] = 2
    with pytest.raises(ValueError, match="odd"):
        sparsifier.step()


def test_schedules(torch, pruning):
    model = a_model(torch)
    sparsifier = pruning.WeightNormSparsifier(0.8)
    sparsifier.prepare(model, None)
    halved = pruning.LambdaSL(sparsifier, lambda epoch: 0.5**epoch)
    found = []
    for _ in range(2):
        sparsifier.step()
        halved.step()
        found += halved.get_last_sl()
    assert found == [0.4, 0.4, 0.2, 0.2] and halved.state_dict()["last_epoch"] == 2
    for group in sparsifier.groups:
        group["sparsity_level"] = 0.9
    cubic = pruning.CubicSL(sparsifier, init_sl=0.1, init_t=1, delta_t=1, total_t=2, initially_zero=True)
    found = cubic.get_last_sl()[:1]
    with pytest.warns(UserWarning, match="before `sparsifier.step"):
        cubic.step()
    for _ in range(3):
        found += cubic.get_last_sl()[:1]
        sparsifier.step()
        cubic.step()
    assert found == pytest.approx([0, 0.1, 0.8, 0.9])
    with pytest.warns(UserWarning, match="get_last_sl"):
        cubic.get_sl()
    with pytest.raises(ValueError, match="length 2"):
        pruning.CubicSL(sparsifier, init_sl=[1])
    with pytest.raises(TypeError, match="not an instance"):
        pruning.BaseScheduler(model)


def test_conversion(torch, pruning):
    class Sparse(torch.nn.Linear):
        @classmethod
        def from_dense(cls, layer):
            return cls(layer.in_features, layer.out_features)

    model = a_model(torch)
    sparsifier = pruning.WeightNormSparsifier()
    sparsifier.prepare(model, [{"tensor_fqn": "2.0.weight"}])
    made = sparsifier.convert(model, {torch.nn.Linear: Sparse})
    assert type(made[2][0]) is Sparse and type(made[0]) is torch.nn.Linear and type(model[2][0]) is not Sparse
    assert pruning.module_to_fqn(model, model[2][0]) == "2.0" and pruning.fqn_to_module(model, "2.9") is None
    for config, text in (([model], "should be dicts"), ([{}], "tensor_fqn is a required")):
        with pytest.raises(AssertionError, match=text):
            sparsifier.prepare(model, config)
    with pytest.raises(NotImplementedError):
        sparsifier.convert(model)
