"""`_get_trace_graph`: the ops of one call of a module as a graph, whose values know their shapes and whose nodes know their scopes.

The recorder is that of `trace`; parameters and buffers are inputs of the graph. Libraries count operations with it.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

from .._base import Tensor
from ..nn.modules.module import Module
from ..utils import _pytree
from ._graph import Form, Graph, Node, _Builder, connected
from ._record import Recorder
from ._trace import _attributes, _copied, _input, _named, _output, _tracing

__all__ = ["State", "current", "trace_graph"]


class State:
    """The state of a trace: a program pushes the name of a part when it begins, and pops it when it ends."""

    def __init__(self, recorder: _Calls) -> None:
        self._recorder = recorder
        self.scopes: list[str] = []

    def push_scope(self, name: str) -> None:
        """Nodes that follow are in a scope of this name, within those that are open."""
        self._recorder.note()
        self.scopes.append(name)

    def pop_scope(self) -> None:
        """Ends the innermost scope."""
        self._recorder.note()
        self.scopes.pop()


class _Here(threading.local):
    state: State | None = None


_here = _Here()


def current() -> State | None:
    """The state of the trace that this thread is in; None outside of one."""
    return _here.state


class _Calls(Recorder):
    """A recorder that notes shapes and scopes."""

    def __init__(self, attributes: dict[int, tuple[str, ...]]) -> None:
        super().__init__(attributes)
        self.state = State(self)
        self.forms: dict[str, Form] = {}
        self.where: list[str] = []

    def note(self) -> None:
        """Lines since the last time are in the scopes that are open."""
        self.where += ["/".join(self.state.scopes)] * (len(self.lines) - len(self.where))

    def attribute(self, path: tuple[str, ...]) -> str:
        """The input that a parameter or buffer is."""
        return "self_" + "_".join(path)

    def named(self, tensor: Tensor, name: str) -> None:
        """Says that a variable holds a tensor."""
        super().named(tensor, name)
        self.forms[name] = Form(tensor)

    def _results(self, text: str, result: Any) -> None:
        super()._results(text, result)
        # What is written in place has a variable of its own too.
        names = self.lines[-1].partition("=")[0].replace(",", " ").split()
        for name, t in zip(names, [result] if isinstance(result, Tensor) else result or []):
            self.forms.setdefault(name, Form(t))
        self.note()


def trace_graph(f: Any, args: Any, kwargs: dict[str, Any], strict: bool) -> tuple[Graph, Any]:
    """The graph of a call, and what it returned."""
    module = f if isinstance(f, Module) else None
    attributes = {} if module is None else _attributes(module)
    recorder = _Calls(attributes)
    named = _named(f, args, kwargs)
    fresh = {n: _copied(v) for n, v in named.items()}
    inputs = list(fresh)
    for name, value in fresh.items():
        _input(recorder, value, name)
    for i, path in attributes.items():
        owner = (
            next(t for t in _pytree.tree_leaves(module.state_dict(keep_vars=True)) if id(t) == i) if module else None
        )
        inputs.append(recorder.attribute(path))
        if isinstance(owner, Tensor):
            recorder.named(owner, inputs[-1])
    given = list(fresh.values())
    _here.state = recorder.state
    try:
        with _tracing(), recorder:
            result = f(*given[: len(args)], **dict(zip(list(fresh)[len(args) :], given[len(args) :], strict=True)))
    finally:
        _here.state = None
    recorder.note()
    text, _ = _output(recorder, result, strict)
    builder, nodes = _Builder(), []
    for line, scope in zip(recorder.lines, recorder.where, strict=True):
        made: list[Node] = []
        builder.statement(ast.parse(line).body[0], made)
        for node in _convolutions(made, builder):
            node._scope = scope
            nodes.append(node)
    outputs = [builder.value(ast.parse(text, mode="eval").body, nodes)]
    return connected(inputs, nodes, outputs, recorder.forms), result


def _convolutions(nodes: list[Node], builder: _Builder) -> list[Node]:
    """Nodes with convolutions as PyTorch's tracer has them: `aten::_convolution` for all."""
    found: list[Node] = []

    def constant(value: Any) -> str:
        found.append(Node("prim::Constant", [], [builder.fresh()], {"value": value}))
        return found[-1]._makes[0]

    for node in nodes:
        kind = node.kind().removeprefix("aten::")
        if kind in ("conv1d", "conv2d", "conv3d"):
            x, w, b, stride, padding, dilation, groups = node._takes
            zeros = [constant(0) for _ in range(int(kind[4]))]
            found.append(Node("prim::ListConstruct", zeros, [builder.fresh()]))
            output_padding, transposed = found[-1]._makes[0], constant(False)
        elif kind in ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"):
            x, w, b, stride, padding, output_padding, groups, dilation = node._takes
            transposed = constant(True)
        else:
            found.append(node)
            continue
        flags = [constant(v) for v in (False, False, True, True)]
        node._kind = "aten::_convolution"
        node._takes = [x, w, b, stride, padding, dilation, transposed, output_padding, groups, *flags]
        found.append(node)
    return found
