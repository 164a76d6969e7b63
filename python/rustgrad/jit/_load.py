"""Reads TorchScript's archives: a zip of code, pickles that hold only data, and the bytes of tensors.

Pickles go through the unpickler of `rustgrad.load`, which here also makes objects of the classes that the archive's
code declares; what the archive can run is what `_language` takes.
"""

from __future__ import annotations

import io
import zipfile
from typing import Any

from .._archive import entry_bytes, entry_into, is_plain
from .._base import Tensor
from .._C import device as _device
from .._checkpoint_files import opened
from .._quantized._script_object import ScriptObject
from .._safe_globals import calls, may_be_made
from .._unpickler import CheckpointError, Unpickler
from ..nn.parameter import Parameter
from ..serialization import _filled, _is_swapped, _naming, _Reader, _swapped
from ._objects import Object, ScriptClass
from ._script import RecursiveScriptModule
from ._unit import NEWEST, Unit

__all__ = ["is_archive", "load_archive"]

_LISTS = ("build_intlist", "build_tensorlist", "build_doublelist", "build_boollist")


class _Machine(Unpickler):
    """An unpickler that makes objects of the archive's classes."""

    unit: Unit
    names_of: dict[int, str]

    def restored(self, made: ScriptObject, state: Any) -> None:
        """Gives an object of a class of C++ its state."""
        name = self.names_of.pop(id(made), "")
        try:
            made.__setstate__((state, name))
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
            raise CheckpointError(f"the state of a {name} cannot be read: {error}") from None

    def new_object(self, keywords: bool) -> None:
        if not keywords and len(self.stack) >= 2 and isinstance(self.stack[-2], ScriptClass):
            _, cls = self.pop(), self.pop()
            made = RecursiveScriptModule(cls, self.unit) if cls.kind == "Module" else cls.new()
            if cls.kind == "C++":
                self.names_of[id(made)] = cls.name
            self.push(self.nested(made, ()))
            return
        super().new_object(keywords)

    def reduce(self) -> None:
        if len(self.stack) >= 2 and isinstance(self.stack[-2], ScriptClass):
            given, cls = self.pop(), self.pop()
            if cls.kind == "Enum":
                self.push(cls.python_class()(given))
            elif cls.kind == "NamedTuple" and isinstance(given, tuple):
                self.push(self.nested(cls.python_class()(*given), given))
            else:
                raise CheckpointError(f"the pickle calls the class {cls.name}")
            return
        super().reduce()

    def build(self) -> None:
        made = self.stack[-2] if len(self.stack) >= 2 else None
        if not isinstance(made, (Object, RecursiveScriptModule, ScriptObject)):
            super().build()
            return
        state, made = self.pop(), self.top()
        if isinstance(made, ScriptObject):
            self.restored(made, state)
            return
        cls = made._class
        if "__setstate__" in cls.methods:
            cls.methods["__setstate__"](made, state)
        elif not isinstance(state, dict) or not all(isinstance(k, str) for k in state):
            raise CheckpointError(f"the state of a {cls.name} is no dict of attributes")
        elif isinstance(made, RecursiveScriptModule):
            unknown = [k for k in state if k not in cls.fields and k not in cls.parameters and k not in cls.buffers]
            if unknown:
                raise CheckpointError(f"the class {cls.name} has no attribute {unknown[0][:100]!r}")
            made._take(state)
        else:
            for key, value in state.items():
                setattr(made, key, value)


class _ScriptReader(_Reader):
    """Reads one of the pickles of an archive."""

    def __init__(self, file: Any, fetch: Any, map_location: Any, unit: Unit) -> None:
        super().__init__(fetch, map_location)
        self.unit = unit
        made = {f: None for f in _PICKLED.values()}
        self.machine = _Machine(file, self.find, calls() | made, may_be_made, self.persistent_load, "utf-8")
        self.machine.unit, self.machine.names_of = unit, {}

    def find(self, module: str, name: str) -> Any:
        if module == "__torch__" or module.startswith("__torch__."):
            return self.unit.script_class(f"{module}.{name}")
        if module == "torch.jit._pickle" and name in _PICKLED:
            return _PICKLED[name]
        if (module, name) in self.known:
            return self.known[module, name]
        raise CheckpointError(f"the archive names {module}.{name}, which is no class of its code and no value")


def _list(values: Any) -> list[Any]:
    return list(values)


def _tagged(value: Any, kind: str) -> Any:
    """A list or a dict whose type was written beside it."""
    return value


_PICKLED = {**dict.fromkeys(_LISTS, _list), "restore_type_tag": _tagged}


def is_archive(archive: zipfile.ZipFile) -> bool:
    """Whether a zip is one of TorchScript and not one of `save`."""
    return any(name.endswith("/constants.pkl") for name in archive.namelist())


