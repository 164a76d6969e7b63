"""Linear algebra beyond the op table: vectors that are unique up to a sign, exceptions, threads, devices.

Decompositions are checked by their defining properties: the product is the matrix, vectors are orthonormal.
"""

import re

import numpy as np
import pytest
import rustgrad as torch

SHAPES = [(1, 1), (3, 3), (5, 3), (3, 5), (40, 40), (2, 7, 4), (70, 33), (130, 130), (0, 3), (3, 0), (2, 0, 0)]
SQUARE = [s for s in SHAPES if s[-1] == s[-2]]
DTYPES = ["float32", "float64", "complex64", "complex128"]


def matrix(shape, dtype, seed=0):
    rng = np.random.RandomState(seed)
    a = rng.randn(*shape)
    return (a + 1j * rng.randn(*shape) if "complex" in dtype else a).astype(dtype)


def same(got, want, dtype):
    got = got.numpy() if isinstance(got, torch.Tensor) else got
    exact = 1e-10 if dtype in ("float64", "complex128") else 2e-3
    np.testing.assert_allclose(got, want, rtol=exact, atol=exact * max(1, *want.shape[-2:]))


def adjoint(a):
    return np.swapaxes(a, -1, -2).conj()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_singular_vectors_make_the_matrix(shape, dtype):
    a = matrix(shape, dtype)
    for full in (False, True):
        u, s, vh = (t.numpy() for t in torch.linalg.svd(torch.tensor(a), full_matrices=full))
        k = s.shape[-1]
        same((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, dtype)
        same(adjoint(u) @ u, np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], u.shape[-1], u.shape[-1])), dtype)
        same(vh @ adjoint(vh), np.broadcast_to(np.eye(vh.shape[-2]), (*shape[:-2], vh.shape[-2], vh.shape[-2])), dtype)
        assert (np.diff(s) <= 0).all() and (s >= 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
@pytest.mark.parametrize("uplo", ["L", "U"])
def test_hermitian_eigenvectors_make_the_matrix(shape, dtype, uplo):
    a = matrix(shape, dtype)
    a = a + adjoint(a)
    read = np.tril(a) if uplo == "L" else np.triu(a)
    w, v = (t.numpy() for t in torch.linalg.eigh(torch.tensor(read), uplo))
    same((v * w[..., None, :]) @ adjoint(v), a, dtype)
    assert (np.diff(w) >= 0).all()
    same(torch.linalg.eigvalsh(torch.tensor(read), uplo), w, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SQUARE, ids=str)
def test_eigenvectors_keep_their_direction(shape, dtype):
    a = matrix(shape, dtype)
    w, v = (t.numpy() for t in torch.linalg.eig(torch.tensor(a)))
    same(a @ v, v * w[..., None, :], dtype)
    same(np.linalg.norm(v, axis=-2), np.ones(w.shape), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_make_the_matrix(shape, dtype):
    a = matrix(shape, dtype)
    for mode in ("reduced", "complete"):
        q, r = (t.numpy() for t in torch.linalg.qr(torch.tensor(a), mode))
        same(q @ r, a, dtype)
        assert not np.tril(r, -1).any()
        same(adjoint(q) @ q, np.broadcast_to(np.eye(q.shape[-1]), (*shape[:-2], q.shape[-1], q.shape[-1])), dtype)
    p, low, up = (t.numpy() for t in torch.linalg.lu(torch.tensor(a)))
    same(p @ low @ up, a, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vectors_whose_sign_does_not_matter_have_gradients(dtype):
    """The projector on some vectors, and the reconstructed matrix, whose gradient is that of the identity."""
    wide = "complex128" if "complex" in dtype else "float64"
    a = torch.tensor(matrix((4, 3), wide), requires_grad=True)

    def projector(x):
        u, s, vh = torch.linalg.svd(x, full_matrices=False)
        return u[..., :2] @ u[..., :2].mH, (u * s) @ vh, vh[:1].mH @ vh[:1], s

    def hermitian(x):
        w, v = torch.linalg.eigh(x.mH @ x)
        return v[..., :1] @ v[..., :1].mH, w

    def positive(x):
        a = x.mH @ x + torch.eye(3, dtype=x.dtype)
        return torch.linalg.cholesky(a), torch.linalg.cholesky(a, upper=True), torch.linalg.eigvalsh(a, "U")

    def general(x):
        w, v = torch.linalg.eig(x[:3])
        return w.abs().sort().values, (v.abs() ** 2).sum(1).sum()

    for f in (projector, hermitian, positive, general):
        assert torch.autograd.gradcheck(f, (a,))
        assert torch.autograd.gradgradcheck(f, (a,))


def test_the_pseudoinverse_of_hermitian_matrices_has_gradients():
    a = torch.tensor(matrix((3, 3), "float64"), requires_grad=True)
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        assert check(lambda x: torch.linalg.pinv(x @ x.mT + torch.eye(3, dtype=x.dtype), hermitian=True), (a,))


def test_the_other_triangle_is_not_read():
    a = torch.tensor([[2.0, float("nan")], [1.0, 3.0]])
    want = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    for got, uplo in ((a, "L"), (a.mT, "U")):
        assert torch.equal(torch.linalg.eigvalsh(got, uplo), torch.linalg.eigvalsh(want))
        assert torch.equal(
            torch.linalg.cholesky(got, upper=uplo == "U"), torch.linalg.cholesky(want, upper=uplo == "U")
        )


def test_results_lie_column_by_column():
    a = torch.tensor(matrix((2, 3, 3), "float32"))
    for t in (torch.linalg.inv(a), torch.linalg.qr(a).Q, torch.linalg.svd(a).Vh, torch.linalg.solve(a, a)):
        assert t.stride() == (9, 1, 3)


def test_the_largest_component_of_a_vector_is_positive():
    a = torch.tensor(matrix((5, 4), "complex128"))
    for vectors in (torch.linalg.svd(a, full_matrices=False).U, torch.linalg.eigh(a[:4] + a[:4].mH)[1]):
        top = vectors.gather(0, vectors.abs().argmax(0, keepdim=True))
        assert torch.allclose(top, top.abs().to(top.dtype))


def test_gradients_that_depend_on_a_phase_are_refused():
    x = torch.tensor(matrix((3, 3), "complex128"), requires_grad=True)
    for loss in (
        lambda: torch.linalg.svd(x).U.real.sum(),
        lambda: torch.linalg.eigh(x @ x.mH)[1].real.sum(),
        lambda: torch.linalg.eig(x)[1].real.sum(),
    ):
        with pytest.raises(RuntimeError, match="specified up to multiplication by e\\^\\{i phi\\}"):
            loss().backward()
    x = torch.randn(3, 2, requires_grad=True)
    with pytest.raises(RuntimeError, match="not differentiable when mode='complete' and nrows > ncols"):
        torch.linalg.qr(x, "complete")[0].sum().backward()
    with pytest.raises(RuntimeError, match="depends on Q, which is not computed when mode='r'"):
        torch.linalg.qr(x, "r")[1].sum().backward()


def test_the_error_class_is_a_runtime_error():
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)
    message = "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular."
    with pytest.raises(torch.linalg.LinAlgError, match=f"^{re.escape(message)}$"):
        torch.zeros(2, 2).inverse()


def test_results_have_pytorchs_names():
    assert repr(torch.linalg.slogdet(torch.eye(2))).startswith("torch.return_types.linalg_slogdet(\nsign=tensor(1.),\n")
    assert torch.linalg.svd(torch.eye(2)).Vh.shape == (2, 2)
    assert torch.eye(2).svd().V.shape == (2, 2)
    assert str(torch.eye(2, requires_grad=True).inverse().grad_fn).startswith("<LinalgInvExBackward0")


@pytest.mark.parametrize("order", [1, 2, "fro", "nuc"])
def test_norms_are_computed_in_the_dtype_asked_for(order):
    for norm in (torch.linalg.matrix_norm, torch.linalg.norm, torch.norm):
        fine = norm(torch.full((2, 2), 1 / 3), order, dtype=torch.float64)
        assert fine.dtype == torch.float64 and fine == norm(torch.full((2, 2), 1 / 3).double(), order)
    for own, asked in (
        ("complex64", "float32"),
        ("float32", "complex64"),
        ("float64", "float32"),
        ("float32", "int64"),
    ):
        t = torch.ones(2, 2, dtype=getattr(torch, own))
        with pytest.raises(RuntimeError, match="dtype should be|without narrowing"):
            torch.linalg.matrix_norm(t, order, dtype=getattr(torch, asked))
    with pytest.raises(RuntimeError, match="dtype should be complex for complex inputs"):
        torch.linalg.vector_norm(torch.ones(2, dtype=torch.complex64), dtype=torch.float32)


def test_norms_by_singular_values():
    a = torch.tensor(matrix((2, 3, 4), "float64"))
    s = torch.linalg.svdvals(a)
    assert torch.allclose(torch.linalg.matrix_norm(a, 2), s[..., 0])
    assert torch.allclose(torch.linalg.matrix_norm(a, -2), s[..., -1])
    assert torch.allclose(torch.linalg.matrix_norm(a, "nuc", keepdim=True), s.sum(-1)[:, None, None])
    assert torch.allclose(torch.linalg.norm(a[0], 2), s[0, 0])
    assert torch.allclose(torch.norm(a[0], "nuc"), s[0].sum())


def test_results_do_not_depend_on_the_number_of_threads():
    a = torch.tensor(matrix((3, 150, 150), "float32"))
    before = torch.get_num_threads()

    def everything():
        found = [
            torch.linalg.inv(a),
            *torch.linalg.svd(a),
            *torch.linalg.qr(a),
            *torch.linalg.eigh(a),
            torch.linalg.det(a),
        ]
        return [t.numpy().tobytes() for t in found]

    try:
        torch.set_num_threads(1)
        alone = everything()
        torch.set_num_threads(4)
        assert everything() == alone
    finally:
        torch.set_num_threads(before)


def test_lu_of_the_top_level():
    a = torch.tensor(matrix((3, 3), "float32"))
    lu, pivots = torch.lu(a)
    assert pivots.dtype == torch.int32 and len(torch.lu(a, get_infos=True)) == 3
    p, low, up = torch.lu_unpack(lu, pivots)
    assert torch.allclose(p @ low @ up, a, atol=1e-5)
    with pytest.raises(RuntimeError, match="U\\[1,1\\] is zero"):
        torch.lu(torch.zeros(2, 2))
    assert all(torch.equal(x, y) for x, y in zip(a.lu(get_infos=True), torch.lu(a, get_infos=True), strict=True))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("hermitian", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 3), (2, 7, 7), (40, 40), (0, 0)])
