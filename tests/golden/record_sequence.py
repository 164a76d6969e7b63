"""Records attention, Transformer and recurrent modules: python tests/golden/record_sequence.py > tests/golden/sequence.json

A case makes a module with fixed parameters and returns what it computes: outputs, then gradients of inputs and parameters.
An error is recorded with its class and message.
"""

import json
import warnings

import torch


def fixed(torch, module):
    """The module in float64 with every parameter set to a pattern."""
    module = module.double()
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            pattern = torch.arange(p.numel(), dtype=torch.float64).mul(0.7).add(k).sin().mul(0.5)
            p.copy_(pattern.reshape(p.shape))
    return module


def wave(torch, *shape, phase=0.0):
    """A leaf of irregular values."""
    n = 1
    for size in shape:
        n *= size
    return torch.arange(n, dtype=torch.float64).mul(1.3).add(phase).sin().reshape(shape).requires_grad_()


def tensors(found):
    if found is None:
        return []
    if isinstance(found, (list, tuple)):
        return [t for part in found for t in tensors(part)]
    return [found]


def graded(torch, found, leaves):
    """Outputs, and the gradients of a weighted sum of them."""
    outputs = [t for t in tensors(found) if t.is_floating_point()]
    loss = 0.0
    for k, t in enumerate(outputs):
        weights = torch.arange(t.numel(), dtype=torch.float64).add(k).mul(0.3).cos().reshape(t.shape)
        loss = loss + (t * weights).sum()
    grads = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [t.tolist() for t in outputs] + [None if g is None else g.tolist() for g in grads]


def run(torch, module, *inputs, **options):
    module = fixed(torch, module)
    found = module(*inputs, **options)
    floats = [t for t in tensors(inputs) if hasattr(t, "requires_grad") and t.requires_grad]
    return {"repr": repr(module), "state": [[k, list(v.shape)] for k, v in module.state_dict().items()],
            "values": graded(torch, found, [*floats, *module.parameters()])}  # fmt: skip


def attention(torch, q, k=None, v=None, options=None, **made):
    nn = torch.nn
    k = q if k is None else k
    v = k if v is None else v
    return run(torch, nn.MultiheadAttention(4, 2, **made), q, k, v, **(options or {}))


def sdpa(torch, *shapes, phase=(0.0, 1.0, 2.0), **options):
    q, k, v = (wave(torch, *s, phase=p) for s, p in zip(shapes, phase, strict=True))
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)
    return {"values": graded(torch, found, [q, k, v])}


def padding(torch, *rows):
    return torch.tensor(rows, dtype=torch.bool)


def causal(torch, n):
    return torch.nn.Transformer.generate_square_subsequent_mask(n, dtype=torch.float64)


def layer(torch, kind, **made):
    return getattr(torch.nn, kind)(4, 2, dim_feedforward=5, dropout=0.0, **made)


def transformer(torch, **options):
    nn = torch.nn
    net = nn.Transformer(4, 2, 1, 1, 5, dropout=0.0, **options)
    return net


def packed(torch, x, lengths, **options):
    return torch.nn.utils.rnn.pack_padded_sequence(x, lengths, **options)


def recurrent(torch, module, x, *state):
    """A network over packed sequences: the data of the output, then the states."""
    module = fixed(torch, module)
    output, last = module(x, *state)
    return {"values": graded(torch, (output.data, last), [*module.parameters()]),
            "sizes": output.batch_sizes.tolist()}  # fmt: skip


