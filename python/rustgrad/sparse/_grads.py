"""The place of a sparse tensor in the backward graph: that of its values. Its gradient has its pattern."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from ..autograd import _engine


class Gradients:
    """A part of the body of sparse tensors."""

    _value: Tensor

    # --- properties ------------------------------------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for the values."""
        return self._value.requires_grad

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        self._value.requires_grad = on

    is_leaf = property(lambda self: self._value.is_leaf, doc="Whether no recorded op made the values.")
    grad_fn = property(lambda self: self._value.grad_fn, doc="The node that made the values; None for leaves.")
    output_nr = property(lambda self: self._value.output_nr, doc="Which output of its grad_fn the values are.")
    retains_grad = property(lambda self: self._value.retains_grad, doc="Whether a non-leaf keeps its gradient.")

    @property
    def _grad_fn(self) -> Any:
        return self._value._grad_fn

    @_grad_fn.setter
    def _grad_fn(self, node: Any) -> None:
        self._value._grad_fn = node

    @property
    def grad_dtype(self) -> Any:
        """The dtype that gradients are cast to."""
        return self._value.grad_dtype

    @grad_dtype.setter
    def grad_dtype(self, dtype: Any) -> None:
        self._value.grad_dtype = dtype

    @property
    def grad(self) -> Any:
        """The accumulated gradient, a sparse tensor with the same indices, or None."""
        return self._wrapped_grad(self._value.grad)

    @grad.setter
    def grad(self, grad: Any) -> None:
        values = None if grad is None else self._aligned(grad, "grad")
        self._value.grad = values
        # A gradient with the same indices is given back as it is.
        self._held_grad = grad if getattr(grad, "_value", None) is values else None

    @property
    def _grad(self) -> Any:
        return self._wrapped_grad(self._value._grad)

    @_grad.setter
    def _grad(self, grad: Any) -> None:
        self.grad = grad

    def _wrapped_grad(self, grad):
        if grad is None:
            return None
        held = self.__dict__.get("_held_grad")
        if held is None or held._value is not grad:
            held = self._held_grad = self._in_pattern(grad)
        return held

    def _in_pattern(self, values):
        """Values, or a gradient of them, as a tensor with the pattern of this one."""
        from ._tensor import is_sparse, with_value

        return values if values is None or is_sparse(values) else with_value(self, values)

    def _aligned(self, other, what):
        """The values of another tensor of the shape, dense or sparse, at the indices of this one."""
        from ._convert import sparse_mask
        from ._tensor import is_sparse

        if not isinstance(other, Tensor):
            raise TypeError(f"{what}: expected a Tensor or None, got {type(other).__name__}")
        if other.shape != self.shape:
            raise RuntimeError(f"{what}: expected a tensor of shape {tuple(self.shape)}, got {tuple(other.shape)}")
        if is_sparse(other) and other.layout is self.layout:
            if all(a is b for a, b in zip(self._pattern(), other._pattern(), strict=True)):
                return other._value
        return sparse_mask(other, self)._value

    def _as_gradient(self, values):
        """The gradient of this tensor that `grad` returns."""
        return self._in_pattern(values)

    def _started(self, grad):
        """The gradient that backward begins with here."""
        return self._aligned(grad, "grad")

    @property
    def data(self) -> Any:
        """The same parts without history; assigning gives the tensor other parts."""
        return self.detach()

    @data.setter
    def data(self, other: Any) -> None:
        from ._printing import NAMES

        if not isinstance(other, Tensor):
            raise TypeError("Variable data has to be a tensor")
        if other.layout is not self.layout:
            raise RuntimeError(
                f"data: expected a tensor of layout {NAMES[self.layout]}, got {NAMES[other.layout]}; the layout of a tensor "
                "does not change"
            )
        asked, other = self.requires_grad, other.detach()
        self._set(other)
        if asked:
            self._value = other._value.detach().requires_grad_()

    # --- methods ---------------------------------------------------------------------------------------------
    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Sets whether gradients are computed for a leaf."""
        self._value.requires_grad_(requires_grad)
        return self

    def retain_grad(self) -> None:
        """Keeps the gradient of a non-leaf in `.grad`."""
        self._value.retain_grad()

    def detach(self) -> Any:
        """The same indices and the memory of the values without history."""
        from ._tensor import with_value

        return with_value(self, self._value.detach())

    def detach_(self) -> Any:
        """Detaches the tensor from its history, in place."""
        self._value = self._value.detach()
        return self

    def is_inference(self) -> bool:
        """Whether the values were created in inference mode."""
        return self._value.is_inference()

    def register_hook(self, hook: Any) -> Any:
        """Calls `hook(grad)` with the sparse gradient; it may return another. Returns a removable handle."""

        def on_values(grad: Tensor) -> Any:
            made = hook(self._in_pattern(grad))
            return None if made is None else self._aligned(made, "register_hook")

        return self._value.register_hook(on_values)

    def register_post_accumulate_grad_hook(self, hook: Any) -> Any:
        """Calls `hook(tensor)` after the gradient of a leaf was accumulated."""
        return self._value.register_post_accumulate_grad_hook(lambda values: hook(self))

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None) -> None:
        """Adds the gradient with respect to each leaf to the leaf's `.grad`; `gradient` is sparse or dense, of this shape."""
        from ..autograd import backward

        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    _backward_hooks = property(
        lambda self: _C._get_hooks(self._value, False),
        lambda self, hooks: _C._set_hooks(self._value, hooks, False),
        doc="The hooks on the gradient of the values.",
    )
    _post_accumulate_grad_hooks = property(
        lambda self: _C._get_hooks(self._value, True),
        lambda self, hooks: _C._set_hooks(self._value, hooks, True),
        doc="The post-accumulate-grad hooks of the values.",
    )


