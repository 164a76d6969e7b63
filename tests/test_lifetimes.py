"""Lifetimes: arrays, replaced data, cycles through graphs, dying objects."""

import subprocess
import sys
import weakref

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad promises or counts")


class Object:
    """An object that can be weakly referenced."""


# --- foreign memory ---------------------------------------------------------------------------------------------------


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
    x.data = torch.zeros(10)
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
    """The op continues with the old data, or raises an error; nothing it reads is freed."""
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


@pytest.mark.parametrize("special", [False, True])
def test_a_weak_reference_does_not_give_a_dying_object_back(torch, special):
    class Special(torch.Tensor):
        pass

    p, g, got = torch.zeros(3), torch.ones(3), []
    if special:
        g = g.as_subclass(Special)
        g.mark = "kept"
    p.grad = g
    watch = weakref.ref(g, lambda _: got.append(p.grad))
    ends = weakref.finalize(g, lambda: got.append(p.grad))
    del g
    others = [torch.full((3,), 7.0) for _ in range(5)]
    # In PyTorch the object lives as long as the tensor does.
    assert len(got) == 2 or target.STAND_IN
    assert all(type(o) is (Special if special else torch.Tensor) and o.tolist() == [1, 1, 1] for o in got)
    assert all(o is p.grad for o in got) and not any(o is x for o in got for x in others)
    assert not special or p.grad.mark == "kept"
    del watch, ends


@own
def test_long_chains_of_gradients_fall_down(torch):
    first = x = torch.zeros(1)
    for _ in range(200_000):
        x.grad = torch.zeros(1)
        x = x.grad
    del x
    first.grad = None


@own
def test_long_chains_of_views_and_attributes_fall_down(torch):
    x = base = torch.ones(4, requires_grad=True) * 1
    for _ in range(50_000):
        x = x.view(torch.int32).view(torch.float32)
    with torch.no_grad():
        base.mul_(2)
    assert x.tolist() == [2, 2, 2, 2]
    del x
    y = torch.zeros(1)
    for _ in range(100_000):
        z = torch.zeros(1)
        z.next = y
        y = z
    del y, z


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
