"""`torch.export`: modules as graphs of ATen ops; the texts and lists of ops are those that PyTorch has."""

import copy
import dataclasses
import subprocess
import sys

import pytest
from support import target

torch = target.torch
nn, F = torch.nn, torch.nn.functional
Dim, export = torch.export.Dim, torch.export.export
UserError = torch._dynamo.exc.UserError


class Of(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


class Sum(nn.Module):
    def forward(self, x, y):
        return x + y


class Keyword(nn.Module):
    def forward(self, x, y=None, *, k=2):
        return x * 2 + (0 if y is None else y) * k


class Convolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn, self.lin = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 2)
        self.c = torch.ones(2)

    def forward(self, x, d):
        x = F.adaptive_avg_pool2d(self.bn(self.conv(x)).relu_(), 1).flatten(1)
        y = self.lin(x) + self.c + d["a"]
        return {"o": y.view(x.shape[0], -1) * 2, "l": (x, x.softmax(-1))}


def ops(program):
    """The calls of a graph: the op, and how its arguments look."""

    def shown(a):
        if isinstance(a, (list, tuple)):
            return [shown(v) for v in a]
        return "%" if isinstance(a, torch.fx.Node) else a if isinstance(a, (int, float, bool, str)) else str(a)

    calls = [n for n in program.graph.nodes if n.op == "call_function" and "getitem" not in str(n.target)]
    return [
        (str(n.target).removeprefix("aten."), shown(n.args), {k: shown(v) for k, v in n.kwargs.items()}) for n in calls
    ]


def lowered(function, *args):
    """The ops of a function of tensors, written out."""
    return ops(export(Of(function), args))


def text(program):
    """What is printed, without the lines of places."""
    return "\n".join(line for line in str(program).split("\n") if "# File:" not in line and line.strip())


# --- graphs


def test_program_as_text():
    batch = Dim("b")
    args = (torch.randn(3, 1, 8, 8), {"a": torch.randn(3, 2)})
    program = export(Convolution(), args, dynamic_shapes=({0: batch}, {"a": {0: batch}}))
    assert (
        text(program)
        == """\
ExportedProgram:
    class GraphModule(torch.nn.Module):
        def forward(self, p_conv_weight: "f32[4, 1, 3, 3]", p_conv_bias: "f32[4]", p_bn_weight: "f32[4]", p_bn_bias: "f32[4]", \
p_lin_weight: "f32[2, 4]", p_lin_bias: "f32[2]", b_bn_running_mean: "f32[4]", b_bn_running_var: "f32[4]", \
b_bn_num_batches_tracked: "i64[]", c_c: "f32[2]", x: "f32[s77, 1, 8, 8]", d_a: "f32[s77, 2]"):
            # No stacktrace found for following nodes
            sym_size_int_1: "Sym(s77)" = torch.ops.aten.sym_size.int(x, 0)
            conv2d: "f32[s77, 4, 6, 6]" = torch.ops.aten.conv2d.default(x, p_conv_weight, p_conv_bias);  \
x = p_conv_weight = p_conv_bias = None
            add_: "i64[]" = torch.ops.aten.add_.Tensor(b_bn_num_batches_tracked, 1);  b_bn_num_batches_tracked = add_ = None
            batch_norm: "f32[s77, 4, 6, 6]" = torch.ops.aten.batch_norm.default(conv2d, p_bn_weight, p_bn_bias, b_bn_running_mean, \
b_bn_running_var, True, 0.1, 1e-05, False);  conv2d = p_bn_weight = p_bn_bias = b_bn_running_mean = b_bn_running_var = None
            relu_: "f32[s77, 4, 6, 6]" = torch.ops.aten.relu_.default(batch_norm);  batch_norm = None
            adaptive_avg_pool2d: "f32[s77, 4, 1, 1]" = torch.ops.aten.adaptive_avg_pool2d.default(relu_, [1, 1]);  relu_ = None
            flatten: "f32[s77, 4]" = torch.ops.aten.flatten.using_ints(adaptive_avg_pool2d, 1);  adaptive_avg_pool2d = None
            linear: "f32[s77, 2]" = torch.ops.aten.linear.default(flatten, p_lin_weight, p_lin_bias);  p_lin_weight = p_lin_bias = None
            add: "f32[s77, 2]" = torch.ops.aten.add.Tensor(linear, c_c);  linear = c_c = None
            add_1: "f32[s77, 2]" = torch.ops.aten.add.Tensor(add, d_a);  add = d_a = None
            view: "f32[s77, 2]" = torch.ops.aten.view.default(add_1, [sym_size_int_1, -1]);  add_1 = sym_size_int_1 = None
            mul: "f32[s77, 2]" = torch.ops.aten.mul.Tensor(view, 2);  view = None
            softmax: "f32[s77, 4]" = torch.ops.aten.softmax.int(flatten, -1)
            return (mul, flatten, softmax)
Graph signature:
    # inputs
    p_conv_weight: PARAMETER target='conv.weight'
    p_conv_bias: PARAMETER target='conv.bias'
    p_bn_weight: PARAMETER target='bn.weight'
    p_bn_bias: PARAMETER target='bn.bias'
    p_lin_weight: PARAMETER target='lin.weight'
    p_lin_bias: PARAMETER target='lin.bias'
    b_bn_running_mean: BUFFER target='bn.running_mean' persistent=True
    b_bn_running_var: BUFFER target='bn.running_var' persistent=True
    b_bn_num_batches_tracked: BUFFER target='bn.num_batches_tracked' persistent=True
    c_c: CONSTANT_TENSOR target='c'
    x: USER_INPUT
    d_a: USER_INPUT
    # outputs
    mul: USER_OUTPUT
    flatten: USER_OUTPUT
    softmax: USER_OUTPUT
Range constraints: {s77: VR[0, int_oo]}""".replace("mul:", "mul_2:" if target.STAND_IN else "mul:").replace(
            "(mul,", "(mul_2," if target.STAND_IN else "(mul,"
        )
    )


