"""Products of matrices of which at least one is sparse."""

from __future__ import annotations

from .. import _C, _formats
from .._C import Tensor, ops
from ._convert import as_coo, begins, coalesce, flat, places, to_compressed, to_layout
from ._printing import NAMES
from ._shape import runs, transpose
from ._tensor import CooTensor, compressed, coo, is_sparse, refuse


def _check_matrices(a, b, name):
    for number, one in ((1, a), (2, b)):
        if one.dim() != 2:
            raise RuntimeError(f"{name}: mat{number} must be a matrix, got {one.dim()}-D tensor")
        if is_sparse(one) and one.dense_dim():
            raise RuntimeError(f"{name}: expected mat{number} to have two sparse dimensions, got {one.sparse_dim()}")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"{name}: mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"
        )
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: expected m1 and m2 to have the same dtype, but got: {a.dtype._scalar_type_name} != "
            f"{b.dtype._scalar_type_name}"
        )
    if a.device != b.device:
        raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but got {a.device} and {b.device}")


def mm(self, mat2):
    """A product of two matrices of which at least one is sparse: sparse if both are."""
    _check_matrices(self, mat2, "mm")
    if not is_sparse(self):
        return _times_dense(transpose(mat2, 0, 1), self.t()).t()
    return _times_sparse(self, mat2) if is_sparse(mat2) else _times_dense(self, mat2)


def _times_dense(self, dense):
    """A sparse matrix times a dense one."""
    row, column = places(self)
    return ops["_sparse_times_dense"](row, column, self._value, dense, self.shape[0])


def _times_sparse(self, other):
    """The product of two sparse matrices: each element meets those of the row that its column names."""
    a, b = as_coo(self), coalesce(as_coo(other))
    bounds = begins(b._index[0], b.shape[0])
    column = a._index[1]
    which, at = runs(bounds.index_select(0, column), bounds.index_select(0, column + 1))
    value = a._value.index_select(0, which) * b._value.index_select(0, at)
    index = ops["stack"]([a._index[0].index_select(0, which), b._index[1].index_select(0, at)])
    made = coalesce(coo(index, value, (a.shape[0], b.shape[1])))
    if isinstance(self, CooTensor) or isinstance(other, CooTensor):
        return made
    return to_compressed(made, _formats.sparse_csr)


def mv(self, vec):
    """A sparse matrix times a dense vector."""
    if is_sparse(vec) or not is_sparse(self):
        refuse("mv of a sparse vector", (vec if is_sparse(vec) else self).layout)
    if self.dim() != 2 or vec.dim() != 1:
        raise RuntimeError(f"mv: two tensor dim should be 2 and 1, but got SparseTensor Dim: {self.dim()} {vec.dim()}")
    if self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"mv: expected self.size(-1) == vec.size(-1), got {self.shape[1]} and {vec.shape[0]}")
    return mm(self, vec[:, None])[:, 0]


def bmm(self, mat2):
    """A batch of sparse matrices times a batch of dense ones."""
    if is_sparse(mat2) or not isinstance(self, CooTensor):
        if is_sparse(mat2):
            raise RuntimeError("bmm_sparse: Tensor 'mat2' must be dense")
        refuse("bmm", self.layout)
    if self.dim() != 3 or mat2.dim() != 3 or self.dense_dim():
        raise RuntimeError(
            f"bmm_sparse: expected batches of matrices, got tensors of {self.dim()} and {mat2.dim()} dimensions"
        )
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(f"bmm_sparse: shapes cannot be multiplied, got {list(self.shape)} and {list(mat2.shape)}")
    b, n, k = self.shape
    which, row, column = self._index
    index = ops["stack"]([which * n + row, which * k + column])
    blocks = coo(index, self._value, (b * n, b * k))
    return _times_dense(blocks, flat(mat2, 2)).reshape(b, n, mat2.shape[2])


def matmul(self, other):
    """`self @ other`, where one is sparse and none has more than two dimensions, or both are batches."""
    a, b = self.dim(), other.dim()
    if (a, b) == (2, 2):
        return mm(self, other)
    if (a, b) == (2, 1) and is_sparse(self):
        return mv(self, other)
    if (a, b) == (1, 2) and is_sparse(other):
        return mv(transpose(other, 0, 1), self)
    if (a, b) == (3, 3) and is_sparse(self):
        return bmm(self, other)
    raise RuntimeError(
        f"matmul: expand is unsupported for Sparse tensors; expected matrices and vectors, got tensors of {a} and {b} "
        "dimensions. Hint: call .to_dense()."
    )


def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """`beta * self + alpha * mat1 @ mat2`, where `self` is dense and a factor sparse, or all are compressed."""
    if not is_sparse(mat1) and not is_sparse(mat2) or is_sparse(self) and isinstance(self, CooTensor):
        raise RuntimeError(
            f"addmm_sparse_dense: expected strided result tensor, got tensor with layout {NAMES[self.layout]}"
        )
    product = mm(mat1, mat2)
    if not is_sparse(self) and is_sparse(product) and not isinstance(product, CooTensor):
        product = product.to_dense()
    if is_sparse(product) is not is_sparse(self):
        raise RuntimeError(
            f"addmm: not implemented for {NAMES[self.layout]} + {NAMES[mat1.layout]} @ {NAMES[mat2.layout]}"
        )
    product = product * alpha if alpha != 1 else product
    if beta == 0:
        return product.expand(product.shape) if not is_sparse(product) else to_layout(product, self.layout)
    if is_sparse(self):
        return to_layout(self * beta + to_layout(product, self.layout), self.layout)
    return (self * beta if beta != 1 else self) + product


