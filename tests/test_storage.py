"""Storages, pickles, copies, buffers: what shares memory, and what is kept alive."""

import base64
import copy
import gc
import importlib
import pickle
import sys
import warnings
import zlib

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


def test_untyped_storage(torch):
    x = torch.arange(6, dtype=torch.int16)
    memory = x[2:].untyped_storage()
    assert memory.nbytes() == memory.size() == len(memory) == 12 and memory.data_ptr() == x.data_ptr()
    assert memory.tolist() == [0, 0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0] and memory[2] == 1
    memory[2] = 9
    assert x[1] == 9 and torch.is_storage(memory) and not torch.is_storage(x)
    other = memory.clone().fill_(1)
    assert x[1] == 9 and memory.copy_(other).tolist() == [1] * 12 and x[0] == 257
    assert repr(torch.UntypedStorage([1, 2])) == " 1\n 2\n[torch.storage.UntypedStorage(device=cpu) of size 2]"
    assert torch.UntypedStorage(5).nbytes() == 5


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_typed_storage(torch):
    x = torch.arange(4.0)
    memory = x[1:].storage()
    assert len(memory) == 4 and memory.dtype == torch.float32 and memory.tolist() == [0, 1, 2, 3]
    memory[0] = 8
    assert x[0] == 8 and memory.type() == "torch.FloatStorage" and memory.data_ptr() == x.data_ptr()
    assert repr(torch.LongStorage([1, 2])) == (
        " 1\n 2\n[torch.storage.TypedStorage(dtype=torch.int64, device=cpu) of size 2]"
    )
    assert isinstance(memory, torch.FloatStorage) and not isinstance(memory, torch.LongStorage)
    assert torch.is_storage(torch.DoubleStorage(3))


@own
def test_typed_storages_warn(torch):
    torch.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
            torch.ones(1).storage()
    finally:
        torch.set_warn_always(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(1).storage()  # told once


def test_set(torch):
    x, y = torch.arange(6.0), torch.zeros(1)
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]] and y.data_ptr() == x.data_ptr() + 4
    assert y.set_(x).is_set_to(x) and y.set_().shape == (0,)


@own
def test_one_pickle_holds_shared_memory_once(torch):
    x = torch.zeros(10_000)
    once, twice = len(pickle.dumps(x)), len(pickle.dumps([x, x[1:], x.view(100, 100).t()]))
    assert twice < once + 2000
    a, b, c = pickle.loads(pickle.dumps([x, x[1:], x.view(100, 100).t()]))
    a[100] = 3
    assert b[99] == 3 and c[0, 1] == 3 and c.stride() == (1, 100)


# PyTorch's `pickle.dumps((t, t[1:, ::2]))` of the tensor below, compressed.
_PYTORCHS = """
eNrtkL1OwzAQx/PVVkopqmBiYwxLVLUVLRMVQl0svsqSBVlpYpqgENeOU6lIlbJQUZQNszEw8hg8B2/AIyAxcG1gQzwBJ99ZPv99
d/5lxuObpqwsXxOUe4GNUxFGicw3MCfDNIx8LEicUI4nTfkgrbxWyBLY3BGReR1H1PXxJafXeDgVJAHVwaaqKJl2b0afT/2P7auX
0y07047edYgzplhOHRqOORXUoxGeEJ6ENGYqCJwa3EShEBHBJPZDN2banWNCUkzHBCfhDUmYPmOG5ZQgmQSUC1ZCmqPDKYwFKyPD
MZY1aDxiFWSkKfS0nMpSXIzMFG/1BbMPg4vzImky1VkHzV6722o1O+1mp7Hb6LKirjdOmY7Kx4IZZ1Dtgim/aVXXLis/lu1D6MEC
z8CfwV978lYOJFKQhvS5RDpS53KRV4FBRDwBCAB79YT7hBP/MPQEkNwZSAFvAs0KSv9U/6IKNJG2ogpxEdS+yc2l/QWGxdKW
"""


def test_pickles_of_pytorch_are_read(torch, monkeypatch):
    """As joblib's files and those of programs that call `pickle` hold them; they name modules of `torch`."""
    for name in ("torch", "torch._utils", "torch.storage"):
        own = torch.__name__ + name.removeprefix("torch")
        monkeypatch.setitem(sys.modules, name, importlib.import_module(own))
    t, part = pickle.loads(zlib.decompress(base64.b64decode(_PYTORCHS)))
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]] and t.dtype is torch.float32
    assert part.tolist() == [[4, 6]] and part.stride() == (3, 2)


