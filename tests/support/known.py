"""Known exceptions of the table's properties, with reasons. Strict: an xfail that passes fails the run."""

import re

NO_COMPLEX = "the GPU has no complex numbers"
# (properties, or "property on device", separated by commas; ops, by blanks; reason)
KNOWN = [
    ("same as CPU, on device, strided on gpu", "view_as_complex", NO_COMPLEX),
    (
        "gradcheck",
        "native_layer_norm native_batch_norm",
        "as in PyTorch its statistics pass no gradient, though they depend on the input",
    ),
    ("gradcheck", "_nll_loss_backward", "a step of nll_loss: linear in its gradient, constant in the logits"),
    ("strides", "as_strided_scatter", "a copy has no gaps"),
    ("result dtype", "masked.median", "complex numbers have no order; PyTorch drops their imaginary parts"),
    ("node names, nodes keep", "nn.utils.rnn.pad_sequence", "a stack of padded sequences, not writes to views"),
    (
        "gradient",
        "as_strided_scatter",
        "PyTorch's goes to the elements that were written over, ours to those that stay",
    ),
    ("strides on cpu", "adjoint", "a computed conjugate has no gaps"),
    ("strides", "linalg.lstsq", "PyTorch's solution is a part of LAPACK's longer columns"),
    ("node names, nodes keep", "remainder.scalar bernoulli.p", "PyTorch has no gradient here"),
    (
        "node names, nodes keep",
        "special.ndtr trapezoid.dx trapezoid.x cumulative_trapezoid.x",
        "a product with a number has the node of a product",
    ),
    (
        "nodes keep",
        "dist linalg.lstsq linalg.lu linalg.lu_solve lu_solve linalg.householder_product ormqr "
        "triangular_solve linalg.solve linalg.solve_ex linalg.polar",
        "the arguments are kept, from which its gradient computes again what PyTorch keeps",
    ),
    ("node names", "nn.functional.pad", "circular padding is a concatenation, not writes to views"),
    ("node names, nodes keep", "norm_except_dim", "one norm over the other dimensions, not one of a matrix"),
    ("edges on cpu", "fft.rfft fft.ihfft", "sums of infinities and NaN depend on the order of additions"),
    (
        "extremes on cpu",
        "_standard_gamma_grad _dirichlet_grad",
        "the reference is a difference quotient, of no use there",
    ),
    ("edges", "norm_except_dim", "norms of no elements are zero, and a number has one"),
    (
        "nodes keep",
        "nn.functional.pad complex gather index_add index_copy masked_select cummax cummin take put "
        "take_along_dim erfinv layer_norm native_layer_norm nn.functional.nll_loss nn.functional.cross_entropy "
        "nn.functional.logsigmoid nn.functional.max_pool2d_with_indices nn.functional.max_pool3d_with_indices max_pool2d max_pool3d "
        "nn.functional.avg_pool2d nn.functional.avg_pool3d nn.functional.adaptive_avg_pool2d nn.functional.adaptive_avg_pool3d",
        "its formula reads sizes, indices or the result alone, so the tensor itself is not kept",
    ),
    (
        "nodes keep",
        "mm matmul addmm nn.functional.linear linalg.matrix_power nn.functional.scaled_dot_product_attention",
        "strides of factors are not kept",
    ),
    (
        "gradcheck",
        "_scaled_dot_product_flash_attention_for_cpu _fused_recurrent_layer",
        "what is saved for the gradient passes none itself, though it depends on the input",
    ),
    (
        "nodes keep",
        "var std var_mean std_mean std_mean.dim std_mean.correction",
        "the form without dimensions has no arguments to keep, and the mean is not kept",
    ),
    (
        "nodes keep",
        "linalg.det det linalg.slogdet slogdet",
        "its formula reads the matrix or the results, and not the factors",
    ),
    ("nodes keep", "cholesky_solve", "its formula does not read the right hand side"),
    (
        "node names, nodes keep",
        "lstm.input gru.input rnn_tanh.input rnn_relu.input rnn_tanh.data rnn_relu.data lstm_cell gru_cell rnn_tanh_cell "
        "rnn_relu_cell",
        "all steps of a layer are one node, and the output a view of their rows",
    ),
    (
        "on device on gpu",
        "lstm.data gru.data rnn_tanh.data rnn_relu.data",
        "batch sizes are numbers of the program: they are read, and PyTorch refuses them on a GPU",
    ),
    ("nodes keep", "nn.functional.interpolate", "the pooling of an area keeps sizes alone"),
    ("strides", "gru_cell", "the result is row-major for any layout of the state"),
    (
        "gradcheck",
        "nn.functional.ctc_loss nn.functional.ctc_loss.IntList ctc_loss ctc_loss.IntList",
        "as in PyTorch the gradient is that of the logits whose log_softmax the input is",
    ),
    (
        "gradgradcheck, forward mode",
        "nn.functional.ctc_loss nn.functional.ctc_loss.IntList ctc_loss ctc_loss.IntList _ctc_loss "
        "nn.functional.multilabel_margin_loss _multilabel_margin",
        "as in PyTorch there is no second gradient",
    ),
    (
        "on device",
        "nn.functional.ctc_loss nn.functional.ctc_loss.IntList ctc_loss ctc_loss.IntList",
        "the recursion over steps runs on the host",
    ),
    (
        "on device",
        "nn.functional.embedding_bag embedding_bag _embedding_bag",
        "offsets are read, and maxima found, on the host",
    ),
    ("edges", "nn.functional.multi_margin_loss", "PyTorch does not write the loss of no samples"),
    ("edges", "nn.functional.embedding_bag", "PyTorch cannot count the offsets of bags without indices"),
]
# (property, op) -> reason
XFAIL = {(prop, op): reason for props, ops, reason in KNOWN for prop in props.split(", ") for op in ops.split()}

