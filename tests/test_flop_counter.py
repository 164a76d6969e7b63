"""`utils.flop_counter`, `utils.module_tracker`, `utils.weak`: operations counted by module, and dictionaries by identity."""

import copy
import gc
import importlib

import pytest


def module_of(torch, name):
    return importlib.import_module(f"{torch.__name__}.utils.{name}")


@pytest.fixture
def count(torch):
    counter = module_of(torch, "flop_counter").FlopCounterMode

    def run(function, **options):
        with counter(display=False, **options) as mode:
            function()
        return mode

    return run


def by_name(counts):
    return {str(op): flops for op, flops in counts.items()}


def test_products(torch, count):
    a, b = torch.randn(4, 5), torch.randn(5, 6)
    for f in (
        lambda: a @ b,
        lambda: torch.addmm(torch.randn(6), a, b),
        lambda: torch.mm(a, b, out=torch.empty(4, 6)),
        lambda: torch.zeros(4, 6).addmm_(a, b),
        lambda: torch.einsum("ab,bc->ac", a, b),
    ):
        assert count(f).get_total_flops() == 2 * 4 * 5 * 6
    assert count(lambda: torch.bmm(torch.ones(3, 4, 5), torch.ones(3, 5, 6))).get_total_flops() == 720
    assert (
        count(lambda: torch.conv2d(torch.ones(2, 3, 6, 6), torch.ones(6, 3, 4, 4), padding=1)).get_total_flops()
        == 28800
    )
    assert count(lambda: a + 1).get_total_flops() == 0


def test_backward_counts_each_gradient(torch, count):
    w = torch.randn(5, 6, requires_grad=True)
    assert count(lambda: (torch.randn(4, 5) @ w).sum().backward()).get_total_flops() == 2 * 240
    x = torch.randn(4, 5, requires_grad=True)
    assert count(lambda: (x @ w).sum().backward()).get_total_flops() == 3 * 240
    for layer, size in ((torch.nn.Conv2d(4, 6, 3, groups=2, stride=2), 9), (torch.nn.ConvTranspose2d(4, 6, 3), 64)):
        x = torch.randn(2, 4, 8, 8, requires_grad=True)
        one = 2 * 2 * size * layer.weight.numel()
        found = by_name(count(lambda: layer(x).sum().backward()).get_flop_counts()["Global"])  # noqa: B023
        assert found == {"aten.convolution": 2 * one, "aten.convolution_backward": layer.groups * one}
    q = torch.randn(1, 2, 4, 8, requires_grad=True)
    attention = torch.nn.functional.scaled_dot_product_attention
    assert count(lambda: attention(q, q, q).sum().backward()).get_total_flops() == 7 * 2 * 2 * 4 * 4 * 8


def test_modules(torch, count, capsys):
    nn = torch.nn
    model = nn.Sequential(nn.Linear(8, 4), nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False)))
    x = torch.randn(3, 8, requires_grad=True)
    mode = count(lambda: model(x).sum().backward())
    found = {name: sum(counts.values()) for name, counts in mode.get_flop_counts().items()}
    first, second = 3 * 2 * 3 * 8 * 4, 3 * 2 * 3 * 4 * 2
    assert found["Global"] == found["Sequential"] == first + second
    assert found["Sequential.0"] == first and found["Sequential.1"] == found["Sequential.1.1"] == second
    table = mode.get_table()
    assert "Sequential.0" in table and "100.00%" in table and "Sequential.1.1" not in table
    assert "Sequential.1.1" in mode.get_table(3) and "Sequential.0" not in mode.get_table(1)
    with mode:
        model(x)
    assert mode.get_total_flops() == (first + second) // 3
    with module_of(torch, "flop_counter").FlopCounterMode():
        model(x)
    assert "Sequential" in capsys.readouterr().out
    with pytest.warns(UserWarning, match="not needed"):
        module_of(torch, "flop_counter").FlopCounterMode(model)


def test_formulas_of_programs(torch, count):
    aten = torch.ops.aten
    mode = count(
        lambda: torch.exp(torch.ones(4, 5)), custom_mapping={aten.exp: lambda shape, out_shape: 10 * out_shape[0]}
    )
    assert by_name(mode.get_flop_counts()["Global"]) == {"aten.exp": 40}
    register = module_of(torch, "flop_counter").register_flop_formula
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register(aten.exp.default)(lambda shape, out_shape: 1)


