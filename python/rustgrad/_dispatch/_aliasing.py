"""`return_and_correct_aliasing`: results of `__torch_dispatch__` share memory and identity as the op's schema says."""

from __future__ import annotations

import functools
import re
from typing import Any

from .. import _C
from .._C import Tensor
from .._formats import strided
from . import _classes
from ._stack import NoOverrides

__all__ = ["corrected", "share"]

_ALIAS = re.compile(r"\w+\((\w+)(!?)[^)]*\)")
# Views here whose schema does not say so: they may be copies.
_MAYBE = frozenset(("contiguous", "reshape", "to", "_unsafe_view"))
# Ops that change the form of a tensor in place.
_FORMS = frozenset(
    "squeeze_ unsqueeze_ t_ transpose_ as_strided_ swapaxes_ swapdims_ detach_ resize_ resize_as_ set_".split()
)


@functools.cache
def _results(op: Any) -> list[tuple[str, bool] | None]:
    """Of each result the mark of the arguments that it aliases, and whether they are written."""
    if op._schema is None:
        return []
    found = []
    for text in op._schema.returns:
        match = _ALIAS.match(text)
        found.append((match[1], bool(match[2])) if match else None)
    return found


def _written(op: Any, args: Any, kwargs: Any) -> list[Any]:
    """The tensors that an op writes to, in the order of its arguments."""
    arguments = op._schema.arguments
    given = {**dict(zip((a.name for a in arguments), args)), **kwargs}
    return [given.get(a.name) for a in arguments if a.writes]


def corrected(op: Any, args: Any, kwargs: Any, out: Any) -> Any:
    """The results with the identity and memory that the op's schema says."""
    schema = op._schema
    if schema is None:
        return out
    name = op.overloadpacket.__name__
    if schema.is_mutable:
        written = _written(op, args, kwargs)
        if name in _FORMS and written and _classes.is_wrapper(written[0]):
            _changed_form(op, args, kwargs)
        marks = _results(op)
        if len(marks) == 1 and marks[0] is not None and marks[0][1]:
            return written[0]
        if isinstance(out, (list, tuple)) and len(marks) == len(out):
            targets = iter(written)
            return type(out)(next(targets) if m is not None and m[1] else o for m, o in zip(marks, out))
        return out
    if schema.is_view and name not in _MAYBE and args and isinstance(args[0], Tensor):
        for result in out if isinstance(out, (list, tuple)) else (out,):
            if isinstance(result, Tensor) and result is not args[0] and _shares(args[0], result):
                share(args[0], result)
    return out


def _changed_form(op: Any, args: Any, kwargs: Any) -> None:
    with _classes.disabled(), NoOverrides():
        op.overloadpacket._function(*args, **kwargs)


def _shares(base: Any, result: Any) -> bool:
    return _classes.is_wrapper(base) and _classes.is_wrapper(result) and type(base) is type(result)


def share(base: Tensor, result: Tensor) -> None:
    """Puts a wrapper on the memory, which is none, of the one that it is a view of."""
    if base.layout is not strided or base.dtype != result.dtype or result.requires_grad:
        return
    with _classes.disabled(), NoOverrides():
        form = (tuple(result.shape), result.stride(), result.storage_offset())
        view = Tensor.detach(base)
        try:
            view = Tensor.as_strided(view, *form)
        except RuntimeError:
            # The class says another form than a view has: its tensors count their writes themselves.
            return
        _C._swap_tensors(result, view)
