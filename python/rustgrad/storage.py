"""`UntypedStorage` and `TypedStorage`: the memory under tensors, as bytes and as elements of a dtype.

A storage object gives access to memory that some tensor owns; it is created on demand, and the same object
is returned while it lives, so that a pickle of several views holds their memory once.
"""

from __future__ import annotations

import functools
import io
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

from . import _C
from ._C import Tensor, ops
from ._C import dtype as _dtype
from ._files import map_file, path_at
from ._storage_moves import DTYPES, Moves
from ._typing import DeviceLike, Self

__all__ = ["TypedStorage", "UntypedStorage"]

_LIVE = weakref.WeakValueDictionary()

_KINDS = {
    "DoubleStorage": _C.float64, "FloatStorage": _C.float32, "HalfStorage": _C.float16, "BFloat16Storage": _C.bfloat16,
    "LongStorage": _C.int64, "IntStorage": _C.int32, "ShortStorage": _C.int16, "CharStorage": _C.int8,
    "ByteStorage": _C.uint8, "BoolStorage": _C.bool, "ComplexFloatStorage": _C.complex64,
    "ComplexDoubleStorage": _C.complex128, "QUInt8Storage": _C.quint8, "QInt8Storage": _C.qint8,
    "QInt32Storage": _C.qint32, "QUInt4x2Storage": _C.quint4x2, "QUInt2x4Storage": _C.quint2x4,
}  # fmt: skip
# The dtype of the integers of a quantised dtype.
_INTEGERS = {
    _C.quint8: _C.uint8, _C.qint8: _C.int8, _C.qint32: _C.int32, _C.quint4x2: _C.uint8, _C.quint2x4: _C.uint8,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _KINDS.items()}


def integers_of(dtype: _dtype) -> _dtype:
    """The dtype of the integers of a quantised dtype; another one as it is."""
    return _INTEGERS.get(dtype, dtype)


def storage_of(tensor: Tensor) -> UntypedStorage:
    """The storage under a tensor; the same object while one lives."""
    place, key = str(tensor.device), _C._storage_key(tensor)
    found = _LIVE.get((place, key))
    if found is None:
        found = UntypedStorage.__new__(UntypedStorage)
        found._tensor = tensor.detach()
        _LIVE[place, key] = found
    return found


def lend(storage: UntypedStorage, use: Callable[[memoryview], Any]) -> Any:
    """`use` of the bytes of a storage: of its memory, or of a copy of what is on a GPU."""
    t = storage._tensor
    return _C._lend_storage(use, t) if t.is_cpu else use(_C._storage_bytes(t))


def normalize_storage_type(storage_type: type) -> type:
    """The class that the package itself has under the name of a class of storages."""
    import rustgrad

    return getattr(rustgrad, storage_type.__name__)


def _in_native_order(memory, byte_order, dtype):
    """Swaps bytes of another order, for each number (each component of a complex one)."""
    if byte_order not in ("native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big' or 'little')")
    if byte_order not in ("native", sys.byteorder):
        memory.byteswap(dtype)
    return memory


