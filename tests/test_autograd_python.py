"""The Python half of autograd: `grad` and `backward`, gradcheck, Jacobians, modes, hooks on saved tensors."""

import importlib

import pytest


@pytest.fixture
def autograd(torch):
    return torch.autograd


def double(torch, *values):
    return torch.tensor(list(values), dtype=torch.float64).requires_grad_()


def test_grad(torch, autograd):
    x, y, unused = double(torch, 2.0), double(torch, 3.0), double(torch, 1.0)
    assert [g.item() for g in autograd.grad(x * y, [x, y])] == [3, 2]
    assert x.grad is None
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        autograd.grad(x * y, [x, unused])
    assert autograd.grad(x * y, [x, unused], allow_unused=True)[1] is None
    assert autograd.grad(x * y, [x, unused], materialize_grads=True)[1].tolist() == [0]
    named = autograd.grad(x * y, {"x": x, "y": y})
    assert {k: g.item() for k, g in named.items()} == {"x": 3, "y": 2}
    (first,) = autograd.grad(x**3, x, create_graph=True)
    assert autograd.grad(first, x)[0].item() == 12
    rows = autograd.grad(x * double(torch, 1.0, 2.0), x, torch.eye(2, dtype=torch.float64), is_grads_batched=True)
    assert rows[0].tolist() == [[1], [2]]


def test_grad_errors(torch, autograd):
    x = double(torch, 1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        autograd.grad(x * 2, x)
    with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\)"):
        autograd.grad(x * 2, x, torch.ones(3, dtype=torch.float64))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got int"):
        autograd.grad(x * 2, x, [1])
    with pytest.raises(RuntimeError, match="does not require grad"):
        autograd.grad(x.detach().sum(), x)
    with pytest.raises(ValueError, match="Expected allow_unused to be True"):
        autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="cannot be empty"):
        autograd.backward(x.sum(), inputs=[])


def test_backward(torch, autograd):
    x, y = double(torch, 1.0), double(torch, 2.0)
    autograd.backward([x * y, x + y], [torch.ones(1, dtype=torch.float64), None])
    assert x.grad.item() == 3 and y.grad.item() == 2
    autograd.backward(x * y, inputs=[y])
    assert x.grad.item() == 3 and y.grad.item() == 3


def test_modes(torch):
    x = double(torch, 1.0)

    @torch.no_grad()
    def silent():
        return (x * 2).requires_grad

    @torch.no_grad
    def bare():
        return (x * 2).requires_grad

    @torch.enable_grad()
    def loud():
        return (x * 2).requires_grad

    assert not silent() and not bare() and silent.__name__ == "silent"
    with torch.no_grad():
        assert loud()
        with torch.set_grad_enabled(True):
            assert torch.is_grad_enabled()
        assert not torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        1 / 0  # noqa: B018
    assert torch.is_grad_enabled()
    with torch.inference_mode(False):
        assert torch.is_grad_enabled()


def test_modes_of_generators(torch):
    @torch.no_grad()
    def steps():
        received = yield torch.is_grad_enabled()
        assert received == "sent" and not torch.is_grad_enabled()
        try:
            yield torch.is_grad_enabled()
        except KeyError:
            assert not torch.is_grad_enabled()
            yield "caught"
        return "end"

    generator = steps()
    assert next(generator) is False and torch.is_grad_enabled()
    assert generator.send("sent") is False and torch.is_grad_enabled()
    assert generator.throw(KeyError()) == "caught" and torch.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == "end"


