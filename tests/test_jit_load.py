"""Archives of TorchScript that PyTorch wrote: the same results, gradients and states, also after they are written again."""

import copy
import io
import math

import pytest
from support import archives, target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="archives are read by PyTorch's own loader")
torch = target.torch
nn = torch.nn


def check(module, args, out, grads, state):
    archives.same(dict(module.state_dict()), state)
    torch.manual_seed(3)
    found = module(*args)
    archives.same(found, out)
    if grads is not None:
        found.float().pow(2).sum().backward()
        archives.same({n: p.grad for n, p in module.named_parameters() if p.grad is not None}, grads)


@pytest.mark.parametrize("name", archives.names())
def test_what_pytorch_recorded(name):
    file, expected = archives.recorded(name)
    check(torch.jit.load(file), *copy.deepcopy(expected))


@pytest.mark.parametrize("name", archives.names())
def test_written_again(name):
    file, expected = archives.recorded(name)
    again = io.BytesIO()
    torch.jit.save(torch.jit.load(file), again)
    again.seek(0)
    check(torch.jit.load(again), *copy.deepcopy(expected))


def load(name):
    return torch.jit.load(archives.recorded(name)[0])


def test_a_loaded_module_is_a_module():
    net = load("mlp")
    assert isinstance(net, nn.Module) and isinstance(net, torch.jit.ScriptModule)
    assert (net.original_name, net.l[0].original_name, len(net.l)) == ("MLP", "Linear", 4)
    assert [n for n, _ in net.named_modules()] == ["", "l", "l.0", "l.1", "l.2", "l.3"]
    assert [n for n, _ in net.named_parameters()] == ["l.0.weight", "l.0.bias", "l.3.weight", "l.3.bias"]
    assert repr(net).startswith("RecursiveScriptModule(\n  original_name=MLP\n  (l): RecursiveScriptModule(")
    x = torch.randn(5, 4)
    net.eval()
    assert not net.l[2].training and torch.equal(net(x), net(x))
    net.train()
    assert net.l[2].training and not torch.equal(net(x), net(x))
    twin = copy.deepcopy(net.eval())
    assert torch.equal(twin(x), net(x)) and twin.l[0].weight is not net.l[0].weight
    with torch.no_grad():
        twin.l[3].bias += 1
    assert torch.allclose(twin(x), net(x) + 1)
    assert net.double()(x.double()).dtype == torch.float64
    with pytest.raises(RuntimeError, match="__getstate__"):
        torch.save(net, io.BytesIO())


