"""The tensor as a Python object: sharing memory, copying, identity, printing, attributes, threads."""

import copy
import gc
import io
import pickle
import threading

import numpy as np
import pytest

NUMPY_DTYPES = [
    "bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_numpy_shares_memory_both_ways(torch, dtype):
    array = np.array([[0, 1, 2], [3, 4, 5]]).astype(dtype)
    tensor = torch.from_numpy(array)
    assert tensor.dtype == getattr(torch, dtype) and tensor.shape == (2, 3)
    array[0, 1] = 0
    assert not tensor[0, 1].item()
    back = tensor.numpy()
    tensor[1, 2] = 1
    assert array[1, 2] == back[1, 2] == 1


def test_numpy_keeps_strides_and_life(torch):
    base = np.arange(24.0).reshape(4, 6)
    tensor = torch.from_numpy(base[::2, 1::2].T)
    del base
    gc.collect()
    assert tensor.tolist() == [[1, 13], [3, 15], [5, 17]]
    array = torch.arange(6.0).reshape(2, 3).t().numpy()
    gc.collect()
    assert array.strides == (4, 12) and array.tolist() == [[0, 3], [1, 4], [2, 5]]


def test_numpy_refuses_what_it_cannot_share(torch):
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, requires_grad=True).numpy()
    with pytest.raises(TypeError):
        torch.from_numpy([1, 2])
    with pytest.raises(ValueError, match="negative"):
        torch.from_numpy(np.arange(3)[::-1])
    with pytest.raises(TypeError):
        torch.from_numpy(np.array(["a"]))
    with pytest.raises(TypeError):
        torch.tensor([1.0]).to(torch.bfloat16).numpy()


def test_numpy_protocols(torch):
    tensor = torch.tensor([1.0, 2.0])
    assert np.asarray(tensor).tolist() == [1, 2] and np.asarray(tensor, dtype=np.int64).dtype == np.int64
    assert np.add(tensor.numpy(), 1).tolist() == [2, 3]
    assert torch.tensor(np.float32(3)).item() == 3 and torch.as_tensor(np.arange(3)).tolist() == [0, 1, 2]


def test_dlpack_shares_memory_both_ways(torch):
    tensor = torch.arange(6.0).reshape(2, 3)
    array = np.from_dlpack(tensor)
    tensor[0, 0] = 7
    assert array[0, 0] == 7
    source = np.arange(4.0)
    shared = torch.from_dlpack(source)
    source[1] = 9
    assert shared.tolist() == [0, 9, 2, 3]
    again = torch.from_dlpack(tensor.t())
    again[2, 1] = -1
    assert tensor[1, 2] == -1 and again.stride() == (1, 3)
    with pytest.raises((RuntimeError, BufferError)):
        torch.ones(2, requires_grad=True).__dlpack__()
    assert tensor.__dlpack_device__()[0] == 1


def test_dlpack_capsules_are_freed_once(torch):
    for _ in range(100):
        capsule = torch.ones(1000).__dlpack__()
        del capsule
    kept = [np.from_dlpack(torch.full((1000,), float(i))) for i in range(100)]
    gc.collect()
    assert all((a == i).all() for i, a in enumerate(kept))


@pytest.mark.parametrize("dtype", [*NUMPY_DTYPES, "bfloat16"])
def test_pickle(torch, dtype):
    tensor = torch.tensor([[0, 1, 2], [3, 4, 5]]).to(getattr(torch, dtype)).t()
    back = pickle.loads(pickle.dumps(tensor))
    assert back.dtype == tensor.dtype and back.shape == tensor.shape and back.stride() == tensor.stride()
    assert torch.equal(back, tensor)


def test_pickle_keeps_grad_flags_and_parameters(torch):
    leaf = torch.ones(2, requires_grad=True)
    assert pickle.loads(pickle.dumps(leaf)).requires_grad
    parameter = torch.nn.Parameter(torch.ones(2))
    back = pickle.loads(pickle.dumps(parameter))
    assert isinstance(back, torch.nn.Parameter) and back.requires_grad
    back = pickle.loads(pickle.dumps(leaf * 2))
    assert back.is_leaf and back.requires_grad and back.tolist() == [2, 2]


