"""Recurrent layers and cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import _C
from .._graph import Graph, Val, op
from .attention import linear

# The order of the gates in ONNX, by their places in PyTorch's weights.
_GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}


def _joined(g: Graph, parts: list[Val], axis: int, name: str) -> Val:
    if all(p.tensor is not None for p in parts):
        return g.constant(_C.ops["cat"]([p.tensor.detach() for p in parts if p.tensor is not None], axis), name)
    parts = [p if p.tensor is None else g.constant(p.tensor, name) for p in parts]
    return g.op("Concat", parts, parts[0].dtype, axis=axis) if len(parts) > 1 else parts[0]


def _ordered(g: Graph, w: Val, kind: str) -> Val:
    """The weights of gates in the order of ONNX, with the dimension of directions before them."""
    gates = _GATES[kind]
    if w.tensor is not None:
        parts = w.tensor.detach().chunk(len(gates), 0)
        # It has no name in the graph until it is joined with others.
        return Val("", w.dtype, None, _C.ops["cat"]([parts[i] for i in gates], 0).unsqueeze(0))
    size = (w.shape or [])[0] // len(gates)
    split = (
        g.several("Split", [w, g.ints([size] * len(gates))], [w.dtype] * len(gates), axis=0) if len(gates) > 1 else [w]
    )
    order = g.op("Concat", [split[i] for i in gates], w.dtype, w.shape, axis=0) if len(gates) > 1 else w
    return g.unsqueeze(order, [0])


def _layer(
    g: Graph, kind: str, x: Val, params: Sequence[Val], biases: bool, states: list[Val], **options: Any
) -> list[Val]:
    """One layer of one or two directions: the output with directions joined, and the last states."""
    per = 4 if biases else 2
    directions = len(params) // per
    stacked = []
    for place in range(2):
        every = [_ordered(g, params[d * per + place], kind) for d in range(directions)]
        stacked.append(_joined(g, every, 0, f"{params[place].name}.onnx"))
    bias = None
    if biases:
        every = []
        for d in range(directions):
            pair = [_ordered(g, params[d * per + place], kind) for place in (2, 3)]
            joined = _joined(g, pair, 1, f"{params[d * per + 2].name}.onnx")
            every.append(joined)
        bias = every[0] if directions == 1 else _joined(g, every, 0, f"{params[2].name}.onnx")
    hidden = (params[1].shape or [])[1]
    direction = "bidirectional" if directions == 2 else "forward"
    inputs = [x, *stacked, bias, None, *states]
    results = g.several(
        kind, inputs, [x.dtype] * (2 + (kind == "LSTM")), hidden_size=hidden, direction=direction, **options
    )
    turned = g.op("Transpose", [results[0]], x.dtype, perm=[0, 2, 1, 3])
    output = g.op("Reshape", [turned, g.ints([0, 0, -1])], x.dtype, [*(x.shape or [])[:2], hidden * directions])
    return [output, *results[1:]]


def _network(g: Graph, kind: str, x: Val, hx: list[Val], params: Sequence[Val], biases: bool, layers: int, train: Any, both: bool,
    first: bool, **options: Any) -> list[Val]:  # fmt: skip
    directions = 2 if both else 1
    per = len(params) // (layers * directions)
    if per != (4 if biases else 2):
        g.unsupported("a projection (proj_size)")
    if x.ndim == 2:
        x, hx = g.unsqueeze(x, [1]), [g.unsqueeze(h, [1]) for h in hx]
        first = False
        back = lambda v: g.squeeze(v, [1])  # noqa: E731
    else:
        x = g.transpose(x, [1, 0, 2]) if first else x
        back = lambda v: v  # noqa: E731
    states: list[list[Val]] = [[] for _ in hx]
    for layer in range(layers):
        at, end = layer * directions, (layer + 1) * directions
        now = [g.slice(h, 0, at, end) if layers > 1 else h for h in hx]
        x, *last = _layer(g, kind, x, params[at * per : end * per], biases, now, **options)
        for kept, state in zip(states, last):
            kept.append(state)
    x = g.transpose(x, [1, 0, 2]) if first else x
    return [back(x), *(back(_stack(g, kept)) for kept in states)]


def _stack(g: Graph, states: list[Val]) -> Val:
    return g.op("Concat", states, states[0].dtype, [-1] * 3, axis=0) if len(states) > 1 else states[0]


def _check(g: Graph, hx: Any, dropout: float, train: bool) -> None:
    if not isinstance(hx, (list, tuple, Val)) or (dropout and train):
        g.unsupported("dropout between layers while training")


@op("lstm")
def lstm(g: Graph, input: Val, hx: Any, params: Any, *args: Any) -> list[Val]:
    if isinstance(params, Val) or isinstance(hx, Val):
        g.unsupported("a packed sequence")
    biases, layers, dropout, train, both, first = args
    _check(g, hx, dropout, train)
    return _network(g, "LSTM", input, list(hx), params, biases, layers, train, both, first)


@op("gru", "rnn_tanh", "rnn_relu")
def gru(g: Graph, input: Val, hx: Any, params: Any, *args: Any) -> list[Val]:
    if isinstance(params, Val) or isinstance(hx, (list, tuple)):
        g.unsupported("a packed sequence")
    biases, layers, dropout, train, both, first = args
    _check(g, hx, dropout, train)
    if g.key == "gru":
        return _network(g, "GRU", input, [hx], params, biases, layers, train, both, first, linear_before_reset=1)
    kinds = ["Tanh" if g.key == "rnn_tanh" else "Relu"] * (2 if both else 1)
    return _network(g, "RNN", input, [hx], params, biases, layers, train, both, first, activations=kinds)


def _gates(g: Graph, x: Val, h: Val, w_ih: Val, w_hh: Val, b_ih: Any, b_hh: Any, n: int) -> tuple[list[Val], list[Val]]:
    """What the input and the state give to each of the gates."""
    wanted = g.outs
    size = (w_hh.shape or [])[1]
    rows = [*(x.shape or [])[:-1], size * n]
    g.outs = [Val("", x.dtype, rows)]
    both = [linear(g, x, w_ih, b_ih), linear(g, h, w_hh, b_hh)]
    g.outs = wanted
    parts = []
    for v in both:
        split = g.several("Split", [v, g.ints([size] * n)], [v.dtype] * n, axis=x.ndim - 1) if n > 1 else [v]
        for s in split:
            s.shape = [*rows[:-1], size]
        parts.append(split)
    return parts[0], parts[1]


def _plus(g: Graph, a: Val, b: Val) -> Val:
    return g.op("Add", [a, b], a.dtype, a.shape)


def _times(g: Graph, a: Val, b: Val) -> Val:
    return g.op("Mul", [a, b], a.dtype, a.shape)


@op("lstm_cell")
def lstm_cell(g: Graph, input: Val, hx: Any, w_ih: Val, w_hh: Val, b_ih: Any = None, b_hh: Any = None) -> list[Val]:
    h, c = hx
    gates = [_plus(g, a, b) for a, b in zip(*_gates(g, input, h, w_ih, w_hh, b_ih, b_hh, 4))]
    i, f, o = (g.same("Sigmoid", gates[k]) for k in (0, 1, 3))
    c = _plus(g, _times(g, f, c), _times(g, i, g.same("Tanh", gates[2])))
    return [_times(g, o, g.same("Tanh", c)), c]


@op("gru_cell")
def gru_cell(g: Graph, input: Val, hx: Val, w_ih: Val, w_hh: Val, b_ih: Any = None, b_hh: Any = None) -> Val:
    a, b = _gates(g, input, hx, w_ih, w_hh, b_ih, b_hh, 3)
    r, z = (g.same("Sigmoid", _plus(g, a[k], b[k])) for k in (0, 1))
    n = g.same("Tanh", _plus(g, a[2], _times(g, r, b[2])))
    return _plus(g, n, _times(g, z, g.op("Sub", [hx, n], n.dtype, n.shape)))


@op("rnn_tanh_cell", "rnn_relu_cell")
def rnn_cell(g: Graph, input: Val, hx: Val, w_ih: Val, w_hh: Val, b_ih: Any = None, b_hh: Any = None) -> Val:
    a, b = _gates(g, input, hx, w_ih, w_hh, b_ih, b_hh, 1)
    return g.same("Tanh" if "tanh" in g.key else "Relu", _plus(g, a[0], b[0]))