# Extreme numbers at which an op differs from its reference: (ops, devices, dtypes, where, reason). Strict: if an op
# has no such difference on any of the dtypes, the entry is wrong. Hardware GPUs differ, so on them none is needed; "hardware" names
# what only they do.
CPU, BOTH, EVERY = "cpu", "cpu gpu", "f32 f64"
EXTREMES = [
    # The reference is less accurate.
    ("special.bessel_j0 special.bessel_j1", BOTH, EVERY, "np.abs(x0) > 1000", "SciPy rounds the phase of large arguments"),
    ("special.bessel_y0 special.bessel_y1", BOTH, EVERY, "x0 > 1000", "SciPy rounds the phase of large arguments"),
    ("special.airy_ai", BOTH, EVERY, "(np.abs(x0) > 1e6) & (np.isnan(want) | (x0 < 0))", "SciPy has no Airy function there"),
    ("igamma igammac", CPU, "f64", "(np.abs(got - want) <= 1e-11 * np.abs(want)) | (got < 1e-300) | (x0 < 1e-300) | (x0 > 1e300)", "SciPy keeps 11 digits or more"),
    ("round.decimals", CPU, "f64", "np.isinf(want)", "NumPy's scaled number overflows; there is nothing to round"),
    ("mvlgamma", BOTH, EVERY, "np.isinf(want) | (x0 < 1.01)", "SciPy's sum is infinite early, and rounded near its zero"),
    # PyTorch's values, which differ from the reference's.
    ("angle", BOTH, EVERY, "(x0 == 0) & np.signbit(x0)", "as in PyTorch the angle of -0 is 0"),
    ("sign", BOTH, EVERY, "np.isnan(x0)", "as in PyTorch NaN has no sign"),
    ("heaviside", BOTH, EVERY, "np.isnan(x0)", "as in PyTorch NaN is not above zero"),
    ("lgamma", BOTH, EVERY, "np.isneginf(x0)", "infinite in C and in PyTorch, minus infinite in SciPy"),
    ("polygamma polygamma.method", CPU, EVERY, "np.isneginf(x0)", "as in PyTorch there is no number at minus infinity"),
    ("igamma igammac", BOTH, EVERY, "np.isnan(x0) | np.isnan(x1)", "as in PyTorch zero and infinity count more than NaN"),
    ("float_power", BOTH, EVERY, "np.isneginf(x0)", "as in PyTorch the power 0.5 is the square root"),
    # PyTorch's formulas, with the same overflow, underflow and cancellation.
    ("add sub", BOTH, "f32", "np.abs(x1) > 1e38", "as in PyTorch alpha times a huge number overflows"),
    ("rsub.tensor", BOTH, "f32", "np.abs(x0) > 1e38", "as in PyTorch alpha times a huge number overflows"),
    ("lerp lerp.scalar", BOTH, EVERY, "np.maximum(np.abs(x0), np.abs(x1)) > 0.4 * np.finfo(x0.dtype).max", "as in PyTorch the difference overflows"),
    ("addcmul", CPU, "f64", "np.minimum(np.abs(x1), np.abs(x2)) < 1e-307", "as in PyTorch the scaled factor vanishes"),
    ("addcdiv", BOTH, EVERY, "np.minimum(np.abs(x1), np.abs(x2)) < 1e-29", "as in PyTorch the scaled factor vanishes, or the quotient overflows"),
    ("_huber", CPU, "f64", "np.abs(want) > 1e307", "as in PyTorch the difference overflows"),
    ("nn.functional.hardswish", BOTH, "f32", "x0 > 1e37", "as in PyTorch the product is divided by 6 at last"),
    ("ldexp", BOTH, EVERY, "np.isnan(got)", "as in PyTorch the power of two is a factor, which overflows or vanishes"),
    ("nn.functional.tanhshrink", BOTH, EVERY, "np.abs(x0) < 0.4", "as in PyTorch the difference cancels"),
    ("_bce", BOTH, EVERY, "(x1 <= 0) | (x1 > 1) | (x0 < 1e-300)", "of what is no probability the terms cancel"),
    ("_bce_with_logits", BOTH, EVERY, "(x0 < 0) | (np.abs(x1) > 1)", "as in PyTorch the terms cancel"),
    ("nn.functional.silu nn.functional.mish", CPU, EVERY, "np.abs(want) < (1e-36 if dtype == 'f32' else 1e-304)", "a subnormal exponential has few digits"),
    ("nn.functional.silu nn.functional.mish", "hardware", "f32", "np.abs(want) < 1e-36", "a subnormal exponential may become zero"),
    ("special.bessel_y0", "hardware", "f32", "np.abs(want) < 0.01", "near a zero the error is absolute"),
    ("special.ndtr special.log_ndtr", CPU, EVERY, "np.abs(x0) > 10", "the rounding of x / sqrt 2 counts x^2 times"),
    ("special.airy_ai", CPU, "f64", "(np.abs(x0) > 20) & (np.abs(got - want) < 1e-7)", "the rounding of the exponent, or of the phase, counts"),
    ("special.airy_ai", "gpu", "f32", "x0 < -20", "the phase of large arguments is rounded"),
    ("special.bessel_y0", CPU, "f64", "np.abs(want) < 0.01", "near a zero the error is absolute"),
    ("polygamma polygamma.method", BOTH, EVERY, "(x0 < -5) & (np.abs(got - want) < 1e-3 * np.abs(want))", "a sum of hundreds of terms of both signs"),
]  # fmt: skip

