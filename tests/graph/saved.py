"""Saved tensors of nodes: `_saved_*`, `_raw_saved_*` with hooks, and saved-tensor hooks."""


def xy(torch):
    x = torch.tensor([0.5, 2.0]).requires_grad_()
    return x, torch.tensor([3.0, 4.0]).requires_grad_()


def kept(make, *names):
    def case(torch):
        x, y = xy(torch)
        node = make(torch, x, y).grad_fn
        return {n: getattr(node, "_saved_" + n) for n in names}

    return case


def same_tensor(torch):
    x, y = xy(torch)
    node = (x * y).grad_fn
    return [node._saved_self is x, node._saved_other is y]


def result_has_history(torch):
    x, _ = xy(torch)
    y = x.exp()
    return [y.grad_fn._saved_result.grad_fn is y.grad_fn, (y.grad_fn._saved_result == y).all()]


def only_what_is_needed(torch):
    x, y = xy(torch)
    node = (x * y.detach()).grad_fn
    return [node._saved_self, node._saved_other]


def freed(torch):
    x, y = xy(torch)
    z = x * y
    z.sum().backward()
    return z.grad_fn._saved_self


def unknown(torch):
    x, y = xy(torch)
    return (x + y).grad_fn._saved_self


def raw_hooks(torch):
    x, y = xy(torch)
    z = x * y
    z.grad_fn._raw_saved_self.register_hooks(lambda t: t.detach() * 10, lambda t: t)
    z.sum().backward()
    return [x.grad, y.grad]


def raw_hooks_on_result(torch):
    x, _ = xy(torch)
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t.detach() * 2, lambda t: t)
    z.sum().backward()
    return x.grad


def raw_hooks_twice(torch):
    x, y = xy(torch)
    raw = (x * y).grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t, lambda t: t)
    raw.register_hooks(lambda t: t, lambda t: t)


def raw_hooks_on_nothing(torch):
    x, y = xy(torch)
    (x * y.detach()).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def raw_hooks_after(torch):
    x, y = xy(torch)
    z = x * y
    raw = z.grad_fn._raw_saved_self
    z.sum().backward()
    raw.register_hooks(lambda t: t, lambda t: t)


def disabled(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no hooks here"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass


def enabled_again(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no hooks here"):
        pass
    with graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t):
        x, _ = xy(torch)
        z = x * x
    z.sum().backward()
    return x.grad


def hooks_nest(torch):
    graph, seen, (x, y) = torch.autograd.graph, [], xy(torch)
    with graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            x * y
        x * y
    return seen


def hook_returns_no_tensor(torch):
    x, y = xy(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        z = x * y
    z.sum().backward()


def mutation_allowed(torch):
    x, y = xy(torch)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        a = x * 1
        z = a * y
        a.mul_(100)
        z.sum().backward()
    return [x.grad, y.grad]


def mutation_nested(torch):
    graph = torch.autograd.graph
    with graph.allow_mutation_on_saved_tensors(), graph.allow_mutation_on_saved_tensors():
        pass


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in ("xy", "kept"):
    del CASES[helper]
CASES |= {
    "mul": kept(lambda torch, x, y: x * y, "self", "other"),
    "sum": kept(lambda torch, x, y: x[None].sum(1), "keepdim", "self_sym_sizes"),
    "add": kept(lambda torch, x, y: x.add(y, alpha=3), "alpha"),
    "pow": kept(lambda torch, x, y: x**3, "self", "exponent"),
    "exp": kept(lambda torch, x, y: x.exp(), "result"),
    "max": kept(lambda torch, x, y: x[None].max(1)[0], "indices", "keepdim", "dim", "self_sym_sizes"),
    "clamp": kept(lambda torch, x, y: x.clamp(0.0, 1.0), "self", "min", "max"),
    "where": kept(lambda torch, x, y: torch.where(x > 1, x, y), "condition"),
    "gather": kept(lambda torch, x, y: x.gather(0, torch.tensor([1])), "index", "dim"),
    "transpose": kept(lambda torch, x, y: x[None].transpose(0, 1), "dim0", "dim1"),
    "softmax": kept(lambda torch, x, y: x.softmax(0), "result", "dim"),
    "mean": kept(lambda torch, x, y: x.mean(), "self_sym_sizes", "self_sym_numel"),
    "div": kept(lambda torch, x, y: x.div(y, rounding_mode="floor"), "rounding_mode"),
    "mm": kept(lambda torch, x, y: x[None].mm(y[:, None]), "self", "mat2"),
    "index_put": kept(lambda torch, x, y: (x * 1).index_put_((torch.tensor([0]),), y[:1]), "indices", "accumulate"),
}
