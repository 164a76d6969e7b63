"""A model as TensorBoard's graph, for `SummaryWriter.add_graph`: the calls of one run, in the modules whose parameters they take."""

from __future__ import annotations

from typing import Any

from tensorboardX.proto.graph_pb2 import GraphDef
from tensorboardX.proto.node_def_pb2 import NodeDef
from tensorboardX.proto.versions_pb2 import VersionDef

from ... import jit
from ...nn.modules.module import Module

__all__ = ["graph"]


class _NoMeasurements:
    """The message `RunMetadata` without contents, which tensorboardX does not have."""

    def SerializeToString(self) -> bytes:
        return b""


class _Names:
    """Names of nodes in TensorBoard, where a slash opens a box: `Net/Linear[fc]/weight`."""

    def __init__(self, model: Module, own: str) -> None:
        self.model = model
        self.modules: dict[str, tuple[tuple[str, ...], Module]] = {own: ((type(model).__name__,), model)}
        self.known: dict[str, str] = {}
        self.scopes: dict[str, tuple[str, ...]] = {}

    def attribute(self, owner: str, name: str, made: str) -> str | None:
        """Notes what is read of a module; the name of a parameter or a buffer."""
        path, module = self.modules[owner]
        value = getattr(module, name)
        if isinstance(value, Module):
            self.modules[made] = ((*path, f"{type(value).__name__}[{name}]"), value)
            return None
        self.scopes[made] = path
        self.known[made] = "/".join((*path, name))
        return self.known[made]

    def call(self, kind: str, takes: list[str], made: str) -> str:
        """The name of a call, in the box of the first parameter that it takes."""
        path = next((self.scopes[t] for t in takes if t in self.scopes), (type(self.model).__name__,))
        self.known[made] = "/".join((*path, f"{kind}_{made.lstrip('_')}"))
        return self.known[made]


def graph(model: Module, args: Any, verbose: bool = False, use_strict_trace: bool = True) -> tuple[Any, Any]:
    """Traces a model and writes its calls as TensorBoard's graph.

    Args:
        model (Module): the model.
        args (tensor or tuple of tensors): its inputs.
        verbose (bool): whether the graph is printed.
        use_strict_trace (bool): see `jit.trace`.

    Returns:
        A `GraphDef`, and a `RunMetadata` without measurements.

    Raises:
        RuntimeError: the call of the model has no form in TorchScript.
    """
    traced = jit.trace(model, args, strict=use_strict_trace)
    if not isinstance(traced, jit.ScriptModule):
        raise RuntimeError("add_graph: the call of the model has no form as a graph; the warning says what of it")
    recorded, nodes = traced.graph, []
    own, *given = recorded.inputs()
    names = _Names(model, own)
    if verbose:
        print(recorded)
    for value in given:
        names.known[value] = f"input/{value}"
        nodes.append(NodeDef(name=names.known[value], op="IO Node"))
    for node in recorded.nodes():
        takes, makes, kind = list(node.inputs()), list(node.outputs()), node.kind()
        if kind == "prim::GetAttr":
            name = names.attribute(takes[0], node["name"], makes[0])
            if name is not None and all(n.name != name for n in nodes):
                nodes.append(NodeDef(name=name, op="Parameter"))
        elif kind == "prim::ListConstruct" and not any(t in names.known for t in takes) or kind == "prim::Constant":
            continue  # sizes and settings
        elif makes:
            name = names.call(kind.rpartition("::")[2], takes, makes[0])
            names.known.update(dict.fromkeys(makes[1:], name))
            nodes.append(NodeDef(name=name, op=kind, input=[names.known[t] for t in takes if t in names.known]))
    for at, value in enumerate(recorded.outputs()):
        nodes.append(NodeDef(name=f"output/output.{at + 1}", op="IO Node", input=[names.known[value]]))
    return GraphDef(node=nodes, versions=VersionDef(producer=22)), _NoMeasurements()


def __dir__() -> list[str]:
    return __all__
