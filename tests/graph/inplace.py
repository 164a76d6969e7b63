"""In-place ops on views of tensors with history: (kind of base) x (view) x (in-place op), and errors."""

import itertools
import math

from support.recorded import names


def leaf(torch, *shape, dtype=None):
    values = torch.arange(1.0, math.prod(shape) + 1.0, dtype=torch.float64).reshape(shape) / 4
    if dtype is not None:
        values = values * (1 - 0.5j)
    return values.requires_grad_()


def strided_base(torch, w):
    """A base whose columns are contiguous in memory."""
    return torch.empty_strided((2, 4), (1, 2), dtype=torch.float64).copy_(w)


def offset_base(torch, w):
    """A base that starts in the middle of its storage, with gaps between the rows."""
    return torch.zeros(24, dtype=torch.float64)[3:23].view(2, 10)[:, 1:9:2].detach().copy_(w)


def written_base(torch, w):
    """A base that had no history before a view of it was written."""
    base = torch.ones(2, 4, dtype=torch.float64)
    base[:, :3].mul_(w[:, 1:])
    return base


BASES = {
    "plain": lambda torch, w: w * 1,
    "transposed": strided_base,
    "offset": offset_base,
    "constant": written_base,
}


def no_grad_view(torch, x):
    with torch.no_grad():
        return x[0]


VIEWS = {
    "alias": lambda torch, x: x[...],
    "select": lambda torch, x: x[1],
    "slice": lambda torch, x: x[:, 1:],
    "step": lambda torch, x: x[:, ::2],
    "t": lambda torch, x: x.t(),
    "T": lambda torch, x: x.T,
    "mT": lambda torch, x: x.mT,
    "H": lambda torch, x: x.H,
    "view_as": lambda torch, x: x.view_as(x),
    "permute": lambda torch, x: x.permute(1, 0),
    "movedim": lambda torch, x: x.movedim(0, 1),
    "unsqueeze": lambda torch, x: x.unsqueeze(1),
    "squeeze": lambda torch, x: x[:1].squeeze(0),
    "diagonal": lambda torch, x: x.diagonal(1),
    "as_strided": lambda torch, x: x.as_strided((2, 2), x.stride(), x.storage_offset() + x.stride(1)),
    "unfold": lambda torch, x: x.unfold(1, 2, 2),
    "chain": lambda torch, x: x.t()[1:].t()[1, None, ::2],
    "narrow": lambda torch, x: x.narrow(1, 1, 2),
    "expand": lambda torch, x: x[:1].expand(2, 4),
    "view_as_complex": lambda torch, x: torch.view_as_complex(x.unfold(1, 2, 2)),
    "split": lambda torch, x: x.split(1)[1],
    "split_sizes": lambda torch, x: x.split([1, 3], 1)[1],
    "chunk": lambda torch, x: x.chunk(2, 1)[0],
    "unbind": lambda torch, x: x.unbind(1)[2],
    "tensor_split": lambda torch, x: x.tensor_split(2, 1)[1],
    "hsplit": lambda torch, x: x.hsplit(2)[1],
    "of split": lambda torch, x: x.split(1)[1][0, 1:],
    "no_grad": no_grad_view,
    "of no_grad": lambda torch, x: no_grad_view(torch, x)[1:],
    "detach": lambda torch, x: x.detach()[0],
    "swapaxes": lambda torch, x: x.swapaxes(0, 1),
    "select_int": lambda torch, x: x.select(1, 2),
    "expand_as": lambda torch, x: x.expand_as(x),
    "item": lambda torch, x: x[1, 2],
}

WRITES = {
    "mul_": lambda torch, v, f: v.mul_(f),
    "add_": lambda torch, v, f: v.add_(f, alpha=2),
    "zero_": lambda torch, v, f: v.zero_(),
    "fill_": lambda torch, v, f: v.fill_(f),
    "copy_": lambda torch, v, f: v.copy_(f * 2),
    "exp_": lambda torch, v, f: v.exp_(),
    "addcmul_": lambda torch, v, f: v.addcmul_(f, v.detach() * f),
    "masked_fill_": lambda torch, v, f: v.masked_fill_(v.detach().abs() > 1, 0.5),
    "pow_": lambda torch, v, f: v.pow_(2),
    "set": lambda torch, v, f: v.__setitem__(Ellipsis, f),
}


def write(torch, base, view, change, dtype=None):
    """Values, gradients of first and second order, names and versions after a write to a view."""
    w, f = leaf(torch, 2, 4, dtype=dtype), torch.tensor(0.75, dtype=torch.float64).requires_grad_()
    x = base(torch, w)
    sibling, v = x[1:], view(torch, x)
    change(torch, v, f)
    out = {"value": x, "view": v, "names": [names(x.grad_fn), names(v.grad_fn, 1), names(sibling.grad_fn, 1)]}
    out["version"] = [x._version, v._version, sibling._version]
    if not x.requires_grad:
        return out
    scale = torch.arange(x.numel(), dtype=torch.float64).reshape(x.shape) + 1
    loss = (x * x.conj() * scale).sum().real + 3 * (v * v.conj()).sum().real + sibling.sum().real
    first = torch.autograd.grad(loss, [w, f], create_graph=True, allow_unused=True)
    out["first"] = first
    used = [(g * g.conj()).sum().real for g in first if g is not None and g.requires_grad]
    if used:
        out["second"] = torch.autograd.grad(sum(used), [w, f], allow_unused=True)
    return out


def case(base, view, change, dtype=None):
    return lambda torch: write(torch, BASES[base], view, WRITES[change], dtype)


CASES = {
    f"write {change} to {view} of {base}": case(base, VIEWS[view], change)
    for base, view, change in itertools.product(BASES, VIEWS, WRITES)
    if change in ("mul_", "copy_") or (base, view) in (("plain", "slice"), ("transposed", "select"), ("offset", "t"))
}

COMPLEX_VIEWS = {
    "real": lambda torch, z: z.real,
    "imag": lambda torch, z: z.imag,
    "view_as_real": lambda torch, z: torch.view_as_real(z),
    "of real": lambda torch, z: z[1].real[::2],
    "and back": lambda torch, z: torch.view_as_complex(torch.view_as_real(z)[:, 1:]),
    "select": lambda torch, z: z[0],
    "t": lambda torch, z: z.t()[2],
}
CASES |= {
    f"write {change} to {view} of complex {base}": case(base, COMPLEX_VIEWS[view], change, "complex")
    for base, view, change in itertools.product(("plain",), COMPLEX_VIEWS, ("mul_", "copy_", "pow_", "zero_"))
}
