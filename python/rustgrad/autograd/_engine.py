"""`backward` and `grad`: check and complete arguments, then call the engine.

`Tensor.backward()` calls the engine directly; these functions handle several outputs, and gradients
that are returned instead of accumulated.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _C
from .._base import Tensor, ones, ones_like, zeros_like
from ..overrides import handle_torch_function, has_torch_function

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._typing import GradientEdge

__all__ = ["backward", "grad"]


def _is_edge(obj):
    return not isinstance(obj, Tensor) and hasattr(obj, "output_nr") and hasattr(obj, "node")


def as_tuple(values: Any) -> tuple[Any, ...]:
    """A tensor (or edge, or an object with `__torch_function__`) as a tuple of one; another sequence as a tuple."""
    if isinstance(values, Tensor) or _is_edge(values) or hasattr(type(values), "__torch_function__"):
        return (values,)
    return tuple(values)


def _described(out):
    """An object with the shape and dtype of an output: the tensor itself, or the metadata in the node of an edge."""
    return out.node._input_metadata[out.output_nr] if _is_edge(out) else out


def _check_grad(i, out, grad, batched):
    first = grad[0] if batched else grad
    out = _described(out)
    if isinstance(out, sparse) and out.is_nested:
        return grad  # whose structure is compared where its values are taken
    if first.shape != out.shape:
        if batched:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output[{i}] has a shape of {first.shape[1:]} and output[{i}] "
                f"has a shape of {out.shape}. If you only want some tensors in `grad_output` to be considered "
                "batched, consider using vmap."
            )
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{i}] has a shape of {grad.shape} and output[{i}] has a shape of "
            f"{out.shape}."
        )
    if out.dtype.is_complex != grad.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
            f"dtype: grad_output[{i}] has a dtype of {grad.dtype} and output[{i}] has a dtype of {out.dtype}."
        )
    return grad


# Whether ops on these tensors go to Python below autograd, once dispatch is loaded (`_dispatch`).
dispatched: Any = None
# The mode of `make_fx` that this thread is in, once there has been one: `traced()`; it runs passes that it can see.
traced: Any = None
# The module that hands gradients with memory to tensors that wrap others, once dispatch is loaded.
holder: Any = None
# The class of sparse tensors, which their module sets when it is loaded: not every program needs it.
sparse: tuple[type[Any], ...] = ()


class _OfClasses(type):
    def __instancecheck__(cls, t):
        return isinstance(t, cls.own) or cls.wraps(t)

    def __subclasscheck__(cls, kind):
        return issubclass(kind, cls.own)


class Opaque(metaclass=_OfClasses):
    """Tensors whose elements the core does not see: those of the classes in `own`, and those for which `wraps` says so."""

    own: tuple[type[Any], ...] = ()
    wraps: Any = staticmethod(lambda t: False)

    @classmethod
    def declare(cls) -> None:
        """Tells the core of them."""
        _C._set_opaque_class(cls)


def is_sparse(tensor):
    """Whether it is a tensor of a sparse layout."""
    return isinstance(tensor, sparse)


def as_values(tensor):
    """What the engine takes for a tensor: of a sparse one its values, of a masked one those of its data."""
    while is_sparse(tensor):
        tensor = tensor._value
    return tensor


def _run(outputs, grads, keep, create, inputs, allow_unused, accumulate):
    """The engine's pass. It knows dense tensors: a sparse one stands for its values, and its gradient has its indices."""
    if traced is not None and (mode := traced()) is not None:
        found = mode.run_backward(outputs, grads, create, inputs, allow_unused, accumulate)
        if found is not NotImplemented:
            return found
    if not sparse and holder is not None:
        grads = tuple(map(holder.started, outputs, grads))
    if not sparse:
        return _C._run_backward(outputs, grads, keep, create, inputs, allow_unused, accumulate)
    from ..sparse._grads import gradient_as_values, shown

    if holder is not None:
        grads = tuple(map(holder.started, outputs, grads))
    grads = tuple(gradient_as_values(out, g) for out, g in zip(outputs, grads, strict=True))
    dense = (tuple(map(as_values, tensors)) for tensors in (outputs, inputs))
    found = _C._run_backward(next(dense), grads, keep, create, next(dense), allow_unused, accumulate)
    return found if accumulate else tuple(map(shown, inputs, found))


def _implicit_grad(out):
    if not _is_edge(out) and not out.requires_grad:
        return None
    like = _described(out)
    if like.shape.numel() != 1:
        raise RuntimeError("grad can be implicitly created only for scalar outputs")
    if not like.dtype.is_floating_point:
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {like.dtype}")
    return ones(like.shape, dtype=like.dtype, device=like.device) if _is_edge(out) else ones_like(out)


def make_grads(outputs: Sequence[Any], grads: Any, batched: bool = False) -> tuple[Any, ...]:
    """The gradient of each output: the given one, checked, or 1 for a scalar."""
    if grads is None:
        grads = (None,) * len(outputs)
    elif isinstance(grads, Tensor):
        grads = (grads,)
    result = []
    for i, (out, g) in enumerate(zip(outputs, grads, strict=False)):
        if not isinstance(out, Tensor) and not _is_edge(out):
            raise TypeError(f"element {i} of tensors is not a Tensor but {type(out).__name__}")
        if isinstance(g, Tensor):
            result.append(_check_grad(i, out, g, batched))
        elif g is None:
            result.append(_implicit_grad(out))
        else:
            raise TypeError(f"gradients can be either Tensors or None, but got {type(g).__name__}")
    if len(result) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(result)} gradients")
    return tuple(result)


