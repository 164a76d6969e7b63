"""`save` and `load`: PyTorch's checkpoint format, read without executing anything unless the caller trusts the file.

A checkpoint is a zip with a pickle that names storages, and one entry of raw bytes for each storage. A pickle is a
program; by default it may build plain values, containers and tensors, and a call of any other name is rejected.
Tensors that share memory share it again after loading. Files of PyTorch before 1.6 (consecutive pickles) are read too.
Classes of this package are written under PyTorch's names, so that each of the two reads the other's modules.
"""

from __future__ import annotations

import codecs
import collections.abc
import contextlib
import enum
import functools
import io
import operator
import os
import pickle
import struct
import sys
import types
import warnings
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable
from os import PathLike
from typing import IO, Any

from . import _C, _utils
from ._archive import LENGTHS, add_entry, add_room, entry_bytes, entry_into, exactly, fill_exactly, is_plain
from ._C import Tensor
from ._C import device as _device
from ._checkpoint_files import Sink, opened
from ._formats import qscheme, strided
from ._own import is_own
from ._pickled_names import counterpart
from ._renamed import is_renamed
from ._safe_globals import (
    BLOCKED,
    OWN,
    add_safe_globals,
    allowed,
    calls,
    clear_safe_globals,
    get_safe_globals,
    known_globals,
    may_be_made,
    safe_globals,
    torch_name,
)
from ._save_options import (
    MAP_SHARED,
    get_crc32_options,
    get_default_mmap_options,
    set_crc32_options,
    set_default_mmap_options,
    skip_data,
    skips_data,
)
from ._unpickler import CheckpointError, Skimmer, Unpickler, names_in
from .storage import _NAMES, TypedStorage, UntypedStorage, integers_of, lend, storage_of
from .storage import normalize_storage_type as normalize_storage_type

__all__ = ["CheckpointError", "add_safe_globals", "clear_safe_globals", "default_restore_location", "get_safe_globals",
           "get_unsafe_globals_in_checkpoint", "LoadEndianness", "get_crc32_options", "get_default_load_endianness",
           "get_default_mmap_options", "load", "location_tag", "register_package", "safe_globals", "save",
           "set_crc32_options", "set_default_load_endianness", "set_default_mmap_options", "skip_data"]  # fmt: skip

# The version of pickle in which checkpoints are written.
DEFAULT_PROTOCOL = 2

# The type of `load`'s argument `map_location`, for annotations.
MAP_LOCATION = collections.abc.Callable | _device | str | dict[str, str] | None

_LEGACY_MAGIC = 0x1950A86A20F9469CFC6C
_packages = []


# --- writing -------------------------------------------------------------------------------------------------
class _Name:
    """A PyTorch class that exists only as a name in files."""

    def __init__(self, module, name):
        self.module, self.name = module, name

    def __reduce__(self):
        return self.name


@functools.cache
def _names():
    """What is written under a name of PyTorch's, and that name."""
    known = {value: where for where, value in known_globals().items() if callable(value) or isinstance(value, qscheme)}
    return known | {codecs.encode: ("_codecs", "encode")}


