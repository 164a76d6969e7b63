"""Traced modules and functions: what `trace` makes, and where PyTorch keeps these classes.

A run is recorded as code (`_record`), which becomes a class or a function as those of a loaded archive are: what is called
afterwards, and what `save` writes, is the recording. Parameters and buffers are those of the module that was traced.
"""

from __future__ import annotations

import contextlib
import inspect
import threading
import warnings
from collections.abc import Iterator
from typing import Any

from .. import _C
from .._base import Tensor
from .._quantized._script_object import ScriptObject
from .._recording._sizes import SymInt
from .._safe_globals import torch_name
from .._sources import is_identifier
from .._unpickler import CheckpointError
from ..amp.autocast_mode import is_autocast_enabled
from ..nn.modules.module import Module
from . import TracerWarning, _script_if_tracing, is_tracing, trace, trace_module  # noqa: F401
from ._record import CannotRecord, Recorder, _quoted
from ._script import LoadedFunction, RecursiveScriptModule
from ._steady import refuse_changing, same_values
from ._unit import Unit

__all__ = ["TopLevelTracedModule", "TracedModule", "TracerWarning", "is_tracing", "trace", "trace_module"]


class TracedModule(RecursiveScriptModule):
    """A part of a traced module, with the attributes of the one that was traced."""

    def _get_name(self) -> str:
        return self.original_name

    def _adopt(self, state: dict[str, Any]) -> None:
        """Takes parameters, buffers and parts as they are."""
        self._take(state)


class TopLevelTracedModule(TracedModule):
    """What `trace` makes of a module. Calls run what was recorded."""


class _Here(threading.local):
    running = False


here = _Here()


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    from ..compiler._watch import here as compiled

    before, here.running = here.running, True
    compiled.disabled += 1
    try:
        yield
    finally:
        compiled.disabled -= 1
        here.running = before


