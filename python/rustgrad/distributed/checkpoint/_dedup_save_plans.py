"""What several ranks have is written by one of them."""

from __future__ import annotations

import dataclasses
from collections import defaultdict

from .metadata import MetadataIndex
from .planner import SavePlan

__all__ = ["dedup_save_plans"]


def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Plans in which no item is there twice.

    Args:
        all_plans (list): the plan of each rank.
        save_to_lowest_rank (bool): the first rank that has an item writes it; else the one that has the fewest bytes so far.
    """
    owners: dict[MetadataIndex, list[int]] = defaultdict(list)
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            owners[item.index].append(rank)
            sizes.setdefault(item.index, item.tensor_storage_size() or 1)
    loads, chosen = [0] * len(all_plans), {}
    # The items that one rank alone has are counted first.
    for index in sorted(owners, key=lambda i: len(owners[i]) > 1):
        ranks = owners[index]
        chosen[index] = ranks[0] if save_to_lowest_rank else min(ranks, key=loads.__getitem__)
        loads[chosen[index]] += sizes[index]
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]
