"""Namespaces that programs ask or decorate with: jit, compiler, distributed, hub, overrides, profiler, benchmark and others."""

import dataclasses
import hashlib
import importlib
import json
import subprocess
import sys

import pytest
from support import target

own = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad answers where PyTorch has more")


def module(name):
    return importlib.import_module(f"{target.torch.__name__}.{name}")


@own
def test_jit_decorators_return_what_they_are_given(torch):
    jit = torch.jit

    @jit.script
    def f(x):
        return x + 1

    class Net(torch.nn.Module):
        @jit.ignore
        def a(self):
            return 1

        @jit.ignore(drop=True)
        def b(self):
            return 2

        @jit.export
        def forward(self, x):
            return f(x) * 2 if not jit.is_scripting() else x

    net = Net()
    assert (
        jit.script(net) is net and jit.trace(net, torch.ones(1))(torch.ones(1)).item() == net(torch.ones(1)).item() == 4
    )
    assert (net.a(), net.b(), jit.is_tracing()) == (1, 2, False) and jit.annotate(int, 3) == 3
    assert jit.isinstance([1], list[int]) and not jit.isinstance((1,), list[int])
    with pytest.raises(RuntimeError, match="cannot be traced"):
        jit.trace(net, "no tensor")
    with pytest.raises(ValueError, match="does not exist"):
        jit.load("no/such/file.pt")
    with pytest.raises(RuntimeError, match="eval mode"):
        jit.freeze(net)


@own
def test_nothing_compiles(torch):
    c = torch.compiler
    assert (c.is_compiling(), c.is_dynamo_compiling(), c.is_exporting()) == (False, False, False)

    @c.disable
    def f():
        return 1

    @c.disable(recursive=False)
    def g():
        return 2

    assert (f(), g()) == (1, 2) and c.allow_in_graph(f) is f
    with c.set_stance("force_eager"), pytest.raises(ValueError, match="expected one of"):
        c.set_stance("upside down")
    assert not torch.onnx.is_in_onnx_export()


@own
def test_a_group_of_one_process(torch, monkeypatch):
    dist = torch.distributed
    assert (
        dist.is_available() and dist.is_gloo_available() and not dist.is_nccl_available() and not dist.is_initialized()
    )
    t = torch.arange(3.0)
    for asked in (dist.get_rank, dist.get_world_size, dist.barrier, lambda: dist.all_reduce(t)):
        with pytest.raises(ValueError, match="Default process group has not been initialized"):
            asked()
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(RuntimeError, match="Distributed package doesn't have NCCL built in"):
        dist.init_process_group("nccl")
    with pytest.raises(ValueError, match="environment variable RANK expected, but not set"):
        dist.init_process_group("gloo")
    dist.init_process_group("gloo", world_size=1, rank=0)
    try:
        assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "gloo")
        assert dist.all_reduce(t) is None and dist.all_reduce(t, async_op=True).wait() and t.tolist() == [0, 1, 2]
        out = [torch.zeros(3)]
        dist.all_gather(out, t)
        assert out[0].tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="expected length 1, got 2"):
            dist.all_gather([torch.zeros(3)] * 2, t)
        with pytest.raises(RuntimeError, match=r"expected \(2,\), got \(3,\)"):
            dist.scatter(torch.zeros(2), [t])
        objects = [None]
        dist.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}] and dist.group.WORLD.size() == 1
        with pytest.raises(ValueError, match="not part of group"):
            dist.broadcast(t, src=1)
        with pytest.raises(ValueError, match="twice"):
            dist.init_process_group("gloo")
        assert len(module("utils.data").DistributedSampler(range(5))) == 5
    finally:
        dist.destroy_process_group()
    assert not dist.is_initialized() and dist.group.WORLD is None


