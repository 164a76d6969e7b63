"""`rustgrad._inductor`: options of a code generator that is not here."""

from __future__ import annotations

import sys
from typing import Any

from .._absent import getattr_of
from .._options import Options as _Options

_GROUPS = ("aot_inductor", "cpp", "cuda", "cutlass", "halide", "rocm", "test_configs", "trace", "triton", "xpu")
config: Any = _Options(f"{__name__}.config", _GROUPS)
sys.modules[config.__name__] = config
__getattr__ = getattr_of(__name__)
