"""Subclasses of `Tensor` keep their class through ops, and `__torch_function__` overrides calls."""

import copy
import pickle
import subprocess
import sys

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")


class Plain:
    """A non-tensor class; records what was called on it."""

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        def bare(a):
            return a.value if isinstance(a, Plain) else a

        result = func(*map(bare, args), **{k: bare(v) for k, v in (kwargs or {}).items()})
        return func.__name__, [t.__name__ for t in types], result


@pytest.fixture(scope="module")
def kind(torch):
    return type("Kind", (torch.Tensor,), {"__module__": __name__})


MADE = {
    "number slot": "t + 1",
    "number on the left": "2 / t",
    "plain tensor on the left": "torch.ones(2) * t",
    "power": "2 ** t",
    "unary": "-t",
    "comparison": "t < 3",
    "equality": "t == 3",
    "method": "t.exp()",
    "function": "torch.exp(t)",
    "keyword": "torch.exp(input=t)",
    "index": "t[0]",
    "mask": "t[t > 1]",
    "list of tensors": "torch.cat([torch.ones(2), t])",
    "several results": "t.reshape(2, 1).max(0).values",
    "tuple": "t.split(1)[0]",
    "in place": "t.clone().add_(1)",
    "transpose": "t.reshape(2, 1).T",
    "detach": "t.detach()",
    "data": "t.data",
    "conversion": "t.double()",
    "made like it": "torch.zeros_like(t)",
    "functional": "torch.nn.functional.relu(t)",
    "iteration": "next(iter(t))",
}


@pytest.mark.parametrize("code", MADE.values(), ids=MADE)
def test_results_keep_the_class(torch, kind, code):
    made = eval(code, {"torch": torch, "t": torch.tensor([1.0, 2.0]).as_subclass(kind)})
    assert type(made) is kind
    assert torch.equal(made.as_subclass(torch.Tensor), eval(code, {"torch": torch, "t": torch.tensor([1.0, 2.0])}))


def test_a_subclass_prints_its_name_and_keeps_its_graph(torch, kind):
    t = torch.tensor([1.0, 2.0], requires_grad=True).as_subclass(kind)
    assert repr(t.detach()) == "Kind([1., 2.])" and type(t.shape) is torch.Size and type(t[0].item()) is float
    leaf = torch.ones(2, requires_grad=True)
    (leaf.as_subclass(kind) * 3).sum().backward()
    assert leaf.grad.tolist() == [3, 3] and type(leaf.grad) is torch.Tensor


def test_parameters_give_plain_tensors(torch):
    class Special(torch.nn.Parameter):
        pass

    for p in (torch.nn.Parameter(torch.ones(2)), Special(torch.ones(2))):
        assert type(p * 2) is torch.Tensor and type(p[0]) is torch.Tensor and type(p.detach()) is torch.Tensor


def test_a_parameter_of_a_subclass(torch, kind):
    model = torch.nn.Module()
    model.w = torch.nn.Parameter(torch.ones(1).as_subclass(kind))
    assert type(model.w) is kind and isinstance(model.w, torch.nn.Parameter) and list(model.parameters()) == [model.w]
    assert repr(model.w) == "Parameter(Kind([1.], requires_grad=True))"
    assert not isinstance(torch.ones(1), torch.nn.Parameter) and not issubclass(kind, torch.nn.Parameter)
    special = type("Special", (torch.nn.Parameter,), {})(torch.ones(1))
    assert repr(special) == "Parameter containing:\nParameter(Special([1.], requires_grad=True))"
    assert isinstance(special, torch.nn.Parameter) and not isinstance(torch.nn.Parameter(torch.ones(1)), type(special))


def test_copies_and_pickles(torch):
    t = torch.ones(2).as_subclass(Pickled.of(torch))
    t.note = "kept"
    for made in (copy.copy(t), pickle.loads(pickle.dumps(t))):
        assert type(made) is type(t) and made.note == "kept"


