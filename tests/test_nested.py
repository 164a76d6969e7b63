"""Nested tensors: every op beside the same op on each sequence, gradients included; structure, printing, what is refused."""

import copy
import io
import pickle

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad does where PyTorch has less, or says it otherwise")
LENGTHS = (2, 3, 1)


def sequences(torch, *tail, dtype=None, seed=0, lengths=LENGTHS):
    torch.manual_seed(seed)
    return [torch.randn(n, *tail, dtype=dtype or torch.float64) for n in lengths]


def jagged(torch, parts, **options):
    return torch.nested.as_nested_tensor(parts, layout=torch.jagged, **options)


def close(torch, nested, parts):
    assert nested.is_nested and nested.size(0) == len(parts)
    for one, wanted in zip(nested.unbind(), parts, strict=True):
        torch.testing.assert_close(one, wanted)


# --- structure -----------------------------------------------------------------------------------------------
def test_structure(torch):
    a = torch.nested.nested_tensor(sequences(torch, 4), layout=torch.jagged)
    b = torch.nested.nested_tensor(sequences(torch, 4), layout=torch.jagged)
    assert a.is_nested and a.layout is torch.jagged and (a.dim(), len(a), a.numel()) == (3, 3, 24)
    assert a.values().shape == (6, 4) and a.offsets().tolist() == [0, 2, 5, 6] and a.lengths() is None
    assert a.shape[0] == 3 and a.shape[2] == 4 and isinstance(a.size(1), torch.SymInt)
    assert a.shape == (a * 2).shape and a.shape != b.shape and a.size(1) != b.size(1) and a.size(1) != 2
    same = torch.nested.nested_tensor_from_jagged(torch.ones(6, 2), a.offsets())
    assert same.size(1) == a.size(1) and hash(same.size(1)) == hash(a.size(1)) and same.shape != a.shape
    j = a.size(1)
    assert j >= 2 and j > 1 and not j < 2 and (j * 3) == 3 * j and str(3 * j) == f"3*{j}" and (j * 2) != j
    assert a.stride() == (4 * j, 4, 1) and a.is_contiguous() and not a.transpose(1, 2).is_contiguous()
    assert repr(a) == f"NestedTensor(size=(3, {j}, 4), offsets=tensor([0, 2, 5, 6]), contiguous=True)"
    for call in (lambda: j > 3, lambda: j < b.size(1), lambda: j * b.size(1)):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: a[3], lambda: a.size(3), lambda: a.sum(5)):
        with pytest.raises(IndexError):
            call()


@own
def test_sizes_keep_ragged_items(torch):
    a = jagged(torch, sequences(torch, 4))
    j = a.size(1)
    assert a.shape[1:] == (j, 4) and isinstance(a.shape[1:], torch.Size)
    assert torch.Size([2, j]) + (3,) == (2, j, 3) and a.shape.numel() == 12 * j
    with pytest.raises(TypeError, match="is not one number"):
        torch.zeros(a.shape)


def test_printing_of_components(torch):
    nt = torch.nested.nested_tensor([torch.arange(2.0), torch.arange(3.0)], requires_grad=True)
    assert repr(nt.detach()) == "nested_tensor([\n  tensor([0., 1.]),\n  tensor([0., 1., 2.])\n])"
    assert repr(nt).endswith("tensor([0., 1., 2.], requires_grad=True)\n], requires_grad=True)")
    assert repr(nt * 2).endswith("], grad_fn=<MulBackward0>)")
    assert (nt.dim(), nt.numel(), nt.size(0), nt.layout) == (2, 5, 2, torch.strided) and nt.is_nested
    with pytest.raises(RuntimeError, match="irregular"):
        nt.size(1)
    with pytest.raises(RuntimeError):
        _ = nt.shape


