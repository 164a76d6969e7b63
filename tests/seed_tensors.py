"""The programs of document 004 on tensors themselves: creating, viewing, indexing, types, NumPy.

The form is that of `seed_programs`; what stays on the CPU is in `seed_on_cpu`.
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
assert not hasattr(torch, "zero") and x.shape == (4, 3) and (0 <= y).all() and (y < 1).all()
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
assert d1 is b1 and a.tolist() == [0, 1, 2, 3, 4, 5]  # what the smaller shape leaves out is kept
print(b1.resize_(2, 3))
""",
        "tensor([[0, 1, 2]])\ntensor([[0, 1, 2],\n        [3, 4, 5]])",
    ),
    (
        "004_5732ac93e8ea0c51",
        "arithmetic",
        """
x = torch.ones(2, 3)
y = torch.rand(2, 3)
print("x:\\n", x)
assert (x+y).tolist() == torch.add(x, y).tolist()
import warnings
result = torch.Tensor(5, 3).to(x.device)
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    torch.add(x, y, out=result)
assert "An output with one or more elements was resized since it had shape [5, 3]" in str(heard[0].message)
assert result.tolist() == (x + y).tolist()
assert x.add(y).tolist() == result.tolist() and x.tolist() == torch.ones(2, 3).tolist()  # x is not changed
assert torch.sum(x).item() == x.sum().item() == 6
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
        "shared_memory",
        """
a = torch.arange(12.).reshape(3, 4)
a[0][:] = 7
a[:, 0][2] = -1
a.view(12)[5] = 50
show(a)
chosen = a[a > 6]
assert chosen.tolist() == a.masked_select(a > 6).tolist()
chosen.zero_()
rows = a[torch.tensor([0, 1])]
rows.zero_()
show(a)  # what masks and index tensors choose is a copy
t = a.t()
t[0, 1] = 40
show(a[1])
b = torch.ones(2, 3)
assert b.t_() is b and b.shape == (3, 2)
wide = torch.ones(3, 1).expand(3, 1000)
assert wide.stride() == (1, 0)
""",
        """tensor([[ 7.,  7.,  7.,  7.],
        [ 4., 50.,  6.,  7.],
        [-1.,  9., 10., 11.]])
tensor([[ 7.,  7.,  7.,  7.],
        [ 4., 50.,  6.,  7.],
        [-1.,  9., 10., 11.]])
tensor([40., 50.,  6.,  7.])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "selection_functions",
        """
a = torch.arange(12).view(3, 4)
print(a.index_select(0, torch.tensor([0, 2])))
print(torch.masked_select(a, a > 8))
print(torch.nonzero(a > 8))
print(torch.gather(a, 1, torch.tensor([[0], [1], [2]])))
""",
        """tensor([[ 0,  1,  2,  3],
        [ 8,  9, 10, 11]])
tensor([ 9, 10, 11])
tensor([[2, 1],
        [2, 2],
        [2, 3]])
tensor([[ 0],
        [ 5],
        [10]])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "linear_algebra",
        """
a = torch.arange(9.).view(3, 3)
b = torch.eye(3) * 2
print(a.trace(), a.diag())
print(a.triu())
print(a.tril())
print(a.mm(b))
print(torch.bmm(a.view(1, 3, 3), b.view(1, 3, 3)).shape)
print(torch.addmm(b, a, b))
print(torch.addmv(torch.ones(3), a, torch.ones(3)))
print(torch.addbmm(b, a.view(1, 3, 3), b.view(1, 3, 3)).equal(torch.addmm(b, a, b)))
print(torch.baddbmm(b.view(1, 3, 3), a.view(1, 3, 3), b.view(1, 3, 3)).shape)
print(a.t())
print(a[0].dot(a[1]))
""",
        """tensor(12.) tensor([0., 4., 8.])
tensor([[0., 1., 2.],
        [0., 4., 5.],
        [0., 0., 8.]])
tensor([[0., 0., 0.],
        [3., 4., 0.],
        [6., 7., 8.]])
tensor([[ 0.,  2.,  4.],
        [ 6.,  8., 10.],
        [12., 14., 16.]])
torch.Size([1, 3, 3])
tensor([[ 2.,  2.,  4.],
        [ 6., 10., 10.],
        [12., 14., 18.]])
tensor([ 4., 13., 22.])
True
torch.Size([1, 3, 3])
tensor([[0., 3., 6.],
        [1., 4., 7.],
        [2., 5., 8.]])
tensor(14.)""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "pointwise_functions",
        """
a = torch.tensor([[-1.5, 0.25], [2., -0.75]])
for name in "abs ceil floor round trunc exp sigmoid tanh cos sin cosh asin".split():
    print(name, getattr(torch, name)(a.clamp(-1, 1) if name == "asin" else a))
print(a.abs().sqrt(), a.abs().log(), a.pow(2), a.fmod(1), a.clamp(min=0), a.div(2), torch.atan2(a, a + 3))
""",
        """abs tensor([[1.5000, 0.2500],
        [2.0000, 0.7500]])
ceil tensor([[-1.,  1.],
        [ 2., -0.]])
floor tensor([[-2.,  0.],
        [ 2., -1.]])
round tensor([[-2.,  0.],
        [ 2., -1.]])
trunc tensor([[-1.,  0.],
        [ 2., -0.]])
exp tensor([[0.2231, 1.2840],
        [7.3891, 0.4724]])
sigmoid tensor([[0.1824, 0.5622],
        [0.8808, 0.3208]])
tanh tensor([[-0.9051,  0.2449],
        [ 0.9640, -0.6351]])
cos tensor([[ 0.0707,  0.9689],
        [-0.4161,  0.7317]])
sin tensor([[-0.9975,  0.2474],
        [ 0.9093, -0.6816]])
cosh tensor([[2.3524, 1.0314],
        [3.7622, 1.2947]])
asin tensor([[-1.5708,  0.2527],
        [ 1.5708, -0.8481]])
tensor([[1.2247, 0.5000],
        [1.4142, 0.8660]]) tensor([[ 0.4055, -1.3863],
        [ 0.6931, -0.2877]]) tensor([[2.2500, 0.0625],
        [4.0000, 0.5625]]) tensor([[-0.5000,  0.2500],
        [ 0.0000, -0.7500]]) tensor([[0.0000, 0.2500],
        [2.0000, 0.0000]]) tensor([[-0.7500,  0.1250],
        [ 1.0000, -0.3750]]) tensor([[-0.7854,  0.0768],
        [ 0.3805, -0.3218]])""",
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
y += x
y.add_(x)
print(id(y) == id_before, y)
""",
        "False\nTrue\nTrue\nTrue tensor([ 6, 10])",
    ),
]
