"""Pruning: parameters of modules with elements masked to zero.

A pruned parameter `name` becomes `name_orig`, which is trained, and a buffer `name_mask`; a forward pre-hook, the pruning
method, sets `name` to their product before each forward.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ..._base import kthvalue, ones_like, ops, rand, rand_like, topk, zeros_like
from ..._C import Tensor
from ..modules.module import Module
from .convert_parameters import parameters_to_vector

_M = TypeVar("_M", bound=Module)

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(ABC):
    """The base of pruning methods: a subclass defines `compute_mask` and `PRUNING_TYPE`.

    Attributes:
        PRUNING_TYPE (str): "unstructured": elements; "structured": slices along `self.dim`; "global": everything at once. It
            says what a further method on the same parameter chooses from.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask for importance scores `t`, given the mask so far; both have the parameter's shape."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter times its mask."""
        if self._tensor_name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        mask, original = (getattr(module, self._tensor_name + suffix) for suffix in ("_mask", "_orig"))
        return mask.to(dtype=original.dtype) * original

    @classmethod
    def _joined(cls, module, name, args, kwargs):
        """The new method, in a container with those already on the parameter."""
        hooks = module._forward_pre_hooks
        present = [k for k, h in hooks.items() if isinstance(h, BasePruningMethod) and h._tensor_name == name]
        if len(present) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a PruningContainer."
            )
        old = hooks.pop(present[0]) if present else None
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if old is None:
            return method
        container = old if isinstance(old, PruningContainer) else PruningContainer(old)
        container.add_pruning_method(method)
        return container

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Tensor | None = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes a parameter by `cls(*args, **kwargs)`; returns the hook.

        Args:
            importance_scores (Tensor, optional): in the parameter's shape; its values by default.

        Raises:
            AssertionError: `importance_scores` has another shape.
        """
        method = cls._joined(module, name, args, kwargs)
        original = getattr(module, name)
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape} vs "
                f"{original.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            mask = ones_like(original)
        else:
            mask = getattr(module, f"{name}_mask").detach().clone()
        try:
            module.register_buffer(f"{name}_mask", method.compute_mask(scores, default_mask=mask))
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(f"{name}_orig"))
            raise
        return method

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """`t` pruned, without a module.

        Raises:
            AssertionError: `importance_scores` has another shape.
        """
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {scores.shape} vs {t.shape}"
            )
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned parameter an ordinary one, with zeros where it was masked."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(f"{name}_orig")
        original.data = weight.data
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """Several pruning methods on one parameter: each chooses from what those before have left."""

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method.

        Raises:
            TypeError: it is no pruning method.
            ValueError: it is for another parameter.
        """
        if not isinstance(method, BasePruningMethod) and method is not None:
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and self._tensor_name != method._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to PruningContainer "
                f"{self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    @staticmethod
    def _left(method: Any, t: Tensor, mask: Tensor) -> Any:
        """The index of what a method may still choose from."""
        if method.PRUNING_TYPE == "unstructured":
            return mask == 1
        if method.PRUNING_TYPE == "global":
            return (slice(None),) * t.dim()
        if method.PRUNING_TYPE != "structured":
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        if not hasattr(method, "dim"):
            raise AttributeError(
                'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
            )
        dim = method.dim if method.dim >= 0 else t.dim() + method.dim
        if dim < 0:
            raise IndexError(f"Index is out of bounds for tensor with dimensions {t.dim()}")
        kept = mask.sum(dim=[d for d in range(t.dim()) if d != dim]) != 0
        return tuple(kept if d == dim else slice(None) for d in range(t.dim()))

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far with that of the last method in the places that are left."""
        method = self._pruning_methods[-1]
        left = self._left(method, t, default_mask)
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but gives the parameter a mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far."""
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes random elements: `amount` of them, or that fraction."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _scores(self, t):
        return rand_like(t), True

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far without the chosen elements."""
        count = _count(self.amount, t.nelement())
        mask = default_mask.clone()
        if count != 0:
            scores, largest = self._scores(t)
            mask.view(-1)[topk(scores.reshape(-1), k=count, largest=largest).indices] = 0
        return mask


class L1Unstructured(RandomUnstructured):
    """Prunes the elements of least absolute value: `amount` of them, or that fraction."""

    def _scores(self, t):
        return t.abs(), False


class RandomStructured(BasePruningMethod):
    """Prunes random slices along `dim`: `amount` of them, or that fraction."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        _validate_pruning_amount_init(amount)
        self.amount, self.dim = amount, dim

    def _kept(self, t, count):
        """Which slices stay: a mask or indices."""
        chances = rand(t.shape[self.dim])
        return chances > kthvalue(chances, k=count).values

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask so far without the chosen slices.

        Raises:
            ValueError: `t` has fewer than two dimensions, or fewer slices than are to be pruned.
            IndexError: `dim` is out of range.
        """
        if t.dim() <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.dim()} dims"
            )
        if self.dim >= t.dim():
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        count = _count(self.amount, t.shape[self.dim])
        if count == 0:
            return default_mask
        index = [slice(None)] * t.dim()
        index[self.dim] = self._kept(t, count)
        mask = zeros_like(t)
        mask[tuple(index)] = 1
        return mask * default_mask.to(dtype=mask.dtype)


class LnStructured(RandomStructured):
    """Prunes the slices along `dim` of least norm `n`: `amount` of them, or that fraction."""

    def __init__(self, amount: float, n: float | str, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _kept(self, t, count):
        norms = _norm(t, self.n, self.dim)
        return topk(norms, k=t.shape[self.dim] - count, largest=True).indices


class CustomFromMask(BasePruningMethod):
    """Prunes by a given mask."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The product of both masks.

        Raises:
            AssertionError: their shapes differ.
        """
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: _M, name: str) -> _M:
    """Gives a parameter a mask of ones; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: _M, name: str, amount: float) -> _M:
    """Prunes random elements of a parameter; returns the module.

    Args:
        amount (int or float): how many, or as a float between 0 and 1 which fraction.

    Raises:
        TypeError: `amount` is no number.
        ValueError: it is negative, a fraction above 1, or more than there are.
    """
    RandomUnstructured.apply(module, name, amount=amount)
    return module


