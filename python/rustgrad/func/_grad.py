"""`grad`, `vjp` and `jacrev`: functions that differentiate functions, by autograd's own graph.

A function is differentiated at aliases of its arguments. Where nothing outside requires grad (an outer transform, a parameter
that the function closes over) they are leaves of their own and no graph is made of the gradients: a plain `grad(f)(x)` is one
forward and one backward pass.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor, eye, is_grad_enabled, ones_like, zeros_like
from .._formats import preserve_format
from ..autograd import _engine
from ..autograd._engine import as_values
from ..autograd._engine import grad as autograd_grad
from ..autograd.grad_mode import enable_grad, no_grad
from ..utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten, treespec_pprint
from ._vmap import vmap

__all__ = ["debug_unwrap", "functionalize", "grad", "grad_and_value", "jacrev", "vjp"]


class _Level:
    """The arguments by which a function is differentiated, and whether its results belong to a graph outside."""

    def __init__(self) -> None:
        self.outer = is_grad_enabled()
        self.inputs = []

    def enter(self, tree):
        return tree_map(self._fresh, tree)

    def run(self, func, args, kwargs):
        """`func`, whose results are saved as they are where a mode traces."""
        mode = _tracing()
        if mode is None:
            return func(*args, **kwargs)
        with mode.inside_transform():
            return func(*args, **kwargs)

    def _fresh(self, t):
        if not isinstance(t, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(t)}")
        mode = _tracing()
        if self.outer and t.requires_grad:
            alias = t.view_as(t) if mode is None else mode.aliased(t)
        else:
            alias = _detached(t).requires_grad_()
        self.inputs.append(alias)
        return alias

    def is_outside(self, *tensors):
        """Whether a tensor depends on what requires grad outside: then its graph is kept."""
        own = [as_values(i) for i in self.inputs if i.is_leaf]
        return self.outer and _C._depends_on_others([as_values(t) for t in tensors if t.requires_grad], own)

    def leave(self, tree):
        return tree_map(self._left, tree)

    def _left(self, t):
        if not isinstance(t, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(t)}")
        return t if not t.requires_grad or self.is_outside(t) else _detached(t)


def _tracing():
    """The mode of `make_fx` that this thread is in, or None."""
    return None if _engine.traced is None else _engine.traced()


def _detached(t):
    """`t` without history; with its tangents, which `detach` drops, for a forward pass around this one."""
    mode = _tracing()
    if mode is not None:
        return mode.detached(t)
    if not _C._forward_levels():
        return t.detach()
    with no_grad():
        return t.view_as(t)


def _gradients(outputs, inputs, cotangents, retain_graph, create_graph):
    """The gradient of every input; zeros where the outputs do not depend on it."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return tuple(zeros_like(i) for i in inputs)
    if _tracing() is not None:
        # As the engine makes them.
        pairs = [(o, ones_like(o, memory_format=preserve_format) if c is None else c) for o, c in pairs]
    grads = autograd_grad(
        [o for o, _ in pairs],
        inputs,
        [c for _, c in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple(zeros_like(i) if g is None else g for g, i in zip(grads, inputs, strict=True))


def _place(argnum, n):
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -n <= argnum < n:
        raise RuntimeError(f"Got argnum={argnum}, but only {n} positional inputs")
    return argnum % n


def _chosen(args, argnums):
    """(whether it is one argument, the positions)."""
    if isinstance(argnums, int):
        return True, (_place(argnums, len(args)),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = tuple(_place(a, len(args)) for a in argnums)
    if not places:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return False, places


def _without_aux(output, has_aux, what):
    """(output, aux) of what a function returned."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns (gradient, value) of `func`, or (gradient, (value, aux)) with `has_aux`.

    Args:
        func (callable): returns a tensor with one element and no dimensions; with `has_aux` (that, aux).
        argnums (int or tuple of ints): the arguments to differentiate by, which are trees of tensors.
        has_aux (bool): `func` returns other tensors too, which are not differentiated.

    Raises:
        RuntimeError: the value is no scalar tensor, or `argnums` does not fit the arguments.
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        single, places = _chosen(args, argnums)
        level = _Level()
        with enable_grad():
            given = list(args)
            trees = [level.enter(args[p]) for p in places]
            for p, tree in zip(places, trees, strict=True):
                given[p] = tree
            output, aux = _without_aux(level.run(func, given, kwargs), has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            flat, spec = tree_flatten(trees[0] if single else tuple(trees))
            outside = level.is_outside(output)
            grads = _gradients((output,), flat, (None,), outside, outside)
            result = tree_unflatten(grads, spec)
            output = level.leave(output)
            aux = level.leave(aux) if has_aux else None
        return (result, (output, aux)) if has_aux else (result, output)

    return wrapper


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, or (gradient, aux) with `has_aux`.

    Gradients of gradients: `grad(grad(f))`. Gradients of each sample: `vmap(grad(f), (None, 0))`.

    Args:
        func (callable), argnums (int or tuple of ints), has_aux (bool): as in `grad_and_value`.

    Raises:
        RuntimeError: the value is no scalar tensor, or `argnums` does not fit the arguments.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        result, value = both(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return wrapper


def _tensors_of(output, what):
    """The leaves of what a function returned, which must be tensors."""
    flat, spec = tree_flatten(output)
    if not flat or (len(flat) == 1 and flat[0] is None):
        raise RuntimeError(f"{what}: Expected f to be a function that has non-empty output (got output = {flat})")
    for o in flat:
        if not isinstance(o, Tensor):
            raise RuntimeError(f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(o)}")
    return flat, spec


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """(`func(*primals)`, a function of a cotangent): products of a vector with the Jacobian, from the left.

    Args:
        func (callable): takes and returns trees of tensors; with `has_aux` it returns (output, aux).
        primals: where it is differentiated.
        has_aux (bool): (output, function, aux) is returned.

    Returns:
        The output, and a function that takes a cotangent with the structure of the output and returns a tuple with a gradient
        for each primal.

    Raises:
        RuntimeError: an output is no tensor of floating-point or complex numbers, or a cotangent has another structure.
    """
    output, function, aux = _vjp(func, primals, tuple(range(len(primals))), has_aux)
    return (output, function, aux) if has_aux else (output, function)


def _vjp(func, args, argnums, has_aux):
    single, places = _chosen(args, argnums)
    level = _Level()
    with enable_grad():
        given = list(args)
        trees = [level.enter(args[p]) for p in places]
        for p, tree in zip(places, trees, strict=True):
            given[p] = tree
        output, aux = _without_aux(level.run(func, given, {}), has_aux, "vjp(f, *primals)")
        flat_out, spec_out = _tensors_of(output, "vjp(f, *primals)")
        for o in flat_out:
            if not (o.is_floating_point() or o.is_complex()):
                raise RuntimeError(
                    "vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype "
                    f"{o.dtype}"
                )
        flat, spec = tree_flatten(trees[0] if single else tuple(trees))
        outside = level.is_outside(*flat_out)
        left = tree_unflatten([level.leave(o) for o in flat_out], spec_out)
        aux = level.leave(aux) if has_aux else None

    def function(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        flat_cotangents, spec_cotangents = tree_flatten(cotangents)
        if spec_cotangents != spec_out:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {treespec_pprint(spec_cotangents)}, primal output: {treespec_pprint(spec_out)}"
            )
        if create_graph is None:
            create_graph = is_grad_enabled() and (outside or any(c.requires_grad for c in flat_cotangents))
        return tree_unflatten(_gradients(flat_out, flat, flat_cotangents, retain_graph, create_graph), spec)

    return left, function, aux


def _refuse_complex(args, what):
    for t in tree_leaves(args):
        if isinstance(t, Tensor) and t.dtype.is_complex:
            raise RuntimeError(
                f"jacrev: Expected all {what} to be real but received complex tensor at flattened input idx: "
                f"{[x is t for x in tree_leaves(args)].index(True)}"
            )


def _basis(outputs, start, end):
    """Rows `start` to `end` of the identity over all elements of the outputs, in their shapes."""
    total = sum(o.numel() for o in outputs)
    rows, at = [], 0
    for o in outputs:
        n = o.numel()
        whole = eye(total, dtype=o.dtype, device=o.device) if len(outputs) > 1 or end - start < total else None
        part = eye(n, dtype=o.dtype, device=o.device) if whole is None else whole[start:end, at : at + n]
        rows.append(part.reshape((end - start, *o.shape)))
        at += n
    return rows


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`: of shape (*output.shape, *input.shape), by reverse mode.

    One backward pass computes all rows. For trees of outputs or inputs, a tree of Jacobians: for each output a tree like the
    inputs.

    Args:
        func (callable): takes and returns trees of real tensors; with `has_aux` it returns (output, aux).
        argnums (int or tuple of ints): the arguments to differentiate by.
        has_aux (bool): (Jacobian, aux) is returned.
        chunk_size (int, optional): rows that are computed at once; None is all.

    Raises:
        ValueError: `chunk_size` is not positive.
        RuntimeError: complex inputs or outputs, or as in `vjp`.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args):
        _refuse_complex(args, "inputs")
        single, places = _chosen(args, argnums)
        output, function, aux = _vjp(func, args, argnums, has_aux)
        _refuse_complex(output, "outputs")
        flat_out, spec_out = tree_flatten(output)
        inputs, spec_in = tree_flatten(args[places[0]] if single else tuple(args[p] for p in places))
        total = sum(o.numel() for o in flat_out)
        step = chunk_size or max(total, 1)

        def rows(*basis):
            return tuple(tree_leaves(function(tree_unflatten(list(basis), spec_out))))

        parts = []
        for start in range(0, total, step):
            end = min(start + step, total)
            basis = _basis(flat_out, start, end)
            if end - start == 1:
                parts.append([g.unsqueeze(0) for g in rows(*(b.squeeze(0) for b in basis))])
            else:
                parts.append(vmap(rows)(*basis))
        if parts:
            columns = [p[0] if len(p) == 1 else _joined(p) for p in zip(*parts, strict=True)]
        else:
            columns = [i.new_zeros(0, *i.shape) for i in inputs]
        jacobians, at = [], 0
        for o in flat_out:
            n = o.numel()
            own = [
                (c.narrow(0, at, n) if n < total else c).reshape((*o.shape, *i.shape))
                for c, i in zip(columns, inputs, strict=True)
            ]
            jacobians.append(tree_unflatten(own, spec_in))
            at += n
        result = tree_unflatten(jacobians, spec_out)
        return (result, aux) if has_aux else result

    return wrapper


def _joined(parts):
    from .._base import cat

    return cat(parts, 0)


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """`func` itself: its results are those of a function without writes in place, and calls are not observed here.

    Args:
        remove (str): "mutations" or "mutations_and_views"; what PyTorch removes from the trace of a function.

    Raises:
        RuntimeError: another `remove`.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are:\n"
            "     remove='mutations': all inplace and out= operators will be removed from the program, and replaced with "
            "their out-of-place equivalents.\n"
            "     remove='mutations_and_views': In addition to the above, all aliasing operators {view} will be replaced "
            "with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return func(*args, **kwargs)

    return wrapped


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """The tensor that a transform shows to a function: here it is an ordinary one, so `tensor` itself."""
    return tensor
