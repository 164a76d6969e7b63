"""Passes over graphs of `rustgrad.fx`: parts as submodules, partitions, managers, arguments by their parameters, recorded ops."""

import operator

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="graphs hold the functions of rustgrad")
nn = target.torch.nn
F = nn.functional


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)
        self.scale = nn.Parameter(target.torch.ones(4))

    def forward(self, x, y):
        x = self.a(x).relu()
        z = self.b(x + y) * self.scale
        return self.c(z + x), x


def traced(torch):
    torch.manual_seed(0)
    return torch.fx.symbolic_trace(Net())


def given(torch):
    return torch.randn(3, 4), torch.randn(3, 4)


def test_defaults_of_functions_are_recorded_by_name(torch):
    def f(x):
        y = F.max_pool2d(F.dropout(F.relu(x), 0.3), kernel_size=2)
        return F.layer_norm(F.conv2d(y, y, padding=1), (3,)), torch.split(y, 2), F.gelu(y), torch.linalg.norm(y)

    nodes = {n.name: n for n in torch.fx.symbolic_trace(f).graph.nodes}
    assert nodes["relu"].kwargs == {"inplace": False} and len(nodes["relu"].args) == 1
    assert nodes["dropout"].kwargs == {"p": 0.3, "training": True, "inplace": False}
    assert nodes["max_pool2d"].args[1] == 2 and list(nodes["max_pool2d"].kwargs) == [
        "stride", "padding", "dilation", "ceil_mode", "return_indices",
    ]  # fmt: skip
    assert nodes["conv2d"].kwargs == {"padding": 1} and nodes["gelu"].kwargs == {}
    assert nodes["layer_norm"].kwargs == {"weight": None, "bias": None, "eps": 1e-05}
    assert nodes["split"].kwargs == {"dim": 0} and "linalg_norm" in nodes


