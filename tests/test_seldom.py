"""Functions of the top namespace that programs seldom call: figures of PyTorch."""

import pytest


def test_norms_under_old_names(torch):
    x = torch.tensor([[3.0, 4.0], [0.0, 12.0]], requires_grad=True)
    assert torch.frobenius_norm(x, []).item() == torch.frobenius_norm(x, [0, 1]).item() == 13
    assert torch.frobenius_norm(x, 1, True).tolist() == [[5], [12]]
    torch.testing.assert_close(torch.nuclear_norm(x, True), torch.linalg.svdvals(x).sum().reshape(1, 1))
    out = torch.empty(0)
    assert torch.nuclear_norm(x.detach(), (0, 1), out=out) is out and out.shape == ()
    torch.nuclear_norm(x).backward()
    assert x.grad is not None
    with pytest.raises(RuntimeError, match="2 dimensions"):
        torch.nuclear_norm(torch.ones(2))


def test_convolution_over_time(torch):
    x, w, b = torch.randn(5, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    found = torch.conv_tbc(x, w, b, 1)
    expected = sum(torch.nn.functional.pad(x, (0, 0, 0, 0, 1, 1))[k : k + 5] @ w[k] for k in range(3)) + b
    torch.testing.assert_close(found, expected)
    with pytest.raises(RuntimeError, match="3 dims"):
        torch.conv_tbc(x[0], w, b)


def test_rows_of_an_embedding_get_a_norm(torch):
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4], [6.0, 8.0]], requires_grad=True)
    assert torch.embedding_renorm_(table.detach(), torch.tensor([[0, 1], [0, 1]]), 1.0, 2.0).shape == (3, 2)
    torch.testing.assert_close(table.detach(), torch.tensor([[0.6, 0.8], [0.3, 0.4], [6.0, 8.0]]))
    with pytest.raises(RuntimeError, match="Long, Int"):
        torch.embedding_renorm_(table.detach(), torch.tensor([0.0]), 1.0, 2.0)


def test_hashes_are_of_bits(torch):
    assert torch.hash_tensor(torch.arange(5)).item() == 4 and torch.hash_tensor(torch.tensor([True, False])).item() == 1
    assert torch.hash_tensor(torch.tensor([1.5, 2.5], dtype=torch.float16)).item() == 9222246136947933184
    assert torch.hash_tensor(torch.tensor([-1, 2], dtype=torch.int8)).item() == 18446744073709551613
    x = torch.arange(12).reshape(3, 4)
    assert x.hash_tensor(1).tolist() == [0, 0, 0] and x.hash_tensor((0, 1), keepdim=True).shape == (1, 1)
    assert x.hash_tensor(0).dtype == torch.uint64 and x.hash_tensor(0).tolist() == [12, 13, 14, 15]
    assert torch.hash_tensor(torch.ones(0, 2), 0).tolist() == [0, 0]
    for bad in (lambda: torch.hash_tensor(torch.ones(0)), lambda: torch.hash_tensor(x, mode=1)):
        with pytest.raises(RuntimeError):
            bad()


def test_copies_and_views(torch):
    base = torch.arange(12.0).reshape(3, 4)
    part = base[1:]
    assert part.slice_inverse(base, 0, 1).data_ptr() == base.data_ptr()
    pairs = torch.ones(2, 2)
    made = torch.view_as_complex_copy(pairs)
    pairs.zero_()
    assert made.tolist() == [1 + 1j, 1 + 1j]
    assert torch.from_dlpack(torch.to_dlpack(base)).tolist() == base.tolist()


def test_they_are_ops_of_aten(torch):
    aten, x = torch.ops.aten, torch.tensor([[3.0, 4.0]])
    assert aten.frobenius_norm.dim(x, [1]).tolist() == [5] and aten.nuclear_norm(x).item() == 5
    assert aten.hash_tensor.default(torch.arange(5)).item() == 4
    assert aten.conv_tbc(torch.ones(3, 1, 2), torch.ones(1, 2, 2), torch.zeros(2)).tolist() == [[[2, 2]]] * 3
