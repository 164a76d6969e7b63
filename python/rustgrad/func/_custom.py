"""A custom `autograd.Function` under `vmap`: by its own `vmap`, or by one derived from `forward` and `backward`."""

from __future__ import annotations

from typing import NamedTuple

from .. import _C
from .._base import Tensor
from ..autograd.grad_mode import no_grad
from ._vmap import modes, vmap

__all__ = ["VmapInfo", "apply"]


class VmapInfo(NamedTuple):
    """What `Function.vmap` is told: the number of examples and the randomness mode."""

    batch_size: int
    randomness: str


def apply(cls, args, on_example):
    """Calls `on_example(saved)`, the function on one example, which returns its output and adds to a list what it saved for
    backward, and records what stands for it on the batch."""
    own_rule = cls.vmap is not _base().vmap
    if own_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
        )
    if not own_rule and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            "vmap staticmethod or set generate_vmap_rule=True."
        )
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    result = None

    def run():
        nonlocal result
        saved = []
        result = on_example(saved)
        outputs = result if isinstance(result, tuple) else (result,)
        return [r for r in outputs if isinstance(r, Tensor)], [s for s in saved if isinstance(s, Tensor)]

    def rule(tensors, batched, size):
        given, dims = list(args), [None] * len(args)
        for i, t, is_batched in zip(places, tensors, batched, strict=True):
            given[i], dims[i] = t, 0 if is_batched else None
        if own_rule:
            return _by_own_rule(cls, given, dims, size)
        made = _derived(cls, given, dims, size).apply(*tensors)
        return list(made) if isinstance(made, tuple) else [made]

    _C._vmap_custom(run, rule, [args[i] for i in places])
    return result


def _base():
    from ..autograd.function import Function

    return Function


def _by_own_rule(cls, args, dims, size):
    returned = cls.vmap(VmapInfo(size, modes.all[-1]), tuple(dims), *args)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise RuntimeError(
            f"Expected the vmap staticmethod to have two returns, an output and out_dims, got {type(returned)}."
        )
    output, out_dims = returned
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    if single or not isinstance(out_dims, tuple):
        out_dims = (out_dims[0] if isinstance(out_dims, tuple) else out_dims,) * len(outputs)
    return [
        o.expand(size, *o.shape) if d is None else o.movedim(d, 0)
        for o, d in zip(outputs, out_dims, strict=True)
        if isinstance(o, Tensor)
    ]


def _derived(cls, args, dims, size):
    """A function of the batch: forward and backward are those of `cls`, each under `vmap`."""
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    tensor_dims = tuple(dims[i] for i in places)
    ctx_of_example = cls._context_class()
    saved_at, defined = [], []

    def forward_one(*tensors):
        given = list(args)
        for i, t in zip(places, tensors, strict=True):
            given[i] = t
        ctx_of_example.needs_input_grad = tuple(isinstance(a, Tensor) and a.is_floating_point() for a in given)
        with no_grad():
            output = cls.forward(*given)
            cls.setup_context(ctx_of_example, tuple(given), output)
        outputs = output if isinstance(output, tuple) else (output,)
        saved_at[:] = [s is not None for s in ctx_of_example._to_save]
        return (*outputs, *(s for s in ctx_of_example._to_save if s is not None))

    class Derived(_base()):
        @staticmethod
        def forward(ctx, *tensors):
            made = vmap(forward_one, in_dims=tensor_dims)(*tensors)
            count = len(made) - sum(saved_at)
            ctx.save_for_backward(*made[count:])
            ctx.single = count == 1
            return made[0] if count == 1 else made[:count]

        @staticmethod
        def backward(ctx, *grads):
            saved = ctx.saved_tensors

            def backward_one(*rows):
                rows = iter(rows)
                ctx_of_example._to_save = tuple(next(rows) if present else None for present in saved_at)
                found = ctx_of_example._backward_of(cls)(ctx_of_example, *rows)
                found = found if isinstance(found, tuple) else (found,)
                found = [found[i] for i in places]
                defined[:] = [f is not None for f in found]
                return tuple(f for f in found if f is not None)

            rows = iter(vmap(backward_one)(*saved, *grads))
            result = [next(rows) if present else None for present in defined]
            return tuple(
                r if r is None or d is not None else r.sum(0) for r, d in zip(result, tensor_dims, strict=True)
            )

    Derived.__name__, Derived._node_name = cls.__name__, cls._node_name
    return Derived
