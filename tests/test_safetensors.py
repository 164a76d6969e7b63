"""The safetensors format, both ways, and files that are damaged."""

import importlib
import json
import struct

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="PyTorch reads them by a package")


@pytest.fixture
def st(torch):
    return importlib.import_module(torch.__name__ + ".utils.safetensors")


def tensors(torch):
    kinds = ["float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "bool"]
    made = {kind: torch.arange(6).reshape(2, 3).to(getattr(torch, kind)) for kind in kinds}
    return {
        **made,
        "scalar": torch.tensor(2.5),
        "none": torch.empty(0, 3),
        "complex": torch.ones(2, dtype=torch.complex64),
    }


def test_round_trip(torch, st, tmp_path):
    given, path = tensors(torch), tmp_path / "x.safetensors"
    st.save_file(given, path, {"made": "here"})
    for found in (st.load_file(path), st.load(path.read_bytes()), st.load(st.save(given))):
        assert found.keys() == given.keys()
        for name, t in given.items():
            assert found[name].dtype == t.dtype and found[name].shape == t.shape and torch.equal(found[name], t), name
    assert st.metadata(path) == {"made": "here"}
    loaded = st.load_file(path)
    loaded["float32"].zero_()
    assert torch.equal(st.load_file(path)["float32"], given["float32"]), "the file does not change"


def test_the_bytes_are_those_of_the_format(torch, st):
    data = st.save({"b": torch.tensor([1, 2], dtype=torch.int16), "a": torch.tensor([1.0])})
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    assert length % 8 == 0 and list(header) == ["a", "b"]
    assert header["b"] == {"dtype": "I16", "shape": [2], "data_offsets": [4, 8]}
    assert data[8 + length :] == struct.pack("<fhh", 1.0, 1, 2)


def test_modules(torch, st, tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    net[1].weight = net[0].weight
    with pytest.raises(RuntimeError, match="share memory"):
        st.save_file(net.state_dict(), tmp_path / "x")
    st.save_model(net, tmp_path / "x")
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    assert st.load_model(other, tmp_path / "x") == ([], [])
    assert all(torch.equal(a, b) for a, b in zip(net.state_dict().values(), other.state_dict().values(), strict=True))


def damaged(torch, st):
    def file(header, data=b"\0" * 8):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data

    def entry(**changes):
        return file({"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}})

    yield from (b"", b"abc", struct.pack("<Q", 1 << 60), file(b"{"), file([1]), file(b"\xff\xfe"), file({"x": 3}))
    yield from (file({"x": {"dtype": "F32"}}), entry(dtype="F99"), entry(dtype=[]), entry(shape=[3]), entry(shape=[-2]))
    yield from (entry(shape=[True, 2]), entry(shape="2"), entry(data_offsets=[0, 16]), entry(data_offsets=[4, 12]))
    yield from (
        entry(data_offsets=[8, 0]),
        entry(data_offsets=[0]),
        entry(data_offsets=[0.0, 8.0]),
        entry(shape=[1 << 62, 4]),
    )
    yield file(b"[" * 100_000)


def test_damaged_files_are_errors(torch, st, tmp_path):
    for i, data in enumerate(damaged(torch, st)):
        path = tmp_path / str(i)
        path.write_bytes(data)
        for read in (lambda data=data: st.load(data), lambda path=path: st.load_file(path)):
            with pytest.raises(st.SafetensorError, match="safetensors: "):
                read()


def test_what_cannot_be_saved(torch, st, tmp_path):
    with pytest.raises(ValueError, match="non contiguous"):
        st.save({"x": torch.ones(2, 3).t()})
    with pytest.raises(ValueError, match="expected torch.Tensor"):
        st.save({"x": 3})
    with pytest.raises(ValueError, match="Expected a dict"):
        st.save([torch.ones(1)])
    with pytest.raises(FileNotFoundError):
        st.load_file(tmp_path / "absent")
