"""`rustgrad.nested`: names that programs import; there are no nested tensors, so each function refuses."""

from __future__ import annotations

from typing import Any, NoReturn

from .._absent import getattr_of

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def _refusing(name):
    def function(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"nested.{name}: there are no nested tensors here; expected rows of one length. Hint: pad with "
            "nn.utils.rnn.pad_sequence and pass a mask."
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = "NotImplementedError: there are no nested tensors."
    return function


as_nested_tensor, masked_select, narrow = map(_refusing, __all__[:3])
nested_tensor, nested_tensor_from_jagged, to_padded_tensor = map(_refusing, __all__[3:])
__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
