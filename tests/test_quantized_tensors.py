"""Quantised tensors: printed forms, attributes, views, writes, errors, copies and files. Figures are PyTorch's."""

import copy
import io
import pickle
from pathlib import Path

import pytest
from support import quantized, target
from support.quantized_programs import filled

own = pytest.mark.skipif(target.STAND_IN, reason="PyTorch refuses it, or has no such table")
X = [[-1.0, 0.0, 1.26], [2.0, 3.3, 0.15]]


@pytest.fixture
def q(torch):
    return torch.quantize_per_tensor(torch.tensor(X), 0.1, 10, torch.quint8)


@pytest.fixture
def c(torch):
    return torch.quantize_per_channel(torch.tensor(X), torch.tensor([0.1, 0.2]), torch.tensor([10, 0]), 0, torch.qint8)


def test_printed_forms(torch, q, c):
    assert repr(q) == (
        "tensor([[-1.0000,  0.0000,  1.3000],\n        [ 2.0000,  3.3000,  0.2000]], size=(2, 3), dtype=torch.quint8,\n"
        "       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=10)"
    )
    assert repr(c) == (
        "tensor([[-1.0000,  0.0000,  1.3000],\n        [ 2.0000,  3.2000,  0.2000]], size=(2, 3), dtype=torch.qint8,\n"
        "       quantization_scheme=torch.per_channel_affine,\n       scale=tensor([0.1000, 0.2000], dtype=torch.float64),\n"
        "       zero_point=tensor([10,  0]), axis=0)"
    )
    empty = torch.quantize_per_tensor(torch.zeros(0), 0.1, 1, torch.quint8)
    assert repr(empty) == (
        "tensor([], size=(0,), dtype=torch.quint8,\n       quantization_scheme=torch.per_tensor_affine, scale=0.1, zero_point=1)"
    )
    assert repr(torch.nn.Parameter(q, requires_grad=False)).startswith("Parameter containing:\ntensor([[-1.0000,")
    assert [str(s) for s in (q.qscheme(), c.qscheme())] == ["torch.per_tensor_affine", "torch.per_channel_affine"]


def test_attributes(torch, q, c):
    assert q.is_quantized and not torch.ones(2).is_quantized and q.dtype is torch.quint8 and q.layout is torch.strided
    assert (q.q_scale(), q.q_zero_point(), torch.q_scale(q), torch.q_zero_point(q)) == (0.1, 10, 0.1, 10)
    assert c.q_per_channel_scales().dtype is torch.float64 and c.q_per_channel_zero_points().dtype is torch.int64
    assert c.q_per_channel_axis() == 0 and q.element_size() == 1 and q.nbytes == 6 and q.stride() == (3, 1)
    assert q.type() == "torch.quantized.QUInt8Tensor" and q.int_repr().dtype is torch.uint8
    assert not q.requires_grad and q.is_leaf and q.grad is None and q.data_ptr() != 0 and len(q) == 2
    assert q.storage().dtype is torch.quint8 and q.untyped_storage().tolist() == [0, 10, 23, 30, 43, 12]
    assert q[0, 0].item() == float(q[0, 0]) == -1.0 and int(q[1, 0]) == 2 and bool(q[1, 1])
    assert torch.iinfo(torch.quint8).max == 255


def test_views_share_memory(torch, q):
    for view in (q.t(), q.view(-1), q[:, 1:], q.permute(1, 0), q.unsqueeze(0), q.expand(2, 2, 3), q.chunk(2)[1], q[1]):
        assert view.is_quantized and (view.q_scale(), view.q_zero_point()) == (0.1, 10)
    q.t()[0] = 1.0
    q[1][2] = torch.tensor(25.0)
    assert q.int_repr().tolist() == [[20, 10, 23], [20, 43, 255]]
    q[0] = torch.quantize_per_tensor(torch.tensor([1.0, 2.0, 3.0]), 0.5, 0, torch.quint8)
    assert q.int_repr()[0].tolist() == [20, 30, 40]
    other = q.clone()
    q.fill_(0.5)
    assert q.int_repr().unique().tolist() == [15] and other.int_repr()[0].tolist() == [20, 30, 40]


