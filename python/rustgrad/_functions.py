"""Functions of the top level that are no ops: questions about objects, settings, shapes without data."""

from . import _C
from ._base import Tensor, typename

__all__ = [
    "allclose",
    "einsum",
    "equal",
    "from_dlpack",
    "is_nonzero",
    "is_same_size",
    "result_type",
    "broadcast_shapes",
    "is_complex",
    "is_floating_point",
    "is_grad_enabled",
    "is_tensor",
    "numel",
    "set_printoptions",
    "tensordot",
    "typename",
]

is_grad_enabled = _C.is_grad_enabled


def is_tensor(obj):
    """Whether `obj` is a `Tensor`."""
    return isinstance(obj, Tensor)


def _tensor(name, input):
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return input


def numel(input):
    """The number of elements."""
    return _tensor("numel", input).numel()


def is_floating_point(input):
    """Whether the dtype is a floating point one."""
    return _tensor("is_floating_point", input).is_floating_point()


def is_complex(input):
    """Whether the dtype is a complex one."""
    return _tensor("is_complex", input).is_complex()


def broadcast_shapes(*shapes):
    """The shape to which shapes (tuples, or ints for one dimension) broadcast.

    Raises:
        RuntimeError: they do not broadcast, or a size is negative.
    """
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


_PROFILES = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": float("inf"), "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Sets how tensors are printed.

    Args:
        precision (int): digits after the point. Default: 4.
        threshold (float): elements above which the middle is left out. Default: 1000.
        edgeitems (int): elements shown at both ends then. Default: 3.
        linewidth (int): characters in a line. Default: 80.
        profile (str): "default", "short" or "full"; the other arguments override it.
        sci_mode (bool): scientific notation always or never; by default where the values ask for it.
    """
    options = {}
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f"set_printoptions: unknown profile {profile!r}; expected one of {list(_PROFILES)}")
        options.update(_PROFILES[profile])
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    options.update({k: v for k, v in given.items() if v is not None})
    options["sci_mode"] = sci_mode
    _C._set_printoptions(**options)


def equal(input, other):
    """Whether two tensors have the same size and elements."""
    return _tensor("equal", input).equal(_tensor("equal", other))


def allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close: `|input - other| <= atol + rtol * |other|`."""
    return _tensor("allclose", input).allclose(other, rtol, atol, equal_nan)


def tensordot(a, b, dims=2, out=None):
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


def _letters(subscripts):
    """A list of subscripts as part of an equation: 0 is A, 26 is a, Ellipsis is three dots."""
    letters = []
    for s in subscripts:
        if s is not ... and not 0 <= s < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
        letters.append("..." if s is ... else chr(ord("A") + s if s < 26 else ord("a") + s - 26))
    return "".join(letters)


def einsum(*args):
    """Multiplies operands and sums over index letters: `einsum("ij,jk->ik", a, b)`.

    Each operand may be followed by its subscripts as a list instead: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.
    """
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
        return _C.ops["einsum"](equation, list(args[0 : 2 * pairs : 2]))
    return _C.ops["einsum"](*args)


def is_nonzero(input):
    """Whether the one element of a tensor is not zero."""
    return bool(_tensor("is_nonzero", input))


def is_same_size(input, other):
    """Whether two tensors have the same size."""
    return _tensor("is_same_size", input).shape == other.shape


def result_type(tensor1, tensor2):
    """The dtype that an operation on two tensors or numbers gives."""
    return _C._result_type((tensor1, tensor2))


def from_dlpack(ext_tensor):
    """A tensor that shares memory with an object that knows DLPack, or with a capsule; a capsule is used up."""
    capsule = ext_tensor.__dlpack__() if hasattr(ext_tensor, "__dlpack__") else ext_tensor
    return _C._from_dlpack(capsule)
