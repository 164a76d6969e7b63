"""The programs of document 004 on tensors themselves: creating, viewing, indexing, types, NumPy.

The form is that of `seed_programs`. What lives in NumPy's memory stays on the CPU.
"""

TENSORS = [
    (
        "004_5732ac93e8ea0c51",
        "creation",
        """
a = torch.Tensor([[1, 2, 3], [4, 5, 6]])
print("tensor_a:\\n", a)
print("list_a:\\n", a.tolist())
b = torch.Tensor(2, 3)
print("b_size:", b.size(), b.shape)
print("b_num:", b.numel(), b.nelement())
c = torch.Tensor(b.size())
d = torch.Tensor((2, 3))
assert c.shape == b.shape
print("tensor_d:\\n", d)
x = torch.empty(4, 3)
y = torch.rand(2, 3)
z = torch.zeros(2, 3)  # the document says torch.zero, which does not exist
m = torch.arange(1, 6, 2)
n = torch.eye(2, 3)
print("zero_tensor:\\n", z)
print("arange|_tensor:\\n", m)
print("diagonal_tensor:\\n", n)
""",
        """tensor_a:
 tensor([[1., 2., 3.],
        [4., 5., 6.]])
list_a:
 [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
b_size: torch.Size([2, 3]) torch.Size([2, 3])
b_num: 6 6
tensor_d:
 tensor([2., 3.])
zero_tensor:
 tensor([[0., 0., 0.],
        [0., 0., 0.]])
arange|_tensor:
 tensor([1, 3, 5])
diagonal_tensor:
 tensor([[1., 0., 0.],
        [0., 1., 0.]])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "views",
        """
a = torch.arange(0, 6)
b1 = a.view(2, 3)
b2 = a.view(-1, 2)
print(b1)
print(b2)
b3 = b1.unsqueeze(1)
print(b3)
print(b3.size())
b4 = b1.unsqueeze(-2)
print(b4)
print(b4.shape)
c = b1.view(1, 1, 1, 2, 3)
c1 = c.squeeze(0)
print(c)
print(c1.shape)
""",
        """tensor([[0, 1, 2],
        [3, 4, 5]])
tensor([[0, 1],
        [2, 3],
        [4, 5]])
tensor([[[0, 1, 2]],

        [[3, 4, 5]]])
torch.Size([2, 1, 3])
tensor([[[0, 1, 2]],

        [[3, 4, 5]]])
torch.Size([2, 1, 3])
tensor([[[[[0, 1, 2],
           [3, 4, 5]]]]])
torch.Size([1, 1, 2, 3])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "resize",
        """
a = torch.arange(0, 6)
b1 = a.view(2, 3)
b2 = a.view(-1, 2)
d1 = b1.resize_(1, 3)
d2 = b2.resize_(3, 3)
print(d1)
assert d2.shape == (3, 3) and d2[:2].tolist() == [[0, 1, 2], [3, 4, 5]]
""",
        "tensor([[0, 1, 2]])",
    ),
    (
        "004_5732ac93e8ea0c51",
        "arithmetic",
        """
x = torch.ones(2, 3)
y = torch.rand(2, 3)
print("x:\\n", x)
assert (x+y).tolist() == torch.add(x, y).tolist()
result = torch.Tensor(2, 3).to(x.device)  # the document's 5 x 3 is resized with a warning
torch.add(x, y, out=result)
assert result.tolist() == (x + y).tolist()
y.add_(x)
assert y.tolist() == result.tolist()
""",
        "x:\n tensor([[1., 1., 1.],\n        [1., 1., 1.]])",
    ),
    (
        "004_5732ac93e8ea0c51",
        "indexing",
        """
a = torch.tensor([[0.7942, -0.8665, 1.4201, -0.6606], [1.3923, -1.0253, -0.9995, 0.9130],
                  [1.3881, 0.0780, -0.9674, 0.5636]])
print(a[0])
print(a[:, 0])
print(a[0][2])
print(a > 0)
print(a[a > 0])
print(a[torch.tensor([0, 1])])
""",
        """tensor([ 0.7942, -0.8665,  1.4201, -0.6606])
tensor([0.7942, 1.3923, 1.3881])
tensor(1.4201)
tensor([[ True, False,  True, False],
        [ True, False, False,  True],
        [ True,  True, False,  True]])
tensor([0.7942, 1.4201, 1.3923, 0.9130, 1.3881, 0.0780, 0.5636])
tensor([[ 0.7942, -0.8665,  1.4201, -0.6606],
        [ 1.3923, -1.0253, -0.9995,  0.9130]])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "gather_scatter",
        """
a = torch.arange(0, 16).view(4, 4)
print("a:\\n", a)
index1 = torch.tensor([[0, 1, 2, 3]])
print(a.gather(0, index1))
index2 = torch.tensor([[3, 2, 1, 0]]).t()
print(a.gather(1, index2))
index3 = torch.tensor([[3, 2, 1, 0]])
print(a.gather(0, index3))
index4 = torch.tensor([[0, 1, 2, 3], [3, 2, 1, 0]]).t()
e = a.gather(1, index4)
print(e)
f = torch.zeros(4, 4, dtype=torch.long)
f.scatter_(1, index4, e)
print(f)
""",
        """a:
 tensor([[ 0,  1,  2,  3],
        [ 4,  5,  6,  7],
        [ 8,  9, 10, 11],
        [12, 13, 14, 15]])
tensor([[ 0,  5, 10, 15]])
tensor([[ 3],
        [ 6],
        [ 9],
        [12]])
tensor([[12,  9,  6,  3]])
tensor([[ 0,  3],
        [ 5,  6],
        [10,  9],
        [15, 12]])
tensor([[ 0,  0,  0,  3],
        [ 0,  5,  6,  0],
        [ 0,  9, 10,  0],
        [12,  0,  0, 15]])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "types_and_contiguity",
        """
a = torch.zeros(2, 3)
b = a.int()
print("b:\\n", b)
d = a.new(2, 3)
assert d.shape == (2, 3) and d.dtype == a.dtype
b = a.t()
print(b.is_contiguous())
c = b.contiguous()
print(c.is_contiguous())
""",
        "b:\n tensor([[0, 0, 0],\n        [0, 0, 0]], dtype=torch.int32)\nFalse\nTrue",
    ),
    (
        "004_5732ac93e8ea0c51",
        "broadcasting",
        """
a = torch.ones(3, 2)
b = torch.zeros(2, 3, 1)
print(a+b)
c = a.unsqueeze(0).expand(2, 3, 2) + b.expand(2, 3, 2)
d = a.view(1, 3, 2).expand(2, 3, 2) + b.expand(2, 3, 2)
assert c.tolist() == d.tolist() == (a + b).tolist()
""",
        """tensor([[[1., 1.],
         [1., 1.],
         [1., 1.]],

        [[1., 1.],
         [1., 1.],
         [1., 1.]]])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "memory",
        """
x = torch.tensor([1, 2])
y = torch.tensor([3, 4])
id_before = id(y)
y = y + x
print(id(y) == id_before)
x = torch.tensor([1, 2])
y = torch.tensor([3, 4])
id_before = id(y)
y[:] = y+x
print(id(y) == id_before)
x = torch.tensor([1, 2])
y = torch.tensor([3, 4])
id_before = id(y)
torch.add(x, y, out=y)
print(id(y) == id_before)
""",
        "False\nTrue\nTrue",
    ),
]

CPU_ONLY = [
    (
        "004_5732ac93e8ea0c51",
        "default_type",
        """
torch.set_default_tensor_type('torch.FloatTensor')
a = torch.Tensor(2, 3)
print(a.type())
print(torch.LongTensor([0, 1]))
""",
        "torch.FloatTensor\ntensor([0, 1])",
    ),
    (
        "004_5732ac93e8ea0c51",
        "numpy",
        """
a = torch.ones(5)
b = a.numpy()
print(a, b)
a += 1
print(a, b)
b += 1
print(a, b)
import numpy as np
m = np.zeros(5)
n = torch.from_numpy(m)
print(m, n)
m += 1
print(m, n)
n += 1
print(m, n)
z = np.ones(3)
x = torch.tensor(z)
z += 1
print(z, x)
""",
        """tensor([1., 1., 1., 1., 1.]) [1. 1. 1. 1. 1.]
tensor([2., 2., 2., 2., 2.]) [2. 2. 2. 2. 2.]
tensor([3., 3., 3., 3., 3.]) [3. 3. 3. 3. 3.]
[0. 0. 0. 0. 0.] tensor([0., 0., 0., 0., 0.], dtype=torch.float64)
[1. 1. 1. 1. 1.] tensor([1., 1., 1., 1., 1.], dtype=torch.float64)
[2. 2. 2. 2. 2.] tensor([2., 2., 2., 2., 2.], dtype=torch.float64)
[2. 2. 2.] tensor([1., 1., 1.], dtype=torch.float64)""",
    ),
]
