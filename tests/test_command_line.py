"""`python -m rustgrad` beside `python`: the same output, errors and exit codes for everything that is run but PyTorch."""

import os
import pickle
import subprocess
import sys
import textwrap
import zipfile

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the command of rustgrad")

SEEN = """
import os, sys
print(sys.argv, os.path.basename(sys.path[0]), __name__, os.path.basename(globals().get("__file__", "none")))
print(sys.flags.optimize, sys.flags.utf8_mode, sys.warnoptions, getattr(__spec__, "name", None), __package__)
"""
PROCESSES = """
import multiprocessing as mp
class K: pass
def next_to(x):
    return x + 1
if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        with mp.get_context(method).Pool(1) as pool:
            print(method, pool.map(next_to, [1]), type(pool.map(type, [K()])[0]()) is not None)
"""
FILES = {
    "a.py": SEEN,
    "pkg/__init__.py": "",
    "pkg/__main__.py": SEEN,
    "folder/__main__.py": SEEN,
    "exits.py": "import sys; sys.exit(7)",
    "exits_with_words.py": "import sys; sys.exit('bad')",
    "fails.py": "def f():\n    raise ValueError('x')\nf()",
    "wrong.py": "def (",
    "stopped.py": "raise KeyboardInterrupt",
    "warns.py": "import warnings; warnings.warn('hello')",
    "value.py": "x = 5",
    "at_end.py": "import atexit, sys\nX = 3\natexit.register(lambda: print(sys.modules['__main__'].X))",
    "processes.py": PROCESSES,
}
COMMANDS = {
    "a script": ["a.py", "1", "-u"],
    "a link": ["sub/link.py"],
    "a package": ["-m", "pkg", "x"],
    "a module": ["-m", "a"],
    "a folder": ["folder", "q"],
    "an archive": ["archive.pyz", "q"],
    "an archive of any name": ["archive", "q"],
    "compiled": ["compiled.pyc"],
    "code": ["-c", SEEN, "a"],
    "read": ["-", "a", "b"],
    "unbuffered and optimised": ["-OO", "-u", "a.py"],
    "joined options": ["-Ou", "a.py"],
    "a warning": ["warns.py"],
    "a warning as error": ["-W", "error", "warns.py"],
    "a joined warning": ["-Werror", "-m", "warns"],
    "an option of the implementation": ["-X", "utf8", "a.py"],
    "exit": ["exits.py"],
    "exit with words": ["exits_with_words.py"],
    "an error": ["fails.py"],
    "no syntax": ["wrong.py"],
    "an interruption": ["stopped.py"],
    "no module": ["-m", "pkg.absent"],
    "at the end": ["at_end.py"],
    "at the end of a module": ["-m", "at_end"],
    "a session": ["-i", "value.py"],
    "a session after an exit": ["-i", "exits.py"],
    "a session after an error": ["-i", "fails.py"],
    "a profiler": ["-m", "pdb", "-c", "c", "value.py"],
    "processes": ["processes.py"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    home = tmp_path_factory.mktemp("programs")
    for name, text in FILES.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    (home / "sub").mkdir()
    (home / "sub" / "link.py").symlink_to(home / "a.py")
    for name in ("archive.pyz", "archive"):
        with zipfile.ZipFile(home / name, "w") as archive:
            archive.writestr("__main__.py", SEEN)
    code = "import py_compile; py_compile.compile('a.py', 'compiled.pyc')"
    subprocess.run([sys.executable, "-c", code], cwd=home, check=True)
    return home


def outcome(folder, *command):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, input="print(__name__)\n", capture_output=True, text=True, timeout=120
    )  # fmt: skip
    # How the interpreter finds a module is its own affair, and shows before 3.12 only.
    lines = done.stderr.splitlines()
    # Before 3.11 with the lines of its source.
    shown = [line for before, line in zip(["", *lines], lines) if not ("runpy" in line or "runpy.py" in before)]
    # A shell shows a death by SIGINT as 130.
    return 130 if done.returncode == -2 else done.returncode, done.stdout, shown


@pytest.mark.skipif(os.name != "posix", reason="links, and starting again in the same process")
@pytest.mark.parametrize("name", COMMANDS)
def test_it_is_like_python(folder, name):
    command = COMMANDS[name]
    assert outcome(folder, "-m", "rustgrad", *command) == outcome(folder, *command)


def test_options_do_not_lose_torch(folder):
    probe = "import sys, torch; print(torch.nn.__name__, torch.__version__[:2], sys.flags.optimize, sys.argv)"
    for options in ((), ("-O",), ("-W", "error", "-O"), ("-uO",)):
        code, out, err = outcome(folder, "-m", "rustgrad", *options, "-c", probe, "a")
        assert code == 0 and out == f"rustgrad.nn 2. {int(bool(options))} ['-c', 'a']\n", (options, out, err)
    code, out, _ = outcome(folder, "-O", "-m", "rustgrad", "-u", "-c", probe)
    assert code == 0 and out.split()[2] == "1"  # what the first interpreter was given is kept
    code, out, _ = outcome(folder, "-m", "rustgrad", "-m", "torch.utils.collect_env")
    assert code == 0 and "rustgrad" in out


CLASSES = """
import copy, pickle, sys, typing
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1), nn.LSTM(1, 1))
optimizer = torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
print(type(model), type(model[0]).__module__, nn.Parameter, nn.CrossEntropyLoss)
print(type(optimizer), type(schedule), torch.optim.Optimizer)
print(typing.get_type_hints(nn.Linear)["weight"], sys.modules["torch.nn.modules.linear"].Linear is nn.Linear)
copies = copy.deepcopy(model), copy.copy(model[0])
print(copies[0][0].weight is model[0].weight, copies[1].weight is model[0].weight, copy.deepcopy(torch.int8) is torch.int8)

class Sub(nn.Linear):
    pass

print(type(pickle.loads(pickle.dumps(Sub(1, 1)))), pickle.loads(pickle.dumps(nn.Linear)) is nn.Linear)
with open("here.pkl", "wb") as file:
    pickle.dump([model, optimizer, schedule, torch.int8, model[0].weight.shape, torch.device("cpu")], file)
torch.save(model, "here.pt")
print(pickle.load(open("there.pkl", "rb"))[0].weight, torch.load("there.pt", weights_only=False))
"""


def test_layers_and_optimizers_are_classes_of_torch(torch, folder):
    """They say so, and pickles and checkpoints of either kind of program can be read by the other."""
    layer = torch.nn.Linear(1, 1, bias=False)
    layer.weight.data.fill_(2)
    (folder / "there.pkl").write_bytes(pickle.dumps([layer, torch.optim.SGD(layer.parameters())]))
    torch.save(layer, folder / "there.pt")
    code, out, err = outcome(folder, "-m", "rustgrad", "-c", CLASSES)
    assert code == 0, err
    expected = """
        <class 'torch.nn.modules.container.Sequential'> torch.nn.modules.linear <class 'torch.nn.parameter.Parameter'> <class 'torch.nn.modules.loss.CrossEntropyLoss'>
        <class 'torch.optim.adam.Adam'> <class 'torch.optim.lr_scheduler.StepLR'> <class 'torch.optim.optimizer.Optimizer'>
        <class 'torch.nn.parameter.Parameter'> True
        False True True
        <class '__main__.Sub'> True
        Parameter containing:
        tensor([[2.]], requires_grad=True) Linear(in_features=1, out_features=1, bias=False)
    """
    assert out.strip() == textwrap.dedent(expected).strip()
    model, optimizer, schedule, *rest = pickle.loads((folder / "here.pkl").read_bytes())
    assert type(model[0]) is torch.nn.Linear and type(optimizer) is torch.optim.Adam and schedule.optimizer is optimizer
    assert optimizer.param_groups[0]["params"][0] is model[0].weight
    assert rest == [torch.int8, torch.Size([1, 2]), torch.device("cpu")]
    read = torch.load(folder / "here.pt", weights_only=False)
    assert torch.equal(read[2].weight_ih_l0, model[2].weight_ih_l0)
    with zipfile.ZipFile(folder / "here.pt") as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("data.pkl"))
        data = archive.read(name)
    # PyTorch reads the names of its classes there, and the lists that its recurrent layers expect.
    assert b"torch.nn.modules.linear" in data and b"rustgrad" not in data and b"_flat_weights_names" in data


