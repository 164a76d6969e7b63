"""Export to ONNX: models run in onnxruntime with the figures they have here, at other sizes too, or the export says why not."""

import inspect
import io
import math
import subprocess
import sys
import threading
import warnings

import pytest
from support import target
from support.exported import Of, same

onnx = pytest.importorskip("onnx", reason="the package onnx writes the files")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported models")
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="rustgrad's exporter")

torch = target.torch
nn, F = torch.nn, torch.nn.functional
Error = torch.onnx.OnnxExporterError


def export(function, *args, **options):
    module = function if isinstance(function, nn.Module) else Of(function)
    return torch.onnx.export(module.eval(), args, **options)


def kinds(program):
    return [node.op_type for node in program.model.graph.node]


def sizes(value):
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


# --- models


class Block(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c, self.d = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.short = nn.Conv2d(i, o, 1, stride) if stride > 1 else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.d(self.c(self.relu(self.b(self.a(x)))))
        y += self.short(x)
        return self.relu(y)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.pool = nn.Conv2d(3, 8, 7, 2, 3), nn.MaxPool2d(3, 2, 1)
        self.layers, self.out = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2)), nn.Linear(16, 10)

    def forward(self, x):
        return self.out(torch.flatten(F.adaptive_avg_pool2d(self.layers(self.pool(self.stem(x))), 1), 1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        part = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o), nn.SiLU())
        self.down, self.inner = part(3, 8), part(8, 16)
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(24, 3, 1)

    def forward(self, x):
        a = self.down(x)
        b = self.inner(F.max_pool2d(a, 2))
        wide = F.interpolate(b, size=a.shape[-2:], mode="bilinear")[:, :8]
        return self.out(torch.cat([self.up(b), a, wide], 1))


