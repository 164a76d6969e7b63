"""`autocast`: which ops cast to what, on both devices; nesting, the cache of casts, custom functions, deprecated names."""

import importlib
import json
import threading
import warnings
from pathlib import Path

import pytest
from conftest import need
from support import target
from support.samples import parse

own = pytest.mark.skipif(target.STAND_IN, reason="where PyTorch's cache of casts gives wrong results")


def tensors(torch, device="cpu"):
    generator = torch.Generator().manual_seed(0)
    b = torch.rand(4, 4, generator=generator).to(device)
    x = torch.rand(2, 3, 8, 8, generator=generator).to(device)
    return {"torch": torch, "F": torch.nn.functional, "b": b, "x": x, "i": torch.tensor([0, 1, 2, 3], device=device)}


# With float32 operands, in a region of bfloat16 or float16.
LOWER = """torch.mm(b, b)|b @ b|b @ b[0]|torch.bmm(x[0], x[0])|torch.addmm(b, b, b)|F.linear(b, b)|F.linear(b, b, b[0])
    |torch.baddbmm(x[0], x[0], x[0])|torch.addbmm(x[0, 0], x[0], x[0])|F.conv1d(x[0], x[0, :, :, :3])|F.conv2d(x, x[:, :, :3, :3])
    |F.conv3d(x, x[:1, :2, :2, :2].unsqueeze(1).expand(1, 2, 2, 2, 2))|F.conv_transpose2d(x, x[:, :, :3, :3].transpose(0, 1).contiguous())
    |torch.linalg.vecdot(b, b)|F.prelu(b, b[0, :1])|torch.einsum('ij,jk->ik', b, b)|torch.tensordot(b, b, 1)|torch.inner(b, b)
    |torch.linalg.multi_dot([b, b, b])"""
# With operands in the region's dtype: what is computed in float32 and what is not.
FLOAT32 = """F.mse_loss(h, h)|F.l1_loss(h, h)|F.smooth_l1_loss(h, h)|F.huber_loss(h, h)|F.nll_loss(h, i)|F.cross_entropy(h, i)
    |F.kl_div(h, h, reduction='sum')|F.binary_cross_entropy(h.sigmoid(), h.sigmoid())|h.prod()|h.prod(0)|torch.trace(h)
    |F.binary_cross_entropy_with_logits(h, h)|torch.cdist(h, h)|torch.linalg.inv(h)|torch.inverse(h)|torch.linalg.svdvals(h)
    |torch.linalg.qr(h)[0]|torch.quantile(h, 0.5)|F.pad(x[0].to(h), (1, 1), mode='replicate')|torch.linalg.cond(h)
    |torch.linalg.solve(b, h)|torch.linalg.lstsq(h, h)[0]|torch.pinverse(h)"""
AS_GIVEN = """h + h|h * h|h.exp()|h.sum()|h.softmax(0)|F.log_softmax(h, 0)|h.cumsum(0)|h.norm()|F.layer_norm(h, (4,))|F.gelu(h)
    |h ** 2|h.var()|F.normalize(h)|F.cosine_similarity(h, h)|torch.dist(h, h)|torch.cat([h, h])|torch.stack([h, h])"""
UNCHANGED = """torch.mv(b, b[0])|b[0].dot(b[0])|torch.addmv(b[0], b, b[0])|torch.addr(b, b[0], b[0])|torch.outer(b[0], b[0])
    |torch.matrix_exp(b)|torch.det(b)|b.clone().addmm_(b, b)|torch.mm(b, b, out=torch.empty_like(b))|b.log()"""


def split(text):
    return [t.strip() for t in text.split("|")]


def run(torch, text, device="cpu", dtype=None, h=None):
    names = tensors(torch, device)
    names["h"] = names["b"] if h is None else names["b"].to(h)
    with torch.autocast(device, dtype=dtype):
        return eval(text, names).dtype


@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_ops_on_the_cpu(torch, name):
    lower = getattr(torch, name)
    for text in split(LOWER):
        assert run(torch, text, dtype=lower) == lower, text
    for text in split(FLOAT32):
        assert run(torch, text, dtype=lower, h=lower) == torch.float32, text
    for text in split(AS_GIVEN):
        assert run(torch, text, dtype=lower, h=lower) == lower, text
    for text in split(UNCHANGED):
        assert run(torch, text, dtype=lower) == torch.float32, text


