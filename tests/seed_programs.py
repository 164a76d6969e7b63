"""The programs of the documents that the project was created from, with the output that the documents print.

A program is (document, name, code, output). `show(x)` stands for a notebook cell that ends in `x`. Where a
document's output depends on chance or on uninitialised memory, the program ends in assertions instead.
Corrections of slips in the documents are marked.
"""

GRAPH = """
w = torch.tensor([1.], requires_grad=True)
x = torch.tensor([2.], requires_grad=True)

a = torch.add(w, x)
{retain}b = torch.add(w, 1)
y = torch.mul(a, b)
"""
PLAIN = GRAPH.format(retain="")
RETAIN = GRAPH.format(retain="a.retain_grad()\n")

CELLS = """
import torch
from torch.autograd import variable
a = torch.ones((3,4), requires_grad = True)
b = torch.zeros(3,4)
c = a+b
"""
CELLS_GRAPH = """
x = torch.ones(1)
w = torch.ones(1, requires_grad = True)
b = torch.ones(1, requires_grad = True)
y = w*x
z = y+b
"""
ONES = "tensor([[1., 1., 1., 1.],\n        [1., 1., 1., 1.],\n        [1., 1., 1., 1.]]"

PROGRAMS = [
    ("000_afc7bb06c4fe5297", "backward", PLAIN + "y.backward()\nprint(w.grad)", "tensor([5.])"),
    (
        "000_afc7bb06c4fe5297",
        "is_leaf",
        PLAIN
        + """
y.backward()
print("is_leaf:\\n", w.is_leaf, x.is_leaf, a.is_leaf, b.is_leaf, y.is_leaf)
print("gradient:\\n", w.grad, x.grad, a.grad, b.grad, y.grad)
""",
        "is_leaf:\n True True False False False\ngradient:\n tensor([5.]) tensor([2.]) None None None",
    ),
    (
        "000_afc7bb06c4fe5297",
        "retain_grad",
        RETAIN + 'y.backward()\nprint("gradient:\\n", w.grad, x.grad, a.grad, b.grad, y.grad)',
        "gradient:\n tensor([5.]) tensor([2.]) tensor([2.]) None None",
    ),
    (
        "000_afc7bb06c4fe5297",
        "grad_fn",
        RETAIN + 'y.backward()\nprint("grad_fn:\\n", w.grad_fn, x.grad_fn, a.grad_fn, b.grad_fn, y.grad_fn)',
        "grad_fn:\n None None <AddBackward0 object at 0x000001AB1EA90E10> <AddBackward0 object at "
        "0x000001AB1EA90EB8> <MulBackward0 object at 0x000001AB1EA90F60>",
    ),
    ("000_afc7bb06c4fe5297", "dynamic_graph", PLAIN + "print(y)", "tensor([6.], grad_fn=<MulBackward0>)"),
    ("001_60c87c0bd82e2ec9", "backward", "import torch\n" + PLAIN + "y.backward()\nprint(w.grad)", "tensor([5.])"),
    (
        "001_60c87c0bd82e2ec9",
        "is_leaf",
        PLAIN
        + """
y.backward()
print("is_leaf:\\n", w.is_leaf, x.is_leaf, a.is_leaf, b.is_leaf, y.is_leaf)
print("gradient:\\n", w.grad, x.grad, a.grad, b.grad, y.grad)
""",
        "is_leaf:\n True True False False False\ngradient:\n tensor([5.]) tensor([2.]) None None None",
    ),
    (
        "001_60c87c0bd82e2ec9",
        "retain_grad",
        RETAIN + 'y.backward()\nprint("gradient:\\n", w.grad, x.grad, a.grad, b.grad, y.grad)',
        "gradient:\n tensor([5.]) tensor([2.]) tensor([2.]) None None",
    ),
    (
        "001_60c87c0bd82e2ec9",
        "grad_fn",
        RETAIN + 'y.backward()\nprint("grad_fn:\\n", w.grad_fn, x.grad_fn, a.grad_fn, b.grad_fn, y.grad_fn)',
        "grad_fn:\n None None <AddBackward0 object at 0x118e30d30> <AddBackward0 object at 0x118e304e0> "
        "<MulBackward0 object at 0x118e30ef0>",
    ),
    ("002_eb5d88cff90534e4", "leaf_printed", CELLS + "show(a)", ONES + ", requires_grad=True)"),
    (
        "002_eb5d88cff90534e4",
        "zeros_printed",
        CELLS + "show(b)",
        "tensor([[0., 0., 0., 0.],\n        [0., 0., 0., 0.],\n        [0., 0., 0., 0.]])",
    ),
    ("002_eb5d88cff90534e4", "sum_printed", CELLS + "show(c)", ONES + ", grad_fn=<AddBackward0>)"),
    (
        "002_eb5d88cff90534e4",
        "backward",
        CELLS
        + """
d = c.sum()
d.backward()
show(a.grad)
assert b.grad is None
show((a.requires_grad, b.requires_grad, c.requires_grad))
show((a.is_leaf, b.is_leaf, c.is_leaf))
show(c.grad is None)
""",
        ONES + ")\n(True, False, True)\n(True, True, False)\nTrue",
    ),
    (
        "002_eb5d88cff90534e4",
        "graph",
        CELLS_GRAPH
        + """
show((x.requires_grad, b.requires_grad, w.requires_grad))
show(y.requires_grad)
show((x.is_leaf, b.is_leaf, w.is_leaf))
show((z.is_leaf, y.is_leaf))
show(z.grad_fn)
show(y.grad_fn)
show(z.grad_fn.next_functions)
show(y.grad_fn.next_functions)
show((w.grad_fn, b.grad_fn))
z.backward(retain_graph=True)
assert z.grad_fn.next_functions[0][0] is y.grad_fn
""",
        """(False, True, True)
True
(True, True, True)
(False, False)
<AddBackward0 at 0x7f2b2634e7f0>
<MulBackward0 at 0x7f2b2634ec88>
((<MulBackward0 at 0x7f2b2634ec88>, 0), (<AccumulateGrad at 0x7f2b2634f048>, 0))
((<AccumulateGrad at 0x7f2b26349518>, 0), (None, 0))
(None, None)""",
    ),
    (
        "002_eb5d88cff90534e4",
        "gradients_of_non_leaves",
        """
x = torch.ones((3), requires_grad = True)
w = torch.randn((3), requires_grad = True)
y = w*x
z = sum(y)
z.backward()
assert x.grad.tolist() == w.tolist()
show(w.grad)
show(y.grad)
""",
        "tensor([1., 1., 1.])\nNone",
    ),
    (
        "003_b3701e6c44a0c983",
        "create_graph_and_retain_graph",
        """
w = torch.tensor([1.], requires_grad=True)
x = torch.tensor([2.], requires_grad=True)
loss = torch.cat([(w + x) * (w + 1), w + x])
loss.backward(gradient=torch.tensor([1.,1.]),create_graph=True)
assert w.grad.grad_fn is not None and w.grad.tolist() == [6.]
w.grad = None
loss.backward(gradient=torch.tensor([1.,1.]),retain_graph=True)
show(w.grad)
loss.backward(gradient=torch.tensor([1.,1.]))
show(w.grad)
""",
        "tensor([6.])\ntensor([12.])",
    ),
    (
        "003_b3701e6c44a0c983",
        "leaves",
        """
w = torch.tensor([1., 2.])
v = torch.tensor([3., 4.], requires_grad=True)
y = w * v
assert w.is_leaf and v.is_leaf and y.requires_grad and not y.is_leaf
torch.autograd.backward(y, grad_tensors=torch.tensor([1., 1.]))
show((w.grad, v.grad))
show(torch.autograd.grad((v * v).sum(), v))
v.data.add_(1)
show(v)
""",
        "(None, tensor([1., 2.]))\n(tensor([6., 8.]),)\ntensor([4., 5.], requires_grad=True)",
    ),
    (
        "003_b3701e6c44a0c983",
        "errors",
        """
w = torch.tensor([1., 2.], requires_grad=True)
y = w * w
def refused(attempt):
    try:
        attempt()
    except RuntimeError as error:
        return str(error)
print("grad can be implicitly created only for scalar outputs" in refused(y.backward))
print("leaf Variable that requires grad is being used in an in-place operation" in refused(lambda: w.add_(1)))
y.sum().backward()
print("Trying to backward through the graph a second time" in refused(lambda: y.sum().backward()))
""",
        "True\nTrue\nTrue",
    ),
    (
        "002_eb5d88cff90534e4",
        "retained_and_created_graphs",
        """
from torch.autograd import Variable
a = Variable(torch.tensor([3.]), requires_grad=True)
y = a * a * a
y.backward(retain_graph=True)
y.backward(retain_graph=True)
show(a.grad)
first, = torch.autograd.grad(y, a, create_graph=True)
second, = torch.autograd.grad(first, a)
show((first, second))
z = a * torch.tensor([2.])
z.backward(torch.tensor([10.]))
show(a.grad)
""",
        "tensor([54.])\n(tensor([27.], grad_fn=<AddBackward0>), tensor([18.]))\ntensor([74.])",
    ),
    (
        "003_b3701e6c44a0c983",
        "created_graph_printed",
        # The document's CloneBackward is an old release's name of the node.
        """
w = torch.tensor([1.], requires_grad=True)
x = torch.tensor([2.], requires_grad=True)
loss = torch.cat([(w + x) * (w + 1), w + x])
loss.backward(gradient=torch.tensor([1.,1.]),create_graph=True)
show(w.grad)
""",
        "tensor([6.], grad_fn=<CopyBackwards>)",
    ),
    (
        "003_b3701e6c44a0c983",
        "weights_of_several_losses",
        """
x = torch.tensor([1., 2., 3., 4., 5.], requires_grad=True)
m = torch.arange(20.).reshape(5, 4)
y = x.reshape(1, 5) @ m
assert y.shape == (1, 4)
y.backward(torch.ones(1, 4), retain_graph=True)
show(x.grad)  # the columns of the Jacobian, added up
x.grad.zero_()  # gradients add up until they are set to zero
torch.autograd.backward([y], [torch.tensor([[1., 0., 0., 2.]])], retain_graph=True)
show(x.grad)
torch.autograd.backward(tensors=y, grad_tensors=torch.tensor([[1., 0., 0., 2.]]), retain_graph=False)
show(x.grad)
""",
        "tensor([ 6., 22., 38., 54., 70.])\ntensor([ 6., 18., 30., 42., 54.])\ntensor([ 12.,  36.,  60.,  84., 108.])",
    ),
    (
        "003_b3701e6c44a0c983",
        "leaves_in_place",
        """
free = torch.tensor([1., 2.])
free.add_(1)
w = torch.tensor([1., 2.], requires_grad=True)
y = w.exp()
y.add_(1)  # an op on what a leaf gave, in place
w.data.mul_(2)
show((free, w, y.requires_grad, y.is_leaf, free.is_leaf, free.grad_fn))
""",
        "(tensor([2., 3.]), tensor([2., 4.], requires_grad=True), True, False, True, None)",
    ),
    (
        "004_5732ac93e8ea0c51",
        "variable",
        """
import torch
from torch.autograd import Variable

a = Variable(torch.ones(2, 3), requires_grad=True)
print("a:\\n", a)
b = Variable(torch.zeros(2, 3))
print("b:\\n", b)

c = a.add(b)
print("c:\\n", c)

d = c.sum()
print("d:\\n", d)
d.backward()

print("a.grad:\\n", a.grad)
print(a.requires_grad, b.requires_grad, c.requires_grad)
print(a.is_leaf, b.is_leaf, c.is_leaf)
print(c.grad is None)
""",
        """a:
 tensor([[1., 1., 1.],
        [1., 1., 1.]], requires_grad=True)
b:
 tensor([[0., 0., 0.],
        [0., 0., 0.]])
c:
 tensor([[1., 1., 1.],
        [1., 1., 1.]], grad_fn=<AddBackward0>)
d:
 tensor(6., grad_fn=<SumBackward0>)
a.grad:
 tensor([[1., 1., 1.],
        [1., 1., 1.]])
True False True
True True False
True""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "computation_graph",
        """
import torch
from torch.autograd import Variable

x = Variable(torch.ones(1))
b = Variable(torch.rand(1), requires_grad=True)
w = Variable(torch.rand(1), requires_grad=True)

y = w.mul(x)    # y = w * x
z = y.add(b)    # z = y + b

print(x.requires_grad, b.requires_grad, w.requires_grad, y.requires_grad)
print(x.is_leaf, w.is_leaf, b.is_leaf, y.is_leaf, z.is_leaf)
print(z.grad_fn)
print(z.grad_fn.next_functions)
print(z.grad_fn.next_functions[0][0] == y.grad_fn)
print(y.grad_fn.next_functions)
print(w.grad_fn, x.grad_fn)
z.backward(retain_graph=True)
print(w.grad)
""",
        """False True True True
True True True False False
<AddBackward0 object at 0x000001E127D6D320>
((<MulBackward0 object at 0x000001E127D6DE48>, 0), (<AccumulateGrad object at 0x000001E127D70160>, 0))
True
((<AccumulateGrad object at 0x000001E127D6D320>, 0), (None, 0))
None None
tensor([1.])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "no_grad",
        """
import torch
from torch.autograd import Variable

x = Variable(torch.ones(1))
w = Variable(torch.rand(1), requires_grad=True)
y = x * w
print(x.requires_grad, w.requires_grad, y.requires_grad)

with torch.no_grad():
    a = Variable(torch.ones(1))
    b = Variable(torch.rand(1), requires_grad=True)
    c = a * b
print(a.requires_grad, b.requires_grad, c.requires_grad)
""",
        "False True True\nFalse True False",
    ),
]