ALIAS = """
import sys
import rustgrad
sys.modules["torch"] = rustgrad
import torch, functorch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader
assert torch.nn is rustgrad.nn and nn.functional is F and sys.modules["torch.utils.data"] is rustgrad.utils.data
assert functorch.vmap.__wrapped__ is rustgrad.vmap and torch.nn.__name__ == "rustgrad.nn"
x = torch.ones(3, requires_grad=True)
checkpoint(lambda t: t.sin(), x, use_reentrant=False).sum().backward()
try:
    import torch.nothing
except ModuleNotFoundError as error:
    print(error.name, type(x.grad).__name__)
"""


MODULES = """
import torch
from torch.ao.quantization.fuse_modules import fuse_modules
from torch.ao.quantization.quantize import prepare
print(torch.ao.quantization.fuse_modules is fuse_modules, callable(torch.ao.quantization.quantize))
from torch.quantization.observer import MinMaxObserver
from torch.quantization.quantize_fx import prepare_fx
from torch.quantization.quantize import convert
print(callable(torch.quantization.quantize), torch.quantization.observer is torch.ao.quantization.observer)
print(MinMaxObserver is torch.ao.quantization.MinMaxObserver)
from torch.nn.parallel.parallel_apply import get_a_var, parallel_apply
print(torch.nn.parallel.parallel_apply is parallel_apply, get_a_var([1, {"a": torch.ones(1)}]), get_a_var("a"))
"""


def test_a_module_does_not_take_the_place_of_a_function_of_its_name(folder):
    code, out, err = outcome(folder, "-m", "rustgrad", "-c", MODULES)
    assert code == 0 and out.split("\n") == ["True True", "True True", "True", "True tensor([1.]) None", ""], err


def test_a_program_may_make_torch_mean_rustgrad_itself():
    run = subprocess.run([sys.executable, "-c", ALIAS], capture_output=True, text=True)
    assert run.stdout == "torch.nothing Tensor\n", run.stderr
