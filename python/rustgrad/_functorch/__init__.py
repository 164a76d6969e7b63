"""`rustgrad._functorch`: options of PyTorch's graphs of backward passes that programs set; its transforms are in `func`."""

from __future__ import annotations

import sys
from typing import Any

from .._absent import getattr_of
from .._options import Options as _Options

config: Any = _Options(f"{__name__}.config")
sys.modules[config.__name__] = config
__getattr__ = getattr_of(__name__)
