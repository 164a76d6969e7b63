"""`masked.MaskedTensor`: what it prints, computes and refuses, and which elements of gradients are masked out. Figures are PyTorch's."""

import copy
import io
import pickle

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="PyTorch refuses it, or has no such table")
DATA = [[1.0, 2, 3], [4, 5, 6]]
MASK = [[True, False, True], [False, False, True]]
CONDITION = [[True, True, False], [True, True, True]]


@pytest.fixture
def make(torch):
    import importlib

    masked = importlib.import_module(f"{torch.__name__}.masked")

    def made(requires_grad=False, data=DATA, mask=MASK):
        data = data if isinstance(data, torch.Tensor) else torch.tensor(data)
        return masked.masked_tensor(data, torch.tensor(mask), requires_grad)

    return made


def shown(t):
    """The elements in a nested list, None where one is masked out."""
    data, mask = t.get_data().detach().to_dense(), t.get_mask().to_dense()

    def pick(d, m):
        return [pick(*both) for both in zip(d, m, strict=True)] if isinstance(d, list) else d if m else None

    return pick(data.tolist(), mask.tolist())


def near(t, want):
    """Whether the elements are these, None where one is masked out."""
    return flat(shown(t)) == pytest.approx(flat(want), abs=1e-4, nan_ok=True)


def flat(values):
    return [x for v in values for x in flat(v)] if isinstance(values, list) else ["--" if values is None else values]


def test_printed_form(torch, make):
    assert repr(make()) == (
        "MaskedTensor(\n  [\n    [  1.0000,       --,   3.0000],\n    [      --,       --,   6.0000]\n  ]\n)"
    )
    assert str(make(data=torch.arange(6).reshape(2, 3))) == f"{make(data=torch.arange(6).reshape(2, 3))}"
    assert (
        repr(make(data=[0, 1, 2, 3], mask=[True, False, True, False]))
        == "MaskedTensor(\n  [0,       --, 2,       --]\n)"
    )
    wide = make(data=torch.tensor([1.0, 2e10, 3e-7], dtype=torch.float64), mask=[True, True, False])
    assert repr(wide) == "MaskedTensor(\n  [  1.0000, 20000000000.0000,               --]\n)"
    assert repr(make(data=True, mask=False)) == "MaskedTensor(--, False)"
    assert repr(make(data=1.5, mask=True)) == "MaskedTensor(  1.5000, True)"
    assert repr(make().to_sparse()) == repr(make()) == repr(make().to_sparse_csr())


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda t, d, m: (0, m), TypeError, "data must be a Tensor"),
        (lambda t, d, m: (d, 0), TypeError, "mask must be a Tensor"),
        (lambda t, d, m: (t.masked.masked_tensor(d, m), m), TypeError, "data must be a Tensor"),
        (lambda t, d, m: (d.to_sparse(), m), TypeError, "data and mask must have the same layout"),
        (
            lambda t, d, m: (d.to_sparse_csc(), m.to_sparse_csc()),
            TypeError,
            "data layout of .*sparse_csc is not supported",
        ),
        (lambda t, d, m: (d, m[0]), ValueError, r"data.dim\(\) must equal mask.dim\(\)"),
        (lambda t, d, m: (d, m[:, :2]), ValueError, r"data.size\(\) must equal mask.size\(\)"),
        (lambda t, d, m: (d, m.float()), TypeError, "mask must have dtype bool"),
        (lambda t, d, m: (d.bfloat16(), m), TypeError, "bfloat16 is not supported in MaskedTensor"),
        (lambda t, d, m: (d.to(t.complex64), m), TypeError, "complex64 is not supported in MaskedTensor"),
        (lambda t, d, m: (d.long(), m, True), RuntimeError, "Only Tensors of floating point"),
        (
            lambda t, d, m: (t.eye(2).to_sparse(), t.eye(2).flip(0).bool().to_sparse()),
            ValueError,
            "sparse COO.*indices",
        ),
        (lambda t, d, m: (t.eye(2).to_sparse_csr(), t.eye(2).flip(0).bool().to_sparse_csr()), ValueError, "sparse CSR"),
    ],
)
def test_what_is_no_masked_tensor(torch, change, error, text):
    import importlib

    importlib.import_module(f"{torch.__name__}.masked")
    with pytest.raises(error, match=text):
        torch.masked.masked_tensor(*change(torch, torch.tensor(DATA), torch.tensor(MASK)))


