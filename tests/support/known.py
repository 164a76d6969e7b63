"""What the table knows not to hold, with reasons. Strict: an xfail that passes fails the run."""

import re

# (property, or "property on device"; op) -> reason
XFAIL: dict[tuple[str, str], str] = {
    ("edges", "index_put"): "a 0-d tensor indexed by a mask is accepted; PyTorch refuses it",
    (
        "edges",
        "nn.functional.pad",
    ): "padding of 0-d tensors and cropping beyond the size are accepted; PyTorch refuses them",
    (
        "edges",
        "constant_pad_nd",
    ): "padding of 0-d tensors and cropping beyond the size are accepted; PyTorch refuses them",
    ("edges", "linalg.matrix_norm"): "the norm of a matrix without columns is refused; PyTorch gives zero",
    ("edges", "linalg.norm"): "the norm of a matrix without columns is refused; PyTorch gives zero",
    (
        "edges",
        "repeat_interleave.self_int",
    ): "a 0-d tensor is repeated along dimension 0; PyTorch refuses dim=0 beyond its range",
    ("edges on cpu", "adjoint"): "a 0-d complex tensor is not conjugated",
    ("result dtype", "view_as_complex"): "complex32 does not exist here",
    ("result dtype", "complex"): "complex32 does not exist here",
    ("result dtype", "polar"): "complex32 does not exist here",
    ("same as CPU", "view_as_complex"): "the GPU has no complex numbers",
    ("on device", "view_as_complex"): "the GPU has no complex numbers",
    ("strided on gpu", "view_as_complex"): "the GPU has no complex numbers",
    ("result dtype", "native_layer_norm"): "statistics of half precision stay in float32",
    ("result dtype", "addr"): "bool inputs give int64; PyTorch has a logical form",
    ("result dtype", "nn.functional.mse_loss.weighted"): "squared errors of integers are not computed",
    ("result dtype", "logsumexp"): "not defined for complex numbers yet",
    ("result dtype", "logcumsumexp"): "not defined for complex numbers yet",
    (
        "gradcheck",
        "native_layer_norm",
    ): "the gradient through the statistics is not formed; layer_norm has the exact one",
    ("gradcheck", "_nll_loss_backward"): "a step of nll_loss: linear in its gradient, constant in the logits",
    ("errors", "nn.functional.glu"): "another wording",
    ("errors", "scatter_reduce"): "another wording",
    ("errors", "index_add"): "RuntimeError where PyTorch has IndexError",
    ("errors", "index_fill.int_Tensor"): "a 1-d value is taken",
    ("errors", "narrow.Tensor"): "a 1-d start is taken",
    ("errors", "tensor_split.tensor_indices_or_sections"): "a 2-d tensor of indices is taken",
}

# Samples that a property is not about: (property, op without namespace and underscores, pattern in the sample, reason).
NOT_ABOUT = [
    ("strided", "as_strided", "", "reads the storage, not the elements"),
    ("expanded", "as_strided", "", "reads the storage, not the elements"),
    ("grad", "bernoulli", "", "its gradient is zero by definition"),
    ("grad", "normal", "", "its gradient is zero by definition"),
    (
        "grad",
        "embedding",
        r"scale_grad|i64.*, -?\d",
        "padding_idx and scale_grad_by_freq change the gradient by definition",
    ),
    ("edges", "var_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "std_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "native_layer_norm", "special", "PyTorch's running mean turns infinity into NaN"),
]


def not_about(name: str, leaf: str, text: str) -> str:
    """Why a property is not about a sample; empty if it is."""
    for prop, op, pattern, reason in NOT_ABOUT:
        if name.startswith(prop) and leaf.strip("_") == op and re.search(pattern, text):
            return reason
    return ""
