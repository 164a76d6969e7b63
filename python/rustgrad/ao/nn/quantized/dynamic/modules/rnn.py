"""Recurrent layers with quantised weights, whose inputs and states are quantised by their own range."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import rustgrad as torch

from ......_quantized import _cells
from ......nn import GRU as FloatGRU
from ......nn import LSTM as FloatLSTM
from ......nn.modules.module import Module
from ......nn.utils.rnn import PackedSequence
from ...modules.utils import _quantize_weight

__all__ = [
    "GRU",
    "LSTM",
    "GRUCell",
    "LSTMCell",
    "PackedParameter",
    "RNNBase",
    "RNNCell",
    "RNNCellBase",
    "apply_permutation",
    "pack_weight_bias",
]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Any, permutation: Any, dim: int = 1) -> Any:
    """Deprecated: `tensor.index_select(dim, permutation)`."""
    warnings.warn(
        "apply_permutation is deprecated, please use tensor.index_select(dim, permutation) instead",
        category=FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


def pack_weight_bias(qweight: Any, bias: Any, dtype: Any) -> Any:
    """A weight and a bias as `linear_dynamic` takes them, or `linear_dynamic_fp16`."""
    ops = torch.ops.quantized
    return ops.linear_prepack(qweight, bias) if dtype == torch.qint8 else ops.linear_prepack_fp16(qweight, bias)


class PackedParameter(Module):
    """The packed weights of a cell as a module, so that they are part of the state."""

    def __init__(self, param: Any) -> None:
        super().__init__()
        self.param = param

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "param"] = self.param

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.param = state_dict.pop(prefix + "param")
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )


def _cell_params(dtype, weights, biases):
    ops = torch.ops.quantized
    packed = [pack_weight_bias(w, b, dtype) for w, b in zip(weights, biases, strict=True)]
    if dtype == torch.qint8:
        return ops.make_quantized_cell_params_dynamic(*packed, *biases, True)
    return ops.make_quantized_cell_params_fp16(*packed)


def _empty_weight(dtype, rows, columns):
    floats = torch.randn(rows, columns).float()
    if dtype == torch.qint8:
        return torch.quantize_per_tensor(floats, scale=1.0, zero_point=0, dtype=torch.qint8)
    return floats


def _weight_observer(mod):
    """The observer of a module's weights. AssertionError: it has no configuration."""
    if not hasattr(mod, "qconfig"):
        raise AssertionError("Input float module must have qconfig defined")
    if mod.qconfig is not None and mod.qconfig.weight is not None:
        return mod.qconfig.weight
    from ......ao.quantization.qconfig import default_dynamic_qconfig

    return default_dynamic_qconfig.weight


def _quantised(weight, make_observer):
    """A weight as the observer's dtype wants it, and that dtype. RuntimeError: it is neither qint8 nor float16."""
    observer = make_observer()
    if observer.dtype not in (torch.qint8, torch.float16):
        raise RuntimeError(
            f"The only supported dtypes for dynamic quantized RNN are qint8 and float16 got: {observer.dtype}"
        )
    weight = weight.detach().float()
    if observer.dtype == torch.float16:
        return weight, torch.float16
    observer(weight)
    return _quantize_weight(weight, observer), torch.qint8


