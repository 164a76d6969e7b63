"""What the table knows not to hold, with reasons. Strict: an xfail that passes fails the run."""

import re

# (property, or "property on device"; op) -> reason
XFAIL: dict[tuple[str, str], str] = {
    ("on device", "unique"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique.inverse"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique.counts"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique.inverse_counts"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique_consecutive"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique_consecutive.inverse"): "distinct elements are found on the host; there is no shader yet",
    ("on device", "unique_consecutive.counts"): "distinct elements are found on the host; there is no shader yet",
    (
        "on device",
        "unique_consecutive.inverse_counts",
    ): "distinct elements are found on the host; there is no shader yet",
    ("result dtype", "view_as_complex"): "complex32 does not exist here",
    ("result dtype", "complex"): "complex32 does not exist here",
    ("result dtype", "polar"): "complex32 does not exist here",
    ("same as CPU", "view_as_complex"): "the GPU has no complex numbers",
    ("on device", "view_as_complex"): "the GPU has no complex numbers",
    ("strided on gpu", "view_as_complex"): "the GPU has no complex numbers",
    ("result dtype", "nn.functional.mse_loss.weighted"): "squared errors of integers are not computed",
    (
        "gradcheck",
        "native_layer_norm",
    ): "as in PyTorch no gradient passes through the statistics, though they depend on the input",
    ("gradcheck", "_nll_loss_backward"): "a step of nll_loss: linear in its gradient, constant in the logits",
    ("errors", "nn.functional.glu"): "another wording",
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
    ("edges", "mode", "special", "how PyTorch counts NaNs depends on its sort"),
    ("edges", "topk", "special", "PyTorch's order of equal elements is that of its partial sort"),
    ("edges", "kthvalue", "special", "PyTorch's order of equal elements is that of its partial sort"),
    ("edges", "var_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "std_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "native_layer_norm", "special", "PyTorch's running mean turns infinity into NaN"),
    ("grad", "pinv", "hermitian=True", "half of each off-diagonal pair's derivative by convention"),
]
NOT_ABOUT += [
    ("expanded", op, "", "an expanded matrix has equal rows: it is singular")
    for op in (
        "cholesky",
        "lu_factor",
        "lu_with_info",
        "matrix_power",
        "tensorinv",
        "tensorsolve",
        "inv",
        "inverse",
        "solve",
    )
]
NOT_ABOUT += [
    ("grad", op, "", "one triangle is read and the gradient is Hermitian, by PyTorch's convention")
    for op in ("cholesky", "cholesky_ex", "linalg_eigh", "eigh", "eigvalsh")
]
NOT_ABOUT += [
    ("edges", op, "special", "which NaNs and infinities come out depends on the order of LAPACK's steps")
    for op in (
        "trapezoid", "cholesky_ex", "cond", "slogdet", "eigvalsh", "qr", "geqrf", "householder_product", "ormqr",
    )
]  # fmt: skip


def not_about(name: str, leaf: str, text: str) -> str:
    """Why a property is not about a sample; empty if it is."""
    for prop, op, pattern, reason in NOT_ABOUT:
        if name.startswith(prop) and leaf.strip("_") == op and re.search(pattern, text):
            return reason
    return ""
