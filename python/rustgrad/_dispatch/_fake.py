"""Fake tensors: ops run on the meta device, and their results say the device of their arguments.

The body of a fake tensor is a tensor on meta, so the core records gradients of ops without a formula, of views and of writes itself.
"""

from __future__ import annotations

import weakref
from typing import Any

from .. import _C
from .._C import Tensor
from .._formats import strided
from .._op_defs import CustomOpDef
from .._ops import ops
from .._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorDeviceMismatchError,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from ..autograd.grad_mode import set_grad_enabled
from ..nn.parameter import Parameter
from ..utils import _pytree
from . import _classes
from ._stack import NoOverrides, state
from ._tracing import DRAWS

__all__ = ["answer", "described", "from_tensor", "prepare", "shown", "wrapped"]

aten = ops.aten
_NUMBERS = frozenset("_local_scalar_dense item equal allclose is_nonzero".split())
_SHAPES = frozenset(
    "nonzero masked_select _unique2 _unique unique_dim unique_consecutive bincount repeat_interleave.Tensor".split()
)
# Ops that take the device of their second argument, or say it themselves.
_OWN_DEVICE = frozenset(("copy_", "_to_copy", "to", "set_", "_index_put_impl_", "index_put", "index_put_", "index"))
# Products, whose arguments autocast casts.
_CASTS = frozenset(
    (
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "addbmm",
        "mv",
        "addmv",
        "dot",
        "convolution",
        "_scaled_dot_product_flash_attention_for_cpu",
    )
)
_FRESH = frozenset(("lift_fresh", "lift", "lift_fresh_copy"))


class Known:
    """Tensors by identity, which do not live longer for it."""

    def __init__(self) -> None:
        self._refs: dict[int, Any] = {}

    def add(self, t: Any) -> None:
        """Adds a tensor."""
        refs, key = self._refs, id(t)
        refs[key] = weakref.ref(t, lambda _: refs.pop(key, None))

    def __iter__(self) -> Any:
        return iter([t for t in (ref() for ref in list(self._refs.values())) if t is not None])


@classmethod  # type: ignore[misc]
def _of_class(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """An op outside a mode of fake tensors: in the mode of its arguments."""
    kwargs = kwargs or {}
    if not all(issubclass(kind, (FakeTensor, Parameter)) or kind is Tensor for kind in types):
        return NotImplemented
    mode = next(t.fake_mode for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, FakeTensor))
    return answer(mode, func, args, kwargs)


def prepare() -> None:
    """Puts fake tensors into dispatch, once."""
    if "__torch_dispatch__" not in vars(FakeTensor):
        FakeTensor.__torch_dispatch__ = _of_class  # type: ignore[attr-defined]
        _classes.register(FakeTensor)


def wrapped(mode: FakeTensorMode, body: Tensor, device: Any, constant: Any = None) -> Any:
    """The fake tensor of a tensor on meta; with its history, if it has one."""
    with _classes.disabled(), NoOverrides():
        made = (
            body
            if type(body) is Tensor and body.grad_fn is not None
            else _C._make_subclass(FakeTensor, body, body.requires_grad)
        )
    return _dressed(mode, made, _C.device(device), constant)


def _dressed(mode: FakeTensorMode, body: Any, device: Any, constant: Any = None) -> Any:
    body.__class__ = FakeTensor
    if device.type not in ("cpu", "meta") and device.index is None:
        device = _C.device(device.type, 0)
    body.__dict__.update({_classes.PLACE: device, "fake_mode": mode, "constant": constant})
    return body


def shown(self: Any, grad: Any) -> Any:
    """A gradient that the core made for a fake tensor, as a fake tensor."""
    if type(grad) is Tensor and isinstance(self, FakeTensor) and grad.device.type == "meta":
        return _dressed(self.fake_mode, grad, self.device)
    return grad


