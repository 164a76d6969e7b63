"""How single functions are written as ops: each gets the arguments of a call by name, and gives the code.

The ops' arguments stand in the order of their schemas; a loss's reduction is a number there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._base import Tensor
from ._record import CannotRecord, Code, Recorder
from ._record_index import assign_item, get_item
from ._record_resize import interpolate

__all__ = ["BOUND", "CASTS", "SPECIAL"]

Emit = Callable[..., str]
CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
       "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64", "cdouble": "complex128"}  # fmt: skip


def _real(value: Any) -> Any:
    """A number as a float; code is left as it is."""
    return value if isinstance(value, Code) else float(value)


# --- by names of arguments


def _reduction(a: dict[str, Any]) -> int:
    if a.get("size_average") is not None or a.get("reduce") is not None:
        raise CannotRecord("a loss with size_average or reduce; expected reduction")
    return ("none", "mean", "sum").index(a.get("reduction", "mean"))


def _loss(op: str, *extra: str) -> Any:
    """A loss: input, target, the reduction as a number, then what else the schema has."""
    defaults = {"beta": 1.0, "delta": 1.0}
    return lambda r, a, _: r.call_text(
        op, a["input"], a["target"], _reduction(a), *(_real(a.get(n, defaults[n])) for n in extra)
    )


def _nll(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text(
        "nll_loss_nd", a["input"], a["target"], a.get("weight"), _reduction(a), a.get("ignore_index", -100)
    )


def _cross_entropy(r: Recorder, a: dict[str, Any], _: Any) -> str:
    rest = (a.get("weight"), _reduction(a), a.get("ignore_index", -100), _real(a.get("label_smoothing", 0.0)))
    return r.call_text("cross_entropy_loss", a["input"], a["target"], *rest)


def _bce(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("binary_cross_entropy", a["input"], a["target"], a.get("weight"), _reduction(a))


def _bce_logits(r: Recorder, a: dict[str, Any], _: Any) -> str:
    op = "binary_cross_entropy_with_logits"
    return r.call_text(op, a["input"], a["target"], a.get("weight"), a.get("pos_weight"), _reduction(a))


def _kl(r: Recorder, a: dict[str, Any], _: Any) -> str:
    by_batch = a.get("reduction") == "batchmean"
    number = 2 if by_batch else _reduction(a)
    loss = r.line("kl_div", a["input"], a["target"], number, log_target=a.get("log_target", False))
    return (
        r.call_text("div", loss, Code(f"torch.size({r.name_of(a['input'])}, 0)"))
        if by_batch
        else r.call_text("alias", loss)
    )


def _dropout(op: str) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        training = a.get("training", a.get("train", True))
        return r.call_text(op + ("_" if a.get("inplace") else ""), a["input"], _real(a.get("p", 0.5)), training)

    return write


def _batch_norm(r: Recorder, a: dict[str, Any], _: Any) -> str:
    order = [a.get(n) for n in ("input", "weight", "bias", "running_mean", "running_var")]
    return r.call_text(
        "batch_norm", *order, a.get("training", False), _real(a.get("momentum", 0.1)), _real(a.get("eps", 1e-5)), True
    )


def _instance_norm(r: Recorder, a: dict[str, Any], _: Any) -> str:
    order = [a.get(n) for n in ("input", "weight", "bias", "running_mean", "running_var")]
    return r.call_text(
        "instance_norm",
        *order,
        a.get("use_input_stats", True),
        _real(a.get("momentum", 0.1)),
        _real(a.get("eps", 1e-5)),
        True,
    )


def _norm_of_groups(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text(
        "group_norm", a["input"], a["num_groups"], a.get("weight"), a.get("bias"), _real(a.get("eps", 1e-5)), True
    )


def _embedding(r: Recorder, a: dict[str, Any], _: Any) -> str:
    if a.get("max_norm") is not None:
        raise CannotRecord("an embedding with max_norm")
    rest = (a.get("padding_idx"), a.get("scale_grad_by_freq", False), a.get("sparse", False))
    padding = -1 if rest[0] is None else rest[0]
    return r.call_text(
        "embedding", a["weight"], a["input"], padding + (len(a["weight"]) if padding < -1 else 0), *rest[1:]
    )


def _pad(r: Recorder, a: dict[str, Any], _: Any) -> str:
    value = a.get("value")
    number = None if value is None else float(value)
    sizes = a["pad"] if isinstance(a["pad"], Code) else list(a["pad"])
    return r.call_text("pad", a["input"], sizes, a.get("mode", "constant"), number)


def _has_indices(a: dict[str, Any], result: Any) -> bool:
    """Whether a call of a pool gives indices; its result is not known where code is translated."""
    return isinstance(result, tuple) or result is None and a.get("return_indices") is True


def _pool(op: str, dims: int) -> Any:
    def write(r: Recorder, a: dict[str, Any], result: Any) -> str:
        sizes = {n: a[n] for n in ("kernel_size", "stride", "padding", "dilation") if a.get(n) is not None}
        each = {n: list(v) if isinstance(v, (list, tuple)) else [v] * dims for n, v in sizes.items()}
        name = f"{op}{dims}d" + ("_with_indices" if _has_indices(a, result) else "")
        return r.call_text(name, a["input"], each["kernel_size"], each.get("stride", []), each.get("padding", [0] * dims),
                           each.get("dilation", [1] * dims), a.get("ceil_mode", False))  # fmt: skip

    return write


def _mean_pool(dims: int) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        each = {
            n: list(v) if isinstance(v, (list, tuple)) else [v] * dims
            for n, v in a.items()
            if n in ("kernel_size", "stride", "padding") and v is not None
        }
        rest = [] if dims == 1 else [a.get("divisor_override")]
        return r.call_text(f"avg_pool{dims}d", a["input"], each["kernel_size"], each.get("stride", []), each.get("padding", [0] * dims),
                           a.get("ceil_mode", False), a.get("count_include_pad", True), *rest)  # fmt: skip

    return write


def _adaptive(op: str, dims: int) -> Any:
    def write(r: Recorder, a: dict[str, Any], result: Any) -> str:
        sizes = a["output_size"]
        sizes = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes] * dims
        sizes = [a["input"].shape[i - dims] if n is None else n for i, n in enumerate(sizes)]
        text = r.call_text(f"{op}{dims}d", a["input"], sizes)
        # The op gives indices too.
        return f"({text})[0]" if "max" in op and not _has_indices(a, result) else text

    return write


def _normalize(r: Recorder, a: dict[str, Any], _: Any) -> str:
    x, p, dim = a["input"], a.get("p", 2.0), a.get("dim", 1)
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    size = r.line("clamp_min", r.line("linalg_vector_norm", x, p, dims, True), _real(a.get("eps", 1e-12)))
    return r.call_text("div", x, r.line("expand_as", size, x))


def _softmax(op: str) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        dim = a.get("dim")
        if dim is None:
            dim = 0 if a["input"].dim() in (0, 1, 3) else 1
        return r.call_text(op, a["input"], dim, a.get("dtype"))

    return write


def _elu(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("elu_" if a.get("inplace") else "elu", a["input"], a.get("alpha", 1.0))


def _attention(r: Recorder, a: dict[str, Any], _: Any) -> str:
    order = [
        a["query"],
        a["key"],
        a["value"],
        a.get("attn_mask"),
        _real(a.get("dropout_p", 0.0)),
        a.get("is_causal", False),
    ]
    named = {n: a[n] for n in ("scale", "enable_gqa") if a.get(n)}
    return r.call_text("scaled_dot_product_attention", *order, **named)


def _unfold(r: Recorder, a: dict[str, Any], _: Any) -> str:
    def pair(n: str, default: int) -> list[int]:
        v = a.get(n, default)
        return list(v) if isinstance(v, (list, tuple)) else [v, v]

    sizes = [pair("output_size", 0)] if "output_size" in a else []
    op = "col2im" if sizes else "im2col"
    return r.call_text(
        op, a["input"], *sizes, pair("kernel_size", 1), pair("dilation", 1), pair("padding", 0), pair("stride", 1)
    )


def _einsum(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    if not isinstance(args[0], str):
        raise CannotRecord("einsum with lists of dimensions; expected an equation")
    return r.call_text("einsum", args[0], list(operands))


def _of_list(op: str) -> Emit:
    def emit(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
        tensors = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
        return r.call_text(op, list(tensors), **kwargs)

    return emit


def _to(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Tensor) -> str:
    x = args[0]
    if result is x:
        return r.call_text("alias", x)
    same_device = result.device == x.device
    copy = bool(kwargs.get("copy"))
    if same_device:
        return r.call_text("to", x, result.dtype, False, copy)
    return r.call_text("to", x, Code(f'torch.device("{result.device}")'), result.dtype, False, copy)


def _right(op: str) -> Emit:
    """An operator whose number stands on the left."""

    def emit(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
        x, number = args
        if op == "div":
            return r.call_text("mul", r.line("reciprocal", x), number)
        if op == "sub":
            return r.call_text("rsub", x, number)
        if op == "pow":
            return r.call_text("pow", number, x)
        if isinstance(number, Tensor):
            return r.call_text(op, number, x)
        whole = r.line("full_like", x, number, dtype=result.dtype)
        return r.call_text(op, whole, x)

    return emit


def _alias(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    return r.call_text("detach", args[0])


def _transposed(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    return r.call_text("permute", args[0], list(range(args[0].dim()))[::-1])


def _swapped(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Any) -> str:
    return r.call_text("transpose", args[0], -2, -1)


def _constant(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Tensor) -> str:
    """A tensor of data: a constant, which is copied so that writes to it stay in one call."""
    return r.call_text("clone", Code(r.constant(result.detach())))


def _contiguous(r: Recorder, key: str, func: Any, args: Any, kwargs: Any, result: Tensor) -> str:
    if result is args[0]:
        return r.call_text("contiguous", args[0])
    given = kwargs.get("memory_format")
    return r.call_text("contiguous", args[0], **({} if given is None else {"memory_format": given}))


def _split(r: Recorder, a: dict[str, Any], _: Any) -> str:
    sizes = next(v for n, v in a.items() if n.startswith("split") or n in ("split_size_or_sections",))
    op = "split_with_sizes" if isinstance(sizes, (list, tuple)) else "split"
    return r.call_text(op, a["input"], list(sizes) if op != "split" else sizes, a.get("dim", 0))


def _variance(op: str) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        correction = a.get("correction")
        if correction is None:
            correction = int(a.get("unbiased", True)) if not isinstance(a.get("dim"), bool) else int(a["dim"])
        dim = None if isinstance(a.get("dim"), bool) else a.get("dim")
        dims = dim if dim is None or isinstance(dim, (list, tuple)) else [dim]
        return r.call_text(op, a["input"], dims, correction=correction, keepdim=a.get("keepdim", False))

    return write


def _norm(r: Recorder, a: dict[str, Any], _: Any) -> str:
    p, dim = a.get("p", "fro"), a.get("dim")
    if p == "nuc" or a.get("dtype") is not None:
        raise CannotRecord("norm with p='nuc' or a dtype; expected linalg.norm")
    dims = dim if dim is None or isinstance(dim, (list, tuple)) else [dim]
    return r.call_text("linalg_vector_norm", a["input"], 2 if p in ("fro", None) else p, dims, a.get("keepdim", False))


def _scattering(op: str) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        source = a.get("src", a.get("value"))
        named = {"reduce": a["reduce"]} if a.get("reduce") is not None and a["reduce"] is not Ellipsis else {}
        return r.call_text(op, a["input"], a["dim"], a["index"], source, **named)

    return write


def _rrelu(r: Recorder, a: dict[str, Any], _: Any) -> str:
    if a.get("training"):
        raise CannotRecord("rrelu in training")
    return r.call_text("leaky_relu", a["input"], (a.get("lower", 1 / 8) + a.get("upper", 1 / 3)) / 2)


def _as_other(op: str, *names: str, **defaults: Any) -> Any:
    """Another op, with the arguments of these names in this order."""
    return lambda r, a, _: r.call_text(op, *(a.get(n, defaults.get(n)) for n in names))


def _relu(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("relu_" if a.get("inplace") else "relu", a["input"])


def _relu6(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("hardtanh_" if a.get("inplace") else "hardtanh", a["input"], 0.0, 6.0)


def _grid(r: Recorder, a: dict[str, Any], _: Any) -> str:
    mode = ("bilinear", "nearest", "bicubic").index(a.get("mode", "bilinear"))
    padding = ("zeros", "border", "reflection").index(a.get("padding_mode", "zeros"))
    return r.call_text("grid_sampler", a["input"], a["grid"], mode, padding, bool(a.get("align_corners")))


def _affine_grid(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("affine_grid_generator", a["theta"], list(a["size"]), bool(a.get("align_corners")))


def _tensordot(r: Recorder, a: dict[str, Any], _: Any) -> str:
    dims, x = a.get("dims", 2), a["a"]
    if isinstance(dims, Tensor):
        raise CannotRecord("tensordot with dimensions that are a tensor")
    pair = (
        [list(range(x.dim() - dims, x.dim())), list(range(dims))] if isinstance(dims, int) else [list(d) for d in dims]
    )
    return r.call_text("tensordot", x, a["b"], *pair)


def _cdist(r: Recorder, a: dict[str, Any], _: Any) -> str:
    modes = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
    return r.call_text("cdist", a["x1"], a["x2"], _real(a.get("p", 2.0)), modes.index(a.get("compute_mode", modes[0])))


def _conv(dims: int, transposed: bool) -> Any:
    def write(r: Recorder, a: dict[str, Any], _: Any) -> str:
        def each(n: str, default: Any) -> Any:
            v = a.get(n, default)
            return v if isinstance(v, str) else list(v) if isinstance(v, (list, tuple)) else [v] * dims

        padding = a.get("padding", 0)
        head = (
            a["input"],
            a["weight"],
            a.get("bias"),
            each("stride", 1),
            each("padding", 0) if padding != "valid" else [0] * dims,
        )
        if transposed:
            order = (each("output_padding", 0), a.get("groups", 1), each("dilation", 1))
            return r.call_text(f"conv_transpose{dims}d", *head, *order)
        return r.call_text(f"conv{dims}d", *head, each("dilation", 1), a.get("groups", 1))

    return write


def _clamp(r: Recorder, a: dict[str, Any], _: Any) -> str:
    return r.call_text("clamp", a["input"], a.get("min"), a.get("max"))


BOUND: dict[str, Any] = {
    "nll_loss": _nll, "cross_entropy": _cross_entropy, "binary_cross_entropy": _bce,
    "binary_cross_entropy_with_logits": _bce_logits, "kl_div": _kl, "mse_loss": _loss("mse_loss"), "l1_loss": _loss("l1_loss"),
    "smooth_l1_loss": _loss("smooth_l1_loss", "beta"), "huber_loss": _loss("huber_loss", "delta"),
    "soft_margin_loss": _loss("soft_margin_loss"), "multilabel_margin_loss": _loss("multilabel_margin_loss"),
    "dropout": _dropout("dropout"), "alpha_dropout": _dropout("alpha_dropout"), "feature_alpha_dropout": _dropout("feature_alpha_dropout"),
    "dropout1d": _dropout("feature_dropout"), "dropout2d": _dropout("feature_dropout"), "dropout3d": _dropout("feature_dropout"),
    "batch_norm": _batch_norm, "instance_norm": _instance_norm, "group_norm": _norm_of_groups, "embedding": _embedding,
    "interpolate": interpolate, "pad": _pad, "normalize": _normalize, "softmax": _softmax("softmax"),
    "log_softmax": _softmax("log_softmax"), "elu": _elu, "relu": _relu, "relu6": _relu6,
    "scaled_dot_product_attention": _attention, "im2col": _unfold, "col2im": _unfold, "split": _split, "var": _variance("var"), "std": _variance("std"),
    "norm": _norm, "scatter": _scattering("scatter"), "scatter_": _scattering("scatter_"), "rrelu": _rrelu, "clamp": _clamp,
    "tanhshrink": lambda r, a, _: r.call_text("sub", a["input"], r.line("tanh", a["input"])),
    "softsign": lambda r, a, _: r.call_text("div", a["input"], r.line("add", r.line("abs", a["input"]), 1)),
    "softmin": lambda r, a, _: r.call_text("softmax", r.line("neg", a["input"]), a.get("dim", -1)),
    "logsigmoid": _as_other("log_sigmoid", "input"), "bilinear": _as_other("bilinear", "input1", "input2", "weight", "bias"),
    "grid_sample": _grid, "affine_grid": _affine_grid, "cdist": _cdist, "tensordot": _tensordot,
    "softplus": _as_other("softplus", "input", "beta", "threshold", beta=1.0, threshold=20.0),
}  # fmt: skip
for _dims in (1, 2, 3):
    BOUND[f"conv{_dims}d"], BOUND[f"conv_transpose{_dims}d"] = _conv(_dims, False), _conv(_dims, True)
    BOUND[f"max_pool{_dims}d"] = BOUND[f"max_pool{_dims}d_with_indices"] = _pool("max_pool", _dims)
    BOUND[f"avg_pool{_dims}d"] = _mean_pool(_dims)
    BOUND[f"adaptive_avg_pool{_dims}d"] = _adaptive("adaptive_avg_pool", _dims)
    BOUND[f"adaptive_max_pool{_dims}d"] = _adaptive("adaptive_max_pool", _dims)

SPECIAL: dict[str, Emit] = {
    "__getitem__": get_item, "__setitem__": assign_item, "einsum": _einsum, "meshgrid": _of_list("meshgrid"),
    "broadcast_tensors": _of_list("broadcast_tensors"), "block_diag": _of_list("block_diag"), "cartesian_prod": _of_list("cartesian_prod"),
    "to": _to, "type": _to, "type_as": _to, "cpu": _to, "__rdiv__": _right("div"), "__rtruediv__": _right("div"),
    "__rsub__": _right("sub"), "rsub": _right("sub"), "__rpow__": _right("pow"), "__rfloordiv__": _right("floor_divide"), "__rmod__": _right("remainder"),
    "data.__get__": _alias, "T.__get__": _transposed, "mT.__get__": _swapped, "tensor": _constant, "as_tensor": _constant,
    "from_numpy": _constant, "contiguous": _contiguous, "new_tensor": _constant,
}  # fmt: skip
SPECIAL |= dict.fromkeys(CASTS, _to)
