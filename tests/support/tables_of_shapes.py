"""Tables about shapes: every kind of index, read and written, and every view of every layout."""

from functools import partial

import numpy as np

from support import tables
from support.tables import short
from support.tables_of_forms import forms
from support.target import torch

# --- indexing ------------------------------------------------------------------------------------------------
BASES = {
    "2x3x4": lambda: torch.arange(24).reshape(2, 3, 4),
    "4x3x2 transposed": lambda: torch.arange(24).reshape(2, 3, 4).permute(2, 1, 0),
    "5 strided": lambda: torch.arange(10)[::2],
    "0x3": lambda: torch.arange(0).reshape(0, 3),
    "0-d": lambda: torch.tensor(5),
}
INDICES = """0 | 1 | -1 | 2 | -3 | 7 | True | False | None | ... | : | () | 0, | 0, 1 | 0, 1, 2 | 0, 1, 2, 0 | -1, -1 | 0, None | None, 0
None, None | ..., 0 | 0, ... | ..., None | ..., ... | 0, ..., 1 | :, 0 | :, :, 0 | :, -1, : | 1: | :1 | :-1 | -2: | ::2 | 1::2 | 5:2 | 9: | -9:9 | :0 | 0:0
::-1 | ::0 | 1.5: | :'a' | T(0): | :T(2) | np.int64(0): | True: | 0:2:T(1) | :, 1:3 | 1:, ::2 | :, None, 1 | None, ..., None | :, :, :, : | :, 9
[0] | [0, 1] | [1, 0, 1] | [-1, 0] | [[0, 1]] | [[0, 1], [1, 0]] | [] | [[]] | [0], [1] | [0, 1], [1, 0] | [0, 1], [0, 1, 2] | [[0], [1]], [0, 1] | [0, 9] | [-9]
[0], 1 | 1, [0] | :, [0] | :, [0, 1] | :, :, [0, 1] | [0], :, [1] | [0, 1], :, [0, 1] | [0, 1], 0, [0, 1] | 0, :, [0, 1] | [0, 1], ..., [1, 0] | ..., [0] | ..., [0, 1]
None, [0] | [0], None | [0], None, [1] | :, None, [0] | [0], :1 | 1:, [0] | ::2, [0, 1] | [True, False] | [True, True, True] | [True] | [[True, False]] | [True, 0] | [1.5] | ['a'] | [None]
[0, None] | (0, 1) | ((0, 1),) | [0, (1,)] | [T(0), T(1)] | [T([0]), T([1])] | [slice(1)] | [0, slice(1)] | [...] | {0} | 'a' | 1.0 | 1j | object() | np.float32(1)
T(0) | T(-1) | T(9) | T(True) | T(False) | T(1.0) | T([0]) | T([0, 1]) | T([-1, 0]) | T([[0, 1], [1, 0]]) | T([], dtype=t.long) | T([]) | T([9]) | T([1.0]) | T([0], dtype=t.int32)
T([0], dtype=t.int16) | T([0], dtype=t.int8) | T([0], dtype=t.uint16) | T([1], dtype=t.bfloat16) | T([True, False]) | T([False, False]) | T([True, True, True])
T([True, False, True, False, True]) | T([[True, False, True], [False, True, False]]) | x > 3 | x < 0 | x == x | (x > 3) & (x < 9) | x > 3, 0 | :, T([True, False, True]) | T([True, False]), [0]
T([True, True]), T([0, 1]) | T(0), T(1) | T(0), [0, 1] | T([0, 1]), T(0) | T(0), : | :, T(0) | T([0]), T([0, 1]), T([1]) | T([0, 1]), T([0, 1, 2]) | T([0, 1]), :, T([0, 1]) | :, T([0, 1]), T([0, 1])
T([0, 1]), None, T([0, 1]) | None, T([0, 1]), T([0, 1]) | :, T([[0], [1]]), T([0, 1]) | T([0, 1]), ..., 0 | 0, T([0, 1]) | ..., T([0, 1]), : | T(1j) | T([0], dtype=t.uint8), 0
np.int64(0) | np.int8(-1) | np.uint8(1) | np.bool_(True) | np.array(0) | np.array([0, 1]) | np.array([0, 1], 'i4') | np.array([True, False]) | np.array([[0, 1]]) | np.array([0.5]) | np.array([], 'i8') | np.array([])
np.array([0]), np.array([1]) | :, np.array([0, 1]) | np.array([0, 1]), : | True, 0 | 0, True | True, True | False, 0 | True, [0, 1] | None, True | :, True | True, T([0, 1]) | [[0, 1], [0, 1]], [[0], [1]]
slice(None, None, 2) | slice(1, 2), 0 | Ellipsis, slice(0, 1) | range(2) | t.Size([0]) | 2**63 | -2**63-1 | :2**70 | -2**70: | [2**40] | 0, 0, [0, 1] | [0], [0], [0] | [0], [0], [0], [0]""".replace(
    "\n", " | "
).split(" | ")


