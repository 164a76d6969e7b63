"""How a notebook shows tensors and modules."""

from __future__ import annotations

from html import escape

from ._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nn.modules.module import Module

__all__ = ["module_html", "tensor_html"]

_SMALL = "color:#777;font-size:90%"


def tensor_html(tensor: Tensor) -> str:
    """The printed form, under a line with shape, dtype, device and the size in memory."""
    size = "&times;".join(map(str, tensor.shape)) or "0-d"
    facts = [size, escape(str(tensor.dtype)), escape(str(tensor.device)), _bytes(tensor.numel() * tensor.itemsize)]
    if tensor.requires_grad:
        node = tensor.grad_fn
        facts.append("requires grad" if node is None else f"from {escape(node.name())}")
    return f'<div><div style="{_SMALL}">{" &middot; ".join(facts)}</div><pre>{escape(repr(tensor))}</pre></div>'


def module_html(module: Module, name: str = "") -> str:
    """The tree of modules, to be opened by level, with the number of parameters of each."""
    count = sum(p.numel() for p in module.parameters())
    title = f"{escape(name)}{': ' if name else ''}<b>{escape(type(module).__name__)}</b>({escape(module.extra_repr())})"
    title += f' <span style="{_SMALL}">{count:,} parameters{"" if module.training else ", eval"}</span>'
    children = list(module.named_children())
    if not children:
        return f'<div style="margin-left:1em">{title}</div>'
    inner = "".join(module_html(child, key) for key, child in children)
    return f'<details style="margin-left:1em"{"" if name else " open"}><summary>{title}</summary>{inner}</details>'


def _bytes(n):
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n:.4g} {unit}"
        n /= 1024
    return f"{n:.4g} GiB"
