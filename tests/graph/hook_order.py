"""Which hooks run, in what order and on which gradients; and what they may return."""

from collections import OrderedDict


def leaf(torch):
    return torch.tensor([1.0, 2.0]).requires_grad_()


def chain(torch):
    """A leaf, two products, and a hook of every kind on each; what they saw, in order."""
    w, seen = leaf(torch), []
    x = w * 2
    y = x * 3
    accumulator = torch.autograd.graph.get_gradient_edge(w).node

    def note(text, factor=None):
        def hook(*values):
            grad = values[-1][0] if isinstance(values[-1], tuple) else values[-1]
            seen.append([text, grad])
            if factor is None:
                return None
            return (grad * factor,) if isinstance(values[-1], tuple) else grad * factor

        return hook

    w.register_post_accumulate_grad_hook(lambda p: seen.append(["accumulated", p.grad.clone()]))
    for text, t, node in (("w", w, accumulator), ("x", x, x.grad_fn), ("y", y, y.grad_fn)):
        node.register_hook(note(f"after {text}"))
        node.register_prehook(note(f"before {text}", 10))
        t.register_hook(note(f"tensor {text}", 5))
        if t is not w:
            t.retain_grad()
    return w, x, y, seen


def backward(torch):
    w, x, y, seen = chain(torch)
    y.sum().backward()
    return [seen, w.grad, x.grad, y.grad]


def of_inputs(*chosen):
    def case(torch):
        w, x, y, seen = chain(torch)
        found = torch.autograd.grad(y.sum(), [{"w": w, "x": x, "y": y}[c] for c in chosen])
        return [found, seen, w.grad, x.grad, y.grad]

    return case


def into_inputs(*chosen):
    def case(torch):
        w, x, y, seen = chain(torch)
        y.sum().backward(inputs=[{"w": w, "x": x, "y": y}[c] for c in chosen])
        return [seen, w.grad, x.grad, y.grad]

    return case


def inputs_retain(torch):
    x = leaf(torch) * 2
    (x * 3).sum().backward(inputs=[x])
    return [x.retains_grad, x.grad]


def constant(torch):
    """A function whose gradient is undefined."""
    body = {"forward": staticmethod(lambda ctx, x: x * 1), "backward": staticmethod(lambda ctx, g: None)}
    return type("Constant", (torch.autograd.Function,), body).apply


def undefined(torch):
    w, seen = leaf(torch), []
    x = w * 2
    accumulator = torch.autograd.graph.get_gradient_edge(w).node
    w.register_hook(lambda g: seen.append(["w", g]))
    w.register_post_accumulate_grad_hook(lambda p: seen.append(["accumulated", p.grad]))
    x.register_hook(lambda g: seen.append(["x", g]))
    x.retain_grad()
    for node in (x.grad_fn, accumulator):
        node.register_prehook(lambda o: seen.append(["before", o]))
        node.register_hook(lambda i, o: seen.append(["after", i, o]))
    constant(torch)(x).sum().backward()
    return [seen, w.grad, x.grad]


def undefined_to_function(torch):
    w, seen = leaf(torch), []
    body = {
        "forward": staticmethod(lambda ctx, x: x * 1),
        "backward": staticmethod(lambda ctx, g: seen.append(g) or g),
    }
    y = type("Own", (torch.autograd.Function,), body).apply(w)
    constant(torch)(y).sum().backward()
    return [seen, w.grad]


def other_output(torch):
    w, seen = leaf(torch), []
    a, b = w.unbind()
    a.register_hook(lambda g: seen.append(g))
    b.backward()
    return [seen, w.grad]


def replaced_undefined(torch):
    a, b = leaf(torch).unbind()
    a.register_hook(lambda g: torch.ones(()))
    b.backward()


def removed_and_added_in_the_middle(torch):
    w, seen, handles = leaf(torch), [], []

    def first(g):
        seen.append("first")
        handles[0].remove()
        w.register_hook(lambda g: seen.append("added"))

    w.register_hook(first)
    handles.append(w.register_hook(lambda g: seen.append("removed")))
    for _ in range(2):
        (w * 2).sum().backward()
    return seen


def dictionary(torch):
    w = leaf(torch)
    before = w._backward_hooks
    handle = w.register_hook(lambda g: g * 3)
    found = [before, len(w._backward_hooks), list(w._backward_hooks) == [handle.id]]
    w._backward_hooks = OrderedDict([(0, lambda g: g * 7)])
    (w * 1).sum().backward()
    handle.remove()
    return [*found, w.grad, len(w._backward_hooks)]


def dictionary_deleted(torch):
    del leaf(torch)._backward_hooks


def rebased_view(torch):
    seen = []
    y = leaf(torch) * 1
    v = y[:1]
    v.register_hook(lambda g: seen.append(["view before", g]))
    y.register_hook(lambda g: seen.append(["base before", g]))
    v.mul_(2)
    v.register_hook(lambda g: seen.append(["view after", g]))
    y.register_hook(lambda g: seen.append(["base after", g]))
    y.sum().backward()
    return seen


def rebased_by_base(torch):
    seen = []
    y = leaf(torch) * 1
    v, u = y[:1], y[1:]
    u.register_hook(lambda g: seen.append(["before", g]))
    for t in (y, v, u):
        t.retain_grad()
    y.mul_(2)
    u.register_hook(lambda g: seen.append(["after", g]))
    (y.sum() + v.sum() + u.sum()).backward()
    return [seen, y.grad, v.grad, u.grad, v.grad_fn.name(), u.grad_fn.name()]


