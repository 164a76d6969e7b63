"""Storages, pickles, copies, buffers: who shares memory with whom, and what stays alive."""

import copy
import gc
import pickle

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
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        torch.ones(1).storage()


def test_set(torch):
    x, y = torch.arange(6.0), torch.zeros(1)
    y.set_(x.untyped_storage(), 1, (2, 2), (2, 1))
    assert y.tolist() == [[1, 2], [3, 4]] and y.data_ptr() == x.data_ptr() + 4
    with pytest.raises(RuntimeError, match="out of bounds"):
        y.set_(x.untyped_storage(), 3, (2, 2), (2, 1))
    assert y.set_(x).is_set_to(x) and y.set_().shape == (0,)


@own
def test_one_pickle_holds_shared_memory_once(torch):
    x = torch.zeros(10_000)
    once, twice = len(pickle.dumps(x)), len(pickle.dumps([x, x[1:], x.view(100, 100).t()]))
    assert twice < once + 2000
    a, b, c = pickle.loads(pickle.dumps([x, x[1:], x.view(100, 100).t()]))
    a[100] = 3
    assert b[99] == 3 and c[0, 1] == 3 and c.stride() == (1, 100)


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
    """A subclass at module level, as pickles need."""


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
        memory.extend(b"more")  # the tensor holds the memory
    del x
    gc.collect()
    memory.extend(b"more")
    leaf = torch.frombuffer(bytearray(8), dtype=torch.float64, requires_grad=True)
    assert leaf.requires_grad


@own
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
