"""What is freed, when, and what stays alive: arrays, replaced data, cycles through graphs, objects that are dying."""

import gc
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad promises or counts")


class Object:
    """Something that can be watched."""



def function(torch):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    return Double


def collected(make, *args):
    """Whether the collector frees what `make` returns a weak reference to."""
    watched = make(*args)
    for _ in range(3):
        gc.collect()
    return watched() is None


# --- memory of others -------------------------------------------------------------------------------------------------


def test_numbers_of_numpy_are_copied(torch):
    for make in (torch.as_tensor, torch.asarray, torch.tensor):
        for kind in (np.float64, np.float32, np.float16, np.int16, np.uint8, np.bool_, np.complex64):
            made = [make(kind(v)) for v in (0, 1, 0, 1)]
            churn = [np.full((), 7.25) for _ in range(200)]
            assert [t.item() for t in made] == [0, 1, 0, 1] and made[0].numpy().dtype == kind, (make, kind)
            del churn
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        torch.asarray(np.float64(1), copy=False)


def test_an_address_is_believed_of_arrays_alone(torch):
    class Fleeting:
        a = np.ones(1000)
        __array_interface__ = property(lambda self: (self.a + 0).__array_interface__)

    class Mistaken(np.ndarray):
        __array_interface__ = property(lambda self: (np.ones(1000) + 0).__array_interface__)

    for make in (torch.as_tensor, torch.tensor):
        with pytest.raises((RuntimeError, TypeError)):
            make(Fleeting())
    real = np.zeros(1000).view(Mistaken)
    shared = torch.as_tensor(real)
    real[3] = 5
    assert shared[3] == 5 and shared.sum() == 5


def test_an_array_goes_with_its_tensor(torch):
    for make in (torch.from_numpy, torch.as_tensor, torch.from_dlpack):
        a = np.ones(5)
        gone = weakref.ref(a)
        t = make(a)
        del a
        view = t[1:]
        del t
        assert gone() is not None
        del view
        assert gone() is None, make


def test_memory_that_an_array_shares_stays(torch):
    t = torch.arange(5000.0)
    a = t.numpy()
    t.data = torch.zeros(1)
    churn = [torch.full((5000,), 7.0) for _ in range(20)]
    assert a.sum() == sum(range(5000)), "the array holds the memory, not the tensor"
    del churn
    with pytest.raises(RuntimeError, match="resizable"):
        torch.from_numpy(a).resize_(10_000)
    t = torch.arange(5.0)
    a = t.numpy()
    with pytest.raises(RuntimeError, match="resizable"):
        t.resize_(10_000)
    assert t.resize_(3).tolist() == [0, 1, 2] and a.tolist() == [0, 1, 2, 3, 4]


# --- replaced data ----------------------------------------------------------------------------------------------------


def resident():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * 4096


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@linux
@pytest.mark.parametrize("kind", ["parameter", "view", "resize", "out", "transpose", "set"])
def test_replaced_data_is_freed(torch, kind):
    x = torch.nn.Parameter(torch.ones(100_000))
    kept = (x * x).sum() if kind == "parameter" else None
    t, source = torch.ones(2, 50_000), torch.ones(100_000)
    view = t.view(-1)
    grown = torch.empty(0)

    def once(i):
        if kind == "parameter":
            x.data = x.data - 1.0
        elif kind == "view":
            t.data = torch.ones(2, 50_000)
        elif kind == "resize":
            grown.resize_(i * 300)
        elif kind == "out":
            torch.add(source[: 1 + i * 200], 1.0, out=grown.resize_(0))
        elif kind == "transpose":
            t.t_()
        else:
            t.set_(torch.ones(100_000))

    def many():
        before = resident()
        for i in range(400):
            once(i)
        return resident() - before

    many()
    assert min(many() for _ in range(3)) < 20 << 20
    assert view.sum() == 100_000 and (kept is None or kept.item() == 100_000)


@own
def test_storages_of_replaced_data_are_freed_at_once(torch):
    x = torch.ones(10, requires_grad=True)
    y = x * x
    count = torch._C.live_counts()[0]
    for _ in range(10):
        x.data = torch.zeros(10)
    assert torch._C.live_counts()[0] == count
    assert y.sum() == 10


def test_a_saved_tensor_of_another_shape_is_refused(torch):
    for op in (lambda x: torch.cdist(x, x), lambda x: torch.nn.functional.glu(x), lambda x: x @ x, lambda x: x * x):
        x = torch.rand(4, 4).requires_grad_()
        y = op(x)
        x.data = torch.rand(4)
        with pytest.raises(RuntimeError):
            y.sum().backward()
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    x.data = torch.full((3,), 5.0)
    y.backward()
    assert x.grad.tolist() == [10, 10, 10], "another value of the same shape is computed with, as in PyTorch"