# What differs from the record, and why.
KNOWN = {
    "linalg.pinv": "PyTorch ends with a matmul of its own",
    "inner": "PyTorch takes the dot product of vectors, which does not cast",
}


@pytest.mark.filterwarnings("ignore")
def test_results_of_all_ops_as_recorded(torch):
    from support.optable import ops

    # By the declaration that has the sample: `where` is a function, and a method with another order of arguments.
    rows = {f"{op.public}({text})": op for op in ops() for text in op.written_out()}
    recorded = json.loads((Path(__file__).parent / "golden" / "autocast.json").read_text())["dtypes"]
    different, compared = {}, 0
    for call, wanted in recorded.items():
        public, _, text = call[:-1].partition("(")
        args, kwargs, _ = target.build(parse(text))
        op = rows.get(call) or rows[call.replace("bf16[", "f32[")]
        try:
            with torch.autocast("cpu"):
                result = op.call(*args, **kwargs)
        except NotImplementedError:
            # An op without bfloat16 here.
            continue
        compared += 1
        got = ",".join(target.dtype_name(t.dtype) for t in target.tensors(result))
        if got != wanted and public not in KNOWN:
            different[call] = (got, wanted)
    assert different == {} and compared > 900


# As PyTorch has it for CUDA, which is not there to ask.
ON_GPU = {
    "float16": "b @ b|torch.mv(b, b[0])|torch.addmv(b[0], b, b[0])|torch.addr(b, b[0], b[0])|F.linear(b, b)|h + h|F.gelu(h)"
    "|F.conv2d(x, x[:, :, :3, :3])|torch.einsum('ij,jk->ik', b, b)|h.amax()|torch.addcmul(h, h, h)|torch.cat([h, h])",
    "float32": "h.exp()|h.log()|h ** 2|h.pow(h)|2 ** h|h.reciprocal()|h.rsqrt()|F.softplus(h)|F.layer_norm(h, (4,))|h.sum()"
    "|h.sum(0)|h.prod()|h.softmax(0)|F.log_softmax(h, 0)|h.cumsum(0)|h.norm()|torch.dist(h, h)|F.mse_loss(h, h)"
    "|F.cross_entropy(h, i)|torch.addcmul(h, b, h)|torch.addcdiv(h, b, h)|torch.atan2(h, b)|torch.stack([h, b])"
    "|F.cosine_similarity(h, h)|torch.logsumexp(h, 0)",
}


@pytest.mark.skipif(target.STAND_IN, reason="the device of ours")
@pytest.mark.parametrize("name", list(ON_GPU))
def test_ops_on_the_gpu(torch, name):
    need("gpu")
    for text in split(ON_GPU[name]):
        assert run(torch, text, "gpu", h=torch.float16) == getattr(torch, name), text
    with pytest.raises(RuntimeError, match="binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast"):
        run(torch, "F.binary_cross_entropy(b, b)", "gpu")
    with torch.autocast("gpu"):
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
        y = torch.ones(2, 2, device="gpu")
        assert y.softmax(0, dtype=torch.float16).dtype == torch.float16
    with torch.autocast("cpu"):
        assert (y @ y).dtype == torch.float32


def test_the_widest_dtype(torch):
    a, h = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        assert torch.cat([a, h]).dtype == torch.stack([h, a]).dtype == torch.hstack([a, h]).dtype == torch.float32
        assert torch.index_copy(a, 0, torch.tensor([0]), h[:1]).dtype == torch.float32
        assert torch.cat([h, a.double()]).dtype == torch.float64
        assert torch.cat([a, a.half()]).dtype == torch.float32
        with pytest.raises(RuntimeError, match="Unexpected floating ScalarType in at::autocast::prioritize"):
            torch.cat([a.half(), a.half()])
        assert (a.double() @ a.double()).dtype == torch.float64 and (a.int() @ a.int()).dtype == torch.int32