CALLS = {
    "relu": (lambda x: F.relu(x), [("relu.default", ["%"], {})]),
    "dropout": (lambda x: F.dropout(x, 0.2), [("dropout.default", ["%", 0.2, True], {})]),
    "elu": (lambda x: F.elu(x), [("elu.default", ["%", 1.0], {})]),
    "gelu": (lambda x: F.gelu(x, approximate="tanh"), [("gelu.default", ["%"], {"approximate": "tanh"})]),
    "layer_norm": (lambda x: F.layer_norm(x, (6,)), [("layer_norm.default", ["%", [6], "None", "None", 1e-5, False], {})]),
    "conv": (lambda x: F.conv1d(x[None], x[:, :1, None].expand(4, 4, 1), padding=1)[0], None),
    "max": (lambda x: x.max(1)[0], [("max.dim", ["%", 1], {})]),
    "sum": (lambda x: x.sum(), [("sum.default", ["%"], {})]),
    "sum of dims": (lambda x: x.sum((0, 1), keepdim=True), [("sum.dim_IntList", ["%", [0, 1], True], {})]),
    "var": (lambda x: x.var(dim=1, correction=0), [("var.correction", ["%", [1]], {"correction": 0})]),
    "number": (lambda x: 1 - x, [("rsub.Scalar", ["%", 1], {})]),
    "power": (lambda x: x**2, [("pow.Tensor_Scalar", ["%", 2], {})]),
    "select and slice": (lambda x: x[1:, None, 0], [("slice.Tensor", ["%", 0, 1, 2**63 - 1], {}), ("unsqueeze.default", ["%", 1], {}), ("select.int", ["%", 2, 0], {})]),
    "index": (lambda x: x[:, torch.arange(2)], [("arange.default", [2], {"device": "cpu", "pin_memory": False}), ("index.Tensor", ["%", ["None", "%"]], {})]),
    "split": (lambda x: x.split([1, 3])[0], [("split_with_sizes.default", ["%", [1, 3]], {})]),
    "clamp": (lambda x: x.clamp(min=0), [("clamp.default", ["%", 0], {})]),
    "masked_fill": (lambda x: x.masked_fill(x > 0, 1.5), [("gt.Scalar", ["%", 0], {}), ("masked_fill.Scalar", ["%", "%", 1.5], {})]),
    "view": (lambda x: x.view(2, 2, 6), [("view.default", ["%", [2, 2, 6]], {})]),
    "permute": (lambda x: x.permute(1, 0), [("permute.default", ["%", [1, 0]], {})]),
    "pool": (lambda x: F.max_pool2d(x[None], 2)[0], None),
    "interpolate": (lambda x: F.interpolate(x[None, None], scale_factor=2), [("unsqueeze.default", ["%", 0], {}), ("unsqueeze.default", ["%", 1], {}), ("upsample_nearest2d.vec", ["%", "None", [2.0, 2.0]], {})]),
    "einsum": (lambda x: torch.einsum("ij,kj->ik", x, x), [("einsum.default", ["ij,kj->ik", ["%", "%"]], {})]),
    "norm": (lambda x: x.norm(dim=1), [("linalg_vector_norm.default", ["%", 2, [1]], {})]),
    "where": (lambda x: torch.where(x > 0, x, 0.0), [("gt.Scalar", ["%", 0], {}), ("where.ScalarOther", ["%", "%", 0.0], {})]),
    "fft": (lambda x: torch.fft.rfft(x).real, None),
    "pad": (lambda x: F.pad(x, (1, 1), value=2.0), [("pad.default", ["%", [1, 1], "constant", 2.0], {})]),
    "zeros": (lambda x: x + torch.zeros(6), [("zeros.default", [[6]], {"device": "cpu", "pin_memory": False}), ("add.Tensor", ["%", "%"], {})]),
    "new_zeros": (lambda x: x + x.new_zeros(6), [("new_zeros.default", ["%", [6]], {"pin_memory": False}), ("add.Tensor", ["%", "%"], {})]),
    "in place": (lambda x: x.clone().add_(x, alpha=2), [("clone.default", ["%"], {}), ("add_.Tensor", ["%", "%"], {"alpha": 2})]),
    "loss": (lambda x: F.cross_entropy(x, x.softmax(1), label_smoothing=0.1, reduction="sum"), [("softmax.int", ["%", 1], {}), ("cross_entropy_loss.default", ["%", "%", "None", 2, -100, 0.1], {})]),
    "normalize": (lambda x: F.normalize(x), [("linalg_vector_norm.default", ["%", 2.0, [1], True], {}), ("clamp_min.default", ["%", 1e-12], {}), ("expand_as.default", ["%", "%"], {}), ("div.Tensor", ["%", "%"], {})]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_functions_become_overloads(name):
    function, expected = CALLS[name]
    x = torch.randn(4, 6)
    torch.manual_seed(0)
    wanted = function(x.clone())
    program = export(Of(function), (x,))
    if expected is not None:
        assert ops(program) == expected
    torch.manual_seed(0)
    torch.testing.assert_close(program.module()(x.clone()), wanted)


def test_writes_to_parts():
    def function(x):
        y = x.clone()
        y[0] = 1
        y[:, 1:3] *= 2
        y[y > 2] = 0
        y[1, 2] += x[0, 0]
        return y

    program = export(Of(function), (torch.randn(3, 4),))
    called = [name for name, *_ in ops(program)]
    assert called[:3] == ["clone.default", "select.int", "fill_.Scalar"] and "masked_fill_.Scalar" in called
    x = torch.randn(3, 4)
    torch.testing.assert_close(program.module()(x), function(x))


def test_constants_and_what_is_returned():
    class Constants(nn.Module):
        def forward(self, x, k):
            return x + torch.tensor([1.0, 2, 3, 4]), None, 3, k, "s"

    program = export(Constants(), (torch.ones(2, 4), 5))
    assert [n for n, *_ in ops(program)] == ["lift_fresh_copy.default", "detach_.default", "add.Tensor"]
    assert list(program.constants) == ["lifted_tensor_0"] and program.graph_signature.user_inputs == ("x", 5)
    result = program.module()(torch.ones(2, 4), 5)
    assert result[1:] == (None, 3, 5, "s") and result[0].tolist()[0] == [2, 3, 4, 5]


def test_buffers_and_parameters():
    class State(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.ones(4))
            self.tied = self.w
            self.register_buffer("n", torch.zeros(4))
            self.register_buffer("k", torch.ones(4), persistent=False)

        def forward(self, x):
            self.n = self.n + x.sum(0)
            return x * self.w + self.n * self.k

    module = State()
    program = export(module, (torch.ones(2, 4),))
    assert module.n.tolist() == [0, 0, 0, 0]
    assert list(program.state_dict) == ["w", "tied", "n"] and list(program.constants) == ["k"]
    signature = program.graph_signature
    assert signature.inputs_to_buffers == {"b_n": "n", "b_k": "k"} and tuple(signature.non_persistent_buffers) == ("k",)
    assert [n for n, _ in program.named_parameters()] == ["w", "tied"] and len(list(program.buffers())) == 2
    made = program.module()
    made(torch.ones(2, 4))
    made(torch.ones(2, 4))
    assert made.n.tolist() == [4, 4, 4, 4] and program.state_dict["n"].tolist() == [4, 4, 4, 4]


def test_gradients_of_the_module():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1))
    program = export(module, (torch.randn(2, 4),))
    made, x = program.module(), torch.randn(2, 4)
    made(x).sum().backward()
    found = {n: p.grad.clone() for n, p in made.named_parameters()}
    module.zero_grad()
    module(x).sum().backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(found[name], p.grad)
    with pytest.raises(NotImplementedError, match="Calling train"):
        made.train()


