"""Writes TorchScript's archives, which PyTorch reads: code, two pickles of data, and the bytes of tensors."""

from __future__ import annotations

import ast
import enum
import functools
import io
import os
import struct
import zipfile
from typing import Any

from .. import _C
from .._archive import add_entry
from .._base import Tensor
from .._checkpoint_files import Sink
from .._quantized._script_object import ScriptObject
from ..serialization import location_tag
from ..storage import _NAMES, lend
from ._objects import Object, ScriptClass
from ._script import LoadedFunction, RecursiveScriptModule
from ._types import Type, type_of, type_of_value

__all__ = ["save_archive", "to_bytes"]

_LISTS = {"int": "build_intlist", "Tensor": "build_tensorlist", "float": "build_doublelist", "bool": "build_boollist"}
_CONVOLUTION = "Tuple[str, List[Tensor], List[Optional[Tensor]]]"
# The types of the states of classes of C++.
_STATES = {
    "LinearPackedParamsBase": "Tuple[Tensor, Optional[Tensor]]",
    "Conv2dPackedParamsBase": _CONVOLUTION,
    "Conv3dPackedParamsBase": _CONVOLUTION,
    "EmbeddingPackedParamsBase": "Tuple[int, List[Tensor], List[float], List[int]]",
    "CellParamsBase": "Tuple[str, List[Tensor], List[float], List[int], List[__torch__.torch.classes.quantized.LinearPackedParamsBase]]",
}  # fmt: skip


