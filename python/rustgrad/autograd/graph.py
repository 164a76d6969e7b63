"""The graph as an object: nodes, edges, and hooks on what nodes save."""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import _C
from .._absent import getattr_of
from .._base import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..utils.hooks import RemovableHandle

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "queue_callback",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
]


class _NodeMeta(type):
    def __instancecheck__(cls, obj: object) -> bool:
        return issubclass(type(obj), cls)

    def __subclasscheck__(cls, subclass: type) -> bool:
        from .function import BackwardCFunction

        return type.__subclasscheck__(cls, subclass) or (
            cls is Node and issubclass(subclass, (_C.Node, BackwardCFunction))
        )


class Node(metaclass=_NodeMeta):
    """The base class of all nodes of the graph, contexts of custom functions included.

    The methods are those of the object `tensor.grad_fn`.
    """

    def name(self) -> str:
        """The name, `AddBackward0`."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes that backward visits next, paired with their input numbers."""
        raise NotImplementedError

    def metadata(self) -> dict[Any, Any]:
        """A dict for user data."""
        raise NotImplementedError

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_inputs, grad_outputs)` after the node; it may return other `grad_inputs`."""
        raise NotImplementedError

    def register_prehook(self, fn: Callable[..., Any]) -> RemovableHandle:
        """Calls `fn(grad_outputs)` before the node; it may return others."""
        raise NotImplementedError


class GradientEdge(NamedTuple):
    """The edge through which a tensor's gradient flows. `grad` accepts it instead of the tensor."""

    node: Any
    output_nr: int
    ownership_token: Any = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The edge of a tensor that requires grad: its `grad_fn`, or the `AccumulateGrad` of a leaf."""
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(_accumulator(tensor), tensor.output_nr)


def increment_version(tensor: Tensor) -> None:
    """Bumps the version of a tensor, or of each in an iterable, after a write through `data_ptr`, for example.

    Backward through a graph that saved it then raises, as after an in-place op. Inference tensors have no version.

    Raises:
        RuntimeError: neither a tensor nor an iterable of tensors.
    """
    try:
        tensors = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
    except TypeError:
        raise RuntimeError("increment_version: expected a tensor or an iterable of tensors") from None
    if not all(isinstance(t, Tensor) for t in tensors):
        raise RuntimeError("increment_version expects each element of the iterable to be a tensor")
    for t in tensors:
        _C._increment_version(t)


def _accumulator(tensor):
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    with _grad_on():
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]


def _grad_on():
    from .grad_mode import enable_grad

    return enable_grad()


class saved_tensors_hooks:
    """Inside the block, saved tensors are packed by one function and unpacked by the other.

    Args:
        pack_hook (callable): from a tensor to any object; it must not modify the tensor.
        unpack_hook (callable): from that object to a tensor with the same contents.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        _C._push_saved_tensors_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: Any) -> None:
        _C._pop_saved_tensors_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Stores saved tensors in CPU memory; `pin_memory` has no effect."""

    def __init__(self, pin_memory: bool = False, device_type: str = "gpu") -> None:
        super().__init__(lambda t: (t.device, t.detach().cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside the block, `saved_tensors_hooks` raises RuntimeError with this message."""
    before = _C._disable_saved_tensors_hooks(error_message)
    try:
        yield
    finally:
        _C._disable_saved_tensors_hooks(before)


class _Copy:
    """What a saved tensor was; None once the block that it was saved in is over."""

    def __init__(self, tensor):
        self.tensor = tensor


class _MutationContext:
    """The result of `allow_mutation_on_saved_tensors`: `clear()` drops the copies."""

    def __init__(self) -> None:
        # Weak: a graph that is released, or let go, lets go of its copies.
        self.copies = weakref.WeakSet()

    def clear(self) -> None:
        """Frees the copies; graphs recorded in the block can then no longer be differentiated."""
        for copy in tuple(self.copies):
            copy.tensor = None
        self.copies.clear()


_mutation = threading.local()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Inside the block, saved tensors may be modified in place: backward uses their previous values.

    Yields:
        An object whose `clear()` frees the copies.

    Raises:
        RuntimeError: blocks are nested.
        AssertionError: backward runs after the block.
    """
    if getattr(_mutation, "context", None) is not None:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = _mutation.context = _MutationContext()

    def pack(t):
        copy = _Copy(t.clone())
        context.copies.add(copy)
        return copy

    def unpack(copy):
        if copy.tensor is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                "originally recorded."
            )
        return copy.tensor

    try:
        with saved_tensors_hooks(pack, unpack):
            yield context
    finally:
        context.clear()
        _mutation.context = None


class _Handles:
    """The handles of one hook on several tensors."""

    def __init__(self, handles: Iterable[RemovableHandle]) -> None:
        self.handles: tuple[RemovableHandle, ...] = tuple(handles)

    def remove(self) -> None:
        """Removes the hook from all tensors."""
        for handle in self.handles:
            handle.remove()

    def __enter__(self) -> _Handles:
        return self

    def __exit__(self, *args: object) -> None:
        self.remove()


def queue_callback(callback: Callable[[], Any]) -> None:
    """Calls a function without arguments at the end of the running backward pass.

    Raises:
        RuntimeError: no backward pass is running in this thread.
    """
    _C._queue_callback(callback)


def register_multi_grad_hook(
    tensors: Tensor | Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all"
) -> _Handles:
    """Calls `fn` once per backward: with all gradients when the last has arrived, or with the first.

    Args:
        tensors (sequence): tensors that require grad.
        fn (callable): gets a list of gradients ("all"; None for a tensor outside the graph) or one gradient
            ("any").
        mode (str): "all" or "any".

    Returns:
        A handle with `remove()`.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = [t for t in tensors if isinstance(t, Tensor)]
    state = threading.local()

    def fire():
        if not state.fired:
            state.fired = True
            fn([state.seen.get(i) for i in range(len(tensors))])

    def make(i):
        def hook(grad):
            first = getattr(state, "current", None) != _C._current_pass()
            if first:
                state.current, state.seen, state.fired = _C._current_pass(), {}, False
                if mode == "any":
                    fn(grad)
                else:
                    # Gradients still missing at the end of the pass are not part of it.
                    _C._queue_callback(fire)
            state.seen[i] = grad
            if mode == "all" and len(state.seen) == len(tensors):
                fire()

        return hook

    return _Handles(t.register_hook(make(i)) for i, t in enumerate(tensors))


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """No effect: a device has one stream."""


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