def test_constructors(torch):
    N = torch.nested
    parts = [torch.ones(2, 3, requires_grad=True), torch.ones(1, 3)]
    copied = N.nested_tensor(parts, layout=torch.jagged, dtype=torch.float64, requires_grad=True)
    assert copied.is_leaf and copied.requires_grad and copied.dtype == torch.float64
    kept = N.as_nested_tensor(parts, layout=torch.jagged)
    (kept * 2).values().sum().backward()
    assert parts[0].grad.tolist() == [[2.0] * 3] * 2 and not kept.is_leaf
    assert N.nested_tensor([[1, 2], [3]]).dtype == torch.int64
    assert N.nested_tensor([torch.ones(2, 2), torch.ones(2, 3)], layout=torch.jagged)._ragged_idx == 2
    rows = torch.arange(6.0).view(2, 3)
    for layout in (torch.strided, torch.jagged):
        close(torch, N.as_nested_tensor(rows, layout=layout), list(rows))
    picked = N.masked_select(rows, torch.tensor([[True, False, True], [False, True, False]]))
    close(torch, picked, [torch.tensor([0.0, 2.0]), torch.tensor([4.0])])
    table = torch.arange(12.0).view(3, 4)
    narrow = N.narrow(table, 1, torch.tensor([0, 1, 0]), torch.tensor([1, 2, 3]), layout=torch.jagged)
    close(torch, narrow, [table[0, :1], table[1, 1:3], table[2, :3]])
    assert narrow.lengths().tolist() == [1, 2, 3] and not narrow.is_contiguous()
    assert narrow.contiguous().is_contiguous() and narrow.numel() == 6
    close(torch, narrow.contiguous(), [table[0, :1], table[1, 1:3], table[2, :3]])
    assert N.nested_tensor_from_jagged(torch.ones(5, 2), lengths=torch.tensor([2, 3])).offsets().tolist() == [0, 2, 5]
    assert N.as_nested_tensor(kept, layout=torch.jagged) is kept


def test_constructors_refuse(torch):
    N, one = torch.nested, torch.ones
    jag = {"layout": torch.jagged}
    for call, error, text in (
        (lambda: N.nested_tensor(one(2)), TypeError, "Only lists"),
        (lambda: N.as_nested_tensor(3), TypeError, "to be a tensor or a list"),
        (lambda: N.as_nested_tensor(one(2)), RuntimeError, "dim\\(\\) > 1"),
        (lambda: N.nested_tensor([], **jag), RuntimeError, "empty tensor list"),
        (lambda: N.nested_tensor([one(2), one(2, 3)], **jag), RuntimeError, "same dim"),
        (lambda: N.nested_tensor([one(2), one(2, 3)]), RuntimeError, "same dimension"),
        (lambda: N.nested_tensor([one(2), one(2).double()], **jag), RuntimeError, "same dtype"),
        (lambda: N.nested_tensor([one(2, 2), one(3, 3)], **jag), RuntimeError, "single ragged dimension"),
        (lambda: N.nested_tensor([one(())], **jag), RuntimeError, "zero-dim"),
        (lambda: N.nested_tensor([one(2)], layout=torch.sparse_coo), RuntimeError, "layout is unsupported"),
        (lambda: N.nested_tensor_from_jagged(one(2)), RuntimeError, "At least one of offsets or lengths"),
        (lambda: N.narrow(one(2, 3), 0, 0, 1, layout=torch.jagged), RuntimeError, "only supports dim=1"),
        (lambda: N.nested_tensor([[1], [2]], requires_grad=True), RuntimeError, "floating point"),
        (lambda: N.as_nested_tensor(N.nested_tensor([one(2)]), **jag), RuntimeError, "layouts is not supported"),
    ):
        with pytest.raises(error, match=text):
            call()


@own
@pytest.mark.parametrize("offsets", [[0, 2, 9], [3, 2, 6], [-1, 2, 6]])
def test_offsets_are_checked_where_they_are_read(torch, offsets):
    nt = torch.nested.nested_tensor_from_jagged(torch.ones(6, 2), torch.tensor(offsets))
    for call in (lambda: nt.sum(1), nt.unbind, lambda: nt.to_padded_tensor(0), lambda: nt[0]):
        with pytest.raises(RuntimeError, match="offsets"):
            call()


@own
def test_copies(torch):
    for layout in (torch.jagged, torch.strided):
        nt = torch.nested.nested_tensor(sequences(torch, 2), layout=layout, requires_grad=True)
        buffer = io.BytesIO()
        torch.save(nt, buffer)
        buffer.seek(0)
        for made in (copy.deepcopy(nt), pickle.loads(pickle.dumps(nt)), torch.load(buffer), nt.clone(), nt.detach()):
            assert made.layout is layout
            close(torch, made.detach(), nt.detach().unbind())
        assert torch.ones_like(nt).layout is layout and torch.rand_like(nt).is_same_size(nt)
        assert nt.to(torch.float32).dtype == torch.float32 and nt.float().half().dtype == torch.float16


# --- elementwise ---------------------------------------------------------------------------------------------
UNARY = "sin exp abs neg sigmoid tanh isnan sgn square"
FUNCTIONAL = "relu gelu silu softplus elu leaky_relu hardtanh"


