"""`Distribution`: what every family has. A family declares its parameters once, in `_params`; `expand` follows from it."""

from __future__ import annotations

import warnings

import rustgrad as torch

from .._base import Tensor
from . import constraints
from .utils import _common_shape, _is_tensor, lazy_property

__all__ = ["Distribution"]


def _shown(value):
    return value if value.numel() == 1 else value.size()


class Distribution:
    """A batch of probability distributions.

    `batch_shape`: the shape of the parameters; `event_shape`: that of one sample of one distribution. A sample has the
    shape `sample_shape + batch_shape + event_shape`. `validate_args` says whether parameters and values are checked
    against their constraints, which raises `ValueError`; by default they are.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The names of the parameters, and the number of dimensions of each that belong to the event.
    _params: dict[str, int] | None = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check their arguments where they are not told."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args: expected a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape=None, event_shape=None, validate_args=None):
        self._batch_shape = torch.Size() if batch_shape is None else batch_shape
        self._event_shape = torch.Size() if event_shape is None else event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _batched(self, validate_args, **parameters):
        """Sets broadcast parameters and initialises a distribution over numbers."""
        values, batch_shape = _common_shape(*parameters.values())
        self.__dict__.update(zip(parameters, values))
        Distribution.__init__(self, batch_shape, validate_args=validate_args)

    def _check_parameters(self):
        try:
            declared = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in declared.items():
            unmade = name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)
            if constraints.is_dependent(constraint) or unmade:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape, _instance=None):
        """The same distributions, their batch expanded to `batch_shape`: views of the parameters.

        `_instance` is an object to be filled, from an `expand` of a class derived from this family.
        """
        owner = next((c for c in type(self).__mro__ if "_params" in vars(c)), Distribution)
        if owner is Distribution:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = torch.Size(batch_shape)
        for name, dims in self._params.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                if _is_tensor(value):
                    value = value.expand(batch_shape + value.shape[value.dim() - dims :])
                setattr(new, name, value)
        self._expand_rest(new, batch_shape)
        # Not `super().__init__` of the family, which would broadcast and check again.
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_rest(self, new, batch_shape):
        """What an expanded distribution has besides its parameters."""

    @property
    def batch_shape(self) -> torch.Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> torch.Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """The constraints of the parameters, by name."""
        raise NotImplementedError

    @property
    def support(self) -> constraints.Constraint | None:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expectation."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The value of the largest probability or density."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance, element by element."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()) -> Tensor:
        """Samples without gradient: `sample_shape + batch_shape + event_shape`."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """Samples that are differentiable functions of the parameters; only if `has_rsample`."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Deprecated: `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability or density of `value`: the batch dimensions."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: the inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a finite distribution, in a new first dimension; only if `has_enumerate_support`.

        Without `expand` the batch dimensions have size one.
        """
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, or for densities the differential entropy: the batch dimensions."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape=()):
        return torch.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _enumerated(self, values, expand):
        """Values along a new first dimension, for distributions over numbers."""
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value):
        """`ValueError` if `value` does not broadcast with the distributions or lies outside their support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, event = value.size(), self._event_shape
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {event}.")
        expected = self._batch_shape + event
        if any(1 != i != j != 1 for i, j in zip(reversed(shape), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is not None:
            return _instance
        if type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def __repr__(self) -> str:
        given = ", ".join(f"{p}: {_shown(self.__dict__[p])}" for p in self.arg_constraints if p in self.__dict__)
        return f"{type(self).__name__}({given})"
