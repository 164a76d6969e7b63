"""An LSTM whose gates are modules, so that each can be observed and quantised."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import rustgrad as torch

from ..... import nn

__all__ = ["LSTM", "LSTMCell"]


def _functional():
    from ...quantized.modules.functional_modules import FloatFunctional

    return FloatFunctional()


class LSTMCell(nn.Module):
    """A cell of modules: see `nn.LSTMCell`.

    Args:
        input_dim, hidden_dim (int): the numbers of features.
        split_gates (bool): each gate has linear layers of its own.
    """

    _FLOAT_MODULE = nn.LSTMCell
    __constants__ = ["split_gates"]

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *, split_gates: bool = False
    ) -> None:  # fmt: skip
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.input_size, self.hidden_size, self.bias, self.split_gates = input_dim, hidden_dim, bias, split_gates
        if split_gates:
            names = ("input", "forget", "cell", "output")
            self.igates: Any = nn.ModuleDict({n: nn.Linear(input_dim, hidden_dim, bias=bias, **options) for n in names})
            self.hgates: Any = nn.ModuleDict(
                {n: nn.Linear(hidden_dim, hidden_dim, bias=bias, **options) for n in names}
            )
            self.gates: Any = nn.ModuleDict({n: _functional() for n in names})
        else:
            self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias=bias, **options)
            self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias=bias, **options)
            self.gates = _functional()
        self.input_gate, self.forget_gate, self.cell_gate, self.output_gate = (
            nn.Sigmoid(),
            nn.Sigmoid(),
            nn.Tanh(),
            nn.Sigmoid(),
        )
        self.fgate_cx, self.igate_cgate = _functional(), _functional()
        self.fgate_cx_igate_cgate, self.ogate_cy = _functional(), _functional()
        self.initial_hidden_state_qparams: tuple[float, int] = (1.0, 0)
        self.initial_cell_state_qparams: tuple[float, int] = (1.0, 0)
        self.hidden_state_dtype: Any = torch.quint8
        self.cell_state_dtype: Any = torch.quint8

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The next states: two of (batch, features)."""
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        if self.split_gates:
            sums = [self.gates[name].add(self.igates[name](x), self.hgates[name](hx)) for name in self.gates]
        else:
            sums = self.gates.add(self.igates(x), self.hgates(hx)).chunk(4, 1)
        i, f, g, o = sums
        i, f, g, o = self.input_gate(i), self.forget_gate(f), self.cell_gate(g), self.output_gate(o)
        cy = self.fgate_cx_igate_cgate.add(self.fgate_cx.mul(f, cx), self.igate_cgate.mul(i, g))
        return self.ogate_cy.mul(o, torch.tanh(cy)), cy

    def initialize_hidden(self, batch_size: int, is_quantized: bool = False) -> tuple[Any, Any]:
        """States of zeros."""
        h, c = torch.zeros((batch_size, self.hidden_size)), torch.zeros((batch_size, self.hidden_size))
        if is_quantized:
            h = torch.quantize_per_tensor(h, *self.initial_hidden_state_qparams, self.hidden_state_dtype)
            c = torch.quantize_per_tensor(c, *self.initial_cell_state_qparams, self.cell_state_dtype)
        return h, c

    def _get_name(self):
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi: Any, wh: Any, bi: Any = None, bh: Any = None, split_gates: bool = False) -> LSTMCell:
        """A cell with these weights and biases: the gates one after another. AssertionError: one bias alone."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None, split_gates=split_gates)
        for gates, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            if not split_gates:
                gates.weight = nn.Parameter(weight)
                if bias is not None:
                    gates.bias = nn.Parameter(bias)
                continue
            parts = weight.chunk(4), (None,) * 4 if bias is None else bias.chunk(4)
            for gate, w, b in zip(gates.values(), *parts, strict=True):
                gate.weight = nn.Parameter(w)
                if b is not None:
                    gate.bias = nn.Parameter(b)
        return made

    @classmethod
    def from_float(cls, other: Any, use_precomputed_fake_quant: bool = False, split_gates: bool = False) -> LSTMCell:
        """The cell of a float one with a configuration. AssertionError: another class."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh, split_gates=split_gates)
        made.qconfig = other.qconfig  # type: ignore[assignment]
        made.igates.qconfig = made.hgates.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """A cell over the time steps."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, device: Any = None, dtype: Any = None, *, split_gates: bool = False
    ) -> None:  # fmt: skip
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias, device, dtype, split_gates=split_gates)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """All hidden states (time, batch, features), and the last states."""
        made = []
        for step in range(x.shape[0]):
            hidden = self.cell(x[step], hidden)
            made.append(hidden[0])
        return torch.stack(made, 0), hidden

    @classmethod
    def from_params(cls, *args: Any, **kwargs: Any) -> _LSTMSingleLayer:
        """A layer with a cell of these weights."""
        cell = LSTMCell.from_params(*args, **kwargs)
        made = cls(cell.input_size, cell.hidden_size, cell.bias, split_gates=cell.split_gates)
        made.cell = cell
        return made


class _LSTMLayer(nn.Module):
    """One layer, in one direction or both."""

    def __init__(
        self, input_dim: int, hidden_dim: int, bias: bool = True, batch_first: bool = False, bidirectional: bool = False,
        device: Any = None, dtype: Any = None, *, split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        options = {"bias": bias, "device": device, "dtype": dtype, "split_gates": split_gates}
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, **options)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, **options)

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The results, and the last states."""
        x = x.transpose(0, 1) if self.batch_first else x
        hx, cx = (None, None) if hidden is None else hidden

        def of(direction: int) -> Any:
            if hx is None or cx is None:
                return None
            if not self.bidirectional:
                return hx, cx
            return hx[direction], cx[direction]

        made, states = self.layer_fw(x, of(0))
        if self.bidirectional:
            back, back_states = self.layer_bw(x.flip(0), of(1))
            made = torch.cat([made, back.flip(0)], made.dim() - 1)
            states = tuple(torch.stack([a, b], 0) for a, b in zip(states, back_states, strict=True))
        return (made.transpose(0, 1) if self.batch_first else made), states

    @classmethod
    def from_float(cls, other: Any, layer_idx: int = 0, qconfig: Any = None, **kwargs: Any) -> _LSTMLayer:
        """A layer of a float LSTM with a configuration."""
        qconfig = getattr(other, "qconfig", qconfig)
        if qconfig is None:
            raise AssertionError("qconfig must be provided or available on the module")
        made = cls(
            kwargs.get("input_size", other.input_size), other.hidden_size, other.bias, other.batch_first, other.bidirectional,
            split_gates=kwargs.get("split_gates", False),
        )  # fmt: skip
        made.qconfig = qconfig  # type: ignore[assignment]
        for name, suffix in (("layer_fw", ""), ("layer_bw", "_reverse"))[: 1 + other.bidirectional]:
            parts = [getattr(other, f"weight_{side}_l{layer_idx}{suffix}") for side in ("ih", "hh")]
            biases = [getattr(other, f"bias_{side}_l{layer_idx}{suffix}", None) for side in ("ih", "hh")]
            layer = _LSTMSingleLayer.from_params(*parts, *biases, split_gates=kwargs.get("split_gates", False))
            setattr(made, name, layer)
        return made


