"""What a dense tensor answers where a sparse one is asked for: all tensors are strided."""

from __future__ import annotations

from typing import Any, NoReturn

# The layout that a method wants, in the words of PyTorch's error.
_WANTED = {
    "coalesce": "sparse coordinate",
    "is_coalesced": "sparse coordinate",
    "indices": "sparse coordinate",
    "values": "sparse",
    "crow_indices": "sparse row compressed",
    "col_indices": "sparse row compressed",
    "ccol_indices": "sparse column compressed",
    "row_indices": "sparse column compressed",
}
_MADE = ("to_sparse", "to_sparse_coo", "to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "to_mkldnn")


def _wanting(name, layout):
    def method(self: Any) -> NoReturn:
        raise RuntimeError(f"{name} expected {layout} tensor layout but got Strided")

    method.__name__ = name
    method.__doc__ = "RuntimeError: the tensor is not sparse."
    return method


def _making(name):
    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: all tensors are strided here; expected a dense layout. Hint: multiply by a dense matrix, or sum edges "
            "with index_add."
        )

    method.__name__ = name
    method.__doc__ = "NotImplementedError: there are no such tensors."
    return method


class Methods:
    """Further methods of `Tensor`."""

    def sparse_dim(self) -> int:
        """Zero: no dimension is sparse."""
        return 0

    def dense_dim(self) -> int:
        """All dimensions."""
        return self.dim()


for _name, _layout in _WANTED.items():
    setattr(Methods, _name, _wanting(_name, _layout))
for _name in _MADE:
    setattr(Methods, _name, _making(_name))
