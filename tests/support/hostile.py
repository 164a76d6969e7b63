"""Calls of every kind with hostile objects, which do harm when they are converted, some from several threads.

Run as a program: `python -m support.hostile SEED CALLS THREADS PLACE`. Prints forbidden exceptions, then `done`. Each
object, whenever a protocol method is called, replaces, resizes, transposes or releases the tensors of a shared pool,
collects garbage or runs another call; hooks, contexts and packed tensors do the same inside of backward.
"""

import gc
import random
import sys
import threading
import warnings
import weakref

import numpy as np

from support.target import torch

DEPTH = 3  # maximum nesting of harm


class Pool:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = [self.fresh() for _ in range(8)]
        self.depth = threading.local()
        self.kept = []

    def fresh(self):
        r = self.random
        shape = r.choice([(), (3,), (2, 3), (0, 4), (4, 1, 2), (130, 130), (70, 300)])
        kind = r.choice([torch.float32, torch.float64, torch.int64, torch.bool, torch.complex64, torch.float32])
        t = (torch.rand(shape) * 3).to(kind)
        if kind.is_floating_point and r.random() < 0.5:
            t.requires_grad_()
            if r.random() < 0.3:
                t.register_hook(lambda g: self.harm(g))
        return t

    def any(self):
        return self.random.choice(self.tensors)

    def harm(self, answer=None):
        """Something that a protocol method should not do."""
        level = getattr(self.depth, "level", 0)
        if level >= DEPTH:
            return answer
        self.depth.level = level + 1
        try:
            self.random.choice(HARM)(self)
        except ALLOWED:
            pass
        finally:
            self.depth.level = level
        return answer


def _data(p):
    p.any().data = p.fresh().detach()


def _release(p):
    p.tensors[p.random.randrange(len(p.tensors))] = p.fresh()


def _grad(p):
    t = p.any()
    t.grad = p.random.choice([None, t.detach().clone()])


def _watch(p):
    t = p.any()
    p.kept.append(weakref.ref(t, lambda _: p.kept and p.any().grad))
    del p.kept[:-20]


def _array(p):
    p.kept.append(p.any().detach().numpy())
    del p.kept[:-20]


HARM = [
    _data,
    _data,
    _release,
    _grad,
    _watch,
    _array,
    lambda p: gc.collect(),
    lambda p: p.any().detach().resize_(p.random.choice([(0,), (2, 2), (3, 400)])),
    lambda p: p.any().resize_(p.random.choice([(5,), (100, 30)])),
    lambda p: p.any().t_(),
    lambda p: p.any().set_(p.any()),
    lambda p: p.any().detach_(),
    lambda p: p.any().zero_(),
    lambda p: p.any().requires_grad_(p.random.random() < 0.5),
    lambda p: one_call(p),
]


class Evil:
    """Implements every protocol, doing harm first."""

    __module__ = "numpy"

    def __init__(self, pool):
        self.pool = pool

    def value(self):
        return self.pool.harm(self.pool.random.choice([0, 1, -1, 2, 0.5, True, 1j, None, "x", [1, 2], 1 << 70]))

    def __index__(self):
        return self.pool.harm(self.pool.random.choice([0, 1, -1, 2, 1 << 40]))

    __int__ = __index__

    def __len__(self):
        return self.pool.harm(self.pool.random.choice([0, 1, 2, 3]))

    def __getitem__(self, i):
        if isinstance(i, int) and i > 3:
            raise IndexError
        return self.pool.random.choice([self.value, lambda: Evil(self.pool), self.pool.any])()

    def __bool__(self):
        return self.pool.harm(True)

    def __float__(self):
        return self.pool.harm(0.5)

    def __eq__(self, other):
        return self.pool.harm(True)

    __hash__ = object.__hash__

    def __repr__(self):
        return self.pool.harm("Evil")

    def __array__(self, *args, **kwargs):
        return self.pool.harm(self.pool.random.choice([np.ones(3), np.float64(1), None, 5]))

    __array_interface__ = property(lambda self: self.pool.harm((np.ones(3) + 1).__array_interface__))
    dtype = property(lambda self: self.pool.harm(torch.float32))
    shape = property(lambda self: self.pool.harm((2, 3)))

    def item(self):
        return self.pool.random.choice([self.value, lambda: Evil(self.pool)])()

    def __dlpack__(self, **kwargs):
        return self.pool.harm(self.pool.any().detach().__dlpack__())

    def __dlpack_device__(self):
        return self.pool.harm((1, 0))

    def __del__(self):
        if self.pool.random.random() < 0.2:
            self.pool.harm()


class EvilList(list):
    def __iter__(self):
        for x in list.__iter__(self):
            if self and isinstance(self[0], Evil):
                self[0].pool.harm()
            yield x


