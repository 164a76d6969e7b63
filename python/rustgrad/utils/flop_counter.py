"""`FlopCounterMode`: how many floating-point operations the products of a program take, by module, backward included.

Counted are matrix products, convolutions and attention, two operations for each multiplication and addition, from the shapes
of the calls as they ran: what a fused kernel computes inside (the recurrent part of `nn.LSTM`) is not seen.
"""

from __future__ import annotations

import math
import re
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable
from types import TracebackType
from typing import Any

from .. import _C
from .._ops import OpOverloadPacket, ops
from .._typing import Self
from ._flop_formulas import (
    addmm_flop,
    baddbmm_flop,
    bmm_flop,
    conv_backward_flop,
    conv_flop,
    conv_flop_count,
    conv_weight_flop,
    flop_registry,
    get_shape,
    mm_flop,
    sdpa_backward_flop,
    sdpa_backward_flop_count,
    sdpa_flop,
    sdpa_flop_count,
    shape_wrapper,
)
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "addmm_flop", "baddbmm_flop", "bmm_flop", "conv_backward_flop", "conv_flop", "conv_flop_count",
           "flop_registry", "get_shape", "mm_flop", "register_flop_formula", "sdpa_backward_flop",
           "sdpa_backward_flop_count", "sdpa_flop", "sdpa_flop_count", "shape_wrapper"]  # fmt: skip

# A call in the log of ops: `mm(f32[2,3] cpu, f32[3,4] cpu) -> f32[2,4] cpu`.
_CALL = re.compile(r"([\w.]+)\((.*)\) -> (.*)")
_SHAPE = re.compile(r"\b[a-z]+\d+\[([\d,]*)\]")
_LIST = re.compile(r"(?<!\w)\[([\d, ]*)\]")


def _product(call):
    # The last two tensors are multiplied; `addmm` has a third before them.
    return mm_flop(*call.shapes[-2:])


def _products(call):
    return bmm_flop(*call.shapes[-2:])


def _convolution(call):
    return conv_flop_count(*call.shapes[:2], call.results[0], "True" in call.words)


def _weight_gradient(call):
    grad, x = call.shapes[:2]
    return conv_weight_flop(grad, x, call.lists[0][2:], "True" in call.words)


def _attention(call):
    query, key, value = call.shapes[:3]
    return 2 * math.prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _attention_backward(call):
    # The scores again, and the gradients of both products by both factors.
    _, query, key, value = call.shapes[:4]
    return 2 * math.prod(query[:-1]) * key[-2] * (3 * query[-1] + 2 * value[-1])


# By the names of ops here: the name in `ops.aten`, and the formula.
_FORMULAS: dict[str, tuple[str, Callable[[_Call], int]]] = {
    "mm": ("mm", _product),
    "addmm": ("addmm", _product),
    "bmm": ("bmm", _products),
    "baddbmm": ("baddbmm", _products),
    "_convolution": ("convolution", _convolution),
    "_convolution_weight_gradient": ("convolution_backward", _weight_gradient),
    "_scaled_dot_product_flash_attention_for_cpu": ("_scaled_dot_product_flash_attention_for_cpu", _attention),
    "_scaled_dot_product_flash_attention_for_cpu_backward": (
        "_scaled_dot_product_flash_attention_for_cpu_backward",
        _attention_backward,
    ),
}
# What programs registered, by name: formulas of shapes, and those of the arguments themselves.
_registered: dict[str, tuple[Any, Callable[..., int]]] = {}
_raw: dict[Any, Callable[..., int]] = {}


class _Call:
    """A line of the log, taken apart."""

    def __init__(self, arguments, results):
        self.shapes, self.results = self._shapes(arguments), self._shapes(results)
        self.lists = [[int(n) for n in found.split(",") if n.strip()] for found in _LIST.findall(arguments)]
        self.words = arguments.split(", ")

    @staticmethod
    def _shapes(text):
        return [tuple(int(n) for n in found.split(",") if n) for found in _SHAPE.findall(text)]