class _Writer:
    """Pickler mixin: tensors and storages as PyTorch writes them, classes of this package under PyTorch's names."""

    def __init__(self, file, protocol):
        super().__init__(file, protocol)
        self.storages, self.kinds, self.legacy = {}, {}, False
        self.names = _names()

    def persistent_id(self, obj):
        # Of the type, since this is asked of every object, and the classes of storages look at their instances.
        if not issubclass(type(obj), (TypedStorage, UntypedStorage)):
            return None
        untyped = obj.untyped()
        place = self.storages.setdefault(untyped, str(len(self.storages)))
        typed = isinstance(obj, TypedStorage)
        dtype = obj.dtype if typed else _C.uint8
        if self.kinds.setdefault(place, dtype) != dtype and untyped.nbytes():
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        kind = _Name("torch", _NAMES[dtype]) if typed else _Name("torch.storage", "UntypedStorage")
        made = ("storage", kind, place, location_tag(untyped), obj.size())
        return (*made, None) if self.legacy else made

    def reducer_override(self, obj):
        if isinstance(obj, Tensor):
            return self.reduce_tensor(obj)
        if is_renamed(type(obj)):
            return obj.__reduce_ex__(2)
        # Without this, functions would bypass `save_global` below.
        return obj.__qualname__ if isinstance(obj, types.FunctionType) else NotImplemented

    def reduce_tensor(self, t):
        from .nn.parameter import Parameter, is_lazy

        if is_lazy(t) or not is_own(type(t).__reduce_ex__) or "_wrapped_device" in t.__dict__:
            # What a class says of itself, as in other pickles.
            return t.__reduce_ex__(2)
        state = _utils._state_of(t, {k: v for k, v in t.__dict__.items() if not k.startswith("_")})
        if isinstance(t, Parameter):
            made = (_utils._rebuild_parameter, (t.detach(), t.requires_grad, OrderedDict()))
            return (_utils._rebuild_parameter_with_state, (*made[1], state)) if state else made
        _utils._warn_of_hooks(t)
        if t.layout is not strided or t.is_nested or t.is_quantized or hasattr(t, "_masked_mask"):
            return t.__reduce_ex__(2)
        made = _utils._parts_of(t)
        if not state and (t.is_meta or type(t) is Tensor):
            return made
        return (_utils._rebuild_from_type_v2, (made[0], type(t), made[1], state))

    def place_of(self, obj, name):
        """The module and name of PyTorch's under which an object is written, or None."""
        module = getattr(obj, "__module__", None)
        if isinstance(obj, _Name):
            return (obj.module, obj.name)
        if isinstance(obj, _C.dtype):
            return ("torch", name)
        where = self.names.get(obj)
        if where is None and isinstance(module, str) and torch_name(module) != module:
            where = (torch_name(module), name or obj.__qualname__)
        return where

    def save_global(self, obj, name=None):
        where = self.place_of(obj, name)
        if where is None:
            super().save_global(obj, name)
            return
        path, _, last = where[1].rpartition(".")
        if path:  # an attribute of a class: the old protocols have no names with dots
            owner = operator.attrgetter(path)(sys.modules[obj.__module__])
            self.save_reduce(getattr, (owner, last), obj=obj)
            return
        self.write(b"c" + f"{where[0]}\n{where[1]}\n".encode())
        self.memoize(obj)


def _pickler(module, file, protocol):
    """A pickler for checkpoints, based on that of `pickle` or of a replacement module."""
    base = getattr(module, "_Pickler", None) or module.Pickler
    return type("_Pickler", (_Writer, base), {})(file, protocol)


