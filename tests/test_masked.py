"""`torch.masked` beyond the table: fully masked lines, negative orders, requested dtypes."""

import pytest
from support import target

NAN, INF = float("nan"), float("inf")
X = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
FIRST = [[True, False, True], [False, False, False]]


@pytest.mark.parametrize(
    ("name", "args", "want"),
    [
        ("sum", (1,), [4.0, 0.0]),
        ("prod", (1,), [3.0, 1.0]),
        ("amax", (1,), [3.0, -INF]),
        ("amin", (1,), [1.0, INF]),
        ("argmax", (1,), [2.0, 0.0]),
        ("argmin", (1,), [0.0, 0.0]),
        ("mean", (1,), [2.0, NAN]),
        ("median", (1,), [1.0, NAN]),
        ("norm", (1, 1), [4.0, 0.0]),
        ("var", (1,), [2.0, NAN]),
        ("var", (1, False), [1.0, NAN]),
        ("std", (1, False), [1.0, NAN]),
        ("logsumexp", (1,), [3.126928, -INF]),
        ("softmax", (1,), [[0.1192029, 0.0, 0.8807971], [NAN] * 3]),
        ("cumsum", (1,), [[1.0, 1.0, 4.0], [0.0] * 3]),
        ("cumprod", (1,), [[1.0, 1.0, 3.0], [1.0] * 3]),
        ("normalize", (1, 1), [[0.25, 0.0, 0.75], [0.0] * 3]),
    ],
)
def test_lines_without_elements(torch, device, name, args, want):
    import importlib

    op = getattr(importlib.import_module(f"{torch.__name__}.masked"), name)
    x = torch.tensor(X, device=device)
    got = op(x, *args, mask=torch.tensor(FIRST, device=device))
    assert torch.allclose(got.cpu(), torch.tensor(want), equal_nan=True)


@pytest.mark.parametrize("name", ["sum", "mean", "amax", "logsumexp", "softmax"])
def test_no_gradient_where_masked(torch, name):
    """Not NaN either: the masked-out row has zero gradient, whatever its result."""
    x = torch.tensor(X, requires_grad=True)
    no_gradient(torch, name, x)


def no_gradient(torch, name, x):
    getattr(torch.masked, name)(x, 1, mask=torch.tensor(FIRST)).nan_to_num(0, 0, 0).sum().backward()
    assert x.grad[0, 1] == 0 and x.grad[1].tolist() == [0, 0, 0]


def test_dtypes(torch):
    mask, m = torch.tensor(FIRST), torch.masked
    ints = torch.tensor(X, dtype=torch.int32)
    assert m.sum(ints, mask=mask).dtype == torch.int64 and m.amax(ints, mask=mask).dtype == torch.int32
    assert m.argmax(ints, 1).dtype == torch.int32 and m.argmax(ints, 1, dtype=torch.int64).dtype == torch.int64
    assert m.amax(ints, 1, mask=mask).tolist() == [3, -(2**31)]
    assert m.amin(ints.to(torch.uint8), 1, mask=mask).tolist() == [1, 255]
    assert m.var(ints, 0).dtype == torch.float32 and m.mean(ints, dtype=torch.float64).dtype == torch.float64
    assert m.sum(mask, 1, mask=mask).tolist() == [2, 0]
    assert m.logaddexp(torch.zeros(2), torch.zeros(2), input_mask=torch.tensor([True, False])).tolist()[1] == 0.0


@pytest.mark.skipif(target.STAND_IN, reason="where PyTorch has zeros, NaN or the input's dtype")
def test_better_answers(torch):
    x, mask = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[True, True, False]])
    assert torch.masked.norm(x, -1, 1, mask=mask).item() == pytest.approx(2 / 3)
    assert torch.masked.median(x, 1, dtype=torch.float64, mask=mask).dtype == torch.float64
    no_gradient(torch, "var", torch.tensor(X, requires_grad=True))


def test_logsumexp_of_columns_far_below_zero(torch, device):
    """Each column is folded into an empty accumulator."""
    x = torch.tensor([[-300.0, 1.0, -1e9], [3.0, -300.0, -1e9], [-300.0, -300.0, -2e9]], device=device)
    assert torch.logsumexp(x, 0).tolist() == [3.0, 1.0, -1e9]
    far = torch.full((200, 3), -1000.0, device=device)
    assert torch.allclose(torch.logsumexp(far, 0), torch.tensor(-994.70168, device=device))


