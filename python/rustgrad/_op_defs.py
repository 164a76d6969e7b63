"""`CustomOpDef`: an op that a program defines in Python, with its kernels, gradient, shapes and rule for batches."""

from __future__ import annotations

import contextlib
import enum
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from . import _C, _ops
from ._C import dtype
from .autograd import _engine
from .autograd.function import Function
from .autograd.grad_mode import no_grad

__all__ = ["CustomOpDef", "Tag"]

DEVICES = {"cuda": "gpu"}
# What was registered for ops before anyone defined them.
undefined: dict[tuple[str, str], CustomOpDef] = {}
Tag = enum.Enum(
    "Tag",
    "core cudagraph_unsafe data_dependent_output dynamic_output_shape flexible_layout generated inplace inplace_view "
    "maybe_aliasing_or_mutating needs_contiguous_strides needs_exact_strides needs_fixed_stride_order "
    "nondeterministic_bitwise nondeterministic_seeded out out_variant pointwise pt2_compliant_tag reduction view_copy",
    module=__name__,
    start=0,
)
Tag.__doc__ = """What PyTorch's compiler is told about an op. Accepted and kept, without effect here."""
# A tensor, or a list of them, that the op writes to: `Tensor(a!) x`, `Tensor(a1!)[] xs`.
_WRITTEN = re.compile(r"\bTensor\([^()]*!\)[^\s,]* (\w+)")


def written_by(schema: str) -> tuple[str, ...]:
    """The parameters that an op with this schema writes to."""
    return tuple(_WRITTEN.findall(schema.partition("->")[0]))


def _has_keyword_tensors(schema):
    return "Tensor" in schema.partition("->")[0].partition("*")[2]