class Attention(nn.Module):
    """Causal self-attention written out."""

    def __init__(self, width, heads, longest, fused):
        super().__init__()
        self.qkv, self.out, self.heads, self.fused = nn.Linear(width, 3 * width), nn.Linear(width, width), heads, fused
        self.register_buffer("mask", torch.tril(torch.ones(longest, longest)).view(1, 1, longest, longest))

    def forward(self, x):
        b, t, c = x.size()
        q, k, v = (p.view(b, t, self.heads, c // self.heads).transpose(1, 2) for p in self.qkv(x).split(c, dim=2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(c // self.heads))
            y = F.softmax(scores.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf")), dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(b, t, c))


class GPT(nn.Module):
    def __init__(self, fused):
        super().__init__()
        self.longest, self.token, self.place = 16, nn.Embedding(50, 32), nn.Embedding(16, 32)
        self.norm, self.attention, self.last = nn.LayerNorm(32), Attention(32, 4, 16, fused), nn.LayerNorm(32)
        self.head = nn.Linear(32, 50, bias=False)
        self.token.weight = self.head.weight

    def forward(self, ids):
        b, t = ids.size()
        assert t <= self.longest
        x = self.token(ids) + self.place(torch.arange(0, t, device=ids.device))
        x = self.last(x + self.attention(self.norm(x)))
        return self.head(x), self.head(x[:, [-1], :])


class Tagger(nn.Module):
    def __init__(self, kind, both):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.rnn = getattr(nn, kind)(8, 6, 2, bidirectional=both, batch_first=both)
        self.out = nn.Linear(12 if both else 6, 5)

    def forward(self, ids):
        y, h = self.rnn(self.embed(ids))
        return self.out(y), h


class ViT(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch, self.start = nn.Conv2d(3, 16, 4, 4), nn.Parameter(torch.randn(1, 1, 16))
        self.place = nn.Parameter(torch.randn(1, 17, 16))
        layer = nn.TransformerEncoderLayer(16, 2, 32, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.start.expand(x.shape[0], -1, -1), x], 1) + self.place
        return self.encoder(x)[:, 0]


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.embed = nn.Transformer(16, 2, 1, 1, 32, batch_first=True), nn.Embedding(50, 16)

    def forward(self, source, wanted):
        mask = nn.Transformer.generate_square_subsequent_mask(wanted.shape[1])
        return self.net(self.embed(source), self.embed(wanted), tgt_mask=mask)


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 5), nn.GRUCell(5, 5), nn.RNNCell(5, 5)

    def forward(self, x):
        h = c = g = torch.zeros(x.size(1), 5)
        rows = []
        for t in range(x.size(0)):
            h, c = self.lstm(x[t], (h, c))
            g = self.gru(h, g)
            rows.append(self.rnn(g))
        return torch.stack(rows)


def ids(*shape):
    return torch.randint(0, 50, shape)


BATCH = {"dynamic_shapes": ({0: "batch"},)}
IMAGE = {"dynamic_shapes": ({0: "batch", 2: "height", 3: "width"},)}
TEXT = {"dynamic_shapes": ({0: "batch", 1: "length"},)}
MODELS = {
    "mlp": (lambda: nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), (2, 4), [(7, 4), (1, 4)], BATCH),
    "resnet": (ResNet, (2, 3, 64, 64), [(5, 3, 64, 64), (1, 3, 96, 80)], IMAGE),
    "unet": (UNet, (2, 3, 16, 16), [(1, 3, 32, 24)], IMAGE),
    "vit": (ViT, (2, 3, 16, 16), [(5, 3, 16, 16)], BATCH),
    "cells": (Cells, (3, 2, 4), [(3, 7, 4)], {"dynamic_shapes": ({1: "batch"},)}),
    "conv3d": (
        lambda: nn.Sequential(
            nn.Conv3d(2, 4, 3, padding=1), nn.InstanceNorm3d(4, affine=True), nn.ConvTranspose3d(4, 2, 2, 2)
        ),
        (2, 2, 4, 4, 4),
        [(1, 2, 6, 4, 8)],
        {"dynamic_shapes": ({0: "batch", 2: "depth", 4: "width"},)},
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    make, shape, more, options = MODELS[name]
    same(make(), (torch.randn(*shape),), [(torch.randn(*s),) for s in more], **options)


@pytest.mark.parametrize("fused", [False, True])
def test_a_language_model_with_tied_weights(fused):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # it asserts that the text is not too long
        program = same(GPT(fused), (ids(2, 8),), [(ids(3, 16),), (ids(1, 2),)], **TEXT)
    names = [t.name for t in program.model.graph.initializer]
    assert len([t for t in program.model.graph.initializer if list(t.dims) == [50, 32]]) == 1
    assert {"place.weight", "norm.bias", "attention.qkv.weight"} <= set(names)
    assert [sizes(o) for o in program.model.graph.output] == [["batch", "length", 50], ["batch", 1, 50]]


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_models(kind, both):
    program = same(Tagger(kind, both), (ids(3, 4),), [(ids(7, 2),)], dynamic_shapes=({0: "a", 1: "b"},))
    assert kinds(program).count(kind) == 2


def test_two_inputs_of_other_lengths():
    options = {"dynamic_shapes": ({0: "batch", 1: "source"}, {0: "batch", 1: "wanted"})}
    same(Translator(), (ids(2, 5), ids(2, 4)), [(ids(3, 7), ids(3, 6))], **options)


def test_attention_with_masked_keys():
    attention = nn.MultiheadAttention(8, 2, batch_first=True)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x, mask):
            return self.attention(x, x, x, key_padding_mask=mask)

    masks = [
        torch.tensor([[False] * 5, [False] * 3 + [True] * 2]),
        torch.tensor([[False] * 4, [True] * 4, [False] * 4]),
    ]
    axes = {0: "batch", 1: "length"}
    more = [(torch.randn(3, 4, 8), masks[1])]
    same(Net(), (torch.randn(2, 5, 8), masks[0]), more, dynamic_shapes=(axes, axes))


def test_attention_functions():
    q = torch.randn(2, 3, 5, 8)
    attend = F.scaled_dot_product_attention
    functions = [
        lambda q: attend(q, q, q, attn_mask=torch.eye(5).bool()),
        lambda q: attend(q, q, q, attn_mask=q[..., :5]),
        lambda q: attend(q, q, q, attn_mask=q[..., :5] > 9),
        lambda q: attend(q, q, q, scale=0.3, is_causal=True),
        lambda q: attend(q.repeat(1, 2, 1, 1), q, q, enable_gqa=True),
    ]
    for function in functions:
        same(function, (q,), [(torch.randn(4, 3, 5, 8),)], **BATCH)


# --- what the file says


def test_names_shapes_and_producer(capsys):
    module = Of(lambda a, b: (a + b, (a * b).sum(1))).eval()
    options = {
        "dynamic_axes": {"p": {0: "rows"}, "q": [0]},
        "input_names": ["p", "q"],
        "output_names": ["total", "add"],
    }
    with pytest.raises(Error, match="so they cannot vary"):
        torch.onnx.export(module, (torch.ones(3, 4), torch.ones(3, 4)), **options)
    options["dynamic_axes"]["q"] = {0: "rows"}
    model = torch.onnx.export(module, (torch.ones(3, 4), torch.ones(3, 4)), **options).model
    assert [(i.name, sizes(i)) for i in model.graph.input] == [("p", ["rows", 4]), ("q", ["rows", 4])]
    assert [(o.name, sizes(o)) for o in model.graph.output] == [("total", ["rows", 4]), ("add", ["rows"])]
    assert model.producer_name == "rustgrad" and model.opset_import[0].version == 20
    linear = export(nn.Linear(4, 2), torch.ones(3, 4)).model.graph
    assert [t.name for t in linear.initializer] == ["weight", "bias"]
    assert [(n.op_type, n.doc_string) for n in linear.node] == [("Gemm", "")]
    linear = export(nn.Linear(4, 2), torch.ones(3, 4), verbose=True).model.graph
    assert "test_onnx.py" in linear.node[0].doc_string and "Gemm" in capsys.readouterr().out


def test_containers_numbers_and_names_of_arguments():
    class Net(nn.Module):
        def forward(self, d, items, flag=True, n=2):
            return {"o": d["a"] + items[0] * n if flag else items[1], "z": (d["b"], None)}

    x = torch.randn(3, 4)
    program = torch.onnx.export(
        Net().eval(),
        ({"a": x, "b": x}, [x, x]),
        kwargs={"n": 3},
        dynamic_shapes={"d": {"a": {0: "n"}, "b": {0: "n"}}, "items": [{0: "n"}, {0: "n"}], "n": None},
    )
    assert [i.name for i in program.model.graph.input] == ["d_a", "d_b", "items_0", "items_1"]
    y = torch.randn(5, 4)
    total, b = program({"a": y, "b": y + 1}, [y, y])
    torch.testing.assert_close(total, y * 4)
    torch.testing.assert_close(b, y + 1)


def test_files(tmp_path):
    x, linear = torch.randn(3, 400), nn.Linear(400, 20).eval()
    path, file = tmp_path / "a.onnx", io.BytesIO()
    assert torch.onnx.export(linear, x, path, dynamo=False) is None
    assert torch.onnx.export(linear, (x,), file, verify=True) is not None
    assert path.read_bytes() == file.getvalue()
    (got,) = ort.InferenceSession(path).run(None, {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), linear(x).detach())
    program = torch.onnx.export(linear, (x,))
    program.save(tmp_path / "b.onnx", external_data=True)
    assert (tmp_path / "b.onnx.data").stat().st_size == 400 * 20 * 4 and (tmp_path / "b.onnx").stat().st_size < 1000
    (got,) = ort.InferenceSession(tmp_path / "b.onnx").run(None, {"input": x.numpy()})
    torch.testing.assert_close(torch.from_numpy(got), linear(x).detach())
    with pytest.raises(TypeError, match="needs a path"):
        program.save(io.BytesIO(), external_data=True)
    program.save(path, include_initializers=False, keep_initializers_as_inputs=True)
    graph = onnx.load(path).graph
    assert [i.name for i in graph.input] == ["input", "weight", "bias"] and not graph.initializer
    program.apply_weights({"bias": linear.bias + 1})
    torch.testing.assert_close(program(x)[0], linear(x).detach() + 1)


def test_values_inside_and_the_reference():
    x, net = torch.randn(3, 4), nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    program = export(net, x)
    torch.testing.assert_close(program.call_reference(x)[0], net(x).detach())
    (inner,) = program.compute_values(["linear"], (x,))
    torch.testing.assert_close(inner, net[0](x).detach())


def test_weights_of_a_recurrent_layer_that_are_inputs():
    gru = nn.GRU(4, 3)
    weights = [p.detach() for p in gru.parameters()]
    functional = lambda x, w: torch.gru(x, torch.zeros(1, 2, 3), [w, *weights[1:]], True, 1, 0.0, False, False, False)
    same(functional, (torch.randn(5, 2, 4), weights[0]), [(torch.randn(5, 2, 4), weights[0] + 1)])
    bias = lambda x, b: torch.gru(x, torch.zeros(1, 2, 3), [*weights[:3], b], True, 1, 0.0, False, False, False)
    same(bias, (torch.randn(5, 2, 4), weights[3]), [(torch.randn(5, 2, 4), weights[3] + 1)])


def test_options_are_pytorch_s():
    names = list(inspect.signature(torch.onnx.export).parameters)
    assert names[:3] == ["model", "args", "f"] and {
        "dynamo",
        "dynamic_shapes",
        "custom_opsets",
        "autograd_inlining",
    } <= set(names)
    linear = nn.Linear(2, 2).eval()
    with pytest.raises(TypeError, match="unexpected keyword argument 'foo'"):
        torch.onnx.export(linear, torch.ones(1, 2), foo=1)
    with pytest.raises(Error, match="Unsupported ONNX opset version: 9; expected 13 to 23"):
        torch.onnx.export(linear, torch.ones(1, 2), opset_version=9)
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="Provided key y for dynamic axes is not a valid"):
        torch.onnx.export(linear, torch.ones(1, 2), input_names=["x"], output_names=["z"], dynamic_axes={"y": {0: "n"}})
    with pytest.raises(Error, match="input 'x' has 2 dimensions; got the dynamic dimension 3"):
        torch.onnx.export(linear, torch.ones(1, 2), input_names=["x"], dynamic_axes={"x": {3: "n"}})
    with pytest.raises(Error, match=r"dynamic_shapes names \['y'\], which are no arguments; expected \['input'\]"):
        torch.onnx.export(linear, torch.ones(1, 2), dynamic_shapes={"y": {0: "n"}})
    for names in (["a", "a"], ["weight"], ["input"]):
        with pytest.raises(Error, match="output_names"):
            torch.onnx.export(linear, torch.ones(1, 2), output_names=names)
    Dim = torch.export.Dim
    for dim, name in ((Dim("rows", min=2, max=90), "rows"), (Dim.DYNAMIC, "input_dim_0"), ("n", "n"), (Dim.STATIC, 3)):
        graph = torch.onnx.export(linear, torch.ones(3, 2), dynamic_shapes={"input": {0: dim}}).model.graph
        assert sizes(graph.output[0]) == [name, 2]


# --- what is recorded, and what is refused


def test_the_model_is_left_as_it_was():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(4)
            self.register_buffer("calls", torch.zeros(()))
            self.register_buffer("mean", torch.zeros(()))

        def forward(self, x):
            assert torch.onnx.is_in_onnx_export() and torch.compiler.is_exporting()
            self.calls += 1
            self.mean = self.mean + x.mean()
            return self.norm(x) + self.calls + self.mean

    net = Net().train()
    before = {name: t.clone() for name, t in net.state_dict().items()}
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="in training mode"):
        program = torch.onnx.export(net, (torch.randn(3, 4),))
    assert "BatchNormalization" not in kinds(program) and net.training
    torch.onnx.export(net, (torch.randn(3, 4),), io.BytesIO(), dynamo=False)
    assert net.training and not torch.onnx.is_in_onnx_export()
    assert all(torch.equal(t, before[name]) for name, t in net.state_dict().items())
    with pytest.raises(ZeroDivisionError):
        export(lambda x: 1 / 0, torch.ones(2))
    assert not torch.onnx.is_in_onnx_export()


