"""Archives made to reach Python: each is refused, when it is loaded or at the latest when the line runs, and nothing happens."""

import io
import os
import zipfile

import pytest
from support import archives, target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what rustgrad's loader refuses")
torch = target.torch
CheckpointError = torch.serialization.CheckpointError

AT_LOAD = [
    "return __import__('os').system('touch {}')",
    "return eval('1')",
    "return exec('1')",
    "return open('{}', 'w')",
    "return compile('1', '', 'eval')",
    "return globals()",
    "return vars(self)",
    "return type(x)",
    "return super().forward(x)",
    "return (lambda y: y)(x)",
    "return [y for y in [x] if y.numpy()]",
    "return {y: y for y in [1] if y.numpy()}",
    "return f'{x.__class__}'",
    "return (y := x)",
    "return rustgrad.save(x, '{}')",
    "return torch.serialization.save(x, '{}')",
    "return os.getcwd()",
    "return ops.aten",
    "return ops",
    "return torch",
    "return __builtins__",
    "return __torch__.os.system('true')",
    "return __torch__.M.forward.__globals__",
    "return CONSTANTS.c0",
    "return CONSTANTS.__class__",
    "return b'bytes'",
    "return x if await x else x",
    "import os\nreturn x",
    "from os import system\nreturn x",
    "global q\nreturn x",
    "try:\n  return x\nexcept Exception:\n  return x",
    "def f(y=open('{}', 'w')):\n  return y\nreturn x",
    "class C:\n  pass\nreturn x",
    "raise x",
    "del x",
    "yield x",
    "async def f():\n  pass\nreturn x",
    "with open('{}', 'w') as f:\n  return x",
    "return x.view(*[1])",
    "return torch.sum(x, **{'dim': 1})",
    "return isinstance(x, os.system)",
    "return annotate(__import__('os'), x)",
]
AT_RUN = [
    "return x.__class__",
    "return x.__dict__",
    "return getattr(x, '__class__')",
    "return getattr(self, '_unit')",
    "return getattr(self, '__dict__')",
    "return self._modules",
    "return self.forward",
    "return self.training.__class__",
    "return 'a'.__class__",
    "return (1).__class__.__bases__",
    "return [].__class__",
    "return x.numpy()",
    "return x.tofile('{}')",
    "return x.register_hook(1)",
    "return x.share_memory_()",
    "return x.__reduce_ex__(2)",
    "return x.__array__()",
    "return x.untyped_storage()",
    "return x.data_ptr()",
    "return x.grad_fn",
    "return self.register_forward_hook(x)",
    "return self.__getattribute__('x')",
    "return self.save('{}')",
    "return self.state_dict()",
    "return 'x'.format_map(self)",
    "return '{0.__class__}'.format(x)",
    "return '{}'.format.__self__",
    "return 'x'.encode()",
    "return [1].__len__()",
    "return torch.save(x, '{}')",
    "return torch.load('{}')",
    "return torch.from_file('{}', True, 4)",
    "return torch.from_numpy(x)",
    "return torch.compile(x)",
    "return torch.set_num_threads(1)",
    "return torch.set_default_dtype(x)",
    "return torch.load_library('{}')",
    "return torch.numpy(x)",
    "return torch.__class__(x)",
    "return torch._lend_storage(x)",
    "return ops.aten.from_file('{}', True, 4)",
    "return ops.aten.save(x, '{}')",
    "return ops.profiler.x(x)",
    "return ops.prim.__class__(x)",
    "return ops.prim.PythonOp(x)",
    "return torch.pop(self)",
    "return torch.keys(self)",
    "return torch.wait(x)",
    "return self[0]",
    "self.hidden = x\nreturn x",
    "self.forward = x\nreturn x",
    "x.data = x\nreturn x",
    "y = x\nreturn y(x)",
    "y = [x]\nreturn y[0].__class__",
]


def attack(file, path):
    """What an archive raises; the path that it tries to write must not be there."""
    try:
        torch.jit.load(file)(torch.ones(2))
    except Exception as error:
        assert not os.path.exists(path)
        return error
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize("body", AT_LOAD)
def test_refused_at_load(body, tmp_path):
    path = tmp_path / "written"
    with pytest.raises(CheckpointError):
        torch.jit.load(archives.of_body(body.replace("{}", str(path), 1) if "'{}'" in body else body))
    assert not path.exists()


@pytest.mark.parametrize("body", AT_RUN)
def test_refused_when_it_runs(body, tmp_path):
    path = tmp_path / "written"
    error = attack(archives.of_body(body.replace("'{}'", f"'{path}'")), path)
    assert isinstance(error, (RuntimeError, torch.jit.Error)), repr(error)


