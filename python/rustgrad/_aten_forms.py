"""Functions of `ops.aten` whose arguments have other forms than those of the functions here: numbers for reductions and modes, masks of results.

Loaded at the first use of `ops.aten`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._base import Tensor

__all__ = ["find"]

_ops = _C.ops
_REDUCTIONS = ("none", "mean", "sum")
_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")
_SPACES = ("linalg", "special", "fft")


def find(name: str) -> Callable[..., Any] | None:
    """The function of an op of `aten`; None if there is none."""
    if name in _FORMS:
        return _FORMS[name]
    functional = importlib.import_module("rustgrad.nn.functional")
    if name in _LOSSES:
        return _loss(getattr(functional, name))
    if name in _ops:
        return _ops[name]
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


def _functional(name: str) -> Any:
    return getattr(importlib.import_module("rustgrad.nn.functional"), name)


def cross_entropy_loss(
    self: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: int = 1,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
) -> Tensor:
    """`cross_entropy` with the number of a reduction."""
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing}
    return _functional("cross_entropy")(self, target, weight, reduction=_REDUCTIONS[reduction], **options)


def nll_loss_nd(
    self: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """`nll_loss` with the number of a reduction."""
    return _functional("nll_loss")(self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


def nll_loss_forward(
    self: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """`nll_loss` and the sum of the weights that it has divided by."""
    loss = nll_loss_nd(self, target, weight, reduction, ignore_index)
    kept = target != ignore_index
    weights = self.new_ones(()) if weight is None else weight[target.where(kept, target.new_zeros(()))]
    return loss, (weights * kept).sum().to(self.dtype) if reduction else self.new_zeros(())


def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """`nn.functional.gelu`."""
    return _functional("gelu")(self, approximate=approximate)


def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    """`scale * elu(self * input_scale)` where negative, `scale * self` elsewhere."""
    if input_scale == 1 and scale == 1:
        return _functional("elu")(self, float(alpha))
    return self.where(self > 0, alpha * (self * input_scale).expm1()) * scale


def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    """`nn.functional.leaky_relu`."""
    return _functional("leaky_relu")(self, float(negative_slope))


def glu(self: Tensor, dim: int = -1) -> Tensor:
    """`nn.functional.glu`."""
    return _functional("glu")(self, dim)


def softplus(self: Tensor, beta: float = 1, threshold: float = 20) -> Tensor:
    """`nn.functional.softplus`."""
    return _functional("softplus")(self, float(beta), float(threshold))


def log_sigmoid(self: Tensor) -> Tensor:
    """`nn.functional.logsigmoid`."""
    return _functional("logsigmoid")(self)


def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """`log_sigmoid` with a buffer that a gradient could use, which is empty."""
    return log_sigmoid(self), self.new_empty(0)


def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`nn.functional.dropout`."""
    return _functional("dropout")(input, p, train)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels, of tensors with any number of dimensions."""
    if not train or p == 0:
        return input * 1
    shape = [*input.shape[:2], *[1] * (input.dim() - 2)]
    return input * (_functional("dropout")(input.new_ones(shape), p, True))


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`nn.functional.linear`."""
    return _functional("linear")(input, weight, bias)


def embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """`nn.functional.embedding` with its first arguments in the other order."""
    padding = None if padding_idx == -1 else padding_idx
    return _functional("embedding")(indices, weight, padding, None, 2.0, scale_grad_by_freq, sparse)


