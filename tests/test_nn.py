"""Modules: values, gradients and printed forms recorded from PyTorch; containers, functions, initialisation.

`golden/nn.json` holds the recorded results, `golden/record_nn.py` their cases.
"""

import json
import math
import warnings
from collections import OrderedDict
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"
RECORD = json.loads((GOLDEN / "nn.json").read_text())
RECORDER = {}
exec((GOLDEN / "record_nn.py").read_text().replace("import torch\nfrom torch import nn\n", ""), RECORDER)


def close(got, want, tol=1e-7):
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            close(g, w, tol)
    else:
        assert math.isclose(got, want, rel_tol=tol, abs_tol=tol), f"{got} != {want}"


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda c: c["expression"])
@pytest.mark.filterwarnings("ignore")
def test_module(torch, case):
    module, output, grads = RECORDER["run"](torch, case["expression"], case["kinds"])
    assert repr(module) == case["repr"]
    assert [[k, list(v.shape)] for k, v in module.state_dict().items()] == case["state"]
    close(output.tolist(), case["output"])
    close([g.tolist() for g in grads], case["grads"])


@pytest.mark.parametrize("case", RECORD["cases"], ids=lambda c: c["expression"])
@pytest.mark.filterwarnings("ignore")
def test_module_on_a_device(torch, device, case):
    module = eval(case["expression"], {"torch": torch, "nn": torch.nn})
    module = module.float()
    with torch.no_grad():
        RECORDER["fixed_parameters"](torch, module)
    module = module.to(device)
    inputs = []
    for kind in case["kinds"]:
        data, dtype = RECORDER["values"](kind)
        inputs.append(torch.tensor(data, dtype=torch.int64 if dtype == "int64" else torch.float32).to(device))
    output = module(*inputs)
    assert output.device.type == device
    close(output.tolist(), case["output"], 3e-5)


@pytest.mark.parametrize(("expression", "text"), RECORD["printed"])
def test_printed_form(torch, expression, text):
    assert repr(eval(expression, {"torch": torch, "nn": torch.nn})) == text


def test_sequential(torch):
    nn = torch.nn
    s = nn.Sequential(OrderedDict(a=nn.Linear(2, 3), b=nn.ReLU()))
    assert s.a is s[0] and s[-1] is s.b and len(s) == 2 and list(s) == [s.a, s.b]
    assert isinstance(s[:1], nn.Sequential) and list(s[:1]._modules) == ["a"]
    s = nn.Sequential(nn.ReLU())
    s.append(nn.Tanh()).insert(0, nn.Sigmoid()).extend([nn.ELU()])
    assert [type(m).__name__ for m in s] == ["Sigmoid", "ReLU", "Tanh", "ELU"]
    del s[1]
    assert list(s._modules) == ["0", "1", "2"] and type(s.pop(0)).__name__ == "Sigmoid"
    assert len(s + s) == 4 and len(s * 3) == 6
    with pytest.raises(IndexError, match="index 5 is out of range"):
        s[5]
    with pytest.raises(ValueError, match="Non-positive multiplication factor 0"):
        s * 0


def test_lists_and_dicts(torch):
    nn = torch.nn
    items = nn.ModuleList([nn.Linear(1, 1)])
    items += [nn.ReLU()]
    items.insert(1, nn.Tanh())
    assert [type(m).__name__ for m in items] == ["Linear", "Tanh", "ReLU"] and isinstance(items[1:], nn.ModuleList)
    with pytest.raises(TypeError, match="ModuleList.extend should be called with an iterable, but got int"):
        items.extend(3)
    named = nn.ModuleDict([["a", nn.ReLU()]])
    named["b"] = nn.Tanh()
    named.update({"c": nn.ELU()})
    assert list(named) == ["a", "b", "c"] and "b" in named and type(named.pop("b")).__name__ == "Tanh"
    with pytest.raises(ValueError, match="has length 1; 2 is required"):
        named.update([["a"]])
    assert "[torch.float32 of size 1]" in repr(nn.ParameterList([torch.empty(1, device="meta")]))
    values = nn.ParameterList([torch.zeros(1)])
    values.append(torch.ones(2)).extend([nn.Parameter(torch.ones(3))])
    assert len(values) == 3 and isinstance(values[1], nn.Parameter)
    assert [n for n, _ in values.named_parameters()] == ["0", "1", "2"] and len(values[1:]) == 2
    table = nn.ParameterDict({"b": torch.zeros(1), "a": torch.ones(1)})
    assert list(table) == ["a", "b"] and table.get("x") is None and list((table | {"c": torch.ones(1)}).keys()) == [
        "a", "b", "c",
    ]  # fmt: skip
    with pytest.raises(RuntimeError, match="ParameterList should not be called"):
        values(1)


