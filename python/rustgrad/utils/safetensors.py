"""Files in the safetensors format: tensors by name after a JSON header; reading executes nothing.

`load_file` maps the file, so that tensors take memory only once they are read; writes to them do not reach the file. The
functions are those of the PyPI package's `safetensors.torch`, which also works (`python -m rustgrad`); no package is needed here.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Mapping
from os import PathLike
from typing import Any

from .. import _C
from .._C import Tensor
from .._files import map_file
from .._typing import DeviceLike

__all__ = ["SafetensorError", "load", "load_file", "load_model", "metadata", "save", "save_file", "save_model"]

_DTYPES = {
    "F64": _C.float64, "F32": _C.float32, "F16": _C.float16, "BF16": _C.bfloat16, "I64": _C.int64, "I32": _C.int32,
    "I16": _C.int16, "I8": _C.int8, "U8": _C.uint8, "U16": _C.uint16, "U32": _C.uint32, "U64": _C.uint64,
    "BOOL": _C.bool, "C64": _C.complex64, "F8_E4M3": _C.float8_e4m3fn, "F8_E5M2": _C.float8_e5m2, "F8_E8M0": _C.float8_e8m0fnu,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
# The format's own limit.
_LONGEST_HEADER = 100_000_000


class SafetensorError(ValueError):
    """The bytes are no safetensors file, or a damaged one."""


def _header(read, total):
    """The entries and where their bytes start; SafetensorError if the header is not sound."""
    if total < 8:
        raise SafetensorError(f"safetensors: expected 8 bytes or more, got {total}")
    (length,) = struct.unpack("<Q", read(0, 8))
    if length > min(_LONGEST_HEADER, total - 8):
        raise SafetensorError(f"safetensors: the header has {length} bytes, the file {total}")
    try:
        entries = json.loads(read(8, 8 + length))
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"safetensors: the header is no JSON ({error})") from None
    if not isinstance(entries, dict):
        raise SafetensorError("safetensors: the header is no JSON object")
    return entries, 8 + length


def _is_count(n):
    return type(n) is int and n >= 0


def _entry(name, entry, room):
    """Dtype, shape, start and stop of a tensor, checked against each other and the bytes there are."""
    try:
        kind, shape, (start, stop) = entry["dtype"], entry["shape"], entry["data_offsets"]
    except (TypeError, KeyError, ValueError):
        raise SafetensorError(f"safetensors: the entry {name!r} lacks dtype, shape or data_offsets") from None
    dtype = _DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise SafetensorError(f"safetensors: {name!r} has the dtype {kind!r}; expected one of {', '.join(_DTYPES)}")
    if not (isinstance(shape, list) and all(map(_is_count, shape)) and _is_count(start) and _is_count(stop)):
        raise SafetensorError(f"safetensors: the entry {name!r} has a shape or offsets that are no counts")
    count = 1
    for n in shape:
        count *= n
    if stop - start != count * dtype.itemsize or stop > room:
        raise SafetensorError(
            f"safetensors: {name!r} of {shape} needs {count * dtype.itemsize} bytes, but has {start} to {stop} of {room}"
        )
    return dtype, shape, start, stop


def _tensors(entries, data, room, part):
    found = {}
    for name, entry in entries.items():
        if name == "__metadata__":
            continue
        dtype, shape, start, stop = _entry(name, entry, room)
        if start == stop:
            found[name] = _C.ops["empty"](shape, dtype=dtype)
        elif dtype.itemsize > 1 and (data.data_ptr() + part + start) % min(dtype.itemsize, 8):
            # Files of other programs need not align what they hold.
            copied = data[part + start : part + stop].clone()
            found[name] = copied.view(dtype).reshape(shape)
        else:
            slice_ = _C._storage_slice(data, part + start, part + stop)
            strides = [1] * len(shape)
            for d in range(len(shape) - 2, -1, -1):
                strides[d] = strides[d + 1] * max(1, shape[d + 1])
            found[name] = _C._over_storage(slice_, dtype, 0, shape, strides)
    return found


def _on(tensors, device):
    device = _C.device(device)
    return tensors if device.type == "cpu" else {name: t.to(device) for name, t in tensors.items()}


def load_file(filename: str | PathLike[str], device: DeviceLike = "cpu") -> dict[str, Tensor]:
    """The tensors of a file by their names; on the CPU they lie in a mapping of it.

    Raises:
        SafetensorError: the file is damaged.
        FileNotFoundError, OSError: it cannot be read.
    """
    total = os.stat(filename).st_size
    with open(filename, "rb") as file:

        def read(start, stop):
            file.seek(start)
            return file.read(stop - start)

        entries, part = _header(read, total)
    return _on(_tensors(entries, map_file(filename, False, total), total - part, part), device)


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file.

    Raises:
        SafetensorError: the bytes are damaged.
    """
    entries, part = _header(lambda start, stop: data[start:stop], len(data))
    return _tensors(entries, _C._from_storage_bytes(bytes(data), _C.uint8), len(data) - part, part)