def shown(x):
    return f"{short(x.dtype)}{list(x.shape)} {x.reshape(-1).tolist()}".replace(", ", ",")


def read(make, index):
    x = make()
    got = eval(f"x[{index}]", {"x": x, "T": torch.tensor, "t": torch, "np": np})
    alias = "view " + str(list(got.stride())).replace(", ", ",") if got._base is not None else "own"
    return f"{shown(got)} {alias} @{got.storage_offset()}"


def write(make, statement, index):
    x = make()
    names = {
        "x": x,
        "T": torch.tensor,
        "t": torch,
        "np": np,
        "like": lambda y: -1 - torch.arange(y.numel()).reshape(y.shape),
    }
    exec(statement.replace("INDEX", index), names)
    return str(x.reshape(-1).tolist()).replace(", ", ",")


WRITES = [
    "x[INDEX] = -1",
    "x[INDEX] = 2.5",
    "x[INDEX] = like(x[INDEX])",
    "x[INDEX] += 100",
    "x[INDEX] = t.zeros(7)",
]


def indexing():
    """Reading: dtype, shape, values, strides and whether it is a view; writing: all elements after it."""
    for name, make in BASES.items():
        for index in INDICES:
            cells = [partial(read, make, index)]
            if name != "0x3":
                cells += [partial(write, make, statement, index) for statement in WRITES]
            yield f"{name}: x[{index}]", cells


