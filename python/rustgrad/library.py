"""`rustgrad.library`: ops that a program defines in Python, with a name, gradients and a shape function.

`custom_op` makes one; `Library`, `define`, `impl` and `register_fake` are the older way. They are called through the object
itself or as `rustgrad.ops.namespace.name`.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _C, _ops
from ._absent import getattr_of
from .autograd.function import Function
from .autograd.grad_mode import no_grad

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_kernel",
    "impl",
    "impl_abstract",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "triton_op",
    "wrap_triton",
]

_TYPES = {
    "Tensor": "Tensor",
    "int": "SymInt",
    "float": "float",
    "bool": "bool",
    "str": "str",
    "Number": "Scalar",
    "dtype": "ScalarType",
    "device": "Device",
}
_KEYS = {
    "CPU": "cpu",
    "CUDA": "gpu",
    "Meta": "meta",
    "CompositeExplicitAutograd": None,
    "CompositeImplicitAutograd": None,
}
_DEVICES = {"cuda": "gpu"}


def _schema_type(kind, where):
    import collections.abc

    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (list, collections.abc.Sequence):
        return f"{_schema_type(inner[0], where)}[]"
    if origin is not None and type(None) in inner and len(inner) == 2:
        return f"{_schema_type(next(k for k in inner if k is not type(None)), where)}?"
    if kind in (int | float, int | float | bool, typing.Union[int, float, bool], typing.Union[int, float]):  # noqa: UP007
        return "Scalar"
    name = getattr(kind, "__name__", None)
    if name not in _TYPES:
        raise ValueError(
            f"infer_schema(func): {where} has unsupported type {kind}. The valid types are: Tensor, int, float, bool, str, "
            "dtype, device, numbers, and lists or Optional of these."
        )
    return _TYPES[name]


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function with annotations: `(Tensor x, SymInt n=2) -> Tensor`.

    Args:
        mutates_args (iterable of str): the parameters that it writes to; "unknown" for all tensors.

    Raises:
        ValueError: a parameter has no annotation, or one that no schema has.
    """
    notes = inspect.get_annotations(prototype_function, eval_str=True)
    parts, starred = [], False
    for i, (name, parameter) in enumerate(inspect.signature(prototype_function).parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if name not in notes:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _schema_type(notes[name], f"Parameter {name}")
        if kind.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={_literal(parameter.default)}"
        parts.append(f"{kind} {name}{default}")
    returned = notes.get("return")
    if returned is None:
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = "(" + ", ".join(_schema_type(k, "Return") for k in typing.get_args(returned)) + ")"
    else:
        result = _schema_type(returned, "Return")
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _literal(value):
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).rpartition(".")[2] if isinstance(value, _C.dtype) else str(value)


def _split(name):
    space, colons, name = name.partition("::")
    if not colons or not name.split(".")[0].isidentifier():
        raise ValueError(f"library: got the name {space!r}; expected 'namespace::name'")
    return space, name.split(".")[0]


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
        self._signature = None if fn is None else inspect.signature(fn)
        early = _undefined.pop((namespace, name), None)
        if early is not None:
            self._kernels.update(early._kernels)
            self._fake, self._backward, self._setup = early._fake, early._backward, early._setup
        if schema is not None:
            _ops.forget(namespace, name)
            _ops.registered.setdefault(namespace, {})[name] = self

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._namespace}::{self._name})>"

    def register_kernel(self, device_types: Any, fn: Any = None, /) -> Any:
        """The function for tensors on a device ("cpu", "gpu", "cuda" for "gpu"); None for all. Also a decorator."""

        def decorate(kernel):
            for device in [device_types] if device_types is None or isinstance(device_types, str) else device_types:
                self._kernels[_DEVICES.get(device, device)] = kernel
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
        self._backward, self._setup = backward, setup_context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        tensors = [x for x in _flat((args, kwargs)) if isinstance(x, _C.Tensor)]
        if self._autograd is not None:
            return self._autograd(*args, **kwargs)
        if not any(t.requires_grad for t in tensors) or not _C.is_grad_enabled():
            return self._run(args, kwargs, tensors)
        if self._backward is None:
            if self._init_fn is None:
                return self._run(args, kwargs, tensors)
            return _refuse_gradient(self, self._run(args, kwargs, tensors), tensors)
        if self._signature is not None and kwargs:
            bound = self._signature.bind(*args, **kwargs)
            args, kwargs = bound.args, bound.kwargs
        return _function_of(self, kwargs).apply(*args)

    def _run(self, args, kwargs, tensors):
        device = tensors[0].device.type if tensors else None
        if device == "meta":
            if self._fake is None:
                raise NotImplementedError(
                    f"{self._namespace}::{self._name}: no shape function for meta tensors. Hint: add one with register_fake."
                )
            return self._fake(*args, **kwargs)
        kernel = self._kernels.get(device) or self._kernels.get(None)
        if kernel is None:
            raise NotImplementedError(
                f"Could not run '{self._namespace}::{self._name}' with arguments on {device!r}; it has kernels for "
                f"{sorted(str(k) for k in self._kernels)}"
            )
        if self._init_fn is None:
            return kernel(*args, **kwargs)
        with no_grad():
            return kernel(*args, **kwargs)