def test_ldl(shape, hermitian, dtype):
    a = matrix(shape, dtype)
    a = a + (adjoint(a) if hermitian else np.swapaxes(a, -1, -2))
    a[..., ::2, ::2] *= 0.01  # small pivots, so that blocks of two are chosen
    ld, pivots = torch.linalg.ldl_factor(torch.tensor(a), hermitian=hermitian)
    b = matrix((*shape[:-1], 2), dtype, seed=1)
    x = torch.linalg.ldl_solve(ld, pivots, torch.tensor(b), hermitian=hermitian)
    same(a @ x.numpy(), b, dtype)
    assert shape[-1] < 40 or (pivots < 0).any()


def test_ldl_of_singular_matrices():
    assert torch.linalg.ldl_factor_ex(torch.zeros(2, 2)).info == 1
    with pytest.raises(RuntimeError, match=r"torch.linalg.ldl_factor: \(Batch element 1\): D\[2,2\] is zero"):
        torch.linalg.ldl_factor(torch.stack([torch.eye(2), torch.ones(2, 2)]))


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (2, 12, 9)])
def test_lowrank(shape):
    torch.manual_seed(0)
    low = torch.tensor(matrix((*shape[:-1], 3), "float64") @ matrix((*shape[:-2], 3, shape[-1]), "float64", 1))
    u, s, v = torch.svd_lowrank(low, q=5)
    assert torch.allclose(u * s[..., None, :] @ v.mT, low) and s.shape == (*shape[:-2], 5)
    assert torch.allclose(s[..., :3], torch.linalg.svdvals(low)[..., :3])
    mean = low.mean(-2, keepdim=True)
    u, s, v = torch.svd_lowrank(low, 6, 2, mean)
    assert torch.allclose(u * s[..., None, :] @ v.mT, low - mean)
    u, s, v = torch.pca_lowrank(low)
    assert torch.allclose(u * s[..., None, :] @ v.mT, low - mean)
    with pytest.raises(ValueError, match=r"q\(=50\) must be non-negative integer and not greater than min\(m, n\)"):
        torch.pca_lowrank(low, 50)
    with pytest.raises(ValueError, match=r"niter\(=-1\)"):
        torch.pca_lowrank(low, niter=-1)


@pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, float("inf")])
@pytest.mark.parametrize("shape", [((300, 20), (400, 20)), ((2, 50, 300), (60, 300)), ((1, 7), (30000, 7))])
def test_cdist_in_tiles(shape, p):
    a, b = (torch.tensor(matrix(s, "float64", i)).requires_grad_() for i, s in enumerate(shape))
    found = torch.cdist(a, b, p, "donot_use_mm_for_euclid_dist")
    assert torch.allclose(found, torch.cdist(a, b, p), atol=1e-6)
    whole = torch.linalg.vector_norm(a[..., :, None, :] - b[..., None, :, :], p, -1)
    assert torch.allclose(found, whole)
    g = torch.tensor(matrix(tuple(found.shape), "float64", 2))
    got, want = (torch.autograd.grad(y, [a, b], g, retain_graph=True) for y in (found, whole))
    again = torch.autograd.grad(found, [a, b], g, create_graph=True)
    for x, y, z in zip(got, want, again, strict=True):
        assert torch.allclose(x, y) and torch.allclose(z, y) and z.requires_grad
    (only,) = torch.autograd.grad(torch.cdist(a.detach(), b, p), b, g)
    assert torch.allclose(only, want[1])


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (4, 2, 3)])
def test_orthogonal_(shape):
    w = torch.nn.init.orthogonal_(torch.empty(*shape), gain=2.0).flatten(1)
    short = w @ w.t() if w.shape[0] <= w.shape[1] else w.t() @ w
    assert torch.allclose(short, 4.0 * torch.eye(min(w.shape)), atol=1e-5)


