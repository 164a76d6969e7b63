"""`x[index]` and `x[index] = value` beyond the op table: accepted values, errors, strides of results."""

import warnings

import numpy as np
import pytest


@pytest.mark.parametrize("shape", [(1, 2), (1, 1, 2), (1, 1, 1), (1,)])
def test_leading_ones_of_a_value_are_dropped(torch, shape):
    value = torch.full(shape, 7.0)
    for index in (slice(0, 2), [0, 1], torch.tensor([True, True]), (range(2), [0, 1])):
        x = torch.zeros(2, 2)
        x[index] = value
        want = np.zeros((2, 2))
        want[index if isinstance(index, (slice, tuple)) else np.asarray(index)] = 7.0
        assert x.tolist() == want.tolist(), index


def test_a_tensor_assigned_to_itself(torch):
    x = torch.arange(3.0)
    x[None] = x
    x[None, :, ...] = x
    x[True] = x
    assert x.tolist() == [0, 1, 2]
    one = torch.ones(1)
    one[one == 1] = one
    assert one.tolist() == [1]
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]


def test_lone_booleans(torch):
    x = torch.zeros(2, 2)
    x[False] = 5
    assert x.sum() == 0
    x[True] = torch.tensor([1, 2])
    assert x.tolist() == [[1, 2], [1, 2]]


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("uint8", 300), ("uint8", -300), ("int64", 1e30), ("float32", 1j), ("int32", 1j), ("float16", 7e4)],
)
def test_numbers_that_do_not_fit_are_refused(torch, dtype, value):
    for index in (0, [0], ([0], [0]), (Ellipsis, [0, 1], [1, 0]), True):
        x = torch.zeros(2, 2, dtype=getattr(torch, dtype))
        with pytest.raises(RuntimeError, match="without overflow|Converting complex Scalar"):
            x[index] = value
        assert x.abs().sum() == 0
    x = torch.zeros(2, 2, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match="without overflow"):
        x[x == 0] = value


def test_every_number_is_a_truth_value(torch):
    for index in (0, torch.tensor([True, False, False])):
        x = torch.zeros(3, dtype=torch.bool)
        x[index] = 1j
        assert x.tolist() == [True, False, False]


