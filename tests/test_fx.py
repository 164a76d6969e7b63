"""`rustgrad.fx`: graphs of modules, the code written from them, and changes to them. Expected code is PyTorch's."""

import copy
import math
import operator
import pickle

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="graphs hold the functions of rustgrad")


def net(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(3, 4)
            self.w = torch.nn.Parameter(torch.ones(4))
            self.register_buffer("b", torch.zeros(4))
            self.seq = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())

        def forward(self, x: torch.Tensor, k=2):
            y = torch.relu(self.l(x)) + self.w + self.b
            y = torch.cat([y, y.sum(-1, keepdim=True)], dim=-1)[:, :4]
            y += 1
            a, b = y.chunk(2, -1)
            return {"r": self.seq(y).view(x.shape[0], -1), "t": (a, b.sigmoid() * k)}

    return Net()


CODE = """


def forward(self, x : torch.Tensor, k = 2):
    l = self.l(x)
    relu = torch.relu(l);  l = None
    w = self.w
    add = relu + w;  relu = w = None
    b = self.b
    add_1 = add + b;  add = b = None
    sum_1 = add_1.sum(-1, keepdim = True)
    cat = torch.cat([add_1, sum_1], dim = -1);  add_1 = sum_1 = None
    getitem = cat[(slice(None, None, None), slice(None, 4, None))];  cat = None
    add_2 = getitem + 1;  getitem = None
    chunk = add_2.chunk(2, -1)
    getitem_1 = chunk[0]
    getitem_2 = chunk[1];  chunk = None
    seq_0 = getattr(self.seq, "0")(add_2);  add_2 = None
    seq_1 = getattr(self.seq, "1")(seq_0);  seq_0 = None
    getattr_1 = x.shape;  x = None
    getitem_3 = getattr_1[0];  getattr_1 = None
    view = seq_1.view(getitem_3, -1);  seq_1 = getitem_3 = None
    sigmoid = getitem_2.sigmoid();  getitem_2 = None
    mul = sigmoid * k;  sigmoid = k = None
    return {'r': view, 't': (getitem_1, mul)}
    """


def test_code_is_pytorchs(torch):
    assert torch.fx.symbolic_trace(net(torch)).code == CODE


def same(torch, a, b):
    return torch.equal(a["r"], b["r"]) and all(map(torch.equal, a["t"], b["t"]))


@pytest.mark.parametrize("way", ["itself", "pickle", "deepcopy", "interpreter", "transformer"])
def test_a_traced_module_computes_the_same(torch, way):
    module, x = net(torch), torch.randn(2, 3)
    traced = torch.fx.symbolic_trace(module)
    run = {
        "itself": lambda: traced,
        "pickle": lambda: pickle.loads(pickle.dumps(traced)),
        "deepcopy": lambda: copy.deepcopy(traced),
        "interpreter": lambda: torch.fx.Interpreter(traced).run,
        "transformer": lambda: torch.fx.Transformer(traced).transform(),
    }[way]()
    assert same(torch, run(x), module(x)) and same(torch, run(x, 3), module(x, 3))
    assert dict(traced.named_parameters()).keys() == dict(module.named_parameters()).keys()


def test_gradients_reach_the_parameters(torch):
    module = net(torch)
    traced = torch.fx.symbolic_trace(module)
    assert traced.l.weight is module.l.weight
    traced(torch.ones(2, 3))["t"][1].sum().backward()
    assert module.w.grad is not None


def test_table_and_text(torch, capsys):
    def f(x):
        return torch.sin(x).neg()

    graph = torch.fx.symbolic_trace(f).graph
    graph.print_tabular()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["opcode", "name", "target", "args", "kwargs"] and set(lines[1]) == {"-", " "}
    assert [line.split()[:2] for line in lines[2:]] == [
        ["placeholder", "x"],
        ["call_function", "sin"],
        ["call_method", "neg"],
        ["output", "output"],
    ]
    assert str(graph) == (
        "graph():\n"
        "    %x : [num_users=1] = placeholder[target=x]\n"
        "    %sin : [num_users=1] = call_function[target=torch.sin](args = (%x,), kwargs = {})\n"
        "    %neg : [num_users=1] = call_method[target=neg](args = (%sin,), kwargs = {})\n"
        "    return neg"
    )


