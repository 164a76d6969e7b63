"""`save` and `load`: PyTorch's own files are read, ours come back as they were, and no file executes anything."""

import io
import os
import pickle
import zipfile
from collections import Counter, OrderedDict, defaultdict
from pathlib import Path

import pytest
from support import target


def torch_module():
    return target.torch


GOLDEN = Path(__file__).parent / "golden"
own = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
KINDS = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()


def through_a_file(torch, value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


@pytest.mark.parametrize("mmap", [None, True])
def test_pytorch_files(torch, mmap):
    got = torch.load(GOLDEN / "checkpoint.pt", mmap=mmap)
    assert got["x"].tolist() == [[0, 1, 2], [3, 4, 5]] and got["transposed"].stride() == (1, 3)
    got["row"][0] = 30
    assert got["x"][1, 0] == 30 == got["transposed"][0, 1], "tensors that shared memory share it again"
    assert got["leaf"].requires_grad and got["leaf"].is_leaf and got["scalar"].item() == 3
    assert isinstance(got["parameter"], torch.nn.Parameter) and got["parameter"][1, 2] == 6
    assert got["empty"].shape == (0, 3) and got["noted"].note == "kept"
    for name, tensor in got["kinds"].items():
        assert tensor.dtype == getattr(torch, name) and tensor.to(torch.float32).tolist() == [0, 1, 1]
    assert got["stored"].dtype == torch.uint16 and got["stored"].tolist() == [1, 65535]
    assert got["plain"] == [1, 2.5, True, None, "text", b"bytes", (1, (2,)), {3}, 1j, OrderedDict(a=1)]
    assert got["facts"] == [torch.float32, torch.device("cpu"), torch.Size([2, 3])]
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
    model.load_state_dict(got["state"])
    optimizer = torch.optim.Adam(model.parameters())
    optimizer.load_state_dict(got["optimizer"])
    assert optimizer.state_dict()["state"][0]["step"] == 1


def test_pytorch_files_of_before_1_6(torch):
    got = torch.load(GOLDEN / "checkpoint_legacy.pt")
    got["row"][0] = 30
    assert got["x"][1].tolist() == [30, 4, 5] and got["leaf"].requires_grad
    assert list(got["state"]) == ["0.weight", "0.bias"]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("place", [None, "cpu", {"cpu": "cpu"}, lambda storage, location: storage])
def test_the_format_of_before_1_6_both_ways(torch, tmp_path, protocol, place):
    base = torch.arange(12.0)
    kinds = [torch.ones(2).to(getattr(torch, kind)) for kind in KINDS]
    saved = {"base": base, "view": base.view(3, 4)[1:, ::2], "kinds": kinds, "none": torch.zeros(0, 3), "b": b"x"}
    torch.save(saved, tmp_path / "old.pt", pickle_protocol=protocol, _use_new_zipfile_serialization=False)
    with open(tmp_path / "old.pt", "rb") as file:
        assert [pickle.load(file), pickle.load(file)] == [0x1950A86A20F9469CFC6C, 1001]
    got = torch.load(tmp_path / "old.pt", map_location=place, weights_only=protocol == 2)
    got["base"][4] = 40
    assert got["view"].tolist() == [[40, 6], [8, 10]] and got["view"].stride() == (4, 2) and got["b"] == b"x"
    assert [t.dtype for t in got["kinds"]] == [t.dtype for t in kinds] and got["none"].shape == (0, 3)


@own
def test_parts_of_storages_in_files_of_before_0_4(torch, tmp_path, monkeypatch):
    from rustgrad import serialization

    plain = serialization._Writer.persistent_id
    parts = iter([None, ("v", 2, 3), ("v", 2, 3), ("w", 20, 7)])

    def with_parts(self, obj):
        saved = plain(self, obj)
        return saved and (*saved[:5], next(parts))

    monkeypatch.setattr(serialization._Writer, "persistent_id", with_parts)
    base = torch.arange(6.0)
    saved = [base, base._typed_storage(), base._typed_storage()]
    torch.save(saved, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    whole, first, second = torch.load(tmp_path / "old.pt")
    assert first.tolist() == second.tolist() == [2.0, 3.0, 4.0]
    whole[3] = 30
    assert first.tolist() == second.tolist() == [2.0, 30.0, 4.0]
    torch.save(base.untyped_storage(), tmp_path / "beyond.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="elements 20 to 27 of a storage of 24"):
        torch.load(tmp_path / "beyond.pt")


@own
def test_a_file_may_give_fewer_bytes_than_asked_for(torch, tmp_path):
    class Slow(io.FileIO):
        def read(self, n=-1):
            return super().read(n if n < 0 else min(n, 100))

    torch.save(torch.arange(1000.0), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    with Slow(tmp_path / "old.pt") as file:
        assert torch.load(file).tolist() == list(range(1000))


class Reading:
    """A file of no class of Python's, which says how it was read."""

    def __init__(self, data):
        self.file, self.filled = io.BytesIO(data), 0

    def __getattr__(self, name):
        return getattr(self.file, name)

    def readinto(self, view):
        self.filled += len(view)
        return self.file.readinto(view)


@pytest.mark.parametrize("zipped", [True, False])
def test_elements_are_read_into_their_memory(torch, zipped):
    file, value = io.BytesIO(), torch.arange(5000.0)
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    source = Reading(file.getvalue())
    assert torch.equal(torch.load(source), value) and source.filled >= 20_000


@pytest.mark.parametrize("lacks", ["seekable", "readinto", "readinto that works", "fileno"])
@pytest.mark.parametrize("zipped", [True, False])
def test_files_with_few_methods(torch, zipped, lacks):
    class Few:
        def __init__(self, data):
            self.file = io.BytesIO(data)

        def __getattr__(self, name):
            if name in (lacks, "seekable", "fileno"):
                raise AttributeError(name)
            if name + " that works" == lacks:
                return self.refuse
            return getattr(self.file, name)

        def refuse(self, view):
            raise io.UnsupportedOperation("readinto")

    if target.STAND_IN and not zipped and lacks == "readinto that works":
        pytest.skip("PyTorch's reader of the old format leaves that exception set")
    file, value = io.BytesIO(), torch.arange(5000.0)
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    assert torch.equal(torch.load(Few(file.getvalue())), value)


@own
def test_whoever_keeps_what_is_written_keeps_the_memory(torch):
    class Keeping(list):
        def write(self, data):
            self.append(data)
            return len(data)

    file, value = Keeping(), torch.arange(4.0)
    torch.save(value, file, _use_new_zipfile_serialization=False)
    with pytest.raises(RuntimeError, match="not resizable"):
        value.resize_(1000)
    del value
    assert torch.frombuffer(bytes(file[-1]), dtype=torch.float32).tolist() == [0, 1, 2, 3]
    file, value = io.BytesIO(), torch.arange(4.0)
    torch.save(value, file)
    value.resize_(1000)
    assert value[:4].tolist() == [0, 1, 2, 3], "nobody has kept this one"


@own
def test_an_element_that_was_damaged_is_found(torch):
    file = io.BytesIO()
    torch.save(torch.arange(1000.0), file)
    data = bytearray(file.getvalue())
    at = data.index(torch.arange(1000.0).numpy().tobytes())
    data[at + 2000] ^= 1
    with pytest.raises(RuntimeError, match="CRC|invalid checksum"):
        torch.load(io.BytesIO(data))


def test_files_that_cannot_be_opened(torch, tmp_path):
    (tmp_path / "empty.pt").touch()
    with pytest.raises(EOFError):
        torch.load(tmp_path / "empty.pt")
    with pytest.raises(RuntimeError, match="Parent directory .*absent does not exist"):
        torch.save([1], tmp_path / "absent" / "x.pt")
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "absent.pt")


@own
@pytest.mark.parametrize("weights_only", [None, True])
def test_modules_do_not_load_by_default(torch, weights_only):
    with pytest.raises(pickle.UnpicklingError, match="GLOBAL torch.nn.modules.linear.Linear was not an allowed global"):
        torch.load(GOLDEN / "checkpoint_module.pt", weights_only=weights_only)


def test_modules_of_pytorch_load_where_they_are_trusted(torch):
    module = torch.load(GOLDEN / "checkpoint_module.pt", weights_only=False)
    assert type(module) is torch.nn.Linear
    module(torch.ones(1, module.in_features)).sum().backward()
    assert module.weight.grad is not None
    with torch.serialization.safe_globals([torch.nn.Linear]):
        again = torch.load(GOLDEN / "checkpoint_module.pt")
    assert torch.equal(again.weight, module.weight)


class Doubling(torch_module().nn.Module):
    """A module of a program: a layer, a buffer, a plain attribute and a hook."""

    def __init__(self):
        super().__init__()
        nn = torch_module().nn
        self.layer = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
        self.register_buffer("factor", torch_module().tensor(2.0))
        self.tied = self.layer[0].weight
        self.note = {"made": (1, 2)}
        self.register_forward_hook(doubled)

    def forward(self, x):
        return self.layer(x)


def doubled(module, inputs, output):
    return output * module.factor


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("zipped", [True, False])
def test_whole_modules_come_back_as_they_were(torch, zipped, protocol):
    module, file = Doubling().eval(), io.BytesIO()
    torch.save(module, file, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    got = torch.load(file, weights_only=False)
    x = torch.ones(3, 2)
    assert type(got) is Doubling and not got.training and got.note == {"made": (1, 2)}
    assert torch.equal(got(x), module(x)) and got.tied is got.layer[0].weight
    assert [n for n, _ in got.named_parameters()] == [n for n, _ in module.named_parameters()]


@own
def test_whole_modules_load_by_default_once_their_classes_are_allowed(torch):
    file = io.BytesIO()
    torch.save(Doubling(), file)
    file.seek(0)
    names = torch.serialization.get_unsafe_globals_in_checkpoint(file)
    assert set(names) == {
        f"{__name__}.Doubling", f"{__name__}.doubled", "torch.nn.modules.container.Sequential",
        "torch.nn.modules.linear.Linear", "torch.nn.modules.activation.Tanh",
    }  # fmt: skip
    nn = torch.nn
    with torch.serialization.safe_globals([Doubling, doubled, nn.Sequential, nn.Linear, nn.Tanh]):
        file.seek(0)
        assert torch.serialization.get_unsafe_globals_in_checkpoint(file) == []
        file.seek(0)
        assert type(torch.load(file)) is Doubling


@pytest.mark.parametrize("dtype", [*KINDS, pytest.param("uint32", marks=own)])
def test_every_dtype(torch, dtype):
    x = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(getattr(torch, dtype)).t()
    y = through_a_file(torch, x)
    assert y.dtype == x.dtype and y.tolist() == x.tolist() and y.stride() == (1, 3)


def test_containers(torch):
    x = torch.arange(6.0).reshape(2, 3)
    value = {
        "a": [x, x[1], (x[:, 0], None)], 3: {1.5, "s"}, "e": frozenset([1]), "i": float("inf"), "b": b"\xff\x00",
        "o": OrderedDict(b=1, a=2), "c": Counter("aab"), "d": defaultdict(list, k=[1]), "n": -(2**70), "z": 2j,
        "t": torch.bfloat16, "v": x.device, "s": x.shape, "l": slice(1, 2),
    }  # fmt: skip
    got = through_a_file(torch, value, weights_only=False)
    got["a"][1].fill_(7)
    assert got["a"][0].tolist() == [[0, 1, 2], [7, 7, 7]] and got["a"][2][0].tolist() == [0, 7]
    assert {k: v for k, v in got.items() if k != "a"} == {k: v for k, v in value.items() if k != "a"}
    assert got["t"] is torch.bfloat16 and type(got["s"]) is torch.Size and got["d"].default_factory is list


def test_parameters_and_attributes(torch):
    weight = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    weight.tag = "w"
    noted = torch.zeros(2, requires_grad=True)
    noted.tag = [1]
    got = through_a_file(torch, [weight, noted, weight.data])
    assert isinstance(got[0], torch.nn.Parameter) and not got[0].requires_grad and got[0].tag == "w"
    assert got[1].requires_grad and got[1].tag == [1]
    got[2][0] = 5
    assert got[0][0] == 5


def test_state_dicts_keep_their_metadata(torch, tmp_path):
    model = torch.nn.Linear(2, 1)
    torch.save(model.state_dict(), tmp_path / "model.pt")
    state = torch.load(tmp_path / "model.pt")
    assert state._metadata == model.state_dict()._metadata
    torch.nn.Linear(2, 1).load_state_dict(state)
    with zipfile.ZipFile(tmp_path / "model.pt") as archive:
        assert "model/data.pkl" in archive.namelist() and archive.read("model/version") == b"3\n"
        for info in archive.infolist():
            if "/data/" in info.filename:
                start = info.header_offset + 30 + len(info.filename) + len(info.extra)
                assert start % 64 == 0, "storages are aligned, so that a mapped file can be used as it is"


def test_map_location(torch, device):
    x = torch.arange(3.0)
    for place in (device, torch.device(device), {"cpu": device}, lambda storage, location: None):
        got = through_a_file(torch, x, map_location=place)
        wanted = "cpu" if callable(place) and not isinstance(place, torch.device) else device
        assert got.device.type == wanted and got.tolist() == [0, 1, 2]
    if not target.STAND_IN:
        back = through_a_file(torch, {"x": x.to(device), "y": x.to(device)[1:]})
        assert back["x"].device.type == device and back["y"].tolist() == [1, 2]
        assert through_a_file(torch, x.to(device), map_location="cpu").device.type == "cpu"


def test_what_has_no_name_cannot_be_stored(torch):
    for value in (lambda: 1, {"a": [lambda: 1]}, (i for i in [1])):
        with pytest.raises((pickle.PicklingError, AttributeError, TypeError), match="pickle"):
            torch.save(value, io.BytesIO())


class Point:
    """A class that must be allowed explicitly."""

    def __init__(self):
        self.x = 1


@own
def test_safe_globals(torch):
    with torch.serialization.safe_globals([Point]):
        file = io.BytesIO()
        torch.save([Point()], file)
        file.seek(0)
        assert torch.load(file)[0].x == 1
    file.seek(0)
    assert torch.serialization.get_safe_globals() == []
    with pytest.raises(pickle.UnpicklingError, match="Point was not an allowed global"):
        torch.load(file)


class Attack:
    """Pickles as a call of a function with a visible side effect."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


def archive(pickled, **entries):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("archive/data.pkl", pickled)
        for name, data in entries.items():
            made.writestr(f"archive/data/{name}", data)
    file.seek(0)
    return file


@own
def test_nothing_is_executed(torch, tmp_path):
    import os
    import subprocess

    trace = tmp_path / "trace"
    attacks = [
        Attack(os.mkdir, str(trace)),
        Attack(eval, f"open({str(trace)!r}, 'w')"),
        Attack(subprocess.call, ["true"]),
    ]
    for attack in [*attacks, {"deep": [Attack(getattr, "text", "upper")]}, Attack(exec, "1"), Attack(__import__, "os")]:
        for file in (archive(pickle.dumps(attack)), archive(pickle.dumps(attack, 4)), io.BytesIO(pickle.dumps(attack))):
            for weights_only in (None, True):
                file.seek(0)
                with pytest.raises(torch.serialization.CheckpointError):
                    torch.load(file, weights_only=weights_only)
    assert not trace.exists()


def pickled(*parts):
    """A pickle of protocol 2 assembled by hand."""
    return b"\x80\x02" + b"".join(parts) + b"."


def named(module, name):
    return f"c{module}\n{name}\n".encode()


@own
@pytest.mark.parametrize("module,name", [
    ("torch", "Size"), ("torch", "Tensor"), ("torch._utils", "_rebuild_tensor_v2"), ("torch", "float32"),
    ("collections", "OrderedDict"), ("torch.nn.parameter", "Parameter"), ("builtins", "dict"),
])  # fmt: skip
def test_no_file_changes_the_library(torch, module, name):
    """Setting the state of a class or function would change it for the whole process."""
    state = b"}X\x08\x00\x00\x00__repr__" + named("builtins", "int") + b"s"
    for build in (state + b"b", b"N" + state + b"\x86b"):
        with pytest.raises(torch.serialization.CheckpointError, match="sets the state of"):
            torch.load(archive(pickled(named(module, name), build)))
    assert repr(torch.Size([1])) == "torch.Size([1])" and repr(torch.ones(1)) == "tensor([1.])"


@own
def test_hostile_pickles(torch, tmp_path):
    deep = b"K\x01" + b"\x85" * 200_000
    cases = {
        "nests values": (b"}", deep, b"K\x01s"),
        "cut short": (b"X\xff\xff\xff\x7fabc",),
        "asks for|is made of|are made of": (named("builtins", "bytearray"), b"\x8a\x08" + bytes(7) + b"\x10\x85R"),
        "which is empty": (b"h\x07",),
        "has not set": (b"0",),
        "has not made": (b"\x85",),
        "may not": (named("torch", "Tensor"), b")\x81"),
        "which no checkpoint needs": (b"(ios\nsystem\n",),
        "malformed": (b"I99x\n",),
        "called": (named("builtins", "int"), b"K\x01\x85R"),
        "appends to": (b"}K\x01a",),
    }
    for message, parts in cases.items():
        with pytest.raises(torch.serialization.CheckpointError, match=message):
            torch.load(archive(pickled(*parts)))
    (tmp_path / "bad.pt").write_bytes(archive(pickled(b"0")).getvalue())
    with pytest.raises(torch.serialization.CheckpointError, match=r"load: .*bad\.pt: the pickle takes a mark"):
        torch.load(tmp_path / "bad.pt")


@own
def test_damaged_files(torch, tmp_path):
    file = io.BytesIO()
    torch.save({"x": torch.arange(100.0), "y": [torch.ones(3), "text"]}, file)
    whole = file.getvalue()
    for cut in range(0, len(whole), 97):
        with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
            torch.load(io.BytesIO(whole[:cut]))
    for at in range(40, len(whole), 61):
        bad = bytearray(whole)
        bad[at] ^= 0x55
        try:
            torch.load(io.BytesIO(bytes(bad)))
        except torch.serialization.CheckpointError:
            pass
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "none.pt")
    with pytest.raises(pickle.UnpicklingError, match="not a checkpoint"):
        torch.load(io.BytesIO(b"plain text"))
    with pytest.raises(ValueError, match="mmap"):
        torch.load(io.BytesIO(whole), mmap=True)


@own
def test_storages_too_small_for_their_tensors(torch):
    file = io.BytesIO()
    torch.save(torch.arange(8.0), file)
    with zipfile.ZipFile(file) as made:
        pickled = made.read("archive/data.pkl")
    with pytest.raises(RuntimeError, match="storage 0 has 4 bytes, but 32 are used"):
        torch.load(archive(pickled, **{"0": b"abcd"}))
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        torch.load(archive(pickled.replace(b"K\x08\x85", b"K\x7f\x85"), **{"0": bytes(32)}))


class Narrow:
    """A file with only the methods that `load` documents."""

    def __init__(self, data):
        file = io.BytesIO(data)
        self.read, self.readline, self.tell, self.seek = file.read, file.readline, file.tell, file.seek


def test_files_that_can_do_little(torch, tmp_path):
    class Sink:
        def __init__(self):
            self.parts = []

        def write(self, data):
            self.parts.append(bytes(data))
            return len(data)

    import gzip

    for zipped in (True, False):
        sink = Sink()
        torch.save({"x": torch.arange(3.0)}, sink, _use_new_zipfile_serialization=zipped)
        assert torch.load(Narrow(b"".join(sink.parts)))["x"].tolist() == [0, 1, 2]
        with gzip.open(tmp_path / "x.gz", "wb") as file:
            torch.save(torch.ones(2), file, _use_new_zipfile_serialization=zipped)
        with gzip.open(tmp_path / "x.gz", "rb") as file:
            assert torch.load(file).tolist() == [1, 1]
    for nothing in (3, None):
        with pytest.raises((AttributeError, TypeError)):
            torch.load(nothing)


def test_several_objects_in_a_file_of_the_old_format(torch):
    file = io.BytesIO()
    for value in ([torch.ones(2)], {"b": torch.zeros(1)}):
        torch.save(value, file, _use_new_zipfile_serialization=False)
    file.seek(0)
    assert torch.load(file)[0].tolist() == [1, 1] and torch.load(file)["b"].tolist() == [0]


@pytest.mark.parametrize("zipped", [True, False])
def test_memory_of_two_types_is_refused(torch, zipped):
    base = torch.ones(2)
    with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
        torch.save([base, base.view(torch.int32)], io.BytesIO(), _use_new_zipfile_serialization=zipped)


@own
@pytest.mark.parametrize("zipped", [True, False])
def test_mutated_files_fail_in_one_way(torch, zipped):
    """Bytes changed, cut and put in at random: a value, or the one documented class of errors."""
    import random

    file, rng = io.BytesIO(), random.Random(0)
    value = {"x": torch.arange(4.0), "y": [torch.ones(2, dtype=torch.int64), "t", (1, 2.5, None)], "z": {1, 2}}
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    whole = file.getvalue()
    before = {n: dict(vars(c)) for n, c in (("Size", torch.Size), ("OrderedDict", OrderedDict))}
    failed = 0
    for _ in range(int(os.environ.get("RUSTGRAD_FUZZ_FILES", "1000"))):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 4)):
            at, kind = rng.randrange(len(bad)), rng.random()
            if kind < 0.5:
                bad[at] = rng.randrange(256)
            elif kind < 0.7:
                bad[at:at] = rng.choice([b"c", b"R", b"b", b"\x81", b"(", b"Q", b"\x85", b"h\x00", b"0", b"}", b"N"])
            elif kind < 0.9:
                del bad[at : at + rng.randint(1, 8)]
            else:
                del bad[at:]
                break
        try:
            torch.load(io.BytesIO(bytes(bad)))
        except (torch.serialization.CheckpointError, EOFError):
            failed += 1
    assert failed > 100
    assert before == {n: dict(vars(c)) for n, c in (("Size", torch.Size), ("OrderedDict", OrderedDict))}


def test_files_of_the_other_byte_order(torch):
    values = {k: torch.tensor([1, 2, 3]).to(getattr(torch, k)) for k in ("int16", "float32", "float64", "complex64")}
    file = io.BytesIO()
    torch.save(values, file)
    other = io.BytesIO()
    with zipfile.ZipFile(file) as was, zipfile.ZipFile(other, "w") as made:
        for info in was.infolist():
            data = was.read(info)
            if "/data/" in info.filename:
                width = (2, 4, 8, 4)[int(info.filename.rpartition("/")[2])]
                data = b"".join(data[i : i + width][::-1] for i in range(0, len(data), width))
            if not info.filename.endswith("byteorder"):
                made.writestr(info.filename, data)
    other.seek(0)
    before = torch.serialization.get_default_load_endianness()
    try:
        torch.serialization.set_default_load_endianness(torch.serialization.LoadEndianness.BIG)
        got = torch.load(other)
    finally:
        torch.serialization.set_default_load_endianness(before)
    assert all(torch.equal(got[k], v) for k, v in values.items())


@own
def test_the_environment_forces_what_a_file_may_hold(torch, monkeypatch):
    path = GOLDEN / "checkpoint_module.pt"
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    assert type(torch.load(path)) is torch.nn.Linear
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=True)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="Only one of"):
        torch.load(path)
    monkeypatch.delenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(path, weights_only=False)


@own
def test_no_permission_opens_the_system(torch):
    with torch.serialization.safe_globals([os.system, (os.system, "posix.system")]):
        for module in ("os", "posix"):
            with pytest.raises(pickle.UnpicklingError, match="is blocked"):
                torch.load(archive(pickled(named(module, "system"), b"X\x04\x00\x00\x00true\x85R")))


@pytest.mark.parametrize("zipped", [True, False])
def test_tensors_without_memory(torch, zipped):
    with torch.device("meta"):
        layer = torch.nn.Conv2d(20000, 320000, 3)
    file = io.BytesIO()
    torch.save({**layer.state_dict(), "t": layer.bias.view(2, -1).t()}, file, _use_new_zipfile_serialization=zipped)
    assert file.tell() < 10000
    file.seek(0)
    again = torch.load(file)
    assert again["weight"].is_meta and again["weight"].shape == layer.weight.shape
    assert again["t"].stride() == (1, 160000)
    whole = pickle.loads(pickle.dumps(layer))
    assert whole.weight.is_meta and isinstance(whole.weight, torch.nn.Parameter) and whole.weight.requires_grad


def test_strings_of_python_2_as_bytes(torch):
    # [b"\xc5\xbc", torch.zeros(1), 2] as PyTorch 0.4 wrote it under Python 2.7.
    head = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.\x80\x02M\xe9\x03.\x80\x02}q\x01(U\x10protocol_versionq\x02M\xe9\x03U\n"
    head += (
        b"type_sizesq\x03}q\x04(U\x03intq\x05K\x04U\x05shortq\x06K\x02U\x04longq\x07K\x04uU\rlittle_endianq\x08\x88u."
    )
    body = b"\x80\x02]q\x01(U\x02\xc5\xbcq\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03((U\x07storageq\x04ctorch\nFloatStorage\n"
    body += b"q\x05U\x0845640624q\x06U\x03cpuq\x07\x8a\x01\x01NtQK\x00K\x01\x85K\x01\x85\x89NtRq\x08K\x02e."
    tail = b"\x80\x02]q\x01U\x0845640624q\x02a.\x01" + bytes(11)
    for encoding, expected in (("bytes", b"\xc5\xbc"), ("utf-8", "\u017c")):
        for trusted in (False, True):
            text, zero, two = torch.load(io.BytesIO(head + body + tail), encoding=encoding, weights_only=not trusted)
            assert text == expected and zero.tolist() == [0.0] and two == 2


def test_the_environment_that_trusts_files_says_so(torch, monkeypatch):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        torch.load(file)


def test_arguments_of_load(torch):
    def written():
        file = io.BytesIO()
        torch.save([torch.ones(2), Plain()], file)
        file.seek(0)
        return file

    # A program that names a pickle module trusts the file.
    assert type(torch.load(written(), pickle_module=pickle)[1]) is Plain
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        torch.load(written(), pickle_module=pickle, weights_only=True)
    for weights_only in (True, False):
        with pytest.raises(TypeError, match="unexpected keyword|invalid keyword"):
            torch.load(written(), weights_only=weights_only, map_locaton="cpu")


class Plain:
    pass


def test_what_has_no_name_cannot_be_made_safe(torch):
    with pytest.raises((TypeError, AttributeError)):
        with torch.serialization.safe_globals(["a name"]):
            file = io.BytesIO()
            torch.save(Plain(), file)
            file.seek(0)
            torch.load(file)
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    assert torch.equal(torch.load(file), torch.ones(2))
