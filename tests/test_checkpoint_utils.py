"""`utils.checkpoint`: parts of a model that are recomputed in backward."""

import contextlib
import functools
import importlib

import pytest
from support import target


@pytest.fixture
def module(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


def block(torch, calls=None):
    inner, outer = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def run(x, scale=1.0):
        if calls is not None:
            calls.append(torch.is_grad_enabled())
        return outer(torch.tanh(inner(x)) * scale)

    return run, [*inner.parameters(), *outer.parameters()]


def test_gradients_are_the_same(torch, module, device):
    calls = []
    run, params = block(torch, calls)
    with torch.no_grad():
        for p in params:
            p.data = p.to(device)
    x = torch.arange(6.0, device=device).reshape(2, 3).requires_grad_()
    want = torch.autograd.grad(run(x, scale=0.5).square().sum(), [x, *params])
    calls.clear()
    out = module.checkpoint(run, x, use_reentrant=False, scale=0.5)
    assert calls == [True]
    got = torch.autograd.grad(out.square().sum(), [x, *params])
    assert calls == [True, True] and all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))


@pytest.mark.filterwarnings("ignore:torch.utils.checkpoint")
@pytest.mark.parametrize("reentrant", [True, False, None])
def test_ways_to_call(torch, module, reentrant):
    calls = []
    run, params = block(torch, calls)
    x = torch.ones(2, 3, requires_grad=True)
    out = module.checkpoint(run, x, use_reentrant=reentrant)
    out.sum().backward()
    assert x.grad.shape == (2, 3) and all(p.grad is not None for p in params) and len(calls) == 2
    with torch.no_grad():
        assert not module.checkpoint(run, x, use_reentrant=False).requires_grad and len(calls) == 3


def test_memory_is_given_up(torch, module):
    saved = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.shape) or t, lambda t: t)
    run, _ = block(torch)
    x = torch.ones(2, 3, requires_grad=True)
    with hooks:
        plain = run(x)
        kept = len(saved)
        out = module.checkpoint(run, x, use_reentrant=False)
    assert kept > 1 and len(saved) <= kept + 1 and plain.equal(out)


def test_several_passes_and_orders(torch, module):
    def cube(x):
        return (x * x) * x

    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = module.checkpoint(cube, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [24.0, 54.0]
    y = module.checkpoint(cube, x, use_reentrant=False).sum()
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 18.0]


def test_nested(torch, module):
    counts = {"outer": 0, "inner": 0}

    def inner(x):
        counts["inner"] += 1
        return x.exp().sin()

    def outer(x):
        counts["outer"] += 1
        return module.checkpoint(inner, x.cos(), use_reentrant=False) * x

    x = torch.tensor([0.3, 0.7], requires_grad=True)
    (want,) = torch.autograd.grad((x.cos().exp().sin() * x).sum(), x)
    (got,) = torch.autograd.grad(module.checkpoint(outer, x, use_reentrant=False).sum(), x)
    assert torch.allclose(got, want) and counts["outer"] == 2 and counts["inner"] >= 3


def test_random_numbers_repeat(torch, module):
    x = torch.ones(1000, requires_grad=True)
    out = module.checkpoint(torch.nn.functional.dropout, x, 0.5, use_reentrant=False)
    torch.rand(3)
    state = torch.get_rng_state()
    out.sum().backward()
    assert x.grad.equal(out.detach()) and torch.get_rng_state().equal(state)


def test_contexts_and_early_stop(torch, module):
    entered = []

    @contextlib.contextmanager
    def note(name):
        entered.append(name)
        yield
        entered.append(name + " left")

    finished = []

    def run(x):
        y = x.exp()
        finished.append(len(entered))
        return y

    x = torch.ones(2, requires_grad=True)
    contexts = {"use_reentrant": False, "context_fn": lambda: (note("first"), note("again"))}
    module.checkpoint(run, x, **contexts, early_stop=False).sum().backward()
    assert entered == ["first", "first left", "again", "again left"] and len(finished) == 2
    module.checkpoint(run, x, use_reentrant=False).sum().backward()
    assert len(finished) == 3
    with module.set_checkpoint_early_stop(False):
        out = module.checkpoint(run, x, use_reentrant=False)
    out.sum().backward()
    assert len(finished) == 5


