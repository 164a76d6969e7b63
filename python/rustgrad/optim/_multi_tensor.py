"""The optimizers under their names of PyTorch 1.9, when those that update many tensors at once were apart: `foreach=True`."""

from __future__ import annotations

from typing import Any

from . import ASGD as _ASGD
from . import SGD as _SGD
from . import Adadelta as _Adadelta
from . import Adagrad as _Adagrad
from . import Adam as _Adam
from . import Adamax as _Adamax
from . import AdamW as _AdamW
from . import NAdam as _NAdam
from . import RAdam as _RAdam
from . import RMSprop as _RMSprop
from . import Rprop as _Rprop

__all__: list[str] = []


def _with_foreach(cls: type) -> type:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        cls.__init__(self, *args, **{"foreach": True, **kwargs})  # type: ignore[misc]

    return type(cls.__name__, (cls,), {"__init__": __init__, "__doc__": cls.__doc__, "__module__": __name__})


for _cls in (_Adadelta, _Adagrad, _Adam, _AdamW, _Adamax, _ASGD, _NAdam, _RAdam, _RMSprop, _Rprop, _SGD):
    globals()[_cls.__name__] = _with_foreach(_cls)
