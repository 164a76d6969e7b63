"""Reductions leave out what is masked out; a result is masked out if all of its elements are."""

from __future__ import annotations

from ... import _C, _formats
from ... import _ops as _torch_ops
from ..._C import ops
from .. import _ops as _functions
from ._gradients import Call
from ._parts import values
from .core import made, refuse

__all__: list[str] = []

REDUCE_NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()
_aten = _torch_ops.ops.aten
NATIVE_REDUCE_FNS = [getattr(_aten, name) for name in REDUCE_NAMES]
_ALL = (None, ())


def _functional(name):
    """reduced(input, mask, dim, keepdim, **options): the function of `masked` with a common order of arguments."""
    if name in ("all", "any"):

        def truth(input, mask, dim, keepdim):
            # A masked-out element counts as True for `all`, and as False for `any`.
            found = input.bool() | ~mask if name == "all" else input.bool() & mask
            return ops[name](found) if dim is None else ops[name](found, dim, keepdim)

        return truth
    function = getattr(_functions, name)
    if name == "norm":

        def norm(input, mask, dim, keepdim, p=2.0, dtype=None):
            if p == "nuc":
                refuse("norm", " with the nuclear norm")
            order = 2.0 if p in (None, "fro") else float(p)
            return function(input, order, dim, keepdim=keepdim, dtype=dtype, mask=mask)

        return norm

    def reduced(input, mask, dim, keepdim, **options):
        return function(input, dim, keepdim=keepdim, mask=mask, **options)

    return reduced


def _arguments(name, args, kwargs):
    """(dim, keepdim, options) of a call: `norm` takes the order first; `var(False)` means its `unbiased`."""
    names = {
        "norm": ("p", "dim", "keepdim", "dtype"),
        "var": ("dim", "unbiased", "keepdim"),
        "std": ("dim", "unbiased", "keepdim"),
    }
    given = dict(kwargs)
    if name in ("var", "std") and args and isinstance(args[0], bool):
        given["unbiased"], args = args[0], ()
    for key, value in zip(names.get(name, ("dim", "keepdim", "dtype")), args, strict=False):
        given[key] = value
    for other, key in (("axis", "dim"), ("keepdims", "keepdim")):
        if other in given:
            given[key] = given.pop(other)
    dim = given.pop("dim", None)
    keepdim = bool(given.pop("keepdim", False))
    return (None if dim in _ALL else dim if isinstance(dim, int) else tuple(dim)), keepdim, given


def reduction(name):
    """The rule of a reduction.

    Raises:
        TypeError: over a dimension of a sparse tensor.
        ValueError: the mean of integers.
    """
    function = _functional(name)

    def rule(self, *args, **kwargs):
        dim, keepdim, options = _arguments(name, args, kwargs)
        asked = options.get("dtype") or self.dtype
        if name == "mean" and not asked.is_floating_point:
            raise ValueError(
                "mean(): Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
                f"{self.dtype}"
            )
        if self.layout is not _formats.strided:
            return _of_sparse(self, name, function, dim, options)
        mask, call = self._mask, Call()
        found = function(call.take(self, None), mask, dim, keepdim, **options)
        kept = mask.any() if dim is None else mask.any(dim, keepdim)
        return call.give(found, kept.reshape(found.shape))

    return rule


def _of_sparse(self, name, function, dim, options):
    if dim is not None:
        refuse(name, f" of layout {self.layout} over a dimension")
    found = function(values(self._value).reshape(-1), values(self._mask).reshape(-1), None, False, **options)
    if name in ("argmin", "argmax"):
        from ...sparse._convert import as_coo

        # The position among the specified elements becomes that in the dense tensor.
        index, place = as_coo(self._value)._index, 0
        for row, size in zip(index, self.shape, strict=True):
            place = place * size + row
        found = place[found.long()].to(found.dtype)
    return made(found, values(self._mask).any())


def softmax(op, function):
    """The rule of `softmax` and `log_softmax`, which leave out what is masked out."""

    def rule(self, dim=None, _stacklevel=3, dtype=None, **kwargs):
        if self.layout is not _formats.strided:
            refuse(op, f" of layout {self.layout}")
        if not isinstance(dim, int):
            raise TypeError(f"{op}: expected a dimension as an int, got {type(dim).__name__}")
        call = Call()
        return call.give(function(call.take(self, None), dim, dtype=dtype, mask=self._mask), self._mask.clone())

    return rule


def functional(name):
    """The rule of a function of `masked` whose input is a masked tensor: its mask joins that of the call; the result is dense."""
    function = getattr(_functions, name)

    def rule(input, *args, mask=None, **kwargs):
        own = input._mask.to_dense() if input.layout is not _formats.strided else input._mask
        both = own if mask is None else own & mask
        return function(input.to_tensor(0), *args, mask=both, **kwargs)

    return rule


def is_any_true(self):
    """Whether an element that is let through is True. ValueError: they are no bools."""
    if self.dtype != _C.bool:
        raise ValueError(f"_is_any_true: expected a boolean tensor, got {self.dtype}")
    found = values(self._value) & values(self._mask)
    return made(found.any(), ops["ones"]((), dtype=_C.bool, device=found.device))
