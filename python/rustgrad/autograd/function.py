"""`Function`: an op with a backward written in Python.

`apply` runs `forward` without recording, then passes inputs, outputs and what `ctx` collected to
the extension module, which creates one graph node. The node owns the saved tensors (with their
versions) and calls `ctx` with the gradients of the outputs.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._absent import getattr_of
from .._base import Tensor, is_grad_enabled
from .._C import _forward_levels, _function_apply, _function_begin, _function_end
from . import _engine
from .grad_mode import no_grad

__all__ = [
    "BackwardCFunction",
    "BackwardHookFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "once_differentiable",
]


class FunctionCtx:
    """The context shared by `forward` and `backward`: tensors saved for backward, flags, and any attributes set on it.

    Attributes:
        needs_input_grad: a tuple of bools, whether each argument of `apply` needs a gradient.
    """

    _to_save = _dirty = _non_differentiable = ()
    _saved = None
    _in_jvp = False
    _materialize_non_diff_grads = True
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()
    saved_for_forward: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Saves inputs, outputs or intermediate tensors (None is allowed) for `ctx.saved_tensors` in backward.

        Raises:
            TypeError: an argument is neither a tensor nor None.
        """
        for i, t in enumerate(tensors):
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {i} is of type {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Saves tensors for `jvp`, in which `saved_tensors` are these."""
        self.saved_for_forward = tensors

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """The tensors given to `save_for_backward`; in `jvp`, those given to `save_for_forward`.

        Raises:
            RuntimeError: one was changed in place since, or the graph has been freed.
        """
        if self._in_jvp:
            return self.saved_for_forward
        return self._to_save if self._saved is None else self._saved.unpack()

    @property
    def _raw_saved_tensors(self):
        return () if self._saved is None else self._saved.raw()

    @property
    def saved_variables(self) -> tuple[Tensor, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def mark_dirty(self, *args: Any) -> None:
        """Declares inputs that were changed in place; they must be outputs too."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Declares outputs without gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: Any) -> None:
        """Sets whether undefined gradients of outputs reach backward as zeros (the default) or as None."""
        self.materialize_grads = value


def _run_backward(self, grads):
    """Called by the engine: gradients of the outputs in, one gradient or None for each input out."""
    wraps = self.__dict__.get("_wraps")
    if wraps is None:
        return self._backward_of(self._fn)(self, *grads)
    grads = tuple(map(_engine.holder.released, grads))
    if self._shown is not None:
        grads = tuple(map(self._shown, grads))
    results = self._backward_of(self._fn)(self, *grads)
    results = results if isinstance(results, (tuple, list)) else (results,)
    return (*map(_engine.holder.held, results, wraps), *results[len(wraps) :])


class _Ctx(FunctionCtx):
    """A `FunctionCtx` that the engine can call."""

    _run_backward = _run_backward

    @staticmethod
    def _backward_of(fn):
        own_vjp = fn.vjp is not Function.vjp
        if own_vjp and fn.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                "You should only implement one of them."
            )
        return fn.vjp if own_vjp else fn.backward


# PyTorch's name of the class of contexts.
BackwardCFunction = _Ctx


class FunctionMeta(type):
    """The class of custom functions: it makes the class of a function's contexts."""

    def __init__(cls, name: str, bases: tuple[type, ...], attrs: dict[str, Any]) -> None:
        super().__init__(name, bases, attrs)
        # Each function has its own context class, so that `type(ctx)` names it as PyTorch does.
        # The name of its node in a graph, if `attrs` has no other.
        if "_node_name" not in attrs:
            cls._node_name = f"{name}Backward"
        cls._context_class = type(f"{name}Backward", (_Ctx,), {"_fn": cls, "__module__": "torch.autograd.function"})