def test_files_from_urls(torch, tmp_path, monkeypatch, capsys):
    hub = module("hub")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "home"))
    assert hub.get_dir() == str(tmp_path / "home" / "hub")
    torch.save({"w": torch.ones(2)}, tmp_path / "source.pt")
    digest = hashlib.sha256((tmp_path / "source.pt").read_bytes()).hexdigest()
    named = tmp_path / f"net-{digest[:8]}.pt"
    named.write_bytes((tmp_path / "source.pt").read_bytes())
    state = hub.load_state_dict_from_url(named.as_uri(), progress=False, check_hash=True)
    assert capsys.readouterr().out.startswith(f'Downloading: "{named.as_uri()}" to ')
    assert state["w"].tolist() == [1, 1] and (tmp_path / "home/hub/checkpoints" / named.name).exists()
    assert module("utils.model_zoo").load_url(named.as_uri(), model_dir=str(tmp_path / "other"))["w"].sum() == 2
    hub.download_url_to_file(named.as_uri(), str(tmp_path / "copy"), digest[:6], progress=False)
    with pytest.raises(RuntimeError, match="invalid hash value"):
        hub.download_url_to_file(named.as_uri(), str(tmp_path / "bad"), "00000000", progress=False)
    assert (tmp_path / "copy").exists() and not (tmp_path / "bad").exists() and not list(tmp_path.glob("*.partial"))
    hub.set_dir(str(tmp_path / "set"))
    assert hub.get_dir() == str(tmp_path / "set")
    monkeypatch.setattr(hub, "_hub_dir" if target.STAND_IN else "_folder", None)


def test_models_of_a_local_folder(torch, tmp_path):
    (tmp_path / "hubconf.py").write_text("def net(n, scale=1):\n    '''A number.'''\n    return n * scale\n")
    hub = module("hub")
    assert hub.load(str(tmp_path), "net", 3, source="local", scale=2) == 6
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(tmp_path), "other", source="local")
    if not target.STAND_IN:
        with pytest.raises(NotImplementedError, match="code of 'a/b' is not downloaded"):
            hub.load("a/b", "net")
        assert hub.list(str(tmp_path), source="local") == ["net"]


class Logged:
    """A tensor-like object that notes what is called on it."""

    seen = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.seen.append((func.__name__, types))
        return "overridden"


def test_functions_of_a_program_can_be_overridden(torch):
    o = module("overrides")
    assert not o.has_torch_function((torch.ones(1), 3)) and o.has_torch_function((Logged(),))
    assert not o.has_torch_function((torch.nn.Parameter(torch.ones(1)),))

    def double(x):
        if o.has_torch_function((x,)):
            return o.handle_torch_function(double, (x,), x)
        return x * 2

    @o.wrap_torch_function(lambda x: (x,))
    def triple(x):
        return x * 3

    assert double(Logged()) == "overridden" and Logged.seen.pop() == ("double", (Logged,))
    assert triple(Logged()) == "overridden" and triple(2) == 6 and double(torch.ones(1)).item() == 2

    class Silent(Logged):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="no implementation found for '.*double'"):
        double(Silent())
    assert o.is_tensor_like(Logged()) and not o.is_tensor_like(3) and o.is_tensor_method_or_property(torch.Tensor.add)
    assert o.resolve_name(torch.Tensor.add) == "torch.Tensor.add"

    class Sub(torch.Tensor):
        pass

    x = torch.ones(1).as_subclass(Sub)
    with torch._C.DisableTorchFunctionSubclass():
        assert not o.has_torch_function((x,))
    assert o.has_torch_function((x,))


def test_the_profiler_counts_calls(torch, tmp_path):
    p = module("profiler")
    x = torch.ones(4, 4)
    with p.profile(record_shapes=True) as prof:
        for _ in range(3):
            y = x @ x
        with p.record_function("block"):
            y.add_(1)
    sums = {e.key: e for e in prof.key_averages()}
    assert sums["aten::matmul"].count == 3 and sums["aten::add_"].count == 1
    assert sums["block"].cpu_time_total >= sums["block"].self_cpu_time_total > 0
    table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    assert "Self CPU time total" in table and "aten::matmul" in table and "# of Calls" in table
    grouped = prof.key_averages(group_by_input_shape=True)
    assert any(e.input_shapes[:2] == [[4, 4], [4, 4]] for e in grouped)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(e.get("name") == "block" for e in events)