def _check_inputs_mapping(inputs, where):
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `{where}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )


def backward(
    tensors: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Tensor | Sequence[Tensor | None] | None = None,
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | dict[Any, Tensor] | None = None,
) -> None:
    """Adds gradients of `tensors` to the `.grad` of the leaves.

    Args:
        tensors (Tensor or sequence): the tensors to differentiate.
        grad_tensors (Tensor or sequence, optional): the gradient of each, of its shape; 1 for scalars by default.
        retain_graph (bool, optional): keep the saved tensors for another pass; by default as `create_graph`.
        create_graph (bool): record the computation of the gradients.
        inputs (Tensor, sequence or dict, optional): accumulate only into these.

    Raises:
        RuntimeError: a gradient is missing or of the wrong shape, the graph was freed, or nothing requires grad.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    _check_inputs_mapping(inputs, "backward")
    if inputs is None:
        chosen = ()
    else:
        chosen = tuple(inputs.values()) if isinstance(inputs, dict) else as_tuple(inputs)
        if not chosen:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    outputs = as_tuple(tensors)
    grads = make_grads(outputs, grad_tensors)
    if retain_graph is None:
        retain_graph = create_graph
    _run(outputs, grads, retain_graph, create_graph, chosen, True, True)


def grad(
    outputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Sequence[Tensor | GradientEdge] | dict[Any, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    Args:
        outputs, inputs (Tensor or sequence; inputs also a dict).
        grad_outputs (Tensor or sequence, optional): the gradient of each output; 1 for scalars by default.
        retain_graph, create_graph (bool): as in `backward`.
        allow_unused (bool, optional): return None for an input that the outputs do not depend on.
        is_grads_batched (bool): dimension 0 of each `grad_outputs` is a batch; the results get it too.
        materialize_grads (bool): zeros instead of None; implies `allow_unused`.

    Returns:
        A tuple of tensors (or None) in the order of `inputs`, or a dict with its keys.

    Raises:
        RuntimeError: no inputs, an input is unused and that is not allowed, or as in `backward`.
        ValueError: `materialize_grads` with `allow_unused=False`.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if allow_unused is None:
        allow_unused = materialize_grads
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    _check_inputs_mapping(inputs, "grad")
    keys = list(inputs) if isinstance(inputs, dict) else None
    chosen = tuple(inputs.values()) if keys is not None else as_tuple(inputs)
    if not chosen:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    outputs = as_tuple(outputs)
    relevant = [t for t in (*outputs, *chosen) if not is_sparse(t)]  # those have no rule of `grad`: `_run` knows them
    if has_torch_function(relevant):
        return handle_torch_function(
            grad,
            relevant,
            outputs,
            inputs if keys is not None else chosen,
            grad_outputs=grad_outputs,
            retain_graph=retain_graph,
            create_graph=create_graph,
            only_inputs=only_inputs,
            allow_unused=allow_unused,
            is_grads_batched=is_grads_batched,
            materialize_grads=materialize_grads,
        )
    flags = (retain_graph, create_graph, allow_unused, is_grads_batched, materialize_grads)
    return gradients(outputs, chosen, keys, grad_outputs, *flags)


def gradients(
    outputs: tuple[Any, ...],
    chosen: tuple[Any, ...],
    keys: list[Any] | None,
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    is_grads_batched: bool,
    materialize_grads: bool,
) -> Any:
    """`grad` of arguments that were looked at; `keys` of a dict of inputs."""
    grads = make_grads(outputs, grad_outputs, is_grads_batched)
    if retain_graph is None:
        retain_graph = create_graph
    if is_grads_batched:
        result = _batched(outputs, grads, retain_graph, create_graph, chosen, allow_unused)
    else:
        result = _run(outputs, grads, retain_graph, create_graph, chosen, allow_unused, False)
    if materialize_grads:
        if any(r is None and _is_edge(i) for r, i in zip(result, chosen, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        result = tuple(
            zeros_like(i, requires_grad=create_graph) if r is None else r for r, i in zip(result, chosen, strict=True)
        )
    return result if keys is None else dict(zip(keys, result, strict=True))


def _batched(outputs, grads, retain_graph, create_graph, inputs, allow_unused):
    given = [g for g in grads if g is not None]
    for g in given:
        if g.dim() == 0:
            raise ValueError(
                "grad: vmap(vjp, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0 so expected in_dim to satisfy 0 <= in_dim < 0. With is_grads_batched=True dimension 0 "
                "of every gradient is the batch, so each output needs one."
            )
    size, *others = dict.fromkeys(g.size(0) for g in given)
    if others:
        raise ValueError(
            "grad: vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{[size, *others]} for the mapped dimension"
        )
    defined = []

    def one_row(row):
        row = iter(row)
        grads_of_row = tuple(None if g is None else next(row) for g in grads)
        result = _run(outputs, grads_of_row, retain_graph, create_graph, inputs, allow_unused, False)
        defined.extend(r is not None for r in result)
        return [r for r in result if r is not None]

    found = iter(_C._vmap(one_row, given, [0] * len(given), size, "same"))
    rows = ((next(found) if is_defined else None) for is_defined in defined)
    return tuple(r if r is None else r[0] if r[1] else r[0].expand(size, *r[0].shape) for r in rows)