def test_blocks_without_gradients():
    class Blocks(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))

        def forward(self, x):
            with torch.no_grad():
                y = x * self.a
                z = y + 1
            return (y * self.b + z).sum()

    program = export(Blocks(), (torch.randn(3),))
    assert "wrap_with_set_grad_enabled" in str(program)
    made = program.module()
    made(torch.ones(3)).backward()
    assert made.a.grad is None and made.b.grad.tolist() == [1, 1, 1]


def test_branches_of_tensors():
    class Branches(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.two = nn.Linear(4, 2), nn.Linear(4, 2)

        def forward(self, x):
            return torch.cond(x.sum() > 0, lambda t: self.one(t) * 2, lambda t: self.two(t), (x,))

    torch.manual_seed(0)
    module = Branches()
    program = export(module, (torch.ones(3, 4),))
    for x in (torch.ones(3, 4), -torch.ones(3, 4)):
        torch.testing.assert_close(program.module()(x), module(x))
    assert "true_graph_0" in str(program)


def test_containers_of_arguments():
    @dataclasses.dataclass
    class Pair:
        a: torch.Tensor
        b: torch.Tensor

    torch.export.register_dataclass(Pair)

    class Containers(nn.Module):
        def forward(self, p, *rest, scale, **more):
            return Pair(p.a + rest[0], p.b * scale), {"m": more["m"][0] - rest[1]}

    args = (Pair(torch.ones(2), torch.ones(2)), torch.ones(2), torch.ones(2))
    program = export(Containers(), args, {"scale": 3, "m": [torch.ones(2)]})
    names = [n.name for n in program.graph.nodes if n.op == "placeholder"]
    assert names == ["p_a", "p_b", "rest_0", "rest_1", "scale", "m_0"]
    pair, more = program.module()(*args, m=[torch.zeros(2)], scale=3)
    assert pair.a.tolist() == [2, 2] and pair.b.tolist() == [3, 3] and more["m"].tolist() == [-1, -1]


def test_ops_of_the_program():
    @torch.library.custom_op("export_test::scaled", mutates_args=())
    def scaled(x: torch.Tensor, k: int) -> torch.Tensor:
        return x * k

    @scaled.register_fake
    def _(x, k):
        return torch.empty_like(x)

    program = export(Of(lambda x: torch.ops.export_test.scaled(x, k=3) + 1), (torch.ones(2),))
    assert ops(program)[0] == ("export_test.scaled.default", ["%", 3], {})
    assert program.module()(torch.ones(2)).tolist() == [4, 4]


# --- checks of calls


def test_calls_are_checked():
    batch = Dim("b", min=2, max=10)
    x = torch.randn(3, 4)
    program = export(Keyword(), (x, x + 1), {"k": 3}, dynamic_shapes={"x": {0: batch}, "y": {0: batch}, "k": None})
    made = program.module()
    assert made(torch.ones(5, 4), torch.ones(5, 4), k=3).shape == (5, 4)
    cases = [
        (AssertionError, r"Guard failed: k == 3", (x, x), {"k": 4}),
        (AssertionError, r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]", (x, torch.ones(5, 4)), {"k": 3}),
        (AssertionError, r"Guard failed: x.size\(\)\[0\] <= 10", (torch.ones(11, 4),) * 2, {"k": 3}),
        (AssertionError, r"Guard failed: x.size\(\)\[1\] == 4", (torch.ones(3, 5),) * 2, {"k": 3}),
        (ValueError, "kwarg keyword mismatch", (x, x), {}),
        (ValueError, "Trying to flatten user inputs with exported input tree spec", (x,), {"k": 3}),
    ]
    for kind, message, args, kwargs in cases:
        with pytest.raises(kind, match=message):
            made(*args, **kwargs)
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(x, x, k=3)


# --- sizes


def shapes(function, args, dynamic):
    program = export(Of(function) if not isinstance(function, nn.Module) else function, args, dynamic_shapes=dynamic)
    lines = [line for line in str(program).split("\n") if " = torch.ops" in line]
    return [line.strip().partition(" = ")[0] for line in lines], program


def test_sizes_are_expressions():
    class Sizes(nn.Module):
        def forward(self, x):
            n = x.shape[0] * 2 + 1
            return torch.cat([x, x])[1:], x.reshape(-1), n, torch.arange(x.shape[0])

    found, program = shapes(Sizes(), (torch.randn(3, 4),), ({0: Dim("a")},))
    assert found[1:5] == [
        'cat: "f32[2*s77, 4]"', 'slice_1: "f32[2*s77 - 1, 4]"', 'reshape: "f32[4*s77]"', 'arange: "i64[s77]"',
    ]  # fmt: skip
    result = program.module()(torch.ones(5, 4))
    assert result[0].shape == (9, 4) and result[2] == 11 and result[3].tolist() == [0, 1, 2, 3, 4]


def test_sizes_that_go_with_others():
    dim = Dim("d", min=2)

    class Shifted(nn.Module):
        def forward(self, x, y):
            return x + y[1:]

    _, program = shapes(Shifted(), (torch.ones(3, 4), torch.ones(4, 4)), ({0: dim}, {0: dim + 1}))
    assert str(program.range_constraints) == "{s77: VR[2, int_oo], s77 + 1: VR[3, int_oo]}"
    made = program.module()
    assert made(torch.ones(5, 4), torch.ones(6, 4)).shape == (5, 4)
    with pytest.raises(AssertionError, match="Guard failed"):
        made(torch.ones(5, 4), torch.ones(7, 4))


@pytest.mark.parametrize("hint", [Dim.AUTO, Dim.DYNAMIC], ids=["auto", "dynamic"])
def test_hints_find_sizes_that_are_alike(hint):
    program = export(Sum(), (torch.randn(3, 4), torch.randn(3, 4)), dynamic_shapes=({0: hint}, {0: hint}))
    (bounds,) = program.range_constraints.values()
    assert str(bounds) == "VR[2, int_oo]"
    assert program.module()(torch.ones(7, 4), torch.ones(7, 4)).shape == (7, 4)


def test_auto_leaves_sizes_static():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(3, 4) + 1

    program = export(Fixed(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO},))
    assert program.range_constraints == {}
    for dim, message in (
        (Dim("batch"), r"Constraints violated \(batch\)(.|\n)*batch = 3"),
        (Dim.DYNAMIC, r"L\['x'\].size\(\)\[0\]"),
    ):
        with pytest.raises(UserError, match=message):
            export(Fixed(), (torch.ones(3, 4),), dynamic_shapes=({0: dim},))


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch keeps what it can of the names")
def test_drafts():
    class Fixed(nn.Module):
        def forward(self, x):
            return x.view(3, 4) + 1

    program = torch.export.draft_export(Fixed(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("batch")},))
    assert program.range_constraints == {} and program.module()(torch.ones(3, 4)).shape == (3, 4)


