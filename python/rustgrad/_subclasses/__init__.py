"""`rustgrad._subclasses`: fake tensors, which have a form and no elements."""

from __future__ import annotations

from .._absent import getattr_of
from . import fake_tensor as fake_tensor
from .fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = ["DynamicOutputShapeException", "FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException"]

__getattr__ = getattr_of(__name__)