# --- views ---------------------------------------------------------------------------------------------------
LAYOUTS = {
    "2x3x4": "arange(24.).reshape(2, 3, 4)",
    "transposed": "arange(24.).reshape(4, 3, 2).permute(2, 1, 0)",
    "sliced": "arange(48.).reshape(4, 3, 4)[::2]",
    "columns": "arange(48.).reshape(2, 3, 8)[..., 1::2]",
    "expanded": "arange(8.).reshape(2, 1, 4).expand(2, 3, 4)",
    "offset": "arange(30.)[6:].view(2, 3, 4)",
    "empty": "zeros(2, 0, 4)",
    "matrix": "arange(6.).reshape(2, 3)",
    "row": "arange(6.)",
    "one": "zeros(1)",
    "ones": "zeros(1, 1, 1)",
    "0-d": "tensor(3.)",
    "5-d": "zeros(2, 1, 3, 1, 2)",
    "complex": "zeros(2, 2, dtype=t.complex64)",
    "bytes": "zeros(2, 8, dtype=t.uint8)",
}
VIEWS = """x.view(-1) | x.view(24) | x.view(6, 4) | x.view(2, 12) | x.view(4, 6) | x.view(2, 3, 2, 2) | x.view(-1, -1) | x.view(5, -1) | x.view(0, -1) | x.view(2, -1) | x.view(()) | x.view(1) | x.view(-2)
x.view([2, -1]) | x.view(t.Size([6])) | x.view(2, 3, 4) | x.view(x.shape) | x.view(t.int32) | x.view(t.float64) | x.view(t.float16) | x.view(t.bool) | x.view(t.complex64) | x.view(dtype=t.uint8) | x.view(1.5)
x.reshape(-1) | x.reshape(6, 4) | x.reshape(4, 6) | x.reshape(12, 2) | x.reshape(2, 3, 4) | x.reshape(3, -1) | x.reshape(0) | x.reshape(()) | x.reshape(1, -1, 1) | x.reshape([6]) | x.reshape(-1, 0)
x.t() | x.T | x.mT | x.H | x.mH | x.adjoint() | x.transpose(0, 1) | x.transpose(-1, 0) | x.transpose(0, 0) | x.transpose(0, 5) | x.swapaxes(0, -1) | x.swapdims(1, 0)
x.permute(2, 0, 1) | x.permute(0, 1, 2) | x.permute((1, 0)) | x.permute(0) | x.permute(()) | x.permute(0, 0, 1) | x.permute(-1, 0, 1) | x.permute(0, 1) | x.permute(0, 1, 7)
x.squeeze() | x.squeeze(0) | x.squeeze(1) | x.squeeze(-1) | x.squeeze(9) | x.squeeze((0, 1)) | x.squeeze((0, 0)) | x.squeeze(()) | x.unsqueeze(0) | x.unsqueeze(1) | x.unsqueeze(-1) | x.unsqueeze(3) | x.unsqueeze(9) | x.unsqueeze(-5)
x.expand(2, 3, 4) | x.expand(5, -1, -1, -1) | x.expand(5, 2, 3, 4) | x.expand(-1, 3, 4) | x.expand(3) | x.expand(2, 3) | x.expand(4, 6) | x.expand(-1) | x.expand(-1, -1, -1) | x.expand(0) | x.expand(()) | x.expand([1, 1]) | x.expand(-2, 3)
x.expand_as(t.zeros(2, 3, 4)) | x.broadcast_to((3, 1, 1)) | x.broadcast_to((2, 3, 4)) | x.view_as(t.zeros(6)) | x.reshape_as(t.zeros(4, 6)) | x.flatten() | x.flatten(1) | x.flatten(0, 1) | x.flatten(1, 0) | x.flatten(-2) | x.flatten(5) | x.ravel()
x.unflatten(0, (1, -1)) | x.unflatten(-1, (2, 2)) | x.unflatten(1, (3, 1)) | x.unflatten(0, ()) | x.unflatten(0, (3, 3)) | x.unflatten(9, (1,)) | x.select(0, 0) | x.select(1, -1) | x.select(-1, 1) | x.select(0, 9) | x.select(4, 0)
x.narrow(0, 0, 1) | x.narrow(-1, 1, 2) | x.narrow(0, -1, 1) | x.narrow(0, 0, 9) | x.narrow(0, 9, 0) | x.narrow(0, 0, -1) | x.narrow(3, 0, 1) | x.narrow(0, 1, 0) | x.diagonal() | x.diagonal(1) | x.diagonal(-1) | x.diagonal(0, 0, -1) | x.diagonal(9) | x.diagonal(0, 0, 0) | x.diagonal(0, 1, 2) | x.diagonal(dim1=-1, dim2=-2)
x.movedim(0, -1) | x.movedim((0, 1), (1, 0)) | x.movedim((0, 1), (0, 0)) | x.movedim(0, 9) | x.movedim((0,), (0, 1)) | x.moveaxis(0, 1) | x.unfold(0, 2, 1) | x.unfold(-1, 2, 2) | x.unfold(1, 3, 1) | x.unfold(0, 9, 1) | x.unfold(0, 1, 0) | x.unfold(0, -1, 1) | x.unfold(0, 0, 1)
x.as_strided((2, 2), (1, 2)) | x.as_strided((2,), (1,), 1) | x.as_strided((), ()) | x.as_strided((3, 3), (0, 1)) | x.as_strided((2,), (1, 1)) | x.as_strided((100,), (1,)) | x.as_strided((2,), (-1,)) | x.as_strided((-1,), (1,)) | x.as_strided((2,), (1,), -1) | x.as_strided((0,), (1,), 99)
x.real | x.imag | t.view_as_real(x) | t.view_as_complex(x) | x.conj() | x.detach() | x.data | x.alias() | x.contiguous() | x.clone() | x.to(t.float32) | x.float() | x.positive() | x.view_as(x) | x[...] | x[:] | x[None] | x[0] | x[0:1] | x[..., 0] | x.movedim(0, 0)
x.chunk(2) | x.chunk(2, -1) | x.chunk(5) | x.chunk(0) | x.chunk(1, 9) | x.split(1) | x.split(2, -1) | x.split([1, 1]) | x.split([1, 3], -1) | x.split([1, 2]) | x.split(0) | x.split(-1) | x.split([]) | x.tensor_split(2) | x.tensor_split(3, -1) | x.tensor_split((1,)) | x.tensor_split((1, 5)) | x.tensor_split(0)
x.unbind() | x.unbind(1) | x.unbind(-1) | x.unbind(5) | x.hsplit(2) | x.vsplit(2) | x.dsplit(2) | x.split_with_sizes([1, 1])
t.atleast_1d(x) | t.atleast_2d(x) | t.atleast_3d(x) | t.broadcast_tensors(x, t.zeros(2, 1, 1)) | x.t_() | x.transpose_(0, 1) | x.squeeze_() | x.squeeze_(0) | x.unsqueeze_(0) | x.swapaxes_(0, 1) | x.resize_(2, 2) | x.resize_(0) | x.set_() | x.as_strided_((1,), (1,)) | x.untyped_storage().nbytes() | x.is_contiguous() | x.element_size() | x.nbytes | x.is_set_to(x) | x.stride(0) | x.stride(-1) | x.size(-1) | x.size(5) | x.storage_offset()
x.flip(0) | x.roll(1) | x.repeat(2) | x.rot90() | x.T.T | x.mT.mT | x.t().t() | x.unsqueeze(0).squeeze(0) | x.permute(*range(x.dim())) | x.flatten().view(x.shape) | x.contiguous().view(-1) | x.is_contiguous(memory_format=t.channels_last) | x.ndim""".replace(
    "\n", " | "
).split(" | ")


