"""Custom functions: `ctx`, errors, views and in-place ops inside them, second derivatives."""


def leaf(torch):
    return torch.tensor([1.0, 2.0]).requires_grad_()


def function(torch, forward, backward, **more):
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward), **more}
    return type("Own", (torch.autograd.Function,), body)


def same(ctx, *grads):
    return grads[0] if len(grads) == 1 else grads


def called(forward, backward=same, use=None):
    """Applies a function to a non-leaf and differentiates; names, values and gradients are the outcome."""

    def case(torch):
        w = leaf(torch)
        x = w * 1
        out = function(torch, lambda ctx, t: forward(torch, ctx, t), backward).apply(x)
        first = out[0] if isinstance(out, tuple) else out
        found = [first.grad_fn and first.grad_fn.name(), first.requires_grad, first is x, first._base is x, first]
        if use is not None:
            use(first)
        if first.requires_grad:
            first.sum().backward()
        return [*found, first, w.grad]

    return case


def dirty(torch, ctx, t):
    t.mul_(2)
    ctx.mark_dirty(t)
    return t


def dirty_not_returned(torch, ctx, t):
    ctx.mark_dirty(t)
    return t * 2


def not_differentiable(torch, ctx, t):
    out = t * 2
    ctx.mark_non_differentiable(out)
    return out


def dirty_leaf(torch):
    function(torch, lambda ctx, t: dirty(torch, ctx, t), same).apply(leaf(torch))


def dirty_view(torch):
    w = leaf(torch)
    x = w * 1
    v = function(torch, lambda ctx, t: dirty(torch, ctx, t), lambda ctx, g: g * 2).apply(x[:1])
    (x * x).sum().backward()
    return [x.grad_fn.name(), v.grad_fn.name(), x, w.grad]


def needs_input_grad(torch):
    seen, w = [], leaf(torch)
    own = function(
        torch, lambda ctx, a, b, c: a * 1 + c, lambda ctx, g: seen.append(ctx.needs_input_grad) or (g, None, None)
    )
    own.apply(w, 3, torch.ones(2)).sum().backward()
    return seen


def missing_gradients(materialize):
    def case(torch):
        seen, w = [], leaf(torch)

        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        def backward(ctx, a, b):
            seen.append([a is None, b is None])
            return a if b is None else a + b

        first, _ = function(torch, forward, backward).apply(w)
        first.sum().backward()
        return [seen, w.grad]

    return case


