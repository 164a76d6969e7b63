"""`Module`: the base class of neural network modules.

The class is composed of three mixins: `Traversal` traverses the tree, `State` saves and loads it,
`Hooks` registers and runs hooks. This file has the instance state: dictionaries of
parameters, buffers and submodules, attribute access to them, the call and the printed form.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar

from ..._absent import getattr_of
from ..._base import Tensor, typename
from ..._own import at_home
from ...utils.hooks import RemovableHandle
from ..parameter import Buffer, Parameter
from ._hooks import (
    Hooks,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX, State, _IncompatibleKeys  # noqa: F401
from ._traversal import Traversal

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)


# What `jit.script` adds to a module, which it returns itself.
_OF_SCRIPTED = frozenset(("save", "save_to_buffer", "code", "graph", "inlined_graph", "original_name"))

TYPE_CHECKING = False
if TYPE_CHECKING:

    class _HasForward(Protocol[P, R_co]):
        """A module for typing its call: `model(x)` has the parameters and the result of its `forward`."""

        def forward(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...


__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

at_home(__name__, _IncompatibleKeys)

# The hooks of the process, under PyTorch's names: programs and tests clear or replace these tables.
_global_buffer_registration_hooks = OrderedDict()
_global_module_registration_hooks = OrderedDict()
_global_parameter_registration_hooks = OrderedDict()
_global_backward_pre_hooks = OrderedDict()
_global_backward_hooks = OrderedDict()
_global_is_full_backward_hook: bool | None = None
_global_forward_pre_hooks = OrderedDict()
_global_forward_hooks = OrderedDict()
_global_forward_hooks_always_called = OrderedDict()
_global_forward_hooks_with_kwargs = OrderedDict()

_HOOK_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


def _register_global(table, hook):
    handle = RemovableHandle(table)
    table[handle.id] = hook
    return handle


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, buffer)` runs whenever a buffer is registered and may return another one."""
    return _register_global(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, submodule)` runs whenever a submodule is registered and may return another one."""
    return _register_global(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(module, name, parameter)` runs whenever a parameter is registered and may return another one."""
    return _register_global(_global_parameter_registration_hooks, hook)


def _through_hooks(table, module, name, value):
    for hook in table.values():
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _addindent(text, spaces):
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line if line.strip() else "" for line in rest)])


def _takes_persistent(function):
    import inspect

    return "persistent" in inspect.signature(function).parameters


def _forward_unimplemented(self, *input):
    """Defines the computation; every subclass overrides it."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(Hooks, State, Traversal):
    """Base class of all neural network modules.

    Assigning a `Parameter`, a `Buffer` or another `Module` as an attribute registers it::

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(64, 10)

            def forward(self, x):
                return self.fc(x)

    Attributes:
        training (bool): True in training mode, False after `eval()`.
    """

    training: bool
    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]

    dump_patches = False
    _version = 1
    call_super_init = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if self.call_super_init is False:
            if kwargs:
                name = next(iter(kwargs))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{name}'")
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        state["_is_full_backward_hook"] = None
        for table in _HOOK_TABLES:
            state[table] = OrderedDict()
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self: _HasForward[P, R_co], *args: P.args, **kwargs: P.kwargs) -> R_co:
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def _check_name(self, what, name, table):
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if what != "module" and "." in name:
            raise KeyError(f'{what} name can\'t contain "."')
        if what != "module" and name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')
        if name not in table and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")
        if "." in name:
            raise KeyError(f'module name can\'t contain ".", got: {name}')
        if name == "":
            raise KeyError('module name can\'t be empty string ""')

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but not a parameter, such as a running mean.

        Args:
            name (str): attribute name, without a dot.
            tensor (Tensor or None): the buffer; None is not saved.
            persistent (bool): whether it is part of `state_dict`.

        Raises:
            KeyError: the name is taken, empty or contains a dot.
            TypeError: `tensor` is not a tensor.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _through_hooks(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter under `name`; None reserves the name (a layer without bias).

        Raises:
            KeyError: the name is taken, empty or contains a dot.
            TypeError: `param` is not a `Parameter`.
            ValueError: `param` is the result of a computation.
        """
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    f"explicitly. To express '{name}' as a function of another Tensor, compute the value in the "
                    "forward() method."
                )
            param = _through_hooks(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule under `name`.

        Raises:
            TypeError: `module` is neither a module nor None, or `name` is not a string.
            KeyError: the name is taken, empty or contains a dot.
        """
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        self._modules[name] = _through_hooks(_global_module_registration_hooks, self, name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """Another name of `add_module`."""
        self.add_module(name, module)

    def __getattr__(self, name: str) -> Any:
        # Unrolled: every access to a submodule or parameter in a forward passes through here.
        state = self.__dict__
        modules = state.get("_modules")
        if modules is not None and name in modules:
            return modules[name]
        params = state.get("_parameters")
        if params is not None and name in params:
            return params[name]
        buffers = state.get("_buffers")
        if buffers is not None and name in buffers:
            return buffers[name]
        if name in _OF_SCRIPTED and (jit := sys.modules.get("rustgrad.jit")) is not None and jit._is_scripted(self):
            return jit._of_scripted(self, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _forget(self, name, *tables):
        for table in tables:
            if isinstance(table, set):
                table.discard(name)
            else:
                table.pop(name, None)

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        params = state.get("_parameters")
        modules = state.get("_modules")
        buffers = state.get("_buffers")
        if isinstance(value, Parameter) or isinstance(value, Tensor) and getattr(value, "_is_param", False):
            if params is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, state, buffers, modules, self._non_persistent_buffers_set)
            self.register_parameter(name, value)
        elif params is not None and name in params:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, state, params, buffers, self._non_persistent_buffers_set)
            modules[name] = _through_hooks(_global_module_registration_hooks, self, name, value)
        elif modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = _through_hooks(_global_module_registration_hooks, self, name, value)
        elif buffers is not None and name in buffers or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            object.__setattr__(self, name, value)

    def _set_buffer(self, name, value):
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if isinstance(value, Buffer):
            persistent = value.persistent
        else:
            persistent = name not in self._non_persistent_buffers_set
        if type(self).register_buffer is Module.register_buffer or _takes_persistent(self.register_buffer):
            self.register_buffer(name, value, persistent)
        elif persistent:
            self.register_buffer(name, value)
        else:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() "
                "without the persistent argument is not allowed."
            )

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
        elif name in self._buffers:
            del self._buffers[name]
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
        else:
            object.__delattr__(self, name)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compiles `forward` in place, with the arguments of `rustgrad.compile`; hooks stay outside."""
        from ...compiler import compile

        self.__dict__["forward"] = compile(self.forward, *args, **kwargs)

    def __getstate__(self) -> Any:
        state = self.__dict__.copy()
        if hasattr(state.get("forward"), "_compiled_state"):
            del state["forward"]  # it is bound to this module
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)
        for table in _HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the printed form shows between the parentheses; override it."""
        return ""

    def _repr_html_(self) -> str:
        """What a notebook shows: the tree of modules."""
        from ..._html import module_html

        return module_html(self)

    def __repr__(self) -> str:
        extra = self.extra_repr()
        extra_lines = extra.split("\n") if extra else []
        child_lines = [f"({name}): {_addindent(repr(child), 2)}" for name, child in self._modules.items()]
        lines = extra_lines + child_lines
        if len(extra_lines) == 1 and not child_lines:
            body = extra_lines[0]
        elif lines:
            body = "\n  " + "\n  ".join(lines) + "\n"
        else:
            body = ""
        return f"{self._get_name()}({body})"

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())


__getattr__ = getattr_of(__name__)
