"""The engine's pass written with dispatched ops, for modes that must see all of it: sums of gradients and their way into `.grad` too.

The engine of the core adds gradients unseen. A mode that traces would take such a sum for a constant.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

from .. import _C
from .._C import Tensor
from .._formats import contiguous_format
from .._ops import ops
from ..autograd import _engine
from ..autograd.function import Function
from ..autograd.grad_mode import set_grad_enabled
from ..utils import _pytree
from . import _formulas
from ._calls import dispatch
from ._stack import NoOverrides

__all__ = ["run"]

aten = ops.aten


class _Pass:
    """One pass: the gradients that wait at each node, by the number of the output they are of.

    Args:
        mode: what traces; `mode.knows(tensor)` says whether it saw a tensor being computed.
    """

    def __init__(self, mode: Any, create: bool) -> None:
        self.mode, self.create = mode, create
        self.nodes: dict[Any, Any] = {}
        self.waiting: dict[Any, dict[int, Any]] = {}
        self.counts: dict[Any, int] = {}

    def note(self, node: Any) -> Any:
        """The key of a node, whose Python object may be made anew for each question."""
        key = node._sequence_nr(), node.name()
        self.nodes.setdefault(key, node)
        return key

    def visit(self, roots: list[Any]) -> None:
        """Counts how many edges lead to each node."""
        todo, seen = list(dict.fromkeys(roots)), set(roots)
        while todo:
            for node, _ in self.nodes[todo.pop()].next_functions:
                if node is None:
                    continue
                key = self.note(node)
                self.counts[key] = self.counts.get(key, 0) + 1
                if key not in seen:
                    seen.add(key)
                    todo.append(key)

    def needed(self, wanted: set[Any]) -> set[Any]:
        """The nodes from which one that is wanted can be reached."""
        found: dict[Any, bool] = {}

        def reaches(start: Any) -> None:
            stack = [(start, False)]
            while stack:
                key, done = stack.pop()
                below = [self.note(n) for n, _ in self.nodes[key].next_functions if n is not None]
                if done:
                    found[key] = key in wanted or any(found.get(b) for b in below)
                elif key not in found:
                    found[key] = False
                    stack.append((key, True))
                    stack.extend((b, False) for b in below if b not in found)

        for key in list(self.nodes):
            reaches(key)
        return {key for key, leads in found.items() if leads}

    def give(self, key: Any, at: int, grad: Any) -> None:
        """Adds a gradient to those that wait at an output of a node."""
        if grad is None:
            return
        slots = self.waiting.setdefault(key, {})
        slots[at] = grad if at not in slots else dispatch(aten.add.Tensor, (slots[at], grad), {})

    def gradients_of(self, key: Any) -> list[Any]:
        """What a node gives for what waits at it.

        Raises:
            NotImplementedError: the library computes it by itself, so that no op of ATen is seen.
        """
        node, slots = self.nodes[key], self.waiting.pop(key, {})
        count = max(len(getattr(node, "_input_metadata", ())), 1 + max(slots))
        given, formula = [slots.get(i) for i in range(count)], self.mode.formulas.get(key)
        found = node(*given) if formula is None else formula(given)
        results = list(found) if isinstance(found, (tuple, list)) else [found]
        if formula is not None:
            # The edges of a node of the core are those of all arguments.
            results = _on_edges(node, results)
        known = hasattr(node, "_run_backward") and not node.name().endswith("Backward0")
        for grad in results:
            if isinstance(grad, Tensor) and not known and not self.mode.knows(grad):
                raise NotImplementedError(
                    f"make_fx: the gradient of {node.name()} is not made of ops of ATen that can be traced. Hint: trace the function "
                    "without its gradient, or give the op a decomposition in decomposition_table"
                )
        return results

    def hooked(self, key: Any) -> None:
        """Calls the hooks of the tensors whose gradients wait at a node."""
        slots, leaf = self.waiting[key], getattr(self.nodes[key], "variable", None)
        for at in list(slots):
            hooks = self.mode.hooks.get((key, at), ()) if leaf is None else (leaf._backward_hooks or {}).values()
            for hook in hooks:
                changed = hook(slots[at])
                slots[at] = slots[at] if changed is None else changed

    def accumulate(self, leaf: Tensor, grad: Any) -> None:
        """Adds to the gradient of a leaf."""
        old = leaf.grad
        if old is None:
            leaf.grad = grad if self.create else dispatch(aten.detach.default, (grad,), {})
        elif self.create:
            leaf.grad = dispatch(aten.add.Tensor, (old, grad), {})
        else:
            dispatch(aten.add_.Tensor, (old, grad), {})
        for hook in (getattr(leaf, "_post_accumulate_grad_hooks", None) or {}).values():
            hook(leaf)


def _on_edges(node: Any, results: list[Any]) -> list[Any]:
    """Gradients of the tensors that require one, each at its edge."""
    edges = node.next_functions
    if len(edges) == len(results):
        return results
    given = iter(results)
    return [None if following is None else next(given) for following, _ in edges]


# --- gradients that the core computes by itself


def of_slices(mode: Any, formula: Any, bound: dict[str, Any], view: Tensor, needs: list[bool]) -> None:
    """Notes the gradient of a write to a view, whose node is that of the base: it changes a part of the base's gradient."""
    base = view._base
    if base is None or base.grad_fn is None:
        return
    node, form = base.grad_fn, (list(view.shape), list(view.stride()), view.storage_offset())
    values = _formulas.described(bound)
    known = _formulas.Known(values, iter(needs))
    for name, value in bound.items():
        if name in formula.saves and isinstance(value, Tensor):
            known.put(name, None, value)
    if "result" in formula.saves:
        known.put("result", None, view)

    def gradients(grads: Any) -> list[Any]:
        (grad,) = grads
        whole = dispatch(aten.new_empty_strided.default, (grad, list(base.shape), list(base.stride())), {})
        whole = dispatch(aten.copy_.default, (whole, grad), {})
        part = dispatch(aten.as_strided.default, (whole, *form), {})
        given = dispatch(aten.clone.default, (part,), {"memory_format": contiguous_format})
        own, *others = known.gradients(formula, given)
        dispatch(aten.copy_.default, (part, zeros_of(given) if own is None else own), {})
        wanted = [g for g, need in zip(others, needs[1:]) if need]
        return [whole, *wanted]

    mode.formulas[node._sequence_nr(), node.name()] = gradients


