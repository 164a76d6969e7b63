"""What a quantised tensor answers to Python's protocols and to questions about memory: mostly what its integers do."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NoReturn

from .. import _C, _conversions
from .._C import Tensor
from .._size import row_major
from ..sparse._protocols import Protocols as _Protocols
from ..sparse._protocols import asked
from ._quantizer import PER_BYTE, PerTensor, packed, unpacked


def _refused(name):
    """A method that quantised tensors have not."""

    def method(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
        from ._tensor import refuse

        refuse(name)

    method.__name__ = name
    method.__doc__ = "NotImplementedError: call dequantize()."
    return method


class Protocols(_Protocols):
    """A part of the body of quantised tensors."""

    _value: Tensor

    # --- memory ----------------------------------------------------------------------------------------------
    def stride(self, dim: Any = None) -> Any:
        """The strides of the integers."""
        return self._value.stride() if dim is None else self._value.stride(dim)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the integers lie in the order of a memory format."""
        return (
            self._value.is_contiguous()
            if memory_format is None
            else self._value.is_contiguous(memory_format=memory_format)
        )

    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[int, ...]:
        """The dimensions from the slowest in memory to the fastest."""
        return self._value.dim_order(ambiguity_check=ambiguity_check)

    def _typed_storage(self) -> Any:
        """The storage of the integers, as elements of the quantised dtype."""
        from ..storage import TypedStorage

        kept = self._value if self.dtype not in PER_BYTE else packed(self._value.contiguous(), self.dtype)
        return TypedStorage(wrap_storage=kept.untyped_storage(), dtype=self.dtype)

    storage = _typed_storage

    def storage_type(self) -> Any:
        """The class of the storage."""
        return type(self._typed_storage())

    @property
    def nbytes(self) -> int:
        """The bytes of the integers."""
        return self._value.nbytes

    itemsize = property(lambda self: self._value.itemsize, doc="Bytes per element.")

    @property
    def _base(self) -> Any:
        """The tensor of which this is a view, or None."""
        from ._tensor import with_value

        base = self._value._base
        return base if base is None or not isinstance(self._quantizer, PerTensor) else with_value(self, base)

    def share_memory_(self) -> Any:
        """Moves the integers to shared memory."""
        self._value.share_memory_()
        return self

    def resize_(self, *size: Any, memory_format: Any = None) -> Any:
        """Changes the shape in place; elements that are new have any value."""
        from ._tensor import with_value

        self._value.resize_(*size)
        self._set(with_value(self, self._value))
        return self

    def resize(self, *size: Any) -> Any:
        """A tensor of another shape with as many elements, in the order of memory. RuntimeError: another number."""
        sizes = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        if math.prod(sizes) != self.numel():
            raise RuntimeError(
                f"requested resize to {tuple(sizes)} ({math.prod(sizes)} elements in total), but the given tensor has a size of "
                f"{tuple(self.shape)} ({self.numel()} elements)"
            )
        from ._tensor import with_value

        return with_value(self, self._value.detach().as_strided(tuple(sizes), row_major(sizes), self.storage_offset()))

    def is_signed(self) -> NoReturn:
        """RuntimeError, as in PyTorch."""
        raise RuntimeError("isSignedType not supported for quantized types")

    # --- dtype and device ------------------------------------------------------------------------------------
    def _map_parts(self, move, dtype=None):
        from ._tensor import made

        if dtype is not None and dtype != self.dtype:
            raise RuntimeError(
                f"to: a quantised tensor of {self.dtype} does not become one of {dtype}. Hint: call .dequantize() first."
            )
        value, quantizer = move(self._value), self._quantizer
        if value is self._value:
            return self
        if not isinstance(quantizer, PerTensor):
            quantizer = quantizer._replace(
                scales=quantizer.scales.to(value.device), zero_points=quantizer.zero_points.to(value.device)
            )
        return made(value, quantizer, self.dtype)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The tensor on another device, or in another memory format: the arguments are those of `Tensor.to`.

        Raises:
            RuntimeError: another dtype.
        """
        model = args[0] if args else kwargs.get("other")
        if isinstance(model, Protocols):
            kwargs.pop("other", None)
            args = (model.device, model.dtype, *args[1:])
        quantised = [a for a in (*args, kwargs.get("dtype")) if isinstance(a, _C.dtype)]
        args = tuple(a for a in args if not isinstance(a, _C.dtype))
        kwargs.pop("dtype", None)
        device, _, non_blocking, copy, memory_format = _C._to_arguments(args, kwargs)
        options = {} if memory_format is None else {"memory_format": memory_format}

        def move(t: Tensor) -> Tensor:
            return t.to(device or t.device, non_blocking=non_blocking, copy=copy, **options)

        return self._map_parts(move, quantised[0] if quantised else None)

    def cuda(self, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.cuda(device))

    def gpu(self, device: Any = None, *args: Any, **kwargs: Any) -> Any:
        """The tensor on a GPU."""
        return self._map_parts(lambda part: part.gpu(device))

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The type's name: `torch.quantized.QUInt8Tensor`. RuntimeError: another type is asked for."""
        if dtype is not None:
            name = dtype if isinstance(dtype, str) else str(dtype)
            return self._map_parts(lambda value: value, None if name == self.type() else dtype)
        place = "" if self.is_cpu else f"{self.device.type}."
        return f"torch.{place}quantized.{self.dtype._scalar_type_name}Tensor"

    # --- Python's protocols ----------------------------------------------------------------------------------
    def numpy(self, *, force: bool = False) -> NoReturn:
        """TypeError: NumPy has no quantised arrays."""
        raise TypeError(
            f"Got unsupported ScalarType {self.dtype._scalar_type_name}. Hint: use .int_repr() or .dequantize()."
        )

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        self.numpy()

    def __dlpack__(self, **kwargs: Any) -> NoReturn:
        """BufferError: DLPack has no quantised types."""
        raise BufferError("Can't export quantised tensors; expected a call of int_repr() or dequantize()")

    def tolist(self) -> Any:
        """The number of a 0-d tensor; of others RuntimeError: use `dequantize()`."""
        if self.dim() == 0:
            return self.item()
        raise RuntimeError("tolist: not implemented for quantised tensors. Hint: call .dequantize() or .int_repr().")

    def item(self) -> Any:
        """The number that a one-element tensor stands for. RuntimeError: there are more elements or fewer."""
        return self.dequantize().item()

    def _one(self):
        return self.dequantize()

    def __bool__(self) -> bool:
        return bool(self.dequantize())

    __nonzero__ = __bool__

    def equal(self, other: Any) -> bool:
        """Whether another quantised tensor has the same integers and parameters."""
        from ._elementwise import equal

        return equal(self, other)

    def is_nonzero(self) -> bool:
        """Whether the only element is not zero. RuntimeError: there are more or fewer."""
        return bool(self)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.unbind())

    def __reversed__(self) -> Any:
        return self.flip(0)

    def __contains__(self, value: Any) -> bool:
        return value in self.dequantize()

    def __setitem__(self, index: Any, value: Any) -> None:
        from ._moves import put

        put(self, index, value)

    def as_subclass(self, cls: Any) -> NoReturn:
        """NotImplementedError: a quantised tensor is of no other class."""
        raise NotImplementedError("as_subclass: a quantised tensor is of no other class. Hint: .dequantize().")

    def __reduce_ex__(self, protocol: Any) -> Any:
        from .._utils import _rebuild_parameter, _rebuild_qtensor

        if getattr(self, "_is_param", False):
            return (_rebuild_parameter, (self.detach(), self.requires_grad, OrderedDict()))
        quantizer = self._quantizer
        params = (quantizer.scheme, *quantizer[: 2 if isinstance(quantizer, PerTensor) else 3])
        several = self.dtype in PER_BYTE
        where = (0 if several else self.storage_offset(), tuple(self.shape))
        where = (*where, self._value.contiguous().stride() if several else self.stride())
        return (_rebuild_qtensor, (self._typed_storage(), *where, params, False, OrderedDict()))