def test_decorator(torch, module):
    if target.STAND_IN and "function=None" not in importlib.import_module("inspect").getsource(module.checkpoint):
        pytest.skip("this PyTorch has no decorator")

    @module.checkpoint(use_reentrant=False)
    def double(x):
        "Twice."
        return x * 2

    x = torch.ones(2, requires_grad=True)
    double(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and double.__doc__ == "Twice."


@pytest.mark.filterwarnings("ignore:torch.utils.checkpoint")
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(torch, module, segments):
    layers = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(5)), torch.nn.Tanh())
    x = torch.ones(1, 2, requires_grad=True)
    want = torch.autograd.grad(layers(x).sum(), [x, *layers.parameters()])
    out = module.checkpoint_sequential(layers, segments, x, use_reentrant=False)
    got = torch.autograd.grad(out.sum(), [x, *layers.parameters()])
    assert all(torch.allclose(a, b) for a, b in zip(got, want, strict=True))
    module.checkpoint_sequential(list(layers), segments, x).sum().backward()
    assert torch.allclose(x.grad, want[0])


def test_refused(torch, module):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        module.checkpoint(torch.exp, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        module.checkpoint(torch.exp, x, use_reentrant=True, scale=2)
    changing = []

    def other(x):
        changing.append(1)
        return x.exp().sin() if len(changing) == 1 else x.exp()

    with pytest.raises(module.CheckpointError, match="A different number of tensors was saved"):
        module.checkpoint(other, x, use_reentrant=False).sum().backward()
    sizes = []

    def growing(x):
        sizes.append(1)
        return x.repeat(len(sizes)).exp().sum()

    with pytest.raises(module.CheckpointError, match="have different metadata than during the forward pass"):
        module.checkpoint(growing, x, use_reentrant=False).backward()
    kept = torch.ones(2)
    out = module.checkpoint(lambda a, b: a * b, x, kept, use_reentrant=False)
    kept.add_(1)
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        out.sum().backward()


def test_the_reentrant_variant_is_a_function_of_its_own(torch, module):
    modes = []

    def run(x, scale, flag):
        modes.append((torch.is_grad_enabled(), scale, flag))
        return (x * x).sin() * scale, x.cos()

    x, w = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    first, second = module.checkpoint(run, x, w, "flag", use_reentrant=True)
    assert modes == [(False, w, "flag")] and first.grad_fn.name() == "CheckpointFunctionBackward"
    (first.sum() + 2 * second.sum()).backward()
    assert modes[1][0] and modes[1][1] is not w and modes[1][1].equal(w)
    want = torch.autograd.grad([t.sum() for t in (lambda a, b: (a, 2 * b))(*run(x, w, ""))], [x, w])
    assert torch.allclose(x.grad, want[0]) and torch.allclose(w.grad, want[1])
    first, _ = module.checkpoint(run, x, w, 3, use_reentrant=True)
    with pytest.raises(
        RuntimeError, match=r"When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad\(\)"
    ):
        torch.autograd.grad(first.sum(), x)
    first, _ = module.checkpoint(run, x, w, 3, use_reentrant=True)
    with pytest.raises(RuntimeError, match="passing an `inputs` parameter to .backward"):
        first.sum().backward(inputs=[x])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        assert not module.checkpoint(torch.exp, torch.ones(2), use_reentrant=True).requires_grad
    out = module.checkpoint(lambda t: t.detach(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint"):
        out.sum().backward()


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
def test_reentrant_parts_nest_and_repeat_random_numbers(torch, module):
    def inner(x):
        return torch.nn.functional.dropout(x.exp(), 0.5)

    def outer(x):
        return module.checkpoint(inner, x.sin(), use_reentrant=True) * x

    torch.manual_seed(3)
    x = torch.full((100,), 0.3, requires_grad=True)
    out = module.checkpoint(outer, x, use_reentrant=True)
    state = torch.get_rng_state()
    out.sum().backward()
    assert torch.get_rng_state().equal(state)
    plain = x.detach().requires_grad_()
    torch.manual_seed(3)
    (inner(plain.sin()) * plain).sum().backward()
    assert torch.allclose(x.grad, plain.grad)


@pytest.mark.parametrize("reentrant", [True, False])
def test_autocast_is_as_it_was(torch, module, reentrant):
    seen = []

    def run(x):
        y = x @ x
        seen.append((y.dtype, torch.is_autocast_cache_enabled()))
        return y.float().exp()

    x = torch.ones(2, 2, requires_grad=True)
    with torch.autocast("cpu", cache_enabled=False):
        out = module.checkpoint(run, x, use_reentrant=reentrant)
    out.sum().backward()
    assert seen == [(torch.bfloat16, False)] * 2 and not torch.is_autocast_enabled("cpu")
    seen.clear()
    out = module.checkpoint(run, x, use_reentrant=reentrant)
    with torch.autocast("cpu"):
        out.sum().backward()
    assert seen == [(torch.float32, True)] * 2


def test_debugged_errors_list_the_ops(torch, module):
    x, calls = torch.ones(2, requires_grad=True), []

    def other(x):
        calls.append(1)
        return x.exp().sin() if len(calls) % 2 else x.exp()

    def failed(**options):
        with pytest.raises(module.CheckpointError) as caught:
            module.checkpoint(other, x, use_reentrant=False, **options).sum().backward()
        return str(caught.value)

    assert "Tip: To see a more detailed error message, either pass `debug=True`" in failed()
    text = failed(debug=True)
    assert "because you passed `debug=True`" in text
    assert "in original)" in text and "in recompute)" in text and text.count("exp") >= 2 and "sin" in text
    with module.set_checkpoint_debug_enabled(True):
        assert "in original)" in failed()
    with module.set_checkpoint_debug_enabled(False):
        assert "in original)" not in failed(debug=True)
    with pytest.raises(ValueError, match="is only supported when use_reentrant=False"):
        module.checkpoint(other, x, use_reentrant=True, debug=True)
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        module.checkpoint(other, x, use_reentrant=False, debug=True, context_fn=lambda: (None, None))
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        module.checkpoint(other, x, use_reentrant=False, determinism_check="some")


def test_a_check_that_is_off(torch, module):
    sizes = []

    def growing(x):
        sizes.append(1)
        return x.to(torch.float64 if len(sizes) > 1 else torch.float32).exp()

    x = torch.ones(2, requires_grad=True)
    module.checkpoint(growing, x, use_reentrant=False, determinism_check="none").sum().backward()
    assert torch.allclose(x.grad, torch.ones(2).exp())


def test_a_backward_inside(torch, module):
    def run(x):
        y = x.exp()
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return (g * y).sin()

    x = torch.full((2,), 0.5, requires_grad=True)
    (want,) = torch.autograd.grad(run(x).sum(), x)
    (got,) = torch.autograd.grad(module.checkpoint(run, x, use_reentrant=False).sum(), x)
    assert torch.allclose(got, want)


def test_policies_have_their_names(torch, module):
    assert [p.name for p in module.CheckpointPolicy][:3] == ["MUST_SAVE", "PREFER_SAVE", "MUST_RECOMPUTE"]
    context = module.SelectiveCheckpointContext(is_recompute=False, op_output=3)
    assert not context.is_recompute and context.op_output == 3
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        module.create_selective_checkpoint_contexts(3)
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        module.detach_variable([torch.ones(1)])
    assert module.get_device_states(torch.ones(1), 3) == ([], [])


def test_outputs_that_need_no_gradient_when_recomputed(torch, module):
    a, b = torch.ones(1), torch.ones(1, requires_grad=True)
    result = module.checkpoint(lambda a, b: a, a, b, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        result.sum().backward()


def test_a_saved_tensor_without_a_gradient_is_itself(torch, module):
    seen = []

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(factor)
            return x * factor

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            return g * seen[0], None

    x, factor = torch.ones(2, requires_grad=True), torch.full((2,), 3.0)
    module.checkpoint(Scale.apply, x, factor, use_reentrant=False).sum().backward()
    assert seen[0] is factor and x.grad.tolist() == [3, 3]


class Selective:
    """A part with products, attention and random numbers, and what it costs."""

    def __init__(self, torch, module):
        from importlib import import_module

        self.torch, self.module = torch, module
        self.counter = import_module(f"{torch.__name__}.utils.flop_counter").FlopCounterMode
        torch.manual_seed(0)
        self.weights = [torch.randn(8, 8, requires_grad=True) for _ in range(4)]
        self.x = torch.randn(8, 8, requires_grad=True)

    def __call__(self, x):
        F, w = self.torch.nn.functional, self.weights
        hidden = F.linear(self.torch.tanh(x @ w[0]), w[1])[None]
        hidden = F.scaled_dot_product_attention(hidden, hidden, hidden)[0]
        hidden = F.dropout(F.relu(hidden) @ w[2], 0.5)
        return F.softmax(F.dropout(hidden.exp().cos(), 0.5) @ w[3], -1)

    def run(self, policy=None, **options):
        """The gradients, and the operations of products until the end of backward."""
        torch = self.torch
        torch.manual_seed(1)
        with self.counter(display=False) as counter:
            if policy is None:
                out = self(self.x)
            else:
                make = functools.partial(self.module.create_selective_checkpoint_contexts, policy, **options)
                out = self.module.checkpoint(self, self.x, use_reentrant=False, context_fn=make)
            grads = torch.autograd.grad((out * torch.arange(8.0)).sum(), [self.x, *self.weights])
            return grads, counter.get_total_flops()


def test_results_that_a_policy_keeps_are_not_computed_again(torch, module):
    part, aten, policies = Selective(torch, module), torch.ops.aten, module.CheckpointPolicy
    want, plain = part.run()
    asked = []

    def products(context, op, *args, **kwargs):
        asked.append((context.is_recompute, op))
        return policies.MUST_SAVE if op is aten.mm.default else policies.PREFER_RECOMPUTE

    attention = aten._scaled_dot_product_flash_attention_for_cpu.default
    costs = {}
    for name, policy in {
        "nothing": lambda *args, **kwargs: policies.MUST_RECOMPUTE,
        "products": products,
        "list": [aten.mm.default, aten.tanh.default, attention],
        "bool": lambda context, op, *args, **kwargs: "dropout" in str(op),
        # PyTorch's dropout changes its mask, which it would keep.
        **({} if target.STAND_IN else {"everything": lambda *args, **kwargs: True}),
    }.items():
        grads, costs[name] = part.run(policy)
        assert all(map(torch.equal, grads, want)), name
    product = 2 * 8**3
    assert costs["nothing"] == costs["bool"] == costs["products"] + 4 * product == costs["list"] + 6 * product
    assert costs["list"] == plain == costs.get("everything", plain)
    assert asked.count((False, aten.mm.default)) == 4
    assert not any(again for again, _ in asked)


def test_a_policy_decides_once_for_each_call(torch, module):
    answers, calls = iter([False, True, False]), []

    def part(x):
        return x.sin().sin().sin()

    def policy(context, op, *args, **kwargs):
        calls.append(context.is_recompute)
        return next(answers)

    x = torch.randn(3, requires_grad=True)
    (want,) = torch.autograd.grad(part(x).sum(), x)
    make = functools.partial(module.create_selective_checkpoint_contexts, policy)
    out = module.checkpoint(part, x, use_reentrant=False, context_fn=make)
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], want)
    assert calls == [False] * 3
    # What is recomputed entirely serves backward again and again.
    make = functools.partial(module.create_selective_checkpoint_contexts, lambda *args, **kwargs: False)
    out = module.checkpoint(part, x, use_reentrant=False, context_fn=make)
    for _ in range(2):
        assert torch.equal(torch.autograd.grad(out.sum(), x, retain_graph=True)[0], want)


def test_results_that_are_kept_serve_one_backward_and_may_not_change(torch, module):
    def part(x):
        y = x.exp()
        z = y.sin()
        y.mul_(2) if changes else None
        return z.sin()

    def out(**options):
        make = functools.partial(module.create_selective_checkpoint_contexts, [torch.ops.aten.exp.default], **options)
        return module.checkpoint(part, x, use_reentrant=False, context_fn=make)

    x, changes = torch.randn(3, requires_grad=True), False
    result = out()
    torch.autograd.grad(result.sum(), x, retain_graph=True)
    with pytest.raises(RuntimeError, match="backward an extra time"):
        torch.autograd.grad(result.sum(), x)
    changes = True
    with pytest.raises(RuntimeError, match="has been mutated"):
        out().sum().backward()
    with pytest.raises(ValueError, match="to be an OpOverload but got"):
        module.create_selective_checkpoint_contexts([torch.ops.aten.mm])


def test_kept_results_that_are_several_or_views(torch, module):
    def part(x):
        variance, mean = torch.var_mean(x, dim=1)
        return (x.t()[0] * variance + mean).view(-1).sin()

    x = torch.randn(3, 3, requires_grad=True)
    (want,) = torch.autograd.grad(part(x).sum(), x)
    make = functools.partial(module.create_selective_checkpoint_contexts, lambda *args, **kwargs: True)
    out = module.checkpoint(part, x, use_reentrant=False, context_fn=make)
    assert torch.equal(torch.autograd.grad(out.sum(), x)[0], want)