def from_tensor(mode: FakeTensorMode, t: Tensor) -> Any:
    """The fake tensor of a tensor."""
    if isinstance(t, FakeTensor):
        if t.fake_mode is not mode:
            return wrapped(mode, _body(t), t.device)
        return t
    if t.layout is not strided or t.is_nested or t.is_quantized or _classes.is_wrapper(t):
        raise UnsupportedFakeTensorException(
            f"FakeTensorMode.from_tensor: {type(t).__name__} of layout {t.layout} has no fake tensor; expected a strided tensor"
        )
    kept = mode._memory.get(id(t))
    if (
        kept is not None
        and kept[0]() is t
        and kept[1].shape == t.shape
        and (kept[1].requires_grad == t.requires_grad or not t.dtype.is_floating_point)
    ):
        return kept[1]
    with _classes.disabled(), NoOverrides():
        body = _C.ops["empty_strided"](tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")
        if t.storage_offset():
            body = _classes._moved(body, t.storage_offset())
        # What autograd saved of a result without gradient says that it requires one.
        body.requires_grad_(t.requires_grad and (t.dtype.is_floating_point or t.dtype.is_complex))
        made = wrapped(mode, body, t.device)
    if isinstance(t, Parameter):
        made._is_param = True
    memory, key = mode._memory, id(t)
    memory[key] = (weakref.ref(t, lambda _: memory.pop(key, None)), made)
    return made


def _body(t: Tensor) -> Tensor:
    with _classes.disabled(), NoOverrides():
        return Tensor.detach(t)


def answer(mode: FakeTensorMode, func: Any, args: Any, kwargs: Any) -> Any:
    """What an op gives.

    Raises:
        DataDependentOutputException, DynamicOutputShapeException: it depends on elements.
        AssertionError: an argument has elements, and that is not allowed.
        FakeTensorDeviceMismatchError: arguments are on two devices.
    """
    name = func.overloadpacket.__name__
    if name in _NUMBERS:
        return _number(func, args, kwargs)
    if name in _SHAPES or f"{name}.{func._overload}" in _SHAPES:
        raise DynamicOutputShapeException(func)
    if name in _FRESH and not isinstance(args[0], FakeTensor):
        return _constant(mode, args[0])
    leaves = _pytree.tree_leaves((args, kwargs))
    tensors = [t for t in leaves if isinstance(t, Tensor)]
    if not all(isinstance(t, FakeTensor) for t in tensors):
        args, kwargs = _all_fake(mode, func, args, kwargs)
        tensors = [t for t in _pytree.tree_leaves((args, kwargs)) if isinstance(t, Tensor)]
    device = _device_of(func, name, tensors, args, kwargs)
    if name in _CASTS and _C._autocast_state(device.type)[0]:
        raise NotImplementedError(
            f"FakeTensorMode: {func} inside torch.autocast: its casts are not followed for tensors without elements. Hint: convert the "
            "model with .to(dtype)"
        )
    if kwargs.get("device") is not None or not tensors:
        kwargs = {**kwargs, "device": "meta"} if _takes_device(func) else kwargs
    kwargs = {k: v for k, v in kwargs.items() if k != "pin_memory"}
    result = _run(func, args, kwargs, tensors)
    known = _known(func, args, kwargs, tensors)
    if known is None and func._schema is not None and func._schema.is_mutable and args:
        _forget(mode, args[0])
    result = _pytree.tree_map(lambda t: _result(mode, t, device), result)
    if isinstance(result, FakeTensor):
        result.constant = known
        if known is not None:
            mode._known.add(result)
    return result


def _takes_device(func: Any) -> bool:
    return func._schema is None or any(a.name == "device" for a in func._schema.arguments)


def _result(mode: FakeTensorMode, t: Any, device: Any) -> Any:
    if not isinstance(t, Tensor) or isinstance(t, FakeTensor):
        return t
    return _dressed(mode, t, device) if type(t) is Tensor else wrapped(mode, t, device)


def _run(func: Any, args: Any, kwargs: Any, tensors: list[Tensor]) -> Any:
    """The op on the bodies, recorded by the core where this is the call that it is to record."""
    frame = state.frames[-1] if state.frames and not state.disabled else None
    taken = frame is not None and frame.takes(func, tensors)
    packet = func.overloadpacket
    if isinstance(packet._function, CustomOpDef):
        with set_grad_enabled(taken or _C.is_grad_enabled()):
            result = packet._function._recorded(*args, **kwargs)
        if taken:
            frame.done, frame.result = True, result  # type: ignore[union-attr]
        return result
    try:
        with _classes.disabled(), NoOverrides(), set_grad_enabled(taken or _C.is_grad_enabled()):
            result = _FORMS.get(func.overloadpacket.__name__, func.overloadpacket._function)(*args, **kwargs)
    except NotImplementedError as error:
        if func.overloadpacket.__name__.startswith(("index", "_index")):
            # A mask stands for the places that it names.
            raise DynamicOutputShapeException(aten.nonzero.default) from error
        raise UnsupportedOperatorException(func) from error
    if type(result) is not tuple and isinstance(result, tuple):
        result = tuple(result)
    if taken:
        frame.done, frame.result = True, result  # type: ignore[union-attr]
    return result


def _one_hot(self: Tensor, num_classes: int = -1) -> Tensor:
    if num_classes < 0:
        raise DataDependentOutputException(aten._local_scalar_dense.default)
    return _C.ops["empty"]((*self.shape, num_classes), dtype=_C.int64, device="meta")


# Ops of the library that look at elements for checks alone.
_FORMS = {"one_hot": _one_hot}


def _number(func: Any, args: Any, kwargs: Any) -> Any:
    known = _pytree.tree_map(lambda t: getattr(t, "constant", t) if isinstance(t, FakeTensor) else t, (args, kwargs))
    if any(v is None for v in _pytree.tree_leaves(known)):
        raise DataDependentOutputException(func)
    with _classes.disabled(), NoOverrides():
        return func.overloadpacket._function(*known[0], **known[1])


def _constant(mode: FakeTensorMode, t: Tensor) -> Any:
    """The fake tensor of one that a program has made of data; one element is kept."""
    body = _C.ops["empty_strided"](tuple(t.shape), t.stride(), dtype=t.dtype, device="meta")
    made = wrapped(mode, body, t.device, t if t.numel() == 1 else None)
    if t.numel() == 1:
        mode._known.add(made)
    return made


def _forget(mode: FakeTensorMode, written: Any) -> None:
    """A write of what is not known: the elements of all tensors in that memory are unknown then."""
    constant = getattr(written, "constant", None)
    if constant is None:
        return
    place = constant.untyped_storage()._cdata
    for t in mode._known:
        if t.constant is not None and t.constant.untyped_storage()._cdata == place:
            t.constant = None


def _known(func: Any, args: Any, kwargs: Any, tensors: list[Any]) -> Any:
    """The one element of a result, where those of the arguments are known; what the op writes to is written."""
    if not tensors or any(t.constant is None for t in tensors) or kwargs.get("device") is not None:
        return None
    if func._schema is None or func.overloadpacket.__name__ in DRAWS:
        return None
    given = _pytree.tree_map(lambda t: t.constant if isinstance(t, FakeTensor) else t, (args, kwargs))
    with _classes.disabled(), NoOverrides():
        found = func.overloadpacket._function(*given[0], **given[1])
    return found if isinstance(found, Tensor) and found.numel() == 1 else None


def _all_fake(mode: FakeTensorMode, func: Any, args: Any, kwargs: Any) -> Any:
    def fake(t: Any) -> Any:
        if not isinstance(t, Tensor) or isinstance(t, FakeTensor):
            return t
        if not mode.allow_non_fake_inputs and t.device.type != "meta":
            given = ", ".join(_brief(v) for v in (*args, *kwargs.values()))
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}({given})"
            )
        return from_tensor(mode, t)

    return _pytree.tree_map(fake, (args, kwargs))


