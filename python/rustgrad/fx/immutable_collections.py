"""The lists and dictionaries in a node's arguments, which refuse to be changed: the graph keeps track of who uses whom.

To change arguments, assign `node.args` and `node.kwargs`.
"""

from __future__ import annotations

from typing import Any, NoReturn

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    """NotImplementedError: a node's arguments are replaced, not changed."""
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args of a "
        "torch.fx.Node object, instead create a new copy of it and assign the copy to the node:\n"
        "    new_args = ...  # copy and mutate args\n    node.args = new_args"
    )


def _refusing(names):
    def decorate(cls):
        for name in names:
            setattr(cls, name, _refuse)
        return cls

    return decorate


@_refusing(
    (
        "__delitem__",
        "__iadd__",
        "__imul__",
        "__setitem__",
        "append",
        "clear",
        "extend",
        "insert",
        "pop",
        "remove",
        "reverse",
        "sort",
    )
)
class immutable_list(list):
    """A list that raises when it is to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return immutable_list, (list(self),)


@_refusing(("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"))
class immutable_dict(dict):
    """A dictionary that raises when it is to be changed."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return immutable_dict, (dict(self),)


_pytree.register_pytree_node(
    immutable_list,
    lambda values: (list(values), None),
    lambda children, _: immutable_list(children),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda values: ([(_pytree.SequenceKey(i), v) for i, v in enumerate(values)], None),
)
_pytree.register_pytree_node(
    immutable_dict,
    lambda values: (list(values.values()), list(values)),
    lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda values: ([(_pytree.MappingKey(k), v) for k, v in values.items()], list(values)),
)
