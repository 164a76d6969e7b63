"""Random small programs under compositions of `vmap`, `grad` and `jvp`, against loops over the examples.

A program is a list of steps over a pool of [2, 3] matrices: ops, views, writes in place to results, to parts and to new memory, layouts changed in
place, detached handles. `RUSTGRAD_FUZZ=n` runs n programs in place of 80.
"""

import os
import random
import warnings

import pytest
import rustgrad as torch
from rustgrad.func import grad, jvp, vmap
from rustgrad.nn import functional as F
from rustgrad.testing import assert_close

COUNT = int(os.environ.get("RUSTGRAD_FUZZ", "80"))
ROWS, COLUMNS, BATCH, OUTER = 2, 3, 3, 2


def squeezed(a):
    b = (a * 2).unsqueeze(0)
    c = b.sum(0)
    b.squeeze_(0)
    return b * c


def turned(a):
    b = a * 3
    s = b.sum(1)
    b.t_()
    return (b * s).t()


def filled(a, b):
    c = torch.zeros(ROWS, COLUMNS, dtype=a.dtype)
    c[0] = a[1]
    c[1].copy_(b[0])
    return c


def filled_later(a, b):
    c = torch.ones(ROWS, COLUMNS, dtype=a.dtype)
    d = c.detach()
    e = c + a
    c[:, 1:] += b[:, :2]
    return c * e + d


def written(a, b):
    c = a.clone()
    c[0].mul_(b[1])
    c[:, 0].add_(c.sum(1))
    return c


def rows_swapped(a, b):
    c = a * 1
    before = c.detach() * 2
    c.t()[1].copy_(b.t()[0])
    return c + before


def strided(a):
    return (a * 1).contiguous().as_strided((ROWS, COLUMNS), (1, 2))


def gathered(a):
    return a.gather(1, a.detach().argsort(1))


UNARY = {
    "sin": torch.sin, "exp": lambda a: (a * 0.3).exp(), "tanh": torch.tanh, "sigmoid": torch.sigmoid, "square": torch.square,
    "neg": torch.neg, "flip": lambda a: a.flip(1), "roll": lambda a: a.roll(1, 0), "turned twice": lambda a: a.t().contiguous().t(),
    "softmax": lambda a: a.softmax(1), "log_softmax": lambda a: a.log_softmax(0), "cumsum": lambda a: a.cumsum(1),
    "centered": lambda a: a - a.mean(0), "norm": lambda a: a / (a.square().sum() + 1).sqrt(), "layer_norm": lambda a: F.layer_norm(a, (COLUMNS,)),
    "instance_norm": lambda a: F.instance_norm(a[None])[0], "detach": lambda a: a.detach() * 0.5 + a, "clone": torch.clone,
    "triu": torch.triu, "view": lambda a: a.reshape(-1).view(ROWS, COLUMNS), "pad": lambda a: F.pad(a, (1, 0))[:, :COLUMNS],
    "diagonal": lambda a: a + a.diagonal().sum(), "max": lambda a: a.max(1, keepdim=True).values * a, "sorted": lambda a: a.sort(1).values,
    "stacked": lambda a: torch.stack([a[1], a[0]]), "chunks": lambda a: torch.cat(a.chunk(2, 0)[::-1]), "index": lambda a: a[torch.tensor([1, 0])],
    "where": lambda a: torch.where(a.detach() > 0, a, a * 0.1), "pool": lambda a: F.avg_pool1d(a[None], 3, 1, 1)[0], "prod": lambda a: a.prod(1, keepdim=True) + a,
    "logsumexp": lambda a: a.logsumexp(0) - a, "squeezed": squeezed, "turned": turned, "strided": strided, "gathered": gathered,
    "mul_": lambda a: (a * 1).mul_(2).sin_(), "gelu": F.gelu, "std": lambda a: a / (a.std() + 1),
}  # fmt: skip
BINARY = {
    "add": torch.add, "mul": torch.mul, "sub": torch.sub, "div": lambda a, b: a / (b.square() + 1), "maximum": torch.maximum,
    "atan2": lambda a, b: torch.atan2(a, b.square() + 1), "matmul": lambda a, b: a @ b.t() @ a, "lerp": lambda a, b: torch.lerp(a, b, 0.3),
    "bilinear": lambda a, b: torch.einsum("ij,kj->ik", a, b) @ b, "outer": lambda a, b: torch.outer(a[0], b[1])[:ROWS],
    "filled": filled, "filled later": filled_later, "written": written, "rows swapped": rows_swapped,
    "index_add": lambda a, b: a.index_add(0, torch.tensor([1, 1]), b), "addmm": lambda a, b: torch.addmm(a, a[:, :ROWS], b),
    "add_": lambda a, b: (a * 2).add_(b, alpha=0.5), "mse": lambda a, b: a * F.mse_loss(a, b), "cosine": lambda a, b: F.cosine_similarity(a, b, 1)[:, None] * a,
    "scatter": lambda a, b: a.scatter(1, torch.tensor([[0], [2]]), b[:, :1]), "linear": lambda a, b: F.linear(a, b @ a.t() @ a, b[1, :ROWS])[:, :1] + a,
}  # fmt: skip


