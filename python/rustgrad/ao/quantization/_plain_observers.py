"""Observers without a range: of a known scale, of a dtype alone, or that keep the values."""

from __future__ import annotations

import warnings
from typing import Any

import rustgrad as torch

from .observer import _EPS, ObserverBase

__all__: list[str] = []


class FixedQParamsObserver(ObserverBase):
    """A scale and a zero point that are known: see `UniformQuantizationObserverBase`."""

    scale: Any
    zero_point: Any

    def __init__(
        self, scale: float, zero_point: int, dtype: Any = torch.quint8, qscheme: Any = torch.per_tensor_affine, quant_min: int = 0,
        quant_max: int = 255, is_dynamic: bool = False, **kwargs: Any,
    ) -> None:  # fmt: skip
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(dtype=dtype, is_dynamic=is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.register_buffer("scale", torch.tensor([scale], dtype=torch.float))
        self.register_buffer("zero_point", torch.tensor([zero_point], dtype=torch.int))
        self.dtype, self.qscheme = dtype, qscheme

    def forward(self, X: Any) -> Any:
        """The tensor."""
        return X

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """The scale and the zero point that were given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Tells a dtype alone.

    Args:
        dtype (dtype): of the values.
        custom_op_name (str): of an op that takes the place, for passes.
        compute_dtype (dtype): deprecated; a dtype of integers makes the observer dynamic.
        quant_min, quant_max, qscheme, eps: see `UniformQuantizationObserverBase`.
        is_dynamic (bool): each value is quantised by its own range.
    """

    def __init__(
        self, dtype: Any = torch.float32, custom_op_name: str = "", compute_dtype: Any = None, quant_min: Any = None,
        quant_max: Any = None, qscheme: Any = None, eps: Any = None, is_dynamic: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(dtype=dtype, is_dynamic=is_dynamic)
        self.qscheme = torch.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max = quant_min, quant_max
        self.eps = _EPS if eps is None else eps
        self.custom_op = custom_op_name
        if compute_dtype:
            self.is_dynamic = True
            warnings.warn(
                "Please use `is_dynamic` instead of `compute_dtype`.                     `compute_dtype` will be deprecated in a "
                "future release                     of PyTorch.",
                stacklevel=2,
            )

    def forward(self, x: Any) -> Any:
        """The tensor."""
        return x

    def extra_repr(self) -> str:
        """The dtype and whether it is dynamic."""
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Exception: there is no range."""
        raise Exception(  # noqa: TRY002
            "calculate_qparams should not be called for PlaceholderObserver"
        )


class RecordingObserver(ObserverBase):
    """Keeps the values."""

    def __init__(self, dtype: Any = torch.quint8) -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.tensor_val: list[Any] = []

    def forward(self, x: Any) -> Any:
        """Keeps a copy of the tensor; returns it."""
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Exception: there is no range."""
        raise Exception(  # noqa: TRY002
            "calculate_qparams should not be called for RecordingObserver"
        )

    def get_tensor_value(self) -> list[Any]:
        """The values."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Tells a dtype alone, of values that are not quantised."""

    def __init__(self, dtype: Any = torch.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype=dtype, is_dynamic=False)
        self.dtype, self.custom_op = dtype, custom_op_name

    def forward(self, x: Any) -> Any:
        """The tensor."""
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Exception: there is no range."""
        raise Exception(  # noqa: TRY002
            "calculate_qparams should not be called for NoopObserver"
        )


class ReuseInputObserver(ObserverBase):
    """Says that a result has the parameters of the input."""

    def __init__(self) -> None:
        super().__init__(torch.quint8, is_dynamic=False)

    def forward(self, x: Any) -> Any:
        """The tensor."""
        return x

    def calculate_qparams(self) -> Any:  # type: ignore[override]
        """Exception: there is no range."""
        raise Exception(  # noqa: TRY002
            "calculate_qparams should not be called for ReuseInputObserver"
        )


for _value in (FixedQParamsObserver, PlaceholderObserver, RecordingObserver, NoopObserver, ReuseInputObserver):
    _value.__module__ = ObserverBase.__module__  # where PyTorch has them, and pickles look


def __dir__() -> list[str]:
    return __all__