class UntypedStorage(Moves):
    """A block of memory as bytes.

    Args:
        size (int or sequence of int): a number of uninitialised bytes, or their values.
        device (device): default: the CPU.
    """

    def __init__(self, size: int | Sequence[int] = 0, *, device: DeviceLike = "cpu") -> None:
        if hasattr(size, "__index__"):
            self._tensor = ops["empty"](size, dtype=_C.uint8, device=device)
        else:
            self._tensor = _C.tensor(list(size), dtype=_C.uint8, device=device)
        _LIVE[str(self._tensor.device), _C._storage_key(self._tensor)] = self

    @property
    def _whole(self):
        if self._tensor.is_gpu:
            raise RuntimeError("UntypedStorage: the bytes of a GPU's memory cannot be reached. Use cpu() first.")
        return _C._storage_as_bytes(self._tensor)

    @property
    def _bytes(self):
        if self._tensor.is_meta:
            raise NotImplementedError(
                "UntypedStorage: Not available for 'meta' device type; a storage there has no bytes"
            )
        return self._whole

    def _as(self, dtype):
        """All of the memory as a tensor of one dimension."""
        return _C._over_storage(self._tensor, integers_of(dtype), 0, [self.nbytes() // dtype.itemsize], [1])

    @property
    def device(self) -> _C.device:
        """The device of the memory."""
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        """False: there is no CUDA."""
        return False

    @classmethod
    def from_file(cls, filename: str | PathLike[str], shared: bool = False, nbytes: int = 0) -> UntypedStorage:
        """The first bytes of a file, mapped into memory.

        Args:
            filename (str or path): the file.
            shared (bool): writes reach the file, which is created or extended if necessary. Default: False.
            nbytes (int): number of bytes.

        Raises:
            RuntimeError: the file cannot be opened, or is too short and not shared.
        """
        return storage_of(map_file(filename, shared, nbytes))

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0, *, dtype: _dtype
    ) -> UntypedStorage:
        """A copy of the bytes of an object with the buffer protocol, in the machine's byte order.

        Args:
            byte_order (str): "big", "little" or "native": the byte order in the buffer.
            count (int): number of elements from byte `offset` on; -1 for all.
            dtype (dtype): of the numbers.

        Raises:
            TypeError: no `byte_order` for numbers of several bytes.
            ValueError: a range that does not fit.
        """
        if byte_order is None and dtype.itemsize > 1:
            raise TypeError("function missing required argument 'byte_order' (pos 2)")
        kind = _C.uint8 if dtype == _C.bool else dtype
        copied = _C.frombuffer(bytearray(buffer), dtype=kind, count=count, offset=offset).clone()
        return _in_native_order(storage_of(copied.to(dtype)), byte_order or "native", dtype)

    def byteswap(self, dtype: _dtype) -> None:
        """Swaps the bytes of each number of a dtype, in place."""
        n = dtype.to_real().itemsize
        numbers = self._bytes[: self.nbytes() // n * n].view(-1, n)
        numbers.copy_(numbers.flip(1))

    def _as_data(self, dtype):
        return self._as(dtype or _C.get_default_dtype())

    @property
    def filename(self) -> str | None:
        """The path of the file that shares the memory; None without one."""
        return path_at(self.data_ptr())

    def nbytes(self) -> int:
        """The number of bytes."""
        return _C._storage_info(self._tensor)[1]

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    @property
    def _cdata(self) -> int:
        return _C._storage_key(self._tensor)

    def resizable(self) -> bool:
        """Whether the memory can grow: it is not a slice or file, and was not exported to another library."""
        return _C._storage_resizable(self._tensor)

    def size(self) -> int:
        """The number of bytes."""
        return self.nbytes()

    __len__ = nbytes

    def element_size(self) -> int:
        """1: an element is a byte."""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte; 0 on other devices than the CPU."""
        return self._bytes.data_ptr() if self._tensor.is_cpu else 0

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def type(self) -> str:
        """The name of the type."""
        return "torch.storage.UntypedStorage"

    def is_shared(self) -> bool:
        """Whether other processes can map the memory: `share_memory_`, or a file."""
        return self._tensor.is_cpu and (_C._shared_place(self._tensor) is not None or self.filename is not None)

    def share_memory_(self) -> Self:
        """Moves the memory to shared memory, where it stays; nothing if it is there.

        Raises:
            RuntimeError: the memory is a GPU's, or cannot be had.
        """
        if self._tensor.is_meta:
            raise NotImplementedError("share_memory_: Cannot copy out of meta tensor; no data!")
        if not self._tensor.is_cpu:
            raise RuntimeError("share_memory_: a GPU's memory is not shared between processes. Use cpu() first.")
        if not self.is_shared():
            self._share_place()
        return self

    def _share_place(self) -> Any:
        """Descriptor, size, position and file of the shared memory, to which the storage moves first if necessary."""
        place = _C._shared_place(self._tensor)
        if place is None or (place[0] is None and place[3] is None):
            from .multiprocessing import strategy

            named = strategy.get_sharing_strategy() == "file_system"
            _C._share(self._tensor, strategy.create(self.nbytes()) if named else None)
            place = _C._shared_place(self._tensor)
        return place

    def __getitem__(self, index: Any) -> Any:
        if not isinstance(index, slice):
            whole, n = self._bytes, self.nbytes()
            if not -n <= index < n:
                raise IndexError(f"index {index} out of range for storage of size {n}")
            return whole[index].item()
        start, stop, step = index.indices(self.nbytes())
        if step != 1:
            raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
        return storage_of(_C._storage_slice(self._bytes, start, max(start, stop)))

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The bytes as a list of ints."""
        return list(_C._storage_bytes(self._tensor if self._tensor.is_gpu else self._bytes))

    def fill_(self, value: Any) -> Self:
        """Sets every byte."""
        self._whole.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copies the bytes of another storage of the same size."""
        self._whole.copy_(source.untyped()._whole)
        return self

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return storage_of(self._as(self._tensor.dtype).clone())

    def _to_device(self, device):
        return storage_of(self._as(self._tensor.dtype).to(device))

    def resize_(self, size: int) -> Self:
        """Changes the number of bytes; kept bytes stay."""
        _C._resize(self._whole, [size])
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.device == other.device and _C._storage_key(self._tensor) == _C._storage_key(other._tensor)

    def __hash__(self) -> int:
        return _C._storage_key(self._tensor)

    def __repr__(self) -> str:
        lines = "..." if self._tensor.is_meta else "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self) -> Any:
        return (_rebuild_storage, (_C._storage_bytes(self._tensor), self._tensor.dtype, str(self.device)))


def _rebuild_storage(data, dtype, device):
    return storage_of(_C._from_storage_bytes(data, dtype).to(device))


def _load_from_bytes(b):
    """The storage in a file of PyTorch's legacy format: how PyTorch's pickles of tensors hold their memory."""
    from .serialization import load

    return load(io.BytesIO(b), weights_only=False)


class _StorageMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        wanted = _KINDS.get(cls.__name__)
        return type.__instancecheck__(TypedStorage, instance) and wanted in (None, instance.dtype)


class TypedStorage(Moves, metaclass=_StorageMeta):
    """A block of memory as elements of a dtype: the legacy storage class.

    Args:
        wrap_storage (UntypedStorage): the memory.
        dtype (dtype): of its elements.
    """

    dtype: _dtype | None = None

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: _dtype | None = None,
        device: DeviceLike = "cpu",
    ) -> None:
        self.dtype = dtype or self.dtype or _C.get_default_dtype()
        if wrap_storage is None:
            data = args[0] if args else 0
            if hasattr(data, "__index__"):
                made = ops["empty"](data, dtype=integers_of(self.dtype), device=device)
            else:
                made = _C.tensor(list(data), dtype=integers_of(self.dtype), device=device)
            wrap_storage = storage_of(made)
        self._untyped_storage = wrap_storage

    @property
    def _elements(self):
        return self._untyped_storage._as(self.dtype)

    @property
    def _readable(self):
        if self.device.type == "meta":
            raise NotImplementedError(
                "TypedStorage: Not available for 'meta' device type; a storage there has no elements"
            )
        return self._elements

    @property
    def device(self) -> _C.device:
        """The device of the memory."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """False: there is no CUDA."""
        return False

    @classmethod
    def from_file(cls, filename: str | PathLike[str], shared: bool = False, size: int = 0) -> Self:
        """`size` elements of a file: see `UntypedStorage.from_file`."""
        dtype = cls.dtype or _C.get_default_dtype()
        untyped = UntypedStorage.from_file(filename, shared, size * dtype.itemsize)
        return cls(wrap_storage=untyped, dtype=dtype)

    @property
    def filename(self) -> str | None:
        """The path of the file that shares the memory; None without one."""
        return self._untyped_storage.filename

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def resizable(self) -> bool:
        """Whether the memory can grow."""
        return self._untyped_storage.resizable()

    @classmethod
    def from_buffer(cls, buffer: Any, byte_order: str | None = None, count: int = -1, offset: int = 0) -> Self:
        """A copy of the elements in an object with the buffer protocol: see `UntypedStorage.from_buffer`."""
        dtype = cls.dtype or _C.get_default_dtype()
        return cls(wrap_storage=UntypedStorage.from_buffer(buffer, byte_order, count, offset, dtype=dtype), dtype=dtype)

    def _as_data(self, dtype):
        if dtype not in (None, self.dtype):
            raise RuntimeError(
                f"Expected a Storage of type {dtype._scalar_type_name} or an UntypedStorage, but got "
                f"{self.dtype._scalar_type_name}"
            )
        return self._elements

    def untyped(self) -> UntypedStorage:
        """The memory without its dtype."""
        return self._untyped_storage

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def data_ptr(self) -> int:
        """The address of the first element; 0 on a GPU."""
        return self._untyped_storage.data_ptr()

    def type(self) -> str:
        """The name of the type: `torch.FloatStorage`."""
        return f"torch.{_NAMES.get(self.dtype, 'storage.TypedStorage')}"

    def pickle_storage_type(self) -> str:
        """The name of the type in checkpoints."""
        return _NAMES[self.dtype]

    def is_shared(self) -> bool:
        """Whether other processes can map the memory."""
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> Self:
        """Moves the memory to shared memory: see `UntypedStorage.share_memory_`."""
        self._untyped_storage.share_memory_()
        return self

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._readable[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._readable[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return self._readable.tolist()

    def fill_(self, value: Any) -> Self:
        """Sets every element."""
        self._elements.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copies the elements of another storage, converted."""
        self._elements.copy_(source._elements)
        return self

    def clone(self) -> TypedStorage:
        """A copy with memory of its own."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def _to_device(self, device):
        return TypedStorage(wrap_storage=self._untyped_storage.to(device=device), dtype=self.dtype)

    def resize_(self, size: int) -> Self:
        """Changes the number of elements; existing elements stay."""
        self._untyped_storage.resize_(size * self.element_size())
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        lines = "..." if self.device.type == "meta" else "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)

    def __reduce__(self) -> Any:
        return (_rebuild_typed, (self._untyped_storage, self.dtype))

    # The names under which PyTorch's own code calls these without a warning.
    _size, _nbytes, _element_size, _data_ptr, _pickle_storage_type = (
        size,
        nbytes,
        element_size,
        data_ptr,
        pickle_storage_type,
    )


def _cast(name, dtype):
    def method(self: UntypedStorage | TypedStorage) -> TypedStorage:
        elements = self._bytes if isinstance(self, UntypedStorage) else self._elements
        # A copy, which does not share the memory.
        made = storage_of(elements.to(dtype, copy=True))
        return make_types().get(_NAMES.get(dtype), TypedStorage)(wrap_storage=made, dtype=dtype)

    method.__name__ = name
    method.__doc__ = f"A copy of the elements, or bytes, as {dtype._name}."
    return method


for _name, _kind in DTYPES.items():
    for _class in (UntypedStorage, TypedStorage):
        setattr(_class, _name, _cast(_name, _kind))


def default_type() -> type[Any]:
    """The legacy class of the default dtype, called `Storage`."""
    return make_types()[_NAMES[_C.get_default_dtype()]]


def _dtype_to_storage_type_map():
    """The names of the legacy storage classes, by dtype."""
    return dict(_NAMES)


def _rebuild_typed(storage, dtype):
    return TypedStorage(wrap_storage=storage, dtype=dtype)


@functools.cache
def make_types() -> dict[str, type]:
    """The legacy classes of one dtype each: `FloatStorage(3)`, `LongStorage([1, 2])`."""
    doc = "A storage of {} elements: uninitialised ones from a size, or those of a sequence."
    body = {"__module__": "rustgrad"}
    return {
        name: _StorageMeta(name, (TypedStorage,), {**body, "dtype": dtype, "__doc__": doc.format(dtype._name)})
        for name, dtype in _KINDS.items()
    }


def _storage(self):
    """The memory under the tensor as elements of its dtype: the legacy form of `untyped_storage()`. Warns once in a process."""
    _C._warn_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        2,
    )
    return TypedStorage(wrap_storage=storage_of(self), dtype=self.dtype)


def _storage_type(self):
    """The legacy storage class of the tensor's dtype."""
    return make_types().get(_NAMES.get(self.dtype), TypedStorage)


def install() -> None:
    """Gives tensors their storages."""
    Tensor.untyped_storage = storage_of
    Tensor.storage = _storage
    Tensor.storage_type = _storage_type
    Tensor._typed_storage = lambda self: TypedStorage(wrap_storage=storage_of(self), dtype=self.dtype)


def __dir__() -> list[str]:
    return __all__