class Opaque(Gradients):
    """A class of tensors that are gradients of dense ones too, with elements that the engine cannot see."""

    def _all_elements(self):
        """The gradient as a dense tensor."""
        return self.to_dense()

    def _as_result(self):
        """The gradient as a leaf gets it."""
        return self


_engine.sparse = (Gradients,)
_engine.Opaque.own = (Opaque,)
_engine.Opaque.declare()


def gradient_as_values(output, grad):
    """The gradient that the engine takes for an output."""
    if isinstance(output, Gradients) and grad is not None:
        return output._started(grad)
    return grad._all_elements() if isinstance(grad, Opaque) else grad


def shown(input, grad):
    """A gradient as the caller gets it: that of a sparse input has its pattern."""
    if isinstance(input, Gradients):
        return input._as_gradient(grad)
    return grad._as_result() if isinstance(grad, Opaque) else grad


def _dense(t):
    """A result as `gradcheck` takes it: of a nested tensor the values."""
    if not isinstance(t, Gradients):
        return t
    return t._value if t.is_nested else t.to_dense()


def of_values(func, inputs, masked):
    """For `gradcheck`: a function of the values of the sparse or nested inputs, whose results are dense, and these values.

    Raises:
        ValueError: `masked` is not True: the gradient of a sparse tensor has no elements beside its indices.
    """
    if not masked and not all(x.is_nested for x in inputs if isinstance(x, Gradients)):
        raise ValueError(
            "gradcheck: an input is sparse, and gradients of sparse tensors are masked to their indices; expected masked=True"
        )
    patterns = [x if isinstance(x, Gradients) else None for x in inputs]

    def dense_func(*args: Any) -> Any:
        given = (a if p is None else p._in_pattern(a) for p, a in zip(patterns, args, strict=True))
        made = func(*given)
        several = isinstance(made, (tuple, list))
        dense = tuple(map(_dense, made if several else [made]))
        return dense if several else dense[0]

    def values(x: Any) -> Any:
        return x._value.detach().clone().requires_grad_(x.requires_grad)

    return dense_func, tuple(x if p is None else values(p) for x, p in zip(inputs, patterns, strict=True))
