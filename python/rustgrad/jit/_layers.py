"""Layers whose Python is not written in the part that TorchScript has: their `forward` as code, for a module's settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import nn
from ..nn.modules.module import Module
from ._translate_values import is_library

__all__ = ["layer_code", "parts_called"]

_STATE = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]=None) -> Tuple[Tensor, Tuple[Tensor, Tensor]]:
  batched = input.dim() == 3
  x = input if batched else torch.unsqueeze(input, {axis})
  if hx is None:
    h = torch.zeros([{count}, torch.size(x, {axis}), {out}], dtype=x.dtype, device=x.device)
    c = torch.zeros([{count}, torch.size(x, {axis}), {hidden}], dtype=x.dtype, device=x.device)
  else:
    h, c = hx
    if not batched:
      h = torch.unsqueeze(h, 1)
      c = torch.unsqueeze(c, 1)
  y, h1, c1 = torch.lstm(x, [h, c], [{weights}], {bias}, {layers}, {dropout}, self.training, {both}, {first})
  if not batched:
    return torch.squeeze(y, {axis}), (torch.squeeze(h1, 1), torch.squeeze(c1, 1))
  return y, (h1, c1)
"""
_RECURRENT = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tensor]=None) -> Tuple[Tensor, Tensor]:
  batched = input.dim() == 3
  x = input if batched else torch.unsqueeze(input, {axis})
  if hx is None:
    h = torch.zeros([{count}, torch.size(x, {axis}), {hidden}], dtype=x.dtype, device=x.device)
  else:
    h = hx if batched else torch.unsqueeze(hx, 1)
  y, h1 = torch.{op}(x, h, [{weights}], {bias}, {layers}, {dropout}, self.training, {both}, {first})
  if not batched:
    return torch.squeeze(y, {axis}), torch.squeeze(h1, 1)
  return y, h1
