"""Forward-mode transforms: `jvp`, `linearize`, `jacfwd` and `hessian`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor, cat, is_grad_enabled, zeros, zeros_like
from ..autograd._engine import grad as autograd_grad
from ..autograd.forward_ad import _dual, _set_fwd_grad_enabled
from ..autograd.grad_mode import enable_grad
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten
from ._grad import jacrev
from ._vmap import vmap

_JVP = "jvp(f, primals, tangents)"


def _check_tensors(leaves, name):
    if not leaves:
        raise RuntimeError(f"{_JVP}: Expected {name} to contain at least one Tensor.")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{_JVP}: Expected {name} to only contain Tensors, got {type(leaf)}")


def _check_output(leaves):
    if len(leaves) < 1 or (len(leaves) == 1 and leaves[0] is None):
        raise RuntimeError(f"{_JVP}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{_JVP}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )


def _tangent_of(output, level, strict):
    tangent = _C._tangent(output, level)
    if tangent is None:
        if strict:
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed "
                "with strict=True."
            )
        tangent = zeros_like(output)
    return tangent


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """(f(*primals), J v): the product of the Jacobian of `func` at `primals` with `tangents`, in one forward pass.

    Args:
        func (callable): from tensors, or trees of them, to tensors or trees of them.
        primals (tuple): its arguments.
        tangents (tuple): of the same structure and sizes.
        strict (bool): an output that does not depend on the primals is an error instead of zero.
        has_aux (bool): `func` returns (output, aux), and the result is (output, J v, aux).

    Raises:
        RuntimeError: `primals` is no tuple, structures or sizes differ, or something is no tensor.
    """
    return _jvp(func, primals, tangents, None, strict, has_aux)


def _jvp(func, primals, tangents, argnums, strict, has_aux):
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_JVP}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    chosen = primals if argnums is None else _chosen(primals, argnums)
    flat_primals, structure = tree_flatten(chosen)
    flat_tangents, structure_of_tangents = tree_flatten(tangents)
    if structure != structure_of_tangents:
        raise RuntimeError(
            f"{_JVP}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of "
            f"3 tensors, tangents also must be. Got primals with structure {structure} and tangents with structure "
            f"{structure_of_tangents}"
        )
    _check_tensors(flat_primals, "primals")
    _check_tensors(flat_tangents, "tangents")
    with _set_fwd_grad_enabled(True):
        level = _C._forward_enter()
        try:
            duals = tree_unflatten(
                [_dual(p, t, level) for p, t in zip(flat_primals, flat_tangents, strict=True)], structure
            )
            result = func(*(duals if argnums is None else _replaced(primals, duals, argnums)))
            aux = None
            if has_aux:
                if not (isinstance(result, tuple) and len(result) == 2):
                    raise RuntimeError(
                        f"{_JVP}: output of function f should be a tuple: (output, aux) if has_aux is True"
                    )
                result, aux = result
                for leaf in tree_leaves(aux):
                    if not isinstance(leaf, Tensor):
                        raise RuntimeError(f"{_JVP}: Expected tensors in aux, got unsupported type {type(leaf)}")
            outputs, structure = tree_flatten(result)
            _check_output(outputs)
            # The end of the level takes the tangents from the outputs, which are then the primal results.
            products = tree_unflatten([_tangent_of(o, level, strict) for o in outputs], structure)
        finally:
            _C._forward_exit(level)
    return (result, products, aux) if has_aux else (result, products)


def _positions(argnums, count):
    """Argument numbers counted from the front, as a tuple."""
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    positions = []
    for argnum in (argnums,) if isinstance(argnums, int) else argnums:
        if not isinstance(argnum, int):
            raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
        if not -count <= argnum < count:
            raise RuntimeError(f"Got argnum={argnum}, but only {count} positional inputs")
        positions.append(argnum % count)
    if not positions:
        raise RuntimeError("argnums must be non-empty")
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return tuple(positions)


def _chosen(args, argnums):
    return tuple(args[i] for i in _positions(argnums, len(args)))


def _replaced(args, new, argnums):
    args = list(args)
    for i, value in zip(_positions(argnums, len(args)), new, strict=True):
        args[i] = value
    return tuple(args)


def _refuse_complex(name, tree, what):
    for i, leaf in enumerate(tree_leaves(tree)):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def _standard_basis(tensors):
    """For each tensor a (total number of elements, *its shape) tensor; together their rows are the unit vectors."""
    total = sum(t.numel() for t in tensors)
    basis, start = [], 0
    for t in tensors:
        rows = zeros(total, t.numel(), dtype=t.dtype, device=t.device)
        rows[start : start + t.numel()].fill_diagonal_(1)
        basis.append(rows.view(total, *t.shape))
        start += t.numel()
    return basis


def _over_basis(push, basis, chunk_size, randomness):
    """`push` of every row of the tree `basis`; the leaves of the results, tensors, are stacked along a new first dimension."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacfwd: `chunk_size` should be greater than 0.")
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    leaves, structure = tree_flatten(basis)
    count, result_structure = len(leaves[0]), None

    def one(*row):
        nonlocal result_structure
        results, result_structure = tree_flatten(push(tree_unflatten(row, structure)))
        return tuple(results)

    step = chunk_size or count
    pieces = [[b[i : i + step] for b in leaves] for i in range(0, count, step)]
    parts = [vmap(one, randomness=randomness)(*piece) for piece in pieces]
    return tree_unflatten([cat(column) for column in zip(*parts, strict=True)], result_structure)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """A function of the same arguments that returns the Jacobian of `func`, by forward mode over a batch of directions.

    Cheaper than `jacrev` where there are more outputs than inputs.

    Args:
        argnums (int or tuple): the arguments to differentiate by; for a tuple, Jacobians are tuples.
        has_aux (bool): `func` returns (output, aux), and the function (Jacobian, aux).
        chunk_size (int, optional): passes that run together at most.
        randomness (str): "error", "different" or "same", as in `vmap`.

    Returns:
        For each output a Jacobian of shape (*output.shape, *input.shape).
    """

    @functools.wraps(func, assigned=("__module__", "__name__", "__qualname__", "__doc__"), updated=())
    def wrapper(*args):
        _refuse_complex("jacfwd", args, "inputs")
        primals, structure = tree_flatten(_chosen(args, argnums))
        _check_tensors(primals, "primals")
        sizes = [p.numel() for p in primals]
        aux = None

        def push(tangents):
            nonlocal aux
            result = _jvp(func, args, tangents, argnums, False, has_aux)
            _refuse_complex("jacfwd", result[0], "outputs")
            if has_aux and aux is None:
                aux = (result[2],)
            return result[1]

        if sum(sizes) == 0:
            output = func(*args)
            aux, output = ((output[1],), output[0]) if has_aux else (None, output)
            outputs, out_structure = tree_flatten(output)
            columns = [o.new_zeros((0, *o.shape)) for o in outputs]
        else:
            basis = tree_unflatten(_standard_basis(primals), structure)
            columns, out_structure = tree_flatten(_over_basis(push, basis, chunk_size, randomness))
        jacobians = []
        for column in columns:
            parts = column.movedim(0, -1).split(sizes, dim=-1)
            parts = [p.reshape((*p.shape[:-1], *x.shape)) for p, x in zip(parts, primals, strict=True)]
            by_argument = tree_unflatten(parts, structure)
            jacobians.append(by_argument[0] if isinstance(argnums, int) else by_argument)
        result = tree_unflatten(jacobians, out_structure)
        return (result, aux[0]) if has_aux else result

    return wrapper


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function of the same arguments that returns the Hessian of `func`: forward mode over reverse mode.

    For each output and pair of arguments, of shape (*output.shape, *input.shape, *input.shape).
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """(f(*primals), the function `v -> J v` at `primals`).

    `func` runs twice here and not again: a product costs two passes over a graph, which is kept for it.

    Raises (the function):
        RuntimeError: tangents differ from the primals in structure, shape, device or dtype.
    """
    output = func(*primals)
    flat_primals, structure = tree_flatten(primals)
    _check_tensors(flat_primals, "primals")
    with enable_grad():
        # Views keep the tangents and the history of transforms around this one.
        starts = [p.view_as(p) for p in flat_primals]
        starts = [s if s.requires_grad else s.requires_grad_() for s in starts]
        outputs, out_structure = tree_flatten(func(*tree_unflatten(starts, structure)))
        _check_output(outputs)
        seeds = [zeros_like(o).requires_grad_() if o.requires_grad else None for o in outputs]
        active = [(o, u) for o, u in zip(outputs, seeds, strict=True) if u is not None]
        transposed = [None] * len(starts)
        if active:
            transposed = autograd_grad(
                [o for o, _ in active], starts, [u for _, u in active], create_graph=True, allow_unused=True
            )
    shapes = [(p.shape, p.device, p.dtype) for p in flat_primals]
    zero_like = [(o.shape, o.dtype, o.device) for o in outputs]
    del outputs, starts

    def jvp_fn(*tangents: Any) -> Any:
        flat, given = tree_flatten(tangents)
        if given != structure:
            raise RuntimeError(f"Expected the tangents {given} to have the same argspec as the primals {structure}")
        for i, (t, expected) in enumerate(zip(flat, shapes, strict=True)):
            for what, is_, should in zip(
                ("shape", "device", "dtype"), (t.shape, t.device, t.dtype), expected, strict=True
            ):
                if is_ != should:
                    raise RuntimeError(
                        f"tangent:{i} with {what} {is_} in flattened pytree doesn't match the {what} {should} of the "
                        "corresponding primal."
                    )
        pairs = [(w, t) for w, t in zip(transposed, flat, strict=True) if w is not None and w.requires_grad]
        wanted = [u for u in seeds if u is not None]
        found = iter(())
        if pairs and wanted:
            found = iter(
                autograd_grad(
                    [w for w, _ in pairs],
                    wanted,
                    [t for _, t in pairs],
                    retain_graph=True,
                    create_graph=is_grad_enabled() and any(t.requires_grad for t in (*flat_primals, *flat)),
                    allow_unused=True,
                )
            )
        products = [None if u is None else next(found, None) for u in seeds]
        products = [
            zeros(shape, dtype=dtype, device=device) if p is None else p
            for p, (shape, dtype, device) in zip(products, zero_like, strict=True)
        ]
        return tree_unflatten(products, out_structure)

    return output, jvp_fn
