"""The functions of `accelerator` about memory, where PyTorch has them too."""

from . import (
    empty_cache,
    empty_host_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

__all__ = ["empty_cache", "empty_host_cache", "max_memory_allocated", "max_memory_reserved", "memory_allocated",
           "memory_reserved", "memory_stats", "reset_accumulated_memory_stats", "reset_peak_memory_stats"]  # fmt: skip
