"""What a nested tensor is made of, under the name by which libraries ask: `nested._internal.ops.extract_kwargs`."""

from __future__ import annotations

from typing import Any

from ..._absent import getattr_of

__all__ = ["extract_kwargs"]


def extract_kwargs(arg: Any) -> dict[str, Any]:
    """The keywords with which `NestedTensor(values, **keywords)` makes a tensor of the structure of `arg`."""
    extremes = zip(("min_seqlen", "max_seqlen"), arg._ragged.given, strict=True)
    values = arg._value
    return {
        "offsets": arg.offsets(),
        "lengths": arg.lengths(),
        # A number is kept as the length of a tensor without elements.
        "_metadata_cache": {name: values.new_empty(n, 0) for name, n in extremes if n is not None},
        "_ragged_idx": arg._ragged_idx,
    }


__getattr__ = getattr_of(__name__)
