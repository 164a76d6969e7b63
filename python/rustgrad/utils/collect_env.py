"""`python -m rustgrad.utils.collect_env`: what a bug report should say about the machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

from .. import _C
from ..backends.cpu import get_cpu_capability
from ..version import __version__

__all__ = [
    "SystemEnv",
    "get_cpu_info",
    "get_env_info",
    "get_gcc_version",
    "get_gpu_info",
    "get_nvidia_driver_version",
    "get_platform",
    "get_pretty_env_info",
    "main",
    "run",
    "run_and_parse_first_match",
    "run_and_read_all",
]

Runner = Callable[["str | list[str]"], "tuple[int, str, str]"]


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


# What tools print of PyTorch's module, by its names.


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a command; 127 if there is none of that name."""
    try:
        done = subprocess.run(command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace")
    except OSError as problem:
        return 127, "", str(problem)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def run_and_read_all(run_lambda: Runner, command: str | list[str]) -> str | None:
    """What a command prints; None if it fails."""
    code, out, _ = run_lambda(command)
    return out if code == 0 else None


def run_and_parse_first_match(run_lambda: Runner, command: str | list[str], regex: str) -> str | None:
    """The first group of the first match in what a command prints; None without one, or if it fails."""
    code, out, _ = run_lambda(command)
    found = re.search(regex, out) if code == 0 else None
    return found.group(1) if found else None


def get_cpu_info(run_lambda: Runner) -> str | None:
    """What the system says of its processor."""
    command = {"linux": "lscpu", "darwin": "sysctl -n machdep.cpu.brand_string"}.get(sys.platform)
    return run_and_read_all(run_lambda, command) if command else platform.processor() or None


def get_gpu_info(run_lambda: Runner) -> str | None:
    """The names of the GPUs, one a line; None without any."""
    return "\n".join(_gpus()) or None


def get_gcc_version(run_lambda: Runner) -> str | None:
    """The version of gcc, if there is one."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_nvidia_driver_version(run_lambda: Runner) -> str | None:
    """The version of NVIDIA's driver, if there is one."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_platform() -> str:
    """The operating system's short name."""
    return sys.platform


def main() -> None:
    """Prints `get_pretty_env_info()`."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
