"""`ModuleTracker`: in which modules a program is, in forward and in backward."""

from __future__ import annotations

import weakref
from types import TracebackType
from typing import Any

from .._typing import Self
from ..autograd.grad_mode import is_grad_enabled
from ..autograd.graph import queue_callback, register_multi_grad_hook
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ._pytree import tree_flatten

__all__ = ["ModuleTracker"]


def _differentiated(values):
    """The tensors among the leaves of a structure that require grad."""
    leaves = tree_flatten(values)[0]
    return [t for t in leaves if getattr(t, "requires_grad", False) and is_grad_enabled()]


class ModuleTracker:
    """A context in which `parents` holds the names of the modules that are running, and "Global".

    Names are those of attributes from the outermost module that is called, whose name is that of its class. In backward
    a module runs from the first gradient of its outputs to the last gradient of its inputs.
    """

    parents: set[str]

    def __init__(self) -> None:
        self.parents = {"Global"}
        self._names: weakref.WeakKeyDictionary[Any, str] = weakref.WeakKeyDictionary()
        self._in_backward = False

    @property
    def is_bw(self) -> bool:
        """Whether a backward pass that runs these modules is under way."""
        return self._in_backward

    def _name(self, module):
        if module not in self._names:
            name = type(module).__name__
            # Lists of modules are not called themselves.
            for path, part in module.named_modules():
                self._names[part] = f"{name}.{path}" if path else name
        return self._names[module]

    def _enters(self, name):
        self.parents.add(name)

    def _leaves(self, name):
        self.parents.discard(name)

    def _backward_begins(self):
        if not self._in_backward:
            self._in_backward = True
            queue_callback(self._backward_ends)

    def _backward_ends(self):
        self._in_backward = False
        for name in self.parents - {"Global"}:
            self._leaves(name)

    def _before(self, module, inputs):
        name = self._name(module)
        self._enters(name)
        tensors = _differentiated(inputs)
        if tensors:
            register_multi_grad_hook(tensors, lambda grads: self._leaves(name))

    def _after(self, module, inputs, outputs):
        name = self._name(module)
        self._leaves(name)
        tensors = _differentiated(outputs)
        if tensors:

            def begins(grad):
                self._backward_begins()
                self._enters(name)

            register_multi_grad_hook(tensors, begins, mode="any")

    def __enter__(self) -> Self:
        self._handles = (
            register_module_forward_pre_hook(self._before),
            register_module_forward_hook(self._after),
        )
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for handle in self._handles:
            handle.remove()


def __dir__() -> list[str]:
    return __all__