def described(t: Any) -> str:
    """What a fake tensor prints as."""
    default = _C.ops["empty"](0).dtype
    given = [] if t.device.type == "cpu" else [f"device={str(t.device)!r}"]
    given.append(f"size={tuple(t.shape)}")
    if t.dtype != default:
        given.append(f"dtype={t.dtype}")
    if t.grad_fn is not None:
        given.append(f"grad_fn=<{t.grad_fn.name()}>")
    elif t.requires_grad:
        given.append("requires_grad=True")
    text = f"FakeTensor(..., {', '.join(given)})"
    return f"Parameter({text})" if getattr(t, "_is_param", False) else text


def _brief(value: Any) -> str:
    if isinstance(value, FakeTensor):
        return f"FakeTensor(..., size={tuple(value.shape)})"
    return f"tensor([...], size={tuple(value.shape)})" if isinstance(value, Tensor) else repr(value)


def _device_of(func: Any, name: str, tensors: list[Tensor], args: Any, kwargs: Any) -> Any:
    """The device of the results."""
    given = kwargs.get("device")
    if given is not None:
        return _C.device(given)
    if not tensors:
        return _C.ops["empty"](0).device
    if name in _OWN_DEVICE:
        return tensors[0].device
    found: Any = None
    for t in tensors:
        # A number in a tensor goes with any device.
        if t.dim() == 0 and t.device.type == "cpu" and len(tensors) > 1:
            continue
        if found is not None and t.device != found:
            raise FakeTensorDeviceMismatchError(
                f"Expected all tensors to be on the same device, but found at least two devices, {found} and {t.device}!"
            )
        found = t.device
    return tensors[0].device if found is None else found