def test_fine_tuning():
    net = load("lstm")
    assert net.r._flat_weights[0] is net.r.weight_ih_l0
    x, goal = torch.randn(3, 7, 4), torch.randn(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(30):
        optimizer.zero_grad()
        loss = (net(x) - goal).pow(2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


def test_methods_attributes_and_code():
    net = load("export")
    x = torch.randn(2, 4)
    y, k = net.two(x, k=3)
    assert k == 3 and torch.allclose(y, net.helper(x) * 3)
    assert net.code.startswith("def forward(") and "sigmoid" in net.helper.code
    assert "aten::sigmoid" in torch.jit.export_opnames(net)
    nodes = [n.kind() for n in net.helper.graph.nodes()]
    assert "aten::sigmoid" in nodes and "prim::GetAttr" in nodes
    assert net.helper.graph.findAllNodes("aten::sigmoid")[0].inputs()
    counts = load("inpl")
    assert (counts.n, counts.lst, counts.d, counts.name) == (0, [1, 2], {"k": 1.5}, "hello")
    counts(torch.randn(5, 4))
    assert counts.n == 1 and counts.lst == [1, 2, 1]
    counts.n = 7
    with pytest.raises(RuntimeError, match="attribute 'n'"):
        counts.n = "seven"
    prop = load("prop")
    assert prop.v == 6.0
    prop.v = 1.0
    assert prop._v == 1.0


def test_states_between_calls():
    net = load("silero")
    x = torch.randn(2, 8)
    first = net(x, 16000)
    second = net(x, 16000)
    assert not torch.allclose(first, second)
    net.reset_states()
    assert torch.equal(net(x, 16000), first)
    with pytest.raises(torch.jit.Error, match="ValueError: Supported sampling rates"):
        net(x, 44100)


def test_arguments_are_those_of_the_declaration():
    net = load("exc")
    x = torch.ones(2)
    assert torch.equal(net(x, k=2), net(x=x, k=2))
    for args, kwargs, text in [
        ((3, 4), {}, "Expected a value of type 'Tensor'.*argument 'x'"),
        ((x,), {}, "missing value for argument 'k'"),
        ((x, 1.5), {}, "Expected a value of type 'int'.*argument 'k'"),
        ((x, 1, 2), {}, "expected at most"),
        ((x, 1), {"q": 1}, "Unknown keyword argument 'q'"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            net(*args, **kwargs)


def test_errors_say_where():
    net = load("exc")
    with pytest.raises(
        torch.jit.Error, match=r"(?s)code/__torch__/torchscript_modules.py\", line \d+.*builtins.ValueError: three 3"
    ):
        net(torch.ones(2), 3)
    with pytest.raises(torch.jit.Error, match="AssertionError: k too big"):
        net(torch.ones(2), 30)
    absent = torch.jit.load(archives.of_body("y = torch.relu(x)\nreturn torch.no_such_op(y)"))
    with pytest.raises(NotImplementedError, match=r"(?s)line 7.*aten::no_such_op"):
        absent(torch.ones(2))
    wrong = torch.jit.load(archives.of_body("return torch.sum(x, [5])"))
    with pytest.raises(RuntimeError, match="(?s)code/__torch__.py.*Dimension out of range"):
        wrong(torch.ones(2))


def test_files():
    file, (args, out, _, _) = archives.recorded("mlp")
    wanted = {"meta.json": "", "none": ""}
    torch.jit.load(file, _extra_files=wanted)
    assert wanted == {"meta.json": b"{}", "none": ""}
    file.seek(0)
    meta = torch.jit.load(file, map_location="meta")
    assert meta.l[0].weight.is_meta
    file.seek(0)
    with pytest.raises(RuntimeError, match="weights_only=True"):
        torch.load(file)
    file.seek(0)
    with pytest.warns(UserWarning, match="looks like a TorchScript archive"):
        assert torch.load(file, weights_only=False).original_name == "MLP"
    with pytest.raises(ValueError, match="does not exist"):
        torch.jit.load("/no/such/file.pt")
    plain = io.BytesIO()
    torch.save({"a": torch.ones(2)}, plain)
    plain.seek(0)
    with pytest.raises(RuntimeError, match="no TorchScript archive"):
        torch.jit.load(plain)
    whole = file.getvalue()
    for cut in (10, len(whole) // 2, len(whole) - 10):
        with pytest.raises(RuntimeError):
            torch.jit.load(io.BytesIO(whole[:cut]))


def run(body, *args, head="self: __torch__.M, x: Tensor"):
    return torch.jit.load(archives.of_body(body, head))(*args)


def test_the_language():
    x = torch.arange(6.0).view(2, 3)
    body = "y = x + 1\ny[:, 1:] *= 2\nz = [v * 2 for v in [1, 2]]\nassert len(z) == 2, 'two'\nreturn y[0, ..., None], z, x.shape, x.float().view(3, -1)"
    y, z, shape, w = run(body, x)
    assert y.tolist() == [[1.0], [4.0], [6.0]] and (z, shape, w.shape) == ([2, 4], [2, 3], (3, 2))
    head = "self: __torch__.M, a: int, b: float, s: str"
    values = run(
        "return torch.div(a, 2), torch.pow(a, 2), torch.floordiv(-7, 2), b, torch.format('{}|{}', b, [s])",
        3,
        2,
        "q",
        head=head,
    )
    assert values == (1.5, 9.0, -4, 2.0, "2.|[q]") and type(values[1]) is float
    assert math.isnan(run("return torch.sqrt(b)", 1, -1.0, "", head=head))
    assert run("return torch.div(a, 0)", 1, 0.0, "", head=head) == math.inf
    assert run("return inf, -inf, annotate(int, a)", 1, 0.0, "", head=head) == (math.inf, -math.inf, 1)


def test_integer_division_of_old_archives():
    code = archives.MODULE + "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return torch.div(x, 2)\n"
    x = torch.tensor([-7, 7])
    assert torch.jit.load(archives.made(code, version="3\n"))(x).tolist() == [-3, 3]
    assert torch.jit.load(archives.made(code, version="4\n"))(x).tolist() == [-3.5, 3.5]
    with pytest.raises(RuntimeError, match="version"):
        torch.jit.load(archives.made(code, version="99\n"))


def test_devices_in_code_follow_the_map():
    body = 'return torch.zeros([2], dtype=6, layout=None, device=torch.device("cuda:0"), pin_memory=False)'
    file = archives.of_body(body)
    assert torch.jit.load(file, map_location="cpu")(torch.ones(1)).device.type == "cpu"
    file.seek(0)
    with pytest.raises(RuntimeError, match="cuda"):
        torch.jit.load(file)(torch.ones(1))


def test_freeze():
    net = load("cnn")
    with pytest.raises(RuntimeError, match="eval mode"):
        torch.jit.freeze(net)
    x = torch.randn(2, 3, 8, 8)
    frozen = torch.jit.freeze(net.eval())
    assert torch.equal(frozen(x), net(x)) and not frozen(x).requires_grad and net(x).requires_grad


def test_fork_and_wait():
    future = torch.jit.fork(lambda a, b: a + b, torch.ones(2), b=2)
    assert torch.jit.wait(future).tolist() == [3, 3]
    failed = torch.jit.fork(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        torch.jit.wait(failed)