def test_dropout(torch, device):
    x = torch.ones(20000, device=device)
    dropout = torch.nn.Dropout(0.25)
    y = dropout(x)
    assert abs(y.mean().item() - 1) < 0.03 and abs((y == 0).float().mean().item() - 0.25) < 0.03
    assert dropout.eval()(x) is x and torch.nn.Dropout(1.0)(x).sum().item() == 0
    with pytest.raises(ValueError, match="dropout probability has to be between 0 and 1, but got 1.5"):
        torch.nn.Dropout(1.5)


def test_functional_errors_and_warnings(torch):
    F = torch.nn.functional
    x = torch.ones(2, 3)
    with pytest.warns(UserWarning, match="Implicit dimension choice for softmax has been deprecated"):
        F.softmax(x)
    with pytest.warns(UserWarning, match="Using a target size"):
        F.mse_loss(x, torch.ones(3))
    with pytest.raises(ValueError, match="is not a valid value for reduction"):
        F.l1_loss(x, x, reduction="median")
    with pytest.raises(ValueError, match="must be the same as input size"):
        F.binary_cross_entropy_with_logits(x, torch.ones(3))
    with pytest.raises(RuntimeError, match="Halving dimension must be even"):
        F.glu(x)
    with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated"):
        assert F.l1_loss(x, x * 3, size_average=False).item() == 12
    with pytest.warns(UserWarning, match="please use reduction='none' instead"):
        assert F.binary_cross_entropy(x, x, reduce=False).shape == (2, 3)
    assert F.one_hot(torch.tensor([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    assert F.one_hot(torch.ones(3, dtype=torch.int64, device="meta"), 5).shape == (3, 5)
    close(F.normalize(torch.tensor([[3.0, 4.0]])).tolist(), [[0.6, 0.8]], 1e-6)
    close(F.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]])).tolist(), [0.5**0.5], 1e-6)


def test_warnings_point_at_the_caller(torch):
    x = torch.ones(2, 3)
    calls = [
        lambda: torch.nn.functional.softmin(x),
        lambda: torch.nn.Softmax()(x),
        lambda: torch.nn.functional.huber_loss(x, x[0]),
    ]
    for call in calls:
        with pytest.warns(UserWarning) as heard:
            call()
        assert [w.filename for w in heard] == [__file__]


def test_embedding_max_norm(torch):
    embedding = torch.nn.Embedding(3, 2, max_norm=1.0)
    with torch.no_grad():
        embedding.weight.fill_(3.0)
    out = embedding(torch.tensor([0, 2, 0]))
    close(out.norm(dim=1).tolist(), [1.0, 1.0, 1.0], 1e-5)
    assert embedding.weight[1].tolist() == [3, 3]
    frozen = torch.nn.Embedding.from_pretrained(torch.ones(2, 2))
    assert not frozen.weight.requires_grad and frozen.num_embeddings == 2


