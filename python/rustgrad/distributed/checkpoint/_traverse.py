"""Nested dicts and lists: their values by path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..._C import Tensor

__all__ = ["get_element", "print_tensor", "set_element", "traverse_state_dict"]

PATH_ITEM = str | int
OBJ_PATH = tuple[PATH_ITEM, ...]


def _keep_visiting_tensors(value: object) -> bool:
    """Whether a value is a tensor, for which lists are gone through."""
    return isinstance(value, Tensor)


class Key:
    """A key of a dict, of any type, told from a place in a list; in names it is text."""

    def __init__(self, value):
        self.value = value

    def __str__(self):
        return str(self.value)


def _is_whole(value, keep_traversing):
    """Whether a value is visited as it is: no dict, and no list in which there is a dict or what is looked for."""
    if isinstance(value, Mapping):
        return False
    if not isinstance(value, list):
        return True
    return all(_is_whole(v, keep_traversing) and not keep_traversing(v) for v in value)


def traverse_state_dict(
    state_dict: dict[str, Any],
    visitor: Callable[[OBJ_PATH, Any], None],
    keep_traversing: Callable[[object], bool] = _keep_visiting_tensors,
) -> None:
    """Calls `visitor(path, value)` for each value of nested dicts and lists.

    Dicts are gone through, and lists in which, at any depth, is a dict or a value for which `keep_traversing` is True. Other lists
    and tuples are values.
    """

    visit_keys(
        state_dict,
        lambda path, value: visitor(tuple(k if isinstance(k, int) else str(k) for k in path), value),
        keep_traversing,
    )


def visit_keys(state_dict, visitor, keep_traversing=_keep_visiting_tensors):
    """As `traverse_state_dict`, with the keys of dicts as they are, each as a `Key`; places in lists are numbers."""

    def visit(path, value):
        if isinstance(value, Mapping):
            for key, inner in value.items():
                visit((*path, Key(key)), inner)
        elif _is_whole(value, keep_traversing):
            visitor(path, value)
        else:
            for i, inner in enumerate(value):
                visit((*path, i), inner)

    for key, value in state_dict.items():
        visit((Key(key),), value)


def set_element(root_dict: dict[str, Any], path: OBJ_PATH, value: object) -> None:
    """Puts a value at a path, making the dicts and lists on the way."""
    place: Any = root_dict
    for key, following in zip(path, path[1:], strict=False):
        made: Any = {} if isinstance(following, str) else []
        if isinstance(place, list):
            _lengthen(place, key)
            if place[key] is None:  # type: ignore[index]
                place[key] = made  # type: ignore[index]
        else:
            place.setdefault(key, made)
        place = place[key]
    if isinstance(place, list):
        _lengthen(place, path[-1])
    place[path[-1]] = value


def _lengthen(values, index):
    values.extend([None] * (index + 1 - len(values)))


def get_element(root_dict: dict[str, Any], path: OBJ_PATH, default_value: Any = None) -> Any:
    """The value at a path, or a default where there is none."""
    value: Any = root_dict
    for key in path:
        if isinstance(key, int):
            if not isinstance(value, list) or len(value) <= key:
                return default_value
        elif not isinstance(value, Mapping) or key not in value:
            return default_value
        value = value[key]
    return value


def print_tensor(path: OBJ_PATH, value: object, print_fun: Callable[[str], None] = print) -> None:
    """Prints a path and the size of the tensor there; the type of another value."""
    print_fun(f"{path}: {value.size() if isinstance(value, Tensor) else type(value)}")
