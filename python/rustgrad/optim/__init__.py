"""`rustgrad.optim`: optimizers and learning-rate schedulers. `swa_utils`, which needs `nn`, loads on first use."""

import importlib

from . import lr_scheduler
from .adagrad import Adagrad
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

__all__ = ["SGD", "Adagrad", "Adam", "AdamW", "Optimizer", "RMSprop", "lr_scheduler", "swa_utils"]


def __getattr__(name):
    if name == "swa_utils":
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
