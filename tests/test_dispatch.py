"""Dispatch to Python below autograd: modes and subclasses with `__torch_dispatch__`.

Which ops a mode sees is compared with what PyTorch records (`golden/dispatch.json`), gradients with those without a mode.
"""

import contextlib
import copy
import importlib
import io
import json
import pickle
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest
from support import target
from support.dispatched import PROGRAMS, sequence

torch = target.torch
dispatch = importlib.import_module(f"{target.NAME}.utils._python_dispatch")
pytree = importlib.import_module(f"{target.NAME}.utils._pytree")
F, nn, aten = torch.nn.functional, torch.nn, torch.ops.aten
own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")
GOLDEN = json.loads((Path(__file__).parent / "golden" / "dispatch.json").read_text())


class Log(dispatch.TorchDispatchMode):
    """Logs the names of ops."""

    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.log.append(str(func))
        return func(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    """A tensor in a tensor; ops are done on the inner ones and logged."""

    __slots__ = ["inner"]
    seen = []

    @staticmethod
    def __new__(cls, inner, requires_grad=False):
        made = torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype, layout=inner.layout,
            device=inner.device, requires_grad=requires_grad,
        )  # fmt: skip
        made.inner = inner.detach()
        return made

    def __repr__(self):
        return f"Wrapped({self.inner})"

    def __tensor_flatten__(self):
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(parts, context, size, stride):
        return Wrapped(parts["inner"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func))
        kwargs = kwargs or {}
        given, named = pytree.tree_map(lambda v: v.inner if isinstance(v, Wrapped) else v, (args, kwargs))
        result = func(*given, **named)
        out = pytree.tree_map(lambda v: Wrapped(v) if isinstance(v, torch.Tensor) else v, result)
        return dispatch.return_and_correct_aliasing(func, args, kwargs, out)


class Scaled(torch.Tensor):
    """Integers times a number; ops give ordinary tensors."""

    @staticmethod
    def __new__(cls, integers, scale):
        return torch.Tensor._make_wrapper_subclass(cls, integers.shape, dtype=torch.float32, device=integers.device)

    def __init__(self, integers, scale):
        self.integers, self.scale = integers, scale

    def plain(self):
        return self.integers.float() * self.scale

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (aten.detach.default, aten.clone.default):
            return Scaled(args[0].integers, args[0].scale)
        if func is aten.t.default:
            return Scaled(args[0].integers.t(), args[0].scale)
        given = pytree.tree_map(lambda v: v.plain() if isinstance(v, Scaled) else v, args)
        return func(*given, **(kwargs or {}))


def bare(t):
    return t.inner if isinstance(t, Wrapped) else t


@pytest.fixture(autouse=True)
def no_log():
    Wrapped.seen.clear()


