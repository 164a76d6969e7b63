"""Records a run as code of TorchScript: each call of a function, method or operator on tensors is a line.

Unlike the recorder of `onnx` it keeps writes in place as they are, which TorchScript has too. Sizes of tensors are ints
that know where they come from (`SymInt`), so that the code computes them again; other numbers are constants.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from .. import _C
from .._base import Tensor
from .._formats import strided
from .._ops import OpOverload, OpOverloadPacket
from .._quantized._script_object import ScriptObject
from .._recording._calls import CallRecorder
from .._recording._sizes import SymInt
from .._recording._trace import items, map_arguments
from .._sources import is_identifier
from ._codes import code_of

__all__ = ["CannotRecord", "Code", "Recorder"]


class CannotRecord(RuntimeError):
    """A run that has no form in TorchScript."""


class Code(str):
    """A piece of code, where an argument is expected."""

    __slots__ = ()

    def __iter__(self) -> Any:
        raise TypeError("the elements of a list are not known when the code is written")


class Recorder(CallRecorder):
    """A mode that records.

    Args:
        attributes (dict): id of a parameter or buffer -> the path of names that leads to it.
    """

    def __init__(self, attributes: dict[int, tuple[str, ...]]) -> None:
        super().__init__(_has_form, True)
        self.attributes = attributes
        self.lines: list[str] = []
        self.constants: list[Tensor] = []
        # The tensors that `constants` has copies of.
        self.sources: list[Tensor] = []
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []
        self.asked: list[Tensor] = []
        self.count = 0
        self.paths: dict[tuple[str, ...], str] = {}

    # --- names
    def fresh(self) -> str:
        """A variable that is not used yet."""
        self.count += 1
        return f"_{self.count - 1}"

    def assign(self, text: str) -> Code:
        """A line that gives a value its own variable."""
        name = self.fresh()
        self.lines.append(f"{name} = {text}")
        return Code(name)

    def named(self, tensor: Tensor, name: str) -> None:
        """Says that a variable holds a tensor."""
        self.names[id(tensor)] = name
        self.kept.append(tensor)

    def name_of(self, tensor: Tensor) -> str:
        """The code that a tensor is: a variable, an attribute or a constant."""
        found = self.names.get(id(tensor))
        if found is None:
            path = self.attributes.get(id(tensor))
            found = self.attribute(path) if path is not None else self.constant(tensor)
            self.named(tensor, found)
        return found

    def attribute(self, path: tuple[str, ...]) -> str:
        """The variable of an attribute of a module."""
        if path not in self.paths:
            owner = self.attribute(path[:-1]) if len(path) > 1 else "self"
            last = path[-1]
            text = f"{owner}.{last}" if is_identifier(last) else f'getattr({owner}, "{last}")'
            self.paths[path] = self.assign(text)
        return self.paths[path]

    def constant(self, tensor: Tensor) -> str:
        """A tensor from outside."""
        if tensor.requires_grad:
            raise CannotRecord(
                "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching the gradient\n"
                f"Tensor:\n{tensor}"
            )
        self.constants.append(tensor.detach().clone())
        self.sources.append(tensor)
        return f"CONSTANTS.c{len(self.constants) - 1}"

    # --- code of arguments
    def text(self, value: Any) -> str:
        """The code of an argument."""
        if isinstance(value, Code):
            return str(value)
        if isinstance(value, Tensor):
            return self.name_of(value)
        if isinstance(value, ScriptObject) and id(value) in self.attributes:
            return self.attribute(self.attributes[id(value)])
        if type(value) is SymInt:
            return self.size_text(value)
        if value is None or isinstance(value, (bool, int)):
            return repr(value)
        if isinstance(value, float):
            return repr(value)
        if isinstance(value, complex):
            return f"{value.real!r}{'' if repr(value.imag).startswith('-') else '+'}{value.imag!r}j"
        if isinstance(value, str):
            return _quoted(value)
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(self.text, value))}]"
        code = code_of(value)
        if code is not None:
            return str(code)
        if type(value).__name__ == "device":
            return f'torch.device("{value}")'
        raise CannotRecord(f"an argument of the type {type(value).__name__} has no form in TorchScript")

    def size_text(self, value: SymInt) -> str:
        sign, left, right = value.expr
        if sign == "dim":
            return f"torch.size({self.name_of(self.asked[left])}, {right})"
        names = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "remainder"}
        return f"torch.{names[sign]}({self.text(left)}, {self.text(right)})"

    def line(self, op: str, *args: Any, **kwargs: Any) -> Code:
        """A line that calls an op; the variable of its result."""
        return self.assign(self.call_text(op, *args, **kwargs))

    def call_text(self, op: str, *args: Any, **kwargs: Any) -> str:
        """The code of a call of an op."""
        given = [self.text(a) for a in args] + [f"{k}={self.text(v)}" for k, v in kwargs.items()]
        return f"torch.{op}({', '.join(given)})"

    # --- calls of the program
    def call(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs a call and writes its line."""
        if key == "_assert":
            return func(*args, **kwargs)
        if _C._vmap_depth() or _C._forward_levels():
            raise CannotRecord(f"'{key}' under vmap or in forward mode has no form in TorchScript here")
        from ._record_ops import emitter

        emit = emitter(key, func)
        if (space := _space_of(func)) is not None:
            emit = functools.partial(_of_space, space)
        if emit is None:
            raise CannotRecord(f"'{key}' has no form in TorchScript here")
        return self._record(emit, key, func, args, kwargs)

    def _record(self, emit: Callable[..., str], key: str, func: Any, args: Any, kwargs: Any) -> Any:
        given = {id(t): t for t in items((args, kwargs)) if isinstance(t, Tensor)}
        for t in given.values():
            if t.layout is not strided or t.is_nested:
                raise CannotRecord(f"'{key}': sparse and nested tensors have no form in TorchScript")
            self.name_of(t)
        plain = map_arguments((args, kwargs), lambda v: int(v) if type(v) is SymInt else v)
        result = func(*plain[0], **plain[1])
        if result is NotImplemented:
            return result
        try:
            text = emit(self, key, func, args, kwargs, result)
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError) as error:
            raise CannotRecord(f"'{key}' with these arguments has no form in TorchScript here ({error})") from error
        self._results(text, result)
        return result

    def _results(self, text: str, result: Any) -> None:
        """The line of a call: a variable for each tensor that it returns."""
        if isinstance(result, Tensor):
            name = self.assign(text)
            # What is written in place keeps its variable, which other variables may view.
            if id(result) not in self.names:
                self.named(result, name)
            return
        tensors = list(result) if isinstance(result, (tuple, list)) else []
        if result is None or not tensors:
            self.assign(text)
            return
        if not all(isinstance(t, Tensor) for t in tensors):
            raise CannotRecord("an op whose results are not all tensors")
        made = [self.fresh() for _ in tensors]
        self.lines.append(f"{''.join(n + ', ' for n in made)}= {text}")
        for t, name in zip(tensors, made, strict=True):
            self.named(t, name)

    def sized(self, tensor: Tensor) -> int:
        """The number by which expressions of sizes name a tensor."""
        self.asked.append(tensor)
        return len(self.asked) - 1

    def _element(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        from . import TracerWarning

        if any(
            id(t) in self.names and not self.names[id(t)].startswith("CONSTANTS")
            for t in items((args, kwargs))
            if isinstance(t, Tensor)
        ):
            warnings.warn(
                f"Converting a tensor to a Python value by {key} might cause the trace to be incorrect. We can't record the data flow of"
                " Python values, so this value will be treated as a constant in the future.",
                TracerWarning,
                stacklevel=4,
            )
        return func(*args, **kwargs)


def _has_form(key: str, func: Any) -> bool:
    """Whether a call stays whole."""
    from ._record_ops import emitter

    return key == "_assert" or _space_of(func) is not None or emitter(key, func) is not None


def _space_of(func: Any) -> str | None:
    """The name in code of an op on quantised tensors that takes its arguments as they are; None for other functions."""
    if getattr(func, "__name__", "") in ("quantized_lstm", "quantized_gru"):
        return f"torch.{func.__name__}"
    packet = func.overloadpacket if isinstance(func, OpOverload) else func
    is_quantised = isinstance(packet, OpOverloadPacket) and packet._namespace == "quantized"
    return f"ops.quantized.{packet.__name__}" if is_quantised else None


def _of_space(name: str, r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    return r.call_text("", *args, **kwargs).replace("torch.", name, 1)


def _quoted(text: str) -> str:
    shown = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
    )
    return f'"{shown}"'