def test_parts_of_a_graph_become_modules(torch):
    from rustgrad.fx.passes.split_module import split_module

    gm, args = traced(torch), given(torch)
    nodes = [n for n in gm.graph.nodes if n.op.startswith("call")]
    paths = {}
    split = split_module(gm, gm, lambda n: nodes.index(n) // 3, paths)
    split.graph.lint()
    assert [n for n, _ in split.named_children()] == ["submod_0", "submod_1", "submod_2"]
    assert paths == {"submod_0.a": "a", "submod_1.b": "b", "submod_2.c": "c"} and "scale" in dict(
        split.named_parameters()
    )
    for found, expected in zip(split(*args), gm(*args)):
        assert torch.equal(found, expected)
    with pytest.raises(RuntimeError, match="cycle exists between partitions"):
        split_module(gm, gm, lambda n: nodes.index(n) % 2)


def test_annotations_of_layers(torch):
    assert "def forward(self, input):" in torch.fx.symbolic_trace(nn.Sequential(nn.ReLU())).code


def test_parts_by_tags(torch):
    from rustgrad.fx.passes.split_utils import split_by_tags

    gm, args = traced(torch), given(torch)
    for n in gm.graph.nodes:
        n.tag = "first" if n.name in ("a", "relu") else "second"
    split, paths = split_by_tags(gm, ["first", "second"], return_fqn_mapping=True)
    assert paths["a"] == "first.a" and paths["scale"] == "second.scale"
    for found, expected in zip(split(*args), gm(*args)):
        assert torch.equal(found, expected)


def test_partitions_of_what_is_supported(torch):
    from rustgrad.fx.passes import operator_support
    from rustgrad.fx.passes.infra.partitioner import CapabilityBasedPartitioner

    gm, args = traced(torch), given(torch)
    support = operator_support.OperatorSupport(
        {"_operator.add": None, "_operator.mul": None, "torch.nn.modules.linear.Linear": None}
    )
    partitioner = CapabilityBasedPartitioner(gm, support)
    expected, parts = gm(*args), partitioner.propose_partitions()
    assert [sorted(n.name for n in p.nodes) for p in parts] == [["add", "add_1", "b", "c", "mul", "scale"]]
    fused = partitioner.fuse_partitions(parts)
    assert (
        "fused_0" in dict(fused.named_children())
        and [n.name for n in fused.graph.nodes if n.op == "call_module"][0] == "a"
    )
    for found, wanted in zip(fused(*args), expected):
        assert torch.equal(found, wanted)


def test_groups_leave_no_circle(torch):
    from rustgrad.fx.passes.infra.partitioner import CapabilityBasedPartitioner
    from rustgrad.fx.passes.operator_support import create_op_support

    def f(x):
        a = x + 1
        b = a.relu()
        c = b + a
        return c + 2

    gm = torch.fx.symbolic_trace(f)
    support = create_op_support(lambda modules, node: node.op == "call_function")
    parts = CapabilityBasedPartitioner(gm, support, allows_single_node_partition=True).propose_partitions()
    assert sorted(sorted(n.name for n in p.nodes) for p in parts) == [["add"], ["add_1", "add_2"]]


def test_managers_of_passes(torch):
    from rustgrad.fx.passes.infra.pass_base import PassBase, PassResult
    from rustgrad.fx.passes.infra.pass_manager import PassManager, this_before_that_pass_constraint

    class Swap(PassBase):
        def call(self, graph_module):
            changed = False
            for node in graph_module.graph.nodes:
                if node.target is operator.add:
                    node.target, changed = operator.sub, True
            graph_module.recompile()
            return PassResult(graph_module, changed)

    def nothing(gm):
        return PassResult(gm, False)

    gm = torch.fx.symbolic_trace(lambda x: x + 1)
    manager = PassManager([nothing, swap := Swap()], [this_before_that_pass_constraint(swap, nothing)], steps=3)
    result = manager(gm)
    assert result.modified and manager.passes == [swap, nothing] and result.graph_module(torch.ones(1)).item() == 0
    circle = [this_before_that_pass_constraint(swap, nothing), this_before_that_pass_constraint(nothing, swap)]
    with pytest.raises(RuntimeError, match="Circular dependency"):
        PassManager([swap, nothing], circle)(gm)


def test_arguments_by_parameters(torch):
    from rustgrad.fx.operator_schemas import check_for_mutable_operation, normalize_function

    x = torch.ones(2)
    pair = normalize_function(F.max_pool2d, (x, 2), normalize_to_only_use_kwargs=True)
    assert pair.args == () and pair.kwargs["kernel_size"] == 2 and pair.kwargs["ceil_mode"] is False
    assert normalize_function(torch.add, (x, x), {}, (torch.Tensor, torch.Tensor)).kwargs == {"alpha": 1}
    assert normalize_function(len, ([],)) is None
    gm = traced(torch)
    node = next(n for n in gm.graph.nodes if n.name == "a")
    assert list(node.normalized_arguments(gm, normalize_to_only_use_kwargs=True).kwargs) == ["input"]
    with pytest.raises(RuntimeError, match=r"mutable operation aten::sigmoid.out"):
        check_for_mutable_operation(torch.sigmoid, (x,), {"out": x})


def test_constants_are_folded(torch):
    from rustgrad.fx.experimental.const_fold import split_const_subgraphs

    class Constants(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.randn(2)), nn.Parameter(torch.randn(2))

        def forward(self, x):
            return x * (self.a + self.b) + self.a.exp()

    net, x = Constants(), torch.randn(3, 2)
    folded = split_const_subgraphs(net)
    assert [n.name for n in folded.graph.nodes if n.op.startswith("call")] == ["getitem", "getitem_1", "mul", "add_1"]
    assert torch.allclose(folded(x), net(x)) and torch.allclose(folded(x), net(x))


def test_ops_that_ran_are_a_graph(torch):
    from rustgrad.fx.experimental.proxy_tensor import get_proxy_mode, make_fx
    from rustgrad.fx.passes.dialect.common.cse_pass import CSEPass

    weight, aten = nn.Parameter(torch.ones(3)), torch.ops.aten

    def f(x, y):
        assert get_proxy_mode() is not None
        a, b = torch.split(x["k"], 1)
        z = torch.tensor(3.0)
        z.add_(1)
        return [(a * weight).sum(), b * y + z + a.sin() + a.sin()]

    args = {"k": torch.randn(2, 3)}, 2.0 * torch.ones(3)
    gm = make_fx(f)(*args)
    assert get_proxy_mode() is None
    names = [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]
    assert (
        "aten.split.Tensor" in names
        and "aten.lift_fresh_copy.default" in names
        and names.count("aten.sin.default") == 2
    )
    assert gm._param_constant0 is weight
    for _ in range(2):
        for found, expected in zip(gm(*args), f_plain(torch, weight, *args)):
            assert torch.allclose(found, expected)
    fewer = CSEPass()(gm)
    assert fewer.modified and sum(n.target is aten.sin.default for n in fewer.graph_module.graph.nodes) == 1
    made = make_fx(lambda x: F.gelu(x), {aten.gelu.default: lambda x, approximate="none": x * 2})(torch.ones(2))
    assert [str(n.target) for n in made.graph.nodes][1:-1] == ["aten.mul.Tensor"]
    gradient = make_fx(lambda x: torch.autograd.grad((x * weight).sum(), weight))(torch.ones(3))
    assert torch.equal(gradient(torch.full((3,), 2.0))[0], torch.full((3,), 2.0))


def f_plain(torch, weight, x, y):
    a, b = torch.split(x["k"], 1)
    return [(a * weight).sum(), b * y + 4.0 + a.sin() + a.sin()]


def test_pictures_say_what_they_need(torch):
    from rustgrad.fx.passes.graph_drawer import FxGraphDrawer

    pydot = pytest.importorskip("pydot", reason="the drawer writes with pydot") if _has("pydot") else None
    if pydot is None:
        with pytest.raises(RuntimeError, match="requires the pydot package"):
            FxGraphDrawer(traced(torch), "net")
        return
    assert "relu" in FxGraphDrawer(traced(torch), "net").get_dot_graph().to_string()


def _has(name):
    import importlib.util

    return importlib.util.find_spec(name) is not None


def test_fake_tensors_of_nodes():
    torch = target.torch
    from rustgrad._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from rustgrad.fx.passes.fake_tensor_prop import FakeTensorProp

    class Parts(nn.Module):
        def forward(self, x, k):
            a, b = x.chunk(2)
            return (a + b).relu_(), x.size(0) * k

    graph = torch.fx.symbolic_trace(Parts())
    mode = FakeTensorMode()
    result, number = FakeTensorProp(graph, mode).propagate(torch.ones(4, 3), 5)
    assert isinstance(result, FakeTensor) and result.shape == (2, 3) and number == 20
    found = {node.name: node.meta["val"] for node in graph.graph.nodes}
    assert all(isinstance(t, FakeTensor) and t.fake_mode is mode for t in (found["x"], *found["chunk"], found["relu_"]))
    assert found["size"] == 4 and found["chunk"][0].shape == (2, 3)
    with pytest.raises(AssertionError, match="convert all Tensors to FakeTensors"):
        FakeTensorProp(torch.fx.symbolic_trace(nn.Linear(3, 2))).propagate(torch.ones(1, 3))


class Successor(nn.Module):
    def forward(self, x):
        return x + 1


class Positive(nn.Module):
    def forward(self, x):
        assert x.sum() > 0, "not positive"
        return x + 1


class Asserting(Successor):
    def __init__(self):
        super().__init__()
        self.inner, self.linear = Positive(), nn.Linear(2, 2)

    def twice(self, x):
        return x * 2

    def forward(self, x, rows=3):
        assert x.shape[0] == rows
        y: target.torch.Tensor = self.twice(super().forward(x))
        return self.linear(self.inner(y))


def test_assertions_are_recorded_by_a_rewriting_tracer(torch):
    from rustgrad.fx.experimental.rewriter import RewritingTracer

    module = Asserting()
    tracer = RewritingTracer()
    graph = tracer.trace(module)
    traced = torch.fx.GraphModule(tracer.root, graph)
    assert sum(n.target is torch._assert for n in graph.nodes) == 2
    assert [n.target for n in graph.nodes if n.op == "call_module"] == ["linear"]
    assert next(n for n in graph.nodes if n.name == "mul").type is torch.Tensor
    x = torch.ones(3, 2)
    assert torch.equal(traced(x), module(x)) and traced.linear is module.linear
    with pytest.raises(AssertionError, match="not positive"):
        traced(-x)
    with pytest.raises(AssertionError):
        traced(torch.ones(4, 2))

    limit = 2

    def bounded(x, *, low=0):
        assert x.max() < limit, "too large"
        return x - low

    function = torch.fx.GraphModule(nn.Module(), RewritingTracer().trace(bounded))
    assert function(torch.ones(1)).item() == 1
    with pytest.raises(AssertionError, match="too large"):
        function(torch.full((1,), 3.0))


def test_arguments_of_functions_of_layers_have_their_own_names(torch):
    from rustgrad.fx.operator_schemas import normalize_function

    a, b = torch.rand(1, 3), torch.rand(1, 3)
    named = {
        F.binary_cross_entropy: ["input", "target", "weight", "size_average", "reduce", "reduction"],
        F.elu: ["input", "alpha", "inplace"],
        F.linear: ["input", "weight", "bias"],
    }
    for function, names in named.items():
        args = (a,) if function is F.elu else (a, b)
        made = normalize_function(function, args, {}, normalize_to_only_use_kwargs=True)
        assert list(made.kwargs) == names and not made.args
        assert torch.equal(function(**made.kwargs), function(*args))
    # Of overloads the first whose types fit is taken.
    assert list(normalize_function(torch.all, (a,), {}, (torch.Tensor,)).args) == [a]
    made = normalize_function(torch.var, (a,), {}, (torch.Tensor,), normalize_to_only_use_kwargs=True)
    assert made.kwargs["unbiased"] is True and len(made.kwargs) == 2
    with pytest.raises(RuntimeError, match="ambiguous"):
        normalize_function(torch.var, (a,), {})
