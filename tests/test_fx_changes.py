"""Changes to graphs of `rustgrad.fx`: patterns and what replaces them, transformers, copies."""

import copy
import pickle
import typing

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="graphs hold the functions of rustgrad")
nn = target.torch.nn


def called(module):
    return [n.name for n in module.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]


def test_a_pattern_with_several_results(torch):
    def f(x1, x2):
        x = x1 - x2
        return torch.sigmoid(x) + torch.relu(x)

    def pattern(a, b):
        c = a - b
        return torch.sigmoid(c), torch.relu(c), c

    def replacement(a, b):
        absolute = torch.abs(b)
        return absolute, absolute, torch.exp(a)

    traced = torch.fx.symbolic_trace(f)
    assert len(torch.fx.replace_pattern(traced, pattern, replacement)) == 1
    traced.graph.lint()
    a, b = torch.randn(3), torch.randn(3)
    assert torch.equal(traced(a, b), b.abs() + b.abs())


def test_places_of_a_pattern_with_two_results_are_found_by_what_they_share(torch):
    linear = torch.nn.functional.linear

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = torch.nn.Parameter(torch.ones(2, 2)), torch.nn.Parameter(torch.ones(2))

        def forward(self, x, y):
            first = x * linear(y, self.w, bias=self.b)
            alone = linear(first, self.w, bias=self.b)
            second = y * linear(alone.sigmoid() * alone, self.w, bias=self.b)
            return first + second

    def pattern(a, w, bias, c):
        product = linear(a, w, bias=bias)
        return product, c * product

    traced = torch.fx.symbolic_trace(Net())
    x, y = torch.ones(1, 2), torch.ones(1, 2) / 2
    before = traced(x, y)

    def doubled(a, w, bias, c):
        product = linear(a, w, bias=bias)
        return product, product * c * 2

    matches = torch.fx.replace_pattern(traced, pattern, doubled)
    traced.graph.lint()
    # Not in the middle: there `c` is computed from the product.
    assert len(matches) == 2 and not torch.equal(traced(x, y), before)


def test_a_match_must_stand_alone(torch):
    def shared(x):
        y = x.neg()
        return y.exp() + y

    def comes_back(x):
        y = x.neg()
        return y.exp(), y * y.exp().sum()

    traced = torch.fx.symbolic_trace(shared)
    assert torch.fx.replace_pattern(traced, lambda x: x.neg().exp(), lambda x: x) == []
    # A value leaves the piece by `sum` and comes back to it.
    traced = torch.fx.symbolic_trace(comes_back)
    outer = lambda x: (x.neg(), x.neg().exp().sum())
    assert torch.fx.replace_pattern(traced, outer, outer) == []


def test_literals_filters_and_callbacks(torch):
    from rustgrad.fx.subgraph_rewriter import replace_pattern_with_filters

    def f(x):
        return torch.add(x, 2) * torch.add(x, 3)

    def pattern(x):
        return torch.add(x, 5)

    make = torch.fx.symbolic_trace
    assert replace_pattern_with_filters(make(f), pattern, lambda x: x) == []
    traced = make(f)
    found = replace_pattern_with_filters(traced, pattern, lambda x: x.neg(), ignore_literals=True)
    assert len(found) == 2 and called(traced) == ["neg", "neg_1", "mul"]
    assert [n.name for r in found for n in r.replacements] == ["neg", "neg_1"]

    def number(match, graph, pattern_graph):
        return match.placeholder_nodes[1] == 3

    def callback(match, graph, pattern_graph):
        return make(lambda x, n: x * 10).graph

    traced = make(f)
    found = replace_pattern_with_filters(
        traced, lambda x, n: torch.add(x, n), match_filters=[number], replacement_callback=callback
    )
    assert len(found) == 1 and traced(torch.tensor(1.0)).item() == 3 * 10


def test_modules_of_a_replacement_come_and_those_replaced_go(torch):
    nn = torch.nn

    class Pair(nn.Module):
        def __init__(self, first):
            super().__init__()
            self.add_module(first.__class__.__name__.lower(), first)
            self.submod = nn.ReLU()

        def forward(self, x):
            return self.submod(next(iter(self.children()))(x))

    traced = torch.fx.symbolic_trace(Pair(nn.Sigmoid()))
    torch.fx.replace_pattern(traced, Pair(nn.Sigmoid()), Pair(nn.Tanh()))
    assert [name for name, _ in traced.named_children()] == ["submod", "tanh"]
    assert traced(torch.tensor(1.0)).item() == pytest.approx(0.7615942)


