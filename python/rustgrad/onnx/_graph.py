"""The ONNX graph while it is built: values with their dtypes and shapes, nodes, initializers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from .. import _C
from .._base import Tensor, dtype, ops
from .._recording._sizes import SymInt, key_of, leaves
from .errors import OnnxExporterError, UnsupportedOperatorError

__all__ = ["Graph", "TYPES", "Val", "op", "table"]

# The number of each dtype in ONNX.
TYPES: dict[dtype, int] = {
    _C.float32: 1, _C.uint8: 2, _C.int8: 3, _C.uint16: 4, _C.int16: 5, _C.int32: 6, _C.int64: 7, _C.bool: 9, _C.float16: 10,
    _C.float64: 11, _C.uint32: 12, _C.uint64: 13, _C.complex64: 14, _C.complex128: 15, _C.bfloat16: 16, _C.float8_e4m3fn: 17, _C.float8_e4m3fnuz: 18, _C.float8_e5m2: 19,
    _C.float8_e5m2fnuz: 20, _C.float8_e8m0fnu: 24,
}  # fmt: skip
HALVES = (_C.float16, _C.bfloat16)
SMALL = (_C.uint8, _C.int8, _C.int16, _C.uint16)
WHOLE = (*SMALL, _C.int32, _C.int64, _C.uint32, _C.uint64)
_MOST = (1 << 63) - 1

table: dict[str, Callable[..., Any]] = {}


F = TypeVar("F", bound=Callable[..., Any])


def op(*names: str) -> Callable[[F], F]:
    """A decorator: the function translates the ops of these names.

    It takes the graph and the arguments of the call, tensors as `Val`, and returns a `Val` for each result.
    """

    def declare(function: F) -> F:
        for name in names:
            table[name] = function
        return function

    return declare


class Val:
    """A value of the graph.

    Attributes:
        name (str): its name in the graph.
        shape (list): its sizes, a `SymInt` where one varies; None where only the rank is known, or nothing.
        tensor (Tensor, optional): its elements, if they are constant.
    """

    __slots__ = ("dtype", "name", "number", "shape", "tensor")

    def __init__(self, name: str, kind: dtype, shape: list[Any] | None, tensor: Tensor | None = None) -> None:
        self.name, self.dtype, self.shape, self.tensor = name, kind, shape, tensor
        self.number = -1  # of the recorded value, where it is one

    @property
    def ndim(self) -> int:
        """The rank. OnnxExporterError where it is not known."""
        if self.shape is None:
            raise OnnxExporterError(f"onnx.export: the rank of '{self.name}' is not known")
        return len(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether the elements are floats."""
        return self.dtype.is_floating_point


