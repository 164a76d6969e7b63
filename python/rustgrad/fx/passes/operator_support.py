"""Which nodes of a graph something else can run: what partitioners ask."""

from __future__ import annotations

import abc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ... import _C
from ...nn.modules.module import Module
from ..node import Node
from .shape_prop import TensorMetadata
from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

TargetTypeName = str
SupportedArgumentDTypes = tuple[Sequence[Sequence[_C.dtype]], dict[str, Sequence[_C.dtype]]] | None
SupportDict = Mapping[TargetTypeName, SupportedArgumentDTypes]
IsNodeSupported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(abc.ABC):
    """What decides which nodes are supported."""

    @abc.abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is supported.

        Args:
            submodules (dict): the modules of the graph by their paths.
            node (Node): the node.
        """
        raise NotImplementedError


def _dtype_of(arg: Any) -> Any:
    meta = arg.meta.get("tensor_meta") if isinstance(arg, Node) else None
    return meta.dtype if isinstance(meta, TensorMetadata) else None


class OperatorSupport(OperatorSupportBase):
    """Supports nodes by what they call.

    Args:
        support_dict (dict): the name of what is called (see `tools_common.get_node_target`) -> None, or the dtypes that each
            argument may have: of those by position, and of those by name.
    """

    _support_dict: SupportDict

    def __init__(self, support_dict: SupportDict | None = None) -> None:
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether what the node calls is in the table, and its arguments have dtypes that are; nodes that call nothing are."""
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        by_place, by_name = allowed
        pairs = [
            *zip(node.args, by_place, strict=False),
            *((node.kwargs[n], d) for n, d in by_name.items() if n in node.kwargs),
        ]
        return all(_dtype_of(arg) in dtypes for arg, dtypes in pairs if isinstance(arg, Node))


def create_op_support(is_node_supported: IsNodeSupported) -> OperatorSupportBase:
    """An `OperatorSupportBase` of a function."""

    class FunctionalOperatorSupport(OperatorSupportBase):
        def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
            return is_node_supported(submodules, node)

    return FunctionalOperatorSupport()


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what all support."""
    return create_op_support(lambda modules, node: all(s.is_node_supported(modules, node) for s in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """Supports what one of them supports."""
    return create_op_support(lambda modules, node: any(s.is_node_supported(modules, node) for s in op_support))


class OpSupports:
    """Rules that refuse nodes, to be combined with `chain`."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: _C.dtype) -> OperatorSupportBase:
        """Refuses nodes with an argument of a dtype."""
        return create_op_support(lambda modules, node: all(_dtype_of(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: set[str]) -> OperatorSupportBase:
        """Refuses nodes by their names."""
        return create_op_support(lambda modules, node: node.name not in disallow_set)
