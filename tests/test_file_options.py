"""Options of `save` and `load`: checksums, mapped files; what is kept of objects of a subclass."""

import copy
import io
import mmap
import pickle
import zipfile

import pytest


@pytest.fixture
def options(torch):
    yield torch.serialization
    torch.serialization.set_crc32_options(True)
    torch.serialization.set_default_mmap_options(mmap.MAP_PRIVATE)


@pytest.mark.parametrize("kind", ["file", "buffer"])
def test_files_without_checksums(torch, options, tmp_path, kind):
    assert options.get_crc32_options() is True
    state = {"x": torch.arange(40.0), "y": torch.zeros(0), "z": torch.arange(3)}
    place = tmp_path / "a.pt" if kind == "file" else io.BytesIO()
    options.set_crc32_options(False)
    torch.save(state, place)
    options.set_crc32_options(True)
    with zipfile.ZipFile(place) as archive:
        entries = [entry for entry in archive.infolist() if entry.file_size]
        assert len(entries) > 3 and not any(entry.CRC for entry in entries)
        with pytest.raises(zipfile.BadZipFile, match="CRC"):
            archive.read(entries[0])
    for mapped in (False, kind == "file"):
        if kind == "buffer":
            place.seek(0)
        got = torch.load(place, mmap=mapped)
        assert all(torch.equal(got[name], value) for name, value in state.items())


def test_a_file_without_checksums_that_is_cut_short(torch, options, tmp_path):
    options.set_crc32_options(False)
    torch.save(torch.arange(1000.0), tmp_path / "a.pt")
    whole = (tmp_path / "a.pt").read_bytes()
    for size in (len(whole) // 2, len(whole) - 30):
        (tmp_path / "b.pt").write_bytes(whole[:size])
        with pytest.raises(RuntimeError):
            torch.load(tmp_path / "b.pt")


def test_shared_mappings_write_to_the_file(torch, options, tmp_path):
    place = tmp_path / "a.pt"
    torch.save(torch.arange(3.0), place)
    torch.load(place, mmap=True)[0] = 5
    assert torch.load(place).tolist() == [0, 1, 2]
    with options.set_default_mmap_options(mmap.MAP_SHARED):
        assert options.get_default_mmap_options() == mmap.MAP_SHARED
        torch.load(place, mmap=True)[0] = 5
        assert torch.load(place, mmap=True).tolist() == [5, 1, 2]
    assert options.get_default_mmap_options() == mmap.MAP_PRIVATE
    torch.load(place, mmap=True)[1] = 7
    assert torch.load(place, mmap=True).tolist() == [5, 1, 2]
    options.set_default_mmap_options(mmap.MAP_SHARED)  # as a function
    torch.load(place, mmap=True)[2] = 8
    assert torch.load(place, mmap=True).tolist() == [5, 1, 8]
    with pytest.raises(ValueError, match="MAP_PRIVATE or"):
        options.set_default_mmap_options(77)


def classes(torch):
    class Slotted(torch.Tensor):
        __slots__ = ["other", "unset"]

    class Stateful(torch.Tensor):
        def __getstate__(self):
            return "state", self.note, {"kept": 1}

        def __setstate__(self, state):
            word, self.note, self.__dict__["more"] = state
            assert word == "state"

    for kind in (Slotted, Stateful):
        kind.__qualname__, kind.__module__ = kind.__name__, __name__
        globals()[kind.__name__] = kind
    return Slotted, Stateful


def through_save(torch, value):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    with torch.serialization.safe_globals([type(value)]):
        return torch.load(file)


WAYS = {
    "save": through_save,
    "pickle": lambda torch, value: pickle.loads(pickle.dumps(value)),
    "copy": lambda torch, value: copy.copy(value),
    "deepcopy": lambda torch, value: copy.deepcopy(value),
}


@pytest.mark.parametrize("way", WAYS)
def test_slots_of_subclasses(torch, way):
    Slotted, _ = classes(torch)
    value = torch.ones(2).as_subclass(Slotted)
    value.other, value.note = torch.arange(3), "kept"
    got = WAYS[way](torch, value)
    assert type(got) is Slotted and got.tolist() == [1, 1] and got.note == "kept"
    assert got.other.tolist() == [0, 1, 2] and not hasattr(got, "unset")
    assert (got.other is value.other) == (way == "copy")


@pytest.mark.parametrize("way", ["save", "pickle"])
def test_classes_with_a_state_of_their_own(torch, way):
    _, Stateful = classes(torch)
    value = torch.ones(2).as_subclass(Stateful)
    value.note = "kept"
    got = WAYS[way](torch, value)
    assert type(got) is Stateful and got.tolist() == [1, 1] and got.note == "kept" and got.more == {"kept": 1}


@pytest.mark.parametrize("kind", ["file", "buffer"])
def test_files_without_data(torch, options, tmp_path, kind):
    x = torch.arange(400.0)
    state = {"x": x, "part": x[2:], "flags": torch.tensor([True, False]), "none": torch.zeros(0)}
    place = tmp_path / "a.pt" if kind == "file" else io.BytesIO()
    with options.skip_data():
        torch.save(state, place)
    with zipfile.ZipFile(place) as archive:
        data = archive.getinfo(next(n for n in archive.namelist() if n.endswith("/data/0")))
    assert (data.file_size, data.CRC) == (1600, 0)
    for mapped in (False, kind == "file"):
        if kind == "buffer":
            place.seek(0)
        got = torch.load(place, mmap=mapped)
        assert not got["x"].any() and not got["flags"].any()
        assert {name: (t.shape, t.dtype) for name, t in got.items()} == {
            k: (t.shape, t.dtype) for k, t in state.items()
        }
    got = torch.load(place) if kind == "file" else None
    if got:
        got["x"][2] = 5
        assert got["part"][0] == 5


def test_room_for_data_is_filled_in_place(torch, options, tmp_path):
    with options.skip_data():
        torch.save(torch.arange(1 << 19).float(), tmp_path / "a.pt")
    with options.set_default_mmap_options(mmap.MAP_SHARED):
        torch.load(tmp_path / "a.pt", mmap=True).copy_(torch.arange(1 << 19))
    assert torch.equal(torch.load(tmp_path / "a.pt"), torch.arange(1 << 19).float())


def test_loading_without_data(torch, options, tmp_path):
    state = {"x": torch.arange(1.0, 4.0), "y": torch.tensor([True])}
    for new in (True, False):
        torch.save(state, tmp_path / "a.pt", _use_new_zipfile_serialization=new)
        with options.skip_data():
            got = torch.load(tmp_path / "a.pt")
        assert got["x"].tolist() == [0, 0, 0] and got["y"].tolist() == [False]
        assert torch.load(tmp_path / "a.pt")["x"].tolist() == [1, 2, 3]
    with options.skip_data(), pytest.raises(RuntimeError, match="skip_data"):
        torch.save(state, tmp_path / "b.pt", _use_new_zipfile_serialization=False)
    assert not (tmp_path / "b.pt").exists()