def test_init(torch):
    init = torch.nn.init
    w = torch.empty(200, 100)
    bound = math.sqrt(6 / 300)
    assert init.xavier_uniform_(w) is w and w.abs().max().item() <= bound and w.std().item() > bound / 2
    assert abs(init.xavier_normal_(w).std().item() - math.sqrt(2 / 300)) < 0.003
    assert abs(init.kaiming_normal_(w, nonlinearity="relu").std().item() - math.sqrt(2 / 100)) < 0.005
    assert init.kaiming_uniform_(w, a=math.sqrt(5)).abs().max().item() <= 0.1
    cut = init.trunc_normal_(w, mean=0.5, std=1.0, a=0.0, b=1.0)
    assert 0 <= cut.min().item() and cut.max().item() <= 1 and abs(cut.mean().item() - 0.5) < 0.02
    assert init.constant_(w, 3).unique().tolist() == [3] if hasattr(w, "unique") else True
    assert init.eye_(torch.empty(2, 3)).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert init.dirac_(torch.empty(2, 2, 3)).tolist() == [[[0, 1, 0], [0, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
    assert init.calculate_gain("relu") == math.sqrt(2) and init.calculate_gain("tanh") == 5 / 3
    with pytest.raises(ValueError, match="Unsupported nonlinearity nothing"):
        init.calculate_gain("nothing")
    with pytest.raises(ValueError, match="fewer than 2 dimensions"):
        init.xavier_uniform_(torch.empty(3))
    with pytest.raises(ValueError, match="Mode fan not supported"):
        init.kaiming_uniform_(w, mode="fan")


def test_linear_starts_within_its_bounds(torch):
    layer = torch.nn.Linear(25, 400)
    for p in layer.parameters():
        assert p.abs().max().item() <= 0.2 and abs(p.std().item() - 0.2 / math.sqrt(3)) < 0.02


def test_clipping(torch):
    utils = torch.nn.utils
    params = [torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)]

    def fill():
        params[0].grad, params[1].grad = torch.tensor([3.0, 4.0]), torch.tensor([12.0])

    fill()
    assert utils.clip_grad_norm_(params, 1.3).item() == 13.0
    close(params[0].grad.tolist() + params[1].grad.tolist(), [0.3, 0.4, 1.2], 1e-5)
    fill()
    with pytest.warns(FutureWarning, match="deprecated in favor of `torch.nn.utils.clip_grad_norm_`"):
        assert utils.clip_grad_norm(params, 100.0, norm_type=math.inf).item() == 12.0
    assert params[1].grad.tolist() == [12.0]
    utils.clip_grad_value_(params, 3.5)
    assert params[0].grad.tolist() == [3, 3.5] and params[1].grad.tolist() == [3.5]
    params[1].grad = torch.tensor([math.inf])
    with pytest.raises(RuntimeError, match="The total norm of order 2.0 for gradients from `parameters` is non-finite"):
        utils.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)


def test_parameters_as_a_vector(torch):
    layer = torch.nn.Linear(2, 1)
    vector = torch.nn.utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (3,)
    torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert layer.weight.tolist() == [[1, 2]] and layer.bias.tolist() == [3]


def test_parameter(torch):
    p = torch.nn.Parameter(torch.ones(2))
    assert p.requires_grad and p.is_leaf and isinstance(p, torch.Tensor)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"
    assert type(p * 2) is torch.Tensor and type(p.detach()) is torch.Tensor
    assert not torch.nn.Parameter(torch.ones(1), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match="floating point"):
        torch.nn.Parameter(torch.tensor([1]))


def test_a_module_learns(torch, device):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)).to(device)
    x = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device=device)
    y = torch.tensor([0, 1, 1, 0], device=device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(200):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert model(x).argmax(1).tolist() == [0, 1, 1, 0] and loss.item() < 0.1


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("huge", [2**62, 2**63 - 1])
@pytest.mark.filterwarnings("ignore")
def test_convolutions_by_huge_steps(torch, huge, transposed):
    """Steps of any size give a result or an error, with a batch of nothing too, and so do the gradients."""
    for batch, place in ((b, i) for b in (0, 1) for i in range(4)):
        steps = [[huge if i == place else 1] for i in range(4)]  # stride, padding, dilation, output_padding
        stride, padding, dilation, output_padding = steps
        if place != 1:
            padding = [0]
        if place != 3:
            output_padding = [0]
        x = torch.randn(batch, 2, 3, requires_grad=True)
        for size in (1, 3):
            w = torch.randn(2, 2, size, requires_grad=True)
            try:
                y = torch.convolution(x, w, None, stride, padding, dilation, transposed, output_padding, 1)
                y.sum().backward()
            except RuntimeError:
                continue
            assert x.grad.shape == x.shape and w.grad.shape == w.shape
            x.grad = None


def test_convolutions_without_channels(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = torch.nn.Conv2d(0, 5, 3, stride=2)
    x = torch.randn(2, 0, 8, 9, requires_grad=True)
    y = layer(x)
    assert torch.equal(y, layer.bias.view(5, 1, 1).expand(y.shape))
    y.sum().backward()
    assert x.grad.shape == x.shape and layer.weight.grad.shape == layer.weight.shape
    assert layer.bias.grad.tolist() == [y[:, 0].numel()] * 5


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_gradients_of_convolutions_as_functions(torch, dims):
    F, G = torch.nn.functional, torch.nn.grad
    x = torch.randn(2, 4, *(6, 7, 5)[:dims], dtype=torch.float64, requires_grad=True)
    w = torch.randn(6, 2, *(3, 2, 2)[:dims], dtype=torch.float64, requires_grad=True)
    options = {"stride": 2, "padding": (1,) * dims, "dilation": 1, "groups": 2}
    y = getattr(F, f"conv{dims}d")(x, w, **options)
    seed = torch.randn_like(y)
    expected = torch.autograd.grad(y, (x, w), seed)
    of_input = getattr(G, f"conv{dims}d_input")(x.shape, w, seed, **options)
    of_weight = getattr(G, f"conv{dims}d_weight")(x, w.shape, seed, **options)
    assert torch.allclose(of_input, expected[0]) and torch.allclose(of_weight, expected[1]) and F.grad is G
    # They have gradients of their own.
    again = torch.autograd.grad(of_input.sum(), w)[0]
    assert again.shape == w.shape and again.abs().sum() > 0


def test_convolutions_of_sequences_by_time(torch):
    x, w, bias = torch.randn(5, 2, 3), torch.randn(2, 3, 4), torch.randn(4)
    y = torch.nn.functional.conv_tbc(x, w, bias, 1)
    whole = torch.nn.functional.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), bias, padding=1)
    assert y.is_contiguous() and torch.equal(y, whole.permute(2, 0, 1))
    out = torch.empty(0)
    assert torch.nn.functional.conv_tbc(x, w, bias, 1, out=out) is out and torch.equal(out, y)
    with pytest.raises(RuntimeError, match="input must have 3 dims"):
        torch.nn.functional.conv_tbc(x[0], w, bias)