class _Classes:
    """The classes that stand for modules in code: one for all modules of a class that have the same attributes."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.known: dict[Any, str] = {}
        self.texts: dict[str, list[str]] = {}
        # Classes that are no modules: all of their lines.
        self.plain: dict[str, list[str]] = {}
        self.mangled = 0

    def add(self, module: Module, methods: str = "") -> str:
        """The qualified name of the class of a module."""
        if id(module) in self.names:
            return self.names[id(module)]
        children = {n: self.add(c) for n, c in module._modules.items() if c is not None}
        own = type(module)
        body = [f"  __parameters__ = [{_texts(n for n, p in module._parameters.items() if p is not None)}]",
                f"  __buffers__ = [{_texts(n for n, b in module._buffers.items() if b is not None)}]"]  # fmt: skip
        fields = {n: "Tensor" for t in (module._parameters, module._buffers) for n, v in t.items() if v is not None}
        fields |= {"training": "bool"} | children
        fields |= {n: f"__torch__.torch.classes.{v._held.qualified}" for n, v in _packed(module).items()}
        for name, kind in fields.items():
            body.append(f"  {name} : {kind}" if is_identifier(name) else f'  __annotations__["{name}"] = {kind}')
        key = (own, tuple(body), methods or id(module) if methods else "")
        if key not in self.known:
            self.known[key] = self._name(own)
            self.texts[self.known[key]] = body
        self.names[id(module)] = self.known[key]
        return self.known[key]

    def _name(self, cls: type) -> str:
        module = torch_name(cls.__module__)
        short = cls.__name__ if is_identifier(cls.__name__) else "Module"
        parts = (
            [] if module in ("__main__", "builtins") else [p if is_identifier(p) else "_" for p in module.split(".")]
        )
        parts = parts[1:] if parts[:1] == ["__torch__"] else [p for p in parts if not p.startswith("___torch_mangle_")]
        name = ".".join(["__torch__", *parts, short])
        if name in self.texts:
            name = ".".join(["__torch__", *parts, f"___torch_mangle_{self.mangled}", short])
            self.mangled += 1
        return name

    def files(self) -> dict[str, str]:
        """The code of all classes, by path."""
        made: dict[str, str] = {}
        for name, body in self.texts.items():
            module, _, short = name.rpartition(".")
            path = module.replace(".", "/") + ".py"
            lines = self.plain.get(name) or [f"class {short}(Module):", *body]
            made[path] = made.get(path, "") + "\n".join(lines) + "\n"
        return made


def _packed(module: Module) -> dict[str, ScriptObject]:
    """The packed weights of a quantised layer, by the names of attributes."""
    return {n: v for n, v in vars(module).items() if isinstance(v, ScriptObject)}


def _texts(names: Any) -> str:
    return "".join(f"{_quoted(n)}, " for n in names)


# --- what goes in and comes out


def _input(r: Recorder, value: Any, name: str) -> str:
    """Names the tensors of an argument; returns its type."""
    if isinstance(value, Tensor):
        r.named(value, name)
        return "Tensor"
    if isinstance(value, (tuple, list)) and value:
        parts = [r.fresh() for _ in value]
        r.lines.append(f"{''.join(p + ', ' for p in parts)}= {name}")
        kinds = [_input(r, v, p) for v, p in zip(value, parts, strict=True)]
        return f"Tuple[{', '.join(kinds)}]" if isinstance(value, tuple) else f"List[{_alike(kinds)}]"
    if isinstance(value, dict) and value:
        kinds = []
        for key, v in value.items():
            kinds.append(_input(r, v, r.assign(f"{name}[{r.text(key)}]")))
        return f"Dict[{'str' if isinstance(next(iter(value)), str) else 'int'}, {_alike(kinds)}]"
    raise RuntimeError(
        f"Type '{type(value).__name__}' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced"
    )


def _alike(kinds: list[str]) -> str:
    if len(set(kinds)) != 1:
        raise CannotRecord(f"a list or dict of values of different types: {', '.join(kinds)}")
    return kinds[0]


def _output(r: Recorder, value: Any, strict: bool) -> tuple[str, str]:
    """The code of a result and its type."""
    if isinstance(value, Tensor):
        return r.name_of(value), "Tensor"
    if type(value) is SymInt:
        return f"ops.prim.NumToTensor({r.text(value)})", "Tensor"
    if isinstance(value, (list, tuple, dict)) and strict and not isinstance(value, tuple):
        raise RuntimeError(
            f"Encountering a {'dict' if isinstance(value, dict) else 'list'} at the output of the tracer might cause the trace to be incorrect,"
            " this is only valid if the container structure does not change based on the module's inputs. Consider using a constant"
            " container instead (e.g. for `list`, use a `tuple` instead. for `dict`, use a `NamedTuple` instead). If you absolutely need"
            " this and know the side effects, pass strict=False to trace() to allow this behavior."
        )
    if isinstance(value, dict) and value:
        parts = {k: _output(r, v, strict) for k, v in value.items()}
        text = ", ".join(f"{r.text(k)}: {t}" for k, (t, _) in parts.items())
        return "{" + text + "}", f"Dict[str, {_alike([k for _, k in parts.values()])}]"
    if isinstance(value, (list, tuple)) and value:
        made = [_output(r, v, strict) for v in value]
        texts, kinds = [t for t, _ in made], [k for _, k in made]
        if isinstance(value, list):
            return f"[{', '.join(texts)}]", f"List[{_alike(kinds)}]"
        return f"({', '.join(texts)}{',' * (len(texts) == 1)})", f"Tuple[{', '.join(kinds)}]"
    raise RuntimeError(
        "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions,"
        f" got {type(value).__name__}"
    )


@contextlib.contextmanager
def _as_recording() -> Iterator[None]:
    """A block in which code that cannot be read again is an error of the recording."""
    try:
        yield
    except (CheckpointError, SyntaxError) as error:
        raise CannotRecord(f"what was recorded cannot be read: {error}") from error


def _refuse_autocast() -> None:
    """Casts of autocast are part of ops here, so that a recording would not have them."""
    if any(is_autocast_enabled(device) for device in ("cpu", "gpu")):
        raise CannotRecord("a call under autocast; expected one outside of it")


class _Recording:
    """A recorded call: parameters with their types, lines, and the result."""

    def __init__(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        attributes: dict[int, tuple[str, ...]],
        strict: bool,
    ) -> None:
        _refuse_autocast()
        self.recorder = r = Recorder(attributes)
        self.named = _named(function, args, kwargs)
        fresh = {n: _copied(v) for n, v in self.named.items()}
        names = {n: n if is_identifier(n) and n != "self" else r.fresh() for n in fresh}
        self.parameters = {names[n]: _input(r, v, names[n]) for n, v in fresh.items()}
        given = list(fresh.values())
        positional, by_name = given[: len(args)], dict(zip(list(fresh)[len(args) :], given[len(args) :], strict=True))
        with _tracing(), r:
            self.result = function(*positional, **by_name)
        self.text, self.kind = _output(r, self.result, strict)

    def code(self, name: str, owner: str | None) -> str:
        """The function's code, of a class or on its own."""
        own = [] if owner is None else [f"self: {owner}"]
        head = ",\n    ".join([*own, *(f"{n}: {k}" for n, k in self.parameters.items())])
        lines = [*self.recorder.lines, f"return {self.text}"]
        return f"def {name}({head}) -> {self.kind}:\n" + "".join(f"  {line}\n" for line in lines)