"""
_STATE_CELL = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tuple[Tensor, Tensor]]=None) -> Tuple[Tensor, Tensor]:
  batched = input.dim() == 2
  x = input if batched else torch.unsqueeze(input, 0)
  if hx is None:
    h = torch.zeros([torch.size(x, 0), {hidden}], dtype=x.dtype, device=x.device)
    c = h
  else:
    h, c = hx
    if not batched:
      h = torch.unsqueeze(h, 0)
      c = torch.unsqueeze(c, 0)
  h1, c1 = torch.lstm_cell(x, [h, c], self.weight_ih, self.weight_hh, {biases})
  if not batched:
    return torch.squeeze(h1, 0), torch.squeeze(c1, 0)
  return h1, c1
"""
_CELL = """
def forward(self: {owner}, input: Tensor, hx: Optional[Tensor]=None) -> Tensor:
  batched = input.dim() == 2
  x = input if batched else torch.unsqueeze(input, 0)
  if hx is None:
    h = torch.zeros([torch.size(x, 0), {hidden}], dtype=x.dtype, device=x.device)
  else:
    h = hx if batched else torch.unsqueeze(hx, 0)
  y = torch.{op}(x, h, self.weight_ih, self.weight_hh, {biases})
  return y if batched else torch.squeeze(y, 0)
"""
_ATTENTION = """
def forward(self: {owner}, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor]=None, need_weights: bool=True, attn_mask: Optional[Tensor]=None, average_attn_weights: bool=True, is_causal: bool=False) -> Tuple[Tensor, Optional[Tensor]]:
  batched = query.dim() == 3
  if batched:
    q, k, v = {to_batch}
  else:
    q, k, v = torch.unsqueeze(query, 0), torch.unsqueeze(key, 0), torch.unsqueeze(value, 0)
  batch, length, source = torch.size(q, 0), torch.size(q, 1), torch.size(k, 1)
  q = torch.linear(q, {w_q}, {b_q})
  k = torch.linear(k, {w_k}, {b_k})
  v = torch.linear(v, {w_v}, {b_v})
  q = torch.transpose(torch.view(q, [batch, length, {heads}, {width}]), 1, 2)
  k = torch.transpose(torch.view(k, [batch, source, {heads}, {width}]), 1, 2)
  v = torch.transpose(torch.view(v, [batch, source, {heads}, {width}]), 1, 2)
  scores = torch.matmul(q * {scale}, torch.transpose(k, -2, -1))
  if attn_mask is not None:
    mask = attn_mask
    if mask.dim() == 3:
      mask = torch.view(mask, [batch, {heads}, length, source])
    if torch.is_floating_point(mask):
      scores = scores + mask
    else:
      scores = torch.masked_fill(scores, mask, {minus})
  if key_padding_mask is not None:
    padding = torch.view(key_padding_mask, [batch, 1, 1, source])
    if torch.is_floating_point(padding):
      scores = scores + padding
    else:
      scores = torch.masked_fill(scores, padding, {minus})
  weights = torch.dropout(torch.softmax(scores, -1), {dropout}, self.training)
  y = torch.reshape(torch.transpose(torch.matmul(weights, v), 1, 2), [batch, length, {size}])
  out_proj = self.out_proj
  y = torch.linear(y, out_proj.weight, {out_bias})
  shown = torch.mean(weights, [1]) if average_attn_weights else weights
  if not batched:
    y = torch.squeeze(y, 0)
    shown = torch.squeeze(shown, 0)
  else:
    y = {from_batch}
  if need_weights:
    return y, shown
  return y, None
"""
_BATCH_NORM = """
def forward(self: {owner}, input: Tensor) -> Tensor:
{count}
  return torch.batch_norm(input, {weight}, {bias}, {mean}, {var}, {by_batch}, {factor}, {eps}, True)
"""
_INSTANCE_NORM = """
def forward(self: {owner}, input: Tensor) -> Tensor:
  return torch.instance_norm(input, {weight}, {bias}, {mean}, {var}, {by_batch}, {factor}, {eps}, True)
"""
_TRANSPOSED = """
def forward(self: {owner}, input: Tensor, output_size: Optional[List[int]]=None) -> Tensor:
  assert output_size is None, "output_size is not taken by code that was saved"
  return torch.conv_transpose{dims}d(input, self.weight, {bias}, {stride}, {padding}, {output_padding}, {groups}, {dilation})
"""
_ENCODER_LAYER = """
def forward(self: {owner}, src: Tensor, src_mask: Optional[Tensor]=None, src_key_padding_mask: Optional[Tensor]=None, is_causal: bool=False) -> Tensor:
  x = {in_1}
  y, w = (self.self_attn).forward(x, x, x, src_key_padding_mask, False, src_mask)
  y = src + (self.dropout1).forward(y)
  z = {after_1}
  f = (self.dropout2).forward((self.linear2).forward((self.dropout).forward({activation})))
  return {out}
"""
_ENCODER = """
def forward(self: {owner}, src: Tensor, mask: Optional[Tensor]=None, src_key_padding_mask: Optional[Tensor]=None, is_causal: Optional[bool]=None) -> Tensor:
  output = src
{calls}
  return {out}
"""
_DECODER_LAYER = """
def forward(self: {owner}, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor]=None, memory_mask: Optional[Tensor]=None, tgt_key_padding_mask: Optional[Tensor]=None, memory_key_padding_mask: Optional[Tensor]=None, tgt_is_causal: bool=False, memory_is_causal: bool=False) -> Tensor:
  x = {in_1}
  y, w = (self.self_attn).forward(x, x, x, tgt_key_padding_mask, False, tgt_mask)
  y = tgt + (self.dropout1).forward(y)
  z = {after_1}
  m, w1 = (self.multihead_attn).forward(z, memory, memory, memory_key_padding_mask, False, memory_mask)
  y = {base_2} + (self.dropout2).forward(m)
  z = {after_2}
  f = (self.dropout3).forward((self.linear2).forward((self.dropout).forward({activation})))
  return {out}
"""
_DECODER = """
def forward(self: {owner}, tgt: Tensor, memory: Tensor, tgt_mask: Optional[Tensor]=None, memory_mask: Optional[Tensor]=None, tgt_key_padding_mask: Optional[Tensor]=None, memory_key_padding_mask: Optional[Tensor]=None, tgt_is_causal: Optional[bool]=None, memory_is_causal: bool=False) -> Tensor:
  output = tgt
{calls}
  return {out}
"""


