"""The part of `Module` that registers hooks and runs a call that has some.

`Module.__call__` takes this road only when the module or the process has a hook, so a call
without hooks pays for one check.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict

from ..._base import Tensor
from ...utils.hooks import BackwardHook, RemovableHandle
from ._state import _WrappedHook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _Globals:
    """Hooks that run for every module of the process."""

    forward_pre = OrderedDict()
    forward = OrderedDict()
    forward_with_kwargs = OrderedDict()
    forward_always = OrderedDict()
    backward_pre = OrderedDict()
    backward = OrderedDict()
    backward_is_full = None


_MIXED = "Cannot use both regular backward hooks and full backward hooks {}. Please use only one of them."


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, args)` runs before every module's forward; returns a handle."""
    handle = RemovableHandle(_Globals.forward_pre)
    _Globals.forward_pre[handle.id] = hook
    return handle


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """`hook(module, args, output)` runs after every module's forward; returns a handle."""
    handle = RemovableHandle(_Globals.forward, extra_dict=[_Globals.forward_with_kwargs, _Globals.forward_always])
    _Globals.forward[handle.id] = hook
    if with_kwargs:
        _Globals.forward_with_kwargs[handle.id] = True
    if always_call:
        _Globals.forward_always[handle.id] = True
    return handle


def _register_global_backward(hook, full):
    if _Globals.backward_is_full is (not full):
        raise RuntimeError(_MIXED.format("as a global Module hook"))
    _Globals.backward_is_full = full
    handle = RemovableHandle(_Globals.backward)
    _Globals.backward[handle.id] = hook
    return handle


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` on the last node of every module's forward; prefer the full form."""
    return _register_global_backward(hook, False)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_input, grad_output)` after the gradients of every module are known; returns a handle."""
    return _register_global_backward(hook, True)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, grad_output)` before the gradients of every module are computed; returns a handle."""
    handle = RemovableHandle(_Globals.backward_pre)
    _Globals.backward_pre[handle.id] = hook
    return handle


class Hooks:
    """Mixed into `Module`."""

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """`hook(module, args)` (`args, kwargs` if `with_kwargs`) runs before `forward` and may return new arguments."""
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """`hook(module, args, output)` runs after `forward` and may return another output.

        Args:
            prepend (bool): run before the hooks registered so far.
            with_kwargs (bool): call `hook(module, args, kwargs, output)`.
            always_call (bool): call it even if `forward` raises.
        """
        extra = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle(self._forward_hooks, extra_dict=extra)
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def _register_backward(self, hook, full, prepend=False):
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(_MIXED.format("on a single Module"))
        self._is_full_backward_hook = full
        handle = RemovableHandle(self._backward_hooks)
        self._backward_hooks[handle.id] = hook
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` on the last node of the forward; prefer the full form."""
        return self._register_backward(hook, False)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_input, grad_output)` runs when the gradients of the inputs are known.

        It may return a tuple that replaces `grad_input`.
        """
        return self._register_backward(hook, True, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(module, grad_output)` runs before the module's gradients and may return new ones."""
        handle = RemovableHandle(self._backward_pre_hooks)
        self._backward_pre_hooks[handle.id] = hook
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def _backward_hook_lists(self):
        full, plain = [], []
        (full if _Globals.backward_is_full else plain).extend(_Globals.backward.values())
        (full if self._is_full_backward_hook else plain).extend(self._backward_hooks.values())
        pre = [*_Globals.backward_pre.values(), *self._backward_pre_hooks.values()]
        return full, plain, pre

    def _run_forward_pre_hooks(self, args, kwargs):
        for hook_id, hook in (*_Globals.forward_pre.items(), *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                result = hook(self, args, kwargs)
                if result is None:
                    continue
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
            else:
                result = hook(self, args)
                if result is not None:
                    args = result if isinstance(result, tuple) else (result,)
        return args, kwargs

    def _run_forward_hook(self, hook_id, hook, args, kwargs, result):
        if hook_id in self._forward_hooks_with_kwargs or hook_id in _Globals.forward_with_kwargs:
            return hook(self, args, kwargs, result)
        return hook(self, args, result)

    def _call_with_hooks(self, args, kwargs):
        done = set()
        try:
            return self._call_in_order(args, kwargs, done)
        except Exception:
            self._run_always_called(args, kwargs, done)
            raise

    def _call_in_order(self, args, kwargs, done):
        full, plain, pre = self._backward_hook_lists()
        args, kwargs = self._run_forward_pre_hooks(args, kwargs)
        carrier = None
        if full or pre:
            carrier = BackwardHook(self, full, pre)
            args = carrier.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for hook_id, hook in (*_Globals.forward.items(), *self._forward_hooks.items()):
            if hook_id in self._forward_hooks_always_called or hook_id in _Globals.forward_always:
                done.add(hook_id)
            changed = self._run_forward_hook(hook_id, hook, args, kwargs, result)
            if changed is not None:
                result = changed
        if carrier is not None:
            if not isinstance(result, (Tensor, tuple)):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors "
                    f"but received {type(result)}",
                    stacklevel=4,
                )
            result = carrier.setup_output_hook(result)
        if plain:
            self._hook_last_node(plain, result)
        return result

    def _hook_last_node(self, hooks, result):
        while not isinstance(result, Tensor):
            result = next(iter(result.values())) if isinstance(result, dict) else result[0]
        if result.grad_fn is not None:
            for hook in hooks:
                result.grad_fn.register_hook(_WrappedHook(hook, self))

    def _run_always_called(self, args, kwargs, done):
        always = [(i, h, "global module") for i, h in _Globals.forward.items() if i in _Globals.forward_always]
        always += [(i, h, "module") for i, h in self._forward_hooks.items() if i in self._forward_hooks_always_called]
        for hook_id, hook, whose in always:
            if hook_id in done:
                continue
            try:
                self._run_forward_hook(hook_id, hook, args, kwargs, None)
            except Exception as error:
                warnings.warn(
                    f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as "
                    f"another error was raised in forward: {error}",
                    stacklevel=4,
                )