class Cycle(torch.autograd.Function):
    """Its context owns its results, itself and an object that does harm."""

    @staticmethod
    def forward(ctx, t, evil):
        ctx.everything = (ctx, t, evil)
        ctx.result = t * 2
        ctx.save_for_backward(t, ctx.result)
        return ctx.result

    @staticmethod
    def backward(ctx, grad):
        ctx.everything[2].pool.harm()
        ctx.saved_tensors  # noqa: B018
        return grad * 2, None


def _backward(p):
    t = p.any()
    if p.random.random() < 0.5:
        t = Cycle.apply(t, Evil(p))
    if p.random.random() < 0.3:
        t.register_hook(lambda g, t=t: p.harm())
    pack = (lambda x: p.harm(x), lambda x: p.harm(x)) if p.random.random() < 0.3 else None
    if pack:
        with torch.autograd.graph.saved_tensors_hooks(*pack):
            y = (t * p.any()).sin() * t
    else:
        y = t.exp() * p.any()
    if p.random.random() < 0.3:
        y.grad_fn.register_hook(lambda *a, node=y.grad_fn: p.harm())
    p.harm()
    y.sum().backward(retain_graph=p.random.random() < 0.3)


def argument(p):
    r = p.random.random()
    if r < 0.45:
        return p.any()
    if r < 0.65:
        return Evil(p)
    if r < 0.8:
        return EvilList([argument(p) for _ in range(p.random.randrange(4))])
    return p.random.choice([0, 1, -1, 2.5, None, True, 1j, "x", (1, 2), torch.float32, slice(0, 2), Ellipsis])


def _op(p):
    entries = p.entries
    name = p.random.choice(entries)
    f = getattr(torch, name, None) or getattr(torch.Tensor, name)
    f(*[p.any(), *(argument(p) for _ in range(p.random.randrange(3)))])


def _out(p):
    torch.add(p.any(), p.any(), out=p.any())


def _index(p):
    t = p.any()
    key = argument(p) if p.random.random() < 0.5 else (argument(p), argument(p))
    if p.random.random() < 0.5:
        t[key]
    else:
        t[key] = argument(p)


CALLS = [
    _op,
    _op,
    _op,
    _out,
    _index,
    _index,
    _backward,
    _backward,
    lambda p: p.harm(),
    lambda p: torch.tensor(argument(p)),
    lambda p: torch.as_tensor(argument(p)),
    lambda p: torch.asarray(argument(p)),
    lambda p: p.any().tolist(),
    lambda p: repr(p.any()),
    lambda p: p.any().numpy(),
    lambda p: torch.from_dlpack(p.any().detach()),
    lambda p: p.any() + argument(p),
    lambda p: p.any() @ p.any(),
    lambda p: setattr(p.any(), "mark", (p.any(), Evil(p))),
    lambda p: setattr(p.any(), "grad", argument(p)),
    lambda p: setattr(p.any(), "data", argument(p)),
    lambda p: p.any().view(argument(p)),
    lambda p: p.any().sort(),
    lambda p: torch.cat([p.any(), p.any()]),
    lambda p: p.any().copy_(p.any()),
]

ALLOWED = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    OverflowError,
    NotImplementedError,
    BufferError,
    KeyError,
    StopIteration,
    MemoryError,
    ZeroDivisionError,
    AssertionError,
    RecursionError,
)


def one_call(p):
    p.random.choice(CALLS)(p)


# Functions that wait, end the process, or create tensors of any size from a number.
SKIPPED = {"empty", "zeros", "ones", "full", "set_num_threads", "seed", "repeat_interleave", "tile", "repeat", "lobpcg"}


def names():
    from support.optable import ops

    found = {op.name.partition(".")[0] for op in ops()}
    return sorted(n for n in found if not n.startswith("_") and n not in SKIPPED and (hasattr(torch, n)))


def run(seed, calls, place, problems):
    p = Pool(seed)
    p.entries = names()
    internal = getattr(torch._C, "InternalError", ())
    for i in range(calls):
        call = p.random.choice(CALLS)
        with open(place, "w") as f:
            f.write(f"seed {seed} call {i}")
        try:
            call(p)
        except internal as e:
            problems.append(f"seed {seed} call {i}: {type(e).__name__}: {e}")
        except ALLOWED:
            pass
        except BaseException as e:
            problems.append(f"seed {seed} call {i}: {type(e).__name__}: {e}")


def main():
    seed, calls, threads = map(int, sys.argv[1:4])
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    sys.setswitchinterval(1e-4)
    problems = []
    work = [
        threading.Thread(target=run, args=(seed + 1000 * n, calls, f"{sys.argv[4]}{n}", problems))
        for n in range(threads)
    ]
    for w in work:
        w.start()
    for w in work:
        w.join()
    gc.collect()
    for text in problems:
        print(text)
    print("done")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
