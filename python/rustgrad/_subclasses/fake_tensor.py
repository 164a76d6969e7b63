"""Fake tensors: a shape, a dtype and a device, and no elements. What ops give is known, nothing is computed.

    with FakeTensorMode():
        model = Model().to("cuda")
        model(torch.empty(64, 3, 224, 224, device="cuda"))

What the mode does is in `_dispatch._fake`, which is loaded with the first one: programs import these names to ask whether something is fake.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import Any

from .._absent import getattr_of
from .._base import Tensor
from .._typing import Self

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "MetadataMismatchError",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
    "is_fake",
    "unset_fake_temporarily",
]


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that has no fake one."""

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


class _OfOp(RuntimeError):
    def __init__(self, func: Any) -> None:
        super().__init__(str(func))
        self.func = func


class DynamicOutputShapeException(_OfOp):
    """The shape of a result depends on elements. `func`: the op."""


class DataDependentOutputException(_OfOp):
    """A result is a number that depends on elements. `func`: the op."""


class UnsupportedOperatorException(_OfOp):
    """An op that does not run without elements. `func`: the op."""


class MetadataMismatchError(RuntimeError):
    """Two tensors are not of one form."""


class FakeTensorDeviceMismatchError(MetadataMismatchError):
    """Arguments of an op are on two devices."""


class FakeTensor(Tensor):
    """A tensor without elements.

    Args:
        fake_mode (FakeTensorMode): the mode whose tensor it is.
        elem (Tensor): a tensor of the meta device with its shape, strides and dtype.
        device: the device that it says it is on.
        constant (Tensor, optional): the elements, where they are known.

    Attributes:
        fake_mode, fake_device, constant: as in the arguments.
    """

    fake_mode: FakeTensorMode
    constant: Any

    @staticmethod
    def __new__(cls, fake_mode: FakeTensorMode, elem: Tensor, device: Any, constant: Any = None, **rest: Any) -> Self:
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        from .._dispatch import _fake

        return _fake.wrapped(fake_mode, elem, device, constant)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    @property
    def fake_device(self) -> Any:
        """The device that it says it is on."""
        return self.device


class FakeTensorConverter:
    """Makes fake tensors of a mode; the mode remembers them."""

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, **settings: Any) -> Any:
        """The fake tensor of `t`: `fake_mode.from_tensor(t)`."""
        return fake_mode.from_tensor(t, **settings)


class FakeTensorMode:
    """A mode in which tensors are fake: factories make fake ones, and ops on them compute nothing.

    Args:
        allow_fallback_kernels (bool): taken for programs of PyTorch; ops without a rule are refused.
        allow_non_fake_inputs (bool): whether tensors with elements may be arguments; they are taken for fake ones.
        shape_env: None; sizes are numbers.
        static_shapes (bool, optional): True or None; sizes are numbers.

    Raises:
        NotImplementedError: sizes were to be symbols.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        if shape_env is not None or static_shapes is False:
            raise NotImplementedError(
                "FakeTensorMode: sizes that are symbols are not here; expected shape_env=None and static_shapes=None or True"
            )
        from .._dispatch import _fake

        _fake.prepare()
        self.allow_fallback_kernels, self.allow_non_fake_inputs = allow_fallback_kernels, allow_non_fake_inputs
        self.shape_env, self.static_shapes, self.export = None, True, export
        self.enter_stack: list[bool] = []
        self._memory: dict[int, Any] = {}
        # Tensors whose one element is known, by identity.
        self._known: Any = _fake.Known()

    @classmethod
    def shared(cls) -> FakeTensorMode:
        """One mode for all that asks only for forms."""
        found = vars(cls).get("_shared")
        if found is None:
            found = cls._shared = cls(allow_non_fake_inputs=True)
        return found

    @classmethod
    def is_infra_mode(cls) -> bool:
        """True: it belongs to the library."""
        return True

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> Any:
        """The fake tensor of a tensor: the same one each time.

        Raises:
            UnsupportedFakeTensorException: the tensor is sparse, nested or quantised, or wraps others.
        """
        from .._dispatch import _fake

        return _fake.from_tensor(self, tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """What an op gives, as fake tensors."""
        from .._dispatch import _fake

        return _fake.answer(self, func, args, kwargs or {})

    def __enter__(self) -> Self:
        from .._dispatch import _classes
        from .._dispatch._stack import state

        # Inside itself it is there already.
        self.enter_stack.append(not state.modes or state.modes[-1] is not self)
        if self.enter_stack[-1]:
            _classes.enter(self)
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        from .._dispatch import _classes

        if self.enter_stack.pop():
            _classes.leave()


def is_fake(x: object) -> bool:
    """Whether it is a fake tensor."""
    return isinstance(x, FakeTensor)


def active_mode() -> Any:
    """The innermost mode of fake tensors that this thread is in; None if there is none."""
    stack = sys.modules.get("rustgrad._dispatch._stack")
    modes = [] if stack is None else stack.state.modes
    return next((m for m in reversed(modes) if isinstance(m, FakeTensorMode)), None)


@contextlib.contextmanager
def unset_fake_temporarily() -> Iterator[Any]:
    """A block in which tensors are not fake; yields the mode that it leaves, None if there is none."""
    mode = active_mode()
    if mode is None:
        yield None
        return
    modes = sys.modules["rustgrad._dispatch._stack"].state.modes
    at = len(modes) - 1 - modes[::-1].index(mode)
    del modes[at]
    try:
        yield mode
    finally:
        modes.insert(at, mode)


__getattr__ = getattr_of(__name__)
