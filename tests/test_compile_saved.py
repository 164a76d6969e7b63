"""Plans as files: what is loaded computes what the function computed, bit by bit, and damaged files are refused."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from support import plan_files, target
from test_compile import bits

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="PyTorch's files of exported programs are others")
DATA = Path(__file__).parent / "golden"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "plan.rgx"


def alike(torch, f, path, *args, calls=3, **kwargs):
    """Saves `f`, and compares calls of the loaded program with calls of `f`."""
    torch.compiler.save(f, path, *args, **kwargs)
    program = torch.compiler.load(path)
    for _ in range(calls):
        torch.manual_seed(3)
        ours = program(*args, **kwargs)
        torch.manual_seed(3)
        with torch.no_grad():
            expected = f(*args, **kwargs)
        assert bits(torch, ours) == bits(torch, expected)
    return program


def classifier(torch):
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 16), nn.GELU(),
        nn.LayerNorm(16), nn.Dropout(0.5), nn.Linear(16, 10),
    )  # fmt: skip


@pytest.mark.parametrize("training", [False, True])
def test_a_classifier(torch, path, training):
    model = classifier(torch).train(training)
    x = torch.randn(2, 1, 8, 8)
    if training:
        # Saving runs the model too, which moves its running statistics: those of the file are from then on.
        torch.compiler.save(model, path, x)
        program = torch.compiler.load(path)
        for _ in range(3):
            torch.manual_seed(5)
            ours = program(x)
            torch.manual_seed(5)
            assert bits(torch, ours) == bits(torch, model(x).detach())
    else:
        program = alike(torch, model, path, x)
    named = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    state = program.state_dict()
    assert state.keys() <= named.keys() and "0.weight" in state and "1.running_mean" in state
    assert all(bits(torch, state[n]) == bits(torch, named[n].detach()) for n in state)


def test_a_compiled_module_and_a_transformer(torch, path):
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    alike(torch, torch.compile(layer), path, torch.randn(2, 5, 16))


def test_a_training_step_goes_on_in_the_program(torch, path):
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    x, y = torch.randn(5, 3), torch.randn(5, 1)

    def step(x, y):
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss}

    torch.compiler.save(step, path, x, y)
    program = torch.compiler.load(path)
    for _ in range(5):
        ours, expected = program(x, y)["loss"], step(x, y)["loss"].detach()
        assert bits(torch, ours) == bits(torch, expected)
    state = program.state_dict()
    assert bits(torch, state["weight"]) == bits(torch, model.weight.detach())


def test_accumulated_gradients(torch, path):
    w = torch.ones(3, requires_grad=True)

    def step(x):
        (w * x).sum().backward()
        return w.grad.clone()

    step(torch.ones(3))
    torch.compiler.save(step, path, torch.ones(3))
    program = torch.compiler.load(path)
    for _ in range(3):
        assert bits(torch, program(torch.ones(3))) == bits(torch, step(torch.ones(3)))


def test_memory_is_shared_as_it_was(torch, path):
    base = torch.arange(12.0)
    rows, wide, other = base.view(3, 4), base[2:6], base.view(torch.int32)[8:]

    def f(x):
        wide.add_(x)
        other.mul_(2)
        return rows * 1, wide.t() if wide.dim() == 2 else wide, base

    torch.compiler.save(f, path, torch.ones(4))
    program = torch.compiler.load(path)
    for _ in range(3):
        assert bits(torch, program(torch.ones(4))) == bits(torch, f(torch.ones(4)))
    out = program(torch.ones(4))
    before = out[2].clone()
    out[1].zero_()
    assert (out[2] != before).any(), "the second result is a view of the third"
    x = torch.zeros(4)
    g = lambda a: (a.add_(1), a)[1]  # noqa: E731
    torch.compiler.save(g, path, x)
    given = torch.zeros(4)
    assert torch.compiler.load(path)(given) is given and given.tolist() == [1] * 4


def test_arguments_that_are_no_tensors_and_trees(torch, path):
    def f(x, k, *rest, flag=True, names=None):
        parts = {"a": [x["p"] * k, (x["q"], None)], 1: names, "s": "text", "n": float("inf"), "d": torch.float64}
        return parts if flag else None

    x = {"p": torch.ones(2), "q": torch.ones(3, dtype=torch.int64)}
    program = alike(torch, f, path, x, 0.1, flag=True, names=("u", 2j, b"x"))
    assert [n for n, *_ in program.inputs] == ["x['p']", "x['q']"]
    assert bits(torch, program(x)) == bits(torch, program(k=0.1, x=x))
    for args, kwargs, error, text in [
        ((x, 0.2), {}, ValueError, "argument 'k' is 0.2; expected 0.1"),
        ((x, 0.1), {"flag": 1}, ValueError, "argument 'flag' is 1; expected True"),
        ((), {}, TypeError, "missing argument 'x'"),
        ((x,), {"x": x}, TypeError, "multiple values for argument 'x'"),
        ((x,), {"z": 1}, TypeError, "unexpected argument 'z'"),
        ((x, 0.1, 2), {}, TypeError, "at most 2 positional"),
        (({"p": x["p"]},), {}, TypeError, "expected a dict with the keys"),
        (({"p": 1, "q": x["q"]},), {}, TypeError, "must be Tensor, not int"),
        (({"p": x["p"].double(), "q": x["q"]},), {}, TypeError, "is float64; expected float32"),
        (({"p": torch.ones(3), "q": x["q"]},), {}, ValueError, "has shape [3]; expected [2]"),
        (({"p": torch.ones(4)[::2], "q": x["q"]},), {}, ValueError, "has strides [2]; expected [1]"),
    ]:
        with pytest.raises(error) as told:
            program(*args, **kwargs)
        assert text in str(told.value)


def test_aliases_of_arguments_are_those_of_the_example(torch, path):
    def f(a, b):
        a.add_(1)
        return a + b

    base = torch.zeros(6)
    torch.compiler.save(f, path, base[:2], base[1:3])
    program = torch.compiler.load(path)
    again = torch.zeros(6)
    assert bits(torch, program(again[:2], again[1:3])) == bits(torch, f(torch.zeros(6)[:2], torch.tensor([1.0, 0])))
    for a, b in [(again[:2], again[2:4]), (torch.zeros(2), torch.zeros(2)), (again[:2],) * 2]:
        with pytest.raises(ValueError, match="when the plan was saved"):
            program(a, b)
    x = torch.ones(2)
    torch.compiler.save(f, path, x, x)
    program = torch.compiler.load(path)
    assert program(x, x) is not x
    with pytest.raises(ValueError, match="was the same tensor as"):
        program(x, torch.ones(2))
    torch.compiler.save(f, path, x, torch.ones(2))
    program = torch.compiler.load(path)
    with pytest.raises(ValueError, match="was another tensor than"):
        program(x, x)


def test_modes_of_the_caller_do_not_reach_in(torch, path):
    w = torch.ones(2, 2, requires_grad=True)
    program = alike(torch, lambda x: x @ w + torch.ones(2), path, torch.ones(2, 2))
    x = torch.ones(2, 2, requires_grad=True)
    assert not program(x).requires_grad
    with torch.autocast("cpu", torch.bfloat16):
        assert program(x).dtype == torch.float32
    with torch.device("meta"):
        assert program(x).device.type == "cpu"
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(RuntimeError, match="default dtype is float64; expected float32"):
            program(x)
    finally:
        torch.set_default_dtype(torch.float32)


def test_random_numbers(torch, path):
    generator = torch.Generator().manual_seed(11)
    alike(torch, lambda x: torch.nn.functional.dropout(x, 0.3) + torch.randn(4), path, torch.ones(4))
    f = lambda x: x + torch.rand(4, generator=generator)  # noqa: E731
    torch.compiler.save(f, path, torch.zeros(4))
    program = torch.compiler.load(path)
    assert [program(torch.zeros(4)).tolist() for _ in range(3)] == [f(torch.zeros(4)).tolist() for _ in range(3)]


def test_threads_run_one_program_and_calls_take_no_memory(torch, path):
    model = classifier(torch).eval()
    x = torch.randn(2, 1, 8, 8)
    torch.compiler.save(model, path, x)
    program = torch.compiler.load(path)
    expected = bits(torch, model(x).detach())
    problems = []

    def work():
        for _ in range(50):
            if bits(torch, program(x)) != expected:
                problems.append(1)

    work()
    counts = torch._C.live_counts()
    threads = [threading.Thread(target=work) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not problems and torch._C.live_counts() == counts


def test_numbers_keep_their_bits(torch, path):
    x = torch.ones(2, dtype=torch.float64)
    numbers = [0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), 1 / 3]
    alike(
        torch,
        lambda x: [x * n for n in numbers] + [x + (2**53 + 1), x * 1e22, x * complex(0.1, float("-inf"))],
        path,
        x,
    )
    alike(torch, lambda x: (x.max(0), torch.linalg.eigh(torch.outer(x, x))), path, x)
    complexes = torch.randn(3, dtype=torch.complex128)
    halves = torch.randn(3).to(torch.bfloat16)
    alike(torch, lambda x: (complexes * 2, halves * x), path, x[:1].float())


@pytest.mark.parametrize(
    ("f", "reason"),
    [
        (lambda x: print(x), "uses print"),
        (lambda x: x[x > 0], "depends on values"),
        (lambda x: x.sum().item(), "reads the values"),
        (lambda x: x.to("meta"), ""),
        (lambda x: object, "an object of type type"),
    ],
)
def test_what_cannot_be_saved_says_why(torch, path, f, reason):
    if not reason:
        f(torch.ones(2))
        torch.compiler.save(f, path, torch.ones(2))
        assert torch.compiler.load(path)(torch.ones(2)).device.type == "meta"
        return
    with pytest.raises(torch.compiler.Unsupported, match=reason):
        torch.compiler.save(f, path, torch.ones(2))
    assert not any(path.parent.iterdir()), "nothing is left of a file that was not written"


def test_paths_that_cannot_be_used(torch, tmp_path):
    with pytest.raises(FileNotFoundError):
        torch.compiler.load(tmp_path / "absent.rgx")
    with pytest.raises(OSError, match="absent"):
        torch.compiler.save(lambda x: x + 1, tmp_path / "absent" / "x.rgx", torch.ones(2))
    with pytest.raises((OSError, RuntimeError)):
        torch.compiler.load(tmp_path)


def test_files_of_other_versions_and_kinds(torch, path):
    torch.compiler.save(lambda x: x + 1, path, torch.ones(2))
    header, graph, rest = plan_files.parts(path.read_bytes())
    texts = header["__metadata__"]
    assert texts["version"] == "1" and texts["producer"].startswith("rustgrad ")

    def refused(match, graph=graph, **changed):
        kept = {k: v for k, v in {**texts, **changed}.items() if v is not None}
        path.write_bytes(plan_files.joined({**header, "__metadata__": kept}, graph, rest))
        with pytest.raises(torch.compiler.PlanError, match=match):
            torch.compiler.load(path)

    refused("wrote the file in version 2; expected 1 or less. Update rustgrad", version="2")
    refused("no version 'x'", version="x")
    refused("the file is no plan", format="pt")
    refused("has no text 'interface'", interface=None)
    refused("does not say what is called", interface="[]")
    refused("does not say what is called", interface="[" * 100_000)
    step = graph["steps"][0]
    absent = {**graph, "steps": [{**step, "op": "add.later"}]}
    refused("the op 'add.later' is not known to rustgrad .* written by other 9", absent, producer="other 9")
    refused("add has no argument 'beta'", {**graph, "steps": [{**step, "args": {**step["args"], "beta": 1}}]})
    refused("unknown field 'when'", {**graph, "steps": [{**step, "when": 1}]})
    # An argument that a later version adds has its default where an older file lacks it.
    fewer = {k: v for k, v in step["args"].items() if k != "alpha"}
    path.write_bytes(plan_files.joined(header, {**graph, "steps": [{**step, "args": fewer}]}, rest))
    assert torch.compiler.load(path)(torch.ones(2)).tolist() == [2, 2]


def test_chosen_damages(torch, path):
    w = torch.ones(2, requires_grad=True)

    def f(x):
        (w * x).sum().backward()
        return x.data + w.detach()

    torch.compiler.save(f, path, torch.ones(2))
    header, graph, rest = plan_files.parts(path.read_bytes())
    steps, tensors = graph["steps"], graph["tensors"]

    def refused(changed, match):
        path.write_bytes(plan_files.joined(header, {**graph, **changed}, rest))
        with pytest.raises(torch.compiler.PlanError, match=match):
            torch.compiler.load(path)

    refused({"steps": steps[::-1]}, "not there|another kind")
    refused({"steps": steps + steps}, "there already|another kind|not made for it")
    refused({"results": [10**9]}, "not there")
    refused({"results": []}, "not that of the plan")
    refused({"sources": [{"grad_of": 0}, *graph["sources"]]}, "no input and no tensor")
    refused({"tensors": [{**t, "offset": 5} for t in tensors]}, "within its memory")
    refused({"tensors": [{**t, "strides": [2**62]} for t in tensors]}, "strides")
    refused({"tensors": [{**t, "shape": [2**62]} for t in tensors]}, "strides")
    refused({"tensors": [{**t, "memory": "nothing"} for t in tensors]}, "no tensor 'nothing'")
    refused({"tensors": [{**t, "grad": 0} for t in tensors]}, "gradient")
    own = [i for i, s in enumerate(graph["sources"]) if s and "tensor" in s]
    refused({"steps": [*steps, {"set_grad": own[0], "to": own[0]}]}, "not made for it")
    refused(
        {"steps": [{**s, "form": "in_place"} if s.get("op") == "t" else s for s in [*steps, _view(graph)]]}, "in place"
    )
    (length,) = __import__("struct").unpack("<Q", (data := path.read_bytes())[:8])
    for cut in (0, 7, 8, length // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(torch.compiler.PlanError):
            torch.compiler.load(path)


def _view(graph):
    at = len(graph["sources"]) - 1
    return {"op": "t", "form": "in_place", "args": {"self": {"tensor": at}}, "results": [at]}


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_raise_one_class_of_errors(seed, tmp_path):
    count = os.environ.get("RUSTGRAD_DAMAGED_PLANS", "300")
    environment = {
        **os.environ,
        "RUSTGRAD_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-X", "faulthandler", "-m", "support.damaged_plans", str(seed), count, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    *problems, last = [*done.stdout.splitlines(), ""][:-1] or [""]
    if done.returncode or last != "done":
        _, graph, _ = plan_files.parts((tmp_path / "last.rgx").read_bytes())
        pytest.fail(f"the process ended with {done.returncode} on {json.dumps(graph)[:2000]}\n{done.stderr[-3000:]}")
    assert not problems, "\n".join(problems[:20])


def recorded(torch):
    """The classifier in `tests/golden/plan.rgx`."""
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 10), nn.Softmax(1))


def test_the_recorded_file_is_up_to_date(torch, path):
    """What `tests/run_plan.rs` loads is what is written today; RUSTGRAD_WRITE=1 writes it anew."""
    np = pytest.importorskip("numpy", reason="the inputs of the Rust test are NumPy files")
    model, file = recorded(torch).eval(), DATA / "plan.rgx"
    if os.environ.get("RUSTGRAD_WRITE"):
        torch.manual_seed(0)
        model, x = recorded(torch).eval(), torch.randn(2, 1, 8, 8)
        torch.compiler.save(model, file, x)
        np.save(DATA / "plan_input.npy", x.numpy())
        np.save(DATA / "plan_output.npy", model(x).detach().numpy())
    program = torch.compiler.load(file)
    model.load_state_dict(program.state_dict())
    x, y = (torch.from_numpy(np.load(DATA / f"plan_{name}.npy")) for name in ("input", "output"))
    torch.compiler.save(model, path, x)
    (old, graph, tensors), (new, *now) = (plan_files.parts(p.read_bytes()) for p in (file, path))
    assert [graph, tensors] == now
    for header in (old, new):
        del header["__metadata__"]["producer"], header["__metadata__"]["graph"]
    assert old == new
    assert bits(torch, program(x)) == bits(torch, model(x).detach())
    assert torch.allclose(program(x), y, rtol=0, atol=1e-6)


def test_on_the_gpu(torch, path):
    if reason := target.gpu_reason():
        pytest.skip(reason)
    model = classifier(torch).eval()
    x = torch.randn(2, 1, 8, 8)
    torch.compiler.save(model, path, x)
    program = torch.compiler.load(path, device="gpu")
    assert {str(t.device) for t in program.state_dict().values()} == {"gpu:0"}
    assert torch.allclose(program(x.gpu()).cpu(), model(x).detach(), rtol=1e-4, atol=1e-5)
    with pytest.raises(RuntimeError, match="is on cpu; expected gpu:0"):
        program(x)
    torch.compiler.save(model.to("gpu"), path, x.gpu())
    back = torch.compiler.load(path, device="cpu")
    assert torch.allclose(back(x), model(x.gpu()).detach().cpu(), rtol=1e-4, atol=1e-5)
