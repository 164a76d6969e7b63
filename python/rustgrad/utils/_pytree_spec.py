"""`TreeSpec`: the structure of nested containers without their leaves, and its form in JSON."""

from __future__ import annotations

import enum
import json
import warnings
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from typing import Any

from ._pytree_nodes import (
    BUILTIN_TYPES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    node_type,
)


class TreeSpec:
    """A node: the class of a container, its context, and the structures of its children. A leaf has no class."""

    def __init__(self, type: Any, context: Any = None, children_specs: Iterable[TreeSpec] = ()) -> None:
        self.type = type
        self._context = context
        self._children = list(children_specs)
        self.num_children = len(self._children)
        self.num_leaves = sum(c.num_leaves for c in self._children) if type is not None else 1
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    @property
    def context(self) -> Any:
        """What the class needs beside the children to be built again: keys, a maximal length."""
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        """Deprecated: `children()`."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single child, or "
            "`treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def is_leaf(self) -> bool:
        """Whether it stands for one leaf."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The structures of the children."""
        return self._children.copy()

    def child(self, index: int) -> TreeSpec:
        """The structure of one child."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self) -> int:
        keys = self._context
        if self.type is defaultdict:
            keys = (keys[0], tuple(keys[1]))
        elif self.type in STANDARD_DICT_TYPES:
            keys = tuple(keys)
        elif self.type not in BUILTIN_TYPES:
            keys = None
        return hash((self.type, keys, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(c.__repr__(indent) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The containers again, with these leaves.

        Raises:
            ValueError: there are more or fewer leaves than the structure has.
        """
        leaves = leaves if isinstance(leaves, (list, tuple)) else list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.is_leaf():
            return next(leaves)
        children = [child._build(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in `tree` where this structure has its leaves.

        All kinds of dictionaries match each other; otherwise class, length and context must be equal.

        Raises:
            ValueError: `tree` has another structure.
        """
        found = []
        self._collect(tree, found)
        return found

    def _collect(self, tree, found):
        if self.is_leaf():
            found.append(tree)
            return
        for child, part in zip(self._children, self._parts(tree), strict=True):
            child._collect(part, found)

    def _parts(self, tree):
        kind = node_type(tree)
        dictionaries = self.type in STANDARD_DICT_TYPES and kind in STANDARD_DICT_TYPES
        if kind != self.type and not dictionaries:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(parts) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}.")
        if dictionaries:
            keys = self._context[1] if self.type is defaultdict else self._context
            missing, extra = set(keys) - set(tree), set(tree) - set(keys)
            if missing or extra:
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            return [tree[key] for key in keys]
        if kind is not deque and context != self._context:
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self._context!r}, but got {context!r}."
            )
        return parts


class LeafSpec(TreeSpec):
    """The structure of one leaf."""

    def __init__(self) -> None:
        super().__init__(None)


_LEAF = LeafSpec()


def treespec_leaf() -> TreeSpec:
    """The structure of one leaf."""
    return _LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of these."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The structure of a dictionary of these."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


def expect_spec(value: object) -> None:
    """Raises a TypeError where `value` is no structure."""
    if not isinstance(value, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(value)}.")


def _value_of(member):
    if isinstance(member, enum.Enum):
        return member.value
    raise TypeError(f"Object of type {type(member).__name__} is not JSON serializable")


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES[spec.type]
    if node.serialized_type_name is None:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call "
            "with a `serialized_type_name` kwarg."
        )
    if node.to_dumpable_context is not None:
        context = node.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, default=_value_of)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
                "using _register_pytree_node."
            ) from error
    children = [_to_json(child) for child in spec.children()]
    return {"type": node.serialized_type_name, "context": context, "children_spec": children}


def _from_json(data):
    if data["type"] is None:
        return _LEAF
    if data["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {data['type']!r} in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[data["type"]]
    read = SUPPORTED_NODES[cls].from_dumpable_context or json.loads
    return TreeSpec(cls, read(data["context"]), [_from_json(child) for child in data["children_spec"]])


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as text: JSON, of PyTorch's form (protocol 1).

    Raises:
        NotImplementedError: a class in it was registered without a name.
        ValueError: there is no such protocol.
    """
    expect_spec(treespec)
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps((1, _to_json(treespec)))


def treespec_loads(serialized: str | bytes) -> TreeSpec:
    """The structure that `treespec_dumps` wrote."""
    protocol, data = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _from_json(data)
