"""`python -m rustgrad.utils.collect_env`: what a bug report should say about the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from typing import NamedTuple

from .. import _C
from ..backends.cpu import get_cpu_capability
from ..version import __version__

__all__ = ["SystemEnv", "get_env_info", "get_pretty_env_info", "main"]


class SystemEnv(NamedTuple):
    """Versions, processor and GPUs."""

    rustgrad_version: str
    python_version: str
    python_platform: str
    cpu_count: int | None
    cpu_capability: str
    num_threads: int
    gpus: list[str]
    numpy_version: str | None
    environment: dict[str, str]


def _gpus():
    from .. import gpu

    if not gpu.is_available():
        return []
    return [gpu.get_device_name(i) for i in range(gpu.device_count())]


def _numpy():
    try:
        return importlib.metadata.version("numpy")
    except importlib.metadata.PackageNotFoundError:
        return None


def get_env_info() -> SystemEnv:
    """What `get_pretty_env_info` shows, by name."""
    settings = {name: value for name, value in os.environ.items() if name.startswith("RUSTGRAD_")}
    return SystemEnv(
        __version__,
        sys.version.replace("\n", " "),
        platform.platform(),
        os.cpu_count(),
        get_cpu_capability(),
        _C.get_num_threads(),
        _gpus(),
        _numpy(),
        settings,
    )


def get_pretty_env_info() -> str:
    """The text of a bug report's part about the machine."""
    env = get_env_info()
    lines = [
        f"rustgrad version: {env.rustgrad_version}",
        f"Python version: {env.python_version}",
        f"Platform: {env.python_platform}",
        f"CPU: {env.cpu_count} processors, {env.cpu_capability}; {env.num_threads} threads",
        f"GPUs: {', '.join(env.gpus) or 'none'}",
        f"NumPy: {env.numpy_version or 'not installed'}",
    ]
    return "\n".join([*lines, *(f"{name}={value}" for name, value in sorted(env.environment.items()))])


def main() -> None:
    """Prints `get_pretty_env_info()`."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
