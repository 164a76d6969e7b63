"""`save` and `load`: PyTorch's checkpoint format, read and written without executing anything.

A checkpoint is a zip with a pickle that names storages, and one entry of raw bytes for each storage. A pickle is a
program; here it may build plain values, containers and tensors, and every other name that it calls is refused. Tensors
that share memory share it again after loading. Files of PyTorch before 1.6 (pickles in a row) are read too.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict, defaultdict

from . import _C, _utils
from ._C import Size, Tensor
from ._C import device as _device
from .storage import _KINDS, _NAMES, TypedStorage, UntypedStorage, storage_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from typing import IO, Any

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

_DTYPES = {str(d).rpartition(".")[2]: d for d in vars(_C).values() if isinstance(d, _C.dtype)}
_REBUILDERS = ("_rebuild_tensor", "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_parameter",
               "_rebuild_parameter_with_state")  # fmt: skip
_PLAIN = (type(None), bool, int, float, complex, str, bytes, bytearray, list, tuple, dict, set, frozenset, slice,
          OrderedDict, Counter, defaultdict, Size, _device)  # fmt: skip
_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_safe = []


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Lets `save` and `load` handle more classes and functions: loading a file may then call them."""
    _safe.extend(safe_globals)


def get_safe_globals() -> list[Any]:
    """The classes and functions that were added."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Forgets the classes and functions that were added."""
    _safe.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """`add_safe_globals` for a block."""
    before = list(_safe)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _safe[:] = before


def _latin1(text, encoding):
    """What pickles of protocol 2 call to make bytes; in them, `_codecs.encode`."""
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"load: bytes are encoded as latin1, not {encoding!r}")
    return text.encode("latin1")


def _known_globals():
    """(module, name) in a pickle -> what it stands for here."""
    from .nn.parameter import Parameter

    known = {("torch._utils", name): getattr(_utils, name) for name in _REBUILDERS}
    known |= {("torch", name): dtype for name, dtype in _DTYPES.items()}
    known |= {("torch", name): dtype for name, dtype in _KINDS.items()}
    known |= {("torch.storage", "UntypedStorage"): None, ("torch", "UntypedStorage"): None}
    known |= {("torch", "Size"): Size, ("torch", "device"): _device, ("torch", "Tensor"): Tensor}
    known |= {("torch._tensor", "_rebuild_from_type_v2"): _utils._rebuild_from_type_v2}
    known |= {("torch.nn.parameter", "Parameter"): Parameter, ("_codecs", "encode"): _latin1}
    known |= {("collections", c.__name__): c for c in (OrderedDict, Counter, defaultdict)}
    for cls in (set, frozenset, complex, bytearray, slice, list, dict, tuple, int, float, str, bytes):
        known["builtins", cls.__name__] = known["__builtin__", cls.__name__] = cls
    return known


# --- writing -------------------------------------------------------------------------------------------------
class _Pickler(pickle._Pickler):
    """Pickles tensors as PyTorch does, and refuses what `load` could not read back."""

    def __init__(self, file, protocol, legacy=False):
        super().__init__(file, protocol)
        self.storages, self.kinds, self.legacy = {}, {}, legacy
        self.names = {value: where for where, value in _known_globals().items() if callable(value)}
        self.names[codecs.encode] = ("_codecs", "encode")

    def persistent_id(self, obj):
        if not isinstance(obj, (TypedStorage, UntypedStorage)):
            return None
        untyped = obj.untyped()
        place = self.storages.setdefault(untyped, str(len(self.storages)))
        typed = isinstance(obj, TypedStorage)
        dtype = self.kinds.setdefault(place, obj.dtype if typed else _C.uint8)
        kind = _Name("torch", _NAMES[obj.dtype]) if typed else _Name("torch.storage", "UntypedStorage")
        made = ("storage", kind, place, str(untyped.device), obj.size())
        if not self.legacy:
            return made
        if typed and dtype != obj.dtype:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return (*made, None)

    def reducer_override(self, obj):
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        if type(obj) in _PLAIN or isinstance(obj, (_Name, _C.dtype)) or type(obj) in _safe:
            return NotImplemented
        if callable(obj) and (obj in self.names or obj in _safe):
            return obj.__name__
        raise TypeError(
            f"save: cannot store an object of type {type(obj).__module__}.{type(obj).__qualname__}; expected tensors, "
            "numbers, strings and containers of them. Hint: save model.state_dict() instead of the model, item() or "
            "from_numpy() of what is NumPy's, or allow the class with serialization.add_safe_globals."
        )

    def reduce_tensor(self, t):
        from .nn.parameter import Parameter

        state = {k: v for k, v in t.__dict__.items() if not k.startswith("_")}
        if isinstance(t, Parameter):
            made = (_utils._rebuild_parameter, (t.detach(), t.requires_grad, OrderedDict()))
            return (_utils._rebuild_parameter_with_state, (*made[1], state)) if state else made
        where = (t.storage_offset(), tuple(t.shape), t.stride(), t.requires_grad, OrderedDict())
        if t.dtype in _NAMES:
            made = (_utils._rebuild_tensor_v2, (t._typed_storage(), *where))
        else:
            made = (_utils._rebuild_tensor_v3, (storage_of(t), *where, t.dtype))
        return (_utils._rebuild_from_type_v2, (made[0], Tensor, made[1], state)) if state else made

    def save_global(self, obj, name=None):
        if isinstance(obj, _Name):
            where = (obj.module, obj.name)
        else:
            where = ("torch", name) if isinstance(obj, _C.dtype) else self.names.get(obj)
        if where is None:
            super().save_global(obj, name)
            return
        self.write(b"c" + f"{where[0]}\n{where[1]}\n".encode())
        self.memoize(obj)


