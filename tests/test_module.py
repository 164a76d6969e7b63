"""`nn.Module`: registration, attribute rules, modes, state, hooks."""

import collections
import copy
import pickle
import warnings
from collections import OrderedDict

import pytest


def close(got, want, tol=1e-6):
    assert [[pytest.approx(w, rel=tol) for w in row] for row in want] == got


def net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 2)
            self.rest = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
            self.scale = nn.Parameter(torch.ones(2))
            self.register_buffer("mean", torch.zeros(2))
            self.register_buffer("hidden", torch.zeros(1), persistent=False)

        def forward(self, x):
            return self.rest(self.first(x)) * self.scale - self.mean

    return Net()


def test_registration(torch):
    m = net(torch)
    names = ["scale", "first.weight", "first.bias", "rest.0.weight", "rest.0.bias"]
    assert [n for n, _ in m.named_parameters()] == names and len(list(m.parameters())) == 5
    assert [n for n, _ in m.named_parameters(recurse=False)] == ["scale"]
    assert [n for n, _ in m.named_buffers()] == ["mean", "hidden"]
    assert [n for n, _ in m.named_modules()] == ["", "first", "rest", "rest.0", "rest.1"]
    assert [n for n, _ in m.named_children()] == ["first", "rest"]
    assert m.get_submodule("rest.0") is m.rest[0] and m.get_submodule("") is m
    assert m.get_parameter("rest.0.bias") is m.rest[0].bias and m.get_buffer("mean") is m.mean
    m.tied = m.first
    assert len(list(m.modules())) == 5 and len(list(m.named_modules(remove_duplicate=False))) == 6
    assert list(m.state_dict())[:2] == ["scale", "mean"] and "hidden" not in m.state_dict()
    assert "first" in dir(m) and "mean" in dir(m)


def test_assignment(torch):
    nn = torch.nn
    m = net(torch)
    m.scale = None
    assert m.scale is None and "scale" not in dict(m.named_parameters())
    with pytest.raises(TypeError, match=r"cannot assign 'torch.FloatTensor' as parameter 'scale'"):
        m.scale = torch.ones(2)
    with pytest.raises(TypeError, match=r"cannot assign 'int' as child module 'first' \(torch.nn.Module or None"):
        m.first = 3
    with pytest.raises(TypeError, match=r"cannot assign 'int' as buffer 'mean'"):
        m.mean = 3
    m.mean = torch.ones(2)
    assert m.get_buffer("mean").tolist() == [1, 1]
    m.first = None
    assert dict(m.named_children()).keys() == {"rest"}
    m.free = 3
    m.free = nn.Linear(1, 1)
    assert "free" in dict(m.named_children()) and "free" not in m.__dict__
    del m.free, m.mean
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'mean'"):
        m.mean  # noqa: B018
    m.fixed = nn.Buffer(torch.zeros(3), persistent=False)
    assert "fixed" in dict(m.named_buffers()) and "fixed" not in m.state_dict()


def test_registration_errors(torch):
    nn = torch.nn
    m = net(torch)
    with pytest.raises(KeyError, match="attribute 'first' already exists"):
        m.register_parameter("first", None)
    with pytest.raises(KeyError, match="parameter name can.*t contain"):
        m.register_parameter("a.b", None)
    with pytest.raises(KeyError, match="buffer name can.*t be empty string"):
        m.register_buffer("", None)
    with pytest.raises(TypeError, match="buffer name should be a string. Got int"):
        m.register_buffer(3, None)
    with pytest.raises(TypeError, match="is not a Module subclass"):
        m.add_module("x", 3)
    with pytest.raises(KeyError, match="module name can.*t contain"):
        m.add_module("a.b", nn.ReLU())
    with pytest.raises(ValueError, match="Cannot assign non-leaf Tensor to parameter 'p'"):
        p = nn.Parameter(torch.ones(1))
        p.data = torch.ones(1)
        q = p * 1
        q.__class__ = nn.Parameter
        m.register_parameter("p", q)
    with pytest.raises(AttributeError, match="Net has no attribute `nothing`"):
        m.get_submodule("nothing")
    with pytest.raises(AttributeError, match="`training` is not an nn.Module"):
        m.get_submodule("training")
    with pytest.raises(NotImplementedError, match='Module \\[Module\\] is missing the required "forward" function'):
        nn.Module()(1)
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'x'"):
        nn.Module(x=1)

    class Early(nn.Module):
        def __init__(self):
            self.fc = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match="cannot assign module before Module.__init__\\(\\) call"):
        Early()