def _recurrent(m: Any) -> tuple[str, dict[str, Any]]:
    kind = m.mode
    names = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}
    weights = ", ".join(f"self.{n}" for n in m._flat_weights_names)
    settings = dict(axis=0 if m.batch_first else 1, count=m.num_layers * (2 if m.bidirectional else 1), hidden=m.hidden_size,
                    out=getattr(m, "proj_size", 0) or m.hidden_size, weights=weights, bias=m.bias, layers=m.num_layers,
                    dropout=float(m.dropout), both=m.bidirectional, first=m.batch_first, op=names[kind])  # fmt: skip
    return (_STATE if kind == "LSTM" else _RECURRENT), settings


def _cell(m: Any) -> tuple[str, dict[str, Any]]:
    biases = "self.bias_ih, self.bias_hh" if m.bias else "None, None"
    if isinstance(m, nn.LSTMCell):
        return _STATE_CELL, {"hidden": m.hidden_size, "biases": biases}
    op = "gru_cell" if isinstance(m, nn.GRUCell) else f"rnn_{m.nonlinearity}_cell"
    return _CELL, {"hidden": m.hidden_size, "biases": biases, "op": op}


def _attention(m: Any) -> tuple[str, dict[str, Any]]:
    size, heads = m.embed_dim, m.num_heads
    if m.bias_k is not None or m.add_zero_attn:
        raise NotImplementedError("attention with bias_k or add_zero_attn")
    made: dict[str, Any] = dict(heads=heads, width=size // heads, size=size, scale=repr((size // heads) ** -0.5), dropout=float(m.dropout),
                                minus='float("-inf")')  # fmt: skip
    for place, part in enumerate("qkv"):
        rows = f"torch.slice(self.{{}}, 0, {place * size}, {(place + 1) * size})"
        made[f"w_{part}"] = rows.format("in_proj_weight") if m._qkv_same_embed_dim else f"self.{part}_proj_weight"
        made[f"b_{part}"] = "None" if m.in_proj_bias is None else rows.format("in_proj_bias")
    made["out_bias"] = "None" if m.out_proj.bias is None else "out_proj.bias"
    swap = "torch.transpose({}, 0, 1)"
    made["to_batch"] = (
        "query, key, value" if m.batch_first else ", ".join(swap.format(n) for n in ("query", "key", "value"))
    )
    made["from_batch"] = "y" if m.batch_first else swap.format("y")
    return _ATTENTION, made


def _norm(m: Any) -> tuple[str, dict[str, Any]]:
    def own(name: str) -> str:
        return "None" if getattr(m, name) is None else f"self.{name}"

    tracked = m.running_mean is not None
    made = dict(weight=own("weight"), bias=own("bias"), mean=own("running_mean"), var=own("running_var"), eps=float(m.eps),
                by_batch="self.training" if tracked else "True", factor=0.0 if m.momentum is None else float(m.momentum), count="  pass")  # fmt: skip
    if isinstance(m, nn.modules.instancenorm._InstanceNorm):
        return _INSTANCE_NORM, made
    if tracked and m.num_batches_tracked is not None:
        made["count"] = "  if self.training:\n    torch.add_(self.num_batches_tracked, 1)"
        if m.momentum is None:
            made["factor"] = "1.0 / float(self.num_batches_tracked)"
    return _BATCH_NORM, made


def _transposed(m: Any) -> tuple[str, dict[str, Any]]:
    lists = {n: list(getattr(m, n)) for n in ("stride", "padding", "output_padding", "dilation")}
    return _TRANSPOSED, {
        **lists,
        "dims": m.weight.dim() - 2,
        "groups": m.groups,
        "bias": "None" if m.bias is None else "self.bias",
    }