def metadata(filename: str | PathLike[str]) -> dict[str, str]:
    """The texts that were saved with the tensors of a file."""
    total = os.stat(filename).st_size
    with open(filename, "rb") as file:
        entries, _ = _header(lambda start, stop: (file.seek(start), file.read(stop - start))[1], total)
    return dict(entries.get("__metadata__") or {})


def _plan(tensors, texts):
    """The header, and the tensors in the order of their bytes: by size of elements, then name, as the package writes them."""
    if not isinstance(tensors, dict):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    places = {}
    for name, t in tensors.items():
        if not isinstance(t, Tensor):
            raise ValueError(f"Key `{name}` is invalid, expected torch.Tensor but received {type(t)}")
        if t.dtype not in _NAMES:
            raise ValueError(f"save: {name!r} is {t.dtype}, which the format does not have. Convert it first.")
        if not t.is_contiguous():
            raise ValueError(
                f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It either means you are "
                "trying to save tensors which are reference of each other in which case it's recommended to save only the "
                "full tensors, and reslice at load time, or simply call `.contiguous()` on your tensor to pack it before saving."
            )
        if t.numel():
            places.setdefault((str(t.device), _C._storage_key(t)), []).append(name)
    if shared := [names for names in places.values() if len(names) > 1]:
        raise RuntimeError(
            f"Some tensors share memory, this will lead to duplicate memory on disk and potential differences when loading "
            f"them again: {shared}. A potential way to correctly save your model is to use `save_model`."
        )
    order = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    header, at = {}, 0
    if texts:
        header["__metadata__"] = dict(texts)
    for name in order:
        t = tensors[name]
        size = t.numel() * t.itemsize
        header[name] = {"dtype": _NAMES[t.dtype], "shape": list(t.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, [tensors[name] for name in order]


def _bytes_of(t):
    return _C._storage_bytes(t.detach().cpu().clone()) if t.numel() else b""


def save_file(
    tensors: dict[str, Tensor], filename: str | PathLike[str], metadata: Mapping[str, str] | None = None
) -> None:
    """Writes contiguous tensors by their names.

    Args:
        metadata (dict): texts to keep with them, from str to str.

    Raises:
        ValueError: something else than a tensor, one that is not contiguous, or a dtype that the format lacks.
        RuntimeError: two tensors share memory; see `save_model`.
    """
    header, order = _plan(tensors, metadata)
    with open(filename, "wb") as file:
        file.write(header)
        for t in order:
            file.write(_bytes_of(t))


def save(tensors: dict[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes that `save_file` writes; its errors."""
    header, order = _plan(tensors, metadata)
    return b"".join([header, *map(_bytes_of, order)])


def save_model(
    model: Any,
    filename: str | PathLike[str],
    metadata: Mapping[str, str] | None = None,
    force_contiguous: bool = True,
) -> None:
    """Writes a module's `state_dict`, of parameters under several names only the first; its metadata names the others."""
    kept, places, texts = {}, {}, dict(metadata or {})
    for name, t in model.state_dict().items():
        place = (str(t.device), t.data_ptr(), tuple(t.shape), t.stride()) if t.numel() else name
        if place in places:
            texts[name] = places[place]
            continue
        places[place] = name
        kept[name] = t.contiguous() if force_contiguous else t
    save_file(kept, filename, texts)


def load_model(
    model: Any, filename: str | PathLike[str], strict: bool = True, device: DeviceLike = "cpu"
) -> tuple[list[str], list[str]]:
    """Loads a file of `save_model` into a module; the names that were missing and those that were unexpected.

    Raises:
        RuntimeError: there are such names, and `strict`.
    """
    state, shared = load_file(filename, device), metadata(filename)
    named = {**state, **{name: state[first] for name, first in shared.items() if first in state}}
    wanted = model.state_dict().keys()
    found = {name: t for name, t in named.items() if name in wanted or name in state}
    missing, unexpected = model.load_state_dict(found, strict=strict)
    return missing, unexpected
