"""The programs of document 004 that stay on the CPU: old typed constructors, files, NumPy's memory, `Variable`."""

# The document's CUDA code, which does nothing without CUDA; test_package runs it under `python -m rustgrad`.
CUDA = """
x = torch.ones(2)
if torch.cuda.is_available():
    device = torch.device("cuda")
    y = torch.ones_like(x, device=device)
    x = x.to(device)
    z = x + y
    print(z)
    print(z.to("cpu", torch.double))
"""

CPU_ONLY = [
    (
        "004_5732ac93e8ea0c51",
        "default_type",
        """
torch.set_default_tensor_type('torch.FloatTensor')
a = torch.Tensor(2, 3)
print(a.type(), a.element_size())
b = torch.zeros(2, 3).int()
print("b:\\n", b)
d = a.new(2, 3)
assert d.type() == a.type() and d.shape == (2, 3)
for kind in "Float Double Half Byte Char Short Int Long Bool".split():
    typed = getattr(torch, kind + "Tensor")
    t = typed([1, 0])
    print(t, t.type(), t.element_size(), isinstance(t, typed), t.type("torch.FloatTensor"))
""",
        """torch.FloatTensor 4
b:
 tensor([[0, 0, 0],
        [0, 0, 0]], dtype=torch.int32)
tensor([1., 0.]) torch.FloatTensor 4 True tensor([1., 0.])
tensor([1., 0.], dtype=torch.float64) torch.DoubleTensor 8 True tensor([1., 0.])
tensor([1., 0.], dtype=torch.float16) torch.HalfTensor 2 True tensor([1., 0.])
tensor([1, 0], dtype=torch.uint8) torch.ByteTensor 1 True tensor([1., 0.])
tensor([1, 0], dtype=torch.int8) torch.CharTensor 1 True tensor([1., 0.])
tensor([1, 0], dtype=torch.int16) torch.ShortTensor 2 True tensor([1., 0.])
tensor([1, 0], dtype=torch.int32) torch.IntTensor 4 True tensor([1., 0.])
tensor([1, 0]) torch.LongTensor 8 True tensor([1., 0.])
tensor([ True, False]) torch.BoolTensor 1 True tensor([1., 0.])""",
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
    (
        "004_5732ac93e8ea0c51",
        "typed_indices",
        """
a = torch.arange(0, 16).view(4, 4)
print(a[torch.LongTensor([0, 1])])
print(a.gather(0, torch.LongTensor([[0, 1, 2, 3]])))
print(a.gather(1, torch.LongTensor([[3, 2, 1, 0]]).t()).t())
index4 = torch.LongTensor([[0, 1, 2, 3], [3, 2, 1, 0]]).t()
print(torch.zeros(4, 4, dtype=torch.long).scatter_(1, index4, a.gather(1, index4))[0])
""",
        """tensor([[0, 1, 2, 3],
        [4, 5, 6, 7]])
tensor([[ 0,  5, 10, 15]])
tensor([[ 3,  6,  9, 12]])
tensor([0, 0, 0, 3])""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "save",
        """
import io
file = io.BytesIO()
a = torch.arange(6.).view(2, 3)
torch.save({"a": a, "row": a[1]}, file)
file.seek(0)
loaded = torch.load(file)
loaded["row"][0] = 30
print(loaded)
""",
        "{'a': tensor([[ 0.,  1.,  2.],\n        [30.,  4.,  5.]]), 'row': tensor([30.,  4.,  5.])}",
    ),
    (
        "004_5732ac93e8ea0c51",
        "old_variable",
        """
import warnings
from torch.autograd import Variable
with warnings.catch_warnings(record=True) as heard:
    warnings.simplefilter("always")
    x = Variable(torch.ones(1), volatile=True)
print(x, x.requires_grad, str(heard[0].message))
w = Variable(torch.ones(2), True)
print(w.data.sum(), w.sum(), isinstance(w, Variable), w.data.requires_grad)
try:
    Variable([1.])
except TypeError as error:
    print(error)
""",
        """tensor([1.]) False volatile was removed and now has no effect. Use `with torch.no_grad():` instead.
tensor(2.) tensor(2., grad_fn=<SumBackward0>) True False
Variable data has to be a tensor, but got list""",
    ),
    (
        "004_5732ac93e8ea0c51",
        "gpu",
        CUDA,
        "",
    ),
]