def test_sizes_that_must_be_alike():
    with pytest.raises(UserError, match=r"must always be equal.\nSuggested fixes:\n  b = a"):
        export(Sum(), (torch.ones(3, 4), torch.zeros(3, 4)), dynamic_shapes=({0: Dim("a")}, {0: Dim("b")}))


def test_comparisons_of_sizes():
    class Compares(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] > 2 else x - 1

    with pytest.raises(UserError, match=r"a = Dim\('a', min=3\)"):
        export(Compares(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("a")},))
    program = export(Compares(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim.AUTO},))
    assert str(program.range_constraints) == "{s77: VR[3, int_oo]}"
    with pytest.raises(AssertionError, match="Guard failed"):
        program.module()(torch.ones(2, 4))
    program = export(Compares(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("a", min=3)},))
    assert program.module()(torch.ones(9, 4))[0, 0] == 2


def test_loops_over_sizes_are_refused():
    class Loops(nn.Module):
        def forward(self, x):
            for _ in range(x.shape[0]):
                x = x + 1
            return x

    assert export(Loops(), (torch.ones(3, 4),)).module()(torch.ones(3, 4))[0, 0] == 4
    with pytest.raises(UserError, match="Constraints violated"):
        export(Loops(), (torch.ones(3, 4),), dynamic_shapes=({0: Dim("n")},))