def test_elements_that_python_reads():
    x = torch.randn(3, 4)
    for function in (
        lambda a: a / a.max().item(),
        lambda a: a + torch.from_numpy(a.numpy() * 2),
        lambda a: a + torch.tensor(a.tolist()),
    ):
        with pytest.raises(Error, match=r"depends on .* elements .* looks at values at .*test_onnx.py:\d+"):
            export(function, x)
    with pytest.warns(torch.jit.TracerWarning, match="'__bool__' at .*test_onnx.py"):
        program = export(lambda a: a * 2 if (a * a).sum() > 0 else a, x)
    assert kinds(program) == ["Mul"]


def test_sizes_that_cannot_be_expressed():
    x, both = torch.randn(6, 8), {"dynamic_shapes": ({0: "b", 1: "n"},)}
    with pytest.raises(Error, match="more ops in one run.*make the size static"):
        export(lambda a: sum(a[:, i] for i in range(a.shape[1])), x, **both)
    with pytest.raises(Error, match="'div' .* an argument is 2.828.* in one run and"):
        export(lambda a: a / math.sqrt(a.shape[1]), x, **both)
    with pytest.raises(Error, match="fails with other sizes than {'b': 6, 'n': 8}"):
        export(lambda a: a + torch.ones(6, 1), x, **both)
    with pytest.raises(Error, match="'median' at .*: a median that depends on a varying size"):
        export(lambda a: a.median(1)[0], x, **both)
    with pytest.warns(torch.jit.TracerWarning, match="compares a size that varies"):
        export(lambda a: a[:, : min(a.shape[1], 3)], x, **both)


