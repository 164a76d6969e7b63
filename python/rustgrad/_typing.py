"""Types of annotations: aliases, and what Python's `typing` has from another release on."""

import typing
from typing import Any, TypeAlias

from ._C import device

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Self

    from .autograd.graph import GradientEdge
else:
    # Before Python 3.11 there is no `Self`; annotations evaluate to `Any` then.
    Self = getattr(typing, "Self", Any)

__all__ = ["DeviceLike", "GradientEdge", "Number", "Self"]

# A bool is an int.
Number: TypeAlias = int | float | complex
DeviceLike: TypeAlias = device | str | int
