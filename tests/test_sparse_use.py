"""Sparse tensors in use: modules, the backward graph, transforms, and parts that a program has spoiled."""

import copy
import threading

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad does where PyTorch has more")
INDEX, VALUE = [[0, 1, 1], [1, 0, 0]], [3.0, 4.0, -1.0]
PLAIN = [[0, 3], [3, 0]]


@pytest.fixture
def s(torch):
    return torch.sparse_coo_tensor(INDEX, VALUE, (2, 2))


# --- modules -------------------------------------------------------------------------------------------------
def test_modules_with_sparse_buffers(torch):
    class Graph(torch.nn.Module):
        def __init__(self):
            super().__init__()
            mask = torch.zeros(2, 3, dtype=torch.bool)
            mask[1] = True
            self.register_buffer("heads", mask.to_sparse(), persistent=False)
            self.register_buffer("adjacency", torch.sparse_coo_tensor(INDEX, VALUE, (2, 2)))
            self.linear = torch.nn.Linear(2, 2)

        def forward(self, x):
            return torch.spmm(self.adjacency, self.linear(x))

    model = Graph()
    assert list(model.state_dict()) == ["adjacency", "linear.weight", "linear.bias"]
    assert model.heads.indices().T.tolist() == [[1, 0], [1, 1], [1, 2]]
    x = torch.ones(2, 2)
    wanted = model.adjacency.to_dense() @ model.linear(x)
    assert torch.allclose(model(x), wanted)
    model(x).sum().backward()
    assert model.linear.bias.grad.tolist() == [6, 6]
    for moved in (copy.deepcopy(model).half(), copy.deepcopy(model).to(torch.float16)):
        assert moved.adjacency.dtype == torch.float16 and moved.heads.dtype == torch.bool and moved.heads._nnz() == 3
    assert model.cpu().to("cpu").double().adjacency.dtype == torch.float64
    other = Graph()
    other.adjacency.mul_(3)
    other.load_state_dict(model.state_dict())
    assert other.adjacency.to_dense().tolist() == PLAIN and other.adjacency.dtype == torch.float32
    assert [b.layout for b in model.buffers()] == [torch.sparse_coo] * 2
    model.load_state_dict({"adjacency": torch.eye(2).to_sparse()}, strict=False)
    assert model.adjacency.to_dense().tolist() == [[1, 0], [0, 1]]


def test_sparse_parameters(torch, s):
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(s.coalesce())
    ((name, weight),) = layer.named_parameters()
    assert isinstance(weight, torch.nn.Parameter) and weight.is_leaf and weight.requires_grad and weight.grad is None
    torch.sparse.mm(weight, torch.tensor([[1.0], [2.0]])).sum().backward()
    assert weight.grad.layout is torch.sparse_coo and weight.grad.to_dense().tolist() == [[0, 2], [1, 0]]
    assert weight.grad is weight.grad
    torch.sparse.mm(weight, torch.ones(2, 1)).sum().backward()
    assert weight.grad.to_dense().tolist() == [[0, 3], [2, 0]]
    with torch.no_grad():
        weight.mul_(2)
    assert weight.requires_grad and weight.grad is not None and weight.to_dense().tolist() == [[0, 6], [6, 0]]
    layer.zero_grad()
    assert weight.grad is None
    layer.double()
    assert layer.weight.dtype == torch.float64 and layer.weight.requires_grad and layer.weight.is_leaf
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        layer.weight.mul_(2)


@pytest.mark.parametrize("options", [{}, {"momentum": 0.9}, {"weight_decay": 0.5}, {"momentum": 0.9, "foreach": False}])
def test_steps_of_sparse_parameters(torch, options):
    if target.STAND_IN and "weight_decay" in options:
        pytest.skip("PyTorch decays dense gradients only")
    sparse = torch.nn.Parameter(torch.sparse_coo_tensor([[0, 1], [1, 0]], [2.0, 3.0], (2, 2)).coalesce())
    dense = torch.nn.Parameter(sparse.detach().to_dense())
    there = dense.detach() != 0
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    for weight, product in ((sparse, torch.sparse.mm), (dense, lambda w, x: torch.mm(w * there, x))):
        optimizer = torch.optim.SGD([weight], lr=0.1, **options)
        for _ in range(3):
            optimizer.zero_grad()
            (product(weight, x) ** 2).sum().backward()
            norm = torch.nn.utils.clip_grad_norm_([weight], 5.0)
            optimizer.step()
        weight.norm_seen = norm
    assert torch.allclose(sparse.detach().to_dense(), dense.detach()) and torch.allclose(
        sparse.norm_seen, dense.norm_seen
    )
    assert sparse.is_leaf and sparse.requires_grad and isinstance(sparse, torch.nn.Parameter)
    if not target.STAND_IN:
        with pytest.raises(NotImplementedError, match="_fused_adam_: not implemented for sparse_coo tensors"):
            torch.optim.Adam([sparse]).step()