@pytest.mark.parametrize("name", UNARY.split() + [f"F.{name}" for name in FUNCTIONAL.split()])
def test_functions_of_one_tensor(torch, name):
    space = torch.nn.functional if name.startswith("F.") else torch
    function = getattr(space, name.removeprefix("F."))
    parts = sequences(torch, 4)
    nt = jagged(torch, parts)
    assert function(nt).shape == nt.shape
    close(torch, function(nt), [function(p) for p in parts])


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: a + b,
        lambda a, b: a * b - 2,
        lambda a, b: 1 / (a * a + 1) ** 0.5,
        lambda a, b: (a > b) | ~(a < 0),
        lambda a, b: a.maximum(b).clamp(-1, 1),
        lambda a, b: a.masked_fill(b > 0, 0.0),
        lambda a, b: (b > 0).double() * a.where(b > 0, b),
        lambda a, b: a % 2 - 2 * b,
    ],
)
def test_operators(torch, call):
    a, b = sequences(torch, 4), sequences(torch, 4, seed=1)
    na = jagged(torch, a)
    nb = torch.nested.nested_tensor_from_jagged(torch.cat(b), na.offsets())
    close(torch, call(na, nb), [call(p, q) for p, q in zip(a, b, strict=True)])


@own
def test_dense_operands(torch):
    parts = sequences(torch, 4)
    nt = jagged(torch, parts)
    for other, of in (
        (torch.randn(4), lambda d, i: d),
        (torch.randn(1, 4), lambda d, i: d),
        (torch.randn(1, 1, 4), lambda d, i: d[0]),
        (torch.randn(3, 1, 4), lambda d, i: d[i]),
        (torch.randn(3, 1, 1), lambda d, i: d[i]),
        (torch.randn(3, 3, 4), lambda d, i: d[i, : LENGTHS[i]]),
    ):
        other = other.double().requires_grad_()
        close(torch, nt * other, [p * of(other, i) for i, p in enumerate(parts)])
        (grad,) = torch.autograd.grad((nt * other).values().sum(), other)
        (wanted,) = torch.autograd.grad(sum((p * of(other, i)).sum() for i, p in enumerate(parts)), other)
        torch.testing.assert_close(grad, wanted)
    for other in (torch.ones(6, 4), torch.ones(2, 1, 4), torch.ones(3, 2, 4), torch.ones(3, 4), jagged(torch, parts)):
        with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
            _ = nt + other


@own
def test_in_place(torch):
    nt = torch.nested.nested_tensor_from_jagged(torch.ones(6, 4), torch.tensor([0, 2, 5, 6]))
    value = nt.values()
    assert nt.mul_(3) is nt and nt.add_(torch.ones(4)) is nt and value.unique().tolist() == [4]
    nt -= 5
    assert torch.nn.functional.relu(nt, inplace=True) is nt and value.abs().sum() == 0
    nt.fill_(2).copy_(nt * 2)
    assert value.unique().tolist() == [4]
    with pytest.raises(RuntimeError):
        torch.ones(6, 4).add_(nt)
    with pytest.raises(RuntimeError):
        nt.copy_(torch.ones(6, 4))
    leaf = torch.nested.nested_tensor([torch.ones(2)], layout=torch.jagged, requires_grad=True)
    with pytest.raises(RuntimeError):
        leaf.mul_(2)


# --- other ops, beside each sequence -------------------------------------------------------------------------
def _attended(torch, x, causal):
    q, k, v = (t.unflatten(-1, (2, 4)).transpose(-3, -2) for t in x.chunk(3, -1))
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
    return out.transpose(-3, -2).flatten(-2)


# The dimension is the one of a sequence's tensor, counted from the back.
EACH = {
    "linear": lambda torch, x: torch.nn.functional.linear(x, torch.arange(48.0).view(2, 24).double() / 10),
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(x, (24,)),
    "rms_norm": lambda torch, x: torch.nn.functional.rms_norm(x, (24,)),
    "softmax": lambda torch, x: x.softmax(-1),
    "softmax of the ragged dimension": lambda torch, x: torch.nn.functional.softmax(x, -2),
    "log_softmax": lambda torch, x: torch.log_softmax(x, -1),
    "matmul": lambda torch, x: x @ torch.arange(48.0).view(24, 2).double(),
    "sum": lambda torch, x: x.sum(-1),
    "mean": lambda torch, x: x.mean(-1, keepdim=True),
    "amax": lambda torch, x: x.amax(-1),
    "max": lambda torch, x: x.max(-1).values,
    "argmin": lambda torch, x: x.argmin(-1),
    "any": lambda torch, x: (x > 1).any(-1),
    "cat": lambda torch, x: torch.cat([x, x * 2], -1),
    "stack": lambda torch, x: torch.stack([x, x * 2], -1),
    "chunk": lambda torch, x: x.chunk(3, -1)[1],
    "split": lambda torch, x: x.split([4, 20], -1)[1],
    "transpose": lambda torch, x: x.transpose(-1, -2),
    "unflatten": lambda torch, x: x.unflatten(-1, (4, 6)).transpose(-1, -2).flatten(-2),
    "unsqueeze": lambda torch, x: x.unsqueeze(-1).squeeze(-1).unsqueeze(-2),
    "narrow": lambda torch, x: x.narrow(-1, 2, 5),
    "select": lambda torch, x: x.select(-1, 3),
    "index": lambda torch, x: x[..., 2:8:3] + x[..., None, 3],
    "expand": lambda torch, x: x[..., :1].expand(*x.shape[:-1], 5),
    "reshape": lambda torch, x: x.reshape(*x.shape[:-1], 4, -1),
    "attention": lambda torch, x: _attended(torch, x, False),
}


