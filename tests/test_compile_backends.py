"""`compile(backend=function)`: graphs of the program's calls, guards, training, what is no graph, names of backends."""

import operator
import warnings

import pytest

SCALE = None


class Counter:
    """A backend that keeps the graphs and leaves them as they are."""

    def __init__(self):
        self.graphs, self.inputs = [], []

    def __call__(self, gm, inputs):
        self.graphs.append(gm)
        self.inputs.append(inputs)
        return gm.forward


@pytest.fixture
def counter(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield Counter()


def calls(gm):
    return [(n.op, n.target) for n in gm.graph.nodes if n.op.startswith("call_")]


def test_the_graph_is_of_what_the_program_calls(torch, counter):
    layer = torch.nn.Linear(3, 3)

    def f(x, y):
        a = torch.sin(x) + 1 - y
        b = 2 - a
        b[0] = 3
        b *= a
        c = torch.nn.functional.relu(a).sum(dim=0)
        return {"a": a[1:], "n": x.shape[0] * 2, "more": [b, (c, x), layer(x), ~(a > 0), 2**a]}

    x, y = torch.randn(4, 3), torch.randn(3)
    compiled = torch.compile(f, backend=counter, fullgraph=True)
    found, expected = compiled(x, y), f(x, y)
    assert torch.equal(found["a"], expected["a"]) and found["n"] == 8 and found["more"][1][1] is x
    for a, b in zip(torch.utils._pytree.tree_leaves(found), torch.utils._pytree.tree_leaves(expected)):
        assert a == b if isinstance(a, int) else torch.equal(a, b)
    [gm], [inputs] = counter.graphs, counter.inputs
    assert isinstance(gm, torch.fx.GraphModule)
    assert calls(gm) == [
        ("call_function", torch.sin),
        ("call_function", operator.add),
        ("call_function", operator.sub),
        ("call_function", operator.sub),
        ("call_function", operator.setitem),
        ("call_function", operator.imul),
        ("call_function", torch.nn.functional.relu),
        ("call_method", "sum"),
        ("call_function", operator.getitem),
        ("call_function", torch.nn.functional.linear),
        ("call_function", operator.gt),
        ("call_function", operator.invert),
        ("call_function", operator.pow),
    ]
    names = [n.target for n in gm.graph.nodes if n.op == "placeholder"]
    assert names == ["L_x_", "L_y_", "L_layer_parameters_weight_", "L_layer_parameters_bias_"]
    assert [id(t) for t in inputs] == [id(t) for t in (x, y, layer.weight, layer.bias)]
    node = next(n for n in gm.graph.nodes if n.target is torch.sin)
    assert node.meta["example_value"].shape == (4, 3) and "a = torch.sin(x)" in node.stack_trace
    compiled(torch.zeros(4, 3), y)
    assert len(counter.graphs) == 1


def test_a_module_trains(torch, counter):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    copy = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    copy.load_state_dict(model.state_dict())
    losses = []
    for net in (model, torch.compile(copy, backend=counter)):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        torch.manual_seed(1)
        for _ in range(4):
            loss = net(torch.randn(5, 3)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[:4] == losses[4:] and losses[0] != losses[1]
    assert torch.equal(model[1].running_mean, copy[1].running_mean)
    assert len(counter.graphs) == 1
    names = [n.target for n in counter.graphs[0].graph.nodes if n.op == "placeholder"]
    assert "L_self_modules_0_parameters_weight_" in names and "L_self_modules_1_buffers_running_var_" in names
    copy.eval()
    assert torch.equal(torch.compile(copy, backend=counter)(torch.ones(2, 3)), copy(torch.ones(2, 3)))


def test_what_makes_another_graph(torch, counter):
    def f(x, k=2.0, flag=False):
        return x * k * (1 if SCALE is None else SCALE) + flag

    global SCALE
    SCALE = None
    compiled = torch.compile(f, backend=counter)
    x = torch.ones(3)

    def count(*args, **kwargs):
        assert torch.equal(compiled(*args, **kwargs), f(*args, **kwargs))
        return len(counter.graphs)

    assert [count(x), count(x * 2), count(torch.ones(4)), count(x.double()), count(x, 3.0)] == [1, 1, 2, 3, 4]
    assert [count(x, flag=True), count(x), count(torch.ones(4))] == [5, 5, 5]
    with torch.no_grad():
        assert [count(x), count(x)] == [6, 6]
    assert count(x.requires_grad_()) == 7
    SCALE = 5
    assert count(torch.ones(3)) == 8
    SCALE = None
    with pytest.warns(UserWarning, match="8 graphs"):
        warnings.simplefilter("default")
        assert count(torch.ones(7)) == 8
    compiled._compiled_state.reset()
    assert count(torch.ones(7)) == 9


def test_grad_modes_and_gradients_of_arguments(torch, counter):
    def f(x):
        with torch.no_grad():
            scale = x.detach().abs().max()
        return (x / scale).sum()

    x = torch.tensor([1.0, -4.0], requires_grad=True)
    compiled = torch.compile(f, backend=counter)
    for _ in range(3):
        compiled(x).backward()
    assert x.grad.tolist() == [0.75, 0.75] and len(counter.graphs) == 1
    modes = [n.args for n in counter.graphs[0].graph.nodes if n.target is torch._C._set_grad_enabled]
    assert modes == [(False,), (True,)] and torch.is_grad_enabled()


@pytest.mark.parametrize("kind", ["values", "print", "list", "argument", "shape"])
def test_what_is_no_graph_runs_as_it_is(torch, kind, capsys):
    kept = []

    def values(x):
        return x + 1 if x.sum() > 0 else x - 1

    def printing(x):
        print("here")
        return x + 1

    def appends(x):
        kept.append(x)
        return x + 1

    def changes(x, box=None):
        y = x + 1
        if box is not None:
            box["y"] = y
        return y

    def shape(x):
        return x[x > 0] + 1

    f = {"values": values, "print": printing, "list": appends, "argument": changes, "shape": shape}[kind]
    counter = Counter()
    compiled, x = torch.compile(f, backend=counter), torch.ones(2)
    args = ({},) if kind == "argument" else ()
    with pytest.warns(UserWarning, match="runs eagerly") as caught:
        assert compiled(x, *args).tolist() == [2, 2]
        assert compiled(x, *args).tolist() == [2, 2]
    assert len(caught) == 1 and not counter.graphs
    assert len(kept) == 2 * (kind == "list") and (not args or args[0]["y"].tolist() == [2, 2])
    assert capsys.readouterr().out == "here\nhere\n" * (kind == "print")
    with pytest.raises(torch._dynamo.exc.Unsupported, match="runs eagerly"):
        torch.compile(f, backend=counter, fullgraph=True)(x, *args)


def test_errors_of_the_function_and_of_the_backend(torch, counter):
    def bad(gm, inputs):
        raise ValueError("no")

    with pytest.raises(RuntimeError, match="size"):
        torch.compile(lambda x: x + torch.ones(3), backend=counter)(torch.ones(2))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="backend='bad' raised:\nValueError: no") as e:
        torch.compile(lambda x: x + 1, backend=bad)(torch.ones(2))
    assert isinstance(e.value.inner_exception, ValueError) and isinstance(e.value, RuntimeError)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="callable"):
        torch.compile(lambda x: x + 1, backend=lambda gm, inputs: 3)(torch.ones(2))
    assert torch.compile(lambda x: 3, backend=bad)(torch.ones(2)) == 3