def test_copies(torch):
    x = torch.ones(2, 3)
    x.note = ["kept"]
    deep = copy.deepcopy(x)
    deep[0, 0] = 5
    assert x[0, 0] == 1 and deep.note == ["kept"] and deep.note is not x.note
    shallow = copy.copy(x)
    assert shallow.data_ptr() == x.data_ptr()
    views = copy.deepcopy([x, x[0]])
    views[0][0, 1] = 8
    assert views[1][1] == 8 and views[0].data_ptr() == views[1].data_ptr()
    with pytest.raises(RuntimeError, match="leaves|leaf|graph leaves"):
        copy.deepcopy(torch.ones(1, requires_grad=True) * 2)


def test_deepcopy_keeps_grad_and_class(torch):
    w = torch.ones(2, requires_grad=True)
    (w * 3).sum().backward()
    twin = copy.deepcopy(w)
    assert twin.grad.tolist() == [3, 3] and twin.grad is not w.grad and twin.requires_grad
    parameter = torch.nn.Parameter(torch.ones(2))
    twin = copy.deepcopy(parameter)
    assert isinstance(twin, torch.nn.Parameter) and twin.data_ptr() != parameter.data_ptr()


def test_save_and_load(torch):
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(3), "n": 1}, buffer)
    buffer.seek(0)
    back = torch.load(buffer)
    assert back["n"] == 1 and back["w"].tolist() == [0, 1, 2]


def test_identity_and_attributes(torch):
    w = torch.ones(2, requires_grad=True)
    y = (w * 2).sum()
    y.backward()
    assert w.grad is w.grad
    w.color = "red"
    (z,) = [v for v, _ in y.grad_fn.next_functions[0][0].next_functions if v is not None]
    assert z.variable is w and z.variable.color == "red"
    grad = w.grad
    grad.seen = 1
    del grad
    assert w.grad.seen == 1
    y = w * 2
    assert y.grad_fn is y.grad_fn and y.view(2)._base is y


def test_subclass_stays_subclass(torch):
    class Named(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Named)
    assert type(x) is Named and isinstance(x, torch.Tensor) and repr(x).startswith("Named(")


def test_parameter_is_a_tensor(torch):
    p = torch.nn.Parameter(torch.zeros(2))
    assert isinstance(p, torch.Tensor) and p.requires_grad and p.is_leaf
    assert repr(p) == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"
    assert type(p + 1) is torch.Tensor


def test_scalars_and_sequences(torch, device):
    x = torch.tensor([[1, 2], [3, 4]], device=device)
    assert x.tolist() == [[1, 2], [3, 4]] and len(x) == 2 and [r.tolist() for r in x] == [[1, 2], [3, 4]]
    assert x[1, 1].item() == 4 and int(x[0, 1]) == 2 and float(x[0, 0]) == 1.0 and bool(x[0, 0])
    assert [10, 11, 12][torch.tensor(1, device=device)] == 11 and f"{x[0, 1]:03d}" == "002"
    with pytest.raises(RuntimeError, match="ambiguous"):
        bool(x)
    with pytest.raises(RuntimeError):
        x.item()
    with pytest.raises(TypeError, match="0-d"):
        len(torch.tensor(1, device=device))
    assert hash(x) == hash(x) and x in {x}


def test_construction_refuses_nonsense(torch):
    for bad in [[[1, 2], [3]], ["a"], [None], [[1], 2], object(), [1, [2]]]:
        with pytest.raises((ValueError, TypeError, RuntimeError)):
            torch.tensor(bad)
    with pytest.raises((RuntimeError, MemoryError, OverflowError)):
        torch.zeros(2**62, 2**62)
    with pytest.raises(RuntimeError):
        torch.zeros(-1)