# What PyTorch 2.15 has no gradients of, or wrong ones (softmax), or (`split`) ends the process at.
LESS = ["softmax of the ragged dimension", *"log_softmax sum split narrow select index expand attention".split()]


@pytest.mark.parametrize("name", EACH)
def test_as_on_each_sequence(torch, name):
    if target.STAND_IN and name in LESS:
        pytest.skip("PyTorch has less")
    call = EACH[name]
    parts = [p.requires_grad_() for p in sequences(torch, 24)]
    made, wanted = call(torch, jagged(torch, parts)), [call(torch, p) for p in parts]
    close(torch, made, wanted)
    if wanted[0].requires_grad:
        grads = torch.autograd.grad((made.sin() * 2).values().sum(), parts)
        torch.testing.assert_close(grads, torch.autograd.grad(sum((2 * w.sin()).sum() for w in wanted), parts))


@own
@pytest.mark.parametrize("lengths", [(2, 3, 1), (5, 30, 9)])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(torch, lengths, causal):
    parts = [p.requires_grad_() for p in sequences(torch, 24, lengths=lengths)]
    made = _attended(torch, jagged(torch, parts), causal)
    wanted = [_attended(torch, p, causal) for p in parts]
    close(torch, made, wanted)
    grads = torch.autograd.grad(made.sin().values().sum(), parts)
    torch.testing.assert_close(grads, torch.autograd.grad(sum(w.sin().sum() for w in wanted), parts))


@own
def test_attention_to_other_sequences(torch):
    q, k = sequences(torch, 2, 4), sequences(torch, 2, 4, lengths=(3, 1, 5), seed=1)
    attention = torch.nn.functional.scaled_dot_product_attention
    nq, nk = (jagged(torch, parts).transpose(1, 2) for parts in (q, k))
    wanted = [attention(a.transpose(0, 1), b.transpose(0, 1), b.transpose(0, 1)) for a, b in zip(q, k, strict=True)]
    close(torch, attention(nq, nk, nk), wanted)
    for wrong in (lambda: attention(nq, nk, nq), lambda: attention(nq, nq, nq, attn_mask=torch.ones(3, 3))):
        with pytest.raises(ValueError):
            wrong()


@own
def test_reductions_of_the_ragged_dimension(torch):
    parts = [p.requires_grad_() for p in sequences(torch, 4)]
    nt = jagged(torch, parts)
    for name in "sum mean amax amin prod argmax any all".split():
        function = lambda t, d, **k: getattr(torch, name)(t > 0 if name in ("any", "all") else t, d, **k)  # noqa: B023, E731
        torch.testing.assert_close(function(nt, 1), torch.stack([function(p, 0) for p in parts]))
        kept = function(nt, 1, keepdim=True)
        torch.testing.assert_close(kept, torch.stack([function(p, 0, keepdim=True) for p in parts]))
    torch.testing.assert_close(nt.max(1).indices, torch.stack([p.max(0).indices for p in parts]))
    torch.testing.assert_close(nt.sum((0, 1)), torch.cat(parts).sum(0))
    torch.testing.assert_close(nt.mean(), torch.cat(parts).mean())
    torch.testing.assert_close(nt.transpose(1, 2).sum(2), torch.stack([p.sum(0) for p in parts]))
    scale = torch.arange(12.0).view(3, 4).double()
    for name in ("sum", "mean", "amax", "prod"):
        grads = torch.autograd.grad((getattr(nt, name)(1) * scale).sum(), parts)
        wanted = sum((getattr(p, name)(0) * s).sum() for p, s in zip(parts, scale, strict=True))
        torch.testing.assert_close(grads, torch.autograd.grad(wanted, parts))
    for call in (lambda: nt.sum(0), lambda: nt.amax((0, 2)), lambda: nt.sum((1, 2)), lambda: nt.softmax(0)):
        with pytest.raises(RuntimeError, match="not supported"):
            call()


