"""What `import functorch` means under `python -m rustgrad`: the package that PyTorch brings for programs before `torch.func`.

Each function warns that it is deprecated, and names its successor.
"""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

from . import func
from ._absent import getattr_of
from ._base import Tensor, stack
from .fx.experimental.proxy_tensor import make_fx as make_fx
from .nn import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


_F = TypeVar("_F", bound=Callable[..., Any])


def _now(successor: str) -> Callable[[_F], _F]:
    """A decorator: the function warns that programs should call `torch.<successor>`."""

    def deprecated(function: _F) -> _F:
        @functools.wraps(function)
        def warning(*args: Any, **kwargs: Any) -> Any:
            text = (
                "We've integrated functorch into PyTorch. As the final step of the integration, "
                f"`functorch.{function.__name__}` is deprecated as of PyTorch 2.0 and will be deleted in a future version of "
                f"PyTorch >= 2.3. Please use `torch.{successor}` instead; see the PyTorch 2.0 release notes and/or the "
                "`torch.func` migration guide for more details https://pytorch.org/docs/main/func.migrating.html"
            )
            warnings.warn(text, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return warning  # type: ignore[return-value]

    return deprecated


vmap = _now("vmap")(func.vmap)
functionalize = _now("func.functionalize")(func.functionalize)
grad = _now("func.grad")(func.grad)
grad_and_value = _now("func.grad_and_value")(func.grad_and_value)
hessian = _now("func.hessian")(func.hessian)
jacfwd = _now("func.jacfwd")(func.jacfwd)
jacrev = _now("func.jacrev")(func.jacrev)
jvp = _now("func.jvp")(func.jvp)
vjp = _now("func.vjp")(func.vjp)


class FunctionalModuleWithBuffers(Module):
    """A module as a function `f(params, buffers, *args, **kwargs)` of its parameters and buffers."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.stateless_model = copy.deepcopy(model).to("meta")
        self.param_names = tuple(name for name, _ in model.named_parameters())
        self.buffer_names = tuple(name for name, _ in model.named_buffers())
        # Buffers that are one object under several names, which the copy has apart.
        first = {id(b): name for name, b in reversed([*model.named_buffers(remove_duplicate=False)])}
        self.tied = {name: first[id(b)] for name, b in model.named_buffers(remove_duplicate=False)}

    def forward(self, params: Any, buffers: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module computes with these parameters and buffers."""
        given = dict(zip(self.buffer_names, buffers, strict=True))
        state = dict(zip(self.param_names, params, strict=True)) | {name: given[of] for name, of in self.tied.items()}
        return func.functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without buffers as a function `f(params, *args, **kwargs)` of its parameters."""

    def forward(self, params: Any, *args: Any, **kwargs: Any) -> Any:
        """What the module computes with these parameters."""
        return super().forward(params, (), *args, **kwargs)


def _detached(tensors: Any, disable: bool) -> tuple[Tensor, ...]:
    """Copies of the values, as leaves that require a gradient where the originals do, unless `disable`."""
    return tuple(t.detach().clone().requires_grad_(t.requires_grad and not disable) for t in tensors)


@_now("func.functional_call")
def make_functional(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A module as a function of its parameters, and the parameters.

    Raises:
        RuntimeError: the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(model), _detached(model.parameters(), disable_autograd_tracking)


def _functional(model: Module, disable_autograd_tracking: bool = False) -> Any:
    params = _detached(model.parameters(), disable_autograd_tracking)
    return FunctionalModuleWithBuffers(model), params, _detached(model.buffers(), True)


@_now("func.functional_call")
def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A module as a function of its parameters and buffers, the parameters, and the buffers."""
    return _functional(model, disable_autograd_tracking)  # type: ignore[no-any-return]


@_now("func.stack_module_state")
def combine_state_for_ensemble(
    models: Any,
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Modules of one class as a function for `vmap`, with their parameters and buffers stacked.

    Raises:
        RuntimeError: no modules, modules in different modes, or of different classes.
    """
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if any(m.training is not models[0].training for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    made = [_functional(m) for m in models]
    params = tuple(
        stack(same).detach().requires_grad_(same[0].requires_grad) for same in zip(*(m[1] for m in made), strict=True)
    )
    buffers = tuple(stack(same) for same in zip(*(m[2] for m in made), strict=True))
    return made[0][0], params, buffers


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
