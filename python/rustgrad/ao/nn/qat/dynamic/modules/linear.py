"""A linear layer that is trained for dynamic quantisation."""

from __future__ import annotations

from typing import Any

from ...modules import linear as _qat

__all__ = ["Linear"]


class Linear(_qat.Linear):
    """`nn.Linear` with a weight that is rounded; its inputs are rounded by an observer before it.

    Raises:
        ValueError: the configuration's activation keeps a range from one input to the next.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        qconfig: Any = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        from ......ao.quantization.qconfig import _activation_is_memoryless

        if not _activation_is_memoryless(qconfig):
            raise ValueError("Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging constant equal to 1")  # fmt: skip


def __dir__() -> list[str]:
    return __all__
