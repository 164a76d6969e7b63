"""The update rules as functions of lists of tensors; `_functional` has them, and says what they take."""

from . import _functional

_NAMES = "adadelta adafactor adagrad adam adamax adamw asgd muon nadam radam rmsprop rprop sgd sparse_adam"
__all__ = _NAMES.split()
globals().update({name: getattr(_functional, name) for name in __all__})


def __dir__() -> list[str]:
    return __all__