def save(
    obj: Any,
    f: str | PathLike[str] | IO[bytes],
    pickle_module: Any = pickle,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes tensors, containers of them, modules and other picklable objects to a file that PyTorch can read.

    A `state_dict` is what `load` reads by default; a whole module needs `weights_only=False` or `add_safe_globals`.

    Args:
        obj: the object to save. Classes and functions are saved by name, not by their code.
        f (path or binary file): a file needs only `write`.
        pickle_module (module): its `Pickler` writes everything but tensors. Default: Python's.
        pickle_protocol (int): of the pickle in the file. Default: 2.
        _use_new_zipfile_serialization (bool): False writes the format of PyTorch before 1.6.

    Raises:
        pickle.PicklingError, AttributeError, TypeError: something in `obj` cannot be pickled, such as a lambda.
        RuntimeError: the directory of `f` does not exist, or two tensors view the same memory as different types.
    """
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and not os.path.isdir(parent := os.path.dirname(os.fspath(f)) or "."):
        raise RuntimeError(f"Parent directory {parent} does not exist.")
    if not is_path and not hasattr(f, "write"):
        raise AttributeError(f"save: expected a path or a file to write to, got {type(f).__name__}")
    if not _use_new_zipfile_serialization:
        if skips_data():
            raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
        _write_legacy(f, obj, pickle_module or pickle, pickle_protocol)
        return
    data = io.BytesIO()
    pickler = _pickler(pickle_module or pickle, data, pickle_protocol)
    pickler.dump(obj)
    root = os.path.splitext(os.path.basename(os.fspath(f)))[0] if is_path else "archive"
    with zipfile.ZipFile(f if is_path else Sink(f), "w", zipfile.ZIP_STORED) as archive:
        add_entry(archive, f"{root}/data.pkl", data.getvalue())
        if not _disable_byteorder_record:
            add_entry(archive, f"{root}/byteorder", b"little")
        for storage, place in pickler.storages.items():
            entry = f"{root}/data/{place}"
            if skips_data():
                add_room(archive, entry, storage.nbytes())
            else:
                lend(storage, functools.partial(add_entry, archive, entry))
        add_entry(archive, f"{root}/version", b"3\n")


def _write_legacy(f, obj, module, protocol):
    """Consecutive pickles: a magic number, a version, machine properties, the object, storage keys; then raw bytes."""
    sizes = {"short": 2, "int": 4, "long": 4}
    machine = {"protocol_version": 1001, "little_endian": True, "type_sizes": sizes}
    head = io.BytesIO()
    for fact in (_LEGACY_MAGIC, 1001, machine):
        pickle.dump(fact, head, protocol)
    pickler = _pickler(module, head, protocol)
    pickler.legacy = True
    pickler.dump(obj)
    pickle.dump(list(pickler.storages.values()), head, protocol)
    with open(f, "wb") if isinstance(f, (str, os.PathLike)) else contextlib.nullcontext(Sink(f)) as file:
        file.write(head.getvalue())
        for storage, place in pickler.storages.items():
            file.write(struct.pack("<q", storage.nbytes() // pickler.kinds[place].itemsize))
            lend(storage, file.write)
        file.flush()


# --- byte order ----------------------------------------------------------------------------------------------
class LoadEndianness(enum.Enum):
    """The byte order of a checkpoint that does not record it."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


_endianness = None


def get_default_load_endianness() -> LoadEndianness | None:
    """What `set_default_load_endianness` set, or None: this machine's."""
    return _endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of checkpoints that do not record it: a `LoadEndianness`, or None for this machine's."""
    global _endianness
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(f"Invalid argument type in function set_default_load_endianness: {type(endianness).__name__}")
    _endianness = endianness


def _is_swapped(record):
    """Whether a checkpoint with this byte order record (None: it has none) needs its bytes swapped."""
    if record not in (None, b"little", b"big"):
        raise CheckpointError(f"Unknown endianness type: {record[:20]!r}")
    little = (
        _endianness is not LoadEndianness.BIG if _endianness in (LoadEndianness.LITTLE, LoadEndianness.BIG) else None
    )
    file_is_little = record == b"little" if record else little if little is not None else sys.byteorder == "little"
    return file_is_little != (sys.byteorder == "little")


def _swapped(data, dtype):
    """`data` with the bytes of each number swapped; complex numbers count as two."""
    width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
    turned = bytearray(data)
    for k in range(width):
        turned[k::width] = data[width - 1 - k :: width]
    return bytes(turned)


# --- reading -------------------------------------------------------------------------------------------------
class _Reader:
    """Common to both ways of reading a pickle: storages by key. `fetch(key, nbytes, dtype)` returns their bytes."""

    def __init__(self, fetch, map_location):
        self.fetch, self.map_location = fetch, map_location
        self.known, self.storages, self.slices = known_globals(), {}, {}

    def persistent_load(self, saved):
        # Strings of Python 2, read with encoding="bytes".
        if isinstance(saved, tuple):
            saved = tuple(part.decode("ascii", "replace") if isinstance(part, bytes) else part for part in saved)
        if not isinstance(saved, tuple) or len(saved) < 5 or saved[0] != "storage" or self.fetch is None:
            raise CheckpointError(f"unknown reference {str(saved)[:100]}; expected a storage")
        _, dtype, key, location, size = saved[:5]
        if not (isinstance(key, (str, int)) and isinstance(size, int) and size >= 0):
            raise CheckpointError(f"a storage has the key {key!r} and the size {size!r}")
        if not (dtype is None or isinstance(dtype, _C.dtype)):
            raise CheckpointError(f"a storage is of {str(dtype)[:100]}; expected a class of storages")
        if key not in self.storages:
            nbytes = size * (dtype.itemsize if dtype else 1)
            self.storages[key] = _placed(
                self.fetch(key, nbytes, dtype and integers_of(dtype)), location, self.map_location
            )
        untyped = self.storages[key]
        if len(saved) > 5 and saved[5] is not None:
            untyped = self.slice_of(untyped, saved[5], size, dtype.itemsize if dtype else 1)
        return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)

    def slice_of(self, storage, part, size, width):
        """Part (key, offset, length) of a storage, in elements: what PyTorch before 0.4 saved of views of storages."""
        key, start, length = part if isinstance(part, tuple) and len(part) == 3 else (None,) * 3
        if not (isinstance(key, (str, int)) and all(type(n) is int and n >= 0 for n in (start, length))):
            raise CheckpointError(f"a part of a storage is {str(part)[:100]}; expected a key, an offset and a length")
        if start + length > size:
            raise CheckpointError(f"elements {start} to {start + length} of a storage of {size} are used")
        if key not in self.slices:
            self.slices[key] = storage[start * width : (start + length) * width]
        return self.slices[key]