def test_sizes_that_are_computed():
    x, both = torch.randn(6, 8), {"dynamic_shapes": ({0: "b", 1: "n"},)}
    others = [(torch.randn(9, 10),), (torch.randn(7, 13),)]
    for function in (
        lambda a: F.pad(a, (0, (-a.shape[1]) % 4)),
        lambda a: a[:, : math.ceil(a.shape[1] / 2)],
        lambda a: a.unsqueeze(1).repeat(1, a.shape[1], 1).view(a.shape[0] * a.shape[1], -1),
        lambda a: torch.zeros(a.shape) + torch.full(a.size(), 2.0) + a.new_ones(*a.shape[:1], 1),
        lambda a: a / a.shape[1] + torch.arange(a.shape[1] * 2)[::2] / torch.tensor(a.shape)[1],
        lambda a: (a @ a.T).masked_fill(torch.ones(len(a), len(a), dtype=torch.bool).triu(1), -1e9).softmax(-1),
    ):
        same(function, (x,), others, **both)


def test_results_that_are_inputs_constants_or_the_same():
    w = nn.Parameter(torch.randn(4))
    x = torch.randn(3, 4)
    same(lambda a: (a, w, torch.ones(3), a + w, (y := a * 2), y), (x,))
    same(lambda a, b: a * 2, (x, x))
    with pytest.raises(Error, match="returns no tensor"):
        export(lambda a: 3, x)


