"""Where PyTorch keeps `functional_call` and `stack_module_state`."""

from ..func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
