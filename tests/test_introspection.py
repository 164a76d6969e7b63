"""Introspection: signatures, `help()`, the `repr` of methods, `dir()`."""

import copy
import gc
import importlib
import inspect
import pickle
import pkgutil
import pydoc
import re
import sys
import types
import weakref

import pytest
from support import target
from support.optable import ops
from support.samples import parse

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")


def callables(torch):
    """(where, name, value): the functions of each namespace and the methods of `Tensor`."""
    for home in (torch, torch.nn.functional, torch.linalg, torch.special, torch.nn.init, torch.Tensor):
        for name in dir(home):
            value = getattr(home, name)
            if name[0] != "_" and callable(value) and not isinstance(value, type):
                yield f"{getattr(home, '__name__', '')}.{name}", value


def test_every_function_has_a_signature(torch):
    bare = []
    for where, value in callables(torch):
        try:
            inspect.signature(value)
        except ValueError as error:
            bare.append(f"{where}: {error}")
    assert not bare


def bound_by(function, args, kwargs, text):
    """Why the arguments of a sample do not match the signature of a callable; empty if they do."""
    signature = inspect.signature(function)
    # The signature shows a variadic parameter, which takes positional arguments only.
    collected = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    shown = {"self": "input"}.get
    given = {shown(k, k): v for k, v in kwargs.items()}
    args = (*args, *(given.pop(name) for name in collected if name in given))
    try:
        signature.bind(*args, **given)
    except TypeError as error:
        return f"{text}: {error} {signature}"
    return ""


def test_every_sample_fits_the_signature(torch):
    """One signature covers all overloads: every valid call can be bound."""
    wrong, count = [], 0
    for op in ops():
        home = torch
        *spaces, leaf = op.public.split(".")
        for space in spaces:
            home = getattr(home, space)
        forms = [getattr(home, leaf, None)] * op.function + [getattr(torch.Tensor, leaf, None)] * op.method
        for function in forms:
            if type(function).__name__ != "Op":
                continue
            for text in op.samples:
                call = parse(text)
                wrong.append(bound_by(function, call.args, call.kwargs, f"{op.name}({text})"))
                count += 1
    assert count > 1000 and not [w for w in wrong if w]


@pytest.mark.parametrize(
    "name, signature",
    [
        ("add", "(input, other, *, alpha=1, out=None)"),
        ("max", "(input, dim=Ellipsis, keepdim=False, *, other=Ellipsis, out=None)"),
        (
            "randn",
            "(*size, generator=None, dtype=None, device=None, layout=None, pin_memory=False, requires_grad=False, out=None)",
        ),
        ("nn.functional.cross_entropy", None),
        ("Tensor.add", "(self, /, other, *, alpha=1)"),
        ("Tensor.add_", "(self, /, other, *, alpha=1)"),
        ("Tensor.view", "(self, /, *size, dtype=Ellipsis)"),
        ("Tensor.uniform_", "(self, from_=0.0, /, to=1.0, *, generator=None)"),
    ],
)
def test_signatures(torch, name, signature):
    found = inspect.signature(pydoc.resolve(f"rustgrad.{name}")[0])
    assert signature is None or str(found) == signature
    assert "input" in found.parameters or "self" in found.parameters or "size" in found.parameters


def test_the_signature_of_a_bound_method(torch):
    x = torch.ones(2)
    assert str(inspect.signature(x.add)) == "(other, *, alpha=1)" and x.add.__text_signature__.startswith("($self")


def test_docs_name_the_parameters_that_are_shown(torch):
    for where, value in callables(torch):
        if type(value).__name__ == "Op" and ".Tensor." not in where and not where.startswith("Tensor."):
            assert not re.search(r"\bself\b", value.__doc__), where
    assert "`input + alpha * other`" in torch.add.__doc__ and "`self + alpha * other`" in torch.Tensor.add.__doc__


def test_docs_show_each_overload_once(torch):
    for where, value in callables(torch):
        if type(value).__name__ == "Op":
            shown = [line for line in value.__doc__.splitlines() if line.startswith(f"{value.__name__}(")]
            assert shown and len(shown) == len(set(shown)), (where, shown)
    assert torch.max.__doc__.count("max(input") == 3 and torch.add.__doc__.count("add(input") == 1
    text = pydoc.plain(pydoc.render_doc(torch.add))
    assert text.count("add(input, other, *, alpha=1, out=None)") == 2  # the head that pydoc makes, and the doc


def test_a_method_taken_from_a_tensor(torch):
    x = torch.arange(3.0)
    add = x.add
    assert repr(add) == f"<built-in method add of Tensor object at {id(x):#x}>"
    assert repr(torch.Tensor.add) == "<method 'add' of 'Tensor' objects>"
    assert add(1).tolist() == [1, 2, 3] and add(torch.ones(3), alpha=2).tolist() == [2, 3, 4]
    assert add.__self__ is x and add.__func__ is torch.Tensor.add and add.__name__ == "add"
    assert add.__qualname__ == "Tensor.add" and add.__doc__ == torch.Tensor.add.__doc__
    assert add == x.add and hash(add) == hash(x.add) and add != x.mul and add != torch.ones(3).add and add != 3
    assert weakref.ref(add)() is add
    assert pickle.loads(pickle.dumps(add))(1).tolist() == [1, 2, 3] and copy.copy(add)(1).tolist() == [1, 2, 3]
    with pytest.raises(TypeError, match="missing 1 required positional"):
        add()
    with pytest.raises(TypeError, match="unexpected keyword|invalid combination"):
        add(1, beta=2)