@pytest.mark.parametrize(
    "data, dtype, error, text",
    [
        (lambda t: [t([1, 2]), t([3, 4])], None, TypeError, "only integer tensors of a single element"),
        (lambda t: [t([1, 2]), [1, 2]], None, TypeError, "only integer tensors of a single element"),
        (lambda t: [t([True, False])], None, TypeError, "only integer tensors of a single element"),
        (lambda t: [t([1.0, 2.0])], None, ValueError, "only one element tensors can be converted"),
        (lambda t: [t([]), t([])], None, ValueError, "only one element tensors can be converted"),
        (lambda t: [t([1, 2])], "float32", ValueError, "only one element tensors can be converted"),
        (lambda t: [t(1.5)], "int64", TypeError, "only integer tensors of a single element"),
        (lambda t: [t(1.5)], "bool", TypeError, "only integer tensors of a single element"),
        (lambda t: [np.float32(1.5)], "int32", TypeError, "'numpy.float32' object cannot be interpreted as an integer"),
        (lambda t: np.float32(1.5), "int32", TypeError, "'numpy.float32' object cannot be interpreted as an integer"),
    ],
)
def test_tensors_in_lists_are_numbers(torch, data, dtype, error, text):
    with pytest.raises(error, match=text):
        torch.tensor(data(torch.tensor), dtype=dtype and getattr(torch, dtype))


def test_numbers_in_lists(torch):
    t = torch.tensor
    assert t([t([1]), t([[3]])]).tolist() == [1, 3] and t([[t(1), t(2)], [t(3), 4]]).tolist() == [[1, 2], [3, 4]]
    assert t([[1, 2], t([3, 4])]).tolist() == [[1, 2], [3, 4]] and t([[1], t([1])]).shape == (2, 1)
    assert t([t([2.0])]).shape == (1,) and t([t(True), 1]).dtype == torch.int64
    assert t([np.float64(1.5)], dtype=torch.int32).tolist() == [1] and t([np.array([1, 2])]).shape == (1, 2)
    assert t(np.array(1.5), dtype=torch.int32).tolist() == 1


def test_printing(torch, device):
    suffix = f", device='{device}:0'" if device == "gpu" else ""
    x = torch.tensor([1.0, 2.5], device=device)
    assert repr(x) == str(x) == f"tensor([1.0000, 2.5000]{suffix})"
    assert repr(x.requires_grad_()) == f"tensor([1.0000, 2.5000]{suffix}, requires_grad=True)"
    assert repr(x * 2) == f"tensor([2., 5.]{suffix}, grad_fn=<MulBackward0>)"
    assert repr(torch.zeros(0, 3, device=device)) == f"tensor([]{suffix}, size=(0, 3))"
    torch.set_printoptions(precision=2)
    assert repr(x.detach()) == f"tensor([1.00, 2.50]{suffix})"


def test_devices(torch, device):
    x = torch.ones(2, device=device)
    assert x.device.type == device and x.to(device) is x and x.cpu().device.type == "cpu"
    assert (x + 1).device == x.device and torch.zeros_like(x).device == x.device
    if device == "gpu":
        with pytest.raises(RuntimeError, match="same device"):
            x + torch.ones(2)
        assert torch.gpu.device_count() >= 1 and torch.gpu.get_device_name()
        torch.gpu.synchronize()
        assert torch.gpu.memory_allocated() > 0


def test_the_seed_decides_on_every_device(torch, device):
    def draw():
        torch.manual_seed(7)
        return [torch.rand(1000, device=device).cpu(), torch.randn(999, device=device).cpu()]

    assert all(torch.equal(a, b) for a, b in zip(draw(), draw()))


def test_threads_share_tensors(torch):
    shared = torch.ones(1000)
    wrong = []

    def work():
        for _ in range(200):
            if (shared * 2).sum().item() != 2000:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


@pytest.mark.parametrize(
    "dtype, value",
    [("uint8", 256), ("uint8", -256), ("uint8", -1.0), ("int8", -128.5), ("int64", 1e19), ("int32", float("nan"))],
)
def test_numbers_that_do_not_fit(torch, dtype, value):
    """Writing a number that the dtype cannot hold is an error in every op."""
    dtype = getattr(torch, dtype)
    x, at, mask = torch.ones(2, dtype=dtype), torch.tensor([0]), torch.tensor([True, False])
    writes = [
        lambda: torch.tensor([value], dtype=dtype),
        lambda: torch.full((2,), value, dtype=dtype),
        lambda: torch.full_like(x, value),
        lambda: x.new_full((2,), value),
        lambda: x.fill_(value),
        lambda: x.masked_fill(mask, value),
        lambda: x.index_fill(0, at, value),
        lambda: x.scatter(0, at, value),
        lambda: x.__setitem__(0, value),
        lambda: torch.nn.functional.pad(x, (1, 1), value=value),
        lambda: torch.nn.functional.threshold(x, 0, value),
    ]
    for write in writes:
        with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
            write()
    assert x.tolist() == [1, 1]


