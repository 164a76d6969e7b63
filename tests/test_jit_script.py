"""Modules and functions given to `script`: themselves, and as archives that compute the same."""

import collections
import copy
import enum
import io
import math
import pickle
import zipfile
from typing import Optional

import numpy as np
import pytest
from support import archives, target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="rustgrad's translation")
torch = target.torch
nn, F, Tensor = torch.nn, torch.nn.functional, torch.Tensor


def archived(obj):
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(obj), file)
    file.seek(0)
    return torch.jit.load(file)


def check(obj, *args):
    read = archived(obj)
    torch.manual_seed(1)
    expected = obj(*copy.deepcopy(args))
    torch.manual_seed(1)
    archives.same(read(*copy.deepcopy(args)), detached(expected))
    return read


def detached(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(detached, value))
    return value.detach() if isinstance(value, torch.Tensor) else value


class Control(nn.Module):
    def __init__(self, use: bool = True):
        super().__init__()
        self.layer, self.use = nn.Linear(4, 4), use
        self.items = nn.ModuleList([nn.Linear(4, 4), nn.ReLU()])
        self.by_name = nn.ModuleDict({"a": nn.Tanh(), "b": nn.Identity()})
        self.register_buffer("total", torch.zeros(4))
        self.calls = 0

    def helper(self, x: Tensor, k: int = 2) -> Tensor:
        if k > 1:
            return x * k
        return x

    def forward(self, x, n: int):
        if self.use:
            x = self.layer(x)
        else:
            x = x - 1
        for i, m in enumerate(self.items):
            x = m(x) * (i + 1)
        for _name, m in self.by_name.items():
            x = m(x)
        acc = torch.zeros_like(x)
        for i in range(n):
            if i % 2 == 0:
                acc = acc + x * i
            elif x.sum() > 0:
                acc = acc - x
            else:
                acc += 1
        while n > 0:
            n -= 1
            if n == 2:
                break
        y = torch.cat([x[:, 1:], x[:, :1]], dim=1)
        z = x.clone()
        z[0], z[1:3, 0] = 1, 5.0
        self.total += x.sum(0).detach()
        self.calls = self.calls + 1
        out: list[Tensor] = []
        for t in [x, y]:
            out.append(t * math.sqrt(2.0))
        assert n >= 0, "negative"
        d = {"q": x}
        d["r"] = y
        return (
            self.helper(acc) + self.helper(x, k=1),
            y.view(-1)[:2],
            z,
            torch.stack(out),
            n,
            f"x{n}",
            [v * 2 for v in [1, 2]],
            x.shape[0],
            x.size(1) if self.training else 0,
            d["r"],
            F.relu(x).mean(dim=1),
        )


@pytest.mark.parametrize("use", [True, False])
def test_control_flow(use):
    read = check(Control(use), torch.randn(5, 4), 5)
    assert read.calls == 1 and read.total.abs().sum() > 0


def with_types(x: Tensor, n: int, names: list[str], o: Optional[Tensor] = None) -> tuple[Tensor, int]:  # noqa: UP045
    if o is None:
        o = torch.ones(4)
    for name in names:
        n = n + len(name)
    if n > 100:
        raise ValueError(f"too large {n}")
    return twice(torch.where(x > 0, x, torch.zeros_like(x))) + o, n


def twice(x: Tensor) -> Tensor:
    return x * 2


def test_functions():
    read = check(with_types, torch.randn(5, 4), 3, ["a", "bc"])
    with pytest.raises(torch.jit.Error, match="ValueError: too large"):
        read(torch.randn(5, 4), 1000, ["a"])
    assert torch.jit.script(with_types) is with_types and callable(with_types.save)
    assert pickle.loads(pickle.dumps(with_types)) is with_types


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.heads = nn.Linear(8, 24), 2
        self.register_buffer("mask", torch.tril(torch.ones(5, 5)))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.project(x).split(C, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        scores = scores.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        return (F.softmax(scores, dim=-1) @ v).transpose(1, 2).contiguous().view(B, T, C)


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2)
        self.group, self.mean, self.up = (
            nn.GroupNorm(2, 8),
            nn.AdaptiveAvgPool2d((1, 1)),
            nn.ConvTranspose2d(8, 8, 2, stride=2),
        )
        self.acts, self.last = nn.Sequential(nn.GELU(), nn.SiLU(), nn.LeakyReLU(0.1), nn.Dropout(0.3)), nn.Linear(8, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.norm(self.conv(x))))
        x = self.acts(self.up(self.group(x)))
        return F.log_softmax(self.last(torch.flatten(self.mean(x), 1)), dim=1)


