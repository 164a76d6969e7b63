"""`rustgrad.nested`: tensors of sequences with different lengths, in one tensor of values: `docs/decisions/nested.md`."""

from __future__ import annotations

from .._absent import getattr_of
from ._construct import as_nested_tensor as as_nested_tensor
from ._construct import masked_select as masked_select
from ._construct import narrow as narrow
from ._construct import nested_tensor as nested_tensor
from ._construct import nested_tensor_from_jagged as nested_tensor_from_jagged
from ._construct import to_padded_tensor as to_padded_tensor

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
