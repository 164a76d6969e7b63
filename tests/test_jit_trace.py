"""Traces: what runs afterwards, and what an archive holds, is what one call computed."""

import copy
import io
import warnings

import numpy
import pytest
from support import archives, target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="rustgrad's tracer")
torch = target.torch
nn, F = torch.nn, torch.nn.functional


def saved(traced):
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    return torch.jit.load(file)


def check(model, *args, others=(), **options):
    """Traces, compares with the model on the inputs and on others, also after a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        traced = torch.jit.trace(model, args, **options)
    assert isinstance(traced, (torch.jit.ScriptModule, torch.jit.ScriptFunction))
    read = saved(traced)
    for given in (args, *others):
        torch.manual_seed(1)
        expected = model(*given)
        for run in (traced, read):
            torch.manual_seed(1)
            archives.same(detached(run(*given)), detached(expected))
    return traced


def detached(value):
    if isinstance(value, (list, tuple)):
        return type(value)(map(detached, value))
    return {k: detached(v) for k, v in value.items()} if isinstance(value, dict) else value.detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.acts = nn.ModuleList(
            [
                nn.GELU(),
                nn.SiLU(),
                nn.LeakyReLU(0.1),
                nn.ELU(),
                nn.Hardtanh(),
                nn.Softplus(),
                nn.PReLU(),
                nn.ReLU6(True),
                nn.Softsign(),
            ]
        )
        self.mean, self.last, self.drop = nn.AdaptiveAvgPool2d((2, 2)), nn.Linear(16, 5), nn.Dropout(0.5)
        self.register_buffer("scale", torch.ones(5), persistent=False)

    def forward(self, x):
        x = self.up(self.pool(F.relu(self.norm(self.conv(x)))))
        for act in self.acts:
            x = act(x)
        x = F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return F.log_softmax(self.last(self.drop(torch.flatten(self.mean(x), 1))) * self.scale, dim=1)


def test_a_network():
    x = torch.randn(2, 3, 8, 8)
    net = Net().eval()
    traced = check(net, x, others=[(torch.randn(4, 3, 12, 12),)])
    assert type(traced).__name__ == "TopLevelTracedModule" and traced.original_name == "Net"
    assert list(traced.state_dict()) == list(net.state_dict())
    assert traced.conv.weight is net.conv.weight
    assert traced.code.startswith("def forward(self: __torch__") and "torch.conv2d" in traced.code
    traced(x).sum().backward()
    assert net.conv.weight.grad is not None
    # The mode is part of what was recorded.
    assert torch.equal(traced.train()(x), net(x))


def test_training_mode_changes_statistics():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    x = torch.randn(8, 4)
    before = net[1].running_mean.clone()
    traced = check(net, x)
    traced(x)
    assert not torch.equal(net[1].running_mean, before)
    assert getattr(traced, "1").num_batches_tracked is net[1].num_batches_tracked


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent(kind):
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = kind(4, 6, 2, batch_first=True, bidirectional=True)

        def forward(self, x):
            return self.layer(x)[0][:, -1]

    check(Last(), torch.randn(3, 7, 4), others=[(torch.randn(2, 5, 4),)])


def test_transformers():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    check(nn.TransformerEncoder(layer, 2).eval(), torch.randn(2, 5, 8), others=[(torch.randn(3, 4, 8),)])
    check(nn.Transformer(8, 2, 1, 1, 16).eval(), torch.randn(5, 2, 8), torch.randn(4, 2, 8))


def test_writes_and_indices():
    def change(x):
        y = torch.zeros_like(x)
        y[0], y[:, 1] = x[1], 3
        y += x
        y[1:, 2:].fill_(2)
        y[y > 1] = 0.5
        y[[0, 1]] = y[[1, 0]]
        z = y[torch.tensor([0, 1]), :][:, torch.tensor([True, False, True, True])]
        y[:, -1].mul_(2)
        y[1, 2] = x.sum()
        return y, z, y[None, ::2, 1:, ...], y[..., 0]

    check(change, torch.randn(5, 4), others=[(torch.randn(7, 4),)])


def test_sizes_are_computed_again():
    def f(x):
        return x.reshape(x.size(0) * 2, -1) + torch.arange(x.shape[1] // 2), x.new_zeros(x.shape[0], 1)

    traced = check(f, torch.randn(3, 4), others=[(torch.randn(5, 6),)])
    assert "torch.size(x, 0)" in traced.code


def test_many_ops():
    def ops(x):
        ch = x.chunk(2, dim=1)
        return (
            *x.max(1), *x.topk(2, dim=1), x.argsort(1), x.cumsum(0), x.norm(), x.norm(p=2, dim=1, keepdim=True), torch.einsum("ij,kj->ik", x, x),
            ch[0], x.split([1, 3], dim=1)[1], torch.where(x > 0, x, torch.zeros_like(x)), torch.full([2, 3], 1.5), torch.linspace(0, 1, 5),
            F.pad(x, [1, 1]), F.pad(x[None], [1, 1], mode="reflect"), x.masked_fill(x > 0, 0.0), torch.clamp(x, -1, 1), x.std(),
            x.var(dim=1, unbiased=False), x.expand(2, 5, 4), x.repeat(2, 1), x.flip([0]), x.roll(1, 0), x.to(torch.float64), x.half(), x.long(),
            x.logsumexp(1), x % 2, x.abs() ** 2.5, 2**x, 1 - x, 1 / x.abs(), x // 1, F.glu(x, 1), F.normalize(x, dim=1), ~(x > 0), x.T,
            F.interpolate(x[None], size=8, mode="linear"), F.unfold(x[None, None], 2), F.adaptive_max_pool1d(x[None], 2),
            F.avg_pool2d(x[None, None], 2), torch.linalg.inv(torch.eye(2) * 2), torch.fft.rfft(x).abs(), torch.stack([x, x], 1), torch.cat((x, x)),
            torch.cdist(x, x), F.one_hot(torch.tensor([0, 1]), 3), F.layer_norm(x, (4,)), torch.tensordot(x, x, dims=([1], [1])),
            torch.add(x, x, alpha=2), torch.meshgrid(torch.arange(2), torch.arange(3), indexing="ij")[0], F.softshrink(x), F.gelu(x, approximate="tanh"),
        )  # fmt: skip

    check(ops, torch.randn(5, 4))


OPERATORS = {
    "eq": lambda a: a == 2,
    "ne": lambda a: a != 2,
    "lt": lambda a: 2 < a,
    "pos": lambda a: +a,
    "abs": lambda a: abs(a),
    "floor": lambda a: 7 // a,
    "mod": lambda a: 7 % a,
    "minus": lambda a: 7 - a,
    "over": lambda a: 7 / a,
    "power": lambda a: 2**a,
    "or": lambda a: True | (a > 1),
    "xor": lambda a: (a > 1) ^ (a < 3),
    "matmul": lambda a: a[None] @ a[:, None],
    "shift": lambda a: a.long() << 1,
    "in place": lambda a: a.clone().pow_(2).mul_(a).sub_(1),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    check(OPERATORS[name], torch.tensor([1.0, 2.0, 3.0]), others=[(torch.tensor([4.0, 5.0, 2.0]),)])


def test_losses():
    def loss(o, h, t):
        logs = o.log_softmax(1)
        return (
            F.cross_entropy(o, t, label_smoothing=0.1)
            + F.binary_cross_entropy_with_logits(o, h)
            + F.kl_div(logs, h.softmax(1), reduction="batchmean")
            + F.smooth_l1_loss(o, h)
            + F.mse_loss(o, h)
            + F.nll_loss(logs, t)
            + F.l1_loss(o, h, reduction="sum")
            + F.huber_loss(o, h)
            + F.triplet_margin_loss(o, h, h)
        )

    check(loss, torch.randn(5, 3), torch.rand(5, 3), torch.tensor([0, 1, 2, 0, 1]))


def test_containers():
    x = torch.randn(2, 3)
    check(lambda p, items: (p[0] + p[1], items[1]), (x, x), [x, x * 2])
    check(lambda d: {"a": d["x"] * 2, "b": d["y"]}, {"x": x, "y": x}, strict=False)
    with pytest.raises(RuntimeError, match="strict=False"):
        torch.jit.trace(lambda a: [a, a], (x,))
    with pytest.raises(RuntimeError, match="Only tensors"):
        torch.jit.trace(lambda a: "text", (x,))
    with pytest.raises(RuntimeError, match="cannot be traced"):
        torch.jit.trace(lambda a, n: a * n, (x, 3))


def test_arguments_by_name_and_methods():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 3)

        def forward(self, x, y):
            return self.layer(x) - y * torch.tensor([0.5])

        def other(self, x):
            return self.layer(x) * torch.tensor([1.0, 2.0, 3.0]), table

    net, x, table = Two(), torch.randn(2, 3), torch.arange(3)
    by_name = torch.jit.trace(net, example_kwarg_inputs={"y": x, "x": x * 2})
    assert torch.equal(by_name(x=x, y=x), net(x, x))
    both = saved(torch.jit.trace_module(net, {"forward": (x, x), "other": x}))
    archives.same(both.other(x), detached(net.other(x)))
    assert torch.allclose(both(x, x), net(x, x))


def test_values_are_constants():
    def f(x):
        return x * x.sum().item() if x.sum() > 0 else -x

    with pytest.warns(torch.jit.TracerWarning, match="Python value by __bool__"):
        traced = torch.jit.trace(f, torch.ones(2))
    assert traced(-torch.ones(2)).tolist() == [-2.0, -2.0]
    weight = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad as a constant"):
        torch.jit.trace(lambda x: x * weight, torch.ones(2))


def test_what_cannot_be_recorded_is_returned_as_it_is():
    def f(x):
        return F.gaussian_nll_loss(x, x, x) + 1

    with pytest.warns(torch.jit.TracerWarning, match="returned as it is"):
        assert torch.jit.trace(f, torch.ones(2)) is f


def test_autocast_is_not_recorded():
    net = nn.Linear(2, 2)
    with torch.autocast("cpu"), pytest.warns(torch.jit.TracerWarning, match="under autocast"):
        assert torch.jit.trace(net, torch.ones(1, 2)) is net


def test_random_numbers_and_mode():
    net = nn.Dropout(0.5)
    traced = torch.jit.trace(net, torch.ones(100))
    assert 0 < (traced.eval()(torch.ones(100)) == 0).sum() < 100
    seen = []
    torch.jit.trace(lambda x: seen.append(torch.jit.is_tracing()) or x + 1, torch.ones(1))
    assert seen == [True] and not torch.jit.is_tracing()


def test_traces_of_traces():
    traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    assert torch.jit.trace(traced, torch.ones(1, 2)) is traced
    assert torch.jit.freeze(traced.eval())(torch.ones(1, 2)).requires_grad is False


def test_files(tmp_path):
    traced = torch.jit.trace(nn.Linear(2, 2), torch.ones(1, 2))
    path = tmp_path / "net.pt"
    traced.save(path, _extra_files={"note": "text"})
    files = {"note": ""}
    assert torch.equal(torch.jit.load(path, _extra_files=files)(torch.ones(1, 2)), traced(torch.ones(1, 2)))
    assert files == {"note": b"text"}
    assert torch.jit.load(io.BytesIO(traced.save_to_buffer())).original_name == "Linear"
    with pytest.raises(RuntimeError, match="does not exist"):
        traced.save(tmp_path / "no" / "net.pt")
    function = torch.jit.trace(lambda x: x * 2, torch.ones(2))
    function.save(path)
    assert torch.jit.load(path)(torch.ones(2)).tolist() == [2, 2] and function.code.startswith("def _lambda(")


class Ways:
    """Functions that make a tensor on a way that a recording does not see."""

    @staticmethod
    def subclass(x):
        kind = type("Kind", (torch.Tensor,), {})
        return torch.relu(x.as_subclass(kind)).as_subclass(torch.Tensor)

    vmap = staticmethod(lambda x: torch.vmap(lambda row: row.relu() * 2)(x))
    forward_mode = staticmethod(lambda x: torch.func.jvp(torch.sin, (x,), (x,))[1])
    copy = staticmethod(lambda x: copy.deepcopy(x) * 2)
    dlpack = staticmethod(lambda x: torch.from_dlpack(x) * 2)
    numpy = staticmethod(lambda x: torch.from_numpy(x.numpy() * 2) + x)


@pytest.mark.parametrize("way", [name for name in vars(Ways) if not name.startswith("_")])
@pytest.mark.parametrize("module", [False, True])
def test_what_is_not_recorded_is_no_constant(way, module):
    class Holder(torch.nn.Module):
        def forward(self, x):
            return getattr(Ways, way)(x)

    function = Holder() if module else (lambda x: getattr(Ways, way)(x))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        traced = torch.jit.trace(function, torch.rand(2, 3))
    assert any("the function is returned as it is" in str(w.message) for w in seen)
    x = torch.tensor([[0.5, -1.0, 2.0], [3.0, 0.25, -0.5]])
    assert torch.allclose(traced(x), function(x))


def test_constants_from_outside_stay():
    outside, seen = torch.tensor([1.0, 2.0]), []

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(2)
            self.table = [torch.ones(2)]

        def forward(self, x):
            seen.append(x)
            return self.norm(x) * outside + self.table[0] + torch.from_numpy(numpy.arange(2.0, dtype="float32"))

    net = Net()
    traced = torch.jit.trace(net, torch.rand(4, 2))
    assert traced.code.count("CONSTANTS.c") == 3 and len(seen) == 2
    assert net.norm.num_batches_tracked == 0 and torch.equal(net.norm.running_mean, torch.zeros(2))
    net.eval()
    traced, x = torch.jit.trace(net, torch.rand(4, 2)), torch.rand(3, 2)
    assert torch.allclose(traced(x), net(x))


def test_the_graph_of_a_call_knows_shapes_and_scopes():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.up = nn.Conv2d(1, 2, 3), nn.ConvTranspose2d(2, 1, 2)

        def forward(self, x):
            return self.up(self.conv(x).relu_()) * 2

    net, x = Net(), torch.rand(1, 1, 5, 5)
    state = torch._C._get_tracing_state
    for name, part in net.named_modules():
        part.register_forward_pre_hook(lambda m, i, name=name: state() and state().push_scope(name))
        part.register_forward_hook(lambda m, i, o: state() and state().pop_scope())
    graph, out = torch.jit._get_trace_graph(net, x)
    assert state() is None and torch.equal(out, net(x))
    inputs = list(graph.inputs())
    assert [v.type().sizes() for v in inputs] == [[1, 1, 5, 5], [2, 1, 3, 3], [2], [2, 1, 2, 2], [1]]
    conv, relu, up, mul = [n for n in graph.nodes() if n.kind().startswith("aten::")]
    assert [n.scopeName() for n in (conv, relu, up, mul)] == ["/conv", "", "/up", ""]
    assert conv.kind() == up.kind() == "aten::_convolution" and relu.kind() == "aten::relu_"
    assert [n.inputs()[6].toIValue() for n in (conv, up)] == [False, True] and conv.inputsSize() == 13
    [made] = up.outputs()
    assert made.isCompleteTensor() and made.type().sizes() == [1, 1, 4, 4] and made.node() is up
    assert up.inputs()[3].node().kind() == "prim::ListConstruct" and not mul.inputs()[1].isCompleteTensor()
    assert "Float(1, 1, 4, 4, strides=[16, 16, 4, 1], requires_grad=1, device=cpu) = aten::mul" in str(graph)
