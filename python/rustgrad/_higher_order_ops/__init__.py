"""Functions that take functions, under PyTorch's private names, by which libraries import them."""

from .associative_scan import associative_scan

__all__ = ["associative_scan"]