def zeros_of(t: Tensor) -> Any:
    """Zeros in the form of a tensor."""
    return dispatch(aten.zeros_like.default, (t,), {})


def vjp(name: str, args: Any, kwargs: Any, needs: list[bool], grads: Any) -> tuple[Any, ...]:
    """The gradients of an op by the tensors among its arguments: it runs once more, and the library differentiates it.

    Args:
        name (str): the overload, as "aten.sinc.default".
        args, kwargs: its arguments.
        needs (list of bools): by which tensors, in their order.
        grads: the gradient of each result; None where there is none.
    """
    namespace, packet, overload = name.split(".")
    op = getattr(getattr(getattr(ops, namespace), packet), overload)
    wanted = iter(needs)
    inputs: list[Tensor] = []

    def fresh(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        inputs.append(value.detach().requires_grad_(next(wanted)))
        return inputs[-1]

    with set_grad_enabled(True):
        given = _pytree.tree_map(fresh, (args, kwargs))
        made = op(*given[0], **given[1])
        outputs = list(made) if isinstance(made, (list, tuple)) else [made]
        pairs = [(o, g) for o, g in zip(outputs, grads) if g is not None and isinstance(o, Tensor) and o.requires_grad]
        by = [t for t in inputs if t.requires_grad]
        found = iter(_engine.grad([o for o, _ in pairs], by, [g for _, g in pairs], allow_unused=True))
    return tuple(next(found) if t.requires_grad else None for t in inputs)


class _OnceMore(Function):
    """The result of an op whose gradient is one node of the graph, a call of `vjp`."""

    @staticmethod
    def forward(ctx: Any, call: Any, result: Any, *tensors: Any) -> Any:
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        results = result if isinstance(result, tuple) else (result,)
        numbers = [t for t in results if isinstance(t, Tensor) and not (t.is_floating_point() or t.is_complex())]
        ctx.mark_non_differentiable(*numbers)
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        op, args, kwargs = ctx.call
        if _C.is_grad_enabled():
            raise NotImplementedError(
                f"make_fx: the second derivative of {op} is not made of ops of ATen that can be traced"
            )
        mode = _engine.traced()
        given = args, kwargs, list(ctx.needs_input_grad[2:]), list(grads)
        if mode is None:
            return (None, None, *vjp(str(op), *given))
        with mode.left():
            found = vjp(str(op), *given)
        mode.write(vjp, (str(op), *given), {}, found)
        return (None, None, *found)


def once_more(op: Any, args: Any, kwargs: Any, result: Any) -> Any:
    """A result whose gradient the core computes, unseen, when the graph runs."""
    tensors = [t for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    many = isinstance(result, (list, tuple))
    results = [t for t in (result if many else [result]) if isinstance(t, Tensor)]
    if not any(t.is_floating_point() or t.is_complex() for t in results):
        return result
    made = _OnceMore.apply((op, args, kwargs), tuple(result) if many else result, *tensors)
    return type(result)(made) if many else made


def run(
    mode: Any, outputs: Any, grads: Any, create: bool, inputs: tuple[Any, ...], allow_unused: bool, accumulate: bool
) -> Any:
    """What the core's `_run_backward` does and returns."""
    from ..autograd.graph import get_gradient_edge

    tape = _Pass(mode, create)

    def edge_of(t: Any) -> Any:
        with mode.left(), NoOverrides():
            return get_gradient_edge(t) if isinstance(t, Tensor) else t

    roots = [edge_of(t) for t in outputs]
    starts = [tape.note(edge.node) for edge in roots]
    tape.visit(starts)
    edges = [edge_of(t) for t in inputs]
    wanted = [(tape.note(edge.node), edge.output_nr) for edge in edges]
    needed = tape.needed({key for key, _ in wanted}) if inputs else set(tape.nodes)
    taken: dict[Any, Any] = {}
    with set_grad_enabled(create):
        for key, edge, grad in zip(starts, roots, grads):
            tape.give(key, edge.output_nr, grad)
        _sweep(tape, starts, needed, dict.fromkeys(wanted), taken, bool(inputs))
        if accumulate and inputs:
            for t, place in dict(zip(inputs, wanted)).items():
                if taken.get(place) is not None:
                    tape.accumulate(t, taken[place])
    if accumulate:
        return ()
    found = tuple(taken.get(place) for place in wanted)
    if not allow_unused and any(g is None for g in found):
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
            "desired behavior."
        )
    return found


def _sweep(tape: _Pass, starts: list[Any], needed: set[Any], wanted: dict[Any, Any], taken: Any, chosen: bool) -> None:
    """Visits the nodes, each once all that lead to it are done; of those, the one that was recorded last."""

    arrived = itertools.count()

    def order(key: Any) -> Any:
        # Leaves first, as they come.
        leaf = getattr(tape.nodes[key], "variable", None) is not None
        return (0, next(arrived)) if leaf else (1, -key[0])

    ready = [(order(key), key) for key in dict.fromkeys(starts) if not tape.counts.get(key)]
    heapq.heapify(ready)
    while ready:
        _, key = heapq.heappop(ready)
        node = tape.nodes[key]
        edges = node.next_functions
        if key in tape.waiting:
            tape.hooked(key)
        for at, grad in tape.waiting.get(key, {}).items():
            if (key, at) in wanted:
                taken[key, at] = grad
        results: list[Any] = [None] * len(edges)
        if key in tape.waiting and key in needed:
            leaf = getattr(node, "variable", None)
            if leaf is not None:
                if not chosen:
                    tape.accumulate(leaf, tape.waiting[key][0])
            elif not chosen or any(n is not None and tape.note(n) in needed for n, _ in edges):
                results = tape.gradients_of(key)
        for (following, at), grad in zip(edges, results):
            if following is None:
                continue
            to = tape.note(following)
            if to in needed:
                tape.give(to, at, grad)
            tape.counts[to] -= 1
            if not tape.counts[to]:
                heapq.heappush(ready, (order(to), to))