class Function(metaclass=FunctionMeta):
    """Base class of custom differentiable functions. Call them by `apply`.

    Example::

        class Exp(Function):
            @staticmethod
            def forward(ctx, x):
                result = x.exp()
                ctx.save_for_backward(result)
                return result

            @staticmethod
            def backward(ctx, grad):
                (result,) = ctx.saved_tensors
                return grad * result

        y = Exp.apply(x)

    `forward(*args)` with a separate `setup_context(ctx, inputs, output)` works too.
    """

    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Computes the outputs; tensors it makes are not recorded."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> Any:
        """With a `forward` that takes no ctx: saves what backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    # With `**kwargs: Any` type checkers accept any parameters in a subclass.
    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Computes a gradient (or None) for each input from the gradients of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any, **kwargs: Any) -> Any:
        """Another name of `backward`."""
        return Function.backward(ctx, *grad_outputs)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any, **kwargs: Any) -> Any:
        """Computes a tangent (or None) for each output from those of the inputs: forward mode."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The function on a batch: returns (output, out_dims).

        Args:
            info: `batch_size` and `randomness`.
            in_dims (tuple): for each argument the dimension of the batch, or None.
            args: the arguments of `forward`, of which some have the batch.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap static method or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Runs the function on tensors and other values and records it; returns what `forward` returns."""
        separate = cls.setup_context is not Function.setup_context
        if separate:
            args, kwargs = _bind_arguments(cls.forward, args, kwargs), {}
        if _C._vmap_depth() and _C._vmap_is_batched([a for a in args if isinstance(a, Tensor)]):
            from ..func import _custom

            return _custom.apply(cls, args, lambda saved: cls._apply(args, kwargs, separate, saved))
        return cls._apply(args, kwargs, separate)

    @classmethod
    def _apply(cls, args, kwargs, separate, saved=None):
        """What `apply` returns; the list `saved` gets what the function kept for backward."""
        ctx = cls._context_class()
        levels = _forward_levels()
        holder = _engine.holder
        if holder is not None:
            ctx._wraps = tuple(map(holder.wraps, args))
            ctx._shown = holder.shown(args)
        # Tensors without memory of their own say themselves whether they require a gradient.
        asked = holder is not None or _engine.sparse
        if asked:
            recorded = is_grad_enabled()
            needs = tuple(isinstance(a, Tensor) and a.requires_grad and recorded for a in args)
        # The function's own `jvp` says what forward mode computes.
        ctx.needs_input_grad, modes = _function_begin(args)
        if asked:
            ctx.needs_input_grad = needs
        try:
            if separate:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args, **kwargs)
        finally:
            _function_end(modes)
        if saved is not None:
            saved.extend((*ctx._to_save, *vars(ctx).values()))
        return _record(cls, ctx, args, output, separate, levels)


def _bind_arguments(forward, args, kwargs):
    """All arguments of a `forward` without ctx by position, defaults included, as `setup_context` expects them."""
    code = getattr(forward, "__code__", None)
    plain = code is not None and not (code.co_flags & 0x0C or code.co_kwonlyargcount)
    if plain and not kwargs and len(args) == code.co_argcount:
        return args
    import inspect

    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _record(cls, ctx, args, output, separate, levels):
    single = not isinstance(output, tuple)
    outputs = (output,) if single else output
    for dirty in ctx._dirty:
        if not _is_among(dirty, outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                "that are modified inplace must all be outputs of the Function."
            )
    if separate and any(
        _is_among(s, args) and _is_among(s, outputs)
        for s in ctx._to_save
        if s is not None and not _is_among(s, ctx._dirty)
    ):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
            "setup ctx inside the forward function itself."
        )
    recorded = True in ctx.needs_input_grad
    if recorded and _engine.sparse:
        _check_layouts(cls, args, outputs)
    raw = outputs
    outputs, ctx._saved = _function_apply(
        ctx if recorded else None, cls._node_name, args, outputs, ctx._dirty, ctx._non_differentiable, ctx._to_save
    )
    if recorded:
        # From here on the node owns them; keeping them here too would make a reference cycle.
        ctx._to_save = ()
    if levels:
        from ._function_forward import propagate

        propagate(cls, ctx, args, raw, outputs)
    if levels or ctx._dirty or ctx._non_differentiable or ctx.saved_for_forward:
        ctx._dirty = ctx._non_differentiable = ctx.saved_for_forward = ()
    return outputs[0] if single else outputs


def _check_layouts(cls, args, outputs):
    """NotImplementedError: a tensor whose gradient is wanted is sparse or nested, so that its place in the graph is its values'."""
    for what, tensors in (
        ("an argument", [a for a in args if getattr(a, "requires_grad", False)]),
        ("a result", outputs),
    ):
        for t in tensors:
            if _engine.is_sparse(t):
                raise NotImplementedError(
                    f"{cls.__name__}.apply: {what} with a gradient is of the layout {t.layout}; expected dense tensors. Hint: "
                    "take the values, and make the tensor of that layout inside."
                )


def _is_among(value, values):
    return any(value is v for v in values)


class InplaceFunction(Function):
    """A `Function` with a flag for in-place operation: `self.inplace`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorates a `backward` that is itself not differentiable: a second derivative through it raises."""

    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        with no_grad():
            results = fn(ctx, *grads)
        if not is_grad_enabled():
            return results
        if not any(isinstance(g, Tensor) and g.requires_grad for g in grads):
            return results
        single = not isinstance(results, tuple)
        text = "trying to differentiate twice a function that was marked with @once_differentiable"
        blocked = _C._delayed_error(text, (results,) if single else results)
        return blocked[0] if single else tuple(blocked)

    return wrapper


class BackwardHookFunction(Function):
    """The identity; its node carries the backward hooks of a module."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        ctx.mark_non_differentiable(*(a for a in args if not a.requires_grad))
        return args

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
