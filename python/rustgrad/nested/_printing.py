"""`repr` of nested tensors, letter by letter PyTorch's."""

from __future__ import annotations

from .. import _formats


def text(self):
    """What `repr` returns."""
    from ._shape import unbind

    grad = f", requires_grad={self.requires_grad}" if self.requires_grad else ""
    if self.layout is _formats.jagged:
        if self.grad_fn is not None:
            grad = f", grad_fn={self.grad_fn}"
        offsets = self._ragged.offsets
        return f"NestedTensor(size={tuple(self.shape)}, offsets={offsets}{grad}, contiguous={self.is_contiguous()})"
    if self.grad_fn is not None:
        grad = f", grad_fn=<{self.grad_fn.name()}>"
    parts = (repr(part.requires_grad_(self.requires_grad)) for part in unbind(self.detach()))
    inner = ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
    return f"nested_tensor([\n{inner}\n]{grad})"
