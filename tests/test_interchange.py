"""Interchange with other libraries and Python: both DLPack versions, arrays mixed with tensors, numbers."""

import gc
import warnings

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


class Other:
    """A library's array that supports only NumPy's protocols."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class Exporter:
    """An exporter of DLPack before version 1.0."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def read_only(array):
    array.flags.writeable = False
    return array


def test_exported_memory_is_writable(torch):
    tensor = torch.zeros(3)
    array = np.from_dlpack(tensor)
    array[1] = 5
    assert tensor.tolist() == [0, 5, 0]


@pytest.mark.parametrize("version", [None, (0, 8), (1, 0), (1, 5)])
def test_both_generations(torch, version):
    tensor = torch.arange(6.0).reshape(2, 3).t()
    capsule = tensor.__dlpack__(max_version=version)
    assert ("versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
    shared = torch.utils.dlpack.from_dlpack(capsule)
    shared[0, 0] = 9
    assert tensor[0, 0] == 9 and shared.stride() == (1, 3)
    with pytest.raises(RuntimeError, match="only once|consumed"):
        torch.utils.dlpack.from_dlpack(capsule)
    for _ in range(50):
        tensor.__dlpack__(max_version=version)
    del tensor, capsule
    gc.collect()
    assert shared.tolist() == [[9, 3], [1, 4], [2, 5]]


def test_an_owner_of_before_version_1(torch):
    array = np.arange(3.0)
    shared = torch.from_dlpack(Exporter(array))
    shared[0] = 7
    assert array[0] == 7


@own
def test_memory_that_may_not_be_written(torch):
    shared = torch.from_dlpack(read_only(np.arange(3.0)))
    assert (shared + 1).tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="read-only"):
        shared.add_(1)
    again = np.from_dlpack(shared)
    assert not again.flags.writeable and again.tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="read-only"):
        shared.__dlpack__()


def test_options_of_dlpack(torch):
    array = np.arange(3.0)
    copied = torch.from_dlpack(array, copy=True, device="cpu")
    copied[0] = 5
    assert array[0] == 0
    with pytest.raises(AssertionError, match="stream should be None"):
        torch.ones(1).__dlpack__(stream=1)
    with pytest.raises((BufferError, RuntimeError)):
        torch.ones(1).__dlpack__(dl_device=(2, 0))
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        torch.from_dlpack(np.arange(3)[::-1])
    with pytest.raises(BufferError):
        torch.from_dlpack(np.arange(3, dtype=">i4"))


@pytest.mark.parametrize("make", ["tensor", "as_tensor"])
def test_arrays_of_other_libraries(torch, make):
    made = getattr(torch, make)(Other(np.array([[1, 2], [3, 4]], dtype=np.int16)))
    assert made.dtype == torch.int16 and made.tolist() == [[1, 2], [3, 4]]
    assert getattr(torch, make)(Other(np.arange(3.0)), dtype=torch.int64).tolist() == [0, 1, 2]


def test_equality_with_an_array(torch):
    tensor, array = torch.tensor([1.0, 2.0]), np.array([1.0, 3.0], dtype=np.float32)
    for made in (tensor == array, array == tensor):
        assert made.dtype == torch.bool and made.tolist() == [True, False]
    with pytest.raises(TypeError, match="'<' not supported"):
        tensor < array  # noqa: B015
    assert (tensor == np.array(["a"])) is False or target.STAND_IN