@own
def test_the_profiler_survives_errors_and_nests(torch):
    p = module("profiler")
    with p.profile() as prof:
        with pytest.raises(RuntimeError):
            torch.ones(2) @ torch.ones(3)
        with pytest.raises(RuntimeError, match="another profiler runs"), p.profile():
            pass
        w = torch.ones(2, requires_grad=True)
        (w * 2).sum().backward()
    assert all(e.end >= e.start for e in prof.events()) and prof.events().total_average().count > 3
    total = sum(e.cpu_time_total for e in prof.events() if e.cpu_parent is None)
    assert prof.events().self_cpu_time_total == pytest.approx(total)
    with p.record_function("outside"):
        pass
    with pytest.raises(AttributeError, match="no column"):
        prof.key_averages().table(sort_by="nothing")
    assert "aten::" in prof.key_averages().table(sort_by="self_cpu_memory_usage", row_limit=3)
    assert {e.self_cpu_memory_usage for e in prof.key_averages()} == {0} == {e.device_time_total for e in prof.events()}
    old = module("autograd.profiler").profile(use_kineto=torch.autograd.kineto_available())
    assert str(old) == repr(old) == "<unfinished torch.autograd.profile>"
    with old:
        torch.ones(2)
    assert "aten::ones" in str(old) == old.table() and "id=0" in repr(old)