def test_halves_refuse_numbers_beyond_them(torch):
    x = torch.full((2,), float("inf"), dtype=torch.float16)
    writes = [
        lambda: torch.full((2,), 7e4, dtype=torch.float16), lambda: x.fill_(-7e4),
        lambda: x.masked_fill(torch.tensor([True, False]), 7e4),
    ]  # fmt: skip
    for write in writes:
        with pytest.raises(RuntimeError, match="cannot be converted to type c10::Half without overflow"):
            write()
    assert x.tolist() == [float("inf")] * 2


def test_dtypes_of_whole_numbers(torch):
    """Composites return PyTorch's dtypes too."""
    small = torch.tensor([[1, 2]], dtype=torch.int8)
    assert small.sum_to_size(1, 2).dtype == torch.int8 and small.sum_to_size(()).dtype == torch.int64
    assert [c.dtype for c in torch.unravel_index(small, (4, 5))] == [torch.int64, torch.int64]
    one = torch.ones(3, dtype=torch.int64)
    loss = torch.nn.functional.margin_ranking_loss(torch.arange(3), one, one, reduction="none")
    assert loss.dtype == torch.float32 and loss.tolist() == [1, 0, 0]


def test_complex_limits(torch):
    line = torch.linspace(1j, 2, 3)
    assert line.dtype == torch.complex64 and line.tolist() == [1j, 1 + 0.5j, 2]
    assert torch.allclose(torch.logspace(1j, torch.tensor(2), 3), torch.pow(10, line))


def test_functions_of_python(torch):
    x, y = torch.tensor([[1, 2], [3, 4]]), torch.tensor([10, 20])
    assert x.clone().apply_(lambda a: -a).tolist() == [[-1, -2], [-3, -4]]
    assert x.clone().map_(y, lambda a, b: a + b).tolist() == [[11, 22], [13, 24]]
    z = x.t().clone()
    assert z.map2_(y, x, lambda a, b, c: a * b + c) is z and z.tolist() == [[11, 62], [23, 84]]
    with pytest.raises(TypeError):
        x.clone().apply_(lambda a: "a")
    with pytest.raises(RuntimeError, match="Can't call map2_.. on Variable that requires grad"):
        z.map2_(y, x.float().requires_grad_(), lambda a, b, c: a)
    with pytest.raises(TypeError, match="Tensor.__dlpack__"):
        x.__dlpack__(1)


def test_old_names_of_operators(torch):
    x = torch.tensor([2.0])
    assert x.__rdiv__(3).item() == 1.5 == 3 / x and x.__div__(4).item() == 0.5 and x.__idiv__(4) is x
    assert x.__long__() == 0 and x.__nonzero__() and not x.is_xla


def test_functions_far_out(torch):
    x = torch.tensor([1e-30, 1e-6, 0, 1, 1.5])
    want = torch.tensor([-11.464025, -4.7534243, -float("inf"), float("inf"), float("nan")])
    assert torch.allclose(torch.special.ndtri(x), want, equal_nan=True)
    # Angles are equal modulo 2 pi.
    assert abs(torch.logsumexp(torch.tensor(1000 + 7j), 0).item() - (1000 + 0.7168147j)) < 1e-4


def test_functions_of_nan_and_infinity(torch, device):
    inf, nan = float("inf"), float("nan")

    def of(name, *pairs):
        x, y = torch.tensor(pairs, device=device).T
        return getattr(torch.special, name)(x.contiguous(), y.contiguous()).tolist()

    assert of("gammainc", (nan, inf), (nan, 0), (inf, nan), (inf, 2)) == [1, 0, 0, 0]
    assert of("gammaincc", (nan, inf), (nan, 0), (inf, nan), (0, 2)) == [0, 1, 1, 0]
    assert np.isnan(of("gammainc", (nan, 1), (1, nan), (0, 0), (inf, inf), (-1, 1), (0, nan))).all()
    assert of("zeta", (inf, 1), (inf, 0.5), (2, -inf), (1, inf)) == [1, inf, inf, inf]
    assert np.isnan(of("zeta", (2, inf), (inf, 2), (inf, inf))).all()
    for name in ("chebyshev_polynomial_t", "laguerre_polynomial_l", "legendre_polynomial_p", "hermite_polynomial_h"):
        assert of(name, (0.5, inf), (0.5, -inf), (nan, nan), (nan, 0)) == [0, 0, 0, 1]