def test_backward_runs_in_the_dtype_of_the_op(torch):
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    x, y = torch.randn(3, 4), torch.tensor([0, 1, 0])
    with torch.autocast("cpu"):
        out = model(x)
        loss = torch.nn.functional.cross_entropy(out, y)
    assert out.dtype == torch.bfloat16 and loss.dtype == torch.float32
    seen = []
    out.register_hook(lambda g: seen.append(g.dtype))
    loss.backward()
    assert seen == [torch.bfloat16] and all(p.grad.dtype == torch.float32 for p in model.parameters())
    exact = [p.grad for p in model.parameters()]
    model.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    for p, grad in zip(model.parameters(), exact, strict=True):
        torch.testing.assert_close(p.grad, grad, rtol=0.1, atol=0.02)


def test_the_values_are_those_of_cast_operands(torch):
    a, b = torch.randn(5, 5), torch.randn(5, 5)
    with torch.autocast("cpu"):
        y = a @ b
    assert torch.equal(y, a.bfloat16() @ b.bfloat16())


def test_casts_of_parameters_are_kept(torch):
    w = torch.randn(2, 2, requires_grad=True)
    x = torch.randn(2, 2)

    def cast():
        return (w @ x).grad_fn.next_functions[0][0]

    with torch.autocast("cpu"):
        first = cast()
        assert first.name() == "ToCopyBackward0" and cast() is first
        with torch.autocast("cpu", enabled=False):
            assert (w @ x).dtype == torch.float32
        assert cast() is first
        torch.clear_autocast_cache()
        assert cast() is not first
    with torch.autocast("cpu"):
        assert cast() is not first
    with torch.autocast("cpu", cache_enabled=False):
        assert not torch.is_autocast_cache_enabled() and cast() is not cast()
    assert torch.is_autocast_cache_enabled()
    with torch.autocast("cpu"):
        view = w[:1]
        assert (view @ x).grad_fn.next_functions[0][0] is not (view @ x).grad_fn.next_functions[0][0]


@own
def test_casts_made_without_gradients_are_not_used_with_them(torch):
    layer, x = torch.nn.Linear(2, 2), torch.randn(1, 2)
    with torch.autocast("cpu"):
        with torch.no_grad():
            layer(x)
        layer(x).sum().backward()
        with torch.autocast("cpu", dtype=torch.float16):
            assert layer(x).dtype == torch.float16
    assert layer.weight.grad is not None


@own
def test_the_cache_does_not_outlive_the_region(torch):
    import gc
    import weakref

    layer = torch.nn.Linear(2, 2)
    with torch.autocast("cpu"):
        layer(torch.ones(1, 2))
    dead = weakref.ref(layer.weight)
    del layer
    gc.collect()
    assert dead() is None


def test_regions_nest_and_restore(torch):
    b = torch.ones(2, 2)
    assert not torch.is_autocast_enabled("cpu") and not torch.is_autocast_enabled()
    with torch.autocast("cpu") as outer:
        assert outer.fast_dtype == torch.bfloat16 and torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", enabled=False):
            assert (b @ b).dtype == torch.float32
            with torch.autocast("cpu", dtype=torch.float16):
                assert (b @ b).dtype == torch.float16 == torch.get_autocast_dtype("cpu")
            assert not torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") == torch.bfloat16
        with pytest.raises(ValueError, match="out"), torch.autocast("cpu", enabled=False):
            raise ValueError("out")
        assert (b @ b).dtype == torch.bfloat16
        other = []
        thread = threading.Thread(target=lambda: other.append((b @ b).dtype))
        thread.start()
        thread.join()
        assert other == [torch.float32]
    assert not torch.is_autocast_enabled("cpu") and (b @ b).dtype == torch.float32


def test_the_decorator(torch):
    @torch.autocast("cpu")
    def square(x):
        """Squares."""
        return x @ x

    assert square(torch.ones(2, 2)).dtype == torch.bfloat16 and square.__doc__ == "Squares."
    with pytest.raises(TypeError, match="autocast\\(\\)\\(func\\) requires a callable, but got int"):
        torch.autocast("cpu")(3)