def test_modes_and_casts(torch):
    m = net(torch)
    assert m.training and m.eval() is m and not m.rest[1].training
    with pytest.raises(ValueError, match="training mode is expected to be boolean"):
        m.train(1)
    weight = m.first.weight
    m.double()
    assert m.first.weight is weight and weight.dtype == torch.float64 and m.mean.dtype == torch.float64
    assert m.to(torch.float16).mean.dtype == torch.float16 and m.float().scale.dtype == torch.float32
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes, but got desired dtype"):
        m.to(torch.int64)
    m.requires_grad_(False)
    assert not any(p.requires_grad for p in m.parameters())
    seen = []
    m.apply(lambda module: seen.append(type(module).__name__))
    assert seen == ["Linear", "Linear", "ReLU", "Sequential", "Net"]


def test_gradients_move_with_parameters(torch, device):
    m = net(torch)
    m(torch.ones(4, 3)).sum().backward()
    before = [p.grad.tolist() for p in m.parameters()]
    m.to(device)
    assert all(p.grad.device == p.device and p.device.type == device and p.is_leaf for p in m.parameters())
    assert [p.grad.tolist() for p in m.parameters()] == before
    m.zero_grad(set_to_none=False)
    assert m.scale.grad.tolist() == [0, 0]
    m.zero_grad()
    assert all(p.grad is None for p in m.parameters())


def test_state_dict_round_trip(torch):
    a, b = net(torch), net(torch)
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    x = torch.ones(1, 3)
    assert a(x).tolist() == b(x).tolist()
    state = a.state_dict()
    assert state["scale"].data_ptr() == a.scale.data_ptr() and not state["scale"].requires_grad
    assert state._metadata["rest.0"] == {"version": 1} and a.state_dict(prefix="net.").keys() >= {"net.scale"}
    result = b.load_state_dict({"scale": torch.zeros(2), "more": torch.zeros(1)}, strict=False)
    assert result.unexpected_keys == ["more"] and "first.weight" in result.missing_keys and b.scale.tolist() == [0, 0]
    fresh = torch.ones(2)
    b.load_state_dict({**a.state_dict(), "scale": fresh}, assign=True)
    assert b.scale.data_ptr() == fresh.data_ptr() and isinstance(b.scale, torch.nn.Parameter)


def test_state_dict_errors(torch):
    m = torch.nn.Linear(3, 2)
    with pytest.raises(RuntimeError) as info:
        m.load_state_dict({"weight": torch.zeros(2, 4), "extra": torch.zeros(1)})
    assert str(info.value) == (
        "Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "bias". \n'
        '\tUnexpected key(s) in state_dict: "extra". \n'
        "\tsize mismatch for weight: copying a param with shape torch.Size([2, 4]) from checkpoint, "
        "the shape in current model is torch.Size([2, 3])."
    )
    with pytest.raises(TypeError, match="Expected state_dict to be dict-like, got <class 'list'>"):
        m.load_state_dict([])
    with pytest.raises(RuntimeError, match="expected torch.Tensor or Tensor-like object from checkpoint but received"):
        m.load_state_dict({"weight": [1], "bias": torch.zeros(2)})


