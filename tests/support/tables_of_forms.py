"""The table of printed forms: `repr`, `str` and `format` of objects other than plain tensors, and under options.

Plain tensors are in `golden/printing.json`; this table has everything else: parameters, sizes, modules, optimisers,
limits, errors of formatting. A row is an expression, its one cell the text.
"""

from functools import partial

from support.target import torch

EXPRESSIONS = (
    """
t.Size([2, 3]) | t.Size([]) | t.Size([1]) + (2,) | t.Size([1, 2, 3])[1:] | str(t.Size([4])) | t.Size([2]) * 2 | t.zeros(2, 3).shape
t.float32 | t.bool | t.complex128 | t.uint16 | [t.float16, t.bfloat16] | t.device('cpu') | str(t.device('cpu')) | t.strided | t.channels_last | t.preserve_format
t.finfo(t.float32) | t.finfo(t.float16) | t.finfo(t.bfloat16) | t.finfo(t.float64) | t.finfo(t.complex64) | t.iinfo(t.int8) | t.iinfo(t.uint8) | t.iinfo(t.int64) | str(t.iinfo(t.int32))
t.nn.Parameter(t.ones(2)) | t.nn.Parameter(t.ones(2, 2), requires_grad=False) | [t.nn.Parameter(t.ones(1))] | str(t.nn.Parameter(t.tensor(1.5)))
f'{t.tensor(1.5)}' | f'{t.tensor(1.5):.3f}' | f'{t.tensor(7):05d}' | f'{t.tensor(True)}' | f'{t.tensor(2.0):8}' | f'{t.ones(2)}' | f'{t.tensor([1.5])}' | f'{t.tensor([1.5]):.2f}' | f'{t.ones(2):.2f}' | f'{t.tensor(1+2j):.1f}' | '{:>10}'.format(t.tensor(3)) | f'{t.tensor(2.5, requires_grad=True):.1f}' | '%s' % t.tensor(1) | '%d' % t.tensor(3) | '%.2f' % t.tensor(1.234) | f'{t.tensor(1.5)!r}'
[t.tensor(1), t.tensor([2.5])] | {'a': t.tensor([1, 2])} | (t.ones(1), None) | t.tensor([1.0, 2.0], requires_grad=True) | t.tensor([1.0], requires_grad=True) * 2 | t.tensor([[1.0]], dtype=t.float64, requires_grad=True).sum()
t.nn.Linear(2, 3) | t.nn.Linear(2, 3, bias=False) | t.nn.ReLU() | t.nn.ReLU(inplace=True) | t.nn.Dropout(0.2) | t.nn.Sequential(t.nn.Linear(1, 2), t.nn.Tanh()) | t.nn.Sequential() | t.nn.ModuleList([t.nn.ReLU(), t.nn.ReLU()]) | t.nn.ModuleDict({'a': t.nn.ReLU()}) | t.nn.Flatten() | t.nn.LayerNorm(4) | t.nn.Embedding(3, 2) | t.nn.Embedding(3, 2, padding_idx=0) | t.nn.Identity() | t.nn.Softmax(dim=1) | t.nn.LeakyReLU(0.2) | t.nn.GELU() | t.nn.CrossEntropyLoss() | t.nn.MSELoss() | t.nn.Sequential(t.nn.Sequential(t.nn.Linear(1, 1)), t.nn.Sigmoid()) | t.nn.ParameterList([t.ones(2)])
t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.1) | t.optim.SGD([t.ones(1, requires_grad=True)], lr=0.1, momentum=0.9, nesterov=True) | t.optim.Adam([t.ones(1, requires_grad=True)]) | t.optim.AdamW([{'params': [t.ones(1, requires_grad=True)]}, {'params': [t.ones(2, requires_grad=True)], 'lr': 0.5}]) | t.optim.RMSprop([t.ones(1, requires_grad=True)]) | t.optim.Adagrad([t.ones(1, requires_grad=True)])
t.max(t.tensor([[1, 3], [2, 0]]), 1) | t.sort(t.tensor([2, 1])) | t.topk(t.tensor([2.5, 1.0]), 1) | t.tensor(1.0).item() | t.tensor([1, 2]).tolist() | t.tensor(1.5).numpy() | type(t.ones(1).requires_grad_().exp().grad_fn).__name__ | t.ones(1, requires_grad=True).exp().grad_fn.name()
t.typename(t.ones(1)) | t.typename(1) | t.FloatTensor | t.LongTensor | t.ones(1).type() | t.ones(1).int().type() | t.UntypedStorage([1, 2]) | t.FloatStorage([1.5]) | bool(t.tensor([0.0])) | hash(t.Size([1])) == hash((1,)) | t.Size([1]) == (1,) | t.inf | t.ones(0) | t.ones(2, 0, 3) | t.tensor([]) | t.tensor([[]]) | t.tensor(float('nan')) | t.tensor([1e-8, 1.0]) | t.tensor([float('inf'), 1])
""".strip()
    .replace("\n", " | ")
    .split(" | ")
)
OPTIONS = [
    {"precision": 1}, {"precision": 7}, {"sci_mode": True}, {"sci_mode": False}, {"linewidth": 30}, {"threshold": 4},
    {"threshold": 4, "edgeitems": 1}, {"profile": "short"}, {"profile": "full"}, {"precision": 2, "profile": "full"},
]  # fmt: skip
PRINTED = [
    "t.arange(12.) / 7", "t.arange(12).reshape(3, 4)", "t.tensor([1e-6, 1.0])", "t.tensor([1+1e-6j, 2])", "t.nn.Parameter(t.arange(6.) / 7)",
    "t.ones(3, dtype=t.float64) / 3", "t.tensor(1e10)", "t.arange(2000)", "t.arange(1500.).reshape(30, 50)",
]  # fmt: skip


def text(expression, options):
    torch.set_printoptions(profile="default")
    torch.set_printoptions(**options)
    try:
        made = eval(expression, {"t": torch})
        return made if isinstance(made, str) else repr(made)
    finally:
        torch.set_printoptions(profile="default")


def forms():
    for expression in EXPRESSIONS:
        yield expression, [partial(text, expression, {})]
    for expression in PRINTED:
        yield f"{expression} under options", [partial(text, expression, options) for options in OPTIONS]