def test_ops_by_namespace_are_recorded(torch):
    traced = torch.fx.symbolic_trace(lambda x: torch.ops.aten.relu(x) + torch.ops.aten.neg.default(x))
    assert [n.target for n in traced.graph.nodes][1:3] == [torch.ops.aten.relu, torch.ops.aten.neg.default]
    assert "neg_default = torch.ops.aten.neg.default(x)" in traced.code
    for module in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        assert module(torch.tensor(-1.0)).item() == 1
        assert module.graph.find_nodes(op="call_function", target=torch.ops.aten.neg.default)


def test_a_notebook_shows_a_table(torch):
    html = torch.fx.symbolic_trace(lambda x: x < 1).graph._repr_html_()
    assert html.startswith("<table><tr><th>opcode</th>") and html.count("<tr>") == 4
    assert "&lt;built-in function lt&gt;" in html


def test_control_flow_on_values_is_refused(torch):
    from rustgrad.fx.proxy import TraceError

    def branch(x):
        return x if x.sum() > 0 else -x

    def loop(x):
        return [row for row in x]

    with pytest.raises(TraceError, match="cannot be used as inputs to control flow"):
        torch.fx.symbolic_trace(branch)
    with pytest.raises(TraceError, match="Proxy object cannot be iterated"):
        torch.fx.symbolic_trace(loop)


def test_concrete_arguments_decide_branches(torch):
    def f(x, flag):
        return x * 2 if flag else x

    traced = torch.fx.symbolic_trace(f, concrete_args={"flag": True})
    assert traced(torch.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="specialized"):
        traced(torch.ones(1), False)


def test_concrete_arguments_that_are_containers(torch):
    PH, one = torch.fx.PH, torch.ones(1)

    def f(x, parts, k=2):
        return x * parts["scale"] + parts["more"][0], {"more": parts["more"], "k": k}

    parts = {"scale": 3, "more": [PH, PH], "none": None}
    traced = torch.fx.symbolic_trace(f, concrete_args={"parts": parts})
    names = [n.name for n in traced.graph.nodes if n.op == "placeholder"]
    assert names == ["x", "parts_1", "parts_2", "parts_3", "parts_4", "k"]
    assert (
        "x, parts_1, parts_2, parts_3, parts_4, k, = fx_pytree.tree_flatten_spec([x, parts, k], self._in_spec)"
        in traced.code
    )
    given = {"scale": 3, "more": [one, one * 5], "none": None}
    for module in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced)), torch.fx.symbolic_trace(traced)):
        value, rest = module(one, given)
        assert value.item() == 4 and [m.item() for m in rest["more"]] == [1, 5] and rest["k"] == 2
    assert torch.fx.Interpreter(traced).run(one, given, 7)[1]["k"] == 7
    with pytest.raises(AssertionError, match="parts has been specialized to have value 3"):
        traced(one, {**given, "scale": 4})
    with pytest.raises(KeyError):
        traced(one, {"scale": 3})
    with pytest.warns(UserWarning, match="Was not able to add assertion"):
        torch.fx.symbolic_trace(lambda x: x + 1, concrete_args={"x": one})


def test_concrete_arguments_of_a_starred_parameter(torch):
    class Sum(torch.nn.Module):
        def forward(self, *args, **kwargs):
            return args[0] + args[1]

    traced = torch.fx.symbolic_trace(Sum(), concrete_args=(torch.fx.PH, torch.fx.PH))
    assert "def forward(self, input_0, input_1):" in traced.code
    assert traced(torch.ones(1), torch.ones(1)).item() == 2
    replica = traced._replicate_for_data_parallel()
    assert replica(torch.ones(1), torch.ones(1)).item() == 2 and type(replica) is type(traced)


def test_star_arguments(torch):
    def f(x, *args, **kwargs):
        return x + args[0] * kwargs["scale"] + kwargs["y"]

    traced = torch.fx.symbolic_trace(f)
    assert traced(torch.ones(1), torch.ones(1), scale=3.0, y=torch.ones(1)).item() == 5


