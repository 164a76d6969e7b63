"""Blocks, classes of the program, and quantised layers, whose archives are recorded."""

# ruff: noqa: B007, UP031, E702
import dataclasses
import enum
from typing import NamedTuple

import torch
import torch.ao.nn.quantized as nnq
from torch import Tensor, nn
from torchscript_cases import save


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        with torch.no_grad():
            y = self.layer(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = torch.mm(x, x)
        with torch.profiler.record_function("block"):
            y = y + self.layer(x)
        return y * z.float()


save("blocks", Blocks(), torch.randn(3, 3))


class Point(NamedTuple):
    at: Tensor
    weight: int = 3


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


@torch.jit.script
@dataclasses.dataclass
class Size:
    wide: int
    high: float = 2.0


@torch.jit.script
class Counter:
    def __init__(self, start: int):
        self.count = start
        self.seen: list[int] = []

    def add(self, n: int) -> int:
        self.count += n
        self.seen.append(n)
        return self.count

    @property
    def double(self) -> int:
        return self.count * 2

    def __add__(self, other: "Counter") -> "Counter":
        return Counter(self.count + other.count)

    def __getitem__(self, at: int) -> int:
        return self.seen[at]


class Classes(nn.Module):
    point: Point

    def __init__(self):
        super().__init__()
        self.point, self.colour = Point(torch.ones(2), 4), Colour.GREEN

    def forward(self, x, given: Point, k: int, other: Point | None = None):
        c = Counter(1) + Counter(2)
        c.add(k)
        size = Size(c.add(5))
        colour = Colour.RED if k > 1 else self.colour
        if colour == Colour.RED:
            x = x + size.high
        if other is not None:
            x = x + other.at
        return Point(x + given.at + self.point.at * self.colour.value, c[0] + c.double), colour.name, size == Size(8)


save("classes", Classes(), torch.zeros(2), Point(torch.ones(2)), 2)


def weighted(layer, *size, bias=None):
    weight = torch.quantize_per_tensor(torch.randn(*size), 0.03, 0, torch.qint8)
    layer.set_weight_bias(weight, torch.randn(bias) if bias else None)
    layer.scale, layer.zero_point = 0.1, 60
    return layer


def net():
    return nn.Sequential(
        nnq.Quantize(torch.tensor(0.05), torch.tensor(10), torch.quint8),
        weighted(nnq.Conv2d(3, 4, 3, groups=1), 4, 3, 3, 3, bias=4),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        weighted(nnq.Linear(36, 2), 2, 36),
        nnq.DeQuantize(),
    ).eval()  # fmt: skip


image = torch.rand(2, 3, 8, 8)
save("quantised_net", net(), image)
save("quantised_trace", torch.jit.trace(net(), image), image)
line = nn.Sequential(
    nnq.Quantize(torch.tensor(0.05), torch.tensor(10), torch.quint8),
    weighted(nnq.Conv1d(3, 4, 3, padding=1), 4, 3, 3, bias=4),
    nnq.DeQuantize(),
)
save("quantised_line", torch.jit.trace(line, torch.rand(2, 3, 8)), torch.rand(2, 3, 8))
recurrent = torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.LSTM(4, 3, bidirectional=True)), {nn.LSTM})
save("quantised_lstm", torch.jit.trace(recurrent, torch.rand(5, 2, 4)), torch.rand(5, 2, 4))
