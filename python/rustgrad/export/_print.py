"""An exported program as text: the code of its graph with types and places."""

from __future__ import annotations

import re
from typing import Any

from ..fx._codegen import CodeGen, _Writer, names_of
from ..fx._names import Namespace
from ..fx.graph_module import GraphModule
from ..fx.node import Node
from ._values import described

__all__ = ["module_text"]


class _Annotated(_Writer):
    """Writes a graph as the lines of a function, with a comment where the place in the program changes."""

    def lines(self) -> list[str]:
        self.place = ""
        for node in self.nodes:
            start = len(self.body)
            getattr(self, f"_{node.op}")(node)
            self._forget(node)
            if node.op not in ("placeholder", "output"):
                self.body[start:start] = self._comment(node)
        text = "".join(self.body)
        head = self.codegen.gen_fn_def(self.parameters, "")
        return [head, *("    " + line if line else "" for line in text.rstrip("\n").split("\n"))]

    def _note(self, node: Node) -> str:
        note = described(node.meta.get("val"))
        return "" if note is None else f': "{note}"'

    def _comment(self, node: Node) -> list[str]:
        trace = node.meta.get("stack_trace") or ""
        if trace == self.place and self.place != "":
            return []
        first = self.place == "" and not any(line.startswith("# ") for line in self.body)
        if not trace:
            if self.place == "" and not first:
                return []
            self.place = trace
            return (
                ["# No stacktrace found for following nodes\n"]
                if first
                else ["\n# No stacktrace found for following nodes\n"]
            )
        self.place = trace
        found = re.findall(r'File "([^"]*)", line (\d+), in ([^\n]*)(?:\n\s*([^\n]*))?', trace)
        file, line, function, code = found[-1]
        return [("" if first else "\n") + f"# File: {file}:{line} in {function}, code: {code}\n"]


def module_text(module: GraphModule, name: str = "GraphModule") -> str:
    """The class of a module of a graph, with those of graphs in it."""
    namespace = Namespace()
    nodes = list(module.graph.nodes)
    with names_of(nodes, lambda n: namespace.create_name(n.name, n)):
        lines = _Annotated(CodeGen(), nodes, "self", namespace).lines()
    text = [f"class {name}(torch.nn.Module):", *("    " + line if line else "" for line in lines), ""]
    for path, child in module.named_children():
        if isinstance(child, GraphModule):
            text += ["    " + line if line else "" for line in module_text(child, path).split("\n")]
    return "\n".join(text)


def program_text(program: Any) -> str:
    """The form of `print(program)`."""
    code = "\n".join("    " + line for line in module_text(program.graph_module).split("\n"))
    signature = str(program.graph_signature).replace("\n", "\n    ")
    return f"ExportedProgram:\n{code}\nGraph signature:{signature}\nRange constraints: {program.range_constraints}\n"
