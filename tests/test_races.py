"""Threads that replace data, or collect garbage, while others compute."""

import gc
import subprocess
import sys
import threading

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad promises or counts")


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
    getattr(x, kind)(*{"add": (x,), "matmul": (x,), "cumsum": (0,)}.get(kind, ()))

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

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.y = x * 2
            return ctx.y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    def compute():
        try:
            while not stop:
                x = torch.rand(130, 130).requires_grad_()
                x.register_hook(lambda g, x=x: g * x.detach())
                y = Double.apply(x) @ x
                y.retain_grad()
                y.sum().backward()
                assert x.grad is not None and y.grad is not None
        except Exception as e:
            problems.append(e)

    threads = [threading.Thread(target=compute) for _ in range(3)]
    [t.start() for t in threads]
    for _ in range(15):
        gc.collect()
    stop.append(1)
    [t.join() for t in threads]
    assert not problems, problems[0]
