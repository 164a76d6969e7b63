"""`rustgrad.func`: transforms of functions (`vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`), modules called with given parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from .._absent import getattr_of
from .._base import Tensor, stack
from ..nn import Module
from ..nn.utils.stateless import _functional_call
from ._forward import hessian, jacfwd, jvp, linearize
from ._grad import debug_unwrap, functionalize, grad, grad_and_value, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """`root`, whose batch norms keep no running statistics any more: `vmap` over a model cannot update those.

    They normalize by the statistics of the batch, in evaluation too.
    """
    from ..nn.modules.batchnorm import _BatchNorm

    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: dict[str, Tensor] | Sequence[dict[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """`module(*args, **kwargs)` with other tensors in the places of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts (dict or sequence of dicts): tensors by dotted name; what is left out stays. A buffer that
            `forward` replaces is replaced in the dict.
        args (Any or tuple), kwargs (dict, optional): the arguments; what is no tuple is one argument.
        tie_weights (bool): a tensor that the module has under several names is replaced under all of them.
        strict (bool): all names must be given, and no others.

    Raises:
        ValueError: a name is in several dicts, or tied names get different tensors.
        RuntimeError: names are missing or unknown, if `strict`.
    """
    given = parameter_and_buffer_dicts
    if isinstance(given, Sequence):
        if not all(isinstance(d, dict) for d in given):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        repeated = [key for key, n in Counter(key for d in given for key in d).items() if n > 1]
        if repeated:
            raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
        given = {key: value for d in given for key, value in d.items()}
    elif not isinstance(given, dict):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def _stacked(tensors):
    """The tensors as one with a new first dimension; a new leaf if they require grad."""
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError("Expected each parameter to have the same .requires_grad")
    if tensors[0].requires_grad:
        return stack(tensors).detach().requires_grad_()
    return stack(tensors)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Any], dict[str, Any]]:
    """(parameters, buffers) of several modules of one class: by name, stacked along a new first dimension.

    The stacked parameters are new leaves.

    Raises:
        RuntimeError: there are none, they differ in class or training mode, or parameters in `requires_grad`.
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(m.named_parameters()) for m in models]
    buffers = [dict(m.named_buffers()) for m in models]
    return _stacked_by_name(parameters), _stacked_by_name(buffers)


def _stacked_by_name(dicts):
    return {name: _stacked([d[name] for d in dicts]) for name in dicts[0]}


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
