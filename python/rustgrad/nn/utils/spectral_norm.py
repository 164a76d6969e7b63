"""`spectral_norm` by a forward hook: a parameter divided by its largest singular value (Miyato et al., arXiv:1802.05957)."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._base import dot, mv, ops
from ..._C import Tensor
from ...autograd.grad_mode import no_grad
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

_M = TypeVar("_M", bound=Module)

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

_normalize = ops["nn.functional.normalize"]


def output_dim(module: Module) -> int:
    """The dimension of a weight that counts outputs."""
    return 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0


class SpectralNorm:
    """The hook: before each forward it makes the parameter from `name_orig` and the singular vectors `name_u`, `name_v`."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.dim, self.n_power_iterations, self.eps = name, dim, n_power_iterations, eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """`(outputs, everything else)`."""
        return weight.movedim(self.dim, 0).reshape(weight.size(self.dim), -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The normalised parameter; with `do_power_iteration` the singular vectors are improved first, in place."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(_normalize(mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(_normalize(mv(matrix, v), dim=0, eps=self.eps))
                # Copies: a second forward before backward changes the vectors in place.
                u, v = u.clone(), v.clone()
        return weight / dot(u, mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Makes the parameter what it is now."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, matrix, u, sigma):
        """A v with u = normalize(W v) and u W v = sigma."""
        v = ((matrix.t() @ matrix).pinverse() @ matrix.t() @ u.unsqueeze(1)).squeeze(1)
        return v.mul_(sigma / dot(u, mv(matrix, v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Splits a parameter of a module and registers the hooks."""
        if any(isinstance(h, SpectralNorm) and h.name == name for h in module._forward_pre_hooks.values()):
            raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        fn = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            height, width = fn.reshape_weight_to_matrix(weight).shape
            u = _normalize(weight.new_empty(height).normal_(0, 1), dim=0, eps=eps)
            v = _normalize(weight.new_empty(width).normal_(0, 1), dim=0, eps=eps)
        delattr(module, name)
        module.register_parameter(f"{name}_orig", weight)
        # A plain attribute: code that reads it before the first forward finds it.
        setattr(module, name, weight.data)
        module.register_buffer(f"{name}_u", u)
        module.register_buffer(f"{name}_v", v)
        module.register_forward_pre_hook(fn)
        module._register_state_dict_hook(SpectralNormStateDictHook(fn))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(fn))
        return fn


class SpectralNormLoadStateDictPreHook:
    """Loads state dicts from before `name_v` was saved."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        fn = self.fn
        version = local_metadata.get("spectral_norm", {}).get(f"{fn.name}.version")
        if version is not None and version >= 1:
            return
        key = prefix + fn.name
        if version is None and all(key + s in state_dict for s in ("_orig", "_u", "_v")) and key not in state_dict:
            # A state dict of today without metadata.
            return
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else ())
            return
        with no_grad():
            original, weight = state_dict[f"{key}_orig"], state_dict.pop(key)
            sigma = (original / weight).mean()
            matrix = fn.reshape_weight_to_matrix(original)
            state_dict[f"{key}_v"] = fn._solve_v_and_rescale(matrix, state_dict[f"{key}_u"], sigma)


class SpectralNormStateDictHook:
    """Writes the version of the hook into the metadata of a state dict."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: dict[str, Any], prefix: str, local_metadata: dict[str, Any]) -> None:
        versions, key = local_metadata.setdefault("spectral_norm", {}), f"{self.fn.name}.version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


def spectral_norm(
    module: _M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> _M:
    """Divides a parameter by its largest singular value before each forward; returns the module.

    `parametrizations.spectral_norm` does the same without hooks.

    Args:
        n_power_iterations (int): steps of the power method before each forward in training mode.
        eps (float): the least length that is divided by.
        dim (int, optional): the dimension of outputs. Default: 0, and 1 for transposed convolutions.

    Raises:
        RuntimeError: the parameter already has spectral norm.
        ValueError: it is None or uninitialised, or `n_power_iterations` is not positive.
    """
    SpectralNorm.apply(module, name, n_power_iterations, output_dim(module) if dim is None else dim, eps)
    return module


def remove_spectral_norm(module: _M, name: str = "weight") -> _M:
    """Makes a parameter with spectral norm an ordinary one with its present value; returns the module.

    Raises:
        ValueError: there is no such hook.
    """
    hooks = module._forward_pre_hooks
    found = next((k for k, h in hooks.items() if isinstance(h, SpectralNorm) and h.name == name), None)
    if found is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    hooks.pop(found).remove(module)
    for table, kind in (
        (module._state_dict_hooks, SpectralNormStateDictHook),
        (module._load_state_dict_pre_hooks, SpectralNormLoadStateDictPreHook),
    ):
        for key, hook in list(table.items()):
            hook = getattr(hook, "hook", hook)
            if isinstance(hook, kind) and hook.fn.name == name:
                del table[key]
                break
    return module


def __dir__() -> list[str]:
    return __all__
