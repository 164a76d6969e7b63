"""Attention, Transformer and recurrent modules: values, gradients, states and errors recorded from PyTorch.

`golden/sequence.json` holds the recorded results, `golden/record_sequence.py` their cases.
"""

import json
import math
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "sequence.json").read_text())["cases"]
RECORDER = {}
exec((GOLDEN / "record_sequence.py").read_text().replace("import torch\n", ""), RECORDER)


def close(got, want, tol=1e-9):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tol)
    elif isinstance(want, float):
        assert math.isclose(got, want, rel_tol=tol, abs_tol=tol) or (got != got and want != want), f"{got} != {want}"
    else:
        assert got == want


def test_every_case_is_recorded():
    assert list(RECORD) == list(RECORDER["CASES"])


@pytest.mark.parametrize("name", RECORDER["CASES"])
@pytest.mark.filterwarnings("ignore")
def test_recorded(torch, name):
    want, case = RECORD[name], RECORDER["CASES"][name]
    if "error" in want:
        with pytest.raises(Exception) as caught:
            case(torch)
        assert type(caught.value).__name__ == want["error"]
        assert want["message"] in str(caught.value).replace("rustgrad.", "torch.")
        return
    got = case(torch)
    for key in want["value"] if isinstance(got, dict) else ():
        close(got[key], want["value"][key])
    if not isinstance(got, dict):
        close(got, want["value"])


def attend(torch, q, k, v, mask=None, causal=False):
    """Attention row by row, by the formula."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        scores = torch.where(seen, scores, -math.inf)
    if mask is not None:
        scores = scores + mask
    return torch.softmax(scores, -1) @ v


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("sizes", [(1, 1), (63, 65), (64, 64), (130, 200), (200, 70), (20, 300), (300, 513)])
def test_attention_in_blocks(torch, sizes, causal):
    """Block edges: the fused kernel and the formula agree, gradients included."""
    rows, cols = sizes
    torch.manual_seed(0)
    q = torch.randn(2, 4, rows, 5, dtype=torch.float64).requires_grad_()
    k, v = (torch.randn(2, 4, cols, w, dtype=torch.float64).requires_grad_() for w in (5, 19))
    mask = None if causal else torch.randn(2, 1, rows, cols, dtype=torch.float64)
    got = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, is_causal=causal)
    want = attend(torch, q, k, v, mask, causal)
    torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-12)
    weights = torch.randn(got.shape, dtype=torch.float64)
    for a, b in zip(*(torch.autograd.grad((y * weights).sum(), (q, k, v)) for y in (got, want)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_attention_of_grouped_heads(torch):
    q = torch.randn(2, 6, 70, 4).requires_grad_()
    k, v = (torch.randn(2, 2, 70, 4).requires_grad_() for _ in range(2))
    got = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
    want = attend(torch, q, k.repeat_interleave(3, 1), v.repeat_interleave(3, 1), causal=True)
    torch.testing.assert_close(got, want)
    for a, b in zip(*(torch.autograd.grad(y.square().sum(), (q, k, v)) for y in (got, want)), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_queries_without_keys(torch, device):
    """A fully masked query gives zeros, and passes no gradient."""
    q, k, v = (torch.randn(1, 2, n, 4, device=device).requires_grad_() for n in (70, 80, 80))
    mask = torch.ones(70, 80, dtype=torch.bool, device=device)
    mask[3] = False
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)
    y.sum().backward()
    assert y[:, :, 3].abs().sum() == 0 and q.grad[:, :, 3].abs().sum() == 0
    assert all(t.grad.isfinite().all() for t in (q, k, v)) and y[:, :, 4].abs().sum() > 0


@pytest.mark.parametrize("cols", [5, 300])
def test_attention_of_nan_and_infinity(torch, cols):
    """A NaN reaches its query's results alone, also where all other keys are masked; so do keys without a mask."""
    inf, nan = float("inf"), float("nan")
    q, k, v = (torch.randn(1, 1, n, 4) for n in (6, cols, cols))
    mask = torch.zeros(6, cols)
    mask[0, cols - 1] = nan
    mask[1] = -inf
    mask[1, cols - 1] = nan
    mask[2] = -inf
    mask[2, cols - 1] = 0.0
    mask[3] = -inf
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)[0, 0]
    assert y[:2].isnan().all() and y[2:].isfinite().all()
    torch.testing.assert_close(y[2], v[0, 0, cols - 1])
    assert (y[3] == 0).all()
    torch.testing.assert_close(y[4:], attend(torch, q, k, v)[0, 0, 4:])