def program(seed: int):
    """(names of the steps, the function of two matrices)."""
    chooser = random.Random(seed)
    steps = []
    for n in range(chooser.randint(2, 6)):
        pick = lambda top=n + 2: chooser.randrange(top)  # noqa: E731
        if chooser.random() < 0.5:
            steps.append((chooser.choice(list(UNARY)), (pick(),)))
        else:
            steps.append((chooser.choice(list(BINARY)), (pick(), pick())))

    def run(a, b):
        pool = [a, b]
        for name, places in steps:
            f = UNARY.get(name) or BINARY[name]
            pool.append(f(*(pool[p] for p in places)))
        return pool[-1].sin() + pool[-2] * 0.5

    return steps, run


def each(f, *args, dims=(0, 0)):
    size = next(a.shape[d] for a, d in zip(args, dims, strict=True) if d is not None)
    rows = [f(*(a if d is None else a.select(d, i) for a, d in zip(args, dims, strict=True))) for i in range(size)]
    if isinstance(rows[0], tuple):
        return tuple(torch.stack(list(column)) for column in zip(*rows, strict=True))
    return torch.stack(rows)


def ways(f, seed: int):
    """(name, what a composition gives, what loops give)."""
    chooser = random.Random(-seed - 1)
    make = lambda *shape: torch.randn(*shape, dtype=torch.float64)  # noqa: E731
    dims = chooser.choice([(0, 0), (2, 0), (0, None), (None, 1), (1, 2)])
    shape = [ROWS, COLUMNS]

    def batch(dim, base=shape):
        sizes = list(base)
        if dim is not None:
            sizes.insert(dim, BATCH)
        return make(*sizes)

    a, b = batch(dims[0]), batch(dims[1])
    yield "vmap", lambda: vmap(f, dims)(a, b), lambda: each(f, a, b, dims=dims)
    total = lambda *x: f(*x).sin().sum()  # noqa: E731
    slopes = grad(total, (0, 1))
    yield "vmap(grad)", lambda: vmap(slopes, dims)(a, b), lambda: each(slopes, a, b, dims=dims)
    curve = grad(lambda *x: sum(g.sin().sum() for g in slopes(*x)))
    yield "vmap(grad(grad))", lambda: vmap(curve, dims)(a, b), lambda: each(curve, a, b, dims=dims)
    out = chooser.choice([0, 1, 2])
    over = lambda *x: vmap(f, dims, out)(*x).cos().sum()  # noqa: E731
    loops = lambda *x: each(f, *x, dims=dims).cos().sum()  # noqa: E731
    yield "grad(vmap)", lambda: grad(over, (0, 1))(a, b), lambda: grad(loops, (0, 1))(a, b)
    v, w = torch.randn_like(a), torch.randn_like(b)
    yield (
        "jvp(vmap)",
        lambda: jvp(vmap(f, dims), (a, b), (v, w)),
        lambda: jvp(lambda *x: each(f, *x, dims=dims), (a, b), (v, w)),
    )
    push = lambda *x: jvp(f, x, tuple(t.cos() for t in x))[1]  # noqa: E731
    yield "vmap(jvp)", lambda: vmap(push, dims)(a, b), lambda: each(push, a, b, dims=dims)
    first, second = make(OUTER, BATCH, *shape), make(BATCH, ROWS, COLUMNS, OUTER)
    inner = chooser.choice([(0, 0), (0, None), (None, 0)])
    inside = (first if inner[0] == 0 else first[:, 0], second if inner[1] == 0 else second[0])
    last = tuple(t.dim() - 1 if i else 0 for i, t in enumerate(inside))
    yield (
        "vmap(vmap)",
        lambda: vmap(vmap(f, inner), last)(*inside),
        lambda: each(lambda *x: each(f, *x, dims=inner), *inside, dims=last),
    )
    both = lambda *x: vmap(slopes, inner)(*x)  # noqa: E731
    yield (
        "vmap(vmap(grad))",
        lambda: vmap(both, last)(*inside),
        lambda: each(lambda *x: each(slopes, *x, dims=inner), *inside, dims=last),
    )


@pytest.mark.parametrize("seed", range(COUNT))
def test_program(seed):
    torch.manual_seed(seed)
    steps, f = program(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, run, wanted in ways(f, seed):
            assert_close(run(), wanted(), rtol=1e-7, atol=1e-8, msg=lambda m, name=name: f"{name} of {steps}: {m}")
