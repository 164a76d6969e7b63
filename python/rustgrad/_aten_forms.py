"""Functions of `ops.aten` whose arguments have other forms than those of the functions here: numbers for reductions and modes, masks of results.

Loaded at the first use of `ops.aten`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from . import _C, _aten_nn, _seldom
from ._base import Tensor

__all__ = ["find"]

_ops = _C.ops
_REDUCTIONS = ("none", "mean", "sum")
_SPACES = ("linalg", "special", "fft")


def find(name: str) -> Callable[..., Any] | None:
    """The function of an op of `aten`; None if there is none."""
    if name in _FORMS:
        return _FORMS[name]
    if name.endswith("_backward") and (found := _gradients().get(name)) is not None:
        return found
    functional = importlib.import_module("rustgrad.nn.functional")
    if name in _LOSSES:
        return _loss(getattr(functional, name))
    if name in _ops:
        return _ops[name]
    if name in _seldom.__all__ and name != "to_dlpack":
        return getattr(_seldom, name)  # type: ignore[no-any-return]
    space, _, rest = name.partition("_")
    if space in _SPACES and rest:
        found = getattr(importlib.import_module(f"rustgrad.{space}"), rest, None)
        if found is not None:
            return found
    if hasattr(Tensor, name) and not isinstance(getattr(Tensor, name), property):
        return _method(name)
    if name.endswith("_") and not name.endswith("__"):
        return _in_place(functional, name[:-1])
    return getattr(functional, name, None) or _ops.get(name.removeprefix("_"))


def _gradients() -> dict[str, Callable[..., Any]]:
    from ._aten_backward import FORMS

    return FORMS


def _method(name: str) -> Callable[..., Any]:
    return lambda self, *args, **kwargs: getattr(self, name)(*args, **kwargs)


def _in_place(functional: Any, name: str) -> Callable[..., Any] | None:
    function = getattr(functional, name, None)
    return None if function is None else lambda self, *args: function(self, *args, inplace=True)


# Losses take a reduction by number, and nothing of what PyTorch has deprecated.
_LOSSES = frozenset(
    """mse_loss l1_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy binary_cross_entropy_with_logits soft_margin_loss
    hinge_embedding_loss margin_ranking_loss cosine_embedding_loss triplet_margin_loss multi_margin_loss multilabel_margin_loss
    poisson_nll_loss""".split()
)


def _loss(function: Callable[..., Any]) -> Callable[..., Any]:
    from ._schema import overloads

    names = [a.name for a in overloads(function.__name__)["default"].arguments]
    also = {"self": "input"}

    def call(*args: Any, **kwargs: Any) -> Any:
        given = {also.get(k, k): v for k, v in [*zip(names, args), *kwargs.items()]}
        given["reduction"] = _REDUCTIONS[given.get("reduction", 1)]
        return function(**given)

    return call


def lift_fresh_copy(self: Tensor) -> Tensor:
    """A copy of a constant, which may be written to."""
    return self.clone()


def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """What `self.copy_(src)` would make of `self`."""
    return src.to(self.dtype).to(self.device).expand(self.shape).clone()


def fill(self: Tensor, value: Any) -> Tensor:
    """A tensor like `self` of one value."""
    return self.clone().fill_(value)


def _to_copy(self: Tensor, *, dtype: Any = None, device: Any = None, memory_format: Any = None, **rest: Any) -> Tensor:
    """A copy of another dtype or on another device."""
    named = {"dtype": dtype, "device": device, "memory_format": memory_format}
    return self.to(copy=True, **{k: v for k, v in named.items() if v is not None})


def to(self: Tensor, *args: Any, layout: Any = None, pin_memory: Any = None, **named: Any) -> Tensor:
    """`Tensor.to`."""
    return self.to(*args, **{k: v for k, v in named.items() if v is not None})


def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *, device: Any = None, layout: Any = None
) -> None:
    """RuntimeError: a tensor is of another dtype, size or device than expected."""
    if dtype is not None and a.dtype != dtype:
        raise RuntimeError(f"Tensor dtype mismatch! Expected: {dtype}, Got: {a.dtype}")
    if size is not None and tuple(a.shape) != tuple(size):
        raise RuntimeError(f"Tensor sizes mismatch! Expected: {list(size)}, Got: {list(a.shape)}")
    if device is not None and a.device.type != _C.device(device).type:
        raise RuntimeError(f"Tensor device mismatch! Expected: {device}, Got: {a.device}")


def _assert_scalar(self: Any, assert_msg: str) -> None:
    """RuntimeError with a text where a number is false."""
    if not self:
        raise RuntimeError(assert_msg)


def _assert_async(self: Tensor, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError where a tensor is false."""
    if not bool(self):
        raise RuntimeError(assert_msg)


def sym_size(self: Tensor, dim: int) -> int:
    """The size of a dimension."""
    return self.size(dim)


def sym_stride(self: Tensor, dim: int) -> int:
    """The stride of a dimension."""
    return self.stride(dim)


def sym_numel(self: Tensor) -> int:
    """The number of elements."""
    return self.numel()


def sym_storage_offset(self: Tensor) -> int:
    """The offset in the storage."""
    return self.storage_offset()


def item(self: Tensor) -> Any:
    """The number in a tensor of one element."""
    return self.item()


