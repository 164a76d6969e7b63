"""Plans in which the first rank that has an item writes it."""

from __future__ import annotations

from ._dedup_save_plans import dedup_save_plans
from .planner import SavePlan

__all__ = ["dedup_tensors"]


def dedup_tensors(all_plans: list[SavePlan]) -> list[SavePlan]:
    """`dedup_save_plans` by the lowest rank."""
    return dedup_save_plans(all_plans, save_to_lowest_rank=True)