def test_padding(torch):
    parts = [p.requires_grad_() for p in sequences(torch, 4)]
    for layout in (torch.jagged, torch.strided):
        nt = torch.nested.as_nested_tensor(parts, layout=layout)
        made = torch.nested.to_padded_tensor(nt, -1.0)
        torch.testing.assert_close(made, torch.nn.utils.rnn.pad_sequence(parts, True, -1.0))
        assert nt.to_padded_tensor(0.0, (3, 5, 4)).shape == (3, 5, 4)
        grads = torch.autograd.grad((made * 3).sum(), parts)
        assert all(bool((g == 3).all()) for g in grads)


def test_products_of_sequences(torch):
    a, b = sequences(torch, 4), sequences(torch, 5, seed=1)
    na = jagged(torch, a)
    nb = torch.nested.nested_tensor_from_jagged(torch.cat(b), na.offsets())
    wanted = torch.stack([p.T @ q for p, q in zip(a, b, strict=True)])
    torch.testing.assert_close(na.transpose(1, 2) @ nb, wanted)
    torch.testing.assert_close(torch.bmm(na.transpose(1, 2), nb), wanted)
    dense = torch.randn(3, 4, 2).double()
    close(torch, torch.bmm(na, dense), [p @ d for p, d in zip(a, dense, strict=True)])
    for call in (
        lambda: na @ na,
        lambda: na @ na.transpose(1, 2),
        lambda: na.transpose(1, 2) @ torch.ones(6, 2).double(),
    ):
        with pytest.raises(RuntimeError):
            call()


def test_embedding_and_loss(torch):
    table = torch.randn(7, 4, requires_grad=True)
    parts = [torch.tensor([1, 2]), torch.tensor([3, 4, 5]), torch.tensor([6])]
    made = torch.nn.functional.embedding(jagged(torch, parts), table)
    close(torch, made, [table[p] for p in parts])
    bags = torch.nn.functional.embedding_bag(jagged(torch, parts), table, mode="mean")
    torch.testing.assert_close(bags, torch.stack([table[p].mean(0) for p in parts]))
    loss = torch.nn.functional.cross_entropy(made.values(), torch.arange(6) % 4)
    torch.testing.assert_close(loss, torch.nn.functional.cross_entropy(table[torch.cat(parts)], torch.arange(6) % 4))


def test_chunks_of_the_batch(torch):
    parts = sequences(torch, 4)
    first, second = jagged(torch, parts).chunk(2)
    close(torch, first, parts[:2])
    close(torch, second, parts[2:])


@own
def test_gaps_do_not_count(torch):
    values = torch.arange(12.0, dtype=torch.float64).view(6, 2).requires_grad_()
    nt = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 2, 6]), lengths=torch.tensor([1, 3]))
    parts = [values[:1], values[2:5]]
    assert nt.numel() == 8 and nt.lengths().tolist() == [1, 3]
    close(torch, nt, parts)
    close(torch, nt * torch.tensor([[[2.0]], [[3.0]]]), [parts[0] * 2, parts[1] * 3])
    torch.testing.assert_close(nt.sum(), sum(p.sum() for p in parts))
    (grad,) = torch.autograd.grad(nt * nt, values, torch.ones_like(nt))
    assert grad[1].tolist() == grad[5].tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="holes"):
        nt.sum(1)
    with pytest.raises(NotImplementedError, match="gaps"):
        nt.detach().mul_(2)


@own
def test_arguments_by_name(torch):
    parts = sequences(torch, 4)
    nt = jagged(torch, parts)
    torch.testing.assert_close(torch.sum(input=nt, axis=1, keepdims=True), nt.sum(1, keepdim=True))
    assert torch.permute(nt, dims=(0, 2, 1)).shape == nt.permute(0, 2, 1).shape == nt.mT.shape
    assert torch.cat(tensors=[nt, nt], axis=-1).shape[2] == 8 and nt.sum(keepdim=True).shape == (1, 1, 1)
    close(torch, torch.where(condition=nt > 0, input=nt, other=0.0), [p.where(p > 0, 0.0) for p in parts])
    assert torch.nn.functional.softmax(input=nt, dim=-1).shape == nt.expand(size=(3, -1, 4)).shape
    with pytest.raises(TypeError, match="missing required argument"):
        nt.view()