class CustomOpDef:
    """An op defined in Python. Made by `custom_op`; call it like its function."""

    def __init__(self, namespace: str, name: str, schema: str | None, fn: Callable[..., Any] | None) -> None:
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self.__name__, self.__doc__ = name, getattr(fn, "__doc__", None)
        self._kernels: dict[str | None, Callable[..., Any]] = {} if fn is None else {None: fn}
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._setup: Callable[..., Any] | None = None
        self._autograd: Callable[..., Any] | None = None
        self._vmap: Callable[..., Any] | None = None
        # What runs where autocast is on for a kind of device: the op with its arguments cast, or a kernel.
        self._autocasts: dict[str, dtype | Callable[..., Any]] = {}
        # How a class or mode answers this op: asked in the place of its `__torch_dispatch__`.
        self._dispatch_rules: dict[type, Callable[..., Any]] = {}
        self._disabled: set[str | None] = set()
        self._is_composite = False
        self._signature = None if fn is None else inspect.signature(fn)
        self._writes = () if fn is None or schema is None else written_by(schema)
        early = undefined.pop((namespace, name), None)
        if early is not None:
            self._kernels.update(early._kernels)
            self._fake, self._backward, self._setup = early._fake, early._backward, early._setup
            self._autocasts, self._dispatch_rules = early._autocasts, early._dispatch_rules
        if schema is not None:
            _ops.forget(namespace, name)
            _ops.registered.setdefault(namespace, {})[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._namespace}::{self._name})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """The function for tensors on a device ("cpu", "gpu", "cuda" for "gpu"); None or "default" for all. Also a decorator."""

        named = re.findall(r"\w+", (self._schema or "Tensor").partition("->")[0])
        if device_types not in (None, "default") and "Tensor" not in named and "Device" not in named:
            raise ValueError(
                "Functions without tensor inputs are required to have a `device: torch.device` argument when they have a kernel "
                "for a device"
            )

        def decorate(kernel):
            for device in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._kernels[None if device == "default" else DEVICES.get(device, device)] = kernel
            return kernel

        return decorate if fn is None else decorate(fn)

    def register_fake(self, fn: Any, /) -> Any:
        """The function for `meta` tensors: it makes empty results of the right shapes. Also a decorator."""
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """The gradient.

        Args:
            backward (callable): `backward(ctx, *grads)`, with a gradient or None for each argument.
            setup_context (callable): `setup_context(ctx, inputs, output)` saves what backward needs.
        """
        if self._schema is not None and written_by(self._schema):
            raise RuntimeError(
                f"Cannot register autograd formula for non-functional operator {self} with schema {self._schema}. Please "
                "create a functional operator and register an autograd formula for that."
            )
        if self._schema is not None and _has_keyword_tensors(self._schema):
            raise NotImplementedError(
                "register_autograd with kwarg-only Tensor args. In the original definition of the op, please make your "
                f"tensors not kwarg-only. Got: {self._schema}"
            )
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func: Callable[..., Any] | None = None) -> Any:
        """The rule of `vmap`: `func(info, in_dims, *args, **kwargs)` returns the batched results and their dimensions.

        Also a decorator. Without one the calls that the op makes are batched.
        """

        def decorate(rule):
            self._vmap = rule
            return rule

        return decorate if func is None else decorate(func)

    def register_autocast(self, device_type: str, cast_inputs: dtype) -> None:
        """Where autocast is on for a kind of device, the op gets its tensors of that device cast, and runs without autocast.

        Args:
            device_type (str): the kind of device.
            cast_inputs (dtype): what floating point tensors, but those of double precision, are cast to.

        Raises:
            ValueError: there is no autocast for such devices.
        """
        from .amp import is_autocast_available

        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        if not is_autocast_available(device_type):
            raise ValueError(f"Device type '{device_type}' does not support autocast.")
        self._autocasts[DEVICES.get(device_type, device_type)] = cast_inputs

    def register_torch_dispatch(self, torch_dispatch_class: type, fn: Callable[..., Any] | None = None, /) -> Any:
        """How tensors of a class, or a mode, answer this op, in the place of their `__torch_dispatch__`. Also a decorator.

        Args:
            torch_dispatch_class (type): the class of the tensors or of the mode, not a base class.
            fn (callable): `fn(cls or mode, func, types, args, kwargs)`.

        Raises:
            RuntimeError: there is a rule for this class already.
        """

        def decorate(rule):
            if torch_dispatch_class in self._dispatch_rules:
                raise RuntimeError(
                    f"{torch_dispatch_class} already has a `__torch_dispatch__` rule registered for {self}"
                )
            self._dispatch_rules[torch_dispatch_class] = rule
            return rule

        return decorate if fn is None else decorate(fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type: str, enabled: bool = True) -> Iterator[None]:
        """A block in which the kernel for a device is not used, but the op's own function; or is used again."""
        device, before = DEVICES.get(device_type, device_type), set(self._disabled)
        self._disabled = before - {device} if enabled else before | {device}
        try:
            yield
        finally:
            self._disabled = before

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._autocasts and (cast := self._under_autocast(args, kwargs)) is not None:
            return cast(*args, **kwargs)
        if _engine.dispatched is not None and _engine.dispatched(_tensors((args, kwargs))):
            return getattr(getattr(_ops.ops, self._namespace), self._name).default(*args, **kwargs)
        return self._recorded(*args, **kwargs)

    def _under_autocast(self, args, kwargs):
        """What runs in the place of the op, if autocast is on for the device of a tensor."""
        from .amp.autocast_mode import _cast, autocast, is_autocast_enabled

        kinds = {t.device.type for t in _tensors((args, kwargs))}
        device = next((kind for kind in self._autocasts if kind in kinds and is_autocast_enabled(kind)), None)
        rule = None if device is None else self._autocasts[device]
        if not isinstance(rule, dtype):
            return rule

        def cast(*args, **kwargs):
            with autocast(device, enabled=False):
                return self(*_cast(args, device, rule), **_cast(kwargs, device, rule))

        return cast

    def _recorded(self, *args, **kwargs):
        """The call below dispatch, recorded by autograd."""
        if self._autograd is not None:
            return self._autograd(*args, **kwargs)
        tensors = _tensors((args, kwargs))
        wanted = any(t.requires_grad for t in tensors) and _C.is_grad_enabled()
        if not wanted and self._vmap is None:
            return self._run(args, kwargs, tensors)
        if self._backward is None and self._vmap is None:
            if self._init_fn is None:
                return self._run(args, kwargs, tensors)
            return _refuse_gradient(self, self._run(args, kwargs, tensors), tensors)
        if self._signature is not None and kwargs:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        return _function_of(self, kwargs).apply(*args)

    def _run(self, args, kwargs, tensors):
        if (mode := next((t.fake_mode for t in tensors if "fake_mode" in t.__dict__), None)) is not None:
            return self._faked(mode, args, kwargs)
        device = tensors[0].device.type if tensors else self._device_asked_for(args, kwargs)
        if device == "meta":
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._namespace}::{self._name}: no shape function for meta tensors. Hint: add one with register_fake."
                )
            return self._fake(*args, **kwargs)
        if device in self._disabled and self._init_fn is not None:
            kernel = self._init_fn
        else:
            kernel = self._kernels.get(device) or self._kernels.get(None)
        if kernel is None:
            if not tensors:
                raise RuntimeError(
                    f"{self._name} does not have a kernel registered for {device}. Please use register_kernel to do so."
                )
            raise NotImplementedError(
                f"Could not run '{self._namespace}::{self._name}' with arguments on {device!r}; it has kernels for "
                f"{sorted(str(k) for k in self._kernels)}"
            )
        if self._init_fn is None:
            return kernel(*args, **kwargs)
        with no_grad():
            result = kernel(*args, **kwargs)
        self._check_apart(kernel, result, tensors)
        self._count_writes(args, kwargs)
        return result

    def _faked(self, mode, args, kwargs):
        """What the function of shapes says of fake tensors."""
        function = self._fake or self._kernels.get("meta")
        if function is None and self._init_fn is None:
            from ._subclasses.fake_tensor import UnsupportedOperatorException

            raise UnsupportedOperatorException(getattr(getattr(_ops.ops, self._namespace), self._name).default)
        if function is None:
            if self._schema is not None and self._schema.endswith("-> ()"):
                return None  # it writes, and what it writes has its shape
            raise RuntimeError(
                f"There was no fake impl registered for {self}. This is necessary for torch.compile/export/fx tracing to work. "
                f"Please use `{self._name}.register_fake` to add an fake impl."
            )
        with mode:
            return function(*args, **kwargs)

    def _device_asked_for(self, args, kwargs):
        """The device of an op without tensors: its argument `device`."""
        if self._signature is None or "device" not in self._signature.parameters:
            return None
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        asked = bound.arguments["device"]
        kind = None if asked is None else _C.device(asked).type
        return DEVICES.get(kind, kind)

    def _check_apart(self, kernel, result, tensors):
        """Refuses results in memory of an argument or of each other: a graph would not know of it."""
        seen = {t.untyped_storage()._cdata for t in tensors}
        for t in _tensors(result):
            place = t.untyped_storage()._cdata
            if place in seen:
                raise RuntimeError(
                    f"{self._name} (with implementation in {kernel.__module__}): The output of this custom operator (1) "
                    "must not also be an input to this custom operator and (2) may not alias any inputs to this custom "
                    "operator or other returns. Please return a clone of it, `x.clone()`."
                )
            seen.add(place)

    def _count_writes(self, args, kwargs):
        """Raises the versions of what the kernel wrote to by means that the library does not see."""
        if not self._writes:
            return
        given = self._signature.bind(*args, **kwargs).arguments
        for t in _tensors([given[name] for name in self._writes if name in given]):
            _C._increment_version(t)


