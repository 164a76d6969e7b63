"""Top-level functions that are not ops: queries about objects, shape computations, memory sharing."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeGuard

from . import _C
from ._base import Tensor, typename
from ._C import Size, dtype
from ._files import map_file
from ._formats import layout, memory_format
from ._typing import DeviceLike, Number
from .overrides import handle_torch_function, overridable
from .storage import TypedStorage, UntypedStorage

__all__ = [
    "allclose",
    "asarray",
    "broadcast_shapes",
    "celu_",
    "detach_",
    "einsum",
    "equal",
    "from_dlpack",
    "from_file",
    "get_device",
    "is_complex",
    "is_conj",
    "is_floating_point",
    "is_inference",
    "is_neg",
    "is_nonzero",
    "is_same_size",
    "is_signed",
    "is_storage",
    "is_tensor",
    "lu",
    "numel",
    "resize_as_",
    "resolve_conj",
    "resolve_neg",
    "result_type",
    "selu_",
    "square_",
    "tensordot",
    "threshold_",
    "typename",
]


def is_tensor(obj: Any) -> TypeGuard[Tensor]:
    """Whether `obj` is a `Tensor`."""
    return isinstance(obj, Tensor)


def _tensor(name, input):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


@overridable
def numel(input: Tensor) -> int:
    """The number of elements."""
    return _tensor("numel", input).numel()


@overridable
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating point one."""
    return _tensor("is_floating_point", input).is_floating_point()


@overridable
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one."""
    return _tensor("is_complex", input).is_complex()


@overridable
def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return _tensor("is_signed", input).is_signed()


@overridable
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was created in inference mode."""
    return _tensor("is_inference", input).is_inference()


@overridable
def is_conj(input: Tensor) -> bool:
    """False: conjugates are never lazy."""
    return _tensor("is_conj", input).is_conj()


@overridable
def is_neg(input: Tensor) -> bool:
    """False: there are no lazy negatives."""
    return _tensor("is_neg", input).is_neg()


@overridable
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugates are never lazy."""
    return _tensor("resolve_conj", input)


@overridable
def resolve_neg(input: Tensor) -> Tensor:
    """The tensor itself: there are no lazy negatives."""
    return _tensor("resolve_neg", input)


@overridable
def get_device(input: Tensor) -> int:
    """The index of the tensor's GPU; -1 on the CPU."""
    return _tensor("get_device", input).get_device()


def is_storage(obj: Any) -> bool:
    """Whether `obj` is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


@overridable
def asarray(
    obj: Any,
    *,
    dtype: dtype | None = None,
    device: DeviceLike | None = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of `obj`: a tensor, an array, a DLPack or buffer object, a number or nested sequences.

    Args:
        obj (object): shares its memory with the result if no conversion is needed.
        dtype, device: of the result. Default: those of `obj`, but where another default device is set, that device.
        copy (bool): copy always (True), never (False), or if needed (None).
        requires_grad (bool): whether gradients are recorded. Default: as for `obj`, whose history stays.

    Raises:
        ValueError: `copy=False` and a copy is needed.
        RuntimeError: `copy=False` for a NumPy scalar, whose memory cannot be shared.
    """
    if copy is False and isinstance(obj, _classes_of_numpy("generic")):
        raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
    shared = _shared(obj, dtype)
    if device is None and _C.get_default_device().type != "cpu":
        device = _C.get_default_device()
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return _C.tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    wanted = shared.to(device=device, dtype=dtype)
    if wanted is not shared and copy is False:
        raise ValueError("can't alias tensor with dtype or device that differ. Hint: copy=None copies where it must")
    if copy and wanted is shared:
        wanted = shared.clone()
    if requires_grad is None and wanted.requires_grad:
        warnings.warn(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
            "requires_grad=False explicitly to get the old behavior and silence this warning.",
            stacklevel=2,
        )
    if requires_grad is False and wanted.requires_grad:
        wanted = wanted.detach()
    return wanted.requires_grad_() if requires_grad else wanted


def _classes_of_numpy(name):
    """A NumPy class, as a tuple; empty as long as NumPy has not been imported."""
    numpy = sys.modules.get("numpy")
    return () if numpy is None else (getattr(numpy, name),)


