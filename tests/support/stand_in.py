"""A small op table for running the tests with PyTorch as the module (`pytest --module torch`): it tests the tests.

One row of each kind in the real table; nothing here describes rustgrad.
"""


def row(public, signature, samples, **more):
    return {"name": public, "public": public, "signature": signature, "samples": samples, "dtypes": None, **more}


DIFF = {"differentiable": True}
POINTWISE = {**DIFF, "kind": "elementwise", "inplace": True, "out": True, "method": True}
TABLE = [
    row("tanh", "tanh(Tensor self) -> Tensor", ["f32[2,3]", "f?[4]", "c64[3]"], reference="np.tanh(x0)",
        doc="Hyperbolic tangent.\n\n>>> torch.tanh(torch.zeros(2))\ntensor([0., 0.])\n",
        errors=[["3", "TypeError", "must be Tensor"]], **POINTWISE),
    row("add", "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        ["f32[2,3], f32[2,3]", "f32[2,3], f32[3]", "i64[2], f32[2,2]", "f32[2,1], f32[1,3], alpha=2", "f32[2], 3"],
        errors=[["f32[2], f32[3]", "RuntimeError", "must match"]], **POINTWISE),
    row("sqrt", "sqrt(Tensor self) -> Tensor", ["f32[2,3](pos)"], **POINTWISE),
    row("relu", "relu(Tensor self) -> Tensor", ["f32[2,3]"], **{**POINTWISE, "out": False}),
    row("where", "where(Tensor condition, Tensor self, Tensor other) -> Tensor", ["b8[2,3], f32[2,3], f32[3]"], **DIFF),
    row("sum", "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, DType? dtype=None) -> Tensor",
        ["f32[2,3]", "f32[2,3], dim=1", "f32[2,3,4], dim=[0, 2], keepdim=True", "i32[4]", "f32[3], dtype=float64"],
        errors=[["f32[2], dim=3", "IndexError", "Dimension out of range"]], **DIFF),
    row("max", "max(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
        ["f32[2,3], 1", "f32[4](ties), 0"], reference="[x0.max(x1), x0.argmax(x1)]", **DIFF),
    row("argmax", "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", ["f32[2,3]", "f32[2,3], 0"],
        no_grad_reason="indices"),
    row("matmul", "matmul(Tensor self, Tensor other) -> Tensor",
        ["f32[2,3], f32[3,4]", "f32[3], f32[3]", "f32[2,2,3], f32[3]"], **DIFF),
    row("transpose", "transpose(Tensor self, int dim0, int dim1) -> Tensor", ["f32[2,3], 0, 1"], kind="view", **DIFF),
    row("Tensor.expand", "expand(Tensor self, int[] size) -> Tensor", ["f32[3,1], [3, 4]"], kind="view", **DIFF),
    row("cat", "cat(Tensor[] tensors, int dim=0) -> Tensor", ["[f32[2,3], f32[1,3]]", "[f32[2], i64[2]], dim=0"],
        errors=[["[f32[2], f32[2,2]]", "RuntimeError", "dimensions"]], out=True, **DIFF),
    row("index_select", "index_select(Tensor self, int dim, Tensor index) -> Tensor", ["f32[4,3], 0, i64[5](0..4)"], **DIFF),
    row("nn.functional.cross_entropy", "cross_entropy(Tensor self, Tensor target) -> Tensor",
        ["f32[4,3], i64[4](0..3)", "f32[4,3], i64[4](0..3), weight=f32[3](pos, nograd), reduction='sum'"], **DIFF),
    row("nn.functional.dropout", "dropout(Tensor self, float p=0.5) -> Tensor", ["f32[8], 0.5"], reference="shape", **DIFF),
    row("zeros", "zeros(int[] size, *, DType? dtype=None, Device? device=None) -> Tensor",
        ["[2, 3]", "[], dtype=int64"], no_grad_reason="constant"),
    row("rand", "rand(int[] size, *, DType? dtype=None, Device? device=None) -> Tensor", ["[5]"],
        reference="shape", no_grad_reason="random"),
    row("softmax", "softmax(Tensor self, int dim, DType? dtype=None) -> Tensor", ["f32[2,3], dim=1", "f32[5], dim=0"], **DIFF),
]  # fmt: skip
