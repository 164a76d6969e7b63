"""Recurrent layers with quantised weights, whose inputs and states are quantised by their own range."""

from __future__ import annotations

import numbers
import warnings
from typing import Any

import rustgrad as torch

from ......nn import GRU as FloatGRU
from ......nn import LSTM as FloatLSTM
from ......nn.modules.module import Module
from ......nn.utils.rnn import PackedSequence
from ._rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from ._rnn_weights import _cell_params, _empty_weight, _quantised, _weight_observer, pack_weight_bias

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
        settings = [
            self.bias, self.num_layers, float(self.dropout), self.training, self.bidirectional, *([] if packed else [self.batch_first])
        ]  # fmt: skip
        run = torch.quantized_lstm if self.mode == "LSTM" else torch.quantized_gru
        options = {"dtype": self.dtype, "use_dynamic": True} if self.mode == "LSTM" else {}
        params, given = [cell.param for cell in self._all_weight_values], list(states) if count == 2 else states[0]
        made, *last = run(x, *([sizes] if packed else []), given, params, *settings, **options)
        last = tuple(self.permute_hidden(h, back) for h in last)
        return PackedSequence(made, sizes, order, back) if packed else made, last if count == 2 else last[0]

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


def __dir__() -> list[str]:
    return __all__