def _tensors(tree):
    from .utils import _pytree

    return [leaf for leaf in _pytree.tree_leaves(tree) if isinstance(leaf, _C.Tensor)]


def _function_of(op, kwargs):
    def forward(*args):
        return op._run(args, kwargs, _tensors(args))

    def setup_context(ctx, inputs, output):
        if op._setup is not None:
            if kwargs:
                op._setup(ctx=ctx, inputs=inputs, keyword_only_inputs=kwargs, output=output)
            else:
                op._setup(ctx=ctx, inputs=inputs, output=output)

    def backward(ctx, *grads):
        if op._backward is None:
            raise _no_gradient(op)
        return op._backward(ctx, *grads)

    def vmap(info, in_dims, *args):
        return op._vmap(info, in_dims, *args, **kwargs)

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
    }
    if op._vmap is not None:
        members["vmap"] = staticmethod(vmap)
    return type(op._name, (Function,), members)


def _no_gradient(op):
    return RuntimeError(
        f"Trying to backward through {op._namespace}.{op._name}.default but no autograd formula was registered. If you "
        "need autograd, please use register_autograd."
    )


def _refuse_gradient(op, result, tensors):
    """A result whose backward says that the op has no gradient, as PyTorch's does."""

    class NoGradient(Function):
        @staticmethod
        def forward(ctx, value, *inputs):
            return value.view_as(value)

        @staticmethod
        def backward(ctx, *grads):
            raise _no_gradient(op)

    def attach(value):
        floating = isinstance(value, _C.Tensor) and (value.is_floating_point() or value.is_complex())
        return NoGradient.apply(value, *tensors) if floating else value

    return type(result)(attach(v) for v in result) if isinstance(result, (tuple, list)) else attach(result)