def test_schedules_of_the_profiler(torch, tmp_path):
    p = module("profiler")
    action = p.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    names = [action(i).name for i in range(10)]
    cycle = ["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"]
    assert names == ["NONE", *cycle, *cycle, "NONE"]
    traces = []
    with p.profile(schedule=p.schedule(wait=1, warmup=0, active=1, repeat=2), on_trace_ready=traces.append) as prof:
        for _ in range(5):
            torch.ones(3)
            prof.step()
    assert len(traces) == 2 and any(e.key == "ProfilerStep*" for e in prof.key_averages())
    # What `on_trace_ready` may name its file after; a trace itself has the number of each step.
    numbers = []

    def ready(prof):
        prof.export_chrome_trace(tmp_path / "trace.json")
        events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        numbers.append((prof.step_num, [e["name"] for e in events if e["name"].startswith("ProfilerStep")]))

    with p.profile(schedule=p.schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        for _ in range(8):
            torch.ones(3)
            prof.step()
    steps = [[f"ProfilerStep#{i}" for i in pair] for pair in ((2, 3), (6, 7))]
    assert numbers == [(4, steps[0]), (8, steps[1])]


def test_ranges_of_training_are_events(torch):
    p, data = module("profiler"), module("utils.data")
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(layer.parameters())
    with p.profile() as prof:
        for (x,) in data.DataLoader(data.TensorDataset(torch.ones(4, 2)), batch_size=2):
            layer(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    counts = {e.key: e.count for e in prof.key_averages()}
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 3
    assert counts["Optimizer.step#Adam.step"] == counts["Optimizer.zero_grad#Adam.zero_grad"] == 2
    assert not any(name.startswith("aten::") and name.endswith("__") for name in counts)


def test_timers(torch):
    b = module("utils.benchmark")
    timer = b.Timer("x + 1", "x = torch.ones(3)", label="add", sub_label="three", description="now")
    m = timer.timeit(50)
    assert m.number_per_run == 50 and 0 < m.median < 1 and m.mean == m.median and m.task_spec.label == "add"
    many = timer.blocked_autorange(min_run_time=0.02)
    assert sum(many.raw_times) >= 0.02 and many.iqr >= 0 and "add" in repr(many) and many.significant_figures >= 1
    spec = dataclasses.replace(m.task_spec, setup="x = 1\ny = 2")
    lines = repr(b.Measurement(10, [0.02, 0.03, 0.04, 0.05, 0.06], spec)).splitlines()
    assert lines[1:] == [
        "add: three",
        "now",
        "setup:",
        "  x = 1",
        "  y = 2",
        "",
        "  Median: 4.00 ms",
        "  IQR:    2.00 ms (3.00 to 5.00)",
        "  5 measurements, 10 runs per measurement, 1 thread",
        "  WARNING: Interquartile range is 50.0% of the median measurement.",
        "           This suggests significant environmental influence.",
    ]
    assert repr(b.Measurement(7, [0.07], spec)).endswith("\n  10.00 ms\n  1 measurement, 7 runs , 1 thread")
    text = str(b.Compare([m, many]))
    assert "add" in text and "three" in text and "now" in text
    threads = torch.get_num_threads()
    b.Timer("pass", num_threads=1).timeit(3)
    assert torch.get_num_threads() == threads


@own
def test_devices_and_libraries_that_are_not_there(torch):
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1 and torch.cpu.current_device() == "cpu"
    with torch.cpu.stream(torch.cpu.current_stream()):
        torch.cpu.synchronize()
    assert not torch.mps.is_available() and torch.mps.current_allocated_memory() == 0
    with pytest.raises(RuntimeError, match="no MPS"):
        torch.mps.synchronize()
    for name in ("mkl", "mkldnn", "openmp", "nnpack", "opt_einsum", "cudnn", "cusparselt", "kleidiai"):
        assert getattr(torch.backends, name).is_available() is False
    with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
        pass
    before = torch.backends.cudnn.enabled
    with pytest.raises(KeyError), torch.backends.cudnn.flags(enabled=not before, benchmark=True):
        assert torch.backends.cudnn.enabled is not before and torch.backends.cudnn.benchmark
        raise KeyError
    assert torch.backends.cudnn.enabled is before and not torch.backends.cudnn.benchmark
    with torch.backends.mkldnn.flags(enabled=True):
        assert torch.backends.mkldnn.enabled
    assert not torch.backends.mkldnn.enabled
    assert torch.backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "NEON", "DEFAULT")
    for made in (torch.cuda.Stream, torch.cuda.Event, torch.cuda.current_stream):
        with pytest.raises(RuntimeError, match="there is no CUDA"):
            made()
    with torch.cuda.stream(None):
        pass
    assert torch.cuda.OutOfMemoryError is torch.OutOfMemoryError and torch.cuda.memory_summary() == ""


@own
def test_the_environment_for_reports(torch):
    done = subprocess.run(
        [sys.executable, "-m", "rustgrad.utils.collect_env"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and f"rustgrad version: {torch.__version__}" in done.stdout and "Python" in done.stdout


@own
def test_summary_writer_says_what_it_needs(torch):
    try:
        import tensorboardX  # noqa: F401
    except ImportError:
        with pytest.raises(ImportError, match=r"pip install rustgrad\[tensorboard\]"):
            module("utils.tensorboard")
    else:
        assert issubclass(module("utils.tensorboard").SummaryWriter, tensorboardX.SummaryWriter)


@own
def test_the_summary_of_a_module(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5))
            self.head = nn.Linear(4, 2, bias=False)
            self.head.weight.requires_grad_(False)

        def forward(self, x):
            return self.head(self.body(x)), x

    net = Net()
    net.body.eval()
    found = torch.summary(net, (5, 3))
    assert [(r.name, r.kind, r.depth, r.shape, r.parameters) for r in found.rows] == [
        ("", "Net", 0, "[5, 2], [5, 3]", 0),
        ("body", "Sequential", 1, "[5, 4]", 0),
        ("0", "Linear", 2, "[5, 4]", 16),
        ("1", "ReLU", 2, "[5, 4]", 0),
        ("2", "Dropout", 2, "[5, 4]", 0),
        ("head", "Linear", 1, "[5, 2]", 8),
    ]
    assert (found.total_params, found.trainable_params) == (24, 16) and "16 trainable, 8 fixed" in str(found)
    assert net.training and not net.body.training and not net._forward_hooks
    assert len(torch.summary(net, input_data=torch.ones(1, 3), depth=1).rows) == 3
    tied = nn.Sequential(net.body[0], nn.Linear(4, 3), net.body[0])
    assert [r.parameters for r in torch.summary(tied, [(1, 3)]).rows] == [0, 16, 15, None]
    with pytest.raises(ValueError, match="expected one of input_size and input_data"):
        torch.summary(net)
    with pytest.raises(RuntimeError):
        torch.summary(net, (5, 7))
    assert net.training and not net._forward_hooks and not net.head._forward_pre_hooks


@own
def test_what_a_notebook_shows(torch):
    text = torch.ones(2, 3, requires_grad=True)._repr_html_()
    assert "2&times;3" in text and "torch.float32" in text and "24 B" in text and "requires grad" in text
    assert "from MulBackward0" in (torch.ones(1, requires_grad=True) * 2)._repr_html_()

    class Odd(torch.nn.Linear):
        def extra_repr(self):
            return "<script>"

    shown = torch.nn.Sequential(torch.nn.Linear(2, 2), Odd(2, 2)).eval()._repr_html_()
    assert "&lt;script&gt;" in shown and "<script>" not in shown and "12 parameters" in shown and "eval" in shown


def test_the_preferred_library_of_cuda_is_stored(torch):
    cuda = torch.backends.cuda
    assert cuda.preferred_linalg_library() == "default" and cuda.preferred_linalg_library("magma") == "magma"
    assert cuda.preferred_linalg_library() == "magma"
    with pytest.raises(RuntimeError, match="Choose from"):
        cuda.preferred_linalg_library("other")
    cuda.preferred_linalg_library("default")