def test_pickles_keep_what_makes_a_leaf(torch):
    leaf = torch.ones(2, requires_grad=True)
    leaf.tag = {"a": 1}
    back = pickle.loads(pickle.dumps(leaf))
    assert back.requires_grad and back.tag == {"a": 1} and back.is_leaf
    parameter = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    parameter.tag = 1
    back = pickle.loads(pickle.dumps(parameter))
    assert type(back) is torch.nn.Parameter and not back.requires_grad and back.tag == 1
    for thing in (torch.float16, torch.device("cpu"), torch.Size([1, 2]), torch.add, torch.strided):
        again = pickle.loads(pickle.dumps(thing))
        assert again == thing and type(again) is type(thing)


class Named(target.torch.Tensor):
    """A subclass at module level, as required by pickle."""


def test_subclasses_stay_themselves(torch):
    x = torch.ones(2).as_subclass(Named)
    x.tag = "t"
    for back in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
        assert type(back) is Named and back.tag == "t" and back.tolist() == [1, 1]


@own
def test_deepcopy_and_pickle_on_every_device(torch, device):
    x = torch.arange(4.0).to(device)
    a, b = copy.deepcopy([x, x[1:]])
    a[1] = 7
    assert b[0].item() == 7 and x[1].item() == 1 and a.device == x.device
    a, b = pickle.loads(pickle.dumps([x, x[1:]]))
    a[1] = 7
    assert b[0].item() == 7 and a.device == x.device


def test_frombuffer(torch):
    memory = bytearray(16)
    x = torch.frombuffer(memory, dtype=torch.int32, count=2, offset=4)
    x[0] = 258
    assert memory[4:6] == b"\x02\x01" and x.shape == (2,)
    with pytest.raises(BufferError):
        memory.extend(b"more")  # the tensor exports the buffer
    del x
    gc.collect()
    memory.extend(b"more")
    leaf = torch.frombuffer(bytearray(8), dtype=torch.float64, requires_grad=True)
    assert leaf.requires_grad


@own
@pytest.mark.usefixtures("warn_always")
def test_memory_that_may_not_be_written(torch):
    with pytest.warns(UserWarning, match="The given buffer is not writable"):
        x = torch.frombuffer(b"abcd", dtype=torch.uint8)
    array = np.arange(3.0)
    array.flags.writeable = False
    for make in (torch.from_numpy, torch.as_tensor, torch.asarray):
        with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
            y = make(array)
        with pytest.raises(RuntimeError, match="read-only|not writ"):
            y[0] = 1
    with pytest.raises(RuntimeError, match="read-only|not writ"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="read-only|not writ"):
        x.expand(2, 4).index_fill_(0, torch.tensor([0]), 1)
    assert torch.tensor(array).add_(1).tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="not aligned for"):
        torch.frombuffer(bytearray(9), dtype=torch.float32, offset=1, count=2)


def test_bool_memory_may_hold_any_byte(torch):
    x = torch.tensor([0, 1, 2, 255], dtype=torch.uint8).view(torch.bool)
    assert x.tolist() == [False, True, True, True] and x[2].item() is True
    assert (~x).tolist() == [True, False, False, False] and repr(x) == "tensor([False,  True,  True,  True])"
    assert x.sum() == 3 and x.to(torch.float32).tolist() == [0, 1, 1, 1]


def test_numpy_functions_and_scalars(torch):
    array, x = np.array([1.0, 2.0]), torch.tensor([3.0, 4.0], dtype=torch.float64)
    assert isinstance(x + array, torch.Tensor) and (x + array).tolist() == [4, 6]
    with pytest.raises(TypeError):
        array * x
    assert np.sqrt(x).tolist() == torch.sqrt(x).tolist() and isinstance(np.sqrt(x), torch.Tensor)
    assert torch.tensor(np.float64(2)).dtype == torch.float64 and torch.tensor([np.int8(1)]).dtype == torch.int8
    assert np.asarray(x, dtype=np.float32).dtype == np.float32 and np.array(x, copy=True).base is None


def test_capsules_are_used_once(torch):
    capsule = torch.utils.dlpack.to_dlpack(torch.arange(3.0))
    assert torch.utils.dlpack.from_dlpack(capsule).tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError):
        torch.utils.dlpack.from_dlpack(capsule)
    for nonsense in (object(), 1, [1.0]):
        with pytest.raises((TypeError, RuntimeError, AttributeError)):
            torch.from_dlpack(nonsense)


