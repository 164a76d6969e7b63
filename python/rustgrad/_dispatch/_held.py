"""A gradient with memory on its way to a wrapper: to the engine it looks like one."""

from __future__ import annotations

import functools
from typing import Any

from .. import _C
from .._C import Tensor, ops
from . import _classes
from ._stack import NoOverrides

__all__ = ["added", "held", "released", "shown", "started", "wraps"]


class _Held(Tensor):
    """Stands for the tensor in `held`, on `meta`."""

    __torch_function__ = _C._disabled_torch_function_impl

    def to_dense(self) -> Any:
        """Itself: the engine asks for all elements."""
        return self


def held(grad: Any, wants: bool) -> Any:
    """A gradient as the engine takes it for an input that is a wrapper, if `wants`."""
    if not wants or grad is None or _classes.is_wrapper(grad):
        return grad
    with NoOverrides():
        body = ops["empty"](tuple(grad.shape), dtype=grad.dtype, device="meta")
        made = _C._make_subclass(_Held, body, False)
    made.__dict__[_classes.PLACE] = grad.device
    made.__dict__["held"] = grad
    return made


def started(output: Any, grad: Any) -> Any:
    """The gradient that backward begins with at an output."""
    return held(grad, isinstance(output, Tensor) and _classes.is_wrapper(output))


wraps = _classes.is_wrapper


def released(grad: Any) -> Any:
    """The gradient that was held."""
    return grad.__dict__["held"] if type(grad) is _Held else grad


def shown(args: Any) -> Any:
    """What makes fake tensors of gradients that the core has computed for a node of fake tensors; None for others."""
    fake = next((t for t in args if "fake_mode" in getattr(t, "__dict__", ())), None)
    if fake is None:
        return None
    from ._fake import shown

    return functools.partial(shown, fake)


def added(a: Any, b: Any) -> Any:
    """The sum of two gradients of which one is a wrapper or stands for a tensor."""
    total = released(a) + released(b)
    return held(total, type(a) is _Held or type(b) is _Held)