def test_tensors_as_sizes(torch):
    two = torch.tensor(2)
    x = torch.ones(2, 3)
    assert (
        torch.ones(two, 3).shape == torch.zeros(two, two + 1).shape == torch.rand(torch.tensor([2]), 3).shape == (2, 3)
    )
    assert torch.ones(two).shape == (2,) and torch.ones([two, 3]).shape == torch.Tensor(two, 3).shape == (2, 3)
    assert x.expand(two, 3).shape == x.view(two, 3).shape == x.new_zeros(two, 3).shape == (2, 3)
    assert (
        x.reshape(two * 3).shape == (6,) and x.repeat(two, 1).shape == (4, 3) and x.permute(two - 1, 0).shape == (3, 2)
    )
    for wrong in ((torch.tensor([2, 3]),), (torch.tensor(2.0), 3), (two, 2.5)):
        with pytest.raises(TypeError, match="ones"):
            torch.ones(*wrong)


def test_types_of_python_as_dtypes(torch):
    kinds = {float: torch.float64, complex: torch.complex128, int: torch.int64, bool: torch.bool}
    for kind, dtype in kinds.items():
        assert (
            torch.zeros(2, dtype=kind).dtype
            == torch.ones(2).to(kind).dtype
            == torch.tensor([1], dtype=kind).dtype
            == dtype
        )
    assert torch.randn(2, dtype=float).dtype == torch.full((2,), 1, dtype=float).dtype == torch.float64