def test_copies_into(torch, q, c):
    target_ = q.clone()
    target_.copy_(torch.tensor([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]]))
    assert target_.int_repr().tolist() == [[20, 20, 20], [30, 30, 30]]
    other = torch.quantize_per_tensor(torch.tensor(X), 0.5, 1, torch.quint8)
    target_.copy_(other)
    assert target_.q_scale() == 0.5 and target_.equal(other)
    for source, words in ((torch.ones(2, 3, dtype=torch.float64), "kFloat"), (c, "dtype|scheme|scalar_type")):
        with pytest.raises(RuntimeError, match=words):
            q.copy_(source)
    with pytest.raises(RuntimeError, match="Copying from quantized Tensor to non-quantized Tensor is not allowed"):
        torch.ones(2, 3).copy_(q)


def test_channels(torch, c):
    assert c.fill_(1.0).int_repr().tolist() == [[20, 20, 20], [5, 5, 5]]
    c[1, 1] = 3.0
    assert c.int_repr()[1].tolist() == [5, 15, 5]
    for op in (lambda: c.t(), lambda: c.permute(1, 0), lambda: c.transpose(0, 1)):
        with pytest.raises(RuntimeError, match="Setting strides is possible only on uniformly quantized tensor"):
            op()
    with pytest.raises(RuntimeError, match="length of scales must equal to channel, expected 6 got, 2"):
        c.view(-1)
    one = torch.quantize_per_channel(torch.ones(1, 2), torch.ones(1), torch.zeros(1, dtype=torch.long), 0, torch.qint8)
    with pytest.raises(RuntimeError, match="Squeeze is only possible on non-axis dimension"):
        one.squeeze(0)
    assert one.unsqueeze(0).q_per_channel_axis() == 1 and one.unsqueeze(0).squeeze(0).q_per_channel_axis() == 0


def test_errors(torch, q, c):
    x = torch.tensor(X)
    scales, zeros = torch.ones(2), torch.zeros(2, dtype=torch.long)
    for error, words, call in (
        (
            RuntimeError,
            "zero_point 300 is above upper bound",
            lambda: torch.quantize_per_tensor(x, 0.1, 300, torch.quint8),
        ),
        (
            RuntimeError,
            "zero_point -1 is below lower bound",
            lambda: torch.quantize_per_tensor(x, 0.1, -1, torch.quint8),
        ),
        (
            RuntimeError,
            "only works on Float Tensor, got Double",
            lambda: torch.quantize_per_tensor(x.double(), 0.1, 0, torch.quint8),
        ),
        (RuntimeError, "ScalarType Float is not supported", lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.float)),
        (RuntimeError, "expected 3 got, 2", lambda: torch.quantize_per_channel(x, scales, zeros, 1, torch.qint8)),
        (
            RuntimeError,
            "Channel axis out of range",
            lambda: torch.quantize_per_channel(x, scales, zeros, 2, torch.qint8),
        ),
        (RuntimeError, "kPerChannelAffine", lambda: q.q_per_channel_scales()),
        (RuntimeError, "kPerTensorAffine", lambda: c.q_scale()),
        (NotImplementedError, "Could not run 'aten::q_scale'", lambda: x.q_scale()),
        (NotImplementedError, "Could not run 'aten::int_repr'", lambda: torch.int_repr(x)),
        (NotImplementedError, "Could not run 'aten::m(at)?m", lambda: q @ q.t()),
        (NotImplementedError, "Could not run 'aten::exp", lambda: torch.exp(q)),
        (RuntimeError, "quantized", lambda: q.float()),
        (TypeError, "Got unsupported ScalarType QUInt8", lambda: q.numpy()),
        (RuntimeError, "require gradients", lambda: q.requires_grad_()),
        (RuntimeError, "requested resize to", lambda: q.resize(5)),
    ):
        with pytest.raises(error, match=words):
            call()


@own
def test_no_op_reads_the_body(torch, q):
    """What has no rule is an error, as with sparse tensors: the body has no memory."""
    assert torch.Tensor.shape.__get__(q) == (2, 3)
    for name in ("sum", "exp", "cumsum", "argmax", "abs"):
        with pytest.raises((NotImplementedError, TypeError)):
            getattr(torch, name)(q)
    with pytest.raises(TypeError, match="no constructor"):
        type(q)()


