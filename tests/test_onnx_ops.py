"""Translations of ops to ONNX: onnxruntime computes what the op does, for the exported size and for others."""

import pytest
from support import target
from support.exported import Of, same, tensors

pytest.importorskip("onnx", reason="the package onnx writes the files")
pytest.importorskip("onnxruntime", reason="onnxruntime runs the exported models")
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="rustgrad's exporter")

torch = target.torch
F = torch.nn.functional
INDEX = torch.tensor([0, 2, 1])
MASK = torch.tensor([True, False, True, True])

ONE = """abs neg sign exp sqrt floor ceil sin cos tan sinh cosh asinh erf tanh sigmoid round rsqrt log log2 log10 log1p expm1 exp2
    erfc square trunc frac reciprocal isnan isinf isfinite nan_to_num deg2rad relu sinc signbit sum mean prod amax amin max min
    argmax argmin std var norm count_nonzero"""
FUNCTIONS = "relu relu6 elu selu celu gelu silu mish leaky_relu hardtanh hardsigmoid hardswish softplus softsign tanhshrink hardshrink softshrink logsigmoid glu"


def check(function, *shapes, opset=None):
    """Compares for these shapes, and for more of the first dimension, which varies."""
    torch.manual_seed(0)
    args = tuple(torch.randn(*s) for s in shapes)
    more = tuple(torch.randn(5, *s[1:]) for s in shapes)
    same(function, args, [more], dynamic_shapes=tuple({0: "n"} for _ in shapes), opset_version=opset)


@pytest.mark.parametrize("name", ONE.split())
def test_functions_of_one_tensor(name):
    positive = name in "sqrt rsqrt log log2 log10 log1p reciprocal".split()
    function = getattr(torch, name)
    check(lambda x: function(x.abs() + 0.1 if positive else x * 3), (3, 4, 6))


@pytest.mark.parametrize("opset", [13, 20])
@pytest.mark.parametrize("name", FUNCTIONS.split())
def test_activations(name, opset):
    check(lambda x: getattr(F, name)(x), (3, 4, 6), opset=opset)