def test_a_method_kept_by_its_own_tensor_is_collected(torch):
    class Sub(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Sub)
    x.kept = x.add_
    gone = weakref.ref(x)
    del x
    gc.collect()
    assert gone() is None


def test_forward_says_what_its_module_does(torch):
    common = torch.nn.Module.forward.__doc__
    for name in torch.nn.modules.__all__:
        cls = getattr(torch.nn, name)
        if not issubclass(cls, torch.nn.Module):
            continue  # options of a layer
        assert cls is torch.nn.Module or cls.forward is torch.nn.Module.forward or cls.forward.__doc__ != common, name
    assert "x A^T + b" in inspect.getdoc(torch.nn.Linear.forward)
    assert "in_features" in inspect.getdoc(torch.nn.Linear.forward)


def namespaces():
    """The modules of the package that programs import names from, without the files of one family."""
    import rustgrad

    yield rustgrad
    for found in pkgutil.walk_packages(rustgrad.__path__, "rustgrad."):
        if found.ispkg or found.name in NAMESPACES:
            if not any(part.startswith("_") for part in found.name.split(".")):
                try:
                    yield importlib.import_module(found.name)
                except ImportError as error:  # a module over a package of an extra
                    assert "pip install rustgrad[" in str(error)


NAMESPACES = {
    f"rustgrad.{name}"
    for name in "accelerator cuda gpu linalg nn.functional nn.init optim.lr_scheduler random serialization special storage "
    "autograd.functional autograd.graph functional masked signal.windows types xpu".split()
}


def test_dir_shows_public_names():
    for module in namespaces():
        shown = [n for n in dir(module) if not (n.startswith("__") and n.endswith("__"))]
        assert set(shown) == set(module.__all__) - {"__version__"}, module.__name__
        assert not [n for n in shown if n[0] == "_"], module.__name__
        for name in shown:
            try:
                value = getattr(module, name)
            except ImportError as error:  # a module over a package of an extra
                assert "pip install rustgrad[" in str(error)
                continue
            foreign = isinstance(value, types.ModuleType) and not value.__name__.startswith("rustgrad")
            assert not foreign, f"{module.__name__}.{name}"
    assert "importlib" not in dir(sys.modules["rustgrad"]) and "alias" not in dir(sys.modules["rustgrad"])


TYPED = (
    "nn nn.init nn.utils nn.utils.rnn optim optim.lr_scheduler optim.swa_utils utils utils.data utils.checkpoint autograd "
    "autograd.function autograd.functional autograd.graph cuda gpu random serialization storage testing viz xpu _unpickler utils._pytree".split()
)


def test_public_functions_are_annotated(torch):
    """Every parameter and result of the package's own functions has a type."""
    bare = []
    modules = [torch, *(importlib.import_module(f"{torch.__name__}.{name}") for name in TYPED)]
    for module in modules:
        for name in module.__all__:
            value = getattr(module, name)
            if hasattr(torch._C, name):  # typed in tools/natives.pyi
                continue
            for member in vars(value).values() if isinstance(value, type) else [value]:
                function = getattr(member, "__func__", member)
                ours = isinstance(function, types.FunctionType) and function.__module__.startswith("rustgrad")
                if ours and unannotated(function):
                    bare.append(f"{function.__module__}.{function.__qualname__}")
    assert not bare, f"without types: {sorted(set(bare))}"


def unannotated(function):
    public = function.__name__[0] != "_" or function.__name__.startswith("__")
    names = [n for n in inspect.signature(function).parameters if n not in ("self", "cls")]
    return public and not {*names, "return"} <= set(function.__annotations__)


def test_functions_that_are_attributes_of_a_class_do_not_bind(torch):
    class Layer(torch.nn.Module):
        act = torch.relu
        conv = torch.nn.functional.conv2d

        def forward(self, x):
            apply = self.act
            return self.act(x), apply(x), self.conv(x, torch.ones(1, 1, 1, 1))

    x = torch.tensor([[[[-1.0, 2.0]]]])
    results = Layer()(x)
    assert [r.flatten().tolist() for r in results] == [[0, 2], [0, 2], [-1, 2]]
    assert Layer.act is torch.relu and Layer().act is torch.relu
    assert x.relu().tolist() == torch.Tensor.relu(x).tolist() == [[[[0, 2]]]]
    assert "input" in inspect.signature(torch.relu).parameters


def test_types_of_functions_have_modules(torch):
    for function in (torch.relu, torch.Tensor.relu, torch.Tensor.norm):
        assert isinstance(type(function).__module__, str) and isinstance(function.__module__, str)
    assert torch.relu.__module__ == torch.exp.__module__


def test_objects_that_answer_for_every_name_are_no_arrays(torch):
    class Settings(dict):
        __getattr__ = dict.__getitem__

    with pytest.raises(RuntimeError, match="Could not infer dtype of Settings"):
        torch.tensor(Settings())
