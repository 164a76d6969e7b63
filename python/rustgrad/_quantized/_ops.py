"""The ops of `torch.ops.quantized`, by name."""

from __future__ import annotations

import functools
from typing import Any

from . import _cells, _ops_elementwise, _ops_embedding, _ops_products


@functools.cache
def table() -> dict[str, Any]:
    """name -> function."""
    found = {**_ops_elementwise.OPS, **_ops_products.OPS, **_ops_embedding.OPS, **_cells.OPS}
    for name, function in found.items():
        function.__name__ = function.__qualname__ = name
    return found
