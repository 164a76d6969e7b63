"""`rustgrad.optim`: optimizers and learning-rate schedulers. `swa_utils`, which needs `nn`, loads on first use."""

from __future__ import annotations

import importlib
from typing import Any

from .._absent import absent as _absent
from .._own import at_home as _at_home
from . import lr_scheduler
from ._adafactor import Adafactor
from ._muon import Muon
from ._stateless import swap_in_optimizer_params_and_state
from .adadelta import Adadelta
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "swa_utils",
    "swap_in_optimizer_params_and_state",
]

_at_home(__name__, Adafactor, Muon)


def __getattr__(name: str) -> Any:
    if name in ("_functional", "_multi_tensor", "functional", "swa_utils"):
        return importlib.import_module(f"{__name__}.{name}")
    raise _absent(__name__, name)


def __dir__() -> list[str]:
    return __all__
