"""Lowerings of operators, indices, views and conversions."""

from __future__ import annotations

from .. import _C
from .._base import Tensor
from ._lowering_table import lower, table

__all__: list[str] = []


def _renamed(key: str, name: str) -> None:
    table[key] = lambda r, *args, **kwargs: r(name, *args, **kwargs)


for _key, _name in {
    "logsigmoid": "log_sigmoid", "H.__get__": "matrix_H", "T.__get__": "numpy_T",
    "mT.__get__": "mT", "mH.__get__": "mH", "real.__get__": "real", "imag.__get__": "imag", "data.__get__": "detach",
    "__neg__": "neg", "__pos__": "positive", "__abs__": "abs", "__invert__": "bitwise_not", "__matmul__": "matmul",
    "__eq__": "eq", "__ne__": "ne", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__add__": "add",
    "__radd__": "add", "__sub__": "sub", "__mul__": "mul", "__rmul__": "mul", "__truediv__": "div", "__mod__": "remainder",
    "__pow__": "pow", "__iadd__": "add_", "__isub__": "sub_", "__imul__": "mul_", "__itruediv__": "div_", "__floordiv__": "floor_divide",
    "__rsub__": "rsub", "__ipow__": "pow_", "__ifloordiv__": "floor_divide_",
    "special.softmax": "softmax", "special.log_softmax": "log_softmax", "absolute": "abs",
}.items():  # fmt: skip
    _renamed(_key, _name)


@lower("__rdiv__", "__rtruediv__")
def _(r, self, other):
    return r("mul", r("reciprocal", self), other)


@lower("__rfloordiv__")
def _(r, self, other):
    return r("floor_divide", other, self)


@lower("__rpow__")
def _(r, self, other):
    return r("pow", other, self)


@lower("__rmod__")
def _(r, self, other):
    return r("remainder", other, self)


@lower("__rmatmul__")
def _(r, self, other):
    return r("matmul", other, self)


@lower("where_self")
def _(r, self, condition, other):
    return r("where", condition, self, other)


# --- views and indices


def _of_list(name: str) -> None:
    def call(r, *tensors):
        listed = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
        return r(name, list(tensors[0] if listed else tensors))

    table[name] = call


for _key in ("broadcast_tensors", "block_diag", "cartesian_prod"):
    _of_list(_key)


@lower("meshgrid")
def _(r, *tensors, indexing=None):
    listed = len(tensors) == 1 and isinstance(tensors[0], (list, tuple))
    return r("meshgrid", list(tensors[0] if listed else tensors), indexing="ij" if indexing is None else indexing)


@lower("split")
def _(r, tensor, split_size_or_sections=None, dim=0, *, split_size=None):
    size = split_size_or_sections if split_size is None else split_size
    if isinstance(size, int):
        return r.overload("split", "Tensor", tensor, size, dim)
    return r("split_with_sizes", tensor, list(size), dim)


@lower("einsum")
def _(r, equation, *operands):
    listed = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    return r("einsum", equation, list(operands[0] if listed else operands))


@lower("tensordot")
def _(r, a, b, dims=2, out=None):
    if isinstance(dims, int):
        dims = (list(range(-dims, 0)), list(range(dims)))
    one, two = ([d] if isinstance(d, int) else list(d) for d in dims)
    return r.out(out, r("tensordot", a, b, one, two))


@lower("unique")
def _(r, input, sorted=True, return_inverse=False, return_counts=False, dim=None):
    if dim is not None:
        found = r("unique_dim", input, dim, sorted, return_inverse, return_counts)
    else:
        found = r("_unique2", input, sorted, return_inverse, return_counts)
    wanted = [found[0], *([found[1]] if return_inverse else []), *([found[2]] if return_counts else [])]
    return wanted[0] if len(wanted) == 1 else tuple(wanted)


@lower("nonzero")
def _(r, input, *, as_tuple=False, out=None):
    return r("nonzero_numpy", input) if as_tuple else r.out(out, r("nonzero", input))


@lower("stft")
def _(r, input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False, onesided=None, return_complex=None, align_to_window=None):  # fmt: skip
    if center:
        rank = input.dim()
        extended = [1] * (3 - rank) + list(input.shape)
        padded = r("pad", r("view", input, extended), [n_fft // 2] * 2, pad_mode)
        input = r("view", padded, list(padded.shape)[3 - rank :])
    rest = (hop_length, win_length, window, normalized, onesided, return_complex)
    return r("stft", input, n_fft, *rest)


# --- conversions


@lower("to")
def _(r, self, *args, **kwargs):
    return _convert(r, self, *args, **kwargs)


def _convert(r, self, *args, **kwargs):
    from .._base import device as device_class
    from .._base import dtype as dtype_class

    named = dict(kwargs)
    for value in args:
        if isinstance(value, Tensor):
            named["other"] = value
        elif isinstance(value, dtype_class) or value in (float, int, bool) and not isinstance(value, (bool, int)):
            named["dtype"] = value
        elif isinstance(value, (str, device_class)) or type(value) is int:
            named["device"] = value
        elif isinstance(value, bool):
            named["copy" if "non_blocking" in named else "non_blocking"] = value
    r.metadata(self)
    other = named.pop("other", None)
    if other is not None:
        named["device"], named["dtype"] = other.device, other.dtype
    kind, place = named.pop("dtype", None), named.pop("device", None)
    named = {k: v for k, v in named.items() if v}
    if kind is not None and place is None:
        return r.overload("to", "dtype", self, kind, **named)
    if kind is not None:
        return r.overload("to", "device", self, place, kind, **named)
    place = self.device if place is None else place
    return r.overload("to", "dtype_layout", self, dtype=self.dtype, layout=self.layout, device=place, **named)


for _key, _kind in (
    ("float", "float32"), ("double", "float64"), ("half", "float16"), ("bfloat16", "bfloat16"), ("long", "int64"), ("int", "int32"),
    ("short", "int16"), ("char", "int8"), ("byte", "uint8"), ("bool", "bool"), ("cfloat", "complex64"), ("cdouble", "complex128"),
):  # fmt: skip

    def _named(r, self, memory_format=None, _kind=_kind):
        return _convert(r, self, getattr(_C, _kind))

    table[_key] = _named


@lower("type")
def _(r, self, dtype=None, non_blocking=False):
    if dtype is None:
        return self.type()
    # The name of a class of tensors stands for its dtype.
    return _convert(r, self, _C.ops["zeros"](0).type(dtype).dtype)


@lower("cpu", "cuda", "gpu")
def _(r, self, device=None, **rest):
    return _convert(r, self, self.device if device is None else device)


@lower("tensor", "new_tensor", "as_tensor", "asarray", "from_numpy")
def _(r, *args, **kwargs):
    return r.constant(*args, **kwargs)


@lower("requires_grad_")
def _(r, self, requires_grad=True):
    return self.requires_grad_(requires_grad)


@lower("_assert")
def _(r, condition, message):
    if isinstance(condition, Tensor) and r.depends(condition):
        r.overload("_assert_async", "msg", condition, message)
    elif not condition:
        raise AssertionError(message)


@lower("cond")
def _(r, pred, true_fn, false_fn, operands=()):
    if not isinstance(pred, Tensor) or not r.depends(pred):
        with r:
            return (true_fn if bool(pred) else false_fn)(*operands)
    return r.cond(pred, (true_fn, false_fn), operands)
