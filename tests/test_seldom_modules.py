"""Modules that programs seldom import: `utils._functools`, `show_pickle`, `ThroughputBenchmark`, namespaces of tools."""

import importlib
import io
import json
import pickle
import time

import pytest


@pytest.fixture
def module(torch):
    return lambda name: importlib.import_module(f"{torch.__name__}.{name}")


def test_functions_under_their_modules(torch, module):
    assert torch.equal(module("signal.windows.windows").hann(4), torch.signal.windows.hann(4))
    assert isinstance(module("accelerator.memory").memory_allocated(), int)
    functional = module("optim.functional")
    p, g, step = torch.ones(2), torch.ones(2), torch.tensor(0.0)
    functional.sgd([p], [g], [None], weight_decay=0, momentum=0, lr=0.5, dampening=0, nesterov=False, maximize=False)
    assert p.tolist() == [0.5, 0.5] and "adafactor" in functional.__all__ and step == 0
    assert module("fx.config").disable_progress is True
    switch = module("utils.backcompat").broadcast_warning
    assert switch.enabled is False


def test_tools_that_are_absent_say_so(torch, module):
    itt, nccl, gds = module("profiler.itt"), module("cuda.nccl"), module("cuda.gds")
    for use in (lambda: itt.range_push("a"), lambda: itt.mark("a"), lambda: itt.range("a").__enter__()):
        with pytest.raises(RuntimeError, match="ITT functions not installed"):
            use()
    assert not itt.is_available()
    with pytest.raises(TypeError, match="collection of tensors"):
        nccl.all_reduce(torch.ones(2))
    with pytest.raises(RuntimeError):
        nccl.all_reduce([torch.ones(2)])
    with pytest.raises(RuntimeError):
        gds.gds_register_buffer(torch.ones(2).untyped_storage())


def test_types_by_sizes(torch, module):
    kinds = module("fx.tensor_type")
    one, dyn = kinds.TensorType((1, 2)), kinds.TensorType[1, kinds.Dyn]
    assert repr(dyn) == "TensorType[(1, Dyn)]" and one == kinds.TensorType([1, 2])
    assert kinds.is_consistent(one, dyn) and kinds.is_more_precise(one, dyn) and not kinds.is_more_precise(dyn, one)
    assert not kinds.is_consistent(one, kinds.TensorType((1, 3))) and kinds.is_consistent(1, kinds.Dyn)


def test_kept_results(torch, module):
    functools = module("utils._functools")
    calls = []

    class Sized:
        @functools.cache_method
        def plus(self, n):
            calls.append(n)
            return n + 1

    a, b = Sized(), Sized()
    assert [a.plus(1), a.plus(1), b.plus(1), a.plus(2)] == [2, 2, 2, 3] and calls == [1, 1, 2]
    with pytest.raises(AssertionError, match="keyword"):
        a.plus(n=1)
    cached = functools.prefetchable_cache(lambda: calls.append(0) or len(calls))
    cached.prefetch()
    assert cached() == cached() == 4
    with pytest.raises(RuntimeError, match="already set"):
        cached.set(1)
    cached.clear()
    cached.set(7)
    assert cached() == 7


def test_show_pickle(torch, module, tmp_path):
    show = module("utils.show_pickle")
    torch.save({"x": torch.ones(2)}, tmp_path / "a.pt")
    out = io.StringIO()
    show.main(["", f"{tmp_path / 'a.pt'}@*/data.pkl"], out)
    assert "torch._utils._rebuild_tensor_v2(" in out.getvalue() and "'cpu', 2),)" in out.getvalue()
    bad = pickle.dumps("ab", 2).replace(b"ab", b"\xff\xfe")
    with pytest.raises(UnicodeDecodeError):
        show.DumpUnpickler(io.BytesIO(bad)).load()
    assert show.DumpUnpickler(io.BytesIO(bad), catch_invalid_utf8=True).load().name == "UnicodeDecodeError"


def test_throughput(torch, module, tmp_path):
    bench = torch.utils.ThroughputBenchmark(lambda x, pause: (x.exp(), time.sleep(pause)))
    bench.add_input(torch.ones(2), pause=0.001)
    assert bench.run_once(torch.zeros(1), pause=0)[0].tolist() == [1]
    stats = bench.benchmark(2, 1, 10, str(tmp_path / "trace.json"))
    assert stats.num_iters == 10 and 1 < stats.latency_avg_ms < 100 and "Average latency" in str(stats)
    assert stats.iters_per_second == pytest.approx(2000 / stats.latency_avg_ms)
    assert "aten::exp" in json.dumps(json.loads((tmp_path / "trace.json").read_text()))
    bench.add_input(1, pause=0)
    with pytest.raises(AttributeError):
        bench.benchmark(1, 100, 1)
    assert module("utils.throughput_benchmark").format_time(time_ms=2) == "2.000ms"


def test_cuda_code_is_not_run(torch, module):
    jiterator = module("cuda.jiterator")
    code = "template <typename T> T one(T x) { return x; } template <typename T> T two(T x) { return one(x); }"
    function = jiterator._create_jit_fn(code, alpha=1.0)
    assert function.kernel_name == "two" and function.kwargs_dict == {"alpha": 1.0}
    with pytest.raises(AssertionError, match="only supported on CUDA"):
        function(torch.ones(2))
    with pytest.raises(Exception, match="Couldn't parse code"):
        jiterator._create_jit_fn("nothing")