class _Pickler:
    """Writes one pickle with the instructions that PyTorch's reader knows."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.storages: dict[Any, str] = {}
        self.memo: dict[int, int] = {}
        self.kept: list[Any] = []

    def done(self) -> bytes:
        return b"\x80\x02" + self.out.getvalue() + b"."

    def put(self, *parts: bytes) -> None:
        for part in parts:
            self.out.write(part)

    def name(self, module: str, name: str) -> None:
        self.put(b"c", f"{module}\n{name}\n".encode())

    def remembered(self, value: Any) -> bool:
        """Whether a value was written before: then this reads it again."""
        if id(value) in self.memo:
            self.put(b"j", struct.pack("<I", self.memo[id(value)]))
            return True
        return False

    def remember(self, value: Any) -> None:
        self.memo[id(value)] = len(self.memo)
        self.kept.append(value)
        self.put(b"r", struct.pack("<I", self.memo[id(value)]))

    def value(self, value: Any, kind: Type | None = None) -> None:
        """Writes a value; its type says what the elements of containers are."""
        kind = kind if kind is not None and kind.name not in ("Any", "Union") else type_of_value(value)
        if kind.name == "Optional":
            kind = kind.args[0] if value is not None else kind
        if value is None or isinstance(value, bool):
            self.put(b"N" if value is None else b"\x88" if value else b"\x89")
        elif isinstance(value, Tensor):
            self.tensor(value)
        elif isinstance(value, (RecursiveScriptModule, Object)):
            self.object(value)
        elif isinstance(value, ScriptObject):
            self.packed(value)
        elif isinstance(value, enum.Enum) or hasattr(type(value), "_fields_of_script"):
            self.of_class(value, kind)
        elif isinstance(value, (int, float, str)):
            self.plain(value)
        elif isinstance(value, tuple):
            self.tuple(
                value, kind.args if kind.name == "Tuple" and len(kind.args) == len(value) else (None,) * len(value)
            )
        elif isinstance(value, (list, dict)):
            self.container(value, kind)
        elif isinstance(value, complex):
            self.name("__builtin__", "complex")
            self.tuple((value.real, value.imag), (None, None))
            self.put(b"R")
        elif isinstance(value, _C.device):
            self.name("torch", "device")
            self.tuple((str(value),), (None,))
            self.put(b"R")
        else:
            raise RuntimeError(f"jit.save: an attribute is a {type(value).__name__}, which TorchScript does not have")

    def plain(self, value: Any) -> None:
        if isinstance(value, float):
            self.put(b"G", struct.pack(">d", value))
        elif isinstance(value, str):
            data = value.encode("utf-8", "surrogatepass")
            self.put(b"X", struct.pack("<I", len(data)), data)
        elif -(2**31) <= value < 2**31:
            self.put(b"J", struct.pack("<i", value))
        elif -(2**63) <= value < 2**63:
            self.put(b"\x8a\x08", struct.pack("<q", value))
        else:
            raise RuntimeError(f"jit.save: the int {value} is larger than 64 bits")

    def tuple(self, values: Any, kinds: Any) -> None:
        self.put(b"(")
        for value, kind in zip(values, kinds, strict=True):
            self.value(value, kind)
        self.put(b"t")

    def container(self, value: Any, kind: Type) -> None:
        fitting = kind.name == ("List" if isinstance(value, list) else "Dict")
        kind = kind if fitting else type_of_value(value)
        known = _LISTS.get(kind.args[0].name) if kind.name == "List" else None
        self.name("torch.jit._pickle", known or "restore_type_tag")
        self.put(b"(")
        if isinstance(value, list):
            self.put(b"](")
            for v in value:
                self.value(v, kind.args[0])
            self.put(b"e")
        else:
            self.put(b"}(")
            for k, v in value.items():
                self.value(k, kind.args[0])
                self.value(v, kind.args[1])
            self.put(b"u")
        if known is None:
            self.plain(repr(kind))
        self.put(b"tR")

    def of_class(self, value: Any, kind: Type) -> None:
        """A member of an enumeration, or a named tuple, which PyTorch reads as a plain one."""
        if kind.cls is None:
            raise RuntimeError(f"jit.save: the class of a {type(value).__name__} is not known")
        cls = kind.cls()
        if not isinstance(value, enum.Enum):
            self.tuple(value, cls.fields.values())
            return
        self.name(cls.name.rpartition(".")[0], cls.short)
        self.value(value.value)
        self.put(b"R")

    def object(self, value: Any) -> None:
        if self.remembered(value):
            return
        cls = value._class
        self.name(cls.name.rpartition(".")[0], cls.short)
        self.put(b")\x81")
        self.remember(value)
        if "__getstate__" in cls.methods:
            self.value(cls.methods["__getstate__"](value), cls.functions["__getstate__"].returns)
            self.put(b"b")
            return
        self.put(b"}(")
        for name, kind in cls.fields.items():
            self.plain(name)
            self.value(getattr(value, name), kind)
        self.put(b"ub")

    def packed(self, value: ScriptObject) -> None:
        """An object of a class of C++, which gives its state and makes itself of it."""
        if self.remembered(value):
            return
        state, name = value.__getstate__()
        module, _, short = name.rpartition(".")
        self.name(module, short)
        self.put(b")\x81")
        self.remember(value)
        kind = ast.parse(_STATES[short], mode="eval").body
        self.value(state, type_of(kind, lambda name: lambda: ScriptClass(name, "C++")))
        self.put(b"b")

    def tensor(self, t: Tensor) -> None:
        if self.remembered(t):
            return
        if t.is_sparse or t.is_nested or t.is_meta:
            raise RuntimeError("jit.save: sparse, nested and meta tensors have no form in an archive here")
        storage = t.untyped_storage()
        key = self.storages.setdefault(storage, str(len(self.storages)))
        self.name("torch._utils", "_rebuild_qtensor" if t.is_quantized else "_rebuild_tensor_v2")
        self.put(b"((")
        self.plain("storage")
        self.name("torch", _NAMES[t.dtype])
        self.plain(key)
        self.plain(location_tag(storage))
        self.plain(storage.nbytes() // t.itemsize)
        self.put(b"tQ")
        self.plain(t.storage_offset())
        for numbers in (t.shape, t.stride()):
            self.tuple(tuple(numbers), (None,) * len(numbers))
        if t.is_quantized:
            self.quantizer(t)
        self.put(b"\x88" if t.requires_grad else b"\x89")
        self.name("collections", "OrderedDict")
        self.put(b")RtR")
        self.remember(t)

    def quantizer(self, t: Tensor) -> None:
        """The scheme of a quantised tensor, its scale and its zero point, or those of its channels and their dimension."""
        scheme, *numbers = t.__reduce_ex__(2)[1][4]
        self.put(b"(")
        self.name("torch", str(scheme).rpartition(".")[2])
        for number in numbers:
            self.tensor(number) if isinstance(number, Tensor) else self.plain(number)
        self.put(b"t")


def save_archive(m: Any, f: Any, extra_files: dict[str, Any] | None) -> None:
    """Writes a scripted or traced module or function."""
    if isinstance(m, LoadedFunction):
        m = m.as_module()
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and not os.path.isdir(parent := os.path.dirname(os.fspath(f)) or "."):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"
    unit = m._unit
    data, constants = _Pickler(), _Pickler()
    data.object(m)
    constants.tuple(unit.constants, (None,) * len(unit.constants))
    with zipfile.ZipFile(f if is_path else Sink(f), "w", zipfile.ZIP_STORED) as archive:
        _pickled(archive, root, "data", data)
        for path, text in unit.files.items():
            add_entry(archive, f"{root}/code/{path}", text.encode())
        _pickled(archive, root, "constants", constants)
        for name, content in (extra_files or {}).items():
            add_entry(archive, f"{root}/extra/{name}", content.encode() if isinstance(content, str) else bytes(content))
        add_entry(archive, f"{root}/byteorder", b"little")
        add_entry(archive, f"{root}/version", f"{unit.version}\n".encode())


def _pickled(archive: zipfile.ZipFile, root: str, name: str, pickler: _Pickler) -> None:
    for storage, key in pickler.storages.items():
        lend(storage, functools.partial(add_entry, archive, f"{root}/{name}/{key}"))
    add_entry(archive, f"{root}/{name}.pkl", pickler.done())


def to_bytes(m: Any, extra_files: dict[str, Any] | None) -> bytes:
    """The bytes of an archive."""
    file = io.BytesIO()
    save_archive(m, file, extra_files)
    return file.getvalue()
