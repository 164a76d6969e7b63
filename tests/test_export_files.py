"""`torch.export.save` and `load`: PyTorch's `.pt2` archives; those in `golden` are written by PyTorch (golden/record_export.py)."""

import builtins
import io
import json
import math
import pathlib
import pickle
import zipfile

import pytest
from support import target

torch = target.torch
nn = torch.nn
Dim, export, load, save = torch.export.Dim, torch.export.export, torch.export.load, torch.export.save
GOLDEN = pathlib.Path(__file__).parent / "golden"


def opened(name):
    extra = {"expected.json": ""}
    program = load(GOLDEN / f"{name}.pt2", extra_files=extra)
    return program, json.loads(extra["expected.json"])


def written(program, **options):
    buffer = io.BytesIO()
    save(program, buffer, **options)
    buffer.seek(0)
    return buffer


def again(program):
    return load(written(program))


def compared(found, expected):
    leaves = torch.utils._pytree.tree_leaves(found)
    assert len(leaves) == len(expected)
    for leaf, wanted in zip(leaves, expected):
        if isinstance(leaf, torch.Tensor):
            torch.testing.assert_close(leaf.double(), torch.tensor(wanted, dtype=torch.float64), atol=1e-5, rtol=1e-4)
        else:
            assert leaf == wanted


def names(program):
    return [str(n.target) for n in program.graph.nodes if n.op == "call_function" and "aten" in str(n.target)]


IMAGES = ["export_cnn", "export_cnn_core", "export_cnn_train_core"]


@pytest.mark.parametrize("name", IMAGES)
def test_archives_of_pytorch(name):
    program, expected = opened(name)
    assert names(program) == expected["ops"]
    for p in (program, again(program)):
        compared(p.module()(torch.tensor(expected["inputs"][0])), expected["results"])
    assert program.dialect == ("TRAINING" if name == "export_cnn" else "ATEN")


def test_archive_with_graphs_within():
    program, expected = opened("export_mixed")
    assert names(program) == expected["ops"]
    x, i, flag = expected["inputs"]
    for p in (program, again(program)):
        module = p.module()
        compared(module({"x": torch.tensor(x)}, torch.tensor(i), flag), expected["results"])
        with pytest.raises(AssertionError, match=r"Guard failed: i.size\(\)\[0\] <= 9"):
            module({"x": torch.tensor(x)}, torch.zeros(10, 3, dtype=torch.int64), flag)
        with pytest.raises(AssertionError, match="Guard failed: flag == True"):
            module({"x": torch.tensor(x)}, torch.tensor(i), False)
        with pytest.raises(ValueError, match="Trying to flatten user inputs"):
            module({"y": torch.tensor(x)}, torch.tensor(i), flag)


def test_state_of_archives():
    program, expected = opened("export_cnn_train_core")
    assert list(program.state_dict)[:2] == ["c.weight", "c.bias"] and isinstance(
        program.state_dict["c.weight"], nn.Parameter
    )
    module, x = program.module(), torch.tensor(expected["inputs"][0])
    module(x)
    assert module.b.num_batches_tracked.item() == 1
    module = opened("export_cnn")[0].module()
    module(x).sum().backward()
    assert module.c.weight.grad.abs().sum() > 0
    assert opened("export_mixed")[0].example_inputs[0][1].tolist() == [[0, 1, 2], [3, 4, 0]]


def test_archives_become_modules_and_other_graphs():
    program, expected = opened("export_cnn")
    x = torch.tensor(expected["inputs"][0])
    compared(torch.export.unflatten(program)(x), expected["results"])
    core = program.run_decompositions()
    assert "aten.convolution.default" in names(core)
    compared(again(core).module()(x), expected["results"])


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("table", torch.arange(6).reshape(2, 3).t())
        self.register_buffer("apart", torch.ones(3), persistent=False)
        self.constant = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x, *, k):
        n = x.shape[0]
        y = self.b(self.a(x)) * self.constant + self.apart
        return {
            "y": y.reshape(n, 3, 1) + self.table[:, :1],
            "n": n + k,
            "s": y.split(1, 1)[0],
            "inf": torch.full((1,), math.inf),
        }