def test_wrapped_models():
    x = torch.randn(3, 4)
    weight_norm = torch.nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
    same(weight_norm, (x,))
    compiled = torch.compile(nn.Linear(4, 3).eval())
    for _ in range(5):
        compiled(x)
    assert kinds(same(compiled, (x,))) == ["Gemm"]

    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a.clone().mul_(3)

    same(lambda a: Triple.apply(a) + 1, (x,))
    cache = {}
    same(lambda a: a * cache.setdefault("ones", torch.ones(4)), (x,))


def test_half_types():
    net = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4))
    same(net.half(), (torch.randn(3, 4).half(),), tolerance=2e-3)
    onnx.checker.check_model(export(net.bfloat16(), torch.randn(3, 4).bfloat16()).model, full_check=True)

    def casts(a):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.linear(a, torch.ones(3, 4)).float()

    assert kinds(export(casts, torch.ones(2, 4)))[-1] == "Cast"


def test_translations_of_programs():
    x = torch.randn(3)
    try:

        @torch.library.custom_op("onnx_test::twice", mutates_args=())
        def twice(a: torch.Tensor) -> torch.Tensor:
            return a * 2

        call = lambda a: torch.ops.onnx_test.twice(a) + 1
        assert kinds(same(call, (x,))) == ["Mul", "Add"]
        double = torch.ops.onnx_test.twice
        assert kinds(export(call, x, custom_translation_table={double: lambda g, a: g.op("my::Twice", a)})) == [
            "Twice",
            "Add",
        ]
        torch.onnx.register_custom_op_symbolic("onnx_test::twice", lambda g, a: g.op("Add", a, a), 13)
        assert kinds(same(call, (x,))) == ["Add", "Add"]
    finally:
        torch.onnx.unregister_custom_op_symbolic("onnx_test::twice", 13)
    attention = nn.MultiheadAttention(4, 2)
    whole = {F.multi_head_attention_forward: lambda g, q, *rest, **options: (g.op("my::Attention", q), None)}
    module = Of(lambda q: attention(q, q, q, need_weights=False)[0])
    assert kinds(export(module, torch.randn(3, 1, 4), custom_translation_table=whole)) == ["Attention"]
    table = {torch.special.i0: lambda g, a: g.op("my.ops::I0", a, alpha_f=1.0)}
    model = export(lambda a: torch.special.i0(a), x, custom_translation_table=table, custom_opsets={"my.ops": 3}).model
    assert [(n.domain, n.op_type, n.attribute[0].f) for n in model.graph.node] == [("my.ops", "I0", 1.0)]
    assert {d.domain: d.version for d in model.opset_import} == {"": 20, "my.ops": 3}
    with pytest.raises(Error, match="must match the format domain::name"):
        torch.onnx.register_custom_op_symbolic("twice", None, 13)