def _shared(obj, dtype):
    """A tensor over the memory of an object, or None if it has none to share."""
    if isinstance(obj, (Tensor, *_classes_of_numpy("ndarray"))):
        return _C.as_tensor(obj)
    if isinstance(obj, _classes_of_numpy("generic")):
        return None
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    try:
        kind = memoryview(obj).format
    except TypeError:
        return None
    return _C.frombuffer(obj, dtype=dtype or _BUFFER_KINDS.get(kind, _C.uint8))


_BUFFER_KINDS = {
    "f": _C.float32,
    "d": _C.float64,
    "b": _C.int8,
    "h": _C.int16,
    "i": _C.int32,
    "l": _C.int64,
    "?": _C.bool,
}


def broadcast_shapes(*shapes: int | Sequence[int]) -> Size:
    """The shape to which shapes (tuples, or ints for one dimension) broadcast.

    Raises:
        RuntimeError: they do not broadcast, a size is negative, or an argument is no shape.
    """
    for s in shapes:
        if not isinstance(s, (int, tuple, list)):
            raise RuntimeError(f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {s}")
    shapes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    result = [1] * max((len(s) for s in shapes), default=0)
    for index, shape in enumerate(shapes):
        for i in range(-1, -1 - len(shape), -1):
            if shape[i] < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension ({shape[i]}): ({shape[i]})")
            if shape[i] == 1 or shape[i] == result[i]:
                continue
            if result[i] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {shape[i]} at {i}! Mismatching argument at index "
                    f"{index} had {shape}; but expected shape should be broadcastable to {result}"
                )
            result[i] = shape[i]
    return _C.Size(result)


@overridable
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size and elements."""
    return _tensor("equal", input).equal(_tensor("equal", other))


@overridable
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close: `|input - other| <= atol + rtol * |other|`."""
    return _tensor("allclose", input).allclose(other, rtol, atol, equal_nan)


@overridable
def tensordot(
    a: Tensor, b: Tensor, dims: int | Sequence[Sequence[int]] | Tensor = 2, out: Tensor | None = None
) -> Tensor:
    """Sums products over the last `dims` dimensions of `a` and the first of `b`, or over pairs of dimensions.

    Args:
        dims (int, or two lists of ints, or a tensor of either): how many dimensions, or those of `a` and those of `b`.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        if len(dims) != 2:
            raise RuntimeError(f"tensordot: expected dims to be an int or two lists, got {len(dims)} lists")
        return _C.ops["_tensordot"](a, b, *dims, out=out)
    return _C.ops["tensordot"](a, b, dims, out=out)


@overridable
def lu(
    A: Tensor, pivot: bool = True, get_infos: bool = False, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """L and U in one matrix and the pivots, as `linalg.lu_factor`; with `get_infos` also the status.

    Raises:
        RuntimeError: U has a zero pivot, and `get_infos` is False.
    """
    _C._warn_once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will be removed in a future "
        "PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced with\n"
        "LU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)",
        2,
    )
    result = _C.ops["_lu_with_info"](A, pivot, not get_infos)
    result = result if get_infos else tuple(result)[:2]
    if out is None:
        return result
    for to, tensor in zip(out, result, strict=True):
        to.resize_(tensor.shape).copy_(tensor)
    return tuple(out)


@overridable
def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: memory_format | None = None) -> Tensor:
    """`input` resized in place to the shape of another tensor."""
    return input.resize_as_(the_template, memory_format=memory_format)


@overridable
def detach_(input: Tensor) -> Tensor:
    """Detaches the tensor from its history, in place."""
    return input.detach_()


@overridable
def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """`celu` in place."""
    return _C.ops["nn.functional.celu"](input, alpha, True)


@overridable
def selu_(input: Tensor) -> Tensor:
    """`selu` in place."""
    return _C.ops["nn.functional.selu"](input, True)


@overridable
def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """`threshold` in place."""
    return _C.ops["nn.functional.threshold"](input, threshold, value, True)


@overridable
def square_(input: Tensor) -> Tensor:
    """Each element squared, in place."""
    return input.pow_(2)


def _letters(subscripts):
    """A list of subscripts as part of an equation: 0 is A, 26 is a, Ellipsis is three dots."""
    letters = []
    for s in subscripts:
        if s is not ... and not 0 <= s < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        letters.append("..." if s is ... else chr(ord("A") + s if s < 26 else ord("a") + s - 26))
    return "".join(letters)


def einsum(*args: Any) -> Tensor:
    """Multiplies operands and sums over index letters: `einsum("ij,jk->ik", a, b)`.

    Each operand may be followed by its subscripts as a list instead: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
    if len(args) == 2 and isinstance(args[1], (list, tuple)) and not isinstance(args[0], Tensor):
        args = (args[0], *args[1])
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):
        pairs = len(args) // 2
        equation = ",".join(_letters(s) for s in args[1 : 2 * pairs : 2])
        if len(args) % 2:
            equation += "->" + _letters(args[-1])
        return einsum(equation, *args[0 : 2 * pairs : 2])
    # Whoever overrides the call gets the operands one by one, whatever form they came in.
    if _C._overridden(args, {}):
        return handle_torch_function(einsum, args[1:], *args)
    return _C.ops["einsum"](*args)


