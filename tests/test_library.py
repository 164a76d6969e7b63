"""Ops that a program defines in Python, `ops`, and names of PyTorch that libraries look up when they are imported."""

import importlib
import pickle
import subprocess
import sys
import typing

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="registers ops; what it looks up is rustgrad's own")


@pytest.fixture
def double(torch):
    from rustgrad import _ops

    @torch.library.custom_op("testlib::double", mutates_args=())
    def double(x: torch.Tensor, n: int = 2) -> torch.Tensor:
        return x.detach() * n

    yield double
    _ops.forget("testlib", "double")


def test_an_op_of_a_program(torch, double):
    x = torch.ones(2, requires_grad=True)
    assert double(x, 3).tolist() == torch.ops.testlib.double(x, 3).tolist() == [3, 3]
    assert torch.ops.testlib.double.default(x).tolist() == [2, 2]
    assert double._schema == "(Tensor x, SymInt n=2) -> Tensor"
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        double(x).sum().backward()


def test_its_gradient_and_shapes(torch, double):
    def setup(ctx, inputs, output):
        ctx.n = inputs[1]

    double.register_autograd(lambda ctx, g: (g * ctx.n, None), setup_context=setup)
    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: double(x, 5), (x,))
    with pytest.raises(NotImplementedError, match="register_fake"):
        double(torch.ones(2, device="meta"))
    double.register_fake(lambda x, n=2: torch.empty_like(x))
    assert double(torch.ones(2, device="meta")).shape == (2,)


def test_kernels_by_device_and_the_older_way(torch):
    library = torch.library.Library("testlib2", "DEF")
    try:
        library.define("inc(Tensor x) -> Tensor")
        with pytest.raises(NotImplementedError, match="Could not run"):
            torch.ops.testlib2.inc(torch.ones(1))
        library.impl("inc", lambda x: x + 1, "CPU")
        x = torch.ones(1, requires_grad=True)
        torch.ops.testlib2.inc(x).backward()
        assert x.grad.item() == 1
        with pytest.raises(RuntimeError, match="does not exist"):
            torch.library.register_autograd("testlib2::absent", lambda ctx, g: g)
    finally:
        library._destroy()
    assert not hasattr(torch.ops.testlib2, "inc")


def test_kernels_may_come_before_the_op(torch):
    library = torch.library.Library("testlib_early", "FRAGMENT")
    try:
        torch.library.impl("testlib_early::inc", ["CPU"])(lambda x, by: x + by)
        torch.library.impl("testlib_early::inc", "MPS")(lambda x, by: x - by)
        assert not hasattr(torch.ops.testlib_early, "inc")
        library.define("inc(Tensor x, int by) -> Tensor")
        assert torch.ops.testlib_early.inc(torch.ones(1), 2).item() == 3
    finally:
        library._destroy()


def test_schemas_need_annotations(torch):
    def bare(x):
        return x

    with pytest.raises(ValueError, match="must have a type annotation"):
        torch.library.infer_schema(bare, mutates_args=())
    with pytest.raises(ValueError, match="expected 'namespace::name'"):
        torch.library.custom_op("bare", bare, mutates_args=(), schema="(Tensor x) -> Tensor")

    def full(x: torch.Tensor, y: list[torch.Tensor], s: float = 1.0, z: torch.Tensor | None = None) -> torch.Tensor:
        return x

    schema = torch.library.infer_schema(full, mutates_args={"x"})
    assert schema == "(Tensor(a0!) x, Tensor[] y, float s=1.0, Tensor? z=None) -> Tensor"


def test_ops_by_namespace(torch):
    assert torch.ops.aten.relu(torch.tensor([-1.0])).item() == 0
    assert str(torch.ops.aten.mm.default) == "aten.mm.default" and torch.ops.aten.mm is torch.ops.aten.mm
    with pytest.raises(NotImplementedError, match="no such op"):
        torch.ops.aten.no_such_op(1)
    with pytest.raises(AttributeError):
        _ = torch.ops.testlib.no_such_op