def test_dtypes_of_assigned_tensors(torch):
    for target, source in [
        ("float32", "float64"),
        ("float32", "int64"),
        ("int64", "float32"),
        ("float32", "complex64"),
    ]:
        x = torch.zeros(2, dtype=getattr(torch, target))
        value = torch.ones(2, dtype=getattr(torch, source))
        for index in ([0, 1], x == 0):
            with pytest.raises(RuntimeError, match="Index put requires the source and destination dtypes match"):
                x[index] = value
        # A one-element value for a mask is a number.
        for number in (value[0], value[:1]):
            x[torch.tensor([False, True])] = number
        assert x.tolist() == [0, 1]
    x = torch.zeros(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
        x[x == 0] = torch.tensor(1e30)


def test_gradients_of_an_assigned_number(torch):
    base, value = torch.zeros(4, requires_grad=True), torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    x = base * 1
    x[torch.tensor([True, False, True, False])] = value
    (x * torch.arange(4.0)).sum().backward()
    assert base.grad.tolist() == [0, 1, 0, 3] and value.grad.item() == 2 and value.grad.dtype == torch.float64


def test_expanded_tensors(torch):
    mask = torch.tensor([True, True, False])
    for index, value in [
        (mask, torch.tensor(2.0)),
        (mask, 2.0),
        (mask, torch.tensor([2.0, 2.0])),
        ([0], torch.tensor([2.0])),
    ]:
        x = torch.zeros(1).expand(3)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            x[index] = value
        assert x.tolist() == [2, 2, 2]
    x = torch.ones(1, 3).expand(4, 3)
    x[:, 3:] = 5
    x[4:] = torch.ones(0, 3)
    assert x.sum() == 12
    with pytest.raises(RuntimeError, match="single memory location"):
        x[:, 1] = torch.arange(4.0)


# The strides were recorded from PyTorch.
CHANNELS_LAST = [
    (lambda t: (t.tensor([0, 1]),), (60, 1, 15, 3)),
    (lambda t: (slice(None), t.tensor([0, 1])), (40, 20, 5, 1)),
    (lambda t: (slice(None), slice(None), t.tensor([0, 1])), (30, 1, 3, 6)),
    (lambda t: (t.tensor([0, 1]), t.tensor([0, 1])), (20, 5, 1)),
]
PERMUTED = [
    (lambda t: (t.tensor([[0, 1], [1, 2]]),), (24, 12, 4, 1)),
    (lambda t: (slice(None), t.tensor([[0, 1], [1, 2]]).t()), (1, 5, 10, 20)),
]
ROW_MAJOR = [
    (lambda t: (t.tensor([[0, 1, 2], [1, 2, 0]]).t(),), (20, 60, 5, 1)),
    (lambda t: (slice(None), t.tensor([0, 1]), t.tensor([[0], [2], [1]])), (6, 2, 1)),
    (lambda t: (t.tensor([0, 1]), slice(None), t.tensor([[0], [2], [1]])), (8, 4, 1)),
]


@pytest.mark.parametrize(("index", "strides"), CHANNELS_LAST + PERMUTED + ROW_MAJOR)
def test_results_lie_as_their_operands(torch, device, index, strides):
    if (index, strides) in CHANNELS_LAST:
        x = torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    else:
        x = torch.arange(60.0).reshape(3, 4, 5)
        x = x.permute(2, 0, 1) if (index, strides) in PERMUTED else x
    key = index(torch)
    got = x.to(device)[tuple(k.to(device) if isinstance(k, torch.Tensor) else k for k in key)]
    want = x.numpy()[tuple(k.numpy() if isinstance(k, torch.Tensor) else k for k in key)]
    assert got.stride() == strides and np.array_equal(got.cpu().numpy(), want)


def test_index_copy_into_a_number(torch):
    index, source = torch.tensor([0]), torch.tensor([5.0], requires_grad=True)
    assert torch.tensor(1.0).index_copy(0, torch.tensor(0), source.detach()).item() == 5
    x = torch.tensor(1.0, requires_grad=True)
    out = x.index_copy(0, index, source)
    out.backward()
    assert out.item() == 5 and out.shape == () and x.grad.item() == 0 and source.grad.tolist() == [1]
    assert torch.tensor([1.0, 2.0]).index_copy(0, torch.tensor(0), source.detach()).tolist() == [5, 2]
    number = torch.tensor(5.0)
    assert torch.tensor([1.0, 2.0]).index_copy(0, index, number).tolist() == [5, 2]
    with pytest.raises(
        RuntimeError, match="Destination slice shape: 2 at dimension 0 and source slice shape:  at dimension 0"
    ):
        torch.ones(3, 2).index_copy(0, index, number)
    with pytest.raises(IndexError, match=r"Source dimensionality \(1\), destination dimensionality \(2\)"):
        torch.ones(3, 2).index_copy(0, index, torch.ones(2))


def test_masks_of_bytes_warn(torch):
    x, mask = torch.ones(3, 2), torch.tensor([1, 0, 1], dtype=torch.uint8)
    for read in (lambda: x[mask], lambda: x.index_put((mask,), torch.ones(2))):
        with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated") as heard:
            read()
        assert len(heard) == 1


def test_an_index_is_checked_before_the_value(torch):
    for index in (torch.tensor([True, False]), torch.tensor([1.0])):
        with pytest.raises(IndexError):
            torch.zeros(3)[index] = torch.ones(7, dtype=torch.float64)


def test_products_of_scatter_are_those_of_mul(torch):
    """Both round alike: a product that is scattered has the bits of the elementwise one."""
    torch.manual_seed(0)
    for dtype in (torch.float32, torch.complex64, torch.complex128):
        a, b = torch.randn(200, dtype=dtype), torch.randn(200, dtype=dtype)
        got = a.scatter_reduce(0, torch.arange(200), b, "prod")
        assert torch.equal(got, a * b), dtype


def test_indices_of_empty_tensors_are_checked(torch):
    for shape, dim, index in (((0, 3), 1, [0, 3]), ((0, 3), 1, [-1]), ((2, 0), 0, [2])):
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            torch.zeros(shape).index_select(dim, torch.tensor(index))
    # The classes are PyTorch's: those of a matrix are not those of a row.
    for shape, dim, error, message in (
        ((0, 3), 1, RuntimeError, "INDICES element is out of DATA bounds"),
        ((2, 0), 1, RuntimeError, "self indexing axis dim should be positive"),
        ((0,), 0, IndexError, "index out of range"),
    ):
        with pytest.raises(error, match=message):
            torch.zeros(shape).index_select(dim, torch.tensor([5]))
    assert torch.zeros(0, 3).index_select(1, torch.tensor([2, 0, 1, 1])).shape == (0, 4)
    assert torch.zeros(0, 3).index_select(0, torch.zeros(0, dtype=torch.int64)).shape == (0, 3)


def test_a_part_of_the_tensor_itself_is_assigned(torch):
    """Of another shape, it is read before anything is written."""
    x = torch.arange(6.0).reshape(2, 3)
    x[1] = x[1][0]
    assert x.tolist() == [[0, 1, 2], [3, 3, 3]]
    x = torch.arange(6.0).reshape(2, 3)
    x[:] = x[1]
    assert x.tolist() == [[3, 4, 5], [3, 4, 5]]
    x = torch.arange(3.0, requires_grad=True) * 1
    x[:] = x[1:2]
    x.sum().backward()
