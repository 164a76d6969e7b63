"""The `.pt2` archive of a program: a zip of JSON, of tensors as their bytes, and of example inputs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import zipfile
from collections import OrderedDict
from typing import Any

from .. import _C
from .._base import Tensor
from ..nn.parameter import Parameter
from ..serialization import load, save
from ._codes import DTYPES
from ._deserialize import _size, program_of
from ._serialize import program_json, tensor_meta
from .exported_program import ExportedProgram

__all__ = ["load_program", "save_program"]

_VERSION = "0"
_NAME = "model"


def save_program(
    program: Any, f: Any, extra_files: dict[str, Any] | None, opset_version: dict[str, int] | None
) -> None:
    """Writes the archive of a program."""
    if not isinstance(program, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(program).__name__}' instead."
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        text = json.dumps(program_json(program, opset_version), allow_nan=False)
        _write_tensors(archive, program.state_dict, "weights", "weight")
        _write_tensors(archive, program.constants, "constants", "tensor")
        _write(archive, f"models/{_NAME}.json", text)
        if program.example_inputs is not None:
            sample = io.BytesIO()
            save(program.example_inputs, sample)
            _write(archive, f"data/sample_inputs/{_NAME}.pt", sample.getvalue())
        for name, content in (extra_files or {}).items():
            _write(archive, f"extra/{name}", content)
        for name, content in (("archive_format", "pt2"), ("archive_version", _VERSION), (".data/version", "6\n"), ("byteorder", "little")):  # fmt: skip
            _write(archive, name, content)
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(buffer.getvalue())
    else:
        f.write(buffer.getvalue())


def _write(archive: zipfile.ZipFile, name: str, content: str | bytes) -> None:
    archive.writestr(f"archive/{name}", content)


def _write_tensors(archive: zipfile.ZipFile, tensors: dict[str, Any], folder: str, prefix: str) -> None:
    """Tensors as files of their bytes, with what they are in a JSON; those with one memory share a file."""
    config: dict[str, Any] = {}
    files: dict[Any, tuple[str, Any]] = {}
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu()
        key = (_C._storage_key(plain), tuple(plain.shape), plain.stride(), plain.dtype) if plain.numel() else name
        if key not in files:
            dense = plain.contiguous()
            path = f"{prefix}_{len(files)}"
            files[key] = path, dense
            _write(archive, f"data/{folder}/{path}", _bytes(dense))
        path, dense = files[key]
        meta = tensor_meta(dense, tensor.device)
        meta["requires_grad"] = tensor.requires_grad
        config[name] = {
            "path_name": path,
            "is_param": isinstance(tensor, Parameter),
            "use_pickle": False,
            "tensor_meta": meta,
        }
    _write(archive, f"data/{folder}/{_NAME}_{folder}_config.json", json.dumps({"config": config}))


def _bytes(tensor: Tensor) -> bytes:
    if not tensor.numel():
        return b""
    return bytes(tensor.reshape(-1).view(_C.uint8).numpy().tobytes())


def load_program(f: Any, extra_files: dict[str, Any] | None) -> ExportedProgram:
    """The program of an archive."""
    data = f if isinstance(f, (str, os.PathLike)) else io.BytesIO(f.read())
    try:
        archive = zipfile.ZipFile(data)
    except zipfile.BadZipFile as error:
        raise RuntimeError(f"export.load: not an archive of an exported program: {error}") from error
    with archive:
        reader = _Reader(archive)
        for name in extra_files or {}:
            extra_files[name] = reader.text(f"extra/{name}", f"extra_files/{name}")  # type: ignore[index]
        if reader.has(f"models/{_NAME}.json"):
            return _current(reader)
        if reader.has("serialized_exported_program.json"):
            return _older(reader)
    raise RuntimeError(
        "export.load: the archive has no program: expected models/model.json or serialized_exported_program.json"
    )


class _Reader:
    """The files of an archive, whose names may all be in one folder."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self.archive = archive
        self.names = set(archive.namelist())
        tops = {name.partition("/")[0] for name in self.names}
        self.top = f"{tops.pop()}/" if len(tops) == 1 and all("/" in n for n in self.names) else ""

    def has(self, name: str) -> bool:
        return self.top + name in self.names

    def bytes(self, name: str) -> bytes:
        if not self.has(name):
            raise RuntimeError(f"export.load: the archive lacks {name}")
        return self.archive.read(self.top + name)

    def text(self, *names: str) -> str:
        found = next((n for n in names if self.has(n)), names[0])
        return self.bytes(found).decode()

    def json(self, name: str) -> Any:
        return json.loads(self.bytes(name))


