"""What the processor can do."""

import platform

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """The instruction set of PyTorch's names, among those that ops choose from at run time: "AVX512", "AVX2", "NEON" or "DEFAULT"."""
    machine = platform.machine().lower()
    if machine in ("arm64", "aarch64"):
        return "NEON"
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="ignore") as file:
            flags = next((line for line in file if line.startswith("flags")), "").split()
    except OSError:
        flags = []
    if "avx512f" in flags:
        return "AVX512"
    return "AVX2" if "avx2" in flags and "fma" in flags else "DEFAULT"
