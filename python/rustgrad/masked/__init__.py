"""`rustgrad.masked`: reductions of the elements that a mask lets through, and tensors that carry their mask.

A `MaskedTensor` is an object of a subclass of `Tensor` with tensors of data and of bools inside: `docs/decisions/masked.md`.
"""

from .._absent import getattr_of
from . import _ops as _ops
from ._ops import *  # noqa: F403
from ._ops import _canonical_dim as _canonical_dim
from ._ops import _combine_input_and_mask as _combine_input_and_mask
from ._ops import _input_mask as _input_mask
from ._ops import _output_mask as _output_mask
from ._ops import _reduction_identity as _reduction_identity
from ._ops import _where as _where
from .maskedtensor.core import MaskedTensor as MaskedTensor
from .maskedtensor.core import is_masked_tensor as is_masked_tensor
from .maskedtensor.creation import as_masked_tensor as as_masked_tensor
from .maskedtensor.creation import masked_tensor as masked_tensor

__all__ = [*_ops.__all__, "MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