class _Name:
    """A class of PyTorch's that only a file names."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __reduce__(self):
        return self.name


def save(
    obj: Any,
    f: str | PathLike[str] | IO[bytes],
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes tensors and containers of them to a file that PyTorch reads as well.

    Args:
        obj: tensors, numbers, strings, bytes, None, dtypes, devices, and lists, tuples, dicts and sets of them.
        f (path or binary file).
        pickle_protocol (int): of the pickle in the file. Default: 2.
        _use_new_zipfile_serialization (bool): False writes the format of PyTorch before 1.6.

    Raises:
        TypeError: `obj` holds something else, such as a module.
        RuntimeError: the directory of `f` does not exist.
    """
    if isinstance(f, (str, os.PathLike)) and not os.path.isdir(parent := os.path.dirname(os.fspath(f)) or "."):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    data = io.BytesIO()
    if not _use_new_zipfile_serialization:
        _write_legacy(data, obj, pickle_protocol)
        with open(f, "wb") if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(f) as file:
            file.write(data.getvalue())
        return
    pickler = _Pickler(data, pickle_protocol)
    pickler.dump(obj)
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if isinstance(f, (str, os.PathLike)) else "archive"
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as archive:
        _entry(archive, f"{root}/data.pkl", data.getvalue())
        _entry(archive, f"{root}/byteorder", b"little")
        for storage, place in pickler.storages.items():
            _entry(archive, f"{root}/data/{place}", _C._storage_bytes(storage._tensor))
        _entry(archive, f"{root}/version", b"3\n")


def _write_legacy(file, obj, protocol):
    """Pickles in a row: a magic number, a version, facts of the machine, the object, storage keys; then raw bytes."""
    sizes = {"short": 2, "int": 4, "long": 4}
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": sizes}
    for fact in (_LEGACY_MAGIC, 1001, machine):
        pickle.dump(fact, file, protocol)
    pickler = _Pickler(file, protocol, legacy=True)
    pickler.dump(obj)
    pickle.dump(list(pickler.storages.values()), file, protocol)
    for storage, place in pickler.storages.items():
        file.write(struct.pack("<q", storage.nbytes() // pickler.kinds[place].itemsize))
        file.write(_C._storage_bytes(storage._tensor))


def _entry(archive, name, data, align=64):
    """Adds an entry whose bytes start at a multiple of `align`, so that a mapped file can be used as it is."""
    info = zipfile.ZipInfo(name)
    at = archive.fp.tell() + 30 + len(name.encode()) + 4
    info.extra = struct.pack("<HH", 0x4246, -at % align) + b"Z" * (-at % align)
    archive.writestr(info, data)


# --- reading -------------------------------------------------------------------------------------------------
class _Unpickler(pickle.Unpickler):
    """Builds what a checkpoint's pickle describes; `fetch(key, nbytes)` gives the bytes of a storage as a tensor."""

    def __init__(self, file, fetch, map_location, encoding="ASCII"):
        super().__init__(file, encoding=encoding)
        self.fetch, self.map_location = fetch, map_location
        self.known, self.storages = _known_globals(), {}

    def find_class(self, module, name):
        if (module, name) in self.known:
            return self.known[module, name]
        module = module.replace("__builtin__", "builtins")
        for allowed in _safe:
            where = allowed if isinstance(allowed, tuple) else (allowed, None)
            if (where[1] or f"{where[0].__module__}.{where[0].__qualname__}") == f"{module}.{name}":
                return where[0]
        raise pickle.UnpicklingError(
            f"Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. "
            "rustgrad executes nothing that a file holds, with weights_only=False neither: save a state_dict, or allow "
            "what you trust with rustgrad.serialization.add_safe_globals."
        )

    def persistent_load(self, saved):
        if not isinstance(saved, tuple) or len(saved) < 5 or saved[0] != "storage":
            raise pickle.UnpicklingError(f"load: unknown reference {saved!r}; expected a storage")
        _, dtype, key, location, size = saved[:5]
        if key not in self.storages:
            nbytes = size * (dtype.itemsize if dtype else 1)
            self.storages[key] = _placed(self.fetch(key, nbytes, dtype), location, self.map_location)
        untyped = self.storages[key]
        return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)


def _placed(flat, location, target):
    """The storage of a CPU tensor where it belongs: where it was saved, or where `map_location` says."""
    if callable(target) and not isinstance(target, _device):
        moved = target(storage_of(flat), location)
        if moved is not None:
            return moved.untyped()
        target = None
    if isinstance(target, dict):
        target = target.get(location)
    place = str(target if target is not None else location)
    if place.startswith("cuda") and target is None:
        from . import cuda

        if not cuda.is_available():
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
                "storages to the CPU."
            )
    return storage_of(flat.to(place))