def test_arrays_outlive_their_makers(torch):
    array = np.arange(1000.0)
    tensors = [torch.from_numpy(array[i:]) for i in range(10)]
    del array
    views = [t.numpy() for t in tensors]
    del tensors
    gc.collect()
    assert all(v[0] == i for i, v in enumerate(views))
    held = torch.ones(1000).numpy()[10:]
    gc.collect()
    assert held.sum() == 990


def test_slices_of_a_storage(torch):
    x = torch.ones(2)
    whole = x.untyped_storage()
    part = whole[4:8]
    assert (
        part.nbytes() == len(part) == 4 and part.data_ptr() == whole.data_ptr() + 4 and part.tolist() == [0, 0, 128, 63]
    )
    part.fill_(0)
    assert x.tolist() == [1, 0] and whole[-2:].nbytes() == 2 and whole[6:20].nbytes() == 2 and whole[6:2].nbytes() == 0
    assert whole.resizable() is part.resizable() is False and torch.ones(1).untyped_storage().resizable()
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    with pytest.raises(RuntimeError, match="with a step of 2"):
        whole[0:8:2]
    for index in (8, -9):
        with pytest.raises(IndexError, match="out of range for storage of size 8"):
            whole[index]
    del x, whole
    gc.collect()
    [torch.zeros(2) for _ in range(50)]
    assert part.tolist() == [0, 0, 0, 0]


def test_sizes_of_storages(torch):
    small, large = torch.ones(1).untyped_storage(), torch.ones(101).untyped_storage()
    assert large.__sizeof__() - small.__sizeof__() == 400
    assert torch.FloatStorage(101).__sizeof__() - torch.FloatStorage(1).__sizeof__() == 400


def test_files_as_storages(torch, tmp_path):
    path = tmp_path / "numbers"
    with pytest.raises(RuntimeError, match="unable to open file <.*numbers> in read-only mode: No such file"):
        torch.UntypedStorage.from_file(str(path), False, 4)
    shared = torch.from_file(str(path), True, 3, dtype=torch.float64)
    assert shared.tolist() == [0, 0, 0] and shared.untyped_storage().filename == str(path)
    shared.copy_(torch.tensor([1.0, 2.0, 3.0]))
    assert np.fromfile(path).tolist() == [1, 2, 3]
    private = torch.from_file(str(path), size=2, dtype=torch.float64)
    private.fill_(7)
    assert np.fromfile(path).tolist() == [1, 2, 3] and private.untyped_storage().filename is None
    assert torch.UntypedStorage.from_file(str(path), nbytes=5).nbytes() == 5
    assert torch.DoubleStorage.from_file(str(path), True, 4).tolist() == [1, 2, 3, 0] and path.stat().st_size == 32
    with pytest.raises(RuntimeError, match="size <32> is smaller than the required mapping size <40>"):
        torch.UntypedStorage.from_file(str(path), False, 40)
    assert torch.UntypedStorage.from_file(str(path)).nbytes() == 0 and torch.ones(1).untyped_storage().filename is None
    with pytest.raises(RuntimeError, match="not resizable"):
        shared.resize_(100)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_set_keeps_the_dtype(torch):
    other = torch.ones(2, dtype=torch.float64)
    with pytest.raises(
        RuntimeError, match="Expected a Storage of type .*loat or an UntypedStorage, but got type Double"
    ):
        torch.ones(2).set_(other.storage())
    with pytest.raises(RuntimeError, match="tensor of type double to a tensor of type float"):
        torch.ones(2).set_(other)
    assert torch.ones(2).set_(other.untyped_storage()).shape == (4,)


def test_arrays_keep_memory_where_it_is(torch):
    x = torch.ones(4)
    x.resize_(8)
    array = x.numpy()
    assert x.resize_(2).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="not resizable"):
        x.resize_(100)
    array[0] = 5
    assert x[0] == 5


def test_resize_in_a_memory_format(torch):
    x = torch.ones(3, 2, 4, 4)
    last = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert x.clone().resize_(2, 3, 4, 5, memory_format=torch.channels_last).stride() == (60, 1, 15, 3)
    assert x.clone().resize_as_(last).stride() == (60, 20, 5, 1)
    assert x.clone().resize_as_(last, memory_format=torch.preserve_format).stride() == (60, 1, 15, 3)
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        torch.ones(3).resize_(2, memory_format=torch.channels_last)
    with pytest.raises(RuntimeError, match="Unsupported memory format"):
        x.resize_(2, memory_format=torch.preserve_format)
    for make in (torch.empty, lambda size: torch.ones(2).resize_(size)):
        with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
            make([0, 4, 2305843009213693952])