# --- what modes see


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_mode_sees_the_ops_that_pytorch_shows(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert sequence(torch, name) == GOLDEN[name]


def test_an_op_is_an_overload_with_a_schema():
    seen = []

    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((func, types, args, kwargs))
            return func(*args, **(kwargs or {}))

    a, b = torch.ones(2), torch.ones(2)
    with Mode():
        torch.add(a, b, alpha=2)
        torch.add(a, b, alpha=1)
    func, types, args, kwargs = seen[0]
    assert func is aten.add.Tensor and func.overloadpacket == aten.add and func.namespace == "aten"
    assert {aten.add.Tensor: 1}[func] == 1 and func.name() == "aten::add.Tensor" and str(func) == "aten.add.Tensor"
    assert types == () and args[0] is a and args[1] is b and kwargs == {"alpha": 2}
    assert [x.name for x in func._schema.arguments] == ["self", "other", "alpha"] and not func._schema.is_mutable
    assert seen[1][3] == {}


def test_a_mode_changes_results():
    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 10 if func is aten.mul.Tensor else result

    x = torch.tensor([1.0, 2.0])
    with Mode():
        assert (x * 2).tolist() == [20.0, 40.0]
        assert torch.ones(2).tolist() == [1.0, 1.0]
    assert (x * 2).tolist() == [2.0, 4.0]
    y = x.clone().requires_grad_()
    with Mode():
        (y * 3).sum().backward()
    # The gradient is that of the op, whose own products the mode changes.
    assert y.grad.tolist() == [30.0, 30.0]


def test_modes_nest_and_leave_in_order():
    order = []

    class Mode(dispatch.TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append((self.name, dispatch._get_current_dispatch_mode() is not self))
            return func(*args, **(kwargs or {}))

    outer, inner = Mode("outer"), Mode("inner")
    with outer, inner:
        assert dispatch._get_current_dispatch_mode_stack() == [outer, inner] and dispatch.is_in_torch_dispatch_mode()
        torch.ones(1)
        with dispatch._disable_current_modes() as left:
            assert left == [outer, inner] and not dispatch.is_in_torch_dispatch_mode()
            torch.ones(1)
    assert order == [("inner", True), ("outer", True)]
    assert dispatch._get_current_dispatch_mode() is None


def test_an_error_in_a_mode_leaves_it_entered_once():
    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            raise KeyError("here")

    with Log() as log:
        with pytest.raises(KeyError, match="here"), Mode():
            torch.ones(1)
        torch.zeros(1)
        assert dispatch._get_current_dispatch_mode_stack() == [log]
    assert log.log == ["aten.zeros.default"] and not dispatch.is_in_torch_dispatch_mode()
    assert torch.overrides._get_current_function_mode_stack() == []


def test_nobody_who_takes_an_op_is_an_error():
    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.*ones"), Mode():
        torch.ones(1)

    class Classmethod(dispatch.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported"), Classmethod():
        torch.ones(1)


def test_a_mode_is_a_threads_own():
    with Log() as log:
        thread = threading.Thread(target=lambda: torch.ones(1) + torch.ones(1))
        thread.start()
        thread.join()
        assert log.log == []


def test_a_mode_of_functions_is_asked_before():
    order = []

    class Functions(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            order.append("function")
            return func(*args, **(kwargs or {}))

    class Ops(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(str(func))
            return func(*args, **(kwargs or {}))

    x, w = torch.ones(2, 3), torch.ones(4, 3)
    for modes in ((Functions(), Ops()), (Ops(), Functions())):
        order.clear()
        with modes[0], modes[1]:
            F.linear(x, w)
        assert order == ["function", "aten.t.default", "aten.mm.default"]


def test_no_dispatch_leaves_modes_out():
    with Log() as log:
        with torch._C._DisableTorchDispatch():
            torch.ones(1) + 1
        with importlib.import_module(f"{target.NAME}.utils._mode_utils").no_dispatch():
            torch.ones(1) + 1
    assert log.log == []


def test_ops_of_programs_are_seen():
    name = "dispatch_tests::double"

    @torch.library.custom_op(name, mutates_args=())
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with Log() as log:
        double(torch.ones(2))
    assert "dispatch_tests.double.default" in log.log


@own
def test_nothing_is_loaded_before_it_is_needed():
    code = (
        "import sys, rustgrad as torch; x = torch.ones(2, requires_grad=True); (x * x).sum().backward(); "
        "torch.ops.aten.add.Tensor(x, x); class_ = type('Plain', (torch.Tensor,), {}); "
        "print(any('rustgrad._dispatch' in name for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


# --- gradients


def overwritten(x, y):
    z = x * 2
    z[0].mul_(3)
    z[:, 1] = 1.0
    z.view(-1)[3:].add_(y.view(-1)[3:])
    return z


def viewed_before(x, y):
    z = x * 1
    v = z.t()
    z.mul_(y)
    return v * v


GRADIENTS = {
    "sums": lambda x, y: torch.add(x, y * 2 - 1, alpha=3) - torch.sub(y, x, alpha=2) + (1 - x),
    "products": lambda x, y: x * y[0] / (y.abs() + 1) / 2 + 2 / (y.abs() + 1) * x[:, :1],
    "powers": lambda x, y: x**3 + (x.abs() + 1) ** 0.5 + (x.abs() + 1) ** y,
    "functions": lambda x, y: (
        x.exp() + (y.abs() + 1).log() + x.sin() * y.cos() + x.tanh() + y.sigmoid() + x.atan() + x.abs().sqrt()
    ),
    "activations": lambda x, y: (
        F.relu(x) + F.gelu(y) + F.silu(x) + F.elu(y) + F.leaky_relu(x) + F.hardtanh(y) + F.softplus(x)
    ),
    "matrices": lambda x, y: torch.addmm(x[:, :3], x, y.t(), beta=2, alpha=3) @ x,
    "batches": lambda x, y: torch.matmul(x.view(1, 3, 4), y.t()) + torch.matmul(x, y[0])[..., None],
    "einsum": lambda x, y: torch.einsum("ij,kj,kl->il", x, y, y),
    "reductions": lambda x, y: (
        x.sum(0) + y.mean(1, keepdim=True) * x.var(0) + y.std() + x.max(0)[0] + y.logsumexp(0) + x.norm()
    ),
    "views": lambda x, y: (
        x.view(4, 3).transpose(0, 1) * y.reshape(-1).view(3, 4) + x.t().reshape(3, 4) + x.unsqueeze(0).squeeze(0)
    ),
    "pieces": lambda x, y: torch.cat([x.chunk(2, 1)[1], y.split([1, 3], 1)[1]], 1)[:, :4] * torch.stack([x, y])[0],
    "indices": lambda x, y: (
        x[torch.tensor([0, 2, 2])] * y[:, torch.tensor([1, 1, 0, 3])] + x[1:].sum() + x[x > 0].sum()
    ),
    "moves": lambda x, y: (
        F.pad(x, (1, 2))[:, 1:5] + x.repeat(2, 1)[:3] + y.flip(0) + y.roll(1, 0) + x.tril() + y.cumsum(1)
    ),
    "choices": lambda x, y: (
        torch.where(x > 0, x, y * 2) + x.masked_fill(y > 0, 1.0) + x.clamp(-1, 0.5) + torch.maximum(x, y)
    ),
    "dtypes": lambda x, y: x.double().float() * y.to(torch.float64).to(torch.float32),
    "softmax": lambda x, y: F.softmax(x, -1) * F.log_softmax(y, 0),
    "losses": lambda x, y: (
        F.cross_entropy(x, torch.tensor([0, 3, 1])) + F.mse_loss(x, y) + F.l1_loss(x, y) + F.smooth_l1_loss(x, y)
    ),
    "norms": lambda x, y: F.layer_norm(x, (4,), y[0], y[1]) * F.layer_norm(y, (4,)),
    "groups": lambda x, y: (
        F.group_norm(x.view(1, 4, 3), 2, y[0], y[1]) + F.batch_norm(y, None, None, x[0], x[1], True).view(1, 4, 3)
    ),
    "convolutions": lambda x, y: F.conv1d(x.view(1, 3, 4), y[:, :2].reshape(1, 3, 2), y[0, :1]),
    "pools": lambda x, y: (
        F.max_pool2d(x.view(1, 1, 3, 4), 2).sum() + F.avg_pool2d(y.view(1, 1, 3, 4), 2) + F.max_pool1d(y, 2).sum()
    ),
    "embedding": lambda x, y: F.embedding(torch.tensor([0, 2, 2]), x) * y,
    "attention": lambda x, y: F.scaled_dot_product_attention(
        *(t.view(1, 1, 3, 4) for t in (x, y, x + y)), is_causal=True
    ),
    "dropout": lambda x, y: F.dropout(x, 0.5) * y,
    "in place": lambda x, y: (x * 1).mul_(y).add_(y).relu_() * 2 + (y * 1).div_(x.abs() + 1).exp_(),
    "without gradients": lambda x, y: x.detach() * y + torch.zeros_like(x),
}
ONLY_MODES = {
    "overwritten views": overwritten,
    "views of what is written": viewed_before,
    "without a formula": lambda x, y: x.prod(1) + torch.linalg.inv(x @ y.t() + 5 * torch.eye(3)) + torch.cdist(x, y),
}


def gradients(function, x, y, mode=None, twice=False):
    torch.manual_seed(3)

    def run():
        result = function(x, y)
        loss = (result * result).sum()
        return [result, *torch.autograd.grad(loss, (x, y), create_graph=twice, allow_unused=True)]

    if mode is None:
        found = run()
    else:
        with mode:
            found = run()
    if twice:
        total = sum((g * g).sum() for g in found[1:] if g is not None)
        found += torch.autograd.grad(total, (x, y), allow_unused=True)
    return found


def leaves():
    generator = torch.Generator().manual_seed(5)
    return [torch.randn(3, 4, generator=generator) for _ in range(2)]


def assert_same(found, expected):
    for a, b in zip(found, expected, strict=True):
        a = bare(a)
        if a is None or b is None:
            assert all(t is None or not t.detach().any() for t in (a, b))
            continue
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", [*GRADIENTS, *ONLY_MODES])
@pytest.mark.parametrize("twice", [False, True], ids=["first", "second"])
def test_gradients_under_a_mode(name, twice):
    function = {**GRADIENTS, **ONLY_MODES}[name]
    expected = gradients(function, *(t.requires_grad_() for t in leaves()), twice=twice)
    found = gradients(function, *(t.requires_grad_() for t in leaves()), mode=Log(), twice=twice)
    assert_same(found, expected)


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_wrappers(name):
    expected = gradients(GRADIENTS[name], *(t.requires_grad_() for t in leaves()))
    found = gradients(GRADIENTS[name], *(Wrapped(t, requires_grad=True) for t in leaves()))
    assert all(isinstance(t, Wrapped) for t in found if t is not None)
    assert_same(found, expected)


def test_a_training_step_under_a_mode_has_the_same_numbers():
    def train(mode):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(16, 3)
        )
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        x, y = torch.randn(6, 1, 4, 4), torch.tensor([0, 1, 2, 0, 1, 2])
        for _ in range(3):
            with mode:
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
        return [loss, *model.state_dict().values()]

    for a, b in zip(train(Log()), train(contextlib.nullcontext()), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("mode", [Log, None], ids=["mode", "none"])
def test_autocast_casts_whole_ops(mode):
    def run(context):
        torch.manual_seed(0)
        model, x = nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 3)), torch.randn(4, 8)
        with context, torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), torch.tensor([0, 1, 2, 0]))
        loss.backward()
        return [loss.detach(), *(p.grad for p in model.parameters())]

    nothing = contextlib.nullcontext()
    for a, b in zip(run(mode() if mode else nothing), run(nothing), strict=True):
        assert a.dtype is torch.float32 and torch.equal(a, b)


# --- wrappers


def test_a_wrapper_looks_like_what_it_says():
    inner = torch.arange(6.0, dtype=torch.float64).view(3, 2).t()
    x = Wrapped(inner)
    assert (x.shape, x.stride(), x.dtype, x.device, x.layout) == (
        inner.shape,
        inner.stride(),
        inner.dtype,
        inner.device,
        inner.layout,
    )
    assert x.is_cpu and not x.is_meta and x.dim() == 2 and x.numel() == 6 and len(x) == 2 and not x.is_contiguous()
    assert repr(x) == f"Wrapped({inner})" and str(x) == repr(x)
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        x.numpy()
    with pytest.raises(RuntimeError):
        x.untyped_storage().data_ptr()

    class Plain(torch.Tensor):
        pass

    with pytest.raises(TypeError, match="Plain must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(Plain, (2,))
    with pytest.raises(RuntimeError, match="already associated to a python object of type Wrapped"):
        x.as_subclass(Plain)


def test_functions_of_wrappers_are_taken_apart():
    F.linear(Wrapped(torch.ones(2, 3, 4)), torch.ones(5, 4), torch.ones(5))
    assert Wrapped.seen == ["aten.view.default", "aten.addmm.default", "aten._unsafe_view.default"]
    Wrapped.seen.clear()
    torch.cat([torch.ones(2), Wrapped(torch.ones(2))])
    assert Wrapped.seen == ["aten.cat.default"]
    assert float(Wrapped(torch.ones(3)).sum()) == 3.0


def test_writes_keep_the_object():
    x = Wrapped(torch.ones(3))
    before = x._version
    assert x.add_(1) is x and x.inner.tolist() == [2.0, 2.0, 2.0] and x._version > before
    x[0] = 5
    assert x.inner.tolist() == [5.0, 2.0, 2.0]
    view = x[1:]
    assert view.untyped_storage()._cdata == x.untyped_storage()._cdata
    with torch.no_grad():
        view.zero_()
    assert x.inner.tolist() == [5.0, 0.0, 0.0]
    x.unsqueeze_(0)
    assert x.shape == (1, 3)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        Wrapped(torch.ones(2), requires_grad=True).mul_(2)


@own
def test_gradients_that_are_not_followed_are_errors():
    x = Wrapped(torch.ones(2, 2), requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="view of a Wrapped is written in place"):
        x[0].mul_(2)
    row = x[0]
    x.mul_(3)
    with pytest.raises(RuntimeError, match="written in place since"):
        row * 2
    plain = torch.ones(2, 2, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="its gradient is a Wrapped, and goes to TBackward0.*Hint: wrap the leaf"
    ):
        (plain.t() * Wrapped(torch.ones(2, 2))).sum().backward()
    (plain * Wrapped(torch.ones(2, 2))).sum().backward()
    assert isinstance(plain.grad, Wrapped)
    y = Wrapped(torch.ones(2, 2), requires_grad=True).prod()
    with pytest.raises(NotImplementedError, match="aten.prod.default: the gradient"):
        y.backward()


def test_a_parameter_may_be_a_wrapper():
    layer = nn.Linear(4, 2)
    layer.weight = nn.Parameter(Wrapped(layer.weight.detach()))
    assert isinstance(layer.weight, nn.Parameter) and isinstance(layer.weight, Wrapped) and layer.weight.requires_grad
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]
    plain = nn.Linear(4, 2)
    plain.load_state_dict({"weight": layer.weight.inner.clone(), "bias": layer.bias.detach().clone()})
    x = torch.randn(5, 4)
    for model in (layer, plain):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for _ in range(2):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    assert isinstance(layer.weight.grad, Wrapped)
    np.testing.assert_allclose(layer.weight.inner.numpy(), plain.weight.detach().numpy(), rtol=1e-5)
    np.testing.assert_allclose(bare(layer.bias.detach()).numpy(), plain.bias.detach().numpy(), rtol=1e-5)

    class Unwrapping(Scaled):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*pytree.tree_map(lambda v: v.plain() if isinstance(v, Scaled) else v, args))

    with pytest.raises(RuntimeError, match=r"requires that detach\(\) returns an instance of the same type"):
        nn.Parameter(Unwrapping(torch.ones(2), 1.0))


def test_the_gradient_of_a_wrapper_may_be_an_ordinary_tensor():
    integers = torch.tensor([[1, -2, 3], [0, 5, -6]], dtype=torch.int8)
    weight = nn.Parameter(Scaled(integers, 0.5))
    plain = (integers.float() * 0.5).requires_grad_()
    x = torch.randn(4, 3)
    for _ in range(2):
        F.linear(x, weight).square().sum().backward()
        F.linear(x, plain).square().sum().backward()
    assert type(weight.grad) is torch.Tensor
    np.testing.assert_allclose(weight.grad.numpy(), plain.grad.numpy(), rtol=1e-5)
    (g,) = torch.autograd.grad(F.linear(x, weight).sum(), weight)
    assert type(g) is torch.Tensor


def test_wrappers_are_copied_and_saved():
    x = Wrapped(torch.arange(4.0))
    for other in (copy.deepcopy(x), copy.copy(x), pickle.loads(pickle.dumps(x))):
        assert type(other) is Wrapped and other is not x and other.inner.tolist() == [0.0, 1.0, 2.0, 3.0]
        assert other.device == x.device
    layer = nn.Linear(3, 2)
    layer.weight = nn.Parameter(Wrapped(layer.weight.detach()))
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals([Wrapped]):
        state = torch.load(buffer)
    assert type(state["weight"]) is Wrapped and torch.equal(state["weight"].inner, layer.weight.inner)
    assert type(copy.deepcopy(layer).weight) is Wrapped


def test_functions_and_ops_of_one_class():
    calls = []

    class Both(Wrapped):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    x = Both(torch.ones(2, 3))
    F.linear(x, torch.ones(4, 3))
    assert calls == ["linear"] and Wrapped.seen == ["aten.mm.default"]


def test_a_class_over_memory():
    class Counted(torch.Tensor):
        count = 0

        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_subclass(cls, data)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            Counted.count += 1
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = Counted(torch.arange(3.0))
    y = x * 2 + 1
    assert type(y) is torch.Tensor and y.tolist() == [1.0, 3.0, 5.0] and Counted.count == 1


def test_a_class_answers_for_its_form():
    class Asked(torch.Tensor):
        @staticmethod
        def __new__(cls):
            return torch.Tensor._make_wrapper_subclass(
                cls, (2, 2), dispatch_sizes_strides_policy="sizes", dispatch_device=True
            )

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            answers = {"sym_size": (5, 3), "dim": 2, "device": torch.device("meta"), "sym_stride": None}
            return answers.get(func.overloadpacket.__name__, NotImplemented)

    x = Asked()
    assert x.shape == (5, 3) and x.size(1) == 3 and x.dim() == 2 and x.device.type == "meta" and x.stride() == (2, 1)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.numel"):
        x.numel()


def test_traceable_wrappers():
    x = Wrapped(torch.ones(2, 3))
    assert dispatch.is_traceable_wrapper_subclass(x) and dispatch.is_traceable_wrapper_subclass_type(Wrapped)
    assert not dispatch.is_traceable_wrapper_subclass(torch.ones(1))
    made = dispatch.transform_subclass(x, lambda name, t: t * 2)
    assert type(made) is Wrapped and made.inner.tolist() == [[2.0] * 3] * 2
    with pytest.raises(RuntimeError, match="to have shape equal to"):
        dispatch.transform_subclass(x, lambda name, t: t[:1])


def test_a_nested_tensor_says_of_which_tensors_it_consists():
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 3)], layout=torch.jagged, requires_grad=True)
    names, context = x.__tensor_flatten__()
    assert names == ["_values", "_offsets", "_min_seqlen_tensor", "_max_seqlen_tensor"]
    assert context == {"requires_grad": True, "ragged_idx": 1} and dispatch.is_traceable_wrapper_subclass(x)
    made = type(x).__tensor_unflatten__({name: getattr(x, name) for name in names}, context, x.size(), x.stride())
    assert made.requires_grad and [t.tolist() for t in made.unbind()] == [t.tolist() for t in x.unbind()]


def test_what_is_returned_is_checked():
    class Wrong(Wrapped):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "text"

    with pytest.raises(RuntimeError, match="Unable to cast"):
        Wrong(torch.ones(1)).neg()


def test_modes_come_before_classes():
    order = []

    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append([t.__name__ for t in types])
            return func(*args, **(kwargs or {}))

    x = Wrapped(torch.ones(2))
    with Mode():
        x + 1
    # The mode is left while it answers, so that what the class calls goes to the next one.
    assert order == [["Wrapped"]] and Wrapped.seen == ["aten.add.Tensor"]


def test_ops_by_name_are_traced_after_dispatch_is_loaded(torch):
    """Objects that are no tensors override functions too."""
    with Log():
        pass
    traced = torch.fx.symbolic_trace(lambda x: torch.ops.aten.relu(x) + torch.ops.aten.neg.default(x))
    assert [n.target for n in traced.graph.nodes][1:3] == [torch.ops.aten.relu, torch.ops.aten.neg.default]
    assert traced(torch.tensor(-1.0)).item() == 1