def test_threads_export_apart():
    linear, found = nn.Linear(4, 2).eval(), []
    threads = [threading.Thread(target=lambda: found.append(export(linear, torch.ones(2, 4)))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert [kinds(p) for p in found] == [["Gemm"]] * 4


def test_without_the_package():
    script = "import sys; sys.modules['onnx'] = None\nimport rustgrad as torch\ntorch.onnx.export(torch.nn.Linear(1, 1), torch.ones(1, 1))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (
        "OnnxExporterError: onnx.export: the package 'onnx' is not installed" in done.stderr
        and "pip install onnx" in done.stderr
    )
    script = "import sys, rustgrad\nassert not any(m.startswith('rustgrad.onnx') or m == 'onnx' for m in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


def test_state_that_a_model_writes_in_place():
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(1, 8, 4))

        def forward(self, x):
            self.kept[:, 2:5] = x
            return self.kept * 2

    net, x = Cached(), torch.randn(1, 3, 4)
    program = export(net, x)
    assert not net.kept.any() and [t.name for t in program.model.graph.initializer if t.name == "kept"] == ["kept"]
    torch.testing.assert_close(program(x)[0][:, 2:5], x * 2)


def test_results_that_are_no_tensors():
    class Box:
        pass

    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="results of type Box are left out"):
        assert kinds(export(lambda a: (a + 1, Box(), None, 3), torch.ones(2))) == ["Add"]


def test_arrays_among_the_arguments():
    import numpy as np

    same(lambda a: a * np.float32(2) + np.ones(4, dtype=np.float32), (torch.randn(3, 4),))
    same(lambda a: a[np.array([0, 2])] + torch.tensor(np.arange(4.0, dtype=np.float32)), (torch.randn(3, 4),))
    same(lambda a: a[: torch.tensor(2), np.int64(1)], (torch.randn(3, 4),))


def test_an_example_of_one_row_that_is_a_case_of_its_own():
    def function(a):
        return a.squeeze(0).unsqueeze(0) * 2 + a if a.shape[0] == 1 else a * 3

    warnings.simplefilter("ignore", torch.jit.TracerWarning)
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="other ops in the example, where batch is 1"):
        program = same(function, (torch.randn(1, 4),), [(torch.randn(5, 4),)], **BATCH)
    assert kinds(program) == ["Mul"]
