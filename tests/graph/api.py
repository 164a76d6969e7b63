"""The functions of the documentation page of autograd: arguments, errors and warnings."""


def leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0)).requires_grad_()


def backward_needs_scalar(torch):
    (leaf(torch) * 2).backward()


def backward_wrong_shape(torch):
    (leaf(torch) * 2).backward(torch.ones(3))


def backward_wrong_dtype(torch):
    (leaf(torch) * 2).backward(torch.ones(2, dtype=torch.complex64))


def backward_inputs(torch):
    a, b = leaf(torch), leaf(torch)
    y = a * b
    y.sum().backward(inputs=[a, y])
    return [a.grad, b.grad, y.grad]


def backward_no_inputs(torch):
    leaf(torch).sum().backward(inputs=[])


def backward_create_graph(torch):
    a = leaf(torch)
    (a**3).sum().backward(create_graph=True)
    return [a.grad, a.grad.requires_grad]


def no_grad_needed(torch):
    torch.ones(1).sum().backward()


def grad_unused(torch):
    a, b = leaf(torch), leaf(torch)
    torch.autograd.grad(a.sum(), [a, b])


def grad_not_requiring(torch):
    torch.autograd.grad(leaf(torch).sum(), torch.ones(1))


def grad_allowed(torch):
    a, b = leaf(torch), leaf(torch)
    return torch.autograd.grad((a * a).sum(), [a, b], allow_unused=True)


def grad_materialized(torch):
    a, b = leaf(torch), leaf(torch)
    return torch.autograd.grad((a * a).sum(), [a, b], materialize_grads=True)


def grad_materialized_conflict(torch):
    a = leaf(torch)
    torch.autograd.grad(a.sum(), a, allow_unused=False, materialize_grads=True)


def grad_batched(torch):
    a = leaf(torch)
    return torch.autograd.grad(a * a, a, torch.eye(2), is_grads_batched=True)


def grad_batched_wrong(torch):
    a = leaf(torch)
    torch.autograd.grad(a * a, a, torch.ones(2, 3), is_grads_batched=True)


def grad_batched_sizes(torch):
    a = leaf(torch)
    torch.autograd.grad([a * a, a.sum()], a, [torch.eye(2), torch.ones(3)], is_grads_batched=True)


def grad_batched_number(torch):
    a = leaf(torch)
    torch.autograd.grad((a * a).sum(), a, is_grads_batched=True)


def grad_dtype(dtype):
    def case(torch):
        a = leaf(torch)
        a.grad_dtype = dtype and getattr(torch, dtype)
        found = [str(a.grad_dtype)]
        (a.to(torch.float64) * 2).sum().backward()
        (a * 2).sum().backward()
        other = torch.autograd.grad((a * torch.ones(3, 2)).sum(), a)[0]
        return [*found, str(a.grad.dtype), a.grad.tolist(), str(other.dtype), other.tolist()]

    return case


def grad_dtype_later(torch):
    a = leaf(torch)
    y = a * 2
    a.grad_dtype = torch.float64
    y.sum().backward()
    return [str(a.grad.dtype), str(a.detach().grad_dtype), str((a * 2).grad_dtype), a.clone().grad_dtype == a.dtype]


