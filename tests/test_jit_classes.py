"""Programs with blocks, classes, `super()` and quantised layers, written as archives of TorchScript and read again."""

import copy
import dataclasses
import enum
import io
from typing import NamedTuple  # noqa: UP035

import pytest
from support import archives, target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="rustgrad's translation")
torch = target.torch
nn, Tensor = torch.nn, torch.Tensor


def archived(obj):
    file = io.BytesIO()
    torch.jit.save(obj, file)
    file.seek(0)
    return torch.jit.load(file)


def check(obj, *args):
    read = archived(torch.jit.script(obj))
    archives.same(read(*copy.deepcopy(args)), plain(obj(*copy.deepcopy(args))))
    return read


def plain(value):
    if isinstance(value, (tuple, list)):
        return (tuple if isinstance(value, tuple) else list)(map(plain, value))
    return value.detach() if isinstance(value, Tensor) else value


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

    def __add__(self, other: "Counter") -> "Counter":
        return Counter(self.count + other.count)

    def __getitem__(self, at: int) -> int:
        return self.seen[at]


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

    @property
    def double(self):
        return self.layer.weight * 2


class Blocks(Base):
    def forward(self, x):
        with torch.no_grad():
            y = self.layer(x)
        with torch.autocast("cpu", dtype=torch.bfloat16), torch.profiler.record_function("block"):
            z = torch.mm(x, x)
        return y, z, super().forward(x) + self.double


def test_blocks_and_super():
    read = check(Blocks(), torch.randn(3, 3))
    y, z, w = read(torch.randn(3, 3))
    assert not y.requires_grad and z.dtype == torch.bfloat16 and w.requires_grad and torch.is_grad_enabled()


class Classes(nn.Module):
    point: Point

    def __init__(self):
        super().__init__()
        self.point, self.colour, self.counter = Point(torch.ones(2), 4), Colour.GREEN, Counter(3)

    def forward(self, x, given: Point, k: int, other: Point | None = None):
        c = Counter(1) + self.counter
        c.add(k)
        size = Size(c.add(5))
        colour = Colour.RED if k > 1 else self.colour
        if colour == Colour.RED:
            x = x + size.high
        if other is not None:
            x = x + other.at
        made = Point(x + given.at + self.point.at * self.colour.value, weight=c[0])
        return made, colour.name, size == Size(11), Point(x)


def test_classes_of_the_program():
    net, x = Classes(), torch.zeros(2)
    read = check(net, x, Point(torch.ones(2)), 2)
    assert read.colour.name == "GREEN" and read.point.weight == 4 and read.counter.count == 3
    check(net, x, Point(torch.ones(2)), 1, Point(x + 1, 2))


def test_members_of_enumerations_are_taken_by_name():
    def f(c: Colour):
        return c == Colour.RED

    read = archived(torch.jit.script(f))
    assert read(Colour.RED) and not read(Colour.GREEN)
    other = enum.Enum("Other", {"RED": 5})
    with pytest.raises(RuntimeError, match="Expected a value of type '.*Colour'"):
        read(other.RED)


