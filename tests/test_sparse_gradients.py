"""Gradients that are sparse tensors: of embeddings, in the engine, in optimizers."""

import copy
import io
import threading

import pytest
from support import target
from support.target import torch

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad does where PyTorch has more")


def embedding(sparse, padding_idx=None):
    torch.manual_seed(3)
    return torch.nn.Embedding(7, 3, sparse=sparse, padding_idx=padding_idx)


INDEX = [[4, 1, 4], [0, 2, 1]]


def loss_of(layer, index=None):
    return (layer(torch.tensor(INDEX if index is None else index)) * torch.arange(3.0)).pow(2).sum()


@pytest.mark.parametrize("padding_idx", [None, 1])
def test_of_an_embedding(padding_idx):
    layer, dense = embedding(True, padding_idx), embedding(False, padding_idx)
    loss_of(layer).backward()
    loss_of(dense).backward()
    grad = layer.weight.grad
    assert grad.is_sparse and grad.shape == (7, 3) and grad.sparse_dim() == 1
    assert grad._nnz() == (6 if padding_idx is None else 4) and not grad.is_coalesced()
    assert torch.allclose(grad.to_dense(), dense.weight.grad)
    assert layer.weight.grad is grad


def test_is_printed_as_pytorchs():
    weight = torch.ones(3, 2, requires_grad=True)
    torch.embedding(weight, torch.tensor([2, 0]), sparse=True).sum().backward()
    wanted = (
        "tensor(indices=tensor([[2, 0]]),\n       values=tensor([[1., 1.],\n                      [1., 1.]]),\n"
        "       size=(3, 2), nnz=2, layout=torch.sparse_coo)"
    )
    assert repr(weight.grad) == wanted


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_of_bags(mode):
    made = []
    for sparse in (True, False):
        torch.manual_seed(0)
        layer = torch.nn.EmbeddingBag(6, 3, mode=mode, sparse=sparse)
        layer(torch.tensor([0, 5, 5, 1]), torch.tensor([0, 3])).pow(2).sum().backward()
        made.append(layer.weight.grad)
    assert made[0].is_sparse and torch.allclose(made[0].to_dense(), made[1])


def test_accumulates():
    layer, dense = embedding(True), embedding(False)
    for index in (INDEX, [5, 5], [0, 1]):
        loss_of(layer, index).backward()
        loss_of(dense, index).backward()
    assert layer.weight.grad.is_sparse
    assert torch.allclose(layer.weight.grad.to_dense(), dense.weight.grad)


def test_stays_the_same_object():
    layer = embedding(True)
    loss_of(layer).backward()
    first = layer.weight.grad
    loss_of(layer).backward()
    assert layer.weight.grad is first and first._nnz() >= 5


def test_with_dense_gradients_of_the_same_weight():
    """Tied weights: the sum is dense, in one pass and over several, in either order."""
    for order in (0, 1):
        layer, dense = embedding(True), embedding(False)
        for one in (layer, dense):
            (loss_of(one) + (one.weight**3).sum()).backward()
            losses = [lambda one=one: loss_of(one), lambda one=one: (one.weight**3).sum()]
            for make in losses if order else reversed(losses):
                make().backward()
        assert not layer.weight.grad.is_sparse
        assert torch.allclose(layer.weight.grad, dense.weight.grad)
        one, other = embedding(True), embedding(False)
        for layer in (one, other):
            for make in [lambda: loss_of(layer), lambda: (layer.weight**3).sum()][:: 1 if order else -1]:  # noqa: B023
                make().backward()
        assert torch.allclose(one.weight.grad, other.weight.grad)


def test_grad_returns_them():
    layer = embedding(True)
    (grad,) = torch.autograd.grad(loss_of(layer), layer.weight)
    assert grad.is_sparse and layer.weight.grad is None
    assert torch.allclose(grad.to_dense(), torch.autograd.grad(loss_of(dense := embedding(False)), dense.weight)[0])


@own
def test_of_weights_that_are_results():
    base, same = (torch.arange(12.0).view(4, 3).requires_grad_() for _ in range(2))
    for leaf, sparse in ((base, True), (same, False)):
        rows = torch.nn.functional.embedding(torch.tensor([3, 3, 0]), leaf.sin(), sparse=sparse)
        (rows**2).sum().backward()
    assert torch.allclose(base.grad, same.grad)


def test_of_second_order():
    layer, dense = embedding(True), embedding(False)
    made = []
    for one in (layer, dense):
        (grad,) = torch.autograd.grad(loss_of(one), one.weight, create_graph=True)
        grad = grad.to_dense() if grad.is_sparse else grad
        made.append(torch.autograd.grad((grad**2).sum(), one.weight)[0])
    assert torch.allclose(*(g.to_dense() if g.is_sparse else g for g in made))


