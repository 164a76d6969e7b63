"""`multiprocessing.pool` under its name in PyTorch: `Pool` and its results. Tensors cross in shared memory."""

from multiprocessing.pool import *  # noqa: F403
from multiprocessing.pool import Pool as Pool

__all__ = ["Pool", "ThreadPool"]  # noqa: F405