def test_sums_of_halves_are_rounded_once(torch):
    nt = torch.nested.nested_tensor([torch.ones(3000, 1), torch.ones(2, 1)], layout=torch.jagged).half()
    assert nt.sum(1).tolist() == [[3000], [2]] and nt.mean(1).dtype == torch.float16


@own
def test_no_sequences_and_empty_ones(torch):
    none = torch.nested.nested_tensor_from_jagged(torch.ones(0, 2), torch.tensor([0]))
    assert len(none) == 0 and none.unbind() == () and none.sum(1).shape == (0, 2) and (none * 2).numel() == 0
    nt = jagged(torch, [torch.ones(0, 2), torch.ones(3, 2)])
    assert nt.sum(1).tolist() == [[0, 0], [3, 3]] and nt.softmax(1).values().shape == (3, 2)
    assert nt.to_padded_tensor(5.0)[0].unique().tolist() == [5] and nt[0].shape == (0, 2)
    with pytest.raises(RuntimeError, match="no empty sequence"):
        nt.max(1)


# --- the graph -----------------------------------------------------------------------------------------------
@own
@pytest.mark.parametrize("layout", ["jagged", "strided"])
def test_leaves_and_gradients(torch, layout):
    nt = torch.nested.nested_tensor(sequences(torch, 2), layout=getattr(torch, layout), requires_grad=True)
    assert nt.is_leaf and nt.grad is None
    out = nt * nt
    assert not out.is_leaf and out.grad_fn is not None
    out.backward(torch.ones_like(nt))
    close(torch, nt.grad, [2 * p.detach() for p in nt.unbind()])
    (grad,) = torch.autograd.grad(nt.sin(), nt, torch.ones_like(nt))
    close(torch, grad, [p.detach().cos() for p in nt.unbind()])
    sum((p**2).sum() for p in nt.unbind()).backward()
    close(torch, nt.grad, [4 * p.detach() for p in nt.unbind()])
    nt.grad = None
    nt.values().sum().backward()
    assert nt.grad.values().unique().tolist() == [1]


@own
def test_values_have_history(torch):
    values = torch.randn(6, 2, requires_grad=True, dtype=torch.float64)
    offsets = torch.tensor([0, 2, 5, 6])

    def f(v):
        nt = torch.nested.nested_tensor_from_jagged(v, offsets)
        return (nt.softmax(1) * nt.sum(-1, keepdim=True)).mean(1)

    assert torch.autograd.gradcheck(f, (values,)) and torch.autograd.gradgradcheck(f, (values,))


@own
def test_hooks_and_gradcheck_of_nested_inputs(torch):
    nt = torch.nested.nested_tensor(sequences(torch, 2), layout=torch.jagged, requires_grad=True)
    seen = []
    nt.register_hook(lambda grad: seen.append(grad.shape))
    nt.sum().backward()
    assert seen == [nt.shape]
    assert torch.autograd.gradcheck(lambda x: x.sin() * x, (nt,))
    with pytest.raises(RuntimeError, match="same structure"):
        nt.backward(torch.ones(3, 2, 2))


@own
def test_offsets_that_were_first_read_in_inference_mode(torch):
    offsets = torch.tensor([0, 2, 5, 6])
    values = torch.randn(6, 2, requires_grad=True)
    with torch.inference_mode():
        nt = torch.nested.nested_tensor_from_jagged(values, offsets)
        wanted = nt.sum(1) + nt.softmax(1).amax(1) + (nt * torch.ones(3, 1, 2)).mean(1)
    nt = torch.nested.nested_tensor_from_jagged(values, offsets)
    made = nt.sum(1) + nt.softmax(1).amax(1) + (nt * torch.ones(3, 1, 2)).mean(1)
    torch.testing.assert_close(made, wanted.clone())
    made.sum().backward()
    assert values.grad.shape == (6, 2)


@own
def test_transforms_of_functions_that_nest_inside(torch):
    offsets = torch.tensor([0, 2, 5, 6])
    nt = torch.nested.nested_tensor_from_jagged(torch.randn(6, 2), offsets)
    x, values = torch.arange(3.0), torch.randn(3, 6, 2)
    torch.testing.assert_close(torch.vmap(lambda a: (nt * a).sum())(x), nt.sum() * x)

    def f(v):
        return torch.nested.nested_tensor_from_jagged(v, offsets).softmax(1).mean(1).sin()

    torch.testing.assert_close(torch.vmap(f)(values), torch.stack([f(v) for v in values]))
    assert torch.func.jvp(f, (values[0],), (values[1],))[1].shape == (3, 2)
    close(torch, torch.func.grad(lambda t: (t * t).sum())(nt), [2 * p for p in nt.unbind()])
    close(torch, torch.compile(lambda t: t * 2)(nt), [2 * p for p in nt.unbind()])
    for one in (nt, torch.nested.nested_tensor(list(nt.unbind()))):
        with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError):
            torch.autograd.forward_ad.make_dual(one, one)
        with pytest.raises(NotImplementedError):
            torch.vmap(lambda t: t)(one)