def _flat(tree):
    from .utils import _pytree

    return _pytree.tree_leaves(tree)


def _function_of(op, kwargs):
    def forward(*args):
        return op._run(args, kwargs, [x for x in _flat(args) if isinstance(x, _C.Tensor)])

    def setup_context(ctx, inputs, output):
        if op._setup is not None:
            if kwargs:
                op._setup(ctx=ctx, inputs=inputs, keyword_only_inputs=kwargs, output=output)
            else:
                op._setup(ctx=ctx, inputs=inputs, output=output)

    def backward(ctx, *grads):
        return op._backward(ctx, *grads)

    members = {
        "forward": staticmethod(forward),
        "setup_context": staticmethod(setup_context),
        "backward": staticmethod(backward),
    }
    return type(op._name, (Function,), members)


def _refuse_gradient(op, result, tensors):
    """A result whose backward says that the op has no gradient, as PyTorch's does."""

    class NoGradient(Function):
        @staticmethod
        def forward(ctx, value, *inputs):
            return value.view_as(value)

        @staticmethod
        def backward(ctx, *grads):
            raise RuntimeError(
                f"Trying to backward through {op._namespace}.{op._name}.default but no autograd formula was registered. If "
                "you need autograd, please use register_autograd."
            )

    def attach(value):
        floating = isinstance(value, _C.Tensor) and (value.is_floating_point() or value.is_complex())
        return NoGradient.apply(value, *tensors) if floating else value

    return type(result)(attach(v) for v in result) if isinstance(result, (tuple, list)) else attach(result)


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: str | Sequence[str] | None = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Makes an op of a function; also a decorator.

    Args:
        name (str): "namespace::name".
        mutates_args (iterable of str): the parameters that it writes to.
        device_types (str or sequence): the devices that the function is for, by default all.
        schema (str): by default from the annotations.

    Returns:
        A `CustomOpDef`: `register_kernel`, `register_fake` and `register_autograd` complete it.

    Raises:
        ValueError: a bad name, or annotations from which no schema can be made.

    Example::

        @rustgrad.library.custom_op("mylib::double", mutates_args=())
        def double(x: Tensor) -> Tensor:
            return x * 2
    """

    def decorate(function):
        space, op = _split(name)
        shape = infer_schema(function, mutates_args=mutates_args) if schema is None else schema
        made = CustomOpDef(space, op, shape, function)
        if device_types is not None:
            del made._kernels[None]
            made.register_kernel(device_types, function)
        return made

    return decorate if fn is None else decorate(fn)


# What was registered for ops before anyone defined them.
_undefined: dict[tuple[str, str], CustomOpDef] = {}


def _find(op, early=False):
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (_ops.OpOverload, _ops.OpOverloadPacket)):
        packet = op.overloadpacket if isinstance(op, _ops.OpOverload) else op
        op = f"{packet._namespace}::{packet.__name__}"
    space, name = _split(op)
    found = _ops.registered.get(space, {}).get(name) or _undefined.get((space, name))
    if found is None and early:
        found = _undefined[space, name] = CustomOpDef(space, name, None, None)
    if found is None:
        raise RuntimeError(f"operator {op} does not exist. Hint: define it first, with library.define or custom_op.")
    return found


class Library:
    """A namespace of ops.

    Args:
        ns (str): its name.
        kind (str): "DEF" to define ops, "FRAGMENT" to add to a namespace, "IMPL" to give kernels to ops.
        dispatch_key (str): the default of `impl`.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError("Unsupported kind: ", kind)
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an op without kernels by its schema, `name(Tensor x) -> Tensor`; returns its name."""
        name = schema.partition("(")[0].strip().split(".")[0]
        CustomOpDef(self.ns, name, schema[len(name) :], None)
        self._defined.append(name)
        return name

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False, allow_override: bool = False) -> None:  # fmt: skip
        """Gives an op its kernel for a dispatch key: "CPU", "CUDA" (the GPU), "Meta", "Autograd", "Composite...".

        Kernels for autocast are ignored: the op then runs in the types that it is given.
        """
        op = _find(op_name if not isinstance(op_name, str) or "::" in op_name else f"{self.ns}::{op_name}", early=True)
        _implement(op, fn, dispatch_key or self.dispatch_key or "CompositeImplicitAutograd")

    def _register_fake(self, op_name: str, fn: Callable[..., Any], _stacklevel: int = 1, **options: Any) -> None:
        _find(f"{self.ns}::{op_name}").register_fake(fn)

    def _destroy(self) -> None:
        for name in self._defined:
            _ops.forget(self.ns, name)


def _implement(op, fn, key):
    if key.startswith("Autograd"):
        op._autograd = fn
        return
    if key.startswith("Autocast"):
        return
    if key not in _KEYS:
        raise NotImplementedError(f"library.impl: dispatch key {key!r}; expected one of {[*_KEYS, 'Autograd']}")
    if key == "Meta":
        op.register_fake(fn)
    else:
        op._kernels[_KEYS[key]] = fn


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Adds an op without kernels: `define("mylib::sin", "(Tensor x) -> Tensor")`."""
    space, name = _split(qualname)
    CustomOpDef(space, name, schema, None)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Gives an op its kernel for devices ("cpu", "cuda", "default") or a dispatch key; also a decorator."""
    op = _find(qualname)

    def decorate(function):
        for kind in [types] if isinstance(types, str) else types:
            if kind in ("default", "cpu", "cuda", "gpu"):
                op._kernels[None if kind == "default" else _DEVICES.get(kind, kind)] = function
            else:
                _implement(op, function, kind)
        return function

    return decorate if func is None else decorate(func)


def register_kernel(op: Any, device_types: Any, func: Any = None, /, *, lib: Library | None = None) -> Any:
    """`CustomOpDef.register_kernel` by the op's name."""
    return _find(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Any = None, /, *, lib: Library | None = None, _stacklevel: int = 1, allow_override: bool = False) -> Any:  # fmt: skip
    """`CustomOpDef.register_fake` by the op's name; also a decorator."""
    found = _find(op, early=True)
    return found.register_fake if func is None else found.register_fake(func)