def test_empty_tensors_have_no_address(torch):
    assert torch.empty(0).data_ptr() == torch.ones(3)[3:].data_ptr() == torch.empty(0, 3).data_ptr() == 0


def test_dim_order(torch):
    last = torch.ones(3, 2, 4, 4).to(memory_format=torch.channels_last)
    formats = [torch.contiguous_format, torch.channels_last]
    assert (
        last.dim_order()
        == last.dim_order(ambiguity_check=True)
        == last.dim_order(ambiguity_check=formats)
        == (0, 2, 3, 1)
    )
    for check in (True, formats):
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            torch.ones(3, 1, 4, 4).dim_order(ambiguity_check=check)
    with pytest.raises(TypeError, match="must be a bool or a list of memory formats"):
        last.dim_order(ambiguity_check="x")


@pytest.mark.parametrize("dtype", ["float32", "float16", "complex64", "int64", "uint8", "bool"])
def test_memory_that_nobody_writes_can_be_filled(torch, dtype):
    kind = getattr(torch, dtype)
    like = torch.zeros(2, 3, dtype=kind)
    makers = [
        lambda: torch.empty(2, 3, dtype=kind),
        lambda: torch.empty_like(like),
        lambda: torch.empty_strided((2, 3), (1, 2), dtype=kind),
        lambda: torch.empty_permuted((2, 3), (1, 0), dtype=kind),
        lambda: like.new_empty(2, 3),
        lambda: torch.zeros(2, dtype=kind).resize_(8)[2:],
    ]
    filled = lambda t: (
        t.isnan().all()
        if kind.is_floating_point or kind.is_complex
        else (t == (True if kind == torch.bool else torch.iinfo(kind).max)).all()
    )  # noqa: E501, E731
    try:
        torch.use_deterministic_algorithms(True)
        assert torch.utils.deterministic.fill_uninitialized_memory is True
        assert all(filled(make()) for make in makers)
        assert torch.zeros(2, dtype=kind).resize_(8)[:2].tolist() == [0, 0]
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert not filled(torch.zeros(2, dtype=kind).resize_(1000)[2:])
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_tensors_of_storages(torch):
    x = torch.arange(4.0)
    for memory in (x.storage(), x.untyped_storage()):
        copied = torch.tensor(memory, dtype=torch.float32)
        assert copied.tolist() == [0, 1, 2, 3] and copied.data_ptr() != x.data_ptr()
    with pytest.raises(RuntimeError, match="Expected a Storage of type"):
        torch.tensor(x.storage(), dtype=torch.int32)


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_storages_in_other_dtypes(torch):
    numbers = torch.IntStorage([-1, 0, 1])
    names = {
        "float": [-1.0, 0.0, 1.0],
        "half": [-1.0, 0.0, 1.0],
        "byte": [255, 0, 1],
        "bool": [True, False, True],
        "long": [-1, 0, 1],
    }
    for name, want in names.items():
        got = getattr(numbers, name)()
        assert got.tolist() == want and got.type() == f"torch.{name.capitalize()}Storage"
    assert numbers.complex_double().dtype == torch.complex128


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_bytes_in_another_order(torch):
    a = bytearray([1, 2, 3, 4])
    assert torch.ByteStorage.from_buffer(a).tolist() == [1, 2, 3, 4]
    assert torch.ShortStorage.from_buffer(a, "big").tolist() == [258, 772]
    assert torch.IntStorage.from_buffer(a, "little").tolist() == [67305985]
    assert torch.FloatStorage.from_buffer(bytearray([0x40, 0x10, 0, 0]), "big")[0] == 2.25
    assert torch.BoolStorage.from_buffer(bytearray([0, 1, 2]), "big").tolist() == [False, True, True]
    with pytest.raises(TypeError, match="byte_order"):
        torch.IntStorage.from_buffer(a)
    with pytest.raises(ValueError, match="invalid byte_order"):
        torch.IntStorage.from_buffer(a, "middle")
    memory = torch.UntypedStorage(list(range(16)))
    memory.byteswap(torch.complex64)
    assert memory.tolist() == [3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12]


def test_pickled_generators(torch):
    generator = torch.Generator().manual_seed(12345)
    torch.rand(100, generator=generator)
    for again in (pickle.loads(pickle.dumps(generator)), copy.deepcopy(generator)):
        assert again.device == generator.device and again.initial_seed() == 12345
        assert torch.equal(again.get_state(), generator.get_state())
    assert torch.equal(torch.rand(3, generator=again), torch.rand(3, generator=generator))


