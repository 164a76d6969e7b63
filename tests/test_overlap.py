"""Writes to memory that is read in the same call, or that several elements share: errors as in PyTorch."""

import pytest
from support.target import torch

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"
STACKED = "more than one element of the written-to tensor refers to a single memory location"


def memory(dtype=None):
    """Eight numbers, and two runs of four that overlap."""
    x = torch.arange(0, 8, dtype=dtype or torch.float32)
    return x, x[:4], x[1:5]


ALL = torch.arange(0, 4)
REFUSED = {
    "copy_": lambda x, a, b: a.copy_(b),
    "assignment": lambda x, a, b: x.__setitem__(slice(1, 5), a),
    "add_": lambda x, a, b: a.add_(b),
    "add_ of a transpose": lambda x, a, b: a.view(2, 2).add_(a.view(2, 2).t()),
    "addcmul_": lambda x, a, b: a.addcmul_(b, b),
    "lerp_": lambda x, a, b: a.lerp_(torch.ones(4), b),
    "clamp_": lambda x, a, b: a.clamp_(b, b),
    "addr_": lambda x, a, b: x[:4].view(2, 2).addr_(x[1:3], x[2:4]),
    "scatter_, source": lambda x, a, b: a.scatter_(0, ALL, b),
    "scatter_, itself": lambda x, a, b: a.scatter_(0, ALL, a),
    "index_add_": lambda x, a, b: a.index_add_(0, ALL, b),
    "index_add_, itself": lambda x, a, b: a.index_add_(0, ALL, a),
    "index_copy_": lambda x, a, b: a.index_copy_(0, ALL, b),
    "index_put_": lambda x, a, b: a.index_put_((ALL,), b),
    "put_": lambda x, a, b: a.put_(ALL, b),
    "out of cat": lambda x, a, b: torch.cat([a, torch.ones(1)], out=x[2:7]),
    "out of gather": lambda x, a, b: torch.gather(a, 0, ALL, out=a),
    "out of add": lambda x, a, b: torch.add(a, 1, out=b),
    "out of add, resized": lambda x, a, b: torch.add(x[1:3], 1, out=x[:1]),
}
TAKEN = {
    "copy_": lambda x, a, b: a.copy_(a),
    "add_": lambda x, a, b: a.add_(a),
    "add_ of every second": lambda x, a, b: x[::2].add_(x[1::2]),
    "fill_ with an element": lambda x, a, b: a.fill_(a[1]),
    "assignment of an element": lambda x, a, b: a.__setitem__(slice(None), a[1]),
    "masked_scatter_": lambda x, a, b: a.masked_scatter_(torch.ones(4).bool(), b),
    "addmm_": lambda x, a, b: a.view(2, 2).addmm_(b.view(2, 2), b.view(2, 2)),
    "addbmm_": lambda x, a, b: a.view(2, 2).addbmm_(b.view(1, 2, 2), b.view(1, 2, 2)),
    "out of add": lambda x, a, b: torch.add(a, 1, out=a),
    "out of cumsum": lambda x, a, b: torch.cumsum(a, 0, out=a),
}


@pytest.mark.parametrize("name", REFUSED)
def test_shared_memory_is_refused(name):
    x, a, b = memory()
    with pytest.raises(RuntimeError, match=SHARED):
        REFUSED[name](x, a, b)
    assert x.tolist() == list(range(8)), "a refused call wrote something"


def test_results_that_lie_on_each_other_are_refused():
    x, both = torch.arange(4.0), torch.zeros(())
    with pytest.raises(ValueError, match="out= tensors must not overlap"):
        torch.aminmax(x, out=(both, both))


def test_an_empty_tensor_is_no_place_for_what_it_is_part_of():
    nothing = torch.zeros(0)
    with pytest.raises(RuntimeError, match=SHARED):
        torch.cat([nothing, torch.ones(2)], out=nothing)


@pytest.mark.parametrize("name", TAKEN)
def test_shared_memory_that_is_read_in_time_is_taken(name):
    TAKEN[name](*memory())


@pytest.mark.parametrize("name", ["scatter_", "index_fill_"])
def test_an_index_may_not_be_what_it_writes_to(name):
    index = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=SHARED):
        getattr(index, name)(0, index, 1)


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.copy_(torch.ones(3)),
        lambda t: t.normal_(),
        lambda t: t.clamp_(0),
        lambda t: t.scatter_(0, torch.tensor([0]), 1.0),
        lambda t: torch.add(t, 1, out=t),
    ],
)
def test_elements_on_top_of_each_other_are_not_written(write):
    with pytest.raises(RuntimeError, match=STACKED):
        write(torch.zeros(1).expand(3))


