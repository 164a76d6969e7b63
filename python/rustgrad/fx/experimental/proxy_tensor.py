"""The question of libraries whether their calls are being traced through PyTorch's dispatcher: there is no such tracing.

`compiler.is_compiling` and `fx.Tracer` are what is there.
"""

from __future__ import annotations

from ..._absent import getattr_of

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """The mode that traces the calls of this thread: none."""
    return None


__getattr__ = getattr_of(__name__)
