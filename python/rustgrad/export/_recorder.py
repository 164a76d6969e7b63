"""Records a program as calls of ATen ops: each function that it calls runs as the ops that it is in ATen."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor
from .._formats import strided
from .._op_defs import CustomOpDef
from .._ops import OpOverload, OpOverloadPacket, ops
from .._recording._calls import HOME, CallRecorder
from .._recording._errors import RecordingError
from .._recording._keys import RANDOM, READS
from .._recording._merge import BY_ELEMENTS
from .._recording._sizes import SymInt, caller
from .._recording._trace import Ref, Step, Value, items, map_arguments
from .._schema import overloads
from ..amp.autocast_mode import is_autocast_enabled
from ..utils import _pytree
from ._errors import DataDependent
from ._fit import Call, fit, fit_schema
from ._indexing import get_item, set_item
from ._lowering_table import lowering, signature
from ._stack import Place, place

__all__ = ["ExportRecorder", "Region"]

# Ops that write to arguments which their schemas do not mark.
_STATISTICS = {"batch_norm": (3, 4), "instance_norm": (3, 4)}


def _has_tensors(tree: Any) -> bool:
    return any(isinstance(t, Tensor) for t in items(tree))


def _by_elements(key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether elements decide on the sizes of what an op returns."""
    if key == "index":
        return any(isinstance(t, Tensor) and t.dtype in (_C.bool, _C.uint8) for t in args[1])
    if key == "repeat_interleave":
        return any(isinstance(v, Tensor) for v in (*args[1:], *kwargs.values())) or len(args) == 1
    if key == "one_hot":
        return len(args) < 2 or args[1] == -1
    return key in BY_ELEMENTS


class Region:
    """Steps that become a graph of their own: a branch of `cond`, or a block with another gradient mode."""

    def __init__(self, kind: str, grad: bool) -> None:
        self.kind, self.grad = kind, grad
        self.steps: list[Step] = []
        self.outputs: list[int] = []


class Info:
    """What is known of a step: whether it returns a list, its place, the region that it is in, and branches that it has."""

    def __init__(self, listed: bool, where: Place | None, region: Region | None) -> None:
        self.listed, self.place, self.region = listed, where, region
        self.branches: list[Region] = []


