"""`Interpreter` and `Transformer`: run a graph node by node."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from ..nn.modules.module import Module
from ._codegen import last_uses
from .graph import Graph
from .graph_module import GraphModule
from .node import Node, map_aggregate, map_arg
from .proxy import Proxy

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclasses override the method of a kind of node, or `run_node`.

    Args:
        module (Module): where modules and attributes are found.
        garbage_collect_values (bool): values are dropped after their last use.
        graph (Graph): the graph, by default that of `module`.

    Attributes:
        env (dict): the value of each node that has run.
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None) -> None:
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())
        self.user_to_last_uses = last_uses(self.graph.nodes) if garbage_collect_values else {}

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """Runs the graph.

        Args:
            args: the values of its placeholders.
            initial_env (dict): values of nodes that need not run.

        Returns:
            The value of the output node.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback and error.args and not isinstance(error, KeyError):
                    error.args = (f"{error.args[0]}\n\nWhile executing {node.format_node()}", *error.args[1:])
                raise
            for dead in self.user_to_last_uses.get(node, ()):
                self.env.pop(dead, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with the values in a list, which is emptied, so that nothing else keeps them."""
        args = tuple(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    def run_node(self, n: Node) -> Any:
        """The value of one node."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument of `run`, or the default. RuntimeError without either."""
        if target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The value of an attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a method of the first argument."""
        receiver, *rest = args
        return getattr(receiver, target)(*rest, **kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module at a path. RuntimeError if there is none."""
        value: Any = self.module
        path = target.split(".")
        for i, part in enumerate(path):
            if not hasattr(value, part):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(path[: i + 1])}")
            value = getattr(value, part)
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[Any, Any]:
        """The arguments of a node with values in place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """`args` with values in place of nodes. RuntimeError for a node that has not run."""

        def value(node):
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


# Keys of `meta` that a node of a transformed graph takes over.
_ORIGIN = (
    "nn_module_stack",
    "source_fn_stack",
    "stack_trace",
    "original_aten",
    "from_node",
    "quantization_tag",
    "custom",
)


class Transformer(Interpreter):
    """Makes a new graph by running an old one with proxies; subclasses override the method of a kind of node."""

    def __init__(self, module: GraphModule) -> None:
        from ._symbolic_trace import Tracer

        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.new_graph.set_codegen(module.graph._codegen)

        class AppendingTracer(Tracer):
            def is_leaf_module(self, m, module_qualified_name):
                return True

        self.tracer = AppendingTracer()
        self.tracer.graph, self.tracer.root, self.tracer.tensor_attrs = self.new_graph, module, {}

    def run_node(self, n: Node) -> Any:
        """The proxy of a node; what it adds to the new graph says where it comes from, as the node does."""
        before = self.new_graph._root._prev
        result = super().run_node(n)
        kept = {key: copy.copy(n.meta[key]) for key in _ORIGIN if key in n.meta}
        node = self.new_graph._root._prev
        while kept and node is not before:
            node.meta.update(kept)
            node = node.prev
        return result

    def placeholder(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The proxy of an input."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The proxy of an attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The proxy of a call."""
        module = self.fetch_attr(target)
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The proxy of a call."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the new graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            old = self.graph.output_node()
            node = self.new_graph.output(map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x))
            node.meta, node.type = dict(old.meta), old.type
        return GraphModule(self.module, self.new_graph)
