"""What lowerings call: an op of ATen by name, which is dispatched."""

from __future__ import annotations

from typing import Any

from .. import _C
from .._C import Tensor
from .._ops import OpOverloadPacket, ops
from .._schema import overloads
from ..export._fit import Call, fit, fit_schema
from ..export._lowering_table import lowering
from ._calls import dispatch
from ._stack import entered

__all__ = ["Runner", "resolve", "runner"]


class Runner:
    """Runs ops by name, as the lowerings of `export` ask for them."""

    function = ""

    def __init__(self) -> None:
        self._blocks: list[Any] = []

    def __enter__(self) -> None:
        # A block of a lowering whose calls are functions.
        self._blocks.append(entered())
        self._blocks[-1].__enter__()

    def __exit__(self, *raised: Any) -> None:
        self._blocks.pop().__exit__(*raised)

    def __call__(self, name: str, /, *args: Any, **kwargs: Any) -> Any:
        """Runs an op of ATen by name."""
        out, wants_grad = kwargs.pop("out", None), kwargs.pop("requires_grad", False)
        call = fit(name, args, kwargs)
        if call is None:
            kinds = [type(v).__name__ for v in (*args, *kwargs.values())]
            raise NotImplementedError(f"{self.function}: no op of ATen is called so: {name}({', '.join(kinds)})")
        result = self._run(call)
        if wants_grad:
            result.requires_grad_()
        return self.out(out, result)

    def overload(self, name: str, overload: str, /, *args: Any, **kwargs: Any) -> Any:
        """Runs an op of ATen by the name of its overload."""
        call = fit_schema(name, overloads(name)[overload], args, kwargs)
        if call is None:
            raise NotImplementedError(f"{self.function}: {name}.{overload} does not take these arguments")
        return self._run(call)

    def _run(self, call: Call) -> Any:
        packet = getattr(ops.aten, call.name)
        return dispatch(getattr(packet, call.schema.overload_name or "default"), call.args, call.kwargs)

    def out(self, out: Any, result: Any) -> Any:
        """Writes a result where the program wants it."""
        if out is None:
            return result
        targets, results = (out, result) if isinstance(out, (list, tuple)) else ([out], [result])
        for target, value in zip(targets, results):
            if target.shape != value.shape:
                target.resize_(value.shape)
            self.overload("copy_", "default", target, value)
        return out

    def metadata(self, tensor: Tensor) -> None:
        """Nothing: what a conversion takes for granted holds in this run."""

    def depends(self, tensor: Tensor | None) -> bool:
        """False: conditions are evaluated."""
        return False

    def number(self, tensor: Tensor) -> int:
        """The number in a tensor."""
        return int(tensor)

    def constant(self, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of data."""
        key = self.function
        if key in ("as_tensor", "asarray") and isinstance(args[0], Tensor):
            return lowering("to")(self, *args, **kwargs) if kwargs or args[1:] else args[0]  # type: ignore[misc]
        wants = kwargs.pop("requires_grad", False)
        if key == "new_tensor":
            like, *rest = args
            kwargs = {"dtype": like.dtype, "device": like.device, **kwargs}
            made = _C.tensor(*rest, **kwargs)
        else:
            made = (_C.from_numpy if key == "from_numpy" else _C.tensor)(*args, **kwargs)
        made = dispatch(ops.aten.lift_fresh.default, (made,), {})
        return made.requires_grad_() if wants else made


runner = Runner()


def resolve(packet: OpOverloadPacket, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of an op without the name of an overload: the overload that takes these arguments."""
    if packet._namespace != "aten":
        return dispatch(packet.default, args, kwargs)
    return runner(packet.__name__, *args, **kwargs)