def test_which_modules_run(torch):
    nn, seen = torch.nn, []

    class Part(nn.Module):
        def forward(self, x):
            seen.append((set(tracker.parents), tracker.is_bw))
            y = x * 2
            y.register_hook(lambda grad: seen.append((set(tracker.parents), tracker.is_bw)))
            return y + 1

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([Part(), Part()])

        def forward(self, x):
            return self.parts[1](self.parts[0](x)) + 1

    model = Whole()
    with module_of(torch, "module_tracker").ModuleTracker() as tracker:
        model(torch.ones(2, requires_grad=True).clone()).sum().backward()
        assert tracker.parents == {"Global"} and not tracker.is_bw
    expected = [{"Global", "Whole", f"Whole.parts.{i}"} for i in (0, 1, 1, 0)]
    assert [parents for parents, _ in seen] == expected and [b for _, b in seen] == [False, False, True, True]


def test_weak_keys_by_identity(torch):
    weak = module_of(torch, "weak")
    a, b = torch.ones(2), torch.ones(2)
    found = weak.WeakTensorKeyDictionary({a: 1})
    found[b] = 2
    assert found[a] == 1 and found[b] == 2 and len(found) == 2 and a in found and torch.ones(2) not in found
    assert {id(k) for k in found} == {id(a), id(b)} and 3 not in found and found.get(torch.ones(2), 7) == 7
    again = copy.copy(found)
    assert again == found and (found | {a: 5})[a] == 5 and ({a: 5} | found)[a] == 1
    found |= {a: 9}
    assert found[a] == 9 and again[a] == 1
    reference = weak.TensorWeakRef(b)
    assert reference() is b and weak.WeakIdRef(a) == weak.WeakIdRef(a) and weak.WeakIdRef(a) != weak.WeakIdRef(b)
    del b
    gc.collect()
    assert reference() is None and len(found) == 1 and len(again) == 1
    assert found.pop(a) == 9 and not found
    with pytest.raises(KeyError):
        del found[a]
    with pytest.raises(TypeError):
        found[3] = 1


def test_formulas_by_op(torch, count):
    flops = module_of(torch, "flop_counter")
    a, b = torch.ones(2, 3), torch.ones(3, 4)
    assert flops.flop_registry[torch.ops.aten.mm](a, b, out_val=a @ b) == flops.mm_flop((2, 3), (3, 4)) == 48
    # Heads of keys and values may be fewer than those of queries.
    assert flops.sdpa_flop_count((2, 4, 5, 6), (2, 2, 7, 6), (2, 2, 7, 3)) == 5040
    assert flops.sdpa_backward_flop_count((2, 4, 5, 3), (2, 4, 5, 6), (2, 2, 7, 6), (2, 2, 7, 3)) == 13440
    assert flops.conv_flop_count([1, 2, 5], [3, 2, 2], [1, 3, 4], True) == 120
    for wrong in (lambda: flops.mm_flop((2, 3), (4, 5)), lambda: flops.bmm_flop((1, 2, 3), (2, 3, 4))):
        with pytest.raises(AssertionError):
            wrong()
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.mm"):
        flops.register_flop_formula(torch.ops.aten.mm)(lambda *shapes, out_shape: 1)

    def raw(x, other, out_val=None):
        return int(x.sum()) * out_val.numel()

    raw._get_raw = True
    mode = count(lambda: (a @ b, b.sin()), custom_mapping={torch.ops.aten.mm: raw})
    assert mode.get_total_flops() == 6 * 8


@pytest.mark.parametrize("transposed, groups, total", [(False, 1, 69120), (False, 4, 34560), (True, 2, 145152)])
def test_gradients_of_grouped_convolutions(torch, count, transposed, groups, total):
    # As in PyTorch, groups do not make the gradient of the weight less.
    layer = (torch.nn.ConvTranspose2d if transposed else torch.nn.Conv2d)(4, 8, 3, groups=groups, padding=1, stride=2)
    x = torch.randn(2, 4, 9, 7, requires_grad=True)
    assert count(lambda: layer(x).sum().backward()).get_total_flops() == total


def test_formulas_of_arguments(torch, count):
    flops, op = module_of(torch, "flop_counter"), torch.ops.aten.cumsum
    try:
        flops.register_flop_formula(op, get_raw=True)(lambda x, dim, out_val=None, **options: x.shape[dim])
        assert count(lambda: torch.ones(2, 5).cumsum(1)).get_flop_counts()["Global"] == {op: 5}
    finally:
        flops.flop_registry.pop(op)
        getattr(flops, "_raw", {}).pop(op, None)
