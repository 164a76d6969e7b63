"""The package opt_einsum, which is not used: `einsum` contracts its operands from left to right."""

from typing import Any

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled: bool = False
strategy: Any = None


def is_available() -> bool:
    """False: the package is not used."""
    return False


def get_opt_einsum() -> Any:
    """None: the package is not used."""
    return None