class First(nn.Module):
    """The first result of a layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


class Own(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x, x)[0]


MODELS = {
    "attention": (Attention, (2, 5, 8)),
    "convolutions": (Convolutions, (2, 3, 8, 8)),
    "inference": (lambda: Convolutions().eval(), (2, 3, 8, 8)),
    "lstm": (lambda: First(nn.LSTM(4, 6, 2, batch_first=True, bidirectional=True)), (3, 7, 4)),
    "gru": (lambda: First(nn.GRU(4, 6)), (3, 7, 4)),
    "rnn": (lambda: First(nn.RNN(4, 6, nonlinearity="relu")), (7, 4)),
    "multihead": (lambda: Own(nn.MultiheadAttention(8, 2)), (5, 2, 8)),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval(),
        (2, 5, 8),
    ),
    "norm first": (lambda: nn.TransformerEncoderLayer(8, 2, 16, norm_first=True, activation="gelu").eval(), (2, 5, 8)),
    "instance": (lambda: nn.InstanceNorm1d(4, affine=True, track_running_stats=True), (2, 4, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    make, shape = MODELS[name]
    check(make(), torch.randn(shape))


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if torch.jit.is_scripting():
            return self.layer(x) * 1.0
        return self.layer(x)

    @torch.jit.export
    def more(self, x: Tensor, k: int = 2) -> Tensor:
        return self.layer(x) * k

    @torch.jit.unused
    def left_out(self, x: Tensor) -> Tensor:
        return x


def test_a_scripted_module_is_itself():
    net = Parts()
    x = torch.randn(2, 4)
    assert torch.jit.script(net) is net and type(net) is Parts
    assert (
        "self.layer.forward(x)" in net.code
        and net.original_name == "Parts"
        and net.graph.findAllNodes("prim::CallMethod")
    )
    assert torch.equal(pickle.loads(pickle.dumps(net))(x), net(x))
    read = torch.jit.load(io.BytesIO(net.save_to_buffer()))
    assert torch.equal(read.more(x, 3), net.more(x, 3))
    for other in (nn.Linear(2, 2), copy.deepcopy(net)):
        with pytest.raises(AttributeError, match="save"):
            torch.jit.save(other, io.BytesIO())
        assert not hasattr(other, "save") and not hasattr(other, "code")


class Refused(nn.Module):
    def forward(self, x):
        return [v for v in x if v > 0]


class Ignoring(nn.Module):
    def forward(self, x):
        return self.python(x)

    @torch.jit.ignore
    def python(self, x):
        return x


def test_what_has_no_form_names_the_line():
    line = Refused.forward.__code__.co_firstlineno + 1
    with pytest.raises(RuntimeError, match=rf"test_jit_script.py:{line}: '.*for v in x if"):
        archived(Refused())
    with pytest.raises(RuntimeError, match="python is ignored"):
        archived(Ignoring())


class Quantised(nn.Module):
    def __init__(self):
        super().__init__()
        scales, zeros = torch.tensor([0.1, 0.2]), torch.tensor([0, 1])
        self.register_buffer("w", torch.quantize_per_tensor(torch.tensor([0.5, 1.0, -1.0]), 0.1, 3, torch.qint8))
        self.register_buffer("v", torch.quantize_per_channel(torch.ones(3, 2), scales, zeros, 1, torch.quint8))

    def forward(self, x: Tensor):
        q = torch.quantize_per_tensor(x, 0.1, 2, torch.quint8)
        return self.w.dequantize() + torch.dequantize(q), q.int_repr(), q.q_scale(), q.q_zero_point(), q.is_quantized


def test_quantised_tensors_in_archives():
    module, x = Quantised(), torch.tensor([0.0, 0.26, 1.0])
    read = archived(module)
    for name in ("w", "v"):
        kept, found = getattr(module, name), getattr(read, name)
        assert found.dtype == kept.dtype and found.qscheme() == kept.qscheme()
        assert torch.equal(found.int_repr(), kept.int_repr()) and torch.equal(found.dequantize(), kept.dequantize())
    assert read.w.q_scale() == 0.1 and read.w.q_zero_point() == 3 and read.v.q_per_channel_axis() == 1
    expected, got = module(x), read(x)
    assert torch.equal(got[0], expected[0]) and got[1].tolist() == [2, 5, 12] and got[2:] == (0.1, 2, True)


def test_quantising_by_channels_in_archives():
    def by_channel(x: Tensor, scales: Tensor, zeros: Tensor):
        return torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8).dequantize()

    args = torch.tensor([[0.0], [0.26], [1.0]]), torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0, 0, 1])
    assert torch.equal(archived(by_channel)(*args), by_channel(*args))


@pytest.mark.parametrize(
    "make",
    [
        lambda q: q.Quantize(0.1, 0, torch.quint8),
        lambda q: q.BatchNorm2d(3),
        lambda q: q.ReLU6(),
        lambda q: q.Hardswish(0.1, 0),
        lambda q: q.ELU(0.1, 0),
        lambda q: q.Sigmoid(0.1, 0),
        lambda q: q.LeakyReLU(0.1, 0),
        lambda q: q.LayerNorm((3, 4, 4), nn.Parameter(torch.ones(3, 4, 4)), nn.Parameter(torch.zeros(3, 4, 4)), 0.1, 0),
    ],
)
def test_quantised_layers_in_archives(make):
    model = nn.Sequential(torch.ao.nn.quantized.Quantize(0.05, 10, torch.quint8), make(torch.ao.nn.quantized))
    model = model[1:] if isinstance(model[1], torch.ao.nn.quantized.Quantize) else model
    model = nn.Sequential(*model, torch.ao.nn.quantized.DeQuantize()).eval()
    for x in (torch.rand(2, 3, 4, 4), torch.linspace(-2.0, 2.0, 96).view(2, 3, 4, 4)):
        assert torch.equal(archived(model)(x), model(x))


def test_not_stands_apart_from_names_that_start_with_in():
    """PyTorch's reader takes `not inner` for `not in ner`."""

    def f(x: Tensor, inner: bool):
        return x * 2 if not inner else x

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(f), file)
    with zipfile.ZipFile(file) as archive:
        code = archive.read(next(n for n in archive.namelist() if n.endswith(".py"))).decode()
    assert "not (inner)" in code and "not inner" not in code
    read = archived(f)
    assert read(torch.ones(1), False).item() == 2 and read(torch.ones(1), True).item() == 1