def test_numbers_of_values_that_differ_are_refused(torch):
    traced = torch.fx.symbolic_trace(lambda x: x.neg())
    with pytest.raises(RuntimeError, match="different numbers of arguments"):
        torch.fx.replace_pattern(traced, lambda x: x.neg(), lambda x, y: x)
    with pytest.raises(RuntimeError, match="expected 1 results, as the pattern has, got 2"):
        torch.fx.replace_pattern(traced, lambda x: x.neg(), lambda x: (x, x))


def test_a_transformer_keeps_where_nodes_come_from_and_what_writes_them(torch):
    class Codegen(torch.fx.graph.CodeGen):
        def gen_fn_def(self, free_vars, maybe_return_annotation):
            return f"def forward(self, values):\n    {', '.join(free_vars)} = values"

        def process_inputs(self, *inputs):
            return inputs[0]

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))

        def forward(self, x, y):
            return self.weight + x * y

    traced = torch.fx.symbolic_trace(Net())
    traced.graph.set_codegen(Codegen())
    traced.recompile()
    for node in traced.graph.nodes:
        node.meta["stack_trace"] = node.name
    made = torch.fx.Transformer(traced).transform()
    assert made([torch.tensor(2.0), torch.tensor(3.0)]).item() == 7
    assert [n.meta["stack_trace"] for n in made.graph.nodes] == [n.name for n in traced.graph.nodes]


def test_copies(torch):
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    traced.meta["self"] = traced
    copied = copy.deepcopy(traced)
    assert copied.meta["self"] is copied
    del traced.meta["self"]
    traced.add_submodule("unused", torch.nn.ReLU())
    traced.register_buffer("also", torch.ones(1))
    loaded = pickle.loads(pickle.dumps(traced))
    assert isinstance(loaded.unused, torch.nn.ReLU) and loaded.also.item() == 1
    tracer = torch.fx.Tracer()
    tracer.trace(lambda x: x.neg())
    assert str(copy.deepcopy(tracer).graph) == str(tracer.graph)


def test_the_file_of_the_code_names_the_function_traced(torch):
    def small(x: typing.Tuple):  # noqa: UP006 - the annotation without its types
        return x[0]

    traced = torch.fx.symbolic_trace(small)
    assert "x : typing_Tuple)" in traced.code and traced((3, 4)) == 3
    assert (
        f"from {__file__}" in traced.forward.__code__.co_filename and " in small" in traced.forward.__code__.co_filename
    )


def test_a_node_of_something_that_is_not_there_warns(torch):
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.ReLU()))
    with pytest.warns(UserWarning, match="Attempted to insert a call_module Node with no underlying reference"):
        traced.graph.call_module("1.inner")
    with pytest.warns(UserWarning, match="Attempted to insert a get_attr Node with no underlying reference"):
        traced.graph.get_attr("weight")


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5))
        self.shared, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4)
        self.last, self.free = nn.Linear(4, 2), nn.BatchNorm1d(2)

    def forward(self, x):
        x = self.shared(self.first(x))
        return self.free(self.last((x + self.norm(x)).mean((2, 3))))


def test_normalisations_are_folded(torch):
    from rustgrad.fx.experimental import optimization

    net, x = Normalised(), torch.randn(4, 3, 6, 6)
    net(x)  # statistics
    net.eval()
    fused = optimization.fuse(net)
    assert torch.allclose(fused(x), net(x), atol=1e-5)
    assert called(fused) == ["first_0", "first_2", "first_3", "shared", "norm", "add", "mean", "last"]
    assert isinstance(net.first[1], nn.BatchNorm2d) and fused.get_submodule("first.0") is not net.first[0]
    assert "first_3" not in called(optimization.remove_dropout(net)) and "first_3" in called(
        torch.fx.symbolic_trace(net)
    )
    assert optimization.fuse(torch.fx.symbolic_trace(net), inplace=True, no_trace=True)(x).shape == (4, 2)
    with pytest.raises(AssertionError, match="expected a GraphModule"):
        optimization.fuse(net, no_trace=True)
    with pytest.raises(AssertionError, match="Fusion only for eval"):
        optimization.fuse(copy.deepcopy(net).train())


def test_nodes_become_a_module(torch):
    from rustgrad.fx.experimental.optimization import extract_subgraph

    traced = torch.fx.symbolic_trace(Normalised().eval())
    nodes = {n.name: n for n in traced.graph.nodes}
    part = extract_subgraph(
        traced, [nodes["shared"], nodes["norm"]], [nodes["first_3"]], [nodes["norm"], nodes["shared"]]
    )
    x = torch.randn(1, 4, 2, 2)
    a, b = part(x)
    assert torch.equal(b, traced.shared(x)) and torch.equal(a, traced.norm(b))
