"""Ops of sparse tensors against the same ops of dense ones: values, layouts and gradients, over a table of samples."""

import itertools

import numpy as np
import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad has beyond PyTorch")


def samples(torch, dtype):
    """name -> a tensor of the layout `sparse_coo`."""
    whole = torch.tensor([2.0, -6.0, 8.0, 1.0])
    whole = (whole.abs() if dtype is torch.uint8 else whole).to(dtype)
    index = torch.tensor([[0, 2, 2, 3], [1, 0, 0, 4]])
    made = torch.sparse_coo_tensor(index, whole, (4, 5))
    return {
        "uncoalesced": made,
        "coalesced": made.coalesce(),
        "empty": torch.sparse_coo_tensor(size=(4, 5), dtype=dtype),
        "one": torch.sparse_coo_tensor([[3], [1]], whole[:1], (4, 5)),
        "unsorted": torch.sparse_coo_tensor(index.flip(1), whole, (4, 5)),
    }


NAMES = ("uncoalesced", "coalesced", "empty", "one", "unsorted")
DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "uint8", "int16")
# Functions of a sparse matrix `s` and a dense one `d` of its shape, which dense tensors have too.
SAME = {
    "to_dense": lambda t, s, d: s.to_dense() if t else s,
    "times a number": lambda t, s, d: s * 3,
    "number times": lambda t, s, d: 3 * s,
    "negated": lambda t, s, d: -s,
    "added to itself": lambda t, s, d: s + s,
    "added to another": lambda t, s, d: s + s * s,
    "subtracted": lambda t, s, d: s * 2 - s,
    "dense plus sparse": lambda t, s, d: d + s,
    "dense minus sparse": lambda t, s, d: d - s,
    "times dense": lambda t, s, d: s * d,
    "dense times": lambda t, s, d: d * s,
    "times a row": lambda t, s, d: s * d[0],
    "times itself": lambda t, s, d: s * s,
    "transposed": lambda t, s, d: s.t(),
    "T": lambda t, s, d: s.T,
    "transpose": lambda t, s, d: s.transpose(0, 1),
    "permuted": lambda t, s, d: s.permute(1, 0),
    "row": lambda t, s, d: s[2],
    "column": lambda t, s, d: s[:, 1],
    "last row": lambda t, s, d: s[-1],
    "element": lambda t, s, d: s[2, 0],
    "unsqueezed": lambda t, s, d: s.unsqueeze(1),
    "new axis": lambda t, s, d: s[None],
    "concatenated": lambda t, s, d: t.cat([s, s]) if t else None,
    "sum": lambda t, s, d: s.sum(),
    "sum over rows": lambda t, s, d: s.sum(0),
    "sum over columns": lambda t, s, d: s.sum(1),
    "sum over all": lambda t, s, d: s.sum((0, 1)),
    "sum, kept": lambda t, s, d: s.sum(1, keepdim=True),
    "squared": lambda t, s, d: s**2,
    "clone": lambda t, s, d: s.clone(),
    "sign": lambda t, s, d: s.sgn(),
    "converted": lambda t, s, d: s.to(t.complex128),
}
PRODUCTS = {
    "matrix": lambda s, d: s @ d.t(),
    "from the left": lambda s, d: d.t() @ s,
    "vector": lambda s, d: s @ d[0],
    "vector from the left": lambda s, d: d[:, 0] @ s,
    "sparse": lambda s, d: s @ s.t(),
    "mv": lambda s, d: s.mv(d[0]),
}


def dense(x):
    x = x.to_dense() if x.layout is not target.torch.strided else x
    return x.to(target.torch.complex128 if x.dtype.is_complex else target.torch.float64)


def check(made, wanted, rtol=1e-5):
    assert made.shape == wanted.shape and made.dtype == wanted.dtype
    assert target.torch.allclose(dense(made), dense(wanted), rtol=rtol, atol=rtol)


