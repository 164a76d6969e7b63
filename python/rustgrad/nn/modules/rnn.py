"""Recurrent networks: `RNN`, `LSTM`, `GRU` over sequences, and their cells, which do one step."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ..._absent import getattr_of
from ..._base import empty, ops, zeros
from ..._C import Tensor, dtype
from ..._typing import DeviceLike
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "GRUCell", "LSTM", "LSTMCell", "RNN", "RNNBase", "RNNCell", "RNNCellBase"]

# The op of a mode, and the number of gates.
_MODES = {"LSTM": ("lstm", 4), "GRU": ("gru", 3), "RNN_TANH": ("rnn_tanh", 1), "RNN_RELU": ("rnn_relu", 1)}


def _autocast(input):
    """Whether autocast chooses the precision on the input's device, so that dtypes may differ."""
    from ...amp.autocast_mode import is_autocast_available, is_autocast_enabled

    kind = input.device.type
    return is_autocast_available(kind) and is_autocast_enabled(kind)


def _draw_uniform(module):
    bound = 1.0 / math.sqrt(module.hidden_size) if module.hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


def _check_sizes(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size):
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects "
            f"num_layers greater than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )
    for name, value, kind in (
        ("bias", bias, bool),
        ("batch_first", batch_first, bool),
        ("input_size", input_size, int),
        ("hidden_size", hidden_size, int),
    ):
        if not isinstance(value, kind):
            raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
    for name, value in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if value <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")
    if mode not in _MODES:
        raise ValueError("Unrecognized RNN mode: " + mode)


