"""How a masked tensor is printed: all elements, `--` for one that is masked out."""

from __future__ import annotations

from ... import _formats


def text(self):
    """The text of `repr`."""
    data, mask = self._value.detach(), self._mask
    if data.layout is not _formats.strided:
        data, mask = data.to_dense(), mask.to_dense()
    shown = (lambda x: f"{x:8.4f}") if data.dtype.is_floating_point else str
    if data.dim() == 0:
        seen = bool(mask)
        return f"MaskedTensor({shown(data.item()) if seen else '--'}, {seen})"
    lines = _lines(data.tolist(), mask.tolist(), data.dim(), shown, 2)
    return "\n".join(["MaskedTensor(", *lines, ")"])


def _lines(data, mask, dims, shown, indent):
    """The lines of a list, or of a list of lists."""
    margin = " " * indent
    if dims == 1:
        seen = [shown(x) if m else None for x, m in zip(data, mask, strict=True)]
        width = max((len(x) for x in seen if x is not None), default=8)
        masked = "--".rjust(max(width, 8))
        return [f"{margin}[{', '.join(masked if x is None else x for x in seen)}]"]
    lines = [f"{margin}["]
    for i, (row, kept) in enumerate(zip(data, mask, strict=True)):
        inner = _lines(row, kept, dims - 1, shown, indent + 2)
        inner[-1] += "," if i + 1 < len(data) else ""
        lines += inner
    return [*lines, f"{margin}]"]
