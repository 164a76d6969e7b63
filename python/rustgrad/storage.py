"""`UntypedStorage` and `TypedStorage`: the memory under tensors, as bytes and as elements of a dtype.

A storage object is a window on memory that some tensor keeps; it is made when it is asked for, and the same object
comes back while it lives, so that a pickle of several views holds their memory once.
"""

from __future__ import annotations

import functools
import warnings
import weakref

from . import _C
from ._C import Tensor, ops

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from typing_extensions import Self

    from ._C import dtype as _dtype
    from ._typing import DeviceLike

__all__ = ["TypedStorage", "UntypedStorage"]

_LIVE = weakref.WeakValueDictionary()

_KINDS = {
    "DoubleStorage": _C.float64, "FloatStorage": _C.float32, "HalfStorage": _C.float16, "BFloat16Storage": _C.bfloat16,
    "LongStorage": _C.int64, "IntStorage": _C.int32, "ShortStorage": _C.int16, "CharStorage": _C.int8,
    "ByteStorage": _C.uint8, "BoolStorage": _C.bool, "ComplexFloatStorage": _C.complex64,
    "ComplexDoubleStorage": _C.complex128,
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _KINDS.items()}


def storage_of(tensor: Tensor) -> UntypedStorage:
    """The storage under a tensor; the same object while one lives."""
    place, key = str(tensor.device), _C._storage_key(tensor)
    found = _LIVE.get((place, key))
    if found is None:
        found = UntypedStorage.__new__(UntypedStorage)
        found._tensor = tensor.detach()
        _LIVE[place, key] = found
    return found


