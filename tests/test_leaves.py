"""Leaves: accumulators created on demand, their hooks, their order in backward."""

import gc


def leaf(torch, *values):
    return torch.tensor(list(values)).requires_grad_()


def test_accumulators_are_kept_by_graphs(torch):
    w, seen = leaf(torch, 1.0, 2.0), []

    def accumulator(y):
        return y.grad_fn.next_functions[0][0]

    y, z = w * 2, w * 3
    assert accumulator(y) is accumulator(z) and accumulator(y).variable is w
    accumulator(y).register_hook(lambda inputs, outputs: seen.append(outputs[0].tolist()))  # the node is not kept
    y.sum().backward()
    del y
    z.sum().backward()  # another graph of the same leaf: the same node
    assert seen == [[2, 2], [3, 3]] and w.grad.tolist() == [5, 5]
    del z
    (w * 2).sum().backward()  # with the last graph the node and its hook are gone
    assert len(seen) == 2
    kept = accumulator(w * 2)
    kept.register_hook(lambda inputs, outputs: seen.append("kept"))
    (w * 2).sum().backward()
    assert seen[2:] == ["kept"] and accumulator(w * 2) is kept


def test_accumulators_do_not_leak(torch):
    gc.collect()
    before = torch._C.live_counts()
    for _ in range(3):
        w = leaf(torch, 1.0)
        y = w * 2
        y.grad_fn.next_functions[0][0].register_hook(lambda inputs, outputs: None)
        torch.autograd.graph.get_gradient_edge(w)
        del y, w
    gc.collect()
    assert torch._C.live_counts() == before


def test_leaves_come_as_soon_as_they_are_ready(torch):
    seen = []
    a, b = leaf(torch, 1.0), leaf(torch, 2.0)
    first = a * 2
    first.register_hook(lambda g: seen.append("first"))
    a.register_hook(lambda g: seen.append("a"))
    b.register_hook(lambda g: seen.append("b"))
    for _ in range(2):
        seen.clear()
        (first * b).sum().backward(retain_graph=True)
        assert seen == ["b", "first", "a"]


def test_leaves_made_before_the_graph_do_not_wait_for_its_end(torch):
    layers, seen = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(3))), []
    for name, p in layers.named_parameters():
        p.register_post_accumulate_grad_hook(lambda p, name=name: seen.append(name))
    hidden = layers[0](torch.ones(1, 2))
    hidden.register_hook(lambda g: seen.append("hidden"))
    layers[2](layers[1](hidden)).sum().backward()
    assert seen == ["2.bias", "2.weight", "1.bias", "1.weight", "hidden", "0.bias", "0.weight"]
    seen.clear()
    layers(torch.ones(1, 2)).sum().backward(inputs=list(layers.parameters()))
    assert seen == ["2.bias", "2.weight", "1.bias", "1.weight", "0.bias", "0.weight"]


def test_a_leaf_waits_for_all_its_gradients(torch):
    w, seen = leaf(torch, 3.0), []
    w.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    early = w * 2
    early.register_hook(lambda g: seen.append("early"))
    (early * 5 + w * w + w).sum().backward()
    assert seen == ["early", 17]
    other = (w * 7).sum()  # a graph that lives beside
    (w * 2 + w).sum().backward()
    other.backward()
    assert seen[2:] == [20, 27]


def test_leaves_that_are_roots(torch):
    w, seen = leaf(torch, 3.0), []
    w.register_hook(lambda g: seen.append(g.item()))
    torch.autograd.backward([w, w * 2, w], [torch.ones(1)] * 3)
    assert seen == [4] and w.grad.item() == 4


def test_an_error_leaves_the_gradients_that_came_before(torch):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("stop")

    a, b = leaf(torch, 1.0), leaf(torch, 2.0)
    loss = (Fails.apply(a) * b).sum()
    for expected in (2, 4):
        try:
            loss.backward(retain_graph=True)
        except ValueError:
            pass
        assert b.grad.item() == expected and a.grad is None


