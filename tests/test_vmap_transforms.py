"""`vmap` with other transforms: what a function differentiates, saves, writes and reshapes inside, against loops over the examples."""

import pytest
import rustgrad as torch
from rustgrad.autograd import Function
from rustgrad.func import grad, grad_and_value, jvp, vmap
from rustgrad.nn import functional as F
from rustgrad.testing import assert_close


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def loop(f, *args):
    return torch.stack([f(*(a[b] for a in args)) for b in range(len(args[0]))])


class TestStepsOfCompositesThatReadTheHost:
    """Autograd records the steps of such an op, so what they saved must be known for every example."""

    def test_instance_norm(self):
        each = grad(lambda x: (F.instance_norm(x).sin() * 2).sum())
        x = torch.randn(3, 2, 3, 5)
        assert_close(vmap(each)(x), loop(each, x))

    @pytest.mark.parametrize("reduction", ["mean", "sum"])
    def test_ctc_loss(self, reduction):
        lengths = torch.tensor([6, 5]), torch.tensor([3, 2])
        each = grad(lambda x, t: F.ctc_loss(x.log_softmax(-1), t, *lengths, reduction=reduction))
        x, t = torch.randn(3, 6, 2, 5), torch.randint(1, 5, (3, 2, 3))
        assert_close(vmap(each)(x, t), loop(each, x, t))

    def test_ctc_loss_with_other_lengths_in_each_example_is_a_loop(self):
        loss = lambda x, t, n: F.ctc_loss(x.log_softmax(-1), t, torch.tensor([6, 5]), n)  # noqa: E731
        x, t = torch.randn(3, 6, 2, 5, requires_grad=True), torch.randint(1, 5, (3, 2, 3))
        n = torch.tensor([[3, 2], [1, 1], [2, 3]])
        got, want = vmap(loss)(x, t, n), loop(loss, x, t, n)
        assert_close(got, want)
        assert_close(torch.autograd.grad(got.sum(), x)[0], torch.autograd.grad(want.sum(), x)[0])
        with pytest.raises(RuntimeError, match="read on the host"):
            vmap(grad(loss))(x, t, n)

    def test_gradients_by_numbers_of_one_example_are_refused(self):
        f = lambda x, n: torch.narrow(x, 0, n, 2).sin().sum()  # noqa: E731
        x, n = torch.randn(3, 4, requires_grad=True), torch.tensor([0, 2, 1])
        got, want = (torch.autograd.grad(each(f, x, n).sum(), x)[0] for each in (lambda f, *a: vmap(f)(*a), loop))
        assert_close(got, want)
        with pytest.raises(RuntimeError, match="passes by narrow.*read on the host"):
            vmap(grad(f))(x, n)

    def test_parts_of_what_all_examples_share(self):
        x, n = torch.randn(5), torch.tensor([0, 2, 1])
        f = lambda n: x * 2 @ x + torch.narrow(x, 0, n, 2)  # noqa: E731
        assert_close(vmap(f)(n), loop(f, n))
        assert_close(vmap(lambda n: torch.narrow(x, 0, n, 2)[1:] * 2)(n), x[n + 1, None] * 2)

    def test_median_of_masked(self):
        each = grad(lambda x, m: torch.masked.median(x, 1, mask=m).sin().sum())
        x, m = torch.randn(3, 2, 5), torch.rand(3, 2, 5) > 0.3
        assert_close(vmap(each)(x, m), loop(each, x, m))

    def test_tangents_of_products_of_zeros(self):
        f = lambda a: a.prod(1)  # noqa: E731
        x, v = torch.randn(3, 2, 3), torch.randn(3, 2, 3)
        x[:, :, 1] = 0
        assert_close(jvp(vmap(f), (x,), (v,)), jvp(lambda a: loop(f, a), (x,), (v,)))


