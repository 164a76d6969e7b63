"""Arguments of calls by the parameters of what is called: functions of the library, ops with their schemas, layers."""

from __future__ import annotations

import inspect
import numbers
import types
import typing
from collections.abc import Callable
from typing import Any, NamedTuple

from .. import _C
from .._base import Tensor
from .._ops import OpOverload, OpOverloadPacket
from .._recording._keys import op_key
from .._schema import Schema, find, overloads
from ..nn.modules.module import Module

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]

_TYPES: dict[str, Any] = {
    "Tensor": Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "Scalar": numbers.Number,
    "ScalarType": _C.dtype, "Device": _C.device,
}  # fmt: skip


class ArgsKwargsPair(NamedTuple):
    """Arguments by position and by name."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def _annotation(argument: Any) -> Any:
    kind = _TYPES.get(argument.kind, Any)
    if argument.listed:
        kind = list[typing.Optional[kind] if argument.element_optional else kind]  # type: ignore[misc] # noqa: UP007, UP045
    return typing.Optional[kind] if argument.optional else kind  # noqa: UP007, UP045


def _signature_of(schema: Schema) -> inspect.Signature:
    parameters, names = [], []
    for argument in schema.arguments:
        name = "input" if argument.name == "self" else argument.name
        names.append(name)
        kind = inspect.Parameter.KEYWORD_ONLY if argument.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        default = argument.default_value if argument.has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=_annotation(argument)))
    # A parameter with a default may come before one without in a schema, and then has to be given.
    for place, parameter in reversed(list(enumerate(parameters))):
        later = [p for p in parameters[place + 1 :] if p.kind is parameter.kind]
        if parameter.kind is not parameter.KEYWORD_ONLY and any(p.default is p.empty for p in later):
            parameters[place] = parameter.replace(default=inspect.Parameter.empty)
    return inspect.Signature(parameters)


def _schemas(op: Any) -> list[Schema]:
    """The schemas of an op, without those that write their results elsewhere."""
    if isinstance(op, OpOverload):
        return [op._schema] if op._schema is not None else []
    if isinstance(op, OpOverloadPacket):
        name = op.__name__ if op._namespace == "aten" else ""
    elif _is_of_library(op) and not inspect.isfunction(op) and not _has_own_parameters(op):
        name = op_key(op).replace(".", "_")
    else:
        name = ""
    found = [find("aten", name, overload) for overload in overloads(name)] if name else []
    return [s for s in found if s is not None and not any(a.writes and a.keyword_only for a in s.arguments)]


def _has_own_parameters(op: Any) -> bool:
    """Whether a function is one of `nn.functional` alone: the op of ATen of its name takes other arguments, as `reduction=1`."""
    from ..nn import functional

    name = getattr(op, "__name__", "")
    return getattr(functional, name, None) is op and _C.ops.get(name) is not op


def _is_of_library(op: Any) -> bool:
    return (getattr(op, "__module__", None) or "").split(".")[0] in ("torch", "rustgrad") or isinstance(
        op, type(_C.ops["add"])
    )


def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of an op, one for each overload; None for what is no op.

    Args:
        op (callable): a function of the library, or an op of `torch.ops`.
        return_schemas (bool): return the schemas too.
    """
    schemas = _schemas(op)
    signatures = [_signature_of(s) for s in schemas] or None
    return (signatures, schemas or None) if return_schemas else signatures


def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types, such as `list[Tensor]`; what is none is returned itself."""
    if not isinstance(x, (list, tuple)):
        return x
    kinds = [create_type_hint(v) for v in x]
    first = kinds[0] if kinds else Any
    common = next(
        (
            k
            for k in kinds
            if all(k is o or isinstance(k, type) and isinstance(o, type) and issubclass(o, k) for o in kinds)
        ),
        first,
    )
    if any(
        k != common and not (isinstance(k, type) and isinstance(common, type) and issubclass(k, common)) for k in kinds
    ):
        common = Any
    return list[common] if isinstance(x, list) else tuple[common, ...]  # type: ignore[valid-type]


def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether an argument of a type may be given where a signature asks for one: `int` for a float, a list for each element's type."""
    if signature_type is argument_type or signature_type is Any:
        return True
    origin = typing.get_origin(signature_type)
    if origin in (typing.Union, types.UnionType):
        given = (
            typing.get_args(argument_type)
            if typing.get_origin(argument_type) in (typing.Union, types.UnionType)
            else [argument_type]
        )
        return all(any(type_matches(part, g) for part in typing.get_args(signature_type)) for g in given)
    if origin is list:
        (element,) = typing.get_args(signature_type)
        if typing.get_origin(argument_type) in (list, tuple):
            return all(type_matches(element, a) for a in typing.get_args(argument_type) if a is not Ellipsis)
        return element is int and argument_type is int
    if signature_type is numbers.Number:
        return argument_type in (int, float, complex, bool)
    if signature_type is float and argument_type is int:
        return True
    return (
        isinstance(signature_type, type)
        and isinstance(argument_type, type)
        and issubclass(argument_type, signature_type)
    )


