"""`segment_reduce`: values and gradients against a loop over the segments, and what is refused."""

import math

import pytest

REDUCTIONS = {
    "sum": lambda s: s.sum(0),
    "mean": lambda s: s.mean(0),
    "prod": lambda s: s.prod(0),
    "max": lambda s: s.amax(0),
    "min": lambda s: s.amin(0),
}
EMPTY = {"sum": 0.0, "mean": math.nan, "prod": 1.0, "max": -math.inf, "min": math.inf}


def same(torch, a, b):
    torch.testing.assert_close(a, b, equal_nan=True)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("tail", [(), (3,)])
def test_segments(torch, device, reduce, tail):
    torch.manual_seed(0)
    x = torch.randn(7, *tail, device=device, requires_grad=True)
    lengths = torch.tensor([2, 0, 4, 1], device=device)
    found = torch.segment_reduce(x, reduce, lengths=lengths)
    parts = [REDUCTIONS[reduce](s) if len(s) else x.new_full(tail, EMPTY[reduce]) for s in x.split([2, 0, 4, 1])]
    expected = torch.stack(parts)
    same(torch, found, expected)
    g = torch.randn_like(expected)
    same(torch, torch.autograd.grad(found, x, g)[0], torch.autograd.grad(expected, x, g)[0])
    offsets = torch.tensor([0, 2, 2, 6, 7], device=device)
    same(torch, torch.segment_reduce(x, reduce, offsets=offsets), found)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_gradients_of_any_order(torch, reduce):
    x = torch.tensor([1.0, 3.0, -2.0, 0.5, 4.0], dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([3, 2])
    assert torch.autograd.gradcheck(lambda x: torch.segment_reduce(x, reduce, lengths=lengths, initial=0.25), x)
    assert torch.autograd.gradgradcheck(lambda x: torch.segment_reduce(x, reduce, lengths=lengths), x)


def test_what_segments_begin_with(torch):
    x, lengths = torch.arange(6.0), torch.tensor([2, 0, 4])
    expected = {"sum": [11, 10, 24], "mean": [5.5, 10, 6], "prod": [0, 10, 1200], "max": [10] * 3, "min": [0, 10, 2]}
    for reduce, values in expected.items():
        assert torch.segment_reduce(x, reduce, lengths=lengths, initial=10).tolist() == values


def test_equal_maxima_and_nans_share_a_gradient(torch):
    x = torch.tensor([1.0, 3.0, 3.0, 0.0, 5.0, math.nan, 2.0], requires_grad=True)
    for reduce, gradient in {"max": [0, 0.5, 0.5, 0, 3, 4, 0], "prod": [9, 3, 3, 15, 0, 8, math.nan]}.items():
        y = torch.segment_reduce(x, reduce, lengths=torch.tensor([3, 0, 2, 2]))
        (g,) = torch.autograd.grad(y, x, torch.tensor([1.0, 2.0, 3.0, 4.0]))
        same(torch, g, torch.tensor(gradient, dtype=torch.float32))


def test_rows_of_their_own_lengths(torch):
    x = torch.arange(6.0).reshape(2, 3)
    lengths = torch.tensor([[2, 1], [3, 0]])
    assert torch.segment_reduce(x, "max", lengths=lengths, axis=1).tolist() == [[1, 2], [5, -math.inf]]
    assert torch.segment_reduce(x, "sum", lengths=lengths, axis=-1).tolist() == [[1, 2], [12, 0]]
    # What lies outside all segments is left out.
    assert torch.segment_reduce(x[1], "sum", offsets=torch.tensor([1, 2, 2])).tolist() == [4, 0]
    assert torch.segment_reduce(x[1], "sum", lengths=torch.tensor([1, 1]), unsafe=True).tolist() == [3, 4]


def test_refused(torch):
    x, lengths = torch.ones(3), torch.tensor([1, 2])
    for error, message, arguments in [
        (RuntimeError, "Either lengths or offsets", {}),
        (RuntimeError, "indices based reduction", {"indices": lengths}),
        (RuntimeError, "axis to be the last dimension of lengths", {"lengths": lengths[None]}),
        (RuntimeError, "axis to be the last dimension of offsets", {"offsets": lengths[None]}),
        (RuntimeError, "lengths contains negative value", {"lengths": torch.tensor([4, -1])}),
        (RuntimeError, "to sum to", {"lengths": torch.tensor([4, 1])}),
        (RuntimeError, "decrease|segment_length", {"offsets": torch.tensor([0, 2, 1])}),
        (IndexError, "Dimension out of range", {"lengths": lengths, "axis": 1}),
        (NotImplementedError, "Float|float32", {"lengths": lengths.float()}),
    ]:
        with pytest.raises(error, match=message):
            torch.segment_reduce(x, "sum", **arguments)
    with pytest.raises(RuntimeError, match="got largest"):
        torch.segment_reduce(x, "largest", lengths=lengths)
    with pytest.raises(NotImplementedError):
        torch.segment_reduce(x.long(), "sum", lengths=lengths)


def test_where_rows_begin(torch):
    """By PyTorch's private names, which libraries of graphs call."""
    rows, columns = torch.tensor([0, 0, 2, 3, 3, 3]), torch.tensor([1, 2, 0, 0, 1, 3])
    starts = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert starts.tolist() == [0, 2, 2, 3, 6, 6] and starts.dtype is torch.int64
    assert torch._convert_indices_from_coo_to_csr(rows.int(), 4, out_int32=True).dtype is torch.int32
    assert torch._convert_indices_from_coo_to_csr(rows[:0], 2).tolist() == [0, 0, 0]
    pairs = torch._convert_indices_from_csr_to_coo(starts, columns)
    assert torch.equal(pairs, torch.stack([rows, columns]))
    flipped = torch._convert_indices_from_csr_to_coo(starts, columns, out_int32=True, transpose=True)
    assert torch.equal(flipped, pairs.flip(0).int()) and flipped.dtype is torch.int32
    with pytest.raises(RuntimeError):
        torch._convert_indices_from_coo_to_csr(pairs, 4)