CLASSES = [
    "class M(Module):\n  x = __import__('os')\n",
    "class M(Module):\n  training : bool = open('x', 'w')\n",
    "class M(__import__('os')):\n  pass\n",
    "class M(Module, metaclass=type):\n  pass\n",
    "@staticmethod\nclass M(Module):\n  pass\n",
    "class M(Module):\n  _modules : int\n  def forward(self, x): return x\n",
    "class M(Module):\n  _forward_hooks : Dict[int, int]\n",
    "class M(Module):\n  __class__ : int\n",
    "class M(Module):\n  __annotations__['__dict__'] = int\n",
    "class M(Module):\n  _class : int\n",
    "class M(Module):\n  training : __import__('os').x\n",
    "class M(Module):\n  training : List[int, int]\n",
    "class M(Module):\n  @property\n  def forward(self, x): return x\n",
    "class M(Module):\n  def forward(self, x, *args): return x\n",
    "class M(Module):\n  def forward(self, x=[].append(1)): return x\n",
    "import os\nclass M(Module):\n  pass\n",
    "M = 1\n",
    "class M(Module):\n  while True: pass\n",
    "\0",
    "class M(Module:\n",
    "(" * 5000,
    "class M(Module):\n  def forward(self, x):\n    return " + "-" * 100000 + "1\n",
]


@pytest.mark.parametrize("code", CLASSES, ids=range(len(CLASSES)))
def test_classes_that_are_none(code):
    with pytest.raises(CheckpointError):
        torch.jit.load(archives.made(code))


PICKLES = [
    b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.",
    b"\x80\x02cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
    b"\x80\x02c__torch__\nM\n)R.",
    b"\x80\x02c__torch__\nAbsent\n)\x81.",
    b"\x80\x02c__torch__.os\nsystem\n)\x81.",
    b"\x80\x02c__torch__\nM\n)\x81}(X\x07\x00\x00\x00forward\x89ub.",
    b"\x80\x02c__torch__\nM\n)\x81}(X\x08\x00\x00\x00_modules}ub.",
    b"\x80\x02c__torch__\nM\n)\x81}(X\x09\x00\x00\x00__class__K\x01ub.",
    b"\x80\x02c__torch__\nM\n}b.",
    b"\x80\x02c__torch__\nM\n.",
    b"\x80\x02K\x01.",
    b"\x80\x02(\x81.",
    b"\x80\x02b.",
    b"\x80\x02ctorch.jit._pickle\nrestore_type_tag\n.",
    b"\x80\x02ctorch.jit._pickle\nbuild_tensor_from_id\n(K\x01tR.",
    b"",
]


@pytest.mark.parametrize("data", PICKLES, ids=range(len(PICKLES)))
def test_pickles_that_are_none(data):
    code = archives.MODULE + "  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return x\n"
    with pytest.raises(CheckpointError):
        torch.jit.load(archives.made(code, data))


def test_a_pickle_that_holds_itself():
    code = "class M(Module):\n  training : bool\n  l : List[int]\n  def forward(self: __torch__.M, x: Tensor) -> Tensor:\n    return x\n"
    data = b"\x80\x02c__torch__\nM\n)\x81}(X\x01\x00\x00\x00l]q\x00h\x00aub."
    with pytest.raises(CheckpointError):
        torch.jit.load(archives.made(code, data))


def test_names_of_enumerations_and_tuples():
    for members in ("__class__ = 1", "mro = 1", "_x = 1"):
        before = f"class C(Enum):\n  {members}\n"
        name = members.split()[0]
        with pytest.raises(CheckpointError):
            torch.jit.load(archives.of_body(f"return torch.eq(__torch__.C.{name}, __torch__.C.{name})", before=before))
    with pytest.raises(CheckpointError):
        torch.jit.load(archives.of_body("return __torch__.P(x)", before="class P(NamedTuple):\n  __slots__ : Tensor\n"))


def test_damaged_archives():
    """Each byte of the code and of the pickles replaced in turn: an error of the loader's class, or a module."""
    file, _ = archives.recorded("prop")
    with zipfile.ZipFile(file) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    for name in [n for n in parts if n.endswith((".py", ".pkl"))]:
        for place in range(0, len(parts[name]), 7):
            changed = io.BytesIO()
            with zipfile.ZipFile(changed, "w") as archive:
                for other, data in parts.items():
                    if other == name:
                        data = data[:place] + bytes([data[place] ^ 0x15]) + data[place + 1 :]
                    archive.writestr(other, data)
            changed.seek(0)
            try:
                torch.jit.load(changed)
            except CheckpointError:
                pass