class Pickled:
    """Where pickles find the subclass."""

    @classmethod
    def of(cls, torch):
        made = globals().get("_Pickled") or type("_Pickled", (torch.Tensor,), {"__module__": __name__})
        return globals().setdefault("_Pickled", made)


def test_a_subclass_sees_the_calls(torch):
    seen = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    t = torch.ones(2).as_subclass(Logged)
    made = torch.stack([torch.add(t, 1) * 2, t]).sum()
    t.mul_(2)
    t[0] = 5
    assert seen == ["add", "mul", "stack", "sum", "mul_", "__setitem__"] and type(made) is Logged


def test_the_derived_class_answers_first(torch):
    order = []

    def answer(cls, func, types, args=(), kwargs=None):
        order.append(cls.__name__)
        return NotImplemented

    body = {"__torch_function__": classmethod(answer)}
    base = type("Base", (torch.Tensor,), body)
    derived = type("Derived", (base,), body)
    with pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.add'|Multiple dispatch failed for 'add'"):
        torch.add(torch.ones(2).as_subclass(base), torch.ones(2).as_subclass(derived))
    assert order == ["Derived", "Base"]


def test_a_class_that_is_no_tensor(torch):
    two = Plain(torch.ones(2))
    name, types, result = torch.add(two, two)
    assert (name, types) == ("add", ["Plain"]) and result.tolist() == [2, 2]
    assert torch.add(torch.ones(2), other=two)[2].tolist() == [2, 2]
    assert (torch.ones(2) + two)[0] == "add" and (torch.ones(2) < two)[2].tolist() == [False, False]
    assert torch.cat([torch.zeros(1), torch.ones(1)]).tolist() == [0, 1]
    assert torch.stack([torch.zeros(2), Never()])[0] == "stack"


class Never:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func.__name__, types