BINARY = {
    "add": lambda a, b: a + b - b * 3,
    "reflected": lambda a, b: 2 - a / 4 + 1 / (b.abs() + 1) + 2**a,
    "alpha": lambda a, b: torch.add(a, b, alpha=0.5) - torch.sub(a, b, alpha=2),
    "div": lambda a, b: (a / (b.abs() + 1), a // (b.abs() + 0.5), a % (b.abs() + 0.5), torch.fmod(a, b.abs() + 0.5)),
    "trunc": lambda a, b: torch.div(a, b.abs() + 0.3, rounding_mode="trunc"),
    "pow": lambda a, b: (a.abs() + 0.1) ** b + a**2 + a**3,
    "extremes": lambda a, b: (torch.maximum(a, b), torch.minimum(a, b), torch.atan2(a, b), torch.hypot(a, b)),
    "compare": lambda a, b: (a > b, a <= b, a != b, a == a, a >= 0),
    "logic": lambda a, b: (a > 0) & (b > 0) | ~(a > b) ^ (b < 1),
    "where": lambda a, b: (torch.where(a > b, a, 0.0), a.where(b > 0, -a), torch.where(a > b, 1, 0)),
    "lerp": lambda a, b: (torch.lerp(a, b, 0.3), torch.addcmul(a, a, b, value=0.5), torch.addcdiv(a, a, b.abs() + 1)),
    "in place": lambda a, b: a.clone().add_(b).mul_(2).clamp_(-1, 1),
    "promotion": lambda a, b: (a.long() + b, a.double() * b, (a > 0) * b, a.int() / 2, a.int() // 3, a.int() % 3),
    "casts": lambda a, b: (a.long(), a.bool(), a.to(torch.float64), b.type_as(a.int()), (a * 9).to(torch.int8) * 3),
    "losses": lambda a, b: (F.mse_loss(a, b), F.l1_loss(a, b), F.smooth_l1_loss(a, b), F.huber_loss(a, b, delta=0.5)),
    "bce": lambda a, b: (
        F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
        F.binary_cross_entropy_with_logits(a, b.sigmoid()),
    ),
    "distances": lambda a, b: (F.cosine_similarity(a, b, dim=-1), F.pairwise_distance(a, b), torch.cdist(a, b)),
    "copysign": lambda a, b: (
        torch.copysign(a, b),
        torch.xlogy(a, b.abs()),
        torch.isclose(a, b),
        torch.logaddexp(a, b),
    ),
    "cross": lambda a, b: torch.cross(a[..., :3], b[..., :3], dim=-1),
    "products": lambda a, b: (
        a @ b.mT,
        torch.bmm(a, b.mT),
        torch.einsum("bij,bkj->bik", a, b),
        torch.tensordot(a, b, 3),
    ),
    "aten": lambda a, b: torch.ops.aten.relu(a) + torch.ops.aten.add.Tensor(a, b),
}


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_tensors(name):
    check(BINARY[name], (3, 4, 6), (3, 4, 6))


REDUCE = {
    "sum": lambda a: (a.sum(1), a.sum((0, 2), keepdim=True), a.mean(-1), a.prod(1), (a > 0).sum()),
    "max": lambda a: (*a.max(1), *torch.min(a, dim=2, keepdim=True), a.amax((1, 2)), *torch.aminmax(a, dim=1)),
    "arg": lambda a: (a.argmax(1), a.argmin(-1, keepdim=True), a.argmax()),
    "var": lambda a: (
        a.var(1),
        a.std(-1, unbiased=False),
        torch.var(a, dim=1, correction=0),
        *torch.std_mean(a, (1, 2)),
    ),
    "any": lambda a: ((a > 0).any(1), (a > -9).all()),
    "norm": lambda a: (a.norm(dim=1), a.norm(1, dim=-1), torch.linalg.vector_norm(a, 3, dim=1), F.normalize(a, dim=-1)),
    "scan": lambda a: (a.cumsum(1), a.cumsum(0), a.cumprod(1), a.logcumsumexp(1), a.diff(dim=1)),
    "sort": lambda a: (*a.sort(1), *torch.sort(a, descending=True), a.argsort(-1), *a.topk(2), *a.kthvalue(2, 1)),
    "sort all": lambda a: a.sort(0),
    "softmax": lambda a: (F.softmax(a, -1), F.log_softmax(a, 1), a.logsumexp(1), F.softmin(a, 1)),
    "norms": lambda a: (F.layer_norm(a, (6,)), F.group_norm(a, 2), F.instance_norm(a), F.rms_norm(a, (6,))),
    "batch norm": lambda a: (
        F.batch_norm(a, torch.zeros(4), torch.ones(4)),
        F.batch_norm(a, None, None, training=True),
    ),
}


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("name", REDUCE)
def test_reductions(name, opset):
    check(REDUCE[name], (3, 4, 6), opset=opset)


SHAPES = {
    "view": lambda a: (a.view(a.size(0), -1), a.reshape(-1, 6), a.flatten(1), a.flatten(), torch.flatten(a, 0, 1)),
    "unflatten": lambda a: (a.unflatten(1, (2, 2)), a.flatten(0, 1).unflatten(0, (-1, 4)), a.view(-1).view(len(a), -1)),
    "transpose": lambda a: (
        a.mT,
        a[:, 0].t(),
        a.transpose(0, 2),
        a.permute(2, 0, 1),
        a.movedim(0, -1),
        a.swapaxes(0, 1),
    ),
    "expand": lambda a: (a[:, None].expand(-1, 3, -1, -1), a[:1].expand(a.shape[0], 4, 6), a[:, :1].expand_as(a)),
    "repeat": lambda a: (a.repeat(2, 1, 2, 1), torch.tile(a, (2,)), a.repeat_interleave(3, dim=1)),
    "join": lambda a: (torch.cat([a, a * 2], 1), torch.cat([a, a]), torch.stack([a, a], -1), torch.hstack([a, a])),
    "split": lambda a: (
        *a.split(3, dim=1),
        *torch.split(a, [1, 3], 1),
        *a.chunk(2, -1),
        *a.unbind(1),
        *a.tensor_split(3, -1),
    ),
    "squeeze": lambda a: (a[:, :1].squeeze(1), a[:, :1].squeeze(), a.unsqueeze(-1), a.select(1, -1), a.narrow(1, 1, 2)),
    "diagonal": lambda a: (
        a.diagonal(1, 1, 2),
        a.diagonal(-1, 1, 2),
        torch.diag_embed(a),
        torch.diag(a[0, 0]),
        a[0].trace(),
    ),
    "turn": lambda a: (
        a.flip(0, 2),
        a.roll(2, 1),
        torch.roll(a, (1, -2), (0, 2)),
        a.roll(3),
        torch.rot90(a, 1, (1, 2)),
    ),
    "pad": lambda a: (
        F.pad(a, (1, 2)),
        F.pad(a, (-1, 2)),
        F.pad(a, (1, 0, 2, 1), value=3.0),
        F.pad(a, (2, 1), "reflect"),
    ),
    "pad modes": lambda a: (F.pad(a, (2, 1), "replicate"), F.pad(a, (2, 1), "circular")),
    "triangle": lambda a: (a.tril(), a.triu(1), torch.ones(len(a), len(a), dtype=torch.bool).tril()),
    "windows": lambda a: (a.unfold(2, 3, 1), a.unfold(1, 2, 2)),
    "grid": lambda a: torch.meshgrid(a[0, 0], a[0, :, 0], indexing="xy"),
    "loop": lambda a: (sum(t for t in a[0]), [u * 2 for u in a.transpose(0, 1)]),
}
INDEXING = {
    "basic": lambda a: (a[0], a[-1], a[1:], a[:, 1:-1], a[:, ::2], a[..., 0], a[None, :, None], a[0, :, None, 1:3]),
    "tensors": lambda a: (a[:, INDEX], a[INDEX[:2], INDEX[1:]], a[:, INDEX, INDEX], a[INDEX[:2], :, INDEX[1:]]),
    "broadcast": lambda a: (
        a[:, INDEX.view(3, 1)],
        a[:, INDEX.view(3, 1), INDEX],
        a[:, [0, -1]],
        a[0, INDEX],
        a[:, None, INDEX],
    ),
    "masks": lambda a: (a[a > 0], a[:, MASK], a[a[:, 0, 0] > -9], a.masked_select(a > 0), (a > 0).nonzero()),
    "where": lambda a: (*torch.where(a > 0), *torch.nonzero(a > 0, as_tuple=True)),
    "gather": lambda a: (a.gather(1, a.argsort(1)), torch.take_along_dim(a, a.argsort(1), 1), a.index_select(1, INDEX)),
    "rows": lambda a: a[torch.arange(a.shape[0]), 0],
    "classes": lambda a: (F.one_hot(a.argmax(-1), 6), F.embedding(a.argmax(-1), torch.arange(12.0).view(6, 2))),
    "search": lambda a: (
        torch.bucketize(a, torch.tensor([-1.0, 0.0, 1.0])),
        torch.isin(a.round(), torch.tensor([0.0, 1.0])),
    ),
}
CREATE = {
    "arange": lambda a: a + torch.arange(a.size(0))[:, None, None] + torch.arange(0, 6, 1.0),
    "zeros": lambda a: torch.zeros(a.size(0), 2) + a[:, 0, :2] + torch.ones_like(a)[:, 0, :2],
    "full": lambda a: torch.full((a.shape[0], 3), 2.5) * a[:, 0, :3] + a.new_zeros(a.shape[0], 3),
    "line": lambda a: (torch.linspace(0, 1, a.size(0)) * a[:, 0, 0], torch.eye(a.size(0))),
    "numbers": lambda a: (a / torch.tensor(a.shape[0]), a / a.numel(), a / len(a)),
    "slices": lambda a: (a[: a.shape[0] - 1], a[: a.shape[0] // 2], a[: int(a.shape[0] * 0.5)]),
}


@pytest.mark.parametrize("name", [*SHAPES, *INDEXING, *CREATE])
def test_shapes_indices_and_new_tensors(name):
    check({**SHAPES, **INDEXING, **CREATE}[name], (3, 4, 6))


def written(write):
    def function(a):
        a = a.clone()
        write(a)
        return a

    return function


WRITES = {
    "int": lambda a: a.__setitem__(0, 1.0),
    "slice": lambda a: a.__setitem__((slice(None), slice(1, 3)), a[:, :2] * 2),
    "step": lambda a: a.__setitem__((slice(None), slice(0, 4, 2)), 1.0),
    "mask": lambda a: a.__setitem__(a > 0, 0.0),
    "mask values": lambda a: a.__setitem__(a > 0, a[a > 0] * 2),
    "index": lambda a: a.__setitem__((slice(None), INDEX), 7.0),
    "last": lambda a: a.__setitem__((..., -1), a[..., 0]),
    "all": lambda a: a.__setitem__(slice(None), 5.0),
    "put": lambda a: a.index_put_((torch.tensor([0, 0]),), torch.ones(4, 6), accumulate=True),
    "scatter": lambda a: a.scatter_(1, torch.zeros(1, 1, 6, dtype=torch.long), 9.0),
    "scatter_add": lambda a: a.scatter_add_(1, a.argsort(1), a.clone()),
    "scatter_reduce": lambda a: a.scatter_reduce_(1, a.argsort(1), a.clone(), "amax"),
    "index_add": lambda a: a.index_add_(1, torch.tensor([0, 0]), torch.ones(a.shape[0], 2, 6)),
    "index_copy": lambda a: a.index_copy_(1, torch.tensor([0, 2]), torch.ones(a.shape[0], 2, 6)),
    "masked_scatter": lambda a: a.masked_scatter_(a > 0, torch.arange(200.0)),
    "view": lambda a: a[:, 0].zero_(),
    "view of view": lambda a: a[:, 1:][:, :, ::2].mul_(0.0),
    "transposed": lambda a: a.transpose(0, 1)[1].add_(1),
    "diagonal": lambda a: a.diagonal(dim1=1, dim2=2).fill_(3.0),
    "chunk": lambda a: a.chunk(2, 1)[1].mul_(3),
    "flat": lambda a: a.view(-1)[::2].zero_(),
    "self": lambda a: a[:, :, 0].copy_(a[:, :, 1]),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_in_place(name):
    check(written(WRITES[name]), (3, 4, 6))


def test_views_see_writes_and_writes_see_views():
    def function(x):
        y = x.clone()
        row, flat = y[:, 1], y.view(-1)
        row += 1
        flat[::2] = 0
        y.t().add_(row.sum())
        return y, row, flat

    check(function, (3, 4))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_convolutions_and_pools(n):
    size = (8, 6, 5)[:n]
    weight, other_weight = torch.randn(6, 2, *(3,) * n), torch.randn(4, 3, *(3,) * n)
    name = lambda kind: getattr(F, f"{kind}{n}d")
    check(lambda x: name("conv")(x, weight, None, 2, 1, 1, 2), (2, 4, *size))
    check(lambda x: name("conv")(x, weight, padding="same", dilation=2, groups=2), (2, 4, *size))
    check(lambda x: name("conv_transpose")(x, other_weight, torch.ones(6), 2, 1, 1, 2), (2, 4, *size))
    check(lambda x: (name("max_pool")(x, 3, 2, 1, ceil_mode=True), name("max_pool")(x, 2, 1, 0, 2)), (2, 4, *size))
    check(lambda x: name("max_pool")(x, 2, return_indices=True), (2, 4, *size))
    check(lambda x: (name("avg_pool")(x, 3, 2, 1), name("avg_pool")(x, 3, 2, 1, True, False)), (2, 4, *size))
    check(
        lambda x: (name("adaptive_avg_pool")(x, 3), name("adaptive_max_pool")(x, 1), name("adaptive_max_pool")(x, 3)),
        (2, 4, *size),
    )


SIZES = [{"scale_factor": 2}, {"scale_factor": 1.7}, {"size": (11, 9)}, {"size": (5, 3)}]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "area"])
def test_resizing(mode):
    for options in SIZES:
        for align in (False, True) if mode.startswith("bi") else (None,):
            same(
                lambda x, align=align, options=options: F.interpolate(x, mode=mode, align_corners=align, **options),
                (torch.randn(2, 4, 8, 6),),
                tolerance=1e-3,
            )


def test_pixels_and_samples():
    check(lambda x: (F.pixel_shuffle(x, 2), F.pixel_unshuffle(x, 2), F.channel_shuffle(x, 2)), (2, 4, 8, 6))
    check(lambda x: (F.unfold(x, 3, padding=1, stride=2), F.local_response_norm(x, 3)), (2, 4, 8, 6))
    check(lambda x: F.fold(F.unfold(x, 2, stride=2), (8, 6), 2, stride=2), (2, 4, 8, 6))
    grid = torch.linspace(-1.2, 1.2, 24).view(1, 4, 3, 2)
    check(lambda x: F.grid_sample(x, grid.expand(len(x), -1, -1, -1), align_corners=False), (2, 4, 8, 6))
    theta = lambda x: F.affine_grid(x[:, :2, 0, :3], [len(x), 4, 5, 6], align_corners=False)
    check(lambda x: F.grid_sample(x, theta(x), align_corners=False), (2, 4, 8, 6))


@pytest.mark.parametrize("opset", range(13, 24))
def test_each_opset(opset):
    def function(x):
        y = F.softmax(F.gelu(F.layer_norm(x.mean(1, keepdim=True) + x, (6,))).sum(1), -1)
        return y, F.pad(torch.cat(x.chunk(2, 1), 1), (1, 1)).amax(-1), F.hardswish(x), x.std(1)

    program = same(function, (torch.randn(3, 4, 6),), opset_version=opset)
    assert program.model.opset_import[0].version == opset


def test_an_op_without_translation_is_named_with_its_line():
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=r"'special.i0' at .*test_onnx_ops.py:\d+"):
        torch.onnx.export(Of(lambda x: torch.special.i0(x)).eval(), (torch.ones(2),))
    with pytest.raises(torch.onnx.OnnxExporterError, match="'scatter_add' .* Hint: it has one from opset 16 on"):
        torch.onnx.export(Of(lambda x: x.scatter_add(0, INDEX, x)).eval(), (torch.ones(3),), opset_version=13)


TABLES = {
    **SHAPES,
    **INDEXING,
    **CREATE,
    **REDUCE,
    **{f"write {name}": written(write) for name, write in WRITES.items()},
}


@pytest.mark.parametrize("name", TABLES)
def test_where_all_sizes_vary_the_file_is_right_or_there_is_none(name):
    """What cannot be said of other sizes is refused; a file that is written holds for them."""
    module, axes = Of(TABLES[name]).eval(), {0: "a", 1: "b", 2: "c"}
    try:
        program = torch.onnx.export(module, (torch.randn(3, 4, 6),), dynamic_shapes=(axes,))
    except torch.onnx.OnnxExporterError:
        return
    for shape in ((5, 7, 8), (2, 9, 10), (4, 5, 12)):
        x = torch.randn(shape)
        try:
            expected = tensors(module(x))
        except (RuntimeError, ValueError, IndexError):
            continue  # the function is not defined for it
        for a, b in zip(program(x), expected):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, equal_nan=True)
