"""Scripted modules and functions: what `load` makes of an archive, and where PyTorch keeps these classes.

A `RecursiveScriptModule` is a `Module` with the parameters, buffers and submodules that its class in the archive declares, whose
methods are that class's.
"""

from __future__ import annotations

import linecache
import threading
from collections.abc import Callable
from typing import Any

from ..nn.modules.module import Module
from . import Attribute, ScriptFunction, ScriptModule, interface, script, script_method
from ._language import Function
from ._objects import ScriptClass
from ._resolve import Unsupported

__all__ = [
    "Attribute",
    "RecursiveScriptModule",
    "ScriptFunction",
    "ScriptModule",
    "interface",
    "script",
    "script_method",
]


class ScriptMethod:
    """A method of a scripted module, or a function: called with what its declaration says."""

    def __init__(self, function: Function, owner: Any = None) -> None:
        self._function, self.owner = function, owner
        self.__name__ = self.name = function.name
        self._own = function.parameters if owner is None else function.parameters[1:]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        taken = self._taken(args, kwargs)
        if _depth.running:
            return self._run(taken)
        _depth.running = True
        try:
            return self._run(taken)
        except Exception as error:
            raise _told(error) from error
        finally:
            _depth.running = False

    def _run(self, taken: list[Any]) -> Any:
        return self._function(*taken) if self.owner is None else self._function(self.owner, *taken)

    def _taken(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in order, with the conversions of their types."""
        name, own = self.name, self._own
        if len(args) > len(own):
            raise RuntimeError(
                f"{name}() expected at most {len(own)} argument(s) but received {len(args)} argument(s). Declaration: {self.schema}"
            )
        left = dict(kwargs)
        made = []
        for place, (parameter, kind, _) in enumerate(own):
            if place < len(args):
                if parameter in left:
                    raise RuntimeError(f"{name}() got multiple values for argument '{parameter}'")
                value = args[place]
            elif parameter in left:
                value = left.pop(parameter)
            elif parameter in self._function.defaults:
                value = self._function.defaults[parameter]
                made.append(list(value) if isinstance(value, list) else value)
                continue
            else:
                raise RuntimeError(f"{name}() is missing value for argument '{parameter}'. Declaration: {self.schema}")
            try:
                made.append(kind.taken(value))
            except TypeError as error:
                raise RuntimeError(
                    f"{name}() {error} for argument '{parameter}'.\nPosition: {place + (self.owner is not None)}\nDeclaration: {self.schema}"
                ) from None
        if left:
            raise RuntimeError(
                f"Unknown keyword argument '{next(iter(left))}' for operator '{name}'. Schema: {self.schema}"
            )
        return made

    @property
    def schema(self) -> str:
        """The declaration: name, parameters with their types, type of the result."""
        shown = [f"{t!r} {n}" + (f"={self._function.defaults[n]}" if n in self._function.defaults else "")
                 for n, t, _ in self._function.parameters]  # fmt: skip
        return f"{self.name}({', '.join(shown)}) -> ({self._function.returns!r})"

    @property
    def code(self) -> str:
        """Its code."""
        return self._function.text + "\n"

    @property
    def graph(self) -> Any:
        """Its code as a graph of ops."""
        from ._graph import graph_of

        return graph_of(self._function)

    inlined_graph = graph

    def __repr__(self) -> str:
        return f"<torch.ScriptMethod object {self.name}>"


class _Depth(threading.local):
    running = False


_depth = _Depth()


def _told(error: Exception) -> Exception:
    """An error of an archive's code, with the lines where it arose: a RuntimeError, or `jit.Error` of what the code raises."""
    from . import Error

    lines = []
    trace = error.__traceback__
    while trace is not None:
        where, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        if where.startswith("<archive "):
            lines.append(
                f'  File "{where.partition("/")[2]}", line {line}\n    {linecache.getline(where, line).strip()}\n'
            )
        trace = trace.tb_next
    kind = (
        ""
        if isinstance(error, Error)
        else f"{'RuntimeError' if isinstance(error, RuntimeError) else type(error).__name__}: "
    )
    text = (
        "The following operation failed in the TorchScript interpreter.\n"
        f"Traceback of TorchScript, serialized code (most recent call last):\n{''.join(lines)}{kind}{error}"
    )
    cls = next(c for c in (Error, Unsupported, NotImplementedError, RuntimeError, Exception) if isinstance(error, c))
    return (NotImplementedError if cls is Unsupported else RuntimeError if cls is Exception else cls)(text)


class LoadedFunction(ScriptFunction):
    """A function of code: traced, or of an archive."""

    def __init__(self, function: Function, unit: Any) -> None:
        self._method, self._unit = ScriptMethod(function), unit
        self.__doc__ = None
        self.__name__ = self.name = function.name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._method(*args, **kwargs)

    code = property(lambda self: self._method.code)
    graph = property(lambda self: self._method.graph)
    inlined_graph = graph
    schema = property(lambda self: self._method.schema)

    def as_module(self) -> RecursiveScriptModule:
        """A module whose `forward` it is, as PyTorch writes functions."""
        from ._unit import Unit

        function = self._method._function
        head, paren, rest = function.text.partition("(")
        own = "self: __torch__.PlaceholderModule" + ("" if rest.startswith(")") else ",\n    ")
        text = f"def forward{paren}{own}{rest}"
        lines = ["class PlaceholderModule(Module):", "  __parameters__ = []", "  __buffers__ = []", "  training : bool"]
        code = "\n".join([*lines, *("  " + line for line in text.splitlines())]) + "\n"
        files = dict(self._unit.files)
        unit = Unit(files | {"__torch__.py": code + files.get("__torch__.py", "")}, self._unit.constants)
        unit.version = self._unit.version
        made = RecursiveScriptModule(unit.script_class("__torch__.PlaceholderModule"), unit)
        made._take({"training": False})
        return made

    def save(self, f: Any, **kwargs: Any) -> None:
        """Writes an archive; see `jit.save`."""
        from . import save

        save(self, f, **kwargs)

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """The bytes of an archive."""
        from ._save import to_bytes

        return to_bytes(self, kwargs.get("_extra_files"))


class RecursiveScriptModule(ScriptModule):
    """A module of an archive. Made by `load`, and by `script` and `trace` when what they made is loaded again."""

    def __init__(self, cls: ScriptClass, unit: Any = None) -> None:
        super().__init__()
        self.__dict__["_class"], self.__dict__["_unit"] = cls, unit
        self.__dict__.pop("training", None)

    def _take(self, state: dict[str, Any]) -> None:
        """Takes the attributes that an archive gives it."""
        cls = self._class
        for name, value in state.items():
            if name in cls.parameters:
                _register(self._parameters, self, name, value)
            elif name in cls.buffers:
                _register(self._buffers, self, name, value)
            elif isinstance(value, Module):
                _register(self._modules, self, name, value)
            else:
                self.__dict__[name] = _named(cls.fields.get(name), value)
        self.__dict__.setdefault("training", False)
        for name in cls.pre_hooks:
            self.register_forward_pre_hook(_hook(cls.methods[name], False))
        for name in cls.hooks:
            self.register_forward_hook(_hook(cls.methods[name], True))

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return self._class.short

    def _get_name(self) -> str:
        return "RecursiveScriptModule"

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    def __getattr__(self, name: str) -> Any:
        cls = self.__dict__.get("_class")
        if cls is not None:
            if name in cls.constants:
                return cls.constants[name]
            if f"__{name}_getter" in cls.methods:
                return cls.methods[f"__{name}_getter"](self)
            if name in cls.functions:
                return ScriptMethod(cls.functions[name], self)
            if name.startswith("__") and name.endswith("__"):
                raise AttributeError(name)
        return super().__getattr__(name)

    def __setattr__(self, name: str, value: Any) -> None:
        cls = self.__dict__.get("_class")
        if cls is not None:
            if f"__{name}_setter" in cls.methods:
                cls.methods[f"__{name}_setter"](self, value)
                return
            if name in cls.constants:
                raise AttributeError(
                    f"Cannot mutate TorchScript constant value: '{name}'. Value: '{cls.constants[name]}'"
                )
            if name in cls.fields and name not in self._parameters and not isinstance(value, Module):
                try:
                    value = cls.fields[name].taken(value)
                except TypeError as error:
                    raise RuntimeError(f"{error} for attribute '{name}' of {cls.name}") from None
        super().__setattr__(name, value)

    @property
    def forward(self) -> Any:
        """The method `forward` of the archive."""
        return self._method("forward")

    def _method(self, name: str) -> ScriptMethod:
        function = self._class.functions.get(name)
        if function is None:
            raise AttributeError(f"'{self._class.short}' object has no attribute or method '{name}'")
        return ScriptMethod(function, self)

    @property
    def code(self) -> str:
        """The code of `forward`."""
        return self._method("forward").code

    @property
    def code_with_constants(self) -> tuple[str, Any]:
        """The code of `forward`, and the constants that it names."""
        unit = self._unit
        constants = {} if unit is None else {f"c{i}": v for i, v in enumerate(unit.constants)}
        return self.code, type("ConstMap", (), {"const_mapping": constants, "__getattr__": lambda m, n: constants[n]})()

    @property
    def graph(self) -> Any:
        """The code of `forward` as a graph of ops."""
        return self._method("forward").graph

    inlined_graph = graph

    def save(self, f: Any, **kwargs: Any) -> None:
        """Writes an archive; see `jit.save`."""
        from . import save

        save(self, f, **kwargs)

    def save_to_buffer(self, *args: Any, **kwargs: Any) -> bytes:
        """The bytes of an archive."""
        from ._save import to_bytes

        return to_bytes(self, kwargs.get("_extra_files"))

    def define(self, src: str) -> None:
        """NotImplementedError: methods come from archives."""
        raise NotImplementedError("define: methods of a loaded module come from its archive")

    def get_debug_state(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplementedError: there are no execution plans."""
        raise NotImplementedError("get_debug_state: code runs as it is, without execution plans")

    def __copy__(self) -> Any:
        made = RecursiveScriptModule(self._class, self._unit)
        made.__dict__.update({k: v.copy() if isinstance(v, dict) else v for k, v in self.__dict__.items()})
        return made

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise RuntimeError(
            f"Tried to serialize object {self._class.name} which does not have a __getstate__ method defined! Hint: write it with its"
            " own method save(), or its state_dict with save."
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        import copy

        made = RecursiveScriptModule(self._class, self._unit)
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name not in ("_class", "_unit"):
                made.__dict__[name] = copy.deepcopy(value, memo)
        return made

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._class.functions, *self._class.constants]

    def _called(self, name: str, *args: Any) -> Any:
        method = self._class.methods.get(name)
        if method is None:
            raise NotImplementedError(f"{self._class.short} has no method {name}")
        return method(self, *args)

    def __len__(self) -> int:
        return self._called("__len__")

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Any:
        # A container of modules: PyTorch's is made of its children.
        if "__iter__" in self._class.methods:
            return iter(self._called("__iter__"))
        if "__len__" in self._class.methods:
            return iter(self._modules.values())
        raise NotImplementedError(f"{self._class.short} has no method __iter__")

    def __getitem__(self, index: Any) -> Any:
        if "__getitem__" not in self._class.methods and "__len__" in self._class.methods and self._modules:
            return list(self._modules.values())[index] if isinstance(index, int) else self._modules[index]
        return self._called("__getitem__", index)

    def __contains__(self, key: Any) -> bool:
        if "__contains__" not in self._class.methods and "__len__" in self._class.methods:
            return key in self._modules
        return self._called("__contains__", key)


def _named(kind: Any, value: Any) -> Any:
    """A value of a file, where named tuples are plain ones, as its type says."""
    return (
        kind.taken(value)
        if kind is not None and isinstance(value, (tuple, list, dict)) and kind.has_classes()
        else value
    )


def _register(table: Any, module: Any, name: str, value: Any) -> None:
    module.__dict__.pop(name, None)
    table[name] = value


def _hook(method: Any, has_output: bool) -> Callable[..., Any]:
    """A hook of an archive, as `Module` calls hooks."""
    if has_output:
        return lambda module, inputs, output: method(module, inputs, output)
    return lambda module, inputs: method(module, inputs)