def test_functions_of_modules_pass_on_their_defaults(torch):
    # Without a default by position, with one by keyword, however they were given; initialisers give all by keyword.
    class Recorded(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    t, F = torch.ones(2, 3).as_subclass(Recorded), torch.nn.functional
    rest = {"stride": None, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": False}
    for made in (F.max_pool2d(t, 2), F.max_pool2d(input=t, kernel_size=2), F.max_pool2d(t, 2, None, 0)):
        assert made == (F.max_pool2d, (t, 2), rest)
    assert torch.tensordot(t, t) == (torch.tensordot, (t, t), {"dims": 2, "out": None})
    init = torch.nn.init
    assert init.constant_(t, 3.0) == (init.constant_, (), {"tensor": t, "val": 3.0})
    assert init.normal_(t, std=2.0)[2] == {"tensor": t, "mean": 0.0, "std": 2.0, "generator": None}
    with pytest.raises(TypeError, match="kernel_size"):
        F.max_pool2d(t)


def test_who_declines_leaves_the_operator_to_python(torch):
    class Declines:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="unsupported operand"):
        torch.ones(2) + Declines()
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        torch.add(torch.ones(2), Declines())
    with pytest.raises(TypeError, match="invalid combination|must be Tensor"):
        torch.exp(object())


def test_errors_of_a_handler_come_through(torch):
    class Broken(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise ValueError("mine")

    t = torch.ones(2).as_subclass(Broken)
    for call in (lambda: t + 1, lambda: torch.exp(t), lambda: t[0], lambda: t == 1, lambda: -t):
        with pytest.raises(ValueError, match="mine"):
            call()


def test_a_function_of_pytorch_itself_is_refused(torch):
    # What PyTorch's functions do with an object that is not their tensor: they ask its class.
    def gelu(x):
        return type(x).__torch_function__(gelu, (type(x),), (x,))

    gelu.__module__ = "torch._C._nn"
    assert gelu(torch.ones(2)) is NotImplemented


def test_modes_override_all_functions(torch):
    seen = []

    class Log(torch.overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append((self.name, func.__name__, types))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Log("outer"), Log("inner"):
        y = torch.add(torch.ones(2), x) * 2
        x[0]
        x.add_(1)
    assert y.tolist() == [4, 4] and x.tolist() == [2, 2]
    names = [n for _, n, _ in seen]
    assert names == [n for n in ("ones", "add", "mul", "__getitem__", "add_") for _ in range(2)]
    assert [who for who, _, _ in seen] == ["inner", "outer"] * 5
    seen.clear()
    assert torch.add(x, 1).tolist() == [3, 3] and seen == []

    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 7

    class Fixed(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented if func is torch.neg else -1

    with Fixed():
        assert torch.zeros(3) == -1 and torch.mm(x, x) == -1
        assert torch.add(Plain(1), 2) == -1
        assert torch.neg(Answers()) == 7
        with pytest.raises(TypeError, match="neg"):
            torch.neg(x)
        assert torch.overrides.has_torch_function(())

    class Fails(torch.overrides.BaseTorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"), Log("outer"), Fails():
        torch.ones(1)
    with torch.overrides.BaseTorchFunctionMode():
        assert torch.ones(1).item() == 1
    assert not torch.overrides.has_torch_function((x,))


def test_modes_are_entered_again_and_belong_to_their_thread(torch):
    import threading

    log = []

    class Subtract(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            log.append(func)
            if func is torch.sub:
                with self:
                    return torch.add(*args, alpha=-1)
            return func(*args, **(kwargs or {}))

    with Subtract():
        x = torch.sub(torch.full((2,), 3.0), 1)
        thread = threading.Thread(target=lambda: log.append(torch.ones(2).tolist()))
        thread.start()
        thread.join()
    assert x.tolist() == [2, 2] and log == [torch.full, torch.sub, torch.add, [1.0, 1.0]]
    called = []

    @torch.overrides.wrap_torch_function(lambda x: (x,))
    def twice(x):
        called.append(x)
        return x * 2

    with Subtract():
        assert twice(torch.ones(2)).tolist() == [2, 2]
    assert twice in log and len(called) == 1


WRITTEN_IN_PYTHON = {
    "group_norm": "F.group_norm(p, 1)",
    "max_pool2d": "F.max_pool2d(p, 2)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(p, 1)",
    "batch_norm": "F.batch_norm(torch.ones(1, 2), p, p)",
    "multi_head_attention_forward": "F.multi_head_attention_forward(*[p] * 3, 2, 1, p, p, None, None, False, 0.0, p, p)",
    "einsum": "torch.einsum('i->i', [p])",
    "equal": "torch.equal(p, 1)",
    "is_complex": "torch.is_complex(input=p)",
    "celu_": "torch.celu_(p)",
    "stft": "torch.stft(p, 2)",
    "svd_lowrank": "torch.svd_lowrank(p)",
}


@pytest.mark.parametrize("name", WRITTEN_IN_PYTHON)
def test_functions_written_in_python_are_overridden(torch, name):
    class Named:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, types

    names = {"torch": torch, "F": torch.nn.functional, "p": Named()}
    assert eval(WRITTEN_IN_PYTHON[name], names) == (name, (Named,))

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func.__name__

    with Mode():
        assert eval(WRITTEN_IN_PYTHON[name], {**names, "p": torch.ones(1, 2, 2, 2)}) == name


def test_results_of_functions_written_in_python_keep_the_class(torch, kind):
    t = torch.ones(1, 2, 4, 4).as_subclass(kind)
    pooled, places = torch.nn.functional.max_pool2d(t, 2, return_indices=True)
    assert type(pooled) is type(places) is type(torch.nn.functional.group_norm(t, 2)) is kind


def test_functions_in_python_are_overridden_as_themselves(torch):
    """Not by the ops that they call: handlers compare `func` with the function of the namespace, and graphs name it."""
    F, seen = torch.nn.functional, []

    class Seen(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    s, image = x.as_subclass(Seen), x[None].as_subclass(Seen)
    calls = [
        (torch.einsum, ("ij->ji", s), {}),
        (torch.einsum, ("ij,jk", [x, s]), {}),
        (torch.tensordot, (x, s), {"dims": 1}),
        (torch.lu, (s,), {}),
        (torch.stft, (x[0].repeat(4).as_subclass(Seen), 4), {"return_complex": True, "window": torch.ones(4)}),
        (torch.svd_lowrank, (s,), {"q": 1}),
        (torch.allclose, (x, s), {}),
        (F.max_pool2d, (image, 2), {}),
        (F.adaptive_avg_pool2d, (image, 1), {}),
        (F.batch_norm, (x, x[0], s[0]), {}),
        (F.group_norm, (), {"input": s, "num_groups": 1}),
    ]
    for function, args, kwargs in calls:
        seen.clear()
        function(*args, **kwargs)
        assert seen[0] is function, function.__name__
        assert seen.count(function) == 1
    graph = torch.fx.symbolic_trace(lambda a, b: torch.einsum("ij,jk", [a, b]) + torch.einsum("ij,jk", a, b))
    assert [len(n.args) for n in graph.graph.nodes if n.target is torch.einsum] == [3, 3]
    assert torch.equal(graph(x, x), 2 * (x @ x))
    with pytest.raises(ValueError, match="at least one operand"):
        torch.einsum("ij->ji", [])
    assert torch.einsum("ij->ji", Plain(x))[:2] == ("einsum", ["Plain"])
    assert F.max_pool2d(Plain(image.as_subclass(torch.Tensor)), 2)[0] == "max_pool2d"
    seen.clear()
    with torch._C.DisableTorchFunctionSubclass():
        torch.einsum("ij->ji", s)
    assert not seen


@own
def test_warnings_of_functions_in_python_name_the_caller(torch):
    x = torch.ones(8)
    with pytest.warns(UserWarning, match="window was not provided") as seen:
        torch.stft(x, 4, return_complex=True)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated") as pairs:
        torch.stft(x, 4, window=torch.ones(4), return_complex=False)
    assert {w.filename for w in [*seen, *pairs]} == {__file__}


@own
def test_ops_behind_functions_in_python_are_pickled(torch):
    """A module shows the Python function under the op's name; the op is named by the table."""
    ops = torch._C.ops
    for name in ("einsum", "nn.functional.relu", "add", "_C._nn.gelu", "stft"):
        if name in ops:
            assert pickle.loads(pickle.dumps(ops[name])) is ops[name]
    for function in (torch.einsum, torch.add, torch.Tensor.add, torch.nn.functional.max_pool2d):
        assert pickle.loads(pickle.dumps(function)) is function


SEEN = """tensor([1])
tensor([1.0], dtype=torch.float64, requires_grad=True)
as_tensor([1])
asarray([1])
sparse_coo_tensor([[0]], [1.0], (2,))
sparse_csr_tensor([0, 1], [0], [1.0])
device(0)
device("cpu")
device(type="cpu")
device("cpu", 0)
can_cast(torch.int32, torch.float32)
result_type(1, 2.0)
nn.init.uniform_(x)
nn.init.constant_(x, 3)
autograd.grad(y, x)
zeros(2)"""


@pytest.mark.parametrize("call", SEEN.splitlines())
def test_modes_see_functions_without_tensors(torch, call):
    x = torch.ones(3, requires_grad=True)
    space = {"torch": torch, "x": x, "y": x.sum()}
    seen = []

    class Kept(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func, args, kwargs

    expected = eval("torch." + call.split("(")[0], space)
    with Kept():
        func, args, kwargs = eval("torch." + call, space)
    assert func is expected and seen == [func]
    again = func(*args, **(kwargs or {}))
    alone = eval("torch." + call, space)
    assert type(again) is type(alone) and repr(again) == repr(alone)


def test_modes_do_not_see_the_constructor_of_the_class(torch):
    class Refusing(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    kind = type("Kind", (torch.Tensor,), {})
    with Refusing():
        made = [torch.Tensor([1, 2]), torch.Tensor(2, 3), kind([1, 2])]
    assert [tuple(t.shape) for t in made] == [(2,), (2, 3), (2,)]


def test_the_constructor_gives_a_view_of_a_tensor(torch, kind):
    x = torch.ones(2, requires_grad=True)
    for made in (torch.Tensor(x), kind(x)):
        assert made._is_view() and made._base is x and made.data_ptr() == x.data_ptr()
        (grad,) = torch.autograd.grad(made.sum(), x)
        assert grad.tolist() == [1, 1]
    with torch.no_grad():
        kind(x).mul_(3)
    assert x.tolist() == [3, 3]


def test_blocks_in_which_nothing_is_overridden(torch):
    class Sub(torch.Tensor):
        pass

    class Counting(torch.overrides.TorchFunctionMode):
        calls = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            Counting.calls += 1
            return func(*args, **(kwargs or {}))

    s = torch.ones(2).as_subclass(Sub)
    off = torch._C.DisableTorchFunction
    assert not torch._C._is_torch_function_all_disabled() and torch._C._is_torch_function_enabled()
    with Counting():
        assert torch._C._is_torch_function_mode_enabled()
        before = Counting.calls
        with off():
            assert torch._C._is_torch_function_all_disabled() and not torch._C._is_torch_function_mode_enabled()
            assert type(torch.sum(s)) is torch.Tensor and torch.tensor(1).item() == 1
            with torch._C.DisableTorchFunctionSubclass():
                assert torch._C._is_torch_function_all_disabled()
            with torch.overrides._enable_torch_function():
                assert type(torch.sum(s)) is Sub
            assert torch._C._is_torch_function_all_disabled()
        assert Counting.calls == before + 1
        with torch._C.DisableTorchFunctionSubclass():
            assert type(torch.sum(s)) is torch.Tensor
            assert not torch._C._is_torch_function_enabled()
            enabled = torch._C._EnableTorchFunction()
            assert type(torch.sum(s)) is Sub
            del enabled
            assert type(torch.sum(s)) is torch.Tensor
        assert Counting.calls == before + 4
    assert torch._C._is_torch_function_enabled()
    with pytest.raises(ValueError), off():
        raise ValueError
    assert torch._C._is_torch_function_enabled()


def test_a_plain_method_overrides_with_a_warning(torch):
    class Own:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self, func, types, args, kwargs

    own = Own()
    with pytest.warns(UserWarning, match="as a plain method is deprecated"):
        assert torch.abs(own)[:4] == (own, torch.abs, (Own,), (own,))


def test_a_mode_has_a_plain_method(torch):
    class Wrong(torch.overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="as a classmethod is not supported"), Wrong():
        torch.ones(1) + 1
    assert torch._C._len_torch_function_stack() == 0 and torch.ones(1).item() == 1


def test_gradients_of_what_is_no_tensor(torch):
    seen = []

    class Other:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((func, args, kwargs["allow_unused"]))
            return -1

    o = Other()
    assert torch.autograd.grad(o, o, allow_unused=True) == -1
    assert torch.autograd.grad(torch.ones(1), [o]) == -1
    assert seen[0] == (torch.autograd.grad, ((o,), (o,)), True) and seen[1][1][1] == (o,)


@pytest.mark.parametrize("sign", ["-", "/", "//", "%", "**", "@", "<<", ">>"])
def test_the_right_operand_is_asked_where_the_left_declines(torch, sign):
    class Declines(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    class Reflected(Declines):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            reflected = func.__name__.startswith("__r") and func.__name__ != "__rshift__"
            return args if reflected else NotImplemented

    left = torch.ones(2).as_subclass(Declines)
    other = type("Other", (torch.Tensor,), {"__torch_function__": Reflected.__dict__["__torch_function__"]})
    right = torch.ones(2).as_subclass(other)
    answer = eval(f"left {sign} right")
    assert answer[0] is right and answer[1] is left
    with pytest.raises(TypeError, match="unsupported operand"):
        eval(f"left {sign} left")


@own
def test_properties_and_methods_are_offered_too(torch):
    calls = []

    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            calls.append(torch.overrides.resolve_name(func))
            return super().__torch_function__(func, types, args, kwargs)

    x = torch.ones(3).as_subclass(Logged)
    x.shape, x.dim(), x.detach(), x.to(torch.float64), x.float(), len(x), x.grad, x.is_shared()
    x.requires_grad = True
    assert calls == [
        f"torch.Tensor.{name}"
        for name in "shape.__get__ dim detach to float __len__ grad.__get__ is_shared requires_grad.__set__".split()
    ]
    calls.clear()
    with torch._C.DisableTorchFunctionSubclass():
        assert x.shape == (3,) and x.item is not None
    assert not calls

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    y = torch.ones(2)
    with Mode():
        y.shape, y.size(), y.tolist()
    assert calls == [torch.Tensor.shape.__get__, torch.Tensor.size, torch.Tensor.tolist]


def test_a_class_answers_instead_of_a_method(torch):
    class Odd(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return -1 if func in (torch.Tensor.dim, torch.Tensor.shape.__get__, torch.Tensor.tolist) else NotImplemented

    x = torch.ones(3).as_subclass(Odd)
    assert x.dim() == x.shape == x.tolist() == -1 == torch.Tensor.dim(x)
    with pytest.raises(TypeError, match="stride|Multiple dispatch failed"):
        x.is_contiguous()


def test_functions_are_listed_alike_where_a_method_was_replaced():
    """Libraries that replace `Tensor.backward` by a function ask for the lists afterwards."""
    program = """
import rustgrad as torch
torch.Tensor.backward = lambda *args: None
ignored, answers = torch.overrides.get_ignored_functions(), torch.overrides.get_testing_overrides()
assert torch.qr in ignored and torch.Tensor.item in answers and torch.Tensor.add in answers
assert not [f for f in ignored if f in answers]
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_what_can_be_overridden_is_listed(torch):
    lists, ignored = torch.overrides.get_overridable_functions(), torch.overrides.get_ignored_functions()
    assert (
        torch.add in lists[torch]
        and torch.Tensor.add in lists[torch.Tensor]
        and torch.Tensor.item in lists[torch.Tensor]
    )
    assert (
        torch.zeros in ignored
        and torch.zeros not in lists[torch]
        and torch.nn.functional.linear in lists[torch.nn.functional]
    )
    answers = torch.overrides.get_testing_overrides()
    assert answers[torch.add](1, 2) == -1 and torch.zeros not in answers
    for name in (
        "torch.add",
        "torch.Tensor.add",
        "torch.nn.functional.relu",
        "torch.linalg.det",
        "torch.Tensor.grad.__get__",
    ):
        found = eval(name, {"torch": torch})
        assert eval(torch.overrides.resolve_name(found), {"torch": torch}) == found
    assert torch.overrides.is_tensor_method_or_property(torch.Tensor.item)
    assert not torch.overrides.is_tensor_method_or_property(torch.add)


def test_data_of_a_parameter_is_plain(torch):
    """`super().__torch_function__` of a class of parameters is that of parameters, which leaves results as they are."""

    class Loud(torch.nn.Parameter):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return super().__torch_function__(func, types, args, kwargs or {})

    p = Loud(torch.ones(2))
    assert type(p) is Loud and type(p.data) is type(p.detach()) is torch.Tensor