# Samples to which a property does not apply: (property, op without namespace, underscores, pattern, reason).
NOT_ABOUT = [
    ("strided", "as_strided", "", "reads the storage, not the elements"),
    ("expanded", "as_strided", "", "reads the storage, not the elements"),
    *(
        (prop, f"as_strided_{kind}", "", "reads the storage, not the elements")
        for prop in ("strided", "expanded")
        for kind in ("copy", "scatter")
    ),
    ("any byte", "view", "", "reads the bytes themselves"),
    ("grad", "bernoulli", "", "its gradient is zero by definition"),
    ("grad", "normal", "", "its gradient is zero by definition"),
    (
        "grad",
        "embedding",
        r"scale_grad|i64.*, -?\d",
        "padding_idx and scale_grad_by_freq change the gradient by definition",
    ),
    ("grad", "embedding_bag", "scale_grad", "scale_grad_by_freq changes the gradient by definition"),
    ("gradient", "bessel_y0", r"5\.5", "PyTorch's Bessel functions are off by up to 4e-7 between 5 and 20"),
    ("gradient", "bessel_y1", r"5\.5", "PyTorch's Bessel functions are off by up to 4e-7 between 5 and 20"),
    ("edges", "mode", "special", "how PyTorch counts NaNs depends on its sort"),
    ("edges", "topk", "special", "PyTorch's order of equal elements is that of its partial sort"),
    ("edges", "kthvalue", "special", "PyTorch's order of equal elements is that of its partial sort"),
    ("edges", "var_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "std_mean", "special", "PyTorch's running mean turns infinity into NaN"),
    ("edges", "native_layer_norm", "special", "PyTorch's running mean turns infinity into NaN"),
    ("gradient", "native_group_norm", "^bf16", "PyTorch computes the gradients of the statistics in bfloat16"),
    ("edges", "native_group_norm", "special", "PyTorch's running mean turns infinity into NaN"),
    *(
        ("edges", op, "special", "PyTorch adds a multiple of the mean, which an infinite weight makes NaN")
        for op in ("batch_norm", "native_batch_norm", "group_norm")
    ),
    ("edges", "svdvals", r"f32\[2,3\]\(special", "PyTorch's LAPACK raises for some shapes and gives NaN for others"),
    ("edges", "cond", "'nuc'", "PyTorch's LAPACK raises for some shapes and gives NaN for others"),
    ("edges", "eigvalsh", "special", "PyTorch's LAPACK raises for some matrices with NaN and gives NaN for others"),
    ("gradcheck", "lstsq", "driver='gels[sd]'", "as in PyTorch no gradient passes through the singular values"),
    *(
        ("forward mode", op, "scale_grad_by_freq", "as in PyTorch the gradient is scaled, and the tangent is not")
        for op in ("embedding", "embedding_bag")
    ),
    ("forward mode", "embedding", r"\), 1$", "as in PyTorch the padding has no gradient, and its tangent passes"),
    ("nodes", "diff", r"\], 0($|, prepend)", "a clone, where PyTorch writes a copy"),
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
    "lstsq": "driver='gels'",
}
NOT_ABOUT += [("expanded", op, text, "an expanded matrix is singular") for op, text in EQUAL_ROWS.items()]
# One triangle is read and the gradient is Hermitian, as in PyTorch: `test_linalg.py` checks it by differences.
ONE_TRIANGLE = dict.fromkeys(("cholesky", "cholesky_ex", "linalg_eigh", "eigh", "eigvalsh", "matrix_sqrth"), "")
NOT_ABOUT += [
    (check, op, text, "the gradient is that of Hermitian matrices")
    for check in ("gradcheck", "gradgradcheck")
    for op, text in (ONE_TRIANGLE | {"pinv": "hermitian=True"}).items()
]
NOT_ABOUT += [
    ("edges", op, "special", "which NaNs and infinities come out depends on the order of LAPACK's steps")
    for op in ("cholesky_ex", "slogdet", "qr", "geqrf", "householder_product", "ormqr")
]
NOT_ABOUT += [
    ("same as CPU", "svd", r"^f32\[(3,2|2,3)\]\(nograd\)(, False)?$", "vectors without a singular value are any basis"),
    ("same as CPU", "eigh", r"\[40,40\]", "vectors of close eigenvalues are known to fewer digits"),
]

NOT_ABOUT += [
    ("edges", op, "special", "zeros of the padding meet infinite weights, which PyTorch's kernels leave out")
    for op in ("convolution", "conv3d", "conv_transpose1d", "conv_transpose2d")
]
NOT_ABOUT += [
    ("nodes", op, r"^c64\[", "PyTorch makes a complex convolution of real ones, so its node is a sum; ours is one node")
    for op in ("conv1d", "conv_transpose1d")
]


def not_about(name: str, leaf: str, text: str) -> str:
    """Why a property does not apply to a sample; empty if it does."""
    for prop, op, pattern, reason in NOT_ABOUT:
        if name.startswith(prop) and leaf.strip("_") == op and re.search(pattern, text):
            return reason
    return ""
