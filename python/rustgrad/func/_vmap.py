"""`vmap`: a function of one example, over a batch."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from .. import _C
from .._base import Tensor, cat, stack
from .._formats import strided
from ..autograd import _engine
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_leaves, tree_unflatten

__all__ = ["vmap"]


class _Modes(threading.local):
    """How the calls of `vmap` that run in this thread take randomness, the innermost last."""

    def __init__(self) -> None:
        self.all: list[str] = []


modes = _Modes()


def _name(func):
    if hasattr(func, "__name__"):
        return func.__name__
    if isinstance(func, functools.partial):
        return f"functools.partial({_name(func.func)}, ...)"
    return repr(func)


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func`, written for one example, as a function of a batch of them.

    `func` runs once, on the first example, and sees shapes without the batch; then its calls run on the whole batch, each by
    the batch rule of its op. Control flow may depend on shapes and on tensors that are not batched, but not on the values of
    batched ones.

    Args:
        func (callable): takes and returns trees of tensors.
        in_dims (int, None or tree): the dimension of the batch in each tensor argument; None where there is none.
        out_dims (int, None or tree): where the dimension of the batch goes in each result; None for one result of all examples.
        randomness (str): "error" refuses random ops, "same" draws once for all examples, "different" for each.
        chunk_size (int, optional): examples that run at once; None is all.

    Raises:
        ValueError: dimensions that do not fit the arguments or results.
        RuntimeError: a value of a batched tensor is read, or a random op is called in the mode "error".

    Example::

        vmap(torch.dot)(x, y)                                       # [B, n], [B, n] -> [B]
        vmap(grad(loss), in_dims=(None, 0, 0))(params, x, target)   # gradients of each sample
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        _check_out_dims(func, out_dims)
        if (parts := _replaced_parts()) is not None:
            from ._vmap_parts import run

            return run(parts, func, in_dims, out_dims, randomness, chunk_size, args, kwargs)
        size, dims, flat, spec = _inputs(func, in_dims, args)
        if chunk_size is None or not size:
            return _run(func, size, dims, flat, spec, out_dims, randomness, kwargs)
        return _chunked(func, size, dims, flat, spec, out_dims, randomness, kwargs, chunk_size)

    return wrapped


def _replaced_parts():
    """The module whose parts of `vmap` a library has replaced, or None: nobody can without importing it."""
    parts = sys.modules.get(f"{__package__.rpartition('.')[0]}._functorch.vmap")
    return parts and parts.replaced()


def _check_out_dims(func, out_dims):
    for d in [out_dims] if out_dims is None else tree_leaves(out_dims, is_leaf=lambda x: x is None):
        if d is not None and not isinstance(d, int):
            raise ValueError(
                f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection "
                "of ints representing where in the outputs the vmapped dimension should appear."
            )


def _inputs(func, in_dims, args):
    """(number of examples, dimension of each argument, arguments, their structure)."""
    what = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{what}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap "
            "over a function with no inputs. The latter is unsupported."
        )
    flat, spec = tree_flatten(args)
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{what}in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims = [_dimension(what, a, d) for a, d in zip(flat, dims, strict=True)]
    sizes = [a.size(d) for a, d in zip(flat, dims, strict=True) if d is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(n != sizes[0] for n in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], dims, flat, spec


def _dimension(what, arg, dim):
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(f"{what}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
    if not isinstance(arg, Tensor):
        raise ValueError(
            f"{what}Got in_dim={dim} for an input but the input is of type {type(arg)}. We cannot vmap over non-Tensor "
            "arguments, please use None as the respective in_dim"
        )
    if arg.layout is not strided or arg.is_nested:
        kind = "nested" if arg.is_nested else f"of the layout {arg.layout}"
        raise NotImplementedError(
            f"{what}an input is {kind}; expected dense tensors to map over. Hint: in_dims=None, or .to_dense()."
        )
    n = arg.dim()
    if not -n <= dim < n:
        raise ValueError(
            f"{what}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {n} so expected "
            f"in_dim to satisfy -{n} <= in_dim < {n}."
        )
    return dim % n


def _flat_out_dims(func, out_dims, output, spec):
    if isinstance(output, Tensor):
        if out_dims is None or isinstance(out_dims, int):
            return [out_dims]
        dims = list(out_dims) if isinstance(out_dims, tuple) and len(out_dims) == 1 else None
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    return dims


def _run(func, size, dims, flat, spec, out_dims, randomness, kwargs):
    fake = any("fake_mode" in a.__dict__ for a in flat if isinstance(a, Tensor))
    if fake or (_engine.traced is not None and _engine.traced() is not None):
        return _one_by_one(func, size, dims, flat, spec, out_dims, randomness, kwargs)
    name = _name(func)
    places = [i for i, d in enumerate(dims) if d is not None]
    results = spec_out = to = None

    def one_example(examples):
        nonlocal results, spec_out, to
        given = list(flat)
        for i, example in zip(places, examples, strict=True):
            given[i] = example
        output = func(*tree_unflatten(given, spec), **kwargs)
        results, spec_out = tree_flatten(output)
        to = _flat_out_dims(func, out_dims, output, spec_out)
        for r, d in zip(results, to, strict=True):
            if d is not None and not isinstance(r, Tensor):
                raise ValueError(
                    f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(r)}. Did you mean to set "
                    "out_dims= to None for output?"
                )
        return [r for r in results if isinstance(r, Tensor)]

    modes.all.append(randomness)
    try:
        made = iter(_C._vmap(one_example, [flat[i] for i in places], [dims[i] for i in places], size, randomness))
    finally:
        modes.all.pop()
    out = []
    for r, d in zip(results, to, strict=True):
        if not isinstance(r, Tensor):
            out.append(r)
            continue
        out.append(_placed(name, *next(made), size, d))
    return tree_unflatten(out, spec_out)


def _one_by_one(func, size, dims, flat, spec, out_dims, randomness, kwargs):
    """`_run` where a mode traces, which sees no batched ops, and of fake tensors: example after example."""
    if randomness == "same" or not size:
        raise NotImplementedError(
            "vmap over no examples, or with randomness='same', is neither traced by make_fx nor run on fake tensors"
        )
    columns, to, spec_out = [], None, None
    for i in range(size):
        given = [a if d is None else a.select(d, i) for a, d in zip(flat, dims, strict=True)]
        output = func(*tree_unflatten(given, spec), **kwargs)
        leaves, spec_out = tree_flatten(output)
        to = _flat_out_dims(func, out_dims, output, spec_out)
        columns.append(leaves)
    whole = [c[0] if d is None else stack(c, d) for c, d in zip(zip(*columns, strict=True), to, strict=True)]
    return tree_unflatten(whole, spec_out)


def _placed(name, value, batched, size, d):
    """A result, which has the batch first if `batched`, with the batch at `d`."""
    if d is None and batched:
        raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
    if d is None:
        return value
    if not batched:
        value = value.expand(size, *value.shape)
    if not -value.dim() <= d < value.dim():
        n = value.dim()
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    return value.movedim(0, d) if d else value


def _chunked(func, size, dims, flat, spec, out_dims, randomness, kwargs, chunk_size):
    ends = list(accumulate([chunk_size] * (size // chunk_size) + ([size % chunk_size] if size % chunk_size else [])))
    states = _C._rng_states() if randomness == "same" else None
    runs = []
    for start, end in zip([0, *ends], ends, strict=False):
        if states is not None:
            _C._set_rng_states(*states)
        part = [a if d is None else a.narrow(d, start, end - start) for a, d in zip(flat, dims, strict=True)]
        runs.append(tree_flatten(_run(func, end - start, dims, part, spec, out_dims, randomness, kwargs)))
    spec_out = runs[0][1]
    to = _broadcast_to_and_flatten(out_dims, spec_out)
    columns = zip(*(leaves for leaves, _ in runs), strict=True)
    return tree_unflatten([c[0] if d is None else cat(c, d) for c, d in zip(columns, to, strict=True)], spec_out)
