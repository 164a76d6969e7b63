"""Documentation: the examples in docs/ run, and every public name has its own docstring."""

import doctest
import importlib
import inspect
import itertools
import pkgutil
from pathlib import Path

import pytest
from support import target

pytestmark = pytest.mark.skipif(target.STAND_IN, reason="what only rustgrad has")
ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["docs/coming_from_pytorch.md"])
@pytest.mark.filterwarnings("ignore")
def test_examples(torch, page, monkeypatch):
    """The examples of a page, in sequence, as a reader would type them in a new interpreter."""
    monkeypatch.setattr(importlib.import_module("rustgrad.nested._ragged"), "_numbers", itertools.count(1))
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    text = (ROOT / page).read_text().replace("```python", "").replace("```", "")
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(doctest.DocTestParser().get_doctest(text, {}, page, page, 0))
    assert runner.tries > 20 and not runner.failures


def modules():
    import rustgrad

    yield rustgrad
    for found in pkgutil.walk_packages(rustgrad.__path__, "rustgrad."):
        if not any(part.startswith("_") for part in found.name.split(".")):
            try:
                yield importlib.import_module(found.name)
            except ImportError as error:
                # A module over a package of an extra says which one.
                assert "pip install rustgrad[" in str(error), error


def undocumented():
    """Public functions and classes, and what classes of ours define, without a docstring."""
    for module in modules():
        if not (module.__doc__ or "").strip():
            yield module.__name__
        names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
        for name in names:
            value = getattr(module, name)
            ours = (getattr(value, "__module__", "") or "").startswith("rustgrad")
            if not callable(value) or not ours:
                continue
            if not (value.__doc__ or "").strip():
                yield f"{module.__name__}.{name}"
            if inspect.isclass(value):
                yield from (f"{module.__name__}.{name}.{member}" for member in bare_members(value))


def bare_members(cls):
    for name, member in vars(cls).items():
        described = isinstance(member, (property, staticmethod, classmethod)) or callable(member)
        if (
            not name.startswith("_")
            and described
            and not inspect.isclass(member)
            and not inspect.getdoc(getattr(cls, name))
        ):
            yield name


def test_everything_public_has_a_docstring():
    bare = sorted(set(undocumented()))
    assert not bare, f"{len(bare)} without a docstring: {bare[:60]}"
