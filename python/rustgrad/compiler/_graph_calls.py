"""A function runs on fake tensors, and a mode writes its calls of functions, methods and operators as a graph.

The graph is what a backend of the program compiles. It is on the level of the program, as PyTorch's is: `torch.relu`, `x.view(..)`,
`x + 1`, with writes in place. Tensors that the function reaches besides its arguments are inputs of the graph too.
"""

from __future__ import annotations

import dis
import functools
import operator
import os
import re
import sys
import traceback
from types import CodeType, FrameType
from typing import Any

from .. import _C
from .._base import Size, Tensor, dtype
from .._base import device as _device
from .._formats import layout, memory_format
from .._op_defs import CustomOpDef
from .._ops import OpOverload, OpOverloadPacket
from .._recording._calls import inside
from .._recording._keys import ASKS, SIZES
from .._recording._trace import items, map_arguments
from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..autograd.grad_mode import enable_grad
from ..fx._names import public_name
from ..fx.graph import Graph
from ..fx.node import Node
from ..overrides import TorchFunctionMode, resolve_name

__all__ = ["CONSTANTS", "HOME", "Disturbed", "GraphCalls", "NoGraph", "fake_of", "name_of"]

HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
CONSTANTS = (
    *(int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range),
    *(dtype, layout, memory_format, _device, Size),
)
# What changes more than elements, or what autograd does later.
_REFUSED = {
    "backward",
    "register_hook",
    "retain_grad",
    "requires_grad_",
    "register_post_accumulate_grad_hook",
    "share_memory_",
}
# Instructions for which a method stands where an operator is written.
_OPERATOR_CODES = ("BINARY_", "INPLACE_", "UNARY_", "COMPARE_", "STORE_SUBSCR")
_SAME = "and or xor lshift rshift invert eq ne lt le gt ge add sub mul matmul pow neg truediv floordiv mod getitem setitem".split()
_OPERATORS: dict[str, Any] = {
    **{name: getattr(operator, name) for name in "add sub mul matmul pow neg ne eq lt le gt ge".split()},
    **{f"__{name}__": getattr(operator, name + "_" * (name in ("and", "or"))) for name in _SAME},
    **{f"{name}_": getattr(operator, f"i{name}") for name in "add sub mul pow".split()},
    **{"div": operator.truediv, "remainder": operator.mod, "positive": operator.pos, "bitwise_not": operator.invert},
    **{f"bitwise_{name}": getattr(operator, name + "_" * (name != "xor")) for name in ("and", "or", "xor")},
    **{f"bitwise_{name}_": getattr(operator, f"i{name}") for name in ("and", "or", "xor")},
    **{f"bitwise_{side}_shift": getattr(operator, f"{side[0]}shift") for side in ("left", "right")},
    **{f"bitwise_{side}_shift_": getattr(operator, f"i{side[0]}shift") for side in ("left", "right")},
    **{"div_": operator.itruediv, "floor_divide_": operator.ifloordiv, "remainder_": operator.imod},
}  # fmt: skip


class NoGraph(Exception):
    """Why a function is not one graph."""


class Disturbed(NoGraph):
    """Something changed while the function ran that another run may find as it left it, such as modules that are imported."""


@functools.lru_cache(maxsize=64)
def _instructions(code: CodeType) -> dict[int, str]:
    return {one.offset: one.opname for one in dis.get_instructions(code)}