def test_branches_on_elements_are_refused():
    class Reads(nn.Module):
        def forward(self, x):
            if x.sum() > 2:
                return x + 1
            return x - 1

    error = torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode
    with pytest.raises(error, match=r'(.|\n)*test_export.py", line \d+(.|\n)*if x.sum\(\) > 2'):
        export(Reads(), (torch.ones(3),))


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch does not run the program")
def test_elements_seen_elsewhere_are_refused():
    class Numpy(nn.Module):
        def forward(self, x):
            return x * float(x.detach().numpy().sum())

    with pytest.raises((UserError, RuntimeError), match="elements"):
        export(Numpy(), (torch.ones(3),))


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch has a form for these blocks")
def test_blocks_of_autocast_are_refused():
    class Casts(nn.Module):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return x @ x

    with pytest.raises(UserError, match="blocks of autocast are not exported"):
        export(Casts(), (torch.ones(2, 2),))


def test_sizes_that_elements_decide_on():
    class Picks(nn.Module):
        def forward(self, x):
            m = x[x > 0]
            return m * 2, torch.zeros(m.shape[0]), x.nonzero()

    program = export(Picks(), (torch.randn(3, 4),))
    x = torch.tensor([[1.0, 0, 2, -1]] * 3)
    assert [tuple(t.shape) for t in program.module()(x)] == [(6,), (6,), (9, 2)]
    assert any(str(s).startswith("u") for s in program.range_constraints)


