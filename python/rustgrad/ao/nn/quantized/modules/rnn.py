"""An LSTM whose gates are quantised: made by `convert` of `nn.quantizable.LSTM`."""

from __future__ import annotations

from typing import Any

from ...quantizable import LSTM as _ObservedLSTM

__all__ = ["LSTM"]


class LSTM(_ObservedLSTM):
    """An LSTM of quantised inputs and states: see `nn.LSTM`."""

    _FLOAT_MODULE = _ObservedLSTM

    def _get_name(self):
        return "QuantizedLSTM"

    @classmethod
    def from_float(cls, *args: Any, **kwargs: Any) -> Any:
        """NotImplementedError: the float module becomes an observed one first."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-observed LSTM module. Please, see the examples on quantizable LSTMs."
        )

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """The quantised module of an observed one. AssertionError: it is of another class."""
        from .....ao.quantization import convert

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError("Expected an instance of quantizable LSTM")
        made = convert(other, inplace=False, remove_qconfig=True, convert_custom_config_dict={})
        made.__class__ = cls
        return made


def __dir__() -> list[str]:
    return __all__
