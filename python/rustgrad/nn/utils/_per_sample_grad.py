"""Gradients of each sample of a batch, in `parameter.grad_sample`, after one backward pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._base import Tensor
from ...autograd import Function
from ...func import functional_call, vmap
from ..modules.module import Module

__all__ = ["call_for_per_sample_grads"]


class _PerSample(Function):
    """A copy of a parameter for each sample; its gradient goes to `grad_sample`, not to `grad`."""

    @staticmethod
    def forward(ctx, parameter, owner, batch_size, scale):
        ctx.owner, ctx.scale = owner, scale
        return parameter.detach().expand(batch_size, *parameter.shape).clone()

    @staticmethod
    def backward(ctx, gradient):
        found = gradient * ctx.scale
        before = getattr(ctx.owner, "grad_sample", None)
        ctx.owner.grad_sample = found if before is None else before + found
        return None, None, None, None


def _size(values, dim, asked):
    sizes = {v.shape[dim] for v in values if isinstance(v, Tensor)}
    if asked is not None:
        sizes.add(asked)
    if not sizes:
        raise RuntimeError("Unable to find a tensor in the passed args and kwargs. Expected a batch or a batch_size.")
    if len(sizes) > 1:
        raise RuntimeError(
            "When computing batch size, found at least one input with "
            f"batch size {min(sizes)} and one with batch size {max(sizes)}. Please specify it explicitly using the batch size kwarg"
        )
    return sizes.pop()


def call_for_per_sample_grads(
    module: Module, *, batch_size: int | None = None, loss_reduction: str = "sum", batch_first: bool = True
) -> Callable[..., Any]:
    """A function that calls `module` on a batch, so that the gradient of its result is there for each sample.

    After `backward` the attribute `grad_sample` of each parameter that requires grad has its gradients, of shape
    `(batch_size, *parameter.shape)`; `grad` stays as it is. Samples are computed independently, by `func.vmap`.

    Args:
        module (Module): called with tensors whose batch dimension is the first (the second, if `batch_first` is False).
        batch_size (int, optional): by default that of the inputs.
        loss_reduction (str): "sum" or "mean", how the loss combines samples.
        batch_first (bool): which dimension of inputs and outputs is the batch.

    Raises:
        RuntimeError: wrong arguments; inputs with different batch sizes; a parameter still has a `grad_sample`.
    """
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    dim = 0 if batch_first else 1

    def call(*args: Any, **kwargs: Any) -> Any:
        size = _size((*args, *kwargs.values()), dim, batch_size)
        trained = {name: p for name, p in module.named_parameters() if p.requires_grad}
        for name, p in trained.items():
            if getattr(p, "grad_sample", None) is not None:
                raise RuntimeError(
                    "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple calls "
                    f"without clearing gradients. Please clear out the grad_sample parameter of {name} or "
                    "post an issue to pytorch/pytorch to prioritize correct behavior"
                )
        scale = size if loss_reduction == "mean" else 1
        copies = {name: _PerSample.apply(p, p, size, scale) for name, p in trained.items()}
        names, values = list(kwargs), [*args, *kwargs.values()]

        def one(parameters, *sample):
            batched = [v.unsqueeze(dim) if isinstance(v, Tensor) else v for v in sample]
            given = dict(zip(names, batched[len(args) :], strict=True))
            result = functional_call(module, parameters, tuple(batched[: len(args)]), given)
            return _each(result, lambda t: t.squeeze(dim))

        in_dims = (0, *(dim if isinstance(v, Tensor) else None for v in values))
        return vmap(one, in_dims=in_dims, out_dims=dim)(copies, *values)

    return call


def _each(result, change):
    """The tensors of a result, which may be nested tuples and lists, changed."""
    if isinstance(result, Tensor):
        return change(result)
    return type(result)(_each(r, change) for r in result) if isinstance(result, (tuple, list)) else result


def __dir__() -> list[str]:
    return __all__