def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    """`unique` with three results, of which those that are not asked for are empty."""
    values, inverse, counts = _ops["unique"](self, sorted, True, True)
    empty = inverse.new_empty(0)
    return values, inverse if return_inverse else empty, counts if return_counts else empty


def nonzero_numpy(self: Tensor) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, a tensor for each dimension."""
    return _ops["nonzero"](self, as_tuple=True)


def linalg_vector_norm(
    self: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`linalg.vector_norm`."""
    return importlib.import_module("rustgrad.linalg").vector_norm(self, ord, _aten_nn._one(dim), keepdim, dtype=dtype)


def where(condition: Tensor, self: Any = None, other: Any = None) -> Any:
    """`torch.where`; of a condition alone, the indices where it holds."""
    return _ops["where"](condition) if self is None else _ops["where"](condition, self, other)


def numpy_T(self: Tensor) -> Tensor:
    """The dimensions in the opposite order."""
    return self.permute(*range(self.dim() - 1, -1, -1))


def mT(self: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    return self.transpose(-1, -2)


def matrix_H(self: Tensor) -> Tensor:
    """The conjugate of the transpose."""
    return self.mH


def meshgrid(tensors: Sequence[Tensor], *, indexing: str = "ij") -> Any:
    """`torch.meshgrid`."""
    return _ops["meshgrid"](*tensors, indexing=indexing)


def einsum(equation: str, tensors: Sequence[Tensor], *, path: Any = None) -> Tensor:
    """`torch.einsum`."""
    return importlib.import_module("rustgrad.functional").einsum(equation, *tensors)


def tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    """`torch.tensordot`."""
    return importlib.import_module("rustgrad.functional").tensordot(self, other, dims=(dims_self, dims_other))


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """`torch.stft` of a signal that is padded already."""
    return importlib.import_module("rustgrad.functional").stft(
        self, n_fft, hop_length, win_length, window, False, "reflect", normalized, onesided, return_complex
    )


def _tuple_of(name: str) -> Callable[..., Any]:
    return lambda tensors: _ops[name](*tensors)


def _operator(name: str) -> Callable[..., Any]:
    return lambda self, other: getattr(self, name)(other)


def _first(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*args, **kwargs)[0]


_OWN = """cross_entropy_loss ctc_loss nll_loss_nd nll_loss_forward gelu elu leaky_relu glu softplus log_sigmoid log_sigmoid_forward dropout
    feature_dropout linear embedding layer_norm group_norm rms_norm batch_norm instance_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _softmax _log_softmax pad one_hot im2col col2im grid_sampler
    affine_grid_generator scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu embedding_bag lift_fresh_copy copy fill
    _to_copy to _assert_tensor_metadata _assert_scalar _assert_async sym_size sym_stride sym_numel sym_storage_offset item _unique2
    nonzero_numpy linalg_vector_norm where numpy_T mT matrix_H meshgrid einsum tensordot stft""".split()
_FORMS: dict[str, Callable[..., Any]] = {name: getattr(_aten_nn, name, None) or globals()[name] for name in _OWN}
_FORMS["_local_scalar_dense"] = item
_FORMS["_embedding_bag"] = _FORMS["_embedding_bag_forward_only"] = _aten_nn.embedding_bag
_FORMS["grid_sampler_2d"] = _FORMS["grid_sampler_3d"] = _aten_nn.grid_sampler
_FORMS["nll_loss2d"] = _aten_nn.nll_loss_nd
_FORMS["lift_fresh"] = _FORMS["lift"] = lambda self: self
_FORMS["alias"] = lambda self: self.view_as(self)
_FORMS["detach_"] = lambda self: self.detach_()
for _name in ("cartesian_prod", "block_diag", "broadcast_tensors"):
    _FORMS[_name] = _tuple_of(_name)
for _name in ("and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"):
    _FORMS[f"__{_name}__"] = _operator(f"__{_name}__")
for _dims in (1, 2, 3):
    for _form in (f"max_pool{_dims}d", f"avg_pool{_dims}d", f"max_pool{_dims}d_with_indices"):
        _FORMS[_form] = _aten_nn._pool(_form)
    _FORMS[f"adaptive_avg_pool{_dims}d"] = _aten_nn._adaptive(f"adaptive_avg_pool{_dims}d")
    _FORMS[f"_adaptive_avg_pool{_dims}d"] = _aten_nn._adaptive(f"adaptive_avg_pool{_dims}d")
    _FORMS[f"adaptive_max_pool{_dims}d"] = _aten_nn._adaptive_max(f"adaptive_max_pool{_dims}d")
    _FORMS[f"reflection_pad{_dims}d"] = _aten_nn._padding("reflect")
    _FORMS[f"replication_pad{_dims}d"] = _aten_nn._padding("replicate")
    _FORMS[f"upsample_nearest{_dims}d"] = _aten_nn._upsample("nearest", _dims, False)
    _FORMS[f"_upsample_nearest_exact{_dims}d"] = _aten_nn._upsample("nearest-exact", _dims, False)
for _form, _mode, _dims in (("linear1d", "linear", 1), ("bilinear2d", "bilinear", 2), ("trilinear3d", "trilinear", 3), ("bicubic2d", "bicubic", 2)):  # fmt: skip
    _FORMS[f"upsample_{_form}"] = _aten_nn._upsample(_mode, _dims, True)
    _FORMS[f"_upsample_{_form}_aa"] = _aten_nn._upsample(_mode, _dims, True, True)