def test_copies_and_pickles(torch, q, c):
    for t in (q, c, q.t()):
        for made in (
            copy.copy(t),
            copy.deepcopy(t),
            pickle.loads(pickle.dumps(t)),
            t.clone(),
            t.detach(),
            t.data,
            t.to("cpu"),
        ):
            assert repr(made) == repr(t) and made.equal(t)
    assert (
        not q.equal(c)
        and torch.equal(q, q.clone())
        and not q.equal(torch.quantize_per_tensor(torch.tensor(X), 0.1, 11, torch.quint8))
    )
    file = io.BytesIO()
    torch.save({"q": q, "t": q.t(), "c": c}, file)
    file.seek(0)
    loaded = torch.load(file)
    assert all(loaded[k].equal(t) for k, t in (("q", q), ("t", q.t()), ("c", c)))
    assert loaded["t"].data_ptr() == loaded["q"].data_ptr()


def test_a_file_of_pytorch(torch):
    file = Path(__file__).parent / "golden" / "quantized.pt"
    kept = torch.load(file, weights_only=False)
    x = quantized.numbers(torch, 3, 4)
    t = kept["tensors"]
    assert t["q"].equal(torch.quantize_per_tensor(x, 0.05, 9, torch.quint8)) and t["view"].equal(t["q"].t())
    assert t["view"].data_ptr() == t["q"].data_ptr()
    scales, zeros = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, -2])
    assert t["channels"].equal(torch.quantize_per_channel(x, scales, zeros, 0, torch.qint8))
    assert t["wide"].equal(torch.quantize_per_tensor(x, 0.001, 0, torch.qint32))
    assert t["half bytes"].equal(torch.quantize_per_tensor(x[:, :3], 0.5, 4, torch.quint4x2))
    assert t["scheme"] is torch.per_channel_symmetric and t["dtype"] is torch.qint8
    model = torch.nn.Sequential(filled(torch, torch.nn.LSTM(5, 4)), torch.nn.Linear(4, 2)).eval()
    made = torch.ao.quantization.quantize_dynamic(model)
    want = made[0](quantized.numbers(torch, 4, 3, 5))[0]
    made.load_state_dict(kept["lstm"])
    assert made[0](quantized.numbers(torch, 4, 3, 5))[0].equal(want)


def test_packed_weights_in_files(torch):
    linear = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(filled(torch, torch.nn.Linear(5, 4))))
    x = quantized.numbers(torch, 3, 5)
    file = io.BytesIO()
    torch.save(linear, file)
    file.seek(0)
    assert torch.load(file, weights_only=False)(x).equal(linear(x)) and copy.deepcopy(linear)(x).equal(linear(x))
    file = io.BytesIO()
    torch.save(linear.state_dict(), file)
    file.seek(0)
    other = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(5, 4)))
    other.load_state_dict(torch.load(file))
    assert other(x).equal(linear(x))


def test_fewer_bits(torch):
    ones = torch.ones(1, 5)
    for dtype, bytes_ in ((torch.quint4x2, [51, 51, 3]), (torch.quint2x4, [255, 3])):
        t = torch.quantize_per_tensor(ones, 1.0, 2, dtype)
        assert t.int_repr().tolist() == bytes_ and t.storage().size() == len(bytes_) and t.dequantize().equal(ones)


@own
def test_no_attribute_reads_the_body(q):
    """Each attribute of tensors is an op, which goes through the table, or one that quantised tensors answer, or tells of the shape."""
    import rustgrad

    known = set(
        "size dim ndimension shape ndim layout _cdata is_same_size resolve_conj resolve_neg pin_memory new_tensor __array_priority__ "
        "__array_wrap__ __dlpack_device__ __setstate__ _register _make_subclass _make_wrapper_subclass __torch_dispatch__ record_stream square_ "
        "lu stft istft imag allclose hash_tensor slice_inverse "
        "cholesky eig lstsq qr solve symeig sparse_dim dense_dim sparse_resize_ sparse_resize_and_clear_ resize_as_sparse_ smm sspaddmm "
        "coalesce is_coalesced indices _indices _values _nnz values crow_indices col_indices ccol_indices row_indices is_sparse "
        "is_sparse_csr is_mkldnn is_nested is_mps is_xpu is_xla is_mtia is_maia is_ipu is_vulkan".split()
    )
    own_modules = ("rustgrad.sparse", "rustgrad._quantized")
    answered = {name for base in type(q).__mro__ if base.__module__.startswith(own_modules) for name in vars(base)}
    left = []
    for name, value in vars(rustgrad.Tensor).items():
        slot = type(value).__name__ == "wrapper_descriptor"
        if not (name in known | answered or slot or hasattr(object, name) or type(value).__name__ == "Op"):
            left.append(name)
    assert left == []