def addmv(self, mat, vec, *, beta=1, alpha=1):
    """`beta * self + alpha * mat @ vec`, where the matrix is sparse."""
    product = mv(mat, vec) * alpha
    return product if beta == 0 else self * beta + product


def linear(input, weight, bias=None):
    """`input @ weight.t() + bias`, where one of both is a sparse matrix."""
    made = matmul(input, transpose(weight, 0, 1) if is_sparse(weight) else weight.t())
    return made if bias is None else made + bias


def smm(self, mat2):
    """A sparse matrix times a dense one, all of whose elements are specified in a sparse result."""
    return sspaddmm(coo_zeros(self, mat2), self, mat2, beta=0)


def coo_zeros(mat1, mat2):
    """Zeros of the shape of a product."""
    from ._construct import empty_coo

    return empty_coo((mat1.shape[0], mat2.shape[-1]), mat1.dtype, mat1.device)


def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
    """`beta * self + alpha * mat1 @ mat2` for sparse `self` and `mat1`: sparse, with every element of the rows of `mat1`."""
    for name, one, wanted in (("mat1", mat1, True), ("mat2", mat2, False)):
        if is_sparse(one) is not wanted:
            raise RuntimeError(
                f"sspaddmm: expected '{name}' to have {'sparse' if wanted else 'strided'} layout, got '{name}' with layout "
                f"{NAMES[one.layout]}"
            )
    if not isinstance(self, CooTensor):
        raise RuntimeError(f"sspaddmm: expected 'self' to have sparse layout, got {NAMES[self.layout]}")
    product = _hybrid(mat1, mat2, "sspaddmm") * alpha
    rows, columns = product._index[0], ops["arange"](mat2.shape[1], device=mat2.device)
    index = ops["stack"]([rows.repeat_interleave(mat2.shape[1]), columns.repeat(rows.shape[0])])
    made = coo(index, product._value.flatten(), product.shape)
    if beta == 0 or not self._nnz():
        return made
    return coo(ops["cat"]([self._index, index], 1), ops["cat"]([self._value * beta, made._value]), made.shape)


def _hybrid(mat1, mat2, name):
    """The rows of a product that are not empty: one sparse and one dense dimension."""
    _check_matrices(mat1, mat2, name)
    whole = as_coo(mat1)
    rows, at = ops["unique"](whole._index[0], return_inverse=True)[:2]
    short = coo(ops["stack"]([at, whole._index[1]]), whole._value, (rows.shape[0], mat1.shape[1]))
    return coo(rows[None], _times_dense(short, mat2), (mat1.shape[0], mat2.shape[1]))


def hspmm(mat1, mat2):
    """A sparse matrix times a dense one: a result of one sparse and one dense dimension."""
    if not isinstance(mat1, CooTensor) or is_sparse(mat2):
        raise RuntimeError("hspmm: expected a sparse and a dense matrix")
    return _hybrid(mat1, mat2, "hspmm")


_REDUCTIONS = ("sum", "mean", "amax", "amin")


def reduced_mm(mat1, mat2, reduce):
    """The product of a `sparse_csr` and a dense matrix whose terms are reduced in another way than by their sum."""
    reduce = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    if reduce not in (*_REDUCTIONS, "prod"):
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce == "prod":
        raise NotImplementedError("sparse.mm: reduce='prod' is not implemented; expected sum, mean, amax or amin")
    if not (is_sparse(mat1) and mat1.layout is _formats.sparse_csr) or is_sparse(mat2):
        layouts = f"{mat1.layout._name} and {mat2.layout._name}"
        raise NotImplementedError(f"sparse.mm: reduce= is for a sparse_csr and a strided matrix, got {layouts}")
    _check_matrices(mat1, mat2, "sparse.mm")
    row, column = places(mat1)
    if reduce == "sum":
        return _times_dense(mat1, mat2)
    if reduce == "mean":
        lengths = mat1._pointers.diff().clamp(min=1)[:, None].to(mat2.dtype)
        return _times_dense(mat1, mat2) / lengths
    terms = mat2.index_select(0, column) * mat1._value[:, None]
    zeros = ops["zeros"]((mat1.shape[0], mat2.shape[1]), dtype=mat2.dtype, device=mat2.device)
    return zeros.scatter_reduce(0, row[:, None].expand_as(terms), terms, reduce, include_self=False)


def sampled_addmm(self, mat1, mat2, *, beta=1.0, alpha=1.0):
    """`beta * self + alpha * (mat1 @ mat2)` at the indices of a `sparse_csr` or `sparse_csc` tensor `self` alone."""
    if not is_sparse(self) or isinstance(self, CooTensor):
        layout = self.layout if isinstance(self, Tensor) else _formats.strided
        raise NotImplementedError(f"sampled_addmm: expected self of layout sparse_csr, got {layout._name}")
    if is_sparse(mat1) or is_sparse(mat2):
        raise RuntimeError("sampled_addmm: Expected mat1 and mat2 to have strided layout")
    if not self.dim() == mat1.dim() == mat2.dim() == 2:
        refuse("sampled_addmm of a batch", self.layout)
    if mat1.shape[1] != mat2.shape[0] or self.shape != _C.Size((mat1.shape[0], mat2.shape[1])):
        raise RuntimeError(
            f"sampled_addmm: expected shapes that multiply to {tuple(self.shape)}, got {tuple(mat1.shape)} and "
            f"{tuple(mat2.shape)}"
        )
    row, column = places(self)
    sampled = ops["_sampled_product"](row, column, mat1, mat2.t())
    value = sampled * alpha if beta == 0 else self._value * beta + sampled * alpha
    return compressed(self._layout, self._pointers, self._plain, value, self.shape)
