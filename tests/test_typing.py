"""Type checks of the stubs, of a training script, of the examples. `mypy --strict` and pyright read the
installed package, as they do for a user."""

import ast
import importlib
import inspect
import json
import shutil
import subprocess
import sys
import typing
from pathlib import Path

import pytest
from support import target
from support.optable import ops
from support.samples import DTypeName, TensorSpec, parse

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="the types of rustgrad")
ROOT = Path(__file__).parent.parent
TYPED = ROOT / "tests" / "typed"
SCRIPTS = [*sorted(TYPED.glob("*.py")), *sorted((ROOT / "examples").glob("*.py"))]
PACKAGE = Path(target.torch.__file__).parent

SPACES = """
nn nn.functional nn.init nn.utils nn.utils.rnn nn.utils.parametrize nn.utils.prune optim optim.lr_scheduler optim.swa_utils autograd
autograd.functional autograd.graph autograd.forward_ad utils.data utils.checkpoint utils.hooks func linalg fft special distributions
serialization random amp testing storage masked overrides
""".split()


def files(what, folder):
    """The scripts, or the stubs in a copy of the package: in place a checker treats them as a library's."""
    if what == "scripts":
        return SCRIPTS
    if what == "samples":
        (folder / "calls.py").write_text("\n".join(["import rustgrad as torch", "t = torch.ones(2)", *samples()]))
        return [folder / "calls.py"]
    shutil.copytree(PACKAGE, folder / "rustgrad", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return sorted((folder / "rustgrad").rglob("*.pyi"))


def samples():
    """Every sample of the op table as a line of a program; tensors are `t`."""
    calls = {}
    for op in ops():
        for call in [] if op.hidden else map(parse, op.samples):
            first = 0 if op.function else 1
            keywords = [f"{'input' if k == 'self' else k}={source(v)}" for k, v in call.kwargs.items()]
            owner = f"torch.{op.public}" if op.function else f"t.{op.leaf}"
            calls[f"{owner}({', '.join([*map(source, call.args[first:]), *keywords])})"] = None
    assert len(calls) > 1000
    return calls


def source(value):
    if isinstance(value, TensorSpec):
        return "t"
    if isinstance(value, DTypeName):
        return f"torch.{value.name}"
    if isinstance(value, (list, tuple)):
        inner = "".join(f"{source(v)}, " for v in value)
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return f'float("{value}")' if value in (float("inf"), -float("inf")) or value != value else repr(value)


def run(*command, cwd):
    return subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=cwd, timeout=300).stdout


def test_hand_written_stubs_name_what_is_there():
    """`tools/natives.pyi` against the methods of `Tensor` written in Python: names, and keyword-only parameters."""
    tree = ast.parse((ROOT / "tools" / "natives.pyi").read_text())
    [tensor] = (n for n in tree.body if getattr(n, "name", None) == "Tensor")
    stubs = {}
    for node in tensor.body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            stubs.setdefault(node.name, []).append(node.args)
    wrong = []
    for name, overloads in stubs.items():
        method = inspect.getattr_static(target.torch.Tensor, name)
        given = list(inspect.signature(method).parameters.values()) if inspect.isfunction(method) else []
        if len(overloads) > 1 or not given or any(p.kind is p.VAR_KEYWORD for p in given):
            continue
        [args] = overloads
        positional, by_name = ([p.name for p in given if (p.kind is p.KEYWORD_ONLY) is only] for only in (False, True))
        shown = [a.arg for a in [*args.posonlyargs, *args.args, *filter(None, [args.vararg])]]
        if shown[1:] != positional[1:] or [a.arg for a in args.kwonlyargs] != by_name:
            wrong.append(f"{name}: {inspect.signature(method)} is {ast.unparse(args)} in the stub")
    assert len(stubs) > 50 and not wrong


def test_stubs_are_installed():
    assert (PACKAGE / "py.typed").exists()
    source = ROOT / "python" / "rustgrad"
    assert {p.relative_to(source) for p in source.rglob("*.pyi")} == {
        p.relative_to(PACKAGE) for p in PACKAGE.rglob("*.pyi")
    }


@pytest.mark.parametrize("what", ["scripts", "stubs", "samples"])
def test_mypy(what, tmp_path):
    asked = files(what, tmp_path)
    options = ["--config-file", ROOT / "pyproject.toml", "--cache-dir", tmp_path / "cache", "--follow-imports=silent"]
    said = run("mypy", "--strict", *options, *asked, cwd=ROOT if what == "scripts" else tmp_path)
    assert said == f"Success: no issues found in {len(asked)} source file{'s' * (len(asked) > 1)}\n", said[:4000]


@pytest.mark.parametrize("what", ["scripts", "stubs", "samples"])
def test_pyright(what, tmp_path):
    asked = files(what, tmp_path)
    settings = {
        "include": [str(f) for f in asked],
        "extraPaths": [str(ROOT / "examples")],
        "typeCheckingMode": "standard",
        "reportMissingModuleSource": "none",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    python = ["--pythonpath", sys.executable]
    report = json.loads(run("basedpyright", "--project", tmp_path, *python, "--outputjson", cwd=tmp_path))
    wrong = [d for d in report["generalDiagnostics"] if d["severity"] == "error"]
    assert report["summary"]["filesAnalyzed"] >= len(asked)
    assert not wrong, "\n".join(f"{d['file']}:{d['range']['start']['line'] + 1}: {d['message']}" for d in wrong)


def test_the_typed_script_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, TYPED / "training.py", tmp_path], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_annotations_can_be_evaluated(torch):
    """`typing.get_type_hints`, which libraries of arguments and of validation call, works for nearly every public function."""
    failed, count = {}, 0
    for space in SPACES:
        module = importlib.import_module(f"rustgrad.{space}".rstrip("."))
        for name in getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]:
            value = getattr(module, name)
            functions = {name: value} if inspect.isfunction(value) else {}
            if isinstance(value, type) and value.__module__.startswith("rustgrad"):
                methods = {k: v for k, v in vars(value).items() if inspect.isfunction(v)}
                functions = {name: value, **{f"{name}.{k}": v for k, v in methods.items()}}
            for path, function in functions.items():
                count += 1
                try:
                    typing.get_type_hints(function)
                except NameError as error:
                    failed[f"{space}.{path}"] = error.name
    # Names of modules that import each other.
    assert count > 1000 and set(failed.values()) <= {
        "GradientEdge",
        "Module",
        "RemovableHandle",
        "_HasForward",
        "LinearCrossEntropyOptions",
    }, failed
    assert len(failed) < 15, failed
