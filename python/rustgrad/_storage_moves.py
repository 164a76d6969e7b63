"""What storages of both kinds can do beside holding memory: go to a device, and be converted."""

from __future__ import annotations

from typing import Any

from . import _C
from ._typing import DeviceLike, Self

__all__ = ["DTYPES", "Moves"]

# Methods that convert, and to what.
DTYPES = {
    "double": _C.float64, "float": _C.float32, "half": _C.float16, "bfloat16": _C.bfloat16, "long": _C.int64,
    "int": _C.int32, "short": _C.int16, "char": _C.int8, "byte": _C.uint8, "bool": _C.bool,
    "complex_float": _C.complex64, "complex_double": _C.complex128, "float8_e4m3fn": _C.float8_e4m3fn,
    "float8_e4m3fnuz": _C.float8_e4m3fnuz, "float8_e5m2": _C.float8_e5m2, "float8_e5m2fnuz": _C.float8_e5m2fnuz,
}  # fmt: skip


class Moves:
    """Moves and conversions of storages."""

    is_sparse = is_sparse_csr = is_hpu = False
    device: _C.device

    def _to_device(self, device: _C.device) -> Any:
        raise NotImplementedError

    def to(self, *, device: DeviceLike, non_blocking: bool = False) -> Self:
        """The storage on a device: itself, or a copy."""
        device = _C.device(device) if device is not None else self.device
        return self if self.device == device else self._to_device(device)

    def cpu(self) -> Self:
        """The storage on the CPU: itself, or a copy."""
        return self.to(device="cpu")

    def cuda(self, device: DeviceLike | None = None, non_blocking: bool = False) -> Self:
        """The storage on the GPU, under `python -m rustgrad`; otherwise as for a tensor."""
        return self.to(device=_C.tensor(()).cuda(device).device)

    def get_device(self) -> int | None:
        """The index of the device; None on the CPU."""
        return self.device.index

    def pin_memory(self, device: DeviceLike | None = None) -> Self:
        """The storage itself: memory need not be pinned. TypeError on another device than the CPU."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.device.type}' memory: only CPU memory can be pinned")
        return self

    def is_pinned(self, device: DeviceLike | None = None) -> bool:
        """False: memory need not be pinned."""
        return False
