"""`repr` of quantised tensors, letter by letter PyTorch's: the numbers, then what is said of the tensor."""

from __future__ import annotations

from .._tensor_str import _add_suffixes, _tensor_str
from ._quantizer import PerTensor

_BEFORE = "tensor("


def text(self):
    """What `repr` returns; of a parameter, with its heading."""
    head = "Parameter containing:\n" if getattr(self, "_is_param", False) else ""
    shown = "..." if self.is_meta else "[]" if self.numel() == 0 else _tensor_str(self.dequantize(), len(_BEFORE))
    return head + _add_suffixes(_BEFORE + shown, _suffixes(self), len(_BEFORE), False)


def _suffixes(self):
    found = [] if self.is_cpu else [f"device='{self.device}'"]
    found += [f"size={tuple(self.shape)}", f"dtype={self.dtype}", f"quantization_scheme={self.qscheme()}"]
    quantizer = self._quantizer
    if isinstance(quantizer, PerTensor):
        return [*found, f"scale={quantizer.scale}", f"zero_point={quantizer.zero_point}"]
    return [*found, f"scale={quantizer.scales}", f"zero_point={quantizer.zero_points}", f"axis={quantizer.axis}"]
