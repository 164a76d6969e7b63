"""`Transform`, its inverse, compositions of transforms."""

from __future__ import annotations

import rustgrad as torch

from . import constraints
from .utils import _sum_rightmost, lazy_property


class Transform:
    """A map `y = t(x)` from `domain` to `codomain`, with the inverse `t.inv`.

    A subclass implements `_call`, `_inverse` or both, and if it is `bijective` `log_abs_det_jacobian`. `cache_size` 1
    keeps the last pair, so that `t.inv(t(x)) is x`; other sizes than 0 and 1 raise `ValueError`. `sign` tells whether a
    bijection of numbers increases.
    """

    bijective = False
    domain: constraints.Constraint
    codomain: constraints.Constraint

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size, self._inv = cache_size, None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self):
        """The number of dimensions of an event, where domain and codomain have the same."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """The inverse; `t.inv.inv is t`."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """1 for an increasing bijection, -1 for a decreasing one."""
        raise NotImplementedError

    def with_cache(self, cache_size=1):
        """The same transform with a cache of another size."""
        return self if self._cache_size == cache_size else self._remade(cache_size)

    def _remade(self, cache_size):
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other):
        return self is other

    __hash__ = None

    def __call__(self, x):
        x_old, y_old = self._cached_x_y
        if x is x_old and x is not None:
            return y_old
        return self._kept(x, self._call(x))[1]

    def _inv_call(self, y):
        x_old, y_old = self._cached_x_y
        if y is y_old and y is not None:
            return x_old
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x, y):
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x):
        """The transform."""
        raise NotImplementedError

    def _inverse(self, y):
        """The inverse."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x, y):
        """`log |dy/dx|`, one number for each event."""
        raise NotImplementedError

    def __repr__(self):
        return f"{type(self).__name__}()"

    def forward_shape(self, shape):
        """The shape of `t(x)` for x of `shape`."""
        return shape

    def inverse_shape(self, shape):
        """The shape of `t.inv(y)` for y of `shape`."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform, which has the cache of both."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The constraint of inputs."""
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The constraint of outputs."""
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self.inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


def _widened(constraint, dims):
    """A constraint of events of `dims` dimensions."""
    more = dims - constraint.event_dim
    if more < 0:
        raise AssertionError(f"event_dim {dims} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """Transforms one after another, the first of `parts` first."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The constraint of inputs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            needs = part.domain.event_dim
            dims = max(dims + needs - part.codomain.event_dim, needs)
        return _widened(self.parts[0].domain, dims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The constraint of outputs."""
        if not self.parts:
            return constraints.real
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            gives = part.codomain.event_dim
            dims = max(dims + gives - part.domain.event_dim, gives)
        return _widened(self.parts[-1].codomain, dims)

    @lazy_property
    def bijective(self):
        return all(p.bijective for p in self.parts)

    @lazy_property
    def sign(self):
        sign = 1
        for p in self.parts:
            sign = sign * p.sign
        return sign

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([p.inv for p in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def _remade(self, cache_size):
        return ComposeTransform(self.parts, cache_size=cache_size)

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return torch.zeros_like(x)
        dims, total, last = self.domain.event_dim, 0, len(self.parts) - 1
        for i, part in enumerate(self.parts):
            reached = y if i == last else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, reached), dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
            x = reached
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """`base_transform` with `reinterpreted_batch_ndims` more dimensions in an event: its Jacobians add up over them."""

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _remade(self, cache_size):
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size=cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The constraint of inputs."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The constraint of outputs."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y):
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)
