"""What holds of the parts of a sparse tensor. It is checked whenever a program hands parts over, since rules rely on it."""

from __future__ import annotations

from typing import Any

from .. import _C, _formats
from .._C import ops


def _bounds(index):
    """The least and the greatest index of each row of a matrix of indices that is not empty."""
    least, greatest = ops["aminmax"](index, dim=1)
    return least.tolist(), greatest.tolist()


def check_coo_size(index, value, size):
    """RuntimeError: indices and values do not belong together, or not to the shape."""
    sparse, dense = index.shape[0], value.dim() - 1
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    if any(n < 0 for n in size):
        raise RuntimeError(f"sparse_coo_tensor: Trying to create tensor with negative dimension: {list(size)}")
    wanted = [value.shape[0], *size[sparse:]]
    if list(value.shape) != wanted:
        raise RuntimeError(f"values has incorrect size, expected {wanted}, got {list(value.shape)}")


def check_coo_parts(index, value):
    """RuntimeError: these are no indices and values of a tensor of the layout `sparse_coo`."""
    if index.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(index.shape)}")
    if value.dim() == 0 or index.shape[1] != value.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {index.shape[1]}, nnz from values: "
            f"{value.shape[0] if value.dim() else 1}"
        )
    if index.device != value.device:
        raise RuntimeError(f"device of indices ({index.device}) must match device of values ({value.device})")


def check_coo(index, value, size, coalesced=False):
    """RuntimeError: parts that do not belong together, an index out of range, or one that is not sorted as is said."""
    if index.dtype != _C.int64:
        raise RuntimeError(f"indices must be an int64 tensor, but got: {index.dtype}")
    check_coo_parts(index, value)
    check_coo_size(index, value, size)
    if index.numel() and not index.is_meta:
        for dim, (low, high) in enumerate(zip(*_bounds(index), strict=True)):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            if high >= size[dim]:
                raise RuntimeError(
                    f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {high}"
                )
    if coalesced and not index.is_meta and not is_sorted(index, size):
        raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")


def inferred_size(index, value):
    """The least shape with room for the indices. RuntimeError: one is negative."""
    if index.is_meta:
        raise NotImplementedError(
            "sparse_coo_tensor: a size is inferred from indices; on meta there are none. Give a size."
        )
    sizes = [0] * index.shape[0]
    if index.numel():
        for dim, (low, high) in enumerate(zip(*_bounds(index), strict=True)):
            if low < 0:
                raise RuntimeError(f"found negative index {low} for dim {dim}")
            sizes[dim] = high + 1
    return (*sizes, *value.shape[1:])


def is_sorted(index, size):
    """Whether the columns of indices increase from one to the next."""
    from ._convert import keys

    if index.shape[1] < 2:
        return True
    key = keys(index, size)
    return bool((key[1:] > key[:-1]).all())