def added(shape, beta):
    """Products of batches added to expanded ones of that shape."""
    a, b = torch.arange(12).view(2, 3, 2), torch.arange(8).view(2, 2, 2)
    return torch.ones(shape, dtype=torch.int64).expand(2, 3, 2).baddbmm_(a, b, beta=beta)


@pytest.mark.parametrize(
    ("write", "want"),
    [
        (lambda: torch.arange(1.0, 4).expand(3, 3).tril_(), [[1, 0, 0]] * 3),
        (lambda: torch.arange(1.0, 4)[:, None].expand(3, 3).tril_(), [[0] * 3, [0] * 3, [3] * 3]),
        (lambda: torch.arange(1.0, 4).expand(3, 3).triu_(-1), [[0, 2, 3]] * 3),
        (lambda: torch.arange(1.0, 5).reshape(2, 2).expand(2, 2, 2).triu_(), [[[1, 2], [0, 4]]] * 2),
        (lambda: torch.arange(1.0, 10).as_strided((3, 3), (2, 1)).triu_(), [[1, 2, 0], [0, 4, 0], [0, 0, 7]]),
        (lambda: torch.ones(1).expand(3).addmv_(torch.arange(9.0).view(3, 3), torch.ones(3)), [37] * 3),
        (lambda: torch.ones(1).expand(3).addmv_(torch.arange(9.0).view(3, 3), torch.ones(3), beta=2), [65] * 3),
        (lambda: torch.ones(1).expand(3).addmv_(torch.arange(9.0).view(3, 3), torch.ones(3), beta=0), [21] * 3),
        (lambda: added((1, 3, 2), 2), [[[74, 89], [102, 129], [130, 169]]] * 2),
        (lambda: added((2, 1, 2), 2), [[[38, 61]] * 3, [[550, 657]] * 3]),
        (lambda: added((2, 3, 1), 1), [[[6] * 2, [18] * 2, [30] * 2], [[146] * 2, [190] * 2, [234] * 2]]),
        (lambda: added((1, 1, 1), 2), [[[24463] * 2] * 3] * 2),
        (lambda: torch.nn.functional.threshold(torch.arange(1.0, 4).expand(2, 3), 2, 9, True), [[9, 9, 3]] * 2),
    ],
)
def test_shared_places_that_may_be_written_more_than_once(write, want):
    assert write().tolist() == want


def test_a_resized_output_warns():
    out = torch.ones(2)
    with pytest.warns(UserWarning, match=r"An output with one or more elements was resized since it had shape \[2\]"):
        torch.add(torch.ones(3), 1, out=out)
    assert out.tolist() == [2, 2, 2]


def test_an_empty_output_is_resized_in_silence(recwarn):
    out = torch.empty(0)
    torch.add(torch.ones(3), 1, out=out)
    assert out.shape == (3,) and not recwarn.list


def test_out_decides_the_dtype_of_a_sum():
    out = torch.zeros(2, dtype=torch.int64)
    torch.sum(torch.tensor([[1.6, 1.6], [2.0, 3.0]]), 1, out=out)
    assert out.tolist() == [2, 5]


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def test_products_added_to_shared_places_are_recorded():
    mat, vec = leaf(1.0, 2.0, 3.0, 4.0), leaf(1.0, 2.0)
    base = torch.ones(1)
    t = base.expand(2).addmv_(mat.reshape(2, 2), vec, alpha=3)
    assert t.tolist() == [49, 49] and base.grad_fn.name() == "torch::autograd::CopySlices"
    (t * torch.tensor([1.0, 2.0])).sum().backward()
    assert mat.grad.tolist() == [9, 18, 9, 18] and vec.grad.tolist() == [36, 54]


def test_unsafe_parts_share_memory_and_no_version():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    first, rest = torch.unsafe_split_with_sizes(y, [1, 2])
    assert not first._is_view() and first.data_ptr() == y.data_ptr()
    first.add_(1)
    assert (y._version, first._version, rest._version) == (0, 1, 0) and y.tolist() == [2, 2, 3]
    (first.sum() + 2 * rest.sum()).backward()
    assert x.grad.tolist() == [1, 2, 2]


def test_fill_diagonal():
    high = torch.zeros(5, 2).fill_diagonal_(1, wrap=True)
    assert high.tolist() == [[1, 0], [0, 1], [0, 0], [1, 0], [0, 1]]
    assert torch.zeros(2, 2, 2).fill_diagonal_(3).sum() == 6
    with pytest.raises(RuntimeError, match="must be of equal length"):
        torch.zeros(2, 3, 2).fill_diagonal_(1)
    w = leaf(1.0, 2.0, 3.0, 4.0)
    m = (w * 1).reshape(2, 2).fill_diagonal_(0)
    m.sum().backward()
    assert w.grad.tolist() == [0, 1, 1, 0]
