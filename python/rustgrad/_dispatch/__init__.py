"""Dispatch to Python below autograd: modes and subclasses with `__torch_dispatch__` (docs/decisions/dispatch.md).

Loaded with the first mode, or the first class that defines `__torch_dispatch__`. A call goes the way

    function (`_entry`) -> ops of ATen (`_runner`, `_composites`) -> autograd (`_nodes`) -> modes, classes, the op itself (`_calls`)
"""

from __future__ import annotations
