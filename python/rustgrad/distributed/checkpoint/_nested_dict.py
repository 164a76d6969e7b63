"""State dicts without nesting: names such as `optim.state.0.step`."""

from __future__ import annotations

from typing import Any

from ._traverse import OBJ_PATH, set_element, traverse_state_dict

__all__ = ["flatten_state_dict", "unflatten_state_dict"]

FLATTEN_MAPPING = dict[str, OBJ_PATH]


def flatten_state_dict(state_dict: dict[str, Any]) -> tuple[dict[str, Any], FLATTEN_MAPPING]:
    """The values by names of their paths, and the paths. ValueError: two paths have one name."""
    flat: dict[str, Any] = {}
    mappings: FLATTEN_MAPPING = {}

    def put(path: OBJ_PATH, value: Any) -> None:
        name = ".".join(map(str, path))
        if name in flat:
            raise ValueError(f"duplicated flatten key {name}")
        flat[name], mappings[name] = value, path

    traverse_state_dict(state_dict, put)
    return flat, mappings


def unflatten_state_dict(state_dict: dict[str, Any], mapping: FLATTEN_MAPPING) -> dict[str, Any]:
    """The nested dict of what `flatten_state_dict` returned."""
    nested: dict[str, Any] = {}
    for name, value in state_dict.items():
        set_element(nested, mapping[name], value)
    return nested