def test_what_masks_stand_for(torch):
    m, x, mask = torch.masked, torch.tensor(X), torch.tensor([True, False, False])
    assert m._reduction_identity("masked.amax", x).item() == -INF and m._reduction_identity("mean", x) is None
    assert m._reduction_identity("prod", x.long()).item() == 1 and m._reduction_identity("amin", x.byte()).item() == 255
    assert m._input_mask(x, mask=mask).tolist() == [[True, False, False]] * 2
    assert m._output_mask(m.sum, x, 0, mask=mask).tolist() == [True, False, False]
    assert m._output_mask(m.norm, x, 2, 1, keepdim=True, mask=mask).tolist() == [[True], [True]]
    assert m._output_mask(m.softmax, x, 1, mask=mask).shape == (2, 3)
    with pytest.raises(NotImplementedError, match="identity of amax on torch.bool input"):
        m._reduction_identity("amax", mask)
    with pytest.raises(ValueError, match="expected masked operation"):
        m._output_mask(torch.cos, x, mask=mask)


@pytest.mark.parametrize("layout", ["coo", "csr"])
@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
def test_sparse_tensors_and_masks(torch, name, layout):
    """Of a sparse tensor the result has the lines that have masked-in elements, of which unspecified ones are zero."""
    function = getattr(torch.masked, name)

    def compressed(t):
        return t.to_sparse() if layout == "coo" else t.to_sparse_csr()

    dense = torch.tensor([[1.0, -2, 3, 0], [0, 5, 0, 6], [7, 8, 9, 0]])
    mask = torch.tensor([[True, False, True, True], [True, True, False, False], [False] * 4])
    for dim in (None, 0, 1, (0, 1)):
        assert torch.allclose(
            function(dense, dim, mask=compressed(mask)), function(dense, dim, mask=mask), equal_nan=True
        )
        if name == "mean" and layout == "coo":
            with pytest.raises(ValueError, match="masked mean expects strided or sparse_csr tensor"):
                function(compressed(dense), dim, mask=compressed(mask))
            continue
        keepdim = layout == "csr"
        if target.STAND_IN and keepdim and dim == 1:
            continue  # where PyTorch leaves out the row without elements
        got = function(compressed(dense), dim, keepdim=keepdim, mask=compressed(mask))
        assert got.layout is compressed(dense).layout
        want = torch.where(mask, dense, torch.zeros(()))
        lines = mask.any(dim if dim is not None else (0, 1), keepdim=keepdim)
        want = torch.where(lines, function(want, dim, keepdim=keepdim, mask=mask), torch.zeros(()))
        assert torch.allclose(got.to_dense(), want)
    if name != "sum":
        with pytest.raises(ValueError, match="expects explicit mask|expects strided"):
            function(compressed(dense), 0, keepdim=True)
    with pytest.raises(ValueError, match="masked std expects strided tensor|sparse"):
        torch.masked.std(compressed(dense), 0, mask=compressed(mask))
    if layout == "csr":
        with pytest.raises((RuntimeError, AssertionError), match="keepdim=False is unsupported"):
            function(compressed(dense), 0, mask=compressed(mask))


@pytest.mark.skipif(target.STAND_IN, reason="where PyTorch has no gradient, or a dense mask alone")
def test_gradients_of_sparse_tensors(torch):
    mask = torch.tensor(FIRST).to_sparse()
    x = torch.tensor(X).to_sparse().requires_grad_()
    torch.masked.prod(x, 1, mask=mask).to_dense().sum().backward()
    assert x.grad.to_dense().tolist() == [[3.0, 0.0, 1.0], [0.0, 0.0, 0.0]]
    torch.masked.sum(x, mask=mask.to_dense()[:1]).to_dense().backward()
    assert x.grad.to_dense().tolist() == [[4.0, 0.0, 2.0], [1.0, 0.0, 1.0]]


def test_masks_broadcast_to_sparse_tensors(torch):
    t = torch.arange(1.0, 7.0).reshape(2, 3)
    amax, columns, rows = torch.masked.amax, torch.tensor([True, False, True]), torch.tensor([[True], [False]])
    assert amax(t.to_sparse(), 0, mask=columns).to_dense().tolist() == [4, 0, 6]
    assert amax(t.to_sparse(), 0, mask=rows.to_sparse()).to_dense().tolist() == [1, 2, 3]
    assert torch.masked.sum(t.to_sparse(), dim=(), mask=columns).to_dense().item() == 14
    with pytest.raises(IndexError, match="mask dimensionality higher"):
        amax(t.to_sparse(), 0, mask=torch.ones(1, 2, 3) > 0)
    with pytest.raises(RuntimeError, match="expanded size|broadcast"):
        amax(t.to_sparse(), 0, mask=torch.ones(2, 2) > 0)
    # A fold of no element is the identity where it is the only one.
    none = torch.zeros(2, 3) > 0
    for name, want in {"sum": 0, "prod": 1, "amin": INF, "amax": -INF}.items():
        fold = getattr(torch.masked, name)
        assert fold(t.to_sparse(), dim=(), mask=none).to_dense().item() == want
        assert fold(t.to_sparse(), dim=(), keepdim=True, mask=none.to_sparse()).to_dense().tolist() == [[want]]
