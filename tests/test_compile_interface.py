"""`rustgrad.compile` and `rustgrad.compiler`: forms, modules, stances, `explain`, bounds, threads."""

import gc
import warnings

import pytest
from test_compile import mlp, nothing_is_compiled  # noqa: F401


def test_the_forms_of_compile(torch):
    @torch.compile
    def a(x):
        """A doc."""
        return x + 1

    @torch.compile(fullgraph=True, dynamic=True, mode="reduce-overhead")
    def b(x):
        return x + 1

    class Owner:
        @torch.compile
        def method(self, x):
            return x + 1

        def plain(self, x):
            return x + 1

    x = torch.ones(2)
    bound = torch.compile(Owner().plain)
    for f in (a, b, Owner().method, bound):
        for _ in range(5):
            assert f(x).tolist() == [2.0, 2.0]
    assert a.__name__ == "a" and a.__doc__ == "A doc."
    assert bound._compiled_state.road == "replay"
    assert torch.compile(a, disable=True) is a
    with pytest.raises(ValueError, match="mode"):
        torch.compile(lambda: 0, mode="fast")
    with pytest.raises(RuntimeError, match="backend"):
        torch.compile(lambda: 0, backend="gcc")
    with pytest.raises(TypeError, match="callable"):
        torch.compile(3)


def test_a_compiled_module_is_the_module(torch):
    model = mlp(torch, norm=True)
    compiled = torch.compile(model)
    assert isinstance(compiled, torch.compiler.OptimizedModule) and isinstance(compiled, torch.nn.Module)
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert [n for n, _ in compiled.named_parameters()] == [n for n, _ in model.named_parameters()]
    assert compiled.eval().training is False and model.training is False
    compiled.load_state_dict({"_orig_mod." + k: v for k, v in model.state_dict().items()})
    x = torch.randn(3, 8)
    with torch.no_grad():
        for _ in range(5):
            out = compiled(x)
    assert compiled._compiled_state.road == "replay"
    assert torch.equal(out, model(x))
    assert next(compiled.children()) is model[0]


def test_stances_disable_and_reset(torch):
    f = torch.compile(lambda x: x + 1)
    x = torch.ones(2)
    for _ in range(5):
        f(x)
    assert f._compiled_state.road == "replay"
    with torch.compiler.set_stance("force_eager"):
        f(x)
        assert f._compiled_state.road == "eager"
    with torch.compiler.set_stance("fail_on_recompile"):
        f(x)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            f(torch.ones(3))
    torch.compiler.disable(lambda: f(x))()
    assert f._compiled_state.road == "eager"
    torch.compiler.reset()
    assert f._compiled_state.plans == []
    seen = []
    g = torch.compile(torch.compiler.disable(lambda x: x + 1))
    assert g(x).tolist() == [2.0, 2.0]

    def h(x):
        seen.append(torch.compiler.is_compiling())
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(h)(x)
    assert seen == [True] and not torch.compiler.is_compiling()