def test_custom_functions(torch):
    seen = []

    def function(cast):
        class Product(torch.autograd.Function):
            @staticmethod
            @torch.amp.custom_fwd(device_type="cpu", cast_inputs=cast)
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                seen.append((x @ w).dtype)
                return x @ w

            @staticmethod
            @torch.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                x, w = ctx.saved_tensors
                seen.append(torch.is_autocast_enabled("cpu"))
                return g @ w.t(), x.t() @ g

        return Product

    x, w = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, dtype=torch.bfloat16)
    with torch.autocast("cpu"):
        y = function(None).apply(x, w)
    y.sum().backward()
    assert seen == [torch.bfloat16, True] and y.dtype == torch.bfloat16 and x.grad.dtype == torch.float32
    seen.clear()
    with torch.autocast("cpu"):
        y = function(torch.float32).apply(x, w)
    y.sum().backward()
    assert seen == [torch.float32, False] and y.dtype == torch.float32
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.amp.custom_fwd(device_type=3)
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.amp.custom_bwd(device_type=3)
    module = importlib.import_module(f"{torch.__name__}.amp.autocast_mode")
    cast = module._cast({"a": [x.detach(), 1, "s"], "b": x.detach().double()}, "cpu", torch.bfloat16)
    assert cast["a"][0].dtype == torch.bfloat16 and cast["a"][1:] == [1, "s"] and cast["b"].dtype == torch.float64


def test_state(torch):
    assert torch.get_autocast_dtype("cpu") == torch.bfloat16 and torch.get_autocast_dtype("cuda") == torch.float16
    assert [torch.amp.is_autocast_available(k) for k in ("cpu", "cuda", "meta")] == [True, True, False]
    torch.set_autocast_enabled("cpu", True)
    torch.set_autocast_dtype("cpu", torch.float16)
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float16
    torch.set_autocast_enabled("cpu", False)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    torch.set_autocast_enabled(True)
    assert torch.is_autocast_enabled() and torch.is_autocast_enabled("cuda")
    torch.set_autocast_enabled("cuda", False)
    assert torch.autocast_increment_nesting() == 1 and torch.autocast_decrement_nesting() == 0
    torch.set_autocast_cache_enabled(False)
    assert not torch.is_autocast_cache_enabled()
    torch.set_autocast_cache_enabled(True)


def test_refused_regions(torch):
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: `<class 'int'>`"):
        torch.autocast(3)
    for kind in ("meta", "tpu"):
        with pytest.raises(RuntimeError):
            torch.autocast(kind)
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast"):
        region = torch.autocast("cpu", dtype=torch.float64)
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    with pytest.warns(UserWarning, match="CUDA is not available.*Disabling autocast"), torch.autocast("cuda"):
        assert not torch.is_autocast_enabled("cuda")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.autocast("cuda", enabled=False)
    with pytest.raises(TypeError, match="must be torch.dtype, not int"):
        torch.set_autocast_dtype("cpu", 3)
    with pytest.raises(TypeError, match="must be bool, not"):
        torch.set_autocast_enabled("cpu")
    with pytest.raises(TypeError, match="must be str, not int"):
        torch.is_autocast_enabled(3)


def test_deprecated_names(torch):
    cpu = importlib.import_module(f"{torch.__name__}.cpu.amp")
    cuda = importlib.import_module(f"{torch.__name__}.cuda.amp")
    with pytest.warns(FutureWarning, match=r"use `torch.amp.autocast\('cpu', args...\)` instead"):
        region = cpu.autocast()
    with region:
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    with pytest.warns(FutureWarning, match=r"use `torch.amp.GradScaler\('cpu', args...\)` instead"):
        assert cpu.GradScaler(enabled=False).get_scale() == 1.0
    with pytest.warns(FutureWarning, match=r"use `torch.amp.autocast\('cuda', args...\)` instead"):
        cuda.autocast(enabled=False)
    with pytest.warns(FutureWarning, match=r"use `torch.amp.GradScaler\('cuda', args...\)` instead"):
        cuda.GradScaler(enabled=False)
    with pytest.warns(FutureWarning, match="device_type='cuda'"):
        cuda.custom_fwd(lambda ctx: None)
    with pytest.warns(DeprecationWarning, match="use torch.get_autocast_dtype\\('cuda'"):
        assert torch.get_autocast_gpu_dtype() == torch.float16
    with pytest.warns(DeprecationWarning, match="use torch.is_autocast_enabled\\('cpu'"):
        assert torch.is_autocast_cpu_enabled() is False
    assert torch.autocast is torch.amp.autocast
