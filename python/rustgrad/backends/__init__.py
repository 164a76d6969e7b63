"""`rustgrad.backends`: queries about libraries that are not available.

Scripts write `backends.cudnn.benchmark = True` or ask `backends.mps.is_available()`; the switches are plain
attributes without effect, and nothing is available.
"""

from types import SimpleNamespace

from . import cuda, cudnn, mha, mps

__all__ = ["cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp"]


def _nothing(name):
    def is_available():
        return False

    is_available.__doc__ = f"False: {name} is not used."
    return SimpleNamespace(__name__=f"rustgrad.backends.{name}", is_available=is_available)


mkl: SimpleNamespace = _nothing("mkl")
mkldnn: SimpleNamespace = _nothing("mkldnn")
openmp: SimpleNamespace = _nothing("openmp")


def __dir__() -> list[str]:
    return __all__
