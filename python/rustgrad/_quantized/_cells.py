"""Recurrent layers with quantised weights: the products of cells are those of `linear_dynamic`, the rest is float32."""

from __future__ import annotations

from typing import Any

from .._C import Tensor, ops
from ..nn import functional
from ._script_object import CLASSES, ScriptObject
from ._tensor import shown

OPS: dict[str, Any] = {}
_KINDS = {"quantized_dynamic": True, "quantized_fp16": False}


class CellParams:
    """The packed weights of a cell.

    Args:
        kind (str): "quantized_dynamic" or "quantized_fp16".
        packed_ih, packed_hh: of the input and the hidden state.
        bias_ih, bias_hh (Tensor): kept with them.
        reduce_range (bool): inputs are quantised to seven bits.
    """

    qualified = "rnn.CellParamsBase"

    def __init__(
        self, kind: str, packed_ih: Any, packed_hh: Any, bias_ih: Any, bias_hh: Any, reduce_range: bool
    ) -> None:
        self.kind, self.reduce_range = kind, bool(reduce_range)
        self.packed_ih, self.packed_hh, self.bias_ih, self.bias_hh = packed_ih, packed_hh, bias_ih, bias_hh

    def parts(self) -> Any:
        """The state of a pickle."""
        numbers = [int(self.reduce_range)] if _KINDS[self.kind] else []
        return self.kind, [self.bias_ih, self.bias_hh], [], numbers, [self.packed_ih, self.packed_hh]

    def linear_ih(self, x: Tensor) -> Tensor:
        """The product with an input."""
        return self.packed_ih.apply_dynamic(x, self.reduce_range)

    def linear_hh(self, h: Tensor) -> Tensor:
        """The product with a hidden state."""
        return self.packed_hh.apply_dynamic(h, self.reduce_range)


def _cell_of(parts):
    kind, biases, _, numbers, packed = parts
    if kind not in _KINDS:
        raise RuntimeError(f"CellParamsBase: expected cells that are {' or '.join(_KINDS)}, got {kind!r}")
    return CellParams(kind, *packed, *biases, bool(numbers and numbers[0]))


CLASSES[CellParams.qualified] = _cell_of


def op(function):
    """Puts a function among the ops of the namespace, under its own name."""
    OPS[function.__name__] = function
    return function


@op
def make_quantized_cell_params_dynamic(w_ih, w_hh, bias_ih, bias_hh, reduce_range=False):
    """The packed weights of a cell of `qint8`."""
    return ScriptObject(CellParams("quantized_dynamic", w_ih, w_hh, bias_ih, bias_hh, reduce_range))


@op
def make_quantized_cell_params_fp16(w_ih, w_hh):
    """The packed weights of a cell of `float16`."""
    return ScriptObject(CellParams("quantized_fp16", w_ih, w_hh, w_ih.unpack()[1], w_hh.unpack()[1], False))


# --- cells ---------------------------------------------------------------------------------------------------------
def _lstm(params, from_input, state):
    h, c = state
    i, f, g, o = (params.linear_hh(h) + from_input).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return h, c


def _gru(params, from_input, state):
    (h,) = state
    of_input, of_hidden = from_input.chunk(3, -1), params.linear_hh(h).chunk(3, -1)
    reset = (of_hidden[0] + of_input[0]).sigmoid()
    update = (of_hidden[1] + of_input[1]).sigmoid()
    new = (of_input[2] + reset * of_hidden[2]).tanh()
    return ((h - new) * update + new,)


def _plain(name):
    def cell(params: Any, from_input: Tensor, state: Any) -> Any:
        return (ops[name](params.linear_hh(state[0]) + from_input),)

    return cell


_CELLS = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _plain("tanh"), "RNN_RELU": _plain("relu")}


def _cell_op(kind):
    def function(input: Tensor, hx: Any, w_ih: Any, w_hh: Any, b_ih: Tensor, b_hh: Tensor) -> Any:
        params = make_quantized_cell_params_dynamic(w_ih, w_hh, b_ih, b_hh, True)
        state = tuple(hx) if kind == "LSTM" else (hx,)
        made = _CELLS[kind](params, params.linear_ih(input), state)
        return made if kind == "LSTM" else made[0]

    return function