def run(function, torch, s, d):
    if function is SAME["concatenated"]:
        return torch.cat([s, s])
    return function(torch, s, d)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_each_dtype(torch, name, dtype):
    if target.STAND_IN and dtype == "float16":
        pytest.skip("PyTorch has no products of elements of half floats")
    s = samples(torch, getattr(torch, dtype))[name]
    d = (torch.arange(20.0).reshape(4, 5) - 7).to(s.dtype)
    plain = s.to_dense()
    for function in SAME.values():
        made, wanted = run(function, torch, s, d), run(function, torch, plain, d)
        # In PyTorch a half float is rounded after each sum, and so is a byte.
        check(made, wanted, 2e-2 if dtype in ("float16", "bfloat16") else 1e-5)
    if dtype in ("float16", "bfloat16", "uint8", "int16", "int64", "complex64") and target.STAND_IN:
        return
    for function in PRODUCTS.values():
        check(function(s, d), function(plain, d), 5e-2 if dtype == "bfloat16" else 1e-2 if dtype == "float16" else 1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_values_on_each_device(torch, name, device):
    s, d = samples(torch, torch.float32)[name], torch.arange(20.0).reshape(4, 5) - 7
    moved, there = s.to(device), d.to(device)
    for what, function in {**SAME, **{k: lambda t, s, d, f=f: f(s, d) for k, f in PRODUCTS.items()}}.items():
        if device == "cpu" or what != "converted":  # a GPU has no complex numbers
            made = run(function, torch, moved, there)
            assert made.device == moved.device
            check(made.cpu(), run(function, torch, s.to_dense(), d))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", ["sparse_csr", "sparse_csc"])
def test_compressed_layouts(torch, name, layout):
    s = samples(torch, torch.float64)[name]
    plain = s.to_dense()
    wanted = getattr(torch, layout)
    for source in (s, plain, s.to_sparse_csr(), s.to_sparse_csc()):
        c = source.to_sparse(layout=wanted)
        assert c.layout is wanted and c.shape == s.shape
        # A conversion keeps zeros that are specified, or starts from those that are not.
        check(c, plain)
        check(c.to_sparse(), plain)
    d = torch.arange(20.0, dtype=torch.float64).reshape(4, 5) - 7
    for what in ("times a number", "negated", "added to itself", "dense plus sparse", "times dense", "times itself"):
        if layout == "sparse_csc" and what in ("times dense", "times itself") and target.STAND_IN:
            continue
        check(run(SAME[what], torch, c, d), run(SAME[what], torch, plain, d))
    for what in ("transposed", "transpose", "row", "column", "element", "sum", "sum, kept", "clone", "sign"):
        if layout == "sparse_csc" and what == "sum, kept" and target.STAND_IN:
            continue
        check(run(SAME[what], torch, c, d), run(SAME[what], torch, plain, d))
    for what in ("matrix", "from the left", "vector", "sparse"):
        check(PRODUCTS[what](c, d), PRODUCTS[what](plain, d))
    assert c.t().layout is not c.layout and c.relu().layout is c.layout


UNARY = (
    "abs asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf log1p neg rad2deg relu "
    "round sgn sign signbit sin sinh sqrt square tan tanh trunc positive nan_to_num"
).split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_that_keep_zero(torch, name):
    index, value = torch.tensor([[0, 2, 2], [1, 0, 0]]), torch.tensor([0.5, 0.25, 0.125])
    s = torch.sparse_coo_tensor(index, value, (3, 2))
    function = getattr(torch, name)
    check(function(s), function(s.to_dense()))
    check(getattr(s, name)(), function(s.to_dense()))
    if name not in ("square", "nan_to_num"):
        check(function(s.to_sparse_csr()), function(s.to_dense()))
    if name in ("positive", "square", "isinf", "isnan", "isneginf", "isposinf", "signbit"):
        return
    written = s.coalesce().clone()
    assert getattr(written, f"{name}_")() is written
    check(written, function(s.to_dense()))
    if name not in ("neg", "deg2rad", "rad2deg"):
        with pytest.raises(RuntimeError, match=f"{name}_ requires coalesced input"):
            getattr(s, f"{name}_")()


def test_hybrid_tensors(torch):
    index, value = torch.tensor([[2, 0, 2]]), torch.arange(12.0).reshape(3, 2, 2)
    h = torch.sparse_coo_tensor(index, value, (3, 2, 2))
    plain = h.to_dense()
    assert (h.sparse_dim(), h.dense_dim(), h._nnz()) == (1, 2, 3)
    assert plain.tolist() == [[[4, 5], [6, 7]], [[0, 0], [0, 0]], [[8, 10], [12, 14]]]
    assert h.coalesce().indices().tolist() == [[0, 2]] and h.coalesce().values().shape == (2, 2, 2)
    check(plain.to_sparse(1), plain)
    check(h * 2, plain * 2)
    check(h + h, plain + plain)
    check(h * plain, plain * plain)
    check(h * torch.ones(2), plain)
    check(h.sum(), plain.sum())
    check(torch.sparse.sum(h, 0), plain.sum(0))
    check(torch.sparse.sum(h, 1), plain.sum(1))
    check(torch.sparse.sum(h, (1, 2)), plain.sum((1, 2)))
    check(h[2], plain[2])
    check(h[2, 1], plain[2, 1])
    check(h.select(1, 1), plain.select(1, 1))
    check(h.index_select(1, torch.tensor([1, 0, 1])), plain[:, [1, 0, 1]])
    check(h.index_select(0, torch.tensor([2, 2])), plain[[2, 2]])
    check(torch.cat([h, h], 0), torch.cat([plain, plain], 0))
    check(torch.cat([h, h], 2), torch.cat([plain, plain], 2))
    check(torch.stack([h, h]), torch.stack([plain, plain]))
    if not target.STAND_IN:
        check(h.transpose(1, 2), plain.transpose(1, 2))
    check(h.permute(0, 2, 1), plain.permute(0, 2, 1))
    check(h.unsqueeze(3), plain.unsqueeze(3))
    check(h.narrow_copy(0, 1, 2), plain[1:3])
    check(h.narrow_copy(2, 1, 1), plain[:, :, 1:])
    check(torch.sparse.softmax(h.double(), 2), torch.softmax(plain.double(), 2) * (plain != 0).any(2, keepdim=True))


def test_sums_and_softmax_over_what_is_specified(torch):
    s = samples(torch, torch.float64)["uncoalesced"]
    plain = s.to_dense()
    masked = plain.masked_fill(plain == 0, -torch.inf)
    for dim in (0, 1, -1):
        wanted = torch.softmax(masked, dim).nan_to_num()
        check(torch.sparse.softmax(s, dim), wanted)
        logs = torch.sparse.log_softmax(s, dim).to_dense()
        check(logs, torch.where(plain != 0, torch.log_softmax(masked, dim), 0))
    assert torch.sparse.softmax(s.float(), 1, torch.float64).dtype == torch.float64
    check(s.norm(), plain.norm())
    check(s.norm(1), plain.norm(1))
    check(torch.linalg.norm(s), plain.norm())
    assert s.any().item() and not (s * 0).any().item()
    # Equal indices of truth values are one element; sums of integers are wide.
    b = torch.sparse_coo_tensor([[0, 0]], [True, True], (2,))
    assert b.to_dense().tolist() == [True, False] and torch.sparse.sum(b).item() == 1 and b._nnz() == 2
    assert s.int().sum().dtype == torch.int64 and torch.sparse.sum(s.int(), 0).dtype == torch.int32
    assert torch.sparse.sum(s, dtype=torch.float32).dtype == torch.float32
    assert torch.tensor(3.0).to_sparse().sum().item() == 3
    with pytest.raises(RuntimeError, match="alpha must not be a floating point number"):
        torch.add(s.int(), s.int(), alpha=0.5)


def test_reduced_and_sampled_products(torch):
    c = samples(torch, torch.float64)["coalesced"].to_sparse_csr()
    d = torch.arange(10.0, dtype=torch.float64).reshape(5, 2) - 4
    plain = c.to_dense()
    terms = plain[:, :, None] * d
    there = (plain != 0)[:, :, None].expand_as(terms)
    counts = there.sum(1).clamp(min=1)
    check(torch.sparse.mm(c, d, "sum"), plain @ d)
    check(torch.sparse.mm(c, d, "mean"), (plain @ d) / counts)
    wanted = torch.where(there.any(1), terms.masked_fill(~there, -torch.inf).amax(1), 0)
    check(torch.sparse.mm(c, d, "amax"), wanted)
    wanted = torch.where(there.any(1), terms.masked_fill(~there, torch.inf).amin(1), 0)
    check(torch.sparse.mm(c, d, "min"), wanted)
    a, b = torch.ones(4, 3, dtype=torch.float64) * 2, torch.arange(15.0, dtype=torch.float64).reshape(3, 5)
    if not target.STAND_IN:  # PyTorch needs MKL for it
        check(
            torch.sparse.sampled_addmm(c, a, b, beta=0.5, alpha=2.0), torch.where(plain != 0, plain / 2 + a @ b * 2, 0)
        )
    e = torch.ones(4, 2, dtype=torch.float64)
    check(torch.sparse.addmm(e, c, d, beta=2, alpha=3), 2 * e + 3 * (plain @ d))
    check(torch.addmm(e, c, d), e + plain @ d)
    s = c.to_sparse()
    for made in (torch.smm(s, d), torch.hspmm(s, d), torch.spmm(s, d), torch.dsmm(s, d), s.smm(d)):
        check(made, plain @ d)
    assert torch.hspmm(s, d).dense_dim() == 1
    check(
        torch.sspaddmm(s @ s.t(), s, torch.ones(5, 4, dtype=torch.float64), beta=2),
        2 * plain @ plain.t() + plain.sum(1)[:, None],
    )
    x = torch.stack([s, s * 2])
    check(torch.bmm(x, torch.stack([d, d])), torch.stack([plain @ d, 2 * plain @ d]))
    check(torch.nn.functional.linear(e.t(), s.t()), e.t() @ plain)


def test_masks_and_selections(torch):
    s = samples(torch, torch.float64)["uncoalesced"]
    d = torch.arange(20.0, dtype=torch.float64).reshape(4, 5) + 1
    plain, there = s.to_dense(), s.to_dense() != 0
    masked = d.sparse_mask(s.coalesce())
    assert masked.is_coalesced() and masked._nnz() == 3
    check(masked, torch.where(there, d, 0))
    check(d.sparse_mask(s.to_sparse_csr()), torch.where(there, d, 0))
    other = torch.eye(4, 5, dtype=torch.float64).to_sparse()
    check(s.coalesce().sparse_mask(other), plain * torch.eye(4, 5))
    for dim, wanted in ((0, [3, 2, 2, 0]), (1, [4, 0, 1])):
        check(s.index_select(dim, torch.tensor(wanted)), plain.index_select(dim, torch.tensor(wanted)))
    check(s.narrow_copy(1, 1, 3), plain[:, 1:4])
    assert [x.layout for x in s.unbind(1)] == [torch.sparse_coo] * 5 and len(list(s)) == 4
    check(torch.hstack([s, s]), torch.hstack([plain, plain]))
    check(torch.vstack([s, s]), torch.vstack([plain, plain]))


@pytest.mark.parametrize("size", [(7, 5), (1, 9), (40, 30)])
def test_scipy_agrees(torch, size):
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is another oracle where it is installed")
    rng = np.random.default_rng(0)
    rows, columns = (rng.integers(0, n, 60) for n in size)
    values = rng.standard_normal(60)
    theirs = sparse.coo_matrix((values, (rows, columns)), size)
    ours = torch.sparse_coo_tensor(np.stack([rows, columns]), values, size)
    csr = theirs.tocsr()
    csr.sort_indices()
    made = ours.to_sparse_csr()
    assert made.crow_indices().tolist() == csr.indptr.tolist() and made.col_indices().tolist() == csr.indices.tolist()
    np.testing.assert_allclose(made.values().numpy(), csr.data)
    csc = theirs.tocsc()
    csc.sort_indices()
    assert ours.to_sparse_csc().row_indices().tolist() == csc.indices.tolist()
    np.testing.assert_allclose((ours @ ours.t()).to_dense().numpy(), (theirs @ theirs.T).toarray())
    np.testing.assert_allclose((ours * ours).to_dense().numpy(), csr.multiply(csr).toarray())


def test_addmm_of_compressed_matrices(torch):
    for layout in (torch.sparse_csr, torch.sparse_csc):
        a = torch.tensor([[1.0, 0, 2], [0, 3, 0], [0, 0, 4]]).to_sparse(layout=layout)
        assert torch.addmm(torch.ones(3, 3), a, a).tolist() == (1 + a.to_dense() @ a.to_dense()).tolist()
        for beta in (0, 2):
            made = torch.addmm(a, a, a, beta=beta)
            assert made.layout is layout
            assert made.to_dense().tolist() == (beta * a.to_dense() + a.to_dense() @ a.to_dense()).tolist()


def test_diagonals(torch):
    made = torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 2]), (3, 4))
    assert made.to_dense().tolist() == [[0, 0, 8, 0], [3, 1, 0, 0], [0, 4, 2, 0]]
    assert torch.sparse.spdiags(torch.ones(2), torch.tensor(0), (2, 2), torch.sparse_csr).layout is torch.sparse_csr
    for beside in (3, -3):
        assert torch.sparse.spdiags(torch.ones(1, 3), torch.tensor([beside]), (3, 3))._nnz() == 0
    for arguments, message in (
        ((torch.ones(2, 3), torch.tensor([0, 0]), (3, 3)), "duplicate values"),
        (
            (torch.ones(2, 3), torch.tensor([0]), (3, 3)),
            r"Number of diagonals \(2\) does not match the number of offsets",
        ),
        ((torch.ones(1, 3), torch.tensor([0.0]), (3, 3)), "must have dtype Long"),
        ((torch.ones(1, 3), torch.tensor([0]), (3, 3, 3)), "must be 2d"),
        ((torch.ones(1, 3), torch.tensor([0]), (3, 3), torch.strided), "Only output layouts"),
        ((torch.ones(1, 3), torch.tensor([5]), (3, 3)), "negative dimension|expected offsets"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch.sparse.spdiags(*arguments)


GRADIENTS = {
    "mm": lambda t, s, d: t.sparse.mm(s, d),
    "from the left": lambda t, s, d: d @ s,
    "sparse": lambda t, s, d: s @ s,
    "mv": lambda t, s, d: s @ d[0],
    "to_dense": lambda t, s, d: s.to_dense() * d,
    "dense factor": lambda t, s, d: s * d,
    "sparse factor": lambda t, s, d: s * (s * 2),
    "added": lambda t, s, d: d + s * s,
    "transposed": lambda t, s, d: s.t() * d,
    "quotient": lambda t, s, d: s / d.sum(),
    "power": lambda t, s, d: s**3,
    "csr": lambda t, s, d: s.to_sparse_csr() @ d,
    "csc": lambda t, s, d: s.to_sparse_csc() @ d,
    "addmm": lambda t, s, d: t.addmm(d, s, d, beta=2, alpha=3),
    "coalesced": lambda t, s, d: s.coalesce().values(),
    "sum": lambda t, s, d: t.sparse.sum(s) * d,
    "sum over rows": lambda t, s, d: t.sparse.sum(s, 0),
    "softmax": lambda t, s, d: t.sparse.softmax(s, 1),
    "log_softmax": lambda t, s, d: t.sparse.log_softmax(s, 0),
    "index_select": lambda t, s, d: s.index_select(0, t.tensor([1, 1, 0])),
    "row": lambda t, s, d: s[1],
    "concatenated": lambda t, s, d: t.cat([s, s], 1),
    "stacked": lambda t, s, d: t.stack([s, s * 2]),
    "norm": lambda t, s, d: s.norm(),
    "sin": lambda t, s, d: s.sin(),
    "masked": lambda t, s, d: (s * 2).sparse_mask(t.eye(3, dtype=d.dtype).to_sparse()),
    "dense masked": lambda t, s, d: d.sparse_mask(s.detach()) * s,
    "narrowed": lambda t, s, d: s.narrow_copy(0, 1, 2),
    "sampled": lambda t, s, d: t.sparse.sampled_addmm(s.to_sparse_csr(), d, d),
    "amax": lambda t, s, d: t.sparse.mm(s.to_sparse_csr(), d, "amax"),
}


@own
@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("coalesced", [False, True])
def test_gradients_against_differences(torch, name, coalesced):
    index, value = torch.tensor([[0, 1, 1, 2], [1, 0, 0, 2]]), torch.rand(4, dtype=torch.float64) + 0.5
    s = torch.sparse_coo_tensor(index, value, (3, 3))
    s = (s.coalesce() if coalesced else s).requires_grad_()
    d = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)

    def function(s, d):
        return GRADIENTS[name](torch, s, d)

    assert torch.autograd.gradcheck(function, (s, d), masked=True)
    assert torch.autograd.gradgradcheck(function, (s, d), masked=True)
    with pytest.raises(ValueError, match="expected masked=True"):
        torch.autograd.gradcheck(function, (s, d))


def test_gradients_of_conversions(torch):
    d = torch.rand(3, 4, dtype=torch.float64, requires_grad=True)
    for function in (
        lambda x: x.to_sparse().to_dense(),
        lambda x: x.to_sparse(1).to_dense(),
        lambda x: x.to_sparse_csr().to_dense(),
    ):
        (function(d) * torch.arange(4.0)).sum().backward()
        assert d.grad.tolist() == [[0, 1, 2, 3]] * 3
        d.grad = None


def test_batches_of_compressed_matrices(torch):
    d = torch.tensor([[[1.0, 0, 2], [0, 3, 0]], [[0, 4, 0], [5, 0, 6]]])
    for layout in (torch.sparse_csr, torch.sparse_csc):
        c = d.to_sparse(layout=layout)
        assert c._nnz() == 3 and c.values().shape == (2, 3)
        assert torch.equal(c.to_dense(), d) and torch.equal((c * 2).to_dense(), d * 2)
    with pytest.raises(RuntimeError, match="same number of specified elements"):
        torch.stack([torch.eye(2), torch.ones(2, 2)]).to_sparse_csr()
    v = d.to_sparse_csr(dense_dim=1)
    assert v.dense_dim() == 1 and torch.equal(v.to_dense(), d)


def test_results_do_not_depend_on_the_form(torch):
    """Products by every pair of layouts."""
    a, b = samples(torch, torch.float64)["coalesced"], samples(torch, torch.float64)["unsorted"].t()
    wanted = a.to_dense() @ b.to_dense()
    forms = (lambda x: x.to_dense(), lambda x: x, lambda x: x.to_sparse_csr(), lambda x: x.to_sparse_csc())
    for left, right in itertools.product(forms, forms):
        x, y = left(a), right(b)
        mixed = {x.layout, y.layout} - {torch.strided}
        if target.STAND_IN and torch.sparse_coo in mixed and len(mixed) > 1:
            continue
        check(x @ y, wanted)
