"""`repr` of sparse tensors, recorded from PyTorch 2.15."""

import pytest

INDEX, VALUE = [[0, 1], [1, 0]], [3.0, 4.0]
PRINTED = {
    "coo": (
        lambda t: t.sparse_coo_tensor(INDEX, VALUE, (2, 2)),
        """tensor(indices=tensor([[0, 1],
                       [1, 0]]),
       values=tensor([3., 4.]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo)""",
    ),
    "csr": (
        lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], VALUE, (2, 2)),
        """tensor(crow_indices=tensor([0, 1, 2]),
       col_indices=tensor([1, 0]),
       values=tensor([3., 4.]), size=(2, 2), nnz=2, layout=torch.sparse_csr)""",
    ),
    "csc": (
        lambda t: t.sparse_csc_tensor([0, 1, 2], [1, 0], VALUE, (2, 2)).double(),
        """tensor(ccol_indices=tensor([0, 1, 2]),
       row_indices=tensor([1, 0]),
       values=tensor([3., 4.]), size=(2, 2), nnz=2, dtype=torch.float64,
       layout=torch.sparse_csc)""",
    ),
    "leaf": (
        lambda t: t.sparse_csr_tensor([0, 1, 2], [1, 0], VALUE, (2, 2), requires_grad=True),
        """tensor(crow_indices=tensor([0, 1, 2]),
       col_indices=tensor([1, 0]),
       values=tensor([3., 4.]), size=(2, 2), nnz=2, layout=torch.sparse_csr,
       requires_grad=True)""",
    ),
    "product": (
        lambda t: t.sparse_coo_tensor(INDEX, VALUE, (2, 2), requires_grad=True) * 2,
        """tensor(indices=tensor([[0, 1],
                       [1, 0]]),
       values=tensor([6., 8.]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo, grad_fn=<MulBackward0>)""",
    ),
    "of values": (
        lambda t: t.sparse_coo_tensor(INDEX, t.tensor(VALUE, requires_grad=True), (2, 2)),
        """tensor(indices=tensor([[0, 1],
                       [1, 0]]),
       values=tensor([3., 4.]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo,
       grad_fn=<SparseCooTensorWithDimsAndTensorsBackward0>)""",
    ),
    "parameter": (
        lambda t: t.nn.Parameter(t.sparse_coo_tensor([[1]], [1.5], (2,))),
        """Parameter containing:
tensor(indices=tensor([[1]]),
       values=tensor([1.5000]),
       size=(2,), nnz=1, layout=torch.sparse_coo, requires_grad=True)""",
    ),
    "empty": (
        lambda t: t.sparse_coo_tensor(size=(2, 3)),
        """tensor(indices=tensor([], size=(2, 0)),
       values=tensor([], size=(0,)),
       size=(2, 3), nnz=0, layout=torch.sparse_coo)""",
    ),
    "hybrid of integers": (
        lambda t: t.sparse_coo_tensor(INDEX, [[1, 20], [300, 4]], (2, 2, 2), dtype=t.int32),
        """tensor(indices=tensor([[0, 1],
                       [1, 0]]),
       values=tensor([[  1,  20],
                      [300,   4]]),
       size=(2, 2, 2), nnz=2, dtype=torch.int32, layout=torch.sparse_coo)""",
    ),
    "truth values": (
        lambda t: t.eye(2, dtype=t.bool).to_sparse(),
        """tensor(indices=tensor([[0, 1],
                       [0, 1]]),
       values=tensor([True, True]),
       size=(2, 2), nnz=2, layout=torch.sparse_coo)""",
    ),
    "meta": (
        lambda t: t.sparse_coo_tensor(t.zeros(2, 3, dtype=t.int64, device="meta"), t.zeros(3, device="meta"), (2, 2)),
        """tensor(indices=tensor(..., size=(2, 3)),
       values=tensor(..., size=(3,)),
       device='meta', size=(2, 2), layout=torch.sparse_coo)""",
    ),
    "scalar": (
        lambda t: t.tensor(3.0).to_sparse(),
        """tensor(indices=tensor([], size=(0, 1)),
       values=tensor([3.]),
       size=(), nnz=1, layout=torch.sparse_coo)""",
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_printing(torch, name):
    make, wanted = PRINTED[name]
    assert repr(make(torch)) == str(make(torch)) == wanted


def test_printing_of_long_tensors(torch):
    torch.set_printoptions(threshold=5, edgeitems=1)
    assert repr(torch.eye(10).to_sparse()) == (
        "tensor(indices=tensor([[0,  ..., 9],\n                       [0,  ..., 9]]),\n"
        "       values=tensor([1.,  ..., 1.]),\n       size=(10, 10), nnz=10, layout=torch.sparse_coo)"
    )
    torch.set_printoptions(profile="default")
    lines = repr(torch.arange(1, 41.0).to_sparse()).splitlines()
    assert lines[1] == " " * 24 + "14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,"
    assert lines[4] == " " * 22 + "12., 13., 14., 15., 16., 17., 18., 19., 20., 21., 22.," and all(
        len(x) <= 80 for x in lines
    )
