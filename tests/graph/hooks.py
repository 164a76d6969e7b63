"""Hooks: their order, return values, arguments, and handles."""


def leaf(torch):
    return torch.tensor([1.0, 2.0]).requires_grad_()


def order(torch):
    seen, w = [], leaf(torch)
    y = w * 2
    y.retain_grad()
    y.grad_fn.register_hook(lambda i, o: seen.append("node"))
    y.grad_fn.register_prehook(lambda o: seen.append("node before"))
    y.register_hook(lambda g: seen.append("tensor") or g * 2)
    w.register_hook(lambda g: seen.append("leaf"))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(["after", p.grad is not None]))
    y.sum().backward()
    return [seen, w.grad, y.grad]


def hooks_chain(torch):
    w = leaf(torch)
    w.register_hook(lambda g: g + 1)
    w.register_hook(lambda g: g * 10)
    (w * 1).sum().backward()
    return w.grad


def wrong_type(torch):
    w = leaf(torch)
    w.register_hook(lambda g: 3)
    (w * 1).sum().backward()


def wrong_size(torch):
    w = leaf(torch)
    w.register_hook(lambda g: g[:1])
    (w * 1).sum().backward()


def no_gradient(torch):
    torch.ones(2).register_hook(print)


def post_on_non_leaf(torch):
    (leaf(torch) * 1).register_post_accumulate_grad_hook(print)


def node_hook_changes(torch):
    w = leaf(torch)
    y = w * 3
    y.grad_fn.register_hook(lambda i, o: (i[0] * 10, None))
    y.sum().backward()
    return w.grad


def node_hook_sees(torch):
    w, seen = leaf(torch), []
    y = w * w.detach()
    y.grad_fn.register_hook(lambda i, o: seen.append([[g is None for g in i], o[0]]))
    y.sum().backward()
    return seen


def prehook_changes(torch):
    w = leaf(torch)
    y = w * 3
    y.grad_fn.register_prehook(lambda o: (o[0] * 10,))
    y.sum().backward()
    return w.grad


def accumulator_hooks(torch):
    w, seen = leaf(torch), []
    node = w.view_as(w).grad_fn.next_functions[0][0]
    node.register_hook(lambda i, o: seen.append([len(i), o[0]]))
    node.register_prehook(lambda o: seen.append(["before", o[0]]))
    (w * 2).sum().backward()
    return seen


def removed_inside(torch):
    w, seen = leaf(torch), []
    handles = []
    handles.append(w.register_hook(lambda g: (seen.append(1), handles[0].remove())[0]))
    (w * 1).sum().backward()
    (w * 1).sum().backward()
    return seen


def after_in_place(torch):
    w, seen = leaf(torch), []
    y = w * 2
    y.register_hook(lambda g: seen.append(["first", g]))
    y.retain_grad()
    y.mul_(3)
    y.register_hook(lambda g: seen.append(["second", g]))
    y.sum().backward()
    return [seen, y.grad, w.grad]


def with_inputs(torch):
    w, v, seen = leaf(torch), leaf(torch), []
    for t in (w, v):
        t.register_hook(lambda g: seen.append("hook"))
        t.register_post_accumulate_grad_hook(lambda p: seen.append("post"))
    (w * v).sum().backward(inputs=[w])
    return [seen, w.grad, v.grad]


def with_grad(torch):
    w, seen = leaf(torch), []
    w.register_hook(lambda g: seen.append("hook") or g * 2)
    w.register_post_accumulate_grad_hook(lambda p: seen.append("post"))
    return [torch.autograd.grad((w * 3).sum(), w), seen]


def retained_of_grad(torch):
    w = leaf(torch)
    y = w * 2
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), [y, w], retain_graph=True)
    return [y.grad, w.grad, y.retains_grad]


def multi(mode):
    def case(torch):
        w, v, u, seen = leaf(torch), leaf(torch), leaf(torch), []
        handle = torch.autograd.graph.register_multi_grad_hook((w, v, u), seen.append, mode=mode)
        (w * v).sum().backward()
        handle.remove()
        (w * v).sum().backward()
        return seen

    return case


def multi_in_each_pass(torch):
    w, v, u, seen = leaf(torch), leaf(torch), leaf(torch), []
    register = torch.autograd.graph.register_multi_grad_hook
    register((w, v), lambda grads: seen.append(["all", len(grads)]))
    register((w, u), lambda grads: seen.append(["some", grads[1]]))
    register((w, v), lambda grad: seen.append("any"), mode="any")
    for _ in range(2):
        (w * v).sum().backward()
    u.sum().backward()
    return sorted(map(str, seen))


def multi_of_nodes(torch):
    w, seen = leaf(torch), []
    a, b = w * 2, w * 3
    torch.autograd.graph.register_multi_grad_hook((a, b), seen.append)
    (a * b).sum().backward()
    return seen


def queued(torch):
    w, seen = leaf(torch), []
    queue = torch.autograd.graph.queue_callback
    w.register_hook(lambda g: queue(lambda: seen.append(w.grad.clone())))
    w.sum().backward()
    return seen


def queued_outside(torch):
    torch.autograd.graph.queue_callback(lambda: None)


def mutable_hook(torch):
    w, out = leaf(torch), []
    y = w * 1
    y.register_hook(lambda g: out.append(g) or None)
    y.sum().backward()
    return out


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in ("leaf", "multi"):
    del CASES[helper]
CASES |= {"multi all": multi("all"), "multi any": multi("any"), "multi wrong": multi("some")}
