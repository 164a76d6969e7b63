"""`RUSTGRAD_COMPILE=verify`: beside every replay the function itself runs from the same state, and bits are compared."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ._watch import Watched


def _bits(t):
    if not isinstance(t, Tensor):
        return (type(t), repr(t))
    flat = t.detach().cpu().contiguous().reshape(-1)
    return (str(t.dtype), tuple(t.shape), t.requires_grad, bytes(flat.view(_C.uint8).tolist()) if flat.numel() else b"")


def _leaves(value):
    if isinstance(value, (tuple, list)):
        for v in value:
            yield from _leaves(v)
    elif isinstance(value, dict):
        for v in value.values():
            yield from _leaves(v)
    else:
        yield value


class _State:
    """The tensors that a plan reaches, as they are: values, versions, gradients, and the random stream."""

    def __init__(self, tensors: list[Tensor]) -> None:
        self.tensors = tensors
        self.values = [t.detach().clone() for t in tensors]
        self.versions = [t._version if not t.is_inference() else 0 for t in tensors]
        self.grads = [t.grad if t.is_leaf else None for t in tensors]
        self.grad_values = [None if g is None else g.detach().clone() for g in self.grads]
        self.streams = _C._rng_states()

    def restore(self) -> None:
        """Puts values, gradients and the stream back; not versions, which only grow."""
        for t, value in zip(self.tensors, self.values, strict=True):
            t.data.copy_(value)
        for t, grad, value in zip(self.tensors, self.grads, self.grad_values, strict=True):
            if grad is not None:
                grad.data.copy_(value)
            if t.is_leaf and (grad is not None or t.grad is not None):
                t.grad = grad
        _C._set_rng_states(*self.streams)

    def seen(self, result: Any) -> dict[str, Any]:
        """What a caller sees after a call."""
        return {
            "results": [_bits(t) for t in _leaves(result)],
            "tensors": [_bits(t) for t in self.tensors],
            "versions": [
                (t._version if not t.is_inference() else 0) - before
                for t, before in zip(self.tensors, self.versions, strict=True)
            ],
            "gradients": [None if not t.is_leaf or t.grad is None else _bits(t.grad) for t in self.tensors],
            "random streams": [bytes(state.tolist()) for state in _C._rng_states()],
        }


def checked(state: Watched, args: tuple, kwargs: dict) -> Any:
    """A call in which a replay is followed by the function itself. AssertionError where they differ."""
    for plan in state.plans:
        before = _State([*plan.outside(), *_C._compile_inputs(args, kwargs)])
        result = plan(args, kwargs)
        if result is plan:
            continue
        replayed = before.seen(result)
        before.restore()
        before.versions = [t._version if not t.is_inference() else 0 for t in before.tensors]
        result = state.eager(args, kwargs)
        called = before.seen(result)
        for what, value in called.items():
            if replayed[what] != value:
                raise AssertionError(
                    f"compile: a replay and the call differ in their {what}: {replayed[what]} and {value}"
                )
        state.road = "replay"
        return result
    return state.call(args, kwargs)
