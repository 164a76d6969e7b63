"""Each guard is needed, numbers of optimizers are read anew, and resources stay bounded."""

import functools
import os
import threading
import types
import warnings

import pytest
from support import target
from test_compile import alike, bits, trail

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


@pytest.fixture(autouse=True)
def nothing_is_compiled(torch):
    torch.compiler.reset()
    yield
    torch._C._compile_leave_out([])
    torch.compiler.reset()


OPTIONS = {
    "Adam": ({"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.2}),
    "AdamW": ({"lr": 0.1}, {"betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.5}),
    "SGD": ({"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.1}, {"momentum": 0.5, "weight_decay": 0.3, "dampening": 0.2}),
    "Adagrad": ({"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}, {"lr_decay": 0.2, "weight_decay": 0.3, "eps": 1e-3}),
    "RMSprop": ({"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}, {"lr": 0.05, "alpha": 0.9, "momentum": 0.5, "eps": 1e-3, "weight_decay": 0.3}),
    "Adadelta": ({"lr": 0.1, "weight_decay": 0.1}, {"rho": 0.5, "eps": 1e-3, "weight_decay": 0.3}),
    "Adamax": ({"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.3}),
    "NAdam": ({"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "momentum_decay": 0.01}),
    "RAdam": ({"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.05, "betas": (0.8, 0.95), "eps": 1e-3, "weight_decay": 0.3}),
    "ASGD": ({"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.05, "lambd": 0.1, "alpha": 0.5, "t0": 3.0, "weight_decay": 0.3}),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_optimizers_are_read_anew(torch, name):
    first, later = OPTIONS[name]

    def make():
        w, v = torch.ones(3, requires_grad=True), torch.ones(2, requires_grad=True)
        groups = [{"params": [w]}, {"params": [v], **{k: x for k, x in first.items() if k != "lr"}}]
        optimizer = getattr(torch.optim, name)(groups, **first)

        def step(x):
            optimizer.zero_grad()
            ((w * x).sum() ** 2 + (v * v).sum()).backward()
            optimizer.step()

        def arguments(i):
            if i >= 5:
                key = list(later)[(i - 5) % len(later)]
                optimizer.param_groups[i % 2][key] = later[key]
            return (torch.arange(3.0),)

        return step, arguments, lambda: [w, v]

    roads = alike(torch, make, 12)
    assert roads[3:] == ["replay"] * 9, "no option makes a new plan"


def test_an_option_that_becomes_zero_makes_another_plan(torch):
    def make():
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        def arguments(i):
            optimizer.param_groups[0]["momentum"] = 0.9 if i < 6 else 0.0
            return (torch.arange(3.0),)

        return step, arguments, lambda: [w]

    roads = alike(torch, make, 10)
    assert roads[5] == "replay" and roads[6] == "watched" and roads[9] == "replay"


def test_a_cycle_of_rate_and_momentum_is_one_plan(torch):
    def make():
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.Adam([w], lr=1e-3)
        scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=30)

        def step(x):
            optimizer.zero_grad()
            (w * x).sum().backward()
            optimizer.step()

        def arguments(i):
            if i:
                scheduler.step()
            return (torch.arange(3.0),)

        return step, arguments, lambda: [w]

    assert alike(torch, make, 25)[3:] == ["replay"] * 22


def offsets(torch):
    """`.data` of arguments that are other parts of one tensor in each call."""
    base = torch.arange(12.0)
    parts = [(0, 0), (0, 0), (0, 0), (0, 0), (4, 4), (6, 2), (2, 6)]

    def f(x, y):
        return x.data + 1, y.data * 2, x.detach() - y.detach()

    def arguments(i):
        a, b = parts[i % len(parts)]
        return base[a : a + 2], base[b : b + 2]

    return f, arguments, lambda: [base]


def test_parts_of_one_tensor_at_other_places(torch):
    make = functools.partial(offsets, torch)
    plain, _ = trail(torch, make, 20, False)
    ours, roads = trail(torch, make, 20, True)
    assert ours == plain and roads[3] == "replay", roads


# --- every kind of guard ---------------------------------------------------------------------------
def _modes(torch):
    w = torch.ones(2, requires_grad=True)

    def arguments(i):
        torch.set_grad_enabled(i < 5)
        return (torch.ones(2),)

    return (lambda x: x * w), arguments, list


def _values(torch):
    return (lambda x, k: x * (2 if k else 3)), (lambda i: (torch.ones(2), i < 5)), list


def _numbers(torch):
    return (lambda x, k: x * 2 if k > 1 else x * 3), (lambda i: (torch.ones(2), 1.5 if i < 5 else 0.5)), list


def _tensors(torch):
    return (lambda x: x * x.shape[0]), (lambda i: (torch.ones(2 if i < 5 else 3),)), list


def _aliases(torch):
    base = torch.arange(8.0)
    return (lambda x, y: x + y.data), (lambda i: (base[:2], base[2:4] if i < 5 else base[4:6])), list


def _outside(torch):
    state = torch.ones(4)

    def arguments(i):
        if i == 5:
            state.data = torch.ones(2)
        return (torch.ones(1),)

    return (lambda x: x * state.shape[0] + state.sum()), arguments, list


def _gradients(torch):
    w = torch.ones(4, requires_grad=True)
    w.grad = torch.ones(4)

    def f(x):
        return w.grad.stride()[0] * x + w.grad.sum()

    def arguments(i):
        if i == 5:
            w.grad = torch.ones(8)[::2]
        return (torch.ones(1),)

    return f, arguments, list


def _dicts(torch):
    config = {"scale": 2.0}

    def arguments(i):
        config["scale"] = 2.0 if i < 5 else 3.0
        return (torch.ones(1),)

    return (lambda x: x * config["scale"]), arguments, list


def _lists(torch):
    scales = [2.0]

    def arguments(i):
        scales[0] = 2.0 if i < 5 else 3.0
        return (torch.ones(1),)

    return (lambda x: x * scales[0]), arguments, list


def _attributes(torch):
    def helper(x, k=2.0):
        return x * k

    def arguments(i):
        helper.__defaults__ = (2.0,) if i < 5 else (3.0,)
        return (torch.ones(1),)

    return (lambda x: helper(x)), arguments, list


def _classes(torch):
    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2

    def triple(self, x):
        return x * 3

    model = Double()

    def arguments(i):
        if i == 5:
            Double.forward = triple
        return (torch.ones(1),)

    return (lambda x: model(x)), arguments, list


def _slots(torch):
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    def arguments(i):
        # Without momentum its buffer is not touched, which its version shows.
        optimizer.param_groups[0]["momentum"] = 0.9 if i < 5 else 0.0
        return (torch.ones(3),)

    return step, arguments, lambda: [t for t in optimizer.state[w].values() if t is not None]


HAZARDS = {
    "modes": _modes, "values": _values, "numbers": _numbers, "tensors": _tensors, "aliases": _aliases, "outside": _outside, "gradients": _gradients,
    "dicts": _dicts, "lists": _lists, "attributes": _attributes, "classes": _classes, "slots": _slots,
}  # fmt: skip


def test_all_kinds_of_guards_have_a_hazard(torch):
    assert torch._C._compile_leave_out([]) == list(HAZARDS)
    with pytest.raises(TypeError, match="no guard 'x'"):
        torch._C._compile_leave_out(["x"])


@pytest.mark.parametrize("kind", HAZARDS)
def test_each_guard_is_needed(torch, kind):
    """With the guard, calls are those of the function; without it, one of them is not."""
    make = functools.partial(HAZARDS[kind], torch)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain, _ = trail(torch, make, 8, False)
            guarded, roads = trail(torch, make, 8, True)
            assert guarded == plain and roads[4] == "replay", roads
            torch.compiler.reset()
            torch._C._compile_leave_out([kind])
            blind, roads = trail(torch, make, 8, True)
        assert blind != plain, f"nothing shows that guards of {kind} are there: {roads}"
    finally:
        torch.set_grad_enabled(True)


# --- resources -------------------------------------------------------------------------------------
def resident() -> int:
    """Bytes of the process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the system does not say how much memory a process has"
)
def test_ten_thousand_replays_take_no_memory(torch):
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.ones(4, 8)
    for _ in range(1000):
        step(x)
    counts, before = torch._C.live_counts(), resident()
    for _ in range(10_000):
        step(x)
    assert step._compiled_state.road == "replay" and step._compiled_state.plans[0].hits > 10_000
    assert torch._C.live_counts() == counts
    assert resident() - before < 4 << 20


@pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="the system does not say how much memory a process has"
)
def test_a_thousand_shapes_take_no_memory(torch):
    f = torch.compile(lambda x: (x * 2 + 1).tanh())
    shapes = range(1, 1001)

    def call(n):
        for _ in range(4):
            f(torch.ones(n))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for n in range(2001, 2301):
            call(n)
        before = resident()
        for n in shapes:
            call(n)
    assert resident() - before < 8 << 20
    state = f._compiled_state
    assert len(state.plans) <= 16 and len(state.forms) <= 256


def test_threads_share_a_compiled_function(torch):
    w = torch.arange(4.0)
    f = torch.compile(lambda x, k: (x * w + k).tanh())
    problems = []

    def work(n):
        for i in range(60):
            x, k = torch.full((4,), float(n)), float(i // 20)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                ours = f(x, k)
            if bits(torch, ours) != bits(torch, (x * w + k).tanh()):
                problems.append((n, i))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not problems


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_process_goes_on_with_the_plans(torch):
    f = torch.compile(lambda x: x * 2 + 1)
    x = torch.arange(100_000.0)
    expected = bits(torch, x * 2 + 1)
    for _ in range(4):
        f(x)
    child = os.fork()
    if not child:
        try:
            good = bits(torch, f(x)) == expected and f._compiled_state.road == "replay"
            good &= bits(torch, f(x[:3])) == bits(torch, x[:3] * 2 + 1)
            os._exit(0 if good else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert bits(torch, f(x)) == expected


def test_a_clock_is_read_in_each_call(torch):
    """Classes made by C code may do anything when they are called: `datetime.now()` was read once."""
    import datetime

    now = datetime.datetime
    for f in (lambda x: x * now.now().microsecond, lambda x: x * datetime.date.today().year):
        g = torch.compile(f)
        with pytest.warns(UserWarning, match="which is not written in Python"):
            for _ in range(5):
                g(torch.ones(1))
        assert g._compiled_state.road == "eager"


def test_modules_of_the_user_are_read_and_guarded(torch, monkeypatch):
    other = types.ModuleType("other")
    exec("scale = 2.0\ntable = {'k': [1.0]}\ndef f(x):\n    return x * scale + table['k'][0]", vars(other))

    def make():
        vars(other).update(scale=2.0, table={"k": [1.0]})

        def arguments(i):
            if i == 5:
                other.scale = 3.0
            if i == 9:
                other.table["k"][0] = 5.0
            return (torch.ones(2),)

        return (lambda x: other.f(x) + other.scale), arguments, list

    roads = alike(torch, make, 14)
    assert roads[4] == "replay" and roads[5] == roads[9] == "watched"
    other.__getattr__ = lambda name: 1.0
    g = torch.compile(lambda x: x * other.absent)
    with pytest.warns(UserWarning, match="looks up attributes itself"):
        for _ in range(4):
            g(torch.ones(1))


def _objects(torch):
    """Programs, each with a change that gives an object another class or dict, or replaces what our modules call."""
    nn = torch.nn

    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

    class Tenfold(Scale):
        def __call__(self, x):
            return x * self.by * 10

    class Shifted(nn.Linear):
        def forward(self, x):
            return super().forward(x) + 1

    def changed(name, value):
        return lambda o, monkeypatch: setattr(o, name, value)

    yield "dict of an object", Scale(2.0), changed("__dict__", {"by": 5.0})
    yield "class of an object", Scale(2.0), changed("__class__", Tenfold)
    yield "dict of a module", nn.Linear(3, 3), changed("__dict__", vars(nn.Linear(3, 3)))
    yield "class of a module", nn.Linear(3, 3), changed("__class__", Shifted)
    functional = nn.functional
    yield "function of modules", nn.Softplus(), lambda o, m: m.setattr(functional, "softplus", lambda x, *a: x * 3)
    yield "function", functional.softsign, lambda o, m: m.setattr(functional, "softsign", lambda x: x * 3)


@pytest.mark.parametrize("index", range(6))
def test_objects_may_get_another_class_or_dict(torch, monkeypatch, index):
    name, o, change = list(_objects(torch))[index]
    function = (lambda x: torch.nn.functional.softsign(x)) if name == "function" else lambda x: o(x)  # noqa: PLW0108
    fast = torch.compile(function)
    x = torch.arange(1.0, 4.0)
    for _ in range(5):
        before = fast(x)
    assert fast._compiled_state.road == "replay"
    change(o, monkeypatch)
    assert torch.equal(fast(x), function(x)), name
    assert not torch.equal(fast(x), before)


def test_objects_that_differ_in_each_thread_are_read_in_each_call(torch):
    class Rate(threading.local):
        value = 2.0

    plain, rate = threading.local(), Rate()
    plain.value = 2.0
    f = torch.compile(lambda x: x * plain.value * rate.value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(5):
            assert f(torch.ones(1)).item() == 4
        seen = []

        def other():
            plain.value, rate.value = 3.0, 5.0
            seen.append(f(torch.ones(1)).item())

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert seen == [15.0]
        assert f(torch.ones(1)).item() == 4


def test_a_mode_of_functions_sees_the_calls_of_a_function_with_a_plan(torch):
    class Zero(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 0 if func is torch.sin else result

    @torch.compile
    def f(x):
        return torch.sin(x) + 1

    x = torch.ones(2)
    with Zero():
        # Calls within do not count.
        assert [f(x).tolist() for _ in range(4)] == [[1.0, 1.0]] * 4
    for _ in range(5):
        plain = f(x)
    assert f._compiled_state.road == "replay", f._compiled_state.reasons
    with Zero():
        assert f(x).tolist() == [1.0, 1.0]
    assert torch.equal(f(x), plain)
    assert f._compiled_state.road == "replay"


@pytest.mark.parametrize("what", ["mode", "gradients", "three states"])
def test_calls_that_alternate_between_states_get_a_plan_for_each(torch, what):
    """As where a program trains and evaluates by turns: each state's calls are compared with calls in that state."""
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5), torch.nn.BatchNorm1d(3))
    states = {
        "mode": [lambda: model.train(), lambda: model.eval()],
        "gradients": [lambda: model.requires_grad_(True), lambda: model.requires_grad_(False)],
        "three states": [lambda: model.train(), lambda: model[1].eval(), lambda: model.eval()],
    }[what]
    fast = torch.compile(model)
    x = torch.arange(6.0).view(2, 3)
    roads = []
    for i in range(18):
        states[i % len(states)]()
        running = model[2].running_mean.clone(), model[2].running_var.clone()
        torch.manual_seed(i)
        with torch.no_grad() if what != "gradients" else torch.enable_grad():
            result = fast(x)
            roads.append(fast._compiled_state.road)
            model[2].running_mean.copy_(running[0])
            model[2].running_var.copy_(running[1])
            torch.manual_seed(i)
            plain = model(x)
        assert torch.equal(result, plain) and result.requires_grad == plain.requires_grad
    assert roads[-6:] == ["replay"] * 6, (roads, fast._compiled_state.reasons)