def check_compressed(layout, pointers, plain, value, size):
    """RuntimeError: parts that do not belong together, or indices that are out of range or not sorted."""
    row = layout is _formats.sparse_csr
    begin, other = ("crow_indices", "col_indices") if row else ("ccol_indices", "row_indices")
    lines, across = ("rows", "ncols") if row else ("columns", "nrows")
    count = "nrows" if row else "ncols"
    batch = pointers.dim() - 1
    if pointers.dim() < 1:
        raise RuntimeError(f"{begin} must have dimensionality >= 1 but got 0")
    if plain.dim() != pointers.dim():
        raise RuntimeError(
            f"{begin} and {other} dimensionalities must be equal but got {pointers.dim()} and {plain.dim()}, respectively"
        )
    if value.dim() <= batch:
        raise RuntimeError(
            f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + 0) but got {value.dim()}"
        )
    dense = value.dim() - batch - 1
    if len(size) != batch + 2 + dense or any(n < 0 for n in size):
        raise RuntimeError(
            f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) but got "
            f"{len(size)}" + (f" with sizes {list(size)}" if any(n < 0 for n in size) else "")
        )
    n, m = (size[batch], size[batch + 1]) if row else (size[batch + 1], size[batch])
    if list(pointers.shape) != [*size[:batch], n + 1]:
        raise RuntimeError(
            f"{begin}.shape[-1] must be equal to the number of {lines} + 1 (={n + 1}), but got {pointers.shape[-1]}"
            if list(pointers.shape[:-1]) == list(size[:batch])
            else f"all batch dimensions of {begin} (={list(pointers.shape[:-1])}) must be those of the size"
        )
    nnz = value.shape[batch]
    if list(plain.shape) != [*size[:batch], nnz]:
        raise RuntimeError(
            f"{other}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got {plain.shape[-1]}"
        )
    if list(value.shape) != [*size[:batch], nnz, *size[batch + 2 :]]:
        raise RuntimeError(
            f"values must have shape {[*size[:batch], nnz, *size[batch + 2 :]]} but got {list(value.shape)}"
        )
    if pointers.dtype != plain.dtype:
        kinds = f"{pointers.dtype._scalar_type_name} and {plain.dtype._scalar_type_name}"
        raise RuntimeError(f"{begin} and {other} must have the same dtype, bot got {kinds}, respectively")
    if pointers.dtype not in (_C.int32, _C.int64):
        raise RuntimeError(
            f"{begin} and {other} must be an int32 or int64 type, but got {pointers.dtype._scalar_type_name}"
        )
    if not pointers.device == plain.device == value.device:
        raise RuntimeError(f"device of {begin} (={pointers.device}) must match device of values (={value.device})")
    if not pointers.is_meta:
        _check_contents(pointers, plain, m, nnz, begin, other, across, count)


def _check_contents(pointers, plain, m, nnz, begin, other, across, count):
    def need(holds, what):
        if not bool(holds.all()):
            raise RuntimeError(f"`{what}` is not satisfied.")

    need(pointers[..., 0] == 0, f"{begin}[..., 0] == 0")
    need(pointers[..., -1] == nnz, f"{begin}[..., -1] == nnz")
    lengths = pointers.diff(dim=-1)
    need((lengths >= 0) & (lengths <= m), f"0 <= {begin}[..., 1:] - {begin}[..., :-1] <= {across}")
    if nnz == 0:
        return
    need((plain >= 0) & (plain < m), f"0 <= {other} < {across}")
    # Within a line each index is greater than the one before it.
    at = ops["arange"](1, nnz, device=plain.device).expand(*plain.shape[:-1], -1).contiguous()
    line = ops["searchsorted"](pointers.long().contiguous(), at, right=True)
    first = pointers.long().gather(-1, line - 1) == at
    need(
        first | (plain[..., 1:] > plain[..., :-1]),
        f"{other}[..., {begin}[..., i - 1]:{begin}[..., i]] for all i = 1, ..., {count} are sorted and distinct along the last "
        "dimension values",
    )


class check_sparse_tensor_invariants:
    """Whether constructors check more than they must. Also a block, and a decorator.

    Indices out of range, unsorted or negative are errors here in any case, since no op may read beyond a tensor; what the
    setting says is kept, and can be asked.
    """

    _on = False

    @staticmethod
    def is_enabled() -> bool:
        """What `enable` or `disable` said last; False at first."""
        return check_sparse_tensor_invariants._on

    @staticmethod
    def enable() -> None:
        """Checks are asked for."""
        check_sparse_tensor_invariants._on = True

    @staticmethod
    def disable() -> None:
        """Checks are not asked for."""
        check_sparse_tensor_invariants._on = False

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context "
                "nesting."
            )
        self.saved_state = self.is_enabled()
        check_sparse_tensor_invariants._on = self.state

    def __exit__(self, *error: Any) -> None:
        check_sparse_tensor_invariants._on = bool(self.saved_state)
        self.saved_state = None

    def __call__(self, mth: Any) -> Any:
        """A function that runs in such a block."""
        import functools

        @functools.wraps(mth)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return inside