class LSTM(nn.Module):
    """An LSTM of modules that are observed: see `nn.LSTM`.

    Args:
        split_gates (bool): each gate has linear layers of its own.
    """

    _FLOAT_MODULE = nn.LSTM

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device: Any = None, dtype: Any = None, *, split_gates: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.training = False
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0:
            warnings.warn("dropout option for quantizable LSTM is ignored. If you are training, please, use nn.LSTM version followed by `prepare` step.", stacklevel=2)  # fmt: skip
        directions = 2 if bidirectional else 1
        self.layers = nn.ModuleList(
            _LSTMLayer(
                input_size if layer == 0 else hidden_size * directions, hidden_size, bias, False, bidirectional, device, dtype,
                split_gates=split_gates,
            )
            for layer in range(num_layers)
        )  # fmt: skip

    def forward(self, x: Any, hidden: Any = None) -> Any:
        """The results of the last layer, and the last states: each (layers * directions, batch, features)."""
        x = x.transpose(0, 1) if self.batch_first else x
        directions = 2 if self.bidirectional else 1
        states: list[Any] = [None] * self.num_layers
        if hidden is not None:
            shape = (self.num_layers, directions, *hidden[0].shape[-2:])
            parts = [h.reshape(shape) for h in hidden]
            states = [
                tuple(p[layer] if self.bidirectional else p[layer].squeeze(0) for p in parts)
                for layer in range(self.num_layers)
            ]
        hs, cs = [], []
        for layer, state in zip(self.layers, states, strict=True):
            x, (h, c) = layer(x, state)
            hs.append(h)
            cs.append(c)
        last = []
        for kept in (hs, cs):
            joined = torch.stack(kept)
            last.append(joined.reshape(-1, *joined.shape[-2:]))
        return (x.transpose(0, 1) if self.batch_first else x), tuple(last)

    def _get_name(self):
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other: Any, qconfig: Any = None, split_gates: bool = False) -> LSTM:
        """The LSTM of a float one with a configuration, which is observed. AssertionError: another class."""
        from .....ao.quantization import prepare, prepare_qat

        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"Expected module type {cls._FLOAT_MODULE}, got {type(other)}")
        if not hasattr(other, "qconfig") and not qconfig:
            raise AssertionError("qconfig must be provided or available on the module")
        made = cls(
            other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout,
            other.bidirectional, split_gates=split_gates,
        )  # fmt: skip
        made.qconfig = getattr(other, "qconfig", qconfig)  # type: ignore[assignment]
        width = other.hidden_size * (2 if other.bidirectional else 1)
        for at in range(other.num_layers):
            size = other.input_size if at == 0 else width
            layer = _LSTMLayer.from_float(other, at, qconfig, input_size=size, split_gates=split_gates)
            layer.batch_first = False
            made.layers[at] = layer
        if other.training:
            return prepare_qat(made.train(), inplace=True)  # type: ignore[return-value]
        return prepare(made.eval(), inplace=True)  # type: ignore[return-value]

    @classmethod
    def from_observed(cls, other: Any) -> Any:
        """NotImplementedError: `nn.quantized.LSTM.from_observed` makes the quantised one."""
        raise NotImplementedError(
            "It looks like you are trying to convert a non-quantizable LSTM module. Please, see the examples on quantizable LSTMs."
        )


def __dir__() -> list[str]:
    return __all__