class ExportRecorder(CallRecorder):
    """A recorder whose trace has the ops that ran, writes in place among them, each with its place in the program."""

    keeps_grad = True

    def __init__(self, sizes: bool, modules: dict[int, str], keeps_places: bool) -> None:
        super().__init__(self._whole, sizes)
        self.entries: dict[int, tuple[Tensor, Value]] = {}
        # Memory of tensors from outside, and their elements before they were written.
        self.outside: dict[Any, Tensor] = {}
        self.saved: dict[Any, tuple[Tensor, Tensor]] = {}
        self.modules, self.keeps_places = modules, keeps_places
        self.function = ""
        # What is known of steps, by identity, and (stride, device) of each value.
        self.info: dict[int, Info] = {}
        self.forms: dict[int, tuple[Any, Any]] = {}
        # Values with sizes that elements decide on, and those that are computed from them.
        self.loose: set[int] = set()
        self.region: Region | None = None
        self.records_grad = _C.is_grad_enabled()

    def input(self, tensor: Tensor) -> None:
        value = self.trace.add(tensor, "input", depends=True)
        self.trace.inputs.append(value.number)
        self.entries[id(tensor)] = (tensor, value)

    def read(self, tensor: Tensor) -> Value:
        entry = self.entries.get(id(tensor))
        if entry is None:
            value = self.trace.add(tensor, "outside", tensor)
            self.outside.setdefault(_C._storage_key(tensor), tensor)
            entry = self.entries[id(tensor)] = (tensor, value)
        return entry[1]

    def depends(self, tensor: Tensor | None) -> bool:
        entry = self.entries.get(id(tensor))
        return entry is not None and entry[1].depends

    def restore(self) -> None:
        for tensor, before in self.saved.values():
            tensor.detach().copy_(before)

    # --- calls

    def _whole(self, key: str, function: Any) -> bool:
        """Whether a function written in Python is lowered rather than entered."""
        if isinstance(function, (OpOverload, OpOverloadPacket)):
            return True
        if lowering(key) is not None or key in ("__getitem__", "__setitem__"):
            return True
        return not key.startswith(("nn.init.", "nn.functional.")) and bool(overloads(key.replace(".", "_")))

    def _size(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        entry = self.entries.get(id(args[0]))
        before, self.sizes = self.sizes, self.sizes or (entry is not None and entry[1].number in self.loose)
        try:
            return super()._size(key, func, args, kwargs)
        finally:
            self.sizes = before

    def _element(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if key in READS and any(self.depends(t) for t in items((args, kwargs)) if isinstance(t, Tensor)):
            raise DataDependent(key, caller(HOME))
        return func(*args, **kwargs)

    def call(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        for t in items((args, kwargs)):
            if isinstance(t, Tensor) and (t.layout is not strided or t.is_nested):
                raise RecordingError(f"'{key}' at {caller(HOME)}: sparse and nested tensors are not exported")
        self.function = key
        if isinstance(func, (OpOverload, OpOverloadPacket)):
            return self._op(func, args, kwargs)
        if key == "__getitem__":
            return get_item(self, *args)
        if key == "__setitem__":
            return set_item(self, *args)
        found = lowering(key)
        if found is not None:
            return found(self, *args, **kwargs)
        name = key.replace(".", "_")
        if not overloads(name) and (key.endswith("__get__") or not _has_tensors((args, kwargs))):
            # A question about a tensor, or a function of something else.
            answer = func(*args, **kwargs)
            if not _has_tensors(answer):
                return answer
        return self(name, *args, **kwargs)

    def _op(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """An op that the program calls by its name in `torch.ops`."""
        packet = func.overloadpacket if isinstance(func, OpOverload) else func
        if packet._namespace == "higher_order":
            return self._graph_call(packet, args)
        if packet._namespace != "aten":
            overload = func if isinstance(func, OpOverload) else packet.default
            custom = packet._function
            names = custom._signature if isinstance(custom, CustomOpDef) else signature(custom)
            if names is not None and kwargs:
                bound = names.bind(*args, **kwargs)
                args, kwargs = bound.args, bound.kwargs
            return self.run(overload, args, kwargs)
        if isinstance(func, OpOverload) and func._overload in overloads(packet.__name__):
            return self.overload(packet.__name__, func._overload, *args, **kwargs)
        return self(packet.__name__, *args, **kwargs)

    def _graph_call(self, packet: OpOverloadPacket, args: tuple[Any, ...]) -> Any:
        """A call of graphs, of a program that is recorded again."""
        if packet.__name__ == "cond" and isinstance(args[0], Tensor) and self.depends(args[0]):
            return self.cond(args[0], (args[1], args[2]), args[3])
        with self:
            return packet._function(*args)

    def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Runs an op of ATen by name."""
        out, wants_grad = kwargs.pop("out", None), kwargs.pop("requires_grad", False)
        call = fit(name, args, kwargs)
        if call is None:
            kinds = [type(v).__name__ for v in (*args, *kwargs.values())]
            raise RecordingError(
                f"'{self.function}' at {caller(HOME)}: no op of ATen is called so: {name}({', '.join(kinds)}). Hint: write it with "
                "other functions, or as an op of your own (library.custom_op)"
            )
        result = self._run(call)
        if wants_grad:
            result.requires_grad_()
        return self.out(out, result)

    def overload(self, name: str, overload: str, *args: Any, **kwargs: Any) -> Any:
        """Runs an op of ATen by the name of its overload."""
        call = fit_schema(name, overloads(name)[overload], args, kwargs)
        if call is None:
            raise RecordingError(
                f"'{self.function}' at {caller(HOME)}: {name}.{overload} does not take these arguments"
            )
        return self._run(call)

    def _run(self, call: Call) -> Any:
        packet = getattr(ops.aten, call.name)
        return self.run(getattr(packet, call.schema.overload_name or "default"), call.args, call.kwargs)

    def out(self, out: Any, result: Any) -> Any:
        """Writes a result where the program wants it."""
        if out is None:
            return result
        targets, results = (out, result) if isinstance(out, (list, tuple)) else ([out], [result])
        for target, value in zip(targets, results):
            if target.shape != value.shape:
                target.resize_(value.shape)
            self.overload("copy_", "default", target, value)
        return out

    def run(self, overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Runs an op and records it."""
        given = {id(t): t for t in items((args, kwargs)) if isinstance(t, Tensor)}
        reads = {i: self.read(t) for i, t in given.items()}
        if is_autocast_enabled("cpu") or is_autocast_enabled("cuda"):
            raise RecordingError(
                f"'{self.function}' at {caller(HOME)}: blocks of autocast are not exported. Hint: cast in the model"
            )
        written = self._targets(overload, args, kwargs)
        for t in written:
            self._keep(t)
        plain = map_arguments((args, kwargs), lambda v: int(v) if type(v) is SymInt else v)
        taken = map_arguments((args, kwargs), lambda v: Ref(reads[id(v)].number) if isinstance(v, Tensor) else v)
        result = overload(*plain[0], **plain[1])
        step = Step(overload.overloadpacket.__name__, overload, taken[0], taken[1], caller(HOME))
        listed = isinstance(result, (list, tuple))
        self._append(step, listed)
        depends = step.key in RANDOM or any(v.depends for v in reads.values())
        loose = any(v.number in self.loose for v in reads.values()) or _by_elements(step.key, args, kwargs)
        for at, t in enumerate(result if listed else [result]):
            if isinstance(t, Tensor):
                self._made(step, at, t, depends)
        if loose:
            self.loose.update(step.outputs)
        return result

    def _append(self, step: Step, listed: bool) -> None:
        """Adds a step where the program is: in a branch, or in a block with another gradient mode."""
        region = self.region
        if region is None and _C.is_grad_enabled() != self.records_grad:
            last = self.info.get(id(self.trace.steps[-1])) if self.trace.steps else None
            region = last.region if last is not None else None
            if region is None or region.kind != "grad":
                region = Region("grad", _C.is_grad_enabled())
        if region is not None:
            region.steps.append(step)
        self.trace.steps.append(step)
        where = place(self.modules, self.function) if self.keeps_places else None
        self.info[id(step)] = Info(listed, where, region)

    def _made(self, step: Step, at: int, tensor: Tensor, depends: bool) -> None:
        """Adds a result of a step."""
        value = self.trace.add(tensor, "step", None, depends)
        value.step = step
        self.forms[value.number] = (tensor.stride(), tensor.device)
        step.outputs.append(value.number)
        step.places.append(at)
        self.entries[id(tensor)] = (tensor, value)

    def _targets(self, overload: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Tensor]:
        """The tensors that an op writes to."""
        schema, name = overload._schema, overload.overloadpacket.__name__
        if schema is None:
            return []
        named = [a.name for a in schema.arguments if a.writes]
        given = {**dict(zip((a.name for a in schema.arguments), args)), **kwargs}
        found = [given.get(n) for n in named] + [args[i] for i in _STATISTICS.get(name, ()) if i < len(args)]
        return [t for t in items(found) if isinstance(t, Tensor)]

    def _keep(self, tensor: Tensor) -> None:
        """Copies what lies on the memory of a tensor from outside, before it is written."""
        key = _C._storage_key(tensor)
        if key in self.outside and key not in self.saved:
            owner = self.outside[key]
            self.saved[key] = (owner, owner.detach().clone())

    # --- for lowerings

    def cond(self, pred: Tensor, functions: tuple[Any, Any], operands: Any) -> Any:
        """Both branches, of which the one that is taken in this run gives the results."""
        regions, leaves, specs = [], [], []
        for function in functions:
            region, outer = Region("cond", True), self.region
            if outer is not None:
                raise RecordingError(f"'cond' at {caller(HOME)}: a branch in a branch is not exported")
            self.region = region
            try:
                with self:
                    found, spec = _pytree.tree_flatten(function(*operands))
            finally:
                self.region = outer
            if not all(isinstance(t, Tensor) for t in found):
                raise RecordingError(f"'cond' at {caller(HOME)}: a branch returns what is no tensor")
            region.outputs = [self.read(t).number for t in found]
            regions.append(region)
            leaves.append(found)
            specs.append(spec)
        forms = [[(tuple(t.shape), t.dtype) for t in found] for found in leaves]
        if specs[0] != specs[1] or forms[0] != forms[1]:
            raise RecordingError(
                f"'cond' at {caller(HOME)}: the branches differ in what they return: {forms[0]} and {forms[1]}"
            )
        given = [t for t in _pytree.tree_leaves(operands) if isinstance(t, Tensor)]
        refs = [[Ref(n) for n in r.outputs] for r in regions]
        args = (Ref(self.read(pred).number), *refs, [Ref(self.read(t).number) for t in given])
        step = Step("cond", ops.higher_order.cond, args, {}, caller(HOME))
        self._append(step, True)
        self.info[id(step)].branches = regions
        results = []
        for at, t in enumerate(leaves[0] if bool(pred) else leaves[1]):
            results.append(t.view_as(t))
            self._made(step, at, results[-1], True)
        return _pytree.tree_unflatten(results, specs[0])

    def metadata(self, tensor: Tensor) -> None:
        """Records what a conversion takes for granted of its argument."""
        self.run(
            ops.aten._assert_tensor_metadata.default,
            (tensor,),
            {"dtype": tensor.dtype, "device": tensor.device, "layout": tensor.layout},
        )

    def number(self, tensor: Tensor) -> int:
        """The number in a tensor that does not depend on inputs."""
        if self.depends(tensor):
            raise DataDependent("__index__", caller(HOME))
        return int(tensor)

    def constant(self, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of data: a constant of the program, of which each run takes a copy."""
        key = self.function
        sizes = [v for v in items((args, kwargs)) if type(v) is SymInt]
        if key != "from_numpy" and len(args) > 0 and isinstance(args[-1], Tensor) and key in ("as_tensor", "asarray"):
            return lowering("to")(self, args[-1], **kwargs) if kwargs else args[-1]  # type: ignore[misc]
        if sizes:
            return self._of_sizes(args, kwargs)
        if any(self.depends(t) for t in items((args, kwargs)) if isinstance(t, Tensor) and not key.startswith("new")):
            raise DataDependent(key, caller(HOME))
        if key == "new_tensor":
            made = args[0].new_tensor(*args[1:], **kwargs)
        else:
            made = (_C.from_numpy if key == "from_numpy" else _C.tensor)(*args, **kwargs)
        wants = made.requires_grad
        copy = self("lift_fresh_copy", made.detach())
        if key != "as_tensor":
            copy = self("detach_", copy)
        return copy.requires_grad_() if wants else copy

    def _of_sizes(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        """A tensor of sizes, which may vary."""
        data = args[0] if not isinstance(args[0], Tensor) else args[1]
        named = {k: v for k, v in kwargs.items() if k in ("dtype", "device")}
        named.setdefault("dtype", _C.int64)
        if isinstance(data, (list, tuple)):
            return self("stack", [self("scalar_tensor", v, **named) for v in data])
        return self("scalar_tensor", data, **named)