def test_hooks_see_them():
    layer, seen = embedding(True), []
    layer.weight.register_hook(lambda g: seen.append(g.is_sparse))
    layer.weight.register_hook(lambda g: g * 2)
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.is_sparse))
    loss_of(layer).backward()
    loss_of(dense := embedding(False)).backward()
    assert seen == [True, True]
    assert torch.allclose(layer.weight.grad.to_dense(), 2 * dense.weight.grad)


def test_frequency_is_refused():
    layer = torch.nn.Embedding(4, 2, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        layer(torch.tensor([1])).sum().backward()


@pytest.mark.parametrize("index", [[], [[], []]])
def test_of_no_indices(index):
    layer = embedding(True)
    layer(torch.tensor(index, dtype=torch.int64)).sum().backward()
    assert layer.weight.grad._nnz() == 0 and layer.weight.grad.to_dense().abs().sum() == 0


def test_zero_grad_and_copies():
    layer, leaf = embedding(True), torch.ones(7, 3, requires_grad=True)
    torch.embedding(leaf, torch.tensor(INDEX), sparse=True).sum().backward()
    other = copy.deepcopy(leaf)
    assert other.grad.is_sparse and other.grad is not leaf.grad
    loss_of(layer).backward()
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.is_sparse and layer.weight.grad._nnz() == 0
    layer.zero_grad()
    assert layer.weight.grad is None
    leaf.grad.zero_()
    assert leaf.grad._nnz() == 0 and other.grad._nnz() == 6


def steps(make, sparse, index_of, count=4):
    layer = embedding(sparse)
    optimizer = make(layer.parameters())
    for i in range(count):
        optimizer.zero_grad()
        loss_of(layer, index_of(i)).backward()
        optimizer.step()
    return layer.weight.detach(), optimizer


# Every row has a gradient in each step, so rules that leave the others alone do what the dense ones do.
ALL = [[0, 1, 2, 3, 4, 5, 6, 2]]


@pytest.mark.parametrize(
    ("by_sparse", "by_dense"),
    [
        (lambda p: torch.optim.SGD(p, 0.1), None),
        (lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True), None),
        (lambda p: torch.optim.Adagrad(p, 0.1, lr_decay=0.1), None),
        (lambda p: torch.optim.Adagrad(p, 0.1, maximize=True), None),
        (lambda p: torch.optim.SparseAdam(p, 0.1), lambda p: torch.optim.Adam(p, 0.1)),
        (lambda p: torch.optim.SparseAdam(p, 0.1, maximize=True), lambda p: torch.optim.Adam(p, 0.1, maximize=True)),
    ],
)
def test_optimizers_step_by_them(by_sparse, by_dense):
    sparse, _ = steps(by_sparse, True, lambda i: ALL)
    dense, _ = steps(by_dense or by_sparse, False, lambda i: ALL)
    assert torch.allclose(sparse, dense, atol=1e-6)


def test_sparse_adam_leaves_other_rows_alone():
    start = embedding(True).weight.detach().clone()
    # Recorded from PyTorch: rows 4 and 1 change, the others do not.
    made, optimizer = steps(lambda p: torch.optim.SparseAdam(p, 0.1), True, lambda i: [[4, 1, 4]])
    changed = (made != start).any(1).tolist()
    assert changed == [False, True, False, False, True, False, False]
    state = optimizer.state_dict()["state"][0]
    assert state["step"] == 4 and (state["exp_avg"].abs().sum(1) > 0).tolist() == changed


def test_a_state_of_sparse_adam_goes_on():
    layer, other = embedding(True), embedding(True)
    first = torch.optim.SparseAdam(layer.parameters(), 0.1)
    for _ in range(2):
        first.zero_grad()
        loss_of(layer).backward()
        first.step()
    file = io.BytesIO()
    torch.save([layer.state_dict(), first.state_dict()], file)
    weights, state = torch.load(io.BytesIO(file.getvalue()))
    other.load_state_dict(weights)
    second = torch.optim.SparseAdam(other.parameters(), 0.5)
    second.load_state_dict(state)
    for one, optimizer in ((layer, first), (other, second)):
        optimizer.zero_grad()
        loss_of(one).backward()
        optimizer.step()
    assert torch.equal(layer.weight, other.weight)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (torch.optim.Adam, "please consider SparseAdam instead"),
        (torch.optim.AdamW, "sparse gradients"),
        (torch.optim.RMSprop, "RMSprop does not support sparse gradients"),
        (torch.optim.NAdam, "NAdam does not support sparse gradients"),
        (lambda p: torch.optim.Adagrad(p, weight_decay=0.1), "weight_decay option is not compatible"),
    ],
)
def test_other_rules_refuse(make, text):
    layer = embedding(True)
    optimizer = make(layer.parameters())
    loss_of(layer).backward()
    before = layer.weight.detach().clone()
    with pytest.raises(RuntimeError, match=text):
        optimizer.step()
    assert torch.equal(layer.weight, before)