def _block(torch):
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.norm = nn.Embedding(5, 8), nn.LayerNorm(8)
            self.packed, self.out, self.head = nn.Linear(8, 24), nn.Linear(8, 8), nn.Linear(8, 5)

        def forward(self, indices):
            x = self.embedding(indices)
            x = x + self.out(_attended(torch, self.packed(self.norm(x)), False))
            return self.head(F.relu(x))

    return Block()


@own
def test_a_block_of_a_transformer_is_trained_as_on_each_sequence(torch):
    torch.manual_seed(0)
    one = _block(torch)
    other = copy.deepcopy(one)
    parts = [torch.tensor([0, 1]), torch.tensor([2, 3, 4]), torch.tensor([1])]
    target_of = torch.cat([p.roll(-1) for p in parts])
    losses = []
    for model, run in (
        (one, lambda m: m(jagged(torch, parts)).values()),
        (other, lambda m: torch.cat([m(p[None])[0] for p in parts])),
    ):
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        losses.append([])
        for _ in range(4):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(run(model), target_of)
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[0] == pytest.approx(losses[1], rel=1e-5) and losses[0][-1] < losses[0][0]


# --- the layout strided --------------------------------------------------------------------------------------
STRIDED = {
    "add": lambda torch, x: x + x * 2 - 1,
    "relu": lambda torch, x: torch.nn.functional.relu(x),
    "softmax": lambda torch, x: torch.nn.functional.softmax(x, -1),
    "softmax of rows": lambda torch, x: torch.nn.functional.softmax(x, -2),
    "linear": lambda torch, x: torch.nn.functional.linear(x, torch.arange(8.0).view(2, 4).double()),
    "transpose": lambda torch, x: x.transpose(-1, -2),
    "matmul": lambda torch, x: x @ x.transpose(-1, -2),
    "sum": lambda torch, x: x.sum(-1, keepdim=True),
    "unsqueeze": lambda torch, x: x.unsqueeze(-2).squeeze(-2),
    "chunk": lambda torch, x: x.chunk(2, -1)[1],
    "layer_norm": lambda torch, x: torch.nn.functional.layer_norm(
        x, (4,), torch.ones(4).double(), torch.ones(4).double()
    ),
}


@pytest.mark.parametrize("name", STRIDED)
def test_each_component(torch, name):
    if target.STAND_IN and name == "chunk":
        pytest.skip("PyTorch has no gradient of it")
    parts = [p.requires_grad_() for p in sequences(torch, 4)]
    made, wanted = STRIDED[name](torch, torch.nested.as_nested_tensor(parts)), [STRIDED[name](torch, p) for p in parts]
    close(torch, made, wanted)
    grads = torch.autograd.grad(sum(p.sin().sum() for p in made.unbind()), parts)
    torch.testing.assert_close(grads, torch.autograd.grad(sum(w.sin().sum() for w in wanted), parts))


def test_components_are_reshaped_and_indexed(torch):
    parts = sequences(torch, 4)
    nt = torch.nested.as_nested_tensor(parts)
    close(torch, nt.reshape(3, -1, 2, 2), [p.reshape(-1, 2, 2) for p in parts])
    close(torch, torch.cat([nt, nt]), parts + parts)
    assert torch.equal(nt[1], parts[1]) and torch.equal(nt[-1, 0], parts[-1][0])
    for call, error in (
        (lambda: nt[3], IndexError),
        (lambda: nt + torch.ones(4), RuntimeError),
        (lambda: nt.transpose(0, 1), RuntimeError),
        (lambda: nt.sum(-1), RuntimeError),
        (lambda: nt.unbind(1), RuntimeError),
        (lambda: nt @ torch.ones(4, 2).double(), RuntimeError),
        (lambda: nt.to_padded_tensor(0, (3, 2, 4)), RuntimeError),
    ):
        with pytest.raises(error):
            call()