def test_functions_of_aten(torch):
    aten, nn = torch.ops.aten, torch.nn.functional
    x, g = torch.randn(2, 3, 6, 6, requires_grad=True), torch.randn(2, 3, 6, 6)
    by = lambda f: torch.autograd.grad(f(x), x, g)[0]  # noqa: E731
    y = x.detach()
    torch.testing.assert_close(aten._softmax_backward_data(g, y.softmax(1), 1, y.dtype), by(lambda a: a.softmax(1)))
    logs = y.log_softmax(1)
    torch.testing.assert_close(aten._log_softmax_backward_data(g, logs, 1, y.dtype), by(lambda a: a.log_softmax(1)))
    torch.testing.assert_close(aten.silu_backward(g, y), by(nn.silu))
    torch.testing.assert_close(aten.mish_backward(g, y), by(nn.mish))
    torch.testing.assert_close(
        aten.gelu_backward(g, y, approximate="tanh"), by(lambda a: nn.gelu(a, approximate="tanh"))
    )
    torch.testing.assert_close(aten.threshold_backward(g, y, 0.5), by(lambda a: nn.threshold(a, 0.5, 0)))
    torch.testing.assert_close(aten.native_dropout_backward(g, y > 0, 2.0), g * (y > 0) * 2)
    out, at = nn.max_pool2d(x, 2, return_indices=True)
    found = aten.max_pool2d_with_indices_backward(g[..., ::2, ::2], y, 2, 2, 0, 1, False, at)
    torch.testing.assert_close(found, torch.autograd.grad(out, x, g[..., ::2, ::2])[0])
    view = aten.slice.Tensor(y, 2, 1, -1, 2)
    assert view.data_ptr() == y[:, :, 1:-1:2].data_ptr() and torch.equal(view, y[:, :, 1:-1:2])
    gone = torch.full((2, 2), -torch.inf)
    gone.requires_grad_()
    aten._safe_softmax(gone, 1).sum().backward()
    assert aten._safe_softmax(gone, 1).tolist() == gone.grad.tolist() == [[0, 0], [0, 0]]
    mean, var = torch.zeros(3), torch.ones(3)
    out, _, _, reserve = aten._batch_norm_with_update(y, None, None, mean, var, 0.1, 1e-5)
    torch.testing.assert_close(out, nn.batch_norm(y, None, None, training=True))
    torch.testing.assert_close(mean, y.mean((0, 2, 3)) * 0.1)
    assert reserve.dtype == torch.uint8 and reserve.numel() == 0


@pytest.mark.parametrize(
    "call",
    [
        "sparse_bsr_tensor([0, 1], [0], [1.0])",
        "distributed.rpc.init_rpc('a')",
        "library.wrap_triton(None)",
    ],
)
def test_what_is_not_here_says_so(torch, call):
    name, _, arguments = call.partition("(")
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(NotImplementedError, match="here"):
        eval(f"f({arguments}", {"f": function})


def test_marks_of_quantisation_do_nothing(torch):
    x = torch.ones(2)
    wrapped = torch.ao.quantization.QuantWrapper(torch.nn.Identity())
    assert wrapped(x) is x and torch.quantization.QuantStub is torch.ao.quantization.QuantStub


def test_bases_of_observers_can_be_derived_from(torch):
    class Rounds(torch.ao.quantization.FakeQuantizeBase):
        def forward(self, x):
            return x.round() if self.fake_quant_enabled else x

        def calculate_qparams(self):
            return 1, 0

    class Sees(torch.ao.quantization.ObserverBase):
        forward = calculate_qparams = lambda self, x=None: x

    rounds, x = Rounds(), torch.tensor([0.7])
    assert list(rounds.state_dict()) == ["fake_quant_enabled", "observer_enabled"] and rounds(x) == 1
    rounds.disable_fake_quant()
    rounds.enable_observer(False)
    assert rounds(x) == x and rounds.observer_enabled == 0
    sees = Sees.with_args(dtype=torch.uint8).with_args(is_dynamic=True)()
    assert sees.dtype == torch.uint8 and sees.is_dynamic
    with pytest.raises(TypeError, match="abstract"):
        torch.ao.quantization.ObserverBase(torch.uint8)