def test_what_the_backend_returns_runs(torch, counter):
    def negated(gm, inputs, mode=None, options=None):
        assert options == {"a": 1} and mode is None
        return lambda *args: tuple(-t for t in gm(*args))

    f = torch.compile(lambda x: x + 1, backend=negated, options={"a": 1})
    assert f(torch.ones(2)).tolist() == [-2, -2] and f(torch.zeros(2)).tolist() == [-1, -1]


def test_backends_have_names(torch, counter, monkeypatch):
    from rustgrad._dynamo.backends import registry
    from rustgrad.compiler import _backends

    monkeypatch.setattr(_backends, "_registered", {})
    registry.register_backend(counter, name="counts")
    assert torch._dynamo.lookup_backend("counts") is counter and "counts" in torch._dynamo.list_backends()
    torch.compile(lambda x: x + 1, backend="counts")(torch.ones(2))
    assert len(counter.graphs) == 1

    @torch._dynamo.register_backend(tags=("debug",))
    def hidden(gm, inputs):
        return gm.forward

    assert "hidden" not in torch.compiler.list_backends() and "hidden" in torch.compiler.list_backends(())
    with pytest.raises(AssertionError, match="duplicate"):
        torch._dynamo.register_backend(lambda gm, inputs: gm, name="hidden")
    with pytest.raises(torch._dynamo.exc.InvalidBackend, match="nobody"):
        torch.compile(lambda x: x, backend="nobody")


def test_aot_autograd_as_a_backend(torch, counter):
    from rustgrad._dynamo.backends.common import aot_autograd
    from rustgrad._dynamo.testing import AotEagerAndRecordGraphs, CompileCounterWithBackend

    graphs = []

    def compiler(gm, inputs):
        graphs.append(gm)
        return torch._functorch.aot_autograd.make_boxed_func(gm.forward)

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    compiled = torch.compile(model, backend=aot_autograd(fw_compiler=compiler))
    x = torch.randn(2, 3)
    for _ in range(2):
        model.zero_grad()
        compiled(x).sum().backward()
    grads = [p.grad.clone() for p in model.parameters()]
    assert len(graphs) == 2 and all("aten" in str(t) or t is operator.getitem for g in graphs for _, t in calls(g))
    model.zero_grad()
    model(x).sum().backward()
    for p, grad in zip(model.parameters(), grads):
        torch.testing.assert_close(p.grad, grad)
    records, counts = AotEagerAndRecordGraphs(), CompileCounterWithBackend("aot_eager")
    for backend in (records, counts):
        f = torch.compile(lambda x: (x.sin() * 2).sum(), backend=backend)
        f(x.clone().requires_grad_()).backward()
    assert [len(g) for g in (records.graphs, records.fw_graphs, records.bw_graphs)] == [1, 1, 1]
    assert (counts.frame_count, counts.op_count) == (1, 3)


def test_methods_decorators_and_writes(torch, counter):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("seen", torch.zeros(()))

        @torch.compile(backend=counter)
        def step(self, x, *rest):
            self.seen.add_(1)
            x.add_(rest[0])
            return x.mul_(2), x[0]

    model, x = Model(), torch.zeros(2)
    for _ in range(3):
        whole, part = model.step(x, torch.ones(2))
        assert whole is x
        part.add_(1)
    assert len(counter.graphs) == 1 and model.seen.item() == 3 and x.tolist() == [21, 14]


def test_explain_shows_graphs(torch, counter):
    f = torch.compile(lambda x: x.sin() + 1, backend=counter)
    found = torch._dynamo.explain(f)(torch.ones(2))
    assert (found.road, found.graph_count, found.op_count) == ("compiled", 1, 2) and "torch.Tensor" in str(found)
    assert torch._dynamo.explain(f)(torch.ones(2)).road == "replay"
