"""`save` and `load`: a zip of one JSON tree and raw tensor storages. Nothing in a file is executed.

The tree holds plain values, containers and references to storages; tensors that share a storage share
it again after loading. Objects of other types are refused when saving: save a `state_dict`.
"""

import json
import os
import zipfile
from collections import OrderedDict

from . import _C
from ._C import Size, Tensor, device, dtype

__all__ = ["load", "save"]

_FORMAT = "rustgrad-1"
_PLAIN = (type(None), bool, int, str)


class _Writer:
    """Turns objects into JSON values and collects the storages that they refer to."""

    def __init__(self):
        self.storages = {}
        self.chunks = []
        self.keep = []

    def encode(self, obj):
        if type(obj) in _PLAIN:
            return obj
        if type(obj) is float:
            return {"$": "float", "v": obj.hex()} if obj != obj or obj in (float("inf"), float("-inf")) else obj
        if isinstance(obj, Tensor):
            return self.encode_tensor(obj)
        if type(obj) is list:
            return [self.encode(v) for v in obj]
        for kind, (cls, parts) in _CONTAINERS.items():
            if type(obj) is cls:
                entry = {"$": kind, "v": [self.encode(v) for v in parts(obj)]}
                if getattr(obj, "_metadata", None) is not None:
                    entry["metadata"] = self.encode(obj._metadata)
                return entry
        if isinstance(obj, dtype):
            return {"$": "dtype", "v": str(obj).rpartition(".")[2]}
        if isinstance(obj, device):
            return {"$": "device", "v": str(obj)}
        if type(obj) is complex:
            return {"$": "complex", "v": [obj.real, obj.imag]}
        if type(obj) is bytes:
            return {"$": "bytes", "v": obj.hex()}
        raise TypeError(
            f"save: cannot store an object of type {type(obj).__module__}.{type(obj).__qualname__}; expected tensors, "
            "numbers, strings and containers of them. Hint: save model.state_dict() instead of the model."
        )

    def encode_tensor(self, t):
        self.keep.append(t)
        key = (str(t.device), _C._storage_key(t), str(t.dtype))
        if key not in self.storages:
            self.storages[key] = len(self.chunks)
            self.chunks.append(_C._storage_bytes(t))
        from .nn.parameter import Parameter

        return {
            "$": "parameter" if isinstance(t, Parameter) else "tensor",
            "storage": self.storages[key],
            "dtype": str(t.dtype).rpartition(".")[2],
            "size": list(t.shape),
            "stride": list(t.stride()),
            "offset": t.storage_offset(),
            "device": str(t.device),
            "requires_grad": t.requires_grad,
        }


def _pairs(d):
    return [[k, v] for k, v in d.items()]


_CONTAINERS = {
    "dict": (dict, _pairs),
    "odict": (OrderedDict, _pairs),
    "tuple": (tuple, list),
    "size": (Size, list),
    "set": (set, list),
    "frozenset": (frozenset, list),
}
_MAKE = {"dict": dict, "odict": OrderedDict, "tuple": tuple, "size": Size, "set": set, "frozenset": frozenset}


def save(obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True):
    """Writes tensors and containers of them to a file.

    Args:
        obj: tensors, numbers, strings, bytes, None, and lists, tuples, dicts and sets of them.
        f (path or binary file).
        pickle_module, pickle_protocol: accepted, unused: nothing is pickled.

    Raises:
        TypeError: `obj` holds something else, such as a module.
    """
    writer = _Writer()
    tree = {"format": _FORMAT, "tree": writer.encode(obj)}
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("tree.json", json.dumps(tree))
        for i, chunk in enumerate(writer.chunks):
            archive.writestr(f"data/{i}", chunk)


class _Reader:
    """Turns the JSON values back into objects."""

    def __init__(self, archive, map_location):
        self.archive = archive
        self.map_location = map_location
        self.storages = {}

    def place(self, where):
        target = self.map_location
        if target is None:
            return where
        if isinstance(target, dict):
            return str(target.get(where, where))
        if callable(target) and not isinstance(target, device):
            raise TypeError("load: map_location must be a device, a string or a dict; got a function")
        return str(target)

    def storage(self, number, kind, where):
        key = (number, where)
        if key not in self.storages:
            flat = _C._from_storage_bytes(self.archive.read(f"data/{int(number)}"), kind)
            self.storages[key] = flat if where == "cpu" else flat.to(where)
        return self.storages[key]

    def decode_tensor(self, entry):
        kind = getattr(_C, entry["dtype"], None)
        if not isinstance(kind, dtype):
            raise RuntimeError(f"load: unknown dtype {entry['dtype']!r}")
        flat = self.storage(entry["storage"], kind, self.place(entry["device"]))
        t = flat.as_strided(entry["size"], entry["stride"], entry["offset"])
        if entry["$"] == "parameter":
            from .nn.parameter import Parameter

            return Parameter(t, requires_grad=entry["requires_grad"])
        return t.requires_grad_() if entry["requires_grad"] else t

    def decode(self, value):
        if isinstance(value, list):
            return [self.decode(v) for v in value]
        if not isinstance(value, dict):
            return value
        kind = value.get("$")
        if kind in ("tensor", "parameter"):
            return self.decode_tensor(value)
        if kind in _MAKE:
            result = _MAKE[kind](self.decode(value["v"]))
            if "metadata" in value:
                result._metadata = self.decode(value["metadata"])
            return result
        if kind == "float":
            return float.fromhex(value["v"])
        if kind == "complex":
            return complex(*value["v"])
        if kind == "bytes":
            return bytes.fromhex(value["v"])
        if kind == "device":
            return device(value["v"])
        if kind == "dtype":
            return getattr(_C, value["v"])
        raise RuntimeError(f"load: unknown entry {kind!r}; the file is damaged or of a newer version")


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Reads what `save` wrote. Nothing in the file is executed, with or without `weights_only`.

    Args:
        f (path or binary file).
        map_location (device, str or dict): where tensors go; by default where they were.

    Raises:
        FileNotFoundError: no such file.
        RuntimeError: not a file of `save`, or a damaged one.
    """
    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise FileNotFoundError(2, "No such file or directory", os.fspath(f))
    try:
        with zipfile.ZipFile(f) as archive:
            if "tree.json" not in archive.namelist():
                raise RuntimeError("load: the archive was not written by rustgrad.save; expected an entry tree.json")
            head = json.loads(archive.read("tree.json"))
            if not isinstance(head, dict) or head.get("format") != _FORMAT:
                raise RuntimeError(f"load: unknown format {head.get('format') if isinstance(head, dict) else head!r}")
            return _Reader(archive, map_location).decode(head["tree"])
    except (zipfile.BadZipFile, json.JSONDecodeError, KeyError) as error:
        raise RuntimeError(f"load: not a file written by rustgrad.save, or a damaged one ({error})") from None