def test_options_of_the_compiler_are_kept(torch):
    config = torch._dynamo.config
    config.cache_size_limit = 3
    with config.patch(cache_size_limit=5):
        assert config.cache_size_limit == 5
    assert config.cache_size_limit == 3 and torch._inductor.config.nobody_set_this is None


def test_checks(torch):
    torch._check(True)
    with pytest.raises(RuntimeError, match="too small"):
        torch._check(False, lambda: "too small")
    with pytest.raises(IndexError):
        torch._check_index(False)
    with pytest.raises(TypeError, match="_check_tensor_all"):
        torch._check(torch.ones(1))
    torch._check_tensor_all(torch.ones(2) > 0)


def test_futures(torch):
    assert torch.futures.Future[int]().done() is False
    future = torch.futures.Future()
    seen = future.then(lambda f: f.wait() + 1)
    assert not future.done()
    future.set_result(1)
    assert torch.futures.wait_all([future, seen]) == [1, 2]
    with pytest.raises(RuntimeError, match="only be set once"):
        future.set_result(2)


def test_annotations_of_layers_can_be_evaluated(torch):
    """Libraries call `get_type_hints` on the classes of their models, which are derived from these."""
    layers = [c for c in vars(torch.nn).values() if isinstance(c, type)]
    assert len(layers) > 100
    for layer in layers:
        typing.get_type_hints(layer)


SCRIPT = """
import torch, math
assert torch.__name__ == "torch" and torch.nn is __import__("torch.nn").nn
keys = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
a = torch.ones(2, 2)
with torch.autocast("cpu", dtype=torch.bfloat16):
    assert (a @ a).dtype is torch.bfloat16
    with torch._C._ExcludeDispatchKeyGuard(keys):
        assert (a @ a).dtype is torch.float32
assert torch._C._get_tracing_state() is None
from torch._subclasses import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode
assert get_proxy_mode() is None
from torch._subclasses.fake_tensor import FakeTensorMode, is_fake
assert not is_fake(torch.ones(1, device="meta")) and not isinstance(a, FakeTensor)
assert "torch._dispatch._stack" not in __import__("sys").modules
def symbolic(g: torch._C.Graph, x: torch._C.Value) -> torch._C.Node: pass
try:
    torch._C.Graph()
except TypeError as error:
    assert "No constructor defined" in str(error)
from torch.onnx import symbolic_opset11
from torch.onnx.symbolic_helper import parse_args
from torch.jit.annotations import BroadcastingList2
from torch._dynamo.utils import is_compile_supported
from torch._tensor_str import PRINT_OPTS, _tensor_str
assert _tensor_str(torch.ones(2, 2), 3) == "[[1., 1.],\\n    [1., 1.]]" and PRINT_OPTS.precision == 4
assert torch._tensor_str._tensor_str(torch.tensor(2.0), 0) == "2."
"""