@overridable
def is_nonzero(input: Tensor) -> bool:
    """Whether the element of a one-element tensor is not zero."""
    return bool(_tensor("is_nonzero", input))


@overridable
def is_same_size(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same size."""
    return _tensor("is_same_size", input).shape == other.shape


def result_type(*operands: Tensor | Number, **named: Tensor | Number) -> dtype:
    """The dtype of the result of an operation on two tensors or numbers: `result_type(tensor, other)`.

    By name they are `tensor` and `other`, `scalar` and `tensor`, or `scalar1` and `scalar2`.
    """
    if _C._is_torch_function_mode_enabled():
        return handle_torch_function(result_type, (), *operands, **named)
    for names in (("tensor", "other"), ("scalar", "tensor"), ("scalar1", "scalar2")):
        if set(named) <= set(names) and not set(named) & set(names[: len(operands)]):
            operands += tuple(named[n] for n in names[len(operands) :] if n in named)
            break
    if len(operands) != 2 or (named and not set(named) <= set(names)):
        got = [type(o).__name__ for o in operands] + [f"{n}={type(o).__name__}" for n, o in named.items()]
        raise TypeError(
            f"result_type() received an invalid combination of arguments - got ({', '.join(got)}), but expected one of: "
            "(Tensor tensor, Tensor or Number other), (Number scalar, Tensor tensor), (Number scalar1, Number scalar2)"
        )
    return _C._result_type(operands)


def from_file(
    filename: str | PathLike[str],
    shared: bool | None = None,
    size: int | None = 0,
    *,
    dtype: dtype | None = None,
    layout: layout | None = None,
    device: DeviceLike | None = None,
    pin_memory: bool | None = False,
    requires_grad: bool | None = False,
) -> Tensor:
    """A CPU tensor of `size` elements over the start of a file, mapped into memory.

    Args:
        filename (str or path): the file.
        shared (bool): writes reach the file, which is created or extended if necessary. Default: False.

    Raises:
        RuntimeError: the file cannot be opened, or is too short and not shared; a device other than the CPU.
    """
    if device is not None and _C.device(device).type != "cpu":
        raise RuntimeError(
            f"from_file: a file is mapped into the memory of the cpu; got device {device}. Copy it with to()."
        )
    dtype = dtype or _C.get_default_dtype()
    size = 0 if size is None else size
    memory = map_file(filename, bool(shared), size * dtype.itemsize)
    return _C._over_storage(memory, dtype, 0, [size], [1]).requires_grad_(bool(requires_grad))


def from_dlpack(ext_tensor: Any, *, device: DeviceLike | None = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares memory with an object that supports DLPack, or with a capsule, which is consumed.

    Args:
        device (device, optional): the result's device. Default: that of the memory.
        copy (bool, optional): always or never copy. Default: only if the owner must.
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
        return _C._from_dlpack(ext_tensor)
    wanted = {} if copy is None else {"copy": copy}
    try:
        capsule = ext_tensor.__dlpack__(max_version=(1, 0), **wanted)
    except TypeError:  # before version 1.0
        capsule = ext_tensor.__dlpack__(**wanted)
    shared = _C._from_dlpack(capsule)
    return shared if device is None else shared.to(device)
