"""Records what a program computes as steps on values, through `__torch_function__`.

Each call of a function, method or operator on tensors is a step. Writes in place and views are made functional here: which tensors
share memory, and which were written, is seen on the tensors themselves (their storages and version counters), not
guessed from names of ops. A tensor is a view of the first tensor that was seen on its memory, by the steps
that led to it; a write to it becomes a new value of that first tensor, from which its other views are taken again.
"""

from __future__ import annotations

from typing import Any

from .. import _C
from .._base import Tensor
from .._formats import strided
from .._ops import OpOverload, OpOverloadPacket
from ._calls import HOME, CallRecorder, is_array
from ._errors import RecordingError
from ._keys import FORMS, RANDOM, WRITERS
from ._sizes import SymInt, caller
from ._trace import Ref, Step, Value, items, map_arguments

__all__ = ["Recorder"]


class _Memory:
    """A storage that tensors share: the value of the first tensor seen on it, and how often it was written."""

    def __init__(self, root: Value, outside: bool) -> None:
        self.root, self.writes, self.outside = root, 0, outside
        self.mixed = False  # another tensor from outside lies on it
        self.kept: list[Value] = []  # values whose elements are those of this memory


class _Entry:
    """What is known of a tensor: its value as of a number of writes, and the steps from the first tensor of its memory."""

    def __init__(self, tensor: Tensor, memory: _Memory, value: Value, views: tuple[tuple[Step, int, int], ...]) -> None:
        self.tensor, self.memory, self.value, self.views = tensor, memory, value, views
        self.writes = memory.writes


