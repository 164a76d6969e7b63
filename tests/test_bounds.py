"""Sizes that cannot be allocated are errors that name them, and the process survives: large results, lists of views."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import target

# Calls with 96 MiB to spare, so that the result or scratch memory does not fit. Inputs are created before the limit.
SCARCE = """
import resource, sys
from support.target import torch
def spent():
    return int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
torch.set_num_threads(1)
square, tall, flat = torch.rand(1500, 1500), torch.rand(9000, 2), torch.rand(1 << 22)
hermitian, wide, mask = square + square.T, torch.rand(4, 1 << 20), torch.rand(1 << 22) > 0.5
spread = torch.ones(1).expand(1 << 26)
F, L = torch.nn.functional, torch.linalg
numbers = [0.0] * (1 << 23)
calls = {
    "svd": lambda: L.svd(square), "svdvals": lambda: L.svdvals(square), "eigh": lambda: L.eigh(hermitian),
    "eig": lambda: L.eig(square), "qr": lambda: L.qr(square), "det": lambda: L.det(square), "inv": lambda: L.inv(square),
    "solve": lambda: L.solve(square, square), "cholesky": lambda: L.cholesky(hermitian), "lu": lambda: L.lu(square),
    "matrix_exp": lambda: torch.matrix_exp(square), "ldl": lambda: L.ldl_factor(hermitian),
    "pdist": lambda: F.pdist(tall), "cdist": lambda: torch.cdist(tall, tall),
    "repeat_interleave": lambda: torch.repeat_interleave(torch.tensor([1 << 33])),
    "sort": lambda: spread.sort(), "unique": lambda: spread.unique(), "nonzero": lambda: spread.nonzero(),
    "unique rows": lambda: spread.view(-1, 2).unique(dim=0), "cat": lambda: torch.cat([flat] * 9),
    "topk": lambda: spread.topk(1 << 25), "median": lambda: spread.median(), "mode": lambda: spread.mode(),
    "x[m]": lambda: spread[: 1 << 26][spread > 0.5], "bincount": lambda: torch.bincount(torch.tensor([1 << 27])),
    "multinomial": lambda: torch.multinomial(wide, 1 << 20), "randperm": lambda: torch.randperm(1 << 27),
    "var_mean": lambda: torch.var_mean(spread.view(-1, 1), 1), "layer_norm": lambda: F.layer_norm(spread, (1 << 26,)),
    "scatter_reduce": lambda: flat.scatter_reduce(0, torch.zeros(1, dtype=torch.int64).expand(1 << 22), flat, "mean"),
    "one_hot": lambda: F.one_hot(torch.arange(9000)), "combinations": lambda: torch.combinations(torch.arange(9000.0)),
    "unbind": lambda: spread.unbind(), "split": lambda: spread.split(1), "chunk": lambda: spread.chunk(1 << 26),
    "iteration": lambda: next(iter(spread)), "tensor_split": lambda: spread.tensor_split(1 << 20),
    "tensor_split at": lambda: spread.tensor_split(torch.arange(1 << 20)), "tensor": lambda: torch.tensor(numbers),
}
limit = spent() + (96 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
refused = 0
for name, call in calls.items():
    print(name, end=" ", flush=True)
    try:
        call()
        print("done", flush=True)
    except RuntimeError as error:
        assert "not enough memory" in str(error), (name, str(error)[:300])
        refused += 1
        print("refused", flush=True)
    assert (torch.ones(3) + 1).tolist() == [2.0, 2.0, 2.0]
print("end", refused)
"""


def run(program):
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "RUSTGRAD_TEST_MODULE": target.NAME, "PYTHONPATH": path}
    command = [sys.executable, "-W", "ignore", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited by RLIMIT_AS")
def test_what_does_not_fit_is_refused_and_the_process_goes_on():
    done = run(SCARCE)
    assert done.returncode == 0, f"{done.stdout[-300:]}\n{done.stderr[-2000:]}"
    assert int(done.stdout.split()[-1]) >= 25, done.stdout


ABSURD = [
    "torch.repeat_interleave(torch.tensor([1 << 58, 5]))",
    "torch.empty(0, 1 << 50).split(1, 1)",
    "torch.empty(0, 1 << 50).chunk(1 << 50, 1)",
    "torch.empty(0, 1 << 50).tensor_split(1 << 50, 1)",
    "torch.empty(1 << 50, 0).unbind()",
    "next(iter(torch.empty(1 << 50, 0)))",
    "torch.empty(3).repeat(1 << 61, 1 << 61)",
    "torch.empty(0).resize_([0, 4, 1 << 61])",
    "torch.empty(0).resize_([4, 1 << 61])",
    "torch.empty(0).resize_([1 << 62])",
    "torch.zeros(0, 1 << 40, 1 << 40)",
    "torch.mvlgamma(torch.ones(2), 1 << 50)",
    "torch.randperm(1 << 60)",
    "torch.bincount(torch.tensor([1 << 60]))",
    "torch.nn.functional.one_hot(torch.tensor([(1 << 63) - 1]))",
    "torch.addmm(torch.ones(1).expand(1 << 50, 1), torch.ones(1, 1).expand(1 << 50, 1), torch.ones(1, 1))",
    "torch.histc(torch.ones(3), 1 << 60)",
    "torch.tril_indices(1 << 31, 1 << 31)",
    "torch.ones(1).expand(1 << 26).tensor_split(1 << 50)",
    "torch.combinations(torch.ones(1).expand(1 << 40))",
    "torch.combinations(torch.ones(1).expand(1 << 22), 5)",
    "torch.combinations(torch.ones(3), 1 << 40, with_replacement=True)",
    "torch.combinations(torch.ones(1), 1 << 60, with_replacement=True)",
    "torch.empty(3).repeat(1 << 62)",
    "torch.empty(0, 3).repeat(1 << 62, 1 << 62)",
    "torch.empty(4, 0).repeat(1 << 61, 1)",
    "torch.empty([0, 4, 1 << 61])",
    "torch.empty(1 << 62, 4, 0)",
    "torch.rand([0, 4, 1 << 61])",
    "torch.empty(0).view(0, 1 << 61, 4)",
    "torch.ones([1] * 65).flip(0)",
    "torch.renorm(torch.ones(2, 3), 2, 0, float('nan'))",
]


@pytest.mark.parametrize("call", ABSURD)
def test_an_absurd_size_is_an_error(call):
    done = run(
        f"from support.target import torch\ntry:\n    {call}\nexcept RuntimeError as error:\n    print('refused', error)"
    )
    assert done.returncode == 0 and done.stdout.startswith("refused"), (
        f"{done.returncode} {done.stdout} {done.stderr[-500:]}"
    )


EMPTY = """
import numpy as np
from support.target import torch
torch.set_num_threads(1)
for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.complex64, torch.int64):
    # Dimensions without elements whose strides are zero, as NumPy has them.
    a = torch.empty(10, 12, 0, dtype=dtype).as_strided((10, 12, 0), (0, 0, 0))
    b = torch.zeros(10, 0, 50, dtype=dtype).as_strided((10, 0, 50), (0, 0, 1))
    for _ in range(50):
        fresh = torch.ones(10, 12, 50, dtype=dtype)
        assert torch.bmm(a, b).abs().sum() == 0 and torch.equal(fresh.baddbmm_(a, b), torch.ones(10, 12, 50, dtype=dtype))
        assert torch.matmul(a[0], b[0]).abs().sum() == 0 and (a[0].T @ torch.ones(12, 3, dtype=dtype)).shape == (0, 3)
print("done")
"""


def test_products_over_no_elements_read_none():
    run = subprocess.run([sys.executable, "-c", EMPTY], cwd=Path(__file__).parent, capture_output=True, text=True)
    assert run.returncode == 0 and run.stdout == "done\n", run.stderr