# --- the backward graph ----------------------------------------------------------------------------------------
def test_leaves_and_history(torch, s):
    leaf = torch.sparse_coo_tensor(INDEX, VALUE, (2, 2), requires_grad=True)
    assert leaf.is_leaf and leaf.requires_grad and leaf.grad_fn is None
    assert not leaf._values().requires_grad and not leaf.detach().requires_grad
    made = leaf * 2
    assert not made.is_leaf and made.grad_fn is not None and made.coalesce().values().requires_grad
    with torch.no_grad():
        assert not (leaf * 2).requires_grad
    value = torch.tensor(VALUE, requires_grad=True)
    of_values = torch.sparse_coo_tensor(INDEX, value, (2, 2))
    assert not of_values.is_leaf and of_values.requires_grad and value.is_leaf
    torch.sparse.sum(of_values * of_values).backward()
    assert value.grad.tolist() == [6, 6, 6]
    assert s.requires_grad_() is s and s.is_leaf and not torch.tensor(VALUE).requires_grad
    with pytest.raises(RuntimeError):
        s.long().requires_grad_()


def test_gradients_have_the_pattern(torch):
    leaf = torch.sparse_coo_tensor(INDEX, VALUE, (2, 2), requires_grad=True)
    for function, wanted in (
        (lambda x: torch.sparse.sum(x), [[0, 1], [2, 0]]),
        (lambda x: torch.sparse.mm(x, torch.tensor([[1.0], [2.0]])).sum(), [[0, 2], [2, 0]]),
        (lambda x: x.to_dense().sum(), [[0, 1], [2, 0]]),
        (lambda x: (x.coalesce().values() * 3).sum(), [[0, 3], [6, 0]]),
        (lambda x: torch.sparse.sum(x.t() * 2), [[0, 2], [4, 0]]),
    ):
        leaf.grad = None
        function(leaf).backward()
        assert leaf.grad.layout is torch.sparse_coo
        if not target.STAND_IN:  # each of equal indices has the gradient of their sum
            assert leaf.grad.to_dense().tolist() == wanted
            assert leaf.grad._indices().tolist() == INDEX


@own
def test_the_engine_takes_sparse_tensors(torch, s):
    x = s.coalesce().requires_grad_()
    (gradient,) = torch.autograd.grad(torch.sparse.sum(x * x), x, create_graph=True)
    assert gradient.layout is torch.sparse_coo and gradient.to_dense().tolist() == [[0, 6], [6, 0]]
    (second,) = torch.autograd.grad(torch.sparse.sum(gradient), [x])
    assert second.values().tolist() == [2, 2]
    (x * 2).backward(torch.tensor([[5.0, 1.0], [3.0, 5.0]]))
    assert x.grad.to_dense().tolist() == [[0, 2], [6, 0]]
    x.grad = None
    (x * 2).backward(s)
    assert x.grad.to_dense().tolist() == [[0, 6], [6, 0]]
    dense = torch.ones(2, 2, requires_grad=True)
    (dense * 3).backward(torch.eye(2).to_sparse())
    assert dense.grad.tolist() == [[3, 0], [0, 3]]
    seen = []
    handle = x.register_hook(lambda g: seen.append(g) or g * 10)
    x.grad = None
    torch.sparse.sum(x).backward()
    assert seen[0].layout is torch.sparse_coo and x.grad.values().tolist() == [10, 10]
    handle.remove()
    x.grad = given = x.detach() * 2
    assert x.grad is given
    x.grad = torch.tensor([[1, 2.0], [3, 4]]).to_sparse()
    assert x.grad.to_dense().tolist() == [[0, 2], [3, 0]]
    for wrong, error in ((torch.ones(3), RuntimeError), (3, TypeError)):
        with pytest.raises(error):
            x.grad = wrong
    assert torch.func.grad(lambda a: torch.sparse.sum(a * a))(s.coalesce()).grad_fn is None