class Recorder(CallRecorder):
    """A recorder whose trace is without writes: what is written in place is another value."""

    def __init__(self, known: Any, sizes: bool) -> None:
        super().__init__(known, sizes)
        self.entries: dict[int, _Entry] = {}
        self.memories: dict[Any, _Memory] = {}
        # Tensors from outside that were written, with their elements before.
        self.saved: dict[int, tuple[Tensor, Tensor]] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        if isinstance(func, (OpOverload, OpOverloadPacket)) and not self.known("", func):
            packet = func.overloadpacket if isinstance(func, OpOverload) else func
            if packet._namespace in ("aten", "higher_order"):
                # Translations have the arguments of functions, which ops of ATen call.
                with self:
                    return packet._function(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs)

    def input(self, tensor: Tensor) -> None:
        """Takes a tensor as the next input."""
        value = self.trace.add(tensor, "input", depends=True)
        self.trace.inputs.append(value.number)
        self._root(tensor, value, False)

    def depends(self, tensor: Tensor | None) -> bool:
        """Whether a tensor was computed from inputs."""
        entry = self.entries.get(id(tensor))
        return entry is not None and entry.value.depends

    def restore(self) -> None:
        """Gives tensors from outside that were written the elements that they had."""
        for tensor, before in self.saved.values():
            tensor.detach().copy_(before)

    def call(self, key: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = {id(t): t for t in items((args, kwargs)) if isinstance(t, Tensor)}
        for t in given.values():
            if t.layout is not strided or t.is_nested:
                raise RecordingError(f"'{key}' at {caller(HOME)}: sparse and nested tensors have no form in ONNX")
        reads = {i: self.read(t) for i, t in given.items()}
        before = {i: (t._version, t.shape, t.stride()) for i, t in given.items()}
        self._keep_what_is_written(key, args, kwargs)
        plain = map_arguments((args, kwargs), lambda v: int(v) if type(v) is SymInt else v)
        result = func(*plain[0], **plain[1])
        if result is NotImplemented:
            return result
        taken = map_arguments((args, kwargs), lambda v: Ref(reads[id(v)].number) if isinstance(v, Tensor) else _kept(v))
        step = Step(key, func, taken[0], taken[1], caller(HOME))
        written = self._targets(result, {i: t for i, t in given.items() if t._version != before[i][0]})
        depends = key in RANDOM or any(v.depends for v in reads.values())
        self._results(step, result, given, before, written, depends)
        return result

    def _targets(self, result: Any, changed: dict[int, Tensor]) -> list[Tensor]:
        """Which tensors were written: all on one memory count the write, it was to the one that is returned or comes first."""
        returned = [t for t in items(result) if isinstance(t, Tensor) and id(t) in changed]
        found: dict[int, Tensor] = {}
        for t in [*returned, *changed.values()]:
            found.setdefault(id(self.entries[id(t)].memory), t)
        return list(found.values())

    def _results(self, step: Step, result: Any, given: Any, before: Any, written: list[Tensor], depends: bool) -> None:
        """Adds the step of a call, with a value for each tensor that is new or was written."""
        if step.key == "data.__set__":
            raise RecordingError(
                f"at {step.where}: the `.data` of a tensor is replaced, which a graph cannot show. Hint: use copy_()."
            )
        reshaped = {i for i, t in given.items() if before[i][1:] != (t.shape, t.stride())}
        rewritten = {id(w) for w in written}
        # By its position among the results; what is written and not returned (the target of an assignment) comes after them.
        made: dict[int, tuple[int, Tensor]] = {}
        results = [t for t in items(result) if isinstance(t, Tensor)]
        for place, t in enumerate([*results, *(w for w in written if not any(w is r for r in results))]):
            if id(t) not in given or id(t) in rewritten or id(t) in reshaped:
                made.setdefault(id(t), (place, t))
        if not made:
            return
        self.trace.steps.append(step)
        for i, (place, t) in made.items():
            value = self.trace.add(t, "step", None if depends else t, depends)
            value.step = step
            step.outputs.append(value.number)
            step.places.append(place)
            if i in rewritten or i in reshaped:
                self._written(t, value, i in reshaped)
            else:
                self._made(t, value, step, given)

    # --- tensors

    def _root(self, tensor: Tensor, value: Value, outside: bool) -> _Entry:
        memory = self.memories[_C._storage_key(tensor)] = _Memory(value, outside)
        if value.tensor is not None:
            memory.kept.append(value)
        entry = self.entries[id(tensor)] = _Entry(tensor, memory, value, ())
        return entry

    def _adopt(self, tensor: Tensor) -> _Entry:
        """A tensor that no step made: it was there before."""
        value = self.trace.add(tensor, "outside", tensor)
        memory = self.memories.get(_C._storage_key(tensor)) if tensor.numel() else None
        if memory is None:
            return self._root(tensor, value, True)
        memory.mixed = True
        memory.kept.append(value)
        if memory.writes or not memory.outside:
            raise RecordingError(
                f"at {caller(HOME)}: a tensor shares memory with a value of the program, and how cannot be seen"
            )
        entry = self.entries[id(tensor)] = _Entry(tensor, memory, value, ())
        return entry

    def read(self, tensor: Tensor) -> Value:
        """The value of a tensor now."""
        entry = self.entries.get(id(tensor))
        if entry is None:
            entry = self._adopt(tensor)
        if entry.writes != entry.memory.writes:
            value = entry.memory.root
            for step, base, result in entry.views:
                value = self._again(step, base, result, value, entry.memory)
            entry.value, entry.writes = value, entry.memory.writes
        return entry.value

    def _again(self, step: Step, base: int, result: int, now: Value, memory: _Memory) -> Value:
        """The result of a view that is taken again, of what its base has become."""
        change = lambda v: Ref(now.number) if isinstance(v, Ref) and v.number == base else v  # noqa: E731
        args, kwargs = map_arguments((step.args, step.kwargs), change)
        new = Step(step.key, step.function, args, kwargs, step.where)
        self.trace.steps.append(new)
        for number, place in zip(step.outputs, step.places):
            value = self.trace.add(_Like(self.trace.values[number]), "step", None, now.depends)  # type: ignore[arg-type]
            value.step = new
            new.outputs.append(value.number)
            new.places.append(place)
        if now.tensor is not None and not now.depends:
            plain = map_arguments((args, kwargs), self._plain)
            tensors = [t for t in items(step.function(*plain[0], **plain[1])) if isinstance(t, Tensor)]
            for number, place in zip(new.outputs, new.places):
                self.trace.values[number].tensor = tensors[place]
                memory.kept.append(self.trace.values[number])
        return self.trace.values[new.outputs[step.outputs.index(result)]]

    def _plain(self, argument: Any) -> Any:
        if isinstance(argument, Ref):
            return self.trace.values[argument.number].tensor
        return int(argument) if type(argument) is SymInt else argument

    def _made(self, tensor: Tensor, value: Value, step: Step, given: dict[int, Tensor]) -> None:
        """A tensor that a step has returned: on memory of its own, or a view of an argument."""
        memory = self.memories.get(_C._storage_key(tensor)) if tensor.numel() else None
        if memory is None:
            self._root(tensor, value, False)
            return
        if memory.root.step is step and not memory.writes:
            # Several results on one memory, which is nobody else's: how they overlap is not seen.
            memory.mixed = True
            self.entries[id(tensor)] = _Entry(tensor, memory, value, ())
            return
        for entry in [self.entries[i] for i in given]:
            if entry.memory is memory:
                views = (*entry.views, (step, entry.value.number, value.number))
                self.entries[id(tensor)] = _Entry(tensor, memory, value, views)
                break
        else:
            raise RecordingError(
                f"'{step.key}' at {step.where}: its result shares memory with a tensor that it was not given"
            )
        if value.tensor is not None:
            memory.kept.append(value)

    def _written(self, tensor: Tensor, value: Value, reshaped: bool) -> None:
        """A tensor that was written in place, or given another form."""
        entry = self.entries[id(tensor)]
        memory = entry.memory
        step = value.step
        assert step is not None
        if memory.kept:
            raise RecordingError(f"'{step.key}' at {step.where} writes to an argument, which is not expected of it")
        if memory.mixed:
            raise RecordingError(
                f"'{step.key}' at {step.where} writes to memory that several tensors from outside share. "
                "Hint: clone the tensor first."
            )
        if reshaped and step.key.rstrip("_") in FORMS:
            entry.views = (*entry.views, (step, entry.value.number, value.number))
            entry.value = value
            return
        memory.writes += 1
        if entry.views:
            whole = Step("@write", None, (Ref(memory.root.number), entry.views, Ref(value.number)), {}, step.where)
            root = self.trace.add(_Like(memory.root), "step", None, True)  # type: ignore[arg-type]
            root.step = whole
            whole.outputs.append(root.number)
            whole.places.append(0)
            self.trace.steps.append(whole)
            self._whole(root, memory, value)
            memory.root = root
        else:
            memory.root = value
        if value.tensor is not None:
            memory.kept.append(value)
        entry.value, entry.writes = value, memory.writes

    def _whole(self, root: Value, memory: _Memory, value: Value) -> None:
        """Keeps the elements of a memory that was written through a view, where nothing in it depends on inputs."""
        root.depends = memory.root.depends or value.depends
        if not root.depends:
            owner = next((e for e in self.entries.values() if e.memory is memory and not e.views), None)
            root.tensor = None if owner is None else owner.tensor
            if root.tensor is not None:
                memory.kept.append(root)

    def _keep_what_is_written(self, key: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Before a call that may write: copies the elements that are kept, and those of tensors from outside."""
        leaf = key.rsplit(".", 1)[-1]
        writes = leaf.endswith("_") and not leaf.endswith("__") or leaf in ("__setitem__", "__set__") or leaf in WRITERS
        inplace = kwargs.get("inplace") or (len(args) > 0 and args[-1] is True)
        out = kwargs.get("out")
        targets = list(args) if writes or inplace else []
        for t in [*targets, *items(out)]:
            entry = self.entries.get(id(t)) if isinstance(t, Tensor) else None
            if entry is None:
                continue
            for value in entry.memory.kept:
                if value.tensor is not None:
                    if value.source == "outside" and value.number not in self.saved:
                        before = value.tensor.detach().clone()
                        self.saved[value.number] = (value.tensor, before)
                        value.tensor = before
                    else:
                        value.tensor = value.tensor.detach().clone()
            entry.memory.kept.clear()


def _kept(value: Any) -> Any:
    """An argument as what another run's is compared with."""
    return ("array", str(value.dtype), value.shape, value.tobytes()) if is_array(value) else value


class _Like:
    """The form of a value, for another one."""

    def __init__(self, value: Value) -> None:
        self.shape, self.dtype = value.shape, value.dtype