for _name in (
    "data_ptr storage_offset untyped_storage element_size get_device is_conj is_neg is_complex is_floating_point is_inference "
    "is_shared is_pinned is_distributed _is_view numel nelement"
).split():
    setattr(Protocols, _name, asked(_name))
for _name in (
    "is_set_to set_ resize_as new new_empty new_zeros new_full new_empty_strided map_ map2_ apply_ to_dense to_sparse "
    "to_sparse_coo to_sparse_csr to_sparse_csc to_sparse_bsr to_sparse_bsc to_mkldnn sparse_mask"
).split():
    setattr(Protocols, _name, _refused(_name))


def _converted(name):
    def method(self: Any, memory_format: Any = None) -> NoReturn:
        raise RuntimeError(
            f"{name}: Creation of quantized tensor requires quantized dtype like torch.quint8. Hint: call .dequantize()."
        )

    method.__name__ = name
    method.__doc__ = "RuntimeError: call dequantize()."
    return method


for _name in _conversions.DTYPES:
    setattr(Protocols, _name, _converted(_name))


def rebuilt(storage, offset, size, stride, params):
    """A quantised tensor from a pickle: over a storage, with (scheme, scale, zero point) or (scheme, scales, zero points, axis)."""
    from .. import _formats
    from ._quantizer import per_channel, stored
    from ._tensor import made

    dtype = storage.dtype
    whole = storage.untyped()
    if dtype in PER_BYTE:
        integers = unpacked(whole._as(dtype), dtype, tuple(size))
    else:
        integers = _C._over_storage(whole._tensor, stored(dtype)[0], offset, list(size), list(stride))
    if params[0] is _formats.per_tensor_affine:
        return made(integers, PerTensor(float(params[1]), int(params[2])), dtype)
    scales, zero_points, axis = params[1:]
    if isinstance(scales, list):  # of older files
        scales = _C.tensor(scales, dtype=_C.float64)
        zero_points = _C.tensor(zero_points, dtype=_C.int64)
    quantizer = per_channel(scales, zero_points, axis)
    quantizer.check(integers.shape)
    return made(integers, quantizer, dtype)
