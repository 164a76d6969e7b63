"""`Optimizer`: parameter groups, state, hooks and saving; one subclass per update rule.

A rule gives two methods: `_init_state` makes a parameter's state, `_update` changes one parameter by
composed tensor ops. Where the op table has a fused form of the rule, the subclass names it, `_update_all` calls
it once for all parameters of a group, and `_update` stays as its oracle, which `fused=False` selects; in rules without that argument, `foreach=False`.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, ClassVar, TypeAlias, TypeVar

from .._absent import absent
from .._base import Tensor, _in_range, _is_traced, float32, is_grad_enabled, ops, profiled, tensor, typename
from .._base import _set_grad_enabled as set_mode
from .._base import _with_grad as tensors_with_grad
from ..autograd import _engine
from ..autograd.grad_mode import enable_grad
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from ..utils.hooks import RemovableHandle

_F = TypeVar("_F", bound=Callable[..., Any])
ParamsT: TypeAlias = Iterable[Tensor | tuple[str, Tensor] | dict[str, Any]]

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

_add_to_each = ops["_foreach_add_"]
_global_pre_hooks = OrderedDict()
_global_post_hooks = OrderedDict()


class _Required:
    """Stands for an argument that every parameter group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: _Required = _Required()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs before every optimizer's step; returns a handle."""
    handle = RemovableHandle(_global_pre_hooks)
    _global_pre_hooks[handle.id] = hook
    return handle


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """`hook(optimizer, args, kwargs)` runs after every optimizer's step; returns a handle."""
    handle = RemovableHandle(_global_post_hooks)
    _global_post_hooks[handle.id] = hook
    return handle


def _with_hooks(step: _F) -> _F:
    """Wraps a `step` method: the hooks run around it, schedulers learn that it was called, and tracers see its range."""

    def hooked(*args, **kwargs):
        self = args[0]  # hooks see the arguments of the unbound method, as in PyTorch
        self._opt_called = True
        for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is not None:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                    )
                args, kwargs = result
        out = step(*args, **kwargs)
        for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
            hook(self, args, kwargs)
        return out

    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        kind = type(args[0])
        # As in PyTorch, hooks belong to the object's own `step`, and to objects that `Optimizer.__init__` has seen.
        if kind.step is not wrapper or "_optimizer_step_pre_hooks" not in args[0].__dict__:
            args[0]._opt_called = True
            return step(*args, **kwargs)
        if _is_traced():
            # A profiler is among what traces calls.
            name = f"Optimizer.step#{kind.__name__}.step"
            return profiled(name, _in_range, name, hooked, *args, **kwargs)
        return hooked(*args, **kwargs)

    wrapper.hooked = True
    return wrapper


