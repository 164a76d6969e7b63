"""The reentrant variant of `checkpoint`: a custom function whose backward runs the part again and then a backward of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from .. import _C
from .._base import Tensor
from ..autograd import backward as run_backward
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from ._checkpoint_state import Surroundings

__all__ = ["CheckpointFunction", "check_backward_validity", "detach_variable"]


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warns if no tensor among the inputs requires grad: then the reentrant variant has no gradients."""
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The inputs with each tensor as a new leaf that requires grad if the tensor does.

    Raises:
        RuntimeError: `inputs` is no tuple.
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs)


class CheckpointFunction(Function):
    """`checkpoint(use_reentrant=True)`."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = Surroundings(preserve_rng_state)
        ctx.inputs = [None if isinstance(a, Tensor) else a for a in args]
        ctx.tensor_indices = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        ctx.save_for_backward(*(a for a in args if isinstance(a, Tensor)))
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if not _C._is_checkpoint_valid():
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for i, tensor in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[i] = tensor
        inputs = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = zip(outputs, grads, strict=False)
        pairs = [(out, grad) for out, grad in pairs if isinstance(out, Tensor) and out.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        run_backward(*zip(*pairs, strict=True))
        return (None, None, *(t.grad if isinstance(t, Tensor) else None for t in inputs))