def test_gradcheck_finds_errors(torch, autograd):
    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0]

    x = double(torch, 1.0, 2.0)
    error = importlib.import_module(torch.__name__ + ".autograd.gradcheck").GradcheckError
    with pytest.raises(error, match="Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor"):
        autograd.gradcheck(Wrong.apply, (x,))
    assert autograd.gradcheck(Wrong.apply, (x,), raise_exception=False) is False
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        autograd.gradcheck(torch.sin, (x.detach(),))
    with pytest.warns(UserWarning, match="Input #0 requires gradient and is not a double precision"):
        autograd.gradcheck(torch.sin, (torch.zeros(1, requires_grad=True),), raise_exception=False)
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        autograd.gradcheck(torch.sin, (x.detach()[:1].expand(3).requires_grad_(),))

    class Ignores(Wrong):
        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[0]

    with pytest.raises(error, match="backward not multiplied by grad_output"):
        autograd.gradcheck(Ignores.apply, (double(torch, 1.0),))


def test_gradcheck_finds_outputs_that_change_and_hooks_that_fail(torch, autograd):
    x = double(torch, 1.0)
    with pytest.raises(AssertionError, match="outputs with the same shape when inputs are perturbed"):
        autograd.gradcheck(lambda x: torch.cat([x, x]) if bool((x >= 1).all()) else x, (x,))
    with pytest.raises(AssertionError, match="outputs with the same dtype when inputs are perturbed"):
        autograd.gradcheck(lambda x: x.float() if bool((x >= 1).all()) else x, (x,))

    def refuses(x):
        def hook(grad):
            if grad is None:
                raise RuntimeError("undefined")

        y = x.clone()
        y.register_hook(hook)
        return y

    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        assert autograd.gradcheck(refuses, (x,), raise_exception=False) is False
    assert autograd.gradcheck(refuses, (x,), check_undefined_grad=False)


def test_gradcheck_accepts(torch, autograd):
    x, w = double(torch, 0.5, 1.0, 2.0), torch.tensor([[1.0, -2.0, 0.5]] * 2, dtype=torch.float64).requires_grad_()
    assert autograd.gradcheck(lambda x, w: (w.matmul(x).tanh(), x.sum()), (x, w))
    assert autograd.gradgradcheck(lambda x, w: w.matmul(x).tanh(), (x, w))
    assert autograd.gradcheck(lambda x: x.detach().sum() * 0 + x.sum(), x)
    assert autograd.gradcheck(lambda x: x * 2, x.detach().t().requires_grad_() if x.dim() == 2 else x)
    strided = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).t().requires_grad_()
    assert autograd.gradcheck(lambda x: x * x, strided) and autograd.gradcheck(torch.sin, double(torch))


def test_gradcheck_of_complex_functions(torch, autograd):
    z = torch.tensor([0.5 + 1j, -1.0 + 0.25j], dtype=torch.complex128).requires_grad_()
    assert autograd.gradcheck(lambda z: z * z + z.conj(), z)
    assert autograd.gradcheck(lambda z: z.abs(), z)
    assert autograd.gradgradcheck(lambda z: z * z, z)


def test_jacobians(torch, autograd):
    functional = importlib.import_module(torch.__name__ + ".autograd.functional")
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
    assert functional.jacobian(lambda x: x * x, x).tolist() == [[2, 0], [0, 4]]
    both = functional.jacobian(lambda x, y: (x * y, y.sum()), (x, y))
    assert both[0][0].tolist() == [[3, 0], [0, 3]] and both[0][1].tolist() == [[1], [2]]
    assert both[1][0].tolist() == [0, 0]
    assert functional.hessian(lambda x: (x**3).sum(), x).tolist() == [[6, 0], [0, 12]]
    blocks = functional.hessian(lambda x, y: (x * x * y).sum(), (x, y))
    assert blocks[0][1].tolist() == [[2], [4]] and blocks[1][1].tolist() == [[0]]
    v = torch.tensor([1.0, -1.0])
    out, product = functional.vjp(lambda x: x**2, x, v)
    assert out.tolist() == [1, 4] and product.tolist() == [2, -4]
    assert functional.jvp(lambda x: x**2, x, v)[1].tolist() == [2, -4]
    assert functional.hvp(lambda x: (x**3).sum(), x, v)[1].tolist() == [6, -12]
    assert functional.vhp(lambda x: (x**3).sum(), x, v)[1].tolist() == [6, -12]