@own
def test_products_of_any_size_are_exact(torch):
    """Beyond 2**24 the columns are taken in groups; a convolution is computed in float64."""
    ops, k = torch.ops.quantized, 4096
    weight = torch._make_per_tensor_quantized_tensor(torch.full((2, k), 127, dtype=torch.int8), 1.0, 0)
    x = torch._make_per_tensor_quantized_tensor(torch.full((1, k), 255, dtype=torch.uint8), 1.0, 0)
    packed = ops.linear_prepack(weight)
    assert len(packed._pieces()) == 8 and packed.integers(2).dtype is torch.float64
    x[0, 0] = 254.0
    y = ops.linear(x, packed, 1.0 * (k * 255 * 127 - 127) / 200, 0)
    assert y.int_repr().tolist() == [[200, 200]]
    small = ops.linear_prepack(torch.quantize_per_tensor(torch.ones(2, 8), 1.0, 0, torch.qint8))
    assert len(small._pieces()) == 1 and small.integers(2).dtype is torch.float32


@own
def test_products_of_bytes_are_those_of_floats(torch):
    """Where a weight's zero points are not zero, the sums are those of float products."""
    from rustgrad._quantized import _packed

    gen = torch.Generator().manual_seed(0)
    draw = lambda *shape: torch.randint(-128, 128, shape, generator=gen)  # noqa: E731
    ops = torch.ops.quantized
    for dtype, zero in ((torch.uint8, 128), (torch.int8, -3)):
        x = torch._make_per_tensor_quantized_tensor(
            (draw(2, 5, 9, 7) + zero).clamp(-128 if zero < 0 else 0, 255 if zero > 0 else 127).to(dtype), 0.1, zero
        )
        weight = torch._make_per_tensor_quantized_tensor(draw(6, 5, 3, 2).to(torch.int8), 0.02, 0)
        packed = ops.conv2d_prepack(weight, None, [2, 1], [1, 0], [1, 2], 1)
        made, about = packed.sums(x), _packed.about_zero(x).double()
        assert made.dtype is torch.int32
        want = torch.nn.functional.conv2d(about, weight.int_repr().double(), None, [2, 1], [1, 0], [1, 2])
        assert made.double().equal(want)
        weight = torch._make_per_tensor_quantized_tensor(draw(6, 7).to(torch.int8), 0.02, 0)
        rows = ops.linear_prepack(weight)
        made = rows.sums(x)
        assert made.dtype is torch.int32 and made.double().equal(about @ weight.int_repr().double().t())
    shifted = torch._make_per_tensor_quantized_tensor(draw(6, 7).to(torch.int8), 0.02, 3)
    made = ops.linear_prepack(shifted).sums(x)
    assert made.dtype is torch.float32 and made.double().equal(about @ (shifted.int_repr().double() - 3).t())
    with pytest.raises(RuntimeError, match="number of columns"):
        ops.linear(
            x, ops.linear_prepack(torch._make_per_tensor_quantized_tensor(draw(6, 14).to(torch.int8), 0.02, 0)), 0.1, 0
        )


def test_old_names(torch):
    import importlib

    name = torch.__name__
    for old in ("quantized", "quantized.dynamic", "intrinsic", "qat", "quantizable", "quantized.modules.linear"):
        was, now = (importlib.import_module(f"{name}.{where}.{old}") for where in ("nn", "ao.nn"))
        assert all(getattr(was, n) is getattr(now, n) for n in now.__all__)
    assert torch.quantization.prepare is torch.ao.quantization.prepare
    assert torch.backends.quantized.engine in torch.backends.quantized.supported_engines
    with pytest.raises(RuntimeError, match="engine"):
        torch.backends.quantized.engine = "none of these"


def test_autocast_leaves_products_exact(torch):
    ops = torch.ops.quantized
    weight = torch._make_per_tensor_quantized_tensor(quantized.numbers(torch, 4, 9).to(torch.int8), 0.01, 0)
    x, packed = quantized.quantised(torch, 3, 9), ops.linear_prepack(weight)
    plain = ops.linear(x, packed, 0.05, 100)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ops.linear(x, packed, 0.05, 100).equal(plain)


@own
def test_a_range_that_is_not_finite(torch):
    linear = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    for bad in (float("nan"), float("inf")):
        with pytest.raises(RuntimeError, match="expected a finite range"):
            linear(torch.tensor([[1.0, bad]]))
    assert linear(torch.zeros(0, 2)).shape == (0, 2)
