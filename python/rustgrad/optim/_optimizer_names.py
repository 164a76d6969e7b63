"""Private names of `optim.optimizer` that optimizers of other libraries import: they start as copies of PyTorch's.

Its modules look here for a name that they lack, and in `_functional` for the rules as functions.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable
from typing import Any, TypeAlias

from .._absent import absent
from .._base import Tensor, device, dtype, float32, float64, get_default_dtype, is_grad_enabled, ops
from .._base import _set_grad_enabled as set_mode
from ..nn.parameter import Parameter
from ..utils._foreach_utils import (
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
)
from . import optimizer
from .optimizer import Optimizer, ParamsT, _require_fused, _Required

__all__: list[str] = []

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
Indices: TypeAlias = list[int]
TensorListList: TypeAlias = list[list[Tensor | None]]
DeviceDict: TypeAlias = dict[device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[device, dtype] | None, Tensor]
GlobalOptimizerPreHook: TypeAlias = Callable[[Optimizer, Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[[Optimizer, Args, Kwargs], None]
_RequiredParameter, params_t, _params_t = _Required, ParamsT, ParamsT
_foreach_supported_types = [Tensor, Parameter]
_global_optimizer_pre_hooks = optimizer._global_pre_hooks
_global_optimizer_post_hooks = optimizer._global_post_hooks

# Lines for the `Args` of an optimizer's docstring.
_params_doc = "params (iterable): tensors, (name, tensor) pairs, or dicts that each define a parameter group"
_foreach_doc = (
    "foreach (bool, optional): whether all tensors are updated at once (default: None, which leaves the choice)"
)
_fused_doc = (
    "fused (bool, optional): whether one fused operation makes the update (default: None, which leaves the choice)"
)
_capturable_doc = "capturable (bool, optional): whether the step may be captured in a graph (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether the step is recorded by autograd (default: False)"
_maximize_doc = "maximize (bool, optional): ascend instead of descending (default: False)"
_functional_api_doc = (
    "One step of {optimizer}: changes the parameters and the states that it is given in place. "
    "Call it without recording, unless `differentiable=True`."
)


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that records what it computes if the optimizer is differentiable, and else nothing."""

    @functools.wraps(func)
    def step(*args: Any, **kwargs: Any) -> Any:
        previous = is_grad_enabled()
        set_mode(args[0].defaults["differentiable"])
        try:
            return func(*args, **kwargs)
        finally:
            set_mode(previous)

    return step


def _disable_dynamo_if_unsupported(
    single_tensor_fn: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that returns the function: every optimizer can be called in what is compiled."""
    return lambda func: func


def _get_value(x: Any) -> Any:
    """The number that a tensor of one element holds; a number as it is."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """A tensor of one element without dimensions; a number as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """The list itself."""
    return x


def _dispatch_sqrt(x: Any) -> Any:
    """The square root of a tensor or a number."""
    return x.sqrt() if isinstance(x, Tensor) else math.sqrt(x)


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Replaces complex parameters, and what belongs to them in other lists, by real views."""
    for i, param in enumerate(params):
        if param.is_complex():
            params[i] = ops["view_as_real"](param)
            for tensors in state_and_grads:
                tensors[i] = ops["view_as_real"](tensors[i])


def _get_scalar_dtype(is_fused: bool | None = None) -> dtype:
    """The dtype of a step count."""
    return float32 if is_fused or get_default_dtype() != float64 else float64


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The types of devices on which `capturable=True` means something."""
    return ["gpu", "cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _device_dtype_check_for_fused(p: Tensor, cuda_unsupported: bool = False) -> None:
    """RuntimeError unless fused operations compute on a parameter."""
    _require_fused([p])


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(fused, foreach): what an optimizer chooses to which neither is given."""
    if differentiable:
        return False, False
    kinds = _get_fused_kernels_supported_devices()
    fused = use_fused and all(
        p is None or (type(p) in _foreach_supported_types and p.device.type in kinds and p.is_floating_point())
        for p in params
    )
    kinds = _get_foreach_kernels_supported_devices()
    foreach = not fused and all(
        p is None or (type(p) in _foreach_supported_types and p.device.type in kinds) for p in params
    )
    return fused, foreach


def find(module: str, name: str) -> Any:
    """The value of a name that one of the modules of `optim` lacks; AttributeError where this one lacks it too."""
    if name in _EXPORTED:
        return globals()[name]
    found = vars(importlib.import_module(f"{__package__}._functional")).get(name)
    file = module.rpartition(".")[2]
    ours = getattr(found, "__module__", None) == module
    if not ours and not (callable(found) and file == "optimizer" and name.startswith("_single_tensor_")):
        raise absent(module, name)
    return found


_TYPES = "Args DeviceDict DeviceDtypeDict GlobalOptimizerPostHook GlobalOptimizerPreHook Indices Kwargs StateDict TensorListList params_t"
_EXPORTED = {*_TYPES.split(), *(name for name in vars() if name[0] == "_" and name[:2] != "__")}