def test_storage_is_that_of_the_default_dtype(torch):
    assert torch.Storage is torch.FloatStorage and torch.Storage(np.int16(3)).size() == 3
    torch.set_default_dtype(torch.float64)
    assert torch.Storage is torch.DoubleStorage


def test_set_has_no_derivative(torch):
    leaf, other = torch.ones(3, requires_grad=True), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        leaf.set_(other)
    with pytest.raises(RuntimeError):  # PyTorch: of a view of a leaf; here of any view
        leaf.view(-1).set_(other)
    assert leaf.shape == (3,)
    changes = [(leaf * 2).set_(other), torch.ones(2).set_(leaf * 2)]
    assert all(type(changed.grad_fn).__name__ == "NotImplemented" for changed in changes)
    # A view that is no part of the graph, too.
    for changed in (*changes, torch.ones(4).view(2, 2).set_(leaf)):
        assert changed.requires_grad
        with pytest.raises(RuntimeError, match="derivative for set_ is not implemented"):
            changed.sum().backward()
    with torch.no_grad():
        assert leaf.set_(other).shape == (2, 3) and leaf.is_leaf and leaf.requires_grad


def test_set_beyond_a_storage_makes_it_grow(torch):
    t = torch.arange(4.0)
    view = t[1:]
    for size, stride, offset, nbytes in (
        ((2,), (1,), 1, 16),
        ((5,), (1,), 2, 28),
        ((2, 2), (7, 1), 0, 36),
        ((3, 4), None, 0, 48),
        ((100,), (0,), 3, 48),
        ((0,), (1,), 50, 48),
    ):
        arguments = (offset, size) if stride is None else (offset, size, stride)
        made = torch.empty(0).set_(t.untyped_storage(), *arguments)
        assert made.shape == size and made.storage_offset() == offset and t.untyped_storage().nbytes() == nbytes
    torch.empty(0).set_(t, 0, (16,), (1,))
    assert t.untyped_storage().nbytes() == 64
    view[0] = 7.0
    assert t.tolist() == [0.0, 7.0, 2.0, 3.0]


def test_set_beyond_a_storage_that_cannot_grow(torch):
    exported = torch.arange(4.0)
    array = exported.numpy()
    leaf = torch.ones(2, requires_grad=True)
    grows = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="not resizable"):
        torch.empty(0).set_(exported.untyped_storage(), 0, (9,))
    assert array.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="leaf"):
        leaf.set_(grows.untyped_storage(), 0, (9,))
    for offset, size in ((-1, (9,)), (0, (-1,)), (0, (1 << 62, 1 << 10)), (0, (1 << 60,))):
        with pytest.raises(RuntimeError):
            torch.empty(0).set_(grows.untyped_storage(), offset, size)
    assert grows.untyped_storage().nbytes() == 16


def test_storages_are_moved_and_converted(torch):
    t = torch.ones(2)
    bytes_, typed = t.untyped_storage(), t._typed_storage()
    assert bytes_.float().tolist() == [0, 0, 128, 63] * 2 and bytes_.float().dtype == torch.float32
    copied = typed.float()
    assert copied.tolist() == [1, 1] and copied.data_ptr() != typed.data_ptr()
    assert typed.float8_e5m2().tolist() == [1, 1] and typed.float8_e5m2().nbytes() == 2
    assert bytes_.to(device="cpu") == bytes_ and typed.to(device=torch.device("cpu")).data_ptr() == typed.data_ptr()
    assert bytes_.to(device="meta").device == torch.device("meta") and typed.to(device="meta").dtype == torch.float32
    for storage in (bytes_, typed):
        assert storage.get_device() is None and not storage.is_pinned() and not storage.is_sparse
    with pytest.raises(TypeError, match="argument"):
        bytes_.to("cpu")


def test_names_of_annotations_and_protocols(torch):
    types = __import__(f"{torch.__name__}.types", fromlist=["types"])
    assert types.py_sym_types == (torch.SymInt, torch.SymFloat, torch.SymBool)
    assert types.IntLikeType == int | torch.SymInt and types.BoolLikeType == bool | torch.SymBool
    dlpack = __import__(f"{torch.__name__}.utils.dlpack", fromlist=["dlpack"])
    assert torch.ones(1).__dlpack_device__() == (dlpack.DLDeviceType.kDLCPU, 0)
    made = torch.max(torch.ones(2), 0, out=(torch.ones(()), torch.zeros((), dtype=torch.int64)))
    assert type(made) is torch.return_types.max_out