def _named(op):
    """The name of an op of `ops.aten` in the log."""
    return str(getattr(op, "__name__", op)).split(".")[0]


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """A decorator: `formula(*shapes, out_shape=shape)` counts the operations of an op, or of each of a list.

    With `get_raw`, `formula(*args, out_val=result, **kwargs)` is given what the op is.

    Raises:
        ValueError: a target is no op of `torch.ops` without its overload.
        RuntimeError: an op has a formula.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        of_tensors = formula if get_raw else shape_wrapper(formula)
        for op in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(op, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket, got {op}"
                )
            if op in flop_registry:
                raise RuntimeError(f"duplicate registrations for {op}")
            flop_registry[op] = of_tensors
            if get_raw:
                _raw[op] = formula
            else:
                _registered[_named(op)] = (op, formula)
        return of_tensors

    return register


class _Arguments(TorchDispatchMode):
    """Counts the ops that have a formula of their arguments, which the log does not have."""

    def __init__(self, counter: FlopCounterMode, formulas: dict[Any, Callable[..., int]]) -> None:
        super().__init__()
        self.counter, self.formulas = counter, formulas

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        op = func._overloadpacket
        if op in self.formulas:
            flops = self.formulas[op](*args, **kwargs, out_val=result)
            for parent in self.counter.parents:
                self.counter.flop_counts[parent][op] += flops
        return result


class FlopCounterMode(ModuleTracker):
    """A context that counts the floating-point operations of what runs in it, by module.

    Args:
        mods: deprecated, without effect: modules are found as they run.
        depth (int): levels of modules in the table.
        display (bool): print the table at the end.
        custom_mapping (dict): formulas by op, as for `register_flop_formula`.

    Each time it is entered it counts from zero.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Callable[..., int]] | None = None,
    ) -> None:
        super().__init__()
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display, self._running = depth, display, False
        self.flop_counts: dict[str, dict[Any, int]] = {}
        given = (custom_mapping or {}).items()
        self._custom = {_named(op): (op, f) for op, f in given if not getattr(f, "_get_raw", False)}
        self._custom_raw = {op: f for op, f in given if getattr(f, "_get_raw", False)}
        self._arguments: _Arguments | None = None

    def _count(self):
        """Adds the calls since the last time to the modules that were running."""
        for line in _C._stop_op_log():
            match = _CALL.match(line)
            if match is None:
                continue
            name, call = match[1].split(".")[0], _Call(match[2], match[3])
            if self._arguments and any(_named(op) == name for op in self._arguments.formulas):
                continue
            if name in self._custom or name in _registered:
                op, formula = self._custom.get(name) or _registered[name]
                flops = formula(*call.shapes, out_shape=call.results[0] if call.results else ())
            elif name in _FORMULAS:
                aten, counted = _FORMULAS[name]
                op, flops = getattr(ops.aten, aten), counted(call)
            else:
                continue
            for parent in self.parents:
                self.flop_counts[parent][op] += flops

    def _count_so_far(self):
        if self._running:
            self._count()
            _C._start_op_log()

    def _enters(self, name):
        self._count_so_far()
        super()._enters(name)

    def _leaves(self, name):
        self._count_so_far()
        super()._leaves(name)

    def __enter__(self) -> Self:
        self.flop_counts = defaultdict(Counter)
        self._running = True
        formulas = {**_raw, **self._custom_raw}
        self._arguments = _Arguments(self, formulas).__enter__() if formulas else None
        _C._start_op_log()
        return super().__enter__()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        super().__exit__(exc_type, exc_value, traceback)
        self._count()
        if self._arguments:
            self._arguments.__exit__(exc_type, exc_value, traceback)
        self._running = False
        self.parents = {"Global"}
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """All operations, until now where it is asked inside the block."""
        self._count_so_far()
        return sum(self.flop_counts["Global"].values()) if self.flop_counts else 0

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The operations by module, whose name is that from the outermost module, and by op of `ops.aten`."""
        self._count_so_far()
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of the modules down to a depth: their operations and what part of all that is."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        rows = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda n: (n != "Global", n)):
            level = 0 if name == "Global" else name.count(".") + 1
            counts = self.flop_counts[name]
            if level > depth or not counts:
                continue
            rows.append((" " * level + name, *_shown(sum(counts.values()), total)))
            rows += [(" " * level + f" - {op}", *_shown(flops, total)) for op, flops in counts.items()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        lines.insert(1, "  ".join("-" * n for n in widths))
        return "\n".join(lines)


def _shown(flops, total):
    scale = next((i for i, name in enumerate(" KMBT") if flops < 1000 ** (i + 1)), 4)
    number = str(flops) if scale == 0 else f"{flops / 1000**scale:.3f}{' KMBT'[scale]}"
    return number, f"{100 * flops / total if total else 0:.2f}%"


def __dir__() -> list[str]:
    return __all__