def removed_after_in_place(torch):
    seen, y = [], leaf(torch) * 1
    handle = y.register_hook(lambda g: seen.append("hook"))
    y.mul_(2)
    handle.remove()
    y.sum().backward()
    return seen


def retained_is_a_copy(torch):
    w = torch.ones(2, 2).requires_grad_()
    y = (w * 2).t()
    y.retain_grad()
    y.sum().backward()
    y.grad.mul_(3)
    return [y.grad, y.grad.stride(), w.grad]


def frozen(change):
    def case(torch):
        w, seen = leaf(torch), []
        y = w * 2
        w.register_hook(lambda g: seen.append("hook"))
        w.register_post_accumulate_grad_hook(lambda p: seen.append("accumulated"))
        change(w)
        y.sum().backward()
        return [seen, w.grad]

    return case


def moved_into_the_graph(torch):
    w = leaf(torch)
    y = w * 2
    w.requires_grad_(False)
    w.mul_(leaf(torch))
    y.sum().backward()


def accumulated_answers(answer):
    def case(torch):
        w = leaf(torch)
        w.register_post_accumulate_grad_hook(lambda p: answer(torch, p))
        (w * 2).sum().backward()
        return w.grad

    return case


def fitted_before_hooks(torch):
    w, b = torch.ones(3, 2).requires_grad_(), leaf(torch)
    y, seen = w + b, []
    y.grad_fn.register_hook(lambda i, o: seen.append([g.shape for g in i]))
    y.sum().backward()
    return seen


ANSWERS = {
    "number": lambda torch, g: 3,
    "tensor": lambda torch, g: torch.ones(2),
    "tuple": lambda torch, g: (torch.ones(2),),
    "two": lambda torch, g: (torch.ones(2), torch.ones(2)),
    "list": lambda torch, g: [torch.ones(2), None],
    "nothing": lambda torch, g: (),
    "size": lambda torch, g: (torch.ones(3),),
    "tensor of another size": lambda torch, g: torch.ones(3),
    "type": lambda torch, g: (torch.ones(2, dtype=torch.float64),),
    "tensor of another type": lambda torch, g: torch.ones(2, dtype=torch.float64),
    "none": lambda torch, g: (None,),
    "two nones": lambda torch, g: (None, None),
    "two numbers": lambda torch, g: (3, None),
}
PLACES = {
    "tensor": lambda y, hook: y.register_hook(hook),
    "before": lambda y, hook: y.grad_fn.register_prehook(hook),
    "after": lambda y, hook: y.grad_fn.register_hook(lambda i, o: hook(o)),
}


def answered(place, answer):
    def case(torch):
        w = leaf(torch)
        y = w * 2
        PLACES[place](y, lambda g: ANSWERS[answer](torch, g))
        y.sum().backward()
        return w.grad

    return case


def node_called(torch):
    x = leaf(torch) * 3
    node, seen = (x**2).grad_fn, []
    node.register_hook(lambda i, o: seen.append("hook"))
    found = node(torch.ones(2))
    return [found, found.requires_grad, node(None), seen]


def accumulator_called(torch):
    w = leaf(torch)
    node = torch.autograd.graph.get_gradient_edge(w).node
    return [node(torch.ones(2)), node(torch.ones(2)), w.grad]


def node_called_wrongly(*args, **kwargs):
    return lambda torch: (leaf(torch) ** 2).grad_fn(*args, **kwargs)


CASES = {
    "backward": backward,
    "inputs retain": inputs_retain,
    "undefined": undefined,
    "undefined to function": undefined_to_function,
    "other output": other_output,
    "replaced undefined": replaced_undefined,
    "removed and added in the middle": removed_and_added_in_the_middle,
    "dictionary": dictionary,
    "dictionary deleted": dictionary_deleted,
    "rebased view": rebased_view,
    "rebased by base": rebased_by_base,
    "removed after in place": removed_after_in_place,
    "retained is a copy": retained_is_a_copy,
    "frozen": frozen(lambda w: w.requires_grad_(False)),
    "detached": frozen(lambda w: w.detach_()),
    "moved into the graph": moved_into_the_graph,
    "accumulated returns its tensor": accumulated_answers(lambda torch, p: p),
    "accumulated returns another": accumulated_answers(lambda torch, p: p.grad),
    "accumulated returns a number": accumulated_answers(lambda torch, p: 3),
    "fitted before hooks": fitted_before_hooks,
    "node called": node_called,
    "accumulator called": accumulator_called,
    "node called without gradient": node_called_wrongly(),
    "node called with two": node_called_wrongly(None, None),
    "node called with a number": node_called_wrongly(3),
    "node called with keywords": node_called_wrongly(None, g=None),
}
CASES |= {f"grad of {' '.join(c)}": of_inputs(*c) for c in ("w", "x", "y", "wx", "xy", "wxy")}
CASES |= {f"backward into {' '.join(c)}": into_inputs(*c) for c in ("w", "x", "y", "wx", "wxy")}
CASES |= {f"{place} answers {answer}": answered(place, answer) for place in PLACES for answer in ANSWERS}