def test_round_trip():
    torch.manual_seed(0)
    module, x = Two(), torch.randn(4, 3)
    program = export(module, (x,), {"k": 2}, dynamic_shapes={"x": {0: Dim("n", min=2, max=50)}, "k": None})
    made = again(program)
    assert str(made) == str(program)
    for n in (4, 9):
        x = torch.randn(n, 3)
        found, wanted = made.module()(x, k=2), module(x, k=2)
        assert found["n"] == wanted["n"] == n + 2
        torch.testing.assert_close(found["y"], wanted["y"])
    state = made.state_dict
    assert state["a.weight"].data_ptr() == state["b.weight"].data_ptr()
    assert set(made.constants) == {"apart", "constant"} and state["table"].shape == (3, 2)


def test_contents_of_the_archive(tmp_path):
    path = tmp_path / "linear.pt2"
    save(export(nn.Linear(2, 1), (torch.ones(3, 2),)), path, extra_files={"note.txt": "text"})
    with zipfile.ZipFile(path) as archive:
        found = {name.split("/", 1)[1] for name in archive.namelist()}
        top = archive.namelist()[0].split("/")[0]
        model = json.loads(archive.read(f"{top}/models/model.json"))
        assert len(archive.read(f"{top}/data/weights/weight_0")) == 8
    assert {
        "archive_format", "archive_version", "byteorder", "models/model.json", "data/weights/model_weights_config.json",
        "data/weights/weight_0", "data/weights/weight_1", "data/constants/model_constants_config.json", "data/sample_inputs/model.pt",
        "extra/note.txt",
    } <= found  # fmt: skip
    (node,) = model["graph_module"]["graph"]["nodes"]
    assert node["target"] == "torch.ops.aten.linear.default"
    assert node["inputs"][0] == {"name": "input", "arg": {"as_tensor": {"name": "input"}}, "kind": 1}
    assert model["schema_version"]["major"] == 8 and model["opset_version"] == {"aten": 10}
    extra = {"note.txt": ""}
    load(path, extra_files=extra)
    assert extra == {"note.txt": "text"}


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch writes other files")
def test_archives_of_older_versions():
    """PyTorch 2.1 to 2.7 wrote the state as files of `torch.save`, and no kinds of arguments."""
    module, x = nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1)), torch.randn(4, 3)
    program = export(module, (x,))
    with zipfile.ZipFile(written(program)) as archive:
        data = json.loads(archive.read("archive/models/model.json"))
    for node in data["graph_module"]["graph"]["nodes"]:
        node.pop("name")
        for part in node["inputs"]:
            part.pop("kind")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("serialized_exported_program.json", json.dumps(data))
        for name, content in (
            ("state_dict", dict(program.state_dict)),
            ("constants", {}),
            ("example_inputs", ((x,), {})),
        ):
            stored = io.BytesIO()
            torch.save(content, stored)
            archive.writestr(f"serialized_{name}.pt", stored.getvalue())
        archive.writestr("version", "8.1")
    buffer.seek(0)
    torch.testing.assert_close(load(buffer).module()(x), module(x))


def changed(program, change):
    """An archive of a program whose JSON was changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(written(program)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("models/model.json"):
                data = json.loads(content)
                change(data)
                content = json.dumps(data)
            new.writestr(name, content)
    buffer.seek(0)
    return buffer


@pytest.mark.skipif(target.STAND_IN, reason="messages of rustgrad")
def test_files_that_are_refused():
    program = export(nn.Linear(2, 1), (torch.ones(3, 2),))

    def node(data):
        return data["graph_module"]["graph"]["nodes"][0]

    cases = [
        (lambda d: node(d).update(target="torch.ops.aten.no_such_op.default"), NotImplementedError, r"torch\.ops\.aten\.no_such_op\.default"),
        (lambda d: node(d).update(target="torch.ops.other.thing.default"), NotImplementedError, r"torch\.ops\.other\.thing"),
        (lambda d: node(d).update(target="os.system"), NotImplementedError, "os.system"),
        (lambda d: node(d).update(target="_operator.attrgetter"), NotImplementedError, "attrgetter"),
        (lambda d: d.update(schema_version={"major": 99, "minor": 0}), RuntimeError, "does not match our current schema version"),
        (lambda d: d["range_constraints"].update({"__import__('os')": {"min_val": 0, "max_val": 1}}), ValueError, "not an expression of sizes"),
    ]  # fmt: skip
    for change, kind, message in cases:
        with pytest.raises(kind, match=message):
            load(changed(program, change))
    with pytest.raises(RuntimeError, match="not an archive"):
        load(io.BytesIO(b"nothing"))
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        save(nn.Linear(1, 1), io.BytesIO())


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('code of the file ran')",)


@pytest.mark.skipif(target.STAND_IN, reason="rustgrad's loader")
def test_no_code_of_the_file_runs():
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(written(export(nn.Linear(2, 1), (torch.ones(3, 2),)))) as old,
        zipfile.ZipFile(buffer, "w") as new,
    ):
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, pickle.dumps(Bomb()) if name.endswith("model.pt") else content)
    buffer.seek(0)
    program = load(buffer)
    assert program.example_inputs is None and program.module()(torch.ones(3, 2)).shape == (3, 1)


def rewritten(program, change):
    """The file of a program, with each of its JSON texts changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(written(program)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content.decode()).encode() if name.endswith(".json") else content)
    buffer.seek(0)
    return buffer


