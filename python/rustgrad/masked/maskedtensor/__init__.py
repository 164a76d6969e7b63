"""`rustgrad.masked.maskedtensor`: the class `MaskedTensor` and its rules."""

from . import binary as binary
from . import creation as creation
from . import passthrough as passthrough
from . import reductions as reductions
from . import unary as unary
from .core import MaskedTensor as MaskedTensor
from .core import is_masked_tensor as is_masked_tensor

__all__ = ["MaskedTensor", "is_masked_tensor"]


def __dir__() -> list[str]:
    return __all__