def private_names(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module of this package: names that optimizers of other libraries import."""

    def __getattr__(name: str) -> Any:
        if name[:2] == "__":
            raise absent(module, name)
        from ._optimizer_names import find

        return find(module, name)

    return __getattr__


def to_scalar(value: Any) -> Any:
    """The number that a 1-element tensor holds; other values as they are. A tensor that requires grad stays."""
    if isinstance(value, Tensor):
        return value.squeeze() if value.requires_grad else value.item()
    return value


def check_not_negative(**named: float) -> None:
    """ValueError `Invalid NAME value: VALUE` for the first value that is negative or NaN."""
    for name, value in named.items():
        if not 0.0 <= value:
            raise ValueError(f"Invalid {name} value: {value}")


def check_lr(lr: float | Tensor) -> None:
    """ValueError unless `lr` is a number, or a tensor of one element, that is not negative."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if not 0.0 <= lr:
        raise ValueError(f"Invalid learning rate: {lr}")


def step_tensor(value: float = 0.0) -> Tensor:
    """A step count as it is kept in the state: a 0-d float32 tensor on the CPU."""
    return tensor(float(value), dtype=float32, device="cpu")


def numbers(*names: str, **pairs: tuple[str, str]) -> tuple[tuple[str, str, int | None], ...]:
    """`_fused_options` of options that are called as the arguments, and of pairs with the arguments that they become."""
    parts = [(part, name, i) for name, both in pairs.items() for i, part in enumerate(both)]
    return (*((name, name, None) for name in names), *parts)


def with_grad(group):
    """(parameters, gradients) of a group, without those that have no gradient."""
    params, grads = tensors_with_grad(group["params"])
    # A wrapper's gradient may be a tensor with memory.
    return (params, grads) if _engine.holder is None else (params, [*map(_engine.holder.released, grads)])


def _has_sparse_grad(param):
    """Whether the gradient of a dense parameter is sparse. TypeError: it is masked."""
    if hasattr(param.grad, "_masked_mask"):
        raise TypeError(
            "optim: a gradient is a MaskedTensor; expected a dense one. Hint: p.grad = p.grad.to_tensor(0) before the step."
        )
    return _engine.is_sparse(param.grad) and not _engine.is_sparse(param)


def with_values(grad, values):
    """A sparse tensor with the indices of a sparse gradient."""
    from ..sparse._tensor import with_value

    return with_value(grad, values)


def _require_fused(params):
    """RuntimeError unless fused ops compute on the parameters."""
    for p in params:
        if p.is_meta or not p.is_floating_point():
            raise RuntimeError(
                "`fused=True` requires all the params to be floating point Tensors of supported devices: "
                f"['cpu', 'gpu'] but {p.dtype} and {p.device.type}"
            )


def _named(params):
    """(tensors, names or None) of a group's `params`, which may hold (name, tensor) pairs."""
    names = [p[0] for p in params if isinstance(p, tuple)]
    if names and len(names) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [p[1] if isinstance(p, tuple) else p for p in params], names or None


class Optimizer:
    """Base class of all optimizers.

    Args:
        params (iterable): tensors, (name, tensor) pairs, or dicts that each define a parameter group.
        defaults (dict): the options of a group that does not give them.

    Raises:
        TypeError: `params` is a tensor, or an element is no tensor.
        ValueError: no parameters, a non-leaf, or a parameter in two groups.
    """

    _step_defaults = {}
    # The entries of the states that are 0-d tensors, and were numbers in old checkpoints; other optimizers keep numbers.
    _counts: ClassVar[tuple[str, ...]] = ()
    # The op that changes all parameters of a group.
    _fused: ClassVar[Callable[..., None] | None] = None
    # The entries of the states that it takes as lists, after those of the parameters and gradients; the option without which
    # a list is empty.
    _fused_state: ClassVar[dict[str, str | None]] = {}
    # The numbers among the options that it takes: the argument, the option, and the place of the number where it is a tuple.
    _fused_options: ClassVar[tuple[tuple[str, str, int | None], ...]] = ()
    _fused_flags: ClassVar[tuple[str, ...]] = ("maximize",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__ and not hasattr(cls.step, "hooked"):
            cls.step = _with_hooks(cls.step)

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_tables()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, "
                f"but got {typename(params)}"
            )
        if isinstance(params, set):
            warnings.warn(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead. This will be an error in a future release.",
                FutureWarning,
                stacklevel=3,
            )
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hook_tables(self):
        for what in ("step_pre", "step_post", "state_dict_pre", "state_dict_post", "load_pre", "load_post"):
            self.__dict__.setdefault(f"_optimizer_{what}_hooks", OrderedDict())

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._make_hook_tables()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for key, value in self._step_defaults.items():
                group.setdefault(key, value)
        for param_state in self.state.values():
            for name in self._counts:
                if name in param_state and not isinstance(param_state[name], Tensor):
                    param_state[name] = step_tensor(param_state[name])

    def __repr__(self) -> str:
        groups = []
        for i, group in enumerate(self.param_groups):
            lines = [f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params"]
            groups.append(f"\nParameter Group {i}\n" + "".join(lines))
        return f"{type(self).__name__} (" + "".join(groups) + ")"

    def _register(self, table, hook, prepend=False):
        handle = RemovableHandle(table)
        table[handle.id] = hook
        if prepend:
            table.move_to_end(handle.id, last=False)
        return handle

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs before `step`; it may return new (args, kwargs). `args[0]` is the optimizer."""
        return self._register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`hook(optimizer, args, kwargs)` runs after `step`."""
        return self._register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs before `state_dict` is made."""
        return self._register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs after; it may return another dictionary."""
        return self._register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer, state_dict)` runs before loading; it may return another dictionary."""
        return self._register(self._optimizer_load_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """`hook(optimizer)` runs after loading."""
        return self._register(self._optimizer_load_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """The state as a dictionary: "state" by parameter number, and "param_groups" with numbers for parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers = {}
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            packed["params"] = [numbers.setdefault(id(p), len(numbers)) for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @staticmethod
    def _cast(param, value, key=None):
        """A loaded state value with the dtype and device of its parameter; step counts stay as they are."""
        if isinstance(value, Tensor):
            if key == "step":
                return value
            if param.is_floating_point():
                return value.to(dtype=param.dtype, device=param.device)
            return value.to(device=param.device)
        if isinstance(value, dict):
            return {k: Optimizer._cast(param, v, k) for k, v in value.items()}
        if isinstance(value, Iterable) and not isinstance(value, str):
            return type(value)(Optimizer._cast(param, v) for v in value)
        return value

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over the state that `state_dict` returned, matching parameters by number.

        Raises:
            ValueError: the numbers of groups or of parameters in a group differ.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups = self.param_groups
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(g["params"]) != len(s["params"]) for g, s in zip(groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params = {}
        for group, saved in zip(groups, saved_groups, strict=True):
            params.update(zip(saved["params"], group["params"], strict=True))
            saved["params"] = group["params"]
            if "param_names" in group:
                saved.setdefault("param_names", group["param_names"])
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = self._cast(params[key], value)
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": saved_groups})
        for hook in self._optimizer_load_post_hooks.values():
            hook(self)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drops the gradients of all parameters, or fills them with zeros if not `set_to_none`."""
        kind = type(self).__name__
        profiled(f"Optimizer.zero_grad#{kind}.zero_grad", self._zero_grad, set_to_none)

    def _zero_grad(self, set_to_none):
        for group in self.param_groups:
            for p in group["params"]:
                if set_to_none:
                    p.grad = None
                    continue
                grad = p.grad
                if grad is not None:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Updates the parameters once; `closure` recomputes the loss, which is then returned."""
        if type(self)._update is Optimizer._update:
            raise NotImplementedError
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        previous = is_grad_enabled()
        set_mode(self.defaults.get("differentiable", False))
        try:
            for group in self.param_groups:
                self._step_group(group)
        finally:
            set_mode(previous)
        return loss

    step = _with_hooks(step)

    def _step_group(self, group):
        params = group["params"]
        if group.get("fused") and self.__dict__.get("_need_device_dtype_check_for_fused", True):
            _require_fused(with_grad(group)[0])
            self._need_device_dtype_check_for_fused = False
        if _engine.sparse and any(_has_sparse_grad(p) for p in params):
            for p, grad in zip(*with_grad(group), strict=True):
                update = self._update_by_sparse if _has_sparse_grad(p) else self._update
                update(group, p, grad, self._state_of(group, p))
            return
        # A parameter that is listed twice takes two steps, one after the other.
        if len({*params}) == len(params) and self._update_all(group):
            return
        for p, grad in zip(*with_grad(group), strict=True):
            self._update(group, p, grad, self._state_of(group, p))

    def _state_of(self, group, param):
        state = self.state[param]
        if not state:
            self._init_state(group, param, state)
        return state

    def _update_all(self, group: dict[str, Any]) -> bool:
        """Changes all parameters of a group by one fused op; False where the rule or its options have none."""
        options = self._options_of_fused(group)
        if options is None:
            return False
        params, grads = with_grad(group)
        self._update_fused(group, options, params, grads, self._states_of(group, params))
        return True

    def _options_of_fused(self, group: dict[str, Any]) -> dict[str, Any] | None:
        """The options that the fused op takes; None where it cannot run with them."""
        if self._fused_op(group) is None or not self._may_fuse(group):
            return None
        options = {flag: group[flag] for flag in self._fused_flags}
        for argument, name, index in self._fused_options:
            value = group[name]
            if index is not None:
                _, _ = value  # ValueError where it is no pair
                value = value[index]
            if type(value) is not float and isinstance(value := to_scalar(value), Tensor):
                return None
            options[argument] = value
        return options

    def _states_of(self, group, params):
        state_of = self.state
        states = [state_of[p] for p in params]
        return states if all(states) else [self._state_of(group, p) for p in params]

    def _update_fused(self, group, options, params, grads, states):
        """Changes parameters by the fused op, and their states."""
        _add_to_each([state["step"] for state in states], 1)
        lists = [
            [s[name] for s in states] if option is None or group[option] else []
            for name, option in self._fused_state.items()
        ]
        self._fused_op(group)(params, grads, *lists, **options)

    def _fused_op(self, group):
        return self._fused

    @staticmethod
    def _may_fuse(group):
        """Whether the options leave the step to a fused op, which records nothing and takes numbers alone."""
        composed = group.get("fused") is False or ("fused" not in group and group.get("foreach") is False)
        if _engine.dispatched is not None and _engine.dispatched(group.get("params", ())):
            return False
        return not composed and not group.get("differentiable")

    def _init_state(self, group: dict[str, Any], param: Tensor, state: dict[str, Any]) -> None:
        """Fills the empty `state` of a parameter."""

    def _update(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Changes `param` by the rule, with composed ops."""
        raise NotImplementedError

    def _update_by_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor, state: dict[str, Any]) -> None:
        """Changes `param` by a sparse gradient. RuntimeError: the rule changes elements without a gradient too."""
        raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: list[list[Tensor | None]], with_indices: bool = False
    ) -> dict[Any, Any]:
        """Columns of lists of tensors by device and dtype: `{(device, dtype): (lists, positions)}`."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    profile_hook_step = staticmethod(_with_hooks)

    def _patch_step_function(self):
        """The tables of hooks, for an optimizer that does not call this class's constructor; `step` has its hooks anyhow."""
        self._make_hook_tables()

    def _cuda_graph_capture_health_check(self):
        """Nothing to check: steps are never captured in a CUDA graph. Optimizers of other libraries call it in `step`."""

    _accelerator_graph_capture_health_check = _cuda_graph_capture_health_check

    def _check_fused(self):
        """RuntimeError where `fused=True` contradicts another option."""
        options = self.defaults
        if options.get("fused"):
            if options.get("differentiable"):
                raise RuntimeError("`fused` does not support `differentiable`")
            if options.get("foreach"):
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds a group: a dict with "params" and options of its own.

        Raises:
            TypeError: not a dict, parameters in a set, or an element that is no tensor.
            ValueError: a non-leaf tensor, a parameter that another group has, or a missing required option.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in "
                "sets will change between runs. Please use a list instead."
            )
        params, names = _named([params] if isinstance(params, Tensor) else list(params))
        param_group["params"] = params
        if names is not None:
            param_group["param_names"] = names
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {typename(param)}")
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self._check_disjoint(param_group)
        self.param_groups.append(param_group)

    def _check_disjoint(self, param_group):
        params = param_group["params"]
        ids = {id(p) for p in params}
        if len(params) != len(ids):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an "
                "error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        for group in self.param_groups:
            if ("param_names" in param_group) != ("param_names" in group):
                have = "with names" if "param_names" in param_group else "without names"
                raise ValueError(
                    "all optimizer param groups should be with/without names. "
                    f"cannot add param group {have} to the optimizer"
                )
            if any(id(p) in ids for p in group["params"]):
                raise ValueError("some parameters appear in more than one parameter group")


__getattr__ = private_names(__name__)
