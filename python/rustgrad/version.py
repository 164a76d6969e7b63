"""The package's version, and the build facts that programs ask for (there is no CUDA)."""

from ._C import __version__

__all__ = ["__version__", "cuda", "debug", "hip"]

debug = False
cuda = None
hip = None
