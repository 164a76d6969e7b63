"""The values of data in any layout, and data of new values."""

from __future__ import annotations

from ... import _formats
from ...sparse._tensor import with_value


def values(part):
    """The elements that are specified: of dense data all of them."""
    return part if part.layout is _formats.strided else part._value


def with_values(part, made):
    """Data with the indices of another one."""
    return made if part.layout is _formats.strided else with_value(part, made)