def test_shapes_are_checked():
    x = torch.ones(3, 4)
    cases = [
        ({"x": {0: Dim("a")}}, "top-level keys must be the arg names"),
        (({0: Dim("a")},), "`inputs` has 2 elements, but `dynamic_shapes` has 1 elements"),
        (({0: "a"}, None), "Unexpected dimension mapped to index 0"),
        (((Dim("a"),), None), "to have the same length as the actual tensor shape"),
    ]
    for dynamic, message in cases:
        with pytest.raises(UserError, match=message):
            export(Sum(), (x, x + 1), dynamic_shapes=dynamic)
    violation = torch.fx.experimental.symbolic_shapes.ConstraintViolationError
    with pytest.raises((UserError, violation), match=r"3 not in range \[4, int_oo\]"):
        export(Sum(), (x, x + 1), dynamic_shapes=({0: Dim("a", min=4)}, {0: Dim("a", min=4)}))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
        export(Sum(), x)
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`"):
        export(lambda x: x, (x,))
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        export(Sum(), (x,))


def test_dims_as_text():
    a = Dim("a")
    assert repr((a, Dim("b", min=2, max=5), Dim.AUTO, Dim.AUTO(min=2), 2 * a + 1)) == (
        "(Dim('a', min=0), Dim('b', max=5), DimHint(AUTO), DimHint(AUTO, min=2), 2*a + 1)"
    )
    assert [d.__name__ for d in torch.export.dims("p", "q", min=3)] == ["p", "q"]
    with pytest.raises(NotImplementedError, match="Attempted to add 1.5"):
        a + 1.5


def test_collections_of_shapes():
    x, y = torch.ones(3, 4), torch.ones(3, 4) * 2
    collection = torch.export.ShapesCollection()
    collection[x] = collection[y] = {0: Dim("n")}
    assert len(collection) == 2
    assert export(Sum(), (x, y), dynamic_shapes=collection).module()(torch.ones(5, 4), torch.ones(5, 4)).shape == (5, 4)
    more = torch.export.AdditionalInputs()
    more.add((torch.ones(6, 4), torch.ones(6, 4)))
    program = export(Sum(), (x, y), dynamic_shapes=more)
    more.verify(program)
    assert len(program.range_constraints) == 1


# --- other forms


def test_without_writes():
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", torch.zeros(3))
            self.bn = nn.BatchNorm1d(3)

        def forward(self, x):
            self.n.add_(1)
            y = self.bn(x)
            y.t()[0].mul_(2)
            x.add_(1)
            return y + self.n

    torch.manual_seed(0)
    module, x = Writes(), torch.randn(4, 3)
    program = export(module, (x.clone(),)).run_decompositions({})
    called = [name for name, *_ in ops(program)]
    assert not [n for n in called if n.split(".")[0].endswith("_")]
    assert "_native_batch_norm_legit_functional.default" in called
    assert sorted(program.graph_signature.buffers_to_mutate.values()) == [
        "bn.num_batches_tracked",
        "bn.running_mean",
        "bn.running_var",
        "n",
    ]
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["x"] and program.dialect == "ATEN"
    made, other, one, two = program.module(), copy.deepcopy(module), x.clone(), x.clone()
    torch.testing.assert_close(made(one), other(two))
    torch.testing.assert_close(one, two)
    for name, buffer in other.named_buffers():
        torch.testing.assert_close(dict(made.named_buffers())[name], buffer)


def test_core_ops_and_tables():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 3)).eval()
    x = torch.randn(2, 1, 4, 4)
    program = export(module, (x,), dynamic_shapes=({0: Dim("b")},))
    core = program.run_decompositions()
    assert [n for n, *_ in ops(core)] == [
        "sym_size.int", "convolution.default", "_native_batch_norm_legit_no_training.default", "relu.default", "view.default",
        "permute.default", "addmm.default",
    ]  # fmt: skip
    torch.testing.assert_close(core.module()(x), module(x))
    assert core.module()(torch.ones(5, 1, 4, 4)).shape == (5, 3)
    table = {torch.ops.aten.relu.default: lambda x: torch.ops.aten.clamp.default(x, 0)}
    assert "clamp.default" in [n for n, *_ in ops(program.run_decompositions(table))]
    torch.testing.assert_close(program.run_decompositions(table).module()(x), module(x))
    defaults = torch.export.default_decompositions()
    assert torch.ops.aten.linear.default in defaults
    defaults.pop(torch.ops.aten.linear.default)
    assert "linear.default" in [n for n, *_ in ops(program.run_decompositions(defaults))]


def test_modules_again():
    torch.manual_seed(0)
    shared = nn.Linear(4, 4)
    module = nn.Sequential(nn.Sequential(shared, nn.ReLU()), shared, nn.Linear(4, 2))
    x = torch.randn(3, 4)
    made = torch.export.unflatten(export(module, (x,)))
    torch.testing.assert_close(made(x), module(x))
    assert [n.target for n in made.graph.nodes if n.op == "call_module"][0] == "0"
    assert isinstance(made, torch.export.UnflattenedModule) and made.get_parameter("2.weight").shape == (2, 4)
    with pytest.raises((TypeError, ValueError)):
        made(x, x)


def test_compiled_module():
    module = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    x = torch.randn(3, 4)
    made = torch.compile(export(module, (x,)).module())
    for _ in range(4):
        torch.testing.assert_close(made(x), module(x))


def test_programs_know_that_they_are_exported():
    seen = []

    class Asks(nn.Module):
        def forward(self, x):
            seen.append((torch.compiler.is_exporting(), torch.onnx.is_in_onnx_export()))
            return x + 1

    export(Asks(), (torch.ones(2),))
    assert set(seen) == {(True, False)} and not torch.compiler.is_exporting()


def test_verifier():
    program = export(nn.Linear(2, 2), (torch.ones(1, 2),))
    program.validate()
    assert program.verifier.__name__ == "TrainingIRVerifier" and program.dialect == "TRAINING"


@pytest.mark.skipif(target.STAND_IN, reason="rustgrad's modules")
def test_not_loaded_without_use():
    script = (
        "import sys, rustgrad\nnames = ('_aten_schemas', '_aten_forms', '_recording', 'export.exported_program')\n"
        "assert not [m for m in sys.modules if m.startswith(tuple('rustgrad.' + n for n in names))]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
