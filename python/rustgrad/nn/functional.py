"""`nn.functional`: the functions behind the modules.

Three sources, the later ones first in rank: functions written with other ops (`_activations`,
`_losses`), the op table (`nn.functional.*`), and the few whose arguments need handling in Python.
"""

from .._base import empty_like, matmul, ops, sigmoid, tanh, where
from ..autograd.grad_mode import no_grad
from . import _activations, _losses

_PYTHON_FIRST = {"softmax", "log_softmax", "softmin", "cross_entropy", "nll_loss", "mse_loss", "embedding"}

__all__ = ["bilinear", "cosine_similarity", "dropout", "embedding", "normalize", "one_hot", "sigmoid", "tanh"]


def dropout(input, p=0.5, training=True, inplace=False):
    """In training, zeroes elements with probability `p` and scales the rest by 1 / (1 - p); else returns `input`.

    Raises:
        ValueError: `p` is not between 0 and 1.
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    keep = empty_like(input).bernoulli_(1 - p)
    scale = 0.0 if p == 1.0 else 1 / (1 - p)
    return input.mul_(keep.mul_(scale)) if inplace else input * keep.mul_(scale)


def _renormalise_rows(weight, index, max_norm, norm_type):
    with no_grad():
        index = index.reshape(-1)
        rows = weight[index]
        norms = rows.norm(norm_type, dim=1, keepdim=True)
        weight[index] = where(norms > max_norm, rows * (max_norm / (norms + 1e-7)), rows)


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` at the integer indices `input`: shape `(*input.shape, weight.size(1))`.

    Args:
        padding_idx (int, optional): the row that gets no gradient.
        max_norm (float, optional): rows looked up are first renormalised in place to at most this norm.
    """
    if padding_idx is not None:
        assert -weight.size(0) <= padding_idx < weight.size(0), "Padding_idx must be within num_embeddings"
        padding_idx %= weight.size(0)
    if max_norm is not None:
        _renormalise_rows(weight, input, max_norm, norm_type)
    op = ops["nn.functional.embedding"]
    if scale_grad_by_freq:
        return op(input, weight, padding_idx=padding_idx, scale_grad_by_freq=True)
    return op(input, weight) if padding_idx is None else op(input, weight, padding_idx=padding_idx)


def bilinear(input1, input2, weight, bias=None):
    """x1^T A x2 + b for each of the `weight.size(0)` matrices A; inputs `(*, in1)` and `(*, in2)`."""
    left = matmul(input1.unsqueeze(-2).unsqueeze(-2), weight).squeeze(-2)
    output = matmul(left, input2.unsqueeze(-1)).squeeze(-1)
    return output if bias is None else output + bias


def one_hot(tensor, num_classes=-1):
    """int64 tensor of shape `(*, num_classes)` with a 1 at each index.

    Raises:
        RuntimeError: the indices are not int64, negative, or not below `num_classes`.
    """
    from .._base import int64, zeros

    if tensor.dtype != int64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype}.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    if tensor.min().item() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = tensor.max().item() + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif tensor.max().item() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    result = zeros(*tensor.shape, num_classes, dtype=int64, device=tensor.device)
    return result.scatter_(-1, tensor.unsqueeze(-1), 1)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """`input` divided by its p-norm along `dim`, the norm being at least `eps`."""
    norm = input.norm(p, dim, keepdim=True).clamp(min=eps).expand_as(input)
    return input / norm if out is None else out.copy_(input / norm)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Scalar product of `x1` and `x2` along `dim` over the product of their norms, each at least `eps`."""
    n1 = x1.norm(2, dim, keepdim=True).clamp(min=eps)
    n2 = x2.norm(2, dim, keepdim=True).clamp(min=eps)
    return ((x1 / n1) * (x2 / n2)).sum(dim)


def _fill_namespace(names):
    for module in (_activations, _losses):
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "__module__", None) == module.__name__ and name[0] != "_":
                names[name] = value
    names.update({"legacy_reduction": _losses.legacy_reduction})
    for name, op in ops.items():
        public = name.removeprefix("nn.functional.")
        if public != name and public not in _PYTHON_FIRST:
            names[public] = op
    names["__all__"] = sorted(n for n in names if n[0] != "_" and callable(names[n]))


_fill_namespace(globals())


def _inplace(function):
    def wrapper(input, *args, **kwargs):
        return function(input, *args, **kwargs, inplace=True)

    wrapper.__doc__ = f"In-place form of `{function.__name__}`."
    return wrapper


for _name in ("relu", "elu", "selu", "celu", "leaky_relu", "hardtanh", "threshold"):
    globals().setdefault(_name + "_", _inplace(globals()[_name]))
del _name
