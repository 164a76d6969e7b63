"""`rustgrad.library`: ops that a program defines in Python, with a name, gradients and a shape function.

`custom_op` makes one; `Library`, `define`, `impl` and `register_fake` are the older way. They are called through the object
itself or as `rustgrad.ops.namespace.name`.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from . import _C, _ops
from ._absent import getattr_of
from ._op_defs import DEVICES, CustomOpDef, _has_keyword_tensors, undefined, written_by

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
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
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
# Keys of devices of which there are no tensors, so that their kernels never run.
_ELSEWHERE = frozenset("fpga hip hpu ipu lazy maia metal mps mtia privateuse1 ve vulkan xla xpu".split())


def _schema_type(kind, where):
    import collections.abc

    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (list, collections.abc.Sequence):
        return f"{_schema_type(inner[0], where)}[]"
    if origin is not None and type(None) in inner and len(inner) == 2:
        return f"{_schema_type(next(k for k in inner if k is not type(None)), where)}?"
    if (
        origin in (typing.Union, types.UnionType)
        and type(None) in inner
        and set(inner) <= {int, float, bool, type(None)}
    ):
        return "Scalar?"
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
        ValueError: a parameter has no annotation, or one that no schema has; `mutates_args` names something else than a
            parameter that is a tensor or a list of them.
    """
    notes = inspect.get_annotations(prototype_function, eval_str=True)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            "infer_schema(func): mutates_args must either be a sequence of the names of the arguments or the string "
            '"unknown".'
        )
    unknown = (
        set()
        if isinstance(mutates_args, str)
        else {*mutates_args} - {*inspect.signature(prototype_function).parameters}
    )
    if unknown:
        raise ValueError(
            f"infer_schema(func): {unknown} in mutates_args were not found in the custom op's signature. mutates_args should "
            'contain the names of all args that the custom op mutates, or just the string "unknown" if you don\'t know.'
        )
    parts, starred = [], False
    for i, (name, parameter) in enumerate(inspect.signature(prototype_function).parameters.items()):
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
            starred = True
        if name not in notes:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        kind = _schema_type(notes[name], f"Parameter {name}")
        if mutates_args != "unknown" and name in mutates_args and not kind.startswith("Tensor"):
            raise ValueError(
                f"infer_schema(func): Parameter {name} is in mutates_args, but only Tensors or collections of Tensors can be "
                "mutated"
            )
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
        if _has_keyword_tensors(shape):
            raise NotImplementedError(
                "custom_op with kwarg-only Tensor args. Please make your tensors not kwarg-only. Got: " + f"{op}{shape}"
            )
        written = set(written_by(shape))
        if mutates_args != "unknown" and written != set(mutates_args):
            raise ValueError(
                f"Attempted to create a custom op with `mutates_args={mutates_args}` and `schema={schema}`. The schema suggests "
                f"that the op mutates {written or '{}'}, which is different from what was provided to us in `mutates_args`. "
                "Please make these consistent."
            )
        made = CustomOpDef(space, op, shape, function)
        if device_types is not None:
            del made._kernels[None]
            made.register_kernel(device_types, function)
        return made

    return decorate if fn is None else decorate(fn)


def _find(op, early=False):
    if isinstance(op, CustomOpDef):
        return op
    if isinstance(op, (_ops.OpOverload, _ops.OpOverloadPacket)):
        packet = op.overloadpacket if isinstance(op, _ops.OpOverload) else op
        op = f"{packet._namespace}::{packet.__name__}"
    space, name = _split(op)
    found = _ops.registered.get(space, {}).get(name) or undefined.get((space, name))
    if found is None and early:
        found = undefined[space, name] = CustomOpDef(space, name, None, None)
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
        """Gives an op its kernel for a dispatch key: "CPU", "CUDA" (the GPU), "Meta", "Autograd", "AutocastCPU", "Composite..."."""
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
        device = key.removeprefix("Autocast").lower() or "cuda"
        if device not in _ELSEWHERE and fn is not fallthrough_kernel:
            op._autocasts[DEVICES.get(device, device)] = fn
        return
    if key.lower() in _ELSEWHERE:
        return
    if key not in _KEYS:
        raise NotImplementedError(f"library.impl: dispatch key {key!r}; expected one of {[*_KEYS, 'Autograd']}")
    if key == "Meta":
        op.register_fake(fn)
    else:
        op._kernels[_KEYS[key]] = fn
        # Modes and classes see what it consists of.
        op._is_composite = key == "CompositeImplicitAutograd"


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Adds an op without kernels: `define("mylib::sin", "(Tensor x) -> Tensor")`."""
    space, name = _split(qualname)
    CustomOpDef(space, name, schema, None)


def impl(qualname: Any, types: Any, func: Any = None, *, lib: Library | None = None) -> Any:
    """Gives an op its kernel for devices ("cpu", "cuda", "default") or a dispatch key; also a decorator.

    The older form `impl(library, name, key)` is a decorator too.
    """
    if isinstance(qualname, Library):
        name, key = types, func or ""

        def place(function):
            qualname.impl(name, function, key)
            return function

        return place
    op = _find(qualname, early=True)

    def decorate(function):
        for kind in [types] if isinstance(types, str) else types:
            if kind in ("default", "cpu", "cuda", "gpu"):
                op._kernels[None if kind == "default" else DEVICES.get(kind, kind)] = function
            else:
                _implement(op, function, kind)
        return function

    return decorate if func is None else decorate(func)


def opcheck(
    op: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = (
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ),
    raise_exception: bool = True,
    atol: float | None = None,
    rtol: float | None = None,
) -> dict[str, Any]:
    """Tests an op of a program on one call.

    Args:
        op: the op: what `custom_op` made, or one of `torch.ops`.
        args, kwargs: the arguments of the call.
        test_utils: which tests: "test_schema" (what it writes to, and that results are new), "test_autograd_registration",
            "test_faketensor" (the forms that its fake impl gives), "test_aot_dispatch_dynamic" (its graph gives its results
            and gradients).
        raise_exception (bool): whether a test that fails raises.
        atol, rtol (float, optional): how near results have to be.

    Returns:
        {test: "SUCCESS", or the error}.

    Raises:
        OpCheckError: a test failed.
        ValueError: `op` is no op, or there is no such test.
    """
    from ._opcheck import opcheck as run

    return run(op, args, kwargs, test_utils, raise_exception, atol, rtol)


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


def register_autocast(op: Any, device_type: str, cast_inputs: _C.dtype, /, *, lib: Library | None = None) -> None:
    """`CustomOpDef.register_autocast` by the op's name."""
    _find(op).register_autocast(device_type, cast_inputs)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None
) -> Any:
    """`CustomOpDef.register_torch_dispatch` by the op's name; also a decorator."""
    return _find(op).register_torch_dispatch(torch_dispatch_class, func)


def register_vmap(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Library | None = None) -> Any:
    """`CustomOpDef.register_vmap` by the op's name; also a decorator."""
    return _find(op).register_vmap(func)


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