NUMBERS = {
    "many": ("torch.ones(2)", "float", ValueError, "only one element tensors can be converted to Python scalars"),
    "none": ("torch.ones(0)", "int", ValueError, "only one element tensors can be converted to Python scalars"),
    "complex": ("torch.tensor(1 + 2j)", "float", RuntimeError, "value cannot be converted to type double"),
    "complex as int": ("torch.tensor(1 + 2j)", "int", RuntimeError, "value cannot be converted to type int64_t"),
    "item": ("torch.ones(2).item()", "float", RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_what_is_no_number(torch, case):
    code, kind, error, message = NUMBERS[case]
    with pytest.raises(error, match=message):
        eval(f"{kind}({code})", {"torch": torch})


def test_numbers(torch):
    assert float(torch.tensor(2 + 0j)) == 2 and complex(torch.tensor([1 + 2j])) == 1 + 2j
    assert int(torch.tensor([[3.9]])) == 3 and float(torch.tensor(True)) == 1


def test_a_number_of_a_graph_warns(torch, warn_always):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert float(torch.ones(1, requires_grad=True)) == 1 and torch.ones(1, requires_grad=True).item() == 1
        assert int(torch.ones(1, requires_grad=True)) == 1
    assert ["Converting a tensor with requires_grad=True" in str(w.message) for w in told] == [True] * 2
    assert told[0].filename == __file__


def test_sizes_hold_ints(torch):
    size = torch.Size(np.array([2, 3]))
    assert repr(size) == "torch.Size([2, 3])" and type(size[0]) is int
    assert torch.Size([torch.tensor(2), True]) == (2, 1) and torch.Size() == ()
    with pytest.raises(TypeError, match=r"takes an iterable of 'int' \(item 1 is 'float'\)"):
        torch.Size([1, 2.5])


def test_names_in_messages(torch):
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'nothing'$"):
        torch.ones(1).nothing  # noqa: B018
    with pytest.raises(TypeError, match="for \\+: 'Tensor' and 'NoneType'"):
        torch.ones(1) + None


def test_result_classes_have_names(torch):
    import pickle

    made = torch.ones(2).max(0)
    assert isinstance(made, torch.return_types.max)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made) and again.indices == made.indices


def test_views_say_so(torch):
    base = torch.zeros(4)
    assert base[1:]._is_view() and not base._is_view() and not base.clone()._is_view()


def test_indexing_by_bytes_warns(torch):
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        assert torch.arange(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)].tolist() == [0, 2]


def test_numbers_of_numpy_are_no_arrays(torch):
    for number in (np.float32(1), np.int64(1), np.bool_(True)):
        with pytest.raises(TypeError, match=rf"expected np.ndarray \(got numpy\.{type(number).__name__}\)"):
            torch.from_numpy(number)
    assert torch.from_numpy(np.array(1.5)).item() == 1.5


def test_dlpack_in_constructors(torch):
    array = np.arange(3.0)
    for make in (torch.tensor, torch.as_tensor, torch.asarray):
        assert make(Exporter(array)).tolist() == [0, 1, 2]
    shared, copied = torch.as_tensor(Exporter(array)), torch.tensor(Exporter(array))
    array[0] = 7
    assert shared[0] == 7 and copied[0] == 0
    tensor = torch.ones(2)
    torch.asarray(torch.utils.dlpack.to_dlpack(tensor))[0] = 4
    assert tensor.tolist() == [4, 1]
    for make in (torch.tensor, torch.as_tensor):
        with pytest.raises(RuntimeError, match="Could not infer dtype of PyCapsule"):
            make(torch.utils.dlpack.to_dlpack(tensor))


def test_streams_of_dlpack(torch):
    for stream in (object(), "a", 1.5):
        with pytest.raises(TypeError, match="stream must be ``int`` or ``none``"):
            torch.ones(2).__dlpack__(stream=stream)
    with pytest.raises(AssertionError, match="stream should be None on cpu"):
        torch.ones(2).__dlpack__(stream=1)
    assert torch.ones(2).__dlpack__(stream=-1) is not None


def test_what_cannot_be_aliased(torch):
    with pytest.raises(ValueError, match="can't alias arbitrary sequence into a tensor"):
        torch.asarray([1, 2], copy=False)
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        torch.asarray(np.float64(1.0), copy=False)
    assert torch.asarray(np.float64(1.5)).item() == 1.5


@pytest.mark.filterwarnings("ignore:__array_wrap__ must accept:DeprecationWarning")
def test_functions_of_numpy_that_answer_in_bools_give_bytes(torch):
    made = np.greater_equal(torch.tensor([1, 2, 3]), 2)
    assert made.dtype is torch.uint8 and made.tolist() == [0, 1, 1]
    assert np.sqrt(torch.tensor([4.0])).dtype is torch.float32


def test_an_array_divided_by_a_tensor(torch):
    """The other operators on an array with a tensor on the right are NumPy's, which refuses them."""
    quotient = np.array([2.0, 3.0]) / torch.tensor([4.0, 8.0])
    assert isinstance(quotient, torch.Tensor) and quotient.dtype == torch.float64
    assert quotient.tolist() == [0.5, 0.375]
    for left in ("text", object(), [1.0]):
        with pytest.raises(TypeError):
            left / torch.tensor([4.0])
