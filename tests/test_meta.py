"""The meta device: shapes, strides and dtypes without memory."""

import pytest
from support import target


def test_ops_infer_their_results(torch):
    x = torch.empty(2**20, 2**20, device="meta")
    assert x.is_meta and not x.is_cpu and x.device == torch.device("meta") and x.data_ptr() == 0
    y = (x.t() + torch.empty(2**20, dtype=torch.float64, device="meta"))[:3].sum(0)
    assert y.is_meta and y.shape == (2**20,) and y.dtype == torch.float64
    assert (x + 2).stride() == x.stride() and (x.t() * 2).stride() == x.t().stride()
    assert torch.zeros(2, 3).to("meta").shape == torch.tensor([[1, 2, 3]] * 2, device="meta").shape == (2, 3)


def test_in_place_and_out(torch):
    x = torch.ones(3, device="meta")
    version = x._version
    assert x.add_(1).mul_(x) is x and x._version == version + 2
    assert torch.add(x, 1, out=torch.empty(0, device="meta")).shape == (3,)
    with pytest.raises(RuntimeError):
        x.add_(torch.ones(2, device="meta"))


def test_nothing_can_be_read(torch):
    x = torch.ones(2, device="meta")
    for read in (
        lambda: x.tolist(),
        lambda: x[0].item(),
        lambda: bool(x[0]),
        lambda: x.cpu(),
        lambda: x.to("cpu", torch.int32),
        lambda: torch.ones(2).copy_(x),
        lambda: torch.nonzero(x),
        lambda: torch.equal(x, x),
        lambda: x.masked_select(x > 0),
        lambda: torch.nn.Linear(2, 2, device="meta").to("cpu"),
    ):
        with pytest.raises(RuntimeError, match="(?i)meta"):
            read()
    with pytest.raises(TypeError, match="can't convert meta device type tensor to numpy"):
        x.numpy()
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2) + x
    with pytest.raises(RuntimeError, match="expects all tensors to have the same device"):
        torch.meshgrid(torch.ones(2), x, indexing="ij")


def test_printing(torch):
    assert repr(torch.ones(2, 3, device="meta")) == "tensor(..., device='meta', size=(2, 3))"
    assert repr(torch.ones(0, device="meta")) == "tensor(..., device='meta', size=(0,))"
    x = torch.ones((), device="meta", dtype=torch.float64, requires_grad=True)
    assert repr(x) == format(x) == "tensor(..., device='meta', size=(), dtype=torch.float64, requires_grad=True)"


def test_gradients_have_shapes(torch):
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8, device="meta"), torch.nn.ReLU(), torch.nn.Linear(8, 1, device="meta")
    )
    model(torch.ones(5, 4, device="meta")).sum().backward()
    assert all(p.grad.is_meta and p.grad.shape == p.shape for p in model.parameters())
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def test_modules_are_made_without_memory_and_then_given_some(torch):
    with torch.device("meta"):
        model = torch.nn.Linear(3, 2)
    assert model.weight.is_meta
    model = model.to_empty(device="cpu")
    assert model.weight.is_cpu and isinstance(model.weight, torch.nn.Parameter)
    torch.nn.init.ones_(model.weight), torch.nn.init.zeros_(model.bias)
    assert model(torch.ones(1, 3)).tolist() == [[3.0, 3.0]]


@pytest.mark.parametrize("size", [0, 5, [1, 2, 3]])
def test_storages(torch, size):
    for make in (torch.UntypedStorage, lambda *a, **k: torch.TypedStorage(*a, dtype=torch.int32, **k)):
        s, real = make(size, device="meta"), make(size)
        assert s.device.type == "meta" and s.nbytes() == real.nbytes() and s.size() == real.size() and s.data_ptr() == 0
        for read in (lambda s=s: s[0], lambda s=s: s.tolist()):
            with pytest.raises(NotImplementedError, match="Not available"):
                read()
        if size:
            with pytest.raises(NotImplementedError, match="Cannot copy out"):
                real.copy_(make(size, device="meta"))
        assert s.resize_(10).size() == 10 and s.clone().device.type == "meta"


@pytest.mark.skipif(target.STAND_IN, reason="the table of ops is ours")
def test_every_op_infers_what_the_cpu_computes(torch):
    def f(*shape):
        return torch.rand(shape) + 0.5

    one, square = f(2, 3), f(3, 3)
    calls = [
        (one,), (square,), (one, one), (square, square), (one, 2), (one, one, one), (one > 1, one, one), (one, 0), (one, (0,)),
        ([one, one],), (torch.tensor([0, 1]),), (one, 0, torch.tensor([0, 1])), ((2, 3),), (one.t(), one.t()), (one, one > 1),
    ]  # fmt: skip

    def moved(value):
        if isinstance(value, torch.Tensor):
            return value.to("meta")
        return [moved(v) for v in value] if isinstance(value, list) else value

    def described(call):
        try:
            result = call()
        except (RuntimeError, TypeError, ValueError, IndexError) as e:
            assert "panicked" not in str(e) and type(e).__name__ != "InternalError", e
            return None
        if not isinstance(result, torch.Tensor):
            return None
        return result.shape, result.dtype, result.stride()

    compared = 0
    for name, op in torch._C.ops.items():
        if name.endswith("_"):
            continue
        for args in calls:
            got = described(lambda op=op, args=args: op(*map(moved, args)))
            want = described(lambda op=op, args=args: op(*args)) if got else None
            compared += want is not None
            assert want is None or got == want, name
    assert compared > 1000


def test_checks_of_values_pass_and_checks_of_arguments_remain(torch):
    p = torch.empty(2, 3, device="meta")
    assert torch.linalg.inv(torch.empty(4, 3, 3, device="meta")).shape == (4, 3, 3)
    assert torch.nn.functional.binary_cross_entropy(p, p).shape == ()
    assert torch.searchsorted(torch.empty(5, device="meta"), p, out_int32=True).dtype == torch.int32
    assert torch.multinomial(p, 2).shape == (2, 2) and torch.histc(p, bins=7).shape == (7,)
    with pytest.raises(NotImplementedError, match="meta"):
        torch.bucketize(p, torch.ones(3))
    with pytest.raises(NotImplementedError, match="meta"):
        torch.linspace(torch.ones((), device="meta"), 2, 3, device="cpu")
    with pytest.raises(RuntimeError, match="first N-1 dimensions"):
        torch.searchsorted(p, torch.empty(5, device="meta"))
    with pytest.raises(RuntimeError, match="without replacement"):
        torch.multinomial(p, 4)
    with pytest.raises(RuntimeError, match="bins must be > 0"):
        torch.histc(p, bins=0)