def test_functions_that_keep_a_sparse_tensor(torch):
    """As graph attention networks do: the sparse tensor is made and saved in `forward`."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, index, value, shape, dense):
            made = torch.sparse_coo_tensor(index, value, shape)
            ctx.save_for_backward(made, dense)
            return torch.matmul(made, dense)

        @staticmethod
        def backward(ctx, gradient):
            made, dense = ctx.saved_tensors
            at = made._indices()
            return None, (gradient @ dense.t())[at[0], at[1]], None, made.t().matmul(gradient)

    value, dense = torch.tensor(VALUE, requires_grad=True), torch.ones(2, 3, requires_grad=True)
    Product.apply(torch.tensor(INDEX), value, (2, 2), dense).sum().backward()
    assert value.grad.tolist() == [3, 3, 3] and dense.grad.tolist() == [[3] * 3] * 2


def test_functions_that_return_a_sparse_gradient(torch):
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight, index):
            ctx.save_for_backward(index)
            ctx.shape = weight.shape
            return weight[index]

        @staticmethod
        def backward(ctx, gradient):
            (index,) = ctx.saved_tensors
            return torch.sparse_coo_tensor(index[None], gradient, ctx.shape), None

    weight = torch.ones(3, 2, requires_grad=True)
    Rows.apply(weight, torch.tensor([2, 0, 2])).sum().backward()
    assert weight.grad.is_sparse and weight.grad.to_dense().tolist() == [[1, 1], [0, 0], [2, 2]]


def test_methods_of_the_base_class(torch, s):
    s = s.coalesce()
    assert torch.equal(torch.Tensor.values(s), s.values()) and torch.Tensor.is_coalesced(s)
    assert torch.equal(torch.Tensor.crow_indices(s.to_sparse_csr()), torch.tensor([0, 1, 2]))
    with pytest.raises(RuntimeError, match="but got Strided"):
        torch.Tensor.values(torch.ones(2))


@own
def test_dense_tensors_follow_them(torch, s):
    dense = torch.ones(2, dtype=torch.float64)
    assert dense.to(s).device.type == "cpu" and dense.to(s).tolist() == [1, 1] and dense.type_as(s).dtype == s.dtype
    with pytest.raises(RuntimeError):
        dense.data = s
    assert dense.tolist() == [1, 1]


@own
def test_what_would_lose_a_gradient_is_refused(torch, s):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 2

    class Sparse(Twice):
        @staticmethod
        def forward(ctx, x):
            return x.to_sparse()

    assert Twice.apply(s).to_dense().tolist() == [[0, 6], [6, 0]]
    with pytest.raises(
        NotImplementedError, match=r"Twice\.apply: an argument with a gradient is of the layout torch\.sparse_coo"
    ):
        Twice.apply(s.requires_grad_())
    with pytest.raises(NotImplementedError, match=r"Sparse\.apply: a result with a gradient"):
        Sparse.apply(torch.ones(2, 2, requires_grad=True))
    s = s.detach()
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(NotImplementedError, match="make_dual: the primal is of the layout"),
    ):
        torch.autograd.forward_ad.make_dual(s, s)
    with pytest.raises(NotImplementedError, match="make_dual"):
        torch.func.jvp(lambda x: x * 2, (s,), (s,))
    with pytest.raises(NotImplementedError, match="set_: expected a source that is dense"):
        torch.ones(2).set_(s)


@own
def test_transforms_and_compiled_functions(torch, s):
    d = torch.rand(4, 2, 3)
    assert torch.allclose(torch.vmap(lambda x: s @ x)(d), s.to_dense() @ d)
    assert torch.func.jvp(lambda x: s @ x, (d[0],), (d[1],))[1].tolist() == (s @ d[1]).tolist()
    with pytest.raises(
        NotImplementedError, match=r"of the layout torch\.sparse_coo; expected dense tensors to map over"
    ):
        torch.vmap(lambda x: x * 2)(s)
    csr = s.to_sparse_csr()
    functions = (
        (lambda a, x: a @ x, [(s, d[0]), (s * 2, d[0]), (csr, d[1])]),
        (lambda a, x: s @ x, [(s, d[k]) for k in range(4)]),
        (
            lambda a, x: torch.sparse_coo_tensor(a._indices() if a.is_sparse else INDEX, x.flatten()[:3], (2, 2)),
            [(s, d[0]), (s, d[1])],
        ),
        (lambda a, x: x.to_sparse() * 2, [(s, d[0]), (s, d[1]), (s, d[1].relu() * 0)]),
    )
    for function, calls in functions:
        compiled = torch.compile(function)
        for call in calls * 3:
            made, wanted = compiled(*call), function(*call)
            assert made.layout is wanted.layout and torch.equal(made.to_dense(), wanted.to_dense())


@own
def test_modes_and_other_classes_come_first(torch, s):
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Mode():
        torch.mm(s, torch.ones(2, 2))
    assert seen[0] is torch.ones and torch.mm in seen

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(types)

    assert torch.add(s, Other()) == ("add", 2)
    assert type(torch.nn.Parameter(torch.ones(2, 2)) + s) is torch.Tensor
    plain = type("Plain", (torch.Tensor,), {})
    assert (torch.ones(2, 2).as_subclass(plain) + s).tolist() == [[1, 4], [4, 1]]


@own
def test_comparisons_of_tests(torch, s):
    close = torch.testing.assert_close
    close(s, s.clone())
    close(s, s.coalesce())
    close(s.to_sparse_csr(), s.to_sparse_csr())
    close(s, s.to_dense(), check_layout=False)
    with pytest.raises(AssertionError, match="'layout' do not match"):
        close(s, s.to_dense())
    with pytest.raises(AssertionError, match="number of specified values in sparse COO tensors does not match: 2 != 4"):
        close(s, torch.ones(2, 2).to_sparse())
    with pytest.raises(AssertionError, match="Tensor-likes are not close"):
        close(s, s * 2)


# --- spoiled parts ---------------------------------------------------------------------------------------------
@own
@pytest.mark.parametrize("number", [7, -1, -(2**62), 2**62])
def test_indices_that_a_program_has_spoiled(torch, number):
    """Indices can be written through; then ops raise, or give some result, and touch no other memory."""
    d = torch.ones(3, 3)
    calls = [
        lambda s: s.to_dense(),
        lambda s: s @ d,
        lambda s: d @ s,
        lambda s: s @ s,
        lambda s: s.coalesce(),
        lambda s: d + s,
        lambda s: s * d,
        lambda s: s * s.clone(),
        lambda s: s + d.to_sparse(),
        lambda s: s[1],
        lambda s: s.sum(0),
        lambda s: torch.sparse.softmax(s, 1),
        lambda s: s.index_select(0, torch.tensor([0, 2])),
        lambda s: d.sparse_mask(s),
        lambda s: s.to_sparse_csr().to_dense(),
        lambda s: s.to_sparse_csc() @ d,
        lambda s: torch.cat([s, s]).to_dense(),
        lambda s: s.t().to_dense(),
        repr,
    ]
    for call in calls:
        s = torch.sparse_coo_tensor([[0, 1, 2], [1, 0, 2]], [1.0, 2.0, 3.0], (3, 3))
        c = s.to_sparse_csr()
        s._indices()[0, 1] = number
        c.crow_indices()[1] = number
        c.col_indices()[2] = number
        for spoiled in (s, c):
            try:
                call(spoiled)
            except (RuntimeError, IndexError, TypeError, OverflowError):
                pass


@own
def test_threads_that_write_and_read(torch):
    s, d = torch.eye(3).to_sparse(), torch.ones(3, 2)
    wrong = []

    def write():
        for k in range(200):
            s.copy_(torch.eye(3).to_sparse() if k % 2 else torch.ones(3, 3).to_sparse())

    def read():
        for _ in range(200):
            try:
                s @ d
            except (RuntimeError, IndexError) as error:
                wrong.append(str(error))

    threads = [threading.Thread(target=work) for work in (write, read, read)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("size" in text or "index" in text.lower() or "shape" in text for text in wrong)


def test_on_a_gpu(torch, device):
    s = torch.sparse_coo_tensor(torch.tensor(INDEX), torch.tensor(VALUE), (2, 2)).to(device)
    assert s.device.type == device and s._indices().device.type == device
    d = torch.tensor([[1.0, 2.0], [3.0, 4.0]], device=device)
    plain = s.to_dense()
    assert plain.cpu().tolist() == PLAIN
    for made, wanted in (
        (s @ d, plain @ d),
        (s * 2, plain * 2),
        (s * d, plain * d),
        (d + s, d + plain),
        (s @ s, plain @ plain),
    ):
        made = made.to_dense() if made.layout is not torch.strided else made
        assert torch.equal(made, wanted)
    assert s.to_sparse_csr().to_dense().cpu().tolist() == PLAIN and s.coalesce().cpu().values().tolist() == [3, 3]
    x = s.coalesce().requires_grad_()
    torch.sparse.mm(x, d).sum().backward()
    assert x.grad.to_dense().cpu().tolist() == [[0, 7], [3, 0]]
    assert torch.sparse.sum(s, 0).cpu().to_dense().tolist() == [3, 3]
