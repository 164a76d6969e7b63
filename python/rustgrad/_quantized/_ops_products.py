"""`ops.quantized`: linear layers, convolutions and embeddings."""

from __future__ import annotations

from typing import Any

from .._C import Tensor, ops
from .._formats import per_tensor_affine
from ..nn import functional
from ._packed import ConvPackedParams, HalfPackedParams, LinearPackedParams, by_range, dynamic, requantized
from ._quantizer import PerTensor, f32, to_integers
from ._script_object import ScriptObject
from ._tensor import is_quantized, made

OPS: dict[str, Any] = {}


def op(function):
    """Puts a function among the ops of the namespace, under its own name."""
    OPS[function.__name__] = function
    return function


@op
def linear_prepack(W, B=None):
    """A weight (outputs, inputs) of `qint8` and a bias, for `linear` and `linear_dynamic`."""
    if W.dim() != 2:
        raise RuntimeError(f"The weight tensor for quantized::linear_prepack should be 2-dimensional, got {W.dim()}")
    return ScriptObject(LinearPackedParams(W, B))


@op
def linear_unpack(W_prepack):
    """The weight and the bias."""
    return W_prepack.unpack()


@op
def linear_prepack_fp16(W, B=None):
    """A float32 weight rounded to float16, and a bias."""
    return ScriptObject(HalfPackedParams(W, B))


@op
def linear_unpack_fp16(W_prepack):
    """The weight, as float32, and the bias."""
    return W_prepack.unpack()


def _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, relu):
    weight = W_prepack._weight
    if X.dim() == 0 or X.shape[-1] != weight.shape[1]:
        raise RuntimeError(
            f"quantized::linear: the number of columns of the input ({tuple(X.shape)}) should be that of the weight "
            f"({tuple(weight.shape)})"
        )
    return requantized(W_prepack, X, -1, Y_scale_i, Y_zero_point_i, relu)