CALL = "__import__('builtins').setattr(__import__('builtins'), 'reached', 1)"


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch does not promise it")
@pytest.mark.parametrize(
    "old, new",
    [
        ('"input"', f"input={CALL}"),
        ('"input"', "class"),
        ('"p_weight"', f"p_weight={CALL}, y"),
        ('"p_weight"', f"p_weight\n    {CALL}"),
        ('"linear"', f"linear = {CALL}\n    y"),
        ('"name": "bias", "arg": {"as_tensor": {"name": "p_bias"}}, "kind": 1', f"bias={CALL} or p_bias, x"),
        ('"forward_arg_names": ["input"]', f"input={CALL}"),
    ],
)
def test_names_in_files_are_identifiers(old, new):
    program = export(nn.Linear(2, 1), (torch.ones(3, 2),))
    text = json.dumps(new)
    if old.startswith('"name"'):
        text = f'"name": {text}, "arg": {{"as_tensor": {{"name": "p_bias"}}}}, "kind": 2'
    elif old.startswith('"forward'):
        text = f'"forward_arg_names": [{text}]'
    with pytest.raises(RuntimeError, match="expected an identifier"):
        load(rewritten(program, lambda content: content.replace(old, text)))
    assert "reached" not in vars(builtins)


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch does not promise it")
@pytest.mark.parametrize(
    "name", ['w"), ' + CALL.replace(".", '"+chr(46)+"') + ', getattr(self, "', f"w;{CALL}", '0"]', "a b"]
)
def test_names_of_parameters_are_no_code(name):
    """Any name will do, as in PyTorch, but it stays a name."""
    program = export(nn.Linear(2, 1), (torch.ones(3, 2),))
    try:
        made = load(rewritten(program, lambda content: content.replace('"weight"', json.dumps(name)))).module()
        made(torch.ones(3, 2))
    except (RuntimeError, AttributeError, KeyError) as error:
        assert name.split(".")[0][:8] in str(error)
    assert "reached" not in vars(builtins)


@pytest.mark.skipif(target.STAND_IN, reason="PyTorch looks its own names up")
@pytest.mark.parametrize(
    "op",
    "aten.__class__.mro aten.__init__.default aten.__getattribute__.default aten.linear.__class__ aten.linear._function aten.numpy.default "
    "aten.register_hook.default aten.from_file.default aten.apply_.default aten.handle_torch_function.default "
    "higher_order.__class__ linalg.inv.default".split(),
)
def test_what_is_no_op_is_refused(op):
    program = export(nn.Linear(2, 1), (torch.ones(3, 2),))
    with pytest.raises(NotImplementedError, match="is not here"):
        load(rewritten(program, lambda content: content.replace("torch.ops.aten.linear.default", f"torch.ops.{op}")))


def test_ops_of_the_program_in_files():
    @torch.library.custom_op("export_files::twice", mutates_args=())
    def twice(x: torch.Tensor, k: float) -> torch.Tensor:
        return x * 2 * k

    @twice.register_fake
    def _(x, k):
        return torch.empty_like(x)

    class Calls(nn.Module):
        def forward(self, x):
            return torch.ops.export_files.twice(x, 1.5) + 1

    made = again(export(Calls(), (torch.ones(2),)))
    assert made.module()(torch.ones(2)).tolist() == [4, 4]
