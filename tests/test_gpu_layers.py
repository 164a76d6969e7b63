"""Attention and recurrent layers on the GPU device, whose kernels work in tiles and steps: against the CPU's, at sizes that
are no multiples of a tile, with hidden keys and NaN, over rows longer than a dispatch; and how many dispatches they take."""

import itertools
import math

import pytest
from conftest import need
from support import target
from support.devices import both, close

torch = target.torch
F = torch.nn.functional
pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


@pytest.fixture(autouse=True)
def gpu():
    need("gpu")


def dispatches(f):
    f()
    before = torch.gpu.stats()["dispatches"]
    f()
    return torch.gpu.stats()["dispatches"] - before


SHAPES = [
    # batch, heads, heads of keys, queries, keys, head, head of values; each tile is a shader to compile, for every kind
    ((1, 1, 1, 1, 1, 1, 1), "plain causal"),
    ((2, 3, 3, 5, 7, 4, 6), "plain causal bool added"),
    ((1, 2, 1, 33, 65, 16, 30), "plain causal bool added"),
    ((1, 1, 1, 70, 90, 64, 40), "plain causal"),
    ((1, 2, 2, 65, 31, 100, 128), "bool"),
    ((1, 2, 1, 3, 130, 256, 200), "added"),
    ((1, 1, 1, 34, 35, 129, 250), "causal"),
]


@pytest.mark.parametrize(("shape", "kind"), [(shape, kind) for shape, kinds in SHAPES for kind in kinds.split()])
def test_attention_at_any_size(shape, kind):
    b, h, g, l, s, e, d = shape
    q, k, v = torch.randn(b, h, l, e), torch.randn(b, g, s, e), torch.randn(b, g, s, d)
    masks = {"bool": torch.rand(l, s) > 0.3, "added": torch.randn(b, 1, 1, s)}

    def attention(q, k, v):
        mask = masks[kind].to(q.device) if kind in masks else None
        return F.scaled_dot_product_attention(q, k, v, mask, is_causal=kind == "causal", enable_gqa=h != g)

    close(both(attention, (q, k, v)), 2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_attention_in_other_dtypes(dtype):
    if dtype == torch.float64 and not torch.gpu.get_device_properties("gpu:0").has_float64:
        pytest.skip("a GPU without float64")
    tensors = torch.randn(2, 2, 37, 20), torch.randn(2, 2, 45, 20), torch.randn(2, 2, 45, 24)
    tolerance = {torch.float16: 2e-3, torch.bfloat16: 2e-2, torch.float64: 1e-12}[dtype]
    close(both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), tensors, dtype), tolerance)


def test_attention_of_operands_that_lie_anyhow():
    q, k, v = torch.randn(2, 9, 3, 8), torch.randn(2, 3, 8, 11), torch.randn(11, 2, 3, 5)

    def attention(q, k, v):
        return F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(2, 3), v.permute(1, 2, 0, 3)[..., 1:], scale=-0.3
        )

    close(both(attention, (q, k, v)), 1e-5)


def test_queries_without_keys_and_values_that_are_not_numbers():
    q, k, v = torch.randn(1, 1, 40, 8), torch.randn(1, 1, 50, 8), torch.randn(1, 1, 50, 8)
    mask = torch.zeros(40, 50)
    mask[3] = -math.inf
    mask[5, ::2] = -math.inf
    mask[6] = torch.finfo(torch.float32).min
    mask[39, :49] = -math.inf
    (out, *grads), (out_gpu, *grads_gpu) = both(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask.to(q.device)), (q, k, v)
    )
    assert (out_gpu[0, 0, 3] == 0).all() and (grads_gpu[0][0, 0, 3] == 0).all() and out_gpu.isfinite().all()
    close(([out, *grads], [out_gpu, *grads_gpu]), 1e-5)
    for special in (math.nan, math.inf):
        q[0, 0, 7, 2] = special
        sides = both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q, k, v))
        for out in (side[0][0, 0] for side in sides):
            assert [bool(row.isnan().any()) for row in out] == [i == 7 for i in range(40)]


def test_a_padded_mask_of_half_type_and_one_key():
    q, k, v = (torch.randn(2, 1, n, 16) for n in (9, 1, 1))
    mask = torch.tensor([[0.0], [-65504.0]]).reshape(2, 1, 1, 1)
    close(
        both(
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask.to(q.device, q.dtype)),
            (q, k, v),
            torch.float16,
        ),
        1e-3,
    )


