"""`rustgrad.utils.cpp_extension`: extensions in C++ and CUDA are written for PyTorch's C++ interface, which is not here.

Programs import the names, often to fall back to Python where building fails; whatever builds or loads raises an error.
"""

from __future__ import annotations

import os
from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CppExtension",
    "SyclExtension",
    "include_paths",
    "is_ninja_available",
    "library_paths",
    "load",
    "load_inline",
]

CUDA_HOME = ROCM_HOME = HIP_HOME = CUDNN_HOME = None


def _find_cuda_home() -> None:
    """None: nothing is compiled for CUDA."""


def _get_build_directory(name: str, verbose: bool) -> str:
    """Where an extension would be built: programs look there for one, and find none."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    root = os.environ.get("TORCH_EXTENSIONS_DIR") or os.path.join(cache, "torch_extensions")
    return os.path.join(root, name)


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(
        f"cpp_extension.{name}: extensions are compiled against PyTorch's C++ interface, which is not here. "
        "Hint: write the function in Python, or as an extension that takes tensors through DLPack."
    )


def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no C++ interface to compile against."""
    _refuse("load")


def load_inline(name: str, cpp_sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no C++ interface to compile against."""
    _refuse("load_inline")


def CppExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no C++ interface to compile against."""
    _refuse("CppExtension")


def CUDAExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no C++ interface to compile against."""
    _refuse("CUDAExtension")


def SyclExtension(name: str, sources: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: there is no C++ interface to compile against."""
    _refuse("SyclExtension")


class BuildExtension:
    """The command of `setup.py` that builds extensions, which refuses to."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options: Any) -> type[BuildExtension]:
        """The class itself: it refuses with any options."""
        return cls


def include_paths(device_type: str = "cpu", torch_include_dirs: bool = True) -> list[str]:
    """NotImplementedError: there are no headers."""
    _refuse("include_paths")


def library_paths(
    device_type: str = "cpu", torch_include_dirs: bool = True, cross_target_platform: Any = None
) -> list[str]:
    """NotImplementedError: there are no libraries to link with."""
    _refuse("library_paths")


def is_ninja_available() -> bool:
    """False: nothing is built."""
    return False


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
