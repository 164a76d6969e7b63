"""Causal masks that `F.scaled_dot_product_attention` recognises."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from enum import IntEnum
from typing import Any

from ..._base import Tensor, ones
from ..._typing import DeviceLike, Self
from ..functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Where the diagonal of a causal mask that is not square starts: in the upper left or the lower right corner."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A bool mask of shape (seq_len_q, seq_len_kv) for the `attn_mask` of `F.scaled_dot_product_attention`.

    Args:
        variant (CausalVariant): the corner in which the diagonal lies.
        seq_len_q (int): the number of queries.
        seq_len_kv (int): the number of keys.
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> Self:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        lower = variant == CausalVariant.LOWER_RIGHT
        if lower and seq_len_q > seq_len_kv:
            warnings.warn(
                "Lower right causal bias leaves the first queries without keys when seq_len_q > seq_len_kv!",
                stacklevel=3,
            )
        mask = ones(seq_len_q, seq_len_kv, dtype=bool).tril(seq_len_kv - seq_len_q if lower else 0)
        made = mask.as_subclass(cls)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None: ...

    def _materialize(self, device: DeviceLike | None = None) -> Tensor:
        return self.as_subclass(Tensor).to("cpu" if device is None else device)

    @staticmethod
    def _attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **options):
        if not isinstance(attn_mask, CausalBias):
            return scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, **options)
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        if attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv:
            return scaled_dot_product_attention(query, key, value, None, dropout_p, True, **options)
        mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, False, **options)

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is scaled_dot_product_attention:
            return cls._attention(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask of shape `size` in which query i sees the keys up to i; the same as `is_causal=True`."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask of shape `size` in which the last query sees all keys and each one before it a key less."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)


def __dir__() -> list[str]:
    return __all__
