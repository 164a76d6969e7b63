"""`rustgrad.compile`: a compiled function shows what the function shows, call by call, whichever road it takes.

Each test runs a program twice from one seed, plain and compiled, and compares bits of results, gradients and state,
versions and the random stream after every call; then it says which road the calls have taken.
"""

import warnings

import pytest


@pytest.fixture(autouse=True)
def nothing_is_compiled(torch):
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def steps(torch, f, *args, options=None):
    """What runs in place of a call, after the fourth."""
    fast = torch.compile(f, options=options)
    for _ in range(4):
        fast(*args)
    told = torch.compiler.explain(fast, *args)
    assert told.road == "replay", told
    return told.steps[0]


def bits(torch, value):
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous().reshape(-1)
        return (
            value.dtype,
            tuple(value.shape),
            value.stride(),
            value.requires_grad,
            bytes(flat.view(torch.uint8).tolist()),
        )
    if isinstance(value, (tuple, list)):
        return type(value), [bits(torch, v) for v in value]
    if isinstance(value, dict):
        return {k: bits(torch, v) for k, v in value.items()}
    return type(value), repr(value)


def trail(torch, make, calls, compiled):
    """What `calls` calls show: `make()` returns the function, the arguments of call i, and the tensors to look at.

    `compiled` may be the options of `compile`.
    """
    torch.manual_seed(7)
    f, arguments, tensors = make()
    g = torch.compile(f, options=compiled if isinstance(compiled, dict) else None) if compiled else f
    seen, roads = [], []
    for i in range(calls):
        args = arguments(i)
        try:
            result = bits(torch, g(*args))
        except Exception as error:
            result = (type(error), str(error))
        looked = tensors()
        seen.append(
            (
                result,
                bits(torch, [t for t in looked]),
                [t._version for t in looked],
                [None if t.grad is None else bits(torch, t.grad) for t in looked if t.is_leaf],
                [bits(torch, a) for a in args],
                bytes(torch.get_rng_state().tolist()),
            )
        )
        if compiled:
            roads.append(g._compiled_state.road)
    return seen, roads


def alike(torch, make, calls=6, road="replay"):
    """Runs both; the last call must have taken `road`."""
    plain, _ = trail(torch, make, calls, False)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ours, roads = trail(torch, make, calls, True)
    for i, (a, b) in enumerate(zip(plain, ours, strict=True)):
        assert a == b, f"call {i} differs, by the road {roads[i]}"
    assert roads[-1] == road, (roads, [str(w.message) for w in told])
    return roads


def mlp(torch, dropout=0.0, norm=False):
    nn = torch.nn
    layers = [nn.Linear(8, 16), nn.ReLU()]
    if norm:
        layers.append(nn.BatchNorm1d(16))
    if dropout:
        layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(16, 4))


