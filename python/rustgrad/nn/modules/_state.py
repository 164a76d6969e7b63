"""The part of `Module` that saves and loads: `state_dict`, `load_state_dict` and their hooks."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections import OrderedDict, namedtuple
from collections.abc import Mapping

from ... import __future__
from ..._base import Tensor
from ...autograd.grad_mode import no_grad
from ...utils import swap_tensors
from ...utils.hooks import RemovableHandle
from ..parameter import Parameter, is_lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NamedTuple

    class _Keys(NamedTuple):
        missing_keys: list[str]
        unexpected_keys: list[str]
else:
    _Keys = namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])

# The last part of the key under which a state dict has what `get_extra_state` returns.
_EXTRA = _EXTRA_STATE_KEY_SUFFIX = "_extra_state"


class _IncompatibleKeys(_Keys):
    """What `load_state_dict` returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WrappedHook:
    """A hook that gets its module as the first argument without keeping the module alive."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        functools.update_wrapper(self, hook)
        self.with_module = module is not None
        if self.with_module:
            self.module = weakref.ref(module)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.with_module:
            return self.hook(*args, **kwargs)
        module = self.module()
        if module is None:
            raise RuntimeError("You are trying to call the hook of a dead Module!")
        return self.hook(module, *args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        if self.with_module:
            state["module"] = self.module()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook = state["hook"]
        self.with_module = state["with_module"]
        if self.with_module:
            if state["module"] is None:
                raise RuntimeError("You are trying to revive the hook of a dead Module!")
            self.module = weakref.ref(state["module"])


def _swap_with(param, made, value):
    """Swaps the result of `Tensor.module_load` into a parameter or buffer."""
    if made is value or made is param:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(param, Parameter):
        made = made if isinstance(made, Parameter) else Parameter(made, param.requires_grad)
        made.requires_grad_(param.requires_grad)
    swap_tensors(param, made)


class State:
    """Mixed into `Module`."""

    def get_extra_state(self) -> Any:
        """Override it to add picklable state beyond parameters and buffers to the `state_dict`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Please file an issue."
        )

    def set_extra_state(self, state: Any) -> None:
        """Override it to restore what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Please file an issue."
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + _EXTRA] = self.get_extra_state()

    def state_dict(
        self, *args: Any, destination: dict[str, Any] | None = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """An ordered dictionary of all parameters and persistent buffers by dotted name, sharing their storage.

        Args:
            destination (dict, optional): filled and returned instead of a new one.
            prefix (str): put in front of every key.
            keep_vars (bool): keep the tensors' graph; by default they are detached.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local_metadata)
            if result is None:
                continue
            if getattr(hook, "_from_public_api", False):
                raise RuntimeError("state_dict post-hook must return None")
            destination = result
        return destination

    def _register_state_dict_hook(self, hook):
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata) -> None` runs after `state_dict` has been filled."""
        hook._from_public_api = True
        handle = RemovableHandle(self._state_dict_hooks)
        self._state_dict_hooks[handle.id] = hook
        return handle

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, prefix, keep_vars) -> None` runs before `state_dict` is filled."""
        handle = RemovableHandle(self._state_dict_pre_hooks)
        self._state_dict_pre_hooks[handle.id] = hook
        return handle

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        handle = RemovableHandle(self._load_state_dict_pre_hooks)
        self._load_state_dict_pre_hooks[handle.id] = _WrappedHook(hook, self if with_module else None)
        return handle

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)` before loading."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(module, incompatible_keys) -> None` after loading; it may change the lists in place."""
        handle = RemovableHandle(self._load_state_dict_post_hooks)
        self._load_state_dict_post_hooks[handle.id] = hook
        return handle

    def _load_one(self, name, param, key, value, assign, error_msgs):
        if not isinstance(value, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
            return
        # An uninitialised parameter has no shape to compare.
        lazy = is_lazy(param)
        if not lazy and param.dim() == 0 and value.dim() == 1 and value.shape[0] == 1:
            value = value[0]
        if not lazy and value.shape != param.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, "
                f"the shape in current model is {param.shape}."
            )
            return
        if param.is_meta and not value.is_meta and not assign:
            warnings.warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)",
                stacklevel=2,
            )
        swap = __future__.get_swap_module_params_on_conversion()
        try:
            with no_grad():
                if swap:
                    _swap_with(param, param.module_load(value, assign=assign), value)
                    return
                if not assign:
                    param.copy_(value)
                    return
                if isinstance(param, Parameter):
                    if isinstance(value, Parameter):
                        value.requires_grad_(param.requires_grad)
                    else:
                        value = Parameter(value, requires_grad=param.requires_grad)
                setattr(self, name, value)
        except Exception as ex:
            error_msgs.append(
                f'While {"swapping" if swap else "copying"} the parameter named "{key}", whose dimensions in the model '
                f"are {param.size()} and "
                f"whose dimensions in the checkpoint are {value.size()}, an exception occurred : {ex.args}."
            )

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        transient = self._non_persistent_buffers_set
        local_state = {k: v for k, v in self._parameters.items() if v is not None}
        local_state.update((k, v) for k, v in self._buffers.items() if v is not None and k not in transient)
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, param in local_state.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(name, param, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)

        extra_key = prefix + _EXTRA
        if type(self).set_extra_state is not State.set_extra_state:
            if extra_key in state_dict:
                self.set_extra_state(state_dict[extra_key])
            elif strict:
                missing_keys.append(extra_key)
        elif strict and extra_key in state_dict:
            unexpected_keys.append(extra_key)
        if not strict:
            return
        for key in state_dict:
            if not key.startswith(prefix) or key == extra_key:
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (self._modules if dot else local_state):
                unexpected_keys.append(key)

    def _load_tree(self, state_dict, prefix, metadata, assign, report):
        """Loads this module and its submodules; `report` is (missing, unexpected, errors)."""
        local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
        if assign:
            local_metadata["assign_to_params_buffers"] = assign
        self._load_from_state_dict(state_dict, prefix, local_metadata, True, *report)
        for name, child in self._modules.items():
            if child is not None:
                below = prefix + name + "."
                child_dict = {k: v for k, v in state_dict.items() if k.startswith(below)}
                child._load_tree(child_dict, below, metadata, assign, report)
        incompatible = _IncompatibleKeys(report[0], report[1])
        for hook in self._load_state_dict_post_hooks.values():
            if hook(self, incompatible) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the tensors of `state_dict` into the parameters and buffers of the same dotted names.

        Args:
            state_dict (Mapping): name -> tensor.
            strict (bool): missing and unexpected keys are errors.
            assign (bool): use the given tensors themselves instead of copying their values.

        Returns:
            A named tuple (missing_keys, unexpected_keys).

        Raises:
            TypeError: `state_dict` is not a mapping.
            RuntimeError: keys (if `strict`) or shapes do not fit; the message lists every one of them.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)
        if metadata is not None:
            state_dict._metadata = metadata
        missing, unexpected, errors = [], [], []
        self._load_tree(state_dict, "", metadata, assign, (missing, unexpected, errors))
        if strict:
            if unexpected:
                names = ", ".join(f'"{k}"' for k in unexpected)
                errors.insert(0, f"Unexpected key(s) in state_dict: {names}. ")
            if missing:
                names = ", ".join(f'"{k}"' for k in missing)
                errors.insert(0, f"Missing key(s) in state_dict: {names}. ")
        if errors:
            lines = "\n\t".join(errors)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{lines}")
        return _IncompatibleKeys(missing, unexpected)
