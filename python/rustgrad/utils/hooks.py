"""Handles of registered hooks, and the two identity nodes that carry a module's backward hooks.

A full backward hook must see the gradients of a module's inputs and outputs, whatever the nodes in
between. So inputs and outputs each pass through an identity function; the hook on the
output's node records `grad_output`, the hook on the input's node calls the user's hook.
"""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from .._base import Tensor, is_grad_enabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..nn.modules.module import Module

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
F = TypeVar("F", bound=Callable[..., Any])


class RemovableHandle:
    """What a `register_..._hook` returns: `remove()` removes the hook; it is also a context manager.

    Args:
        hooks_dict: the dictionary that holds the hook under `handle.id`.
        extra_dict: one dictionary, or a list of them, in which the id is deleted as well.
    """

    id: int
    next_id: int = 0

    def __init__(self, hooks_dict: Any, *, extra_dict: Any = None) -> None:
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        if extra_dict is None:
            extra_dict = []
        elif not isinstance(extra_dict, list):
            extra_dict = [extra_dict]
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = tuple(weakref.ref(d) for d in extra_dict)

    def remove(self) -> None:
        """Removes the hook. Calling it again has no effect."""
        for ref in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> Any:
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state: Any) -> None:
        hooks, self.id, extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.remove()


def unserializable_hook(f: F) -> F:
    """Marks a hook: pickling its tensor loses it without a warning. Returns it; a decorator."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Tensor) -> None:
    """Warns when hooks of `tensor` would be lost by pickling it."""
    hooks = getattr(tensor, "_backward_hooks", None)
    if hooks:
        names = [repr(h) for h in hooks.values() if not getattr(h, "__torch_unserializable__", False)]
        for name in names:
            warnings.warn(
                f"backward hook {name} on tensor will not be serialized.  If this is expected, you can decorate the "
                "function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                stacklevel=2,
            )


def _identity():
    from ..autograd.function import BackwardHookFunction

    return BackwardHookFunction


class BackwardHook:
    """Carries the full backward hooks and pre-hooks of one call of one module."""

    def __init__(
        self, module: Module, user_hooks: Iterable[Callable[..., Any]], user_pre_hooks: Iterable[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.n_inputs: int = -1
        self.n_outputs: int = -1
        self.input_index: Any = None
        self.output_index: Any = None

    def setup_input_hook(self, args: Any) -> Any:
        """Passes the tensors among `args` through the identity node; returns the new arguments."""
        self.n_inputs = len(args)
        result, self.input_index = self._pass_through(args, self._on_inputs)
        return result

    def setup_output_hook(self, output: Any) -> Any:
        """As `setup_input_hook`, for a tensor or a tuple (also a named one) of tensors that the module returned."""
        single = not isinstance(output, tuple)
        outputs = (output,) if single else output
        self.n_outputs = len(outputs)
        result, self.output_index = self._pass_through(outputs, self._on_outputs)
        return result[0] if single else result

    def _pass_through(self, args, hook):
        index = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        tensors = [args[i] for i in index]
        if not (is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return args, None
        passed = _identity().apply(*tensors)
        nodes = [t.grad_fn for t in passed if t.grad_fn is not None]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks: the module's tensors have no grad_fn.")
        from ..autograd import _engine

        if _engine.traced is not None and _engine.traced() is not None:
            raise NotImplementedError(
                f"make_fx: full backward hooks of modules are not traced, and {type(self.module).__name__} has some"
            )
        nodes[0].register_hook(hook)
        new = list(args)
        for i, t in zip(index, passed, strict=True):
            new[i] = t
        return (tuple(new) if type(args) is tuple else type(args)(*new)), index

    @staticmethod
    def _scatter(index, values, n):
        full = [None] * n
        for i, v in zip(index, values, strict=True):
            full[i] = v
        return tuple(full)

    def _on_inputs(self, grad_input, _):
        if self.grad_outputs is None:
            # The gradient reached the input by a path that does not pass through the module's output.
            return None
        grads = self._scatter(self.input_index, grad_input, self.n_inputs)
        for hook in self.user_hooks:
            out = hook(self.module, grads, self.grad_outputs)
            if out is None:
                continue
            if isinstance(out, Tensor):
                out = (out,)
            if len(out) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(out)}, but expected {len(grads)}"
                )
            grads = out
        self.grad_outputs = None
        return tuple(grads[i] for i in self.input_index)

    def _on_outputs(self, _, grad_output):
        self.grad_outputs = self._scatter(self.output_index, grad_output, self.n_outputs)
        for hook in self.user_pre_hooks:
            out = hook(self.module, self.grad_outputs)
            if out is None:
                continue
            if isinstance(out, Tensor):
                out = (out,)
            if len(out) != self.n_outputs:
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(out)}, "
                    f"but expected {self.n_outputs}"
                )
            self.grad_outputs = out
        grads = self.grad_outputs
        if self.input_index is None:
            self._call_without_inputs()
        return tuple(grads[i] for i in self.output_index)

    def _call_without_inputs(self):
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=4,
            )
        none = (None,) * self.n_inputs
        for hook in self.user_hooks:
            out = hook(self.module, none, self.grad_outputs)
            if out is not None and not (isinstance(out, tuple) and all(g is None for g in out)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or "
                    "None for all gradients."
                )
        self.grad_outputs = None