def test_sparse_adam_refuses():
    layer = embedding(False)
    loss_of(layer).backward()
    with pytest.raises(RuntimeError, match="dense gradients"):
        torch.optim.SparseAdam(layer.parameters()).step()
    sparse = torch.eye(2).to_sparse().requires_grad_()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[\[0, 0\]\]"):
        torch.optim.SparseAdam([sparse])


def test_dense_parameters_beside_them():
    torch.manual_seed(0)
    layer, head = embedding(True), torch.nn.Linear(3, 2)
    optimizer = torch.optim.SGD([*layer.parameters(), *head.parameters()], 0.1)
    before = [p.detach().clone() for p in (layer.weight, head.weight)]
    head(layer(torch.tensor([1, 2]))).pow(2).sum().backward()
    optimizer.step()
    for p, old in zip((layer.weight, head.weight), before):
        assert torch.allclose(p, old - 0.1 * p.grad.to_dense())


def test_a_word_model_learns():
    """Skip-gram with negative samples, as programs write it: two tables, sparse gradients, SparseAdam."""
    torch.manual_seed(0)
    tables = [torch.nn.Embedding(20, 8, sparse=True) for _ in range(2)]
    for table in tables:
        torch.nn.init.uniform_(table.weight, -0.1, 0.1)
    optimizer = torch.optim.SparseAdam([t.weight for t in tables], lr=0.05)
    losses = []
    for _ in range(60):
        centre = torch.randint(0, 20, (32,))
        context, noise = (centre + 1) % 20, torch.randint(0, 20, (32, 3))
        v, u, n = tables[0](centre), tables[1](context), tables[1](noise)
        positive = torch.nn.functional.logsigmoid((v * u).sum(1))
        negative = torch.nn.functional.logsigmoid(-torch.bmm(n, v[:, :, None])[..., 0]).sum(1)
        loss = -(positive + negative).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@own
def test_under_compile():
    def run(compiled):
        layer = embedding(True)
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)

        def step(index):
            optimizer.zero_grad()
            loss = (layer(index) ** 2).sum()
            loss.backward()
            optimizer.step()
            return loss

        step = torch.compile(step) if compiled else step
        losses = [step(torch.tensor(i)).item() for i in (INDEX, INDEX, [[1, 1, 1], [5, 5, 6]], INDEX, INDEX)]
        return losses, layer.weight.grad

    (eager, grad), (planned, other) = run(False), run(True)
    assert eager == planned and grad.is_sparse and other.is_sparse
    assert torch.equal(grad.to_dense(), other.to_dense())


@own
def test_scaler_and_clipping():
    layer = embedding(True)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    optimizer = torch.optim.SGD(layer.parameters(), 0.1)
    scaler.scale(loss_of(layer)).backward()
    scaler.unscale_(optimizer)
    loss_of(dense := embedding(False)).backward()
    assert torch.allclose(layer.weight.grad.to_dense(), dense.weight.grad)
    scaler.step(optimizer)
    scaler.update()


@own
def test_functions_may_return_them():
    class Rows(torch.autograd.Function):
        @staticmethod
        def forward(ctx, weight):
            return weight[:2] * 1

        @staticmethod
        def backward(ctx, grad):
            return torch.sparse_coo_tensor([[0, 1]], grad, (4, 3))

    leaf = torch.ones(4, 3, requires_grad=True)
    Rows.apply(leaf).sum().backward()
    assert leaf.grad.is_sparse
    base = torch.ones(4, 3, requires_grad=True)
    Rows.apply(base * 2).sum().backward()
    assert base.grad.tolist() == [[2.0] * 3] * 2 + [[0.0] * 3] * 2


@own
def test_threads_lose_none():
    layer = torch.nn.Embedding(5, 2, sparse=True)

    def work():
        for _ in range(50):
            layer(torch.tensor([1, 3])).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(3)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert layer.weight.grad.to_dense()[[1, 3]].tolist() == [[150.0, 150.0]] * 2


@own
def test_on_both_devices(device):
    layer = torch.nn.Embedding(6, 4, sparse=True).to(device)
    optimizer = torch.optim.SparseAdam(layer.parameters(), 0.1)
    before = layer.weight.detach().clone()
    layer(torch.tensor([1, 1, 4], device=device)).pow(2).sum().backward()
    assert layer.weight.grad.is_sparse and layer.weight.grad.device == layer.weight.device
    optimizer.step()
    assert (layer.weight != before).any(1).tolist() == [False, True, False, False, True, False]
