"""Programs in the style of PyTorch's notes and tutorials, with their output; and incorrect calls.

A program returns the texts that it would print. Errors are separate cases, one for each call.
"""

import io


def texts(*values):
    return [repr(v).replace("rustgrad", "torch") for v in values]


def linear_function(torch):
    """Extending PyTorch: a function with a separate `setup_context` and an optional bias."""

    class Linear(torch.autograd.Function):
        @staticmethod
        def forward(x, weight, bias):
            out = x.mm(weight.t())
            return out if bias is None else out + bias

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            x, weight, bias = ctx.saved_tensors
            wanted = ctx.needs_input_grad
            grads = [grad.mm(weight) if wanted[0] else None, grad.t().mm(x) if wanted[1] else None]
            return *grads, grad.sum(0) if bias is not None and wanted[2] else None

    x, w = torch.arange(6.0).reshape(2, 3), torch.ones(4, 3).requires_grad_()
    b = torch.zeros(4, requires_grad=True)
    bare, full = Linear.apply(x, w, None), Linear.apply(x, w, b)
    (bare.sum() + (full**2).sum()).backward()
    return texts(bare, full.grad_fn.name(), full.grad_fn.next_functions[0], w.grad, b.grad)


def autograd_mechanics(torch):
    """Saved tensors, hooks that transform them, and a write that invalidates them."""
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x.pow(2)
    seen = [x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self, y.grad_fn._saved_exponent]
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.shape) or t * 10, lambda t: t / 10):
        z = (x * x).exp()
    z.sum().backward()
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda g: (g[0] + 1,))
    grad = torch.autograd.grad(y.sum(), x)
    names = [n for n in dir(x.pow(2).grad_fn) if n.startswith("_raw_saved_")]
    return texts(seen, packed, x.grad, grad, names)


def changed_after_saving(torch):
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def optimizing(torch):
    """Parameter groups, step hooks, a scheduler, and saving and loading the state."""
    weight, bias = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.zeros(2))
    groups = [{"params": [weight], "lr": 0.5}, {"params": [bias]}]
    opt = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.1)
    seen = []
    opt.register_step_pre_hook(lambda o, args, kwargs: seen.append((args == (opt,), kwargs)))
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append(o is opt))
    for _ in range(3):
        opt.zero_grad()
        ((weight - 3) ** 2 + (bias + 1) ** 2).sum().backward()
        opt.step()
        schedule.step()
    file = io.BytesIO()
    torch.save(opt.state_dict(), file)
    file.seek(0)
    state = torch.load(file)
    again = torch.optim.SGD([{"params": [weight]}, {"params": [bias]}], lr=7.0)
    again.load_state_dict(state)
    return texts(weight, bias, seen[:2], schedule.get_last_lr(), state["param_groups"][0], again)


def neighbours_of_halves(torch):
    """The next number depends on the dtype; computed in float32, it would round back to the number itself."""
    found = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        x = torch.tensor([float("inf"), 1.0, 0.0, -0.0, 6.103515625e-05, -1.0], dtype=dtype)
        y = torch.tensor([0.0, 2.0, 1.0, -1.0, 0.0, 0.0], dtype=dtype)
        found.append(torch.nextafter(x, y).tolist())
    return texts(*found)


def numbers_first(torch):
    x = torch.tensor([2.0, 4.0], requires_grad=True)
    named = [torch.true_divide(1, x), torch.divide(1, x), torch.multiply(3, x), torch.subtract(1, x)]
    named += [torch.special.xlogy(x, 4), torch.special.xlogy(4, x), torch.asarray(named[0])]
    histogram = (torch.empty(0), torch.empty(0))
    torch.histogram(torch.tensor([1.0, 2.0, 1.0]), 2, out=histogram)
    return texts(*named, histogram)


def identities(torch):
    x, g = torch.ones(2), torch.Generator()
    return hash(x) == id(x), g.set_state(g.get_state()) is g


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
del CASES["texts"]
CASES |= {
    "matmul with a number": lambda torch: torch.ones(2, 3) @ 3,
    "number matmul": lambda torch: 3 @ torch.ones(2, 3),
    "cat with a number": lambda torch: torch.cat([torch.ones(2), 3]),
    "stack with none": lambda torch: torch.stack((torch.ones(2), None)),
    "cat of texts": lambda torch: torch.cat(["a"]),
    "permute twice": lambda torch: torch.ones(2, 3).permute(0, 0),
    "second index": lambda torch: torch.ones(2, 3, 4)[0, 5],
    "index after none": lambda torch: torch.ones(2, 3, 4)[None, 0, 5],
    "index after ellipsis": lambda torch: torch.ones(2, 3, 4)[..., 7],
    "index of a float": lambda torch: torch.ones(2)[1.0],
    "text": lambda torch: torch.tensor("abc"),
    "text in a list": lambda torch: torch.tensor(["abc"]),
    "text after a number": lambda torch: torch.tensor([1, "a"]),
    "raw saved number": lambda torch: (torch.ones(2, requires_grad=True) ** 2).grad_fn._raw_saved_exponent,
    "sampler of nothing": lambda torch: torch.utils.data.RandomSampler(range(0)),
}
