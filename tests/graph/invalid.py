"""Views whose history a write has invalidated, by how they were created; errors of writes to leaves and views."""


def history(torch):
    return torch.ones(4, 3, dtype=torch.float64).requires_grad_() * 1


def leaf(torch):
    return torch.ones(4, 3, dtype=torch.float64).requires_grad_()


def own(torch, forward):
    body = {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, *grads: grads[0])}
    return type("Own", (torch.autograd.Function,), body).apply


def in_mode(mode, make):
    def view(torch, x):
        with getattr(torch, mode)():
            return make(torch, x)

    return view


MADE = {
    "slice": lambda torch, x: x[:2],
    "no_grad": in_mode("no_grad", lambda torch, x: x[:2]),
    "unbind": lambda torch, x: x.unbind()[0],
    "no_grad unbind": in_mode("no_grad", lambda torch, x: x.unbind()[0]),
    "of no_grad": lambda torch, x: in_mode("no_grad", lambda torch, x: x[:2])(torch, x)[0],
    "of unbind": lambda torch, x: x.unbind()[0][1:],
    "no_grad of unbind": in_mode("no_grad", lambda torch, x: x.unbind()[0][1:]),
    "function": lambda torch, x: own(torch, lambda ctx, t: t[:2])(x),
    "no_grad function": in_mode("no_grad", lambda torch, x: own(torch, lambda ctx, t: t[:2])(x)),
    "function of two": lambda torch, x: own(torch, lambda ctx, t: (t[:2], t[2:]))(x)[0],
    "function, input as it is": lambda torch, x: own(torch, lambda ctx, t: t)(x),
    "inference": in_mode("inference_mode", lambda torch, x: x[:2]),
}
BASES = {"leaf": leaf, "non-leaf": history, "constant": lambda torch: torch.ones(4, 3, dtype=torch.float64)}


def unrecorded(torch, t):
    with torch.no_grad():
        t.mul_(2)


WRITES = {
    "unwritten": lambda torch, x, v: None,
    "written": lambda torch, x, v: v.mul_(2),
    "written with gradient": lambda torch, x, v: v.mul_(torch.ones(3, dtype=torch.float64).requires_grad_()),
    "written unrecorded": lambda torch, x, v: unrecorded(torch, v),
    "base written unrecorded": lambda torch, x, v: unrecorded(torch, x),
    "base written": lambda torch, x, v: x.mul_(torch.ones(3, dtype=torch.float64).requires_grad_()),
}


def tried(ask):
    try:
        return ask()
    except RuntimeError as error:
        return str(error).split(": ")[-1][:75]


def case(base, view, write):
    def run(torch):
        x = BASES[base](torch)
        v = MADE[view](torch, x)
        WRITES[write](torch, x, v)
        name = lambda: v.grad_fn and v.grad_fn.name()  # noqa: E731
        return [v, v.requires_grad, tried(lambda: v.is_leaf), tried(name), repr(v).rpartition("]")[2], tried(v.detach_)]

    return run


def no_gradient_of_unrecorded_views(torch):
    w = leaf(torch)
    with torch.no_grad():
        v = w[0]
    s = v.sum()
    found = [s.requires_grad, s.grad_fn.next_functions]
    s.backward()
    return [*found, v.grad, w.grad, torch.autograd.grad((v * 2).sum(), v, allow_unused=True)]


def view_made_before_base_required_grad(torch):
    x = torch.ones(3)
    v = x[:2]
    x.requires_grad_()
    found = [v.requires_grad, v.grad_fn]
    with torch.no_grad():
        x.mul_(2)
    (v * 3).sum().backward()
    return [*found, v.grad_fn.name(), x.grad]


def cached_view_of_parameter(torch):
    w = leaf(torch)
    v = w[:2]
    with torch.no_grad():
        w.mul_(2)
    (v * v).sum().backward()
    return [v.grad_fn.name(), w.grad]


def assigned(on, make):
    def run(torch):
        t = make(torch)
        t.requires_grad = on
        return t.requires_grad

    return run


def transposed_view_of_another_dtype(torch):
    w = (torch.arange(6.0).reshape(2, 3) * (1 + 2j)).requires_grad_()
    a = w * 1
    b = torch.view_as_real(a)
    b.squeeze_()
    b += 1
    b.mul_(2)
    found = [tuple(b.shape), a]
    b.backward(torch.arange(12.0).reshape(2, 3, 2))
    return [*found, w.grad]


def inference(change):
    def run(torch):
        with torch.inference_mode():
            t = torch.ones(2, requires_grad=True)
            u = torch.ones(2)
        return change(torch, t, u)

    return run


def resized_inside(torch):
    with torch.inference_mode():
        t = torch.ones(2, requires_grad=True)
        v = t[:1]
        t.resize_(3)
        return [t.requires_grad, v.requires_grad, v._is_view(), t.shape]


def versions(torch):
    x = torch.rand(1)
    x.resize_(1, 2)
    found = [x._version]
    x.resize_(1, 2)
    x.resize_as_(torch.ones(1, 2))
    found.append(x._version)
    y = x[:]
    y.add_(1)
    x.data = torch.ones(2, 3)
    found.append([x._version, y._version])
    x.add_(1)
    found.append([x._version, y._version])
    z = torch.ones(2)
    z.add_(1)
    u = torch.ones(2)
    u.data = z
    u.add_(1)
    return [*found, u._version, z._version, u.detach()._version, u.data._version]


CASES = {f"{view} of {base}, {write}": case(base, view, write) for base in BASES for view in MADE for write in WRITES}
CASES |= {
    "no gradient of unrecorded views": no_gradient_of_unrecorded_views,
    "view made before base required grad": view_made_before_base_required_grad,
    "cached view of parameter": cached_view_of_parameter,
    "requires_grad of non-leaf on": assigned(True, history),
    "requires_grad of non-leaf off": assigned(False, history),
    "requires_grad of integers": assigned(True, lambda torch: torch.ones(2, dtype=torch.int64)),
    "requires_grad by number": assigned(1, leaf),
    "requires_grad_ of non-leaf": lambda torch: history(torch).requires_grad_().requires_grad,
    "detach_ of a view": lambda torch: torch.ones(2)[:1].detach_(),
    "detach_ of a copy": lambda torch: torch.ones(2, 3).t().flatten().detach_(),
    "copies are no views": lambda torch: [
        torch.ones(2, 3).t().flatten()._is_view(),
        torch.ones(2, 3).flatten()._is_view(),
    ],
    "squeezed view of another dtype": transposed_view_of_another_dtype,
    "inference views": inference(lambda torch, t, u: [t[:1].requires_grad, t[:1].grad_fn, (t[:1] * 2).requires_grad]),
    "inference out": inference(lambda torch, t, u: torch.mul(torch.ones(2), 2, out=u)),
    "inference resize_": inference(lambda torch, t, u: u.resize_(3)),
    "inference resized inside": resized_inside,
    "versions": versions,
}