def test_types_in_comments_and_comprehensions():
    def f(x, y, k):
        # type: (Tensor, Optional[Tensor], List[int]) -> Dict[str, int]
        if y is not None:
            x = x + y
        pairs = {str(i): v for i, v in enumerate(k)}
        pairs["sum"] = int(x.sum())
        return pairs

    def g(k: list[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for s in [v + "!" for v in k]:
            found[s] = len(s)
        return found

    check(f, torch.ones(2), None, [3, 4])
    check(f, torch.ones(2), torch.ones(2), [3])
    check(g, ["a", "bc"])


def test_objects_of_the_program_are_taken_by_the_name_of_their_class():
    def f(c: Counter, n: int) -> int:
        return c.add(n) + c[0]

    read = archived(torch.jit.script(f))
    assert read(Counter(3), 4) == 11
    with pytest.raises(RuntimeError, match="Expected a value of type '.*Counter'"):
        read(Size(1), 4)


def test_an_assignment_to_several_names_computes_once():
    def f(x: Tensor):
        a = b = x.add_(1)
        d = dict(k=1, m=2)  # noqa: C408
        return a, b, dict([("z", 1)], y=2), d

    check(f, torch.ones(1))


def test_questions_for_generic_types():
    def f(x: list[int], y: dict[str, int] | None) -> int:
        if torch.jit.isinstance(y, dict[str, int]):
            return len(y)
        return len(x) if torch.jit.isinstance(x, list[int]) else 7

    check(f, [1, 2], None)
    check(f, [1, 2], {"a": 1})


@dataclasses.dataclass(order=True)
class Version:
    major: int
    minor: int = 0


def test_dataclasses_are_compared():
    def f(a: int, b: int) -> tuple[bool, bool, bool, bool]:
        x, y = Version(a, b), Version(1, 2)
        return x < y, x <= y, x > y, x == y

    for a, b in ((1, 1), (1, 2), (2, 0)):
        check(f, a, b)


class Inner(nn.Module):
    def forward(self, x):
        return x + 1

    @torch.jit.export
    def size(self) -> int:
        return 3


def test_exported_methods_of_submodules():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            return self.inner(x)

    assert check(Outer(), torch.ones(1)).inner.size() == 3


class Unknown(nn.Module):
    def forward(self, x):
        with torch.inference_mode():
            return x + 1


def test_blocks_that_have_no_form():
    with pytest.raises(RuntimeError, match="TorchScript has no such block"):
        archived(torch.jit.script(Unknown()))


def weighted(layer, *size, bias=None):
    weight = torch.quantize_per_tensor(torch.randn(*size), 0.03, 0, torch.qint8)
    layer.set_weight_bias(weight, torch.randn(bias) if bias else None)
    layer.scale, layer.zero_point = 0.1, 60
    return layer


def between(*layers):
    q = torch.ao.nn.quantized
    return nn.Sequential(q.Quantize(torch.tensor(0.05), torch.tensor(10), torch.quint8), *layers, q.DeQuantize()).eval()


def dynamic(layer):
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(layer), {type(layer)})


MADE = {
    "conv1d": lambda q: (between(weighted(q.Conv1d(3, 4, 3, padding=1), 4, 3, 3, bias=4)), (2, 3, 8)),
    "conv2d": lambda q: (between(weighted(q.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), 4, 3, 3, 3)), (2, 3, 6, 6)),
    "transposed": lambda q: (between(weighted(q.ConvTranspose2d(2, 4, 3, stride=2), 2, 4, 3, 3)), (2, 2, 3, 3)),
    "linear": lambda q: (between(weighted(q.Linear(5, 3), 3, 5, bias=3)), (2, 5)),
    "dynamic": lambda q: (dynamic(nn.Linear(5, 3)), (2, 5)),
    "lstm": lambda q: (dynamic(nn.LSTM(4, 3, num_layers=2, batch_first=True)), (2, 5, 4)),
    "gru": lambda q: (dynamic(nn.GRU(4, 3, bidirectional=True)), (2, 5, 4)),
    "cell": lambda q: (dynamic(nn.LSTMCell(4, 3)), (2, 4)),
}  # fmt: skip


@pytest.mark.parametrize("name", list(MADE))
def test_packed_weights(name):
    net, size = MADE[name](torch.ao.nn.quantized)
    x = torch.rand(size)
    for made in (torch.jit.script(net), torch.jit.trace(net, x)):
        again = archived(archived(made))
        archives.same(again(x), net(x))
    assert isinstance(torch.jit.trace(net, x), torch.jit.ScriptModule)


def test_quantised_tensors_are_traced():
    def f(x):
        return torch.relu(torch.quantize_per_tensor(x, 0.1, 0, torch.quint8)).view(-1).dequantize()

    traced, x = torch.jit.trace(f, torch.rand(2, 3)), torch.tensor([[0.5, -1.0], [3.0, 0.25]])
    assert isinstance(traced, torch.jit.ScriptFunction) and torch.equal(archived(traced)(x), f(x))
