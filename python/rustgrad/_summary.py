"""`summary`: the layers of a module with the shapes of their outputs and the numbers of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from . import _C
from ._C import Tensor
from ._typing import DeviceLike

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .nn.modules.module import Module

__all__ = ["Summary", "summary"]


class _Row(NamedTuple):
    name: str
    kind: str
    depth: int
    shape: str
    parameters: int | None


class Summary:
    """What `summary` found: prints as a table.

    Its `total_params`, `trainable_params` count each parameter once; `rows` has name, class, depth, shape and number of a layer.
    """

    def __init__(self, rows: list[_Row], total_params: int, trainable_params: int) -> None:
        self.rows, self.total_params, self.trainable_params = rows, total_params, trainable_params

    def __repr__(self) -> str:
        lines = [("Layer", "Output shape", "Parameters")]
        for row in self.rows:
            label = "  " * row.depth + row.kind + (f" ({row.name})" if row.name else "")
            lines.append((label, row.shape, "shared" if row.parameters is None else f"{row.parameters:,}"))
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        texts = [f"{a:<{widths[0]}}  {b:<{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines]
        rule = "-" * len(texts[0])
        fixed = self.total_params - self.trainable_params
        return "\n".join(
            [
                texts[0],
                rule,
                *texts[1:],
                rule,
                f"Parameters: {self.total_params:,} ({self.trainable_params:,} trainable, {fixed:,} fixed)",
            ]
        )


def _shape(value):
    if isinstance(value, Tensor):
        return str(list(value.shape))
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return ", ".join(filter(None, map(_shape, value)))
    return ""


def _inputs(input_size, dtypes, device):
    """Zeros of one shape, or of several."""
    several = input_size and not hasattr(input_size[0], "__index__")
    shapes = [tuple(s) for s in input_size] if several else [tuple(input_size)]
    dtypes = list(dtypes) if isinstance(dtypes, (tuple, list)) else [dtypes] * len(shapes)
    if len(dtypes) != len(shapes):
        raise ValueError(f"summary: expected as many dtypes as shapes, {len(shapes)}, got {len(dtypes)}")
    return [_C.ops["zeros"](list(s), dtype=d, device=device) for s, d in zip(shapes, dtypes, strict=True)]


def summary(
    model: Module,
    input_size: Sequence[Any] | None = None,
    *,
    input_data: Any = None,
    dtypes: Any = None,
    device: DeviceLike | None = None,
    depth: int | None = None,
) -> Summary:
    """The layers of a module in the order of their calls, with the shapes of their outputs and their own parameters.

    Runs the module once without gradients, in eval mode, and restores the mode of each layer.

    Args:
        input_size (sequence): the shape of the input, the batch included, or a list of shapes.
        input_data: the input itself instead, or a tuple of inputs.
        dtypes (dtype or list): of the inputs that `input_size` describes; by default that of the first parameter.
        device (device): of these inputs; by default that of the first parameter.
        depth (int): levels of the tree to show; None for all.

    Raises:
        ValueError: neither or both of `input_size` and `input_data`.
    """
    if (input_size is None) == (input_data is None):
        raise ValueError("summary: expected one of input_size and input_data")
    first = next(iter(model.parameters()), None)
    if input_data is None:
        dtypes = dtypes or (None if first is None else first.dtype)
        device = device or ("cpu" if first is None else first.device)
        inputs = _inputs(list(input_size or ()), dtypes, device)
    else:
        inputs = list(input_data) if isinstance(input_data, (tuple, list)) else [input_data]
    rows = _run(model, inputs)
    kept = [row for row in rows if depth is None or row.depth <= depth]
    parameters = list(model.parameters())
    total = sum(p.numel() for p in parameters)
    return Summary(kept, total, sum(p.numel() for p in parameters if p.requires_grad))


def _run(model, inputs):
    """A row for each call of a module, in the order in which the calls begin."""
    from .autograd.grad_mode import no_grad

    rows, open_rows, counted, handles = [], [], set(), []
    names = {module: name for name, module in model.named_modules()}

    def begin(module, args):
        open_rows.append(len(rows))
        own = [p for p in module.parameters(recurse=False) if id(p) not in counted]
        repeated = not own and any(True for _ in module.parameters(recurse=False))
        counted.update(map(id, own))
        count = None if repeated else sum(p.numel() for p in own)
        rows.append(_Row(names[module].rsplit(".", 1)[-1], type(module).__name__, len(open_rows) - 1, "", count))

    def end(module, args, output):
        at = open_rows.pop()
        rows[at] = rows[at]._replace(shape=_shape(output))

    modes = [(module, module.training) for module in names]
    try:
        for module in names:
            handles += [module.register_forward_pre_hook(begin), module.register_forward_hook(end)]
        model.eval()
        with no_grad():
            model(*inputs)
    finally:
        for handle in handles:
            handle.remove()
        for module, mode in modes:
            module.training = mode
    return rows