def test_what_is_made_for_out_is_of_its_kind(torch):
    whole = torch.ones(2, dtype=torch.int64)
    makers = [
        lambda **k: torch.zeros(2, **k), lambda **k: torch.full((2,), 1, **k), lambda **k: torch.arange(2, **k),
        lambda **k: torch.linspace(0, 1, 2, **k),
    ]  # fmt: skip
    for make in makers:
        with pytest.raises(RuntimeError, match=r"dtype (torch.float64|Double) does not match dtype of out parameter"):
            make(out=whole, dtype=torch.float64)
        assert make(out=whole, dtype=torch.int64) is whole
    assert torch.ones(2, out=torch.zeros(2), requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float instead"):
        torch.sum(torch.ones(2), 0, dtype=torch.float64, out=torch.tensor(0.0))
    t = torch.ones(2, 2)
    for reduce in (torch.mean, torch.nansum, torch.nanmean, torch.linalg.matrix_norm, torch.linalg.norm, torch.norm):
        with pytest.raises(RuntimeError, match="dtype"):
            reduce(t, dtype=torch.float64, out=torch.tensor(0.0))
    for norm in (torch.linalg.matrix_norm, torch.linalg.norm, torch.norm):
        with pytest.raises(RuntimeError, match="dtype"):
            norm(t, out=torch.tensor(0.0, dtype=torch.float64))


@pytest.mark.filterwarnings("ignore:torch.range is deprecated")
def test_lines_fill_an_out_of_their_size(torch):
    for line in (torch.arange, torch.range, torch.linspace, torch.logspace):
        args = {torch.arange: (0, 4), torch.range: (0, 3)}.get(line, (0, 3, 4))
        x = torch.full((2, 3), -1.0)
        out = x.narrow(1, 1, 2)
        assert line(*args, out=out) is out and out.shape == (2, 2)
        assert x[:, 1:].reshape(-1).tolist() == line(*args).tolist() and x[:, 0].tolist() == [-1, -1]


def test_ints_of_any_size(torch):
    assert torch.tensor(2**64, dtype=torch.float64).item() == 2.0**64 and torch.tensor([-(2**70)], dtype=float)[0] == -(
        2.0**70
    )
    assert torch.tensor([2**70], dtype=torch.bool).tolist() == [True]
    assert torch.tensor(2**70, dtype=torch.complex64).item() == 2.0**70
    for dtype in (None, torch.int8, torch.int64):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.tensor(2**64, dtype=dtype)
    for dtype, value in ((torch.float64, 2**2000), (torch.uint64, 2**64)):
        with pytest.raises(OverflowError, match="int too"):
            torch.tensor(value, dtype=dtype)


@pytest.mark.usefixtures("warn_always")
def test_arrays_in_lists(torch):
    assert torch.tensor(((7, np.array(5)), (3, 4))).tolist() == [[7, 5], [3, 4]]
    with pytest.warns(UserWarning, match="Creating a tensor from a list of numpy.ndarrays is extremely slow"):
        assert torch.tensor([np.array([1, 2]), np.array([3, 4])]).tolist() == [[1, 2], [3, 4]]
    with pytest.raises(TypeError):
        torch.tensor([1, np.array(2.5)], dtype=torch.int64)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_old_constructors(torch):
    x = torch.ones(2)
    assert torch.Tensor(size=(2, 3)).shape == x.new(size=(2, 3)).shape == x.new(torch.Size([2, 3])).shape == (2, 3)
    assert x.new((2, 3)).tolist() == torch.Tensor([2, 3], device="cpu").tolist() == [2, 3]
    for memory in (x.untyped_storage(), x.storage()):
        assert all(m(memory).data_ptr() == x.data_ptr() for m in (torch.Tensor, x.new, torch.FloatTensor))
    with pytest.raises(
        RuntimeError, match="Expected a Storage of type Float or an UntypedStorage, but got type Double"
    ):
        x.new(torch.ones(2, dtype=torch.float64).storage())
    for make in (torch.Tensor, torch.FloatTensor):
        with pytest.raises(RuntimeError, match=r"of the form torch.Tensor.tensor, device=device. is not supported"):
            make(x, device="cpu")
        with pytest.raises(
            RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda was passed"
        ):
            make([1, 2], device="cuda")
        for wrong in ("a", 1.5, True):
            with pytest.raises(TypeError, match="new"):
                make(wrong)
    assert torch.Tensor(np.array([1, 2])).tolist() == x.new(np.array([1.0, 2.0])).tolist() == [1, 2]
    with pytest.raises(TypeError, match="type 'torch.FloatTensor' is not an acceptable base type"):
        type("Own", (torch.FloatTensor,), {})
    wide = torch.ones(2, dtype=torch.float64)
    assert wide.type(torch.Tensor).dtype == wide.type(torch.FloatTensor).dtype == wide.type("torch.FloatTensor").dtype
    assert wide.type(torch.Tensor).dtype == torch.float32


def test_a_message_names_its_op_once(torch):
    def message(call):
        with pytest.raises((RuntimeError, NotImplementedError)) as caught:
            call()
        return str(caught.value)

    x = torch.ones(2, 2)
    assert message(lambda: torch.linalg.multi_dot([x])).startswith("multi_dot(): expected")
    assert message(lambda: x.index_reduce_(0, torch.tensor([0]), torch.ones(1, 2), "up")).startswith(
        "index_reduce(): Expected"
    )
    assert message(lambda: x.clamp_()).startswith("torch.clamp: At least one")
    assert message(lambda: torch.ones(2, dtype=torch.complex64).floor_()).startswith("floor is not supported")
    assert message(lambda: x.add_(torch.ones(3))).startswith("add_: The size of tensor")


def test_metadata_methods(torch):
    x = torch.zeros(2, 3, 4).transpose(0, 2)
    assert x.size() == (4, 3, 2) and isinstance(x.size(), torch.Size) and x.size(-1) == x.size(dim=2) == 2
    assert x.stride() == (1, 4, 12) and x.stride(-3) == 1 and type(x.stride()) is tuple
    assert x.numel() == x.nelement() == 24 and x.dim() == x.ndimension() == 3 and x.element_size() == 4
    assert x[1].storage_offset() == 1 and x[1].data_ptr() == x.data_ptr() + 4 and torch.zeros(0).data_ptr() == 0
    assert x.is_floating_point() and not x.is_complex() and x.is_signed()
    assert x.size(None) == x.shape and x.stride(dim=None) == x.stride()
    assert not x.is_contiguous() and x.transpose(0, 2).is_contiguous(memory_format=torch.contiguous_format)
    images = torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    assert images.is_contiguous(memory_format=torch.channels_last) and not images.is_contiguous()
    assert not x.is_contiguous(memory_format=torch.channels_last)
    assert torch.zeros(2, 0, 4, 5).is_contiguous(memory_format=torch.channels_last)


def test_metadata_methods_refuse_what_does_not_fit(torch):
    x = torch.zeros(2, 3)
    for method in (x.size, x.stride):
        with pytest.raises(
            IndexError, match=r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"
        ):
            method(2)
        with pytest.raises(IndexError, match="Dimension out of range"):
            method(-(2**63))
    with pytest.raises(IndexError, match="Dimension specified as 0 but tensor has no dimensions"):
        torch.tensor(1).size(0)
    with pytest.raises(TypeError, match="argument 'dim' .* must be int, not str"):
        x.size("a")
    with pytest.raises(TypeError, match="takes 1 positional argument but 2 were given"):
        x.size(0, 1)
    with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
        x.size(0, dim=1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
        x.size(axis=0)
    with pytest.raises(TypeError, match="takes 0 positional arguments but 1 was given"):
        x.numel(1)
    with pytest.raises(TypeError, match="must be torch.memory_format, not int"):
        x.is_contiguous(3)
    with pytest.raises(TypeError):
        torch.Tensor.size(3)


def test_dense_tensors_answer_for_sparse_ones(torch):
    x = torch.ones(2, 3)
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)
    for name, layout in (
        ("coalesce", "sparse coordinate"),
        ("is_coalesced", "sparse coordinate"),
        ("indices", "sparse coordinate"),
        ("values", "sparse"),
        ("crow_indices", "sparse row compressed"),
        ("row_indices", "sparse column compressed"),
    ):
        with pytest.raises(RuntimeError, match=f"{name} expected {layout} tensor layout but got Strided"):
            getattr(x, name)()
    with pytest.raises(NotImplementedError, match="to_mkldnn: there are no tensors of that layout"):
        x.to_mkldnn()
    assert x.to_dense() is x and not x.is_sparse and not x.is_sparse_csr and x.layout is torch.strided


def test_copy_takes_numbers(torch):
    x = torch.zeros(2, 2)
    x[0].copy_(1.5)
    assert x.tolist() == [[1.5, 1.5], [0, 0]]
    assert torch.zeros(2, dtype=torch.int64).copy_(2**62 + 1).tolist() == [2**62 + 1] * 2
    y = torch.ones(2, requires_grad=True)
    (y * 2).copy_(3.0).sum().backward()
    assert y.grad.tolist() == [0, 0]


def test_full_infers_no_complex_numbers_of_half_precision(torch):
    torch.set_default_dtype(torch.float16)
    assert torch.full((1,), 1j).dtype == torch.complex64 and torch.full((1,), 1.0).dtype == torch.float16
    assert torch.tensor(1j).dtype == torch.complex32


def test_a_large_int_beside_floats_is_a_float(torch):
    assert torch.tensor([2**64, 1.5]).tolist() == [2.0**64, 1.5]
    assert torch.tensor([[True, 2**70], [1.0, 0]]).dtype == torch.float32
    assert torch.tensor([-(2**70), 1j]).dtype == torch.complex64
    for data in (2**64, [2**64], [2**64, 2], [True, 2**64], 2**2000):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            torch.tensor(data)


def test_the_constructor_of_any_dtype_takes_any_tensor(torch):
    whole = torch.arange(3)
    made = torch.Tensor(whole)
    assert made.dtype == torch.int64 and made is not whole and made.data_ptr() == whole.data_ptr()
    with pytest.raises(TypeError):
        torch.FloatTensor(whole)


def test_abs_has_no_form_in_place_for_complex_numbers(torch):
    z = torch.tensor([3 + 4j])
    for call in (z.abs_, z.absolute_):
        with pytest.raises(RuntimeError, match="In-place abs is not supported for complex tensors"):
            call()
    assert z.tolist() == [3 + 4j] and z.real.neg_().abs_().tolist() == [3.0]


def test_set_counts_on(torch):
    x = torch.ones(2)
    x.set_(torch.zeros(3))
    other = torch.ones(4).add_(1)
    x.set_(other)
    assert x._version == 2 and x.tolist() == other.tolist() == [2.0] * 4
    x.add_(1)
    assert x._version == 3 and other._version == 1