@pytest.mark.parametrize(
    ("queries", "keys", "causal", "dtype"),
    [
        (5, 9001, False, torch.float32),
        (9001, 5, False, torch.float32),
        (5, 9001, False, torch.float16),
        (9001, 5, False, torch.float16),
        (3100, 3100, True, torch.float32),
    ],
)
def test_rows_longer_than_a_dispatch(queries, keys, causal, dtype):
    heads = 1 if causal else 2
    q, k, v = torch.randn(1, heads, queries, 6), torch.randn(1, 1, keys, 6), torch.randn(1, 1, keys, 3)

    def attention(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=True)

    close(both(attention, (q, k, v), dtype), 1e-4 if dtype == torch.float32 else 5e-3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(1, 1024), (2, 3000), (7, 1500), (40, 2100)])
def test_few_queries_of_many_keys_in_pieces(queries, keys, causal):
    q, k, v = torch.randn(2, 2, queries, 24), torch.randn(2, 1, keys, 24), torch.randn(2, 1, keys, 40)
    mask = torch.zeros(queries, keys)
    mask[0, 512:] = -math.inf
    mask[-1] = -math.inf

    def attention(q, k, v):
        added = None if causal else mask.to(q.device, q.dtype)
        return F.scaled_dot_product_attention(q, k, v, added, is_causal=causal, enable_gqa=True)

    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float16, 2e-3)):
        close(both(attention, (q, k, v), dtype), tolerance)


def test_attention_is_a_few_dispatches_and_has_no_matrix_of_scores():
    n = 1024
    q, k, v = (torch.randn(1, 1, n, 16, device="gpu", requires_grad=True) for _ in range(3))

    def step():
        torch.autograd.grad(F.scaled_dot_product_attention(q, k, v, is_causal=True).sum(), (q, k, v))

    step()
    torch.gpu.reset_peak_memory_stats()
    before = torch.gpu.memory_allocated()
    step()
    assert torch.gpu.max_memory_allocated() - before < n * n
    with torch.no_grad():
        assert dispatches(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)) == 1
    assert dispatches(step) <= 8


def test_larger_heads_are_composed():
    tensors = [torch.randn(1, 1, 5, 257) for _ in range(3)]
    close(both(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), tensors), 1e-5)


def test_second_gradients_of_attention():
    q, k, v = (torch.randn(1, 1, 3, 2, device="gpu", requires_grad=True) for _ in range(3))
    (g,) = torch.autograd.grad(F.scaled_dot_product_attention(q, k, v).square().sum(), q, create_graph=True)
    host = [t.detach().cpu().requires_grad_() for t in (q, k, v)]
    (h,) = torch.autograd.grad(F.scaled_dot_product_attention(*host).square().sum(), host[0], create_graph=True)
    a, b = torch.autograd.grad(g.sum(), v)[0].cpu(), torch.autograd.grad(h.sum(), host[2])[0]
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize(("packed", "bidirectional"), list(itertools.product([False, True], repeat=2)))
def test_recurrent_layers(kind, packed, bidirectional):
    torch.manual_seed(1)
    net = getattr(torch.nn, kind)(5, 7, num_layers=2, bidirectional=bidirectional)
    lengths = [6, 6, 4, 1]

    def run(x, *params):
        named = dict(zip((n for n, _ in net.named_parameters()), params, strict=True))
        given = torch.nn.utils.rnn.pack_padded_sequence(x, lengths) if packed else x
        out, states = torch.func.functional_call(net, named, (given,))
        out = torch.nn.utils.rnn.pad_packed_sequence(out)[0] if packed else out
        states = states if isinstance(states, tuple) else (states,)
        return torch.cat([out.flatten(), *(s.flatten() for s in states)])

    close(both(run, [torch.randn(6, 4, 5), *net.parameters()]), 2e-5)


def test_recurrent_layers_with_states_and_one_step():
    cell = torch.nn.LSTMCell(3, 4)
    h, c = torch.randn(2, 4), torch.randn(2, 4)

    def run(x, h, c, *params):
        named = dict(zip((n for n, _ in cell.named_parameters()), params, strict=True))
        return torch.cat(torch.func.functional_call(cell, named, (x, (h, c))))

    close(both(run, [torch.randn(2, 3), h, c, *cell.parameters()]), 1e-5)


@pytest.mark.parametrize(("kind", "more"), [("LSTM", 2), ("GRU", 2), ("RNN", 2)])
def test_a_step_is_two_dispatches(kind, more):
    net = getattr(torch.nn, kind)(3, 4).to("gpu")

    def count(steps, train):
        x = torch.randn(steps, 2, 3, device="gpu")

        def run():
            with torch.set_grad_enabled(train):
                out = net(x)[0]
            if train:
                torch.autograd.grad(out.sum(), list(net.parameters()))

        return dispatches(run)

    assert count(9, False) - count(5, False) == 4 * more
    assert count(9, True) - count(5, True) == 8 * more