def test_what_is_not_finite():
    nan = torch.full((2, 2), float("nan"))
    with pytest.raises(torch.linalg.LinAlgError, match="contained non-finite values"):
        torch.linalg.svd(nan)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        torch.linalg.eigvals(nan)
    assert torch.linalg.eigvalsh(nan).isnan().all() and torch.linalg.inv(nan).isnan().all()
    assert torch.linalg.det(nan).isnan() and torch.matrix_exp(nan).isnan().all()


def determinant_slope(a, weights):
    x = torch.tensor(a, requires_grad=True)
    det = torch.linalg.det(x)
    (slope,) = torch.autograd.grad(det, x, torch.ones_like(det), create_graph=True)
    return slope.detach().numpy(), torch.autograd.grad((slope * torch.tensor(weights)).sum().real, x)[0].numpy()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("n, rank", [(1, 0), (2, 1), (2, 0), (3, 3), (3, 2), (3, 1), (3, 0), (5, 4), (5, 3), (5, 2)])
def test_second_gradient_of_the_determinant_of_any_rank(n, rank, dtype):
    a, weights = matrix((n, rank), dtype) @ matrix((rank, n), dtype, seed=1), matrix((n, n), dtype, seed=2)
    if rank == n - 1:
        a[-1] = a[0] if n > 1 else 0  # singular to the last bit
    _, got = determinant_slope(a, weights)
    # The determinant is a polynomial, so that differences with large steps are exact up to rounding.
    want, step = np.zeros_like(a), 1e-4
    for i, j in np.ndindex(n, n):
        for unit in (1, 1j) if "complex" in dtype else (1,):
            ahead, behind = a.copy(), a.copy()
            ahead[i, j] += step * unit
            behind[i, j] -= step * unit
            change = determinant_slope(ahead, weights)[0] - determinant_slope(behind, weights)[0]
            want[i, j] += unit * (change * weights).real.sum() / (2 * step)
    np.testing.assert_allclose(got, want, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n", [1, 3, 8, 9])
def test_small_matrices_of_a_batch_are_worked_on_together_with_the_same_results(n, dtype):
    """Eight at a time, to the bit what each gives alone; singular ones and ones with NaN among them; any strides."""
    torch.manual_seed(n)
    a = torch.randn(3, 7, n, n, dtype=dtype).mT
    a[0, 1] = 0
    a[1, 2, 0, 0] = float("nan")
    positive = a @ a.mT
    positive[2, 3] = -1
    b = torch.randn(3, 7, 2, n, dtype=dtype).mT
    several = [
        torch.linalg.det(a),
        *torch.linalg.inv_ex(a),
        *torch.linalg.solve_ex(a, b),
        *torch.linalg.cholesky_ex(positive),
    ]
    for i in range(3):
        for j in range(7):
            one = [
                torch.linalg.det(a[i, j]),
                *torch.linalg.inv_ex(a[i, j]),
                *torch.linalg.solve_ex(a[i, j], b[i, j]),
                *torch.linalg.cholesky_ex(positive[i, j]),
            ]
            for whole, alone in zip(several, one, strict=True):
                np.testing.assert_array_equal(whole[i, j].numpy(), alone.numpy())


@pytest.mark.parametrize(
    ("equation", "shapes", "strides"),
    [
        ("ij,jk->ik", [(3, 4), (4, 5)], (5, 1)),
        ("ij,jk->ki", [(3, 4), (4, 5)], (3, 1)),
        ("bij,bjk->bki", [(2, 3, 4), (2, 4, 5)], (15, 3, 1)),
        ("ijk,bj->bik", [(2, 3, 4), (5, 3)], (8, 4, 1)),
        ("abs,scd->cdab", [(2, 3, 4), (4, 5, 6)], (36, 6, 3, 1)),
        ("abs,scd->cadb", [(2, 3, 4), (4, 5, 6)], (6, 90, 1, 30)),
        ("nas,nsc->can", [(7, 2, 4), (7, 4, 5)], (2, 1, 10)),
    ],
)
def test_einsum_leaves_its_result_in_pytorchs_order_of_memory(equation, shapes, strides):
    """Dropout after it draws in the order of memory. The strides are PyTorch's."""
    operands = [matrix(shape, "float64", seed) for seed, shape in enumerate(shapes)]
    out = torch.einsum(equation, *map(torch.tensor, operands))
    assert out.stride() == strides
    same(out, np.einsum(equation, *operands), "float64")


def test_operands_of_einsum_promote_where_no_letter_is_summed_over_both(torch):
    """As in PyTorch, which multiplies them as `*` does there, and as matrices elsewhere."""
    whole, single, double = torch.arange(3), torch.arange(3.0), torch.arange(3.0, dtype=torch.float64)
    outer = torch.einsum("i,j->ij", whole, single)
    assert outer.dtype is torch.float32 and torch.equal(outer, whole[:, None] * single)
    assert torch.equal(torch.einsum("i,j->ij", single, single + 1j), single[:, None] * (single + 1j))
    assert torch.einsum("i,j->i", single, double).tolist() == [0.0, 3.0, 6.0]
    assert torch.einsum("i,j,k->ijk", whole, single, double).sum().item() == 27.0
    assert torch.einsum(",i->i", torch.tensor(2), single).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(RuntimeError):
        torch.einsum("i,i->", whole, single)
    leaf = single.clone().requires_grad_()
    torch.einsum("i,j->ij", leaf, double).sum().backward()
    assert leaf.grad.dtype is torch.float32 and leaf.grad.tolist() == [3.0] * 3


def test_norms_of_complex_numbers_have_real_results(torch):
    x, out = torch.ones(2, 2, dtype=torch.complex128), torch.empty((), dtype=torch.float64)
    assert torch.linalg.norm(x, dtype=torch.complex128, out=out) is out and out.item() == 2
    assert torch.linalg.vector_norm(x, dtype=torch.complex128, out=out).item() == 2
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype double, but got float"):
        torch.linalg.vector_norm(x.real, dtype=torch.float64, out=torch.empty(()))


def test_dtypes_that_do_not_match_are_told_as_in_pytorch(torch):
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    linear = torch.nn.functional.linear
    for call, text in (
        (lambda: linear(x.long(), w, torch.ones(4)), "mat1 and mat2 must have the same dtype, but got Long and Float"),
        (
            lambda: linear(x, w, torch.ones(4).double()),
            "self and mat2 must have the same dtype, but got Double and Float",
        ),
        (lambda: x.long() @ w.t(), "expected m1 and m2 to have the same dtype, but got: long int != float"),
    ):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            call()
