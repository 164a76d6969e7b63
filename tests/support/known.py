"""What the table knows not to hold, with reasons. Strict: an xfail that passes fails the run."""

import re

# (property, or "property on device"; op) -> reason
XFAIL: dict[tuple[str, str], str] = {}

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