class _Careful(_Reader):
    """Reads an untrusted pickle."""

    def __init__(self, file, fetch, map_location, encoding):
        super().__init__(fetch, map_location)
        self.allowed = allowed()
        self.machine = Unpickler(file, self.find, calls(), may_be_made, self.persistent_load, encoding)
        self.load = self.machine.load

    def find(self, module, name):
        # Python's pickler, which some programs write files of records with, names functions as this package does.
        if (torch_name(module), name) in self.known:
            return self.known[torch_name(module), name]
        full = f"{module.replace('__builtin__', 'builtins')}.{name}"
        if module.partition(".")[0] in BLOCKED:
            raise CheckpointError(f"Trying to load unsupported GLOBAL {full} whose module {module} is blocked.")
        if full in self.allowed:
            return self.allowed[full]
        raise CheckpointError(
            f"Weights only load failed. Unsupported global: GLOBAL {module}.{name} was not an allowed global by default. "
            "By default nothing that a file names is executed: save a state_dict, or allow what you trust with "
            f"{OWN}.serialization.add_safe_globals, or, if you trust the whole file, pass weights_only=False."
        )


def _trusting(module, file, fetch, map_location, options):
    """Reads a trusted pickle with Python's unpickler, which calls what the file names."""
    reader = _Reader(fetch, map_location)

    class Trusting(module.Unpickler):
        def find_class(self, where, name):
            if (where, name) in reader.known:
                return reader.known[where, name]
            if where == "torch" or where.startswith("torch."):
                return counterpart(where, name)
            return super().find_class(where, name)

        persistent_load = staticmethod(reader.persistent_load)

    return Trusting(file, **options)


def register_package(
    priority: int, tagger: Callable[[Any], str | None], deserializer: Callable[[Any, str], Any]
) -> None:
    """Registers how storages of a kind are tagged when they are saved and placed when they are loaded.

    Args:
        priority (int): the lowest is tried first.
        tagger (function): storage -> location (str) or None.
        deserializer (function): (storage, location) -> storage or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The location under which a storage is saved: the first that a registered package returns, else its device."""
    found = (tagger(storage) for _, tagger, _ in _packages)
    return next((tag for tag in found if tag is not None), None) or str(storage.device)


def default_restore_location(storage: Any, location: str) -> Any:
    """A loaded storage at `location`, by the first registered package that accepts it, else on that device."""
    for _, _, deserializer in _packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    if location.startswith("cuda"):
        from . import cuda

        if not cuda.is_available():
            raise RuntimeError(
                "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. If you are "
                "running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') to map your "
                "storages to the CPU."
            )
    untyped = storage.untyped()
    if location == str(untyped.device):
        return untyped
    return storage_of(untyped._as(untyped._tensor.dtype).to(location))


def _placed(flat, location, target):
    """Moves the storage of a CPU tensor to its location: where it was saved, or as given by `map_location`."""
    storage = storage_of(flat)
    if isinstance(target, dict):
        target = target.get(location, location)
    elif callable(target) and not isinstance(target, _device):
        moved = target(storage, location)
        if moved is not None:
            return moved.untyped()
        target = None
    if target is not None:
        return storage_of(flat.to(target))
    return default_restore_location(storage, str(location)).untyped()