# --- what is refused -----------------------------------------------------------------------------------------
def test_dimensions_are_refused(torch):
    nt = jagged(torch, sequences(torch, 4))
    for call, error in (
        (lambda: nt.transpose(0, 1), ValueError),
        (lambda: nt.permute(1, 0, 2), ValueError),
        (lambda: nt.unsqueeze(0), RuntimeError),
        (lambda: nt.flatten(0, 1), RuntimeError),
        (lambda: nt.flatten(1, 2), RuntimeError),
        (lambda: nt.view(3, 2, 4), RuntimeError),
        (lambda: nt.select(1, 0), RuntimeError),
        (lambda: nt.narrow(1, 0, 1), RuntimeError),
        (lambda: nt.split(1, 1), RuntimeError),
        (lambda: nt.chunk(2, 1), RuntimeError),
        (lambda: nt.unbind(1), RuntimeError),
        (lambda: torch.cat([nt, nt]), RuntimeError),
        (lambda: torch.cat([nt, nt], 1), RuntimeError),
        (lambda: nt[0:1], RuntimeError),
        (lambda: nt[None], RuntimeError),
        (lambda: nt.log_softmax(1), RuntimeError),
        (lambda: bool(nt), RuntimeError),
        (lambda: nt.numpy(), RuntimeError),
        (lambda: nt.tolist(), RuntimeError),
        (lambda: nt[[0]], NotImplementedError),
        (lambda: nt.cumsum(-1), NotImplementedError),
        (lambda: nt.sort(-1), NotImplementedError),
        (lambda: nt.gather(-1, nt.long()), NotImplementedError),
    ):
        with pytest.raises(error):
            call()


@own
def test_an_op_without_a_rule_is_named(torch):
    nt = jagged(torch, sequences(torch, 4))
    text = r"^cumsum: not implemented for nested tensors of layout torch.jagged. Hint: call .values\(\), .unbind\(\) or"
    with pytest.raises(NotImplementedError, match=text):
        nt.cumsum(1)
    for call in (
        lambda: torch.add(nt, nt, out=nt),
        lambda: torch.ones(6, 4).index_select(0, nt),
        lambda: torch.linalg.norm(nt),
        lambda: torch.cat([torch.ones(3, 4), nt]),
        lambda: torch.where(nt),
        lambda: torch.nn.BatchNorm1d(4)(nt),
    ):
        with pytest.raises(NotImplementedError):
            call()
    with pytest.raises(RuntimeError, match="of one layout"):
        nt + torch.nested.nested_tensor([torch.ones(2, 4)])
    with pytest.raises(TypeError):
        type(torch.nested.nested_tensor([torch.ones(2)]))(2, 3)


@own
def test_each_rule_is_of_an_op(torch):
    rules = __import__(f"{torch.__name__}.nested._rules", fromlist=["_rules"])
    names = {
        *rules._elementwise.WRITTEN,
        *rules._JAGGED,
        *rules._STRIDED,
        *rules.OPERATORS,
        *rules.REFLECTED,
        *rules._ANSWERED,
    }
    names |= {*rules._elementwise.NAMES, *rules._elementwise.LIKE}
    places = (torch._C.ops, vars(torch.nn.functional))
    known = lambda n: any(n in p for p in places) or hasattr(torch.Tensor, n)  # noqa: E731
    assert [n for n in names if not known(n) and not known(n.removeprefix("nn.functional."))] == []


@own
def test_no_attribute_reads_the_body(torch):
    """Each attribute of tensors is an op, which goes through the table, or one that nested tensors answer."""
    nt = jagged(torch, sequences(torch, 4))
    answered = {
        n
        for base in type(nt).__mro__
        if ".nested" in base.__module__ or ".sparse" in base.__module__
        for n in vars(base)
    }
    left = []
    for name in dir(torch.Tensor):
        # `__slotnames__` is what `copyreg` notes on a class when one of its objects is pickled.
        if name in answered or hasattr(object, name) or name in torch._C.ops or name == "__slotnames__":
            continue
        try:
            value = getattr(nt, name)
        except (NotImplementedError, RuntimeError, AttributeError):
            continue
        if not callable(value) and value is not None and value is not False and name != "__array_priority__":
            left.append(name)
    assert left == []


def test_is_same_size_compares_nested_tensors(torch):
    nt, plain = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), torch.ones(2)
    other = torch.nested.nested_tensor([torch.ones(3), torch.ones(2)])
    assert nt.is_same_size(nt + 1) and not nt.is_same_size(other)
    for one, two in ((nt, plain), (plain, nt)):
        with pytest.raises(RuntimeError, match="Expected both self and other to be nested tensors"):
            one.is_same_size(two)
