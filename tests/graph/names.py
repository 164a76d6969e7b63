"""The names of nodes: of assignments by index, of in-place forms, of methods that are more than one op."""

import itertools

from support.recorded import names

INDICES = {
    "list": lambda torch: [0, -1],
    "tensor": lambda torch: torch.tensor([0, 2]),
    "mask": lambda torch: torch.tensor([True, False, True]),
    "full mask": lambda torch: torch.eye(3) > 0,
    "column mask": lambda torch: (slice(None), torch.tensor([True, False, True])),
    "column list": lambda torch: (slice(None), [0, 1]),
    "int": lambda torch: 0,
    "slice": lambda torch: slice(1, None),
    "ellipsis": lambda torch: Ellipsis,
    "int and list": lambda torch: (0, [0, 1]),
    "list and int": lambda torch: ([0, 1], 1),
    "two lists": lambda torch: ([0, 1], [1, 2]),
    "none": lambda torch: None,
    "true": lambda torch: True,
}
VALUES = {
    "number": lambda torch: 2.0,
    "0-d": lambda torch: torch.tensor(2.0),
    "0-d with gradient": lambda torch: torch.tensor(2.0).requires_grad_(),
}


def assign(index, value):
    def case(torch):
        w, v = (torch.arange(9.0).reshape(3, 3) + 1).requires_grad_(), VALUES[value](torch)
        x = w * 1
        x[INDICES[index](torch)] = v
        (x * x).sum().backward()
        return {"names": names(x.grad_fn), "value": x, "grads": [w.grad, getattr(v, "grad", None)]}

    return case


CALLS = """
    t_() transpose_(0,1) squeeze_() squeeze_(0) squeeze_((0,1)) unsqueeze_(0) swapaxes_(0,1) zero_() fill_(1.)
    fill_(torch.tensor(1.)) copy_(torch.ones(3,3)) pow_(2) square_() add_(1) sub_(1) mul_(2) div_(2)
    div_(2,rounding_mode='floor') floor_() clamp_(0,1) masked_fill_(torch.eye(3)>0,1.) normal_() uniform_()
    index_fill_(0,torch.tensor([0]),1.) index_put_((torch.tensor([0]),),torch.tensor(1.)) tril_() cumsum_(0)
    addmm_(torch.ones(3,3),torch.ones(3,3)) lerp_(torch.ones(3,3),.5) relu_() sigmoid_() negative_() absolute_()
    sgn_() fmod_(2) frac_() round_() addcmul_(torch.ones(3,3),torch.ones(3,3)) H mT T mH ravel() flatten()
    contiguous() to(torch.float64) double() clone() reshape(9) view(9) expand(1,3,3) sum() mean() max() norm() std()
    prod() diag() trace() masked_select(x>0) __getitem__(torch.tensor([0])) __getitem__((0,1)) __getitem__(x>0)
    __getitem__(None) __getitem__(slice(0,1)) __rpow__(2) __rsub__(2) __rtruediv__(2) __abs__() __neg__()
    softmax(0) log_softmax(0) split(1)[0] chunk(3)[0] unbind()[0] roll(1) flip(0) sort()[0] topk(1)[0] matmul(x)
    mm(x) mv(x[0]) unflatten(0,(1,3)) movedim(0,1) diagonal() narrow(0,0,1) unfold(0,2,1) clamp(0) where(x>0,x)
    rsqrt() std(unbiased=False) var(0) amax() max(0)[0] logsumexp(0) cummax(0)[0]
"""


def method(text):
    def case(torch):
        x = torch.ones(3, 3).requires_grad_() * 1
        found = eval(f"x.{text}", {"torch": torch, "x": x})
        return names(found.grad_fn, 2)

    return case


VIEWS = {
    "[:]": lambda x: x[:],
    "[:, :]": lambda x: x[:, :],
    "[...]": lambda x: x[...],
    "[..., :]": lambda x: x[..., :],
    "[:, :3]": lambda x: x[:, :3],
    "[:, None]": lambda x: x[:, None],
    "[0:3]": lambda x: x[0:3],
    "[:][:]": lambda x: x[:][:],
    "[0]": lambda x: x[0],
    "diagonal": lambda x: x.diagonal(),
    "reshape": lambda x: x.reshape(9),
    "reshape of strided": lambda x: x[:, :2].reshape(3, 2, 1),
    "reshape of transposed": lambda x: x.t().reshape(9),
    "flatten of transposed": lambda x: x.t().flatten(),
}


def viewed(view):
    """The names behind a view, whether it is one, and the names behind a gradient that went through it."""

    def case(torch):
        w = torch.arange(9.0).reshape(3, 3).requires_grad_()
        v = view(w * 2)
        (grad,) = torch.autograd.grad((v * v).sum(), w, create_graph=True)
        return [names(v.grad_fn, 3), v._is_view(), names(grad.grad_fn, 3)]

    return case


CASES = {f"x[{i}] = {v}": assign(i, v) for i, v in itertools.product(INDICES, VALUES)}
CASES |= {f"x.{text}": method(text) for text in CALLS.split()}
CASES |= {f"view {name}": viewed(view) for name, view in VIEWS.items()}