@own
def test_data_replaced_by_a_hook_while_its_op_runs(torch):
    """The op goes on with what it has seen, or says that it cannot; nothing it reads is freed."""
    x = torch.rand(64, 64).requires_grad_()

    def pack(t):
        x.data = torch.rand(3)
        return t.detach().clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = torch.exp(x * x)
    assert y.shape == (64, 64) and x.shape == (3,)
    big = torch.rand(300, 300).requires_grad_()

    def pack_big(t):
        big.data = torch.rand(3)
        return t

    with (
        torch.autograd.graph.saved_tensors_hooks(pack_big, lambda t: t),
        pytest.raises(RuntimeError, match="used by an op that is running"),
    ):
        big * big


# --- dying objects ----------------------------------------------------------------------------------------------------


def test_a_weak_reference_does_not_give_a_dying_object_back(torch):
    class Special(torch.Tensor):
        pass

    for kind in (None, Special):
        p, got = torch.zeros(3), []
        g = torch.ones(3) if kind is None else torch.ones(3).as_subclass(kind)
        if kind:
            g.mark = "kept"
        p.grad = g
        watch = weakref.ref(g, lambda _: got.append(p.grad))
        ends = weakref.finalize(g, lambda: got.append(p.grad))
        del g
        others = [torch.full((3,), 7.0) for _ in range(5)]
        del watch, ends
        if not got:
            continue  # the object lives as long as the tensor, where it may
        assert all(type(o) is (kind or torch.Tensor) and o.tolist() == [1, 1, 1] for o in got)
        assert all(o is p.grad for o in got) and not any(o is x for o in got for x in others)
        if kind:
            assert got[0].mark == "kept"


@own
def test_long_chains_of_gradients_fall_down(torch):
    first = x = torch.zeros(1)
    for _ in range(200_000):
        x.grad = torch.zeros(1)
        x = x.grad
    del x
    first.grad = None


def test_another_interpreter_cannot_import_it():
    script = """
import importlib, sys
name = sys.argv[1]
module = importlib.import_module(name)
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    print("no subinterpreters"); sys.exit()
other = interpreters.create()
try:
    interpreters.run_string(other, f"import {name}; {name}.ones(2)")
    print("imported")
except Exception as e:
    print("refused")
interpreters.destroy(other)
assert repr(module.ones(2)) == "tensor([1., 1.])"
"""
    done = subprocess.run([sys.executable, "-c", script, target.NAME], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() in ("refused", "no subinterpreters"), done.stderr[-2000:]


@linux
def test_lists_without_memory_are_an_error(torch):
    with pytest.raises(MemoryError):
        torch.empty(1 << 50, 0).tolist()
    assert torch.empty(3, 0).tolist() == [[], [], []] and torch.empty(0, 3).tolist() == []
    values = [[True, False], [1, -(2**63)], [0.5, float("inf")], [1j, 2 - 1j]]
    assert [torch.tensor(v).tolist() for v in values] == values


# --- cycles -----------------------------------------------------------------------------------------------------------


def test_hooks_that_hold_their_tensor(torch):
    def on(register, leaf=True):
        def make():
            o = Object()
            x = torch.ones(3, requires_grad=True)
            t = x if leaf else x * 2
            getattr(t, register)(lambda g: (t, o) and None)
            return weakref.ref(o)

        return make

    assert collected(on("register_hook")) and collected(on("register_post_accumulate_grad_hook"))

    def parameter():
        o, p = Object(), torch.nn.Parameter(torch.rand(3))
        p.register_hook(lambda g: (p, o) and None)
        return weakref.ref(o)

    assert collected(parameter)


@own
def test_hooks_that_hold_results(torch):
    """PyTorch leaves these to the end of the process."""

    def result():
        o, x = Object(), torch.ones(3, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: (y, o) and None)
        return weakref.ref(o)

    def later_result():
        o, x = Object(), torch.ones(3, requires_grad=True)
        y = (x * 2).exp().sum()
        y.register_hook(lambda g: None)
        x.register_hook(lambda g: (y, o) and None)
        return weakref.ref(o)

    def gradient():
        o, x = Object(), torch.ones(3, requires_grad=True)
        x.mark = o
        x.grad = torch.ones(3)
        x.grad.owner = x
        return weakref.ref(o)

    assert collected(result) and collected(later_result) and collected(gradient)


def test_contexts_that_hold_their_results(torch):
    double = function(torch)

    def output():
        y = double.apply(torch.ones(3, requires_grad=True))
        return weakref.ref(y)

    def attribute():
        o, y = Object(), double.apply(torch.ones(3, requires_grad=True))
        y.grad_fn.mark = (y, o)
        return weakref.ref(o)

    assert collected(output) and collected(attribute)


@pytest.mark.parametrize("custom", [False, True])
@pytest.mark.parametrize("on_tensor", [False, True])
def test_hooks_that_hold_their_node(torch, custom, on_tensor):
    calls = []

    def make():
        a = torch.tensor(1.0, requires_grad=True)
        b = function(torch).apply(a) if custom else a.clone()
        o, node = Object(), b.grad_fn

        def hook(*args):
            calls.append((node, o) and None)

        (b if on_tensor else node).register_hook(hook)
        return b.clone(), weakref.ref(o)

    out, watched = make()
    out.backward(retain_graph=True)
    gc.collect()
    out.backward(retain_graph=True)
    assert len(calls) == 2 and watched() is not None, "a graph that somebody holds keeps its hooks"
    del out
    gc.collect()
    assert watched() is None


def test_what_a_graph_holds_stays(torch):
    """Collections in the middle of everything take nothing away."""
    double, seen = function(torch), []

    def graph():
        x = torch.ones(3, requires_grad=True)
        x.mark = x
        y = double.apply(x)
        y.mark = y
        z = y * 2
        z.register_hook(lambda g: seen.append(("z", z is not None, g.sum().item())))
        x.register_hook(lambda g: seen.append(("x", x.mark is x, g.sum().item())))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, Object()), lambda p: p[0]):
            w = z.exp()
        return w.sum()

    losses = [graph() for _ in range(5)]
    gc.collect()
    for loss in losses:
        gc.collect()
        loss.backward()
        gc.collect()
    assert len(seen) == 10 and all(ok for _, ok, _ in seen)
    assert seen[0][0] == "z" and seen[1][0] == "x" and seen[1][2] == pytest.approx(4 * seen[0][2], rel=1e-5)