class RNNBase(Module):
    """What the recurrent layers have in common: see `nn.RNNBase`."""

    _FLOAT_MODULE: Any = torch.nn.modules.rnn.RNNBase
    _version = 2

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, dtype: Any = torch.qint8,
    ) -> None:  # fmt: skip
        super().__init__()
        self.mode, self.input_size, self.hidden_size, self.num_layers = mode, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, float(dropout), bidirectional
        self.dtype, self.version, self.training = dtype, 2, False
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater "
                f"than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=2,
            )
        if mode not in ("LSTM", "GRU"):
            raise ValueError("Unrecognized RNN mode: " + mode)
        directions, rows, cells = 2 if bidirectional else 1, _GATES[mode] * hidden_size, []
        for layer in range(num_layers):
            columns = input_size if layer == 0 else hidden_size * directions
            for _ in range(directions):
                weights = [_empty_weight(dtype, rows, n) for n in (columns, hidden_size)]
                biases = [torch.randn(rows).float() for _ in range(2)]
                cells.append(PackedParameter(_cell_params(dtype, weights, biases)))
        self._all_weight_values = torch.nn.ModuleList(cells)

    def _get_name(self):
        return f"DynamicQuantized{self.mode}"

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    # --- arguments -------------------------------------------------------------------------------------------
    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """RuntimeError: another number of dimensions or features."""
        dims = 2 if batch_sizes is not None else 3
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """The shape of a state: (layers * directions, batch, features)."""
        batch = int(batch_sizes[0]) if batch_sizes is not None else input.size(0 if self.batch_first else 1)
        return self.num_layers * (2 if self.bidirectional else 1), batch, self.hidden_size

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: Any, msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """RuntimeError: a state of another shape."""
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """States in another order of the batch."""
        if permutation is None:
            return hx
        if isinstance(hx, tuple):
            return tuple(_apply_permutation(h, permutation) for h in hx)
        return _apply_permutation(hx, permutation)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The results of the last layer, and the last states.

        Args:
            input (Tensor or PackedSequence): (time, batch, features), or (batch, time, features) where `batch_first`.
            hx (Tensor or tuple): the first states; default: zeros.
        """
        packed = isinstance(input, PackedSequence)
        x, sizes, order, back = tuple(input) if packed else (input, None, None, None)
        self.check_input(x, sizes)
        expected = self.get_expected_hidden_size(x, sizes)
        count = 2 if self.mode == "LSTM" else 1
        if hx is None:
            states = (torch.zeros(expected, dtype=x.dtype, device=x.device),) * count
        else:
            states = tuple(self.permute_hidden(h, order) for h in (hx if count == 2 else (hx,)))
            words = ("Expected hidden[0] size {}, got {}", "Expected hidden[1] size {}, got {}")
            for h, msg in zip(states, words if count == 2 else ("Expected hidden size {}, got {}",), strict=True):
                self.check_hidden_size(h, torch.Size(expected), msg)
        flat = x.transpose(0, 1) if self.batch_first and not packed else x
        made, last = _cells.run(
            self.mode, flat, states, [cell.param for cell in self._all_weight_values], self.dropout, self.training,
            self.bidirectional, None if sizes is None else sizes.tolist(),
        )  # fmt: skip
        last = tuple(self.permute_hidden(h, back) for h in last)
        if packed:
            made = PackedSequence(made, sizes, order, back)
        elif self.batch_first:
            made = made.transpose(0, 1)
        return made, last if count == 2 else last[0]

    # --- weights ---------------------------------------------------------------------------------------------
    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self.version = local_metadata.get("version", None)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Takes weights and biases by the names of `nn.LSTM`: `weight_ih_l0`, `bias_hh_l0_reverse`..."""
        cells = []
        for layer in range(self.num_layers):
            for suffix in ("", "_reverse") if self.bidirectional else ("",):
                names = [f"{side}_l{layer}{suffix}" for side in ("ih", "hh")]
                weights, biases = ([weight_bias_dict[f"{kind}_{n}"] for n in names] for kind in ("weight", "bias"))
                cells.append(PackedParameter(_cell_params(self.dtype, weights, biases)))
        self._all_weight_values = torch.nn.ModuleList(cells)

    def _weight_bias(self):
        made: dict[str, Any] = {"weight": {}, "bias": {}}
        directions = 2 if self.bidirectional else 1
        for at, cell in enumerate(self._all_weight_values):
            suffix = f"l{at // directions}" + ("_reverse" if at % directions else "")
            for side in ("ih", "hh"):
                weight, bias = getattr(cell.param, f"packed_{side}").unpack()
                made["weight"][f"weight_{side}_{suffix}"], made["bias"][f"bias_{side}_{suffix}"] = weight, bias
        return made

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The layer of a float one. AssertionError: another class, or no configuration."""
        if type(mod) not in (FloatLSTM, FloatGRU):
            raise AssertionError("nn.quantized.dynamic.RNNBase.from_float only works for nn.LSTM and nn.GRU")
        make_observer = _weight_observer(mod)
        rows = _GATES[mod.mode] * mod.hidden_size
        given: dict[str, Any] = {}
        dtype = make_observer().dtype
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse") if mod.bidirectional else ("",):
                for side in ("ih", "hh"):
                    name = f"{side}_l{layer}{suffix}"
                    given[f"weight_{name}"], dtype = _quantised(getattr(mod, f"weight_{name}"), make_observer)
                    given[f"bias_{name}"] = getattr(mod, f"bias_{name}") if mod.bias else torch.zeros(rows)
        made = cls(
            mod.input_size,
            mod.hidden_size,
            mod.num_layers,
            mod.bias,
            mod.batch_first,
            mod.dropout,
            mod.bidirectional,
            dtype=dtype,
        )
        made.set_weight_bias(given)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The layer of one that computes with dequantised weights."""
        made = cls(
            ref_mod.input_size, ref_mod.hidden_size, ref_mod.num_layers, ref_mod.bias, ref_mod.batch_first, ref_mod.dropout,
            ref_mod.bidirectional,
        )  # fmt: skip
        made.set_weight_bias(ref_mod.get_quantized_weight_bias_dict())
        return made