def layout(got, x):
    if isinstance(got, (tuple, list)):
        return " ; ".join(layout(g, x) for g in got)
    if not isinstance(got, torch.Tensor):
        return str(got)
    shares = got.numel() and x.numel() and got.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
    place = f"{list(got.shape)} {short(got.dtype)}"
    if got.numel() and not shares:
        return place.replace(", ", ",")  # the strides of new memory are up to the library
    marks = [" shares" * bool(shares), " contiguous" * got.is_contiguous(), " itself" * (got is x)]
    return f"{place} {list(got.stride())} @{got.storage_offset()}".replace(", ", ",") + "".join(marks)


def views():
    """Shape, strides and offset, and whether memory is shared; for new memory only the shape."""

    def cell(text, view):
        x = eval(f"t.{text}", {"t": torch})
        return layout(eval(view, {"x": x, "t": torch}), x)

    for name, text in LAYOUTS.items():
        for view in VIEWS:
            yield f"{name}: {view}", [partial(cell, text, view)]


# The table, and whether messages of errors are compared too.
TABLES = {
    "promotion": (tables.promotion, True),
    "one_tensor": (tables.one_tensor, True),
    "limits": (tables.limits, False),
    "construction": (tables.construction, False),
    "indexing": (indexing, False),
    "views": (views, False),
    "forms": (forms, True),
}
