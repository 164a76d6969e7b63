"""Selective checkpointing: a policy says of which ops of a checkpointed part the results are kept.

Ops are seen by modes, as functions are called. Where the first computation keeps the result of an op, what the op saves of
its arguments is still numbered by the checkpoint, and anything else that it saves is kept with the result: the recomputation
then hands the result out and saves the arguments again, without running the op.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from .. import _C, ops
from .._base import Tensor, empty
from .._ops import OpOverload
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks
from ..overrides import TorchFunctionMode
from ._checkpoint_state import packing
from ._pytree import tree_leaves, tree_map

__all__ = ["contexts"]

# What ops are called in the namespace `aten`, where that is not their name: a policy is asked about each until it says yes.
_ATTENTION = """_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"""
_NAMES = {
    **{f"conv{kind}": "convolution" for kind in ("1d", "2d", "3d", "_transpose1d", "_transpose2d", "_transpose3d")},
    **dict.fromkeys(("softmax", "log_softmax"), "_{}"),
    **dict.fromkeys(("batch_norm", "dropout", "group_norm", "layer_norm"), "native_{}"),
    "cross_entropy": "_log_softmax nll_loss_forward",
    "einsum": "bmm",
    "nll_loss": "nll_loss_forward",
    "scaled_dot_product_attention": _ATTENTION,
}
# Overloads that are not called `default`; those of tensors and numbers are called `Tensor`.
_OVERLOADS = {
    **dict.fromkeys(("std", "std_mean", "var", "var_mean"), "correction"),
    **dict.fromkeys(("amax", "amin", "max", "mean", "min"), "dim"),
    "sum": "dim_IntList",
    "pow": "Tensor_Scalar",
}
_OF_TENSORS = frozenset("add sub mul div true_divide remainder fmod eq ne lt le gt ge bitwise_and bitwise_or".split())
_OP_TYPES = (type(ops.aten.add._function), type(Tensor.add), type(Tensor.__add__))
# Those that draw random numbers leave the generators as they would.
_DRAWS = ("bernoulli", "dropout", "multinomial", "normal", "poisson", "rand", "rrelu", "uniform")


def _product(args: tuple[Any, ...]) -> str:
    sizes = tuple(a.dim() for a in args[:2] if isinstance(a, Tensor))
    return {(1, 1): "dot", (2, 1): "mv", (2, 2): "mm"}.get(sizes, "bmm")


def _called(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """The ops of `aten` that a call stands for."""
    if name in ("matmul", "rmatmul"):
        names = _product(args)
    elif name == "linear":
        bias = args[2] if len(args) > 2 else kwargs.get("bias")
        names = "mm" if bias is None else "addmm"
    else:
        names = _NAMES.get(name, name).format(name)
    overload = "Tensor" if names in _OF_TENSORS else "default"
    if names in _OVERLOADS and (
        names in ("pow", "var", "var_mean", "std", "std_mean") or len(args) > 1 or "dim" in kwargs
    ):
        overload = _OVERLOADS[names]
    return [getattr(getattr(ops.aten, one), overload) for one in names.split()]


class _Result:
    """A tensor that is kept, without its history: whoever keeps that keeps the graph."""

    def __init__(self, t: Tensor) -> None:
        self.tensor, self.requires_grad, self.version = t.detach(), t.requires_grad, t._version

    def again(self, may_change: bool) -> Tensor:
        """The tensor as a result of an op: one that requires grad is no leaf."""
        if not may_change and self.tensor._version != self.version:
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return _Again.apply(empty(0, requires_grad=True), self) if self.requires_grad else self.tensor.data


class _Again(Function):
    @staticmethod
    def forward(ctx: Any, requires: Tensor, result: _Result) -> Tensor:
        """The memory of what was kept."""
        return result.tensor.data

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """None: a recomputation is not differentiated."""
        return None, None


class _Kept:
    """The results of an op, which of its arguments it has saved, in order, and where it has left the generators."""

    def __init__(self, out: Any, places: list[int], drawn: Any) -> None:
        self.out = tree_map(lambda t: _Result(t) if isinstance(t, Tensor) else t, out)
        self.places, self.drawn = places, drawn


class _Decision(enum.Enum):
    """What is remembered of a call whose result is not kept, or no longer."""

    RECOMPUTE = 0
    USED = 1


class _Mode(TorchFunctionMode):
    def __init__(self, policy: Callable[..., Any], kept: dict[str, list[Any]], again: bool, may_change: bool) -> None:
        from .checkpoint import SelectiveCheckpointContext

        self.policy, self.kept, self.again, self.may_change = policy, kept, again, may_change
        self.context = SelectiveCheckpointContext(is_recompute=again)
        self.calls: Counter[str] = Counter()
        self.depth = 0

    def __enter__(self) -> Any:
        # Functions in Python enter the mode once more; each computation counts its calls from the first.
        if not self.depth:
            self.calls.clear()
        self.depth += 1
        return super().__enter__()

    def __exit__(self, *exception: Any) -> None:
        self.depth -= 1
        super().__exit__(*exception)

    def __torch_function__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "_is_overridable", False):
            # A function in Python is what the ops that it calls are.
            with self:
                return func.__wrapped__(*args, **kwargs)
        name = getattr(func, "__name__", "")
        is_op = isinstance(func, _OP_TYPES) or name == "einsum"
        if not is_op or name.endswith("_") != name.startswith("__") or kwargs.get("out") is not None:
            return func(*args, **kwargs)
        name = name.strip("_")
        if self.again:
            return self.give(name, func, args, kwargs)
        if any(_saves(self.policy(self.context, op, *args, **kwargs)) for op in _called(name, args, kwargs)):
            return self.keep(name, func, args, kwargs)
        self.kept[name].append(_Decision.RECOMPUTE)
        return func(*args, **kwargs)

    def keep(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op and keeps its result."""
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        facts = [_C._storage_info(t) for t in given]
        places: list[int] = []
        inner: list[Tensor] = []
        outer, back = packing.pack, packing.unpack

        def pack(t: Tensor) -> Any:
            same = (i for i, g in enumerate(given) if g is t or _is_alias(g, facts[i], t))
            place = next(same, None) if outer else None
            if place is None or outer is None:
                inner.append(t.detach())
                return inner[-1]
            places.append(place)
            return (outer(t),)

        def unpack(saved: Any) -> Tensor:
            return back(saved[0]) if type(saved) is tuple and back is not None else saved

        with saved_tensors_hooks(pack, unpack):
            out = func(*args, **kwargs)
        if not inner and any(t._is_view() for t in tree_leaves(out) if isinstance(t, Tensor)):
            # It costs nothing, and has to be a view again.
            self.kept[name].append(_Decision.RECOMPUTE)
            return out
        drawn = _C._rng_states() if any(word in name for word in _DRAWS) else None
        self.kept[name].append(_Kept(out, places, drawn))
        return out

    def give(self, name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result that was kept, or what the call computes, as was decided for it."""
        place, entries = self.calls[name], self.kept[name]
        self.calls[name] += 1
        if place >= len(entries):
            raise RuntimeError(
                f"{name}: call {place} of the recomputation was not made in the first computation. The operations of a part that "
                "is checkpointed selectively have to be the same each time; do they depend on random numbers or on state?"
            )
        kept = entries[place]
        if kept is _Decision.RECOMPUTE:
            return func(*args, **kwargs)
        if kept is _Decision.USED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective "
                f"activation checkpoint. (The result of {name} was used up.)"
            )
        entries[place] = _Decision.USED
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
        for argument in kept.places:
            if packing.pack is not None:
                packing.pack(given[argument])
        if kept.drawn is not None:
            _C._set_rng_states(*kept.drawn)
        return tree_map(lambda r: r.again(self.may_change) if isinstance(r, _Result) else r, kept.out)


def _is_alias(given: Tensor, facts: Any, saved: Tensor) -> bool:
    return given.dtype == saved.dtype and given.shape == saved.shape and facts == _C._storage_info(saved)


def _saves(answer: Any) -> bool:
    from .checkpoint import CheckpointPolicy

    if isinstance(answer, bool):
        return answer
    if not isinstance(answer, CheckpointPolicy):
        raise TypeError(f"selective checkpointing: a policy returns a CheckpointPolicy or a bool, got {answer!r}")
    return answer not in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def contexts(policy: Callable[..., Any] | list[Any], may_change: bool) -> tuple[_Mode, _Mode]:
    """The modes of the first computation and of the recomputation."""
    if isinstance(policy, list):
        for op in policy:
            if not isinstance(op, OpOverload):
                hint = " Did you mean one of its overloads, such as `.default`?" if hasattr(op, "overloads") else ""
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}"
                )
        wanted = {(op.namespace, op.overloadpacket.__name__) for op in policy}

        def policy_of_list(context: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            return (op.namespace, op.overloadpacket.__name__) in wanted

        return contexts(policy_of_list, may_change)
    if not callable(policy):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    kept: dict[str, list[Any]] = defaultdict(list)
    return _Mode(policy, kept, False, may_change), _Mode(policy, kept, True, may_change)