def test_parts(torch, make):
    data, mask = torch.tensor(DATA), torch.tensor(MASK)
    t = make(data=data)
    assert isinstance(t, torch.masked.MaskedTensor) and torch.masked.is_masked_tensor(t) and isinstance(t, torch.Tensor)
    assert not torch.masked.is_masked_tensor(data)
    data.zero_()
    assert t.get_data().tolist() == DATA and torch.equal(t.get_mask(), mask)
    assert t.to_tensor(9).tolist() == [[1, 9, 3], [9, 9, 6]]
    assert t.layout is torch.strided and t.to_sparse().layout is torch.sparse_coo and t.to_sparse().is_sparse
    assert t.to_sparse_csr().is_sparse_csr() and not t.is_sparse_coo() and t.is_contiguous()
    assert t.shape == (2, 3) and t.dtype is torch.float32 and len(t) == 2 and t.stride() == (3, 1)
    with pytest.raises(ValueError, match="sparse data do not have is_contiguous"):
        t.to_sparse().contiguous()
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        t.tolist()
    assert float(t[0, 0]) == 1.0
    with pytest.raises(ValueError, match="expected a mask tensor"):
        t[0, 1].item()
    with pytest.warns(
        UserWarning, match="It is not recommended to create a MaskedTensor with a tensor that requires_grad"
    ):
        make(data=torch.tensor(DATA, requires_grad=True))