def load(
    f: str | PathLike[str] | IO[bytes],
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads a checkpoint of `save` or of PyTorch.

    With `weights_only` (the default) nothing in the file is executed: it builds values, containers, tensors, and what
    `add_safe_globals` allows. With `weights_only=False` the file may call any function of any module that can be
    imported: pass it only for files that you trust, such as whole modules that you saved yourself.

    Args:
        f (path or binary file): a file needs `read`, `readline`, `tell` and `seek`.
        map_location (device, str, dict or function): the devices of tensors. Default: as saved.
        pickle_module (module): its `Unpickler` reads everything but tensors; the file is trusted then.
        weights_only (bool): whether the file may only hold data. Default: True without `pickle_module`.
        mmap (bool): map the file instead of reading it; only for a path. Writes do not reach the file, unless
            `set_default_mmap_options(mmap.MAP_SHARED)`.
        encoding (str): of strings that Python 2 wrote. With `weights_only=False` all arguments of an `Unpickler` are taken.

    Raises:
        TypeError: an unknown argument.
        FileNotFoundError: no such file.
        EOFError: it is empty.
        CheckpointError: any other problem with the file; it is both an UnpicklingError and a RuntimeError.
    """
    if mmap and not isinstance(f, (str, os.PathLike)):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if weights_only is None and pickle_module is not None:
        weights_only = False
    weights_only = _forced(weights_only)
    unknown = sorted(pickle_load_args.keys() - {"encoding"})
    if weights_only and unknown:
        raise TypeError(f"load: got an unexpected keyword argument {unknown[0]!r}")
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path:
        missing = [n for n in ("read", "readline", "tell", "seek") if not hasattr(f, n)]
        if missing:
            raise AttributeError(f"load: expected a path or a file with {missing[0]}, got {type(f).__name__}")
    options = {"encoding": "utf-8", **pickle_load_args}

    def unpickler(file, fetch, place):
        if weights_only:
            return _Careful(file, fetch, place, options["encoding"])
        return _trusting(pickle_module or pickle, file, fetch, place, options)

    with _naming(os.fspath(f) if is_path else None), opened(f) as file:
        start = file.tell()
        magic = file.read(4)
        if not magic:
            raise EOFError("load: the file is empty; expected a checkpoint")
        file.seek(start)
        if magic == b"PK\x03\x04":
            if _is_script(file):
                return _load_script(file, map_location, weights_only)
            return _load_zip(file, map_location, mmap, unpickler)
        return _load_legacy(file, map_location, unpickler)


def get_unsafe_globals_in_checkpoint(f: str | PathLike[str] | IO[bytes]) -> list[str]:
    """The names in a checkpoint (path or binary file) that `load` would currently reject, as "module.name"."""
    with _naming(None), opened(f) as file, zipfile.ZipFile(file) as archive:
        name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if name is None:
            raise CheckpointError("the archive is no checkpoint; expected an entry data.pkl")
        names = names_in(io.BytesIO(entry_bytes(archive, name)))
    known, permitted = known_globals(), allowed()
    full = [(where, ".".join(where)) for where in names]
    return [text for where, text in full if where not in known and text not in permitted]


def _forced(weights_only):
    """`weights_only` as given by the caller, by default True, unless PyTorch's environment variables force it."""
    on, off = (os.environ.get(f"TORCH_FORCE_{n}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true")
               for n in ("", "NO_"))  # fmt: skip
    if on and off:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set."
        )
    if off and weights_only is None:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the `weights_only` argument was not "
            "explicitly passed to `torch.load`, forcing weights_only=False.",
            stacklevel=3,
        )
    if on or (off and weights_only is None):
        return on
    return weights_only is not False


@contextlib.contextmanager
def _naming(path):
    """Adds the file name to errors."""
    what = "load: " if path is None else f"load: {path}: "
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(what + str(error)) from error.__cause__
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, struct.error, pickle.UnpicklingError) as error:
        raise CheckpointError(f"{what}no checkpoint, or a damaged one ({_trouble(error)})") from None


def _trouble(error):
    """A description of the problem with an archive."""
    words = str(error)
    if isinstance(error, zipfile.BadZipFile) and ("not a zip" in words or "EOCD" in words):
        return "the directory at the archive's end is missing: the file is cut short"
    return words or type(error).__name__