class LSTM(RNNBase):
    """An LSTM of float32 inputs: see `nn.LSTM`."""

    _FLOAT_MODULE = FloatLSTM

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """A GRU of float32 inputs: see `nn.GRU`."""

    _FLOAT_MODULE = FloatGRU

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)


class RNNCellBase(Module):
    """What the cells have in common: see `nn.LSTMCell`."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, num_chunks: int = 4, dtype: Any = torch.qint8
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.bias, self.weight_dtype = input_size, hidden_size, bias, dtype
        rows = num_chunks * hidden_size
        biases = [torch.zeros(rows) if bias else None for _ in range(2)]
        self.bias_ih, self.bias_hh = biases
        if dtype not in (torch.qint8, torch.float16):
            raise RuntimeError("Unsupported dtype specified for quantized LSTMCell!")
        self._packed_weight_ih, self._packed_weight_hh = (
            pack_weight_bias(_empty_weight(dtype, rows, n), b, dtype)
            for n, b in zip((input_size, hidden_size), biases, strict=True)
        )

    def _get_name(self):
        return f"DynamicQuantized{type(self).__name__}"

    def extra_repr(self) -> str:
        """The sizes, and what is not the default."""
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            text += f", nonlinearity={self.nonlinearity}"
        return text

    def check_forward_input(self, input: Any) -> None:
        """RuntimeError: another number of features."""
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}")

    def check_forward_hidden(self, input: Any, hx: Any, hidden_label: str = "") -> None:
        """RuntimeError: a state of another shape."""
        if input.size(0) != hx.size(0):
            raise RuntimeError(
                f"Input batch size {input.size(0)} doesn't match hidden{hidden_label} batch size {hx.size(0)}"
            )
        if hx.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{hidden_label} has inconsistent hidden_size: got {hx.size(1)}, expected {self.hidden_size}"
            )

    def _zeros(self, input):
        return torch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _run(self, name, input, hx):
        op = getattr(torch.ops.quantized, name)
        return op(input, hx, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)

    def _forward(self, name, input, hx):
        self.check_forward_input(input)
        hx = self._zeros(input) if hx is None else hx
        self.check_forward_hidden(input, hx)
        return self._run(name, input, hx)

    def set_weight_bias(self, weight_bias_dict: dict[str, Any]) -> None:
        """Takes `weight_ih`, `weight_hh`, `bias_ih` and `bias_hh`."""
        self.bias_ih, self.bias_hh = weight_bias_dict["bias_ih"], weight_bias_dict["bias_hh"]
        self._packed_weight_ih, self._packed_weight_hh = (
            pack_weight_bias(weight_bias_dict[f"weight_{side}"], weight_bias_dict[f"bias_{side}"], self.weight_dtype)
            for side in ("ih", "hh")
        )

    def _weight_bias(self):
        (weight_ih, bias_ih), (weight_hh, bias_hh) = self._packed_weight_ih.unpack(), self._packed_weight_hh.unpack()
        return {
            "weight": {"weight_ih": weight_ih, "weight_hh": weight_hh},
            "bias": {"bias_ih": bias_ih, "bias_hh": bias_hh},
        }

    def get_weight(self) -> dict[str, Any]:
        """The weights by name."""
        return self._weight_bias()["weight"]

    def get_bias(self) -> dict[str, Any]:
        """The biases by name."""
        return self._weight_bias()["bias"]

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "_packed_weight_ih"] = self._packed_weight_ih
        destination[prefix + "_packed_weight_hh"] = self._packed_weight_hh

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):  # fmt: skip
        self._packed_weight_ih = state_dict.pop(prefix + "_packed_weight_ih")
        self._packed_weight_hh = state_dict.pop(prefix + "_packed_weight_hh")
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )

    @classmethod
    def from_float(cls, mod: Any, use_precomputed_fake_quant: bool = False) -> Any:
        """The cell of a float one. AssertionError: another class, or no configuration."""
        if type(mod) not in (torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell):
            raise AssertionError(
                "nn.quantized.dynamic.RNNCellBase.from_float only works for nn.LSTMCell, nn.GRUCell and nn.RNNCell"
            )
        make_observer, given, dtype = _weight_observer(mod), {}, torch.qint8
        for side in ("ih", "hh"):
            given[f"weight_{side}"], dtype = _quantised(getattr(mod, f"weight_{side}"), make_observer)
            given[f"bias_{side}"] = getattr(mod, f"bias_{side}")
        options = {"nonlinearity": mod.nonlinearity} if type(mod) is torch.nn.RNNCell else {}
        made = cls(mod.input_size, mod.hidden_size, bias=mod.bias, dtype=dtype, **options)
        made.set_weight_bias(given)
        return made

    @classmethod
    def from_reference(cls, ref_mod: Any) -> Any:
        """The cell of one that computes with dequantised weights."""
        options = {"nonlinearity": ref_mod.nonlinearity} if hasattr(ref_mod, "nonlinearity") else {}
        made = cls(ref_mod.input_size, ref_mod.hidden_size, ref_mod.bias, dtype=ref_mod.weight_ih_dtype, **options)
        made.set_weight_bias(
            {
                "weight_ih": ref_mod.get_quantized_weight_ih(),
                "weight_hh": ref_mod.get_quantized_weight_hh(),
                "bias_ih": ref_mod.bias_ih,
                "bias_hh": ref_mod.bias_hh,
            }
        )
        return made


class RNNCell(RNNCellBase):
    """A cell of float32 inputs: see `nn.RNNCell`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", dtype: Any = torch.qint8
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next state: (batch, features)."""
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._forward(f"quantized_rnn_{self.nonlinearity}_cell_dynamic", input, hx)


class LSTMCell(RNNCellBase):
    """A cell of float32 inputs: see `nn.LSTMCell`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, num_chunks=4, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next states: two of (batch, features)."""
        self.check_forward_input(input)
        hx = (self._zeros(input), self._zeros(input)) if hx is None else hx
        for h, label in zip(hx, ("[0]", "[1]"), strict=True):
            self.check_forward_hidden(input, h, label)
        return self._run("quantized_lstm_cell_dynamic", input, hx)


class GRUCell(RNNCellBase):
    """A cell of float32 inputs: see `nn.GRUCell`."""

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, dtype: Any = torch.qint8) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, dtype=dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next state: (batch, features)."""
        return self._forward("quantized_gru_cell_dynamic", input, hx)


def __dir__() -> list[str]:
    return __all__