def l1_unstructured(module: _M, name: str, amount: float, importance_scores: Tensor | None = None) -> _M:
    """Prunes the elements of least absolute value, of the parameter or of `importance_scores`; returns the module.

    Args and errors as for `random_unstructured`.
    """
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: _M, name: str, amount: float, dim: int) -> _M:
    """Prunes random slices of a parameter along `dim`; returns the module.

    Args and errors as for `random_unstructured`; ValueError also for a parameter of one dimension.
    """
    RandomStructured.apply(module, name, amount=amount, dim=dim)
    return module


def ln_structured(
    module: _M, name: str, amount: float, n: float | str, dim: int, importance_scores: Tensor | None = None
) -> _M:
    """Prunes the slices along `dim` of least norm `n` (a number, "fro" or "nuc"); returns the module.

    Args and errors as for `random_structured`.
    """
    LnStructured.apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: _M, name: str, mask: Tensor) -> _M:
    """Prunes a parameter by a mask of its shape; returns the module."""
    CustomFromMask.apply(module, name, mask=mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: dict[tuple[Module, str], Tensor] | None = None,
    **kwargs: Any,
) -> None:
    """Prunes elements of several parameters, chosen from all of them together.

    Args:
        parameters (iterable of (Module, str)): the parameters.
        pruning_method (type): an unstructured method, made with `kwargs`.
        importance_scores (dict, optional): scores of some of the parameters; their values by default.

    Raises:
        TypeError: `parameters` is not iterable, `importance_scores` no dict, or the method not unstructured.
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    method: Any = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            f'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method {pruning_method} of type '
            f"{method.PRUNING_TYPE}"
        )
    tensors = [getattr(module, name) for module, name in parameters]
    masks = [getattr(m, f"{name}_mask", ones_like(t)) for (m, name), t in zip(parameters, tensors, strict=True)]
    pairs = zip(parameters, tensors, strict=True)
    all_scores = parameters_to_vector([scores.get((module, name), t) for (module, name), t in pairs])
    container = PruningContainer()
    container._tensor_name = method._tensor_name = "temp"
    container.add_pruning_method(method)
    mask = container.compute_mask(all_scores, parameters_to_vector(masks))
    for (module, name), part in zip(parameters, mask.split([t.numel() for t in tensors]), strict=True):
        custom_from_mask(module, name, mask=part.view_as(getattr(module, name)))


def remove(module: _M, name: str) -> _M:
    """Makes a pruned parameter an ordinary one, with zeros where it was masked; returns the module.

    Raises:
        ValueError: it is not pruned.
    """
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Whether a parameter of the module or of a submodule is pruned."""
    return any(isinstance(h, BasePruningMethod) for m in module.modules() for h in m._forward_pre_hooks.values())


# The next three have PyTorch's names: pruning methods of programs call them.
def _validate_pruning_amount_init(amount):
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    if amount < 0 or not isinstance(amount, numbers.Integral) and amount > 1.0:
        raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")


def _validate_pruning_amount(amount, tensor_size):
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(f"amount={amount} should be smaller than the number of parameters to prune={tensor_size}")


def _compute_nparams_toprune(amount, tensor_size):
    return amount if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _count(amount, total):
    """How many of `total` are pruned."""
    _validate_pruning_amount(amount, total)
    return _compute_nparams_toprune(amount, total)


def _norm(t, n, dim):
    """The norm of each slice along `dim`."""
    others = [d for d in range(t.dim()) if d != dim % t.dim()]
    if n == "nuc" or n == "fro" and len(others) == 2:
        return ops["linalg.matrix_norm"](t, ord=n, dim=others if len(others) == 2 else (-2, -1))
    return ops["linalg.vector_norm"](t, ord=2 if n == "fro" else n, dim=others)


def __dir__() -> list[str]:
    return __all__
