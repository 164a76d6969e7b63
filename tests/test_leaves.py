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