def test_parameters_of_an_archive_are_those_that_it_computes_with():
    x = torch.randn(2, 3, 3)
    read = archived(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    assert read(x).requires_grad
    read(x).sum().backward()
    assert all(p.grad is not None for p in read.parameters())
    read.load_state_dict({"0.weight": torch.zeros(2, 3), "0.bias": torch.full((2,), 3.0)})
    assert torch.equal(read(x), torch.full((2, 3, 2), 3.0))


class Colour(enum.IntEnum):
    RED = 1


class Closed:
    def __getattr__(self, name):
        raise KeyError(name)


class Described(nn.Module):
    names: list[str]
    none_yet: list[int]

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.rate, self.scale, self.flag, self.title = 16000, 2.5, True, 'say "a"'
        self.names, self.none_yet, self.sizes, self.limit = ["yes", "no"], [], (1, 2.5), float("inf")
        self.table, self.maybe, self.shift, self.calls = {"a": 1}, None, torch.ones(2), 0
        self.unknown, self.closed, self.large, self.nothing = object(), Closed(), 2**70, ()
        self.ratio, self.shape, self.colour = np.float64(0.5), torch.Size([2, 3]), Colour.RED

    def forward(self, x):
        self.calls = self.calls + 1
        return self.layer(x) * self.scale + self.shift + self.table["a"] + len(self.names)


def test_attributes_can_be_read_from_an_archive():
    net = Described()
    read = check(net, torch.randn(3, 2))
    assert (read.rate, read.scale, read.flag, read.title, read.limit) == (16000, 2.5, True, 'say "a"', math.inf)
    assert (read.names, read.none_yet, read.sizes, read.table, read.maybe) == (
        ["yes", "no"],
        [],
        (1, 2.5),
        {"a": 1},
        None,
    )
    assert read.calls == 1 and torch.equal(read.shift, torch.ones(2)) and read.layer.in_features == 2
    assert (
        read.ratio == 0.5
        and read.shape == (2, 3)
        and not hasattr(read, "large")
        and read.colour.value == net.colour.value
    )
    assert not hasattr(read, "unknown") and not hasattr(read, "closed")
    with pytest.raises(AttributeError, match="Cannot mutate TorchScript constant value: 'rate'"):
        read.rate = 8000
    again = io.BytesIO()
    torch.jit.save(read, again)
    again.seek(0)
    assert torch.jit.load(again).names == ["yes", "no"]


def test_a_tensor_that_requires_grad_is_no_constant():
    weight = torch.ones(2, requires_grad=True)

    class Outside(nn.Module):
        def forward(self, x):
            return x * weight

    with pytest.raises(RuntimeError, match="'weight' has no form .* requires grad"):
        archived(Outside())


class Store(nn.Module):
    table: dict[str, Tensor]

    def __init__(self):
        super().__init__()
        self.table, self.seen, self.sizes = {}, [0], {"a": 1}

    @torch.jit.export
    def put(this, key: str, value: Tensor) -> int:  # noqa: N805
        this.table[key] = value
        this.seen.append(len(this.table))
        this.sizes[key] = 5
        return len(this.table)

    @torch.jit.export
    def sums(this) -> tuple[int, int]:  # noqa: N805
        return sum(this.seen), this.sizes["k"]

    def forward(self, x):
        return x + self.table["k"]


def test_attributes_whose_items_change_are_no_constants():
    read = archived(Store())
    assert read.put("k", torch.ones(2)) == 1 and read.put("l", torch.ones(2)) == 2
    assert read.seen == [0, 1, 2] and read.sizes == {"a": 1, "k": 5, "l": 5} and read.sums() == (3, 5)
    assert torch.equal(read(torch.zeros(2)), torch.ones(2))
    read.table = {"k": torch.zeros(2)}
    assert torch.equal(read(torch.zeros(2)), torch.zeros(2))


class Unpacking(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 4)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        (first,) = (h,)
        return y, first, c


def test_tuples_in_tuples_are_unpacked():
    check(Unpacking(), torch.randn(5, 2, 3))


class Held(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(3)])
        self.named = nn.ParameterDict({"a": nn.Parameter(torch.ones(3))})

    def forward(self, x):
        for p in self.rows:
            x = x + p
        return x * self.rows[-1] + self.named["a"]


