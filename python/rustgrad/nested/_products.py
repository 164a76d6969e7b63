"""Products of the layout `jagged`: with dense matrices on the values, between sequences in padded blocks; attention; embeddings."""

from __future__ import annotations

from .. import _formats
from .._C import Tensor, ops
from ._shape import elements, from_elements, from_padded, padded
from ._tensor import is_nested, jagged, refuse

_linear = ops["nn.functional.linear"]
_attention = ops["nn.functional.scaled_dot_product_attention"]


def _like(self, value):
    return jagged(value, self._ragged, self._ragged_idx)


def linear(self, weight, bias=None):
    """`x @ weight.T + bias` of each element's last dimension. RuntimeError: it is ragged."""
    if is_nested(weight) or is_nested(bias):
        refuse("linear with a nested weight", _formats.jagged)
    if self._ragged_idx == self.dim() - 1:
        raise ValueError(f"linear(): not supported over the ragged dimension of shape {tuple(self.shape)}")
    return _like(self, _linear(self._value, weight, bias))


def embedding(input, weight, *args, **kwargs):
    """The rows of a table at nested indices."""
    if is_nested(weight):
        refuse("embedding with a nested weight", weight.layout)
    return _like(input, ops["nn.functional.embedding"](input._value, weight, *args, **kwargs))


def embedding_bag(input, weight, offsets=None, *args, **kwargs):
    """Sums, means or maxima of the rows of a table, one for each sequence of indices: dense. RuntimeError: `offsets` are given too."""
    if not is_nested(input) or is_nested(weight) or offsets is not None or input.dim() != 2:
        raise RuntimeError("embedding_bag: expected nested indices of shape (batch, j), a dense table and no offsets")
    counts = input._ragged.lengths_tensor
    args = [elements(a) if is_nested(a) else a for a in args]
    kwargs = {name: elements(a) if is_nested(a) else a for name, a in kwargs.items()}
    op = ops["nn.functional.embedding_bag"]
    return op(elements(input), weight, counts.cumsum(0) - counts, *args, **kwargs)


def _refuse_shapes(self, other, name):
    raise RuntimeError(f"{name}(): not supported between inputs of shapes {tuple(self.shape)} and {other.shape}")


def matmul(self, other):
    """A product of which at least one factor is nested: dense, if the ragged dimension is summed over."""
    if is_nested(self) and is_nested(other):
        return _both(self, other)
    nested, dense = (self, other) if is_nested(self) else (other, self)
    at, n = nested._ragged_idx, nested.dim()
    # The dimension that is summed over, of the nested factor.
    summed = n - 1 if nested is self else n - 2
    plain = dense.dim() <= 2 and (nested is self and dense.dim() > 0 or dense.dim() == 2)
    if at == summed or dense.dim() == 0 or n < 3 and not (n == 2 and plain):
        _refuse_shapes(self, other, "matmul")
    if plain and (nested is self or at < n - 2):
        made = nested._value @ dense if nested is self else dense @ nested._value
        return _like(nested, made)
    fits = plain or dense.dim() == n and dense.shape[0] in (1, nested._ragged.batch)
    if not fits or not plain and at < n - 2 and dense.shape[at] not in (1, nested._ragged.longest):
        _refuse_shapes(self, other, "matmul")
    block = padded(nested, 0)
    return from_padded(nested, block @ dense if nested is self else dense @ block)


def _both(self, other):
    if self._ragged.size != other._ragged.size or self.dim() != other.dim():
        _refuse_shapes(self, other, "matmul")
    n, a, b = self.dim(), self._ragged_idx, other._ragged_idx
    if a == n - 1 and b == n - 2:
        return padded(self, 0) @ padded(other, 0)
    if a == b and a < n - 2:
        return _like(self, self._value @ other._value)
    _refuse_shapes(self, other, "matmul")


def bmm(self, mat2):
    """`matmul` of two factors with three dimensions."""
    for name, one in (("input", self), ("mat2", mat2)):
        if one.dim() != 3:
            raise ValueError(f"bmm(): {name} must be 3D")
    return matmul(self, mat2)


def rmatmul(self, other):
    """The reflected operator."""
    return matmul(other, self)


def mm(self, mat2):
    """The product of two matrices. RuntimeError: a matrix with a ragged dimension and a batch is none."""
    _refuse_shapes(self, mat2, "mm")


# --- attention -----------------------------------------------------------------------------------------------
def _check_attention(tensors, attn_mask):
    for one in tensors:
        if not is_nested(one) or one.layout is not _formats.jagged:
            raise ValueError(
                "scaled_dot_product_attention: expected query, key, and value to be all nested or all dense"
            )
        if one.dim() < 3:
            raise ValueError(f"scaled_dot_product_attention: expected 3 dimensions at least, got {one.dim()}")
        if one._ragged_idx != one.dim() - 2:
            raise RuntimeError(
                "scaled_dot_product_attention: expected the ragged dimension before the last, got shape "
                f"{tuple(one.shape)}. Hint: transpose the heads before it."
            )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
    query, key, value = tensors
    if key._ragged.size != value._ragged.size or query._ragged.batch != key._ragged.batch:
        raise ValueError(
            "scaled_dot_product_attention: expected key and value with the same offsets, and one sequence of them for each "
            f"query, got shapes {[tuple(t.shape) for t in tensors]}"
        )


def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """Attention within each sequence of (batch, ..., j, size): sequence by sequence, or short ones in one padded block.

    Raises:
        ValueError: a mask is given, not all are nested, or key and value have other lengths.
    """
    tensors = (query, key, value)
    _check_attention(tensors, attn_mask)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    width = key._ragged.longest
    same = query._ragged.size == key._ragged.size
    if max(width, query._ragged.longest) > _SHORT or 0 in key._ragged.counts or not same and is_causal:
        return _by_sequence(tensors, options)
    mask = None
    if not is_causal and min(key._ragged.counts, default=0) < width:
        # With a causal mask only rows that are left out see padded keys.
        at = ops["arange"](width, device=query.device)
        mask = (at < key._ragged.lengths_tensor[:, None]).reshape(-1, *(1,) * (query.dim() - 2), width)
    return from_padded(query, _attention(*(padded(one, 0) for one in tensors), attn_mask=mask, **options))


# Up to this length one padded block is faster than a call for each sequence.
_SHORT = 16


def _by_sequence(tensors, options):
    made = [_attention(*parts, **options) for parts in zip(*(one.unbind() for one in tensors), strict=True)]
    query = tensors[0]
    return from_elements(query, ops["cat"]([one.movedim(-2, 0) for one in made]))


def loss(name):
    """The rule of a loss of pairs of elements: `reduction` is over all of them."""
    op = ops[name]

    def rule(input, target, *args, **kwargs):
        if not is_nested(input) or not is_nested(target) or not input._same(target):
            raise RuntimeError(f"{name}: expected two nested tensors of the same structure")
        made = op(elements(input), elements(target), *args, **kwargs)
        if not isinstance(made, Tensor) or kwargs.get("reduction") != "none":
            return made
        return from_elements(input, made)

    return rule
