"""`rustgrad.distributed.distributed_c10d`: where PyTorch keeps the functions of process groups; they are those of `distributed`."""

from __future__ import annotations

from .. import distributed as _distributed
from .._absent import getattr_of
from .group import _checked

for _name in _distributed.__all__:
    globals()[_name] = getattr(_distributed, _name)
_get_default_group = _checked

__all__ = list(_distributed.__all__)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