class GraphCalls(TorchFunctionMode):
    """Writes each call of the program as a node, and runs it on fake tensors.

    Args:
        fake (FakeTensorMode): whose tensors the arguments are.
        given (dict): {id of a fake argument: (its name, the argument)}.
        names (Callable): a name for a tensor from outside.

    Attributes:
        graph (Graph): what was written.
        inputs (list): the tensors that the placeholders stand for, in their order.
        busy (int): not zero while a call is written, which calls more than the program does.
    """

    def __init__(self, fake: FakeTensorMode, given: dict[int, tuple[str, Tensor]], names: Any) -> None:
        self.fake, self.given, self.names = fake, given, names
        self.graph, self.inputs = Graph(), []
        self.nodes: dict[int, Node] = {}
        self.outside: dict[int, Any] = {}
        self.grad, self.inference = _C.is_grad_enabled(), _C.is_inference_mode_enabled()
        self._kept: list[Any] = []
        self.busy = 0

    @property
    def count(self) -> int:
        """How many calls were written."""
        return sum(n.op not in ("placeholder", "output") for n in self.graph.nodes)

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        self.busy += 1
        try:
            return self._seen(func, args, kwargs or {})
        finally:
            self.busy -= 1

    def _seen(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = map_arguments((args, kwargs), self._faked)
        name = resolve_name(func)
        key = (name or getattr(func, "__name__", "")).removeprefix("torch.").removeprefix("Tensor.")
        if key in _REFUSED or key.endswith(".__set__") or key == "grad.__get__" and not self._is_free(args[0]):
            raise NoGraph(f"it uses '{key.removesuffix('.__get__').removesuffix('.__set__')}'")
        if key in ASKS or key in SIZES:
            return func(*args, **kwargs)
        if key == "__iter__":
            with self:
                return iter(args[0].unbind(0))
        if name is None and not self._is_op(func):
            inner = inside(func)
            if inner is None:
                raise NoGraph(f"it calls {getattr(func, '__qualname__', func)}, which has no name")
            with self:
                return inner(*args, **kwargs)
        nodes = map_arguments((args, kwargs), self._argument)
        result = func(*args, **kwargs)
        if result is not NotImplemented and (result is None or any(isinstance(t, Tensor) for t in items(result))):
            self._write(func, name, key, nodes, result)
        return result

    @staticmethod
    def _is_op(func: Any) -> bool:
        return isinstance(func, (OpOverload, OpOverloadPacket, CustomOpDef)) or public_name(func) is not None

    def _is_free(self, tensor: Any) -> bool:
        """Whether a tensor is one that the function made, which has no gradient."""
        return id(tensor) in self.nodes and self.nodes[id(tensor)].op != "placeholder"

    # --- tensors

    def _faked(self, value: Any) -> Any:
        """A tensor from outside as its fake one."""
        if not isinstance(value, Tensor) or isinstance(value, FakeTensor):
            return value
        if id(value) not in self.outside:
            made = fake_of(self.fake, value)
            self.outside[id(value)] = made
            self.given[id(made)] = (self.names(value), value)
            self._kept.append(value)
        return self.outside[id(value)]

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return self.node_of(value)
        if isinstance(value, CONSTANTS) or value is None:
            return value
        raise NoGraph(f"a {type(value).__name__} is among the arguments of a call")

    def node_of(self, t: Tensor) -> Node:
        """The node whose value a fake tensor is."""
        found = self.nodes.get(id(t))
        if found is not None:
            return found
        if id(t) not in self.given:
            raise NoGraph("a tensor comes from a call that is not seen")
        name, real = self.given[id(t)]
        target = self._free(name)
        with self.graph.inserting_before(self._first()):
            node = self.graph.create_node("placeholder", target, (), {}, target.lower(), type_expr=type(real))
        node.meta["example_value"] = node.meta["val"] = t
        self.inputs.append(real)
        self._kept.append(t)
        self.nodes[id(t)] = node
        return node

    def _free(self, name: str) -> str:
        taken = {n.target for n in self.graph.nodes if n.op == "placeholder"}
        number, found = 0, name
        while found in taken:
            number += 1
            found = f"{name}{number}_"
        return found

    def _first(self) -> Node:
        """The first node that is no placeholder."""
        return next((n for n in self.graph.nodes if n.op != "placeholder"), self.graph._root)

    # --- calls

    def _write(self, func: Any, name: str | None, key: str, nodes: Any, result: Any) -> None:
        if _C.is_inference_mode_enabled() != self.inference:
            raise NoGraph("it enters or leaves inference mode")
        self.set_grad(_C.is_grad_enabled())
        args, kwargs = nodes
        frame = sys._getframe(3)  # what called the method or operator
        kind, target = "call_function", func
        if (name or "").startswith("torch.Tensor."):
            leaf, opname = func.__name__, _instructions(frame.f_code).get(frame.f_lasti, "")
            if key.endswith(".__get__"):
                target, args = getattr, (*args, key.removesuffix(".__get__"))
            elif opname.startswith(_OPERATOR_CODES) and leaf in _OPERATORS:
                target = _OPERATORS[leaf]
            elif opname.startswith(("BINARY_", "INPLACE_")) and _OPERATORS.get(leaf.replace("__r", "__", 1)):
                target, args = _OPERATORS[leaf.replace("__r", "__", 1)], args[::-1]
            elif leaf in ("__getitem__", "__setitem__"):
                target = _OPERATORS[leaf]
            else:
                kind, target = "call_method", leaf
        node = self.graph.create_node(kind, target, args, kwargs)
        node.meta["stack_trace"] = _stack(frame)
        self._results(result, node)

    def set_grad(self, enabled: bool) -> None:
        """Writes a change of the grad mode."""
        if enabled != self.grad:
            self.graph.create_node("call_function", _C._set_grad_enabled, (enabled,), {})
            self.grad = enabled

    def _results(self, result: Any, node: Node) -> None:
        if result is None:
            return
        node.meta["example_value"] = node.meta["val"] = result
        if isinstance(result, Tensor):
            self._kept.append(result)
            self.nodes[id(result)] = node
            return
        if not isinstance(result, (tuple, list)):
            raise NoGraph(f"a call of it returns a {type(result).__name__}")
        for i, part in enumerate(result):
            if isinstance(part, (Tensor, tuple, list)):
                self._results(part, self.graph.create_node("call_function", operator.getitem, (node, i), {}))


def fake_of(fake: FakeTensorMode, t: Tensor) -> Any:
    """The fake tensor of a tensor: a leaf where the tensor is one."""
    made = fake.from_tensor(t)
    if t.requires_grad and not t.is_leaf:
        with enable_grad(), fake:
            made = made.clone()
    return made


def _stack(frame: FrameType | None) -> str:
    """The line of the program that called."""
    while frame is not None and frame.f_code.co_filename.startswith(HOME):
        frame = frame.f_back
    return "" if frame is None else "".join(traceback.format_list(traceback.extract_stack(frame, 1)))


def name_of(place: str, root: str) -> str:
    """The name of a placeholder for a tensor at a place such as `self['layer'].parameters.weight`."""
    path = re.sub(r"\['(\w+)'\](?=.*\.(parameters|buffers)\.)", r"_modules_\1", place)
    return f"{root}_" + re.sub(r"\W+", "_", path).strip("_") + "_"