def test_gradients_of_matrices_lie_as_the_matrices(torch):
    """A weight is used transposed, and its gradient is row-major all the same: `.grad` takes it without a copy."""
    F, x, w, b = torch.nn.functional, torch.arange(6.0), torch.arange(12.0), leaf(torch, 1.0, 2.0, 3.0, 4.0)
    x2, w2 = x.reshape(2, 3).requires_grad_(), w.reshape(4, 3).requires_grad_()
    column = x.reshape(3, 2).t().requires_grad_()
    products = {
        "linear": (F.linear(x2, w2), x2),
        "biased": (F.linear(x2, w2, b), x2),
        "rows of rows": (F.linear(x2.reshape(1, 2, 3), w2, b), x2),
        "mm": (x2.mm(w2.t()), x2),
        "addmm": (torch.addmm(b, x2, w2.t(), alpha=2), x2),
        "column": (column @ w2.t(), column),
    }
    for name, (y, left) in products.items():
        g = torch.arange(8.0).reshape(y.shape)
        to_left, to_right = torch.autograd.grad(y, (left, w2), g)
        assert to_left.stride() == left.stride() and to_right.stride() == (3, 1), name
        factor = 2 if name == "addmm" else 1
        assert to_right.equal(factor * g.reshape(2, 4).t() @ left.detach()), name
        assert to_left.equal(factor * g.reshape(2, 4) @ w2.detach()), name
    assert torch.autograd.grad(x2 @ torch.eye(3, requires_grad=True), x2, torch.ones(2, 3))[0].stride() == (3, 1)
    complexes = [torch.randn(2, 2, dtype=torch.complex128).t().requires_grad_() for _ in range(2)]
    assert torch.autograd.gradcheck(torch.mm, complexes) and torch.autograd.gradgradcheck(torch.mm, complexes)


def test_hooks_do_not_wait_for_other_graphs(torch):
    """A leaf is complete once the edges of this pass delivered, however many graphs of it live."""
    for kind in ("tensor", "accumulated", "node"):
        a, b = leaf(torch, 1.0), leaf(torch, 2.0)
        others = [a * 2, (a * b).sum(), b + a]  # live, with more edges to both leaves
        seen = []
        late = a.exp()  # its node comes first in the graph, and last in backward
        late.register_hook(lambda g, seen=seen: seen.append("exp"))
        y = late.sin() + b * b
        node = y.grad_fn.next_functions[1][0].next_functions[0][0]
        if kind == "tensor":
            b.register_hook(lambda g, seen=seen: seen.append("b"))
        elif kind == "accumulated":
            b.register_post_accumulate_grad_hook(lambda p, seen=seen: seen.append("b"))
        else:
            node.register_prehook(lambda g, seen=seen: seen.append("b"))
        y.sum().backward()
        assert seen == ["b", "exp"] and b.grad.tolist() == [4.0], (kind, seen)
        seen.clear()
        b.grad = None
        (b * b + (b * 3 + a.exp()) + a).sum().backward(inputs=[b])  # edges outside of what is needed are not waited for
        assert seen == ["b"] and b.grad.tolist() == [7.0]
        del others


def test_multi_grad_hooks_while_another_graph_lives(torch):
    first, second = leaf(torch, 1.0), leaf(torch, 2.0)
    kept = [first * 2, second * 3, first + second]
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (first, second), lambda g: seen.append((g.tolist(), first.grad is None)), mode="any"
    )
    (first.exp().log().sin() + second * second).sum().backward()
    assert seen == [([4.0], True)]
    handle.remove()
    del kept


def test_a_leaf_takes_over_a_gradient_that_nobody_else_has(torch):
    layer, seen = torch.nn.Linear(3, 4), []
    for p in layer.parameters():
        p.register_hook(lambda g: seen.append(g.data_ptr()))
    layer(torch.ones(2, 3)).sum().backward()
    grads = [layer.weight.grad, layer.bias.grad]
    assert sorted(seen) == sorted(g.data_ptr() for g in grads)
    assert not any(g._is_view() for g in grads) and grads[0].stride() == (3, 1)
    assert grads[0].tolist() == [[2.0] * 3] * 4 and grads[1].tolist() == [2.0] * 4


def test_a_gradient_that_someone_holds_is_copied(torch):
    w, held = torch.ones(4, 3, requires_grad=True), torch.ones(4, 3)
    for hook in [lambda g: held, lambda g: held[:], lambda g: held.t().t(), lambda g: held.detach()]:
        held.fill_(1)
        handle = w.register_hook(hook)
        (w * 2).sum().backward()
        handle.remove()
        held.zero_()
        assert w.grad.tolist() == [[1.0] * 3] * 4 and not w.grad._is_view()
        w.grad = None


def test_a_gradient_kept_by_a_post_hook_is_the_one_in_grad(torch):
    layer, seen = torch.nn.Linear(3, 4), []
    layer.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad))
    layer(torch.ones(2, 3)).sum().backward()
    assert seen[0] is layer.weight.grad
    layer(torch.ones(2, 3)).sum().backward()
    assert seen[1] is seen[0] and seen[0].tolist() == [[4.0] * 3] * 4