def half(x):
    return x / 2 if x.sum() > 0 else x


def uses_half(x):
    return half(x) + math.sqrt(4)


def test_wrapped_functions_are_one_node(torch):
    exec("import rustgrad\nrustgrad.fx.wrap('half')", globals())
    traced = torch.fx.symbolic_trace(uses_half)
    [call] = [n for n in traced.graph.nodes if n.op == "call_function" and n.target is half]
    assert traced(torch.ones(1)).item() == 2.5 and call.meta["is_wrapped"]
    assert half(torch.ones(1)).item() == 0.5
    with pytest.raises(NotImplementedError, match="top level"):
        torch.fx.wrap("half")


def test_a_tracer_decides_which_modules_are_leaves(torch):
    class Through(torch.fx.Tracer):
        def is_leaf_module(self, m, qualname):
            return not isinstance(m, torch.nn.ReLU) and super().is_leaf_module(m, qualname)

    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    plain, through = torch.fx.Tracer().trace(module), Through().trace(module)
    assert [n.op for n in plain.nodes] == ["placeholder", "call_module", "call_module", "output"]
    assert [n.op for n in through.nodes] == ["placeholder", "call_module", "call_function", "output"]
    stack = list(through.nodes)[1].meta["nn_module_stack"]
    assert list(stack.values())[-1] == ("0", torch.nn.Linear)


def test_module_calls_are_restored_after_an_error(torch):
    read, call = torch.nn.Module.__getattr__, torch.nn.Module.__call__

    def broken(x):
        raise KeyError("inside")

    with pytest.raises(KeyError):
        torch.fx.symbolic_trace(broken)
    assert torch.nn.Module.__getattr__ is read and torch.nn.Module.__call__ is call


def test_rewriting_a_graph(torch):
    def f(x, y):
        return torch.add(x, y) * torch.add(x, x)

    traced = torch.fx.symbolic_trace(f)
    for node in list(traced.graph.nodes):
        if node.target is torch.add:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.mul, node.args, node.kwargs)
            assert node.replace_all_uses_with(new)
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    assert traced(torch.tensor(3.0), torch.tensor(5.0)).item() == 15 * 9


def test_wrong_graphs_are_refused(torch):
    graph = torch.fx.symbolic_trace(lambda x: x.sin().cos()).graph
    x, sin, cos, output = graph.nodes
    with pytest.raises(RuntimeError, match="still had 1 users"):
        graph.erase_node(sin)
    cos.append(sin)
    with pytest.raises(RuntimeError, match="was used before it has been defined"):
        graph.lint()
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        graph.call_function(torch.cat, ([x, x],)).args[0].append(x)
    with pytest.raises(ValueError, match="a Callable is expected"):
        graph.call_function("sin", (x,))


def test_dead_code(torch):
    def f(x):
        x.sin()
        torch.nn.functional.relu_(x)
        return x.cos()

    traced = torch.fx.symbolic_trace(f)
    assert traced.graph.eliminate_dead_code() and not traced.graph.eliminate_dead_code()
    assert [n.name for n in traced.graph.nodes] == ["x", "relu", "cos", "output"]


def test_replace_pattern(torch):
    class Net(torch.nn.Module):
        def forward(self, x, w1, w2):
            m1 = torch.cat([w1, w2]).sum()
            m2 = torch.cat([w2, w1]).sum()
            return x + torch.max(m1) + torch.max(m2)

    traced = torch.fx.symbolic_trace(Net())
    args = torch.ones(2), torch.ones(2), torch.ones(3)
    before = traced(*args)
    matches = torch.fx.replace_pattern(traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: a.sum() + b.sum())
    assert len(matches) == 2 and "cat" not in traced.code and torch.equal(traced(*args), before)


def test_proxies_extend_a_finished_graph(torch):
    traced = torch.fx.symbolic_trace(lambda x: x.sin())
    output = traced.graph.output_node()
    with traced.graph.inserting_before(output):
        doubled = torch.fx.Proxy(output.args[0]) * 2
    output.args = (doubled.node,)
    traced.recompile()
    assert traced(torch.tensor(1.0)).item() == pytest.approx(2 * math.sin(1.0))