@op
def linear(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """`X @ W.T + B`, quantised."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, False)


@op
def linear_relu(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """`relu(X @ W.T + B)`, quantised."""
    return _linear(X, W_prepack, Y_scale_i, Y_zero_point_i, True)


@op
def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    """`leaky_relu(X @ W.T + B)`, quantised."""
    return _linear_then(X, W_prepack, Y_scale_i, Y_zero_point_i, lambda y: functional.leaky_relu(y, negative_slope))


@op
def linear_tanh(X, W_prepack, Y_scale_i, Y_zero_point_i):
    """`tanh(X @ W.T + B)`, quantised."""
    return _linear_then(X, W_prepack, Y_scale_i, Y_zero_point_i, ops["tanh"])


def _linear_then(X, packed, scale, zero_point, function):
    numbers = functional.linear(X.dequantize(), packed._weight.dequantize(), packed._bias)
    quantizer = PerTensor(float(scale), int(zero_point))
    return made(quantizer.quantize(function(numbers), X.dtype), quantizer, X.dtype)


@op
def linear_dynamic(X, W_prepack, reduce_range=False):
    """`X @ W.T + B` of a float32 input, which is quantised by its own range."""
    return dynamic(W_prepack, X, reduce_range)


@op
def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    """`relu(X @ W.T + B)` of a float32 input, which is quantised by its own range."""
    return dynamic(W_prepack, X, reduce_range, True)


@op
def linear_dynamic_fp16(X, W_prepack):
    """`X @ W.T + B` with a weight that was rounded to float16."""
    return W_prepack.apply_dynamic(X)


@op
def linear_relu_dynamic_fp16(X, W_prepack):
    """`relu(X @ W.T + B)` with a weight that was rounded to float16."""
    return linear_dynamic_fp16(X, W_prepack).relu_()


# --- convolutions ------------------------------------------------------------------------------------------------
def _conv(n, qx, packed, scale, zero_point, relu=False, added=None):
    if qx.dim() != n + 2:
        raise RuntimeError(
            f"quantized::conv{n}d(): Expected activation tensor to have {n + 2} dimensions, got {qx.dim()}."
        )
    if scale is None:
        raise RuntimeError(f"quantized::conv{n}d: expected an output scale and zero point")
    if _is_flat(n, packed):
        return requantized(packed, qx.unsqueeze(2), 1, scale, zero_point, relu, added).squeeze(2)
    return requantized(packed, qx, 1, scale, zero_point, relu, added)


def _is_flat(n, packed):
    """Whether a weight of one dimension was read from a file, which has it as two."""
    return n == 1 and packed._weight.dim() == 4


def _add_convolutions(n, kind):
    def prepack(weight: Tensor, bias: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
        return ScriptObject(ConvPackedParams(weight, bias, stride, padding, dilation, groups))

    def transposed(
        weight: Tensor, bias: Any, stride: Any, padding: Any, output_padding: Any, dilation: Any, groups: int
    ) -> Any:
        return ScriptObject(ConvPackedParams(weight, bias, stride, padding, dilation, groups, True, output_padding))

    def conv(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
        return _conv(n, qx, packed_weight, output_scale, output_zero_point)

    def conv_relu(qx: Tensor, packed_weight: Any, output_scale: float, output_zero_point: int) -> Tensor:
        return _conv(n, qx, packed_weight, output_scale, output_zero_point, True)

    def conv_dynamic(qx: Tensor, packed_weight: Any, reduce_range: bool = False) -> Tensor:
        # The result has the scale of the input, as in PyTorch: greater numbers are clamped.
        x = by_range(qx, reduce_range)
        return _conv(n, x, packed_weight, x.q_scale(), x.q_zero_point()).dequantize()

    def unpack(packed_weights: Any) -> Any:
        weight, bias = packed_weights.unpack()
        return weight.squeeze(2) if _is_flat(n, packed_weights) else weight, bias

    functions = {"_prepack": transposed if kind else prepack, "": conv, "_dynamic": conv_dynamic, "_unpack": unpack}
    if not kind:
        functions["_relu"] = conv_relu
    for part in ("stride", "padding", "output_padding", "dilation", "groups", "transpose"):
        functions[f"_{part}"] = _part(part)
    OPS.update({f"conv{kind}{n}d{name}": function for name, function in functions.items()})


def _part(name):
    def asked(packed_weights: Any) -> Any:
        return getattr(packed_weights, name)()

    return asked


for _n in (1, 2, 3):
    _add_convolutions(_n, "")
    _add_convolutions(_n, "_transpose")
OPS["conv_prepack"], OPS["conv_unpack"] = OPS["conv2d_prepack"], OPS["conv2d_unpack"]


@op
def conv2d_add(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """A convolution to which a quantised tensor is added before rounding."""
    return _conv(2, qx, packed_weight, output_scale, output_zero_point, False, qaccum)


@op
def conv2d_add_relu(qx, qaccum, packed_weight, output_scale, output_zero_point):
    """`relu` of `conv2d_add`."""
    return _conv(2, qx, packed_weight, output_scale, output_zero_point, True, qaccum)


@op
def matmul(qa, qb, scale, zero_point):
    """The product of two quantised tensors: exact sums, a new scale."""
    for q in (qa, qb):
        if not is_quantized(q) or q.dtype is not qa.dtype:
            raise RuntimeError("quantized::matmul: expected two quantised tensors of one dtype")
        if q.qscheme() is not per_tensor_affine:
            raise RuntimeError("quantized::matmul: both operands must be per-tensor quantized")
    a, b = (q._value.double() - q._per_tensor().zero_point for q in (qa, qb))
    factor = qa.q_scale() * qb.q_scale() / scale
    quantizer = PerTensor(float(scale), int(zero_point))
    return made(to_integers((a @ b).float(), qa.dtype, f32(factor), int(zero_point)), quantizer, qa.dtype)
