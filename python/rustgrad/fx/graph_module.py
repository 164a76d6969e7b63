"""`GraphModule`: a module whose `forward` is the code of a graph."""

from __future__ import annotations

import copy
import linecache
import os
import sys
import traceback
from typing import Any

from .._C import Tensor
from ..nn.modules.module import Module
from ..nn.parameter import Parameter
from ._pytree import _PyTreeCodeGen
from .graph import Graph, PythonCode

__all__ = ["GraphModule"]

_counter = 0
# Key of `meta`: attributes that libraries want kept in copies.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module with the state of a `GraphModule`, from which a copy takes it."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _compiled(src, names, source):
    """The function `forward` of some code, whose lines tracebacks can show."""
    global _counter
    _counter += 1
    file = f"<eval_with_key>.{_counter}" + (f" from {source}" if source else "")
    linecache.cache[file] = (len(src), None, src.splitlines(keepends=True), file)
    names = dict(names)
    exec(compile(src, file, "exec"), names)
    return names["forward"]


def _walk(root, path):
    """(the module that has the attribute at a path, the attribute's name)."""
    *parents, name = path.split(".")
    for part in parents:
        root = getattr(root, part)
    return root, name


def _copy_attr(source, target, path):
    """Gives `target` the attribute of `source` at a path, with empty modules on the way."""
    *parents, name = path.split(".")
    for part in parents:
        source = getattr(source, part)
        if not hasattr(target, part):
            setattr(target, part, Module())
        target = getattr(target, part)
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        persistent = name not in getattr(source, "_non_persistent_buffers_set", ())
        target.register_buffer(name, value, persistent)
    else:
        setattr(target, name, value)


