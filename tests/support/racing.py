"""Ops whose index or mask another thread writes meanwhile, through NumPy: run by tests/test_races.py in a process.

    python -m support.racing SECONDS PLACE [NAME ..]     # each op for SECONDS; the running op is noted in PLACE

A call may return any result or raise an error; it must not access memory out of bounds, which would very likely crash
the process: the wrong indices are terabytes away. InternalError is a panic.
"""

import sys
import threading
import time

import numpy as np

from support.target import torch

N, ROWS = 1 << 16, 64
ALLOWED = (IndexError, RuntimeError, ValueError)


def ops(index, mask, classes):
    """The calls by name; `index` is int64 below ROWS while valid, `mask` is bool, both of N elements. `classes` are
    up to 5000 while they are many.
    """
    F = torch.nn.functional
    x, flat = torch.rand(ROWS, 8), torch.rand(ROWS)
    source, rows, values = torch.rand(N), torch.rand(N, 8), torch.rand(N)
    square = index.view(N // ROWS, ROWS)
    scores, grid = torch.rand(N, ROWS), torch.rand(ROWS, ROWS)
    sorter, steps = index[:ROWS], torch.arange(float(ROWS))
    return {
        "index_select rows": lambda: torch.index_select(x, 0, index),
        "index_select columns": lambda: torch.index_select(grid, 1, index),
        "index_select": lambda: torch.index_select(flat, 0, index),
        "gather": lambda: torch.gather(torch.rand(N // ROWS, ROWS), 1, square),
        "gather down": lambda: torch.gather(grid, 0, square[:ROWS]),
        "take": lambda: torch.take(flat, index),
        "take_along_dim": lambda: torch.take_along_dim(grid, square[:ROWS], 0),
        "put": lambda: flat.put(index, source),
        "embedding": lambda: F.embedding(index, x),
        "embedding by frequency": lambda: F.embedding(index[:2048], x.requires_grad_(), scale_grad_by_freq=True).sum().backward(),
        "index_add": lambda: flat.index_add(0, index, source),
        "index_add rows": lambda: x.detach().index_add(0, index, rows),
        "index_copy": lambda: x.detach().index_copy(0, index, rows),
        "index_fill": lambda: x.detach().index_fill(0, index, 1.0),
        "index_reduce": lambda: x.detach().index_reduce(0, index, rows, "mean"),
        "scatter": lambda: flat.scatter(0, index, source),
        "scatter_add": lambda: flat.scatter_add(0, index, source),
        "scatter_add down": lambda: grid.scatter_add(0, square[:ROWS], grid),
        "scatter_reduce": lambda: flat.scatter_reduce(0, index, source, "mean", include_self=False),
        "x[i]": lambda: flat[index],
        "x[i] strided": lambda: x[index[::2]],
        "x[i, j]": lambda: grid[index, index.flip(0)],
        "x[i] = v": lambda: flat.clone().__setitem__(index, source),
        "index_put": lambda: flat.index_put((index,), source, accumulate=True),
        "nll_loss": lambda: F.nll_loss(scores, index),
        "cross_entropy": lambda: F.cross_entropy(scores, index),
        "one_hot": lambda: F.one_hot(index[:2048], ROWS),
        "bincount": lambda: torch.bincount(classes),
        "bincount weighted": lambda: torch.bincount(classes, source),
        "repeat_interleave": lambda: torch.repeat_interleave(index[:64] % 100),
        "searchsorted": lambda: torch.searchsorted(steps, source, sorter=sorter),
        "unique rows": lambda: torch.unique(index.view(-1, 2), dim=0),
        "sort": lambda: torch.sort(index),
        "topk": lambda: torch.topk(index, 100),
        "kthvalue": lambda: torch.kthvalue(index, 100),
        "argmax": lambda: torch.argmax(index),
        "multinomial": lambda: torch.multinomial(mask.view(torch.uint8).to(torch.float64), 10),
        "lu_unpack": lambda: torch.lu_unpack(grid, sorter.to(torch.int32)),
        "nonzero": lambda: mask.nonzero(),
        "nonzero of integers": lambda: index.nonzero(),
        "argwhere": lambda: torch.argwhere(mask),
        "masked_select": lambda: values.masked_select(mask),
        "masked_scatter": lambda: values.masked_scatter(mask, source),
        "x[m]": lambda: values[mask],
        "x[m] = v": lambda: values.clone().__setitem__(mask, source[: N // 2]),
        "x[m] = 1": lambda: values.clone().__setitem__(mask, 1.0),
        "where": lambda: torch.where(mask),
    }  # fmt: skip


def write(index, mask, classes, stop):
    """Makes the index invalid and valid again, the mask all, none and half true, the classes many and few."""
    wrong = np.where(np.arange(N) % 3, 1 << 40, -(1 << 41))
    right = np.arange(N) % ROWS
    half = np.arange(N) % 2 == 0
    while not stop.is_set():
        index[:] = wrong
        classes[:] = 5000
        mask[:] = True
        index[:] = right
        mask[:] = half
        classes[:] = 0
        mask[:] = False


def race(name, call, seconds, note) -> list[str]:
    note(name)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            call()
        except ALLOWED as error:
            if "internal" in type(error).__name__.lower() or "panicked" in str(error):
                return [f"{name}: {type(error).__name__}: {error}"]
        except BaseException as error:  # a panic is not an Exception
            return [f"{name}: {type(error).__name__}: {error}"]
    return []


def main():
    seconds, place, names = float(sys.argv[1]), sys.argv[2], sys.argv[3:]
    shared = np.zeros(N, np.int64), np.zeros(N, bool), np.zeros(N, np.int64)
    stop = threading.Event()
    sys.setswitchinterval(1e-4)
    writer = threading.Thread(target=write, args=(*shared, stop))
    writer.start()

    def note(text):
        with open(place, "w") as file:
            file.write(text)

    try:
        for name, call in ops(*map(torch.from_numpy, shared)).items():
            if not names or name in names:
                for problem in race(name, call, seconds, note):
                    print(problem)
    finally:
        stop.set()
        writer.join()
    print("done")


if __name__ == "__main__":
    main()