def test_state_hooks(torch):
    m = torch.nn.Linear(2, 1)
    calls = []
    m.register_state_dict_pre_hook(lambda module, prefix, keep: calls.append("pre"))
    m.register_state_dict_post_hook(lambda module, state, prefix, meta: calls.append("post"))
    m.register_load_state_dict_pre_hook(lambda module, state, prefix, *rest: state.pop("extra", None))
    m.register_load_state_dict_post_hook(lambda module, keys: calls.append("loaded"))
    state = m.state_dict()
    m.load_state_dict({**state, "extra": torch.zeros(1)})
    assert calls == ["pre", "post", "loaded"]

    class Extra(torch.nn.Module):
        value = 1

        def get_extra_state(self):
            return {"value": self.value}

        def set_extra_state(self, state):
            self.value = state["value"]

    a, b = Extra(), Extra()
    a.value = 7
    b.load_state_dict(a.state_dict())
    assert list(a.state_dict()) == ["_extra_state"] and b.value == 7


def test_pickle_and_deepcopy(torch):
    m = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()).eval()
    for other in (pickle.loads(pickle.dumps(m)), copy.deepcopy(m)):
        assert repr(other) == repr(m) and not other.training
        assert other[0].weight.tolist() == m[0].weight.tolist() and other[0].weight is not m[0].weight
        assert isinstance(other[0].weight, torch.nn.Parameter) and other[0].weight.requires_grad


def test_forward_hooks(torch):
    m = torch.nn.Linear(2, 2)
    calls = []
    handles = [
        m.register_forward_pre_hook(lambda module, args: calls.append("pre") or (args[0] * 2,)),
        m.register_forward_hook(lambda module, args, out: calls.append("post") or out + 1),
        m.register_forward_hook(lambda module, args, kwargs, out: calls.append(sorted(kwargs)), with_kwargs=True),
        m.register_forward_hook(lambda module, args, out: calls.append("first"), prepend=True),
    ]
    x = torch.ones(1, 2)
    expected = torch.nn.functional.linear(x * 2, m.weight, m.bias) + 1
    assert m(x).tolist() == expected.tolist() and calls == ["pre", "first", "post", []]
    for handle in handles:
        handle.remove()
    calls.clear()
    m(x)
    assert calls == []
    with m.register_forward_hook(lambda *args: calls.append("always"), always_call=True):
        with pytest.raises((RuntimeError, ValueError)):
            m(torch.ones(1, 3))
    assert calls == ["always"]
    with pytest.raises(RuntimeError, match="forward pre-hook must return None or a tuple"):
        m.register_forward_pre_hook(lambda module, args, kwargs: 3, with_kwargs=True)
        m(x)


def test_backward_hooks(torch):
    m = torch.nn.Linear(2, 1, bias=False)
    seen = []
    m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    handle = m.register_full_backward_hook(
        lambda module, grad_input, grad_output: seen.append((grad_input[0].tolist(), grad_output[0].tolist()))
    )
    x = torch.ones(1, 2, requires_grad=True)
    m(x).sum().backward()
    expected = [[10 * w for w in m.weight.tolist()[0]]]
    assert len(seen) == 1 and seen[0][1] == [[10.0]]
    close(seen[0][0], expected)
    close(x.grad.tolist(), expected)
    handle.remove()
    m.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 0,))
    x.grad = None
    m(x).sum().backward()
    assert x.grad.tolist() == [[0, 0]]
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        m.register_backward_hook(lambda *args: None)
    m.register_full_backward_hook(lambda module, grad_input, grad_output: (None, None, None))
    with pytest.raises(RuntimeError, match="invalid number of grad_input"):
        m(x).sum().backward()


def test_full_backward_hooks_leave_the_call_as_it_is(torch):
    seen, pair = [], collections.namedtuple("Pair", "first second")

    class Two(torch.nn.Module):
        def forward(self, a, b):
            seen.append((a.requires_grad, b.requires_grad))
            return pair(a * 2, b)

    m, x, constant = Two(), torch.ones(3, requires_grad=True), torch.ones(3)
    m.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    out = m(x, constant)
    assert type(out) is pair and out.second.requires_grad is False and seen == [(True, False)]
    out.first.sum().backward()
    grads, outputs = seen[1]
    assert [g.tolist() for g in grads] == [[2, 2, 2], [0, 0, 0]] and outputs[0].tolist() == [1, 1, 1]
    assert outputs[1] is None
    own = type("Own", (torch.nn.Module,), {"forward": lambda self, x: [x * 2]})()
    own.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors"):
        assert type(own(x)) is list


