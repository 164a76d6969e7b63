"""Records PyTorch's modules: python tests/golden/record_nn.py > tests/golden/nn.json

Each case is an expression that makes a module, the shapes of its inputs, its printed form, its state's keys and
shapes, and output and gradients for fixed values (`values` below, which the test uses too). Parameters are set to
fixed values as well, so that nothing depends on the generator.
"""

import json
import warnings

import torch
from torch import nn

# expression, input shapes (or "classes" for a target of class indices, "unit" for values in (0, 1))
CASES = [
    ("nn.Linear(3, 2)", [[4, 3]]),
    ("nn.Linear(3, 2, bias=False)", [[2, 2, 3]]),
    ("nn.Bilinear(3, 4, 2)", [[5, 3], [5, 4]]),
    ("nn.Identity(54, unused=1)", [[2, 3]]),
    ("nn.Flatten()", [[2, 3, 4]]),
    ("nn.Flatten(0, 1)", [[2, 3, 4]]),
    ("nn.Unflatten(1, (2, 3))", [[2, 6]]),
    ("nn.Dropout(0.3).eval()", [[2, 3]]),
    ("nn.LayerNorm(4)", [[3, 4]]),
    ("nn.LayerNorm((2, 4), eps=1e-3)", [[3, 2, 4]]),
    ("nn.LayerNorm(4, bias=False)", [[3, 4]]),
    ("nn.LayerNorm(4, elementwise_affine=False)", [[3, 4]]),
    ("nn.BatchNorm1d(3)", [[4, 3]]),
    ("nn.BatchNorm1d(3, momentum=None, eps=0.1)", [[4, 3, 5]]),
    ("nn.BatchNorm1d(3).eval()", [[4, 3]]),
    ("nn.BatchNorm2d(2, affine=False)", [[3, 2, 2, 4]]),
    ("nn.BatchNorm2d(2, track_running_stats=False).eval()", [[3, 2, 2, 4]]),
    ("nn.BatchNorm3d(2, bias=False)", [[2, 2, 2, 1, 3]]),
    ("nn.SyncBatchNorm(3).eval()", [[4, 3]]),
    ("nn.InstanceNorm1d(3)", [[2, 3, 4]]),
    ("nn.InstanceNorm1d(3, affine=True)", [[3, 4]]),
    ("nn.InstanceNorm2d(2, affine=True, track_running_stats=True)", [[2, 2, 3, 3]]),
    ("nn.InstanceNorm2d(2, track_running_stats=True).eval()", [[2, 2, 3, 3]]),
    ("nn.InstanceNorm3d(2)", [[1, 2, 2, 2, 3]]),
    ("nn.GroupNorm(2, 4)", [[3, 4, 5]]),
    ("nn.GroupNorm(1, 4, eps=0.1, bias=False)", [[3, 4]]),
    ("nn.GroupNorm(4, 4, affine=False)", [[2, 4, 2, 3]]),
    ("nn.RMSNorm(4)", [[3, 4]]),
    ("nn.RMSNorm((2, 4), eps=0.1, elementwise_affine=False)", [[3, 2, 4]]),
    ("nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2.0)", [[2, 5, 4]]),
    ("nn.LocalResponseNorm(2)", [[2, 3, 2, 4]]),
    ("nn.ReLU()", [[3, 4]]),
    ("nn.ReLU(inplace=True)", [[3, 4]]),
    ("nn.ReLU6()", [[3, 4]]),
    ("nn.Hardtanh(-0.5, 0.75)", [[3, 4]]),
    ("nn.LeakyReLU()", [[3, 4]]),
    ("nn.LeakyReLU(0.2, inplace=True)", [[3, 4]]),
    ("nn.ELU()", [[3, 4]]),
    ("nn.ELU(alpha=0.5, inplace=True)", [[3, 4]]),
    ("nn.CELU(alpha=0.5)", [[3, 4]]),
    ("nn.SELU()", [[3, 4]]),
    ("nn.SiLU()", [[3, 4]]),
    ("nn.Mish()", [[3, 4]]),
    ("nn.GELU()", [[3, 4]]),
    ("nn.GELU(approximate='tanh')", [[3, 4]]),
    ("nn.GLU()", [[3, 4]]),
    ("nn.Sigmoid()", [[3, 4]]),
    ("nn.LogSigmoid()", [[3, 4]]),
    ("nn.Hardsigmoid()", [[3, 4]]),
    ("nn.Hardswish()", [[3, 4]]),
    ("nn.Hardshrink()", [[3, 4]]),
    ("nn.Softshrink(0.3)", [[3, 4]]),
    ("nn.Softplus(beta=2.0, threshold=3.0)", [[3, 4]]),
    ("nn.Softsign()", [[3, 4]]),
    ("nn.Tanh()", [[3, 4]]),
    ("nn.Tanhshrink()", [[3, 4]]),
    ("nn.Threshold(0.1, 20.0)", [[3, 4]]),
    ("nn.PReLU()", [[3, 4]]),
    ("nn.PReLU(4, init=0.1)", [[3, 4]]),
    ("nn.Softmax(dim=1)", [[3, 4]]),
    ("nn.Softmax2d()", [[2, 3, 4]]),
    ("nn.Softmin(dim=0)", [[3, 4]]),
    ("nn.LogSoftmax(dim=-1)", [[3, 4]]),
    ("nn.MSELoss()", [[3, 4], [3, 4]]),
    ("nn.MSELoss(reduction='sum')", [[3, 4], [3, 4]]),
    ("nn.L1Loss()", [[3, 4], [3, 4]]),
    ("nn.L1Loss(reduction='none')", [[3, 4], [3, 4]]),
    ("nn.SmoothL1Loss(beta=0.5)", [[3, 4], [3, 4]]),
    ("nn.HuberLoss(delta=0.5)", [[3, 4], [3, 4]]),
    ("nn.BCELoss()", ["unit", "unit"]),
    ("nn.BCEWithLogitsLoss()", [[3, 4], "unit"]),
    ("nn.BCEWithLogitsLoss(pos_weight=torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64))", [[3, 4], "unit"]),
    ("nn.CrossEntropyLoss()", [[3, 4], "classes"]),
    ("nn.CrossEntropyLoss(label_smoothing=0.1, reduction='sum')", [[3, 4], "classes"]),
    ("nn.CrossEntropyLoss(ignore_index=2)", [[3, 4], "classes"]),
    ("nn.CrossEntropyLoss(weight=torch.tensor([0.5, 1.0, 2.0, 3.0], dtype=torch.float64))", [[3, 4], "classes"]),
    ("nn.NLLLoss()", [[3, 4], "classes"]),
    ("nn.KLDivLoss(reduction='batchmean')", [[3, 4], "unit"]),
    ("nn.PoissonNLLLoss()", [[3, 4], "unit"]),
    ("nn.SoftMarginLoss()", [[3, 4], [3, 4]]),
    ("nn.PairwiseDistance(p=1.0, keepdim=True)", [[3, 4], "unit"]),
    ("nn.CosineSimilarity(dim=0)", [[3, 4], "unit"]),
    ("nn.GaussianNLLLoss(full=True)", [[3, 4], [3, 4], "unit"]),
    ("nn.MultiMarginLoss(p=2, margin=0.5)", [[3, 4], "classes"]),
    ("nn.MultiLabelSoftMarginLoss(reduction='sum')", [[3, 4], "unit"]),
    ("nn.LinearCrossEntropyLoss(4, 5, bias=True)", [[3, 4], "classes"]),
    ("nn.RReLU().eval()", [[3, 4]]),
    ("nn.Dropout1d(0.3).eval()", [[2, 3]]),
    ("nn.Dropout2d().eval()", [[1, 2, 3, 4]]),
    ("nn.Dropout3d(inplace=True).eval()", [[2, 1, 2, 3]]),
    ("nn.AlphaDropout().eval()", [[3, 4]]),
    ("nn.FeatureAlphaDropout().eval()", [[3, 4]]),
    ("nn.Embedding(5, 3)", ["classes"]),
    ("nn.Embedding(5, 3, padding_idx=1)", ["classes"]),
    ("nn.Conv1d(2, 3, 2)", [[2, 2, 5]]),
    ("nn.Conv1d(2, 3, 3, padding='same', padding_mode='circular')", [[2, 2, 5]]),
    ("nn.Conv1d(2, 4, 2, stride=2, dilation=2, groups=2, bias=False)", [[2, 6]]),
    ("nn.Conv2d(2, 3, (2, 3))", [[2, 2, 4, 5]]),
    ("nn.Conv2d(4, 6, 3, stride=(2, 1), padding=1, dilation=(1, 2), groups=2)", [[2, 4, 5, 5]]),
    ("nn.Conv2d(2, 2, 3, padding=(1, 2), padding_mode='reflect')", [[1, 2, 4, 4]]),
    ("nn.Conv2d(2, 2, (3, 2), padding='same', padding_mode='replicate', bias=False)", [[1, 2, 4, 4]]),
    ("nn.Conv3d(2, 2, 2, padding='valid')", [[1, 2, 3, 3, 3]]),
    ("nn.ConvTranspose1d(2, 3, 3, stride=2, padding=1, output_padding=1)", [[2, 2, 4]]),
    ("nn.ConvTranspose2d(4, 2, (2, 3), stride=2, groups=2, dilation=(2, 1), bias=False)", [[1, 4, 3, 2]]),
    ("nn.ConvTranspose3d(2, 1, 2)", [[1, 2, 2, 3, 2]]),
    ("nn.MaxPool1d(2)", [[2, 3, 6]]),
    ("nn.MaxPool1d(3, stride=2, padding=1, dilation=2)", [[3, 9]]),
    ("nn.MaxPool2d((2, 3), stride=2, padding=1, ceil_mode=True)", [[1, 2, 6, 7]]),
    ("nn.MaxPool3d(2)", [[1, 2, 4, 4, 5]]),
    ("nn.AvgPool1d(3, stride=2, padding=1)", [[2, 3, 7]]),
    ("nn.AvgPool2d(3, 2, 1, True, False)", [[1, 2, 6, 6]]),
    ("nn.AvgPool2d((2, 3), divisor_override=4)", [[2, 4, 6]]),
    ("nn.AvgPool3d(2, 1, 1)", [[1, 1, 2, 3, 3]]),
    ("nn.AdaptiveAvgPool1d(4)", [[2, 3, 6]]),
    ("nn.AdaptiveAvgPool2d(1)", [[2, 3, 3, 4]]),
    ("nn.AdaptiveAvgPool2d((None, 3))", [[2, 4, 5]]),
    ("nn.AdaptiveAvgPool3d((2, None, 1))", [[1, 2, 3, 2, 3]]),
    ("nn.AdaptiveMaxPool1d(4)", [[2, 3, 6]]),
    ("nn.AdaptiveMaxPool2d((None, 3))", [[2, 4, 5]]),
    ("nn.AdaptiveMaxPool3d(2)", [[1, 1, 3, 4, 2]]),
    ("nn.LPPool1d(2, 3, stride=1)", [[2, 2, 6]]),
    ("nn.LPPool2d(2.0, (2, 3), stride=1)", [[1, 2, 4, 5]]),
    ("nn.LPPool3d(2, 2, ceil_mode=True)", [[1, 1, 3, 2, 4]]),
    (
        "nn.FractionalMaxPool2d(2, output_size=(3, 2), _random_samples=torch.tensor([[[0.3, 0.7], [0.9, 0.1]]]).double())",
        [[1, 2, 6, 5]],
    ),
    (
        "nn.FractionalMaxPool3d(2, output_ratio=0.5, _random_samples=torch.tensor([[[0.3, 0.7, 0.2]]]).double())",
        [[1, 1, 4, 5, 6]],
    ),
    ("nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Sequential(nn.Linear(4, 2), nn.Sigmoid()))", [[2, 3]]),
]