def load(
    f: str | PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a checkpoint of `save` or of PyTorch. Nothing in it is executed, with or without `weights_only`.

    Args:
        f (path or binary file).
        map_location (device, str, dict or function): where tensors go; by default where they were.
        mmap (bool): map the file instead of reading it; only for a path. Writes do not reach the file.

    Raises:
        FileNotFoundError: no such file.
        EOFError: it is empty.
        pickle.UnpicklingError: it holds more than values, containers and tensors.
        RuntimeError: not a checkpoint, or a damaged one.
    """
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    with open(f, "rb") if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(f) as file:
        start = file.tell()
        magic = file.read(4)
        if not magic:
            raise EOFError("load: the file is empty; expected a checkpoint")
        is_zip = magic == b"PK\x03\x04"
        file.seek(start)
        encoding = pickle_load_args.get("encoding", "utf-8")
        try:
            return _load_zip(file, map_location, mmap) if is_zip else _load_legacy(file, map_location, encoding)
        except pickle.UnpicklingError:
            raise
        except (zipfile.BadZipFile, EOFError, KeyError, IndexError, ValueError, TypeError, AttributeError) as error:
            raise RuntimeError(f"load: not a checkpoint, or a damaged one ({type(error).__name__}: {error})") from None


def _load_zip(file, map_location, mapped):
    with zipfile.ZipFile(file) as archive:
        name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if name is None:
            raise RuntimeError("load: the archive is no checkpoint; expected an entry data.pkl")
        root = name.removesuffix("data.pkl")
        if root + "byteorder" in archive.namelist() and archive.read(root + "byteorder") != b"little":
            raise RuntimeError("load: the checkpoint was written on a big-endian machine, which is not supported")
        memory = _mapping(file) if mapped else None

        def fetch(key, nbytes, dtype):
            info = archive.getinfo(f"{root}data/{key}")
            if info.file_size < nbytes:
                raise RuntimeError(f"load: storage {key} has {info.file_size} bytes, but {nbytes} are used")
            if memory is None or info.compress_type != zipfile.ZIP_STORED or not info.file_size:
                return _C._from_storage_bytes(archive.read(info), dtype or _C.uint8)
            file.seek(info.header_offset + 26)
            at = info.header_offset + 30 + sum(struct.unpack("<HH", file.read(4)))
            return _C.frombuffer(memory, dtype=_C.uint8, count=info.file_size, offset=at)

        return _Unpickler(io.BytesIO(archive.read(name)), fetch, map_location, "utf-8").load()


def _mapping(file):
    import mmap

    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _load_legacy(file, map_location, encoding):
    """What `_write_legacy` writes."""
    flats = {}

    def fetch(key, nbytes, dtype):
        kind = dtype or _C.uint8
        return flats.setdefault(key, _C.ops["empty"](nbytes // kind.itemsize, dtype=kind))

    def plain():
        return _Unpickler(file, None, None).load()

    try:
        magic = plain()
    except pickle.UnpicklingError as error:
        known = "Unsupported global" in str(error)
        raise error if known else pickle.UnpicklingError(f"load: not a checkpoint ({error})") from None
    if magic != _LEGACY_MAGIC:
        raise RuntimeError("load: not a checkpoint; expected a file of save")
    plain(), plain()
    # The bytes come after the object: it is read a second time once they are there.
    start = file.tell()
    _Unpickler(file, fetch, "cpu", encoding).load()
    for key in plain():
        count = struct.unpack("<q", file.read(8))[0]
        flat = flats[key]
        flat.copy_(_C._from_storage_bytes(file.read(count * flat.itemsize), flat.dtype))
    file.seek(start)
    return _Unpickler(file, fetch, map_location, encoding).load()


def __dir__() -> list[str]:
    return __all__