def impl_abstract(qualname: str, func: Any = None, *, lib: Library | None = None, _stacklevel: int = 1) -> Any:
    """The old name of `register_fake`."""
    return register_fake(qualname, func)


def register_autograd(
    op: Any,
    backward: Callable[..., Any],
    /,
    *,
    setup_context: Callable[..., Any] | None = None,
    lib: Library | None = None,
) -> None:
    """`CustomOpDef.register_autograd` by the op's name."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def get_kernel(op: Any, dispatch_key: str) -> Any:
    """The kernel of an op for a dispatch key. RuntimeError if it has none."""
    found = _find(op)
    device = _KEYS.get(dispatch_key)
    kernel = found._fake if dispatch_key == "Meta" else found._kernels.get(device)
    if kernel is None:
        raise RuntimeError(f"library.get_kernel: {op} has no kernel for {dispatch_key}")
    return kernel


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """NotImplementedError: marks a kernel that is not there."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def triton_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    schema: str | None = None,
) -> Any:
    """`custom_op` for a function that launches Triton kernels, which `wrap_triton` refuses when the function gets there."""
    return custom_op(name, fn, mutates_args=mutates_args, schema=schema)


def wrap_triton(triton_kernel: Any, /) -> Any:
    """NotImplementedError: there is no Triton here."""
    raise NotImplementedError("library.wrap_triton: Triton kernels do not run here.")


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