OPS["quantized_lstm_cell_dynamic"], OPS["quantized_gru_cell_dynamic"] = _cell_op("LSTM"), _cell_op("GRU")
OPS["quantized_rnn_tanh_cell_dynamic"], OPS["quantized_rnn_relu_cell_dynamic"] = (
    _cell_op("RNN_TANH"),
    _cell_op("RNN_RELU"),
)


# --- layers --------------------------------------------------------------------------------------------------------
def _steps(cell, params, x, state, backwards):
    """One layer in one direction over (time, batch, features)."""
    from_input, made = params.linear_ih(x), []
    times = range(x.shape[0])
    for t in reversed(times) if backwards else times:
        state = cell(params, from_input[t], state)
        made.append(state[0])
    return ops["stack"](made[::-1] if backwards else made), state


def _packed_steps(cell, params, x, sizes, state, backwards):
    """One layer in one direction over packed sequences: at each step the first of them, by `sizes`."""
    from_input, starts, total = params.linear_ih(x), [], 0
    for size in sizes:
        starts.append(total)
        total += size
    made: list[Any] = [None] * len(sizes)
    ended = []
    state = tuple(s[: sizes[0]] for s in state) if not backwards else state
    current = tuple(s[: sizes[-1]] for s in state) if backwards else state
    for t in reversed(range(len(sizes))) if backwards else range(len(sizes)):
        size, have = sizes[t], current[0].shape[0]
        if size > have:
            current = tuple(ops["cat"]([c, s[have:size]]) for c, s in zip(current, state, strict=True))
        elif size < have:
            ended.append(tuple(c[size:] for c in current))
            current = tuple(c[:size] for c in current)
        current = cell(params, from_input[starts[t] : starts[t] + size], current)
        made[t] = current[0]
    if ended:
        current = tuple(ops["cat"]([c, *parts]) for c, *parts in zip(current, *reversed(ended), strict=True))
    return ops["cat"](made), current


def run(kind, x, states, params, dropout, training, bidirectional, sizes=None):
    """All layers of a recurrent network.

    Args:
        x (Tensor): (time, batch, features), or the data of packed sequences with their `sizes`.
        states (tuple of Tensor): each (layers * directions, batch, features).
        params (list): `CellParams`, for each layer and direction.

    Returns:
        The results and the last states.
    """
    directions, cell, ends = 2 if bidirectional else 1, _CELLS[kind], []
    layers = len(params) // directions
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            at = layer * directions + direction
            state = tuple(s[at] for s in states)
            if sizes is None:
                made, last = _steps(cell, params[at], x, state, direction == 1)
            else:
                made, last = _packed_steps(cell, params[at], x, sizes, state, direction == 1)
            outputs.append(made)
            ends.append(last)
        x = outputs[0] if directions == 1 else ops["cat"](outputs, -1)
        if dropout and training and layer < layers - 1:
            x = functional.dropout(x, dropout)
    return x, tuple(ops["stack"](list(column)) for column in zip(*ends, strict=True))


def _network(kind, input, args, kwargs):
    names = ("hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
    packed = bool(args) and isinstance(args[0], Tensor) and not args[0].dtype.is_floating_point
    sizes, args = (args[0], args[1:]) if packed else (None, args)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    states = tuple(given["hx"]) if kind == "LSTM" else (given["hx"],)
    first = bool(given.get("batch_first")) and sizes is None
    made, last = run(
        kind, input.transpose(0, 1) if first else input, states, list(given["params"]), given.get("dropout", 0.0),
        given.get("train", False), given.get("bidirectional", False), None if sizes is None else sizes.tolist(),
    )  # fmt: skip
    return (made.transpose(0, 1) if first else made, *last)


@shown
def quantized_lstm(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """An LSTM of cells of `make_quantized_cell_params_dynamic`: results and last states, as `nn.quantized.dynamic.LSTM`.

    Args:
        input (Tensor): (time, batch, features), or the data of packed sequences.
        batch_sizes (Tensor): of packed sequences alone.
        hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first: as the layer has them.
    """
    return _network("LSTM", input, args, kwargs)


@shown
def quantized_gru(input: Tensor, *args: Any, **kwargs: Any) -> Any:
    """A GRU of cells of `make_quantized_cell_params_dynamic`: results and the last state. The arguments are those of `quantized_lstm`."""
    return _network("GRU", input, args, kwargs)
