"""Nested containers as one list of leaves and a structure: `tree_flatten`, `tree_map` and their kin.

A leaf is what is no container; None is one. What counts as a container stands in `_pytree_nodes`.
"""

from __future__ import annotations

import functools
import types
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .._own import at_home
from ._pytree_nodes import (
    BUILTIN_TYPES,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    GetAttrKey,
    MappingKey,
    NodeDef,
    SequenceKey,
    _private_register_pytree_node,
    _register_namedtuple,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    node_type,
    register_constant,
    register_dataclass,
    register_pytree_node,
)
from ._pytree_spec import (
    LeafSpec,
    TreeSpec,
    expect_spec,
    treespec_dict,
    treespec_dumps,
    treespec_leaf,
    treespec_loads,
    treespec_tuple,
)

__all__ = [
    "BUILTIN_TYPES",
    "STANDARD_DICT_TYPES",
    "SUPPORTED_NODES",
    "GetAttrKey",
    "LeafSpec",
    "MappingKey",
    "NodeDef",
    "PyTreeSpec",
    "SequenceKey",
    "TreeSpec",
    "_private_register_pytree_node",
    "_register_namedtuple",
    "arg_tree_leaves",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "map_only",
    "register_constant",
    "register_dataclass",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dict",
    "treespec_dumps",
    "treespec_leaf",
    "treespec_loads",
    "treespec_pprint",
    "treespec_tuple",
]

at_home(__name__, TreeSpec, LeafSpec, NodeDef, GetAttrKey, MappingKey, SequenceKey)

PyTreeSpec = TreeSpec
Context = PyTree = Any
_is_namedtuple_instance = is_namedtuple_instance
_get_node_type = node_type
# How standard containers are taken apart: libraries use it for containers of their own.
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = SUPPORTED_NODES[dict][1:4]
_list_flatten, _list_unflatten, _list_flatten_with_keys = SUPPORTED_NODES[list][1:4]
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = SUPPORTED_NODES[tuple][1:4]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = SUPPORTED_NODES[OrderedDict][1:4]


def tree_is_leaf(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `tree` is no container, or `is_leaf` says that it counts as a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """(list of leaves, structure)."""
    leaves = []

    def walk(node):
        if tree_is_leaf(node, is_leaf):
            leaves.append(node)
            return treespec_leaf()
        kind = node_type(node)
        children, context = SUPPORTED_NODES[kind].flatten_fn(node)
        return TreeSpec(kind, context, [walk(child) for child in children])

    spec = walk(tree)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The containers of a structure again, with these leaves.

    Raises:
        TypeError: `treespec` is not a structure.
        ValueError: there are more or fewer leaves than it has.
    """
    expect_spec(treespec)
    return treespec.unflatten(leaves)


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterator[Any]:
    """The leaves one after another."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    children, _ = SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)
    for child in children:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[Any]:
    """The list of leaves."""
    return list(tree_iter(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure alone."""
    return tree_flatten(tree, is_leaf)[1]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments."""
    return [leaf for arg in (*args, *kwargs.values()) for leaf in tree_iter(arg)]


def _columns(tree, rests, is_leaf):
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec, [leaves, *(spec.flatten_up_to(rest) for rest in rests)]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The same containers with `func(leaf, ..)` for leaves; `rests` have the structure of `tree` or go deeper.

    Raises:
        ValueError: one of `rests` has another structure.
    """
    spec, columns = _columns(tree, rests, is_leaf)
    return spec.unflatten([func(*row) for row in zip(*columns, strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Calls `func(leaf, ..)` for every leaf and gives `tree` back."""
    _, columns = _columns(tree, rests, is_leaf)
    for row in zip(*columns, strict=True):
        func(*row)
    return tree


def _predicate(kinds):
    if isinstance(kinds, (type, tuple, types.UnionType)):
        return lambda x: isinstance(x, kinds)
    if callable(kinds):
        return kinds
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(
    type_or_types_or_pred: type | tuple[type, ...] | types.UnionType | Callable[[Any], bool], /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator: the function is called for values of these types alone, others stay as they are."""
    wanted = _predicate(type_or_types_or_pred)

    def decorate(func):
        @functools.wraps(func)
        def wrapper(x):
            return func(x) if wanted(x) else x

        return wrapper

    return decorate


def tree_map_only(
    type_or_types_or_pred: type | tuple[type, ...] | types.UnionType | Callable[[Any], bool],
    /,
    func: Callable[..., Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """`tree_map` where leaves are of these types, or fulfil the predicate; other leaves stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: type | tuple[type, ...] | types.UnionType | Callable[[Any], bool],
    /,
    func: Callable[..., Any],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """`tree_map_` where leaves are of these types, or fulfil the predicate."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether all leaves fulfil `pred`."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether a leaf fulfils `pred`."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types_or_pred: type | tuple[type, ...] | types.UnionType | Callable[[Any], bool],
    /,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether all leaves of these types fulfil `pred`."""
    wanted = _predicate(type_or_types_or_pred)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if wanted(x))


def tree_any_only(
    type_or_types_or_pred: type | tuple[type, ...] | types.UnionType | Callable[[Any], bool],
    /,
    pred: Callable[[Any], bool],
    tree: Any,
    is_leaf: Callable[[Any], bool] | None = None,
) -> bool:
    """Whether a leaf of these types fulfils `pred`."""
    wanted = _predicate(type_or_types_or_pred)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if wanted(x))


def _paths(tree, is_leaf, path=()):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    node = SUPPORTED_NODES[node_type(tree)]
    if node.flatten_with_keys_fn is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {node.type}. Please pass a flatten_with_keys_fn argument "
            "to register_pytree_node."
        )
    for key, child in node.flatten_with_keys_fn(tree)[0]:
        yield from _paths(child, is_leaf, (*path, key))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple[Any, ...], Any]], TreeSpec]:
    """(list of (path, leaf), structure); a path is a tuple of keys, which `keystr` writes out.

    Raises:
        ValueError: a class in it was registered without `flatten_with_keys_fn`.
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple[Any, ...], Any]]:
    """The list of (path, leaf)."""
    return list(_paths(tree, is_leaf))


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None
) -> Any:
    """`tree_map` with `func(path, leaf, ..)`."""
    spec, columns = _columns(tree, rests, is_leaf)
    paths = [path for path, _ in _paths(tree, is_leaf)]
    return spec.unflatten([func(*row) for row in zip(paths, *columns, strict=True)])


def keystr(kp: Iterable[Any]) -> str:
    """A path as Python writes it: `['a'][0].x`."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What stands in `obj` at a path."""
    return functools.reduce(lambda value, key: key.get(value), kp, obj)


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self):
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure as Python writes containers, with asterisks for leaves."""
    expect_spec(treespec)
    return repr(treespec.unflatten([_Asterisk("*")] * treespec.num_leaves))


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs):
    """Deprecated: `register_pytree_node`."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree`, repeated for each leaf of a larger structure below them; None if it does not match."""
    expect_spec(treespec)
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or node_type(tree) != treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children(), strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found