class Graph:
    """Builds nodes. `outs` are the results that the translation of the current op has to give, as values without names."""

    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.nodes: list[tuple[str, list[str], list[str], dict[str, Any], str, str]] = []
        self.initializers: dict[str, Tensor] = {}
        self.outs: list[Val] = []
        self.key, self.where = "", ""
        self.names: dict[str, int] = {}
        self.taken: set[str] = set()
        self.constants: dict[Any, Val] = {}
        # Gives the value in the graph of a recorded value.
        self.resolve: Callable[[int], Val] = lambda number: Val("", _C.float32, None)
        # What a size is in each of the recorded runs.
        self.in_runs: Callable[[Any], list[int]] = lambda n: [int(n)]

    # --- values

    @property
    def out(self) -> Val:
        """The first result that is wanted."""
        return self.outs[0]

    def fresh(self, base: str) -> str:
        """A name that is not taken: the base, or the base with a number."""
        name, count = base, self.names.get(base, 0)
        while name in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.names[base] = count
        self.taken.add(name)
        return name

    def several(self, kind: str, inputs: Sequence[Val | None], dtypes: Sequence[dtype], **attributes: Any) -> list[Val]:
        """A node with a result for each of the dtypes, of shapes that are not known.

        Attributes that are None are left out; `domain` is that of a custom op, and a name may end in "_".
        """
        names = ["" if v is None else v.name for v in inputs]
        while names and not names[-1]:
            names.pop()
        domain = attributes.pop("domain", "")
        base = self.key.strip("_@").replace(".", "_") or kind
        outputs = [self.fresh(base if i == 0 else f"{base}_{i}") for i in range(len(dtypes))]
        given = {k.rstrip("_"): v for k, v in attributes.items() if v is not None}
        self.nodes.append((kind, names, outputs, given, domain, self.where))
        return [Val(name, kind, None) for name, kind in zip(outputs, dtypes)]

    def op(
        self, kind: str, inputs: Sequence[Val | None], dtype: Any = None, shape: Any = None, **attributes: Any
    ) -> Val:
        """A node with one result. Its dtype is that of the first input unless given, its shape not known unless given."""
        first = next((v.dtype for v in inputs if v is not None), _C.float32)
        (made,) = self.several(kind, inputs, [dtype or first], **attributes)
        made.shape = None if shape is None else list(shape)
        return made

    def same(self, kind: str, x: Val, *others: Val | None, **attributes: Any) -> Val:
        """A node whose result has the dtype and shape of its first input."""
        result = self.op(kind, [x, *others], x.dtype, x.shape, **attributes)
        return result

    def constant(self, tensor: Tensor, name: str = "constant") -> Val:
        """An initializer."""
        name = self.fresh(name)
        self.initializers[name] = tensor
        return Val(name, tensor.dtype, list(tensor.shape), tensor)

    def number(self, value: Any, kind: dtype, dims: int = 0) -> Val:
        """A constant of one element, with `dims` dimensions; of a size that varies, a value that is computed."""
        if isinstance(value, SymInt):
            v = self.cast(self.size(value), kind)
            return v if dims == 0 else self.reshape(v, [1] * dims)
        key = (repr(value), kind, dims)
        if key not in self.constants:
            tensor = ops["full"]([1] * dims, value, dtype=kind, device="cpu")
            self.constants[key] = self.constant(tensor, "number")
        return self.constants[key]

    def ints(self, values: Sequence[Any]) -> Val:
        """A list of ints as a tensor of int64, computed where some vary or are values."""
        if not any(isinstance(v, (SymInt, Val)) for v in values):
            key = ("ints", *(int(v) for v in values))
            if key not in self.constants:
                tensor = _C.tensor([max(-_MOST, min(int(v), _MOST)) for v in values], dtype=_C.int64)
                self.constants[key] = self.constant(tensor, "ints")
            return self.constants[key]
        parts, run = [], []
        for v in [*values, None]:
            if isinstance(v, int) and not isinstance(v, SymInt):
                run.append(int(v))
                continue
            if run:
                parts.append(self.ints(run))
                run = []
            if v is not None:
                parts.append(self.reshape(self.cast(v, _C.int64), [1]) if isinstance(v, Val) else self.size(v, 1))
        result: Val = parts[0] if len(parts) == 1 else self.op("Concat", parts, shape=[len(values)], axis=0)
        return result

    def size(self, n: Any, dims: int = 0) -> Val:
        """A size as a value of int64, with 0 or 1 dimensions."""
        if not isinstance(n, SymInt):
            return self.ints([n]) if dims else self.number(int(n), _C.int64)
        key = ("size", key_of(n))
        if key not in self.constants:
            sign, left, right = n.expr
            if sign == "dim":
                shape = self.shape(self.resolve(left))
                self.constants[key] = self.op("Gather", [shape, self.ints([right])], shape=[1], axis=0)
            else:
                a, b = self.size(left, 1), self.size(right, 1)
                self.constants[key] = self._sized(sign, a, b)
        v = self.constants[key]
        return v if dims else self.op("Squeeze", [v, self.ints([0])], shape=[])

    def _sized(self, sign: str, a: Val, b: Val) -> Val:
        kinds = {"+": "Add", "-": "Sub", "*": "Mul", "%": "Mod"}
        if sign != "//":
            result = self.op(kinds[sign], [a, b], shape=[1])
            return result
        # Div rounds to zero, Python down.
        rest = self.op("Mod", [a, b], shape=[1])
        result = self.op("Div", [self.op("Sub", [a, rest]), b], shape=[1])
        return result

    def shape(self, v: Val) -> Val:
        """The shape of a value, as a value."""
        key = ("shape", v.name)
        if key not in self.constants:
            self.constants[key] = self.op("Shape", [v], _C.int64, None if v.shape is None else [v.ndim])
        return self.constants[key]

    # --- what many translations need

    def cast(self, v: Val, kind: dtype) -> Val:
        """The value as another dtype."""
        if v.dtype == kind:
            return v
        if kind not in TYPES:
            self.unsupported(f"the dtype {kind}")
        if v.tensor is not None and v.tensor.numel() <= 16:
            return self.constant(v.tensor.detach().to(kind), "constant")
        result = self.op("Cast", [v], kind, v.shape, to=TYPES[kind])
        return result

    def reshape(self, v: Val, shape: Sequence[Any]) -> Val:
        """The value in another shape, which may have one -1 or sizes that vary."""
        shape = list(shape)
        varies = [i for i, n in enumerate(shape) if isinstance(n, SymInt)]
        target = list(shape)
        if len(varies) == 1 and all(type(n) is int and n > 0 for i, n in enumerate(shape) if i != varies[0]):
            target[varies[0]] = -1
        zero = any(type(n) is int and n == 0 for n in target)
        result = self.op(
            "Reshape", [v, self.ints(target)], v.dtype, shape, allowzero=1 if zero and self.opset >= 14 else None
        )
        return result

    def transpose(self, v: Val, order: Sequence[int]) -> Val:
        """The value with its dimensions in another order."""
        if list(order) == list(range(len(order))):
            return v
        shape = None if v.shape is None else [v.shape[i] for i in order]
        result = self.op("Transpose", [v], v.dtype, shape, perm=list(order))
        return result

    def slice(self, v: Val, axis: int, start: Any, stop: Any, step: Any = 1) -> Val:
        """A range along one dimension. Its size is not known."""
        result = self.op("Slice", [v, *(self.ints([n]) for n in (start, stop, axis, step))], v.dtype)
        return result

    def squeeze(self, v: Val, axes: Sequence[int]) -> Val:
        """The value without dimensions of size 1."""
        shape = None if v.shape is None else [n for i, n in enumerate(v.shape) if i not in axes]
        result = self.op("Squeeze", [v, self.ints(axes)], v.dtype, shape) if axes else v
        return result

    def unsqueeze(self, v: Val, axes: Sequence[int]) -> Val:
        """The value with further dimensions of size 1."""
        if not axes:
            return v
        shape = None
        if v.shape is not None:
            shape = list(v.shape)
            for axis in sorted(axes):
                shape.insert(axis, 1)
        result = self.op("Unsqueeze", [v, self.ints(axes)], v.dtype, shape)
        return result

    def expand(self, v: Val, shape: Sequence[Any]) -> Val:
        """The value broadcast to a shape."""
        if v.shape is not None and len(v.shape) == len(shape) and all(_same(a, b) for a, b in zip(v.shape, shape)):
            return v
        result = self.op("Expand", [v, self.ints(shape)], v.dtype, shape)
        return result

    def reduce(self, kind: str, v: Val, dims: Sequence[int] | None, keepdim: bool) -> Val:
        """A reduction along dimensions; all of them for None."""
        if dims is not None and not dims:
            return v
        as_input = self.opset >= (13 if kind == "ReduceSum" else 18)
        axes = None if dims is None else [int(d) for d in dims]
        keep = int(keepdim)
        if as_input:
            r = self.op(kind, [v, None if axes is None else self.ints(axes)], keepdims=keep)
        else:
            r = self.op(kind, [v], keepdims=keep, axes=axes)
        if v.shape is not None:
            gone = range(v.ndim) if axes is None else axes
            r.shape = [1 if i in gone else n for i, n in enumerate(v.shape) if keepdim or i not in gone]
        return r

    def is_late(self, n: Any) -> bool:
        """Whether a size is one of the results of the current op, which is not there yet."""
        own = {out.number for out in self.outs}
        return any(number in own for number, _ in leaves(n))

    def alike(self, n: Any, sizes: Sequence[Any]) -> Any:
        """The size among these that is the same in all runs; `n` itself where there is none."""
        return next((m for m in sizes if not self.is_late(m) and self.in_runs(m) == self.in_runs(n)), n)

    def call(self, name: str, *args: Any, **kwargs: Any) -> Val:
        """The translation of another op, which has one result, in the place of this one."""
        result: Val = table[name](self, *args, **kwargs)
        return result

    def static(self, value: Any, what: str) -> Any:
        """A number, or a list of them, that must not vary."""
        for n in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(n, SymInt):
                self.unsupported(f"{what} that depends on a varying size")
        return value

    def require(self, opset: int) -> None:
        """OnnxExporterError unless the opset is this one or later."""
        if self.opset < opset:
            raise UnsupportedOperatorError(self.key, self.opset, opset, f" at {self.where}")

    def unsupported(self, what: str) -> None:
        """OnnxExporterError: the op with `what` has no translation."""
        raise OnnxExporterError(
            f"onnx.export: '{self.key}' at {self.where}: {what} has no translation to ONNX opset {self.opset}"
        )


def _same(a: Any, b: Any) -> bool:
    return bool(key_of(a) == key_of(b))


def axis_of(dim: int, ndim: int) -> int:
    """A dimension counted from the first one."""
    return dim % max(ndim, 1) if dim < 0 else dim


def dims_of(dim: Any, ndim: int) -> list[int]:
    """A dimension, or several, counted from the first one."""
    return [axis_of(d, ndim) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def product(sizes: Sequence[Any]) -> Any:
    """The product of sizes, which may vary."""
    total: Any = math.prod(n for n in sizes if type(n) is int)
    for n in sizes:
        if isinstance(n, SymInt):
            total = n if type(total) is int and total == 1 else total * n
    return total
