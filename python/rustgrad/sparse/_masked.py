"""The functions of `rustgrad.masked` by sparse masks, and of sparse tensors: elements are grouped by their indices, none becomes dense.

A masked-in element that the tensor does not specify is zero.
"""

from __future__ import annotations

from .. import _C, _formats
from .._C import ops
from ._convert import as_coo, indices_of, keys, sparse_mask
from ._tensor import coo, is_sparse, refuse

_FOLDS = {"sum": "sum", "prod": "prod", "amax": "amax", "amin": "amin", "mean": "sum"}


def rule(name):
    """The rule of `masked.name`, whose input or mask is sparse."""
    op = ops[f"masked.{name}"]

    def called(input, *args, mask=None, **kwargs):
        if is_sparse(input):
            return _of_sparse(name, input, args, mask, kwargs)
        return op(input, *args, mask=mask if mask is None else mask.to_dense(), **kwargs)

    return called


def _of_sparse(name, input, args, mask, kwargs):
    """A reduction of a sparse tensor, which has the elements that have masked-in ones.

    Raises:
        ValueError: the function takes dense tensors alone, or a mask that is not given.
        RuntimeError: `sparse_csr` without `keepdim`.
    """
    csr = input.layout is _formats.sparse_csr
    if name not in _FOLDS or (name == "mean" and not csr):
        wanted = "strided or sparse_csr" if name == "mean" else "strided"
        raise ValueError(f"masked {name} expects {wanted} tensor (got {input.layout} tensor)")
    if mask is None and name != "sum":
        raise ValueError(f"masked {name} expects explicit mask for {input.layout._name} tensor input")
    dim = args[0] if args else kwargs.get("dim")
    keepdim, dtype = bool(kwargs.get("keepdim")), kwargs.get("dtype")
    if csr and not keepdim:
        raise RuntimeError("reduction operations on CSR tensors with keepdim=False is unsupported")
    if input.dense_dim():
        refuse(f"masked.{name} with dense dimensions", input.layout)
    self = as_coo(input).coalesce() if mask is None else sparse_mask(as_coo(input), _pattern(mask, input))
    made = _folded(self, _dims(dim, self.dim()), keepdim, name, dtype)
    return made.to_sparse_csr() if csr else made


def _pattern(mask, input):
    """Where a mask is True, as a `sparse_coo` tensor.

    Raises:
        IndexError: the mask has more dimensions than the input.
        RuntimeError: it does not broadcast to the input's shape.
    """
    if mask.dim() > input.dim():
        raise IndexError("_input_mask expected broadcastable mask (got mask dimensionality higher than of the input)")
    if mask.shape != input.shape:
        mask = mask.to_dense().broadcast_to(input.shape)
    if not is_sparse(mask):
        return mask.bool().to_sparse().coalesce()
    mask = as_coo(mask).coalesce()
    kept = mask._value.bool().nonzero()[:, 0]
    return coo(mask._index.index_select(1, kept), mask._value.bool().index_select(0, kept), mask.shape, True)


def _dims(dim, ndim):
    from ..masked._ops import _canonical_dim

    return _canonical_dim(dim, ndim)


def _folded(self, dims, keepdim, name, dtype):
    """The elements with equal indices in the dimensions that are kept, folded into one."""
    value = self._value
    if dtype is not None:
        value = value.to(dtype)
    elif name in ("sum", "prod") and not (value.dtype.is_floating_point or value.dtype.is_complex):
        value = value.long()
    kept = [d for d in range(self.dim()) if d not in dims]
    shape = [self.shape[d] for d in kept]
    groups, place = ops["unique"](keys(self._index[kept], shape), return_inverse=True)[:2]
    columns, groups = indices_of(groups, shape), groups.shape[0]
    if not kept and not groups:
        # A fold of nothing has a value where it is the only one.
        nothing = value.new_zeros((1,), dtype=_C.bool)
        made = ops[f"masked.{name}"](value.new_zeros((1,)), 0, mask=nothing).view(1)
        shape = [1] * self.dim() if keepdim else []
        return coo(ops["zeros"]((len(shape), 1), dtype=_C.int64, device=value.device), made, shape, True)
    made = value.new_zeros((groups,)).scatter_reduce(0, place, value, _FOLDS[name], include_self=False)
    if name == "mean":
        made = made / value.new_zeros((groups,)).index_add(0, place, ops["ones_like"](value))
    if keepdim:
        columns = ops["zeros"]((self.dim(), groups), dtype=_C.int64, device=columns.device).index_copy(
            0, _C.tensor(kept, dtype=_C.int64, device=columns.device), columns
        )
        shape = [1 if d in dims else n for d, n in enumerate(self.shape)]
    return coo(columns, made, shape, True, f"Masked{name.capitalize()}Backward0")
