"""`rustgrad.fx.passes`: changes of graphs, each in a module of its own: `shape_prop` notes shapes, `split_module` divides a graph."""

from __future__ import annotations

import importlib
from typing import Any

from ..._absent import getattr_of
from . import shape_prop as shape_prop
from . import utils as utils

__all__ = ["shape_prop", "utils"]
_SUBMODULES = frozenset(
    "annotate_getitem_nodes dialect fake_tensor_prop graph_drawer graph_manipulation infra operator_support param_fetch pass_manager split_module "
    "split_utils tools_common".split()
)
_absent = getattr_of(__name__)


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}") if name in _SUBMODULES else _absent(name)


def __dir__() -> list[str]:
    return __all__