def double_backward(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    w = leaf(torch)
    own = function(torch, forward, lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2)
    (g,) = torch.autograd.grad(own.apply(w).sum(), w, create_graph=True)
    return [g, torch.autograd.grad(g.sum(), w)]


def once(torch):
    once_differentiable = torch.autograd.function.once_differentiable
    w = leaf(torch)
    own = function(torch, lambda ctx, x: x * 2, once_differentiable(lambda ctx, g: g * 2))
    (g,) = torch.autograd.grad(own.apply(w).sum(), w, torch.tensor(1.0).requires_grad_(), create_graph=True)
    g.sum().backward()


def returned(*grads):
    def case(torch):
        own = function(torch, lambda ctx, a, b: a * b, lambda ctx, g: tuple(f(torch, g) for f in grads))
        w = leaf(torch)
        own.apply(w, 2.0).sum().backward()
        return w.grad

    return case


def setup_context(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)
        ctx.factor = inputs[1]

    w = leaf(torch)
    own = function(
        torch,
        lambda x, factor: x * factor,
        lambda ctx, g: (g * ctx.factor * (ctx.saved_tensors[1] / ctx.saved_tensors[0]), None),
        setup_context=staticmethod(setup),
    )
    out = own.apply(w, 3)
    out.sum().backward()
    return [out, w.grad]


def saved_changed(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    x = leaf(torch) * 1
    out = function(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    x.add_(1)
    out.sum().backward()


def saved_twice(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1

    out = function(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(leaf(torch)).sum()
    out.backward()
    out.backward()


def saves_no_tensor(torch):
    function(torch, lambda ctx, x: (ctx.save_for_backward(3), x * 1)[1], same).apply(leaf(torch))


def returns_no_tensor(torch):
    function(torch, lambda ctx, x: 3, same).apply(leaf(torch))


def no_forward(torch):
    type("Own", (torch.autograd.Function,), {}).apply(leaf(torch))


def no_backward(torch):
    own = type("Own", (torch.autograd.Function,), {"forward": staticmethod(lambda ctx, x: x * 1)})
    own.apply(leaf(torch)).sum().backward()


def attributes(torch):
    def forward(ctx, x):
        ctx.note = "kept"
        ctx.save_for_backward(x, None)
        return x * 1

    out = function(torch, forward, same).apply(leaf(torch))
    node = out.grad_fn
    return [node.note, len(node.saved_tensors), node.needs_input_grad, type(node).__name__, node.next_functions[0][1]]


def in_no_grad(torch):
    with torch.no_grad():
        out = function(torch, lambda ctx, x: x * 2, same).apply(leaf(torch))
    return [out.requires_grad, out.grad_fn]


def default_arguments(torch):
    seen, w = [], leaf(torch)

    def setup(ctx, inputs, output):
        seen.append(len(inputs))
        ctx.y = inputs[1]

    own = function(torch, lambda x, y=3: x * y, lambda ctx, g: (g * ctx.y, None), setup_context=staticmethod(setup))
    for out in (own.apply(w), own.apply(w, 4), own.apply(w, y=5)):
        out.sum().backward()
    return [seen, w.grad]


def keyword(torch):
    return function(torch, lambda ctx, x, y=3: x * y, same).apply(leaf(torch), y=4)


def input_saved_and_returned(torch):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    function(torch, lambda x: x, same, setup_context=staticmethod(setup)).apply(leaf(torch))


def undefined_of_constants(torch):
    seen = []

    def forward(ctx, x):
        ctx._materialize_non_diff_grads = False
        out = x * 1, x * 2
        ctx.mark_non_differentiable(out[1])
        return out

    function(torch, forward, lambda ctx, *grads: seen.append(grads) or grads[0]).apply(leaf(torch))[0].sum().backward()
    return seen


def dirty_without_recording(torch):
    x = leaf(torch) * 1
    with torch.no_grad():
        out = function(torch, lambda ctx, t: dirty(torch, ctx, t), same).apply(x)
    return [out is x, out.requires_grad, x.requires_grad, out, x._version]


def dirty_view_and_another(torch):
    both = function(torch, lambda ctx, t: (dirty(torch, ctx, t), t * 2), lambda ctx, a, b: a + b)
    try:
        return both.apply((leaf(torch) * 1)[:1])
    except RuntimeError as error:
        return str(error)[:200]


def dirty_and_another(torch):
    w = leaf(torch)
    both = function(torch, lambda ctx, t: (dirty(torch, ctx, t), t * 2), lambda ctx, a, b: a + b)
    a, b = both.apply(w * 1)
    a += 2
    (a * b).sum().backward()
    return w.grad


def saved_variables(torch):
    def backward(ctx, g):
        return g * ctx.saved_variables[0]

    w = leaf(torch)
    function(torch, lambda ctx, x: ctx.save_for_backward(x) or x * 1, backward).apply(w).sum().backward()
    return w.grad


def contexts_are_nodes(torch):
    node, seen = torch.autograd.graph.Node, []
    own = function(torch, lambda ctx, x: seen.append(isinstance(ctx, node)) or x * 1, same)
    out = own.apply(leaf(torch))
    kinds = [
        isinstance(out.grad_fn, node),
        isinstance(node, node),
        isinstance(3, node),
        node in type(out.grad_fn).mro(),
    ]
    return [seen, kinds]


def nested(torch):
    """Each backward runs another one, deeper than one stack could hold."""
    seen = []

    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    def backward(ctx, g):
        seen.append(1)
        if ctx.x > 0:
            with torch.enable_grad():
                own.apply(ctx.x).sum().backward()
        return g

    own = function(torch, forward, backward)
    own.apply(torch.tensor(500.0).requires_grad_()).sum().backward()
    return len(seen)


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in (
    "leaf",
    "function",
    "same",
    "called",
    "dirty",
    "dirty_not_returned",
    "not_differentiable",
    "returned",
    "missing_gradients",
):
    del CASES[helper]
CASES |= {
    "plain": called(lambda torch, ctx, t: t * 2),
    "input as it is": called(lambda torch, ctx, t: t),
    "input as it is, then written": called(lambda torch, ctx, t: t, use=lambda t: t.mul_(2)),
    "view": called(lambda torch, ctx, t: t[:1], lambda ctx, g: g.expand(2)),
    "view, then written": called(lambda torch, ctx, t: t[:1], lambda ctx, g: g.expand(2), lambda t: t.mul_(2)),
    "two views, then written": called(
        lambda torch, ctx, t: (t[:1], t[1:]), lambda ctx, a, b: a.expand(2), lambda t: t.mul_(2)
    ),
    "dirty": called(dirty, lambda ctx, g: g * 2),
    "dirty not returned": called(dirty_not_returned),
    "not differentiable": called(not_differentiable),
    "wrong shape": called(lambda torch, ctx, t: t * 1, lambda ctx, g: g[None].expand(3, 2).reshape(6)),
    "wrong count": called(lambda torch, ctx, t: t * 1, lambda ctx, g: (g, g)),
    "extra None": called(lambda torch, ctx, t: t * 1, lambda ctx, g: (g, None)),
    "no tensor": called(lambda torch, ctx, t: t * 1, lambda ctx, g: 3),
    "none": called(lambda torch, ctx, t: t * 1, lambda ctx, g: None),
    "materialized": missing_gradients(True),
    "not materialized": missing_gradients(False),
    "gradient of a number": returned(lambda torch, g: g, lambda torch, g: g),
    "too few": returned(lambda torch, g: g),
}
