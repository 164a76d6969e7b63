"""Memory layouts of results, copies and gradients, and writes to tensors whose elements share memory."""


def strides(make):
    def case(torch):
        x = torch.arange(24.0).reshape(2, 3, 4)
        found = make(torch, x, x.permute(2, 0, 1))
        return [list(t.stride()) for t in (found if isinstance(found, tuple) else (found,))]

    return case


def image(make):
    def case(torch):
        x = torch.arange(120.0).reshape(2, 3, 4, 5)
        found = make(torch, x, x.contiguous(memory_format=torch.channels_last))
        return list(found.stride()) if isinstance(found, torch.Tensor) else found

    return case


def grad_of(leaf, loss=lambda x: (x * x).sum()):
    def case(torch):
        w = leaf(torch).requires_grad_()
        loss(w).backward()
        return [list(w.grad.stride()), w.grad]

    return case


def grad_created(torch):
    w = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    (w * w).sum().backward(create_graph=True)
    return [list(w.grad.stride()), w.grad.grad_fn is None]


def expanded(write, dtype="float32"):
    def case(torch):
        x = torch.ones(1, 3, dtype=getattr(torch, dtype)).expand(2, 3)
        write(torch, x)
        return x

    return case


def expanded_masked_fill_once(torch):
    x = torch.ones(3, 1).expand(3, 2)
    x.masked_fill_(torch.tensor([[False, True], [False, False], [True, False]]), 5.0)
    return x


def module_format(torch):
    m = torch.nn.Linear(2, 3)
    m.k = torch.nn.Parameter(torch.zeros(2, 3, 4, 5))
    m.to(memory_format=torch.channels_last)
    return [list(p.stride()) for p in m.parameters()]


def adam_of_infinity(torch):
    p = torch.tensor([float("inf"), 1.0]).requires_grad_()
    p.grad = torch.ones(2)
    torch.optim.Adam([p], lr=0.5).step()
    return p


def sgd_of_infinity(torch):
    p, q = (torch.tensor([float("inf"), 1.0]).requires_grad_() for _ in range(2))
    p.grad, q.grad = torch.ones(2), torch.ones(2)
    torch.optim.SGD([p], lr=0.5).step()
    torch.optim.SGD([q], lr=0.5, momentum=0.9).step()
    return [p, q]


def adam_of_transposed(torch):
    p = torch.arange(6.0).reshape(2, 3).t().requires_grad_()
    opt = torch.optim.Adam([p], lr=0.5)
    for _ in range(2):
        p.grad = None
        (p * torch.arange(6.0).reshape(3, 2)).sum().backward()
        opt.step()
    return [p, list(p.stride()), list(opt.state[p]["exp_avg"].stride())]


CASES = {k: v for k, v in globals().items() if callable(v) and getattr(v, "__module__", "") == __name__}
for helper in ("strides", "image", "grad_of", "expanded"):
    del CASES[helper]
CASES |= {
    "clone": strides(lambda torch, x, y: (y.clone(), y.clone(memory_format=torch.contiguous_format))),
    "clone with gaps": strides(lambda torch, x, y: y[:, :, ::2].clone()),
    "clone of expanded": strides(lambda torch, x, y: y[:, :1].expand(4, 5, 3).clone()),
    "likes": strides(lambda torch, x, y: (torch.zeros_like(y), torch.rand_like(y), torch.full_like(y, 2))),
    "like, contiguous": strides(lambda torch, x, y: torch.ones_like(y, memory_format=torch.contiguous_format)),
    "casts": strides(lambda torch, x, y: (y.double(), y.to(torch.int64), y.type(torch.float64), y.bool())),
    "cast, contiguous": strides(lambda torch, x, y: y.to(torch.float64, memory_format=torch.contiguous_format)),
    "unary": strides(lambda torch, x, y: (y.exp(), -y, y > 0, y[:, :, ::2].exp())),
    "of two layouts": strides(lambda torch, x, y: (y + y.contiguous(), y.contiguous() + y, y + y[0], y[0] + y)),
    "of numbers": strides(lambda torch, x, y: (y + 1, 1 - y, torch.clamp(y, 0, 1), y**2)),
    "where": strides(lambda torch, x, y: torch.where(y > 1, y, y.contiguous())),
    "broadcast": strides(lambda torch, x, y: (y[:, :1] * y[:1], y[:, :, :1] + x[0, 0, :3])),
    "sort": strides(lambda torch, x, y: tuple(y.sort(0))),
    "out of another shape": strides(lambda torch, x, y: torch.add(y, y, out=torch.empty(0))),
    "out of this shape": strides(lambda torch, x, y: torch.add(y, y, out=torch.empty(4, 2, 3))),
    "channels last": image(lambda torch, x, y: y),
    "channels last of a sum": image(lambda torch, x, y: y + 1),
    "channels last of both": image(lambda torch, x, y: x + y),
    "channels last of a cast": image(lambda torch, x, y: x.to(torch.float64, memory_format=torch.channels_last)),
    "channels last without a cast": image(lambda torch, x, y: [x.to(memory_format=torch.channels_last) is x]),
    "channels last asked": image(
        lambda torch, x, y: [t.is_contiguous(memory_format=torch.channels_last) for t in (x, y)]
    ),
    "channels last, empty": image(lambda torch, x, y: torch.empty(2, 3, 4, 5, memory_format=torch.channels_last)),
    "channels last, like": image(lambda torch, x, y: torch.zeros_like(x, memory_format=torch.channels_last)),
    "channels last of a matrix": image(lambda torch, x, y: x[0, 0].contiguous(memory_format=torch.channels_last)),
    "contiguous, preserved": image(lambda torch, x, y: y.contiguous(memory_format=torch.preserve_format)),
    "grad of a transposed leaf": grad_of(lambda torch: torch.arange(6.0).reshape(2, 3).t()),
    "grad of a leaf with gaps": grad_of(lambda torch: torch.arange(12.0).reshape(3, 4).t()[::2]),
    "grad of a row-major leaf": grad_of(lambda torch: torch.arange(6.0).reshape(2, 3), lambda x: (x.t() * x.t()).sum()),
    "grad that is expanded": grad_of(lambda torch: torch.arange(6.0).reshape(2, 3).t(), lambda x: x.sum()),
    "expanded masked_fill_": expanded(lambda torch, x: x.masked_fill_(torch.eye(2, 3) > 0, 2.0)),
    "expanded masked_fill_ by a tensor": expanded(
        lambda torch, x: x.masked_fill_(torch.eye(2, 3) > 0, torch.tensor(2.0))
    ),
    "expanded index_fill_": expanded(lambda torch, x: x.index_fill_(0, torch.tensor([0]), 2.0)),
    "expanded index_put_": expanded(lambda torch, x: x.index_put_((torch.tensor([0]),), torch.tensor(3.0))),
    "expanded x[mask] =": expanded(lambda torch, x: x.__setitem__(torch.eye(2, 3) > 0, 2.0)),
    "expanded x[list] =": expanded(lambda torch, x: x.__setitem__([1], 2.0)),
    "expanded fill_": expanded(lambda torch, x: x.fill_(2.0)),
    "expanded fill_ by a tensor": expanded(lambda torch, x: x.fill_(torch.tensor(2.0))),
    "expanded add_": expanded(lambda torch, x: x.add_(1)),
}