def test_non_full_backward_hooks_say_what_they_miss(torch):
    x = torch.ones(2, requires_grad=True)
    forwards = {
        "does not return a single Tensor": lambda self, x: [x * 2],
        "by different autograd Nodes": lambda self, x: (x * 2, x * 3),
        "forward contains multiple autograd Nodes": lambda self, x: (x * 2) + 1,
    }
    for words, forward in forwards.items():
        m = type("Own", (torch.nn.Module,), {"forward": forward})()
        m.register_backward_hook(lambda *args: None)
        with pytest.warns(FutureWarning, match=words):
            m(x)
    m = type("Own", (torch.nn.Module,), {"forward": lambda self, x, n: x * n})()
    m.register_backward_hook(lambda module, grad_input, grad_output: (grad_input[0],))
    with pytest.warns(FutureWarning, match="does not take as input a single Tensor"):
        out = m(x * 1, 2)
    with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 1, but expected 2\)"):
        out.sum().backward()
    m = type("Own", (torch.nn.Module,), {"forward": lambda self, x: x.exp()})()
    m.register_backward_hook(lambda *args: None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        m(x * 1)


def test_global_hooks(torch):
    modules = torch.nn.modules.module
    calls = []
    with modules.register_module_forward_hook(lambda module, args, out: calls.append(type(module).__name__)):
        torch.nn.Sequential(torch.nn.ReLU())(torch.ones(1))
    torch.nn.ReLU()(torch.ones(1))
    assert calls == ["ReLU", "Sequential"]


def test_tables_of_global_hooks_can_be_replaced(torch, monkeypatch):
    modules, calls = torch.nn.modules.module, []
    for name in ("forward_pre_hooks", "forward_hooks", "backward_hooks", "parameter_registration_hooks"):
        monkeypatch.setattr(modules, f"_global_{name}", OrderedDict())
    monkeypatch.setattr(modules, "_global_is_full_backward_hook", None)
    modules.register_module_forward_pre_hook(lambda *args: calls.append("forward pre"))
    modules.register_module_forward_hook(lambda *args: calls.append("forward"))
    modules.register_module_full_backward_hook(lambda *args: calls.append("backward"))
    modules.register_module_parameter_registration_hook(lambda *args: calls.append("parameter"))
    m = torch.nn.PReLU()
    m(torch.ones(1, requires_grad=True)).sum().backward()
    assert calls == ["parameter", "forward pre", "forward", "backward"]
    monkeypatch.undo()
    m(torch.ones(1, requires_grad=True)).sum().backward()
    assert len(calls) == 4


def test_attributes_are_not_asked_what_they_are(torch):
    """Settings are often dicts whose keys are attributes, so a name that is not there is a KeyError."""

    class Settings(dict):
        def __getattr__(self, name):
            return self[name]

    net = torch.nn.Linear(1, 1)
    net.args = Settings(lr=0.1)
    assert net.args.lr == 0.1 and list(net.state_dict()) == ["weight", "bias"]


def test_names_with_gaps_in_lists(torch):
    nn = torch.nn
    model = nn.Module()
    model.list, model.steps = nn.ModuleList([nn.ReLU(), nn.Tanh()]), nn.Sequential(nn.ReLU(), nn.Tanh())
    for name in ("list", "steps"):
        model.set_submodule(f"{name}.8", nn.Sigmoid())
    # A list looks for its names, a sequence counts.
    for index in (2, -1):
        assert type(model.steps[index]) is nn.Sigmoid
        with pytest.raises(KeyError, match="2"):
            model.list[index]
    model.list[2] = nn.ELU()
    assert list(model.list._modules) == ["0", "1", "8", "2"] and type(model.list[2]) is nn.ELU
    del model.list[0:2]
    assert [type(m) for m in model.list] == [nn.Sigmoid, nn.ELU] and list(model.list._modules) == ["0", "1"]
