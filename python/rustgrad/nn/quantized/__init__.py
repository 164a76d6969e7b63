"""The old name of `rustgrad.ao.nn.quantized`."""

from __future__ import annotations

from .._old_names import install

install(__name__)