def test_names_that_libraries_look_up(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, "-m", "rustgrad", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_attention_returns_what_was_asked_for(torch):
    from rustgrad.nn.attention.flex_attention import AuxRequest, flex_attention

    q = torch.randn(1, 2, 3, 4)
    output, aux = flex_attention(q, q, q, return_aux=AuxRequest(lse=True, max_scores=True))
    scores = q @ q.mT / 2
    assert torch.equal(output, flex_attention(q, q, q))
    torch.testing.assert_close(aux.lse, scores.logsumexp(-1))
    torch.testing.assert_close(aux.max_scores, scores.amax(-1))
    assert flex_attention(q, q, q, return_aux=AuxRequest())[1] == (None, None)
    with pytest.raises(ValueError, match="both return_lse and return_aux"):
        flex_attention(q, q, q, return_lse=True, return_aux=AuxRequest())


TENSORBOARD = """
import sys, types
package, record = types.ModuleType("tensorboardX"), types.ModuleType("tensorboardX.record_writer")

class SummaryWriter:
    def add_scalar(self, tag, value, step=None):
        print(tag, type(value).__module__, float(value))
    def add_images(self, tag, images):
        print(tag, [type(image).__name__ for image in images["a"]])

package.SummaryWriter, package.FileWriter, record.RecordWriter = SummaryWriter, object, object
sys.modules.update({"tensorboardX": package, "tensorboardX.record_writer": record})
import torch
from torch.utils.tensorboard import SummaryWriter
writer = SummaryWriter()
writer.add_scalar("loss", torch.tensor(2.0, requires_grad=True), 1)
writer.add_scalar("loss", value=0.5)
writer.add_images("pictures", {"a": [torch.ones(1)]})
"""


def test_tensorboard_gets_arrays(tmp_path):
    """tensorboardX knows PyTorch's tensors by their name; a stand-in for it prints what it is given."""
    script = tmp_path / "script.py"
    script.write_text(TENSORBOARD)
    done = subprocess.run([sys.executable, "-m", "rustgrad", script], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["loss numpy 2.0", "loss builtins 0.5", "pictures ['ndarray']"], done.stderr


GRAPH = """
import sys, types

class Message:
    def __init__(self, **parts):
        self.__dict__.update(parts)

class SummaryWriter:
    def _get_file_writer(self):
        return self

def add_graph(self, drawn):
    for node in drawn[0].node:
        print(node.name, node.op, *getattr(node, "input", ()))
    print(drawn[1].SerializeToString())

package, record = types.ModuleType("tensorboardX"), types.ModuleType("tensorboardX.record_writer")
package.SummaryWriter, package.FileWriter, record.RecordWriter = SummaryWriter, object, object
sys.modules.update({"tensorboardX": package, "tensorboardX.record_writer": record, "tensorboardX.proto": types.ModuleType("p")})
for name, kind in (("graph", "GraphDef"), ("node_def", "NodeDef"), ("versions", "VersionDef")):
    module = sys.modules[f"tensorboardX.proto.{name}_pb2"] = types.ModuleType(name)
    setattr(module, kind, Message)
import torch
from torch.utils.tensorboard import SummaryWriter as Writer

class Files(Writer):
    def _get_file_writer(self):
        return types.SimpleNamespace(add_graph=lambda drawn: add_graph(self, drawn))

net = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(2, 3, bias=False)), torch.nn.ReLU())
Files().add_graph(net, torch.ones(1, 2))
"""


def test_tensorboard_draws_a_model(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(GRAPH)
    done = subprocess.run([sys.executable, "-m", "rustgrad", script], capture_output=True, text=True)
    weight = "Sequential/Sequential[0]/Linear[0]/weight"
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[:2] == [["input/input", "IO", "Node"], [weight, "Parameter"]], done.stderr
    (linear, *_), (relu, *_) = lines[2:4]
    assert lines[2] == [linear, "aten::linear", "input/input", weight] and linear.startswith(
        "Sequential/Sequential[0]/Linear[0]/"
    )
    assert lines[3:] == [[relu, "aten::relu", linear], ["output/output.1", "IO", "Node", relu], ["b''"]]


def test_settings_of_attention(torch):
    cuda = torch.backends.cuda
    cuda.enable_flash_sdp(False)
    assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    with pytest.warns(FutureWarning, match="sdp_kernel.* is deprecated"), cuda.sdp_kernel(enable_math=False):
        assert cuda.flash_sdp_enabled() and not cuda.math_sdp_enabled()
    assert not cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
    cuda.enable_flash_sdp(True)


def test_a_progress_bar_without_tqdm(torch, monkeypatch, capsys):
    import rustgrad.utils.model_zoo as zoo

    monkeypatch.setitem(sys.modules, "tqdm", None)
    with zoo.tqdm(total=8, unit="B", unit_scale=True) as bar:
        bar.update(2)
        bar.update(6)
    with zoo.tqdm(disable=True) as silent:
        silent.update(3)
    assert capsys.readouterr().err == "\r25.0%\r100.0%\n"


def test_names_of_symbolic_numbers(torch):
    for kind in (torch.SymInt, torch.SymFloat, torch.SymBool):
        assert not any(isinstance(x, kind) for x in (1, 1.0, True, torch.ones(2).shape[0]))
        with pytest.raises((TypeError, AttributeError)):
            kind(3)


def test_assert_async(torch):
    for held in (torch.tensor(True), torch.tensor([1]), torch.tensor(0.5)):
        assert torch._assert_async(held) is None
    for tensor, message in (
        (torch.tensor(False), "Expected Tensor with single nonzero value, but got zero"),
        (torch.ones(2), "more than one value is ambiguous"),
        (torch.zeros(0), "no values is ambiguous"),
    ):
        with pytest.raises(RuntimeError, match=message):
            torch._assert_async(tensor)
    with pytest.raises(RuntimeError, match="^bad$"):
        torch._assert_async(torch.tensor(0.0), "bad")
    with pytest.raises(TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not int"):
        torch._assert_async(1)


def test_errors_of_futures(torch):
    future = torch.futures.Future()
    divided, waited = future.then(lambda f: 1 / 0), future.then(lambda f: f.wait())
    future.set_exception(ValueError("lost"))
    with pytest.raises(ValueError, match="lost"):
        future.wait()
    with pytest.raises(
        RuntimeError, match="Got the following error when running the callback: ZeroDivisionError: division"
    ):
        divided.wait()
    with pytest.raises(RuntimeError, match="running the callback: ValueError: lost"):
        torch.futures.wait_all([waited])
    for refused in (torch.futures.wait_all, torch.futures.collect_all):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            refused([future, None])
    with pytest.raises(RuntimeError, match="Can not pickle torch.futures.Future"):
        pickle.dumps(future)


def test_updates_of_weak_dictionaries(torch):
    weak = importlib.import_module(f"{torch.__name__}.utils.weak")
    keys = [torch.ones(2), torch.ones(2)]

    class Pairs:
        def keys(self):
            return keys

        def __getitem__(self, key):
            return [k is key for k in keys].index(True)

    class Breaking(Pairs):
        def __getitem__(self, key):
            if key is keys[1]:
                raise OSError
            return 7

    found = weak.WeakIdKeyDictionary()
    found.update(Pairs())
    assert [found[k] for k in keys] == [0, 1]
    found.update([(keys[0], 5)])
    assert found[keys[0]] == 5
    with pytest.raises(OSError):
        found.update(Breaking())
    assert [found[k] for k in keys] == [5, 1]
    with pytest.raises(TypeError):
        found.update(42)


def test_aten_ops_take_self_by_name(torch):
    aten, x = torch.ops.aten, torch.arange(4.0).view(2, 2)
    assert aten.add(self=x, other=x).sum() == 12 == aten.add.Tensor(self=x, other=x).sum()
    assert aten.sum.dim_IntList(self=x, dim=[0]).tolist() == [2, 4]
    assert aten.view.default(self=x, size=[4]).tolist() == [0, 1, 2, 3]
    assert aten.where.self(condition=x > 1, self=x, other=-x).tolist() == [[0, -1], [2, 3]]
    assert aten.pow(self=2.0, exponent=x).tolist() == [[1, 2], [4, 8]]
    assert aten._to_copy(self=x, dtype=torch.float64).dtype == torch.float64
    image = x.view(1, 1, 2, 2)
    assert aten.upsample_nearest2d(self=image, output_size=[3, 3]).sum() == 9
    found = aten.upsample_bilinear2d(image, None, align_corners=False, scale_factors=[2.0, 2.0])
    assert torch.equal(found, torch.nn.functional.interpolate(image, scale_factor=2.0, mode="bilinear"))
    with pytest.raises(TypeError, match="'corners'"):
        aten.upsample_bilinear2d(image, [2, 2], corners=False)
    with pytest.raises(TypeError):
        aten.add(x, x, self=x)
