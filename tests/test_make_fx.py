"""`make_fx`: graphs are PyTorch's node by node (`golden/make_fx.json`), and compute what the function does for other arguments."""

import importlib
import json
from pathlib import Path

import pytest
from support import target
from support.traced import described, programs

torch = target.torch
proxy_tensor = importlib.import_module(f"{target.NAME}.fx.experimental.proxy_tensor")
pytree = importlib.import_module(f"{target.NAME}.utils._pytree")
aten, F, make_fx = torch.ops.aten, torch.nn.functional, proxy_tensor.make_fx
GOLDEN = json.loads((Path(__file__).parent / "golden" / "make_fx.json").read_text())
PROGRAMS = programs(torch)


def same(got, want):
    got, want = pytree.tree_leaves(got), pytree.tree_leaves(want)
    assert len(got) == len(want)
    for a, b in zip(got, want):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", PROGRAMS)
def test_graph(name):
    function, args = PROGRAMS[name]
    made = make_fx(function)(*args)
    assert described(made.graph) == GOLDEN[name]
    others = pytree.tree_map(lambda t: t.detach() * 0.5 + 0.25 if t.is_floating_point() else t, args)
    same(made(*others), function(*others))


def test_fake_mode_gives_the_same_graph():
    function, args = PROGRAMS["backward"]
    made = make_fx(function, tracing_mode="fake")(*args)
    assert [n.name for n in made.graph.nodes] == [row.split(":")[0] for row in GOLDEN["backward"]]
    same(made(*args), function(*args))


def test_values_of_nodes():
    node = [*make_fx(lambda x: x.t().double())(torch.ones(2, 3)).graph.nodes][1]
    assert tuple(node.meta["val"].shape) == (3, 2) == tuple(node.meta["tensor_meta"].shape)
    assert node.meta["tensor_meta"].stride == (1, 3) and node.meta["val"].device.type == "cpu"


def test_decompositions():
    table = {aten.silu.default: lambda x: x * x.sigmoid()}
    made = make_fx(lambda x: F.silu(x).exp(), decomposition_table=table)(torch.ones(2))
    assert [str(n.target) for n in made.graph.nodes][1:-1] == [
        "aten.sigmoid.default",
        "aten.mul.Tensor",
        "aten.exp.default",
    ]


def test_what_has_no_formula_is_differentiated_when_the_graph_runs():
    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(x.sinc().sum() + x.cumprod(0).sum(), x)

    x = torch.tensor([0.3, 0.6, 0.9])
    made = make_fx(gradient)(x)
    same(made(x * 0.5), gradient(x * 0.5))


def test_examples_of_vmap_are_traced_one_by_one():
    function = torch.func.vmap(torch.func.grad(lambda x: (x.sin() * x[0]).sum()))
    made = make_fx(function)(torch.rand(3, 2))
    x = torch.rand(3, 2)
    same(made(x), function(x))
    jacobian = torch.func.jacrev(lambda x: x.sin() * x.sum())
    same(make_fx(jacobian)(torch.rand(3))(x[:, 0]), jacobian(x[:, 0]))


def test_what_depends_on_values_is_refused():
    x = torch.rand(3)
    with pytest.raises(RuntimeError, match="trying to get value out of a tracing tensor with aten._local_scalar_dense"):
        make_fx(lambda x: x * x.sum().item())(x)
    made = make_fx(lambda x: x * torch.tensor(3.0).item())(x)
    same(made(x), x * 3)
    assert proxy_tensor.get_proxy_mode() is None


@pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")
def test_what_is_not_here_says_so():
    x = torch.rand(3)
    with pytest.raises(NotImplementedError, match="tracing_mode='symbolic'"):
        make_fx(torch.sin, tracing_mode="symbolic")
    with pytest.raises(NotImplementedError, match="forward-mode"):
        make_fx(torch.func.jacfwd(torch.sin))(x)
    layer = torch.nn.Linear(3, 3)
    layer.register_full_backward_hook(lambda *given: None)
    with pytest.raises(NotImplementedError, match="hooks of modules"):
        make_fx(layer)(x.requires_grad_())
    with pytest.raises(AssertionError, match="should be one of"):
        make_fx(torch.sin, tracing_mode="other")


def test_tables_of_decompositions():
    decomp = importlib.import_module(f"{target.NAME}._decomp")
    found = decomp.get_decompositions([aten.silu, aten.mm])
    assert aten.silu.default in found and aten.mm.default not in found
    assert list(decomp.get_decompositions([aten.silu.default])) == [aten.silu.default]
    table = decomp.core_aten_decompositions()
    assert aten.native_layer_norm.default not in table and decomp.get_decompositions([aten.native_layer_norm])

    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(
            (F.hardsigmoid(x).t() * F.layer_norm(x, (4,)).softmax(1).t()).sum() + x.split(2, 1)[0].tanh().sum(), x
        )

    for dtype in (torch.float32, torch.bfloat16):
        x = torch.rand(3, 4).to(dtype)
        made = make_fx(gradient, decomposition_table=table)(x)
        assert not any(
            str(n.target).startswith(("aten.t.", "aten.split.", "aten.tanh_backward")) for n in made.graph.nodes
        )
        torch.testing.assert_close(made(x), gradient(x), atol=3e-2 if dtype == torch.bfloat16 else 1e-5, rtol=1e-2)
    mine = {}

    @decomp.register_decomposition(aten.sin, mine)
    def sin(x):
        return x - x**3 / 6

    assert mine[aten.sin.default] is sin
    with pytest.raises(RuntimeError, match="duplicate registrations for aten.sin.default"):
        decomp.register_decomposition(aten.sin.default, mine)(lambda x: x)
    decomp.remove_decompositions(mine, [aten.sin])
    assert aten.sin.default not in mine


def test_elements_that_writes_make_unknown():
    def drawn():
        return torch.tensor([2.0]).normal_().item()

    def through_a_view(x):
        kept = torch.tensor([2.0])
        kept.view(1).add_(x)
        return x * kept.item()

    with pytest.raises(RuntimeError, match="value out of a tracing tensor|data-dependent"):
        make_fx(drawn)()
    if not target.STAND_IN:  # PyTorch takes the number of this run
        with pytest.raises(RuntimeError, match="value out of a tracing tensor"):
            make_fx(through_a_view)(torch.rand(1))