def grad_dtype_any(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g.double()

    a, b = leaf(torch), leaf(torch)
    a.grad_dtype = None
    Twice.apply(a).sum().backward()
    b.grad_dtype = None
    b.grad = torch.ones(2, dtype=torch.float64)
    return [str(a.grad.dtype), str(b.grad.dtype)]


def grad_dtype_no_dtype(torch):
    leaf(torch).grad_dtype = 3


def grad_dtype_of_non_leaf(torch):
    y = leaf(torch) * 2
    y.grad_dtype = torch.float64


def grad_dtype_beside_grad(torch):
    a = leaf(torch)
    a.grad = torch.ones(2)
    a.grad_dtype = torch.float32
    a.grad_dtype = torch.float64


def grad_dtype_then_another_grad(torch):
    a = leaf(torch)
    a.grad_dtype = torch.float64
    a.grad = torch.ones(2)


def grad_only_inputs(torch):
    a = leaf(torch)
    return torch.autograd.grad(a.sum(), a, only_inputs=False)


def grad_of_itself(torch):
    a = leaf(torch)
    y = a * 2
    return torch.autograd.grad(y.sum(), [y, a])


def same_input_twice(torch):
    a = leaf(torch)
    return torch.autograd.grad((a * a).sum(), [a, a])


def grad_of_non_leaf(torch):
    return (leaf(torch) * 2).grad


def grad_object(torch):
    a = leaf(torch)
    (a * a).sum().backward()
    first = a.grad
    (a * a).sum().backward()
    same = a.grad is first
    (a * a).sum().backward(create_graph=True)
    return [same, a.grad is first, a.grad]


def grad_layout(torch):
    a = torch.ones(2, 3).requires_grad_()
    a.t().clone().sum().backward()
    b = torch.ones(3).requires_grad_()
    b.sum().backward()
    return [a.grad.stride(), b.grad.stride()]


def grad_stolen(torch):
    a, g = leaf(torch), torch.ones(2)
    (a * 1).backward(g)
    return [a.grad is g, a.grad.data_ptr() == g.data_ptr()]


def assign_grad(value):
    def case(torch):
        a = leaf(torch)
        a.grad = value(torch, a)
        return a.grad

    return case


def edge(torch):
    graph, a = torch.autograd.graph, leaf(torch)
    y = a * 3
    e = graph.get_gradient_edge(y)
    return [
        e.output_nr,
        e.node is y.grad_fn,
        torch.autograd.grad(e, a, torch.ones(2)),
        graph.get_gradient_edge(a).node.name(),
    ]


def edge_of_constant(torch):
    torch.autograd.graph.get_gradient_edge(torch.ones(1))


def node_class(torch):
    y = leaf(torch) * 3
    node = y.grad_fn
    accumulator = node.next_functions[0][0]
    found = [isinstance(node, torch.autograd.graph.Node), node.name(), accumulator.name(), type(accumulator).__name__]
    found += [node.next_functions[1], node._sequence_nr() < (y * 1).grad_fn._sequence_nr(), node.metadata]
    meta = node._input_metadata[0]
    return [*found, list(meta.shape), str(meta.dtype).rpartition(".")[2], str(meta.device)]


def set_grad_enabled(torch):
    seen = []
    torch.set_grad_enabled(False)
    seen.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        seen.append(torch.is_grad_enabled())

    @torch.set_grad_enabled(False)
    def inside():
        return torch.is_grad_enabled()

    return [*seen, inside(), torch.is_grad_enabled()]


def requires_grad_rules(torch):
    a = leaf(torch)
    y = a * 1
    y.requires_grad_()
    y.requires_grad = False


def integers(torch):
    torch.tensor([1]).requires_grad_()


def integer_argument(torch):
    torch.ones(1, dtype=torch.int64, requires_grad=True)


def functional(name, *args, **kwargs):
    def case(torch):
        f = getattr(torch.autograd.functional, name)
        x, v = torch.tensor([1.0, 2.0]), torch.tensor([1.0, -1.0])
        return f(*(a(torch, x, v) for a in args), **kwargs)

    return case


def both(f):
    return lambda torch, x, v: f


def gradcheck_not_double(torch):
    return torch.autograd.gradcheck(lambda x: x * x, leaf(torch), raise_exception=False)


def gradcheck_fast(torch):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64).requires_grad_()
    check = torch.autograd.gradcheck
    return [check(lambda x: x.sin(), x, fast_mode=True), check(lambda x: x.sin(), x, eps=1e-5, atol=1e-4, rtol=1e-2)]


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in ("leaf", "assign_grad", "functional", "both", "grad_dtype"):
    del CASES[helper]
CASES |= {
    "assign grad": assign_grad(lambda torch, a: torch.ones(2)),
    "assign grad of another shape": assign_grad(lambda torch, a: torch.ones(3)),
    "assign grad of another dtype": assign_grad(lambda torch, a: torch.ones(2, dtype=torch.float64)),
    "assign a number as grad": assign_grad(lambda torch, a: 3),
    "assign itself as grad": assign_grad(lambda torch, a: a),
}
CASES |= {f"grad_dtype {d}": grad_dtype(d) for d in ("float64", "float16", "complex64", "float32", None)}
CUBE, X, V = both(lambda x: (x**3).sum()), (lambda torch, x, v: x), (lambda torch, x, v: v)
SQUARE = both(lambda x: x * x)
CONSTANT = both(lambda x: (x.detach() * 2).sum())
for name in ("jacobian", "hessian"):
    for options in ({}, {"create_graph": True}, {"strict": True}, {"vectorize": True}):
        CASES[f"{name} {options}"] = functional(name, CUBE, X, **options)
    CASES[f"{name} of a constant, strict"] = functional(name, CONSTANT, X, strict=True)
    CASES[f"{name} of a constant"] = functional(name, CONSTANT, X)
for name in ("vjp", "jvp", "vhp", "hvp"):
    target = SQUARE if name in ("vjp", "jvp") else CUBE
    for options in ({}, {"create_graph": True}, {"strict": True}):
        CASES[f"{name} {options}"] = functional(name, target, X, V, **options)
    CASES[f"{name} without v"] = functional(name, target, X)
    CASES[f"{name} of a constant, strict"] = functional(name, CONSTANT, X, V, strict=True)