class _Archive:
    def __init__(self, file: zipfile.ZipFile, map_location: Any) -> None:
        self.zip, self.map_location = file, map_location
        names = file.namelist()
        main = next((n for n in names if n.endswith("/data.pkl") and n.count("/") == 1), None)
        if main is None or not is_archive(file):
            if any(n.endswith("model.json") for n in names):
                raise CheckpointError("the archive is of PyTorch before 1.4; expected one of a later version")
            raise CheckpointError(
                "PytorchStreamReader failed locating file constants.pkl: the file is no TorchScript archive"
            )
        self.root, self.names = main.removesuffix("data.pkl"), set(names)
        record = self.read("byteorder") if self.root + "byteorder" in self.names else None
        self.swapped = _is_swapped(record)

    def read(self, name: str) -> bytes:
        return entry_bytes(self.zip, self.root + name)

    def fetch(self, folder: str) -> Any:
        def tensor(key: Any, nbytes: int, dtype: Any) -> Any:
            from .. import _C

            try:
                info = self.zip.getinfo(f"{self.root}{folder}/{key}")
            except KeyError:
                raise CheckpointError(f"storage {folder}/{key} is missing") from None
            if info.file_size < nbytes:
                raise CheckpointError(f"storage {key} has {info.file_size} bytes, but {nbytes} are used")
            kind, size = dtype or _C.uint8, info.file_size
            if is_plain(info) and not self.swapped and kind != _C.bool and size % kind.itemsize == 0:
                return entry_into(self.zip, info, lambda fill: _filled(size // kind.itemsize, kind, fill))
            data = entry_bytes(self.zip, info)
            return _C._from_storage_bytes(_swapped(data, kind) if self.swapped else data, kind)

        return tensor

    def pickle(self, name: str, unit: Unit) -> Any:
        file = io.BytesIO(self.read(f"{name}.pkl"))
        return _ScriptReader(file, self.fetch(name), self.map_location, unit).machine.load()

    def code(self) -> dict[str, str]:
        start = self.root + "code/"
        found = {}
        for name in self.names:
            if name.startswith(start) and name.endswith(".py"):
                try:
                    found[name.removeprefix(start)] = entry_bytes(self.zip, name).decode()
                except UnicodeDecodeError:
                    raise CheckpointError(f"{name} is no text") from None
        return found

    def version(self) -> int:
        """The version of the ops in the code."""
        name = next((n for n in ("version", ".data/version") if self.root + n in self.names), None)
        text = b"3" if name is None else self.read(name).strip()
        if not text.isdigit() or not 1 <= int(text[:9]) <= NEWEST:
            raise CheckpointError(f"the archive has the version {text[:20]!r}; expected 1 to {NEWEST}")
        return int(text)

    def device(self, text: str) -> Any:
        """A device in code: one that is not here is the one that everything is mapped to."""
        made = _device(text)
        mapped = self.map_location
        if made.type not in ("cpu", "gpu", "meta") and isinstance(mapped, (str, _device)):
            return _device(mapped)
        return made


def load_archive(f: Any, map_location: Any, extra_files: dict[str, Any] | None) -> Any:
    """The module of an archive; what `extra_files` names is filled in."""
    import os

    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    if isinstance(f, (str, os.PathLike)) and os.path.isdir(f):
        raise ValueError(f"The provided filename {f} is a directory")
    with _naming(os.fspath(f) if isinstance(f, (str, os.PathLike)) else None), opened(f) as file:
        with zipfile.ZipFile(file) as archive:
            try:
                return _loaded(_Archive(archive, map_location), extra_files)
            except SyntaxError as error:
                raise CheckpointError(f"the code of the archive cannot be read: {error}") from None
            except RecursionError:
                raise CheckpointError("the archive nests expressions or classes too deeply") from None


def _join_parameters(module: RecursiveScriptModule) -> None:
    """Makes one parameter of each tensor that is one anywhere: a layer's list of its weights holds the weights themselves."""
    made: dict[int, tuple[Any, Parameter]] = {}
    modules = list(module.modules())
    for part in modules:
        for name, value in part._parameters.items():
            if value is not None:
                part._parameters[name] = made.setdefault(
                    id(value), (value, Parameter(value.detach(), value.requires_grad))
                )[1]

    def joined(value: Any) -> Any:
        if isinstance(value, Tensor):
            return made[id(value)][1] if id(value) in made else value
        if type(value) is list:
            value[:] = map(joined, value)
        elif type(value) is tuple:
            return tuple(map(joined, value))
        elif isinstance(value, dict):
            value.update((k, joined(v)) for k, v in value.items())
        elif isinstance(value, Object):
            value._values.update((k, joined(v)) for k, v in value._values.items())
        return value

    for part in modules:
        for name in part._class.fields:
            if name in part.__dict__:
                part.__dict__[name] = joined(part.__dict__[name])


def _loaded(archive: _Archive, extra_files: dict[str, Any] | None) -> Any:
    unit = Unit(archive.code(), device=archive.device)
    unit.version = archive.version()
    constants = archive.pickle("constants", unit)
    if not isinstance(constants, (tuple, list)):
        raise CheckpointError("the constants of the archive are no tuple")
    unit.constants = tuple(constants)
    made = archive.pickle("data", unit)
    if not isinstance(made, RecursiveScriptModule):
        raise CheckpointError(f"the archive holds a {type(made).__name__}; expected a module")
    unit.check()
    _join_parameters(made)
    for name in extra_files or {}:
        if f"{archive.root}extra/{name}" in archive.names:
            data = archive.read(f"extra/{name}")
            extra_files[name] = data  # type: ignore[index]
    return made
