"""Autograd above dispatch: a result gets a node whose gradient is computed by ops that are dispatched in turn.

Three ways (docs/decisions/dispatch.md): by a formula of ops (`_formulas`); by autograd itself where the op runs on tensors with memory, which views
and writes in place need; and a node that says that there is no gradient.
"""

from __future__ import annotations

import sys
from typing import Any

from .. import _C
from .._C import Tensor
from .._op_defs import CustomOpDef
from .._ops import OpOverload, ops
from ..autograd import _engine
from ..autograd.function import Function
from ..autograd.grad_mode import enable_grad, no_grad
from . import _classes, _formulas
from ._calls import Frame, dispatch, quietly
from ._composites import is_autocast_on
from ._stack import NoOverrides, state

__all__ = ["record"]

# Results that have no gradient.
_CONSTANT = frozenset(
    """detach alias_copy zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros new_ones new_empty new_full
    new_empty_strided bernoulli multinomial equal allclose sym_size sym_stride sym_numel
    _local_scalar_dense is_same_size histc bucketize searchsorted""".split()
)
_RANDOM = frozenset("rrelu_with_noise native_dropout bernoulli normal poisson _fused_dropout".split())


def record(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], tensors: list[Tensor]) -> Any:
    """The result of an op on tensors of which some require grad, with its node."""
    if op.overloadpacket.__name__ in _CONSTANT:
        return quietly(op, args, kwargs, tensors)
    formula, wraps = _formulas.find(op), any(map(_classes.dispatches, map(type, tensors)))
    schema = op._schema
    writes = schema is not None and schema.is_mutable
    fake = wraps and _are_fake(tensors)
    if fake and (formula is None or formula.view or writes):
        return _native(op, formula if _tracing() is not None else None, args, kwargs, tensors)
    if wraps and not fake:
        _check_views(op, args, tensors, writes)
    by_formula = formula is not None and not formula.view and not is_autocast_on()
    by_formula = by_formula and (not writes or (_tracing() is not None and not args[0]._is_view()))
    if wraps or state.through or by_formula:
        before = _bound(op, args, kwargs)
        if writes and formula is not None and "self" in formula.saves and isinstance(before.get("self"), Tensor):
            # What the op is about to write over.
            with no_grad():
                before["self"] = dispatch(ops.aten.clone.default, (before["self"],), {})
        result = quietly(op, args, kwargs, tensors)
        return _attached(op, formula, before, tensors, result)
    if not writes and formula is None and _tracing() is not None and not is_autocast_on() and not _records_itself(op):
        from ._tape import once_more

        return once_more(op, args, kwargs, quietly(op, args, kwargs, tensors))
    return _native(op, formula, args, kwargs, tensors)


def _records_itself(op: OpOverload) -> bool:
    """Whether the gradient of an op is written in Python, or no second run gives it."""
    kernel = op.overloadpacket._function
    return _is_random(op) or (isinstance(kernel, CustomOpDef) and kernel._init_fn is not None)


def _is_random(op: OpOverload) -> bool:
    name = op.overloadpacket.__name__
    return name in _RANDOM or "dropout" in name or name.startswith("rrelu")


def _tracing() -> Any:
    """The mode of `make_fx` that this thread is in, or None."""
    return None if _engine.traced is None else _engine.traced()


def _are_fake(tensors: list[Tensor]) -> bool:
    """Whether all are fake tensors, on whose bodies the core records."""
    loaded = sys.modules.get("rustgrad._dispatch._fake")
    return loaded is not None and all(isinstance(t, loaded.FakeTensor) for t in tensors)