L, S = 3, 5
CASES = {
    "sdpa": lambda t: sdpa(t, (2, 2, L, 4), (2, 2, S, 4), (2, 2, S, 6)),
    "sdpa causal": lambda t: sdpa(t, (1, 2, L, 4), (1, 2, S, 4), (1, 2, S, 4), is_causal=True),
    "sdpa bool mask": lambda t: sdpa(t, (1, 2, 2, 4), (1, 2, 3, 4), (1, 2, 3, 4),
                                     attn_mask=padding(t, [True, False, True], [False, False, False])),
    "sdpa float mask": lambda t: sdpa(t, (2, L, 4), (2, S, 4), (2, S, 4), attn_mask=wave(t, L, S, phase=3.0).detach(), scale=0.3),
    "sdpa grouped": lambda t: sdpa(t, (1, 4, L, 2), (1, 2, S, 2), (1, 2, S, 2), enable_gqa=True),
    "sdpa broadcast": lambda t: sdpa(t, (2, 1, L, 4), (1, 3, S, 4), (1, 3, S, 4)),
    "sdpa negative scale": lambda t: sdpa(t, (L, 4), (S, 4), (S, 4), scale=-0.5),
    "mha": lambda t: attention(t, wave(t, L, 2, 4)),
    "mha batch first": lambda t: attention(t, wave(t, 2, L, 4), batch_first=True),
    "mha unbatched": lambda t: attention(t, wave(t, L, 4)),
    "mha no weights": lambda t: attention(t, wave(t, L, 2, 4), options={"need_weights": False}),
    "mha per head": lambda t: attention(t, wave(t, L, 2, 4), options={"average_attn_weights": False}),
    "mha cross": lambda t: attention(t, wave(t, L, 2, 4), wave(t, S, 2, 4, phase=1.0)),
    "mha cross sizes": lambda t: attention(t, wave(t, L, 2, 4), wave(t, S, 2, 3, phase=1.0), wave(t, S, 2, 5, phase=2.0),
                                           kdim=3, vdim=5),
    "mha three": lambda t: attention(t, wave(t, L, 2, 4), wave(t, S, 2, 4, phase=1.0), wave(t, S, 2, 4, phase=2.0), bias=False),
    "mha bias kv": lambda t: attention(t, wave(t, L, 2, 4), add_bias_kv=True, add_zero_attn=True,
                                       options={"key_padding_mask": padding(t, [False, True, False], [False, False, True]),
                                                "attn_mask": padding(t, [False] * 3, [True, False, False], [False, True, False])}),
    "mha padding": lambda t: attention(t, wave(t, L, 2, 4), options={"key_padding_mask": padding(t, [False, True, True], [False] * 3),
                                                                     "need_weights": False}),
    "mha float mask": lambda t: attention(t, wave(t, L, 2, 4), options={"attn_mask": wave(t, 4, L, L, phase=3.0).detach()}),
    "mha causal": lambda t: attention(t, wave(t, L, 2, 4), options={"attn_mask": causal(t, L), "is_causal": True,
                                                                    "need_weights": False}),
    "encoder layer": lambda t: run(t, layer(t, "TransformerEncoderLayer"), wave(t, L, 2, 4)),
    "encoder layer norm first": lambda t: run(t, layer(t, "TransformerEncoderLayer", norm_first=True, activation="gelu",
                                                       batch_first=True, bias=False), wave(t, 2, L, 4),
                                              src_key_padding_mask=padding(t, [False, False, True], [False] * 3)),
    "decoder layer": lambda t: run(t, layer(t, "TransformerDecoderLayer", activation=t.tanh), wave(t, L, 2, 4),
                                   wave(t, S, 2, 4, phase=1.0), tgt_mask=causal(t, L)),
    "decoder layer norm first": lambda t: run(t, layer(t, "TransformerDecoderLayer", norm_first=True), wave(t, L, 4),
                                              wave(t, S, 4, phase=1.0)),
    "encoder": lambda t: run(t, t.nn.TransformerEncoder(layer(t, "TransformerEncoderLayer"), 2, t.nn.LayerNorm(4)),
                             wave(t, L, 2, 4), mask=causal(t, L)),
    "decoder": lambda t: run(t, t.nn.TransformerDecoder(layer(t, "TransformerDecoderLayer"), 2), wave(t, L, 2, 4),
                             wave(t, S, 2, 4, phase=1.0)),
    "transformer": lambda t: run(t, transformer(t), wave(t, S, 2, 4), wave(t, L, 2, 4, phase=1.0), tgt_mask=causal(t, L)),
    "transformer batch first": lambda t: run(t, transformer(t, batch_first=True, norm_first=True), wave(t, 2, S, 4),
                                             wave(t, 2, L, 4, phase=1.0), tgt_is_causal=True, tgt_mask=causal(t, L)),
    "causal mask": lambda t: t.nn.Transformer.generate_square_subsequent_mask(3).tolist(),
    "lstm": lambda t: run(t, t.nn.LSTM(2, 3), wave(t, 4, 2, 2)),
    "lstm deep": lambda t: run(t, t.nn.LSTM(2, 3, 2, bidirectional=True, batch_first=True, bias=False), wave(t, 2, 4, 2)),
    "lstm states": lambda t: run(t, t.nn.LSTM(2, 3), wave(t, 4, 2, 2), (wave(t, 1, 2, 3, phase=1.0), wave(t, 1, 2, 3, phase=2.0))),
    "lstm projection": lambda t: run(t, t.nn.LSTM(2, 3, 2, proj_size=2), wave(t, 4, 2, 2)),
    "lstm unbatched": lambda t: run(t, t.nn.LSTM(2, 3, bidirectional=True), wave(t, 4, 2)),
    "lstm wide": lambda t: run(t, t.nn.LSTM(3, 18), wave(t, 3, 11, 3)),
    "gru": lambda t: run(t, t.nn.GRU(2, 3), wave(t, 4, 2, 2)),
    "gru deep": lambda t: run(t, t.nn.GRU(2, 3, 2, bidirectional=True), wave(t, 4, 2, 2), wave(t, 4, 2, 3, phase=1.0)),
    "gru no bias": lambda t: run(t, t.nn.GRU(2, 17, bias=False), wave(t, 3, 9, 2)),
    "rnn": lambda t: run(t, t.nn.RNN(2, 3), wave(t, 4, 2, 2)),
    "rnn relu": lambda t: run(t, t.nn.RNN(2, 3, 2, nonlinearity="relu", bidirectional=True), wave(t, 2, 4, 2), wave(t, 4, 4, 3)),
    "lstm packed": lambda t: recurrent(t, t.nn.LSTM(2, 3, 2, bidirectional=True), packed(t, wave(t, 4, 3, 2), [4, 2, 1])),
    "lstm packed unsorted": lambda t: recurrent(t, t.nn.LSTM(2, 3), packed(t, wave(t, 3, 4, 2), [2, 4, 1], batch_first=True,
                                                                           enforce_sorted=False),
                                                (wave(t, 1, 3, 3), wave(t, 1, 3, 3, phase=1.0))),
    "gru packed": lambda t: recurrent(t, t.nn.GRU(2, 3, bidirectional=True), packed(t, wave(t, 4, 3, 2), [4, 2, 1])),
    "rnn packed": lambda t: recurrent(t, t.nn.RNN(2, 3), packed(t, wave(t, 4, 3, 2), [4, 4, 2])),
    "lstm cell": lambda t: run(t, t.nn.LSTMCell(2, 3), wave(t, 4, 2), (wave(t, 4, 3, phase=1.0), wave(t, 4, 3, phase=2.0))),
    "lstm cell alone": lambda t: run(t, t.nn.LSTMCell(2, 3, bias=False), wave(t, 2)),
    "gru cell": lambda t: run(t, t.nn.GRUCell(2, 3), wave(t, 4, 2), wave(t, 4, 3, phase=1.0)),
    "rnn cell": lambda t: run(t, t.nn.RNNCell(2, 3, nonlinearity="relu"), wave(t, 4, 2)),
    "odd heads": lambda t: t.nn.MultiheadAttention(4, 3),
    "no heads": lambda t: t.nn.MultiheadAttention(4, 0),
    "mask of integers": lambda t: attention(t, wave(t, L, 2, 4), options={"attn_mask": t.ones(3, 3, dtype=t.int64)}),
    "mask of a wrong shape": lambda t: attention(t, wave(t, L, 2, 4), options={"attn_mask": t.ones(3, 2, dtype=t.bool)}),
    "mask of four dimensions": lambda t: attention(t, wave(t, L, 2, 4), options={"attn_mask": t.ones(1, 1, 3, 3, dtype=t.bool)}),
    "padding of a wrong shape": lambda t: attention(t, wave(t, L, 2, 4), options={"key_padding_mask": padding(t, [True] * 3)}),
    "query of four dimensions": lambda t: attention(t, wave(t, 1, L, 2, 4)),
    "query of a wrong size": lambda t: attention(t, wave(t, L, 2, 6)),
    "causal without a mask": lambda t: attention(t, wave(t, L, 2, 4), options={"is_causal": True}),
    "keys and values differ": lambda t: attention(t, wave(t, L, 2, 4), wave(t, S, 2, 4), wave(t, L, 2, 4)),
    "unknown activation": lambda t: layer(t, "TransformerEncoderLayer", activation="swish"),
    "batches differ": lambda t: run(t, transformer(t), wave(t, S, 2, 4), wave(t, L, 3, 4)),
    "features differ": lambda t: run(t, transformer(t), wave(t, S, 2, 6), wave(t, L, 2, 4)),
    "hidden of a wrong size": lambda t: run(t, t.nn.GRU(2, 3), wave(t, 4, 2, 2), wave(t, 1, 2, 4)),
    "cells of a wrong size": lambda t: run(t, t.nn.LSTM(2, 3), wave(t, 4, 2, 2), (wave(t, 1, 2, 3), wave(t, 1, 1, 3))),
    "states without a batch": lambda t: run(t, t.nn.LSTM(2, 3), wave(t, 4, 2, 2), (wave(t, 1, 3), wave(t, 1, 3))),
    "hidden without a batch": lambda t: run(t, t.nn.GRU(2, 3), wave(t, 4, 2, 2), wave(t, 1, 3)),
    "input of a wrong size": lambda t: run(t, t.nn.LSTM(2, 3), wave(t, 4, 2, 5)),
    "input of four dimensions": lambda t: run(t, t.nn.RNN(2, 3), wave(t, 1, 4, 2, 2)),
    "input of another dtype": lambda t: t.nn.GRU(2, 3)(wave(t, 4, 2, 2)),
    "hidden size zero": lambda t: t.nn.LSTM(2, 0),
    "hidden size of a float": lambda t: t.nn.LSTM(2, 3.0),
    "layers zero": lambda t: t.nn.GRU(2, 3, 0),
    "projection of a gru": lambda t: t.nn.GRU(2, 3, proj_size=1),
    "projection too large": lambda t: t.nn.LSTM(2, 3, proj_size=3),
    "nonlinearity": lambda t: t.nn.RNN(2, 3, nonlinearity="gelu"),
    "dropout of two": lambda t: t.nn.LSTM(2, 3, dropout=2.0),
    "cell of three dimensions": lambda t: run(t, t.nn.LSTMCell(2, 3), wave(t, 1, 4, 2)),
    "cell of a wrong size": lambda t: run(t, t.nn.GRUCell(2, 3), wave(t, 4, 3)),
    "cell of another batch": lambda t: run(t, t.nn.GRUCell(2, 3), wave(t, 4, 2), wave(t, 5, 3)),
    "nonlinearity of a cell": lambda t: run(t, t.nn.RNNCell(2, 3, nonlinearity="gelu"), wave(t, 4, 2)),
    "lengths not sorted": lambda t: packed(t, wave(t, 4, 2, 2), [1, 2]),
    "lengths of zero": lambda t: packed(t, wave(t, 4, 2, 2), [2, 0]),
}  # fmt: skip


def outcome(torch, case):
    """What a case computes, or its error."""
    try:
        return {"value": case(torch)}
    except Exception as error:
        return {"error": type(error).__name__, "message": str(error).split("\n")[0]}


def main():
    warnings.simplefilter("ignore")
    found = {name: outcome(torch, case) for name, case in CASES.items()}
    print(json.dumps({"torch": torch.__version__.split("+")[0], "cases": found}))


if __name__ == "__main__":
    main()
