"""`package`: archives of objects with their code, PyTorch's too."""

import inspect
import io
import sys
import zipfile
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden" / "package.pt"
NET = """\
from {torch} import nn
import unused_dep
from .helper import scale as sc
from . import helper

class Net(nn.Module):
    class Inner:
        pass
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 2)
        self.inner = Net.Inner()
    def forward(self, x):
        return sc(self.l(x))
"""


@pytest.fixture
def program(torch, tmp_path, monkeypatch):
    """A package `pmod` and a module `unused_dep`, both importable."""
    (tmp_path / "pmod").mkdir()
    (tmp_path / "pmod" / "__init__.py").write_text("")
    (tmp_path / "pmod" / "net.py").write_text(NET.format(torch=torch.__name__))
    (tmp_path / "pmod" / "helper.py").write_text("import math\ndef scale(x): return x * math.sqrt(4)\n")
    (tmp_path / "unused_dep.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    import pmod.net

    yield pmod.net
    for name in [n for n in sys.modules if n.split(".")[0] in ("pmod", "unused_dep")]:
        del sys.modules[name]


def written(torch, fill, **options):
    """A buffer with the package that `fill(exporter)` writes."""
    file = io.BytesIO()
    with torch.package.PackageExporter(file, **options) as e:
        fill(e)
    file.seek(0)
    return file


def test_pytorchs_package(torch):
    importer = torch.package.PackageImporter(GOLDEN)
    values, net = importer.load_pickle("model", "values.pkl"), importer.load_pickle("model", "net.pkl")
    assert torch.allclose(net(values["x"]), values["out"]) and values["half"].dtype == torch.float16
    assert values["row"].untyped_storage().data_ptr() == values["x"].untyped_storage().data_ptr()
    assert importer.load_text("model", "note.txt") == "hello" and importer.python_version().startswith("3.")
    assert type(net).__module__ == f"{importer.id()}.gmod.net" and isinstance(net, torch.nn.Module)
    assert torch.package.is_from_package(net) and not torch.package.is_from_package(values)
    assert inspect.getsource(type(net)).startswith("class Net(nn.Module)")
    with pytest.raises(NotImplementedError, match="unused_dep.a' was mocked out"):
        importer.import_module("unused_dep").a()
    with pytest.raises(ModuleNotFoundError, match="self-contained archive"):
        importer.import_module("json")
    assert importer.file_structure(include="**/net.py").has_file("gmod/net.py")


def test_a_package_and_one_made_of_it(torch, program):
    net, x = program.Net(), torch.ones(2, 3)

    def fill(e):
        e.intern("pmod.**")
        e.mock("unused_dep")
        e.save_pickle("model", "net.pkl", [net, net.l.weight])
        e.save_pickle("model", "again.pkl", net, pickle_protocol=4)
        e.save_binary("model", "b.bin", b"\0\1")
        facts.append((e.interned_modules(), e.mocked_modules(), e.get_rdeps("math")))

    facts = []
    file = written(torch, fill)
    assert facts == [(["pmod.helper", "pmod.net"], ["unused_dep"], ["pmod.helper"])]
    names = [n.partition("/")[2] for n in zipfile.ZipFile(file).namelist()]
    assert {".data/version", ".data/extern_modules", ".data/python_version", "_mock.py", "pmod/net.py"} <= set(names)
    # Storages are written once.
    assert sum(n.endswith(".storage") for n in names) == 2
    importer = torch.package.PackageImporter(file)
    made, weight = importer.load_pickle("model", "net.pkl")
    assert made.l.weight is weight and torch.equal(made(x), net(x)) and type(made) is not type(net)
    assert torch.equal(importer.load_pickle("model", "again.pkl")(x), net(x))
    assert importer.load_binary("model", "b.bin") == b"\0\1"
    with pytest.raises(Exception, match="the importer for .torch_package_"):
        written(torch, lambda e: (e.intern("pmod.**"), e.save_pickle("m", "n", made)))

    def again(e):
        e.intern("pmod.**")
        e.extern("unused_dep")
        e.save_pickle("m", "n", made)

    second = torch.package.PackageImporter(written(torch, again, importer=[importer, torch.package.sys_importer]))
    assert torch.equal(second.load_pickle("m", "n")(x), net(x)) and second.import_module("unused_dep").__file__


def test_an_unpacked_package(torch, program, tmp_path):
    def fill(e):
        e.save_source_string("a.b", "from . import c\nimport os.path\nvalue = c.value + 1")
        e.save_source_string("a", "", is_package=True)
        e.save_source_string(
            "a.c", "value = 1\nfrom torch_package_importer import load_text\nnote = load_text('a', 'n')"
        )
        e.save_text("a", "n", "note")

    with zipfile.ZipFile(written(torch, fill)) as archive:
        archive.extractall(tmp_path / "out")
    importer = torch.package.PackageImporter(next((tmp_path / "out").iterdir()))
    assert importer.import_module("a.b").value == 2


def test_what_cannot_be_packaged_is_listed(torch, program):
    errors = torch.package

    def fill(e):
        e.save_source_string("top", "import pmod.net, sys, unused_dep, zipfile\nfrom pmod import net as n")
        e.deny("unused_dep")

    with pytest.raises(errors.PackagingError) as caught:
        written(torch, lambda e: (e.deny("unused_dep"), fill(e)), debug=True)
    text = str(caught.value)
    assert "did not match against any action pattern" in text and "A path to pmod.net: top -> pmod.net" in text
    assert "    sys\n" in text and "zipfile" not in text and "denied by a pattern" in text
    with pytest.raises(errors.PackagingError, match="mocked out, but is still being used"):
        written(torch, lambda e: (e.mock("pmod.**"), e.save_pickle("m", "n", program.Net())))
    with pytest.raises(errors.EmptyMatchError, match="allow_empty=False"):
        written(torch, lambda e: e.extern("absent.**", allow_empty=False))
    with pytest.raises(ImportError, match="has been disallowed"):
        errors.PackageImporter(GOLDEN, module_allowed=lambda name: name != "math")


def test_reduced_objects_and_hooks(torch, program):
    class Reduced:
        def __reduce_package__(self, exporter):
            exporter.save_text("r", "text", exporter.get_unique_id())
            return read, ("text",)

    seen, one = [], Reduced()

    def fill(e):
        e.extern("*test_package_files")
        e.register_extern_hook(lambda exporter, name: seen.append(name))
        e.save_pickle("r", "p", [one, one])

    importer = torch.package.PackageImporter(written(torch, fill))
    made = importer.load_pickle("r", "p")
    assert made[0] is made[1] and made[0] == ["0"] and any("test_package_files" in n for n in seen)


def read(importer, name):
    return [importer.load_text("r", name)]


def test_globs(torch):
    group = torch.package.GlobGroup("torch.**", exclude=["torch.n*", "torch.a.*"])
    assert [n for n in ("torch", "torch.b.c", "torch.nn", "torch.a", "torch.a.b", "torchx") if group.matches(n)] == [
        "torch", "torch.b.c", "torch.a"]  # fmt: skip
    assert torch.package.GlobGroup("a*.**").matches("abc.d.e")
    with pytest.raises(ValueError, match="entire path segment"):
        torch.package.GlobGroup("a.b**")