class RNNBase(Module):
    """What `RNN`, `LSTM` and `GRU` share: parameters, checks, and the call of the op.

    Attributes:
        weight_ih_l[k], weight_hh_l[k], bias_ih_l[k], bias_hh_l[k]: of layer k, for inputs and hidden states; `_reverse`
            is appended for the other direction. `weight_hr_l[k]` is the projection of an LSTM.
        all_weights: these by layer and direction.
    """

    __constants__ = [
        "mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional", "proj_size",
    ]  # fmt: skip

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        _check_sizes(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, proj_size)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates = _MODES[mode][1] * hidden_size
        state = proj_size or hidden_size
        self._all_weights = self._names()
        for i, names in enumerate(self._all_weights):
            width = input_size if i < self._directions else state * self._directions
            shapes = {"ih": (gates, width), "hh": (gates, state), "hr": (proj_size, hidden_size)}
            for name in names:
                shape = (gates,) if name.startswith("bias") else shapes[name.split("_")[1]]
                setattr(self, name, Parameter(empty(shape, device=device, dtype=dtype)))
        self.reset_parameters()

    @property
    def _directions(self):
        return 2 if self.bidirectional else 1

    def _names(self):
        """The names of the weights, by layer and direction."""
        kinds = ["weight_ih", "weight_hh"]
        kinds += ["bias_ih", "bias_hh"] if self.bias else []
        kinds += ["weight_hr"] if self.proj_size > 0 else []
        suffixes = ["", "_reverse"][: self._directions]
        return [[f"{k}_l{layer}{s}" for k in kinds] for layer in range(self.num_layers) for s in suffixes]

    @property
    def _flat_weights_names(self):
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self):
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights) -> None:
        # Tensors other than the parameters shadow them until a parameter of that name is assigned.
        for name, weight in zip(self._flat_weights_names, weights, strict=True):
            if getattr(self, name, None) is not weight:
                self.__dict__[name] = weight

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, by layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Does nothing: there is no memory layout of parameters that would be faster."""

    def reset_parameters(self) -> None:
        """Redraws the weights, uniform in +-1/sqrt(hidden_size)."""
        _draw_uniform(self)

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch keeps these lists, and reads them where it unpickles.
        computed = {"_flat_weights_names": self._flat_weights_names, "_flat_weights": self._flat_weights}
        return {**self.__dict__, **computed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # What PyTorch pickles and is computed here; `proj_size` is missing from pickles before PyTorch 1.8.
        state = {k: v for k, v in state.items() if not k.startswith("_flat_weight")}
        state.setdefault("proj_size", 0)
        names = state.pop("all_weights", None)
        super().__setstate__(state)
        if names is not None or not isinstance(self._all_weights[0][0], str):
            self._all_weights = self._names()

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Refuses an input of another dtype or size than the weights are for."""
        dtype = getattr(self, self._all_weights[0][0]).dtype
        if input.dtype != dtype and not _autocast(input):
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        dims = 3 if batch_sizes is None else 2
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _expected(self, input, batch_sizes, size):
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0 if self.batch_first else 1)
        return (self.num_layers * self._directions, batch, size)

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers * directions, batch, size of the hidden state)."""
        return self._expected(input, batch_sizes, self.proj_size or self.hidden_size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Refuses a state of another shape."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Refuses an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its sequences in another order."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _initial(self, input, batch_sizes):
        return zeros(self.get_expected_hidden_size(input, batch_sizes), dtype=input.dtype, device=input.device)

    def _batched(self, hx, is_batched):
        """The state with a batch dimension."""
        want, kind = (3, "batched 3-D") if is_batched else (2, "unbatched 2-D")
        if hx.dim() != want:
            raise RuntimeError(f"For {kind} input, hx should also be {want}-D but got {hx.dim()}-D tensor")
        return hx if is_batched else hx.unsqueeze(1)

    def _unbatched(self, hx):
        return hx.squeeze(1)

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        """(output, last state).

        Args:
            input: `(T, B, I)`, `(B, T, I)` if `batch_first`, `(T, I)` without a batch, or a `PackedSequence`.
            hx: the first state `(layers * directions, B, H)`, zeros if left out; for an LSTM a pair (hidden, cell).
        """
        op = ops[_MODES[self.mode][0]]
        options = (self.bias, self.num_layers, self.dropout, self.training, self.bidirectional)
        if isinstance(input, PackedSequence):
            data, batch_sizes, order, back = input
            hx = self._initial(data, batch_sizes) if hx is None else self.permute_hidden(hx, order)
            self.check_forward_args(data, hx, batch_sizes)
            output, *state = op(data, batch_sizes, hx, self._flat_weights, *options)
            packed = PackedSequence(output, batch_sizes, order, back)
            return packed, self.permute_hidden(self._state(state), back)
        if input.dim() not in (2, 3):
            # The words of PyTorch's `RNN` and of its other networks differ.
            kind, unit = ("RNN", "D tensor") if self.mode.startswith("RNN") else (self.mode, "D")
            raise ValueError(f"{kind}: Expected input to be 2D or 3D, got {input.dim()}{unit} instead")
        is_batched, batch_dim = input.dim() == 3, 0 if self.batch_first else 1
        x = input if is_batched else input.unsqueeze(batch_dim)
        hx = self._initial(x, None) if hx is None else self._batched(hx, is_batched)
        self.check_forward_args(x, hx, None)
        output, *state = op(x, hx, self._flat_weights, *options, self.batch_first)
        state = self._state(state)
        return (output, state) if is_batched else (output.squeeze(batch_dim), self._unbatched(state))

    def _state(self, found):
        return found[0]

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s


def _refuse_projection(options):
    if "proj_size" in options:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")


class RNN(RNNBase):
    r"""Elman network: :math:`h_t = \tanh(x_t W_{ih}^T + b_{ih} + h_{t-1} W_{hh}^T + b_{hh})` in every layer.

    Args:
        input_size (int), hidden_size (int): I and H, the sizes of input and hidden state.
        num_layers (int): number of layers; each takes the hidden states of the one before.
        nonlinearity (str): "tanh" or "relu".
        bias (bool): whether there are biases.
        batch_first (bool): whether input and output are `(B, T, *)` instead of `(T, B, *)`.
        dropout (float): probability of dropout between layers in training.
        bidirectional (bool): whether a second network of each layer runs backward; its states are concatenated.

    Shape:
        input `(T, B, I)`, output `(T, B, D * H)`, states `(num_layers * D, B, H)`, with D = 2 if bidirectional, else 1.

    Source: Elman, "Finding Structure in Time", Cognitive Science 14 (1990).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        if len(args) > 3:
            nonlinearity, args = args[3], args[:3] + args[4:]
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    r"""Long short-term memory network.

    In every layer :math:`i, f, g, o = \sigma, \sigma, \tanh, \sigma` of
    :math:`x_t W_{ih}^T + b_{ih} + h_{t-1} W_{hh}^T + b_{hh}`, :math:`c_t = f c_{t-1} + i g` and :math:`h_t = o \tanh(c_t)`.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as for `RNN`.
        proj_size (int): P, the size to which hidden states are projected; 0 for none.

    Shape:
        input `(T, B, I)`, output `(T, B, D * H)`; hidden states and cells `(num_layers * D, B, H)`; with P for H in output
        and hidden states if there is a projection.

    Source: Hochreiter, Schmidhuber, "Long Short-Term Memory", Neural Computation 9 (1997); projections: Sak et al.,
    arXiv:1402.1128.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers * directions, batch, size of the cells)."""
        return self._expected(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None) -> None:
        """Refuses an input or a state that does not fit."""
        self.check_input(input, batch_sizes)
        sizes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for i, size in enumerate(sizes):
            self.check_hidden_size(hidden[i], size, f"Expected hidden[{i}] size {{}}, got {{}}")

    def permute_hidden(self, hx: tuple[Tensor, Tensor], permutation: Tensor | None) -> tuple[Tensor, Tensor]:
        """Both states with their sequences in another order."""
        return hx if permutation is None else tuple(t.index_select(1, permutation) for t in hx)

    def _initial(self, input, batch_sizes):
        cell = zeros(self.get_expected_cell_size(input, batch_sizes), dtype=input.dtype, device=input.device)
        return (super()._initial(input, batch_sizes), cell)

    def _batched(self, hx, is_batched):
        want, kind = (3, "batched 3-D") if is_batched else (2, "unbatched 2-D")
        if hx[0].dim() != want or hx[1].dim() != want:
            raise RuntimeError(
                f"For {kind} input, hx and cx should also be {want}-D "
                f"but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )
        return hx if is_batched else tuple(t.unsqueeze(1) for t in hx)

    def _unbatched(self, hx):
        return tuple(t.squeeze(1) for t in hx)

    def _state(self, found):
        return tuple(found)


class GRU(RNNBase):
    r"""Network of gated recurrent units.

    In every layer, with the reset gate r and the update gate z,
    :math:`n = \tanh(x_t W_{in}^T + b_{in} + r (h_{t-1} W_{hn}^T + b_{hn}))` and :math:`h_t = (1 - z) n + z h_{t-1}`.

    Args:
        input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional: as for `RNN`.

    Shape:
        as for `RNN`.

    Source: Cho et al., arXiv:1406.1078, with the reset gate after the product.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _refuse_projection(kwargs)
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: their parameters.

    Attributes:
        weight_ih `(G * H, I)`, weight_hh `(G * H, H)`, bias_ih `(G * H)`, bias_hh `(G * H)`, with G gates.
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | Any
    bias_hh: Parameter | Any

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size

        def parameter(*sizes):
            return Parameter(empty(sizes, device=device, dtype=dtype))

        self.weight_ih = parameter(rows, input_size)
        self.weight_hh = parameter(rows, hidden_size)
        self.register_parameter("bias_ih", parameter(rows) if bias else None)
        self.register_parameter("bias_hh", parameter(rows) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws the weights, uniform in +-1/sqrt(hidden_size)."""
        _draw_uniform(self)

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s

    def _weights(self):
        return (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)

    def _check_dims(self, t, what):
        if t.dim() not in (1, 2):
            name = type(self).__name__
            raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {t.dim()}D instead")

    def _step(self, op, input, hx):
        """One step of a cell with one state; without a batch where the input has none."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        is_batched = input.dim() == 2
        x = input if is_batched else input.unsqueeze(0)
        if hx is None:
            hx = zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
        elif not is_batched:
            hx = hx.unsqueeze(0)
        found = op(x, hx, *self._weights())
        return found if is_batched else found.squeeze(0)


class RNNCell(RNNCellBase):
    r"""One step of an Elman network: :math:`h' = \tanh(x W_{ih}^T + b_{ih} + h W_{hh}^T + b_{hh})`, or with relu.

    Shape:
        input `(B, I)`, hidden state before and after `(B, H)`; or without B.
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(ops[f"rnn_{self.nonlinearity}_cell"], input, hx)


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`: (hidden state, cell) from the input and the pair of the step before.

    Shape:
        input `(B, I)`, hidden state and cell before and after `(B, H)`; or without B.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        self._check_dims(input, "input")
        for i, t in enumerate(() if hx is None else hx):
            self._check_dims(t, f"hx[{i}]")
        is_batched = input.dim() == 2
        x = input if is_batched else input.unsqueeze(0)
        if hx is None:
            state = zeros(x.size(0), self.hidden_size, dtype=x.dtype, device=x.device)
            hx = (state, state)
        elif not is_batched:
            hx = tuple(t.unsqueeze(0) for t in hx)
        found = ops["lstm_cell"](x, hx, *self._weights())
        return tuple(found) if is_batched else tuple(t.squeeze(0) for t in found)


class GRUCell(RNNCellBase):
    """One step of a `GRU`: the hidden state from the input and the state before.

    Shape:
        input `(B, I)`, hidden state before and after `(B, H)`; or without B.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtype | None = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step(ops["gru_cell"], input, hx)


__getattr__ = getattr_of(__name__)