def test_is_compiling_is_settled_for_a_plan(torch):
    """True in each road that a plan may replace, as in PyTorch, and no reason to run the function as it is."""

    def f(x):
        return x + 1 if torch.compiler.is_compiling() else x - 1

    g, x = torch.compile(f, fullgraph=True), torch.zeros(1)
    assert [g(x).item() for _ in range(5)] == [1.0] * 5 and g._compiled_state.road == "replay"
    assert f(x).item() == -1 and torch.compiler.disable(lambda: g(x))().item() == -1
    with torch.compiler.set_stance("force_eager"):
        assert g(x).item() == -1
    with torch.compiler.set_stance("eager_on_recompile"):
        assert g(x).item() == 1 and g(torch.zeros(2)).tolist() == [-1, -1] and g._compiled_state.road == "eager"

    def outer(x):
        with torch.compiler.set_stance("force_eager"):
            return f(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert torch.compile(outer)(x).item() == -1


def test_facts_of_dtypes_and_assertions_are_no_reason_to_run_eagerly(torch):
    def f(x):
        torch._assert(x.shape[0] == 2, "two rows")
        torch._check(x.dim() == 2, lambda: "a matrix")
        dtype = torch.promote_types(x.dtype, torch.get_default_dtype())
        y = x.to(dtype).masked_fill(x > 0, torch.finfo(dtype).min)
        return y if torch.is_grad_enabled() and torch.can_cast(dtype, torch.float16) else -y

    g, x = torch.compile(f, fullgraph=True), torch.tensor([[1.0, -1.0], [2.0, -2.0]])
    for _ in range(5):
        assert torch.equal(g(x), f(x))
    assert g._compiled_state.road == "replay"
    with torch.no_grad():
        assert torch.equal(g(x), f(x))
    with pytest.raises(AssertionError, match="two rows"):
        g(torch.ones(3, 1))
    with pytest.raises(RuntimeError, match="a matrix"):
        g(torch.ones(2))


def catches(x):
    try:
        return x.view(3)
    except RuntimeError:
        return x


def test_explain(torch):
    f = torch.compile(lambda x: (x + 1) * 2)
    x = torch.ones(2)
    roads = [torch.compiler.explain(f)(x).road for _ in range(5)]
    assert roads == ["eager", "watched", "watched", "replay", "replay"]
    plain = torch._dynamo.explain(lambda x: (x + 1) * 2)(x)
    assert (plain.graph_count, plain.graph_break_count, plain.road) == (1, 0, "watched")
    assert plain.op_count == len(plain.steps[0]) and torch.equal(plain.result, (x + 1) * 2)
    assert torch.compiler.explain(torch.nn.Linear(2, 2))(x).graph_count == 1
    eager = torch.compiler.explain(catches)(x)
    assert (eager.graph_count, eager.graph_break_count, eager.road) == (0, 1, "eager"), eager
    with pytest.raises(TypeError, match="expected a function or module, got int"):
        torch.compiler.explain(3)(x)
    text = repr(torch.compiler.explain(f)(x))
    assert "add(" in text and "argument tensor 0: f32[2]" in text and "ran 3 times" in text


def test_plans_are_bounded_and_go_with_their_function(torch):
    f = torch.compile(lambda x: x + 1, options={"max_plans": 4})
    for n in range(1, 20):
        for _ in range(4):
            f(torch.ones(n))
    assert len(f._compiled_state.plans) == 4
    gc.collect()
    before = torch.live_counts()

    def use():
        model = mlp(torch)
        optimizer = torch.optim.Adam(model.parameters())

        def step(x):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()

        step = torch.compile(step)
        for _ in range(5):
            step(torch.ones(2, 8))
        assert step._compiled_state.road == "replay"

    use()
    gc.collect()
    assert all(now <= then for now, then in zip(torch.live_counts(), before, strict=True))


def test_the_static_graph_of_the_document(torch):
    """The program of the document, w = 1 and x = 2, run as a static graph: 6, with the gradients 5 and 2."""
    w = torch.tensor([1.0], requires_grad=True)
    x = torch.tensor([2.0], requires_grad=True)

    @torch.compile(fullgraph=True)
    def graph():
        w.grad = x.grad = None
        a = torch.add(w, x)
        b = torch.add(w, 1)
        y = torch.mul(a, b)
        y.backward()
        return y.detach()

    for _ in range(5):
        y = graph()
        assert (y.item(), w.grad.item(), x.grad.item()) == (6.0, 5.0, 2.0)
    assert graph._compiled_state.road == "replay"


def test_a_gradient_that_is_reached_in_two_ways(torch):
    w, g = torch.ones(2, requires_grad=True), torch.ones(2)
    w.grad = g
    f = torch.compile(lambda: w.grad + g)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            f()
    w.grad = torch.zeros(2)
    assert f().tolist() == [1.0, 1.0]


def test_a_module_compiles_in_place(torch):
    import copy

    model = mlp(torch)
    x = torch.randn(2, 8)
    model.compile(fullgraph=True)
    with torch.no_grad():
        for _ in range(5):
            out = model(x)
        assert model.forward._compiled_state.road == "replay"
        other = copy.deepcopy(model)
        other[0].weight.zero_()
        assert torch.equal(model(x), out) and not torch.equal(other(x), out)
    assert list(model.state_dict()) == list(other.state_dict())


def test_threads_share_a_plan(torch):
    from threading import Thread

    w = torch.randn(64, 64)
    f = torch.compile(lambda x: (x @ w).tanh() @ w)
    inputs = [torch.randn(64, 64) for _ in range(4)]
    expected = [(x @ w).tanh() @ w for x in inputs]
    for _ in range(4):
        f(inputs[0])
    wrong = []

    def run(i):
        for _ in range(50):
            if not torch.equal(f(inputs[i]), expected[i]):
                wrong.append(i)

    threads = [Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert wrong == [] and f._compiled_state.road == "replay"


def test_verify_runs_both(torch, monkeypatch):
    monkeypatch.setenv("RUSTGRAD_COMPILE", "verify")
    model = mlp(torch, dropout=0.5, norm=True)
    optimizer = torch.optim.Adam(model.parameters())

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(6):
        step(torch.randn(4, 8))
    assert step._compiled_state.road == "replay" and step._compiled_state.plans[0].hits == 3


def test_a_long_plan_lets_other_threads_change_tensors(torch):
    from threading import Thread

    w = torch.randn(256, 256)
    f = torch.compile(lambda x: x @ w @ w @ w)
    x = torch.randn(256, 256)
    for _ in range(6):
        f(x)
    done = []

    def change():
        for _ in range(200):
            w.data = torch.randn(256, 256)
        done.append(1)

    thread = Thread(target=change, daemon=True)
    thread.start()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(50):
            f(x)
    thread.join(60)
    assert done == [1]
