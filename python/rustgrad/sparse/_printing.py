"""`repr` of sparse tensors, letter by letter PyTorch's: indices, values, then what is said of the tensor."""

from __future__ import annotations

from .. import _C, _formats
from .._tensor_str import _add_suffixes

# The layouts in PyTorch's errors.
NAMES = {
    _formats.strided: "Strided",
    _formats.sparse_coo: "Sparse",
    _formats.sparse_csr: "SparseCsr",
    _formats.sparse_csc: "SparseCsc",
    _formats.sparse_bsr: "SparseBsr",
    _formats.sparse_bsc: "SparseBsc",
}
_PARTS = {
    _formats.sparse_coo: (("indices", "_index"), ("values", "_value")),
    _formats.sparse_csr: (("crow_indices", "_pointers"), ("col_indices", "_plain"), ("values", "_value")),
    _formats.sparse_csc: (("ccol_indices", "_pointers"), ("row_indices", "_plain"), ("values", "_value")),
}
_BEFORE = "tensor("


def text(self):
    """What `repr` returns; of a parameter, with its heading."""
    parts = (_part(name, getattr(self, attribute)) for name, attribute in _PARTS[self.layout])
    inner = (",\n" + " " * len(_BEFORE)).join(parts)
    whole = _add_suffixes(_BEFORE + inner, _suffixes(self), len(_BEFORE), self.layout is _formats.sparse_coo)
    return ("Parameter containing:\n" if getattr(self, "_is_param", False) else "") + whole


def _part(name, tensor):
    head = f"{name}=tensor("
    if tensor.is_meta or tensor.numel() == 0:
        return f"{head}{'...' if tensor.is_meta else '[]'}, size={tuple(tensor.shape)})"
    # The head counts in the width of the lines.
    whole = _C._repr(tensor.detach(), " " * (len(_BEFORE) + len(head)))
    return head + whole[len(_BEFORE) + len(head) : whole.rfind("]") + 1] + ")"


def _suffixes(self):
    default = _C.get_default_dtype()
    usual = (default, default.to_complex(), _C.int64, _C.bool)
    found = [] if self.is_cpu else [f"device='{self.device}'"]
    found.append(f"size={tuple(self.shape)}")
    if not self.is_meta:
        found.append(f"nnz={self._nnz()}")
    if self.dtype not in usual:
        found.append(f"dtype={self.dtype}")
    found.append(f"layout={self.layout}")
    if self.grad_fn is not None:
        found.append(f"grad_fn=<{self._made_by or self.grad_fn.name()}>")
    elif self.requires_grad:
        found.append("requires_grad=True")
    return found