@pytest.mark.parametrize(
    ("op", "want"),
    [
        (lambda t, x: x + 1, [[2, None, 4], [None, None, 7]]),
        (lambda t, x: 2 / x, [[2, None, 0.6667], [None, None, 0.3333]]),
        (lambda t, x: x * t.tensor([10.0, 20, 30]), [[10, None, 90], [None, None, 180]]),
        (lambda t, x: t.tensor(DATA) - x, [[0, None, 0], [None, None, 0]]),
        (lambda t, x: x > 2, [[False, None, True], [None, None, True]]),
        (lambda t, x: ~(x > 2), [[True, None, False], [None, None, False]]),
        (lambda t, x: x.clamp(2, 5), [[2, None, 3], [None, None, 5]]),
        (lambda t, x: t.maximum(x, x * 2), [[2, None, 6], [None, None, 12]]),
        (lambda t, x: x.long() // 2, [[0, None, 1], [None, None, 3]]),
        (lambda t, x: x.to_sparse().cos(), [[0.5403, None, -0.99], [None, None, 0.9602]]),
        (lambda t, x: x.to_sparse_csr() * x.to_sparse_csr(), [[1, None, 9], [None, None, 36]]),
        (lambda t, x: x.softmax(1), [[0.1192, None, 0.8808], [None, None, 1]]),
        (lambda t, x: t.ones_like(x), [[1, None, 1], [None, None, 1]]),
        (lambda t, x: x.t(), [[1, None], [None, None], [3, 6]]),
        (lambda t, x: x[:, 1:], [[None, 3], [None, 6]]),
        (lambda t, x: x[t.tensor([1, 0])], [[None, None, 6], [1, None, 3]]),
        (lambda t, x: x[:, :1].expand(2, 2), [[1, 1], [None, None]]),
        (lambda t, x: t.cat([x, x], 1)[1], [None, None, 6, None, None, 6]),
        (lambda t, x: x.unfold(1, 2, 1)[0], [[1, None], [None, 3]]),
        (lambda t, x: t.where(t.tensor(CONDITION), x, t.tensor(DATA)), [[1, None, 3], [None, None, 6]]),
        (lambda t, x: t.where(t.tensor(MASK), x, 9.0), [[1, 9, 3], [9, 9, 6]]),
        (lambda t, x: t.nn.functional.unfold(x[None, None], (1, 2))[0], [[1, None, None, None], [None, 3, None, 6]]),
    ],
)
def test_ops(torch, make, op, want):
    assert near(op(torch, make()), want)


@own
@pytest.mark.parametrize(
    ("op", "want"),
    [
        (lambda t, x: 2 - x, [[1, None, -1], [None, None, -4]]),
        (lambda t, x: t.add(x, x, alpha=2), [[3, None, 9], [None, None, 18]]),
        (lambda t, x: t.nn.functional.log_softmax(x, 1), [[-2.1269, None, -0.1269], [None, None, 0]]),
        (lambda t, x: x.permute(1, 0), [[1, None], [None, None], [3, 6]]),
        (lambda t, x: t.stack(list(x)[::-1]), [[None, None, 6], [1, None, 3]]),
        (lambda t, x: x.norm(dim=1), [3.1623, 6]),
        (lambda t, x: x.var(1, unbiased=False), [1, 0]),
        (lambda t, x: x.to_sparse() + t.tensor(DATA), [[2, None, 6], [None, None, 12]]),
    ],
)
def test_ops_that_pytorch_refuses(torch, make, op, want):
    assert near(op(torch, make()), want)


@pytest.mark.parametrize(
    ("name", "whole", "rows", "columns"),
    [
        ("sum", 10, [4, 6], [1, None, 9]),
        ("mean", 10 / 3, [2, 6], [1, None, 4.5]),
        ("amin", 1, [1, 6], [1, None, 3]),
        ("amax", 6, [3, 6], [1, None, 6]),
        ("argmin", 0, [0, 2], [0, None, 0]),
        ("argmax", 5, [2, 2], [0, None, 1]),
        ("prod", 18, [3, 6], [1, None, 18]),
        ("all", True, [True, True], [True, None, True]),
        ("var", 6.3333, [2, float("nan")], [float("nan"), None, 4.5]),
        ("std", 2.5166, [1.4142, float("nan")], [float("nan"), None, 2.1213]),
    ],
)
def test_reductions(torch, make, name, whole, rows, columns):
    t = make()
    assert near(getattr(t, name)(), whole) and near(getattr(torch, name)(t), whole)
    assert near(getattr(t, name)(1), rows) and near(getattr(t, name)(dim=0), columns)
    assert near(getattr(t, name)(dim=0, keepdim=True), [columns])
    if name != "all":
        assert near(getattr(t.to_sparse(), name)(), whole)
    with pytest.raises(TypeError):
        getattr(t.to_sparse(), name)(0)
    assert near(getattr(make(mask=[[False] * 3] * 2), name)(), None)


def test_reductions_of_integers(torch, make):
    t = make(data=torch.tensor(DATA).long())
    assert t.sum().dtype is torch.int64 and near(t.sum(), 10) and near(t.amax(0), [1, None, 6])
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        t.mean()
    assert near((t > 1)._is_any_true(), True)
    with pytest.raises(ValueError, match="expected a boolean tensor"):
        t._is_any_true()


def test_refusals(torch, make):
    t, other = make(), make(mask=[[False] * 3] * 2)
    for call in (lambda: t + other, lambda: t.clone().add_(other)):
        with pytest.raises(
            ValueError, match="^Input masks must match. If you need support for this, please open an issue on Github.$"
        ):
            call()
    with pytest.raises(ValueError, match="`a` and `b` must have the same layout"):
        t + t.to_sparse()
    for name in ("max", "sort", "median", "cumsum", "zero_"):
        args = (0,) if name == "cumsum" else ()
        with pytest.raises(TypeError, match=rf"torch._ops.aten.{name}.default" if not target.STAND_IN else name):
            getattr(t, name)(*args)
    for call in (
        lambda: t @ t.t(),
        lambda: torch.nn.functional.linear(t, torch.ones(4, 3)),
        lambda: torch.cat([t, torch.ones(1, 3)]),
    ):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(TypeError, match="do not support additional Tensor arguments"):
        t.clamp(min=torch.ones(2, 3))


@own
def test_what_is_not_written(torch, make):
    t, dense = make(), torch.ones(2, 3)
    for call in (
        lambda: dense.add_(t),
        lambda: dense.copy_(t),
        lambda: t.__setitem__(0, 1.0),
        lambda: torch.add(t, t, out=t),
    ):
        with pytest.raises(TypeError):
            call()
    assert dense.tolist() == [[1] * 3] * 2 and near(t, [[1, None, 3], [None, None, 6]])
    p = torch.nn.Parameter(torch.tensor(DATA))
    torch.masked.as_masked_tensor(p, torch.tensor(MASK)).sum().backward()
    with pytest.raises(TypeError, match="expected a dense one"):
        torch.optim.SGD([p], 0.1).step()
    assert p.tolist() == DATA


def test_in_place(torch, make):
    t = make()
    data = t.get_data()
    assert t.add_(1) is t and t.mul_(t) is t and near(t.sqrt_(), [[2, None, 4], [None, None, 7]])
    assert data[0, 0] == 2  # the memory is the tensor's
    t.gt_(3)
    assert t.dtype is torch.float32 and near(t, [[0, None, 1], [None, None, 1]])
    view = t[0]
    view.add_(5)
    assert near(t, [[0, None, 1], [None, None, 1]])  # results have memory of their own
    leaf = make(True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.add_(1)
    y = leaf * 2
    y.mul_(3)
    y[0].sum().backward()
    assert near(leaf.grad, [[6, None, 6], [None, None, None]])


@pytest.mark.parametrize(
    ("op", "want"),
    [
        (lambda t, x: x * x, [[2, None, 6], [None, None, 12]]),
        (lambda t, x: x.mean(1), [[0.5, None, 0.5], [None, None, 1]]),
        (lambda t, x: x.amax(), [[0, None, 0], [None, None, 1]]),
        (lambda t, x: x.prod(), [[18, None, 6], [None, None, 3]]),
        (lambda t, x: x.std(), [[-0.4636, None, -0.0662], [None, None, 0.5298]]),
        (lambda t, x: x.softmax(1) * x, [[-0.0908, None, 1.0908], [None, None, 1]]),
        (lambda t, x: x[0], [[1, None, 1], [None, None, None]]),
        (lambda t, x: (x * 2)[:, 1:] * 3, [[None, None, 6], [None, None, 6]]),
        (lambda t, x: x.t().contiguous()[0], [[1, None, None], [None, None, None]]),
        (lambda t, x: x[:, :1].expand(2, 4), [[4, None, None], [None, None, None]]),
        (lambda t, x: x.unfold(1, 2, 2), [[1, None, None], [None, None, None]]),
        (
            lambda t, x: t.where(t.tensor(CONDITION), x / 0, t.tensor(DATA)),
            [[float("inf"), None, None], [None, None, float("inf")]],
        ),
        (lambda t, x: x.double().to_sparse().to_dense() * 2, [[2, None, 2], [None, None, 2]]),
        (lambda t, x: x.to_tensor(0)[0], [[1, None, 1], [None, None, 0]]),
        (lambda t, x: x.sum(0)[0:1], [[1, None, 0], [None, None, 0]]),
    ],
)
def test_gradients(torch, make, op, want):
    x = make(True)
    result = op(torch, x)
    (result if result.numel() == 1 else result.sum()).backward()
    assert torch.masked.is_masked_tensor(x.grad) and near(x.grad, want)


@own
@pytest.mark.parametrize(
    ("op", "want"),
    [
        (lambda t, x: x[0].sum() + x[1].sum(), [[1, None, 1], [None, None, 1]]),
        (lambda t, x: x.split(1)[0], [[1, None, 1], [None, None, 0]]),
        (lambda t, x: x[t.tensor([1, 1])], [[None, None, None], [None, None, 2]]),
        (lambda t, x: x.to_sparse().prod(), [[18, None, 6], [None, None, 3]]),
        (lambda t, x: x.norm(), [[0.1474, None, 0.4423], [None, None, 0.8847]]),
    ],
)
def test_gradients_that_pytorch_refuses(torch, make, op, want):
    x = make(True)
    op(torch, x).sum().backward()
    assert near(x.grad, want)


def test_gradients_of_dense_tensors(torch, make):
    mask = torch.tensor(MASK)
    w = torch.tensor(DATA, requires_grad=True)
    for count in (1, 2):
        torch.masked.as_masked_tensor(w, mask).sum().backward()
        assert near(w.grad, [[count, None, count], [None, None, count]])
    with pytest.raises(ValueError, match="Input masks must match"):
        torch.masked.as_masked_tensor(w, ~mask).sum().backward()
    row = torch.tensor([1.0, 2, 3], requires_grad=True)
    (make() * row).sum().backward()
    assert near(row.grad, [1, None, 9])
    scale = torch.tensor(2.0, requires_grad=True)
    (make() * scale).sum().backward()
    assert near(scale.grad, 10)
    # Zero and NaN are told apart: an element that was not taken has no gradient.
    a = make(True, 1.0, True)
    result = torch.where(torch.tensor(False), a / 0, torch.ones(()))
    assert near(result, 1) and near(torch.autograd.grad(result, a)[0], None)
    x = make(True)
    first = torch.autograd.grad((x**3).sum(), x, create_graph=True)[0]
    assert near(torch.autograd.grad(first.sum(), x)[0], [[6, None, 18], [None, None, 36]])


@own
def test_gradients_through_dense_formulas(torch):
    """A dense op before the masked tensor gets zeros where elements are masked out, never their NaN."""
    w = torch.tensor(DATA, requires_grad=True)
    t = torch.masked.as_masked_tensor(w @ torch.ones(3, 3), torch.tensor(MASK))
    torch.where(torch.tensor(MASK), t, t / 0).sum().backward()
    assert w.grad.tolist() == [[2, 2, 2], [1, 1, 1]]
    mask = torch.tensor(MASK)
    x = torch.rand(2, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: torch.masked.as_masked_tensor(x, mask).exp().mean(1).get_data(), x)


def test_copies_and_files(torch, make):
    t = make(True)
    for made in (copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t))):
        assert near(made, shown(t)) and made.requires_grad and made.is_leaf
    if not target.STAND_IN:
        file = io.BytesIO()
        torch.save({"a": t, "b": t.detach().to_sparse()}, file)
        file.seek(0)
        loaded = torch.load(file)
        assert near(loaded["a"], shown(t)) and loaded["b"].is_sparse and near(loaded["b"], shown(t))