def test_errors_of_jacobians(torch, autograd):
    functional = importlib.import_module(torch.__name__ + ".autograd.functional")
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(TypeError, match="given to jacobian must be either a Tensor or a tuple of Tensors"):
        functional.jacobian(lambda x: x, 3.0)
    for strategy, error in (("forward-mode", NotImplementedError), ("sideways", AssertionError)):
        with pytest.raises(error):
            functional.jacobian(torch.exp, x, strategy=strategy)
        with pytest.raises(error):
            functional.hessian(lambda x: x.exp().sum(), x, outer_jacobian_strategy=strategy)
    with pytest.raises(RuntimeError, match="The vector v can only be None if the user-provided function returns"):
        functional.vjp(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="v has invalid size: should be torch.Size"):
        functional.vjp(lambda x: x * 2, x, torch.ones(3))
    with pytest.raises(RuntimeError, match="should contain a single element"):
        functional.hessian(lambda x: x * 2, x)
    with pytest.raises(RuntimeError, match="Output 0 of the user-provided function does not require gradients"):
        functional.jacobian(lambda x: torch.ones(1), x, strict=True)
    assert functional.jacobian(lambda x: torch.ones(1), x).tolist() == [[0, 0]]


def test_pack_hooks_see_the_tensors_themselves(torch, autograd):
    seen = []

    def pack(t):
        assert not torch.is_grad_enabled()
        seen.append(t)
        return t.detach()

    class Twice(autograd.Function):
        @staticmethod
        def forward(ctx, a):
            out = a * 2
            ctx.save_for_backward(a, out)
            return out

        @staticmethod
        def backward(ctx, g):
            a, out = ctx.saved_tensors
            return g * out / a

    x = double(torch, 1.0, 2.0)
    with autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = x.exp()
        z = y * x
        w = (z * 1.0).sigmoid_()
        v = Twice.apply(x)
    assert [any(s is t for s in seen) for t in (y, x, w, v)] == [True] * 4
    assert [s.grad_fn.name() for s in seen if s is y or s is w] == ["ExpBackward0"] * 2 + ["SigmoidBackward0"]
    v.sum().backward()
    assert x.grad.tolist() == [2, 2]


def test_saved_tensors_hooks(torch, autograd):
    graph = importlib.import_module(torch.__name__ + ".autograd.graph")
    packed, unpacked = [], []

    def pack(t):
        packed.append(tuple(t.shape))
        return t.detach().clone()

    def unpack(t):
        unpacked.append(tuple(t.shape))
        return t

    x = double(torch, 1.0, 2.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).sum()
    assert packed and not unpacked
    y.backward()
    assert x.grad.tolist() == [2, 4] and len(unpacked) == len(packed)
    with graph.save_on_cpu():
        z = x.exp()
    z.sum().backward()


def test_saved_tensors_of_functions(torch, autograd):
    body = {
        "forward": staticmethod(lambda ctx, x: ctx.save_for_backward(x, None) or x * 2),
        "backward": staticmethod(lambda ctx, g: g * ctx.saved_tensors[0]),
    }
    x, seen = double(torch, 3.0), []
    y = type("Own", (autograd.Function,), body).apply(x)
    first, second = y.grad_fn._raw_saved_tensors
    assert type(first) is autograd.SavedTensor
    with pytest.raises(RuntimeError, match="None is forbidden"):
        second.register_hooks(lambda t: t, lambda t: t)
    for wrong in ((1, 1), (lambda t: t,)):
        with pytest.raises(TypeError, match="incompatible function arguments"):
            first.register_hooks(*wrong)
    first.register_hooks(lambda t: seen.append(t) or t * 5, lambda t: t * 2)
    with pytest.raises(RuntimeError, match="already been set"):
        first.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    assert x.grad.tolist() == [30] and len(seen) == 1
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match="from Python is forbidden"):
        autograd.SavedTensor()
    with pytest.raises(RuntimeError, match="pack hook is modifying its input"):
        (x.exp()).grad_fn._raw_saved_result.register_hooks(lambda t: t.mul_(2), lambda t: t)
    with autograd.graph.saved_tensors_hooks(lambda t: t.mul_(2), lambda t: t):
        with pytest.raises(RuntimeError, match="pack hook is modifying its input"):
            (x * 1).exp()