class TestHandles:
    def test_a_detached_handle_does_not_stop_the_gradient(self):
        def f(a, b):
            c = torch.zeros(4)
            c[:2].copy_(a[:2])
            return c.detach().argsort() * b + c

        a, b = torch.randn(3, 4, requires_grad=True), torch.randn(3, 4)
        (got,) = torch.autograd.grad(vmap(f)(a, b).sin().sum(), a)
        (want,) = torch.autograd.grad(loop(f, a, b).sin().sum(), a)
        assert_close(got, want)

    def test_a_handle_detached_before_the_write_has_no_gradient(self):
        def f(a):
            c = torch.zeros(4)
            d = c.detach()
            c[:2].copy_(a[:2])
            return d * a + c.sin()

        a = torch.randn(3, 4, requires_grad=True)
        (got,) = torch.autograd.grad(vmap(f)(a).sum(), a)
        (want,) = torch.autograd.grad(loop(f, a).sum(), a)
        assert_close(got, want)

    def test_a_detached_handle_does_not_stop_the_tangent(self):
        def f(a):
            c = torch.zeros(4)
            c[:2].copy_(a[:2])
            return c.detach() * a + c.sin()

        a, v = torch.randn(3, 4), torch.randn(3, 4)
        assert_close(jvp(vmap(f), (a,), (v,)), jvp(lambda a: loop(f, a), (a,), (v,)))

    @pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
    def test_nested_parts_of_new_memory(self, dims):
        def f(a, b):
            out = torch.zeros(4)
            out[:2] = a[:2]
            out[torch.tensor([3])] = b[:1]
            return out * b

        batch = lambda o: ((2,) if o == 0 else ()) + (3, 4)  # noqa: E731
        a, b = torch.randn(batch(dims[0])), torch.randn(batch(dims[1]))
        of = lambda t, o, k: t if o is None else t[k]  # noqa: E731
        want = torch.stack([loop(f, of(a, dims[0], k), of(b, dims[1], k)) for k in range(2)])
        assert_close(vmap(vmap(f), dims)(a, b), want)

    @pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0)])
    def test_tangents_of_memory_that_is_written_for_each_example(self, dims):
        def f(a, b):
            c = a * 1
            c[1:].mul_(b[:-1])
            return c

        a, b, v, w = (torch.randn(3, 4) if d == 0 else torch.randn(4) for d in dims * 2)
        of = lambda t, d, i: t if d is None else t[i]  # noqa: E731
        each = lambda x, y: torch.stack([f(of(x, dims[0], i), of(y, dims[1], i)) for i in range(3)])  # noqa: E731
        assert_close(jvp(vmap(f, dims), (a, b), (v, w)), jvp(each, (a, b), (v, w)))


class TestLayoutOfAHandle:
    def test_squeezed_in_place(self):
        def f(x, w):
            y = x.mm(w)
            y = y.sin().squeeze_(0)
            return (y * y).sum()

        x, w = torch.randn(5, 1, 3), torch.randn(3, 2)
        got = vmap(grad(f, 1), (0, None))(x, w)
        assert_close(got, torch.stack([grad(f, 1)(a, w) for a in x]))

    def test_turned_in_place_more_than_once(self):
        def f(x):
            y = x * 2
            s = y.sum(0)
            y.t_()
            t = y.cumsum(0)
            y.unsqueeze_(0)
            return s.sum() * t + y[0]

        x = torch.randn(3, 2, 4)
        assert_close(vmap(f)(x), loop(f, x))
        assert_close(vmap(f, in_dims=1)(x.transpose(0, 1)), loop(f, x))

    def test_arguments(self):
        def f(x):
            s = x.cumsum(0)
            return s + x.t_().t()

        x = torch.randn(3, 2, 4)
        assert_close(vmap(f)(x.clone()), loop(f, x.clone()))

    def test_what_all_examples_share(self):
        w = torch.randn(2, 4, requires_grad=True)

        def f(x):
            c = w * 2
            y = x @ c
            return y.sum() * (y @ c.t_())

        x = torch.randn(3, 2)
        assert_close(vmap(f)(x), loop(f, x))
        got, want = (torch.autograd.grad(r.sin().sum(), w)[0] for r in (vmap(f)(x), loop(f, x)))
        assert_close(got, want)


