"""Rows of whole programs: training steps, compiled ones, optimizers, loading; for rows.py."""

import importlib
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from timing import timed

OPTIMIZERS = ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "ASGD", "Rprop")


def mlp(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return net, torch.rand(32, 64), torch.randint(0, 10, (32,))


def lenet(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
    return net, torch.rand(32, 1, 28, 28), torch.randint(0, 10, (32,))


def resnet(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.first = nn.Conv2d(channels, filters, 3, stride, 1, bias=False)
            self.second = nn.Conv2d(filters, filters, 3, 1, 1, bias=False)
            self.norms = nn.ModuleList([nn.BatchNorm2d(filters), nn.BatchNorm2d(filters)])
            same = stride == 1 and channels == filters
            self.short = nn.Identity() if same else nn.Conv2d(channels, filters, 1, stride, bias=False)

        def forward(self, x):
            y = self.norms[0](self.first(x)).relu()
            return (self.norms[1](self.second(y)) + self.short(x)).relu()

    net = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Block(16, 16, 1),
        Block(16, 32, 2),
        Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 10),
    )
    return net, torch.rand(16, 3, 32, 32), torch.randint(0, 10, (16,))


def gpt(torch, width):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = (z.view(b, t, 4, c // 4).transpose(1, 2) for z in self.qkv(self.before(x)).chunk(3, -1))
            seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(seen.transpose(1, 2).reshape(b, t, c))
            return x + self.narrow(nn.functional.gelu(self.wide(self.between(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, width), nn.Embedding(64, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(4)])
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 65)
            self.register_buffer("at", torch.arange(64))

        def forward(self, x):
            return self.head(self.norm(self.blocks(self.tokens(x) + self.places(self.at)))).flatten(0, 1)

    return Model(), torch.randint(0, 65, (8, 64)), torch.randint(0, 65, (512,))


def recurrent(torch, kind):
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(65, 32)
            self.layer, self.head = getattr(nn, kind)(32, 64, batch_first=True), nn.Linear(64, 65)

        def forward(self, x):
            return self.head(self.layer(self.table(x))[0]).flatten(0, 1)

    return Model(), torch.randint(0, 65, (16, 20)), torch.randint(0, 65, (320,))


def stepping(torch, made, kind, **options):
    """A training step, and the loss that it is made of."""
    net, x, y = made
    optimizer = getattr(torch.optim, kind)(net.parameters(), lr=1e-3, **options)

    def loss():
        return torch.nn.functional.cross_entropy(net(x), y)

    def step(loss=loss):
        optimizer.zero_grad()
        value = loss()
        value.backward()
        optimizer.step()
        return value

    return step, loss


MODELS = {
    "LeNet, batch 32, Adam": (lenet, "Adam"),
    "ResNet of 8 layers, 16 of 32 x 32, SGD": (resnet, "SGD"),
    "char-GPT, 4 layers of 128, 8 x 64, AdamW": (lambda torch: gpt(torch, 128), "AdamW"),
    "char-LSTM 32-64, 16 x 20, Adam": (lambda torch: recurrent(torch, "LSTM"), "Adam"),
    "char-GRU 32-64, 16 x 20, Adam": (lambda torch: recurrent(torch, "GRU"), "Adam"),
}


def programs(torch) -> dict:
    """Whole training steps, as a program writes them."""
    found = {}
    for name, (make, kind) in MODELS.items():
        torch.manual_seed(0)
        step, _ = stepping(torch, make(torch), kind)
        found[f"{name}, a step"] = timed(step, stretch=0.2, repeats=5)
    return found


def compiled_programs(torch) -> dict:
    """The same with the fused optimizer, compiled: the fastest of the step, the loss alone, and nothing compiled."""
    models = {
        "MLP 64-32-10, batch 32, Adam": (mlp, "Adam"),
        **MODELS,
        "char-GPT, 4 layers of 64, 8 x 64, AdamW": (lambda torch: gpt(torch, 64), "AdamW"),
    }
    found = {}
    for name, (make, kind) in models.items():
        best, cold = float("inf"), 0.0
        for which in ("nothing", "the step", "the loss"):
            torch.manual_seed(0)
            step, loss = stepping(torch, make(torch), kind, fused=True)
            start = time.perf_counter()
            if which == "the step":
                call = torch.compile(step)
            elif which == "the loss":
                call = partial(step, torch.compile(loss))
            else:
                call = step
            try:
                for _ in range(4):
                    call()
            except Exception as error:  # no C++ compiler
                print(f"compile: {type(error).__name__}", file=sys.stderr)
                continue
            first = time.perf_counter() - start
            spent = timed(call, stretch=0.2, repeats=5)
            if spent < best:
                best, cold = spent, first
        found[f"{name}, a step, compiled"] = best
        found[f"{name}, the first four calls, compiled"] = cold
    return found


def optimizers(torch) -> dict:
    """A step over 100 parameters of 32 x 32 each."""
    found = {}
    for kind in OPTIMIZERS:
        parameters = [torch.rand(32, 32).requires_grad_() for _ in range(100)]
        for p in parameters:
            p.grad = torch.rand(32, 32)
        optimizer = getattr(torch.optim, kind)(parameters, lr=1e-3)
        found[f"{kind}, a step of 100 x 32 x 32"] = timed(optimizer.step)
    return found


class Numbered:
    """10,000 samples of 64 numbers."""

    def __init__(self, torch):
        self.rows = torch.rand(10_000, 64)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return self.rows[i], i


def loading(torch) -> dict:
    """Two worker processes over 10,000 samples; files of 500 MB, mapped."""
    loader = torch.utils.data.DataLoader(Numbered(torch), batch_size=100, num_workers=2)

    def epoch():
        for _ in loader:
            pass

    found = {"DataLoader, 2 processes, 10,000 samples": timed(epoch, stretch=0.5, repeats=3)}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "state.pt")
        state = {f"weight{i}": torch.rand(1 << 20) for i in range(125)}
        for name, zipped in {"": True, ", the format of before 1.6": False}.items():

            def save(zipped=zipped):
                torch.save(state, path, _use_new_zipfile_serialization=zipped)

            found[f"torch.save of 500 MB{name}"] = timed(save, stretch=0.5, repeats=3)
            found[f"torch.load of 500 MB{name}"] = timed(lambda: torch.load(path), stretch=0.5, repeats=3)
        torch.save(state, path)

        def load():
            return sum(float(t[-1]) for t in torch.load(path, mmap=True).values())

        found["torch.load of 500 MB, mapped"] = timed(load, stretch=0.2, repeats=3)
    return found


def short_rows(torch) -> dict:
    """Softmax of short rows, and of scores under a mask; reductions, scans, copies and products of few elements each, tiny matrices."""
    short, scores = torch.rand(65536, 16), torch.rand(32, 64, 64)
    wide, heads, rows = torch.rand(65536, 24), torch.rand(8, 256, 8 * 64), torch.randint(0, 4096, (65536,))
    flags, square, ends = short > 0.5, torch.rand(16384, 4, 4), torch.rand(65536, 4)
    columns, classes = torch.rand(16, 65536), torch.rand(65536, 10)
    hidden = torch.ones(64, 64, dtype=torch.bool).triu(1)
    return {
        "softmax(1), 65536 x 16": timed(lambda: torch.softmax(short, 1)),
        "softmax(-1) of masked 32 x 64 x 64": timed(
            lambda: torch.softmax(scores.masked_fill(hidden, float("-inf")), -1)
        ),
        "log_softmax(1), 65536 x 10": timed(lambda: torch.log_softmax(classes, 1)),
        "softmax(0), 16 x 65536": timed(lambda: torch.softmax(columns, 0)),
        "logsumexp(1), 65536 x 16": timed(lambda: torch.logsumexp(short, 1)),
        "logsumexp(1), 65536 x 10": timed(lambda: torch.logsumexp(classes, 1)),
        "logsumexp(0), 16 x 65536": timed(lambda: torch.logsumexp(columns, 0)),
        "amax(1), 65536 x 4": timed(lambda: ends.amax(1)),
        "sum(1), 65536 x 4": timed(lambda: ends.sum(1)),
        "flip(1), 65536 x 16": timed(lambda: short.flip(1)),
        "sum(1), 65536 x 16": timed(lambda: short.sum(1)),
        "sum(1) of bool, 65536 x 16": timed(lambda: flags.sum(1)),
        "max(1), 65536 x 16": timed(lambda: short.max(1)),
        "cumsum(1), 65536 x 16": timed(lambda: short.cumsum(1)),
        "16,384 products of 4 x 4": timed(lambda: square @ square),
        "65536 x 4 by a vector": timed(lambda: ends @ ends[0]),
        "einsum of rows, 65536 x 16": timed(lambda: torch.einsum("bi,bi->b", short, short)),
        "contiguous, 65536 x 16 of 24": timed(lambda: wide[:, :16].contiguous()),
        "heads of attention, 8 x 256 x 8 x 64": timed(lambda: heads.view(8, 256, 8, 64).transpose(1, 2).contiguous()),
        "index_select of 65536 rows of 16": timed(lambda: short.index_select(0, rows)),
        "x + x[:, :1], 65536 x 16": timed(lambda: short + short[:, :1]),
        "one_hot of 65536 in 16": timed(lambda: torch.nn.functional.one_hot(rows % 16, 16)),
        "det, 16,384 of 4 x 4": timed(lambda: torch.linalg.det(square)),
        "inv, 16,384 of 4 x 4": timed(lambda: torch.linalg.inv(square)),
    }


def peaks(torch) -> dict:
    """The most memory that steps of the char-GPT, once they have settled, take beyond what is there before (Linux), in bytes."""
    found = {}
    for name in ("", ", compiled"):
        out = subprocess.run([sys.executable, __file__, torch.__name__, name], capture_output=True, text=True)
        if not out.returncode:
            found[f"memory: char-GPT, 4 layers of 128, steps{name}"] = int(out.stdout)
    return found


def peak(torch, compiled: bool) -> int:
    """In a process in which nothing has run before."""
    status = Path("/proc/self/status")

    def now(what):
        line = next(x for x in status.read_text().splitlines() if x.startswith(what))
        return int(line.split()[1]) * 1024

    step = stepping(torch, gpt(torch, 128), "AdamW")[0]
    step = torch.compile(step) if compiled else step
    before = now("VmRSS")
    for _ in range(5):
        step()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    for _ in range(10):
        step()
    return now("VmHWM") - before


PARTS = (programs, compiled_programs, optimizers, loading, short_rows, peaks)

if __name__ == "__main__":
    print(peak(importlib.import_module(sys.argv[1]), bool(sys.argv[2])))
