"""Private helpers of `nn.functional` and of the modules of layers, which programs import that extend PyTorch's layers."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from .._base import Size, Tensor, ops
from ..autograd.grad_mode import no_grad
from .modules import module as _module
from .modules.conv import _ConvTransposeNd

__all__: list[str] = []

T = TypeVar("T", bound=_module.Module)
T_destination = TypeVar("T_destination", bound=dict[str, Any])
_grad_t: TypeAlias = tuple[Tensor, ...] | Tensor
_shape_t: TypeAlias = int | list[int] | Size


class _LazyProtocol(Protocol):
    """What a module has that `LazyModuleMixin` is mixed into."""

    def _register_load_state_dict_pre_hook(self, hook: Any) -> Any: ...

    def register_forward_pre_hook(self, hook: Any, *, prepend: bool = False, with_kwargs: bool = False) -> Any: ...

    def _get_name(self) -> str: ...

    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _non_persistent_buffers_set: set[str]


class _ConvTransposeMixin(_ConvTransposeNd):
    """The old name of the base class of transposed convolutions."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(
            "_ConvTransposeMixin is a deprecated internal class. Please consider using public APIs.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(*args, **kwargs)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension that softmax of `ndim` dimensions means where none is given."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def _is_integer(x: Any) -> bool:
    """Whether a number or tensor is of an integer type."""
    if isinstance(x, Tensor):
        return not x.is_floating_point() and not x.is_complex()
    return isinstance(x, int)


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """AssertionError unless an argument is an int or has two elements."""
    if not isinstance(arg, int) and len(arg) != 2:
        raise AssertionError(message.format(arg_name))


def _check_numbers(size: Sequence[int], product: int) -> None:
    if product == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_batch_size(size: Sequence[int]) -> None:
    """ValueError where batch norm would have one value per channel."""
    _check_numbers(size, size[0] * math.prod(size[2:]))


def _verify_spatial_size(size: Sequence[int]) -> None:
    """ValueError where instance norm would have one value per channel."""
    if math.prod(size[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def _no_grad_embedding_renorm_(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows of a table that are looked up, so that their norms are at most `max_norm`."""
    with no_grad():
        ops["nn.functional.embedding"](input, weight, None, max_norm, norm_type)


def _in_projection(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    w_q: Tensor,
    w_k: Tensor,
    w_v: Tensor,
    b_q: Tensor | None = None,
    b_k: Tensor | None = None,
    b_v: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Query, key and value of attention by a matrix and a bias each."""
    linear = ops["nn.functional.linear"]
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int) -> None:
    """AssertionError unless a mask of keys has a row for each sequence and a column for each key."""
    for size, wanted, what in (
        (key_padding_mask.shape[0], bsz, "batch size"),
        (key_padding_mask.shape[1], src_len, "sequence length"),
    ):
        if size != wanted:
            raise AssertionError(f"Expected key_padding_mask with {what} {wanted}, but got {size}")


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The slices of a tensor along `dim`, in another order."""
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated: `tensor.index_select(dim, permutation)`."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


def _check_arg_device(x: Tensor | None) -> bool:
    """Whether an argument of a fused layer is on a device that has one, or is not given."""
    return x is None or x.device.type in ("cpu", "cuda", "gpu")


def _arg_requires_grad(x: Tensor | None) -> bool:
    """Whether an argument requires grad."""
    return x is not None and x.requires_grad


def _is_make_fx_tracing() -> bool:
    """False: no mode that traces is ever below the layers."""
    return False


def _check_param_device(param: Tensor, old_param_device: int | None) -> int:
    """The index of a parameter's device, -1 for the CPU; TypeError where it is not that of the one before."""
    here = param.get_device() if param.device.type != "cpu" else -1
    if old_param_device is not None and here != old_param_device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return here


def _has_any_global_hook() -> bool:
    """Whether a hook is registered for all modules."""
    tables = (
        "forward_pre",
        "forward",
        "backward_pre",
        "backward",
        "forward_hooks_always_called",
        "forward_hooks_with_kwargs",
    )
    names = [f"_global_{name}" if "hooks" in name else f"_global_{name}_hooks" for name in tables]
    return any(bool(getattr(_module, name)) for name in names)


def _softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax by its input, in that input's dtype, of the gradient by its output and this output."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def _log_softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """`_softmax_backward_data` of the logarithm of softmax."""
    return (grad_output - output.exp() * grad_output.sum(dim, keepdim=True)).to(input_dtype)