@pytest.mark.parametrize("least", [-1e9, -1e30, "lowest"])
def test_attention_of_masks_with_large_finite_numbers(torch, least):
    """A query whose keys are all masked by one finite number sees them all alike; others see only what is not masked."""
    least = torch.finfo(torch.float32).min if least == "lowest" else least
    q, k, v = (torch.randn(1, 1, n, 4) for n in (3, 300, 300))
    mask = torch.zeros(3, 300)
    mask[0] = least
    mask[1, 5:] = least
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask)[0, 0]
    torch.testing.assert_close(y[0], v[0, 0].mean(0))
    torch.testing.assert_close(y[1], attend(torch, q[:, :, 1:2], k[:, :, :5], v[:, :, :5])[0, 0, 0])
    torch.testing.assert_close(y[2], attend(torch, q, k, v)[0, 0, 2])


def test_attention_mask_with_a_gradient(torch, device):
    q, k, v = (torch.randn(1, 1, 3, 2, device=device) for _ in range(3))
    mask = torch.zeros(3, 3, device=device).requires_grad_()
    torch.nn.functional.scaled_dot_product_attention(q, k, v, mask).square().sum().backward()
    assert mask.grad.abs().sum() > 0


def test_attention_second_derivative(torch):
    q, k, v = (torch.randn(1, 2, 3, 2, dtype=torch.float64).requires_grad_() for _ in range(3))

    def attention(*args):
        return torch.nn.functional.scaled_dot_product_attention(*args, is_causal=True)

    assert torch.autograd.gradcheck(attention, (q, k, v)) and torch.autograd.gradgradcheck(attention, (q, k, v))


def test_attention_dropout(torch, device):
    q = torch.randn(2, 2, 8, 4, device=device)
    v = torch.ones(2, 2, 200, 4, device=device)
    k = torch.randn(2, 2, 200, 4, device=device)
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert abs(y.mean().item() - 1) < 0.2 and y.std().item() > 0.01


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh"])
def test_recurrent_second_derivative(torch, name):
    net = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN}[name](
        2, 3, bidirectional=True
    ).double()
    x = torch.randn(3, 2, 2, dtype=torch.float64).requires_grad_()
    h, c = (torch.randn(2, 2, 3, dtype=torch.float64).requires_grad_() for _ in range(2))

    def run(x, h, c, *weights):
        state = (h, c) if name == "lstm" else h
        return getattr(torch, name)(x, state, weights, True, 1, 0.0, True, True, False)

    states = (h, c) if name == "lstm" else (h, torch.zeros(1, dtype=torch.float64))
    assert torch.autograd.gradcheck(run, (x, *states, *net.parameters()))
    assert torch.autograd.gradgradcheck(run, (x, *states, *net.parameters()))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_on_a_device(torch, device, kind):
    """The kernel of the CPU and the steps of the GPU agree, padded and packed."""
    torch.manual_seed(0)
    net = getattr(torch.nn, kind)(3, 20, 2, bidirectional=True)
    x = torch.randn(5, 4, 3)
    other = getattr(torch.nn, kind)(3, 20, 2, bidirectional=True).to(device)
    other.load_state_dict(net.state_dict())
    pack = torch.nn.utils.rnn.pack_padded_sequence
    for given in (lambda t: t, lambda t: pack(t, [5, 3, 3, 1])):
        found = []
        for model, where in ((net, "cpu"), (other, device)):
            output, state = model(given(x.to(where)))
            output = getattr(output, "data", output)
            last = state[0] if isinstance(state, tuple) else state
            (output.square().sum() + last.sum()).backward()
            found.append([output, last, *(p.grad for p in model.parameters())])
            model.zero_grad()
        for a, b in zip(*found, strict=True):
            torch.testing.assert_close(a, b.cpu(), rtol=1e-4, atol=1e-5)


