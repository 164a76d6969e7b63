"""The old name of `rustgrad.ao.quantization`."""

from __future__ import annotations

from ..ao.quantization import *  # noqa: F403
from ..nn._old_names import install

install(__name__)
