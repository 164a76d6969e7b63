"""Settings of MIOpen, which is not available: stored, without effect."""

from __future__ import annotations

import contextlib
import sys

from ._library import stored

immediate = False


def flags(immediate: bool = False) -> contextlib.AbstractContextManager[None]:
    """The settings in a block: stored, without effect."""
    return stored(sys.modules[__name__], immediate=immediate)