OPTIMIZERS = {
    "sgd": lambda o, p: o.SGD(p, lr=0.1),
    "momentum": lambda o, p: o.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda o, p: o.Adam(p, lr=0.01),
    "adamw": lambda o, p: o.AdamW(p, lr=0.01),
    "adagrad": lambda o, p: o.Adagrad(p, lr=0.01),
    "rmsprop": lambda o, p: o.RMSprop(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("first", [True, False])
def test_a_training_step_replays(torch, name, first):
    def make():
        model = mlp(torch)
        optimizer = OPTIMIZERS[name](torch.optim, model.parameters())
        F = torch.nn.functional

        def step(x, y):
            if first:
                optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            if not first:
                optimizer.zero_grad()
            return loss.detach()

        data = [(torch.randn(5, 8), torch.randint(0, 4, (5,))) for _ in range(6)]
        state = lambda: [*model.parameters(), *(v for s in optimizer.state.values() for v in s.values())]  # noqa: E731
        return step, lambda i: data[i], state

    alike(torch, make)


def test_the_running_statistics_and_the_random_stream(torch):
    def make():
        model = mlp(torch, dropout=0.5, norm=True)
        optimizer = torch.optim.Adam(model.parameters())

        def step(x, y):
            optimizer.zero_grad(set_to_none=False)
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        data = [(torch.randn(5, 8), torch.randn(5, 4)) for _ in range(6)]
        return step, lambda i: data[i], lambda: [*model.parameters(), *model.buffers()]

    alike(torch, make)


def test_gradients_accumulate(torch):
    def make():
        w = torch.ones(3, requires_grad=True)

        def step(x):
            (w * x).sum().backward()

        return step, lambda i: (torch.full((3,), float(i)),), lambda: [w]

    alike(torch, make)


def test_the_returned_loss_has_a_graph_that_has_run(torch):
    w = torch.ones(3, requires_grad=True)

    @torch.compile
    def step(x):
        w.grad = None
        loss = (w * x).exp().sum()
        loss.backward()
        return loss

    for i in range(5):
        loss = step(torch.full((3,), float(i)))
    assert step._compiled_state.road == "replay"
    assert type(loss.grad_fn).__name__ == "SumBackward0" and loss.requires_grad
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    assert w.grad.tolist() == pytest.approx([4 * 2.718281828**4] * 3, rel=1e-5)


def test_the_learning_rate_may_change_without_another_plan(torch):
    def make():
        model = mlp(torch)
        optimizer = torch.optim.SGD(
            [{"params": model[0].parameters(), "lr": 0.2}, {"params": model[2].parameters()}], lr=0.1
        )
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7)

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        def arguments(i):
            if i:
                schedule.step()
            return (torch.randn(5, 8),)

        return step, arguments, lambda: list(model.parameters())

    roads = alike(torch, make, 10)
    assert roads[3:] == ["replay"] * 7


def test_two_optimizers_keep_their_learning_rates(torch):
    def make():
        a, b = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        one, two = torch.optim.SGD([a], lr=0.1), torch.optim.SGD([b], lr=0.1)

        def step(x):
            one.zero_grad()
            two.zero_grad()
            loss = (a * b * x).sum()
            loss.backward()
            two.step()
            one.step()
            return loss

        def arguments(i):
            if i > 3:
                one.param_groups[0]["lr"] = 0.5
            return (torch.full((3,), 1.0 + i),)

        return step, arguments, lambda: [a, b]

    alike(torch, make, 7)


# --- hazards, by what changes between the calls ------------------------------------------------


def test_other_shapes_dtypes_and_strides_get_plans_of_their_own(torch):
    f = torch.compile(lambda x: (x * 2 + 1).tanh())
    forms = [
        torch.randn(3),
        torch.randn(4),
        torch.randn(3, dtype=torch.float64),
        torch.randn(3, 4),
        torch.randn(4, 3).t(),
    ]
    for _ in range(3):
        for x in forms:
            f(x)
    for x in forms:
        assert bits(torch, f(x)) == bits(torch, (x * 2 + 1).tanh())
        assert f._compiled_state.road == "replay"
    assert len(f._compiled_state.plans) == len(forms)


def test_numbers_and_strings_are_compared_by_value(torch):
    def make():
        def f(x, a, how):
            return x * a if how == "times" else x + a

        cases = [(2, "times"), (2.0, "times"), (True, "times"), (0.0, "plus"), (-0.0, "plus")]
        return f, lambda i: (torch.full((3,), -0.0), *cases[i % 5]), list

    roads = alike(torch, make, 25)
    assert roads[15:] == ["replay"] * 10


def test_a_global_and_a_cell_that_change(torch):
    space = {"torch": torch, "scale": 2.0, "__name__": "user"}
    exec("def f(x):\n    return x * scale", space)
    f = torch.compile(space["f"])
    x = torch.ones(2)
    for _ in range(5):
        f(x)
    assert f._compiled_state.road == "replay"
    space["scale"] = 3.0
    assert f(x).tolist() == [3.0, 3.0]
    factor = 2.0

    def g(x):
        return x * factor

    g = torch.compile(g)
    for _ in range(5):
        g(x)
    assert g._compiled_state.road == "replay"
    factor = 5.0
    assert g(x).tolist() == [5.0, 5.0]


def test_a_list_a_dict_and_an_object_that_change(torch):
    class Config:
        shared = 1.0

        def __init__(self):
            self.scale = 2.0
            self.shifts = [1.0, 2.0]
            self.table = {"power": 2}

    config = Config()

    def f(x):
        return (x * config.scale + sum(config.shifts)) ** config.table["power"] * config.shared

    g = torch.compile(f)
    x = torch.ones(2)
    changes = [
        lambda: setattr(config, "scale", 3.0),
        lambda: config.shifts.append(4.0),
        lambda: config.table.update(power=3),
        lambda: setattr(Config, "shared", 2.0),
        lambda: setattr(config, "shared", 5.0),
    ]
    for change in [lambda: None, *changes]:
        for _ in range(4):
            g(x)
        assert g._compiled_state.road == "replay"
        change()
        assert g(x).tolist() == f(x).tolist()


def test_a_module_that_changes(torch):
    model = mlp(torch, dropout=0.5)
    compiled = torch.compile(lambda x: model(x))
    x = torch.randn(2, 8)

    def settle():
        for _ in range(5):
            compiled(x)
        return compiled._compiled_state.road

    with torch.no_grad():
        assert settle() == "replay"
        model.eval()
        assert compiled(x).tolist() == model(x).tolist()
        assert settle() == "replay"
        model[0] = torch.nn.Linear(8, 16)
        assert compiled(x).tolist() == model(x).tolist()
        settle()
        model[0].weight = torch.nn.Parameter(torch.ones(16, 8))
        assert compiled(x).tolist() == model(x).tolist()
        settle()
        model[0].weight.data = torch.zeros(16, 8)
        assert compiled(x).tolist() == model(x).tolist()
        settle()
        model[0].weight.mul_(0).add_(1)
        assert compiled._compiled_state.road == "replay"
        assert compiled(x).tolist() == model(x).tolist()
        model[0].register_forward_hook(lambda m, a, out: out * 0)
        assert compiled(x).tolist() == model(x).tolist()
        model[0].forward = lambda x: torch.ones(2, 16)
        assert compiled(x).tolist() == model(x).tolist()


def test_a_method_that_is_replaced(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return self.scaled(x)

        def scaled(self, x):
            return x * self.w

    net = Net()
    f = torch.compile(net)
    x = torch.ones(2)
    with torch.no_grad():
        for _ in range(5):
            f(x)
        assert f._compiled_state.road == "replay"
        Net.scaled = lambda self, x: x * 7
        assert f(x).tolist() == [7.0, 7.0]


def test_the_same_tensor_twice_and_shared_memory(torch):
    def make():
        def f(a, b):
            a.add_(1)
            return a * b

        def arguments(i):
            a = torch.arange(4.0)
            return [(a, torch.ones(4)), (a, a), (a[:3], a[1:]), (a, a.view(4))][i % 4]

        return f, arguments, list

    alike(torch, make, 16)


def test_modes_are_guards(torch):
    w = torch.ones(2, requires_grad=True)
    f = torch.compile(lambda x: x * w)
    x = torch.ones(2)
    with torch.no_grad():
        for _ in range(5):
            f(x)
        assert f._compiled_state.road == "replay"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert f(x).requires_grad
    with torch.inference_mode():
        assert f(x).is_inference()
    with torch.no_grad():
        assert not f(x).requires_grad
        assert f._compiled_state.road == "replay"
        g = torch.compile(lambda n: torch.ones(n))
        for _ in range(5):
            g(2)
        torch.set_default_dtype(torch.float64)
        assert g(2).dtype == torch.float64


def test_random_numbers_continue_the_stream(torch):
    def make():
        def f(x):
            return torch.nn.functional.dropout(x) + torch.randn(3) + torch.rand(3)

        def arguments(i):
            if i == 4:
                torch.manual_seed(3)
            return (torch.ones(3),)

        return f, arguments, list

    alike(torch, make)


def test_results_are_new_and_aliases_stay_aliases(torch):
    f = torch.compile(lambda x, y: (x, x.t(), y + 1, [y]))
    x, y = torch.randn(2, 3), torch.ones(2)
    kept = [f(x, y) for _ in range(6)]
    assert f._compiled_state.road == "replay"
    assert all(out[0] is x and out[3][0] is y for out in kept)
    assert all(out[1]._base is x and out[1].data_ptr() == x.data_ptr() for out in kept)
    assert len({out[2].data_ptr() for out in kept}) == 6


def test_writes_to_arguments_and_tensors_from_outside(torch):
    def make():
        mean, count = torch.zeros(3), torch.zeros((), dtype=torch.int64)

        def f(x):
            mean.mul_(0.9).add_(x, alpha=0.1)
            count.add_(1)
            x[0] = 5.0
            x.view(3, 1).mul_(2)
            return mean.clone()

        return f, lambda i: (torch.randn(3),), lambda: [mean, count]

    alike(torch, make)


def test_errors_come_with_what_was_written_before(torch):
    def make():
        count = torch.zeros(())
        table = torch.randn(4, 2)

        def f(i):
            count.add_(1)
            return torch.nn.functional.embedding(i, table)

        cases = [torch.tensor([0, 1])] * 5 + [torch.tensor([9, 1])]
        return f, lambda i: (cases[i],), lambda: [count]

    alike(torch, make)


# --- what runs as it is ------------------------------------------------------------------------


def stays_eager(torch, f, *args, match):
    g = torch.compile(f)
    with pytest.warns(UserWarning, match=match):
        for _ in range(4):
            g(*args)
    assert g._compiled_state.road == "eager"
    with pytest.raises(torch.compiler.Unsupported, match=match):
        h = torch.compile(f, fullgraph=True)
        for _ in range(4):
            h(*args)


def test_what_cannot_be_skipped_is_not_skipped(torch):
    import random
    import time

    x = torch.ones(2)
    kept, name = [], "ndim"

    class Counter:
        def __init__(self):
            self.n = 0

        def step(self, x):
            self.n += 1
            return x * self.n

    def prints(x):
        print(x.shape)
        return x

    def stores(x):
        kept.append(x * 2)
        return x

    def generates(x):
        return next(y for y in [x])

    stays_eager(torch, prints, x, match=r"test_compile.py:\d+ \(prints\) uses print")
    stays_eager(torch, Counter().step, x, match="stores to the attribute 'n'")
    stays_eager(torch, stores, x, match="changes an object|kept by something")
    stays_eager(
        torch, lambda x: x * random.random(), x, match="random.random is an object of type builtins.builtin_function"
    )
    stays_eager(torch, lambda x: x * time.time(), x, match="time.time is an object of type builtins.builtin_function")
    stays_eager(torch, lambda x: x if x.sum().item() > 0 else -x, x, match="reads the values")
    stays_eager(torch, lambda x: x if x.sum() > 0 else -x, x, match="reads the values")
    stays_eager(torch, lambda x: x.nonzero(), x, match="depends on values")
    stays_eager(torch, lambda x: x + torch.tensor([1.0, 2.0]), x, match="tensor")
    stays_eager(torch, lambda x: x * getattr(x, name), x, match=r"uses getattr\(\)")
    stays_eager(torch, lambda x: x * id(x), x, match=r"uses id\(\)")


def test_hooks_run(torch):
    w = torch.ones(2, requires_grad=True)
    seen = []

    def step(x):
        w.grad = None
        (w * x).sum().backward()

    g = torch.compile(step)
    for _ in range(5):
        g(torch.ones(2))
    assert g._compiled_state.road == "replay"
    handle = w.register_hook(lambda grad: seen.append(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        g(torch.ones(2))
    assert seen == [1]
    handle.remove()


def test_a_live_graph_is_that_of_the_call(torch):
    model = mlp(torch)
    compiled = torch.compile(model)
    x = torch.randn(3, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            compiled(x).sum().backward()
    grad = model[0].weight.grad.clone()
    model.zero_grad()
    for _ in range(5):
        model(x).sum().backward()
    assert torch.equal(grad, model[0].weight.grad)