def test_shapes_are_noted(torch):
    from rustgrad.fx.passes.shape_prop import ShapeProp

    traced = torch.fx.symbolic_trace(net(torch))
    ShapeProp(traced).propagate(torch.ones(2, 3))
    shapes = {n.name: tuple(n.meta["tensor_meta"].shape) for n in traced.graph.nodes if n.op == "call_module"}
    assert shapes == {"l": (2, 4), "seq_0": (2, 4), "seq_1": (2, 4)}


def test_module_from_a_dict_and_submodules(torch):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(operator.add, (graph.call_module("a.b", (x,)), graph.get_attr("c"))))
    module = torch.fx.GraphModule({"a.b": torch.nn.Identity(), "c": torch.ones(1)}, graph)
    assert module(torch.ones(1)).item() == 2
    assert module.add_submodule("a.unused", torch.nn.ReLU()) and hasattr(module.a, "unused")
    module.delete_all_unused_submodules()
    assert not hasattr(module.a, "unused") and not module.delete_submodule("a.unused")
    with pytest.raises(RuntimeError, match="was not provided"):
        torch.fx.GraphModule({}, graph)


def test_an_error_shows_the_line_of_the_written_code(torch, capsys):
    traced = torch.fx.symbolic_trace(lambda x: x.view(3))
    with pytest.raises(RuntimeError):
        traced(torch.ones(2))
    assert "x.view(3)" in capsys.readouterr().err


ONE_NODE = {
    "group_norm": "F.group_norm(x, 2)",
    "local_response_norm": "F.local_response_norm(x, 2)",
    "fractional_max_pool2d": "F.fractional_max_pool2d(x, 2, 2)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(x, (2, None))",
    "lp_pool2d": "F.lp_pool2d(x, 2, 2)",
    "einsum": "torch.einsum('i,j->ij', [x, x])",
    "tensordot": "torch.tensordot(x, x)",
    "stft": "torch.stft(x, 4)",
    "is_floating_point": "torch.is_floating_point(x)",
}


@pytest.mark.parametrize("name", ONE_NODE)
def test_functions_written_in_python_are_one_node(torch, name):
    traced = torch.fx.symbolic_trace(lambda x: eval(ONE_NODE[name], {"x": x, "torch": torch, "F": torch.nn.functional}))
    assert [n.name for n in traced.graph.nodes] == ["x", name, "output"]


def test_formats_are_arguments(torch):
    traced = torch.fx.symbolic_trace(
        lambda x: torch.empty_like(x.to(memory_format=torch.channels_last), layout=torch.strided)
    )
    assert traced(torch.ones(1, 2, 2, 2)).is_contiguous(memory_format=torch.channels_last)
    from rustgrad.fx.passes.shape_prop import ShapeProp

    ShapeProp(traced).propagate(torch.ones(1, 2, 2, 2))
    formats = [n.meta["tensor_meta"].memory_format for n in traced.graph.nodes]
    assert formats == [torch.contiguous_format, *[torch.channels_last] * 3]


def test_another_method_than_forward(torch):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x

        def twice(self, x):
            return x * 2

    tracer = torch.fx.Tracer()
    tracer.traced_func_name = "twice"
    assert torch.fx.GraphModule({}, tracer.trace(Net()))(3) == 6
    tracer.traced_func_name = "thrice"
    with pytest.raises(AssertionError, match="traced_func_name=thrice doesn't exist in Net"):
        tracer.trace(Net())


class Pair(metaclass=target.torch.fx.ProxyableClassMeta):
    def __init__(self, left, right):
        self.left, self.right = left, right


def test_objects_of_proxies(torch):
    kept = Pair(1, 2)
    traced = torch.fx.symbolic_trace(lambda x, y: (Pair(x, y), torch.add(x, 1), len([kept])))
    made, more, _ = traced(torch.tensor(1), 5)
    assert (made.left.item(), made.right, more.item()) == (1, 5, 2)
