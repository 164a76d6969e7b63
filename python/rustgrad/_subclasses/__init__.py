"""`rustgrad._subclasses`: PyTorch's fake tensors, which are not here, as names that libraries import."""

from __future__ import annotations

from .._absent import getattr_of
from . import fake_tensor as fake_tensor
from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]

__getattr__ = getattr_of(__name__)
