"""The package's version, and the build facts that programs ask for (there is no CUDA)."""

from ._C import __version__

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]

debug = False
cuda = None
# No commit is written into a build.
git_version = "Unknown"
hip = None
rocm = None
xpu = None
