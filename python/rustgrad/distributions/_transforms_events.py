"""Transforms of vectors and matrices, and of the parts of a tensor."""

from __future__ import annotations

import math

import rustgrad as torch

from ..nn.functional import logsigmoid, pad, softplus
from . import constraints
from ._transform import Transform
from .utils import _sum_rightmost, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix


def _clipped_sigmoid(x):
    info = torch.finfo(x.dtype)
    return torch.sigmoid(x).clamp(min=info.tiny, max=1 - info.eps)


class _OfClass(Transform):
    """Transforms without parameters: two of a class are equal."""

    def __eq__(self, other):
        return type(self) is type(other)

    __hash__ = None


class ReshapeTransform(Transform):
    """Reshapes the last dimensions from `in_shape` to `out_shape`, of as many elements."""

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = torch.Size(in_shape), torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The constraint of inputs."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The constraint of outputs."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _remade(self, cache_size):
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size=cache_size)

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    @staticmethod
    def _exchanged(shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0:
            raise ValueError("Too few dimensions on input")
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {old} but got {shape[cut:]}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._exchanged(shape, self.out_shape, self.in_shape)


class CorrCholeskyTransform(_OfClass):
    """Vectors of length `n (n - 1) / 2` to Cholesky factors of n by n correlation matrices.

    The hyperbolic tangents of the vector fill the lower triangle with partial correlations; each row is then scaled to
    length one (D. Lewandowski, D. Kurowicka and H. Joe, 2009; the Stan reference manual, "Cholesky factors of correlation
    matrices").
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = torch.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(min=eps - 1, max=1 - eps), diag=-1)
        # The length that is left in a row after each of its elements.
        left = (1 - partial.square()).sqrt().cumprod(-1)
        unit = torch.eye(partial.shape[-1], dtype=x.dtype, device=x.device)
        return (partial + unit) * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - y.square().cumsum(-1))[..., :-1], [1, 0], value=1)
        return torch.atanh(tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt())

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(1 - y.square().cumsum(-1), diag=-2)
        of_tanh = 2 * (math.log(2) - x - softplus(-2 * x)).sum(-1)
        return left.log().sum(-1) / 2 + of_tanh

    def forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        n = (1 + math.isqrt(1 + 8 * shape[-1])) // 2
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape):
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


def _of_vectors(shape, more=0):
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return shape[:-1] + (shape[-1] + more,)


class SoftmaxTransform(_OfClass):
    """Vectors to the simplex by exponentials that are normalised; not a bijection."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return torch.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        return _of_vectors(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(_OfClass):
    """Vectors to the simplex of one more coordinate: each coordinate takes its share of what the others left."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x):
        """Logarithms of the numbers of coordinates still to come, which make zero the uniform point."""
        return torch.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        share = _clipped_sigmoid(x - self._offset(x))
        left = (1 - share).cumprod(-1)
        return pad(share, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        taken = y[..., :-1]
        # Rounding may leave nothing, or less.
        left = (1 - taken.cumsum(-1)).clamp(min=torch.finfo(y.dtype).tiny)
        return taken.log() - left.log() + self._offset(taken)

    def log_abs_det_jacobian(self, x, y):
        z = x - self._offset(x)
        return (logsigmoid(z) - z + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        return _of_vectors(shape, 1)

    def inverse_shape(self, shape):
        return _of_vectors(shape, -1)


class LowerCholeskyTransform(_OfClass):
    """Matrices to lower triangular ones whose diagonal is positive: the exponential of the diagonal."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfClass):
    """Matrices to positive definite ones, `L L^T` with L from `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        L = LowerCholeskyTransform()(x)
        return L @ L.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class _OfParts(Transform):
    """A transform for each part of a tensor along `dim`."""

    def __init__(self, tseq, dim, cache_size):
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self):
        return all(t.bijective for t in self.transforms)

    def _size(self):
        return len(self.transforms)

    def _checked(self, x):
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {x.dim()} dimensions")
        if x.size(self.dim) != self._size():
            raise AssertionError(f"x.size({self.dim}) = {x.size(self.dim)} must equal {self._size()}")
        return self._parts(x)

    def _call(self, x):
        return self._join([t(part) for t, part in zip(self.transforms, self._checked(x))])

    def _inverse(self, y):
        return self._join([t.inv(part) for t, part in zip(self.transforms, self._checked(y))])


class CatTransform(_OfParts):
    """Transforms of parts of `lengths` along `dim`, by default one each, as `torch.cat` would join them."""

    def __init__(self, tseq, dim=0, lengths=None, cache_size=0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self):
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self):
        """The size along `dim`."""
        return sum(self.lengths)

    def _size(self):
        return self.length

    def _remade(self, cache_size):
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _parts(self, x):
        return x.split(self.lengths, self.dim)

    def _join(self, parts):
        return torch.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = [
            _sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim)
            for t, a, b in zip(self.transforms, self._checked(x), self._checked(y))
        ]
        # Counted from the end of the batch dimensions; inside an event the terms add up.
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self):
        """The constraint of inputs."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The constraint of outputs."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_OfParts):
    """A transform for each index along `dim`, as `torch.stack` would join the results."""

    def __init__(self, tseq, dim=0, cache_size=0):
        super().__init__(tseq, dim, cache_size)

    def _remade(self, cache_size):
        return StackTransform(self.transforms, self.dim, cache_size)

    def _parts(self, x):
        return x.unbind(self.dim)

    def _join(self, parts):
        return torch.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x, y):
        pairs = zip(self.transforms, self._checked(x), self._checked(y))
        return self._join([t.log_abs_det_jacobian(a, b) for t, a, b in pairs])

    @constraints.dependent_property
    def domain(self):
        """The constraint of inputs."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The constraint of outputs."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
