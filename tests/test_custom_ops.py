"""`library.custom_op`: writes, aliases, factories and batches of ops that a program defines."""

import importlib
import math

import numpy as np
import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="its words and kernels by device are rustgrad's own")


def test_what_an_op_writes_to_has_a_new_version(torch):
    @torch.library.custom_op("mine::sin_", mutates_args={"x", "rest"})
    def sin_(x: torch.Tensor, rest: list[torch.Tensor], kept: torch.Tensor, n: int = 1) -> None:
        np.sin(x.numpy(), out=x.numpy())

    x, rest, kept = torch.ones(2), [torch.ones(1), torch.ones(1)], torch.ones(1)
    sin_(x, kept=kept, rest=rest)
    assert x[0].item() == pytest.approx(math.sin(1))
    assert (x._version, [t._version for t in rest], kept._version) == (1, [1, 1], 0)
    # A gradient that needs the old values says so instead of taking the new ones.
    w = torch.ones(2, requires_grad=True)
    y = (w * x).sum()
    sin_(x, rest, kept)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        sin_.register_autograd(lambda ctx, g: g)

    @torch.library.custom_op("mine::any_", mutates_args="unknown", device_types="cpu")
    def any_(x: torch.Tensor, y: torch.Tensor | None) -> None:
        pass

    any_(x, None)
    assert x._version == 3


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: x.view(-1), lambda x: (y := x.clone(), y[:1])])
def test_what_an_op_returns_is_memory_of_its_own(torch, returned):
    made = torch.library.custom_op("mine::alias", lambda x: returned(x), mutates_args=(), schema="(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="may not alias any inputs"):
        made(torch.ones(2))


def test_an_op_without_tensors_runs_on_the_device_that_it_is_given(torch):
    @torch.library.custom_op("mine::three", mutates_args={}, device_types="cpu")
    def three(device: torch.device) -> torch.Tensor:
        return torch.full((1,), 3.0)

    assert three("cpu").item() == three(device=torch.device("cpu")).item() == 3
    with pytest.raises(RuntimeError, match="three does not have a kernel registered for gpu"):
        three("gpu")
    three.register_fake(lambda device: torch.empty(1, device="meta"))
    assert three("meta").is_meta
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        torch.library.custom_op("mine::four", lambda: None, mutates_args={}, device_types="cpu", schema="() -> Tensor")
    four = torch.library.custom_op("mine::four", lambda: torch.ones(1), mutates_args={}, schema="() -> Tensor")
    assert four().item() == 1
    with pytest.raises(ValueError, match="required to have a `device: torch.device` argument"):
        four.register_kernel("cpu")


def test_arguments_that_are_written_to_are_checked(torch):
    def f(x: torch.Tensor, n: int) -> None:
        pass

    with pytest.raises(ValueError, match="{'y'} in mutates_args were not found"):
        torch.library.custom_op("mine::f", f, mutates_args={"y"})
    with pytest.raises(ValueError, match='or the string "unknown"'):
        torch.library.custom_op("mine::f", f, mutates_args="x")
    with pytest.raises(ValueError, match="only Tensors or collections of Tensors can be mutated"):
        torch.library.custom_op("mine::f", f, mutates_args={"n"})
    with pytest.raises(ValueError, match="the op mutates {'x'}"):
        torch.library.custom_op("mine::f", f, mutates_args=(), schema="(Tensor(a!) x, int n) -> ()")

    def g(x: torch.Tensor, *, y: torch.Tensor) -> torch.Tensor:
        return x + y

    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        torch.library.custom_op("mine::g", g, mutates_args=(), tags=torch.Tag.pointwise)
    torch.library.define("mine::g", "(Tensor x, *, Tensor y) -> Tensor")
    with pytest.raises(NotImplementedError, match="register_autograd with kwarg-only Tensor args"):
        torch.library.register_autograd("mine::g", lambda ctx, grad: grad)


def test_a_rule_for_batches(torch):
    calls = []

    @torch.library.custom_op("mine::cube", mutates_args=())
    def cube(x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return x**3 * scale

    x = torch.arange(6.0).reshape(2, 3)
    want = x**3 * 2
    assert torch.equal(torch.vmap(lambda t: cube(t, 2.0))(x), want)

    @cube.register_vmap
    def batched(info, in_dims, x, scale):
        calls.append((info.batch_size, in_dims))
        return cube(x, scale), in_dims[0]

    assert torch.equal(torch.vmap(lambda t: cube(t, 2.0), in_dims=1, out_dims=1)(x), want)
    assert [size for size, _ in calls] == [3]
    torch.library.register_vmap("mine::cube", lambda info, in_dims, x, scale: (x * 0, in_dims[0]))
    assert torch.vmap(lambda t: cube(t, 2.0))(x).count_nonzero() == 0
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        cube(x.requires_grad_(), 2.0).sum().backward()


def test_a_kernel_can_be_set_aside(torch):
    @torch.library.custom_op("mine::one", mutates_args=())
    def one(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    one.register_kernel("cpu")(lambda x: x + 2)
    x = torch.zeros(1)
    with one.set_kernel_enabled("cpu", False):
        assert one(x).item() == 1
        with one.set_kernel_enabled("cpu"):
            assert one(x).item() == 2
    assert one(x).item() == 2


def _sine(torch, name):
    @torch.library.custom_op(f"mine::{name}", mutates_args=())
    def sine(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.detach().numpy()))

    return sine


def test_ops_are_traced_and_run_on_fake_tensors(torch):
    from rustgrad._subclasses.fake_tensor import FakeTensorMode, UnsupportedOperatorException, is_fake
    from rustgrad.fx.experimental.proxy_tensor import make_fx

    sine = _sine(torch, "sine")
    with (
        FakeTensorMode(),
        pytest.raises(RuntimeError, match=r"no fake impl registered for <CustomOpDef\(mine::sine\)>"),
    ):
        sine(torch.ones(3))
    sine.register_fake(torch.empty_like)
    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )

    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(sine(x).sum(), x)

    for mode in ("real", "fake"):
        made = make_fx(gradient, tracing_mode=mode)(torch.ones(3))
        names = [n.name for n in made.graph.nodes]
        assert names == ["x_1", "alias", "sine", "sum_1", "ones_like", "expand", "cos", "mul", "output"]
        torch.testing.assert_close(made(torch.zeros(3))[0], torch.ones(3))
    with FakeTensorMode():
        x = torch.ones(3, requires_grad=True)
        sine(x).sum().backward()
        assert is_fake(x.grad)
        torch.library.define("mine::none", "(Tensor x) -> Tensor")
        with pytest.raises(UnsupportedOperatorException, match="mine.none.default"):
            torch.ops.mine.none(x)


def test_opcheck(torch):
    sine = _sine(torch, "checked")
    x = torch.ones(3, requires_grad=True)
    error = "test_faketensor failed with There was no fake impl"
    with pytest.raises(Exception, match=error) as caught:
        torch.library.opcheck(sine, (x,))
    assert type(caught.value).__name__ == "OpCheckError"
    sine.register_fake(lambda x: x.new_empty(4))
    found = torch.library.opcheck(sine, (x.detach(),), raise_exception=False)
    assert "Shapes torch.Size([3]) and torch.Size([4]) are not equal" in str(found.pop("test_faketensor"))
    assert set(found.values()) == {"SUCCESS"}
    sine.register_fake(torch.empty_like)
    assert torch.library.opcheck(sine, (x.detach(),), test_utils="test_faketensor") == {"test_faketensor": "SUCCESS"}
    with pytest.raises(ValueError, match="expected test_utils to be subset"):
        torch.library.opcheck(sine, (x,), test_utils="other")

    @torch.library.custom_op("mine::secretly", mutates_args=())
    def secretly(x: torch.Tensor) -> torch.Tensor:
        return x.add_(1).clone()

    with pytest.raises(Exception, match="Argument x is not defined as mutable but was mutated"):
        torch.library.opcheck(secretly, (torch.ones(3),), test_utils="test_schema")


def test_kernels_by_key(torch):
    library = torch.library.Library("mine2", "DEF")
    library.define("twice(Tensor x) -> Tensor")

    @torch.library.impl(library, "twice", "CPU")
    def twice(x):
        return x * 2

    assert torch.ops.mine2.twice(torch.ones(1)).item() == 2


def test_a_default_kernel_is_for_all_devices(torch):
    name = f"rgdefault{torch.__name__}::twice"
    torch.library.define(name, "(Tensor x) -> Tensor")

    @torch.library.register_kernel(name, "default")
    def _(x):
        return x * 2

    assert getattr(torch.ops, name.partition("::")[0]).twice(torch.ones(2)).tolist() == [2, 2]


def test_autocast_of_an_op(torch):
    seen = []

    @torch.library.custom_op("casts::add", mutates_args=())
    def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        seen.append((x.dtype, y.dtype, torch.is_autocast_enabled("cpu")))
        return x + y

    add.register_autograd(lambda ctx, g: (g * 2, None))
    torch.library.register_autocast("casts::add", "cpu", torch.bfloat16)
    x = torch.ones(2, requires_grad=True)
    with torch.autocast("cpu"):
        out = add(x, torch.ones(2, dtype=torch.int))
        torch.ops.casts.add(torch.ones(2), torch.ones(2, dtype=torch.float64))
    add(torch.ones(2), torch.ones(2))
    half, single = torch.bfloat16, torch.float32
    assert seen == [(half, torch.int32, False), (half, torch.float64, False), (single, single, False)]
    out.sum().backward()
    assert out.dtype == half and x.grad.dtype == single and x.grad.tolist() == [2, 2]
    with pytest.raises(ValueError, match="does not support autocast"):
        add.register_autocast("meta", torch.float16)

    lib = torch.library.Library("casts2", "DEF")
    lib.define("sine(Tensor x) -> Tensor")
    lib.impl("sine", lambda x: x.sin(), "CPU")

    def cast(x):
        with torch.autocast("cpu", enabled=False):
            return torch.ops.casts2.sine(x.bfloat16())

    lib.impl("sine", cast, "AutocastCPU")
    with torch.autocast("cpu"):
        assert torch.ops.casts2.sine(torch.ones(2)).dtype == half
    assert torch.ops.casts2.sine(torch.ones(2)).dtype == single


def test_answers_of_classes_and_modes_to_an_op(torch):
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    @torch.library.custom_op("answers::copy", mutates_args=())
    def copy(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    class Mode(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    class Derived(Mode):
        pass

    class Kind(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise AssertionError(func)

    @torch.library.register_torch_dispatch("answers::copy", Mode)
    def more(mode, func, types, args, kwargs):
        assert type(mode) is Mode and func is torch.ops.answers.copy.default and not types and not kwargs
        return args[0] + 1

    copy.register_torch_dispatch(Kind, lambda cls, func, types, args, kwargs: (cls, types))
    x = torch.zeros(2)
    with Mode():
        assert copy(x).tolist() == torch.ops.answers.copy(x).tolist() == [1, 1] and (x + 2).tolist() == [2, 2]
    with Derived():
        assert copy(x).tolist() == [0, 0]
    assert copy(x.as_subclass(Kind)) == (Kind, (Kind,))
    with pytest.raises(RuntimeError, match="already has"):
        copy.register_torch_dispatch(Mode, more)
