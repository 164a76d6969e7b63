"""Where PyTorch keeps the functions of the package `functorch` from before `torch.func`; by this path they do not warn."""

from .. import _functorch_names
from .._functorch_names import FunctionalModule, FunctionalModuleWithBuffers

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]

combine_state_for_ensemble = _functorch_names.combine_state_for_ensemble.__wrapped__  # type: ignore[attr-defined]
make_functional = _functorch_names.make_functional.__wrapped__  # type: ignore[attr-defined]
make_functional_with_buffers = _functorch_names.make_functional_with_buffers.__wrapped__  # type: ignore[attr-defined]