@own
def test_collections_inside_of_backward_take_nothing_away(torch):
    x = torch.ones(3, requires_grad=True)
    order = []

    class Note(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t, name):
            ctx.name, ctx.self = name, ctx
            ctx.save_for_backward(t)
            return t * 1

        @staticmethod
        def backward(ctx, grad):
            gc.collect()
            order.append((ctx.self.name, ctx.saved_tensors[0].sum().item()))
            return grad, None

    def graph():
        t = x * 1
        for i in range(10):
            t = Note.apply(t, i)
            t.register_hook(lambda g, t=t: gc.collect() and None)
            t.retain_grad()
        return t.sum()

    loss = graph()
    gc.collect()
    loss.backward()
    assert order == [(i, 3.0) for i in reversed(range(10))] and x.grad.tolist() == [1, 1, 1]
    counts = torch._C.live_counts()
    graph()
    gc.collect()
    assert torch._C.live_counts() == counts


def test_an_unpacking_hook_may_look_at_its_node(torch):
    x = torch.ones(3, requires_grad=True)
    looked = []

    def unpack(t):
        if not looked:
            looked.append(None)
            looked[0] = y.grad_fn._saved_self
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x
    y.sum().backward()
    assert looked[0].tolist() == [1, 1, 1] and x.grad.tolist() == [2, 2, 2]


# --- threads ----------------------------------------------------------------------------------------------------------


RACE = """
import sys, threading, time, warnings
sys.path[:0] = sys.argv[2:]
import rustgrad as torch
warnings.simplefilter("ignore")
torch.set_num_threads(2)
sys.setswitchinterval(1e-5)
kind, seconds, stop = sys.argv[1], 1.2, []
x = torch.rand(180, 180).requires_grad_(kind == "backward")

def compute():
    if kind == "backward":
        y = (x * x).sin() @ x.exp()
        y.sum().backward()
        x.grad = None
        return
    getattr(x, kind)(*((x,) if kind in ("add", "matmul") else ()))

def change():
    n = 0
    while not stop:
        n += 1
        x.data = torch.rand(180, 180) if n % 3 else torch.rand(90, 150)
        if kind != "backward":
            x.t_()
            x.resize_(200 + n % 50, 180)

writers = [threading.Thread(target=change) for _ in range(2)]
[w.start() for w in writers]
end, done, errors = time.time() + seconds, 0, set()
while time.time() < end:
    try:
        compute()
        done += 1
    except RuntimeError as e:
        errors.add(type(e).__name__)
stop.append(1)
[w.join() for w in writers]
print("done")
"""


@own
@pytest.mark.parametrize("kind", ["add", "clone", "sort", "sum", "matmul", "argmax", "cumsum", "tolist", "backward"])
def test_data_is_replaced_while_another_thread_computes(kind):
    command = [sys.executable, "-X", "faulthandler", "-c", RACE, kind, *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.strip() == "done", done.stderr[-3000:]


def test_threads_that_collect_while_others_compute(torch):
    stop, problems = [], []

    def compute():
        try:
            double = function(torch)
            while not stop:
                x = torch.rand(130, 130).requires_grad_()
                x.register_hook(lambda g, x=x: g * x.detach())
                y = double.apply(x) @ x
                y.retain_grad()
                y.sum().backward()
                assert x.grad is not None and y.grad is not None
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    [t.start() for t in threads]
    for _ in range(30):
        gc.collect()
    stop.append(1)
    [t.join() for t in threads]
    assert not problems, problems[0]