def _load_zip(file, map_location, mapped, unpickler):
    with zipfile.ZipFile(file) as archive:
        name = next((n for n in archive.namelist() if n.endswith("/data.pkl")), None)
        if name is None:
            raise CheckpointError("the archive is no checkpoint; expected an entry data.pkl")
        root = name.removesuffix("data.pkl")
        record = entry_bytes(archive, root + "byteorder") if root + "byteorder" in archive.namelist() else None
        swapped = _is_swapped(record)
        memory = _mapping(file) if mapped and not swapped else None

        def fetch(key, nbytes, dtype):
            try:
                info = archive.getinfo(f"{root}data/{key}")
            except KeyError:
                raise CheckpointError(f"storage {key} is missing") from None
            if info.file_size < nbytes:
                raise CheckpointError(f"storage {key} has {info.file_size} bytes, but {nbytes} are used")
            if skips_data() and is_plain(info):
                return entry_into(
                    archive, info, lambda _: _C.ops["zeros"](info.file_size, dtype=_C.uint8, device="cpu")
                )
            if memory is None or info.compress_type != zipfile.ZIP_STORED or not info.file_size:
                kind, size = dtype or _C.uint8, info.file_size
                # A bool that is no 0 or 1 has to be found.
                if is_plain(info) and not swapped and kind != _C.bool and size % kind.itemsize == 0:
                    return entry_into(archive, info, lambda fill: _filled(size // kind.itemsize, kind, fill))
                data = entry_bytes(archive, info)
                return _C._from_storage_bytes(_swapped(data, dtype) if swapped and dtype else data, dtype or _C.uint8)
            lengths = info.header_offset + 26
            if lengths + 4 > len(memory):
                raise CheckpointError("the file is cut short")
            at = lengths + 4 + sum(LENGTHS.unpack_from(memory, lengths))
            if at + info.file_size > len(memory):
                raise CheckpointError(f"storage {key} reaches past the end of the file")
            return _C.frombuffer(memory, dtype=_C.uint8, count=info.file_size, offset=at)

        return unpickler(io.BytesIO(entry_bytes(archive, name)), fetch, map_location).load()


def _is_script(file):
    """Whether a zip is an archive of TorchScript."""
    start = file.tell()
    with zipfile.ZipFile(file) as archive:
        found = any(name.endswith("/constants.pkl") for name in archive.namelist())
    file.seek(start)
    return found


def _load_script(file, map_location, weights_only):
    """What PyTorch does with an archive of TorchScript: an error, or a warning and `jit.load`."""
    if weights_only:
        raise RuntimeError(
            "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. Hint: call jit.load, which runs nothing"
            " but TorchScript."
        )
    warnings.warn(
        "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call 'torch.jit.load'"
        " directly to silence this warning)",
        UserWarning,
        stacklevel=3,
    )
    from .jit import load as load_script

    return load_script(file, map_location)


def _filled(count, dtype, fill):
    """A tensor of `count` elements that `fill(view)` gives their bytes."""
    flat = _C.ops["empty"](count, dtype=dtype, device="cpu")
    if count:
        _C._lend_storage(fill, flat, True)
    return flat


def _mapping(file):
    import mmap

    if get_default_mmap_options() == MAP_SHARED:
        with open(file.name, "r+b") as writable:
            return mmap.mmap(writable.fileno(), 0, access=mmap.ACCESS_WRITE)
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)


def _load_legacy(file, map_location, unpickler):
    """Reads the format of `_write_legacy`."""
    flats = {}

    def fetch(key, nbytes, dtype):
        """Allocates a storage; its bytes follow the object, so the file must still hold that many."""
        kind = dtype or _C.uint8
        if nbytes > end:
            raise CheckpointError(f"storage {key} has {nbytes} bytes, but the file has {end}")
        return flats.setdefault(key, _C.ops["empty"](nbytes // kind.itemsize, dtype=kind, device="cpu"))

    def plain():
        return _Careful(file, None, None, "utf-8").load()

    start = file.tell()
    end = file.seek(0, os.SEEK_END)
    file.seek(start)
    try:
        magic = plain()
    except CheckpointError as error:
        if "Unsupported global" in str(error):
            raise
        raise CheckpointError(f"not a checkpoint ({error})") from None
    if type(magic) is not int or magic != _LEGACY_MAGIC:
        raise CheckpointError("not a checkpoint; expected a file of save")
    plain(), plain()
    # The bytes follow the object: a first scan finds the storages it names, without building anything.
    start = file.tell()
    reader = _Reader(fetch, "cpu")
    Skimmer(file, reader.known, reader.persistent_load).load()
    keys = plain()
    if type(keys) is not list:
        raise CheckpointError("the list of storages is missing")
    for key in keys:
        count = struct.unpack("<q", exactly(file, 8))[0]
        flat = flats.get(key) if isinstance(key, (str, int)) else None
        if flat is None or not 0 <= count <= flat.numel():
            raise CheckpointError(f"storage {key} has {count} elements, which the object does not ask for")
        size = count * flat.itemsize
        if skips_data():
            flat.zero_()
            file.seek(size, os.SEEK_CUR)
            continue
        if flat.dtype == _C.bool:
            flat[:count].copy_(_C._from_storage_bytes(exactly(file, size), flat.dtype))
        elif size:
            _C._lend_storage(lambda view, size=size: fill_exactly(file, view[:size]), flat, True)
    behind = file.tell()
    file.seek(start)
    made = unpickler(file, fetch, map_location).load()
    file.seek(behind)
    return made


def __dir__() -> list[str]:
    return __all__
