"""`library.opcheck`: whether an op of a program does what its schema and its registrations say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import _C
from ._op_defs import CustomOpDef
from ._ops import OpOverload, OpOverloadPacket, ops
from .autograd import grad
from .utils import _pytree

__all__ = ["OpCheckError", "opcheck"]

TESTS = ("test_schema", "test_autograd_registration", "test_faketensor", "test_aot_dispatch_dynamic")
_KNOWN = (*TESTS[:3], "test_aot_dispatch_static", TESTS[3])


class OpCheckError(Exception):
    """What `opcheck` found."""


def _overload(op: Any) -> OpOverload:
    if isinstance(op, CustomOpDef):
        op = getattr(getattr(ops, op._namespace), op._name)
    if isinstance(op, OpOverloadPacket):
        op = op.default
    if not isinstance(op, OpOverload):
        raise ValueError(
            "opcheck(op, ...): op must be instance of torch._ops.OpOverload, e.g. torch.ops.aten.sin.default, got "
            f"{type(op)}"
        )
    return op


def _tensors(tree: Any) -> list[Any]:
    return [t for t in _pytree.tree_leaves(tree) if isinstance(t, _C.Tensor)]


def _copied(tree: Any) -> Any:
    return _pytree.tree_map(
        lambda t: t.detach().clone().requires_grad_(t.requires_grad) if isinstance(t, _C.Tensor) else t, tree
    )


def _test_schema(op: OpOverload, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    args, kwargs = _pytree.tree_map(lambda t: t.detach().clone() if isinstance(t, _C.Tensor) else t, (args, kwargs))
    before = _copied((args, kwargs))
    out = op(*args, **kwargs)
    schema = op._schema
    named = {a.name: a.writes for a in schema.arguments} if schema is not None else {}
    given = {**dict(zip(named, args)), **kwargs}
    known = {**dict(zip(named, before[0])), **before[1]}
    results = {t.untyped_storage()._cdata for t in _tensors(out)}
    for name, value in given.items():
        for now, was in zip(_tensors(value), _tensors(known[name])):
            same = now.shape == was.shape and now.nan_to_num().equal(was.nan_to_num())
            if not same and not named.get(name):
                raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
            if now.untyped_storage()._cdata in results and not named.get(name):
                raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")


def _test_autograd_registration(op: OpOverload, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    kernel = op.overloadpacket._function
    if not isinstance(kernel, CustomOpDef) or not any(t.requires_grad for t in _tensors((args, kwargs))):
        return
    out = [t for t in _tensors(op(*_copied(args), **_copied(kwargs))) if t.requires_grad]
    own = kernel._init_fn is not None or kernel._backward is not None or kernel._autograd is not None
    if out and not own and not kernel._is_composite:
        raise AssertionError(
            f"{op}: its result requires grad, but no gradient was registered for it: the calls inside its kernel were recorded. "
            "Please use torch.library.register_autograd"
        )


def _test_faketensor(op: OpOverload, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    from ._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    fake = _pytree.tree_map(lambda t: mode.from_tensor(t) if isinstance(t, _C.Tensor) else t, (args, kwargs))
    with mode:
        guessed = op(*fake[0], **fake[1])
    _same_form(op, guessed, op(*_copied(args), **_copied(kwargs)))


def _same_form(op: OpOverload, guessed: Any, real: Any) -> None:
    where = f"When comparing the output of {op} on FakeTensor and concrete Tensors, found mismatched"
    guesses, reals = _tensors(guessed), _tensors(real)
    if len(guesses) != len(reals):
        raise AssertionError(f"{where} number of tensors: {len(reals)} and {len(guesses)} are not equal!")
    for r, g in zip(guesses, reals):
        forms = [("Shapes", g.shape, r.shape), ("Dtypes", g.dtype, r.dtype), ("Devices", g.device, r.device)]
        if r.numel() and g.shape == r.shape:
            forms.append(("Strides", g.stride(), r.stride()))
        for what, a, b in forms:
            if a != b:
                raise AssertionError(f"{where} tensor metadata: {what} {a} and {b} are not equal!")


def _test_aot_dispatch_dynamic(op: OpOverload, args: Any, kwargs: Any, close: Callable[..., None]) -> None:
    from .fx.experimental.proxy_tensor import make_fx

    flat, spec = _pytree.tree_flatten((args, kwargs))
    places = [i for i, v in enumerate(flat) if isinstance(v, _C.Tensor)]
    wants = [flat[i].requires_grad for i in places]

    def both(*tensors: Any) -> Any:
        leaves = [t.detach().clone().requires_grad_(want) for t, want in zip(tensors, wants)]
        given = list(flat)
        for i, t in zip(places, leaves):
            given[i] = t
        args, kwargs = _pytree.tree_unflatten(given, spec)
        out = _tensors(op(*args, **kwargs))
        # Elements that are differentiated by.
        outs, inputs = [o for o in out if o.requires_grad], [t for t in leaves if t.requires_grad]
        grads = grad([o.sum() for o in outs], inputs, allow_unused=True) if outs and inputs else ()
        return [o.detach() for o in out], [g for g in grads if g is not None]

    tensors = [flat[i] for i in places]
    for got, want in zip(_tensors(make_fx(both, tracing_mode="fake")(*tensors)(*tensors)), _tensors(both(*tensors))):
        close(got, want)


_test_aot_dispatch_static = _test_aot_dispatch_dynamic


def opcheck(
    op: Any,
    args: Any,
    kwargs: Any,
    test_utils: str | Sequence[str],
    raise_exception: bool,
    atol: float | None,
    rtol: float | None,
) -> dict[str, Any]:
    """`library.opcheck`."""
    from .testing import assert_close

    op = _overload(op)
    names = (test_utils,) if isinstance(test_utils, str) else tuple(test_utils)
    unknown = [name for name in names if name not in _KNOWN]
    if unknown:
        raise ValueError(
            f"opcheck(op, ..., test_utils={names}), expected test_utils to be subset of {_KNOWN} but it was not"
        )
    found: dict[str, Any] = {}
    for name in names:
        try:
            globals()[f"_{name}"](op, args, kwargs or {}, lambda a, b: assert_close(a, b, atol=atol, rtol=rtol))
            found[name] = "SUCCESS"
        except Exception as error:
            if raise_exception:
                raise OpCheckError(
                    f"opcheck(op, ...): {name} failed with {error} (scroll up for stack trace)"
                ) from error
            found[name] = error
    return found