class UntypedStorage:
    """A block of memory as bytes.

    Args:
        size (int or sequence of int): a number of uninitialised bytes, or their values.
        device (device): where. Default: the CPU.
    """

    def __init__(self, size: int | Sequence[int] = 0, *, device: DeviceLike = "cpu") -> None:
        if isinstance(size, int):
            self._tensor = ops["empty"](size, dtype=_C.uint8, device=device)
        else:
            self._tensor = _C.tensor(list(size), dtype=_C.uint8, device=device)
        _LIVE[str(self._tensor.device), _C._storage_key(self._tensor)] = self

    @property
    def _bytes(self):
        if self._tensor.is_gpu:
            raise RuntimeError("UntypedStorage: the bytes of a GPU's memory cannot be reached. Use cpu() first.")
        return _C._storage_as_bytes(self._tensor)

    def _as(self, dtype):
        """All of the memory as a tensor of one dimension."""
        return _C._over_storage(self._tensor, dtype, 0, [self.nbytes() // dtype.itemsize], [1])

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._tensor.device

    @property
    def is_cuda(self) -> bool:
        """False: there is no CUDA here."""
        return False

    @property
    def is_sparse(self) -> bool:
        """False: memory is dense."""
        return False

    def nbytes(self) -> int:
        """The number of bytes."""
        return _C._storage_info(self._tensor)[1]

    def size(self) -> int:
        """The number of bytes."""
        return self.nbytes()

    __len__ = nbytes

    def element_size(self) -> int:
        """1: an element is a byte."""
        return 1

    def data_ptr(self) -> int:
        """The address of the first byte; 0 on a GPU."""
        return 0 if self._tensor.is_gpu else self._bytes.data_ptr()

    def untyped(self) -> UntypedStorage:
        """The storage itself."""
        return self

    def type(self) -> str:
        """The name of the type."""
        return "torch.storage.UntypedStorage"

    def is_shared(self) -> bool:
        """False: memory is not shared between processes."""
        return False

    def __getitem__(self, index: Any) -> Any:
        got = self._bytes[index]
        return got.untyped_storage() if isinstance(index, slice) else got.item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._bytes[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The bytes as a list of ints."""
        return list(_C._storage_bytes(self._tensor))

    def fill_(self, value: Any) -> Self:
        """Sets every byte."""
        self._bytes.fill_(value)
        return self

    def copy_(self, source: Any, non_blocking: bool | None = None) -> Self:
        """Copies the bytes of another storage of the same size."""
        self._bytes.copy_(source.untyped()._bytes)
        return self

    def clone(self) -> UntypedStorage:
        """A copy with memory of its own."""
        return storage_of(self._as(self._tensor.dtype).clone())

    def cpu(self) -> UntypedStorage:
        """The storage on the CPU: itself, or a copy."""
        return storage_of(self._as(self._tensor.dtype).cpu()) if self._tensor.is_gpu else self

    def resize_(self, size: int) -> Self:
        """Changes the number of bytes; kept bytes stay."""
        _C._resize(self._bytes, [size])
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UntypedStorage):
            return NotImplemented
        return self.device == other.device and _C._storage_key(self._tensor) == _C._storage_key(other._tensor)

    def __hash__(self) -> int:
        return _C._storage_key(self._tensor)

    def __repr__(self) -> str:
        lines = "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def __copy__(self) -> UntypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> UntypedStorage:
        return memo.setdefault(id(self), self.clone())

    def __reduce__(self) -> Any:
        return (_rebuild_storage, (_C._storage_bytes(self._tensor), self._tensor.dtype, str(self.device)))


def _rebuild_storage(data, dtype, device):
    return storage_of(_C._from_storage_bytes(data, dtype).to(device))


class _StorageMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        wanted = _KINDS.get(cls.__name__)
        return type.__instancecheck__(TypedStorage, instance) and wanted in (None, instance.dtype)


class TypedStorage(metaclass=_StorageMeta):
    """A block of memory as elements of a dtype: the old view of a storage.

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
            if isinstance(data, int):
                made = ops["empty"](data, dtype=self.dtype, device=device)
            else:
                made = _C.tensor(list(data), dtype=self.dtype, device=device)
            wrap_storage = storage_of(made)
        self._untyped_storage = wrap_storage

    @property
    def _elements(self):
        return self._untyped_storage._as(self.dtype)

    @property
    def device(self) -> _C.device:
        """Where the memory is."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """False: there is no CUDA here."""
        return False

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
        """The name under which checkpoints know the type."""
        return _NAMES[self.dtype]

    def is_shared(self) -> bool:
        """False: memory is not shared between processes."""
        return False

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """The elements as a list."""
        return self._elements.tolist()

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

    def cpu(self) -> TypedStorage:
        """The storage on the CPU: itself, or a copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def resize_(self, size: int) -> Self:
        """Changes the number of elements; kept ones stay."""
        self._untyped_storage.resize_(size * self.element_size())
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __repr__(self) -> str:
        lines = "\n ".join(map(str, self.tolist()))
        return f" {lines}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __deepcopy__(self, memo: dict[int, Any]) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype)

    def __reduce__(self) -> Any:
        return (_rebuild_typed, (self._untyped_storage, self.dtype))


def _rebuild_typed(storage, dtype):
    return TypedStorage(wrap_storage=storage, dtype=dtype)


@functools.cache
def make_types() -> dict[str, type]:
    """The old classes of one dtype each: `FloatStorage(3)`, `LongStorage([1, 2])`."""
    doc = "A storage of {} elements: uninitialised ones from a size, or those of a sequence."
    body = {"__module__": "rustgrad"}
    return {
        name: _StorageMeta(name, (TypedStorage,), {**body, "dtype": dtype, "__doc__": doc.format(dtype._name)})
        for name, dtype in _KINDS.items()
    }


def _storage(self):
    """The memory under the tensor as elements of its dtype: the old form of `untyped_storage()`."""
    warnings.warn(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. "
        "This should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
        "tensor.untyped_storage() instead of tensor.storage()",
        stacklevel=2,
    )
    return TypedStorage(wrap_storage=storage_of(self), dtype=self.dtype)


def _storage_type(self):
    """The old storage class of the tensor's dtype."""
    return make_types().get(_NAMES.get(self.dtype), TypedStorage)


def install() -> None:
    """Gives tensors their storages."""
    Tensor.untyped_storage = storage_of
    Tensor.storage = _storage
    Tensor.storage_type = _storage_type
    Tensor._typed_storage = lambda self: TypedStorage(wrap_storage=storage_of(self), dtype=self.dtype)


def __dir__() -> list[str]:
    return __all__