def test_recurrent_dropout_and_names(torch):
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        torch.nn.LSTM(2, 3, dropout=0.5)
    net = torch.nn.LSTM(2, 3, 2, dropout=1.0, proj_size=2, bidirectional=True)
    x = torch.randn(4, 2, 2)
    assert not torch.equal(net(x)[0], net.eval()(x)[0]) and net.flatten_parameters() is None
    assert [len(names) for names in net.all_weights] == [5] * 4
    assert net.all_weights[3][4] is net.weight_hr_l1_reverse


def test_the_state_of_an_lstm_cell_is_a_pair(torch):
    with pytest.raises(TypeError, match="hx"):
        torch.nn.LSTMCell(2, 3)(torch.ones(1, 2), torch.ones(2, 3))


def test_a_part_of_a_block_mask(torch, device):
    """Batches, heads and blocks of queries by position: a program decodes one query after another with one mask."""
    flex = __import__(f"{torch.__name__}.nn.attention.flex_attention", fromlist=["flex_attention"])

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    mask, every = flex.create_block_mask(causal, 2, 3, 10, 10, device=device, BLOCK_SIZE=4), slice(None)
    third = torch.tensor([2], device=device)
    shapes = [(0, (1, 3, 10, 10)), ((0, 1), (1, 1, 10, 10)), ((every, every, -1), (2, 3, 2, 10))]
    shapes += [((every, every, 1), (2, 3, 4, 10)), ((every, every, slice(0, 2)), (2, 3, 8, 10))]
    shapes += [((every, every, slice(None, None, 2)), (2, 3, 6, 10)), ((every, every, third), (2, 3, 4, 10))]
    for index, shape in shapes:
        part = mask[index]
        assert part.shape == shape and torch.equal(
            part.to_dense(), mask.to_dense()[index].reshape(part.to_dense().shape)
        )
    with pytest.raises(IndexError):
        mask[0, 0, 0, 0]
    q, k, v = (torch.randn(2, 3, 10, 4, device=device) for _ in range(3))
    whole = flex.flex_attention(q, k, v, block_mask=mask)
    part = mask[:, :, 9 // 4]
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        part.mask_mod(*(torch.zeros(1),) * 4)
    part.mask_mod = lambda b, h, q_idx, kv_idx: causal(b, h, q_idx + 9, kv_idx)
    part.seq_lengths = (1, 10)
    torch.testing.assert_close(flex.flex_attention(q[:, :, 9:], k, v, block_mask=part), whole[:, :, 9:])


def test_flex_attention(torch, device):
    flex = __import__(f"{torch.__name__}.nn.attention.flex_attention", fromlist=["flex_attention"])
    q, k, v = (torch.randn(2, 2, 6, 4, device=device) for _ in range(3))

    def causal(b, h, q_idx, kv_idx):
        return q_idx >= kv_idx

    def near(b, h, q_idx, kv_idx):
        return q_idx - kv_idx < 3

    mask = flex.create_block_mask(flex.and_masks(causal, near), None, None, 6, 6, device=device, BLOCK_SIZE=2)
    dense = flex.create_mask(flex.and_masks(causal, near), None, None, 6, 6, device=device)
    assert mask.to_dense()[0, 0].tolist() == [[1, 0, 0], [1, 1, 0], [0, 1, 1]] and mask.shape == (1, 1, 6, 6)
    want = torch.nn.functional.scaled_dot_product_attention(q, k, v, dense)
    torch.testing.assert_close(flex.flex_attention(q, k, v, block_mask=mask), want)
    got, sums = flex.flex_attention(q, k, v, lambda score, b, h, i, j: score + (i - j) * (h + 1), return_lse=True)
    place = torch.arange(6, device=device)
    bias = (place[:, None] - place) * torch.arange(1, 3, device=device)[:, None, None]
    torch.testing.assert_close(got, torch.nn.functional.scaled_dot_product_attention(q, k, v, bias.float()))
    assert sums.shape == (2, 2, 6)
    with pytest.raises(ValueError, match="same number of heads but got Hq=2 and Hkv=1"):
        flex.flex_attention(q, k[:, :1], v[:, :1])
    attention = torch.nn.attention
    with attention.sdpa_kernel(attention.SDPBackend.MATH):
        pass
    with (
        pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"),
        attention.sdpa_kernel("math"),
    ):
        pass


def test_attention_over_packed_sequences(torch, device):
    varlen = __import__(f"{torch.__name__}.nn.attention.varlen", fromlist=["varlen_attn"])
    q = torch.randn(5, 4, 8, device=device, requires_grad=True)
    k, v = (torch.randn(7, 2, 8, device=device) for _ in range(2))
    starts, key_starts = torch.tensor([0, 2, 5], device=device), torch.tensor([0, 3, 7], device=device)
    attend = torch.nn.functional.scaled_dot_product_attention
    for window, corner in (((-1, -1), None), ((-1, 0), 0), ((1, 0), 0), ((0, 0), 0), ((2, 1), 1)):
        made, sums = varlen.varlen_attn(
            *(q, k, v, starts, key_starts, 3, 4),
            window_size=window,
            enable_gqa=True,
            return_aux=varlen.AuxRequest(lse=True),
        )
        for (a, b), (c, d) in (((0, 2), (0, 3)), ((2, 5), (3, 7))):
            part = (q[a:b].transpose(0, 1), *(t[c:d].transpose(0, 1).repeat_interleave(2, 0) for t in (k, v)))
            # The last query is beside the last key.
            mask = torch.ones(b - a, d - c, dtype=torch.bool, device=device)
            if corner is not None:
                place = (d - c) - (b - a)
                mask = mask.tril(place + window[1])
                mask = mask if window[0] < 0 else mask.triu(place - window[0])
            torch.testing.assert_close(made[a:b], attend(*part, mask).transpose(0, 1))
            scores = (part[0] @ part[1].mT / 8**0.5).masked_fill(~mask, -float("inf"))
            torch.testing.assert_close(sums[:, a:b], scores.logsumexp(-1))
    assert not sums.requires_grad and torch.autograd.grad(made.sum(), q)[0].shape == q.shape
    out = torch.empty(5, 4, 8, device=device)
    arguments = (q, k, v, starts, key_starts, 3, 4)
    assert varlen.varlen_attn_out(out, *arguments, window_size=(2, 1), enable_gqa=True) is out
    torch.testing.assert_close(out, made.detach())
    with pytest.raises(ValueError, match="Try setting enable_gqa=True"):
        varlen.varlen_attn(*arguments)
    with pytest.raises(RuntimeError, match="seqused_k is an inference-only parameter"):
        varlen.varlen_attn(*arguments, enable_gqa=True, seqused_k=torch.tensor([1, 1]))
    with pytest.raises(ValueError, match="at most max_k=3, got one of 4"):
        varlen.varlen_attn(q, k, v, starts, key_starts, 3, 3, enable_gqa=True)


def test_attention_over_pages_of_keys(torch, device):
    varlen = __import__(f"{torch.__name__}.nn.attention.varlen", fromlist=["varlen_attn"])
    q, pages = torch.randn(5, 2, 8, device=device), torch.randn(2, 6, 2, 2, 8, device=device)
    starts, used = torch.tensor([0, 2, 5], device=device), torch.tensor([3, 4], device=device)
    table = torch.tensor([[3, 0], [5, 1]], dtype=torch.int32, device=device)
    made = varlen.varlen_attn(q, *pages, starts, None, 3, 4, seqused_k=used, block_table=table, window_size=(-1, 0))
    k, v = (torch.cat([p[3], p[0][:1], p[5], p[1]]) for p in pages)
    key_starts = torch.tensor([0, 3, 7], device=device)
    assert torch.equal(made, varlen.varlen_attn(q, k, v, starts, key_starts, 3, 4, window_size=(-1, 0)))
    fewer = varlen.varlen_attn(q, k, v, starts, key_starts, 3, 4, seqused_k=torch.tensor([1, 4], device=device))
    torch.testing.assert_close(fewer[:2], v[:1].expand(2, 2, 8))
    with pytest.raises(ValueError, match="block_table requires seqused_k"):
        varlen.varlen_attn(q, *pages, starts, None, 3, 4, block_table=table)
