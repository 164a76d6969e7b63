"""How the layers of a plan are split over processes, and how their arguments and results lie: descriptions."""

from __future__ import annotations

from typing import Any

from ...._absent import getattr_of
from ..placement_types import Placement, Replicate, Shard

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle:
    """How a module is split. Plans hold such objects; `parallelize_module` reads them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class _Split(ParallelStyle):
    """A layer whose weight is split.

    Args:
        input_layouts (Placement): how the argument lies.
        output_layouts (Placement): how the result is to lie.
        use_local_output (bool): whether the result is the process's own part as a plain tensor.
    """

    _input, _output = Replicate(), Replicate()

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        self.input_layouts = (input_layouts or self._input,)
        self.output_layouts = (output_layouts or self._output,)
        self.use_local_output = use_local_output


class ColwiseParallel(_Split):
    """A linear layer or an embedding whose weight is split by columns of the product: a result of parts."""

    _output = Shard(-1)


class RowwiseParallel(_Split):
    """A linear layer or an embedding whose weight is split by rows of the product: a result of sums."""

    _input = Shard(-1)


class SequenceParallel(ParallelStyle):
    """A layer that is whole in each process, whose arguments are split along the sequence.

    Args:
        sequence_dim (int): the dimension of the sequence.
        use_local_output (bool): whether the result is the process's own part as a plain tensor.
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output


def _as_tuple(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """How the arguments of a module lie, and how they are to lie.

    Args:
        input_layouts, desired_input_layouts (Placement or tuple of them): of the arguments by position; None for those that are no tensors.
        input_kwarg_layouts, desired_input_kwarg_layouts (dict): of the arguments by name.
        use_local_output (bool): whether the module gets the process's own parts as plain tensors.
    """

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts, self.desired_input_layouts = _as_tuple(input_layouts), _as_tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None and (
            self.desired_input_layouts is None or len(self.input_layouts) != len(self.desired_input_layouts)
        ):
            raise AssertionError("input_layouts and desired_input_layouts should have same length!")


class PrepareModuleOutput(ParallelStyle):
    """How the results of a module lie, and how they are to lie.

    Args:
        output_layouts, desired_output_layouts (Placement or tuple of them): of the results.
        use_local_output (bool): whether callers get the process's own parts as plain tensors.
    """

    def __init__(self, *, output_layouts: Any, desired_output_layouts: Any, use_local_output: bool = True) -> None:
        self.output_layouts, self.desired_output_layouts = _as_tuple(output_layouts), _as_tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")


class PrepareModuleInputOutput(ParallelStyle):
    """Both of a module: `PrepareModuleInput` and `PrepareModuleOutput`, whose arguments it takes."""

    def __init__(
        self,
        *,
        input_layouts: Any = None,
        desired_input_layouts: Any = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Any,
        desired_output_layouts: Any,
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )


__getattr__ = getattr_of(__name__)


def __dir__() -> list[str]:
    return __all__