def test_modules(torch):
    from importlib import import_module

    home = f"{torch.__name__}.masked.maskedtensor"
    core, unary, binary = (import_module(f"{home}.{name}") for name in ("core", "unary", "binary"))
    reductions, passthrough = (import_module(f"{home}.{name}") for name in ("reductions", "passthrough"))
    assert [
        len(n) for n in (unary.UNARY_NAMES, unary.INPLACE_UNARY_NAMES, binary.BINARY_NAMES, binary.INPLACE_BINARY_NAMES)
    ] == [
        62,
        58,
        36,
        30,
    ]
    assert reductions.REDUCE_NAMES == "sum mean amin amax argmin argmax prod all norm var std".split()
    assert len(passthrough.PASSTHROUGH_FNS) == 19 and callable(unary.NATIVE_UNARY_FNS[0])
    d = torch.tensor(DATA)
    assert core._tensors_match(d, d + 1e-7, exact=False) and not core._tensors_match(d, d[0])
    assert torch.masked._combine_input_and_mask(torch.amax, d, torch.tensor(MASK)).tolist()[1] == [
        -float("inf")
    ] * 2 + [6]
    assert torch.masked._canonical_dim((0, -1), 2) == (0, 1)


@own
def test_each_rule_is_of_an_op(torch):
    from rustgrad import _rule_names
    from rustgrad.masked.maskedtensor import binary, unary

    names = {
        *unary.UNARY_NAMES,
        *unary.MORE,
        *binary.BINARY_NAMES,
        *binary.MORE,
        *_rule_names.MOVES,
        *_rule_names.JOINS,
    }
    known = lambda n: n in torch._C.ops or hasattr(torch.Tensor, n) or hasattr(torch, n)  # noqa: E731
    assert [n for n in names if not known(n) and not known(n.removeprefix("nn.functional."))] == []


