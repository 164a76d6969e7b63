"""What the table knows not to hold, with reasons. Strict: an xfail that passes fails the run."""

import re

# (property, or "property on device"; op) -> reason
XFAIL: dict[tuple[str, str], str] = {
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
    ("strides", "nn.functional.logsigmoid"): "PyTorch makes this result row-major; here it follows its argument",
    ("strides", "masked_fill.Scalar"): "PyTorch makes this result row-major; here it follows its argument",
    ("strides", "masked_fill.Tensor"): "PyTorch makes this result row-major; here it follows its argument",
    ("strides", "float_power.scalar"): "PyTorch makes this result row-major; here it follows its argument",
    ("strides", "pow.scalar"): "PyTorch makes this result row-major; here it follows its argument",
    ("strides", "addr"): "of bools it is put together from other ops",
    ("strides on cpu", "adjoint"): "a computed conjugate has no gaps",
    ("strides", "unique.counts"): "PyTorch sorts columns",
    ("node names", "remainder.scalar"): "PyTorch has no gradient here",
    ("node names", "bernoulli.p"): "PyTorch has no gradient here",
    ("node names", "special.ndtr"): "a product with a number has the node of a product",
    ("node names", "nn.functional.pad"): "circular padding is a concatenation, not writes to views",
    ("nodes keep", "remainder.scalar"): "PyTorch has no gradient here",
    ("nodes keep", "bernoulli.p"): "PyTorch has no gradient here",
    ("nodes keep", "special.ndtr"): "a product with a number has the node of a product",
    ("nodes keep", "nn.functional.pad"): "its formula reads sizes alone",
    ("nodes keep", "complex"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "gather"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "index_add",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "index_copy",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "masked_select",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "nextafter",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "mul.scalar",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "cummax"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "cummin"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "take"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "put"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "take_along_dim",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "erfinv"): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "layer_norm",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "native_layer_norm",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "nn.functional.nll_loss",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "nn.functional.cross_entropy",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    (
        "nodes keep",
        "nn.functional.logsigmoid",
    ): "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ("nodes keep", "mm"): "strides of factors are not kept",
    ("nodes keep", "matmul"): "strides of factors are not kept",
    ("nodes keep", "addmm"): "strides of factors are not kept",
    ("nodes keep", "nn.functional.linear"): "strides of factors are not kept",
    ("nodes keep", "var"): "the form without dimensions has no arguments to keep, and the mean is not kept",
    ("nodes keep", "std"): "the form without dimensions has no arguments to keep, and the mean is not kept",
    ("nodes keep", "var_mean"): "the form without dimensions has no arguments to keep, and the mean is not kept",
    ("nodes keep", "std_mean"): "the form without dimensions has no arguments to keep, and the mean is not kept",
    ("nodes keep", "std_mean.dim"): "the form without dimensions has no arguments to keep, and the mean is not kept",
    (
        "nodes keep",
        "std_mean.correction",
    ): "the form without dimensions has no arguments to keep, and the mean is not kept",
    ("errors", "nn.functional.glu"): "another wording",
}

COMPOSED = (
    "vander", "combinations", "cdist", "pdist", "dist", "renorm", "linalg.lstsq", "linalg.lu", "lu_unpack",
    "linalg.lu_solve", "lu_solve", "linalg.householder_product", "ormqr", "triangular_solve", "linalg.solve",
    "linalg.solve_ex",
)  # fmt: skip
XFAIL |= {
    (check, op): "put together from other ops, whose nodes it shows"
    for check in ("node names", "nodes keep")
    for op in COMPOSED
}
XFAIL |= {
    (check, op): "a product with a number has the node of a product"
    for check in ("node names", "nodes keep")
    for op in ("trapezoid.dx", "trapezoid.x", "cumulative_trapezoid.x")
}
XFAIL |= {
    ("nodes keep", op): "its formula reads the matrix or the results, and not the factors"
    for op in ("linalg.det", "det", "linalg.slogdet", "slogdet", "linalg.svd", "linalg.svdvals", "svd")
}
XFAIL[("nodes keep", "cholesky_solve")] = "its formula does not read the right hand side"
XFAIL[("nodes keep", "linalg.matrix_power")] = "strides of factors are not kept"
XFAIL[("node names", "linalg.tensorinv")] = "a reshaped inverse is a view"
XFAIL[("strides on cpu", "linalg.lstsq")] = "PyTorch's solution is a part of LAPACK's longer columns"
XFAIL[("strides", "renorm")] = "PyTorch makes this result row-major; here it follows its argument"

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
    ("edges", "svdvals", r"f32\[2,3\]\(special", "PyTorch's LAPACK raises for some shapes and gives NaN for others"),
    ("edges", "cond", "'nuc'", "PyTorch's LAPACK raises for some shapes and gives NaN for others"),
    ("edges", "eigvalsh", "special", "PyTorch's LAPACK raises for some matrices with NaN and gives NaN for others"),
    ("gradcheck", "lstsq", "driver='gels[sd]'", "as in PyTorch no gradient passes through the singular values"),
    ("nodes", "diff", r"f32\[3\], 0$", "a clone, where PyTorch writes a copy"),
    ("nodes", "corrcoef", "c64", "a complex number keeps no parts: its formula reads sizes alone"),
    (
        "nodes",
        "qr",
        r"f32\[[02],[34]\]",
        "of wide matrices the first columns decide Q, and the others are seen in its basis",
    ),
]
# The first rows of expanded matrices are equal, so these are singular.
SINGLE = r"^[fc]\d+\[\d+,\d+\]"
EQUAL_ROWS = {
    **dict.fromkeys(("cholesky", "lu_factor", "lu_with_info", "inv", "inverse", "solve"), SINGLE),
    **dict.fromkeys(("tensorinv", "tensorsolve"), ""),
    "matrix_power": ", -2",
}
NOT_ABOUT += [("expanded", op, text, "an expanded matrix is singular") for op, text in EQUAL_ROWS.items()]
# One triangle is read and the gradient is Hermitian, by PyTorch's convention: `test_linalg.py` checks it by differences.
ONE_TRIANGLE = dict.fromkeys(("cholesky", "cholesky_ex", "linalg_eigh", "eigh", "eigvalsh"), "")
NOT_ABOUT += [
    (check, op, text, "the gradient is that of Hermitian matrices")
    for check in ("gradcheck", "gradgradcheck")
    for op, text in (ONE_TRIANGLE | {"pinv": "hermitian=True"}).items()
]
NOT_ABOUT += [
    ("edges", op, "special", "which NaNs and infinities come out depends on the order of LAPACK's steps")
    for op in ("cholesky_ex", "slogdet", "qr", "geqrf", "householder_product", "ormqr")
]


def not_about(name: str, leaf: str, text: str) -> str:
    """Why a property is not about a sample; empty if it is."""
    for prop, op, pattern, reason in NOT_ABOUT:
        if name.startswith(prop) and leaf.strip("_") == op and re.search(pattern, text):
            return reason
    return ""
