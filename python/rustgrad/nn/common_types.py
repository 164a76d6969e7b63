"""Types for annotations of layers: a number that stands for as many equal ones as there are dimensions, or a tuple of them."""

from typing import Any

from .._base import Tensor

__all__: list[str] = []


def _one_or(kind: Any, count: int | None) -> Any:
    """`kind`, or a tuple of `count` of them; None for any number."""
    return kind | (tuple[kind, ...] if count is None else tuple[(kind,) * count])


_size_any_t = _one_or(int, None)
_size_1_t, _size_2_t, _size_3_t = (_one_or(int, n) for n in (1, 2, 3))
_size_4_t, _size_5_t, _size_6_t = (_one_or(int, n) for n in (4, 5, 6))
_size_any_opt_t = _one_or(int | None, None)
_size_2_opt_t, _size_3_opt_t = _one_or(int | None, 2), _one_or(int | None, 3)
_ratio_any_t, _ratio_2_t, _ratio_3_t = _one_or(float, None), _one_or(float, 2), _one_or(float, 3)
_tensor_list_t, _maybe_indices_t = _one_or(Tensor, None), _one_or(Tensor, 2)