# Printed forms and keys of modules without a forward to run.
PRINTED = [
    "nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)])",
    "nn.ModuleList()",
    "nn.ModuleDict({'a': nn.ReLU(), 'b': nn.ModuleList([nn.Linear(1, 2)])})",
    "nn.ParameterList([torch.zeros(2, 3), torch.ones(1)])",
    "nn.ParameterDict({'b': torch.zeros(2), 'a': torch.ones(2, 2)})",
    "nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU(), nn.Dropout(0.25)))",
    "nn.Sequential()",
    "nn.MaxUnpool1d(2)",
    "nn.MaxUnpool2d((2, 3), stride=1, padding=(0, 1))",
    "nn.MaxUnpool3d(2)",
    "nn.MaxPool2d(2, return_indices=True)",
    "nn.SyncBatchNorm(3, momentum=None)",
    "nn.CrossMapLRN2d(5, alpha=0.5, beta=0.6, k=2.0)",
    "nn.Linear(2, 3).weight.shape",
    "nn.Linear(2, 3).type(torch.float64).bias.dtype",
]


def values(kind):
    """Fixed inputs: irregular, on both sides of branch points, but not on them."""
    if kind == "classes":
        return [2, 0, 3], "int64"
    shape = [3, 4] if kind == "unit" else kind
    n = 1
    for size in shape:
        n *= size
    flat = [((7 * i + 3) % 23 - 11) / 6.5 for i in range(n)]
    if kind == "unit":
        flat = [(v + 2) / 4 for v in flat]
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat, "float64"