def _normal(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any], by_name: bool
) -> ArgsKwargsPair | None:
    """The arguments of a call with the defaults; None where they do not fit."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in kinds for p in signature.parameters.values()):
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    given, named = [], {}
    for place, (name, parameter) in enumerate(signature.parameters.items()):
        if bound.arguments[name] is Ellipsis and parameter.default is Ellipsis or name == "cudnn_enable":
            continue
        if not by_name and place < len(args):
            given.append(bound.arguments[name])
        else:
            named[name] = bound.arguments[name]
    return ArgsKwargsPair(tuple(given), named)


def _fits(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return all(type_matches(signature.parameters[n].annotation, t) for n, t in bound.arguments.items())


def normalize_function(
    target: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a function of the library, with the defaults; None for another function.

    Args:
        target (callable): what is called.
        args (tuple), kwargs (dict): the arguments; they may be nodes or proxies.
        arg_types (tuple), kwarg_types (dict): their types, which decide among overloads.
        normalize_to_only_use_kwargs (bool): whether arguments by position come by name too.

    Raises:
        RuntimeError: several overloads fit, with different parameters.
    """
    kwargs, only = kwargs or {}, normalize_to_only_use_kwargs
    signatures = get_signature_for_torch_op(target)
    if signatures is None:
        if not _is_of_library(target):
            return None
        try:
            signature = inspect.signature(inspect.unwrap(target))
        except (TypeError, ValueError):
            return None
        if _has_own_parameters(target) and "out" not in kwargs:
            parameters = [p for p in signature.parameters.values() if p.name != "out"]
            signature = signature.replace(parameters=parameters)
        return _normal(signature, args, kwargs, only)
    found = [(s, pair) for s in signatures if (pair := _normal(s, args, kwargs, only)) is not None]
    if len(found) > 1 and (arg_types is not None or kwarg_types is not None):
        # The first overload whose types fit, as where it is called.
        found = [(s, pair) for s, pair in found if _fits(s, arg_types or (), kwarg_types or {})][:1]
    if not found:
        return None
    if any(pair != found[0][1] for _, pair in found):
        schemas = "\n".join(str(s) for s, _ in found)
        raise RuntimeError(
            f"Tried to normalize arguments to {getattr(target, '__name__', target)} but the schema match was ambiguous! Please provide "
            f"argument types to the normalize_arguments() call. Available schemas:\n{schemas}"
        )
    return found[0][1]


def normalize_module(
    root: Module,
    target: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a call of a layer of `nn`, with the defaults of its `forward`; None for another module.

    Raises:
        RuntimeError: there is no such module.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if not type(module).__module__.startswith(("rustgrad.nn", "torch.nn")):
        return None
    return _normal(inspect.signature(inspect.unwrap(module.forward)), args, kwargs or {}, normalize_to_only_use_kwargs)


def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """RuntimeError: the op writes to an argument."""
    fitting = [s for s in _schemas(target) if _normal(_signature_of(s), args, kwargs, True) is not None]
    to_out = kwargs.get("out") is not None and _schemas(target)
    if to_out or fitting and all(any(a.writes for a in s.arguments) for s in fitting):
        shown = f"{to_out[0].name}.out" if to_out else fitting[0]
        raise RuntimeError(
            f"Tried to trace mutable operation {shown}. FX only supports functional code, so operations that mutate operands"
            " in-place (e.g. via `out` arguments) are not supported"
        )
