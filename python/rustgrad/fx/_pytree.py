"""Functions that were traced with containers in `concrete_args`: their code takes the arguments apart and puts the result together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from ..utils import _pytree
from ..utils._pytree_nodes import STANDARD_DICT_TYPES
from ._codegen import CodeGen

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

_BY_CLASS: dict[Any, Callable[[Any, Any], list[Any]]] = {}


def register_pytree_flatten_spec(
    cls: type, flatten_fn_spec: Callable[[Any, Any], list[Any]], flatten_fn_exact_match_spec: Any = None
) -> None:
    """Says how `tree_flatten_spec` takes an object of a class apart: (object, structure) -> parts."""
    _BY_CLASS[cls] = flatten_fn_spec


def tree_flatten_spec(pytree: Any, spec: Any) -> list[Any]:
    """What stands in `pytree` where the structure has its leaves. Containers are read by key or index, so proxies will do.

    Raises:
        TypeError, KeyError, IndexError: there is no such key or index.
    """
    if spec.is_leaf():
        return [pytree]
    parts = _parts(pytree, spec)
    return [leaf for part, child in zip(parts, spec.children(), strict=True) for leaf in tree_flatten_spec(part, child)]


def _parts(pytree, spec):
    if spec.type in _BY_CLASS:
        return _BY_CLASS[spec.type](pytree, spec)
    if spec.type in STANDARD_DICT_TYPES:
        keys = spec.context[1] if spec.type is defaultdict else spec.context
        return [pytree[key] for key in keys]
    return [pytree[i] for i in range(spec.num_children)]


class _PyTreeInfo(NamedTuple):
    """The names of the arguments of a function, their structure, and that of its result."""

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


class _PyTreeCodeGen(CodeGen):
    """Writes a function whose arguments and result are containers; the graph's placeholders and output are their leaves."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        self.pytree_info = pytree_info

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        leaves = [v.partition(" : ")[0].partition(" = ")[0].lstrip("*") for v in free_vars]
        names = self.pytree_info.orig_args
        head = f"def forward({', '.join(['self', *names])}):"
        if not leaves:
            return head
        given = ", ".join(name.partition(" = ")[0].lstrip("*") for name in names)
        return f"{head}\n    {', '.join(leaves)}, = fx_pytree.tree_flatten_spec([{given}], self._in_spec)"

    def generate_output(self, output_args: Any) -> str:
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def process_inputs(self, *args: Any) -> Any:
        return tree_flatten_spec(args, self.pytree_info.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        return _pytree.tree_unflatten(outputs, self.pytree_info.out_spec)

    def additional_globals(self) -> list[tuple[str, Any]]:
        from . import _pytree as fx_pytree

        return [("fx_pytree", fx_pytree), ("pytree", _pytree)]