def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """`nn.functional.layer_norm`."""
    return _functional("layer_norm")(input, tuple(normalized_shape), weight, bias, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    """`nn.functional.group_norm`."""
    return _functional("group_norm")(input, num_groups, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`nn.functional.rms_norm`."""
    return _functional("rms_norm")(input, tuple(normalized_shape), weight, eps)


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.batch_norm` with its arguments in another order."""
    return _functional("batch_norm")(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`nn.functional.instance_norm` with its arguments in another order."""
    return _functional("instance_norm")(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`batch_norm` with the mean and the inverse deviation of the batch; `rest` has running statistics, or none."""
    if len(rest) == 5:
        return _ops["native_batch_norm"](input, weight, bias, *rest)
    training, momentum, eps = rest
    return _ops["native_batch_norm"](input, weight, bias, None, None, training, momentum, eps)


def _native_batch_norm_legit_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """`batch_norm` that returns the new running statistics and writes nothing."""
    mean, var = running_mean.clone(), running_var.clone()
    found = _ops["native_batch_norm"](input, weight, bias, mean, var, training, momentum, eps)
    return (*found, mean, var)


def _native_batch_norm_legit_no_training(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """`batch_norm` by running statistics."""
    result = batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps, False)
    return result, input.new_empty(0), input.new_empty(0)


def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`softmax`, in float32 where asked."""
    return _ops["softmax"](self, dim, dtype=_C.float32 if half_to_float else None)


def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """`log_softmax`, in float32 where asked."""
    return _ops["log_softmax"](self, dim, dtype=_C.float32 if half_to_float else None)


def pad(self: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`nn.functional.pad`."""
    return _functional("pad")(self, tuple(pad), mode, value)


def _padding(mode: str) -> Callable[..., Any]:
    return lambda self, padding: pad(self, padding, mode)


def one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    """`nn.functional.one_hot`."""
    return _functional("one_hot")(self, num_classes)


def im2col(
    self: Tensor,
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """`nn.functional.unfold`."""
    return _functional("unfold")(self, tuple(kernel_size), tuple(dilation), tuple(padding), tuple(stride))


def col2im(
    self: Tensor,
    output_size: Sequence[int],
    kernel_size: Sequence[int],
    dilation: Sequence[int],
    padding: Sequence[int],
    stride: Sequence[int],
) -> Tensor:
    """`nn.functional.fold`."""
    sizes = (tuple(v) for v in (output_size, kernel_size, dilation, padding, stride))
    return _functional("fold")(self, *sizes)


def grid_sampler(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`nn.functional.grid_sample` with numbers of modes."""
    return _functional("grid_sample")(
        input, grid, _MODES[interpolation_mode], _PADDINGS[padding_mode], align_corners=align_corners
    )


def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """`nn.functional.affine_grid`."""
    return _functional("affine_grid")(theta, tuple(size), align_corners=align_corners)


def _pool(name: str) -> Callable[..., Any]:
    def call(self: Tensor, kernel_size: Any, stride: Any = (), *rest: Any, **named: Any) -> Any:
        return _functional(name)(self, _one(kernel_size), _one(stride) or None, *map(_one, rest), **named)

    return call


def _one(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _adaptive(name: str) -> Callable[..., Any]:
    return lambda self, output_size: _functional(name)(self, _one(output_size))


def _adaptive_max(name: str) -> Callable[..., Any]:
    return lambda self, output_size: _functional(name)(self, _one(output_size), return_indices=True)


def _upsample(mode: str, dims: int, corners: bool, antialias: bool = False) -> Callable[..., Any]:
    """The ops of `interpolate`: with a list of factors (`.vec`), or a factor for each dimension."""

    def call(input: Tensor, output_size: Any, *rest: Any) -> Tensor:
        align = rest[0] if corners and rest else None
        factors = rest[1 if corners else 0 :]
        options: dict[str, Any] = {"mode": mode, "antialias": antialias, "align_corners": align}
        listed = len(factors) == 1 and isinstance(factors[0], (list, tuple))
        scales = factors[0] if listed else factors
        if output_size is None:
            return _functional("interpolate")(input, scale_factor=tuple(scales), **options)
        sizes = tuple(output_size)
        found = [s for s in scales or () if s is not None]
        if len(found) == dims and sizes == tuple(int(n * s) for n, s in zip(input.shape[2:], found)):
            return _functional("interpolate")(input, scale_factor=tuple(found), **options)
        return _functional("interpolate")(input, size=sizes, **options)

    return call


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`nn.functional.scaled_dot_product_attention`."""
    return _functional("scaled_dot_product_attention")(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def _scaled_dot_product_flash_attention_for_cpu(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """`scaled_dot_product_attention`, with the logarithms of the sums of each row."""
    result = scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale=scale)
    factor = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * factor
    if is_causal:
        hidden = _ops["ones"](scores.shape[-2:], dtype=_C.bool, device=query.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    if attn_mask is not None:
        scores = scores + attn_mask if attn_mask.dtype != _C.bool else scores.masked_fill(~attn_mask, float("-inf"))
    return result, scores.logsumexp(-1)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`nn.functional.embedding_bag`, with three results that a gradient could use, which are empty."""
    names = ("sum", "mean", "max")
    result = _functional("embedding_bag")(
        indices, weight, offsets, None, 2.0, scale_grad_by_freq, names[mode], sparse, per_sample_weights,
        include_last_offset, padding_idx,
    )  # fmt: skip
    empty = indices.new_empty(0)
    return result, empty, empty.clone(), empty.clone()


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
) -> tuple[Tensor, Tensor, Tensor]:
    """`unique` with all of its results."""
    return _ops["unique"](self, sorted, True, True)


def nonzero_numpy(self: Tensor) -> tuple[Tensor, ...]:
    """The indices of elements that are not zero, a tensor for each dimension."""
    return _ops["nonzero"](self, as_tuple=True)


def linalg_vector_norm(
    self: Tensor, ord: float = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    """`linalg.vector_norm`."""
    return importlib.import_module("rustgrad.linalg").vector_norm(self, ord, _one(dim), keepdim, dtype=dtype)


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


_OWN = """cross_entropy_loss nll_loss_nd nll_loss_forward gelu elu leaky_relu glu softplus log_sigmoid log_sigmoid_forward dropout
    feature_dropout linear embedding layer_norm group_norm rms_norm batch_norm instance_norm _native_batch_norm_legit
    _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _softmax _log_softmax pad one_hot im2col col2im grid_sampler
    affine_grid_generator scaled_dot_product_attention _scaled_dot_product_flash_attention_for_cpu embedding_bag lift_fresh_copy copy fill
    _to_copy to _assert_tensor_metadata _assert_scalar _assert_async sym_size sym_stride sym_numel sym_storage_offset item _unique2
    nonzero_numpy linalg_vector_norm where numpy_T mT matrix_H meshgrid einsum tensordot stft""".split()
_FORMS: dict[str, Callable[..., Any]] = {name: globals()[name] for name in _OWN}
_FORMS["_local_scalar_dense"] = item
_FORMS["_embedding_bag"] = _FORMS["_embedding_bag_forward_only"] = embedding_bag
_FORMS["grid_sampler_2d"] = _FORMS["grid_sampler_3d"] = grid_sampler
_FORMS["lift_fresh"] = _FORMS["lift"] = lambda self: self
_FORMS["alias"] = lambda self: self.view_as(self)
_FORMS["detach_"] = lambda self: self.detach_()
for _name in ("cartesian_prod", "block_diag", "broadcast_tensors", "atleast_1d", "atleast_2d", "atleast_3d"):
    if not _name.startswith("atleast"):
        _FORMS[_name] = _tuple_of(_name)
for _name in ("and", "or", "xor", "lshift", "rshift", "iand", "ior", "ixor", "ilshift", "irshift"):
    _FORMS[f"__{_name}__"] = _operator(f"__{_name}__")
for _dims in (1, 2, 3):
    for _form in (f"max_pool{_dims}d", f"avg_pool{_dims}d", f"max_pool{_dims}d_with_indices"):
        _FORMS[_form] = _pool(_form)
    _FORMS[f"adaptive_avg_pool{_dims}d"] = _adaptive(f"adaptive_avg_pool{_dims}d")
    _FORMS[f"_adaptive_avg_pool{_dims}d"] = _adaptive(f"adaptive_avg_pool{_dims}d")
    _FORMS[f"adaptive_max_pool{_dims}d"] = _adaptive_max(f"adaptive_max_pool{_dims}d")
    _FORMS[f"reflection_pad{_dims}d"] = _padding("reflect")
    _FORMS[f"replication_pad{_dims}d"] = _padding("replicate")
    _FORMS[f"upsample_nearest{_dims}d"] = _upsample("nearest", _dims, False)
    _FORMS[f"_upsample_nearest_exact{_dims}d"] = _upsample("nearest-exact", _dims, False)
for _form, _mode, _dims in (("linear1d", "linear", 1), ("bilinear2d", "bilinear", 2), ("trilinear3d", "trilinear", 3), ("bicubic2d", "bicubic", 2)):  # fmt: skip
    _FORMS[f"upsample_{_form}"] = _upsample(_mode, _dims, True)
    _FORMS[f"_upsample_{_form}_aa"] = _upsample(_mode, _dims, True, True)