def _named(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by the names of parameters."""
    target = function.forward if isinstance(function, Module) else function
    try:
        names = [p.name for p in inspect.signature(target).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    names += [f"argument_{i + 1}" for i in range(len(names), len(args))]
    return dict(zip(names, args, strict=False)) | kwargs


def _copied(value: Any) -> Any:
    """Tensors that are new objects on the same memory: what an argument is apart from a parameter it may be."""
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        made = [_copied(v) for v in value]
        return made if isinstance(value, list) else tuple(made)
    return {k: _copied(v) for k, v in value.items()} if isinstance(value, dict) else value


def _attributes(module: Module) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for prefix, part in module.named_modules():
        for table in (part._parameters, part._buffers, _packed(part)):
            for name, value in table.items():
                if value is not None:
                    found.setdefault(id(value), (*(prefix.split(".") if prefix else ()), name))
    return found


# --- modules and functions


def traced_module(
    module: Module, calls: dict[str, tuple[tuple[Any, ...], dict[str, Any]]], strict: bool, check: bool
) -> Any:
    """A traced module: `calls` has the arguments of each method that is recorded."""
    classes = _Classes()
    top = classes.add(module, "top")
    attributes = _attributes(module)
    constants: list[Any] = []
    recorded = {}
    for name, (args, kwargs) in calls.items():
        function = module if name == "forward" else getattr(module, name)
        with _restored(module) if check else contextlib.nullcontext():
            made = _Recording(function, args, kwargs, attributes, strict)
        with _restored(module):
            refuse_changing(made, function, args, kwargs, attributes, strict)
            _share_constants(made, constants)
            recorded[name] = made
        classes.texts[top] += ["  " + line for line in made.code(name, top).splitlines()]
    unit = Unit(classes.files(), tuple(constants))
    with _as_recording():
        result = _built(module, classes, unit, {}, TopLevelTracedModule)
        unit.check()
    if check:
        for name, made in recorded.items():
            with _restored(module):
                _compare(getattr(result, name), made)
    return result


def _share_constants(made: _Recording, constants: list[Any]) -> None:
    """Numbers the constants of several methods one after another."""
    r, start = made.recorder, len(constants)
    constants += r.constants
    if start:
        r.lines = [_renumbered(line, start) for line in r.lines]
        made.text = _renumbered(made.text, start)


def _renumbered(line: str, start: int) -> str:
    import re

    return re.sub(r"CONSTANTS\.c(\d+)", lambda m: f"CONSTANTS.c{int(m[1]) + start}", line)


def _built(
    module: Module, classes: _Classes, unit: Unit, made: dict[int, Any], cls: type[TracedModule] = TracedModule
) -> Any:
    """The traced module of a module, with its parameters and buffers."""
    if id(module) in made:
        return made[id(module)]
    new = made[id(module)] = cls(unit.script_class(classes.names[id(module)]), unit)
    tables = (module._parameters, module._buffers, _packed(module))
    state: dict[str, Any] = {n: v for t in tables for n, v in t.items() if v is not None}
    new._adopt(state | {"training": module.training})
    for name, child in module._modules.items():
        if child is not None:
            new._modules[name] = _built(child, classes, unit, made)
    new._non_persistent_buffers_set.update(module._non_persistent_buffers_set)
    return new


@contextlib.contextmanager
def _restored(module: Module) -> Iterator[None]:
    """A block after which buffers and random numbers are what they were before."""
    random = _C._rng_states()
    before = [(b, b.detach().clone()) for b in module.buffers()]
    try:
        yield
    finally:
        _C._set_rng_states(*random)
        for buffer, value in before:
            if buffer.shape == value.shape:
                buffer.detach().copy_(value)


def _compare(function: Any, made: _Recording) -> None:
    """Runs what was recorded on the inputs; CannotRecord where the result is another one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            again = function(*(_copied(v) for v in made.named.values()))
        except RuntimeError as error:
            raise CannotRecord(f"what was recorded does not run: {error}") from error
    for a, b in zip(_tensors(again), _tensors(made.result), strict=True):
        if not same_values(a, b):
            raise CannotRecord(
                "what was recorded computes something else; the function may depend on more than its inputs"
            )


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else []
    return [t for v in values for t in _tensors(v)]


class TracedFunction(LoadedFunction):
    """What `trace` makes of a function."""


def traced_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], strict: bool, check: bool) -> Any:
    """A traced function."""
    random = _C._rng_states()
    made = _Recording(function, args, kwargs, {}, strict)
    after = _C._rng_states()
    refuse_changing(made, function, args, kwargs, {}, strict)
    _C._set_rng_states(*after)
    name = getattr(function, "__name__", type(function).__name__)
    name = name if is_identifier(name) else "_lambda" if name == "<lambda>" else "function"
    unit = Unit({"__torch__.py": made.code(name, None)}, tuple(made.recorder.constants))
    with _as_recording():
        result = TracedFunction(unit.function(f"__torch__.{name}"), unit)
        unit.check()
    if check:
        _C._set_rng_states(*random)
        _compare(result, made)
        _C._set_rng_states(*after)
    return result
