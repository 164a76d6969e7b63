"""Plans as files: `save` writes what a function computes, `load` gives a callable that computes it without the function."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable
from os import PathLike
from typing import Any

from .. import _C, return_types
from .._base import Size, Tensor, device, dtype
from .._typing import DeviceLike
from ._audit import Audit, Unsafe
from ._watch import Unsupported, audited, recorded_call

__all__ = ["PlanError", "Program", "load", "save"]

# Calls that are recorded until two in a row have computed the same.
_CALLS = 4
# How deep containers of arguments and results may nest.
_DEEPEST = 24


class PlanError(ValueError):
    """A file is no plan, is damaged, or needs another version of rustgrad."""


def save(f: Callable[..., Any], path: str | PathLike[str], /, *args: Any, **kwargs: Any) -> None:
    """Writes what `f(*args, **kwargs)` computes to a file, with its parameters and without its code.

    `f` is called with these arguments two times or more, with all effects. Shapes, strides, dtypes and the arguments that
    are no tensors are those of every later call. Results have no graph: where they would, `f` is called under `no_grad`.

    Args:
        f (Callable): a function, a bound method, a module, or one of these compiled.
        path (str): the file, customarily `.rgx`.
        args, kwargs: the example.

    Raises:
        Unsupported: the function cannot be replaced by a plan, or the plan not be written; with the reason.
        OSError: the file cannot be written.
    """
    state = getattr(f, "_compiled_state", None)
    function = f if state is None else state.function
    path = os.fspath(path)
    part = f"{path}.{os.getpid()}.part"
    try:
        recorded, result = _agreed(function, args, kwargs)
        if recorded.has_graph():
            from .. import no_grad

            with no_grad():
                recorded, result = _agreed(function, args, kwargs)
        inputs = _Writer()
        parameters = _parameters(function, args, kwargs, inputs)
        interface = json.dumps({"parameters": parameters, "result": _Writer().tree(result, "result")})
        with open(part, "wb"):
            pass
        problem = recorded.save(part, inputs.tensors, inputs.names, _names(function), interface)
        if problem:
            raise Unsafe(problem)
        os.replace(part, path)
    except Unsafe as reason:
        name = getattr(function, "__qualname__", type(function).__name__)
        raise Unsupported(f"save: {name} cannot be saved: {reason}") from None
    finally:
        if os.path.exists(part):
            os.remove(part)


def _agreed(function, args, kwargs):
    """What two calls in a row have both computed, and the result of the second. What is made lazily is there by then."""
    last, problem = None, "calls of it compute different things"
    for _ in range(_CALLS):
        before = Audit(function, args, kwargs, True)
        result, recording, calls = recorded_call(function, before, args, kwargs)
        if calls.interrupted:
            problem = "handlers of signals run in the middle of its calls"
            continue
        recorded = _C._compile_recorded(recording, _Writer().taken(result))
        del recording
        try:
            audited(function, before, calls, result, args, kwargs)
        except Unsafe as reason:
            recorded = str(reason)
        if isinstance(recorded, str):
            # An optimizer makes its state in the first call.
            if last == recorded:
                raise Unsafe(recorded)
            last, problem = recorded, recorded
        elif last == recorded.listing():
            return recorded, result
        else:
            last, problem = recorded.listing(), "calls of it compute different things"
    raise Unsafe(problem)


def _parameters(function, args, kwargs, inputs):
    """The arguments in the order of their tensors, each with its name; positional ones may also be given by name."""
    try:
        signature = inspect.signature(function.forward if hasattr(function, "forward") else function)
        known = list(signature.parameters.values())
    except (TypeError, ValueError):
        known = []
    found = []
    for i, value in enumerate(args):
        p = known[i] if i < len(known) else None
        if p is not None and p.kind is p.POSITIONAL_OR_KEYWORD:
            name, kind = p.name, "positional"
        else:
            name, kind = f"args[{i}]", "unnamed"
        found.append({"name": name, "kind": kind, "value": inputs.tree(value, name)})
    found += [{"name": name, "kind": "keyword", "value": inputs.tree(v, name)} for name, v in kwargs.items()]
    return found


def _names(function):
    """Parameters and buffers of modules that the function is, belongs to or closes over, by their names there."""
    from ..nn.modules.module import Module

    owner = getattr(function, "__self__", function)
    cells = [c.cell_contents for c in getattr(function, "__closure__", None) or () if _is_filled(c)]
    read = getattr(getattr(function, "__code__", None), "co_names", ())
    space = getattr(function, "__globals__", {})
    modules = [m for m in (owner, *cells, *(space.get(n) for n in read)) if isinstance(m, Module)]
    found: dict[int, tuple[Tensor, str]] = {}
    for i, m in enumerate(modules):
        prefix = "" if i == 0 else f"{i}."
        for name, t in (*m.named_parameters(), *m.named_buffers()):
            found.setdefault(id(t), (t, prefix + name))
    return list(found.values())


def _is_filled(cell):
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


class _Writer:
    """Values as JSON, with their tensors by number."""

    def __init__(self) -> None:
        self.tensors: list[Tensor] = []
        self.names: list[str] = []

    def taken(self, value: Any) -> list[Tensor]:
        """The tensors of a result."""
        self.tree(value, "result")
        return self.tensors

    def tree(self, value: Any, place: str, depth: int = 0) -> Any:
        """A value; Unsafe where it is not one that a file holds."""
        if depth > _DEEPEST:
            raise Unsafe(f"{place} nests deeper than {_DEEPEST} containers")
        if isinstance(value, Tensor):
            self.tensors.append(value)
            self.names.append(place)
            return {"tensor": len(self.tensors) - 1}
        t = type(value)
        if t in (tuple, list, Size):
            items = [self.tree(v, f"{place}[{i}]", depth + 1) for i, v in enumerate(value)]
            return {"size" if t is Size else t.__name__: items}
        if _named(t.__name__) is t:
            return {
                "named": [
                    t.__name__,
                    [self.tree(v, f"{place}.{n}", depth + 1) for n, v in zip(t._fields, value, strict=True)],
                ]
            }
        if t is dict:
            items = [[self.plain(k, place), self.tree(v, f"{place}[{k!r}]", depth + 1)] for k, v in value.items()]
            return {"dict": items}
        return self.plain(value, place)

    def plain(self, value: Any, place: str) -> Any:
        """A value that is no container."""
        t = type(value)
        if value is None or t in (bool, int, str):
            return value
        if t is float:
            return {"float": value.hex()}
        if t is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if t is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, device):
            return {"device": str(value)}
        raise Unsafe(
            f"{place} is an object of type {t.__name__}; expected tensors, numbers, strings and containers of them"
        )


_CONTAINERS = {"tuple": tuple, "list": list, "size": Size}


def _named(name):
    """The class of the results of an op, `torch.return_types.max`, by its name; None where there is none."""
    found = getattr(return_types, name, None)
    return found if isinstance(found, type) and issubclass(found, tuple) else None


def _check(tree, seen, depth=0):
    """Whether a value from a file is what `_Writer` writes; adds the numbers of its tensors to `seen`."""
    if depth > _DEEPEST:
        return False
    if tree is None or type(tree) in (bool, int, str):
        return True
    if type(tree) is not dict or len(tree) != 1:
        return False
    ((kind, held),) = tree.items()
    if kind == "tensor":
        seen.append(held)
        return type(held) is int
    if kind in _CONTAINERS:
        return type(held) is list and all(_check(v, seen, depth + 1) for v in held)
    if kind == "named":
        if type(held) is not list or len(held) != 2 or type(held[0]) is not str or type(held[1]) is not list:
            return False
        fields = getattr(_named(held[0]), "_fields", None)
        return fields is not None and len(fields) == len(held[1]) and all(_check(v, seen, depth + 1) for v in held[1])
    if kind == "dict":
        pairs = type(held) is list and all(type(p) is list and len(p) == 2 for p in held)
        return pairs and all(_is_key(k) and _check(v, seen, depth + 1) for k, v in held)
    return _is_plain(tree)


def _is_key(tree):
    return tree is None or type(tree) in (bool, int, str) or type(tree) is dict and _is_plain(tree)


def _is_plain(tree):
    try:
        _plain(tree)
    except (TypeError, ValueError, AttributeError, RuntimeError, KeyError):
        return False
    return True


def _plain(tree):
    """The value of a tree that is no container."""
    if type(tree) is not dict:
        return tree
    ((kind, held),) = tree.items()
    if kind == "float":
        return float.fromhex(held)
    if kind == "complex":
        real, imag = held
        return complex(float.fromhex(real), float.fromhex(imag))
    if kind == "bytes":
        return bytes.fromhex(held)
    if kind == "dtype":
        found = getattr(_C, held, None)
        if isinstance(found, dtype):
            return found
    if kind == "device":
        return device(held)
    raise ValueError(kind)


def _build(tree, tensors):
    if type(tree) is dict:
        ((kind, held),) = tree.items()
        if kind == "tensor":
            return tensors[held]
        if kind in _CONTAINERS:
            return _CONTAINERS[kind](_build(v, tensors) for v in held)
        if kind == "named":
            return _named(held[0])([_build(v, tensors) for v in held[1]])
        if kind == "dict":
            return {_plain(k): _build(v, tensors) for k, v in held}
    return _plain(tree)


def _match(tree, value, name, found):
    """Adds the tensors of an argument; an error where its form, or a value in it, is not that of the example."""
    if type(tree) is dict:
        ((kind, held),) = tree.items()
        if kind == "tensor":
            if not isinstance(value, Tensor):
                raise TypeError(f"run: argument '{name}' must be Tensor, not {type(value).__name__}")
            return found.append(value)
        if kind in _CONTAINERS:
            if type(value) is not _CONTAINERS[kind] or len(value) != len(held):
                expected = f"a {kind} of {len(held)}"
                raise TypeError(f"run: argument '{name}' is {_shown(value)}; expected {expected}")
            for i, (part, v) in enumerate(zip(held, value, strict=True)):
                _match(part, v, f"{name}[{i}]", found)
            return None
        if kind == "named":
            if type(value) is not _named(held[0]):
                raise TypeError(f"run: argument '{name}' is {_shown(value)}; expected torch.return_types.{held[0]}")
            for i, (part, v) in enumerate(zip(held[1], value, strict=True)):
                _match(part, v, f"{name}[{i}]", found)
            return None
        if kind == "dict":
            keys = [_plain(k) for k, _ in held]
            if type(value) is not dict or value.keys() != set(keys):
                raise TypeError(f"run: argument '{name}' is {_shown(value)}; expected a dict with the keys {keys}")
            for key, (_, part) in zip(keys, held, strict=True):
                _match(part, value[key], f"{name}[{key!r}]", found)
            return None
    expected = _plain(tree)
    same = type(value) is type(expected) and (value == expected or value != value and expected != expected)
    if not same:
        raise ValueError(
            f"run: argument '{name}' is {_shown(value)}; expected {expected!r}, as when the plan was saved"
        )
    return None


def _shown(value):
    return f"a {type(value).__name__} of {len(value)}" if isinstance(value, (tuple, list, dict)) else repr(value)


class Program:
    """A plan from a file: called like the function that was saved, it computes what that computed.

    Calls release the interpreter lock, record nothing for gradients, and draw random numbers from the default generator.
    What they write to parameters and buffers stays in the program.
    """

    def __init__(self, program: Any) -> None:
        self._program = program
        try:
            interface = json.loads(program.interface())
            self._parameters, self._result = interface["parameters"], interface["result"]
            self._check()
        except (ValueError, RecursionError, TypeError, KeyError) as error:
            raise PlanError(f"load: the file does not say what is called: {error}") from None
        self._positional = [p for p in self._parameters if p["kind"] != "keyword"]

    def _check(self):
        inputs: list[int] = []
        results: list[int] = []
        names = [p["name"] for p in self._parameters]
        kinds = all(p["kind"] in ("positional", "unnamed", "keyword") for p in self._parameters)
        if not kinds or not all(type(n) is str for n in names) or len(set(names)) != len(names):
            raise ValueError("its parameters have no names")
        if not all(_check(p["value"], inputs) for p in self._parameters) or not _check(self._result, results):
            raise ValueError("an argument or the result is no value")
        if inputs != list(range(len(self._program.inputs()))):
            raise ValueError("its arguments are not the inputs of the plan")
        if results != list(range(self._program.results())):
            raise ValueError("its result is not that of the plan")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the plan. TypeError, ValueError or RuntimeError where the arguments do not fit, or as an op raises it."""
        if len(args) > len(self._positional):
            raise TypeError(f"run: expected at most {len(self._positional)} positional arguments, got {len(args)}")
        found: list[Tensor] = []
        given = dict(kwargs)
        for i, p in enumerate(self._parameters):
            name, tree = p["name"], p["value"]
            if i < len(args):
                if name in given:
                    raise TypeError(f"run: got multiple values for argument '{name}'")
                _match(tree, args[i], name, found)
            elif name in given and p["kind"] != "unnamed":
                _match(tree, given.pop(name), name, found)
            else:
                # What is no tensor is fixed, so it may be left out.
                inside: list[int] = []
                _check(tree, inside)
                if inside:
                    raise TypeError(f"run: missing argument '{name}'")
        if given:
            raise TypeError(f"run: got an unexpected argument '{next(iter(given))}'")
        return _build(self._result, self._program.run(found))

    @property
    def inputs(self) -> list[tuple[str, dtype, Size, device]]:
        """Name, dtype, shape and device of each tensor that a call takes."""
        return [(n, getattr(_C, d), Size(shape), device(on)) for n, d, shape, _, on in self._program.inputs()]

    def state_dict(self) -> dict[str, Tensor]:
        """The tensors of the file by name: parameters, buffers, constants, as they are now."""
        return dict(self._program.tensors())

    def __repr__(self) -> str:
        listed = ", ".join(f"{n}: {d}{list(shape)}" for n, d, shape, _, _ in self._program.inputs())
        return f"Program({listed})\n{self._program.listing()}"


def load(path: str | PathLike[str], device: DeviceLike | None = None) -> Program:
    """The program in a file that `save` wrote. Nothing in a file is executed as code.

    Args:
        path (str): the file.
        device (device, optional): where its tensors go and its inputs are expected; by default where they were.

    Raises:
        PlanError: the file is no plan, is damaged, or is of a version, or has ops, that are not known here.
        OSError: it cannot be read.
        RuntimeError: the device is not here, or has no room.
    """
    with open(path, "rb"):
        pass  # raises what the system says
    try:
        return Program(_C._compile_load(os.fspath(path), None if device is None else _C.device(device)))
    except ValueError as error:
        raise error if isinstance(error, PlanError) else PlanError(f"load: {error}") from None
