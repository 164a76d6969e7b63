"""Recurrent layers and cells with quantised weights: their `forward` as code. See `_layers`."""

from __future__ import annotations

from typing import Any

__all__ = ["quantised_code"]

_LSTM = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]=None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
  if hx is None:
    h = torch.zeros([{count}, torch.size(input, {axis}), {hidden}], dtype=input.dtype, device=input.device)
    c = h
  else:
    h, c = hx
  y, h1, c1 = torch.quantized_lstm(input, [h, c], [{params}], {bias}, {layers}, {dropout}, self.training, {both}, {first}, dtype={dtype}, use_dynamic=True)
  return y, (h1, c1)
"""
_GRU = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tensor]=None) -> Tuple[Tensor, Tensor]:
  if hx is None:
    h = torch.zeros([{count}, torch.size(input, {axis}), {hidden}], dtype=input.dtype, device=input.device)
  else:
    h = hx
  y, h1 = torch.quantized_gru(input, h, [{params}], {bias}, {layers}, {dropout}, self.training, {both}, {first})
  return y, h1
"""
_STATE_CELL = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]=None) -> Tuple[Tensor, Tensor]:
  if hx is None:
    h = torch.zeros([torch.size(input, 0), {hidden}], dtype=input.dtype, device=input.device)
    c = h
  else:
    h, c = hx
  h1, c1 = ops.quantized.{op}(input, [h, c], self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)
  return h1, c1
"""
_CELL = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tensor]=None) -> Tensor:
  if hx is None:
    h = torch.zeros([torch.size(input, 0), {hidden}], dtype=input.dtype, device=input.device)
  else:
    h = hx
  return ops.quantized.{op}(input, h, self._packed_weight_ih, self._packed_weight_hh, self.bias_ih, self.bias_hh)
"""


def quantised_code(m: Any) -> tuple[str, dict[str, Any]] | None:
    """The template of a layer's `forward` and what to fill in; None for other layers."""
    from ..ao.nn.quantized.dynamic.modules import rnn

    if isinstance(m, rnn.RNNBase) and type(m).forward is rnn.RNNBase.forward:
        params = [f'getattr(self._all_weight_values, "{n}").param' for n in m._all_weight_values._modules]
        directions = 2 if m.bidirectional else 1
        from ._codes import code_of

        return _LSTM if m.mode == "LSTM" else _GRU, {
            "count": m.num_layers * directions, "axis": 0 if m.batch_first else 1, "hidden": m.hidden_size,
            "params": ", ".join(params), "bias": m.bias, "layers": m.num_layers, "dropout": float(m.dropout),
            "both": m.bidirectional, "first": m.batch_first, "dtype": code_of(m.dtype),
        }  # fmt: skip
    if type(m) in (rnn.LSTMCell, rnn.GRUCell, rnn.RNNCell):
        kind = {rnn.LSTMCell: "lstm", rnn.GRUCell: "gru"}.get(type(m)) or f"rnn_{m.nonlinearity}"
        template = _STATE_CELL if kind == "lstm" else _CELL
        return template, {"hidden": m.hidden_size, "op": f"quantized_{kind}_cell_dynamic"}
    return None
