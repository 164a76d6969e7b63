"""Errors of the graph: writes that history forbids, modified saved tensors, inference tensors."""


def history(torch):
    return torch.ones(4, 3, dtype=torch.float64).requires_grad_() * 1


def view_in(torch, mode):
    x = history(torch)
    with mode():
        return x, x[0]


def write_to_inference_view(torch):
    view_in(torch, torch.inference_mode)[1].mul_(2)


def base_of_inference_view(torch):
    x, v = view_in(torch, torch.inference_mode)
    x.mul_(2)
    return v.grad_fn


def base_of_no_grad_view(torch):
    x, v = view_in(torch, torch.no_grad)
    x.mul_(2)
    return (v * 2).grad_fn


def base_of_unbind(torch):
    x = history(torch)
    v, *_ = x.unbind(0)
    x.mul_(2)
    return v.grad_fn


def no_grad_view_requires_grad(torch):
    x, v = view_in(torch, torch.no_grad)
    w = torch.ones(2).requires_grad_()
    with torch.no_grad():
        u = w[0]
    return [v.requires_grad, v.is_leaf, v.grad_fn, u.requires_grad, v[1:].requires_grad, u.detach().requires_grad]


def view_of_leaf(torch):
    torch.ones(2).requires_grad_()[0].mul_(2)


def no_grad_view_of_leaf(torch):
    w = torch.ones(2).requires_grad_()
    with torch.no_grad():
        v = w[0]
    v.mul_(2)


def leaf(torch):
    torch.ones(2).requires_grad_().mul_(2)


def leaf_transposed(torch):
    torch.ones(2, 2).requires_grad_().t_()


def overlapping_base(torch):
    w = torch.ones(3).requires_grad_()
    base = torch.empty_strided((3, 3), (0, 1))
    base[0].copy_(w)
    base.sum().backward()


def constant_gets_history(torch):
    w = torch.ones(2).requires_grad_()
    y = torch.zeros(4)
    v = y[1:3]
    v.copy_(w)
    return [y.requires_grad, v.is_leaf, y.grad_fn.name(), v.grad_fn.name()]


def integers_get_none(torch):
    w = torch.ones(2).requires_grad_()
    y = torch.zeros(4, dtype=torch.int64)
    y[1:3].copy_(w)
    y.copy_(torch.ones(4).requires_grad_())
    return [y.requires_grad, y.grad_fn]


def detached_shares_version(torch):
    x = history(torch)
    x.detach().mul_(torch.ones(3).requires_grad_())
    return [x.grad_fn.name(), x._version]


def no_views(torch):
    x = torch.ones(2, dtype=torch.float32).requires_grad_()
    return [t._base for t in (x[...].detach(), torch.ones(2).view(torch.int32), x.view(torch.int32))]


def changed(torch, make, change):
    w = torch.ones(3).requires_grad_()
    x = w * 1
    y = make(x)
    change(x, y)
    y.sum().backward()


def saved_input(torch):
    changed(torch, lambda x: x * x, lambda x, y: x.add_(1))


def saved_output(torch):
    changed(torch, lambda x: x.exp(), lambda x, y: y.add_(1))


def saved_constant(torch):
    m = torch.ones(3, dtype=torch.float64)
    changed(torch, lambda x: x * m, lambda x, y: m.mul_(2))


def saved_then_detached(torch):
    changed(torch, lambda x: x * x * x, lambda x, y: x.detach_())


def through_data(torch):
    w = torch.ones(3).requires_grad_()
    m = torch.ones(3)
    y = w * m
    m.data.mul_(2)
    y.sum().backward()
    return w.grad


def detach_view(torch):
    history(torch)[:1].detach_()


def twice(torch):
    w = torch.ones(3).requires_grad_()
    y = (w * w).sum()
    y.backward()
    y.backward()


def inference_flags(torch):
    x = history(torch)
    with torch.inference_mode():
        made, viewed = torch.ones(2), x[0]
        same = viewed.contiguous()
        inner = made * 2
    return [t.is_inference() for t in (made, viewed, same, inner, made[0], made * 2, made.clone(), made.detach())]


def inference(change):
    def case(torch):
        with torch.inference_mode():
            t = torch.ones(2)
        return change(torch, t)

    return case


def inference_write_inside(torch):
    with torch.inference_mode():
        t = torch.ones(2)
        t.add_(1)
        return [t, t.requires_grad]


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in ("history", "view_in", "changed", "inference"):
    del CASES[helper]
CASES |= {
    "inference in place": inference(lambda torch, t: t.add_(1)),
    "inference requires_grad_": inference(lambda torch, t: t.requires_grad_()),
    "inference saved": inference(lambda torch, t: torch.ones(2).requires_grad_() * t),
    "inference not saved": inference(lambda torch, t: torch.ones(2).requires_grad_() + t),
    "inference _version": inference(lambda torch, t: t._version),
    "inference view in place": inference(lambda torch, t: t[0].add_(1)),
    "inference copy_ into": inference(lambda torch, t: torch.zeros(2).copy_(t)),
}