class Beyond(Held):
    def forward(self, x):
        return x + self.rows[3]


def test_lists_of_parameters():
    read = check(Held(), torch.randn(2, 3))
    assert read(torch.ones(3)).requires_grad and len(list(read.parameters())) == 4
    with pytest.raises(RuntimeError, match=r"self.rows\[3\]' has no form .* no such item"):
        archived(Beyond())


class Resized(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.smooth = nn.Upsample(scale_factor=2), nn.Upsample(size=(3, 5), mode="bicubic", align_corners=True)

    def forward(self, x, like):
        return (
            self.up(x),
            self.up(x[0]),
            self.smooth(x),
            F.interpolate(x, size=like.shape[-2:], mode="bilinear"),
            F.interpolate(x, size=(like.size(2), 3)),
            F.interpolate(x, scale_factor=[2.0, 3.0], mode="nearest-exact"),
            F.interpolate(x, size=[2, 2], mode="area"),
            F.interpolate(x[0], size=7, mode="linear"),
            list(range(2, like.size(2), 2)),
        )


def test_resizing():
    check(Resized(), torch.randn(1, 2, 4, 6), torch.randn(1, 1, 7, 5))


class Collecting(nn.Module):
    def forward(self, x):
        found, rows, n = collections.OrderedDict(), list(), 0  # noqa: C408
        named = dict()  # noqa: C408
        for i in range(3):
            found["a" + str(i)] = x + i
            rows.append(x * i)
            named.update({"b": x})
            n += 1
        return found["a2"], torch.stack(rows), len(named), n


def test_containers_that_start_empty_are_filled():
    check(Collecting(), torch.randn(2))


def test_scripted_functions_and_submodules_show_their_code():
    @torch.jit.script
    def doubled(x: torch.Tensor, n: int = 2):
        if bool(x.sum() > 0):
            x = x * n
        return x

    assert "x = (x * n)" in str(doubled.code) and doubled.code.startswith("def doubled(x: Tensor, n: int=2)")
    assert doubled.graph.findNode("aten::mul").inputs()[1].debugName() == "n" and "aten::gt" in str(doubled.graph)
    assert str(doubled.schema).startswith("doubled(Tensor x, int n=2)")
    assert doubled(torch.ones(2)).tolist() == [2, 2]
    net = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert "linear" in net[0].code and not hasattr(nn.Linear(2, 2), "code")