@own
def test_no_attribute_reads_the_body(torch, make):
    """Each attribute of tensors is an op, which goes through the table, or one that masked tensors answer."""
    t, left = make(), []
    # The body has those of the data; `copyreg` notes the last on a class when one of its objects is pickled.
    right = "_cdata dtype itemsize ndim shape __slotnames__".split()
    answered = {
        n
        for base in type(t).__mro__
        if ".masked" in base.__module__ or ".sparse" in base.__module__
        for n in vars(base)
    }
    for name in dir(torch.Tensor):
        if name in answered or hasattr(object, name) or name in torch._C.ops:
            continue
        try:
            value = getattr(t, name)
        except (NotImplementedError, RuntimeError, AttributeError, TypeError):
            continue
        if not callable(value) and value is not None and value is not False and name != "__array_priority__":
            left.append(name)
    assert sorted({*left} - {*right}) == []


def test_hooks_and_inner_gradients(torch, make):
    x, seen = make(True), []
    x.register_hook(lambda grad: seen.append(shown(grad)) or grad * 2)
    y = x * 3
    y.register_hook(lambda grad: seen.append(shown(grad)))
    y[0].sum().backward()
    assert seen == [[[1, None, 1], [None] * 3], [[3, None, 3], [None] * 3]]
    if not target.STAND_IN:
        assert near(x.grad, [[6, None, 6], [None, None, None]])
    z = make(True) * 2
    assert near(torch.autograd.grad(z[0].sum(), z)[0], [[1, None, 1], [None, None, None]])
    assert near(torch.autograd.grad(z[1].sum(), z)[0], [[None, None, None], [None, None, 1]])
