"""`rustgrad.distributed.distributed_c10d`: where PyTorch keeps the functions of process groups; they are those of `distributed`."""

from __future__ import annotations

import datetime
from typing import Any

from .. import distributed as _distributed
from .._absent import getattr_of
from .._C import device
from .group import _checked, _not_in_group, _world
from .stores import Store

for _name in _distributed.__all__:
    globals()[_name] = getattr(_distributed, _name)
_get_default_group = _checked
_rank_not_in_group = _not_in_group


def _get_default_store() -> Store | None:
    """The store by which the default group was made."""
    _checked(None)
    return _world.store


def _get_pg_default_device(group: Any = None) -> device:
    """The device of tensors of object collectives."""
    return device("cpu")


def _set_pg_timeout(timeout: datetime.timedelta, group: Any = None) -> None:
    """Sets how long a collective of a group may take."""
    _checked(group)._set_default_timeout(timeout)


__all__ = list(_distributed.__all__)
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
