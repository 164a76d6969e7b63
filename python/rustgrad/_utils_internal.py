"""Paths, the address of tests, and hooks of PyTorch's builders that do nothing outside of their company."""

from __future__ import annotations

import os
import tempfile
from typing import Any

__all__: list[str] = []

torch_parent = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TEST_MASTER_ADDR = "127.0.0.1"
TEST_MASTER_PORT = 29500
USE_GLOBAL_DEPS = True
USE_RTLD_GLOBAL_WITH_LIBTORCH = False
REQUIRES_SET_PYTHON_MODULE = False
DISABLE_JUSTKNOBS = True


def get_file_path(*path_components: str) -> str:
    """A path below the folder that the package is in."""
    return os.path.join(torch_parent, *path_components)


get_file_path_2 = get_file_path


def get_writable_path(path: str) -> str:
    """The folder itself, or a new temporary one if it cannot be written to."""
    return path if os.access(path, os.W_OK) else tempfile.mkdtemp(suffix=os.path.basename(path))


def resolve_library_path(path: str) -> str:
    """The path without symbolic links."""
    return os.path.realpath(path)


def prepare_multiprocessing_environment(path: str) -> None:
    """No effect, as in PyTorch outside of its builders' company; so the others below."""


def signpost_event(category: str, name: str, parameters: dict[str, Any]) -> None:
    """No effect."""


def log_compilation_event(metrics: Any) -> None:
    """No effect."""


def log_export_usage(**kwargs: Any) -> None:
    """No effect."""


def justknobs_check(name: str, default: bool = True) -> bool:
    """The default."""
    return default


def justknobs_getval_int(name: str) -> int:
    """0."""
    return 0


def is_fb_unit_test() -> bool:
    """False."""
    return False