def _current(reader: _Reader) -> ExportedProgram:
    if reader.has("byteorder") and reader.text("byteorder") != "little":
        raise RuntimeError(f"export.load: the byte order is {reader.text('byteorder')!r}; expected 'little'")
    data = reader.json(f"models/{_NAME}.json")
    state, constants = OrderedDict(), {}
    if reader.has(f"data/weights/{_NAME}_weights_config.json"):
        state.update(_tensors(reader, "weights", reader.json(f"data/weights/{_NAME}_weights_config.json")["config"]))
    if reader.has(f"data/constants/{_NAME}_constants_config.json"):
        config = reader.json(f"data/constants/{_NAME}_constants_config.json")["config"]
        constants.update(_tensors(reader, "constants", config))
    example = None
    if reader.has(f"data/sample_inputs/{_NAME}.pt"):
        with contextlib.suppress(Exception):
            example = load(io.BytesIO(reader.bytes(f"data/sample_inputs/{_NAME}.pt")), weights_only=True)
    return program_of(data, state, constants, example)


def _tensors(reader: _Reader, folder: str, config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    bases: dict[tuple[str, Any], Tensor] = {}
    for name, entry in config.items():
        path = entry["path_name"]
        if entry.get("tensor_meta") is None:
            raise NotImplementedError(
                f"export.load: '{name}' is an object of a class of C++, of which there are none here"
            )
        meta = entry["tensor_meta"]
        if entry.get("use_pickle"):
            tensor = load(io.BytesIO(reader.bytes(f"data/{folder}/{path}")), weights_only=True)
        else:
            tensor = _tensor(reader, f"data/{folder}/{path}", meta, bases)
        found[name] = Parameter(tensor, meta["requires_grad"]) if entry["is_param"] else tensor
    return found


def _tensor(reader: _Reader, path: str, meta: dict[str, Any], bases: dict[tuple[str, Any], Tensor]) -> Tensor:
    dtype = DTYPES[meta["dtype"]]
    sizes, strides = ([_size(s)[1] for s in meta[key]] for key in ("sizes", "strides"))
    if (path, dtype) not in bases:
        content = bytearray(reader.bytes(path))
        bases[path, dtype] = _C.frombuffer(content, dtype=dtype) if content else _C.ops["empty"](0, dtype=dtype)
    base = bases[path, dtype]
    if 0 in sizes:
        return base.new_empty(sizes)
    return base.as_strided(sizes, strides, _size(meta["storage_offset"])[1])


def _older(reader: _Reader) -> ExportedProgram:
    """Archives of PyTorch 2.1 to 2.7."""
    data = reader.json("serialized_exported_program.json")
    state = _saved(reader, "serialized_state_dict") or {}
    constants = _saved(reader, "serialized_constants") or {}
    example = None
    with contextlib.suppress(Exception):
        example = _saved(reader, "serialized_example_inputs")
    return program_of(data, OrderedDict(state), constants, example)


def _saved(reader: _Reader, name: str) -> Any:
    for ending in (".pt", ".json"):
        if reader.has(name + ending):
            content = reader.bytes(name + ending)
            return load(io.BytesIO(content), weights_only=True) if content else None
    return None
