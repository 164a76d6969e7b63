"""Functions that take functions, under PyTorch's private names, by which libraries import them."""

# From modules of their names, which are loaded so before the names: loaded later, they would take the functions' places.
from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