def test_hooks_installed_by_backward_end_with_it(torch, autograd):
    hooks, seen = autograd.graph.saved_tensors_hooks, []

    def unpack(t):
        hooks(lambda t: seen.append(t), lambda t: t).__enter__()
        return t

    with hooks(lambda t: t, unpack):
        double(torch, 1.0).sin().backward()
    double(torch, 1.0).sin().backward()
    assert not seen


def test_multi_grad_hook(torch, autograd):
    graph = importlib.import_module(torch.__name__ + ".autograd.graph")
    x, y = double(torch, 1.0), double(torch, 2.0)
    seen = []
    with graph.register_multi_grad_hook([x, y], lambda grads: seen.append([g.item() for g in grads])):
        (x * y).backward()
    (x * y).backward()
    assert seen == [[2, 1]]


def test_edges_as_outputs(torch, autograd):
    x = double(torch, 1.0, 2.0)
    edge = autograd.graph.get_gradient_edge
    assert autograd.grad(edge((x * x).sum()), x)[0].tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        autograd.grad(edge(x * x), x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        autograd.grad(edge((x * x).sum()), x, torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        autograd.grad(edge((x * x).sum()), x, torch.ones((), dtype=torch.complex64))
    with pytest.raises(RuntimeError, match=r"`inputs` argument to `grad\(\)` cannot be empty"):
        autograd.grad((x * x).sum(), [])


def test_materialized_zeros_have_a_gradient_where_one_is_recorded(torch, autograd):
    x, a = double(torch, 0.5), double(torch, 1.0)
    first = autograd.grad(x * a, x, create_graph=True)
    (second,) = autograd.grad(first, x, create_graph=True, materialize_grads=True)
    assert second.requires_grad and second.tolist() == [0]
    (third,) = autograd.grad(second, x, materialize_grads=True)
    assert not third.requires_grad and third.tolist() == [0]


def test_warning_of_cycles_can_repeat(torch):
    w = torch.ones(2, requires_grad=True)
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="create a reference cycle"):
                (w * w).sum().backward(create_graph=True)
            w.grad = None
    finally:
        torch.set_warn_always(False)


def test_unrecorded_values_may_leave_the_graph(torch):
    w = torch.ones(2, requires_grad=True)
    numpy = pytest.importorskip("numpy")
    with torch.no_grad():
        assert isinstance(w.numpy(), numpy.ndarray)
    with pytest.raises(RuntimeError, match="detach"):
        w.numpy()
    for call in (lambda: (w * 1).apply_(abs), lambda: torch.ones(2).map2_(torch.ones(2), w, lambda a, b, c: a)):
        with pytest.raises(RuntimeError, match=r"on Variable that requires grad\. Use var\.detach\(\)"):
            call()


def test_classes_are_decorated_as_functions_with_a_warning(torch):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Made:
            def __init__(self):
                self.recording = torch.is_grad_enabled()

    assert Made().recording is False


@pytest.mark.parametrize("name", ["leaky_relu", "elu", "celu"])
def test_in_place_activations_refuse_a_negative_slope_in_backward(torch, name):
    """Their results are saved, which do not tell the sign of the input then."""
    function = getattr(torch.nn.functional, name)
    w = double(torch, 1.0, -1.0)
    function(w * -2, -0.5).sum().backward()
    assert w.grad[0] != 0
    y = function(w * -2, -0.5, inplace=True)
    with pytest.raises(RuntimeError, match="call out-of-place version instead"):
        y.sum().backward()


def test_gradient_edge(torch, autograd):
    graph = importlib.import_module(torch.__name__ + ".autograd.graph")
    x = double(torch, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    assert graph.get_gradient_edge(x).node.variable is x
    (g,) = autograd.grad(y * 2, edge)
    assert g.item() == 2


def test_anomaly_mode(torch, autograd):
    x = double(torch, -1.0)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), autograd.detect_anomaly():
        y = x.sqrt().sum()
        with pytest.raises(RuntimeError, match="returned nan values"):
            y.backward()
    with autograd.set_detect_anomaly(False):
        x.sqrt().sum().backward()


def test_variable(torch, autograd):
    t = torch.ones(2)
    v = autograd.Variable(t, requires_grad=True)
    assert type(v) is torch.Tensor and v.requires_grad and v.data_ptr() == t.data_ptr()
    assert isinstance(t, autograd.Variable) and not autograd.Variable(t).requires_grad
    variable = importlib.import_module(torch.__name__ + ".autograd.variable")
    assert variable.Variable is autograd.Variable


def test_a_write_past_the_library_can_be_counted(torch):
    x = torch.ones(3, requires_grad=True)
    y = x.exp()  # whose gradient reads the result
    torch.autograd.graph.increment_version([y])
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    with torch.inference_mode():
        torch.autograd.graph.increment_version(torch.ones(1))
    for wrong in (3, [x, 3]):
        with pytest.raises(RuntimeError, match="increment_version"):
            torch.autograd.graph.increment_version(wrong)


def test_copies_of_saved_tensors_live_as_long_as_their_graphs(torch):
    with torch.autograd.graph.allow_mutation_on_saved_tensors() as context:
        x = torch.ones(2, requires_grad=True)
        a = x.clone()
        out = (a**2).sum()
        a.sin_()
        let_go = a**2
        alive = len(context.copies)
        out.backward()
        assert x.grad.tolist() == [2, 2] and len(context.copies) < alive
        del let_go, a, out
        assert len(context.copies) == 0
        kept = (x**2).sum()
    with pytest.raises(AssertionError, match="outside of the 'allow_mutation_on_saved_tensors' context"):
        kept.backward()


def test_gradcheck_in_fast_mode(torch, autograd):
    # The whole Jacobian would take 80 GB.
    x = torch.randn(100000, dtype=torch.float64, requires_grad=True)
    assert autograd.gradcheck(lambda x: (x.sin(), x.sum()), (x,), fast_mode=True, check_forward_ad=True)
    assert autograd.gradgradcheck(torch.tanh, (x[:1000].detach().requires_grad_(),), fast_mode=True)
    z = torch.randn(5, dtype=torch.complex128, requires_grad=True)
    weight = torch.randn(3, 5, dtype=torch.complex128, requires_grad=True)
    assert autograd.gradcheck(lambda w, z: (w @ z.conj(), z.abs()), (weight, z), fast_mode=True, check_forward_ad=True)

    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * factor

    for factor in (2.01, 2j):
        value = z if factor == 2j else x[:10].detach().requires_grad_()
        with pytest.raises(autograd.GradcheckError, match="fast mode"):
            autograd.gradcheck(Wrong.apply, (value,), fast_mode=True)
    assert not autograd.gradcheck(Wrong.apply, (z,), fast_mode=True, raise_exception=False)
    state = torch.get_rng_state()
    autograd.gradcheck(torch.exp, (x[:10].detach().requires_grad_(),), fast_mode=True)
    assert torch.equal(state, torch.get_rng_state())


def test_whether_backward_may_use_threads_is_kept(autograd):
    with autograd.set_multithreading_enabled(False):
        assert not autograd.is_multithreading_enabled()
    assert autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(False)
    assert not autograd.is_multithreading_enabled()
    autograd.set_multithreading_enabled(True)
