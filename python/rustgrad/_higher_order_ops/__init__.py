"""Functions that take functions, under PyTorch's private names, by which libraries import them."""

from .associative_scan import associative_scan
from .control_flow import cond, while_loop

__all__ = ["associative_scan", "cond", "while_loop"]