def _check_views(op: OpOverload, args: tuple[Any, ...], tensors: list[Tensor], writes: bool) -> None:
    """What autograd does not follow for wrappers: writes through views, and views of what was written since.

    Raises:
        RuntimeError: the op writes to a leaf that requires grad, to a view, or reads a view whose base was written.
    """
    target = args[0] if writes and args and isinstance(args[0], Tensor) else None
    if target is not None and target.is_leaf and target.requires_grad:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    for t in tensors:
        taken = t.__dict__.get(_classes.VIEW)
        if taken is None:
            continue
        if t is target:
            raise RuntimeError(
                f"{op}: a view of a {type(t).__name__} is written in place, whose gradient is not recorded; expected a tensor of its "
                "own. Hint: use torch.where, cat or scatter, or write under torch.no_grad()"
            )
        if t.requires_grad and t._version != taken:
            raise RuntimeError(
                f"{op}: this {type(t).__name__} is a view of a tensor that was written in place since; its gradient is not recorded. "
                "Hint: take the view again"
            )


def _bound(op: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, with their defaults."""
    schema = op._schema
    if schema is None:
        return {**{str(i): v for i, v in enumerate(args)}, **kwargs}
    # Those that are given come first, in their order, which is that of their tensors.
    found = {**dict(zip((a.name for a in schema.arguments), args)), **kwargs}
    for a in schema.arguments:
        if a.name not in found:
            found[a.name] = a.default_value
    return found


def _native(op: OpOverload, formula: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    """The op, recorded by autograd itself where it runs; where the formula is known, modes see the gradient all the same."""
    frame = Frame(op, tensors)
    bound = _bound(op, args, kwargs)
    mode = _tracing()
    onto = mode is not None and formula is not None and op._schema.is_mutable and args[0]._is_view()
    if onto and "self" in formula.saves:
        with no_grad():
            bound["self"] = dispatch(ops.aten.clone.default, (args[0],), {})
    state.frames.append(frame)
    try:
        result = quietly(op, args, kwargs, tensors)
    finally:
        state.frames.pop()
    if frame.done and (result is frame.result or _same(result, frame.result)):
        if onto:
            from ._tape import of_slices

            of_slices(mode, formula, bound, result, [t.requires_grad for t in tensors])
        elif formula is not None:
            _show(formula, bound, result)
        return result
    if not _C.is_grad_enabled():
        return result
    if mode is not None and not op._schema.is_mutable:
        # What runs in the place of the op.
        from ._tape import once_more

        return (
            once_more(op, args, kwargs, result) if formula is None else _attached(op, formula, bound, tensors, result)
        )
    return _attached(op, formula if formula is not None and not formula.view else None, bound, tensors, result)


def _same(a: Any, b: Any) -> bool:
    lists = isinstance(a, (list, tuple)) and isinstance(b, (list, tuple))
    return lists and len(a) == len(b) and all(x is y for x, y in zip(a, b))


def _show(formula: _formulas.Formula, bound: dict[str, Any], result: Any) -> None:
    """Lets the node that autograd has made compute its gradient by dispatched ops."""
    many = isinstance(result, (list, tuple))
    first = result[0] if many and result else result
    if not isinstance(first, Tensor) or first.grad_fn is None:
        return
    known = _formulas.Known.of(formula, bound)
    if known is None:
        return
    count = len(result) if many else 1

    def gradients(grad_outputs: Any) -> list[Any]:
        given = list(grad_outputs) + [None] * (count - len(grad_outputs))
        found = known.gradients(formula, given if many else given[0])
        return [g for g, t in zip(found, known.forms()) if t.requires_grad]

    mode = _tracing()
    if mode is not None:
        mode.formulas[first.grad_fn._sequence_nr(), first.grad_fn.name()] = gradients

    def hook(grad_inputs: tuple[Any, ...], grad_outputs: tuple[Any, ...]) -> Any:
        wanted = gradients(grad_outputs)
        if len(wanted) != len(grad_inputs) or any((a is None) != (b is None) for a, b in zip(wanted, grad_inputs)):
            return None
        return tuple(wanted)

    first.grad_fn.register_hook(hook)


# --- nodes by formulas


class _Node(Function):
    """A result that modes or classes have made, with the gradient that a formula says."""

    @staticmethod
    def forward(ctx: Any, call: Any, *tensors: Any) -> Any:
        ctx.set_materialize_grads(False)
        return call.save(ctx, tensors)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ctx.call.backward(ctx, grads))


class _Call:
    """A call that is recorded: what its gradient needs, and which tensors it has."""

    def __init__(self, op: OpOverload, formula: Any, bound: dict[str, Any], result: Any) -> None:
        self.op, self.formula, self.result = op, formula, result
        self.shapes = _formulas.described(bound)
        self.kept: list[tuple[str, int | None]] = []
        self.parts: list[Any] = []
        # Nodes of the core that gradients go to, which compute on memory.
        self.core: list[str | None] = []
        self.bound = bound
        self.count = 1
        mode = _tracing()
        # Whether autograd saves results as they are.
        self.plain = mode is not None and mode.transforms > 0
        self.written = {a.name for a in op._schema.arguments if a.writes} if op._schema is not None else set()

    def save(self, ctx: Any, tensors: Any) -> Any:
        """Keeps what the formula asks for, and hands over the result."""
        result, self.result = self.result, None
        results = result if isinstance(result, tuple) else (result,)
        nodes = [t.grad_fn for t in tensors]
        self.core = [None if n is None or hasattr(n, "_run_backward") else n.name() for n in nodes]
        self.count = len(results)
        dirty = [t for t in tensors if any(t is r for r in results)]
        if dirty and self.written:
            ctx.mark_dirty(*dirty)
        saved = []
        if self.formula is not None:
            for name in self.formula.saves:
                for key, t in self._named(name, results):
                    self.kept.append(key)
                    saved.append(t)
            constant = results[self.formula.outputs :]
            ctx.mark_non_differentiable(*(t for t in constant if isinstance(t, Tensor)))
        ctx.save_for_backward(*saved)
        # A wrapper that is saved comes back without what Python keeps of it.
        self.parts = [(type(t), t.__dict__) if _classes.is_wrapper(t) else None for t in saved]
        self.bound = {}
        ctx.call = self
        return result

    def _named(self, name: str, results: Any) -> Any:
        if name.startswith("result"):
            at = int(name[6:] or 0)
            if isinstance(results[at], Tensor):
                yield (name, None), results[at]
            return
        value = self.bound.get(name)
        if isinstance(value, Tensor):
            yield (name, None), value
        elif isinstance(value, (list, tuple)):
            yield from (((name, i), t) for i, t in enumerate(value) if isinstance(t, Tensor))

    def backward(self, ctx: Any, grads: tuple[Any, ...]) -> Any:
        """The gradients by the tensors."""
        if self.formula is None:
            raise NotImplementedError(
                f"{self.op}: the gradient of a call that __torch_dispatch__ answered is not known. Hint: wrap it in an "
                "autograd.Function, or define __torch_function__"
            )
        known = _formulas.Known(dict(self.shapes), ctx.needs_input_grad[1:])
        for (name, at), t, parts in zip(self.kept, ctx.saved_tensors, self.parts):
            if parts is not None:
                t = _with_parts(t, *parts)
            if name == "result" and state.active() and not self.plain:
                # PyTorch's saved results are detached, and modes see it.
                dispatch(ops.aten.detach.default, (t,), {})
            known.put(name, at, t)
        found = known.gradients(self.formula, grads if self.count > 1 else grads[0])
        for grad, node in zip(found, self.core):
            if node is not None and _classes.is_wrapper(grad) and not _are_fake([grad]):
                raise NotImplementedError(
                    f"{self.op}: its gradient is a {type(grad).__name__}, and goes to {node}, which was recorded with tensors that have "
                    "memory before a wrapper came in. Hint: wrap the leaf"
                )
        return found


def _attached(op: OpOverload, formula: Any, bound: dict[str, Any], tensors: list[Tensor], result: Any) -> Any:
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    places = [
        i for i, t in enumerate(results) if isinstance(t, Tensor) and (t.dtype.is_floating_point or t.dtype.is_complex)
    ]
    # Results that are recorded already: a class may compute with tensors that have a history of their own.
    recorded = [
        t.grad_fn is not None and not any(t is given for given in tensors) for t in (results[i] for i in places)
    ]
    if not places or all(recorded):
        return result
    if formula is None and not any(map(_classes.is_wrapper, [*tensors, *(results[i] for i in places)])):
        return _recomputed(op, bound, tensors, result)
    given = tuple(results) if len(results) > 1 else results[0]
    call = _Call(op, formula, bound, given)
    if state.active() and formula is not None and "result" in formula.saves and not call.plain:
        dispatch(ops.aten.detach.default, (results[0],), {})
    made = _class_of(op).apply(call, *tensors)
    if not isinstance(result, (list, tuple)):
        return made
    return _as(result, made if isinstance(made, tuple) else (made,))


def _with_parts(t: Tensor, kind: Any, parts: dict[str, Any]) -> Tensor:
    """A saved wrapper with its class and attributes."""
    if type(t) is kind and _classes.is_wrapper(t):
        return t
    with _classes.disabled(), NoOverrides():
        made = (
            _C._as_subclass(t, kind) if _C.is_grad_enabled() and t.requires_grad else _C._make_subclass(kind, t, False)
        )
    made.__dict__.update(parts)
    return made


def _saved_value(ctx: Any, name: str) -> Any:
    """`grad_fn._saved_self`: what the gradient was given."""
    call = ctx.__dict__.get("call")
    key = name.removeprefix("_saved_")
    if call is None or key == name:
        raise AttributeError(f"{type(ctx).__name__!r} object has no attribute {name!r}")
    for (kept, at), t, parts in zip(call.kept, ctx.saved_tensors, call.parts):
        if kept == key and at is None:
            return t if parts is None else _with_parts(t, *parts)
    if key in call.shapes and not isinstance(call.shapes[key], _formulas.Shape):
        return call.shapes[key]
    raise AttributeError(f"{type(ctx).__name__!r} object has no attribute {name!r}")


_names: dict[Any, Any] = {}


def _class_of(op: OpOverload) -> Any:
    """The class of nodes of an op, named as PyTorch names them."""
    name = "".join(part.capitalize() for part in op.overloadpacket.__name__.strip("_").split("_"))
    found = _names.get(name)
    if found is None:
        found = _names[name] = type(name, (_Node,), {"_node_name": f"{name}Backward0"})
        found._context_class.__name__ = f"{name}Backward0"
        found._context_class.__getattr__ = _saved_value
    return found


class _Again(Function):
    """A result that a mode has changed, with the gradient of the op, which runs once more for it."""

    @staticmethod
    def forward(ctx: Any, call: Any, result: Any, *tensors: Any) -> Any:
        ctx.again = call
        ctx.save_for_backward(*tensors)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *ctx.again(ctx.saved_tensors, ctx.needs_input_grad[2:], grads))


def _recomputed(op: OpOverload, bound: dict[str, Any], tensors: list[Tensor], result: Any) -> Any:
    if _is_random(op):
        return result
    many = isinstance(result, (list, tuple))
    described = _formulas.described(bound)

    def again(saved: Any, needs: Any, grads: Any) -> Any:
        from ..autograd import grad

        with _classes.disabled(), enable_grad():
            inputs = [t.detach().requires_grad_(need) for t, need in zip(saved, needs)]
            source = iter(inputs)
            given = {k: _filled(v, source) for k, v in described.items()}
            made = op.overloadpacket._function(**given)
        outputs = [t for t in (made if isinstance(made, (list, tuple)) else [made])]
        pairs = [(o, g) for o, g in zip(outputs, grads) if g is not None and o.requires_grad]
        wanted = [t for t in inputs if t.requires_grad]
        found = iter(grad([o for o, _ in pairs], wanted, [g for _, g in pairs], allow_unused=True))
        return tuple(next(found) if need else None for need in needs)

    made = _Again.apply(again, tuple(result) if many else result, *tensors)
    return _as(result, made) if many else made


def _as(result: Any, values: Any) -> Any:
    """Several results in the list or tuple that they came in."""
    return type(result)(*values) if hasattr(result, "_fields") else type(result)(values)


def _filled(value: Any, source: Any) -> Any:
    if isinstance(value, _formulas.Shape):
        return next(source)
    if isinstance(value, list):
        return [_filled(v, source) for v in value]
    return value