def _assign_attr(value, target, path):
    *parents, name = path.split(".")
    for part in parents:
        if not hasattr(target, part):
            setattr(target, part, Module())
        target = getattr(target, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


def _rebuild(state, class_name, codegen_graph):
    """Unpickles a `GraphModule`."""
    made = GraphModule(_CodeOnlyModule(state), codegen_graph, class_name)
    # What the graph does not name comes along: modules, parameters, buffers and plain attributes.
    for key in ("_parameters", "_buffers", "_modules"):
        for name, value in state.get(key, {}).items():
            made.__dict__[key].setdefault(name, value)
    for key, value in state.items():
        made.__dict__.setdefault(key, value)
    return made


class GraphModule(Module):
    """A module made from a graph; assigning `graph`, or `recompile()` after changes to it, renews `forward`.

    Args:
        root (Module or dict): where the graph's modules and attributes are found: a module, or a dict by path.
        graph (Graph): the graph; the module gets a copy if another module owns it.
        class_name (str): the name of its class.

    Raises:
        RuntimeError: a dict lacks something that the graph names.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # Each object has a class of its own, which gets its `forward`.
        for base in cls.__mro__:
            if base.__dict__.get("_is_graph_module_object"):
                cls = base.__bases__[0]
        return super().__new__(type("GraphModuleImpl", (cls,), {"_is_graph_module_object": True}))

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        self._create_node_hooks: list[Any] = []
        self.meta: dict[str, Any] = {}
        if isinstance(root, Module):
            self.training = root.training
            self.meta.update(getattr(root, "meta", None) or {})
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, node.target)
        else:
            wanted = [n.target for n in graph.nodes if n.op in ("get_attr", "call_module")]
            for path in wanted:
                if path not in root:
                    raise RuntimeError(f"Node referenced target {path} but that target was not provided in ``root``!")
            for path in sorted(dict.fromkeys(wanted), key=lambda path: path.count(".")):
                _assign_attr(root[path], self, path)
        self.graph = graph
        # A pickle cannot name a class of a function.
        local = graph._tracer_cls is not None and "<locals>" in graph._tracer_cls.__qualname__
        self._tracer_cls = None if local else graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}

    @property
    def graph(self) -> Graph:
        """The graph; assigning one renews `forward`."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        if g.owning_module not in (None, self):
            g = copy.deepcopy(g)
        self.__dict__["_graph"] = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of `forward`."""
        return self._code

    def recompile(self) -> PythonCode:
        """Renews `forward` from the graph; returns the code."""
        if isinstance(self._graph._codegen, _PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self.__dict__.update(_in_spec=info.in_spec, _out_spec=info.out_spec)
        written = self._graph.python_code("self")
        self.__dict__["_code"] = written.src
        type(self).forward = _compiled(written.src, written.globals, self._graph._source)
        return written

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            _show_line(error)
            raise

    def print_readable(self, print_output: bool = True, *args: Any, **kwargs: Any) -> str:
        """The code as a class, with those of submodules that are graphs; printed too unless told otherwise."""
        body = "\n".join("    " + line if line.strip() else "" for line in self._code.strip("\n").split("\n"))
        parts = [f"class {self._get_name()}(torch.nn.Module):\n{body}\n"]
        for child in self.children():
            if isinstance(child, GraphModule):
                inner = child.print_readable(print_output=False)
                parts.append("\n".join("    " + line if line.strip() else "" for line in inner.split("\n")))
        text = "\n".join(parts)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Writes the code as a package that imports torch, with the state in `state_dict.pt` and submodules beside it."""
        from ..serialization import save

        os.makedirs(folder, exist_ok=True)
        save(self.state_dict(), os.path.join(folder, "state_dict.pt"))
        lines = ["import torch", "from torch.nn import *", "", f"class {module_name}(torch.nn.Module):", "    def __init__(self):"]  # fmt: skip
        lines.append("        super().__init__()")
        for name, child in self.named_children():
            file = os.path.join(os.fspath(folder), f"{name}.pt")
            save(child, file)
            lines.append(f"        self.{name} = torch.load(r'{file}', weights_only=False) # {child._get_name()}")
        for name, value in [*self._buffers.items(), *self._parameters.items()]:
            if value is not None:
                maker = "torch.nn.Parameter" if isinstance(value, Parameter) else ""
                made = f"torch.empty({list(value.shape)}, dtype={value.dtype})"
                made = f"{maker}({made})" if maker else made
                kind = "register_parameter" if maker else "register_buffer"
                lines.append(f"        self.{kind}('{name}', {made})")
        state = os.path.join(os.fspath(folder), "state_dict.pt")
        lines.append(f"        self.load_state_dict(torch.load(r'{state}'))")
        lines += ["    " + line for line in self._code.split("\n")]
        with open(os.path.join(folder, "module.py"), "w", encoding="utf-8") as file_:
            file_.write("\n".join(lines) + "\n")
        with open(os.path.join(folder, "__init__.py"), "w", encoding="utf-8") as file_:
            file_.write("from .module import *\n")

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path, with empty modules on the way; False if something else is in the way."""
        *parents, name = target.split(".")
        module: Module = self
        for part in parents:
            if not hasattr(module, part):
                setattr(module, part, Module())
            module = getattr(module, part)
            if not isinstance(module, Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the module at a path; False if there is none."""
        try:
            module, name = _walk(self, target)
        except AttributeError:
            return False
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes modules that the graph does not name."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = node.target.split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    used.update(f"{node.target}.{n}" for n, _ in self.get_submodule(node.target).named_modules() if n)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __reduce__(self) -> Any:
        state = {k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code", "_create_node_hooks")}
        graph = copy.deepcopy(self._graph)
        graph._tracer_cls = None
        return _rebuild, (state, type(self).__name__, graph)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        skipped = ("_graph", "_create_node_hooks")
        copied = type(self).__new__(type(self))
        # Before its parts, which may refer to it.
        memo[id(self)] = copied
        holder = _CodeOnlyModule({k: copy.deepcopy(v, memo) for k, v in self.__dict__.items() if k not in skipped})
        GraphModule.__init__(copied, holder, copy.deepcopy(self._graph), type(self).__name__)
        for key, value in holder.__dict__.items():
            if key not in copied.__dict__ or key.endswith("_hooks") or key == "training":
                copied.__dict__[key] = value
        return copied

    def _replicate_for_data_parallel(self) -> Any:
        # `__new__` would make the replica a class of its own, without `forward`.
        replica = object.__new__(type(self))
        replica.__dict__ = super()._replicate_for_data_parallel().__dict__
        return replica

    def __copy__(self) -> Any:
        copied = GraphModule(self, self.graph, type(self).__name__)
        copied.meta = dict(self.meta)
        return copied

    def __str__(self) -> str:
        return "\n".join(
            [super().__repr__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )


def _show_line(error):
    """Prints the line of written code in which an error happened."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    if "eval_with_key" in frame.filename:
        lines = "".join(linecache.getlines(frame.filename)[max(0, (frame.lineno or 1) - 3) : frame.lineno])
        where = f"line {frame.lineno} of the traced Module's generated forward function:"
        print(f"Call using an FX-traced Module, {where}\n{lines}", file=sys.stderr)