def _activation(m: Any, x: str) -> str:
    name = getattr(m.activation, "__name__", type(m.activation).__name__).lower()
    if name not in ("relu", "gelu"):
        raise NotImplementedError(f"a Transformer layer with the activation {name}")
    return f"torch.{name}((self.linear1).forward({x}))"


def _encoder_layer(m: Any) -> tuple[str, dict[str, Any]]:
    if m.norm_first:
        given = dict(in_1="(self.norm1).forward(src)", after_1="(self.norm2).forward(y)", out="y + f")
    else:
        given = dict(in_1="src", after_1="(self.norm1).forward(y)", out="(self.norm2).forward(z + f)")
    return _ENCODER_LAYER, {**given, "activation": _activation(m, "z")}


def _decoder_layer(m: Any) -> tuple[str, dict[str, Any]]:
    if m.norm_first:
        given = dict(in_1="(self.norm1).forward(tgt)", after_1="(self.norm2).forward(y)", base_2="y", after_2="(self.norm3).forward(y)",
                     out="y + f")  # fmt: skip
    else:
        given = dict(in_1="tgt", after_1="(self.norm1).forward(y)", base_2="z", after_2="(self.norm2).forward(y)",
                     out="(self.norm3).forward(z + f)")  # fmt: skip
    return _DECODER_LAYER, {**given, "activation": _activation(m, "z")}


def _stack(template: str, arguments: str) -> Callable[[Any], tuple[str, dict[str, Any]]]:
    def write(m: Any) -> tuple[str, dict[str, Any]]:
        calls = ["  layers = self.layers"]
        calls += [f'  output = (getattr(layers, "{n}")).forward(output, {arguments})' for n in m.layers._modules]
        out = "output" if m.norm is None else "(self.norm).forward(output)"
        return template, {"calls": "\n".join(calls), "out": out}

    return write


_LAYERS: list[tuple[type, Callable[[Any], tuple[str, dict[str, Any]]]]] = [
    (nn.RNNBase, _recurrent), (nn.LSTMCell, _cell), (nn.GRUCell, _cell), (nn.RNNCell, _cell), (nn.modules.batchnorm._NormBase, _norm), (nn.modules.conv._ConvTransposeNd, _transposed), (nn.MultiheadAttention, _attention),
    (nn.TransformerEncoderLayer, _encoder_layer), (nn.TransformerDecoderLayer, _decoder_layer),
    (nn.TransformerEncoder, _stack(_ENCODER, "mask, src_key_padding_mask, False")),
    (nn.TransformerDecoder, _stack(_DECODER, "memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask")),
]  # fmt: skip


def layer_code(module: Module, owner: str) -> str | None:
    """The code of the `forward` of a layer of the library, or None where its Python is translated.

    Raises:
        NotImplementedError: the layer has a setting that the code does not take.
    """
    if ".ao.nn.quantized.dynamic" in type(module).__module__:
        from ._layers_quantized import quantised_code

        found = quantised_code(module)
        if found is not None:
            return found[0].strip().format(owner=owner, **found[1]) + "\n"
    for cls, write in _LAYERS:
        # Quantised layers compute something else than those that they derive from.
        own = next(
            (
                c
                for c in type(module).__mro__
                if issubclass(c, cls) and is_library(c.__module__) and ".ao." not in c.__module__
            ),
            None,
        )
        if own is not None and type(module).forward is own.forward:  # type: ignore[attr-defined]
            template, settings = write(module)
            return template.strip().format(owner=owner, **settings) + "\n"
    return None


def parts_called(module: Module) -> list[Module]:
    """The parts whose `forward` the code of a layer calls."""
    if isinstance(module, nn.MultiheadAttention) or ".ao." in type(module).__module__:
        return []
    if isinstance(module, (nn.TransformerEncoder, nn.TransformerDecoder)):
        return [*module.layers, *([] if module.norm is None else [module.norm])]
    return [m for m in module._modules.values() if m is not None and m is not getattr(module, "activation", None)]
