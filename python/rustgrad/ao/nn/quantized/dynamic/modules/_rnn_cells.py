"""The cells of recurrent layers with quantised weights."""

from __future__ import annotations

from typing import Any

import rustgrad as torch

from ......nn.modules.module import Module
from ._rnn_weights import _empty_weight, _quantised, _weight_observer, pack_weight_bias

__all__: list[str] = []


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


for _value in (RNNCellBase, RNNCell, LSTMCell, GRUCell):
    _value.__module__ = __name__.replace("_rnn_cells", "rnn")  # where PyTorch has them, and pickles look


def __dir__() -> list[str]:
    return __all__