def fixed_parameters(torch, module):
    """Sets every parameter to a pattern."""
    with torch.no_grad():
        for k, p in enumerate(module.parameters()):
            pattern = torch.arange(p.numel(), dtype=torch.float64).mul(0.7).add(k).sin().reshape(p.shape)
            p.copy_(pattern)


def run(torch, expression, kinds):
    """(module, inputs, output, gradients of inputs and parameters)."""
    module = eval(expression, {"torch": torch, "nn": torch.nn}).double()  # noqa: S307 - expressions of this file
    fixed_parameters(torch, module)
    inputs = []
    for i, kind in enumerate(kinds):
        data, dtype = values(kind)
        t = torch.tensor(data, dtype=getattr(torch, dtype))
        inputs.append(t.requires_grad_() if dtype == "float64" and i == 0 else t)
    # In-place modules may not change a leaf.
    first = inputs[0].clone() if inputs[0].requires_grad else inputs[0]
    output = module(first, *inputs[1:])
    weights = torch.arange(output.numel(), dtype=torch.float64).add(1.0).mul(0.3).cos().reshape(output.shape)
    (output * weights).sum().backward()
    grads = [t.grad for t in (*inputs, *module.parameters()) if t.requires_grad]
    return module, output, grads


def main():
    cases = []
    for expression, kinds in CASES:
        module, output, grads = run(torch, expression, kinds)
        cases.append(
            {
                "expression": expression,
                "kinds": kinds,
                "repr": repr(module),
                "state": [[k, list(v.shape)] for k, v in module.state_dict().items()],
                "output": output.tolist(),
                "grads": [g.tolist() for g in grads],
            }
        )
    printed = [[e, repr(eval(e, {"torch": torch, "nn": nn}))] for e in PRINTED]  # noqa: S307 - expressions of this file
    print(json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases, "printed": printed}, indent=1))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