def test_embeddings_rescaled_in_place_keep_their_tangents(torch):
    forward_ad = torch.autograd.forward_ad
    weight = torch.full((4, 4), 2.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(weight, torch.ones(4, 4))
        y = torch.nn.functional.embedding(torch.tensor([0, 2]), dual, max_norm=1.0)
        value, tangent = forward_ad.unpack_dual(y)
    assert torch.allclose(value.norm(dim=1), torch.ones(2)) and torch.equal(tangent, torch.ones(2, 4))


def test_instance_norms_of_ones_own_rank(torch):
    class Flat(torch.nn.modules.instancenorm._InstanceNorm):
        def _get_no_batch_dim(self):
            return 2

    x = torch.randn(2, 3, 5)
    assert (
        torch.equal(Flat(3)(x), torch.nn.InstanceNorm1d(3)(x)) and torch.nn.InstanceNorm3d(3)._get_no_batch_dim() == 4
    )
    assert Flat(3)(x[0]).shape == (3, 5)
    with pytest.raises(ValueError, match="expected 2D or 3D input"):
        Flat(3)(torch.ones(2, 3, 4, 5))


IN_PLACE = [
    ("elu", {"alpha": 1.5}),
    ("selu", {}),
    ("celu", {"alpha": 1.5}),
    ("leaky_relu", {"negative_slope": 0.2}),
    ("rrelu", {}),
]


@pytest.mark.parametrize(("name", "options"), IN_PLACE, ids=lambda v: v if isinstance(v, str) else "")
def test_activations_in_place_differentiate_by_their_result(torch, name, options):
    function = getattr(torch.nn.functional, name)
    x = torch.tensor([-2.0, -0.3, 0.0, 0.4, 3.0], dtype=torch.float64, requires_grad=True)
    in_place = lambda x: function(x.clone(), inplace=True, **options)  # noqa: E731
    y, z = in_place(x), function(x, **options)
    assert y.grad_fn.name()[-1] == "1"
    assert torch.equal(y.grad_fn._saved_result, y)
    (got,), (want,) = (torch.autograd.grad(v.sum(), x) for v in (y, z))
    torch.testing.assert_close(got, want, rtol=1e-14, atol=0)
    off = x.detach()[[0, 1, 3, 4]].requires_grad_()
    assert torch.autograd.gradcheck(in_place, off) and torch.autograd.gradgradcheck(in_place, off)


@pytest.mark.parametrize(
    ("name", "options", "by"),
    [
        ("elu", {"alpha": -2.0}, "elu"),
        ("celu", {"alpha": -2.0}, "elu"),
        ("leaky_relu", {"negative_slope": -2.0}, "leakyReLu"),
        ("rrelu", {"lower": -5.0, "upper": -1.0}, "leakyReLu"),
    ],
)
def test_a_result_in_place_tells_nothing_of_a_negative_slope(torch, name, options, by):
    function = getattr(torch.nn.functional, name)
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    y = function(x.clone(), inplace=True, **options)
    with pytest.raises(RuntimeError, match=f"In-place {by} backward .* call out-of-place version"):
        y.sum().backward()
    function(x, **options).sum().backward()
    assert x.grad[0] < 0 or name == "celu"


@pytest.mark.parametrize("layer", ["Conv2d", "ConvTranspose2d", "Conv3d", "ConvTranspose3d"])
@pytest.mark.parametrize("which", ["input", "weight"])
def test_gradients_of_images_with_channels_last_have_them_last(torch, layer, which):
    """Whatever the gradient that arrives."""
    last = torch.channels_last_3d if "3d" in layer else torch.channels_last
    plain = getattr(torch.nn, layer)(4, 6, 3, stride=2).double()
    x = torch.randn(2, 4, *(7,) * (3 if "3d" in layer else 2), dtype=torch.float64, requires_grad=True)
    y = plain(x)
    seed = torch.randn(y.shape, dtype=torch.float64)
    want = torch.autograd.grad(y, [x, plain.weight], seed)
    other = x.detach().contiguous(memory_format=last) if which == "input" else x.detach().clone()
    layer = plain.to(memory_format=last) if which == "weight" else plain
    other.requires_grad_()
    got = torch.autograd.grad(layer(other), [other, layer.weight], seed)
    assert got[0].is_contiguous(memory_format=last)
    for g, w in zip(got, want, strict=True):
        torch.testing.assert_close(g, w)


def test_products_of_groups(torch):
    grouped = torch.nn.functional.grouped_mm
    torch.manual_seed(0)
    rows, experts = torch.randn(16, 16, requires_grad=True), torch.randn(3, 16, 8, requires_grad=True)
    ends = torch.tensor([4, 4, 16], dtype=torch.int32)
    got = grouped(rows, experts, offs=ends)
    want = torch.cat([rows[:4] @ experts[0], rows[4:] @ experts[2]])
    assert torch.allclose(got, want, atol=1e-5)
    pairs = [torch.autograd.grad(y.square().sum(), (rows, experts), retain_graph=True) for y in (got, want)]
    for a, b in zip(*pairs):
        assert torch.allclose(a, b, atol=1e-3)
    wide, matrix = torch.randn(3, 8, 16), torch.randn(16, 24)
    got = grouped(wide, matrix, offs=torch.tensor([8, 8, 24], dtype=torch.int32))
    assert torch.allclose(got, torch.cat([wide[0] @ matrix[:, :8], wide[2] @ matrix[:, 8:]], 1), atol=1e-5)
    got = grouped(rows.detach().t(), matrix, offs=ends)
    want = [rows.t()[:, part] @ matrix[part] for part in (slice(4), slice(0), slice(4, 16))]
    assert got.shape == (3, 16, 24) and torch.allclose(got, torch.stack(want), atol=1e-5)
    assert torch.allclose(grouped(wide, experts), wide @ experts, atol=1e-5)


def test_products_of_groups_refuse_what_does_not_fit(torch):
    grouped, f32 = torch.nn.functional.grouped_mm, torch.float32
    ends = torch.tensor([8, 16], dtype=torch.int32)
    wrong = [
        ((torch.ones(16, 16), torch.ones(2, 16, 8)), {}),
        ((torch.ones(2, 16, 16), torch.ones(2, 16, 8)), {"offs": ends}),
        ((torch.ones(16, 16), torch.ones(2, 8, 8)), {"offs": ends}),
        ((torch.ones(16, 16), torch.ones(3, 16, 8)), {"offs": ends}),
        ((torch.ones(16, 16), torch.ones(2, 16, 8)), {"offs": ends.to(f32)}),
        ((torch.ones(16), torch.ones(2, 16, 8)), {"offs": ends}),
    ]
    for args, kwargs in wrong:
        with pytest.raises(RuntimeError):
            grouped(*args, **kwargs)