class TestViewsOfArguments:
    """Nothing is copied where no view goes by strides."""

    @pytest.mark.parametrize("dim", [1, 2])
    def test_results_show_the_argument(self, dim):
        x = torch.randn(2, 3, 4)
        assert vmap(lambda a: a, in_dims=dim, out_dims=dim)(x).data_ptr() == x.data_ptr()
        assert vmap(lambda a: a.t()[1:], in_dims=dim)(x)._base is x

    def test_writes_reach_the_argument(self):
        x = torch.rand(2, 3, 4)
        want = x.log()
        got = vmap(torch.Tensor.log_, in_dims=2)(x)
        assert_close(x, want)
        assert_close(got, want.permute(2, 0, 1))
        got.zero_()
        assert not x.any()

    def test_views_by_strides(self):
        x = torch.randn(2, 3, 4)
        f = lambda a: a.view(-1).unfold(0, 2, 2).sin() + a.as_strided((3, 2), (2, 1))  # noqa: E731
        assert_close(vmap(f, in_dims=2)(x), loop(f, x.permute(2, 0, 1).contiguous()))


class Saving(Function):
    """Saves what is neither argument nor result."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp() * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], inputs[0].exp())

    @staticmethod
    def backward(ctx, g):
        x, e = ctx.saved_tensors
        return g * (e * x + e)


class SavingByOwnRule(Saving):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info, dims, x):
        return SavingByOwnRule.apply(x.movedim(dims[0], 0)), 0


class OnTheHost(Function):
    """Sorts by NumPy; the places are a result."""

    @staticmethod
    def forward(x):
        place = torch.tensor(x.numpy().argsort())
        return x[place], place

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, g, _):
        return torch.zeros_like(g).scatter(0, ctx.saved_tensors[0], g)

    @staticmethod
    def vmap(info, dims, x):
        place = torch.tensor(x.movedim(dims[0], 0).numpy().argsort(-1))
        return (x.movedim(dims[0], 0).gather(1, place), place), (0, 0)


class OnTheHostUnknown(OnTheHost):
    """Saves what only the host knows."""

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(torch.tensor(inputs[0].numpy().argsort()))


class TestCustomFunctions:
    @pytest.mark.parametrize("function", [Saving, SavingByOwnRule])
    def test_what_is_saved_belongs_to_each_example(self, function):
        x = torch.randn(3, 4)
        each = grad(lambda a: function.apply(a).sin().sum())
        assert_close(vmap(each)(x), loop(each, x))
        twice = grad(lambda a: each(a).sin().sum())
        assert_close(vmap(twice)(x), loop(twice, x))

    @pytest.mark.parametrize("function", [Saving, SavingByOwnRule])
    def test_of_what_only_the_outer_batch_has(self, function):
        x, y = torch.randn(2, 4, requires_grad=True), torch.randn(3, 4)
        got = vmap(lambda a: vmap(lambda b: function.apply(a) * b)(y))(x)
        want = torch.stack([torch.stack([function.apply(a) * b for b in y]) for a in x])
        assert_close(got, want)
        assert_close(torch.autograd.grad(got.sum(), x)[0], torch.autograd.grad(want.sum(), x)[0])

    def test_reads_on_the_host(self):
        x = torch.randn(3, 4)
        f = lambda a: (OnTheHost.apply(a)[0] * torch.arange(4)).sum()  # noqa: E731
        assert_close(vmap(f)(x), loop(f, x))
        assert_close(vmap(grad(f))(x), loop(grad(f), x))

    def test_what_only_the_host_knows_is_refused(self):
        f = lambda a: (OnTheHostUnknown.apply(a)[0] * torch.arange(4)).sum()  # noqa: E731
        with pytest.raises(RuntimeError, match="read on the host"):
            vmap(grad(f))(torch.randn(3, 4))


class TestWrites:
    def test_to_memory_that_has_a_gradient_and_is_one_for_all(self):
        w = torch.randn(4, requires_grad=True)

        def f(x):
            c = w.sin()
            before = c * x
            c[1:].add_(x[1:])
            return (c * before).cos()

        x = torch.randn(3, 4)
        got, want = vmap(f)(x), loop(f, x)
        assert_close(got, want)
        assert_close(*(torch.autograd.grad(r.sum(), w)[0] for r in (got, want)))

    def test_after_a_call_has_read_what_all_share(self):
        w = torch.randn(4, requires_grad=True)

        def f(x):
            c = w * 1
            y = c * x
            with torch.no_grad():
                c.mul_(2)
            return y

        x = torch.randn(3, 4)
        (got,) = torch.autograd.grad(vmap(f)(x).sum(), w)
        assert_close(got, x.sum(0))


class TestRunningStatistics:
    def test_of_each_example(self):
        x, norm = torch.randn(3, 4, 2, 3), torch.nn.functional.batch_norm
        f = lambda a, mean, var: norm(a, mean, var, training=True)  # noqa: E731
        made = [(torch.zeros(3, 2), torch.ones(3, 2)) for _ in range(2)]
        assert_close(vmap(f)(x, *made[0]), loop(f, x, *made[1]))
        assert_close(made[0], made[1])
        instance = lambda a, mean, var: F.instance_norm(a, mean, var)  # noqa: E731
        assert_close(vmap(instance)(x, *made[0]), loop(instance, x, *made[1]))
        assert_close(made[0], made[1])

    @pytest.mark.parametrize("norm", [torch.nn.BatchNorm1d(2), torch.nn.InstanceNorm1d(2, track_running_stats=True)])
    def test_shared_ones_are_refused(self, norm):
        before = norm.running_mean.clone()
        with pytest.raises(RuntimeError, match="running_mean or running_var, which will be updated in place"):
            vmap(norm)(torch.randn(3, 4, 2, 5))
        assert_close(norm.running_mean, before)
        assert vmap(norm.eval())(torch.randn(3, 4, 2, 5)).shape == (3, 4, 2, 5)


class TestDraws:
    def test_a_checkpoint_draws_the_same_again(self):
        from rustgrad.utils.checkpoint import checkpoint

        x = torch.rand(5, 8) + 0.5
        kept = lambda a: checkpoint(lambda t: F.dropout(t, 0.5, True) * 1.0, a, use_reentrant=False).sum()  # noqa: E731
        slope, value = vmap(grad_and_value(kept), randomness="different")(x)
        assert_close((slope * x).sum(1), value)
        assert len({tuple(row) for row in slope.tolist()}) > 1

    def test_what_is_drawn_from_one_state_is_equal(self):
        def f(x):
            torch.manual_seed(3)
            a = torch.rand(4)
            torch.manual_seed(3)
            return x + a - torch.rand(4)

        x = torch.rand(3, 4)
        assert_close(vmap(f, randomness="different")(x), x)

    def test_new_memory_is_filled_for_each_example(self):
        def f(x):
            c = torch.zeros(4)
            c[1:].uniform_()
            return x + c

        x = torch.zeros(3, 4)
        got = vmap(f, randomness="different")(x)
        assert not got[:, 0].any()
        assert len(set(got[:, 1:].flatten().tolist())) == 9
        rows = vmap(lambda a: F.rrelu(a - 1, training=True), randomness="different")(x)
        assert len(set(rows.flatten().tolist())) == 12
        outside = torch.zeros(4)
        with pytest.raises(RuntimeError, match="inplace randomness on an unbatched tensor"):
            vmap(lambda a: a + outside.uniform_(), randomness="different")(x)

    @pytest.mark.parametrize("op", [lambda p: p.multinomial(2), torch._sample_dirichlet])
    def test_a_batch_draws_what_one_call_draws(self, op):
        p = torch.rand(4, 5) + 0.1
        torch.manual_seed(1)
        got = vmap(op, randomness="different")(p)
        torch.manual_seed(1)
        assert_close(got, op(p))
